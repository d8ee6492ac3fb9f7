"""Lists the moves a decision may choose from, and what each of them gains."""

import numpy as np

from controller.core.classify import TOLERANCE_CORES
from controller.core.view import kernels
from controller.core.view.view import Moves, View

# Of the executors that relieve a hot worker (nearly) as much as the best, traffic decides.
RELIEF_SLACK = 0.999
_NONE = Moves(*np.zeros((2, 0), dtype=np.int64), *np.zeros((2, 0)))


def relieving(view: View, hot: int) -> Moves:
    """List the moves off a hot worker that fit and remove most of its excess; perhaps none."""
    everywhere = np.arange(len(view.cluster.workers))
    moves = view.fitting(view.score(view.movable_on(hot), everywhere), fill=1.0)
    excess_cores = -view.classes.room_cores[hot]
    relief = np.minimum(view.snapshot.cpu_cores[moves.executors], excess_cores)
    best = relief.max(initial=0.0)
    return moves.only((relief > TOLERANCE_CORES) & (relief >= RELIEF_SLACK * best))


def best_gathering(view: View, above: float, slack: float) -> Moves:
    """List the best moves that fit and bring an executor to one it talks to.

    The best must score more than `above`; what is at most `slack` below it ties with it. `slack` is
    not less than what scores are rounded to. There are none if nothing scores more than `above`.
    """
    bound = view.bounds[0]
    first = int(bound.argmax()) if len(bound) else -1
    if first < 0 or not bound[first] > above:
        return _NONE
    return Moves(*kernels.best(view.world, bound, first, above, slack))


def opening_pairs(view: View, threshold_tps: float) -> Moves:
    """List first moves that gain little or nothing, but open the way for a second that does.

    Asked where no move by itself gains more than the threshold; two have to gain twice as much. The
    score of a first move is the gain of both.

    Two halves that each keep their own spout, split and counts are stable under single moves though
    they exchange half of all tuples. A pair is two executors that talk to each other and go to the
    same worker, the best one of either. Once the first is there, the second is the best single move
    and gains more than was lost, so this brings no placement back either.
    """
    found = kernels.open_pairs(view.world, view.bounds, 2 * threshold_tps)
    rows = np.array(found, dtype=np.float64).reshape(-1, 4)
    ends = rows[:, :2].astype(np.int64)
    return Moves(ends[:, 0], ends[:, 1], rows[:, 2], rows[:, 3])
