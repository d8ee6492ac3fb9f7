"""Maps the threads of tasks to slots: DSM, RSM (R-Storm) and SAM (001, section 7).

A table of performance has what threads of a task reach together on one slot (section 5). It is a
tuple of `Performance`, by rising number of threads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Floats, Ints
from controller.core.view import rounded
from controller.policies.profiles import Performance

# Sums of shares miss whole numbers in the last digits; that must not cost a slot.
SLACK = 1e-9
# NWDist of 001. Racks are not known, so every other machine is in the same one.
OTHER_MACHINE = 0.5

# The slot of every thread, by task.
Placed = dict[str, list[int]]


@dataclass(frozen=True, slots=True)
class Allocation:
    """The threads of a task, and the shares of slots they need.

    Full bundles have `bundle_threads` threads and a slot of its own each; there are none by linear
    scaling. The rest needs its shares of CPU and memory together.
    """

    bundles: int
    bundle_threads: int
    rest_threads: int
    rest_cpu_frac: float
    rest_memory_frac: float


@dataclass(frozen=True, slots=True)
class Need:
    """The need of threads, in shares of a slot."""

    cpu_frac: float
    memory_frac: float


@dataclass(frozen=True, slots=True)
class Lacking:
    """Why not everything could be mapped."""

    task: str
    threads: int
    need: Need


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """Slots, machine by machine: the machine of each, and the shares of it that are left."""

    machine: Ints  # (S,)
    cpu: Floats  # (S,)
    memory: Floats  # (S,)


def dsm(threads: Mapping[str, int], slots: int) -> Placed:
    """Deal threads out one by one to slots numbered machine by machine, as Storm does by default.

    001, algorithm 4.
    """
    tasks = [task for task, count in threads.items() for _ in range(count)]
    placed: Placed = {task: [] for task in threads}
    for i, task in enumerate(tasks):
        placed[task].append(i % slots)
    return placed


def rsm(threads: Mapping[str, Sequence[Need]], slots: Slots) -> Placed | Lacking:
    """Put thread after thread where it leaves the least, near the one before: R-Storm.

    Tasks are in breadth-first order. Gives every thread's slot, or the first thread that fits
    nowhere. 001, algorithm 5: one thread of each task in turn; memory must fit a slot, CPU its
    machine. The three weights of the distance are not printed: 1.
    """
    count = int(slots.machine.max(initial=-1)) + 1
    cpu = np.bincount(slots.machine, weights=slots.cpu, minlength=count).astype(np.float64)
    memory = slots.memory.copy()
    last = 0
    placed: Placed = {task: [] for task in threads}
    for turn in range(max(map(len, threads.values()), default=0)):
        for task, needs in threads.items():
            if turn >= len(needs):
                continue
            need = needs[turn]
            slot = _nearest(need, slots.machine, cpu, memory, last)
            if slot is None:
                return Lacking(task, 1, need)
            last = int(slots.machine[slot])
            cpu[last] -= need.cpu_frac
            memory[slot] -= need.memory_frac
            placed[task].append(slot)
    return placed


def _nearest(need: Need, machine: Ints, cpu: Floats, memory: Floats, last: int) -> int | None:
    """Find the first slot with memory on the machine with CPU at the least distance."""
    slots = np.flatnonzero(
        (memory >= need.memory_frac - SLACK) & (cpu[machine] >= need.cpu_frac - SLACK)
    )
    if not slots.size:
        return None
    of_machine = np.bincount(machine, weights=memory)
    distance = (of_machine - need.memory_frac) ** 2 + (cpu - need.cpu_frac) ** 2
    distance += OTHER_MACHINE * (np.arange(len(cpu)) != last)
    return int(slots[np.argmin(rounded(distance)[machine[slots]])])


def sam(tasks: Mapping[str, Allocation], slots: Slots) -> Placed | Lacking:
    """Give every full bundle an empty slot, and the rest of each task the slot it fits best.

    A slot of which something is used already is not empty. Gives every thread's slot, or the first
    bundle or rest that fits nowhere.

    001, algorithm 6, with "full" for the bundles that MBA counted as a slot. Its printed test for
    them is that τ̂ threads are left. That also gives whole slots to what MBA counted as a share. It
    happens when one thread is a bundle or the rest needs as many threads as a bundle.
    """
    cpu, memory = slots.cpu.copy(), slots.memory.copy()
    empty = (cpu >= 1 - SLACK) & (memory >= 1 - SLACK)
    machine = 0
    placed: Placed = {task: [] for task in tasks}
    for turn in range(1 + max((task.bundles for task in tasks.values()), default=0)):
        for name, task in tasks.items():
            if turn < task.bundles:
                threads, need = task.bundle_threads, Need(1.0, 1.0)
                slot = _next_empty(empty, slots.machine, machine)
            elif turn == task.bundles and task.rest_threads:
                threads, need = task.rest_threads, Need(task.rest_cpu_frac, task.rest_memory_frac)
                slot = _best_fit(need, cpu, memory)
            else:
                continue
            if slot is None:
                return Lacking(name, threads, need)
            if turn < task.bundles:
                machine = int(slots.machine[slot])
            cpu[slot] -= need.cpu_frac
            memory[slot] -= need.memory_frac
            empty[slot] = False
            placed[name] += [slot] * threads
    return placed


def _next_empty(empty: NDArray[np.bool_], machine: Ints, current: int) -> int | None:
    """Find an empty slot on the current machine, else on the next one that has one."""
    slots = np.flatnonzero(empty)
    if not slots.size:
        return None
    away = (machine[slots] - current) % (int(machine.max()) + 1)
    return int(slots[np.argmin(away)])


def _best_fit(need: Need, cpu: Floats, memory: Floats) -> int | None:
    slots = np.flatnonzero((cpu >= need.cpu_frac - SLACK) & (memory >= need.memory_frac - SLACK))
    return int(slots[np.argmin(rounded((cpu + memory)[slots]))]) if slots.size else None


def peak(table: Sequence[Performance]) -> Performance:
    """Find the full bundle, τ̂ and ω̂ of 001: the fewest threads with the highest rate of all."""
    return max(table, key=lambda point: (point.rate_tps, -point.threads))


def enough(table: Sequence[Performance], rate_tps: float) -> Performance:
    """Find the fewest profiled threads that reach a rate, at most the peak's: T(ω) of 001."""
    return next(point for point in table if point.rate_tps >= rate_tps)


def at(table: Sequence[Performance], threads: float) -> Performance:
    """Read rate, CPU and memory of any number of threads: I(q), C(q) and M(q) of 001.

    Linear between the profiled numbers and below the first, as at the last one above it.
    """
    known = [0.0, *(point.threads for point in table)]

    def read(values: list[float]) -> float:
        return float(np.interp(threads, known, [0.0, *values]))

    return Performance(
        int(threads),
        read([point.rate_tps for point in table]),
        read([point.cpu_frac for point in table]),
        read([point.memory_frac for point in table]),
    )
