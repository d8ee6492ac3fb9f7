"""Prints and draws what a sweep has found."""

import base64
import difflib
import math
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import yaml
from rich.table import Table

from controller.console import Console
from controller.output import print_list
from controller.pipeline.figures import Figures
from controller.pipeline.where import needed
from controller.replay.rerun import LEFT_OUT, LIVE_DIFFERS
from controller.tune.choice import (
    Objective,
    SetOutcome,
    Suggestion,
    crossing_frac,
    felt_worse,
    front,
    ranked,
)
from migration.settings import PREFIX
from migration.storm_yaml import load

SHOWN = 10
COLUMNS = ("cost", "local", "moves", "unserved core s", "fullest MB/s", "cost held back")
FELT = ("as recorded", "p99 ms", "failed", "felt")
_NO_LINE_END = "\n\\ No newline at end of file\n"
ABOUT_KEYS = "The form of this storm.yaml allows no diff. Set these keys in it:\n"
ABOUT_FELT = (
    "fullest MB/s: what the fullest direction of a node's link carries. Sets that fill it more "
    "than today's come last.\n"
    "p99 ms and failed: measured while all executors were where the set has them; as recorded: "
    "the share of that time.\n"
    "felt: on such days, against those that only today's settings have so; – where they are too "
    "few. Sets with which users felt worse come last"
)
# Of one decision of ten.
BOUND = {"today": "What bound today's settings", "best": "What bound the best set"}
WORSE_FELT = "Users felt worse with these sets than with today's:"


def proposed_diff(
    storm_yaml: str | None, suggestion: Suggestion, today: dict[str, Any]
) -> str | None:
    """Write the change as a unified diff of storm.yaml; empty if nothing is to be changed.

    Without a file it is one of the settings in force. None where the file has a form in which keys
    cannot be changed alone.
    """
    if not suggestion.helps:
        return ""
    changes = dict(suggestion.best.parameters.changes)
    if storm_yaml is None:
        before = "".join(_line(key, today[key]) for key in changes if today.get(key) is not None)
    else:
        before = storm_yaml.replace("\r\n", "\n")
    end = "\r\n" if storm_yaml and "\r\n" in storm_yaml else "\n"
    if storm_yaml and before.replace("\n", end) != storm_yaml:
        return None  # its lines have ends of both kinds
    after, wanted = before, {PREFIX + key: value for key, value in changes.items()}
    try:
        for key, value in changes.items():
            after = _changed(after, key, value)
        if load(after) != {**(load(before) or {}), **wanted}:
            return None
    except yaml.YAMLError:
        return None
    old, new = (text.replace("\n", end).splitlines(True) for text in (before, after))
    lines = difflib.unified_diff(old, new, "storm.yaml", "storm.yaml")
    return "".join(line if line.endswith("\n") else line + _NO_LINE_END for line in lines)


def proposed_keys(suggestion: Suggestion) -> str:
    """Write the change as keys, for a file of which there is no diff; empty as there."""
    if not suggestion.helps:
        return ""
    changes = suggestion.best.parameters.changes
    return "".join([ABOUT_KEYS, *(_line(key, value) for key, value in changes)])


def _changed(text: str, key: str, value: Any) -> str:
    """Put the value in place of the one that the key has, or the key at the end."""
    root, line = yaml.compose(text, yaml.SafeLoader), _line(key, value)
    if not isinstance(root, yaml.MappingNode):
        return _with_end(text) + line
    # Of a key that is there twice the last one counts.
    for name, old in reversed(root.value):
        if name.value == PREFIX + key:
            if isinstance(old, yaml.CollectionNode) and not old.flow_style:
                return text  # the comments behind it are a part of it
            start, end = old.start_mark.index, old.end_mark.index
            return f"{text[:start]}{' ' * (start == end)}{_in_line(value)}{text[end:]}"
    end, indent = root.end_mark.index, " " * root.start_mark.column
    if root.flow_style:
        return f"{text[: end - 1]}{', ' * bool(root.value)}{line.rstrip()}{text[end - 1 :]}"
    return f"{_with_end(text[:end])}{indent}{line}{text[end:]}"


def _with_end(text: str) -> str:
    return text if text.endswith("\n") or not text else text + "\n"


def _line(key: str, value: Any) -> str:
    return f"{PREFIX}{key}: {_in_line(value)}\n"


def _in_line(value: Any) -> str:
    return yaml.safe_dump([value], default_flow_style=True, width=math.inf).strip()[1:-1]


def as_document(
    outcomes: Sequence[SetOutcome],
    objective: Objective,
    suggestion: Suggestion,
    no_moves: SetOutcome,
    *,
    left_out: Sequence[str],
    skipped: Sequence[str],
) -> dict[str, Any]:
    """Put what was found into the stable output format.

    `no_moves` is of the replay in which nothing may move. `left_out` is what this sweep left out,
    and `skipped` is what it left out of the log.
    """
    interval = suggestion.interval_frac

    def row(outcome: SetOutcome) -> dict[str, Any]:
        worse = felt_worse(outcome, suggestion.today)
        return {**_row(outcome, objective), "felt_worse": worse}

    return {
        "objective": objective.shown,
        "left_out": [*left_out, *LEFT_OUT],
        "skipped": list(skipped),
        "today": row(suggestion.today),
        "best": row(suggestion.best),
        "no_moves": {**row(no_moves), "settings": "no moves", "changes": {}},
        "suggestion": {
            "helps": suggestion.helps,
            "reason": suggestion.reason,
            "changes": dict(suggestion.best.parameters.changes) if suggestion.helps else {},
            "gain": round(suggestion.gain_frac, 6),
            "gain_held_back": round(suggestion.held_back_gain_frac, 6),
            "gain_interval": interval and [round(end, 6) for end in interval],
        },
        "front": [row(one) for one in front(outcomes)],
        "ranking": [row(one) for one in ranked(outcomes, objective)],
    }


def _row(outcome: SetOutcome, objective: Objective) -> dict[str, Any]:
    return {
        "settings": outcome.parameters.name,
        "changes": dict(outcome.parameters.changes),
        "chosen_by": _figures(outcome.chosen_by, objective),
        "held_back": _figures(outcome.held_back, objective),
        "bound": dict((outcome.chosen_by + outcome.held_back).bound),
    }


def _figures(figures: Figures, objective: Objective) -> dict[str, Any]:
    return {
        "cost": round(objective.cost(figures), 6),
        "local": round(1.0 - figures.inter_node_frac, 6),
        "crossing_weighted": round(crossing_frac(figures), 6),
        "moves": figures.moves,
        "unserved_core_s": round(figures.unserved_core_s, 3),
        "fullest_bytes_s": _rounded(figures.fullest_bytes_s),
        "seconds": round(figures.span_s, 3),
        "ticks": figures.ticks,
        "recorded_frac": round(figures.recorded_frac, 6),
        "latency_p99_ms": _rounded(figures.latency_p99_ms),
        "failed_frac": _rounded(figures.failed_frac),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    by, later = row["chosen_by"], row["held_back"]
    return (
        f"{by['cost']:.4f}",
        f"{by['local']:.4f}",
        str(by["moves"]),
        f"{by['unserved_core_s']:.0f}",
        *_known((_mega(by["fullest_bytes_s"]), ".3g")),
        f"{later['cost']:.4f}" if later["ticks"] else "–",
        f"{by['recorded_frac']:.0%}",
        *_known((by["latency_p99_ms"], ".4g"), (by["failed_frac"], ".3%")),
        {None: "–", "": "no worse"}.get(row["felt_worse"], "worse"),
        row["settings"],
    )


def _mega(value: float | None) -> float | None:
    return None if value is None else value / 1e6


def _known(*figures: tuple[float | None, str]) -> list[str]:
    return ["–" if value is None else format(value, how) for value, how in figures]


def print_found(
    console: Console, document: dict[str, Any], change: str, shown: int | None = SHOWN
) -> None:
    """Print the ranking, today's settings, what is without nstorm, and the suggestion.

    Of the ranking the best are `shown`; None shows all.
    """
    different = _different(document["ranking"])
    title = f"{len(document['ranking'])} parameter sets with {len(different)} different outcomes"
    caption = f"{document['objective']}\n{ABOUT_FELT}"
    table = _table(different[:shown], title=f"The best of {title}", caption=caption)
    table.add_section()
    table.add_row(*_cells(document["today"]))
    table.add_row(*_cells(document["no_moves"]))
    console.print(table)
    console.print(document["suggestion"]["reason"], highlight=False)
    for kind, whose in BOUND.items():
        counts = sorted(document[kind]["bound"].items(), key=lambda item: -item[1])
        named = ", ".join(f"{count} {what}" for what, count in counts) or "nothing"
        console.print(f"{whose}: {named}", highlight=False)
    worse = [f"{row['settings']}: {row['felt_worse']}" for row in different if row["felt_worse"]]
    if worse:
        print_list(console, WORSE_FELT, worse[:shown])
    print_list(console, LIVE_DIFFERS, document["left_out"])
    for line in document["skipped"]:
        console.print(f"skipped: {line}", highlight=False)
    if change:
        console.print(change, highlight=False, soft_wrap=True, end="")


def _table(rows: Sequence[dict[str, Any]], **options: str) -> Table:
    table = Table(**options)  # type: ignore[arg-type]
    for name in (*COLUMNS, *FELT):
        table.add_column(name, justify="right", overflow="fold")
    table.add_column("settings", overflow="fold")
    for row in rows:
        table.add_row(*_cells(row))
    return table


def _different(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out sets that did the very same as one before."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        found.setdefault((*row["chosen_by"].values(), *row["held_back"].values()), row)
    return list(found.values())


def draw(document: dict[str, Any], path: Path) -> None:
    """Draw the front as PNG; raises `TuneError` where matplotlib is missing."""
    figure = needed("matplotlib.figure").Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    every = _points(document["ranking"])
    shown = axes.scatter(every[0], every[1], c=every[2], s=14, cmap="viridis")
    figure.colorbar(shown, label="core-seconds of unserved demand")
    axes.plot(*_points(document["front"])[:2], "o", mfc="none", mec="black", label="on the front")
    for kind, marker in (("today", "X"), ("best", "*"), ("no_moves", "s")):
        x, y, _ = _points([document[kind]])
        axes.plot(x, y, marker, ms=13, mec="white", ls="", label=kind.replace("_", " "))
    axes.set(xlabel="moves", ylabel="share of tuples that stay on their node")
    axes.legend()
    figure.savefig(path, format="png", dpi=120)


def _points(rows: Sequence[dict[str, Any]]) -> tuple[list[int], list[float], list[float]]:
    by = [row["chosen_by"] for row in rows]
    return [f["moves"] for f in by], [f["local"] for f in by], [f["unserved_core_s"] for f in by]


def page(document: dict[str, Any], change: str, png: bytes, about: str) -> str:
    """Write what is printed, whole, as a page that needs nothing but itself."""
    console = Console(record=True, file=StringIO(), width=160)
    console.print(about, highlight=False)
    print_found(console, document, change, shown=None)
    console.print(_table(document["front"], title="On the front"))
    image = f'<img alt="Pareto front" src="data:image/png;base64,{base64.b64encode(png).decode()}">'
    return console.export_html().replace("<body>", f"<body>{image}", 1)
