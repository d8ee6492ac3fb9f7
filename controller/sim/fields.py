"""Takes values out of a scenario's YAML; whatever is wrong, the message starts with its key."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import yaml

from controller.errors import ScenarioError
from migration.storm_yaml import load


def section(kind: Any, given: Any, path: str) -> Any:
    """Read a dataclass of numbers, names and lists by its fields.

    Parameters
    ----------
    kind : type
        The dataclass; `least` and `among` in a field's metadata bound its values.
    path : str
        Where it stands, for the message.

    Returns
    -------
    object
        Of that kind, with its defaults for what is not given.

    Raises
    ------
    ScenarioError
        A key is unknown, or its value cannot be.
    """
    given = mapping(given, path)
    fields: dict[str, Any] = {one.name: one for one in dataclasses.fields(kind)}
    refuse_unknown(given, set(fields), f"{path}.")
    values: dict[str, Any] = {}
    for key, value in given.items():
        at, one = f"{path}.{key}", fields[key]
        if isinstance(one.default, str):
            values[key] = choice(value, list(one.metadata["among"]), at)
        elif isinstance(one.default, tuple):
            values[key] = tuple(count(item, 1, at) for item in listed(given, key))
        elif isinstance(one.default, int):
            values[key] = count(value, one.metadata.get("least", 1), at)
        else:
            values[key] = number(value, one.metadata.get("least", 0.0), at)
            if math.isinf(values[key]) and not math.isinf(one.default):
                raise ScenarioError(f"{at}: must be finite")
    return kind(**values)


def refuse_unknown(given: Mapping[str, Any], known: set[str], path: str) -> None:
    """Refuse keys that nobody reads.

    Parameters
    ----------
    known : set of str
        Those that are read.
    path : str
        What stands before a key, for the message.

    Raises
    ------
    ScenarioError
        There is another one.
    """
    for key in given:
        if key not in known:
            raise ScenarioError(f"{path}{key}: unknown key, known are {', '.join(sorted(known))}")


def mapping(value: Any, path: str) -> dict[str, Any]:
    """Read keys with values.

    Parameters
    ----------
    value : object
        As YAML gave it.
    path : str
        Where it stands, for the message.

    Raises
    ------
    ScenarioError
        It is something else.
    """
    if not isinstance(value, dict):
        raise ScenarioError(f"{path}: must hold keys with values")
    return value


def listed(given: Mapping[str, Any], key: str) -> list[Any]:
    """Read a list that may be missing.

    Returns
    -------
    list
        Empty if it is missing.

    Raises
    ------
    ScenarioError
        It is something else.
    """
    value = given.get(key, [])
    if not isinstance(value, list):
        raise ScenarioError(f"{key}: must be a list")
    return value


def choice(value: Any, choices: list[str], path: str) -> str:
    """Read one of some names.

    Parameters
    ----------
    value : object
        As YAML gave it.
    path : str
        Where it stands, for the message.

    Raises
    ------
    ScenarioError
        It is none of them.
    """
    if value not in choices:
        raise ScenarioError(f"{path}: must be one of {', '.join(choices)}, is {value!r}")
    return str(value)


def number(value: Any, least: float, path: str) -> float:
    """Read a number, infinity among them.

    Parameters
    ----------
    value : object
        As YAML gave it.
    path : str
        Where it stands, for the message.

    Raises
    ------
    ScenarioError
        It is no number or a lower one.
    """
    good = isinstance(value, int | float) and not isinstance(value, bool)
    # What is no number at all passes no comparison.
    if not good or not value >= least:
        raise ScenarioError(f"{path}: must be a number of at least {least:g}, is {value!r}")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def written_number(text: str, least: float, path: str) -> float:
    """Read a number that stands within a line.

    Parameters
    ----------
    text : str
        As YAML writes numbers.
    path : str
        Where it stands, for the message.

    Raises
    ------
    ScenarioError
        It is no number or a lower one.
    """
    try:
        value = load(text)
    except yaml.YAMLError:
        value = text
    return number(value, least, path)


def count(value: Any, least: int, path: str) -> int:
    """Read a whole number.

    Parameters
    ----------
    value : object
        As YAML gave it.
    path : str
        Where it stands, for the message.

    Raises
    ------
    ScenarioError
        It is not whole or lower.
    """
    if not number(value, least, path).is_integer():
        raise ScenarioError(f"{path}: must be a whole number, is {value!r}")
    return int(value)
