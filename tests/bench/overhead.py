"""Compares throughput with hooks and without, in turn on one cluster.

Each round has new JVMs: what HotSpot makes of the same code differs from start to start. Turns of
one pair of JVMs cannot show that.
"""

import math
import os
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from deploy.lab import LabError
from deploy.lab.cluster import HOOKS_JAR, Lab, plan_lab
from deploy.lab.interval import paired_ratio
from deploy.lab.ledger import SATURATE
from tests.bench.frame import in_turn, load_average

HALF_WIDTH = 0.02
# Whoever looks after every round stops at a lucky one; after ten there are fewer of them.
LEAST_ROUNDS = 10
WARM_UP_TURNS = 6
TURNS = 4
# What has been stopped needs a moment to come to its full rate again.
SETTLE_S = 1.5
MEASURE_S = 3
# The ledger writes a second's window within a fifth of a second of its end.
WINDOW_WRITTEN_S = 0.4
OURS = "nstorm-"
SAMPLER = "nstorm-load"
# One sentence of five words: itself, five words, and to and from the ackers 1 + 6 + 1.
TUPLES_A_SENTENCE = 14
TOPOLOGY = {"topology.workers": 2, "topology.max.spout.pending": 1000}
CLUSTER = {
    # Hooks or none are a matter of the topology here: only its own options name the jar.
    "worker.childopts": "-Xmx256m -XX:+UseSerialGC",
    # A worker that is stopped for some seconds must not count as dead.
    "storm.zookeeper.session.timeout": 40_000,
    "supervisor.worker.timeout.secs": 120,
    "nimbus.task.timeout.secs": 120,
}


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some seconds in which the workers of one topology ran and those of the other were stopped.

    Attributes
    ----------
    cpu_s : float
        CPU time of its workers.
    thread_s : Mapping of str to float
        That of the hooks' threads, by name.
    """

    from_s: int
    to_s: int
    cpu_s: float
    thread_s: Mapping[str, float]
    acked: int = 0

    @property
    def acked_tps(self) -> float:
        return self.acked / (self.to_s - self.from_s)

    @property
    def cpu_us_a_tuple(self) -> float:
        """CPU time of the workers for each tuple sent, acks included, in microseconds."""
        return 1e6 * self.cpu_s / (self.acked * TUPLES_A_SENTENCE)


class Side:
    """A topology of two workers that can be stopped and continued."""

    def __init__(self, lab: Lab, name: str) -> None:
        pid_of, slots = lab.worker_pids(), {placed.slot for placed in lab.assignment(name)}
        self.name = name
        self.pids = sorted(pid_of[slot] for slot in slots)
        self.stretches: list[Stretch] = []
        self._ledger = lab.ledger(name)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let the workers run inside the block only."""
        self.signal(signal.SIGCONT)
        try:
            yield
        finally:
            self.signal(signal.SIGSTOP)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the workers."""
        for pid in self.pids:
            os.kill(pid, number)

    def measure(self) -> None:
        """Run for one stretch more, on whole seconds, for that is how the ledger counts."""
        with self.running():
            from_s = math.ceil(time.time() + SETTLE_S)
            time.sleep(max(0.0, from_s - time.time()))
            cpu_s, thread_s = self._spent()
            to_s = from_s + MEASURE_S
            time.sleep(max(0.0, to_s - time.time()))
            cpu_end_s, thread_end_s = self._spent()
            time.sleep(WINDOW_WRITTEN_S)
        used = {name: spent - thread_s.get(name, 0.0) for name, spent in thread_end_s.items()}
        self.stretches.append(Stretch(from_s, to_s, cpu_end_s - cpu_s, used))

    def counted(self) -> list[Stretch]:
        """Look up what was acked in each stretch; the last windows may have come late."""
        return [
            replace(
                stretch,
                acked=sum(w.acked for w in self._ledger.windows(stretch.from_s, stretch.to_s)),
            )
            for stretch in self.stretches
        ]

    def _spent(self) -> tuple[float, dict[str, float]]:
        threads: dict[str, float] = {}
        for pid in self.pids:
            for name, spent_s in thread_cpu(Path(f"/proc/{pid}"), OURS):
                threads[name] = threads.get(name, 0.0) + spent_s
        return sum(process_cpu_s(Path(f"/proc/{pid}")) for pid in self.pids), threads


def process_cpu_s(process: Path) -> float:
    """Read how much CPU time a process has used, in steps of a clock tick.

    Returns
    -------
    float
        Seconds, all its threads together.
    """
    # The command's name may hold spaces and brackets; the fields are counted after it.
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def thread_cpu(process: Path, prefix: str) -> Iterator[tuple[str, float]]:
    """Read how much CPU time some threads of a process have used, to the nanosecond.

    Parameters
    ----------
    prefix : str
        How the threads' names begin; the kernel keeps 15 characters of a name.

    Yields
    ------
    tuple of (str, float)
        Name and seconds.
    """
    for task in (process / "task").iterdir():
        try:
            name = (task / "comm").read_text().strip()
            if name.startswith(prefix):
                yield name, int((task / "schedstat").read_text().split()[0]) / 1e9
        except FileNotFoundError:  # it has ended
            continue


def run_overhead(rounds: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Measure on a cluster of its own until the ratio is known or the rounds are over."""
    on: list[Stretch] = []
    off: list[Stretch] = []
    load_averages: list[float] = []
    with plan_lab("bench-overhead", hooks_jar=HOOKS_JAR, conf=CLUSTER) as lab:
        lab.start_agents()
        for number in range(1, rounds + 1):
            with_hooks, without = _round(lab, number)
            on.append(with_hooks)
            off.append(without)
            load_averages.append(load_average())
            pairs = whole(on, off)
            if not pairs:
                tell(f"round {number}: nothing acked")
                continue
            ratio = paired_ratio([a.acked for a, _ in pairs], [b.acked for _, b in pairs])
            tell(
                f"round {number}: {with_hooks.acked_tps:.0f} sentences/s with hooks, "
                f"{without.acked_tps:.0f} without; ratio so far {ratio}"
            )
            if number >= LEAST_ROUNDS and ratio.within(HALF_WIDTH):
                break
    return report(on, off, load_averages)


def _round(lab: Lab, number: int) -> tuple[Stretch, Stretch]:
    """Start both, warm them up, measure them in turn, and end them: with hooks, then without."""
    hooked = {"topology.worker.childopts": f"-javaagent:{HOOKS_JAR}"}
    wanted: tuple[tuple[str, dict[str, str]], ...] = (("hooked", hooked), ("stock", {}))
    started = {name: _submit(lab, name, conf) for name, conf in in_turn(wanted, number)}
    on, off = (started[name] for name, _ in wanted)
    for side in (on, off):
        lab.ledger(side.name).set_rate(SATURATE)
        side.signal(signal.SIGSTOP)
    for turn in range(WARM_UP_TURNS + TURNS):
        if turn == WARM_UP_TURNS:
            on.stretches.clear()
            off.stretches.clear()
        for side in in_turn((on, off), number + turn):
            side.measure()
    if not set(lab.worker_pids().values()) >= {*on.pids, *off.pids}:
        raise LabError(f"a worker was restarted: see the logs in {lab.layout.run_dir}")
    _check_hooks(on, expected=True)
    _check_hooks(off, expected=False)
    found = total(on.counted()), total(off.counted())
    for side in (on, off):
        side.signal(signal.SIGCONT)
        lab.kill_topology(side.name)
    return found


def _submit(lab: Lab, name: str, conf: Mapping[str, Any]) -> Side:
    """Start a topology that is not fed yet, so that the other one starts as fast."""
    lab.submit(name, {**TOPOLOGY, **conf})
    lab.wait_ready(name)
    return Side(lab, name)


def _check_hooks(side: Side, *, expected: bool) -> None:
    for pid in side.pids:
        names = {name for name, _ in thread_cpu(Path(f"/proc/{pid}"), OURS)}
        if (SAMPLER in names) is not expected:
            raise LabError(f"worker {pid} of {side.name} has these threads of ours: {names}")


def total(stretches: Sequence[Stretch]) -> Stretch:
    """Add stretches up, as if they had come one right after the other."""
    threads: dict[str, float] = {}
    for stretch in stretches:
        for name, spent_s in stretch.thread_s.items():
            threads[name] = threads.get(name, 0.0) + spent_s
    return Stretch(
        0,
        sum(stretch.to_s - stretch.from_s for stretch in stretches),
        sum(stretch.cpu_s for stretch in stretches),
        threads,
        sum(stretch.acked for stretch in stretches),
    )


def whole(on: Sequence[Stretch], off: Sequence[Stretch]) -> list[tuple[Stretch, Stretch]]:
    """Pair the rounds, without those in which one side acked nothing at all."""
    return [pair for pair in zip(on, off, strict=True) if min(stretch.acked for stretch in pair)]


def report(
    on: Sequence[Stretch], off: Sequence[Stretch], load_averages: Sequence[float]
) -> dict[str, Any]:
    """Report what the rounds have shown.

    Returns
    -------
    dict
        Ready for JSON; shares are of the CPU time of the hooked workers.

    Raises
    ------
    LabError
        If there was no round in which both acked something.
    """
    pairs = whole(on, off)
    if not pairs:
        raise LabError("nothing was acked: see the logs of the workers")
    with_hooks, without = [a for a, _ in pairs], [b for _, b in pairs]
    ratio = paired_ratio([a.acked for a in with_hooks], [b.acked for b in without])
    cpu = paired_ratio([a.cpu_us_a_tuple for a in with_hooks], [b.cpu_us_a_tuple for b in without])
    return {
        "rounds": len(load_averages),
        "rounds_left_out": len(load_averages) - len(pairs),
        "throughput_on_over_off": asdict(ratio),
        "within_2_points": ratio.within(HALF_WIDTH),
        "cpu_a_tuple_on_over_off": asdict(cpu),
        "throughput_on_tps": statistics.median(a.acked_tps for a in with_hooks),
        "throughput_off_tps": statistics.median(b.acked_tps for b in without),
        "cpu_us_a_tuple_off": statistics.median(b.cpu_us_a_tuple for b in without),
        "sampler_share": thread_share(with_hooks, SAMPLER),
        "hook_threads_share": thread_share(with_hooks, OURS),
        "load_average": [min(load_averages), statistics.median(load_averages), max(load_averages)],
    }


def thread_share(stretches: Sequence[Stretch], prefix: str) -> float:
    """Give the share of some threads in the CPU time of the workers."""
    threads_s = sum(
        spent_s
        for stretch in stretches
        for name, spent_s in stretch.thread_s.items()
        if name.startswith(prefix)
    )
    return threads_s / sum(stretch.cpu_s for stretch in stretches)
