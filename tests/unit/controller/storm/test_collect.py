"""What the controller takes out of the nodes that it sees."""

from collections.abc import Callable, Sequence
from random import Random
from threading import Event
from typing import Any, cast
from zlib import crc32

from structlog.testing import capture_logs

from controller.storm import controls
from controller.storm.collect import LiveCluster
from controller.storm.leader_status import STATUS
from controller.storm.mirror import Mirror
from kvstore.zookeeper import Session, Stored
from migration import model, wire
from migration.model import (
    Candidacy,
    NimbusReport,
    Node,
    NodeLoad,
    Plan,
    PublishedTopology,
    Slot,
    Timing,
    Way,
)
from tests.messages import START_SECS, node_acks, publication, worker_ack

WC = "wc-1"


class Nodes:
    """Stands for a session: nodes that a test writes."""

    def __init__(self, data: dict[str, bytes]) -> None:
        self.data = data
        self.written_ms: dict[str, int] = {}

    def read(self, path: str, on_change: Callable[[], None] | None = None) -> Stored | None:
        if path not in self.data:
            return None
        return Stored(self.data[path], 0, 0, self.written_ms.get(path, 0))

    exists = read

    def read_many(self, paths: Sequence[str]) -> list[Stored | None]:
        return [self.read(path) for path in paths]

    def children(self, path: str, on_change: Callable[[], None] | None = None) -> list[str]:
        return sorted(p.removeprefix(f"{path}/") for p in self.data if p.startswith(f"{path}/"))


def as_session(nodes: Nodes) -> Session:
    return cast(Session, cast(Any, nodes))


def cluster(data: dict[str, bytes]) -> LiveCluster:
    return LiveCluster.of_session(as_session(Nodes(data)))


def test_why_nimbus_cannot_publish_a_topology_is_known() -> None:
    there = (PublishedTopology("big-2-2", problem="too large"), PublishedTopology("wc-1"))
    report = NimbusReport(1, "0.2.0", 2, "EvenScheduler", there)
    assert cluster({wire.NIMBUS: wire.encode(report)}).unpublished() == {"big-2-2": "too large"}
    assert cluster({}).unpublished() == {}


def test_the_age_of_a_status_is_by_the_clock_that_wrote_it() -> None:
    nodes = Nodes({wire.acks_path("s1"): wire.encode(node_acks("s1", [], "c"))})
    assert LiveCluster.of_session(as_session(nodes)).status_s() is None
    nodes.data[STATUS] = b"{}"
    nodes.written_ms = {STATUS: 100_000, wire.acks_path("s1"): 190_000}
    assert LiveCluster.of_session(as_session(nodes)).status_s() == 90.0


def test_a_pause_of_everything_holds_until_a_resume_of_everything() -> None:
    nodes = Nodes({})
    session = cast(Any, nodes)
    session.create = session.data.__setitem__
    session.set = lambda path, data, version: session.data.__setitem__(path, data)
    controls.pause(session, "release")
    controls.resume(session, "wc")
    assert LiveCluster.of_session(session).controls().held("wc", 0.0) == "paused: release"
    controls.resume(session)
    assert LiveCluster.of_session(session).controls().held("wc", 0.0) is None


def test_a_plan_is_an_orphan_once_storm_has_killed_its_topology() -> None:
    path, data = wire.plan_path(WC), {wire.plan_path(WC): wire.encode(Plan("c", 1, 0, WC))}
    assert cluster({**data, "/storms": b"", f"/storms/{WC}": b""}).orphans() == []
    assert cluster({**data, "/storms": b""}).orphans() == [(path, 0)]


def test_reports_of_a_node_that_storm_has_lost_are_left_over_after_an_hour() -> None:
    now_s = 0.0
    data = {
        "/storms": b"",
        wire.NODES: wire.encode(model.Nodes((Node("s2", "h", 100.0, (1,), 0),))),
        **{
            wire.acks_path(name): wire.encode(node_acks(name, [], "c"))
            for name in ("s1", "s2", "s3")
        },
        **{wire.load_path(name): b"{}" for name in ("s1", "s2")},
    }
    mirror = Mirror(as_session(Nodes(data)), Event(), lambda: now_s)
    view = LiveCluster(mirror, Timing())
    assert view.orphans() == []
    view.loads()
    now_s = 3599.0
    assert view.orphans() == []
    data[wire.load_path("s3")] = b"{}"  # its agent lives, though no supervisor does
    mirror.invalidate_all()
    view.loads()
    now_s = 3601.0
    gone = [(wire.load_path("s1"), 0), (wire.acks_path("s1"), 0)]
    assert view.orphans() == gone
    del data[wire.NODES]  # Nimbus has withdrawn it
    mirror.invalidate_all()
    assert view.orphans() == []


def test_nothing_is_kept_of_what_has_gone() -> None:
    """A controller leads for months: topologies and nodes come and go."""
    nodes, now_s = Nodes({}), 0.0
    mirror = Mirror(as_session(nodes), Event(), lambda: now_s)
    view = LiveCluster(mirror, Timing())
    kept = []
    for turn in range(5):
        names, hosts = [f"t-{turn}-{n}" for n in range(20)], [f"s-{turn}-{n}" for n in range(20)]
        nodes.data = {
            "/storms": b"",
            wire.NODES: wire.encode(model.Nodes(())),
            wire.NIMBUS: wire.encode(NimbusReport(0, "0", 2, "x")),
            **{f"/storms/{name}": b"" for name in names},
            **{f"/assignments/{name}": b"" for name in names},
            **{wire.plan_path(name): wire.encode(Plan("c", 1, 0, name)) for name in names},
            **{
                wire.topology_path(name): wire.encode(publication({}, topology=name))
                for name in names
            },
            **{wire.acks_path(host): wire.encode(node_acks(host, [], "c")) for host in hosts},
            **{wire.load_path(host): wire.encode(NodeLoad(host, 0)) for host in hosts},
        }
        for _ in range(2):
            mirror.invalidate_all()
            now_s += 7.0
            assert len(view.topologies()) == 20
            assert len(view.loads()) == 20
            assert not view.has_moves()
            view.orphans()
        kept.append(sum(len(held) for held in (mirror._kept, mirror._decoded)))
    assert kept[1:] == kept[:-1]


def test_where_no_storm_is_no_plan_is_an_orphan() -> None:
    assert cluster({wire.plan_path(WC): wire.encode(Plan("c", 1, 0, WC))}).orphans() == []


def test_a_plan_of_garbage_is_not_for_people_to_delete() -> None:
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
    assert "the leader writes it again" in view.stand_back
    assert "delete" not in view.stand_back


def test_a_sign_of_life_is_read_before_what_it_vouches_for() -> None:
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


def test_a_controller_that_stands_by_counts_for_what_everybody_understands() -> None:
    data = {
        "/storms": b"",
        f"/storms/{WC}": b"",
        wire.topology_path(WC): wire.encode(publication({1: Slot("s1", 6700)}, speaks=2)),
        wire.NODES: wire.encode(model.Nodes(())),
        f"{wire.LEADER}/a-0000000001": wire.encode(Candidacy("leads", "0.3.0", 2)),
    }
    mirror = Mirror(as_session(Nodes(data)), Event())
    view = LiveCluster(mirror, Timing())
    seen = [way in view.topologies()[0].observation.understood for way in (Way.LIVE, Way.CARRY)]
    assert seen == [True, True]
    data[f"{wire.LEADER}/b-0000000002"] = wire.encode(Candidacy("waits", "0.2.0", 1))
    mirror.invalidate_all()
    (found,) = view.topologies()
    seen = [way in found.observation.understood for way in (Way.LIVE, Way.CARRY)]
    assert seen == [True, False]
    mirror.invalidate_all()
    assert view.topologies()[0].publication is found.publication


def test_controllers_are_listed_the_leader_first() -> None:
    one, two = Candidacy("one", "0.2.0", 1), Candidacy("two", "0.3.0", 2)
    leads, waits = f"{wire.LEADER}/zz-0000000001", f"{wire.LEADER}/aa-0000000002"
    data = {waits: wire.encode(two), leads: wire.encode(one), f"{wire.LEADER}/other": b""}
    assert cluster(data).controllers() == [one, two]
    # As controllers of before wrote it: who stands by must not be taken for the leader.
    assert cluster({**data, leads: b"nimbus-1:4711"}).controllers() == []
    assert cluster({}).controllers() == []


def test_a_view_has_the_newest_answers_of_all_whom_its_topology_concerns() -> None:
    """However nodes come, speak of other topologies, fall silent and go."""
    random, names, hosts = Random(18), ["a-1", "b-1", "c-1"], [f"s{n}" for n in range(6)]

    class Written(Nodes):
        def read(self, path: str, on_change: Callable[[], None] | None = None) -> Stored | None:
            data = self.data.get(path)
            return None if data is None else Stored(data, 0, crc32(data))

        exists = read

    nodes = Written({"/storms": b"", wire.NODES: wire.encode(model.Nodes(()))})
    places = {name: {1: Slot(f"s{n}", 6700)} for n, name in enumerate(names)}
    mirror = Mirror(as_session(nodes), Event(), lambda: now_s)
    view, now_s, compared = LiveCluster(mirror, Timing()), 0.0, 0
    fresh: dict[str, tuple[set[str], float]] = {}  # whom each speaks of, and since when
    for turn in range(300):
        now_s += random.choice([0.1, 0.1, 4.0])
        for name in random.sample(names, random.randrange(2)):
            if nodes.data.pop(wire.topology_path(name), None) is None:
                nodes.data[f"/storms/{name}"] = b""
                nodes.data[wire.topology_path(name)] = wire.encode(
                    publication(places[name], topology=name)
                )
        for host in random.sample(hosts, random.randrange(3)):
            said = set(random.sample(names, random.randrange(3)))
            workers = [worker_ack(Slot(host, 6700), [1], topology=name) for name in sorted(said)]
            nodes.data[wire.acks_path(host)] = wire.encode(node_acks(host, workers, f"c{turn}"))
            fresh[host] = said, now_s
        if random.random() < 0.1 and fresh:
            gone = random.choice(sorted(fresh))
            del fresh[gone], nodes.data[wire.acks_path(gone)]
        mirror.invalidate_all()
        for one in view.topologies():
            wanted = [
                host
                for host, (said, at_s) in sorted(fresh.items())
                if now_s - at_s <= Timing().ack_fresh_s
                and (one.id in said or host == places[one.id][1].supervisor)
            ]
            paths = map(wire.acks_path, wanted)
            newest = [wire.decode(model.NodeAcks, nodes.data[path]) for path in paths]
            assert list(one.acks) == newest
            compared += len(wanted)
    assert compared > 500


def test_a_plan_of_an_epoch_that_no_leader_has_had_is_none() -> None:
    forged = wire.encode(Plan("c", 1, 0, WC))
    data = {wire.CLUSTER: b"c", wire.EPOCH: b"", wire.plan_path(WC): forged}
    view = cluster(data)
    assert view.plan(WC) == Plan("c", 0, 0, WC)
    session = cast(Any, Nodes(data))
    session.exists = lambda path, on_change=None: Stored(b"", 1, 0)
    assert LiveCluster.of_session(session).plan(WC) == Plan("c", 1, 0, WC)


def test_a_node_that_speaks_for_another_is_not_heard() -> None:
    own = wire.encode(node_acks("s1", [worker_ack(Slot("s1", 6700), [1])], "c"))
    worker = wire.encode(node_acks("s1", [worker_ack(Slot("s2", 6700), [1])], "c"))
    load = wire.encode(NodeLoad("s2", 1))
    nodes = Nodes(
        {wire.acks_path("s1"): own, wire.acks_path("s3"): own, wire.load_path("s1"): load}
    )
    view = cluster(nodes.data)
    with capture_logs() as logs:
        assert [acks.node for acks in view.acks()] == ["s1"]
        assert view.loads() == []
    reasons = {line["path"]: line["reason"] for line in logs}
    assert reasons == {
        wire.acks_path("s3"): f"{wire.acks_path('s3')}: s3 speaks for s1",
        wire.load_path("s1"): f"{wire.load_path('s1')}: s1 speaks for s2",
    }
    with capture_logs() as logs:
        assert cluster({wire.acks_path("s1"): worker}).acks() == ()
    assert [line["reason"] for line in logs] == [f"{wire.acks_path('s1')}: s1 speaks for s2"]


def test_a_worker_that_has_just_been_placed_is_starting() -> None:
    there = model.Nodes((Node("s1", "host-1", 200.0, (1,), 1),))
    data = {
        "/storms": b"",
        f"/storms/{WC}": b"",
        f"/assignments/{WC}": b"",
        wire.NODES: wire.encode(there),
        wire.topology_path(WC): wire.encode(publication({1: Slot("s1", 1)}, topology=WC)),
        wire.acks_path("s1"): wire.encode(node_acks("s1", [], "")),
    }
    for age_s, starting in ((119, {Slot("s1", 1)}), (121, set())):
        report = NimbusReport(1000 * (START_SECS + age_s), "0", 1, "s")
        (view,) = cluster({**data, wire.NIMBUS: wire.encode(report)}).topologies()
        assert view.starting == starting
