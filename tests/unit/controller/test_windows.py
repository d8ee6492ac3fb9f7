"""Change windows, by the clock of their zone."""

from datetime import UTC, datetime

import pytest

from controller.config import build
from controller.windows import closed
from migration import ConfigError

NIGHT = "* 2-4 * * MON-FRI Europe/Berlin"


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ("2026-11-24T01:00:59", None),  # 02:00:59 in Berlin, a Tuesday
        ("2026-11-24T03:59:59", None),
        ("2026-11-24T04:00:00", "the next opens 2026-11-25 02:00 CET"),
        ("2026-11-24T00:59:59", "the next opens 2026-11-24 02:00 CET"),
        ("2026-11-28T01:30:00", "the next opens 2026-11-30 02:00 CET"),  # a Saturday
        ("2026-06-01T00:30:00", None),  # in summer an hour earlier
    ],
)
def test_a_window_is_open_in_the_minutes_that_it_names(now: str, said: str | None) -> None:
    found = closed((NIGHT,), at(now))
    assert found is None if said is None else said in str(found)


@pytest.mark.parametrize("minute", ["00:50:00", "01:05:00", "01:35:00", "01:55:00"])
def test_in_the_hour_that_comes_twice_a_window_is_open_once(minute: str) -> None:
    found = closed(("50-59 2 * * * Europe/Berlin",), at(f"2026-10-25T{minute}"))
    assert (found is None) == (minute == "00:50:00"), found


def test_one_open_window_is_enough_and_without_any_it_is_always_open() -> None:
    assert closed((NIGHT, "* * * * * UTC"), at("2026-11-24T12:00:00")) is None
    assert closed((), 0.0) is None


@pytest.mark.parametrize(
    ("window", "words"),
    [
        ("* 2-4 * *", "five fields of cron and a zone"),
        ("", "not enough values"),
        ("* 25 * * * UTC", "Bad hour"),
        ("0 0 30 2 * UTC", "Bad day-of-month"),
        ("* * * * * Mars/Olympus", "Mars/Olympus"),
    ],
)
def test_what_is_no_window_or_never_opens_is_refused_in_one_sentence(
    window: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as error:
        build({"windows": [window]})
    assert str(error.value).startswith("nstorm.windows: ")
    assert "\n" not in str(error.value)
