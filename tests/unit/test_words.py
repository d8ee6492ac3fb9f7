"""The language of pages and sources: no idiom for a machine, and at most 25 words a sentence.

In a source, docstrings, comments and texts are read; in Python of laboratory and tests no texts.
"""

import ast
import inspect
import io
import re
import tokenize
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

ROOT = Path(__file__).parents[2]
MOST_WORDS = 25
# Logs of runs are kept as they were noted.
LEFT_OUT = ("docs/measurements/",)
PAGES = sorted(
    name
    for path in (
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        ROOT / "controller/OUTCOMES.md",
        ROOT / "migration/PROTOCOL.md",
        ROOT / "migration/jvm/HOOKS.md",
    )
    if not (name := path.relative_to(ROOT).as_posix()).startswith(LEFT_OUT)
)
SOURCES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in (
        "agent/**/*.py",
        "kvstore/**/*.py",
        "migration/**/*.py",
        "controller/**/*.py",
        "migration/jvm/src/main/java/**/*.java",
        "deploy/lab/workload/src/main/java/**/*.java",
        "deploy/**/*.py",
        "tests/**/*.py",
    )
    for path in ROOT.glob(pattern)
    if path != Path(__file__)
)
# Here texts are also data, such as lines of logs and arguments.
LABORATORY = ("deploy/", "tests/")
# What people do, said of a machine; and what says nothing.
IDIOMS = re.compile(
    r"\b(?:told|tells?|telling|lately|anew|besides?|meanwhile|in vain|so many|of late"
    r"|(?:an?|its|your|one|another|no|the) word"
    r"|for good|as ever|sign of life|behind \w+ back|to and fro|by itself|by themselves"
    r"|in its turn|mostly|says?|said)\b|, too\b",
    re.IGNORECASE,
)
# The same in names of functions and classes.
NAMED = re.compile(r"(?:^|_)(?:told|said|lately|anew|meanwhile)(?:_|$)")
FENCE = re.compile(r"^```.*?^```$|<!--.*?-->", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`]*`")
LINK = re.compile(r"\[([^\]]*)\]\([^()\s]+\)")
# A block begins at an empty line, at an entry of a list and at a heading.
BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)|\n(?=#)")
END = re.compile(r"(?<=[.?!])[)*_]*\s+")

# A comment, whose lines may stand below each other, or a literal.
JAVA = re.compile(
    r"/\*.*?\*/|//[^\n]*(?:\n[ \t]*//[^\n]*)*"
    r"|\"\"\".*?\"\"\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)
JAVA_MARGIN = re.compile(r"^[ \t]*(?:/\*\*?|\*/|\*|//)|\*/$", re.MULTILINE)
JAVADOC_CODE = re.compile(r"\{@\w+\s[^{}]*\}")
# The names and types of parameters.
NUMPYDOC = re.compile(
    r"^(?:Parameters|Attributes|Returns|Yields|Raises)\n-+\n.*$|^\w[\w, ]* : .*$", re.MULTILINE
)
JAVADOC_BLOCK = re.compile(r"</?[a-z]+>|^\s*@(?:param|return|throws)\b", re.MULTILINE)


Texts: TypeAlias = Callable[[str], list[str]]


def prose(text: str) -> str:
    """Give a page without its code; a piece of code within a sentence is one word."""
    return CODE.sub("CODE", LINK.sub(r"\1", FENCE.sub("", text)))


def idioms(text: str) -> list[str]:
    """List what is not said of machines, in sentences and in tables."""
    return [found.strip() for found in IDIOMS.findall(" ".join(prose(text).split()))]


def long_sentences(text: str) -> list[str]:
    """List the sentences outside of tables with more than 25 words."""
    lines = (line for line in prose(text).split("\n") if not line.lstrip().startswith("|"))
    blocks = BLOCK.split("\n".join(lines))
    sentences = (" ".join(one.split()) for block in blocks for one in END.split(block))
    return [one for one in sentences if len(re.findall(r"\S*\w\S*", one)) > MOST_WORDS]


def faults(name: str) -> list[str]:
    """List what is wrong with the language of a page."""
    text = (ROOT / name).read_text()
    return idioms(text) + long_sentences(text)


def comments(source: str) -> list[str]:
    """List the comments of a source; lines of one column below each other are one comment."""
    found: list[str] = []
    last = (-1, 0)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            text, (row, column) = token.string.lstrip("# "), token.start
            if last == (row - 1, column):
                found[-1] += f" {text}"
            else:
                found.append(text)
            last = token.start
    return found


def literals(source: str) -> list[str]:
    """List the texts of a source, docstrings too; a value within a text is one word."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
            found.append("".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(inspect.cleandoc(node.value))
    return found


def docstrings(source: str) -> list[str]:
    """List the docstrings of a source, without names and types of parameters."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds))
    return [NUMPYDOC.sub("\n", text) for node in nodes if (text := ast.get_docstring(node))]


def texts_of_python(source: str) -> list[str]:
    return comments(source) + literals(source)


def prose_of_python(source: str) -> list[str]:
    return comments(source) + docstrings(source)


def texts_of_java(source: str) -> list[str]:
    """List the comments and literals of a source; a paragraph or a tag of Javadoc is a block."""
    found: list[str] = []
    for part in JAVA.findall(source):
        if part.startswith("/"):
            text = JAVADOC_CODE.sub("CODE", JAVA_MARGIN.sub("", part))
            found.append(JAVADOC_BLOCK.sub("\n\n", text))
        elif part.startswith('"""'):  # a list or a program, and no paragraph
            found += part.strip('"').splitlines()
        else:
            found.append(part.strip("\"'"))
    return found


def faults_of_source(source: str, texts: Texts = texts_of_python) -> list[str]:
    """List what is wrong with the language of a source."""
    found = [one for text in texts(source) for one in idioms(text) + long_sentences(text)]
    return list(dict.fromkeys(found))


def names_with_idioms(source: str) -> list[str]:
    """List the functions and classes whose names have an idiom."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    names = (node.name for node in ast.walk(ast.parse(source)) if isinstance(node, kinds))
    return [name for name in names if NAMED.search(re.sub("([A-Z])", r"_\1", name).lower())]


@pytest.mark.parametrize(
    "name", [n for n in SOURCES if n.endswith(".py") and not n.startswith(LABORATORY)]
)
def test_the_names_of_a_source_are_plain(name: str) -> None:
    assert names_with_idioms((ROOT / name).read_text()) == []


def test_an_idiom_in_a_name_is_found() -> None:
    source = (
        "class WordCount:\n    def _write_anew(self): ...\ndef told(word): ...\nclass SaidSo: ...\n"
    )
    assert sorted(names_with_idioms(source)) == ["SaidSo", "_write_anew", "told"]


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_is_plain(name: str) -> None:
    texts = prose_of_python if name.startswith(LABORATORY) else texts_of_python
    texts = texts_of_java if name.endswith(".java") else texts
    assert faults_of_source((ROOT / name).read_text(), texts) == []


def test_an_idiom_in_a_source_is_found_but_in_names() -> None:
    source = '''def told(said):
    """Tell it by\n    itself."""
    # It says so
    # to and
    # fro.
    return f"a {said} of late, told {told}"
'''
    assert faults_of_source(source) == [
        "says",
        "to and fro",
        "Tell",
        "by itself",
        "of late",
        "told",
    ]
    long = "Every" + " word" * 25
    assert faults_of_source(f'"""{long}"""\n') == [long]
    assert faults_of_source(f'"""Short.\n\n{long}"""\n') == [long]
    assert faults_of_source(f"# {long}\n") == [long]
    assert faults_of_source(f'X = "{long}"\n') == [long]
    assert faults_of_source(f'X = f"{long[:-5]} {{x + y - z}}"\n') == [f"{long[:-5]} X"]


def test_an_idiom_in_the_prose_of_a_laboratory_is_found_but_in_data() -> None:
    source = '''def f(told):
    """Tell it.

    Parameters
    ----------
    told : list
        What was said.
    """
    return "told"  # anew
'''
    assert faults_of_source(source, prose_of_python) == ["anew", "Tell", "said"]
    long = "Every" + " word" * 25
    assert faults_of_source(f'"""{long}"""\n', prose_of_python) == [long]
    named = f'"""Short.\n\nReturns\n-------\nint\n    {long}\n"""\n'
    assert faults_of_source(named, prose_of_python) == [long]


def test_an_idiom_in_a_source_of_java_is_found_but_in_names() -> None:
    source = """/**
 * Tells it by
 * itself to {@code said, too}.
 *
 * @param told lately
 */
void tell(String told) {
    char quote = '"'; // It says so,
    // to and
    // fro.
    log(said, "a \\"word\\" of late"); /* mostly */
}
"""
    assert faults_of_source(source, texts_of_java) == [
        "Tells",
        "by itself",
        "told",
        "lately",
        "says",
        "to and fro",
        "of late",
        "mostly",
    ]
    long = "Every" + " word" * 25
    assert faults_of_source(f"/** {long} */\n", texts_of_java) == [long]
    assert faults_of_source(f"/**\n * Short.\n *\n * @return {long}\n */\n", texts_of_java) == [
        long
    ]
    assert faults_of_source(f"// {long[:-5]}\n    // word\n", texts_of_java) == [long]
    assert faults_of_source(f'throw new Error("{long}");\n', texts_of_java) == [long]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_plain(name: str) -> None:
    assert faults(name) == []


def test_an_idiom_is_found_but_in_code() -> None:
    assert idioms("The worker is told lately, too.\n\n| a | beside |\n") == [
        "told",
        "lately",
        ", too",
        "beside",
    ]
    assert idioms("Set `word` to a WordCount of words.\n```\ntell\n```\n") == []


def test_a_long_sentence_is_found() -> None:
    long = "Every " + "word " * 24 + "counts."
    assert len(long.split()) == 26
    assert long_sentences(f"# A page\n\nShort one. {long} Another.\n") == [long]
    assert long_sentences(f"| {long} |\n```\n{long}\n```\n") == []
    assert long_sentences("- " + "a " * 20 + "\n- " + "b " * 20 + "\n1. " + "c " * 20) == []
    assert long_sentences("`" + "code " * 30 + "` is [one link](docs/a.md#b) of code.") == []
