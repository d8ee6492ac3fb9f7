"""Files in folders where another user may have put anything: a link, a pipe, what is huge."""

import os
import stat
from collections.abc import Collection
from pathlib import Path

from kvstore.errors import StoreError

# The files that are opened in a store.
_OURS = frozenset({".mdb", ".bin", ".lock"})
_LINE_BYTES = 1000


def refuse_foreign(folder: Path, owners: Collection[int] = ()) -> None:
    """Raise a `StoreError` where others may have put something in the place of a store.

    To open an environment is to write its lock file, wherever a link leads to. The folder is no
    link, belongs to one of the user ids `owners` (where given), and others may not write there. Its
    files are no links either, and its own.
    """
    found = folder.lstat()
    problem = None
    if not stat.S_ISDIR(found.st_mode):
        problem = f"{folder} is a link, or no folder"
    elif owners and found.st_uid not in owners:
        problem = f"{folder} belongs to user {found.st_uid}"
    elif found.st_mode & stat.S_IWOTH:
        problem = f"everybody may write into {folder}"
    for file in () if problem else folder.iterdir():
        one = file.lstat()
        if not stat.S_ISREG(one.st_mode) and file.suffix in _OURS:
            problem = f"{file} is a link, or no file"
        elif one.st_nlink > 1 and file.suffix in _OURS:
            problem = f"{file} has another name elsewhere"
    if problem is not None:
        raise StoreError(f"{problem}: it is not touched")


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file as a whole, and nothing that a link leads to; all may read it.

    An `OSError` if it cannot be written; the old file stays.
    """
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    new = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(new, "wb") as file:
        file.write(data)
        file.flush()
        os.fchmod(new, 0o644)
        os.fsync(new)
    part.rename(path)


def open_file(path: str | Path) -> int:
    """Open a file to read, never through a link; a pipe would wait for its writer.

    A `FileNotFoundError` if there is none, another `OSError` if it cannot be read.
    """
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def first_bytes(path: Path) -> bytes:
    """Read what a file begins with, enough for a line that a person types; errors as above."""
    opened = open_file(path)
    try:
        return os.read(opened, _LINE_BYTES)
    finally:
        os.close(opened)
