"""``nstorm adopt``: the hooks come into running workers, one worker after the other."""

import time
from collections import deque
from functools import partial
from typing import Annotated

import typer

from controller import interrupt
from controller.cli.asking import DryRun, confirm, connected, seconds
from controller.cli.running import Conf
from controller.cli.steps import Steps, lasting, restart_alone
from controller.cli.views import view_named
from controller.config import Config, from_storm_yaml
from controller.core.hostnames import shown
from controller.core.stock import (
    Counted,
    Stock,
    cannot_adopt,
    placed_elsewhere,
    settles_s,
    stock_workers,
    unsettled,
    worse,
)
from controller.core.topology import TopologyView, hosts_of
from controller.errors import CommandError
from controller.output import Output, OutputOption, counted, tell
from controller.storm.collect import LiveCluster
from controller.storm.command_record import find
from kvstore.zookeeper import Session
from migration import storm_yaml
from migration.model import Slot, Timing

# Agents report loads this often; rates are of the last few reports.
_SAMPLE_S, _SAMPLES = 5.0, 5


def adopt(
    topology: Annotated[
        str, typer.Argument(help="Only its workers, by name or id. Without it, those of all.")
    ] = "",
    *,
    run: Annotated[
        str,
        typer.Option(
            help="The command that ends one worker, in the shell of this machine. The variables "
            "NSTORM_HOST and NSTORM_PORT are the worker's. Its supervisor starts it again."
        ),
    ],
    conf: Conf,
    settle: Annotated[
        str | None,
        typer.Option(
            help="How long to wait after each worker, until Storm has replayed what was in flight. "
            "Without it twice topology.message.timeout.secs."
        ),
    ] = None,
    within: Annotated[
        str, typer.Option(help="How long a worker may take to come back; then the command ends.")
    ] = "10m",
    dry_run: DryRun = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Bring the hooks into running workers, one worker after the other.

    It restarts one, waits until it and the topology's acks are as before, and goes on.
    A worker takes up the jar when its JVM starts. Tuples in flight there are lost. Storm replays
    them after the message time-out if the topology acks. Bolts there lose what they keep in memory.
    That happens once to each worker. The same command continues. Exit code 1: a command failed, or
    a worker did not come back; no other was restarted. Exit code 2: refused.
    """
    settle_s = None if settle is None else seconds("--settle", settle)
    within_s = seconds("--within", within)
    config = storm_yaml.read_as(conf, from_storm_yaml)[0]
    with connected(conf) as session:
        steps = Steps(output)
        adopting = _Adopting(session, config, steps, settle_s)
        adopting.begin(topology)
        left, warnings = adopting.left, adopting.warnings
        if not left:
            line = "no worker without hooks was found" if warnings else "every worker has the hooks"
            tell(output, {"workers": [], "warnings": warnings}, line, *warnings)
            return
        restarts = f"{counted(len(left), 'worker')} one after the other, in {adopting.least}"
        if dry_run:
            lines = (f"would restart {restarts} or more:", *(f"- {one}" for one in left), *warnings)
            tell(output, {"workers": left, "warnings": warnings}, *lines)
            return
        for line in warnings:
            steps.say(line)
        confirm(
            f"Restart {restarts} or more: {', '.join(left)}? Each loses its tuples in "
            "flight, which Storm replays if the topology acks, and what its bolts keep in memory."
        )
        interrupt.does_not_end("no other worker is restarted: the same command continues")
        restart_alone(session, "adopt")
        failed = adopting.work(run, within_s)
    if output is Output.JSON or failed is None:
        found = {"done": adopting.done, "left": adopting.left, "failed": failed}
        tell(output, found, f"adopted: {', '.join(adopting.done) or 'none'}")
    raise typer.Exit(0 if failed is None else 1)


class _Adopting:
    def __init__(
        self, session: Session, config: Config, steps: Steps, settle_s: float | None
    ) -> None:
        self._view, self._config = LiveCluster.of_session(session), config
        self._steps, self._settle_s = steps, settle_s
        self._left: list[Stock] = []
        self._left_out: list[str] = []
        self.done: list[str] = []
        # Of one topology, each with its time.
        self._sampled, self._samples = "", deque[tuple[float, Counted]](maxlen=_SAMPLES)
        # Of the worker that comes back: its JVM, since when it is well, and what was counted then.
        self._back: tuple[str, float, Counted] | None = None

    @property
    def left(self) -> list[str]:
        """The workers that have no hooks yet, in order, as people know them."""
        return [self._name(one) for one in self._left]

    def _name(self, one: Stock) -> str:
        view = find(self._view.topologies(), one.topology)
        name = view.publication.name if view else one.topology
        return f"{name} {self._at(one.slot)}"

    @property
    def least(self) -> str:
        """How long all of them take at least."""
        return lasting(sum(map(self._settles_s, self._views_of_left())))

    @property
    def warnings(self) -> list[str]:
        """What is left out, and what Nimbus would do to the placement while a worker restarts."""
        placed = dict.fromkeys(map(placed_elsewhere, self._views_of_left()))
        return [*self._left_out, *(text for text in placed if text)]

    def _views_of_left(self) -> list[TopologyView]:
        """Look at the topology of each worker that is left."""
        views = self._view.topologies()
        return [view for one in self._left if (view := find(views, one.topology)) is not None]

    def _settles_s(self, view: TopologyView) -> float:
        return settles_s(view) if self._settle_s is None else self._settle_s

    def _at(self, slot: Slot) -> str:
        return shown(str(slot), hosts_of(self._view.topologies()))

    def begin(self, named: str) -> None:
        """Find the workers without hooks, and refuse where a restart would not bring them."""
        views = self._view.topologies()
        if named:
            views = [view_named(views, named)]
        else:
            self._left_out += [
                f"{topology} is left out: Nimbus does not publish it: {why}"
                for topology, why in self._view.unpublished().items()
            ]
        if not views and not self._left_out:
            raise CommandError(
                "no worker is seen: the hooks in Nimbus publish no topology. Name the jar in "
                "nimbus.childopts and restart Nimbus, or submit a topology"
            )
        silent_s, fresh_s = self._view.silent_s(), Timing().ack_fresh_s
        for view in views:
            if self._config.excluded.has_topology(view.id, view.publication.name):
                if named:
                    raise CommandError(f"topology {named} is excluded: nstorm moves nothing of it")
                self._left_out.append(f"{view.publication.name} is left out: it is excluded")
                continue
            for slot in sorted(view.publication.slots):
                if silent_s.get(slot.supervisor, fresh_s + 1) > fresh_s:
                    host = view.publication.hosts.get(slot.supervisor, slot.supervisor)
                    raise CommandError(
                        f"no recent report from the agent of {host}, so nobody sees whether its "
                        "workers have hooks: start it there. It reports once the supervisor there "
                        "has the hooks (docs/install.md, steps 3 to 5)"
                    )
            for one in stock_workers(view):
                refusal = cannot_adopt(view, one)
                if refusal is not None:
                    raise CommandError(f"{self._name(one)}: {refusal}")
                self._left.append(one)

    def work(self, run: str, within_s: float) -> str | None:
        """Restart one after the other; give the one that did not come back, None if all did."""
        of = len(self._left)
        while self._left:
            one, place = self._left[0], (of - len(self._left) + 1, of)
            why = self._steps.wait(self._name(one), place, partial(self._others, one), within_s)
            name = self._name(one)  # its host may have been unknown before
            if why is not None:
                self._steps.say(f"{name}: is not restarted: {why}")
                return name
            if not self._is_stock(one):
                self._steps.say(f"{name}: needs no restart any more")
                self._left.pop(0)
                continue
            began_s, before = time.monotonic(), self._rates()
            host, _, port = self._at(one.slot).rpartition(":")
            self._steps.say(f"{name}: runs the command")
            variables = {"NSTORM_HOST": host, "NSTORM_PORT": port}
            if code := self._steps.start(run, variables).wait():
                self._steps.say(f"{name}: the command has failed, exit code {code}")
                return name
            self._left.pop(0)
            self._back = None
            why = self._steps.wait(name, place, partial(self._away, one, before), within_s)
            if why is not None:
                self._steps.say(
                    f"{name}: is not back after {lasting(within_s)}: {why}. No other worker is "
                    "restarted. docs/operations.md, Bringing the hooks into workers"
                )
                self._left.insert(0, one)
                return name
            if self._look(one) is None:
                self._steps.say(f"{name}: its topology was killed")
                continue
            took_s = time.monotonic() - began_s
            self._steps.took(took_s)
            self.done.append(name)
            self._steps.say(f"{name}: is back with the hooks, after {lasting(took_s)}")
        return None

    def _look(self, one: Stock) -> TopologyView | None:
        """Look at its topology, and keep what the workers have counted every few seconds."""
        view = find(self._view.topologies(), one.topology)
        now_s = time.monotonic()
        if self._sampled != one.topology:
            self._sampled = one.topology
            self._samples.clear()
        if view and (not self._samples or now_s - self._samples[-1][0] >= _SAMPLE_S):
            self._samples.append((now_s, Counted.of(view, self._view.loads())))
        return view

    def _rates(self) -> tuple[float, float] | None:
        return self._samples[-1][1].spouts_tps(self._samples[0][1])

    def _is_stock(self, one: Stock) -> bool:
        view = self._look(one)
        return view is not None and one in stock_workers(view)

    def _others(self, one: Stock) -> str | None:
        """Return why it cannot be restarted yet."""
        view = self._look(one)
        if view is None:
            return None  # killed: nothing is left to do
        why = self._unsettled(view)
        if why is None and self._samples[-1][1].spouts and len(self._samples) < _SAMPLES:
            return "the topology's acks of before are measured"
        return why

    def _away(self, one: Stock, before: tuple[float, float] | None) -> str | None:
        """Return why it is not back yet."""
        view, now_s = self._look(one), time.monotonic()
        if view is None:
            return None  # killed
        why = self._unsettled(view)
        if why is not None:
            self._back = None
            return why
        ack = view.observation.workers.get(one.slot)
        jvm = ack.incarnation if ack else ""
        if self._back is None or self._back[0] != jvm:
            self._samples.clear()  # of before the restart
            if self._look(one) is None:
                return None
            self._back = jvm, now_s, self._samples[-1][1]
        _, since_s, counted_then = self._back
        if now_s - since_s < (settle_s := self._settles_s(view)):
            return (
                f"runs, with the hooks; for {lasting(settle_s)} what was in flight may time "
                "out and be replayed"
            )
        if view.publication.status != "ACTIVE":
            return None  # no tuple flows
        is_there = one.slot in view.publication.slots  # else Storm has put its executors elsewhere
        return self._unlike(one.slot if is_there else None, counted_then, before)

    def _unlike(
        self, slot: Slot | None, then: Counted, before: tuple[float, float] | None
    ) -> str | None:
        """Return what is not as before in tuples; `then` was counted when it came back."""
        if slot and self._samples[-1][1].idle(then, slot):
            return "has had no tuple yet. If the topology has no input, end this and repeat it"
        if before is not None and len(self._samples) < _SAMPLES:
            return "the topology's acks are measured"
        return worse(before, self._rates())

    def _unsettled(self, view: TopologyView) -> str | None:
        """Return what does not run of the topology, apart from the workers that are still due."""
        due = {*self._left}.intersection(stock_workers(view))
        why = unsettled(view, {one.slot for one in due})
        return why and shown(why, hosts_of([view]))
