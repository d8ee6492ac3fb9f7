"""Draws the run: throughput and inter-node ratio over time, with the moves."""

from io import BytesIO

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deploy.demo.report import Recording


def draw(recording: Recording) -> bytes:
    """Draw a run."""
    figure = Figure(figsize=(10, 6), layout="constrained")
    rate, share = figure.subplots(2, 1, sharex=True)
    start_s = recording.windows[0].t_s
    seconds = [window.t_s - start_s for window in recording.windows]
    rate.plot(seconds, [window.acked for window in recording.windows], lw=1)
    rate.set_ylabel("sentences acked per second")
    rate.set_ylim(bottom=0)
    times = [time_s - start_s for time_s, _ in recording.inter_node]
    share.plot(times, [frac for _, frac in recording.inter_node], lw=1)
    share.set_ylabel("inter-node share of all tuples")
    share.set_xlabel("seconds")
    share.set_ylim(0, 1)
    for axes in (rate, share):
        _mark(axes, recording, start_s)
    rate.set_title(
        f"Storm {recording.storm_version}: lines = moves of the controller, then both placements "
        "in turn, saturated:\ngrey = Storm's placement, green = the new one"
    )
    written = BytesIO()
    figure.savefig(written, format="png", dpi=120)
    return written.getvalue()


def _mark(axes: Axes, recording: Recording, start_s: float) -> None:
    for side, span in recording.taken:
        color = "0.9" if side == "a" else "palegreen"
        axes.axvspan(span.began_s - start_s, span.ended_s - start_s, color=color)
    for move in recording.moves:
        began_s = move.ended_s - sum(move.phase_s.values())
        axes.axvline(began_s - start_s, color="tab:orange", lw=0.7)
