"""What a scope makes of the function that it decorates."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable


def decorate(scope: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose every call is a scope of its own. Of a generator, a coroutine and an asynchronous generator each step is one: what runs between two of its yields or awaits, so that what waits is
    not counted and what other tasks do meanwhile does not stand inside."""
    if not callable(function):
        raise TypeError(f"a scope decorates a function, not {function!r}")
    again = scope._copy

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def call_coroutine(*args: Any, **kwargs: Any) -> Any:
            return await _Steps(again, function(*args, **kwargs))

        return call_coroutine

    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def call_async_generator(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            try:
                sent: Any = None
                while True:
                    try:
                        value = await _Steps(again, generator.asend(sent))
                    except StopAsyncIteration:
                        return
                    try:
                        sent = yield value
                    except GeneratorExit:
                        raise
                    except BaseException as e:
                        sent = None
                        value = await _Steps(again, generator.athrow(e))
                        sent = yield value
            finally:
                await generator.aclose()

        return call_async_generator

    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def call_generator(*args: Any, **kwargs: Any) -> Any:
            return (yield from _Steps(again, function(*args, **kwargs)))

        return call_generator

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with again():
            return function(*args, **kwargs)

    return call


class _Steps:
    """A generator or an awaitable, each step of which is a scope."""

    __slots__ = ("_again", "_inner")

    def __init__(self, again: Callable[[], Any], inner: Any) -> None:
        self._again = again
        self._inner = inner.__await__() if hasattr(inner, "__await__") else inner

    def __await__(self) -> "_Steps":
        return self

    def __iter__(self) -> "_Steps":
        return self

    def __next__(self) -> Any:
        with self._again():
            return next(self._inner)

    def send(self, value: Any) -> Any:
        with self._again():
            return self._inner.send(value) if hasattr(self._inner, "send") else next(self._inner)

    def throw(self, *error: Any) -> Any:
        with self._again():
            return self._inner.throw(*error)

    def close(self) -> None:
        self._inner.close()
