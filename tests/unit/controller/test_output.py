"""Times as they are typed."""

import pytest

from controller.errors import CommandError
from controller.output import unix_s


@pytest.mark.parametrize("text", ["20261201", "2026-12-01", "2026-12-01T01:00+01:00", "1796083200"])
def test_a_time_is_read_in_each_form(text: str) -> None:
    assert unix_s("--from", text, 0.0) == 1_796_083_200.0


@pytest.mark.parametrize("text", ["1712010112345", "1764547200000", "1e11", "202612010600"])
def test_milliseconds_are_no_time(text: str) -> None:
    with pytest.raises(CommandError, match="is no time such as"):
        unix_s("--until", text, 0.0)


def test_no_time_is_what_the_command_takes_then() -> None:
    assert unix_s("--to", "", float("inf")) == float("inf")
