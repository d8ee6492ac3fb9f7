"""Where a log lies, where its tables stay, and who works: what all commands on a log ask for."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from controller.errors import TuneError
from controller.journal.lines import refuse_gone
from migration.extras import pip_install

INSTALL = pip_install("replay")

PathsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="LOG...", help="Folders or segments of a journal; also hdfs: and s3a: paths."
    ),
]
TopologyOption = Annotated[
    str | None,
    typer.Option("--topology", metavar="T", help="Only this topology, by id or name."),
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        "--master",
        help="Where Spark runs, as for spark-submit. Without it: a small log needs no Spark, "
        "others local[*].",
    ),
]
SparkConfOption = Annotated[
    list[str],
    typer.Option(
        "--spark-conf", metavar="KEY=VALUE", help="A setting of Spark, as --conf of spark-submit."
    ),
]
TablesOption = Annotated[
    str | None,
    typer.Option(
        "--tables",
        metavar="FOLDER",
        help="Where the tables of each stage stay, also hdfs: and s3a:. What is whole there is "
        "not made again.",
        show_default="tables in --out",
    ),
]


@dataclass(frozen=True, slots=True)
class Where:
    """Where the log lies, where tables stay, and who works."""

    paths: list[str]
    tables: str
    master: str | None
    spark_conf: dict[str, str]
    out: Path

    @classmethod
    def of(
        cls,
        paths: list[str],
        out: Path,
        tables: str | None,
        master: str | None,
        spark_conf: Sequence[str],
    ) -> "Where":
        """Read the options; raises `JournalError` where a log of this machine is not there."""
        for path in paths if master is None else ():
            if ":" not in path:
                refuse_gone(Path(path))
        if master and not master.startswith("local") and not re.match(r"\w+:", tables or ""):
            raise TuneError(
                f"--master {master}: its workers see no folder of this machine: name one that all "
                "see, --tables hdfs://..., or --tables file:/... on a disk that is shared"
            )
        # The page is written by this process, whatever Spark works with.
        if re.match(r"\w+:/", str(out)):
            raise TuneError(
                f"--out {out}: must be a folder of this machine, by its path alone; the tables "
                "may be elsewhere: --tables hdfs://..."
            )
        return cls(paths, tables or str(out / "tables"), master, _pairs(spark_conf), out)

    def make(self) -> None:
        """Make the folder of what is written; raises `TuneError` where it cannot be made."""
        try:
            self.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TuneError(f"--out {self.out}: {error.strerror}") from None


def needed(module: str) -> Any:
    """Load a module of an extra, late; raises `TuneError` where one of its libraries is missing."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise TuneError(f"{error.name} is missing; type in nstorm's folder: {INSTALL}") from None


def _pairs(options: Sequence[str]) -> dict[str, str]:
    found = dict(one.partition("=")[::2] for one in options)
    for key, value in found.items():
        if not value:
            raise TuneError(f"--spark-conf {key}: must be KEY=VALUE")
    return found
