"""``nstorm roll``: host after host is emptied, worked on by a command, and comes back."""

import hashlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated

import msgspec
import typer

from controller import interrupt
from controller.cli.asking import DryRun, confirm, connected, patient
from controller.cli.drain import begin_drain, cannot_drain_now
from controller.cli.running import Conf
from controller.cli.status_document import drain_progress
from controller.cli.steps import Steps, restart_alone
from controller.config import Config, from_storm_yaml
from controller.core.decision import Outcome
from controller.core.drainable import on_hosts, unseen
from controller.core.excluded import nodes_named
from controller.core.hostnames import shown
from controller.core.outcomes import what_to_do
from controller.core.topology import TopologyView
from controller.core.undrained import all_stays
from controller.errors import CommandError
from controller.output import Output, OutputOption, counted, tell
from controller.storm.collect import DRAINED, LiveCluster
from controller.storm.leader_status import read
from kvstore.errors import StoreError
from kvstore.zookeeper import Session, Stored
from migration import storm_yaml, wire
from migration.model import Host
from migration.observation import two_majors

ROLL = f"{wire.ROOT}/roll"
_HOLD_A_DRAIN = frozenset({Outcome.NO_LOW_WORKER, Outcome.STALE_METRICS, Outcome.STAND_BACK})


class Roll(msgspec.Struct, frozen=True):
    """A roll that has not ended: a later one of the same hosts and command goes on there.

    Of the command there is only its hash: nobody shall run, or read as advice, what others may have
    written into ZooKeeper.
    """

    run_sha256: str
    hosts: tuple[Host, ...]
    done: tuple[Host, ...] = ()


def roll(
    run: Annotated[
        str,
        typer.Option(
            help="The command for each empty host, in the shell of this machine. The variable "
            "NSTORM_HOST is the host's name. The command has to end after the host's restart."
        ),
    ],
    *,
    conf: Conf,
    hosts: Annotated[
        str | None, typer.Option(help="Only these hosts, in this order, such as node-1,node-2.")
    ] = None,
    max_unavailable: Annotated[
        int, typer.Option(min=1, help="How many hosts are empty at a time.")
    ] = 1,
    forget: Annotated[
        bool, typer.Option(help="Delete the record of a roll that has not ended.")
    ] = False,
    dry_run: DryRun = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Empty hosts one by one, run a command, and return each to service.

    A host is back once its supervisor, with the hooks, and its agent have reported again. The same
    command continues a roll that was interrupted. Exit code 1: a command failed, and its host stays
    drained, or it cannot go on after its beginning. Exit code 2: refused, with the reason.
    """
    config = storm_yaml.read_as(conf, from_storm_yaml)[0]
    with connected(conf) as session:
        rolling = _Rolling(session, config, run, output)
        if not dry_run:
            restart_alone(session, "roll")  # before anything is read that another roll may change
        if forget and not dry_run:
            session.clear(ROLL)
        rolling.begin(None if hosts is None else hosts.split(","), max_unavailable)
        if dry_run:
            tell(output, {"hosts": rolling.left}, f"would roll: {', '.join(rolling.left)}")
            return
        confirm(f"Empty {', '.join(rolling.left)}, and run the command for each?")
        try:
            failed = rolling.work(max_unavailable)
        except (CommandError, StoreError) as error:  # others may be done, so it is no refusal
            goes_on = interrupt.goes_on() if isinstance(error, StoreError) else ""
            typer.echo(f"nstorm: {error}{goes_on}", err=True)
            if output is Output.JSON:
                tell(output, {"done": rolling.done, "failed": []})
            raise typer.Exit(1) from error
    if output is Output.JSON or not failed:
        found = {"done": rolling.done, "failed": failed}
        tell(output, found, f"rolled: {', '.join(rolling.done)}")
    raise typer.Exit(1 if failed else 0)


class _Rolling:
    def __init__(self, session: Session, config: Config, run: str, output: Output) -> None:
        if "{host}" in run:  # only quotes make it one name to a shell
            raise CommandError('--run: write "$NSTORM_HOST" in place of {host}')
        self._session, self._config, self._run = session, config, run
        self._view = LiveCluster.of_session(session)
        self._roll = Roll(hashlib.sha256(run.encode()).hexdigest(), ())
        self._steps = Steps(output)
        self._say = self._steps.say

    @property
    def done(self) -> tuple[str, ...]:
        """The hosts that are back."""
        return self._roll.done

    @property
    def left(self) -> tuple[str, ...]:
        """The hosts that are still to be rolled, in order."""
        return tuple(host for host in self._roll.hosts if host not in self.done)

    def begin(self, named: Sequence[str] | None, at_a_time: int) -> None:
        """Find the roll that was broken off, or plan one that the cluster can carry."""
        views = self._view.topologies()
        there = sorted({node.host for view in views for node in view.publication.nodes})
        hosts = tuple(dict.fromkeys(there if named is None else named))
        if not there:
            raise CommandError("no host is known: the hooks in Nimbus publish no topology")
        if unknown := set(hosts) - set(there):
            raise CommandError(f"no host {min(unknown)!r}: there are {', '.join(there)}")
        self._refuse_two_majors()
        stored = self._session.read(ROLL)
        if stored is not None and stored.data:
            self._go_on(stored, hosts if named else None)
            return
        self._roll = msgspec.structs.replace(self._roll, hosts=hosts)
        outside = self._view.drained().keys()
        if drained := sorted(set(hosts) & outside):
            raise CommandError(f"host {drained[0]} is drained already: see `nstorm undrain`")
        for first in range(0, len(hosts), at_a_time):
            batch = hosts[first : first + at_a_time]
            for host in batch:
                closed = {*outside, *batch}
                refusal = self._held(views, host) or cannot_drain_now(
                    self._session, self._view, self._config, host, closed
                )
                if refusal is None and (stay := drain_progress(views, (), host, 0).stay):
                    one = stay[0]
                    refusal = f"{one.executor} of {one.topology} stays: {one.reason}"
                if refusal is not None:
                    raise CommandError(f"{host}: {refusal}")

    def _refuse_two_majors(self) -> None:
        views, acks = self._view.topologies(), self._view.acks()
        jvms = [("Nimbus", view.nimbus.storm) for view in views if view.nimbus]
        jvms += [(f"the worker at {one.slot}", one.storm) for a in acks for one in a.workers]
        jvms += [(f"the supervisor {a.node}", a.supervisor.storm) for a in acks if a.supervisor]
        if (mixed := two_majors(jvms)) is not None:
            raise CommandError(
                f"{mixed}. No roll goes from one major version of Storm to another: stop all of "
                "Storm, upgrade it, and start it (docs/operations.md)"
            )

    def _go_on(self, stored: Stored, named: Sequence[str] | None) -> None:
        try:
            found = msgspec.json.decode(stored.data, type=Roll)
        except msgspec.DecodeError as error:
            raise CommandError(f"{ROLL} cannot be read: {error}; --forget deletes it") from error
        if found.run_sha256 != self._roll.run_sha256 or named not in (None, found.hosts):
            raise CommandError(
                f"a roll of {', '.join(found.hosts)} has not ended: repeat it with the same "
                "command and hosts, or delete it with --forget"
            )
        self._roll = found
        self._say(f"continues; done: {', '.join(self.done) or 'none'}")

    def _held(self, views: Sequence[TopologyView], host: str) -> str | None:
        """Name a topology that no drain moves."""
        for view in views:
            why = all_stays(view, self._config.excluded)
            if why is not None and on_hosts(view, (host,)):
                return f"{why}, so its executors stay"
        return None

    def _keep(self) -> None:
        self._session.put(ROLL, msgspec.json.encode(self._roll))

    def work(self, at_a_time: int) -> tuple[str, ...]:
        """Roll what is left; give the hosts for which the command failed."""
        interrupt.does_not_end(
            "a drained host stays so: the same command continues the roll, --forget deletes it"
        )
        self._keep()
        while left := self.left:
            batch, began_s = left[:at_a_time], time.monotonic()
            for host in batch:
                begun = partial(begin_drain, self._session, self._view, self._config, host)
                try:
                    patient(begun, self._say)
                except CommandError as error:
                    raise CommandError(f"{host} is not drained: {error}") from error
            for host in batch:
                self._wait(host, partial(self._not_empty, host))
            if failed := self._command(batch):
                return failed
            self._steps.took((time.monotonic() - began_s) / len(batch))
        self._session.clear(ROLL)
        return ()

    def _command(self, batch: Sequence[str]) -> tuple[str, ...]:
        """Run the command side by side, take hosts back, and give those where it failed."""
        started = []
        for host in batch:
            self._say(f"{host}: empty, runs the command")
            started.append((host, self._steps.start(self._run, {"NSTORM_HOST": host})))
        failed = []
        for host, process in started:
            if code := process.wait():
                failed.append(host)
                self._say(
                    f"{host}: the command has failed, exit code {code}; the host stays drained. "
                    "Repeat the roll to continue here, or return the host to service with `nstorm "
                    f"undrain {host}`"
                )
                continue
            said_ms = patient(self._reported_ms, self._say)
            self._wait(host, partial(self._away, host, said_ms))
            self._session.delete(f"{DRAINED}/{host}")
            self._roll = msgspec.structs.replace(self._roll, done=(*self.done, host))
            self._keep()
            self._say(f"{host}: is back")
            self._refuse_two_majors()
        return tuple(failed)

    def _nodes(self, host: str) -> frozenset[str]:
        views = self._view.topologies()
        return nodes_named(views[0].publication.hosts, (host,)) if views else frozenset()

    def _reported_ms(self) -> dict[str, tuple[int, int]]:
        """Return when each node's agent and its supervisor have last spoken, by their clock."""
        acks = self._view.acks()
        return {a.node: (a.time_ms, a.supervisor.time_ms) for a in acks if a.supervisor}

    def _not_empty(self, host: str) -> str | None:
        """Return by topology what is left, what stands in its way, and what to do."""
        frozen = self._view.controls().frozen(time.time())
        cycles = read(self._session).cycle_of
        views = self._view.topologies()
        left = [why] if (why := unseen(views, self._view.acks(), host)) is not None else []
        for view in views:
            decided, why = cycles.get(view.id), frozen and f"; {frozen}: see `nstorm resume`"
            if stay := drain_progress([view], (), host, 0, self._config.excluded).stay:
                why = f"; {stay[0].executor} stays: {stay[0].reason}"
            elif not why and decided and decided.outcome in _HOLD_A_DRAIN:
                reason = shown(decided.reason, view.publication.hosts)
                why = f"; {decided.outcome}: {reason}. {what_to_do(Outcome(decided.outcome))}"
            if count := on_hosts(view, (host,)):
                executors = counted(count, "executor")
                left.append(f"{executors} of {view.publication.name} left{why or ''}")
        return "; ".join(left) or None

    def _away(self, host: str, before_ms: dict[str, tuple[int, int]]) -> str | None:
        nodes, now_ms = self._nodes(host), self._reported_ms()
        if not nodes:
            return "Storm does not have its supervisor yet"
        spoken = (zip(now_ms.get(n, (0, 0)), before_ms.get(n, (0, 0)), strict=True) for n in nodes)
        if all(now not in (0, before) for pair in spoken for now, before in pair):
            return None
        return "its agent, or its supervisor with the hooks, has not reported again"

    def _wait(self, host: str, why_not: Callable[[], str | None]) -> None:
        hosts = self._roll.hosts
        self._steps.wait(host, (hosts.index(host) + 1, len(hosts)), why_not)
