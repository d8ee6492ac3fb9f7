"""Waits of the lab: longer on a busy machine, and never silent."""

from types import SimpleNamespace
from typing import cast

import pytest

from deploy.lab import LabError, daemons
from deploy.lab.daemons import MOST_TIMES, Daemons, patience_s


@pytest.mark.parametrize(
    ("load", "times"), [(0.5, 1.0), (8.0, 1.0), (16.0, 2.0), (1000.0, MOST_TIMES)]
)
def test_patience_grows_with_the_load_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, load: float, times: float
) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    assert patience_s(100.0) == 100.0 * times


def test_a_wait_says_what_it_waits_for_and_for_how_long_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s, said = [0.0], list[str]()
    monkeypatch.setattr("os.getloadavg", lambda: (16.0, 0.0, 0.0))
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})

    def sleep(seconds: float) -> None:
        now_s[0] += seconds

    clock = SimpleNamespace(monotonic=lambda: now_s[0], sleep=sleep)
    monkeypatch.setattr(daemons, "time", clock)
    lab = cast(
        Daemons,
        SimpleNamespace(
            say=said.append,
            layout=SimpleNamespace(run_dir="lab"),
            _processes=SimpleNamespace(recorded=list),
        ),
    )
    Daemons.wait_until(lab, "it is up", lambda: now_s[0] > 50, 100.0, lambda: "1 of 2 are")
    assert said == [
        f"waiting until it is up (1 of 2 are): {waited} s so far, at most 200 s at a load of 16"
        for waited in (20, 40)
    ]
    with pytest.raises(LabError, match=r"waited 200 s until it is up, and it is not so \(1 of 2"):
        Daemons.wait_until(lab, "it is up", lambda: False, 100.0, lambda: "1 of 2 are")
