"""What functions of C are called, in rows and in stacks. functions.py asks once a function."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Tuple


def describe(function: Any) -> Tuple[str, str, str, int]:
    """The name with its module, the name, how it reads in a stack, and whether it is pybind11's. It
    has the name of its module, or of the class that has it. Methods of classes that inherit it are
    the same function. pybind11 calls all of its functions by one of C. Which one it is stands in
    the object that it gives that."""
    name: str = function.__name__
    of = getattr(function, "__self__", None)
    if of is None or isinstance(of, ModuleType):
        owner = getattr(function, "__objclass__", None)
    else:
        owner = next(
            (c for c in (of if isinstance(of, type) else type(of)).__mro__ if name in c.__dict__),
            None,
        )
    full = f"{owner.__qualname__}.{name}" if owner is not None else name
    module = owner.__module__ if owner is not None else function.__module__
    is_of_pybind = type(of).__name__ == "PyCapsule" or type(of).__name__.startswith(
        "pybind11_detail_function_record"
    )
    return (
        full if module in (None, "", "builtins") else f"{module}.{full}",
        full,
        _shown(function, owner),
        int(is_of_pybind),
    )


def _shown(function: Any, owner: Any) -> str:
    """How it reads in a stack, as torch.profiler has it, but without its object's address, and of
    the class that has the method: "<built-in method append of list object>"."""
    # <built-in function len>, <built-in method append of list object>, <method 'append' of 'list'
    # objects>
    text = repr(function).partition(" at 0x")[0].rstrip(">") + ">"
    if (
        owner is None
        or isinstance(owner, ModuleType)
        or isinstance(getattr(function, "__self__", None), type)  # a method of a class
        or text.startswith("<built-in function ")
    ):
        return text
    return f"<built-in method {function.__name__} of {_name_in_c(owner, function.__name__)} object>"


def _name_in_c(owner: Any, method: str) -> str:
    """The class's name in C, which may have its module: "torch._C.Generator". The methods of
    PyTorch's tensors are in a base class that no program names."""
    # <method 'manual_seed' of 'torch._C.Generator' objects>
    _, _, behind = repr(owner.__dict__.get(method)).partition("' of '")
    name = behind.partition("'")[0] or str(owner.__name__)
    return "Tensor" if name == "torch._C.TensorBase" else name


called = (describe, _shown, _name_in_c)
"""For torch.compile: it leaves them out."""
