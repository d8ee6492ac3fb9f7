"""Finds what a policy may want and the live run does not allow, and why.

Each veto concerns one executor or one target worker, so it is written into cluster and snapshot
before the policy looks. A vetoed candidate then gives way to the next.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

import numpy as np

from controller.core.case import TopologyCase
from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.decision import Outcome, Veto, Vetoes, first_of
from controller.core.excluded import Excluded
from controller.core.policy import Case
from migration.model import ExecutorId, Publication


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


class Pace(Protocol):
    """The settings of how long executors stay."""

    @property
    def cooldown_s(self) -> float: ...
    @property
    def min_age_s(self) -> float: ...


def veto_each(
    cases: Sequence[TopologyCase],
    moved_s: Mapping[tuple[str, ExecutorId], float],
    excluded: Excluded,  # with ids of nodes in place of hosts
    pace: Pace,
    *,
    unwanted: Mapping[str, Mapping[str, str]],  # executors that operators want to stay, and why
    busy_nodes: Mapping[str, Veto],
    now_s: float,
    time_s: float,
) -> list[TopologyCase]:
    """List the vetoes of the topologies about which a policy decides.

    They are those of `Allowed`, and what settings, operators, caps and cool-downs hold back.
    `moved_s` has when executors moved, in monotonic seconds as `now_s`; `time_s` are Unix seconds.
    """
    found: list[TopologyCase] = []
    for case in cases:
        made = case.picture if case.stop is None else None
        if made is None:
            found.append(case)
            continue
        left_s = {
            str(executor): at_s + pace.cooldown_s - now_s
            for (of, executor), at_s in moved_s.items()
            if of == case.id
        }
        early = {
            name: Veto(
                Outcome.COOLDOWN, f"Storm started {name} a moment ago, it may move in {s:.0f} s"
            )
            for name, s in young(case.view.publication, pace, time_s).items()
        }
        left = unwanted.get(case.id, {})
        undrained = exclusions(made.cluster, made.snapshot, replace(excluded, drained=frozenset()))
        placed = placement_vetoes(made.cluster, made.snapshot, excluded)
        # Of several the first one stays: what lasts longest. But a drain wants executors to leave:
        # the reason why they stay is what was observed.
        vetoes = first_of(
            Vetoes({e: Veto(Outcome.EXCLUDED, why) for e, why in left.items()}),
            Vetoes(undrained.executors, placed.workers),
            case.restarted,
            case.view.allowed.vetoes,
            placed,
            cooldown(left_s, pace.cooldown_s),
            Vetoes(early),
            _at_nodes(made.cluster, made.snapshot, busy_nodes),
        )
        found.append(replace(case, vetoes=vetoes))
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


def young(publication: Publication, pace: Pace, time_s: float) -> dict[str, float]:
    """Return for how many seconds more executors are too young: Storm has just started them."""
    ends_s = {
        str(placed.executor): placed.start_secs + pace.min_age_s
        for placed in (publication.executors if pace.min_age_s else ())
        if placed.start_secs is not None
    }
    # One that starts later than any could is by a clock that was ahead.
    left_s = {name: end_s - time_s for name, end_s in ends_s.items()}
    return {name: s for name, s in left_s.items() if 0 < s <= 2 * pace.min_age_s}


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
