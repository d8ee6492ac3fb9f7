"""Works out and prints what ``nstorm replay`` is asked for."""

import json
import logging
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import typer
from rich.table import Table

from controller.config import build
from controller.console import Console
from controller.core.times import utc
from controller.journal.cycle_record import as_builtins
from controller.journal.lacking import lacking, lacking_texts
from controller.journal.lines import JournalError, compact
from controller.journal.reader import Log
from controller.output import Output, counted, print_list, quiet
from controller.replay import playback
from controller.replay.playback import Replayed, recorded_config
from controller.replay.recording import spans
from controller.replay.rerun import (
    KEYS,
    LEFT_OUT,
    LIVE_DIFFERS,
    NO_CYCLE,
    OUTCOMES,
    Rerun,
    Series,
)


def print_replay(
    paths: list[Path],
    window: tuple[float, float],
    changes: dict[str, Any],
    *,
    every: bool,
    output: Output,
) -> None:
    """Decide a log again, with `changes` to its settings, and print what comes of it.

    Exit code 1: without changes a decision is another one.
    """
    log = Log.open(paths)
    with quiet(logging.CRITICAL):
        document = _what_if(log, window, changes) if changes else _verified(log, window)
    document["skipped"] = [*log.skipped_texts(), *lacking_texts(lacking(paths))]
    if output is Output.JSON:
        print(json.dumps(document, indent=1))
    elif changes:
        _print_what_if(document)
    else:
        _print_verified(document, every)
    if document.get("different"):
        raise typer.Exit(1)


def _verified(log: Log, window: tuple[float, float]) -> dict[str, Any]:
    """Decide all again as recorded; several controllers come one after the other."""
    cycles: list[dict[str, Any]] = []
    ticks = different = 0
    for writer in range(len(log.writers)):
        for one in playback.replay(log.ticks(writer, window[0])):
            if one.tick.superseded or not window[0] <= one.tick.record.time_s <= window[1]:
                continue
            ticks += 1
            different += not one.identical
            cycles += _cycles(one)
    if not ticks:
        log.newest_head()  # a log of another format is refused as that
        raise _nothing(log, "no tick of that time")
    counts = {"ticks": ticks, "identical": ticks - different, "different": different}
    return {**counts, "cycles": cycles}


def _cycles(one: Replayed) -> Iterator[dict[str, Any]]:
    keys = ("time_s", "topology", "outcome", "reason", "moves")
    found_now = {cycle.topology: as_builtins(cycle) for cycle in one.cycles}
    found_then = {cycle["topology"]: cycle for cycle in msgspec.json.decode(one.tick.record.cycles)}
    for topology in found_then | found_now:
        now, was = found_now.get(topology), found_then.get(topology)
        none = {**(now or was or {}), "outcome": "none", "reason": "", "moves": []}
        identical = compact(now) == compact(was)
        found = {key: (now or none)[key] for key in keys} | {"identical": identical}
        yield found if identical else found | {"recorded": {k: (was or none)[k] for k in keys}}


def _what_if(log: Log, window: tuple[float, float], changes: dict[str, Any]) -> dict[str, Any]:
    """Run the recorded and the changed configuration over the same load."""
    head = log.newest_head()
    # The recorded one first: a key of another version is no fault of the changes.
    recorded = recorded_config(head)
    configs = {"recorded": recorded, "changed": build(_with(recorded.keys, changes))}
    of: dict[str, dict[str, Rerun]] = {}
    for span in spans(log):
        cut = span.within(*window)
        if len(cut.time_s) and cut.topology not in of:
            runs = {kind: Rerun(one) for kind, one in configs.items()}
            of[cut.topology] = {"as_it_was": Rerun(None), **runs}
        if len(cut.time_s):
            for score in of[cut.topology].values():
                score.take(cut)
    if not of:
        raise _nothing(log, "no measured tick of that time")
    return {
        "changes": changes,
        "without_effect": [key for key in changes if key not in KEYS],
        "topologies": [_compared(name, scores) for name, scores in sorted(of.items())],
        "left_out": list(LEFT_OUT),
    }


def _with(recorded: Mapping[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Change keys; the lower limit goes down with the upper one, as it does in storm.yaml."""
    keys, high = {**recorded, **changes}, changes.get("load.high")
    if "load.low" not in changes and isinstance(high, int | float):
        keys["load.low"] = min(recorded["load.low"], high)
    return keys


def _nothing(log: Log, what: str) -> JournalError:
    skipped = f"; skipped: {', '.join(log.skipped_texts())}" if log.skipped_texts() else ""
    return JournalError(f"the log holds {what}{skipped}")


def _compared(name: str, scores: dict[str, Rerun]) -> dict[str, Any]:
    series = {kind: score.series() for kind, score in scores.items()}
    return {
        "topology": name,
        "ticks": len(series["changed"].time_s),
        **{kind: _score(one) for kind, one in series.items()},
        "moves": [{"time_s": move.time_s, **move.as_row()} for move in series["changed"].moves],
    }


def _score(series: Series) -> dict[str, Any]:
    most = float(series.max_load_frac.max())
    return {
        "inter_node_frac": round(series.inter_node_frac, 6),
        "moves": len(series.moves),
        "unserved_core_s": round(float(series.unserved_core_s.sum()), 3),
        # None where a worker has no CPU.
        "max_load_frac": round(most, 6) if math.isfinite(most) else None,
        "outcomes": {
            OUTCOMES[outcome].value: count
            for outcome, count in Counter(series.outcome.tolist()).most_common()
            if outcome != NO_CYCLE
        },
    }


def _print_verified(document: dict[str, Any], every: bool) -> None:
    table = Table("time", "topology", "outcome", "reason")
    before: dict[str, str] = {}
    alike = 0
    for cycle in document["cycles"]:
        another = cycle["moves"] or before.get(cycle["topology"]) != cycle["outcome"]
        if not another and cycle["identical"] and not every:
            alike += 1
        else:
            table.add_row(
                utc(cycle["time_s"]), cycle["topology"], cycle["outcome"], cycle["reason"]
            )
        if not cycle["identical"]:
            was = cycle["recorded"]
            table.add_row("", "", f"was {was['outcome']}", was["reason"])
        before[cycle["topology"]] = cycle["outcome"]
    console = Console()
    console.print(table)
    if alike:
        left_out = f"{counted(alike, 'decision')} with the outcome of the one before left out"
        console.print(f"{left_out}; --all prints them", highlight=False)
    _print_skipped(console, document)
    console.print(f"{document['identical']} of {document['ticks']} ticks identical")


def _print_what_if(document: dict[str, Any]) -> None:
    console = Console()
    names = {
        "as_it_was": "as it was",
        "recorded": "replayed unchanged",
        "changed": ", ".join(f"{key}={value}" for key, value in document["changes"].items()),
    }
    for one in document["topologies"]:
        title = f"{one['topology']}, {one['ticks']} ticks"
        table = Table("", "between nodes", "moves", "core s short", "fullest worker", title=title)
        for key, name in names.items():
            score = one[key]
            table.add_row(
                name,
                f"{score['inter_node_frac']:.4f}",
                str(score["moves"]),
                f"{score['unserved_core_s']:.0f}",
                "–" if (most := score["max_load_frac"]) is None else f"{most:.2f}",
            )
        console.print(table)
        for key in ("recorded", "changed"):
            cycles = ", ".join(f"{count} {what}" for what, count in one[key]["outcomes"].items())
            console.print(f"{names[key]}: {cycles}", highlight=False)
    for key in document["without_effect"]:
        console.print(f"{key} has no effect on a replay", highlight=False)
    print_list(console, LIVE_DIFFERS, document["left_out"])
    _print_skipped(console, document)


def _print_skipped(console: Console, document: dict[str, Any]) -> None:
    for line in document["skipped"]:
        console.print(f"skipped: {line}", highlight=False)
