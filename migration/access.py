"""Who nstorm is at ZooKeeper, from Storm's own keys; and who may use which of its nodes."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kvstore.ensemble import CREATOR, WORLD, Ensemble, Grant, Tls
from migration import ConfigError, jaas
from migration.extras import pip_install
from migration.settings import PREFIX, Reader, prefixed_values
from migration.storm_yaml import storm_zookeeper
from migration.table import PAGE, rows

ROLES = ("nimbus", "controller", "agent", "operator", "reader")
_SUPER = "storm.zookeeper.superACL"
_SCHEME, _PAYLOAD = "storm.zookeeper.auth.scheme", "storm.zookeeper.auth.payload"
_LOGIN = "java.security.auth.login.config"


def parse(page: str) -> dict[str, tuple[str, ...]]:
    """Read the table of access: what each of `ROLES` may do, by the pattern of a path.

    A `ValueError` if a cell holds another letter than ``crwda``.
    """
    found = {}
    for node, *cells in rows(page, "Access"):
        may = tuple(cell.replace("–", "") for cell in cells)
        if len(may) != len(ROLES) or set("".join(may)) - set("crwda"):
            raise ValueError(f"PROTOCOL.md: the row of {node} has {cells}")
        found[node.strip("`")] = may
    return found


TABLE: Mapping[str, tuple[str, ...]] = MappingProxyType(parse(PAGE))


# Its operator's rights are those of its creator alone: this shows who asks.
COMMAND = "/nstorm/commands/<name>"


def pattern(path: str) -> str | None:
    """Find the row of a node; None for one that is not nstorm's."""
    folder, _, name = path.rpartition("/")
    if path in TABLE:
        return path
    return next((row for row in TABLE if name and row.startswith(f"{folder}/<")), None)


def acl_for(principals: Sequence[Sequence[str]]) -> Callable[[str], tuple[Grant, ...]]:
    """Make what gives each node its grants; `principals` are ``scheme:id``, by `ROLES`."""

    def acl(path: str) -> tuple[Grant, ...]:
        row = pattern(path)
        cells = TABLE[row] if row else ("crwda", *[""] * (len(ROLES) - 1))
        may: dict[str, set[str]] = {}
        for role, names, cell in zip(ROLES, principals, cells, strict=True):
            own = (role, row) == ("operator", COMMAND)
            for name in ("auth:",) if own else names:  # whom ZooKeeper knows by the session
                may.setdefault(name, set()).update(cell)
        found = []
        for name, of in may.items():
            scheme, _, identity = name.partition(":")
            found.append(Grant(scheme, identity, "".join(c for c in "crwda" if c in of)))
        return tuple(grant for grant in found if grant.may)

    return acl


def ensemble(document: Mapping[str, Any]) -> Ensemble:
    """Take out of a storm.yaml where ZooKeeper is, who we are there, and who else may what.

    A `ConfigError` names the key or file that cannot be, and what to do.
    """
    keys = prefixed_values(document, Reader.ACCESS)
    found = Ensemble(storm_zookeeper(document), tls=_tls(document, keys))
    if found.tls and found.tls.certificate:
        found = replace(found, who=f"the certificate {found.tls.certificate}")
    scheme, payload = document.get(_SCHEME), document.get(_PAYLOAD)
    login = keys.get("zookeeper.jaas") or _storms_login(document)
    if login is not None:
        found = _logged_in(found, Path(str(login)))
    elif scheme:
        if not isinstance(scheme, str) or not isinstance(payload, str) or not payload:
            raise ConfigError(f"{_PAYLOAD}: must be text where {_SCHEME} is given")
        user = payload.partition(":")[0] if scheme == "digest" else "the payload"
        found = replace(found, who=f"{scheme}:{user}", auth=((scheme, payload),))
    if found.is_open:
        if keys.get("secure") == "required":
            raise ConfigError(
                f"{PREFIX}secure: is required, and no key names credentials for ZooKeeper: set "
                f"{PREFIX}zookeeper.jaas, or Storm's {_LOGIN} or {_SCHEME}"
            )
        return replace(found, acl=lambda path: WORLD)
    principals = _principals(document, keys)
    acl = acl_for(principals) if principals else lambda path: CREATOR
    return replace(found, acl=acl)


def _principals(document: Mapping[str, Any], keys: Mapping[str, Any]) -> list[list[str]]:
    """Give the principals of each role; none where one identity has all roles."""
    given = [keys.get(f"acl.{role}") or [] for role in ROLES[1:]]
    if not any(given):
        return []
    nimbus = document.get(_SUPER)
    if not isinstance(nimbus, str):
        raise ConfigError(f"{_SUPER}: must name Nimbus, such as sasl:storm, for {PREFIX}acl.*")
    for name in [nimbus, *(name for names in given for name in names)]:
        if not re.fullmatch(r"(sasl|digest|x509|ip):\S.*", name):
            raise ConfigError(
                f"{PREFIX}acl.*, {_SUPER}: must be such as sasl:NAME, digest:USER:HASH or "
                f"x509:CN=NAME, is {name!r}"
            )
    return [[nimbus], *(names or [nimbus] for names in given)]


def _storms_login(document: Mapping[str, Any]) -> Any:
    """Find the JAAS file of Storm's JVMs on this machine."""
    prefix = f"-D{_LOGIN}="
    given = (document.get(f"{daemon}.childopts") or "" for daemon in ("supervisor", "nimbus"))
    words = [word for options in given for word in _words(options)]
    named = [word.removeprefix(prefix) for word in words if word.startswith(prefix)]
    there = [path for path in named if Path(path).exists()]
    return document.get(_LOGIN) or next(iter(there or named), None)


def _words(options: Any) -> list[str]:
    """Split the options of a daemon as `storm` does, which takes quotes off."""
    text = " ".join(map(str, options)) if isinstance(options, list) else str(options)
    try:
        return shlex.split(text)
    except ValueError:  # a quote has no end
        return text.split()


def _needs(path: Path, extra: str) -> ConfigError:
    typed = pip_install(extra)
    return ConfigError(f"{path}: needs a package: type in nstorm's folder: {typed}")


def _logged_in(found: Ensemble, path: Path) -> Ensemble:
    login = jaas.client_login(path)
    for key in ("username", "password", "principal", "keyTab"):
        if re.search(r"\$\{[^{}]+\}", login.options.get(key, "")):
            raise ConfigError(
                f"{path}: {key}: has ${{…}}, which a JVM replaces by a property of its own: write "
                f"the value itself, or name another file by {PREFIX}zookeeper.jaas"
            )
    if find_spec("puresasl") is None:
        raise _needs(path, "sasl")
    if login.module == "DigestLoginModule":
        user, password = (login.options.get(key) for key in ("username", "password"))
        if not user or password is None:
            raise ConfigError(f"{path}: section {jaas.CLIENT} has no username or no password")
        sasl = {"mechanism": "DIGEST-MD5", "username": user, "password": password}
        return replace(found, who=f"sasl:{user}", sasl=sasl)
    if login.module != "Krb5LoginModule":
        raise ConfigError(
            f"{path}: section {jaas.CLIENT} has {login.module}: nstorm knows DigestLoginModule and "
            "Krb5LoginModule"
        )
    principal, keytab = login.options.get("principal"), login.options.get("keyTab")
    if not principal or not keytab:
        raise ConfigError(f"{path}: section {jaas.CLIENT} has no principal or no keyTab")
    _refuse_unreadable(f"{path}: keyTab", Path(keytab))
    if find_spec("kerberos") is None:
        raise _needs(path, "kerberos")
    sasl = {"mechanism": "GSSAPI", "principal": principal}
    return replace(found, who=f"sasl:{principal}", sasl=sasl, keytab=Path(keytab))


def _refuse_unreadable(what: str, file: Path) -> None:
    try:
        file.open("rb").close()
    except OSError as error:
        raise ConfigError(
            f"{what}: {file}: {error.strerror}: let the user of this process read it"
        ) from None


def _tls(document: Mapping[str, Any], keys: Mapping[str, Any]) -> Tls | None:
    if not document.get("storm.zookeeper.ssl.enable"):
        return None
    files = [keys.get(f"zookeeper.tls.{name}") for name in ("ca", "certificate", "key")]
    ca, certificate, key = (None if name is None else Path(name) for name in files)
    if ca is None:
        raise ConfigError(
            f"{PREFIX}zookeeper.tls.ca: must be given where storm.zookeeper.ssl.enable is true. "
            "Make it of Storm's truststore: keytool -exportcert -rfc -keystore TRUSTSTORE -alias "
            "ALIAS -file ca.pem"
        )
    for file in filter(None, (ca, certificate, key)):
        _refuse_unreadable(f"{PREFIX}zookeeper.tls.*", file)
    checks = document.get("storm.zookeeper.ssl.hostnameVerification") is True
    return Tls(ca, certificate, key, checks)
