"""What a scope makes of the function that it decorates."""

from __future__ import annotations

import functools
import types
from typing import Any, Callable

from ._library import short
from ._own_calls import calls_program

_Again = Callable[[], Any]


def decorate(scope: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose every call is a scope of its own.

    Of a generator, a coroutine and an asynchronous generator, each step is a scope: what runs
    between two of its yields or awaits. So waiting is not counted, and what other tasks do
    meanwhile is outside."""
    if not callable(function):
        raise TypeError(f"a scope decorates a function, not {short(function)}")
    # it would be a function from then on: no subclasses, no isinstance()
    if isinstance(function, type):
        raise TypeError(
            f"a scope decorates functions, generators, coroutines and asynchronous generators, not "
            f"the class {function.__qualname__}: decorate its __init__"
        )

    import inspect  # milliseconds, only for programs that decorate

    if inspect.iscoroutinefunction(function):
        return _decorate_coroutine(scope._copy, function)
    if inspect.isasyncgenfunction(function):
        return _decorate_async_generator(scope._copy, function)
    if inspect.isgeneratorfunction(function):
        decorated = _decorate_generator(scope._copy, function)
        code = getattr(inspect.unwrap(function), "__code__", None)
        is_awaited = code is not None and code.co_flags & inspect.CO_ITERABLE_COROUTINE
        return types.coroutine(decorated) if is_awaited else decorated
    return _decorate_function(scope._copy, function)


# Below, `again` makes a scope like the decorator's.


def _decorate_function(again: _Again, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    @calls_program
    def call(*args: Any, **kwargs: Any) -> Any:
        with again():
            return function(*args, **kwargs)

    return call


def _decorate_coroutine(again: _Again, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    @calls_program
    async def call_coroutine(*args: Any, **kwargs: Any) -> Any:
        return await _Steps(again, function(*args, **kwargs))

    return call_coroutine


def _decorate_generator(again: _Again, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    @calls_program
    def call_generator(*args: Any, **kwargs: Any) -> Any:
        steps = _Steps(again, function(*args, **kwargs))
        try:
            return (yield from steps)
        except GeneratorExit:
            if steps.last is None:
                raise
            return steps.last  # which close() gives to who called it, from Python 3.13 on

    return call_generator


def _decorate_async_generator(again: _Again, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    @calls_program
    async def call_async_generator(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        step = generator.asend(None)
        while True:
            try:
                value = await _Steps(again, step)
            except StopAsyncIteration:
                # it may also be the answer to athrow(): the function has dealt with what was raised
                return
            try:
                sent = yield value
            except GeneratorExit:
                await _Steps(again, generator.aclose())
                raise
            except BaseException as e:
                step = generator.athrow(e)
            else:
                step = generator.asend(sent)

    return call_async_generator


class _Steps:
    """A generator or an awaitable, each step of which is a scope."""

    __slots__ = ("_again", "_inner", "last")

    def __init__(self, again: _Again, inner: Any) -> None:
        self._again = again
        self.last: Any = None
        """What close() has given."""
        self._inner = inner.__await__() if hasattr(inner, "__await__") else inner

    def __await__(self) -> "_Steps":
        return self

    def __iter__(self) -> "_Steps":
        return self

    @calls_program
    def __next__(self) -> Any:
        with self._again():
            return next(self._inner)

    @calls_program
    def send(self, value: Any) -> Any:
        with self._again():
            return self._inner.send(value) if hasattr(self._inner, "send") else next(self._inner)

    @calls_program
    def throw(self, *error: Any) -> Any:
        throw = getattr(self._inner, "throw", None)
        if throw is None:  # an iterator need not have it: what is thrown then comes out here
            raise _raisable(*error)
        with self._again():
            return throw(*error)

    @calls_program
    def close(self) -> None:
        """The last step: what runs in its ``finally``. CPython calls it also for one that is
        dropped."""
        close = getattr(self._inner, "close", None)
        if close is not None:
            with self._again():
                self.last = close()


def _raisable(kind: Any, value: Any = None, traceback: Any = None) -> BaseException:
    """The exception of throw()'s one or three arguments."""
    if isinstance(kind, BaseException):
        error = kind
    elif isinstance(value, BaseException):
        error = value
    else:
        error = kind() if value is None else kind(value)
    return error.with_traceback(traceback) if traceback is not None else error
