"""Keeps finished rounds in a file, so that an interrupted run goes on where it was."""

import json
from dataclasses import asdict
from pathlib import Path

from deploy.lab import LabError
from tests.bench import rows
from tests.bench.downtime import Asked, Round


class Kept:
    """The file of a run: what was asked, then a line for each round and the steady rate.

    Parameters
    ----------
    file : Path
        Where; without `resume` there must be none.
    resume : bool
        Whether to keep what is in it.

    Raises
    ------
    LabError
        If it is to go on with a run that was asked for something else, or with none, or if it is
        to begin anew where a run is kept.
    """

    def __init__(self, file: Path, asked: Asked, *, resume: bool) -> None:
        self._file = file
        self.rounds: list[Round] = []
        self.steady_tps = asked.rate_tps
        # As JSON gives it back.
        wanted = json.loads(json.dumps(asdict(asked)))
        self._first_row = None if resume else wanted
        if not resume:
            if file.exists():
                raise LabError(f"{file} has finished rounds: go on by --resume, or remove it")
            return
        told = rows.read(file)
        if not told:
            raise LabError(f"--resume: {file} has no run to go on with: leave --resume out")
        first, *rest = told
        other = {key: first.get(key) for key in wanted if wanted[key] != first.get(key)}
        if other:
            raise LabError(f"--resume: the run in {file} was asked for {other}: ask the same")
        for row in rest:
            if "steady_tps" in row:
                self.steady_tps = row["steady_tps"]
            else:
                self.rounds.append(Round(**row))

    def has(self, load: str, number: int, system: str) -> bool:
        """Tell whether a round is finished."""
        return (load, number, system) in {(r.load, r.number, r.system) for r in self.rounds}

    def add(self, finished: Round) -> None:
        """Keep a round."""
        self.rounds.append(finished)
        self._append(asdict(finished))

    def set_steady(self, rate_tps: float) -> None:
        """Keep the rate of the steady load, so that all of its rounds have the same."""
        self.steady_tps = rate_tps
        self._append({"steady_tps": rate_tps})

    def _append(self, row: dict[str, object]) -> None:
        if self._first_row is not None:
            rows.append(self._file, self._first_row)
            self._first_row = None
        rows.append(self._file, row)
