"""Seeing a module's calls as operators: trace_module(numpy) makes every public function of it a scope with its inputs' shapes. For libraries whose own scopes prof does not have."""

from __future__ import annotations

import functools
import inspect
from importlib import import_module
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from ._decorate import decorate
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
_KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}
_SCALARS = {bool: (0x0608,), int: (0x0040,), float: (0x0240,), complex: (0x0580,)}
_SEQUENCE_MOST = 16  # PROF_ARGS_MOST: no more of a sequence is looked at
_NOT_TRACED = ("builtins", "sys", "importlib", "prof", "ctypes", "_ctypes", "functools", "inspect")
_dtypes: Dict[Any, int] = {}
_traced: Dict[int, Tuple[ModuleType, Dict[str, Any]]] = {}


def _dtype_code(dtype: Any) -> int:
    """Of an object that was not seen yet. numpy's by kind and itemsize: str() of one calls numpy's functions, which may be traced."""
    kind, size = getattr(dtype, "kind", None), getattr(dtype, "itemsize", None)
    if isinstance(kind, str) and isinstance(size, int):
        word = _KINDS.get(kind, "")
        return _DTYPES.get(word if kind == "b" else f"{word}{8 * size}", 0)
    return _DTYPES.get(str(dtype).rsplit(".", 1)[-1], 0)


def _shape_of(value: Any) -> Optional[Tuple[int, ...]]:
    try:
        shape = value.shape
        if not isinstance(shape, tuple):
            return None
        dtype = getattr(value, "dtype", None)
        code = _dtypes.get(dtype)
        if code is None:
            code = _dtype_code(dtype)
            if len(_dtypes) < 256:
                _dtypes[dtype] = code
        return (code, *shape)
    except Exception:  # a property's: the call itself must go on
        return None


def shapes_of(args: Iterable[Any]) -> List[Tuple[int, ...]]:
    """(dtype, dims...) of what has a shape and a dtype, and of what a list or a tuple holds of it, as prof_tensor takes it. Numbers have no dimensions, and are told where an array stands beside them; of others nothing."""
    found: List[Tuple[int, ...]] = []
    has_array = False
    for a in args:
        number = _SCALARS.get(type(a))
        if number is not None:
            found.append(number)
        elif type(a) in (list, tuple):
            for item in a[:_SEQUENCE_MOST]:
                shape = None if type(item) in _SCALARS else _shape_of(item)
                if shape is not None:
                    found.append(shape)
                    has_array = True
        else:
            shape = _shape_of(a)
            if shape is not None:
                found.append(shape)
                has_array = True
    return found if has_array else []


class _Traced:
    """A function that cannot be replaced by a function, because it has attributes (numpy's ufuncs): all but the call is the original's, its class, too."""

    def __init__(self, function: Callable[..., Any], name: str, category: str) -> None:
        self.__dict__.update(_function=function, _name=name, _category=category)
        functools.update_wrapper(self, function)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not C.prof_level():
            return self._function(*args, **kwargs)
        with scope(self._name, self._category, 1, _shapes=shapes_of(args)):
            return self._function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_function":  # not there yet
            raise AttributeError(name)
        return getattr(self._function, name)

    def __copy__(self) -> "_Traced":
        return self

    def __deepcopy__(self, memo: Any) -> "_Traced":
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        """By name, as functions are: who reads it has the module's own, traced or not."""
        module, _, name = self._name.rpartition(".")
        return _named, (module, name)

    def __repr__(self) -> str:
        return repr(self._function)


def _named(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def _wrap(function: Callable[..., Any], name: str, category: str) -> Callable[..., Any]:
    if not isinstance(function, (FunctionType, BuiltinFunctionType)):
        return _Traced(function, name, category)
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return decorate(scope(name, category, 1), function)  # they stay what they are; each of their steps is a scope

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
    do operators (a @ b) and methods. A second time does nothing. untrace_module() takes it back. TypeError when it is no module, AttributeError for a name that it has not, ValueError for what prof itself and the interpreter need."""
    if not isinstance(module, ModuleType):
        raise TypeError(f"trace_module() takes a module, not {module!r}")
    if module.__name__.partition(".")[0].lstrip("_") in _NOT_TRACED:
        raise ValueError(f"trace_module() cannot trace {module.__name__}: prof itself calls it")
    chosen = list(names) if names is not None else [n for n in getattr(module, "__all__", None) or dir(module) if not n.startswith("_") and _is_operator(getattr(module, n, None))]
    originals = dict(_traced.get(id(module), (module, {}))[1])
    replaced: Dict[str, Any] = {}
    try:
        for name in chosen:
            value = getattr(module, name)
            if name in originals or name in replaced or not _is_operator(value):
                continue
            setattr(module, name, _wrap(value, f"{module.__name__}.{name}", category))
            replaced[name] = value
    except BaseException:
        for name, value in replaced.items():
            setattr(module, name, value)
        raise
    _traced[id(module)] = (module, {**originals, **replaced})
    return len(replaced)


def untrace_module(module: ModuleType) -> None:
    """The module's functions are its own again."""
    for name, value in _traced.pop(id(module), (module, {}))[1].items():
        setattr(module, name, value)
