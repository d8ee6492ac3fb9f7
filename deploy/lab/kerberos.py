"""A realm of Kerberos of the lab's own, on loopback.

It needs `krb5kdc`, `kdb5_util` and `kadmin.local` (Debian's krb5-kdc and krb5-admin-server) on the
path, and the packages of `nstorm[kerberos]`.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

REALM = "LAB"
_TOOLS = ("krb5kdc", "kdb5_util", "kadmin.local")
_LOGIN = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"


def lacking() -> list[str]:
    """Name what this machine lacks for a realm."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    return missing + ([] if find_spec("kerberos") else ["nstorm[kerberos]"])


@dataclass(frozen=True, slots=True)
class Kdc:
    """A key distribution centre; its files are in a folder that is there."""

    folder: Path
    host: str
    port: int

    @property
    def conf(self) -> Path:
        """The krb5.conf of its clients."""
        return self.folder / "krb5.conf"

    @property
    def command(self) -> list[str]:
        """Give the command that runs it, with its folder in it, as all processes of a lab have."""
        return ["krb5kdc", "-n", "-r", REALM, "-P", f"{self.folder}/kdc.pid"]

    @property
    def env(self) -> Mapping[str, str]:
        """What its own programs have to be given."""
        return {"KRB5_CONFIG": str(self.conf), "KRB5_KDC_PROFILE": f"{self.folder}/kdc.conf"}

    def keytab(self, principal: str) -> Path:
        """Give the file with the key of a principal."""
        return self.folder / f"{principal.replace('/', '-')}.keytab"

    def section(self, name: str, principal: str) -> str:
        """Write the section of a JAAS file by which a principal logs in."""
        return (
            f'{name} {{ {_LOGIN} principal="{principal}@{REALM}"\n'
            f'keyTab="{self.keytab(principal)}"; }};\n'
        )

    def make(self, principals: Iterable[str]) -> None:
        """Write the realm, with a keytab for each principal."""
        at = f"{self.host}:{self.port}"
        self.conf.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n rdns = false\n"
            " dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = {at}\n }}\n"
        )
        modules = os.environ.get("NSTORM_KDB_MODULES")  # where Debian's packages are only unpacked
        (self.folder / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = {at}\n kdc_tcp_listen = {at}\n"
            f"[realms]\n {REALM} = {{\n  database_name = {self.folder}/principal\n"
            f"  key_stash_file = {self.folder}/stash\n  max_life = 1h\n }}\n"
            + (f"[dbmodules]\n db_module_dir = {modules}\n" if modules else "")
        )
        self._tool("kdb5_util", "create", "-s", "-r", REALM, "-P", "of-the-lab")
        for principal in principals:
            for ask in ("addprinc -randkey", f"ktadd -k {self.keytab(principal)}"):
                self.ask(f"{ask} {principal}")

    def ask(self, query: str) -> None:
        """Let the realm's own tool do something, which counts at once."""
        self._tool("kadmin.local", "-r", REALM, "-q", query)

    def _tool(self, *command: str) -> None:
        subprocess.run(command, env={**os.environ, **self.env}, check=True, capture_output=True)
