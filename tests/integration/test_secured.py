"""A ZooKeeper that demands credentials: who gets in, and who may do what with which node."""

import gc
import logging
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import structlog

from agent import daemon
from agent.config import AgentConfig
from controller.storm.collect import LiveCluster
from controller.storm.command_record import COMMANDS
from deploy.lab.cluster import Lab, only_zookeeper
from deploy.lab.secured import STORM, jaas_file, pem
from kvstore.ensemble import Ensemble, Grant
from kvstore.errors import AccessError, NodeExistsError
from kvstore.zookeeper import Session, Waiting, _kazoo_acl
from migration import wire
from migration.access import COMMAND, ROLES, TABLE, ensemble
from migration.model import NodeLoad
from tests.messages import node_acks

pytestmark = pytest.mark.zookeeper
PRINCIPALS = {f"nstorm.acl.{role}": [f"sasl:{role}"] for role in ROLES[1:]}


@pytest.fixture(scope="module")
def secured() -> Iterator[Lab]:
    """A ZooKeeper alone, by SASL; the root of Storm is there."""
    with only_zookeeper("secured", "digest") as lab:
        with Session(replace(of(lab, STORM), hosts=lab.zookeeper)) as session:
            session.connect()
            session.create("/storm/storms")
        yield lab


def of(lab: Lab, user: str) -> Ensemble:
    """Give ZooKeeper as the storm.yaml of a user with this name names it."""
    return ensemble(
        {
            "storm.zookeeper.servers": [lab.layout.zookeeper_host],
            "storm.zookeeper.port": lab.layout.zookeeper_port,
            "storm.zookeeper.superACL": f"sasl:{STORM}",
            "nstorm.zookeeper.jaas": str(jaas_file(lab.layout.run_dir, user)),
            **PRINCIPALS,
        }
    )


def may(call: Callable[[], object]) -> bool:
    try:
        call()
    except AccessError:
        return False
    return True


def test_each_role_may_what_the_table_says(secured: Lab) -> None:
    users = ("controller", "agent", "operator", "reader", "stranger")
    paths = {row: re.sub(r"<.*>", "x", row) for row in TABLE}
    with ExitStack() as opened:
        nimbus, *others = [
            opened.enter_context(Session(of(secured, user))) for user in (STORM, *users)
        ]
        assert all(session.connect() for session in (nimbus, *others))
        operator = others[users.index("operator")]
        for path in sorted(paths.values(), key=len):
            with suppress(NodeExistsError):
                (operator if path == paths[COMMAND] else nimbus).create(path)
            for user in users:
                nimbus.create(f"{path}/of-{user}")
        found, wanted = {}, {}
        for user, session in zip(users, others, strict=True):
            for row, path in paths.items():
                calls: dict[str, Callable[[], object]] = {
                    "c": partial(session.create, f"{path}/by-{user}"),
                    "r": partial(session.read, path),
                    "w": partial(session.set, path, b"1"),
                    "d": partial(session.delete, f"{path}/of-{user}"),
                }
                found[user, row] = "".join(letter for letter, call in calls.items() if may(call))
                letters = dict(zip(ROLES, TABLE[row], strict=True)).get(user, "")
                wanted[user, row] = "".join(letter for letter in "crwd" if letter in letters)
        assert found == wanted
        assert len(found) == len(users) * len(TABLE)


def refusal(where: Ensemble | str) -> str:
    """Return why a session does not come about."""
    stop, said = threading.Event(), []

    def wait(waiting: Waiting) -> None:
        said.append(waiting)
        stop.set()

    with Session(where) as session:
        assert not session.connect(on_wait=wait, stop=stop)
    (waiting,) = said
    assert waiting.refused
    return waiting.error


def test_a_wrong_password_is_refused_in_one_sentence(secured: Lab) -> None:
    right = of(secured, "agent")
    assert right.sasl is not None
    wrong = replace(right, sasl={**right.sasl, "password": "wrong"})
    assert refusal(wrong).startswith("ZooKeeper refuses the credentials of sasl:agent")
    assert refusal(wrong).endswith(": correct them in the storm.yaml, or what it names")


def test_a_client_without_credentials_is_refused_in_one_sentence(secured: Lab) -> None:
    assert refusal(f"{secured.zookeeper}/storm") == (
        "ZooKeeper demands credentials: name them in the storm.yaml, as docs/security.md shows"
    )


def test_what_nobody_may_is_one_sentence(secured: Lab) -> None:
    with Session(of(secured, "stranger")) as session:
        session.connect()
        with pytest.raises(AccessError) as refused:
            session.read("/storms")
    assert str(refused.value) == (
        f"ZooKeeper at {secured.zookeeper}/storm does not let sasl:stranger read /storms: "
        "docs/security.md has who needs to, and which keys name them"
    )


def test_who_asks_is_whom_zookeeper_knows_and_nobody_can_ask_as_another(secured: Lab) -> None:
    path = f"{COMMANDS}/c-"
    users = (STORM, "controller", "operator")
    with ExitStack() as opened:
        nimbus, controller, operator = sessions = [
            opened.enter_context(Session(of(secured, user))) for user in users
        ]
        assert all(session.connect() for session in sessions)
        with suppress(NodeExistsError):
            nimbus.create(COMMANDS)

        def author(at: str) -> str | None:
            stored = controller.read(at)
            assert stored is not None
            return controller.author(at, stored.mzxid)

        honest = operator.create(path, ephemeral=True, sequence=True)
        assert author(honest) is None
        operator.set(honest, b"1")
        assert author(honest) == "sasl:operator"
        controller.set(honest, b"2")
        assert author(honest) == "sasl:operator"
        # As another: the rights of a node that is created may name anybody.
        rights = [grant for grant in nimbus.grants(honest) if grant.id != "operator"]
        forged = [*rights, Grant("sasl", "stranger", "rw")]
        acl = [_kazoo_acl(grant) for grant in forged]
        made = operator._client.create(path, b"1", acl, ephemeral=True, sequence=True)
        assert author(made) is None
        with pytest.raises(AccessError):
            operator.set(made, b"2")
        both = [*acl, _kazoo_acl(Grant("sasl", "operator", "rw"))]
        shared = operator._client.create(path, b"1", both, ephemeral=True, sequence=True)
        operator.set(shared, b"2")
        assert author(shared) is None
        later = operator._client.create(
            path, b"1", [*both, _kazoo_acl(Grant("sasl", "operator", "a"))], sequence=True
        )
        operator._client.set_acls(later, acl)
        controller.set(later, b"2")
        assert author(later) is None
        nimbus.delete(later)


def test_an_agent_that_closes_its_reports_is_missing_alone(secured: Lab) -> None:
    with ExitStack() as opened:
        nimbus, controller, agent = sessions = [
            opened.enter_context(Session(of(secured, user)))
            for user in (STORM, "controller", "agent")
        ]
        assert all(session.connect() for session in sessions)
        for path in (wire.ACKS, wire.LOAD):
            with suppress(NodeExistsError):
                nimbus.create(path)
        only = [_kazoo_acl(Grant("sasl", "agent", "rw"))]
        for name in ("closed", "open"):
            acks, load = wire.acks_path(name), wire.load_path(name)
            reports = {
                acks: wire.encode(node_acks(name, [], "c")),
                load: wire.encode(NodeLoad(name, 0)),
            }
            for path, report in reports.items():
                if name == "closed":
                    agent._client.create(path, report, only)
                else:
                    agent.create(path, report)
        view = LiveCluster.of_session(controller)
        with structlog.testing.capture_logs() as logs:
            for _ in range(2):
                assert [load.node for load in view.loads()] == ["open"]
                assert [acks.node for acks in view.acks()] == ["open"]
        closed = [row["path"] for row in logs if row["event"] == "node_closed"]
        assert sorted(closed) == [wire.acks_path("closed"), wire.load_path("closed")]
        for name in ("closed", "open"):
            nimbus.delete(wire.acks_path(name))
            nimbus.delete(wire.load_path(name))


def eventually(what: str, holds: Callable[[], bool], limit_s: float = 60.0) -> None:
    until_s = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < until_s, what
        time.sleep(0.1)


def test_an_agent_says_once_that_it_may_no_longer_write_and_goes_on_when_it_may(
    secured: Lab, tmp_path: Path
) -> None:
    config = AgentConfig(of(secured, "agent"), tmp_path, "s1", load_s=1.0)
    mine = wire.load_path("s1")
    stop = threading.Event()
    with Session(of(secured, STORM)) as nimbus, structlog.testing.capture_logs() as logs:
        nimbus.connect()
        for path in (wire.ROOT, wire.PLANS, wire.ACKS, wire.LOAD, wire.EPOCH, wire.CLUSTER):
            with suppress(NodeExistsError):
                nimbus.create(path, b"c1" if path == wire.CLUSTER else b"")
        agent = threading.Thread(target=daemon.run, args=(config, stop))
        agent.start()
        try:
            eventually("the agent reports", lambda: nimbus.exists(mine) is not None)
            grants = nimbus.grants(mine)
            nimbus._client.set_acls(mine, [_kazoo_acl(grants[0])])

            def refused() -> list[str]:
                return [row["reason"] for row in logs if row["event"] == "zookeeper_refuses"]

            eventually("it is refused", lambda: bool(refused()))
            time.sleep(12)  # two more tries
            (reason,) = refused()
            assert reason == (
                f"ZooKeeper at {secured.zookeeper}/storm does not let sasl:agent write {mine}: "
                "docs/security.md has who needs to, and which keys name them"
            )
            assert not [row for row in logs if row["log_level"] == "error" and "exc_info" in row]
            last = nimbus.read(mine)
            nimbus._client.set_acls(mine, [_kazoo_acl(grant) for grant in grants])
            eventually("it writes again", lambda: nimbus.read(mine) != last)
        finally:
            stop.set()
            agent.join()


@pytest.fixture(scope="module")
def by_certificates() -> Iterator[Lab]:
    """A ZooKeeper alone, by TLS; the root of Storm is there."""
    with only_zookeeper("certified", "tls") as lab:
        with Session(replace(lab.ensemble, hosts=lab.zookeeper)) as session:
            session.connect()
            session.create("/storm/storms")
        yield lab


def test_who_has_a_certificate_is_known_by_it(by_certificates: Lab) -> None:
    where = by_certificates.ensemble
    assert where.tls is not None
    assert where.who == f"the certificate {where.tls.certificate}"
    with Session(where) as session:
        assert session.connect()
        session.create("/nstorm/plans", b"1")
        assert session.read("/nstorm/plans") is not None
        assert session.grants("/nstorm/plans") == (Grant("x509", "CN=storm", "crwda"),)


def certify(lab: Lab, name: str, days: int) -> None:
    """Sign a certificate that is good for some days from now, or has run out."""
    run_dir, host = lab.layout.run_dir, lab.layout.zookeeper_host
    made, key = pem(run_dir, name), pem(run_dir, f"{name}.key")
    asked = pem(run_dir, f"{name}.csr")
    extension = pem(run_dir, f"{name}.ext")
    extension.write_text(f"subjectAltName=IP:{host}")
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key)
    signed = ("-CA", pem(run_dir, "ca"), "-CAkey", pem(run_dir, "ca.key"), "-CAcreateserial")
    good = ("-days", str(days), "-out", made)
    for command in (
        ("openssl", "req", *new, "-subj", f"/CN={name}", "-out", asked),
        ("openssl", "x509", "-req", "-in", asked, "-extfile", extension, *signed, *good),
    ):
        subprocess.run(command, check=True, capture_output=True)
    pem(run_dir, f"{name}.both").write_text(key.read_text() + made.read_text())


# kazoo leaves a socket open whose handshake has failed.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        ("certificate", "ZooKeeper does not take the certificate of this client ("),
        ("expired", "ZooKeeper does not take the certificate of this client ("),
        ("authority", "the certificate of ZooKeeper is not good ("),
        ("host", "the certificate of ZooKeeper is not good ("),
        ("tls", "no answer"),
    ],
)
def test_whoever_has_no_good_certificate_does_not_get_in_and_learns_why(
    by_certificates: Lab, caplog: pytest.LogCaptureFixture, lacking: str, said: str
) -> None:
    caplog.set_level(logging.CRITICAL, "kazoo")  # a record would keep the socket
    where = by_certificates.ensemble
    assert where.tls is not None
    run_dir = by_certificates.layout.run_dir
    certify(by_certificates, "late", -1)
    late = replace(where.tls, certificate=pem(run_dir, "late"), key=pem(run_dir, "late.key"))
    wrong = {
        "certificate": replace(where.tls, certificate=None, key=None),
        "expired": late,
        "authority": replace(where.tls, ca=where.tls.certificate or where.tls.ca),
        "host": where.tls,
        "tls": None,
    }[lacking]
    hosts = where.hosts.replace("127.0.0.1", "127.1") if lacking == "host" else where.hosts
    waited: list[Waiting] = []
    stop = threading.Event()

    def wait(waiting: Waiting) -> None:
        waited.append(waiting)
        if waiting.refused or lacking == "tls":
            stop.set()

    with Session(replace(where, hosts=hosts, tls=wrong), deadline_s=5.0) as session:
        assert not session.connect(on_wait=wait, stop=stop)
    assert waited[-1].error.startswith(said)
    del session
    gc.collect()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_certificate_of_zookeeper_that_has_run_out_is_named_and_a_new_one_is_enough(
    by_certificates: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "kazoo")
    said: list[str] = []

    def wait(waiting: Waiting) -> None:
        # On a busy machine the first tries may have no answer at all.
        if waiting.refused and not said:
            certify(by_certificates, "server", 2)
            by_certificates.kill_daemon("zookeeper")
            by_certificates.start_zookeeper()
            said.append(waiting.error)

    certify(by_certificates, "server", -1)
    by_certificates.kill_daemon("zookeeper")
    by_certificates.start_zookeeper()
    with Session(by_certificates.ensemble) as session:
        assert session.connect(on_wait=wait, retry_s=1.0)
    assert said[0].startswith("the certificate of ZooKeeper is not good (certificate has expired)")
    del session
    gc.collect()
