"""Runs a cluster of each size and measures it, at rest and while one executor moves each 5 s."""

import json
import random
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from controller.storm.command_record import COMMANDS, Command, decode, encode
from deploy.lab import LabError
from deploy.lab.cluster import Lab, only_zookeeper
from deploy.lab.interval import quantile
from kvstore.zookeeper import Session
from migration import wire
from tests.bench.frame import load_average
from tests.bench.scale.cluster import PaperCluster, paper_cluster
from tests.bench.scale.node import measure_agent

MOVE_EVERY_S = 5.0
START_LIMIT_S = 180.0
# A move must have ended before the next figures are taken.
END_LIMIT_S = 30.0
_MIB = 1024 * 1024
_MB = 1e6


@dataclass(frozen=True, slots=True)
class Asked:
    """What to measure.

    Attributes
    ----------
    sizes : tuple of int
        Numbers of nodes.
    seconds : float
        How long to look, at rest and again with moves.
    """

    sizes: tuple[int, ...] = (10, 100, 300, 1000)
    seconds: float = 40.0
    journal: bool = False


def bench(asked: Asked, tell: Callable[[str], None]) -> dict[str, Any]:
    """Measure everything."""
    found: dict[str, Any] = {"journal": asked.journal, "clusters": []}
    for nodes in asked.sizes:
        tell(f"{nodes} nodes")
        found["clusters"].append(measure_cluster(nodes, asked, tell))
    tell("an agent")
    with only_zookeeper("scale-agent") as lab:
        found["agent"] = measure_agent(lab, asked.seconds)
    return found


@dataclass
class Reporter:
    """A process that prints what it counts, as JSON, one line a time."""

    process: subprocess.Popen[str]
    log: Path
    lines: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Read along."""
        self._thread = threading.Thread(target=self._read, name="reads-along")
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    def within(self, from_s: float, to_s: float) -> list[dict[str, Any]]:
        """Give what it reported in some seconds of the monotonic clock."""
        return [line for line in list(self.lines) if from_s <= line["at_s"] <= to_s]

    def wait(self, done: Callable[[], bool], what: str, limit_s: float = START_LIMIT_S) -> None:
        """Wait for something that it reports.

        Raises
        ------
        LabError
            If it has ended, or if that did not come.
        """
        until_s = time.monotonic() + limit_s
        while not done():
            if self.process.poll() is not None or time.monotonic() > until_s:
                said = self.log.read_text()[-2000:]
                raise LabError(f"{what}: not within {limit_s:g} s; last lines:\n{said}")
            time.sleep(0.1)

    def alive(self) -> bool:
        """Check whether it goes on; raise LabError with its last lines if it does not."""
        if self.process.poll() is not None:
            raise LabError(f"it has ended; last lines:\n{self.log.read_text()[-2000:]}")
        return True

    def close(self) -> None:
        """End it."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        else:
            self.process.terminate()
        try:
            self.process.wait(60.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._thread.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def reporting(module: str, *arguments: str, log: Path) -> Iterator[Reporter]:
    """Run one of the modules next to this one until the end of the block."""
    command = [sys.executable, "-m", f"tests.bench.scale.{module}", *arguments]
    with log.open("w") as sink:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE if module == "imitator" else None,
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
        )
    reporter = Reporter(process, log)
    try:
        yield reporter
    finally:
        reporter.close()


def measure_cluster(nodes: int, asked: Asked, tell: Callable[[str], None]) -> dict[str, Any]:
    """Measure a cluster of one size."""
    paper = paper_cluster(nodes)
    with only_zookeeper(f"scale-{nodes}") as lab:
        run_dir = lab.layout.run_dir
        imitator = lab.zookeeper, str(nodes)
        with reporting("imitator", *imitator, log=run_dir / "imitator.log") as world:
            world.wait(lambda: any(line["reports"] >= nodes for line in world.lines), "reports")
            journal = [str(run_dir / "journal")] if asked.journal else []
            with reporting(
                "controller",
                *(lab.storm_zookeeper, *journal),
                log=run_dir / "controller.log",
            ) as leader:
                measured = _Measured(lab, world, leader)
                leader.wait(
                    lambda: world.alive() and measures(leader), "a cycle that measures everything"
                )
                tell(f"{nodes} nodes at rest for {asked.seconds:g} s")
                rest = measured.during(lambda: time.sleep(asked.seconds))
                tell(f"{nodes} nodes with moves for {asked.seconds:g} s")
                ended: list[Command] = []
                moving = measured.during(lambda: ended.extend(_move(lab, paper, asked.seconds)))
                moving["moves"] = _moves(ended, moving, rest)
                largest, count = _largest(lab)
        return {
            "nodes": nodes,
            "executors": paper.executors,
            "topologies": len(paper.topologies),
            "nodes_a_topology": round(statistics.mean(len(t.nodes) for t in paper.topologies)),
            "pairs": paper.pairs,
            "rest": rest,
            "moving": moving,
            "largest_node": largest,
            "znodes": count,
        }


def measures(leader: Reporter) -> bool:
    """Check whether the last two cycles had figures of every worker."""
    outcomes = [set(line["outcomes"]) for line in leader.lines[-2:]]
    unready = {"STALE_METRICS", "STAND_BACK", "NOT_LEADER"}
    return len(outcomes) == 2 and not any(one & unready for one in outcomes)


class _Measured:
    """Takes the figures of all processes before and after something."""

    def __init__(self, lab: Lab, world: Reporter, leader: Reporter) -> None:
        self._lab, self._world, self._leader = lab, world, leader
        child = lab.daemon("zookeeper")
        assert child is not None
        self._server = psutil.Process(child.pid)

    def during(self, work: Callable[[], None]) -> dict[str, Any]:
        """Measure from one cycle's end to another's, with the work between them."""
        began = self._at_a_cycle()
        work()
        ended = self._at_a_cycle()
        return self._between(began, ended)

    def _at_a_cycle(self) -> dict[str, Any]:
        seen = len(self._leader.lines)
        self._leader.wait(lambda: len(self._leader.lines) > seen, "a cycle")
        spent = self._server.cpu_times()
        return {
            "at_s": time.monotonic(),
            "mntr": ask(self._lab.layout.zookeeper_port, b"mntr"),
            "zxid": int(ask(self._lab.layout.zookeeper_port, b"srvr")["Zxid"], 16),
            "cycle": self._leader.lines[-1],
            "zookeeper_cpu_s": spent.user + spent.system,
        }

    def _between(self, began: dict[str, Any], ended: dict[str, Any]) -> dict[str, Any]:
        seconds = ended["at_s"] - began["at_s"]
        told = self._world.within(began["at_s"], ended["at_s"])
        span_s = told[-1]["at_s"] - told[0]["at_s"]
        rate = {
            key: (told[-1][key] - told[0][key]) / span_s
            for key in ("into_bytes", "out_bytes", "reports", "acks")
        }

        def counted(key: str) -> float:
            return float(ended["mntr"][key]) - float(began["mntr"][key])

        plan_ms = [ms for line in told for ms in line["plan_ms"]]
        return {
            "seconds": round(seconds, 1),
            "into_mb_s": round(counted("zk_bytes_received_count") / seconds / _MB, 3),
            "out_mb_s": round(counted("zk_response_bytes") / seconds / _MB, 3),
            "writes_s": round((ended["zxid"] - began["zxid"]) / seconds, 1),
            "packets_s": round(counted("zk_packets_received") / seconds),
            "to_agents_mb_s": round(rate["out_bytes"] / _MB, 3),
            "loads_s": round(rate["reports"], 1),
            "acks_s": round(rate["acks"], 1),
            "late_s": max(line["late_s"] for line in told),
            "plan_to_agent_ms": None
            if not plan_ms
            else {"p50": round(quantile(plan_ms, 0.5)), "p99": round(quantile(plan_ms, 0.99))},
            "zookeeper": {
                "cpu_cores": round(
                    (ended["zookeeper_cpu_s"] - began["zookeeper_cpu_s"]) / seconds, 3
                ),
                "rss_mb": round(self._server.memory_info().rss / _MIB),
            },
            "controller": self._cycles(began["cycle"], ended["cycle"]),
            "load_average": load_average(),
        }

    def _cycles(self, began: dict[str, Any], ended: dict[str, Any]) -> dict[str, Any]:
        lines = self._leader.within(began["at_s"], ended["at_s"])
        cycles = len(lines) - 1
        cpu_s = (ended["cpu_s"] - began["cpu_s"]) / cycles
        parts = {
            name: (spent - began["parts_s"].get(name, 0.0)) / cycles
            for name, spent in ended["parts_s"].items()
        }
        parts["rest"] = cpu_s - sum(parts.values())
        return {
            "cycles": cycles,
            "cycle_cpu_ms": round(1000 * cpu_s, 1),
            "parts_ms": {name: round(1000 * spent, 1) for name, spent in parts.items()},
            "steps_a_cycle": round((ended["steps"] - began["steps"]) / cycles, 1),
            "rss_mb": round(ended["rss_mb"]),
        }


def ask(port: int, word: bytes) -> dict[str, str]:
    """Ask ZooKeeper for one of its lists of figures.

    Parameters
    ----------
    word : bytes
        The command of four letters.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
        line.sendall(word)
        parts = []
        while data := line.recv(65536):
            parts.append(data)
    lines = b"".join(parts).decode().splitlines()
    separator = "\t" if word == b"mntr" else ": "
    return {name: value for name, _, value in (line.partition(separator) for line in lines)}


def _move(lab: Lab, paper: PaperCluster, seconds: float) -> list[Command]:
    """Ask for a move every five seconds, and wait for the last one."""
    chance = random.Random(1)
    moved: set[tuple[str, int]] = set()
    asked: list[str] = []
    with Session(lab.storm_zookeeper) as session:
        assert session.connect()
        until_s = time.monotonic() + seconds
        while (now_s := time.monotonic()) < until_s:
            topology = chance.choice(paper.topologies)
            task = chance.choice([t for t in topology.movable if (topology.id, t) not in moved])
            # Each slot has three or four executors; never two of one slot may leave.
            here = topology.slot_of[task]
            moved |= {(topology.id, t) for t, at in topology.slot_of.items() if at == here}
            target = chance.choice([slot for slot in topology.slots if slot != here])
            wish = Command(topology.id, f"{task}-{task}", str(target))
            path = f"{COMMANDS}/c-"
            asked.append(session.create(path, encode(wish), ephemeral=True, sequence=True))
            time.sleep(max(now_s + MOVE_EVERY_S - time.monotonic(), 0.0))
        until_s = time.monotonic() + END_LIMIT_S
        while not all(one.ended for one in _answers(session, asked)):
            if time.monotonic() > until_s:
                break
            time.sleep(0.5)
        return _answers(session, asked)


def _answers(session: Session, paths: Sequence[str]) -> list[Command]:
    stored = [session.read(path) for path in paths]
    found = [decode(one.data) for one in stored if one is not None]
    return [command for command in found if command is not None]


def _moves(
    ended: Sequence[Command], moving: dict[str, Any], rest: dict[str, Any]
) -> dict[str, Any]:
    """Sum up the moves, and what they added to the rest."""
    states = [command.state for command in ended]
    done = [c.stopped_after_s for c in ended if c.stopped_after_s is not None]
    # Loads go on all the same, but for the noise of the machine.
    others = [state["writes_s"] - state["loads_s"] for state in (moving, rest)]
    more = (others[0] - others[1]) * moving["seconds"]
    return {
        "asked": len(ended),
        "states": {state: states.count(state) for state in sorted(set(states))},
        "reasons": sorted({c.reason for c in ended if c.reason})[:5],
        "stopped_after_s": None if not done else round(statistics.median(done), 2),
        "writes_a_move": round(more / max(len(ended), 1)),
    }


def _largest(lab: Lab) -> tuple[dict[str, Any], int]:
    """Look at all of nstorm's nodes in ZooKeeper."""
    sizes: dict[str, int] = {}
    with Session(lab.storm_zookeeper) as session:
        assert session.connect()
        waiting = [wire.ROOT]
        while waiting:
            path = waiting.pop()
            stored = session.read(path)
            if stored is None:
                continue
            sizes[path] = len(stored.data)
            waiting += [f"{path}/{name}" for name in session.children(path) or ()]
    by_kind: dict[str, int] = {}
    for path, size in sizes.items():
        kind = "/".join(path.split("/")[:3])
        by_kind[kind] = max(by_kind.get(kind, 0), size)
    largest = max(sizes, key=lambda path: sizes[path])
    return {
        "path": largest,
        "bytes": sizes[largest],
        "limit": wire.LARGEST_NODE_BYTES,
        "by_kind": by_kind,
    }, len(sizes)
