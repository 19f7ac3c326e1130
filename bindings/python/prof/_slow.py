"""record_function() and scope() by calls through ctypes, where C's type cannot be had: another
interpreter of this process has it, or this Python is not CPython with a GIL."""

from __future__ import annotations

import ctypes
import operator
import os
import sys
import threading
from types import FrameType
from typing import Any, Callable, Dict, List, Optional, Tuple, TypeVar, cast

from ._decorate import decorate
from ._library import C, short
from ._own_calls import OwnCall, tensor_text, tensor_type
from ._structs import Args

_Function = TypeVar("_Function", bound=Callable[..., Any])

ANNOTATION = "user_annotation"
"""The category of record_function(), as torch.profiler writes it."""

_PACKAGE = os.path.join(os.path.dirname(__file__), "")
ARGS_MOST = DIMS_MOST = 16
STACK_KEY = "Call stack"  # PROF_STACK_KEY of <prof/trace.h>
_here = threading.local()
stack_frames = 0
"""What each scope tells of where it was begun; 0: nothing."""


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("rank", ctypes.c_uint32),
        ("dtype", ctypes.c_uint32),
    ]


class _Arg(ctypes.Structure):
    _fields_ = [
        ("key", ctypes.c_char_p),
        ("type", ctypes.c_uint32),
        ("bytes", ctypes.c_uint32),
        ("value", ctypes.c_uint64),
    ]


I64, F64, BOOL, STRING, TENSOR = 1, 3, 4, 5, 7  # prof_arg_type
PAIRS, SHAPES = 0, 2  # prof_args_kind


def _text(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


def _name(value: str) -> bytes:
    """NUL bytes cannot stand in a name."""
    return _text(value).replace(b"\0", b"\xef\xbf\xbd")


def _text_of(value: Any) -> str:
    text = tensor_text(value)
    return str(value) if text is None else text


def _made(make: Callable[[Any], Optional[str]], value: Any) -> Optional[str]:
    """It is made a second time to find out what raised. An exception of the value's code comes
    again, and then there is no text. That of a signal's handler does not."""
    try:
        return make(value)
    except Exception:
        try:
            make(value)
        except Exception:
            return None
        raise


def _str(value: Any) -> str:
    """The value's text. Of a tensor without a readable shape its type alone."""
    with OwnCall(value, "__str__"):
        text = _made(_text_of, value)
        if text is None:
            text = _made(tensor_type, value)
        return "<no text>" if text is None else text


def _stack() -> str:
    """Frames of this package, which stand between a decorated function and its caller, are left
    out."""
    frames: List[str] = []
    here: Optional[FrameType] = sys._getframe()
    while here is not None and len(frames) < stack_frames:
        if not here.f_code.co_filename.startswith(_PACKAGE):
            frames.append(f"{here.f_code.co_filename}({here.f_lineno}): {here.f_code.co_name}")
        here = here.f_back
    return ";".join(frames)


class _Filled:
    """prof_args, and what it points to."""

    def __init__(self) -> None:
        self.items = (_Arg * ARGS_MOST)()
        self.count = 0
        self._kept: List[Any] = []

    def pair(self, key: str, value: Any) -> None:
        if self.count == ARGS_MOST:
            return
        item = self.items[self.count]
        self.count += 1
        item.key = _text(key)
        kind = type(value)  # whatever its __class__ says
        if issubclass(kind, int) and -(1 << 63) <= value < 1 << 63:
            item.type, item.value = (BOOL if kind is bool else I64), value & (1 << 64) - 1
        elif issubclass(kind, float):
            item.type, item.value = F64, ctypes.c_uint64.from_buffer(ctypes.c_double(value)).value
        else:
            text = _str(value)
            raw = ctypes.create_string_buffer(_text(text))
            self._kept.append(raw)
            item.type, item.bytes, item.value = STRING, len(raw) - 1, ctypes.addressof(raw)

    def shape(self, dtype: int, dims: Tuple[int, ...]) -> None:
        if self.count == ARGS_MOST:
            return
        dims = dims[:DIMS_MOST]
        numbers = (ctypes.c_int64 * max(len(dims), 1))(*dims)
        tensor = _Tensor(numbers, len(dims), dtype)
        self._kept += [numbers, tensor]
        item = self.items[self.count]
        self.count += 1
        item.type, item.value = TENSOR, ctypes.addressof(tensor)

    def args(self, kind: int) -> Args:
        """Valid while this object is."""
        return Args(ctypes.addressof(self.items), self.count, kind, None)


class Scope:
    """What C's Scope does."""

    __slots__ = ("_name", "_category", "_level", "_args", "_starts")

    def __init__(
        self, name: str, category: str, level: int, args: Optional[Dict[str, Any]]
    ) -> None:
        self._name, self._category, self._level, self._args = name, category, level, args
        self._starts: List[int] = []

    def _copy(self) -> "Scope":
        return Scope(self._name, self._category, self._level, self._args)

    def _parts(self) -> Tuple[str, Optional[str], int, Optional[Dict[str, Any]], Any]:
        """Name, category (None: an annotation), level, arguments and shapes, as src/python/scope.c
        gives them. Raises TypeError if the scope is entered."""
        if self._starts:
            raise TypeError(
                f"a scope that is entered cannot be copied or pickled: {short(self._name)}"
            )
        args = dict(self._args or {})
        is_annotation = self._category == ANNOTATION and set(args) <= {"args"}
        shapes = args.pop("_shapes", None)
        return (
            self._name,
            None if is_annotation else self._category,
            self._level,
            args or None,
            shapes,
        )

    def _begin(self) -> int:
        if C.prof_level() < self._level:
            return 0
        name, category = _name(self._name), _name(self._category)
        if not self._args and not stack_frames:
            return int(C.prof_scope_begin(self._level, name, category, None))
        args = dict(self._args or {})
        shapes = args.pop("_shapes", None)
        filled = _Filled()
        # some argument's __str__() begins this one: it might be that argument's own, and so on
        # without an end
        is_inside = getattr(_here, "is_making_text", False)
        for dtype, *dims in shapes or ():  # first: what has no key
            filled.shape(dtype, tuple(dims))
        if stack_frames:
            filled.pair(STACK_KEY, _stack())
        if not is_inside:
            _here.is_making_text = True
            try:
                for key, value in args.items():
                    filled.pair(key, value)
            finally:
                _here.is_making_text = False
        return int(
            C.prof_scope_begin(
                self._level,
                name,
                category,
                ctypes.byref(filled.args(PAIRS if shapes is None else SHAPES)),
            )
        )

    def __enter__(self) -> "Scope":
        self._starts.append(self._begin())
        return self

    def __exit__(self, *error: Any) -> None:
        start = self._starts.pop() if self._starts else 0
        if start:
            C.prof_scope_end(start)

    def __call__(self, function: _Function, /) -> _Function:
        return cast(_Function, decorate(self, function))


def _string(value: Any, function: str, parameter: str) -> str:
    if not issubclass(type(value), str):  # whatever its __class__ says
        raise TypeError(f"{function}() {parameter} must be a str, not {short(value)}")
    return cast(str, value)


def record_function(name: str, args: Optional[str] = None) -> Scope:
    """As C's."""
    _string(name, "record_function", "name")
    return Scope(
        name,
        ANNOTATION,
        1,
        None if args is None else {"args": _string(args, "record_function", "args")},
    )


def scope(name: str, /, category: str = "operator", level: int = 1, **args: Any) -> Scope:
    """As C's."""
    _string(name, "scope", "name")
    _string(category, "scope", "category")
    try:
        with OwnCall(level, "__index__"):
            level = operator.index(level)  # numpy's, too
    except TypeError:
        raise TypeError(f"scope() level must be an int, not {short(level)}") from None
    if not 1 <= level <= 2:
        raise ValueError(f"scope() level must be 1 or 2, not {short(level)}")
    if "_shapes" in args and not isinstance(args["_shapes"], (list, tuple)):
        raise TypeError(
            f"scope() _shapes must be a sequence of (dtype, dim, ...), not {short(args['_shapes'])}"
        )
    return Scope(name, category, level, args or None)
