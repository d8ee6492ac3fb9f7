"""Picks the one best move of a cycle, or says why there is none.

A policy reads the vetoes from the snapshot (`pinned` executors) and the cluster (`closed` workers)
and never looks at a clock, so live run, file and simulation get the same answer.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from controller.core.classify import TIE, Limits
from controller.core.cluster import Cluster, Ints, LoadSnapshot, Traffic
from controller.core.moves import best_gathering, opening_pairs, relieving
from controller.core.view.pairs import Pairs
from controller.core.view.view import Moves, View, rounded


class Outcome(StrEnum):
    """How a cycle ends: in exactly one of these."""

    MOVED = "MOVED"
    WOULD_MOVE = "WOULD_MOVE"
    NOTHING_TO_GAIN = "NOTHING_TO_GAIN"
    BELOW_THRESHOLD = "BELOW_THRESHOLD"
    COOLDOWN = "COOLDOWN"
    EXCLUDED = "EXCLUDED"
    STALE_METRICS = "STALE_METRICS"
    STAND_BACK = "STAND_BACK"
    PAUSED = "PAUSED"
    NOT_LEADER = "NOT_LEADER"
    MOVE_IN_FLIGHT = "MOVE_IN_FLIGHT"
    NO_LOW_WORKER = "NO_LOW_WORKER"
    LAST_IN_WORKER = "LAST_IN_WORKER"
    NO_WORKER_IN_SLOT = "NO_WORKER_IN_SLOT"


@dataclass(frozen=True, slots=True)
class Veto:
    """The outcome of a cycle if nothing else is left, and the reason."""

    outcome: Outcome
    reason: str

    @property
    def keeps_worker(self) -> bool:
        """Whether it holds only as long as no other executor comes to the worker."""
        return self.outcome is Outcome.LAST_IN_WORKER


@dataclass(frozen=True, slots=True)
class Proposal:
    """A move that a policy wants.

    Attributes
    ----------
    executor, source, target : str
        Ids of the executor and of the two workers.
    asc_tps : float
        By how much traffic inside nodes grows, unweighted, whatever the policy maximises.
    """

    executor: str
    source: str
    target: str
    asc_tps: float

    def as_row(self) -> dict[str, str | float]:
        """Put it into the stable output format.

        Returns
        -------
        dict
            Ready for JSON.
        """
        return {
            "executor": self.executor,
            "from": self.source,
            "to": self.target,
            "asc": self.asc_tps,
        }


@dataclass(frozen=True, slots=True)
class Decision:
    """What a policy wants, and why.

    Attributes
    ----------
    outcome : Outcome
        WOULD_MOVE exactly if there are moves.
    reason : str
        One line that names the numbers.
    moves : tuple of Proposal
        Moves, best first.
    warnings : tuple of str
        What placement cannot repair.
    """

    outcome: Outcome
    reason: str
    moves: tuple[Proposal, ...] = ()
    warnings: tuple[str, ...] = ()

    def applied(self, cluster: Cluster, snapshot: LoadSnapshot) -> LoadSnapshot:
        """Make the moves.

        Parameters
        ----------
        cluster : Cluster
            Places.
        snapshot : LoadSnapshot
            What was decided about.

        Returns
        -------
        LoadSnapshot
            The same load on the placement after them.
        """
        for move in self.moves:
            executor = snapshot.executors.index(move.executor)
            snapshot = snapshot.moved(executor, cluster.workers.index(move.target))
        return snapshot


Policy = Callable[[Cluster, LoadSnapshot, Limits], Decision]


@dataclass(frozen=True, slots=True)
class Choice:
    """One move by its indices, and why.

    Attributes
    ----------
    executor, worker : int
        What moves where.
    asc_tps : float
        As in `Proposal`.
    reason : str
        One line.
    warnings : tuple of str
        What placement cannot repair.
    """

    executor: int
    worker: int
    asc_tps: float
    reason: str
    warnings: tuple[str, ...]


Chooser = Callable[[View], Choice | Decision]


def otd(cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Decision:
    """Decide by algorithms 1 and 2 of 004 to the letter, for comparison.

    Parameters
    ----------
    cluster : Cluster
        Places.
    snapshot : LoadSnapshot
        Load and traffic.
    limits : Limits
        Thresholds; the weights are not used.

    Returns
    -------
    Decision
        At most `max_moves` moves.

    Notes
    -----
    It may cycle for ever, because algorithm 2 refills what algorithm 1 emptied; it stops for sure
    if low + the largest executor ≤ high. O(E·N).
    """
    # The paper knows one level of distance: nodes.
    literal = replace(limits, weight_node=1.0, weight_worker=0.0)
    return disjoint(choose_otd, View.of(cluster, snapshot, literal))


def disjoint(choose: Chooser, view: View) -> Decision:
    """Choose up to `max_moves` moves that do not touch each other.

    Parameters
    ----------
    choose : callable
        Chooses one move.
    view : View
        The world.

    Returns
    -------
    Decision
        The moves in the order of choice, or why there is none.

    Notes
    -----
    Each move is chosen on the placement after those before it. No executor moves twice, and each
    pair of nodes is used once: measured gains are of the placement before all of them, and two
    moves between the same nodes are the ones whose gains depend on each other most.
    """
    chosen: list[Choice] = []
    moves: list[Proposal] = []
    while len(chosen) < view.limits.max_moves:
        found = choose(view)
        if isinstance(found, Decision):
            if not chosen:
                return found
            break
        chosen.append(found)
        moves.append(_proposal(view, found))
        if len(chosen) < view.limits.max_moves:
            view = view.without(found.executor, found.worker).moved(found.executor, found.worker)
    reason = "; then ".join(choice.reason for choice in chosen)
    warnings = dict.fromkeys(text for choice in chosen for text in choice.warnings)
    return Decision(Outcome.WOULD_MOVE, reason, tuple(moves), tuple(warnings))


def proposals(
    cluster: Cluster, snapshot: LoadSnapshot, steps: Iterable[tuple[int, int]]
) -> tuple[Proposal, ...]:
    """Judge each of some moves where the ones before it have put the others.

    Parameters
    ----------
    cluster : Cluster
        Places.
    snapshot : LoadSnapshot
        Placement before all of them, and traffic.
    steps : iterable of (executor, worker)
        No executor twice.

    Returns
    -------
    tuple of Proposal
        In the same order.
    """
    pairs = Pairs.of(snapshot.traffic, len(snapshot.executors))
    node, workers, moves = cluster.node_of[snapshot.place], cluster.workers, []
    for executor, worker in steps:
        to = int(cluster.node_of[worker])
        asc_tps = pairs.asc_tps(snapshot.traffic.tps, node, executor, to)
        node[executor] = to
        source = workers[snapshot.place[executor]]
        moves.append(Proposal(snapshot.executors[executor], source, workers[worker], asc_tps))
    return tuple(moves)


def _proposal(view: View, choice: Choice) -> Proposal:
    executors, workers = view.snapshot.executors, view.cluster.workers
    source = workers[view.snapshot.place[choice.executor]]
    return Proposal(executors[choice.executor], source, workers[choice.worker], choice.asc_tps)


def choose_otd(view: View) -> Choice | Decision:
    """Choose one move as `otd` does.

    Parameters
    ----------
    view : View
        The world; its weights should be 1 and 0.

    Returns
    -------
    Choice or Decision
        A decision without moves if there is none.
    """
    limits = view.limits
    lowest = _lowest_low_worker_of_each_node(view)
    hot = np.flatnonzero(view.classes.high)
    if hot.size and not lowest.size:
        return _no_low_worker(view, ())
    if not lowest.size:
        return Decision(
            Outcome.NOTHING_TO_GAIN,
            f"no worker is above {limits.high_frac:g} or below {limits.low_frac:g} of its CPU",
        )
    if not hot.size:
        moves = view.score(np.flatnonzero(view.movable), lowest)
        return _if_above_threshold(view, moves, ())
    # Algorithm 1 takes the best however little it gains.
    hottest = _by_load(view, hot)[0]
    moves = view.score(view.movable_on(hottest), lowest)
    if not moves.executors.size:
        reason = f"{_how_hot(view, hottest)}, but nothing on it may move"
        return Decision(Outcome.NOTHING_TO_GAIN, reason)
    return _best(view, moves, _how_hot(view, hottest), ())


def _lowest_low_worker_of_each_node(view: View) -> Ints:
    usable = np.flatnonzero(view.classes.low & view.cluster.is_open)
    rising = usable[np.argsort(rounded(view.classes.load_frac[usable]), kind="stable")]
    _, first = np.unique(view.cluster.node_of[rising], return_index=True)
    return np.sort(rising[first])


def safe(cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Decision:
    """Relieve hot workers, else bring traffic together, never filling a worker above `high`.

    Parameters
    ----------
    cluster : Cluster
        Places.
    snapshot : LoadSnapshot
        Load and traffic.
    limits : Limits
        Thresholds and weights; `low_frac` is not used.

    Returns
    -------
    Decision
        At most `max_moves` moves.

    Notes
    -----
    Differs from 004: a target must have room for the executor (the fit test; for traffic a little
    less than all of it, `FILL_FRAC`), the executors that remove most of the excess go first, and a
    hot worker that nobody can relieve is skipped. A move to relieve lowers the sum of the excess, a
    move for traffic lowers the weighted cost and raises no excess, so on frozen traffic no
    placement comes back. Where no single move gains, two that belong together may
    (`opening_pairs`). Only who talks to each other can gain, so it costs O(pairs with traffic),
    not O(E·W).
    """
    return disjoint(choose_safe, View.of(cluster, snapshot, limits))


def choose_safe(view: View) -> Choice | Decision:
    """Choose one move as `safe` does.

    Parameters
    ----------
    view : View
        The world; one that was `moved` saves most of the work.

    Returns
    -------
    Choice or Decision
        A decision without moves if there is none.
    """
    warnings: list[str] = []
    hot = np.flatnonzero(view.classes.high)
    for hottest in _by_load(view, hot) if hot.size else ():
        moves = relieving(view, hottest)
        if moves.executors.size:
            return _best(view, moves, _how_hot(view, hottest), tuple(warnings), emptier_first=True)
        warnings.append(_cannot_relieve(view, hottest))
    found = _for_traffic(view, tuple(warnings))
    if warnings and isinstance(found, Decision):
        return _no_low_worker(view, tuple(warnings))
    return found


def _for_traffic(view: View, warnings: tuple[str, ...]) -> Choice | Decision:
    total = view.total_tps
    threshold = view.threshold_tps
    best = best_gathering(view, max(threshold, TIE * total), _slack(view))
    if best.executors.size:
        return _if_above_threshold(view, best, warnings, emptier_first=True)
    pairs = opening_pairs(view, threshold + TIE * total)
    if not pairs.executors.size:
        if view.limits.explain:
            best = best_gathering(view, -np.inf, _slack(view))
        return _if_above_threshold(view, best, warnings, emptier_first=True)
    both = f"{pairs.score.max():.4g} {view.limits.gain_unit} by both"
    why = f"opens the way for a second move, {both}"
    return _best(view, pairs, why, warnings, emptier_first=True)


def _if_above_threshold(
    view: View, moves: Moves, warnings: tuple[str, ...], *, emptier_first: bool = False
) -> Choice | Decision:
    total = view.total_tps
    best = float(moves.score.max(initial=-np.inf))
    threshold = view.threshold_tps
    gain = f"{best:.4g} {view.limits.gain_unit}"
    # Rounding noise around zero is no gain.
    if best <= TIE * total:
        tail = f", the best by {gain}" if moves.score.size else ""
        reason = _no_way(view) or f"no move that fits brings traffic together{tail}"
        return Decision(Outcome.NOTHING_TO_GAIN, reason, (), warnings)
    if best <= threshold:
        reason = f"the best move gains {gain}, not more than the threshold {threshold:.4g}"
        return Decision(Outcome.BELOW_THRESHOLD, reason, (), warnings)
    why = f"a gain of {gain} is above the threshold {threshold:.4g}"
    return _best(view, moves, why, warnings, emptier_first=emptier_first)


def _no_way(view: View) -> str | None:
    """Say why nothing could gain whatever the load, if it is so."""
    cluster, pinned = view.cluster, view.snapshot.pinned
    if not view.movable.any():
        return f"no executor may move, {_reasons(pinned, 'pinned')}"
    if len(cluster.workers) == 1:
        return f"there is only one worker, {cluster.workers[0]}, and nowhere to move to"
    if not cluster.is_open.any():
        return f"nothing may move to any worker, {_reasons(cluster.closed, 'closed')}"
    if not view.total_tps:
        return "there is no traffic to bring together"
    one = cluster.node_of[0]
    if (cluster.node_of == one).all() and not view.limits.weight_worker:
        return f"all workers are on one node, {cluster.nodes[one]}: no traffic leaves it"
    return None


def _reasons(reasons: tuple[str | None, ...], what: str) -> str:
    named = ", ".join(dict.fromkeys(reason for reason in reasons if reason))
    return f"all {len(reasons)} are {what}: {named}" if reasons else "there is none"


def _best(
    view: View, moves: Moves, why: str, warnings: tuple[str, ...], *, emptier_first: bool = False
) -> Choice:
    """Take the best score; ties go to the emptier target if asked for, then to the first ids."""
    tied = np.flatnonzero(moves.score >= moves.score.max() - _slack(view))
    load = rounded(view.classes.load_frac[moves.workers[tied]]) * emptier_first
    pick = tied[np.lexsort((moves.workers[tied], moves.executors[tied], load))[0]]
    executor, target = int(moves.executors[pick]), int(moves.workers[pick])
    asc_tps, snapshot, workers = float(moves.asc_tps[pick]), view.snapshot, view.cluster.workers
    reason = (
        f"{why}: {snapshot.executors[executor]} ({snapshot.component_of[executor]}, "
        f"{snapshot.cpu_cores[executor]:.3g} cores) from {workers[snapshot.place[executor]]} to "
        f"{workers[target]}, {asc_tps:+.4g} t/s inside nodes"
    )
    return Choice(executor, target, asc_tps, reason, warnings)


def _slack(view: View) -> float:
    return TIE * max(view.total_tps, 1.0)


def _how_hot(view: View, worker: int) -> str:
    load, high = view.classes.load_frac[worker], view.limits.high_frac
    return f"{view.cluster.workers[worker]} at {load:.3g} of its CPU is above {high:g}"


def _cannot_relieve(view: View, hottest: int) -> str:
    snapshot, high = view.snapshot, view.limits.high_frac
    on_it = np.flatnonzero(snapshot.place == hottest)
    biggest = int(on_it[np.argmax(snapshot.cpu_cores[on_it])])
    need = float(snapshot.cpu_cores[biggest])
    text = f"{_how_hot(view, hottest)} and cannot be relieved"
    if need <= high * float(view.cluster.capacity_cores.max()):
        return f"{text}: nothing on it both may move and fits elsewhere"
    name = f"{snapshot.executors[biggest]} ({snapshot.component_of[biggest]})"
    return f"{text}: {name} alone needs {need:.3g} cores, more than {high:g} of any worker"


def _no_low_worker(view: View, warnings: tuple[str, ...]) -> Decision:
    high = np.flatnonzero(view.classes.high)
    missing = float(-view.classes.room_cores[high].sum())
    reason = (
        f"resources are missing: {', '.join(view.cluster.workers[w] for w in high)} above "
        f"{view.limits.high_frac:g} of the CPU by {missing:.3g} cores in all, and no worker can "
        "take any of it"
    )
    return Decision(Outcome.NO_LOW_WORKER, reason, (), warnings)


def _by_load(view: View, workers: Ints) -> list[int]:
    """Order workers by falling load, ties by id."""
    falling = np.argsort(-rounded(view.classes.load_frac[workers]), kind="stable")
    return [int(worker) for worker in workers[falling]]


def prepare() -> None:
    """Compile what decisions are made of, so that the first one does not wait for it.

    Takes some seconds once for each installation, and again after an update.
    """
    cluster = Cluster.build("ab", [("a:1", "a", 1.0), ("b:1", "b", 1.0), ("b:2", "b", 1.0)])
    traffic = Traffic.build(np.array([0, 1]), np.array([2, 2]), np.array([1.0, 2.0]))
    snapshot = LoadSnapshot(
        topology="",
        time_s=0.0,
        components=(),
        edges=(),
        executors=("1-1", "2-2", "3-3"),
        component_of=("", "", ""),
        place=np.array([0, 1, 2]),
        cpu_cores=np.full(3, 0.1),
        queue=np.zeros(3),
        pinned=(None,) * 3,
        traffic=traffic,
    )
    for rules in (Limits(max_moves=2), Limits(gain_tps=np.inf)):
        for policy in (safe, otd):
            policy(cluster, snapshot, rules)
