"""Bytes to values and back, for every JSON format of PROTOCOL.md.

One codec serves all formats: it follows the annotations of the model's dataclasses, so a field is
written down once. Reading is strict, because a plan that is half understood moves the wrong thing.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
from enum import StrEnum
from functools import cache
from typing import Any, NoReturn, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from migration import ModelError, WireError
from migration.model import (
    AppliedPlan,
    Base,
    Edge,
    Entry,
    ExecutorId,
    LocalPlan,
    NodeAcks,
    NodeLoad,
    Plan,
    PlanVersion,
    Publication,
    Slot,
    SupervisorAck,
    Traffic,
    WorkerAck,
    WorkerLoad,
)

ROOT = "/nstorm"
CLUSTER = f"{ROOT}/cluster"
EPOCH = f"{ROOT}/epoch"
LEADER = f"{ROOT}/leader"
TOPOLOGIES = f"{ROOT}/topologies"
PLANS = f"{ROOT}/plans"
ACKS = f"{ROOT}/acks"
LOAD = f"{ROOT}/load"

PLAN_KEY = b"plan"
ACK_KEY = b"ack"
LOAD_KEY = b"load"

_Message = (
    Plan | LocalPlan | Publication | NodeAcks | WorkerAck | SupervisorAck | NodeLoad | WorkerLoad
)
M = TypeVar("M", bound=_Message)

# Java reads numbers as long.
_LIMIT = 2**63
# Short things that repeat often are arrays without keys.
_ARRAYS = frozenset({AppliedPlan, Base, ExecutorId, PlanVersion, Traffic})
# "from" is a word of Python's own.
_KEYS: dict[tuple[type, str], str] = {
    (kind, old): new
    for kind in (Entry, Edge)
    for old, new in (("source", "from"), ("target", "to"))
}


def topology_path(topology: str) -> str:
    """Return the node where the hook in Nimbus publishes a topology."""
    return f"{TOPOLOGIES}/{topology}"


def plan_path(topology: str) -> str:
    """Return the node of a topology's plan."""
    return f"{PLANS}/{topology}"


def acks_path(supervisor: str) -> str:
    """Return the node where an agent publishes what the JVMs of its node say."""
    return f"{ACKS}/{supervisor}"


def load_path(supervisor: str) -> str:
    """Return the node where an agent publishes what the workers of its node measured."""
    return f"{LOAD}/{supervisor}"


def encode(message: _Message) -> bytes:
    """Write a message in its one canonical form.

    Parameters
    ----------
    message : Plan, LocalPlan, Publication, NodeAcks, WorkerAck, SupervisorAck, NodeLoad, WorkerLoad
        The message.

    Returns
    -------
    bytes
        UTF-8 JSON without spaces, keys in the order of PROTOCOL.md.

    Raises
    ------
    WireError
        If a number is not finite or a text is not valid Unicode.
    """
    kind = type(message).__name__
    try:
        return json.dumps(
            _plain(message), ensure_ascii=False, allow_nan=False, separators=(",", ":")
        ).encode()
    except ValueError as error:
        raise WireError(kind, str(error)) from error


def decode(kind: type[M], data: bytes) -> M:
    """Read a message strictly.

    Parameters
    ----------
    kind : type
        The class of the message.
    data : bytes
        Its JSON.

    Returns
    -------
    Plan, LocalPlan, Publication, NodeAcks, WorkerAck, SupervisorAck, NodeLoad or WorkerLoad
        The message.

    Raises
    ------
    WireError
        If it is no JSON, if a field is unknown, missing, doubled or of a wrong type, or if the
        values cannot be (two entries of one executor); it names the field.
    """
    name = kind.__name__
    try:
        value = json.loads(data, object_pairs_hook=_unique, parse_constant=_no_constant)
    except WireError as error:
        raise WireError(name, error.problem) from error
    # RecursionError: a deep nest of brackets is garbage like any other.
    except (ValueError, RecursionError) as error:
        raise WireError(name, f"is no JSON: {error}") from error
    return cast(M, _read(kind, value, name))


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise WireError("", f"a key stands twice among {[key for key, _ in pairs]}")
    return found


def _no_constant(text: str) -> NoReturn:
    raise WireError("", f"{text} is no number")


@cache
def _fields(kind: type) -> tuple[tuple[str, str, Any], ...]:
    """Return attribute, key and type of each field, in order."""
    hints = get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]
    return tuple((name, _KEYS.get((kind, name), name), hints[name]) for name in names)


def _plain(value: object) -> object:
    if isinstance(value, Slot):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    kind: type = type(value)
    if not dataclasses.is_dataclass(kind):
        return value
    pairs = [(key, _plain(getattr(value, name))) for name, key, _ in _fields(kind)]
    return [item for _, item in pairs] if kind in _ARRAYS else dict(pairs)


def _read(kind: Any, value: object, where: str) -> object:
    if get_origin(kind) in (Union, types.UnionType):
        inner = next(arg for arg in get_args(kind) if arg is not type(None))
        return None if value is None else _read(inner, value, where)
    if get_origin(kind) is tuple:
        items = _expect(list, value, where)
        return tuple(_read(get_args(kind)[0], v, f"{where}[{i}]") for i, v in enumerate(items))
    try:
        if kind is Slot:
            return Slot.parse(_expect(str, value, where))
        if dataclasses.is_dataclass(kind):
            return _read_record(cast(type, kind), value, where)
        if issubclass(kind, StrEnum):
            return kind(_expect(str, value, where))
    except WireError:
        raise
    except (ModelError, ValueError) as error:
        raise WireError(where, str(error)) from error
    return _expect(kind, value, where)


def _read_record(kind: type, value: object, where: str) -> object:
    fields = _fields(kind)
    if kind in _ARRAYS:
        items = _expect(list, value, where)
        if len(items) != len(fields):
            raise WireError(where, f"has {len(items)} elements, not {len(fields)}")
        found = {key: item for (_, key, _), item in zip(fields, items, strict=True)}
    else:
        found = _expect(dict, value, where)
    known = [key for _, key, _ in fields]
    for key in found:
        if key not in known:
            raise WireError(f"{where}.{key}", "is unknown")
    for key in known:
        if key not in found:
            raise WireError(f"{where}.{key}", "is missing")
    return kind(**{name: _read(hint, found[key], f"{where}.{key}") for name, key, hint in fields})


def _expect(kind: type[Any], value: object, where: str) -> Any:
    # A bool is an int to Python, and a whole float is an int to nobody.
    fits = type(value) is kind or (kind is float and type(value) is int)
    if not fits:
        raise WireError(where, f"is {_JSON_NAMES[type(value)]}, not {_JSON_NAMES[kind]}")
    too_long = type(value) is int and not -_LIMIT <= value < _LIMIT
    if too_long or (type(value) is float and not math.isfinite(value)):
        raise WireError(where, "is out of range")
    return float(cast(float, value)) if kind is float else value


_JSON_NAMES: dict[type, str] = {
    str: "text",
    int: "an integer",
    float: "a number",
    bool: "a truth value",
    list: "an array",
    dict: "an object",
    type(None): "null",
}
