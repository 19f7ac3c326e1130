"""The ways by which observe() sees torch's operators: the dispatcher's callbacks (_torch_calls.py),
one of torch's context managers, or a TorchDispatchMode. Each can be entered, left, and forgotten if
its thread has ended. prof.torch chooses the way."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from . import _torch_calls
from ._library import C
from ._own_calls import calls_program
from ._scope import scope
from .modules import shapes_of

CATEGORY = "cpu_op"


class ByCalls:
    """The dispatcher's callbacks of this thread, or of all, as a context manager."""

    def __init__(self, calls: _torch_calls.Calls, with_shapes: bool, who: int) -> None:
        self._calls, self._with_shapes, self._who, self._added = (
            calls,
            with_shapes,
            who,
            _torch_calls.Added(),
        )

    def __enter__(self) -> None:
        self._calls.add(self._added, self._with_shapes, self._who)

    def __exit__(self, *error: Any) -> None:
        """A second time does nothing."""
        self._calls.remove(self._added)

    @property
    def number(self) -> int:
        """The number that its operators have in their sites (src/format/layout.h)."""
        return self._added.number

    def forget(self) -> None:
        """Of a thread that has ended, which has taken what is torch's with it."""
        self._calls.remove(self._added, True)


class Once:
    """One of torch's own ways. It is ended only if it has begun, and only once."""

    def __init__(self, way: Any) -> None:
        self._way, self._entered = way, None

    def __enter__(self) -> None:
        self._way.__enter__()
        self._entered = self._way

    def __exit__(self, *error: Any) -> None:
        way, self._entered = self._entered, None
        if way is not None:
            way.__exit__(None, None, None)

    def forget(self) -> None:
        """Of a thread that has ended, which has taken what is torch's with it."""
        self._entered = None


def dispatch_mode(torch: Any) -> Any:
    """A mode of torch's, which is shown each call with its arguments, when autograd is done with
    it. What it calls in turn it does not see."""
    try:
        base = import_module("torch.utils._python_dispatch").TorchDispatchMode
    except (ImportError, AttributeError):
        raise RuntimeError(
            f"prof: torch {torch.__version__} has no TorchDispatchMode, by which observe() has "
            f"shapes: it is there from 1.13 on"
        ) from None

    class Operators(base):  # type: ignore[misc,valid-type]
        @calls_program
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if not C.prof_level():
                return func(*args, **(kwargs or {}))
            with scope(func._schema.name, CATEGORY, 1, _shapes=shapes_of(args)):
                return func(*args, **(kwargs or {}))

    return Operators()
