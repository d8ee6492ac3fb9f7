"""Reads in OUTCOMES.md what to do about each outcome, so that page and command agree."""

import re
from functools import cache
from importlib.resources import files

from controller.core.decision import Outcome

ROW = re.compile(r"^\| `?([A-Z_]+)`? \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")


@cache
def what_to_do(outcome: Outcome) -> str:
    page = (files("controller") / "OUTCOMES.md").read_text().partition("\n## ")[0]
    return {name: _LINK.sub(r"\1", action) for name, _, action in ROW.findall(page)}[outcome]
