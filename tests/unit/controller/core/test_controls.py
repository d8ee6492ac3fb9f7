"""What operators have set: whose word counts, and until when."""

import pytest

from controller.core.controls import Controls, Pause, Rejected


def test_operators_come_before_the_topologys_configuration_and_that_before_the_setting() -> None:
    controls = Controls(modes={"": "approve", "wc": "auto"})
    assert controls.mode_of("wc", "observe", "advise") == ("auto", "nstorm mode")
    assert controls.mode_of("other", "observe", "advise") == ("approve", "nstorm mode")
    assert Controls().mode_of("other", "auto", "advise") == ("auto", "topology.nstorm.mode")
    assert Controls().mode_of("other", None, "advise") == ("advise", "nstorm.mode")


@pytest.mark.parametrize("own", ["observe", "advise", "approve", "auto"])
@pytest.mark.parametrize("most", ["observe", "advise", "approve", "auto"])
def test_a_submitter_may_lower_the_mode_and_not_raise_it(own: str, most: str) -> None:
    order = ["observe", "advise", "approve", "auto"]
    mode, by = Controls().mode_of("wc", own, "advise", most)
    assert order.index(mode) == min(order.index(own), order.index(most))
    assert by == ("topology.nstorm.mode" if mode == own else "nstorm.mode.max")
    operators = Controls(modes={"wc": "auto"})
    assert operators.mode_of("wc", own, "advise", most) == ("auto", "nstorm mode")
    assert Controls().mode_of("wc", "atuo", "advise", most) == ("atuo", "topology.nstorm.mode")


def test_a_pause_holds_its_topology_until_its_time() -> None:
    controls = Controls(pauses={"wc": Pause("release", 100.0)})
    assert controls.held("wc", 99.0) == "paused: release, until 1970-01-01 00:01:40Z"
    assert controls.held("wc", 100.0) is None
    assert controls.held("other", 0.0) is None
    everything = Controls(pauses={"": Pause("upgrade")})
    assert everything.held("other", 1e12) == "paused: upgrade"
    assert everything.frozen(0.0) is None


def test_joined_pauses_keep_each_of_the_last_reasons_once() -> None:
    lag = Pause("lag", None).after(Pause("flags are set", 5.0))
    assert lag == Pause("flags are set; lag")
    assert lag.after(lag) == lag
    held = Pause("deploy 0")
    for number in range(1, 9):
        held = Pause(f"deploy {number}").after(held)
    assert held.reason == "deploy 4; deploy 5; deploy 6; deploy 7; deploy 8"


def test_a_freeze_holds_operators_too() -> None:
    controls = Controls(freeze=Pause("quarter's end", 100.0))
    assert controls.held("wc", 0.0) == controls.frozen(0.0)
    assert "frozen: quarter's end" in str(controls.frozen(0.0))
    assert controls.frozen(100.0) is None


def test_rejected_executors_stay_for_the_time_of_it() -> None:
    controls = Controls(rejected={"p-1": Rejected("wc-1", ("7-7",), 100.0)})
    assert controls.unwanted("wc-1", 99.0) == {
        "7-7": "an operator has rejected p-1, which moves 7-7"
    }
    assert controls.unwanted("wc-1", 100.0) == controls.unwanted("wc-2", 0.0) == {}
