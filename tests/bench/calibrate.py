"""Measures what a tuple costs by how far it goes: what the simulator is told of a cluster.

A WordCount runs saturated at several placements, in turn. What a sentence costs at the pure ones,
where tuples go one way alone, is taken apart by least squares: what it costs anywhere, and what
each tuple adds that leaves its worker or its node, and each byte that goes through a socket. What
that predicts of the mixed ones is compared with what they cost.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any

import numpy as np
from scipy.optimize import nnls  # type: ignore[import-untyped]

from controller.core.cluster import Cluster, LoadSnapshot
from deploy.lab import LabError
from deploy.lab.cluster import HOOKS_JAR, Lab, plan_lab, sweep
from deploy.lab.figures import Figures, Meter, Tuples
from deploy.lab.ledger import SATURATE
from deploy.lab.operator import Operator, beside
from deploy.lab.pairing import FED_FRAC, TOPOLOGY_CONF, SlotOf, place
from kvstore.zookeeper import Session
from migration.model import ExecutorId, Slot
from tests.bench.gain.run import CONF, FALL_S, RISE_S, WARM_UP_S

TOPOLOGY = "calibrate"
SECONDS = 10
LINK = "1gbit"
SIZES = (0, 1000)
# The shuffle that looks at load keeps sentences on their node, whatever the placement.
CONF_OF_ALL = {**TOPOLOGY_CONF, "topology.disable.loadaware.messaging": True}
PURE = ("one worker", "two workers of a node", "a worker on each node")
# What a sentence costs beside what it costs anywhere.
ADDED = ("worker_us", "node_us", "byte_us")


@dataclass(frozen=True, slots=True)
class Window:
    """A sentence at one placement, in the mean over some seconds at saturation.

    Attributes
    ----------
    sentence_bytes : int
        Characters of a sentence; 0: some words.
    near, far : float
        Tuples that go to another worker of their node, and to another node.
    socket_bytes : float
        What goes through sockets, within nodes and between them.
    cpu_us, gc_us : float
        CPU time of all workers; for how long workers stand still for their collectors.
    component_us : mapping of str to float
        CPU time of a tuple by component, its share of its worker's other threads included.
    """

    placement: str
    sentence_bytes: int
    acked_tps: float
    near: float
    far: float
    socket_bytes: float
    cpu_us: float
    gc_us: float | None
    component_us: Mapping[str, float]
    load_average: float


@dataclass(frozen=True, slots=True)
class Costs:
    """What a sentence costs.

    Attributes
    ----------
    base_us : mapping of int to float
        Within one worker, by the size of a sentence.
    added : mapping of str to float
        CPU time of a tuple to another worker and to another node, both ends together, and of a
        byte through a socket.
    """

    base_us: Mapping[int, float]
    added: Mapping[str, float]

    def of(self, window: Window) -> float:
        """Predict the CPU time of a sentence, in microseconds."""
        return self.base_us[window.sentence_bytes] + sum(
            cost * amount
            for cost, amount in zip(self.added.values(), _amounts(window), strict=True)
        )


def fit(windows: Sequence[Window]) -> Costs:
    """Find the costs, none below 0, whose predictions have the least relative squared errors."""
    sizes = sorted({window.sentence_bytes for window in windows})
    rows = [
        [*(float(window.sentence_bytes == size) for size in sizes), *_amounts(window)]
        for window in windows
    ]
    measured = np.array([window.cpu_us for window in windows])
    # Bytes are thousands where tuples are ones.
    scale = np.maximum(np.abs(rows).max(axis=0), 1e-9)
    found, _ = nnls(np.array(rows) / scale / measured[:, None], np.ones(len(rows)))
    costs = (found / scale).tolist()
    return Costs(
        dict(zip(sizes, costs, strict=False)),
        dict(zip(ADDED, costs[len(sizes) :], strict=True)),
    )


def _amounts(window: Window) -> tuple[float, float, float]:
    return window.near, window.far, window.socket_bytes


def placements(storms: SlotOf) -> dict[str, dict[ExecutorId, Slot]]:
    """Give the placements that are compared, Storm's among them; it uses two workers a node."""
    by_node: dict[str, list[Slot]] = {}
    for slot in sorted(set(storms.values()), key=str):
        by_node.setdefault(slot.supervisor, []).append(slot)
    first, second = list(by_node.values())[:2]
    pure = (first[:1], first[:2], [first[0], second[0]])
    dealt = {**dict(zip(PURE, pure, strict=True)), "three workers": [*first[:2], second[0]]}
    executors = sorted(storms)
    goals = {
        name: {executor: slots[i % len(slots)] for i, executor in enumerate(executors)}
        for name, slots in dealt.items()
    }
    return {**goals, "Storm's": dict(storms)}


def run(rounds: int, *, trimmed: bool, tell: Callable[[str], None]) -> list[Window]:
    """Take the windows on a live lab for each size of a sentence.

    Parameters
    ----------
    rounds : int
        How often each placement is measured.
    trimmed : bool
        As of `plan_lab`.
    tell : callable
        Takes a line about the progress.
    """
    windows = []
    for size in SIZES:
        sweep()
        planned = plan_lab(
            "bench-calibrate", hooks_jar=HOOKS_JAR, conf=CONF, link=LINK, trimmed=trimmed
        )
        with planned as lab:
            tell(f"sentences of {size} characters start" if size else "plain sentences start")
            lab.submit(TOPOLOGY, {**CONF_OF_ALL, "workload.sentence.bytes": size})
            lab.wait_ready(TOPOLOGY)
            with beside(lab, TOPOLOGY) as operator, Session(lab.storm_zookeeper) as session:
                session.connect()
                for window in _windows(lab, session, operator, size, rounds):
                    tell(f"{window.placement}: {window.cpu_us:.1f} us of CPU a sentence")
                    windows.append(window)
    return windows


def _windows(
    lab: Lab, session: Session, operator: Operator, size: int, rounds: int
) -> Iterator[Window]:
    meter, tuples = Meter(lab, session, TOPOLOGY), Tuples(session, TOPOLOGY)
    ledger = lab.ledger(TOPOLOGY)
    ledger.set_rate(SATURATE)
    time.sleep(WARM_UP_S)
    fed_tps = FED_FRAC * meter.take(SECONDS).acked_tps
    if not fed_tps:
        raise LabError("nothing was acked: see the logs of the workers")
    goals = placements(operator.placement().slot_of)
    # There and back, so that what changes slowly is the same for all.
    order = [*goals, *reversed(goals)]
    for name in (order * rounds)[: len(goals) * rounds]:
        ledger.set_rate(fed_tps)
        time.sleep(FALL_S)
        place(operator, goals[name])
        ledger.set_rate(SATURATE)
        time.sleep(RISE_S)
        mark = tuples.mark()
        figures = meter.take(SECONDS)
        picture = tuples.picture(tuples.mark(mark))
        if picture is None or figures.cpu_us_per_sentence is None:
            raise LabError("a worker has not reported its load: see the logs of the agents")
        yield _window(name, size, figures, *picture)


def _window(
    name: str, size: int, figures: Figures, cluster: Cluster, snapshot: LoadSnapshot
) -> Window:
    traffic, acked = snapshot.traffic, figures.acked_tps
    worker, node = snapshot.place, cluster.node_of[snapshot.place]
    far = node[traffic.source] != node[traffic.target]
    near = (worker[traffic.source] != worker[traffic.target]) & ~far
    workers = len(set(worker.tolist()))
    link_bytes, frac = figures.link_bytes_per_sentence, figures.inter_node_byte_frac
    came = np.bincount(traffic.target, traffic.tps, len(worker))
    sent = np.bincount(traffic.source, traffic.tps, len(worker))
    component_us = {}
    for component in snapshot.components:
        here = np.array([one == component.id for one in snapshot.component_of])
        # A spout gets acks for next to nothing; it works when it emits a sentence.
        handled = acked if component.kind == "spout" else float(came[here].sum())
        cores = float(snapshot.cpu_cores[here].sum())
        if handled and (sent[here].any() or came[here].any()):
            component_us[component.id] = 1e6 * cores / handled
    return Window(
        placement=name,
        sentence_bytes=size,
        acked_tps=acked,
        near=float(traffic.tps[near].sum()) / acked,
        far=float(traffic.tps[far].sum()) / acked,
        socket_bytes=link_bytes / frac if link_bytes and frac else 0.0,
        cpu_us=figures.cpu_us_per_sentence or 0.0,
        gc_us=None if figures.gc_frac is None else 1e6 * figures.gc_frac * workers / acked,
        component_us=component_us,
        load_average=os.getloadavg()[0],
    )


def report(windows: Sequence[Window]) -> dict[str, Any]:
    """Put costs and errors together, ready for JSON.

    Returns
    -------
    dict
        `error` is what the costs predict of a placement, against its windows; that of the mixed
        ones says what a prediction is worth.
    """
    costs = fit([window for window in windows if window.placement in PURE])
    kinds: dict[tuple[str, int], list[Window]] = {}
    for window in windows:
        kinds.setdefault((window.placement, window.sentence_bytes), []).append(window)
    return {
        "costs": asdict(costs),
        "placements": [
            {
                "placement": name,
                "sentence_bytes": size,
                "acked_tps": fmean(one.acked_tps for one in same),
                "near": fmean(one.near for one in same),
                "far": fmean(one.far for one in same),
                "socket_bytes": fmean(one.socket_bytes for one in same),
                "cpu_us": [round(one.cpu_us, 1) for one in same],
                "gc_us": [one.gc_us and round(one.gc_us, 2) for one in same],
                "error": costs.of(same[0]) / median(one.cpu_us for one in same) - 1,
            }
            for (name, size), same in kinds.items()
        ],
        "scenario": scenario(windows, costs),
        "load_average": max(window.load_average for window in windows),
    }


def scenario(windows: Sequence[Window], costs: Costs) -> dict[str, float]:
    """Give the costs as a scenario of the simulator names them, of the smallest sentences.

    A hop costs the simulator the same at either end, its bytes included.
    """
    size = min(window.sentence_bytes for window in windows)
    plain = [window for window in windows if window.sentence_bytes == size]
    hops = sum(window.near + window.far for window in plain)
    bytes_us = costs.added["byte_us"] * sum(one.socket_bytes for one in plain) / hops
    alone = [one.component_us for one in plain if not one.near + one.far]
    components = {name: fmean(one[name] for one in alone) for name in alone[0]}
    return {
        **{f"{name}_us": cost for name, cost in components.items()},
        "worker_us": (costs.added["worker_us"] + bytes_us) / 2,
        "node_us": (costs.added["node_us"] + bytes_us) / 2,
    }
