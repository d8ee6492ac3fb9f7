"""Assembles a stock Storm home and ZooKeeper from the Maven registry, once.

`python -m deploy.lab.home.assemble [VERSION]` makes the home of one version of Storm; with `--jars`
the jars of every version that the symbols and the code are compared with.
"""

import fcntl
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deploy.lab import LabError
from deploy.lab.home.versions import REPOSITORY, StormVersion, storm_version, storm_versions

ZOOKEEPER_VERSION = "3.9.3"
BUILD_DIR = REPOSITORY / "build"
STORM = "org.apache.storm"
_SOURCES = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Homes:
    """Where the assembled software lies."""

    storm: Path
    zookeeper: Path


def homes(version: str | None = None) -> Homes:
    """Name the directories that `assemble` fills."""
    storm = storm_version(version).version
    return Homes(BUILD_DIR / f"storm-{storm}", BUILD_DIR / f"zookeeper-{ZOOKEEPER_VERSION}")


def assemble(version: str | None = None) -> Homes:
    """Assemble what is not there yet.

    Each directory is made under another name and renamed when complete, so an interrupted run
    leaves nothing that looks finished.

    Raises
    ------
    LabError
        When the table of versions does not have the version, or Maven cannot copy.
    """
    done, row = homes(version), storm_version(version)
    with _alone():
        if not done.storm.is_dir():
            _build(done.storm, lambda home: _fill_storm(home, row))
        if not done.zookeeper.is_dir():
            _build(done.zookeeper, lambda home: _copy_jars("zookeeper", home))
    return done


def copy_jars_to_compare() -> None:
    """Copy what `SymbolCheckTest` reads: Storm's jars of every version."""
    with _alone():
        _build(BUILD_DIR / "compared", _fill_jars)


@contextmanager
def _alone() -> Iterator[None]:
    BUILD_DIR.mkdir(parents=True, exist_ok=True)
    with (BUILD_DIR / "assemble.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(home: Path, fill: Callable[[Path], None]) -> None:
    """Fill a directory under a temporary name, then give it its own."""
    partial = home.with_name(f"{home.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    fill(partial)
    shutil.rmtree(home, ignore_errors=True)
    partial.rename(home)


def _fill_storm(home: Path, row: StormVersion) -> None:
    """Lay out a Storm home: the daemons' jars, the workers' jars, logging, empty folders."""
    for profile in ("lib", "lib-worker"):
        _copy_jars(profile, home / profile, f"-Dstorm.version={row.parts}")
        if row.version != row.parts:
            own = [old.name for old in (home / profile).glob(f"storm-*-{row.parts}.jar")]
            named = [name.removesuffix(f"-{row.parts}.jar") for name in own]
            _copy_artifacts((STORM, name, row.version, home / profile) for name in named)
            for name in own:
                (home / profile / name).unlink()
    for name in ("extlib", "extlib-daemon", "conf", "log4j2"):
        (home / name).mkdir()
    for name in ("cluster.xml", "worker.xml"):
        shutil.copy(_SOURCES / name, home / "log4j2" / name)
    (home / "conf" / "storm.yaml").touch()


def _fill_jars(target: Path) -> None:
    wanted: dict[tuple[str, str, str, Path], None] = {}
    for row in storm_versions().values():
        for name in ("storm-client", "storm-server"):
            wanted[STORM, name, row.version, target / row.version] = None
        parts = target / "parts" / row.parts
        wanted[STORM, "storm-shaded-deps", row.parts, parts] = None
        wanted["io.dropwizard.metrics", "metrics-core", row.metrics, target / row.version] = None
    _copy_artifacts(wanted)


def _copy_jars(profile: str, target: Path, *options: str) -> None:
    """Let Maven copy the jars of one profile of pom.xml."""
    print(f"copying jars from the Maven registry: {profile}", file=sys.stderr, flush=True)
    goals = ("dependency:copy-dependencies", "-DincludeScope=runtime", "-P", profile)
    _maven(_SOURCES / "pom.xml", *goals, f"-DoutputDirectory={target}", *options)


def _copy_artifacts(artifacts: Iterable[tuple[str, str, str, Path]]) -> None:
    """Let Maven copy single jars by group, artifact and version, each into its folder.

    Plugin 2.8 takes a jar whose parent POM the registry has not; later ones refuse it.
    """
    items = "".join(
        f"<artifactItem><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version><outputDirectory>{target}</outputDirectory></artifactItem>"
        for group, artifact, version, target in artifacts
    )
    with tempfile.TemporaryDirectory(dir=BUILD_DIR) as folder:
        pom = Path(folder) / "pom.xml"
        pom.write_text(
            "<project><modelVersion>4.0.0</modelVersion><groupId>nstorm</groupId>"
            "<artifactId>copied-jars</artifactId><version>0</version><packaging>pom</packaging>"
            "<build><plugins><plugin><artifactId>maven-dependency-plugin</artifactId>"
            f"<version>2.8</version><configuration><artifactItems>{items}</artifactItems>"
            "</configuration></plugin></plugins></build></project>"
        )
        _maven(pom, "dependency:copy")


def _maven(pom: Path, *arguments: str) -> None:
    command = ["mvn", "-q", "-B", "-f", str(pom), *arguments]
    try:
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    except FileNotFoundError as error:
        raise LabError("mvn is not on the PATH: install Maven, or run `make setup`") from error
    except subprocess.CalledProcessError as error:
        asked = " ".join(arguments)
        raise LabError(f"Maven failed at {asked}: its output has the reason") from error


if __name__ == "__main__":
    if sys.argv[1:] == ["--jars"]:
        copy_jars_to_compare()
    else:
        assemble(*sys.argv[1:2])
