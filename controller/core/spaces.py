"""What executors keep in the spaces of their worker, such as its heap, and that none overflows.

The report has what is filled for a whole JVM. What of it belongs to an executor is known of its
state alone. So each counts with that, and a share of what else its JVM has above a bare worker, by
the mean of its component. In another worker it takes both with it.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from controller.core.cluster import Cluster, Floats, Ints, Level, LoadSnapshot, Marks, numbered
from controller.core.fit import Fit
from controller.core.kept import keeping
from controller.core.meters import Columns
from controller.core.resources import SPACES, WorkerSpace

ROUNDING_HELD, ROUNDING = 1.0, 1e-9
# The meters of a worker that spaces need.
COLUMNS = tuple(name for space in SPACES for name in (space.held, space.most))
# How often the means of components are made better. More of it would follow the noise.
ROUNDS = 8


@dataclass(frozen=True, eq=False)
class SpaceUse:
    """A space of each worker in today's placement and in others."""

    space: WorkerSpace
    level: Level
    snapshot: LoadSnapshot

    @cached_property
    def held(self) -> Floats:
        """(E,), what each executor keeps; as its component in the mean where not known."""
        snapshot, space = self.snapshot, self.space
        if snapshot.kept is not None and space.name in snapshot.kept:
            return snapshot.kept[space.name]
        state = snapshot.state_bytes if space.has_state else None
        return _kept(self.level.held, snapshot.place, snapshot.component_of, state, space)

    @cached_property
    def growth(self) -> float:
        """The factor by which what is kept may grow until a space is full; infinite where not
        known.

        As equation 3 of 004.
        """
        most = float(self.share_at(self.snapshot.place).max(initial=0.0))
        return 1 / most if most > 0 else math.inf

    def share_at(self, place: Ints) -> Floats:
        """Compute the share of each space that is filled in a placement, (W,); 0 if not known."""
        return np.nan_to_num(self.held_at(place) / self.level.most)

    def may_hold(self, fit: Fit) -> Floats:
        """Compute up to where each space may be filled by a placement, (W,).

        As much room is left as is `wanted`. A space may also be as full as the fullest is now, but
        not above `load.high`. Infinite where not known.
        """
        most = self.level.most
        share = max(self.wanted(fit), min(1 / self.growth, fit.high_share()))
        return np.where(np.isnan(most), np.inf, most * share)

    def wanted(self, fit: Fit) -> float:
        """Compute what of a space may be filled to leave as much room as CPU and links keep.

        Within `headroom.min` and `enough`.
        """
        return 1 / max(min(fit.keeps, self.space.enough), fit.limits.headroom_min)

    def full(self, place: Ints, most: float) -> Ints:
        """List the workers of which a space is above a share in a placement, where it is known."""
        return np.flatnonzero(self.known_at(place) > most + ROUNDING)

    def known_at(self, place: Ints) -> Floats:
        """As `share_at`, but 0 of the JVMs of which nothing is known."""
        return np.where(np.isnan(self.level.held), 0.0, self.share_at(place))

    def left_below(self, place: Ints, most: float) -> Floats:
        """Compute what may come to each worker until its space has a share, (W,).

        Nothing where it is not known how full it is.
        """
        live, limit = self.level
        is_known = ~np.isnan(limit) & (~np.isnan(live) | (self.held_at(place) == 0))
        return np.where(is_known, most * limit - self.held_at(place), -np.inf)

    def takes(self, executors: Ints, workers: Ints, place: Ints, most: float) -> Marks:
        """Mark the executors that fit into a share of the space of the worker of the same row.

        Those that keep nothing fit anywhere, and all do where not known.
        """
        left = np.maximum(self.level.most * most - self.held_at(place), 0.0)
        return ~(self.held[executors] > left[workers])

    def overfilled_at(self, place: Ints, most: float) -> bool:
        """Check whether a placement fills a space above a share, and above what it has now."""
        least = np.maximum(most, self.share_at(self.snapshot.place)) + ROUNDING
        return bool((self.share_at(place) > least).any())

    def left(self, fit: Fit, place: Ints) -> Floats:
        """Compute what each space may still take, (W,); negative where it is too full."""
        return self.may_hold(fit) - self.held_at(place)

    def most_at(self, fit: Fit) -> Floats:
        """Compute up to where a placement may fill each space, (W,), or as much as today's does."""
        today = self.held_at(self.snapshot.place)
        return np.maximum(self.may_hold(fit), today) + ROUNDING_HELD

    def overflows_at(self, fit: Fit, place: Ints) -> bool:
        """Check whether a placement fills a space too much, and more than today's does."""
        return bool((self.held_at(place) > self.most_at(fit)).any())

    def held_at(self, place: Ints) -> Floats:
        """Compute what each space holds in a placement, (W,)."""
        held = np.bincount(place, self.held, len(self.level.most))
        bare = self.space.bare
        return np.where(np.bincount(place, minlength=len(held)) > 0, held + bare, 0.0)


@keeping
def _kept(
    live: Floats,
    place: Ints,
    component_of: tuple[str, ...],
    state: Floats | None,
    space: WorkerSpace,
) -> Floats:
    """Give what executors keep, (E,): their state, and a share of what else lives in their JVM.

    That is shared out by what executors of a component have of it in the mean. The means follow
    from the shares, which begin even. So a component that is where more lives counts with more, and
    where all JVMs are alike the shares stay even. This is the estimate of maximum likelihood by
    Richardson and Lucy, ended early.
    """
    names, component = numbered(component_of)
    own = np.zeros(len(place)) if state is None else np.nan_to_num(state)
    above = np.maximum(live - space.bare, 0.0)
    states = np.bincount(place, own, len(live))
    # States are estimates: those of a JVM keep no more than what lives there, where it is known.
    own = own * np.divide(above, states, out=np.ones(len(live)), where=above < states)[place]
    rest = np.maximum(above - states, 0.0)[place]
    known = ~np.isnan(rest)
    at, of, rest = place[known], component[known], rest[known]
    count = np.bincount(of, minlength=len(names))
    mean, shared = np.ones(len(names)), rest
    for _ in range(ROUNDS):
        of_all = np.bincount(at, mean[of], len(live))
        shared = rest * mean[of] / np.maximum(of_all, np.finfo(float).tiny)[at]
        mean = np.bincount(of, shared, len(names)) / np.maximum(count, 1)
    held = own[known] + shared
    each = np.bincount(of, held, len(names)) / np.maximum(count, 1)
    of_others = np.where(count > 0, each, held.mean() if held.size else 0.0)
    found: Floats = np.fmax(own, of_others[component])
    found[known] = held
    return found


def levels_of(columns: Columns, workers: int) -> dict[str, Level]:
    """Give how full spaces are, by what the meters of W workers show; those not known are left
    out.
    """
    unknown = np.full(workers, np.nan)
    return {
        space.name: Level(columns.get(space.held, unknown), columns[space.most])
        for space in SPACES
        if space.most in columns
    }


def carried(
    levels: Mapping[str, Level], snapshot: LoadSnapshot, place: Ints
) -> Mapping[str, Level]:
    """Give how full spaces are in another placement: executors take along what they keep.

    What is not known of a worker that had executors stays so.
    """
    known = (space for space in SPACES if space.name in levels)
    uses = [SpaceUse(space, levels[space.name], snapshot) for space in known]
    found: dict[str, Level] = {}
    for one in uses:
        live, most = one.level
        is_unknown = np.isnan(live) & (np.bincount(snapshot.place, minlength=len(live)) > 0)
        found[one.space.name] = Level(np.where(is_unknown, np.nan, one.held_at(place)), most)
    return found


def uses_of(cluster: Cluster, snapshot: LoadSnapshot) -> tuple[SpaceUse, ...]:
    """Look at each space of which something is known."""
    known = (space for space in SPACES if space.name in cluster.spaces)
    return tuple(SpaceUse(space, cluster.spaces[space.name], snapshot) for space in known)


def any_full(fit: Fit, snapshot: LoadSnapshot) -> bool:
    """Check whether a space is known to be above `load.high`."""
    uses = uses_of(fit.cluster, snapshot)
    return any(one.full(snapshot.place, fit.high_share()).size for one in uses)


def overfilled(fit: Fit, snapshot: LoadSnapshot, place: Ints) -> str | None:
    """Name a space that a placement fills too much, and more than today's; None without."""
    return overflowing(uses_of(fit.cluster, snapshot), fit, place)


def overflowing(uses: Iterable[SpaceUse], fit: Fit, place: Ints) -> str | None:
    """Name the first of these spaces that it fills so."""
    return next((one.space.shown for one in uses if one.overflows_at(fit, place)), None)
