"""Takes what the agent needs out of storm.yaml."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvstore.endpoint import Endpoint
from kvstore.ensemble import Ensemble
from migration import ConfigError
from migration.access import ensemble
from migration.settings import PREFIX, Reader, link_mbit, load_s, metrics_at, setting, values
from migration.storm_yaml import own_keys


class AgentError(Exception):
    """An agent cannot do its work; the message has the place, and what to do."""


@dataclass(frozen=True, slots=True)
class AgentConfig:
    zookeeper: Ensemble | str  # with Storm's root
    store_dir: Path
    # The node's supervisor id; None to take it from the acks of the JVMs.
    supervisor: str | None = None
    # The periods of the poll that finds plans if a watch was missed, and of the load reports.
    sync_s: float = setting("agent.sync.secs")
    load_s: float = load_s({})
    metrics_at: Endpoint | None = None  # None serves none
    link_mbit: float | None = None  # None: as fast as its interfaces


def from_storm_yaml(document: Mapping[str, Any]) -> AgentConfig:
    """Take out what concerns the agent, with the defaults for what is not given.

    A `ConfigError` if an `nstorm.` key is unknown, or a value is of the wrong kind.
    """
    own = own_keys(document)
    # The JVMs could only pass over a value that cannot be; the agent refuses it for them.
    read = values(own, (Reader.AGENT, Reader.HOOKS))
    return AgentConfig(
        ensemble(document),
        _store_dir(read.get("store.dir"), document.get("storm.local.dir")),
        read.get("supervisor.id"),
        read["agent.sync.secs"],
        load_s(own),
        metrics_at(own, "agent.metrics.port"),
        link_mbit(own),
    )


def _store_dir(given: str | None, local_dir: Any) -> Path:
    if given is not None:
        # Agent, JVMs and commands each start in a folder of their own.
        if not Path(given).is_absolute():
            raise ConfigError(f"{PREFIX}store.dir: must be an absolute path, is {given!r}")
        return Path(given)
    if not isinstance(local_dir, str) or not local_dir:
        raise ConfigError(f"{PREFIX}store.dir: must be given where storm.local.dir is not")
    if not Path(local_dir).is_absolute():
        raise ConfigError(
            f"{PREFIX}store.dir: must be given where storm.local.dir is relative, is {local_dir!r}"
        )
    return Path(local_dir) / "nstorm"
