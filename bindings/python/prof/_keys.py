"""What an operator is known by when it has no key of its own: its callable, and what it is called
with. Two that could cost differently never share a key; where that cannot be seen, a key is this
process's alone."""

from __future__ import annotations

import functools
import hashlib
import itertools
import sys
import weakref
from os import getpid
from time import time_ns
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Dict, Set, Tuple

TEXT_MOST = 64  # longer texts stand as their digest


class _Serials:
    """Gives each object a number of its own, for as long as the object lives. An object without
    weak references cannot be watched, and another one may get its address later. So it has a new
    number at each query."""

    def __init__(self) -> None:
        self._known: Dict[int, Tuple["weakref.ref[Any]", int]] = {}
        self._next = itertools.count(1)

    def of(self, thing: Any) -> int:
        at = id(thing)
        kept = self._known.get(at)
        if kept is not None and kept[0]() is thing:
            return kept[1]
        number = next(self._next)
        try:
            self._known[at] = (weakref.ref(thing, lambda _: self._known.pop(at, None)), number)
        except TypeError:
            pass
        return number


_serials = _Serials()
_begun = time_ns()  # with the process's number: no other process has both


def _itself(thing: Any) -> str:
    return f"#{getpid()}.{_begun:x}.{_serials.of(thing)}"


def _short(text: str) -> str:
    if len(text) <= TEXT_MOST:
        return text
    digest = hashlib.sha1(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[: TEXT_MOST // 2]}...{digest[:16]}"


def describe(value: Any) -> str:
    """An argument: arrays by dtype and shape, plain values by what they are, others by
    themselves."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None:
        return f"{dtype}[{','.join(str(n) for n in shape)}]"
    if value is None or type(value) in (bool, int, float, complex, str, bytes):
        return _short(repr(value))
    if type(value) in (tuple, list) and len(value) <= TEXT_MOST:
        return _short(f"{type(value).__name__}({', '.join(describe(v) for v in value)})")
    return f"{type(value).__name__}{_itself(value)}"


def _add(digest: Any, *texts: Any) -> None:
    """Each with its length before it: what is cut elsewhere is something else."""
    for text in texts:
        raw = text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(raw))
        digest.update(raw)


def _add_code(digest: Any, code: CodeType, names: Set[str]) -> None:
    _add(
        digest,
        code.co_code,
        getattr(code, "co_exceptiontable", b""),
        code.co_flags,
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
    )
    for group in (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars):
        _add(digest, len(group), *group)
    names.update(code.co_names)
    _add(digest, len(code.co_consts))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _add(digest, "code")
            _add_code(digest, constant, names)
        else:
            _add(
                digest,
                type(constant).__name__,
                repr(sorted(map(repr, constant)))
                if isinstance(constant, frozenset)
                else repr(constant),
            )


def _of_function(function: FunctionType) -> str:
    """Its name, its code, its defaults and the global values that it names: one that has been
    edited since is another one. What it calls is not looked at."""
    digest = hashlib.sha1(sys.version.encode())
    code, names = function.__code__, set()  # type: CodeType, Set[str]
    _add_code(digest, code, names)
    values = function.__defaults__ or ()
    defaults = {
        **dict(zip(code.co_varnames[code.co_argcount - len(values) : code.co_argcount], values)),
        **(function.__kwdefaults__ or {}),
    }
    found = {n: function.__globals__.get(n, len) for n in names}
    for group in (
        defaults,
        {n: v for n, v in found.items() if not callable(v) and not isinstance(v, ModuleType)},
    ):
        _add(digest, len(group))
        for name in sorted(group):
            _add(digest, name, describe(group[name]))
    return f"{function.__module__}.{function.__qualname__}@{digest.hexdigest()[:16]}"


def _is_of_module(function: Any) -> bool:
    """C's functions of modules, and numpy's ufuncs: they hold nothing but their name."""
    if isinstance(function, BuiltinFunctionType):
        return function.__self__ is None or isinstance(function.__self__, ModuleType)
    return type(function).__name__ == "ufunc" and type(function).__module__ == "numpy"


def of(function: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> str:
    """The key of a callable and its arguments.

    A function that has no closure is known by its name and code. A function of C is known by its
    name. A bound method is known by its name and its object. A function with a closure, and any
    other object, is known by its identity, too."""
    while isinstance(function, functools.partial):
        function, args, kwargs = (
            function.func,
            function.args + args,
            {**function.keywords, **kwargs},
        )
    name = (
        getattr(function, "__qualname__", None)
        or getattr(function, "__name__", None)
        or type(function).__name__
    )
    if isinstance(function, FunctionType):
        known = _of_function(function) + (_itself(function) if function.__closure__ else "")
    elif _is_of_module(function):
        known = f"{getattr(function, '__module__', None) or 'numpy'}.{name}"
    elif isinstance(function, MethodType):
        known = f"{name}{_itself(function.__self__)}"
    else:
        known = f"{name}{_itself(function)}"
    described = [describe(value) for value in args]
    described += [f"{key}={describe(value)}" for key, value in kwargs.items()]
    return f"{known}({', '.join(described)})"
