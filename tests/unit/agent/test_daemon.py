"""The agent's loop: what ends it, what it survives, and what it logs of that."""

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from agent import daemon
from agent.config import AgentConfig
from agent.daemon import Agent, Shown, run
from agent.samples import Samples
from kvstore.errors import NotConnectedError, SessionLostError, StoreError
from kvstore.pulse import Pulse
from kvstore.writer import PlanWriter
from kvstore.zookeeper import Session, Stored
from migration.model import PersistedSlot, Plan
from migration.wire import CLUSTER, OFF_BY_CLUSTER, encode, encode_local
from tests.unit.agent.test_samples import SUPERVISOR


class Turns:
    """Stands for an agent: each turn does the next of the given things."""

    look_every_s = 0.001
    waits_for = None

    def __init__(self, stop: threading.Event, *turns: Exception | None) -> None:
        self.stop = stop
        self.turns = list(turns)

    def turn(self, now_s: float) -> None:
        if not self.turns:
            self.stop.set()
            return
        error = self.turns.pop(0)
        if error is not None:
            raise error


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    for pause in ("LOOK_EVERY_S", "_AFTER_SURPRISE_S"):
        monkeypatch.setattr(daemon, pause, 0.001)

    def go(*turns: Exception | None) -> list[str]:
        stop = threading.Event()
        agent = cast(Agent, cast(Any, Turns(stop, *turns)))
        with capture_logs() as logs:
            daemon._loop(agent, threading.Event(), stop, Pulse({}))
        return [entry["event"] for entry in logs]

    return go


def test_it_ends_when_it_is_told_to(loop: Callable[..., list[str]]) -> None:
    assert loop(None, None) == []


def test_a_lost_session_ends_it(loop: Callable[..., list[str]]) -> None:
    with pytest.raises(SessionLostError, match="gone"):
        loop(None, SessionLostError("gone"), None)


def test_zookeeper_away_is_said_once_and_its_return_too(
    loop: Callable[..., list[str]],
) -> None:
    away = NotConnectedError("away")
    assert loop(away, away, None, away, None) == [
        "zookeeper_away",
        "zookeeper_back",
        "zookeeper_away",
        "zookeeper_back",
    ]


def test_a_surprise_does_not_end_it(loop: Callable[..., list[str]]) -> None:
    assert loop(ZeroDivisionError("what"), None) == ["turn_failed"]


def test_a_store_that_is_taken_keeps_it_from_starting(tmp_path: Path) -> None:
    config = AgentConfig("127.0.0.1:1", tmp_path)
    with PlanWriter(tmp_path / "plan", b"plan"), capture_logs() as logs:
        assert run(config, threading.Event()) == 1
    assert [entry["event"] for entry in logs] == ["agent_cannot_start"]


@pytest.mark.parametrize("step", ["sync", "tend_store"])
@pytest.mark.parametrize("kind", [StoreError, OSError])
def test_a_full_disk_silences_no_node_and_leaves_none_switched_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, kind: type[Exception]
) -> None:
    pushed: list[str] = []

    def fail(*of: object) -> None:
        raise kind("no space left")

    session = cast(Session, cast(Any, SimpleNamespace(interruptions=0)))
    config = AgentConfig("localhost:1", tmp_path, supervisor="s1")
    with PlanWriter(tmp_path / "plan", b"plan") as writer:
        agent = Agent(config, session, writer, threading.Event())
    puller = SimpleNamespace(
        sync=lambda node, here: None,
        invalidate_all=lambda: None,
        tend_store=lambda: None,
        cluster="c",
        local=None,
        epoch=1,
        lost=(),
        off=b"a fault",
    )
    setattr(puller, step, fail)
    monkeypatch.setattr(agent, "_puller", puller)
    pusher = SimpleNamespace(
        led_by=lambda epoch: None,
        load_is_due=lambda now_s: True,
        push=lambda samples, node, *of, off: pushed.append(node),
    )
    monkeypatch.setattr(agent, "_pusher", pusher)
    for now_s in (100.0, 200.0):
        with pytest.raises(kind, match="no space left"):
            agent.turn(now_s)
    assert pushed == ["s1", "s1"]
    assert (tmp_path / OFF_BY_CLUSTER).read_text() == "a fault"
    agent.close()


def test_a_node_whose_plans_cannot_be_stored_still_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where workers run as users, the plans that are held are handed out in the same turn."""
    plan, pushed = Plan("c", 1, 1, "t"), []
    supervisor = replace(SUPERVISOR, slots=(PersistedSlot(6700, "o", (), "ada"),))

    def fail(payload: bytes) -> int:
        raise StoreError("no space left")

    def read(path: str, on_change: object = None) -> Stored | None:
        return Stored(b"c", 1, 0) if path == CLUSTER else None

    zookeeper = SimpleNamespace(
        interruptions=0, read=read, exists=read, children=lambda path, on_change: []
    )
    session = cast(Session, cast(Any, zookeeper))
    with PlanWriter(tmp_path / "plan", b"plan") as writer:
        writer.write(encode_local("c", {"t": encode(plan)}))
        agent = Agent(AgentConfig("localhost:1", tmp_path), session, writer, threading.Event())
        monkeypatch.setattr(writer, "write", fail)
        monkeypatch.setattr(
            agent._stores, "read", lambda *, with_loads: Samples(supervisor=supervisor)
        )
        monkeypatch.setattr(agent._pusher, "push", lambda *of, off: pushed.append(of[1]))
        for now_s in (100.0, 200.0, 300.0):
            with pytest.raises(StoreError, match="no space left"):
                agent.turn(now_s)
        agent.close()
    assert pushed == ["s1", "s1", "s1"]


def test_a_node_without_hooks_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = cast(Session, cast(Any, SimpleNamespace(interruptions=0)))
    with PlanWriter(tmp_path / "plan", b"plan") as writer:
        agent = Agent(AgentConfig("localhost:1", tmp_path), session, writer, threading.Event())
        for step in ("_pull", "_hand_out", "_tend"):
            monkeypatch.setattr(agent, step, lambda now_s: None)
        with capture_logs() as logs:
            for now_s in (5.0, 20.0, 34.0):
                agent.turn(now_s)
            assert logs == []
            agent.turn(36.0)
            agent.turn(90.0)
        agent.close()
    assert [entry["event"] for entry in logs] == ["no_hooks_here"]


def test_while_zookeeper_is_away_the_metrics_of_the_jvms_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*of: object) -> None:
        raise NotConnectedError("away")

    session = cast(Session, cast(Any, SimpleNamespace(interruptions=0)))
    config, shown, tended = AgentConfig("localhost:1", tmp_path), Shown(), []
    with PlanWriter(tmp_path / "plan", b"plan") as writer:
        agent = Agent(config, session, writer, threading.Event(), shown)
        monkeypatch.setattr(agent._puller, "sync", fail)
        monkeypatch.setattr(agent._stores, "discover", lambda: tended.append(True))
        samples = Samples(supervisor=SUPERVISOR)
        monkeypatch.setattr(agent._stores, "read", lambda *, with_loads: samples)
        with pytest.raises(NotConnectedError, match="away"):
            agent.turn(100.0)
        agent.close()
    assert tended == [True]
    assert shown.samples is samples


def test_an_agent_that_no_jvm_names_the_node_to_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = cast(Session, cast(Any, SimpleNamespace(interruptions=0)))
    stop, pulse, seen = threading.Event(), Pulse({}), []
    samples = [Samples(), Samples(), Samples(supervisor=SUPERVISOR)]
    with PlanWriter(tmp_path / "plan", b"plan") as writer:
        agent = Agent(AgentConfig("localhost:1", tmp_path), session, writer, threading.Event())
        for step in ("_pull", "_hand_out", "_tend"):
            monkeypatch.setattr(agent, step, lambda now_s: None)
        monkeypatch.setattr(agent._pusher, "push", lambda *of, off: None)

        def read(*, with_loads: bool) -> Samples:
            seen.append((pulse.idles, pulse.worked_at_s > 0))
            if len(samples) == 1:
                stop.set()
            return samples.pop(0)

        monkeypatch.setattr(agent._stores, "read", read)
        daemon._loop(agent, threading.Event(), stop, pulse)
        agent.close()
    waits = "waits for a JVM with the hooks on this node"
    assert seen == [("waits for its start", False), (waits, True), (waits, True)]
    assert pulse.idles is None
