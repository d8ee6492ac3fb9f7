"""The queue of commands: what can be read of it, and whose topology is meant."""

import json
import random
from typing import cast

import pytest

from controller.core.decision import Outcome, Veto, Vetoes
from controller.core.topology import TopologyView
from controller.storm.command_record import COMMANDS, Command, encode, find
from controller.storm.commands import CommandQueue, answered
from controller.storm.mirror import Mirror
from kvstore.errors import AccessError, NotConnectedError
from kvstore.zookeeper import Session, Stored
from migration.model import Base, Component, Entry, ExecutorId, Node, Phase, Plan, Slot
from tests.messages import node_acks, publication, replace, worker_ack


class Nodes:
    """A mirror of the queue, and the session that answers in it."""

    def __init__(self, nodes: dict[str, bytes | None], known_as: str | None = None) -> None:
        self.nodes = nodes
        self.known_as = known_as

    def children(self, path: str) -> list[str]:
        assert path == COMMANDS
        return list(self.nodes)

    def node(self, path: str) -> Stored | None:
        data = self.nodes[path.removeprefix(f"{COMMANDS}/")]
        return None if data is None else Stored(data, 0, 0)

    def set(self, path: str, data: bytes) -> None:
        self.nodes[path.removeprefix(f"{COMMANDS}/")] = data

    def author(self, path: str, mzxid: int) -> str | None:
        return self.known_as

    def invalidate(self, path: str) -> None:
        pass


def queue(
    nodes: Nodes,
    cancelled: list[tuple[str, str]] | None = None,
    *,
    full: bool = False,
    restarted: Vetoes | None = None,
) -> CommandQueue:
    """Work off commands in a cluster where no plan can be written."""

    def cancel(topology: str, move: str, why: str) -> None:
        (cancelled if cancelled is not None else []).append((topology, move))

    return CommandQueue(
        cast(Session, nodes),
        cast(Mirror, nodes),
        lambda before, after, asked: False,
        1,
        cancel=cancel,
        misfit=lambda topology, moves: "the loads have changed" if full else None,
        restarted=lambda view: restarted or Vetoes(),
        others={"plan": lambda command: answered(command, [{"steps": []}], "topology")},
    )


def test_what_is_garbage_or_has_vanished_is_passed_over() -> None:
    wish = Command("wc", "7-7", "s:1")
    nodes = Nodes({"c-1": b"{", "c-2": encode(wish), "c-3": None, "c-4": b'{"topology": 7}'})
    assert queue(nodes).read() == {f"{COMMANDS}/c-2": replace(wish, known_as="unproved")}


def test_a_wish_is_answered_in_its_place_and_read_so_afterwards() -> None:
    nodes = Nodes({"c-1": b"{", "c-2": encode(Command("gone", "7-7", "s:1"))})
    queue(nodes).work((), (), 1)
    (answered,) = queue(nodes).read().values()
    assert (answered.state, nodes.nodes["c-1"]) == ("REFUSED", b"{")
    assert answered.reason == "no topology gone: the hooks in Nimbus publish none"


def test_only_what_was_answered_here_counts_as_done() -> None:
    """Whoever asks could write into his command that it is done, by whom, and why."""
    done = Command("wc", state="MOVED", move="m7", known_as="sasl:ada", reason="not so")
    nodes = Nodes({"c-1": encode(done), "c-2": encode(Command("gone")), "c-3": None})
    works = queue(nodes, None)
    works.work((), (), 1)
    nodes.nodes["c-2"] = None  # whoever asked has left at once
    works.read()
    ((path, answer),) = works.take_answered().items()
    assert (path, answer.state) == (f"{COMMANDS}/c-2", "REFUSED")
    assert works.take_answered() == {}


def test_an_answer_counts_also_where_none_came_to_its_write() -> None:
    class Broken(Nodes):
        def set(self, path: str, data: bytes) -> None:
            super().set(path, data)
            raise NotConnectedError("away")

    works = queue(Broken({"c-1": encode(Command("gone"))}))
    with pytest.raises(NotConnectedError):
        works.work((), (), 1)
    (answer,) = works.take_answered().values()
    assert answer.state == "REFUSED"


def test_a_command_that_no_node_could_hold_as_an_answer_is_refused_and_ended() -> None:
    many = [random.Random(seed).randbytes(50).hex() for seed in range(6000)]
    nodes = Nodes({"c-1": encode(Command("gone", answer=many)), "c-2": encode(Command("gone"))})
    queue(nodes).work((), (), 1)
    first, second = queue(nodes).read().values()
    assert (first.state, first.reason) == ("REFUSED", "the command is too long")
    assert second.state == "REFUSED"
    assert all(len(data or b"") < 1000 for data in nodes.nodes.values())


def test_of_a_reason_the_history_keeps_one_line() -> None:
    nodes = Nodes({"c-1": encode(Command("wc", why="because\nof " + "much " * 100_000))})
    (read,) = queue(nodes).read().values()
    assert read.why == "because"


def test_a_name_that_nobody_has_proved_is_shown_as_unproved_also_to_the_next_leader() -> None:
    wish = Command("wc", by="operator bob at b", known_as="sasl:bob")
    (read,) = queue(Nodes({"c-1": encode(wish)})).read().values()
    assert read.asked_by == "unproved: operator bob at b"
    (later,) = queue(Nodes({"c-1": encode(read)}, known_as="sasl:bob")).read().values()
    assert later.asked_by == "unproved: operator bob at b"


def test_whom_zookeeper_knows_stands_before_what_they_call_themselves() -> None:
    nodes = Nodes({"c-1": encode(Command("wc", by="operator bob at b"))}, known_as="sasl:alice")
    (read,) = queue(nodes).read().values()
    assert read.asked_by == "sasl:alice (unproved: operator bob at b)"


def test_a_command_that_its_creator_closes_leaves_the_others_be() -> None:
    class Closed(Nodes):
        def node(self, path: str) -> Stored | None:
            if path.endswith("c-1"):
                raise AccessError("ZooKeeper does not let sasl:controller read it")
            return super().node(path)

    nodes = Closed({"c-1": b"", "c-2": encode(Command("wc"))})
    assert list(queue(nodes).read()) == [f"{COMMANDS}/c-2"]


def test_a_command_that_its_creator_lets_nobody_answer_leaves_the_others_be() -> None:
    class Closed(Nodes):
        def set(self, path: str, data: bytes) -> None:
            if path.endswith("c-1"):
                raise AccessError("ZooKeeper does not let sasl:controller write it")
            super().set(path, data)

    wish = encode(Command("gone", "7-7", "s:1"))
    nodes = Closed({"c-1": wish, "c-2": wish})
    working = queue(nodes)
    working.work((), (), 1)
    assert list(working.read()) == [f"{COMMANDS}/c-2"], "the other one is not tried again"
    assert queue(nodes).read()[f"{COMMANDS}/c-2"].state == "REFUSED"
    del nodes.nodes["c-1"]
    working.read()
    nodes.nodes["c-1"] = wish
    assert len(working.read()) == 2, "another one of its name"


def test_a_topology_is_found_by_id_and_by_name() -> None:
    def view(topology: str, name: str) -> TopologyView:
        published = publication({1: Slot("a", 1)}, topology=topology, name=name)
        return TopologyView(published, Plan("", 0, -1, topology), (), None)

    views = [view("wc-1-1", "wc"), view("other-2-2", "other")]
    assert find(views, "other") is find(views, "other-2-2") is views[1]
    assert find(views, "wc-1") is None


def asked(
    wish: Command,
    view: TopologyView,
    frozen: str | None = None,
    drained: tuple[str, ...] = (),
    *,
    full: bool = False,
    restarted: Vetoes | None = None,
) -> Command:
    nodes = Nodes({"c-1": encode(wish)})
    queue(nodes, full=full, restarted=restarted).work([view], (), 1, drained=drained, frozen=frozen)
    (answer,) = queue(nodes).read().values()
    return answer


def view_of(*entries: Entry) -> TopologyView:
    places = {1: Slot("a", 1), 2: Slot("a", 1), 3: Slot("b", 1), 4: Slot("b", 1)}
    nodes = [Node(n, n, 200.0, (1,), 1) for n in "ab"]
    acks = tuple(
        node_acks(n, [worker_ack(Slot(n, 1), tasks)], "c")
        for n, tasks in (("a", [1, 2]), ("b", [3, 4]))
    )
    return TopologyView(publication(places, nodes), Plan("c", 2, 7, "wc-1", entries), acks)


def moving(phase: Phase, void: str | None = None) -> Entry:
    base = Base(Slot("a", 1), 50)
    return Entry("m7", ExecutorId(1, 1), Slot("a", 1), Slot("b", 1), phase, base, void)


def test_a_move_for_which_a_node_has_too_little_memory_is_refused() -> None:
    """What another topology declares there counts."""

    def counting(topology: str, name: str, declared_mb: float) -> TopologyView:
        shown = view_of()
        published = replace(
            shown.publication,
            topology=topology,
            name=name,
            nodes=tuple(replace(one, memory_mb=800.0) for one in shown.publication.nodes),
            components=(Component("bolt", "bolt", 4, declared_mb),),
        )
        return replace(shown, publication=published, plan=Plan("c", 2, 7, topology))

    one, other = counting("wc-1", "wc", 128.0), counting("other-2", "other", 256.0)
    wish = Command("wc", "1-1", "b:1")
    assert asked(wish, one).state == "WAITING"
    commands = Nodes({"c-1": encode(wish)})
    queue(commands).work([one, other], (), 1)
    (answer,) = queue(commands).read().values()
    assert (answer.state, answer.reason) == (
        "REFUSED",
        "host b has 800 MB of memory for Storm's scheduler, 768 MB are declared there, and 1-1 "
        "brings 128 MB",
    )


def test_what_was_shown_is_done_exactly_or_refused_with_the_difference() -> None:
    shown = (("1-1", "a:1", "b:1"), ("3-3", "b:1", "a:1"))
    answer = asked(Command("wc", moves=shown), view_of())
    # Both are allowed, and only the plan could not be written here.
    assert (answer.state, answer.reason) == (
        "WAITING",
        "another controller changed the plan in the meantime",
    )
    elsewhere = asked(Command("wc", moves=(("1-1", "b:1", "a:1"),)), view_of())
    assert (elsewhere.state, elsewhere.reason) == ("REFUSED", "1-1 is at a:1 now, not at b:1")
    partly = asked(Command("wc", moves=(*shown, ("9-9", "", "a:1"))), view_of())
    assert (partly.state, partly.reason) == ("REFUSED", "topology wc-1 has no executor 9-9")


def test_a_move_that_was_begun_and_not_answered_is_followed() -> None:
    begun = view_of(moving(Phase.PREPARE))
    answer = asked(Command("wc", "1-1", "b:1"), begun)
    assert (answer.state, answer.move, answer.reason) == ("PREPARE", "m7", "")
    assert asked(Command("wc", "1-1", "a:1"), begun).state == "REFUSED"
    both = (("1-1", "a:1", "b:1"), ("3-3", "b:1", "a:1"))
    assert asked(Command("wc", moves=both), begun).state == "REFUSED"
    for gone in (moving(Phase.UNDO), moving(Phase.PREPARE, "gone")):
        assert asked(Command("wc", "1-1", "b:1"), view_of(gone)).move == ""


def test_what_was_approved_and_does_not_fit_any_more_is_refused_and_the_rest_is_free() -> None:
    shown = (("1-1", "a:1", "b:1"),)
    refused = asked(Command("wc", moves=shown, what="p-1"), view_of(), full=True)
    assert (refused.state, refused.reason) == ("REFUSED", "the loads have changed")
    assert asked(Command("wc", moves=shown, what="p-1"), view_of()).state == "WAITING"
    # An operator who moves by hand, or back, decides so himself.
    assert asked(Command("wc", moves=shown), view_of(), full=True).state == "WAITING"


def test_nothing_that_operators_ask_for_goes_to_a_worker_that_starts_again_and_again() -> None:
    why = "Storm has started b:1 again 3 times within 30 min"
    sick = Vetoes(workers={"b:1": Veto(Outcome.EXCLUDED, why)})
    refused = asked(Command("wc", "1-1", "b:1"), view_of(), restarted=sick)
    assert (refused.state, refused.reason) == ("REFUSED", f"nothing may come there: {why}")
    # What is there may leave it: who asks for that knows why.
    assert asked(Command("wc", "3-3", "a:1"), view_of(), restarted=sick).state == "WAITING"


def test_nothing_that_operators_ask_for_goes_to_a_drained_host() -> None:
    for wish in (
        Command("wc", "1-1", "b:1"),
        Command("wc", moves=(("3-3", "b:1", "a:1"), ("1-1", "a:1", "b:1"))),
    ):
        answer = asked(wish, view_of(), drained=("b",))
        assert answer.state == "REFUSED"
        assert answer.reason == "b:1 is on a host that is drained: see `nstorm undrain`"
        assert asked(wish, view_of()).state == "WAITING"


def test_while_frozen_operators_move_nothing_and_still_may_look() -> None:
    frozen = asked(Command("wc", "1-1", "b:1"), view_of(), "frozen: year's end")
    assert (frozen.state, frozen.reason) == ("REFUSED", "frozen: year's end")
    assert asked(Command("wc", verb="plan"), view_of(), "frozen: year's end").state == "DONE"


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ((), "no move m7 is under way: see `nstorm history`"),
        ((moving(Phase.STOP),), "m7 is in STOP and can no longer go back"),
        ((moving(Phase.UNDO),), "m7 is in UNDO and can no longer go back"),
        ((moving(Phase.DRAIN, "a rebalance"),), "m7 is void and can no longer go back"),
    ],
)
def test_what_cannot_be_cancelled_is_refused(entries: tuple[Entry, ...], words: str) -> None:
    answer = asked(Command("", verb="cancel", what="m7"), view_of(*entries))
    assert (answer.state, answer.reason) == ("REFUSED", words)


@pytest.mark.parametrize("phase", [Phase.PREPARE, Phase.SWITCH, Phase.DRAIN])
def test_a_move_that_can_go_back_is_cancelled_and_followed(phase: Phase) -> None:
    nodes = Nodes({"c-1": encode(Command("wc", verb="cancel", what="m7"))})
    cancelled: list[tuple[str, str]] = []
    queue(nodes, cancelled).work([view_of(moving(phase))], (), 1)
    assert cancelled == [("wc-1", "m7")]
    (answer,) = queue(nodes).read().values()
    assert (answer.state, answer.move, answer.executor) == (phase, "m7", "1-1")


def test_a_controller_of_an_older_version_says_what_it_does_not_know() -> None:
    answer = asked(Command("wc", verb="sing"), view_of())
    assert (answer.state, answer.reason) == (
        "REFUSED",
        "the leading controller does not know sing",
    )


def test_an_answer_that_is_too_long_is_refused() -> None:
    long = [{str(n): str(hash(str(n))) for n in range(30_000)}]
    answer = answered(Command("", verb="plan"), long, "topology")
    assert (answer.state, answer.answer) == ("REFUSED", None)
    assert "too long" in answer.reason
    assert answered(Command("wc", verb="plan"), [], "topology").reason == (
        "no topology of wc in that cycle"
    )


def test_a_wish_to_move_has_only_the_keys_that_the_last_version_knows() -> None:
    assert json.loads(encode(Command("wc", "7-7", "s:1"))) == {
        "topology": "wc",
        "executor": "7-7",
        "slot": "s:1",
    }
