"""Maps what tasks send each other to executors.

A worker with many pairs names the heaviest and folds the others by component. A folded figure is
kept as a pair with a number beyond all tasks as its target, and spread when it is looked at.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from controller.core.cluster import Floats, Ints
from migration.model import ExecutorId, Publication

# A worker and two of its tasks are one number, for which a topology has at most four million tasks.
_TARGET_BITS = 23
_WORKER_SHIFT = 2 * _TARGET_BITS - 1
FIRST_COMPONENT = 2 ** (_TARGET_BITS - 1)  # targets from here on are components


def key_of(worker: Ints, first: Ints, second: Ints) -> Ints:
    """Make one number of a worker and two tasks, in their order; the second may be a component."""
    keys: Ints = worker << _WORKER_SHIFT | first << _TARGET_BITS | second
    return keys


def worker_of(keys: Ints) -> Ints:
    return keys >> _WORKER_SHIFT


def ends_of(keys: Ints) -> tuple[Ints, Ints]:
    """Give the two tasks of each key."""
    ends = keys & 2**_WORKER_SHIFT - 1
    return ends >> _TARGET_BITS, ends & 2**_TARGET_BITS - 1


def component_targets(publication: Publication) -> dict[str, int]:
    """Give each component its number as a target; a rebalance changes none."""
    return {name: FIRST_COMPONENT + i for i, name in enumerate(publication.placed_components)}


def row_by_task(executors: Sequence[ExecutorId]) -> Ints:
    """Give the row of the executor that has each task; -1 where none has it."""
    rows = np.full(max((e.end for e in executors), default=0) + 1, -1, dtype=np.int64)
    for row, executor in enumerate(executors):
        rows[max(executor.start, 0) : executor.end + 1] = row
    return rows


@dataclass(frozen=True, slots=True, eq=False)
class TaskMap:
    """Which executor, by its row, has which task."""

    executor_of: Ints  # (tasks,), row by task; -1 where no executor has it, as Storm's system task
    first: Ints  # (C,), where the executors of each component begin in `members`
    count: Ints  # (C,), how many they are
    members: Ints  # (E,), rows by component
    share: Floats  # (E,), which part of the component's tasks each member has
    component: Ints  # (E,), number of each executor's, from 0

    @classmethod
    def of(
        cls,
        executors: Sequence[ExecutorId],
        component_of: Sequence[str],
        targets: Mapping[str, int],
    ) -> "TaskMap":
        """Build it from the executors in the order of their rows and `component_targets`."""
        component = np.array([targets[name] for name in component_of], np.int64) - FIRST_COMPONENT
        tasks = np.array([e.end - e.start + 1 for e in executors], np.float64)
        members = np.argsort(component, kind="stable")
        count = np.bincount(component, minlength=len(targets))
        all_tasks = np.bincount(component, tasks, len(targets))
        share = (tasks / all_tasks[component])[members]
        first = np.cumsum(count) - count
        return cls(row_by_task(executors), first, count, members, share, component)

    def between(self, source: Ints, target: Ints) -> tuple[Ints, Ints, Ints, Floats]:
        """Find the executors of pairs of tasks, shape (P,); a target may be a component.

        Gives which pair, source and target executor, and which part of the pair's tuples, each of
        shape (R,): the named pairs first. What was folded is spread evenly over the tasks; tasks
        without an executor are left out.
        """
        size = len(self.executor_of)
        sender = np.where((source >= 0) & (source < size), self.executor_of[source % size], -1)
        named = (sender >= 0) & (target >= 0) & (target < size)
        named[named] = self.executor_of[target[named]] >= 0
        rows = np.flatnonzero(named)
        ends = self.executor_of[target[rows]]
        component = target - FIRST_COMPONENT
        folded = np.flatnonzero((sender >= 0) & (component >= 0) & (component < len(self.count)))
        if not len(folded):
            return rows, sender[rows], ends, np.ones(len(rows))
        times = self.count[component[folded]]
        spread = np.repeat(folded, times)
        within = np.arange(len(spread)) - np.repeat(np.cumsum(times) - times, times)
        member = self.first[component[spread]] + within
        both = np.concatenate([rows, spread])
        return (
            both,
            sender[both],
            np.concatenate([ends, self.members[member]]),
            np.concatenate([np.ones(len(rows)), self.share[member]]),
        )
