"""One table of settings: its page, its readers and what cannot be read."""

import subprocess
import sys
from pathlib import Path

import pytest

from agent.config import AgentConfig
from controller.config import Config, build, from_storm_yaml, keys_of
from controller.policies.options import NAMES
from kvstore.endpoint import Endpoint
from migration import ConfigError
from migration.settings import (
    DEFAULT,
    SETTINGS,
    TRIED,
    TUNABLE,
    Kind,
    Reader,
    Setting,
    load_s,
    metrics_at,
    values,
)
from migration.storm_yaml import read, storm_zookeeper
from tests.settings_page import page

ROOT = Path(__file__).parents[3]


def test_the_page_is_the_table() -> None:
    assert (ROOT / "docs" / "settings.md").read_text() == page(), (
        "type  python -m tests.settings_page > docs/settings.md"
    )


def test_every_key_stands_once_and_has_a_sentence() -> None:
    assert len(DEFAULT) == len(SETTINGS)
    for row in SETTINGS:
        assert row.sentence[0] in "`ABCDEFGHIJKLMNOPQRSTUVWXYZ0", row.key
        assert row.sentence.endswith("."), row.key
        # The page explains a default that is no value.
        assert row.unset or row.default not in (None, (), "", {}), row.key


@pytest.mark.parametrize("row", SETTINGS, ids=lambda row: row.key)
def test_a_default_is_a_value_that_may_be_given(row: Setting) -> None:
    if row.default is None:
        assert row.key not in values({}, Reader)
        assert row.key not in values({row.key: None}, Reader)
        return
    choices = {"policy": NAMES}
    kept = values({}, Reader, choices)[row.key]
    given = values({row.key: kept}, Reader, choices)[row.key]
    assert given == kept
    assert type(given) is type(kept)


def test_what_is_tried_can_be_and_is_not_only_todays() -> None:
    assert set(TRIED) <= set(TUNABLE)
    for key, tried in TRIED.items():
        assert DEFAULT[key] in tried
        for value in tried:
            build({"load.high": 1.0, key: value})


def test_each_key_has_one_reader_that_takes_it() -> None:
    for row in SETTINGS:
        worded = row.kind in {Kind.CHOICE, Kind.WORDS}
        assert not worded or row.choices or row.key == "policy"
    given: dict[str, object] = {}
    given |= dict.fromkeys(("asc.threshold.tps", "worker.cpu.capacity", "link.capacity.mbit"), 1)
    given |= dict.fromkeys(("max.moves.per.hour", "max.moves.per.host.hour"), 1)
    given |= dict.fromkeys(("aniello.gamma", "metrics.port"), 1)
    given |= dict.fromkeys(("metrics.tls.certificate", "metrics.tls.key", "metrics.token"), "/file")
    given["mode.max"] = "auto"
    own = {row.key for row in SETTINGS if row.reader in (Reader.CONTROLLER, Reader.DECIDE)}
    assert set(build(given).keys) == own
    with pytest.raises(ConfigError, match=r"nstorm\.no\.such\.key: unknown key"):
        from_storm_yaml({"nstorm.no.such.key": 1})


def test_no_default_is_written_twice() -> None:
    assert build({}) == Config()
    assert AgentConfig("zk", Path("/x")).sync_s == values({}, [Reader.AGENT])["agent.sync.secs"]


@pytest.mark.parametrize(
    ("given", "wanted_s"),
    [
        ({}, 4.0),
        ({"cycle.secs": 2}, 1.6),
        ({"cycle.secs": 0.5}, 1.0),
        ({"cycle.secs": 60}, 4.0),
        ({"cycle.secs": 60, "load.secs": 9}, 9.0),
        ({"cycle.secs": 0.01, "load.secs": 2}, 2.0),
        ({"cycle.secs": "often", "load.secs": None}, 4.0),
    ],
)
def test_each_cycle_finds_a_new_report(given: dict[str, object], wanted_s: float) -> None:
    assert load_s(given) == wanted_s


def test_the_table_needs_nothing_that_a_node_lacks() -> None:
    code = "import sys, migration.storm_yaml; print({'numpy', 'typer', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("number", ["1e-3", "1E-3", "1.e-3", ".1e-2", "+1.0e-3", "0.001"])
def test_a_number_may_be_written_with_a_power_of_ten(tmp_path: Path, number: str) -> None:
    path = tmp_path / "storm.yaml"
    path.write_text(f"nstorm.asc.threshold: {number}\nothers: [e1, 1e, 0x1e5, 1-1e2]")
    assert from_storm_yaml(read(path))[0].limits.gain_frac == 1e-3
    assert read(path)["others"] == ["e1", "1e", 0x1E5, "1-1e2"]
    assert build(keys_of([f"asc.threshold={number}"])).limits.gain_frac == 1e-3


@pytest.mark.parametrize("value", ["2024-99-99", "9" * 5000, "[" * 5000], ids=["a", "b", "c"])
def test_a_value_that_cannot_be_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="the value is not YAML"):
        build(keys_of([f"load.high={value}"]))


@pytest.mark.parametrize("content", [b"a: [", b"\xff\xfe\xff", b"- a\n", b"1: 2"])
def test_a_file_that_is_no_storm_yaml_is_refused_by_its_path(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "storm.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"storm\.yaml") as error:
        read(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a: b: c\n", "line 1: mapping values are not allowed here"),
        (
            "a: 1\nb 2\nc: 1\n",
            "line 3: could not find expected ':', while scanning a simple key that begins in line "
            "2",
        ),
        ("a: 1\nb: \x01\n", "line 2: character '\\x01' is not allowed"),
        ("a: 1\nb: !mine 2\n", "line 2: could not determine a constructor for the tag '!mine'"),
    ],
)
def test_a_broken_file_is_refused_by_its_line(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "storm.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError) as error:
        read(path)
    assert str(error.value) == f"{path}: {said}"


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.yaml"):
        read(tmp_path / "nothing.yaml")


def test_keys_of_something_else_leave_the_defaults_of_storm(tmp_path: Path) -> None:
    path = tmp_path / "storm.yaml"
    path.write_text("topology.workers: 4\n")
    assert storm_zookeeper(read(path)) == "localhost:2181/storm"


@pytest.mark.parametrize(
    ("root", "where"),
    [("/storm", "/storm"), ("/storm//", "/storm"), ("/", ""), ("", ""), ("/a//b/", "/a/b")],
)
def test_storms_root_is_part_of_the_address(root: str, where: str) -> None:
    document = {"storm.zookeeper.servers": ["zk1", "zk2"], "storm.zookeeper.root": root}
    assert storm_zookeeper(document) == f"zk1:2181,zk2:2181{where}"


def test_metrics_are_served_where_it_is_said_and_else_nowhere() -> None:
    assert metrics_at({}, "metrics.port") is None
    assert metrics_at({"metrics.port": 9464}, "metrics.port") == Endpoint("localhost", 9464)
    given = {"agent.metrics.port": 9465, "metrics.host": "0.0.0.0"}
    assert metrics_at(given, "agent.metrics.port") == Endpoint("0.0.0.0", 9465)
    assert metrics_at(given, "metrics.port") is None
    with pytest.raises(ConfigError, match=r"nstorm.metrics.host: must be text, is 7"):
        metrics_at({"metrics.port": 9464, "metrics.host": 7}, "metrics.port")


def test_metrics_may_have_tls_and_a_token() -> None:
    given = {
        "agent.metrics.port": 9465,
        "metrics.tls.certificate": "/c.pem",
        "metrics.tls.key": "/k.pem",
        "metrics.token": "/token",
    }
    files = Path("/c.pem"), Path("/k.pem"), Path("/token")
    assert metrics_at(given, "agent.metrics.port") == Endpoint("localhost", 9465, *files)
    del given["metrics.tls.certificate"]
    with pytest.raises(ConfigError, match=r"tls.key: needs nstorm.metrics.tls.certificate"):
        metrics_at(given, "agent.metrics.port")
