"""What a policy may want and the live run does not allow, and why.

All of it concerns one executor or one target worker, so a veto is laid into the snapshot before the
policy looks; a vetoed candidate gives way to the next by itself. What moves of one decision do to
each other is judged move by move, when each is begun.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from controller.config import Excluded
from controller.core.classify import Limits
from controller.core.cluster import Cluster, Ints, LoadSnapshot
from controller.core.decide import Decision, Outcome, Policy, Proposal
from controller.core.view import loops
from controller.core.view.view import Moves, View, rounded
from controller.ports import TopologyView
from migration.events import Sight
from migration.model import Edge, ExecutorId, Slot
from migration.moves import Refusal, RefusalCode

# A refusal by the validator of plans is a veto that the cycle had not seen coming.
_OUTCOME_OF_REFUSAL: Mapping[RefusalCode, Outcome] = {
    RefusalCode.NOT_ACTIVE: Outcome.STAND_BACK,
    RefusalCode.UNKNOWN_EXECUTOR: Outcome.STAND_BACK,
    RefusalCode.UNKNOWN_SLOT: Outcome.NO_WORKER_IN_SLOT,
    RefusalCode.SAME_SLOT: Outcome.STALE_METRICS,
    RefusalCode.MOVE_IN_FLIGHT: Outcome.MOVE_IN_FLIGHT,
    RefusalCode.NO_WORKER_IN_SLOT: Outcome.NO_WORKER_IN_SLOT,
    RefusalCode.NO_HOOKS: Outcome.NO_WORKER_IN_SLOT,
    RefusalCode.NOT_RUNNING: Outcome.MOVE_IN_FLIGHT,
    RefusalCode.PINNED: Outcome.EXCLUDED,
    RefusalCode.LAST_IN_WORKER: Outcome.LAST_IN_WORKER,
}


@dataclass(frozen=True, slots=True)
class Veto:
    """The outcome of a cycle if nothing else is left, and the reason."""

    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Vetoes:
    """Vetoes by the id of the executor that would move and of the worker it would move to."""

    executors: Mapping[str, Veto] = field(default_factory=dict)
    workers: Mapping[str, Veto] = field(default_factory=dict)

    def joined(self, other: "Vetoes") -> "Vetoes":
        """Add vetoes; where both have one, the first stays.

        Parameters
        ----------
        other : Vetoes
            More.

        Returns
        -------
        Vetoes
            All.
        """
        return Vetoes({**other.executors, **self.executors}, {**other.workers, **self.workers})


def standing(cluster: Cluster, snapshot: LoadSnapshot, excluded: Excluded) -> Vetoes:
    """List the vetoes that the snapshot alone gives.

    Parameters
    ----------
    cluster : Cluster
        Places.
    snapshot : LoadSnapshot
        Placement.
    excluded : Excluded
        Components and nodes to leave alone.

    Returns
    -------
    Vetoes
        EXCLUDED, LAST_IN_WORKER and NO_WORKER_IN_SLOT.
    """
    count = np.bincount(snapshot.place, minlength=len(cluster.workers))
    workers = {
        cluster.workers[w]: Veto(
            Outcome.NO_WORKER_IN_SLOT, f"the topology has no worker in slot {cluster.workers[w]}"
        )
        for w in np.flatnonzero(count == 0)
    }
    executors = {
        snapshot.executors[e]: Veto(
            Outcome.LAST_IN_WORKER,
            f"{snapshot.executors[e]} is the last executor of {cluster.workers[snapshot.place[e]]}",
        )
        for e in np.flatnonzero(snapshot.is_alone)
    }
    # What is excluded is so whatever else is in the way.
    return exclusions(cluster, snapshot, excluded).joined(Vetoes(executors, workers))


def exclusions(cluster: Cluster, snapshot: LoadSnapshot, excluded: Excluded) -> Vetoes:
    """List the vetoes that the settings give.

    Parameters
    ----------
    cluster : Cluster
        Places.
    snapshot : LoadSnapshot
        Placement.
    excluded : Excluded
        Components and nodes to leave alone.

    Returns
    -------
    Vetoes
        EXCLUDED.
    """
    executors: dict[str, Veto] = {}
    workers: dict[str, Veto] = {}
    for n, node in enumerate(cluster.nodes):
        if node in excluded.hosts:
            veto = Veto(Outcome.EXCLUDED, f"node {node} is excluded")
            workers |= {cluster.workers[w]: veto for w in np.flatnonzero(cluster.node_of == n)}
            here = np.flatnonzero(cluster.node_of[snapshot.place] == n)
            executors |= {snapshot.executors[e]: veto for e in here}
    if excluded.components:
        for name, component in zip(snapshot.executors, snapshot.component_of, strict=True):
            if component in excluded.components:
                executors[name] = Veto(Outcome.EXCLUDED, f"component {component} is excluded")
    return Vetoes(executors, workers)


def resting(left_s: Mapping[str, float]) -> Vetoes:
    """Let executors that moved lately stay where they are.

    Parameters
    ----------
    left_s : mapping of str to float
        How long each has to stay yet.

    Returns
    -------
    Vetoes
        COOLDOWN.
    """
    return Vetoes(
        {
            name: Veto(Outcome.COOLDOWN, f"{name} moved lately and rests for {s:.0f} s more")
            for name, s in left_s.items()
            if s > 0
        }
    )


def of_the_moment(
    view: TopologyView, cluster: Cluster, resting_s: Mapping[ExecutorId, float]
) -> Vetoes:
    """List the vetoes that only the live run knows.

    Parameters
    ----------
    view : TopologyView
        The plan and the answers of the JVMs.
    cluster : Cluster
        Places.
    resting_s : mapping of ExecutorId to float
        How long executors that moved lately have to stay yet.

    Returns
    -------
    Vetoes
        MOVE_IN_FLIGHT, COOLDOWN and NO_WORKER_IN_SLOT.
    """
    executors = dict(resting({str(e): left_s for e, left_s in resting_s.items()}).executors)
    for entry in view.plan.entries:
        reason = f"{entry.executor} has move {entry.id} in {entry.phase}"
        executors[str(entry.executor)] = Veto(Outcome.MOVE_IN_FLIGHT, reason)
    hooked = {str(slot) for slot in hooked_slots(view)}
    workers = {
        name: Veto(Outcome.NO_WORKER_IN_SLOT, f"no worker with the hooks runs in slot {name}")
        for name in cluster.workers
        if name not in hooked
    }
    return Vetoes(executors, workers)


def hooked_slots(view: TopologyView) -> list[Slot]:
    """List the topology's workers that, like their supervisors, have the hooks.

    Parameters
    ----------
    view : TopologyView
        The answers of the JVMs.

    Returns
    -------
    list of Slot
        Sorted.
    """
    sight = Sight.of(view.publication, view.plan.cluster, view.acks)
    return [slot for slot in sight.live_slots() if sight.supervisor(slot) is not None]


def pinned_executors(view: TopologyView) -> dict[ExecutorId, str]:
    """Say why executors must stay; the worker that has the object knows best.

    Parameters
    ----------
    view : TopologyView
        The publication and the answers of the JVMs.

    Returns
    -------
    dict of ExecutorId to str
        Reasons.
    """
    kind = {component.id: component.kind for component in view.publication.components}
    hooked = set(hooked_slots(view))
    pinned = {}
    for placed in view.publication.executors:
        if kind.get(placed.component, "bolt") != "bolt":
            pinned[placed.executor] = kind[placed.component]
        elif placed.slot not in hooked:
            pinned[placed.executor] = "no hooks in its JVM"
    sight = Sight.of(view.publication, view.plan.cluster, view.acks)
    for ack in sight.workers.values():
        pinned.update({one.executor: one.reason for one in ack.pinned})
    return pinned


def decide(
    policy: Policy, cluster: Cluster, snapshot: LoadSnapshot, limits: Limits, vetoes: Vetoes
) -> Decision:
    """Let a policy decide among what is allowed.

    Parameters
    ----------
    policy : Policy
        The policy.
    cluster : Cluster
        Places.
    snapshot : LoadSnapshot
        Load.
    limits : Limits
        Thresholds.
    vetoes : Vetoes
        What is not allowed.

    Returns
    -------
    Decision
        The policy's own, or the veto on its best move if there is no other.
    """
    closed = _with_reasons(cluster.closed, cluster.workers, vetoes.workers)
    usable = cluster if closed == cluster.closed else replace(cluster, closed=closed)
    index = row_of(snapshot.executors)
    movable = snapshot.holding(
        {index[name]: vetoes.executors[name].reason for name in vetoes.executors if name in index}
    )
    allowed = policy(usable, movable, limits)
    if allowed.moves or (usable is cluster and movable is snapshot):
        return allowed
    if not limits.explain:
        kept = (name for name, veto in vetoes.executors.items() if keeps_worker(veto))
        last = [index[name] for name in kept if name in index]
        if not last or not _may_stand_in(View.of(usable, movable, limits), np.array(last)):
            return allowed
    # A policy with a memory, which a question of "what if" must not touch, has one without.
    unbound: Policy = getattr(policy, "memoryless", policy)
    free = unbound(cluster, snapshot, replace(limits, max_moves=1))
    if not free.moves:
        return free
    wanted = free.moves[0]
    veto = vetoes.executors.get(wanted.executor) or vetoes.workers.get(wanted.target)
    if veto is None:  # only a policy that weighs all places together wants what it could have had
        return allowed
    if keeps_worker(veto):
        instead = _stand_in(View.of(usable, movable, limits), wanted)
        # What brings two forward may take back what a policy with a memory did on its way.
        has_seen = getattr(policy, "has_seen", lambda _: False)
        if instead is not None and not has_seen(instead.applied(cluster, snapshot)):
            return instead
    return Decision(veto.outcome, f"{veto.reason}, but {free.reason}", (), free.warnings)


# Begins a move; says what is in its way, or ends it all by a decision to make no move at all.
Begin = Callable[[Proposal], Refusal | Decision | None]


def decide_and_begin(
    policy: Policy,
    cluster: Cluster,
    snapshot: LoadSnapshot,
    limits: Limits,
    vetoes: Vetoes,
    *,
    begin: Begin,
) -> Decision:
    """Decide, and begin up to the allowed number of moves, one after the other.

    Parameters
    ----------
    policy, cluster, snapshot, limits, vetoes : Policy, Cluster, LoadSnapshot, Limits, Vetoes
        As in `decide`.
    begin : Begin
        Is asked of each move, in the order of the decision.

    Returns
    -------
    Decision
        Its moves are those that were begun. What is refused gives way to the next best.
    """
    begun, told = Decision(Outcome.NOTHING_TO_GAIN, ""), ""
    while True:
        decision = decide(policy, cluster, snapshot, limits, vetoes)
        count = len(begun.moves)
        # What was begun stays, so what does not go on from there has to wait for a cycle.
        if decision.moves[:count] != begun.moves or len(decision.moves) == count:
            return replace(begun, reason=begun.reason + told) if count else decision
        for move in decision.moves[count : limits.max_moves]:
            refused = begin(move)
            if isinstance(refused, Decision):
                return begun if begun.moves else refused
            if refused is not None:
                break
            warnings = tuple(dict.fromkeys((*begun.warnings, *decision.warnings)))
            begun = replace(decision, moves=(*begun.moves, move), warnings=warnings)
        else:
            return begun
        veto = Veto(_OUTCOME_OF_REFUSAL[refused.code], refused.reason)
        vetoes, told = vetoes.joined(Vetoes({move.executor: veto})), f", but {veto.reason}"


def keeping_workers(cluster: Cluster, snapshot: LoadSnapshot) -> Begin:
    """Judge moves as the validator of plans does: of a worker's executors one has to stay.

    Parameters
    ----------
    cluster : Cluster
        Places.
    snapshot : LoadSnapshot
        Who is there now. Who comes by a move of the same decision does not count.

    Returns
    -------
    Begin
        For one decision.
    """
    staying = Counter(cluster.workers[w] for w in snapshot.place)

    def begin(move: Proposal) -> Refusal | None:
        if staying[move.source] == 1:
            reason = f"{move.executor} is the last executor of {move.source}"
            return Refusal(RefusalCode.LAST_IN_WORKER, reason)
        staying[move.source] -= 1
        return None

    return begin


def keeps_worker(veto: Veto) -> bool:
    """Tell whether a veto holds only as long as nobody takes the executor's place.

    Parameters
    ----------
    veto : Veto
        On an executor.

    Returns
    -------
    bool
        Whether the executor is the last of its worker.
    """
    return veto.outcome is Outcome.LAST_IN_WORKER


def _may_stand_in(view: View, last: Ints) -> bool:
    """Tell whether it is worth asking whom a policy would move if all might leave their workers.

    Whoever comes to keep a worker alive makes it no better for the last executor to leave.
    """
    place, count = view.snapshot.place, len(view.cluster.workers)
    workers = place[last]
    leaving, coming = view.score(last, np.arange(count)), _coming(view, workers)
    most = loops.highest(place[leaving.executors], leaving.score, count)
    most += loops.highest(coming.workers, coming.score, count)
    return bool((most[workers] > 2 * view.threshold_tps).any())


def _coming(view: View, workers: Ints) -> Moves:
    """List who may come to keep workers alive."""
    fed = shuffle_fed(view.snapshot.edges, view.snapshot.component_of)
    return view.fitting(view.score(np.flatnonzero(view.movable & ~fed), workers))


def _stand_in(view: View, wanted: Proposal) -> Decision | None:
    """Find who keeps a worker alive so that its last executor can go, if both moves gain."""
    last = view.snapshot.executors.index(wanted.executor)
    worker = view.cluster.workers.index(wanted.source)
    moves = _coming(view, np.array([worker]))
    if not moves.executors.size:
        return None
    best = int(np.argmax(rounded(moves.score)))
    # What goes where is all that a score looks at.
    there = replace(view, snapshot=view.snapshot.moved(int(moves.executors[best]), worker))
    leaving = there.score(np.array([last]), np.array([view.cluster.workers.index(wanted.target)]))
    both = float(moves.score[best] + leaving.score[0])
    if both <= 2 * view.threshold_tps:
        return None
    name = view.snapshot.executors[moves.executors[best]]
    source = view.cluster.workers[view.snapshot.place[moves.executors[best]]]
    reason = (
        f"{name} from {source} to {wanted.source} takes the place of {wanted.executor}, which "
        f"may then go to {wanted.target}: {both:.4g} {view.limits.gain_unit} by both"
    )
    move = Proposal(name, source, wanted.source, float(moves.asc_tps[best]))
    return Decision(Outcome.WOULD_MOVE, reason, (move,))


@lru_cache(maxsize=16)
def shuffle_fed(edges: tuple[Edge, ...], component_of: tuple[str, ...]) -> NDArray[np.bool_]:
    """Mark executors whose traffic follows their place: a shuffle prefers near tasks.

    One that is idle far from its spouts is busy as soon as it stands beside one.

    Parameters
    ----------
    edges : tuple of Edge
        Of the topology.
    component_of : tuple of str, length E
        Component of each executor.

    Returns
    -------
    array of bool, shape (E,)
        Which.
    """
    fed = {edge.target for edge in edges if "shuffle" in edge.grouping.lower()}
    return np.array([component in fed for component in component_of], dtype=np.bool_)


@lru_cache(maxsize=16)
def row_of(names: tuple[str, ...]) -> Mapping[str, int]:
    """Index names.

    Parameters
    ----------
    names : tuple of str
        Each once.

    Returns
    -------
    mapping of str to int
        Where each is.
    """
    return {name: i for i, name in enumerate(names)}


def _with_reasons(
    reasons: tuple[str | None, ...], names: tuple[str, ...], vetoes: Mapping[str, Veto]
) -> tuple[str | None, ...]:
    """Add vetoes where there is no reason yet."""
    if not vetoes:
        return reasons
    added = (vetoes[name].reason if name in vetoes else None for name in names)
    return tuple(reason or more for reason, more in zip(reasons, added, strict=True))
