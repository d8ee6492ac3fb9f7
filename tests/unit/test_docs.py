"""The pages for people: links lead somewhere, README stays short, every outcome is explained."""

import re
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller.config import from_storm_yaml
from controller.core.decision import Outcome
from controller.core.limits import Limits
from controller.core.outcomes import ROW, what_to_do
from controller.policies.options import NAMES
from controller.snapshot import parse
from migration.meters import OF_EXECUTOR, OF_NODE, OF_WORKER, Meter
from tests.meters_page import page as meters_page
from tests.scraping import alerts

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(
    (
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        ROOT / "controller" / "OUTCOMES.md",
        ROOT / "migration" / "PROTOCOL.md",
        ROOT / "migration" / "jvm" / "HOOKS.md",
    )
)
README_LIMIT_BYTES = 9000
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


def anchors(text: str) -> set[str]:
    """Name the headings of a page as GitHub does."""
    found: set[str] = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        shown = re.sub(r"\]\([^()]*\)", "", heading)
        name = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        times = sum(1 for one in found if re.fullmatch(re.escape(name) + r"(-\d+)?", one))
        found.add(f"{name}-{times}" if times else name)
    return found


def dead_links(page: Path) -> list[str]:
    """List the links of a page that lead nowhere within the repository."""
    dead = []
    for link in LINK.findall(CODE.sub("", FENCE.sub("", page.read_text()))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        there = target.exists() and target.is_relative_to(ROOT)
        if not there or (anchor and anchor not in anchors(target.read_text())):
            dead.append(link)
    return dead


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    assert dead_links(page) == []


def test_a_dead_link_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "other.md").write_text("# A page\n\n## What `it` says, twice\n## A page\n")
    page = tmp_path / "page.md"
    good = "[a](other.md#what-it-says-twice) [b](other.md#a-page-1) [c](https://x.y/z) `[d](gone)`"
    page.write_text(f"{good}\n```\n[e](gone)\n```\n")
    assert dead_links(page) == []
    page.write_text("[a](gone.md) [b](other.md#gone) [c](#gone) [d](../outside.md)")
    assert dead_links(page) == ["gone.md", "other.md#gone", "#gone", "../outside.md"]


def test_every_page_is_linked() -> None:
    """A page to which no other page leads is not found by a reader."""
    linked = {
        (page.parent / link.partition("#")[0]).resolve()
        for page in PAGES
        for link in LINK.findall(page.read_text())
    }
    assert [p.name for p in PAGES if p.resolve() not in linked | {ROOT / "README.md"}] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_bytes()) <= README_LIMIT_BYTES


def test_the_storm_yaml_of_a_machine_without_storm_has_all_that_the_controller_asks_for() -> None:
    asked = set()

    class Document(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            asked.add(key)
            return super().get(key, default)

    blocks = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs/install.md").read_text(), re.M | re.S)
    (block,) = [block for block in blocks if "storm.zookeeper.servers" in block]
    document = Document(yaml.safe_load(block))
    config, zookeeper = from_storm_yaml(document)
    assert zookeeper.hosts == "zk1:2181,zk2:2181,zk3:2181/storm"
    assert config.mode.value == "advise"
    assert config.keys["journal.dir"] == "/var/lib/nstorm/journal"
    # The folder of Storm's own files only gives a place to a journal that has none, and
    # credentials are a section of their own.
    secured = {
        "java.security.auth.login.config",
        "nimbus.childopts",
        "supervisor.childopts",
        "storm.zookeeper.auth.payload",
        "storm.zookeeper.auth.scheme",
        "storm.zookeeper.ssl.enable",
    }
    asked -= {"storm.local.dir", *secured}
    assert asked == {key for key in document if key.startswith("storm.")}


def test_every_outcome_is_explained_with_what_to_do() -> None:
    page = (ROOT / "controller" / "OUTCOMES.md").read_text().partition("\n## ")[0]
    rows = ROW.findall(page)
    assert sorted(name for name, _, _ in rows) == sorted(Outcome)
    assert all(meaning.strip() and action.strip() for _, meaning, action in rows)
    told = what_to_do(Outcome.BELOW_THRESHOLD)
    assert told == "Nothing, or lower `asc.threshold`. `nstorm tune` shows whether that pays."


def test_every_alert_has_its_line_in_the_runbook() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    rows = re.findall(r"^\| `(Nstorm\w+)` \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)
    assert [name for name, _, _ in rows] == [rule["alert"] for rule in alerts()]


def test_each_one_that_a_move_may_wait_for_has_its_line_in_the_runbook() -> None:
    source = (ROOT / "migration" / "events.py").read_text()
    named = {re.sub(r"\{.*?\}", "HOST:PORT", one) for one in re.findall(r'f"(the .*?)"', source)}
    page = (ROOT / "docs" / "operations.md").read_text()
    rows = re.findall(r"^\| (the [^|]+) \| [^|]+ \| [^|]+ \|$", page, re.MULTILINE)
    assert (len(rows), set(rows)) == (len(named), named)


def test_the_first_thing_in_an_emergency_stops_everything() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    box = page.partition("\n\n## ")[0]
    assert re.findall(r"^> 1\. `nstorm (\w+)", box, re.MULTILINE) == ["off"]


def test_the_changelog_is_short() -> None:
    points = re.findall(r"^- ", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert 0 < len(points) <= 15


def test_the_release_page_names_each_file_with_the_version_and_these_agree() -> None:
    page = (ROOT / "docs" / "releasing.md").read_text()
    places = {
        "pyproject.toml": r'^version = "(.+)"$',
        "migration/jvm/pom.xml": r"^  <version>(.+)</version>$",
        "migration/jvm/src/main/java/nstorm/hook/HookStatus.java": r'VERSION = "(.+)";',
    }
    found = {
        name: re.findall(pattern, (ROOT / name).read_text(), re.MULTILINE)
        for name, pattern in places.items()
    }
    assert all(f"`{name}`" in page for name in places)
    assert len({tuple(versions) for versions in found.values()}) == 1, found
    assert all(len(versions) == 1 for versions in found.values())


def _contributing() -> str:
    return (ROOT / "docs" / "contributing.md").read_text()


def test_every_file_that_contributing_names_is_there() -> None:
    listed = ("git", "ls-files", "--cached", "--others", "--exclude-standard")
    shown = subprocess.run(listed, cwd=ROOT, text=True, capture_output=True, check=True).stdout
    files = ["/" + name for name in shown.splitlines() if (ROOT / name).is_file()]
    named = re.findall(r"`([\w./-]+\.(?:py|java|txt|json|md|xml))`", FENCE.sub("", _contributing()))
    # The walk of a first change makes this one.
    made = {"controller/policies/stay.py"}
    gone = {name for name in named if not any(file.endswith("/" + name) for file in files)}
    assert gone - made == set()
    assert made <= gone, "the first change has become a part of the product: choose another"


def test_the_policy_of_the_first_change_decides() -> None:
    (block,) = re.findall(r"^   ```python\n(.*?)^   ```", _contributing(), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(textwrap.dedent(block), names)
    cluster, snapshot = parse((ROOT / "tests/golden/decide/hand_graph.json").read_text())
    assert names["stay"](cluster, snapshot, Limits()).outcome is Outcome.NOTHING_TO_GAIN
    assert "NOTHING_TO_GAIN" in _contributing()


@pytest.mark.parametrize(
    ("names", "files"),
    [
        # Made of what is known: where it stands, its outcome, and what to do about that.
        ("LAST_IN_WORKER", {"core/allowed.py", "core/decision.py", "OUTCOMES.md"}),
        # Made of a new setting, and of what operators newly set; an outcome of its own is one more.
        (
            r"min_age_s|min\.age\.secs",
            {"../migration/settings.py", "config.py", "core/veto.py", "OUTCOMES.md"},
        ),
        ("unwanted", {"core/controls.py", "hold.py", "cycle.py", "core/veto.py"}),
    ],
)
def test_a_veto_is_three_files_and_with_a_new_input_at_most_five(
    names: str, files: set[str]
) -> None:
    assert "| **a veto** (why this move may not be made) | 3 files" in _contributing()
    product = [ROOT / "controller/OUTCOMES.md", *ROOT.glob("migration/*.py")]
    product += [*ROOT.glob("controller/**/*.py"), *ROOT.glob("agent/**/*.py")]
    holders = {path.resolve() for path in product if re.search(names, path.read_text())}
    assert holders == {(ROOT / "controller" / name).resolve() for name in files}


@pytest.mark.parametrize(
    ("table", "reader"),
    [
        (OF_WORKER, "migration/jvm/src/main/java/nstorm/load/WorkerMeters.java"),
        (OF_EXECUTOR, "migration/jvm/src/main/java/nstorm/load/LoadSampler.java"),
        (OF_NODE, "agent/machine.py"),
    ],
)
def test_a_number_of_a_load_report_is_two_files(table: tuple[Meter, ...], reader: str) -> None:
    where = "a number of a worker, an executor or a node in its load report"
    assert f"| **{where}** | 2 files" in _contributing()
    product = [*ROOT.glob("migration/**/*.java"), *ROOT.glob("migration/*.py")]
    product += [*ROOT.glob("controller/**/*.py"), *ROOT.glob("agent/**/*.py")]
    texts = {path: path.read_text() for path in product if "/src/test/" not in path.as_posix()}
    for row in table:
        names = (row.name, row.column) if row.rate else (row.name,)
        holders = {
            path.relative_to(ROOT).as_posix()
            for path, text in texts.items()
            if any(f'"{name}"' in text for name in names)
        }
        # A decision may look at it.
        looks = {"controller/core/picture.py", "controller/core/resources.py"}
        assert holders - looks == {"migration/meters.py", reader}, row.name


def test_the_page_of_meters_is_the_table() -> None:
    assert (ROOT / "docs/meters.md").read_text() == meters_page(), (
        "type  python -m tests.meters_page > docs/meters.md"
    )


def test_a_policy_without_memory_is_two_files() -> None:
    """As in contributing: its own, and the registry; a table of settings if it has options."""
    assert "| **a policy** | 2 files" in _contributing()
    for name in ("even", "rsm", "heterogeneity"):
        holders = {
            path.relative_to(ROOT).as_posix()
            for path in ROOT.glob("controller/**/*.py")
            if f'"{name}"' in path.read_text()
        }
        assert holders == {"controller/policies/options.py"}, name
        assert name in NAMES
