"""Runs nstorm with a resource that it does not have: the disk of a worker.

Two tables get rows before anything reads them. With the code that measures a disk, those three
places are all that a space needs. Prints what was seen of it, as JSON, for
`tests/unit/controller/core/test_resources.py`.
"""

import json
from dataclasses import replace

from controller.core import resources
from migration import meters

DISK = resources.WorkerSpace(
    "disk", "a disk", "disk_used_bytes", "disk_bytes", bare=0.0, enough=4.0
)
meters.OF_WORKER += (
    meters.Meter(DISK.held, "What a worker has on its disk."),
    meters.Meter(DISK.most, "How much it may have there."),
)
resources.SPACES += (DISK,)

# Only now, for the other modules read the tables when they are imported.
import numpy as np  # noqa: E402

from controller.cli.status_document import as_document, as_json  # noqa: E402
from controller.config import Config  # noqa: E402
from controller.core.back import _too_full  # noqa: E402
from controller.core.controls import Controls  # noqa: E402
from controller.core.limits import Limits  # noqa: E402
from controller.core.loops.moves import is_barred  # noqa: E402
from controller.core.reserve import Reserve  # noqa: E402
from controller.core.view import View  # noqa: E402
from controller.cycle import Memory, cycle  # noqa: E402
from controller.policies.gather.problem import Problem  # noqa: E402
from controller.policies.gather.search import search  # noqa: E402
from controller.policies.options import TargetOptions  # noqa: E402
from controller.snapshot import parse  # noqa: E402
from controller.storm.status import status_of  # noqa: E402
from migration import wire  # noqa: E402
from migration.model import WorkerLoad  # noqa: E402
from tests.recorded_world import with_workers  # noqa: E402
from tests.unit.controller.test_cycle import World  # noqa: E402

# Two pairs of executors that talk, each of two nodes has an executor of each pair, and a disk that
# is two fifths full.
SNAPSHOT = {
    "topology": "t",
    "time_s": 0,
    "components": [{"id": "c", "parallelism": 4, "kind": "bolt"}],
    "edges": [],
    "nodes": [{"id": node, "cpu_capacity": 8} for node in "ab"],
    "workers": [{"id": f"{node}:1", "node": node, DISK.held: 300, DISK.most: 768} for node in "ab"],
    "executors": [
        {"id": f"{e}-{e}", "component": "c", "worker": f"{'ab'[e % 2]}:1", "cpu": 0.1, "queue": 0}
        for e in range(4)
    ],
    "traffic": [["0-0", "1-1", 100], ["2-2", "3-3", 100]],
}


def seen() -> dict[str, object]:
    """Give what the report, snapshot, fit, refusals, search and status have of the disk."""
    world, memory = World(), Memory()
    for _ in range(3):
        now = world.seen()
        loads = with_workers(now.loads, lambda _: {"meters": {DISK.held: 30, DISK.most: 120}})
        written = wire.encode(loads[0].workers[0])
        memory, report = cycle(memory, replace(now, loads=loads), Config())
        world.now += 1
    (one,) = report.topologies
    assert one.picture is not None
    leader = status_of([one], [], Config(), name="c", epoch=1)
    shown = json.loads(as_json(as_document(now.topologies, [], leader, Controls(), left_out={})))
    cluster, snapshot = parse(json.dumps(SNAPSHOT))
    reserve, together = Reserve.of(cluster, snapshot, Limits()), np.zeros(4, np.int64)
    problem = Problem.of(cluster, snapshot, Limits(headroom_min=1.0), TargetOptions())
    found = search(problem, 1.0)
    moves = [(1, 0), (3, 0)]
    return {
        "report": wire.decode(WorkerLoad, written).meters,
        "picture": one.picture.cluster.spaces["disk"].held.tolist(),
        "snapshot": cluster.spaces["disk"].most.tolist(),
        "fit": reserve.why_refused(together),
        "move": is_barred(View.of(cluster, snapshot, Limits()).world, 0, 1),
        "search": None if found is None else np.bincount(found, minlength=2).tolist(),
        "refusal": _too_full(reserve.fit, snapshot, moves),
        "status": [
            (worker["meters"], worker["spaces"]) for worker in shown["topologies"][0]["workers"]
        ],
    }


if __name__ == "__main__":
    print(json.dumps(seen()))
