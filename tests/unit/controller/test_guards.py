"""Guards: read, held, breached by a run, which then goes back and pauses the topology."""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from controller.config import Config, Mode, build
from controller.core.controls import Controls, Pause
from controller.core.decision import Outcome
from controller.core.figures import GuardState, SpoutFigures
from controller.core.guards import GuardAnswer, guard_each
from controller.core.runs import TAKEN_BACK
from controller.report import TopologyReport
from controller.storm.queries import Queries, asked, number_of
from migration import ConfigError
from tests.messages import replace
from tests.unit.controller.test_back import ADVISE, AUTO, World, moved

URL, QUERY = "http://prometheus:9090", "sum(lag)"
LAG = build({"guard": [{"query": QUERY, "url": URL, "limit": 100, "secs": 20}]}).guards
P99 = build({"guard": [{"signal": "ack.p99.ms", "limit": 60, "secs": 20}]}).guards


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"signal": "ack.p99.ms"}, "nstorm.guard[0].limit: must be a number"),
        ({"signal": "p99", "limit": 1}, "nstorm.guard[0].signal: must be one of "),
        ({"signal": "failed.tps", "limit": "x"}, "nstorm.guard[0].limit: must be a number"),
        ({"signal": "failed.tps", "limit": 1, "secs": -1}, "nstorm.guard[0].secs: must be"),
        ({"signal": "failed.tps", "limit": 1, "sec": 1}, "nstorm.guard[0].sec: unknown key"),
        ({"limit": 1}, "nstorm.guard[0]: must have either signal or query"),
        ({"signal": "failed.tps", "query": "x", "limit": 1}, "nstorm.guard[0]: must have either"),
        ({"query": "x", "limit": 1}, "nstorm.guard[0].url: must be there with query"),
        ({"query": "x", "limit": 1, "url": "file:///x"}, "nstorm.guard[0].url: must be http(s)"),
        ({"query": "x", "limit": 1, "url": "http://u:p@h"}, "nstorm.guard[0].url: must be http"),
        ({"query": "x", "limit": 1, "url": "http://h:x"}, "nstorm.guard[0].url: must be http"),
    ],
)
def test_what_cannot_be_is_refused_by_key_and_value(row: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        build({"guard": [row]})
    assert str(refused.value).startswith(problem)


def test_a_list_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"nstorm\.guard: must be a list of records"):
        build({"guard": "ack.p99.ms"})


def test_a_guard_counts_for_how_long_it_is_exceeded() -> None:
    above: Any = {}

    def states(now_s: float, p99_ms: float | None) -> tuple[GuardState, float]:
        nonlocal above
        figures = SpoutFigures(1.0, 0.0, 1.0, p99_ms)
        rows, above = guard_each(P99, {"wc-1": ("wc", figures)}, (), above, now_s, cycle_s=5.0)
        (row,) = rows["wc-1"]
        return row.state, row.above_s

    assert states(0, 50) == (GuardState.HOLDS, 0)
    assert states(5, 61) == (GuardState.ABOVE, 0)
    assert states(20, 61) == (GuardState.ABOVE, 15)
    assert states(25, 61) == (GuardState.BREACHED, 20)
    assert states(60, 61) == (GuardState.ABOVE, 0), "nobody has looked meanwhile"
    assert states(65, None) == (GuardState.NOT_READ, 0)
    assert states(70, 61) == (GuardState.ABOVE, 10), "an answer that is missing ends nothing"
    assert states(75, 50) == (GuardState.HOLDS, 0)
    assert states(80, 61) == (GuardState.ABOVE, 0)
    for now_s in range(85, 115, 5):
        assert states(now_s, None) == (GuardState.NOT_READ, 0)
    assert states(115, 61) == (GuardState.ABOVE, 0), "not read for too long"


def test_a_guard_is_breached_where_cycles_are_long_as_well() -> None:
    above: Any = {}
    figures = {"wc-1": ("wc", SpoutFigures(1.0, 0.0, 1.0, 61.0))}
    for now_s in (0.0, 60.0):
        rows, above = guard_each(P99, figures, (), above, now_s, cycle_s=60.0)
    (row,) = rows["wc-1"]
    assert (row.state, row.above_s) == (GuardState.BREACHED, 60)


def test_a_guard_of_another_topology_does_not_count() -> None:
    guards = [replace(P99[0], topology="other")]
    rows, _ = guard_each(guards, {"wc-1": ("wc", SpoutFigures())}, (), {}, 0.0, cycle_s=5.0)
    assert rows == {"wc-1": ()}


class Guarded(World):
    """A world with a lag that a query gives."""

    lag: float | None = 0.0
    held: Controls = Controls()

    def seen(self) -> Any:
        answer = GuardAnswer(self.lag) if self.lag is not None else GuardAnswer(problem="refused")
        answers = ((URL, QUERY, answer),)
        return replace(super().seen(), guard_answers=answers, controls=self.held)

    def cycle(self, config: Config = AUTO) -> TopologyReport:
        report = super().cycle(config)
        if report.felt.pause:
            self.held = Controls(pauses={"wc": Pause(report.felt.pause)})
        return report


AUTO_BY_LAG = Config(mode=Mode.AUTO, guards=LAG)


def test_a_run_that_breaches_a_guard_goes_back_and_the_topology_pauses() -> None:
    world = Guarded()
    world.run(140, ADVISE)
    world.run(20, AUTO_BY_LAG)
    assert moved(world) == [("2-2", "a:1")]
    world.lag = 250.0
    assert world.cycle(AUTO_BY_LAG).outcome is Outcome.PAUSED
    assert len(moved(world)) == 1, "not yet"
    world.run(60, AUTO_BY_LAG)
    assert moved(world)[1:] == [("2-2", "b:1")]
    report = world.run(30, AUTO_BY_LAG)
    effect = report.felt.effect
    assert effect is not None and effect.end == TAKEN_BACK
    assert effect.sentence.startswith("guard sum(lag) is 250, above 100 for 20 s, and may be so")
    assert report.outcome is Outcome.PAUSED
    assert report.reason.startswith("paused: guard sum(lag) is 250, above 100 for 20 s")
    world.lag = 0.0
    assert world.run(60, AUTO_BY_LAG).outcome is Outcome.PAUSED, "until an operator ends it"
    world.held = Controls()
    report = world.run(30, AUTO_BY_LAG)
    assert report.outcome is Outcome.EXCLUDED and not report.felt.pause


@pytest.mark.parametrize(
    ("lag", "reason"),
    [
        (250.0, "guard sum(lag) is 250, above 100 for "),
        (None, "guard sum(lag) cannot be read: refused"),
    ],
)
def test_what_was_exceeded_before_or_cannot_be_read_holds_new_moves(
    lag: float | None, reason: str
) -> None:
    world = Guarded()
    world.lag = lag
    world.run(60, ADVISE)
    report = world.run(60, AUTO_BY_LAG)
    assert moved(world) == []
    assert report.outcome is Outcome.PAUSED and report.reason.startswith(reason)
    assert not report.felt.pause


def test_without_acks_a_limit_of_their_time_cannot_be_read() -> None:
    world = World(acks=False)
    world.run(30, ADVISE)
    report = world.run(30, Config(mode=Mode.AUTO, guards=P99))
    assert report.reason.startswith("guard ack.p99.ms cannot be read: no acks of the spouts")


def vector(*values: str) -> bytes:
    result = [{"metric": {}, "value": [1.7e9, value]} for value in values]
    return json.dumps({"data": {"resultType": "vector", "result": result}}).encode()


@pytest.mark.parametrize(
    ("text", "value", "problem"),
    [
        (vector("12.5"), 12.5, ""),
        (b'{"data": {"resultType": "scalar", "result": [1, "3"]}}', 3.0, ""),
        (vector(), None, "the answer has 0 series, and must have one"),
        (vector("1", "2"), None, "the answer has 2 series, and must have one"),
        (vector("NaN"), None, "the answer is nan, which is no number"),
        (vector("x"), None, "the answer is none of PromQL"),
        (b'{"data": {"resultType": "matrix", "result": []}}', None, "the answer has a matrix"),
        (b"[]", None, "the answer is none of PromQL"),
        (b"\xff", None, "the answer is none of PromQL"),
        (b"[" * 100_000, None, "the answer is none of PromQL"),
    ],
)
def test_an_answer_is_one_number(text: bytes, value: float | None, problem: str) -> None:
    found = number_of(text)
    assert found.value == value
    assert found.problem.startswith(problem)


@contextmanager
def server(code: int, text: bytes) -> Iterator[str]:
    paths = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(code)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{serving.server_port}"
        finally:
            serving.shutdown()
            thread.join()
    assert all(path == "/api/v1/query?query=sum%28lag%29" for path in paths)


def test_a_server_is_asked_over_http() -> None:
    with server(200, vector("7")) as url:
        assert asked(url, QUERY) == GuardAnswer(7.0)
        assert asked(url + "/", QUERY) == GuardAnswer(7.0)
    with server(400, b'{"error": "parse error"}') as url:
        assert asked(url, QUERY).problem == f"{url} answers 400: parse error"
    assert "refused" in asked(url, QUERY).problem


def test_answers_come_from_a_thread_and_a_silent_one_is_a_problem() -> None:
    silent = Queries(())
    assert silent.answers() == ()
    with server(200, vector("7")) as url:
        queries = Queries([replace(LAG[0], url=url)])
        try:
            for _ in range(500):
                ((_, _, answer),) = queries.answers()
                if answer.value is not None:
                    break
                threading.Event().wait(0.02)
            assert answer == GuardAnswer(7.0)
        finally:
            queries.close()
