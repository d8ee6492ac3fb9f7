"""The tables of the pipeline: raw → ticks → episodes → trials → answers; each is readable alone.

A row of `DECODED` is of one kind. `TICK`: one topology in one tick. `PART`: what a segment holds of
one topology on one day. `LEFT_OUT`: what of a segment could not be used. `RUN`: what a run of moves
has changed, as it was known at the end of the segment. What belongs to another kind is null.
"""

import hashlib
import re
from typing import Any

import pyarrow as pa

from controller.core.spaces import COLUMNS

# The kinds of rows.
TICK, PART, LEFT_OUT, RUN = "tick", "part", "left_out", "run"
# The topology and the day of rows that are of none.
NO_TOPOLOGY, NO_DAY = "-", -1

# Little-endian float32, one after the other, as numpy.frombuffer(row, "<f4") reads them. Spark
# would copy the numbers of a list one at a time.
_FLOATS = pa.binary()
_INTS = pa.list_(pa.int32())
_NAMES = pa.list_(pa.string())

# A file as it lies there; null where who reads the row opens the path.
RAW = pa.schema([("path", pa.string()), ("data", pa.binary())])

# What stays in a piece of ticks; only the first of them has it.
LAYOUT = pa.struct(
    [
        ("executors", _NAMES),  # (E,), natural order
        ("components", _NAMES),  # (E,)
        ("workers", _NAMES),  # (W,)
        ("nodes", _NAMES),  # (W,), the node of each worker
        ("place", _INTS),  # (E,), index of each executor's worker before the first tick
        ("source", _INTS),  # (P,), indices of executors
        ("target", _INTS),  # (P,)
        ("rest", pa.string()),  # `Unchanging`, for the replay alone
    ]
)
MOVED = pa.struct([("executor", pa.int32()), ("worker", pa.int32()), ("own", pa.bool_())])

DECODED = pa.schema(
    [
        # With the next three the order of ticks: a clock that is set back does not change it.
        ("order_s", pa.float64()),  # Unix seconds at which the segment begins, or one before it
        ("writer", pa.string()),
        ("number", pa.int64()),  # of the segment
        ("row", pa.int64()),  # within it; of a part, the tick before the segment, if it is known
        ("piece", pa.int32()),  # ticks of one layout and day within it
        ("time_s", pa.float64()),  # Unix seconds; of a run, when it began
        ("span_s", pa.float64()),  # how long the load stands for; of a part, all of it
        ("held", pa.bool_()),  # nothing could be decided then
        ("moved", pa.list_(MOVED)),  # executors that are elsewhere than in the tick before
        ("cpu_cores", _FLOATS),  # (E,)
        ("traffic_tps", _FLOATS),  # (P,)
        # (W,), how much of its heap each worker has filled, and may fill; null where not known.
        *((name, _FLOATS) for name in COLUMNS),
        # (N,), what others use of each node, and how much more at their peaks; NaN or null: not
        # known, as of the peak.
        ("other_cores", _FLOATS),
        ("other_peak_cores", _FLOATS),
        ("peak_tps", pa.float64()),  # the highest input, as `core.peaks` counts it
        ("acked", pa.float64()),  # tuples since the tick before; NaN where not known
        ("failed", pa.float64()),
        ("timed", _INTS),  # (B,), of these, acked ones by the buckets of PROTOCOL.md
        ("layout", LAYOUT),
        ("ticks", pa.int64()),  # of a part
        ("executors", pa.int32()),
        ("free_s", pa.float64()),  # of `span_s`, in which something could be decided
        ("rule", pa.string()),  # of what was left out
        ("count", pa.int64()),
        ("effect", pa.string()),  # of a run: `Effect` as JSON
        ("topology", pa.string()),
        ("kind", pa.string()),
        ("folder", pa.string()),  # of the topology, see `folder_of`
        ("day", pa.int32()),  # since 1970, UTC
    ]
)
SEGMENT = ("order_s", "writer", "number")  # with `row`, the order of ticks
BY = ("kind", "folder", "day")

_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,200}")


def folder_of(topology: str) -> str:
    """Name the folder of a topology, a digest where the name is long or not plain ASCII.

    Arrow and Spark write other letters in the names of folders in different ways.
    """
    plain = _PLAIN.fullmatch(topology)
    return topology if plain else hashlib.sha256(topology.encode()).hexdigest()


def named(topology: str, day: int) -> dict[str, Any]:
    """Fill the columns of a row of `DECODED` with what it is of."""
    return {"topology": topology, "folder": folder_of(topology), "day": day}


# When a controller led: the first and the last tick of an epoch in a segment.
LED = pa.schema(
    [
        ("writer", pa.string()),
        ("number", pa.int64()),
        ("cluster", pa.string()),
        ("epoch", pa.int64()),
        ("time_s", pa.float64()),
        ("last_s", pa.float64()),
    ]
)

# What settings are tried on: a topology on a day.
EPISODES = pa.schema(
    [
        ("topology", pa.string()),
        ("day", pa.int32()),  # since 1970, UTC
        ("folders", _NAMES),  # of `DECODED`, a segment each, in order
        ("ticks", pa.int64()),
        ("executors", pa.int32()),
        ("span_s", pa.float64()),
        ("free_s", pa.float64()),  # of it, in which something could be decided
        ("chosen_s", pa.float64()),  # of that, what sets are chosen by; null for all of it
    ]
)

# One parameter set in one episode, a row for what it is chosen by and one for what is held back.
TRIALS = pa.schema(
    [
        ("set", pa.int32()),  # number of the parameter set
        ("topology", pa.string()),
        ("day", pa.int32()),
        ("held_back", pa.bool_()),
        ("ticks", pa.int64()),
        ("moves", pa.int64()),
        ("span_s", pa.float64()),
        ("total", pa.float64()),  # tuples sent
        ("inter_node", pa.float64()),
        ("inter_worker", pa.float64()),
        ("unserved_core_s", pa.float64()),
        # Of the fullest direction of a node's link, in each tick; and the time it is known of.
        ("fullest_bytes", pa.float64()),
        ("sized_s", pa.float64()),
        # What users felt while all executors were where they really were, as nothing else is known.
        ("recorded_s", pa.float64()),  # of `span_s`
        ("acked", pa.float64()),
        ("failed", pa.float64()),
        ("timed", pa.list_(pa.int64())),  # as in `DECODED`
        # One of ten decisions is explained: what let these do no more, as in `Series`.
        ("bound", pa.list_(pa.struct([("what", pa.string()), ("decisions", pa.int64())]))),
    ]
)

# What each set costs in each episode, the time held back apart, with the figures of `TRIALS`.
ANSWERS = pa.schema([("settings", pa.string()), ("cost", pa.float64()), *TRIALS])

# A topology in an hour, and, where `unit` is there, what it used of a node in that hour. Where a
# limit gives each worker CPU of its own, a unit is a worker.
HOURS = pa.schema(
    [
        ("topology", pa.string()),
        ("hour", pa.int64()),  # since 1970, UTC
        ("unit", pa.string()),
        ("node", pa.string()),  # the name of its host
        ("capacity_cores", pa.float64()),  # of the unit
        ("cores", pa.float64()),  # mean
        ("peak_cores", pa.float64()),  # of the busiest minute but one; so is the next peak
        # Of a unit, once a day: what its bolts used without hops, and what the same tuples took on
        # the topology's other units.
        ("own_core_s", pa.float64()),
        ("usual_core_s", pa.float64()),
        ("seen_s", pa.float64()),  # in which it was measured; so is what follows, of a topology
        ("input_tps", pa.float64()),  # what its spouts emit
        ("peak_tps", pa.float64()),
        ("acked", pa.float64()),  # tuples
        ("failed", pa.float64()),
        ("latency_p50_ms", pa.float64()),
        ("latency_p99_ms", pa.float64()),
    ]
)

# What all hours together come to, in one row: MessagePack, as who asked reads it.
CONCLUDED = pa.schema([("found", pa.binary())])
