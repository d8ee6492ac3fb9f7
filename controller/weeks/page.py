"""Writes what a log shows as one HTML page, question by question."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape

from controller.core.times import DAY_S, utc
from controller.html import FIRST, SECOND, bars, curves, document, items, key, shaded, table
from controller.weeks.auto import Gained
from controller.weeks.log_report import LogReport
from controller.weeks.need import Between, TopologyNeed

_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MOST_ROWS = 20


def page(found: LogReport) -> str:
    """Draw need by time, hosts, `auto` by day, and list neighbours and moves."""
    return document("nstorm report", "What the log shows", _parts(found))


def _parts(found: LogReport) -> Iterator[str]:
    yield f"<p>{escape(found.about)}</p>"
    if found.left_out:
        yield f"<p>Left out:</p>{items(found.left_out)}"
    yield "<h2>What would each topology need next month?</h2>"
    for need in found.needs:
        yield from _need(need)
    yield "<h2>Which topologies disturb each other?</h2>"
    yield items(found.disturbed_lines)
    yield "<h2>What would a host less mean?</h2>"
    yield items((found.host_line, *found.slow_lines))
    yield f"<h3>How full the others would be, {key('in this log', 'next month')}</h3>"
    yield bars(
        (f"without {one.node}", (one.rest_frac, *_middle(one.next_month_frac)))
        for one in found.hosts[:MOST_ROWS]
        if one.rest_frac is not None
    )
    yield "<h2>What would auto have gained and risked?</h2>"
    yield items(found.searches)
    for gained in found.gained:
        yield from _gained(gained)
    yield "<h2>Which moves paid?</h2>"
    yield f"<p>{escape(found.run_line)}</p>"
    if found.runs:
        rows = [(utc(r.begun_s), r.topology, str(r.moves), r.effect) for r in found.runs]
        yield table(("topology", "moves", "effect"), rows)


def _middle(between: Between | None) -> tuple[float, ...]:
    return () if between is None else (between[1],)


def _need(one: TopologyNeed) -> Iterator[str]:
    yield f"<h3>{escape(one.topology)}</h3><p>{escape(one.verdict)}</p>"
    if one.daily:
        yield "<h4>Cores of the highest hour of each day, and what comes (95 %)</h4>"
        yield _curves(one)
    shown = [(_date(day), [_factor(value) for value in row]) for day, row in one.headroom]
    yield "<h4>By what factor it could grow, by day and hour (UTC): the darker, the less</h4>"
    yield shaded([str(hour) for hour in range(24)], shown, "small")
    for title, names, times in (
        ("CPU by hour of the day (UTC), as times the mean", range(24), one.by_hour),
        ("CPU by day of the week, as times the mean", _WEEKDAYS, one.by_weekday),
    ):
        if times is not None:
            most = max(value for value in times if value is not None)
            cells = [("", 0.0) if v is None else (f"{v:.2f}", v / most) for v in times]
            yield f"<h4>{title}</h4>"
            yield shaded([str(name) for name in names], [("", cells)], "small")


def _curves(one: TopologyNeed) -> str:
    last = one.daily[-1][0]
    to_come = one.forecast.daily if one.forecast else ()
    band = [(last + 1.0 + n, low, high) for n, (low, _, high) in enumerate(to_come)]
    middle = [(last + 1.0 + n, mid) for n, (_, mid, _) in enumerate(to_come)]
    most = max([cores for _, cores in one.daily] + [high for _, _, high in band])
    texts = [
        (one.daily[0][0], one.daily[0][1], f"{_date(one.daily[0][0])}: {one.daily[0][1]:.3g}"),
        *((day, cores, f"{_date(int(day))}: {cores:.3g}") for day, cores in middle[-1:]),
    ]
    lines = [(FIRST, one.daily), (SECOND, middle)]
    return curves([line for line in lines if line[1]], most, texts, band)


def _factor(value: float | None) -> tuple[str, float]:
    return ("", 0.0) if value is None else (f"{value:.2g}", min(1 / max(value, 1e-9), 1.0))


def _gained(one: Gained) -> Iterator[str]:
    yield f"<h3>{escape(one.topology)}</h3><p>{escape(one.verdict)}</p>"
    yield f"<h4>Tuples between nodes by day, {key('without moves', 'with auto')}</h4>"
    yield bars((_date(day.day), day.inter_node_frac) for day in one.days[-MOST_ROWS:])


def _date(day: int) -> str:
    return f"{datetime.fromtimestamp(day * DAY_S, UTC):%Y-%m-%d}"


def lines(found: LogReport) -> Sequence[str]:
    """Write the same in lines, for a terminal."""
    return [
        found.about,
        *(f"left out: {line}" for line in found.left_out),
        "",
        "Next month",
        *(f"  {need.topology}: {need.verdict}" for need in found.needs),
        "Disturbed",
        *(f"  {line}" for line in found.disturbed_lines),
        "A host less",
        f"  {found.host_line}",
        *(f"  {line}" for line in found.slow_lines),
        "Mode auto",
        *(f"  {one.topology}: {one.verdict}" for one in found.gained),
        *(f"  {line}" for line in found.searches),
        "Moves",
        f"  {found.run_line}",
    ]
