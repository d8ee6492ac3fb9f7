"""What a release publishes installs without an index, and is what its lists have."""

import hashlib
import json
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

from deploy import release
from deploy.lab.cluster import HOOKS_JAR
from deploy.lab.home.versions import REPOSITORY

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files, written into a folder of the test's own, after an older build."""
    build = f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    left = REPOSITORY / "build" / build / "controller" / "left.c"
    left.parent.mkdir(parents=True, exist_ok=True)
    left.touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release, "DIST", tmp_path_factory.mktemp("release") / "dist")
        release.main()
        return release.DIST


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def unpacked(dist: Path, role: str, into: Path) -> Path:
    (archive,) = dist.glob(f"nstorm-{role}-*.tar.gz")
    with tarfile.open(archive) as content:
        content.extractall(into, filter="data")
    (folder,) = into.iterdir()
    return folder


def test_the_checksums_are_of_all_files(dist: Path) -> None:
    sums = [line.split() for line in (dist / "SHA256SUMS").read_text().splitlines()]
    assert {name for _, name in sums} == {file.name for file in dist.iterdir()} - {"SHA256SUMS"}
    assert all(sha256(dist / name) == wanted for wanted, name in sums)


def test_an_agent_installs_without_an_index_and_has_the_jar(dist: Path, tmp_path: Path) -> None:
    folder, opt = unpacked(dist, "agent", tmp_path / "copied"), tmp_path / "opt"
    subprocess.run([folder / "install.sh", opt], check=True)
    shown = subprocess.run(
        [opt / "bin" / "nstorm-agent", "jar"], check=True, capture_output=True, text=True
    ).stdout
    (jar,) = dist.glob("nstorm-hooks-*.jar")
    assert sha256(Path(shown.strip())) == sha256(jar) == sha256(HOOKS_JAR)
    assert 5 < release.installed_mb(opt) <= release.MOST_MB["agent"]


@pytest.mark.parametrize("role", release.ROLES)
def test_the_wheel_has_what_runs_and_not_what_it_was_made_of(
    dist: Path, tmp_path: Path, role: str
) -> None:
    (wheel,) = unpacked(dist, role, tmp_path).glob("nstorm-*.whl")
    with ZipFile(wheel) as content:
        endings = {Path(name).suffix for name in content.namelist() if "dist-info" not in name}
    assert endings == {".css", ".html", ".jar", ".js", ".md", ".py", ".so"}


@pytest.mark.parametrize("role", release.ROLES)
@pytest.mark.usefixtures("container_engine")
@pytest.mark.skipif(shutil.which("docker") is None, reason="no docker on the path")
def test_the_dockerfile_makes_an_image_that_has_its_role_and_the_jar(dist: Path, role: str) -> None:
    image = f"nstorm-of-a-test-{role}"
    args = {"ROLE": role, "PYTHON": f"{sys.version_info.major}.{sys.version_info.minor}"}
    build = ["docker", "build", "--quiet", f"--file={REPOSITORY}/deploy/Dockerfile", "--tag", image]
    build += [f"--build-arg={name}={value}" for name, value in args.items()]
    subprocess.run([*build, str(dist)], check=True)
    try:
        for arguments, shown in (([role, "--help"], f"usage: nstorm {role}"), (["jar"], ".jar\n")):
            run = ["docker", "run", "--rm", image, *arguments]
            assert shown in subprocess.run(run, check=True, capture_output=True, text=True).stdout
    finally:
        subprocess.run(["docker", "rmi", "--force", image], check=True)


def test_a_wheel_that_was_changed_is_refused(dist: Path, tmp_path: Path) -> None:
    folder = unpacked(dist, "agent", tmp_path / "copied")
    (wheel,) = folder.glob("kazoo-*.whl")
    with wheel.open("ab") as file:
        file.write(b"more")
    done = subprocess.run(
        [folder / "install.sh", tmp_path / "opt"], check=False, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "HASHES" in done.stderr


@pytest.mark.parametrize("role", release.ROLES)
def test_the_bill_of_materials_has_what_the_role_installs(
    dist: Path, tmp_path: Path, role: str
) -> None:
    folder = unpacked(dist, role, tmp_path)
    (bill,) = dist.glob(f"nstorm-{role}-*.cdx.json")
    listed = {
        one["name"].lower().replace("_", "-") for one in json.loads(bill.read_text())["components"]
    }
    wheels = {file.name.split("-")[0].lower().replace("_", "-") for file in folder.glob("*.whl")}
    assert listed == wheels


def test_the_bill_of_materials_of_the_jar_has_what_is_shaded(dist: Path) -> None:
    (bill,) = dist.glob("nstorm-hooks-*.cdx.json")
    found = {one["name"] for one in json.loads(bill.read_text())["components"]}
    own = {"byte-buddy", "gson"}
    asm = {"asm", "asm-analysis", "asm-commons", "asm-tree", "asm-util"}
    assert found == own | asm


def test_a_jar_that_is_built_in_another_folder_is_the_same(tmp_path: Path) -> None:
    names = subprocess.run(
        ["git", "ls-files", "-z", ".mvn", "migration", "pom.xml"],
        cwd=REPOSITORY, check=True, capture_output=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    copy = tmp_path / "a-folder-with-a-longer-name"
    for name in filter(None, names):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, copy / name)
    pom = copy / "migration/jvm/pom.xml"
    command = ["mvn", "-q", "-B", "-f", str(pom), "-DskipTests", "package"]
    subprocess.run(command, cwd=copy, check=True, stdout=sys.stderr)
    assert sha256(copy / HOOKS_JAR.relative_to(REPOSITORY)) == sha256(HOOKS_JAR)
