"""Computes how many threads and slots a rate needs: LSA, MBA and the acquisition of VMs (001)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, fsum

from controller.core.cluster import Performance
from controller.policies.model_driven.performance import at, enough, peak

# Slots of the machines one can rent, 001 section 8.3: D1, D2 and D3; section 7.1 has D4 with 8 too.
VM_SLOTS = (1, 2, 4)
# Sums of shares miss whole numbers in the last digits; that must not cost a slot.
SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Allocation:
    """The threads of a task, and the shares of slots they need.

    Attributes
    ----------
    bundles : int
        Full bundles, each with a slot of its own; 0 by linear scaling.
    bundle_threads : int
        Threads of a full bundle.
    rest_cpu_frac, rest_memory_frac : float
        What the others need together, in slots.
    """

    bundles: int
    bundle_threads: int
    rest_threads: int
    rest_cpu_frac: float
    rest_memory_frac: float

    @property
    def threads(self) -> int:
        """All threads, τ of 001."""
        return self.bundles * self.bundle_threads + self.rest_threads

    @property
    def cpu_frac(self) -> float:
        """CPU in slots, c of 001."""
        return self.bundles + self.rest_cpu_frac

    @property
    def memory_frac(self) -> float:
        """Memory in slots, m of 001."""
        return self.bundles + self.rest_memory_frac


def lsa(table: Sequence[Performance], rate_tps: float) -> Allocation:
    """Allocate as if every thread reached what one alone reaches.

    Parameters
    ----------
    table : sequence of Performance
        Only one thread's is used; its rate is above 0.
    rate_tps : float
        What the task has to take in.

    Notes
    -----
    001, algorithm 2: a last thread for what is left costs its share only, so the sums are the
    rate's multiple of one thread.
    """
    one = at(table, 1)
    times = rate_tps / one.rate_tps
    threads = ceil(times - SLACK)
    return Allocation(0, 1, threads, times * one.cpu_frac, times * one.memory_frac)


def mba(table: Sequence[Performance], rate_tps: float) -> Allocation:
    """Allocate slots full of the best number of threads, and the fewest threads for what is left.

    Parameters
    ----------
    table : sequence of Performance
        By rising number of threads; some rate is above 0.
    rate_tps : float
        What the task has to take in.

    Returns
    -------
    Allocation
        Every bundle counts as a whole slot, whatever it uses.

    Notes
    -----
    001, algorithm 3. What is left counts unscaled if it needs more than one thread.
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
    """Count the slots that all tasks need together, ρ of 001.

    Returns
    -------
    int
        The larger of CPU and memory, each rounded up.
    """
    rows = list(allocations)
    cpu = fsum(row.cpu_frac for row in rows)
    memory = fsum(row.memory_frac for row in rows)
    return max(ceil(cpu - SLACK), ceil(memory - SLACK))


def acquire(slots: int, sizes: Sequence[int] = VM_SLOTS) -> list[int]:
    """Choose machines: as many of the largest as fill up, then the smallest for what is left.

    Parameters
    ----------
    slots : int
        How many are needed.
    sizes : sequence of int
        Slots of the machines there are.

    Returns
    -------
    list of int
        Slots of each machine; together they may be more than needed.

    Notes
    -----
    001, section 7.1.
    """
    machines, left = divmod(slots, max(sizes))
    smallest = [min(size for size in sizes if size >= left)] if left else []
    return [max(sizes)] * machines + smallest
