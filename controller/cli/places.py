"""Hosts, as people know them, for the supervisor ids that Storm uses."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from controller.cli.status_document import StatusDocument
from controller.errors import CommandError
from migration.model import Node, Slot


def slot_of(text: str, nodes: Sequence[Node]) -> Slot:
    """Read SUPERVISOR-ID:PORT or HOST:PORT; what is neither of a known node stays as it is."""
    typed = Slot.parse(text)
    there = [node.id for node in nodes if node.host == typed.supervisor]
    if typed.supervisor in {node.id for node in nodes} or not there:
        return typed
    if len(there) > 1:
        there = [n.id for n in nodes if n.id in there and typed.port in n.slots] or there
    if len(there) > 1:
        ids = ", ".join(f"{node}:{typed.port}" for node in there)
        raise CommandError(f"{text} may be any of {ids}: type that instead")
    return Slot(there[0], typed.port)


def only(document: StatusDocument, topology: str, host: str) -> StatusDocument:
    """Leave of a status what concerns a topology, by id or name, and a host, by name or id."""
    topologies, ended = document.topologies, document.ended_moves
    if topology:
        names = [one.name for one in topologies]
        topologies = tuple(one for one in topologies if topology in (one.topology, one.name))
        _refuse_none(topologies, "topology", topology, names)
        ended = tuple(move for move in ended if move.topology == topologies[0].topology)
    if not host:
        return replace(document, topologies=topologies, ended_moves=ended)
    ids = {id_ for id_, name in document.hosts.items() if host in (id_, name)}
    _refuse_none(ids, "host", host, document.hosts.values())

    def here(*slots: str | None) -> bool:
        return any(slot is not None and slot.rpartition(":")[0] in ids for slot in slots)

    return replace(
        document,
        silent_s={node: s for node, s in document.silent_s.items() if node in ids},
        agents=tuple(agent for agent in document.agents if agent.node in ids),
        topologies=tuple(
            replace(
                t,
                workers=tuple(w for w in t.workers if here(w.slot)),
                executors=tuple(e for e in t.executors if here(e.slot)),
                moves=tuple(m for m in t.moves if here(m.source, m.target)),
                links=tuple(r for r in t.links if {r.source, r.target} & ids),
            )
            for t in topologies
            if any(here(worker.slot) for worker in t.workers)
        ),
        ended_moves=tuple(m for m in ended if here(m.source, m.target)),
    )


def _refuse_none(found: Any, what: str, typed: str, known: Iterable[str]) -> None:
    if not found:
        names = ", ".join(sorted(set(known))) or "none"
        raise CommandError(f"no {what} {typed}: there are {names}")
