"""Reads prof_event of <prof/trace.h>, all of its fields at once. By ctypes one attribute takes as
long as all of them by struct. The formats for struct are made of the fields in _structs.py."""

from __future__ import annotations

import contextlib
import ctypes
import struct
from ctypes import string_at
from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple

from . import _structs as s
from ._library import C, sized
from ._read_arguments import NO_TENSOR, Reader

KINDS = {
    1: "scope",
    2: "open",
    3: "instant",
    4: "counter",
    5: "flow_begin",
    6: "flow_end",
    7: "step",
    8: "memory",
}
MEMORY = 8
FUNCTIONS = ("python_function", "c_function")
"""Categories of traced functions."""
TORCHS = ("cpu_op", "user_annotation")
"""Categories of PyTorch's operators and ranges."""
OBSERVED, RECORD_SCOPE = 1 << 30, 0xFF
"""Of src/format/layout.h."""
USER_SCOPE = 7
"""at::RecordScope of a range of the program's."""
MODULE = "nn.Module: "
"""So begin the names of modules' calls (observe(with_modules=True)), which are of the category
python_function, too, as torch.profiler has them. The only place in Python; in C it is
src/format/layout.h."""
ON_DEVICE = 16  # PROF_EVENT_ON_DEVICE
CALL = 32  # PROF_EVENT_CALL
SKIPPED = 128  # PROF_EVENT_SKIPPED
ASYNC = 2 | 64  # PROF_EVENT_OTHER_THREAD, PROF_EVENT_ASYNC
NO_THREAD = (1 << 32) - 1
_VERB_SIGNS = {1: 1, 2: -1}  # PROF_MEMORY_ALLOC, PROF_MEMORY_FREE
_TEXTS_MOST, _TEXT_BYTES_MOST = 1 << 16, 16 << 20
"""Limits of the texts that are kept for later events. A program may make a name for each call, or
have long texts as arguments, without an end."""


class Event(NamedTuple):
    """One event, as prof_event of <prof/trace.h> has it. Times are in ns from the capture's start.

    args: A dictionary, or a list. A shape in a list is (dim, ...). more: The arguments beside a
    list of shapes.

    bytes: Of kind "memory", the bytes that were allocated, or below 0 those that were freed.
    device: DLPack's code of the device, of kind "memory" that of the pool's.

    launch: Of the device's side of a scope, the thread and the start of the host's scope. Thread -1
    is not in the trace.

    is_call: A call of a vendor's interface, as its own tracing recorded it. What it launched
    belongs to the scope around the call.

    frame: How a traced function is shown in stacks. place: "file.c:12", if known.

    is_async: Its time is no thread's own, for example because it ended on another thread.

    is_skipped: A jump left it, and an older block ended it."""

    kind: str
    name: str
    category: str
    start_ns: int
    duration_ns: int
    self_ns: int
    depth: int
    thread: int
    level: int
    args: Any
    id: int
    value: float
    bytes: int
    device: int
    more: Dict[str, Any]
    device_index: int = 0
    launch: Optional[Tuple[int, int]] = None
    is_call: bool = False
    frame: str = ""
    is_async: bool = False
    place: str = ""
    is_skipped: bool = False


def is_function(category: str, name: str) -> bool:
    """Is it a traced function? A module's call does not count as one: users who request modules
    want to see their calls."""
    return category in FUNCTIONS and not name.startswith(MODULE)


def is_told_by_place(category: str) -> bool:
    """Whether the place distinguishes functions of that category. The interpreter or the compiler
    named them: two lambdas have one name."""
    return category in FUNCTIONS or category == "function"


_CODES = {
    ctypes.c_uint32: "I",
    ctypes.c_int32: "i",
    ctypes.c_uint64: "Q",
    ctypes.c_int64: "q",
    ctypes.c_double: "d",
    ctypes.c_void_p: "P",
}


def _codes(kind: Any, before: str = "") -> str:
    """struct's format of a struct's fields up to that one."""
    found = ""
    for name, of, *_ in kind._fields_:
        if name == before:
            break
        found += _CODES[of] if of in _CODES else _codes(of)
    return found


HEAD = struct.Struct("@" + _codes(s.Event, "of"))
"""A prof_event up to what depends on its kind."""
ARG = struct.Struct("@" + _codes(s.TraceArg, "value") + "PQ")
"""A prof_trace_arg, its value as a text's: a pointer or 64 bits, and 64 more."""
_REAL, _SIGNED, _RANK = struct.Struct("@d"), struct.Struct("@q"), struct.Struct("@I")
_ARGS, _ARG_BYTES, _VALUE, _SECOND = (
    s.Event.args.offset,
    ctypes.sizeof(s.TraceArg),
    s.TraceArg.value.offset,
    s.TraceArg.value.offset + 8,
)
_DIMS = [struct.Struct(f"@{rank}q") for rank in range(17)]


class _SiteTexts(NamedTuple):
    """What the events of a site share. The name of an event whose name was made for it alone is at
    another address."""

    name_at: int
    category_at: int
    name: str
    category: str
    frame: str
    place: str


class _Reader:
    """Keeps what was read of one trace. Events that have the same text or shape share it. What
    belongs to a call site is found by the site's number."""

    def __init__(self, trace: ctypes.c_void_p, event: s.Event) -> None:
        self.trace = trace
        self.bytes = memoryview(event).cast("B")
        self.texts: Dict[bytes, str] = {}
        self.text_bytes = 0
        self.shapes: Dict[bytes, Tuple[int, ...]] = {}
        self.frames: Dict[int, str] = {}
        self.site = sized(s.TraceSite)

    def text(self, pointer: int, count: int) -> str:
        if not (pointer and count):
            return ""
        raw = string_at(pointer, count)
        found = self.texts.get(raw)
        if found is None:
            self.text_bytes += count
            if len(self.texts) >= _TEXTS_MOST or self.text_bytes > _TEXT_BYTES_MOST:
                self.texts.clear()
                self.text_bytes = count
            found = self.texts[raw] = raw.decode(errors="replace")
        return found

    def frame(self, site: int) -> str:
        """Of a traced function."""
        if site not in self.frames:
            self.frames[site] = C.asked(C.prof_trace_frame_text, self.trace, site)
        return self.frames[site]

    def place(self, site: int, category: str) -> str:
        """The file and line of the site, or "". A function of C that Python calls has no file: its
        site has the interpreter's text for it instead."""
        if not site or category == "c_function":
            return ""
        C.check(C.prof_trace_site_get(self.trace, site, ctypes.byref(self.site)))
        return (
            f"{self.text(self.site.file, self.site.file_bytes)}:{self.site.line}"
            if self.site.file_bytes
            else ""
        )

    def site_texts(
        self, site: int, name_at: int, category_at: int, name_bytes: int, category_bytes: int
    ) -> _SiteTexts:
        name, category = self.text(name_at, name_bytes), self.text(category_at, category_bytes)
        frame = self.frame(site) if category in FUNCTIONS else ""
        return _SiteTexts(name_at, category_at, name, category, frame, self.place(site, category))

    def observed(self, site: int) -> int:
        """The properties in a PyTorch operator's site (src/format/layout.h), or 0."""
        if not site:
            return 0
        C.check(C.prof_trace_site_get(self.trace, site, ctypes.byref(self.site)))
        return 0 if self.site.file_bytes else int(self.site.line) & ~OBSERVED

    def args(self, kind: int, count: int) -> Tuple[Any, Dict[str, Any]]:
        """An Event's args and more."""
        pairs = [self._arg(_ARGS + i * _ARG_BYTES) for i in range(count)]
        if kind == 0:
            return dict(pairs), {}
        return [value for key, value in pairs if not key], {
            key: value for key, value in pairs if key
        }

    def _arg(self, at: int) -> Tuple[str, Any]:
        key, key_bytes, kind, word, more = ARG.unpack_from(self.bytes, at)
        return self.text(key, key_bytes) if key_bytes else "", self._value(kind, word, more, at)

    def _value(self, kind: int, word: int, more: int, at: int) -> Any:
        if kind == 5:
            return self.text(word, more)
        if kind == 1:
            return _SIGNED.unpack_from(self.bytes, at + _VALUE)[0]
        if kind == 2 or kind == 6:
            return word
        if kind == 3:
            return _REAL.unpack_from(self.bytes, at + _VALUE)[0]
        if kind == 4:
            return bool(word)
        return (
            self._dims(word, _RANK.unpack_from(self.bytes, at + _SECOND)[0]) if more else NO_TENSOR
        )

    def _dims(self, pointer: int, rank: int) -> Tuple[int, ...]:
        if not rank:
            return ()
        raw = string_at(pointer, rank * 8)
        found = self.shapes.get(raw)
        if found is None:
            if len(self.shapes) >= _TEXTS_MOST:
                self.shapes.clear()
            found = self.shapes[raw] = (
                _DIMS[rank] if rank < len(_DIMS) else struct.Struct(f"@{rank}q")
            ).unpack(raw)
        return found


_BATCH = 4096


def _brief_format() -> str:
    """struct's format of what BRIEF has. It skips the members between."""
    fields = (
        *(("record", "Q"), ("kind", "I"), ("thread", "I"), ("start_ns", "Q"), ("duration_ns", "Q")),
        *(("self_ns", "Q"), ("depth", "I"), ("site", "I"), ("flags", "I")),
        *(("name", "Q"), ("category", "Q"), ("name_bytes", "II"), ("device", "ii")),
        *(("arg_count", "I"), ("of", "QQQ")),
    )
    parts, at = [], 0
    for name, code in fields:
        offset = getattr(s.EventBrief, name).offset
        parts.append(f"{offset - at}x{code}")
        at = offset + struct.calcsize(f"={code}")
    return f"={''.join(parts)}{ctypes.sizeof(s.EventBrief) - at}x"


BRIEF = struct.Struct(_brief_format())
"""Fields of a prof_event_brief, in this order: record, kind, thread, start_ns, duration_ns,
self_ns, depth, site, flags, name, category, bytes of both, type and index of the device, arg_count.
Three words follow that depend on the kind. Of memory these are verb and pool, address, bytes. Of a
launch they are start_ns, thread and record, device_start_ns."""


@contextlib.contextmanager
def _cursor(trace: ctypes.c_void_p) -> Iterator[ctypes.c_void_p]:
    cursor = ctypes.c_void_p()
    C.check(C.prof_cursor_create(trace, ctypes.byref(cursor)))
    try:
        yield cursor
    finally:
        C.prof_cursor_destroy(cursor)


class Briefs:
    """The events of a trace without their arguments, which are read on request. The trace is in use
    as long as this object lives, even if it is closed. Any thread."""

    def __init__(self, shared: Any, from_ns: int = 0) -> None:
        """from_ns: what ended before may be left out."""
        self.pointer, self._from_ns = shared.__enter__(), from_ns
        self._shared = shared
        self._texts = _Reader(self.pointer, s.Event())
        self.arguments = Reader(self.pointer)

    def __del__(self) -> None:
        try:
            self._shared.__exit__()
        except Exception:  # the trace was closed before, or the interpreter ends
            pass

    def __iter__(self) -> Iterator[Tuple[Any, ...]]:
        """What BRIEF has, event by event."""
        batch = (s.EventBrief * _BATCH)()
        batch[0].size = ctypes.sizeof(s.EventBrief)
        raw = memoryview(batch).cast("B")
        with _cursor(self.pointer) as cursor:
            C.check(C.prof_cursor_skip_before(cursor, self._from_ns))
            while True:
                count = C.prof_cursor_read(cursor, batch, _BATCH)
                if count <= 0:
                    C.check(count)
                    return
                yield from BRIEF.iter_unpack(raw[: count * BRIEF.size])

    def text(self, at: int, count: int) -> str:
        return self._texts.text(at, count)

    def place(self, site: int, category: str) -> Tuple[str, str]:
        """Frame and place of a call site."""
        reader = self._texts
        return reader.frame(site) if category in FUNCTIONS else "", reader.place(site, category)

    def record_scope(self, site: int, category: str) -> int:
        """at::RecordScope of the scopes of that site."""
        found = self._texts.observed(site) if category in TORCHS else 0
        return found & RECORD_SCOPE or (USER_SCOPE if category == "user_annotation" else 0)


def _launch_of(event: s.Event) -> Tuple[int, int]:
    of = event.launch
    return -1 if of.thread == NO_THREAD else of.thread, of.start_ns


def read(trace: ctypes.c_void_p) -> Iterator[Event]:
    """By thread, and inside a thread by start, outer scopes before the ones they hold. The trace
    must not be freed before the end."""
    event = s.Event()
    reader, place = _Reader(trace, event), ctypes.byref(event)
    next_event, unpack, raw, text = C.prof_cursor_next, HEAD.unpack_from, reader.bytes, reader.text
    make = tuple.__new__  # Event() would take twice as long
    sites: Dict[int, _SiteTexts] = {}
    with _cursor(trace) as cursor:
        while True:
            status = next_event(cursor, place)
            if status <= 0:
                C.check(status)
                return
            head = unpack(raw)
            kind, thread, start_ns, duration_ns, self_ns, depth, site, level, flags = head[:9]
            name_at, category_at, name_bytes, _ = head[9:13]
            device, device_index, _, number, value, args_kind, arg_count = head[13:20]
            known = sites.get(site)
            if known is None or known[1] != category_at:
                known = sites[site] = reader.site_texts(site, *head[9:13])
            known_at, _, name, category, frame, site_place = known
            if known_at != name_at:
                name = text(name_at, name_bytes)
            args, more = reader.args(args_kind, arg_count) if arg_count else (None, {})
            values = (
                KINDS.get(kind) or str(kind),
                name,
                category,
                start_ns,
                duration_ns,
                self_ns,
                depth,
                thread,
                level,
                args,
                number,
                value,
                _VERB_SIGNS.get(event.memory.verb, 0) * event.memory.bytes if kind == MEMORY else 0,
                device,
                more,
                device_index,
                _launch_of(event) if flags & ON_DEVICE else None,
                flags & CALL != 0,
                frame,
                flags & ASYNC != 0,
                site_place,
                flags & SKIPPED != 0,
            )
            yield make(Event, values)
