"""The tables of PROTOCOL.md: read whole, and refused when they are not tables."""

import pytest

from migration import MigrationError
from migration.model import ABSORBED, Base, Entry, ExecutorId, Phase, Slot, Timing
from migration.observation import EVENTS
from migration.table import LEAVE, PAGE, TRANSITIONS, VOID, limit_s, parse, rows, transitions_from

PHASES = {phase: (owner, limit) for phase, owner, _, _, limit, _ in rows(PAGE, "Phases")}
KNOWN = [phase for phase in Phase if phase is not Phase.UNKNOWN]
SMALL = """
## Transitions

| phase | event | next | reason |
|---|---|---|---|
| PREPARE | limit | UNDO | late |
"""


def test_every_phase_has_a_row_and_a_way_out():
    assert list(PHASES) == KNOWN
    for phase in KNOWN:
        own = [row for row in TRANSITIONS if row.phase == phase]
        assert own
        # A limit is for impatience with an answer, so there is an answer to wait for.
        assert {row.event for row in own} - {"limit", "end_lost"}


def test_every_event_is_known_and_every_known_event_is_used():
    assert {row.event for row in TRANSITIONS} == set(EVENTS)


def test_no_way_leads_back():
    order = [*Phase, VOID, LEAVE]
    order.remove(Phase.UNDO)
    order.insert(order.index(VOID), Phase.UNDO)
    for row in TRANSITIONS:
        if row.phase in order:
            assert order.index(row.next) > order.index(row.phase)


def test_from_stop_on_only_forward():
    assert {row.next for row in TRANSITIONS if row.phase in ABSORBED} == {Phase.SETTLE, LEAVE}


def test_the_default_limits_are_those_of_the_page():
    for name, (_, limit) in PHASES.items():
        phase = Phase(name)
        if limit == "DK":
            assert limit_s(phase, Timing(lazy_kill_ms=1500)) == 1.5
        elif limit == "-":
            assert limit_s(phase, Timing()) is None
        else:
            assert limit_s(phase, Timing()) == float(limit)
    limited = {row.phase for row in TRANSITIONS if row.event == "limit"}
    assert limited == {phase for phase, (_, limit) in PHASES.items() if limit != "-"}


def test_what_may_happen_to_a_void_entry_is_its_own_row_alone():
    assert [row.event for row in transitions_from(Phase.DRAIN, void=True)] == ["read_by_ends"]
    assert [row.event for row in transitions_from(Phase.STOP, void=False)] == ["voided", "stopped"]


def test_a_small_page_is_read():
    (only,) = parse(SMALL)
    assert only.reason == "late"


def test_the_owner_of_each_phase_is_the_one_of_the_page():
    source, target = Slot("s1", 6700), Slot("s2", 6701)
    for phase, (owner, _) in PHASES.items():
        move = Entry("m1", ExecutorId(7, 7), source, target, Phase(phase), Base(source, 100))
        assert move.owner == {"from": source, "to": target}[owner]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("## Transitions", "## Translations"),
        ("| PREPARE |", "| PREPAID |"),
        ("| late |", "|"),
        ("| UNDO |", "| REDO |"),
        ("| PREPARE | limit | UNDO | late |", ""),
    ],
)
def test_a_page_that_is_no_protocol_is_refused(old: str, new: str):
    with pytest.raises(MigrationError, match=r"PROTOCOL\.md"):
        parse(SMALL.replace(old, new))
