"""The console of all commands: texts of others stand in it as they are, without their controls."""

from collections.abc import Iterable
from typing import Any

import rich.console
from rich.segment import Segment

from kvstore.printable import printable


class Console(rich.console.Console):
    """Takes no text for markup, and escapes control characters in each; its own colors stay."""

    def __init__(self, **how: Any) -> None:
        super().__init__(markup=False, **how)

    def render(self, *what: Any, **how: Any) -> Iterable[Segment]:
        for segment in super().render(*what, **how):
            yield segment if segment.control else segment._replace(text=printable(segment.text))
