"""How many floating point operations a call takes, where its name and its input shapes tell: the formulas that torch.profiler's with_flops has for matrix products, and the same for numpy's names."""

from __future__ import annotations

import json
from typing import Callable, Dict, List, Sequence

Shapes = Sequence[Sequence[int]]


def _product(numbers: Sequence[int]) -> int:
    result = 1
    for n in numbers:
        result *= n
    return result


def _matmul(shapes: Shapes) -> int:
    """Of any ranks, with the leading dimensions broadcast: 2 * m * n * k for each pair of matrices."""
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


_ATEN = "aten::"
_COUNTED = {"mm", "bmm", "addmm", "baddbmm", "add", "mul"}
"""Of torch's operators those that torch.profiler counts, too: aten::linear and aten::matmul call one of these."""


def parsed(shapes: str) -> List[List[int]]:
    """As a row of C's has them, "[[2, 3], [3, 4]]". [] for what is no such text."""
    try:
        return [list(s) for s in json.loads(shapes)] if shapes else []
    except (ValueError, TypeError):
        return []


def of(name: str, shapes: Shapes) -> int:
    """Of one call; 0: not known."""
    formula = _FORMULAS.get(name.replace("::", ".").rsplit(".", 1)[-1])
    if formula is None or not shapes or (name.startswith(_ATEN) and name[len(_ATEN) :] not in _COUNTED):
        return 0
    try:
        if any(n < 0 for shape in shapes for n in shape):  # -1: a dimension that is not known
            return 0
        return formula(shapes)
    except (TypeError, IndexError):
        return 0


__all__ = ["of", "parsed"]


def __dir__() -> List[str]:
    return list(__all__)
