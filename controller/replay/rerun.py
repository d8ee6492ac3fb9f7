"""Runs one configuration over recorded load, and keeps score.

What a replay can know: who sent how much to whom, and what that cost. A replayed move changes where
an executor is, so what is local and how full the workers are; its CPU goes with it, by as much more
or less as its tuples' hops cost (`HopCost`). What it cannot know: that a shuffle prefers near tasks
and so sends elsewhere, that an overloaded worker would have slowed the topology down, or that a
move would have been undone. Moves take no time here, and workers that report late are smoothed with
the others.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from controller.config import Config
from controller.core.classify import Limits
from controller.core.cluster import Floats, Ints, LoadSnapshot, Traffic
from controller.core.decide import Decision, Outcome, Proposal
from controller.policies import policy
from controller.replay.laid import FREE, HopCost, Laid, Load, load, smooth
from controller.replay.recording import Shift, Span
from controller.vetoes import Veto, Vetoes, decide, standing

OUTCOMES = tuple(Outcome)
NO_CYCLE = -1
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


@dataclass(frozen=True, slots=True)
class ReplayedMove:
    """A move that a replay made."""

    time_s: float
    topology: str
    executor: str
    source: str
    target: str
    asc_tps: float


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """How one configuration did, one row a tick.

    Attributes
    ----------
    time_s, span_s : Floats, shape (T,)
        When, and for how long.
    outcome : Ints, shape (T,)
        Index into `OUTCOMES`, `NO_CYCLE` between two cycles.
    inter_node_tps, inter_worker_tps, total_tps : Floats, shape (T,)
        Traffic between nodes, between workers (those of other nodes too), and all of it, as sent
        in the tick.
    max_load_frac : Floats, shape (T,)
        Load of the fullest worker.
    overload_s : Floats, shape (T,)
        Seconds that workers were above the yardstick, added over the workers.
    moves : tuple of ReplayedMove
        In their order.
    """

    time_s: Floats
    span_s: Floats
    outcome: Ints
    inter_node_tps: Floats
    inter_worker_tps: Floats
    total_tps: Floats
    max_load_frac: Floats
    overload_s: Floats
    moves: tuple[ReplayedMove, ...]

    @property
    def inter_node_frac(self) -> float:
        """Share of all tuples that crossed between nodes; 0 without tuples."""
        total = float(self.total_tps @ self.span_s)
        return float(self.inter_node_tps @ self.span_s) / total if total else 0.0


def _measured(span: Span, row: int, place: Ints, load: Load, over: float) -> tuple[float, ...]:
    """Measure a placement under the load of one tick, in the order of `Series`."""
    span_s, capacity = float(span.span_s[row]), span.cluster.capacity_cores
    used = np.bincount(place, weights=load.cpu_cores, minlength=len(capacity)) / capacity
    over_s = float((used > over).sum()) * span_s
    return (float(span.time_s[row]), span_s, *load[1:], float(used.max()), over_s)


class Score(Protocol):
    """Something that goes through the spans of one topology and keeps score.

    Several of them can go through a log together, so that it is read once and never held.
    """

    def take(self, span: Span) -> None:
        """Go through the next span."""

    def series(self) -> Series:
        """Give the score so far."""


class Rerun:
    """One configuration on its way through the spans of one topology; see `rerun`.

    Parameters
    ----------
    config : Config
        As for `rerun`.
    overload_frac : float
        As for `rerun`.
    cost : HopCost
        What hops cost, which the replay may make fewer.
    explain : bool
        As in `Limits`.
    """

    def __init__(
        self,
        config: Config,
        overload_frac: float = OVERLOAD_FRAC,
        cost: HopCost = FREE,
        explain: bool = True,
    ) -> None:
        self._config = config
        self._cost = cost
        self._policy = policy(config.policy, config.options)
        self._limits = replace(
            config.limits, max_moves=config.max_moves, keep_workers=True, explain=explain
        )
        self._overload_frac = overload_frac
        self._place: dict[str, str] = {}
        self._recorded: dict[str, str] = {}
        self._rest_until_s: dict[str, float] = {}
        # Counts on where the time of day is set back.
        self._clock_s = self._last_s = -np.inf
        self._next_s = -np.inf
        self._smooth: tuple[Floats, Floats] | None = None
        self._before: Span | None = None
        self._standing: tuple[Ints, Vetoes] | None = None
        self._moves: list[ReplayedMove] = []
        self._rows: list[tuple[float, ...]] = []

    def take(self, span: Span) -> None:
        """Run through the next span.

        Parameters
        ----------
        span : Span
            Of the same topology as those before.
        """
        place = self._enter(span)
        shifts, recorded = _by_row(span), span.place.copy()
        laid, as_was = Laid.of(span, place), Laid.of(span, recorded)
        for row in range(len(span.time_s)):
            for shift in shifts.get(row, ()):
                recorded[shift.executor] = shift.worker
                if not shift.own:
                    place[shift.executor] = shift.worker
            laid, as_was = laid.over(span, place), as_was.over(span, recorded)
            now = load(span, row, laid, as_was, self._cost)
            score = _measured(span, row, laid.place, now, self._overload_frac)
            outcome, moves = self._cycle(span, row, laid.place, now.cpu_cores)
            for move in moves:
                self._move(span, move, place, float(span.time_s[row]))
            self._rows.append((*score, outcome))
        # Without its ticks: only who was there and who talked to whom is needed again.
        self._before = span.within(np.inf, np.inf)
        names, workers = span.first.executors, span.cluster.workers
        self._place = {name: workers[w] for name, w in zip(names, place, strict=True)}
        self._recorded = {name: workers[w] for name, w in zip(names, recorded, strict=True)}

    def series(self) -> Series:
        """Give the score so far.

        Returns
        -------
        Series
            One row a tick.
        """
        return _series(self._rows, self._moves)

    def cut(self) -> Series:
        """Give the score since the last cut, and forget it; the run goes on where it is.

        Returns
        -------
        Series
            One row a tick.
        """
        series = self.series()
        self._rows, self._moves = [], []
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
        self._standing = None
        self._smooth = _carried(self._before, span, self._smooth)
        return place

    def _cycle(
        self, span: Span, row: int, place: Ints, cpu: Floats
    ) -> tuple[int, tuple[Proposal, ...]]:
        """Smooth and decide; return the outcome's index and the moves to make."""
        ewma, now_s = self._config.ewma, self._now_s(span, row)
        if self._smooth is None:
            self._smooth = cpu, span.traffic_tps[row].astype(np.float64)
        else:
            before, tps = self._smooth
            self._smooth = smooth(cpu, before, ewma), smooth(span.traffic_tps[row], tps, ewma)
        cpu, tps = self._smooth
        # A cycle is due when it comes within half a tick.
        if now_s < self._next_s - span.span_s[row] / 2:
            return NO_CYCLE, ()
        self._next_s = now_s + self._config.cycle_s
        if span.held[row]:
            return OUTCOMES.index(Outcome.STAND_BACK), ()
        if self._config.excluded.has_topology(span.topology):
            return OUTCOMES.index(Outcome.EXCLUDED), ()
        traffic = _of_those_who_talk(span, tps)
        snapshot = span.first.at(float(span.time_s[row]), place, cpu, traffic)
        decision = self._decide(span, snapshot, now_s)
        moves = decision.moves[: self._config.max_moves]
        for move in moves:
            self._rest_until_s[move.executor] = now_s + self._config.cooldown_s
        return OUTCOMES.index(Outcome.MOVED if moves else decision.outcome), moves

    def _now_s(self, span: Span, row: int) -> float:
        """Tell the time; where the clock was set back, the length of the tick counts instead."""
        time_s = float(span.time_s[row])
        step_s = time_s - self._last_s if time_s >= self._last_s else float(span.span_s[row])
        self._clock_s = time_s if np.isinf(self._last_s) else self._clock_s + step_s
        self._last_s = time_s
        return self._clock_s

    def _decide(self, span: Span, snapshot: LoadSnapshot, now_s: float) -> Decision:
        self._rest_until_s = {e: s for e, s in self._rest_until_s.items() if s > now_s}
        resting = Vetoes(dict.fromkeys(self._rest_until_s, _RESTS))
        vetoes = resting.joined(self._vetoes(span, snapshot))
        return decide(self._policy, span.cluster, snapshot, self._limits, vetoes)

    def _vetoes(self, span: Span, snapshot: LoadSnapshot) -> Vetoes:
        """List what the placement alone forbids, again only when it has changed."""
        if self._standing is None or self._standing[0] is not snapshot.place:
            vetoes = standing(span.cluster, snapshot, self._config.excluded.on(span.hosts))
            self._standing = snapshot.place, vetoes
        return self._standing[1]

    def _move(self, span: Span, move: Proposal, place: Ints, time_s: float) -> None:
        executor = span.first.executors.index(move.executor)
        place[executor] = span.cluster.workers.index(move.target)
        self._moves.append(
            ReplayedMove(
                time_s, span.topology, move.executor, move.source, move.target, move.asc_tps
            )
        )


class AsRecorded:
    """The placement as it was, on its way through the spans of one topology.

    Parameters
    ----------
    overload_frac : float
        As for `rerun`.
    """

    def __init__(self, overload_frac: float = OVERLOAD_FRAC) -> None:
        self._overload_frac = overload_frac
        self._moves: list[ReplayedMove] = []
        self._rows: list[tuple[float, ...]] = []

    def take(self, span: Span) -> None:
        """Go through the next span.

        Parameters
        ----------
        span : Span
            Of the same topology as those before.
        """
        place, shifts = span.place.copy(), _by_row(span)
        laid = Laid.of(span, place)
        for row in range(len(span.time_s)):
            for shift in shifts.get(row, ()):
                if shift.own:
                    move = _recorded_move(span, shift, int(place[shift.executor]))
                    self._moves.append(move)
                place[shift.executor] = shift.worker
            laid = laid.over(span, place)
            now = load(span, row, laid, laid, FREE)
            score = _measured(span, row, place, now, self._overload_frac)
            self._rows.append((*score, NO_CYCLE))

    def series(self) -> Series:
        """Give the score so far.

        Returns
        -------
        Series
            One row a tick.
        """
        return _series(self._rows, self._moves)


def rerun(spans: Iterable[Span], config: Config, *, overload_frac: float = OVERLOAD_FRAC) -> Series:
    """Run one configuration over one topology's recorded load.

    Parameters
    ----------
    spans : iterable of Span
        Of one topology, in their order; read once.
    config : Config
        Policy, limits, cycle, smoothing, cool-down and moves per cycle; moves are always made,
        whatever the mode.
    overload_frac : float
        A worker above this share of its CPU counts as overloaded.

    Returns
    -------
    Series
        How it did.

    Notes
    -----
    Linear in ticks; a tick costs what the policy costs plus O(pairs + executors).
    """
    run = Rerun(config, overload_frac)
    for span in spans:
        run.take(span)
    return run.series()


def as_recorded(spans: Iterable[Span], *, overload_frac: float = OVERLOAD_FRAC) -> Series:
    """Keep score of the placement as it was.

    Parameters
    ----------
    spans : iterable of Span
        Of one topology, in their order.
    overload_frac : float
        As in `rerun`.

    Returns
    -------
    Series
        Its moves are the recorded controller's own.
    """
    run = AsRecorded(overload_frac)
    for span in spans:
        run.take(span)
    return run.series()


def _of_those_who_talk(span: Span, tps: Floats) -> Traffic:
    """Leave out pairs that say nothing; the same arrays as before if none is left out."""
    if tps.all():
        return Traffic(span.source, span.target, tps)
    used = np.flatnonzero(tps)
    return Traffic(span.source[used], span.target[used], tps[used])


def _by_row(span: Span) -> dict[int, list[Shift]]:
    shifts: dict[int, list[Shift]] = {}
    for shift in span.shifts:
        shifts.setdefault(shift.row, []).append(shift)
    return shifts


def _carried(
    before: Span | None, span: Span, smooth: tuple[Floats, Floats] | None
) -> tuple[Floats, Floats] | None:
    """Lay smoothed rates out for the next span, if it is of the same executors."""
    if before is None or smooth is None or before.first.executors != span.first.executors:
        return None
    count = len(span.first.executors)
    old, new = (s.source * count + s.target for s in (before, span))
    tps = np.zeros(len(new))
    _, at_old, at_new = np.intersect1d(old, new, assume_unique=True, return_indices=True)
    tps[at_new] = smooth[1][at_old]
    return smooth[0], tps


def _recorded_move(span: Span, shift: Shift, source: int) -> ReplayedMove:
    workers = span.cluster.workers
    return ReplayedMove(
        float(span.time_s[shift.row]),
        span.topology,
        span.first.executors[shift.executor],
        workers[source],
        workers[shift.worker],
        0.0,
    )


def _series(rows: list[tuple[float, ...]], moves: list[ReplayedMove]) -> Series:
    table = np.array(rows, dtype=np.float64).reshape(-1, 8)
    return Series(
        time_s=table[:, 0],
        span_s=table[:, 1],
        inter_node_tps=table[:, 2],
        inter_worker_tps=table[:, 3],
        total_tps=table[:, 4],
        max_load_frac=table[:, 5],
        overload_s=table[:, 6],
        outcome=table[:, 7].astype(np.int64),
        moves=tuple(moves),
    )
