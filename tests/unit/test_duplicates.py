"""No two places of the sources share more than ten lines, but deliberate ones."""

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_LINES = 10
FOLDERS = ("agent", "controller", "deploy", "kvstore", "migration", "tests")
# Pairs of files that may share more, each with the reason.
DELIBERATE: frozenset[tuple[str, str]] = frozenset()
# Imports may be the same anywhere.
IMPORT = re.compile(r"^\s*(?:from \S+ )?import (?:\([^)]*\)|[^\n]*)", re.MULTILINE)
NO_CODE = {".py": re.compile(r"#|\W*$"), ".java": re.compile(r"//|/?\*|\W*$")}


def lines_of(text: str, no_code: re.Pattern[str]) -> list[tuple[int, str]]:
    """Give the lines of code with their numbers, without indent, comments and imports."""
    text = IMPORT.sub(lambda found: "\n" * found[0].count("\n"), text)
    lines = ((number, line.strip()) for number, line in enumerate(text.split("\n"), 1))
    return [(number, line) for number, line in lines if not no_code.match(line)]


def shared(texts: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Give the pairs of places, ``file:line``, from which more than ten lines are the same."""
    places = defaultdict(list)
    for file, text in texts.items():
        lines = lines_of(text, NO_CODE[Path(file).suffix])
        for i in range(len(lines) - MOST_LINES):
            run = tuple(line for _, line in lines[i : i + MOST_LINES + 1])
            places[run].append((file, lines[i][0]))
    for same in places.values():
        for (one, line), (other, at) in combinations(same, 2):
            if (one, other) not in DELIBERATE:
                yield f"{one}:{line}", f"{other}:{at}"


def test_no_two_places_share_more_than_ten_lines() -> None:
    below = [ROOT / folder for folder in FOLDERS]
    found = sorted(file for one in below for kind in NO_CODE for file in one.rglob(f"*{kind}"))
    files = [file for file in found if "target" not in file.parts]  # where Maven builds
    texts = {file.relative_to(ROOT).as_posix(): file.read_text() for file in files}
    assert list(shared(texts)) == []


def test_a_line_more_than_ten_is_found_whatever_its_indent_and_comments() -> None:
    ten = "".join(f"value_{i} = {i}\n" for i in range(MOST_LINES))
    eleven = f"{ten}return value_0\n"
    indented = "import a\n" + eleven.replace("\n", "\n    # Why.\n    ")
    assert list(shared({"a.py": ten, "b.py": ten})) == []
    java = eleven.replace("\n", ";\n    // Why.\n    /* Why. */\n")
    assert list(shared({"a.java": "import a;\n" + java, "b.java": java}))
    assert list(shared({"a.py": eleven, "b.py": indented})) == [("a.py:1", "b.py:2")]
