"""Ranges that torch makes only for its own profilers, while operators are observed.

PyTorch reports the ranges of torch._C._profiler._RecordFunctionFast to no callback, so another
class takes its place meanwhile. The variable torch.autograd.profiler._is_profiler_enabled says that
ranges are worth making. PyTorch, code that it has compiled, and libraries read it."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _range_inputs, _torch_compile, _torch_found
from ._library import short
from ._read_arguments import TEXT_LIST
from ._scope import scope

_NAME = "_RecordFunctionFast"
_USER_SCOPE = ("scope", "user_scope")
"""The keyword by which torch tells a range of the program's from an operator."""
_TAKEN_WORDS = ("category", "level", "_shapes")
"""Parameters of scope()'s."""

Asked = Callable[[], Optional[bool]]
"""Of the thread that calls it: do ranges have the shapes of their inputs? None: there are none."""


def _value(value: Any) -> Any:
    """As torch takes it: a number, a text, a truth value, or the JSON of a list of texts. A mark
    behind the list's bracket distinguishes it from a text of the program. None: it is left out."""
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return json.dumps(value).replace("[", TEXT_LIST, 1)
    return None


def _kept(keywords: Dict[str, Any]) -> Dict[str, Any]:
    found = {}
    for key, value in keywords.items():
        kept = _value(value)
        if kept is not None:
            found[f"{key}#" if key in _TAKEN_WORDS else str(key)] = kept
    return found


class _Now:
    """Of the process, from the first observe() on."""

    theirs: Any = None
    is_theirs_on: Any = None
    asked: Any = None


_now = _Now()


class _Range:
    """_RecordFunctionFast's face. A wrong argument is a TypeError, where torch ends the process."""

    __slots__ = ("_given", "_keywords", "_name", "_open", "_values")

    def __init__(self, name: str, input_values: Any = (), keyword_values: Any = None) -> None:
        self._open: List[Any] = []
        if not isinstance(name, str):
            raise TypeError(f"{_NAME}() name must be a str, not {short(name)}")
        if not isinstance(input_values, (list, tuple)):
            raise TypeError(
                f"{_NAME}() input_values must be a list or tuple, not {short(input_values)}"
            )
        if keyword_values is not None and not isinstance(keyword_values, dict):
            raise TypeError(f"{_NAME}() keyword_values must be a dict, not {short(keyword_values)}")
        self._name, self._values, self._keywords = name, input_values, keyword_values or {}
        self._given: Tuple[Any, ...] = (name, input_values, self._keywords)

    def __enter__(self) -> None:
        """If a profiler of torch's is on, this makes torch's own range, which torch reports to
        prof."""
        one = _now.theirs(*self._given) if _now.is_theirs_on() else self._made()
        if one is not None:
            one.__enter__()
        self._open.append(one)

    def __exit__(self, *error: Any) -> None:
        one = self._open.pop() if self._open else None
        if one is not None:
            one.__exit__(None, None, None)

    def __del__(self) -> None:
        """Torch's range ends with its object."""
        while getattr(self, "_open", None):  # not there where __init__() was called wrongly
            self.__exit__()

    def _made(self) -> Any:
        with_shapes = _now.asked()
        if with_shapes is None:
            return None
        if not with_shapes:  # as torch, which does not look at the keywords then
            return scope(self._name, "cpu_op", 1)
        key, word = _USER_SCOPE
        category = "user_annotation" if self._keywords.get(key) == word else "cpu_op"
        keywords = _kept(self._keywords)
        shapes, texts = _range_inputs.of(self._values, len(keywords))
        more: Dict[str, Any] = {**texts, **keywords}
        if shapes:
            more["_shapes"] = shapes
        return scope(self._name, category, 1, **more)


def _place(torch: Any) -> Any:
    """An old torch has none."""
    return getattr(getattr(torch, "_C", None), "_profiler", None)


class Ranges:
    """Of the process: on as long as somebody is."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._on: Dict[int, Any] = {}
        """Who is on, by id."""

    def begin(self, torch: Any, who: Any) -> None:
        self._on[id(who)] = who
        theirs = getattr(_place(torch), _NAME, None)
        if theirs is not None and theirs is not _Range:
            _now.theirs, _now.asked = theirs, self._asked
            _now.is_theirs_on = partial(_torch_found.is_profiler_on, torch)
            setattr(torch._C._profiler, _NAME, _Range)
            _torch_compile.leave_out((_Range.__del__, _Range.__exit__))
        self._say(torch, True)

    def end(self, torch: Any, who: Any) -> None:
        """Also where it has not begun, or has ended."""
        if self._on.pop(id(who), None) is None or self._on:
            return
        if getattr(_place(torch), _NAME, None) is _Range:  # else somebody else's by now
            setattr(torch._C._profiler, _NAME, _now.theirs)
        self._say(torch, _torch_found.is_profiler_on(torch))

    @staticmethod
    def _say(torch: Any, is_on: bool) -> None:
        """Torch before 2.1 has no such variable."""
        profiler: Any = getattr(getattr(torch, "autograd", None), "profiler", None)
        if hasattr(profiler, "_is_profiler_enabled"):
            profiler._is_profiler_enabled = is_on
