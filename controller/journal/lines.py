"""A record of the journal is one line of JSON that carries its own checksum.

A reader recognises a line that was cut off or damaged, and other tools can read the file.
"""

import json
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from controller.errors import ControllerError

# Once the newer one is full, it takes the place of the older one.
OLDER_MOVES, MOVES = "moves.old.ndjson", "moves.ndjson"
# What a journal that was made of tables lacks of them. A row is counted as editors do, and empty
# where the whole file was left out; the value is as it was there.
QUARANTINE_FILE = "quarantine.csv"
QUARANTINE = ("file", "row", "rule", "value")
_LINE = re.compile(rb'\{"crc":"([0-9a-f]{8})",')
_BRACE = zlib.crc32(b"{")

R = TypeVar("R")


class JournalError(ControllerError):
    """A journal cannot be read or holds nothing; the message names the place."""


def refuse_gone(path: Path) -> None:
    """Raise `JournalError` where nothing is at a path."""
    if not path.exists():
        raise JournalError(f"{path}: no such file or folder")


def of_another_version(error: Exception) -> JournalError:
    """Return that something whole cannot be read, and what of it."""
    return JournalError(f"the journal is of another version of nstorm: {error}")


def compact(value: Any) -> bytes:
    """Write JSON in the one form of the journal: UTF-8 without spaces and without line ends.

    Raises `ValueError` where a number is not finite.
    """
    # Not by msgspec, which writes such a number as null.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


def to_line(body: bytes) -> bytes:
    """Put the checksum in front of a JSON object with at least one key and without line ends."""
    return b"".join([b'{"crc":"%08x",' % zlib.crc32(body), memoryview(body)[1:], b"\n"])


def is_whole(line: bytes) -> bool:
    """Return whether a line has its end, and its checksum is right."""
    head = _LINE.match(line)
    if head is None or not line.endswith(b"\n"):
        return False
    return zlib.crc32(memoryview(line)[head.end() : -1], _BRACE) == int(head[1], 16)


def from_line(line: bytes, decoder: "msgspec.json.Decoder[R]") -> R | None:
    """Read a line with its line end; None if it is not whole.

    Raises `JournalError` where it is whole, and no such record.
    """
    if not is_whole(line):
        return None
    try:
        return decoder.decode(line)
    except msgspec.ValidationError as error:
        raise of_another_version(error) from error
    # The checksum may be right and this no JSON, if another tool wrote it.
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def move_lines(folder: Path) -> Iterator[bytes]:
    """Read the moves that a folder has, the oldest first, one in a line."""
    for name in (OLDER_MOVES, MOVES):
        with suppress(FileNotFoundError), (folder / name).open("rb") as file:
            yield from file
