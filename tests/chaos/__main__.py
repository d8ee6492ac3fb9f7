"""``python -m tests.chaos``: one line a try; exit code 1 if one was not as expected."""

import argparse
import json
import logging
import sys
import time
from collections.abc import Generator
from contextlib import closing, suppress
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from deploy.lab.cluster import sweep
from tests.chaos.run import SOAK, Result, run_tries, soak
from tests.chaos.tries import TRIES

COLUMNS = (
    "outcome",
    "recovered_s",
    "failed",
    "lost",
    "double_acked",
    "forwarded",
    "dropped",
    "restarts",
    "services_ended",
    "next_move",
    "next_restarts",
)


def main() -> int:
    asked = _arguments().parse_args()
    known = [*(row.name for row in TRIES), SOAK]
    unknown = set(asked.only) - set(known)
    if unknown:
        print(f"no such try: {', '.join(sorted(unknown))}; there are {' '.join(known)}")
        return 2
    # kazoo tells of each attempt while ZooKeeper is away, which is what is tried here.
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    sweep()
    results: list[Result] = []
    complete = False
    made = _results(asked.only or known, asked.repeat, asked.seed, asked.soak)
    # However it ends: the cluster is down before what is known is told.
    with suppress(KeyboardInterrupt), closing(made):
        for result in made:
            results.append(result)
            said = "; ".join(result.wrong) or "as expected"
            print(f"{time.strftime('%H:%M:%S')} {result.name}: {said}", file=sys.stderr, flush=True)
        complete = True
    if asked.output == "json":
        print(json.dumps([asdict(result) for result in results], indent=1))
    else:
        Console(width=None if sys.stdout.isatty() else 200).print(_table(results))
    return int(not complete or any(result.wrong for result in results))


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.chaos", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="These tries alone.")
    parser.add_argument("--repeat", type=int, default=1, help="How often all of it.")
    parser.add_argument("--seed", type=int, default=1, help="Of what moves, and of kills.")
    parser.add_argument("--soak", type=float, default=120.0, help="Seconds of the soak.")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    return parser


def _results(
    names: list[str], repeat: int, seed: int, soak_s: float
) -> Generator[Result, None, None]:
    rows = [row for row in TRIES if row.name in names]
    for turn in range(repeat):
        yield from run_tries(rows, seed + turn)
        if SOAK in names:
            yield soak(soak_s, seed + turn)


def _table(results: list[Result]) -> Table:
    table = Table("try", *COLUMNS, "clean", "wrong")
    for result in results:
        values = [getattr(result.seen, column) for column in COLUMNS]
        window = result.seen.window
        clean = "-" if window is None else "no" if window.flaw else "yes"
        table.add_row(result.name, *map(_cell, values), clean, "; ".join(result.wrong))
    return table


def _cell(value: object) -> str:
    return "never" if value is None else str(value)


if __name__ == "__main__":
    sys.exit(main())
