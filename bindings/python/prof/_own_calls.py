"""Functions of prof's that call the program's functions in their place.

What prof calls of the standard library, of torch and of C is not recorded while functions are
traced: the program did not call it. If a scope decorates such a function, the program did. See
functions.py."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any, Set, TypeVar

of_program: Set[CodeType] = set()
"""What this code calls is recorded."""

_Function = TypeVar("_Function", bound=Any)


def calls_program(function: _Function) -> _Function:
    """A decorator."""
    assert isinstance(function, FunctionType)
    of_program.add(function.__code__)
    return function
