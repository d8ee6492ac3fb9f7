"""The numbers of workers, executors and nodes in load reports, in one table.

A number needs a row here and the code that reads it. The report carries it, and the cycle keeps it
as an array. The status, the metrics and docs/meters.md show it.
"""

from __future__ import annotations

from dataclasses import dataclass

BYTES_PER_MBIT = 125_000


@dataclass(frozen=True, slots=True)
class Meter:
    """A row of the table.

    The name of a number ends in its unit. A `rate` means that it is a total, which never falls
    while a JVM or a machine runs. What it grows by in a second, times `per_s`, is shown by that
    name. Any other number is shown as it was when the report was written.
    """

    name: str  # in the report
    shown: str  # what it is, as a sentence
    rate: str | None = None
    per_s: float = 1.0

    @property
    def column(self) -> str:
        """The name by which it is shown."""
        return self.rate or self.name


# Users feel these two, so they are also added up over a topology.
ACKED = Meter("acked_tuples", "Tuples that were acked at the spouts here.", "acked_tps")
FAILED = Meter("failed_tuples", "Tuples that failed at the spouts here.", "failed_tps")
# What tuples between workers cost, apart from what the executors' own threads do for them.
TRANSPORT = Meter(
    "transport_cpu_ns",
    "CPU of the threads that send tuples to other workers and read theirs.",
    "transport_cpu_cores",
    1e-9,
)
# A part of it, of which a worker has no second one: it cannot use more than a core.
TRANSFER = Meter(
    "transfer_cpu_ns",
    "CPU of the one thread that takes tuples out of the queue to other workers.",
    "transfer_cpu_cores",
    1e-9,
)
GC = Meter("gc_ms", "Share of the time in which collectors stop the worker.", "gc_frac", 1e-3)
TO_SEND = Meter("transfer_queue_tuples", "Tuples that wait to be sent to other workers.")
# Read by `nstorm.load.WorkerMeters` in the worker.
OF_WORKER: tuple[Meter, ...] = (
    Meter("heap_live_bytes", "Heap in use after the last collection."),
    Meter("heap_max_bytes", "Up to where the heap may grow."),
    GC,
    TO_SEND,
    TRANSPORT,
    TRANSFER,
    ACKED,
    FAILED,
)
# A part of what it keeps, which an object takes more for in a heap than as it travels.
STATE = Meter("state_bytes", "About how many bytes travel with it when it moves.")
PENDING = Meter("pending_tuples", "Tuples of a spout that are neither acked nor failed.")
# Read by `nstorm.load.LoadSampler` for each executor. CPU and queue have keys of their own.
OF_EXECUTOR = (
    PENDING,
    Meter(
        "allocated_bytes", "Bytes of the objects that its thread makes.", "allocated_bytes_per_s"
    ),
    STATE,
)
MACHINE_CPU = Meter(
    "machine_cpu_ns", "CPU that all processes of the machine use.", "machine_cpu_cores", 1e-9
)
MACHINE_CORES = Meter("machine_cores", "Cores that the machine has for them.")
SENT = Meter("net_sent_bytes", "Bytes that the node sends.", "net_sent_bytes_per_s")
RECEIVED = Meter("net_received_bytes", "Bytes that the node gets.", "net_received_bytes_per_s")
LINK_SPEED = Meter(
    "link_bytes_per_s",
    "Speed of its network interfaces together, in each direction, or less by `link.capacity.mbit`.",
)
# Read by `agent.machine` on the node.
OF_NODE = (MACHINE_CPU, MACHINE_CORES, SENT, RECEIVED, LINK_SPEED)
