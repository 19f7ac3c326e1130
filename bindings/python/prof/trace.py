"""Reads what was recorded: the capture of this process, a file, or another process's. C counts and
adds up."""

from __future__ import annotations

import contextlib
import ctypes
import os
import warnings
from typing import (
    TYPE_CHECKING,
    Any,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from . import _arrow, _read_events
from . import _structs as s
from ._library import C, Shared, encoded, short, sized, whole
from ._read_events import Event
from ._totals import ALL_ROWS, Row, Rows, Totals, choice, row_limit
from ._totals import GROUPS as GROUPS
from ._totals import SORTS as SORTS

if TYPE_CHECKING:
    from .tables import EventList, FunctionEventAvg

_FORMAT_NAMES = (
    "",
    "chrome",
    "raf",
    "capture",
    "perfetto",
    "csv",
    "folded",
    "speedscope",
    "pprof",
    "packed",
    "sqlite",
    "rpd",
)
FORMATS = {name: number for number, name in enumerate(_FORMAT_NAMES)}


def _escaped(value: Any) -> Any:
    """A JSON text's lone surrogates become JSON's own escapes."""
    return value.encode("utf-8", "backslashreplace") if isinstance(value, str) else value


def _dump_options(
    format: str,
    from_ns: int,
    to_ns: int,
    metadata: Optional[Mapping[str, str]],
    stacks: bool = False,
    window_marks: bool = False,
    memory: bool = True,
    stack_folders: Sequence[str] = (),
) -> s.DumpOptions:
    folders = [encoded(folder, "stack_folders") for folder in stack_folders]
    pairs = [
        s.Metadata(encoded(key, "key"), encoded(_escaped(value), "value"))
        for key, value in (metadata or {}).items()
    ]
    items = (s.Metadata * max(len(pairs), 1))(*pairs)
    return sized(
        s.DumpOptions,
        format=choice(format, FORMATS, "format"),
        from_ns=whole(from_ns, "from_ns"),
        to_ns=whole(to_ns, "to_ns"),
        metadata=items,
        metadata_count=len(pairs),
        stacks=int(bool(stacks)),
        window_marks=int(bool(window_marks)),
        no_memory=int(not memory),
        stack_folder_count=len(folders),
        stack_folders=(ctypes.c_char_p * max(len(folders), 1))(*folders),
    )


class Trace(Totals):
    """A snapshot: later recordings, clears and starts do not change it. Any thread may read it,
    also while another one closes it. ``with`` frees it at the end, and so does its last
    reference."""

    notes: Tuple[str, ...] = ()
    """For a trace of import_trace(): what it left out or changed, with a line for each reason."""

    def __init__(self, pointer: ctypes.c_void_p) -> None:
        if not isinstance(pointer, ctypes.c_void_p):
            raise TypeError(f"Trace.open(path) or Trace.now() makes a Trace, not {short(pointer)}")
        self._shared = Shared(pointer, "prof_trace_destroy", "trace")

    @classmethod
    def open(cls, path: Union[str, "os.PathLike[str]"]) -> "Trace":
        """Opens a capture file: finished, being written, or left by a process that died. In a
        merged file, "all.prof#2" is the second capture; Traces.open() opens all.
        FileNotFoundError, PermissionError, ValueError (it is no capture, or has several)."""
        out = ctypes.c_void_p()
        C.check(C.prof_trace_open(encoded(path, "path"), ctypes.byref(out)))
        return cls(out)

    @classmethod
    def now(cls) -> "Trace":
        """What this process has recorded so far, also while it records. RuntimeError if nothing was
        ever started."""
        out = ctypes.c_void_p()
        C.check(C.prof_get(ctypes.byref(out)))
        return cls(out)

    def _view(self, wish: s.ViewWish) -> "Trace":
        """A view of the trace, for the profile of one thread."""
        out = ctypes.c_void_p()
        with self._shared as pointer:
            C.check(C.prof_i_trace_view_1(pointer, ctypes.byref(wish), ctypes.byref(out)))
        return Trace(out)

    def close(self) -> None:
        """Frees it after its last reader, such as a running events(). A read that begins later
        raises ValueError. A second time it does nothing."""
        self._shared.close()

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # the interpreter ends, and the library's functions are gone
            pass

    @property
    def pointer(self) -> ctypes.c_void_p:
        """For C's functions. The trace must stay open until they return. ValueError after
        close()."""
        with self._shared as pointer:
            return pointer

    @contextlib.contextmanager
    def _pointers(self) -> Iterator[Any]:
        with self._shared as pointer:
            yield (ctypes.c_void_p * 1)(pointer)

    def info(self) -> s.TraceInfo:
        """prof_trace_info: counts, clock, process, losses."""
        info = sized(s.TraceInfo)
        with self._shared as pointer:
            C.check(C.prof_trace_info_get(pointer, ctypes.byref(info)))
        return info

    def devices(self) -> List[s.TraceDevice]:
        """prof_trace_device of each device with scopes: its description and the error of its times.
        If it has no times: the reason."""
        found = []
        for index in range(self.info().device_count):
            found.append(sized(s.TraceDevice))
            with self._shared as pointer:
                C.check(C.prof_trace_device_get(pointer, index, ctypes.byref(found[-1])))
        return found

    def loss_text(self) -> str:
        """One line: recorded, dropped by reason, unfinished; "no loss" if all are 0."""
        with self._shared as pointer:
            return C.asked(C.prof_trace_loss_text, pointer)

    def _function_ends(self) -> List[int]:
        """The ends of function tracing while functions were open on other threads, in ns."""
        with self._shared as pointer:
            count = C.prof_trace_function_ends(pointer, None, 0)
            found = (ctypes.c_uint64 * count)()
            if count:
                C.prof_trace_function_ends(pointer, found, count)
            return list(found)

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        include_python_functions: bool = False,
        profile_memory: Optional[bool] = None,
        with_flops: bool = False,
    ) -> EventList[FunctionEventAvg]:
        """As profile.key_averages(), for a capture of another process or of ``prof import``.

        include_python_functions: Traced functions, of Python and of C, and calls of modules are
        rows, too.

        profile_memory: Whether the table has the columns of memory. None: if a row has any."""
        from . import tables  # which needs this module

        functions = bool(include_python_functions)
        found = tables.averages(
            [tables.Window(self, 0, 0, 0, 0)],
            group_by_input_shape,
            group_by_stack_n,
            profile_memory is not False,
            with_flops,
            functions,
            functions,
        )
        if profile_memory is None:
            found._profile_memory = any(
                row.cpu_memory_usage
                or row.self_cpu_memory_usage
                or row.device_memory_usage
                or row.self_device_memory_usage
                for row in found
            )
        return found

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """As profile.export_chrome_trace(): Chrome JSON with the recorded stacks, compressed if the
        path ends in .gz. dump() has more options. use_python_export changes nothing. OSError and
        its subclasses."""
        self.dump(path, "chrome")

    def dump(
        self,
        path: Union[str, "os.PathLike[str]"],
        format: str = "",
        from_ns: int = 0,
        to_ns: int = 0,
        metadata: Optional[Mapping[str, str]] = None,
        stacks: bool = False,
        window_marks: bool = False,
        memory: bool = True,
        stack_folders: Sequence[str] = (),
    ) -> None:
        """Writes Chrome JSON, compressed if the path ends in .gz. The format "raf" is RAF's log,
        "capture" the capture itself. "parquet" and "arrow", also by the path's ending, need
        pyarrow. The path never has a partial file.

        metadata: Keys and JSON texts for the top level of Chrome JSON.

        stacks: If functions were traced, each other scope has the functions around it as its "Call
        stack".

        window_marks: The last rows are those that Kineto writes for the begin and end of a profile.

        memory: False leaves out events of memory and the graphs of pools.

        stack_folders: Each "Call stack" is as in torch.profiler. Its files are without the longest
        of these folders that they begin with, and each frame ends with ";".

        OSError and its subclasses. ValueError for metadata that is not JSON. ValueError for
        metadata, stacks, window_marks or memory=False with another format."""
        columns = _arrow.format_of(os.fsdecode(encoded(path, "path")), format)
        if columns:
            if metadata or stacks or window_marks or not memory or stack_folders:
                raise ValueError(
                    f"metadata, stacks, window_marks, memory and stack_folders are options of "
                    f"Chrome JSON, not of the format {columns}"
                )
            _arrow.write(self, os.fsdecode(path), columns, from_ns, to_ns)
            return
        options = _dump_options(
            format, from_ns, to_ns, metadata, stacks, window_marks, memory, stack_folders
        )
        with self._shared as pointer:
            C.check(C.prof_trace_dump(pointer, encoded(path, "path"), ctypes.byref(options)))

    def json(
        self,
        format: str = "",
        from_ns: int = 0,
        to_ns: int = 0,
        metadata: Optional[Mapping[str, str]] = None,
        stacks: bool = False,
        memory: bool = True,
    ) -> str:
        """The text that dump() writes. OverflowError past 1 GiB."""
        out = ctypes.c_void_p()
        options = _dump_options(format, from_ns, to_ns, metadata, stacks, memory=memory)
        with self._shared as pointer:
            C.check(C.prof_trace_json(pointer, ctypes.byref(options), ctypes.byref(out), None))
        return C.text(out)

    def arrow(self, from_ns: int = 0, to_ns: int = 0, batch_rows: int = 0) -> Any:
        """A pyarrow.RecordBatchReader of all events, in the order of events(). Its columns are in
        docs/reference/export-formats.md. It holds one batch in memory. The trace may be closed
        while it is in use.

        from_ns, to_ns: only events that overlap this time, from the capture's start. batch_rows:
        the most rows of a batch (0: 65536).

        ImportError without pyarrow. Libraries that read Arrow streams accept the trace itself, and
        need no pyarrow: polars.DataFrame(trace)."""
        return _arrow.reader(self, from_ns, to_ns, batch_rows)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The stream of arrow() as a PyCapsule, for libraries that read Arrow streams. The
        requested schema is ignored."""
        return _arrow.capsule(self)

    def to_arrow(self, from_ns: int = 0, to_ns: int = 0) -> Any:
        """A pyarrow.Table of arrow(). ImportError without pyarrow."""
        return self.arrow(from_ns, to_ns).read_all()

    def to_pandas(self, from_ns: int = 0, to_ns: int = 0) -> Any:
        """A pandas.DataFrame of arrow(): names and other repeated texts are categories. ImportError
        without pyarrow or pandas."""
        return _arrow.to_pandas(self, from_ns, to_ns)

    def events(self) -> Iterator[Event]:
        """All events by thread, and in a thread by start, outer scopes before inner ones. The
        iteration goes on to its end if the trace is closed meanwhile."""
        with self._shared:  # a closed trace raises here, not at the first step
            return self._read()

    def _read(self) -> Iterator[Event]:
        with self._shared as pointer:
            yield from _read_events.read(pointer)

    def memory_text(
        self, width: int = 80, rows: int = 10, pool: Optional[int] = None, ascii: bool = False
    ) -> str:
        """The report of `prof memory`: peaks, and what was live then by scope.

        width: columns, 40 to 500. rows: of each table (-1: all). pool: the number of one pool
        (None: all). ascii: plots without blocks and lines.

        ValueError, LookupError (no such pool)."""
        if rows == 0:
            raise ValueError("rows must not be 0")
        pool_option = 0 if pool is None else whole(pool, "pool", 0, ALL_ROWS - 1) + 1
        options = sized(
            s.MemoryTextOptions,
            width=whole(width, "width", 0, ALL_ROWS),
            rows_limit=row_limit(rows),
            pool=pool_option,
            ascii=int(ascii),
        )
        out = ctypes.c_void_p()
        with self._shared as pointer:
            C.check(C.prof_memory_read(pointer, ctypes.byref(out)))
        try:
            return C.asked(C.prof_memory_text, out, ctypes.byref(options))
        except FileNotFoundError:
            raise LookupError(f"the trace has no pool {pool}") from None
        finally:
            C.prof_memory_destroy(out)


def _open_parts(path: Union[str, "os.PathLike[str]"]) -> Iterator[Trace]:
    """Opens the captures of a file: one, or all of a merged file."""
    count = ctypes.c_uint32()
    C.check(C.prof_trace_part_count(encoded(path, "path"), ctypes.byref(count)))
    if count.value == 1:
        yield Trace.open(path)
        return
    lost = 0
    for number in range(1, count.value + 1):
        part = f"{os.fsdecode(path)}#{number}"
        if os.path.exists(part):  # it would be read instead of the capture
            raise ValueError(f"{part} is a file, and also names a capture in the merged file")
        try:
            yield Trace.open(part)
        except FileNotFoundError:
            lost += 1
    if lost:
        text = f"{os.fsdecode(path)} is damaged or cut off: {lost} of its {count.value} captures"
        warnings.warn(f"{text} cannot be read", RuntimeWarning, stacklevel=4)


class Traces(Totals):
    """Several traces, such as those of a program's processes, added up together: scopes of one name
    are one row. The number of a thread is that of its trace. ``with`` frees them at the end."""

    def __init__(self, traces: Iterable[Trace]) -> None:
        self.traces = list(traces)
        if not self.traces:
            raise ValueError("there is no trace to add up")

    @classmethod
    def open(cls, paths: Iterable[Union[str, "os.PathLike[str]"]]) -> "Traces":
        """Opens capture files as Trace.open() does, and all captures of merged files. Captures
        that a damaged file has lost are left out, with a RuntimeWarning."""
        return cls([trace for path in paths for trace in _open_parts(path)])

    def close(self) -> None:
        """Frees them all."""
        for trace in self.traces:
            trace.close()

    def __enter__(self) -> "Traces":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    @contextlib.contextmanager
    def _pointers(self) -> Iterator[Any]:
        with contextlib.ExitStack() as uses:
            pointers = [uses.enter_context(trace._shared) for trace in self.traces]
            yield (ctypes.c_void_p * len(pointers))(*pointers)


class Window(NamedTuple):
    """A time range of a trace: what began at or after from_ns, and before to_ns (0: up to its end).
    Times are in ns from the capture's start. origin_ns: time 0 of its profile. lost: scopes that it
    lost for want of room."""

    trace: Trace
    from_ns: int
    to_ns: int
    origin_ns: int
    lost: int
    whole: Optional[Trace] = None
    """The whole capture, if `trace` is the view of one thread's profile."""


__all__ = ["Event", "Row", "Rows", "Trace", "Traces"]


def __dir__() -> List[str]:
    return list(__all__)
