"""Opens LMDB environments in the one way that all processes of a node can share.

LMDB's file format changed with 1.0, and no Java library reads the new one; the Python module holds
both and lets an environment variable choose. So the format is always given here.
"""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lmdb

from kvstore.errors import FormatError, StoreError
from kvstore.foreign import open_file, refuse_foreign

# Sized once and large, because growing it makes every other process reopen; the file is sparse.
MAP_SIZE_BYTES = 16 * 1024 * 1024
# Only the owner writes, and its group reads.
_MODE = 0o640
# What LMDB makes of it for its usual number of readers.
_LOCK_BYTES = 8192
# What another user writes is read twenty times a second.
_LARGEST_BYTES = 4 * 1024 * 1024


class Env:
    """One open LMDB 0.9 environment and its main database.

    A writer's folder is created, a reader's must be there. Also a reader needs to write the lock
    file. Each commit is synced to the disk. A `StoreError` if it cannot be opened: absent,
    unreadable, of another format, or open in this process.

    A process must not open an environment twice: closing the second would free the reader slots of
    the first. The library refuses that itself since 2.0. Open after fork, never before.

    To touch a mapped page beyond the end of its file ends the process with SIGBUS, and nothing in
    Python can catch that. So each access first looks whether the files are as long as they have to
    be. Only a truncation in the microseconds between that look and the access is still deadly.
    """

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path
        self._data, self._lock = path / "data.mdb", path / "lock.mdb"
        with _translated(path, "open"):
            if writable:
                path.mkdir(parents=True, exist_ok=True)
            refuse_foreign(path)
            if writable:
                _take_room(path)
            self._env = lmdb.open(
                str(path),
                map_size=MAP_SIZE_BYTES,
                readonly=not writable,
                create=writable,
                sync=True,
                readahead=False,
                mode=_MODE,
                lib_version=0,
            )
            self._inode, _ = _inode_and_bytes(self._data)
            self._lock_seen = _inode_and_bytes(self._lock)
            try:
                self._check_whole()
            except FormatError:
                self.close()
                raise

    def _check_whole(self) -> None:
        """Refuse to touch files that were truncated, or replaced since they were opened."""
        if self._lock_is_cut():
            raise FormatError(f"{self._lock} was truncated")
        for _ in range(2):  # the writer may be adding pages between the two looks
            inode, size_bytes = _inode_and_bytes(self._data)
            if inode != self._inode:
                raise FormatError(f"{self._data} is {'another file now' if inode else 'gone'}")
            pages = 2
            if size_bytes >= pages * mmap.PAGESIZE:  # else not even the head may be touched
                pages = self._env.info()["last_pgno"] + 1
            if size_bytes >= pages * mmap.PAGESIZE:
                return
        raise FormatError(
            f"{self._data} was truncated to {size_bytes} bytes of {pages * mmap.PAGESIZE}"
        )

    def _lock_is_cut(self) -> bool:
        inode, size_bytes = self._lock_seen
        inode_now, now_bytes = _inode_and_bytes(self._lock)
        # One that was deleted stays whole where it is mapped.
        return inode_now == inode and now_bytes < size_bytes

    def get(self, key: bytes) -> bytes | None:
        with _translated(self.path, "read"):
            self._check_whole()
            with self._env.begin() as txn:
                value = txn.get(key)
                return None if value is None else bytes(value)

    def put(self, key: bytes, value: bytes) -> None:
        """Write a value; it is on the disk when this returns.

        A `StoreError` if it cannot be written, also after freeing what dead readers held.
        """
        with _translated(self.path, "write"):
            self._check_whole()
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
            self._check_whole()
            return self._env.reader_check()

    def close(self) -> None:
        """Close it; harmless if it is closed."""
        # LMDB frees its slots in the mapped lock file now; the data file it touches no more. Cut
        # again afterwards: the JVM that writes here must see it, and go on with plain files.
        if not self._lock_is_cut():
            self._env.close()
            return
        cut_bytes = self._lock.stat().st_size
        os.truncate(self._lock, self._lock_seen[1])
        self._env.close()
        os.truncate(self._lock, cut_bytes)


def _take_room(path: Path) -> None:
    """Make sure that LMDB's lock file has its bytes on the disk.

    LMDB maps it right after it has made it as long as it has to be, without a byte written. On a
    full disk the first touch would end the process with SIGBUS, which nothing can catch.
    """
    lock = os.open(path / "lock.mdb", os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, _MODE)
    try:
        os.posix_fallocate(lock, 0, _LOCK_BYTES)
    finally:
        os.close(lock)


class Files:
    """One file a key: what a JVM writes where it cannot use LMDB."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def there(self) -> bool:
        return any(self._path.glob("*.bin"))

    def get(self, key: bytes) -> bytes | None:
        with _translated(self._path, "read"):
            try:
                # Asked for twenty times a second, and usually absent.
                with open(f"{self._path}/{key.decode()}.bin", "rb") as file:  # noqa: PTH123
                    return file.read()
            except FileNotFoundError:
                return None


class OwnedFiles:
    """One file a key, in a folder where another user may put anything: `owner` is its user id."""

    def __init__(self, prefix: Path, owner: int) -> None:
        self._prefix = prefix
        self._owner = owner

    def get(self, key: bytes) -> bytes | None:
        name = f"{self._prefix}.{key.decode()}.bin"
        with _translated(self._prefix, "read"):
            try:
                opened = open_file(name)
            except FileNotFoundError:
                return None
            try:
                found = os.fstat(opened)
                if not stat.S_ISREG(found.st_mode):
                    raise StoreError(f"{name} is no file")
                if found.st_uid != self._owner:
                    raise StoreError(f"{name} belongs to user {found.st_uid}, not {self._owner}")
                if found.st_size > _LARGEST_BYTES:
                    raise StoreError(f"{name} has {found.st_size} bytes of {_LARGEST_BYTES}")
                with open(opened, "rb", closefd=False) as file:
                    return file.read(_LARGEST_BYTES)
            finally:
                os.close(opened)


def _inode_and_bytes(path: Path) -> tuple[int, int]:
    """Look at a file by its path: to close one of our own would free LMDB's locks on it."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_ino, found.st_size


@contextmanager
def _translated(path: Path, doing: str) -> Iterator[None]:
    try:
        yield
    except (lmdb.InvalidError, lmdb.VersionMismatchError, lmdb.CorruptedError) as error:
        raise FormatError(f"cannot {doing} the store {path}: {error}") from error
    except (lmdb.Error, OSError) as error:
        raise StoreError(f"cannot {doing} the store {path}: {error}") from error
