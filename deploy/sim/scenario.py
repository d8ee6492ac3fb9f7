"""Reads a scenario: one text file with its settings, what is expected, and the results below.

The head is YAML. `runs` names the runs to compare; each one is the head with its own keys laid
over it. Everything below the line `---` is written by ``python -m deploy simulate --rewrite``.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import yaml
from msgspec import Meta, Struct

from controller.config import Config, Mode
from controller.config import build as build_config
from controller.core.quantities import MOST, Count, Name, Quantity
from controller.strict import joined, read
from deploy.sim import ScenarioError
from deploy.sim.flow.feed import Feed
from deploy.sim.flow.load import Metering
from deploy.sim.flow.nodes import Hardware, Neighbour
from deploy.sim.flow.workload import SimulatedTopology, Unbounded, Workload
from deploy.sim.restart_cost import Delays, System
from migration import ConfigError
from migration.storm_yaml import load

MARKER = "---\n"
FIRST = "sim"  # the name of the topology that a file with one has


class What(StrEnum):
    """What may happen to the cluster during a run."""

    KILL = "kill"
    SLOW = "slow"
    COSTLY = "costly"
    FEED = "feed"
    KEYS = "keys"
    DRAIN = "drain"
    UNDRAIN = "undrain"


@dataclass(frozen=True, slots=True)
class Happening:
    """Something unplanned that happens to the cluster."""

    at_s: float
    what: What
    every_s: float = 0.0  # after how long it comes again; 0: never
    who: str = ""  # a worker (kill) or a node (slow, drain, undrain)
    value: float = 0.0  # tuples per second (feed) or the part of the capacity that is left (slow)


class Redeploy(Struct, frozen=True, forbid_unknown_fields=True):
    """Random moves that keep the number of executors even (004, section 5.2)."""

    executors: Count = 1
    every_s: Annotated[float, Meta(ge=0.1, le=MOST)] = 60.0
    first_s: Quantity = 50.0


@dataclass(frozen=True, slots=True)
class SharedTopology:
    """A topology on nodes where others are too; `slots` is how many workers it has, None: all."""

    name: str
    topology: SimulatedTopology
    feed: Feed
    slots: int | None


@dataclass(frozen=True, slots=True)
class RunSetting:
    """One run."""

    name: str
    topology: SimulatedTopology
    seconds: float  # how long it is
    step_s: float
    warm_s: float
    # Figures of the start are means over the first window after `warm_s`, figures of the end over
    # the last one.
    window_s: float
    begin_s: float  # the controller's first cycle
    system: System
    hardware: Hardware
    feed: Feed
    metering: Metering
    delays: Delays
    redeploy: Redeploy | None  # random moves, apart from those of the controller
    controller: Config | None  # None: no controller decides
    happenings: tuple[Happening, ...]
    slots: int | None = None  # how many workers the topology has; None: all
    others: tuple[SharedTopology, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()


@dataclass(frozen=True, slots=True)
class Expectation:
    """A comparison of two measures, or of one with a number."""

    text: str
    left: str
    sign: str
    right: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure from elsewhere to compare with ours."""

    measure: str
    value: float
    source: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """All of a file's head; `baseline` names the run that degradation is measured against.

    `left_alone` names the run with Storm's own placement, with which the others are compared
    (`deploy.sim.fits`).
    """

    title: str
    seed: int
    runs: tuple[RunSetting, ...]
    baseline: str | None
    left_alone: str | None
    expect: tuple[Expectation, ...]
    figures: tuple[Figure, ...]


class _Other(Struct, forbid_unknown_fields=True, kw_only=True):
    """A topology on the same nodes as the first one."""

    workload: Workload
    feed: Feed = Feed()
    slots: Count


class _Keys(Struct, forbid_unknown_fields=True, kw_only=True):
    """What the head and a run may both have."""

    seconds: Quantity = 120.0
    step_s: Quantity = 0.1
    warm_s: Quantity = 5.0
    window_s: Quantity = 20.0
    begin_s: Quantity = 5.0
    cluster: Hardware = Hardware()
    feed: Feed = Feed()
    measure: Metering = Metering()
    delays: Delays = Delays()
    system: System = System.NSTORM
    redeploy: Redeploy | None = None
    controller: dict[str, Any] | None = None
    events: tuple[Any, ...] = ()
    slots: Count | None = None
    others: dict[Name, _Other] = {}
    neighbours: tuple[Neighbour, ...] = ()


class _RunKeys(_Keys, kw_only=True):
    """What a run may have, the head's keys among them."""

    workload: Workload


class _Head(_Keys, kw_only=True):
    """What a file may have; a part of the workload may stand in the runs."""

    workload: dict[str, Any] = {}
    title: Any = ""
    seed: Annotated[int, Meta(ge=0, le=int(MOST))] = 1
    runs: dict[Any, Any] = msgspec.field(default_factory=lambda: {"run": {}})
    baseline: str | None = None
    left_alone: str | None = None
    expect: tuple[Any, ...] = ()
    figures: tuple[Any, ...] = ()


# Of these a run's keys are laid over the head's one by one.
_SECTIONS = ("cluster", "feed", "measure", "delays", "workload", "controller", "redeploy")
_STEPS_MOST = 100_000


def split(text: str) -> tuple[str, str]:
    """Cut a file into what people write and what is generated, without the marker.

    Results are empty if there are none yet.
    """
    head, marker, results = text.partition(f"\n{MARKER}")
    return (head + "\n" if marker else text), results


def parse(text: str) -> Scenario:
    """Read a scenario; raises ScenarioError, whose message starts with the key that is wrong."""
    try:
        document = _whole(load(split(text)[0]))
    except yaml.YAMLError as error:
        raise ScenarioError(f"not YAML: {' '.join(str(error).split())}") from None
    head = read(document, _Head, ScenarioError)
    common = {key: value for key, value in document.items() if key in _RunKeys.__struct_fields__}
    has_runs = "runs" in document
    runs = tuple(
        _setting(str(name), common, own or {}, joined("runs", str(name)) if has_runs else "")
        for name, own in head.runs.items()
    )
    if not runs:
        raise ScenarioError("runs: there is none")
    names = [setting.name for setting in runs]
    for key, named in (("baseline", head.baseline), ("left_alone", head.left_alone)):
        if named is not None and named not in names:
            raise ScenarioError(f"{key}: must be one of {', '.join(names)}, is {named!r}")
    return Scenario(
        title=str(head.title),
        seed=head.seed,
        runs=runs,
        baseline=head.baseline,
        left_alone=head.left_alone,
        expect=tuple(map(_expectation, head.expect)),
        figures=tuple(map(_figure, head.figures)),
    )


def _whole(value: Any) -> Any:
    """Take 6e2 for a whole number too, which YAML does not."""
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _laid_over(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Let a run's keys win; sections are joined key by key."""
    both = {**common, **own}
    for key in _SECTIONS:
        if isinstance(common.get(key), dict) and isinstance(own.get(key), dict):
            both[key] = {**common[key], **own[key]}
    return both


def _setting(name: str, common: Mapping[str, Any], own: Any, path: str) -> RunSetting:
    document = _laid_over(common, read(own, dict[str, Any], ScenarioError, path))
    given = read(document, _RunKeys, ScenarioError, path)
    _refuse_what_cannot_be(given)
    return RunSetting(
        name=name,
        topology=_topology(given.workload),
        seconds=given.seconds,
        step_s=given.step_s,
        warm_s=given.warm_s,
        window_s=given.window_s,
        begin_s=given.begin_s,
        system=given.system,
        hardware=given.cluster,
        feed=given.feed,
        metering=given.measure,
        delays=given.delays,
        redeploy=given.redeploy,
        controller=_controller(given.controller),
        happenings=tuple(_happening(line, given.cluster) for line in given.events),
        slots=given.slots,
        others=tuple(
            SharedTopology(other, _topology(one.workload), one.feed, one.slots)
            for other, one in given.others.items()
        ),
        neighbours=given.neighbours,
    )


def _refuse_what_cannot_be(given: _RunKeys) -> None:
    steps = given.seconds / max(given.step_s, 1e-9)
    if not 1 <= steps <= _STEPS_MOST or given.step_s > 1:
        raise ScenarioError(
            f"step_s: must be at most 1 and make 1 to {_STEPS_MOST} steps of seconds, makes "
            f"{steps:.6g}"
        )
    if given.warm_s + given.window_s > given.seconds:
        raise ScenarioError("window_s: warm_s and window_s together are longer than seconds")
    if not math.isinf(given.cluster.link_tps) and not math.isinf(given.cluster.link_bytes_s):
        raise ScenarioError(
            "cluster: link_tps and link_bytes_s bound the same links: leave one out"
        )
    if FIRST in given.others:
        raise ScenarioError(f"others: {FIRST} is the name of the first topology")
    if given.others and given.slots is None:
        raise ScenarioError("slots: must be given where there are other topologies")
    nodes = [f"n{n}" for n in range(given.cluster.nodes)]
    for neighbour in given.neighbours:
        if neighbour.node not in nodes:
            raise ScenarioError(
                f"neighbours: must be on one of {', '.join(nodes)}, is on {neighbour.node!r}"
            )


def _topology(workload: Workload) -> SimulatedTopology:
    topology = workload.topology()
    if all(part.kind != "bolt" for part in topology.parts):
        raise ScenarioError("workload: it has no bolt, so nothing could ever move")
    return topology


def _controller(given: dict[str, Any] | None) -> Config | None:
    if given is None:
        return None
    try:
        return replace(build_config(given), mode=Mode.AUTO)
    except ConfigError as error:
        raise ScenarioError(f"controller: {error}") from None


_EVENT = re.compile(rf"(?P<when>at|every) (?P<s>\S+): (?P<what>{'|'.join(What)})(?P<rest>( \S+)*)")


def _happening(line: Any, hardware: Hardware) -> Happening:
    """Read such as `at 60: kill n0:6700` or `every 9: keys`."""
    found = _EVENT.fullmatch(str(line))
    usage = (
        "at SECONDS: kill WORKER | slow NODE PART | costly NODE TIMES | feed TPS | keys | "
        "drain NODE | undrain NODE, or every SECONDS: the same"
    )
    if found is None:
        raise ScenarioError(f"events: {line!r} is not {usage}")
    what, words = What(found["what"]), found["rest"].split()
    time_s = _number(found["s"], Quantity, f"events: {line!r}")
    nodes = [f"n{n}" for n in range(hardware.nodes)]
    workers = [f"{n}:{6700 + w}" for n in nodes for w in range(hardware.workers)]
    expected = {What.SLOW: 2, What.COSTLY: 2, What.KEYS: 0}.get(what, 1)
    if len(words) != expected or (found["when"] == "every" and time_s == 0):
        raise ScenarioError(f"events: {line!r} is not {usage}")
    who, value = "", 0.0
    if what not in (What.FEED, What.KEYS):
        who, known = words[0], workers if what is What.KILL else nodes
        if who not in known:
            raise ScenarioError(f"events: {line!r}: must be one of {', '.join(known)}, is {who!r}")
    if what in (What.SLOW, What.COSTLY, What.FEED):
        value = _number(words[-1], Unbounded, f"events: {line!r}")
    return Happening(time_s, what, time_s if found["when"] == "every" else 0.0, who, value)


_COMPARISON = re.compile(r"(\S+) (<=|>=|<|>) (\S+)")


def _expectation(line: Any) -> Expectation:
    found = _COMPARISON.fullmatch(str(line))
    if found is None:
        raise ScenarioError(f"expect: {line!r} is not RUN.MEASURE SIGN NUMBER-OR-RUN.MEASURE")
    return Expectation(str(line), found[1], found[2], found[3])


_FIGURE = re.compile(r"(\S+) is (\S+) in (.+)")


def _figure(line: Any) -> Figure:
    found = _FIGURE.fullmatch(str(line))
    if found is None:
        raise ScenarioError(f"figures: {line!r} is not RUN.MEASURE is NUMBER in SOURCE")
    return Figure(found[1], _number(found[2], float, f"figures: {line!r}"), found[3])


def _number(text: str, kind: Any, path: str) -> float:
    """Read a number that stands within a line."""
    try:
        value = load(text)
    except yaml.YAMLError:
        value = text
    found: float = read(value, kind, ScenarioError, path)
    return found
