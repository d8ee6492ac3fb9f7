"""Keys of storm.yaml: defaults, kinds, and the refusal of what is unknown."""

from pathlib import Path
from typing import Any

import pytest

from controller.config import (
    Config,
    Mode,
    from_assignments,
    from_storm_yaml,
    read_storm_yaml,
)
from controller.errors import ConfigError


def test_defaults() -> None:
    config, storm = from_storm_yaml({})
    assert config == Config()
    assert (config.mode, config.policy, config.cycle_s) == (Mode.ADVISE, "safe", 5.0)
    assert (config.limits.high_frac, config.limits.low_frac) == (0.85, 0.6)
    assert (config.limits.gain_frac, config.limits.gain_tps) == (0.002, None)
    assert (config.limits.weight_node, config.limits.weight_worker) == (0.8, 0.2)
    assert (config.max_moves, config.cooldown_s, config.ewma) == (1, 105.0, 0.3)
    assert config.lazy_kill_ms == 2000
    assert (storm.hosts, storm.root) == ("localhost:2181", "/storm")


def test_keys_are_read_beside_storms_own(tmp_path: Path) -> None:
    path = tmp_path / "storm.yaml"
    path.write_text(
        "storm.zookeeper.servers: [zk1, zk2]\n"
        "storm.zookeeper.port: 2199\n"
        "storm.zookeeper.root: /other\n"
        "topology.workers: 3\n"
        "nstorm.mode: auto\n"
        "nstorm.cycle.secs: 2\n"
        "nstorm.asc.threshold.tps: 12\n"
        "nstorm.worker.cpu.capacity: 0.5\n"
        "nstorm.store.dir: /var/nstorm\n"
        "nstorm.excluded.components: [split]\n"
    )
    config, storm = from_storm_yaml(read_storm_yaml(path))
    assert (config.mode, config.cycle_s, config.limits.gain_tps) == (Mode.AUTO, 2.0, 12.0)
    assert config.worker_capacity_cores == 0.5
    assert config.excluded.components == {"split"}
    assert (storm.hosts, storm.root) == ("zk1:2199,zk2:2199", "/other")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"nstorm.cylce.secs": 5}, "nstorm.cylce.secs: unknown key, did you mean nstorm.cycle.sec"),
        ({"nstorm.zzz": 5}, "nstorm.zzz: unknown key"),
        ({"nstorm.mode": "approve"}, "nstorm.mode: must be one of observe, advise, auto"),
        ({"nstorm.load.high": 1.5}, "nstorm.load.high: must be a number of at least 0.01 and at m"),
        ({"nstorm.load.high": float("nan")}, "nstorm.load.high: must be a number"),
        ({"nstorm.max.moves.per.cycle": 1.5}, "nstorm.max.moves.per.cycle: must be a whole number"),
        ({"nstorm.max.moves.per.cycle": 0}, "nstorm.max.moves.per.cycle: must be a whole number"),
        ({"nstorm.cycle.secs": True}, "nstorm.cycle.secs: must be a number"),
        ({"nstorm.excluded.hosts": "a"}, "nstorm.excluded.hosts: must be a list of names"),
        ({"nstorm.vetoes": True}, "nstorm.vetoes: only for"),
        ({"storm.zookeeper.servers": "a"}, "storm.zookeeper.servers: must be a list"),
    ],
)
def test_refusals_name_the_key(document: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        from_storm_yaml(document)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("text", ["[1, 2]", "a: [", "1: 2"])
def test_a_file_that_is_no_configuration(tmp_path: Path, text: str) -> None:
    path = tmp_path / "storm.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        read_storm_yaml(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_assignments_of_the_command_line() -> None:
    config = from_assignments(["nstorm.load.high=0.7", "vetoes=on", "excluded.hosts=[a, b]"])
    assert config.limits.high_frac == 0.7
    assert config.vetoes
    assert config.excluded.hosts == {"a", "b"}
    with pytest.raises(ConfigError, match="not YAML"):
        from_assignments(["excluded.hosts=[a"])
