"""Compiles loops to machine code, where numpy would spend most of its time on its calls."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

from numba import njit
from numba.core.caching import FunctionCache

F = TypeVar("F", bound=Callable[..., Any])


class _ForgivingCache(FunctionCache):  # type: ignore[misc]  # numba has no types
    """Compiles anew what cannot be read back, and does without where nothing can be kept."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # out of a damaged file comes whatever unpickling raises
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(Exception):  # a full disk, or a damaged file that may not be written
            super().save_overload(sig, data)


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
    made: Any = njit(function)
    with suppress(RuntimeError):  # neither this folder nor the user's may be written to
        made._cache = _ForgivingCache(function)
    return cast(F, made)
