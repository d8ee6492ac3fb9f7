"""Which workers run without hooks, and whether one that was restarted works as before."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from msgspec import UNSET

from controller.core.topology import TopologyView
from migration.meters import ACKED, FAILED, PENDING
from migration.model import ExecutorId, NodeLoad, PlacedExecutor, Slot
from migration.observation import SlotStatus

# This share of what is acked may fail in a topology that works.
_FEW_FAIL = 0.01
# This share of the acks of before is enough, since input varies.
_ENOUGH = 0.5
# Storm's default, where a topology's is not known.
_MESSAGE_TIMEOUT_S = 30
# So long a report of a worker takes, with some to spare.
_REPORTED_S = 10
# On stock Storm a worker took 43 to 49 s to come back: its supervisor waits for 30 s of silence.
_AWAY_S = 60


@dataclass(frozen=True, slots=True)
class Stock:
    """A worker without hooks, as Storm had placed its executors when it was found."""

    topology: str
    slot: Slot
    executors: frozenset[PlacedExecutor]


def stock_workers(view: TopologyView) -> tuple[Stock, ...]:
    """List the workers of a topology in which the agents of their nodes see no hooks.

    Those whose hooks are switched off have hooks.
    """
    here: dict[Slot, set[PlacedExecutor]] = {}
    for one in view.publication.executors:
        if one.slot is not None:
            here.setdefault(one.slot, set()).add(one)
    return tuple(
        Stock(view.id, slot, frozenset(here[slot]))
        for slot in sorted(here)
        if view.observation.status(slot) is SlotStatus.ABSENT and slot not in view.observation.off
    )


def unlisted(view: TopologyView, slot: Slot) -> str | None:
    """Return why nothing is known of a node that has a worker."""
    if slot.supervisor in view.publication.hosts:
        return None
    return (
        f"Storm does not list the supervisor {slot.supervisor} now, as while it starts: try again "
        "in a minute. If it did not start, its standard error has why, such as a jar that is "
        "missing"
    )


def cannot_adopt(view: TopologyView, one: Stock) -> str | None:
    """Return why a restart of a worker would not bring the hooks into it, or not now."""
    host = view.publication.hosts.get(one.slot.supervisor, one.slot.supervisor)
    supervisor = view.observation.supervisor(one.slot.supervisor)
    if supervisor is None:
        return (
            f"the supervisor of {host} has no hooks, so its worker would come back without them. "
            "Put the jar there and restart the supervisor first (docs/install.md, steps 3 and 4)"
        )
    if supervisor.error is not None:
        return f"the hooks of the supervisor of {host} move nothing: {supervisor.error}"
    if one.slot in view.starting:
        return "Storm has just placed it, so it may be starting: try again in two minutes"
    return None


def placed_elsewhere(view: TopologyView) -> str | None:
    """Return what Nimbus does to the executors of a worker that restarts, if it is impatient."""
    publication = view.publication
    timeout_s = publication.worker_timeout_secs
    if timeout_s is UNSET or timeout_s >= _AWAY_S:
        return None
    return (
        f"{publication.name}: Nimbus gives executors another slot after {timeout_s} s without "
        "their worker, and a restart takes longer. To keep the placement, first set "
        "nimbus.task.timeout.secs: 120 in Nimbus' storm.yaml and restart Nimbus"
    )


def failed_s(view: TopologyView) -> float:
    """Give after what time a tuple that is not acked has failed: Storm looks once in a timeout."""
    timeout_s = view.publication.message_timeout_secs
    return 2.0 * (_MESSAGE_TIMEOUT_S if timeout_s is UNSET else timeout_s)


def settles_s(view: TopologyView) -> float:
    """Give how long after a restart tuples that were in flight may be replayed."""
    if view.publication.status != "ACTIVE":
        return 0.0  # no spout emits
    return failed_s(view)


def seen_to_rest_s(view: TopologyView) -> float:
    """Give when reports of a topology that was deactivated are of spouts that emit no more."""
    return view.publication.refresh_poll_secs + _REPORTED_S


def has_ackers(view: TopologyView) -> bool:
    """Return whether Storm counts what its spouts have in flight."""
    return any(one.id == "__acker" for one in view.publication.components)


def in_flight(
    view: TopologyView, loads: Iterable[NodeLoad], seen_ms: dict[Slot, int]
) -> float | None:
    """Return how many tuples are un-acked or wait in queues; None where a spout is not seen.

    A worker's first report only sets its time in `seen_ms`: it may be of before the spouts rest.
    Its clock may differ from all others, so a later one is known by another time alone.
    """
    if not has_ackers(view):
        return None
    spouts = {one.id for one in view.publication.components if one.kind == "spout"}
    wanted = {one.executor for one in view.publication.executors if one.component in spouts}
    found: dict[ExecutorId, float] = {}
    queued = 0
    for worker in (one for node in loads for one in node.workers if one.topology == view.id):
        if worker.time_ms == seen_ms.setdefault(worker.slot, worker.time_ms):
            continue
        # Storm's own get tuples of metrics also at rest.
        queued += sum(one.queue for one in worker.executors if not one.component.startswith("__"))
        columns = {} if worker.executor_meters is UNSET else worker.executor_meters
        for one, count in zip(worker.executors, columns.get(PENDING.name, ()), strict=False):
            if count >= 0:
                found[one.executor] = found.get(one.executor, 0) + count
    return queued + sum(found[one] for one in wanted) if wanted <= found.keys() else None


def unsettled(view: TopologyView, stock: Collection[Slot]) -> str | None:
    """Return why no worker may be restarted now; those of `stock` have no hooks yet."""
    publication, observation = view.publication, view.observation
    if publication.status not in ("ACTIVE", "INACTIVE"):
        return f"the topology is {publication.status}"
    if view.stand_back is not None:
        return view.stand_back
    for slot in sorted(publication.slots):
        if (why := _not_there(view, slot, is_stock=slot in stock)) is not None:
            return why
    if observation.not_running:
        late = min(observation.not_running)
        return f"{late} does not run yet in the worker at {observation.placed[late].slot}"
    if any(placed.slot is None for placed in publication.executors):
        return "Storm has executors of it in no worker"
    return None


def _not_there(view: TopologyView, slot: Slot, *, is_stock: bool) -> str | None:
    if slot.supervisor not in view.publication.hosts:
        return f"Storm does not list the supervisor of {slot}, which may have just started"
    if is_stock or view.observation.status(slot) is SlotStatus.LIVE:
        return None
    return view.observation.unheard(slot)


@dataclass(frozen=True, slots=True)
class Counted:
    """What the hooked workers of a topology have counted by their newest reports.

    `spouts` has when, in ms, and how many tuples were acked and failed, by slot and incarnation.
    `tuples` has how many have come to the executors in a slot and left them.
    """

    spouts: Mapping[tuple[Slot, str], tuple[int, float, float]]
    tuples: Mapping[Slot, int]

    @classmethod
    def of(cls, view: TopologyView, loads: Iterable[NodeLoad]) -> "Counted":
        """Add up the newest reports of a topology's workers."""
        slot_of = {
            task: one.slot
            for one in view.publication.executors
            for task in range(one.executor.start, one.executor.end + 1)
        }
        workers = [one for node in loads for one in node.workers if one.topology == view.id]
        tuples = dict.fromkeys((one.slot for one in workers), 0)
        for one in workers:
            ends = [({source, target}, count) for source, target, count in one.rows]
            ends += [({source}, count) for source, _, count in one.folded]
            for tasks, count in ends:
                for slot in {slot_of.get(task) for task in tasks}:
                    if slot in tuples:
                        tuples[slot] += count
        spouts = {}
        for one in workers:
            acked = UNSET if one.meters is UNSET else one.meters.get(ACKED.name, UNSET)
            if acked is not UNSET and one.meters is not UNSET:
                failed = one.meters.get(FAILED.name, 0)
                spouts[one.slot, one.incarnation] = (one.time_ms, acked, failed)
        return cls(spouts, tuples)

    def spouts_tps(self, before: "Counted") -> tuple[float, float] | None:
        """Return how many tuples were acked and failed in a second since then, if that is known."""
        found = []
        for key in self.spouts.keys() & before.spouts.keys():
            (then_ms, *then), (now_ms, *now) = before.spouts[key], self.spouts[key]
            if now_ms > then_ms:
                span_s = (now_ms - then_ms) / 1000
                found.append([(b - a) / span_s for a, b in zip(then, now, strict=True)])
        return (sum(a for a, _ in found), sum(f for _, f in found)) if found else None

    def idle(self, before: "Counted", slot: Slot) -> bool:
        """Return whether a worker has had no tuples since then; not if no other one had any."""
        had = {one: count > before.tuples.get(one, 0) for one, count in self.tuples.items()}
        others = [any_came for one, any_came in had.items() if one != slot]
        return not had.get(slot, False) and (any(others) or not others)


def worse(before: tuple[float, float] | None, now: tuple[float, float] | None) -> str | None:
    """Return what of the spouts' acks and fails, in tuples/s, is worse than before a restart."""
    if now is None:
        return None
    acked_tps, failed_tps = now
    was_acked_tps, was_failed_tps = before or (0.0, 0.0)
    if failed_tps > max(was_failed_tps, _FEW_FAIL * acked_tps):
        return f"{failed_tps:.1f} tuples/s fail, before {was_failed_tps:.1f}"
    if acked_tps < _ENOUGH * was_acked_tps:
        return f"{acked_tps:.1f} tuples/s are acked, before {was_acked_tps:.1f}"
    return None
