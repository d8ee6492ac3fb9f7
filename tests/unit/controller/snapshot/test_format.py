"""The snapshot format is read strictly, and a refusal names the field."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from controller.errors import SnapshotError
from controller.policies.profiles import Cost, Machine, Profile
from controller.snapshot import Grouping, parse, parse_with_profiles

PAGE = (Path(__file__).parents[4] / "docs" / "snapshot.md").read_text()
HAND_GRAPH = Path(__file__).parents[3] / "golden" / "decide" / "hand_graph.json"
QUANTITY = "must be a number of at least 0 and at most 1e+15, is "
Break = Callable[[dict[str, Any]], object]


def broken(change: Break) -> str:
    document = json.loads(HAND_GRAPH.read_text())
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda d: d["executors"][1].update(worker="n9:1"),
            'executors[1].worker: unknown worker "',
        ),
        (lambda d: d["executors"][1].update(component="x"), "executors[1].component: unknown comp"),
        (lambda d: d["executors"][1].pop("worker"), "executors[1].worker: must be"),
        (lambda d: d["executors"][1].update(id="0-0"), 'executors[1].id: "0-0" is given twice'),
        (lambda d: d["executors"][1].update(cpu=-0.1), f"executors[1].cpu: {QUANTITY}-0.1"),
        (lambda d: d["executors"][1].update(cpu=float("nan")), f"executors[1].cpu: {QUANTITY}NaN"),
        (lambda d: d["executors"][1].update(cpu=True), "executors[1].cpu: must be a number"),
        (lambda d: d["executors"][1].update(queue=None), "executors[1].queue: must be a number"),
        (lambda d: d["executors"][1].update(pinned=7), "executors[1].pinned: must be"),
        (lambda d: d["executors"].clear(), "executors: must be a list that is not empty"),
        (lambda d: d["workers"][0].pop("node"), "workers[0].node: must be"),
        (lambda d: d["workers"][0].update(node="n7"), 'workers[0].node: unknown node "n7"'),
        (
            lambda d: d["workers"][0].update(cpu_capacity=0),
            "workers[0].cpu_capacity: must be a number of at least 1e-15",
        ),
        (lambda d: d["workers"][0].update(cpu_capacity=1e-300), "workers[0].cpu_capacity: must be"),
        (
            lambda d: d["executors"][1].update(id="\ud800"),
            r'executors[1].id: half a character, as in "\ud800", is no text',
        ),
        (lambda d: d.update(topology="a\udfff"), "topology: half a character, as in"),
        (lambda d: d["workers"][1].update(id="n0:6700"), 'workers[1].id: "n0:6700" is given twice'),
        (lambda d: d["nodes"][1].update(id="n0"), 'nodes[1].id: "n0" is given twice'),
        (lambda d: d["nodes"].append("n3"), "nodes[2]: must be an object"),
        (lambda d: d.pop("traffic"), "traffic: must be a list"),
        (lambda d: d["traffic"][2].__setitem__(0, "9-9"), 'traffic[2]: unknown executor "9-9"'),
        (lambda d: d["traffic"][2].__setitem__(2, -1), f"traffic[2][2]: {QUANTITY}-1"),
        (lambda d: d["traffic"][2].pop(), "traffic[2]: must be [from, to"),
        (lambda d: d["traffic"].append(d["traffic"][0]), "traffic[6]: 0-0 to 1-1 is given twice"),
        (
            lambda d: d["components"][0].update(kind="bolts"),
            'components[0].kind: must be one of bolt, spout, system, is "bolts", did you mean bo',
        ),
        (lambda d: d["components"][0].update(parallelism=0), "components[0].parallelism: must be"),
        (
            lambda d: d["edges"].append({"from": "x", "to": "bolt", "grouping": "all"}),
            "edges[0].from: unknown component",
        ),
        (lambda d: d.update(time_s="now"), "time_s: must be a number"),
        (lambda d: d.pop("topology"), "topology: must be"),
        (lambda d: d.update(toplogy="wc"), "toplogy: unknown key, did you mean topology?"),
        (lambda d: d.update(comment="x" * 9), "comment: unknown key, "),
        (lambda d: d["executors"][1].update(cpu_cores=1), "executors[1].cpu_cores: unknown key, "),
        (lambda d: d["workers"][1].update(capacity=1), "workers[1].capacity: unknown key, did you"),
        (lambda d: d["nodes"][1].update(speed=1), "nodes[1].speed: unknown key, did you mean spe"),
        (
            lambda d: d["components"][0].update(profile={"selectivty": 2}),
            "components[0].profile.selectivty: unknown key, did you mean selectivity?",
        ),
        (
            lambda d: d["components"][0].update(profile={"costs": [{"overheads": 1}]}),
            "components[0].profile.costs[0].overheads: unknown key, did you mean overhead?",
        ),
        (
            lambda d: d["edges"].append({"from": "bolt", "to": "bolt", "grouping": "shufle"}),
            "edges[0].grouping: must be one of all, custom_object, custom_serialized, direct, "
            'fields, global, local_or_shuffle, none, shuffle, is "shufle", did you mean shuffle?',
        ),
        (
            lambda d: d["executors"][1].update(cpu=10**400),
            f"executors[1].cpu: {QUANTITY}1000",
        ),
        (lambda d: d["traffic"][2].__setitem__(2, 1e300), f"traffic[2][2]: {QUANTITY}1e+300"),
        (lambda d: d["traffic"][2].append(-1), f"traffic[2][3]: {QUANTITY}-1"),
        (lambda d: d["traffic"][2].append(None), f"traffic[2][3]: {QUANTITY}null"),
    ],
)
def test_a_refusal_names_the_field(change: Break, message: str) -> None:
    with pytest.raises(SnapshotError) as error:
        parse(broken(change))
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("once", "instead", "path"),
    [
        ('"traffic": [', '"traffic": [], "traffic": [', "traffic"),
        ('{"id": "n1"', '{"id": "n0", "id": "n1"', "nodes[1].id"),
        ('"kind": "bolt"', '"kind": "spout", "kind": "bolt"', "components[0].kind"),
        (
            '"kind": "bolt"',
            '"profile": {"costs": [], "costs": 0}, "kind": "bolt"',
            "components[0].profile.costs",
        ),
        ('"kind": "bolt"', '"nonsense": {"a": 1, "a": 1}', "components[0].nonsense.a"),
    ],
)
def test_a_key_that_stands_twice_is_refused(once: str, instead: str, path: str) -> None:
    text = json.dumps(json.loads(HAND_GRAPH.read_text()))
    assert text.count(once)
    with pytest.raises(SnapshotError) as error:
        parse(text.replace(once, instead, 1))
    assert str(error.value).startswith(path)
    assert str(error.value) == f"{path}: is given twice"


def test_an_id_may_have_any_number_of_digits() -> None:
    most = "9" * 5000

    def rename(document: dict[str, Any]) -> None:
        for row, name in zip(document["nodes"], (f"{most}8", "01"), strict=False):
            row["id"] = name
        for row in document["workers"]:
            row["node"] = f"{most}8" if row["node"] == "n0" else "01"
        document["executors"][0]["id"] = most
        document["executors"][1]["id"] = f"1{most}"
        document["traffic"] = [[most, f"1{most}", 8.0]]

    cluster, snapshot = parse(broken(rename))
    assert cluster.nodes == ("01", f"{most}8")
    assert snapshot.executors == ("2-2", "3-3", "4-4", "5-5", most, f"1{most}")


@pytest.mark.parametrize("text", ["", "{", "[]", "7", pytest.param("[" * 100_000, id="deep")])
def test_what_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(SnapshotError, match="JSON"):
        parse(text)


@pytest.mark.parametrize("grouping", get_args(Grouping))
def test_every_grouping_of_storm_is_known(grouping: str) -> None:
    def add(document: dict[str, Any]) -> None:
        document["edges"] = [{"from": "bolt", "to": "bolt", "grouping": grouping}]

    assert [edge.grouping for edge in parse(broken(add))[1].edges] == [grouping]


def test_the_example_of_the_page_is_read() -> None:
    example = PAGE.split("```json\n")[1].split("```")[0]
    cluster, snapshot = parse(example)
    assert (cluster.workers, snapshot.executors) == (("n0:6700", "n1:6700"), ("1-1", "2-2"))


def test_everything_is_in_natural_order() -> None:
    def rename(document: dict[str, Any]) -> None:
        document["executors"][0]["id"] = "10-10"
        document["traffic"] = [["10-10", "1-1", 8.0]]

    _, snapshot = parse(broken(rename))
    assert snapshot.executors == ("1-1", "2-2", "3-3", "4-4", "5-5", "10-10")
    assert (snapshot.traffic.source.tolist(), snapshot.traffic.target.tolist()) == ([5], [0])


def test_a_pair_may_have_the_size_of_its_tuples() -> None:
    rows = [["3-3", "1-1", 8.0, 512], ["1-1", "2-2", 0, 64.5], ["1-1", "3-3", 2.0]]
    _, snapshot = parse(broken(lambda document: document.update(traffic=rows)))
    traffic = snapshot.traffic
    ends = [(traffic.source[p], traffic.target[p]) for p in range(len(traffic.tps))]
    names = [(snapshot.executors[source], snapshot.executors[target]) for source, target in ends]
    assert names == [("1-1", "3-3"), ("3-3", "1-1")]
    assert traffic.size_bytes is not None
    assert traffic.size_bytes.tolist() == pytest.approx([np.nan, 512.0], nan_ok=True)
    assert parse(HAND_GRAPH.read_text())[1].traffic.size_bytes is None


def test_the_keys_that_only_some_policies_need_are_read_apart() -> None:
    def change(document: dict[str, Any]) -> None:
        document["rate"] = 50
        document["nodes"][0].update(type="i5", speed_hz=2e9)
        costs = [{"machine": "i5", "ms_per_tuple": 0.5, "overhead": 0.25}]
        document["components"][0]["profile"] = {"selectivity": 2, "costs": costs}

    name = json.loads(HAND_GRAPH.read_text())["components"][0]["id"]
    *_, found = parse_with_profiles(broken(change))
    assert found.rate_tps == 50
    assert found.machines == {"n0": Machine("i5", 2e9), "n1": Machine()}
    assert found.components == {name: Profile(2.0, costs=(Cost("i5", 0.5, 0.25),))}
    *_, without = parse_with_profiles(HAND_GRAPH.read_text())
    assert without.components == {}
    assert without.rate_tps is None
    with pytest.raises(SnapshotError, match="rate: must be"):
        parse_with_profiles(broken(lambda d: d.update(rate=-1)))
