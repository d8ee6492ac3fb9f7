"""``nstorm adopt``: the hooks come into running workers, one worker after the other."""

import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    failed_s,
    has_ackers,
    in_flight,
    placed_elsewhere,
    seen_to_rest_s,
    settles_s,
    stock_workers,
    unlisted,
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
# So long a worker that has started may take to connect to the others.
_CONNECTS_S = 5.0
Wait = Callable[[Callable[[], str | None], float], str | None]


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
    rest: Annotated[
        str,
        typer.Option(
            help="A command that deactivates the topology before each restart, and activates it "
            """afterwards, such as 'storm "$NSTORM_DO" "$NSTORM_TOPOLOGY"'. The restart waits """
            "until nothing is un-acked."
        ),
    ] = "",
    settle: Annotated[
        str | None,
        typer.Option(
            help="How long to wait after each worker, until Storm has replayed what was in flight. "
            "Without it twice topology.message.timeout.secs; with --rest 20 s."
        ),
    ] = None,
    within: Annotated[
        str, typer.Option(help="How long a worker may take to come back; then the command ends.")
    ] = "10m",
    one_at_a_time: Annotated[  # only for those who type it
        bool, typer.Option("--one-at-a-time", help="As always: there is no other way.")
    ] = True,
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
        adopting = _Adopting(session, config, steps, settle_s, rest)
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
        loses = "what its bolts keep in memory"
        if adopting.loses_tuples:
            loses = f"its tuples in flight, which Storm replays if the topology acks, and {loses}"
        confirm(f"Restart {restarts} or more: {', '.join(left)}? Each loses {loses}.")
        interrupt.does_not_end("no other worker is restarted: the same command continues")
        restart_alone(session, "adopt")
        failed = adopting.work(run, within_s)
    if output is Output.JSON or failed is None:
        found = {"done": adopting.done, "left": adopting.left, "failed": failed}
        tell(output, found, f"adopted: {', '.join(adopting.done) or 'none'}")
    raise typer.Exit(0 if failed is None else 1)


@contextmanager
def _held() -> Iterator[None]:
    """Let the signals that end `adopt` wait until it is known what was begun."""
    came: list[int] = []
    ends = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
    heard = [one for one in ends if signal.getsignal(one) is not signal.SIG_IGN]
    usual = {one: signal.signal(one, lambda number, _: came.append(number)) for one in heard}
    try:
        yield
    finally:
        for one, handler in usual.items():
            signal.signal(one, handler)
    for number in came:
        signal.raise_signal(number)


class _Adopting:
    def __init__(
        self, session: Session, config: Config, steps: Steps, settle_s: float | None, rest: str = ""
    ) -> None:
        self._view, self._config = LiveCluster.of_session(session), config
        self._steps, self._settle_s, self._rest = steps, settle_s, rest
        # Whether the topology was deactivated for the worker that is restarted, and was seen so.
        self._rests, self._rests_since_s = False, 0.0
        # The times of the first reports of its workers since then, by their own clocks.
        self._seen_ms: dict[Slot, int] = {}
        # The command that was begun last: what activates shall not overtake it.
        self._begun: subprocess.Popen[bytes] | None = None
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
        views = self._views_of_left()
        rests = sum(map(seen_to_rest_s, views)) if self._rest else 0.0
        return lasting(rests + sum(map(self._settles_s, views)))

    @property
    def warnings(self) -> list[str]:
        """What is left out, and what Nimbus would do to the placement while a worker restarts."""
        placed = dict.fromkeys(map(placed_elsewhere, self._views_of_left()))
        return [*self._left_out, *(text for text in placed if text)]

    @property
    def loses_tuples(self) -> bool:
        """Whether tuples may be in flight to a worker that is ended."""
        return not self._rest or not all(map(has_ackers, self._views_of_left()))

    def _views_of_left(self) -> list[TopologyView]:
        """Look at the topology of each worker that is left."""
        views = self._view.topologies()
        return [view for one in self._left if (view := find(views, one.topology)) is not None]

    def _settles_s(self, view: TopologyView) -> float:
        if self._settle_s is not None:
            return self._settle_s
        begins = self._rest and view.publication.status == "ACTIVE"
        return seen_to_rest_s(view) if begins else settles_s(view)

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
                if (refusal := unlisted(view, slot)) is not None:
                    raise CommandError(f"{view.publication.name}: {refusal}")
                if silent_s.get(slot.supervisor, fresh_s + 1) > fresh_s:
                    host = view.publication.hosts[slot.supervisor]
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
            began_s = time.monotonic()
            why = self._restart(one, name, partial(self._steps.wait, name, place), run, within_s)
            if why is not None:
                self._steps.say(f"{name}: {why}")
                return name
            if self._look(one) is None:
                self._steps.say(f"{name}: its topology was killed")
                continue
            took_s = time.monotonic() - began_s
            self._steps.took(took_s)
            self.done.append(name)
            self._steps.say(f"{name}: is back with the hooks, after {lasting(took_s)}")
        return None

    def _restart(self, one: Stock, name: str, wait: Wait, run: str, within_s: float) -> str | None:
        """Restart one, the next, and wait until all is as before; return what is not so."""
        before, view = self._rates(), self._look(one)
        publication = view.publication if view else None
        rests = bool(self._rest) and publication is not None and publication.status == "ACTIVE"
        topology = publication.name if publication else one.topology
        host, _, port = self._at(one.slot).rpartition(":")
        try:
            if rests and view is not None:
                self._rests, self._rests_since_s, self._seen_ms = True, 0.0, {}
                self._steps.say(f"{topology}: deactivate")
                why = self._switch("deactivate", topology)
                why = why or wait(partial(self._in_flight, one), within_s + failed_s(view))
                if why is not None:
                    return f"is not restarted: {why}"
                if not self._is_stock(one):  # another topology's worker may be there
                    return "is not restarted: Storm has moved or ended it"
            self._steps.say(f"{name}: runs the command")
            with _held():
                self._begun = self._steps.start(run, {"NSTORM_HOST": host, "NSTORM_PORT": port})
            if code := self._begun.wait():
                return f"the command has failed, exit code {code}"
            self._left.pop(0)
            self._back = None
            why = wait(partial(self._away, one, before), within_s)
        finally:
            if rests:
                self._activate(topology)
        if why is None and rests:
            why = wait(partial(self._flows, one, before), within_s)
        if why is None:
            return None
        self._left.insert(0, one)
        return (
            f"is not back after {lasting(within_s)}: {why}. No other worker is restarted. "
            "docs/operations.md, Bringing the hooks into workers"
        )

    def _switch(self, do: str, topology: str) -> str | None:
        """Run the command that deactivates or activates; return what is wrong with that."""
        variables = {"NSTORM_DO": do, "NSTORM_TOPOLOGY": topology}
        # No signal ends it: half of it may have reached Nimbus.
        with _held():
            self._begun = self._steps.start(f"trap '' HUP INT TERM; {self._rest}", variables)
        code = self._begun.wait()
        return f"the command to {do} {topology} has failed, exit code {code}" if code else None

    def _activate(self, topology: str) -> None:
        """Activate what was deactivated, without a look at ZooKeeper, which may be away."""
        say = self._steps.say_if_read
        usual = {one: signal.signal(one, signal.SIG_IGN) for one in (signal.SIGINT, signal.SIGHUP)}
        try:
            if self._begun is not None and self._begun.poll() is None:
                say(f"{topology}: waits for the end of the command before")
                self._begun.wait()
            say(f"{topology}: activate; Ctrl-C is ignored until that has ended")
            why = self._switch("activate", topology)
        finally:
            for one, handler in usual.items():
                signal.signal(one, handler)
        self._rests, self._back = False, None
        if why is not None:
            say(f"{why}: activate it by hand, unless Storm shows it as ACTIVE")

    def _in_flight(self, one: Stock) -> str | None:
        """Return what may be un-acked yet of a topology that was deactivated."""
        view, now_s = self._look(one), time.monotonic()
        if view is None:
            return None  # killed
        if view.publication.status != "INACTIVE":
            return "Storm has not deactivated the topology yet"
        self._rests_since_s = self._rests_since_s or now_s
        still_s = now_s - self._rests_since_s - seen_to_rest_s(view)
        if still_s < 0:
            return "the topology is deactivated; its spouts learn that"
        if still_s >= failed_s(view):
            return None  # what is older has failed
        tuples = in_flight(view, self._view.loads(), self._seen_ms)
        if tuples is None:
            return f"not all in flight is seen; it times out within {lasting(failed_s(view))}"
        return "tuples are un-acked or in queues" if tuples else None

    def _flows(self, one: Stock, before: tuple[float, float] | None) -> str | None:
        """Return what is not as before in a topology that was activated again."""
        view = self._look(one)
        if view is not None and view.publication.status == "INACTIVE":
            return "Storm has not activated the topology yet"
        return self._away(one, before)

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
        settle_s = _CONNECTS_S if self._rests else self._settles_s(view)
        if now_s - since_s < settle_s:
            what = f"for {lasting(settle_s)} what was in flight may time out and be replayed"
            if self._rest:
                what = "it connects to others" if self._rests else "its topology begins again"
            return f"runs, with the hooks; {what}"
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
