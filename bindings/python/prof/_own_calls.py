"""Marks functions of prof that call functions on behalf of the program.

While functions are traced, prof's own calls of the standard library, torch and C are not recorded,
because the program did not make them. If such a function is decorated by a scope, its calls are
the program's, and are recorded. See functions.py."""

from __future__ import annotations

import ctypes
import os
import sys
from types import CodeType, FunctionType
from typing import Any, Optional, Set, Tuple, TypeVar

from . import _torch_compile
from ._library import C

of_program: Set[CodeType] = set()
"""Calls of this code are recorded."""

silent: Set[CodeType] = set()
"""No call of this code is recorded, not even inner calls that torch makes into other libraries."""

_Function = TypeVar("_Function", bound=Any)


def calls_program(function: _Function) -> _Function:
    """A decorator for a function of prof that calls a function on behalf of the program."""
    assert isinstance(function, FunctionType)
    of_program.add(function.__code__)
    return function


def is_silent(function: _Function) -> _Function:
    """A decorator for a function that runs on a thread of prof."""
    assert isinstance(function, FunctionType)
    silent.add(function.__code__)
    return function


_STANDARD = tuple(
    {
        os.path.join(folder(os.path.dirname(os.__file__)), "")
        for folder in (os.path.abspath, os.path.realpath)
    }
)
_INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)


def is_standard(module: str, file: str) -> bool:
    """Whether the code is of the standard library. Code that was made at run time counts as code
    of its module's file."""
    if file.startswith("<frozen "):
        return True
    if file.startswith("<"):
        if module.startswith("namedtuple_"):
            return True
        file = getattr(sys.modules.get(module), "__file__", None) or file
    return file.startswith(_STANDARD) and not any(part in file for part in _INSTALLED)


def is_support(module: str, file: str) -> bool:
    """Whether the code is of torch or the standard library. prof's calls of it are not recorded."""
    is_of_torch = module == "torch" or module.startswith("torch.")
    return is_of_torch or (module != "__main__" and is_standard(module, file))


def _method(kind: type, name: str) -> Any:
    return next((c.__dict__[name] for c in kind.__mro__ if name in c.__dict__), None)


def is_method_of_program(asked: Tuple[Any, str]) -> bool:
    """For C, with a value and the name of a method. Whether that method is a function of the
    program, or of a library other than the standard library and torch."""
    value, name = asked
    kind = type(value)
    method = _method(kind, name)
    if method is object.__str__:
        method = _method(kind, "__repr__")
    code = getattr(method, "__code__", None)
    if type(code) is not CodeType:
        return False
    module = method.__globals__.get("__name__")
    return not is_support(module if type(module) is str else "", code.co_filename)


def _is_tensor(value: Any) -> bool:
    kind = getattr(sys.modules.get("torch"), "Tensor", None)
    return isinstance(kind, type) and issubclass(type(value), kind)


def tensor_type(value: Any) -> Optional[str]:
    """A text such as "float32", as in own_calls.c. None: the value is no PyTorch tensor."""
    return str(value.dtype).rpartition(".")[2] if _is_tensor(value) else None


def tensor_text(value: Any) -> Optional[str]:
    """A text such as "float32[2, 3]", as in own_calls.c. None: the value is no PyTorch tensor."""
    of_type = tensor_type(value)
    if of_type is None:
        return None
    dims = ", ".join(str(n) if type(n) is int else "?" for n in value.shape)
    return f"{of_type}[{dims}]"


class OwnCall:
    """For _slow.py: like prof_i_py_own_call_begin() and _end() of src/python/own_calls.c. Inside
    of it, PyTorch operators are not recorded, unless the method is a function of the program."""

    silence: Any = None

    def __init__(self, value: Any, name: str) -> None:
        is_silent = OwnCall.silence is not None and not is_method_of_program((value, name))
        self._silence = OwnCall.silence if is_silent else None

    def __enter__(self) -> None:
        if self._silence is not None:
            self._silence(1)

    def __exit__(self, *error: Any) -> None:
        if self._silence is not None:
            self._silence(-1)


def silence_torch_by(function: Any) -> None:
    """Sets the function of libprof_torch.so that switches the recording of operators off (1) and on
    (-1) in the calling thread."""
    function.argtypes, function.restype = [ctypes.c_int], None
    _torch_compile.leave_out((is_method_of_program, _method, is_support, is_standard))
    OwnCall.silence = function
    C.prof_i_python_silence_1(ctypes.cast(function, ctypes.c_void_p))
