"""A run against a real ZooKeeper is recorded, and its replay gives the same decisions."""

import threading
import time
from pathlib import Path

import pytest

from controller.config import build
from controller.core.decision import Outcome
from controller.journal.reader import Log
from controller.replay.playback import replay
from controller.replay.recording import spans
from controller.replay.rerun import Rerun
from controller.storm.live import LiveController
from controller.storm.status import read
from kvstore.zookeeper import Session
from tests.bench.replay.score import through
from tests.integration.test_controller_live import Puppets, new_root, wait_for
from tests.recorded_world import plain

pytestmark = pytest.mark.zookeeper


@pytest.mark.parametrize("policy", ["gather"])
def test_a_live_run_is_decided_again_byte_for_byte(
    zookeeper: str, tmp_path: Path, policy: str
) -> None:
    storm, journal = new_root(zookeeper), str(tmp_path / "journal")
    config = build({"mode": "auto", "policy": policy, "cycle.secs": 0.5, "journal.dir": journal})
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
            wait_for(lambda: len((read(session) or {}).get("ended_moves", ())) >= 2, 60.0)
            time.sleep(1.0)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    log = Log.open([tmp_path / "journal"])
    replayed = list(replay(log, 0))
    assert [one.identical for one in replayed] == [True] * len(replayed)
    assert log.said() == []
    outcomes = [report.outcome for one in replayed for report in one.report.topologies]
    assert outcomes.count(Outcome.MOVED) >= 2
    (path,) = (tmp_path / "journal").iterdir()
    records = map(plain, path.read_bytes().splitlines(keepends=True))
    ended = [move for record in records for move in record.get("ended", ())]
    assert [move["outcome"] for move in ended[:2]] == ["MOVED", "MOVED"]
    found = list(spans(log))
    moves = [(m.executor, m.target) for m in through(Rerun(None), found).moves]
    assert moves[:1] == [("2-2", "a:6700")]
    assert (
        through(Rerun(config), found).inter_node_frac
        <= through(Rerun(None), found).inter_node_frac + 0.1
    )
