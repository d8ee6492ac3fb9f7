"""Which ZooKeeper a session is with, who the session is there, and who may use what it creates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


class Grant(NamedTuple):
    """What one identity may do with a node: letters of ``crwda``, as ZooKeeper's own shell has."""

    scheme: str
    id: str
    may: str

    @property
    def name(self) -> str:
        return f"{self.scheme}:{self.id}"


def who_may(grants: Iterable[Grant], letter: str) -> set[str]:
    """Name those who have a right, each with its scheme."""
    return {grant.name for grant in grants if letter in grant.may}


# The whole of a node to whoever creates it, as each identity of its session that ZooKeeper knows.
CREATOR = (Grant("auth", "", "crwda"),)
OPEN = "none: whoever reaches ZooKeeper can command nstorm, see docs/security.md"
WORLD = (Grant("world", "anyone", "crwda"),)


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files of a TLS connection; certificate and key are needed where the server asks."""

    ca: Path
    certificate: Path | None = None
    key: Path | None = None
    checks_host: bool = False


@dataclass(frozen=True, slots=True)
class Ensemble:
    """A ZooKeeper; without `auth`, `sasl` and `tls` it is an open one.

    `hosts` is ``host:port``, several with commas, then the root of all nodes, if any.
    """

    hosts: str
    # As whom ZooKeeper knows us, for people; empty for nobody in particular.
    who: str = ""
    auth: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # scheme, credential
    sasl: Mapping[str, str] | None = field(default=None, repr=False)  # options of pure-sasl
    # By which the library of Kerberos gets tickets, and gets others before these run out.
    keytab: Path | None = None
    tls: Tls | None = None
    # Who may use a node that is created, by path.
    acl: Callable[[str], Sequence[Grant]] = field(default=lambda path: WORLD, compare=False)

    @property
    def is_open(self) -> bool:
        """Whether ZooKeeper cannot know who this is."""
        return not (self.auth or self.sasl or (self.tls and self.tls.certificate))

    def __str__(self) -> str:
        return self.hosts
