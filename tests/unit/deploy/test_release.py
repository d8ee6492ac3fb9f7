"""The page that is published with the files of a release."""

import pytest

from deploy.lab.home.versions import REPOSITORY
from deploy.release import page

CHANGELOG = """# Changelog

## 0.3.0 (2027-01-01)

- Later.

## 0.2.0 (2026-12-01)

- Executors move ([What moves](docs/moves.md)).

## 0.1.0

- Before.
"""


def test_a_page_has_the_changes_of_its_version_alone_and_no_link() -> None:
    support = (REPOSITORY / "docs/support.md").read_text()
    found = page("0.2.0", CHANGELOG, support, {"nstorm-hooks-0.2.0.jar": 2.04})
    assert "- Executors move (What moves)." in found
    assert "Later" not in found and "Before" not in found and "](" not in found
    assert "| Apache Storm | 2.8.3, 2.8.4 |\n" in found, "what was tested live, and no more"
    assert "| `nstorm-hooks-0.2.0.jar` | 2.0 |" in found


def test_a_version_without_a_heading_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"no heading has 0\.9\.0"):
        page("0.9.0", CHANGELOG, "## Versions\n", {})
