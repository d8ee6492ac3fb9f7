"""The page of settings, the shared list of keys and the controller agree."""

import re
from pathlib import Path

import pytest

from controller.config import VETOES, build, from_assignments, from_storm_yaml
from migration import ConfigError
from migration.storm_yaml import KEYS, read, storm_zookeeper

PAGE = (Path(__file__).parent.parent.parent / "docs" / "settings.md").read_text()
ROW = re.compile(r"^\| ((?:`[a-z.]+`(?:, )?)+) \|", re.MULTILINE)
DOCUMENTED = [key for row in ROW.findall(PAGE) for key in re.findall(r"`([a-z.]+)`", row)]


def test_what_is_known_is_documented() -> None:
    assert sorted(KEYS) == sorted(DOCUMENTED)


def test_the_controller_reads_no_key_that_is_not_known() -> None:
    assert set(build({}).keys) - {VETOES} <= KEYS
    with pytest.raises(ConfigError, match=r"nstorm\.no\.such\.key: unknown key"):
        from_storm_yaml({"nstorm.no.such.key": 1})


@pytest.mark.parametrize("number", ["1e-3", "1E-3", "1.e-3", ".1e-2", "+1.0e-3", "0.001"])
def test_a_number_may_be_written_with_a_power_of_ten(tmp_path: Path, number: str) -> None:
    path = tmp_path / "storm.yaml"
    path.write_text(f"nstorm.asc.threshold: {number}\nothers: [e1, 1e, 0x1e5, 1-1e2]")
    assert from_storm_yaml(read(path))[0].limits.gain_frac == 1e-3
    assert read(path)["others"] == ["e1", "1e", 0x1E5, "1-1e2"]
    assert from_assignments([f"asc.threshold={number}"]).limits.gain_frac == 1e-3


@pytest.mark.parametrize("value", ["2024-99-99", "9" * 5000, "[" * 5000], ids=["a", "b", "c"])
def test_a_value_that_cannot_be_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="the value is not YAML"):
        from_assignments([f"load.high={value}"])


@pytest.mark.parametrize("content", [b"a: [", b"\xff\xfe\xff", b"- a\n", b"1: 2"])
def test_a_file_that_is_no_storm_yaml_is_refused_by_its_path(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "storm.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"storm\.yaml") as error:
        read(path)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.yaml"):
        read(tmp_path / "nothing.yaml")


def test_an_empty_storm_yaml_gives_the_defaults_of_storm(tmp_path: Path) -> None:
    path = tmp_path / "storm.yaml"
    path.write_text("")
    assert storm_zookeeper(read(path)) == "localhost:2181/storm"


@pytest.mark.parametrize(
    ("root", "where"),
    [("/storm", "/storm"), ("/storm//", "/storm"), ("/", ""), ("", ""), ("/a//b/", "/a/b")],
)
def test_storms_root_is_part_of_the_address(root: str, where: str) -> None:
    document = {"storm.zookeeper.servers": ["zk1", "zk2"], "storm.zookeeper.root": root}
    assert storm_zookeeper(document) == f"zk1:2181,zk2:2181{where}"
