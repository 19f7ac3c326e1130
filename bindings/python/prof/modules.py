"""Seeing a module's calls as operators: trace_module(numpy) makes every public function of it a
scope with its inputs' shapes. For libraries that have no scopes of their own in prof."""

from __future__ import annotations

import functools
import inspect
import os
import threading
import weakref
from importlib import import_module
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from . import _keys, session  # noqa: F401  (before a module is traced whose functions they call)
from ._decorate import decorate
from ._library import C, short
from ._own_calls import calls_program
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
    "complex32": 0x0520,
    "float8_e4m3fn": 0x0A08,
    "float8_e4m3fnuz": 0x0B08,
    "float8_e5m2": 0x0C08,
    "float8_e5m2fnuz": 0x0D08,
    "float8_e8m0fnu": 0x0E08,
    "float4_e2m1fn_x2": 0x1108,
    "qint8": 0x2008,
    "qint32": 0x2020,
    "quint8": 0x2108,
    "quint4x2": 0x2104,
    "quint2x4": 0x2102,
    "bits1x8": 0x2201,
    "bits2x4": 0x2202,
    "bits4x2": 0x2204,
    "bits8": 0x2208,
    "bits16": 0x2210,
    **{f"int{bits}": bits for bits in range(1, 8)},
    **{f"uint{bits}": 0x0100 | bits for bits in range(1, 8)},
}
_KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}
_SCALARS = {bool: (0x0608,), int: (0x0040,), float: (0x0240,), complex: (0x0580,)}
_SEQUENCE_MOST = 16  # PROF_ARGS_MOST: no more of a sequence is looked at
_NOT_TRACED = ("builtins", "sys", "importlib", "prof", "ctypes", "_ctypes", "functools", "inspect")
# by frames: whose function called
_ASK_FOR_CALLER = (
    "collections",
    "typing",
    "typing_extensions",
    "dataclasses",
    "enum",
    "logging",
    "warnings",
    "traceback",
)
# Whose objects are called and nothing more. Other callable objects may be subscripted, entered,
# added, ..., which no wrapper of a class that stands before them can do.
_FUNCTION_TYPES = (
    FunctionType,
    BuiltinFunctionType,
    MethodType,
    functools.partial,
    type(functools.lru_cache(maxsize=1)(len)),
)
_FUNCTION_TYPE_NAMES = ("numpy.ufunc", "numpy._ArrayFunctionDispatcher")
# Cython's, nanobind's and jax's functions; their modules' names have versions
_COMPILED_TYPE_NAMES = ("cython_function_or_method", "nb_func", "PjitFunction")
_dtypes: Dict[Any, int] = {}
_lock = threading.RLock()  # around what follows
_traced: Dict[int, Tuple[ModuleType, Dict[str, Any]]] = {}
_wrappers: Dict[int, "_Wrapper"] = {}  # by what they wrap
_functions_made: "weakref.WeakSet[Any]" = weakref.WeakSet()


def _begin_anew() -> None:
    """In a forked child: another thread may have held the lock."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def _dtype_code(dtype: Any) -> int:
    """Of an object that was not seen yet. numpy's by kind and itemsize: str() of one calls numpy's
    functions, which may be traced."""
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
    """(dtype, dims...) of what has a shape and a dtype, and of what a list or a tuple holds of it,
    as prof_tensor takes it. Numbers have no dimensions. They are included if there is an array,
    too. Other values are left out."""
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


def dtype_and_dims(value: Any) -> Tuple[int, ...]:
    """Of one value. (0,): it has neither."""
    return _SCALARS.get(type(value)) or _shape_of(value) or (0,)


class _Traced:
    """Replaces a function that a plain function cannot replace, because it has attributes, or is
    compared (numpy's ufuncs). All but the call is the original's: its class, its attributes, and
    what it is equal to. A comparison by "is" shows the difference."""

    __slots__ = ("__weakref__", "_prof_category", "_prof_function", "_prof_name")
    _prof_function: Any
    _prof_name: str
    _prof_category: str

    def __init__(self, function: Callable[..., Any], name: str, category: str) -> None:
        for key, value in (
            ("_prof_function", function),
            ("_prof_name", name),
            ("_prof_category", category),
        ):
            object.__setattr__(self, key, value)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._prof_function)

    @property
    def __wrapped__(self) -> Any:
        return self._prof_function

    __doc__ = property(lambda self: self._prof_function.__doc__)
    __module__ = property(lambda self: self._prof_function.__module__)

    @calls_program
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if not C.prof_level():
            return self._prof_function(*args, **kwargs)
        with scope(self._prof_name, self._prof_category, 1, _shapes=shapes_of(args)):
            return self._prof_function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_prof_function":  # not there yet
            raise AttributeError(name)
        return getattr(self._prof_function, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._prof_function, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._prof_function, name)

    def __eq__(self, other: Any) -> bool:
        """numpy's protocols hand the original to code that compares it with what the module has, or
        looks it up in a dictionary."""
        return bool(
            self._prof_function == (other._prof_function if type(other) in _TRACED_TYPES else other)
        )

    def __hash__(self) -> int:
        return hash(self._prof_function)

    def __copy__(self) -> "_Traced":
        return self

    def __deepcopy__(self, memo: Any) -> "_Traced":
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        """By name, as functions are: who reads it has the module's own, traced or not."""
        module, _, name = self._prof_name.rpartition(".")
        return _named, (module, name)

    def __repr__(self) -> str:
        return repr(self._prof_function)


class _TracedMethod(_Traced):
    """Of an original that is a method where it stands in a class."""

    __slots__ = ()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)


_TRACED_TYPES = (_Traced, _TracedMethod)


class _Wrapper:
    """The replacement of an original, in all places where traced modules have it."""

    def __init__(self, original: Any, name: str, category: str) -> None:
        self.original, self.users = original, 0
        self.wrapper = _wrap(original, name, category)
        if type(self.wrapper) is FunctionType:
            _functions_made.add(self.wrapper)

    def end(self) -> None:
        """What the program has kept as attributes of a function meanwhile (a count, say), it finds
        there."""
        if type(self.wrapper) is FunctionType and type(self.original) is FunctionType:
            kept = {
                key: value for key, value in self.wrapper.__dict__.items() if key != "__wrapped__"
            }
            if "__wrapped__" in self.original.__dict__:
                kept["__wrapped__"] = self.original.__dict__["__wrapped__"]
            self.original.__dict__.clear()
            self.original.__dict__.update(kept)


def _named(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def _is_numpys_protocol(function: Any) -> bool:
    """A function in Python that numpy hands to __array_function__ itself: those with like=, and
    before numpy 1.25 all."""
    return (function.__module__ or "").partition(".")[0] == "numpy" and (
        "like" in (function.__kwdefaults__ or ())
        or function.__code__.co_filename == "<__array_function__ internals>"
    )


def _wrap(function: Callable[..., Any], name: str, category: str) -> Callable[..., Any]:
    kind = type(function)
    if (
        kind not in (FunctionType, BuiltinFunctionType)
        or kind is FunctionType
        and _is_numpys_protocol(function)
    ):
        return (_TracedMethod if hasattr(kind, "__get__") and kind is not MethodType else _Traced)(
            function, name, category
        )
    if (
        inspect.isgeneratorfunction(function)
        or inspect.iscoroutinefunction(function)
        or inspect.isasyncgenfunction(function)
    ):
        # they stay what they are; each of their steps is a scope
        return decorate(scope(name, category, 1), function)

    @functools.wraps(function)
    @calls_program
    def traced(*args: Any, **kwargs: Any) -> Any:
        if not C.prof_level():
            return function(*args, **kwargs)
        with scope(name, category, 1, _shapes=shapes_of(args)):
            return function(*args, **kwargs)

    return traced


def _is_operator(value: Any) -> bool:
    """By its type alone: nothing of the object runs."""
    kind = type(value)
    return (
        kind in _FUNCTION_TYPES
        or f"{kind.__module__}.{kind.__name__}" in _FUNCTION_TYPE_NAMES
        or kind.__name__ in _COMPILED_TYPE_NAMES
    )


def _is_wrapper(value: Any) -> bool:
    return type(value) in _TRACED_TYPES or type(value) is FunctionType and value in _functions_made


def _get(module: ModuleType, name: str) -> Any:
    """None if it is not available: a value that is made on access may need what is not
    installed."""
    try:
        return getattr(module, name)
    except Exception:
        return None


def _public(module: ModuleType) -> Dict[str, Any]:
    values = {
        n: _get(module, n)
        for n in _get(module, "__all__") or dir(module)
        if isinstance(n, str) and not n.startswith("_")
    }
    return {n: v for n, v in values.items() if _is_operator(v)}


def _replace(module: ModuleType, values: Dict[str, Any], category: str) -> int:
    originals = _traced.setdefault(id(module), (module, {}))[1]
    replaced: List[str] = []
    try:
        for name in values:
            value = vars(module).get(name, values[name])  # another thread may have been here
            if name in originals or not _is_operator(value) or _is_wrapper(value):
                continue
            wrapper = _wrappers.get(id(value))
            if wrapper is None:
                # of several names (numpy.abs, numpy.absolute) the function's own
                own = getattr(value, "__name__", name)
                shown = own if values.get(own) is value else name
                wrapper = _wrappers[id(value)] = _Wrapper(
                    value, f"{module.__name__}.{shown}", category
                )
            wrapper.users += 1
            originals[name] = value
            replaced.append(name)
            setattr(module, name, wrapper.wrapper)
    except BaseException:
        _restore(module, originals, replaced)
        raise
    return len(replaced)


def _restore(module: ModuleType, originals: Dict[str, Any], names: List[str]) -> None:
    for name in names:
        setattr(module, name, originals[name])
        value = originals.pop(name)
        wrapper = _wrappers[id(value)]
        wrapper.users -= 1
        if not wrapper.users:
            del _wrappers[id(value)]
            wrapper.end()


def trace_module(
    module: ModuleType, names: Optional[Iterable[str]] = None, category: str = "operator"
) -> int:
    """From now on calls of the module's public functions (or of those named) are scopes
    "module.function" with their inputs' shapes. Gives how many. A second time does nothing.
    untrace_module() takes it back.

    Names that others imported before by ``from module import f`` stay as they are. So do operators
    (a @ b), methods, and callable objects that are no functions.

    TypeError if it is no module. AttributeError for a name that it does not have. ValueError for
    modules that prof itself and the interpreter need, and for modules that look for their
    caller."""
    if not isinstance(module, ModuleType):
        raise TypeError(f"trace_module() takes a module, not {short(module)}")
    top = module.__name__.partition(".")[0].lstrip("_")
    if top in _NOT_TRACED:
        raise ValueError(f"trace_module() cannot trace {module.__name__}: prof itself calls it")
    if top in _ASK_FOR_CALLER:
        raise ValueError(
            f"trace_module() cannot trace {module.__name__}: its functions ask for the one that "
            f"calls them, and would find prof"
        )
    # without the lock: it may import
    values = _public(module) if names is None else {name: getattr(module, name) for name in names}
    with _lock:
        return _replace(module, values, category)


def untrace_module(module: ModuleType) -> None:
    """The module's functions are its own again."""
    with _lock:
        originals = _traced.get(id(module), (module, {}))[1]
        _restore(module, originals, list(originals))
        _traced.pop(id(module), None)
