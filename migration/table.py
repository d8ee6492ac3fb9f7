"""Reads the tables of PROTOCOL.md, so that the page and the machine cannot differ."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files

from migration import MigrationError
from migration.model import Phase, Timing, Way

ANY = "any"
VOID = "(void)"
LEAVE = "(leave)"
OPENING = "opening"


@dataclass(frozen=True, slots=True)
class Transition:
    """From which phase, for moves of which way, on which event, to which phase, and why."""

    phase: str
    way: str
    event: str
    next: str
    reason: str


def limit_s(phase: Phase, way: Way, timing: Timing) -> float | None:
    """Return how long a phase may last before its event `limit` happens, None for no limit."""
    if (phase, way) == (Phase.DRAIN, Way.DRAIN):
        return timing.unacked_limit_s
    return {
        Phase.OPEN: timing.open_limit_s,
        Phase.PREPARE: timing.prepare_limit_s,
        Phase.QUIET: timing.quiet_limit_s,
        Phase.SWITCH: timing.switch_limit_s,
        Phase.DRAIN: timing.lazy_kill_ms / 1000,
        Phase.CARRY: timing.carry_limit_s,
    }.get(phase)


def parse(page: str) -> tuple[Transition, ...]:
    """Read the table of transitions; a `MigrationError` if it is absent or a row is odd."""
    try:
        found = tuple(Transition(*cells) for cells in rows(page, "Transitions"))
    except (TypeError, ValueError) as error:
        raise MigrationError(f"PROTOCOL.md: {error}") from error
    names = {ANY, VOID, LEAVE} | set(Phase)
    for row in found:
        if row.phase not in names or row.next not in names or row.way not in {ANY, *Way}:
            raise MigrationError(f"PROTOCOL.md: {row.phase} to {row.next} is no transition")
    return found


def rows(page: str, heading: str) -> list[list[str]]:
    """Read the cells of the table under a heading of the second level, without its head.

    A `ValueError` if there is no table with a row.
    """
    section = re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^\|(.*)\|$", section[1], re.MULTILINE) if section else []
    if len(lines) < 3:
        raise ValueError(f"no table under {heading!r}")
    return [[cell.strip() for cell in line.split("|")] for line in lines[2:]]


def needed_versions(page: str) -> dict[Way, int]:
    """Read the version that a move of each way needs: its own, and that of every phase it has.

    A move may come through each of its phases, so every process that takes part has to understand
    them all. OPEN is a phase only of moves that open a slot.
    """
    needed = {Way(name): int(since) for name, _, since in rows(page, "Ways")}
    for *_, ways, since in rows(page, "Phases"):
        if ways == OPENING:
            continue
        for way in needed if ways == "all" else map(Way, ways.split(", ")):
            needed[way] = max(needed[way], int(since))
    return needed | {Way.UNKNOWN: max(needed.values()) + 1}


PAGE = (files("migration") / "PROTOCOL.md").read_text("utf-8")
TRANSITIONS = parse(PAGE)
NEEDS_VERSION = needed_versions(PAGE)
OPENS_SINCE = next(int(row[-1]) for row in rows(PAGE, "Phases") if row[-2] == OPENING)


def transitions_from(phase: Phase, way: Way, void: bool) -> tuple[Transition, ...]:
    """Return what may happen to an entry, in the order that decides."""
    names = {VOID} if void else {ANY, phase}
    return tuple(row for row in TRANSITIONS if row.phase in names and row.way in {ANY, way})
