"""Settings of clusters on which tests see whether all is right, and not how fast it is."""

from collections.abc import Mapping
from typing import Any

# Two such clusters, and all other tests, share two cores.
FRUGAL: Mapping[str, Any] = {
    # Workers take half the CPU for their start, and idle executors of four a fifth of a core less.
    "topology.worker.childopts": "-XX:TieredStopAtLevel=1",
    "topology.bolt.wait.progressive.level3.sleep.millis": 10,
    "topology.spout.wait.progressive.level3.sleep.millis": 10,
}
CALM: Mapping[str, Any] = {
    **FRUGAL,
    # Storm repeats a start that takes longer than 120 s, which makes a busy machine busier.
    "supervisor.worker.start.timeout.secs": 300,
    "nimbus.task.launch.secs": 300,
    # Heartbeats wait on a busy machine, and while a supervisor restarts: longer than Storm's 30 s.
    "supervisor.worker.timeout.secs": 90,
    "nimbus.task.timeout.secs": 120,
    # A copy is also slow to start: the first of a worker took more than 20 s at a load of 31.
    "nstorm.prepare.limit.secs": 90,
}
