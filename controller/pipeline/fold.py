"""Does the work in this process, one part after the other: for logs that need no Spark."""

import shutil
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
from pyarrow import dataset

from controller.errors import TuneError
from controller.journal.lacking import lacking
from controller.journal.reader import open_segment, segments_in, size_bytes
from controller.pipeline.engine import Episode, Job, RawFile, Rows
from controller.pipeline.schemas import (
    BY,
    DECODED,
    RAW,
    TICK,
    folder_of,
)
from controller.pipeline.ticks import in_order

# Spark also writes it last: what has no such file is not whole.
WHOLE = "_SUCCESS"
# No part takes so long: what was being made then was of a process that was killed.
STALE_S = 86_400.0
_BY = dataset.partitioning(pa.schema([DECODED.field(name) for name in BY]), flavor="hive")


class Fold:
    """Works on files of this machine, below a folder of tables."""

    cores = 1

    def __init__(self, tables: Path) -> None:
        self._tables = tables

    def files(self, paths: Sequence[str]) -> list[RawFile]:
        found = [one for path in paths for one in segments_in(Path(path.removeprefix("file:")))]
        return [RawFile(str(one.path), size_bytes(one.path), one) for one in found]

    def quarantined(self, paths: Sequence[str]) -> Counter[str]:
        return lacking(Path(path.removeprefix("file:")) for path in paths)

    def opened(self, file: RawFile) -> IO[bytes]:
        return open_segment(Path(file.uri))

    def do(self, jobs: Sequence[Job], done: Callable[[Job], None]) -> None:
        for table in {(self._tables / job.folder).parent for job in jobs}:
            _clear(table)
        for job in jobs:
            folder = self._tables / job.folder
            if not (folder / WHOLE).exists():
                try:
                    self._do(job, folder)
                except OSError as error:
                    raise TuneError(f"{folder}: {error.strerror or error}") from error
            done(job)

    def _do(self, job: Job, folder: Path) -> None:
        # Another command may make the same part now. What begins so is not read as a part.
        making = folder.with_name(f"_{uuid.uuid4().hex[:8]}-{folder.name}")
        try:
            making.mkdir(parents=True)
            self._make(job, making)
            try:
                making.rename(folder)
            except OSError:
                if not (folder / WHOLE).exists():
                    shutil.rmtree(folder, ignore_errors=True)
                    making.rename(folder)
        finally:
            shutil.rmtree(making, ignore_errors=True)

    def _make(self, job: Job, folder: Path) -> None:
        of = job.of
        before: Iterable[pa.RecordBatch]
        if isinstance(of, Episode):
            before = self.ticks(of, of.folders)
        elif isinstance(of, Rows):
            before = self.rows(of.folders, of.schema).to_batches()
        else:
            before = _raw(of, job.after)
        by = dataset.partitioning(
            pa.schema([job.schema.field(name) for name in job.by]), flavor="hive"
        )
        # Here, not in Arrow's threads: the main thread would hear no signal until they have ended.
        batches = list(job.work(before))
        dataset.write_dataset(
            pa.Table.from_batches(batches, job.schema),
            folder,
            format="parquet",
            partitioning=by if job.by else None,
            file_options=dataset.ParquetFileFormat().make_write_options(compression="zstd"),
            use_threads=False,  # rows stay in their order
            max_partitions=2**20,
        )
        (folder / WHOLE).touch()

    def rows(
        self, folders: Sequence[str], schema: pa.Schema, columns: Sequence[str] = (), **where: Any
    ) -> pa.Table:
        names = list(columns) or schema.names
        parts = [self._read(folder, schema, where, names) for folder in folders]
        return pa.concat_tables([schema.empty_table().select(names), *parts])

    def ticks(self, episode: Episode, folders: Sequence[str]) -> Iterator[pa.RecordBatch]:
        where = {"kind": TICK, "folder": folder_of(episode.topology), "day": episode.day}
        for folder in folders:
            yield from in_order(self._read(folder, DECODED, where, DECODED.names).to_batches())

    def _read(
        self, folder: str, schema: pa.Schema, where: dict[str, Any], columns: list[str]
    ) -> pa.Table:
        partitioning = _BY if "kind" in schema.names else None
        files = dataset.dataset(
            self._tables / folder, schema=schema, format="parquet", partitioning=partitioning
        )
        chosen = None
        for name, value in where.items():
            one = dataset.field(name) == value
            chosen = one if chosen is None else chosen & one
        return files.to_table(columns, filter=chosen)


def _clear(table: Path) -> None:
    """Remove what killed processes have left of parts."""
    for making in table.glob("_*-*"):
        with suppress(OSError):
            if making.stat().st_mtime < time.time() - STALE_S:
                shutil.rmtree(making)


def _raw(*files: RawFile | None) -> Iterator[pa.RecordBatch]:
    for file in files:
        if file is not None:
            with open_segment(Path(file.uri)) as opened:
                row = {"path": file.uri, "data": opened.read()}
            yield pa.RecordBatch.from_pylist([row], RAW)
