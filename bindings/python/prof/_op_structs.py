"""The structs of <prof/op.h>, as _structs.py has the others."""

from __future__ import annotations

from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)

from ._structs import Device, _Shown

OpCallback = CFUNCTYPE(c_int, c_void_p)
OpWorkspace = CFUNCTYPE(c_int, c_void_p, POINTER(c_uint64))
OpCleanup = CFUNCTYPE(None, c_void_p)


class Op(_Shown):
    _fields_ = [
        ("size", c_size_t),
        ("key", c_char_p),
        ("user", c_void_p),
        ("prepare", OpCallback),
        ("run", OpCallback),
        ("workspace", OpWorkspace),
        ("cleanup", OpCleanup),
        ("device", Device),
        ("driver", c_char_p),
        ("timer", c_void_p),
    ]


class OpStream(_Shown):
    _fields_ = [
        ("size", c_size_t),
        ("device", Device),
        ("stream", c_uint64),
        ("patience_ns", c_uint64),
        ("flush", OpCallback),
        ("user", c_void_p),
        ("cold", OpCallback),
    ]


class OpOptions(_Shown):
    _fields_ = [
        ("size", c_size_t),
        ("warmup", c_int32),
        ("exec", c_int32),
        ("repeat", c_int32),
        ("no_warmup", c_uint32),
        ("least_ns", c_uint64),
        ("time_limit_ns", c_uint64),
        ("precision", c_double),
        ("repeat_all", c_uint32),
        ("caches", c_uint32),
        ("no_reuse", c_uint32),
        ("reserved", c_uint32),
        ("timer", c_void_p),
        ("vendor_memory", c_uint32),
        ("open_meters", c_uint32),
    ]


class OpInfo(_Shown):
    _fields_ = [
        ("size", c_size_t),
        ("workspace_bytes", c_uint64),
        ("has_workspace", c_uint32),
        ("sample_count", c_uint32),
        ("exec", c_uint32),
        ("warmup", c_uint32),
        ("doubts", c_uint32),
        ("was_kept", c_uint32),
        ("file_status", c_int32),
        ("caches", c_uint32),
        ("device", Device),
        ("min_us", c_double),
        ("max_us", c_double),
        ("mean_us", c_double),
        ("stddev_us", c_double),
        ("median_us", c_double),
        ("median_low_us", c_double),
        ("median_high_us", c_double),
        ("confidence", c_double),
        ("q05_us", c_double),
        ("q25_us", c_double),
        ("q75_us", c_double),
        ("q95_us", c_double),
        ("q99_us", c_double),
        ("drift", c_double),
        ("low_mode_us", c_double),
        ("high_mode_us", c_double),
        ("high_mode_share", c_double),
        ("slowdown", c_double),
        ("outlier_share", c_double),
        ("timer_us", c_double),
        ("energy_uj", c_double),
        ("has_energy", c_uint32),
        ("workspace_source", c_uint32),
        ("workspace_status", c_int32),
        ("looks", c_uint32),
        ("throttle", c_uint32),
        ("is_device_warm", c_uint32),
        ("clock_low_hz", c_double),
        ("clock_high_hz", c_double),
    ]


class OpOverlap(_Shown):
    _fields_ = [
        ("size", c_size_t),
        ("alone_us", c_double),
        ("longest_us", c_double),
        ("group_us", c_double),
        ("gained", c_double),
        ("begin_us", c_double),
    ]


class OpComparison(_Shown):
    _fields_ = [
        ("size", c_size_t),
        ("order", c_uint32),
        ("doubts", c_uint32),
        ("is_paired", c_uint32),
        ("reserved", c_uint32),
        ("ratio", c_double),
        ("ratio_low", c_double),
        ("ratio_high", c_double),
    ]
