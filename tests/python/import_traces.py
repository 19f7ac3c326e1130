"""Small traces of other tools' kinds, one for each rule of the import. test_import_rules.py has
their right values. The viewers' engines open the exports of some
(tests/viewers/test_imports.py)."""

import json


def event(ph, name, ts, tid=2, pid=1, **members):
    return {"ph": ph, "name": name, "pid": pid, "tid": tid, "ts": ts, **members}


def x(name, ts, dur, tid=2, pid=1, **members):
    return event("X", name, ts, tid, pid, dur=dur, **members)


def kernel(name, ts, dur, pid=0, tid=7, cat="kernel", **args):
    return x(name, ts, dur, tid, pid, cat=cat, args={"device": 0, "stream": 7, **args})


def call(name, ts, dur, correlation, pid=1, tid=2, cat="cuda_runtime"):
    return x(name, ts, dur, tid, pid, cat=cat, args={"correlation": correlation})


def named(pid, name, what="process_name", key="name"):
    return {"ph": "M", "pid": pid, "name": what, "args": {key: name}}


def row_named(pid, tid, name):
    return {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}


def arrow(cat, start, end, number=1, **members):
    """From (pid, tid, ts) to another. Both are bound to the scopes that they are in."""
    ends = []
    for ph, (pid, tid, ts) in (("s", start), ("f", end)):
        ends.append(event(ph, cat, ts, tid, pid, cat=cat, id=number, **members))
    return ends


def rank(pid, kernel_pid, op, name, duration):
    return [
        x(op, 0, 1000, pid, pid, cat="cpu_op"),
        call("cudaLaunchKernel", 10, 10, 7, pid, pid),
        kernel(name, 100, duration, pid=kernel_pid, correlation=7),
    ]


LATE = 1715000000000000
TRACES = {
    "processes without numbers": [
        x("a", 1, 1, 5, 5),
        x("b", 1, 1, 6, "Foo"),
        event("C", "c", 1, 6, "Foo", args={"value": 1}),
        event("b", "req", 1, 6, "Foo", cat="q", id=1),
        event("e", "req", 9, 6, "Foo", cat="q", id=1),
        x("d", 1, 1, 7, "Bar"),
        named("Bar", "bar's name"),
    ],
    "categories of torch 1.8": [
        x("mm", 1000, 100, cat="Operator"),
        call("launch", 1010, 20, 5, cat="Runtime"),
        kernel("gemm", 1050, 4000, cat="Kernel", correlation=5),
        kernel("copy", 6000, 500, cat="Memcpy", correlation=6),
        kernel("fill", 7000, 300, cat="Memset", correlation=8),
    ],
    "annotations are no work": [
        x("mm", 10, 50, cat="cpu_op"),
        call("launch", 20, 10, 7),
        kernel("k", 100, 60, correlation=7),
        kernel("step", 100, 940, cat="gpu_user_annotation"),
    ],
    "ranks": rank(100, 1000, "op 0", "k 0", 60) + rank(200, 2000, "op 1", "k 1", 500),
    "ranks, devices first": rank(200, 2000, "op 1", "k 1", 500)[2:]
    + rank(100, 1000, "op 0", "k 0", 60)[:2]
    + [kernel("k 0", 40, 60, pid=1000, correlation=7)]  # before the other's launch
    + [{**e, "ts": e["ts"] + 50} for e in rank(200, 2000, "op 1", "k 1", 500)[:2]],
    "calls that overlap": [call("A", 0, 8000, 1), call("B", 2000, 9000, 2)],
    "a call that crosses": [x("op", 0, 1000, cat="cpu_op"), call("sync", 400, 9600, 1)],
    "calls with children": [
        call("A", 0, 5000, 1),
        call("B", 1000, 9000, 2),
        x("op", 6000, 10000, cat="cpu_op"),
    ],
    "one id": [
        event(ph, name, ts, cat="req", id="0x1")
        for ph, name, ts in (
            ("b", "parent", 0),
            ("b", "read", 1000),
            ("b", "write", 2000),
            ("e", "read", 3000),
            ("e", "write", 7000),
            ("e", "parent", 9000),
        )
    ],
    "one id, older": [
        event(ph, name, ts, cat="gpu", id="7")
        for ph, name, ts in (
            ("S", "up", 0),
            ("S", "draw", 1000),
            ("F", "up", 2000),
            ("F", "draw", 9000),
        )
    ],
    "ids and scopes": [
        *(
            event(ph, name, ts, cat="req", id=1, scope=name)
            for ph, name, ts in (
                ("b", "A", 0),
                ("b", "B", 1000),
                ("e", "A", 2000),
                ("e", "B", 9000),
            )
        ),
        *(
            event(ph, "local", ts, cat="req", id2={"local": "0x1"})
            for ph, ts in (("b", 0), ("e", 500))
        ),
        event("b", "global", 0, cat="req", id2={"global": "0x9"}),
        event("e", "global", 700, pid=5, cat="req", id2={"global": "0x9"}),
        event("b", "other", 0, cat="req", id="0x10"),
        event("e", "other", 800, pid=5, cat="req", id="0x10"),
        event("b", "own", 0, cat="req", id2={"local": "0x2"}),
        event("e", "own", 900, pid=5, cat="req", id2={"local": "0x2"}),
        event("S", "older", 0, cat="req", id="7"),
        event("F", "older", 300, pid=5, cat="req", id="7"),
        event("b", "two", 0, cat="req", id="8"),
        event("b", "two", 10, pid=5, cat="req", id="8"),
        event("e", "two", 400, cat="req", id="8"),
        event("e", "two", 600, pid=5, cat="req", id="8"),
    ],
    "memory in no order": [
        event(
            "i",
            "[memory]",
            ts,
            args={
                "Device Type": 1,
                "Device Id": 0,
                "Addr": address,
                "Bytes": bytes,
                "Total Allocated": total,
                "Total Reserved": reserved,
            },
        )
        for ts, address, bytes, total, reserved in (
            (300, 3, 64, 448, 2000),
            (400, 3, -64, 384, 2000),
            (100, 1, 128, 256, 500),
            (200, 2, 128, 384, 1000),
        )
    ],
    "one begin, one end": [
        x("outer", 0, 10),
        *(
            event(ph, name, ts)
            for ph, name, ts in (("B", "beta", 1), ("B", "gamma", 1), ("E", "beta", 2))
        ),
    ],
    "ends by name": [
        event("B", "main", 0),
        event("B", "step", 0),
        event("B", "op", 10),
        event("E", "step", 100),
        event("B", "step", 100),
        event("E", "nobody's", 150),
        event("E", "step", 200),
        {"ph": "E", "pid": 1, "tid": 2, "ts": 1000},
    ],
    "scopes that begin and end together": [
        x("later", 20, 5),
        x("s0", 0, 10),
        x("s1", 0, 10, cat="cuda_runtime"),
        x("s2", 0, 10),
        x("s3", 0, 10, cat="cpu_op"),
        x("s4", 0, 10, cat="net"),
    ],
    "no order": [
        event("E", "outer", 1000),
        event("B", "outer", 0),
        event("B", "inner", 100),
        event("E", "inner", 300),
    ],
    "no order of ids": [
        event(ph, name, ts, cat="req", id="0x1")
        for ph, name, ts in (("b", "a", 0), ("e", "a", 3000), ("b", "b", 1000), ("e", "b", 4000))
    ],
    "counters": [
        x("run", 0, 5000, pid=11),
        x("run", 0, 5000, pid=12),
        *(
            event("C", "queue", 1000 + 500 * i, pid=11 + i % 2, args={"value": value})
            for i, value in enumerate((10, 9000, 20, 8000))
        ),
        *(
            event("C", "heap", 1000 + 500 * i, pid=11, id=i % 2, args={"bytes": i})
            for i in range(4)
        ),
    ],
    "counters alone": [
        *(event("C", "queue", 10 * i, pid=11 + i % 2, args={"value": i}) for i in range(4)),
    ],
    "an end that is not there": [event("B", "main", 0), x("op", 10, 100)],
    "before its launch": [
        x("mm", 0, 50, cat="cpu_op"),
        call("launch", 20, 10, 7),
        kernel("k", 15, 60, correlation=7),
    ],
    "arguments of ends": [
        event("B", "open", 0, args={"path": "/x", "mode": "r"}),
        event("E", "open", 50, args={"retval": 7, "mode": "rw"}),
        event("b", "req", 60, cat="net", id=1, args={"url": "a"}),
        event("e", "req", 90, cat="net", id=1, args={"status": 200}),
    ],
    "arrows at kernels": [
        x("op", 0, 100, cat="cpu_op"),
        kernel("k", 50, 100),
        kernel("k2", 150, 100),
        *arrow("path", (1, 2, 10), (0, 7, 60), bp="e"),
        *arrow("path", (0, 7, 70), (0, 7, 150), 2, bp="e"),
    ],
    "arrow to the next": [
        x("send", 0, 10),
        x("get", 1002, 100, 3),
        *arrow("ipc", (1, 2, 1), (1, 3, 1001)),
    ],
    "arrows that scopes name": [
        x("out", 0, 10, bind_id="0x1f", flow_out=True),
        x("through", 20, 10, 3, bind_id="0x1f", flow_in=True, flow_out=True),
        x("in", 40, 10, bind_id="0x1f", flow_in=True),
        x("in too", 60, 10, 4, bind_id="0x1f", flow_in=True),
        event("B", "begun", 80, bind_id=7, flow_out=True),
        event("E", "begun", 90),
        x("ends it", 100, 10, 3, bind_id=7, flow_in=True),
        x("alone", 120, 10, bind_id=9, flow_out=True),
    ],
    "arrows at asynchronous events": [
        x("out", 0, 10, bind_id=7, flow_out=True),
        event("b", "request", 100, cat="a", id=1, bind_id=7, flow_in=True),
        event("n", "sent", 150, cat="a", id=1, bind_id=8, flow_out=True),
        event("b", "crosses", 160, cat="a", id=1, bind_id=7, flow_in=True, flow_out=True),
        event("e", "request", 200, cat="a", id=1, bind_id=7, flow_in=True),
        event("e", "crosses", 300, cat="a", id=1),
        event("b", "beside", 160, cat="a", id=2, pid=5, bind_id=8, flow_in=True),
        event("e", "beside", 170, cat="a", id=2, pid=5),
        event("n", "in none", 400, cat="a", id=3, bind_id=7, flow_in=True),
        x("in", 1000, 10, bind_id=7, flow_in=True),
        x("alone", 1020, 10, bind_id=9, flow_out=True),
    ],
    "arrows at asynchronous events, older": [
        event("S", "draw", 0, cat="gpu", id="7", bind_id=1, flow_out=True),
        event("T", "draw", 10, cat="gpu", id="7", bind_id=2, flow_out=True),
        event("p", "draw", 20, cat="gpu", id="7", bind_id=3, flow_out=True),
        event("F", "draw", 30, cat="gpu", id="7", bind_id=4, flow_out=True),
        *(x(f"in {i}", 100 * i, 10, bind_id=i, flow_in=True) for i in (1, 2, 3, 4)),
        x("whole", 1000, 10, bind_id=5, flow_out=True),
        event("i", "instant", 1005, s="t", bind_id=5, flow_in=True),
    ],
    "arrows that no scope holds": [
        x("a", 0, 10),
        x("b", 100, 10, 3),
        *arrow("from none", (1, 2, 50), (1, 3, 105), 1, bp="e"),
        *arrow("to none", (1, 2, 5), (1, 3, 150), 2, bp="e"),
        *arrow("neither", (1, 2, 60), (1, 4, 160), 3, bp="e"),
        *arrow("neither", (1, 2, 60), (1, 4, 160), 4, bp="e"),
        *arrow("at the end", (1, 2, 10), (1, 3, 170), 5, bp="e"),
        *arrow("no next", (1, 2, 6), (1, 3, 180), 6),
        *arrow("at no length", (1, 2, 200), (1, 3, 210), 7, bp="e"),
        x("no length", 200, 0),
    ],
    "arrows of launches that end on no work": [
        x("op", 0, 100, cat="cpu_op"),
        call("launch", 10, 10, 5),
        kernel("k", 50, 100, correlation=5),
        *arrow("ac2g", (1, 2, 10), (0, 7, 50), 5, bp="e"),
        *arrow("ac2g", (1, 2, 20), (0, 7, 300), 6, bp="e"),
        *arrow("ac2g", (1, 2, 30), (0, 9, 310), 7, bp="e"),
    ],
    "arrows of two launches to one work": [
        x("op", 0, 100, cat="cpu_op"),
        x("other", 0, 100, 3, cat="cpu_op"),
        call("launch", 10, 10, 5),
        kernel("k", 50, 100, correlation=5),
        *arrow("ac2g", (1, 2, 10), (0, 7, 50), 5, bp="e"),
        *arrow("ac2g", (1, 2, 40), (0, 7, 50), 6, bp="e"),
        *arrow("ac2g", (1, 3, 45), (0, 7, 50), 7, bp="e"),
    ],
    "no names": [x("a", 0, 10), x("b", 20, 10, 3), x("c", 25, 10, 3), x("d", 0, 10, None, None)],
    "no names of two processes": [
        x("a", 0, 10),
        x("b", 20, 10, 3),
        x("c", 25, 10, 4, 9),
        {**named(9, "worker", "thread_name"), "tid": 4},
    ],
    "one of two processes has a name": [x("a", 0, 10), x("c", 25, 10, 4, 9), named(9, "server")],
    "a process called prof": [x("a", 0, 10), named(1, "prof")],
    "arrows of one number": [
        x("a", 0, 100),
        *(
            event(ph, name, ts, cat="ipc", id=4, bp="e")
            for ph, name, ts in (
                ("s", "one", 10),
                ("s", "two", 20),
                ("f", "one", 30),
                ("f", "two", 40),
            )
        ),
        event("f", "none", 50, cat="ipc", id=9, bp="e"),
    ],
    "arrows of one number in two processes": [
        *(x(f"a{pid}", 0, 10, 1, pid) for pid in (1, 2)),
        *(x(f"b{pid}", 20, 10, 2, pid) for pid in (1, 2)),
        *arrow("ipc", (1, 1, 1), (1, 2, 21), 4, bp="e"),
        *arrow("ipc", (2, 1, 2), (2, 2, 22), 4, bp="e"),
        *arrow("out", (1, 1, 3), (2, 2, 23), 4, bp="e"),
    ],
    "on a stream's row": [
        x("op", 0, 100, cat="cpu_op"),
        kernel("k", 50, 100, correlation=5),
        event("i", "mark", 60, 7, 0, s="t", cat="mark"),
        event("B", "k2", 200, 7, 0, cat="kernel", args={"device": 0, "stream": 7}),
        event("E", "k2", 260, 7, 0, cat="kernel"),
        x("range", 300, 10, 7, 0, cat="nvtx"),
    ],
    "the first time is 0": [x("bad", 0, 0), x("a", LATE, 100), x("b", LATE + 200, 100)],
    "a device by name": [
        {},
        named("0", "GPU0"),
        x("gemm", "1000.0", "500.0", "1", "0"),
        x("hipLaunchKernel", "900.0", "20.0", "4711", "4711"),
        *arrow("api_op", ("4711", "4711", "905"), ("0", "1", "1000.0"), bp="e"),
        event("C", "Idle", 1000, pid="0", args={"value": 1}),
    ],
    "a device by launch": [
        x("gemm", 1000, 500, 1, 50),
        x("hipLaunchKernel", 900, 20, 4711, 4711),
        *arrow("api_op", (4711, 4711, 905), (50, 1, 1000), bp="e"),
    ],
    "Ascend": [
        named(911, "Ascend Hardware"),
        x("aten::mm", f"{LATE}.100", 50.0, 1, 910, cat="cpu_op"),
        *arrow("async_npu", (910, 1, f"{LATE + 10}.100"), (911, 3, f"{LATE + 100}.000"), bp="e"),
        x("MatMulV2", f"{LATE + 100}.000", 300.0, 3, 911),
    ],
    "stack frames": {
        "traceEvents": [x("a", 1, 2, sf=2), x("b", 5, 2, stack=["0x1"])],
        "stackFrames": {"1": {"name": "main"}},
    },
    "stacks by number": {
        "traceEvents": [
            x("a", 1, 2, sf=3, args={"n": 1}),
            x("op", 4, 2, cat="cpu_op", sf="2"),
            event("B", "b", 7, sf=4),
            event("E", "b", 9, args={"m": 2}),
            x("call", 10, 2, cat="cuda_runtime", sf=1),
            x("plain", 13, 2),
        ],
        "stackFrames": {
            "1": {"name": "main"},
            "2": {"name": "f;g", "parent": 1, "category": "lib.so"},
            "3": {"name": "leaf", "parent": "2"},
            "4": {"name": "in a circle", "parent": "4", "other": [{"parent": 1}]},
        },
    },
    "names of any type": [
        x(123, 0, 10),
        x(None, 20, 10, cat=None),
        x("ok", 40, 10, None, None, args=None),
        x("list", 60, 10, args=[1, 2]),
        x({"x": 1}, 80, 10, cat=["a"]),
        x("true", 90, 10, cat=True, unknown=1),
        None,
        7,
        [],
    ],
    "JAX on a GPU": [
        named(1, "/device:GPU:0"),
        row_named(1, 14, "Stream #14(Compute)"),
        row_named(1, 100, "XLA Ops"),
        row_named(1, 101, "XLA Modules"),
        row_named(1, 102, "Steps"),
        named(701, "/host:CPU"),
        row_named(701, 5, "python"),
        x("PjitFunction(f)", 10, 100, 5, 701),
        x("cuLaunchKernel", 20, 10, 5, 701, args={"correlation_id": "3"}),
        x("fusion", 50, 200, 14, 1, args={"correlation_id": "3", "hlo_op": "fusion"}),
        x("fusion.1", 50, 200, 100, 1),
        x("jit_f(1)", 50, 200, 101, 1),
        x("0", 50, 200, 102, 1),
    ],
    "JAX on a TPU": [
        named(3, "/device:TPU:0"),
        row_named(3, 2, "XLA Ops"),
        row_named(3, 1, "XLA Modules"),
        row_named(3, 0, "Steps"),
        x("fusion.1", 10, 5, 2, 3, args={"hlo_category": "fusion"}),
        x("jit_f", 10, 20, 1, 3),
        x("1", 10, 20, 0, 3),
    ],
    "nsys2json": [
        x("sgemm", 100, 50, "Stream 7", "Device 0", cat="cuda"),
        x("sgemm", 160, 5, "Stream 7", "Device 0", cat="cuda"),
        x("sgemm", 100, 70, "Stream 7", "Device 1", cat="cuda"),
        x("fwd", 80, 100, "NVTX Thread 5", "Device 0", cat="nvtx"),
        x("fwd on the device", 100, 65, "NVTX Kernel Thread 5", "Device 0", cat="nvtx-kernel"),
        x("launch", 90, 5, "CUDA API 5", "Host 0", cat="cuda_api"),
    ],
    "summaries of Ascend": [
        named(10, "Python"),
        named(20, "CANN"),
        named(30, "Ascend Hardware"),
        row_named(30, 2, "Stream 2"),
        named(40, "Overlap Analysis"),
        row_named(40, 2, "Computing"),
        row_named(40, 3, "Free"),
        named(50, "Communication"),
        row_named(50, 0, "Group 0 Communication"),
        x("aten::mm", 0, 100, 1, 10, cat="cpu_op"),
        x("Node@launch", 10, 20, 1, 20),
        x("MatMul", 100, 300, 2, 30),
        x("hcom_allReduce_", 450, 50, 0, 50),
        x("Computing", 100, 300, 2, 40),
        x("Free", 400, 50, 3, 40),
        *arrow("HostToDevice", (20, 1, 10), (30, 2, 100), bp="e"),
    ],
    "streams without numbers": [
        x("a", 100, 50, "s1", "gpu0", cat="kernel"),
        x("b", 100, 60, "s1", "gpu1", cat="kernel"),
        x("c", 200, 70, "s2", "gpu1", cat="kernel", args={"device": 1, "stream": 9}),
        x("d", 300, 80, "s3", "gpu1", cat="kernel"),
    ],
    "rocprof": [
        named("0", "CPU HIP API"),
        named("6", "GPU0"),
        x("hipLaunchKernel", "1000", "20", "44", "0"),
        x("gemm", "1050", "500", "0", "6", args={"dev-id": "0", "queue-id": "0"}),
        event("s", "dep", "1010", "44", "0", cat="DataFlow", id=1),
        event("t", "dep", "1050", "0", "6", cat="DataFlow", id=1),
    ],
    "counters whose names meet": [
        event("C", "mem", 1, args={"used": 5}),
        event("C", "mem used", 1, args={"value": 900}),
        event("C", "mem[a]", 2, args={"value": 1}),
        event("C", "mem", 2, id="a", args={"value": 2}),
        event("C", "mem (process 2)", 3, args={"value": 1}),
        event("C", "mem", 3, pid=2, args={"value": 2}),
        event("C", "mem", 4, args={"used": 6}),
        event("C", "mem used", 4, args={"value": 901}),
        event("C", "mem used (2)", 4, args={"value": 7}),
        x("op", 1, 1),
    ],
    "threads without numbers": [
        x("a", 1, 5, "worker", "Host"),
        x("b", 1, 5, "io", 7),
        x("c", 8, 5, "io", 7),
        row_named(7, "late", "called so"),
        x("d", 8, 5, "late", 7),
    ],
}


def text_of(name):
    return json.dumps(TRACES[name])
