"""What the agent exports to Prometheus."""

from agent.daemon import Shown
from agent.samples import Samples
from agent.telemetry import NodeTelemetry
from migration.model import Counters, LocalPlan, Plan, Slot
from tests.messages import node_acks, worker_ack


def samples_of(shown: Shown) -> dict[tuple[str, ...], float]:
    families = NodeTelemetry(shown).collect()
    return {(s.name, *s.labels.values()): s.value for f in families for s in f.samples}


def test_an_agent_that_has_heard_nothing_tells_no_worker() -> None:
    assert samples_of(Shown()) == {("nstorm_agent_supervisor_hooks",): 0}


def test_what_the_hooks_carry_is_told_by_the_name_of_the_topology() -> None:
    counters = Counters(forwarded=4, parked=3, dropped=2, errors=1, unordered=5)
    ack = worker_ack(
        Slot("s1", 6700), [1], topology="word-count-7-1700000000", counters=counters, time_ms=1500
    )
    samples = Samples((ack,), (), node_acks("s1", [], "c").supervisor)
    plans = LocalPlan("c", (Plan("c", 2, 7, "word-count-7-1700000000"),))
    of = ("word-count", "6700")
    assert samples_of(Shown(samples, plans)) == {
        ("nstorm_worker_tuples_forwarded_total", *of): 4,
        ("nstorm_worker_tuples_parked_total", *of): 3,
        ("nstorm_worker_tuples_dropped_total", *of): 2,
        ("nstorm_worker_tuples_unordered_total", *of): 5,
        ("nstorm_worker_hook_errors_total", *of): 1,
        ("nstorm_worker_last_seen_timestamp_seconds", *of): 1.5,
        ("nstorm_agent_supervisor_hooks",): 1,
        ("nstorm_agent_plan_version", "word-count"): 7,
    }
