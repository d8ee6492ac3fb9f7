"""One cycle over values: what was remembered and what is seen now give what to do and why.

It reads no clock, writes nothing and keeps nothing. The live run, a replayed journal and the
simulator each make their own `Seen`, call `cycle`, and write the plans of its report.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from controller.config import Config, Mode
from controller.core.choose import choose_each
from controller.core.cluster import inter_node_tps
from controller.core.controls import NOTHING_SET, Controls
from controller.core.decision import Decision, Move, Outcome, Veto, proposal_id
from controller.core.drain import drain_each
from controller.core.gate import gate_each
from controller.core.layout import Layout
from controller.core.metrics import Rates, observe_each
from controller.core.picture import Picture, picture_each
from controller.core.plan import next_plan
from controller.core.topology import TopologyView, moves_under_way
from controller.core.veto import Vetoes, veto_each
from controller.policies.partition.goal import Answer
from controller.policies.partition.policy import Gather, Remembered
from controller.policies.partition.search import Question
from controller.policies.registry import policy
from controller.windows import closed
from migration.model import ExecutorId, NodeLoad, Plan, Slot


@dataclass(frozen=True, slots=True)
class Seen:
    """All that a cycle may depend on besides its memory and the settings."""

    now_s: float  # monotonic
    time_s: float  # Unix seconds
    epoch: int | None  # the epoch to write under; None while another controller leads
    controls: Controls = NOTHING_SET
    topologies: tuple[TopologyView, ...] = ()  # all that the hooks in Nimbus publish
    loads: tuple[NodeLoad, ...] = ()  # the newest report of each node
    # Topology, executor and monotonic seconds of each move that has ended since the last cycle.
    rests: tuple[tuple[str, ExecutorId, float], ...] = ()
    # Topology and executor of each move of the last cycle whose plan could not be written.
    not_begun: tuple[tuple[str, ExecutorId], ...] = ()
    answers: tuple[tuple[str, Answer], ...] = ()  # ends of searches, by topology
    # Unix seconds, source and target node of each move that has begun within the last hour.
    begun: tuple[tuple[float, str, str], ...] = ()
    drained: tuple[str, ...] = ()  # the hosts that operators drain
    free: frozenset[Slot] = frozenset()  # the slots where a move may start a worker


@dataclass(frozen=True, slots=True)
class Memory:
    """What one cycle leaves for the next."""

    tick: int = 0  # number of the last cycle
    rates: Mapping[str, Rates] = field(default_factory=dict)  # by topology
    # Since when, in monotonic seconds, executors rest, and workers are missed.
    moved_s: Mapping[tuple[str, ExecutorId], float] = field(default_factory=dict)
    unheard_s: Mapping[tuple[str, Slot], float] = field(default_factory=dict)
    answers: tuple[tuple[str, Answer], ...] = ()  # that no policy has asked for yet
    targeting: Remembered | None = None  # what the policy `gather` remembers; None with any other
    # Worked out of what was seen, and kept to save the work; a decision is the same without.
    layouts: Mapping[str, Layout] = field(default_factory=dict)  # by topology


@dataclass(frozen=True, slots=True)
class TopologyReport:
    """How one cycle ended for one topology."""

    tick: int
    topology: str  # its id; empty if the cycle did not get as far
    time_s: float  # Unix seconds
    outcome: Outcome
    reason: str
    moves: tuple[Move, ...] = ()  # the moves that begin, or would
    plan: Plan | None = None  # the plan to write, or that would be
    warnings: tuple[str, ...] = ()  # what placement cannot repair
    picture: Picture | None = None  # what the decision looked at
    vetoes: Vetoes | None = None  # and what was in its way; None if it did not get as far
    mode: Mode = Mode.ADVISE
    drains: bool = False  # the moves take executors away from drained hosts

    @property
    def proposal(self) -> str:
        """The id by which an operator may approve the moves; empty if they wait for nobody."""
        waits = self.outcome is Outcome.AWAITING_APPROVAL
        return proposal_id(self.topology, self.moves) if waits else ""

    @property
    def inter_node_frac(self) -> float | None:
        """Share of the traffic that crosses between nodes, before the moves; None if unknown."""
        if self.picture is None or not self.picture.snapshot.traffic.total_tps:
            return None
        cluster, snapshot = self.picture.cluster, self.picture.snapshot
        return round(inter_node_tps(cluster, snapshot) / snapshot.traffic.total_tps, 4)


@dataclass(frozen=True, slots=True)
class Report:
    """How one cycle ended."""

    topologies: tuple[TopologyReport, ...]  # a nameless one if none could be looked at
    questions: tuple[Question, ...] = ()  # searches to begin, for answers in a later `Seen`
    error: Exception | None = None  # the surprise that ended the cycle

    @property
    def plans(self) -> dict[str, Plan]:
        """The plans to write with a compare-and-set, by topology."""
        return {
            one.topology: one.plan
            for one in self.topologies
            if one.outcome is Outcome.MOVED and one.plan is not None
        }


def cycle(memory: Memory, seen: Seen, settings: Config) -> tuple[Memory, Report]:
    """Decide once about all topologies.

    The same values give the same report. An unexpected error ends the cycle; what was seen of moves
    and searches that have ended is remembered all the same.
    """
    remembered = _remembering(memory, seen, settings)
    try:
        return _cycle(remembered, seen, settings)
    except Exception as error:  # a surprise must not end the controller
        return _surprised(remembered, seen.time_s, error)


def failed(memory: Memory, time_s: float, error: Exception) -> tuple[Memory, Report]:
    """Report STAND_BACK for a cycle that an unexpected error kept from looking, and count it."""
    return _surprised(replace(memory, tick=memory.tick + 1), time_s, error)


def _surprised(memory: Memory, time_s: float, error: Exception) -> tuple[Memory, Report]:
    reason = f"unexpected error: {error!r}"
    report = TopologyReport(memory.tick, "", time_s, Outcome.STAND_BACK, reason)
    return memory, Report((report,), error=error)


def _cycle(memory: Memory, seen: Seen, settings: Config) -> tuple[Memory, Report]:
    views = seen.topologies
    if seen.epoch is None or not views:
        return memory, Report((_nothing_to_look_at(memory, seen),))
    searches = _Searches(memory.answers)
    decide = policy(settings.policy, settings.options, searches)
    if isinstance(decide, Gather):
        decide.recall(memory.targeting or Remembered())
    under_way = moves_under_way(views)

    rates = observe_each(memory.rates, seen.loads, views, now_s=seen.now_s, ewma=settings.ewma)
    pictures, unheard_s = picture_each(
        views,
        rates,
        memory.layouts,
        memory.unheard_s,
        settings.limits,
        worker_capacity_cores=settings.worker_capacity_cores,
        now_s=seen.now_s,
        time_s=seen.time_s,
    )
    modes = {
        view.id: Mode(seen.controls.mode_of(view.publication.name, settings.mode)) for view in views
    }
    free_moves = settings.max_moves - len(under_way)
    gate = partial(
        gate_each, pictures, under_way, excluded=settings.excluded, max_moves=settings.max_moves
    )
    # An operator has asked for it, as for a single move: only a freeze holds it.
    drains = drain_each(
        gate(held=_frozen(seen)),
        seen.drained,
        settings.limits,
        free_moves,
        rests=memory.moved_s.keys(),
        excluded_hosts=settings.excluded.hosts,
        free=seen.free,
        worker_capacity_cores=settings.worker_capacity_cores,
    )
    # A move that is refused takes none from another topology.
    follow = partial(next_plan, epoch=seen.epoch, free=seen.free)
    drains |= {v.id: follow(v, drains[v.id])[1] for v in views if v.id in drains}
    begun = sum(len(decision.moves) for decision in drains.values())
    gated = gate(held=_held(seen, settings, modes))
    vetoes = veto_each(
        gated,
        memory.moved_s,
        replace(settings.excluded, drained=frozenset(seen.drained)),
        unwanted={view.id: seen.controls.unwanted(view.id, seen.time_s) for view in views},
        busy_nodes=_busy_nodes(seen, settings),
        cooldown_s=settings.cooldown_s,
        now_s=seen.now_s,
    )
    decisions = choose_each(
        decide,
        gated | {topology: Veto(d.outcome, d.reason) for topology, d in drains.items()},
        vetoes,
        settings.limits,
        free_moves - begun,
        may_exceed=not under_way and not begun,
        first=memory.tick,
        begins={topology for topology, mode in modes.items() if mode is Mode.AUTO},
    )
    decisions |= drains
    plans = {view.id: follow(view, decisions[view.id]) for view in views}

    reports = tuple(
        TopologyReport(
            memory.tick,
            topology,
            seen.time_s,
            _outcome(plan, decision, modes[topology], drains=topology in drains),
            decision.reason,
            decision.moves,
            plan,
            decision.warnings,
            made if isinstance(made := pictures[topology], Picture) else None,
            vetoes.get(topology),
            modes[topology],
            drains=topology in drains,
        )
        for topology, (plan, decision) in plans.items()
    )
    after = replace(
        memory,
        rates=rates,
        layouts={t: made.layout for t, made in pictures.items() if isinstance(made, Picture)},
        moved_s={**memory.moved_s, **_begun_s(reports, seen.now_s)},
        unheard_s=unheard_s,
        answers=tuple(given for given in searches.answers if given[0] in plans),
        targeting=decide.remembered.only(plans) if isinstance(decide, Gather) else None,
    )
    return after, Report(reports, tuple(searches.questions))


def _outcome(plan: Plan | None, decision: Decision, mode: Mode, *, drains: bool) -> Outcome:
    if plan is None:
        return decision.outcome
    if mode is Mode.AUTO or drains:
        return Outcome.MOVED
    return Outcome.AWAITING_APPROVAL if mode is Mode.APPROVE else decision.outcome


def _frozen(seen: Seen) -> dict[str, Veto]:
    reason = seen.controls.frozen(seen.time_s)
    return {v.id: Veto(Outcome.PAUSED, reason) for v in seen.topologies} if reason else {}


def _held(seen: Seen, settings: Config, modes: Mapping[str, Mode]) -> dict[str, Veto]:
    """Say of which topologies nothing may be decided: by an operator's word, the hour or a cap."""
    outside, most = closed(settings.windows, seen.time_s), settings.max_moves_hour
    held = {}
    for view in seen.topologies:
        reason = seen.controls.held(view.publication.name, seen.time_s) or outside
        if reason is None and modes[view.id] is Mode.OBSERVE:
            reason = "mode is observe: only measuring"
        if reason is not None:
            held[view.id] = Veto(Outcome.PAUSED, reason)
        elif most is not None and len(seen.begun) >= most:
            reason = f"{len(seen.begun)} moves have begun within an hour, {most} may"
            held[view.id] = Veto(Outcome.CAPPED, reason)
    return held


def _busy_nodes(seen: Seen, settings: Config) -> dict[str, Veto]:
    """Name the nodes that have had all the moves that they may have within an hour."""
    most = settings.max_moves_host_hour
    if most is None:
        return {}
    counts = Counter(node for _, source, target in seen.begun for node in {source, target})
    said = f"moves from or to it have begun within an hour, {most} may"
    return {
        node: Veto(Outcome.CAPPED, f"node {node}: {count} {said}")
        for node, count in counts.items()
        if count >= most
    }


class _Searches:
    """Gives the policy the answers that have come, and notes the questions that have none."""

    def __init__(self, answers: Iterable[tuple[str, Answer]]) -> None:
        self.answers = list(answers)
        self.questions: list[Question] = []

    def __call__(self, question: Question) -> Answer | None:
        for row, (topology, answer) in enumerate(self.answers):
            if topology == question.snapshot.topology:
                del self.answers[row]
                return answer
        self.questions.append(question)
        return None


def _remembering(memory: Memory, seen: Seen, settings: Config) -> Memory:
    """Count the cycle, keep the answers, and let rest the executors that have moved."""
    begun_s = {k: s for k, s in memory.moved_s.items() if k not in set(seen.not_begun)}
    moved_s = {**begun_s, **{(t, executor): at_s for t, executor, at_s in seen.rests}}
    return replace(
        memory,
        tick=memory.tick + 1,
        answers=(*memory.answers, *seen.answers),
        moved_s={k: s for k, s in moved_s.items() if seen.now_s - s < settings.cooldown_s},
    )


def _nothing_to_look_at(memory: Memory, seen: Seen) -> TopologyReport:
    outcome, reason = Outcome.STAND_BACK, "the hooks in Nimbus publish no topology"
    if seen.epoch is None:
        outcome, reason = Outcome.NOT_LEADER, "another controller leads, or none does yet"
    return TopologyReport(memory.tick, "", seen.time_s, outcome, reason)


def _begun_s(
    reports: Iterable[TopologyReport], now_s: float
) -> dict[tuple[str, ExecutorId], float]:
    return {
        (report.topology, ExecutorId.parse(move.executor)): now_s
        for report in reports
        if report.outcome is Outcome.MOVED
        for move in report.moves
    }


def cycle_with_searches(
    memory: Memory, seen: Seen, settings: Config
) -> tuple[Memory, Report, Seen]:
    """Decide once, each search answered on the spot: for a world without processes beside it.

    The answers are in the `Seen` that comes back.
    """
    while True:
        after, report = cycle(memory, seen, settings)
        if not report.questions:
            return after, report, seen
        question = report.questions[0]
        answer = question.snapshot.topology, question.answer()
        seen = replace(seen, answers=(*seen.answers, answer))
