"""One cycle over values: what was remembered and what is seen now give what to do and why.

It reads no clock, writes nothing and keeps nothing. The live run, a replayed journal and the
simulator each make their own `CycleInput`, call `cycle`, and write the plans of its report.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from controller.config import Config, Mode
from controller.core.back import back_each
from controller.core.blocks import LoadSeen
from controller.core.case import Budget, TopologyCase
from controller.core.choose import choose_each, in_turn
from controller.core.controls import NOTHING_SET, Controls
from controller.core.decision import Outcome, Veto
from controller.core.drain import drain_each
from controller.core.gate import gate_each
from controller.core.guards import Above, Answers, guard_each, holding
from controller.core.latency import Timed, observe_timed_each
from controller.core.layout import Layout
from controller.core.learnt import Learnt, learn_each
from controller.core.limits import Limits
from controller.core.meters import NodeRates, observe_nodes
from controller.core.metrics import Rates, observe_each
from controller.core.peaks import Peaks, peaks_each
from controller.core.picture import Picture, full_links, picture_each
from controller.core.plan import plan_each
from controller.core.policy import SEARCH_LIMIT_S, Policy
from controller.core.reserve import Reserve
from controller.core.restarts import Starts, just_up, restarted, starts_each, up_each
from controller.core.runs import Refused, Watch, begun_of, given_up, guarded, watch_each
from controller.core.slots import slots_each
from controller.core.spare import spare_each
from controller.core.spouts import spout_figures
from controller.core.topology import TopologyView, hosts_of, moves_under_way
from controller.core.veto import veto_each
from controller.hold import Restrictions, hold_each
from controller.policies.registry import policy as policy_of
from controller.report import Felt, Report, TopologyReport, begun_by, report_each, surprised
from migration.model import ExecutorId, NodeLoad, Slot


@dataclass(frozen=True, slots=True)
class CycleInput:
    """All that a cycle may depend on, apart from its memory and the settings."""

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
    # By topology, what was taken back under earlier leaders.
    refused: tuple[tuple[str, Refused], ...] = ()
    guard_answers: Answers = ()  # to the queries of guards
    # As `rests`, once, of moves under earlier leaders after which executors still rest.
    earlier: tuple[tuple[str, ExecutorId, float], ...] = ()
    searches: tuple[tuple[str, float], ...] = ()  # that run, since when (monotonic), by topology


@dataclass(frozen=True, slots=True)
class Memory:
    """The values that one cycle leaves for the next."""

    tick: int = 0  # number of the last cycle
    rates: Mapping[str, Rates] = field(default_factory=dict)  # by topology
    nodes: NodeRates = field(default_factory=NodeRates)
    # The tuples of spouts that were acked and timed, by topology.
    timed: Mapping[str, Mapping[Slot, Timed]] = field(default_factory=dict)
    watches: Mapping[str, Watch] = field(default_factory=dict)  # by topology
    peaks: Mapping[str, Peaks] = field(default_factory=dict)  # by name
    learnt: Mapping[str, Learnt] = field(default_factory=dict)  # what hops cost, by topology
    above: Mapping[str, Mapping[str, Above]] = field(default_factory=dict)  # guards, by topology
    # Since when, in monotonic seconds, executors rest, and workers are missed.
    moved_s: Mapping[tuple[str, ExecutorId], float] = field(default_factory=dict)
    unheard_s: Mapping[tuple[str, Slot], float] = field(default_factory=dict)
    starts: Mapping[tuple[str, Slot], Starts] = field(default_factory=dict)  # of the workers
    up: Mapping[str, float] = field(default_factory=dict)  # since when supervisors are, monotonic
    of_policy: Mapping[str, Any] = field(default_factory=dict)  # by topology, for the policy alone
    # Worked out of what was seen, and kept to save the work; a decision is the same without.
    layouts: Mapping[str, Layout] = field(default_factory=dict)  # by topology


def cycle(memory: Memory, seen: CycleInput, settings: Config) -> tuple[Memory, Report]:
    """Decide once about all topologies.

    The same values give the same report. An unexpected error ends the cycle; what was seen of moves
    and searches that have ended is remembered all the same.
    """
    remembered = _remembering(memory, seen, settings)
    try:
        policy = policy_of(settings.policy, settings.options)
        remembered = _hearing(remembered, seen, policy)
        if seen.epoch is None or not seen.topologies:
            return remembered, Report((_nothing_to_look_at(remembered, seen),))
        return _cycle(remembered, seen, seen.epoch, settings, policy)
    except Exception as error:  # a surprise must not end the controller
        return remembered, surprised(remembered.tick, seen.time_s, error)


def failed(memory: Memory, time_s: float, error: Exception) -> tuple[Memory, Report]:
    """Report STAND_BACK for a cycle that an unexpected error kept from looking, and count it."""
    counted = replace(memory, tick=memory.tick + 1)
    return counted, surprised(counted.tick, time_s, error)


def _cycle(
    memory: Memory, seen: CycleInput, epoch: int, settings: Config, policy: Policy[Any]
) -> tuple[Memory, Report]:
    memory, felt = _observed(memory, seen, settings)
    memory, cases = _pictured(memory, seen, settings)
    holds = _holds(memory, seen, settings)
    cases, budget = _gated(cases, seen, holds, settings)
    cases = slots_each(
        cases,
        drains=bool(seen.drained),
        free=seen.free,
        capacity=settings.capacity,
    )
    cases, budget = drain_each(
        cases, seen.drained, holds.excluded, settings.limits, budget, rests=memory.moved_s.keys()
    )
    cases = spare_each(
        cases,
        holds.excluded.drained | holds.excluded.hosts | holds.busy_nodes.keys(),
        free=seen.free,
        rests=memory.moved_s.keys(),
    )
    cases = veto_each(
        cases,
        memory.moved_s,
        holds.excluded,
        settings,
        unwanted={t: {**one.stays, **holds.unwanted[t]} for t, one in memory.watches.items()},
        busy_nodes=holds.busy_nodes,
        now_s=seen.now_s,
        time_s=seen.time_s,
    )
    memory, cases, budget = _taken_back(memory, seen, settings, cases, budget, begins=holds.unaided)
    cases = _waiting(_guarded(cases, memory.watches, felt), memory, seen, holds, settings)
    cases = choose_each(
        policy,
        cases,
        memory.of_policy,
        settings.limits,
        budget,
        first=memory.tick,
        begins=holds.unaided,
        cycle_s=settings.cycle_s,
        search_left_s={
            topology: max(begun_s + SEARCH_LIMIT_S - seen.now_s, 0.0)
            for topology, begun_s in seen.searches
        },
    )
    cases = plan_each(cases, epoch, seen.free)
    return _ended(memory, seen, cases, holds.modes, felt, limits=settings.limits)


def _observed(
    memory: Memory, seen: CycleInput, settings: Config
) -> tuple[Memory, Mapping[str, Felt]]:
    """Take in what was measured, and what users feel of each topology now."""
    views = seen.topologies
    rates = observe_each(memory.rates, seen.loads, views, now_s=seen.now_s, ewma=settings.ewma)
    timed = observe_timed_each(memory.timed, seen.loads, [view.id for view in views])
    spouts = {t: spout_figures(rates[t], of, seen.now_s) for t, of in timed.items()}
    nodes = observe_nodes(memory.nodes, seen.loads, now_s=seen.now_s, ewma=settings.ewma)
    watches = watch_each(
        memory.watches,
        views,
        _looks(memory),
        {t: LoadSeen(seen.now_s, rates[t], of) for t, of in timed.items()},
        seen.rests,
        layouts=memory.layouts,
        refused=_by_topology(seen.refused),
        full_links=full_links(nodes, settings.capacity, settings.limits.high_frac, seen.now_s),
        time_s=seen.time_s,
    )
    named = {view.id: (view.publication.name, spouts[view.id]) for view in views}
    guards, above = guard_each(
        settings.guards,
        named,
        seen.guard_answers,
        memory.above,
        seen.now_s,
        cycle_s=settings.cycle_s,
    )
    after = replace(
        memory,
        rates=rates,
        nodes=nodes,
        timed=timed,
        watches={
            topology: _paused(
                guarded(watch, guards[topology], seen.now_s), seen, named[topology][0]
            )
            for topology, watch in watches.items()
        },
        above=above,
        starts=starts_each(memory.starts, views, seen.now_s),
        up=up_each(memory.up, views, seen.now_s),
    )
    return after, {t: Felt(spouts[t], guards=guards[t]) for t in watches}


def _pictured(
    memory: Memory, seen: CycleInput, settings: Config
) -> tuple[Memory, list[TopologyCase]]:
    """Measure the topologies, and learn from what is seen of them."""
    # By a time that the journal has, so that a replay gives the same.
    views = [view.at(seen.time_s) for view in seen.topologies]
    pictures, unheard_s = picture_each(
        views,
        memory.rates,
        memory.layouts,
        memory.unheard_s,
        settings.limits,
        nodes=memory.nodes,
        peaks=memory.peaks,
        capacity=settings.capacity,
        hops={topology: one.figures for topology, one in memory.learnt.items()},
        now_s=seen.now_s,
        time_s=seen.time_s,
    )
    made = {t: one for t, one in pictures.items() if isinstance(one, Picture)}
    inputs = {t: made[t].peak.input_tps if t in made else None for t in pictures}
    after = replace(
        memory,
        unheard_s=unheard_s,
        peaks=peaks_each(memory.peaks, inputs, seen.time_s),
        learnt=learn_each(memory.learnt, pictures, memory.rates, now_s=seen.now_s),
        layouts={t: one.layout for t, one in made.items()},
    )
    cases = [
        TopologyCase.of(view, pictures[view.id], restarted(view, memory.starts)) for view in views
    ]
    return after, cases


def _holds(memory: Memory, seen: CycleInput, settings: Config) -> Restrictions:
    """Hold also the hosts that have just come back; an operator, and so a drain, may want one."""
    found = hold_each(
        seen.topologies, seen.controls, seen.drained, seen.begun, settings, time_s=seen.time_s
    )
    back = just_up(memory.up, hosts_of(seen.topologies), seen.now_s)
    return replace(found, busy_nodes={**back, **found.busy_nodes})


def _gated(
    cases: list[TopologyCase], seen: CycleInput, holds: Restrictions, settings: Config
) -> tuple[list[TopologyCase], Budget]:
    """Stop what may not be decided now, and count the moves that may still begin."""
    under_way, most = moves_under_way(seen.topologies), settings.max_moves
    gated = gate_each(cases, under_way, holds.policies, holds.drains, max_moves=most)
    return gated, Budget(most - len(under_way), may_exceed=not under_way)


def _taken_back(
    memory: Memory,
    seen: CycleInput,
    settings: Config,
    cases: list[TopologyCase],
    budget: Budget,
    *,
    begins: Collection[str],  # topologies
) -> tuple[Memory, list[TopologyCase], Budget]:
    """Take runs back that were for the worse, and give up those that have to stay."""
    watches = memory.watches
    cases, budget, stays = back_each(
        cases,
        watches,
        settings.limits,
        budget,
        free=seen.free,
        capacity=settings.capacity,
        begins=begins,
    )
    given = {topology: given_up(watches[topology], why) for topology, why in stays.items()}
    return replace(memory, watches={**watches, **given}), cases, budget


def _guarded(
    cases: list[TopologyCase], watches: Mapping[str, Watch], felt: Mapping[str, Felt]
) -> list[TopologyCase]:
    """Note where a guard lets no policy decide."""
    return [
        replace(case, guard=Veto(Outcome.PAUSED, why))
        if (why := watches[case.id].pause or holding(felt[case.id].guards))
        else case
        for case in cases
    ]


def _waiting(
    cases: list[TopologyCase],
    memory: Memory,
    seen: CycleInput,
    holds: Restrictions,
    settings: Config,
) -> list[TopologyCase]:
    """Note where moves wait; advice and proposals do only while a run goes back.

    What is approved then is of no run either.
    """

    def noted(case: TopologyCase) -> TopologyCase:
        watch, begins = memory.watches[case.id], case.id in holds.unaided
        waits = watch.waits(seen.now_s, settings.cycle_s) if begins or watch.is_returning else None
        return replace(case, waits=waits, cold_s=watch.cold_s(seen.now_s) if begins else 0.0)

    return [noted(case) for case in cases]


def _ended(
    memory: Memory,
    seen: CycleInput,
    cases: list[TopologyCase],
    modes: Mapping[str, Mode],
    felt: Mapping[str, Felt],
    *,
    limits: Limits,
) -> tuple[Memory, Report]:
    """Report what was decided, and remember the moves that begin and what the policy keeps."""
    tick, watches = memory.tick, memory.watches
    in_all = {
        t: replace(felt[t], effects=watch.effects, pause="" if watch.is_returning else watch.pause)
        for t, watch in watches.items()
    }
    reports = report_each(cases, modes, in_all, tick=tick, time_s=seen.time_s)
    decided = {one.id: one.decided for one in in_turn(cases, tick) if one.decided is not None}
    after = replace(
        memory,
        watches={
            **watches,
            **_begun(watches, reports, limits),
            **_begun_to_wait(watches, reports, seen),
        },
        moved_s={**memory.moved_s, **dict.fromkeys(begun_by(reports), seen.now_s)},
        of_policy={t: one.memory for t, one in decided.items() if one.memory is not None},
    )
    questions = tuple(one.question for one in decided.values() if one.question is not None)
    return after, Report(reports, questions)


def _paused(watch: Watch, seen: CycleInput, name: str) -> Watch:
    """Ask for no pause that is there; one that has an end, or is of everything, is another one."""
    there = seen.controls.pauses.get(name)
    return replace(watch, pause="") if there is not None and there.until_s is None else watch


def _begun(
    watches: Mapping[str, Watch], reports: Iterable[TopologyReport], limits: Limits
) -> dict[str, Watch]:
    """Note the moves that begin; those of a drain are an operator's."""
    found = {}
    for one in reports:
        made = one.picture
        if one.outcome is Outcome.MOVED and not one.drains and one.plan and made:
            reserve = Reserve.of(made.cluster, made.snapshot, limits)
            full = {made.cluster.workers[w] for _, w in reserve.full(reserve.fit)}
            begun = begun_of(made.view, one.plan, one.predicted_cpu, full)
            found[one.topology] = replace(watches[one.topology], begun=begun)
    return found


def _begun_to_wait(
    watches: Mapping[str, Watch], reports: Iterable[TopologyReport], seen: CycleInput
) -> dict[str, Watch]:
    """Note since when moves for gain wait."""
    return {
        one.topology: replace(watches[one.topology], waits_since_s=seen.now_s)
        for one in reports
        if one.outcome is Outcome.WATCHING and watches[one.topology].waits_since_s is None
    }


def _by_topology(refused: Iterable[tuple[str, Refused]]) -> dict[str, tuple[Refused, ...]]:
    found: dict[str, tuple[Refused, ...]] = {}
    for topology, one in refused:
        found[topology] = (*found.get(topology, ()), one)
    return found


def _looks(memory: Memory) -> dict[str, LoadSeen]:
    """Give what the last cycle has seen of the load of topologies."""
    return {
        topology: LoadSeen(memory.watches[topology].looked_s, rates, memory.timed[topology])
        for topology, rates in memory.rates.items()
    }


def _remembering(memory: Memory, seen: CycleInput, settings: Config) -> Memory:
    """Count the cycle, and let rest the executors that have moved."""
    begun_s = {k: s for k, s in memory.moved_s.items() if k not in set(seen.not_begun)}
    earlier, ended = (
        {(topology, executor): at_s for topology, executor, at_s in rests}
        for rests in (seen.earlier, seen.rests)
    )
    moved_s = {**earlier, **begun_s, **ended}
    unwritten = {topology for topology, _ in seen.not_begun}
    watches = {
        t: replace(watch, begun=None) if t in unwritten else watch
        for t, watch in memory.watches.items()
    }
    return replace(
        memory,
        tick=memory.tick + 1,
        watches=watches,
        moved_s={k: s for k, s in moved_s.items() if seen.now_s - s < settings.cooldown_s},
    )


def _hearing(memory: Memory, seen: CycleInput, policy: Policy[Any]) -> Memory:
    """Let the policy take in the answers to its questions."""
    of_policy = dict(memory.of_policy)
    for topology, answer in seen.answers:
        heard = policy.heard(of_policy.get(topology), answer)
        if heard is not None:
            of_policy[topology] = heard
    return replace(memory, of_policy=of_policy)


def _nothing_to_look_at(memory: Memory, seen: CycleInput) -> TopologyReport:
    outcome, reason = Outcome.STAND_BACK, "the hooks in Nimbus publish no topology"
    if seen.epoch is None:
        outcome, reason = Outcome.NOT_LEADER, "another controller leads, or none does yet"
    return TopologyReport(memory.tick, "", seen.time_s, outcome, reason)
