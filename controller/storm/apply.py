"""Writes plans and drives the moves in them, phase by phase, until each has come to its end."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from controller.core.times import HOUR_S
from controller.core.topology import TopologyView
from controller.storm.collect import known_of
from controller.storm.controls import why_off
from controller.storm.history import CANCELLED, SWITCHED_OFF, History
from controller.storm.leader import Leader
from controller.storm.mirror import Mirror
from controller.storm.move_record import MoveRecord
from kvstore.errors import ConflictError, NodeExistsError, NoNodeError
from kvstore.logs import log
from kvstore.zookeeper import Session
from migration import ModelError, wire
from migration.model import MOVING, Entry, Phase, Plan, PlanVersion, Timing
from migration.protocol import (
    Event,
    FinishedMove,
    HeldPlan,
    MoveOutcome,
    Step,
    begin,
    following,
    resume,
    step,
)
from migration.recovery import KnownPlan

# The phases between PREPARE and STOPPED: what the application may notice of a move. Each way has
# the first and the last of them.
DISRUPTIVE_PHASES = MOVING - {Phase.OPEN, Phase.UNDO}


@dataclass(slots=True)
class _Held:
    held_plan: HeldPlan
    phase_s: dict[str, dict[str, float]] = field(default_factory=dict)


class Applier:
    """Writes the plans of all topologies, and what becomes of the moves in them.

    `now_s` returns monotonic seconds, `time_s` Unix seconds.
    """

    def __init__(
        self,
        session: Session,
        *,
        mirror: Mirror,
        leader: Leader,
        timing: Timing,
        history: History | None = None,
        now_s: Callable[[], float] = time.monotonic,
        time_s: Callable[[], float] = time.time,
    ) -> None:
        self._session = session
        self._mirror = mirror
        self._leader = leader
        self._timing = timing
        self._now_s, self._time_s = now_s, time_s
        self._held: dict[str, _Held] = {}
        self._lost_s: dict[str, float] = {}
        self.history = history or History()
        self._why: dict[tuple[str, str], str] = {}  # moves were taken back, by topology and id
        self._untold: list[tuple[MoveRecord, float]] = []
        # What was asked for by topology, until it is known whether it was written.
        self._asked: dict[str, tuple[tuple[Entry, ...], Mapping[str, Any], float]] = {}

    def take_ended(self) -> list[tuple[MoveRecord, float]]:
        """Hand over the moves that have ended since the last call, with their monotonic seconds."""
        untold, self._untold = self._untold, []
        return untold

    def begin(self, before: Plan, after: Plan, asked: Mapping[str, Any]) -> bool:
        """Write the next plan of a topology, with one or more moves that begin in it.

        `after` is one version above `before`, which it was made from, and under this leader's
        epoch; `asked` goes into the history. False if the plan has changed since or this controller
        no longer leads.
        """
        held = self._take(before)
        if held is None:
            return False
        entries = after.entries[len(before.entries) :]
        try:
            made = begin(held.held_plan, entries, self._now_s())
        except ModelError as error:  # `before` is older
            log.warning("move_refused", topology=before.topology, reason=str(error))
            return False
        # In the same transaction: whoever has seen that it is off has then seen every move.
        switch = self._switch()
        self._asked[after.topology] = entries, asked, self._time_s()
        if made.plan != after or switch is None or not self._write(held, made, switch):
            del self._asked[after.topology]
            return False
        self._note_begun(after)
        return True

    def _note_begun(self, seen: Plan) -> None:
        """Note what has begun; the answer to its write may be lost, and only the plan shows it."""
        entries, asked, time_s = self._asked.pop(seen.topology, ((), {}, 0.0))
        there = {(entry.id, entry.executor, entry.target) for entry in seen.entries}
        for entry in entries:
            if (entry.id, entry.executor, entry.target) in there:
                self.history.begin(seen.topology, entry, time_s, asked)
                log.info(
                    "move_begun", **_log_fields(seen.topology, entry), plan_version=seen.version
                )

    def _switch(self) -> tuple[str, int] | None:
        """Return the node of the switch and its version while it is on; None while it is off."""
        with suppress(NodeExistsError):
            if self._mirror.node(wire.OFF) is None:
                self._session.create(wire.OFF, b"")
                self._mirror.invalidate(wire.OFF)
        stored = self._mirror.node(wire.OFF)
        return None if stored is None or stored.data else (wire.OFF, stored.version)

    def cancel(self, topology: str, move: str, why: str) -> None:
        """Take a move back as soon as its phase allows; a new leader knows nothing of that."""
        self._why.setdefault((topology, move), why)
        held = self._held.get(topology)
        if held is not None:
            progress = tuple(
                replace(one, cancelled=one.cancelled or one.id == move)
                for one in held.held_plan.progress
            )
            held.held_plan = replace(held.held_plan, progress=progress)

    def step(self, views: Iterable[TopologyView]) -> bool:
        """Look once at every move under way, write what follows; return whether moves are left."""
        left, views = False, tuple(views)
        self._call_agents(views)
        for gone in {*self._held, *self._lost_s} - {view.id for view in views}:
            if self._mirror.kept_node(wire.plan_path(gone)) is None:
                self._held.pop(gone, None)
                self._lost_s.pop(gone, None)
        for view in views:
            if self._mend(view):
                left = True
                continue
            held = self._take(view.plan)
            self._note_begun(view.plan)
            if held is not None and held.held_plan.plan.entries:
                off = why_off(self._mirror.node(wire.OFF)) or view.observation.switched_off
                if off:
                    why = f"{SWITCHED_OFF}: {off}"
                    for entry in held.held_plan.plan.entries:
                        self.cancel(view.id, entry.id, why)
                self._step(held, view)
                left = left or bool(held.held_plan.plan.entries)
        if self._leader.epoch is not None:
            for move in self.history.under_way:
                self._end_unseen(move, views)
        return left

    def _call_agents(self, views: Iterable[TopologyView]) -> None:
        """Name to the agents of slots that are opened the topologies whose plans they need."""
        if self._leader.epoch is None:
            return
        opening: dict[str, set[str]] = {}
        for view in views:
            for slot in view.plan.opened_slots():
                opening.setdefault(slot.supervisor, set()).add(view.id)
        for node, topologies in opening.items():
            path, data = f"{wire.OPENS}/{node}", "\n".join(sorted(topologies)).encode()
            stored = self._mirror.node(path)
            if stored is None or stored.data != data:
                self._session.put(path, data)
                self._mirror.invalidate(path)
        for node in set(self._mirror.children(wire.OPENS)) - opening.keys():
            self._session.delete(f"{wire.OPENS}/{node}")

    def sweep(self, orphans: Iterable[tuple[str, int]]) -> None:
        """Delete what is left of topologies and nodes that are gone, by path and version."""
        epoch = self._leader.epoch
        if epoch is None:
            return
        for path, version in orphans:
            try:
                self._session.delete_checked(path, version, (wire.EPOCH, epoch))
                log.info("leftover_deleted", path=path, reason="Storm no longer has it")
            except (ConflictError, NoNodeError) as error:
                log.warning("leftover_delete_refused", path=path, reason=str(error))
            finally:
                self._mirror.invalidate(path)

    def _mend(self, view: TopologyView) -> bool:
        """Write a plan again that ZooKeeper has lost; return whether it was lost."""
        topology, epoch = view.publication.topology, self._leader.epoch
        node = self._mirror.node(wire.plan_path(topology))
        stored = self._mirror.plan(topology)
        known = self._known(view)
        lost = known.lost(stored, node is not None)
        if lost is None or epoch is None:
            self._lost_s.pop(topology, None)
            return False
        now_s = self._now_s()
        since_s = self._lost_s.setdefault(topology, now_s)
        there = [plan for plan in (known.plan, stored) if plan is not None]
        nothing = Plan(view.plan.cluster, 0, -1, topology)
        last = max(there, key=lambda plan: plan.stamp, default=nothing)
        if not all(entry.understood for entry in last.entries):
            return True  # only that version can write again what it wrote
        waits = now_s - since_s < self._timing.ack_fresh_s
        if last.stamp < known.read and waits:
            return True  # a node whose JVM has read the newest one may still report it
        version = -1 if node is None else node.version
        if PlanVersion(epoch, version + 1) > known.read or self._renew(known.read.epoch):
            self._write_again(structs.replace(last, version=version), lost)
        return True

    def _known(self, view: TopologyView) -> KnownPlan:
        """Gather what the nodes know of a plan, and what this leader remembers of it."""
        held = self._held.get(view.publication.topology)
        if held is None or held.held_plan.epoch != self._leader.epoch:
            return known_of(view, view.plan.cluster, self._mirror.epoch)
        mine = held.held_plan.plan
        known = known_of(view, mine.cluster, self._mirror.epoch)
        newer = known.plan is not None and known.plan.stamp > mine.stamp
        return KnownPlan(known.plan if newer else mine, max(known.read, mine.stamp))

    def _renew(self, above: int) -> bool:
        """Take a higher epoch; what this leader remembers stays good: no other led in between."""
        before, epoch = self._leader.epoch, self._leader.renew(above)
        if epoch is None:
            return False
        for held in self._held.values():
            if held.held_plan.epoch == before:
                held.held_plan = replace(held.held_plan, epoch=epoch)
        return epoch > above

    def _write_again(self, last: Plan, lost: str) -> None:
        epoch = self._leader.epoch
        if epoch is None:
            return
        held = self._held.get(last.topology)
        if held is None or held.held_plan.epoch != epoch:
            held = _Held(resume(last, epoch, self._now_s()))
            self._held[last.topology] = held
        plan = following(last, last.entries, epoch)
        log.warning("plan_written_again", topology=last.topology, reason=f"the plan {lost}")
        with suppress(NodeExistsError):
            self._session.create(wire.PLANS, b"")
        self._write(held, Step(plan, resume(plan, epoch, self._now_s())))

    def _step(self, held: _Held, view: TopologyView) -> None:
        now_s = self._now_s()
        taken = step(held.held_plan, view.publication, view.acks, now_s, self._timing)
        if not self._write(held, taken):
            return
        for event in taken.events:
            self._note(held, event, view.publication.topology)
        for left in taken.finished:
            self._end(held, left, view.publication.topology)

    def _take(self, seen: Plan) -> _Held | None:
        """Return the held_plan of a topology, resumed if the plan or the epoch is another."""
        epoch = self._leader.epoch
        if epoch is None:
            self._held.clear()
            self._why.clear()
            return None
        held = self._held.get(seen.topology)
        known = held is not None and held.held_plan.plan.version >= seen.version
        if held is None or held.held_plan.epoch != epoch or not known:
            held = _Held(resume(seen, epoch, self._now_s()))
            self._held[seen.topology] = held
        return held

    def _write(self, held: _Held, made: Step, *fences: tuple[str, int]) -> bool:
        """Write a step's plan, if it has one, and adopt its held_plan; False if it was refused.

        `fences` are other nodes than the epoch that must be at a version.
        """
        if made.plan is not None:
            path = wire.plan_path(made.plan.topology)
            expected = made.plan.version - 1
            try:
                self._session.put_checked(
                    path,
                    wire.encode(made.plan),
                    None if expected < 0 else expected,
                    (wire.EPOCH, held.held_plan.epoch),
                    *fences,
                )
            except (ConflictError, NodeExistsError, NoNodeError) as error:
                log.warning("plan_write_refused", topology=made.plan.topology, reason=str(error))
                # What is remembered stays: if the plan is gone or garbled, it is written again.
                self._check_epoch(held.held_plan.epoch)
                return False
            finally:
                # After a lost answer too: it may have been written.
                self._mirror.invalidate(path)
        held.held_plan = made.held_plan
        return True

    def _check_epoch(self, epoch: int) -> None:
        stored = self._session.exists(wire.EPOCH)
        if stored is None or stored.version != epoch:
            log.warning("leader_stepped_down", reason="another controller has taken an epoch")
            self._leader.step_down()

    def _note(self, held: _Held, event: Event, topology: str) -> None:
        entry = event.entry
        spent = held.phase_s.setdefault(entry.id, {})
        if event.next != entry.phase:
            spent[entry.phase] = event.phase_s
        log.info(
            "move_phase",
            **_log_fields(topology, entry),
            phase=str(entry.phase),
            next=event.next,
            reason=event.reason,
            phase_s=round(event.phase_s, 3),
        )

    def _end(self, held: _Held, left: FinishedMove, topology: str) -> None:
        entry, why = left.entry, self._why.pop((topology, left.entry.id), "")
        spent = held.phase_s.pop(entry.id, {})
        stopped_after_s = None
        if left.duration_s is not None and {Phase.PREPARE, Phase.STOP} <= spent.keys():
            stopped_after_s = round(sum(spent[p] for p in DISRUPTIVE_PHASES & spent.keys()), 4)
        self._keep_end(
            self.history.of(topology, entry),
            outcome=left.outcome,
            reason=_reason(left.reason, why),
            phase_s={str(phase): round(seconds, 4) for phase, seconds in spent.items()},
            stopped_after_s=stopped_after_s,
        )

    def _end_unseen(self, move: MoveRecord, views: Iterable[TopologyView]) -> None:
        """End a move that has left its plan, or gone with it, by a write without an answer."""
        view = next((view for view in views if view.id == move.topology), None)
        held = self._held.get(move.topology)
        if view is None:
            if self._mirror.node(wire.plan_path(move.topology)) is not None:
                return  # it is not published at the moment
            outcome, reason = MoveOutcome.VOID, "its topology is gone"
        elif held is None or held.held_plan.epoch != self._leader.epoch:
            return  # its plan is lost, and not written again yet
        elif any(one.id == move.id for one in held.held_plan.plan.entries):
            return
        else:
            place = {str(one.executor): str(one.slot) for one in view.publication.executors}
            by_place = {move.source: MoveOutcome.UNDONE, move.target: MoveOutcome.MOVED}
            outcome = by_place.get(place.get(move.executor, ""), MoveOutcome.VOID)
            reason = "ZooKeeper did not answer at its end: the placement shows how it ended"
        begun_s = move.begun_s or 0.0
        if self._time_s() - begun_s < HOUR_S:
            self._keep_end(move, outcome=outcome, reason=reason)
        else:  # left by an earlier leader: nobody gets a notice of it now, and nothing rests
            self.history.end(move, outcome=outcome.value, reason=reason, ended_s=begun_s)

    def _keep_end(self, move: MoveRecord, *, outcome: MoveOutcome, **how: Any) -> None:
        move = self.history.end(move, outcome=outcome.value, ended_s=self._time_s(), **how)
        self._untold.append((move, self._now_s()))
        log.info(
            "move_ended",
            topology=move.topology,
            move=move.id,
            executor=move.executor,
            source=move.source,
            target=move.target,
            outcome=move.outcome,
            reason=move.reason,
            stopped_after_s=move.stopped_after_s,
        )


def _reason(reason: str, why: str) -> str:
    """Give why a move ended, and who took it back, or what."""
    if not why or reason not in CANCELLED:
        return reason
    return why if why.startswith(SWITCHED_OFF) else f"{reason}, {why}"


def _log_fields(topology: str, entry: Entry) -> dict[str, str]:
    return {
        "topology": topology,
        "move": entry.id,
        "executor": str(entry.executor),
        "source": str(entry.source),
        "target": str(entry.target),
    }
