"""Writes docs/settings.md from the table of settings.

``python -m tests.settings_page > docs/settings.md``
"""

from migration.settings import SETTINGS, UNBOUNDED, Kind, Reader, Setting

_HEAD = """# Settings

<!-- Generated: python -m tests.settings_page > docs/settings.md -->

All keys are optional. In `storm.yaml` each begins with `nstorm.` and stands flat, like Storm's own:
`nstorm.load.high: 0.9`. A key that is not known, and a value out of range, is refused by name.
`nstorm decide` and `nstorm replay` take the same keys as `--set load.high=0.9`, and a scenario of
`python -m deploy simulate` in its text. `nstorm tune` can vary the keys that are marked so.
"""
_COLUMNS = "| key | default | values | what it does | tuned |\n|---|---|---|---|---|"


def page() -> str:
    """Write docs/settings.md."""
    parts = [_HEAD]
    for reader in Reader:
        rows = "\n".join(_row(row) for row in SETTINGS if row.reader is reader)
        parts.append(f"## {reader}\n\n{_COLUMNS}\n{rows}\n")
    return "\n".join(parts)


def _row(row: Setting) -> str:
    only = f"Policy `{row.only_for}`: " if row.only_for else ""
    sentence = row.sentence[0].lower() + row.sentence[1:] if only else row.sentence
    tuned = "yes" if row.tunable else ""
    return f"| `{row.key}` | {_default(row)} | {_values(row)} | {only}{sentence} | {tuned} |"


def _default(row: Setting) -> str:
    if row.unset:
        return row.unset
    if row.kind is Kind.SWITCH:
        return "off"
    number = isinstance(row.default, int | float)
    return f"{row.default:g} {row.unit}".strip() if number else str(row.default)


def _values(row: Setting) -> str:
    if row.choices:
        return ", ".join(f"`{word}`" for word in row.choices)
    if row.kind not in {Kind.NUMBER, Kind.COUNT}:
        return row.kind.value
    whole = "whole, " if row.kind is Kind.COUNT else ""
    bounds = f"from {row.least:g}" + (f" to {row.most:,.10g}" if row.most < UNBOUNDED else "")
    return f"{whole}{bounds} {row.unit}".strip()


if __name__ == "__main__":
    print(page(), end="")
