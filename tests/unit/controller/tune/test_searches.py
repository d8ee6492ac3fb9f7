"""A sweep searches where there is time for it, and names what that leaves out."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from controller.config import build
from controller.core.times import DAY_S
from controller.pipeline.spark import cores_of
from controller.pipeline.stages import episodes, samples
from controller.policies.gather.evaluate import TargetQuestion
from controller.policies.gather.goal import Answer
from controller.replay.recording import Span
from controller.tune import searches
from controller.tune.searches import Searches, TopologyCost, rehearse
from controller.tune.space import ParameterSet, Space, parameter_sets
from tests.tuned_world import laid_out, three_that_go_together

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


def rehearsed(
    spans: Sequence[Span], tables: Path, tried: list[ParameterSet], cores: int = 1
) -> Searches:
    engine, ticks = laid_out(spans, tables)
    return rehearse(samples(engine, episodes(ticks)), tried, cores)


def searches_of(*costs: TopologyCost, cores: int = 2) -> Searches:
    return Searches(costs, sets=201, searching=150, cores=cores)


def test_it_searches_for_as_many_topologies_as_there_is_time_for() -> None:
    found = searches_of(SMALL, LARGE)
    assert (found.topologies, found.again) == (frozenset({"a-1"}), 0)
    assert found.left_out == [
        "In 1 topology with 1000 executors it also searches for placements. All sets together "
        "would need 1,500 minutes of CPU or more for that; a sweep may take 20."
    ]
    found = searches_of(SMALL, LARGE, cores=200)
    assert found.topologies == {"a-1", "b-1"}
    assert not found.again and not found.left_out
    # What is decided without searches takes the time first.
    long = replace(SMALL, decide_s=1150.0)
    assert searches_of(long).topologies == frozenset()
    assert (
        searches_of(long, LARGE, cores=1)
        .left_out[0]
        .startswith("In 2 topologies with 1010 executors it also")
    )
    # What never asks takes nothing.
    assert searches_of(replace(LARGE, search_s=0.0), cores=1).topologies == {"b-1"}


def test_where_there_is_time_for_some_sets_the_best_are_tried_again() -> None:
    found = searches_of(SMALL, replace(LARGE, search_s=6000.0))
    # 1,200 s, less 320 to decide and 100 to search, by 6,100/150 and 320/201 for each of them.
    assert (found.topologies, found.again) == (
        frozenset({"a-1"}),
        int(780 / (6100 / 150 + 320 / 201)),
    )
    assert found.left_out == [
        "In 1 topology with 1000 executors only the 18 parameter sets that are best without "
        "searches are tried with them, and ranked. All sets together would need 100 minutes of CPU "
        "or more for that; a sweep may take 20."
    ]


def test_a_set_of_every_policy_shows_what_all_sets_need(tmp_path: Path, asked: list[str]) -> None:
    load = [three_that_go_together(300)]
    found = rehearsed(load, tmp_path, sets("gather", "otd"))
    (cost,) = found.costs
    assert (found.sets, found.searching) == (5, 3)
    assert (cost.topology, cost.executors) == ("wc-1-7", 7)
    assert cost.decide_s > 0
    assert len(asked) > 2
    (alone,) = rehearsed(load, tmp_path, sets("gather")[:1]).costs
    assert 1 < cost.search_s / alone.search_s < 9  # three times as many search
    none = rehearsed(load, tmp_path, sets("otd")[1:])
    assert (none.costs[0].search_s, none.searching) == (0, 0)
    assert found.topologies == none.topologies == {"wc-1-7"}


def test_no_more_is_searched_than_shows_that_there_is_no_time(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searches, "MOST_S", 1e-6)
    small = three_that_go_together(300)
    found = rehearsed([larger(small), small], tmp_path, sets("gather"))
    assert [cost.topology for cost in found.costs] == ["wc-1-7", "big-1-7"]
    assert asked == ["wc-1-7"]
    # The others count as much a search as the one that was made.
    assert 0 < found.costs[0].search_s < found.costs[1].search_s * 3
    assert (found.topologies, found.again) == (frozenset(), 0)


def test_it_times_no_longer_than_it_takes_to_know(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searches, "TIMED_S", 1e-6)
    found = rehearsed([three_that_go_together(300)], tmp_path, sets("gather"))
    assert len(asked) == 1
    assert found.topologies == {"wc-1-7"}


def test_one_day_shows_what_all_days_need(tmp_path: Path, asked: list[str]) -> None:
    load = three_that_go_together(60)
    days = [replace(load, time_s=load.time_s + day * DAY_S) for day in range(4)]
    (one,) = rehearsed(days[:1], tmp_path / "a", sets("gather")).costs
    once = len(asked)
    (four,) = rehearsed(days, tmp_path / "b", sets("gather")).costs
    assert len(asked) == 2 * once
    assert 1.5 < four.search_s / one.search_s < 12


def test_the_cores_of_a_master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 2, 3})
    masters = ("local", "local[1]", "local[2,4]", "local[64]", "local[*]", "spark://host:7077")
    assert [cores_of(master) for master in masters] == [1, 1, 2, 4, 4, 4]
