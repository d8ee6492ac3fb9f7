"""Keeps the results of a run, so that one that was broken off goes on."""

from pathlib import Path

import msgspec

from tests.chaos.run import Result


class Kept:
    """The results of one seed by name, in a file with a line for each."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def results(self) -> dict[str, Result]:
        """Give all results, in the order in which they were kept."""
        if not self._path.exists():
            return {}
        lines = self._path.read_bytes().splitlines()
        return {result.name: result for result in map(_DECODER.decode, lines)}

    def keep(self, result: Result) -> None:
        """Keep a result in place of an earlier one of its name."""
        kept = {**self.results(), result.name: result}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        partial = self._path.with_suffix(".partial")
        partial.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in kept.values()))
        partial.rename(self._path)


_DECODER = msgspec.json.Decoder(Result)
