"""Which settings are tried: a grid of values where it is small, else a fixed sample of it."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import yaml

from controller.config import Config, build
from controller.errors import TuneError
from migration import ConfigError
from migration.settings import PREFIX, SETTINGS, TRIED, TUNABLE
from migration.storm_yaml import load, problem

Values = Mapping[str, tuple[Any, ...]]

SETS = 200
_ONLY_FOR = {row.key: row.only_for for row in SETTINGS if row.only_for}


@dataclass(frozen=True, slots=True)
class Space:
    # by key of storm.yaml without ``nstorm.``
    values: Values = field(default_factory=lambda: TRIED)
    sets: int = SETS  # how many parameter sets at most

    @property
    def combinations(self) -> int:
        """How many there are of one value a key."""
        return prod(map(len, self.values.values()))

    def narrowed(self, today: Mapping[str, Any]) -> "Space":
        """Fit the default space: with the absolute threshold where that is in force."""
        values = dict(self.values)
        tps = today.get("asc.threshold.tps")
        if tps is not None:
            del values["asc.threshold"]
            values["asc.threshold.tps"] = tuple(tps * f for f in (0.25, 0.5, 1.0, 2.0, 4.0))
        return Space(values, self.sets)


@dataclass(frozen=True, slots=True)
class ParameterSet:
    """Settings that are tried together."""

    # what differs from today, in the order of `TUNABLE`; empty for today's settings
    changes: tuple[tuple[str, Any], ...]
    config: Config  # with all that stays

    @property
    def name(self) -> str:
        """The changes in one line."""
        return ", ".join(f"{key}={value}" for key, value in self.changes) or "as today (mode auto)"


def without_moves(today: Mapping[str, Any], topologies: Iterable[str]) -> ParameterSet:
    """Make the yardstick of all sets: nstorm moves nothing of these topologies."""
    changes = (("excluded.topologies", sorted(set(topologies))),)
    return ParameterSet(changes, build({**today, **dict(changes)}))


def read_space(path: Path) -> Space:
    """Read a space from YAML or JSON: only what is in the file.

    It has keys of storm.yaml, each with a list of values, and perhaps ``sets``, how many to try.
    Raises `TuneError` where it cannot be read, `ConfigError` where a key or a value cannot be
    tuned.
    """
    try:
        document = load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise TuneError(f"{path}: {problem(error)}") from None
    if not isinstance(document, dict) or not document:
        raise TuneError(f"{path}: must hold keys of storm.yaml, each with a list of values")
    given = {str(key).removeprefix(PREFIX): value for key, value in document.items()}
    sets = given.pop("sets", SETS)
    if not isinstance(sets, int) or isinstance(sets, bool) or sets < 1:
        raise ConfigError(f"{path}: sets: must be a whole number of at least 1, is {sets!r}")
    return Space({key: _values(path, key, value) for key, value in given.items()}, sets)


def _values(path: Path, key: str, value: Any) -> tuple[Any, ...]:
    if key not in TUNABLE:
        near = difflib.get_close_matches(key, TUNABLE, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(TUNABLE)}"
        raise ConfigError(f"{path}: {key}: cannot be tuned, {hint}")
    values = value if isinstance(value, list) else [value]
    if not values:
        raise ConfigError(f"{path}: {key}: has no value to try")
    for one in values:
        try:
            build({"load.high": 1.0, key: one})
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None
    return tuple(values)


def parameter_sets(space: Space, today: Mapping[str, Any]) -> list[ParameterSet]:
    """List what is tried; the same for the same space and day.

    Today's settings come first, then all combinations. Where these are too many, each value comes
    alone, and then a sample in which every second key stays as it is today. Raises `ConfigError`
    where a key is to vary that another one in force makes void.
    """
    if "asc.threshold" in space.values and today.get("asc.threshold.tps") is not None:
        raise ConfigError(
            f"{PREFIX}asc.threshold: counts for nothing while {PREFIX}asc.threshold.tps is set; "
            "let that vary instead"
        )
    found: dict[tuple[tuple[str, Any], ...], Config] = {(): build(today)}
    for row in _all(space) if space.combinations <= space.sets else _sampled(space):
        if len(found) > space.sets:
            break
        changes = _changes(row, today)
        try:
            found.setdefault(changes, build({**today, **dict(changes)}))
        except ConfigError:  # values that each can be, but not together
            continue
    return [ParameterSet(changes, config) for changes, config in found.items()]


def _all(space: Space) -> Iterator[dict[str, Any]]:
    return (dict(zip(space.values, row, strict=True)) for row in product(*space.values.values()))


def _sampled(space: Space) -> Iterator[dict[str, Any]]:
    for key, values in space.values.items():
        yield from ({key: value} for value in values)
    # Late: a file that is refused needs none of it.
    import numpy as np  # noqa: PLC0415

    random = np.random.default_rng(0)
    for _ in range(20 * space.sets):
        yield {
            key: values[random.integers(len(values))]
            for key, values in space.values.items()
            if random.random() < 0.5
        }


def _changes(row: Mapping[str, Any], today: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Leave out what is so today, and keys that the policy does not read."""
    after = {**today, **row}
    changed = {
        key: value
        for key, value in row.items()
        if today.get(key) != value and _ONLY_FOR.get(key, after["policy"]) == after["policy"]
    }
    high, low = after.get("load.high"), after.get("load.low")
    if after["policy"] != "otd" and high is not None and low is not None and low > high:
        changed["load.low"] = high
    return tuple((key, changed[key]) for key in TUNABLE if key in changed)
