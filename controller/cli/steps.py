"""What ``nstorm roll`` and ``nstorm adopt`` share: one after the other, each by a command."""

import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

from controller.cli.asking import patient, teller
from controller.output import Output

LOOK_S = 1.0
_LOAD = re.compile(r"\d+\.\d+")  # it jitters, which is no news


class Steps:
    """Waits for one after the other, and prints why and about how long it takes."""

    def __init__(self, output: Output) -> None:
        self.say = teller(output)
        self._prints_document = output is Output.JSON
        self._took_s: list[float] = []

    def took(self, seconds: float) -> None:
        """Take in how long one of them has taken."""
        self._took_s.append(seconds)

    def start(self, run: str, variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start the operator's command in a shell of this machine."""
        return subprocess.Popen(
            run,
            shell=True,
            env={**os.environ, **variables},
            stdout=sys.stderr if self._prints_document else None,
        )

    def wait(
        self,
        who: str,
        place: tuple[int, int],
        why_not: Callable[[], str | None],
        limit_s: float = math.inf,
    ) -> str | None:
        """Wait for one, the first of `place` of as many as the second, and print each new reason.

        Return None once there is no reason to wait, or the reason when the limit is over.
        """
        at, of = place
        said, until_s = None, time.monotonic() + limit_s
        while (waits := patient(why_not, self.say)) is not None:
            if _LOAD.sub("", waits) != said:
                self.say(f"{who} ({at} of {of}{self._eta(of + 1 - at)}): {waits}")
                said = _LOAD.sub("", waits)
            if time.monotonic() > until_s:
                return waits
            time.sleep(LOOK_S)
        return None

    def _eta(self, left: int) -> str:
        if not self._took_s:
            return ""
        return f", about {lasting(left * sum(self._took_s) / len(self._took_s))} left"


def lasting(seconds: float) -> str:
    """Write a time for people."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
