"""A transfer that nobody begins ends."""

import subprocess
import sys

from tests.transfer import _RECEIVER


def test_a_receiver_ends_though_nobody_comes() -> None:
    quick = _RECEIVER.replace("settimeout(60)", "settimeout(0.1)")
    command = [sys.executable, "-c", quick, "127.0.0.9"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert "TimeoutError" in done.stderr
