"""Asks Nimbus, through a Java process that speaks its Thrift."""

import json
import select
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deploy.lab import LabError

ANSWER_LIMIT_S = 60.0


class NimbusClient:
    """One question and one answer at a time; the process starts with the first question."""

    def __init__(self, command: Sequence[str], log: Path, env: dict[str, str]) -> None:
        self._command = command
        self._log = log
        self._env = env
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def ask(self, *request: object) -> dict[str, Any]:
        """Send a request and wait for its answer.

        Raises
        ------
        LabError
            When Nimbus refuses, or nothing answers in `ANSWER_LIMIT_S`.
        """
        with self._lock:
            line = self._exchange(json.dumps(request))
        if not line:
            self.close()
            raise LabError(f"no answer from Nimbus to {request[0]!r}: see {self._log}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise LabError(f"Nimbus to {request[0]!r}: {answer['error']}")
        return answer

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()

    def _exchange(self, request: str) -> str:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(request + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            return ""
        ready, _, _ = select.select([process.stdout], [], [], ANSWER_LIMIT_S)
        return process.stdout.readline() if ready else ""

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with self._log.open("a") as log:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=self._env,
                    text=True,
                    start_new_session=True,
                )
        return self._process
