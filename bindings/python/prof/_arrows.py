"""Arrows from forward to backward calls of PyTorch's operators, as single events have them:
flow_id, flow_type and flow_start of torch.profiler's FunctionEvent. The rules are those of
src/export/flow.c."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from ._read_arguments import Source
from ._read_events import Briefs

FORWARD_TO_BACKWARD = 1
"""Kineto's kLinkFwdBwd."""

Flow = Tuple[Any, Any, Any]
"""flow_id, flow_type, flow_start."""
NO_FLOW: Flow = 0, 0, False
NOT_KINETOS: Flow = None, None, None
"""Of an event that torch itself makes: of memory."""

_OPERATORS = "cpu_op"
_SCOPE, _OPEN = 1, 2


_End = Tuple[int, int, int, bool, int, int]


def _ends(briefs: Briefs, from_ns: int, to_ns: int) -> List[_End]:
    """Of calls with a number: torch's forward thread, the number, the begin, whether it is a
    backward call, its record, and its end."""
    found, begun = [], []
    sources: List[Source] = []
    categories: Dict[int, str] = {}
    for brief in briefs:
        record, kind, thread, start_ns, at = brief[0], brief[1], brief[2], brief[3], brief[7]
        end_ns = start_ns + brief[4]
        category_at, category_bytes, arg_count = brief[10], brief[12], brief[15]
        if kind > _OPEN or not arg_count or start_ns < from_ns or start_ns >= to_ns:
            continue
        category = categories.get(category_at)
        if category is None:
            category = categories[category_at] = briefs.text(category_at, category_bytes)
        if category == _OPERATORS:
            begun.append((start_ns, end_ns))
            sources.append((record, kind, thread, at))
    for (start_ns, end_ns), source, given in zip(begun, sources, briefs.arguments.many(sources)):
        sequence, forward, own = given[0].operator(given[1])
        own = forward or own or 0
        if sequence >= 0 and own > 0:
            found.append((own, sequence, start_ns, (forward or 0) > 0, source[0], end_ns))
    return found


def find(briefs: Briefs, from_ns: int, to_ns: int) -> Dict[int, Flow]:
    """By the record of a call that an arrow begins or ends at. Arrows are numbered from 1, in the
    order in which the backward calls ended."""
    ends = sorted(_ends(briefs, from_ns, to_ns))
    arrows = []
    for left, right in zip(ends, ends[1:]):
        if left[:2] == right[:2] and not left[3] and right[3]:
            arrows.append((right[5], left[0], left[1], left[4], right[4]))
    found: Dict[int, Flow] = {}
    for number, (_, _, _, forward, backward) in enumerate(sorted(arrows), 1):
        found[forward] = number, FORWARD_TO_BACKWARD, True
        found[backward] = number, FORWARD_TO_BACKWARD, False
    return found
