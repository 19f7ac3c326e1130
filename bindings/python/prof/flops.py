"""How many floating point operations a call takes, if its name and its inputs say so. Of torch's
operators these are the ones that torch.profiler's with_flops counts, by its formulas. Names of
numpy's have similar formulas."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence

if TYPE_CHECKING:
    from .trace import Row

Shapes = Sequence[Sequence[int]]


def _product(numbers: Sequence[int]) -> int:
    result = 1
    for n in numbers:
        result *= n
    return result


def _matmul(shapes: Shapes) -> int:
    """Of any ranks, with the leading dimensions broadcast: 2 * m * n * k for each pair of
    matrices."""
    if len(shapes) < 2 or not shapes[0] or not shapes[1]:
        return 0
    a, b = list(shapes[0]), list(shapes[1])
    m = a[-2] if len(a) > 1 else 1
    n = b[-1] if len(b) > 1 else 1
    k = a[-1]
    if k != (b[-2] if len(b) > 1 else b[0]):
        return 0
    batch = 1
    for i in range(1, max(len(a), len(b)) - 1):
        x = a[-2 - i] if len(a) > 1 + i else 1
        y = b[-2 - i] if len(b) > 1 + i else 1
        batch *= max(x, y)
    return 2 * batch * m * n * k


def _addmm(shapes: Shapes) -> int:
    return _matmul(shapes[1:])


def _elementwise(shapes: Shapes) -> int:
    return max((_product(s) for s in shapes), default=0)


_FORMULAS: Dict[str, Callable[[Shapes], int]] = {
    "mm": _matmul,
    "bmm": _matmul,
    "matmul": _matmul,
    "dot": _matmul,
    "addmm": _addmm,
    "baddbmm": _addmm,
    "linear": lambda s: _matmul([s[0], list(reversed(s[1]))]) if len(s) > 1 else 0,
    "dense": _matmul,
    "add": _elementwise,
    "multiply": _elementwise,
    "mul": _elementwise,
}


# ---- torch's own operators, as torch/csrc/profiler/util.cpp counts them

_ATEN, CONVOLUTION = "aten::", "aten::conv2d"
_UNCOUNTED = "prims::"
"""What aten's operators are made of, in torch.compile()'s world."""
_STRIDE, _PADDING, _DILATION, _GROUPS = 3, 4, 5, 6
"""Places of conv2d()'s inputs."""


def _torch_product(a: Sequence[int], b: Sequence[int], batched: bool) -> int:
    """2 * m * n * k, of as many pairs as a batch has."""
    if not a or a[-1] == 0 or (batched and a[0] == 0):
        return 0
    return 2 * (_product(a) // a[-1] // (a[0] if batched else 1)) * _product(b)


_COUNTED: Dict[str, Callable[[Shapes], int]] = {
    "mm": lambda s: _torch_product(s[0], s[1], False),
    "addmm": lambda s: _torch_product(s[1], s[2], False),
    "bmm": lambda s: _torch_product(s[0], s[1], True),
    "baddbmm": lambda s: _torch_product(s[1], s[2], True),
    "add": lambda s: _product(s[0]),
    "mul": lambda s: _product(s[0]),
}
"""aten::linear and aten::matmul call one of these."""


def _pair(text: str) -> Sequence[int]:
    """Of "[1, 2]". ValueError: it is no pair of numbers."""
    found = json.loads(text) if text else None
    if not isinstance(found, list) or [type(n) for n in found] != [int, int]:
        raise ValueError("no pair")
    return found


def _convolution(shapes: Shapes, inputs: Sequence[str]) -> int:
    """Of padding by its name ("same") torch counts none, and neither of an image without a
    batch."""
    image, weight = shapes[0], shapes[1]
    if len(image) != 4 or len(weight) != 4:
        return 0
    stride, padding, dilation = (_pair(inputs[i]) for i in (_STRIDE, _PADDING, _DILATION))
    groups = int(inputs[_GROUPS])
    if groups == 0 or 0 in stride:
        return 0
    size = 1
    for i in range(2):
        reach = image[2 + i] + 2 * padding[i] - dilation[i] * (weight[2 + i] - 1) - 1
        if reach < 0:  # the call fails
            return 0
        size *= reach // stride[i] + 1
    return 2 * image[0] * size * weight[2] * weight[3] * image[1] * weight[0] // groups


# ---- what a row, or a call, has


def parsed(shapes: str) -> List[List[int]]:
    """As a row of C's has them, "[[2, 3], [3, 4]]". [] for what is no such text."""
    try:
        return [list(s) for s in json.loads(shapes)] if shapes else []
    except (ValueError, TypeError):
        return []


def shapes_of(text: str) -> str:
    """What PROF_GROUP_SHAPE would have said in the place of PROF_GROUP_FLOPS."""
    shapes = text.split("\n", 1)[0]
    return f"[[]{shapes[5:]}" if shapes.startswith("[null") else shapes


_ONLY_CHILDREN = 4
"""trace.ONLY_CHILDREN: rows leave out a call that is all that a call of its name has called."""


def rules(given: int, of_torch: bool) -> int:
    """Those of the table of PROF_GROUP_FLOPS that of_row() takes."""
    return given | _ONLY_CHILDREN if of_torch else given & ~_ONLY_CHILDREN


def of_row(row: "Row", of_torch: bool) -> int:
    """Of all calls of a row; 0 of a row that is not of PyTorch's operators, or is. As
    torch.profiler adds up these, each call counts. A scope of the program's is part of one around
    it that has its name and its shapes."""
    shapes, _, inputs = row.shape.partition("\n")
    if row.name.startswith(_ATEN) != of_torch or shapes.startswith("[null"):
        return 0
    count = row.count if of_torch else row.outer_count
    return of(row.name, parsed(shapes), inputs) * count


def of(name: str, shapes: Shapes, inputs: Optional[Any] = None) -> int:
    """Of one call; 0: not known. inputs: the text of "Concrete Inputs", or its list."""
    is_torch = name.startswith(_ATEN)
    try:
        if not shapes or any(n < 0 for shape in shapes for n in shape):  # -1: it is not known
            return 0
        if name == CONVOLUTION:
            texts = json.loads(inputs) if isinstance(inputs, str) and inputs else inputs
            return _convolution(shapes, texts) if texts else 0
        if name.startswith(_UNCOUNTED):
            return 0
        known = _COUNTED if is_torch else _FORMULAS
        formula = known.get(
            name[len(_ATEN) :] if is_torch else name.replace("::", ".").rsplit(".", 1)[-1]
        )
        return formula(shapes) if formula else 0
    except (TypeError, IndexError, ValueError):
        return 0


__all__ = ["of", "parsed"]


def __dir__() -> List[str]:
    return list(__all__)
