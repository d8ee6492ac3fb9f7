"""What the controller takes out of the nodes that it sees."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from messages import publication

from controller.storm.collect import LiveCluster
from kvstore.zookeeper import Session, Stored
from migration import model, wire
from migration.model import Plan, Slot

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
