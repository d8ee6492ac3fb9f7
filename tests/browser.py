"""Drives a headless Chromium through its debugging pipe."""

import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil

CHROMIUM = shutil.which("chromium")
_START = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--remote-debugging-pipe",
)


class Browser:
    """One page of a browser."""

    def __init__(self, to: int, come: int) -> None:
        self._to = to
        self._from = come
        self._number = itertools.count(1)
        self._rest = b""
        self._session: dict[str, str] = {}
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        found = self._ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": found["sessionId"]}

    def _ask(self, method: str, **params: Any) -> Any:
        """Send a command of the DevTools protocol, and give its result."""
        number = next(self._number)
        message = {"id": number, "method": method, "params": params} | self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._rest:
                read = os.read(self._from, 1 << 20)
                assert read, "the browser has ended"
                self._rest += read
            line, _, self._rest = self._rest.partition(b"\0")
            answer = json.loads(line)
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def open(self, url: str) -> None:
        self._ask("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """Evaluate an expression in the page; a promise is awaited."""
        found = self._ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, script: str, limit_s: float = 60.0) -> Any:
        """Wait until an expression is true, and give it."""
        until_s = time.monotonic() + limit_s
        while not (found := self.run(script)):
            assert time.monotonic() < until_s, f"not true within {limit_s:.0f} s: {script}"
            time.sleep(0.1)
        return found


@contextmanager
def browser() -> Iterator[Browser]:
    """Run a Chromium until the end of the block."""
    assert CHROMIUM is not None, "there is no chromium"
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()

    # Its pipe is at the numbers 3 and 4.
    pipe = f'exec "$0" "$@" 3<&{to_read} 4>&{from_write}'
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            ["bash", "-c", pipe, CHROMIUM, *_START, f"--user-data-dir={folder}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(to_read, from_write),
            env={**os.environ, "TMPDIR": folder},  # it leaves a folder there
        )
        os.close(to_read)
        os.close(from_write)
        try:
            one = Browser(to_write, from_read)
            yield one
        finally:
            children = psutil.Process(process.pid).children(recursive=True)
            process.terminate()
            process.wait(timeout=30)
            psutil.wait_procs(children, timeout=30)
            os.close(to_write)
            os.close(from_read)
