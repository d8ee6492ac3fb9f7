"""The journal's keys, and a configuration that gives itself back."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controller.config import JournalBounds, Mode, build, from_storm_yaml
from controller.journal.lines import compact
from migration import ConfigError


def test_a_journal_is_kept_beside_storms_own_state_unless_told_otherwise() -> None:
    config, _ = from_storm_yaml({"storm.local.dir": "/var/storm"})
    assert config.journal == JournalBounds(Path("/var/storm/nstorm-journal"), 14.0, 1024.0)
    given = {
        "storm.local.dir": "/var/storm",
        "nstorm.journal.dir": "/data",
        "nstorm.journal.days": 3,
    }
    config, _ = from_storm_yaml({**given, "nstorm.journal.size.mb": 50})
    assert config.journal == JournalBounds(Path("/data"), 3.0, 50.0)
    config, _ = from_storm_yaml({"storm.local.dir": "storm-local"})
    assert config.journal.dir is None  # it would depend on where the controller was started
    for off in (False, "", "off"):
        config, _ = from_storm_yaml({"storm.local.dir": "/var/storm", "nstorm.journal.dir": off})
        assert config.journal.dir is None
    assert from_storm_yaml({})[0].journal.dir is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("journal.dir", 0),
        ("journal.dir", 3),
        ("journal.dir", True),
        ("journal.days", 0),
        ("journal.size.mb", 0.5),
    ],
)
def test_what_cannot_be_is_refused_by_key(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"nstorm.{key}: must be"):
        build({key: value})


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"asc.threshold.tps": 12, "worker.cpu.capacity": 0.5, "excluded.components": ["b", "a"]},
        {"mode": "auto", "policy": "otd", "journal.dir": "/x", "load.high": 0.7},
    ],
)
def test_the_journals_keys_give_the_configuration_back(given: dict[str, Any]) -> None:
    config = replace(build(given), mode=Mode.OBSERVE)
    compact(config.keys_in_force)
    assert build(config.keys_in_force) == config
