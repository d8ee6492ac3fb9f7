"""Whether a run of moves has paid: blocks before it against blocks after it.

Each number is fitted by least squares: to a step at the run, to a trend, and to the input and its
square. So neither a trend nor the input's own change is taken for the step. Blocks that follow each
other are alike: the error counts that too, by the correlation of neighbours.

A change counts where chance makes it in less than 1 of 10,000 comparisons, one-sided. With seven
numbers and two looks that is 0.14 % of the runs without an effect, where the noise is as assumed.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from controller.core.blocks import BLOCK_S, Block
from controller.core.cluster import Floats
from controller.core.figures import CPU_BY_INPUT, Change, Effect, Verdict, percent
from controller.core.squares import Squares, standard

# What is kept before a run, and measured after it.
MOST_BLOCKS = 30
# What is judged, and of how much at least: a number that is looked at often is worse by chance.
LEAST_BEFORE = 12
LOOKS = (18, MOST_BLOCKS)
# By what factor the input may change: beyond, its square does not fit what follows of it.
INPUT_FACTOR = 1.25
# Where spouts wait for acks as many tuples are in flight, so that time makes up for throughput.
_IN_FLIGHT = 0.8
# By how much more of the tuples fail where a topology has collapsed.
_COLLAPSE_FRAC = 0.1
# Also how many fail at least, and how many at most, as times what is emitted. Where input ends,
# what was pending fails, and next to nothing is emitted.
_COLLAPSE_TUPLES, _COLLAPSE_TIMES = 100.0, 1.5
# What is pending when input ends fails at one message timeout, and so in one block or two.
_COLLAPSE_BLOCKS = 3
# A topology stands where no larger share of what ended before does, and this times as much pends.
# A window keeps its last tuples when input ends, but it had as many before.
_STANDS_FRAC, _STANDS_TIMES = 0.1, 1.25
_NEXT_TO_NOTHING = 1e-12
# As a share: how uncertain a change may be to be shown with a figure.
_MOST_SHOWN = 10.0


@dataclass(frozen=True, slots=True)
class Measure:
    """A number that may change; it is worse where it has the sign `worse`.

    Numbers of a lower rank go first: users feel those of rank 0. A change of less than `least` is
    no reason for anything; it is a share of the mean unless `is_share` is false.
    """

    name: str
    worse: int
    of: Callable[[Block], float | None]
    least: float = 0.05
    is_share: bool = True
    takes_log: bool = True  # compared by its logarithm, where it is never 0
    rank: int = 0


def _by_input(value: float | None, block: Block) -> float | None:
    return None if value is None or not block.input_tps else value / block.input_tps


CPU, CROSSING = CPU_BY_INPUT, "crossing_bytes_per_input"
MEASURES = (
    Measure(CPU, 1, lambda b: _by_input(b.cores, b), rank=1),
    Measure(
        "acked_per_input",
        -1,
        lambda b: _by_input(b.acked_tps, b),
        0.01,
        is_share=False,
        takes_log=False,
    ),
    Measure(
        "failed_per_input",
        1,
        lambda b: _by_input(b.failed_tps, b),
        0.001,
        is_share=False,
        takes_log=False,
    ),
    Measure("latency_p50_ms", 1, lambda b: b.latency_p50_ms),
    Measure("latency_p99_ms", 1, lambda b: b.latency_p99_ms),
    Measure(CROSSING, 1, lambda b: _by_input(b.crossing_bytes_per_s, b), takes_log=False, rank=2),
)
INPUT = Measure("input_tps", -1, lambda b: b.input_tps)


def judged(
    before: Sequence[Block],
    after: Sequence[Block],
    lacks: str = "",
    predicted_cpu: float | None = None,
    *,
    counts_price: bool = True,
) -> Effect:
    """Compare blocks; what users feel decides before CPU, and a change for the worse first.

    `lacks` is why blocks are missing before. `predicted_cpu` is by what factor the CPU was to
    change. As much more of it is the price of the room that moves were made for. Without
    `counts_price` neither CPU nor bytes decide.
    """
    found = {m.name: c for m in (INPUT, *MEASURES) if (c := _change(m, before, after))}
    why = _why_unknown(before, after, found)
    if lacks and len(before) < LEAST_BEFORE:
        why = f"{why}: {lacks}"
    throughput = _throughput(before, after, found)
    if throughput:
        why = None
    if why and (collapse := _stands(before, after) or _collapse(before, after)):
        return Effect(Verdict.WORSE, "; ".join([collapse, *_facts(found)]), changes=found)
    facts = [*([why] if why else throughput), *_facts(found)]
    if why:
        return Effect(Verdict.UNKNOWN, "; ".join(facts), changes=found)
    fills_link = _fills_link(after) and not _fills_link(before)
    if fills_link and CROSSING in found and found[CROSSING].sign > 0:
        facts.append("a link is above load.high")
    counted = {name: _beyond(predicted_cpu, c) if name == CPU else c for name, c in found.items()}
    less = 0 if not throughput else -found[INPUT.name].sign
    ranks = range(3 if counts_price else 1)
    verdict = _verdict(counted, less, ranks, fills_link=fills_link)
    return Effect(verdict, "; ".join(facts), changes=found)


def _beyond(predicted: float | None, change: Change) -> Change:
    """Leave out of a change what was predicted, by a factor, as far as that is more."""
    most = change.before * max(predicted or 1.0, 1.0)
    return structs.replace(change, before=max(change.before, min(change.after, most)))


def _fills_link(blocks: Sequence[Block]) -> bool:
    """Check whether a link is above `load.high` most of the time."""
    return 2 * sum(block.fills_link for block in blocks) > len(blocks)


def _verdict(
    found: dict[str, Change], throughput: int, ranks: Iterable[int], *, fills_link: bool
) -> Verdict:
    """Decide by the changes; `throughput` is 1 where less goes through, -1 where more does."""
    for rank in ranks:
        named = [m for m in MEASURES if m.rank == rank and m.name in found]
        signs = {m.worse * found[m.name].sign for m in named} | {0 if rank else throughput}
        # A worker that is relieved sends more to others: bytes alone take nothing back, unless a
        # link is too full that was not.
        if 1 in signs and (rank < 2 or fills_link):
            return Verdict.WORSE
        if -1 in signs:
            # Nor are fewer bytes a gain where what counts more may have got worse.
            return Verdict.SAME if rank == 2 and _may_be_worse(found) else Verdict.BETTER
    return Verdict.SAME


def _may_be_worse(found: dict[str, Change]) -> bool:
    """Check whether what counts more than bytes is for the worse, be it by chance."""
    more = ((m, found[m.name]) for m in MEASURES if m.rank < 2 and m.name in found)
    return any(m.worse * (one.after - one.before) > one.least for m, one in more)


def _change(
    measure: Measure, before: Sequence[Block], after: Sequence[Block], *, by_input: bool = True
) -> Change | None:
    """Compare one number; None where too few blocks have it, or it is 0 where a share counts."""
    was, now = ([b for b in blocks if measure.of(b) is not None] for blocks in (before, after))
    if len(was) < LEAST_BEFORE or len(now) < LOOKS[0]:
        return None
    rows = [*was, *now]
    values = np.array([measure.of(b) for b in rows], np.float64)
    begins, is_input = len(was), measure.name == INPUT.name
    mean = float(values[:begins].mean())
    takes_log = measure.takes_log
    if takes_log and (values <= 0).any():
        return None if is_input else Change(mean, float(values[begins:].mean()), math.inf)
    time_s = np.array([b.ended_s for b in rows], np.float64)
    inputs = np.array([b.input_tps for b in rows], np.float64)
    takes_input = by_input and not is_input and bool((inputs > 0).all())
    log_input = np.log(inputs) if takes_input else None
    step, error = _step(np.log(values) if takes_log else values, begins, time_s, log_input)
    if not takes_log:
        return Change(mean, mean + step, error, measure.least * (mean if measure.is_share else 1))
    geometric = math.exp(float(np.log(values[:begins]).mean()))
    if is_input:
        return Change(
            geometric,
            math.exp(float(np.log(values[begins:]).mean())),
            geometric * math.expm1(min(error, 50.0)),
            geometric * measure.least,
        )
    return Change(
        geometric,
        geometric * math.exp(min(step, 50.0)),
        geometric * math.expm1(min(error, 50.0)),
        geometric * measure.least,
    )


def _step(
    values: Floats, begins: int, time_s: Floats, log_input: Floats | None
) -> tuple[float, float]:
    """Fit a step where row `begins` is, and give it with the most of it that may be chance."""
    rows = len(values)
    is_after = np.arange(rows) >= begins
    columns = [np.ones(rows), is_after.astype(np.float64), standard(time_s)]
    if log_input is not None and np.ptp(log_input) > _NEXT_TO_NOTHING:
        columns += [standard(log_input), standard(log_input) ** 2]
    # The run is between two rows.
    found = Squares.of(values, np.column_stack(columns), apart=begins)
    return float(found.coefficients[1]), found.most_by_chance(1)


def _throughput(
    before: Sequence[Block], after: Sequence[Block], found: dict[str, Change]
) -> list[str]:
    """Name the throughput where it has changed and spouts wait for acks; nothing where not.

    There as many tuples are in flight before and after, so that time falls as throughput rises.
    Users' own input raises both, or lowers both.
    """
    latency = _change(MEASURES[3], before, after, by_input=False)
    if latency is None or INPUT.name not in found:
        return []
    through = found[INPUT.name]
    if not through.sign or through.sign != -latency.sign:
        return []
    grown, later = (
        math.log(through.after / through.before),
        math.log(latency.after / latency.before),
    )
    if abs(later) < _IN_FLIGHT * abs(grown):
        return []
    return [f"throughput {through.before:,.0f} → {through.after:,.0f} tuples/s"]


def _collapse(before: Sequence[Block], after: Sequence[Block]) -> str | None:
    """Name the fails where many more tuples fail and input falls; None where that is not so.

    Where spouts wait for acks, tuples that fail hold the input back. So the input is no measure.
    """
    if len(before) < LEAST_BEFORE or len(after) < LOOKS[0]:
        return None
    input_tps = float(np.mean([b.input_tps for b in before]))
    fell = np.mean([b.input_tps for b in after]) < input_tps
    was, now = _failed_frac(before), _failed_frac(after)
    if not fell or was is None or now is None or now - was <= _COLLAPSE_FRAC:
        return None
    failed = [b.failed_tps * b.lasts_s for b in after if b.failed_tps]
    most = _COLLAPSE_TIMES * sum(b.input_tps * b.lasts_s for b in after)
    if len(failed) < _COLLAPSE_BLOCKS or not _COLLAPSE_TUPLES <= sum(failed) <= most:
        return None
    return f"{was:.1%} of the tuples failed before the moves, and {now:.1%} fail after them"


def _stands(before: Sequence[Block], after: Sequence[Block]) -> str | None:
    """Name the tuples that spouts wait for where next to none ends; None where that is not so.

    Input goes on, or the spouts have as many pending as they may. Where input just ends, what is
    pending is acked, or stays as it was. So nothing needs to fail, whatever the message timeout is.
    """
    were, are = ([b.pending for b in row if b.pending is not None] for row in (before, after))
    if len(were) < LEAST_BEFORE or len(are) < LOOKS[0]:
        return None
    if any(b.acked_tps is None for b in after) or not all(b.acked_tps for b in before):
        return None
    was, now = (
        float(np.mean([(b.acked_tps or 0.0) + (b.failed_tps or 0.0) for b in row]))
        for row in (before, after)
    )
    least = min(are)
    if least < max(_COLLAPSE_TUPLES, _STANDS_TIMES * max(were)) or now >= _STANDS_FRAC * was:
        return None
    return (
        f"the spouts wait for {least:,.0f} tuples or more, before for {max(were):,.0f} at most, "
        f"and {was:,.0f} → {now:,.0f} tuples/s end"
    )


def _failed_frac(blocks: Sequence[Block]) -> float | None:
    """Compute which share of the tuples that ended at the spouts failed."""
    acked = sum(b.acked_tps for b in blocks if b.acked_tps is not None)
    failed = sum(b.failed_tps for b in blocks if b.failed_tps is not None)
    return failed / (acked + failed) if acked + failed else None


def _why_unknown(
    before: Sequence[Block], after: Sequence[Block], found: dict[str, Change]
) -> str | None:
    for blocks, least, when in ((before, LEAST_BEFORE, "before"), (after, LOOKS[0], "after")):
        if len(blocks) < least:
            measured_s = sum(block.lasts_s for block in blocks)
            needed_s = least * (measured_s / len(blocks) if blocks else BLOCK_S)
            return f"measured for {measured_s:.0f} s {when} the moves, of {needed_s:.0f} s at least"
    if INPUT.name not in found or CPU not in found:
        return "the spouts emit nothing, or not all the time"
    was, now = found[INPUT.name].before, found[INPUT.name].after
    if max(was, now) > INPUT_FACTOR * min(was, now):
        return f"the input has changed from {was:,.0f} to {now:,.0f} tuples/s"
    if "acked_per_input" not in found:
        return "no acks of the spouts are known"
    return None


def _facts(found: dict[str, Change]) -> list[str]:
    """Name what has changed, and what users ask for first."""
    facts = []
    if CPU in found:
        facts.append(f"CPU for each input tuple {_relative(found[CPU])}")
    if "acked_per_input" in found and found["acked_per_input"].sign:
        facts.append(f"acks for each input tuple {_relative(found['acked_per_input'])}")
    if CROSSING in found:
        facts.append(f"bytes between nodes for each input tuple {_relative(found[CROSSING])}")
    for name, shown in (("latency_p50_ms", "p50"), ("latency_p99_ms", "p99")):
        if name in found:
            facts.append(f"{shown} {found[name].before:,.3g} → {found[name].after:,.3g} ms")
    if "failed_per_input" in found:
        failed = found["failed_per_input"]
        share = f"fails {failed.before:.2%} → {max(failed.after, 0.0):.2%} of the input"
        facts.append(share if failed.before or failed.after > 0 else "no fails")
    return facts


def _relative(change: Change) -> str:
    if not change.before:
        return f"{change.before:.3g} → {change.after:.3g}"
    chance_frac = change.error / change.before
    chance = f"± {100 * chance_frac:.1f} %" if chance_frac < _MOST_SHOWN else "± more than 1,000 %"
    return f"{percent(max(change.after, 0.0) / change.before)} {chance}"
