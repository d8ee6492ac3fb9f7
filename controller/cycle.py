"""One cycle over values: what was remembered and what is seen now give what to do and why.

It reads no clock, writes nothing and keeps nothing. The live run, a replayed journal and the
simulator each make their own `Seen`, call `cycle`, and write the plans of its report.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from controller.config import Config, Mode
from controller.core.choose import choose_each
from controller.core.controls import NOTHING_SET, Controls
from controller.core.decision import Decision, Outcome, Veto
from controller.core.drain import drain_each
from controller.core.gate import gate_each
from controller.core.layout import Layout
from controller.core.metrics import Rates, observe_each
from controller.core.picture import Picture, picture_each
from controller.core.plan import next_plan
from controller.core.policy import Policy
from controller.core.slots import slots_each
from controller.core.spare import spare_each
from controller.core.topology import TopologyView, moves_under_way
from controller.core.veto import veto_each
from controller.hold import hold_each
from controller.policies.registry import policy
from controller.report import Report, TopologyReport, begun_by, report_each, surprised
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
    answers: tuple[tuple[str, Any], ...] = ()  # to questions of the policy, by topology
    # Unix seconds, source and target node of each move that has begun within the last hour.
    begun: tuple[tuple[float, str, str], ...] = ()
    drained: tuple[str, ...] = ()  # the hosts that operators drain
    free: frozenset[Slot] = frozenset()  # the slots where a move may start a worker


@dataclass(frozen=True, slots=True)
class Memory:
    """The values that one cycle leaves for the next."""

    tick: int = 0  # number of the last cycle
    rates: Mapping[str, Rates] = field(default_factory=dict)  # by topology
    # Since when, in monotonic seconds, executors rest, and workers are missed.
    moved_s: Mapping[tuple[str, ExecutorId], float] = field(default_factory=dict)
    unheard_s: Mapping[tuple[str, Slot], float] = field(default_factory=dict)
    of_policy: Mapping[str, Any] = field(default_factory=dict)  # by topology, for the policy alone
    # Worked out of what was seen, and kept to save the work; a decision is the same without.
    layouts: Mapping[str, Layout] = field(default_factory=dict)  # by topology


def cycle(memory: Memory, seen: Seen, settings: Config) -> tuple[Memory, Report]:
    """Decide once about all topologies.

    The same values give the same report. An unexpected error ends the cycle; what was seen of moves
    and searches that have ended is remembered all the same.
    """
    decide = policy(settings.policy, settings.options)
    remembered = _remembering(memory, seen, settings, decide)
    if seen.epoch is None or not seen.topologies:
        return remembered, Report((_nothing_to_look_at(remembered, seen),))
    try:
        return _cycle(remembered, seen, seen.epoch, settings, decide)
    except Exception as error:  # a surprise must not end the controller
        return remembered, surprised(remembered.tick, seen.time_s, error)


def failed(memory: Memory, time_s: float, error: Exception) -> tuple[Memory, Report]:
    """Report STAND_BACK for a cycle that an unexpected error kept from looking, and count it."""
    counted = replace(memory, tick=memory.tick + 1)
    return counted, surprised(counted.tick, time_s, error)


def _cycle(
    memory: Memory, seen: Seen, epoch: int, settings: Config, decide: Policy[Any]
) -> tuple[Memory, Report]:
    views = seen.topologies
    under_way = moves_under_way(views)
    free_moves = settings.max_moves - len(under_way)

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
    holds = hold_each(views, seen.controls, seen.drained, seen.begun, settings, time_s=seen.time_s)
    drainable = gate_each(pictures, under_way, holds.drains, max_moves=settings.max_moves)
    gated = gate_each(pictures, under_way, holds.policies, max_moves=settings.max_moves)
    spares = slots_each(
        pictures,
        drains=bool(seen.drained),
        free=seen.free,
        worker_capacity_cores=settings.worker_capacity_cores,
    )
    drains = drain_each(
        drainable,
        seen.drained,
        holds.excluded,
        settings.limits,
        free_moves,
        spares=spares,
        rests=memory.moved_s.keys(),
    )
    begun = sum(len(decision.moves) for decision in drains.values())
    ends = {Slot.parse(move.target) for decision in drains.values() for move in decision.moves}
    taken = {slot.supervisor for slot in ends & seen.free}
    opening = spare_each(
        {topology: made for topology, made in gated.items() if topology not in drains},
        pictures,
        spares,
        views,
        holds.excluded.drained | holds.excluded.hosts | holds.busy_nodes.keys() | taken,
        rests=memory.moved_s.keys(),
        high_frac=settings.limits.high_frac,
        worker_capacity_cores=settings.worker_capacity_cores,
    )
    gated |= opening
    vetoes = veto_each(
        gated,
        memory.moved_s,
        holds.excluded,
        unwanted=holds.unwanted,
        busy_nodes=holds.busy_nodes,
        cooldown_s=settings.cooldown_s,
        min_age_s=settings.min_age_s,
        now_s=seen.now_s,
        time_s=seen.time_s,
    )
    chosen = choose_each(
        decide,
        gated | {topology: Veto(d.outcome, d.reason) for topology, d in drains.items()},
        vetoes,
        settings.limits,
        free_moves - begun,
        memories=memory.of_policy,
        may_exceed=not under_way and not begun,
        first=memory.tick,
        begins={topology for topology, mode in holds.modes.items() if mode is Mode.AUTO},
    )
    decisions = {topology: one.decision for topology, one in chosen.items()} | drains
    plans: dict[str, tuple[Plan | None, Decision]] = {}
    for view in views:
        plans[view.id] = next_plan(view, decisions[view.id], epoch, seen.free)
    reports = report_each(
        plans,
        pictures | opening,
        vetoes,
        holds.modes,
        drains,
        tick=memory.tick,
        time_s=seen.time_s,
    )
    after = replace(
        memory,
        rates=rates,
        layouts={t: made.layout for t, made in pictures.items() if isinstance(made, Picture)},
        moved_s={**memory.moved_s, **dict.fromkeys(begun_by(reports), seen.now_s)},
        unheard_s=unheard_s,
        of_policy={t: one.memory for t, one in chosen.items() if one.memory is not None},
    )
    questions = tuple(one.question for one in chosen.values() if one.question is not None)
    return after, Report(reports, questions)


def _remembering(memory: Memory, seen: Seen, settings: Config, decide: Policy[Any]) -> Memory:
    """Count the cycle, keep the answers, and let rest the executors that have moved."""
    begun_s = {k: s for k, s in memory.moved_s.items() if k not in set(seen.not_begun)}
    moved_s = {**begun_s, **{(t, executor): at_s for t, executor, at_s in seen.rests}}
    of_policy = dict(memory.of_policy)
    for topology, answer in seen.answers:
        heard = decide.heard(of_policy.get(topology), answer)
        if heard is not None:
            of_policy[topology] = heard
    return replace(
        memory,
        tick=memory.tick + 1,
        of_policy=of_policy,
        moved_s={k: s for k, s in moved_s.items() if seen.now_s - s < settings.cooldown_s},
    )


def _nothing_to_look_at(memory: Memory, seen: Seen) -> TopologyReport:
    outcome, reason = Outcome.STAND_BACK, "the hooks in Nimbus publish no topology"
    if seen.epoch is None:
        outcome, reason = Outcome.NOT_LEADER, "another controller leads, or none does yet"
    return TopologyReport(memory.tick, "", seen.time_s, outcome, reason)
