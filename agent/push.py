"""Publishes what the JVMs of this node say: acks when they change, load at its own pace."""

from __future__ import annotations

import time
from dataclasses import replace
from importlib.metadata import version

import structlog

from agent.samples import Samples
from kvstore.errors import SessionLostError, ZooKeeperError
from kvstore.zookeeper import NODE_LIMIT_BYTES, Session
from migration.model import NodeAcks, NodeLoad, Plan, Traffic
from migration.wire import acks_path, encode, load_path

# Fresh for the controller means at most 15 s old; three tries fit into that.
ACKS_AT_LEAST_EVERY_S = 5.0

log = structlog.get_logger()


class Pusher:
    """The publisher of one node.

    Parameters
    ----------
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
        self._said: frozenset[str] = frozenset()

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
        cluster : str
            The cluster that this node follows.
        now_s : float
            Monotonic seconds.
        held : tuple of Plan
            The plans of this node that ZooKeeper has lost.

        Raises
        ------
        StoreError
            If ZooKeeper does not take the acks; the next call tries again.
        """
        acks = NodeAcks(
            node, _unix_ms(), self._agent, cluster, samples.workers, samples.supervisor, held
        )
        timeless = _timeless(acks)
        if timeless != self._acked or now_s - self._acked_s >= ACKS_AT_LEAST_EVERY_S:
            self._put_acks(acks)
            self._acked, self._acked_s = timeless, now_s
        if now_s - self._loaded_s >= self._load_s:
            # Before it is tried: what ZooKeeper does not take must not be sent in every turn.
            self._loaded_s = now_s
            self._put_load(NodeLoad(node, _unix_ms(), samples.loads))

    def _put_acks(self, acks: NodeAcks) -> None:
        data = encode(acks)
        too_large = len(data) > NODE_LIMIT_BYTES
        self._say("acks_too_large", too_large, size_bytes=len(data), limit_bytes=NODE_LIMIT_BYTES)
        if too_large:
            # A lost plan can wait; without acks the node takes part in nothing.
            data = encode(replace(acks, held=()))
        if len(data) <= NODE_LIMIT_BYTES:
            self._session.put(acks_path(acks.node), data)

    def _put_load(self, whole: NodeLoad) -> None:
        load = fitted(whole, NODE_LIMIT_BYTES)
        data = encode(load)
        fits = len(data) <= NODE_LIMIT_BYTES
        rows = sum(len(worker.traffic) for worker in whole.workers)
        self._say("load_cut", load.left_out > 0, rows=rows, left_out=load.left_out)
        self._say("load_too_large", not fits, size_bytes=len(data), limit_bytes=NODE_LIMIT_BYTES)
        if not fits:
            return
        try:
            self._session.put(load_path(load.node), data)
        except SessionLostError:
            raise
        except ZooKeeperError as error:
            # Old load only keeps the controller from deciding; late acks hold up moves under way.
            self._say("load_not_published", True, size_bytes=len(data), reason=str(error))
        else:
            self._say("load_not_published", False)

    def _say(self, event: str, true: bool, **facts: object) -> None:
        """Report a problem once, and again only after it was gone."""
        if true and event not in self._said:
            log.warning(event, **facts)
        self._said = self._said | {event} if true else self._said - {event}


def fitted(load: NodeLoad, limit_bytes: int) -> NodeLoad:
    """Leave out the traffic rows of the fewest tuples, as many as it takes to fit.

    Parameters
    ----------
    limit_bytes : int
        How large it may be when it is encoded.

    Returns
    -------
    NodeLoad
        The same if it fits. Larger than the limit only if it is without any row, too.

    Notes
    -----
    Totals only grow, so what is large stays so and the same rows are left out again and again.
    """
    rows = [row for worker in load.workers for row in worker.traffic]
    sizes = [_row_bytes(row) for row in rows]
    bare = replace(
        load,
        workers=tuple(replace(worker, traffic=()) for worker in load.workers),
        left_out=len(rows),
    )
    room = limit_bytes - len(encode(bare))
    if sum(sizes) <= room:
        return load
    kept = set()
    for index in sorted(range(len(rows)), key=lambda i: rows[i].tuples, reverse=True):
        room -= sizes[index]
        if room < 0:
            break
        kept.add(index)
    numbered = iter(range(len(rows)))
    workers = tuple(
        replace(worker, traffic=tuple(r for r in worker.traffic if next(numbered) in kept))
        for worker in load.workers
    )
    return replace(load, workers=workers, left_out=len(rows) - len(kept))


def _row_bytes(row: Traffic) -> int:
    """Return the length of ``[1,7,123],``."""
    return len(f"{row.source_task}{row.target_task}{row.tuples}") + 5


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
