"""What the controller takes out of the nodes that it sees."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from messages import publication

from controller.storm.collect import LiveCluster
from kvstore.zookeeper import Session, Stored
from migration import model, wire
from migration.model import Candidacy, Plan, Slot

WC = "wc-1"


class Nodes:
    """Stands for a session: nodes that a test writes."""

    def __init__(self, data: dict[str, bytes]) -> None:
        self.data = data

    def read(self, path: str, on_change: Callable[[], None] | None = None) -> Stored | None:
        return Stored(self.data[path], 0, 0) if path in self.data else None

    exists = read

    def read_many(self, paths: Sequence[str]) -> list[Stored | None]:
        return [self.read(path) for path in paths]

    def children(self, path: str, on_change: Callable[[], None] | None = None) -> list[str]:
        return sorted(p.removeprefix(f"{path}/") for p in self.data if p.startswith(f"{path}/"))


def cluster(data: dict[str, bytes]) -> LiveCluster:
    return LiveCluster.of_session(cast(Session, cast(Any, Nodes(data))))


def test_a_plan_is_an_orphan_once_storm_has_killed_its_topology():
    path, data = wire.plan_path(WC), {wire.plan_path(WC): wire.encode(Plan("c", 1, 0, WC))}
    assert cluster({**data, "/storms": b"", f"/storms/{WC}": b""}).orphans() == []
    assert cluster({**data, "/storms": b""}).orphans() == [(path, 0)]


def test_where_no_storm_is_no_plan_is_an_orphan():
    assert cluster({wire.plan_path(WC): wire.encode(Plan("c", 1, 0, WC))}).orphans() == []


def test_a_plan_of_garbage_is_not_for_people_to_delete():
    (view,) = cluster(
        {
            f"/storms/{WC}": b"",
            wire.topology_path(WC): wire.encode(publication({1: Slot("s1", 6700)})),
            wire.NODES: wire.encode(model.Nodes(())),
            wire.plan_path(WC): b"garbage",
        }
    ).topologies()
    assert view.stand_back is not None
    assert "/nstorm/plans/wc-1 is garbled" in view.stand_back
    assert "the leader writes it anew" in view.stand_back
    assert "delete" not in view.stand_back


def test_a_sign_of_life_is_read_before_what_it_vouches_for():
    asked: list[str] = []

    class Noting(Nodes):
        def read(self, path: str, on_change: Callable[[], None] | None = None) -> Stored | None:
            asked.append(path)
            return super().read(path)

        exists = read

    data = {
        f"/storms/{WC}": b"",
        wire.topology_path(WC): wire.encode(publication({1: Slot("s1", 6700)})),
        wire.NODES: wire.encode(model.Nodes(())),
    }
    LiveCluster.of_session(cast(Session, cast(Any, Noting(data)))).topologies()
    assert asked.index(wire.NIMBUS) < asked.index(wire.topology_path(WC))


def test_controllers_are_listed_the_leader_first():
    one, two = Candidacy("one", "0.2.0", 1), Candidacy("two", "0.3.0", 2)
    leads, waits = f"{wire.LEADER}/zz-0000000001", f"{wire.LEADER}/aa-0000000002"
    data = {waits: wire.encode(two), leads: wire.encode(one), f"{wire.LEADER}/other": b""}
    assert cluster(data).controllers() == [one, two]
    # As controllers of before wrote it: who stands by must not be taken for the leader.
    assert cluster({**data, leads: b"nimbus-1:4711"}).controllers() == []
    assert cluster({}).controllers() == []
