"""Reads the messages that ZooKeeper holds, each once for every change.

The protocol looks many times a second; only what has changed is read again.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from kvstore.logs import log
from kvstore.watched import Watched
from kvstore.zookeeper import Session, Stored
from migration import WireError
from migration.model import Candidacy, NimbusReport, NodeAcks, NodeLoad, Nodes, Plan, Publication
from migration.wire import EPOCH, decode, encode, plan_path, unpacked

# What no JSON in UTF-8 on one line contains.
_NOT_PLAIN = (b"\n", b"\r", b"\0")

# The write that a message was decoded from, the message, its JSON, and when it was seen to come.
# Last, when it was written, by ZooKeeper's clock.
_Decoded = tuple[int, Any, bytes, float, int]
_NOTHING: _Decoded = (-1, None, b"", math.nan, 0)

M = TypeVar("M", NodeAcks, NodeLoad, Plan, Publication, Nodes, NimbusReport, Candidacy)


class Mirror(Watched):
    """A copy of some nodes; `wake` is set whenever something that was read has changed."""

    def __init__(
        self, session: Session, wake: threading.Event, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(session, wake)
        self.now_s = now_s
        self._decoded: dict[str, _Decoded] = {}

    def message(self, kind: type[M], path: str) -> M | None:
        """Read a node in a format of PROTOCOL.md; garbage is reported once and ignored."""
        return self._message(kind, path, self.node(path))

    def watched(self, kind: type[M], paths: Sequence[str]) -> list[M | None]:
        """Read many nodes as `message` does one."""
        found = zip(paths, self.nodes(paths), strict=True)
        return [self._message(kind, path, stored) for path, stored in found]

    def _message(self, kind: type[M], path: str, stored: Stored | None) -> M | None:
        if stored is None:
            self._decoded.pop(path, None)
            return None
        mzxid, last, data, *_ = self._decoded.get(path, _NOTHING)
        value: M | None = last
        if mzxid == stored.mzxid:
            return value
        try:
            plain = unpacked(stored.data)
            found = decode(kind, plain)
            _refuse_foreign(found, path)
            value, data = found, plain
        except WireError as error:
            log.warning("node_holds_garbage", path=path, reason=str(error))
        self._decoded[path] = (stored.mzxid, value, data, self.now_s(), stored.mtime_ms)
        return value

    def messages(self, kind: type[M], paths: Sequence[str]) -> list[M]:
        """Read many nodes again, whatever the watches reported; absent ones are left out."""
        found = dict(zip(paths, self._session.read_many(paths), strict=True))
        opened = zip(paths, self.opened(found), strict=True)
        read = (self._message(kind, path, stored) for path, stored in opened)
        return [message for message in read if message is not None]

    def came_within(self, paths: Iterable[str], seconds: float) -> list[bool]:
        """Return of each message whether it was recently seen to come; False if it is gone."""
        since_s = self.now_s() - seconds
        return [self._decoded.get(path, _NOTHING)[3] >= since_s for path in paths]

    def written_ms(self, path: str) -> int:
        """Return when the message was written, by ZooKeeper's clock; 0 if none was read there."""
        return self._decoded.get(path, _NOTHING)[4]

    def forget(self, path: str) -> None:
        super().forget(path)
        self._decoded.pop(path, None)

    def plan(self, topology: str) -> Plan | None:
        """Read a topology's plan as it is now, not as it last could be read.

        None if there is none, or if the node holds garbage or another topology's plan. Also None if
        the plan names another version than its node has, or an epoch that no leader has had: only
        people write such plans.
        """
        path = plan_path(topology)
        plan, stored = self.message(Plan, path), self.node(path)
        if plan is None or stored is None or self._decoded[path][2] != stored.data:
            return None
        good = (plan.topology, plan.version) == (topology, stored.version)
        return plan if good and self.was_led(plan.epoch) else None

    @property
    def epoch(self) -> int:
        """The epoch of the newest leader; -1 if there was none."""
        stored = self.stat(EPOCH)
        return -1 if stored is None else stored.version

    def was_led(self, epoch: int) -> bool:
        """Return whether there was a leader of this epoch."""
        return self.has_version(EPOCH, epoch)

    def data_of(self, messages: Sequence[NodeAcks | NodeLoad | Publication]) -> list[bytes]:
        """Give the JSON that messages from `message` were read from, in one line each."""
        held = {id(value): data for _, value, data, *_ in self._decoded.values()}
        return [_one_line(held.get(id(message), b""), message) for message in messages]


def _refuse_foreign(found: Any, path: str) -> None:
    """Refuse what an agent reports of another node than its own."""
    if not isinstance(found, NodeAcks | NodeLoad):
        return
    node = path.rpartition("/")[2]
    others = {found.node, *(worker.slot.supervisor for worker in found.workers)}
    if isinstance(found, NodeAcks) and found.supervisor is not None:
        others.add(found.supervisor.supervisor)
    others.discard(node)
    if others:
        raise WireError(path, f"{node} speaks for {', '.join(sorted(others))}")


def _one_line(data: bytes, message: NodeAcks | NodeLoad | Publication) -> bytes:
    """Keep plain JSON; anything else is written again."""
    plain = data.startswith(b"{") and not any(mark in data for mark in _NOT_PLAIN)
    return data if plain else encode(message)
