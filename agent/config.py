"""Takes what the agent needs out of storm.yaml."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migration import ConfigError
from migration.storm_yaml import PREFIX, own_keys, refuse_unknown, storm_zookeeper


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """The agent's settings.

    Parameters
    ----------
    zookeeper : str
        ``host:port`` with commas, then Storm's root.
    store_dir : Path
        Where the stores of this node are.
    supervisor : str or None
        The node's supervisor id; None to take it from what the JVMs say.
    sync_s : float
        The period of the poll that finds plans if a watch was missed.
    load_s : float
        The period of the load reports.
    """

    zookeeper: str
    store_dir: Path
    supervisor: str | None = None
    sync_s: float = 3.0
    load_s: float = 2.0


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
    own = own_keys(document)
    refuse_unknown(own)
    _check_poll(own)
    return AgentConfig(
        storm_zookeeper(document),
        _store_dir(own, document.get("storm.local.dir")),
        None if own.get("supervisor.id") is None else _text(own, "supervisor.id"),
        _period_s(own, "agent.sync.secs", 3.0),
        _period_s(own, "load.secs", 2.0),
    )


def _store_dir(own: Mapping[str, Any], local_dir: Any) -> Path:
    if own.get("store.dir") is not None:
        return Path(_text(own, "store.dir"))
    if not isinstance(local_dir, str) or not local_dir:
        raise ConfigError(f"{PREFIX}store.dir: must be given where storm.local.dir is not")
    return Path(local_dir) / "nstorm"


def _text(own: Mapping[str, Any], key: str) -> str:
    value = own[key]
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{PREFIX}{key}: must be text, is {value!r}")
    return value


def _check_poll(own: Mapping[str, Any]) -> None:
    """Refuse for the JVMs what they could only pass over."""
    value = own.get("worker.poll.ms", 50)
    if type(value) is not int or not 1 <= value <= 60_000:
        raise ConfigError(f"{PREFIX}worker.poll.ms: must be 1 to 60000 milliseconds, is {value!r}")


def _period_s(own: Mapping[str, Any], key: str, default_s: float) -> float:
    value = own.get(key, default_s)
    if type(value) not in (int, float) or not 0.1 <= value <= 3600:
        raise ConfigError(f"{PREFIX}{key}: must be 0.1 to 3600 seconds, is {value!r}")
    return float(value)
