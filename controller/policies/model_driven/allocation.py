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

    Full bundles have `bundle_threads` threads and a slot of its own each; there are none by linear
    scaling. The rest needs its shares of CPU and memory together.
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
    cpu = fsum(row.cpu_frac for row in rows)
    memory = fsum(row.memory_frac for row in rows)
    return max(ceil(cpu - SLACK), ceil(memory - SLACK))


def acquire(slots: int, sizes: Sequence[int] = VM_SLOTS) -> list[int]:
    """Choose machines: as many of the largest as fill up, then the smallest for what is left.

    Gives the slots of each; together they may be more than needed. 001, section 7.1.
    """
    machines, left = divmod(slots, max(sizes))
    smallest = [min(size for size in sizes if size >= left)] if left else []
    return [max(sizes)] * machines + smallest
