"""The memory of `gather`: one a topology, no failed search twice, a search outside the cycle."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from controller.config import build
from controller.core.cluster import Cluster, LoadSnapshot, Traffic
from controller.core.decision import Outcome, Veto
from controller.core.fit import Fit
from controller.core.limits import Limits
from controller.core.policy import SEARCH_LIMIT_S, Case, Question
from controller.journal.record import decode, encode
from controller.policies.gather.evaluate import TargetQuestion
from controller.policies.gather.goal import Answer, Target
from controller.policies.gather.policy import (
    JUDGED_AFTER,
    MORE_ROOM,
    RETRY_S,
    Gather,
    Remembered,
)
from controller.policies.greedy import greedy
from controller.policies.options import TargetOptions
from controller.policies.registry import policy
from controller.searching import SubprocessSearches
from controller.snapshot import parse
from deploy.sim.remembering import Remembering, gather

GOLDEN = Path(__file__).parents[4] / "golden" / "decide"


# `greedy` finds nothing worth it by these.
LITERAL = Limits(gain_frac=1.0, weight_node=1.0, weight_worker=0.0)


def saddle() -> tuple[Cluster, LoadSnapshot]:
    return parse((GOLDEN / "saddle.json").read_text())


class Later:
    """A search that gives its answer at the second call."""

    def __init__(self) -> None:
        self.asked: list[TargetQuestion] = []

    def __call__(self, question: Question) -> Answer | None:
        assert isinstance(question, TargetQuestion)
        self.asked.append(question)
        return self.asked[0].answer() if len(self.asked) == 2 else None


def test_options_come_from_the_configuration() -> None:
    config = build({"target.gain": 1.0, "target.move.price": 0.03})
    assert config.options.target == TargetOptions(gain_frac=1.0, move_price_frac=0.03)
    cluster, snapshot = saddle()
    # Nothing gains more than all that crosses.
    chosen = Remembering(policy(config.policy, config.options))
    assert "target" not in chosen(cluster, snapshot, config.limits).reason
    chosen = Remembering(policy(config.policy, build({}).options))
    assert "towards a target" in chosen(cluster, snapshot, config.limits).reason


def test_until_an_answer_is_there_it_decides_as_safe() -> None:
    cluster, snapshot = saddle()
    search = Later()
    chosen = gather(TargetOptions(), search)
    assert chosen(cluster, snapshot, Limits()) == greedy(cluster, snapshot, Limits())
    assert "towards a target" in chosen(cluster, snapshot, Limits()).reason
    assert "towards a target" in chosen(cluster, snapshot, Limits()).reason
    assert len(search.asked) == 2


def test_a_search_in_vain_is_not_repeated_soon_unless_something_moved() -> None:
    cluster, snapshot = saddle()
    asked: list[TargetQuestion] = []

    def vain(question: Question) -> Answer:
        assert isinstance(question, TargetQuestion)
        asked.append(question)
        return Answer(None)

    chosen = gather(TargetOptions(), vain)
    for _ in range(3):
        chosen(cluster, snapshot, Limits())
    assert len(asked) == 1
    chosen(cluster, replace(snapshot, time_s=snapshot.time_s + RETRY_S), Limits())
    assert len(asked) == 2
    chosen(cluster, snapshot.moved(0, 1), Limits())
    assert len(asked) == 3


def test_it_searches_again_as_soon_as_there_may_be_more_room() -> None:
    """Load has fallen, or hops turn out to cost more than they were believed to."""
    cluster, snapshot = saddle()
    cluster = replace(cluster, node_cores=cluster.capacity_cores)
    asked: list[float] = []

    def vain(question: Question) -> Answer:
        assert isinstance(question, TargetQuestion)
        at_best = Fit.of(question.cluster, question.snapshot, question.limits).growth_at_best
        asked.append(at_best)
        return Answer(None, at_best=at_best)

    chosen = gather(TargetOptions(), vain)
    for _ in range(3):
        chosen(cluster, snapshot, Limits())
    assert len(asked) == 1
    cores = snapshot.cpu_cores
    for times in (1.05, 0.95, 0.92):
        chosen(cluster, replace(snapshot, cpu_cores=cores * times), Limits())
    assert len(asked) == 1
    chosen(cluster, replace(snapshot, cpu_cores=cores * 0.9), Limits())
    assert len(asked) == 2
    dear = replace(cluster, hop_times=1e5)
    chosen(dear, replace(snapshot, cpu_cores=cores * 0.9), Limits())
    assert len(asked) == 3
    assert asked[2] > MORE_ROOM * asked[1] > MORE_ROOM**2 * asked[0]


def test_the_end_of_a_rest_does_not_search_the_same_placement_again() -> None:
    cluster, snapshot = saddle()
    asked: list[Question] = []

    def vain(question: Question) -> Answer:
        asked.append(question)
        return Answer(None)

    chosen = gather(TargetOptions(), vain)
    for resting in (2, 1, 0):
        pinned = ("moved recently",) * resting + (None,) * (4 - resting)
        chosen(cluster, replace(snapshot, pinned=pinned), Limits(gain_frac=1.0))
    assert len(asked) == 1


def jittering(snapshot: LoadSnapshot, cycles: int) -> Iterator[LoadSnapshot]:
    """Give other CPU in each cycle."""
    for cycle in range(cycles):
        cpu_cores = snapshot.cpu_cores * (1 + 0.001 * cycle)
        yield replace(snapshot, cpu_cores=cpu_cores, time_s=snapshot.time_s + cycle)


def test_what_is_found_while_loads_jitter_is_judged_by_later_load() -> None:
    cluster, snapshot = saddle()
    one, another = gather(TargetOptions(), Later()), gather()
    towards = []
    for cycle, seen in enumerate(jittering(snapshot, JUDGED_AFTER + 3)):
        if cycle == 4:
            # In the middle of it another leader takes over.
            kept = one.memories[snapshot.topology]
            another.memories = {snapshot.topology: decode(Remembered, encode(kept))}
            one = another
        if "towards a target" in one(cluster, seen, Limits()).reason:
            towards.append(cycle)
    # Asked in the first cycle and answered in the second.
    assert towards == [1 + JUDGED_AFTER, 2 + JUDGED_AFTER]


def test_what_a_search_may_still_change_is_named() -> None:
    """Also after a pause, and where it waited long for those of other topologies."""
    cluster, snapshot = saddle()
    chosen, memory, awaits = Gather(TargetOptions()), Remembered(), []
    for cycle, load in enumerate(jittering(snapshot, JUDGED_AFTER + 4)):
        seen = replace(load, time_s=snapshot.time_s + cycle * 3600)
        left_s = 594.6 if cycle == 1 else None
        case = Case(cluster, seen, Limits(), cycle_s=10.0, search_left_s=left_s)
        decided = chosen.decide(case, memory)
        assert decided.memory is not None
        memory = decided.memory
        if cycle == 1:  # while the search runs, the question is asked again
            assert decided.question is not None
            memory = chosen.heard(memory, decided.question.answer())
        awaits.append(decided.awaits)
    search = "a search for a better placement has not ended: it"
    waits = f"{search} takes 10 minutes at most once it has begun"
    runs = f"{search} ends in 595 s at the latest"
    judged = [
        f"a better placement was found, and is judged some {10 * n} s from now"
        for n in range(JUDGED_AFTER, 0, -1)
    ]
    assert awaits == [waits, runs, *judged, "", ""]


def test_a_move_that_waits_is_not_noted_as_made() -> None:
    cluster, snapshot = saddle()
    chosen = Gather(TargetOptions())
    may_begin = Case(cluster, snapshot, Limits())
    waits = replace(may_begin, waits=Veto(Outcome.WATCHING, "it waits"))
    first = chosen.decide(waits, None)
    assert first.question is not None
    memory = chosen.heard(first.memory, first.question.answer())
    for case, notes in ((waits, False), (may_begin, True)):
        decided = chosen.decide(case, memory)
        assert "towards a target" in decided.decision.reason
        assert decided.memory is not None and bool(decided.memory.unpacked.gathered) is notes


def test_twice_the_gain_is_asked_while_loads_jitter() -> None:
    cluster, snapshot = saddle()
    # The target gains all that crosses: more than 0.6 of it, and not more than 1.2.
    options = TargetOptions(gain_frac=0.6)
    assert "towards a target" in gather(options)(cluster, snapshot, LITERAL).reason
    chosen = gather(options, Later())
    for seen in jittering(snapshot, 2 * JUDGED_AFTER):
        assert "towards a target" not in chosen(cluster, seen, LITERAL).reason


def test_a_second_look_at_the_same_load_makes_no_difference() -> None:
    """As where a move is refused, and the loop decides again within its cycle."""
    cluster, snapshot = saddle()
    chosen = gather(TargetOptions(), Later())
    for seen in jittering(snapshot, 4):
        chosen(cluster, seen, Limits())
    assert chosen.memories[snapshot.topology].found is not None
    assert "towards a target" not in chosen(cluster, seen, Limits()).reason


def until_judged(chosen: Remembering) -> LoadSnapshot:
    """Let it find a target; gives the load by which that is judged."""
    cluster, snapshot = saddle()
    *before, last = jittering(snapshot, JUDGED_AFTER + 2)
    for seen in before:
        assert not chosen(cluster, seen, LITERAL).moves
    assert chosen.memories[snapshot.topology].found is not None
    return last


def test_what_gains_too_little_by_later_load_is_dropped_and_not_sought_again_soon() -> None:
    search = Later()
    chosen = gather(TargetOptions(), search)
    last = until_judged(chosen)
    cluster, _ = saddle()
    # Now nothing crosses any more.
    near = Traffic.build(np.array([0, 1]), np.array([2, 3]), np.array([10.0, 10.0]))
    for later_s in (0, 1):
        quiet = replace(last, traffic=near, time_s=last.time_s + later_s)
        assert not chosen(cluster, quiet, LITERAL).moves
    assert chosen.memories[last.topology].found is None
    assert len(search.asked) == 2


def test_what_cannot_be_walked_only_now_is_sought_again_at_once() -> None:
    search = Later()
    chosen = gather(TargetOptions(), search)
    last = until_judged(chosen)
    cluster, _ = saddle()
    resting = replace(last, pinned=("moved recently",) * 4)
    assert not chosen(cluster, resting, LITERAL).moves
    assert chosen.memories[last.topology].found is None
    assert len(search.asked) == 2
    chosen(cluster, replace(last, time_s=last.time_s + 1), LITERAL)
    assert len(search.asked) == 3


def test_topologies_do_not_share_a_memory() -> None:
    cluster, snapshot = saddle()
    chosen = gather()
    chosen(cluster, snapshot, Limits())
    other = replace(snapshot, topology="other", executors=("5-5", "6-6", "7-7", "8-8"))
    assert chosen(cluster, other, Limits()).moves[0].executor in other.executors
    assert chosen(cluster, snapshot, Limits()).moves[0].executor in snapshot.executors


def test_another_goes_on_where_one_has_stopped() -> None:
    cluster, snapshot = saddle()
    other = replace(snapshot, topology="other")

    def search(question: Question) -> Answer:
        assert isinstance(question, TargetQuestion)
        return Answer(None) if question.snapshot is other else question.answer()

    def unasked(question: Question) -> Answer:
        raise AssertionError(question)

    one, another = gather(TargetOptions(), search), gather(TargetOptions(), unasked)
    for world in (snapshot, other):
        one(cluster, world, Limits())
    documents = {topology: encode(memory) for topology, memory in one.memories.items()}
    another.memories = {t: decode(Remembered, document) for t, document in documents.items()}
    assert another.memories == one.memories
    for world in (snapshot, other):
        assert another(cluster, world, Limits()) == one(cluster, world, Limits())


def test_an_answer_is_written_down_to_the_last_bit() -> None:
    target = Target(("1-1", "2-2"), ("b:1", "a:1"), 0.1 + 0.2)
    for answer in (Answer(None), Answer(target)):
        assert decode(Answer, encode(answer)) == answer


def answer_of(searches: SubprocessSearches) -> tuple[tuple[str, Answer], ...]:
    give_up_s = time.monotonic() + 120
    while not (answers := searches.take_answers()):
        assert time.monotonic() < give_up_s
        time.sleep(0.05)
    return answers


def test_a_process_beside_gives_the_same_answer_and_ends() -> None:
    question = TargetQuestion(*saddle(), Limits(), TargetOptions(), frozenset())
    searches = SubprocessSearches()
    assert searches.take_answers() == ()
    # The second is left out: one search a topology.
    searches.begin([question, replace(question, limits=LITERAL)])
    ((topology, begun_s),) = searches.begun_s
    assert topology == question.topology and 0 <= time.monotonic() - begun_s < 60
    ((topology, answer),) = answer_of(searches)
    assert searches.begun_s == ()
    assert (topology, answer) == (question.snapshot.topology, question.answer())
    assert answer.target is not None
    assert searches.take_answers() == ()
    # Ended in the middle: the next one starts at the beginning.
    searches.begin([question])
    searches.close()
    assert searches.take_answers() == ()
    searches.begin([question])
    searches.close()


def test_a_search_runs_nothing_of_the_folder_that_it_is_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "controller"
    planted.mkdir()
    (planted / "__init__.py").touch()
    (planted / "searching.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    question = TargetQuestion(*saddle(), Limits(), TargetOptions(), frozenset())
    searches = SubprocessSearches()
    searches.begin([question])
    ((_, answer),) = answer_of(searches)
    assert answer.target is not None


def test_a_search_that_fails_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    searches = SubprocessSearches()
    question = TargetQuestion(*saddle(), Limits(), TargetOptions(), frozenset())
    searches.begin([question])
    assert answer_of(searches) == ((question.snapshot.topology, Answer(None)),)


def test_a_search_that_takes_too_long_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = SubprocessSearches()
    question = TargetQuestion(*saddle(), Limits(), TargetOptions(), frozenset())
    searches.begin([question])
    (running,) = searches._running.values()
    os.kill(running.process.pid, signal.SIGSTOP)
    assert searches.take_answers() == ()
    begun_s = running.begun_s
    monkeypatch.setattr(time, "monotonic", lambda: begun_s + SEARCH_LIMIT_S + 1)
    answers = searches.take_answers()
    monkeypatch.undo()
    running.process.wait(10)
    answers = answers or searches.take_answers()
    assert answers == ((question.snapshot.topology, Answer(None)),)


def test_searches_take_half_the_cores_at_most_and_only_what_nobody_else_wants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each topology had a process of its own, at the priority of the service."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    searches = SubprocessSearches()
    cluster, snapshot = saddle()
    asked = [
        TargetQuestion(
            cluster, replace(snapshot, topology=str(n)), Limits(), TargetOptions(), frozenset()
        )
        for n in range(5)
    ]
    with closing(searches):
        searches.begin(asked)
        pids = [one.process.pid for one in searches._running.values()]
        assert len(pids) == 2
        give_up_s = time.monotonic() + 60
        # One that has ended keeps its priority until the answers are taken.
        while not all(os.getpriority(os.PRIO_PROCESS, pid) == 19 for pid in pids):
            assert time.monotonic() < give_up_s
            time.sleep(0.005)
        searches.begin(asked)
        assert len(searches._running) == 2
