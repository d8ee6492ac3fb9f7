"""Misuse of a cluster that runs: what is over or gone, what is odd or huge, and Ctrl-C in between.

Each ends in one sentence, and ZooKeeper holds what it held before.
"""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from controller.cli.roll import ROLL
from controller.config import JournalBounds, Mode
from controller.core.capacity import Capacity
from controller.core.stock import stock_workers
from controller.output import quiet
from controller.storm.collect import DRAINED, LiveCluster
from controller.storm.command_record import COMMANDS
from controller.storm.move_record import HISTORY, stored_moves
from kvstore.zookeeper import Session
from migration import wire
from migration.model import Plan
from tests.integration.test_controller_live import (
    Puppets,
    last_cycle,
    leading,
    new_root,
    played,
    wait_for,
    write_conf,
)
from tests.unit.controller.conftest import Nstorm, nstorm

pytestmark = pytest.mark.zookeeper
__all__ = ["nstorm"]

# What Nimbus, agents and the leader write without being asked.
_THEIRS = ("acks", "epoch", "leader", "load", "nimbus", "nodes", "status", "topologies")
HUGE = "x" * 60_000
ESCAPE, REVERSED = "\x1b[2J", "\u202ecw"
NO_TOPOLOGY, ENDED = "no topology", "nstorm: ended by Ctrl-C"
NO_PLAN = Plan("", 0, 0, "")
ROOMY = Capacity(fixed_cores=4.0)  # so that either host may be emptied
# What is typed, and what stands in the last line. `m1` is the id of a move that has ended.
STALE = [
    ("cancel m1", "m1"),
    ("cancel m999", "m999"),
    (f"cancel {HUGE}", "xxx…"),
    (f"cancel {ESCAPE}", r"\x1b[2J"),
    ("show m999", "no move m999"),
    (f"show {REVERSED}", r"no move \u202ecw"),
    ("undo 7", "of 7 moves only 1 can be undone; nothing was changed"),
    ("approve p-1a2b3c", "no proposal p-1a2b3c waits"),
    ("reject p-1a2b3c", "no proposal p-1a2b3c waits"),
    (f"reject {HUGE}", "xxx… waits"),
    ("move gone 2-2 host-a:6701", f"{NO_TOPOLOGY} gone"),
    ("move wc 99-99 host-a:6701", "has no executor 99-99"),
    ("move wc 2-2 host-a:6709", "no supervisor offers a slot host-a:6709"),
    ("move wc 2-2 host-gone:6700", "no supervisor offers a slot host-gone:6700"),
    ("move wc 7-7 host-a:6701", "executor 7-7 is at host-a:6701 already"),
    ("move wc 1-1 host-b:6700", "must stay: spout"),
    (f"move {REVERSED} 2-2 host-a:6701", r"'\u202ecw' names nothing: it has control characters"),
    (f"move {HUGE} 2-2 host-a:6701", "xxx…' names nothing: it has control characters, or more"),
    ("pause --topology gone", f"{NO_TOPOLOGY} gone"),
    (f"pause --topology {ESCAPE}", rf"{NO_TOPOLOGY} \x1b[2J"),
    ("resume --topology gone", f"{NO_TOPOLOGY} gone"),
    ("mode gone auto", f"{NO_TOPOLOGY} gone"),
    (f"mode {HUGE} auto", f"{NO_TOPOLOGY} xxx"),
    ("plan gone", f"{NO_TOPOLOGY} gone"),
    ("history gone", f"{NO_TOPOLOGY} gone"),
    ("status --topology gone", f"{NO_TOPOLOGY} gone"),
    ("status --host gone", "no host gone"),
    ("top --topology gone", f"{NO_TOPOLOGY} gone"),
    ("explain --topology gone", f"{NO_TOPOLOGY} gone"),
    ("explain 99-99", "99-99"),
    (f"explain {REVERSED}", r"\u202ecw"),
    ("explain 999999 --journal JOURNAL", "has no cycle 999999 in which its controller led"),
    ("explain 2020-01-01 --journal JOURNAL", "has no cycle 2020-01-01"),
    ("drain gone", "gone"),
    ("drain gone --dry-run", "gone"),
    ("undrain host-a", "host host-a is not drained"),
    (f"undrain {ESCAPE}", r"host \x1b[2J is not drained"),
    ("roll --run true --hosts host-a,gone", "no host 'gone': there are host-a, host-b"),
    ("roll --run {host}", 'write "$NSTORM_HOST" in place of {host}'),
    ("adopt gone --run true", "no topology gone"),
]


def held(session: Session) -> Mapping[str, bytes]:
    """Read what operators and the leader have put into ZooKeeper."""
    found: dict[str, bytes] = {}
    paths = [wire.ROOT]
    while paths:
        path = paths.pop()
        stored = session.read(path)
        if stored is not None and stored.data:  # and is no mere folder
            # A move is measured 30 s after its end.
            moves = ",".join(f"{m.id} {m.outcome}" for m in stored_moves(stored))
            found[path] = moves.encode() if path == HISTORY else stored.data
        names = {*(session.children(path) or ())}
        if path == wire.ROOT:
            names -= {*_THEIRS}
        paths += [f"{path}/{name}" for name in names]
    return found


def differ(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> set[str]:
    """Name the nodes that are not as before; a plan without moves is as none."""
    return {
        path
        for path in before.keys() | after.keys()
        if before.get(path) != after.get(path)
        and not (path.startswith(wire.PLANS) and not entries(after.get(path)))
    }


def moving(found: Mapping[str, bytes]) -> int:
    """Count the moves of all plans."""
    return sum(entries(data) for path, data in found.items() if path.startswith(wire.PLANS))


def entries(plan: bytes | None) -> int:
    """Count the moves of a plan."""
    return len(wire.decode(Plan, plan).entries) if plan else 0


@contextmanager
def settled(zookeeper: str, folder: Path) -> Iterator[tuple[Puppets, Path]]:
    """Run a Storm and a leader that has made one move and rests."""
    storm = new_root(zookeeper)
    conf = write_conf(folder / "storm.yaml", storm)
    with conf.open("a") as file:
        file.write(f"nstorm.worker.cpu.capacity: {ROOMY.fixed_cores}\n")
    rests = {"mode": Mode.ADVISE, "capacity": ROOMY, "journal": JournalBounds(folder / "journal")}
    with played(storm) as puppets, leading(storm, "one", **rests):
        wait_for(lambda: last_cycle(puppets.session).executors)
        yield puppets, conf


def test_what_is_over_gone_odd_or_huge_is_refused_and_changes_nothing(
    zookeeper: str, tmp_path: Path, nstorm: Nstorm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.cli.running.log_to_stderr", lambda _: None)
    with quiet(logging.CRITICAL), settled(zookeeper, tmp_path) as (puppets, conf):
        where = ("--conf", str(conf))
        assert nstorm("move", "wc", "7-7", "host-a:6701", "--wait", *where).code == 0
        # The command ends with the phase; the plan and the history are written after it.
        wait_for(lambda: HISTORY in (before := held(puppets.session)) and not moving(before))
        before = held(puppets.session)
        wrong: dict[str, object] = {}
        for typed, said in STALE:
            words = typed.replace("JOURNAL", str(tmp_path / "journal")).split(" ")
            shown = nstorm(*words, *where)
            last = shown.err.splitlines()[-1:]
            is_short = len(shown.err) < 900 and "\x1b" not in shown.err
            if shown.code != 2 or shown.out or not is_short or said not in "".join(last):
                wrong[typed[:60]] = shown
            elif held(puppets.session) != before:
                wrong[typed[:60]] = held(puppets.session)
                before = held(puppets.session)
        assert not wrong


# As a terminal's: in the background of a shell the signal is ignored, and Python would leave it so.
_CODE = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from controller.cli import main; main()"
)


def interrupted(until: Callable[[str], object], *arguments: str) -> tuple[int, str]:
    """Type Ctrl-C once a command is in the middle; give its exit code and its last line.

    `until` gets what it has printed so far.
    """
    with TemporaryFile("w+") as shown:
        process = subprocess.Popen(
            [sys.executable, "-c", _CODE, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=shown,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return _ended(process, lambda: until(os.pread(shown.fileno(), 10_000, 0).decode()))


def _ended(process: subprocess.Popen[str], is_at_work: Callable[[], object]) -> tuple[int, str]:
    try:
        wait_for(lambda: is_at_work() or process.poll() is not None)
        assert process.poll() is None, process.stderr and process.stderr.read()
        os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to all that the command started
        _, said = process.communicate(timeout=60)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    with pytest.raises(ProcessLookupError):  # it leaves no process
        os.killpg(process.pid, 0)
    assert "Traceback" not in said
    return process.returncode, said.splitlines()[-1]


def test_ctrl_c_says_what_goes_on_and_leaves_nothing_half_done(
    zookeeper: str, tmp_path: Path, nstorm: Nstorm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.cli.running.log_to_stderr", lambda _: None)
    with quiet(logging.CRITICAL), settled(zookeeper, tmp_path) as (puppets, conf):
        session, where = puppets.session, ("--conf", str(conf))

        def is_moving() -> bool:
            return bool((puppets.plan() or NO_PLAN).entries)

        def has(path: str) -> bool:
            stored = session.read(path)
            return stored is not None and bool(stored.data)

        before = held(session)
        puppets.never_ready = True
        begun = ("move", "wc", "7-7", "host-a:6701", "--wait", *where)
        code, said = interrupted(lambda shown: "PREPARE" in shown, *begun)
        move = next(iter((puppets.plan() or NO_PLAN).entries)).id
        assert (code, said) == (130, f"{ENDED}; {move} goes on: `nstorm cancel {move}` ends it")
        wait_for(lambda: not session.children(COMMANDS))
        assert nstorm("cancel", move, *where).code == 0
        wait_for(lambda: not is_moving())

        drained = f"{DRAINED}/host-b"
        code, said = interrupted(
            lambda _: has(drained), "drain", "host-b", "--within", "1h", *where
        )
        assert (code, said) == (
            130,
            f"{ENDED}; a drain that has begun goes on: `nstorm undrain host-b` ends it",
        )
        assert nstorm("undrain", "host-b", *where).code == 0
        puppets.never_ready = False
        wait_for(lambda: not is_moving())
        assert differ(before, held(session)) == {HISTORY}

        rolled = ("roll", "--run", "true", "--hosts", "host-b", *where)
        puppets.never_ready = True
        code, said = interrupted(lambda _: has(drained), *rolled)
        assert (code, said) == (
            130,
            f"{ENDED}; a drained host stays so: the same command continues the roll, "
            "--forget deletes it",
        )
        assert differ(before, held(session)) >= {ROLL, drained}
        puppets.never_ready = False
        assert nstorm(*rolled).code == 0
        wait_for(lambda: not is_moving())
        assert differ(before, held(session)) == {HISTORY}

        ran = tmp_path / "ran"
        puppets.without_hooks = frozenset({puppets.places[7]})
        wait_for(lambda: stock_workers(LiveCluster.of_session(session).topologies()[0]))
        adopting = ("adopt", "wc", "--run", f"touch {ran}; sleep 600", *where)
        code, said = interrupted(lambda _: ran.exists(), *adopting)
        assert (code, said) == (
            130,
            f"{ENDED}; no other worker is restarted: the same command continues",
        )
        assert differ(before, held(session)) == {HISTORY}
