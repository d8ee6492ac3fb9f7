"""Connects a daemon to Storm's part of ZooKeeper; where no Storm is, nothing is touched."""

from __future__ import annotations

import threading

import structlog

from kvstore.errors import NotConnectedError
from kvstore.zookeeper import Session, Waiting

# Made by the first of Storm's daemons that comes up, in each of its roots.
_STORMS_OWN = "/storms"
_LOOK_AGAIN_S = 1.0

log = structlog.get_logger()


def say_waiting(waiting: Waiting) -> None:
    """Tell where ZooKeeper was sought and when it is tried again, once a second.

    Parameters
    ----------
    waiting : Waiting
        The state of the attempts.
    """
    log.warning(
        "zookeeper_away",
        zookeeper=waiting.hosts,
        attempt=waiting.attempt,
        retry_in_s=round(waiting.retry_in_s),
        reason=waiting.error,
    )


def without_storm(session: Session) -> str | None:
    """Say so if there is no Storm under the session's root.

    Parameters
    ----------
    session : Session
        Connected.

    Returns
    -------
    str or None
        None if there is one.

    Raises
    ------
    StoreError
        If ZooKeeper does not answer.
    """
    if session.exists(_STORMS_OWN) is not None:
        return None
    hosts, _, root = session.hosts.partition("/")
    return (
        f"ZooKeeper at {hosts} has no Storm under /{root}: start Nimbus, or check "
        "storm.zookeeper.root in the storm.yaml that was given"
    )


def await_storm(session: Session, stop: threading.Event) -> bool:
    """Wait until there is a Storm under the session's root; say once that there is none yet.

    Parameters
    ----------
    session : Session
        Connected.
    stop : threading.Event
        Ends the wait.

    Returns
    -------
    bool
        False if `stop` was set before.

    Raises
    ------
    SessionLostError
        If the session ends meanwhile.
    """
    said = False
    while not stop.is_set():
        try:
            problem = without_storm(session)
        except NotConnectedError as error:
            problem = str(error)
        if problem is None:
            return True
        if not said:
            log.warning("no_storm", reason=problem)
            said = True
        stop.wait(_LOOK_AGAIN_S)
    return False
