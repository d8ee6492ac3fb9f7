"""What topologies that only advise would have kept off the network today."""

import msgspec

from controller.config import build
from controller.core.times import DAY_S
from controller.storm.leader_status import LeaderStatus
from controller.storm.missed import Missed
from controller.storm.status import status_of


def test_tuples_add_up_by_topology_until_midnight() -> None:
    missed = Missed()
    missed.add({"a": 100.0}, 1000.0, 15.0)
    assert missed.tuples == {"a": 0.0}, "nothing is known of the time before"
    missed.add({"a": 100.0, "b": 10.0}, 1005.0, 15.0)
    missed.add({"b": 10.0}, 1010.0, 15.0)  # `a` would not move now
    assert missed.tuples == {"a": 500.0, "b": 100.0}
    missed.add({"b": 10.0}, DAY_S - 1.0, 15.0)
    assert missed.tuples == {"a": 500.0, "b": 100.0}, "a pause of hours, in which no cycle looked"
    missed.add({"a": 7.0}, DAY_S + 4.0, 15.0)
    assert missed.tuples == {"a": 0.0}
    missed.add({"a": 7.0}, DAY_S + 9.0, 15.0)
    assert missed.tuples == {"a": 35.0}


def test_a_clock_that_is_set_back_takes_nothing_away() -> None:
    missed = Missed()
    missed.add({"a": 1.0}, 1000.0, 15.0)
    missed.add({"a": 1.0}, 990.0, 15.0)
    assert missed.tuples == {"a": 0.0}


def test_a_new_leader_goes_on_where_the_last_one_was() -> None:
    missed = Missed()
    missed.add({"a": 100.0}, 1000.0, 15.0)
    missed.add({"a": 100.0}, 1005.0, 15.0)
    told = status_of((), (), build({}), name="one", epoch=1, missed=missed)
    found = msgspec.json.decode(msgspec.json.encode(told), type=LeaderStatus).missed
    found.add({"a": 100.0}, 1015.0, 15.0)
    assert found.tuples == {"a": 1500.0}


def test_without_the_status_of_a_last_leader_it_begins_with_nothing() -> None:
    found = LeaderStatus().missed
    found.add({"a": 1.0}, 1000.0, 15.0)
    assert found.tuples == {"a": 0.0}
    assert LeaderStatus().missed.tuples == {}
