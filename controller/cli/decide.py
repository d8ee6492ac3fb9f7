"""``nstorm decide``: what a policy does with a snapshot."""

import json
import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from controller.cli.what_if import Step, as_document, walk
from controller.config import from_assignments
from controller.core.cluster import Cluster, worker_cpu_cores
from controller.core.headroom import headroom
from controller.errors import SnapshotError
from controller.policies import NAMES
from controller.snapshot import parse
from controller.yardstick import inter_node_ratio


class Output(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    JSON = "json"


def _known_policy(name: str | None) -> str | None:
    if name is not None and name not in NAMES:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(NAMES)}")
    return name


def decide(
    snapshot: Annotated[Path, typer.Argument(help="Snapshot file; - reads standard input.")],
    policy: Annotated[
        str | None,
        typer.Option(
            callback=_known_policy,
            metavar="NAME",
            help=f"One of {', '.join(NAMES)}. safe, the default: with the fit "
            "test; otd: 004 to the letter.",
        ),
    ] = None,
    steps: Annotated[
        int, typer.Option(min=1, help="Decide so often, each on the placement after the last.")
    ] = 1,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A key of storm.yaml, such as load.high=0.9, asc.threshold.tps=10 or "
            "excluded.components=[split]; vetoes=on keeps the rules of the live run. Repeatable.",
        ),
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.TABLE,
) -> None:
    """Say which executor a policy would move, and why; nothing is changed anywhere.

    The last step may be one without a move: the policy has come to rest then.
    """
    config = from_assignments(assignments or [])
    config = replace(config, policy=policy or config.policy)
    cluster, start = parse(_read(snapshot))
    walked = list(walk(cluster, start, config, steps))
    document = as_document(cluster, walked, config)
    if output is Output.JSON:
        print(json.dumps(document, indent=1))
        return
    console = Console()
    console.print(
        f"{start.topology}, policy {config.policy}: inter-node "
        f"{inter_node_ratio(cluster, start):.3f} of {start.traffic.total_tps:.6g} t/s"
    )
    for number, step in enumerate(walked, 1):
        ratio = inter_node_ratio(cluster, step.after)
        line = f"{number}. {step.decision.outcome}, inter-node {ratio:.3f}: {step.decision.reason}"
        console.print(line, highlight=False)
    console.print(_workers_table(cluster, walked[-1]))
    left = headroom(cluster, walked[-1].after, config.link_tps)
    if left.factor is not None:
        line = f"head-room: {left.factor:.3g} times the input, then {left.binds} of {left.where}"
        console.print(line, highlight=False)
    for warning in walked[-1].decision.warnings:
        console.print(f"warning: {warning}", highlight=False)


def _read(path: Path) -> str:
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SnapshotError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def _workers_table(cluster: Cluster, step: Step) -> Table:
    load = worker_cpu_cores(cluster, step.after) / cluster.capacity_cores
    table = Table("worker", "node", "cpu", "executors", title="placement after the last step")
    for w, name in enumerate(cluster.workers):
        here = [e for e, at in zip(step.after.executors, step.after.place, strict=True) if at == w]
        node = cluster.nodes[cluster.node_of[w]]
        table.add_row(name, node, f"{load[w]:.0%}", " ".join(here))
    return table
