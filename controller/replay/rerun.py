"""Runs one configuration over recorded load, and keeps score.

What a replay can know: who sent how much to whom, and what that cost. A replayed move changes where
an executor is, so which traffic is local and how full the workers are. Its CPU goes with it,
changed by the cost of its tuples' hops. The engine is that of the live cycle; `LEFT_OUT` is the
rest.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from controller.config import Config
from controller.core.choose import decide_in_file
from controller.core.cluster import Cluster, Floats, Ints, Level, LoadSnapshot, Marks, Traffic
from controller.core.decision import Decision, Move, Outcome, Veto, Vetoes, first_of
from controller.core.figures import Peak
from controller.core.fit import Fit
from controller.core.hops import COSTS_S
from controller.core.limits import Limits
from controller.core.loops import traffic as loops
from controller.core.metrics import Weights
from controller.core.peaks import input_tps
from controller.core.policy import AtOnce, Case, Policy, Question, Search, search_inline
from controller.core.spaces import carried
from controller.core.veto import placement_vetoes
from controller.policies.options import Aniello, TargetOptions
from controller.policies.registry import policy
from controller.replay.recording import Span
from migration.model import topology_name
from migration.settings import DEFAULT, fields_read

_EACH = {key: key for key in DEFAULT}
# The keys of storm.yaml that a replay reads; all others change nothing here.
KEYS = frozenset(
    {
        "policy",
        "cycle.secs",
        "load.ewma",
        "cooldown.executor.secs",
        "max.moves.per.cycle",
        "excluded.topologies",
        "excluded.components",
        "excluded.hosts",
        *(
            key
            for kind in (Limits, TargetOptions, Aniello)
            for key in fields_read(kind, _EACH).values()
        ),
    }
)
# Without the seconds left: a replay shows none, and to write them takes as long as to decide.
_RESTS = Veto(Outcome.COOLDOWN, "it has moved and rests")
LIVE_DIFFERS = "A live run differs from a replay:"
LEFT_OUT = (
    "A shuffle would send elsewhere once its targets are near.",
    "An overloaded worker would have slowed the topology down.",
    "A move takes seconds, or is undone.",
    "For 2 minutes after its start, or a worker's, a controller makes no move for a gain.",
    "A run of moves that was for the worse, or breached a guard, goes back; its executors stay.",
    "The moves of other topologies count against max.moves.per.cycle.",
    "min.age, the caps by hour and by host, and the windows hold moves back.",
    "Operators drain hosts, and reject moves.",
    "A worker may be started in a free slot.",
    "Nothing goes to workers that start again and again, or to hosts that have just come back.",
    "Room is kept for queues that grow, and for workers that have not reported.",
    "The network has limits of its own.",
    "A tuple between workers costs what it cost on the machine of the demo.",
    "Loads are smoothed at each cycle, not at each recorded tick.",
    "A search may take longer than a cycle, or wait until that of another topology ends.",
    "In `tune` and `report` each day begins from the recorded placement, without earlier moves.",
)
# To find what came closest to a move takes half as long again as a decision. So where nobody reads
# the reasons, one of this number of decisions has one.
EXPLAINED_EACH = 10
OUTCOMES = tuple(Outcome)
NO_CYCLE = -1
# Of a table of which each row is a tick; these two are the last.
COLUMNS, OUTCOME, AS_RECORDED = 10, 8, 9
# For room alone, which knows no limits.
_PLAIN = Limits()


class Smoothed(NamedTuple):
    """Traffic (P,) and CPU (E,) that are decided by, and how sure they are."""

    tps: Floats
    cpu_cores: Floats
    tps_var: Floats
    cpu_var: Floats
    others: Floats  # (2, N), as in `Room.others`


@dataclass(frozen=True, slots=True)
class ReplayedMove(Move):
    time_s: float  # Unix seconds of its tick


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """How one configuration did, one row a tick."""

    time_s: Floats  # (T,), Unix seconds
    span_s: Floats  # (T,), for how long the tick's load stands
    outcome: Ints  # (T,), index into `OUTCOMES`, `NO_CYCLE` between two cycles
    inter_node_tps: Floats  # (T,), traffic as sent in the tick
    inter_worker_tps: Floats  # (T,), with that to workers of other nodes
    total_tps: Floats  # (T,)
    max_load_frac: Floats  # (T,), load of the fullest worker
    # (T,), core-seconds that executors needed beyond what their nodes or workers have, and all that
    # those needed whose worker's heap would overflow
    unserved_core_s: Floats
    # (T,), what the fullest direction of a node's link carried; NaN where no size is known
    fullest_bytes_s: Floats
    as_recorded: Marks  # (T,), all executors were where they really were
    moves: tuple[ReplayedMove, ...]
    bound: Mapping[str, int]  # explained decisions, by what let them do no more; see `_count_bound`

    @property
    def inter_node_frac(self) -> float:
        """Share of all tuples that crossed between nodes; 0 without tuples."""
        total = float((self.total_tps * self.span_s).sum())
        return float((self.inter_node_tps * self.span_s).sum()) / total if total else 0.0


class Rerun:
    """One configuration on its way through the spans of one topology, and its score.

    What counts are policy, limits, cycle, smoothing, cool-down and moves per cycle; moves are
    always made, whatever the mode. Without a configuration nothing is decided: the placement is as
    it was, and the moves are the recorded controller's own. Without `explain`, one of
    `EXPLAINED_EACH` decisions looks for what came closest to a move. `search` answers a question
    when the next cycle begins: a live run has the answer then at the earliest. Without it no policy
    searches. Linear in ticks; a tick costs what the policy costs plus O(pairs + executors). Several
    can go through a log together, so that it is read once and never held.
    """

    def __init__(
        self,
        config: Config | None,
        *,
        explain: bool = True,
        search: Search | None = search_inline,
    ) -> None:
        self._moves: list[ReplayedMove] = []
        self._bound = Counter[str]()
        self._asked = 0
        self._parts: list[Floats] = []
        self._decides = config is not None
        config = config or Config()
        self._config = config
        chosen = policy(config.policy, config.options)
        self._search = search
        self._policy: Policy[Any] = AtOnce(chosen) if search is None else chosen
        self._memory: Any = None  # of the policy
        self._question: Question | None = None  # that the next cycle has the answer to
        self._limits = replace(config.limits, max_moves=config.max_moves, explain=explain)
        self._place: dict[str, str] = {}
        self._recorded: dict[str, str] = {}
        self._rests_until_s: dict[str, float] = {}
        # Counts on where the time of day is set back.
        self._clock_s = self._last_s = -np.inf
        self._next_s = -np.inf
        self._weights = Weights.of_rates(config.ewma)
        self._smoothed: Smoothed | None = None
        self._before: Span | None = None

    def series(self) -> Series:
        """Give the score so far, one row a tick."""
        table = np.concatenate([np.zeros((0, COLUMNS)), *self._parts])
        return Series(
            time_s=table[:, 0],
            span_s=table[:, 1],
            inter_node_tps=table[:, 2],
            inter_worker_tps=table[:, 3],
            total_tps=table[:, 4],
            max_load_frac=table[:, 5],
            unserved_core_s=table[:, 6],
            fullest_bytes_s=table[:, 7],
            outcome=table[:, OUTCOME].astype(np.int64),
            as_recorded=table[:, AS_RECORDED] > 0,
            moves=tuple(self._moves),
            bound=dict(self._bound),
        )

    def cut(self) -> Series:
        """Give the score since the last cut, and forget it; the run goes on where it is."""
        series = self.series()
        self._parts, self._moves, self._bound = [], [], Counter()
        return series

    def take(self, span: Span) -> None:
        """Go through the next span, which may have no tick."""
        if not len(span.time_s):
            return
        executors, workers = span.first.executors, span.cluster.workers
        place, recorded = self._enter(span), span.place.copy()
        smoothed = _carried(self._before, span, self._smoothed)
        now_s, table = self._now_s(span), np.zeros((len(span.time_s), COLUMNS))
        table[:, 0], table[:, 1], table[:, OUTCOME] = span.time_s, span.span_s, NO_CYCLE
        asks, others = self._asks(span, now_s, table), span.room.others
        used = np.nan_to_num(others[:, 0])
        is_changed = True
        for begin, end, shifts in span.stretches():
            for shift in shifts:
                source, recorded[shift.executor] = recorded[shift.executor], shift.worker
                if not shift.own or not self._decides:
                    place[shift.executor], is_changed = shift.worker, True
                if shift.own and not self._decides:
                    ends = executors[shift.executor], workers[source], workers[shift.worker]
                    self._moves.append(ReplayedMove(*ends, 0.0, float(span.time_s[begin])))
            as_recorded = np.array_equal(place, recorded)
            for row in range(begin, end):
                if is_changed:
                    at, is_changed = place.copy(), False
                    vetoes = self._vetoes(span, at)
                    as_recorded = np.array_equal(place, recorded)
                table[row, AS_RECORDED] = as_recorded
                spaces = _spaces(span, row, at, recorded)
                cores = measure(table, row, span, at, recorded, spaces=spaces, others=used[row])
                tps = span.traffic_tps[row].astype(np.float64)
                smoothed = _smooth(smoothed, tps, cores, others[row], self._weights)
                if asks[row]:
                    cluster = _cluster(span, spaces, smoothed.others)
                    snapshot = _snapshot(span, row, at, smoothed)
                    decision = self._decide(cluster, snapshot, vetoes, float(now_s[row]))
                    for move in decision.moves:
                        place[executors.index(move.executor)] = workers.index(move.target)
                    is_changed = bool(decision.moves)
                    outcome = Outcome.MOVED if is_changed else decision.outcome
                    table[row, OUTCOME] = OUTCOMES.index(outcome)
        self._parts.append(table)
        self._smoothed = smoothed
        # Without its ticks: the next span needs only its executors and its pairs.
        self._before = span.within(np.inf, np.inf)
        self._place = {name: workers[w] for name, w in zip(executors, place, strict=True)}
        self._recorded = {name: workers[w] for name, w in zip(executors, recorded, strict=True)}

    def _enter(self, span: Span) -> Ints:
        """Keep what the replay moved, unless Storm has placed the executor again since."""
        place = span.place.copy()
        index = {name: w for w, name in enumerate(span.cluster.workers)}
        for e, name in enumerate(span.first.executors):
            there = self._place.get(name, "")
            unchanged = self._recorded.get(name) == span.cluster.workers[place[e]]
            if unchanged and there in index:
                place[e] = index[there]
        return place

    def _asks(self, span: Span, now_s: Floats, table: Floats) -> Marks:
        """Mark the ticks at which the policy is asked, (T,); the outcome of others is filled in."""
        due = self._due(now_s, span.span_s)
        asked = due & ~span.held
        table[due, OUTCOME] = OUTCOMES.index(Outcome.STAND_BACK)
        if not self._decides:
            table[due, OUTCOME], asked[:] = NO_CYCLE, False
        elif self._config.excluded.has_topology(span.topology, topology_name(span.topology)):
            table[asked, OUTCOME] = OUTCOMES.index(Outcome.EXCLUDED)
            asked[:] = False
        return asked

    def _now_s(self, span: Span) -> Floats:
        """Return the time; where the clock was set back, the length of the tick counts instead."""
        if np.isinf(self._last_s):
            self._clock_s = self._last_s = float(span.time_s[0])
        steps_s: Floats = np.diff(span.time_s, prepend=self._last_s)
        steps_s = np.where(steps_s >= 0, steps_s, span.span_s)
        now_s: Floats = np.cumsum(np.append(self._clock_s, steps_s))[1:]
        self._clock_s, self._last_s = float(now_s[-1]), float(span.time_s[-1])
        return now_s

    def _due(self, now_s: Floats, span_s: Floats) -> Marks:
        """Return when cycles are due: within half a tick."""
        due = np.zeros(len(now_s), dtype=np.bool_)
        for row, (at_s, half_s) in enumerate(zip(now_s, span_s / 2, strict=True)):
            if at_s >= self._next_s - half_s:
                due[row], self._next_s = True, float(at_s) + self._config.cycle_s
        return due

    def _vetoes(self, span: Span, place: Ints) -> Vetoes:
        """Return what a placement, (E,), does not allow, whatever has moved."""
        first = span.first
        snapshot = first.at(first.time_s, place, first.cpu_cores, first.traffic)
        return placement_vetoes(span.cluster, snapshot, self._config.excluded.on(span.hosts))

    def _count_bound(self, decision: Decision) -> None:
        """Count what let a decision do no more: an outcome, what would be filled, or a key."""
        bound = f"fills {decision.fills}" if decision.fills else decision.outcome.value
        if decision.moves:
            capped = len(decision.moves) >= self._limits.max_moves
            bound = "max.moves.per.cycle" if capped else Outcome.MOVED.value
        self._bound[bound] += 1

    def _decide(
        self, cluster: Cluster, snapshot: LoadSnapshot, vetoes: Vetoes, now_s: float
    ) -> Decision:
        """Ask the policy, and note what it moves."""
        rests_until_s = {e: s for e, s in self._rests_until_s.items() if s > now_s}
        vetoes = first_of(Vetoes(dict.fromkeys(rests_until_s, _RESTS)), vetoes)
        limits = self._limits
        if not self._asked % EXPLAINED_EACH:
            limits = replace(limits, explain=True)
        self._asked += 1
        case = Case(cluster, snapshot, limits)
        if self._question is not None and self._search is not None:
            self._memory = self._policy.heard(self._memory, self._search(self._question))
        found = decide_in_file(self._policy, case, vetoes, self._memory)
        self._memory, self._question, decision = found.memory, found.question, found.decision
        self._rests_until_s = rests_until_s
        if limits.explain:
            self._count_bound(decision)
        for move in decision.moves:
            rests_until_s[move.executor] = now_s + self._config.cooldown_s
            ends = move.executor, move.source, move.target
            self._moves.append(ReplayedMove(*ends, move.asc_tps, snapshot.time_s))
        return decision


def _smooth(
    before: Smoothed | None, tps: Floats, cpu_cores: Floats, others: Floats, weights: Weights
) -> Smoothed:
    if before is None:
        return Smoothed(tps, cpu_cores, np.zeros(len(tps)), np.zeros(len(cpu_cores)), others)
    was = np.where(np.isnan(before.others), others, before.others)
    others = was + weights.ewma * (others - was)
    smooth_tps, tps_var = weights.smoothed(0, tps, before.tps, before.tps_var)
    smooth_cores, cpu_var = weights.smoothed(0, cpu_cores, before.cpu_cores, before.cpu_var)
    return Smoothed(smooth_tps, smooth_cores, tps_var, cpu_var, others)


def _snapshot(span: Span, row: int, place: Ints, smoothed: Smoothed) -> LoadSnapshot:
    """Show the smoothed load of a tick as a policy sees it: without pairs that have no traffic."""
    tps = smoothed.tps
    traffic = Traffic(span.source, span.target, tps, smoothed.tps_var, span.size_bytes)
    if not tps.all():
        traffic = traffic.of_pairs(np.flatnonzero(tps))
    time_s = float(span.time_s[row])
    found = span.first.at(time_s, place, smoothed.cpu_cores, traffic, smoothed.cpu_var)
    peak_tps = float(span.room.peak_tps[row])
    times = 1.0 if np.isnan(peak_tps) else Peak(input_tps(found), peak_tps).times
    return found.peaking(times)


def _spaces(span: Span, row: int, place: Ints, recorded: Ints) -> Mapping[str, Level]:
    """Give how full spaces are in a tick with a placement, by name."""
    levels = span.room.levels_at(row)
    if not levels or np.array_equal(place, recorded):
        return levels
    return carried(levels, span.first.placed(recorded), place)


def _cluster(span: Span, spaces: Mapping[str, Level], others: Floats) -> Cluster:
    """Give the cluster as it is in a tick, as far as that is known."""
    changes: dict[str, Any] = {"spaces": spaces} if spaces else {}
    if not np.isnan(others).any():
        changes |= {"other_cores": others[0], "peak_cores": others[1]}
    return replace(span.cluster, **changes) if changes else span.cluster


def _carried(before: Span | None, span: Span, smoothed: Smoothed | None) -> Smoothed | None:
    """Lay smoothed rates out for the next span, if it is of the same executors."""
    if before is None or smoothed is None or before.first.executors != span.first.executors:
        return None
    count = len(span.first.executors)
    old, new = (s.source * count + s.target for s in (before, span))
    tps, tps_var = np.zeros((2, len(new)))
    _, at_old, at_new = np.intersect1d(old, new, assume_unique=True, return_indices=True)
    tps[at_new], tps_var[at_new] = smoothed.tps[at_old], smoothed.tps_var[at_old]
    same_nodes = before.cluster.nodes == span.cluster.nodes
    others = smoothed.others if same_nodes else np.full((2, len(span.cluster.nodes)), np.nan)
    return smoothed._replace(tps=tps, tps_var=tps_var, others=others)


def measure(
    table: Floats,
    row: int,
    span: Span,
    place: Ints,
    recorded: Ints,
    *,
    spaces: Mapping[str, Level],
    others: Floats,
) -> Floats:
    """Measure a placement under the load of one tick, and give the CPU of each executor, (E,).

    `spaces` are as full as they are with this placement. `others` is what others use of each node,
    (N,). The row of the table is filled in, but for time, outcome and whether it is the recorded
    one.
    """
    tps, cpu_cores = span.traffic_tps[row], span.cpu_cores[row]
    ends, cluster = (span.source, span.target), span.cluster
    node_of, nodes = cluster.node_of, len(cluster.nodes)
    sent = *ends, span.size_bytes, tps, cpu_cores, COSTS_S
    cores, *sums, fullest = loops.load(*sent, place, recorded, node_of, nodes)
    fit, besides = Fit.at(cluster, place, cores, _PLAIN), others[node_of]
    used = served = fit.used + besides
    unserved = 0.0
    if (lost := _lost(spaces, place)).any():
        served = Fit.at(cluster, place, np.where(lost, 0.0, cores), _PLAIN).used + besides
        unserved = cores[lost].sum()
    unserved += np.maximum(served - fit.capacity, 0.0)[fit.each_unit].sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        fullest_frac = (used / fit.capacity).max()
    table[row, 2:8] = *sums, fullest_frac, unserved * span.span_s[row], fullest
    return cores


def _lost(spaces: Mapping[str, Level], place: Ints) -> Marks:
    """Mark the executors in a worker with a space that would overflow, (E,): it would end."""
    lost = np.zeros(len(place), np.bool_)
    for level in spaces.values():
        lost |= (level.held > level.most)[place]
    return lost
