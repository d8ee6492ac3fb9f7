"""Finds why moves that a policy wants do not begin yet."""

import numpy as np

from controller.core.decision import Decision, Outcome, Veto
from controller.core.policy import Case
from controller.core.reserve import Reserve


def held(case: Case, decision: Decision) -> Veto | None:
    """Return why moves do not begin yet: they only gain, or relieve a CPU that is still cold.

    None where there are none.

    What begins or ends where something is above its limit, or leads to a relief, is no mere gain.
    While code is compiled, CPU is used that is not used two minutes later. Only a queue that grows
    shows then that it lacks.
    """
    if case.waits is None or not decision.moves:
        return None
    reserve, names = Reserve.of(case.cluster, case.snapshot, case.limits), case.cluster.workers
    ends = {end for move in decision.moves for end in (move.source, move.target)}
    if any(names[w] in ends for w in np.flatnonzero(reserve.is_over_beyond_cpu)):
        return None
    if decision.relieves or any(names[w] in ends for w in np.flatnonzero(reserve.fit.is_high)):
        if not case.cold_s or case.snapshot.wanted_times is not None:
            return None
        why = f"no queue grows, and for {case.cold_s:.0f} s more code is compiled, which takes CPU"
        return Veto(Outcome.WATCHING, why)
    return case.waits
