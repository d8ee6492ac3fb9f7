"""Figures of 002: the limit of a worker, both schedulers on small graphs, and the triggers."""

from dataclasses import replace

import numpy as np

from controller.core.distance import inter_node_tps
from controller.core.limits import Limits
from controller.policies.aniello import (
    executor_limit,
    limit_formula,
    load_hz,
    offline_place,
    online_place,
)
from controller.policies.component_graph import (
    component_graph,
    executors_of,
    left_out,
    linearised,
)
from controller.policies.options import Aniello
from controller.policies.profiles import Machine, Profiles
from tests.papers.table import Paper
from tests.papers.triggers import Rules, Trigger, begin, look, worthwhile
from tests.papers.worlds import hand_graph
from tests.snapshots import chain, cluster, topology

EXECUTORS, WORKERS = 37, 8
ALPHAS = (0.0, 0.5, 1.0)


def reproduce() -> Paper:
    """Compute all that arithmetic can reach.

    Returns
    -------
    Paper
        M(α), and what the online scheduler does with the hand graph.
    """
    paper = Paper("002")
    for alpha in ALPHAS:
        _limit(paper, alpha)
    for alpha in ALPHAS:
        _online(paper, alpha)
    _offline(paper)
    _cyclic(paper)
    _load(paper)
    _triggers(paper)
    paper.beyond(
        "abstract",
        "latency of the DEBS 2013 grand challenge",
        "20 to 30 % below the default",
        "its load and the whole evaluation (section 4) are not in our text",
    )
    return paper


def _limit(paper: Paper, alpha: float) -> None:
    what = f"M({alpha:g}), E = {EXECUTORS}, W = {WORKERS}"
    note = "an example of ours: the text prints the formula alone"
    paper.row("3", what, None, limit_formula(alpha, EXECUTORS, WORKERS), note=note)
    paper.row(
        "3",
        f"{what}, as a limit",
        None,
        executor_limit(alpha, EXECUTORS, WORKERS),
        note="a number of executors is whole: rounded up, as in the authors' code",
    )


def _online(paper: Paper, alpha: float) -> None:
    """Place the hand graph with nodes that hold 1.7 cores."""
    nodes, snapshot = hand_graph()
    place = online_place(nodes, snapshot, Limits(high_frac=0.85), Aniello(alpha=alpha))
    if isinstance(place, str):
        raise AssertionError(place)
    after, traffic = replace(snapshot, place=place), snapshot.traffic
    between_workers = traffic.tps[place[traffic.source] != place[traffic.target]]
    note = "a graph of ours; of the rules of both phases our text has the first sentence only"
    what = f"hand graph, online, α {alpha:g}"
    for measure, ours in (
        ("inter-node t/s", inter_node_tps(nodes, after)),
        ("inter-worker t/s", float(between_workers.sum())),
    ):
        paper.row("3.2", f"{what}: {measure}", None, ours, note=note)
    used, wanted = len(np.unique(place)), min(len(place), len(nodes.workers))
    exact = f"{'as' if used == wanted else 'not'} many as min(E, W), {wanted}; {note}"
    paper.row("3.2, constraint 2", f"{what}: workers used", None, used, note=exact)


def _offline(paper: Paper) -> None:
    """Place a row of four components by their graph alone."""
    nodes, snapshot = cluster([2, 2]), chain([2, 3, 3, 2])
    note = "a row of ours, 2 to 3 to 3 to 2 executors on 2 × 2 slots; the text has no example"
    for alpha, beta in ((0.0, 0.5), (1.0, 0.5), (1.0, 1.0)):
        place = offline_place(nodes, snapshot, Aniello(alpha=alpha, beta=beta))
        what = f"offline, α {alpha:g}, β {beta:g}: executors of each worker"
        sizes = tuple(np.bincount(place, minlength=4).tolist())
        paper.row("3.1", what, None, sizes, note=note)
        # Whether each executor has one next to it that feeds it.
        fed = sum(
            bool({*place[executors_of(snapshot)[f"po{i}"]]} & {place[e]})
            for i in (1, 2, 3)
            for e in executors_of(snapshot)[f"po{i + 1}"]
        )
        what = f"offline, α {alpha:g}, β {beta:g}: executors beside one that feeds them, of 8"
        paper.row("3.1", what, None, fed, note=note)


def _cyclic(paper: Paper) -> None:
    """Linearise a topology with a cycle; the text takes no cycles into account."""
    edges = [("spout", "a"), ("a", "b"), ("b", "c"), ("c", "a")]
    looped = topology(dict.fromkeys(("spout", "a", "b", "c"), 1), edges)
    order = " ".join(linearised(component_graph(looped)))
    note = "an example of ours; the text leaves cycles out"
    paper.row("3", "offline, spout → a → b → c → a: order of components", None, order, note=note)
    said = left_out(looped).strip()
    what = "offline, spout → a → b → c → a: what the reason of the decision says"
    paper.row("3", what, None, said, note=note)


def _load(paper: Paper) -> None:
    """Compare the text's example of a load in Hz with the shipped measure of it."""
    clocks = Profiles(machines={"n0": Machine(speed_hz=1e9), "n1": Machine(speed_hz=2e9)})
    one = topology({"bolt": 1}, [], cpu_cores=[0.1])
    load_hz_of, speed_hz = load_hz(cluster([1, 1]), one, clocks)
    where, what = "3.2.1", "10 % of a CPU of 1 GHz"
    paper.row(where, f"{what}, MHz", 100, float(load_hz_of[0]) / 1e6)
    on_other = 100 * float(load_hz_of[0] / speed_hz[1])
    paper.row(where, f"{what}: share of one of 2 GHz, %", 5, on_other)


def _triggers(paper: Paper) -> None:
    """Let the triggers look each second at a node that is full from 10 s on."""
    rules = Rules(
        capacity=np.array([1.0]), window_s=np.array([30.0]), period_s=100.0, gain_frac=0.1
    )
    watch, due = begin(rules, 0.0), dict[Trigger, float]()
    for time_s in range(301):
        load = np.array([1.0 if 10 <= time_s < 50 else 0.5])
        watch, trigger = look(rules, watch, float(time_s), load)
        if trigger and trigger not in due:
            due[trigger] = float(time_s)
            watch = begin(rules, float(time_s))
    note = "an example of ours, B 1, X 30 s, P 100 s, a look a second; the text prints no values"
    what = "a node at B from 10 s on: overload for more than X is seen at, s"
    paper.row("3.2.1", what, None, due[Trigger.OVERLOAD], note=note)
    what = "then the first period after that change ends at, s"
    paper.row("3.2.1", what, None, due[Trigger.PERIOD], note=note)
    worth = tuple(float(worthwhile(rules, 100.0, planned)) for planned in (90.0, 89.9))
    what = "whether 90 and 89.9 instead of 100 t/s between nodes are worth it, R 10 %"
    paper.row("3.2.1", what, None, worth, note=note)
