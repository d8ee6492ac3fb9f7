"""Makes snapshots of what Storm's UI shows of a cluster, without nstorm in it.

The fields are those of the REST interface of Storm 2 (`UIHelpers` of storm-webapp). It counts no
tuples by pair of executors, so what a component got from another is split over their executors.
"""

import json
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct, field, structs

from controller.errors import CommandError

WINDOW_S = 600
LIMIT_S = 30.0
MOST_BYTES = 50_000_000
DEFAULT_CPU = 400.0  # per cent of a core, as Storm assumes without `supervisor.cpu.capacity`
T = TypeVar("T")


class _Topology(Struct, frozen=True):
    id: str
    name: str
    status: str = ""


class _Topologies(Struct, frozen=True):
    topologies: tuple[_Topology, ...]


class _Supervisor(Struct, frozen=True, rename="camel"):
    host: str
    total_cpu: float | None = None


class _Supervisors(Struct, frozen=True):
    supervisors: tuple[_Supervisor, ...]


class _Spout(Struct, frozen=True, rename="camel"):
    spout_id: str


class _Bolt(Struct, frozen=True, rename="camel"):
    bolt_id: str


class _Page(Struct, frozen=True):
    spouts: tuple[_Spout, ...] = ()
    bolts: tuple[_Bolt, ...] = ()


class _Executor(Struct, frozen=True, rename="camel"):
    id: str  # such as [7-7]
    host: str
    port: int
    uptime_seconds: float = 0.0
    transferred: float = 0.0  # tuples within the window
    executed: float = 0.0
    # The share of the time in which it executed; a text in the locale of the UI.
    capacity: float | str = 0.0

    def __post_init__(self) -> None:
        structs.force_setattr(self, "capacity", float(str(self.capacity).replace(",", ".")))


class _Input(Struct, frozen=True):
    component: str
    stream: str
    executed: float = 0.0


class _Component(Struct, frozen=True, rename="camel"):
    component_type: str
    executor_stats: tuple[_Executor, ...] = ()
    input_stats: tuple[_Input, ...] = ()


class _Subscription(Struct, frozen=True):
    component: str = field(name=":component")
    stream: str = field(name=":stream")
    grouping: str = field(name=":grouping")


class _Drawn(Struct, frozen=True):
    inputs: tuple[_Subscription, ...] = field(name=":inputs", default=())


@dataclass(frozen=True, slots=True)
class UiTopology:
    """What the UI shows of one topology."""

    id: str
    name: str
    components: Mapping[str, _Component]
    subscriptions: Mapping[str, tuple[_Subscription, ...]]  # by the component that subscribes


class NoAnswerError(CommandError):
    """Nobody answers at the UI."""


class Looked(NamedTuple):
    """What the UI shows of a cluster."""

    shown: list[UiTopology]
    cores: Mapping[str, float]  # CPU by host
    unread: dict[str, CommandError]  # why a topology cannot be read, by id


@dataclass(frozen=True, slots=True)
class Made:
    """A snapshot as in docs/snapshot.md, and what was assumed in it."""

    document: dict[str, Any]
    split_frac: float  # the share of its tuples that were split over executors
    assumed: tuple[str, ...]


def fetch(url: str, path: str, kind: type[T]) -> T:
    """Read one answer of the REST interface at `url`, which may have a path of its own.

    Raises CommandError if nobody answers there, or what answers is not Storm's UI.
    """
    whole = f"{url.rstrip('/')}/api/v1/{path}"
    try:
        with urllib.request.urlopen(whole, timeout=LIMIT_S) as answer:
            text = answer.read(MOST_BYTES + 1)
    except urllib.error.HTTPError as error:
        with error:
            raise CommandError(f"{whole}: answers {error.code} {error.reason}") from None
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise NoAnswerError(f"{whole}: no answer: {reason}. Check the URL of Storm's UI") from None
    if len(text) > MOST_BYTES:
        raise CommandError(f"{whole}: the answer has more than {MOST_BYTES:,} bytes")
    try:
        return msgspec.json.decode(text, type=kind, strict=False)
    except msgspec.DecodeError as error:
        raise CommandError(f"{whole}: not an answer of the UI of Storm 2: {error}") from None


def look(url: str, get: Any = fetch) -> Looked:
    """Read all active topologies; raises CommandError where none of them can be read."""
    if not urlsplit(url).netloc:
        raise CommandError(f"{url}: not a URL such as http://ui:8080")
    cores: dict[str, float] = defaultdict(float)
    for one in get(url, "supervisor/summary", _Supervisors).supervisors:
        if one.total_cpu:
            cores[one.host] += one.total_cpu / 100
    found = Looked([], cores, {})
    for listed in get(url, "topology/summary", _Topologies).topologies:
        if listed.status in ("", "ACTIVE"):
            try:
                found.shown.append(_shown(url, listed, get))
            except NoAnswerError:
                raise
            except CommandError as error:  # it may have been killed since it was listed
                found.unread[listed.id] = error
    if found.unread and not found.shown:
        raise next(iter(found.unread.values()))
    return found


def _shown(url: str, topology: _Topology, get: Any) -> UiTopology:
    at, asked = f"topology/{quote(topology.id, safe='')}", f"window={WINDOW_S}&sys=true"
    page: _Page = get(url, f"{at}?{asked}", _Page)
    names = [one.spout_id for one in page.spouts] + [one.bolt_id for one in page.bolts]
    drawn = get(url, f"{at}/visualization?{asked}", dict[str, _Drawn])
    return UiTopology(
        topology.id,
        topology.name,
        {
            name: get(url, f"{at}/component/{quote(name, safe='')}?{asked}", _Component)
            for name in names
            if name != "__system"  # it has no executor
        },
        {name: one.inputs for name, one in drawn.items()},
    )


def snapshots(
    shown: Sequence[UiTopology], cores: Mapping[str, float], stay: Mapping[str, Mapping[str, str]]
) -> Iterator[Made]:
    """Make a snapshot of each topology; what the others use is taken from the nodes.

    `stay` is by name of the topology and id of the component why its executors stay.
    """
    used = {one.id: _cores_used(one) for one in shown}
    for one in shown:
        others: dict[str, float] = defaultdict(float)
        for other, by_host in used.items():
            for host, amount in by_host.items() if other != one.id else ():
                others[host] += amount
        yield _made(one, cores, others, stay.get(one.name, {}))


def _executors(component: _Component) -> list[_Executor]:
    return [one for one in component.executor_stats if not one.id.startswith("[-")]


def _cores_used(shown: UiTopology) -> Mapping[str, float]:
    used: dict[str, float] = defaultdict(float)
    for component in shown.components.values():
        for one in _executors(component):
            used[one.host] += float(one.capacity)
    return used


def _made(
    shown: UiTopology,
    cores: Mapping[str, float],
    others: Mapping[str, float],
    stay: Mapping[str, str],
) -> Made:
    there = {name: _executors(one) for name, one in shown.components.items()}
    is_trident = any(name.startswith(("$mastercoord-", "$spoutcoord-")) for name in there)
    every = [(name, one) for name, each in there.items() for one in each]
    hosts = sorted({one.host for _, one in every})
    traffic, split_tps = _traffic(shown, there)
    edges = [
        {"from": one.component, "to": name, "grouping": one.grouping, "stream": one.stream}
        for name, inputs in shown.subscriptions.items()
        for one in inputs
        if name in there and one.component in there
    ]
    assumed = [
        f"The counts are of the last {WINDOW_S // 60} min, and Storm samples them "
        "(topology.stats.sample.rate).",
        "CPU is Storm's capacity, the share of the time in execute(). A spout, an acker's queue "
        "and the rest of a JVM count as none, so there is less head-room.",
        "The size of tuples is not shown, so links do not count, and shares are of tuples.",
    ]
    if unknown := [host for host in hosts if host not in cores]:
        assumed.append(f"The CPU of {', '.join(unknown)} is not shown: 4 cores each.")
    if not stay:
        assumed.append(
            "What a bolt keeps is not shown: all are taken for movable. `nstorm check-topology "
            "JAR -o json` shows it, for --checked."
        )
    return Made(
        {
            "topology": shown.id,
            "time_s": 0.0,
            "components": [
                {"id": name, "parallelism": len(each), "kind": _kind(name, shown.components[name])}
                for name, each in there.items()
                if each
            ],
            "edges": [one for one in edges if there[one["from"]] and there[one["to"]]],
            "nodes": [
                {
                    "id": host,
                    "cpu_capacity": cores.get(host, DEFAULT_CPU / 100),
                    "cpu_others": others.get(host, 0.0),
                }
                for host in hosts
            ],
            "workers": [
                {"id": f"{host}:{port}", "node": host}
                for host, port in sorted({(one.host, one.port) for _, one in every})
            ],
            "executors": [
                {
                    "id": one.id.strip("[]"),
                    "component": name,
                    "worker": f"{one.host}:{one.port}",
                    "cpu": float(one.capacity),
                    "queue": 0,
                    "pinned": "Trident" if is_trident else _pinned(name, stay),
                }
                for name, one in every
            ],
            "traffic": [[source, target, tps] for (source, target), tps in traffic.items()],
        },
        split_tps / (sum(traffic.values()) or 1.0),
        tuple(assumed),
    )


def _kind(name: str, component: _Component) -> str:
    return "system" if name.startswith("__") else component.component_type


def _pinned(name: str, stay: Mapping[str, str]) -> str | None:
    if name.startswith("__") and name != "__acker":
        return "system component"
    return stay.get(name)


def _traffic(
    shown: UiTopology, there: Mapping[str, list[_Executor]]
) -> tuple[dict[tuple[str, str], float], float]:
    """Split what each component got over the executors of both; gives what had to be split."""
    found: dict[tuple[str, str], float] = defaultdict(float)
    split_tps = 0.0
    for name, component in shown.components.items():
        how = {(s.component, s.stream): s.grouping for s in shown.subscriptions.get(name, ())}
        for row in component.input_stats:
            senders, receivers = there.get(row.component, []), there[name]
            if not senders or not receivers or row.executed <= 0:
                continue
            up_s = max(one.uptime_seconds for one in receivers) or WINDOW_S
            tps = row.executed / min(WINDOW_S, up_s)
            stays_local = how.get((row.component, row.stream)) == "local_or_shuffle"
            for sender, share in _shares(senders, "transferred"):
                near = [one for one in receivers if (one.host, one.port) == _at(sender)]
                for receiver, part in _shares((stays_local and near) or receivers, "executed"):
                    found[sender.id.strip("[]"), receiver.id.strip("[]")] += tps * share * part
            if len(senders) > 1 and len(receivers) > 1:
                split_tps += tps
    return {pair: tps for pair, tps in found.items() if tps > 0}, split_tps


def _at(one: _Executor) -> tuple[str, int]:
    return one.host, one.port


def _shares(executors: Collection[_Executor], count: str) -> Iterable[tuple[_Executor, float]]:
    counts = [max(getattr(one, count), 0.0) for one in executors]
    whole = sum(counts)
    for one, amount in zip(executors, counts, strict=True):
        yield one, amount / whole if whole else 1 / len(counts)


def stays_of(checked: str) -> dict[str, dict[str, str]]:
    """Read what `nstorm check-topology -o json` printed: why the executors of components stay.

    Raises CommandError if that is something else.
    """
    try:
        return {
            topology["name"]: {
                one["component"]: one["why"]
                for one in topology["components"]
                if one["way"] == "stays"
            }
            for topology in json.loads(checked)
        }
    except (ValueError, KeyError, TypeError):
        raise CommandError(
            "--checked: not what `nstorm check-topology JAR -o json` prints"
        ) from None
