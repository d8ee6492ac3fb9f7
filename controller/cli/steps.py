"""What ``nstorm roll`` and ``nstorm adopt`` share: one after the other, each by a command."""

import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from controller.cli.asking import operator, patient, teller
from controller.errors import CommandError
from controller.output import Output
from controller.storm.command_record import COMMANDS
from kvstore.errors import AccessError, NodeExistsError
from kvstore.printable import one_line
from kvstore.zookeeper import Session

LOOK_S = 1.0
# Held by the one command that restarts; no record of a command, so a leader passes over it.
_RESTARTS = f"{COMMANDS}/restarts"
_LOAD = re.compile(r"\d+\.\d+")  # it jitters, which is no news


def restart_alone(session: Session, verb: str) -> None:
    """Keep others from restarting anything until the session ends; refuse where somebody does."""
    try:
        session.create(_RESTARTS, f"nstorm {verb} by {operator()}".encode(), ephemeral=True)
    except NodeExistsError:
        stored = None
        with suppress(AccessError):  # of another operator
            stored = session.read(_RESTARTS)
        who = one_line(stored.data) if stored else "another command"
        raise CommandError(
            f"{who} restarts workers or hosts now, and two at once could stop too many: wait for "
            "its end. Where it was killed, try again in half a minute"
        ) from None


class Steps:
    """Waits for one after the other, and prints why and about how long it takes."""

    def __init__(self, output: Output) -> None:
        self.say = teller(output)
        self._prints_document = output is Output.JSON
        self._took_s: list[float] = []

    def say_if_read(self, line: str) -> None:
        """Print a line. Where nobody can read it, no later one fails, nor a command that prints."""
        for stream in (sys.stderr,) if self._prints_document else (sys.stdout, sys.stderr):
            try:
                print(line, file=stream, flush=True)
                return
            except OSError:  # a pipe that nobody reads, a terminal that is gone, a full disk
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

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
