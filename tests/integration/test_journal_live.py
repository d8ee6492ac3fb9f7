"""A run against a real ZooKeeper is recorded, and its replay gives the same decisions."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from controller.config import JournalBounds, build
from controller.core.decision import Outcome
from controller.core.times import utc
from controller.journal.reader import Log
from controller.replay.playback import replay
from controller.replay.recording import spans
from controller.replay.rerun import Rerun
from controller.storm.leader_status import read
from controller.storm.live import LiveController
from controller.storm.move_record import HISTORY, known_moves
from kvstore.zookeeper import Session
from migration.model import Plan
from tests.bench.replay.score import through
from tests.integration.test_controller_live import (
    ALONE,
    Puppets,
    leading,
    new_root,
    played,
    typed,
    wait_for,
    write_conf,
)

pytestmark = pytest.mark.zookeeper


@pytest.mark.parametrize("policy", ["gather"])
def test_a_live_run_is_decided_again_byte_for_byte(
    zookeeper: str, tmp_path: Path, policy: str
) -> None:
    storm, journal = new_root(zookeeper), str(tmp_path / "journal")
    given = {"mode": "auto", "policy": policy, "cycle.secs": 0.5, "journal.dir": journal}
    config = build({**given, "worker.cpu.capacity": 1})  # so that more than one move is worth it
    stop = threading.Event()
    with Session(storm) as session, Session(storm) as other:
        assert session.connect()
        assert other.connect()
        puppets = Puppets(other)

        def play() -> None:
            while not stop.wait(0.03):
                puppets.step()

        live = LiveController(session, config, name="one")
        threads = [threading.Thread(target=play), threading.Thread(target=live.run, args=(stop,))]
        for thread in threads:
            thread.start()
        try:
            wait_for(lambda: len(read(session).ended_moves) >= 2, 240.0)  # the first gain waits
            time.sleep(1.0)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    log = Log.open([tmp_path / "journal"])
    replayed = list(replay(log.ticks(0)))
    assert [one.identical for one in replayed] == [True] * len(replayed)
    assert log.skipped_texts() == []
    outcomes = [report.outcome for one in replayed for report in one.report.topologies]
    assert outcomes.count(Outcome.MOVED) >= 2
    assert [move.outcome for move in known_moves(None, [tmp_path / "journal"])[:2]] == ["MOVED"] * 2
    found = list(spans(log))
    moves = [(m.executor, m.target) for m in through(Rerun(None), found).moves]
    assert moves[:1] == [("2-2", "a:6700")]
    assert (
        through(Rerun(config), found).inter_node_frac
        <= through(Rerun(None), found).inter_node_frac + 0.1
    )


def test_any_controllers_journal_tells_who_moved_what_once_zookeeper_has_forgotten(
    zookeeper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.storm.history.MEASURED_AFTER_S", 1.0)
    storm, standby = new_root(zookeeper), tmp_path / "standby"
    conf = write_conf(tmp_path / "storm.yaml", storm)
    with conf.open("a") as file:
        file.write(f"nstorm.journal.dir: {standby}\n")

    def look(*words: str) -> Any:
        return json.loads(typed(conf, *words, "-o", "json"))

    def journal(folder: Path) -> dict[str, Any]:
        return {"journal": JournalBounds(folder), "cooldown_s": 600.0}

    with (
        played(storm) as puppets,
        leading(storm, "one", capacity=ALONE, **journal(tmp_path / "leader")),
        leading(storm, "two", capacity=ALONE, **journal(standby)),
    ):
        folders = (tmp_path / "leader", standby)
        wait_for(
            lambda: all(any(m.after for m in known_moves(None, [at])[:1]) for at in folders), 300.0
        )
        wait_for(lambda: not (puppets.plan() or Plan("", 0, 0, "")).entries)
        (first, *_) = look("history")
    # Only now: a leader at work would write it again.
    with Session(storm) as session:
        assert session.connect()
        session.delete(HISTORY)
    assert known_moves(None, [tmp_path / "leader"])[0] == known_moves(None, [standby])[0]
    (found,) = look("history", "--executor", "2-2", "--from", utc(first["begun_s"]))
    assert {**found, "after": first["after"]} == first
    assert (found["asked_by"], found["outcome"]) == ("policy gather", "MOVED")
    assert 0 <= found["after"]["inter_node_frac"] < found["before"]["inter_node_frac"]
    assert look("show", found["id"])[0]["phase_s"] == found["phase_s"]
    assert look("history", "--to", utc(first["begun_s"])) == []
    (tmp_path / "empty").mkdir()
    assert look("history", "--journal", str(tmp_path / "empty")) == []
    none = ("history", "--journal", str(tmp_path / "none"))
    assert "none: there is no such folder" in typed(conf, *none, code=2)
    assert "--from: 'noon' is no time such as" in typed(conf, "history", "--from", "noon", code=2)
