"""Reads the ``nstorm.*`` keys of storm.yaml, and refuses what it does not know.

A misspelt key that is silently ignored is worse than one that stops the start.
"""

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import yaml

from controller.core.classify import Limits
from controller.errors import ConfigError
from controller.policies import NAMES, Options

PREFIX = "nstorm."
# Keys of the agent and of the hooks, which read them themselves.
FOREIGN_KEYS = frozenset(
    {
        "agent.sync.secs",
        "load.secs",
        "reconcile",
        "store.dir",
        "supervisor.id",
        "worker.poll.ms",
    }
)

T = TypeVar("T")


class Mode(StrEnum):
    """How far the controller goes by itself."""

    OBSERVE = "observe"
    ADVISE = "advise"
    AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Excluded:
    """What is never touched, by name."""

    topologies: frozenset[str] = frozenset()
    components: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Config:
    """The controller's settings; the defaults are in README's table of keys.

    Attributes
    ----------
    worker_capacity_cores : float or None
        Capacity of every worker; None divides a node's CPU by its slots in use.
    vetoes : bool
        Whether `decide` on a file keeps the rules of the live run.
    """

    mode: Mode = Mode.ADVISE
    policy: str = "safe"
    cycle_s: float = 5.0
    lazy_kill_ms: int = 2000
    limits: Limits = field(default_factory=Limits)
    options: Options = field(default_factory=Options)
    max_moves: int = 1
    cooldown_s: float = 60.0
    ewma: float = 0.3
    worker_capacity_cores: float | None = None
    excluded: Excluded = field(default_factory=Excluded)
    vetoes: bool = False


@dataclass(frozen=True, slots=True)
class Storm:
    """Where Storm's ZooKeeper is."""

    hosts: str
    root: str


class _Reader:
    """Takes values out by key and notes which keys there are."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = given
        self.known: set[str] = set(FOREIGN_KEYS)

    def _take(self, key: str, otherwise: T, check: Callable[[Any], T | None], must: str) -> T:
        self.known.add(key)
        if key not in self.given:
            return otherwise
        value = check(self.given[key])
        if value is None:
            raise ConfigError(f"{PREFIX}{key}: must be {must}, is {self.given[key]!r}")
        return value

    def number(
        self, key: str, otherwise: float, least: float = 0.0, most: float = math.inf
    ) -> float:
        def check(value: Any) -> float | None:
            return float(value) if _is_number(value) and least <= value <= most else None

        must = f"a number of at least {least:g}"
        return self._take(key, otherwise, check, must + (f" and at most {most:g}" * (most < 1e9)))

    def optional_number(self, key: str) -> float | None:
        self.known.add(key)
        return None if self.given.get(key) is None else self.number(key, 0.0)

    def count(self, key: str, otherwise: int, least: int) -> int:
        def check(value: Any) -> int | None:
            fits = _is_number(value) and value == int(value) and value >= least
            return int(value) if fits else None

        return self._take(key, otherwise, check, f"a whole number of at least {least}")

    def choice(self, key: str, otherwise: str, choices: Sequence[str]) -> str:
        must = f"one of {', '.join(choices)}"
        return self._take(key, otherwise, lambda v: v if v in choices else None, must)

    def names(self, key: str) -> frozenset[str]:
        def check(value: Any) -> frozenset[str] | None:
            texts = isinstance(value, list) and all(isinstance(v, str) for v in value)
            return frozenset(value) if texts else None

        return self._take(key, frozenset(), check, "a list of names")

    def switch(self, key: str, otherwise: bool) -> bool:
        return self._take(
            key, otherwise, lambda v: v if isinstance(v, bool) else None, "true or false"
        )

    def refuse_unknown(self) -> None:
        for key in self.given:
            if key not in self.known:
                near = difflib.get_close_matches(key, sorted(self.known), n=1)
                hint = f", did you mean {PREFIX}{near[0]}?" if near else ""
                raise ConfigError(f"{PREFIX}{key}: unknown key{hint}")


def build(given: Mapping[str, Any]) -> Config:
    """Make a configuration of keys.

    Parameters
    ----------
    given : mapping of str to value
        Keys without the leading ``nstorm.``.

    Returns
    -------
    Config
        With the defaults for what is not given.

    Raises
    ------
    ConfigError
        A key is unknown or its value cannot be; the message starts with the key.
    """
    read = _Reader(given)
    plain = Config()
    limits = Limits(
        high_frac=read.number("load.high", plain.limits.high_frac, least=0.01, most=1.0),
        low_frac=read.number("load.low", plain.limits.low_frac, most=1.0),
        gain_frac=read.number("asc.threshold", plain.limits.gain_frac, most=1.0),
        gain_tps=read.optional_number("asc.threshold.tps"),
        weight_node=read.number("weight.node", plain.limits.weight_node),
        weight_worker=read.number("weight.worker", plain.limits.weight_worker),
    )
    config = Config(
        mode=Mode(read.choice("mode", plain.mode, list(Mode))),
        policy=read.choice("policy", plain.policy, NAMES),
        cycle_s=read.number("cycle.secs", plain.cycle_s, least=0.1),
        lazy_kill_ms=read.count("lazy.kill.ms", plain.lazy_kill_ms, least=0),
        limits=limits,
        max_moves=read.count("max.moves.per.cycle", plain.max_moves, least=1),
        cooldown_s=read.number("cooldown.executor.secs", plain.cooldown_s),
        ewma=read.number("load.ewma", plain.ewma, least=0.01, most=1.0),
        worker_capacity_cores=read.optional_number("worker.cpu.capacity") or None,
        excluded=Excluded(
            read.names("excluded.topologies"),
            read.names("excluded.components"),
            read.names("excluded.hosts"),
        ),
        vetoes=read.switch("vetoes", plain.vetoes),
    )
    read.refuse_unknown()
    return config


def read_storm_yaml(path: Path) -> dict[str, Any]:
    """Read a storm.yaml.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict of str to value
        All its keys.

    Raises
    ------
    ConfigError
        It cannot be read or holds no mapping.
    """
    try:
        document = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: {' '.join(str(error).split())}") from None
    if document is None:
        return {}
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise ConfigError(f"{path}: must hold keys with values, like Storm's own")
    return document


def from_storm_yaml(document: Mapping[str, Any]) -> tuple[Config, Storm]:
    """Take out what concerns the controller.

    Parameters
    ----------
    document : mapping of str to value
        A storm.yaml.

    Returns
    -------
    Config
        Of the ``nstorm.*`` keys.
    Storm
        Of Storm's own keys, with Storm's defaults.

    Raises
    ------
    ConfigError
        As `build`, or Storm's keys are of the wrong kind.
    """
    own = {k.removeprefix(PREFIX): v for k, v in document.items() if k.startswith(PREFIX)}
    if "vetoes" in own:
        raise ConfigError(f"{PREFIX}vetoes: only for `nstorm decide`; a live run always has them")
    servers = document.get("storm.zookeeper.servers", ["localhost"])
    port = document.get("storm.zookeeper.port", 2181)
    root = document.get("storm.zookeeper.root", "/storm")
    if not isinstance(servers, list) or not servers:
        raise ConfigError("storm.zookeeper.servers: must be a list of hosts")
    if not isinstance(port, int) or not isinstance(root, str):
        raise ConfigError("storm.zookeeper.port must be a number, storm.zookeeper.root a path")
    return build(own), Storm(",".join(f"{server}:{port}" for server in servers), root)


def from_assignments(assignments: Sequence[str]) -> Config:
    """Read ``key=value`` arguments of the command line.

    Parameters
    ----------
    assignments : sequence of str
        Such as ``load.high=0.9``; the leading ``nstorm.`` may be left out.

    Returns
    -------
    Config
        With the defaults for what is not given.

    Raises
    ------
    ConfigError
        As `build`, or an argument has no ``=``.
    """
    given: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals:
            raise ConfigError(f"{assignment!r}: must be key=value")
        # YAML 1.1 reads on and off as truth values, which is what people type.
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            raise ConfigError(f"{assignment!r}: the value is not YAML") from None
        given[key.strip().removeprefix(PREFIX)] = value
    return build(given)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
