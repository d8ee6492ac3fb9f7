"""Measures what a change of placement costs a topology, side by side with Storm's own ways.

The experiment is that of N-Storm (004, section 5.2). At a fixed interval some executors, chosen at
random, go to other workers. The seconds count in which fewer tuples are acked than usual.
"""

from dataclasses import dataclass
from enum import StrEnum

from tests.bench.frame import in_turn


class Load(StrEnum):
    """How the topology is fed."""

    SATURATED = "saturated"
    STEADY = "steady"


class Way(StrEnum):
    """How executors come to another worker."""

    NONE = "no migration"
    REBALANCE = "Storm, rebalance"
    REBALANCE_NOW = "Storm, rebalance -w 0"
    RESTART = "Storm*"
    MOVE = "nstorm"


@dataclass(frozen=True, slots=True)
class System:
    """What is compared: a way, and how many executors it moves at once."""

    way: Way
    together: int = 1
    lazy_kill: bool = True

    @property
    def name(self) -> str:
        """Distinguishes it from the others."""
        lazy = "" if self.lazy_kill else " without lazy kill"
        return f"{self.way}{lazy}, M = {self.together}" if self.way is Way.MOVE else self.way.value


CONTROL = System(Way.NONE)
NO_LAZY_KILL = System(Way.MOVE, lazy_kill=False)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run is to measure.

    Attributes
    ----------
    duration_s, every_s : float
        Of a round, and from one redeployment to the next in it.
    together : tuple of int
        How many executors nstorm moves at once; each makes a system of its own.
    link : str or None
        The rate of a node's link; None for loopback.
    rate_tps : float or None
        Sentences per second of the steady load; None for 60 % of what was measured at saturation.
    others : bool
        Whether Storm's ways and nstorm without lazy kill also take their turn.
    """

    duration_s: int
    every_s: int
    together: tuple[int, ...]
    link: str | None
    loads: tuple[Load, ...]
    rounds: int
    rate_tps: float | None
    others: bool = True
    own_cores: float | None = None

    def systems(self, number: int) -> list[System]:
        """Give the systems in the order of a round: back and forth, so that none is always late."""
        ours = [System(Way.MOVE, together) for together in self.together]
        stock = [System(way) for way in (Way.REBALANCE, Way.REBALANCE_NOW, Way.RESTART)]
        others = [*stock, NO_LAZY_KILL] if self.others else []
        return in_turn([CONTROL, *others, *ours], number)


@dataclass(frozen=True, slots=True)
class Round:
    """One system for one duration.

    Attributes
    ----------
    number : int
        From 1; all systems have one of each number.
    redeployed_s : list of float
        When executors were redeployed, from the begin; one that was due while the last was still
        under way is left out.
    refused : list of str
        How moves ended that did not come about.
    acked_10ms : list of list of int
        Shape (seconds, 100).
    latency : list of (int, int)
        Acks by latency bucket, see `deploy.lab.ledger.latency_ms`.
    emitted, failed, lost, double_acked : int
        Sentences; those whose fate was not known within two message timeouts are lost, and
        those whose spout died.
    """

    load: str
    number: int
    system: str
    redeployed_s: list[float]
    moved: int
    refused: list[str]
    acked_10ms: list[list[int]]
    latency: list[tuple[int, int]]
    max_ms: float
    emitted: int
    failed: int
    lost: int
    double_acked: int
    restarts: int
    load_average: float
