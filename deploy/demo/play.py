"""Runs the demo from the first process to the report."""

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from controller.storm import controls
from controller.storm.move_record import MoveRecord
from deploy.demo.calm import Calm
from deploy.demo.gauges import Gauges, Look
from deploy.demo.picture import draw
from deploy.demo.report import Recording, assemble
from deploy.demo.screen import Screen
from deploy.demo.windows import WARM_S, DemoSpan, is_warm
from deploy.lab import LabError
from deploy.lab.cluster import HOOKS_JAR, Lab, plan_lab, sweep
from deploy.lab.figures import Figures, Meter
from deploy.lab.home.versions import REPOSITORY, storm_version
from deploy.lab.ledger import SATURATE, Ledger, throughput_tps
from deploy.lab.network import machine_cores
from deploy.lab.operator import Operator, beside, kill_meters
from deploy.lab.pairing import (
    FED_FRAC,
    LEAST_PAIRS,
    TOPOLOGY_CONF,
    NotPlacedError,
    Pair,
    SlotOf,
    in_turn,
    known,
    place,
)
from kvstore.zookeeper import Session
from migration import storm_yaml

OUT_DIR = REPOSITORY / "build" / "demo"
JOURNAL_DIR = OUT_DIR / "journal"
NAME = "demo"
# So slow that links bind where the machine can have them, and not its other work.
LINK = "5mbit"
CYCLE_S = 2.0
# An executor that has moved settles for about 10 s. The smoothed load needs about as long again
# until it shows the new state (0.3 of each cycle). The default would be most of the run.
COOLDOWN_S = 20.0
LAB_CONF = {
    "nstorm.cycle.secs": CYCLE_S,
    "nstorm.cooldown.executor.secs": COOLDOWN_S,
    "nstorm.journal.dir": str(JOURNAL_DIR),
}
NODES = 2
# Of the machine's cores, what the nodes have together; the rest is for what runs next to them.
OWN_FRAC = 0.9
# Where nodes share the cores, nothing holds a worker to its half of a node. To wake up for few
# tuples at a time costs so much that 40 % of the load takes most of the CPU. With halves no worker
# has room for a move.
SHARED_CORES_CONF = {"nstorm.worker.cpu.capacity": machine_cores() / 2}
# Of the controller that only goes from one placement to the other.
MOVES_AT_ONCE = 8

WARM_UP_S = 24.0
# The queues of the saturation are worked off, and no second of it is left in the ledger's windows.
RECOVER_S = 4.0
FED_S = 12.0
# A placement is measured for so long at a time, once queues have come to what it makes of them.
# Shorter would not give more pairs: Nimbus takes some 10 s to write moves down before the next.
SIDE_S, SETTLE_S = 8, 2.0
MOST_PAIRS, PAIR_S = 8, 25.0
# The whole run, and what of it is needed after the controller's work. That work begins with a wait
# of some 200 s: a first gain waits until workers are two minutes old, and watched for two more.
RUN_S, DRAIN_S, LEAST_WORK_S = 485.0, 15.0, 120.0
AFTERWARDS_S = 10.0 + LEAST_PAIRS * PAIR_S + DRAIN_S
SETTLE_LIMIT_S = 60.0


class _Play:
    """One run, on a cluster that is up."""

    def __init__(self, lab: Lab, session: Session, screen: Screen, began_s: float) -> None:
        self.ledger: Ledger = lab.ledger(NAME)
        self.inter_node: list[tuple[float, float]] = []
        self.taken: list[tuple[str, DemoSpan]] = []
        self.load_averages: list[float] = []
        self._end_s = began_s + RUN_S
        self._lab = lab
        self._gauges = Gauges(session, NAME)
        self._meter = Meter(lab, session, NAME)
        self._screen = screen

    def watch(self, limit_s: float, until: Callable[[Look], bool] = lambda look: False) -> bool:
        """Look once a second, for so long or until something is seen; return whether it was."""
        end_s = time.monotonic() + limit_s
        while True:
            if self._lab.daemon("controller") is None:
                logs = self._lab.layout.nimbus_dir / "logs"
                raise LabError(f"the controller has ended by itself: see controller.log in {logs}")
            look, now_s = self._gauges.look(), time.time()
            if look.inter_node_frac is not None:
                self.inter_node.append((now_s, look.inter_node_frac))
            seconds = self.ledger.windows(now_s - 4)
            self._screen.show(look, seconds[-1].acked if seconds else 0)
            if until(look):
                return True
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                return False
            time.sleep(min(1.0, left_s))

    def saturate(self) -> float:
        """Feed as much as goes until that no longer grows, or the time is over; give the rate."""
        self._screen.next_step()
        self.ledger.set_rate(SATURATE)
        began_s = time.time()
        self.watch(WARM_UP_S, lambda look: is_warm(self.ledger.windows(began_s + 1)))
        return throughput_tps(self.ledger.windows(time.time() - WARM_S))

    def feed(self, rate_tps: float) -> DemoSpan:
        """Feed at a rate; give a stretch of it in which nothing moves."""
        self._screen.next_step()
        self.ledger.set_rate(rate_tps)
        self.watch(RECOVER_S)
        began_s = time.time()
        self.watch(FED_S)
        return DemoSpan(began_s, time.time())

    def work(self) -> bool:
        """Watch the controller until it comes to rest; True if it did."""
        self._screen.next_step()
        calm = Calm()

        def at_rest(look: Look) -> bool:
            nonlocal calm
            newest_s = max((move.ended_s for move in look.ended), default=0.0)
            rests = look.entries > 0 or time.time() - newest_s < COOLDOWN_S
            calm = calm.after(look.tick, look.outcome, resting=rests, searching=look.is_search)
            return calm.reached

        limit_s = self._end_s - AFTERWARDS_S - time.monotonic()
        return self.watch(max(limit_s, LEAST_WORK_S), at_rest)

    def moved(self) -> tuple[MoveRecord, ...]:
        """Wait until the moves under way have settled, and give all of the controller's."""
        self.watch(SETTLE_LIMIT_S, lambda look: look.entries == 0)
        self.watch(2 * CYCLE_S)  # the controller reports a move's end with its next cycle
        return self._gauges.look().ended

    def compare(self, operator: Operator, sides: dict[str, SlotOf]) -> tuple[tuple[Pair, ...], str]:
        """Saturate both placements in turn, from "b" on, as often as the time allows.

        Gives the pairs, and why there are no more if a switch could not be made.
        """
        self._screen.next_step()
        self.ledger.set_rate(SATURATE)
        self.watch(RECOVER_S)
        here, pairs = "b", list[Pair]()

        def go(side: str) -> None:
            nonlocal here
            here = side
            place(operator, sides[side], self.watch)
            self.watch(SETTLE_S)

        def take() -> Figures:
            began_s = time.time()
            found = self._meter.take(SIDE_S, self.watch)
            self.taken.append((here, DemoSpan(began_s, time.time())))
            self.load_averages.append(os.getloadavg()[0])
            return found

        try:
            for pair in in_turn(go, take, here):
                pairs.append(pair)
                self._screen.say(
                    f"     pair {len(pairs)}: {pair.a.acked_tps:.0f}/s at Storm's placement, "
                    f"{pair.b.acked_tps:.0f}/s at the new one"
                )
                over = time.monotonic() + PAIR_S + DRAIN_S > self._end_s
                if known(pairs) or len(pairs) >= (LEAST_PAIRS if over else MOST_PAIRS):
                    break
        except NotPlacedError as error:
            self._screen.say(f"     no more pairs: {error}")
            return tuple(pairs), str(error)
        return tuple(pairs), ""


def run_demo(screen: Screen) -> dict[str, Any]:
    """Run the demo and write its report.

    Each node has cores of its own, as on a cluster, where the machine can do that. Then a worker's
    capacity is nstorm's default, and the controller decides at saturation, as it is measured.
    """
    sweep()
    shutil.rmtree(JOURNAL_DIR, ignore_errors=True)  # of an earlier run, of another cluster
    began_s = time.monotonic()
    planned = _planned(LAB_CONF, OWN_FRAC * machine_cores() / NODES)
    for line in planned.layout.options.cannot_show:
        screen.say(f"cannot be shown here: {line}")
    network = planned.layout.options.network
    own_cores = None if network is None else network.cores
    if own_cores is None:
        planned = _planned(LAB_CONF | SHARED_CORES_CONF, None)
    screen.next_step()
    planned.say = screen.say
    with planned as lab:
        lab.start_agents()
        screen.next_step()
        lab.submit(NAME, TOPOLOGY_CONF)
        lab.wait_ready(NAME)
        with Session(lab.storm_zookeeper) as session:
            session.connect()
            controls.pause(session, "the demo measures Storm's own placement first")
            recording = _play(lab, session, screen, began_s, own_cores)
    report = assemble(recording)
    write(OUT_DIR, report, recording)
    return report


def _planned(conf: Mapping[str, Any], cores: float | None) -> Lab:
    return plan_lab(
        NAME, nodes=NODES, hooks_jar=HOOKS_JAR, conf=conf, cores=cores, link=LINK, trimmed=True
    )


def _play(
    lab: Lab, session: Session, screen: Screen, began_s: float, own_cores: float | None
) -> Recording:
    """Let the controller work, then compare its placement with Storm's; it is paused at first."""
    run = _Play(lab, session, screen, began_s)
    pids, meters, first_s = lab.worker_pids(), kill_meters(lab), time.time()
    with beside(lab, NAME, mode="auto") as operator:
        storms = operator.placement().slot_of
        rate_tps = round(FED_FRAC * run.saturate())
        quiet = run.feed(rate_tps)
        if own_cores is not None:
            run.ledger.set_rate(SATURATE)
        controls.resume(session)
        came_to_rest = run.work()
        controls.pause(session, "the demo compares two placements")
        moves = run.moved()
        new = operator.placement().slot_of
    pairs: tuple[Pair, ...] = ()
    broken_off = ""
    if new != storms:
        _let_many_move(lab)
        with beside(lab, NAME) as operator:
            pairs, broken_off = run.compare(operator, {"a": storms, "b": new})
    screen.next_step()
    totals = run.ledger.drain()
    # The other workers end once they are empty, and start again when executors go back to them.
    kept = {str(slot) for slot in storms.values()} & {str(slot) for slot in new.values()}
    return Recording(
        storm_version=storm_version().version,
        windows=tuple(run.ledger.windows(first_s)),
        inter_node=tuple(run.inter_node),
        rate_tps=rate_tps,
        quiet=quiet,
        came_to_rest=came_to_rest,
        cooldown_s=COOLDOWN_S,
        moves=moves,
        pairs=pairs,
        broken_off=broken_off,
        taken=tuple(run.taken),
        load_averages=tuple(run.load_averages),
        link_bps=lab.layout.options.link_bps,
        own_cores=own_cores,
        totals=totals,
        restarted_pids=sum(lab.worker_pids().get(slot) != pids[slot] for slot in kept),
        meters_risen={name: n - meters[name] for name, n in kill_meters(lab).items()},
        took_s=time.monotonic() - began_s,
    )


def _let_many_move(lab: Lab) -> None:
    """Let the next controller make several moves at a time, so that a switch takes seconds."""
    file = lab.layout.storm_yaml
    conf = {**storm_yaml.read(file), "nstorm.max.moves.per.cycle": MOVES_AT_ONCE}
    file.write_text(yaml.safe_dump(conf))


def write(out_dir: Path, report: dict[str, Any], recording: Recording) -> None:
    """Write report.json and report.png, each whole or not at all."""
    files = {
        out_dir / "report.json": json.dumps(report, indent=1).encode(),
        out_dir / "report.png": draw(recording),
    }
    out_dir.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=out_dir) as partial:
        for file, data in files.items():
            (Path(partial) / file.name).write_bytes(data)
        for file in files:
            (Path(partial) / file.name).rename(file)
