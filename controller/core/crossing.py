"""What crosses between nodes, added up in loops: by group of pairs, node and direction."""

import numpy as np

from controller.core.cluster import Floats, Ints
from controller.core.compiled import compiled
from controller.core.pairs import Rows

# Sums in another order differ by less than this share, and less than this much.
ROUNDING = 1e-9


@compiled
def crossing(  # noqa: PLR0917
    source: Ints,
    target: Ints,
    rates: Floats,
    group: Ints,
    groups: int,
    place: Ints,
    node_of: Ints,
    nodes: int,
) -> Floats:
    """Add up what each group of pairs sends from each node and to it, (groups, 2, N).

    A pair counts if its rate is known; a `group` of no length is one of all.
    """
    sent = np.zeros((groups, 2, nodes))
    for k in range(len(source)):
        one, other = node_of[place[source[k]]], node_of[place[target[k]]]
        if one != other and not np.isnan(rates[k]):
            g = group[k] if len(group) else 0
            sent[g, 0, one] += rates[k]
            sent[g, 1, other] += rates[k]
    return sent


@compiled
def is_above(sent: Floats, left: Floats, most: Floats) -> bool:
    """Check whether a group sends more over the fullest direction of a link than its `most`.

    Both as shares of what is `left` there, (2, N). `sent` is as of `crossing`, `most` (groups,).
    """
    for g in range(len(sent)):
        limit = most[g] * (1.0 + ROUNDING) + ROUNDING
        for d in range(2):
            for n in range(sent.shape[2]):
                if sent[g, d, n] > limit * left[d, n]:
                    return True
    return False


@compiled
def moves_above(  # noqa: PLR0917
    sent: Floats,
    rows: Rows,
    source: Ints,
    target: Ints,
    rates: Floats,
    group: Ints,
    place: Ints,
    node_of: Ints,
    executor: int,
    worker: int,
    left: Floats,
    most: Floats,
) -> bool:
    """Check as `is_above` does after a move; `rows` are the pairs of its executor.

    `sent` is what `crossing` gives for the placement before it.
    """
    after = sent.copy()
    for k in rows:
        if np.isnan(rates[k]):
            continue
        g = group[k] if len(group) else 0
        at_source, at_target = place[source[k]], place[target[k]]
        one, other = node_of[at_source], node_of[at_target]
        if one != other:
            after[g, 0, one] -= rates[k]
            after[g, 1, other] -= rates[k]
        one = node_of[worker if source[k] == executor else at_source]
        other = node_of[worker if target[k] == executor else at_target]
        if one != other:
            after[g, 0, one] += rates[k]
            after[g, 1, other] += rates[k]
    return is_above(after, left, most)
