"""Makes one try after the other; a cluster serves as many as leave it whole."""

import random
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller.storm import controls
from deploy.lab import LabError
from deploy.lab.home.versions import REPOSITORY
from deploy.lab.ledger import Totals, degraded_s, longest_gap_s
from kvstore.errors import StoreError
from migration.model import Counters, Phase
from tests.bench.frame import load_average
from tests.chaos.faults import Faults
from tests.chaos.judge import DEGRADED_FRAC, MOVED, NO_MOVE, Expected, Seen, Window, judge
from tests.chaos.stand import CONF, RATE_TPS, TOPOLOGY, Move, Stand, standing
from tests.chaos.tries import Try

LAB = "chaos"
NEXT_LIMIT_S = 60.0
# The second of the fault counts from its begin, and must not have the end of the rest in it.
FED_S = 2.0
DATE = "%Y-%m-%d"
SOAK = "soak"
SOAK_RATE_TPS = 400.0
KILL_EVERY_S = 60.0
SOAK_EXPECTED = Expected(frozenset({NO_MOVE}), within_s=90.0, tuples_fail=True, spouts_end=True)


@dataclass(frozen=True, slots=True)
class Result:
    """A try, what is wrong with what it did, and the commit that was tried; empty without git."""

    name: str
    date: str
    seen: Seen
    wrong: list[str]
    commit: str = ""

    @property
    def wedged(self) -> bool:
        """Whether the cluster is of no more use."""
        seen = self.seen
        return seen.window is None or seen.next_move != MOVED or seen.next_restarts > 0


def run_tries(
    tries: Iterable[Try], seed: int, lab: str = LAB, conf: Mapping[str, Any] = CONF
) -> Iterator[Result]:
    """Make tries; after one that has left its cluster wedged the next has a fresh one.

    The logs of the wedged one stay, in a folder with the name of the try next to that of the lab.
    """
    with ExitStack() as cluster:
        stand: Stand | None = None
        besides: Mapping[str, Any] = {}
        for row in tries:
            if stand is not None and row.conf != besides:
                cluster.close()
                stand = None
            if stand is None:
                besides = row.conf
                stand = cluster.enter_context(standing(lab, "observe", {**conf, **besides}))
                stand.rest()
            # The tries before do not count: it moves the same when it is made alone.
            stand.chosen = random.Random(f"{row.name} {seed}")
            result = _one(stand, row)
            yield result
            if result.wedged:
                cluster.close()
                _keep_logs(stand.lab.layout.run_dir, row.name)
                stand = None


def _keep_logs(run_dir: Path, name: str) -> None:
    """Move what a cluster has left aside, or the next one would write over it."""
    kept = run_dir.with_name(f"{run_dir.name}-{name}")
    shutil.rmtree(kept, ignore_errors=True)
    run_dir.rename(kept)


def _one(stand: Stand, row: Try) -> Result:
    seen, faults = Seen(), Faults(stand)
    broke: list[str] = []
    try:
        _try(stand, faults, row, seen)
    except (LabError, StoreError) as error:
        broke = [f"broke off: {error}"]
    return Result(
        row.name,
        time.strftime(DATE),
        seen,
        [*broke, *faults.complaints, *judge(row.expected, seen)],
        _commit(),
    )


def _commit() -> str:
    command = ["git", "-C", str(REPOSITORY), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout.strip()


def _try(stand: Stand, faults: Faults, row: Try, seen: Seen) -> None:
    """Begin and end at rest."""
    before, late = stand.ledger.totals(), stand.counters()
    stand.ledger.set_rate(RATE_TPS)
    time.sleep(FED_S)
    stand.pids = stand.note_workers()
    known = set(stand.workers_seen)
    stand.services.restarts.clear()
    move = stand.choose() if row.phase is None else faults.when(row.phase, row.way)
    seen.move = f"{move.executor} {stand.place(move.source)} {stand.place(move.target)}"
    seen.load = load_average()
    struck_s = time.time()
    row.strike(faults, move)
    faults.let_on()
    seen.undone_while_held = _hold(stand, faults, move, row.hold_s)
    lifted_s = time.monotonic()  # the lift may take its time, as a new topology does
    row.lift(faults, move)
    seen.recovered_s, seen.flaw = stand.wait_whole(row.expected.within_s, lifted_s)
    whole_s = time.time()
    if row.phase is not None:
        seen.outcome = stand.outcome(move)
    came = stand.workers_seen - known
    if row.phase is Phase.OPEN:  # a slot that had no worker
        came = {(slot, pid) for slot, pid in came if slot != str(move.target)}
    seen.restarts = len(came) - faults.workers_killed
    resubmitted = faults.topology != stand.lab.topology_id(TOPOLOGY)
    _count(stand, seen, Totals() if resubmitted else before)
    acked = stand.ledger.acked_10ms(int(struck_s), whole_s)
    seen.gap_s, seen.degraded_s = longest_gap_s(acked), degraded_s(acked, RATE_TPS)[DEGRADED_FRAC]
    if seen.recovered_s is not None:
        _count_late(stand, seen, late)
        _afterwards(stand, seen)
    seen.services_ended = stand.services.restarts.total() - faults.services_killed


def _hold(stand: Stand, faults: Faults, move: Move, hold_s: float) -> bool:
    """Wait until the fault is to be lifted; True if the move was undone by then."""
    undone = False
    lift_at_s = time.monotonic() + hold_s
    while (left_s := lift_at_s - time.monotonic()) > 0:
        with suppress(StoreError):
            entry = stand.entry(faults.topology, move)
            undone = undone or (entry is not None and entry.phase is Phase.UNDO)
        time.sleep(min(0.1, left_s))
    return undone


def _count(stand: Stand, seen: Seen, before: Totals) -> None:
    """Count since a rest; what is pending at rest are the sentences of dead spouts."""
    after = stand.rest()
    seen.failed = after.failed - before.failed
    seen.double_acked = after.double_acked - before.double_acked
    seen.lost = after.pending - before.pending


def _count_late(stand: Stand, seen: Seen, before: dict[str, Counters]) -> None:
    for incarnation, now in stand.counters().items():
        then = before.get(incarnation, Counters())
        seen.forwarded += now.forwarded - then.forwarded
        seen.dropped += now.dropped - then.dropped


def _afterwards(stand: Stand, seen: Seen) -> None:
    """Make a plain move under load, and drain."""
    rested, pids = stand.ledger.totals(), stand.note_workers()
    stand.ledger.set_rate(RATE_TPS)
    Faults(stand).plain_move()
    seconds, flaw = stand.wait_whole(NEXT_LIMIT_S)
    seen.next_move = MOVED if seconds is not None else f"{MOVED}, but then: {flaw}"
    seen.next_restarts = len(stand.note_workers().items() - pids.items())
    seen.window = Window.between(rested, stand.rest())


def soak(seconds: float, seed: int) -> Result:
    """Let the controller move unaided, kill a random worker each minute, and account."""
    seen = Seen()
    broke: list[str] = []
    with standing(f"{LAB}-{SOAK}", "auto") as stand:
        try:
            _soak(stand, seconds, seed, seen)
        except (LabError, StoreError) as error:
            broke = [f"broke off: {error}"]
    wrong = [*broke, *judge(SOAK_EXPECTED, seen)]
    return Result(SOAK, time.strftime(DATE), seen, wrong, _commit())


def _soak(stand: Stand, seconds: float, seed: int, seen: Seen) -> None:
    stand.ledger.set_rate(SOAK_RATE_TPS)
    known = set(stand.note_workers().items())
    chosen, kills = random.Random(seed), 0
    ends_at_s = time.monotonic() + seconds
    kill_at_s = time.monotonic() + KILL_EVERY_S / 2
    while time.monotonic() < ends_at_s:
        pids = stand.note_workers()
        if time.monotonic() >= kill_at_s and pids:
            kill_at_s += KILL_EVERY_S
            stand.lab.kill_worker(chosen.choice(sorted(pids)))
            kills += 1
        time.sleep(1.0)
    controls.pause(stand.session, "the account is made")
    seen.recovered_s, seen.flaw = stand.wait_whole(SOAK_EXPECTED.within_s)
    seen.restarts = len(stand.workers_seen - known) - kills
    _count(stand, seen, Totals())
    if seen.recovered_s is not None:
        _afterwards(stand, seen)
    seen.services_ended = stand.services.restarts.total()
