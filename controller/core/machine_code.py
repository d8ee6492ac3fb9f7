"""Compiles loops with numba, and keeps the code; alone in knowing numba."""

from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from types import CodeType
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.extending import typeof_impl

from controller.core.compiled import Loop


def of(function: Callable[..., Any]) -> Any:
    """Make what compiles a function at the first call of each signature: numba's Dispatcher.

    Where numba is set not to compile it is the function itself.
    """
    made: Any = njit(function)
    with suppress(RuntimeError):  # neither this folder nor the user's may be written to
        made._cache = _KeptCode(function)
    return made


def is_kept(loop: Callable[..., Any]) -> bool:
    """Return whether a loop need not be compiled."""
    assert isinstance(loop, Loop)
    cache = getattr(loop.machine, "_cache", None)
    return not isinstance(cache, FunctionCache) or bool(cache._cache_file._load_index())


@typeof_impl.register(Loop)  # type: ignore[untyped-decorator]  # numba has no types
def _type_of(loop: Loop, context: Any) -> Any:
    """Let a compiled loop call another one."""
    return typeof_impl(loop.machine, context)


class _KeptCode(FunctionCache):  # type: ignore[misc]  # numba has no types
    """Compiles again what cannot be read back, and keeps nothing where nothing can be written.

    Numba's own would end a decision in both cases. It would also take code for new that was
    compiled with another version of a function, or of a number, that stands in another file.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        used: dict[str, Any] = {}
        _note_used(function, used)
        stamp = [self._impl.locator.get_source_stamp(), *sorted(used.items())]
        self._cache_file = IndexDataCacheFile(self._cache_path, self._impl.filename_base, stamp)

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


def _note_used(function: Callable[..., Any], used: dict[str, Any]) -> None:
    """Note every loop and number that a function could use, and those that these could."""
    for name, known in function.__globals__.items():
        here = f"{function.__module__}.{name}"
        if here in used:
            continue
        if isinstance(known, Loop):
            used[here] = _digest(known.python.__code__)
            _note_used(known.python, used)
        elif isinstance(known, int | float):  # compiled as it is now
            used[here] = repr(known)


def _digest(code: CodeType) -> str:
    consts = [_digest(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return blake2b(code.co_code + repr((code.co_names, consts)).encode()).hexdigest()
