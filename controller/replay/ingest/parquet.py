"""Reads Parquet with Arrow, which the extra ``nstorm[replay]`` brings."""

from importlib import import_module
from pathlib import Path
from typing import Any


class ParquetError(Exception):
    """A table cannot be read; the message says why and what to type."""


def rows(path: Path) -> list[dict[str, Any]]:
    """Read a table from a file, or from a folder of files as Spark writes it.

    Raises `ParquetError` where pyarrow is missing, or where it is no Parquet.
    """
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise ParquetError("Parquet needs pyarrow; type: pip install 'nstorm[replay]'") from None
    try:
        found: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    except arrow.ArrowException as error:
        raise ParquetError(str(error).splitlines()[0]) from error
    return found
