"""Agent and controller as processes: they log, end on a signal, and serve where Storm is.

Where there is no Storm in ZooKeeper, nothing is touched.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from kvstore.ensemble import Ensemble
from kvstore.errors import AccessError, NotConnectedError, StoreError
from kvstore.logs import log
from kvstore.pulse import Pulse
from kvstore.zookeeper import Session, Waiting

# Made by the first of Storm's daemons that comes up, in each of its roots.
_STORMS_OWN = "/storms"
_LOOK_AGAIN_S = 1.0
# A person has to mend it: each try is not news, and what is mended is seen within a minute.
SAY_REFUSED_S, AFTER_REFUSAL_S = 60.0, 5.0


@contextmanager
def ended_by_signals() -> Iterator[threading.Event]:
    """Let SIGTERM and SIGINT end a daemon; the old handlers are put back afterwards."""
    stop = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Refusals:
    """Logs that ZooKeeper does not let this process do something: each once a minute."""

    def __init__(self) -> None:
        self._said_s: dict[str, float] = {}

    def report(self, reason: object) -> None:
        """Log a refusal, unless the same one was logged a short time ago."""
        now_s = time.monotonic()
        self._said_s = {why: at for why, at in self._said_s.items() if now_s - at < SAY_REFUSED_S}
        if str(reason) not in self._said_s:
            self._said_s[str(reason)] = now_s
            log.error("zookeeper_refuses", reason=str(reason))


def say_waiting(waiting: Waiting) -> None:
    """Print where ZooKeeper was sought and when it is tried again, once a second."""
    log.warning(
        "zookeeper_away",
        zookeeper=waiting.hosts,
        attempt=waiting.attempt,
        retry_in_s=round(waiting.retry_in_s),
        reason=waiting.error,
    )


def without_storm(session: Session) -> str | None:
    """Return that there is no Storm under the session's root; None if there is one."""
    try:
        if session.exists(_STORMS_OWN) is not None:
            return None
    except AccessError:
        return None  # of a node that is absent ZooKeeper would report that
    hosts, _, root = session.hosts.partition("/")
    return (
        f"ZooKeeper at {hosts} has no Storm under /{root}: start Nimbus, or check "
        "storm.zookeeper.root in the storm.yaml that was given"
    )


def await_storm(session: Session, stop: threading.Event, pulse: Pulse) -> bool:
    """Wait until there is a Storm under the session's root; False if `stop` was set before."""
    printed = False
    while not stop.is_set():
        pulse.beat("Storm in ZooKeeper")
        try:
            problem = without_storm(session)
        except NotConnectedError as error:
            problem = str(error)
        if problem is None:
            return True
        if not printed:
            log.warning("no_storm", reason=problem)
            printed = True
        stop.wait(_LOOK_AGAIN_S)
    return False


def serve(
    zookeeper: Ensemble | str,
    work: Callable[[Session], None],
    stop: threading.Event,
    on_state: Callable[[str], None] = lambda state: None,
    pulse: Pulse | None = None,
) -> None:
    """Do a daemon's work, and do it again in another session whenever one is lost.

    `work` goes on until `stop` is set. What it has built on a session ends with it. Its
    `StoreError` is raised unless the session was lost. While there is none to work in, the pulse
    beats here.
    """
    pulse = pulse or Pulse({})
    refusals = Refusals()

    def wait(waiting: Waiting) -> None:
        if not waiting.refused:
            pulse.beat(f"ZooKeeper at {waiting.hosts}")
            say_waiting(waiting)
            return
        pulse.beat(f"ZooKeeper at {waiting.hosts}: {waiting.error}")
        refusals.report(f"{waiting.hosts}: {waiting.error}")

    while not stop.is_set():
        pulse.beat("ZooKeeper")
        with Session(zookeeper, on_state=on_state) as session:
            try:
                connected = session.connect(on_wait=wait, stop=stop)
                if connected and await_storm(session, stop, pulse):
                    work(session)
            except StoreError as error:
                if not session.lost:
                    raise
                log.warning("session_lost", reason=str(error))
