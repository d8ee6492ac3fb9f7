"""One record of the journal is one line of JSON that carries its own checksum.

A line that was cut off or damaged is recognised by itself, and other tools read the file as it is.
"""

import json
import re
import zlib
from collections.abc import Iterable
from typing import Any

from controller.errors import ControllerError

# A reader refuses a segment of another format; raise it whenever a key changes its meaning.
FORMAT = 2
_READ_BY = {1: "nstorm 0.1.0 as of 2026-11-22"}
_LINE = re.compile(rb'\{"crc":"([0-9a-f]{8})",')


class JournalError(ControllerError):
    """A journal cannot be read or holds nothing; the message names the place."""


def other_format(found: object) -> str:
    """Name a format that this version does not read, and the version that does.

    Parameters
    ----------
    found : object
        The format that a segment gives.

    Returns
    -------
    str
        Such as ``format 1, which nstorm 0.1.0 as of 2026-11-22 reads``.
    """
    reader = _READ_BY.get(found, "a newer version of nstorm") if isinstance(found, int) else ""
    return f"format {found}, which {reader or 'no version of nstorm'} reads"


def compact(value: Any) -> bytes:
    """Write JSON in the one form of the journal.

    Returns
    -------
    bytes
        UTF-8 without spaces and without line ends.

    Raises
    ------
    ValueError
        A number is not finite.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


def joined(fields: dict[str, Any], lists: dict[str, Iterable[bytes]]) -> bytes:
    """Put a record together of fields and of texts that are JSON already.

    Parameters
    ----------
    fields : dict
        Plain values; at least one.
    lists : dict of str to iterable of bytes
        Lists whose items are JSON, copied as they are.
    """
    parts = [compact(fields)[:-1]]
    for key, items in lists.items():
        parts.append(b',"%s":[%s]' % (key.encode(), b",".join(items)))
    return b"".join([*parts, b"}"])


def to_line(body: bytes) -> bytes:
    """Put the checksum in front.

    Parameters
    ----------
    body : bytes
        A JSON object with at least one key and without line ends.
    """
    return b"".join([b'{"crc":"%08x",' % zlib.crc32(body), memoryview(body)[1:], b"\n"])


def from_line(line: bytes) -> dict[str, Any] | None:
    """Read a line.

    Parameters
    ----------
    line : bytes
        With its line end.

    Returns
    -------
    dict or None
        The record without its checksum; None if the line is not whole.
    """
    head = _LINE.match(line)
    if head is None or not line.endswith(b"\n"):
        return None
    body = b"{" + line[head.end() : -1]
    if zlib.crc32(body) != int(head[1], 16):
        return None
    try:
        record = json.loads(body)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
