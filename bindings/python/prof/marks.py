"""Values on a graph, and moments: PROF_COUNTER() and PROF_INSTANT() for Python. C makes them
(src/python/instants.c) if this interpreter allows it. What stands here does the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Tuple

from . import _scope, _slow
from . import _structs as s
from ._library import C, short
from ._own_calls import OwnCall

NAMES_MOST = 4096
"""Counters of a process that have a graph each. A name stays with the process."""
OTHERS = "<other counters>"
NUL_TERMINATED = 0xFFFFFFFF  # PROF_NUL_TERMINATED
_HOST = s.Device(1, 0)

_level = C.prof_level
_kept: Dict[str, Tuple[s.Site, bytes]] = {}
"""By name: the call site that C writes to, and the text that the site keeps."""
_instants = s.Site(file=b"", function=b"prof.instant", level=1)


def _string(value: Any, function: str, parameter: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{function}() {parameter} must be a str, not {short(value)}")


def _number(value: Any) -> float:
    if isinstance(value, (str, bytes, bytearray)):  # float() would read them
        raise TypeError(f"counter() value must be a number, not {short(value)}")
    try:
        with OwnCall(value, "__float__"):
            return float(value)
    except TypeError:
        raise TypeError(f"counter() value must be a number, not {short(value)}") from None


def _keep(name: str) -> Tuple[s.Site, bytes]:
    if len(_kept) >= NAMES_MOST and name != OTHERS:
        return _kept.get(OTHERS) or _keep(OTHERS)
    site = s.Site(file=b"", function=b"prof.counter", level=1)
    return _kept.setdefault(name, (site, _slow._name(name)))


def counter(name: str, value: float, /) -> None:
    """Records a value that a graph of that name has from now on.

    `name` is the graph's: a text of the program, not one made for each call. A process has 4096
    graphs, and what comes later is on the graph "<other counters>". A name is cut at 8000 bytes.
    `value` is a number in any unit. Chrome's JSON leaves out NaN and infinities, and counts them.
    While nothing is recorded at level 1, `value` is not looked at: a tensor on a device is not
    waited for. TypeError, OverflowError for an int that no float can hold, and what float(value)
    raises. Any thread."""
    _string(name, "counter", "name")
    if not _level():
        return
    number = _number(value)
    site, text = _kept.get(name) or _keep(name)
    C.prof_i_counter_1(site, text, number)


def _fill(args: Dict[str, Any]) -> _slow._Filled:
    """The arguments as C takes them. An instant that comes from an argument's own __str__() has
    none, or there would be no end."""
    filled = _slow._Filled()
    if getattr(_slow._here, "is_making_text", False):
        return filled
    _slow._here.is_making_text = True
    try:
        for key, value in args.items():
            filled.pair(key, value)
    finally:
        _slow._here.is_making_text = False
    return filled


def instant(name: str, /, category: str = "instant", **args: Any) -> None:
    """Records a moment: something happened now, on this thread.

    `args` are recorded as those of scope(): numbers and bools as they are, all else as text, at
    most 16. Name, category and arguments have 16 KiB together, and what is beyond is cut, flagged
    and counted. While nothing is recorded at level 1, no argument is looked at. TypeError. What an
    argument's __str__() raises is left out, as by scope(). Any thread."""
    _string(name, "instant", "name")
    _string(category, "instant", "category")
    if not _level():
        return
    filled = _fill(args)
    details = s.Details(_slow._name(name), _slow._name(category), NUL_TERMINATED, NUL_TERMINATED)
    details.device = _HOST
    details.args = filled.args(_slow.PAIRS)
    C.prof_i_instant_1(_instants, details)


_counter_slowly, _instant_slowly = counter, instant
if not TYPE_CHECKING:
    counter = _scope._names.get("counter", counter)
    instant = _scope._names.get("instant", instant)

__all__ = ["counter", "instant"]


def __dir__() -> List[str]:
    return list(__all__)
