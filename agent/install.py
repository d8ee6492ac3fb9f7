"""``nstorm install``: the jar next to a Storm, and its option in that Storm's storm.yaml.

A JVM whose `-javaagent` file is missing does not start, so the jar comes first and goes never. The
file of a running JVM is not changed either: a new version is a file of its own behind one link.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from kvstore.printable import printable
from migration import ConfigError, jar, storm_yaml

KEYS = ("nimbus.childopts", "supervisor.childopts", "worker.childopts")
_LINK = "nstorm-hooks.jar"
# As it stands among the options of a JVM.
OPTION = re.compile(r"-javaagent:\S*nstorm-hooks\S*\.jar\S*")
_BEGIN, _END = "# nstorm install: begin", "# nstorm install: end"
_ADDED = re.compile(f"{_BEGIN}\r?\n(.*?){_END}\r?\n", re.DOTALL)
_JAVA_LIMIT_S = 60.0
# A plain path; only a shell knows what a `$` or a `~` comes to, and whether an indented line runs.
_JAVA_HOME = re.compile(
    r"""^(?:export\s+)?JAVA_HOME=["']?([^"'$`~;#\s]+)["']?\s*(?:[;#].*)?$""", re.MULTILINE
)


def main(arguments: Sequence[str]) -> int:
    """Run the command line; errors a user can mend end in one line and exit code 2."""
    given = _parser().parse_args(arguments)
    try:
        return _undone(given.storm_home) if given.undo else _installed(given)
    except ConfigError as error:
        print(f"nstorm: {printable(str(error))}", file=sys.stderr)
    except OSError as error:
        # What a write has no room for names no file.
        why = f"{error.filename or given.storm_home}: {error.strerror}"
        if isinstance(error, PermissionError):
            why += "; run it as the owner of Storm's files"
        print(f"nstorm: {printable(why)}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "nstorm install",
        description="Put the jar with the hooks next to a Storm, and name it in that Storm's\n"
        "storm.yaml. It restarts nothing: JVMs take up the jar when they next start.",
        epilog="  Example:\n    nstorm install --storm-home /opt/storm --check\n"
        "    nstorm install --storm-home /opt/storm\n"
        "    nstorm install --storm-home /opt/storm --undo",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--storm-home",
        type=Path,
        required=True,
        metavar="DIR",
        help="Storm's folder, with lib/ and conf/storm.yaml",
    )
    one = parser.add_mutually_exclusive_group()
    one.add_argument(
        "--check",
        action="store_true",
        help="change nothing, and show what is missing; exit code 1: something is",
    )
    one.add_argument(
        "--undo",
        action="store_true",
        help="take the option out of storm.yaml; the jar stays for the JVMs that run with it",
    )
    return parser


def _installed(given: argparse.Namespace) -> int:
    home: Path = given.storm_home
    conf, source = _conf(home), jar.path()
    kept = home.absolute() / "nstorm" / f"nstorm-hooks-{version('nstorm')}.jar"
    link = kept.with_name(_LINK)
    # Storm splits options at spaces, and a JVM reads a path in the letters of its locale.
    if not re.fullmatch("[A-Za-z0-9_./+@-]+", str(link)):
        raise ConfigError(
            f"{home.absolute()}: an option of a JVM may only have A-Z, a-z, 0-9 and _./+@-: "
            "make a link to it without other letters, and name that"
        )
    _refuse_old_java(home, source)
    text, default = _read(conf), defaults(home)
    wanted = with_option(text, default, f"-javaagent:{link}")
    missing = []
    if kept.parent.is_dir() and not _may_be_entered(kept.parent):
        missing.append(f"the right of others to enter {kept.parent}")
    if not kept.is_file() or kept.read_bytes() != source.read_bytes():
        missing.append(f"the jar {kept}")
    if not link.is_symlink() or str(link.readlink()) != kept.name:
        missing.append(f"the link {link}")
    if wanted != text:
        before, after = _loaded(text), _loaded(wanted)
        keys = ", ".join(key for key in KEYS if before.get(key) != after.get(key))
        missing.append(f"the option -javaagent:{link} of {keys} in {conf}")
    if given.check or not missing:
        print("\n".join(f"missing: {one}" for one in missing) or "all is there")
        return 1 if missing else 0
    _put_jar(source, kept, link)
    if wanted != text:
        _replace(conf, wanted, is_stock=without_option(text, default) == text)
    print("\n".join(f"written: {one}" for one in missing))
    print(
        "restart Nimbus and the supervisors, one after the other. Under systemd check first that "
        "`systemctl show -p KillMode` of a supervisor's unit prints process, or its workers end too"
    )
    return 0


def _undone(home: Path) -> int:
    conf = _conf(home)
    text = _read(conf)
    wanted = without_option(text, defaults(home))
    if wanted == text:
        print(f"{conf} names no jar of nstorm")
        return 0
    _replace(conf, wanted, is_stock=False)
    print(f"written: {conf} without the option; restart Nimbus and the supervisors, one by one")
    print(f"{home / 'nstorm'} stays: delete it once no JVM runs with it")
    return 0


def _conf(home: Path) -> Path:
    conf = home / "conf" / "storm.yaml"
    if not conf.is_file():
        raise ConfigError(f"{conf}: there is no such file, so {home} is no folder of a Storm")
    return conf.resolve()  # what a link names is written, not the link


def _read(conf: Path) -> str:
    try:
        return conf.read_bytes().decode()  # with the ends of lines that it has
    except UnicodeDecodeError as error:
        raise ConfigError(f"{conf}: {storm_yaml.problem(error)}") from None


def _java(home: Path) -> str:
    """Find the Java of a Storm, whose own script reads the file first."""
    conf = home / "conf" / "storm-env.sh"
    # Not run: root may be here, and the file may be of Storm's user.
    named = _JAVA_HOME.findall(conf.read_text(errors="replace")) if conf.is_file() else []
    # Such a line may be of a condition that does not hold.
    java = jar.java(named[-1] if named else "") or jar.java()
    if java is None and named:
        raise ConfigError(f"{conf}: there is no java in its JAVA_HOME, {named[-1]}")
    if java is None:
        raise ConfigError("there is no java: set JAVA_HOME to that of Storm")
    return java


def _refuse_old_java(home: Path, hooks: Path) -> None:
    """Start a JVM with the jar, as Storm does: it prints why the hooks would not be active."""
    java = _java(home)
    try:
        done = subprocess.run(
            [java, f"-javaagent:{hooks}", "-version"],
            capture_output=True,
            text=True,
            timeout=_JAVA_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(f"{java} -version took longer than {_JAVA_LIMIT_S:g} s") from None
    said = [line for line in done.stderr.splitlines() if line.startswith("nstorm:")]
    if said or done.returncode:
        why = said[0] if said else f"exit code {done.returncode} with {hooks}"
        raise ConfigError(f"{java} would not run the hooks: {why}")


def defaults(home: Path) -> dict[str, Any]:
    """Read the defaults of a Storm, which a key in storm.yaml replaces."""
    for found in sorted((home / "lib").glob("storm-client-*.jar")):
        try:
            with zipfile.ZipFile(found) as packed:
                return dict(storm_yaml.load(packed.read("defaults.yaml").decode()))
        except (OSError, KeyError, ValueError, zipfile.BadZipFile, yaml.YAMLError) as error:
            raise ConfigError(f"{found}: its defaults.yaml cannot be read: {error}") from None
    raise ConfigError(f"{home / 'lib'}: there is no storm-client-*.jar in it")


def with_option(text: str, default: Mapping[str, Any], option: str) -> str:
    """Add an option to the values of `KEYS`; a key without a value gets Storm's default first.

    All other text stays. Raises ConfigError if it is no storm.yaml, or a value is of another kind.
    """

    def one_more(key: str, value: Any) -> Any:
        return _with(key, default.get(key, "") if value is None else value, option)

    text = _edited(text, one_more)
    before, nodes = _loaded(text), _nodes(text)
    added = {key: _with(key, default.get(key, ""), option) for key in KEYS if key not in before}
    if not added:
        return text
    indent = " " * (nodes[0][0].start_mark.column if nodes else 0)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = (f"{indent}{key}: {json.dumps(value)}" for key, value in added.items())
    text += newline * (not text.endswith("\n") and bool(text))
    text += "".join(f"{line}{newline}" for line in (_BEGIN, *lines, _END))
    return _checked(text, {**before, **added})


def without_option(text: str, default: Mapping[str, Any]) -> str:
    """Take out what `with_option` has added; what else its lines have by now stays."""

    def kept(block: re.Match[str]) -> str:
        lines = block[1].splitlines(keepends=True)
        return "".join(line for line in lines if not _only_adds(line, default))

    return _edited(_ADDED.sub(kept, text), _without)


def _only_adds(line: str, default: Mapping[str, Any]) -> bool:
    """Whether a line holds Storm's default but for the option."""
    key, _, value = line.strip().partition(": ")
    with suppress(ValueError):
        plain = _without(key, json.loads(value))
        return key in KEYS and _words(plain) == _words(default.get(key) or "")
    return False


def _with(key: str, value: Any, option: str) -> Any:
    if value is None:
        value = ""
    if not isinstance(value, str | list):
        raise ConfigError(f"{key}: must be options in one text or a list, is {value!r}")
    words = _words(value)
    others = _without(key, words)
    if [one for one in words if one not in others] == [option]:
        return value  # where other agents stand after it, it stays
    return " ".join([*others, option]) if isinstance(value, str) else [*others, option]


def _words(value: Any) -> Any:
    return value.split() if isinstance(value, str) else value


def _without(key: str, value: Any) -> Any:
    if isinstance(value, list):
        return [one for one in value if not OPTION.fullmatch(str(one))]
    if isinstance(value, str) and OPTION.search(value):
        return " ".join(OPTION.sub("", value).split())
    return value


def _nodes(text: str) -> list[tuple[yaml.Node, yaml.Node]]:
    """Find where the keys and their values stand, in what `_loaded` has taken."""
    root = yaml.compose(text, yaml.SafeLoader)
    return list(root.value) if root else []


def _loaded(text: str) -> dict[Any, Any]:
    try:
        found = storm_yaml.load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"the storm.yaml is no YAML: {storm_yaml.problem(error)}") from None
    if found is not None and not isinstance(found, dict):
        raise ConfigError("the storm.yaml must hold keys with values, like Storm's own")
    return found or {}


def _end(value: yaml.Node) -> int:
    """Return where a value ends; to the parser, comments after a block list belong to it."""
    items = isinstance(value, yaml.SequenceNode) and not value.flow_style and value.value
    return _end(items[-1]) if items else value.end_mark.index


def _edited(text: str, change: Callable[[str, Any], Any]) -> str:
    """Change the values of `KEYS` where they stand, and nothing else.

    Raises ConfigError where the text cannot be changed so, as with anchors.
    """
    before = _loaded(text)
    spans = {
        key.value: (value.start_mark.index, len(text[: _end(value)].rstrip("\r\n")))
        for key, value in _nodes(text)
        if key.value in KEYS
    }
    after = {key: change(key, value) if key in KEYS else value for key, value in before.items()}
    for key, (begin, end) in sorted(spans.items(), key=lambda row: -row[1][0]):
        if after[key] != before[key]:
            space = " " * (text[begin - 1 : begin] == ":")
            text = f"{text[:begin]}{space}{json.dumps(after[key])}{text[end:]}"
    return _checked(text, after)


def _checked(text: str, wanted: Mapping[str, Any]) -> str:
    """Return a text that holds what is wanted; a ConfigError if this one does not."""
    with suppress(yaml.YAMLError):
        if (storm_yaml.load(text) or {}) == wanted:
            return text
    raise ConfigError(
        f"the storm.yaml cannot be edited by a program: append the jar's -javaagent option to "
        f"{', '.join(KEYS)} by hand"
    )


def _may_be_entered(folder: Path) -> bool:
    """Whether Storm's user, whoever that is, can reach what is in it."""
    return folder.stat().st_mode & 0o011 == 0o011


def _put_jar(source: Path, kept: Path, link: Path) -> None:
    if kept.parent.is_symlink() and kept.parent.lstat().st_uid != os.geteuid():
        raise ConfigError(f"{kept.parent} is a link of another user: run it as that user")
    kept.parent.mkdir(exist_ok=True)
    if not _may_be_entered(kept.parent):  # by the umask
        kept.parent.chmod(0o755)
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        made = Path(folder, "made")
        shutil.copyfile(source, made)
        made.chmod(0o644)
        made.replace(kept)
        made.symlink_to(kept.name)
        made.replace(link)


def _replace(conf: Path, text: str, *, is_stock: bool) -> None:
    """Write a file whole or not at all, and keep the last one of stock Storm next to it."""
    kept = conf.with_name(f"{conf.name}.before-nstorm")
    if is_stock or not kept.exists():
        _write(kept, conf.read_bytes(), conf)
    _write(conf, text.encode(), conf)


def _write(path: Path, data: bytes, like: Path) -> None:
    """Put a file in place with the rights of another, and follow no link that is there."""
    state = like.stat()
    handle, made = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            shutil.copystat(like, made)  # also the ACL; the write then sets the time
            shutil.chown(made, state.st_uid, state.st_gid)
            file.write(data)
        Path(made).replace(path)
    except BaseException:
        Path(made).unlink()  # it may have the secrets of the first
        raise
