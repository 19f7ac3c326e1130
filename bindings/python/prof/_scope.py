"""record_function() and scope(): made by C (src/python/scope.c) where this interpreter allows it, else by the slower classes here."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Callable, Dict, List, Optional

from ._library import C

ANNOTATION = "user_annotation"
"""The category of record_function(), as torch.profiler writes it."""


class _Given(ctypes.Structure):
    """prof_i_python_given of src/python/interpreter.h."""

    _fields_ = [("size", ctypes.c_size_t), ("head_bytes", ctypes.c_size_t)] + [
        (name, ctypes.py_object)
        for name in ("names", "none", "string", "boolean", "integer", "real", "exception", "type_error", "value_error", "decorate")
    ]


def decorate(scope: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose every call is a scope of its own. Of a generator, a coroutine and an asynchronous generator each step is one: what runs between two of its yields or awaits, so that what waits is
    not counted and what other tasks do meanwhile does not stand inside."""
    import functools
    import inspect

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


# ---- without C's types: another interpreter of this process has them, or this Python is not CPython with a GIL ----


class _Arg(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("type", ctypes.c_uint32), ("bytes", ctypes.c_uint32), ("value", ctypes.c_uint64)]


class _Args(ctypes.Structure):
    _fields_ = [("items", ctypes.POINTER(_Arg)), ("count", ctypes.c_uint32), ("kind", ctypes.c_uint32), ("format", ctypes.c_char_p)]


class SlowScope:
    """What C's Scope does, by calls through ctypes."""

    __slots__ = ("_name", "_category", "_level", "_args", "_starts")

    def __init__(self, name: str, category: str, level: int, args: Optional[Dict[str, Any]]) -> None:
        self._name, self._category, self._level, self._args = name, category, level, args
        self._starts: List[int] = []

    def _copy(self) -> "SlowScope":
        return SlowScope(self._name, self._category, self._level, self._args)

    def _begin(self) -> int:
        if C.prof_level() < self._level:
            return 0
        name = self._name.encode("utf-8", "surrogatepass").replace(b"\0", b"\xef\xbf\xbd")
        category = self._category.encode("utf-8", "surrogatepass").replace(b"\0", b"\xef\xbf\xbd")
        if not self._args:
            return int(C.prof_scope_begin(self._level, name, category, None))
        kept = []
        items = (_Arg * 16)()
        for item, (key, value) in zip(items, self._args.items()):
            item.key = key.encode("utf-8", "surrogatepass")
            if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
                item.type, item.value = (4 if isinstance(value, bool) else 1), value & (1 << 64) - 1
            elif isinstance(value, float):
                item.type, item.value = 3, ctypes.c_uint64.from_buffer(ctypes.c_double(value)).value
            else:
                try:
                    text = str(value)
                except Exception:
                    text = "<no text>"
                raw = ctypes.create_string_buffer(text.encode("utf-8", "surrogatepass"))
                kept.append(raw)
                item.type, item.bytes, item.value = 5, len(raw) - 1, ctypes.addressof(raw)
        args = _Args(items, min(len(self._args), 16), 0, None)
        return int(C.prof_scope_begin(self._level, name, category, ctypes.byref(args)))

    def __enter__(self) -> "SlowScope":
        self._starts.append(self._begin())
        return self

    def __exit__(self, *error: Any) -> None:
        start = self._starts.pop() if self._starts else 0
        if start:
            C.prof_scope_end(start)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return decorate(self, function)


def _string(value: Any, function: str, parameter: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{function}() {parameter} must be a str, not {value!r}")
    return value


def _slow_record_function(name: str, args: Optional[str] = None) -> SlowScope:
    _string(name, "record_function", "name")
    return SlowScope(name, ANNOTATION, 1, None if args is None else {"args": _string(args, "record_function", "args")})


def _slow_scope(name: str, category: str = "operator", level: int = 1, /, **args: Any) -> SlowScope:
    _string(name, "scope", "name")
    _string(category, "scope", "category")
    if not 1 <= level <= 2:
        raise ValueError(f"scope() level must be 1 or 2, not {level!r}")
    return SlowScope(name, category, level, args or None)


def _fast_names() -> Dict[str, Any]:
    """C's functions and type; empty where they cannot be made."""
    names: Dict[str, Any] = {}
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    if sys.implementation.name != "cpython" or not has_gil:
        return names
    make = C.prof_i_python_1
    given = _Given(ctypes.sizeof(_Given), object.__basicsize__, names, None, str, bool, int, float, Exception, TypeError, ValueError, decorate)
    return names if make(ctypes.byref(given)) is None else {}


_names = _fast_names()
is_fast = bool(_names)
"""Whether scopes are C's."""
Scope = _names.get("Scope", SlowScope)
record_function = _names.get("record_function", _slow_record_function)
scope = _names.get("scope", _slow_scope)
