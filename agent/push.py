"""Publishes the reports of this node's JVMs: acks when they change, load at its own pace."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from importlib.metadata import version

from msgspec import UNSET
from msgspec.structs import replace

from agent.samples import Samples
from kvstore.errors import AccessError, SessionLostError, ZooKeeperError
from kvstore.logs import log
from kvstore.zookeeper import Session
from migration.model import Meters, NodeAcks, NodeLoad, Plan, traffic_of
from migration.wire import LARGEST_NODE_BYTES, SPEAKS, acks_path, encode, load_path, packed

# Fresh for the controller means at most 15 s old; three tries fit into that.
SIGN_OF_LIFE_S = 5.0
# For the case that they were deleted by hand.
ACKS_AT_LEAST_EVERY_S = 60.0
# A new leader needs two reports to have rates: it gets one at once and one after this time. JVMs
# write theirs each second, so the second has newer totals of all of them.
SECOND_LOAD_S = 1.5


class Pusher:
    """`meters` reads those of the node, for the process id of its supervisor if that is known."""

    def __init__(
        self,
        session: Session,
        load_s: float,
        meters: Callable[[int | None], Meters] = lambda pid: {},
    ) -> None:
        self._session = session
        self._meters = meters
        self._load_s = load_s
        self._agent = version("nstorm")
        self._acked: NodeAcks | None = None
        self._heard_s = -SIGN_OF_LIFE_S
        self._acked_s = -ACKS_AT_LEAST_EVERY_S
        self._load_due_s = -math.inf
        self._epoch: int | None = None
        self._leader_is_new = False
        self._said: set[str] = set()

    def load_is_due(self, now_s: float) -> bool:
        """Return whether the next `push` publishes the load."""
        return now_s >= self._load_due_s

    def led_by(self, epoch: int | None) -> None:
        """Take in which leader there is."""
        if epoch != self._epoch:
            self._epoch, self._leader_is_new, self._load_due_s = epoch, True, -math.inf

    def push(
        self,
        samples: Samples,
        node: str,
        cluster: str,
        now_s: float,
        held: tuple[Plan, ...] = (),
        *,
        off: str | None = None,
    ) -> None:
        """Publish what is due; `now_s` are monotonic seconds, `held` plans ZooKeeper has lost.

        `off` is why the hooks of this node are switched off.

        A `StoreError` if ZooKeeper does not take the acks; the next call tries again.
        """
        acks = NodeAcks(
            node,
            _unix_ms(),
            self._agent,
            SPEAKS,
            cluster,
            samples.workers,
            samples.supervisor,
            held,
            samples.silent,
            UNSET if off is None else off,
        )
        timeless = acks.timeless()
        # At rest a load report shows that the node is alive, so the acks need not.
        old = now_s - self._acked_s >= ACKS_AT_LEAST_EVERY_S
        if timeless != self._acked or old or now_s - self._heard_s >= SIGN_OF_LIFE_S:
            if not self._put_acks(acks):
                return  # a load would vouch for the acks of before
            self._acked, self._acked_s, self._heard_s = timeless, now_s, now_s
        if self.load_is_due(now_s):
            # Before it is tried: what ZooKeeper does not take must not be sent in every turn.
            soon_s = min(SECOND_LOAD_S, self._load_s)
            self._load_due_s = now_s + (soon_s if self._leader_is_new else self._load_s)
            self._leader_is_new = False
            supervisor = samples.supervisor
            meters = self._meters(None if supervisor is None else supervisor.pid) or UNSET
            if self._put_load(NodeLoad(node, _unix_ms(), samples.loads, meters=meters)):
                self._heard_s = now_s

    def _put_acks(self, acks: NodeAcks) -> bool:
        """Publish the acks; return whether they fit into a node."""
        data = packed(encode(acks))
        too_large = len(data) > LARGEST_NODE_BYTES
        self._say("acks_too_large", too_large, size_bytes=len(data), limit_bytes=LARGEST_NODE_BYTES)
        if too_large:
            # A lost plan can wait; without acks the node takes part in nothing.
            data = packed(encode(replace(acks, held=())))
        fits = len(data) <= LARGEST_NODE_BYTES
        if fits:
            self._session.put(acks_path(acks.node), data)
        return fits

    def _put_load(self, whole: NodeLoad) -> bool:
        """Publish the load; return whether ZooKeeper has it."""
        load, data = fitted(whole, LARGEST_NODE_BYTES)
        fits = len(data) <= LARGEST_NODE_BYTES
        rows = sum(len(worker.rows) for worker in whole.workers) if load.left_out else 0
        self._say("load_cut", load.left_out > 0, rows=rows, left_out=load.left_out)
        self._say("load_too_large", not fits, size_bytes=len(data), limit_bytes=LARGEST_NODE_BYTES)
        if not fits:
            return False
        try:
            self._session.put(load_path(load.node), data)
        except (AccessError, SessionLostError):
            raise
        except ZooKeeperError as error:
            # Old load only keeps the controller from deciding; late acks hold up moves under way.
            self._say("load_not_published", True, size_bytes=len(data), reason=str(error))
            return False
        self._say("load_not_published", False)
        return True

    def _say(self, event: str, true: bool, **facts: object) -> None:
        """Report a problem once, and again only after it was gone."""
        if not true:
            self._said.discard(event)
        elif event not in self._said:
            self._said.add(event)
            log.warning(event, **facts)


def fitted(load: NodeLoad, limit_bytes: int) -> tuple[NodeLoad, bytes]:
    """Leave out the traffic rows of the fewest tuples, as many as it takes to fit.

    Returns the load, and its bytes as ZooKeeper is to hold them. They exceed the limit only if the
    load is too large even without rows. Totals only grow, so a large row stays large, and each
    report leaves out the same rows.
    """
    found, data = load, packed(encode(load))
    if len(data) <= limit_bytes:
        return found, data
    kept = sum(len(worker.rows) for worker in load.workers)
    while len(data) > limit_bytes and kept:
        # How well the rest compresses is not known before.
        kept = min(kept - 1, int(kept * 0.95 * limit_bytes / len(data)))
        found = _with_most(load, kept)
        data = packed(encode(found))
    return found, data


def _with_most(load: NodeLoad, count: int) -> NodeLoad:
    """Keep the traffic rows of the most tuples."""
    rows = [row for worker in load.workers for row in worker.rows]
    by_tuples = sorted(range(len(rows)), key=lambda i: rows[i][2], reverse=True)
    kept, numbered = set(by_tuples[:count]), iter(range(len(rows)))
    workers = tuple(
        replace(worker, traffic=traffic_of(r for r in worker.rows if next(numbered) in kept))
        for worker in load.workers
    )
    return replace(load, workers=workers, left_out=len(rows) - count)


def _unix_ms() -> int:
    return time.time_ns() // 1_000_000
