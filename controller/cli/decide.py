"""``nstorm decide``: what a policy does with a snapshot."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from controller.config import Config, build, keys_of
from controller.core.readable import readable
from controller.errors import SnapshotError
from controller.output import Output, OutputOption
from controller.policies.options import NAMES

if TYPE_CHECKING:
    from rich.table import Table

    from controller.core.cluster import Cluster, LoadSnapshot
    from controller.walk import WalkStep


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
            help=f"One of {', '.join(NAMES)}.  [default: gather]",
        ),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Number of decision rounds.")] = 1,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting by its key of storm.yaml, such as load.high=0.9 or "
            "excluded.components=[split]. vetoes=on adds the rules of a live run: an executor "
            "that has moved is in cool-down, and a worker without executors is a free slot. "
            "Repeatable.",
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what a policy would do with a snapshot, and why.

    The command changes nothing. docs/snapshot.md has the format, docs/settings.md the keys. If the
    last step has no move, the policy wants no further one.
    """
    config = build(keys_of(assignments or []))
    name = "standard input" if str(snapshot) == "-" else str(snapshot)
    text = _text(snapshot, name)
    # Late: a refusal needs none of it.
    from controller.snapshot import parse_with_profiles  # noqa: PLC0415
    from controller.walk import as_document, walk  # noqa: PLC0415

    try:
        cluster, start, profiles = parse_with_profiles(text)
    except SnapshotError as error:
        raise SnapshotError(f"{name}: {error}") from None
    options = replace(config.options, profiles=profiles)
    config = replace(config, policy=policy or config.policy, options=options)
    walked = list(walk(cluster, start, config, steps))
    if output is Output.JSON:
        print(json.dumps(as_document(cluster, walked, config), indent=1))
    else:
        _print(cluster, start, config, walked)


def _print(
    cluster: "Cluster", start: "LoadSnapshot", config: Config, walked: Sequence["WalkStep"]
) -> None:
    from controller.console import Console  # noqa: PLC0415
    from controller.core.distance import inter_node_frac  # noqa: PLC0415
    from controller.core.headroom import headroom  # noqa: PLC0415

    console = Console()
    console.print(
        f"{start.topology}, policy {config.policy}: between nodes "
        f"{inter_node_frac(cluster, start):.1%} of {readable(start.traffic.total_tps)} t/s"
    )
    for number, step in enumerate(walked, 1):
        ratio = inter_node_frac(cluster, step.after)
        left = headroom(cluster, step.after)
        crosses = f"between nodes {ratio:.1%}"
        line = f"{number}. {step.decision.outcome}, {crosses}: {step.decision.reason}"
        if left.factor is not None:
            line += f"; head-room {left.factor:.3g} ({left.binds} of {left.where})"
        console.print(line, highlight=False, soft_wrap=True)
    console.print(_workers_table(cluster, walked[-1]))
    if left.factor is not None:
        line = f"head-room: {left.factor:.3g} times the input, then {left.binds} of {left.where}"
        console.print(line, highlight=False)
    for warning in walked[-1].decision.warnings:
        console.print(f"warning: {warning}", highlight=False, soft_wrap=True)


def _text(path: Path, name: str) -> str:
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text()
    except OSError as error:
        raise SnapshotError(f"{name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SnapshotError(f"{name}: not JSON: not even text in UTF-8") from None


def _workers_table(cluster: "Cluster", step: "WalkStep") -> "Table":
    from rich.table import Table  # noqa: PLC0415

    from controller.core.fit import Fit  # noqa: PLC0415

    load = Fit.of(cluster, step.after).frac
    table = Table("worker", "node", "cpu", "executors", title="placement after the last step")
    for w, name in enumerate(cluster.workers):
        here = [e for e, at in zip(step.after.executors, step.after.place, strict=True) if at == w]
        node = cluster.nodes[cluster.node_of[w]]
        table.add_row(name, node, f"{load[w]:.0%}", " ".join(here))
    return table
