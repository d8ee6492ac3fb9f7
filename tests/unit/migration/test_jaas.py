"""Reading a JAAS file: its forms, and each way in which one is wrong."""

from pathlib import Path

import pytest

from migration import ConfigError
from migration.jaas import client_login, parse

BOTH = """
/* of the cluster */
Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_storm="a"; };
Client {
  // as Storm
  org.apache.zookeeper.server.auth.DigestLoginModule required
    username="storm" password="a \\"word\\" with }; and = and // in it";
  com.sun.security.auth.module.Krb5LoginModule optional;
};
StormClient { com.sun.security.auth.module.Krb5LoginModule required
  useKeyTab=true keyTab="/etc/storm.keytab" principal="storm/host@REALM"; };
"""


def test_of_several_sections_the_first_module_of_client_counts(tmp_path: Path) -> None:
    path = tmp_path / "jaas.conf"
    path.write_text(BOTH)
    login = client_login(path)
    assert login.module == "DigestLoginModule"
    assert dict(login.options) == {
        "username": "storm",
        "password": 'a "word" with }; and = and // in it',
    }
    assert "word" not in repr(login)
    assert parse(BOTH)["StormClient"].options["principal"] == "storm/host@REALM"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"p\101ss\tword", "pAss\tword"),
        (r"\7\08\377\400\1012", "\x07\x008\xff 0A2"),
        (r"a\\b\"c\d\n", 'a\\b"cd\n'),
    ],
)
def test_what_is_escaped_is_what_java_reads(written: str, read: str) -> None:
    text = f'Client {{ a required b="{written}"; }};'
    assert parse(text)["Client"].options["b"] == read


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no section Client; its sections: none"),
        ("Server { a required; };", "has no section Client; its sections: Server"),
        ("Client { };", "section Client has no login module"),
        ("Client { a required b=; };", "a name is expected after 'required b ='"),
        ("Client { a required };", "a name is expected after"),
        ("Client { a required;", "not the end of the file"),
        ('Client { a required b="c; };', '" has no end'),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "jaas.conf"
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        client_login(path)
    assert str(path) in str(refused.value)
    assert said in str(refused.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.conf: No such file"):
        client_login(tmp_path / "none.conf")
