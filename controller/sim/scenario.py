"""Reads a scenario: one text file with its settings, what is expected, and the results below.

The head is YAML. `runs` names the runs to compare; each one is the head with its own keys laid
over it. Everything below the line `---` is written by ``nstorm simulate --rewrite``.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import yaml

from controller.config import Config, Mode
from controller.config import build as build_config
from controller.errors import ScenarioError
from controller.sim.fields import (
    choice,
    count,
    listed,
    mapping,
    number,
    refuse_unknown,
    section,
    written_number,
)
from controller.sim.flow.load import Metering
from controller.sim.flow.workload import WORKLOADS, SimulatedTopology
from controller.sim.flow.world import Feed, Hardware
from controller.sim.restart_cost import Delays, System
from migration import ConfigError
from migration.storm_yaml import load

MARKER = "---\n"


class What(StrEnum):
    """What may happen to the cluster during a run."""

    KILL = "kill"
    SLOW = "slow"
    FEED = "feed"
    KEYS = "keys"


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that nobody planned.

    Attributes
    ----------
    at_s : float
        When, or the first time if it comes again.
    every_s : float
        After how long it comes again; 0: never.
    who : str
        A worker (kill) or a node (slow).
    value : float
        Tuples per second (feed) or the part of the capacity that is left (slow).
    """

    at_s: float
    what: What
    every_s: float = 0.0
    who: str = ""
    value: float = 0.0


@dataclass(frozen=True, slots=True)
class Redeploy:
    """Random moves that keep the number of executors even (004, section 5.2)."""

    executors: int = 1
    every_s: float = field(default=60.0, metadata={"least": 0.1})
    first_s: float = 50.0


@dataclass(frozen=True, slots=True)
class RunSetting:
    """One run.

    Attributes
    ----------
    seconds, step_s : float
        How long, in steps of what.
    window_s : float
        Figures of the start are means over the first so many seconds after `warm_s`, figures of the
        end over the last ones.
    begin_s : float
        The controller's first cycle.
    redeploy : Redeploy or None
        Random moves, beside those of the controller.
    controller : Config or None
        None if nobody decides.
    """

    name: str
    topology: SimulatedTopology
    seconds: float
    step_s: float
    warm_s: float
    window_s: float
    begin_s: float
    system: System
    hardware: Hardware
    feed: Feed
    metering: Metering
    delays: Delays
    redeploy: Redeploy | None
    controller: Config | None
    happenings: tuple[Happening, ...]


@dataclass(frozen=True, slots=True)
class Expectation:
    """A comparison of two measures, or of one with a number."""

    text: str
    left: str
    sign: str
    right: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure from elsewhere to stand beside ours."""

    measure: str
    value: float
    source: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """All of a file's head.

    Attributes
    ----------
    baseline : str or None
        The run whose throughput the degradation of the others is measured by.
    """

    title: str
    seed: int
    runs: tuple[RunSetting, ...]
    baseline: str | None
    expect: tuple[Expectation, ...]
    figures: tuple[Figure, ...]

    def run(self, name: str) -> RunSetting:
        """Return a run by its name."""
        return next(setting for setting in self.runs if setting.name == name)


# What a run may say, each with its default where it is a plain number.
_NUMBERS = {"seconds": 120.0, "step_s": 0.1, "warm_s": 5.0, "window_s": 20.0, "begin_s": 5.0}
_SECTIONS: Mapping[str, type[Any]] = {
    "cluster": Hardware,
    "feed": Feed,
    "measure": Metering,
    "delays": Delays,
}
_RUN_KEYS = {*_NUMBERS, *_SECTIONS, "workload", "system", "redeploy", "controller", "events"}
_HEAD_KEYS = _RUN_KEYS | {"title", "seed", "runs", "baseline", "expect", "figures"}
_STEPS_MOST = 100_000


def split(text: str) -> tuple[str, str]:
    """Cut a file into what people write and what is generated.

    Returns
    -------
    head, results : str
        Without the marker; results are empty if there are none yet.
    """
    head, marker, results = text.partition(f"\n{MARKER}")
    return (head + "\n" if marker else text), results


def parse(text: str) -> Scenario:
    """Read a scenario.

    Raises
    ------
    ScenarioError
        The message starts with the key that is wrong.
    """
    try:
        head = load(split(text)[0])
    except yaml.YAMLError as error:
        raise ScenarioError(f"not YAML: {' '.join(str(error).split())}") from None
    head = mapping(head, "scenario")
    refuse_unknown(head, _HEAD_KEYS, "")
    common = {key: value for key, value in head.items() if key in _RUN_KEYS}
    named = mapping(head.get("runs", {"run": {}}), "runs")
    runs = []
    for name, keys in named.items():
        own = mapping(keys or {}, f"runs.{name}")
        refuse_unknown(own, _RUN_KEYS, f"runs.{name}.")
        runs.append(_setting(str(name), _laid_over(common, own)))
    if not runs:
        raise ScenarioError("runs: there is none")
    names = [setting.name for setting in runs]
    baseline = head.get("baseline")
    if baseline is not None and baseline not in names:
        raise ScenarioError(f"baseline: must be one of {', '.join(names)}, is {baseline!r}")
    return Scenario(
        title=str(head.get("title", "")),
        seed=count(head.get("seed", 1), 0, "seed"),
        runs=tuple(runs),
        baseline=baseline,
        expect=tuple(_expectation(line) for line in listed(head, "expect")),
        figures=tuple(_figure(line) for line in listed(head, "figures")),
    )


def _laid_over(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Let a run's keys win; sections are joined key by key."""
    both = {**common, **own}
    for key in (*_SECTIONS, "workload", "controller", "redeploy"):
        if isinstance(common.get(key), dict) and isinstance(own.get(key), dict):
            both[key] = {**common[key], **own[key]}
    return both


def _setting(name: str, given: Mapping[str, Any]) -> RunSetting:
    numbers = {key: number(given.get(key, usual), 0.0, key) for key, usual in _NUMBERS.items()}
    steps = numbers["seconds"] / max(numbers["step_s"], 1e-9)
    if not 1 <= steps <= _STEPS_MOST or numbers["step_s"] > 1:
        raise ScenarioError(
            f"step_s: must be at most 1 and make 1 to {_STEPS_MOST} steps of seconds, makes "
            f"{steps:.6g}"
        )
    if numbers["warm_s"] + numbers["window_s"] > numbers["seconds"]:
        raise ScenarioError("window_s: warm_s and window_s together are longer than seconds")
    hardware = section(Hardware, given.get("cluster", {}), "cluster")
    redeploy = given.get("redeploy")
    return RunSetting(
        name=name,
        **numbers,
        topology=_topology(given.get("workload")),
        system=System(choice(given.get("system", "nstorm"), list(System), "system")),
        hardware=hardware,
        feed=section(Feed, given.get("feed", {}), "feed"),
        metering=section(Metering, given.get("measure", {}), "measure"),
        delays=section(Delays, given.get("delays", {}), "delays"),
        redeploy=None if redeploy is None else section(Redeploy, redeploy, "redeploy"),
        controller=_controller(given.get("controller")),
        happenings=tuple(_happening(line, hardware) for line in listed(given, "events")),
    )


def _topology(given: Any) -> SimulatedTopology:
    given = mapping(given, "workload")
    name = choice(given.get("name"), list(WORKLOADS), "workload.name")
    own = {key: value for key, value in given.items() if key != "name"}
    topology: SimulatedTopology = section(WORKLOADS[name], own, "workload").topology()
    if all(part.kind != "bolt" for part in topology.parts):
        raise ScenarioError("workload: it has no bolt, so nothing could ever move")
    return topology


def _controller(given: Any) -> Config | None:
    if given is None:
        return None
    given = mapping(given, "controller")
    try:
        return replace(build_config(given), mode=Mode.AUTO)
    except ConfigError as error:
        raise ScenarioError(f"controller: {error}") from None


_EVENT = re.compile(
    r"(?P<when>at|every) (?P<s>\S+): (?P<what>kill|slow|feed|keys)(?P<rest>( \S+)*)"
)


def _happening(line: Any, hardware: Hardware) -> Happening:
    """Read such as `at 60: kill n0:6700` or `every 9: keys`."""
    found = _EVENT.fullmatch(str(line))
    usage = "at SECONDS: kill WORKER | slow NODE PART | feed TPS | keys, or every SECONDS: the same"
    if found is None:
        raise ScenarioError(f"events: {line!r} is not {usage}")
    what, words = What(found["what"]), found["rest"].split()
    time_s = written_number(found["s"], 0.0, f"events: {line!r}")
    nodes = [f"n{n}" for n in range(hardware.nodes)]
    workers = [f"{n}:{6700 + w}" for n in nodes for w in range(hardware.workers)]
    expected = {What.KILL: 1, What.SLOW: 2, What.FEED: 1, What.KEYS: 0}[what]
    if len(words) != expected or (found["when"] == "every" and time_s == 0):
        raise ScenarioError(f"events: {line!r} is not {usage}")
    who, value = "", 0.0
    if what in (What.KILL, What.SLOW):
        who = choice(words[0], workers if what is What.KILL else nodes, f"events: {line!r}")
    if what in (What.SLOW, What.FEED):
        value = written_number(words[-1], 0.0, f"events: {line!r}")
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
    value = written_number(found[2], -math.inf, f"figures: {line!r}")
    return Figure(found[1], value, found[3])
