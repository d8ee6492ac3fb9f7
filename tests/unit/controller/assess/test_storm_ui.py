"""Storm's UI is read as its sources write it, and what it does not show is assumed by name."""

import json
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from controller.assess.storm_ui import Made, fetch, look, snapshots, stays_of
from controller.cli.main import app
from controller.errors import CommandError
from controller.snapshot import parse
from tests.storm_ui import ANSWERS, COMPONENTS, ID, component, executor, got, served, subscribed


def get(answers: dict[str, Any] = ANSWERS) -> Any:
    def found(url: str, path: str, kind: Any) -> Any:
        text = msgspec.json.encode(answers[path.partition("?")[0]])
        return msgspec.json.decode(text, type=kind, strict=False)

    return found


def made(answers: dict[str, Any] = ANSWERS, **stay: Any) -> list[Made]:
    shown, cores, _ = look("http://ui", get(answers))
    return list(snapshots(shown, cores, stay))


def with_components(**changed: Any) -> dict[str, Any]:
    named = {f"topology/{ID}/component/{name}": one for name, one in changed.items()}
    return {**ANSWERS, **named}


def traffic(one: Made) -> dict[tuple[str, str], float]:
    return {(source, target): tps for source, target, tps in one.document["traffic"]}


def test_a_topology_becomes_a_snapshot_that_can_be_decided_about() -> None:
    (one,) = made()
    # The silent spout sends nothing; each bolt has half of what the other one sent.
    wanted = {("1-1", "3-3"): 500, ("1-1", "4-4"): 500, ("3-3", "5-5"): 500, ("4-4", "5-5"): 500}
    assert traffic(one) == wanted
    assert one.split_frac == 0.5  # the sink has one executor
    cluster, snapshot = parse(msgspec.json.encode(one.document).decode())
    assert (cluster.nodes, cluster.workers) == (("a", "b"), ("a:6700", "b:6700"))
    assert cluster.unit_cores.tolist() == [2.0, 2.0]
    assert snapshot.executors == ("1-1", "2-2", "3-3", "4-4", "5-5", "6-6")
    assert snapshot.cpu_cores.tolist() == [0, 0, 0.3, 0.3, 0.1, 0]
    assert snapshot.pinned == (None,) * 5 + ("system component",)
    assert {edge.grouping for edge in snapshot.edges} == {"shuffle", "fields"}


def test_what_prefers_local_tasks_is_split_over_those() -> None:
    bolts = [executor(3, "a", 0, 100), executor(4, "b", 0, 500)]
    changed = with_components(work=component("bolt", bolts, [got("source", 600_000)]))
    drawn = {"work": {":inputs": [subscribed("source", "local_or_shuffle")]}}
    (one,) = made({**changed, f"topology/{ID}/visualization": drawn})
    assert traffic(one)["1-1", "3-3"] == 1000
    assert ("1-1", "4-4") not in traffic(one)


def test_executors_that_are_younger_than_the_window_have_sent_in_less_time() -> None:
    young = [executor(5, "a", 0, 600_000, uptimeSeconds=60)]
    (one,) = made(with_components(sink=component("bolt", young, [got("work", 600_000)])))
    assert traffic(one)["3-3", "5-5"] == 5000


def test_what_another_topology_uses_is_not_there_to_be_filled() -> None:
    other = "other-3-1700000002"
    page = {"spouts": [], "bolts": [{"boltId": "work"}]}
    topologies = [*ANSWERS["topology/summary"]["topologies"], {"id": other, "name": "other"}]
    answers = {
        **ANSWERS,
        "topology/summary": {"topologies": topologies},
        f"topology/{other}": page,
        f"topology/{other}/visualization": {},
        f"topology/{other}/component/work": COMPONENTS["work"],
    }
    first, _ = made(answers)
    assert [node["cpu_others"] for node in first.document["nodes"]] == [0.0, 0.6]


def test_what_stays_is_named_by_what_is_known_of_it() -> None:
    stay = stays_of(
        '[{"name": "shop", "components": [{"component": "work", "way": "stays", "why": "holds x"},'
        ' {"component": "sink", "way": "carry", "why": "keeps nothing"}]}]'
    )
    (one,) = made(**stay)
    pinned = {row["component"]: row["pinned"] for row in one.document["executors"]}
    wanted = {"source": None, "work": "holds x", "sink": None, "__eventlogger": "system component"}
    assert pinned == wanted
    assert not any("check-topology" in line for line in one.assumed)
    with pytest.raises(CommandError, match="not what `nstorm check-topology"):
        stays_of('{"name": 1}')


def test_nothing_of_trident_moves() -> None:
    page = {"spouts": [{"spoutId": "source"}], "bolts": [{"boltId": "$mastercoord-bg0"}]}
    changed = with_components(**{"%24mastercoord-bg0": component("bolt", [executor(7, "a", 0, 0)])})
    (one,) = made({**changed, f"topology/{ID}": page})
    assert {row["pinned"] for row in one.document["executors"]} == {"Trident"}


def test_a_locale_with_a_comma_is_read() -> None:
    bolts = [executor(3, "a", 0, 100, capacity="0,300"), executor(4, "b", 0, 500)]
    (one,) = made(with_components(work=component("bolt", bolts, [got("source", 600_000)])))
    assert [row["cpu"] for row in one.document["executors"]][2] == 0.3


def test_a_topology_that_has_gone_since_it_was_listed_ends_nothing() -> None:
    gone = {"id": "gone-3-1700000002", "name": "gone", "status": "ACTIVE"}
    topologies = [gone, *ANSWERS["topology/summary"]["topologies"]]
    answers = {**ANSWERS, "topology/summary": {"topologies": topologies}}
    with served(answers) as url:
        for words in ([], ["--topology", "shop"]):
            result = CliRunner().invoke(app, ["assess", url, "-o", "json", *words])
            (found,) = json.loads(result.stdout)
            assert found["topology"] == ID
            assert "gone-3-1700000002?window=600&sys=true: answers 404" in result.stderr
            free = "The CPU that gone-3-1700000002 uses counts as free: it cannot be read."
            assert free in found["evidence"]["assumed"]
        for words in (["--topology", "gone"], []):
            result = CliRunner().invoke(app, ["assess", url, *words])
            assert "answers 404" in str(result.exception)
            del topologies[1:]  # then it is the only one


@pytest.mark.parametrize("some", [0, 2])
def test_a_host_of_which_no_cpu_is_shown_has_storms_default(some: int) -> None:
    none = [{"host": "a", "totalCpu": 0.0}, {"host": "b"}]
    (one,) = made({**ANSWERS, "supervisor/summary": {"supervisors": none[:some]}})
    assert {node["cpu_capacity"] for node in one.document["nodes"]} == {4.0}
    assert "The CPU of a, b is not shown: 4 cores each." in one.assumed


@pytest.mark.parametrize(
    ("answers", "refused"),
    [
        ({}, "answers 404 Not Found"),
        ({"supervisor/summary": b"<html>"}, "not an answer of the UI of Storm 2"),
        ({"supervisor/summary": [1]}, "not an answer of the UI of Storm 2"),
        ({"supervisor/summary": {"supervisors": [{"id": 1}]}}, "missing required field `host`"),
    ],
    ids=["nothing", "no JSON", "a list", "a field less"],
)
def test_who_is_no_ui_is_refused_by_the_url(answers: dict[str, Any], refused: str) -> None:
    with served(answers) as url, pytest.raises(CommandError) as error:
        look(url)
    assert str(error.value).startswith(f"{url}/api/v1/supervisor/summary: ")
    assert refused in str(error.value)


@pytest.mark.parametrize("url", ["http://", "ui://a:b", "http://127.0.0.1:1", "http://a b:80"])
def test_where_nobody_answers_one_sentence_is_printed(url: str) -> None:
    with pytest.raises(CommandError) as error:
        look(url, fetch)
    assert str(error.value).startswith(url)
    assert "\n" not in str(error.value)
