"""What a record of the journal has; `lines.py` has how it is written.

The controller's memory stands in a head at the beginning of each segment, and sometimes within it,
so that a replay may begin there. It is MessagePack, which writes arrays as their bytes and takes
any value for a key.
"""

from base64 import b64decode, b64encode
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec import Raw, Struct

from controller.core.controls import Controls
from controller.core.guards import Answers
from controller.core.runs import Refused
from controller.journal.lines import of_another_version
from migration.model import NodeAcks, NodeLoad, Plan, Publication, Slot

# A reader refuses a segment of another format; raise it whenever a key changes its meaning.
FORMAT = 6

T = TypeVar("T")


class Head(Struct, frozen=True, tag_field="kind", tag="head"):
    """The values that a replay needs before it begins with the next tick."""

    format: Any = None
    writer: str = ""
    seq: int = 0  # of the tick before
    time_s: float = 0.0  # Unix seconds
    config: dict[str, Any] = {}  # every key of the settings in force
    memory: Any = None  # a `Memory` by `encode`; of another format, anything


class ViewRecord(Struct, frozen=True, kw_only=True):
    """A topology as the cycle saw it."""

    topology: str
    stand_back: str | None = None
    plan: Plan  # whole each time: a lost record must not leave a wrong plan for long
    acks: tuple[str, ...] = ()  # the nodes whose newest acks were fresh


class TickRecord(Struct, frozen=True, tag_field="kind", tag="tick", kw_only=True):
    """The input and the outcome of a cycle; the order of the keys stays, for `reader` matches them.

    Of the messages (`publications`, `acks` and `loads`) it has those that had changed. A writer
    gives the bytes in which each came, as `Raw`.
    """

    seq: int
    cluster: str = ""  # epochs count within one cluster's life only
    now_s: float
    time_s: float
    epoch: int | None = None
    controls: Controls = Controls()
    drained: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    views: tuple[ViewRecord, ...] = ()
    load_nodes: tuple[str, ...] = ()  # the nodes whose newest report was seen
    rests: tuple[tuple[str, str, float], ...] = ()
    not_begun: tuple[tuple[str, str], ...] = ()
    # topology, answer to a question of the policy by `encode`
    answers: tuple[tuple[str, str], ...] = ()
    begun: tuple[tuple[float, str, str], ...] = ()
    refused: tuple[tuple[str, Refused], ...] = ()
    guard_answers: Answers = ()
    earlier: tuple[tuple[str, str, float], ...] = ()
    searches: tuple[tuple[str, float], ...] = ()
    error: str | None = None  # what kept the cycle from looking
    unwritten: tuple[str, ...] = ()  # topologies whose plan another controller had changed
    commands: tuple[dict[str, Any], ...] = ()  # what operators asked for, for people alone
    cycles: Raw = Raw(b"[]")  # how the cycle ended, by topology
    publications: tuple[Publication, ...] = ()
    acks: tuple[NodeAcks, ...] = ()
    loads: tuple[NodeLoad, ...] = ()


def other_format(found: object) -> str:
    """Name a format that this version does not read, and which version does."""
    if not isinstance(found, int):
        return f"format {found}, which no version of nstorm reads"
    return f"format {found}, which {'a newer' if found > FORMAT else 'an older'} nstorm reads"


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


def made(kind: type[T], value: Any) -> T:
    """Make what `decode` has left as it was written, since its type was not known."""
    try:
        return msgspec.convert(value, kind, dec_hook=_made)
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
