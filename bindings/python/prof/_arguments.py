"""Checks the arguments of profile(), which takes those of torch.profiler. A refused argument is an
error with the value, its type, and the allowed values."""

from __future__ import annotations

from typing import Any, Callable, Optional

from ._library import short


def _wrong(name: str, value: Any, right: str) -> TypeError:
    return TypeError(f"{name} must be {right}, not {short(value)} of {type(value).__name__}")


def flag(name: str, value: Any) -> bool:
    """A bool, None, or what has __bool__: numbers, numpy's bools."""
    if value is None or hasattr(type(value), "__bool__"):
        return bool(value)
    raise _wrong(name, value, "True or False")


def callback(name: str, value: Any) -> Optional[Callable[..., Any]]:
    """The callable, or None for a false value."""
    if callable(value):
        return value  # type: ignore[no-any-return]
    if not value:
        return None
    raise _wrong(name, value, "something to call, or None")


def timeout(value: Any) -> Any:
    """ValueError below 0, too."""
    if value is None:
        return None
    try:
        is_right = bool(value >= 0)
    except TypeError:
        raise _wrong("post_processing_timeout_s", value, "a number of seconds, or None") from None
    if not is_right:
        raise ValueError(f"post_processing_timeout_s must be non-negative, not {short(value)}")
    return value


def experimental_config(value: Any) -> Any:
    """torch's, a dictionary, or an object with attributes."""
    is_plain = type(value).__module__ == "builtins" and type(value) not in (dict, object)
    if value is None or not is_plain:
        return value
    right = "torch._C._profiler._ExperimentalConfig, a dictionary of its options, or None"
    raise _wrong("experimental_config", value, right)


def observer(value: Any) -> Any:
    """What has the methods that torch.profiler calls."""
    if not value:
        return None
    if all(callable(getattr(value, name, None)) for name in ("start", "stop", "cleanup")):
        return value
    right = "torch.profiler.ExecutionTraceObserver, or have its start(), stop() and cleanup()"
    raise _wrong("execution_trace_observer", value, right)
