"""What others wrote into ZooKeeper reaches terminals and logs as text alone."""

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.table import Table

from controller.cli.running import new_app, run
from controller.console import Console
from kvstore.logs import log, log_to_stderr
from kvstore.printable import argument, printable

HOSTILE = "node-1\x1b]0;owned\x07\x1b[2J\x9b1mALL \u202eIS WELL\rok"
ESCAPED = r"node-1\x1b]0;owned\x07\x1b[2J\x9b1mALL \u202eIS WELL\rok"


def test_control_characters_are_written_out_and_all_else_stays() -> None:
    assert printable(HOSTILE) == ESCAPED
    assert printable("wörter\n\t名 ✓") == "wörter\n\t名 ✓"


def test_a_name_is_one_word_to_a_shell_and_no_option() -> None:
    assert [argument(name) for name in ("wc", "-wc", "a b")] == ["wc", "-- -wc", "'a b'"]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_console_shows_texts_of_others_as_text_and_keeps_its_own_colors(terminal: bool) -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=200)
    table = Table("host")
    table.add_row(HOSTILE)
    console.print(HOSTILE, style="red")
    console.print(table)
    console.print("[bold]as it is[/nonsense]", highlight=False)
    shown = file.getvalue()
    assert "[bold]as it is[/nonsense]" in shown
    own = re.compile(r"\x1b\[[0-9;]*m")
    assert bool(own.search(shown)) is terminal
    assert not set(own.sub("", shown)) & {"\x1b", "\x07", "\x9b", "\u202e", "\r"}
    assert r"\x1b[2J" in shown


def test_a_command_prints_and_refuses_without_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    app = new_app()

    @app.command()
    def say() -> None:
        print(HOSTILE)
        Console().print(HOSTILE)
        print(HOSTILE, file=sys.stderr)

    usual, sys.argv = sys.argv, ["say"]
    try:
        with pytest.raises(SystemExit):
            run(app, "say")
    finally:
        sys.argv = usual
    out, err = capsys.readouterr()
    assert not set(out + err) & {"\x1b", "\x07", "\x9b"}
    assert out.count(r"node-1\x1b]0;owned") == 2
    assert ESCAPED in err


def test_a_log_line_has_no_control_characters_also_in_a_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log_to_stderr()
    log.warning("odd", reason=HOSTILE)
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        log.exception("turn_failed")
    said = capsys.readouterr().err
    assert not set(said) & {"\x1b", "\x07", "\x9b"}
    assert said.count(r"\x1b]0;owned") == 2


def test_a_log_on_a_terminal_keeps_its_own_colors(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    app = new_app()

    @app.command()
    def warn() -> None:
        log.warning("odd", reason=HOSTILE)

    app.command("other")(lambda: None)  # with one command alone typer makes no group
    terminal = Terminal()
    monkeypatch.setattr(sys, "argv", ["nstorm", "warn"])
    monkeypatch.setattr(sys, "stderr", terminal)
    with pytest.raises(SystemExit):
        run(app, "warn")
    own = re.compile(r"\x1b\[[0-9;]*m")
    assert own.search(terminal.getvalue())
    said = own.sub("", terminal.getvalue())
    assert not set(said) & {"\x1b", "\x07", "\x9b"}
    assert r"\x1b]0;owned" in said


def test_no_command_has_another_console() -> None:
    product = Path(__file__).parents[3] / "controller"
    texts = {path.name: path.read_text("utf-8") for path in product.rglob("*.py")}
    others = [
        name for name, text in texts.items() if re.search(r"rich\.console import.*\bConsole", text)
    ]
    assert others == []


def test_a_command_that_logs_nothing_loads_no_structlog() -> None:
    code = (
        "import sys, controller.cli.asking, controller.cli.operate, controller.cli.moves; "
        "from kvstore.logs import log, log_to_stderr; log_to_stderr(); "
        "assert 'structlog' not in sys.modules; log.warning('odd'); "
        "assert 'rich' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "odd" in done.stderr
