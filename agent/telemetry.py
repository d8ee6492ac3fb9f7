"""The agent's metrics for Prometheus, of the JVMs of its node."""

from collections.abc import Iterable

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from agent.daemon import Shown
from kvstore.exposition import Families
from migration.model import topology_name

_TABLE = {
    "worker_tuples_forwarded_total": ("Tuples sent on to a moved executor.", "topology port"),
    "worker_tuples_parked_total": ("Tuples that waited for their executor.", "topology port"),
    "worker_tuples_dropped_total": ("Tuples that had no place to go.", "topology port"),
    "worker_tuples_unordered_total": ("Tuples let go before earlier ones.", "topology port"),
    "worker_hook_errors_total": ("Errors that the hooks contained.", "topology port"),
    "worker_last_seen_timestamp_seconds": ("When a worker last wrote.", "topology port"),
    "agent_supervisor_hooks": ("1 if the node's supervisor has the hooks.", ""),
    "agent_plan_version": ("The version of the plan that the node holds.", "topology"),
}


class NodeTelemetry(Collector):
    """Makes metrics of what the agent last saw."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown

    def collect(self) -> Iterable[Metric]:
        samples, plans, found = self._shown.samples, self._shown.plans, Families(_TABLE)
        for worker in samples.workers:
            place = topology_name(worker.topology), str(worker.slot.port)
            found.add("worker_tuples_forwarded_total", worker.counters.forwarded, *place)
            found.add("worker_tuples_parked_total", worker.counters.parked, *place)
            found.add("worker_tuples_dropped_total", worker.counters.dropped, *place)
            found.add("worker_tuples_unordered_total", worker.counters.unordered, *place)
            found.add("worker_hook_errors_total", worker.counters.errors, *place)
            found.add("worker_last_seen_timestamp_seconds", worker.time_ms / 1000, *place)
        found.add("agent_supervisor_hooks", samples.supervisor is not None)
        for plan in plans.plans if plans else ():
            found.add("agent_plan_version", plan.version, topology_name(plan.topology))
        return found.collect()
