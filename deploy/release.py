"""``python -m deploy.release``: writes what a release publishes into ``dist/``.

Needs the jar and the index of packages. A node then needs neither an index nor a checkout.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import venv
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from deploy.lab.cluster import HOOKS_JAR
from deploy.lab.home.versions import REPOSITORY

DIST = REPOSITORY / "dist"
# The extras of what runs on a supervisor node, and next to ZooKeeper.
ROLES: Mapping[str, str] = {"agent": "[sasl]", "controller": "[controller,page,sasl]"}
UNITS: Mapping[str, tuple[str, ...]] = {
    "agent": ("nstorm-agent.service",),
    "controller": ("nstorm-controller.service", "nstorm-page.service"),
}
# What each may take on a disk.
MOST_MB: Mapping[str, int] = {"agent": 25, "controller": 150}
# In a folder of its own: it needs 25 packages that nothing else here needs.
BILL_OF_MATERIALS = "cyclonedx-bom==7.5.0"
_SYSTEMD = REPOSITORY / "deploy" / "systemd"
_INSTALL = REPOSITORY / "deploy" / "install.sh"


def main() -> None:
    """Write the files, each role's archive installed once, then their checksums."""
    version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    # setuptools packs all that lies there, also what an older commit has left.
    for left in REPOSITORY.glob("build/lib*"):
        shutil.rmtree(left)
    shutil.copy(HOOKS_JAR, DIST / f"nstorm-hooks-{version}.jar")
    _run("mvn", "-q", "-B", "-f", REPOSITORY / "migration/jvm/pom.xml", "cyclonedx:makeBom")
    shutil.copy(HOOKS_JAR.with_name("bom.json"), DIST / f"nstorm-hooks-{version}.cdx.json")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        tool = _environment(work / "sbom")
        _run(tool, "-m", "pip", "install", "-q", BILL_OF_MATERIALS)
        for role in ROLES:
            print(f"nstorm-{role}", file=sys.stderr, flush=True)
            _write_role(role, version, work, tool)
    changelog = (REPOSITORY / "CHANGELOG.md").read_text()
    support = (REPOSITORY / "docs/support.md").read_text()
    sizes_mb = {file.name: file.stat().st_size / 1e6 for file in sorted(DIST.iterdir())}
    (DIST / "RELEASE.md").write_text(page(version, changelog, support, sizes_mb))
    sums = [f"{_sha256(file)}  {file.name}\n" for file in sorted(DIST.iterdir())]
    (DIST / "SHA256SUMS").write_text("".join(sums))


def page(version: str, changelog: str, support: str, sizes_mb: Mapping[str, float]) -> str:
    """Write the page of a release: what is new, for which versions, and which files there are.

    It has no link, since those of a checkout lead nowhere where it is published.
    """
    rows = [line.split("|") for line in _section(support, "Versions").splitlines() if line]
    tested = [f"|{row[1]}|{row[2]}|" for row in rows if row[0] == ""]
    files = [f"| `{name}` | {size_mb:.1f} |" for name, size_mb in sizes_mb.items()]
    parts = (
        f"# nstorm {version}",
        _section(changelog, version),
        "## Versions",
        "\n".join(tested),
        "## Files",
        "\n".join(["| file | MB |", "|---|---|", *files]),
        "An archive fits the Python and the processor in its name. Its `install.sh` needs no "
        "index. `sha256sum -c SHA256SUMS --ignore-missing` checks what was downloaded.",
    )
    return re.sub(r"\[([^]]+)]\([^)]+\)", r"\1", "\n\n".join(parts)) + "\n"


def _section(text: str, named: str) -> str:
    found = re.search(
        rf"^## [^\n]*{re.escape(named)}[^\n]*\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
    )
    if found is None:
        sys.exit(f"no heading has {named}")
    return found[1].strip()


def _write_role(role: str, version: str, work: Path, tool: Path) -> None:
    """Write the archive and the bill of materials of what one role installs."""
    name = f"nstorm-{role}-{version}"
    content = work / name
    pins = REPOSITORY / "constraints.txt"
    pinned = ("-c", pins, "--build-constraint", pins)
    _run(
        *(sys.executable, "-m", "pip", "wheel", "-q", *pinned, "--wheel-dir", content),
        f"{REPOSITORY}{ROLES[role]}",
    )
    wheels = sorted(content.glob("*.whl"))
    lines = [
        f"{wheel.name.split('-')[0]}=={wheel.name.split('-')[1]} --hash=sha256:{_sha256(wheel)}\n"
        for wheel in wheels
    ]
    (content / "requirements.txt").write_text("".join(lines))
    shutil.copy(_INSTALL, content)
    for unit in UNITS[role]:
        shutil.copy(_SYSTEMD / unit, content)
    installed = work / f"{role}-installed"
    _run(content / "install.sh", installed)
    if role == "controller":
        _run(installed / "bin/python", "-I", "-c", "import controller.core.loops")  # it is compiled
    size_mb = installed_mb(installed)
    print(f"nstorm-{role}: {size_mb:.1f} MB installed", file=sys.stderr, flush=True)
    if size_mb > MOST_MB[role]:
        sys.exit(f"nstorm-{role} may take {MOST_MB[role]} MB")
    _run(
        *(tool, "-m", "cyclonedx_py", "environment", "--output-reproducible"),
        *("-o", DIST / f"{name}.cdx.json", installed / "bin/python"),
    )
    with tarfile.open(DIST / archive_name(role, version), "w:gz") as archive:
        archive.add(content, name)


def archive_name(role: str, version: str) -> str:
    """Name the archive of a role, for the Python and the processor of this machine."""
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}-{sysconfig.get_platform()}"
    return f"nstorm-{role}-{version}-{tag}.tar.gz"


def installed_mb(folder: Path) -> float:
    """Add up the files of an environment, and not what its links lead to."""
    files = (one for one in folder.rglob("*") if one.is_file() and not one.is_symlink())
    return sum(one.stat().st_size for one in files) / 1e6


def _environment(folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _run(*command: str | Path) -> None:
    subprocess.run([str(part) for part in command], check=True, env=_surroundings())


@cache
def _surroundings() -> dict[str, str]:
    """Give the environment of each command, with the time of the commit, and this Python first.

    A wheel has the times of its files: with that of the commit it is the same each time. pip would
    take a checkout in PYTHONPATH for an installed nstorm, and leave it out.
    """
    command = ["git", "-C", str(REPOSITORY), "log", "-1", "--format=%ct"]
    when = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    path = f"{sys.base_prefix}/bin:{os.environ['PATH']}"
    usual = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    return {**usual, "PATH": path, "SOURCE_DATE_EPOCH": when, "PIP_NO_CACHE_DIR": "1"}


if __name__ == "__main__":
    main()
