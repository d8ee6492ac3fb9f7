"""``nstorm assess``: whether nstorm would help, before anything of it is installed."""

import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec
import typer

from controller.assess.storm_ui import Made, look, snapshots, stays_of
from controller.cli.asking import named_when_slow
from controller.core.hostnames import shown
from controller.core.pins import UNSEEN
from controller.errors import CommandError, SnapshotError
from controller.journal.lines import refuse_gone
from controller.output import Output, OutputOption, writing
from migration.model import topology_name

if TYPE_CHECKING:
    from controller.assess.assessment import Evidence
    from controller.core.cluster import Cluster, LoadSnapshot

# From here on it is the split, not the measurement, that the answer shows.
_SPLIT_FRAC = 0.5
_HOOKS_OF_A_FILE = "none"
# With hosts by the ids of supervisors.
_Case: TypeAlias = "tuple[Cluster, LoadSnapshot, Evidence, Mapping[str, str]]"


def assess(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="URL of Storm's UI, or folder of a journal.")
    ],
    topology: Annotated[
        str, typer.Option("--topology", help="Only this topology, by name or id.")
    ] = "",
    checked: Annotated[
        Path | None,
        typer.Option(
            help="What `nstorm check-topology JAR -o json` printed: which components stay. "
            "A - reads standard input."
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Also write a page with pictures to this file.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Estimate whether nstorm would help, before it is installed.

    SOURCE is Storm's UI or a journal. The newest cycle of a journal is taken: of a controller in
    mode advise, or what `nstorm ingest` made of Storm's metrics log.

    The policy of the controller makes its moves on paper. The answer has the traffic between nodes
    and the head-room before and after. It names what stays and why, what was assumed, and how sure
    the answer is. The command changes nothing.
    """
    is_url = "://" in source
    if checked and not is_url:
        raise CommandError("--checked: the journal has what stays already")
    cases = list(
        _of_ui(source, checked, topology) if is_url else _of_journal(Path(source), topology)
    )
    names = [case[1].topology for case in cases]
    cases = [case for case in cases if _is_named(topology, case[1].topology)]
    if not cases:
        raise CommandError(
            f"no topology {topology}: there are {', '.join(names)}"
            if names
            else f"{source}: there is no active topology"
        )
    # Late, as below: a refusal needs none of it.
    from controller.assess.assessment import assess as judged  # noqa: PLC0415
    from controller.assess.assessment import lines  # noqa: PLC0415
    from controller.assess.page import page  # noqa: PLC0415
    from controller.config import build  # noqa: PLC0415

    found = [judged(cluster, snapshot, build({}), of) for cluster, snapshot, of, _ in cases]
    hosts = {id_: host for *_, named in cases for id_, host in named.items()}
    if html:
        marked = {id_: escape(host) for id_, host in hosts.items()}
        with writing("--html", html):
            html.write_text(shown(page(found), marked), "utf-8")
    if output is Output.JSON:
        print(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
    else:
        print(shown("\n\n".join("\n".join(lines(one)) for one in found), hosts))


def _of_ui(url: str, checked: Path | None, topology: str) -> Iterator[_Case]:
    stay = stays_of(_text(checked)) if checked else {}
    with named_when_slow(url):
        found, cores, unread = look(url)
    from controller.assess.assessment import Evidence  # noqa: PLC0415
    from controller.snapshot import parse  # noqa: PLC0415

    made_of = {made.document["topology"]: made for made in snapshots(found, cores, stay)}
    asked = {id_: made for id_, made in made_of.items() if _is_named(topology, id_)}
    missing = [id_ for id_ in unread if _is_named(topology, id_)]
    free = tuple(f"The CPU that {id_} uses counts as free: it cannot be read." for id_ in unread)
    for id_, error in unread.items():
        _cannot(str(error), len(asked) + len(missing) if id_ in missing else 0)
    for id_, made in (asked or made_of).items():
        try:
            cluster, snapshot = parse(msgspec.json.encode(made.document).decode())
        except SnapshotError as error:
            _cannot(f"{url}: {id_}: {error}", len(asked))
            continue
        yield cluster, snapshot, Evidence(url, _confidence(made), made.assumed + free), {}


def _confidence(made: Made) -> str:
    level = "low" if made.split_frac > _SPLIT_FRAC else "medium"
    return (
        f"{level}: {made.split_frac:.0%} of the tuples are split over executors by what each one "
        "sent and executed. Where Storm's shuffle prefers local tasks, less crosses than that, "
        "now and then"
    )


def _of_journal(folder: Path, topology: str) -> Iterator[_Case]:
    refuse_gone(folder)
    from controller.assess.assessment import Evidence  # noqa: PLC0415
    from controller.cli.recorded import in_journal  # noqa: PLC0415

    reports, _ = in_journal([folder], datetime.now(UTC))
    asked = [one for one in reports if _is_named(topology, one.topology)]
    for report in asked or reports:
        made = report.picture
        if made is None:
            why = f"{report.topology}: {report.outcome}: {report.reason}"
            _cannot(why, len(asked))
            continue
        measured = f"cycle {report.tick} of {folder}"
        workers = made.view.observation.workers.values()
        if any(one.hooks.startswith(_HOOKS_OF_A_FILE) for one in workers):
            level = "medium: from tables or a metrics log; see what `nstorm ingest` has assumed"
        elif not UNSEEN.isdisjoint(made.snapshot.pinned):
            level = "none: not all executors were measured"
        else:
            level = "high: the hooks measured each pair of executors and the CPU of each"
        hosts = made.view.publication.hosts
        yield made.cluster, made.snapshot, Evidence(measured, level), hosts


def _cannot(why: str, asked: int) -> None:
    """Name one of the topologies asked for that is not assessed; the only one ends the command."""
    if asked == 1:
        raise CommandError(why)
    typer.echo(why, err=True)


def _is_named(topology: str, id_: str) -> bool:
    """Check whether an option names this topology, or none."""
    return topology in ("", id_, topology_name(id_))


def _text(path: Path) -> str:
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--checked {path}: cannot be read: {error}") from None
