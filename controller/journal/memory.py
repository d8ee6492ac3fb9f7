"""What a controller remembers from earlier ticks, as a text that gives back the very same values.

It stands at the head of each segment, so that the segment can be replayed without those before it.
MessagePack writes arrays as their bytes and takes any value for a key, both of which JSON does not.
"""

from base64 import b64decode, b64encode
from typing import Any, TypeVar

import msgspec
import numpy as np

from controller.journal.record import of_another_version
from migration.model import Slot

T = TypeVar("T")


def encode(what: Any) -> str:
    """Write a memory, or an answer of a search."""
    return b64encode(msgspec.msgpack.encode(what, enc_hook=_plain)).decode()


def decode(kind: type[T], text: Any) -> T:
    """Read what `encode` wrote; raises `JournalError` where it is of another version of nstorm."""
    try:
        data = b64decode(text)
        return msgspec.msgpack.decode(data, type=kind, dec_hook=_made)
    except (TypeError, ValueError, msgspec.DecodeError) as error:
        raise of_another_version(error) from error


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, np.ascontiguousarray(value).tobytes()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Slot):
        return str(value)
    raise NotImplementedError(type(value))


def _made(kind: Any, value: Any) -> Any:
    if kind is Slot:
        return Slot.parse(value)
    dtype, shape, data = value
    return np.frombuffer(data, np.dtype(dtype)).reshape(shape)
