"""What the controller sees of all topologies of a run, and what it writes for them."""

from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from controller.core.controls import Controls, Pause
from controller.core.topology import TopologyView, free_slots
from controller.cycle import CycleInput
from controller.report import Report
from deploy.sim.flow.load import Meter
from deploy.sim.storm import EPOCH, Storm, unix_s
from migration.model import NodeAcks, NodeLoad, Slot, topology_name


class Together:
    """All topologies, with their meters."""

    def __init__(self, storms: Sequence[Storm], meters: Sequence[Meter]) -> None:
        self._storms, self._meters = storms, meters
        self.drained: set[str] = set()
        self._controls = Controls()

    def seen(self, now_s: float, *, opens: bool) -> CycleInput:
        """Show the topologies and the newest reports that have come, as the only controller.

        `opens`: whether a move may start a worker.
        """
        views, free = _heard([storm.view() for storm in self._storms]), frozenset[Slot]()
        if opens:
            taken = {slot for view in views for slot in view.publication.slots}
            taken |= {slot for view in views for slot in view.plan.opened_slots()}
            free = free_slots(views[0].publication.nodes, taken, views[0].acks)
        return CycleInput(
            now_s,
            unix_s(now_s),
            EPOCH,
            self._controls,
            topologies=tuple(views),
            loads=_by_node([meter.loads() for meter in self._meters]),
            drained=tuple(sorted(self.drained)),
            free=free,
        )

    def write(self, report: Report) -> None:
        """Begin the moves of a report, and pause; its cycle saw this very moment."""
        for one in report.topologies:
            if one.felt.pause:
                pauses = {topology_name(one.topology): Pause(one.felt.pause)}
                self._controls = Controls(pauses={**self._controls.pauses, **pauses})
        for storm in self._storms:
            plan = report.plans.get(storm.topology)
            for worker in storm.write(plan) if plan is not None else ():
                for other in self._storms:
                    if other is not storm:
                        other.leave(worker)


def _heard(views: list[TopologyView]) -> list[TopologyView]:
    """Give each topology the answers of all JVMs, as nodes publish them together."""
    together = tuple(_joined(acks) for acks in zip(*(view.acks for view in views), strict=True))
    return views if len(views) == 1 else [replace(view, acks=together) for view in views]


def _joined(acks: Sequence[NodeAcks]) -> NodeAcks:
    supervisors = [one.supervisor for one in acks if one.supervisor is not None]
    return structs.replace(
        acks[0],
        workers=tuple(worker for one in acks for worker in one.workers),
        supervisor=structs.replace(
            supervisors[0],
            plans=tuple(plan for one in supervisors for plan in one.plans),
            slots=tuple(slot for one in supervisors for slot in one.slots),
        ),
    )


def _by_node(loads: Sequence[Sequence[NodeLoad]]) -> tuple[NodeLoad, ...]:
    """Join what nodes report of each topology."""
    first, *others = loads
    return tuple(
        structs.replace(load, workers=sum((one.workers for one in rest), load.workers))
        for load, *rest in zip(first, *others, strict=True)
    )
