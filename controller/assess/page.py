"""Writes assessments as one HTML page that needs no other file."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from controller.assess.assessment import Assessment, lines

_BAR, _ROW = 360, 22
# Eyes that mix up red and green see blue and orange apart.
_NOW, _THEN = "#0072b2", "#e69f00"
_STYLE = "\n".join(
    (
        "body { font: 15px sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em }",
        "table { border-collapse: collapse } td, th { padding: .2em .6em; border: 1px solid #ccc }",
        "td { text-align: right } svg text { font: 13px sans-serif }",
    )
)


def page(found: Sequence[Assessment]) -> str:
    """Draw CPU by node, traffic by pair of nodes, and the share between nodes move by move."""
    body = "\n".join(part for one in found for part in _section(one))
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>nstorm assess</title>\n'
        f"<style>{_STYLE}</style>\n<h1>Would nstorm help?</h1>\n{body}\n</html>\n"
    )


def _section(one: Assessment) -> Iterator[str]:
    yield f"<h2>{escape(one.topology)}</h2>"
    head, *rest = lines(one)
    yield f"<p><strong>{escape(head.removeprefix(f'{one.topology}: '))}</strong></p>"
    yield f"<ul>{''.join(f'<li>{escape(line.strip())}</li>' for line in rest)}</ul>"
    key = f'<span style="color:{_NOW}">■</span> now <span style="color:{_THEN}">■</span> then'
    yield f"<h3>CPU of each node, {key}</h3>"
    yield _bars((row.node, row.cpu_frac) for row in one.nodes)
    if one.links:
        yield "<h3>Tuples/s from node to node, now and then</h3>"
        yield _matrix(one)
    if len(one.each_step_frac) > 1:
        yield "<h3>Share of tuples between nodes, step by step</h3>"
        yield _line(one.each_step_frac)


def _bars(rows: Iterable[tuple[str, tuple[float, float]]]) -> str:
    drawn, at = [], 0
    for at, (name, pair) in enumerate(rows, 1):
        top = (at - 1) * 2 * _ROW
        drawn.append(f'<text x="0" y="{top + 26}">{escape(name)}</text>')
        for place, (share, color) in enumerate(zip(pair, (_NOW, _THEN), strict=True)):
            width, y = max(min(share, 1.0), 0.0) * _BAR, top + place * 18
            drawn.append(
                f'<rect x="200" y="{y}" width="{width:.0f}" height="16" fill="{color}"/>'
                f'<text x="{206 + width:.0f}" y="{y + 13}">{share:.0%}</text>'
            )
    return _svg(at * 2 * _ROW, drawn)


def _matrix(one: Assessment) -> str:
    tps = {(row.source, row.target): row.tps for row in one.links}
    names = sorted({end for pair in tps for end in pair})
    most = max((max(pair) for pair in tps.values()), default=0.0) or 1.0
    head = "".join(f"<th>to {escape(name)}</th>" for name in names)
    rows = []
    for source in names:
        cells = []
        for target in names:
            now, then = tps.get((source, target), (0.0, 0.0))
            shade = f"background:rgba(0,114,178,{0.6 * now / most:.2f})"
            text = "" if source == target else f"{now:,.0f} → {then:,.0f}"
            cells.append(f'<td style="{shade}">{text}</td>')
        rows.append(f"<tr><th>from {escape(source)}</th>{''.join(cells)}</tr>")
    return f"<table><tr><th></th>{head}</tr>{''.join(rows)}</table>"


def _line(shares: Sequence[float]) -> str:
    width, height = 560, 160
    step = width / (len(shares) - 1)
    points = " ".join(f"{n * step:.0f},{(1 - one) * height:.0f}" for n, one in enumerate(shares))
    ends = [(0.0, shares[0], "start"), (float(width), shares[-1], "end")]
    texts = [
        f'<text x="{x:.0f}" y="{(1 - share) * height - 5:.0f}" text-anchor="{anchor}">'
        f"{share:.0%}</text>"
        for x, share, anchor in ends
    ]
    line = f'<polyline points="{points}" fill="none" stroke="{_NOW}" stroke-width="2"/>'
    axis = f'<path d="M0 {height}H{width}" stroke="#999"/>'
    return _svg(height + 20, [axis, line, *texts])


def _svg(height: int, drawn: Iterable[str]) -> str:
    return f'<svg viewBox="0 -20 620 {height + 20}" width="620" role="img">{"".join(drawn)}</svg>'
