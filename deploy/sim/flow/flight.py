"""Counts the sentences in flight from the tuples that wait, as a spout counts them."""

from dataclasses import dataclass

import numpy as np

from controller.core.cluster import Floats, Ints

# An executor that gets less than this share of a component's tuples has next to none waiting.
LEAST_SHARE = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """Executors equally far from the spouts, R of them in C components."""

    rows: Ints  # (R,)
    flow: Floats  # (R,), tuples for one sentence
    share: Floats  # (C, R), of the component's tuples; 0 in the columns of other components.
    draws: Floats  # (C,), of the component for one sentence: its tuples, or 1 for all of them


def stage(rows: Ints, flow: Floats, component: Ints, *, together: bool) -> Stage:
    """Describe a stage; `together`: all tuples of a sentence go to one executor, as to an acker."""
    flow = np.maximum(flow[rows], LEAST_SHARE)
    here = component[rows] == np.unique(component[rows])[:, None]
    tuples = (flow * here).sum(axis=1)
    draws = np.ones(len(tuples)) if together else tuples
    return Stage(rows, flow, flow * here / tuples[:, None], draws)


def in_flight(stages: list[Stage], waiting: Floats) -> float:
    """Count the sentences of which at least one tuple waits; `waiting` is tuples by executor.

    A sentence is in flight until the last of its tuples is acked, however many are. The queue of an
    executor holds what it got of the last sentences. Each tuple draws its executor by the
    shares, for itself. Between the depths of two queues, sentences are those that have a tuple in
    one of the deeper ones. One that waits at two stages counts twice.
    """
    count = 0.0
    for one in stages:
        depth = waiting[one.rows] / one.flow
        if not depth.any():
            continue
        deepest = (-depth).argsort(kind="stable")
        depth = depth[deepest]
        # Where it is 1, all the sentences are; the logarithm is finite just below.
        deep = np.minimum(one.share[:, deepest].cumsum(axis=1), 1 - 1e-16)
        none_log = np.log1p(-deep) * np.maximum(one.draws, 1.0)[:, None]
        some = -np.expm1(none_log) * np.minimum(one.draws, 1.0)[:, None]
        in_any = some[0] if len(some) == 1 else 1 - (1 - some).prod(axis=0)
        count += float(in_any[-1] * depth[-1] + (in_any[:-1] * (depth[:-1] - depth[1:])).sum())
    # The last digits of a logarithm differ with the processor; a run must not.
    return round(count, 3)
