"""Whatever stands where in a file of a person: it is read, or refused in one line with its path."""

import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.errors import SnapshotError
from controller.snapshot import parse
from deploy.sim import ScenarioError, scenario

GOLDEN = Path(__file__).parents[2] / "golden"
SNAPSHOT = json.loads((GOLDEN / "decide" / "hand_graph.json").read_text()) | {
    "edges": [{"from": "bolt", "to": "bolt", "grouping": "all"}]
}
SNAPSHOT["components"][0]["profile"] = {
    "selectivity": 1,
    "performance": [{"threads": 1, "rate": 1, "cpu": 1, "memory": 1}],
    "costs": [{"machine": "x", "ms_per_tuple": 1, "overhead": 0}],
}
SCENARIO = {
    "title": "a title",
    "seconds": 60,
    "workload": {"name": "chain", "sizes": [1, 2]},
    "cluster": {"nodes": 2},
    "feed": {"rate_tps": 10.5},
    "redeploy": {"executors": 2},
    "controller": {"policy": "gather"},
    "runs": {"a": {"cluster": {"cores": 2}}, "b": {"system": "storm"}},
    "events": ["at 3: keys"],
    "expect": ["a.x < 3"],
    "figures": ["a.x is 3 in b"],
    "baseline": "a",
}
KEYS = st.sampled_from(["x", "", "a.b", "\u00e9", "\ud800", "a\nb", "`", "[0]", "$"])
SCALARS = st.sampled_from(
    [None, True, -1, 0, 1.5, 1e-300, 10**400, math.nan, math.inf, "", "x", "\ud800", "a\nb", "`$.x"]
)
VALUES = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(KEYS, SCALARS, max_size=2)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Give each object or list with each of its keys."""
    if isinstance(value, dict | list):
        for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield value, key
            yield from places(item)


@st.composite
def spoilt(draw: st.DrawFn, whole: dict[str, Any]) -> dict[str, Any]:
    """Put something else, something more or nothing into one or two places."""
    document = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 2))):
        found = list(places(document))
        if found:
            parent, key = draw(st.sampled_from(found))
            match draw(st.sampled_from(["else", "else", "more", "nothing"])):
                case "nothing":
                    del parent[key]
                case "more" if isinstance(parent, dict):
                    parent[draw(KEYS)] = draw(VALUES)
                case _:
                    parent[key] = draw(VALUES)
    return document


@given(spoilt(SNAPSHOT))
@settings(max_examples=300)
def test_a_snapshot_is_read_or_refused(document: dict[str, Any]) -> None:
    try:
        parse(json.dumps(document))
    except SnapshotError as error:
        assert ": " in str(error)
        assert "\n" not in str(error)


@given(spoilt(SCENARIO))
@settings(max_examples=200)
def test_a_scenario_is_read_or_refused(document: dict[str, Any]) -> None:
    try:
        scenario.parse(yaml.safe_dump(document))
    except ScenarioError as error:
        assert ": " in str(error)
        assert "\n" not in str(error)
