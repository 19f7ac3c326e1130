"""Stacks of backward calls in tables, as torch.profiler has them.

What runs in a backward call of autograd's has the stack of its forward call. Frames of autograd's
own are left out. See _set_backward_stacktraces() and _filter_stack_entry() of
torch/autograd/profiler_util.py. The JSON of torch and of prof has the stacks as they really
were."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

from ._read_events import FUNCTIONS, is_function

EVALUATION = "autograd::engine::evaluate_function: "
_LEFT_OUT = (
    ("autograd/__init__", "_make_grads"),
    ("autograd/__init__", "backward"),
    ("torch/tensor", "backward"),
)


def give(events: Sequence[Any]) -> None:
    """To one recording's FunctionEvents, which stand in the order of their begins. Their own stacks
    are Shown."""
    if not any(e.torch_fwd_thread or e.name.startswith(EVALUATION) for e in events):
        return  # nothing of it is a backward call
    # torch's own of the threads, by ours
    numbers = {e.thread: e.torch_thread for e in events if e.torch_thread is not None}
    backward: Dict[int, Any] = {}  # by the id of what is in a backward call: that call
    forward: Dict[Tuple[int, Optional[int]], List[str]] = {}
    owners: Dict[Tuple[int, Optional[int]], int] = {}  # our thread of each
    # by the id of a traced function: the innermost event around it that is no traced function
    outer: Dict[int, Any] = {}
    for e in events:
        around = e.cpu_parent
        call = backward.get(id(around)) if around is not None else None
        holder = around
        if around is not None and is_function(around.category, around.name):
            holder = outer.get(id(around))
        if is_function(e.category, e.name):
            outer[id(e)] = holder
        if _is_backward(e, holder):
            call = e
        if call is not None:
            backward[id(e)] = call
        elif e.sequence_nr >= 0:
            if around is not None and around.name == e.name:
                # as where vmap calls mul inside of mul: torch.profiler's events leave the inner
                # ones out
                continue
            number = numbers.get(e.thread)
            if number is None and e.name.startswith(EVALUATION):
                continue  # it may be on the thread of another
            forward.setdefault((e.sequence_nr, number), e.stack)
            if owners.setdefault((e.sequence_nr, number), e.thread) != e.thread:
                # which of the threads' it is, nobody knows: threads that say no number, or of
                # several processes
                forward[e.sequence_nr, number] = []
    for e in events:
        call = backward.get(id(e))
        if call is not None and e.category not in FUNCTIONS:
            found = forward.get((call.sequence_nr, call.torch_fwd_thread))
            e.stack = forward.get((call.sequence_nr, None), []) if found is None else found


class Shown:
    """Stacks without the frames of autograd's own. Events that share a stack share it behind this,
    too."""

    def __init__(self) -> None:
        self._kept: Dict[int, Tuple[List[str], List[str]]] = {}  # by id, with the list that has it
        self._left_out: Dict[str, bool] = {}

    def of(self, stack: List[str]) -> List[str]:
        if not stack:
            return stack
        found = self._kept.get(id(stack))
        if found is None:
            left_out = self._left_out
            for frame in stack:
                if frame not in left_out:
                    left_out[frame] = any(a in frame and b in frame for a, b in _LEFT_OUT)
            shown = stack, [frame for frame in stack if not left_out[frame]]
            found = self._kept.setdefault(id(stack), shown)  # another thread's, if it was first
        return found[1]


def _is_backward(e: Any, holder: Any) -> bool:
    """torch's scope BACKWARD_FUNCTION. One of no number, AccumulateGrad's, is known by autograd's
    range around it."""
    if e.torch_fwd_thread and not e.name.startswith(EVALUATION):
        return True
    return holder is not None and bool(holder.name == EVALUATION + e.name)
