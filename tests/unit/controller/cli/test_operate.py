"""The commands that ask ZooKeeper, where it does not answer."""

import itertools
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import msgspec
import pytest
import typer
from typer.testing import CliRunner

from controller import interrupt
from controller.cli import asking, drain, running, switch
from controller.cli.main import app
from controller.cli.status_document import DrainStatus
from controller.core.topology import TopologyView
from controller.storm import apply
from controller.storm.collect import DRAINED, LiveCluster
from controller.storm.history import SWITCHED_OFF, History
from controller.storm.leader import Leader
from controller.storm.move_record import HISTORY, MoveRecord, stored_moves
from kvstore.errors import AccessError, NotConnectedError, SessionLostError
from kvstore.zookeeper import Session, Waiting
from migration import wire
from migration.model import Node, Plan, Slot
from tests.messages import publication
from tests.unit.controller.storm.test_apply import Store


def never(
    self: Session, *, on_wait: Callable[[Waiting], None], stop: threading.Event | None = None
) -> bool:
    """Wait as `Session.connect` does without an answer; gives up the test after 1000 waits."""
    for attempt in range(1000):
        on_wait(Waiting(self.hosts, attempt, 1.0, "no answer"))
        if stop is not None and stop.wait(0.001):
            return False
    raise AssertionError("waits without limit")


def test_a_drain_tells_what_the_host_had_before_its_own_write_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: dict[str, bytes] = {}
    session = SimpleNamespace(put=written.__setitem__)
    places = {1: Slot("a", 1), 2: Slot("b", 1)}
    nodes = [Node(name, f"host-{name}", 100.0, (1,), 1) for name in "ab"]
    placed = TopologyView(publication(places, nodes), Plan("", 1, 0, "wc-1"), ())
    # A mirror may see what was written a moment later.
    view = SimpleNamespace(topologies=lambda: [placed], drained=dict, acks=tuple)
    monkeypatch.setattr(drain, "connected", lambda conf: nullcontext(session))
    monkeypatch.setattr(drain, "cannot_drain_now", lambda *asked: None)
    monkeypatch.setattr(LiveCluster, "of_session", lambda session: view)
    conf = tmp_path / "storm.yaml"
    conf.write_text("storm.local.dir: /var/storm\n")
    words = ["drain", "host-a", "--conf", str(conf), "-o", "json"]
    told = json.loads(CliRunner().invoke(app, words).stdout)
    assert (told["left"], told["of"]) == (1, 1)
    assert written == {f"{DRAINED}/host-a": b"1"}

    def slow(*asked: object) -> DrainStatus:
        time.sleep(0.5)
        return DrainStatus("host-a", 1, 0, ())

    monkeypatch.setattr(drain, "_wait_drained", slow)
    monkeypatch.setattr(asking, "SLOW_S", 0.01)
    waited = CliRunner().invoke(app, [*words, "--within", "1s"])
    assert waited.stderr == "waits for the controller that leads to empty host-a\n"


@pytest.mark.parametrize(
    "command",
    [["status"], ["pause"], ["resume"], ["plan"], ["history"], ["move", "wc", "7-7", "s1:6701"]],
)
def test_a_silent_zookeeper_is_given_up_with_what_to_check(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "connect", never)
    monkeypatch.setattr(asking, "NO_ANSWER_S", 0.05)
    conf = tmp_path / "storm.yaml"
    conf.write_text("storm.zookeeper.servers: [zk1, zk2]\nstorm.zookeeper.port: 2182\n")
    result = CliRunner().invoke(app, [*command, "--conf", str(conf)])
    said = str(result.exception)
    assert "at zk1:2182, zk2:2182. Check that it runs" in said
    assert f"storm.zookeeper.servers and storm.zookeeper.port in {conf}" in said


def test_an_answer_names_its_cluster_and_a_slow_one_whom_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def slow(self: Session, **how: Any) -> bool:
        time.sleep(0.3)
        return True

    monkeypatch.setattr(Session, "connect", slow)
    monkeypatch.setattr(Session, "__exit__", lambda *_: None)
    monkeypatch.setattr(asking, "without_storm", lambda session: None)
    conf = tmp_path / "storm.yaml"
    conf.write_text("storm.zookeeper.servers: [zk1]\n")
    for limit_s, waited in ((0.01, "waits for ZooKeeper at zk1:2181/storm\n"), (60.0, "")):
        monkeypatch.setattr(asking, "SLOW_S", limit_s)
        with asking.connected(conf):
            pass
        assert capsys.readouterr().err == f"{waited}cluster zk1:2181/storm\n"


def test_a_dry_run_of_a_drain_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {1: Slot("a", 1), 2: Slot("a", 1), 3: Slot("b", 1)}
    nodes = [Node(name, f"host-{name}", 100.0, (1,), 1) for name in "ab"]
    placed = TopologyView(publication(places, nodes), Plan("", 1, 0, "wc-1"), ())
    view = SimpleNamespace(topologies=lambda: [placed], drained=dict, acks=tuple)
    monkeypatch.setattr(drain, "connected", lambda conf: nullcontext(SimpleNamespace()))
    monkeypatch.setattr(LiveCluster, "of_session", lambda session: view)
    conf = tmp_path / "storm.yaml"
    conf.write_text("storm.local.dir: /var/storm\n")
    words = ["drain", "host-a", "--conf", str(conf), "--dry-run"]
    refused = iter([None, "the others are full"])
    monkeypatch.setattr(drain, "cannot_drain_now", lambda *asked: next(refused))
    said = CliRunner().invoke(app, words).stdout
    assert said.startswith("would move 0 executors away from host host-a, 2 stay\n")
    assert str(CliRunner().invoke(app, words).exception) == "the others are full"


def test_a_drain_and_an_off_wait_for_zookeeper_and_name_what_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = itertools.cycle((NotConnectedError, SessionLostError))

    def away() -> list[TopologyView]:
        raise next(errors)("ZooKeeper does not answer")

    monkeypatch.setattr(interrupt, "_goes_on", "")
    session = SimpleNamespace(put=lambda *_: None, interruptions=0)
    view = SimpleNamespace(topologies=away)
    monkeypatch.setattr(LiveCluster, "of_session", lambda session: view)
    monkeypatch.setattr(switch, "LiveCluster", lambda *_: view)
    monkeypatch.setattr(Leader, "refresh", lambda self: away())
    monkeypatch.setattr(Leader, "resign", lambda self: away())
    monkeypatch.setattr(drain, "begin_drain", lambda *_: 5)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    conf = tmp_path / "storm.yaml"
    conf.write_text("storm.local.dir: /var/storm\n")
    for module, words, goes_on in (
        (drain, ["drain", "host-a", "--within", "1s"], "`nstorm undrain host-a` ends it"),
        (switch, ["off"], "what is switched off stays so: `nstorm on` ends that"),
    ):
        monkeypatch.setattr(module, "connected", lambda conf: nullcontext(session))
        done = CliRunner().invoke(app, [*words, "--conf", str(conf)])
        assert done.stdout == "ZooKeeper is away: waiting for it\n"
        refused = str(done.exception)
        assert refused.startswith("ZooKeeper does not answer; ") and refused.endswith(goes_on)


def test_an_off_keeps_over_epochs_an_end_that_could_not_be_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Away(Store):
        def put(self, path: str, data: bytes) -> int:
            for error in errors:
                raise error
            return super().put(path, data)

    class Ends:
        def __init__(self, session: Session, *, history: History, **_: object) -> None:
            self.history = history

        def step(self, views: object) -> None:
            for outcome in outcomes:
                self.history.end(begun, outcome=outcome, reason=SWITCHED_OFF)

    begun = MoveRecord("wc-1", "m1", "1-1", "a:1", "b:1", begun_s=5.0)
    store, outcomes = Away(), iter(["UNDONE"])
    store.create(HISTORY, wire.packed(msgspec.json.encode([begun])))
    errors, epochs = iter([NotConnectedError("away")]), iter([1, 2])
    leader, view = Mock(), Mock(topologies=list, acks=tuple)
    leader.refresh = lambda: leader.configure_mock(epoch=next(epochs))
    monkeypatch.setattr(switch, "Leader", lambda *_: leader)
    monkeypatch.setattr(switch, "LiveCluster", lambda *_: view)
    monkeypatch.setattr(switch, "Mirror", Mock())
    monkeypatch.setattr(apply, "Applier", Ends)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    assert switch._end_moves(cast(Any, store), 60.0, print) == []
    (stored,) = stored_moves(store.nodes[HISTORY])
    assert (stored.outcome, stored.reason) == ("UNDONE", SWITCHED_OFF)
    assert view.led.call_count == 2


def test_an_error_of_zookeeper_names_what_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(**_: object) -> None:
        interrupt.does_not_end("a drain goes on")
        raise NotConnectedError("away")

    monkeypatch.setattr(interrupt, "_goes_on", "")
    with pytest.raises(SystemExit):
        running.run(cast(Any, broken), "nstorm")
    assert capsys.readouterr().err == "nstorm: away; a drain goes on\n"


@pytest.mark.parametrize("is_ignored", [False, True], ids=["usual", "nohup"])
def test_a_terminal_that_is_gone_ends_it_once(is_ignored: bool) -> None:
    def nothing(*_: object) -> None:
        """Stand for the end that Python has no handler for."""

    def works(**_: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGHUP)
        finally:
            os.kill(os.getpid(), signal.SIGHUP)
            cleaned.append(True)

    cleaned: list[bool] = []
    begun = signal.signal(signal.SIGHUP, signal.SIG_IGN if is_ignored else nothing)
    try:
        with nullcontext() if is_ignored else pytest.raises(SystemExit, match="129"):
            running.run(cast(Any, works), "nstorm")
    finally:
        signal.signal(signal.SIGHUP, begun)
    assert cleaned == [True]


@pytest.mark.parametrize("words", [["off"], ["drain", "host-a"]])
def test_what_zookeeper_refuses_does_not_go_on(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse(*_: object) -> int:
        raise AccessError("not allowed")

    monkeypatch.setattr(interrupt, "_goes_on", "")
    for module in (drain, switch):
        monkeypatch.setattr(module, "connected", lambda conf: nullcontext(Mock(put=refuse)))
    monkeypatch.setattr(drain, "begin_drain", refuse)
    conf = tmp_path / "storm.yaml"
    conf.write_text("storm.local.dir: /var/storm\n")
    monkeypatch.setattr("sys.argv", ["nstorm", *words, "--conf", str(conf)])
    with pytest.raises(SystemExit):
        running.run(app, "nstorm")
    assert capsys.readouterr().err == "nstorm: not allowed\n"


def test_a_drain_names_the_excluded_topology_that_it_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [Node(name, f"host-{name}", 100.0, (1,), 1) for name in "ab"]
    placed = TopologyView(publication({1: Slot("a", 1)}, nodes), Plan("", 1, 0, "wc-1"), ())
    view = SimpleNamespace(
        topologies=lambda: [placed], drained=dict, acks=tuple, free=lambda views: ()
    )
    session = SimpleNamespace(put=lambda *_: None, read=lambda path: None)
    monkeypatch.setattr(drain, "connected", lambda conf: nullcontext(session))
    monkeypatch.setattr(LiveCluster, "of_session", lambda session: view)
    conf = tmp_path / "storm.yaml"
    conf.write_text("storm.local.dir: /var/storm\nnstorm.excluded.topologies: [wc]\n")
    done = CliRunner().invoke(app, ["drain", "host-a", "--conf", str(conf), "--within", "1h"])
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "host host-a is drained: 1 of 1 executors left",
        "  1-1 of wc-1 stays: topology wc is excluded",
    ]


def test_only_a_person_at_a_terminal_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(typer, "confirm", lambda what, **_: asked.append(what))
    for is_terminal in (False, True):
        stream = SimpleNamespace(isatty=lambda at=is_terminal: at)
        monkeypatch.setattr(asking, "sys", SimpleNamespace(stdin=stream, stderr=stream))
        asking.confirm("All of it?")
    assert asked == ["All of it?"]
