"""Bytes to values and back, for every JSON format of PROTOCOL.md.

One codec serves all formats: it follows the annotations of the model's dataclasses, so a field is
written down once. Reading is strict, because a plan that is half understood moves the wrong thing.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
from collections.abc import Callable
from functools import cache, lru_cache
from typing import (
    Any,
    NoReturn,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from migration import WireError
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
_Reader: TypeAlias = Callable[[Any], Any]

# Java reads numbers as long.
_LIMIT = 2**63
_SHARED = 2**16
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
    try:
        return cast(M, _reader(cast(Any, kind))(value))
    except WireError as error:
        raise WireError(f"{name}{error.where}", error.problem) from error


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


# A reader knows only its own part of a message. Those around it put the path before an error, so
# that no path is made while all is well.
def _text(value: Any) -> str:
    if type(value) is str:
        return value
    raise _refusal(str, value)


def _integer(value: Any) -> int:
    # A bool is an int to Python, and a whole float is an int to nobody.
    if type(value) is int and -_LIMIT <= value < _LIMIT:
        return value
    raise _refusal(int, value)


def _number(value: Any) -> float:
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is int:
        return float(_integer(value))
    raise _refusal(float, value)


def _refusal(kind: type, value: object) -> WireError:
    if type(value) is kind or (type(value) is int and kind is float):
        return WireError("", "is out of range")
    return WireError("", f"is {_JSON_NAMES[type(value)]}, not {_JSON_NAMES[kind]}")


@cache
def _reader(kind: Any) -> _Reader:
    """Compile the reader of an annotation, once."""
    if kind in _LEAVES:
        return _LEAVES[kind]
    of = get_args(kind)
    if get_origin(kind) in (Union, types.UnionType):
        return _optional(_reader(next(arg for arg in of if arg is not type(None))))
    if get_origin(kind) is tuple:
        return _array(_reader(of[0]))
    return _record(cast(type, kind)) if dataclasses.is_dataclass(kind) else _parsed(kind)


def _optional(inner: _Reader) -> _Reader:
    return lambda value: None if value is None else inner(value)


def _array(item: _Reader) -> _Reader:
    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise _refusal(list, value)
        found: list[Any] = []
        try:
            for one in value:
                found.append(item(one))
        except WireError as error:
            raise WireError(f"[{len(found)}]{error.where}", error.problem) from error
        return tuple(found)

    return read


def _parsed(parse: Callable[[str], Any]) -> _Reader:
    def read(value: Any) -> Any:
        text = _text(value)
        try:
            return parse(text)
        except ValueError as error:
            raise WireError("", str(error)) from error

    return read


def _record(kind: type) -> _Reader:
    keys = tuple(key for _, key, _ in _fields(kind))
    readers = tuple(_reader(hint) for _, _, hint in _fields(kind))
    values_of = _listed(len(keys)) if kind in _ARRAYS else _keyed(keys)

    def read(value: Any) -> Any:
        values = values_of(value)
        found: list[Any] = []
        try:
            for one, item in zip(readers, values, strict=True):
                found.append(one(item))
        except WireError as error:
            raise WireError(f".{keys[len(found)]}{error.where}", error.problem) from error
        try:
            return kind(*found)
        except ValueError as error:
            raise WireError("", str(error)) from error

    return read


def _listed(count: int) -> Callable[[Any], list[Any]]:
    def values_of(value: Any) -> list[Any]:
        if type(value) is not list:
            raise _refusal(list, value)
        if len(value) != count:
            raise WireError("", f"has {len(value)} elements, not {count}")
        return value

    return values_of


def _keyed(keys: tuple[str, ...]) -> Callable[[Any], list[Any]]:
    known = frozenset(keys)

    def values_of(value: Any) -> list[Any]:
        if type(value) is not dict:
            raise _refusal(dict, value)
        if value.keys() != known:
            unknown = [key for key in value if key not in known]
            missing = [key for key in keys if key not in value]
            problem = "is unknown" if unknown else "is missing"
            raise WireError(f".{(unknown or missing)[0]}", problem)
        return [value[key] for key in keys]

    return values_of


_JSON_NAMES: dict[type, str] = {
    str: "text",
    int: "an integer",
    float: "a number",
    bool: "a truth value",
    list: "an array",
    dict: "an object",
    type(None): "null",
}
# Few different slots fill many messages.
_LEAVES: dict[Any, _Reader] = {
    str: _text,
    int: _integer,
    float: _number,
    Slot: _parsed(lru_cache(maxsize=_SHARED)(Slot.parse)),
}
