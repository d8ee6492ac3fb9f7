"""Compiles loops to machine code, where numpy would spend most of its time on its calls."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function when it is first called, and keep the result beside its file.

    Parameters
    ----------
    function : callable
        Loops over contiguous arrays. What it calls must stand in the same file: a change elsewhere
        does not make it compile again.

    Returns
    -------
    callable
        The same, some hundred times as fast; indices are not checked.
    """
    try:
        return cast(F, njit(cache=True)(function))
    except RuntimeError:  # neither this folder nor the user's may be written to
        return cast(F, njit(function))
