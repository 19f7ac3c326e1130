"""Every Python function of a program as a scope, without a change in its code.

From Python 3.12 on it uses sys.monitoring, before that a profile function. The callbacks are
functions of C (src/python/functions.c). Garbage collections and imports are scopes, too."""

from __future__ import annotations

import _thread
import atexit
import ctypes
import fnmatch
import gc
import os
import sys
from types import BuiltinFunctionType, CodeType, FrameType, MethodDescriptorType
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple, Union

from . import _c_functions, _own_calls, _scope, _torch_compile
from ._library import BUSY, RUNNING, C, error_class, short
from ._own_calls import is_standard, is_support

_monitoring: Any = getattr(sys, "monitoring", None)
_TOOLS = (3, 4, 2)
"""The numbers of sys.monitoring that have no fixed owner, and last the one for profilers: a
program's own cProfile takes it."""
_OWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
_IMPORT, _OWN_CODE, _SILENT, _PROGRAM = "import", "own", "silent", "program"
_find_and_load: Any = getattr(sys.modules.get("_frozen_importlib"), "_find_and_load", None)
_import_code = getattr(_find_and_load, "__code__", None)

_RELATIVE = (os.path.join(os.curdir, ""), os.path.join(os.pardir, ""))

Patterns = Union[None, str, Iterable[str]]


def _listed(patterns: Patterns, what: str) -> Tuple[str, ...]:
    found = (patterns,) if isinstance(patterns, str) else tuple(patterns or ())
    for pattern in found:
        if not isinstance(pattern, str) or not pattern:
            raise TypeError(f"{what} must be names of modules or paths, not {short(pattern)}")
    return tuple(
        os.path.abspath(pattern) if pattern.startswith(_RELATIVE) else pattern for pattern in found
    )


def _fits(patterns: Tuple[str, ...], module: str, file: str) -> bool:
    for pattern in patterns:
        if os.sep in pattern:
            whole = pattern.rstrip(os.sep)
            if fnmatch.fnmatchcase(file, whole) or fnmatch.fnmatchcase(file, f"{whole}{os.sep}*"):
                return True
        elif fnmatch.fnmatchcase(module, pattern) or fnmatch.fnmatchcase(module, f"{pattern}.*"):
            return True
    return False


def _is_of_import(code: CodeType, module: str) -> bool:
    """A module's own code, which an import runs."""
    return code.co_name == "<module>" and module != "__main__"


def _is_own(code: CodeType, module: str) -> bool:
    """prof's; code that was made at run time, by its module."""
    if code.co_filename.startswith("<"):
        return module.startswith(f"{__package__}.")
    return code.co_filename.startswith(_OWN)


class _Filter:
    """Which code is wanted. Asked once for each code object."""

    def __init__(
        self, include: Patterns, exclude: Patterns, standard_library: bool, imports: bool = True
    ) -> None:
        self.include, self.exclude = _listed(include, "include"), _listed(exclude, "exclude")
        self.standard_library, self.imports = bool(standard_library), bool(imports)
        self._wanted: Dict[Tuple[str, str], bool] = {}

    def _wants(self, module: str, file: str) -> bool:
        if file.startswith("<frozen importlib"):
            return False
        if self.exclude and _fits(self.exclude, module, file):
            return False
        if self.include:
            return _fits(self.include, module, file)
        return self.standard_library or not is_standard(module, file)

    def judge(self, frame: FrameType) -> Any:
        """For C, which passes a frame. Returns "import" for an import, and "own" or "silent" for
        code of prof. For code that is left out it returns None (support code) or "program".
        Otherwise it returns the scope's name, function, file, line, and whether the code is support
        code. For nn.Module's call it adds whether it is a function if module_call() returns
        None."""
        code = frame.f_code
        if code is _import_code:
            return _IMPORT if self.imports else None
        module = frame.f_globals.get("__name__")
        if type(module) is not str:
            module = ""
        if module == _torch_compile.MODULE and code.co_name == "<module>":
            _leave_out_of_torch_compile()
        if _is_own(code, module):
            # the module's own code: an import is the program's
            if code.co_name == "<module>" or code in _own_calls.of_program:
                return _PROGRAM
            return _SILENT if code in _own_calls.silent else _OWN_CODE
        file = code.co_filename
        key = module, file
        wanted = self._wanted.get(key)
        if wanted is None:
            wanted = self._wanted[key] = self._wants(module, file)
        if code is _module_code and _modules:
            return *_described(code, module), wanted
        if wanted and (self.imports or not _is_of_import(code, module)):
            return _described(code, module)
        return None if is_support(module, file) else _PROGRAM

    def has_met(self) -> bool:
        """Whether anything that ran was of include; without one, of all."""
        return not self.include or any(self._wanted.values())


def _described(code: CodeType, module: str) -> Tuple[str, str, str, int, bool]:
    name = getattr(code, "co_qualname", code.co_name)  # from 3.11 on
    return (
        name if module in ("", "__main__") else f"{module}.{name}",
        name,
        code.co_filename,
        code.co_firstlineno,
        is_support(module, code.co_filename),
    )


def _judge(frame: FrameType) -> Any:
    """A failure here is left to C. C distinguishes it from what a handler of signals raises
    meanwhile."""
    return _now.filter.judge(frame) if _now is not None else None


def _import_name(frame: FrameType) -> str:
    """For C. "": of prof itself, which is no scope."""
    name = frame.f_locals["name"]
    return "" if name == __package__ or name.startswith(f"{__package__}.") else f"import {name}"


_module_code: Any = None
"""Of torch's nn.Module.__call__, from the first time on that somebody follows it."""
ALL_THREADS = 0
_modules: Dict[int, Tuple[Any, ...]] = {}
"""The observers of modules by thread (_torch_modules.py), by functions or by hooks. The last one
has precedence. A tuple is never empty and never changed: a call on another thread may be reading
it."""

_module_places: Dict[str, int] = {}
"""Of each name, for C, which keeps it from then on: not many, as each observe() counts anew, and to
a bound (_torch_modules.py)."""


def _module_call(frame: FrameType) -> Optional[Tuple[str, int, int, int]]:
    of = who_names_modules()
    call = of.call(frame.f_locals[frame.f_code.co_varnames[0]]) if of is not None else None
    if call is None:
        return None
    name, number, of_kind = call
    return name, _module_places.setdefault(name, len(_module_places)), number, of_kind


def who_names_modules() -> Any:
    """The observer for which a call on this thread is a scope. There is one scope even if there are
    several observers. The order is: an observer of all threads that needs rows, an observer of this
    thread, an observer of all threads for stacks alone. None: modules are not observed."""
    of_all, own = _modules.get(ALL_THREADS), _modules.get(_thread.get_ident())
    if own is not None and (of_all is None or of_all[-1].is_for_stacks):
        return own[-1]
    return of_all[-1] if of_all is not None else None


def follow_modules(code: Optional[CodeType], of: Any) -> None:
    """From now on `of` is one of the observers of modules, on `of.thread`.

    While functions are traced, calls are scopes in the place of that code's own, as
    `of.call(module)` says. Without a `code` they are left to hooks. When functions are no longer
    traced, `of.lose_functions()` is called."""
    global _module_code
    with _stacks:
        others = _modules.get(of.thread, ())
        # one that needs rows has precedence: it stays behind those for stacks alone
        at = next(
            (i for i, other in enumerate(others) if of.is_for_stacks and not other.is_for_stacks),
            len(others),
        )
        _modules[of.thread] = (*others[:at], of, *others[at:])
    if code is not None:
        _module_code = code
        _judge_anew()


def leave_modules(of: Any) -> None:
    """Who was there before names them again. A second time does nothing."""
    with _stacks:
        others = tuple(other for other in _modules.get(of.thread, ()) if other is not of)
        if others:
            _modules[of.thread] = others
        else:
            _modules.pop(of.thread, None)
    _judge_anew()


def _judge_anew() -> None:
    """nn.Module's call: whether anybody follows it has changed."""
    code = _module_code
    if _now is None or code is None:
        return
    was_left_out = _made["forget"](code)
    if was_left_out and _monitoring is not None:
        _monitoring.restart_events()  # its events are disabled


def _is_own_builtin(function: Any) -> bool:
    owner = getattr(function, "__objclass__", type(getattr(function, "__self__", None)))
    return owner is _scope.Scope or any(
        function is one for names in (_scope._names, _made) for one in names.values()
    )


def _describe_builtin(function: Any) -> Optional[Tuple[str, str, str, int]]:
    """For C, of a function of C. None: it is prof's."""
    return None if _is_own_builtin(function) else _c_functions.describe(function)


def _leave_out_of_torch_compile() -> None:
    """What C calls, and what that calls."""
    methods = (_Filter.judge, _Filter._wants, _EveryCall.judge)
    called = (_judge, _import_name, _module_call, _describe_builtin, _described, _fits)
    others = (_is_of_import, _is_own, is_support, is_standard, who_names_modules)
    builtins = (_is_own_builtin, *_c_functions.called)
    _torch_compile.leave_out((*methods, *called, *others, *builtins))


_now: Optional["trace_functions"] = None
_made: Dict[str, Any] = {}


def _make() -> Dict[str, Any]:
    """C's functions. NotImplementedError, RuntimeError."""
    if _made:
        return _made
    if not _scope.is_fast:
        if sys.implementation.name != "cpython":
            raise NotImplementedError(
                f"functions are traced through CPython's interface in C, which "
                f"{sys.implementation.name} has not"
            )
        if not getattr(sys, "_is_gil_enabled", lambda: True)():
            raise NotImplementedError("functions are not traced in a Python without a GIL")
        raise error_class(BUSY)(
            "functions are traced in one interpreter of a process: another one has used prof first"
        )

    class Given(ctypes.Structure):
        """prof_i_python_functions_given of src/python/internal.h."""

        _fields_ = [("size", ctypes.c_size_t)] + [
            (name, ctypes.py_object)
            for name in (
                "names",
                "judge",
                "import_name",
                "module_call",
                "describe_builtin",
                "builtin_type",
                "descriptor_type",
                "import",
                "own",
                "silent",
                "program",
                "disable",
            )
        ]

    why = C.prof_i_python_functions_1(
        ctypes.byref(
            Given(
                ctypes.sizeof(Given),
                _made,
                _judge,
                _import_name,
                _module_call,
                _describe_builtin,
                BuiltinFunctionType,
                MethodDescriptorType,
                _IMPORT,
                _OWN_CODE,
                _SILENT,
                _PROGRAM,
                getattr(_monitoring, "DISABLE", None),
            )
        )
    )
    if why is not None:
        _made.clear()
        raise error_class(BUSY)(f"functions cannot be traced: {why.decode()}")
    return _made


class _Monitoring:
    """sys.monitoring: one tool among several."""

    _claimed: Set[int] = set()
    """Tools that were taken and not given back. The running tracing has one. Another one is left
    over if an interrupt came before any object held it."""

    def __init__(self, made: Dict[str, Any], c_functions: bool) -> None:
        for tool in list(self._claimed):
            self._give_back(tool)
        for tool in _TOOLS:
            if _monitoring.get_tool(tool) is None:
                self._claimed.add(tool)
                _monitoring.use_tool_id(tool, "prof")
                self._tool = tool
                break
        else:
            raise error_class(BUSY)(
                f"functions cannot be traced: sys.monitoring's tools "
                f"{', '.join(f'{tool} ({_monitoring.get_tool(tool)})' for tool in _TOOLS)} are all "
                f"taken"
            )
        events = _monitoring.events
        self._callbacks = {
            events.PY_START: made["on_begin"],
            events.PY_RESUME: made["on_begin"],
            events.PY_THROW: made["on_throw"],
            events.PY_RETURN: made["on_end"],
            events.PY_YIELD: made["on_end"],
            events.PY_UNWIND: made["on_unwind"],
        }
        if c_functions:
            self._callbacks.update(
                {
                    events.CALL: made["on_call"],
                    events.C_RETURN: made["on_c_end"],
                    events.C_RAISE: made["on_c_end"],
                }
            )

    def start(self, made: Dict[str, Any]) -> None:
        made["start"](None, None)
        for event, callback in self._callbacks.items():
            _monitoring.register_callback(self._tool, event, callback)
        _monitoring.set_events(self._tool, sum(self._callbacks))
        # Enables what an earlier filter, or an earlier owner of this tool, has disabled: otherwise
        # such calls would be lost without a message. This is for all tools. The others get each
        # event that they had disabled once more.
        _monitoring.restart_events()

    def stop(self, made: Dict[str, Any]) -> None:
        if _monitoring.get_tool(self._tool) == "prof":
            _monitoring.set_events(self._tool, 0)
            for event in self._callbacks:
                _monitoring.register_callback(self._tool, event, None)
        self._give_back(self._tool)
        made["stop"](None)

    def _give_back(self, tool: int) -> None:
        if tool in self._claimed and _monitoring.get_tool(tool) == "prof":
            _monitoring.free_tool_id(tool)
        self._claimed.discard(tool)


class _Profile:
    """Before 3.12: the one profile function of each thread. threading gives it to those that
    begin."""

    def __init__(self, made: Dict[str, Any], c_functions: bool) -> None:
        import threading

        self._with_c = c_functions or None
        self._threading: Any = threading
        for what, there in (
            ("sys.setprofile()", sys.getprofile()),
            ("threading.setprofile()", threading._profile_hook),
        ):
            if there is not None:
                raise error_class(BUSY)(
                    f"functions cannot be traced: {what} has been called with {short(there)}, and "
                    f"there is one for all"
                )

    def start(self, made: Dict[str, Any]) -> None:
        self._threading.setprofile(made["on_hook"])
        made["start"](True, self._with_c)

    def stop(self, made: Dict[str, Any]) -> None:
        made["stop"](True if sys.getprofile() is made["on_hook"] else None)
        if self._threading._profile_hook is made["on_hook"]:
            self._threading.setprofile(None)


class trace_functions:  # noqa: N801 (a verb, as trace_module)
    """Each Python function that runs between start() and stop(), or inside of ``with``, on any
    thread, is a scope of the category ``python_function``. Something must be recorded meanwhile: a
    profile, say. Steps of generators and coroutines are each one. Imports and garbage collections
    are scopes as well.

    include, exclude: modules, with what is below them ("numpy"), patterns of modules ("*.tests"),
    files and folders (names with a "/"). Without include, all functions but those of the standard
    library are traced.

    standard_library: adds the standard library.

    c_functions: Functions of C that these call are traced, too. They are scopes of the category
    ``c_function``.

    imports: False leaves out imports, and modules' own code that they run.

    prof's own functions and the import system's are never traced. Functions of the standard
    library, of torch and of C are not traced if prof calls them. A function of the program that
    prof calls is traced. One tracing can run at a time. RuntimeError for a second start(), and if
    the place for profilers in this Python is taken. NotImplementedError on PyPy, and without a
    GIL."""

    def __init__(
        self,
        include: Patterns = None,
        exclude: Patterns = None,
        *,
        standard_library: bool = False,
        c_functions: bool = False,
        imports: bool = True,
    ) -> None:
        self.filter = _Filter(include, exclude, standard_library, imports)
        self.c_functions = bool(c_functions)
        self._way: Any = None

    _is_for_stacks = False

    def start(self) -> None:
        global _now
        if _now is not None:
            raise error_class(RUNNING)(
                "functions are traced already"
                + (
                    ", for the stacks of prof.torch.observe(with_stack=True): begin with "
                    "trace_functions(), and it takes those"
                    if _now._is_for_stacks
                    else ""
                )
            )
        made = _make()
        way = (
            _Monitoring(made, self.c_functions)
            if _monitoring is not None
            else _Profile(made, self.c_functions)
        )
        _leave_out_of_torch_compile()
        _now, self._way = self, way
        atexit.register(self.stop)
        try:
            way.start(made)
        except BaseException:  # a signal's handler may raise anywhere
            self.stop()
            raise
        if not self._is_for_stacks:
            gc.callbacks.append(made["on_gc"])
            _scope.functions.begin(self)

    def stop(self) -> None:
        """A second time does nothing."""
        global _now
        if self._way is None:
            return
        # each step may be done twice: an interrupt may come anywhere, and then the next call does
        # what is left
        self._way.stop(_made)
        _scope.functions.end(self)
        if _made["on_gc"] in gc.callbacks:
            gc.callbacks.remove(_made["on_gc"])
        self._way = None
        if _now is self:
            _now = None
        atexit.unregister(self.stop)
        with _stacks:  # who leaves meanwhile has no hooks behind it
            for of in [of for others in _modules.values() for of in others]:
                of.lose_functions()

    def __enter__(self) -> "trace_functions":
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()


_RANGES = ("torch.autograd.profiler", "torch.profiler", "torch._ops")
"""In whose functions ranges of torch's begin, and end in others: they would not nest."""


class _EveryCall(_Filter):
    """Of imports, too, the functions alone."""

    def judge(self, frame: FrameType) -> Any:
        answer = super().judge(frame)
        return None if answer == _IMPORT else answer


class _TraceForStacks(trace_functions):
    """All functions, of C as well, as torch.profiler's stacks have them; no garbage collections."""

    _is_for_stacks = True

    def __init__(self) -> None:
        super().__init__(c_functions=True)
        self.filter = _EveryCall(None, _RANGES, standard_library=True)
        self.users: Set[int] = set()
        """Ids of the users that have begun and not ended."""


def is_traced() -> bool:
    return _now is not None


_stacks = _thread.RLock()
"""Who begins and who ends, on several threads. One that a handler of signals may take again."""


def _fresh_lock() -> None:
    global _stacks
    _stacks = _thread.RLock()


os.register_at_fork(after_in_child=_fresh_lock)  # another thread may have had it


def begin_stacks(user: Any) -> Any:
    """From now on functions are traced, so that operators have stacks. If the program traces
    functions itself, the stacks are of those. The result is for end_stacks(). Raises what
    trace_functions().start() raises."""
    with _stacks:
        if _now is None:
            _TraceForStacks().start()
        tracing = _now if isinstance(_now, _TraceForStacks) else None
        if tracing is not None:
            tracing.users.add(id(user))
        return tracing


def end_stacks(tracing: Any, user: Any) -> None:
    """Who is the last ends it. A second time does nothing."""
    with _stacks:
        tracing.users.discard(id(user))
        if not tracing.users:
            tracing.stop()


__all__ = ["trace_functions"]


def __dir__() -> List[str]:
    return list(__all__)
