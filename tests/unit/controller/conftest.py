"""The command line in the process of a test: each new one takes seconds to load."""

import io
import sys
from typing import NamedTuple, Protocol

import pytest

from controller.cli.main import main
from migration import storm_yaml


class Done(NamedTuple):
    """How a command has ended."""

    code: object
    out: str
    err: str


class Nstorm(Protocol):
    """Runs a command line."""

    def __call__(self, *arguments: str, text: str = "") -> Done: ...


@pytest.fixture
def nstorm(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Nstorm:
    def run(*arguments: str, text: str = "") -> Done:
        monkeypatch.setattr(sys, "argv", ["nstorm", *arguments])
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        monkeypatch.setattr(storm_yaml, "given", ())
        with pytest.raises(SystemExit) as ended:
            main()
        return Done(ended.value.code, *capsys.readouterr())

    return run
