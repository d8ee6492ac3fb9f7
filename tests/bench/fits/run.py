"""Runs cases and random worlds, with Storm's placement left alone and with a policy."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

from controller.config import build
from deploy.sim.engine import run
from deploy.sim.fits import fits
from deploy.sim.report import ScenarioReport, measure, simulate_all
from deploy.sim.scenario import Scenario, parse
from tests.bench.fits.best import best_bears_x
from tests.bench.fits.worlds import SHAPES, RandomWorld, decided_by, random_world
from tests.bench.frame import table

CASES = sorted((Path(__file__).parent / "cases").glob("*.txt"))
# The least share of what Storm's placement carries that a policy may leave.
LEAST = 0.98
# Ratios of rooms differ in their last digits.
SAME = 1e-6
# What a policy leaves of each resource, relative to Storm's placement (`deploy.sim.fits`).
ROOMS = {"CPU": "room_cpu_x", "fullest direction of a link": "room_link_x", "heap": "room_heap_x"}


def cases(policy: str, tell: Callable[[str], None]) -> dict[str, ScenarioReport]:
    """Run each case; gives the reports by the cases' names."""
    found = {}
    for file in CASES:
        tell(file.stem)
        found[file.stem] = simulate_all(_decided_by(parse(file.read_text()), policy))
    return found


def expectations(reports: Mapping[str, ScenarioReport]) -> Iterator[dict[str, Any]]:
    """Make a row for each expectation of each case."""
    for case, report in reports.items():
        for one in report.comparisons:
            yield {
                "case": case,
                "right": one.text,
                "left": round(one.left, 4),
                "than": round(one.right, 4),
                "holds": one.holds,
            }


def rooms_of_cases(reports: Mapping[str, ScenarioReport]) -> Iterator[dict[str, Any]]:
    """Make a row for each case."""
    for case, report in reports.items():
        found = {
            name: report.measures.get(f"policy.{name}") for name in ("room_x", *ROOMS.values())
        }
        rounded = {name: None if x is None else round(x, 3) for name, x in found.items()}
        yield {"case": case, **rounded, "jvms_dead": int(report.measures["policy.jvms_dead"])}


def _decided_by(scenario: Scenario, policy: str) -> Scenario:
    runs = tuple(
        setting
        if setting.controller is None
        else replace(setting, controller=replace(setting.controller, policy=policy))
        for setting in scenario.runs
    )
    return replace(scenario, runs=runs)


def worlds(
    count: int, seed: int, policy: str, tell: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """Run random worlds; gives a row for each."""
    for number in range(1, count + 1):
        row = _measured(random_world(seed, number), policy)
        tell(f"{number} of {count}: carried {row['carried_x']}, room {row['room_x']}")
        yield {"world": number, **row}


def _measured(world: RandomWorld, policy: str) -> dict[str, Any]:
    begin_s = time.process_time()
    still, decided = world.setting, decided_by(world.setting, build({"policy": policy}))
    alone, ours = run(still, 1), run(decided, 1)
    storms, found = dict(fits(still, alone, alone)), dict(fits(decided, ours, alone))
    moved = measure(decided, ours, None)
    row: dict[str, Any] = {
        "shape": world.shape,
        "topologies": 1 + len(still.others),
        "nodes": still.hardware.nodes,
        "used": round(world.used_frac, 2),
        "binds": _binds(storms),
        "storms_share": storms["share"],
    }
    names = ("share", "carried_x", "carried_x_worst", "room_x", *ROOMS.values(), "cpu_x")
    for name in names:
        row[name] = found.get(name)
    row = {name: round(x, 3) if isinstance(x, float) else x for name, x in row.items()}
    row["best_x"] = round(best_bears_x(still), 3) if world.shape == "saturated" else None
    counts = {name: int(moved[name]) for name in ("moves", "returns")}
    counts["jvms_dead"] = int(found["jvms_dead"])
    return {**row, **counts, "cpu_s": round(time.process_time() - begin_s, 1)}


def _binds(storms: dict[str, float]) -> str:
    """Name the resource that Storm's placement has the least room of."""
    rooms = {name: storms.get(f"room_{name}") for name in ("cpu", "thread", "link")}
    known = {name: factor for name, factor in rooms.items() if factor is not None}
    return min(known, key=lambda name: known[name])


def summary(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Sum up the worlds by shape, those where the processors or a link bind, and all.

    Left out are those where Storm's placement carries nothing of a topology: nothing is relative to
    that.
    """
    rows = [row for row in rows if row["carried_x"] is not None]
    groups: dict[str, list[dict[str, Any]]] = {
        shape: [r for r in rows if r["shape"] == shape] for shape in SHAPES
    }
    bound = [r for r in groups["saturated"] if r["binds"] != "thread"]
    for name, some in {**groups, "cpu or link binds": bound, "all": list(rows)}.items():
        if some:
            yield {"worlds": name, **_summed(some)}


def rooms(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Sum up by resource what the policy left, over the worlds where something uses it."""
    for resource, name in ROOMS.items():
        found = [row[name] for row in rows if row[name] is not None]
        if found:
            yield {
                "room against Storm's": resource,
                "worlds": len(found),
                "median": round(median(found), 3),
                "least": min(found),
                "below Storm's": sum(one < 1 - SAME for one in found),
            }


def _summed(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    carried, room = [r["carried_x"] for r in rows], [r["room_x"] for r in rows]
    worst = [r["carried_x_worst"] for r in rows]
    best = [r["best_x"] for r in rows if r["best_x"] is not None]
    return {
        "number": len(rows),
        "carried, median": round(median(carried), 3),
        "worst": min(carried),
        "worst topology": min(worst),
        f"below {LEAST}": sum(one < LEAST for one in carried),
        f"a topology below {LEAST}": sum(one < LEAST for one in worst),
        "room, median": round(median(room), 3),
        "least": min(room),
        "below Storm's": sum(one < 1 - SAME for one in room),
        "room of the best placement known, median": round(median(best), 3) if best else None,
        "moves, median": median(r["moves"] for r in rows),
        "returns": sum(r["returns"] for r in rows),
        "JVMs dead": sum(r["jvms_dead"] for r in rows),
        "worlds with dead JVMs": sum(r["jvms_dead"] > 0 for r in rows),
        "CPU s a world": round(sum(r["cpu_s"] for r in rows) / len(rows), 1),
    }


def as_tables(found: dict[str, Any]) -> Iterator[Table]:
    """Make a table of the cases, of the worlds, and of their summary, as far as there are."""
    for title, rows in found.items():
        if rows:
            yield table(title, rows)
