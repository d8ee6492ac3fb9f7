"""What mode ``auto`` would have gained and risked: today's settings against no moves, by day."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from controller.core.readable import readable
from controller.output import counted
from controller.pipeline.figures import Figures
from controller.tune.choice import LEAST_GAIN_FRAC, Objective, interval_frac
from controller.tune.sure import LEAST_DAYS, SURE_FRAC


class Day(Struct, frozen=True):
    """A day as it would have been; pairs are without moves, and with them."""

    day: int  # since 1970, UTC
    inter_node_frac: tuple[float, float]
    unserved_core_s: tuple[float, float]
    moves: int


class Gained(Struct, frozen=True):
    """What `auto` would have changed for a topology."""

    topology: str
    days: tuple[Day, ...]
    gain_frac: float  # by what share it lowers the cost that `nstorm tune` ranks by
    interval_frac: tuple[float, float] | None  # of that; None with too few days
    worse_days: int  # on which the cost was higher by 1 % or more
    verdict: str


def gained(by_set: Mapping[str, Sequence[Mapping[int, Figures]]]) -> list[Gained]:
    """Compare; of each topology the first set is today's, and the second one makes no moves."""
    return [_gained(name, *sets) for name, sets in sorted(by_set.items())]


def _gained(topology: str, auto: Mapping[int, Figures], idle: Mapping[int, Figures]) -> Gained:
    goal, days = Objective(), sorted(auto)
    before, after = [idle[day] for day in days], [auto[day] for day in days]
    costs = [[goal.cost(one) * one.span_s for one in side] for side in (before, after)]
    whole = sum(costs[0])
    gain = (whole - sum(costs[1])) / whole if whole > 0 else 0.0
    interval = interval_frac(before, after, goal)
    worse = sum(b > a * (1 + LEAST_GAIN_FRAC) for a, b in zip(*costs, strict=True))
    sums = sum(before, Figures()), sum(after, Figures())
    return Gained(
        topology,
        tuple(
            Day(
                day,
                (a.inter_node_frac, b.inter_node_frac),
                (a.unserved_core_s, b.unserved_core_s),
                b.moves,
            )
            for day, a, b in zip(days, before, after, strict=True)
        ),
        gain,
        interval,
        worse,
        _verdict(*sums, _changed(gain, interval), f"{worse} of {counted(len(days), 'day')}"),
    )


def _changed(gain: float, interval: tuple[float, float] | None) -> str:
    if gain >= 0:
        return f"Gained: a cost lower by {_sure(gain, interval)}."
    return f"Lost: a cost higher by {_sure(gain, interval)}."


def _sure(gain: float, interval: tuple[float, float] | None) -> str:
    if interval is None:
        return f"{abs(gain):.1%} (to know how sure that is, {LEAST_DAYS} days are needed)"
    low, high = sorted(interval if gain >= 0 else (-interval[0], -interval[1]))
    return f"{abs(gain):.1%} ({low:.1%} to {high:.1%}, {SURE_FRAC:.0%} confidence)"


def _verdict(before: Figures, after: Figures, changed: str, worse: str) -> str:
    if not after.moves:
        return "auto would have moved nothing."
    return (
        f"{changed} Instead of {before.inter_node_frac:.0%} of the tuples, "
        f"{after.inter_node_frac:.0%} go between nodes. Risked: {counted(after.moves, 'move')}; "
        "each day begins from the recorded placement. "
        f"The cost was higher on {worse}, and {readable(after.unserved_core_s, '.3g')} "
        "core-seconds of demand had no CPU, without moves "
        f"{readable(before.unserved_core_s, '.3g')}."
    )
