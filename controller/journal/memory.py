"""What a controller remembers from earlier ticks, as JSON that gives back the very same floats.

It stands at the head of each segment, so that the segment can be replayed without those before it.
The codec follows the annotations of the classes, so it need not know how rates are kept. What is
None by default is left out while it is, so that a key can be added to what is written already.
"""

import base64
import types
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from controller.journal.record import JournalError
from migration import MigrationError, wire
from migration.model import ExecutorId, NodeLoad, Slot, WorkerLoad

T = TypeVar("T")


def encode(what: Any, loads: Iterable[NodeLoad] = ()) -> Any:
    """Make a memory, or an answer of a search, plain.

    Parameters
    ----------
    loads : iterable of NodeLoad
        Reports that are written beside it; the memory only names them.
    """
    known = {_name_of(worker) for load in loads for worker in load.workers}

    def plain(value: Any) -> Any:
        found: Any = value
        if isinstance(value, WorkerLoad):
            name = _name_of(value)
            found = name if name in known else wire.encode(value).decode()
        elif isinstance(value, ExecutorId | Slot):
            found = str(value)
        elif isinstance(value, np.ndarray):
            data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
            found = [value.dtype.str, list(value.shape), data]
        elif isinstance(value, Mapping):
            found = [[plain(key), plain(item)] for key, item in value.items()]
        elif isinstance(value, tuple):
            found = [plain(item) for item in value]
        elif isinstance(value, frozenset):
            found = [plain(item) for item in sorted(value)]
        elif is_dataclass(value) and not isinstance(value, type):
            found = {
                f.name: plain(getattr(value, f.name))
                for f in fields(value)
                if f.default is not None or getattr(value, f.name) is not None
            }
        return found

    return plain(what)


def decode(kind: type[T], document: Any, loads: Iterable[NodeLoad] = ()) -> T:
    """Read what `encode` wrote.

    Parameters
    ----------
    kind : type
        Of what was written.
    loads : iterable of NodeLoad
        The reports that are written beside it.

    Raises
    ------
    JournalError
        It is of another version of nstorm.
    """
    known = {_name_of(worker): worker for load in loads for worker in load.workers}

    def read(kind: Any, value: Any) -> Any:
        origin, of = get_origin(kind), get_args(kind)
        found: Any = value
        if origin in (Union, types.UnionType):
            inner = next(arg for arg in of if arg is not type(None))
            found = None if value is None else read(inner, value)
        elif kind is WorkerLoad:
            report = known.get(value)
            found = wire.decode(WorkerLoad, value.encode()) if report is None else report
        elif kind in (ExecutorId, Slot):
            found = kind.parse(value)
        elif origin is np.ndarray:
            flat = np.frombuffer(base64.b64decode(value[2]), dtype=np.dtype(value[0]))
            found = flat.reshape(value[1])
        elif isinstance(origin, type) and issubclass(origin, Mapping):
            found = {read(of[0], key): read(of[1], item) for key, item in value}
        elif origin is tuple:
            each = [of[0]] * len(value) if of[-1] is Ellipsis else of
            found = tuple(read(one, item) for one, item in zip(each, value, strict=True))
        elif origin is frozenset:
            found = frozenset(read(of[0], item) for item in value)
        elif isinstance(kind, type) and is_dataclass(kind):
            found = kind(
                **{
                    f.name: read(_hints(kind)[f.name], value[f.name])
                    for f in fields(kind)
                    if f.default is not None or f.name in value
                }
            )
        return found

    try:
        return cast(T, read(kind, document))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, MigrationError) as error:
        raise JournalError(f"the journal is of another version of nstorm: {error!r}") from error


_hints = cache(get_type_hints)


def _name_of(report: WorkerLoad) -> str:
    return f"{report.topology} {report.slot} {report.incarnation} {report.time_ms}"
