"""A sweep searches where there is time for it, and names what that leaves out."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from controller.config import build
from controller.policies.gather.goal import Answer
from controller.policies.gather.question import TargetQuestion
from controller.replay.recording import Span
from controller.tune import searches
from controller.tune.chunks import DAY_S, unpack
from controller.tune.searches import TopologyCost, left_out, rehearse, searched
from controller.tune.space import ParameterSet, Space, parameter_sets
from controller.tune.spark import cores_of
from tests.tuned_world import three_that_go_together

SMALL, LARGE = TopologyCost("a-1", 10, 20.0, 100.0), TopologyCost("b-1", 1000, 300.0, 90_000.0)


def sets(*policies: str) -> list[ParameterSet]:
    return parameter_sets(Space({"policy": policies, "load.high": (0.7, 0.8)}), build({}).keys)


def larger(span: Span) -> Span:
    """Another topology, with one more executor that nobody talks to."""
    first = replace(
        span.first,
        topology="big-1-7",
        executors=(*span.first.executors, "8-8"),
        component_of=(*span.first.component_of, "bolt"),
        place=np.append(span.first.place, 0),
        cpu_cores=np.append(span.first.cpu_cores, 0.1),
        queue=np.append(span.first.queue, 0.0),
        pinned=(*span.first.pinned, None),
    )
    cpu_cores = np.hstack([span.cpu_cores, span.cpu_cores[:, :1]])
    return replace(span, first=first, place=np.append(span.place, 0), cpu_cores=cpu_cores)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topologies of the searches that are made."""
    found: list[str] = []
    answer = TargetQuestion.answer

    def noted(question: TargetQuestion) -> Answer:
        if question.topology:  # the compiler's has no name
            found.append(question.topology)
        return answer(question)

    monkeypatch.setattr(TargetQuestion, "answer", noted)
    return found


def test_it_searches_for_as_many_topologies_as_there_is_time_for() -> None:
    assert searched([SMALL, LARGE], 2) == {"a-1"}
    assert left_out([SMALL, LARGE], 2) == [
        "In 1 topology with 1000 executors it also searches for placements. All sets together "
        "would need 1,500 minutes of CPU or more for that; a sweep may take 20."
    ]
    assert searched([SMALL, LARGE], 200) == {"a-1", "b-1"}
    assert left_out([SMALL, LARGE], 200) == []
    # What is decided without searches takes the time first.
    long = replace(SMALL, decide_s=1150.0)
    assert searched([long], 2) == frozenset()
    assert left_out([long, LARGE], 1)[0].startswith("In 2 topologies with 1010 executors it")
    # What never asks takes nothing.
    assert searched([replace(LARGE, search_s=0.0)], 1) == {"b-1"}


def test_a_set_of_every_policy_shows_what_all_sets_need(tmp_path: Path, asked: list[str]) -> None:
    chunks = unpack([three_that_go_together(300)], tmp_path)
    (cost,) = rehearse(chunks, sets("gather", "otd"), 1)
    assert (cost.topology, cost.executors) == ("wc-1-7", 7)
    assert cost.decide_s > 0
    assert len(asked) > 2
    (alone,) = rehearse(chunks, sets("gather"), 1)
    # The one set of today and two of gather, by one trial of three.
    assert 0.3 < alone.search_s / cost.search_s < 3
    (none,) = rehearse(chunks, sets("otd")[1:], 1)
    assert none.search_s == 0
    assert searched([cost], 1) == {"wc-1-7"}


def test_no_more_is_searched_than_shows_that_there_is_no_time(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searches, "MOST_S", 1e-6)
    small = three_that_go_together(300)
    costs = rehearse(unpack([larger(small), small], tmp_path), sets("gather"), 1)
    assert [cost.topology for cost in costs] == ["wc-1-7", "big-1-7"]
    assert asked == ["wc-1-7"]
    # The others count as much a search as the one that was made.
    assert 0 < costs[0].search_s < costs[1].search_s * 3
    assert searched(costs, 1) == frozenset()


def test_one_day_shows_what_all_days_need(tmp_path: Path, asked: list[str]) -> None:
    load = three_that_go_together(60)
    days = [replace(load, time_s=load.time_s + day * DAY_S) for day in range(4)]
    for name in "ab":
        (tmp_path / name).mkdir()
    (one,) = rehearse(unpack(days[:1], tmp_path / "a"), sets("gather"), 1)
    once = len(asked)
    (four,) = rehearse(unpack(days, tmp_path / "b"), sets("gather"), 1)
    assert len(asked) == 2 * once
    assert 1.5 < four.search_s / one.search_s < 12


def test_the_cores_of_a_master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 2, 3})
    masters = ("local", "local[1]", "local[2,4]", "local[64]", "local[*]", "spark://host:7077")
    assert [cores_of(master) for master in masters] == [1, 1, 2, 4, 4, 4]
