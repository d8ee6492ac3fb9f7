"""Figures of 003: cohesion and coupling of the even and the L/F scheduler."""

from collections import Counter
from dataclasses import replace

from controller.core.cluster import Ints, LoadSnapshot
from controller.policies.component_graph import executors_of
from controller.policies.even import even_place, lf_place, pipelines
from tests.papers.cohesion import cohesion, coupling
from tests.papers.table import Paper
from tests.snapshots import chain, cluster, topology

NODES = 8
# Table 3, at low parallelism; ten times as many at high.
SIZES = {
    "linear": (1,) * 8,
    "ascent": (1, 2, 3, 4, 5, 6, 7, 8),
    "descent": (8, 7, 6, 5, 4, 3, 2, 1),
    "diamond": (2, 4, 6, 8, 8, 6, 4, 2),
    "star": (8, 6, 4, 2, 2, 4, 6, 8),
}
# Section 4.2: by how much per cent the cohesion of L/F is above that of even, and half of the last
# digit.
GAIN = {
    "linear": (3900.0, 0.5),
    "ascent": (71.78, 0.005),
    "descent": (71.02, 0.005),
    "diamond": (32.03, 0.005),
    "star": (59.45, 0.005),
}
# Section 4.5: what, even, L/F, how much better by the text, in per cent; last digit of the means.
PAGE_VIEWS = (
    ("simple, mean latency, ms", 14.57, 12.18, 19.58, 0.01),
    ("simple, CPU, s", 38.94, 25.56, 52.32, 0.01),
    ("simple, memory, MB", 591.2, 298.5, 98.03, 0.1),
    ("unique, mean latency, ms", 11.59, 10.33, 12.13, 0.01),
    ("unique, CPU, s", 32.62, 23.97, 36.10, 0.01),
    ("unique, memory, MB", 592.5, 299.1, 98.12, 0.1),
)


def reproduce() -> Paper:
    """Compute all that arithmetic can reach.

    Returns
    -------
    Paper
        Cohesion, coupling, the examples of figures 3 to 5, and the printed per cents.
    """
    paper = Paper("003")
    for times in (1, 10):
        for name in SIZES:
            _cohesion(paper, name, times)
    _start_of_pipelines(paper)
    for name in SIZES:
        _coupling(paper, name)
    _examples(paper)
    _locality(paper)
    for what, even, lf, printed, digit in PAGE_VIEWS:
        # The means are printed with half a digit more or less.
        least = 100 * ((even - digit / 2) / (lf + digit / 2) - 1)
        most = 100 * ((even + digit / 2) / (lf - digit / 2) - 1)
        note = "the paper's own figures, so this says nothing of ours; least and most by rounding"
        gain = f"page views, {what}: even / L/F - 1, %; printed: {printed}"
        paper.row("4.5", gain, None, (least, most), note=note)
    _measured(paper)
    return paper


def _workload(name: str, times: int) -> LoadSnapshot:
    return chain([size * times for size in SIZES[name]])


def _places(snapshot: LoadSnapshot, times: int) -> tuple[Ints, Ints]:
    nodes = cluster([times] * NODES)
    return even_place(nodes, snapshot), lf_place(nodes, snapshot)


def _cohesion(paper: Paper, name: str, times: int) -> None:
    snapshot = _workload(name, times)
    even, lf = (cohesion(snapshot, place) for place in _places(snapshot, times))
    what = f"{name}, {NODES * times} slots"
    paper.row("4.2, figure 6", f"cohesion even / L/F, {what}", None, (even, lf))
    paper.row("4.2", f"pipelines, {what}", None, len(pipelines(snapshot)))
    printed, within = GAIN[name]
    paper.row("4.2", f"cohesion gain %, {what}", printed, 100 * (lf / even - 1), within=within)


def _start_of_pipelines(paper: Paper) -> None:
    snapshot = _workload("star", 1)
    even = cohesion(snapshot, _places(snapshot, 1)[0])
    last_first = replace(snapshot, components=snapshot.components[::-1])
    paper.row(
        "4.2",
        "cohesion gain %, star, pipelines begun at the last component",
        GAIN["star"][0],
        100 * (cohesion(snapshot, lf_place(cluster([1] * NODES), last_first)) / even - 1),
        differs="algorithm 3 says an arbitrary component; the printed figure takes the first",
        within=GAIN["star"][1],
        otherwise=True,
    )


def _coupling(paper: Paper, name: str) -> None:
    low, high = _workload(name, 1), _workload(name, 10)
    even, lf = (coupling(low, place) for place in _places(low, 1))
    paper.row("4.2, figure 6b", f"coupling even / L/F, {name}, 8 slots", None, (even, lf))
    paper.row(
        "4.2, figure 6b",
        f"coupling L/F - even by the closest twin, {name}, 8 slots",
        0.0,
        lf - even,
        differs="the text says equal, but 14 pipelines on 8 slots put twins together",
    )
    far = [coupling(low, place, farthest=True) for place in _places(low, 1)]
    paper.row(
        "4.2, figure 6b",
        f"coupling L/F - even by the farthest twin, {name}, 8 slots",
        0.0,
        far[1] - far[0],
        note="equation 2's min taken over closeness, where its text says the closest",
        otherwise=True,
    )
    even_high, lf_high = (coupling(high, place) for place in _places(high, 10))
    grown = "ten times holds for cohesion; every executor has more twins to be near to"
    for label, few, many in (("even", even, even_high), ("L/F", lf, lf_high)):
        ours = many / few if few else f"from 0 to {many:g}"
        what = f"coupling {label}, {name}: that of 80 slots over that of 8"
        paper.row("4.2", what, 10, ours, differs=grown, within=0.05)


def _examples(paper: Paper) -> None:
    sizes = {"sample": 3, "extract": 2, "count": 3}
    snapshot = topology(sizes, [("sample", "extract"), ("extract", "count")])
    number = {
        e: f"{name[0].upper()}{i}"
        for name, group in executors_of(snapshot).items()
        for i, e in enumerate(group, 1)
    }
    found = " ".join("".join(number[e] for e in pipeline) for pipeline in pipelines(snapshot))
    paper.row("3.2, figure 4", "pipelines of the example", "S1E1C1 S2E2C2 S3 C3", found)
    cases = (
        ("a", (2, 2), "workers used, 4 POIs on 4 slots", _used, (4, 2)),
        ("d", (2, 4, 2), "fed POIs of PO2 without PO3, 2-4-2 on 4 slots", _far_ends, (2, 0)),
        ("c", (2, 3), "upstreams by network, 2 to 3 POIs on 4 slots", _remote, (1, 0)),
    )
    slots, many, one = cluster([1] * 4), chain((1, 4)), chain((1, 1))
    idle = _idle(many, even_place(slots, many)), _idle(one, lf_place(slots, one))
    what = "idle downstreams, even with 1 to 4 POIs on 4 slots / L/F with 1 to 1"
    paper.row("figures 3b, 5b", what, (3, 0), idle)
    local = _remote(many, even_place(slots, many)), _remote(one, lf_place(slots, one))
    paper.row("figures 3b, 5b", "upstreams by network of the same: even / L/F", (0, 0), local)
    for label, parts, what, measure, printed in cases:
        slots, snapshot = cluster([1] * 4), chain(parts)
        ours = tuple(measure(snapshot, f(slots, snapshot)) for f in (even_place, lf_place))
        paper.row(f"figures 3{label}, 5{label}", f"{what}: even / L/F", printed, ours)


def _locality(paper: Paper) -> None:
    """Compare table 1 and its formulas with placements of two components on slots of one worker."""
    cases = [(u, d, s) for u in range(1, 9) for d in range(1, 9) for s in range(1, 13)]
    right, classes, crowded = Counter[str](), Counter[str](), Counter[str]()
    for ups, downs, slots in cases:
        nodes, snapshot = cluster([1] * slots), chain((ups, downs))
        even, lf = even_place(nodes, snapshot), lf_place(nodes, snapshot)
        case = "best" if slots <= downs else "general" if slots < ups + downs else "worst"
        classes[case] += 1
        network = 0 if case == "best" else ups if case == "worst" else min(ups, slots - downs)
        for scheduler, place, remote in (
            ("even", even, network),
            ("L/F", lf, max(ups - downs, 0)),
        ):
            is_right = _remote(snapshot, place) == remote
            right[f"{scheduler}, network"] += is_right
            crowded[scheduler] += not is_right and ups > slots
        right["L/F, network at most"] += _remote(snapshot, lf) <= max(ups - downs, 0)
        right["even, slots"] += _used(snapshot, even) == min(ups + downs, slots)
        right["L/F, slots"] += _used(snapshot, lf) == min(len(pipelines(snapshot)), slots)
    sizes = tuple(float(classes[case]) for case in ("best", "general", "worst"))
    what = f"{len(cases)} cases of |U|, |D| up to 8, |S| up to 12: best, general, worst"
    paper.row("2.3, table 1", what, None, sizes)
    for scheduler, where in (("even", "2.3, table 1"), ("L/F", "3.3")):
        what = (
            f"cases of {len(cases)} where {scheduler}'s formula of upstreams by network fails, and"
        )
        what += " of them those with more upstreams than slots"
        ours = float(len(cases) - right[f"{scheduler}, network"]), float(crowded[scheduler])
        paper.row(where, what, None, ours)
    shared = "it fails where there are more upstreams than slots (row above): several share a slot"
    for where, label, key in (
        (
            "2.3, table 1",
            "upstreams by network, even: 0, min(|U|, |S| - |D|), |U|",
            "even, network",
        ),
        ("3.3", "upstreams by network, L/F: |U| - |D| if above 0", "L/F, network"),
        ("3.3", "upstreams by network, L/F: no more than that", "L/F, network at most"),
        ("3.3", "slots, even: min(all POIs, |S|)", "even, slots"),
        ("3.3", "slots, L/F: min(pipelines, |S|)", "L/F, slots"),
    ):
        what = f"cases of {len(cases)} where the formula holds: {label}"
        paper.row(where, what, None, right[key], note="" if right[key] == len(cases) else shared)


def _idle(snapshot: LoadSnapshot, place: Ints) -> int:
    """Count downstreams that get nothing, since each upstream sends to those of its worker."""
    ups, downs = executors_of(snapshot).values()
    fed = {int(place[e]) for e in ups}
    return sum(int(place[e]) not in fed for e in downs)


def _far_ends(snapshot: LoadSnapshot, place: Ints) -> int:
    """Count upstreams of the last component that get something and have none of it next to them."""
    first, middle, last = executors_of(snapshot).values()
    fed = [e for e in middle if place[e] in place[first]]
    return sum(place[e] not in place[last] for e in fed)


def _used(snapshot: LoadSnapshot, place: Ints) -> int:
    return len(set(place.tolist()))


def _remote(snapshot: LoadSnapshot, place: Ints) -> int:
    ups, downs = executors_of(snapshot).values()
    return sum(int(place[e]) not in set(place[downs].tolist()) for e in ups)


def _measured(paper: Paper) -> None:
    cluster_needed = "latency, CPU and memory of Storm on their nine servers"
    for where, what, printed in (
        ("4.3, figure 7", "LSP, mean latency, 8 slots", "19.55 to 139.2 % better"),
        ("4.3, figure 7", "LSP, 99th percentile, 8 slots", "46.79 to 121.4 %"),
        ("4.3, figure 7", "LSP, CPU and memory, 8 slots", "up to 553.6 and 664.0 %"),
        ("4.3, figure 8", "LSP, 80 slots", "mean latency up to 97.06 %, p99 103.6 %"),
        ("4.4, figure 9", "non-LSP, mean latency, 8 slots", "6.233 to 140.7 %"),
        ("4.4, figure 10", "non-LSP, throughput, 80 slots", "21.95 % descent, 21.42 % star"),
    ):
        paper.beyond(where, what, printed, cluster_needed)
