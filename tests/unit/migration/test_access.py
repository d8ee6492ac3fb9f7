"""Who nstorm is at ZooKeeper by a storm.yaml, and what the table of access grants."""

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from kvstore.ensemble import CREATOR, WORLD, Grant
from migration import ConfigError, wire
from migration.access import ROLES, TABLE, acl_for, ensemble, parse, pattern

JAAS = 'Client { x.DigestLoginModule required username="storm" password="secret"; };'


def test_without_credentials_all_is_open() -> None:
    found = ensemble({})
    assert (found.hosts, found.is_open, found.who) == ("localhost:2181/storm", True, "")
    assert found.acl("/nstorm/plans") == WORLD


def test_storms_own_digest_is_taken() -> None:
    found = ensemble(
        {"storm.zookeeper.auth.scheme": "digest", "storm.zookeeper.auth.payload": "storm:secret"}
    )
    assert (found.is_open, found.who) == (False, "digest:storm")
    assert found.auth == (("digest", "storm:secret"),)
    assert found.acl("/nstorm/plans") == CREATOR
    assert "secret" not in repr(found)


OPTION = "-Djava.security.auth.login.config"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("nstorm.zookeeper.jaas", "{}"),
        ("java.security.auth.login.config", "{}"),
        ("supervisor.childopts", f"-Xmx1g {OPTION}={{}}"),
        ("supervisor.childopts", f'-Xmx1g "{OPTION}={{}}"'),
        ("nimbus.childopts", f"{OPTION}='{{}}' -Xmx1g"),
        ("nimbus.childopts", f'{OPTION}={{}} -Dx="'),
        ("nimbus.childopts", ["-Xmx1g", f"{OPTION}={{}}", "-Dx=y"]),
    ],
)
def test_a_jaas_file_is_found_where_storm_has_it(
    tmp_path: Path, key: str, value: str | list[str]
) -> None:
    path = tmp_path / "jaas.conf"
    path.write_text(JAAS)
    made = [one.format(path) for one in ([value] if isinstance(value, str) else value)]
    found = ensemble({key: made[0] if isinstance(value, str) else made})
    assert found.who == "sasl:storm"
    assert found.sasl == {"mechanism": "DIGEST-MD5", "username": "storm", "password": "secret"}
    assert "secret" not in repr(found)


def test_what_a_jvm_leaves_as_it_is_may_be_in_a_password(tmp_path: Path) -> None:
    path = tmp_path / "jaas.conf"
    path.write_text(JAAS.replace("secret", "a${b"))
    found = ensemble({"nstorm.zookeeper.jaas": str(path)})
    assert found.sasl == {"mechanism": "DIGEST-MD5", "username": "storm", "password": "a${b"}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"nstorm.secure": "required"}, "nstorm.secure: is required, and no key names credentials"),
        ({"nstorm.secure": "maybe"}, "nstorm.secure: must be one of required, is 'maybe'"),
        ({"nstorm.zookeeper.jaas": "/no/jaas"}, "/no/jaas: No such file"),
        ({"storm.zookeeper.auth.scheme": "digest"}, "storm.zookeeper.auth.payload: must be text"),
        ({"storm.zookeeper.ssl.enable": True}, "nstorm.zookeeper.tls.ca: must be given"),
        (
            {"storm.zookeeper.ssl.enable": True, "nstorm.zookeeper.tls.ca": "/no/ca.pem"},
            "/no/ca.pem: No such file",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(document: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        ensemble(document)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ('Krb5LoginModule required principal="a@B"', "has no principal or no keyTab"),
        (
            'Krb5LoginModule required principal="a@B" keyTab="/no/keytab"',
            "keyTab: /no/keytab: No such file or directory: let the user of this process read it",
        ),
        ('DigestLoginModule required username="a"', "has no username or no password"),
        (
            'Krb5LoginModule required principal="a@B" keyTab="${user.home}/k"',
            "keyTab: has ${…}, which a JVM replaces by a property of its own: write the value",
        ),
        ("OtherModule required", "has OtherModule: nstorm knows DigestLoginModule and Krb5Login"),
    ],
)
def test_a_section_that_is_not_enough_is_refused(tmp_path: Path, module: str, said: str) -> None:
    path = tmp_path / "jaas.conf"
    path.write_text(f"Client {{ x.{module}; }};")
    with pytest.raises(ConfigError) as refused:
        ensemble({"nstorm.zookeeper.jaas": str(path)})
    assert str(path) in str(refused.value)
    assert said in str(refused.value)


def test_a_keytab_that_this_user_cannot_read_is_named() -> None:
    """Root reads everything, so a child does it as another user."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        jaas, keytab = Path(folder) / "jaas.conf", Path(folder) / "agent.keytab"
        keytab.touch(mode=0o000)
        jaas.write_text(
            f'Client {{ x.Krb5LoginModule required principal="a@B" keyTab="{keytab}"; }};'
        )
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                if os.geteuid() == 0:
                    os.setgroups([])
                    os.setuid(65534)
                ensemble({"nstorm.zookeeper.jaas": str(jaas)})
            except BaseException as error:
                os.write(write, f"{type(error).__name__}: {error}".encode())
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read) as said:
            assert said.read() == (
                f"ConfigError: {jaas}: keyTab: {keytab}: Permission denied: "
                "let the user of this process read it"
            )
        os.waitpid(child, 0)


SECURED = {
    "storm.zookeeper.auth.scheme": "digest",
    "storm.zookeeper.auth.payload": "storm:secret",
    "storm.zookeeper.superACL": "sasl:storm",
}


def test_roles_have_what_the_table_gives_them() -> None:
    found = ensemble(
        {**SECURED, "nstorm.acl.agent": ["sasl:agent"], "nstorm.acl.reader": ["x509:CN=you:me"]}
    )
    assert found.acl("/nstorm/acks/s1") == (
        Grant("sasl", "storm", "crwda"),
        Grant("sasl", "agent", "rw"),
        Grant("x509", "CN=you:me", "r"),
    )
    assert found.acl("/nstorm/of-nobody") == (Grant("sasl", "storm", "crwda"),)


@pytest.mark.parametrize("name", ["agent", "world:anyone", "sasl:", "sasl: "])
def test_a_principal_has_a_scheme_that_names_somebody(name: str) -> None:
    with pytest.raises(ConfigError, match="must be such as sasl:NAME"):
        ensemble({**SECURED, "nstorm.acl.agent": [name]})


def test_roles_need_the_name_of_nimbus() -> None:
    with pytest.raises(ConfigError, match="superACL: must name Nimbus"):
        ensemble({**SECURED, "storm.zookeeper.superACL": None, "nstorm.acl.agent": ["sasl:agent"]})


def test_every_node_of_the_wire_has_a_row() -> None:
    folders = (wire.TOPOLOGIES, wire.PLANS, wire.ACKS, wire.LOAD, wire.OPENS, wire.LEADER)
    for path in (wire.ROOT, wire.CLUSTER, wire.EPOCH, wire.NIMBUS, wire.NODES, *folders):
        assert pattern(path) == path
    for folder in folders:
        assert (pattern(f"{folder}/a") or "").startswith(f"{folder}/<")
    assert pattern("/nstorm/else") is None
    assert pattern("/storms") is None


def test_only_nimbus_administers() -> None:
    assert {row[0] for row in TABLE.values()} == {"crwda"}
    assert not any("a" in cell for row in TABLE.values() for cell in row[1:])


def test_of_one_identity_in_several_roles_the_rights_add_up() -> None:
    one = acl_for([["sasl:storm"]] * len(ROLES))
    assert one("/nstorm/acks/s1") == (Grant("sasl", "storm", "crwda"),)


def test_an_odd_row_is_refused() -> None:
    page = "## Access\n\n| node | a |\n|---|---|\n| `/nstorm` | crx | r | r | r | r |\n"
    with pytest.raises(ValueError, match="the row of `/nstorm`"):
        parse(page)
