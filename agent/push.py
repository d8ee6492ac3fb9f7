"""Publishes what the JVMs of this node say: acks when they change, load at its own pace."""

from __future__ import annotations

import time
from dataclasses import replace
from importlib.metadata import version

import structlog

from agent.samples import Samples
from kvstore.zookeeper import Session
from migration.model import NodeAcks, NodeLoad, Plan
from migration.wire import acks_path, encode, load_path

# Fresh for the controller means at most 15 s old; three tries fit into that.
ACKS_AT_LEAST_EVERY_S = 5.0

log = structlog.get_logger()


class Pusher:
    """The publisher of one node.

    Parameters
    ----------
    session : Session
        The session.
    load_s : float
        The period of the load reports.
    """

    def __init__(self, session: Session, load_s: float) -> None:
        self._session = session
        self._load_s = load_s
        self._agent = version("nstorm")
        self._acked: NodeAcks | None = None
        self._acked_s = -ACKS_AT_LEAST_EVERY_S
        self._loaded_s = -load_s

    def push(
        self,
        samples: Samples,
        node: str,
        cluster: str,
        now_s: float,
        held: tuple[Plan, ...] = (),
    ) -> None:
        """Publish what is due.

        Parameters
        ----------
        samples : Samples
            What the JVMs say.
        node : str
            The supervisor's id.
        cluster : str
            The cluster that this node follows.
        now_s : float
            Monotonic seconds.
        held : tuple of Plan
            The plans of this node that ZooKeeper has lost.

        Raises
        ------
        StoreError
            If ZooKeeper does not answer; the next call tries again.
        """
        acks = NodeAcks(
            node, _unix_ms(), self._agent, cluster, samples.workers, samples.supervisor, held
        )
        timeless = _timeless(acks)
        if timeless != self._acked or now_s - self._acked_s >= ACKS_AT_LEAST_EVERY_S:
            self._session.put(acks_path(node), encode(acks))
            self._acked, self._acked_s = timeless, now_s
        if now_s - self._loaded_s >= self._load_s:
            load = NodeLoad(node, _unix_ms(), samples.loads)
            self._session.put(load_path(node), encode(load))
            self._loaded_s = now_s


def _timeless(acks: NodeAcks) -> NodeAcks:
    """Leave the times out: a JVM that only says that it is alive is no news."""
    supervisor = acks.supervisor
    return replace(
        acks,
        time_ms=0,
        workers=tuple(replace(worker, time_ms=0) for worker in acks.workers),
        supervisor=None if supervisor is None else replace(supervisor, time_ms=0),
    )


def _unix_ms() -> int:
    return time.time_ns() // 1_000_000
