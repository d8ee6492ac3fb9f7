"""Whether a run of moves has paid: blocks before it against blocks after it.

A change counts if it is larger than twice the standard error of the difference of the two means. It
also has to be larger than a hundredth of the mean before.
What grows with the input is divided by it, so that the input's own change is no effect.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from msgspec import Struct, structs

from controller.core.blocks import BLOCK_S, Block

# What is judged, and of how much at least.
MOST_BLOCKS = 30
LEAST_BLOCKS = 6
# By what factor the input may change: latency and the CPU of threads at rest are not linear in it.
INPUT_FACTOR = 1.25
# What changes by less is no reason to keep moves or to take them back.
LEAST_CHANGE = 0.01


class Verdict(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    SAME = "no difference seen"
    UNKNOWN = "not known"


class Change(Struct, frozen=True):
    """The mean before and after, and by how much the two may differ by chance."""

    before: float
    after: float
    error: float  # two standard errors of the difference

    @property
    def sign(self) -> int:
        """1 if it has risen, -1 if it has fallen, 0 if that may be chance or is next to nothing."""
        difference = self.after - self.before
        if abs(difference) <= max(self.error, LEAST_CHANGE * abs(self.before)):
            return 0
        return 1 if difference > 0 else -1


class Effect(Struct, frozen=True):
    """What a run of moves has changed, as far as it is known now."""

    verdict: Verdict
    sentence: str
    moves: tuple[str, ...] = ()  # their ids
    begun_s: float = 0.0  # Unix seconds; so is the next
    ended_s: float | None = None  # None while moves are under way
    is_final: bool = False  # nothing is measured any more
    changes: dict[str, Change] = {}  # by `Measure.name`

    def __str__(self) -> str:
        return f"{self.verdict}: {self.sentence}"

    def cut_to(self, most: int) -> "Effect":
        """Name only the last moves."""
        return structs.replace(self, moves=self.moves[-most:])


@dataclass(frozen=True, slots=True)
class Measure:
    """A number that may change; it is worse where it has the sign `worse`."""

    name: str
    worse: int
    of: Callable[[Block], float | None]


def _by_input(value: float | None, block: Block) -> float | None:
    return None if value is None or not block.input_tps else value / block.input_tps


MEASURES = (
    Measure("cpu_s_per_input", 1, lambda b: _by_input(b.cores, b)),
    Measure("acked_per_input", -1, lambda b: _by_input(b.acked_tps, b)),
    Measure("failed_per_input", 1, lambda b: _by_input(b.failed_tps, b)),
    Measure("latency_p50_ms", 1, lambda b: b.latency_p50_ms),
    Measure("latency_p99_ms", 1, lambda b: b.latency_p99_ms),
)
INPUT = Measure("input_tps", 0, lambda b: b.input_tps)


def judged(before: Sequence[Block], after: Sequence[Block]) -> Effect:
    """Compare blocks; any change for the worse makes the verdict `worse`."""
    found = {m.name: c for m in (INPUT, *MEASURES) if (c := _change(m, before, after))}
    why = _why_unknown(before, after, found)
    if why:
        facts = "; ".join([why, *_facts(found)])
        return Effect(Verdict.UNKNOWN, facts, changes=found)
    signs = {m.worse * found[m.name].sign for m in MEASURES if m.name in found}
    verdict = Verdict.WORSE if 1 in signs else Verdict.BETTER if -1 in signs else Verdict.SAME
    return Effect(verdict, "; ".join(_facts(found)), changes=found)


def _change(measure: Measure, before: Sequence[Block], after: Sequence[Block]) -> Change | None:
    """Compare one number; None where too few blocks have it."""
    rows = [[v for b in blocks if (v := measure.of(b)) is not None] for blocks in (before, after)]
    if min(map(len, rows)) < LEAST_BLOCKS:
        return None
    squared = sum(np.var(row, ddof=1) / len(row) for row in rows)
    return Change(float(np.mean(rows[0])), float(np.mean(rows[1])), 2 * float(squared) ** 0.5)


def _why_unknown(
    before: Sequence[Block], after: Sequence[Block], found: dict[str, Change]
) -> str | None:
    for blocks, when in ((before, "before"), (after, "after")):
        if len(blocks) < LEAST_BLOCKS:
            measured_s, needed_s = len(blocks) * BLOCK_S, LEAST_BLOCKS * BLOCK_S
            return f"measured for {measured_s:.0f} s {when} the moves, of {needed_s:.0f} s at least"
    if "cpu_s_per_input" not in found:
        return "the spouts emit nothing"
    was, now = found[INPUT.name].before, found[INPUT.name].after
    if found[INPUT.name].sign and max(was, now) > INPUT_FACTOR * min(was, now):
        return f"the input has changed from {was:,.0f} to {now:,.0f} tuples/s"
    if "acked_per_input" not in found:
        return "no acks of the spouts are known"
    return None


def _facts(found: dict[str, Change]) -> list[str]:
    """Name what has changed, and what users ask for first."""
    facts = []
    if "cpu_s_per_input" in found:
        facts.append(f"CPU for each input tuple {_relative(found['cpu_s_per_input'])}")
    if "acked_per_input" in found and found["acked_per_input"].sign:
        facts.append(f"acks for each input tuple {_relative(found['acked_per_input'])}")
    for name, shown in (("latency_p50_ms", "p50"), ("latency_p99_ms", "p99")):
        if name in found:
            facts.append(f"{shown} {found[name].before:,.3g} → {found[name].after:,.3g} ms")
    if "failed_per_input" in found:
        failed = found["failed_per_input"]
        share = f"fails {failed.before:.2%} → {failed.after:.2%} of the input"
        facts.append(share if failed.before or failed.after else "no fails")
    return facts


def _relative(change: Change) -> str:
    if not change.before:
        return f"{change.before:.3g} → {change.after:.3g}"
    percent = 100 * (change.after / change.before - 1)
    sign = "−" if percent < 0 else "+"
    return f"{sign}{abs(percent):.1f} % ± {100 * change.error / change.before:.1f} %"
