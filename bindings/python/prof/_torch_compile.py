"""torch.compile while functions are traced. During the call of a compiled function torch looks at
each Python function that begins, in order to compile it. The tracer calls functions of prof's
there. They are to be left out: compiling them takes time, and with fullgraph=True is an error."""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any, Callable, Iterable, Iterator, Optional

MODULE = "torch._dynamo.eval_frame"
"""Of torch, where this begins: it is imported late."""


def leave_out(functions: Iterable[Any]) -> None:
    """These, and all that they call. A second time does nothing. Where there is no torch, or one
    without torch.compile, there is nothing to do."""
    skip = _way_to_skip()
    if skip is not None:
        for function in functions:
            for code in _codes(function.__code__):
                skip(code)


def _way_to_skip() -> Optional[Callable[[CodeType], None]]:
    home: Any = sys.modules.get("torch._C._dynamo.eval_frame")
    try:
        skip: Callable[[CodeType], None] = home.skip_code  # before torch 2.6
        return skip
    except AttributeError:
        pass
    try:
        is_skipped = home._FrameExecStrategy(home._FrameAction.SKIP, home._FrameAction.SKIP)
        return lambda code: home.set_code_exec_strategy(code, is_skipped)
    except AttributeError:
        return None


def _codes(code: CodeType) -> Iterator[CodeType]:
    """With those of the functions inside of it, generators too."""
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _codes(value)
