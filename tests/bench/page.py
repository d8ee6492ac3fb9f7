"""Measures the page and ``nstorm explain`` at 1,000 executors, and cycles while a page dies.

ZooKeeper, the controller and the page are real; agents, JVMs and Nimbus are imitated.
"""

import http.client
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
from rich.table import Table

from deploy.lab.cluster import Lab, only_zookeeper
from deploy.lab.interval import quantile
from deploy.lab.layout import free_ports
from tests.bench.frame import load_average, table
from tests.bench.scale.cluster import paper_cluster
from tests.bench.scale.run import Reporter, measures, reporting

NODES = 100
VISITORS = 32  # as many as a page lets watch
CYCLES = 5
GOAL_MS = 200
STARTED_S = 60.0
REST_S = 10.0


def bench(asks: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Measure everything; each endpoint is asked `asks` times."""
    paper = paper_cluster(NODES)
    with only_zookeeper("page") as lab, ExitStack() as running:
        run_dir = lab.layout.run_dir
        world = running.enter_context(
            reporting("imitator", lab.zookeeper, str(NODES), log=run_dir / "imitator.log")
        )
        world.wait(lambda: any(line["reports"] >= NODES for line in world.lines), "reports")
        leader = running.enter_context(
            reporting("controller", lab.storm_zookeeper, log=run_dir / "controller.log")
        )
        leader.wait(lambda: world.alive() and measures(leader), "a cycle that measures everything")
        conf = _conf(lab)
        topology = paper.topologies[0]
        executor = f"{(task := min(topology.slot_of))}-{task}"
        explained = f"/api/explain?topology={topology.name}&what={executor}"
        with _page(conf, run_dir / "page.log") as (process, port):
            rest_cores = _Cpu(process, 0.0).over(lambda: time.sleep(REST_S)) / REST_S
            tell("each endpoint in turn")
            cpu = _Cpu(process, rest_cores)
            paths = ("/", "/page.js", "/page.css", "/api/status", "/api/timeline", explained)
            of_paths = [_endpoint(port, path, asks, cpu) for path in paths]
            first = "/api/events, first event"
            of_paths.append(_timed(first, lambda: _event(port), asks, cpu))
            command = ["explain", executor, "--topology", topology.name, "--conf", str(conf)]
            tell("nstorm explain")
            of_command = _command(command, asks)
            asked_load = load_average()
            tell("cycles while a page dies")
            cycles = _cycles_while_it_dies(leader, process, port)
    return {
        "nodes": NODES,
        "executors": paper.executors,
        "asks": asks,
        "page_at_rest_cores": round(rest_cores, 3),
        "endpoints": of_paths,
        "explain_command": of_command,
        "load_average": asked_load,
        "cycles": cycles,
        "load_average_of_cycles": load_average(),
        "goal_ms": GOAL_MS,
    }


def _conf(lab: Lab) -> Path:
    layout, path = lab.layout, lab.layout.run_dir / "page.yaml"
    path.write_text(
        f"storm.zookeeper.servers: [{layout.zookeeper_host}]\n"
        f"storm.zookeeper.port: {layout.zookeeper_port}\n"
        f"storm.zookeeper.root: /{lab.storm_zookeeper.partition('/')[2]}\n"
    )
    return path


@contextmanager
def _page(conf: Path, log: Path) -> Iterator[tuple[psutil.Popen, int]]:
    """Run a page until the end of the block; it may be stopped or killed in it."""
    (port,) = free_ports(1)
    words = ["page", "--conf", str(conf), "--listen", f"127.0.0.1:{port}"]
    with log.open("w") as sink:
        process = psutil.Popen([sys.executable, "-m", "controller.cli", *words], stderr=sink)
    try:
        until_s = time.monotonic() + STARTED_S
        while _status(port) != 200:
            assert time.monotonic() < until_s, log.read_text()
            time.sleep(0.2)
        yield process, port
    finally:
        if process.is_running():
            process.kill()
        process.wait()


def _status(port: int) -> int:
    try:
        return _get(port, "/api/status")[0]
    except OSError:
        return 0


def _get(port: int, path: str) -> tuple[int, int]:
    """Ask as a browser does; gives the code, and how many bytes came."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        return answer.status, len(answer.read())
    finally:
        connection.close()


def _event(port: int) -> int:
    """Watch until the first event has come."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/api/events")
        line = connection.getresponse().readline()
        assert line.startswith(b"data: "), line
        return len(line)
    finally:
        connection.close()


class _Cpu:
    """The CPU that a page takes for what it is asked, without what it takes at rest."""

    def __init__(self, page: psutil.Process, rest_cores: float) -> None:
        self._page, self._rest_cores = page, rest_cores

    def _now_s(self) -> float:
        spent = self._page.cpu_times()
        return float(spent.user + spent.system - self._rest_cores * time.monotonic())

    def over(self, work: Callable[[], None]) -> float:
        """Give the seconds of CPU while something is done."""
        began_s = self._now_s()
        work()
        return self._now_s() - began_s


def _endpoint(port: int, path: str, asks: int, cpu: _Cpu) -> dict[str, Any]:
    def ask() -> int:
        code, size = _get(port, path)
        assert code == 200, (path, code)
        return size

    return _timed(path.partition("?")[0], ask, asks, cpu)


def _timed(name: str, ask: Callable[[], int], asks: int, cpu: _Cpu) -> dict[str, Any]:
    took_ms, sizes = [], []

    def ask_each() -> None:
        for _ in range(asks):
            began_s = time.perf_counter()
            sizes.append(ask())
            took_ms.append(1000 * (time.perf_counter() - began_s))

    cpu_s = round(cpu.over(ask_each) / asks, 4)
    return {"what": name, "bytes": sizes[-1], **_shares(took_ms), "cpu_s": cpu_s}


def _command(words: Sequence[str], asks: int) -> dict[str, Any]:
    """Run a command; its time has the start of Python in it."""
    took_ms, cpu_s = [], []
    for _ in range(asks):
        began_s = time.perf_counter()
        command = [sys.executable, "-m", "controller.cli", *words]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        took_ms.append(1000 * (time.perf_counter() - began_s))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return {**_shares(took_ms), "cpu_s": round(statistics.median(cpu_s), 3)}


def _shares(took_ms: Sequence[float]) -> dict[str, float]:
    shares = {"p50_ms": 0.5, "p99_ms": 0.99}
    return {name: round(quantile(took_ms, share), 1) for name, share in shares.items()}


def _cycles_while_it_dies(leader: Reporter, page: psutil.Popen, port: int) -> dict[str, Any]:
    """Give the longest time from one cycle to the next, as long as the page is so."""
    found = {"alone": _longest_s(leader)}
    with ExitStack() as visits:
        for _ in range(VISITORS):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            visits.callback(connection.close)
            connection.request("GET", "/api/events")
        found["visited"] = _longest_s(leader)
        page.send_signal(signal.SIGSTOP)
        found["stopped"] = _longest_s(leader)
        page.kill()
        found["killed"] = _longest_s(leader)
    return found


def _longest_s(leader: Reporter) -> float:
    first = len(leader.lines)
    leader.wait(lambda: len(leader.lines) > first + CYCLES, "cycles")
    at_s = [line["at_s"] for line in leader.lines[first:]]
    longest_s: float = max(after - before for before, after in pairwise(at_s))
    return round(longest_s, 2)


def as_tables(found: Mapping[str, Any]) -> list[Table]:
    """Show what was found."""
    size = f"{found['executors']} executors on {found['nodes']} nodes"
    command = {"what": "nstorm explain", "bytes": None, **found["explain_command"]}
    return [
        table(
            f"{size}, {found['asks']} times each, load {found['load_average']}",
            [*found["endpoints"], command],
        ),
        table(
            f"longest time between {CYCLES + 1} cycles of a page's life, "
            f"load {found['load_average_of_cycles']}",
            [{f"{name}, s": longest_s for name, longest_s in found["cycles"].items()}],
        ),
    ]
