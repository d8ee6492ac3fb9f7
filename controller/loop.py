"""One cycle: collect, metrics, classify, decide, plan, apply; it ends in exactly one outcome.

The loop knows the world only by its ports, so a live run, a simulation and a replay run this code.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import structlog

from controller.config import Config, Mode
from controller.core.cluster import Cluster, LoadSnapshot, inter_node_tps
from controller.core.decide import Decision, Outcome, Proposal
from controller.core.metrics import (
    Rates,
    build_cluster,
    build_snapshot,
    observe,
    stale_workers,
)
from controller.core.plan import settled_placement
from controller.policies import policy
from controller.ports import Clock, ClusterView, Leadership, LoadSource, PlanSink, TopologyView
from controller.targeting.search import Search, at_once
from controller.vetoes import (
    Veto,
    Vetoes,
    decide_and_begin,
    hooked_slots,
    of_the_moment,
    pinned_executors,
    standing,
)
from migration.model import MOVING, Entry, ExecutorId, Plan, Publication, Slot
from migration.moves import Refusal, validate_move

STALE_LOAD_S = 15.0
# A worker that has just been started needs so long to be heard of; after that it has no hooks.
UNHEARD_S = 30.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CycleReport:
    """How one cycle ended for one topology.

    Attributes
    ----------
    tick : int
        Number of the cycle.
    topology : str
        Its id; empty if the cycle did not get as far.
    time_s : float
        Unix seconds.
    outcome : Outcome
        Exactly one.
    reason : str
        One line.
    moves : tuple of Proposal
        What was, or would be, begun.
    plan : Plan or None
        The plan that was, or would be, written.
    warnings : tuple of str
        What placement cannot repair.
    cluster, snapshot : Cluster, LoadSnapshot or None
        What the decision was made on.
    """

    tick: int
    topology: str
    time_s: float
    outcome: Outcome
    reason: str
    moves: tuple[Proposal, ...] = ()
    plan: Plan | None = None
    warnings: tuple[str, ...] = ()
    cluster: Cluster | None = None
    snapshot: LoadSnapshot | None = None

    @property
    def inter_node_frac(self) -> float | None:
        """Share of the traffic that crosses between nodes, before the moves; None if unknown."""
        if self.cluster is None or self.snapshot is None or not self.snapshot.traffic.total_tps:
            return None
        total_tps = self.snapshot.traffic.total_tps
        return round(inter_node_tps(self.cluster, self.snapshot) / total_tps, 4)


class Controller:
    """Runs cycles against a world.

    Parameters
    ----------
    config : Config
        Settings.
    view : ClusterView
        Shows the topologies.
    source : LoadSource
        Delivers load.
    sink : PlanSink
        Takes moves.
    lead : Leadership
        Tells whether to act.
    clock : Clock
        Tells the time.
    search : Search
        Answers what the policy `target` asks.
    """

    def __init__(
        self,
        config: Config,
        *,
        view: ClusterView,
        source: LoadSource,
        sink: PlanSink,
        lead: Leadership,
        clock: Clock,
        search: Search = at_once,
    ) -> None:
        self._config = config
        # One for all cycles: a policy may remember what is under way.
        self._policy = policy(config.policy, config.options, search)
        self._view = view
        self._source = source
        self._sink = sink
        self._lead = lead
        self._clock = clock
        self._tick = 0
        self._rates: dict[str, Rates] = {}
        self._moved_s: dict[tuple[str, ExecutorId], float] = {}
        self._unheard_s: dict[tuple[str, Slot], float] = {}

    def cycle(self) -> tuple[CycleReport, ...]:
        """Run one cycle.

        Returns
        -------
        tuple of CycleReport
            One a topology; one without a topology if nothing could be looked at.
        """
        self._tick += 1
        try:
            reports = tuple(self._reports())
        except Exception as error:  # a surprise ends the cycle and changes nothing
            log.exception("cycle_failed", tick=self._tick)
            reports = (self._report("", Outcome.STAND_BACK, f"unexpected error: {error!r}"),)
        for report in reports:
            log.info(
                "cycle",
                tick=report.tick,
                topology=report.topology,
                outcome=report.outcome.value,
                reason=report.reason,
                plan_version=report.plan.version if report.plan else None,
                inter_node_frac=report.inter_node_frac,
            )
            for warning in report.warnings:
                log.warning("placement_cannot_help", tick=report.tick, reason=warning)
        return reports

    def note_move(self, topology: str, executor: ExecutorId) -> None:
        """Start an executor's cool-down; also for moves that somebody else asked for.

        Parameters
        ----------
        topology : str
            Its topology.
        executor : ExecutorId
            What moves.
        """
        self._moved_s[topology, executor] = self._clock.now_s()

    def _reports(self) -> Iterator[CycleReport]:
        epoch = self._lead.epoch
        if epoch is None:
            yield self._report("", Outcome.NOT_LEADER, "another controller leads, or none does yet")
            return
        views = self._view.topologies()
        if not views:
            reason = "the hooks in Nimbus publish no topology"
            yield self._report("", Outcome.STAND_BACK, reason)
        loads, now_s = self._source.loads(), self._clock.now_s()
        for view in views:
            topology = view.publication.topology
            before = self._rates.get(topology, {})
            self._rates[topology] = observe(
                before, loads, topology, now_s=now_s, ewma=self._config.ewma
            )
        live = {view.publication.topology for view in views}
        self._rates = {t: rates for t, rates in self._rates.items() if t in live}
        for view in views:
            yield self._one_topology(view, epoch)

    def _one_topology(self, view: TopologyView, epoch: int) -> CycleReport:
        topology = view.publication.topology
        gate = self._gate(view)
        if gate is not None:
            return self._report(topology, gate.outcome, gate.reason)
        cluster, snapshot = self._measure(view)
        hold = self._hold(view)
        outcome, reason = (hold.outcome, hold.reason) if hold else (Outcome.NOTHING_TO_GAIN, "")
        report = self._report(topology, outcome, reason)
        report = replace(report, cluster=cluster, snapshot=snapshot)
        return report if hold else self._decide(view, report, cluster, snapshot, epoch)

    def _gate(self, view: TopologyView) -> Veto | None:
        """Tell why the topology cannot even be measured."""
        publication = view.publication
        if publication.status != "ACTIVE":
            return Veto(Outcome.STAND_BACK, f"the topology is {publication.status}")
        homeless = [str(p.executor) for p in publication.executors if p.slot is None]
        if homeless or not publication.executors:
            named = ", ".join(homeless) or "any executor"
            return Veto(Outcome.STAND_BACK, f"Storm has not assigned {named}")
        hooked = hooked_slots(view)
        if not hooked:
            return Veto(Outcome.STALE_METRICS, "no worker has said that it has the hooks")
        stale = stale_workers(
            self._rates[publication.topology],
            hooked,
            now_s=self._clock.now_s(),
            limit_s=STALE_LOAD_S,
        )
        stale = (*self._unheard(publication, hooked), *stale)
        return Veto(Outcome.STALE_METRICS, "; ".join(stale)) if stale else None

    def _unheard(self, publication: Publication, hooked: Iterable[Slot]) -> list[str]:
        """Name the workers that may yet say that they have the hooks."""
        now_s, topology = self._clock.now_s(), publication.topology
        missing = {(topology, slot) for slot in publication.slots - set(hooked)}
        others = {key: at for key, at in self._unheard_s.items() if key[0] != topology}
        self._unheard_s = {
            **others,
            **{key: self._unheard_s.get(key, now_s) for key in sorted(missing)},
        }
        return [
            f"{slot} has not said that it has the hooks"
            for of, slot in sorted(missing)
            if now_s - self._unheard_s[of, slot] < UNHEARD_S
        ]

    def _hold(self, view: TopologyView) -> Veto | None:
        """Tell why nothing is decided now, whatever the load."""
        publication, config = view.publication, self._config
        paused = self._view.paused()
        if paused is not None or config.mode is Mode.OBSERVE:
            return Veto(Outcome.PAUSED, paused or "mode is observe: only measuring")
        if {publication.topology, publication.name} & config.excluded.topologies:
            return Veto(Outcome.EXCLUDED, f"topology {publication.name} is excluded")
        if view.stand_back is not None:
            return Veto(Outcome.STAND_BACK, view.stand_back)
        flying = [e for e in view.plan.entries if e.void is None and e.phase in MOVING]
        if len(flying) >= config.max_moves:
            named = ", ".join(f"{e.executor} to {e.target} in {e.phase}" for e in flying)
            return Veto(Outcome.MOVE_IN_FLIGHT, f"under way: {named}")
        return None

    def _measure(self, view: TopologyView) -> tuple[Cluster, LoadSnapshot]:
        publication = view.publication
        placement = settled_placement(publication, view.plan)
        slots = publication.slots | frozenset(placement.values())
        cluster = build_cluster(publication, slots, self._config.worker_capacity_cores)
        snapshot = build_snapshot(
            cluster,
            publication,
            placement,
            self._rates[publication.topology],
            pinned_executors(view),
            time_s=self._clock.time_s(),
        )
        return cluster, snapshot

    def _decide(
        self,
        view: TopologyView,
        report: CycleReport,
        cluster: Cluster,
        snapshot: LoadSnapshot,
        epoch: int,
    ) -> CycleReport:
        config = self._config
        free = config.max_moves - sum(
            e.void is None and e.phase in MOVING for e in view.plan.entries
        )
        limits = replace(config.limits, max_moves=free, keep_workers=True)
        vetoes, written = self._vetoes(view, cluster, snapshot), view

        def begin(move: Proposal) -> Refusal | Decision | None:
            nonlocal written
            entry = _entry(written, move)
            if isinstance(entry, Refusal):
                return entry
            plan = self._begin(written, entry, epoch)
            if plan is None:
                reason = "the plan was changed by somebody else meanwhile"
                return Decision(Outcome.STAND_BACK, reason)
            written = replace(written, plan=plan)
            return None

        decision = decide_and_begin(self._policy, cluster, snapshot, limits, vetoes, begin=begin)
        is_moved = decision.moves and config.mode is Mode.AUTO
        return replace(
            report,
            outcome=Outcome.MOVED if is_moved else decision.outcome,
            reason=decision.reason,
            moves=decision.moves,
            plan=written.plan if decision.moves else None,
            warnings=decision.warnings,
        )

    def _begin(self, view: TopologyView, entry: Entry, epoch: int) -> Plan | None:
        if self._config.mode is not Mode.AUTO:
            return view.plan.followed_by((*view.plan.entries, entry), epoch)
        written = self._sink.begin(view.plan, entry)
        if written is not None:
            self.note_move(view.publication.topology, entry.executor)
        return written

    def _vetoes(self, view: TopologyView, cluster: Cluster, snapshot: LoadSnapshot) -> Vetoes:
        now_s, topology = self._clock.now_s(), view.publication.topology
        resting_s = {
            executor: moved_s + self._config.cooldown_s - now_s
            for (of, executor), moved_s in self._moved_s.items()
            if of == topology
        }
        live = of_the_moment(view, cluster, resting_s)
        hosts = {node.id: node.host for node in view.publication.nodes}
        excluded = self._config.excluded.on(hosts)
        return live.joined(standing(cluster, snapshot, excluded))

    def _report(self, topology: str, outcome: Outcome, reason: str) -> CycleReport:
        return CycleReport(self._tick, topology, self._clock.time_s(), outcome, reason)


def _entry(view: TopologyView, move: Proposal) -> Entry | Refusal:
    return validate_move(
        view.publication,
        view.plan,
        view.acks,
        ExecutorId.parse(move.executor),
        Slot.parse(move.target),
        move_id=f"m{view.plan.version + 1}",
        keep_last=True,
    )
