"""The envelope around a value in a node's store, so that its reader knows its age and its health.

LMDB has no checksums of its own, and its reader in the workers maps the file without any lock.
"""

import struct
import zlib
from dataclasses import dataclass

from kvstore.errors import EnvelopeError

MAGIC = b"NSTM"
SCHEMA = 1
_HEAD = struct.Struct(">4sHQI")
_TAIL = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Envelope:
    """A payload and the count of its writer's changes."""

    version: int
    payload: bytes


def pack(version: int, payload: bytes) -> bytes:
    """Put a payload in its envelope; the writer's version must rise with each change.

    The bytes are magic, schema, version, length, payload, CRC-32 of all that; big endian.
    """
    body = _HEAD.pack(MAGIC, SCHEMA, version, len(payload)) + payload
    return body + _TAIL.pack(zlib.crc32(body))


def unpack(data: bytes) -> Envelope:
    """Take a payload out; an `EnvelopeError` unless the envelope is whole and of this schema."""
    if len(data) < _HEAD.size + _TAIL.size:
        raise EnvelopeError(f"envelope has {len(data)} bytes, fewer than its own frame")
    magic, schema, version, length = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise EnvelopeError(f"envelope begins with {magic!r}, not {MAGIC!r}")
    if schema != SCHEMA:
        raise EnvelopeError(f"envelope is of schema {schema}, only {SCHEMA} is understood")
    if length != len(data) - _HEAD.size - _TAIL.size:
        raise EnvelopeError(f"envelope of {len(data)} bytes claims a payload of {length}")
    (crc,) = _TAIL.unpack_from(data, len(data) - _TAIL.size)
    if crc != zlib.crc32(data[: -_TAIL.size]):
        raise EnvelopeError("envelope is damaged: its CRC-32 does not fit")
    return Envelope(version, data[_HEAD.size : -_TAIL.size])
