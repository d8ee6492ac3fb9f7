"""What a lab needs whose ZooKeeper demands credentials: JAAS files, and the keys that name them."""

import secrets
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Storm's own identity, one for each role of nstorm, and one without a role.
STORM = "storm"
USERS = (STORM, "controller", "agent", "operator", "reader", "stranger")
_DIGEST = "org.apache.zookeeper.server.auth.DigestLoginModule required"
# Storm has its own copy of ZooKeeper's client.
_SHADED = "org.apache.storm.shade."
_SASL = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"


def jaas_file(run_dir: Path, user: str) -> Path:
    """Give the JAAS file by which a user logs in."""
    return run_dir / "secure" / f"{user}.jaas"


def pem(run_dir: Path, name: str) -> Path:
    """Give the file of a certificate; NAME.key has its key, and NAME.both has both."""
    return run_dir / "secure" / f"{name}.pem"


def login_options(run_dir: Path, user: str = STORM) -> tuple[str, ...]:
    """Give the options by which a JVM logs in; ZooKeeper's own user is ``server``."""
    login = f"-Djava.security.auth.login.config={jaas_file(run_dir, user)}"
    # Else ZooKeeper's clients of 3.9 use no DIGEST-MD5.
    return login, "-Dzookeeper.fips-mode=false"


def write_secured(run_dir: Path, kind: str, port: int, host: str) -> Mapping[str, Any]:
    """Write the files of all users.

    Parameters
    ----------
    kind : str
        "digest" or "tls", as in `LabOptions`.
    port, host : int, str
        Where ZooKeeper is to listen.

    Returns
    -------
    Mapping[str, Any]
        The keys that ZooKeeper's own configuration needs.
    """
    (run_dir / "secure").mkdir(mode=0o700)
    if kind == "tls":
        return _write_tls(run_dir, port, host)
    words = {user: secrets.token_hex(16) for user in USERS}
    known = " ".join(f'user_{user}="{word}"' for user, word in words.items())
    jaas_file(run_dir, "server").write_text(f"Server {{ {_DIGEST} {known}; }};\n")
    for user, word in words.items():
        section = f'Client {{\n  {_SHADED}{_DIGEST}\n  username="{user}" password="{word}";\n}};\n'
        jaas_file(run_dir, user).write_text(section)
    return {
        "authProvider.1": _SASL,
        "sessionRequireClientSASLAuth": "true",
        "clientPort": port,
        "clientPortAddress": host,
    }


def _write_tls(run_dir: Path, port: int, host: str) -> Mapping[str, Any]:
    """Write an authority, and for the server and Storm a certificate with its key."""
    authority = ("-CA", pem(run_dir, "ca"), "-CAkey", pem(run_dir, "ca.key"))
    for name in ("ca", "server", STORM):
        signed = () if name == "ca" else (*authority, "-addext", f"subjectAltName=IP:{host}")
        new = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        files = ("-keyout", pem(run_dir, f"{name}.key"), "-out", pem(run_dir, name))
        subprocess.run(
            ["openssl", "req", *new, *files, *signed, "-days", "2", "-subj", f"/CN={name}"],
            check=True,
            capture_output=True,
        )
        both = pem(run_dir, f"{name}.key").read_text() + pem(run_dir, name).read_text()
        pem(run_dir, f"{name}.both").write_text(both)
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
    """Give the keys by which agents, controllers and commands log in as Storm does."""
    if kind == "tls":
        return {
            "storm.zookeeper.ssl.enable": True,
            "storm.zookeeper.ssl.keystore.path": str(pem(run_dir, f"{STORM}.both")),
            "storm.zookeeper.ssl.keystore.password": "",
            "storm.zookeeper.ssl.truststore.path": str(pem(run_dir, "ca")),
            "storm.zookeeper.ssl.truststore.password": "",
            "storm.zookeeper.ssl.hostnameVerification": True,
            "nstorm.zookeeper.tls.ca": str(pem(run_dir, "ca")),
            "nstorm.zookeeper.tls.certificate": str(pem(run_dir, STORM)),
            "nstorm.zookeeper.tls.key": str(pem(run_dir, f"{STORM}.key")),
        }
    return {
        "java.security.auth.login.config": str(jaas_file(run_dir, STORM)),
        "storm.zookeeper.superACL": f"sasl:{STORM}",
    }
