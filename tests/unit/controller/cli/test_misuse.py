"""What people type by mistake: one sentence that helps, exit code 2, and nothing is done."""

import logging
from pathlib import Path

import pytest

from controller.cli import asking
from controller.cli.main import _TABLE
from kvstore.zookeeper import Session
from tests.unit.controller.cli.test_operate import never
from tests.unit.controller.conftest import Nstorm

FILES = {
    "ok.yaml": b"storm.zookeeper.servers: [zk1]\nstorm.local.dir: /nowhere\n",
    "empty.yaml": b"",
    "list.yaml": b"[1, 2]\n",
    "number.yaml": b"7: x\n",
    "binary.yaml": b"\xff\xfe\x00",
    "broken.yaml": b"a: [1\nb: 2\n",
    "deep.yaml": b"a: " + b"[" * 5000,
    "typo.yaml": b"nstorm.mod: auto\n",
    "escape.yaml": b'nstorm.mode: "\\x1b[2Jauto"\n',
    "server.yaml": b"storm.zookeeper.servers: zk1\n",
    "port.yaml": b"storm.zookeeper.port: 99999999\n",
}
TIME = "is no time such as 2026-12-01T06:00"
LASTING = "is no time such as 90s, 30m, 2h or 1d"
AWAY = "ZooKeeper has not answered within 0 s at zk1:2181. Check that it runs"
NO_CLUSTER = "holds no keys, so it names no cluster: set storm.zookeeper.servers"
AS_GIVEN = "must be KEY=VALUE, with a dot and no white space in KEY; a file is named with --conf"
SLOT = "is not <supervisor-id>:<port>"
RANGE = "is not a task range such as 7-7"
# What is typed, and what stands in the last line. A verb that needs a
# storm.yaml gets ok.yaml where none is named.
MISUSES = [
    ("nosuch", "No such command 'nosuch'"),
    ("--nosuch", "No such option: --nosuch"),
    ("status --conf nosuch.yaml", "nosuch.yaml: No such file or directory"),
    ("status --conf .", ".: Is a directory"),
    ("status --conf empty.yaml", NO_CLUSTER),
    ("pause --conf empty.yaml", NO_CLUSTER),
    ("status --conf list.yaml", "must hold keys with values"),
    ("status --conf number.yaml", "must hold keys with values"),
    ("status --conf binary.yaml", "binary.yaml: byte 1 is no UTF-8"),
    ("status --conf broken.yaml", "line 2: expected ',' or ']'"),
    ("status --conf deep.yaml", "deep.yaml: its lists and keys are nested too deep"),
    ("status --conf typo.yaml", "nstorm.mod: unknown key, did you mean nstorm.mode?"),
    ("pause --conf typo.yaml", "nstorm.mod: unknown key, did you mean nstorm.mode?"),
    ("status --conf server.yaml", "must be a list of hosts, is 'zk1'"),
    ("status --conf port.yaml", "must be 1 to 65535, is 99999999"),
    ("mode auto --conf escape.yaml", r"must be one of observe, advise, approve, auto, is '\x1b[2J"),
    ("status", AWAY),
    (
        'status -c storm.zookeeper.servers=["zk2"] -c storm.zookeeper.root=/a=b',
        AWAY.replace("zk1", "zk2"),
    ),
    ("status --conf empty.yaml -c storm.zookeeper.servers=zk2", "a list of hosts, is 'zk2'"),
    ("status -c nstorm.mode", "-c nstorm.mode: must be KEY=VALUE"),
    ("off --reason x -conf=/prod/storm.yaml", f"-c onf=/prod/storm.yaml: {AS_GIVEN}"),
    ("status -conf prod.yaml", f"-c onf: {AS_GIVEN}"),
    ("status -c =x", f"-c =x: {AS_GIVEN}"),
    ("status -c nstorm.mode\t=auto", f"-c nstorm.mode\t=auto: {AS_GIVEN}"),
    ("pause -c nstorm.mod=auto", "ok.yaml with -c: nstorm.mod: unknown key"),
    ("controller -c nstorm.mode=turbo", "ok.yaml with -c: nstorm.mode: must be one of"),
    ("agent -c nstorm.load.secs=[1", "ok.yaml with -c: nstorm.load.secs: must be"),
    ("pause", AWAY),
    ("approve \x1b[2J", AWAY),
    ("undo 99999999999999999999999", AWAY),
    ("status -o xml", "'xml' is not one of 'table', 'json'"),
    ("mode", "Missing argument '[TOPOLOGY] MODE'"),
    ("mode turbo", "MODE is one of observe, advise, approve, auto, default"),
    ("mode a b c", "type [TOPOLOGY] MODE"),
    ("move wc", "Missing argument 'executor'"),
    ("move wc 7 s:1", f"executor '7' {RANGE}"),
    ("move wc 9-7 s:1", "executor [9,7] ends before it starts"),
    ("move wc 7-7 s", f"slot 's' {SLOT}"),
    ("move wc 7-7 s:0", "slot s:0 needs a supervisor and a port"),
    ("move wc \x1b[2J s:1", rf"executor '\x1b[2J' {RANGE}"),
    ("move wc 7-7 \u202e", rf"slot '\u202e' {SLOT}"),
    ("move wc " + "7" * 60_000 + " s:1", f"executor '{'7' * 79}"),
    ("undo 0", "0 is not in the range x>=1"),
    ("undo x", "'x' is not a valid int range"),
    ("pause --for soon", f"--for: 'soon' {LASTING}"),
    ("pause --for 99999999d", LASTING),
    ("freeze", "Missing option '--until'"),
    ("freeze --until tomorrow", TIME),
    ("freeze --until 2020-01-01", "2020-01-01 is past"),
    ("drain", "Missing argument 'host'"),
    ("drain h --within 5", f"--within: '5' {LASTING}"),
    ("off --within soon", LASTING),
    ("explain 7-7 notatime", "is neither the number of a cycle nor a time"),
    ("explain 4 --journal nosuch", "--journal nosuch: there is no such folder"),
    ("history --from tomorrow", TIME),
    ("history --from 2026", TIME),
    ("history --to nan", TIME),
    ("freeze --until nan", TIME),
    ("freeze --until inf", TIME),
    ("show", "Missing argument 'ID'"),
    ("top --every 0", "0.0 is not in the range x>=0.1"),
    ("roll", "Missing option '--run'"),
    ("adopt", "Missing option '--run'"),
    ("page --listen 8089", "8089 is no ADDRESS:PORT such as 127.0.0.1:8089"),
    ("page --token-file nosuch", "nosuch cannot be read: No such file or directory"),
    ("decide nosuch.json", "nosuch.json: No such file or directory"),
    ("decide binary.yaml", "not even text in UTF-8"),
    ("decide ok.yaml --set load.high", "'load.high': must be key=value"),
    ("assess nosuch", "nosuch: no such file or folder"),
    ("ingest nosuch.csv --out new", "nosuch.csv: No such file or directory"),
    ("ingest ok.yaml --out new", "ok.yaml: neither a table (.csv, .parquet, .json) nor a log"),
    ("ingest " + "x" * 60_000 + " --out new", "File name too long"),
    ("replay nosuch", "nosuch: no such file or folder"),
    ("report nosuch", "nosuch: no such file or folder"),
    ("report .", ".: no journal segment (*.jsonl, *.jsonl.gz) is there"),
    ("tune nosuch", "nosuch: no such file or folder"),
    ("tune .", ".: no journal segment (*.jsonl, *.jsonl.gz) is there"),
    ("check-topology nosuch.jar", "nosuch.jar: there is no such file"),
    ("check-storm nosuch", "nosuch: there is no lib/ in it"),
    ("pipeline ticks nosuch", "nosuch: no such file or folder"),
    ("pipeline ticks .", ".: no journal segment (*.jsonl, *.jsonl.gz) is there"),
    ("pipeline turbo nosuch", "'turbo' is not one of 'raw', 'ticks', 'episodes'"),
    ("install --storm-home nosuch", "there is no such file, so nosuch is no folder of a Storm"),
    ("install --storm-home nosuch --check --undo", "not allowed with argument --check"),
    ("jar nosuch", "unrecognized arguments: nosuch"),
    ("agent --conf nosuch.yaml", "nosuch.yaml: No such file or directory"),
    ("controller --conf nosuch.yaml", "nosuch.yaml: No such file or directory"),
    ("controller --conf ok.yaml --mode turbo", "invalid choice: 'turbo'"),
    ("doctor --conf nosuch.yaml", "nosuch.yaml: No such file or directory"),
    ("doctor", AWAY),
    ("bundle --conf nosuch.yaml", "nosuch.yaml: No such file or directory"),
    ("resume", AWAY),
    ("on", AWAY),
    ("undrain h", AWAY),
    *(
        (f"{words} " + "x" * 60_000, "File name too long")
        for words in (
            "status --conf",
            "assess",
            "replay",
            "report",
            "tune",
            "pipeline ticks",
            "check-storm",
        )
    ),
    ("assess \x1b[2J", r"\x1b[2J: no such file or folder"),
    ("install --storm-home \x1b[2J", r"so \x1b[2J is no folder of a Storm"),
]
FOR_FILES = {
    "install",
    "jar",
    "pipeline",
    "decide",
    "assess",
    "ingest",
    "replay",
    "report",
    "tune",
    "check-topology",
    "check-storm",
    "nosuch",
}


@pytest.mark.parametrize(("typed", "said"), MISUSES, ids=[t[:40] for t, _ in MISUSES])
def test_a_misuse_is_refused_in_one_sentence(
    typed: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    nstorm: Nstorm,
) -> None:
    words = typed.split(" ")
    if "--conf" not in words and words[0] not in FOR_FILES | {"--nosuch"}:
        words += ["--conf", "ok.yaml"]
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Session, "connect", never)
    monkeypatch.setattr(asking, "NO_ANSWER_S", 0.05)
    for module in ("controller.cli.running", "agent.command", "controller.cli.daemons"):
        monkeypatch.setattr(f"{module}.log_to_stderr", lambda *_: None)
    monkeypatch.setattr("kvstore.logs.log.level", logging.CRITICAL)
    shown = nstorm(*words)
    assert (shown.code, shown.out) == (2, "")
    assert said in shown.err.splitlines()[-1]
    assert len(shown.err) < 600
    assert "\x1b" not in shown.err
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(FILES)


def test_each_verb_is_misused() -> None:
    typed = {words.partition(" ")[0] for words, _ in MISUSES}
    assert set(_TABLE) <= typed | {"cancel", "plan", "reject"}, "those three: test_misuse_live.py"
