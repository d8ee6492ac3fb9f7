"""The decisions: each page has its status, and speaks only of what the repository has."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from controller.policies.options import NAMES
from migration.settings import SETTINGS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "decisions"
PAGES = sorted(FOLDER.glob("0*.md"))
HEAD = re.compile(
    r"# (\d{4}): (.+)\n\n(\d{4}-\d\d-\d\d), (accepted|superseded by \[\d{4}\]\(.+\))\n"
)
PARTS = ("**Context.**", "**Choice.**", "**Price.**")
CODE = re.compile(r"`([^`\n]+)`")
NUMBER = re.compile(r"\bdecisions?[ /](\d{4})\b", re.IGNORECASE)
POLICY = re.compile(r"\bpolicy(?: of ours)?:? `([\w-]+)`|`([\w-]+)` policy\b", re.IGNORECASE)
# Names of other projects that no code here spells so.
FOREIGN = {"@", "(a * b).sum()", "netem", "Serializable", "sum without(instance) (increase(…))"}
FOREIGN |= {"__ack_init", "__ack_ack", "__ack_fail", "zkCli", "multiRead", "cronsim"}
NAME = re.compile(r"[\w.-]*[a-zA-Z][\w.-]*")


@cache
def _sources() -> str:
    """Join the code and the build files; pages for people must not vouch for each other."""
    listed = ("git", "ls-files", "*.py", "*.java", "*.toml", "*.xml", "*.txt", ":!tests")
    names = subprocess.run(listed, cwd=ROOT, text=True, capture_output=True, check=True).stdout
    paths = [ROOT / name for name in names.splitlines()]
    return "\n".join(path.read_text() for path in paths if path.is_file())


@cache
def _names() -> frozenset[str]:
    return frozenset(name.strip(".-") for name in NAME.findall(_sources()))


def gone_names(text: str) -> list[str]:
    """List the names in backticks, and the policies, that the repository does not have."""
    keys = {row.key for row in SETTINGS} | {f"nstorm.{row.key}" for row in SETTINGS}
    gone = [name for pair in POLICY.findall(text) for name in pair if name and name not in NAMES]
    for code in CODE.findall(text):
        if code in FOREIGN or code in keys:
            continue
        if "/" in code and not code.startswith("/"):
            known = (ROOT / code).exists()
        elif re.fullmatch(r"[a-z]+", code):
            # A plain word may stand in any comment, so it has to be a value or a function.
            known = f'"{code}"' in _sources() or f"{code}(" in _sources()
        else:
            words = (name.strip(".-").removeprefix("nstorm_") for name in NAME.findall(code))
            known = all(word in _names() for word in words)
        if not known:
            gone.append(code)
    return gone


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_decision_has_its_status_and_its_parts(page: Path) -> None:
    text = page.read_text()
    head = HEAD.match(text)
    assert head, "number, title, date and status"
    assert page.name.startswith(head[1])
    at = [text.index(part) for part in PARTS]
    assert at == sorted(at)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_decision_speaks_only_of_what_there_is(page: Path) -> None:
    assert gone_names(page.read_text()) == []


def test_the_index_has_each_decision_with_its_status() -> None:
    rows = re.findall(r"^\| \[(\d{4})\]\((.+?)\) \| (.+) \| (\S+) \| (.+) \|$", _index(), re.M)
    heads = [(page, HEAD.match(page.read_text())) for page in PAGES]
    assert rows == [
        (head[1], page.name, head[2], head[3], re.sub(r"\]\(.+\)", "]", head[4]).strip())
        for page, head in heads
        if head
    ]


def _index() -> str:
    return (FOLDER / "README.md").read_text()


def test_every_number_of_a_decision_is_a_page() -> None:
    numbers = {page.name[:4] for page in PAGES}
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("migration/**/*.md")]
    texts = [_sources(), *(page.read_text() for page in pages)]
    assert {found for text in texts for found in NUMBER.findall(text)} - numbers == set()


def test_what_is_gone_is_found() -> None:
    """The names that pages of earlier policies, settings and files spoke of."""
    assert gone_names("`safe` is the default, with `safe.share` and `Partitioned`.") == [
        "safe",
        "safe.share",
        "Partitioned",
    ]
    assert gone_names("the policy `target` is in `controller/partitioner.py`") == [
        "target",
        "controller/partitioner.py",
    ]
    assert gone_names("policy `gather`, `load.high` and `Rates` in `controller/cycle.py`") == []
