"""Ranks parameter sets, finds those that no other beats in everything, and suggests one or none."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from controller.core.distance import TrafficWeights, weighed
from controller.core.limits import Limits
from controller.core.readable import readable
from controller.errors import TuneError
from controller.pipeline.figures import FeltDay, Figures
from controller.tune import felt
from controller.tune.space import ParameterSet
from controller.tune.sure import LEAST_DAYS, SURE_FRAC, student

# Median of a move on a saturated real cluster, docs/measured.md: it costs at most that long.
MOVE_S = 1.0
# Of today's cost, on the load held back: less is noise, and no reason to touch a running system.
LEAST_GAIN_FRAC = 0.01
# Fewer ticks are no test.
LEAST_TICKS = 10
KEEP = "Keep what you have"
# What users feel with a set that is suggested: it is known to be no worse, or not known.
_FELT = {
    "": "Users felt no worse on the days on which executors stood as the set has them.",
    None: "The log does not show whether users would feel it in latency or fails.",
}
# Of sets this close to the best, the one that changes fewest keys is taken.
AS_GOOD_FRAC = 0.005
_PLAIN = Limits()


@dataclass(frozen=True, slots=True)
class SetOutcome:
    """How a parameter set did."""

    parameters: ParameterSet
    chosen_by: Figures  # with the load it is chosen by
    held_back: Figures  # with the load that came later
    by_day: tuple[Figures, ...] = ()  # the same by day; of all sets the same days
    felt: tuple[FeltDay, ...] = ()  # by users, on the days on which that is known


@dataclass(frozen=True, slots=True)
class Objective:
    """The weights of a cost, in seconds in which all tuples cross between nodes."""

    traffic: float = 1.0  # such a second
    overload: float = 1.0  # a core-second that is needed where there is none left
    moves: float = MOVE_S

    @classmethod
    def parse(cls, text: str) -> "Objective":
        """Read ``traffic=1,overload=5``; a name alone counts 1, what is not named as by default.

        ``balanced`` is the default. Raises `TuneError` for another name, or no number.
        """
        if text == "balanced":
            return cls()
        weights: dict[str, float] = {name: getattr(cls(), name) for name in cls.__slots__}
        for part in text.split(","):
            name, _, number = part.strip().partition("=")
            try:
                weight = float(number or 1)
            except ValueError:
                weight = -1.0
            if name not in weights or not 0 <= weight < 1e9:
                raise TuneError(
                    f"--objective {part.strip()}: must be balanced, or traffic, overload or moves, "
                    "each with =WEIGHT of at least 0"
                )
            weights[name] = weight
        if not any(weights.values()):
            raise TuneError(f"--objective {text}: one weight must be above 0")
        return cls(**weights)

    @property
    def shown(self) -> str:
        """The meaning of a cost, in one sentence."""
        return (
            f"cost: {self.traffic:g} if all tuples crossed between nodes; a core-second "
            f"that is needed and not there counts {self.overload:g} s of that, a move "
            f"{self.moves:g} s"
        )

    def cost(self, figures: Figures) -> float:
        """Compute what a run costs, with overload and moves added.

        1 for a run in which all tuples cross between nodes, with the default weights of traffic
        between nodes and between workers.
        """
        if not figures.span_s:
            return 0.0
        lasting = self.overload * figures.unserved_core_s + self.moves * figures.moves
        return self.traffic * crossing_frac(figures) + lasting / figures.span_s


def crossing_frac(figures: Figures) -> float:
    """Compute the share of traffic that is not local, from 0 to 1; 0 without tuples.

    Traffic between nodes and between workers is weighted with the default `weight.node` and
    `weight.worker` for every set, whatever it decides by.
    """
    weighted = weighed(TrafficWeights.of(_PLAIN), figures.inter_node, figures.inter_worker)
    return weighted / figures.total if figures.total else 0.0


def ranked(outcomes: Sequence[SetOutcome], objective: Objective) -> list[SetOutcome]:
    """Order by cost, on the load to choose by: best first.

    The first outcome is of today's settings. Sets that fill a link more than these, or that users
    felt worse with, come after all others. Of equals the one with fewer changes comes first, then
    as they came.
    """
    today = outcomes[0]

    def key(outcome: SetOutcome) -> tuple[bool, float, int]:
        # Digits that only the order of a sum makes decide nothing.
        cost = round(objective.cost(outcome.chosen_by), 9)
        return _comes_last(outcome, today), cost, len(outcome.parameters.changes)

    return sorted(outcomes, key=key)


def _comes_last(outcome: SetOutcome, today: SetOutcome) -> bool:
    """Check whether a set does harm that the cost does not have, and so is never suggested.

    What users felt is of all days, also those held back: it only takes sets out.
    """
    return fills_more(outcome.chosen_by, today.chosen_by) or bool(felt_worse(outcome, today))


def felt_worse(outcome: SetOutcome, today: SetOutcome) -> str | None:
    """Name what users felt worse than with today's settings; empty if nothing, None if unknown."""
    return felt.worse(outcome.felt, today.felt)


def fills_more(after: Figures, before: Figures) -> bool:
    """Check whether the fullest direction of a link carries more, by more than noise.

    What a byte on a link costs depends on what the link can carry, which the log does not have. So
    it has no part in the cost.
    """
    now, then = after.fullest_bytes_s, before.fullest_bytes_s
    return now is not None and then is not None and now > (1 + LEAST_GAIN_FRAC) * then


def front(outcomes: Sequence[SetOutcome]) -> list[SetOutcome]:
    """Find the sets that no other beats in traffic, moves and unserved demand together.

    One for each such combination of the three, the first of equals; by falling share of traffic
    that crosses. O(S log S + S·F) for S sets of which F are on the front.
    """
    found: dict[tuple[float, int, float], SetOutcome] = {}
    for outcome in outcomes:
        found.setdefault(_three(outcome), outcome)
    best: list[tuple[float, int, float]] = []
    # By the first of the three, so that a later one can never beat an earlier one.
    for three in sorted(found):
        if not any(all(b <= t for b, t in zip(one, three, strict=True)) for one in best):
            best.append(three)
    return [found[three] for three in reversed(best)]


def _three(outcome: SetOutcome) -> tuple[float, int, float]:
    figures = outcome.chosen_by
    return round(crossing_frac(figures), 9), figures.moves, round(figures.unserved_core_s, 6)


@dataclass(frozen=True, slots=True)
class Suggestion:
    today: SetOutcome  # the settings in force
    best: SetOutcome  # did best with the load to choose by
    gain_frac: float  # by what share the best lowers today's cost there
    held_back_gain_frac: float  # the same with the load held back
    # Between which shares that is, with `SURE_FRAC`; None where there are too few days.
    interval_frac: tuple[float, float] | None
    helps: bool  # whether the best should replace today's
    reason: str


def suggest(outcomes: Sequence[SetOutcome], objective: Objective) -> Suggestion:
    """Choose a set and test it with the load held back.

    Only the one best set is tested: picking among many by the load held back would be fitting. It
    replaces today's settings only where the interval of the gain leaves out zero.
    """
    today, rank = outcomes[0], ranked(outcomes, objective)
    least = objective.cost(rank[0].chosen_by)
    now = objective.cost(today.chosen_by)
    most = least + AS_GOOD_FRAC * least
    close = [o for o in rank if objective.cost(o.chosen_by) <= most]
    close = [o for o in close if not _comes_last(o, today)]
    best = min(close, key=lambda outcome: len(outcome.parameters.changes))
    costs = objective.cost(today.held_back), objective.cost(best.held_back)
    gain_frac, held_frac = _gain_frac(now, objective.cost(best.chosen_by)), _gain_frac(*costs)
    interval = interval_frac(today.by_day, best.by_day, objective)
    unserved = best.held_back.unserved_core_s, today.held_back.unserved_core_s
    days = len(best.by_day)
    helps = False
    if not best.parameters.changes:
        reason = f"{KEEP}: nothing that was tried does better than today's settings."
    elif best.held_back.ticks < LEAST_TICKS:
        reason = (
            f"{KEEP}: the log is too short, {best.held_back.ticks} ticks are held back for a "
            f"test and {LEAST_TICKS} are needed."
        )
    elif held_frac < LEAST_GAIN_FRAC:
        reason = (
            f"{KEEP}: the best set lowers the cost by {gain_frac:.1%} with the load it was "
            f"chosen by. The load held back gives {held_frac:.1%}; less than "
            f"{LEAST_GAIN_FRAC:.0%} is noise."
        )
    elif unserved[0] > (1 + LEAST_GAIN_FRAC) * unserved[1]:
        reason = (
            f"{KEEP}: with the load held back the best set leaves {readable(unserved[0], '.3g')} "
            f"core-seconds of demand unserved, and today's {readable(unserved[1], '.3g')}."
        )
    elif fills_more(best.held_back, today.held_back):
        more, less = best.held_back.fullest_bytes_s, today.held_back.fullest_bytes_s
        reason = (
            f"{KEEP}: with the load held back the fullest direction of a link carries "
            f"{readable(more or 0, '.3g')} bytes/s with the best set, and "
            f"{readable(less or 0, '.3g')} with today's."
        )
    elif interval is None:
        reason = (
            f"{KEEP}: the best set lowers the cost by {gain_frac:.1%} with the load it was chosen "
            f"by and by {held_frac:.1%} with the load held back. To know how sure that is, "
            f"{LEAST_DAYS} days must be held back, and there are {days}."
        )
    elif interval[0] <= 0:
        reason = (
            f"{KEEP}: the gain of the best set may be chance. With {days} days held back, the "
            f"cost falls by {interval[0]:.1%} to {interval[1]:.1%} ({SURE_FRAC:.0%} confidence)."
        )
    else:
        helps = True
        reason = (
            f"Change {', '.join(key for key, _ in best.parameters.changes)}: the cost falls by "
            f"{gain_frac:.1%} with the load it was chosen by and by {held_frac:.1%} with the load "
            f"held back. Its {days} days show {interval[0]:.1%} to {interval[1]:.1%} "
            f"({SURE_FRAC:.0%} confidence). {_FELT[felt_worse(best, today)]}"
        )
    return Suggestion(today, best, gain_frac, held_frac, interval, helps, reason)


def interval_frac(
    before: Sequence[Figures], after: Sequence[Figures], objective: Objective
) -> tuple[float, float] | None:
    """Find between which shares of a cost it is lowered; None with too few days.

    Both are by day, of the same days. Student's interval of the gains of days: what comes within a
    day depends on itself.
    """
    days = len(before)
    if days < LEAST_DAYS:
        return None
    pairs = zip(before, after, strict=True)
    gains = np.array(
        [objective.cost(a) * a.span_s - objective.cost(b) * b.span_s for a, b in pairs]
    )
    cost = sum(objective.cost(one) * one.span_s for one in before)
    if cost <= 0:
        return 0.0, 0.0
    far = student(days - 1) * float(gains.std(ddof=1)) * days**0.5
    middle = float(gains.sum())
    return (middle - far) / cost, (middle + far) / cost


def _gain_frac(before: float, after: float) -> float:
    return (before - after) / before if before > 0 else 0.0
