"""Loops that run as machine code, or as the Python that they are until it is there.

Both give the same answers. In numpy such loops would spend most of their time on its calls.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, update_wrapper
from typing import Any, TypeVar, cast

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


def _never() -> bool:
    return False


_is_compiled: ContextVar[Callable[[], bool]] = ContextVar("is_compiled", default=lambda: True)


@contextmanager
def run_as_python_until(is_compiled: Callable[[], bool]) -> Iterator[None]:
    """Let the loops of this thread run as Python; those of all others are compiled when called.

    `is_compiled` is asked at each call of a loop that no other loop makes, and may turn from False
    to True at any time.
    """
    before = _is_compiled.set(is_compiled)
    try:
        yield
    finally:
        _is_compiled.reset(before)


class Loop:
    """A function in both its forms."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.python = function
        update_wrapper(self, function)

    @cached_property
    def machine(self) -> Any:
        """The function as the compiler has it; it compiles at the first call of each signature."""
        # Late: a controller that starts decides before it loads the compiler.
        from controller.core.machine_code import of  # noqa: PLC0415

        return of(self.python)

    def __call__(self, *arguments: Any) -> Any:
        is_compiled = _is_compiled.get()
        if is_compiled is _never:
            return self.python(*arguments)
        if is_compiled():
            return self.machine(*arguments)
        # Its callees also run as Python: machine code draws from random numbers of its own. And it
        # does not warn of infinities that cancel each other out.
        with run_as_python_until(_never), np.errstate(all="ignore"):
            return self.python(*arguments)


def compiled(function: F) -> F:
    """Compile loops over contiguous arrays at their first call; keep the result next to their file.

    The result is some hundred times as fast; indices are not checked. The functions and numbers
    that it uses must stand in the same file or be imported by their names. A change elsewhere does
    not make it compile again.
    """
    return cast(F, Loop(function))
