"""Reads the ``nstorm.*`` keys of storm.yaml, and refuses what it does not know.

A misspelt key that is silently ignored is worse than one that stops the start.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

import yaml

from controller.core.capacity import Capacity
from controller.core.excluded import Excluded
from controller.core.guards import Guard
from controller.core.limits import Limits
from controller.core.receivers import Receiver, without_arguments
from controller.core.resources import RESOURCES
from controller.errors import ControllerError
from controller.journal_place import keys_with_journal
from controller.policies.options import NAMES, Aniello, Options, TargetOptions
from controller.strict import joined
from controller.strict import read as strict_read
from controller.windows import checked
from kvstore.ensemble import Ensemble
from migration import ConfigError
from migration.access import ensemble
from migration.settings import (
    DEFAULT,
    PREFIX,
    Reader,
    fields_read,
    refuse_unknown,
    setting,
    values,
)
from migration.storm_yaml import load

T = TypeVar("T")


class Mode(StrEnum):
    """How far the controller goes without an operator."""

    OBSERVE = "observe"
    ADVISE = "advise"
    APPROVE = "approve"
    AUTO = "auto"


@dataclass(frozen=True, slots=True)
class JournalBounds:
    """Where the journal is kept, None for nowhere; what is older, or more than this, is deleted."""

    dir: Path | None = None
    days: float = setting("journal.days")
    size_mb: float = setting("journal.size.mb")


@dataclass(frozen=True, slots=True)
class Config:
    """The controller's settings; the defaults are in `migration.settings`."""

    mode: Mode = field(default_factory=lambda: Mode(DEFAULT["mode"]))
    # How far topologies may go by their own configuration; None: as far as `mode`.
    mode_max: Mode | None = None
    policy: str = setting("policy")
    cycle_s: float = setting("cycle.secs")
    lazy_kill_ms: int = setting("lazy.kill.ms")
    prepare_limit_s: float = setting("prepare.limit.secs")
    limits: Limits = field(default_factory=Limits)
    options: Options = field(default_factory=Options)
    max_moves: int = setting("max.moves.per.cycle")
    max_moves_hour: int | None = setting("max.moves.per.hour")
    max_moves_host_hour: int | None = setting("max.moves.per.host.hour")
    windows: tuple[str, ...] = ()
    guards: tuple[Guard, ...] = ()
    receivers: tuple[Receiver, ...] = ()  # of notices
    cooldown_s: float = setting("cooldown.executor.secs")
    min_age_s: float = setting("min.age.secs")
    ewma: float = setting("load.ewma")
    capacity: Capacity = field(default_factory=Capacity)
    excluded: Excluded = field(default_factory=Excluded)
    vetoes: bool = setting("vetoes")  # whether `decide` on a file keeps the rules of the live run
    journal: JournalBounds = field(default_factory=JournalBounds)
    # Every key with the value that was read or taken by default, for the journal.
    keys: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def keys_in_force(self) -> dict[str, Any]:
        """The keys of which `build` makes this configuration again, those of the command too."""
        found = {**self.keys, "mode": self.mode.value, "policy": self.policy}
        if found.get("notice"):  # the journal is read by more people than the storm.yaml
            found["notice"] = without_arguments(found["notice"])
        return found


def build(given: Mapping[str, Any]) -> Config:
    """Make a configuration of keys without the leading ``nstorm.``; the others have their defaults.

    Raises ConfigError, whose message starts with the key, if one is unknown or its value cannot be.
    """
    refuse_unknown(given)
    read = values(given, (Reader.CONTROLLER, Reader.DECIDE), {"policy": NAMES})
    for row in RESOURCES:
        if row.low not in given:
            # The upper limit alone may be lowered: the lower one goes down with it.
            read[row.low] = min(read[row.low], read[row.limit])
    folder = read["journal.dir"]
    return Config(
        **fields_read(Config, read),
        mode=Mode(read["mode"]),
        mode_max=Mode(read["mode.max"]) if "mode.max" in read else None,
        limits=_limits(read),
        capacity=Capacity(**fields_read(Capacity, read)),
        options=Options(
            Aniello(**fields_read(Aniello, read)),
            TargetOptions(**fields_read(TargetOptions, read)),
        ),
        windows=checked(read["windows"]),
        guards=tuple(_guards(read["guard"])),
        receivers=tuple(_receivers(read["notice"])),
        excluded=Excluded(
            frozenset(read["excluded.topologies"]),
            frozenset(read["excluded.components"]),
            frozenset(read["excluded.hosts"]),
        ),
        journal=JournalBounds(Path(folder) if folder else None, **fields_read(JournalBounds, read)),
        keys=read,
    )


def _records(key: str, given: Sequence[Any], kind: type[T]) -> Iterator[tuple[str, T]]:
    """Read the records of a key, each with its path; what is wrong is refused by place and key."""
    for row, one in enumerate(given):
        path = joined(f"{PREFIX}{key}", row)
        try:
            yield path, strict_read(one, kind, ControllerError, path)
        except ControllerError as error:
            raise ConfigError(str(error)) from None


def _guards(given: Sequence[Any]) -> Iterator[Guard]:
    for path, guard in _records("guard", given, Guard):
        if (guard.signal is None) == (guard.query is None):
            raise ConfigError(f"{path}: must have either signal or query")
        if (guard.query is None) != (guard.url is None):
            raise ConfigError(f"{path}.url: must be there with query, and only there")
        address = web_address(guard.url or "")
        if guard.url is not None and (address is None or address.query or address.fragment):
            raise ConfigError(
                f"{path}.url: must be http(s)://HOST[:PORT][/PATH] without a user, is {guard.url!r}"
            )
        yield guard


def _receivers(given: Sequence[Any]) -> Iterator[Receiver]:
    for path, one in _records("notice", given, Receiver):
        if sum(where is not None for where in (one.webhook, one.slack, one.mail)) != 1:
            raise ConfigError(f"{path}: must have one of webhook, slack and mail")
        if one.token is not None and one.webhook is None:
            raise ConfigError(f"{path}.token: must be there only with webhook")
        yield one


def web_address(text: str) -> SplitResult | None:
    """Split the address of a web server, without a user; None for anything else."""
    try:
        parts = urlsplit(text)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        return None
    is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
    return parts if is_one and has_port else None


def _limits(read: Mapping[str, Any]) -> Limits:
    for row in RESOURCES:
        if read[row.low] > read[row.limit]:
            raise ConfigError(
                f"{PREFIX}{row.low}: must be at most {PREFIX}{row.limit}, which is "
                f"{read[row.limit]:g}, is {read[row.low]:g}"
            )
    if not read["weight.node"] and not read["weight.worker"]:
        raise ConfigError(f"{PREFIX}weight.node: must be above 0 where {PREFIX}weight.worker is 0")
    return Limits(**fields_read(Limits, read))


def from_storm_yaml(document: Mapping[str, Any]) -> tuple[Config, Ensemble]:
    """Take out what concerns the controller, and the ZooKeeper where Storm keeps its nodes.

    Raises ConfigError as `build`, or if Storm's keys are of the wrong kind.
    """
    return build(keys_with_journal(document)), ensemble(document)


def keys_of(assignments: Sequence[str]) -> dict[str, Any]:
    """Take arguments such as ``load.high=0.9`` apart; the leading ``nstorm.`` may be left out.

    Raises ConfigError if one has no ``=``, or its value is not YAML.
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
