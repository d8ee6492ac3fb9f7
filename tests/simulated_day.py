"""Memory over a simulated day: ``PYTHONPATH=tests python -m tests.simulated_day``.

Real objects of controller and agent, an imagined clock. The world is small and its traffic changes
each hour, so that moves begin, end, and are forgotten.
"""

import gc
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import psutil
import typer
from msgspec import structs

from agent.config import AgentConfig
from agent.daemon import Agent
from agent.samples import Samples
from agent.telemetry import NodeTelemetry
from controller.config import build
from controller.cycle import Memory, cycle
from controller.ingest.world import WindowWorld
from controller.journal.recorder import Recorder
from controller.journal.writer import Bounds, Writer
from controller.storm.history import History
from controller.storm.last import figures
from controller.storm.proposals import Proposals
from controller.storm.status import publish, status_of
from controller.storm.telemetry import Telemetry
from kvstore.pulse import Pulse
from kvstore.writer import PlanWriter
from kvstore.zookeeper import Session, Stored
from migration import wire
from migration.model import (
    Counters,
    ExecutorId,
    ExecutorLoad,
    Plan,
    Slot,
    SupervisorAck,
    WorkerAck,
    WorkerLoad,
    traffic_of,
)
from tests.recorded_world import TICK_S, publication, windows

HOUR_S, DAY_S = 3600.0, 86_400.0
EXECUTORS = 40


class Nodes:
    """Stands for a session: nodes in memory."""

    interruptions = 0

    def __init__(self) -> None:
        self.data: dict[str, tuple[bytes, int]] = {}

    def put(self, path: str, data: bytes) -> int:
        version = self.data[path][1] + 1 if path in self.data else 0
        self.data[path] = data, version
        return version

    def read(self, path: str, on_change: Callable[[], None] | None = None) -> Stored | None:
        return Stored(*self.data[path], 0) if path in self.data else None

    exists = read

    def read_many(self, paths: Sequence[str]) -> list[Stored | None]:
        return [self.read(path) for path in paths]

    def children(self, path: str, on_change: Callable[[], None] | None = None) -> list[str]:
        return sorted(p.removeprefix(f"{path}/") for p in self.data if p.startswith(f"{path}/"))


def _counted(hours: float) -> dict[str, Any]:
    gc.collect()
    mib = psutil.Process().memory_info().rss / 2**20
    return {"hours": hours, "objects": len(gc.get_objects()), "rss_mib": round(mib, 1)}


def controller_day(folder: Path, seconds: float, every_s: float) -> Iterator[dict[str, Any]]:
    """Decide, move, measure, report and record each 5 s; count memory now and then."""
    config = build({"mode": "auto", "cooldown.executor.secs": 60, "asc.threshold": 0.0})
    world, memory, history, pulse = (
        WindowWorld(publication(EXECUTORS)),
        Memory(),
        History(),
        Pulse({}),
    )
    pulse.beat()
    telemetry = Telemetry(config, pulse)
    session = cast(Session, cast(Any, Nodes()))
    recorder = Recorder(config, Writer(folder, "day", Bounds.of(1.0, 64.0)))
    proposals = Proposals()
    begun: list[Any] = []
    with closing(recorder):
        for tick in range(int(seconds / TICK_S)):
            at_s = tick * TICK_S
            world.advance(windows(EXECUTORS, seed=1 + int(at_s // HOUR_S))(tick))
            seen = world.seen()
            for entry in begun:
                phases = {"PREPARE": 0.2, "SWITCH": 0.1, "DRAIN": 0.1, "STOP": 0.1, "SETTLE": 5.0}
                how = {"outcome": "MOVED", "reason": "settled", "ended_s": seen.time_s}
                telemetry.ended(history.end(history.of("wc-1", entry), phase_s=phases, **how))
            before = memory
            memory, report = cycle(before, seen, config)
            begun = [e for p in report.plans.values() for e in p.entries]
            for entry in begun:
                asked = {"asked_by": "policy", "why": report.topologies[0].reason}
                before_now = figures(report.topologies[0])
                history.begin("wc-1", entry, seen.time_s, {**asked, "before": before_now})
            recorder.record(before, seen, report)
            world.write(report)
            proposals.show(report.topologies, seen.time_s)
            figures_now = {r.topology: figures(r) for r in report.topologies if r.picture}
            history.measure(figures_now, seen.time_s)
            history.dump()
            shown = status_of(
                report.topologies,
                history.ended,
                config,
                name="day",
                epoch=0,
                proposals=proposals.shown,
            )
            publish(session, shown)
            telemetry.cycle(seen, memory, report.topologies, 0.01, history.ended)
            list(telemetry.collect())
            if (at_s + TICK_S) % every_s == 0:
                yield {**_counted((at_s + TICK_S) / HOUR_S), "moves": len(history.moves)}


class Said:
    """Stands for the stores of a node's JVMs: their reports are handed over, without LMDB."""

    def __init__(self) -> None:
        self.samples = Samples()

    def read(self, *, with_loads: bool = True) -> Samples:
        return self.samples if with_loads else replace(self.samples, loads=())

    def nothing(self) -> None:
        pass

    discover = check_readers = close = nothing


def agent_day(folder: Path, seconds: float, every_s: float) -> Iterator[dict[str, Any]]:
    """Take a turn each second; the worker of the node reports something new each 2 s."""
    slot, nodes, said = Slot("s1", 6700), Nodes(), Said()
    nodes.put(wire.CLUSTER, b"c")
    nodes.put(wire.EPOCH, b"")
    session = cast(Session, cast(Any, nodes))
    executors = tuple(ExecutorId(i, i) for i in range(1, EXECUTORS + 1))
    config = AgentConfig("localhost:1", folder, supervisor="s1")
    with (
        PlanWriter(folder / "plan", wire.PLAN_KEY) as writer,
        closing(Agent(config, session, writer, threading.Event())) as agent,
    ):
        agent._stores = cast(Any, said)
        shown = NodeTelemetry(agent._shown)
        for second in range(int(seconds)):
            now_ms = int(time.time() * 1000)
            if second % 2 == 0:
                ack = WorkerAck("wc-1", slot, 7, "7-1", "0.2.0", 2, now_ms, "c", 1, 0)
                ack = structs.replace(ack, executors=executors, counters=Counters(second))
                rows = [(i, j, second * i) for i in range(1, EXECUTORS + 1) for j in (1, 2, 3)]
                used = tuple(ExecutorLoad(e, "bolt", second * 10**7, 0, None) for e in executors)
                load = WorkerLoad("wc-1", slot, "7-1", now_ms, second, used, traffic_of(rows))
                of_supervisor = SupervisorAck("s1", 8, "0.2.0", 2, now_ms, "c")
                said.samples = Samples((ack,), (load,), of_supervisor)
            if second % 60 == 0:
                version = nodes.put(wire.plan_path("wc-1"), b"")
                plan = Plan("c", 1, version + 1, "wc-1")
                nodes.put(wire.plan_path("wc-1"), wire.encode(plan))
            agent.turn(float(second))
            list(shown.collect())
            if (second + 1) % every_s == 0:
                published = len(nodes.data[wire.load_path("s1")][0])
                yield {**_counted((second + 1) / HOUR_S), "load_bytes": published}


if __name__ == "__main__":
    with TemporaryDirectory(prefix="nstorm-day-") as home:
        for of_day in (controller_day, agent_day):
            for row in of_day(Path(home) / of_day.__name__, DAY_S, 2 * HOUR_S):
                typer.echo(f"{of_day.__name__} {json.dumps(row)}")
