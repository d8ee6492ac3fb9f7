"""Runs a search for a target: here and now, or in a process of its own beside the cycle.

A thread would not do: annealing keeps the interpreter's lock for as long as it runs.
"""

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import IO

from controller.core.classify import Limits
from controller.core.cluster import Cluster, LoadSnapshot
from controller.policies.partition.adopt import find
from controller.policies.partition.goal import Answer
from controller.policies.partition.problem import TargetOptions


@dataclass(frozen=True, slots=True)
class Question:
    cluster: Cluster
    snapshot: LoadSnapshot
    limits: Limits
    options: TargetOptions
    seen: frozenset[int]

    def answer(self) -> Answer:
        return find(self.cluster, self.snapshot, self.limits, self.options, self.seen)


# Gives the answer once it is there; None as long as it is not.
Search = Callable[[Question], Answer | None]


def search_inline(question: Question) -> Answer:
    """Search here and now: for files, simulations and replays with other settings."""
    return question.answer()


class PendingSearches:
    """Gives the policy the answers that have come, and notes the questions that have none."""

    def __init__(self, answers: Iterable[tuple[str, Answer]]) -> None:
        self.answers = list(answers)
        self.questions: list[Question] = []

    def __call__(self, question: Question) -> Answer | None:
        for row, (topology, answer) in enumerate(self.answers):
            if topology == question.snapshot.topology:
                del self.answers[row]
                return answer
        self.questions.append(question)
        return None


class SubprocessSearches:
    """Searches in processes of their own, so that the cycle goes on; one search a topology.

    A process ends with its search, so nothing is left running when the controller dies.
    """

    def __init__(self) -> None:
        # The other cores are for what the machine is there for, and for the cycle.
        self._most = max(1, len(os.sched_getaffinity(0)) // 2)
        self._running: dict[str, tuple[subprocess.Popen[bytes], IO[bytes]]] = {}

    def begin(self, questions: Iterable[Question]) -> None:
        """Start searches, but for topologies of which a search runs already.

        They take half the cores at most; the policy asks again in the next cycle.
        """
        for question in questions:
            topology = question.snapshot.topology
            if topology not in self._running and len(self._running) < self._most:
                self._running[topology] = self._start(question)

    def take_answers(self) -> tuple[tuple[str, Answer], ...]:
        """Fetch the answers, by topology, of the searches that have ended since the last call.

        Where the process failed, the answer has no target.
        """
        ended = [t for t, (process, _) in self._running.items() if process.poll() is not None]
        return tuple((topology, self._answer(*self._running.pop(topology))) for topology in ended)

    @staticmethod
    def _answer(process: "subprocess.Popen[bytes]", output: IO[bytes]) -> Answer:
        with output:
            output.seek(0)
            try:
                answer = pickle.load(output) if process.returncode == 0 else Answer(None)
            except (EOFError, pickle.UnpicklingError):  # its disk was full
                answer = Answer(None)
        assert isinstance(answer, Answer)
        return answer

    def close(self) -> None:
        for process, output in self._running.values():
            process.kill()
            process.wait()
            output.close()
        self._running.clear()

    @staticmethod
    def _start(question: Question) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
        # Files, not pipes: a pipe would make the cycle wait until the process has started to read.
        output = tempfile.TemporaryFile()  # noqa: SIM115  # closed when the answer is read
        with tempfile.TemporaryFile() as asked:
            pickle.dump(question, asked)
            asked.seek(0)
            command = [sys.executable, "-m", "controller.policies.partition"]
            return subprocess.Popen(command, stdin=asked, stdout=output), output
