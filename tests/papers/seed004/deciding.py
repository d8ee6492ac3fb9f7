"""Figures of 004 that need no run: small graphs, the bound of WordCount, the printed per cents."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from uuid import UUID

import numpy as np

from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.distance import inter_node_frac, inter_node_tps
from controller.core.headroom import headroom
from controller.core.limits import Limits
from controller.core.moved import applied
from controller.core.pairs import Pairs
from controller.core.policy import Rule
from controller.policies.greedy import greedy
from controller.policies.otd import otd
from deploy.sim.remembering import gather
from kvstore.envelope import pack
from migration.model import Base, Entry, ExecutorId, LocalPlan, Phase, Plan, Slot
from migration.wire import encode
from tests.papers.bound import between_nodes, word_count_ratio
from tests.papers.problem import PlacementProblem, cheapest
from tests.papers.table import Paper
from tests.papers.worlds import hand_graph, ping_pong, saddle
from tests.snapshots import cluster, topology

OURS = "an example of ours, worked by hand"
BOUND = "a bound of ours; the paper prints none"
# 004 knows one level of distance.
NODES_ONLY = Limits(weight_node=1.0, weight_worker=0.0, gain_frac=0.0)
MOST_STEPS = 200
HIGH_FRAC = 0.85
# Nodes, workers a node, utilisation of all.
CLUSTERS = ((2, 4, 0.5), (2, 4, 0.65), (4, 2, 0.3), (8, 2, 0.3), (16, 2, 0.3))
RANDOM_WORLDS = 100


def compare(paper: Paper) -> None:
    """Add what arithmetic alone gives."""
    _hand_graph(paper)
    _saddle(paper)
    _ping_pong(paper)
    _termination(paper)
    _bounds(paper)
    _headroom(paper)
    _local_plan(paper)
    _per_cents(paper)


def _walk(
    policy: Rule, places: Cluster, start: LoadSnapshot, limits: Limits
) -> Iterator[LoadSnapshot]:
    """Give the start, and the placement after each decision, until nothing moves."""
    now = start
    yield now
    for _ in range(MOST_STEPS):
        decision = policy(places, now, limits)
        if not decision.moves:
            return
        now = applied(decision.moves, places, now)
        yield now


def _ascs(places: Cluster, snapshot: LoadSnapshot) -> tuple[float, ...]:
    """Compute every executor's ASC to the other of two nodes."""
    node, tps = places.node_of[snapshot.place], snapshot.traffic.tps
    pairs = Pairs.of(snapshot.traffic, len(node))
    return tuple(pairs.asc_tps(tps, node, e, int(1 - node[e])) for e in range(len(node)))


def _best_tps(places: Cluster, snapshot: LoadSnapshot, node_cores: float) -> float:
    """Find the least traffic between nodes that hold so much each."""
    full = np.full(len(places.nodes), node_cores)
    nodes = between_nodes(PlacementProblem.of(places, snapshot, NODES_ONLY))
    nodes = replace(nodes, place_cores=full, node_cores=full)
    best = cheapest(nodes)
    return float("inf") if best is None else nodes.cost_tps(best)


def _hand_graph(paper: Paper) -> None:
    places, snapshot = hand_graph()
    ours, what = "4.1, equation 5", "hand graph"
    paper.row(ours, f"{what}: all t/s", None, snapshot.traffic.total_tps, note=OURS)
    ascs = _ascs(places, snapshot)
    paper.row(ours, f"{what}: ASC of each executor to the other node", None, ascs, note=OURS)
    path = list(_walk(otd, places, snapshot, replace(NODES_ONLY, high_frac=0.9, low_frac=0.85)))
    cuts = tuple(inter_node_tps(places, one) for one in path)
    paper.row("4.3", f"{what}: inter-node t/s, literal OTD move by move", None, cuts, note=OURS)
    moved = tuple(
        float(np.flatnonzero(one.place != after.place)[0]) for one, after in pairwise(path)
    )
    paper.row("4.3", f"{what}: executors that literal OTD moves", None, moved, note=OURS)
    for cores in (0.6, 0.8, 1.2):
        best = _best_tps(places, snapshot, cores)
        text = f"{what}: least inter-node t/s, nodes of {cores} cores, exhaustive search"
        paper.row("4.1", text, None, best, note=OURS)


def _saddle(paper: Paper) -> None:
    places, snapshot = saddle()
    limits, what = replace(NODES_ONLY, high_frac=0.8), "saddle"
    text = f"{what}: ASC of each executor to the other node"
    paper.row("4.1, equation 5", text, None, _ascs(places, snapshot), note=OURS)
    stuck = list(_walk(otd, places, snapshot, limits))
    paper.row("4.3", f"{what}: moves of literal OTD", None, len(stuck) - 1, note=OURS)
    ratio = inter_node_frac(places, stuck[-1])
    paper.row("4.3", f"{what}: inter-node ratio where literal OTD stops", None, ratio, note=OURS)
    best = _best_tps(places, snapshot, 0.8)
    text = f"{what}: least inter-node t/s, nodes of 0.8 cores, exhaustive search"
    paper.row("4.1", text, None, best, note=OURS)
    *_, last = _walk(gather(), places, snapshot, limits)
    found = inter_node_tps(places, last)
    paper.row("4.1", f"{what}: inter-node t/s where target stops", None, found, note=OURS)


def _ping_pong(paper: Paper) -> None:
    places, snapshot = ping_pong()
    limits, what = replace(NODES_ONLY, high_frac=0.85, low_frac=0.7), "ping-pong"
    path = [one.place.tolist() for one in _walk(otd, places, snapshot, limits)]
    back = path.index(path[0], 1)
    text = f"{what}: moves after which literal OTD is back at the start"
    paper.row("4.3", text, None, back, note=OURS)
    text = f"{what}: moves of literal OTD in {MOST_STEPS} cycles"
    paper.row("4.3", text, None, len(path) - 1, note=f"{OURS}; it never stops")
    path_greedy = list(_walk(greedy, places, snapshot, limits))
    paper.row("4.3", f"{what}: moves of gather", None, len(path_greedy) - 1, note=OURS)
    cut = inter_node_tps(places, path_greedy[-1])
    text = f"{what}: inter-node t/s where gather stops, without a target"
    paper.row("4.3", text, None, cut, note=OURS)


def _termination(paper: Paper) -> None:
    """Count, over random small worlds, how often a policy comes back to a placement."""
    random = np.random.default_rng(4)
    revisits = {"otd": 0, "gather": 0}
    for _ in range(RANDOM_WORLDS):
        places, snapshot = _random_world(random)
        low = 0.9 - float(snapshot.cpu_cores.max())
        limits = replace(NODES_ONLY, high_frac=0.9, low_frac=low)
        for name, policy in (("otd", otd), ("gather", greedy)):
            path = [one.place.tobytes() for one in _walk(policy, places, snapshot, limits)]
            revisits[name] += len(set(path)) < len(path)
    what = f"revisits in {RANDOM_WORLDS} random worlds, low + largest executor = high"
    proved = "a theorem of ours, tried; the paper says nothing of termination"
    paper.row("4.3", f"{what}: literal OTD", None, revisits["otd"], note=proved)
    paper.row("4.3", f"{what}: gather", None, revisits["gather"], note=proved)


def _random_world(random: np.random.Generator) -> tuple[Cluster, LoadSnapshot]:
    nodes, size = int(random.integers(2, 4)), int(random.integers(3, 9))
    pairs = [(a, b) for a in range(size) for b in range(size) if a != b and random.random() < 0.4]
    snapshot = topology(
        {"bolt": size},
        [],
        place=random.integers(0, 2 * nodes, size).tolist(),
        cpu_cores=random.uniform(0.05, 0.4, size).tolist(),
        talk=[(a, b, float(random.integers(1, 20))) for a, b in pairs],
    )
    return cluster([2] * nodes), snapshot


def _ratio(nodes: int, workers: int, utilisation: float) -> float:
    load = utilisation * nodes * workers
    return word_count_ratio([HIGH_FRAC * workers] * nodes, load)


def _bounds(paper: Paper) -> None:
    for nodes, workers, used in CLUSTERS:
        what = f"WordCount, {nodes}×{workers}, {used:.0%} of the CPU in use: least inter-node ratio"
        paper.row("5.3", what, None, _ratio(nodes, workers, used), note=BOUND)
    steps = [i / 100 for i in range(1, round(HIGH_FRAC * 100) + 1)]
    most = max(used for used in steps if _ratio(2, 4, used) < 0.06)
    paper.row(
        "5.3.2",
        "most of the CPU of 2×4 that may be in use for an inter-node ratio below 6 %",
        None,
        most,
        note="the load is not printed; below 6 % needs that nearly all fits one node",
    )


def _headroom(paper: Paper) -> None:
    places, snapshot = hand_graph()
    # A tuple of one byte: then bytes are tuples, and of two nodes all goes from one to the other.
    sizes = np.ones(len(snapshot.traffic.tps))
    snapshot = replace(snapshot, traffic=replace(snapshot.traffic, size_bytes=sizes))
    for link_tps in (None, 20.0):
        known = None if link_tps is None else np.full((2, len(places.nodes)), link_tps)
        left = headroom(replace(places, link_bytes_s=known), snapshot)
        link = f", links of {link_tps:g} t/s" if link_tps else ""
        what = f"hand graph{link}: T, bound by {left.binds} of {left.where}"
        paper.row("4.1, equation 3", what, None, left.factor or 0.0, note=OURS)


def _local_plan(paper: Paper) -> None:
    """Measure the local plan of one move, with ids as long as Storm makes them."""
    source, target = (Slot(f"{UUID(int=n)}-127.0.0.{n}", 6700) for n in (1, 2))
    base = Base(source, 1_700_000_000)
    move = Entry("m1", ExecutorId(7, 7), source, target, Phase.SWITCH, base)
    lineage = str(UUID(int=3))
    plan = LocalPlan(lineage, (Plan(lineage, 1, 1, "wordcount-1-1700000000", (move,)),))
    size = len(pack(1, encode(plan)))
    paper.row("3.2", "local plan of one move, bytes", "< 512", size, holds=size < 512)


def _per_cents(paper: Paper) -> None:
    """Compute the printed per cents from the printed figures."""
    for where, what, printed, ours in (
        ("5.2.1", "Storm* below Storm at ≥ 60 %: 155 and 279 s, %", 44, 1 - 155 / 279),
        ("5.2.1", "N-Storm below Storm at ≥ 60 %: 20 and 279 s, %", 93, 1 - 20 / 279),
        ("5.2.1", "N-Storm below Storm* at ≥ 60 %: 20 and 155 s, %", 87, 1 - 20 / 155),
        ("5.2.1", "throughput of N-Storm over Storm from 41 % and 25 %, %", 75, 1.41 * 1.25 - 1),
        ("5.2.3", "lazy kill at M = 16, ≥ 60 %: 84 after 118 s, less by %", 29, 1 - 84 / 118),
        ("5.3.1", "average CPU from 51 % to 77 %, more by %", 51, 77 / 51 - 1),
        ("5.3.2", "inter-node ratio from 50 % to 6 %, less by %", 88, 1 - 6 / 50),
    ):
        note = "the paper's own figures, so this says nothing of ours"
        paper.row(where, f"{what}; printed: {printed}", None, 100 * ours, note=note)
    what = "lazy kill at M = 16, 100 %: 53 s are 31 % less than, s"
    paper.row(
        "5.2.3", what, None, 53 / (1 - 0.31), note="computed; the figure itself is not in the text"
    )
