"""The jar comes next to a Storm and into its storm.yaml; everything else there stays as it was."""

import errno
import os
import pwd
import struct
import zipfile
from pathlib import Path

import pytest
import yaml

from agent.install import KEYS, main, with_option, without_option
from migration import ConfigError

DEFAULTS = {"nimbus.childopts": "-Xmx1024m", "supervisor.childopts": "-Xmx256m"}
OPTION = "-javaagent:/opt/storm/nstorm/nstorm-hooks.jar"
TEXTS = {
    "empty": "",
    "comment": "# nothing\n",
    "no newline": "a: 1",
    "another agent": 'worker.childopts: "-Xmx1g -javaagent:/opt/jmx.jar=9404"  # heap\nb: 2\n',
    "folded": "worker.childopts: >-\n  -Xmx1g\n  -Dx=1\nb: 2\n",
    "list": 'worker.childopts: ["-Xmx1g", "-Dx=1"]\nb: 2\n',
    "block list": "worker.childopts:\n  - -Xmx1g\n  - -Dx=1\nb: 2\n",
    "block list, comments": "worker.childopts:\n  - -Xmx1g\n  - -Dx=1  # heap\n\n# nothing\nb: 2\n",
    "block list of blocks": "worker.childopts:\n  - >-\n    -Xmx1g\n# nothing\nb: 2\n",
    "block list at the end": "worker.childopts:\n  - -Xmx1g\n  - -Dx=1",
    "nothing": "worker.childopts:\nb: 2\n",
    "indented": " # ours\n a: 1\n b:\n     - 2\n",
    "indented, one key of three": "   nimbus.childopts: -Xmx1g\n   text: |\n      b\n",
    "a document": "---\na: 1\n",
    "an older jar": "worker.childopts: -javaagent:/x/nstorm-hooks-0.1.0.jar -Xmx1g\n",
}


def words(value: object) -> list[str]:
    return value.split() if isinstance(value, str) else list(value or [])  # type: ignore[call-overload]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_each_jvm_gets_the_option_and_keeps_its_own(text: str) -> None:
    before, made = yaml.safe_load(text) or {}, with_option(text, DEFAULTS, OPTION)
    after = yaml.safe_load(made)
    for key in KEYS:
        given = words(before.get(key) or DEFAULTS.get(key, ""))
        kept = [one for one in given if "nstorm-hooks" not in one]
        assert words(after[key]) == [*kept, OPTION]
    assert {k: v for k, v in after.items() if k not in KEYS} == {
        k: v for k, v in before.items() if k not in KEYS
    }
    assert with_option(made, DEFAULTS, OPTION) == made
    for comment in ("# nothing", "# heap"):
        assert (comment in made) == (comment in text)
    undone = yaml.safe_load(without_option(made, DEFAULTS)) or {}
    assert {k: words(v) for k, v in undone.items() if k in KEYS} == {
        k: [w for w in words(v) if "nstorm-hooks" not in w] for k, v in before.items() if k in KEYS
    }


@pytest.mark.parametrize(("given", "wanted"), [('""', OPTION), ("[]", [OPTION])])
def test_a_jvm_without_options_on_purpose_gets_none_of_storms(given: str, wanted: object) -> None:
    text = "".join(f"{key}: {given}\n" for key in KEYS)
    made = with_option(text, DEFAULTS, OPTION)
    assert yaml.safe_load(made) == dict.fromkeys(KEYS, wanted)
    assert without_option(made, DEFAULTS) == text


@pytest.mark.parametrize(
    "value", [f"-Xmx1g {OPTION} -javaagent:/opt/otel.jar", ["-Dx=1", OPTION, "-Dy"]]
)
def test_an_option_before_those_of_other_agents_stays_there(value: object) -> None:
    text = yaml.safe_dump(dict.fromkeys(KEYS, value))
    assert with_option(text, DEFAULTS, OPTION) == text


def test_what_was_only_added_is_taken_out_to_the_last_character() -> None:
    text = "storm.zookeeper.servers: [zk1]\n"
    assert without_option(with_option(text, DEFAULTS, OPTION), DEFAULTS) == text


@pytest.mark.parametrize("start", ["", "  a: 1\n"])
def test_what_was_changed_between_the_marks_stays_without_option_and_marks(start: str) -> None:
    made = with_option(start, DEFAULTS, OPTION)
    indent = start[: len(start) - len(start.lstrip())]
    for here, changed in (
        (f'"-Xmx256m {OPTION}"', f'"-Xmx512m {OPTION}"  # more heap'),
        ("# nstorm install: end", f"{indent}# ours\n{indent}b: 2\n# nstorm install: end"),
    ):
        assert here in made
        made = made.replace(here, changed)
    wanted = ('supervisor.childopts: "-Xmx512m"  # more heap', "# ours", "b: 2")
    assert without_option(made, DEFAULTS) == start + "".join(f"{indent}{row}\n" for row in wanted)


def test_a_line_of_several_lines_between_the_marks_stays_whole() -> None:
    lines = "supervisor.childopts: -Xmx256m\n  -Dx=1\n"
    text = f"# nstorm install: begin\n{lines}# nstorm install: end\n"
    assert without_option(text, DEFAULTS) == lines


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("a: [", "the storm.yaml is no YAML: line 1"),
        ("a: 2020-13-45\n", "the storm.yaml is no YAML: month must be in 1..12"),
        ("a: !b c\n", "the storm.yaml is no YAML: line 1"),
        ("a: " + "[" * 9999, "the storm.yaml is no YAML: its lists and keys are nested too deep"),
        ("- a\n", "the storm.yaml must hold keys with values"),
        ("worker.childopts: 7\n", "worker.childopts: must be options in one text or a list"),
        ("worker.childopts: 0\n", "worker.childopts: must be options in one text or a list"),
        ("a: &x -Xmx1g\nworker.childopts: *x\nb: *x\n", "cannot be edited by a program"),
        ("{a: 1, b: 2}\n", "cannot be edited by a program"),
        ("a: 1\n...\n", "cannot be edited by a program"),
    ],
)
def test_what_cannot_be_edited_is_refused(text: str, refused: str) -> None:
    with pytest.raises(ConfigError, match=refused):
        with_option(text, DEFAULTS, OPTION)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make what the command looks at of a Storm, with a java that does what `JAVA_DOES` has."""
    made = tmp_path / "storm"
    (made / "lib").mkdir(parents=True)
    (made / "conf").mkdir()
    (made / "conf/storm.yaml").write_text("# ours\nstorm.zookeeper.servers: [zk1]\n")
    (made / "conf/storm.yaml").chmod(0o640)
    with zipfile.ZipFile(made / "lib/storm-client-2.8.3.jar", "w") as packed:
        packed.writestr("defaults.yaml", yaml.safe_dump(DEFAULTS))
    java = tmp_path / "jdk/bin/java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/sh\neval "$JAVA_DOES"\n')
    java.chmod(0o755)
    hooks = tmp_path / "built.jar"
    hooks.write_bytes(b"jar of today")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setenv("JAVA_DOES", "true")
    monkeypatch.setattr("migration.jar.path", lambda: hooks)
    return made


def test_it_is_checked_installed_and_undone(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf, link = home / "conf/storm.yaml", home / "nstorm/nstorm-hooks.jar"
    text, at = conf.read_text(), ["--storm-home", str(home)]
    assert main([*at, "--check"]) == 1
    assert conf.read_text() == text
    assert not link.exists()
    assert capsys.readouterr().out.count("missing: ") == 3
    assert main(at) == 0
    assert link.read_bytes() == b"jar of today"
    assert link.readlink() != Path(link.name)
    assert yaml.safe_load(conf.read_text())["nimbus.childopts"] == f"-Xmx1024m -javaagent:{link}"
    assert conf.stat().st_mode & 0o777 == 0o640
    assert (home / "conf/storm.yaml.before-nstorm").read_text() == text
    assert main([*at, "--check"]) == main(at) == 0
    assert main([*at, "--undo"]) == 0
    assert conf.read_text() == text
    assert (home / "conf/storm.yaml.before-nstorm").read_text() == text
    assert link.exists()  # a JVM that runs with it may be started again
    assert {path.name for path in (home / "nstorm").iterdir()} == {
        link.name,
        link.readlink().name,
    }


def test_the_user_of_storm_may_enter_the_folder_of_the_jar(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at, folder = ["--storm-home", str(home)], home / "nstorm"
    before = os.umask(0o077)
    try:
        assert main(at) == 0
        assert folder.stat().st_mode & 0o777 == 0o755
        folder.chmod(0o700)
        capsys.readouterr()
        assert main([*at, "--check"]) == 1
        assert capsys.readouterr().out == f"missing: the right of others to enter {folder}\n"
        assert main(at) == main([*at, "--check"]) == 0
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o755
    assert all(path.stat().st_mode & 0o777 == 0o644 for path in folder.iterdir())


def test_who_may_read_storm_yaml_by_an_acl_still_may(home: Path) -> None:
    conf, name = home / "conf/storm.yaml", "system.posix_acl_access"
    # Of version 2: kind, rights and id of the owner, user 4711, the group, the mask and all others.
    rows = ((1, 6, -1), (2, 4, 4711), (4, 0, -1), (16, 4, -1), (32, 0, -1))
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *row) for row in rows)
    try:
        os.setxattr(conf, name, acl)
    except OSError:
        pytest.skip("a file system without ACLs")
    os.utime(conf, (1, 1))
    assert main(["--storm-home", str(home)]) == 0
    assert "nstorm-hooks" in conf.read_text()
    assert os.getxattr(conf, name) == acl
    assert conf.stat().st_mtime > 1


def test_no_copy_of_a_storm_yaml_stays_that_could_not_be_written(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(name: str, *_: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", name)

    monkeypatch.setattr("shutil.chown", refuse)
    assert main(["--storm-home", str(home)]) == 2
    assert "Operation not permitted; run it as the owner" in capsys.readouterr().err
    names = {path.name for path in (home / "conf").iterdir()}
    assert names == {"storm.yaml"}


def test_no_link_of_storms_user_decides_where_root_writes(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at, victim, kept = ["--storm-home", str(home)], tmp_path / "victim", "storm.yaml.before-nstorm"
    victim.mkdir()
    (victim / "file").write_text("of root\n")
    (home / "conf" / kept).symlink_to(victim / "file")
    text = (home / "conf/storm.yaml").read_text()
    if os.geteuid() == 0:
        (home / "nstorm").symlink_to(victim)
        os.lchown(home / "nstorm", pwd.getpwnam("nobody").pw_uid, 0)
        assert main(at) == 2
        assert f"{home}/nstorm is a link of another user" in capsys.readouterr().err
        (home / "nstorm").unlink()
    assert main(at) == 0
    assert [(file.name, file.read_text()) for file in victim.iterdir()] == [("file", "of root\n")]
    assert not (home / "conf" / kept).is_symlink()
    assert (home / "conf" / kept).read_text() == text


def test_a_java_that_does_not_end_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_DOES", "exec sleep 60")
    monkeypatch.setattr("agent.install._JAVA_LIMIT_S", 0.0)
    assert main(["--storm-home", str(home)]) == 2
    assert capsys.readouterr().err.endswith("jdk/bin/java -version took longer than 0 s\n")


def test_a_full_disk_is_named_without_advice_on_rights(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*of: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")  # as a write names no file

    monkeypatch.setattr("shutil.copyfile", fail)
    assert main(["--storm-home", str(home)]) == 2
    assert capsys.readouterr().err == f"nstorm: {home}: No space left on device\n"


@pytest.mark.parametrize(
    ("java_does", "refused"),
    [
        ("echo 'nstorm: Java 11 is too old' >&2", "would not run the hooks: nstorm: Java 11"),
        ("exit 1", "would not run the hooks: exit code 1 with "),
    ],
)
def test_a_java_that_would_not_run_the_hooks_is_refused_before_anything_is_written(
    home: Path,
    java_does: str,
    refused: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("JAVA_DOES", java_does)
    before = sorted(home.rglob("*"))
    assert main(["--storm-home", str(home)]) == 2
    said = capsys.readouterr().err
    assert refused in said
    assert said.count("\n") == 1
    assert sorted(home.rglob("*")) == before


@pytest.mark.parametrize(
    ("line", "java"),
    [
        ("export JAVA_HOME={}", "old"),
        ('JAVA_HOME="{}"  # of Storm\nexport JAVA_HOME', "old"),
        ("export JAVA_HOME=/none\nexport JAVA_HOME='{}'; umask 27", "old"),
        ("export JAVA_HOME=${{JAVA_HOME}}", "jdk"),
        ("# export JAVA_HOME={}", "jdk"),
        ("if false; then\n  export JAVA_HOME={}\nfi", "jdk"),
        ("if false; then\nexport JAVA_HOME=/none\nfi", "jdk"),
        ("export JAVA_HOME=~/jdk17", "jdk"),
    ],
)
def test_the_java_is_that_of_storms_own_script(
    home: Path, line: str, java: str, capsys: pytest.CaptureFixture[str]
) -> None:
    old = home.with_name("old") / "bin/java"
    old.parent.mkdir(parents=True)
    old.write_text("#!/bin/sh\necho 'nstorm: Java 11 is too old' >&2\n")
    old.chmod(0o755)
    (home / "conf/storm-env.sh").write_text(f"#!/bin/bash\n{line.format(old.parent.parent)}\n")
    assert main(["--storm-home", str(home), "--check"]) == (2 if java == "old" else 1)
    assert (f"{old} would not run the hooks" in capsys.readouterr().err) == (java == "old")


def test_a_storm_whose_java_is_missing_is_refused(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nor/here")
    conf = home / "conf/storm-env.sh"
    conf.write_text("export JAVA_HOME=/none\n")
    assert main(["--storm-home", str(home), "--check"]) == 2
    said = capsys.readouterr().err
    assert said == f"nstorm: {conf}: there is no java in its JAVA_HOME, /none\n"


@pytest.mark.parametrize("value", ["", "worker.childopts: >-\r\n  -Xmx1g\r\n  -Dx=1\r\n\r\n"])
def test_lines_end_as_they_did(home: Path, value: str) -> None:
    conf, at = home / "conf/storm.yaml", ["--storm-home", str(home)]
    conf.write_bytes(before := f"# ours\r\n{value}a: 1".encode())
    assert main(at) == main([*at, "--check"]) == 0
    after = conf.read_bytes()
    assert after.startswith(b"# ours\r\n")
    assert b"a: 1\r\n# nstorm install: begin\r\n" in after
    assert after.count(b"\r\n") == after.count(b"\n")
    assert main([*at, "--undo"]) == 0
    if not value:
        assert conf.read_bytes() == before + b"\r\n"


@pytest.mark.parametrize("undo", [[], ["--undo"]])
def test_a_storm_yaml_in_other_letters_than_utf_8_is_refused(
    home: Path, undo: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    conf = home / "conf/storm.yaml"
    conf.write_bytes(b"# f\xfcr\n")
    assert main(["--storm-home", str(home), *undo]) == 2
    assert capsys.readouterr().err == f"nstorm: {conf}: byte 4 is no UTF-8\n"


@pytest.mark.parametrize("name", ["a storm", "storm=2", "störm", "storm%", "storm,"])
def test_a_folder_that_no_option_can_name_is_refused_before_anything_is_written(
    home: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = home.rename(home.with_name(name))
    before = sorted(other.rglob("*"))
    assert main(["--storm-home", str(other)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"nstorm: {other}: an option of a JVM may only have")
    assert said.count("\n") == 1
    assert sorted(other.rglob("*")) == before
    home.symlink_to(other)
    assert main(["--storm-home", str(home)]) == 0
    assert f"-javaagent:{home}/nstorm/" in (home / "conf/storm.yaml").read_text()


@pytest.mark.parametrize("gone", ["conf/storm.yaml", "lib/storm-client-2.8.3.jar"])
def test_what_is_no_storm_is_refused(
    home: Path, gone: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / gone).unlink()
    assert main(["--storm-home", str(home)]) == 2
    assert str(home) in capsys.readouterr().err
