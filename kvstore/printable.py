"""What may be shown: text of ZooKeeper reaches terminals and logs without control characters."""

from __future__ import annotations

import re
import shlex
from typing import Any, TextIO

# Controls of terminals (C0 but tab and newline, DEL, C1), other ends of lines, and what turns the
# order of letters around.
CONTROLS = r"\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
_ODD = re.compile(rf"(?![\t\n])[{CONTROLS}]")

LONGEST_TEXT = 2000  # characters
_LONGEST = 200
_LONGEST_BYTES = 4 * _LONGEST


def printable(text: str) -> str:
    """Write each control character as Python does, such as ``\\x1b``."""
    return _ODD.sub(lambda odd: ascii(odd[0])[1:-1], text)


def argument(name: str) -> str:
    """Write a name as it is typed last in a command line, also one that looks like an option."""
    quoted = shlex.quote(name)
    return f"-- {quoted}" if name.startswith("-") else quoted


def one_line(text: bytes) -> str:
    """Read a reason that a person typed: its first line, of at most 200 characters."""
    lines = text[:_LONGEST_BYTES].decode(errors="replace").strip().splitlines()
    return printable(lines[0])[:_LONGEST] if lines else ""


def shortened(value: Any) -> Any:
    """Cut a value that is longer as text than anybody would read."""
    text = str(value)
    return value if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


class PrintableStream:
    """Stands for a text stream, and escapes what is written to it.

    A console that escapes its texts itself finds the stream below as `rich_proxied_file`, by rich's
    own convention: colors are also control characters.
    """

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(printable(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)
