"""Trouble for a lab: input with bursts or days, and a neighbour of Storm that burns CPU."""

import math
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from deploy.lab import LabError
from deploy.lab.layout import LabLayout
from deploy.lab.ledger import Ledger

# Spouts read their rate five times a second.
_STEP_S = 1.0
# Burns a share of each tenth of a second of one core.
_BURN = """
import sys, time
busy_s, end_s = float(sys.argv[1]) / 10, time.monotonic() + float(sys.argv[2])
while (now_s := time.monotonic()) < end_s:
    while time.monotonic() < now_s + busy_s:
        pass
    time.sleep(0.1 - busy_s)
"""


class Shape(StrEnum):
    """How input changes."""

    BURST = "burst"
    DAY = "day"


@dataclass(frozen=True, slots=True)
class Waves:
    """Input that changes by time.

    Attributes
    ----------
    rate_tps : float
        The least, in tuples per second.
    times : float
        The most, as times the least.
    lasts_s : float
        How long a burst lasts; a day has none.
    every_s : float
        From the end of a burst to that of the next, or from one night to the next.
    """

    shape: Shape
    rate_tps: float
    times: float
    lasts_s: float
    every_s: float

    def at(self, at_s: float) -> float:
        """Compute the input at a time, in tuples per second."""
        gone_s = at_s % self.every_s
        if self.shape is Shape.DAY:
            high = (1 - math.cos(2 * math.pi * gone_s / self.every_s)) / 2
        else:
            high = 1.0 if gone_s >= self.every_s - self.lasts_s else 0.0
        return self.rate_tps * (1 + (self.times - 1) * high)


def feed(ledger: Ledger, rate: Callable[[float], float], seconds: float) -> None:
    """Let the input follow a rate by time; at the end, or at Ctrl-C, it is as before.

    Raises
    ------
    LabError
        There is no such topology.
    """
    if not ledger.directory.exists():
        raise LabError(f"no topology {ledger.directory.name!r} was ever submitted to this lab")
    before_tps, begin_s = ledger.rate(), time.monotonic()
    try:
        while (gone_s := time.monotonic() - begin_s) < seconds:
            ledger.set_rate(rate(gone_s))
            time.sleep(min(_STEP_S, seconds - gone_s))
    finally:
        ledger.set_rate(before_tps)


def burning(layout: LabLayout, host: str, cores: float, seconds: float) -> list[list[str]]:
    """Give the commands that burn CPU on a node, one for each core that is begun.

    Raises
    ------
    LabError
        The lab has no node at this address.
    """
    hosts = [node.host for node in layout.nodes]
    if host not in hosts:
        raise LabError(f"no node has the address {host}: there are {', '.join(hosts)}")
    network = layout.options.network
    inside = [] if network is None else network.inside(host)
    shares = [min(1.0, cores - begun) for begun in range(math.ceil(cores))]
    return [[*inside, sys.executable, "-c", _BURN, str(share), str(seconds)] for share in shares]


def burn(commands: list[list[str]]) -> None:
    """Run commands until all have ended, or until Ctrl-C, which ends them.

    Raises
    ------
    LabError
        One has failed; the others are ended.
    """
    running: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            running.append(subprocess.Popen(command))
        for process in running:
            if code := process.wait():
                raise LabError(f"what burns CPU has failed, exit code {code}")
    finally:
        for process in running:
            process.kill()
            process.wait()
