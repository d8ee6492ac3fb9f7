"""Shows a running demo: live in a terminal, else as plain lines."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from deploy.demo.gauges import Look, WorkerLook

# What each step takes on two cores, for the bar only.
STEPS: tuple[tuple[str, float], ...] = (
    ("start the cluster", 30),
    ("start the topology", 40),
    ("saturate Storm's own placement", 22),
    ("feed, nothing moves", 20),
    ("the controller works", 70),
    ("compare both placements in turn, saturated", 95),
    ("drain and stop", 12),
)
LINE_EVERY_S = 5.0


class Screen:
    """What the user sees."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._step = -1
        self._since_s = self._line_s = time.monotonic()
        self._look: Look | None = None
        self._tps = 0
        self._live = Live(
            console=console, get_renderable=self._render, refresh_per_second=2, transient=True
        )

    def __enter__(self) -> Self:
        """Begin to show."""
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the terminal back."""
        self._live.stop()

    def next_step(self) -> None:
        """Go on to the next of `STEPS`."""
        self._step += 1
        self._since_s = time.monotonic()
        self.say(f"{self._done_frac():4.0%} {STEPS[self._step][0]}")

    def show(self, look: Look, tps: int) -> None:
        """Show what is now.

        Parameters
        ----------
        tps : int
            Sentences acked in the last second.
        """
        self._look, self._tps = look, tps
        if not self._console.is_terminal and time.monotonic() - self._line_s >= LINE_EVERY_S:
            self._line_s = time.monotonic()
            cpu = " ".join(_share(worker) for worker in look.workers)
            ratio = _ratio(look)
            self.say(f"     {tps}/s acked, inter-node {ratio}, cpu {cpu}, {_decision(look)}")

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _done_frac(self) -> float:
        """Compute how much of the run is over; a step that takes too long stays at its end."""
        total_s = sum(usual_s for _, usual_s in STEPS)
        done_s = sum(usual_s for _, usual_s in STEPS[: max(self._step, 0)])
        spent_s = time.monotonic() - self._since_s
        return (done_s + min(spent_s, STEPS[max(self._step, 0)][1])) / total_s

    def _render(self) -> Group:
        step = STEPS[max(self._step, 0)][0]
        bar = ProgressBar(total=1.0, completed=self._done_frac(), width=60)
        look = self._look
        if look is None:
            return Group(Text(step), bar)
        return Group(
            _table(look),
            Text(f"{self._tps} sentences/s acked, inter-node traffic {_ratio(look)} of all"),
            Text(f"{sum(m.outcome == 'MOVED' for m in look.ended)} moved; {_decision(look)}"),
            Text(step),
            bar,
        )


def _table(look: Look) -> Table:
    table = Table("node", "worker", "CPU", "executors")
    host = ""
    for worker in look.workers:
        shown = "" if worker.host == host else worker.host
        host = worker.host
        table.add_row(shown, worker.port, _share(worker), worker.holds)
    return table


def _share(worker: WorkerLook) -> str:
    return "?" if worker.cpu_frac is None else f"{worker.cpu_frac:.0%}"


def _ratio(look: Look) -> str:
    return "?" if look.inter_node_frac is None else f"{look.inter_node_frac:.3f}"


def _decision(look: Look) -> str:
    return f"{look.outcome}: {look.reason}" if look.outcome else "no decision yet"
