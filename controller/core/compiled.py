"""Compiles loops to machine code, where numpy would spend most of its time on its calls."""

from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from typing import Any, TypeVar, cast

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

F = TypeVar("F", bound=Callable[..., Any])
_LENGTH_BYTES, _DIGEST_BYTES = 8, 8


class _CheckedFile(IndexDataCacheFile):  # type: ignore[misc]  # numba has no types
    """Ends files with a checksum: one flipped bit of machine code would end the process."""

    def _dump(self, obj: Any) -> bytes:
        data: bytes = super()._dump(obj)
        length = len(data).to_bytes(_LENGTH_BYTES)
        return data + length + _digest(data + length)

    def _load_index(self) -> Any:
        with suppress(FileNotFoundError):
            _check(self._index_path)
        return super()._load_index()

    def _load_data(self, name: str) -> Any:
        _check(self._data_path(name))
        return super()._load_data(name)


def _check(path: str) -> None:
    """Raise ValueError where a file is damaged; numba's version in front is not looked at."""
    with open(path, "rb") as file:  # noqa: PTH123  # numba's paths are texts
        whole = file.read()
    data, digest = whole[:-_DIGEST_BYTES], whole[-_DIGEST_BYTES:]
    length = int.from_bytes(data[-_LENGTH_BYTES:])
    if digest != _digest(data[-_LENGTH_BYTES - length :]):
        raise ValueError(f"{path} is damaged")


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_BYTES).digest()


class _ForgivingCache(FunctionCache):  # type: ignore[misc]
    """Compiles anew what cannot be read back, and does without where nothing can be kept."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        path = function.__code__.co_filename
        self.sources: dict[str, Any] = {path: self._impl.locator.get_source_stamp()}
        for name, known in function.__globals__.items():
            called = getattr(known, "_cache", None)
            if isinstance(called, _ForgivingCache):
                self.sources |= called.sources
            elif isinstance(known, int | float):  # compiled as it is now
                self.sources[f"{path}: {name}"] = known
        self._cache_file = _CheckedFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=[self.sources[source] for source in sorted(self.sources)],
        )

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
        Loops over contiguous arrays. The functions and numbers it uses must stand in the same file
        or be imported by their names: a change elsewhere does not make it compile again.

    Returns
    -------
    callable
        The same, some hundred times as fast; indices are not checked.
    """
    made: Any = njit(function)
    with suppress(RuntimeError):  # neither this folder nor the user's may be written to
        made._cache = _ForgivingCache(function)
    return cast(F, made)
