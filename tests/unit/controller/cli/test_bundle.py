"""A bundle has what a report needs, also where parts are missing, and no secret."""

import json
import os
import subprocess
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from controller.cli import bundle
from controller.cli.main import app
from controller.config import build
from controller.core.receivers import Receiver
from controller.errors import CommandError


@contextmanager
def away(conf: Path) -> Iterator[Any]:
    raise CommandError("ZooKeeper has not answered")
    yield


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(bundle, "connected", away)
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.delenv("STORM_HOME", raising=False)
    journal, logs = tmp_path / "journal", tmp_path / "logs"
    worker = logs / "workers-artifacts/wc-1/6700"
    for folder in (journal, worker):
        folder.mkdir(parents=True)
    (journal / "new").write_text("{}")
    (journal / "old").write_text("{}")
    os.utime(journal / "old", (0, time.time() - 7200))
    (worker / "worker.log").write_text(
        "password=hunter2\nnstorm: hooks active\n"
        "Launching worker with command: 'java' '-javaagent:/opt/nstorm.jar' '-DkeyPass=hunter2'\n"
        "Worker has topology config conf {nstorm.x=1, my.password hunter2}\n"
        "conf={nstorm.x=1, my.password hunter2}\n"
    )
    found = tmp_path / "storm.yaml"
    found.write_text(
        f"nstorm.journal.dir: {journal}\nstorm.log.dir: {logs}\n"
        "storm.zookeeper.servers: [zk1]\nstorm.zookeeper.topology.auth.payload: hunter2\n"
    )
    return found


def test_it_has_what_was_found_and_why_the_rest_is_missing(conf: Path, tmp_path: Path) -> None:
    out = tmp_path / "one.tar.gz"
    words = ["bundle", "--conf", str(conf), "--out", str(out)]
    done = json.loads(CliRunner().invoke(app, [*words, "-o", "json"]).stdout)
    with tarfile.open(out) as packed:
        content = {
            name.removeprefix("nstorm-bundle/"): one.read()
            for name in packed.getnames()
            if (one := packed.extractfile(name)) is not None
        }
    assert set(done["parts"]) == set(content)
    assert content["status.json.missing.txt"] == b"ZooKeeper has not answered"
    assert content["storm/wc-1-6700-worker.log"] == b"nstorm: hooks active\n"
    assert "nstorm" in json.loads(content["versions.json"])["packages"]
    assert {name for name in content if name.startswith("journal")} == {"journal/new"}
    assert not any(b"hunter2" in one for one in content.values())
    assert json.loads(content["settings.json"])["storm.zookeeper.servers"] == ["zk1"]
    assert out.stat().st_mode & 0o077 == 0
    again = CliRunner().invoke(app, words)
    assert str(again.exception) == f"{out}: cannot be written: File exists"


def test_the_rest_of_a_line_that_was_cut_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "worker.log"
    log.write_bytes(b"with conf {my.password hunter2, nstorm.x 1}\nnstorm: hooks active\n")
    monkeypatch.setattr(bundle, "MOST_LOG_BYTES", 50)
    assert bundle.named_in(log) == b"nstorm: hooks active\n"


def test_a_part_that_cannot_be_read_is_named_and_the_others_are_there(
    conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_: Any, **__: Any) -> Any:
        raise subprocess.TimeoutExpired("journalctl", 60)

    monkeypatch.setattr("shutil.which", lambda name: name)
    monkeypatch.setattr(subprocess, "run", late)
    closed = Path.read_bytes

    def read(path: Path) -> bytes:
        if path.parent.name == "journal":
            raise PermissionError(13, "Permission denied", str(path))
        return closed(path)

    monkeypatch.setattr(Path, "read_bytes", read)
    out = tmp_path / "two.tar.gz"
    words = ["bundle", "--conf", str(conf), "--out", str(out), "-o", "json"]
    parts = json.loads(CliRunner().invoke(app, words).stdout)["parts"]
    assert "journal/new.missing.txt" in parts and "storm/wc-1-6700-worker.log" in parts
    assert "logs/nstorm-agent.log.missing.txt" in parts


def test_a_bundle_that_cannot_be_written_leaves_no_half_of_it(
    conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "addfile", full)
    out = tmp_path / "three.tar.gz"
    done = CliRunner().invoke(app, ["bundle", "--conf", str(conf), "--out", str(out)])
    assert str(done.exception) == f"{out}: cannot be written: No space left on device"
    assert not out.exists()


@pytest.mark.parametrize("ended", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_a_bundle_that_is_broken_off_leaves_no_half_of_it(
    ended: type[BaseException], conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> dict[str, Any]:
        raise ended

    monkeypatch.setattr(bundle, "settings", lambda document: broken())
    out = tmp_path / "one.tar.gz"
    with pytest.raises(ended):
        bundle.bundle(conf, out)
    assert not out.exists()


def test_a_key_of_nstorm_that_may_hold_a_secret_is_only_named() -> None:
    document = {"nstorm.zookeeper.password": "hunter2", "nstorm.mode": "auto", "other": 1}
    found = {"nstorm.zookeeper.password": "(set)", "nstorm.mode": "auto"}
    assert bundle.settings(document) == found


def test_no_argument_of_a_command_for_notices_is_in_a_bundle() -> None:
    secret = ["msmtp", "--passwordeval=echo hunter2", "ops@x"]
    hook = {"webhook": "/etc/nstorm/hook", "kinds": ["move"]}
    document = {"nstorm.notice": [{"mail": secret, "kinds": ["guard"]}, hook]}
    found = [{"mail": ["msmtp", "(set)", "(set)"], "kinds": ["guard"]}, hook]
    assert bundle.settings(document) == {"nstorm.notice": found}
    for wrong in ({"mail": secret}, secret, [secret], [{"mail": " ".join(secret)}]):
        assert "hunter2" not in str(bundle.settings({"nstorm.notice": wrong}))
    assert Receiver(mail=tuple(secret)).name == "msmtp"  # a log has that
    read = build({"notice": [{"mail": secret}]})
    assert read.receivers[0].mail == tuple(secret)
    of_journal = read.keys_in_force
    assert of_journal["notice"] == [{"mail": ["msmtp", "(set)", "(set)"]}]
    assert build(of_journal).keys_in_force == of_journal
    plain = [{"mail": ["sendmail"]}]
    assert build({"notice": plain}).keys_in_force["notice"] == plain
