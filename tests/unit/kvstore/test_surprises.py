"""An error that comes in each turn of a loop does not fill the disk with its traceback."""

from structlog.testing import capture_logs

from kvstore.surprises import Surprises


def meet(surprises: Surprises, of: type[Exception] = ValueError) -> None:
    try:
        raise of("x")
    except Exception as error:
        surprises.report("turn_failed", error)


def test_an_error_is_told_with_its_traceback_once_and_then_once_a_minute() -> None:
    now_s = 0.0
    surprises = Surprises(lambda: now_s)
    with capture_logs() as logs:
        for _ in range(150):
            meet(surprises)
            now_s += 1.0
    assert [bool(entry.get("exc_info")) for entry in logs] == [True, False, False]
    assert [entry.get("times") for entry in logs] == [None, 60, 60]
    with capture_logs() as logs:
        meet(surprises, KeyError)
    assert [type(entry["exc_info"]) for entry in logs] == [KeyError]


def test_no_more_than_some_kinds_are_remembered() -> None:
    surprises = Surprises()
    for number in range(1000):
        with capture_logs():
            meet(surprises, type(f"E{number}", (Exception,), {}))
    assert len(surprises._met) <= 100
