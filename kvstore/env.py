"""Opens LMDB environments in the one way that all processes of a node can share.

LMDB's file format changed with 1.0, and no Java library reads the new one; the Python module holds
both and lets an environment variable choose. So the format is always said here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import lmdb

from kvstore.errors import FormatError, StoreError

# Sized once and large, because growing it makes every other process reopen; the file is sparse.
MAP_SIZE_BYTES = 16 * 1024 * 1024
# Only the owner writes. Workers under other users read it without the lock file.
_MODE = 0o644


class Env:
    """One open LMDB 0.9 environment and its main database.

    Parameters
    ----------
    path : Path
        The environment's folder. For a writer it is created; for a reader it must be there.
    writable : bool
        Open it for writing, each commit synced to the disk.

    Raises
    ------
    StoreError
        If it cannot be opened: absent, unreadable, of another format, or open in this process.

    Notes
    -----
    A process must not open an environment twice: closing the second would free the reader slots of
    the first. The library refuses that itself since 2.0. Open after fork, never before.
    A reader needs to write the lock file, and a file that somebody truncates while it is mapped
    ends the process with SIGBUS; nothing in Python can catch that.
    """

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path
        with _translated(path, "open"):
            if writable:
                path.mkdir(parents=True, exist_ok=True)
            self._env = lmdb.open(
                str(path),
                map_size=MAP_SIZE_BYTES,
                subdir=True,
                readonly=not writable,
                create=writable,
                metasync=True,
                sync=True,
                lock=True,
                readahead=False,
                writemap=False,
                meminit=True,
                max_dbs=0,
                mode=_MODE,
                lib_version=0,
            )

    def get(self, key: bytes) -> bytes | None:
        """Return the newest value of a key, None if there is none."""
        with _translated(self.path, "read"), self._env.begin() as txn:
            value = txn.get(key)
            return None if value is None else bytes(value)

    def put(self, key: bytes, value: bytes) -> None:
        """Write a value; it is on the disk when this returns.

        Parameters
        ----------
        key, value : bytes
            What to write.

        Raises
        ------
        StoreError
            If it cannot be written, also after freeing what dead readers held.
        """
        with _translated(self.path, "write"):
            try:
                self._put(key, value)
            except lmdb.MapFullError:
                # A reader that was killed in the middle of a read pins every page since.
                self._env.reader_check()
                self._put(key, value)

    def _put(self, key: bytes, value: bytes) -> None:
        with self._env.begin(write=True) as txn:
            txn.put(key, value)

    def check_readers(self) -> int:
        """Free the slots of readers that have died; return how many there were."""
        with _translated(self.path, "check the readers of"):
            return self._env.reader_check()

    def close(self) -> None:
        """Close it; harmless if it is closed."""
        self._env.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Files:
    """One file a key: what a JVM writes where LMDB's native library cannot be loaded.

    Parameters
    ----------
    path : Path
        The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @staticmethod
    def there(path: Path) -> bool:
        """Tell whether a folder holds such files."""
        return any(path.glob("*.bin"))

    def get(self, key: bytes) -> bytes | None:
        """Return the newest value of a key, None if there is none."""
        with _translated(self.path, "read"):
            try:
                return (self.path / f"{key.decode()}.bin").read_bytes()
            except FileNotFoundError:
                return None

    def check_readers(self) -> int:
        """Do nothing: files know no readers."""
        return 0

    def close(self) -> None:
        """Do nothing: no file stays open."""


@contextmanager
def _translated(path: Path, doing: str) -> Iterator[None]:
    try:
        yield
    except (lmdb.InvalidError, lmdb.VersionMismatchError, lmdb.CorruptedError) as error:
        raise FormatError(f"cannot {doing} the store {path}: {error}") from error
    except (lmdb.Error, OSError) as error:
        raise StoreError(f"cannot {doing} the store {path}: {error}") from error
