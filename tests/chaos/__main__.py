"""``python -m tests.chaos``: one line a try; exit code 1 if one was not as expected."""

import argparse
import json
import logging
import os
import platform
import sys
import time
from collections.abc import Collection, Generator, Iterable
from contextlib import closing, suppress
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from deploy.lab.cluster import sweep
from deploy.lab.home.versions import REPOSITORY, storm_version
from tests.chaos.kept import Kept
from tests.chaos.page import page, summary
from tests.chaos.run import SOAK, Result, run_tries, soak
from tests.chaos.tries import CELLS, EXTRAS

COLUMNS = (
    "outcome",
    "recovered_s",
    "gap_s",
    "degraded_s",
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
PAGE = REPOSITORY / "docs" / "chaos.md"


def main() -> int:
    asked = _arguments().parse_args()
    known = [*(row.name for row in (*CELLS, *EXTRAS)), SOAK]
    unknown = set(asked.cell) - set(known)
    if unknown:
        print(f"no such try: {', '.join(sorted(unknown))}; there are {' '.join(known)}")
        return 2
    kept = Kept(REPOSITORY / "build" / "chaos" / f"seed-{asked.seed}.jsonl")
    if asked.page:
        return _write_page(kept, asked.seed)
    # kazoo logs each attempt while ZooKeeper is away, which is what is tried here.
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    sweep()
    done = kept.results()
    wanted = asked.cell or [name for name in known if name not in done]
    tries = [] if asked.cell else kept.tries()
    missing = set(wanted)
    made = _results(wanted, asked.seed, asked.soak)
    # However it ends: the cluster is down before what is known is printed.
    with suppress(KeyboardInterrupt), closing(made):
        for result in made:
            kept.keep(result)
            tries.append(result)
            missing.discard(result.name)
            said = "; ".join(result.wrong) or "as expected"
            print(f"{time.strftime('%H:%M:%S')} {result.name}: {said}", file=sys.stderr, flush=True)
    if asked.output == "json":
        print(json.dumps([asdict(result) for result in tries], indent=1))
    else:
        Console(width=None if sys.stdout.isatty() else 200).print(_table(tries))
    print(f"Seed {asked.seed}: {summary(kept.tries())}", file=sys.stderr)
    return int(bool(missing) or any(result.wrong for result in tries))


def _write_page(kept: Kept, seed: int) -> int:
    tries = kept.tries()
    if not tries:
        print(f"no try of seed {seed} is kept; the page stays as it is")
        return 2
    PAGE.write_text(page(tries, seed, _machine()))
    print(summary(tries))
    return int(any(result.wrong for result in tries))


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.chaos", description=__doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--cell",
        nargs="+",
        default=[],
        metavar="NAME",
        help="Make these tries, and not what is missing of all.",
    )
    what.add_argument(
        "--page",
        action="store_true",
        help="Make no try, and write docs/chaos.md from those that are kept.",
    )
    parser.add_argument("--seed", type=int, default=1, help="Of what moves, and of kills.")
    parser.add_argument("--soak", type=float, default=120.0, help="Seconds of the soak.")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    return parser


def _results(names: Collection[str], seed: int, soak_s: float) -> Generator[Result, None, None]:
    rows = {row.name: row for row in (*CELLS, *EXTRAS)}
    yield from run_tries((rows[name] for name in names if name != SOAK), seed)
    if SOAK in names:
        yield soak(soak_s, seed)


def _machine() -> str:
    return (
        f"{os.cpu_count()} shared cores, {platform.system()} {platform.machine()}, "
        f"Storm {storm_version().version}"
    )


def _table(results: Iterable[Result]) -> Table:
    table = Table("try", *COLUMNS, "wrong")
    for result in results:
        values = [getattr(result.seen, column) for column in COLUMNS]
        table.add_row(result.name, *map(_cell, values), "; ".join(result.wrong))
    return table


def _cell(value: object) -> str:
    return "never" if value is None else str(value)


if __name__ == "__main__":
    sys.exit(main())
