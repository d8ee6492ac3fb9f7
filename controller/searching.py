"""Makes the searches of a policy in processes of their own, parallel to the cycle.

A thread would not do: a search keeps the interpreter's lock for as long as it runs. As a program it
makes one: the question comes on standard input, the answer goes out.
"""

import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from typing import IO, Any, NamedTuple

from controller.core.policy import SEARCH_LIMIT_S, Question
from kvstore.logs import log


class _Running(NamedTuple):
    question: Question
    process: "subprocess.Popen[bytes]"
    output: IO[bytes]
    begun_s: float  # monotonic

    @property
    def is_late(self) -> bool:
        return time.monotonic() - self.begun_s > SEARCH_LIMIT_S


class SubprocessSearches:
    """Searches in processes of their own, so that the cycle goes on; one search a topology.

    A process ends with its search, so nothing is left running when the controller dies.
    """

    def __init__(self) -> None:
        # The other cores are for what the machine is there for, and for the cycle.
        self._most = max(1, len(os.sched_getaffinity(0)) // 2)
        self._running: dict[str, _Running] = {}

    def begin(self, questions: Iterable[Question]) -> None:
        """Start searches, but for topologies of which a search runs already.

        They take half the cores at most; the policy asks again in the next cycle.
        """
        for question in questions:
            topology = question.topology
            if topology not in self._running and len(self._running) < self._most:
                self._running[topology] = _Running(
                    question, *self._start(question), time.monotonic()
                )

    @property
    def begun_s(self) -> tuple[tuple[str, float], ...]:
        """The topologies of which a search runs, and since when, in monotonic seconds."""
        return tuple((topology, one.begun_s) for topology, one in self._running.items())

    def take_answers(self) -> tuple[tuple[str, Any], ...]:
        """Fetch the answers, by topology, of the searches that have ended since the last call.

        Where the process failed, or took too long, the question has the answer.
        """
        for one in self._running.values():
            if one.is_late:
                one.process.kill()
        ended = [t for t, one in self._running.items() if one.process.poll() is not None]
        return tuple((topology, self._answer(self._running.pop(topology))) for topology in ended)

    @staticmethod
    def _answer(one: _Running) -> Any:
        if one.is_late and one.process.returncode != 0:
            topology = one.question.topology
            log.warning("search_took_too_long", topology=topology, limit_s=SEARCH_LIMIT_S)
        with one.output as output:
            output.seek(0)
            try:
                return pickle.load(output) if one.process.returncode == 0 else one.question.failed
            except Exception:  # its disk was full, or what it found cannot be read
                return one.question.failed

    def close(self) -> None:
        for one in self._running.values():
            one.process.kill()
            one.process.wait()
            one.output.close()
        self._running.clear()

    @staticmethod
    def _start(question: Question) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
        # Files, not pipes: a pipe would make the cycle wait until the process has started to read.
        with tempfile.TemporaryFile() as asked:
            pickle.dump(question, asked)
            asked.seek(0)
            output = tempfile.TemporaryFile()  # noqa: SIM115  # closed when the answer is read
            command = [sys.executable, "-P", "-m", "controller.searching"]
            return subprocess.Popen(command, stdin=asked, stdout=output), output


def main() -> None:
    os.setpriority(os.PRIO_PROCESS, 0, 19)  # whatever the service's own is
    question = pickle.load(sys.stdin.buffer)
    pickle.dump(question.answer(), sys.stdout.buffer)


if __name__ == "__main__":
    main()
