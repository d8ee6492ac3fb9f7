"""What a drain refuses before it begins, and how far it is."""

from controller.cli.status_view import drain_lines, drain_progress
from controller.core.drain import cannot_drain
from controller.core.topology import TopologyView
from migration.model import ExecutorId, Node, PinnedExecutor, Plan, Slot
from tests.messages import node_acks, publication, worker_ack

A, B = Slot("a", 1), Slot("b", 1)
PLACES = {1: A, 2: A, 3: B}
CPU = {("wc-1", f"{task}-{task}"): 0.3 for task in PLACES}


def view(pinned: str | None = None) -> TopologyView:
    nodes = [Node(name, f"host-{name}", 100.0, (1,), 1) for name in "ab"]
    stays = (PinnedExecutor(ExecutorId(1, 1), pinned),) if pinned else ()
    acks = (
        node_acks("a", [worker_ack(A, [1, 2], pinned=stays)], "uuid"),
        node_acks("b", [worker_ack(B, [3])], "uuid"),
    )
    return TopologyView(publication(PLACES, nodes), Plan("uuid", 1, 0, "wc-1"), acks)


def refused(host: str, *drained: str, room: float = 1.0, pinned: str | None = None) -> str | None:
    return cannot_drain([view(pinned)], host, drained, CPU, {("wc-1", str(B)): room})


def test_what_the_other_hosts_cannot_carry_is_refused_with_the_numbers() -> None:
    assert refused("host-a") is None
    assert refused("host-a", room=0.5) == (
        "2 executors of wc need 0.6 cores, and its workers on other hosts have 0.5 below load.high"
    )
    # What stays needs no room elsewhere.
    assert refused("host-a", room=0.5, pinned="stateful") is None


def test_neither_the_last_host_nor_what_is_no_host_is_drained() -> None:
    assert refused("host-c") == "host-c is no host of the cluster, which has host-a, host-b"
    assert refused("host-a", "host-b") == "host-a is the last host that is not drained"
    assert cannot_drain([view()], "host-a", (), {}, {}) == (
        "the load of wc is not known yet: try again in some seconds"
    )


def test_progress_names_what_stays() -> None:
    lines = list(drain_lines(drain_progress([view("stateful")], "host-a", 5)))
    assert lines == [
        "host host-a is drained: 2 of 5 executors left",
        "  1-1 of wc-1 stays: stateful",
    ]
