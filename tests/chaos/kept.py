"""Keeps the results of a run, so that one that was broken off goes on."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from tests.bench import frame
from tests.chaos.run import Result


def newest(tries: Iterable[Result]) -> dict[str, Result]:
    """Give the last try of each name."""
    return {result.name: result for result in tries}


class Kept:
    """The tries of one seed, in a file with a line for each; none is ever removed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def tries(self) -> list[Result]:
        """Give all tries, in the order in which they were kept."""
        return msgspec.convert(frame.read(self._path), list[Result])

    def results(self) -> dict[str, Result]:
        """Give the newest try of each name."""
        return newest(self.tries())

    def keep(self, result: Result) -> None:
        """Add a try."""
        frame.append(self._path, msgspec.to_builtins(result))
