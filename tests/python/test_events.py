"""Single events as Python has them: each field as C wrote it, lists and dictionaries each call's
own, few objects a call."""

import ctypes
import json
import os
import tempfile
import threading
import unittest
from unittest import mock

import prof
from prof import _read_events
from prof import _structs as s
from prof._library import C

try:
    import tracemalloc
except ImportError:
    tracemalloc = None


F32 = 0x0220


IMPORTED = [
    {"ph": "M", "name": "process_name", "pid": 100, "tid": 0, "ts": 0, "args": {"name": "python"}},
    {
        "ph": "X",
        "cat": "cpu_op",
        "name": "aten::mm",
        "pid": 100,
        "tid": 100,
        "ts": 1010,
        "dur": 500,
        "args": {
            "Input Dims": [[5, 3], [3, 4], []],
            "Input type": ["float", "float", ""],
            "Sequence number": 7,
            "Fwd thread id": 0,
        },
    },
    {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": "cudaLaunchKernel",
        "pid": 100,
        "tid": 100,
        "ts": 1030,
        "dur": 10,
        "args": {"correlation": 55},
    },
    {
        "ph": "X",
        "cat": "kernel",
        "name": "sgemm",
        "pid": 1,
        "tid": 7,
        "ts": 1060,
        "dur": 33,
        "args": {"correlation": 55, "device": 1, "stream": 7},
    },
    {
        "ph": "X",
        "cat": "kernel",
        "name": "nobody's",
        "pid": 1,
        "tid": 7,
        "ts": 1110,
        "dur": 2,
        "args": {"correlation": 99, "device": 1, "stream": 7},
    },
    {"ph": "i", "s": "t", "cat": "app", "name": "moment", "pid": 100, "tid": 100, "ts": 1020},
    {"ph": "C", "name": "load", "pid": 100, "tid": 100, "ts": 1025, "args": {"value": 2.5}},
    *(
        {
            "ph": "i",
            "s": "t",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "pid": 100,
            "tid": 100,
            "ts": ts,
            "args": {
                "Total Allocated": 4096,
                "Bytes": size,
                "Addr": 5000,
                "Device Id": -1,
                "Device Type": 0,
            },
        }
        for ts, size in ((1021, 1024), (1700, -1024))
    ),
]
"""What Python alone records nothing of: devices, memory, moments, counters."""


def by_ctypes(trace):
    """Each event of the trace field by field, as ctypes reads the struct."""
    cursor, event = ctypes.c_void_p(), s.Event()
    with trace._shared as pointer:
        C.check(C.prof_cursor_create(pointer, ctypes.byref(cursor)))
        try:
            while C.check(C.prof_cursor_next(cursor, ctypes.byref(event))) or event.kind:
                yield (
                    _read_events.KINDS[event.kind],
                    text(event.name, event.name_bytes),
                    text(event.category, event.category_bytes),
                    *(
                        event.start_ns,
                        event.duration_ns,
                        event.self_ns,
                        event.depth,
                        event.thread,
                        event.level,
                    ),
                    [
                        (text(a.key, a.key_bytes), value_of(a))
                        for a in event.args[: event.arg_count]
                    ],
                    *(event.id, event.value, event.device.type, event.device.index),
                    {1: 1, 2: -1}.get(event.memory.verb, 0) * event.memory.bytes
                    if event.kind == 8
                    else 0,
                    (
                        (-1 if event.launch.thread == 2**32 - 1 else event.launch.thread),
                        event.launch.start_ns,
                    )
                    if event.flags & 16
                    else None,
                    bool(event.flags & 32),
                )
                event.kind = 0
        finally:
            C.prof_cursor_destroy(cursor)


def text(pointer, count):
    return ctypes.string_at(pointer, count).decode(errors="replace") if count else ""


def value_of(arg):
    value = arg.value
    if arg.type == 5:
        return text(value.text.data, value.text.bytes)
    if arg.type == 7:
        return tuple(value.tensor.dims[: value.tensor.rank])
    return {1: value.i64, 2: value.u64, 3: value.f64, 4: bool(value.i64), 6: value.u64}[arg.type]


def given(event):
    """The same of an Event."""
    pairs = (
        [("", value) for value in event.args]
        if isinstance(event.args, list)
        else list((event.args or {}).items())
    )
    return (
        *event[:9],
        pairs + list(event.more.items()),
        event.id,
        event.value,
        event.device,
        event.device_index,
        event.bytes,
        event.launch,
        event.is_call,
    )


def recorded(work, **options):
    with prof.profile(**options) as p:
        work()
    return p


def of_all_kinds():
    with prof.scope(
        "numbers",
        least=-(2**63),
        most=2**63 - 1,
        no=False,
        yes=True,
        half=-0.5,
        text="d\xe9e",
        none="",
    ):
        pass
    with prof.scope("shapes", _shapes=[(F32, 2, 3), (F32,), (F32, 7), (F32, 0, -1, 2**40)]):
        pass
    with prof.scope("shapes", _shapes=[(F32, *range(16))], beside=3):
        pass
    for i in range(20):
        with prof.record_function(f"own name {i}", f"argument {i}"):
            pass
    with prof.scope("numbers", "another category"):
        pass


class Reading(unittest.TestCase):
    def hold(self, trace):
        expected, found = list(by_ctypes(trace)), [given(event) for event in trace.events()]
        self.assertEqual(len(found), len(expected))
        for one, other in zip(found, expected):
            self.assertEqual(one, other)
        return found

    def test_each_field_is_what_ctypes_reads_of_the_struct(self):
        found = self.hold(recorded(of_all_kinds, with_stack=True).trace)
        self.assertGreater(len(found), 22)
        self.assertEqual(
            {row[1] for row in found} & {"numbers", "shapes", "own name 3"},
            {"numbers", "shapes", "own name 3"},
        )

    def test_so_is_that_of_devices_memory_moments_and_counters(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.json")
            with open(path, "w") as f:
                json.dump(
                    {
                        "schemaVersion": 1,
                        "deviceProperties": [],
                        "displayTimeUnit": "ms",
                        "baseTimeNanoseconds": 0,
                        "traceEvents": IMPORTED,
                        "traceName": "t.json",
                    },
                    f,
                )
            try:
                trace = prof.import_trace(path)
            except Exception as e:
                if "yajl" not in str(e) and not isinstance(e, FileNotFoundError):
                    raise
                self.skipTest(f"the command was built without yajl, or it is not here: {e}")
            with trace:
                found = self.hold(trace)
                self.assertLessEqual(
                    {"scope", "instant", "counter", "memory"}, {row[0] for row in found}
                )
                self.assertEqual(
                    sorted(row[-3] for row in found if row[0] == "memory"), [-1024, 1024]
                )
                self.assertEqual(
                    {row[1]: row[-2] for row in found if row[-2] is not None}.keys(),
                    {"sgemm", "nobody's"},
                )
                self.assertEqual([row[1] for row in found if row[-1]], ["cudaLaunchKernel"])

    def test_formats_are_as_long_as_the_structs(self):
        self.assertEqual(_read_events.HEAD.size, s.Event.of.offset)
        self.assertEqual(_read_events.ARG.size, ctypes.sizeof(s.TraceArg))

    def test_more_texts_and_shapes_than_are_kept_are_right_all_the_same(self):
        def work():
            for i in range(100):
                with (
                    prof.scope(f"scope {i}", _shapes=[(F32, i, i + 1)]),
                    prof.record_function(f"name {i}"),
                ):
                    pass

        trace = recorded(work).trace
        for most in ("_TEXTS_MOST", "_TEXT_BYTES_MOST"):
            with self.subTest(most), mock.patch.object(_read_events, most, 7):
                found = [event for event in trace.events() if event.kind == "scope"]
                self.assertEqual(
                    [event.name for event in found],
                    [name for i in range(100) for name in (f"scope {i}", f"name {i}")],
                )
                self.assertEqual(
                    [event.args for event in found if event.category != "user_annotation"],
                    [[(i, i + 1)] for i in range(100)],
                )

    @unittest.skipUnless(tracemalloc, "this Python has no tracemalloc")
    def test_long_texts_are_not_all_kept(self):
        """Of 40 MB of texts, each of them another, what reads them keeps 16 MiB, as bytes and as
        text."""

        def work():
            for i in range(5000):
                with prof.scope("s", text=f"{i}" + "x" * 8000):
                    pass

        trace, lengths = recorded(work).trace, []
        tracemalloc.start()
        for event in trace.events():
            if event.kind == "scope":
                lengths.append(len(event.args["text"]))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        self.assertEqual((len(lengths), min(lengths)), (5000, 8001))
        self.assertLess(peak, 40 << 20)

    def test_a_row_of_asynchronous_and_other_calls_is_some_threads_time(self):
        """As C adds it up."""

        def work():
            with prof.scope("of one thread"):
                pass
            for _ in range(2):
                begun = C.prof_scope_begin(1, b"ended elsewhere", b"cpu_op", None)
                thread = threading.Thread(target=C.prof_scope_end, args=(begun,))
                thread.start()
                thread.join()
            with prof.scope("ended elsewhere"):
                pass

        profile = recorded(work)
        for rows in (profile.key_averages(), profile.events().key_averages()):
            self.assertEqual(
                {row.key: (row.count, row.is_async) for row in rows},
                {"of one thread": (1, False), "ended elsewhere": (3, False)},
            )


if __name__ == "__main__":
    unittest.main()
