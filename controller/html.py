"""Pages with pictures that need no other file."""

from collections.abc import Iterable, Sequence
from html import escape

_BAR, _ROW, _WIDTH = 360, 22, 560
# Eyes that mix up red and green see blue and orange apart.
FIRST, SECOND = "#0072b2", "#e69f00"
_SHADE = "0,114,178"
_STYLE = "\n".join(
    (
        "body { font: 15px sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em }",
        "table { border-collapse: collapse } td, th { padding: .2em .6em; border: 1px solid #ccc }",
        "td { text-align: right } svg text { font: 13px sans-serif }",
        ".small td, .small th { padding: .1em .2em; font-size: 11px }",
    )
)


def document(title: str, heading: str, parts: Iterable[str]) -> str:
    """Write a page; its parts are HTML."""
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f"<style>{_STYLE}</style>\n<h1>{escape(heading)}</h1>\n{body}\n</html>\n"
    )


def items(lines: Iterable[str]) -> str:
    """List lines."""
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def key(first: str, second: str) -> str:
    """Name the two colours of bars."""
    return (
        f'<span style="color:{FIRST}">■</span> {escape(first)} '
        f'<span style="color:{SECOND}">■</span> {escape(second)}'
    )


def bars(rows: Iterable[tuple[str, Sequence[float]]]) -> str:
    """Draw up to two shares of each row, which has a name."""
    drawn, at = [], 0
    for at, (name, shares) in enumerate(rows, 1):
        top = (at - 1) * 2 * _ROW
        drawn.append(f'<text x="0" y="{top + 26}">{escape(name)}</text>')
        for place, (share, color) in enumerate(zip(shares, (FIRST, SECOND), strict=False)):
            width, y = max(min(share, 1.0), 0.0) * _BAR, top + place * 18
            drawn.append(
                f'<rect x="200" y="{y}" width="{width:.0f}" height="16" fill="{color}"/>'
                f'<text x="{206 + width:.0f}" y="{y + 13}">{share:.0%}</text>'
            )
    return svg(at * 2 * _ROW, drawn)


def shaded(
    head: Sequence[str], rows: Iterable[tuple[str, Sequence[tuple[str, float]]]], how: str = ""
) -> str:
    """Write a table of texts, each with a shade from 0 to 1; `how` is a class of the style."""
    top = "".join(f"<th>{escape(name)}</th>" for name in ("", *head))
    lines = []
    for name, cells in rows:
        shown = "".join(
            f'<td style="background:rgba({_SHADE},{0.6 * shade:.2f})">{escape(text)}</td>'
            for text, shade in cells
        )
        lines.append(f"<tr><th>{escape(name)}</th>{shown}</tr>")
    begin = f'<table class="{how}">' if how else "<table>"
    return f"{begin}<tr>{top}</tr>{''.join(lines)}</table>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table of texts; the first of a row is its name."""
    return shaded(head, ((name, [(text, 0.0) for text in rest]) for name, *rest in rows))


def line(values: Sequence[float], texts: Sequence[str]) -> str:
    """Draw shares; of their texts the first and the last are shown."""
    points = list(enumerate(values))
    return curves([(FIRST, points)], 1.0, [(*points[at], texts[at]) for at in (0, -1)])


def curves(
    lines: Sequence[tuple[str, Sequence[tuple[float, float]]]],
    most: float,
    texts: Iterable[tuple[float, float, str]],
    band: Sequence[tuple[float, float, float]] = (),
) -> str:
    """Draw lines by colour, each of points (x, y); y goes from 0 to `most`.

    `texts` are at points. A `band` is of x, its low end and its high end.
    """
    height = 160
    every = [x for _, points in lines for x, _ in points] + [x for x, _, _ in band]
    begin, end = min(every), max(every)

    def at(x: float, y: float) -> tuple[float, float]:
        share = (x - begin) / max(end - begin, 1e-9)
        return share * _WIDTH, (1 - min(y / max(most, 1e-9), 1.0)) * height

    def path(points: Iterable[tuple[float, float]]) -> str:
        return " ".join("{:.0f},{:.0f}".format(*at(x, y)) for x, y in points)

    drawn = [f'<path d="M0 {height}H{_WIDTH}" stroke="#999"/>']
    if band:
        edge = [*((x, high) for x, _, high in band), *((x, low) for x, low, _ in reversed(band))]
        drawn.append(f'<polygon points="{path(edge)}" fill="{SECOND}" opacity="0.3"/>')
    drawn += [
        f'<polyline points="{path(points)}" fill="none" stroke="{color}" stroke-width="2"/>'
        for color, points in lines
    ]
    for x, y, text in texts:
        left, top = at(x, y)
        anchor = "start" if left < _WIDTH / 2 else "end"
        drawn.append(
            f'<text x="{left:.0f}" y="{top - 5:.0f}" text-anchor="{anchor}">{escape(text)}</text>'
        )
    return svg(height + 20, drawn)


def svg(height: int, drawn: Iterable[str]) -> str:
    """Put what is drawn into a picture."""
    return f'<svg viewBox="0 -20 620 {height + 20}" width="620" role="img">{"".join(drawn)}</svg>'
