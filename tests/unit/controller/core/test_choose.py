"""An exchange begins whole or not at all."""

from controller.core.choose import choose, choose_each
from controller.core.classify import Limits, classify
from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.decision import Decision, Move, Outcome
from controller.core.picture import Picture
from controller.core.veto import Vetoes
from tests.unit.controller.policies.placement_worlds import cluster, topology

CLUSTER = cluster((1, 1))
A, B = CLUSTER.workers
SNAPSHOT = topology({"c": 4}).moved(1, 1).moved(3, 1)
RING = Decision(
    Outcome.WOULD_MOVE,
    "an exchange",
    (Move("1-1", A, B, 1.0), Move("2-2", B, A, 1.0)),
    is_exchange=True,
)


def ring(_cluster: Cluster, snapshot: LoadSnapshot, _limits: Limits) -> Decision:
    """Want the exchange while all of it may move."""
    wanted = [snapshot.executors.index(move.executor) for move in RING.moves]
    return RING if snapshot.is_movable[wanted].all() else Decision(Outcome.NOTHING_TO_GAIN, "none")


def chosen(staying: dict[str, int], max_moves: int = 1) -> Decision:
    limits = Limits(max_moves=max_moves)
    return choose(ring, CLUSTER, SNAPSHOT, limits, Vetoes(staying=staying))


def test_a_ring_is_chosen_whole_whatever_the_cap() -> None:
    for most in (1, 2, 3):
        assert chosen({A: 2, B: 2}, most) == RING


def test_no_part_of_a_ring_begins_where_one_of_it_may_not() -> None:
    for staying in ({A: 1, B: 2}, {A: 2, B: 1}, {A: 1, B: 1}):
        assert chosen(staying, 2).moves == ()
        assert chosen(staying, 2).outcome is Outcome.LAST_IN_WORKER


def test_a_ring_longer_than_the_cap_waits_until_nothing_is_under_way() -> None:
    made = {name: _picture() for name in ("one", "two")}
    vetoes = {name: Vetoes(staying={A: 2, B: 2}) for name in made}

    def outcomes(free_moves: int, *, may_exceed: bool) -> list[tuple[Outcome, int]]:
        found = choose_each(
            ring,
            made,
            vetoes,
            Limits(),
            free_moves,
            may_exceed=may_exceed,
            first=0,
            begins=True,
        )
        return [(one.outcome, len(one.moves)) for one in found.values()]

    begins, waits = (Outcome.WOULD_MOVE, 2), (Outcome.MOVE_IN_FLIGHT, 0)
    assert outcomes(1, may_exceed=True) == [begins, waits]
    assert outcomes(1, may_exceed=False) == [waits, waits]
    assert outcomes(3, may_exceed=False) == [begins, waits]
    assert outcomes(4, may_exceed=False) == [begins, begins]


def _picture() -> Picture:
    layout = type("Laid", (), {"cluster": CLUSTER})()
    return Picture(None, layout, SNAPSHOT, classify(CLUSTER, SNAPSHOT, Limits()))  # type: ignore[arg-type]
