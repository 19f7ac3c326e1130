"""Values that a range of PyTorch's was given, in the form in which torch records the inputs of its
operators. They are dimensions and types of tensors, and texts of numbers, strides and lists of
tensors. _inputs.py reads the texts."""

from __future__ import annotations

import json
import sys
from typing import Any, Dict, List, Sequence, Tuple

from . import _inputs
from .modules import dtype_and_dims

_PLAIN = (bool, int, float, complex, str)
_NO_TENSOR = (0,)
_LIST_MAX = 30
"""Longer lists of numbers have no text, as torch.profiler's."""
_ARGS_MAX, _TEXTS, _TEXTS_OF_ALL = 16, 3, 4
"""Arguments of a record, as inject/torch/calls.c has them. If the inputs do not fit, texts have
all of them, and the first ones are arguments."""
_INPUTS_MAX = 64
"""As torch's operators have them."""


def _torch() -> Any:
    return sys.modules["torch"]


def _is_tensor(value: Any) -> bool:
    return isinstance(value, _torch().Tensor)


def _kind(value: Any) -> Any:
    """Equal of values of one type. None: torch infers no type of it, and leaves the value out."""
    if value is None:
        return "none"
    if type(value) in _PLAIN:
        return type(value)
    if _is_tensor(value):
        return "tensor"
    if isinstance(value, (_torch().dtype, _torch().device)):
        return type(value)
    if type(value) is tuple:
        kinds = tuple(map(_kind, value))
        return None if None in kinds else kinds
    if type(value) is list:
        found = {_kind(item) for item in value}
        named = found - {"none"} or found
        return ("list", *named, len(found)) if len(named) == 1 and None not in found else None
    if type(value) is dict and value:
        return "dict"
    return None


def _number(value: Any) -> str:
    """A number as torch writes it. "" for any other value."""
    kind = type(value)
    if kind is bool or kind is int:
        return str(value)
    if kind is float:
        is_whole = abs(value) < 2.0**63 and int(value) == value
        return f"{value:.0f}." if is_whole else f"{value:.17g}"
    if kind is complex:
        real, imaginary = _number(value.real), _number(value.imag)
        return f"{real}{'' if imaginary.startswith('-') else '+'}{imaginary}j"
    return ""


def _text(value: Any) -> str:
    if type(value) is list:
        numbers = [_number(item) for item in value]
        is_short = len(value) <= _LIST_MAX
        return f"[{', '.join(numbers)}]" if numbers and all(numbers) and is_short else ""
    return _number(value)


def _strides_of(value: Any) -> List[int]:
    """Other classes than torch's own would be asked in Python."""
    torch = _torch()
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout != torch.strided:
        return []
    strides = value.stride()
    return list(strides) if all(type(n) is int for n in strides) else []


def _dims_of(value: Any) -> List[int]:
    dims = dtype_and_dims(value)[1:] if _is_tensor(value) else ()
    return list(dims) if all(type(n) is int for n in dims) else []


def _is_tensors(value: Any) -> bool:
    return type(value) is list and bool(value) and all(map(_is_tensor, value))


def _json(values: Sequence[Any]) -> str:
    return json.dumps(values, separators=(",", ":"))


def of(values: Sequence[Any], keywords: int = 0) -> Tuple[List[Tuple[int, ...]], Dict[str, str]]:
    """The shapes that scope() takes, and the texts as arguments behind them, in the order in which
    the reader wants them. keywords: how many arguments the record has beside these."""
    taken = [value for value in values if _kind(value) is not None][:_INPUTS_MAX]
    shapes = [dtype_and_dims(value) if _is_tensor(value) else _NO_TENSOR for value in taken]
    texts: Dict[str, str] = {}
    if not taken:
        return shapes, texts
    is_long = len(taken) > _ARGS_MAX - _TEXTS - keywords
    if is_long or any(map(_is_tensors, taken)):
        texts[_inputs.LISTS_KEY] = _json([_of_each(_dims_of, value) for value in taken])
    if is_long:
        texts[_inputs.TYPES_KEY] = _json([shape[0] for shape in shapes])
        del shapes[max(1, _ARGS_MAX - _TEXTS_OF_ALL - keywords) :]
    texts[_inputs.CONCRETE_KEY] = _json([_text(value) for value in taken])
    texts[_inputs.STRIDES_KEY] = _json([_of_each(_strides_of, value) for value in taken])
    return shapes, texts


def _of_each(of_tensor: Any, value: Any) -> List[Any]:
    return [of_tensor(tensor) for tensor in value] if _is_tensors(value) else of_tensor(value)
