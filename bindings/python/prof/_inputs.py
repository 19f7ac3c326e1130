"""What an operator's inputs are beside their shapes: the texts of its record as Python's values."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Tuple

CONCRETE_KEY, STRIDES_KEY = "Concrete Inputs", "Input Strides"
LISTS_KEY, TYPES_KEY = "Tensor lists", "Tensor types"
"""Of inject/torch/calls.c, and of torch.profiler's JSON."""

Texts = Tuple[str, str, str, str]
"""Values, strides, and dimensions where an input is a list of tensors. Where a record has not room
for all inputs, the dimensions and types of all."""
NO_TEXTS: Texts = "", "", "", ""
_TENSORS = 0x3000
"""PROF_I_DTYPE_TENSORS of src/export/dtype_names.h."""
_DTYPES = {
    _TENSORS: "TensorList",
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
    0x0520: "c10::complex<c10::Half>",
    0x0A08: "c10::Float8_e4m3fn",
    0x0B08: "c10::Float8_e4m3fnuz",
    0x0C08: "c10::Float8_e5m2",
    0x0D08: "c10::Float8_e5m2fnuz",
    0x0E08: "c10::Float8_e8m0fnu",
    0x1108: "c10::Float4_e2m1fn_x2",
    0x2008: "c10::qint8",
    0x2020: "c10::qint32",
    0x2108: "c10::quint8",
    0x2104: "c10::quint4x2",
    0x2102: "c10::quint2x4",
    0x2201: "c10::bits1x8",
    0x2202: "c10::bits2x4",
    0x2204: "c10::bits4x2",
    0x2208: "c10::bits8",
    0x2210: "c10::bits16",
    **{bits: f"c10::dummy_int1_7_t<{bits}>" for bits in range(1, 8)},
    **{0x0100 | bits: f"c10::dummy_uint1_7_t<{bits}>" for bits in range(1, 8)},
}
"""By prof_dtype of <prof/args.h>, as src/export/dtype_names.h spells them."""
_WORDS = {"": None, "True": True, "False": False}


def take(args: Dict[str, Any]) -> Texts:
    """The texts, which then are no arguments. What is no list of JSON's stays one."""
    lists, types = str(args.pop(LISTS_KEY, "")), str(args.pop(TYPES_KEY, ""))
    if CONCRETE_KEY not in args and STRIDES_KEY not in args:
        return "", "", lists, types
    found = []
    for key in (CONCRETE_KEY, STRIDES_KEY):
        text = args.get(key)
        is_list = isinstance(text, str) and text.startswith("[") and text.endswith("]")
        found.append(args.pop(key) if is_list else "")
    return found[0], found[1], lists, types


def _scalar(text: str) -> Any:
    """A number as torch writes it, such as "1." or "nan". Any other text stays a text."""
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


def _is_nested(dims: Any) -> bool:
    """It is a list of tensors."""
    return isinstance(dims, list) and any(isinstance(dim, list) for dim in dims)


def tensors(plain: List[Any], texts: Texts) -> List[Any]:
    """Dimensions and prof_dtype of each input; a list of tensors has none. plain: those that the
    record had room for."""
    nested, codes = _list(texts[2]), _list(texts[3])
    if len(codes) < len(plain) or len(nested) != len(codes):
        return plain
    rest = zip(nested[len(plain) :], codes[len(plain) :])
    return plain + [(() if _is_nested(dims) else tuple(dims), code) for dims, code in rest]


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
        if len(lists) == len(codes) and _is_nested(lists[place]):
            word = "TensorList"
        elif not code and value:
            word = "ScalarList" if str(value).startswith("[") else "Scalar"
        found.append(word)
    return found
