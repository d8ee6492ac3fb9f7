"""Worker after worker is restarted to get the hooks; the first that stays away ends it."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from controller.cli import adopt, steps
from controller.cli.main import app
from controller.config import Config
from controller.core.excluded import Excluded
from controller.core.topology import TopologyView
from controller.errors import CommandError
from controller.output import Output
from migration.model import Component, NimbusReport, Node, NodeLoad, Plan, Slot
from tests.messages import node_acks, publication, replace, worker_ack, worker_load

NODES = [Node(name, f"host-{name}", 100.0, (1,), 1) for name in "abc"]
PLACES = {task: Slot(node.id, 1) for task, node in enumerate(NODES, 1)}


class Cluster:
    """Three workers; one has hooks once a file with its host's name is in the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.away: set[str] = set()  # hosts whose worker does not come back
        self.silent: dict[str, float] = dict.fromkeys("abc", 0.0)
        self.looks = 0
        self.dark: dict[str, str] = {}  # topologies that Nimbus cannot publish
        self.status = "ACTIVE"
        self.timeouts: dict[str, Any] = {}
        self.killed_after = 1_000_000  # looks at the topologies, once a worker was restarted

    def hooked(self) -> list[str]:
        return [n.id for n in NODES if (self.folder / n.host).exists() and n.id not in self.away]

    def topologies(self) -> list[TopologyView]:
        self.killed_after -= bool(self.hooked())
        if self.killed_after < 0:
            return []
        acks = tuple(
            node_acks(slot.supervisor, [worker_ack(slot, [task])] * self.has(slot), "uuid")
            for task, slot in PLACES.items()
        )
        told = publication(PLACES, NODES, status=self.status, **self.timeouts)
        nimbus = NimbusReport(3_600_000, "0", 1, "s")
        return [TopologyView(told, Plan("uuid", 1, 0, "wc-1"), acks, nimbus=nimbus)]

    def unpublished(self) -> dict[str, str]:
        return self.dark

    def has(self, slot: Slot) -> bool:
        return slot.supervisor in self.hooked()

    def silent_s(self) -> dict[str, float]:
        return self.silent

    def loads(self) -> list[NodeLoad]:
        self.looks += 1
        return [
            NodeLoad(
                slot.supervisor, 0, (worker_load(slot, [task], self.looks, {(task, task): 9.0}),)
            )
            for task, slot in PLACES.items()
            if self.has(slot)
        ]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cluster:
    monkeypatch.setattr(steps, "LOOK_S", 0.0)
    monkeypatch.setattr(adopt, "_SAMPLE_S", 0.0)
    monkeypatch.setattr(adopt, "LiveCluster", SimpleNamespace(of_session=lambda session: session))
    return Cluster(tmp_path)


def adopting(cluster: Cluster, config: Config | None = None) -> Any:
    made = steps.Steps(Output.TABLE)
    return adopt._Adopting(cast(Any, cluster), config or Config(), made, 0.0)


def restart(cluster: Cluster, more: str = "") -> str:
    """Write a command that notes how many files there are, and adds that of its host."""
    folder = cluster.folder
    return f'{more} ls {folder} | grep -c host >> {folder}/log; touch {folder}/"$NSTORM_HOST"'


def test_one_worker_after_the_other_gets_the_hooks(cluster: Cluster) -> None:
    verb = adopting(cluster)
    verb.begin("wc")
    assert verb.left == ["wc host-a:1", "wc host-b:1", "wc host-c:1"]
    assert verb.work(restart(cluster), 60.0) is None
    assert (verb.done, verb.left) == (["wc host-a:1", "wc host-b:1", "wc host-c:1"], [])
    assert (cluster.folder / "log").read_text().split() == ["0", "1", "2"]


def test_how_long_it_takes_and_what_nimbus_would_do_is_known_before(cluster: Cluster) -> None:
    asked, known = adopting(cluster), adopting(cluster)
    known._settle_s = None
    for verb in (asked, known):
        verb.begin("wc")
    assert (asked.least, known.least) == ("0 s", "3 min")
    assert known.warnings == []
    cluster.timeouts = {"worker_timeout_secs": 30, "message_timeout_secs": 120}
    assert known.least == "12 min"
    assert [line.partition(":")[0] for line in known.warnings] == ["wc"]


def test_the_first_that_does_not_come_back_ends_it(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    verb = adopting(cluster)
    cluster.away = {"b"}
    verb.begin("")
    assert verb.work(restart(cluster), 0.3) == "wc host-b:1"
    assert verb.left == ["wc host-b:1", "wc host-c:1"]
    assert not (cluster.folder / "host-c").exists()
    said = capsys.readouterr().out
    assert "is not back after 0 s: the worker at host-b:1 has not reported" in said
    cluster.away = set()
    again = adopting(cluster)
    again.begin("")
    assert again.left == ["wc host-c:1"]


def test_a_command_that_fails_ends_it(cluster: Cluster) -> None:
    verb = adopting(cluster)
    verb.begin("")
    stop = 'test "$NSTORM_HOST" != host-b || exit 3; test "$NSTORM_PORT" = 1 || exit 4;'
    assert verb.work(restart(cluster, stop), 60.0) == "wc host-b:1"
    assert cluster.hooked() == ["a"]


def test_a_worker_that_needs_it_no_more_is_left_alone(cluster: Cluster) -> None:
    verb = adopting(cluster)
    verb.begin("")
    (cluster.folder / "host-b").touch()
    assert verb.work(restart(cluster), 60.0) is None
    assert verb.done == ["wc host-a:1", "wc host-c:1"]


@pytest.mark.parametrize("looks", range(4))
def test_a_topology_that_is_killed_meanwhile_is_not_back(
    cluster: Cluster, looks: int, capsys: pytest.CaptureFixture[str]
) -> None:
    verb = adopting(cluster)
    verb.begin("")
    cluster.killed_after = looks
    assert verb.work(restart(cluster), 60.0) is None
    said = capsys.readouterr().out
    assert verb.done == [] and "is back" not in said
    assert said.count("runs the command") == 1 and "its topology was killed" in said


def test_nothing_is_restarted_while_another_worker_is_away(cluster: Cluster) -> None:
    verb = adopting(cluster)
    (cluster.folder / "host-c").touch()
    verb.begin("")
    cluster.away = {"c"}
    assert verb.work(restart(cluster), 0.2) == "wc host-a:1"
    assert not (cluster.folder / "log").exists()


def test_a_host_that_storm_does_not_list_is_waited_for(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    verb, whole = adopting(cluster), cluster.topologies
    verb.begin("wc")
    waits = iter([True] * 9)

    def looked() -> list[TopologyView]:
        (view,) = whole()
        listed = view.publication.nodes[1:] if next(waits, False) else view.publication.nodes
        return [replace(view, publication=replace(view.publication, nodes=listed))]

    monkeypatch.setattr(cluster, "topologies", looked)
    assert verb.work(restart(cluster), 60.0) is None
    assert verb.done == ["wc host-a:1", "wc host-b:1", "wc host-c:1"]
    assert sorted(file.name for file in cluster.folder.glob("*-*")) == [
        "host-a",
        "host-b",
        "host-c",
    ]


def test_what_would_bring_no_hooks_is_refused_before_anything_is_done(cluster: Cluster) -> None:
    with pytest.raises(CommandError, match="no topology x: the hooks in Nimbus publish wc"):
        adopting(cluster).begin("x")
    excluded = Config(excluded=Excluded(topologies=frozenset({"wc"})))
    with pytest.raises(CommandError, match="topology wc is excluded"):
        adopting(cluster, excluded).begin("wc")
    every = adopting(cluster, excluded)
    every.begin("")
    assert every.left == []
    cluster.silent["b"] = 20.0
    with pytest.raises(CommandError, match="no recent report from the agent of host-b"):
        adopting(cluster).begin("")


def test_a_supervisor_that_does_not_run_is_named_before_its_agent(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    (view,) = cluster.topologies()
    dead = replace(view, publication=replace(view.publication, nodes=tuple(NODES[1:])))
    monkeypatch.setattr(cluster, "topologies", lambda: [dead])
    cluster.silent["a"] = 99.0
    with pytest.raises(CommandError, match="wc: Storm does not list the supervisor a now"):
        adopting(cluster).begin("")


def test_a_topology_at_rest_needs_no_tuples(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "loads", list)
    verb = adopting(cluster)
    verb.begin("")
    assert verb.work(restart(cluster), 0.2) == "wc host-a:1"
    cluster.status = "INACTIVE"
    again = adopting(cluster)
    again.begin("")
    assert again.work(restart(cluster), 60.0) is None


ACKED = (Component("spout", "spout", 1), Component("__acker", "system", 1))


class Resting:
    """A topology that its command deactivates: its spout has un-acked tuples for some reports."""

    def __init__(self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, unacked: int) -> None:
        self.unacked, self._cluster = unacked, cluster
        self.moved: dict[int, Slot] = {}  # what Storm does once 5 tuples are left
        self._views, self._flow = cluster.topologies, cluster.loads
        self.log = cluster.folder / "log"
        cluster.timeouts = {"spouts": (1,), "components": ACKED}
        monkeypatch.setattr(cluster, "topologies", self.topologies)
        monkeypatch.setattr(cluster, "loads", self.loads)
        monkeypatch.setattr(adopt, "_CONNECTS_S", 0.0)
        monkeypatch.setattr(adopt, "seen_to_rest_s", lambda view: 0.0)

    @property
    def words(self) -> list[str]:
        return self.log.read_text().split() if self.log.exists() else []

    def topologies(self) -> list[TopologyView]:
        asked = [word for word in self.words if word.endswith("activate")]
        self._cluster.status = "INACTIVE" if asked[-1:] == ["deactivate"] else "ACTIVE"
        views = self._views()
        if not self.moved or self.unacked > 5:
            return views
        if not self.moved.keys() <= PLACES.keys():
            return []  # killed
        known = {"status": self._cluster.status, **self._cluster.timeouts}
        told = publication(PLACES | self.moved, NODES, **known)
        return [replace(view, publication=told) for view in views]

    def loads(self) -> list[NodeLoad]:
        if self._cluster.status == "INACTIVE":
            self.unacked -= 1
        meters = {"pending_tuples": (max(self.unacked, 0),)}
        return [
            replace(one, workers=tuple(replace(w, executor_meters=meters) for w in one.workers))
            for one in self._flow()
        ]


REST = 'echo "$NSTORM_DO" >> {0}/log; test "$NSTORM_DO" = activate || test ! -e {0}/refuses'


def resting(cluster: Cluster) -> Any:
    made = steps.Steps(Output.TABLE)
    rest = REST.format(cluster.folder)
    return adopt._Adopting(cast(Any, cluster), Config(), made, None, rest)


def test_a_worker_is_restarted_at_rest_once_nothing_is_unacked(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (cluster.folder / "host-a").touch()  # the worker of the spout has hooks
    world = Resting(cluster, monkeypatch, unacked=20)
    verb = resting(cluster)
    verb.begin("")
    assert verb.work(restart(cluster), 60.0) is None
    assert world.words == ["deactivate", "1", "activate", "deactivate", "2", "activate"]
    assert world.unacked <= 0
    assert "tuples are un-acked or in queues" in capsys.readouterr().out


def test_where_no_hooks_see_the_spouts_the_message_timeout_is_waited_for(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = Resting(cluster, monkeypatch, unacked=0)
    verb = resting(cluster)
    verb.begin("")
    monkeypatch.setattr(adopt, "failed_s", lambda view: 0.2)
    assert verb.work(restart(cluster), 60.0) is None
    assert world.words[:3] == ["deactivate", "0", "activate"]
    assert "not all in flight is seen; it times out within 0 s" in capsys.readouterr().out


@pytest.mark.parametrize("moved", [{2: Slot("a", 2)}, {9: Slot("a", 2)}], ids=["moved", "killed"])
def test_what_storm_moves_while_it_rests_is_left_alone(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, moved: dict[int, Slot]
) -> None:
    for host in ("host-a", "host-c"):
        (cluster.folder / host).touch()
    world = Resting(cluster, monkeypatch, unacked=20)
    verb = resting(cluster)
    verb.begin("")
    world.moved = moved
    assert verb.work(restart(cluster), 60.0) == "wc host-b:1"
    assert world.words == ["deactivate", "activate"]
    assert not (cluster.folder / "host-b").exists() and verb.done == []


def test_tuples_in_flight_are_named_where_nobody_counts_them(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    Resting(cluster, monkeypatch, unacked=0)
    verb = resting(cluster)
    verb.begin("")
    assert not verb.loses_tuples
    cluster.timeouts["components"] = ACKED[:1]
    assert verb.loses_tuples


@pytest.fixture
def unread() -> Iterator[int]:
    """Standard output as a pipe, here and in commands; give its end that reads."""
    kept, (reads, writes) = os.dup(1), os.pipe()
    os.dup2(writes, 1)
    os.close(writes)
    yield reads
    os.dup2(kept, 1)
    os.close(kept)


def test_a_topology_is_activated_again_where_nobody_reads_what_is_printed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, unread: int
) -> None:
    (cluster.folder / "host-a").touch()
    world = Resting(cluster, monkeypatch, unacked=1_000_000)
    verb = resting(cluster)
    verb._rest = f"echo prints; {verb._rest}"
    verb.begin("")
    monkeypatch.setattr(sys, "stdout", os.fdopen(1, "w", closefd=False))

    def looks(one: Any) -> str | None:
        os.close(unread)
        raise KeyboardInterrupt

    monkeypatch.setattr(verb, "_in_flight", looks)
    with pytest.raises(KeyboardInterrupt):
        verb.work("true", 60.0)
    assert world.words == ["deactivate", "activate"]


def test_what_activates_does_not_overtake_what_deactivates(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (cluster.folder / "host-a").touch()
    world = Resting(cluster, monkeypatch, unacked=0)
    verb = resting(cluster)
    ends = "kill -TERM $PPID; kill -INT $$; kill -HUP $$; sleep 0.5;"
    verb._rest = f'if test "$NSTORM_DO" = deactivate; then {ends} fi; {verb._rest}'
    verb.begin("")
    usual = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with pytest.raises(SystemExit):
            verb.work("true", 60.0)
    finally:
        signal.signal(signal.SIGTERM, usual)
    assert world.words == ["deactivate", "activate"]
    assert "wc: activate; Ctrl-C is ignored" in capsys.readouterr().out


@pytest.mark.parametrize("end", ["fails", "stays away", "is refused", "Ctrl-C"])
def test_a_topology_is_activated_again_whatever_happens(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    (cluster.folder / "host-a").touch()
    world = Resting(cluster, monkeypatch, unacked=0)
    verb = resting(cluster)
    verb.begin("")
    command = {"fails": "exit 3", "Ctrl-C": "kill -INT $PPID; sleep 0.1"}.get(end, "true")
    if end == "is refused":
        (cluster.folder / "refuses").touch()
    ends = pytest.raises(KeyboardInterrupt) if end == "Ctrl-C" else nullcontext()
    with ends:
        assert verb.work(command, 0.3) == "wc host-b:1"
    assert world.words == ["deactivate", "activate"]


def test_a_topology_that_rests_already_stays_so(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.status = "INACTIVE"
    monkeypatch.setattr(cluster, "loads", list)
    verb = resting(cluster)
    verb.begin("")
    assert verb.work(restart(cluster), 60.0) is None
    assert "activate" not in (cluster.folder / "log").read_text()


def test_acks_that_do_not_come_back_end_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (cluster.folder / "host-c").touch()
    flow, acked = cluster.loads, [0]

    def loads() -> list[NodeLoad]:
        if not (cluster.folder / "log").exists():
            acked[0] += 50
        return [
            replace(
                node,
                workers=tuple(
                    replace(w, meters={"acked_tuples": acked[0], "failed_tuples": 0})
                    for w in node.workers
                ),
            )
            for node in flow()
        ]

    monkeypatch.setattr(cluster, "loads", loads)
    verb = adopting(cluster)
    verb.begin("")
    assert verb.work(restart(cluster), 0.5) == "wc host-a:1"
    assert "0.0 tuples/s are acked, before 50.0" in capsys.readouterr().out


def test_what_nobody_looks_at_is_named_and_not_taken_for_done(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    conf = tmp_path / "storm.yaml"
    conf.write_text("storm.local.dir: /var/storm\nnstorm.excluded.topologies: [wc]\n")
    cluster.dark = {"big-2-2": "too large"}
    monkeypatch.setattr(adopt, "connected", lambda conf: nullcontext(cluster))
    words = ["adopt", "--run", "true", "--conf", str(conf)]
    assert CliRunner().invoke(app, words).stdout.splitlines() == [
        "no worker without hooks was found",
        "big-2-2 is left out: Nimbus does not publish it: too large",
        "wc is left out: it is excluded",
    ]
    monkeypatch.setattr(cluster, "topologies", list)
    assert CliRunner().invoke(app, words).stdout.splitlines() == [
        "no worker without hooks was found",
        "big-2-2 is left out: Nimbus does not publish it: too large",
    ]
    cluster.dark = {}
    refused = str(CliRunner().invoke(app, words).exception)
    assert refused.startswith("no worker is seen: the hooks in Nimbus publish no topology")
