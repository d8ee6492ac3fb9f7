"""Runs one configuration over recorded load, and keeps score.

What a replay can know: who sent how much to whom, and what that cost. A replayed move changes where
an executor is, so what is local and how full the workers are; its CPU goes with it, by as much more
or less as its tuples' hops cost (`HopCost`). What it cannot know: that a shuffle prefers near tasks
and so sends elsewhere, that an overloaded worker would have slowed the topology down, or that a
move would have been undone. Moves take no time here, and workers that report late are smoothed with
the others. Topologies run apart, so `max.moves.per.cycle` limits each of them, not the cluster.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

import numpy as np

from controller.config import Config
from controller.core.choose import choose
from controller.core.classify import Limits
from controller.core.cluster import Floats, Ints
from controller.core.decision import Move, Outcome, Veto
from controller.core.veto import Vetoes
from controller.core.view.kernels import Marks
from controller.policies.registry import policy
from controller.replay.recording import PlacementChange, Span
from controller.replay.rerun.no_move import PolicyRules
from controller.replay.rerun.pair_hops import FREE, HopCost, PairHops
from controller.replay.rerun.series import (
    OUTCOME,
    OUTCOMES,
    ReplayedMove,
    Series,
    joined,
)
from controller.replay.rerun.skip import ReplayCosts, ReplayState, Smoothed
from controller.replay.rerun.span_replay import Allowed, SpanReplay

# Keys of storm.yaml that change nothing here.
UNUSED_KEYS = (
    "mode",
    "lazy.kill.ms",
    "worker.cpu.capacity",
    "link.capacity.tps",
    "journal.dir",
    "journal.days",
    "journal.size.mb",
    "vetoes",
)
# For how long yet nobody asks here, and to say it of all of them takes as long as to decide.
_RESTS = Veto(Outcome.COOLDOWN, "it moved lately")
# The same yardstick for every configuration: the default of load.high.
OVERLOAD_FRAC = Limits().high_frac


class Score(Protocol):
    """Something that goes through the spans of one topology and keeps score.

    Several of them can go through a log together, so that it is read once and never held.
    """

    def take(self, span: Span) -> None:
        """Go through the next span, of the same topology as those before; it may have no tick."""

    def series(self) -> Series:
        """Give the score so far, one row a tick."""


class Rerun:
    """One configuration on its way through the spans of one topology.

    Counted are policy, limits, cycle, smoothing, cool-down and moves per cycle; moves are always
    made, whatever the mode. A worker above `overload_frac` of its CPU counts as overloaded. Without
    `explain`, ticks at which nothing would move are passed over quickly. Linear in ticks; a tick
    costs what the policy costs plus O(pairs + executors).
    """

    def __init__(
        self,
        config: Config,
        overload_frac: float = OVERLOAD_FRAC,
        cost: HopCost = FREE,
        explain: bool = True,
    ) -> None:
        self._config = config
        self._policy = policy(config.policy, config.options)
        self._limits = replace(
            config.limits, max_moves=config.max_moves, keep_workers=True, explain=explain
        )
        self._may_look = not explain and config.policy in ("safe", "otd")
        self._overload_frac = overload_frac
        self._cost = cost
        self._place: dict[str, str] = {}
        self._recorded: dict[str, str] = {}
        self._rests_until_s: dict[str, float] = {}
        # Counts on where the time of day is set back.
        self._clock_s = self._last_s = -np.inf
        self._next_s = -np.inf
        self._smoothed: Smoothed | None = None
        self._before: Span | None = None
        self._moves: list[ReplayedMove] = []
        self._parts: list[Floats] = []

    def take(self, span: Span) -> None:
        if not len(span.time_s):
            return
        place, recorded, shifts = self._enter(span), span.place.copy(), _by_row(span)
        hops_of, as_was = PairHops.of(span, place), PairHops.of(span, recorded)
        allowed = self._allowed(span, hops_of)
        is_literal = self._config.policy == "otd"
        rules = PolicyRules.of(span.cluster, self._limits, len(place), is_literal=is_literal)
        course, row, moved = self._course(span), 0, False
        while row < course.ticks:
            for shift in shifts.get(row, ()):
                recorded[shift.executor] = shift.worker
                if not shift.own:
                    place[shift.executor] = shift.worker
            if not as_was.is_of(recorded):
                as_was = PairHops.of(span, recorded)
            if not hops_of.is_of(place):
                hops_of = PairHops.of(span, place)
                allowed = self._allowed(span, hops_of)
            rests_until_s = allowed.by_executor(self._rests_until_s)
            end = min((at for at in shifts if at > row), default=course.ticks)
            # Who has just moved somebody probably moves again.
            looks = self._may_look and not moved
            where = ReplayState(rules, allowed.standing, hops_of, as_was, rests_until_s, looks)
            row = course.go(row, end, where)
            if row < end:
                moves = self._moves_at(course, row, allowed)
                for move in moves:
                    executor = span.first.executors.index(move.executor)
                    place[executor] = span.cluster.workers.index(move.target)
                row, moved = row + 1, bool(moves)
        self._parts.append(course.table)
        self._smoothed = course.smoothed
        # Without its ticks: only who was there and who talked to whom is needed again.
        self._before = span.within(np.inf, np.inf)
        names, workers = span.first.executors, span.cluster.workers
        self._place = {name: workers[w] for name, w in zip(names, place, strict=True)}
        self._recorded = {name: workers[w] for name, w in zip(names, recorded, strict=True)}

    def series(self) -> Series:
        return joined(self._parts, self._moves)

    def cut(self) -> Series:
        """Give the score since the last cut, and forget it; the run goes on where it is."""
        series = self.series()
        self._parts, self._moves = [], []
        return series

    def _enter(self, span: Span) -> Ints:
        """Keep what the replay moved, unless Storm has placed the executor anew meanwhile."""
        place = span.place.copy()
        index = {name: w for w, name in enumerate(span.cluster.workers)}
        for e, name in enumerate(span.first.executors):
            there = self._place.get(name, "")
            unchanged = self._recorded.get(name) == span.cluster.workers[place[e]]
            if unchanged and there in index:
                place[e] = index[there]
        return place

    def _course(self, span: Span) -> SpanReplay:
        """Lay the ticks out, with their outcome where the policy would have nothing to move."""
        config, now_s = self._config, self._now_s(span)
        pace = ReplayCosts(self._overload_frac, self._cost, config.ewma)
        course = SpanReplay(span, now_s, pace, _carried(self._before, span, self._smoothed))
        due = self._due(now_s, span.span_s)
        asked, outcome = due & ~span.held, course.table[:, OUTCOME]
        outcome[due] = OUTCOMES.index(Outcome.STAND_BACK)
        if config.excluded.has_topology(span.topology):
            outcome[asked] = OUTCOMES.index(Outcome.EXCLUDED)
        else:
            outcome[asked] = OUTCOMES.index(Outcome.NOTHING_TO_GAIN)
            course.asks[asked] = True
        return course

    def _now_s(self, span: Span) -> Floats:
        """Tell the time; where the clock was set back, the length of the tick counts instead."""
        if np.isinf(self._last_s):
            self._clock_s = self._last_s = float(span.time_s[0])
        steps_s: Floats = np.diff(span.time_s, prepend=self._last_s)
        steps_s = np.where(steps_s >= 0, steps_s, span.span_s)
        now_s: Floats = np.cumsum(np.append(self._clock_s, steps_s))[1:]
        self._clock_s, self._last_s = float(now_s[-1]), float(span.time_s[-1])
        return now_s

    def _due(self, now_s: Floats, span_s: Floats) -> Marks:
        """Tell when cycles are due: within half a tick."""
        due = np.zeros(len(now_s), dtype=np.bool_)
        for row, (at_s, half_s) in enumerate(zip(now_s, span_s / 2, strict=True)):
            if at_s >= self._next_s - half_s:
                due[row], self._next_s = True, float(at_s) + self._config.cycle_s
        return due

    def _allowed(self, span: Span, hops_of: PairHops) -> Allowed:
        return Allowed.of(span, hops_of.place, self._config.excluded.on(span.hosts))

    def _moves_at(self, course: SpanReplay, row: int, allowed: Allowed) -> tuple[Move, ...]:
        """Decide, and note what comes of it."""
        now_s, snapshot = float(course.now_s[row]), course.snapshot(row, allowed.standing.place)
        resting = {e: _RESTS for e, until_s in self._rests_until_s.items() if until_s > now_s}
        vetoes = Vetoes(resting).joined(allowed.vetoes)
        cluster = course.span.cluster
        decision = choose(self._policy, cluster, snapshot, self._limits, vetoes)
        moves = decision.moves
        outcome = Outcome.MOVED if moves else decision.outcome
        course.table[row, OUTCOME] = OUTCOMES.index(outcome)
        self._rests_until_s = {e: self._rests_until_s[e] for e in resting}
        for move in moves:
            self._rests_until_s[move.executor] = now_s + self._config.cooldown_s
            ends = move.executor, move.source, move.target
            self._moves.append(
                ReplayedMove(snapshot.time_s, snapshot.topology, *ends, move.asc_tps)
            )
        return moves


class AsRecorded:
    """The placement as it was, on its way through the spans; its moves are the controller's own."""

    def __init__(self, overload_frac: float = OVERLOAD_FRAC) -> None:
        self._overload_frac = overload_frac
        self._moves: list[ReplayedMove] = []
        self._parts: list[Floats] = []

    def take(self, span: Span) -> None:
        if not len(span.time_s):
            return
        place, shifts = span.place.copy(), _by_row(span)
        course = SpanReplay(span, span.time_s, ReplayCosts(self._overload_frac, FREE, ewma=1.0))
        for row in sorted({0, *shifts}):
            for shift in shifts.get(row, ()):
                if shift.own:
                    move = _recorded_move(span, shift, int(place[shift.executor]))
                    self._moves.append(move)
                place[shift.executor] = shift.worker
            end = min((at for at in shifts if at > row), default=course.ticks)
            course.measure(row, end, PairHops.of(span, place))
        self._parts.append(course.table)

    def series(self) -> Series:
        return joined(self._parts, self._moves)


def rerun(spans: Iterable[Span], config: Config, *, overload_frac: float = OVERLOAD_FRAC) -> Series:
    """Run one configuration over one topology's recorded load, read once; see `Rerun`."""
    run = Rerun(config, overload_frac)
    for span in spans:
        run.take(span)
    return run.series()


def as_recorded(spans: Iterable[Span], *, overload_frac: float = OVERLOAD_FRAC) -> Series:
    """Keep score of the placement as it was; its moves are the recorded controller's own."""
    run = AsRecorded(overload_frac)
    for span in spans:
        run.take(span)
    return run.series()


def _by_row(span: Span) -> dict[int, list[PlacementChange]]:
    shifts: dict[int, list[PlacementChange]] = {}
    for shift in span.shifts:
        shifts.setdefault(shift.row, []).append(shift)
    return shifts


def _carried(before: Span | None, span: Span, smoothed: Smoothed | None) -> Smoothed | None:
    """Lay smoothed rates out for the next span, if it is of the same executors."""
    if before is None or smoothed is None or before.first.executors != span.first.executors:
        return None
    count = len(span.first.executors)
    old, new = (s.source * count + s.target for s in (before, span))
    tps = np.zeros(len(new))
    _, at_old, at_new = np.intersect1d(old, new, assume_unique=True, return_indices=True)
    tps[at_new] = smoothed.tps[at_old]
    return Smoothed(tps, smoothed.cpu_cores)


def _recorded_move(span: Span, shift: PlacementChange, source: int) -> ReplayedMove:
    workers = span.cluster.workers
    return ReplayedMove(
        float(span.time_s[shift.row]),
        span.topology,
        span.first.executors[shift.executor],
        workers[source],
        workers[shift.worker],
        0.0,
    )
