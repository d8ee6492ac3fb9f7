"""The tables of PROTOCOL.md: read whole, and refused when they are not tables."""

import pytest

from migration import MigrationError, table
from migration.events import EVENTS
from migration.model import ABSORBED, OPENS_LATE, Base, Entry, ExecutorId, Phase, Slot, Timing, Way
from migration.table import (
    LEAVE,
    NEEDS_VERSION,
    PAGE,
    TRANSITIONS,
    VOID,
    limit_s,
    needed_versions,
    parse,
    rows,
    transitions_from,
)
from migration.wire import SPEAKS

PHASES = {phase: (owner, limit) for phase, owner, _, _, limit, _, _ in rows(PAGE, "Phases")}
KNOWN = [phase for phase in Phase if phase is not Phase.UNKNOWN]
SMALL = """
## Transitions

| phase | way | event | next | reason |
|---|---|---|---|---|
| PREPARE | any | limit | UNDO | late |
| PREPARE | spout | target_ready | UNDO | no room |
| PREPARE | any | target_ready | SWITCH | ready |
"""
TWO_WAYS = """
## Phases

| phase | owner | copy may run on | Nimbus | limit_s | ways | since |
|---|---|---|---|---|---|---|
| PREPARE | from | from, to | leaves | 20 | all | 1 |
| STOP | from | from, to | leaves | 20 | spout, carry | 3 |

## Ways

| way | who | since |
|---|---|---|
| live | bolts | 1 |
| spout | spouts | 2 |
| carry | others | 4 |
"""


def test_every_phase_has_a_row_and_a_way_out() -> None:
    assert list(PHASES) == KNOWN
    for phase in KNOWN:
        own = [row for row in TRANSITIONS if row.phase == phase]
        assert own
        # A limit is for impatience with an answer, so there is an answer to wait for.
        assert {row.event for row in own} - {"limit", "end_lost"}


def test_every_event_is_known_and_every_known_event_is_used() -> None:
    assert {row.event for row in TRANSITIONS} == set(EVENTS)


def test_no_way_leads_back() -> None:
    order = [*Phase, VOID, LEAVE]
    order.remove(Phase.UNDO)
    order.insert(order.index(VOID), Phase.UNDO)
    for row in TRANSITIONS:
        if row.phase in order:
            assert order.index(row.next) > order.index(row.phase)


def test_from_stop_on_only_forward_but_for_what_opens_late() -> None:
    absorbed = [row for row in TRANSITIONS if row.phase in ABSORBED]
    back = {(row.phase, row.way, row.next) for row in absorbed if row.event == "refused"}
    assert back == {(Phase.STOP, way, Phase.UNDO) for way in OPENS_LATE}
    forward = {row.next for row in absorbed if row.event != "refused"}
    assert forward == {Phase.SETTLE, LEAVE}


def test_the_default_limits_are_those_of_the_page() -> None:
    for name, (_, limit) in PHASES.items():
        phase = Phase(name)
        if limit == "DK":
            assert limit_s(phase, Way.LIVE, Timing(lazy_kill_ms=1500)) == 1.5
        elif limit == "-":
            assert limit_s(phase, Way.LIVE, Timing()) is None
        else:
            assert limit_s(phase, Way.LIVE, Timing()) == float(limit)
    assert "drain` may be in DRAIN for 40 s" in PAGE
    assert limit_s(Phase.DRAIN, Way.DRAIN, Timing()) == 40
    limited = {row.phase for row in TRANSITIONS if row.event == "limit"}
    assert limited == {phase for phase, (_, limit) in PHASES.items() if limit != "-"}


def test_what_may_happen_to_a_void_entry_is_its_own_row_alone() -> None:
    void = transitions_from(Phase.DRAIN, Way.LIVE, void=True)
    assert [row.event for row in void] == ["read_by_ends"]
    stop = transitions_from(Phase.STOP, Way.LIVE, void=False)
    assert [row.event for row in stop] == ["voided", "stopped"]


def test_a_small_page_is_read() -> None:
    assert [(row.way, row.reason) for row in parse(SMALL)] == [
        ("any", "late"),
        ("spout", "no room"),
        ("any", "ready"),
    ]


def test_a_row_of_one_way_is_for_its_moves_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "TRANSITIONS", parse(SMALL))
    reasons = {
        way: [row.reason for row in transitions_from(Phase.PREPARE, way, void=False)] for way in Way
    }
    assert reasons.pop(Way.SPOUT) == ["late", "no room", "ready"]
    assert set(map(tuple, reasons.values())) == {("late", "ready")}


def test_a_move_needs_what_its_way_and_its_phases_need() -> None:
    needed = needed_versions(TWO_WAYS)
    assert needed == {Way.LIVE: 1, Way.SPOUT: 3, Way.CARRY: 4, Way.UNKNOWN: 5}


def test_a_live_move_needs_the_last_version_and_an_unknown_one_more_than_this() -> None:
    assert set(NEEDS_VERSION) == set(Way)
    assert NEEDS_VERSION[Way.LIVE] == 1
    assert max(NEEDS_VERSION[way] for way in Way if way is not Way.UNKNOWN) == SPEAKS
    assert NEEDS_VERSION[Way.UNKNOWN] > SPEAKS


def test_the_owner_of_each_phase_is_the_one_of_the_page() -> None:
    source, target = Slot("s1", 6700), Slot("s2", 6701)
    for phase, (owner, _) in PHASES.items():
        move = Entry("m1", ExecutorId(7, 7), source, target, Phase(phase), Base(source, 100))
        assert move.owner == {"from": source, "to": target}[owner]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("## Transitions", "## Translations"),
        ("| PREPARE | any | limit |", "| PREPAID | any | limit |"),
        ("| spout |", "| spouts |"),
        ("| late |", "|"),
        ("| UNDO |", "| REDO |"),
        (SMALL[SMALL.index("| PREPARE") :], ""),
    ],
)
def test_a_page_that_is_no_protocol_is_refused(old: str, new: str) -> None:
    with pytest.raises(MigrationError, match=r"PROTOCOL\.md"):
        parse(SMALL.replace(old, new))
