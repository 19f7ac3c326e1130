"""The ways by which observe() sees torch's operators: the dispatcher's callbacks (_torch_calls.py),
or torch's context manager of ITT. Each can be entered, left, and forgotten if its thread has ended.
prof.torch chooses the way."""

from __future__ import annotations

from typing import Any

from . import _torch_calls


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
    """A context manager of torch's. It is ended only if it has begun, and only once."""

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
