"""Holds the tasks and topologies of 001's experiments.

Performance: 001, section 8.3 and figure 3, in the numbers of the first author's allocation scripts
(github.com/anshuiisc/FullTopoSC-Scripts), which settle where the text contradicts itself. Wiring of
the diamond: the same scripts; of the star: a reading that fits the two rates the text prints.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import networkx as nx  # type: ignore[import-untyped]

from controller.policies.model_driven.mapping import Need
from controller.policies.profiles import Performance


def _table(*rows: tuple[int, float, float, float]) -> tuple[Performance, ...]:
    """Read rows of threads, tuples per second, and CPU and memory in per cent of a slot."""
    return tuple(Performance(n, rate, cpu / 100, memory / 100) for n, rate, cpu, memory in rows)


TASKS: Mapping[str, tuple[Performance, ...]] = MappingProxyType(
    {
        "blob": _table(
            (1, 2, 6.73, 23.92),
            (2, 3, 6.63, 23.98),
            (20, 10, 14.69, 26.3),
            (30, 20, 54.18, 28.74),
            (50, 30, 76.73, 31.38),
        ),
        "table": _table(
            (1, 3, 1.02, 1.15),
            (2, 5, 2.04, 1.15),
            (10, 10, 11.22, 3.45),
            (40, 20, 26.53, 9.2),
            (50, 30, 38.78, 12.64),
            (60, 40, 54.08, 16.09),
        ),
        "xml": _table((1, 310, 84.69, 35.63)),
        "pi": _table((1, 105, 92.35, 2.07), (2, 110, 94.9, 3.53)),
        "file": _table((1, 60_000, 58.27, 11.95), (2, 50_000, 51.84, 2.76)),
    }
)
# One thread each, placed like the others but not in the number of slots needed.
SOURCE, SINK = Need(0.1, 0.15), Need(0.1, 0.2)


def _graph(edges: Iterable[tuple[str, str]]) -> Any:
    graph = nx.DiGraph()
    graph.add_edges_from(edges)
    return graph


def linear() -> Any:
    """Build the linear micro-topology: five tasks in a row; all selectivities are 1."""
    row = ("source", "blob", "table", "xml", "pi", "file", "sink")
    return _graph(pairwise(row))


def diamond() -> Any:
    """Build the diamond micro-topology: four tasks side by side into Pi, at 4 times the rate."""
    side_by_side = ("blob", "table", "xml", "file")
    into = [("source", task) for task in side_by_side]
    return _graph([*into, *((task, "pi") for task in side_by_side), ("pi", "sink")])


def star() -> Any:
    """Build the star micro-topology: two tasks into a hub and two out of it.

    Which task is the hub is not in the text. Blob and Table at the rate itself and the others at
    twice the rate are the only ones that fit its rates 240 and 480.
    """
    sides = [("source", "blob"), ("source", "table"), ("blob", "xml"), ("table", "xml")]
    return _graph([*sides, ("xml", "pi"), ("xml", "file"), ("pi", "sink"), ("file", "sink")])
