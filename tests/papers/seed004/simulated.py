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
from tests.papers.table import Paper

FOLDER = Path(__file__).parents[2] / "golden" / "scenarios"
# Section 5.2: executors in one redeploy, and the two cycles. The inner pairs are inferred from TS =
# 3 TW, the text prints the first and the last alone.
TOGETHER = (2, 4, 8, 16)
CYCLES_S = ((10.0, 3.0), (3.0, 1.0), (1.0, 1 / 3), (0.3, 0.1))
LAZY_KILL_S = 2.0
# A restart of Storm*, against the 10 s of the text.
STAR_RESTART_S = 16.0
# Which words go where, which executors move and when nodes look differ by seed.
SEEDS = (1, 2, 3, 4, 5)
REDEPLOYS = 10
# Times ten redeploys of drawn polls; the nodes of the eight workers.
DRAWS = 200
NODE_OF = np.repeat(np.arange(2), 4).tolist()
HARDWARE = "simulated, with another machine's speeds"

# Seconds of ten redeployments at a per cent of degradation, on the lab with links of 20 Mbit/s.
# They are ten times those of one, or of two, in a round of 20 s
# (docs/measurements/redeployment.md).
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
Settings = Mapping[str, RunSetting]


def compare(paper: Paper) -> None:
    """Add what the simulator gives, next to what the paper measured."""
    _one_move(paper)


def scenario(name: str) -> Scenario:
    """Read one of the scenarios that the tests hold."""
    return parse((FOLDER / f"{name}.txt").read_text())


def _one_move(paper: Paper) -> None:
    """Compare section 5.2: what random moves cost."""
    given = scenario("random_moves")
    settings = {setting.name: setting for setting in given.runs}
    still = settings["still"]
    runs = {name: _by_seed(still, one) for name, one in settings.items() if one is not still}
    _degradation(paper, settings, runs)
    _total_throughput(paper, runs)
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


def _gaps(paper: Paper) -> None:
    """Compute what the polls alone make of ten redeploys."""
    for together, kill_s in ((1, 0.0), *((m, 0.0) for m in TOGETHER), (16, LAZY_KILL_S)):
        delays = Delays(kill_s=kill_s)
        drawn_s = _drawn_gaps_s(together, delays)
        means = float(drawn_s.mean()), float(drawn_s.max())
        kind = "N-Storm+, lazy kill" if kill_s else "N-Storm"
        what = f"{kind}, M = {together}: seconds of ten redeploys with an executor nowhere, by the"
        what = f"{what} polls alone: mean and most of {DRAWS} draws"
        paper.row("3.4", what, None, means, note="arithmetic on TS and TW")
    at_s = iter((np.array([0.5, 9.5]), np.zeros(8)))
    scripted = cast(np.random.Generator, SimpleNamespace(uniform=lambda *_: next(at_s)))
    gap_s = _gap_s([SimulatedMove(0, 0, 4)], Delays(), NODE_OF, scripted)
    paper.row(
        "3.4, figure 4", "gap where old and new node look 0.5 and 9.5 s after a plan", 9, gap_s
    )


def _drawn_gaps_s(together: int, delays: Delays) -> Floats:
    """Draw for how long ten redeploys leave an executor nowhere, shape (DRAWS,)."""
    polls = np.random.default_rng(0)

    def gap_s() -> float:
        shifts = [SimulatedMove(e, *polls.choice(8, 2, replace=False)) for e in range(together)]
        return _gap_s(shifts, delays, NODE_OF, polls)

    gaps_s = np.array([gap_s() for _ in range(DRAWS * REDEPLOYS)])
    drawn_s: Floats = gaps_s.reshape(DRAWS, REDEPLOYS).sum(axis=1)
    return drawn_s


def _full_window_s(paper: Paper, usual_tps: float, pending: float) -> None:
    """Compute for how long an executor is nowhere beyond what the window of sentences hides.

    A sentence needs a given executor of bolt 1 once in 12, and one of bolt 2 for at least one of
    its ten words. The spouts go on until the sentences that wait for it fill the window.
    """
    share = np.array([1 / 12] * 12 + [1 - (1 - 1 / 24) ** 10] * 24)
    hidden_s = pending / usual_tps / share
    what = "N-Storm, M = 1: seconds until the window is full of sentences that wait for an executor"
    note = "arithmetic: the window over the throughput, over how many sentences need it"
    both = float(hidden_s[0]), float(hidden_s[-1])
    paper.row("5.2.1", f"{what} of bolt 1 and of bolt 2", None, both, note=note)
    polls, node_of = np.random.default_rng(0), NODE_OF
    stalls_s = []
    for _ in range(DRAWS * REDEPLOYS):
        shift = SimulatedMove(int(polls.integers(36)), *polls.choice(8, 2, replace=False))
        nowhere_s = _gap_s([shift], Delays(), node_of, polls)
        stalls_s.append(max(nowhere_s - hidden_s[shift.executor], 0.0))
    drawn_s = np.array(stalls_s).reshape(DRAWS, REDEPLOYS).sum(axis=1)
    what = f"N-Storm, M = 1: seconds of ten redeploys with a full window: mean of {DRAWS} draws,"
    what += " and in how many per cent of them it is 20 s or more"
    ours = float(drawn_s.mean()), 100 * float((drawn_s >= 20).mean())
    paper.row("5.2.1", what, None, ours, note="arithmetic on TS, TW and the window")


def _gap_s(
    shifts: list[SimulatedMove], delays: Delays, node_of: list[int], polls: np.random.Generator
) -> float:
    """Compute for how long at least one of the moved executors runs nowhere, by the model."""
    made = changes(System.N_STORM, shifts, 0.0, delays=delays, node_of=node_of, random=polls)
    stops = {change.who: change.at_s for change in made if change.act is Act.STOP}
    starts = {change.who: change.at_s for change in made if change.act is Act.RUN}
    nowhere_s, until_s = 0.0, 0.0
    for who, at_s in sorted(stops.items(), key=lambda stop: stop[1]):
        nowhere_s += max(starts[who] - max(at_s, until_s), 0.0)
        until_s = max(until_s, starts[who])
    return nowhere_s


def _degradation(paper: Paper, settings: Settings, runs: Mapping[str, list[Measures]]) -> None:
    _gaps(paper)
    still = settings["still"]
    usual_tps = float(np.median([_usual_tps(still, seed) for seed in SEEDS]))
    _full_window_s(paper, usual_tps, still.feed.pending * 2.0)
    silence = "30 s of silence are set, as in the text: 9 × 30, and the 10 s from 590 s to the end"
    emptied = f"{silence}, less the first second of each, in which what is on its way ends"
    restart = "ten restarts of 10 s are set, as in the text; 155 s take 16 s each (below)"
    polls = (
        "polls and window make 6 s in the mean, and 20 s or more in hardly any draw (3.4, below)"
    )
    for name, label, level, printed, why in (
        ("storm", "Storm", 60, 279, silence),
        ("storm", "Storm", 100, 267, emptied),
        ("storm-star", "Storm*", 60, 155, restart),
        ("n-storm", "N-Storm", 60, 20, polls),
    ):
        what = _seeds(f"{label}: seconds of 600 at ≥ {level} % degradation")
        ours, lab = _spread(runs[name], f"down_{level}_s"), LAB_S[name, level]
        paper.row("5.2.1, figure 9a", what, printed, ours, differs=f"{HARDWARE}: {why}", lab=lab)
    usual = settings["storm-star"]
    slower = replace(usual, delays=structs.replace(usual.delays, worker_start_s=STAR_RESTART_S))
    longer = _spread(_by_seed(still, slower), "down_60_s")
    what = _seeds(f"Storm*, if a restart takes {STAR_RESTART_S:g} s: seconds at ≥ 60 %")
    note = "what it takes: 9 × 16 and the last 10 s of the run are 154 s; the text says over 10 s"
    paper.row("5.2.1, figure 9a", what, None, longer, note=note)
    stops_s = [_longest_stop_s(_result(settings["n-storm"], seed)) for seed in SEEDS]
    stop_s = float(np.median(stops_s)), min(stops_s), max(stops_s)
    what = _seeds("N-Storm: longest stop of a redeploy, s, by whole seconds at zero")
    why = f"{HARDWARE}: a gap of the polls that outlasts the window stops everything"
    holds = max(stop_s) < 1
    paper.row("5.2.1", what, "< 1", stop_s, holds=holds, differs=why, lab=LAB_STOP_S)
    what = _seeds("nstorm: seconds of 600 at ≥ 60 % degradation")
    ours = _spread(runs["nstorm"], "down_60_s")
    note = "not a system of the paper"
    paper.row("5.2.1", what, None, ours, note=note, lab=LAB_S["nstorm", 60])


def _longest_stop_s(result: SimulationResult) -> float:
    """Count the seconds in a row in which nothing came through, at most."""
    flows = np.flatnonzero(result.throughput_tps > 0)
    ends = np.concatenate(([-1], flows, [len(result.throughput_tps)]))
    return float(np.diff(ends).max() - 1)


def _gain(one_down_s: float, other_down_s: float) -> float:
    """Give by how many per cent a run of 600 s has more, if seconds of degradation give nothing."""
    return 100 * ((600 - one_down_s) / (600 - other_down_s) - 1)


def _total_throughput(paper: Paper, runs: Mapping[str, list[Measures]]) -> None:
    where = "5.2.1, figure 10a"
    why = f"{HARDWARE}: its seconds of degradation alone make as much (next row)"
    printed_s = {"storm": 279, "storm-star": 155, "n-storm": 20}
    ours_s = {name: _spread(runs[name], "down_60_s")[0] for name in printed_s}
    for one, other, printed in (
        ("storm-star", "storm", 41),
        ("n-storm", "storm-star", 25),
        ("n-storm", "storm", 75),
    ):
        what, gains = f"total throughput, {one} over {other}, %", _gains(runs[one], runs[other])
        paper.row(where, _seeds(what), printed, gains, differs=why)
        alone = tuple(_gain(down_s[one], down_s[other]) for down_s in (printed_s, ours_s))
        what = f"{what}, by the seconds at ≥ 60 % alone: of the printed ones and of ours"
        paper.row(where, what, None, alone, note="arithmetic: such a second counts as zero")


def _gains(one: Sequence[Measures], other: Sequence[Measures]) -> tuple[float, float, float]:
    """Compare the total throughput of the same seeds, in per cent."""
    pairs = zip(one, other, strict=True)
    return _spread([{"gain": 100 * (a["tps"] / b["tps"] - 1)} for a, b in pairs], "gain")


def _many_moves(paper: Paper, settings: Mapping[str, RunSetting], one: list[Measures]) -> None:
    """Compare M, lazy kill and the cycles of N-Storm."""
    still, usual = settings["still"], settings["n-storm"]

    def runs(together: int, **delays: float) -> list[Measures]:
        setting = _redeploying(usual, together)
        return _by_seed(still, replace(setting, delays=structs.replace(usual.delays, **delays)))

    by_m = {1: one} | {m: runs(m) for m in TOGETHER}
    more = f"118 s are more than the polls leave in any of {DRAWS} draws (3.4)"
    for m in TOGETHER:
        what = _seeds(f"N-Storm, M = {m}: seconds of 600 at ≥ 60 %")
        printed, ours = (118 if m == 16 else None), _spread(by_m[m], "down_60_s")
        paper.row("5.2.2, figure 9b", what, printed, ours, differs=f"{HARDWARE}: {more}")
    for m in (8, 16):
        zero_s = _spread(by_m[m], "down_100_s")
        what = _seeds(f"N-Storm, M = {m}: seconds at zero throughput")
        paper.row("5.2.2, figure 9b", what, None, zero_s)
        why = f"{HARDWARE}: not with every seed"
        what = f"throughput drops to zero at M = {m}, with every seed"
        paper.claim("5.2.2, figure 9b", what, zero_s[1] > 0, differs=why)
    _throughput_by_m(paper, usual, by_m)
    lazy = runs(16, kill_s=LAZY_KILL_S)
    for level, printed in ((60, 84), (100, 53)):
        what = _seeds(f"N-Storm+, M = 16, lazy kill: seconds of 600 at ≥ {level} %")
        ours = _spread(lazy, f"down_{level}_s")
        why = f"{HARDWARE}: more, too, than the polls leave with lazy kill in any draw (3.4)"
        seen_s = LAB_S["nstorm, M = 16", level]
        paper.row("5.2.3, figure 9c", what, printed, ours, differs=why, lab=seen_s)
    where, what = "5.2.3, figure 10c", "N-Storm+, M = 16, lazy kill: throughput over N-Storm, %"
    why = f"{HARDWARE}: its seconds of degradation alone make as much (next row)"
    paper.row(where, _seeds(what), 11, _gains(lazy, by_m[16]), differs=why)
    ours_s = _spread(lazy, "down_60_s")[0], _spread(by_m[16], "down_60_s")[0]
    what = f"{what}, by the seconds at ≥ 60 % alone: of the printed ones, 84 and 118, and of ours"
    alone, note = (_gain(84, 118), _gain(*ours_s)), "arithmetic: such a second counts as zero"
    paper.row(where, what, None, alone, note=note)
    shorter = [
        runs(16, supervisor_s=ts, worker_s=tw, kill_s=LAZY_KILL_S) for ts, tw in CYCLES_S[1:]
    ]
    _cycles(paper, [lazy, *shorter], still.hardware.cores)


def _throughput_by_m(paper: Paper, usual: RunSetting, by_m: Mapping[int, list[Measures]]) -> None:
    where = "5.2.2, figure 10b"
    down_s = {m: _spread(got, "down_60_s")[0] for m, got in by_m.items()}
    for m in TOGETHER:
        what = _seeds(f"N-Storm, M = {m}: total throughput over M = 1, %")
        paper.row(where, what, None, _gains(by_m[m], by_m[1]))
        what = f"N-Storm, M = {m}: total throughput over M = 1, %, by the seconds at ≥ 60 % alone"
        alone = _gain(down_s[m], down_s[1])
        paper.row(where, what, None, alone, note="arithmetic: such a second counts as zero")
    tps = {m: _spread(got, "tps")[0] for m, got in by_m.items()}
    chance = f"{HARDWARE}: seconds of degradation make little; what random moves find good or bad"
    chance += " differs more by seed (rows above)"
    least = min(tps, key=lambda m: tps[m])
    paper.claim(where, "total throughput is least at M = 16", least == 16, differs=chance)
    paper.claim(where, "total throughput at M = 4 is above M = 2", tps[4] > tps[2], differs=chance)
    setting = _redeploying(usual, 4)
    later = [_later_over_start(_result(setting, seed)) for seed in SEEDS]
    spread = float(np.median(later)), min(later), max(later)
    what = _seeds("N-Storm, M = 4: throughput after three redeploys over that of the start, %")
    why = f"{HARDWARE}: a chance of the random placements, better or worse by the seed"
    paper.row(where, what, 5, spread, differs=why)


def _redeploying(usual: RunSetting, together: int) -> RunSetting:
    random_moves = structs.replace(usual.redeploy or Redeploy(), executors=together)
    return replace(usual, redeploy=random_moves)


def _later_over_start(result: SimulationResult) -> float:
    """Compare 190 to 230 s, the third redeploy being done and the fourth to come, with 5 to 50."""
    later, start = result.throughput_tps[190:230], result.throughput_tps[5:50]
    return 100 * float(later.mean() / start.mean() - 1)


def _cycles(paper: Paper, runs: list[list[Measures]], cores: float) -> None:
    where = "5.2.4, figure 9d"
    for (ts, tw), got in zip(CYCLES_S, runs, strict=True):
        what = _seeds(f"N-Storm+, M = 16, TS {ts:.2g} s, TW {tw:.2g} s: seconds at ≥ 60 %")
        paper.row(where, what, None, _spread(got, "down_60_s"))
        what = _seeds(f"N-Storm+, M = 16, TS {ts:.2g} s, TW {tw:.2g} s: sentences/s")
        paper.row("5.2.4, figure 10d", what, None, _spread(got, "tps"))
    down_s = [_spread(got, "down_60_s")[0] for got in runs]
    tps = [_spread(got, "tps")[0] for got in runs]
    why = f"{HARDWARE}: medians of {len(SEEDS)} seeds"
    lower = "5.2.4, figure 10d"
    what = "degradation falls over the first three settings"
    paper.claim(where, what, _falls(down_s[:3]), differs=why)
    paper.claim(lower, "throughput rises over the first three", _falls(tps[2::-1]), differs=why)
    free = "simulated: polls cost nothing here, so that shorter ones only help"
    worse, fewer = down_s[3] > max(down_s[1:3]), tps[3] < min(tps[1:3])
    what = "the last setting is worse than the second and the third"
    paper.claim(where, what, worse, differs=free)
    paper.claim(lower, f"{what}, by throughput", fewer, differs=free)
    # A look at ZooKeeper or at the store each cycle; a write for each plan that concerns the node.
    reads = tuple(2 / ts + 8 / tw for ts, tw in CYCLES_S)
    what = "looks a second, 2 nodes of 4 workers, by setting"
    paper.row("5.2.5, figure 11", what, None, reads, note="arithmetic: 2 / TS + 8 / TW")
    cost_ms = 1000 * (1 - tps[1] / tps[3]) * 2 * cores / (reads[3] - reads[1])
    what = "processor ms of a look above which the last setting is worse than the second"
    note = "what it takes: the gain in throughput as CPU of all cores, over the looks it has more"
    paper.row(lower, what, None, cost_ms, note=note)
    what = "store writes a second, one for each node and redeploy: few"
    paper.row("5.2.5, figure 11", what, None, 2 / 60, note="arithmetic: 2 nodes, one plan in 60 s")


def _falls(values: list[float]) -> bool:
    return values == sorted(values, reverse=True)
