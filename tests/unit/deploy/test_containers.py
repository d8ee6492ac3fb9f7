"""What the Dockerfile copies is released, pods in docs fit together, and an undo is safe."""

import hashlib
import os
import platform
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml

from deploy import release
from deploy.lab.home.versions import REPOSITORY

DOCKERFILE = (REPOSITORY / "deploy" / "Dockerfile").read_text()
PAGE = (REPOSITORY / "docs" / "containers.md").read_text()
PODS = [
    made["spec"]["template"]["spec"]
    for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    if "kind" in (made := yaml.safe_load(block))
]
INSTALL = REPOSITORY / "deploy" / "install.sh"


@pytest.mark.parametrize("role", release.ROLES)
def test_what_the_dockerfile_copies_is_what_a_release_writes(role: str) -> None:
    (source,) = re.findall(r"^COPY (nstorm-\S+)", DOCKERFILE, re.MULTILINE)
    assert fnmatch(release.archive_name(role, "0.2.0"), source.replace("${ROLE}", role))
    built = f"docker build -f deploy/Dockerfile --build-arg ROLE={role} -t nstorm-{role}:0.2.0 dist"
    assert built in PAGE
    assert "/install.sh /opt/nstorm" in DOCKERFILE
    # A wheel with machine code fits one Python and the C library of one Debian, or a newer one.
    assert "ARG PYTHON=3.11\n" in DOCKERFILE
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {
        "python:${PYTHON}-slim-bookworm"
    }


def paths(container: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["mountPath"] for one in container["volumeMounts"]}


@pytest.mark.parametrize("pod", PODS, ids=lambda pod: pod["containers"][-1]["name"])
def test_an_agent_shares_processes_and_folder_with_its_supervisor(pod: dict[str, Any]) -> None:
    known = {volume["name"] for volume in pod["volumes"]}
    every = [*pod.get("initContainers", ()), *pod["containers"]]
    assert all(set(paths(container)) <= known for container in every)
    (mine,) = (one for one in pod["containers"] if "nstorm-" in one["image"])
    role = mine["args"][0]
    assert mine["image"] == f"nstorm-{role}:0.2.0"
    assert Path(mine["args"][2]).parent in map(Path, paths(mine).values())
    if role == "agent":
        assert pod.get("shareProcessNamespace") or pod.get("hostPID")
        assert all(paths(one) == paths(mine) for one in pod["containers"])


@pytest.mark.parametrize(
    ("wheel", "refused"),
    [
        ("cp399-cp399-linux_{machine}", "is for python3.99, which is not here: install it,"),
        ("cp311-cp311-linux_s390", "is for s390, and this machine is {machine}: take the archive"),
    ],
)
def test_an_archive_of_another_python_or_machine_is_refused(
    tmp_path: Path, wheel: str, refused: str
) -> None:
    machine = platform.machine()
    (tmp_path / "nstorm-agent.service").touch()
    (tmp_path / f"nstorm-0.2.0-{wheel.format(machine=machine)}.whl").touch()
    (tmp_path / "install.sh").write_bytes(INSTALL.read_bytes())
    done = subprocess.run(
        ["sh", tmp_path / "install.sh", tmp_path / "opt"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"nstorm: this archive {refused.format(machine=machine)}")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "opt").exists()


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an archive of the agent for a Python whose venv has a pip that only removes itself."""
    made, path = tmp_path / "archive", tmp_path / "path"
    made.mkdir()
    path.mkdir()
    text = INSTALL.read_text()
    for folder in ("/run/systemd/system", "/etc/systemd/system"):  # not those of this machine
        assert folder in text
        text = text.replace(folder, f"{tmp_path}{folder}")
    (made / "install.sh").write_text(text)
    unit = REPOSITORY / "deploy/systemd/nstorm-agent.service"
    (made / unit.name).write_bytes(unit.read_bytes())
    (made / f"nstorm-0.2.0-cp399-cp399-linux_{platform.machine()}.whl").touch()
    python = path / "python3.99"
    python.write_text(
        '#!/bin/sh\n[ "$1" = -c ] && exit\n'
        'mkdir -p "$3/bin" && echo "prompt = \'$5\'" > "$3/pyvenv.cfg"\n'
        'cp "$0.pip" "$3/bin/pip"\n'
    )
    pip = path / "python3.99.pip"
    pip.write_text('#!/bin/sh\nif [ "$1" = uninstall ]; then rm "$0"; fi\n')
    for command in (python, pip):
        command.chmod(0o755)
    monkeypatch.setenv("PATH", str(path), prepend=":")
    return made


def run(archive: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = ["sh", archive / "install.sh", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def with_systemd(tmp_path: Path) -> Path:
    """Let root and a systemd be here; give the folder of the units.

    `calls` has how it was called, and its services run while there is `active`.
    """
    is_active = f'[ "$1" != is-active ] || [ -e {tmp_path}/active ]'
    systemctl = f'echo "$*" >> {tmp_path}/calls; {is_active}'
    for name, lines in (("id", "echo 0"), ("systemctl", systemctl)):
        command = tmp_path / "path" / name
        command.write_text(f"#!/bin/sh\n{lines}\n")
        command.chmod(0o755)
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    units = tmp_path / "etc/systemd/system"
    units.mkdir(parents=True)
    return units


def test_the_user_of_a_service_may_enter_what_root_installs(archive: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        assert run(archive, tmp_path / "opt").returncode == 0
    finally:
        os.umask(before)
    for folder in (tmp_path / "opt", tmp_path / "opt/bin"):
        assert folder.stat().st_mode & 0o777 == 0o755


def test_pip_does_not_stay_and_a_later_run_has_one(archive: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert run(archive, tmp_path / "opt").returncode == 0
        assert list((tmp_path / "opt/bin").iterdir()) == []


def test_a_later_build_of_the_same_version_replaces_what_is_installed(
    archive: Path, tmp_path: Path
) -> None:
    tag = f"cp3{sys.version_info.minor}"
    python = tmp_path / f"path/python3.{sys.version_info.minor}"
    # A venv with the pip of this one: to install pip takes seconds.
    python.write_text(
        f'#!/bin/sh\n[ "$1" = -c ] && exit\n{sys.executable} -m venv --without-pip "$3" $4 $5\n'
        f'echo "#!/bin/sh\nexec {sys.executable} -m pip --python $3 \\"\\$@\\"" > "$3/bin/pip"\n'
        'chmod +x "$3/bin/pip"\n'
    )
    python.chmod(0o755)
    (made,) = archive.glob("nstorm-*.whl")
    wheel = made.rename(archive / f"nstorm-0.2.0-{tag}-{tag}-linux_{platform.machine()}.whl")
    info, opt = "nstorm-0.2.0.dist-info", tmp_path / "opt"
    files = {
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: nstorm\nVersion: 0.2.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n"
        f"Tag: {wheel.stem.removeprefix('nstorm-0.2.0-')}\n",
        f"{info}/RECORD": "",
    }
    for day in ("monday", "tuesday"):
        with ZipFile(wheel, "w") as content:
            for name, text in {"nstorm_day.txt": day, **files}.items():
                content.writestr(name, text)
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        (archive / "requirements.txt").write_text(f"nstorm==0.2.0 --hash=sha256:{digest}\n")
        done = run(archive, opt)
        assert done.returncode == 0, done.stderr
        (installed,) = opt.glob("lib/*/site-packages/nstorm_day.txt")
        assert installed.read_text() == day


def test_an_undo_leaves_what_the_unit_of_another_role_starts(archive: Path, tmp_path: Path) -> None:
    units, opt = tmp_path / "etc/systemd/system", tmp_path / "opt"
    units.mkdir(parents=True)
    assert run(archive, f"{opt}/").returncode == 0
    other = units / "nstorm-controller.service"
    other.write_text(f"ExecStart={opt}/bin/nstorm\n")
    done = run(archive, "--undo", f"{opt}/")
    assert done.stdout == f"nstorm: {other} needs {opt}, which stays\n"
    assert (opt / "pyvenv.cfg").exists()


def test_an_undo_leaves_the_unit_of_its_role_that_starts_another_folder(
    archive: Path, tmp_path: Path
) -> None:
    unit, old, new = with_systemd(tmp_path) / "nstorm-agent.service", tmp_path / "o", tmp_path / "n"
    for opt in (old, new):
        assert run(archive, opt).returncode == 0
    unit.write_text(unit.read_text().replace(f"{old}/", f"{new}/"))
    calls = (tmp_path / "calls").read_text()
    assert run(archive, "--undo", old).returncode == 0
    assert not old.exists()
    assert (unit.exists(), (tmp_path / "calls").read_text()) == (True, calls)
    assert run(archive, "--undo", new).returncode == 0
    assert not unit.exists()
    assert "disable --quiet --now nstorm-agent.service\n" in (tmp_path / "calls").read_text()


@pytest.mark.parametrize(
    "name", ["//opt", "opt//", "./opt", "x/../opt", "opt/.", "a&b", "a b", "%h"]
)
def test_a_folder_that_no_unit_can_name_is_refused(
    archive: Path, tmp_path: Path, name: str
) -> None:
    before = sorted(tmp_path.rglob("*"))
    done = run(archive, f"{tmp_path}/{name}")
    assert (done.returncode, done.stdout) == (2, "")
    assert "type a plain path of A-Z, a-z, 0-9 and ._/-" in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_the_venv_of_another_program_is_refused(archive: Path, tmp_path: Path) -> None:
    opt = tmp_path / "opt"
    (opt / "bin").mkdir(parents=True)
    (opt / "pyvenv.cfg").write_text("version = 3.11.7\n")
    for asked, refused in (([], "has the bin of another"), (["--undo"], "nothing of this script")):
        done = run(archive, *asked, opt)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"nstorm: {opt}: {refused}")
    (opt / "bin/nstorm").touch()  # one that was made by hand
    assert run(archive, opt).returncode == run(archive, "--undo", opt).returncode == 0
    assert not opt.exists()


@pytest.mark.parametrize("name", ["bin", "lib", "share"])
def test_the_folder_of_another_program_is_refused(archive: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "storm" / name).mkdir(parents=True)
    (tmp_path / "storm/bin").mkdir(exist_ok=True)
    (tmp_path / "storm/bin/nstorm").touch()  # as pip has it in /usr/local
    undone = run(archive, "--undo", tmp_path / "storm")
    assert (undone.returncode, undone.stdout) == (2, "")
    (tmp_path / "storm/bin/nstorm").unlink()
    if name != "bin":
        (tmp_path / "storm/bin").rmdir()
    done = run(archive, tmp_path / "storm")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"nstorm: {tmp_path}/storm: has the {name} of another program")
    assert [path.name for path in (tmp_path / "storm").iterdir()] == [name]


def test_a_repeated_installation_leaves_a_unit_that_was_changed(
    archive: Path, tmp_path: Path
) -> None:
    unit, opt = with_systemd(tmp_path) / "nstorm-agent.service", tmp_path / "opt"
    to_start = "nstorm-agent: to start it type  systemctl enable --now nstorm-agent.service\n"
    source = (archive / unit.name).read_text()
    for _ in range(2):
        done = run(archive, opt)
        assert (done.returncode, done.stdout) == (0, to_start)
        assert unit.read_text() == source.replace("/opt/nstorm/", f"{opt}/")
    unit.write_text(changed := unit.read_text().replace("User=storm", "User=stormy"))
    done = run(archive, opt)
    stays = f"nstorm: {unit} stays as it is: compare it with {archive / unit.name}\n"
    assert (done.returncode, done.stdout) == (0, stays + to_start)
    assert unit.read_text() == changed
    (tmp_path / "active").touch()
    to_restart = to_start.replace("start it", "take up this version")
    to_restart = to_restart.replace("enable --now", "restart")
    assert run(archive, opt).stdout == stays + to_restart


def test_the_page_has_a_unit_next_to_that_of_the_controller(archive: Path, tmp_path: Path) -> None:
    units, opt = with_systemd(tmp_path), tmp_path / "opt"
    (archive / "nstorm-agent.service").unlink()
    for name in release.UNITS["controller"]:
        (archive / name).write_bytes((REPOSITORY / "deploy/systemd" / name).read_bytes())
    assert run(archive, opt).stdout == "".join(
        f"nstorm-{one}: to start it type  systemctl enable --now nstorm-{one}.service\n"
        for one in ("controller", "page")
    )
    assert f"ExecStart={opt}/bin/nstorm page" in (units / "nstorm-page.service").read_text()
    assert run(archive, "--undo", opt).returncode == 0
    assert (list(units.iterdir()), opt.exists()) == ([], False)


def test_an_undo_leaves_the_jar_that_storm_yaml_names(archive: Path, tmp_path: Path) -> None:
    into = tmp_path / "opt"
    (into / "bin").mkdir(parents=True)
    refused = run(archive, "--undo", into)
    assert (refused.returncode, refused.stderr) == (
        2,
        f"nstorm: {into}: nothing of this script is there\n",
    )
    (into / "pyvenv.cfg").write_text("prompt = 'nstorm'\n")
    (into / "nstorm-hooks.jar").touch()
    assert run(archive, "--undo", into).returncode == 0
    assert [one.name for one in into.iterdir()] == ["nstorm-hooks.jar"]
    assert run(archive, "--undo", "opt").stderr.startswith(
        "nstorm: opt: type the whole path of the folder"
    )
