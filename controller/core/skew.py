"""Names an executor that gets far more of its component's tuples than its fellows: a hot key."""

import numpy as np

from controller.core.cluster import LoadSnapshot

# Of an equal share. What is less may be chance, or the choice of a load-aware grouping.
_TIMES = 1.5


def skew_of(snapshot: LoadSnapshot, executor: int) -> str | None:
    """Give the share of its component's tuples that an executor gets, in words; None if fair."""
    component = snapshot.component_of[executor]
    fellows = [e for e, name in enumerate(snapshot.component_of) if name == component]
    traffic = snapshot.traffic
    got = np.bincount(traffic.target, weights=traffic.tps, minlength=len(snapshot.executors))
    whole = float(got[fellows].sum())
    share = float(got[executor]) / whole if whole else 0.0
    if len(fellows) < 2 or share * len(fellows) < _TIMES:
        return None
    return (
        f"{share:.0%} of the tuples of {component} go to this one of {len(fellows)}: no move mends "
        "that. Spread its keys; more executors help only if more than one key is hot"
    )
