"""What a policy would gain with a topology, where it would not help, and how sure that is."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct

from controller.config import Config
from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.distance import (
    inter_node_bytes_per_s,
    inter_node_frac,
    node_traffic,
)
from controller.core.fit import Fit
from controller.core.headroom import headroom
from controller.core.pins import UNSEEN
from controller.walk import WalkStep, walk

MOST_STEPS = 100
MOST_LINKS = 400


class Evidence(Struct, frozen=True):
    """Where the figures come from, and how far to rely on them."""

    source: str
    confidence: str
    assumed: tuple[str, ...] = ()


class Staying(Struct, frozen=True):
    """Executors that stay for one reason."""

    reason: str
    executors: int
    components: tuple[str, ...]


class AssessedNode(Struct, frozen=True):
    """The share of a node's CPU that is used, now and then."""

    node: str
    cpu_frac: tuple[float, float]


class AssessedLink(Struct, frozen=True, rename={"source": "from", "target": "to"}):
    """The tuples per second from one node to another, now and then."""

    source: str
    target: str
    tps: tuple[float, float]


class Assessment(Struct, frozen=True):
    """What nstorm would do for a topology; pairs are now, and after all moves."""

    topology: str
    evidence: Evidence
    verdict: str
    executors: int
    may_move: int
    stays: tuple[Staying, ...]
    total_tps: float
    inter_node_frac: tuple[float, float]
    inter_node_bytes_frac: tuple[float, float] | None  # None where a size is not known
    headroom_factor: tuple[float | None, float | None]
    binds: tuple[str, str]  # what is full first if the input grows
    moves: tuple[tuple[str, str, str], ...]  # executor, source, target
    each_step_frac: tuple[float, ...]  # between nodes, from now on
    nodes: tuple[AssessedNode, ...]
    links: tuple[AssessedLink, ...]
    reason: str  # of the last decision
    warnings: tuple[str, ...]


def assess(
    cluster: Cluster, snapshot: LoadSnapshot, config: Config, evidence: Evidence
) -> Assessment:
    """Let the policy move until it wants no more, and compare both ends."""
    walked = list(walk(cluster, snapshot, config, MOST_STEPS))
    ends = snapshot, walked[-1].after
    shares = tuple(inter_node_frac(cluster, one) for one in (snapshot, *_afters(walked)))
    fits = [Fit.of(cluster, one, config.limits) for one in ends]
    by_node = [fit.seen_by(cluster.node_of, len(cluster.nodes))[0] for fit in fits]
    left = [headroom(cluster, one) for one in ends]
    moves = tuple(
        (name, cluster.workers[at], cluster.workers[to])
        for name, at, to in zip(snapshot.executors, *(e.place.tolist() for e in ends), strict=True)
        if at != to
    )
    may_move = int(snapshot.is_movable.sum())
    verdict = _why_not(cluster, snapshot, walked[-1]) or (
        f"It would help by {len(moves)} move{'s' * (len(moves) > 1)}: {shares[0]:.0%} to "
        f"{shares[-1]:.0%} of the tuples would go from node to node."
    )
    return Assessment(
        topology=snapshot.topology,
        evidence=evidence,
        verdict=verdict,
        executors=len(snapshot.executors),
        may_move=may_move,
        stays=_stays(snapshot),
        total_tps=snapshot.traffic.total_tps,
        inter_node_frac=(shares[0], shares[-1]),
        inter_node_bytes_frac=_bytes_frac(cluster, *ends),
        headroom_factor=(left[0].factor, left[1].factor),
        binds=tuple(f"{one.binds} of {one.where}" if one.binds else "" for one in left),  # type: ignore[arg-type]
        moves=moves,
        each_step_frac=shares,
        nodes=tuple(
            AssessedNode(name, (float(by_node[0][n]), float(by_node[1][n])))
            for n, name in enumerate(cluster.nodes)
        ),
        links=_links(cluster, *ends),
        reason=walked[-1].decision.reason,
        warnings=walked[-1].decision.warnings,
    )


def _afters(walked: Sequence[WalkStep]) -> list[LoadSnapshot]:
    return [step.after for step in walked if step.decision.moves]


def _why_not(cluster: Cluster, snapshot: LoadSnapshot, last: WalkStep) -> str | None:
    """Return why nstorm would not help; None if it would."""
    if unseen := sum(why in UNSEEN for why in snapshot.pinned):
        return (
            f"It cannot be judged yet: {unseen} of {len(snapshot.executors)} executors are in JVMs "
            "that have reported no hooks, so nothing is measured there. `nstorm doctor` has why."
        )
    if not snapshot.traffic.total_tps:
        return "It cannot be judged: no tuple was counted."
    if len(set(cluster.node_of[snapshot.place].tolist())) < 2:
        return "It would not help: all executors are on one node, so no tuple crosses."
    if not snapshot.is_movable.any():
        return "It would not help: every executor stays."
    if (last.after.place == snapshot.place).all():
        return f"It would not help: {last.decision.reason}."
    return None


def _stays(snapshot: LoadSnapshot) -> tuple[Staying, ...]:
    found: dict[str, list[str]] = defaultdict(list)
    for component, reason in zip(snapshot.component_of, snapshot.pinned, strict=True):
        if reason is not None:
            found[reason].append(component)
    return tuple(
        Staying(reason, len(each), tuple(dict.fromkeys(each)))
        for reason, each in sorted(found.items(), key=lambda row: -len(row[1]))
    )


def _bytes_frac(cluster: Cluster, *ends: LoadSnapshot) -> tuple[float, float] | None:
    sizes = ends[0].traffic.size_bytes
    if sizes is None or np.isnan(sizes).any():
        return None
    whole = float((sizes * ends[0].traffic.tps).sum()) or 1.0
    now, then = ((inter_node_bytes_per_s(cluster, end) or 0.0) / whole for end in ends)
    return now, then


def _links(cluster: Cluster, *ends: LoadSnapshot) -> tuple[AssessedLink, ...]:
    by_pair = [
        {(one.source, one.target): one.tps for one in node_traffic(cluster, end, MOST_LINKS)}
        for end in ends
    ]
    return tuple(
        AssessedLink(
            cluster.nodes[source],
            cluster.nodes[target],
            (by_pair[0].get((source, target), 0.0), by_pair[1].get((source, target), 0.0)),
        )
        for source, target in sorted({*by_pair[0], *by_pair[1]})
    )


def lines(one: Assessment) -> list[str]:
    """Write an assessment for people, the answer first."""
    now, then = one.inter_node_frac
    found = [
        f"{one.topology}: {one.verdict}",
        f"  {one.may_move} of {one.executors} executors may move",
        f"  between nodes: {now:.0%} to {then:.0%} of {one.total_tps:,.0f} tuples/s",
    ]
    if one.inter_node_bytes_frac is not None:
        now, then = one.inter_node_bytes_frac
        found.append(f"  between nodes: {now:.0%} to {then:.0%} of the bytes")
    before, after = one.headroom_factor
    if before is not None and after is not None:
        found.append(
            f"  head-room: {before:.3g} to {after:.3g} times the input, then {one.binds[1]} is "
            "full. Throughput gains only where that binds"
        )
    for row in one.stays:
        names = ", ".join(row.components)
        found.append(f"  {row.executors} stay ({row.reason}): {names}")
    worse = sum(after > before for before, after in pairwise(one.each_step_frac))
    if worse:
        found.append(f"  on the way {worse} of {len(one.each_step_frac) - 1} steps are worse")
    found += [f"  warning: {warning}" for warning in one.warnings]
    found.append(f"  confidence: {one.evidence.confidence}")
    return found + [f"  assumed: {line}" for line in one.evidence.assumed]
