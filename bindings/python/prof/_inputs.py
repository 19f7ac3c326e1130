"""What an operator's inputs are beside their shapes: the texts of its record as Python's values."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Tuple

CONCRETE_KEY, STRIDES_KEY, LISTS_KEY = "Concrete Inputs", "Input Strides", "Tensor lists"
"""Of src/preload/torch/calls.c, and of torch.profiler's JSON."""

Texts = Tuple[str, str, str]
"""Values, strides, and dimensions where an input is a list of tensors."""
NO_TEXTS: Texts = "", "", ""
_DTYPES = {
    0x0008: "signed char",
    0x0010: "short int",
    0x0020: "int",
    0x0040: "long int",
    0x0108: "unsigned char",
    0x0110: "short unsigned int",
    0x0120: "unsigned int",
    0x0140: "long unsigned int",
    0x0210: "c10::Half",
    0x0220: "float",
    0x0240: "double",
    0x0410: "c10::BFloat16",
    0x0540: "c10::complex<float>",
    0x0580: "c10::complex<double>",
    0x0608: "bool",
}
"""By prof_dtype of <prof/args.h>, as src/export/value.c spells them."""
_WORDS = {"": None, "True": True, "False": False}


def take(args: Dict[str, Any]) -> Texts:
    """The texts, which then are no arguments. What is no list of JSON's stays one."""
    lists = str(args.pop(LISTS_KEY, ""))
    if CONCRETE_KEY not in args and STRIDES_KEY not in args:
        return "", "", lists
    found = []
    for key in (CONCRETE_KEY, STRIDES_KEY):
        text = args.get(key)
        is_list = isinstance(text, str) and text.startswith("[") and text.endswith("]")
        found.append(args.pop(key) if is_list else "")
    return found[0], found[1], lists


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


def shapes(plain: List[Any], texts: Texts) -> List[Any]:
    """Dimensions of each input; of a list of tensors those of each tensor. plain: without these."""
    nested = _list(texts[2])
    return nested if nested and len(nested) == len(plain) else plain


def dtypes(codes: List[int], texts: Texts) -> List[str]:
    """A word for each input, as torch.profiler has them, and the JSON as "Input type"."""
    values, lists = _list(texts[0]), _list(texts[2])
    found = []
    for place, code in enumerate(codes):
        value = values[place] if place < len(values) else ""
        word = _DTYPES.get(code, "")
        if len(lists) == len(codes) and any(isinstance(dims, list) for dims in lists[place]):
            word = "TensorList"
        elif not code and value:
            word = "ScalarList" if str(value).startswith("[") else "Scalar"
        found.append(word)
    return found
