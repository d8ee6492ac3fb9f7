"""Assembles a stock Storm home and ZooKeeper from the Maven registry, once."""

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from deploy.lab import LabError

STORM_VERSION = "2.8.3"
ZOOKEEPER_VERSION = "3.9.3"
REPOSITORY = Path(__file__).parents[3]
_SOURCES = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Homes:
    """Where the assembled software lies."""

    storm: Path
    zookeeper: Path


def homes(build_dir: Path = REPOSITORY / "build") -> Homes:
    """Name the directories that `assemble` fills."""
    return Homes(build_dir / f"storm-{STORM_VERSION}", build_dir / f"zookeeper-{ZOOKEEPER_VERSION}")


def assemble(build_dir: Path = REPOSITORY / "build") -> Homes:
    """Assemble what is not there yet.

    Each directory is made under another name and renamed when complete, so an interrupted run
    leaves nothing that looks finished.
    """
    done = homes(build_dir)
    build_dir.mkdir(parents=True, exist_ok=True)
    with (build_dir / "assemble.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.storm.is_dir():
            _build(done.storm, _fill_storm)
        if not done.zookeeper.is_dir():
            _build(done.zookeeper, lambda home: _copy_jars("zookeeper", home))
    return done


def _build(home: Path, fill: Callable[[Path], None]) -> None:
    """Fill a directory under a temporary name, then give it its own."""
    partial = home.with_name(f"{home.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    fill(partial)
    partial.rename(home)


def _fill_storm(home: Path) -> None:
    """Lay out a Storm home: the daemons' jars, the workers' jars, logging, empty folders."""
    for profile in ("lib", "lib-worker"):
        _copy_jars(profile, home / profile)
    for name in ("extlib", "extlib-daemon", "conf", "log4j2"):
        (home / name).mkdir()
    for name in ("cluster.xml", "worker.xml"):
        shutil.copy(_SOURCES / name, home / "log4j2" / name)
    (home / "conf" / "storm.yaml").touch()


def _copy_jars(profile: str, target: Path) -> None:
    """Let Maven copy the jars of one profile of pom.xml."""
    print(f"copying jars from the Maven registry: {profile}", file=sys.stderr, flush=True)
    command = [
        *("mvn", "-q", "-B", "-f", str(_SOURCES / "pom.xml"), "-P", profile),
        *("dependency:copy-dependencies", "-DincludeScope=runtime"),
        f"-DoutputDirectory={target}",
    ]
    try:
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    except FileNotFoundError as error:
        raise LabError("mvn is not on the PATH: install Maven, or run `make setup`") from error
    except subprocess.CalledProcessError as error:
        raise LabError(f"Maven could not copy the jars of {profile!r}: see its output") from error


if __name__ == "__main__":
    assemble()
