"""The page of measured figures is made of the data, and each figure has its conditions."""

import re
import shlex

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from tests.bench.command import app
from tests.measured_page import FOLDER, SUBJECTS, Figure, page, subject

FIGURES = [(name, figure) for name in SUBJECTS for figure in subject(name).figure]


def test_the_page_is_the_data() -> None:
    assert (FOLDER.parent / "measured.md").read_text() == page(), (
        "type  python -m tests.measured_page > docs/measured.md"
    )


def test_the_page_is_short() -> None:
    assert len(page().splitlines()) <= 165, "`current = false` leaves a finer figure to the data"


def test_every_file_of_figures_is_on_the_page_and_every_log_is_of_a_subject() -> None:
    assert {path.stem for path in FOLDER.glob("*.toml")} == set(SUBJECTS)
    logs = {subject(name).log for name in SUBJECTS} - {""}
    assert {path.name for path in FOLDER.glob("*.md")} == logs


@pytest.mark.parametrize("name, figure", FIGURES, ids=lambda value: getattr(value, "what", value))
def test_a_figure_has_its_conditions(name: str, figure: Figure) -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", figure.date), name
    assert re.search(r"\d|–|arithmetic|no other work", figure.load), name
    cells = (figure.what, figure.figure, figure.load, figure.command)
    assert not any(set("|\n") & set(cell) for cell in cells), "a cell of a table in Markdown"
    assert figure.what and figure.figure, name


BENCH = re.compile(r"`(?:python -m tests\.)?bench (\S+)([^`]*)`")
BENCHED = [
    (name, options)
    for _, figure in FIGURES
    if figure.current
    for name, options in BENCH.findall(figure.command)
]


@pytest.mark.parametrize("name, options", sorted(set(BENCHED)))
def test_the_bench_of_a_figure_is_there_and_has_these_options(name: str, options: str) -> None:
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    # An option of which several were given has an ellipsis.
    given = shlex.split(re.sub(r"--\S+ …", "", options))
    assert group.commands[name].make_context(name, given)


def test_no_current_figure_is_of_a_bench_without_a_name() -> None:
    assert len(BENCHED) > 40


CITED = [figure for _, figure in FIGURES if figure.cite]


@pytest.mark.parametrize("figure", CITED, ids=lambda figure: figure.cite)
def test_the_readme_says_what_was_measured(figure: Figure) -> None:
    readme = " ".join((FOLDER.parents[1] / "README.md").read_text().split())
    assert figure.current
    assert figure.cite in readme
    known = set(re.findall(r"\d[\d.,]*\d|\d", f"{figure.what} {figure.figure}"))
    assert set(re.findall(r"\d[\d.,]*\d|\d", figure.cite)) - known <= {"2"}, "share 2 cores"
