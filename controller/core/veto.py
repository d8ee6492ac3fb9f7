"""Says what a policy may want and the live run does not allow, and why.

Each veto concerns one executor or one target worker, so it is laid into cluster and snapshot before
the policy looks; a vetoed candidate gives way to the next by itself.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from controller.core.case import TopologyCase
from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.decision import PASSING, Outcome, Veto, Vetoes, first_of
from controller.core.excluded import Excluded
from controller.core.picture import Picture
from controller.core.policy import Case
from migration.model import ExecutorId, Publication
from migration.observation import Observation


def under(case: Case, vetoes: Vetoes) -> Case:
    """Close the workers and hold the executors that vetoes concern."""
    cluster, index = case.cluster, row_of(case.snapshot.executors)
    closed = _with_reasons(cluster.closed, cluster.workers, vetoes.workers)
    held = {index[e]: veto.reason for e, veto in vetoes.executors.items() if e in index}
    return replace(
        case,
        cluster=cluster if closed == cluster.closed else replace(cluster, closed=closed),
        snapshot=case.snapshot.holding(held),
    )


@lru_cache(maxsize=16)
def row_of(names: tuple[str, ...]) -> Mapping[str, int]:
    return {name: i for i, name in enumerate(names)}


def _with_reasons(
    reasons: tuple[str | None, ...], names: tuple[str, ...], vetoes: Mapping[str, Veto]
) -> tuple[str | None, ...]:
    """Add vetoes where there is no reason yet."""
    if not vetoes:
        return reasons
    added = (vetoes[name].reason if name in vetoes else None for name in names)
    return tuple(reason or more for reason, more in zip(reasons, added, strict=True))


def veto_each(
    cases: Sequence[TopologyCase],
    moved_s: Mapping[tuple[str, ExecutorId], float],
    excluded: Excluded,  # with ids of nodes in place of hosts
    *,
    unwanted: Mapping[str, Mapping[str, str]],  # executors that operators want to stay, and why
    busy_nodes: Mapping[str, Veto],
    cooldown_s: float,
    min_age_s: float,
    now_s: float,
    time_s: float,
) -> list[TopologyCase]:
    """List the vetoes of the topologies about which a policy decides.

    They are MOVE_IN_FLIGHT, STAND_BACK, COOLDOWN, CAPPED, EXCLUDED, LAST_IN_WORKER and
    NO_WORKER_IN_SLOT. `moved_s` has when executors moved, in monotonic seconds as `now_s`; `time_s`
    are Unix seconds.
    """
    found: list[TopologyCase] = []
    for case in cases:
        made = case.picture if case.stop is None else None
        if made is None:
            found.append(case)
            continue
        left_s = {
            str(executor): at_s + cooldown_s - now_s
            for (of, executor), at_s in moved_s.items()
            if of == case.id
        }
        early = {
            name: Veto(
                Outcome.COOLDOWN, f"Storm started {name} a moment ago, it may move in {s:.0f} s"
            )
            for name, s in young(case.view.publication, min_age_s, time_s).items()
        }
        left = unwanted.get(case.id, {})
        parts = (
            _of_the_moment(made, left_s, cooldown_s),
            Vetoes(early),
            Vetoes({e: Veto(Outcome.EXCLUDED, why) for e, why in left.items()}),
            placement_vetoes(made.cluster, made.snapshot, excluded),
            _at_nodes(made.cluster, made.snapshot, busy_nodes),
            _last_executors(case.view.observation),
        )
        # What passes hides nothing that lasts.
        vetoes = first_of(*(part.without(PASSING) for part in parts), *parts)
        found.append(replace(case, vetoes=vetoes))
    return found


def _of_the_moment(made: Picture, left_s: Mapping[str, float], cooldown_s: float) -> Vetoes:
    """List the vetoes that a snapshot cannot show."""
    view = made.view
    executors = {**cooldown(left_s, cooldown_s).executors, **_not_running(view.observation)}
    deaf = {
        slot: Veto(Outcome.STAND_BACK, f"the worker at {slot} cannot follow plans: {ack.error}")
        for slot, ack in view.observation.workers.items()
        if ack.error is not None
    }
    for placed in view.publication.executors if deaf else ():
        if placed.slot in deaf:
            executors[str(placed.executor)] = deaf[placed.slot]
    for entry in view.plan.entries:
        reason = f"{entry.executor} has move {entry.id} in {entry.phase}"
        executors[str(entry.executor)] = Veto(Outcome.MOVE_IN_FLIGHT, reason)
    hooked, workers = set(view.observation.hooked), {}
    for slot, w in made.layout.worker.items():
        node = view.publication.node_of.get(slot.supervisor)
        if node is None or slot.port not in node.slots:
            reason = f"no supervisor offers a slot {slot}"
        elif slot not in hooked:
            reason = f"no worker with the hooks runs in slot {slot}"
        else:
            continue
        workers[made.cluster.workers[w]] = Veto(Outcome.NO_WORKER_IN_SLOT, reason)
    workers |= {str(slot): veto for slot, veto in deaf.items()}
    return Vetoes(executors, workers)


def _last_executors(observation: Observation) -> Vetoes:
    """Veto the last executor that stays in a worker, where the worker may not end."""
    executors = {}
    for executor in observation.last:
        reason = f"{executor} is the last executor of {observation.placed[executor].slot}"
        reason += f": {observation.cannot_close}"
        executors[str(executor)] = Veto(Outcome.LAST_IN_WORKER, reason)
    return Vetoes(executors)


def _not_running(observation: Observation) -> dict[str, Veto]:
    """Veto what Storm assigns to a worker that has not got it yet."""
    found = {}
    for executor in observation.not_running:
        slot = observation.placed[executor].slot
        reason = f"the worker at {slot} does not run executor {executor}"
        found[str(executor)] = Veto(Outcome.MOVE_IN_FLIGHT, reason)
    return found


def cooldown(left_s: Mapping[str, float], cooldown_s: float = math.inf) -> Vetoes:
    """Let executors that have moved stay where they are, each for the seconds that are left.

    Only moves that were undone again and again let one rest for longer than `cooldown_s`.
    """
    why = (
        "has moved and rests",
        "could not move several times, so its rest has doubled: it rests",
    )
    return Vetoes(
        {
            name: Veto(Outcome.COOLDOWN, f"{name} {why[s > cooldown_s]} for {s:.0f} s more")
            for name, s in left_s.items()
            if s > 0
        }
    )


def young(publication: Publication, min_age_s: float, time_s: float) -> dict[str, float]:
    """Tell for how many seconds more executors are too young: Storm started them lately."""
    ends_s = {
        str(placed.executor): placed.start_secs + min_age_s
        for placed in (publication.executors if min_age_s else ())
        if placed.start_secs is not None
    }
    return {name: end_s - time_s for name, end_s in ends_s.items() if end_s > time_s}


def placement_vetoes(cluster: Cluster, snapshot: LoadSnapshot, excluded: Excluded) -> Vetoes:
    """List what the snapshot alone vetoes: EXCLUDED and NO_WORKER_IN_SLOT."""
    count = np.bincount(snapshot.place, minlength=len(cluster.workers))
    workers = {
        cluster.workers[w]: Veto(
            Outcome.NO_WORKER_IN_SLOT, f"the topology has no worker in slot {cluster.workers[w]}"
        )
        for w in np.flatnonzero(count == 0)
    }
    # What is excluded is so whatever else is in the way.
    return first_of(exclusions(cluster, snapshot, excluded), Vetoes({}, workers))


def exclusions(cluster: Cluster, snapshot: LoadSnapshot, excluded: Excluded) -> Vetoes:
    """List the vetoes that the settings and operators give."""
    closed = dict.fromkeys(excluded.hosts, "excluded") | dict.fromkeys(excluded.drained, "drained")
    nodes = {n: Veto(Outcome.EXCLUDED, f"node {n} is {why}") for n, why in closed.items()}
    found, executors = _at_nodes(cluster, snapshot, nodes), {}
    if excluded.components:
        for name, component in zip(snapshot.executors, snapshot.component_of, strict=True):
            if component in excluded.components:
                executors[name] = Veto(Outcome.EXCLUDED, f"component {component} is excluded")
    return first_of(Vetoes(executors), found)


def _at_nodes(cluster: Cluster, snapshot: LoadSnapshot, vetoes: Mapping[str, Veto]) -> Vetoes:
    """Let nothing leave or come to some nodes."""
    executors: dict[str, Veto] = {}
    workers: dict[str, Veto] = {}
    for n, node in enumerate(cluster.nodes if vetoes else ()):
        if node in vetoes:
            at = np.flatnonzero(cluster.node_of == n)
            workers |= {cluster.workers[w]: vetoes[node] for w in at}
            here = np.flatnonzero(cluster.node_of[snapshot.place] == n)
            executors |= {snapshot.executors[e]: vetoes[node] for e in here}
    return Vetoes(executors, workers)
