"""The files by which a node is switched off."""

import errno
import os
from pathlib import Path

import pytest

from agent.switch import Switch
from kvstore.errors import StoreError
from kvstore.foreign import replace_file
from migration.wire import OFF_BY_CLUSTER, OFF_FILE


def test_what_zookeeper_holds_reaches_the_jvms_as_a_file_and_goes_with_it(tmp_path: Path) -> None:
    switch, file = Switch(tmp_path / "store"), tmp_path / "store" / OFF_BY_CLUSTER
    switch.follow(b"")
    assert switch.reason() is None
    for _ in range(2):
        switch.follow(b"a \x1b[2Jfault\nand more")
        assert file.read_text() == switch.reason() == "a \\x1b[2Jfault"
    switch.follow(b"")
    assert not file.exists()
    assert switch.reason() is None


def test_a_full_disk_has_room_for_a_file_without_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: Path, data: bytes) -> None:
        if data:
            raise OSError(errno.ENOSPC, "No space left on device", file)
        replace_file(file, data)

    switch = Switch(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("agent.switch.replace_file", full)
        switch.follow(b"a fault")
    assert switch.reason() == "no reason given"
    switch.follow(b"a fault")
    assert switch.reason() == "a fault"


def test_a_folder_that_takes_no_file_is_a_fault_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent answers all the same, and the leader takes moves back."""

    def full(file: Path, data: bytes) -> None:
        raise OSError(errno.EROFS, "Read-only file system", file)

    monkeypatch.setattr("agent.switch.replace_file", full)
    with pytest.raises(StoreError, match="Read-only"):
        Switch(tmp_path).follow(b"a fault")


def test_a_switch_follows_no_link_and_waits_for_no_pipe(tmp_path: Path) -> None:
    store, secret = tmp_path / "store", tmp_path / "secret"
    store.mkdir()
    secret.write_text("a password")
    switch = Switch(store)
    (store / OFF_FILE).symlink_to(secret)
    assert switch.reason() == "no reason given"
    (store / OFF_FILE).unlink()
    os.mkfifo(store / OFF_FILE)
    assert switch.reason() == "no reason given"
    (store / OFF_FILE).unlink()
    (store / OFF_BY_CLUSTER).symlink_to(secret)
    (store / f"{OFF_BY_CLUSTER}.part").symlink_to(secret)
    switch.follow(b"a fault")
    assert switch.reason() == "a fault"
    assert secret.read_text() == "a password"


def test_a_file_by_hand_stays_whatever_zookeeper_says(tmp_path: Path) -> None:
    switch = Switch(tmp_path)
    (tmp_path / OFF_FILE).touch()
    assert switch.reason() == "no reason given"
    switch.follow(b"of all")
    switch.follow(b"")
    assert switch.reason() == "no reason given"


def test_a_restarted_agent_takes_its_file_away_once_it_is_on(tmp_path: Path) -> None:
    Switch(tmp_path).follow(b"a fault")
    switch = Switch(tmp_path)
    assert switch.reason() == "a fault"
    switch.follow(b"")
    assert switch.reason() is None


def test_each_change_is_one_line_in_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    switch = Switch(tmp_path)
    for text in (b"", b"a fault", b"a fault", b""):
        switch.follow(text)
        switch.reason()
    said = [line for line in capsys.readouterr().out.splitlines() if "switched_" in line]
    assert ["switched_off" in line for line in said] == [True, False]
