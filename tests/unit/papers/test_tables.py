"""The papers' figures: every value to hold is there and holds, and no row hides a difference."""

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from msgspec import structs
from rich.console import Console
from typer.testing import CliRunner

from controller.policies.model_driven.mapping import rsm
from deploy.sim.engine import SimulationResult
from deploy.sim.scenario import Scenario, parse
from tests.papers import seed000, seed001, seed001_pairs, seed002, seed003
from tests.papers.acquisition import acquire, empty_slots, lsa
from tests.papers.command import app
from tests.papers.seed004 import deciding, deploying, simulated
from tests.papers.table import (
    NOT_IN_TEXT,
    UNEXPLAINED,
    Paper,
    Row,
    Value,
    as_document,
    print_summary,
    print_table,
)

Rows = dict[tuple[str, str], Row]


@pytest.fixture(scope="module")
def papers() -> list[Paper]:
    """All but what is simulated."""
    of_004 = Paper("004")
    deciding.compare(of_004)
    seeds = (seed000, seed001, seed002, seed003)
    return [*(seed.reproduce() for seed in seeds), of_004]


@pytest.fixture(scope="module")
def rows(papers: list[Paper]) -> Rows:
    found = {(row.seed, row.what): row for paper in papers for row in paper.rows}
    assert len(found) == sum(len(paper.rows) for paper in papers), "a row is there twice"
    return found


GAINS = {"linear": 3900, "ascent": 71.78, "descent": 71.02, "diamond": 32.03, "star": 59.45}
COHESION = {
    "linear": (0.175, 7),
    "ascent": (16.3, 28),
    "descent": (16.475, 28.175),
    "diamond": (24.35, 32.15),
    "star": (16.4, 26.15),
}
HAND, SADDLE, PING = "hand graph", "saddle", "ping-pong"
OTHER_NODE = "ASC of each executor to the other node"
LEAST = "least inter-node t/s, nodes of"
BOUND = "of the CPU in use: least inter-node ratio"
RANDOM = "revisits in 100 random worlds, low + largest executor = high"
RATHER = "and of them those with more upstreams than slots"
# Seed, row, value, tolerance.
HELD: list[tuple[str, str, Value, float]] = [
    ("004", f"{HAND}: {OTHER_NODE}", (6, 13, 5, 9, 1, -2), 0),
    ("004", f"{HAND}: all t/s", 32, 0),
    ("004", f"{HAND}: inter-node t/s, literal OTD move by move", (24, 11, 6), 0),
    ("004", f"{HAND}: executors that literal OTD moves", (1, 2), 0),
    ("004", f"{HAND}: {LEAST} 0.6 cores, exhaustive search", 6, 0),
    ("004", f"{HAND}: {LEAST} 0.8 cores, exhaustive search", 6, 0),
    ("004", f"{HAND}: {LEAST} 1.2 cores, exhaustive search", 0, 0),
    ("004", f"{SADDLE}: {OTHER_NODE}", (0, 0, 0, 0), 0),
    ("004", f"{SADDLE}: moves of literal OTD", 0, 0),
    ("004", f"{SADDLE}: inter-node ratio where literal OTD stops", 0.5, 0),
    ("004", f"{SADDLE}: {LEAST} 0.8 cores, exhaustive search", 0, 0),
    ("004", f"{SADDLE}: inter-node t/s where target stops", 0, 0),
    ("004", f"{PING}: moves after which literal OTD is back at the start", 2, 0),
    ("004", f"{PING}: moves of literal OTD in 200 cycles", 200, 0),
    ("004", f"{PING}: moves of gather", 1, 0),
    ("004", f"{PING}: inter-node t/s where gather stops, without a target", 10, 0),
    ("004", f"{RANDOM}: literal OTD", 0, 0),
    ("004", f"{RANDOM}: gather", 0, 0),
    ("004", f"WordCount, 2×4, 50% {BOUND}", 0.255, 5e-5),
    ("004", f"WordCount, 2×4, 65% {BOUND}", 0.4527, 5e-5),
    ("004", f"WordCount, 4×2, 30% {BOUND}", 0.4132, 5e-5),
    ("004", f"WordCount, 8×2, 30% {BOUND}", 0.6641, 5e-5),
    ("004", f"WordCount, 16×2, 30% {BOUND}", 0.8301, 5e-5),
    *(
        ("003", f"cohesion gain %, {t}, {s} slots", g, 0.005)
        for t, g in GAINS.items()
        for s in (8, 80)
    ),
    *(("003", f"cohesion even / L/F, {t}, 8 slots", v, 1e-9) for t, v in COHESION.items()),
    *(
        ("003", f"cohesion even / L/F, {t}, 80 slots", (10 * a, 10 * b), 1e-9)
        for t, (a, b) in COHESION.items()
    ),
    ("003", "coupling even / L/F, star, 8 slots", (1.0, 12.7), 1e-9),
    ("003", "coupling L/F - even by the farthest twin, star, 8 slots", 0, 1e-9),
    ("003", "cohesion gain %, star, pipelines begun at the last component", 71.34, 0.005),
    # SEEDS-DETAILS recomputed the sums with the authors' profile.
    ("001", "linear, 50 t/s, LSA: memory, slots", 6.239, 5e-4),
    ("001", "linear, 100 t/s, LSA: memory, slots", 12.478, 5e-4),
    ("001", "linear, 200 t/s, LSA: memory, slots", 24.956, 5e-4),
    *(("001", f"linear, {r} t/s: LSA slots", s, 0) for r, s in ((50, 7), (100, 13), (200, 25))),
    *(("001", f"linear, {r} t/s, LSA: Blob threads", r / 2, 0) for r in (50, 100, 200)),
    ("001", "linear, 50 t/s, LSA: Table threads", 17, 0),
    ("001", "linear, 100 t/s, LSA: Table threads", 34, 0),
    ("001", "linear, 200 t/s, LSA: Table threads", 67, 0),
    ("001", "linear, 100 t/s, MBA: Blob threads", 170, 0),
    ("001", "linear, 100 t/s, MBA: Blob CPU, memory, slots", (3.15, 3.26), 5e-3),
    *(("001", f"linear, {r} t/s: MBA slots", s, 0) for r, s in ((50, 4), (100, 7), (200, 14))),
    *(("001", f"linear, {r} t/s: MBA+SAM slots", s, 0) for r, s in ((50, 4), (100, 7), (200, 15))),
    *(
        ("001", f"linear, {r} t/s: MBA+SAM slots, algorithm 6 to the letter", s, 0)
        for r, s in ((50, 6), (100, 9), (200, 16))
    ),
    ("001", "table, t/s of 60 threads", 40, 0),
    ("000", "possibilities for n = 4, m = 3, k = 10", 27405, 0),
    ("001", "of 9 cases that need more slots than allocated with LSA+RSM", 7, 0),
    *(
        ("003", f"cases of 768 where {one}'s formula of upstreams by network fails, {RATHER}", v, 0)
        for one, v in (("even", (56, 56)), ("L/F", (140, 140)))
    ),
    *(("002", f"M({a}), E = 37, W = 8", m, 0) for a, m in (("0", 5), ("0.5", 17.5), ("1", 30))),
    *(
        ("002", f"M({a}), E = 37, W = 8, as a limit", m, 0)
        for a, m in (("0", 5), ("0.5", 18), ("1", 30))
    ),
]


@pytest.mark.parametrize(("seed", "what", "value", "within"), HELD, ids=lambda v: str(v)[:40])
def test_values_to_hold(rows: Rows, seed: str, what: str, value: Value, within: float) -> None:
    assert rows[seed, what].ours == pytest.approx(value, rel=0, abs=within + 1e-12)


@pytest.mark.parametrize(
    ("seed", "what", "paper"),
    [
        ("001", "linear, 200 t/s: MBA slots", 15),
        ("001", "table, t/s of 60 threads", 60),
        ("001", "linear, 50 t/s: slots that SAM needs more than MBA", 1),
        ("003", "coupling L/F - even by the closest twin, star, 8 slots", 0),
        ("000", "RollingCount, instances, to the letter", "<5,4>"),
    ],
)
def test_where_text_and_arithmetic_disagree_both_are_shown(
    rows: Rows, seed: str, what: str, paper: Value
) -> None:
    row = rows[seed, what]
    assert row.paper == paper
    assert row.ours != paper
    assert not row.why.startswith(("equal", "holds"))


@pytest.mark.parametrize("graph", ["linear", "diamond", "star"])
@pytest.mark.parametrize("rate", [50, 200])
def test_r_storm_with_weights_of_1_is_the_shipped_one(graph: str, rate: int) -> None:
    dag = next(one for one in seed001_pairs.DAGS if one.__name__ == graph)
    needs = seed001_pairs.needs_of(seed001_pairs.tasks_at(lsa, dag(), rate))
    for slots in (10, 20, 40):
        empty = empty_slots(acquire(slots))
        ours = seed001_pairs.weighted_rsm(needs, empty, (1.0, 1.0, 1.0))
        assert ours == rsm(needs, empty_slots(acquire(slots)))


@pytest.mark.parametrize("rate", [50, 100, 200])
def test_rsm_needs_up_to_three_slots_more(rows: Rows, rate: int) -> None:
    planned = rows["001", f"linear, {rate} t/s: LSA slots"].ours
    mapped = rows["001", f"linear, {rate} t/s: LSA+RSM slots"].ours
    assert isinstance(planned, int)
    assert isinstance(mapped, int)
    assert 0 <= mapped - planned <= 3


def check(paper: Paper) -> None:
    for row in paper.rows:
        assert row.seed == paper.seed
        assert row.where
        assert row.why
        assert not row.why.startswith(UNEXPLAINED), row
        numbers = row.ours if isinstance(row.ours, tuple) else (row.ours,)
        assert all(isinstance(n, str) or math.isfinite(n) for n in numbers), row
        if row.paper is None:
            assert not row.why.startswith(("equal", "holds")), row
    for one in paper.out_of_reach:
        assert all((one.where, one.what, one.paper, one.why))


def test_a_cycle_is_said_to_be_cut(rows: Rows) -> None:
    row = rows["002", "offline, spout → a → b → c → a: what the reason of the decision says"]
    assert row.ours == "(left out, found depth first: c -> a)"


def test_printed_gains_of_page_views_are_the_printed_means_rounded(papers: list[Paper]) -> None:
    found = [row for row in papers[3].rows if row.what.startswith("page views, ")]
    assert len(found) == 6
    for row in found:
        assert isinstance(row.ours, tuple)
        least, most = row.ours
        assert least <= float(row.what.rpartition(": ")[2]) <= most


def test_the_longest_stop_counts_whole_seconds_in_a_row() -> None:
    result = SimpleNamespace(throughput_tps=np.array([1.0, 0, 0, 2, 0, 3]))
    assert simulated._longest_stop_s(cast(SimulationResult, result)) == 2
    result.throughput_tps += 1
    assert simulated._longest_stop_s(cast(SimulationResult, result)) == 0


def test_every_row_says_why(papers: list[Paper]) -> None:
    for paper in papers:
        check(paper)


def test_the_document_is_json(papers: list[Paper]) -> None:
    document = json.loads(json.dumps(as_document(papers), allow_nan=False))
    assert {row["seed"] for row in document["rows"]} == {"000", "001", "002", "003", "004"}
    assert all({"where", "what", "paper", "ours", "why"} <= set(row) for row in document["rows"])
    assert {one["seed"] for one in document["out_of_reach"]} == {"000", "001", "002", "003"}


@pytest.mark.parametrize(
    ("paper", "ours", "within", "equal"),
    [
        (1.0, 1.0, 0.0, True),
        (0.3, 0.1 + 0.2, 0.0, True),
        (71.78, 71.7791, 0.005, True),
        (71.78, 71.786, 0.005, False),
        ((1.0, 2.0), (1.0, 2.0), 0.0, True),
        ((1.0, 2.0), (1.0,), 0.0, False),
        ("<5,4>", "<5,4>", 0.0, True),
        ("<5,4>", 5.0, 9.0, False),
    ],
)
def test_equal_is_said_only_of_what_is(
    paper: Value, ours: Value, within: float, equal: bool
) -> None:
    one = Paper("000")
    one.row("1", "a", paper, ours, differs="rounded", note="seen", within=within)
    assert one.rows[0].why == ("equal; seen" if equal else "rounded; seen")


def test_a_second_reading_of_a_figure_never_agrees(papers: list[Paper]) -> None:
    read = [row for paper in papers for row in paper.rows if row.verdict == "read otherwise"]
    assert len(read) > 10
    assert all(row.paper is not None for row in read)
    for what in ("farthest twin", "if each slot has 20", "own peaks", "source and sink elsewhere"):
        assert [row for row in read if what in row.what], what


def test_what_is_not_printed_is_not_compared(rows: Rows) -> None:
    given = "40 random worlds, the optimum's instance numbers, placed as policy heterogeneity does"
    assert rows["000", f"{given}: per cent below the optimum, worst"].verdict == "not printed"
    counts = [row for (_, what), row in rows.items() if what.startswith("cases of 768")]
    assert {row.verdict for row in counts} == {"not printed"}


def test_the_summary_counts_verdicts_and_gives_each_reason_once(papers: list[Paper]) -> None:
    one = Paper("000")
    one.row("1", "a", 2.0, 2.0, note="by chance")
    one.row("1", "b", "< 1", 0.5, holds=True)
    one.row("1", "c", 2.0, 3.0, differs="cut off")
    one.row("1", "d", 4.0, 3.0, differs="cut off")
    one.row("1", "e", None, 1.5)
    one.row("1", "c read otherwise", 2.0, 2.0, otherwise=True)
    one.claim("1", "g", True)
    one.claim("1", "h", False, differs="cut off")
    one.beyond("2", "f", "7", "no cluster")
    assert Counter(row.verdict for row in one.rows) == {
        "agrees": 2,
        "differs": 2,
        "read otherwise": 1,
        "said, and so": 1,
        "said, not so": 1,
        "not printed": 1,
    }
    console = Console(width=120, color_system=None)
    with console.capture() as captured:
        print_summary([one], console)
    cells = [line.replace("│", " ").split() for line in captured.get().splitlines()]
    assert ["000", "8", "2", "2", "1", "1", "1", "1", "1"] in cells
    assert cells.count(["000", "3", "cut", "off"]) == 1
    with console.capture() as captured:
        print_summary(papers, console)
    assert "M(0.5)" not in captured.get()


def test_what_is_printed_as_a_limit_holds_or_not() -> None:
    one = Paper("000")
    one.row("1", "a", "< 1", 0.5, holds=True)
    one.row("1", "b", "< 1", 1.5, holds=False)
    one.row("1", "c", None, 1.5)
    assert [row.why for row in one.rows] == ["holds", UNEXPLAINED, NOT_IN_TEXT]


def test_a_table_for_readers(papers: list[Paper]) -> None:
    console = Console(width=200)
    with console.capture() as captured:
        print_table([papers[2]], console)
    printed = captured.get()
    assert "002, not here" in printed
    assert "–" in printed
    limit = next(line for line in printed.splitlines() if "M(0.5), E = 37, W = 8, as a l" in line)
    assert [cell.strip() for cell in limit.split("│")][3:5] == ["–", "18"]


def shortened(given: Scenario) -> Scenario:
    """The same runs, of 40 s."""
    runs = tuple(
        replace(
            setting,
            seconds=40.0,
            warm_s=min(setting.warm_s, 10.0),
            window_s=10.0,
            redeploy=setting.redeploy and structs.replace(setting.redeploy, first_s=12.0),
        )
        for setting in given.runs
    )
    return replace(given, runs=runs)


def whole(series: str, name: str) -> deploying.Measure:
    return lambda one: float(getattr(one[name], series).mean())


def test_all_that_is_simulated_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    read = simulated.scenario
    monkeypatch.setattr(simulated, "scenario", lambda name: shortened(read(name)))
    monkeypatch.setattr(deploying, "parse", lambda text: shortened(parse(text)))
    for one in (simulated, deploying):
        monkeypatch.setattr(one, "SEEDS", (1,))
    # A draw or two, whatever they start with.
    monkeypatch.setattr(deploying, "DRAWS", 2)
    monkeypatch.setattr(deploying, "NEAR_FRAC", 1.0)
    # Later seconds than a short run has.
    monkeypatch.setattr(deploying, "_coolest_of_fuller_node", lambda one: 0.5)
    monkeypatch.setattr(simulated, "_later_over_start", lambda result: float(len(result.moves)))
    monkeypatch.setattr(deploying, "_mean", lambda series, name, *_: whole(series, name))
    paper = Paper("004")
    simulated.compare(paper)
    deploying.compare(paper)
    check(paper)
    found = {(row.where, row.what): row for row in paper.rows}
    assert len(found) == len(paper.rows), "a row is there twice"
    printed = [row.paper for row in paper.rows if row.where == "5.2.1, figure 9a" and row.paper]
    assert printed == [279, 267, 155, 20]
    by_name = {row.what: row.ours for row in paper.rows}
    # One redeploy of 30 s, of which the run sees 28: nothing comes through.
    spread = ", median, least and most of 1 seeds"
    storm = by_name[f"Storm: seconds of 600 at ≥ 100 % degradation{spread}"]
    assert storm in ((27.0,) * 3, (28.0,) * 3)
    assert by_name[f"nstorm: seconds of 600 at ≥ 60 % degradation{spread}"] == (0.0,) * 3
    ratio = by_name["Storm: inter-node ratio; median, least and most of 1 seeds"]
    assert ratio == pytest.approx((0.5,) * 3, abs=0.01)


def run(*arguments: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(app, [*map(str, arguments)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


def test_the_command_prints_one_seed() -> None:
    document = json.loads(run("002", "-o", "json"))
    assert {row["seed"] for row in document["rows"]} == {"002"}
    assert "M(0.5)" in run("002")


def test_an_unknown_seed_is_refused() -> None:
    assert "is not one of 000, 001, 002, 003, 004" in run("005", code=2)
