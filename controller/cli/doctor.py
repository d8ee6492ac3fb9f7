"""``nstorm doctor``: what is wrong in the cluster, and what to do about it."""

import json
import os
import socket
import statistics
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from msgspec import UNSET

from agent.config import from_storm_yaml as agent_config
from agent.install import OPTION
from agent.users import wrong_rights
from controller.cli.asking import connected
from controller.cli.operate import look
from controller.cli.running import Conf
from controller.cli.status_document import (
    StatusDocument,
    TopologyStatus,
    WorkerStatus,
    storms,
)
from controller.config import from_storm_yaml
from controller.core.hostnames import shown
from controller.core.receivers import Receiver
from controller.core.resources import HEAP
from controller.core.switch import left, would
from controller.core.topology import TopologyView
from controller.output import Output, OutputOption
from controller.policies.options import NAMES
from controller.storm.collect import LiveCluster
from controller.storm.command_record import COMMANDS
from kvstore.ensemble import OPEN, Grant, who_may
from kvstore.errors import AccessError, StoreError
from kvstore.printable import argument
from kvstore.reader import StoreReader
from kvstore.zookeeper import Session
from migration import ConfigError, storm_yaml
from migration.meters import LINK_SPEED
from migration.observation import two_majors
from migration.settings import unknown, wrong
from migration.wire import PLAN_KEY, ROOT, SPEAKS

SLOW_ZOOKEEPER_S = 0.1
_CLOCKS_APART_S = 1.0
_LOOKS = 9
_CREATOR = "auth:"  # stands for whoever creates a node
Found: TypeAlias = Iterator[tuple[str, str]]  # what is wrong, and what to do

_UNVERIFIED = (
    "Try this Storm where it may fail; then nstorm.unverified: move in its storm.yaml lets it move."
)
_HOOKS = "Name the jar in its childopts and restart it; docs/operations.md, A worker without hooks."
_ADOPT = (
    "Where worker.childopts of its node names the jar, `nstorm adopt {}` restarts such workers one "
    "after the other; where not, name it there first."
)
_DEAD = "Start it, and see its standard error: with a jar that is missing no JVM starts."
_WARNED = "No move mends this; docs/operations.md, What no move mends."
_OLD = "If that lasts, see the log of the leading controller, and restart it."
_BOUND = "More workers share that; docs/operations.md, What no move mends."
_REPORT = "Keep its log and report it."
# How Nimbus and supervisors begin the reason why they move nothing while they are switched off.
OFF = "the hooks are off: "


def doctor(
    conf: Conf,
    *,
    notify: Annotated[
        bool, typer.Option("--notify", help="Send a trial notice to each receiver of this file.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Look for what is wrong, and print what to do about it.

    It changes nothing. Exit code 0: nothing was found. 1: something was. 2: it could not look.
    """
    document = storm_yaml.read(conf)
    found = [(f"{storm_yaml.named(conf)}: {what}", do) for what, do in of_storm_yaml(document)]
    identity = ""
    notes: list[str] = []
    if not found:
        with connected(conf) as session:
            found += [*of_zookeeper(_latency_s(session)), *of_access(session)]
            identity, hosts = session.identity, session.hosts
            view = LiveCluster.of_session(session)
            status = look(session, view)
            notes = [*_of_switch(status, view.topologies()), *of_unseen(document, status)]
        found += [*of_status(status), *of_machine(document, status.hosts, os.cpu_count() or 1)]
        if notify:
            receivers = from_storm_yaml(document)[0].receivers
            untaken = list(of_receivers(receivers, hosts, time.time()))
            found += untaken
            notes += ["each receiver has taken a trial notice"] * (not untaken)
    if output is Output.JSON:
        print(json.dumps([{"what": what, "do": do} for what, do in found], indent=1))
    else:
        print("\n".join(f"- {what}\n  {do}" for what, do in found) or "nothing found")
        print("".join(f"note: {shown(note, status.hosts)}\n" for note in notes), end="")
        if identity == OPEN:
            print(f"note: the identity at ZooKeeper is {OPEN}")
    raise typer.Exit(1 if found else 0)


def of_storm_yaml(document: Mapping[str, Any]) -> Found:
    """Find each key that controller or agent would refuse."""
    own = storm_yaml.prefixed(document)
    found = [*unknown(own), *wrong(own, {"policy": NAMES})]
    if not found:
        try:
            from_storm_yaml(document)  # what does not go together
        except ConfigError as error:
            found = [str(error)]
    yield from ((what, "Correct it there; docs/settings.md has the keys.") for what in found)


def of_receivers(receivers: Sequence[Receiver], cluster: str, time_s: float) -> Found:
    """Send a trial notice to each receiver, and find those that have not taken it."""
    # Late: they load what decides, and the web.
    from controller.storm.noticing import Notice  # noqa: PLC0415
    from controller.storm.notifier import NoticeError, send  # noqa: PLC0415

    if not receivers:
        yield "nobody gets notices", "Name receivers in nstorm.notice; docs/operations.md, Notices."
    for one in receivers:
        trial = Notice(one.kinds[0], "", "a trial of `nstorm doctor --notify`", time_s)
        try:
            send(one, cluster, [trial])
        except NoticeError as error:
            yield (
                f"{one.name} has not taken a trial notice: {error}",
                "Run this as the user of the controller; docs/operations.md, Notices.",
            )


def _latency_s(session: Session) -> float:
    spent_s = []
    for _ in range(_LOOKS):
        began_s = time.monotonic()
        session.exists("/storms")
        spent_s.append(time.monotonic() - began_s)
    return statistics.median(spent_s)


def of_zookeeper(latency_s: float) -> Found:
    if latency_s > SLOW_ZOOKEEPER_S:
        what = f"ZooKeeper takes {1000 * latency_s:.0f} ms for an answer"
        yield what, "Each phase of a move waits for some. Look at the ensemble's disks and load."


def of_access(session: Session) -> Found:
    """Find nodes that others may use than should, though ZooKeeper knows its clients."""
    if session.is_open:
        return
    creators, left = _creators(session), [ROOT]
    wrongly: dict[str, set[str]] = {}  # who may use a node, by path
    while left:
        path = left.pop()
        try:
            left += [f"{path}/{child}" for child in session.children(path) or ()]
            grants, wanted = session.grants(path), session.wanted(path)
        except AccessError:
            continue  # closed to us: Nimbus deletes it, or its log names it
        others = {one.name for one in grants if not _is_wanted(one, wanted, creators)}
        if others:
            wrongly[path] = others
    if wrongly:
        names = set().union(*wrongly.values())
        who = "everybody" if "world:anyone" in names else ", ".join(sorted(names))
        more = f" and {len(wrongly) - 3} others" if len(wrongly) > 3 else ""
        what = f"{who} may use {', '.join(sorted(wrongly)[:3])}{more} in ZooKeeper"
        yield what, "Give Nimbus the credentials, and restart it: its hooks mend this."


def _creators(session: Session) -> set[str]:
    """Name those who get rights to a node as its creator."""
    named = who_may(session.wanted(COMMANDS), "c")
    if _CREATOR in named:  # one identity has all roles: Nimbus gives the root to that alone
        with suppress(AccessError):
            named = who_may(session.grants(ROOT), "c")
    return {name for name in named if not name.startswith(("world:", "ip:"))}


def _is_wanted(grant: Grant, wanted: Iterable[Grant], creators: Collection[str]) -> bool:
    """Return whether somebody should have all of these rights.

    Whoever also has a certificate is a creator by that as well. Each host has another one, and
    ZooKeeper takes only those of its own authority.
    """
    as_creator = grant.scheme == "x509" or grant.name in creators
    names = {grant.name} | ({_CREATOR} if as_creator else set())
    return set(grant.may) <= {letter for one in wanted if one.name in names for letter in one.may}


def of_status(status: StatusDocument) -> Found:
    """Find what is wrong in a document of `nstorm status`."""
    hosts, agents, mine = status.hosts, status.agents, version("nstorm")
    yield from _of_off(status)
    if not status.controllers:
        yield "no controller leads", "Start one: systemctl start nstorm-controller"
    if status.controllers and status.old is not UNSET:
        yield f"the figures are old: {status.old}", _OLD
    if problem := status.journal_problem:
        yield f"the journal is not written: {problem}", "Make room, or let the user write there."
    said = [(f"controller {one.name}", one.version) for one in status.controllers]
    for who, other in said + [(f"agent {one.node}", one.version) for one in agents]:
        if other != mine:
            what = f"{who} is of version {other}, this command of {mine}"
            yield (
                what,
                "They may run together; docs/operations.md, Upgrade, has the order.",
            )
    unpublished = {} if status.unpublished is UNSET else status.unpublished
    for named, why in unpublished.items():
        yield (
            f"Nimbus cannot publish {named}: {why}",
            "Until then nstorm sees nothing of it and moves nothing of it.",
        )
    for node, silent_s in status.silent_s.items():
        lasting = "" if silent_s is None else f" for {silent_s:.0f} s or more"
        yield (
            f"no report from the agent of {hosts[node]}{lasting}",
            "Start it: systemctl start nstorm-agent. If it runs, see its log: it reports once the "
            "supervisor there has the hooks.",
        )
    for agent in agents:
        host, ahead_s = hosts.get(agent.node, agent.node), agent.clock_ahead_s or 0
        if agent.supervisor_hooks is None:
            yield f"the supervisor of {host} has no hooks", _HOOKS
        if abs(ahead_s) > _CLOCKS_APART_S:
            yield f"the clock of {host} is {ahead_s:+.1f} s from ZooKeeper's", "Run NTP there."
    yield from _of_storms(status)
    if not status.topologies:
        what = "the hooks in Nimbus publish no topology"
        yield what, "Submit one, or name the jar in nimbus.childopts and restart Nimbus."
    hooked = {agent.node for agent in agents if agent.supervisor_hooks is not None}
    for topology in status.topologies:
        yield from _of_topology(topology, hosts, hooked)


def _of_topology(
    topology: TopologyStatus, hosts: Mapping[str, str], hooked: Collection[str]
) -> Found:
    """Find what is wrong with a topology; `hooked` are the nodes whose supervisors have hooks."""
    if topology.undoes is not UNSET:
        yield (
            f"nothing of {topology.name} is moved or drained, for Storm would undo it: "
            f"{topology.undoes}",
            "Leave the topology to Storm, or turn that pass off; docs/support.md, Schedulers.",
        )
    for warning in topology.decision.warnings if topology.decision else ():
        yield f"{topology.name}: {shown(warning, hosts)}", _WARNED
    at = {worker.slot: worker.slot.rpartition(":")[0] for worker in topology.workers}
    for node in sorted({*at.values()} - hosts.keys()):
        yield f"Storm does not list the supervisor {node}, where {topology.name} has workers", _DEAD
    for worker in topology.workers:
        if at[worker.slot] not in hosts:
            continue
        where = f"worker {shown(worker.slot, hosts)} of {topology.name}"
        is_stock = at[worker.slot] in hooked
        adopts = _ADOPT.format(argument(topology.name)) if is_stock else _HOOKS
        yield from ((f"{where} {what}", do) for what, do in _of_worker(worker, adopts))


def _of_off(status: StatusDocument) -> Found:
    """Find what is switched off."""
    if status.off is not UNSET:
        yield f"nstorm is switched off: {status.off}", "Type  nstorm on  to go on."
        return
    for agent in status.agents:
        if agent.off is not UNSET:
            host = status.hosts.get(agent.node, agent.node)
            yield f"the hooks on {host} are off: {agent.off}", "Type  nstorm on --here  there."


def _of_switch(status: StatusDocument, views: Iterable[TopologyView]) -> Iterator[str]:
    """Rehearse `nstorm off`; where it is off already, name what is not inert yet."""
    off = status.off is not UNSET
    lines = list(dict.fromkeys(line for view in views for line in (left if off else would)(view)))
    if off:
        yield from lines or ["all hooks are inert"]
    else:
        rehearsed = lines or ["all hooks would be inert at once"]
        yield from (f"with `nstorm off`: {line}" for line in rehearsed)


def of_unseen(document: Mapping[str, Any], status: StatusDocument) -> Iterator[str]:
    """Name what moves do not look at, since nothing shows it."""
    if document.get("nstorm.link.capacity.mbit") is None:
        unknown = [
            status.hosts.get(agent.node, agent.node)
            for agent in status.agents
            if agent.meters is not UNSET and not agent.meters.get(LINK_SPEED.column)
        ]
        if unknown:
            yield (
                f"the speed of the link of {', '.join(unknown)} is not known, so a relief may fill "
                "it: nstorm.link.capacity.mbit sets one"
            )
    for topology in status.topologies:
        if starting := [one.slot for one in topology.workers if one.starting]:
            yield (
                f"{', '.join(starting)} of {topology.name} may be starting: if that lasts, "
                "worker.log.err there has the reason, such as a jar that is missing"
            )
    workers = [one for topology in status.topologies for one in topology.workers]
    known = [one.meters for one in workers if one.meters is not UNSET]
    blind = sum(HEAP.held not in meters for meters in known)
    if blind:
        yield (
            f"{blind} of {len(workers)} workers have shown no heap after a collection, so moves do "
            "not look at theirs"
        )


def _of_storms(status: StatusDocument) -> Found:
    """Find daemons with code that their hooks do not know, and versions that do not mix."""
    hosts = status.hosts
    unknown = {("Nimbus", one.nimbus_error) for one in status.topologies}
    unknown |= {
        (f"the supervisor of {hosts.get(one.node, one.node)}", one.supervisor_error)
        for one in status.agents
    }
    # Those that are switched off report that here, and `_of_off` finds it.
    known = ((who, why) for who, why in unknown if why and not why.startswith(OFF))
    for who, problem in sorted(known):
        yield f"{who} moves nothing: {problem}", _UNVERIFIED
    if (mixed := two_majors(storms(status))) is not None:
        do = "Stop all of Storm, upgrade it, and start it; docs/operations.md, Upgrades of Storm."
        yield shown(mixed, hosts), do


def _of_worker(worker: WorkerStatus, without_hooks: str) -> Found:
    if worker.hooks is None:
        if not worker.starting:
            yield "has no hooks", without_hooks
    elif worker.speaks is not None and worker.speaks < SPEAKS:
        what = f"speaks version {worker.speaks} of the protocol, this nstorm {SPEAKS}"
        yield what, "It takes up the new jar when Storm next starts it."
    for problem in filter(None, (worker.error, worker.fault)):
        yield f"reports: {problem}", _REPORT
    if worker.dropped:
        yield f"dropped {worker.dropped:,} tuples", f"Storm replays what is acked. {_REPORT}"
    if worker.bound:
        yield worker.bound, _BOUND


def _host(document: Mapping[str, Any], hosts: Iterable[str]) -> str:
    """Give the name of this machine among the hosts as Storm publishes it; empty if it is none.

    Without `storm.local.hostname` Storm publishes the canonical name, often a longer one than the
    machine has for itself.
    """
    given = document.get("storm.local.hostname")
    names = [given] if given else [socket.getfqdn(), socket.gethostname()]
    return next((str(name) for name in names if name in set(hosts)), "")


def _is_gone(file: Path) -> bool:
    """Check that a file is not there, as far as this user may see."""
    try:
        return not file.is_file()
    except PermissionError:
        return False


def _of_jar(document: Mapping[str, Any]) -> Found:
    """Find options of this node's JVMs without the jar, or with one that is not there."""
    for key in ("supervisor.childopts", "worker.childopts"):
        value = document.get(key)
        options = " ".join(map(str, value)) if isinstance(value, list) else str(value or "")
        named = OPTION.findall(options)
        if options and not named:
            do = "`nstorm install --storm-home DIR` adds it; docs/install.md, step 3."
            yield f"{key} of this node names no jar of nstorm: what starts has no hooks", do
        for option in named:
            file = Path(option.removeprefix("-javaagent:").partition("=")[0])
            if "%" not in option and _is_gone(file):
                do = "Put it back at once: `nstorm install --storm-home DIR`."
                yield f"{key} of this node names {file}, which is not there: no JVM starts", do


def of_machine(document: Mapping[str, Any], hosts: Mapping[str, str], cores: int) -> Found:
    """Find what only this machine shows, if it is a node of the cluster."""
    if not _host(document, hosts.values()):
        return
    yield from _of_jar(document)
    given = document.get("supervisor.cpu.capacity")
    given = 400 if given is None else given  # Storm's default, in % of a core
    if given != 100 * cores:
        what = f"supervisor.cpu.capacity is {given} and this machine has {cores} cores"
        yield what, f"Set it to {100 * cores}, or to what Storm may use: loads are shares of it."
    try:
        with closing(StoreReader(agent_config(document).store_dir / "plan")) as reader:
            problem = reader.read(PLAN_KEY).problem
    except (ConfigError, StoreError) as error:
        problem = str(error)
    if problem is not None:
        do = "Run this as the user of Storm; start the agent, which creates and repairs it."
        yield f"the store of this node cannot be read: {problem}", do
    elif document.get("supervisor.run.worker.as.user") is True:
        for wrong in wrong_rights(agent_config(document).store_dir):
            do = "Run the agent as Storm's user; why the supervisor cannot mend it, its log has."
            yield f"workers have users of their own: {wrong}", do
