"""No policy of ours comes back to a placement on frozen traffic, so each comes to rest."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from controller.core.choose import decide
from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.decision import Decision, Outcome
from controller.core.excluded import Excluded
from controller.core.limits import Limits
from controller.core.policy import Case, Policy, Rule, Searching, Stateless
from controller.core.veto import placement_vetoes
from controller.policies.gather.policy import Gather
from controller.policies.greedy import greedy
from controller.policies.options import TargetOptions
from deploy.sim.remembering import gather
from tests.property.controller.policies.gather.test_policy import after, limits, options, worlds
from tests.property.controller.policies.test_single_move import World
from tests.unit.controller.policies.gather.test_target import world as world_of


def rests(policy: Rule, world: World, rules: Limits) -> None:
    """Follow a policy until it has no move left; fail where a placement comes back."""
    seen = {world[1].place.tobytes()}
    while (decision := policy(*world, rules)).moves:
        world = after(world, decision)
        assert world[1].place.tobytes() not in seen
        seen.add(world[1].place.tobytes())
    assert decision.outcome is not Outcome.WOULD_MOVE


def as_live(policy: Policy[Any]) -> Rule:
    """Lay the vetoes of a live run over a policy, all but the time for which executors rest."""

    memory = None

    def vetoed(cluster: Cluster, snapshot: LoadSnapshot, rules: Limits) -> Decision:
        nonlocal memory
        vetoes = placement_vetoes(cluster, snapshot, Excluded())
        decided = decide(policy, Case(cluster, snapshot, rules), vetoes, memory)
        memory = decided.memory
        return decided.decision

    return vetoed


@given(worlds(), limits)
def test_what_is_not_explained_is_decided_alike(world: World, rules: Limits) -> None:
    explained = as_live(Stateless(greedy))(*world, rules)
    plain = as_live(Stateless(greedy))(*world, replace(rules, explain=False))
    assert plain.moves == explained.moves


@given(worlds(), limits)
def test_safe_never_returns_to_a_placement(world: World, rules: Limits) -> None:
    rests(greedy, world, rules)


@given(worlds(), limits)
def test_safe_never_returns_to_a_placement_where_no_worker_may_end(
    world: World, rules: Limits
) -> None:
    rests(as_live(Stateless(greedy)), world, replace(rules, max_moves=1))


@given(worlds(), limits, options)
def test_target_never_returns_to_a_placement(
    world: World, rules: Limits, choice: TargetOptions
) -> None:
    rests(gather(choice), world, rules)


@given(worlds(), limits, options)
def test_target_never_returns_to_a_placement_where_no_worker_may_end(
    world: World, rules: Limits, choice: TargetOptions
) -> None:
    rests(as_live(Searching(Gather(choice))), world, replace(rules, max_moves=1))


def on_one_node(
    place: list[int], spout: int, tps: dict[tuple[int, int], float]
) -> tuple[Cluster, LoadSnapshot]:
    """Put idle executors, one of them a spout, into the workers of one node."""
    workers = [("n0", 0.5)] * (max(place) + 1)
    cluster, snapshot = world_of(workers, place, [0.0] * len(place), tps)
    pinned = tuple("spout" if e == spout else None for e in range(len(place)))
    return cluster, replace(snapshot, pinned=pinned)


@pytest.mark.parametrize(
    "world",
    [
        # An executor takes a last one's place and has just been taken from it.
        on_one_node([0, 2, 2, 1], 0, {(0, 1): 2.0, (0, 2): 1.0}),
        # Of two who gain together the first goes back to where it has just come from.
        on_one_node([0, 0, 0, 1, 0], 4, {(0, 3): 5.0, (0, 4): 4.0, (1, 3): 2.0}),
    ],
)
def test_what_gains_in_the_end_does_not_lead_back_into_the_way_of_a_target(world: World) -> None:
    policy = as_live(Searching(Gather(TargetOptions(0.0, 0.0, 1.0))))
    rests(policy, world, Limits(gain_frac=0.0, weight_worker=0.2))
