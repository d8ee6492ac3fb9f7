"""The tables of PROTOCOL.md: read whole, and refused when they are not tables."""

import pytest

from migration import MigrationError
from migration.events import HAPPENED
from migration.model import ABSORBED, Phase, Timing
from migration.table import (
    LEAVE,
    PHASES,
    TRANSITIONS,
    VOID,
    limit_s,
    parse,
    transitions_from,
)

PAGE = """
## Phases

| phase | owner | copy may run on | Nimbus | limit_s |
|---|---|---|---|---|
| PREPARE | from | from, to | leaves | 20 |

## Transitions

| phase | event | next | reason |
|---|---|---|---|
| PREPARE | limit | UNDO | late |
"""


def test_every_phase_has_a_row_and_a_way_out():
    assert [row.phase for row in PHASES] == list(Phase)
    for phase in Phase:
        own = [row for row in TRANSITIONS if row.phase == phase]
        assert own
        # A limit is for impatience with an answer, so there is an answer to wait for.
        assert {row.event for row in own} - {"limit", "end_lost"}


def test_every_event_is_known_and_every_known_event_is_used():
    assert {row.event for row in TRANSITIONS} == set(HAPPENED)


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
    written = {row.phase: row.limit for row in PHASES}
    for phase, limit in written.items():
        if limit == "DK":
            assert limit_s(phase, Timing(lazy_kill_ms=1500)) == 1.5
        elif limit == "-":
            assert limit_s(phase, Timing()) is None
        else:
            assert limit_s(phase, Timing()) == float(limit)
    limited = {row.phase for row in TRANSITIONS if row.event == "limit"}
    assert limited == {phase for phase, limit in written.items() if limit != "-"}


def test_what_may_happen_to_a_void_entry_is_its_own_row_alone():
    assert [row.event for row in transitions_from(Phase.DRAIN, void=True)] == ["read_by_ends"]
    assert [row.event for row in transitions_from(Phase.STOP, void=False)] == ["voided", "stopped"]


def test_a_small_page_is_read():
    phases, transitions = parse(PAGE)
    assert phases[0].copies == {"from", "to"}
    assert transitions[0].reason == "late"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("## Phases", "## Faces"),
        ("| PREPARE | from |", "| PREPAID | from |"),
        ("| 20 |", "|"),
        ("| UNDO |", "| REDO |"),
        ("| PREPARE | limit | UNDO | late |", ""),
    ],
)
def test_a_page_that_is_no_protocol_is_refused(old: str, new: str):
    with pytest.raises(MigrationError, match=r"PROTOCOL\.md"):
        parse(PAGE.replace(old, new))
