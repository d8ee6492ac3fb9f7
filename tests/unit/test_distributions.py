"""What runs with a cluster and what is only of a checkout are two distributions."""

import ast
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("agent", "controller", "kvstore", "migration")
LAB = ("deploy", "tests/bench", "tests/chaos", "tests/papers")
BUILD = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"


def tracked(*folders: str) -> list[str]:
    """List the files of the repository below some folders."""
    command = ("git", "ls-files", "--cached", "--others", "--exclude-standard", *folders)
    shown = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True).stdout
    return [name for name in shown.splitlines() if (ROOT / name).is_file()]


def names_of(requirements: Iterable[str]) -> set[str]:
    """Name the distributions of some requirements."""
    return {re.split(r"[^\w-]", one)[0].lower().replace("_", "-") for one in requirements}


def imported(*folders: str) -> set[str]:
    """Name the distributions that the Python files of some folders import."""
    files = [ROOT / name for name in tracked(*folders) if name.endswith(".py")]
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text()))]
    modules = {a.name for node in nodes if isinstance(node, ast.Import) for a in node.names}
    modules |= {f"{node.module}" for node in nodes if isinstance(node, ast.ImportFrom)}
    modules |= {  # import_module("pyspark"), needed("matplotlib.figure")
        node.args[0].value
        for node in nodes
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith(("import_module", "needed"))
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }
    providers = importlib.metadata.packages_distributions()
    tops = {module.partition(".")[0] for module in modules} - {*PRODUCT, "deploy", "tests"}
    return names_of(name for top in tops for name in providers.get(top, ())[:1])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[str], Message]]:
    """Build both wheels of a copy, and give their files and their metadata."""
    found = {}
    for name, folder, sources in (
        ("nstorm", ".", (*PRODUCT, "pyproject.toml", "README.md", "LICENSE", "NOTICE", "deploy")),
        ("nstorm-lab", "deploy", ("deploy",)),
    ):
        copy, wheels = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("wheels")
        for source in tracked(*sources):
            (copy / source).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / source, copy / source)
        command = [sys.executable, "-W", "ignore", "-c", BUILD, str(wheels)]
        done = subprocess.run(
            command, cwd=copy / folder, text=True, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        (wheel,) = wheels.iterdir()
        with ZipFile(wheel) as archive:
            names = archive.namelist()
            (metadata,) = [one for one in names if one.endswith(".dist-info/METADATA")]
            found[name] = (names, message_from_bytes(archive.read(metadata)))
    return found


def packages(names: Iterable[str]) -> set[str]:
    """Name the folders with Python files of a wheel."""
    return {str(Path(name).parent) for name in names if name.endswith(".py")}


def of_tree(*folders: str) -> set[str]:
    """Name the folders with Python files below some folders of the repository."""
    return packages(tracked(*folders))


def test_the_wheel_of_the_product_holds_the_product_alone(
    built: dict[str, tuple[list[str], Message]],
) -> None:
    names, _ = built["nstorm"]
    assert packages(names) == of_tree(*PRODUCT)
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PRODUCT)


def test_the_metadata_of_the_product_names_what_it_imports_and_nothing_of_the_laboratory(
    built: dict[str, tuple[list[str], Message]],
) -> None:
    _, metadata = built["nstorm"]
    needed = names_of(metadata.get_all("Requires-Dist", []))
    assert metadata.get_all("Provides-Extra") == [
        "controller",
        "papers",
        "page",
        "replay",
        "sasl",
        "kerberos",
    ]
    # kazoo imports these, where credentials ask for it.
    assert needed - {"nstorm", "pure-sasl", "pykerberos"} == imported(*PRODUCT)


def test_the_laboratory_is_a_distribution_of_its_own(
    built: dict[str, tuple[list[str], Message]],
) -> None:
    names, metadata = built["nstorm-lab"]
    assert packages(names) == of_tree("deploy")
    own = names_of(metadata.get_all("Requires-Dist", []))
    product = names_of(built["nstorm"][1].get_all("Requires-Dist", []))
    assert "nstorm" in own
    dev = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["dev"]
    assert not own & names_of(dev)
    assert own - {"nstorm"} <= imported(*LAB)
    assert imported(*LAB) - product <= own
