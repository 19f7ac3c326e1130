"""record_function() and scope(): made by C (src/python/scope.c) where this interpreter allows it,
else by _slow."""

from __future__ import annotations

import copyreg
import ctypes
import sys
from typing import TYPE_CHECKING, Any, Dict, Optional, Set, Tuple

from . import _slow
from ._decorate import decorate
from ._library import C
from ._own_calls import is_method_of_program

__all__ = ["Scope", "is_fast", "record_function", "scope", "set_stack_frames"]

_GIVEN = (
    "names",
    "none",
    "string",
    "boolean",
    "integer",
    "real",
    "exception",
    "type_error",
    "value_error",
    "decorate",
    "modules",
    "is_of_program",
)


def _fast_names() -> Dict[str, Any]:
    """C's functions and type; empty where they cannot be made."""
    names: Dict[str, Any] = {}
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    if sys.implementation.name != "cpython" or not has_gil:
        return names
    make = C.prof_i_python_1

    class Given(ctypes.Structure):
        """prof_i_python_given of src/python/internal.h."""

        _fields_ = [("size", ctypes.c_size_t), ("head_bytes", ctypes.c_size_t)] + [
            (name, ctypes.py_object) for name in _GIVEN
        ]

    given = Given(
        ctypes.sizeof(Given),
        object.__basicsize__,
        names,
        None,
        str,
        bool,
        int,
        float,
        Exception,
        TypeError,
        ValueError,
        decorate,
        sys.modules,
        is_method_of_program,
    )
    return names if make(ctypes.byref(given)) is None else {}


_names = _fast_names()
is_fast = bool(_names)
"""Whether scopes are C's."""
if TYPE_CHECKING:
    from ._slow import Scope, record_function, scope
else:
    Scope = _names.get("Scope", _slow.Scope)
    record_function = _names.get("record_function", _slow.record_function)
    scope = _names.get("scope", _slow.scope)


def _make_again(
    name: str, category: Optional[str], level: int, args: Optional[Dict[str, Any]], shapes: Any
) -> Any:
    if category is None:
        return record_function(name, *(args or {}).values())
    return scope(
        name, category, level, **(args or {}), **({} if shapes is None else {"_shapes": shapes})
    )


def _reduce(made: Any) -> Tuple[Any, Tuple[Any, ...]]:
    """For copy and pickle: an object that keeps a scope can be copied, as with torch.profiler.
    Raises TypeError if the scope is entered."""
    return _make_again, made._parts()


for _kind in {Scope, _slow.Scope}:
    copyreg.pickle(_kind, _reduce)


class _Asked:
    """For a profile, what has rows where somebody asks for them: functions of prof.functions, and
    modules of prof.torch, which need not be loaded."""

    def __init__(self) -> None:
        self.begun = 0
        self._on: Set[int] = set()
        """Ids of the objects that have begun and not ended."""

    def begin(self, who: Any) -> None:
        self._on.add(id(who))
        self.begun += 1

    def end(self, who: Any) -> None:
        """Also where it has not begun."""
        self._on.discard(id(who))

    def before(self) -> int:
        """For a profile that begins here: `begun` is another as soon as somebody was on beside
        it."""
        return self.begun - bool(self._on)


functions, modules, operators = _Asked(), _Asked(), _Asked()
"""Functions and modules not for stacks alone. Operators are PyTorch's."""


def set_stack_frames(count: int) -> None:
    """From now on each scope has its innermost `count` frames. 0: none."""
    if is_fast:
        C.prof_i_python_stacks_1(count)
    else:
        _slow.stack_frames = count
