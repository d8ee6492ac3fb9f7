"""What agent, controller and hooks have in one storm.yaml, read and refused alike by all."""

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from migration import ConfigError

PREFIX = "nstorm."
# Where Storm keeps its own nodes in ZooKeeper unless told otherwise.
STORM_ROOT = "/storm"
_AGENT = "agent.sync.secs load.secs store.dir supervisor.id"
_CONTROLLER = """
    aniello.alpha aniello.beta aniello.delta aniello.gamma aniello.spread asc.threshold
    asc.threshold.tps cooldown.executor.secs cycle.secs excluded.components excluded.hosts
    excluded.topologies journal.days journal.dir journal.size.mb lazy.kill.ms link.capacity.tps
    load.ewma load.high load.low max.moves.per.cycle mode policy target.fill target.gain
    target.move.price weight.node weight.worker worker.cpu.capacity
"""
_HOOKS = "cleanup worker.poll.ms"
# Without the prefix. One storm.yaml serves a whole node, so each reader knows what others read.
KEYS = frozenset(f"{_AGENT} {_CONTROLLER} {_HOOKS}".split())


class _Loader(yaml.SafeLoader):
    """Takes 1e-3 for a number too, as YAML 1.2 does, and whoever writes it."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)


def load(text: str) -> Any:
    """Read what people write as YAML: a storm.yaml, a scenario, a value on the command line.

    Parameters
    ----------
    text : str
        YAML 1.1, with the numbers of 1.2.

    Returns
    -------
    object
        What it says.

    Raises
    ------
    yaml.YAMLError
        It is no YAML, or holds a date or a number that cannot be.
    """
    try:
        return yaml.load(text, _Loader)
    # The parser does not look at what it makes values of, nor at how deep it goes.
    except (ValueError, RecursionError) as error:
        raise yaml.YAMLError(str(error)) from None


def read(path: Path) -> dict[str, Any]:
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
        document = load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        why = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise ConfigError(f"{path}: {why}") from None
    if document is None:
        return {}
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise ConfigError(f"{path}: must hold keys with values, like Storm's own")
    return document


def own_keys(document: Mapping[str, Any]) -> dict[str, Any]:
    """Take out the keys of nstorm.

    Parameters
    ----------
    document : mapping of str to value
        A storm.yaml.

    Returns
    -------
    dict of str to value
        Without the prefix.

    Raises
    ------
    ConfigError
        Keys stand within keys.
    """
    if "nstorm" in document:
        raise ConfigError(_nested("nstorm", document["nstorm"]))
    return {k.removeprefix(PREFIX): v for k, v in document.items() if k.startswith(PREFIX)}


def refuse_unknown(given: Mapping[str, Any], also: Iterable[str] = ()) -> None:
    """Refuse what nobody knows: a misspelt key that is passed over is worse than no start.

    Parameters
    ----------
    given : mapping of str to value
        Keys without the prefix.
    also : iterable of str
        What is known besides `KEYS`.

    Raises
    ------
    ConfigError
        Names the key, and the one that was meant.
    """
    known = KEYS.union(also)
    for key, value in given.items():
        if key in known:
            continue
        if isinstance(value, dict):
            raise ConfigError(_nested(PREFIX + key, value))
        near = difflib.get_close_matches(key, sorted(known), n=1)
        hint = f", did you mean {PREFIX}{near[0]}?" if near else ""
        raise ConfigError(f"{PREFIX}{key}: unknown key{hint}")


def storm_zookeeper(document: Mapping[str, Any]) -> str:
    """Say where Storm keeps its nodes in ZooKeeper.

    Parameters
    ----------
    document : mapping of str to value
        A storm.yaml.

    Returns
    -------
    str
        ``host:port`` with commas, then Storm's root; Storm's defaults where nothing is given.

    Raises
    ------
    ConfigError
        Storm's keys are of the wrong kind.
    """
    servers = document.get("storm.zookeeper.servers", ["localhost"])
    port = document.get("storm.zookeeper.port", 2181)
    root = document.get("storm.zookeeper.root", STORM_ROOT)
    texts = isinstance(servers, list) and all(isinstance(s, str) and s for s in servers)
    if not texts or not servers:
        raise ConfigError(f"storm.zookeeper.servers: must be a list of hosts, is {servers!r}")
    if type(port) is not int or not 0 < port < 65536:
        raise ConfigError(f"storm.zookeeper.port: must be 1 to 65535, is {port!r}")
    if not isinstance(root, str) or not (root == "" or root.startswith("/")):
        raise ConfigError(f"storm.zookeeper.root: must be a path that begins with /, is {root!r}")
    names = [name for name in root.split("/") if name]
    return "/".join([",".join(f"{server}:{port}" for server in servers), *names])


def _nested(key: str, value: Any) -> str:
    """Say how to write a key that holds others."""
    flat, inmost = key, value
    while isinstance(inmost, dict) and inmost:
        name, inmost = next(iter(inmost.items()))
        flat = f"{flat}.{name}"
    told = f"{flat}: {json.dumps(inmost, default=str)}" if flat != key else f"{PREFIX}mode: advise"
    return f"{key}: keys within keys are not read; write each flat, like Storm's own: {told}"
