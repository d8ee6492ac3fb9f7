"""What the owner of a lab left behind when it was killed is ended, by one process of several."""

import os
import threading
from pathlib import Path

import pytest

from deploy.lab import LabError, cluster, daemons
from deploy.lab.cluster import sweep, unswept
from deploy.lab.daemons import clear, own
from deploy.lab.network import token

DEAD = f"{os.getpid()} 1"


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cluster, "RUNS_DIR", tmp_path)
    return tmp_path


def lab(runs: Path, name: str, owner: str = DEAD) -> Path:
    """Write what is in the folder of a lab."""
    for daemon in ("nimbus", "127.0.0.2"):
        (runs / name / daemon / "local").mkdir(parents=True)
        (runs / name / daemon / "conf").mkdir()
        (runs / name / daemon / "conf/storm.yaml").touch()
    for folder in ("zookeeper/data", "tmp", "ledgers/local"):
        (runs / name / folder).mkdir(parents=True)
    (runs / name / "lab.json").touch()
    (runs / name / "owner").write_text(owner)
    return runs / name


def state(run_dir: Path) -> list[str]:
    """List what a lab has that is up."""
    parts = ("lab.json", "tmp", "zookeeper/data", "nimbus/local", "127.0.0.2/local")
    return [part for part in parts if (run_dir / part).exists()]


def test_a_lab_that_has_lost_its_owner_is_ended_and_its_logs_stay(runs: Path) -> None:
    run_dir = lab(runs, "dead")
    assert sweep() == ["dead"]
    assert state(run_dir) == []
    assert (run_dir / "ledgers/local").is_dir()
    assert (run_dir / "nimbus/conf/storm.yaml").exists()
    assert sweep() == []


def test_a_lab_that_has_its_owner_stays(runs: Path) -> None:
    run_dir = lab(runs, "alive")
    own(run_dir)
    assert sweep() == []
    assert len(state(run_dir)) == 5
    assert not (run_dir / "owner.partial").exists()


@pytest.mark.parametrize("steps", [0, 1])
def test_a_lab_is_swept_wherever_its_end_was_cut_off(
    runs: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    run_dir, unlink = lab(runs, "cut"), Path.unlink
    done: list[Path] = []

    def cut(path: Path, missing_ok: bool = False) -> None:
        if len(done) == steps:
            raise KeyboardInterrupt
        done.append(path)
        unlink(path, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", cut)
        with pytest.raises(KeyboardInterrupt):
            clear(run_dir)
    assert (run_dir / "owner").exists()
    assert sweep() == ["cut"]
    assert state(run_dir) == []


def test_an_owner_that_is_gone_or_empty_is_passed_over(runs: Path) -> None:
    lab(runs, "empty", owner="")
    assert sweep() == []
    assert not cluster._is_stale(runs / "gone" / "owner")


def test_one_that_cannot_be_ended_is_said_and_does_not_keep_the_others(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = token(lab(runs, "b"))

    def remove(found: str) -> None:
        if found == stuck:
            raise LabError("refused")

    monkeypatch.setattr(daemons, "remove", remove)
    others = [lab(runs, "a"), lab(runs, "c")]
    with pytest.raises(LabError, match="/b outlives its owner and cannot be ended: refused"):
        sweep()
    assert [state(run_dir) for run_dir in others] == [[], []]


def test_one_process_sweeps_at_a_time_and_looks_then(runs: Path) -> None:
    run_dir, swept = lab(runs, "lab"), []
    with unswept():
        thread = threading.Thread(target=lambda: swept.extend(sweep()))
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        assert len(state(run_dir)) == 5
        own(run_dir)
    thread.join()
    assert swept == []
    assert len(state(run_dir)) == 5
