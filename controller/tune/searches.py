"""Which topologies a sweep can search for in the time that it has, and what the others take."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from controller.config import Config
from controller.console import Console
from controller.core.policy import Question
from controller.errors import TuneError
from controller.output import counted
from controller.pipeline.engine import Engine, Episode
from controller.pipeline.fold import Fold
from controller.pipeline.opened import HERE, started
from controller.pipeline.spark import cores_of
from controller.pipeline.stages import samples
from controller.pipeline.where import Where
from controller.replay.recording import Span
from controller.replay.rerun import Rerun
from controller.tune.space import ParameterSet

# Up to here one core is enough for trials.
FOLD_S = 600.0
# Searches are made while the whole sweep takes no longer than this on the cores that it has.
MOST_S = 600.0
# After so much CPU it is known what a search of a topology takes.
TIMED_S = 10.0


@dataclass(frozen=True, slots=True)
class TopologyCost:
    """The CPU that all parameter sets take for one topology."""

    topology: str
    executors: int
    decide_s: float
    search_s: float  # or more, where no search could be timed


@dataclass(frozen=True, slots=True)
class Searches:
    """Which searches are made: as many as there is time for."""

    costs: Sequence[TopologyCost]
    sets: int
    searching: int  # of the sets, those whose policy searches
    cores: int

    @property
    def topologies(self) -> frozenset[str]:
        """The topologies that all sets search for, by id."""
        left_s = MOST_S * self.cores - sum(cost.decide_s for cost in self.costs)
        found: set[str] = set()
        for cost in sorted(self.costs, key=lambda cost: cost.search_s):
            if cost.search_s <= max(left_s, 0.0):
                found.add(cost.topology)
                left_s -= cost.search_s
        return frozenset(found)

    @property
    def spent_s(self) -> float:
        """CPU of all that is tried and searched."""
        made = sum(one.search_s for one in self.costs if one.topology in self.topologies)
        again_s = self.again * sum(one.search_s for one in self.costs) / max(self.searching, 1)
        return sum(one.decide_s for one in self.costs) + made + again_s

    @property
    def again(self) -> int:
        """How many sets can be tried once more with all searches; 0 if none or one, or all have."""
        others = self._others
        if not others:
            return 0
        search_s = sum(cost.search_s for cost in self.costs)
        decide_s = sum(cost.decide_s for cost in self.costs)
        made_s = search_s - sum(cost.search_s for cost in others)
        each_s = search_s / self.searching + decide_s / self.sets
        count = min(int((MOST_S * self.cores - decide_s - made_s) / each_s), self.sets)
        return count if count > 1 else 0

    @property
    def left_out(self) -> list[str]:
        """Name the searches that are not made, and what they would take; empty if all are."""
        others = self._others
        if not others:
            return []
        executors = sum(cost.executors for cost in others)
        minutes = sum(cost.search_s for cost in others) / 60
        count = len(others)
        topologies = "1 topology" if count == 1 else f"{count} topologies"
        where = f"In {topologies} with {counted(executors, 'executor')}"
        what = "it also searches for placements"
        if self.again:
            what = (
                f"only the {self.again} parameter sets that are best without searches are tried "
                "with them, and ranked"
            )
        return [
            f"{where} {what}. All sets together would need {minutes:,.0f} minutes of CPU or more "
            f"for that; a sweep may take {MOST_S / 60 * self.cores:.0f}."
        ]

    @property
    def _others(self) -> list[TopologyCost]:
        searched = self.topologies
        return [cost for cost in self.costs if cost.topology not in searched]


class _Timed:
    """Searches until that has taken its time; after that it only counts what is asked."""

    def __init__(self, limit_s: float, each_s: float) -> None:
        self.asked = self._answered = 0
        self.spent_s, self._limit_s, self.each_s = 0.0, limit_s, each_s

    def __call__(self, question: Question) -> Any:
        self.asked += 1
        if self.spent_s >= self._limit_s:
            return question.failed
        begun_s = time.thread_time()
        answer = question.answer()
        self._answered += 1
        self.spent_s += time.thread_time() - begun_s
        self.each_s = self.spent_s / self._answered
        return answer


def rehearse(
    samples: Iterable[tuple[str, int, float, Sequence[Span]]],
    sets: Sequence[ParameterSet],
    cores: int,
) -> Searches:
    """Let a set of every policy go through a sample of every topology, the smallest one first.

    A sample has the topology, its executors, how many times as many ticks there are, and spans. No
    more is searched than what shows whether all sets can. Raises `PolicyError` where a policy
    cannot work with this log; the message names what it lacks.
    """
    alike = Counter(one.config.policy for one in sets)
    of_policy = {one.config.policy: one.config for one in reversed(sets)}
    left_s, each_s = MOST_S * cores, 0.0
    found: list[TopologyCost] = []
    asking: set[str] = set()
    for topology, executors, times, spans in samples:
        decide_s = search_s = 0.0
        for name, config in of_policy.items():
            search = _Timed(min(left_s / (times * alike[name]), TIMED_S), each_s)
            decide_s += times * alike[name] * (_cpu_s(config, spans, search) - search.spent_s)
            search_s += times * alike[name] * search.asked * search.each_s
            each_s = search.each_s
            if search.asked:
                asking.add(name)
        left_s -= search_s
        found.append(TopologyCost(topology, executors, decide_s, search_s))
    return Searches(found, len(sets), sum(alike[name] for name in asking), cores)


def timed(
    stack: ExitStack,
    engine: Engine,
    of: Sequence[Episode],
    sets: Sequence[ParameterSet],
    *,
    where: Where,
    console: Console,
) -> tuple[Engine, Searches]:
    """Plan searches for the cores that there are, and start Spark where one takes too long."""
    with console.status("timing the searches"):
        found = rehearse(samples(engine, of), sets, cores_of(where.master or HERE))
    if isinstance(engine, Fold) and found.spent_s > FOLD_S:
        try:
            engine = stack.enter_context(started(where, console))
        except TuneError:  # where Java is missing, one core searches
            found = rehearse(samples(engine, of), sets, 1)
    return engine, found


def _cpu_s(config: Config, spans: Sequence[Span], search: _Timed) -> float:
    run = Rerun(config, explain=False, search=search)
    begun_s = time.thread_time()
    for span in spans:
        run.take(span)
    return time.thread_time() - begun_s
