"""Compares what users felt with a set and with today's settings, where the log has both.

Nobody has measured what they would feel with executors elsewhere. So a day counts for a set where
they stood as it has them. Those days are compared with the others that today's settings have so: a
day of both is the same for both. The input and a trend are taken out, as between neighbours in
`nstorm report`. What else differs between these days cannot be kept apart from the set.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from controller.core.effect import INPUT_FACTOR
from controller.core.squares import Squares, standard
from controller.pipeline.figures import FeltDay
from controller.tune.sure import LEAST_DAYS, student
from migration.model import topology_name


class _Measure(NamedTuple):
    """A number that users feel; less of a difference is no reason for anything, as in `effect`."""

    of: Callable[[FeltDay], float | None]
    least: float
    takes_log: bool
    shown: Callable[[float, float], str]


_MEASURES = (
    _Measure(lambda one: one.failed_frac, 0.001, False, "fails {:.2%} → {:.2%}".format),
    _Measure(
        lambda one: one.latency_p99_ms, math.log(1.05), True, "p99 {:,.3g} → {:,.3g} ms".format
    ),
)


@cache  # each place that ranks or shows a set asks
def worse(found: tuple[FeltDay, ...], today: tuple[FeltDay, ...]) -> str | None:
    """Name what users felt worse with a set than with today's settings; empty if nothing.

    None where that is not known: in no topology are there `LEAST_DAYS` of either kind, with much
    the same input.
    """
    pairs = [
        (name, *_apart(name, found, today)) for name in sorted({one.topology for one in found})
    ]
    known = [(name, own, others) for name, own, others in pairs if _are_alike(own, others)]
    tests = len(known) * len(_MEASURES)
    texts = [
        f"{topology_name(name)}: {text}"
        for name, own, others in known
        for measure in _MEASURES
        if (text := _worse(measure, own, others, tests))
    ]
    return "; ".join(texts) if known else None


def _apart(
    topology: str, found: Sequence[FeltDay], today: Sequence[FeltDay]
) -> tuple[list[FeltDay], list[FeltDay]]:
    own = [one for one in found if one.topology == topology]
    days = {(one.day, one.held_back) for one in own}
    others = [one for one in today if one.topology == topology]
    return own, [one for one in others if (one.day, one.held_back) not in days]


def _are_alike(own: Sequence[FeltDay], others: Sequence[FeltDay]) -> bool:
    if min(len(own), len(others)) < LEAST_DAYS:
        return False
    one, other = (
        float(np.mean([math.log(day.input_tps) for day in days])) for days in (own, others)
    )
    return abs(one - other) <= math.log(INPUT_FACTOR)


def _worse(measure: _Measure, own: Sequence[FeltDay], others: Sequence[FeltDay], tests: int) -> str:
    """Fit a step between both kinds of days; empty if it may be chance."""
    rows = sorted(
        (one.day, value, one.input_tps, days is own)
        for days in (own, others)
        for one in days
        if (value := measure.of(one)) is not None
    )
    day, values, input_tps, is_own = np.array(rows, np.float64).reshape(-1, 4).T
    if min(is_own.sum(), (1 - is_own).sum()) < LEAST_DAYS:
        return ""
    fitted = np.log(values) if measure.takes_log else values
    columns = [np.ones(len(day)), is_own, standard(day), standard(np.log(input_tps))]
    found = Squares.of(fitted, np.column_stack(columns))
    step = float(found.coefficients[1])
    error = math.sqrt(found.variance * max(float(found.inverse[1, 1]), 0.0))
    if step <= measure.least or step <= student(len(day) - len(columns), tests) * error:
        return ""
    return measure.shown(values[is_own == 0].mean(), values[is_own == 1].mean())
