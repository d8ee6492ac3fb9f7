"""Answers that are kept for the very same arguments."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def keeping(function: F) -> F:
    """Keep the last answer for the very same arguments: a decision asks several times for them."""
    last: tuple[tuple[Any, ...], Any] = (), None

    @wraps(function)
    def kept(*arguments: Any) -> Any:
        nonlocal last
        of, answer = last
        if len(of) != len(arguments) or any(a is not b for a, b in zip(of, arguments, strict=True)):
            answer = function(*arguments)
            last = arguments, answer
        return answer

    return cast(F, kept)
