"""Small topologies for the tests of the older schedulers: tasks from 1, a tenth of a core each."""

from collections.abc import Sequence

from controller.core.cluster import LoadSnapshot
from controller.policies.profiles import Machine, Profiles
from tests import snapshots
from tests.snapshots import Talk


def speeds(*hz: float) -> Profiles:
    """Give the first nodes a clock each."""
    return Profiles(machines={f"n{n}": Machine("", one) for n, one in enumerate(hz)})


def topology(
    parallelism: dict[str, int],
    edges: Sequence[tuple[str, str]] = (),
    talk: Talk = (),
    cpu_cores: Sequence[float] | float = 0.1,
) -> LoadSnapshot:
    return snapshots.topology(parallelism, edges, cpu_cores=cpu_cores, talk=talk, first=1)


def chain(*sizes: int) -> LoadSnapshot:
    return snapshots.chain(sizes, cpu_cores=0.1, first=1)
