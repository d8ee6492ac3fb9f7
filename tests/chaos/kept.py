"""Keeps the results of a run, so that one that was broken off goes on."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

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
        return [_DECODER.decode(line) for line in self._lines()]

    def results(self) -> dict[str, Result]:
        """Give the newest try of each name."""
        return newest(self.tries())

    def keep(self, result: Result) -> None:
        """Add a try."""
        whole = sum(map(len, self._lines()))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.truncate(whole)
            file.write(msgspec.json.encode(result) + b"\n")

    def _lines(self) -> list[bytes]:
        """Read the lines; a last one without its end was cut off and is none."""
        if not self._path.exists():
            return []
        lines = self._path.read_bytes().splitlines(keepends=True)
        return [line for line in lines if line.endswith(b"\n")]


_DECODER = msgspec.json.Decoder(Result)
