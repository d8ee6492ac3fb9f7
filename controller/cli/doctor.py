"""``nstorm doctor``: what is wrong beside this Storm, and what to do about it."""

import json
import os
import socket
import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from importlib.metadata import version
from typing import Any, NamedTuple

import typer

from agent.config import from_storm_yaml as agent_config
from controller.cli.daemons import Conf
from controller.cli.operate import connected, look
from controller.cli.places import shown
from controller.config import from_storm_yaml
from controller.output import Output, OutputOption
from controller.storm.collect import LiveCluster
from kvstore.errors import StoreError
from kvstore.reader import StoreReader
from kvstore.zookeeper import Session
from migration import ConfigError, storm_yaml
from migration.settings import Reader, values
from migration.wire import PLAN_KEY, SPEAKS

SLOW_ZOOKEEPER_S = 0.1
# Storm's default of supervisor.cpu.capacity, in per cent of a core.
_STORM_CAPACITY = 400.0
_CLOCKS_APART_S = 1.0
_AGENT_SILENT_S = 10.0
_LOOKS = 9


class Finding(NamedTuple):
    """What is wrong, and what to do."""

    what: str
    do: str


def doctor(conf: Conf, output: OutputOption = Output.TABLE) -> None:
    """Look for what is wrong, and say what to do about it.

    It changes nothing. Exit code 0: nothing was found. 1: something was. 2: it could not look.
    """
    found = list(of_storm_yaml(document := storm_yaml.read(conf)))
    if not found:
        with connected(conf) as session:
            found += of_zookeeper(latency_s := _latency_s(session))
            status = look(session, LiveCluster.of_session(session))
        found += [*of_status(status), *of_machine(document, status["hosts"], os.cpu_count() or 1)]
    if output is Output.JSON:
        print(json.dumps([one._asdict() for one in found], indent=1))
    else:
        for one in found:
            print(f"- {one.what}\n  {one.do}")
        if not found:
            print(f"nothing found; ZooKeeper answers within {1000 * latency_s:.1f} ms")
    raise typer.Exit(1 if found else 0)


def of_storm_yaml(document: Mapping[str, Any]) -> Iterator[Finding]:
    """Find a key that controller or agent would refuse."""
    said = []
    for reads in (from_storm_yaml, _read_by_agents):
        try:
            reads(document)
        except ConfigError as error:
            said.append(str(error))
    for problem in dict.fromkeys(said):
        yield Finding(problem, "Mend it in the storm.yaml; docs/settings.md has the keys.")


def _read_by_agents(document: Mapping[str, Any]) -> None:
    values(storm_yaml.own_keys(document), (Reader.AGENT, Reader.HOOKS))


def _latency_s(session: Session) -> float:
    spent_s = []
    for _ in range(_LOOKS):
        began_s = time.monotonic()
        session.exists("/storms")
        spent_s.append(time.monotonic() - began_s)
    return statistics.median(spent_s)


def of_zookeeper(latency_s: float) -> Iterator[Finding]:
    if latency_s > SLOW_ZOOKEEPER_S:
        yield Finding(
            f"ZooKeeper takes {1000 * latency_s:.0f} ms for an answer",
            "Each phase of a move waits for some. Give the ensemble a disk of its own, and look at "
            "its load.",
        )


def of_status(status: Mapping[str, Any]) -> Iterator[Finding]:
    """Find what is wrong in a document of `nstorm status`."""
    hosts = status["hosts"]
    if not status["controllers"]:
        yield Finding("no controller leads", "Start one: systemctl start nstorm-controller")
    if status["journal_problem"]:
        yield Finding(
            f"the journal is not written: {status['journal_problem']}",
            "Make room, or let the controller's user write there.",
        )
    yield from _of_versions(status)
    agents = {agent["node"]: agent for agent in status["agents"]}
    for node in sorted({*hosts} - {*agents}):
        yield Finding(
            f"no agent speaks on {hosts[node]} (supervisor {node})",
            "Start it: systemctl start nstorm-agent. If it runs, its log says what it waits for.",
        )
    for node, agent in agents.items():
        where = hosts.get(node, node)
        if agent["supervisor_hooks"] is None:
            yield Finding(
                f"the supervisor of {where} has no hooks",
                "Name the jar in supervisor.childopts and restart it; docs/operations.md, A worker "
                "without hooks.",
            )
        if abs(agent["clock_ahead_s"] or 0) > _CLOCKS_APART_S:
            yield Finding(
                f"the clock of {where} is {agent['clock_ahead_s']:+.1f} s from ZooKeeper's",
                "Run NTP there; ages in `nstorm status` and the logs are wrong until then.",
            )
    if not status["topologies"]:
        yield Finding(
            "the hooks in Nimbus publish no topology",
            "Submit one, or name the jar in nimbus.childopts and restart Nimbus.",
        )
    for topology in status["topologies"]:
        yield from _of_workers(topology, hosts)


def _of_versions(status: Mapping[str, Any]) -> Iterator[Finding]:
    mine = version("nstorm")
    for kind, found in (
        ("controller", {one["name"]: one["version"] for one in status["controllers"]}),
        ("agent", {one["node"]: one["version"] for one in status["agents"]}),
    ):
        for name, other in found.items():
            if other != mine:
                yield Finding(
                    f"{kind} {name} is of version {other}, this command of {mine}",
                    "Versions may live side by side; docs/operations.md, Upgrade, has the order.",
                )


def _of_workers(topology: Mapping[str, Any], hosts: Mapping[str, str]) -> Iterator[Finding]:
    for worker in topology["workers"]:
        where = f"worker {shown(worker['slot'], hosts)} of {topology['name']}"
        if worker["hooks"] is None:
            yield Finding(f"{where} has no hooks", "docs/operations.md, A worker without hooks.")
            continue
        if worker["speaks"] < SPEAKS:
            yield Finding(
                f"{where} speaks version {worker['speaks']} of the protocol, this nstorm {SPEAKS}",
                "It takes up the new jar when Storm next starts it.",
            )
        for wrong in filter(None, (worker["error"], worker["fault"])):
            yield Finding(f"{where}: {wrong}", "Keep its log and report it; restart the worker.")
        if worker["dropped"]:
            yield Finding(
                f"{where} dropped {worker['dropped']:,} tuples",
                "Storm replays what is acked. Keep its log and report it.",
            )


def of_machine(
    document: Mapping[str, Any], hosts: Mapping[str, str], cores: int
) -> Iterator[Finding]:
    """Find what only this machine tells, if it is a node of the cluster."""
    if document.get("storm.local.hostname", socket.gethostname()) not in hosts.values():
        return
    given = document.get("supervisor.cpu.capacity", _STORM_CAPACITY)
    if given != 100.0 * cores:
        yield Finding(
            f"supervisor.cpu.capacity is {given:g} and this machine has {cores} cores",
            f"Set it to {100 * cores}, or to what Storm may use: shares of CPU are measured by it.",
        )
    try:
        with closing(StoreReader(agent_config(document).store_dir / "plan")) as reader:
            problem = reader.read(PLAN_KEY).problem
    except (ConfigError, StoreError) as error:
        problem = str(error)
    if problem is not None:
        yield Finding(
            f"the store of this node cannot be read: {problem}",
            "Run this as the user of Storm; start the agent, which makes and mends it.",
        )
