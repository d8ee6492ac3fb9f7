"""What the leader answers to plan and explain: the way of auto, and why something stays."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from controller.cli.status_document import as_document
from controller.cli.status_view import decided as decided_lines
from controller.config import Config, Mode
from controller.core.controls import Controls, Rejected
from controller.core.decision import Move, Outcome
from controller.core.limits import Limits
from controller.cycle import Memory
from controller.journal.rows import rows_of
from controller.report import TopologyReport
from controller.storm.answer_records import PlanAnswer, PlanStep
from controller.storm.answers import _detour, explain, misfit, of_topology, plan_of
from controller.storm.last import asked_by
from controller.storm.status import status_of
from migration.model import ExecutorId, Slot
from tests.unit.controller.test_cycle import A1, AUTO, B1, B2, PLACES, Controller, World

ADVISE = Config(mode=Mode.ADVISE)


def decided(world: World, config: Config = ADVISE) -> tuple[TopologyReport, Controller]:
    controller = Controller(world, config)
    controller.cycle()
    return controller.cycle(), controller


def planned(world: World, config: Config = ADVISE) -> PlanAnswer:
    report, controller = decided(world, config)
    assert report.picture is not None
    return plan_of(report, report.picture, controller.memory, config, world.now - 1)


def way_of_auto() -> list[dict[str, Any]]:
    """Let auto decide on the same load after each of its moves, until it moves nothing."""
    places, rests = dict(PLACES), Memory().moved_s
    steps: list[dict[str, Any]] = []
    while True:
        controller = Controller(World(places=dict(places)), AUTO)
        controller.memory = Memory(moved_s=rests)
        controller.cycle()
        report = controller.cycle()
        if report.outcome is not Outcome.MOVED:
            return steps
        moves = [[move.executor, move.source, move.target] for move in report.moves]
        steps.append({"moves": moves, "reason": report.reason})
        for move in report.moves:
            places[int(move.executor.split("-")[0])] = Slot.parse(move.target)
            rests = {**rests, ("wc-1", ExecutorId.parse(move.executor)): 101.0}


def test_the_plan_is_the_way_that_auto_then_goes() -> None:
    found = planned(World())
    moves = [move for step in found.steps for move in step.moves]
    assert len(moves) > 1
    assert moves[0] == ("2-2", "b:1", "a:1")
    told = [{"moves": step.moves, "reason": step.reason} for step in found.steps[:-1]]
    assert msgspec.json.encode(way_of_auto()) == msgspec.json.encode(told)
    before, after = found.inter_node_frac
    assert after < before == pytest.approx(160 / 185)
    last = found.steps[-1]
    assert last.moves == ()
    assert last.inter_node_frac == after
    places = {one.place: msgspec.to_builtins(one, enc_hook=float) for one in found.places}
    assert [*places] == ["a", "b", "a:1", "a:2", "b:1", "b:2"]
    # All that crosses between the two nodes comes to one and leaves the other.
    for when, share in (("now", before), ("then", after)):
        assert (
            places["a"][f"tps_{when}"] == places["b"][f"tps_{when}"] == pytest.approx(share * 185)
        )
        for row in places.values():
            frac = row[f"cpu_frac_{when}"]
            assert row[f"headroom_{when}"] == (pytest.approx(1 / frac) if frac else None)
    assert places["a:1"]["tps_now"] == 110
    assert places["b:1"]["cpu_frac_then"] < places["b:1"]["cpu_frac_now"]


def test_a_way_that_gains_only_at_its_end_is_called_so() -> None:
    assert planned(World()).detour == ""
    assert [_detour(worse, 6) for worse in (0, 3)] == ["", ""]
    assert _detour(4, 6).startswith("after 4 of 6 steps more crosses between nodes than today")


def test_an_executor_that_is_too_young_takes_its_part_in_the_plan_later() -> None:
    moves = [
        [step.moves for step in planned(World(), config).steps]
        for config in (ADVISE, replace(ADVISE, min_age_s=1.7e9 + 101 - 50 + 7))
    ]
    assert moves[0][0] == (("2-2", "b:1", "a:1"),)
    # All are young for two cycles of 5 s; a way ends where nothing may move.
    assert moves[1] == [()]


def test_a_proposal_fits_as_long_as_no_host_that_it_fills_is_over_the_limit() -> None:
    report, _ = decided(World())
    assert report.picture is not None
    to_a1 = (Move("2-2", "b:1", "a:1", 160.0),)
    assert misfit(report.picture, to_a1, Config(limits=Limits(high_frac=0.2))) is None
    assert misfit(report.picture, to_a1, Config(limits=Limits(high_frac=0.19))) == (
        "the loads have changed: a would use 20% of its CPU, and load.high is 19%"
    )
    # Host b is over the limit before and after, and the move relieves it.
    full, _ = decided(World({1: A1, 2: B1, 3: B1, 5: B1, 6: B2, 7: B2}))
    assert full.picture is not None
    assert misfit(full.picture, to_a1, Config(limits=Limits(high_frac=0.15))) is None
    assert misfit(report.picture, (Move("9-9", "b:1", "a:1", 0.0),), Config(limits=Limits())) == (
        "the load of 9-9 is not known yet"
    )


def test_the_plan_keeps_what_lasts_out_of_the_way() -> None:
    controls = Controls(rejected={"p-1": Rejected("wc-1", ("2-2",), 1.8e9)})
    found = planned(World(controls=controls))
    moves = [move for step in found.steps for move in step.moves]
    assert moves
    assert "2-2" not in [move[0] for move in moves]


def test_a_topology_that_is_paused_has_a_plan_too() -> None:
    found = planned(World(pause="release"))
    assert (found.outcome, found.reason) == ("PAUSED", "paused: release")
    assert found.steps[0].moves == (("2-2", "b:1", "a:1"),)


def test_an_executor_is_explained_by_its_candidates() -> None:
    report, _ = decided(World())
    found = explain(report, "2-2", ADVISE)
    assert found is not None
    (own,) = rows_of(found.executors)
    assert (own.worker, own.component, own.stays) == ("b:1", "bolt", None)
    best, *others = rows_of(found.candidates)
    assert (best.worker, best.asc_tps, best.why_not) == ("a:1", 160, None)
    assert {row.worker for row in others} == {"a:2", "b:2"}
    assert [row.why_not for row in others if row.worker == "b:2"] != [None]
    assert "gain is not above the threshold" in str(others[-1].why_not)


def test_why_an_executor_stays_and_why_a_worker_takes_nothing() -> None:
    report, _ = decided(World(deaf=frozenset({Slot("a", 1)})))
    found = explain(report, "2-2", ADVISE)
    assert found is not None
    why_not = {row.worker: row.why_not for row in rows_of(found.candidates)}
    assert "cannot follow plans" in str(why_not["a:1"])
    spout = explain(report, "1-1", ADVISE)
    assert spout is not None
    assert rows_of(spout.executors)[0].stays == "spout"
    tight = replace(ADVISE, limits=replace(ADVISE.limits, high_frac=0.21))
    report, _ = decided(World(), tight)
    found = explain(report, "2-2", tight)
    assert found is not None
    assert "it does not fit: 0.1 cores" in str(found.candidates)


def test_a_pause_hides_nothing_that_is_in_the_way_besides() -> None:
    report, _ = decided(World(pause="release", deaf=frozenset({Slot("b", 1)})))
    assert report.vetoes is None
    found = explain(report, "", ADVISE)
    assert found is not None
    stays = {row.executor: row.stays for row in rows_of(found.executors)}
    assert "the worker at b:1 cannot follow plans" in str(stays["2-2"])
    assert stays["3-3"] is None


def test_workers_and_hosts_are_explained_and_the_unknown_is_not() -> None:
    report, _ = decided(World())
    worker = explain(report, "b:1", ADVISE)
    assert worker == explain(report, "host-b:1", ADVISE)
    assert worker is not None
    assert [row.executor for row in rows_of(worker.executors)] == ["2-2", "5-5"]
    for name in ("b", "host-b"):
        host = explain(report, name, ADVISE)
        assert host is not None
        assert [row.worker for row in rows_of(host.workers)] == ["b:1", "b:2"]
    assert explain(report, "c", ADVISE) is None
    whole = explain(report, "", ADVISE)
    assert whole is not None
    assert whole.what_to_do.startswith("Look at the whole way")
    assert len(rows_of(whole.executors)) == 7


def test_what_is_left_before_and_after_the_moves_is_shown_and_not_in_the_reason() -> None:
    report, controller = decided(World())
    before = "5 times the input, then cpu of b"
    text = f"{before}; after the moves 5 times, then cpu of a"
    whole = explain(report, "", ADVISE)
    assert whole is not None
    assert whole.headroom == text
    assert asked_by(report, ADVISE)["headroom"] == text
    status = status_of([report], (), ADVISE, name="c", epoch=1)
    assert status.cycles[0].headroom_after == report.headroom_after
    document = as_document(controller.world.seen().topologies, (), status, Controls(), left_out={})
    assert document.topologies[0].headroom_after == report.headroom_after
    shown = next(line for line in decided_lines(document.topologies[0], {}) if "head-room" in line)
    assert shown.startswith(f"head-room: {text}; peaks of")
    assert "after the moves" not in report.reason
    calm = replace(report, moves=())
    assert calm.headroom_after is None
    rests = explain(calm, "", ADVISE)
    assert rests is not None
    assert rests.headroom == before


def test_a_topology_without_a_picture_still_says_what_to_do() -> None:
    report, _ = decided(World(status="REBALANCING"))
    found = explain(report, "", ADVISE)
    assert found is not None
    assert found.outcome == "STAND_BACK"
    assert explain(report, "2-2", ADVISE) is None
    assert of_topology([report], "") == of_topology([report], "wc-1") == [report]
    assert of_topology([report], "other") == []


def test_what_was_not_asked_for_has_no_key() -> None:
    report, _ = decided(World())
    head = ["topology", "cycle", "time", "mode", "outcome", "reason", "what_to_do", "hosts"]
    for what, parts in (
        ("", ["headroom", "peaks", "warnings", "workers", "executors"]),
        ("b:1", ["workers", "executors"]),
        ("2-2", ["executors", "candidates"]),
    ):
        assert [*msgspec.to_builtins(explain(report, what, ADVISE))] == [*head, *parts]


def test_an_answer_of_another_version_is_read() -> None:
    told = {"topology": "wc-1", "later": 1, "steps": [{"moves": [["7-7", "a:1", "b:1"]]}]}
    found = msgspec.convert(told, PlanAnswer)
    assert found == PlanAnswer("wc-1", steps=(PlanStep(moves=(("7-7", "a:1", "b:1"),)),))


def test_a_worker_that_storm_gives_time_to_start_is_starting_for_that_time() -> None:
    world = World(hookless=frozenset({A1}), started_secs=int(1.7e9 + 99))
    report, controller = decided(world)
    assert report.reason == "the worker at a:1 is starting"
    for until, stays in ((216.0, "its worker is starting"), (230.0, "no hooks in its JVM")):
        while world.now < until:
            report = controller.cycle()
            world.now += 4
        found = explain(report, "1-1", ADVISE)
        assert found is not None
        assert [one.stays for one in rows_of(found.executors)] == [stays]
        whole = explain(report, "", ADVISE)
        assert whole is not None
        closed = str(rows_of(whole.workers)[0].closed)
        assert ("a:1 is starting" in closed) == ("starting" in stays)
