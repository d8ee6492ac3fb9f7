"""Compiles loops to machine code, where numpy would spend most of its time on its calls."""

import pickle
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

F = TypeVar("F", bound=Callable[..., Any])
_CRC_BYTES = 4


class _CheckedFile(IndexDataCacheFile):  # type: ignore[misc]  # numba has no types
    """Ends files with a checksum: one flipped bit of machine code would end the process."""

    def _dump(self, obj: Any) -> bytes:
        data: bytes = super()._dump(obj)
        return data + zlib.crc32(data).to_bytes(_CRC_BYTES)

    def _load_index(self) -> Any:
        with suppress(FileNotFoundError), Path(self._index_path).open("rb") as file:
            pickle.load(file)  # numba's version, which stands in front
            _check(file.read())
        return super()._load_index()

    def _load_data(self, name: str) -> Any:
        _check(Path(self._data_path(name)).read_bytes())
        return super()._load_data(name)


def _check(data: bytes) -> None:
    if zlib.crc32(data[:-_CRC_BYTES]).to_bytes(_CRC_BYTES) != data[-_CRC_BYTES:]:
        raise ValueError("damaged")


class _ForgivingCache(FunctionCache):  # type: ignore[misc]
    """Compiles anew what cannot be read back, and does without where nothing can be kept."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _CheckedFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=self._impl.locator.get_source_stamp(),
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
