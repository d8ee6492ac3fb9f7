"""Reads what the agent needs from storm.yaml, and refuses `nstorm.` keys that nobody knows."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from agent.errors import ConfigError

PREFIX = "nstorm."
# One storm.yaml serves a whole node, so it may hold what the controller and the hooks read.
_FOREIGN = """
    aniello.alpha aniello.beta aniello.delta aniello.gamma aniello.spread asc.threshold
    asc.threshold.tps cooldown.executor.secs cycle.secs excluded.components excluded.hosts
    excluded.topologies journal.days journal.dir journal.size.mb lazy.kill.ms link.capacity.tps
    load.ewma load.high load.low max.moves.per.cycle mode policy target.fill target.gain
    target.move.price weight.node weight.worker worker.cpu.capacity worker.poll.ms
"""
FOREIGN_KEYS = frozenset(PREFIX + key for key in _FOREIGN.split())
_POLL = f"{PREFIX}worker.poll.ms"
_STORE, _ID = f"{PREFIX}store.dir", f"{PREFIX}supervisor.id"
_SYNC, _LOAD = f"{PREFIX}agent.sync.secs", f"{PREFIX}load.secs"
OWN_KEYS = frozenset({_STORE, _ID, _SYNC, _LOAD})


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """The agent's settings.

    Parameters
    ----------
    hosts : str
        ZooKeeper, ``host:port`` with commas.
    store_dir : Path
        Where the stores of this node are.
    supervisor : str or None
        The node's supervisor id; None to take it from what the JVMs say.
    sync_s : float
        The period of the poll that finds plans if a watch was missed.
    load_s : float
        The period of the load reports.
    """

    hosts: str
    store_dir: Path
    supervisor: str | None = None
    sync_s: float = 3.0
    load_s: float = 2.0


def read(path: Path) -> AgentConfig:
    """Read a storm.yaml.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    AgentConfig
        Its settings.

    Raises
    ------
    ConfigError
        If the file cannot be read, or as `from_storm_yaml`.
    """
    try:
        document = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        why = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise ConfigError(f"{path}: {why}") from error
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: must hold keys with values, like Storm's own")
    return from_storm_yaml({str(key): value for key, value in document.items()})


def from_storm_yaml(document: Mapping[str, Any]) -> AgentConfig:
    """Take out what concerns the agent.

    Parameters
    ----------
    document : mapping of str to value
        A storm.yaml.

    Returns
    -------
    AgentConfig
        With the defaults for what is not given.

    Raises
    ------
    ConfigError
        If an `nstorm.` key is unknown, or a value is of the wrong kind.
    """
    for key, value in document.items():
        if key == "nstorm" or (key.startswith(PREFIX) and isinstance(value, dict)):
            raise ConfigError(
                f"{key}: keys within keys are not read; write each flat, like Storm's own: "
                f"{_flat(key, value)}"
            )
        if key.startswith(PREFIX) and key not in FOREIGN_KEYS | OWN_KEYS:
            near = difflib.get_close_matches(key, FOREIGN_KEYS | OWN_KEYS, n=1)
            raise ConfigError(f"{key}: unknown key" + (f"; is it {near[0]}?" if near else ""))
    _check_poll(document)
    return AgentConfig(
        _hosts(document),
        _store_dir(document),
        None if document.get(_ID) is None else _text(document, _ID),
        _period_s(document, _SYNC, 3.0),
        _period_s(document, _LOAD, 2.0),
    )


def _flat(key: str, value: Any) -> str:
    while isinstance(value, dict) and value:
        name, value = next(iter(value.items()))
        key = f"{key}.{name}"
    return f"{PREFIX}load.secs: 2" if value is None else f"{key}: {value}"


def _hosts(document: Mapping[str, Any]) -> str:
    key = "storm.zookeeper.servers"
    servers, port = document.get(key, ["localhost"]), document.get("storm.zookeeper.port", 2181)
    texts = isinstance(servers, list) and all(isinstance(s, str) and s for s in servers)
    if not texts or not servers:
        raise ConfigError(f"{key}: must be a list of hosts, is {servers!r}")
    if type(port) is not int or not 0 < port < 65536:
        raise ConfigError(f"storm.zookeeper.port: must be 1 to 65535, is {port!r}")
    return ",".join(f"{server}:{port}" for server in servers)


def _store_dir(document: Mapping[str, Any]) -> Path:
    if document.get(_STORE) is not None:
        return Path(_text(document, _STORE))
    if document.get("storm.local.dir") is None:
        raise ConfigError(f"{_STORE}: must be given where storm.local.dir is not")
    return Path(_text(document, "storm.local.dir")) / "nstorm"


def _text(document: Mapping[str, Any], key: str) -> str:
    value = document[key]
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{key}: must be text, is {value!r}")
    return value


def _check_poll(document: Mapping[str, Any]) -> None:
    """Refuse for the JVMs what they could only pass over."""
    value = document.get(_POLL, 50)
    if type(value) is not int or not 1 <= value <= 60_000:
        raise ConfigError(f"{_POLL}: must be 1 to 60000 milliseconds, is {value!r}")


def _period_s(document: Mapping[str, Any], key: str, default_s: float) -> float:
    value = document.get(key, default_s)
    if type(value) not in (int, float) or not 0.1 <= value <= 3600:
        raise ConfigError(f"{key}: must be 0.1 to 3600 seconds, is {value!r}")
    return float(value)
