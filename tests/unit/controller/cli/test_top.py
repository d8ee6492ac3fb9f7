"""What `nstorm top` shows."""

import io
import json

import msgspec
import pytest
from rich.console import Console

from controller.cli.places import only
from controller.cli.status_document import as_document, as_json
from controller.cli.top import as_screen
from controller.config import build
from controller.core.controls import Controls
from controller.cycle import Memory, cycle
from controller.storm.status import LeaderStatus, status_of
from deploy.ingest.world import WindowWorld
from tests.recorded_world import metered_cycles, publication, windows


def screen(host: str = "") -> list[str]:
    """Show three cycles over a world whose load is known."""
    config, world, window, memory = build({}), WindowWorld(publication(8)), windows(8), Memory()
    for tick in range(3):
        world.advance(window(tick))
        seen = world.seen()
        memory, report = cycle(memory, seen, config)
    told = status_of(report.topologies, (), config, name="ctl-1:7", epoch=1)
    acks = seen.topologies[0].acks
    status = as_document(seen.topologies, acks, told, Controls(), left_out={})
    console = Console(width=120, record=True, file=io.StringIO())
    for part in as_screen(only(status, "", host)):
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
    assert {(source, target) for source, target, _ in links} == {
        ("host-a", "host-b"),
        ("host-b", "host-a"),
    }
    assert all(float(tps.replace(",", "")) > 0 for _, _, tps in links)


def test_the_document_has_what_the_meters_show() -> None:
    config = build({})
    seen, _, report = metered_cycles(config)
    told = status_of(report.topologies, (), config, name="ctl-1:7", epoch=1)
    acks = seen.topologies[0].acks
    as_sent = msgspec.json.decode(msgspec.json.encode(told), type=LeaderStatus)
    status = as_document(seen.topologies, acks, as_sent, Controls(), left_out={})
    shown = json.loads(as_json(status))
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
    config, world, window, memory = build({}), WindowWorld(publication(8)), windows(8), Memory()
    for tick in range(3):
        world.advance(window(tick))
        seen = world.seen()
        memory, report = cycle(memory, seen, config)
    told = status_of(report.topologies, (), config, name="ctl-1:7", epoch=1)
    status = as_document(seen.topologies, seen.topologies[0].acks, told, Controls(), left_out={})
    assert "meters" not in as_json(status)


def test_it_can_be_filtered() -> None:
    assert not [line for line in screen("host-b") if line.strip().startswith("host-a:1 ")]
