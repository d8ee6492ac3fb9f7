"""The last moves: who asked, how they ended, and what was measured afterwards."""

import hashlib
import time
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from controller.core.effect import CPU
from controller.core.figures import Change, Effect, Verdict
from controller.journal.lines import compact
from controller.journal.writer import Bounds, Writer
from controller.storm.history import LONGEST_REASON, MEASURED_AFTER_S, MEASURED_UNTIL_S, History
from controller.storm.look import Look
from controller.storm.move_record import (
    REMEMBERED_MOVES,
    Figures,
    MoveRecord,
    known_moves,
    stored_moves,
)
from kvstore.zookeeper import Stored
from migration.model import Base, Entry, Phase, Slot
from migration.wire import LARGEST_NODE_BYTES
from tests.messages import executor
from tests.messages import replace as replaced


def stored(data: bytes | None) -> Stored | None:
    return None if data is None else Stored(data, 0, 0)


A, B = Slot("a", 1), Slot("b", 1)


def entry(name: str, task: int = 7) -> Entry:
    return Entry(name, executor(task), A, B, Phase.PREPARE, Base(A, 50))


def made(history: History, name: str, at_s: float) -> None:
    asked = {"asked_by": "policy gather", "why": "near", "asc_tps": {"7-7": 12.0}}
    history.begin("wc-1", entry(name), at_s, {**asked, "before": {"inter_node_frac": 0.6}})
    history.end(
        history.of("wc-1", entry(name)), outcome="MOVED", reason="settled", ended_s=at_s + 1
    )


def test_a_new_leader_lets_rest_what_an_earlier_one_has_moved() -> None:
    history, now_s, time_s = History(), time.monotonic(), time.time()
    made(history, "m0", time_s - 300.0)
    made(history, "m1", time_s - 20.0)
    history.begin("wc-1", entry("m2", 8), time_s, {})
    of_another_clock = {"outcome": "MOVED", "ended_s": time_s + 900.0}
    history.end(history.of("wc-1", entry("m2", 8)), **of_another_clock)
    history.moves.append(replace(history.moves[-1], executor="no executor"))
    nothing: Any = SimpleNamespace(take_ended=list, take_answers=tuple, answers=tuple, begun_s=())
    look = Look(nothing, nothing, history, nothing, nothing, cooldown_s=60.0)
    look.led()
    seen = look.seen(time_s, None)
    assert [at[:2] for at in seen.earlier] == [("wc-1", executor(7)), ("wc-1", executor(8))]
    assert seen.earlier[0][2] == pytest.approx(now_s - 19.0, abs=5.0)
    assert seen.earlier[1][2] == pytest.approx(now_s, abs=5.0)
    assert seen.rests == (), "no move has ended since the last cycle"
    assert look.seen(time_s, None).earlier == ()


def test_a_move_keeps_who_asked_over_leaders_and_gets_what_was_measured() -> None:
    history = History()
    history.begin("wc-1", entry("m1"), 100.0, {"asked_by": "operator"})
    assert history.changed
    assert history.ended == []
    after = History()
    after.load(stored(history.dump()))
    after.end(after.of("wc-1", entry("m1")), outcome="MOVED", reason="settled", ended_s=101.0)
    (move,) = after.ended
    assert (move.asked_by, move.begun_s, move.outcome) == ("operator", 100.0, "MOVED")
    now: dict[str, Figures] = {"wc-1": {"inter_node_frac": 0.4, "most_load_frac": 0.7}}
    after.measure(now, 101.0 + MEASURED_AFTER_S - 1)
    assert after.moves[0].after == {}
    after.measure(now, 101.0 + MEASURED_AFTER_S)
    assert after.moves[0].after == now["wc-1"]
    after.measure({"wc-1": {"inter_node_frac": 0.1}}, 101.0 + MEASURED_AFTER_S + 5)
    assert after.moves[0].after == now["wc-1"]
    assert stored_moves(stored(after.dump())) == after.moves


def test_what_could_not_be_measured_in_time_is_not_measured_later() -> None:
    history = History()
    made(history, "m1", 100.0)
    history.measure({"wc-1": {"inter_node_frac": 0.4}}, 101.0 + MEASURED_UNTIL_S + 1)
    assert history.moves[0].after == {}


def test_moves_that_overlap_share_what_is_measured_and_one_that_was_taken_back_has_none() -> None:
    history = History()
    now: dict[str, Figures] = {"wc-1": {"inter_node_frac": 0.4}}
    history.begin("wc-1", entry("m1"), 100.0, {})
    other = entry("m2", 9)
    history.begin("wc-1", other, 100.5, {})
    for one in (entry("m1"), other):
        history.end(history.of("wc-1", one), outcome="MOVED", reason="settled", ended_s=101.0)
    made(history, "m3", 120.0)  # the executor of m1 again
    history.measure(now, 121.0 + MEASURED_AFTER_S)
    found = {move.id: (move.after, move.measured_with) for move in history.moves}
    assert found == {"m1": ({}, 0), "m2": (now["wc-1"], 2), "m3": (now["wc-1"], 0)}


def test_an_undone_move_is_not_measured_and_one_begun_unseen_is_remembered() -> None:
    history = History()
    history.end(history.of("wc-1", entry("m1")), outcome="UNDONE", reason="late", ended_s=100.0)
    history.measure({"wc-1": {"inter_node_frac": 0.4}}, 150.0)
    (move,) = history.moves
    assert (move.asked_by, move.begun_s, move.after) == ("unknown", None, {})


def test_moves_keep_what_their_run_has_changed_once_that_is_final() -> None:
    history = History()
    made(history, "m1", 100.0)
    made(history, "m2", 130.0)
    history.begin("wc-1", entry("m3", 9), 140.0, {})
    history.changed = False
    effect = Effect(Verdict.BETTER, "no fails", ("m1", "m2", "m3"))
    history.judge({"wc-1": [effect], "other-1": [replaced(effect, is_final=True)]})
    assert not history.changed
    history.judge({"wc-1": [replaced(effect, is_final=True)]})
    assert history.changed
    shown = {move.id: move.effect for move in history.moves}
    assert shown == {"m1": "better: no fails", "m2": "better: no fails", "m3": ""}
    worse = Effect(Verdict.WORSE, "p99 4 → 9 ms", ("m1",), is_final=True)
    history.judge({"wc-1": [worse]})
    assert history.moves[0].effect == "better: no fails"
    assert stored_moves(stored(history.dump())) == history.moves


def test_moves_keep_the_cpu_that_was_predicted_and_measured() -> None:
    history = History()
    made(history, "m1", 100.0)
    cpu = {CPU: Change(2.0, 1.5, 0.1)}
    effect = Effect(Verdict.BETTER, "", ("m1",), is_final=True, changes=cpu, predicted_cpu=0.9)
    history.judge({"wc-1": [effect]})
    (move,) = stored_moves(stored(history.dump()))
    assert (move.predicted_cpu, move.measured_cpu) == (0.9, 0.75)


def test_the_gain_stands_by_its_executor_and_the_hour_names_nodes() -> None:
    history = History()
    made(history, "m1", 100.0)
    made(history, "m2", 4000.0)
    assert [move.asc_tps for move in history.moves] == [12.0, 12.0]
    assert history.hour(4001.0) == ((4000.0, "a", "b"),)
    assert history.hour(4000.0 - 86_400) == (), "the clock was a day ahead"


def test_reasons_without_end_are_cut_and_what_does_not_fit_is_forgotten() -> None:
    history = History()
    for number in range(REMEMBERED_MOVES):
        noise = hashlib.shake_256(str(number).encode()).hexdigest(3000)
        asked = {"why": noise, "before": {noise: 1.0}}
        history.begin("wc-1", entry(f"m{number}"), 1.0, asked)
        history.end(
            history.of("wc-1", entry(f"m{number}")), outcome="UNDONE", reason=noise, ended_s=2.0
        )
    last = history.moves[-1]
    assert (last.why, last.reason) == (noise[:LONGEST_REASON], noise[:LONGEST_REASON])
    assert len(history.dump()) <= LARGEST_NODE_BYTES
    assert 0 < len(history.moves) < REMEMBERED_MOVES
    assert history.moves[-1] == last


def test_only_the_last_moves_are_kept_and_garbage_is_none() -> None:
    history = History()
    for number in range(REMEMBERED_MOVES + 5):
        made(history, f"m{number}", float(number))
    assert len(history.moves) == REMEMBERED_MOVES
    assert history.moves[0].id == "m5"
    assert len(history.dump()) < 262_144
    for data in (b"garbage", b"\x1f\x8bgarbage", b"{}", b'[{"id":7}]', None):
        assert stored_moves(stored(data)) == []
    assert asdict(history.moves[0])["topology"] == "wc-1"


def journal(folder: Path, name: str, moves: list[MoveRecord]) -> Path:
    writer = Writer(folder / name, name, Bounds())
    head, tick = compact({"kind": "head"}), compact({"kind": "tick"})
    writer.append([head, tick], begins=True, moves=[compact(asdict(move)) for move in moves])
    writer.close()
    return folder / name


def test_journals_of_whoever_led_tell_of_moves_that_zookeeper_has_forgotten(tmp_path: Path) -> None:
    history = History()
    for number in range(3):
        made(history, f"m{number}", 1000.0 * number + 1)
    first, second, third = history.moves
    measured = replace(first, after={"inter_node_frac": 0.3})
    # One leader wrote a move twice, the second time as measured; the other only saw it end.
    folders = [journal(tmp_path, "a", [first, measured]), journal(tmp_path, "b", [first, second])]
    history.moves = [replace(second, after={"inter_node_frac": 0.2}), third]
    assert known_moves(stored(history.dump()), folders) == [measured, *history.moves]
    judged = replace(measured, effect="better: no fails")
    folders = [journal(tmp_path, "d", [measured, judged]), *folders]
    assert known_moves(None, folders) == [judged, second]
    assert known_moves(None, [tmp_path / "none"]) == []
    # The same id in a ZooKeeper that was rebuilt is another move.
    again = replace(first, begun_s=9000.0)
    assert known_moves(None, [journal(tmp_path, "c", [again]), folders[1]]) == [measured, again]


def undone(history: History, target: Slot, why: str = "the target was not ready in time") -> float:
    """Let a move be undone; give how long its executor then rests, with 100 s of cool-down."""
    return ended(history, target, "UNDONE", why)


def ended(history: History, target: Slot, outcome: str, why: str = "") -> float:
    of = Entry(f"m{len(history.moves)}", executor(7), A, target, Phase.PREPARE, Base(A, 50))
    history.begin("wc-1", of, 100.0, {})
    return history.rest_s(history.end(history.of("wc-1", of), outcome=outcome, reason=why), 100.0)


def test_what_cannot_succeed_is_tried_more_and_more_seldom() -> None:
    history = History()
    history.end(history.of("wc-1", entry("other", 8)), outcome="UNDONE", reason="x")
    assert [undone(history, B) for _ in range(4)] == [100.0, 200.0, 400.0, 800.0]
    kept = History()
    kept.load(stored(history.dump()))  # another controller leads
    assert undone(kept, B) == 1600.0
    assert undone(history, Slot("c", 1)) == 1600.0
    for _ in range(30):
        last = undone(history, B)
    assert last == 86_400.0
    assert ended(history, B, "MOVED") == 100.0
    assert undone(history, B) == 100.0


def test_a_pair_of_executor_and_host_is_remembered_over_moves_to_other_hosts() -> None:
    history = History()
    for rest_s in (100.0, 200.0, 400.0):
        assert undone(history, B) == rest_s
        assert ended(history, Slot("c", 1), "MOVED") == 100.0


def test_what_an_operator_cancels_or_storm_decides_is_no_failure() -> None:
    history = History()
    for _ in range(3):
        assert undone(history, B, "an operator cancelled the move, by sasl:alice") == 100.0
        assert undone(history, B, "nstorm was switched off: a fault") == 100.0
        assert ended(history, B, "VOID", "Storm assigned the executor elsewhere") == 100.0
    assert undone(history, B) == 100.0


def test_an_executor_without_a_cool_down_rests_too_once_it_could_not_move() -> None:
    history = History()
    assert undone(history, B) == 100.0
    move = replace(history.ended[-1], id="again")
    history.moves.append(move)
    assert history.rest_s(move, 0.0) == 60.0


def test_an_end_that_could_not_be_stored_is_not_forgotten() -> None:
    """The connection broke between it and the write of the history."""
    history = History()
    history.begin("wc-1", entry("m1"), 100.0, {})
    stored = Stored(history.dump(), 1, 1)
    history.end(history.of("wc-1", entry("m1")), outcome="VOID", reason="reassigned", ended_s=101.0)
    history.changed = False
    history.load(stored)
    assert [move.outcome for move in history.moves] == ["VOID"]
    assert history.changed
    history.load(Stored(history.dump(), 2, 2))
    assert not history.changed
