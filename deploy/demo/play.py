"""Runs the demo from the first process to the report."""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import psutil

from controller.storm.collect import PAUSED
from deploy.demo.calm import Calm
from deploy.demo.gauges import Gauges, Look
from deploy.demo.picture import draw
from deploy.demo.report import Fed, Recording, Saturated, assemble
from deploy.demo.screen import Screen
from deploy.demo.windows import WINDOW_S, WINDOWS, DemoSpan, is_warm, medians_tps
from deploy.lab import LabError
from deploy.lab.cluster import AGENT_JAR, Lab, plan_lab, sweep
from deploy.lab.home.assemble import REPOSITORY, STORM_VERSION
from deploy.lab.ledger import SATURATE, Ledger
from deploy.lab.operator import beside, kill_meters
from kvstore.zookeeper import Session

OUT_DIR = REPOSITORY / "build" / "demo"
JOURNAL_DIR = OUT_DIR / "journal"
NAME = "demo"
CYCLE_S = 2.0
# An executor that has moved settles for about 10 s; the smoothed load needs about as long again
# until it shows the new state (0.3 of each cycle). The default would be most of the run.
COOLDOWN_S = 20.0
LAB_CONF = {
    "nstorm.cycle.secs": CYCLE_S,
    "nstorm.cooldown.executor.secs": COOLDOWN_S,
    "nstorm.journal.dir": str(JOURNAL_DIR),
    # Nothing holds a worker to its half of a node. Waking up for few tuples at a time costs so much
    # that 40 % of the load takes most of the CPU, and with halves no worker has room for a move.
    "nstorm.worker.cpu.capacity": len(os.sched_getaffinity(0)) / 2,
}
TOPOLOGY_CONF = {
    # What bounds "as many as go": sentences in flight for each spout task.
    "topology.max.spout.pending": 1000,
    # The optimising compiler works for minutes where four JVMs share two cores: "before" would be
    # measured half compiled, and "after" would look better than the moves made it.
    "topology.worker.childopts": "-XX:TieredStopAtLevel=1",
}
FED_FRAC = 0.4

FIRST_WARM_UP_S, WARM_UP_S = 60.0, 30.0
MEASURE_S = float(WINDOWS * WINDOW_S)
# The queues of the saturation are worked off, and no second of it is left in the ledger's windows.
RECOVER_S = 4.0
FED_S = 12.0
# The whole run, and what of it is needed after the controller's work.
RUN_S, AFTERWARDS_S, LEAST_WORK_S = 290.0, 90.0, 40.0
SETTLE_LIMIT_S = 60.0


class _Run:
    """One run, on a cluster that is up."""

    def __init__(self, lab: Lab, gauges: Gauges, screen: Screen) -> None:
        self.ledger: Ledger = lab.ledger(NAME)
        self.inter_node: list[tuple[float, float]] = []
        self._lab = lab
        self._gauges = gauges
        self._screen = screen

    def watch(self, limit_s: float, until: Callable[[Look], bool] = lambda look: False) -> bool:
        """Look once a second, for so long or until something is seen; return whether it was."""
        end_s = time.monotonic() + limit_s
        while True:
            if self._lab.daemon("controller") is None:
                logs = self._lab.layout.nimbus_dir / "logs"
                raise LabError(f"the controller has ended by itself: see controller.log in {logs}")
            look, now_s = self._gauges.look(), time.time()
            if look.inter_node_frac is not None:
                self.inter_node.append((now_s, look.inter_node_frac))
            seconds = self.ledger.windows(now_s - 4)
            self._screen.show(look, seconds[-1].acked if seconds else 0)
            if until(look):
                return True
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                return False
            time.sleep(min(1.0, left_s))

    def saturate(self, warm_up_s: float) -> Saturated:
        """Feed as much as goes; measure once that no longer grows, or the time is over."""
        self._screen.next_step()
        self.ledger.set_rate(SATURATE)
        began_s = time.time()
        warm = self.watch(warm_up_s, lambda look: is_warm(self.ledger.windows(began_s + 1)))
        span, frac, cpu_s = self._measure(MEASURE_S + 1)
        return Saturated(span, frac, cpu_s, round(os.getloadavg()[0], 1), warm)

    def feed(self, rate_tps: float) -> Fed:
        """Feed at a rate, and measure once the moves under way have settled."""
        self._screen.next_step()
        self.ledger.set_rate(rate_tps)
        self.watch(RECOVER_S)
        self.watch(SETTLE_LIMIT_S, lambda look: look.entries == 0)
        return Fed(*self._measure(FED_S))

    def work(self, limit_s: float) -> tuple[DemoSpan, bool]:
        """Watch the controller until it comes to rest; tell whether it did."""
        self._screen.next_step()
        calm, began_s = Calm(), time.time()

        def at_rest(look: Look) -> bool:
            nonlocal calm
            newest_s = max((move.ended_s for move in look.ended), default=0.0)
            resting = look.entries > 0 or time.time() - newest_s < COOLDOWN_S
            calm = calm.after(look.tick, look.outcome, resting=resting)
            return calm.reached

        came_to_rest = self.watch(limit_s, at_rest)
        return DemoSpan(began_s, time.time()), came_to_rest

    def _measure(self, length_s: float) -> tuple[DemoSpan, float | None, float]:
        mark, before_s, began_s = self._gauges.mark(), self._worker_cpu_s(), time.time()
        self.watch(length_s)
        span, cpu_s = DemoSpan(began_s, time.time()), self._worker_cpu_s() - before_s
        return span, self._gauges.inter_node_frac_since(mark), cpu_s

    def _worker_cpu_s(self) -> float:
        spent = (psutil.Process(pid).cpu_times() for pid in self._lab.worker_pids().values())
        return sum(times.user + times.system for times in spent)


def run_demo(screen: Screen, out_dir: Path = OUT_DIR) -> dict[str, Any]:
    """Run the demo and write its report.

    Parameters
    ----------
    out_dir : Path
        Where report.json and report.png go.
    """
    sweep()
    shutil.rmtree(JOURNAL_DIR, ignore_errors=True)  # of an earlier run, of another cluster
    began_s = time.monotonic()
    screen.next_step()
    with plan_lab(NAME, agent_jar=AGENT_JAR, conf=LAB_CONF) as lab:
        lab.start_agents()
        screen.next_step()
        lab.submit(NAME, TOPOLOGY_CONF)
        lab.wait_ready(NAME)
        with Session(lab.storm_zookeeper) as session:
            session.connect()
            session.put(PAUSED, b"the demo measures Storm's own placement first")
            recording = _play(lab, session, screen, began_s)
    report = assemble(recording)
    write(out_dir, report, recording)
    return report


def _play(lab: Lab, session: Session, screen: Screen, began_s: float) -> Recording:
    """Measure, let the controller work, measure again; the controller is paused at first."""
    with beside(lab, NAME, mode="auto"):
        gauges = Gauges(session, NAME)
        run = _Run(lab, gauges, screen)
        pids, meters, first_s = lab.worker_pids(), kill_meters(lab), time.time()
        saturated = run.saturate(FIRST_WARM_UP_S)
        rate_tps = round(FED_FRAC * _throughput_tps(run.ledger, saturated))
        fed = run.feed(rate_tps)
        session.delete(PAUSED)
        limit_s = RUN_S - AFTERWARDS_S - (time.monotonic() - began_s)
        worked, came_to_rest = run.work(max(limit_s, LEAST_WORK_S))
        session.put(PAUSED, b"the demo measures the new placement")
        fed_again = run.feed(rate_tps)
        saturated_again = run.saturate(WARM_UP_S)
        screen.next_step()
        totals = run.ledger.drain()
        return Recording(
            storm_version=STORM_VERSION,
            windows=tuple(run.ledger.windows(first_s)),
            inter_node=tuple(run.inter_node),
            rate_tps=rate_tps,
            saturated=(saturated, saturated_again),
            fed=(fed, fed_again),
            worked=worked,
            came_to_rest=came_to_rest,
            cooldown_s=COOLDOWN_S,
            moves=gauges.look().ended,
            totals=totals,
            restarted_pids=sum(lab.worker_pids().get(slot) != pid for slot, pid in pids.items()),
            meters_risen={name: n - meters[name] for name, n in kill_meters(lab).items()},
            took_s=time.monotonic() - began_s,
        )


def _throughput_tps(ledger: Ledger, saturated: Saturated) -> float:
    # The ledger writes a second's window within a second of its end.
    time.sleep(1.0)
    span = saturated.span
    return median(medians_tps(ledger.windows(span.began_s, span.ended_s)))


def write(out_dir: Path, report: dict[str, Any], recording: Recording) -> None:
    """Write report.json and report.png, each whole or not at all.

    Parameters
    ----------
    out_dir : Path
        Where; made if need be.
    report : dict
        From `assemble`.
    """
    files = {
        out_dir / "report.json": json.dumps(report, indent=1).encode(),
        out_dir / "report.png": draw(recording),
    }
    out_dir.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=out_dir) as partial:
        for file, data in files.items():
            (Path(partial) / file.name).write_bytes(data)
        for file in files:
            (Path(partial) / file.name).rename(file)
