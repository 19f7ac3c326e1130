"""Reading what was recorded: one's own capture, a file, another process's. Everything is counted
and added up in C."""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import (
    TYPE_CHECKING,
    Any,
    ContextManager,
    Dict,
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

from . import _read_events
from . import _structs as s
from ._library import C, Owner, RowsPointer, Shared, encoded, short, sized, whole
from ._read_events import Event

if TYPE_CHECKING:
    from .tables import EventList, FunctionEventAvg

GROUPS = {
    "name": 1,
    "category": 2,
    "device": 4,
    "thread": 8,
    "process": 1024,
    "shape": 16,
    "stack": 32,
    "scopes": 256,
    "kernel": 64,
}
INNER_GROUPS = {"annotation": 128, "flops": 512}
"""PROF_GROUP_ANNOTATION and PROF_GROUP_FLOPS, which key_averages() alone asks for."""
SORTS = {
    "total": 0,
    "self": 1,
    "calls": 2,
    "mean": 3,
    "max": 4,
    "name": 5,
    "memory": 6,
    "self_memory": 7,
    "first": 8,
    "device": 9,
    "self_device": 10,
}
FORMATS = {"": 0, "chrome": 1, "raf": 2, "capture": 3}
ALL_ROWS = (1 << 32) - 1
LEAVE_OUT_FUNCTIONS, LEAVE_OUT_MODULES, LEAVE_OUT_MEMORY = 1, 2, 4
OPEN_CALLS, OUTER_FUNCTIONS, ONLY_CHILDREN = 1, 2, 4
"""prof_aggregate_rule: as torch.profiler has it."""


class Row(NamedTuple):
    """One group of scopes. Times are in ns, of scopes that have ended. A total counts only the
    outermost call of a recursion. calls_ns, median and p99 (exact to 1 %) are of all calls. Memory
    is in bytes, allocated less freed while it ran. open_count scopes had not ended, and the oldest
    of them was open for open_ns. skipped_count scopes were left by a jump, and their end is not
    known: no other field has them. file and line: where they are in the source. has_more_places:
    also elsewhere. device_total_ns: what devices spent on what was launched while it ran;
    self_device_ns: in it and in nothing deeper, device_count scopes of streams."""

    name: str
    category: str
    shape: str
    stack: str
    thread: Optional[int]
    level: int
    count: int  # type: ignore[assignment]  # scopes, not tuple's method
    total_ns: int
    self_ns: int
    min_ns: int
    max_ns: int
    median_ns: int
    p99_ns: int
    memory_bytes: int
    self_memory_bytes: int
    device_memory_bytes: int
    self_device_memory_bytes: int
    device_total_ns: int
    self_device_ns: int
    device_count: int
    is_async: bool = False
    """All its calls are no thread's own time."""
    calls_ns: int = 0
    calls_device_ns: int = 0
    open_count: int = 0
    open_ns: int = 0
    file: str = ""
    line: int = 0
    has_more_places: bool = False
    child_count: int = 0
    """Scopes directly inside of its calls. inner_count: at any depth, of calls in total_ns."""
    inner_count: int = 0
    self_net_ns: int = 0
    """self_ns without the cost of child_count scopes. total_net_ns: without that of inner_count."""
    total_net_ns: int = 0
    first_ns: int = 0
    """The begin of its first call, where rows are sorted by that."""
    outer_count: int = 0
    """Its calls in no other call of it, where FLOPs are asked for."""
    skipped_count: int = 0
    is_crosswise: bool = False
    """Calls of it overlap others of their thread without nesting, or are asynchronous: total_ns may
    be more than the time that passed."""
    record_scope: int = 0
    """Of PyTorch's operators at::RecordScope of the first call, where rows are sorted by that."""
    total_share: Optional[float] = None
    """total_ns / all_self_ns of the rows. None: total_ns is no part of it. The calls are
    asynchronous, or overlap on their thread and add up to more."""
    process_pid: Optional[int] = None
    """Of the group "process". Negative: the imported trace has a name for it, and no number."""
    process_name: str = ""


class Rows(List[Row]):
    """What Trace.aggregate() gives: a list, and what all groups together have."""

    total_self_ns: int = 0
    all_self_ns: int = 0
    """With what level, category, functions and modules left out: a table's shares are of this."""
    all_row_count: int = 0
    has_memory: bool = False
    has_device_memory: bool = False
    total_self_device_ns: int = 0
    has_device: bool = False
    open_count: int = 0
    skipped_count: int = 0
    outside_memory_count: int = 0
    """Allocations and frees that no scope of their thread holds. The earliest was at
    outside_memory_first_ns; bytes are those allocated less those freed."""
    outside_memory_first_ns: int = 0
    outside_memory_bytes: int = 0
    outside_device_memory_bytes: int = 0


def _share(row: s.Row, all_ns: int) -> Optional[float]:
    if row.is_async or row.total_ns > all_ns:
        return None
    return row.total_ns / all_ns if all_ns else 0.0


def _more(rows: Any, index: int) -> Tuple[Any, ...]:
    """The last fields of a Row."""
    more = sized(s.RowMore)
    C.check(C.prof_rows_more(rows, index, ctypes.byref(more)))
    return (
        more.calls_ns,
        more.calls_device_ns,
        more.open_count,
        more.open_ns,
        more.file.decode(errors="replace"),
        more.line,
        bool(more.has_more_places),
        more.child_count,
        more.inner_count,
        more.self_net_ns,
        more.total_net_ns,
        more.first_ns,
        more.outer_count,
        more.skipped_count,
        bool(more.is_crosswise),
        more.record_scope,
        _share(rows.contents.rows[index], rows.contents.all_self_ns),
        more.process_pid if more.has_process else None,
        more.process_name.decode(errors="replace"),
    )


def _choice(value: str, words: Dict[str, int], what: str) -> int:
    try:
        return words[value]
    except (KeyError, TypeError):
        raise ValueError(
            f"{what} must be one of {', '.join(repr(w) for w in words)}, not {value!r}"
        ) from None


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
        format=_choice(format, FORMATS, "format"),
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


def _row_limit(rows: int) -> int:
    return ALL_ROWS if rows == -1 else min(whole(rows, "rows", -1), ALL_ROWS - 1)


class _Totals(Owner):
    """What can be added up: one trace, or several."""

    def _pointers(self) -> ContextManager[Any]:
        """An array of prof_trace *, in use inside ``with``."""
        raise NotImplementedError

    def _options(
        self,
        group: Any,
        sort: str,
        rows: int,
        level: int,
        category: Optional[str],
        from_ns: int = 0,
        to_ns: int = 0,
        stack_frames: int = 0,
        functions: bool = True,
        modules: bool = True,
        memory: bool = True,
        rules: int = 0,
    ) -> s.AggregateOptions:
        bits = 0
        for word in [group] if isinstance(group, str) else group:
            bits |= INNER_GROUPS.get(word) or _choice(word, GROUPS, "group")
        return sized(
            s.AggregateOptions,
            group=bits,
            sort=_choice(sort, SORTS, "sort"),
            rows_limit=_row_limit(rows),
            level=whole(level, "level", 0, 2),
            category=None if category is None else encoded(category, "category"),
            stack_frames=whole(stack_frames, "stack_frames", 0, ALL_ROWS),
            from_ns=whole(from_ns, "from_ns"),
            to_ns=whole(to_ns, "to_ns"),
            leave_out=(0 if functions else LEAVE_OUT_FUNCTIONS)
            | (0 if modules else LEAVE_OUT_MODULES)
            | (0 if memory else LEAVE_OUT_MEMORY),
            rules=rules,
        )

    def aggregate(
        self,
        group: Any = ("name", "category"),
        sort: str = "total",
        rows: int = -1,
        level: int = 0,
        category: Optional[str] = None,
        from_ns: int = 0,
        to_ns: int = 0,
        stack_frames: int = 0,
        functions: bool = True,
        modules: bool = True,
        memory: bool = True,
        _rules: int = 0,
    ) -> Rows:
        """Scopes added up by group (words of GROUPS), sorted (a word of SORTS), at most so many
        rows (-1: all). Only those that begin from from_ns on and before to_ns (0: no bound), ns
        from the capture's start. stack_frames: of the group "stack", the innermost so many (0:
        all). functions: whether traced functions have rows; modules: whether calls of modules have.
        memory: whether bytes of memory are added up; else they are 0, and it is faster."""
        options = self._options(
            group,
            sort,
            rows,
            level,
            category,
            from_ns,
            to_ns,
            stack_frames,
            functions,
            modules,
            memory,
            _rules,
        )
        out = RowsPointer()
        with self._pointers() as pointers:
            C.check(
                C.prof_traces_aggregate(
                    pointers, len(pointers), ctypes.byref(options), ctypes.byref(out)
                )
            )
        try:
            got = out.contents
            result = Rows(
                Row(
                    r.name.decode(errors="replace"),
                    r.category.decode(errors="replace"),
                    r.shape.decode(errors="replace"),
                    r.stack.decode(errors="replace"),
                    None if r.thread == ALL_ROWS else r.thread,
                    r.level,
                    r.calls_count,
                    r.total_ns,
                    r.self_ns,
                    r.min_ns,
                    r.max_ns,
                    r.median_ns,
                    r.p99_ns,
                    r.memory_bytes,
                    r.self_memory_bytes,
                    r.device_memory_bytes,
                    r.self_device_memory_bytes,
                    r.device_total_ns,
                    r.self_device_ns,
                    r.device_count,
                    bool(r.is_async),
                    *_more(out, index),
                )
                for index, r in enumerate(got.rows[: got.row_count])
            )
            result.total_self_ns = got.total_self_ns
            result.all_self_ns = got.all_self_ns
            result.all_row_count = got.all_row_count
            result.has_memory = bool(got.has_memory)
            result.has_device_memory = bool(got.has_device_memory)
            result.total_self_device_ns = got.total_self_device_ns
            result.has_device = bool(got.has_device)
            result.open_count = got.open_count
            result.skipped_count = got.skipped_count
            for name in ("count", "first_ns", "bytes"):
                setattr(result, f"outside_memory_{name}", getattr(got, f"outside_memory_{name}"))
            result.outside_device_memory_bytes = got.outside_device_memory_bytes
            return result
        finally:
            C.prof_rows_destroy(out)

    def table(
        self,
        group: Any = ("name", "category"),
        sort: str = "total",
        rows: int = 100,
        level: int = 0,
        category: Optional[str] = None,
        stack_frames: int = 0,
        functions: bool = True,
        modules: bool = True,
        width: int = 0,
    ) -> str:
        """The same as prof's own table, with the line of losses below. torch.profiler's table is
        profile.key_averages().table(). width: at most so many columns, as on a terminal; 0: as wide
        as it takes."""
        options = self._options(
            group,
            sort,
            rows,
            level,
            category,
            stack_frames=stack_frames,
            functions=functions,
            modules=modules,
        )
        options.text_width = width
        with self._pointers() as pointers:
            return C.asked(C.prof_traces_table, pointers, len(pointers), ctypes.byref(options))


class Trace(_Totals):
    """A snapshot: it does not change, whatever is recorded, cleared or started after. Any thread
    may read it, also while another one closes it. ``with`` frees it at the end; so does its last
    reference."""

    notes: Tuple[str, ...] = ()
    """Of one that import_trace() made: what was left out of it, or taken otherwise, a line a
    reason."""

    def __init__(self, pointer: ctypes.c_void_p) -> None:
        if not isinstance(pointer, ctypes.c_void_p):
            raise TypeError(
                f"a Trace is had by Trace.open(path) or Trace.now(), not of {short(pointer)}"
            )
        self._shared = Shared(pointer, "prof_trace_destroy", "trace")

    @classmethod
    def open(cls, path: Union[str, "os.PathLike[str]"]) -> "Trace":
        """A capture file: finished, being written, or left by a process that died.
        FileNotFoundError, PermissionError, ValueError (it is no capture)."""
        out = ctypes.c_void_p()
        C.check(C.prof_trace_open(encoded(path, "path"), ctypes.byref(out)))
        return cls(out)

    @classmethod
    def now(cls) -> "Trace":
        """What this process has recorded so far, also while it records. RuntimeError when nothing
        was ever started."""
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
        """Frees it; where it is being read, behind the last reader, events() that go on among them.
        Who begins to read it then has a ValueError. A second time does nothing."""
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
        """For C's functions; nobody may close it before they are done. ValueError once it is
        closed."""
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
        """prof_trace_device of each device that scopes were put on: what it is, what its times are
        worth, and if there are none, why."""
        found = []
        for index in range(self.info().device_count):
            found.append(sized(s.TraceDevice))
            with self._shared as pointer:
                C.check(C.prof_trace_device_get(pointer, index, ctypes.byref(found[-1])))
        return found

    def loss_text(self) -> str:
        """One line: recorded, dropped by reason, unfinished; "no loss" when all are 0."""
        with self._shared as pointer:
            return C.asked(C.prof_trace_loss_text, pointer)

    def _function_ends(self) -> List[int]:
        """When a tracing of functions ended while some stood open on other threads, in ns."""
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
        """As profile.key_averages(), of a capture that another process recorded, or ``prof import``
        made of a trace. Traced functions, of Python and of C, and calls of modules are rows only
        where asked for, as in torch.profiler. profile_memory: whether the table has the columns of
        memory; None: where a row has any."""
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
        """As profile.export_chrome_trace(): Chrome JSON, compressed where the path ends in .gz,
        with the stacks that were recorded; dump() has more to choose. use_python_export changes
        nothing. OSError and its kin."""
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
        """Writes it: Chrome JSON, compressed where the path ends in .gz; format "raf" is RAF's log,
        "capture" the capture itself. metadata: keys, and JSON texts, that Chrome JSON has at its
        top. stacks: where functions were traced, each other scope has those around it as "Call
        stack". window_marks: the last rows are those that Kineto writes of a profile's begin and
        end. memory: False leaves out each event of memory and each pool's graph. stack_folders:
        each "Call stack" is as torch.profiler's, files without the longest of these folders that
        they begin with, and ";" behind each frame. What stands under the path is never half a file.
        OSError and its kin; ValueError for what is not JSON, and for metadata, stacks, window_marks
        or memory=False of another format."""
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

    def events(self) -> Iterator[Event]:
        """By thread, and inside a thread by start, outer scopes before the ones they hold. They go
        on to their end where the trace is closed meanwhile."""
        with self._shared:  # closed already: who asks hears it now, not at the first step
            return self._read()

    def _read(self) -> Iterator[Event]:
        with self._shared as pointer:
            yield from _read_events.read(pointer)

    def memory_text(
        self, width: int = 80, rows: int = 10, pool: Optional[int] = None, ascii: bool = False
    ) -> str:
        """prof memory's report: peaks, what was live then, who held it. width in columns (40 to
        500), rows of each table (-1: all), pool: the number of one (None: all), ascii: its plot
        without blocks and lines. ValueError, LookupError (no such pool)."""
        if rows == 0:
            raise ValueError("rows must not be 0")
        place = 0 if pool is None else whole(pool, "pool", 0, ALL_ROWS - 1) + 1
        options = sized(
            s.MemoryTextOptions,
            width=whole(width, "width", 0, ALL_ROWS),
            rows_limit=_row_limit(rows),
            pool=place,
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


class Traces(_Totals):
    """Several traces, of a program's processes say, added up together: what has one name in all of
    them is one row. A thread's number is its trace's place among them all. ``with`` frees them at
    the end."""

    def __init__(self, traces: Iterable[Trace]) -> None:
        self.traces = list(traces)
        if not self.traces:
            raise ValueError("there is no trace to add up")

    @classmethod
    def open(cls, paths: Iterable[Union[str, "os.PathLike[str]"]]) -> "Traces":
        """Capture files, as Trace.open()."""
        return cls([Trace.open(path) for path in paths])

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


__all__ = ["Event", "Row", "Rows", "Trace", "Traces"]


def __dir__() -> List[str]:
    return list(__all__)
