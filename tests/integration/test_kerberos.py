"""A ZooKeeper behind Kerberos: tickets come from the keytab, also after the KDC was away."""

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from deploy.lab.cluster import Lab, only_zookeeper
from deploy.lab.kerberos import lacking
from deploy.lab.secured import jaas_file
from kvstore.ensemble import Ensemble, Grant
from kvstore.zookeeper import Session, Waiting
from migration.access import ensemble

pytestmark = pytest.mark.zookeeper


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    if missing := lacking():
        pytest.skip(f"no {', '.join(missing)} here")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("KRB5_CONFIG", "KRB5_CLIENT_KTNAME", "KRB5CCNAME"):
            patch.setenv(name, "")
        with only_zookeeper("kerberos", "kerberos") as made:
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
