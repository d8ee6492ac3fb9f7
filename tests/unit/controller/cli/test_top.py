"""What `nstorm top` shows."""

import io
import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
from rich.console import Console

from controller.cli import top
from controller.cli.places import only
from controller.cli.status_document import StatusDocument, as_document, as_json
from controller.cli.top import as_screen
from controller.config import build
from controller.core.controls import Controls
from controller.core.figures import Effect, Verdict
from controller.cycle import CycleInput
from controller.errors import CommandError
from controller.report import Felt, TopologyReport
from controller.storm.leader_status import LeaderStatus
from controller.storm.status import status_of
from kvstore.errors import NotConnectedError
from migration.model import Candidacy
from tests.recorded_world import three_cycles

CONFIG = build({})


def document(*, meters: bool = False, spouts: bool = False) -> StatusDocument:
    """Show three cycles, as the leader has sent them."""
    seen, _, report = three_cycles(CONFIG, meters=meters, spouts=spouts)
    return document_of(seen, report.topologies)


def document_of(seen: CycleInput, reports: tuple[TopologyReport, ...]) -> StatusDocument:
    told = status_of(reports, (), CONFIG, name="ctl-1:7", epoch=1)
    as_sent = msgspec.json.decode(msgspec.json.encode(told), type=LeaderStatus)
    acks, leads = seen.topologies[0].acks, [Candidacy("ctl-1:7", "0.2.0", 2)]
    return as_document(seen.topologies, acks, as_sent, Controls(), controllers=leads, left_out={})


def screen(host: str = "", *, spouts: bool = False) -> list[str]:
    return screen_of(only(document(spouts=spouts), "", host))


def screen_of(shown: StatusDocument) -> list[str]:
    console = Console(width=120, record=True, file=io.StringIO())
    for part in as_screen(shown):
        console.print(part)
    return console.export_text().splitlines()


def test_it_shows_load_placement_traffic_and_the_last_decision() -> None:
    lines = screen()
    assert lines[0] == "controller ctl-1:7, mode advise, epoch 1"
    (decision,) = [line for line in lines if line.startswith("cycle 3 ")]
    assert decision.startswith("cycle 3 WOULD_MOVE: ")
    (worker,) = [line for line in lines if line.strip().startswith("host-a:1 ")]
    assert "1 spout, 1 bolt" in worker
    assert "█" in worker
    links = [line.split() for line in lines if line.count("host-") == 2]
    assert {(source, target) for source, target, _, _ in links} == {
        ("host-a", "host-b"),
        ("host-b", "host-a"),
    }
    assert all(float(tps.replace(",", "")) > 0 for _, _, tps, _ in links)


def test_it_shows_how_full_a_worker_is_beyond_its_cpu() -> None:
    shown = document(meters=True)
    (topology,) = shown.topologies
    first = topology.workers[0]
    full = msgspec.structs.replace(
        first,
        spaces={"heap": 0.42},
        meters={"gc_frac": 0.07, "transfer_queue_tuples": 1234.0},
    )
    topology = msgspec.structs.replace(
        topology,
        workers=(full, *topology.workers[1:]),
        executors=tuple(
            msgspec.structs.replace(e, queue=4 * (e.slot == full.slot)) for e in topology.executors
        ),
        links=tuple(
            msgspec.structs.replace(row, bytes_per_s=2_500_000.0) for row in topology.links
        ),
    )
    lines = screen_of(msgspec.structs.replace(shown, topologies=(topology,)))

    (worker,) = [line for line in lines if line.strip().startswith("host-a:1 ")]
    assert "42%" in worker and "7%" in worker and "1,234" in worker
    waiting = sum(e.queue or 0 for e in topology.executors)
    assert f" {waiting} " in worker
    links = [line.split() for line in lines if line.count("host-") == 2]
    assert [row[-1] for row in links if len(row) == 4] == ["2.5", "2.5"]


def test_where_no_queue_is_known_none_is_shown_as_empty() -> None:
    shown = document()
    (topology,) = shown.topologies
    unknown = tuple(msgspec.structs.replace(e, queue=None) for e in topology.executors)
    topology = msgspec.structs.replace(topology, executors=unknown)
    lines = screen_of(msgspec.structs.replace(shown, topologies=(topology,)))
    (worker,) = [line for line in lines if line.strip().startswith("host-a:1 ")]
    assert worker.split("1 spout")[0].split()[-1] == "?"


def test_the_document_has_what_the_meters_show() -> None:
    shown = json.loads(as_json(document(meters=True)))
    workers = shown["topologies"][0]["workers"]
    assert len(workers) == 4
    for worker in workers:
        assert worker["meters"] == {"heap_live_bytes": 700, "gc_frac": pytest.approx(0.2)}
    for agent in shown["agents"]:
        assert agent["meters"] == {
            "machine_cores": 2,
            "machine_cpu_cores": pytest.approx(1.5),
        }


def test_what_was_not_measured_is_not_in_the_document() -> None:
    assert "meters" not in as_json(document())


def test_it_shows_what_users_feel() -> None:
    line = "spouts: 500.0 acked/s, 2.0 failed/s, p50 44 ms, p99 48 ms"
    assert line in screen(spouts=True)
    found = json.loads(as_json(document(spouts=True)))["topologies"][0]["spouts"]
    assert found == {
        "acked_tps": pytest.approx(500),
        "failed_tps": pytest.approx(2),
        "latency_p50_ms": pytest.approx(44),
        "latency_p99_ms": pytest.approx(47.92),
    }


def test_without_acks_it_shows_so_once_and_no_zero() -> None:
    (line,) = [line for line in screen() if line.startswith("spouts: ")]
    assert line.startswith("spouts: acks are not known (no ackers, ")
    assert "spouts" not in json.loads(as_json(document()))["topologies"][0]


def test_it_shows_the_effect_of_the_last_run_of_moves() -> None:
    effect = Effect(Verdict.BETTER, "p99 41 → 35 ms; no fails", ("m1", "m2"))
    seen, _, report = three_cycles(CONFIG)
    (one,) = report.topologies
    one = replace(one, felt=Felt(effects=(effect,)))
    shown = document_of(seen, (one,))
    lines = [part for part in as_screen(shown) if isinstance(part, str)]
    assert "effect of m1, m2: better: p99 41 → 35 ms; no fails" in lines
    found = json.loads(as_json(shown))["topologies"][0]["effect"]
    assert (found["verdict"], found["moves"]) == ("better", ["m1", "m2"])


def test_it_goes_on_while_zookeeper_is_away_and_the_topology_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screens: list[list[Any]] = []
    seen, away = document(), NotConnectedError("ZooKeeper does not answer")
    gone = msgspec.structs.replace(seen, topologies=())
    ends: list[StatusDocument | BaseException] = [seen, away, gone, seen, KeyboardInterrupt()]
    looks = iter(ends)

    def look(*_: Any) -> StatusDocument:
        found = next(looks)
        if isinstance(found, BaseException):
            raise found
        return found

    live = SimpleNamespace(update=lambda group, refresh: screens.append(group.renderables))
    monkeypatch.setattr(top, "Console", lambda: SimpleNamespace(is_terminal=True))
    monkeypatch.setattr(top, "Live", lambda **_: nullcontext(live))
    monkeypatch.setattr(top, "connected", lambda conf, says: nullcontext(None))
    monkeypatch.setattr(top, "LiveCluster", SimpleNamespace(of_session=lambda session: None))
    monkeypatch.setattr(top, "look", look)
    top.top(Path("storm.yaml"), "wc", every=0.0)
    first, stale, without, last = screens
    assert stale[0].startswith("NOT READ since 2") and stale[0].endswith(
        ": ZooKeeper does not answer"
    )
    assert stale[1:] == first
    assert without[-1] == "no topology wc: there are none"
    assert last[0] == first[0]


def test_the_screen_opens_after_what_the_connection_prints(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []

    def live(**_: object) -> Any:
        order.append("screen")
        return nullcontext(Mock())

    def connected(conf: Path, *, says: bool) -> Any:
        order.append(f"connected {says}")
        return nullcontext(None)

    monkeypatch.setattr(top, "Live", live)
    monkeypatch.setattr(top, "connected", connected)
    monkeypatch.setattr(top, "LiveCluster", Mock())
    monkeypatch.setattr(top, "look", lambda *_: document())
    top.top(Path("storm.yaml"))
    assert order == ["connected True", "screen"]


def test_what_was_never_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top, "connected", lambda conf, says: nullcontext(None))
    monkeypatch.setattr(top, "LiveCluster", SimpleNamespace(of_session=lambda session: None))
    monkeypatch.setattr(top, "look", lambda *_: document())
    with pytest.raises(CommandError, match="no topology wx"):
        top.top(Path("storm.yaml"), "wx", every=0.0)


def test_it_can_be_filtered() -> None:
    assert not [line for line in screen("host-b") if line.strip().startswith("host-a:1 ")]
