"""Computes how many threads and slots a rate needs: LSA, MBA and the acquisition of VMs (001)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import ceil, fsum

import numpy as np

from controller.policies.model_driven.mapping import (
    SLACK,
    Allocation,
    Lacking,
    Placed,
    Slots,
    at,
    enough,
    peak,
)
from controller.policies.profiles import Performance

# Slots of the machines one can rent, 001 section 8.3: D1, D2 and D3; section 7.1 has D4 with 8 too.
VM_SLOTS = (1, 2, 4)


def threads_of(task: Allocation) -> int:
    """Count all threads, τ of 001."""
    return task.bundles * task.bundle_threads + task.rest_threads


def cpu_of(task: Allocation) -> float:
    """Add up the CPU in slots, c of 001."""
    return task.bundles + task.rest_cpu_frac


def memory_of(task: Allocation) -> float:
    """Add up the memory in slots, m of 001."""
    return task.bundles + task.rest_memory_frac


def lsa(table: Sequence[Performance], rate_tps: float) -> Allocation:
    """Allocate as if every thread reached what one alone reaches, a rate above 0.

    001, algorithm 2: a last thread for what is left costs its share only, so the sums are the
    rate's multiple of one thread.
    """
    one = at(table, 1)
    times = rate_tps / one.rate_tps
    threads = ceil(times - SLACK)
    return Allocation(0, 1, threads, times * one.cpu_frac, times * one.memory_frac)


def mba(table: Sequence[Performance], rate_tps: float) -> Allocation:
    """Allocate slots full of the best number of threads, and the fewest threads for what is left.

    The table is by rising number of threads, and some rate in it is above 0. Every bundle counts as
    a whole slot, whatever it uses. 001, algorithm 3. What is left counts unscaled if it needs more
    than one thread.
    """
    best = peak(table)
    bundles = int(rate_tps / best.rate_tps + SLACK)
    left_tps = rate_tps - bundles * best.rate_tps
    if left_tps <= SLACK * best.rate_tps:
        return Allocation(bundles, best.threads, 0, 0.0, 0.0)
    rest = enough(table, left_tps)
    used = left_tps / rest.rate_tps if rest.threads == 1 else 1.0
    return Allocation(
        bundles, best.threads, rest.threads, used * rest.cpu_frac, used * rest.memory_frac
    )


def slots_needed(allocations: Iterable[Allocation]) -> int:
    """Count the slots that all tasks need, ρ of 001: the larger of CPU and memory, rounded up."""
    rows = list(allocations)
    cpu = fsum(map(cpu_of, rows))
    memory = fsum(map(memory_of, rows))
    return max(ceil(cpu - SLACK), ceil(memory - SLACK))


def acquire(slots: int, sizes: Sequence[int] = VM_SLOTS) -> list[int]:
    """Choose machines: as many of the largest as fill up, then the smallest for what is left.

    Gives the slots of each; together they may be more than needed. 001, section 7.1.
    """
    machines, left = divmod(slots, max(sizes))
    smallest = [min(size for size in sizes if size >= left)] if left else []
    return [max(sizes)] * machines + smallest


def literal_bundles(task: Allocation) -> Allocation:
    """Count bundles by the printed test of algorithm 6: as long as τ̂ threads are left."""
    bundles, rest = divmod(threads_of(task), task.bundle_threads)
    more = bundles - task.bundles
    return replace(
        task,
        bundles=bundles,
        rest_threads=rest,
        rest_cpu_frac=task.rest_cpu_frac - more,
        rest_memory_frac=task.rest_memory_frac - more,
    )


def empty_slots(machines: Sequence[int]) -> Slots:
    """Build empty slots of size 1 from the number of slots of each machine."""
    machine = np.repeat(np.arange(len(machines)), np.array(machines, dtype=np.int64))
    return Slots(machine, np.ones(len(machine)), np.ones(len(machine)))


def map_growing(
    needed: int,
    mapper: Callable[[Slots], Placed | Lacking],
    *,
    most: int = 10_000,
) -> tuple[int, Placed]:
    """Acquire machines, one slot more each time that the mapping fails, from `needed` to `most`.

    Gives how many slots had to be asked for, and where everything is. Raises ValueError if not even
    `most` slots are enough: some thread needs more than a slot or a machine has.
    """
    for slots in range(needed, most + 1):
        placed = mapper(empty_slots(acquire(slots)))
        if not isinstance(placed, Lacking):
            return slots, placed
    raise ValueError(f"the threads cannot be mapped to {most} slots")


def slots_used(placed: Placed) -> int:
    return len({slot for slots in placed.values() for slot in slots})
