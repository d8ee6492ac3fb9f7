"""What is marked as allowed is what a plan may begin, whatever was observed."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, composite

from controller.core.allowed import Allowed
from migration.model import (
    Base,
    Entry,
    ExecutorWay,
    Node,
    NodeAcks,
    Phase,
    PinnedExecutor,
    PlacedExecutor,
    Plan,
    Slot,
    Way,
)
from migration.observation import Observation
from tests.messages import executor, node_acks, publication, replace, worker_ack

SLOTS = [Slot("a", 1), Slot("a", 2), Slot("b", 1), Slot("c", 1)]
TASKS = range(1, 6)


def some(draw: DrawFn, of: list[int]) -> list[int]:
    """Draw most of them."""
    return [one for one in of if draw(st.integers(0, 9))]


@composite
def acks(draw: DrawFn, slot: Slot, here: list[int]) -> NodeAcks:
    few = st.lists(st.sampled_from(TASKS), max_size=2, unique=True)
    pinned = tuple(PinnedExecutor(executor(task), "state") for task in draw(few))
    ways = tuple(ExecutorWay(executor(task), draw(st.sampled_from(Way))) for task in draw(few))
    worker = worker_ack(
        slot,
        some(draw, here),
        pinned=pinned,
        ways=ways,
        error=draw(st.sampled_from([None, None, "damaged"])),
        speaks=draw(st.sampled_from([2, 2, 1])),
    )
    return node_acks(slot.supervisor, [worker] if draw(st.integers(0, 4)) else [], "c")


@composite
def observations(draw: DrawFn) -> Observation:
    places = {task: draw(st.sampled_from(SLOTS)) for task in TASKS}
    offered = {name: (1, 2) if draw(st.integers(0, 9)) else () for name in "abc"}
    nodes = [Node(name, f"host-{name}", 100.0, ports, 1) for name, ports in offered.items()]
    made = publication(places, nodes, spouts=[1], speaks=draw(st.sampled_from([2, 2, 1])))
    if not draw(st.integers(0, 4)):
        unplaced = PlacedExecutor(executor(5), "bolt", None, None)
        made = replace(made, executors=(*made.executors[:-1], unplaced))
    parts = [
        draw(acks(slot, [task for task, at in places.items() if at == slot])) for slot in SLOTS
    ]
    at_a = replace(parts[0], workers=parts[0].workers + parts[1].workers)
    said = [at_a, *parts[2:]]
    if not draw(st.integers(0, 4)):
        said[-1] = replace(said[-1], supervisor=None)
    moved = draw(st.lists(st.sampled_from(TASKS), max_size=2, unique=True))
    entries = tuple(
        Entry(
            f"m{task}",
            executor(task),
            places[task],
            draw(st.sampled_from(SLOTS)),
            draw(st.sampled_from([Phase.OPEN, Phase.PREPARE, Phase.STOP, Phase.UNDO])),
            Base(places[task], 50),
            draw(st.sampled_from([None, None, "Storm wins"])),
        )
        for task in moved
    )
    return Observation.of(made, Plan("c", 1, 0, "wc-1", entries), said)


@given(observations())
def test_the_marks_of_policies_and_the_entries_of_plans_never_differ(seen: Observation) -> None:
    allowed = Allowed(seen)
    vetoes = allowed.vetoes
    for e, placed in seen.placed.items():
        for slot in seen.publication.slots:
            is_marked = str(e) not in vetoes.executors and str(slot) not in vetoes.workers
            made = allowed.entry(e, slot)
            assert isinstance(made, Entry) is (is_marked and slot != placed.slot), made
            if isinstance(made, Entry):
                assert e not in allowed.pinned
            else:
                assert made == allowed.why_not(e, slot)


@given(observations(), st.permutations(TASKS))
def test_no_plan_ends_a_worker_that_may_not_end(seen: Observation, tasks: list[int]) -> None:
    begun: list[Entry] = []
    for e in map(executor, tasks):
        for slot in sorted(seen.publication.slots):
            made = Allowed(seen).entry(e, slot, begun)
            if isinstance(made, Entry):
                begun.append(made)
    assert len({entry.executor for entry in begun}) == len(begun)
    if seen.cannot_close is not None:
        left = seen.staying.copy()
        left.subtract(entry.source for entry in begun)
        assert all(left[entry.source] > 0 for entry in begun)
