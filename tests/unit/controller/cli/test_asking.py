"""How a command waits for its end."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from controller.cli import asking
from controller.storm.command_record import Command, encode
from kvstore.zookeeper import Session, Stored
from migration.model import Phase


class Waits:
    """Stands for a session in which the leader dies: nothing changes, until another one leads."""

    def __init__(self, command: Command) -> None:
        self.looks = 0
        self.command = command

    def read(self, path: str, on_change: Callable[[], None]) -> Stored:
        self.looks += 1
        on_change()  # so that nobody waits
        found = self.command if self.looks < 9 else Command("wc", "7-7", state="MOVED")
        return Stored(encode(found), 0, 0)

    def children(self, path: str) -> list[str]:
        return ["leader-0"] * (self.looks in (1, 2, 5))


@pytest.mark.parametrize(
    "waits", [Command("wc", "7-7", state=Phase.PREPARE), Command("wc", "7-7", reason="3 moves")]
)
def test_a_command_that_nobody_goes_on_with_names_that(
    waits: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(asking, "NO_ANSWER_S", -1.0)
    monkeypatch.setattr("controller.cli.views.hosts_of", lambda session: {})
    session = cast(Session, cast(Any, Waits(waits)))
    last = asking._follow(session, "/c-1", lambda line: None, until_begun=False)
    assert last.state == "MOVED"
    line = "waits for a controller that leads: start one with `nstorm controller`\n"
    assert capsys.readouterr().err == 2 * line, "once each time that none leads"
