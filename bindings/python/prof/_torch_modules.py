"""prof.torch.observe(with_modules=True): each call of an nn.Module is a scope, named and numbered
as in torch.profiler. TensorBoard's plug-in draws its module view by these names and numbers.

If functions are traced, the scope is in the place of nn.Module's own function, as in
torch.profiler's stacks (functions.py). Otherwise torch's own hooks for all modules of the process
see the calls. With such hooks torch calls modules by another way."""

from __future__ import annotations

import itertools
import threading
import weakref
from importlib import import_module
from typing import Any, Dict, List, Optional, Tuple

from . import _torch_compile
from ._library import C
from ._read_events import MODULE
from ._scope import modules, scope
from .functions import ALL_THREADS, follow_modules, is_traced, leave_modules, who_names_modules

CATEGORY = "python_function"
GONE_MAX = 4096
"""Modules of one class that had a number and are gone. A program may make one for each step, and a
name stays with the process: those that come later have the class's name alone."""


class _Own(threading.local):
    """Of each thread."""

    def __init__(self) -> None:
        self.calls: List[Tuple[Any, int, Any]] = []
        """Under way: the module, the number of the call, its scope (None while nobody records)."""


class Modules:
    """Of the thread that makes it, or of all, as all of observe(). From follow() to remove()."""

    def __init__(self, torch: Any, is_for_all: bool = False, is_for_stacks: bool = False) -> None:
        """is_for_stacks: frames of stacks alone, so nothing where functions are not traced."""
        self.is_for_stacks = is_for_stacks
        self._is_compiling = (
            import_module("torch.compiler").is_compiling
            if hasattr(torch, "compiler") and hasattr(torch.compiler, "is_compiling")
            else lambda: False
        )
        # by id, with a reference that tells whether it is the same: modules may compare and hash as
        # they like, or not at all
        self._names: Dict[int, Tuple[Any, str, int]] = {}
        self._counts: Dict[str, Any] = {}
        self._gone: Dict[str, int] = {}
        self._numbers = itertools.count(1)
        self._own = _Own()
        self.thread = ALL_THREADS if is_for_all else threading.get_ident()
        self._version = torch.__version__
        self._hooks: List[Any] = []
        self._is_by_hooks = False

    def follow(self) -> None:
        """Before functions are traced, if they are to be: what runs then begins with that.
        RuntimeError where torch has no such hooks."""
        self._add_hooks()
        self._remove_hooks()
        code = self._code_of_calls()
        self._is_by_hooks = code is None
        _torch_compile.leave_out((Modules.call, Modules._name_of, Modules._forget))
        follow_modules(code, self)

    def _code_of_calls(self) -> Any:
        """None where the program has put something of its own there, or where stacks do without."""
        try:
            return getattr(import_module("torch.nn").Module.__call__, "__code__", None)
        except (ImportError, AttributeError):
            if self.is_for_stacks:
                return None
            raise

    def start(self) -> None:
        if not self.is_for_stacks:
            modules.begin(self)
        if self._is_by_hooks or not is_traced():
            self.lose_functions()

    def lose_functions(self) -> None:
        """Functions are not traced, or no longer: from now on hooks see the modules."""
        self._is_by_hooks = True
        if self.is_for_stacks:
            leave_modules(self)
        self._add_hooks()

    def _add_hooks(self) -> None:
        if self._hooks or self.is_for_stacks:
            return
        hooks = import_module("torch.nn.modules.module")
        try:
            # also behind an exception
            after = hooks.register_module_forward_hook(self._end, always_call=True)
        except (AttributeError, TypeError):
            raise RuntimeError(
                f"prof: torch {self._version} has no hooks for all modules that are called behind "
                f"an exception, too, by which observe() has modules: they are there from 2.1 on"
            ) from None
        self._hooks = [after]
        self._hooks.append(hooks.register_module_forward_pre_hook(self._begin))

    def remove(self) -> None:
        leave_modules(self)
        self._remove_hooks()
        self._end_down_to(0)
        modules.end(self)

    def _remove_hooks(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def call(self, module: Any) -> Optional[Tuple[str, int, int]]:
        """For functions.py: what it is called, its number, and which of its class it is. None:
        hooks see it."""
        if self._is_by_hooks:
            return None
        name, of_kind = self._name_of(module)
        return name, next(self._numbers), of_kind

    def _name_of(self, module: Any) -> Tuple[str, int]:
        key = id(module)
        found = self._names.get(key)
        # as torch.profiler counts: those of a class in the order in which they are first called
        if found is None or found[0]() is not module:
            kind = type(module).__name__
            number = next(self._counts.setdefault(kind, itertools.count()))
            name = (
                f"{MODULE}{kind}_{number}"
                if self._gone.get(kind, 0) < GONE_MAX
                else f"{MODULE}{kind}"
            )
            found = self._names[key] = (
                weakref.ref(module, lambda _: self._forget(key, kind)),
                name,
                number,
            )
        return found[1:]

    def _forget(self, key: int, kind: str) -> None:
        self._names.pop(key, None)
        self._gone[kind] = self._gone.get(kind, 0) + 1

    def _begin(self, module: Any, args: Any) -> None:
        # torch.compile() takes the first for a constant, and the hook is no part of what it makes
        if self._is_compiling() or who_names_modules() is not self:
            return
        calls, opened = self._own.calls, None
        number = next(self._numbers)
        if C.prof_level() > 0:
            name, of_kind = self._name_of(module)
            opened = scope(
                name,
                CATEGORY,
                1,
                **{
                    "Python id": number,
                    "Python parent id": calls[-1][1] if calls else 0,
                    "Python module id": of_kind,
                },
            )
            opened.__enter__()
        calls.append((module, number, opened))

    def _end(self, module: Any, args: Any, result: Any) -> None:
        if self._is_compiling() or self.thread not in (ALL_THREADS, threading.get_ident()):
            return
        calls = self._own.calls
        for depth in range(len(calls) - 1, -1, -1):
            if calls[depth][0] is module:
                self._end_down_to(depth)
                return

    def _end_down_to(self, depth: int) -> None:
        """torch runs no hook behind a KeyboardInterrupt: such calls end with the one around them,
        or with observe()."""
        calls = self._own.calls
        while len(calls) > depth:
            opened: Optional[Any] = calls.pop()[2]
            if opened is not None:
                opened.__exit__(None, None, None)
