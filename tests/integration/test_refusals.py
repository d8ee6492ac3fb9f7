"""Agent and controller at a ZooKeeper that refuses them under way, and takes them again."""

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import structlog

from agent import daemon
from agent.config import AgentConfig
from controller.config import Config
from controller.storm.leader_status import STATUS
from controller.storm.live import LiveController
from deploy.lab.cluster import Lab, only_zookeeper
from deploy.lab.layout import free_ports
from deploy.lab.secured import STORM, jaas_file
from kvstore.endpoint import Endpoint
from kvstore.errors import NodeExistsError
from kvstore.exposition import exposed
from kvstore.pulse import Pulse
from kvstore.service import serve
from kvstore.zookeeper import Session, _kazoo_acl
from migration import wire
from migration.access import ensemble

pytestmark = pytest.mark.zookeeper
RECOVERED_S = 60.0
USERS = {"agent": "agent", "controller": STORM}


@pytest.fixture
def lab() -> Iterator[Lab]:
    with only_zookeeper("refusals", "digest") as made:
        yield made


def where(lab: Lab, user: str) -> Any:
    return ensemble(
        {
            "storm.zookeeper.servers": [lab.layout.zookeeper_host],
            "storm.zookeeper.port": lab.layout.zookeeper_port,
            "storm.zookeeper.root": "",
            "storm.zookeeper.superACL": f"sasl:{STORM}",
            "nstorm.acl.agent": ["sasl:agent"],
            "nstorm.zookeeper.jaas": str(jaas_file(lab.layout.run_dir, user)),
        }
    )


def readiness(port: int) -> str:
    """Ask a daemon whether it is ready, as a monitor does."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return f"{answer.status} {answer.read().decode().strip()}"
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode().strip()}"
    except OSError:
        return "no answer"


@contextmanager
def daemons(lab: Lab, folder: Path) -> Iterator[Mapping[str, int]]:
    """Run an agent and a controller; give where each answers."""
    ports = dict(zip(USERS, free_ports(2), strict=True))
    stop, pulse = threading.Event(), Pulse({})
    at = Endpoint("127.0.0.1", ports["agent"])
    config = AgentConfig(where(lab, "agent"), folder, "s1", load_s=1.0, metrics_at=at)

    def work(session: Session) -> None:
        LiveController(session, Config(cycle_s=1.0), name="c", pulse=pulse).run(stop)

    threads = [
        threading.Thread(target=daemon.run, args=(config, stop)),
        threading.Thread(
            target=serve, args=(where(lab, STORM), work, stop), kwargs={"pulse": pulse}
        ),
    ]
    with exposed(Endpoint("127.0.0.1", ports["controller"]), "controller", NOTHING, pulse):
        for thread in threads:
            thread.start()
        try:
            yield ports
        finally:
            stop.set()
            for thread in threads:
                thread.join()


class Nothing:
    """Stands for the metrics."""

    def collect(self) -> Iterator[Any]:
        return iter(())


NOTHING: Any = Nothing()


def eventually(ports: Mapping[str, int], **wanted: str) -> None:
    """Wait until daemons answer that their readiness is as wanted."""
    until_s = time.monotonic() + RECOVERED_S
    while True:
        said = {name: readiness(ports[name]) for name in wanted}
        if all(text in said[name] for name, text in wanted.items()):
            return
        assert time.monotonic() < until_s, said
        time.sleep(0.2)


def refusals(logs: list[Any]) -> list[str]:
    assert not [row for row in logs if "exc_info" in row or "traceback" in str(row).lower()]
    return [row["reason"] for row in logs if row["event"] == "zookeeper_refuses"]


def restart(lab: Lab, change: Callable[[str], str] = str) -> None:
    """Start ZooKeeper again, with other passwords."""
    lab.kill_daemon("zookeeper")
    file = jaas_file(lab.layout.run_dir, "server")
    file.write_text(change(file.read_text()))
    lab.start_zookeeper()


def test_each_refusal_is_one_sentence_and_ends_once_it_is_mended(lab: Lab, tmp_path: Path) -> None:
    with ExitStack() as stack:
        with Session(where(lab, STORM)) as nimbus:
            nimbus.connect()
            for path in ("/storms", *wire_folders()):
                with suppress(NodeExistsError):
                    nimbus.create(path, b"c1" if path == wire.CLUSTER else b"")
        logs = stack.enter_context(structlog.testing.capture_logs())
        ports = stack.enter_context(daemons(lab, tmp_path))
        eventually(ports, agent="200", controller="200")
        assert refusals(logs) == []
        hosts = f"ZooKeeper at {lab.zookeeper}"

        # Rights that are tightened under way.
        with Session(where(lab, STORM)) as nimbus:
            nimbus.connect()
            closed = {"controller": STATUS, "agent": wire.load_path("s1")}
            until_s = time.monotonic() + RECOVERED_S
            while not all(before := [nimbus.grants(path) for path in closed.values()]):
                assert time.monotonic() < until_s, before
                time.sleep(0.1)
            for (name, path), grants in zip(closed.items(), before, strict=True):
                less = [
                    one._replace(may=one.may.replace("w", "")) if one.id == USERS[name] else one
                    for one in grants
                ]
                nimbus._client.set_acls(path, list(map(_kazoo_acl, less)))
            for name, path in closed.items():
                eventually(ports, **{name: "503"})
                who = f"{hosts} does not let sasl:{USERS[name]} "
                eventually(ports, **{name: who})
                assert path in readiness(ports[name])
            time.sleep(12)  # two more tries
            said = refusals(logs)
            assert len(said) == len(set(said)) == len(closed)
            for path, grants in zip(closed.values(), before, strict=True):
                nimbus._client.set_acls(path, [_kazoo_acl(one) for one in grants])
            eventually(ports, agent="200", controller="200")

        # ZooKeeper away, and then with other passwords: what was good is wrong.
        logs.clear()
        lab.kill_daemon("zookeeper")
        eventually(ports, agent="503 ", controller="503 ")
        eventually(ports, agent="ZooKeeper", controller=hosts)
        lab.start_zookeeper()
        eventually(ports, agent="200", controller="200")
        assert refusals(logs) == []
        restart(lab, lambda text: text.replace('="', '="not-'))
        for name, user in USERS.items():
            eventually(
                ports, **{name: f"{hosts}: ZooKeeper refuses the credentials of sasl:{user}"}
            )
        time.sleep(12)
        said = refusals(logs)
        assert len(said) == len(set(said))
        restart(lab, lambda text: text.replace('="not-', '="'))
        eventually(ports, agent="200", controller="200")
        assert len(logs) < 100, "no flood"


def wire_folders() -> tuple[str, ...]:
    return (wire.ROOT, wire.PLANS, wire.ACKS, wire.LOAD, wire.EPOCH, wire.CLUSTER)
