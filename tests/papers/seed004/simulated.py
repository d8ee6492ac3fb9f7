"""Figures of 004, section 5.2: what moves cost, by runs that are not tuned to the paper's."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
from msgspec import structs

from controller.core.cluster import Floats
from deploy.sim.engine import SimulationResult, run
from deploy.sim.report import measure
from deploy.sim.restart_cost import Act, Delays, SimulatedMove, System, changes
from deploy.sim.scenario import Redeploy, RunSetting, Scenario, parse
from tests.papers.table import Chart, Line, Paper

FOLDER = Path(__file__).parents[2] / "golden" / "scenarios"
# Section 5.2: executors in one redeploy, and the two cycles; the inner pairs are inferred from
# TS = 3 TW, the text prints the first and the last alone.
TOGETHER = (2, 4, 8, 16)
CYCLES_S = ((10.0, 3.0), (3.0, 1.0), (1.0, 1 / 3), (0.3, 0.1))
LAZY_KILL_S = 2.0
# Which words go where, which executors move and when nodes look differ by seed.
SEEDS = (1, 2, 3, 4, 5)
REDEPLOYS = 10
HARDWARE = "simulated, with another machine's speeds"

# Seconds of ten redeployments at so much per cent of degradation, on the lab with links of 20
# Mbit/s: ten times those of one, or of two, in a round of 20 s (docs/measured.md, 2026-11-24).
LAB_S: Mapping[tuple[str, int], float | str] = {
    ("storm", 60): "> 140",  # the round's end cut it off
    ("storm", 100): "> 130",
    ("storm-star", 60): 50,
    ("n-storm", 60): 0,
    ("nstorm", 60): 0,
    ("nstorm, M = 16", 60): 0,
    ("nstorm, M = 16", 100): 0,
}
# The longest gap of nstorm without lazy kill, M = 1, in the same run.
LAB_STOP_S = 0.07

Measures = Mapping[str, float]


def compare(paper: Paper) -> None:
    """Add what the simulator gives, beside what the paper measured.

    Parameters
    ----------
    paper : Paper
        Of 004.
    """
    _one_move(paper)


def scenario(name: str) -> Scenario:
    """Read one of the scenarios that the tests hold.

    Parameters
    ----------
    name : str
        Of the file, without its ending.

    Returns
    -------
    Scenario
        Ready to run.
    """
    return parse((FOLDER / f"{name}.txt").read_text())


def _one_move(paper: Paper) -> None:
    """Compare section 5.2: what random moves cost."""
    given = scenario("random_moves")
    settings = {setting.name: setting for setting in given.runs}
    still = settings["still"]
    runs = {name: _by_seed(still, one) for name, one in settings.items() if one is not still}
    _degradation(paper, runs)
    _total_throughput(paper, runs)
    lines = tuple(
        by_ten_seconds(name, _result(setting, SEEDS[0]).throughput_tps)
        for name, setting in settings.items()
    )
    title = "One random move a minute (figure 8), simulated"
    paper.charts.append(Chart("004_moves", title, "seconds", "sentences/s", lines))
    _many_moves(paper, settings, runs["n-storm"])


def _by_seed(still: RunSetting, setting: RunSetting) -> list[Measures]:
    """Measure a run with each seed against the one of the same seed in which nothing moves."""
    return [measure(setting, _result(setting, seed), _usual_tps(still, seed)) for seed in SEEDS]


@cache
def _result(setting: RunSetting, seed: int) -> SimulationResult:
    return run(setting, seed)


def _usual_tps(still: RunSetting, seed: int) -> float:
    return float(_result(still, seed).throughput_tps[round(still.warm_s) :].mean())


def _spread(runs: Sequence[Measures], name: str) -> tuple[float, float, float]:
    values = [got[name] for got in runs]
    return float(np.median(values)), min(values), max(values)


def _seeds(what: str) -> str:
    return f"{what}, median, least and most of {len(SEEDS)} seeds"


def _gaps(paper: Paper) -> dict[int, float]:
    """Compute what the polls alone make of ten redeploys; give the means by M."""
    polls, means = np.random.default_rng(0), {}
    node_of, delays = np.repeat(np.arange(2), 4), Delays()
    for together in (1, *TOGETHER):
        gaps = []
        for _ in range(2000):
            shifts = [SimulatedMove(e, *polls.choice(8, 2, replace=False)) for e in range(together)]
            gaps.append(_gap_s(shifts, delays, node_of.tolist(), polls))
        means[together] = REDEPLOYS * float(np.mean(gaps))
        what = f"N-Storm, M = {together}: seconds of ten redeploys with an executor nowhere, by the"
        what = f"{what} polls alone: mean and longest possible"
        longest = REDEPLOYS * (delays.supervisor_s + delays.worker_s)
        paper.row("3.4", what, None, (means[together], longest), note="arithmetic on TS and TW")
    at_s = iter((np.array([0.5, 9.5]), np.zeros(8)))
    scripted = cast(np.random.Generator, SimpleNamespace(uniform=lambda *_: next(at_s)))
    gap_s = _gap_s([SimulatedMove(0, 0, 4)], delays, node_of.tolist(), scripted)
    paper.row(
        "3.4, figure 4", "gap where old and new node look 0.5 and 9.5 s after a plan", 9, gap_s
    )
    return means


def _gap_s(
    shifts: list[SimulatedMove], delays: Delays, node_of: list[int], polls: np.random.Generator
) -> float:
    """Tell for how long at least one of the moved executors runs nowhere, by the model."""
    made = changes(System.N_STORM, shifts, 0.0, delays=delays, node_of=node_of, random=polls)
    stops = {change.who: change.at_s for change in made if change.act is Act.STOP}
    starts = {change.who: change.at_s for change in made if change.act is Act.RUN}
    nowhere_s, until_s = 0.0, 0.0
    for who, at_s in sorted(stops.items(), key=lambda stop: stop[1]):
        nowhere_s += max(starts[who] - max(at_s, until_s), 0.0)
        until_s = max(until_s, starts[who])
    return nowhere_s


def _degradation(paper: Paper, runs: Mapping[str, list[Measures]]) -> None:
    gaps_s = _gaps(paper)
    silence = (
        "the 30 s of a silence are set, as in the text; windows full of a second each are whole"
    )
    restart = "ten restarts of 10 s, and what dead workers held, which blocks until its timeout;"
    restart += " 55 s more are not in the text"
    polls = f"polls leave {gaps_s[1]:.0f} s in the mean; a window of 0.4 s hides the start of each"
    for name, label, level, printed, why in (
        ("storm", "Storm", 60, 279, silence),
        ("storm", "Storm", 100, 267, silence),
        ("storm-star", "Storm*", 60, 155, restart),
        ("n-storm", "N-Storm", 60, 20, polls),
    ):
        what = _seeds(f"{label}: seconds of 600 at ≥ {level} % degradation")
        ours, lab = _spread(runs[name], f"down_{level}_s"), LAB_S[name, level]
        paper.row("5.2.1, figure 9a", what, printed, ours, differs=f"{HARDWARE}: {why}", lab=lab)
    stop_s = tuple(s / REDEPLOYS for s in _spread(runs["n-storm"], "down_100_s"))
    what, why = _seeds("N-Storm: stop of a redeploy, s"), f"{HARDWARE}: {polls}"
    holds = max(stop_s) < 1
    paper.row("5.2.1", what, "< 1", stop_s, holds=holds, differs=why, lab=LAB_STOP_S)
    what = _seeds("nstorm: seconds of 600 at ≥ 60 % degradation")
    ours = _spread(runs["nstorm"], "down_60_s")
    note = "not a system of the paper"
    paper.row("5.2.1", what, None, ours, note=note, lab=LAB_S["nstorm", 60])


def _total_throughput(paper: Paper, runs: Mapping[str, list[Measures]]) -> None:
    why = f"{HARDWARE}: follows from the seconds of degradation; and random moves find better and"
    why += " worse placements, others than theirs"
    for one, other, printed in (
        ("storm-star", "storm", 41),
        ("n-storm", "storm-star", 25),
        ("n-storm", "storm", 75),
    ):
        pairs = zip(runs[one], runs[other], strict=True)
        gains = [{"gain": 100 * (a["tps"] / b["tps"] - 1)} for a, b in pairs]
        what = _seeds(f"total throughput, {one} over {other}, %")
        paper.row("5.2.1, figure 10a", what, printed, _spread(gains, "gain"), differs=why)


def _many_moves(paper: Paper, settings: Mapping[str, RunSetting], one: list[Measures]) -> None:
    """Compare M, lazy kill and the cycles of N-Storm."""
    still, usual = settings["still"], settings["n-storm"]

    def runs(together: int, **delays: float) -> list[Measures]:
        setting = replace(
            usual,
            redeploy=structs.replace(usual.redeploy or Redeploy(), executors=together),
            delays=structs.replace(usual.delays, **delays),
        )
        return _by_seed(still, setting)

    by_m = {1: one} | {m: runs(m) for m in TOGETHER}
    timeout = "118 s are 91 % of the longest that the polls can make of ten redeploys; tuples that"
    timeout += " are lost would add the 30 s of their timeout, here they wait for the executor"
    for m in TOGETHER:
        what = _seeds(f"N-Storm, M = {m}: seconds of 600 at ≥ 60 %")
        printed, ours = (118 if m == 16 else None), _spread(by_m[m], "down_60_s")
        paper.row("5.2.2, figure 9b", what, printed, ours, differs=f"{HARDWARE}: {timeout}")
    for m in (8, 16):
        zero_s = _spread(by_m[m], "down_100_s")
        what = _seeds(f"N-Storm, M = {m}: seconds at zero throughput")
        why = f"{HARDWARE}: not with every seed"
        paper.row("5.2.2, figure 9b", what, "> 0", zero_s, holds=zero_s[0] > 0, differs=why)
    _throughput_by_m(paper, by_m)
    lazy = runs(16, kill_s=LAZY_KILL_S)
    for level, printed in ((60, 84), (100, 53)):
        what = _seeds(f"N-Storm+, M = 16, lazy kill: seconds of 600 at ≥ {level} %")
        ours, why = _spread(lazy, f"down_{level}_s"), "takes its part of the 118 s that differ"
        why, seen_s = f"{HARDWARE}: {why}", LAB_S["nstorm, M = 16", level]
        paper.row("5.2.3, figure 9c", what, printed, ours, differs=why, lab=seen_s)
    pairs = zip(lazy, by_m[16], strict=True)
    gains = [{"gain": 100 * (a["tps"] / b["tps"] - 1)} for a, b in pairs]
    what = _seeds("N-Storm+, M = 16, lazy kill: throughput over N-Storm, %")
    why = f"{HARDWARE}: follows from the seconds of degradation"
    paper.row("5.2.3, figure 10c", what, 11, _spread(gains, "gain"), differs=why)
    shorter = [
        runs(16, supervisor_s=ts, worker_s=tw, kill_s=LAZY_KILL_S) for ts, tw in CYCLES_S[1:]
    ]
    _cycles(paper, [lazy, *shorter])
    bars = Line(
        "≥ 60 %", [str(m) for m in by_m], [_spread(r, "down_60_s")[0] for r in by_m.values()]
    )
    title = "N-Storm: degradation by executors moved together (figure 9b), simulated"
    paper.charts.append(Chart("004_together", title, "M", "seconds of 600", (bars,)))


def _throughput_by_m(paper: Paper, by_m: Mapping[int, list[Measures]]) -> None:
    where = "5.2.2, figure 10b"
    tps = {m: _spread(got, "tps")[0] for m, got in by_m.items()}
    for m, got in list(tps.items())[1:]:
        what = f"N-Storm, M = {m}: total throughput over M = 1, %, median of {len(SEEDS)} seeds"
        paper.row(where, what, None, 100 * (got / tps[1] - 1))
    lasting = "what a redeploy costs here grows with M from the start, as the gaps of the polls do"
    falls = max(tps, key=lambda m: abs(tps[m] / tps[1] - 1)) == 16 and tps[16] < tps[1]
    what = "total throughput falls at M = 16 alone (most there)"
    paper.row(where, what, "yes", "yes" if falls else "no", differs=f"{HARDWARE}: {lasting}")
    what = "M = 4 over M = 2 (the paper: after two or three redeploys its placement was better), %"
    why = f"{HARDWARE}: a chance of the random placements, and of one run"
    paper.row(where, what, 5, 100 * (tps[4] / tps[2] - 1), differs=why, within=0.5)


def _cycles(paper: Paper, runs: list[list[Measures]]) -> None:
    where = "5.2.4, figure 9d"
    for (ts, tw), got in zip(CYCLES_S, runs, strict=True):
        what = _seeds(f"N-Storm+, M = 16, TS {ts:.2g} s, TW {tw:.2g} s: seconds at ≥ 60 %")
        paper.row(where, what, None, _spread(got, "down_60_s"))
        what = _seeds(f"N-Storm+, M = 16, TS {ts:.2g} s, TW {tw:.2g} s: sentences/s")
        paper.row("5.2.4, figure 10d", what, None, _spread(got, "tps"))
    down_s = [_spread(got, "down_60_s")[0] for got in runs]
    tps = [_spread(got, "tps")[0] for got in runs]
    why = f"{HARDWARE}: medians of {len(SEEDS)} seeds"
    for place, what, holds in (
        (where, "degradation falls over the first three settings", _falls(down_s[:3])),
        ("5.2.4, figure 10d", "throughput rises over the first three", _falls(tps[2::-1])),
    ):
        paper.row(place, what, "yes", "yes" if holds else "no", differs=why)
    worse = down_s[3] > max(down_s[1:3])
    what = "the last setting is worse than the second and the third"
    free = "polling costs nothing here; figure 11 has what it takes"
    paper.row(where, what, "yes", "yes" if worse else "no", differs=f"simulated: {free}")
    # A look at ZooKeeper or at the store each cycle; a write for each plan that concerns the node.
    reads = tuple(2 / ts + 8 / tw for ts, tw in CYCLES_S)
    what = "looks a second, 2 nodes of 4 workers, by setting"
    paper.row("5.2.5, figure 11", what, None, reads, note="arithmetic: 2 / TS + 8 / TW")
    what = "store writes a second, one for each node and redeploy: few"
    paper.row("5.2.5, figure 11", what, None, 2 / 60, note="arithmetic: 2 nodes, one plan in 60 s")


def _falls(values: list[float]) -> bool:
    return values == sorted(values, reverse=True)


def by_ten_seconds(label: str, values: Floats) -> Line:
    """Average over ten seconds, so that one sees the trend."""
    span = 10
    whole = values[: len(values) // span * span].reshape(-1, span).mean(axis=1)
    return Line(label, (span * (np.arange(len(whole)) + 0.5)).tolist(), whole.tolist())
