"""Keeps what was read from ZooKeeper until a watch says that it has changed.

The protocol looks many times a second; only what has changed is read again.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import structlog

from kvstore.zookeeper import Session, Stored
from migration import WireError
from migration.model import NodeAcks, NodeLoad, Plan, Publication
from migration.wire import decode

log = structlog.get_logger()

T = TypeVar("T")
M = TypeVar("M", NodeAcks, NodeLoad, Plan, Publication)


@dataclass(slots=True)
class _Kept:
    value: Any
    fresh: bool = True


class Mirror:
    """A copy of some nodes.

    Parameters
    ----------
    session : Session
        Where to read.
    wake : threading.Event
        Set whenever something that was read has changed.
    """

    def __init__(self, session: Session, wake: threading.Event) -> None:
        self._session = session
        self._wake = wake
        self._kept: dict[tuple[str, str], _Kept] = {}
        self._decoded: dict[str, tuple[int, Any]] = {}

    def node(self, path: str) -> Stored | None:
        """Read a node with its data.

        Parameters
        ----------
        path : str
            The node.

        Returns
        -------
        Stored or None
            None if it is not there.
        """
        return self._keep("node", path, self._session.read)

    def stat(self, path: str) -> Stored | None:
        """Read a node's versions.

        Parameters
        ----------
        path : str
            The node.

        Returns
        -------
        Stored or None
            None if it is not there.
        """
        return self._keep("stat", path, self._session.exists)

    def children(self, path: str) -> list[str]:
        """List a node's children.

        Parameters
        ----------
        path : str
            The node.

        Returns
        -------
        list of str
            Sorted; empty if it is not there.
        """
        return self._keep("children", path, self._session.children) or []

    def message(self, kind: type[M], path: str) -> M | None:
        """Read a node in one of the formats of PROTOCOL.md.

        Parameters
        ----------
        kind : type
            Class of the message.
        path : str
            The node.

        Returns
        -------
        instance of kind or None
            The last one that could be read: garbage is reported once and ignored.
        """
        stored = self.node(path)
        if stored is None:
            self._decoded.pop(path, None)
            return None
        mzxid, last = self._decoded.get(path, (-1, None))
        if mzxid == stored.mzxid:
            return cast(M | None, last)
        value: M | None = last
        try:
            value = decode(kind, stored.data)
        except WireError as error:
            log.warning("node_holds_garbage", path=path, reason=str(error))
        self._decoded[path] = (stored.mzxid, value)
        return value

    def forget(self, path: str) -> None:
        """Read a node again next time, because it was just written from here.

        Parameters
        ----------
        path : str
            The node.
        """
        self._kept.pop(("node", path), None)

    def _keep(self, what: str, path: str, read: Callable[[str, Callable[[], None]], T]) -> T:
        kept = self._kept.get((what, path))
        if kept is not None and kept.fresh:
            return cast(T, kept.value)
        # Made before reading: a change while the answer is on its way must not be missed.
        kept = _Kept(None)

        def changed() -> None:
            kept.fresh = False
            self._wake.set()

        kept.value = read(path, changed)
        self._kept[what, path] = kept
        return cast(T, kept.value)
