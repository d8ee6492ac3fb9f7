"""Algorithms 1 and 2 of 004 to the letter, for comparison."""

from dataclasses import replace

import numpy as np

from controller.core.cluster import Cluster, Ints, LoadSnapshot
from controller.core.decision import Decision, Outcome
from controller.core.limits import Limits
from controller.core.view import View, rounded
from controller.policies.single_move import (
    Choice,
    best_of,
    by_load,
    disjoint,
    if_above_threshold,
    no_low_worker,
)


def otd(cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Decision:
    """Decide by algorithms 1 and 2 of 004 to the letter, for comparison; the weights are not used.

    It may cycle for ever, because algorithm 2 refills what algorithm 1 emptied; it stops for sure
    if low + the largest executor ≤ high. O(E·N).

    A worker has a share of its node's CPU, as in the paper.
    """
    # The paper knows one level of distance: nodes.
    literal = replace(limits, weight_node=1.0, weight_worker=0.0)
    return disjoint(choose_otd, View.of(cluster.shared_out(), snapshot, literal))


def choose_otd(view: View) -> Choice | Decision:
    """Choose one move as `otd` does, or return why there is none; it wants weights 1 and 0."""
    lowest = _lowest_low_worker_of_each_node(view)
    hot = np.flatnonzero(view.fit.is_high)
    if hot.size and not lowest.size:
        return no_low_worker(view, ())
    if not lowest.size:
        return Decision(Outcome.NOTHING_TO_GAIN, view.fit.why_balanced())
    if not hot.size:
        moves = view.score(np.flatnonzero(view.movable), lowest)
        return if_above_threshold(view, moves, ())
    # Algorithm 1 takes the best however little it gains.
    hottest = by_load(view, hot)[0]
    moves = view.score(view.movable_on(hottest), lowest)
    if not moves.executors.size:
        reason = f"{view.fit.how_high(hottest)}, but nothing on it may move"
        return Decision(Outcome.NOTHING_TO_GAIN, reason)
    return best_of(view, moves, view.fit.how_high(hottest), ())


def _lowest_low_worker_of_each_node(view: View) -> Ints:
    usable = np.flatnonzero(view.fit.is_low & view.cluster.is_open)
    rising = usable[np.argsort(rounded(view.fit.frac[usable]), kind="stable")]
    _, first = np.unique(view.cluster.node_of[rising], return_index=True)
    return np.sort(rising[first])
