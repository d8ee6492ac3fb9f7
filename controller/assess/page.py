"""Writes assessments as one HTML page that needs no other file."""

from collections.abc import Iterator, Sequence
from html import escape

from controller.assess.assessment import Assessment, lines
from controller.html import bars, document, items, key, line, shaded


def page(found: Sequence[Assessment]) -> str:
    """Draw CPU by node, traffic by pair of nodes, and the share between nodes move by move."""
    parts = (part for one in found for part in _section(one))
    return document("nstorm assess", "Would nstorm help?", parts)


def _section(one: Assessment) -> Iterator[str]:
    yield f"<h2>{escape(one.topology)}</h2>"
    head, *rest = lines(one)
    yield f"<p><strong>{escape(head.removeprefix(f'{one.topology}: '))}</strong></p>"
    yield items(line.strip() for line in rest)
    yield f"<h3>CPU of each node, {key('now', 'then')}</h3>"
    yield bars((row.node, row.cpu_frac) for row in one.nodes)
    if one.links:
        yield "<h3>Tuples/s from node to node, now and then</h3>"
        yield _matrix(one)
    if len(one.each_step_frac) > 1:
        yield "<h3>Share of tuples between nodes, step by step</h3>"
        shares = one.each_step_frac
        yield line(shares, [f"{share:.0%}" for share in shares])


def _matrix(one: Assessment) -> str:
    tps = {(row.source, row.target): row.tps for row in one.links}
    names = sorted({end for pair in tps for end in pair})
    most = max((max(pair) for pair in tps.values()), default=0.0) or 1.0
    rows = []
    for source in names:
        cells = []
        for target in names:
            now, then = tps.get((source, target), (0.0, 0.0))
            text = "" if source == target else f"{now:,.0f} → {then:,.0f}"
            cells.append((text, now / most))
        rows.append((f"from {source}", cells))
    return shaded([f"to {name}" for name in names], rows)
