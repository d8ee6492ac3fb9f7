"""The storm.yaml of agent, controller and hooks, read and refused alike by all."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml
from yaml.reader import ReaderError

from migration import ConfigError
from migration.settings import PREFIX, SETTINGS, Reader, nested, refuse_unknown

if TYPE_CHECKING:
    from argparse import ArgumentParser  # most commands take it from elsewhere

T = TypeVar("T")

# Where Storm keeps its own nodes in ZooKeeper by default.
STORM_ROOT = "/storm"
GIVEN, GIVEN_HELP = "KEY=VALUE", "A key over the file, as for storm: JSON, else text. Repeatable."
# Each as typed, for the whole process, as in Storm.
given: tuple[str, ...] = ()


class _Loader(yaml.SafeLoader):
    """Takes 1e-3 for a number too, as YAML 1.2 does, and whoever writes it."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)


def load(text: str) -> Any:
    """Read what people write as YAML 1.1, with the numbers of 1.2.

    It is a storm.yaml, a scenario, or a value on the command line. A `yaml.YAMLError` if it is no
    YAML, or holds a date or a number that cannot be.
    """
    try:
        return yaml.load(text, _Loader)
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        found = f"line {line}: character {chr(error.character)!r} is not allowed"
        raise yaml.YAMLError(found) from None
    # The parser does not look at what it makes values of, nor at how deep it goes.
    except RecursionError:
        raise yaml.YAMLError("its lists and keys are nested too deep") from None
    except ValueError as error:
        raise yaml.YAMLError(str(error)) from None


def problem(error: OSError | UnicodeDecodeError | yaml.YAMLError) -> str:
    """Return in one line why a file cannot be read, and in which of its lines that shows."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        message = f"line {error.problem_mark.line + 1}: {error.problem}"
        if error.context and error.context_mark is not None:
            message += f", {error.context} that begins in line {error.context_mark.line + 1}"
        return message
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} is no UTF-8"
    return getattr(error, "strerror", None) or " ".join(str(error).split())


def add_option(parser: "ArgumentParser") -> None:
    """Add `-c` to a command line; `give` takes its values."""
    parser.add_argument(
        "-c", dest="given", action="append", default=[], metavar=GIVEN, help=GIVEN_HELP
    )


def give(assignments: Sequence[str]) -> None:
    """Let these values take the place of those of each storm.yaml, as ``storm -c`` does."""
    global given  # noqa: PLW0603
    for one in assignments:
        # One dash before `conf` would else set a key `onf`, and take another file.
        if not re.match(r"[^\s=.]+(\.[^\s=.]+)+=", one):
            raise ConfigError(
                f"-c {one}: must be {GIVEN}, with a dot and no white space in KEY; "
                "a file is named with --conf"
            )
    given = tuple(assignments)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def read(path: Path) -> dict[str, Any]:
    """Read a storm.yaml, and over it what is `given`.

    A `ConfigError` if it cannot be read or holds no keys.
    """
    try:
        document = load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: {problem(error)}") from None
    if document is None and given:
        document = {}
    if document is None:
        raise ConfigError(
            f"{path}: holds no keys, so it names no cluster: set storm.zookeeper.servers, be it to "
            "[localhost]"
        )
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise ConfigError(f"{path}: must hold keys with values, like Storm's own")
    return document | {key: _value(text) for key, _, text in (g.partition("=") for g in given)}


def read_as(path: Path, make: Callable[[dict[str, Any]], T]) -> T:
    """Make something of a storm.yaml; a `ConfigError` begins with the path of the file."""
    document = read(path)
    try:
        return make(document)
    except ConfigError as error:
        raise ConfigError(f"{named(path)}: {error}") from None


def named(path: Path) -> str:
    """Name a storm.yaml, and that there may be keys over it."""
    return f"{path}{' with -c' * bool(given)}"


def prefixed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Take out the keys that begin as those of nstorm do, whatever they are."""
    return {k.removeprefix(PREFIX): v for k, v in document.items() if k.startswith(PREFIX)}


def own_keys(document: Mapping[str, Any]) -> dict[str, Any]:
    """Take out the keys of nstorm.

    A `ConfigError` if one is unknown, stands within another, or has no place in a storm.yaml.
    """
    if "nstorm" in document:
        raise ConfigError(nested("nstorm", document["nstorm"]))
    own = prefixed(document)
    refuse_unknown(own)
    for row in SETTINGS:
        if row.reader is Reader.DECIDE and row.key in own:
            raise ConfigError(
                f"{PREFIX}{row.key}: only for `nstorm decide`; a live run always has them"
            )
    return own


def storm_zookeeper(document: Mapping[str, Any]) -> str:
    """Return ``host:port`` with commas, then the root that Storm's nodes are under.

    Where nothing is given, Storm's defaults hold. A `ConfigError` if keys are of the wrong kind.
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
    return "/".join([",".join(f"{_bracketed(server)}:{port}" for server in servers), *names])


def _bracketed(server: str) -> str:
    """Put brackets round an IPv6 address, which Storm takes with and without."""
    return f"[{server}]" if server.count(":") > 1 and not server.startswith("[") else server
