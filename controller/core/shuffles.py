"""Finds executors whose input does not follow them: a shuffle keeps it where they were.

Storm's shuffles prefer the worker of the sender, and then its node (`LoadAwareShuffleGrouping`, and
`localOrShuffle`). An executor that leaves the senders' worker leaves their tuples to its fellows
there. Where it has none, the tuples go to all executors of its component, most of them far away.
"""

import numpy as np

from controller.core.cluster import LoadSnapshot, Marks, numbered
from controller.core.kept import keeping

_SHUFFLES = frozenset({"shuffle", "local_or_shuffle", "none"})
# Of what a worker sends to a component, this share of the way from an even one to all stays there.
_STAYS_FRAC = 0.5
# Of what an executor gets. If it is less, what follows the executor counts.
_FED_FRAC = 0.5


@keeping
def fed_at_home(snapshot: LoadSnapshot) -> Marks:
    """Mark executors that get most of their input from shuffles that keep to their worker, (E,)."""
    traffic, place = snapshot.traffic, snapshot.place
    names, number = numbered(snapshot.component_of)
    index, count = {name: n for n, name in enumerate(names)}, len(names)
    shuffle = np.full((count, count), -1)
    shuffles = 0
    for edge in snapshot.edges:
        if edge.grouping in _SHUFFLES and edge.source in index and edge.target in index:
            shuffle[index[edge.source], index[edge.target]] = shuffles
            shuffles += 1
    at = shuffle[number[traffic.source], number[traffic.target]]
    rows = np.flatnonzero(at >= 0)
    source, target, tps = traffic.source[rows], traffic.target[rows], traffic.tps[rows]
    here = np.zeros((int(place.max(initial=-1)) + 1, count))
    np.add.at(here, (place, number), 1.0)
    local = here[place[source], number[target]]
    fellows = here.sum(axis=0)[number[target]]
    # By worker and shuffle: what is sent, and what of it stays there.
    stream, at_home = place[source] * max(shuffles, 1) + at[rows], place[source] == place[target]
    sent, kept = np.bincount(stream, tps), np.bincount(stream, tps * at_home)
    even_frac = local / fellows
    stays_frac = kept[stream] / np.maximum(sent[stream], np.finfo(float).tiny)
    keeps = stays_frac > even_frac + _STAYS_FRAC * (1.0 - even_frac)
    fed_by = at_home & keeps & (fellows > local)
    fed = np.bincount(target[fed_by], tps[fed_by], len(place))
    got = np.bincount(traffic.target, traffic.tps, len(place))
    found: Marks = fed > _FED_FRAC * got
    return found
