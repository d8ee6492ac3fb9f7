"""Finds executors whose input does not follow them: a shuffle keeps it where they were.

Storm's shuffles prefer the worker of the sender, and then its node (`LoadAwareShuffleGrouping`, and
`localOrShuffle`). An executor that leaves the senders' worker leaves their tuples to its fellows
there. Where it has none, the tuples go to all executors of its component, most of them far away.
"""

import numpy as np

from controller.core.cluster import LoadSnapshot, Marks, numbered

_SHUFFLES = frozenset({"shuffle", "local_or_shuffle", "none"})
# Of what a worker sends to a component, this share of the way from an even one to all stays there.
_STAYS_FRAC = 0.5
# Of what an executor gets. If it is less, what follows the executor counts.
_FED_FRAC = 0.5


def fed_at_home(snapshot: LoadSnapshot) -> Marks:
    """Mark executors that get most of their input from shuffles that keep to their worker, (E,)."""
    traffic, place = snapshot.traffic, snapshot.place
    names, number = numbered(snapshot.component_of)
    index = {name: n for n, name in enumerate(names)}
    shuffled = np.zeros((len(names), len(names)), bool)
    for edge in snapshot.edges:
        if edge.grouping in _SHUFFLES and edge.source in index and edge.target in index:
            shuffled[index[edge.source], index[edge.target]] = True
    count, workers = len(names), int(place.max(initial=-1)) + 1
    here = np.zeros((workers, count))
    np.add.at(here, (place, number), 1.0)
    fellows = here.sum(axis=0)
    rows = np.flatnonzero(shuffled[number[traffic.source], number[traffic.target]])
    source, target, tps = traffic.source[rows], traffic.target[rows], traffic.tps[rows]
    at_home = place[source] == place[target]
    # By worker and both components: what is sent, and what of it stays there.
    stream = (place[source] * count + number[source]) * count + number[target]
    sent, kept = (
        np.bincount(stream, weights=rates, minlength=workers * count * count)
        for rates in (tps, tps * at_home)
    )
    even_frac = (here / np.maximum(fellows, 1.0))[place[source], number[target]]
    stays_frac = kept[stream] / np.maximum(sent[stream], np.finfo(float).tiny)
    prefers = at_home & (stays_frac > even_frac + _STAYS_FRAC * (1.0 - even_frac))
    prefers &= fellows[number[target]] > here[place[source], number[target]]
    fed = np.bincount(target[prefers], weights=tps[prefers], minlength=len(place))
    got = np.bincount(traffic.target, weights=traffic.tps, minlength=len(place))
    found: Marks = fed > _FED_FRAC * got
    return found
