"""What ``nstorm status`` shows."""

import io

import pytest
from rich.console import Console

from controller.cli.doctor import of_status
from controller.cli.status_document import SpeaksStatus, as_document
from controller.cli.status_view import as_tables
from controller.core.controls import Controls
from controller.core.topology import TopologyView
from controller.storm.leader_status import CycleStatus, LeaderStatus
from controller.storm.move_record import MoveRecord
from migration.model import (
    AppliedPlan,
    Base,
    Candidacy,
    Counters,
    Entry,
    ExecutorWay,
    Node,
    Phase,
    PinnedExecutor,
    Plan,
    Slot,
    Way,
)
from migration.wire import SPEAKS
from tests.messages import START_SECS, executor, node_acks, publication, replace, worker_ack


def test_workers_of_supervisors_that_storm_does_not_list_stand_apart() -> None:
    a, b = Slot("a", 1), Slot("b", 1)
    view = TopologyView(publication({1: a, 2: b}, []), Plan("c", 2, 7, "wc-1"), ())
    document = as_document([view], (), LeaderStatus(), Controls(), left_out={})
    nodes = [line for line in map(str, as_tables(document)) if line.startswith("node ")]
    assert nodes == [f"node not listed by Storm (supervisor {name})" for name in "ab"]


def test_a_topology_that_nimbus_cannot_publish_is_named() -> None:
    why = {"big-2-2": "its publication has 300 kB"}
    document = as_document((), (), LeaderStatus(), Controls(), left_out={}, unpublished=why)
    said = "topology big-2-2: Nimbus cannot publish it, so nothing of it is seen: "
    assert f"{said}{why['big-2-2']}" in map(str, as_tables(document))


@pytest.mark.parametrize(
    ("leads", "status_s", "old"),
    [
        ("ctl-1:7", 30.0, None),
        ("ctl-1:7", 31.0, "they are of 31 s ago"),
        ("ctl-2:8", 5.0, "ctl-2:8 leads, and they are as ctl-1:7 last saw them"),
        (None, 3600.0, "they are of 3,600 s ago"),
        (
            "ctl-2:8",
            95.0,
            "ctl-2:8 leads, and they are as ctl-1:7 last saw them; they are of 95 s ago",
        ),
    ],
)
def test_figures_that_are_not_those_of_now_are_named(
    leads: str | None, status_s: float, old: str | None
) -> None:
    document = as_document(
        (),
        (),
        LeaderStatus("ctl-1:7", 4, "auto", cycle_s=10.0),
        Controls(),
        controllers=[Candidacy(leads, "0.2.0", SPEAKS)] if leads else [],
        left_out={},
        status_s=status_s,
    )
    lines = [line for line in map(str, as_tables(document)) if line.startswith("OLD FIGURES")]
    assert lines == ([] if old is None else [f"OLD FIGURES: {old}"])
    found = any("figures are old" in what for what, _ in of_status(document))
    assert found == (leads is not None and old is not None)


def test_a_node_says_how_much_of_its_load_found_no_room() -> None:
    acks = [node_acks(node, [], "c") for node in ("s1", "s2")]
    document = as_document((), acks, LeaderStatus(), Controls(), left_out={"s1": 0, "s2": 19_000})
    assert [row.traffic_rows_left_out for row in document.agents] == [0, 19_000]
    whole, cut = [str(line) for line in as_tables(document) if str(line).startswith("agent")]
    assert whole.endswith("supervisor with hooks")
    assert cut.endswith("load without its 19000 smallest rows of traffic")


def test_a_node_shows_its_machine_and_its_link() -> None:
    document = as_document((), [node_acks("s1", [], "c")], LeaderStatus(), Controls(), left_out={})
    meters = {
        "machine_cpu_cores": 1.25,
        "machine_cores": 4.0,
        "net_sent_bytes_per_s": 3e6,
        "net_received_bytes_per_s": 4e4,
    }
    for speed, shown in ((1.25e8, "of 125 MB/s"), (None, "of unknown speed")):
        known = meters | ({"link_bytes_per_s": speed} if speed else {})
        agents = (replace(document.agents[0], meters=known),)
        (line,) = [
            str(line)
            for line in as_tables(replace(document, agents=agents))
            if str(line).startswith("agent")
        ]
        assert line.endswith(f", machine 1.25 of 4 cores, link 3 MB/s out and 0.04 in, {shown}")


def test_controllers_that_stand_by_or_speak_another_version_are_shown() -> None:
    leads, waits = Candidacy("nimbus-1:7", "0.2.0", SPEAKS), Candidacy("nimbus-2:8", "0.3.0", 9)
    for said, shown in (
        ([leads], []),
        ([leads, waits], ["nimbus-2:8 stands by: 0.3.0, speaks version 9"]),
        ([waits], ["nimbus-2:8 leads: 0.3.0, speaks version 9"]),
    ):
        document = as_document((), (), LeaderStatus(), Controls(), controllers=said, left_out={})
        assert [row.name for row in document.controllers] == [one.name for one in said]
        lines = [str(line) for line in as_tables(document)]
        assert [line for line in lines if line.startswith("nimbus-")] == shown


def test_what_hooks_carry_is_shown() -> None:
    a, b = Slot("a", 1), Slot("b", 1)
    counters = Counters(forwarded=12_000, parked=3, dropped=1, errors=2)
    acks = (
        node_acks("a", [worker_ack(a, [1], counters=counters, fault="prepare of x failed")], "c"),
        node_acks("b", [worker_ack(b, [2], error="plan store: damaged")], "c"),
    )
    read = replace(acks[0].supervisor, plans=(AppliedPlan("wc-1", 2, 7),))
    acks = (replace(acks[0], supervisor=read), acks[1])
    view = TopologyView(publication({1: a, 2: b}), Plan("c", 2, 7, "wc-1"), acks)
    document = as_document([view], acks, LeaderStatus(), Controls(), left_out={})
    (topology,) = document.topologies
    assert topology.supervisors_behind == ("b",)
    assert [row.dropped for row in topology.workers] == [1, 0]
    lines = [str(line) for line in as_tables(document)]
    assert "hosts whose supervisor has not read the newest plan yet: b" in lines
    assert (
        "worker a:1: 12,000 tuples forwarded to moved executors, 3 tuples parked until their "
        "executor is ready, 1 tuples DROPPED, 2 errors in its hooks, the last: prepare of x failed"
    ) in lines
    assert "worker b:1: it cannot follow plans: plan store: damaged" in lines


def test_a_worker_without_trouble_takes_no_line() -> None:
    a = Slot("a", 1)
    acks = (node_acks("a", [worker_ack(a, [1])], "c"),)
    view = TopologyView(publication({1: a}), Plan("c", 2, -1, "wc-1"), acks)
    document = as_document([view], acks, LeaderStatus(), Controls(), left_out={})
    lines = [str(line) for line in as_tables(document)]
    assert not any(line.startswith(("worker", "supervisors")) for line in lines)


def test_who_speaks_an_older_version_is_named() -> None:
    a, b = Slot("a", 1), Slot("b", 1)
    acks = (
        node_acks("a", [worker_ack(a, [1])], "c"),
        node_acks("b", [worker_ack(b, [2], speaks=0)], "c"),
    )
    view = TopologyView(publication({1: a, 2: b}), Plan("c", 2, 7, "wc-1"), acks)
    document = as_document([view], acks, LeaderStatus(), Controls(), left_out={})
    assert document.topologies[0].speaks == SpeaksStatus(0, "the worker at b:1")
    lines = [str(line) for line in as_tables(document)]
    assert f"the worker at b:1 speaks version 0 of the protocol, this nstorm {SPEAKS}" in lines


def test_health_sums_up_what_is_wrong() -> None:
    a, b = Slot("a", 1), Slot("b", 1)
    nodes = [Node(n, f"host-{n}", 200.0, (1,), 1) for n in "abc"]
    counters = Counters(dropped=1_000, errors=2)
    acks = (
        replace(node_acks("a", [worker_ack(a, [1], counters=counters)], "c"), time_ms=99_000),
        replace(node_acks("b", [], "c"), time_ms=97_000),
    )
    view = TopologyView(publication({1: a, 2: b}, nodes), Plan("c", 2, -1, "wc-1"), acks)
    document = as_document(
        [view],
        acks,
        LeaderStatus(),
        Controls(),
        left_out={},
        clocks_ahead_s={"a": 0.25, "b": -0.5},
        silent_s={"a": 1.0, "b": 3.0},
    )
    assert document.hosts == {"a": "host-a", "b": "host-b", "c": "host-c"}
    assert [agent.clock_ahead_s for agent in document.agents] == [0.25, -0.5]
    lines = [str(line) for line in as_tables(document)]
    assert (
        "health: 2 agents, silent at host-c; 1 workers without hooks; 2 errors in hooks; "
        "1,000 tuples dropped; oldest answer 3.0 s ago; clocks within 0.75 s of each other"
    ) in lines
    assert "node host-a (supervisor a)" in lines
    later = as_document(
        [view], acks, LeaderStatus(), Controls(), left_out={}, silent_s={"a": 1.0, "b": 65.0}
    )
    lines = [str(line) for line in as_tables(later)]
    assert lines[1].startswith("health: 2 agents, silent at host-b, host-c;")
    assert "agent of host-b SILENT for 65 s or more: see `nstorm doctor`" in lines
    assert any(line.startswith("worker host-a:1: 1,000 tuples DROPPED") for line in lines)


def test_the_mode_is_shown_with_who_has_set_it() -> None:
    published = replace(publication({1: Slot("a", 1)}), mode="auto")
    view = TopologyView(published, Plan("c", 2, -1, "wc-1"), ())
    told = LeaderStatus(mode="advise", cycles=(CycleStatus(topology="wc-1", mode="auto"),))
    for controls, by in (
        (Controls(), "topology.nstorm.mode"),
        (Controls(modes={"wc": "auto"}), "nstorm mode"),
    ):
        document = as_document([view], (), told, controls, left_out={})
        assert document.topologies[0].mode_by == by
        assert f"\nwc-1 ACTIVE, mode auto by {by}" in map(str, as_tables(document))


def test_moves_are_shown_by_host_and_port() -> None:
    a, b = Slot("a", 1), Slot("b", 1)
    nodes = [Node(n, f"host-{n}", 200.0, (1,), 1) for n in "ab"]
    move = Entry("m1", executor(1), a, b, Phase.DRAIN, Base(a, 50))
    view = TopologyView(publication({1: a, 2: b}, nodes), Plan("c", 2, 7, "wc-1", (move,)), ())
    ended = MoveRecord("wc-1", "m0", "2-2", "b:1", "a:1", "MOVED", "because", stopped_after_s=0.5)
    leader = LeaderStatus(ended_moves=(ended,))
    document = as_document([view], (), leader, Controls(), left_out={})
    lines = [str(line) for line in as_tables(document)]
    assert "move m1: 1-1 host-a:1 to host-b:1, DRAIN" in lines
    assert "ended m0: 2-2 host-b:1 to host-a:1, MOVED after 0.500 s: because" in lines


def test_how_an_executor_moves_is_shown_where_that_takes_something() -> None:
    a = Slot("a", 1)
    ways = ((1, Way.CARRY), (2, Way.SPOUT), (5, Way.RENEW))
    said = worker_ack(
        a,
        [1, 2, 3, 4, 5],
        ways=tuple(ExecutorWay(executor(task), way) for task, way in ways),
        pinned=(
            PinnedExecutor(executor(1), "keeps something in its field counts, some 42 MB"),
            PinnedExecutor(executor(2), "spout"),
            PinnedExecutor(executor(3), "starts threads"),
            PinnedExecutor(executor(5), "nstorm.move is renew"),
        ),
    )
    acks = (node_acks("a", [said], "c"),)
    view = TopologyView(publication(dict.fromkeys(range(1, 6), a)), Plan("c", 2, -1, "wc-1"), acks)
    document = as_document([view], acks, LeaderStatus(), Controls(), left_out={})
    rows = document.topologies[0].executors
    assert [row.way for row in rows] == ["carry", "spout", None, "live", "renew"]
    reasons = [pin.reason for pin in said.pinned]
    assert [row.why for row in rows] == [*reasons[:3], None, reasons[3]]
    console = Console(width=200, record=True, file=io.StringIO())
    for part in as_tables(document):
        console.print(part)
    shown = console.export_text()
    assert "(carry: keeps something in its field counts, some 42 MB)" in shown
    assert "(pinned: starts threads)" in shown
    assert "(renew: nstorm.move is renew)" in shown
    assert "spout)" not in shown


def test_a_worker_that_starts_is_starting_and_one_without_hooks_has_none() -> None:
    node = Node("s1", "host-1", 200.0, (1,), 1)
    placed, acks = publication({1: Slot("s1", 1)}, [node], spouts=[1]), (node_acks("s1", [], "c"),)
    for age_s, port, reason in (
        (5, "starting", "its worker is starting"),
        (119, "starting", "its worker is starting"),
        (300, "no hooks", "no hooks in its JVM"),
    ):
        view = TopologyView(placed, Plan("c", 0, -1, "wc-1"), acks).at(START_SECS + age_s)
        document = as_document([view], acks, LeaderStatus(), Controls(), left_out={})
        console = Console(file=io.StringIO(), width=200)
        for table in as_tables(document):
            console.print(table)
        shown = console.file.getvalue()  # type: ignore[attr-defined]
        assert f"1-1 spout (pinned: {reason})" in shown
        assert port in shown
        assert ("no hooks" in shown) == (age_s == 300)
        wrong = [what for what, _ in of_status(document)]
        assert any("has no hooks" in what for what in wrong) == (age_s == 300)
