"""What a lab needs whose ZooKeeper demands credentials: files, and the keys that name them."""

import secrets
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deploy.lab import LabError
from deploy.lab.kerberos import REALM, Kdc, lacking

# Storm's own identity, one for each role of nstorm, and one without a role.
STORM = "storm"
USERS = (STORM, "controller", "agent", "operator", "reader", "stranger")
_DIGEST = "org.apache.zookeeper.server.auth.DigestLoginModule required"
# Storm has its own copy of ZooKeeper's client.
_SHADED = "org.apache.storm.shade."
_SASL = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
# Of the stores of keys that Storm reads; it has keys for its servers and for its clients.
_WORD = "of-the-lab"
_ENDS = ("", ".client")


def jaas_file(run_dir: Path, user: str) -> Path:
    """Give the JAAS file by which a user logs in."""
    return run_dir / "secure" / f"{user}.jaas"


def pem(run_dir: Path, name: str) -> Path:
    """Give the file of a certificate; NAME.key has its key, and NAME.both has both."""
    return run_dir / "secure" / f"{name}.pem"


def kdc(run_dir: Path, host: str, port: int) -> Kdc:
    """Give the realm of a lab; its KDC listens where ZooKeeper is, on another port."""
    return Kdc(run_dir / "secure", host, port)


def login_options(run_dir: Path, kind: str, host: str, user: str = STORM) -> tuple[str, ...]:
    """Give the options by which a JVM logs in; ZooKeeper's own user is ``server``.

    With certificates the workers of Storm 2.8.3 need one to connect. Their Netty compares a
    certificate with its host's name, which Storm does not give.
    """
    if kind == "tls":
        return (f"-D{_SHADED}io.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",)
    login = f"-Djava.security.auth.login.config={jaas_file(run_dir, user)}"
    if kind == "kerberos":
        realm = kdc(run_dir, host, 0)
        principal = f"zookeeper/{host}@{REALM}"  # else Java asks for that of "localhost"
        krb5 = f"-Djava.security.krb5.conf={realm.conf}"
        return login, krb5, f"-Dzookeeper.server.principal={principal}"
    # Else ZooKeeper's clients of 3.9 use no DIGEST-MD5.
    return login, "-Dzookeeper.fips-mode=false"


def write_secured(
    run_dir: Path, kind: str, port: int, host: str, kdc_port: int
) -> Mapping[str, Any]:
    """Write the files of all users.

    Parameters
    ----------
    kind : str
        As in `LabOptions`.
    port, host : int, str
        Where ZooKeeper is to listen.
    kdc_port : int
        Where a KDC listens, if there is one.

    Returns
    -------
    Mapping[str, Any]
        The keys that ZooKeeper's own configuration needs.
    """
    (run_dir / "secure").mkdir(mode=0o700)
    if kind == "tls":
        return _write_tls(run_dir, port, host)
    if kind == "kerberos":
        _write_realm(run_dir, kdc(run_dir, host, kdc_port))
    else:
        _write_passwords(run_dir)
    return {
        "authProvider.1": _SASL,
        "sessionRequireClientSASLAuth": "true",
        "clientPort": port,
        "clientPortAddress": host,
    }


def _write_passwords(run_dir: Path) -> None:
    words = {user: secrets.token_hex(16) for user in USERS}
    known = " ".join(f'user_{user}="{word}"' for user, word in words.items())
    jaas_file(run_dir, "server").write_text(f"Server {{ {_DIGEST} {known}; }};\n")
    for user, word in words.items():
        section = f'Client {{\n  {_SHADED}{_DIGEST}\n  username="{user}" password="{word}";\n}};\n'
        jaas_file(run_dir, user).write_text(section)


def _write_realm(run_dir: Path, realm: Kdc) -> None:
    if missing := lacking():
        raise LabError(f"--secure kerberos: no {', '.join(missing)} on this machine")
    zookeeper = f"zookeeper/{realm.host}"
    realm.make([zookeeper, *USERS])
    jaas_file(run_dir, "server").write_text(realm.section("Server", zookeeper))
    for user in USERS:
        jaas_file(run_dir, user).write_text(realm.section("Client", user))


def _write_tls(run_dir: Path, port: int, host: str) -> Mapping[str, Any]:
    """Write an authority, and for the server and Storm a certificate with its key."""
    # As Java calls an address of the loopback, whatever it was given.
    names = f"subjectAltName=IP:{host},DNS:localhost"
    authority = ("-CA", pem(run_dir, "ca"), "-CAkey", pem(run_dir, "ca.key"))
    for name in ("ca", "server", STORM):
        signed = () if name == "ca" else (*authority, "-addext", names)
        new = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        files = ("-keyout", pem(run_dir, f"{name}.key"), "-out", pem(run_dir, name))
        subprocess.run(
            ["openssl", "req", *new, *files, *signed, "-days", "2", "-subj", f"/CN={name}"],
            check=True,
            capture_output=True,
        )
        both = pem(run_dir, f"{name}.key").read_text() + pem(run_dir, name).read_text()
        pem(run_dir, f"{name}.both").write_text(both)
    # Storm reads Java's stores of keys alone.
    alike = ("-noprompt", "-storepass", _WORD, "-storetype", "PKCS12", "-keystore")
    keys, trusts = (pem(run_dir, name).with_suffix(".p12") for name in (STORM, "ca"))
    exported = ("-in", pem(run_dir, f"{STORM}.both"), "-out", keys, "-passout", f"pass:{_WORD}")
    for command in (
        ("openssl", "pkcs12", "-export", *exported),
        ("keytool", "-importcert", *alike, trusts, "-file", pem(run_dir, "ca"), "-alias", "ca"),
    ):
        subprocess.run(command, check=True, capture_output=True)
    return {
        "secureClientPort": port,
        "secureClientPortAddress": host,
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "authProvider.x509": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
        "ssl.keyStore.location": pem(run_dir, "server.both"),
        "ssl.trustStore.location": pem(run_dir, "ca"),
        "ssl.clientAuth": "need",
        # Of the client's name: its certificate counts.
        "ssl.hostnameVerification": "false",
    }


def storm_keys(run_dir: Path, kind: str) -> Mapping[str, Any]:
    """Give the keys of a storm.yaml: who logs in at ZooKeeper, and what guards Storm's connections.

    Between workers these have SASL, or with certificates TLS.
    """
    if kind == "tls":
        stores = {
            f"{store}.{part}": value
            for store, name in (("keystore", STORM), ("truststore", "ca"))
            for part, value in (
                ("path", str(pem(run_dir, name).with_suffix(".p12"))),
                ("password", _WORD),
            )
        }
        of_storm = ("storm.zookeeper.ssl", *(f"storm.messaging.netty.tls{end}" for end in _ENDS))
        return {
            "storm.zookeeper.ssl.enable": True,
            "storm.zookeeper.ssl.hostnameVerification": True,
            "storm.messaging.netty.tls.enable": True,
            **{f"{prefix}.{key}": value for prefix in of_storm for key, value in stores.items()},
            "nstorm.zookeeper.tls.ca": str(pem(run_dir, "ca")),
            "nstorm.zookeeper.tls.certificate": str(pem(run_dir, STORM)),
            "nstorm.zookeeper.tls.key": str(pem(run_dir, f"{STORM}.key")),
        }
    realm = f"@{REALM}" if kind == "kerberos" else ""
    return {
        "java.security.auth.login.config": str(jaas_file(run_dir, STORM)),
        "storm.zookeeper.superACL": f"sasl:{STORM}{realm}",
        "storm.messaging.netty.authentication": True,
    }
