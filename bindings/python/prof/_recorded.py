"""What a profile has recorded: tables, single events, exports. Does not start or stop anything."""

from __future__ import annotations

import os
import sys
import warnings
from time import monotonic_ns
from typing import Any, Callable, Dict, List, NoReturn, Optional

from . import _structs as s
from . import _torch_group, tables
from ._library import Owner, encoded, short, whole
from ._own_calls import OwnCall
from ._recording import STACK_FRAMES, outside
from ._schedule import StateError
from ._scope import functions, modules, operators
from ._stacks import FRAMES_MOST, Frames
from ._totals import ONLY_CHILDREN, OPEN_CALLS, OUTER_FUNCTIONS
from .tables import EventList, FunctionEvent, FunctionEventAvg, Window
from .trace import Trace


class Recorded(Owner):
    """The results of a profile. The subclass records them."""

    _has_window_marks = False
    """Do its traces end in Kineto's rows of a profile's begin and end?"""

    record_shapes: bool
    profile_memory: bool
    with_stack: bool
    with_modules: bool
    with_flops: bool
    custom_trace_id_callback: Optional[Callable[[], str]]
    post_processing_timeout_s: Any
    _observer: Any
    _is_recording: bool
    _functions_before: int
    _modules_before: int
    _operators_before: int
    _shows_functions: bool
    _shows_modules: bool
    _shows_operators: bool
    _trace_id: Optional[str]
    _metadata: Dict[str, str]

    def _windows(self) -> List[Window]:
        """What has been recorded, by cycles, with the running cycle so far. StateError before
        anything was recorded."""
        raise NotImplementedError

    @property
    def trace(self) -> Trace:
        """The capture as it was when the last recording ended. Not in torch.profiler.
        AssertionError before that."""
        window = self._windows()[-1]
        return window.whole or window.trace

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: Optional[bool] = None,
    ) -> EventList[FunctionEventAvg]:
        """Scopes added up by name, in the order of their first calls.

        group_by_input_shape, group_by_stack_n: also by input shapes, and by so many of the
        innermost stack frames. group_by_overload_name changes nothing, since prof records no
        overloads. include_python_functions: whether traced functions are rows. None: those of
        trace_functions() are, and those that are traced for stacks alone are not. With with_modules
        calls of modules are rows. AssertionError before anything was recorded."""
        functions = (
            self._are_functions_shown()
            if include_python_functions is None
            else bool(include_python_functions)
        )
        if whole(group_by_stack_n, "group_by_stack_n", -FRAMES_MOST, FRAMES_MOST) < 0:
            return self.events().key_averages(  # as torch's: no groups
                bool(group_by_input_shape), group_by_stack_n, group_by_overload_name, functions
            )
        found = tables.averages(
            self._windows(),
            by_shape=bool(group_by_input_shape),
            stack_frames=group_by_stack_n,
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
            functions=functions,
            modules=functions or self._are_modules_shown(),
            rules=self._rules(),
        )
        if self._observer is None and "torch" in sys.modules:
            found._note = (
                "No scopes: of PyTorch's operators there are some with prof.profile(torch=True), "
                "inside of prof.torch.observe(), or by python -m prof run --torch script.py\n"
            )
            if not any(average.category == "cpu_op" for average in found):
                found._hint = (
                    "PyTorch's operators are not among these: prof.profile(torch=True) has them\n"
                )
        return found

    def _rules(self) -> int:
        """The rules of tables: those of torch.profiler."""
        is_stack = self.with_stack and not self._are_functions_shown()
        rules = OPEN_CALLS | (OUTER_FUNCTIONS if is_stack else 0)
        return rules | (ONLY_CHILDREN if self._are_operators_shown() else 0)

    def _are_operators_shown(self, is_ending: bool = False) -> bool:
        """Were PyTorch's operators observed, by this profile or beside it?"""
        is_recording = is_ending or self._is_recording
        return self._shows_operators or (is_recording and operators.begun != self._operators_before)

    def _are_functions_shown(self) -> bool:
        return self._shows_functions or (
            self._is_recording and functions.begun != self._functions_before
        )

    def _are_modules_shown(self) -> bool:
        """A profile that observes PyTorch itself shows modules by with_modules alone."""
        return self.with_modules or (
            self._observer is None
            and (
                self._shows_modules
                or (self._is_recording and modules.begun != self._modules_before)
            )
        )

    def events(self) -> EventList[FunctionEvent]:
        """Each scope, by its start. With post_processing_timeout_s it reads only cycles that it
        reaches within that time, and a warning says how many it left out. AssertionError before
        anything was recorded."""
        windows = self._windows()
        if self.post_processing_timeout_s is None:
            return self._events_of(windows)
        deadline = monotonic_ns() + self.post_processing_timeout_s * 1e9
        found = self._events_of([])
        for index, window in enumerate(windows):
            if monotonic_ns() >= deadline:
                self._note_timeout(len(windows) - index, len(found))
                break
            part = self._events_of([window])
            tables.number(part, len(found), found._python_ids)
            found._python_ids += part._python_ids
            found.extend(part)
            found.lost += part.lost
            found._use_device = found._use_device or part._use_device
        return found

    def _events_of(self, windows: List[Window]) -> EventList[FunctionEvent]:
        return tables.single_events(
            windows,
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
            with_stack=self.with_stack,
            shows_functions=self._are_functions_shown(),
            modules=self._are_modules_shown(),
            merges_only_children=self._are_operators_shown(),
        )

    def _note_timeout(self, cycles: int, count: int) -> None:
        """Warns that events() has left out so many cycles."""
        warnings.warn(
            f"events() timed out after {self.post_processing_timeout_s:g} s "
            f"(post_processing_timeout_s), returning partial results with {count} events: {cycles} "
            "of the cycles are not among them",
            RuntimeWarning,
            stacklevel=outside(),
        )

    def export_chrome_trace(
        self,
        path: str,
        use_python_export: bool = False,
        cuda_graph_annotations: Any = None,
        graph_lanes: str = "none",
        default_stream: int = 7,
    ) -> None:
        """Writes the last cycle as Chrome JSON, which opens in Perfetto, chrome://tracing and
        TensorBoard. It is compressed if the path ends in .gz. C writes it, and the path never has a
        partial file. use_python_export and default_stream change nothing. NotImplementedError:
        annotations of CUDA graphs. OSError and its subclasses."""
        encoded(path, "path")
        if cuda_graph_annotations or graph_lanes != "none":
            raise NotImplementedError(
                "prof: annotations of CUDA graphs are not exported: leave out "
                f"cuda_graph_annotations={short(cuda_graph_annotations)} and "
                f"graph_lanes={short(graph_lanes)}, or export with torch.profiler"
            )
        window = self._windows()[-1]
        metadata = self._all_metadata(window.trace.info(), path)
        window.trace.dump(
            path,
            "chrome",
            window.from_ns,
            window.to_ns,
            metadata,
            self.with_stack,
            self._has_window_marks,
            self.profile_memory,
            [f for f in Frames().folders if "\0" not in f] if self.with_stack else (),
        )

    def _all_metadata(self, trace: s.TraceInfo, path: str) -> Dict[str, str]:
        words = ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops")
        found = {word: "1" for word in words if getattr(self, word)}
        if self._trace_id is not None:
            found["trace_id"] = _json().dumps(str(self._trace_id))
        found["traceName"] = _json().dumps(os.fspath(path))
        group = _torch_group.info(trace.rank, trace.world_size)
        if group:
            found["distributedInfo"] = _json().dumps(group, default=str)
        return {**found, **self._metadata}

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes stacks with a metric each, for flame graphs. StateError without with_stack."""
        if not self.with_stack:
            raise StateError("export_stacks() requires with_stack=True")
        self.key_averages(group_by_stack_n=STACK_FRAMES).export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: Optional[str] = None) -> NoReturn:
        """torch.profiler's deprecated method. NotImplementedError, which says what to do
        instead."""
        raise NotImplementedError(
            "prof: there is no export_memory_timeline(), which torch has deprecated. With "
            "profile_memory=True, save the capture by "
            "p.trace.dump('FILE.prof', 'capture') and run `prof memory FILE.prof` (--svg for a "
            "picture); of a GPU's allocator, "
            "torch.cuda.memory._record_memory_history() and "
            "torch.cuda.memory._export_memory_snapshot()"
        )

    @property
    def profiler(self) -> NoReturn:
        """torch.profiler's internal objects. AttributeError, which names the public methods."""
        raise AttributeError(
            "prof.profile has no 'profiler' and no 'kineto_results': they are internal objects of "
            "torch's. Public: events(), key_averages(), export_chrome_trace(), trace"
        )

    kineto_results = profiler

    def get_trace_id(self) -> Optional[str]:
        """The id of the cycle: what custom_trace_id_callback returned, or 32 random digits. None
        before the first cycle."""
        return self._trace_id

    def set_custom_trace_id_callback(self, callback: Optional[Callable[[], str]]) -> None:
        """Sets what returns the ids of the next cycles."""
        self.custom_trace_id_callback = callback

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a text to the top level of the Chrome JSON."""
        with OwnCall(value, "__str__"):
            text = str(value)
        self.add_metadata_json(key, _json().dumps(text))

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds a value that is JSON. ValueError if it is not."""
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"metadata are texts, not {short(key)}: {short(value)}")
        if key in ("traceEvents", "prof"):
            raise ValueError(f"the metadata's key must not be {key!r}: the file is made of it")
        try:
            _json().loads(value, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as e:
            raise ValueError(
                f"the metadata of {short(key)} is not JSON: {short(value)}: {e}"
            ) from None
        encoded(key, "key")
        self._metadata[key] = value

    preset_metadata_json = add_metadata_json

    def loss_text(self) -> str:
        """One line: what the whole capture holds, what it lost, and why; "no loss" if nothing is
        missing. Not in torch.profiler."""
        return self.trace.loss_text()


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON's")


def _json() -> Any:
    """Loads json when it is needed: the import of this module is part of the cost of a script's
    first scope."""
    import json

    return json
