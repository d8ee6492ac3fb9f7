"""Keys of storm.yaml: defaults, kinds, and the refusal of what is unknown."""

from pathlib import Path
from typing import Any

import pytest

from controller.config import (
    Config,
    Mode,
    build,
    from_storm_yaml,
    keys_of,
)
from migration import ConfigError, storm_yaml


def test_defaults() -> None:
    config, zookeeper = from_storm_yaml({})
    assert config == Config()
    assert (config.mode, config.policy, config.cycle_s) == (Mode.ADVISE, "gather", 5.0)
    assert (config.limits.high_frac, config.limits.low_frac) == (0.85, 0.6)
    assert (config.limits.gain_frac, config.limits.gain_tps) == (0.002, None)
    assert (config.limits.weight_node, config.limits.weight_worker) == (0.8, 0.2)
    assert (config.max_moves, config.cooldown_s, config.ewma) == (1, 105.0, 0.3)
    assert config.lazy_kill_ms == 2000
    assert zookeeper.hosts == "localhost:2181/storm"


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
    config, zookeeper = from_storm_yaml(storm_yaml.read(path))
    assert (config.mode, config.cycle_s, config.limits.gain_tps) == (Mode.AUTO, 2.0, 12.0)
    assert config.capacity.fixed_cores == 0.5
    assert config.excluded.components == {"split"}
    assert zookeeper.hosts == "zk1:2199,zk2:2199/other"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"nstorm.cylce.secs": 5}, "nstorm.cylce.secs: unknown key, did you mean nstorm.cycle.sec"),
        ({"nstorm.zzz": 5}, "nstorm.zzz: unknown key"),
        ({"nstorm.mode": "approved"}, "nstorm.mode: must be one of observe, advise, approve, auto"),
        ({"nstorm.load.high": 1.5}, "nstorm.load.high: must be a number of at least 0.01 and at m"),
        ({"nstorm.load.high": float("nan")}, "nstorm.load.high: must be a number"),
        ({"nstorm.max.moves.per.cycle": 1.5}, "nstorm.max.moves.per.cycle: must be a whole number"),
        ({"nstorm.max.moves.per.cycle": 0}, "nstorm.max.moves.per.cycle: must be a whole number"),
        ({"nstorm.cycle.secs": True}, "nstorm.cycle.secs: must be a number"),
        ({"nstorm.excluded.hosts": "a"}, "nstorm.excluded.hosts: must be a list of names"),
        ({"nstorm.vetoes": True}, "nstorm.vetoes: only for"),
        ({"nstorm.policy": "safe"}, "nstorm.policy: must be one of gather, otd"),
        (
            {"nstorm.load.low": 0.9},
            "nstorm.load.low: must be at most nstorm.load.high, which is 0.",
        ),
        ({"nstorm.weight.node": 0, "nstorm.weight.worker": 0}, "nstorm.weight.node: must be above"),
        (
            {"nstorm": {"load": {"high": 0.9}}},
            "nstorm: keys within keys are not read; write each flat, like Storm's own: "
            "nstorm.load.high: 0.9",
        ),
        (
            {"nstorm.load": {"high": 0.9}},
            "nstorm.load: keys within keys are not read; write each flat, like Storm's own: "
            "nstorm.load.high: 0.9",
        ),
        ({"nstorm": None}, "nstorm: keys within keys are not read"),
        ({"storm.zookeeper.servers": "a"}, "storm.zookeeper.servers: must be a list"),
        ({"storm.zookeeper.servers": ["a", 1]}, "storm.zookeeper.servers: must be a list"),
        ({"storm.zookeeper.port": True}, "storm.zookeeper.port: must be 1 to 65535, is True"),
        ({"storm.zookeeper.port": 70000}, "storm.zookeeper.port: must be 1 to 65535"),
        ({"storm.zookeeper.root": "storm"}, "storm.zookeeper.root: must be a path"),
    ],
)
def test_refusals_name_the_key(document: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        from_storm_yaml(document)
    assert str(error.value).startswith(message)


# Least and most of every number in README's table that the controller reads.
BOUNDS = {
    "cycle.secs": (0.1, 3600),
    "load.high": (0.01, 1),
    "load.low": (0, 0.85),
    "headroom.min": (1, 100),
    "asc.threshold": (0, 1),
    "asc.threshold.tps": (0, 1e9),
    "weight.node": (0, 1e9),
    "weight.worker": (0, 1e9),
    "max.moves.per.cycle": (1, 1000),
    "cooldown.executor.secs": (0, 1e9),
    "min.age.secs": (0, 1e9),
    "load.ewma": (0.01, 1),
    "worker.cpu.capacity": (0.01, 1e9),
    "link.capacity.mbit": (0.01, 1e9),
    "lazy.kill.ms": (0, 3_600_000),
    "prepare.limit.secs": (1, 3600),
    "target.gain": (0, 1),
    "target.move.price": (0, 1),
    "target.fill": (0.1, 1),
    "aniello.alpha": (0, 1),
    "aniello.beta": (0, 1),
    "aniello.gamma": (1, 1e9),
    "journal.days": (0.01, 1e9),
    "journal.size.mb": (1, 1e9),
}


@pytest.mark.parametrize("key", BOUNDS)
def test_numbers_have_bounds(key: str) -> None:
    least, most = BOUNDS[key]
    for good in (least, most):
        assert build({key: good}).keys[key] == good
    for value in (least - 0.005, most + 1, -1, float("inf"), float("nan"), 10**400, True, "1"):
        with pytest.raises(ConfigError, match=rf"^nstorm\.{key}: must be "):
            build({key: value})


def test_every_number_is_tried() -> None:
    known = build(dict.fromkeys(("asc.threshold.tps", "worker.cpu.capacity"), 1)).keys
    numbers = {k for k, v in known.items() if isinstance(v, int | float) and v is not False}
    assert numbers <= set(BOUNDS)


def test_the_lower_limit_goes_down_with_the_upper_one() -> None:
    limits = build({"load.high": 0.5}).limits
    assert (limits.high_frac, limits.low_frac) == (0.5, 0.5)
    assert build({"load.high": 0.5, "load.low": 0.5}).limits == limits


def test_assignments_of_the_command_line() -> None:
    config = build(keys_of(["nstorm.load.high=0.7", "vetoes=on", "excluded.hosts=[a, b]"]))
    assert config.limits.high_frac == 0.7
    assert config.vetoes
    assert config.excluded.hosts == {"a", "b"}
    with pytest.raises(ConfigError, match="not YAML"):
        build(keys_of(["excluded.hosts=[a"]))
