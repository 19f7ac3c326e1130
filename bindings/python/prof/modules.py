"""Seeing a module's calls as operators: trace_module(numpy) makes every public function of it a scope with its inputs' shapes. For libraries whose own scopes prof does not have."""

from __future__ import annotations

import functools
import inspect
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from ._library import C
from ._scope import scope

_DTYPES = {
    "int8": 0x0008,
    "int16": 0x0010,
    "int32": 0x0020,
    "int64": 0x0040,
    "uint8": 0x0108,
    "uint16": 0x0110,
    "uint32": 0x0120,
    "uint64": 0x0140,
    "float16": 0x0210,
    "float32": 0x0220,
    "float64": 0x0240,
    "bfloat16": 0x0410,
    "complex64": 0x0540,
    "complex128": 0x0580,
    "bool": 0x0608,
}
_traced: Dict[int, Tuple[ModuleType, Dict[str, Any]]] = {}


def shapes_of(args: Iterable[Any]) -> List[Tuple[int, ...]]:
    """(dtype, dims...) of what has a shape and a dtype, as prof_tensor takes it; of others nothing."""
    found = []
    for a in args:
        shape = getattr(a, "shape", None)
        if isinstance(shape, tuple):
            found.append((_DTYPES.get(str(getattr(a, "dtype", "")).rsplit(".", 1)[-1], 0), *shape))
    return found


class _Traced:
    """A function that cannot be replaced by a function, because it has attributes (numpy's ufuncs): all but the call is the original's."""

    def __init__(self, function: Callable[..., Any], name: str, category: str) -> None:
        self.__dict__.update(_function=function, _name=name, _category=category)
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not C.prof_level():
            return self._function(*args, **kwargs)
        with scope(self._name, self._category, 1, _shapes=shapes_of(args)):
            return self._function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __repr__(self) -> str:
        return repr(self._function)


def _wrap(function: Callable[..., Any], name: str, category: str) -> Callable[..., Any]:
    if not isinstance(function, (FunctionType, BuiltinFunctionType)):
        return _Traced(function, name, category)

    @functools.wraps(function)
    def traced(*args: Any, **kwargs: Any) -> Any:
        if not C.prof_level():
            return function(*args, **kwargs)
        with scope(name, category, 1, _shapes=shapes_of(args)):
            return function(*args, **kwargs)

    return traced


def _is_operator(value: Any) -> bool:
    return callable(value) and not inspect.isclass(value) and not isinstance(value, ModuleType)


def trace_module(module: ModuleType, names: Optional[Iterable[str]] = None, category: str = "operator") -> int:
    """From here on calls of the module's public functions (or of those named) are scopes "module.function" with their inputs' shapes. Gives how many. What others have imported by ``from module import f`` before stays as it is, and so
    do operators (a @ b) and methods. A second time does nothing. untrace_module() takes it back. TypeError when it is no module, AttributeError for a name that it has not."""
    if not isinstance(module, ModuleType):
        raise TypeError(f"trace_module() takes a module, not {module!r}")
    originals = _traced.setdefault(id(module), (module, {}))[1]
    chosen = list(names) if names is not None else [n for n in getattr(module, "__all__", None) or dir(module) if not n.startswith("_") and _is_operator(getattr(module, n, None))]
    count = 0
    for name in chosen:
        value = getattr(module, name)
        if name in originals or not _is_operator(value):
            continue
        originals[name] = value
        setattr(module, name, _wrap(value, f"{module.__name__}.{name}", category))
        count += 1
    return count


def untrace_module(module: ModuleType) -> None:
    """The module's functions are its own again."""
    for name, value in _traced.pop(id(module), (module, {}))[1].items():
        setattr(module, name, value)
