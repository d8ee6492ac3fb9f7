"""Bytes to values and back, for every JSON format of PROTOCOL.md.

Readers pass over keys that they do not know, because JVMs, agents and controllers of different
versions live side by side. What they do know has to be right: a plan that is half understood moves
the wrong thing.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, TypeVar, cast

import msgspec

from migration import WireError
from migration.model import (
    Candidacy,
    LocalPlan,
    NimbusReport,
    NodeAcks,
    NodeLoad,
    Nodes,
    Plan,
    Publication,
    Slot,
    SupervisorAck,
    WorkerAck,
    WorkerLoad,
)

# The version of the protocol that is understood here; PROTOCOL.md has the changes of each version.
SPEAKS = 2

ROOT = "/nstorm"
CLUSTER = f"{ROOT}/cluster"
EPOCH = f"{ROOT}/epoch"
LEADER = f"{ROOT}/leader"
NIMBUS = f"{ROOT}/nimbus"
NODES = f"{ROOT}/nodes"
TOPOLOGIES = f"{ROOT}/topologies"
PLANS = f"{ROOT}/plans"
ACKS = f"{ROOT}/acks"
LOAD = f"{ROOT}/load"
OPENS = f"{ROOT}/opens"
OFF = f"{ROOT}/off"

# Files of a node's store: while one is there the hooks of the node are off.
USER_FOLDERS = "u"  # of workers that have users of their own
OFF_FILE = "off"  # by hand, or by `nstorm off --here`
OFF_BY_CLUSTER = "off.cluster"  # by the agent, while the node `OFF` is not empty

PLAN_KEY = b"plan"
ACK_KEY = b"ack"
LOAD_KEY = b"load"

# No node holds more. ZooKeeper's own limit is 1 MiB, and it ends the session of who sends that.
LARGEST_NODE_BYTES = 256 * 1024
# What is longer is compressed in ZooKeeper; what is short stays readable by other tools.
_PLAIN_BYTES = 2048
# Nothing that nstorm writes comes near; garbage may pretend to be anything.
_LARGEST_MESSAGE_BYTES = 16 * 1024 * 1024
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31
_FASTEST = 1

_Message = (
    Plan
    | LocalPlan
    | Publication
    | Nodes
    | NimbusReport
    | Candidacy
    | NodeAcks
    | WorkerAck
    | SupervisorAck
    | NodeLoad
    | WorkerLoad
)
M = TypeVar("M", bound=_Message)


def topology_path(topology: str) -> str:
    return f"{TOPOLOGIES}/{topology}"


def plan_path(topology: str) -> str:
    return f"{PLANS}/{topology}"


def acks_path(supervisor: str) -> str:
    return f"{ACKS}/{supervisor}"


def load_path(supervisor: str) -> str:
    return f"{LOAD}/{supervisor}"


def _plain(value: object) -> str:
    if isinstance(value, Slot):
        return str(value)
    raise NotImplementedError(type(value))


# Few different slots fill many messages.
_slot = lru_cache(maxsize=2**16)(Slot.parse)


def _parsed(kind: type, value: object) -> Slot:
    if type(value) is not str:
        raise ValueError(f"Expected `str`, got `{type(value).__name__}`")
    return _slot(value)


ENCODER = msgspec.json.Encoder(enc_hook=_plain)


@cache
def decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """Make a decoder of what has messages in it."""
    return msgspec.json.Decoder(kind, dec_hook=_parsed)


def encode(message: _Message) -> bytes:
    """Write a message in its one canonical form: UTF-8 JSON without spaces, keys as PROTOCOL.md
    has.
    """
    return ENCODER.encode(message)


def packed(data: bytes) -> bytes:
    """Make a message ready for ZooKeeper: what is long is compressed (RFC 1952)."""
    if len(data) <= _PLAIN_BYTES:
        return data
    packer = zlib.compressobj(_FASTEST, wbits=_GZIP_WINDOW)
    return packer.compress(data) + packer.flush()


def unpacked(data: bytes) -> bytes:
    """Give back what `packed` was given; what is not compressed stays as it is.

    A `WireError` if it is cut or damaged, or far longer than any message.
    """
    if data.startswith(_GZIP):
        unpacker = zlib.decompressobj(_GZIP_WINDOW)
        try:
            data = unpacker.decompress(data, _LARGEST_MESSAGE_BYTES + 1)
        except zlib.error as error:
            raise WireError("", f"cannot be uncompressed: {error}") from error
        if not unpacker.eof and len(data) <= _LARGEST_MESSAGE_BYTES:
            raise WireError("", "is compressed and cut off")
    if len(data) > _LARGEST_MESSAGE_BYTES:
        raise WireError("", f"is longer than {_LARGEST_MESSAGE_BYTES:,} bytes")
    return data


class _RawLocalPlan(msgspec.Struct):
    """A `LocalPlan` whose plans stay as they came; `index` lets a JVM take out its own."""

    cluster: str
    index: tuple[tuple[str, int], ...] = ()
    plans: tuple[msgspec.Raw, ...] = ()


def encode_local(cluster: str, plans: Mapping[str, bytes]) -> bytes:
    """Write a `LocalPlan` of plans that are JSON already, by topology.

    What this version does not know of them reaches the JVMs of the node, which may know it.
    """
    index = tuple((topology, len(plan)) for topology, plan in plans.items())
    return ENCODER.encode(_RawLocalPlan(cluster, index, tuple(map(msgspec.Raw, plans.values()))))


def plans_of(local: bytes) -> list[bytes]:
    """Give back the plans that `encode_local` wrote, as they came, in their order."""
    return [bytes(plan) for plan in msgspec.json.decode(local, type=_RawLocalPlan).plans]


def decode(kind: type[M], data: bytes) -> M:
    """Read a message, compressed or not.

    Keys that are not known are passed over, and of a key that stands twice the last one counts. A
    `WireError` names the field. The bytes are then no JSON, or a field without a default is missing
    or of a wrong type. Or the values contradict each other (two entries of one executor).
    """
    name = kind.__name__
    try:
        plain = unpacked(data)
        plain.decode()  # msgspec looks at no key that it does not know
        return cast(M, decoder(cast(Any, kind)).decode(plain))
    except WireError as error:
        raise WireError(name, error.problem) from error
    except msgspec.ValidationError as error:
        raise _refusal(name, str(error)) from error
    # RecursionError: a deep nest of brackets is garbage like any other.
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise WireError(name, f"is no JSON: {error}") from error


_WRONG_KIND = re.compile(r"Expected `(.+)`, got `(.+)`")
_MISSING = re.compile(r"Object missing required field `(.+)`")


def _refusal(name: str, message: str) -> WireError:
    """Name the field first, as ``Plan.epoch: is str, not int``."""
    problem, _, path = message.partition(" - at `$")
    where = name + path.removesuffix("`")
    if "matching regex" in problem:
        return WireError(where, "is no name of at most 512 characters that can be printed")
    missing, kinds = _MISSING.fullmatch(problem), _WRONG_KIND.fullmatch(problem)
    if missing is not None:
        return WireError(f"{where}.{missing[1]}", "is missing")
    return WireError(where, f"is {kinds[2]}, not {kinds[1]}" if kinds else problem)
