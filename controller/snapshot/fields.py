"""Takes fields out of JSON objects, or refuses them by their path, such as ``executors[1].cpu``."""

import difflib
import json
import math
from collections.abc import Collection, Iterator
from typing import Any

from controller.errors import SnapshotError

# So that sums, products and quotients of quantities stay finite; what is less counts as nothing.
MOST, LEAST = 1e15, 1e-15


class Row(dict[str, Any]):
    """A JSON object, of which is known which key stands in it twice.

    Attributes
    ----------
    twice : str or None
        The first of them.
    """

    twice: str | None = None

    @classmethod
    def of(cls, pairs: list[tuple[str, Any]]) -> "Row":
        """Make one of all pairs as they stand.

        Parameters
        ----------
        pairs : list of (str, object)
            As a JSON decoder hands them over.

        Returns
        -------
        Row
            Of a key that is there twice it has the last value.
        """
        row = cls(pairs)
        if len(row) < len(pairs):
            keys = [key for key, _ in pairs]
            row.twice = next(key for i, key in enumerate(keys) if key in keys[:i])
        return row


def known_only(row: Row, keys: Collection[str], path: str) -> None:
    """Refuse what the format does not have or has once: a key would be ignored otherwise.

    Parameters
    ----------
    keys : collection of str
        All it may have.
    path : str
        Where it is; empty at the top.

    Raises
    ------
    SnapshotError
        It has another key, or one twice.
    """
    if row.twice is not None:
        raise SnapshotError(f"{_path(path, row.twice)}: is given twice")
    for key in row:
        if key not in keys:
            near = difflib.get_close_matches(key, keys, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(keys)}"
            raise SnapshotError(f"{_path(path, key)}: unknown key, {hint}")


def items(row: Row, key: str, path: str = "") -> list[Any]:
    """Take a list.

    Parameters
    ----------
    path : str
        Where the object is.
    """
    value = row.get(key)
    if not isinstance(value, list):
        raise SnapshotError(f"{_path(path, key)}: must be a list")
    return value


def rows(row: Row, key: str, keys: Collection[str], path: str = "") -> Iterator[tuple[str, Row]]:
    """Take a list of objects.

    Parameters
    ----------
    keys : collection of str
        All that the objects of the list may have.
    path : str
        Where the object is.
    """
    for i, found in enumerate(items(row, key, path)):
        at = f"{_path(path, key)}[{i}]"
        if not isinstance(found, Row):
            raise SnapshotError(f"{at}: must be an object")
        known_only(found, keys, at)
        yield at, found


def text(row: Row, key: str, path: str) -> str:
    """Take a text.

    Parameters
    ----------
    path : str
        Where the object is.

    Returns
    -------
    str
        Not empty, and can be written.
    """
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise SnapshotError(f"{_path(path, key)}: must be a non-empty string")
    try:
        value.encode()
    except UnicodeEncodeError:
        told = f"half a character, as in {json.dumps(value)}, is no text"
        raise SnapshotError(f"{_path(path, key)}: {told}") from None
    return value


def one_of(
    row: Row, key: str, path: str, known: Collection[str], *, what: str = "", tell: bool = False
) -> str:
    """Take a text that must be known.

    Parameters
    ----------
    path : str
        Where the object is.
    known : collection of str
        What it may be.
    what : str
        What it is called, if not as the key.
    tell : bool
        Whether a refusal lists what it may be.
    """
    value = text(row, key, path)
    if value not in known:
        told = f", must be one of {', '.join(known)}" if tell else ""
        raise SnapshotError(f"{_path(path, key)}: unknown {what or key} {json.dumps(value)}{told}")
    return value


def count(row: Row, key: str, path: str) -> int:
    """Take a whole number.

    Parameters
    ----------
    path : str
        Where the object is.

    Returns
    -------
    int
        At least 1.
    """
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        raise SnapshotError(f"{_path(path, key)}: must be a whole number of at least 1")
    return value


def quantity(row: Row, key: str, path: str) -> float:
    """Take a quantity.

    Parameters
    ----------
    path : str
        Where the object is.

    Returns
    -------
    float
        As `nonnegative`.
    """
    return nonnegative(row.get(key), _path(path, key))


def nonnegative(value: Any, path: str) -> float:
    """Read a quantity.

    Returns
    -------
    float
        0, or from `LEAST` to `MOST`.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SnapshotError(f"{path}: must be a number")
    if not 0 <= value < math.inf:
        raise SnapshotError(f"{path}: must be finite and not negative, is {value}")
    if value > MOST:
        raise SnapshotError(f"{path}: must be at most {MOST:g}")
    return float(value) if value >= LEAST else 0.0


def _path(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
