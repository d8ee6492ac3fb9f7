"""``nstorm report``: the stage of hours, and the command from a journal to its page."""

import json
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from controller.cli.main import app
from controller.core.cluster import Cluster
from controller.core.times import DAY_S, HOUR_S
from controller.errors import TuneError
from controller.pipeline.fold import Fold
from controller.pipeline.schemas import HOURS
from controller.pipeline.stages import episodes, hours
from controller.pipeline.where import Where
from controller.replay.recording import Ended, PlacementChange
from controller.tune import searches
from controller.tune.searches import Searches, TopologyCost
from controller.weeks.hosts import slow, slow_line, without_each
from controller.weeks.hours import Hours
from migration.model import LATENCY_BUCKETS
from tests.messages import replace as replaced
from tests.recorded_world import Recorded, record, with_spouts
from tests.tuned_world import BEGIN_S, HUBS, TICK_S, laid_out, span

HOUR_TICKS = int(HOUR_S // TICK_S)


def test_an_episode_is_added_up_by_hour(tmp_path: Path) -> None:
    """A guest uses 0.5 cores on b, then on a; another one is busy for three minutes."""
    begin_s = BEGIN_S // HOUR_S * HOUR_S + HOUR_S
    load = span(2 * HOUR_TICKS, [1, 1], lambda tick: [(0, 1, 10.0)], begin_s=begin_s)
    cpu = load.cpu_cores.copy()
    cpu[:, HUBS] = 0.5
    cpu[:24, HUBS + 1] = 2.1  # of two minutes
    cpu[24:36, HUBS + 1] = 3.1  # and one
    timed = np.zeros((2 * HOUR_TICKS, LATENCY_BUCKETS), np.int32)
    timed[:, 22] = 10
    felt = Ended(np.full(len(timed), 4.0), np.full(len(timed), np.nan), timed)
    moved = (PlacementChange(HOUR_TICKS, HUBS, 0, False),)
    load = replace(load, cpu_cores=cpu, ended=felt, shifts=moved)
    pieces = load.rows(0, HOUR_TICKS + 100), load.rows(HOUR_TICKS + 100, 2 * HOUR_TICKS)
    engine, ticks = laid_out(pieces, tmp_path)
    table = engine.rows(hours(engine, episodes(ticks), lambda share: None), HOURS)
    found = Hours.of(table)
    (one,) = found.topologies
    assert (one.name, found.nodes, found.units) == ("wc", ("a", "b"), ("a:1", "b:1"))
    assert found.capacity_cores.tolist() == [4.0, 4.0]
    assert one.seen_s.tolist() == [HOUR_S, HOUR_S]
    assert found.time_s(0) == begin_s
    mean, peak = (np.zeros((2, 2)) for _ in range(2))
    mean[found.unit, found.hour], peak[found.unit, found.hour] = found.cores, found.peak_cores
    # Hubs use 0.2 on each node. The busiest minute has 3.1 cores, and does not count.
    busy = (24 * 2.1 + 12 * 3.1 + (HOUR_TICKS - 36) * 0.1) / HOUR_TICKS
    assert mean == pytest.approx(np.array([[0.2, 0.7], [0.7 + busy, 0.3]]), rel=1e-5)
    assert peak == pytest.approx(np.array([[0.2, 0.7], [2.8, 0.3]]), rel=1e-5)
    assert one.peak_cores == pytest.approx([3.0, 1.0], rel=1e-5)
    assert found.headroom[0] == pytest.approx([4 / 2.8, 4 / 0.7], rel=1e-5)
    assert one.acked.tolist() == [4.0 * HOUR_TICKS] * 2
    assert one.failed.tolist() == [0.0, 0.0]
    assert all(40 < value < 48 for value in one.latency_p50_ms)


def test_a_window_of_an_hour_counts_for_the_hour_that_it_covers(tmp_path: Path) -> None:
    day_s = BEGIN_S // DAY_S * DAY_S
    load = span(24, [1], lambda tick: [(0, 1, 10.0)])
    ends_s = day_s + HOUR_S * np.arange(1, 25, dtype=np.float64)
    cpu = load.cpu_cores * np.where(np.arange(24) == 12, 2.0, 1.0)[:, np.newaxis]
    long = replace(load, time_s=ends_s, span_s=np.full(24, HOUR_S), cpu_cores=cpu)
    engine, ticks = laid_out([long], tmp_path)
    (episode,) = episodes(ticks)
    assert (episode.day, episode.ticks) == (day_s // DAY_S, 24)
    found = Hours.of(engine.rows(hours(engine, [episode], lambda share: None), HOURS))
    assert found.time_s(0) == day_s
    assert found.topologies[0].cores.argmax() == 12


def test_a_unit_has_a_row_of_the_hour_in_which_it_was_there_last(tmp_path: Path) -> None:
    """The guest on b idles in the second hour; then b comes back as c, on the same host."""
    begin_s = BEGIN_S // HOUR_S * HOUR_S + HOUR_S
    load = span(2 * HOUR_TICKS, [1], lambda tick: [(0, 1, 10.0)], begin_s=begin_s)
    cpu = load.cpu_cores.copy()
    cpu[HOUR_TICKS:, 2:] = 0.0
    hosts = {"b": "old", "c": "old"}
    load = replace(load, cpu_cores=cpu, hosts=hosts)
    later = span(HOUR_TICKS, [1], lambda tick: [(0, 1, 10.0)], begin_s=begin_s + 2 * HOUR_S)
    cluster = Cluster.build("ac", [("a:1", "a", 4.0), ("c:1", "c", 4.0)])
    later = replace(later, cluster=cluster, hosts=hosts)
    engine, ticks = laid_out([load, later], tmp_path)
    found = Hours.of(engine.rows(hours(engine, episodes(ticks), lambda share: None), HOURS))
    assert (found.nodes, found.units) == (("a", "old"), ("a:1", "b:1", "c:1"))
    assert found.hour[found.unit == 1].tolist() == [0, 1]
    assert [one.capacity_cores for one in without_each(found)] == [4.0, 4.0]


def test_a_host_that_is_twice_slower_is_found(tmp_path: Path) -> None:
    days = []
    for day in range(4):
        noise = np.random.default_rng(day)
        # Hubs 2 and 3 are on b, and each gets as much as those on a.
        load = span(
            100,
            [],
            lambda tick: [(0, 1, 50.0), (1, 0, 100.0), (0, 2, 100.0), (2, 3, 50.0)],
            begin_s=BEGIN_S + day * 24 * HOUR_S,
        )
        cpu = np.tile([0.2, 0.1, 0.4, 0.2], (100, 1)) * noise.uniform(0.98, 1.02, (100, 4))
        days.append(replace(load, cpu_cores=cpu.astype(np.float32)))
    engine, ticks = laid_out(days, tmp_path)
    found = Hours.of(engine.rows(hours(engine, episodes(ticks), lambda share: None), HOURS))
    (one,) = slow(found)
    assert (one.node, one.days) == ("b", 4)
    assert one.times[0] < 2 < one.times[2] and one.times == pytest.approx((2, 2, 2), rel=0.01)
    assert slow_line(one).startswith("b takes 2 times the CPU of the other hosts for the same")


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def each(tick: int, run: Recorded) -> None:
        if tick == 0:
            seen = run.world.seen
            run.world.seen = lambda: replaced(seen(), loads=with_spouts(seen().loads))  # type: ignore[method-assign]

    monkeypatch.chdir(tmp_path)
    record(tmp_path / "journal", ticks=range(30), each=each)
    return tmp_path / "journal"


def run(*arguments: str) -> Any:
    result = CliRunner().invoke(app, ["report", *arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def test_a_journal_of_minutes_gets_an_answer_to_each_question(journal: Path) -> None:
    document = json.loads(run("journal", "-o", "json").stdout)
    (need,) = document["needs"]
    assert need["topology"] == "wc-1"
    assert "a trend 14 whole days are needed, and the log has 0" in need["verdict"]
    assert need["headroom_factor"] > 1
    assert document["disturbed"] == []
    assert {one["node"] for one in document["hosts"]} == {"host-a", "host-b"}
    (gained,) = document["gained"]
    assert gained["days"][0]["moves"] > 0
    assert gained["gain_frac"] > 0 and gained["interval_frac"] is None
    (moves,) = document["runs"]
    assert moves["moves"] > 0 and moves["verdict"] == "not known"
    page = Path("build/report/report.html").read_text()
    assert re.findall(r'(?:src|href)="', page) == [] and "<script" not in page
    assert page.count("<h2>") == 5 and page.count("<svg") >= 2
    assert moves["effect"].partition("<")[0] in page
    text = run("journal", "--topology", "wc-1").stdout
    assert need["verdict"] in text and gained["verdict"] in text
    assert text.splitlines()[-1] == "written: build/report/report.html"
    with pytest.raises(TuneError, match="the log has no topology x, it has wc-1"):
        run("journal", "--topology", "x")


def test_searches_that_take_long_on_one_core_are_made_on_spark(
    journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    @contextmanager
    def started(where: Where, console: object) -> Iterator[Fold]:
        yield Fold(Path(where.tables))

    def noted(where: Where, console: object) -> AbstractContextManager[Fold]:
        made.append("Spark")
        return started(where, console)

    def rehearsed(samples: Any, sets: Any, cores: int) -> Searches:
        made.append([one.name for one in sets])
        return Searches([TopologyCost("wc-1", 8, 601.0, 0.0)], len(sets), 0, cores)

    monkeypatch.setattr(searches, "rehearse", rehearsed)
    monkeypatch.setattr(searches, "started", noted)
    run("journal")
    # The set without moves searches nothing.
    assert made == [["as today (mode auto)"], "Spark"]
