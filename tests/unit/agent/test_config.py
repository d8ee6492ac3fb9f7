"""The agent's keys of storm.yaml: defaults, and every refusal by name."""

from pathlib import Path
from typing import Any

import pytest

from agent.config import AgentConfig, from_storm_yaml
from kvstore.ensemble import Ensemble
from migration import ConfigError
from migration.storm_yaml import read


def test_defaults() -> None:
    assert from_storm_yaml({"storm.local.dir": "/var/storm"}) == AgentConfig(
        Ensemble("localhost:2181/storm"), Path("/var/storm/nstorm"), None, 3.0, 4.0
    )


@pytest.mark.parametrize("text", ["", "# storm.zookeeper.servers: [zk1]\n"])
def test_a_file_without_keys_is_no_cluster(tmp_path: Path, text: str) -> None:
    path = tmp_path / "storm.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match="holds no keys, so it names no cluster"):
        read(path)


def test_an_address_of_ipv6_has_brackets_or_gets_them() -> None:
    servers = ["::1", "[fe80::1]", "zk1", "10.0.0.1"]
    conf = {"storm.local.dir": "/var/storm", "storm.zookeeper.servers": servers}
    named = "[::1]:2181,[fe80::1]:2181,zk1:2181,10.0.0.1:2181/storm"
    assert from_storm_yaml(conf).zookeeper == Ensemble(named)


def test_every_key(tmp_path: Path) -> None:
    path = tmp_path / "storm.yaml"
    path.write_text(
        "storm.zookeeper.servers: [zk1, zk2]\n"
        "storm.zookeeper.port: 2182\n"
        "storm.zookeeper.root: /other\n"
        "nstorm.store.dir: /fast/nstorm\n"
        "nstorm.supervisor.id: s1\n"
        "nstorm.agent.sync.secs: 1\n"
        "nstorm.load.secs: 0.5\n"
        "nstorm.mode: auto\n"
        "nstorm.link.capacity.mbit: 20\n"
        "nstorm.cleanup: [sink]\n"
        "nstorm.move: {count: live, sink: never, sum: carry}\n"
        "nstorm.state: {sum: [total]}\n"
        "nstorm.state.classes: [com.acme.Session, com.acme.events.*]\n"
        "nstorm.state.rehearsed: true\n"
        "topology.workers: 4\n"
    )
    assert from_storm_yaml(read(path)) == AgentConfig(
        Ensemble("zk1:2182,zk2:2182/other"), Path("/fast/nstorm"), "s1", 1.0, 0.5, None, 20.0
    )


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"nstorm.agent.sync.sec": 1}, "nstorm.agent.sync.sec: unknown key, did you mean"),
        ({"nstorm.whatever": 1}, "nstorm.whatever: unknown key"),
        ({"nstorm.agent.sync.secs": 0}, "nstorm.agent.sync.secs"),
        ({"nstorm.agent.sync.secs": "3"}, "nstorm.agent.sync.secs"),
        ({"nstorm.load.secs": True}, "nstorm.load.secs"),
        ({"nstorm.load.secs": float("nan")}, "nstorm.load.secs"),
        ({"nstorm.store.dir": 5}, "nstorm.store.dir"),
        *(
            ({"nstorm.store.dir": path}, f"nstorm.store.dir: must be an absolute path, is {path!r}")
            for path in ("nstorm", "~/nstorm", "./nstorm")
        ),
        (
            {"storm.local.dir": "storm-local"},
            "nstorm.store.dir: must be given where storm.local.dir is relative, is 'storm-local'",
        ),
        ({"nstorm.supervisor.id": ""}, "nstorm.supervisor.id"),
        (
            {"nstorm.worker.poll.ms": 0},
            "nstorm.worker.poll.ms: must be a whole number of at least 1 and at most 60,000, is 0",
        ),
        ({"nstorm.worker.poll.ms": "50 ms"}, "nstorm.worker.poll.ms"),
        ({"nstorm.cleanup": "sink"}, "nstorm.cleanup: must be a list of names, is 'sink'"),
        (
            {"nstorm.move": {"count": "lvie"}},
            "nstorm.move: must be one of live, carry, drain, renew, never for each component, "
            "is {'count': 'lvie'}",
        ),
        (
            {"nstorm.move": "live"},
            "nstorm.move: must be one of live, carry, drain, renew, never for each",
        ),
        (
            {"nstorm.state": {"count": []}},
            "nstorm.state: must be a list of names for each component, is {'count': []}",
        ),
        ({"nstorm.vetoes": True}, "nstorm.vetoes: only for `nstorm decide`"),
        ({"storm.zookeeper.servers": "zk1"}, "storm.zookeeper.servers"),
        ({"storm.zookeeper.servers": []}, "storm.zookeeper.servers"),
        ({"storm.zookeeper.port": "2181"}, "storm.zookeeper.port"),
        ({"storm.zookeeper.servers": ["zk1", 7]}, "storm.zookeeper.servers"),
        ({"storm.zookeeper.port": 0}, "storm.zookeeper.port"),
        ({"storm.zookeeper.root": "storm"}, "storm.zookeeper.root: must be a path"),
        ({"storm.zookeeper.root": None}, "storm.zookeeper.root: must be a path"),
        ({"storm.local.dir": None}, "nstorm.store.dir"),
        (
            {"nstorm": {"load": {"secs": 1}}},
            "nstorm: keys within keys are not read; write each flat, like Storm's own: "
            "nstorm.load.secs: 1",
        ),
        ({"nstorm": None}, "nstorm: keys within keys"),
        ({"nstorm.load": {"secs": 1}}, "nstorm.load: keys within keys"),
    ],
)
def test_what_cannot_be_is_refused_by_its_key(document: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_storm_yaml({"storm.local.dir": "/var/storm"} | document)
    assert str(caught.value).startswith(said)
