"""Measures runs, compares them with what is expected and with figures from elsewhere, and prints.

A scenario file holds the printed text below its marker. So the text must not depend on anything
but the scenario: no times, no machine.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from controller.core.cluster import Floats
from controller.core.decision import Outcome
from deploy.sim import ScenarioError
from deploy.sim.engine import SAMPLE_S, SimulationResult, run
from deploy.sim.fits import fits
from deploy.sim.scenario import Expectation, RunSetting, Scenario
from deploy.sim.yardstick import DEGRADATION_LEVELS, NodeMove, degradation_s, ping_pongs, thrash

PLOT_COLUMNS = 60
BARS = "▁▂▃▄▅▆▇█"

Measures = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Comparison:
    """An expectation and what came of it."""

    text: str
    left: float
    right: float
    holds: bool


@dataclass(frozen=True, slots=True, eq=False)
class ScenarioReport:
    """All runs of a scenario in the order of the file, and their measures by ``run.measure``."""

    scenario: Scenario
    results: tuple[SimulationResult, ...]
    measures: Measures
    comparisons: tuple[Comparison, ...]

    @property
    def holds(self) -> bool:
        """Whether everything is as expected."""
        return all(comparison.holds for comparison in self.comparisons)


def simulate_all(scenario: Scenario) -> ScenarioReport:
    """Run all runs of a scenario.

    Raises ScenarioError if an expectation or a figure names a measure that there is not.
    """
    results = tuple(run(setting, scenario.seed) for setting in scenario.runs)
    runs = list(zip(scenario.runs, results, strict=True))
    usual_tps, alone = None, None
    for setting, result in runs:
        if setting.name == scenario.baseline:
            usual_tps = float(result.throughput_tps[round(setting.warm_s) :].mean())
        if setting.name == scenario.left_alone:
            alone = result
    measures = {
        f"{setting.name}.{name}": value
        for setting, result in runs
        for name, value in {
            **measure(setting, result, usual_tps),
            **(dict(fits(setting, result, alone)) if alone else {}),
        }.items()
    }
    comparisons = tuple(_compare(one, measures) for one in scenario.expect)
    for figure in scenario.figures:
        _value(figure.measure, measures)
    return ScenarioReport(scenario, results, measures, comparisons)


def measure(
    setting: RunSetting, result: SimulationResult, usual_tps: float | None
) -> dict[str, float]:
    """Take the measures of a run; ``_start`` and ``_end`` are means over the first and last window.

    `usual_tps` is the mean throughput of the run without moves; without it, degradation is not
    measured.
    """
    warm, window = round(setting.warm_s), round(setting.window_s)
    spans = {"start": slice(warm, warm + window), "end": slice(-window, None)}
    found = {"tps": float(result.throughput_tps.mean())}
    for when, span in spans.items():
        cpu, tps = result.cpu_frac[span], float(result.throughput_tps[span].mean())
        found[f"tps_{when}"] = tps
        found[f"ratio_{when}"] = float(result.inter_node_frac[span].mean())
        found[f"cpu_{when}"] = float(cpu.mean())
        found[f"cpu_max_{when}"] = float(cpu.mean(axis=0).max())
        # Little's law; nothing flows: no latency.
        found[f"latency_ms_{when}"] = float(result.pending[span].mean()) / tps * 1e3 if tps else 0.0
    found["moves"] = float(len(result.moves))
    found["returns"] = float(ping_pongs(_node_moves(setting, result), math.inf))
    found["thrash"] = thrash(result.inter_node_frac[warm:])
    if not math.isinf(setting.hardware.memory_mb):
        found["memory_max"] = float(result.memory_frac.max())
    found["lost"] = result.lost
    found["stale"] = float(sum(r.outcome is Outcome.STALE_METRICS for r in result.reports))
    if usual_tps is not None:
        lasting_s = degradation_s(result.throughput_tps[warm:], SAMPLE_S, usual_tps)
        for level, seconds in zip(DEGRADATION_LEVELS, lasting_s, strict=True):
            found[f"down_{level * 100:.0f}_s"] = seconds
    return found


def _node_moves(setting: RunSetting, result: SimulationResult) -> Iterator[NodeMove]:
    """List the moves by cycle, between nodes; cycles take 5 s in a run without controller."""
    cycle_s = setting.controller.cycle_s if setting.controller else 5.0
    size = setting.hardware.workers
    for at_s, shift in result.moves:
        source, target = shift.source // size, shift.target // size
        yield NodeMove(int(at_s // cycle_s), str(shift.executor), f"n{source}", f"n{target}")


def _value(name: str, measures: Measures) -> float:
    try:
        return float(name)
    except ValueError:
        pass
    if name not in measures:
        run_name = name.partition(".")[0]
        known = [m for m in measures if m.startswith(f"{run_name}.")] or sorted(
            {m.partition(".")[0] for m in measures}
        )
        raise ScenarioError(f"{name}: no such measure, there are {', '.join(known)}")
    return measures[name]


def _compare(one: Expectation, measures: Measures) -> Comparison:
    left, right = _value(one.left, measures), _value(one.right, measures)
    holds = {"<=": left <= right, ">=": left >= right, "<": left < right, ">": left > right}
    return Comparison(one.text, left, right, holds[one.sign])


def text(report: ScenarioReport) -> str:
    """Print a table with a column a run, the comparisons, the figures, and small plots."""
    names = [setting.name for setting in report.scenario.runs]
    rows, found = [["measure", *names]], report.measures
    for name in dict.fromkeys(_measure_of(key, names) for key in found):
        keys = [f"{run_name}.{name}" for run_name in names]
        rows.append([name, *(_short(found[key]) if key in found else "-" for key in keys)])
    blocks = [_table(rows)]
    if report.comparisons:
        blocks.append(_table([_expected(comparison) for comparison in report.comparisons]))
    if report.scenario.figures:
        blocks.append(_table([["figure", "theirs", "ours", "error", "source"], *_figures(report)]))
    blocks.append(_plot("throughput", [(r.name, r.throughput_tps) for r in report.results]))
    blocks.append(_plot("inter-node ratio", [(r.name, r.inter_node_frac) for r in report.results]))
    return "\n".join(blocks)


def _measure_of(key: str, names: Sequence[str]) -> str:
    """Take the run's name off."""
    return next(key.removeprefix(f"{name}.") for name in names if key.startswith(f"{name}."))


def _expected(comparison: Comparison) -> list[str]:
    verdict = "holds" if comparison.holds else "FAILS"
    return [verdict, comparison.text, f"({_short(comparison.left)}, {_short(comparison.right)})"]


def _figures(report: ScenarioReport) -> list[list[str]]:
    rows = []
    for figure in report.scenario.figures:
        ours = report.measures[figure.measure]
        error = f"{ours / figure.value - 1:+.0%}" if figure.value else "-"
        theirs = _short(figure.value)
        rows.append([figure.measure, theirs, _short(ours), error, figure.source])
    return rows


def _short(value: float) -> str:
    """Print four digits; what floats add at the end of a sum is no zero to print."""
    shown = f"{round(value, 4):.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    return "0" if shown == "-0" else shown


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _plot(title: str, rows: Sequence[tuple[str, Floats]]) -> str:
    """Draw a line of bars a run, each from 0 to its own highest; a dot is nothing at all."""
    width = max(len(name) for name, _ in rows)
    lines = [f"{title}, {len(rows[0][1])} s, each from 0 to the number at its end\n"]
    for name, series in rows:
        means = [float(part.mean()) for part in np.array_split(series, PLOT_COLUMNS) if part.size]
        bars = "".join(_bar(mean, max(means)) for mean in means)
        lines.append(f"{name.ljust(width)}  {bars}  {_short(max(means))}\n")
    return "".join(lines)


def _bar(value: float, most: float) -> str:
    if value <= most / 1000:
        return "·"
    return BARS[min(round(value / most * len(BARS) + 0.5) - 1, len(BARS) - 1)]
