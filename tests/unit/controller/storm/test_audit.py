"""The audit trail: what is written down, and that the file stays small."""

import json
import os
import threading
from pathlib import Path
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from controller.storm import audit
from controller.storm.audit import AUDIT, WAITING_LINES, Audit
from controller.storm.command_record import Command
from controller.storm.controls import CONTROLS
from controller.storm.mirror import Mirror
from controller.storm.move_record import MoveRecord
from kvstore.ensemble import Grant
from kvstore.zookeeper import Session, Stored


class Nodes:
    """A mirror of what operators write, and the session that knows who may."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.may: tuple[Grant, ...] = (Grant("sasl", "alice", "rw"), Grant("sasl", "bob", "r"))

    def children(self, path: str) -> list[str]:
        return []

    def nodes(self, paths: list[str]) -> list[Stored | None]:
        found = (self.held.get(path) for path in paths)
        return [None if data is None else Stored(data, 0, 0) for data in found]

    def grants(self, path: str) -> tuple[Grant, ...]:
        return self.may


def trail(folder: Path, nodes: Nodes) -> Audit:
    return Audit(cast(Session, nodes), cast(Mirror, nodes), folder)


def rows(folder: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (folder / AUDIT).read_text("utf-8").splitlines()]
    assert all(row.pop("time").endswith("Z") for row in found)
    return found


def test_a_refusal_and_a_move_have_who_asked_and_what_came_of_it(tmp_path: Path) -> None:
    writes = trail(tmp_path, Nodes())
    asked = Command("wc-1", "7-7", "b:1", by="operator x at y", known_as="sasl:alice")
    refused = Command("wc-1", "8-8", "b:1", "REFUSED", "it stays", known_as="unproved")
    begun = Command("wc-1", "7-7", "b:1", "PREPARE", move="m1", known_as="sasl:alice")
    ended = MoveRecord("wc-1", "m1", "7-7", "a:1", "b:1", "MOVED", asked_by=asked.asked_by)
    of_policy = MoveRecord("wc-1", "m2", "9-9", "a:1", "b:1", "MOVED", asked_by="policy gather")
    looks = Command("wc-1", verb="plan", state="DONE")
    writes.look({"c-1": asked, "c-3": looks}, [])
    for _ in range(2):  # each is written once
        writes.look({"c-1": begun, "c-2": refused, "c-3": looks}, [ended, of_policy])
    writes.close()
    first, second, third = rows(tmp_path)
    assert (first["who"], first["outcome"], first["of"]) == ("sasl:alice", "PREPARE", "m1")
    assert (second["who"], second["outcome"], second["reason"]) == (
        "unproved",
        "REFUSED",
        "it stays",
    )
    assert third == {
        "who": "sasl:alice (unproved: operator x at y)",
        "what": "end of a move",
        "topology": "wc-1",
        "of": "m1",
        "executor": "7-7",
        "before": "a:1",
        "after": "b:1",
        "outcome": "MOVED",
    }
    assert (tmp_path / AUDIT).stat().st_mode & 0o777 == 0o640


def test_a_changed_node_has_before_and_after_and_who_may_write_it(tmp_path: Path) -> None:
    nodes = Nodes()
    nodes.held[CONTROLS] = b'{"modes":{"":"auto"},"freeze":null}'
    writes = trail(tmp_path, nodes)
    writes.look({}, [])
    nodes.held[CONTROLS] = b'{"modes":{"":"advise"},"freeze":null}'
    writes.look({}, [])
    nodes.may = (Grant("world", "anyone", "crwda"),)
    nodes.held[CONTROLS] = b"{"
    writes.look({}, [])
    writes.close()
    first, second = rows(tmp_path)
    assert first == {
        "who": "sasl:alice",
        "what": CONTROLS,
        "before": {"modes": {"": "auto"}},
        "after": {"modes": {"": "advise"}},
    }
    assert (second["who"], second["after"]) == ("unproved", "{")


def test_no_text_is_longer_than_anybody_reads_nor_a_control_character(tmp_path: Path) -> None:
    writes = trail(tmp_path, Nodes())
    long = "done \u009b2J\u202e \x7f\n" + "x" * 15_000_000
    moves = (("7-7", "a:1", long),)
    writes.look({"c-1": Command(long, state="REFUSED", reason=long, by=long, moves=moves)}, [])
    writes.close()
    content = (tmp_path / AUDIT).read_bytes()
    assert len(content) < 10_000 and content.isascii()
    assert {byte for byte in content if not 32 <= byte < 127} == {ord("\n")}
    assert rows(tmp_path)[0]["reason"] == f"{long[:2000]}…"


@pytest.mark.parametrize("turns", [1, WAITING_LINES + 5])
def test_the_end_waits_for_no_disk_that_hangs(
    turns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "CLOSE_S", 0.1, raising=False)
    os.mkfifo(tmp_path / AUDIT)  # whoever opens it waits for a reader
    writes, ended = trail(tmp_path, Nodes()), threading.Event()
    asked = Command("wc", state="REFUSED")
    writes.look({f"c-{turn}": asked for turn in range(turns)}, [])

    def close() -> None:
        writes.close()
        ended.set()

    threading.Thread(target=close, daemon=True).start()
    try:
        assert ended.wait(20.0)
    finally:  # a reader comes, and what is left goes into a file
        pipe = (tmp_path / AUDIT).rename(tmp_path / "pipe")
        os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
        monkeypatch.undo()
        writes.close()
    assert writes._thread is not None and writes._thread.daemon, "else the process waits for it"


def test_a_disk_that_refuses_is_logged_once(tmp_path: Path) -> None:
    (tmp_path / AUDIT).mkdir()
    writes = trail(tmp_path, Nodes())
    with capture_logs() as logs:
        writes.look({f"c-{turn}": Command("wc", state="REFUSED") for turn in range(3)}, [])
        writes.close()
    assert [line["event"] for line in logs] == ["audit_not_written"]


def test_the_trail_is_bounded(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(audit, "FILE_BYTES", 4000)
    writes = trail(tmp_path, Nodes())
    for turn in range(200):
        writes.look({f"c-{turn}": Command("wc", state="REFUSED", reason="é" * turn)}, [])
    writes.close()
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["audit.ndjson", "audit.old.ndjson"]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 8000
    assert rows(tmp_path)[-1]["reason"] == "é" * 199
