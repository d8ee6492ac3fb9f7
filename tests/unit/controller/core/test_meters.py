"""Numbers of the load report become arrays by worker and by node."""

import math

import numpy as np
import pytest
from msgspec import UNSET, UnsetType

from controller.core.capacity import Capacity
from controller.core.layout import Layout, MadeOf
from controller.core.limits import Limits
from controller.core.meters import NodeRates, known_rows, observe_nodes
from controller.core.metrics import Rates, by_topology, observe
from controller.core.picture import full_links
from controller.core.tasks import ends_of
from controller.journal.record import decode, encode
from migration import ModelError
from migration.model import (
    ExecutorId,
    ExecutorLoad,
    Meters,
    Node,
    NodeLoad,
    Plan,
    Slot,
    WorkerLoad,
)
from tests.messages import publication

S1, S2 = Slot("s1", 6700), Slot("s2", 6700)


def observed(
    before: Rates, time_s: float, told: dict[Slot, Meters], incarnation: str = "a", ewma: float = 1
) -> Rates:
    loads = [
        NodeLoad(
            slot.supervisor,
            0,
            (WorkerLoad("t", slot, incarnation, round(time_s * 1000), 0, meters=meters or UNSET),),
        )
        for slot, meters in told.items()
    ]
    return observe(before, by_topology(loads)["t"], {}, now_s=time_s, ewma=ewma)


def known(rates: Rates) -> dict[str, dict[str, float]]:
    return known_rows(rates.meters.shown, [slot.supervisor for slot in rates.slots])


def test_a_gauge_is_as_reported_and_a_total_becomes_a_rate() -> None:
    rates = observed(Rates(), 0, {S1: {"heap_live_bytes": 100, "gc_ms": 4000}, S2: {}})
    assert known(rates) == {"s1": {"heap_live_bytes": 100}}
    rates = observed(
        rates, 10, {S1: {"heap_live_bytes": 90, "gc_ms": 4500}, S2: {"heap_max_bytes": 5}}
    )
    assert known(rates) == {
        "s1": {"heap_live_bytes": 90, "gc_frac": pytest.approx(0.05)},
        "s2": {"heap_max_bytes": 5},
    }


def test_rates_are_smoothed_and_gauges_are_not() -> None:
    rates = Rates()
    for second, gc_ms in enumerate([0, 100, 400]):
        told: Meters = {"heap_live_bytes": 10 * second, "gc_ms": gc_ms}
        rates = observed(rates, second, {S1: told}, ewma=0.5)
    assert known(rates)["s1"] == {
        "heap_live_bytes": 20,
        "gc_frac": pytest.approx(0.5 * 0.1 + 0.5 * 0.3),
    }


def test_what_is_missing_is_missing_and_never_zero() -> None:
    rates = Rates()
    for second, gc_ms in enumerate([1000, 1100]):
        rates = observed(rates, second, {S1: {"heap_live_bytes": 7, "gc_ms": gc_ms}})
    assert known(rates)["s1"].keys() == {"heap_live_bytes", "gc_frac"}
    rates = observed(rates, 2, {S1: {}})
    assert known(rates) == {}
    assert rates.meters.shown == {}
    # It comes back; its rate is known with the second report.
    rates = observed(rates, 3, {S1: {"gc_ms": 1200}})
    assert known(rates) == {}
    rates = observed(rates, 4, {S1: {"gc_ms": 1300}})
    assert known(rates) == {"s1": {"gc_frac": pytest.approx(0.1)}}


@pytest.mark.parametrize(("incarnation", "gc_ms"), [("b", 5000), ("a", 10)])
def test_a_total_of_another_jvm_or_that_fell_gives_no_rate(incarnation: str, gc_ms: int) -> None:
    rates = observed(Rates(), 0, {S1: {"gc_ms": 100}})
    rates = observed(rates, 1, {S1: {"gc_ms": 200}})
    assert known(rates) == {"s1": {"gc_frac": pytest.approx(0.1)}}
    rates = observed(rates, 2, {S1: {"gc_ms": gc_ms}}, incarnation)
    assert known(rates) == {}
    rates = observed(rates, 3, {S1: {"gc_ms": gc_ms + 50}}, incarnation)
    assert known(rates) == {"s1": {"gc_frac": pytest.approx(0.05)}}


def test_numbers_of_a_newer_version_and_odd_ones_are_passed_over() -> None:
    told: Meters = {"warp_factor": 9, "heap_live_bytes": -1, "gc_ms": -5, "heap_max_bytes": 10**400}
    rates = observed(Rates(), 0, {S1: told})
    assert known(rates) == {}


def test_an_old_report_changes_nothing_and_workers_may_come_and_go() -> None:
    rates = observed(Rates(), 0, {S1: {"gc_ms": 0, "heap_max_bytes": 8}})
    rates = observed(rates, 1, {S1: {"gc_ms": 300, "heap_max_bytes": 8}})
    again = observed(rates, 1, {S1: {"gc_ms": 999, "heap_max_bytes": 9}, S2: {"gc_ms": 4}})
    assert known(again) == {"s1": {"heap_max_bytes": 8, "gc_frac": pytest.approx(0.3)}}
    gone = observed(again, 2, {S2: {"gc_ms": 504}})
    assert known(gone) == {"s2": {"gc_frac": pytest.approx(0.5)}}


def of_executors(
    before: Rates, time_s: float, told: dict[int, int | None], incarnation: str = "a"
) -> Rates:
    """Let a worker report, for the executor of each task, the bytes allocated, if it has them."""
    executors = tuple(ExecutorLoad(ExecutorId(t, t), "c", 0, 0, None) for t in told)
    numbers = tuple(-1 if one is None else one for one in told.values())
    load = WorkerLoad(
        "t", S1, incarnation, round(time_s * 1000), 0, executors,
        executor_meters={"allocated_bytes": numbers, "warp_factor": numbers},
    )  # fmt: skip
    return observe(before, [(load, False)], {}, now_s=time_s, ewma=1)


def shown_of(rates: Rates) -> dict[str, dict[str, float]]:
    return known_rows(rates.of_executors.shown, [str(task) for task in ends_of(rates.executors)[0]])


def test_executors_have_numbers_by_name() -> None:
    rates = of_executors(Rates(), 0, {7: 100, -1: 5, 3: None})
    assert shown_of(rates) == {}, "of a total the growth is shown"
    rates = of_executors(rates, 2, {3: 10, -1: 9, 7: 300, 5: 8})
    assert shown_of(rates) == {"7": {"allocated_bytes_per_s": pytest.approx(100)}}
    gone = of_executors(rates, 3, {3: 20, 5: 9})
    assert shown_of(gone) == {
        "3": {"allocated_bytes_per_s": pytest.approx(10)},
        "5": {"allocated_bytes_per_s": pytest.approx(1)},
    }
    # Another thread runs 3, and 7 has come back.
    again = of_executors(gone, 4, {3: 5, 5: 12, 7: 400})
    assert shown_of(again) == {"5": {"allocated_bytes_per_s": pytest.approx(3)}}
    assert shown_of(of_executors(again, 5, {5: 13}, "b")) == {}
    assert shown_of(observed(again, 5, {S1: {}})) == {}, "an older worker has none"


def test_a_snapshot_has_the_state_of_its_executors() -> None:
    """Executor 3 is placed on another worker than this copy, which a move is taking away."""
    nodes = [Node(n, n, 200.0, (6700,), 1) for n in ("s1", "s2")]
    made = publication({1: S1, 2: S1, 3: S2}, nodes, topology="t")
    layout = Layout.of(MadeOf(made, Plan("c", 1, 0, "t"), {}, Capacity(), {}))

    def states(told: dict[str, tuple[int, ...]] | UnsetType) -> list[float] | None:
        executors = tuple(ExecutorLoad(ExecutorId(t, t), "split", 0, 0, None) for t in (1, 2, 3))
        load = WorkerLoad("t", S1, "a", 0, 0, executors, executor_meters=told)
        rates = observe(Rates(), [(load, False)], {}, now_s=0.0, ewma=1)
        found = layout.fitted(rates).snapshot(rates, time_s=0.0).state_bytes
        return None if found is None else found.tolist()

    known = states({"state_bytes": (7, -1, 9)})
    assert known == pytest.approx([7, np.nan, np.nan], nan_ok=True)
    assert states(UNSET) is None


def test_numbers_of_executors_are_as_many_as_these() -> None:
    with pytest.raises(ModelError, match="another number of allocated_bytes"):
        WorkerLoad("t", S1, "a", 0, 0, executor_meters={"allocated_bytes": (1,)})


def node(name: str, time_s: float, meters: Meters | None = None) -> NodeLoad:
    return NodeLoad(name, round(time_s * 1000), meters=meters or UNSET)


def test_nodes_have_their_own_numbers() -> None:
    first = [node("n1", 0, {"machine_cpu_ns": 0, "machine_cores": 4}), node("n2", 0)]
    then = [
        node("n1", 10, {"machine_cpu_ns": 25 * 10**9, "machine_cores": 4}),
        node("n2", 10, {"machine_cores": 0.9}),
    ]
    nodes = observe_nodes(NodeRates(), first, now_s=0, ewma=1)
    nodes = observe_nodes(nodes, then, now_s=10, ewma=1)
    names = ("n2", "n1", "never")
    found = nodes.of(names, 0)
    assert known_rows(found, names) == {
        "n1": {"machine_cpu_cores": pytest.approx(2.5), "machine_cores": 4},
        "n2": {"machine_cores": 0.9},
    }
    assert math.isnan(found["machine_cpu_cores"][0])


def test_a_node_whose_clock_is_set_ahead_has_no_rate() -> None:
    nodes, found = NodeRates(), []
    for now_s in range(0, 24, 4):
        ahead_s = 3600 if now_s >= 12 else 0
        told = node("n1", now_s + ahead_s, {"machine_cpu_ns": now_s * 10**9})
        nodes = observe_nodes(nodes, [told], now_s=now_s, ewma=0.3)
        found.append(known_rows(nodes.of(("n1",), 0), ("n1",)).get("n1", {}))
    rates = [one.get("machine_cpu_cores") for one in found]
    assert rates == [None, 1, 1, None, 1, 1]


def test_a_node_that_has_not_reported_for_long_is_not_known() -> None:
    nodes = observe_nodes(NodeRates(), [node("n1", 0, {"machine_cores": 4})], now_s=0, ewma=1)
    nodes = observe_nodes(
        nodes,
        [node("n1", 0, {"machine_cores": 4}), node("n2", 0, {"machine_cores": 2})],
        now_s=20,
        ewma=1,
    )
    assert known_rows(nodes.of(("n1", "n2"), 20 - 15), ("n1", "n2")) == {"n2": {"machine_cores": 2}}


def test_the_memory_of_a_cycle_keeps_them_in_the_journal() -> None:
    rates = observed(Rates(), 0, {S1: {"gc_ms": 100, "heap_live_bytes": 3}})
    rates = observed(rates, 1, {S1: {"gc_ms": 200, "heap_live_bytes": 4}})
    assert known(decode(Rates, encode(rates))) == known(rates)
    nodes = observe_nodes(NodeRates(), [node("n1", 0, {"machine_cores": 4})], now_s=0, ewma=1)
    assert known_rows(decode(NodeRates, encode(nodes)).of(("n1",), 0), ("n1",)) == {
        "n1": {"machine_cores": 4}
    }


@pytest.mark.parametrize(
    ("told", "link_mbit", "full"),
    [
        ({"net_sent_bytes": 9e6, "net_received_bytes": 0}, None, True),
        ({"net_sent_bytes": 0, "net_received_bytes": 9e6}, None, True),
        ({"net_sent_bytes": 8e6, "net_received_bytes": 0}, None, False),
        ({"net_sent_bytes": 8e6}, 4.0, True),
        ({"net_sent_bytes": 8e6, "link_bytes_per_s": None}, None, False),  # its speed is not known
    ],
)
def test_a_link_is_full_above_load_high(
    told: dict[str, float | None], link_mbit: float | None, *, full: bool
) -> None:
    known = {"link_bytes_per_s": 1e6, **told}
    more: Meters = {name: value for name, value in known.items() if value is not None}
    begun: Meters = {name: 0 if name.startswith("net_") else value for name, value in more.items()}
    nodes = observe_nodes(NodeRates(), [node("n1", 0, begun)], now_s=0, ewma=1)
    nodes = observe_nodes(nodes, [node("n1", 10, more)], now_s=10, ewma=1)
    found = full_links(nodes, Capacity(link_mbit=link_mbit), Limits().high_frac, 10)
    assert found == (frozenset({"n1"}) if full else frozenset())
    assert full_links(nodes, Capacity(link_mbit=link_mbit), Limits().high_frac, 60) == frozenset()
