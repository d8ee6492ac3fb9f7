"""``nstorm bundle``: one file with what a report of a fault needs, and no secrets."""

import io
import json
import os
import platform
import re
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from typing import Annotated, Any

import typer

from controller.cli.asking import connected
from controller.cli.operate import look
from controller.cli.running import Conf
from controller.cli.status_document import as_json
from controller.config import from_storm_yaml
from controller.core.receivers import SET, without_arguments
from controller.core.times import HOUR_S, utc
from controller.errors import CommandError, ControllerError
from controller.output import Output, OutputOption, tell
from controller.storm.collect import LiveCluster
from kvstore.errors import StoreError
from migration import ConfigError, storm_yaml
from migration.settings import PREFIX

MOST_BYTES = 50_000_000  # of the journal
MOST_LOG_BYTES = 5_000_000  # of the end of each log
_SERVICES = ("nstorm-agent", "nstorm-controller")
# Of Storm's own keys only these, none of which holds a secret.
_STORM_KEYS = (
    "storm.zookeeper.servers",
    "storm.zookeeper.port",
    "storm.zookeeper.root",
    "storm.local.hostname",
    "storm.scheduler",
    "supervisor.cpu.capacity",
    "supervisor.slots.ports",
)
_SECRET = re.compile(r"auth|credential|key|pass|secret|token", re.IGNORECASE)
# Of these lines of Storm's logs any part may be a secret: the options of a JVM, and a whole conf.
_WITH_OPTIONS = re.compile(rb"-javaagent:|childopts|-cp\b|conf\w*\W*\{", re.IGNORECASE)
NOTICE = f"{PREFIX}notice"
_Read = Callable[[], bytes]
Parts = Iterator[tuple[str, _Read]]  # name within the bundle, and how to read it


def bundle(
    conf: Conf,
    out: Annotated[
        Path | None,
        typer.Option(help="The file to write.  [default: nstorm-bundle-TIME.tar.gz]"),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Collect what a report of a fault needs, in one file.

    It has versions, status, settings, and the last hour of the journal of this machine. Of logs it
    has those of agent and controller, and the lines of Storm's that name nstorm, but for options of
    JVMs. Of Storm's keys only those are there that hold no secret. What could not be read has the
    reason in its place. Look into the file before you share it: it names hosts, topologies and
    components.
    """
    now_s = time.time()
    at = re.sub(r"[-: ]", "", utc(now_s))
    path = out or Path(f"nstorm-bundle-{at}.tar.gz")
    document = storm_yaml.read(conf)
    parts: dict[str, int] = {}
    try:
        # Only who made it may read it.
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise CommandError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(opened, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as packed:
            for named, read in _parts(conf, document, now_s):
                name, content = _or_why(named, read)
                entry = tarfile.TarInfo(f"nstorm-bundle/{name}")
                entry.size, entry.mtime = len(content), int(now_s)
                packed.addfile(entry, io.BytesIO(content))
                parts[name] = len(content)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise CommandError(f"{path}: cannot be written: {error.strerror}") from None
    except BaseException:  # such as Ctrl-C: half a bundle looks like a whole one
        path.unlink(missing_ok=True)
        raise
    lines = [f"{name}: {size:,} bytes" for name, size in parts.items()]
    tell(output, {"file": str(path), "parts": parts}, *lines, f"written: {path}")


def _parts(conf: Path, document: Mapping[str, Any], now_s: float) -> Parts:
    yield "versions.json", lambda: _as_json(versions())
    yield "settings.json", lambda: _as_json(settings(document))
    yield "status.json", lambda: _status(conf).encode()
    yield from _journal(document, now_s)
    if shutil.which("journalctl") is not None:
        yield from ((f"logs/{name}.log", partial(_service_log, name)) for name in _SERVICES)
    for path in storm_logs(document):
        yield f"storm/{'-'.join(path.parts[-3:])}", partial(named_in, path)


def _as_json(found: Any) -> bytes:
    return json.dumps(found, indent=1).encode()


def _or_why(name: str, read: _Read) -> tuple[str, bytes]:
    """Read a part, or give the reason why that was not possible in its place."""
    try:
        return name, read()
    except (ConfigError, ControllerError, StoreError, OSError, subprocess.SubprocessError) as error:
        return f"{name}.missing.txt", str(error).encode()


def versions() -> dict[str, Any]:
    """Return the versions of what runs here."""
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "packages": {one.name: one.version for one in distributions()},
    }


def settings(document: Mapping[str, Any]) -> dict[str, Any]:
    """Leave of a storm.yaml what is of nstorm and what has no secret."""
    own = {key: value for key, value in document.items() if key.startswith(PREFIX)}
    own = {key: SET if _SECRET.search(key) else value for key, value in own.items()}
    if NOTICE in own:
        own[NOTICE] = without_arguments(own[NOTICE])
    return own | {key: document[key] for key in _STORM_KEYS if key in document}


def _status(conf: Path) -> str:
    with connected(conf) as session:
        return as_json(look(session, LiveCluster.of_session(session)))


def _journal(document: Mapping[str, Any], now_s: float) -> Parts:
    """Give the segments that were written within the hour, the newest first, up to a limit."""
    try:
        folder = from_storm_yaml(document)[0].journal.dir
        paths = [] if folder is None or not folder.is_dir() else [*folder.iterdir()]
        found = [(path, path.stat()) for path in paths if path.is_file()]
    except (ConfigError, OSError) as error:
        why = str(error).encode()
        yield "journal.missing.txt", lambda: why
        return
    left = MOST_BYTES
    for path, state in sorted(found, key=lambda one: one[0].name, reverse=True):
        if state.st_mtime >= now_s - HOUR_S and state.st_size <= left:
            left -= state.st_size
            yield f"journal/{path.name}", path.read_bytes


def _service_log(name: str) -> bytes:
    command = ["journalctl", "--no-pager", "--since=-1h", f"--unit={name}"]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    return done.stdout[-MOST_LOG_BYTES:]


def storm_logs(document: Mapping[str, Any]) -> list[Path]:
    """Find the logs of Storm, in the folder that the storm.yaml names, or below STORM_HOME."""
    home = os.environ.get("STORM_HOME")
    named = document.get("storm.log.dir") or (f"{home}/logs" if home else None)
    folder = Path(str(named)) if named else None
    if folder is None or not folder.is_dir():
        return []
    found = [folder / "nimbus.log", folder / "supervisor.log"]
    found += sorted(folder.glob("workers-artifacts/*/*/worker.log"))
    return [path for path in found if os.access(path, os.R_OK)]


def named_in(path: Path) -> bytes:
    """Return the lines that name nstorm in the end of a log; others may hold anything.

    Left out are those with options of a JVM: the path of the jar is among them, and passwords are.
    """
    with path.open("rb") as file:
        if (begin := path.stat().st_size - MOST_LOG_BYTES) > 0:
            file.seek(begin)
            file.readline()  # the rest of a line may hold anything
        own = (line for line in file if b"nstorm" in line)
        return b"".join(line for line in own if _WITH_OPTIONS.search(line) is None)
