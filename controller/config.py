"""Reads the ``nstorm.*`` keys of storm.yaml, and refuses what it does not know.

A misspelt key that is silently ignored is worse than one that stops the start.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import yaml

from controller.core.classify import Limits
from controller.core.veto import Excluded
from controller.policies import NAMES, Options
from migration import ConfigError
from migration.storm_yaml import PREFIX, load, own_keys, refuse_unknown, storm_zookeeper

# Known to nobody but `nstorm decide`.
VETOES = "vetoes"

T = TypeVar("T")


class Mode(StrEnum):
    """How far the controller goes by itself."""

    OBSERVE = "observe"
    ADVISE = "advise"
    AUTO = "auto"


@dataclass(frozen=True, slots=True)
class JournalBounds:
    """Where the journal is kept, and how much of it.

    Attributes
    ----------
    dir : Path or None
        None keeps none.
    days, size_mb : float
        What is older, or more than this, is deleted.
    """

    dir: Path | None = None
    days: float = 14.0
    size_mb: float = 1024.0


@dataclass(frozen=True, slots=True)
class Config:
    """The controller's settings; the defaults are in README's table of keys.

    Attributes
    ----------
    worker_capacity_cores : float or None
        Capacity of every worker; None divides a node's CPU by its slots in use.
    link_tps : float or None
        What can go from one node to another, for the head-room; None if that is not known.
    vetoes : bool
        Whether `decide` on a file keeps the rules of the live run.
    journal : JournalBounds
        Where each tick is written down.
    keys : mapping of str to value
        Every key with the value that was read or taken by default, for the journal.
    """

    mode: Mode = Mode.ADVISE
    policy: str = "safe"
    cycle_s: float = 5.0
    lazy_kill_ms: int = 2000
    limits: Limits = field(default_factory=Limits)
    options: Options = field(default_factory=Options)
    max_moves: int = 1
    # Longer than twenty cycles: noise brings fewer executors back to the node they left.
    cooldown_s: float = 105.0
    ewma: float = 0.3
    worker_capacity_cores: float | None = None
    link_tps: float | None = None
    excluded: Excluded = field(default_factory=Excluded)
    vetoes: bool = False
    journal: JournalBounds = field(default_factory=JournalBounds)
    keys: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def keys_in_force(self) -> dict[str, Any]:
        """What `build` makes this configuration of again, after an argument of the command too."""
        return {**self.keys, "mode": self.mode.value, "policy": self.policy}


class _Reader:
    """Takes values out by key and notes them."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = given
        self.values: dict[str, Any] = {}

    def _take(self, key: str, otherwise: T, check: Callable[[Any], T | None], must: str) -> T:
        value = check(self.given[key]) if key in self.given else otherwise
        if value is None:
            raise ConfigError(f"{PREFIX}{key}: must be {must}, is {self.given[key]!r}")
        self.values[key] = sorted(value) if isinstance(value, frozenset) else value
        return value

    def number(self, key: str, otherwise: float, least: float = 0.0, most: float = 1e9) -> float:
        def check(value: Any) -> float | None:
            return float(value) if _is_number(value) and least <= value <= most else None

        must = f"a number of at least {least:g} and at most {most:,.10g}"
        return self._take(key, otherwise, check, must)

    def optional_number(self, key: str, least: float = 0.0, most: float = 1e9) -> float | None:
        return None if self.given.get(key) is None else self.number(key, 0.0, least, most)

    def count(self, key: str, otherwise: int, least: int, most: int) -> int:
        def check(value: Any) -> int | None:
            fits = _is_number(value) and least <= value <= most and value == int(value)
            return int(value) if fits else None

        must = f"a whole number of at least {least} and at most {most:,}"
        return self._take(key, otherwise, check, must)

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

    def folder(self, key: str) -> Path | None:
        def check(value: Any) -> str | None:
            # YAML 1.1 reads off as false.
            return value if isinstance(value, str) else "" if value is False else None

        text = self._take(key, "", check, "a directory, or off")
        return Path(text) if text else None


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
    refuse_unknown(given, also={VETOES})
    read = _Reader(given)
    plain = Config()
    return Config(
        mode=Mode(read.choice("mode", plain.mode, list(Mode))),
        policy=read.choice("policy", plain.policy, NAMES),
        cycle_s=read.number("cycle.secs", plain.cycle_s, least=0.1, most=3600.0),
        lazy_kill_ms=read.count("lazy.kill.ms", plain.lazy_kill_ms, least=0, most=3_600_000),
        limits=_limits(read, plain.limits),
        options=_options(read, plain.options),
        max_moves=read.count("max.moves.per.cycle", plain.max_moves, least=1, most=1000),
        cooldown_s=read.number("cooldown.executor.secs", plain.cooldown_s),
        ewma=read.number("load.ewma", plain.ewma, least=0.01, most=1.0),
        worker_capacity_cores=read.optional_number("worker.cpu.capacity", least=0.01),
        link_tps=read.optional_number("link.capacity.tps", least=0.01),
        excluded=Excluded(
            read.names("excluded.topologies"),
            read.names("excluded.components"),
            read.names("excluded.hosts"),
        ),
        vetoes=read.switch(VETOES, plain.vetoes),
        journal=JournalBounds(
            read.folder("journal.dir"),
            read.number("journal.days", plain.journal.days, least=0.01),
            read.number("journal.size.mb", plain.journal.size_mb, least=1.0),
        ),
        keys=read.values,
    )


def _limits(read: _Reader, plain: Limits) -> Limits:
    high_frac = read.number("load.high", plain.high_frac, least=0.01, most=1.0)
    # Whoever lowers the upper limit alone means no harm: the lower one goes down with it.
    low_frac = read.number("load.low", min(plain.low_frac, high_frac), most=1.0)
    if low_frac > high_frac:
        raise ConfigError(
            f"{PREFIX}load.low: must be at most {PREFIX}load.high, which is {high_frac:g}, "
            f"is {low_frac:g}"
        )
    weight_node = read.number("weight.node", plain.weight_node)
    weight_worker = read.number("weight.worker", plain.weight_worker)
    if not weight_node and not weight_worker:
        raise ConfigError(f"{PREFIX}weight.node: must be above 0 where {PREFIX}weight.worker is 0")
    return replace(
        plain,
        high_frac=high_frac,
        low_frac=low_frac,
        gain_frac=read.number("asc.threshold", plain.gain_frac, most=1.0),
        gain_tps=read.optional_number("asc.threshold.tps"),
        weight_node=weight_node,
        weight_worker=weight_worker,
    )


def _options(read: _Reader, plain: Options) -> Options:
    aniello = replace(
        plain.aniello,
        alpha=read.number("aniello.alpha", plain.aniello.alpha, most=1.0),
        beta=read.number("aniello.beta", plain.aniello.beta, most=1.0),
        gamma=read.optional_number("aniello.gamma", least=1.0),
        delta=read.optional_number("aniello.delta", most=1.0),
        spread=read.optional_number("aniello.spread", most=1.0),
    )
    target = replace(
        plain.target,
        gain_frac=read.number("target.gain", plain.target.gain_frac, most=1.0),
        move_price_frac=read.number("target.move.price", plain.target.move_price_frac, most=1.0),
        fill_frac=read.number("target.fill", plain.target.fill_frac, least=0.1, most=1.0),
    )
    return Options(aniello=aniello, target=target)


def from_storm_yaml(document: Mapping[str, Any]) -> tuple[Config, str]:
    """Take out what concerns the controller.

    Parameters
    ----------
    document : mapping of str to value
        A storm.yaml.

    Returns
    -------
    Config
        Of the ``nstorm.*`` keys.
    str
        Where Storm keeps its nodes in ZooKeeper.

    Raises
    ------
    ConfigError
        As `build`, or Storm's keys are of the wrong kind.
    """
    own = own_keys(document)
    if VETOES in own:
        raise ConfigError(f"{PREFIX}{VETOES}: only for `nstorm decide`; a live run always has them")
    if isinstance(document.get("storm.local.dir"), str):
        own.setdefault("journal.dir", str(Path(document["storm.local.dir"]) / "nstorm-journal"))
    return build(own), storm_zookeeper(document)


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
        As `build`, or as `keys_of`.
    """
    return build(keys_of(assignments))


def keys_of(assignments: Sequence[str]) -> dict[str, Any]:
    """Take ``key=value`` arguments apart.

    Parameters
    ----------
    assignments : sequence of str
        Such as ``load.high=0.9``; the leading ``nstorm.`` may be left out.

    Returns
    -------
    dict of str to value
        What `build` reads.

    Raises
    ------
    ConfigError
        An argument has no ``=``, or its value is not YAML.
    """
    given: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals:
            raise ConfigError(f"{assignment!r}: must be key=value")
        # YAML 1.1 reads on and off as truth values, which is what people type.
        try:
            value = load(text)
        except yaml.YAMLError:
            raise ConfigError(f"{assignment!r}: the value is not YAML") from None
        given[key.strip().removeprefix(PREFIX)] = value
    return given


def _is_number(value: Any) -> bool:
    # Bounds refuse what is infinite; what is no number at all passes no comparison.
    return isinstance(value, int | float) and not isinstance(value, bool)
