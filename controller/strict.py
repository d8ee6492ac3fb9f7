"""Reads what people write into Structs; whatever is wrong is refused by its path.

A key that no code reads is refused too, with the one that was meant: it would be ignored otherwise.
"""

import difflib
import json
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from controller.errors import ControllerError

T = TypeVar("T")
_MESSAGE = re.compile(r"(.*?)(?: - at (`key` in )?`\$(.*)`)?", re.DOTALL)
_FIELD = re.compile(r"Object (contains unknown|missing required) field `(.*)`", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
_SHOWN = 60


def read(document: Any, kind: type[T], refusal: type[ControllerError], path: str = "") -> T:
    """Make a Struct, of Structs that forbid unknown fields, of what JSON or YAML gave.

    Raises `refusal` if something is missing, unknown or cannot be: one line that begins with the
    path, where the document stands in its file.
    """
    for at, text in _half_characters(document, path):
        raise refusal(f"{at}: half a character, as in {json.dumps(text)}, is no text")
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        message = _in_our_words(str(error), document, inspect.type_info(kind), path)
        raise refusal(message) from None


def joined(path: str, key: str | int) -> str:
    """Go a step further into a document."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    shown = key if key and key.isprintable() else json.dumps(key)
    return f"{path}.{shown}" if path else shown


def meant(word: str, known: Collection[str]) -> str:
    """Name the known value that is most like an unknown one, else all known values."""
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"


def _half_characters(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Find texts that cannot be written, with their places: JSON and YAML let them through."""
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            for one in (key, item):
                yield from _half_characters(one, joined(path, str(key)))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            if not isinstance(item, str) or not item.isascii():
                yield from _half_characters(item, joined(path, i))


def _in_our_words(message: str, document: Any, kind: inspect.Type, path: str) -> str:
    """Write a message of msgspec in our words."""
    parts = _MESSAGE.fullmatch(message)
    assert parts is not None  # it matches everything
    problem, of_key, where = parts.groups()
    value = document
    for key, index in _STEP.findall(where or ""):
        step = key or int(index)
        path, kind = joined(path, step), _within(kind, value, step)
        value = value.get(key) if key else value[step]
    field = _FIELD.fullmatch(problem)
    if field is None:
        where = path or "the document"
        return f"{where}: a key must be text" if of_key else f"{where}: {_wanted(kind, value)}"
    fields = _fields(kind, value)
    if field[1] == "contains unknown":
        return f"{joined(path, field[2])}: unknown key, {meant(field[2], fields)}"
    return f"{joined(path, field[2])}: must be {_must(fields[field[2]])}, is missing"


def _wanted(kind: inspect.Type, value: Any) -> str:
    shown = "an object" if isinstance(value, dict) else json.dumps(value, default=str)
    problem = f"must be {_must(kind)}, is {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'}"
    words = _words(kind)
    if isinstance(value, str) and difflib.get_close_matches(value, words, n=1):
        problem += f", {meant(value, words)}"
    return problem


def _kinds(kind: inspect.Type) -> Iterable[inspect.Type]:
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


def _fields(kind: inspect.Type, value: Any) -> dict[str, inspect.Type]:
    """List the keys of an object; of several kinds its tag shows which it is."""
    structs = [one for one in _kinds(kind) if isinstance(one, inspect.StructType)]
    tag = structs[0].tag_field
    given = value.get(tag) if tag else None
    chosen = next((one for one in structs if one.tag == given), structs[0])
    tags = {tag: inspect.LiteralType(tuple(str(one.tag) for one in structs))} if tag else {}
    return {**tags, **{field.encode_name: field.type for field in chosen.fields}}


def _within(kind: inspect.Type, value: Any, step: str | int) -> inspect.Type:
    lists = (inspect.ListType, inspect.VarTupleType)
    for one in _kinds(kind):
        if isinstance(one, lists):
            return one.item_type
    fields = _fields(kind, value)
    return fields[step] if isinstance(step, str) else list(fields.values())[step]


def _words(kind: inspect.Type) -> list[str]:
    if isinstance(kind, inspect.EnumType):
        return [str(word) for word in kind.cls]
    return [str(word) for word in kind.values] if isinstance(kind, inspect.LiteralType) else []


def _must(kind: inspect.Type) -> str:
    found = "an object"
    match kind:
        case inspect.UnionType():
            found = " or ".join(dict.fromkeys(map(_must, kind.types)))
        case inspect.FloatType() | inspect.IntType():
            least = "" if kind.ge is None else f" of at least {kind.ge:g}"
            most = "" if kind.le is None else f" and at most {kind.le:g}"
            found = f"a {'whole ' * isinstance(kind, inspect.IntType)}number{least}{most}"
        case inspect.LiteralType() | inspect.EnumType():
            found = f"one of {', '.join(_words(kind))}"
        case inspect.StrType():
            found = "text that is not empty" if kind.min_length else "text"
        case inspect.ListType() | inspect.VarTupleType():
            found = "a list that is not empty" if kind.min_length else "a list"
        case inspect.StructType(array_like=True):
            found = f"[{', '.join(field.encode_name for field in kind.fields)}]"
        case inspect.NoneType():
            found = "null"
    return found
