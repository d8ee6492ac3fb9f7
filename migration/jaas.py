"""The file of `java.security.auth.login.config`, by which Storm's JVMs log in at ZooKeeper."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from migration import ConfigError

# The section that ZooKeeper's client reads.
CLIENT = "Client"
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/|#[^\n]*', re.DOTALL)
# As Java's StreamTokenizer has them: up to three octal digits, a letter, or the character alone.
_ESCAPED = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)")
_LETTERS = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|([^\s{};="]+)|([{};=])|(\S)')


@dataclass(frozen=True, slots=True)
class Login:
    """The first login module of a section, without its package, and its options."""

    module: str
    options: Mapping[str, str] = field(repr=False)


def client_login(path: Path) -> Login:
    """Read the section ``Client``; a `ConfigError` names the file and what is wrong with it."""
    try:
        sections = parse(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{path}: {reason}: let the user of this process read it") from None
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    if CLIENT not in sections:
        there = ", ".join(sections) or "none"
        raise ConfigError(f"{path}: has no section {CLIENT}; its sections: {there}")
    return sections[CLIENT]


def parse(text: str) -> dict[str, Login]:
    """Read sections of the form ``Name { module flag key=value …; };`` by name.

    A `ValueError` if the text has another form.
    """
    words = list(_words(_COMMENT.sub(lambda found: found[1] or " ", text)))
    found: dict[str, Login] = {}
    at = 0

    def take(sign: str = "") -> str:
        nonlocal at
        if at >= len(words) or words[at][1] != bool(sign) or (sign and words[at][0] != sign):
            there = repr(words[at][0]) if at < len(words) else "the end of the file"
            after = " ".join(word for word, _ in words[max(at - 3, 0) : at])
            raise ValueError(f"{sign or 'a name'} is expected after {after!r}, not {there}")
        at += 1
        return words[at - 1][0]

    def comes(sign: str) -> bool:
        return at < len(words) and words[at] == (sign, True)

    while at < len(words):
        name = take()
        take("{")
        logins = []
        while not comes("}"):
            module, _ = take(), take()
            options = {}
            while not comes(";"):
                key = take()
                take("=")
                options[key] = take()
            take(";")
            logins.append(Login(module.rpartition(".")[2], MappingProxyType(options)))
        take("}")
        take(";")
        if not logins:
            raise ValueError(f"section {name} has no login module")
        found[name] = logins[0]
    return found


def _words(text: str) -> Iterator[tuple[str, bool]]:
    """Give each word, and whether it is a sign: quoted text is none, whatever it holds."""
    for quoted, bare, sign, odd in _WORD.findall(text):
        if odd:
            raise ValueError(f"{odd} has no end")
        yield (bare or sign, bool(sign)) if bare or sign else (_ESCAPED.sub(_plain, quoted), False)


def _plain(escaped: re.Match[str]) -> str:
    found = escaped[1]
    return chr(int(found, 8)) if found[0] in "01234567" else _LETTERS.get(found, found)
