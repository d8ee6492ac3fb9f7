"""What `gather` does without a target: the best single move, and it never overfills a worker."""

import numpy as np

from controller.core.classify import TIE, Limits
from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.decision import Decision
from controller.core.view.view import View
from controller.policies.candidates import best_gathering, opening_pairs, relieving
from controller.policies.single_move import (
    Choice,
    best_of,
    by_load,
    disjoint,
    how_hot,
    if_above_threshold,
    no_low_worker,
    slack,
)


def greedy(cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Decision:
    """Relieve hot workers, else bring traffic together, never filling a worker above `high`.

    Differs from 004: a target must have room for the executor (the fit test; for traffic a little
    less than all of it, `FILL_FRAC`), the executors that remove most of the excess go first, and a
    hot worker that no move relieves is skipped. `low_frac` is not used. A move to relieve lowers
    the sum of the excess, a move for traffic lowers the weighted cost and raises no excess, so on
    frozen traffic no placement comes back. Where no single move gains, two that belong together may
    (`opening_pairs`). Only executors that talk to each other can gain, so it costs O(pairs with
    traffic), not O(E·W).
    """
    return disjoint(choose_greedy, View.of(cluster, snapshot, limits))


def choose_greedy(view: View) -> Choice | Decision:
    """Choose one move as `greedy` does, or say why there is none.

    A view that was `moved` saves most of the work.
    """
    warnings: list[str] = []
    hot = view.surely_hot
    for hottest in by_load(view, hot) if hot.size else ():
        moves = relieving(view, hottest)
        if moves.executors.size:
            return best_of(view, moves, how_hot(view, hottest), tuple(warnings), emptier_first=True)
        warnings.append(_cannot_relieve(view, hottest))
    found = _for_traffic(view, tuple(warnings))
    if warnings and isinstance(found, Decision):
        return no_low_worker(view, tuple(warnings))
    return found


def _for_traffic(view: View, warnings: tuple[str, ...]) -> Choice | Decision:
    total = view.total_tps
    threshold = view.threshold_tps
    best = best_gathering(view, max(threshold, TIE * total), slack(view))
    if best.executors.size:
        return if_above_threshold(view, best, warnings, emptier_first=True)
    pairs = opening_pairs(view, threshold + TIE * total)
    if not pairs.executors.size:
        if view.limits.explain:
            best = best_gathering(view, -np.inf, slack(view))
        return if_above_threshold(view, best, warnings, emptier_first=True)
    both = f"{pairs.score.max():.4g} {view.limits.gain_unit} by both"
    why = f"opens the way for a second move, {both}"
    return best_of(view, pairs, why, warnings, emptier_first=True)


def _cannot_relieve(view: View, hottest: int) -> str:
    snapshot, high = view.snapshot, view.limits.high_frac
    on_it = np.flatnonzero(snapshot.place == hottest)
    biggest = int(on_it[np.argmax(snapshot.cpu_cores[on_it])])
    need = float(snapshot.cpu_cores[biggest])
    text = f"{how_hot(view, hottest)} and cannot be relieved"
    if need <= high * float(view.cluster.capacity_cores.max()):
        return f"{text}: nothing on it both may move and fits elsewhere"
    name = f"{snapshot.executors[biggest]} ({snapshot.component_of[biggest]})"
    return f"{text}: {name} alone needs {need:.3g} cores, more than {high:g} of any worker"
