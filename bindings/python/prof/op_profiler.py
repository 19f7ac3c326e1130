"""RAF's operator profiler, and prof's own: what one operator costs, in us, its workspace in bytes,
and whether to believe it (<prof/op.h>)."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
from typing import Any, Callable, Dict, Generator, Iterator, List, Optional, Sequence, Tuple, Union

from . import _keys, _op_structs
from . import _structs as s
from . import device as _device
from ._library import C, Owner, encoded, short, sized, whole
from ._own_calls import calls_program
from .device import Device
from .memory_profiler import Number

DOUBTS = {
    1: "not converged",
    2: "noisy",
    4: "drifting",
    8: "two modes",
    16: "throttled",
    32: "too short for the timer",
    64: "time over",
    128: "few samples",
    256: "device throttled",
}
WORKSPACE_SOURCES = ("unknown", "said", "told", "vendor")
OPS_MOST = 1024  # in turn
WORKSPACE_MOST = 1 << 56  # bytes: no device has more
ORDERS = ("unclear", "same", "faster", "slower")
_CFunction: Any = getattr(ctypes, "_CFuncPtr")  # noqa: B009 (typeshed does not know it)


class Op:
    """An operator: a callable and its arguments. It can also be a C function ``int f(void *user)``
    by ctypes, which is then called without Python in between.

    The callables prepare and cleanup are called once, before and after. The callable workspace
    gives the workspace's bytes, and is part of the key.

    Without a key it is known by the callable and by its arguments. A function is known by its name
    and code, an object by itself. Arrays are known by dtype and shape, plain values by what they
    are. What a function calls is not part of it: give a key, or no_reuse, when that has changed."""

    def __init__(
        self,
        function: Any,
        *args: Any,
        key: Optional[str] = None,
        prepare: Optional[Callable[[], Any]] = None,
        cleanup: Optional[Callable[[], Any]] = None,
        workspace: Optional[Callable[[], int]] = None,
        user: Any = None,
        **kwargs: Any,
    ) -> None:
        if not callable(function):
            raise TypeError(f"an operator is something to call, not {short(function)}")
        self.function, self.args, self.kwargs = function, args, kwargs
        self.prepare, self.cleanup, self.workspace, self.user = prepare, cleanup, workspace, user
        self.key = key if key is not None else _keys.of(function, args, kwargs)
        if key is None and workspace is not None:  # a result that is kept has its bytes
            self.key += f" with workspace {_keys.of(workspace, (), {})}"
        self.error: Optional[BaseException] = None

    def __repr__(self) -> str:
        given = [
            name for name in ("prepare", "cleanup", "workspace") if getattr(self, name) is not None
        ]
        return f"<Op {self.key}{', with ' if given else ''}{', '.join(given)}>"

    def _guard(self, call: Callable[[], Any]) -> Callable[[Any], int]:
        """What C may call with one argument: the send() of a generator that waits inside its
        ``try``. A function would be entered before its ``try`` is, and a signal's handler that
        raises there raises into C, where it is lost."""
        loop = self._loop(call)
        next(loop)
        return loop.send

    @calls_program
    def _loop(self, call: Callable[[], Any]) -> Generator[int, Any, None]:
        try:
            yield 0
            while True:
                call()
                yield 0
        except GeneratorExit:  # nobody calls it any longer
            return
        except BaseException as e:  # C code is between here and who asked: it is raised there
            self.error = e
        while True:
            yield 1

    def _for_c(self, device: s.Device) -> _op_structs.Op:
        op = sized(_op_structs.Op, key=encoded(self.key, "key"), device=device, user=self.user)
        if isinstance(self.function, _CFunction) and not self.args and not self.kwargs:
            op.run = ctypes.cast(self.function, _op_structs.OpCallback)
        else:
            function, args, kwargs = self.function, self.args, self.kwargs
            op.run = _op_structs.OpCallback(
                self._guard(functools.partial(function, *args, **kwargs))
            )
        if self.prepare is not None:
            op.prepare = _op_structs.OpCallback(self._guard(self.prepare))
        if self.workspace is not None:
            workspace = self.workspace

            @calls_program
            def tell(_: Any, bytes_out: Any) -> int:
                try:
                    bytes_out[0] = whole(workspace(), "workspace", 0, WORKSPACE_MOST)
                    return 0
                except BaseException as e:
                    self.error = e
                    return 1

            op.workspace = _op_structs.OpWorkspace(tell)
        if self.cleanup is not None:
            op.cleanup = _op_structs.OpCleanup(self._guard(self.cleanup))
        return op


class Result(Owner):
    """What a measurement found. Fields of prof_op_info are attributes: median_us, median_low_us,
    mean_us, workspace_bytes, ..."""

    def __init__(self, pointer: ctypes.c_void_p, key: str) -> None:
        self._pointer = pointer
        self.key = key
        self.info = sized(_op_structs.OpInfo)
        C.check(C.prof_op_info_get(pointer, ctypes.byref(self.info)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("info", "key"):
            raise AttributeError(name)
        names = self.info._names()
        if name in names:
            return getattr(self.info, name)
        from difflib import get_close_matches

        near = get_close_matches(name, [*names, "samples", "doubts", "key"], 1)
        raise AttributeError(
            f"a Result has no attribute {name!r}{f'; did you mean {near[0]!r}?' if near else ''}"
        )

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self.info._names()]

    @property
    def samples(self) -> List[float]:
        """us a run, in the order in which they were taken."""
        count = ctypes.c_size_t()
        found = C.prof_op_samples(self._pointer, ctypes.byref(count))
        return list(found[: count.value])

    @property
    def doubts(self) -> List[str]:
        """Why it is not to be believed as it stands; empty: it is."""
        return [text for bit, text in DOUBTS.items() if self.info.doubts & bit]

    @property
    def workspace_source(self) -> str:
        """How workspace_bytes is known: "said" by the Op, "told" by its allocator, by the
        "vendor"'s library (vendor_memory=1); "unknown"."""
        return WORKSPACE_SOURCES[self.info.workspace_source]

    def __str__(self) -> str:
        room = ctypes.create_string_buffer(512)
        C.prof_op_text(self._pointer, room, len(room))
        return room.value.decode(errors="replace")

    def __repr__(self) -> str:
        return f"<Result {self.key}: {self}>"

    def __del__(self) -> None:
        try:
            C.prof_op_result_destroy(self._pointer)
        except Exception:  # the interpreter ends
            pass


_WHY = {
    1: "had not converged",
    2: "was noisy",
    4: "was drifting",
    8: "had two modes",
    16: "was throttled",
    32: "was too short for the timer",
    64: "ran out of time",
    128: "had few samples",
    256: "had its device throttled",
}


def _times(ratio: float) -> str:
    return f"{ratio:#.4g}".rstrip(".")


class Comparison:
    """The second against the first: order is "faster", "slower", "same" or "unclear"; ratio is
    second to first, with its interval of 95 %."""

    def __init__(
        self, found: _op_structs.OpComparison, first_doubts: int = 0, second_doubts: int = 0
    ) -> None:
        self.order = ORDERS[found.order]
        self.ratio, self.ratio_low, self.ratio_high = found.ratio, found.ratio_low, found.ratio_high
        self.is_paired = bool(found.is_paired)
        self.doubts = [text for bit, text in DOUBTS.items() if found.doubts & bit]
        self._why = [
            f"the {who} {text}"
            for who, doubts in (("first", first_doubts), ("second", second_doubts))
            for bit, text in _WHY.items()
            if found.doubts & doubts & bit
        ]

    def __str__(self) -> str:
        """Which one takes how long, and, if that is unclear, why: "unclear: the second takes 31.16
        times as long (31.10 to 31.23), but the first was drifting"."""
        has_interval = math.isfinite(self.ratio_high)
        text = (
            f"{self.order}: the second takes {_times(self.ratio)} times as long "
            f"({_times(self.ratio_low)} to {_times(self.ratio_high)})"
            if has_interval
            else f"{self.order}: the second takes {_times(self.ratio)} times as long"
        )
        if self.order != "unclear":
            return text
        unknown = "both are possible" if has_interval else "there are too few samples"
        return f"{text}, but {' and '.join(self._why) or unknown}"

    def __repr__(self) -> str:
        return f"<{self}>"


def _op(what: Any) -> Op:
    return what if isinstance(what, Op) else Op(what)


def _raise(ops: Sequence[Op], status: int) -> None:
    for op in ops:
        error, op.error = op.error, None
        if error is not None:
            raise error
    C.check(status)


@contextlib.contextmanager
def _timed(
    op: Op,
    for_c: _op_structs.Op,
    stream: Optional[int],
    flush: Optional[Callable[[], Any]] = None,
    cold: Optional[Callable[[], Any]] = None,
) -> Iterator[None]:
    """Of a stream: by the device's own clock."""
    if stream is None:
        if flush is not None or cold is not None:
            raise TypeError(
                f"{'flush' if flush is not None else 'cold'} is a stream's: give stream, too"
            )
        yield
        return
    of = sized(
        _op_structs.OpStream, device=for_c.device, stream=whole(stream, "stream", 0, (1 << 64) - 1)
    )
    if flush is not None:
        of.flush = _op_structs.OpCallback(op._guard(flush))
    if cold is not None:
        of.cold = _op_structs.OpCallback(op._guard(cold))
    timer = ctypes.c_void_p()
    C.check(C.prof_op_timer_create(ctypes.byref(of), ctypes.byref(timer)))
    try:
        for_c.timer = timer
        yield
    finally:
        C.prof_op_timer_destroy(timer)


def _options(
    warmup: Optional[int], exec: Optional[int], repeat: Optional[int], more: Dict[str, Any]
) -> _op_structs.OpOptions:
    for name, value in (("warmup", warmup), ("exec", exec), ("repeat", repeat)):
        if value is not None and not isinstance(value, int):
            raise TypeError(f"{name} must be an int, not {short(value)}")
        if value is not None and not 0 <= value < 1 << 31:
            raise ValueError(f"{name} must be 0 or more, not {short(value)}")
    given = dict(more)
    for name, value in more.items():
        if name == "caches":
            if value not in ("warm", "cold"):
                raise ValueError(f"caches must be 'warm' or 'cold', not {short(value)}")
            given[name] = int(value == "cold")
        elif name == "time_limit_s":
            given["time_limit_ns"] = int(_real(given.pop(name), name, 0, 1e9) * 1e9)
        elif name == "precision":
            given[name] = _real(value, name, 0, 1)
        elif name in (
            "least_ns",
            "time_limit_ns",
            "repeat_all",
            "no_reuse",
            "vendor_memory",
            "open_meters",
        ):
            given[name] = whole(value, name, 0, (1 << 64) - 1 if name.endswith("_ns") else 1)
        else:
            raise TypeError(f"unexpected argument {name!r}")
    return sized(
        _op_structs.OpOptions,
        warmup=warmup or 0,
        exec=exec or 0,
        repeat=repeat or 0,
        no_warmup=int(warmup == 0),
        **given,
    )


def _real(value: Any, name: str, least: float, most: float) -> float:
    if isinstance(value, str):
        raise TypeError(f"{name} must be a number, not {short(value)}")
    try:
        number = float(value)
    except (TypeError, OverflowError):
        raise TypeError(f"{name} must be a number, not {short(value)}") from None
    if not least <= number <= most:
        raise ValueError(f"{name} must be from {least:g} to {most:g}, not {short(value)}")
    return number


def profile(
    op: Any,
    device: Union[Device, str] = "cpu",
    *,
    warmup: Optional[int] = None,
    exec: Optional[int] = None,
    repeat: Optional[int] = None,
    stream: Optional[int] = None,
    flush: Optional[Callable[[], Any]] = None,
    cold: Optional[Callable[[], Any]] = None,
    **more: Any,
) -> Result:
    """Measures an Op or a callable until its median is known to 1 %, or a limit is reached. A kept
    result of the same key and options is handed out again. What the callable raises is raised.

    stream: What the callable enqueues on, a number as C has it (of OpenCL, a cl_command_queue's
    address). The device itself then measures the time. Without it the host measures. A Python
    callable's time then includes the way from C to Python, about 1 us.

    flush: Sends what is on the stream to the device, if a driver needs that.

    cold: Enqueues what writes over the device's caches, before each sample of caches="cold".
    Without it only the host's caches are cold, and the result's is_device_warm is 1.

    More: time_limit_s (1), precision (0.01), caches ("warm" or "cold"), no_reuse, repeat_all,
    least_ns, vendor_memory, open_meters.

    vendor_memory=1: The workspace is what CUDA hands out in the first run, by CUPTI.

    open_meters=1: Opens NVML, to see whether the device is throttled."""
    what = _op(op)
    for_c, out = what._for_c(_device.of(device)), ctypes.c_void_p()
    options = _options(warmup, exec, repeat, more)
    with _timed(what, for_c, stream, flush, cold):
        _raise(
            [what], C.prof_op_profile(ctypes.byref(for_c), ctypes.byref(options), ctypes.byref(out))
        )
    return Result(out, what.key)


def profile_in_turn(
    ops: Sequence[Any],
    device: Union[Device, str] = "cpu",
    *,
    warmup: Optional[int] = None,
    exec: Optional[int] = None,
    repeat: Optional[int] = None,
    stream: Optional[int] = None,
    flush: Optional[Callable[[], Any]] = None,
    cold: Optional[Callable[[], Any]] = None,
    **more: Any,
) -> List[Result]:
    """Several in alternation, for compare(): 1 to 1024. stream, flush, cold: as profile()'s, one
    stream for all. ValueError."""
    all_ops = [_op(o) for o in ops]
    if not 1 <= len(all_ops) <= OPS_MOST:
        raise ValueError(f"profile_in_turn() takes 1 to {OPS_MOST} operators, not {len(all_ops)}")
    for_c = (_op_structs.Op * len(all_ops))(*[o._for_c(_device.of(device)) for o in all_ops])
    out = (ctypes.c_void_p * len(all_ops))()
    options = _options(warmup, exec, repeat, more)
    with contextlib.ExitStack() as timers:
        for o, one in zip(all_ops, for_c):
            timers.enter_context(_timed(o, one, stream, flush, cold))
        _raise(all_ops, C.prof_op_profile_in_turn(for_c, len(all_ops), ctypes.byref(options), out))
    return [Result(ctypes.c_void_p(p), o.key) for p, o in zip(out, all_ops)]


def compare(first: Result, second: Result, threshold: float = 0.02) -> Comparison:
    """Is the second faster? threshold is the share that does not matter. TypeError for anything but
    Results, ValueError for results of different caches."""
    if not isinstance(first, Result) or not isinstance(second, Result):
        raise TypeError(
            f"compare() takes two Results, of profile() or profile_in_turn(), not {short(first)} "
            f"and {short(second)}"
        )
    found = sized(_op_structs.OpComparison)
    C.check(
        C.prof_op_compare(
            first._pointer,
            second._pointer,
            _real(threshold, "threshold", 0, 1),
            ctypes.byref(found),
        )
    )
    return Comparison(found, first.info.doubts, second.info.doubts)


def open_cache(path: Optional[str]) -> None:
    """Results are kept in this SQLite file, too, for other processes; None: no longer."""
    C.check(C.prof_op_cache_open(None if path is None else encoded(path, "path")))


# ---- RAF's names ----


def _positive(**counts: int) -> None:
    for name, value in counts.items():
        if not isinstance(value, int):
            raise TypeError(f"{name} must be an int, not {short(value)}")
        if value < (0 if name == "warmup" else 1):
            raise ValueError(
                f"{name} must be {0 if name == 'warmup' else 1} or more, not {short(value)}"
            )


def _is_nothing(expr: Any) -> bool:
    """Whether there is nothing to run, as in RAF of a variable or a tuple."""
    return not isinstance(expr, Op) and not callable(expr)


def Profile(  # noqa: N802
    expr: Any,
    device: Union[Device, str] = "cpu",
    warmup: int = 10,
    exec_number: int = 10,
    repeat: int = 1,
) -> Dict[str, Any]:
    """Measures one operator, as RAF's Profile().

    Returns {"latency": `repeat` samples in us, "workspace_size": bytes}. A sample is the mean of
    `exec_number` runs. All are floats that also have ``.value``. `expr` is a callable or an Op. Of
    anything else there is nothing to run: its times and its workspace are 0.0, and no result is
    kept. Other results are kept by key, device and counts. What `expr` raises is raised.
    ValueError, TypeError. Any thread; two measurements at once disturb each other."""
    _positive(warmup=warmup, exec_number=exec_number, repeat=repeat)
    _device.of(device)  # it is checked for nothing as well
    if _is_nothing(expr):
        return {"latency": [Number(0)] * repeat, "workspace_size": Number(0)}
    result = profile(
        expr,
        device,
        warmup=warmup,
        exec=exec_number,
        repeat=repeat,
        repeat_all=1,
        time_limit_ns=(1 << 63),
    )
    return _latency(result)


def _latency(result: Result) -> Dict[str, Any]:
    times = [Number(x) for x in result.samples]
    return {"latency": times, "workspace_size": Number(result.workspace_bytes)}


class _Groups:
    """Results of ProfileGroup() that are kept: the 1024 that were used last. Any thread."""

    MOST = 1024

    def __init__(self) -> None:
        self._kept: Dict[Tuple[Any, ...], Dict[str, Any]] = {}
        """By device type, index, and what else was asked for. The one used last is last."""

    def find(self, key: Tuple[Any, ...]) -> Optional[Dict[str, Any]]:
        found = self._kept.pop(key, None)
        if found is not None:
            self._kept[key] = found
        return found

    def keep(self, key: Tuple[Any, ...], result: Dict[str, Any]) -> None:
        self._kept[key] = result
        for old in list(self._kept)[: -self.MOST]:
            self._kept.pop(old, None)

    def _of(self, device: Union[Device, str, None]) -> List[Tuple[Any, ...]]:
        if device is None:
            return list(self._kept)
        where = _device.of(device)
        return [key for key in list(self._kept) if key[:2] == (where.type, where.index)]

    def count(self, device: Union[Device, str, None]) -> int:
        return len(self._of(device))

    def forget(self, device: Union[Device, str, None]) -> None:
        for key in self._of(device):
            self._kept.pop(key, None)


_groups = _Groups()


def _streams(stream_ids: Sequence[int], count: int) -> List[int]:
    """One for each member. -1 is the default stream, as in RAF."""
    streams = [whole(stream, "stream", -1, (1 << 64) - 1) for stream in stream_ids] or [-1] * count
    if len(streams) != count:
        raise ValueError(f"a group of {count} has a stream for each, not {len(streams)}")
    return streams


def _measure_group(
    ops: Sequence[Op], where: s.Device, streams: Sequence[int], options: _op_structs.OpOptions
) -> Dict[str, Any]:
    for_c = (_op_structs.Op * len(ops))(*[o._for_c(where) for o in ops])
    has_streams = where.type != _device.TYPES["cpu"] and any(stream >= 0 for stream in streams)
    out = (ctypes.c_void_p * (len(ops) + 1))()
    overlap = sized(_op_structs.OpOverlap)
    with contextlib.ExitStack() as timers:
        for op, one, stream in zip(ops, for_c, streams if has_streams else ()):
            timers.enter_context(_timed(op, one, max(stream, 0)))
        status = C.prof_op_profile_group(
            for_c, len(ops), int(has_streams), ctypes.byref(options), out, ctypes.byref(overlap)
        )
        _raise(ops, status)
    whole_group = [Result(ctypes.c_void_p(p), "") for p in out][-1]
    return {**_latency(whole_group), "gained": Number(overlap.gained)}


def ProfileGroup(  # noqa: N802
    exprs: Sequence[Any],
    device: Union[Device, str] = "cpu",
    stream_ids: Sequence[int] = (),
    warmup: int = 10,
    exec_number: int = 10,
    repeat: int = 1,
) -> Dict[str, Any]:
    """Measures 1 to 64 operators at once, as RAF's ProfileGroup().

    Returns what Profile() returns, for the group as a whole, and "gained"
    (prof_op_overlap.gained): 1 where it is as fast as its longest member, 0 where it is as slow
    as one after the other. On the host each member runs on a thread of its own, and Python
    callables take turns at the interpreter unless they release the GIL. On a device with
    `stream_ids` each member enqueues on its stream, a number as C has it, and the device times
    it. -1, or no `stream_ids`, is the default stream. Members with nothing to run are left out.
    The result is kept in this process by the members' keys, device, streams and counts. ValueError,
    TypeError. Any thread."""
    _positive(warmup=warmup, exec_number=exec_number, repeat=repeat)
    where, members = _device.of(device), list(exprs)
    if not 1 <= len(members) <= 64:
        raise ValueError(f"a group has 1 to 64 members, not {len(members)}")
    streams = _streams(stream_ids, len(members))
    pairs = [(_op(e), stream) for e, stream in zip(members, streams) if not _is_nothing(e)]
    if not pairs:
        return {"latency": [Number(0)] * repeat, "workspace_size": Number(0), "gained": Number(0)}
    named = [(op.key, stream) for op, stream in pairs]
    key = (where.type, where.index, warmup, exec_number, repeat, *named)
    found = _groups.find(key)
    if found is None:
        options = _options(warmup, exec_number, repeat, {"repeat_all": 1, "time_limit_ns": 1 << 63})
        ops = [op for op, _ in pairs]
        found = _measure_group(ops, where, [stream for _, stream in pairs], options)
        _groups.keep(key, found)
    return {**found, "latency": list(found["latency"])}


def ResetCache(device: Union[Device, str, None] = None) -> None:  # noqa: N802
    """Forgets the results that are kept of a device, or of all, groups among them. ValueError for
    what is no device. Any thread."""
    C.prof_op_cache_reset(None if device is None else ctypes.byref(_device.of(device)))
    _groups.forget(device)


def GetCacheSize(device: Union[Device, str, None] = None) -> int:  # noqa: N802
    """How many results are kept of a device, or of all, groups among them. ValueError for what is
    no device. Any thread."""
    of = None if device is None else ctypes.byref(_device.of(device))
    return int(C.prof_op_cache_count(of)) + _groups.count(device)


__all__ = [
    "Comparison",
    "GetCacheSize",
    "Op",
    "Profile",
    "ProfileGroup",
    "ResetCache",
    "Result",
    "compare",
    "open_cache",
    "profile",
    "profile_in_turn",
]


def __dir__() -> List[str]:
    return list(__all__)
