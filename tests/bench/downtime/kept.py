"""Keeps finished rounds in a file, so that an interrupted run goes on where it was."""

from dataclasses import asdict
from pathlib import Path

from tests.bench import frame
from tests.bench.downtime import Asked, Round


class Kept(frame.Kept):
    """The file of a run: what was asked, then a row for each round and for the steady rate."""

    def __init__(self, file: Path, asked: Asked, *, resume: bool) -> None:
        super().__init__(file, asdict(asked), resume=resume)
        self.refuse_another_set_up()
        steady = [row["steady_tps"] for row in self.rows if "steady_tps" in row]
        self.steady_tps = steady[-1] if steady else asked.rate_tps
        self.rounds = [Round(**row) for row in self.rows if "steady_tps" not in row]

    def has(self, load: str, number: int, system: str) -> bool:
        """Check whether a round is finished."""
        return (load, number, system) in {(r.load, r.number, r.system) for r in self.rounds}

    def add(self, finished: Round) -> None:
        """Keep a round."""
        self.rounds.append(finished)
        self.append(asdict(finished))

    def set_steady(self, rate_tps: float) -> None:
        """Keep the rate of the steady load, so that all of its rounds have the same."""
        self.steady_tps = rate_tps
        self.append({"steady_tps": rate_tps})
