"""A ZooKeeper behind Kerberos: tickets come from the keytab, also after the KDC was away."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
import structlog

from agent import daemon
from agent.config import AgentConfig
from deploy.lab.cluster import Lab, only_zookeeper
from deploy.lab.kerberos import lacking
from deploy.lab.layout import free_ports
from deploy.lab.secured import jaas_file
from kvstore.endpoint import Endpoint
from kvstore.ensemble import Ensemble, Grant
from kvstore.errors import NodeExistsError
from kvstore.zookeeper import Session, Waiting
from migration import wire
from migration.access import ensemble
from tests.integration.test_refusals import (
    RECOVERED_S,
    eventually,
    readiness,
    refusals,
    wire_folders,
)

pytestmark = pytest.mark.zookeeper
TICKET_S = 5.0


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    if missing := lacking():
        pytest.skip(f"no {', '.join(missing)} here")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("KRB5_CONFIG", "KRB5_CLIENT_KTNAME", "KRB5CCNAME"):
            patch.setenv(name, "")
        with only_zookeeper("kerberos", "kerberos") as made:
            kdc = made.layout.kdc
            assert kdc is not None
            kdc.ask(f'modprinc -maxlife "{TICKET_S:.0f} seconds" agent')
            yield made


@pytest.fixture(scope="module")
def where(lab: Lab) -> Ensemble:
    """Give ZooKeeper as the storm.yaml of an agent names it."""
    return ensemble(
        {
            "storm.zookeeper.servers": [lab.layout.zookeeper_host],
            "storm.zookeeper.port": lab.layout.zookeeper_port,
            "storm.zookeeper.root": "",
            "nstorm.zookeeper.jaas": str(jaas_file(lab.layout.run_dir, "agent")),
        }
    )


def test_a_keytab_lets_in_and_is_the_owner_of_what_it_creates(where: Ensemble) -> None:
    assert where.who == "sasl:agent@LAB"
    with Session(where) as session:
        assert session.connect()
        session.create("/nstorm/plans")
        (grant,) = session.grants("/nstorm/plans")
        assert grant == Grant("sasl", "agent@LAB", "crwda")


def test_a_kdc_that_is_away_is_named_and_its_return_is_enough(lab: Lab, where: Ensemble) -> None:
    said: list[Waiting] = []

    def wait(waiting: Waiting) -> None:
        said.append(waiting)
        if len(said) == 1:
            lab.start_daemon("kdc")

    lab.kill_daemon("kdc")
    cold = replace(where)
    with pytest.MonkeyPatch.context() as patch, Session(cold) as session:
        # Else the tickets of the test before would do.
        patch.setenv("KRB5CCNAME", "MEMORY:empty")
        assert session.connect(on_wait=wait, retry_s=1.0, stop=threading.Event())
    assert said[0].refused
    assert said[0].error.startswith("ZooKeeper refuses the credentials of sasl:agent@LAB (")
    assert "KDC" in said[0].error


def prepare(where: Ensemble) -> None:
    """Make what an agent asks for."""
    with Session(where) as session:
        session.connect()
        for path in ("/storms", *wire_folders()):
            with suppress(NodeExistsError):
                session.create(path, b"c1" if path == wire.CLUSTER else b"")


@contextmanager
def running(where: Ensemble, folder: Path) -> Iterator[int]:
    """Run an agent; give the port that shows whether it is ready."""
    (port,), stop = free_ports(1), threading.Event()
    config = AgentConfig(where, folder, "s1", load_s=1.0, metrics_at=Endpoint("127.0.0.1", port))
    thread = threading.Thread(target=daemon.run, args=(config, stop))
    thread.start()
    try:
        yield port
    finally:
        stop.set()
        thread.join()


def interrupt(lab: Lab, port: int) -> None:
    """Let ZooKeeper stand still until its client has given the connection up."""
    lab.kill_daemon("zookeeper", signal.SIGSTOP)
    try:
        eventually({"agent": port}, agent="503 ")
    finally:
        lab.kill_daemon("zookeeper", signal.SIGCONT)


def test_a_daemon_outlives_its_ticket_and_a_kdc_that_is_away(
    lab: Lab, where: Ensemble, tmp_path: Path
) -> None:
    prepare(where)
    with structlog.testing.capture_logs() as logs, running(replace(where), tmp_path) as port:
        eventually({"agent": port}, agent="200")
        # The session needs no ticket, and the next one finds that it has run out.
        time.sleep(TICKET_S + 2)
        assert readiness(port).startswith("200")
        interrupt(lab, port)
        eventually({"agent": port}, agent="200")
        assert refusals(logs) == []

        time.sleep(TICKET_S + 2)
        lab.kill_daemon("kdc")
        assert readiness(port).startswith("200")
        interrupt(lab, port)
        eventually({"agent": port}, agent="ZooKeeper refuses the credentials of sasl:agent@LAB (")
        assert "Ticket expired" in readiness(port)
        lab.start_daemon("kdc")
        began_s = time.monotonic()
        eventually({"agent": port}, agent="200")
        assert time.monotonic() - began_s < RECOVERED_S
        said = refusals(logs)
        assert len(said) == len({*said}) <= 2


def test_a_clock_of_zookeeper_apart_from_that_of_the_kdc_is_named(
    lab: Lab, where: Ensemble, tmp_path: Path
) -> None:
    kdc, shim = lab.layout.kdc, next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    shim = Path(os.environ["NSTORM_FAKETIME"]) if "NSTORM_FAKETIME" in os.environ else shim
    if shim is None:
        pytest.skip("no faketime here")
    assert kdc is not None
    prepare(where)
    time.sleep(TICKET_S + 2)
    lab.kill_daemon("kdc")
    ahead = {**kdc.env, "LD_PRELOAD": str(shim), "FAKETIME": "+900s"}
    lab._processes.start("kdc", kdc.command, kdc.folder / "kdc.out", ahead)
    with structlog.testing.capture_logs() as logs, running(replace(where), tmp_path) as port:
        refused = "ZooKeeper refuses the credentials of sasl:agent@LAB (without a reason: compare "
        eventually({"agent": port}, agent=refused)
        lab.kill_daemon("kdc")
        lab.start_daemon("kdc")
        eventually({"agent": port}, agent="200")
        said = refusals(logs)  # the KDC is away for a moment as well
        assert len(said) == len({*said}) <= 2
