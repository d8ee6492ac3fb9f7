"""Draws rounds as figures 8 and 9 of 004 do: rates over time, and seconds by degradation."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deploy.lab.ledger import DEGRADATION_FRACS
from tests.bench.downtime import Round
from tests.bench.downtime.report import Shown, shown


def draw(rounds: Sequence[Round], file: Path) -> None:
    """Draw a line of axes for each load into a PNG."""
    loads = list(dict.fromkeys(r.load for r in rounds))
    figure = Figure(figsize=(15, 5 * len(loads)), layout="constrained")
    axes = figure.subplots(len(loads), 2, squeeze=False)
    for load, (rates, bars) in zip(loads, axes, strict=True):
        systems = shown(rounds, load)
        rates.set(title=load, xlabel="seconds", ylabel="sentences acked per second")
        bars.set(title=load, xlabel="degradation", ylabel="seconds")
        for number, (name, one) in enumerate(systems.items()):
            acked = one.acked_10ms[0].sum(axis=1)
            rates.plot(range(len(acked)), acked, lw=1.2, color=f"C{number}", label=name)
            _bars(bars, one, number, len(systems))
        rates.set_ylim(bottom=0)
        rates.legend(fontsize="small")
    figure.savefig(file, format="png", dpi=120)


def _bars(axes: Axes, one: Shown, number: int, systems: int) -> None:
    width, places = 0.8 / systems, range(len(DEGRADATION_FRACS))
    left = [place + width * (number + 0.5) - 0.4 for place in places]
    axes.bar(left, list(one.degraded_s.values()), width, color=f"C{number}")
    axes.set_xticks(places, [f"≥ {frac:.0%}" for frac in DEGRADATION_FRACS])
