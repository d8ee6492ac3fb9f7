"""A ZooKeeper behind Kerberos: tickets come from the keytab, also after the KDC was away.

It needs `krb5kdc`, `kdb5_util` and `kadmin.local` (Debian's krb5-kdc and krb5-admin-server) on the
path, and the packages of `nstorm[kerberos]`.
"""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from deploy.lab.cluster import plan_lab
from deploy.lab.layout import free_ports
from deploy.lab.secured import jaas_file
from kvstore.ensemble import Ensemble, Grant
from kvstore.zookeeper import Session, Waiting
from migration.access import ensemble

pytestmark = pytest.mark.zookeeper
TOOLS = ("krb5kdc", "kdb5_util", "kadmin.local")
KRB5 = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"


@dataclass
class Kdc:
    """A realm of its own, on loopback."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def conf(self) -> Path:
        return self.folder / "krb5.conf"

    def make(self) -> None:
        kdc_conf = self.folder / "kdc.conf"
        self.conf.write_text(
            "[libdefaults]\n default_realm = LAB\n dns_lookup_kdc = false\n rdns = false\n"
            " dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
            f"[realms]\n LAB = {{\n  kdc = 127.0.0.1:{self.port}\n }}\n"
        )
        modules = os.environ.get("NSTORM_KDB_MODULES")  # where Debian's packages are only unpacked
        kdc_conf.write_text(
            f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{self.port}\n"
            f" kdc_tcp_listen = 127.0.0.1:{self.port}\n"
            f"[realms]\n LAB = {{\n  database_name = {self.folder}/principal\n"
            f"  key_stash_file = {self.folder}/stash\n  max_life = 1h\n }}\n"
            + (f"[dbmodules]\n db_module_dir = {modules}\n" if modules else "")
        )
        self.tool("kdb5_util", "create", "-s", "-r", "LAB", "-P", "of-the-lab")
        for principal in ("zookeeper/127.0.0.1", "nstorm/here"):
            keytab = self.folder / f"{principal.partition('/')[0]}.keytab"
            self.tool("kadmin.local", "-r", "LAB", "-q", f"addprinc -randkey {principal}")
            self.tool("kadmin.local", "-r", "LAB", "-q", f"ktadd -k {keytab} {principal}")
        self.start()

    @property
    def env(self) -> dict[str, str]:
        profile = {"KRB5_CONFIG": str(self.conf), "KRB5_KDC_PROFILE": f"{self.folder}/kdc.conf"}
        return {**os.environ, **profile}

    def tool(self, *command: str) -> None:
        subprocess.run(command, env=self.env, check=True, capture_output=True)

    def start(self) -> None:
        self.process = subprocess.Popen(["krb5kdc", "-n", "-r", "LAB"], env=self.env)

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait()


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    missing += [] if find_spec("kerberos") else ["nstorm[kerberos]"]
    if missing:
        pytest.skip(f"no {', '.join(missing)} here")
    made = Kdc(tmp_path_factory.mktemp("kdc"), free_ports(1)[0])
    made.make()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def where(kdc: Kdc) -> Iterator[Ensemble]:
    """Give ZooKeeper as the storm.yaml of an agent names it."""
    lab = plan_lab(f"kerberos-{os.getpid()}", nodes=0, secure="digest")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", f"-Djava.security.krb5.conf={kdc.conf}")
        patch.setenv("KRB5_CONFIG", str(kdc.conf))
        for name in ("KRB5_CLIENT_KTNAME", "KRB5CCNAME"):
            patch.setenv(name, "")
        try:
            lab.prepare(owned=True)
            run_dir = lab.layout.run_dir
            jaas_file(run_dir, "server").write_text(
                f'Server {{ {KRB5} principal="zookeeper/127.0.0.1@LAB"\n'
                f'keyTab="{kdc.folder}/zookeeper.keytab"; }};\n'
            )
            jaas_file(run_dir, "agent").write_text(
                f'Client {{ {KRB5} principal="nstorm/here@LAB"\n'
                f'keyTab="{kdc.folder}/nstorm.keytab"; }};\n'
            )
            lab.start_zookeeper()
            yield ensemble(
                {
                    "storm.zookeeper.servers": [lab.layout.zookeeper_host],
                    "storm.zookeeper.port": lab.layout.zookeeper_port,
                    "storm.zookeeper.root": "",
                    "nstorm.zookeeper.jaas": str(jaas_file(run_dir, "agent")),
                }
            )
        finally:
            lab.down()
            shutil.rmtree(lab.layout.run_dir)


def test_a_keytab_lets_in_and_is_the_owner_of_what_it_creates(where: Ensemble) -> None:
    assert where.who == "sasl:nstorm/here@LAB"
    with Session(where) as session:
        assert session.connect()
        session.create("/nstorm/plans")
        (grant,) = session.grants("/nstorm/plans")
        assert grant == Grant("sasl", "nstorm/here@LAB", "crwda")


def test_a_kdc_that_is_away_is_named_and_its_return_is_enough(kdc: Kdc, where: Ensemble) -> None:
    said: list[Waiting] = []

    def wait(waiting: Waiting) -> None:
        said.append(waiting)
        if len(said) == 1:
            kdc.start()

    kdc.stop()
    cold = replace(where)
    with pytest.MonkeyPatch.context() as patch, Session(cold) as session:
        # Else the tickets of the test before would do.
        patch.setenv("KRB5CCNAME", "MEMORY:empty")
        try:
            assert session.connect(on_wait=wait, retry_s=1.0, stop=threading.Event())
        finally:
            kdc.stop()
    assert said[0].refused
    assert said[0].error.startswith("ZooKeeper refuses the credentials of sasl:nstorm/here@LAB (")
    assert "KDC" in said[0].error
