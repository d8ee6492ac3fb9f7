"""The input of a decision: places of one topology, load of its executors, and their traffic.

Executors, workers and nodes are kept in the natural order of their ids. So "ties break by id" is
the first index everywhere, whatever order a file or a report had.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from controller.core.capacity import Spare
from migration.model import Component, Edge

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Marks: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = NDArray[np.uint32]
Singles: TypeAlias = NDArray[np.float32]


@lru_cache(maxsize=2**16)
def natural_key(name: str) -> tuple[tuple[int, str], ...]:
    """Order ids as people do: ``n2`` before ``n10``; a key for ``sorted``."""
    # Every second part is digits. Of two numbers the longer one is larger. So no number is made of
    # the digits, which Python does only up to a few thousand of them.
    parts = re.split(r"0*([0-9]+)", name)
    return tuple((len(p), p) if i % 2 else (-1, p) for i, p in enumerate(parts))


@lru_cache(maxsize=16)
def numbered(component_of: tuple[str, ...]) -> tuple[tuple[str, ...], Ints]:
    """Name the components in their order, and number that of each executor, (E,)."""
    names, number = np.unique(component_of, return_inverse=True)
    return tuple(map(str, names)), number.astype(np.int64)


def place_after(place: Ints, steps: Iterable[tuple[int, int]]) -> Ints:
    """Give the placement after moves, each an executor and its new worker."""
    after = place.copy()
    for executor, worker in steps:
        after[executor] = worker
    return after


class Level(NamedTuple):
    """How full a space of each worker is; NaN where not known."""

    held: Floats  # (W,)
    most: Floats  # (W,), up to where it may be filled

    def filled(self, some: Marks, share: float) -> "Level":
        """Count some workers, (W,), as filled up to a share where it is known."""
        return Level(np.where(some & ~np.isnan(self.held), share * self.most, self.held), self.most)

    def with_opened(self, count: int) -> "Level":
        """Add workers, whose space is as the smallest."""
        least = np.nan if np.isnan(self.most).all() else np.nanmin(self.most)
        unknown, most = np.full(count, np.nan), np.full(count, least)
        return Level(np.append(self.held, unknown), np.append(self.most, most))


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """Nodes and workers a topology may use, ids in natural order."""

    nodes: tuple[str, ...]
    workers: tuple[str, ...]
    node_of: Ints  # (W,), index of each worker's node
    # (W,), CPU a worker may use; where nodes share theirs, what each has if all take as much.
    capacity_cores: Floats
    closed: tuple[str | None, ...]  # (W,), why nothing may move there now; None where it may
    # What may be opened where workers are too full, or why nothing may; None where nothing is free.
    spare: Spare | str | None = None
    # (N,), CPU that the workers of a node share; None where each has its own.
    node_cores: Floats | None = None
    other_cores: Floats | None = None  # (N,), of it, what others than this topology use
    # (N,), how much more they use at their peaks: no room, and no load.
    peak_cores: Floats | None = None
    # (N,), what topologies may use there of which nothing is known now: no room, and no load.
    unheard_cores: Floats | None = None
    # (2, N), bytes per second that the topology may send from each node, and receive there; NaN
    # where not known, and None where none is.
    link_bytes_s: Floats | None = None
    spaces: Mapping[str, Level] = field(default_factory=dict)  # by name, where one is known
    # (N,), the memory of each node where Storm's scheduler counts it, and what others than this
    # topology declare there; None where it does not.
    memory_mb: Floats | None = None
    other_memory_mb: Floats | None = None
    hop_times: float = 1.0  # what a tuple between workers costs, as times what it does in the lab
    hop_doubt: float = 0.0  # by what share of that it may cost more
    is_open: NDArray[np.bool_] = field(init=False, repr=False)  # (W,), something may move there

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_open", _is_none(self.closed))

    @classmethod
    def build(cls, nodes: Iterable[str], workers: Iterable[tuple[str, str, float]]) -> "Cluster":
        """Put nodes, and workers as (id, node, capacity in cores), in order."""
        names = tuple(sorted(nodes, key=natural_key))
        rows = sorted(workers, key=lambda row: natural_key(row[0]))
        index = {name: i for i, name in enumerate(names)}
        return cls(
            nodes=names,
            workers=tuple(row[0] for row in rows),
            node_of=np.array([index[row[1]] for row in rows], dtype=np.int64),
            capacity_cores=np.array([row[2] for row in rows], dtype=np.float64),
            closed=(None,) * len(rows),
        )

    @property
    def unit_of(self) -> Ints:
        """(W,), whose CPU each worker uses: that of a node, or its own."""
        return np.arange(len(self.workers)) if self.node_cores is None else self.node_of

    @property
    def unit_cores(self) -> Floats:
        """(U,), the CPU of each of those."""
        return self.capacity_cores if self.node_cores is None else self.node_cores

    @property
    def unit_names(self) -> tuple[str, ...]:
        return self.workers if self.node_cores is None else self.nodes

    def shared_out(self) -> "Cluster":
        """Give each worker a share of its node's CPU for itself, and look at nothing but CPU."""
        if self.node_cores is None:
            return self
        return Cluster(
            nodes=self.nodes,
            workers=self.workers,
            node_of=self.node_of,
            capacity_cores=self.capacity_cores,
            closed=self.closed,
            spare=self.spare,
        )

    def emptied(self, worker: int) -> Spare:
        """Take a worker without executors for a free slot."""
        node = self.nodes[self.node_of[worker]]
        return Spare(self.workers[worker], node, float(self.capacity_cores[worker]))

    def with_opened(self, *slots: Spare) -> "Cluster":
        """Let executors move to some slots, which come last where they are no workers yet."""
        opened = {slot.worker for slot in slots}
        new = [slot for slot in slots if slot.worker not in self.workers]
        node_of = np.array([self.nodes.index(slot.node) for slot in new], dtype=np.int64)
        workers = (*self.workers, *(slot.worker for slot in new))
        closed = zip(workers, (*self.closed, *(None for _ in new)), strict=True)
        return replace(
            self,
            workers=workers,
            node_of=np.append(self.node_of, node_of),
            capacity_cores=np.append(self.capacity_cores, [slot.capacity for slot in new]),
            spaces={name: level.with_opened(len(new)) for name, level in self.spaces.items()},
            closed=tuple(None if name in opened else why for name, why in closed),
            spare=None,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Tuples per second between executors, one row a pair, each array of shape (P,).

    Source and target are indices of executors; rows are sorted by (source, target).
    """

    source: Ints
    target: Ints
    tps: Floats
    var: Floats | None = None  # variance of the rates; None: they are known exactly
    # How large a tuple is on its way to another worker; NaN, or None for all, where not known.
    size_bytes: Floats | None = None

    @classmethod
    def build(cls, source: Ints, target: Ints, tps: Floats) -> "Traffic":
        """Add up equal pairs and sort: at most one row a pair, none of zero."""
        span = int(max(source.max(initial=0), target.max(initial=0))) + 1
        keys, back = np.unique(source * span + target, return_inverse=True)
        sums = np.bincount(back, weights=tps, minlength=len(keys)).astype(np.float64)
        keys, sums = keys[sums != 0], sums[sums != 0]
        return cls(keys // span, keys % span, sums)

    def of_pairs(self, rows: Ints | NDArray[np.bool_]) -> "Traffic":
        """Leave out all other pairs."""
        known = (None if one is None else one[rows] for one in (self.var, self.size_bytes))
        return Traffic(self.source[rows], self.target[rows], self.tps[rows], *known)

    @property
    def total_tps(self) -> float:
        return float(self.tps.sum())


@dataclass(frozen=True, slots=True, eq=False)
class LoadSnapshot:
    """One topology at one moment: where its executors are, what they use, and their traffic."""

    topology: str
    time_s: float
    components: tuple[Component, ...]
    edges: tuple[Edge, ...]
    executors: tuple[str, ...]  # ids in natural order
    component_of: tuple[str, ...]  # (E,), component of each executor
    place: Ints  # (E,), index of each executor's worker
    cpu_cores: Floats  # (E,), CPU used, own thread and share of the process's other CPU
    queue: Floats  # (E,), tuples waiting
    pinned: tuple[str | None, ...]  # (E,), why the executor may not move now; None where it may
    traffic: Traffic
    cpu_var: Floats | None = None  # (E,), variance of `cpu_cores`; None: they are known exactly
    # (E,), by what factor more is sent to each than it works off, by its queue; None: as much.
    wanted_times: Floats | None = None
    # By what factor the input was higher in the last day, or will be in the next one.
    peak_times: float = 1.0
    # (E,), memory that each declares; None where Storm's scheduler does not count it.
    memory_mb: Floats | None = None
    # (E,), about how much state would travel with each; NaN, or None for all, where not known.
    state_bytes: Floats | None = None
    # (E,) by space, what each keeps there; None where executors are where the levels were measured.
    kept: Mapping[str, Floats] | None = None
    # (E,), what moving each costs users, as times a move without a pause; None: all cost as much.
    move_weights: Floats | None = None
    is_movable: NDArray[np.bool_] = field(init=False, repr=False)  # (E,), executors that may move

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_movable", _is_none(self.pinned))

    def weights_of(self, executors: Ints) -> Floats:
        """Weigh the moves of some executors, as of `move_weights`."""
        if self.move_weights is None:
            return np.ones(len(executors))
        return self.move_weights[executors]

    def placed(self, place: Ints, cpu_cores: Floats | None = None) -> "LoadSnapshot":
        """Place the executors elsewhere, where they may want another amount of CPU."""
        if cpu_cores is None:
            return self._changed(place=place)
        return self._changed(place=place, cpu_cores=cpu_cores)

    def moved(self, executor: int, worker: int) -> "LoadSnapshot":
        """Place one executor elsewhere, all else as it is."""
        return self.placed(place_after(self.place, [(executor, worker)]))

    def at(
        self,
        time_s: float,
        place: Ints,
        cpu_cores: Floats,
        traffic: "Traffic",
        cpu_var: Floats | None = None,
    ) -> "LoadSnapshot":
        """Take the same executors at another moment."""
        return self._changed(
            time_s=time_s, place=place, cpu_cores=cpu_cores, traffic=traffic, cpu_var=cpu_var
        )

    def holding(self, reasons: Mapping[int, str]) -> "LoadSnapshot":
        """Pin some executors more, each with a reason; a reason that is there already stays."""
        held = [e for e in reasons if self.is_movable[e]]
        if not held:
            return self
        pinned, is_movable = list(self.pinned), self.is_movable.copy()
        for e in held:
            pinned[e] = reasons[e]
        is_movable[held] = False
        return self._changed(pinned=tuple(pinned), is_movable=is_movable)

    def of_those(self, is_movable: NDArray[np.bool_]) -> "LoadSnapshot":
        """Let no other executors move, without a reason."""
        return self._changed(is_movable=is_movable)

    def keeping(self, kept: Mapping[str, Floats]) -> "LoadSnapshot":
        """Note what each executor keeps in the spaces of workers, wherever it goes."""
        return self._changed(kept=kept)

    def peaking(self, times: float) -> "LoadSnapshot":
        """Note by what factor the input is higher at its peak."""
        return self._changed(peak_times=times)

    def _changed(self, **changes: Any) -> "LoadSnapshot":
        if "cpu_cores" in changes:
            changes["wanted_times"] = None  # of another load
        after = object.__new__(LoadSnapshot)  # `replace` would look through all executors again
        for name in self.__slots__:
            object.__setattr__(after, name, changes.get(name, getattr(self, name)))
        return after


# From cycle to cycle they usually stay.
@lru_cache(maxsize=16)
def _is_none(reasons: tuple[str | None, ...]) -> NDArray[np.bool_]:
    found = np.array([reason is None for reason in reasons], dtype=np.bool_)
    found.flags.writeable = False
    return found
