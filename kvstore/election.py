"""Queues candidates for the lead in ZooKeeper."""

import re
import uuid
from collections.abc import Iterable

from kvstore.zookeeper import Session


class Candidate:
    """A candidate for the lead, as long as the session lives; whoever has waited longest leads.

    kazoo's own Lock and Election wait inside calls without a deadline, and do not report when the
    connection drops. Nor do they fence: a leader also has to take an epoch. Its own description is
    for readers alone.
    """

    def __init__(self, session: Session, path: str, description: bytes) -> None:
        self._session = session
        self._path = path
        self._description = description
        # The create may succeed while its answer is lost: the prefix finds the node again.
        self._prefix = f"{uuid.uuid4().hex}-"

    def leads(self) -> bool:
        """Join the queue if need be, and return whether this candidate is its head."""
        queue = self._queue()
        if not any(node.startswith(self._prefix) for node in queue):
            node = f"{self._path}/{self._prefix}"
            self._session.create(node, self._description, ephemeral=True, sequence=True)
            queue = self._queue()
        return bool(queue) and queue[0].startswith(self._prefix)

    def resign(self) -> None:
        for node in self._queue():
            if node.startswith(self._prefix):
                self._session.delete(f"{self._path}/{node}")

    def _queue(self) -> list[str]:
        return in_line(self._session.children(self._path) or [])


def in_line(nodes: Iterable[str]) -> list[str]:
    """Order candidates, the head first; what is none is left out."""
    return sorted((n for n in nodes if re.search(r"-\d{10}$", n)), key=lambda n: n[-10:])
