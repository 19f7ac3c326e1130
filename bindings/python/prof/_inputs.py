"""What an operator's inputs are beside their shapes: the texts of its record as Python's values."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Tuple

CONCRETE_KEY, STRIDES_KEY, LISTS_KEY = "Concrete Inputs", "Input Strides", "Tensor lists"
"""Of src/preload/torch/calls.c, and of torch.profiler's JSON."""

Texts = Tuple[str, str]
NO_TEXTS: Texts = "", ""
_WORDS = {"": None, "True": True, "False": False}


def take(args: Dict[str, Any]) -> Texts:
    """Both texts, which then are no arguments. What is no list of JSON's stays one."""
    args.pop(LISTS_KEY, None)
    if CONCRETE_KEY not in args and STRIDES_KEY not in args:
        return NO_TEXTS
    found = []
    for key in (CONCRETE_KEY, STRIDES_KEY):
        text = args.get(key)
        is_list = isinstance(text, str) and text.startswith("[") and text.endswith("]")
        found.append(args.pop(key) if is_list else "")
    return found[0], found[1]


def _scalar(text: str) -> Any:
    """A number as torch writes it, "1." or "nan"; of what is none its text."""
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float, complex):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _value(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    if not (text.startswith("[") and text.endswith("]")):
        return _scalar(text)
    return [_scalar(item.strip()) for item in text[1:-1].split(",")] if text != "[]" else []


def _list(text: str) -> List[Any]:
    try:
        return list(json.loads(text)) if text else []
    except (ValueError, TypeError):
        return []


def concrete(texts: Texts) -> List[Any]:
    """A value for each input, as torch.profiler's concrete_inputs; None for a tensor."""
    return [_value(text) for text in _list(texts[0])]


def strides(texts: Texts) -> List[Any]:
    """A list for each input."""
    return _list(texts[1])
