"""Whether a daemon still works: for systemd, and for ``/healthz`` and ``/readyz``."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

# Each wait of a loop is bounded far below this.
HANGS_AFTER_S = 60.0
_NOTIFY_EVERY_S = 5.0


class Pulse:
    """Takes one beat from each turn of a daemon's loop."""

    def __init__(
        self,
        environment: Mapping[str, str] = os.environ,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._now_s = now_s
        # systemd writes the first byte of an abstract name, which is 0, as @.
        path = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + path[1:] if path.startswith("@") else path
        self._notified_s = self._beat_s = now_s()
        self._waits_for: str | None = "its start"
        self.worked_at_s = 0.0  # Unix seconds, when ZooKeeper last answered; 0 if it never did

    def beat(self, waits_for: str | None = None) -> None:
        """Note that the loop runs, and what it waits for; None if it does its work."""
        self._beat_s = self._now_s()
        if waits_for is None:
            self.worked_at_s = time.time()
        if waits_for != self._waits_for:
            self._waits_for = waits_for
            self._notify(f"READY=1\nSTATUS={f'waits for {waits_for}' if waits_for else 'works'}")
        elif self._beat_s - self._notified_s >= _NOTIFY_EVERY_S:
            self._notify("")

    @property
    def hangs(self) -> str | None:
        """Return for how long the loop has not run, if that is too long."""
        still_s = self._now_s() - self._beat_s
        return f"the loop has not run for {still_s:.0f} s" if still_s > HANGS_AFTER_S else None

    @property
    def idles(self) -> str | None:
        """Return why the daemon does not do its work now."""
        return self.hangs or (f"waits for {self._waits_for}" if self._waits_for else None)

    def _notify(self, news: str) -> None:
        self._notified_s = self._beat_s
        if self._address:
            # Without waiting: the loop turns also without a listener.
            with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
                to.sendto(f"WATCHDOG=1\n{news}".encode(), socket.MSG_DONTWAIT, self._address)
