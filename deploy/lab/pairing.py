"""Compares two placements of a topology in turn within one run, by moves.

A move restarts nothing, so compiled code, heaps and whatever else runs on the machine are the same
for both. Only a worker that a placement leaves without executors ends, and starts again. What
changes slowly falls out of the ratio of neighbours.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TypeAlias

from deploy.lab import LabError
from deploy.lab.daemons import patience_s
from deploy.lab.figures import Figures
from deploy.lab.interval import Ratio, paired_ratio
from deploy.lab.operator import Operator
from migration.model import ExecutorId, Slot

SlotOf: TypeAlias = Mapping[ExecutorId, Slot]

# Of a topology whose placements are compared.
TOPOLOGY_CONF = {
    # What bounds "as many as go": sentences in flight for each spout task.
    "topology.max.spout.pending": 1000,
    # The optimising compiler works for minutes where four JVMs share two cores: it would take most
    # of what is measured.
    "topology.worker.childopts": "-XX:TieredStopAtLevel=1",
}
# Of what saturates it: room for moves. Saturated, every worker is high, and a sentence waits as
# long as sentences may be in flight.
FED_FRAC = 0.4

# What is compared; the rest of the figures explains the result.
COMPARED = (
    "acked_tps",
    "cpu_us_per_sentence",
    "link_bytes_per_sentence",
    "fullest_link_bytes_per_sentence",
    "ack_p50_ms",
    "ack_p99_ms",
    "inter_node_tuple_frac",
    "inter_node_byte_frac",
    "gc_frac",
)
_AIMED = COMPARED[:3]
HALF_WIDTH = 0.03
# Whoever looks after every pair stops at a lucky one; after four there are fewer of them.
LEAST_PAIRS = 4
# Some moves can only be made after others. A slot that a placement has emptied is free again only
# once Storm has ended its worker and Nimbus has seen that.
PLACE_LIMIT_S, LOOK_AGAIN_S = 90.0, 1.0
_SETTLE_LIMIT_S = 60.0
# Of the machine's CPU or of a link's rate: what is used so far bounds the throughput.
FULL_FRAC = 0.9


@dataclass(frozen=True, slots=True)
class Pair:
    """Figures of placements A and B, taken one right after the other."""

    a: Figures
    b: Figures


class NotPlacedError(LabError):
    """Executors could not be brought where they should be."""


def place(operator: Operator, goal: SlotOf, wait: Callable[[float], object] = time.sleep) -> int:
    """Move executors until all are where they should be; the rate stays as it is.

    Parameters
    ----------
    goal : mapping of ExecutorId to Slot
        Of executors that may move; others are left where they are.

    Returns
    -------
    int
        How many moves that took. They have STOPPED; Nimbus may still write them down.

    Raises
    ------
    NotPlacedError
        When executors could not be brought there within `PLACE_LIMIT_S` of the last move, or longer
        on a busy machine.
    """
    made, last_s = 0, time.monotonic()
    while True:
        _settle(operator, wait)
        away = _away(operator, goal)
        paths = [operator.ask(executor, slot) for executor, slot in away.items()]
        ends = [operator.follow(path, lambda now: now.state == "SETTLE") for path in paths]
        moved = sum(end.state in ("SETTLE", "MOVED") for end in ends)
        made += moved
        if not _away(operator, goal):
            return made
        now_s = time.monotonic()
        last_s = now_s if moved else last_s
        if now_s - last_s > patience_s(PLACE_LIMIT_S):
            left = "; ".join(f"{e.executor}: {e.state} {e.reason}" for e in ends if e.ended)
            raise NotPlacedError(
                f"executors are not where they should be {now_s - last_s:.0f} s after the last "
                f"move: {left}"
            )
        wait(LOOK_AGAIN_S)


def _settle(operator: Operator, wait: Callable[[float], object]) -> None:
    began_s = time.monotonic()
    while operator.entries():
        waited_s = time.monotonic() - began_s
        if waited_s > patience_s(_SETTLE_LIMIT_S):
            raise NotPlacedError(f"moves have not settled within {waited_s:.0f} s")
        wait(0.2)


def _away(operator: Operator, goal: SlotOf) -> dict[ExecutorId, Slot]:
    slot_of = operator.placement().slot_of
    return {executor: slot for executor, slot in goal.items() if slot_of[executor] != slot}


def in_turn(go: Callable[[str], object], take: Callable[[], Figures], first: str) -> Iterator[Pair]:
    """Take the figures of placements in the order A B B A A B B A …, for as long as is asked.

    Yields
    ------
    Pair
        Each of two windows with a switch between them; no window is in two pairs.
    """
    here, other = first, "b" if first == "a" else "a"
    while True:
        before = take()
        go(other)
        after = take()
        yield Pair(before, after) if here == "a" else Pair(after, before)
        here, other = other, here


def ratio(pairs: Sequence[Pair], figure: str) -> Ratio | None:
    """Give how many times as much B has as A.

    Returns
    -------
    Ratio or None
        None if the figure is missing in a pair, or 0.
    """
    over = [getattr(pair.b, figure) for pair in pairs]
    under = [getattr(pair.a, figure) for pair in pairs]
    if not pairs or not all(over) or not all(under):
        return None
    return paired_ratio(over, under)


def compared(pairs: Sequence[Pair]) -> dict[str, dict[str, float | None] | None]:
    """Lay both placements side by side.

    Returns
    -------
    dict
        By figure, ready for JSON. The mean of Storm's placement (A) and of the new one (B), the
        ratio and the ends of its interval. None for a figure that is missing in a pair. Only the
        ratio and its interval are None where the figure is 0 in one.
    """
    return {figure: _side_by_side(pairs, figure) for figure in COMPARED}


def _side_by_side(pairs: Sequence[Pair], figure: str) -> dict[str, float | None] | None:
    storms = [getattr(pair.a, figure) for pair in pairs]
    new = [getattr(pair.b, figure) for pair in pairs]
    if not pairs or None in storms or None in new:
        return None
    found = ratio(pairs, figure) or Ratio(math.nan, math.nan, math.nan)
    row = {"storm": fmean(storms), "new": fmean(new), **asdict(found)}
    return {name: round(value, 4) if math.isfinite(value) else None for name, value in row.items()}


def known(pairs: Sequence[Pair]) -> bool:
    """Check whether more pairs would show little more.

    Returns
    -------
    bool
        Whether throughput, CPU and bytes per sentence, as far as they could be taken, are known
        within 3 per cent.
    """
    if len(pairs) < LEAST_PAIRS:
        return False
    found = [ratio(pairs, figure) for figure in _AIMED]
    if found[0] is None:  # in some window nothing was acked
        return False
    return all(one.within(HALF_WIDTH * one.ratio) for one in found if one is not None)


def verdict(pairs: Sequence[Pair]) -> list[str]:
    """Explain whether B pays and why, a sentence a fact."""
    gain = ratio(pairs, "acked_tps")
    if gain is None:
        return ["nothing was acked in some window, so there is nothing to compare"]
    if gain.low > 1:
        said = f"the new placement pays: {gain} times the throughput"
    elif gain.high < 1:
        said = f"the new placement does NOT pay: {gain} times the throughput"
    else:
        said = f"{gain} times the throughput: {len(pairs)} pairs show neither gain nor loss"
    storms, new = [pair.a for pair in pairs], [pair.b for pair in pairs]
    return [said, _cause(pairs, new), _state("Storm's", storms), _state("the new", new)]


def _link_frac(sides: Sequence[Figures]) -> float:
    fracs = [side.fullest_link_frac for side in sides if side.fullest_link_frac is not None]
    return fmean(fracs) if fracs else 0.0


def _busy_frac(sides: Sequence[Figures]) -> float:
    return fmean(side.machine_busy_frac for side in sides)


def _cause(pairs: Sequence[Pair], new: Sequence[Figures]) -> str:
    """Explain how much more a sentence takes of what is full at the new placement."""
    if _link_frac(new) >= FULL_FRAC:
        what, figure = "the direction of a link that is full", "fullest_link_bytes_per_sentence"
        taken = "the bytes"
    elif _busy_frac(new) >= FULL_FRAC:
        what, figure, taken = "the machine's CPU, which is full", "cpu_us_per_sentence", "the time"
    else:
        return "at the new placement neither a link nor the machine's CPU is full"
    found = ratio(pairs, figure)
    return f"of {what}, a sentence takes {found or 'an unknown number of'} times {taken}"


def _state(name: str, sides: Sequence[Figures]) -> str:
    """Explain how full everything is at a placement."""
    last = sides[-1]
    link = f"link ({last.fullest_link}) {_link_frac(sides):.0%}" if last.fullest_link_frac else ""
    return (
        f"at {name} placement: fullest {link or 'link unknown'}, the machine's CPU "
        f"{_busy_frac(sides):.0%}; the fullest worker, {last.fullest_worker}, uses "
        f"{last.worker_cores_max:.2f} cores, the mean one {last.worker_cores_mean:.2f}"
    )
