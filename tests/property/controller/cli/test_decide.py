"""Whatever a snapshot's file holds, `decide` ends in an answer or in one sentence."""

import json
import math
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from controller.cli.main import app
from controller.errors import ControllerError
from controller.output import Output
from controller.policies.options import NAMES

Document = dict[str, Any]
quantities = st.one_of(
    st.sampled_from([0, 5e-324, 1e-300, 1e-15, 1e-9, 1e-3, 0.2, 0.5, 1, 800, 1e15]),
    st.floats(0, 1e15),
)
capacities = st.sampled_from([1e-15, 1e-3, 0.5, 1, 1, 8, 1e15])
ids = st.sampled_from(["1-1", "01", "[bold]", "\u0669", "\u00b2"]) | st.text(min_size=1, max_size=3)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """Draw a small snapshot: odd ids, and quantities from almost nothing to all that may be."""
    component, node = draw(ids), draw(ids)
    workers = draw(st.lists(ids, min_size=1, max_size=3, unique=True))
    executors = draw(st.lists(ids, min_size=1, max_size=4, unique=True))
    ends = st.sampled_from(executors)
    traffic = draw(st.dictionaries(st.tuples(ends, ends), quantities, max_size=6))
    return {
        "topology": draw(ids),
        "time_s": draw(quantities),
        "components": [{"id": component, "parallelism": 2, "kind": "bolt"}],
        "edges": [],
        "nodes": [{"id": node}],
        "workers": [{"id": w, "node": node, "cpu_capacity": draw(capacities)} for w in workers],
        "executors": [
            {
                "id": executor,
                "component": component,
                "worker": draw(st.sampled_from(workers)),
                "cpu": draw(quantities),
                "queue": draw(quantities),
            }
            for executor in executors
        ],
        "traffic": [[*pair, tps] for pair, tps in traffic.items()],
        "rate": draw(quantities),
    }


def two_workers(name: str = "1-1", capacity_cores: float = 1.0) -> Document:
    workers = [("n0:1", "n0", capacity_cores), ("n1:1", "n1", 1.0)]
    rows = [(name, "n0:1"), ("2-2", "n1:1")]
    return {
        "topology": "t",
        "time_s": 1,
        "components": [{"id": "b", "parallelism": 2, "kind": "bolt"}],
        "edges": [],
        "nodes": [{"id": "n0"}, {"id": "n1"}],
        "workers": [{"id": w, "node": n, "cpu_capacity": c} for w, n, c in workers],
        "executors": [
            {"id": e, "component": "b", "worker": w, "cpu": 0.2, "queue": 0} for e, w in rows
        ],
        "traffic": [[name, "2-2", 800.0]],
    }


def is_finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    if isinstance(value, list):
        return all(map(is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


# heterogeneity raises its rate step by step: where a tuple costs next to nothing, for very long.
@settings(max_examples=200)
@example(two_workers("9" * 5000), "gather", Output.TABLE)
@example(two_workers("\ud800"), "gather", Output.JSON)
@example(two_workers("\ud800"), "gather", Output.TABLE)
@example(two_workers(capacity_cores=1e-300), "gather", Output.JSON)
@given(
    documents(),
    st.sampled_from([name for name in NAMES if name != "heterogeneity"]),
    st.sampled_from(Output),
)
def test_a_file_ends_in_an_answer_or_in_one_sentence(
    document: Document, policy: str, output: Output
) -> None:
    command = ["decide", "-", "--policy", policy, "--steps", "3", "-o", output]
    done = CliRunner().invoke(app, command, input=json.dumps(document))
    if done.exception is not None:
        assert isinstance(done.exception, ControllerError), repr(done.exception)
        assert "\n" not in str(done.exception)
        assert done.stdout == ""
    elif output is Output.JSON:
        assert is_finite(json.loads(done.stdout))
