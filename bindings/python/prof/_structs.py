"""C's structs as ctypes has them, field for field; tests/python/test_layout.py compares each with
the headers."""

from __future__ import annotations

from ctypes import (
    CFUNCTYPE,
    POINTER,
    Array,
    Structure,
    Union,
    c_char,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any, List

LOSSES = 16


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return [_plain(v) for v in value] if isinstance(value, Array) else value


class _Shown(Structure):
    """A struct whose repr() has all members that mean something to a user."""

    def _names(self) -> List[str]:
        return [field[0] for field in self._fields_ if field[0] not in ("size", "reserved", "of")]

    def __repr__(self) -> str:
        members = (f"{name}={_plain(getattr(self, name))!r}" for name in self._names())
        return f"{type(self).__name__}({', '.join(members)})"


class Device(_Shown):
    """A device by DLPack's codes: type 1 is the CPU, 2 CUDA, 10 HIP; index 0 is the first of its
    type."""

    _fields_ = [("type", c_int32), ("index", c_int32)]


class Args(_Shown):
    """A scope's or an instant's arguments. items: an array of prof_arg."""

    _fields_ = [("items", c_void_p), ("count", c_uint32), ("kind", c_uint32), ("format", c_char_p)]


class Site(_Shown):
    """A call site. C writes to it, so that it has to live as long as it may be used."""

    _fields_ = [
        ("state", c_uint64),
        ("file", c_char_p),
        ("function", c_char_p),
        ("line", c_uint32),
        ("level", c_uint32),
        ("values", c_uint64),
    ]


class Details(_Shown):
    _fields_ = [
        ("name", c_char_p),
        ("category", c_char_p),
        ("name_bytes", c_uint32),
        ("category_bytes", c_uint32),
        ("flags", c_uint32),
        ("device", Device),
        ("reserved", c_uint32),
        ("stream", c_uint64),
        ("args", Args),
    ]


class Options(_Shown):
    _fields_ = [
        ("size", c_size_t),
        ("level", c_uint32),
        ("policy", c_uint32),
        ("path", c_char_p),
        ("cap_bytes", c_uint64),
        ("ring_ns", c_uint64),
        ("helper_thread", c_uint32),
        ("keep_capture", c_uint32),
        ("clock", c_uint32),
        ("budget_permille", c_uint32),
        ("budget_events", c_uint64),
        ("budget_action", c_uint32),
        ("devices", c_uint32),
    ]


class Metadata(_Shown):
    _fields_ = [("key", c_char_p), ("json", c_char_p)]


class DumpOptions(_Shown):
    _fields_ = [
        ("size", c_size_t),
        ("format", c_uint32),
        ("must_be_new", c_uint32),
        ("from_ns", c_uint64),
        ("to_ns", c_uint64),
        ("gzip", c_int32),
        ("metadata_count", c_uint32),
        ("metadata", POINTER(Metadata)),
        ("stacks", c_uint32),
        ("window_marks", c_uint32),
        ("no_memory", c_uint32),
        ("stack_folder_count", c_uint32),
        ("stack_folders", POINTER(c_char_p)),
    ]


class ArrowOptions(_Shown):
    _fields_ = [
        ("size", c_size_t),
        ("from_ns", c_uint64),
        ("to_ns", c_uint64),
        ("batch_rows", c_uint32),
        ("reserved", c_uint32),
    ]


class ArrowWish(_Shown):
    _fields_ = [
        ("size", c_size_t),
        ("options", POINTER(ArrowOptions)),
        ("filters", POINTER(c_char_p)),
        ("filter_count", c_size_t),
        ("counts", POINTER(c_uint64)),
    ]


class ArrowStream(_Shown):
    """ArrowArrayStream. Only C calls its functions. To move it, copy its bytes."""

    _fields_ = [
        ("get_schema", c_void_p),
        ("get_next", c_void_p),
        ("get_last_error", c_void_p),
        ("release", c_void_p),
        ("private_data", c_void_p),
    ]


class Health(_Shown):
    _fields_ = [
        ("size", c_size_t),
        ("recorded_count", c_uint64),
        ("lost_count", c_uint64 * LOSSES),
        ("deep_count", c_uint64),
        ("cut_text_count", c_uint64),
        ("arena_bytes", c_uint64),
        ("resident_bytes", c_uint64),
        ("cap_bytes", c_uint64),
        ("threads_seen_count", c_uint32),
        ("threads_alive_count", c_uint32),
        ("sites_count", c_uint32),
        ("policy", c_uint32),
        ("clock", c_uint32),
        ("clock_segments_count", c_uint32),
        ("ticks_per_ns", c_double),
        ("clock_error_ns", c_uint64),
        ("scope_cost_ns", c_double),
        ("chunk_changes_count", c_uint64),
        ("chunk_change_median_ns", c_uint64),
        ("chunk_change_p99_ns", c_uint64),
        ("chunk_change_max_ns", c_uint64),
        ("survives_kill", c_uint32),
        ("is_full", c_uint32),
        ("helper_thread", c_uint32),
        ("level", c_uint32),
        ("capture_path", c_char * 512),
        ("reason", c_char * 256),
        ("own_ns", c_uint64),
        ("muted_sites_count", c_uint32),
        ("changes_count", c_uint32),
        ("device_warning", c_char * 512),
        ("open_count", c_uint64),
        ("stray_count", c_uint64),
        ("own_least_ns", c_uint64),
        ("own_most_ns", c_uint64),
        ("is_own_sampled", c_uint32),
        ("reserved", c_uint32),
    ]


class TraceInfo(_Shown):
    _fields_ = [
        ("size", c_size_t),
        ("event_count", c_uint64),
        ("scope_count", c_uint64),
        ("open_count", c_uint64),
        ("lost_count", c_uint64 * LOSSES),
        ("bad_count", c_uint64),
        ("start_unix_ns", c_uint64),
        ("start_ns", c_uint64),
        ("duration_ns", c_uint64),
        ("clock_error_ns", c_uint64),
        ("clock_segments_count", c_uint32),
        ("pid", c_uint32),
        ("rank", c_int32),
        ("world_size", c_int32),
        ("thread_count", c_uint32),
        ("is_live", c_uint32),
        ("was_clean", c_uint32),
        ("level", c_uint32),
        ("policy", c_uint32),
        ("host", c_char * 64),
        ("process_name", c_char * 64),
        ("clock", c_uint32),
        ("is_elsewhere", c_uint32),
        ("own_ns", c_uint64),
        ("memory_limit_bytes", c_uint64),
        ("scope_cost_ns", c_double),
        ("cpu_limit", c_double),
        ("change_count", c_uint32),
        ("level_now", c_uint32),
        ("untold_change_count", c_uint64),
        ("clock_jump_count", c_uint32),
        ("wall_step_count", c_uint32),
        ("wall_step_ns", c_int64),
        ("clock_gap_ns", c_uint64),
        ("clock_back_count", c_uint64),
        ("is_copy", c_uint32),
        ("device_count", c_uint32),
        ("open_below_count", c_uint64),
        ("stray_count", c_uint64),
        ("note_count", c_uint32),
        ("is_own_apart", c_uint32),
        ("own_least_ns", c_uint64),
        ("own_most_ns", c_uint64),
        ("skipped_count", c_uint64),
        ("is_own_sampled", c_uint32),
        ("is_end_seen", c_uint32),
    ]


class TraceThread(_Shown):
    _fields_ = [
        ("size", c_size_t),
        ("tid", c_uint64),
        ("event_count", c_uint64),
        ("lost_count", c_uint64 * LOSSES),
        ("is_main", c_uint32),
        ("is_alive", c_uint32),
        ("name", c_char * 64),
        ("own_ns", c_uint64),
        ("is_stream", c_uint32),
        ("is_fiber", c_uint32),
        ("device", Device),
        ("stream", c_uint64),
    ]


class EventMemory(_Shown):
    _fields_ = [
        ("verb", c_uint32),
        ("pool", c_uint32),
        ("address", c_uint64),
        ("bytes", c_uint64),
        ("requested_bytes", c_uint64),
        ("used_bytes", c_int64),
        ("allocated_bytes", c_int64),
        ("wrong", c_uint32),
        ("tag_bytes", c_uint32),
        ("tag", c_void_p),
    ]


class _ArgText(_Shown):
    _fields_ = [("data", c_void_p), ("bytes", c_uint64)]


class _ArgTensor(_Shown):
    _fields_ = [("dims", POINTER(c_int64)), ("rank", c_uint32), ("dtype", c_uint32)]


class _ArgValue(Union):
    _fields_ = [
        ("i64", c_int64),
        ("u64", c_uint64),
        ("f64", c_double),
        ("text", _ArgText),
        ("tensor", _ArgTensor),
    ]


class TraceArg(_Shown):
    _fields_ = [
        ("key", c_void_p),
        ("key_bytes", c_uint32),
        ("type", c_uint32),
        ("value", _ArgValue),
    ]


class TraceDevice(_Shown):
    _fields_ = [
        ("size", c_size_t),
        ("device", Device),
        ("result", c_int32),
        ("is_emulated", c_uint32),
        ("scope_count", c_uint64),
        ("captured_count", c_uint64),
        ("clock_error_ns", c_uint64),
        ("is_clock_read", c_uint32),
        ("units", c_uint32),
        ("clock_khz", c_uint32),
        ("has_two_clocks", c_uint32),
        ("clock_step_count", c_uint64),
        ("early_count", c_uint64),
        ("early_ns", c_uint64),
        ("memory_bytes", c_uint64),
        ("uuid", c_uint8 * 16),
        ("name", c_char * 96),
        ("arch", c_char * 32),
        ("driver", c_char * 32),
        ("back_end", c_char * 32),
        ("reason", c_char * 160),
        ("record_count", c_uint64),
        ("records_late_ns", c_uint64),
    ]


class BackendState(_Shown):
    """A back end of devices: abilities are bits, 1 scopes, 2 clocks, 4 records, 8 meters, 16 its
    records' clock alone; result 0 says that it works, reason and advice why not and what to do."""

    _fields_ = [
        ("size", c_size_t),
        ("result", c_int32),
        ("device_type", c_int32),
        ("is_open", c_uint32),
        ("is_emulated", c_uint32),
        ("is_plugin", c_uint32),
        ("abilities", c_uint32),
        ("device_count", c_uint32),
        ("reserved", c_uint32),
        ("name", c_char * 32),
        ("version", c_char * 32),
        ("path", c_char * 512),
        ("reason", c_char * 256),
        ("advice", c_char * 256),
    ]


class SamplerOptions(_Shown):
    _fields_ = [
        ("size", c_size_t),
        ("interval_ns", c_uint64),
        ("devices", c_char_p),
        ("csv_path", c_char_p),
        ("mode", c_uint32),
        ("csv_is_live", c_uint32),
    ]


class SamplerState(_Shown):
    """The sampler: the meters that it reads, its samples since its start, and those that were due
    and not taken. Also the host's meters, or why it has none, and the meters left out. The state of
    the last file is `csv_status` (0: the file is there)."""

    _fields_ = [
        ("size", c_size_t),
        ("is_running", c_uint32),
        ("meter_count", c_uint32),
        ("sample_count", c_uint64),
        ("missed_count", c_uint64),
        ("why_not", c_char * 192),
        ("host_meters", c_char * 128),
        ("left_out_count", c_uint32),
        ("csv_status", c_int32),
        ("csv_error", c_char * 256),
    ]


class EventLaunch(_Shown):
    _fields_ = [
        ("start_ns", c_uint64),
        ("thread", c_uint32),
        ("record", c_uint32),
        ("device_start_ns", c_uint64),
        ("device_end_ns", c_uint64),
    ]


class _EventOf(Union):
    """By the event's kind."""

    _fields_ = [("memory", EventMemory), ("launch", EventLaunch)]


ARGS_MAX = 16


class Event(_Shown):
    _anonymous_ = ("of",)
    _fields_ = [
        ("kind", c_uint32),
        ("thread", c_uint32),
        ("start_ns", c_uint64),
        ("duration_ns", c_uint64),
        ("self_ns", c_uint64),
        ("depth", c_uint32),
        ("site", c_uint32),
        ("level", c_uint32),
        ("flags", c_uint32),
        ("name", c_void_p),
        ("category", c_void_p),
        ("name_bytes", c_uint32),
        ("category_bytes", c_uint32),
        ("device", Device),
        ("stream", c_uint64),
        ("id", c_uint64),
        ("value", c_double),
        ("args_kind", c_uint32),
        ("arg_count", c_uint32),
        ("format", c_void_p),
        ("format_bytes", c_uint32),
        ("reserved", c_uint32),
        ("of", _EventOf),
        ("args", TraceArg * ARGS_MAX),
    ]


class EventBrief(_Shown):
    """An Event without its arguments."""

    _anonymous_ = ("of",)
    _fields_ = [("size", c_size_t), ("record", c_void_p), *Event._fields_[:-1]]


class AggregateOptions(_Shown):
    _fields_ = [
        ("size", c_size_t),
        ("group", c_uint32),
        ("sort", c_uint32),
        ("rows_limit", c_uint32),
        ("level", c_uint32),
        ("category", c_char_p),
        ("time_unit", c_uint32),
        ("stack_frames", c_uint32),
        ("from_ns", c_uint64),
        ("to_ns", c_uint64),
        ("leave_out", c_uint32),
        ("rules", c_uint32),
        ("text_width", c_uint32),
    ]


class Row(_Shown):
    _fields_ = [
        ("name", c_char_p),
        ("category", c_char_p),
        ("shape", c_char_p),
        ("stack", c_char_p),
        ("device", Device),
        ("thread", c_uint32),
        ("level", c_uint32),
        ("calls_count", c_uint64),
        ("total_ns", c_uint64),
        ("self_ns", c_uint64),
        ("min_ns", c_uint64),
        ("max_ns", c_uint64),
        ("median_ns", c_uint64),
        ("p99_ns", c_uint64),
        ("memory_bytes", c_int64),
        ("self_memory_bytes", c_int64),
        ("device_memory_bytes", c_int64),
        ("self_device_memory_bytes", c_int64),
        ("device_total_ns", c_uint64),
        ("self_device_ns", c_uint64),
        ("device_count", c_uint64),
        ("is_async", c_uint32),
        ("reserved", c_uint32),
    ]


class Rows(_Shown):
    _fields_ = [
        ("rows", POINTER(Row)),
        ("row_count", c_uint64),
        ("all_row_count", c_uint64),
        ("total_self_ns", c_uint64),
        ("calls_count", c_uint64),
        ("has_memory", c_uint32),
        ("has_device_memory", c_uint32),
        ("total_self_device_ns", c_uint64),
        ("has_device", c_uint32),
        ("reserved", c_uint32),
        ("open_count", c_uint64),
        ("all_self_ns", c_uint64),
        ("outside_memory_count", c_uint64),
        ("outside_memory_first_ns", c_uint64),
        ("outside_memory_bytes", c_int64),
        ("outside_device_memory_bytes", c_int64),
        ("skipped_count", c_uint64),
    ]


class TraceSite(_Shown):
    """A call site: texts and their lengths."""

    _fields_ = (
        [("size", c_size_t)]
        + [(name, c_void_p) for name in ("name", "category", "file", "function")]
        + [
            (name, c_uint32)
            for name in (
                "name_bytes",
                "category_bytes",
                "file_bytes",
                "function_bytes",
                "line",
                "level",
            )
        ]
    )


class ViewWish(_Shown):
    """The thread of a view: prof_i_view_wish of <prof/python.h>."""

    _fields_ = [
        ("size", c_size_t),
        ("number", c_uint32),
        ("hides_functions", c_uint32),
        ("hides_modules", c_uint32),
        ("reserved", c_uint32),
        ("others", POINTER(c_uint64)),
        ("other_count", c_size_t),
    ]


class RowMore(_Shown):
    """What else is known of a row: its place in the source, the scopes that have not ended, and the
    time of all calls. That includes inner calls of a recursion."""

    _fields_ = [
        ("size", c_size_t),
        ("file", c_char_p),
        ("line", c_uint32),
        ("has_more_places", c_uint32),
        ("calls_ns", c_uint64),
        ("calls_device_ns", c_uint64),
        ("open_count", c_uint64),
        ("open_ns", c_uint64),
        ("child_count", c_uint64),
        ("inner_count", c_uint64),
        ("self_net_ns", c_uint64),
        ("total_net_ns", c_uint64),
        ("first_ns", c_uint64),
        ("outer_count", c_uint64),
        ("skipped_count", c_uint64),
        ("is_crosswise", c_uint32),
        ("has_process", c_uint32),
        ("process_pid", c_int64),
        ("process_name", c_char_p),
        ("record_scope", c_uint32),
        ("process_rank", c_int32),
    ]


class MemoryTextOptions(_Shown):
    _fields_ = [
        ("size", c_size_t),
        ("width", c_uint32),
        ("rows_limit", c_uint32),
        ("pool", c_uint32),
        ("ascii", c_uint32),
    ]


class MemoryMax(_Shown):
    _fields_ = [
        ("size", c_size_t),
        ("used_bytes", c_uint64),
        ("allocated_bytes", c_uint64),
        ("max_used_bytes", c_uint64),
        ("max_allocated_bytes", c_uint64),
        ("collection_count", c_uint64),
        ("max_used_mb", c_double),
        ("max_allocated_mb", c_double),
        ("source", c_uint32),
        ("pool_count", c_uint32),
        ("has_allocated", c_uint32),
        ("reserved", c_uint32),
    ]


MemoryQuery = CFUNCTYPE(c_int, c_void_p, POINTER(c_uint64), POINTER(c_uint64))


class PoolOptions(_Shown):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("device", Device),
        ("query", MemoryQuery),
        ("user", c_void_p),
        ("checked", c_uint32),
        ("reserved", c_uint32),
    ]
