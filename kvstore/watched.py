"""Keeps what was read from ZooKeeper until a watch reports a change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Event
from typing import Any, TypeVar, cast

from kvstore.errors import AccessError
from kvstore.logs import log
from kvstore.zookeeper import Session, Stored

T = TypeVar("T")


@dataclass(slots=True)
class _Kept:
    value: Any = None
    fresh: bool = False


class Watched:
    """Nodes of ZooKeeper as last read; only what may have changed is read again.

    `wake` is set, from kazoo's thread, whenever something that was read may have changed.
    """

    def __init__(self, session: Session, wake: Event) -> None:
        self._session = session
        self._wake = wake
        self._kept: dict[tuple[str, str], _Kept] = {}
        # What kazoo has a watch of; it outlives what is forgotten.
        self._watching: set[tuple[str, str]] = set()
        self._closed: set[str] = set()

    def node(self, path: str) -> Stored | None:
        """Read a node with its data."""
        return self._keep("node", path, self._session.read)

    def nodes(self, paths: Iterable[str]) -> list[Stored | None]:
        """Read nodes as `node` does; of a thousand, few have changed.

        None also for one that is closed to us, as its creator may do: that is its reader's loss
        alone. An `AccessError` if all are, for then it is we who lack a right.
        """
        kept = ((path, self._kept.get(("node", path))) for path in paths)
        found = ((path, one.value if one and one.fresh else self._try(path)) for path, one in kept)
        return self.opened(dict(found))

    def _try(self, path: str) -> Stored | AccessError | None:
        try:
            return self.node(path)
        except AccessError as error:
            return error

    def opened(self, found: Mapping[str, Stored | AccessError | None]) -> list[Stored | None]:
        """Keep what could be read of many nodes, and report once each that is closed to us."""
        closed = {path: one for path, one in found.items() if isinstance(one, AccessError)}
        if closed and len(closed) == len(found):
            raise next(iter(closed.values()))
        for path in closed.keys() - self._closed:
            log.warning("node_closed", path=path, reason=str(closed[path]))
        self._closed = (self._closed - found.keys()) | closed.keys()
        return [None if isinstance(one, AccessError) else one for one in found.values()]

    def stat(self, path: str) -> Stored | None:
        """Read a node's versions."""
        return self._keep("stat", path, self._session.exists)

    def has_version(self, path: str, version: int) -> bool:
        """Return whether a node is at this version or above; looks again before False."""
        for again in (False, True):
            if again:
                self.invalidate(path)
            stored = self.stat(path)
            if stored is not None and stored.version >= version:
                return True
        return False

    def children(self, path: str) -> list[str]:
        """List a node's children, sorted; none if it is not there."""
        kept = self._kept.get(("children", path))
        before = (kept and kept.value) or []
        found = self._keep("children", path, self._session.children) or []
        for name in set(before).difference(found):
            self.forget(f"{path}/{name}")
        return found

    def kept_node(self, path: str) -> Stored | None:
        """Return a node as it was last read, without looking."""
        kept = self._kept.get(("node", path))
        return None if kept is None else cast(Stored | None, kept.value)

    def forget(self, path: str) -> None:
        """Give up what is kept of a node, because its readers have gone."""
        for what in ("node", "stat", "children"):
            self._kept.pop((what, path), None)

    def invalidate(self, path: str) -> None:
        """Read a node again next time, as after a write from here."""
        for what in ("node", "stat"):
            kept = self._kept.get((what, path))
            if kept is not None:
                kept.fresh = False

    def invalidate_all(self) -> None:
        """Read everything again, whatever the watches report."""
        for kept in self._kept.values():
            kept.fresh = False

    def _keep(self, what: str, path: str, read: Callable[[str, Callable[[], None] | None], T]) -> T:
        key = what, path
        kept = self._kept.setdefault(key, _Kept())
        if kept.fresh:
            return cast(T, kept.value)

        def changed() -> None:
            self._watching.discard(key)
            # Not `kept`: that may have been forgotten, and the node read again.
            now = self._kept.get(key)
            if now is not None:
                now.fresh = False
            self._wake.set()

        # Before reading: a change while the answer is on its way must not be missed.
        kept.fresh = True
        # One watch at a time: kazoo keeps each that it is given until the node changes.
        on_change = None
        if key not in self._watching:
            self._watching.add(key)
            on_change = changed
        try:
            kept.value = read(path, on_change)
        except BaseException:
            self._watching.discard(key)
            kept.fresh = False
            raise
        return cast(T, kept.value)
