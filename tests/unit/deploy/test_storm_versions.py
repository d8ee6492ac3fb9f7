"""The one table of Storm's versions, and who reads it."""

import re

import pytest

from deploy.lab import LabError
from deploy.lab.home.versions import REPOSITORY, storm_version, storm_versions

SUPPORT = (REPOSITORY / "docs/support.md").read_text()


def test_the_jars_are_compiled_against_a_live_version() -> None:
    assert storm_version().level == "live"
    assert storm_version("2.8.4").parts == "2.8.3"


def test_a_version_that_is_not_in_the_table_is_refused() -> None:
    with pytest.raises(LabError, match=r"Storm 9\.9\.9 is not in storm-versions\.tsv, which has"):
        storm_version("9.9.9")


def test_the_support_matrix_has_each_version_at_its_level() -> None:
    (row,) = re.findall(r"^\| Apache Storm \|(.*?)\|(.*?)\|", SUPPORT, re.MULTILINE)
    for level, cell in zip(("live", "names"), row, strict=True):
        wanted = [row.version for row in storm_versions().values() if row.level == level]
        assert re.findall(r"\d+\.\d+\.\d+", cell) == wanted


def test_no_other_build_file_has_a_version_of_storm() -> None:
    for pom in REPOSITORY.glob("**/pom.xml"):
        if "build" not in pom.relative_to(REPOSITORY).parts:
            assert "<storm.version>" not in pom.read_text(), pom
