"""What ``nstorm status -o json`` prints: the keys, their order and their units stay."""

import dataclasses
import json
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from typer.testing import CliRunner

from controller.cli.main import app
from controller.cli.status_document import StatusDocument, as_document, as_json
from controller.cli.status_view import percent
from controller.config import Config, Mode
from controller.core.controls import Controls, Pause
from controller.core.decision import Outcome
from controller.core.resources import RESOURCES
from controller.cycle import Memory
from controller.journal.cycle_record import as_json as journaled
from controller.journal.cycle_record import cycle_record
from controller.report import TopologyReport
from controller.storm.answer_records import PlanAnswer, PlanStep
from controller.storm.leader_status import CycleStatus, LeaderStatus, read
from controller.storm.missed import Missed
from controller.storm.move_record import MoveRecord
from controller.storm.proposals import Proposals
from controller.storm.status import publish, status_of
from controller.storm.ways import Ways
from kvstore.zookeeper import Session, Stored
from migration.model import (
    Base,
    Candidacy,
    Counters,
    Entry,
    ExecutorWay,
    NimbusReport,
    Phase,
    PinnedExecutor,
    Way,
)
from tests.messages import executor, replace
from tests.recorded_world import with_sizes
from tests.unit.controller.test_cycle import A1, B1, World
from tests.watched import cycle

GOLDEN = Path(__file__).parents[3] / "golden" / "status"
APPROVE = Config(mode=Mode.APPROVE)
ENDED = MoveRecord(
    "wc-1", "m0", "5-5", "a:1", "b:1", "MOVED", "as wanted", {"PREPARE": 0.25}, 0.5, 1.7e9,
    1.7e9 - 5, "policy gather", "it talks to 6-6", 12.5, {"inter_node_frac": 0.5}, {"x": None}, 2,
)  # fmt: skip


class Store:
    """A session with one node."""

    def put(self, path: str, data: bytes) -> int:
        self.data = data
        return 0

    def read(self, path: str) -> Stored:
        return Stored(self.data, 0, 0)


def through_zookeeper(status: LeaderStatus) -> LeaderStatus:
    store = cast(Session, cast(Any, Store()))
    publish(store, status)
    return read(store)


def measured() -> StatusDocument:
    """Show a topology with all that may be known of one."""
    worker = World().acks()[0].workers[0]
    moves = (("2-2", "b:1", "a:1"), ("5-5", "b:1", "a:2"))
    plan = PlanAnswer(steps=(PlanStep(moves=moves),), inter_node_frac=(0.5, 0.125))
    ways = Ways(lambda _: plan, 5.0)
    world, proposals, memory = World(), Proposals(), Memory()
    for _ in range(3):
        seen = world.seen()
        seen = dataclasses.replace(seen, loads=with_sizes(seen.loads))
        memory, report = cycle(memory, seen, APPROVE)
        (one,) = report.topologies
        one = dataclasses.replace(one, reason="because", warnings=("a worker is too full",))
        ways.update([one])
        proposals.show([one], one.time_s)
        world.now += 1
    leader = status_of(
        [one],
        [ENDED],
        APPROVE,
        name="ctl-1:7",
        epoch=3,
        journal_problem="disk full",
        ways=ways.shown([one]),
        proposals=proposals.shown,
        missed=Missed({"wc-1": 7.5}, one.time_s),
    )
    assert one.outcome is Outcome.AWAITING_APPROVAL
    (view,) = world.seen().topologies
    move = Entry("m1", executor(2), B1, A1, Phase.DRAIN, Base(B1, 50), way=Way.CARRY)
    pins = (PinnedExecutor(executor(1), "spout"), PinnedExecutor(executor(3), "starts threads"))
    worker = replace(
        worker, epoch=3, version=7, counters=Counters(5, 4, 3, 2), fault="once", error="damaged",
        pinned=pins, ways=(ExecutorWay(executor(1), Way.SPOUT),),
    )  # fmt: skip
    first, *others = view.acks
    acks = (replace(first, workers=(worker, *first.workers[1:])), *others)
    view = dataclasses.replace(
        view,
        plan=replace(view.plan, epoch=3, version=7, entries=(move,)),
        acks=acks,
        nimbus=NimbusReport(0, "hooks-1", 2, "EvenScheduler"),
    )
    return as_document(
        [view],
        acks,
        through_zookeeper(leader),
        Controls({"": "auto"}, {"wc": Pause("release", 2e9)}, Pause("outage")),
        controllers=[Candidacy("ctl-1:7", "0.2.0", 2), Candidacy("ctl-2:8", "0.2.0", 2)],
        drained={"host-a": 5},
        left_out={"a": 12},
        clocks_ahead_s={"a": 0.25},
        silent_s={"a": 1.04, "b": 20.0},
        cluster="zk1:2181/storm",
    )


def nothing_looked_at() -> StatusDocument:
    """Show a cycle that an error has ended."""
    one = TopologyReport(4, "", 1.7e9, Outcome.STAND_BACK, "unexpected error: x")
    leader = status_of([one], [], Config(), name="ctl-1:7", epoch=3)
    return as_document([], [], through_zookeeper(leader), Controls(), left_out={})


def golden(name: str) -> str:
    return (GOLDEN / f"{name}.json").read_text()


def test_it_is_printed_as_before() -> None:
    for name, found in (("measured", measured()), ("nothing_looked_at", nothing_looked_at())):
        assert as_json(found) + "\n" == golden(name)


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_node_without_cpu_does_not_hide_the_rest() -> None:
    world, memory = World(), Memory()
    for _ in range(2):
        seen = world.seen()
        (view,) = seen.topologies
        nodes = tuple(
            replace(one, cpu_capacity=0.0) if one.id == "b" else one
            for one in view.publication.nodes
        )
        view = dataclasses.replace(view, publication=replace(view.publication, nodes=nodes))
        seen = dataclasses.replace(seen, topologies=(view,))
        memory, report = cycle(memory, seen, APPROVE)
        world.now += 1
    leader = through_zookeeper(status_of(report.topologies, [], APPROVE, name="c", epoch=3))
    assert leader.controller == "c"
    (topology,) = as_document([view], view.acks, leader, Controls(), left_out={}).topologies
    assert topology.decision is not None
    shown = [percent(share) for one in topology.workers for share in one.shares]
    assert shown == ["15%", "15%", "?", "?"], "of the host that both run on"
    # The journal has no other numbers than JSON has.
    assert journaled(map(cycle_record, report.topologies))


def test_what_has_ended_by_the_leaders_clock_is_not_shown() -> None:
    held = Controls(pauses={"": Pause("release", 100.0)}, freeze=Pause("audit", 100.0))
    for time_s, shown in ((99.0, held), (100.0, Controls()), (None, Controls())):
        cycles = () if time_s is None else (CycleStatus(time_s=time_s),)
        found = as_document([], [], LeaderStatus(cycles=cycles), held, left_out={})
        assert found.controls == shown
    late = LeaderStatus(cycles=(CycleStatus(time_s=90.0),))
    for age_s, shown in ((9.0, held), (10.0, Controls()), (-1.0, held)):
        found = as_document([], [], late, held, left_out={}, status_s=age_s)
        assert found.controls == shown, "nobody leads since then"


def test_what_is_printed_can_be_read() -> None:
    for name in ("measured", "nothing_looked_at"):
        read_back = msgspec.json.decode(golden(name), type=StatusDocument)
        assert as_json(read_back) + "\n" == golden(name)


def test_the_schema_has_every_key_that_is_printed() -> None:
    done = CliRunner().invoke(app, ["status", "--schema"])
    assert done.exit_code == 0
    definitions = json.loads(done.output)["$defs"]

    def check(name: str, printed: dict[str, Any]) -> None:
        of = definitions[name]
        of_cycle = ("spouts", "effect", "peak", "hops", "guards", "undoes", "headroom_after")
        where_known = {*of_cycle, "meters", "off", "unpublished", "old", "bytes_per_s", "spaces"}
        where_known |= {"cluster", "in_tps", "out_tps"}
        always = [key for key in printed if key not in where_known]
        assert [key for key in of["properties"] if key not in where_known] == always
        assert of["required"] == always, "these are there where some could be read"

    document = json.loads(golden("measured"))
    check("StatusDocument", document)
    check("AgentStatus", document["agents"][0])
    check("TopologyStatus", document["topologies"][0])
    for part, name in (
        ("workers", "WorkerStatus"),
        ("executors", "ExecutorStatus"),
        ("moves", "MoveStatus"),
        ("links", "LinkRow"),
    ):
        check(name, document["topologies"][0][part][0])


def test_a_worker_and_an_executor_have_one_load_of_each_resource() -> None:
    (topology,) = measured().topologies
    assert {len(worker.shares) for worker in topology.workers} == {len(RESOURCES)}
    assert {len(one.loads) for one in topology.executors} == {len(RESOURCES)}
    (worker,) = [one for one in topology.workers if one.slot == "a:1"]
    assert worker.cpu_cores is not None and worker.capacity_cores is not None
    beside = next(one for one in topology.workers if one.slot == "a:2")
    assert worker.shares == beside.shares == (0.15,), "of the host that both run on"
    assert worker.capacity_cores == beside.capacity_cores == 2.0
    assert replace(worker, load_frac=None).shares == (None,)
