"""Draws charts; the only module of this package that needs matplotlib."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.papers.table import Chart


def draw(chart: Chart, folder: Path) -> Path:
    """Draw a chart."""
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    for number, line in enumerate(chart.lines):
        if any(isinstance(x, str) for x in line.x):
            _bars(axes, chart, number)
        else:
            axes.plot(line.x, line.y, lw=1.2, marker="." if len(line.x) < 50 else "")
            axes.lines[-1].set_label(line.label)
    axes.set(title=chart.title, xlabel=chart.x_label, ylabel=chart.y_label)
    axes.set_ylim(bottom=0)
    if len(chart.lines) > 1:
        axes.legend()
    path = folder / f"{chart.name}.png"
    figure.savefig(path, format="png", dpi=120)
    return path


def _bars(axes: Axes, chart: Chart, number: int) -> None:
    """Draw one bar of each group."""
    line, width = chart.lines[number], 0.8 / len(chart.lines)
    left = [i + width * (number + 0.5) - 0.4 for i in range(len(line.x))]
    axes.bar(left, line.y, width, label=line.label)
    axes.set_xticks(range(len(line.x)), [str(x) for x in line.x])
