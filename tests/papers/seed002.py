"""Figures of 002: the limit of executors in a worker, and the online scheduler on a small graph."""

from dataclasses import replace

import numpy as np

from controller.core.classify import Limits
from controller.core.cluster import inter_node_tps
from controller.policies.aniello.offline import executor_limit, limit_formula
from controller.policies.aniello.online import online_place
from controller.policies.aniello.options import Aniello
from tests.papers.table import Chart, Line, Paper
from tests.papers.worlds import hand_graph

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
    paper.beyond(
        "abstract",
        "latency of the DEBS 2013 grand challenge",
        "20 to 30 % below the default",
        "its load and the whole evaluation (section 4) are not in our text",
    )
    alphas = [i / 50 for i in range(51)]
    lines = tuple(
        Line(label, alphas, [of(alpha, EXECUTORS, WORKERS) for alpha in alphas])
        for label, of in (("formula", limit_formula), ("as a count", executor_limit))
    )
    title = f"Most executors of a worker, {EXECUTORS} on {WORKERS}"
    paper.charts.append(Chart("002_limit", title, "α", "M(α)", lines))
    return paper


def _limit(paper: Paper, alpha: float) -> None:
    what = f"M({alpha:g}), E = {EXECUTORS}, W = {WORKERS}"
    note = "an example of ours: the text prints the formula alone"
    paper.row("3", what, None, limit_formula(alpha, EXECUTORS, WORKERS), note=note)
    paper.row(
        "3",
        f"{what}, as a limit",
        limit_formula(alpha, EXECUTORS, WORKERS),
        executor_limit(alpha, EXECUTORS, WORKERS),
        differs="a number of executors is whole: rounded up, as in the authors' code",
        note="paper: its formula",
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
    paper.row("3.2, constraint 2", f"{what}: workers used, min(E, W)", wanted, used)
