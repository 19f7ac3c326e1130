"""Databases of AMD's profilers, made here: rocmProfileData's (rpd) and rocprofv3's (rocpd), with
the columns that an import reads. Random ones come from a seed."""

import json
import random
import sqlite3

RPD = {
    "metadata": "id INTEGER PRIMARY KEY, tag TEXT, value TEXT",
    "string": "id INTEGER PRIMARY KEY, string TEXT",
    "ustring": "id INTEGER PRIMARY KEY, string TEXT",
    "api": "id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, start INTEGER, end INTEGER,"
    " apiName_id INTEGER, category_id INTEGER, domain_id INTEGER, args_id INTEGER",
    "kernelapi": "api_ptr_id INTEGER PRIMARY KEY, stream TEXT, gridX INTEGER, gridY INTEGER,"
    " gridZ INTEGER, workgroupX INTEGER, workgroupY INTEGER, workgroupZ INTEGER,"
    " groupSegmentSize INTEGER, privateSegmentSize INTEGER, kernelName_id INTEGER",
    "copyapi": "api_ptr_id INTEGER PRIMARY KEY, stream TEXT, size INTEGER, width INTEGER,"
    " height INTEGER, kind INTEGER, dst TEXT, src TEXT, dstDevice INTEGER, srcDevice INTEGER,"
    " sync INTEGER, pinned INTEGER",
    "op": "id INTEGER PRIMARY KEY, gpuId INTEGER, queueId INTEGER, sequenceId INTEGER,"
    " start INTEGER, end INTEGER, description_id INTEGER, opType_id INTEGER",
    "api_ops": "id INTEGER PRIMARY KEY, api_id INTEGER, op_id INTEGER",
    "monitor": "id INTEGER PRIMARY KEY, deviceType TEXT, deviceId INTEGER, monitorType TEXT,"
    " start INTEGER, end INTEGER, value TEXT",
    "counter": "id INTEGER PRIMARY KEY, value REAL, op_id INTEGER, name_id INTEGER",
    "stackframe": "id INTEGER PRIMARY KEY, api_ptr_id INTEGER, depth INTEGER, name_id INTEGER",
}

ROCPD = {
    "metadata": "id INTEGER PRIMARY KEY, tag TEXT, value TEXT",
    "string": "id INTEGER PRIMARY KEY, string TEXT",
    "info_node": "id INTEGER PRIMARY KEY, hostname TEXT",
    "info_process": "id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER, command TEXT",
    "info_thread": "id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER, tid INTEGER, name TEXT",
    "info_agent": "id INTEGER PRIMARY KEY, type TEXT, type_index INTEGER, name TEXT,"
    " product_name TEXT",
    "info_pmc": "id INTEGER PRIMARY KEY, name TEXT",
    "info_kernel_symbol": "id INTEGER PRIMARY KEY, kernel_name TEXT, display_name TEXT",
    "track": "id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER, tid INTEGER, agent_id INTEGER,"
    " queue_id INTEGER, stream_id INTEGER, name_id INTEGER",
    "event": "id INTEGER PRIMARY KEY, category_id INTEGER, stack_id INTEGER,"
    " correlation_id INTEGER, extdata TEXT DEFAULT '{}'",
    "arg": "id INTEGER PRIMARY KEY, event_id INTEGER, position INTEGER, type TEXT, name TEXT,"
    " value TEXT",
    "pmc_event": "id INTEGER PRIMARY KEY, event_id INTEGER, pmc_id INTEGER, value REAL",
}
SIZES = (
    "group_segment_size INTEGER, private_segment_size INTEGER, workgroup_size_x INTEGER,"
    " workgroup_size_y INTEGER, workgroup_size_z INTEGER, grid_size_x INTEGER,"
    " grid_size_y INTEGER, grid_size_z INTEGER"
)
"""Where rows say times and places themselves, as in the versions 3.0 of rocprofv3's schema."""
ROWS = {
    "region": "id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER, tid INTEGER, start INTEGER,"
    " end INTEGER, name_id INTEGER, event_id INTEGER",
    "sample": "id INTEGER PRIMARY KEY, track_id INTEGER, timestamp INTEGER, event_id INTEGER",
    "kernel_dispatch": "id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER, tid INTEGER,"
    " agent_id INTEGER, kernel_id INTEGER, dispatch_id INTEGER, queue_id INTEGER,"
    f" stream_id INTEGER, start INTEGER, end INTEGER, {SIZES}, region_name_id INTEGER,"
    " event_id INTEGER",
    "memory_copy": "id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER, tid INTEGER, start INTEGER,"
    " end INTEGER, name_id INTEGER, dst_agent_id INTEGER, dst_address INTEGER,"
    " src_agent_id INTEGER, src_address INTEGER, size INTEGER, queue_id INTEGER,"
    " stream_id INTEGER, event_id INTEGER",
    "memory_allocate": "id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER, tid INTEGER,"
    " agent_id INTEGER, type TEXT, level TEXT, start INTEGER, end INTEGER, address INTEGER,"
    " size INTEGER, queue_id INTEGER, stream_id INTEGER, event_id INTEGER",
}
"""Where tracks have the places, and a table of their own the times, as another version has it."""
TRACKS = {
    "info_category": "id INTEGER PRIMARY KEY, name TEXT",
    "timestamp": "id INTEGER PRIMARY KEY, value INTEGER",
    "region": "id INTEGER PRIMARY KEY, track_id INTEGER, name_id INTEGER, start_id INTEGER,"
    " end_id INTEGER, event_id INTEGER",
    "sample": "id INTEGER PRIMARY KEY, track_id INTEGER, name_id INTEGER, timestamp_id INTEGER,"
    " event_id INTEGER",
    "kernel_dispatch": "id INTEGER PRIMARY KEY, track_id INTEGER, kernel_id INTEGER,"
    f" dispatch_id INTEGER, start_id INTEGER, end_id INTEGER, {SIZES}, region_name_id INTEGER,"
    " event_id INTEGER",
    "memory_copy": "id INTEGER PRIMARY KEY, track_id INTEGER, start_id INTEGER, end_id INTEGER,"
    " name_id INTEGER, dst_agent_id INTEGER, dst_address INTEGER, src_agent_id INTEGER,"
    " src_address INTEGER, size INTEGER, event_id INTEGER",
}


class Tables:
    """A database under construction. suffix: behind each table's name."""

    def __init__(self, path, tables, suffix=""):
        self.file, self.suffix = sqlite3.connect(path), suffix
        self.strings = {}
        self.file.execute("PRAGMA synchronous = OFF")
        for name, columns in tables.items():
            self.file.execute(f'CREATE TABLE "rocpd_{name}{suffix}" ({columns})')

    def add(self, table, **columns):
        """The row's number."""
        names = ", ".join(f'"{name}"' for name in columns)
        marks = ", ".join("?" * len(columns))
        return self.file.execute(
            f'INSERT INTO "rocpd_{table}{self.suffix}" ({names}) VALUES ({marks})',
            list(columns.values()),
        ).lastrowid

    def string(self, text, table="string"):
        if (table, text) not in self.strings:
            self.strings[table, text] = self.add(table, string=text)
        return self.strings[table, text]

    def close(self):
        self.file.commit()
        self.file.close()


class Rocpd(Tables):
    """One set of tables. is_tracked: as TRACKS has them. The tables of another set may stand in
    the same file."""

    def __init__(self, path, suffix="_0198a0b1_c2d3", is_tracked=False, pid=300, node=7):
        super().__init__(path, {**ROCPD, **(TRACKS if is_tracked else ROWS)}, suffix)
        self.is_tracked, self.pid, self.node, self.numbers = is_tracked, pid, node, {}
        self.add("info_node", id=node, hostname=f"node{node}")
        self.add("info_process", id=pid, nid=node, pid=pid, command="./app")
        for number, (kind, index) in enumerate((("CPU", 0), ("GPU", 0), ("GPU", 1))):
            self.add(
                "info_agent",
                id=number,
                type=kind,
                type_index=index,
                name="gfx942",
                product_name=f"Instinct {number}" if kind == "GPU" else "EPYC",
            )

    def numbered(self, table, **columns):
        """Of the row with these columns, which is made once."""
        key = (table, *columns.items())
        if key not in self.numbers:
            self.numbers[key] = self.add(table, **columns)
        return self.numbers[key]

    def category(self, name):
        if self.is_tracked:
            return self.numbered("info_category", name=name)
        return self.string(name)

    def event(self, category, stack_id, message=None):
        extdata = "{}" if message is None else json.dumps({"message": message}, indent=4)
        columns = {"category_id": self.category(category), "stack_id": stack_id}
        return self.add("event", extdata=extdata, **columns)

    def when_and_where(self, start, end, tid, **place):
        """The columns of a row that say it."""
        self.numbered(
            "info_thread", id=tid, nid=self.node, pid=self.pid, tid=tid, name=f"worker {tid}"
        )
        if not self.is_tracked:
            return {
                "nid": self.node,
                "pid": self.pid,
                "tid": tid,
                "start": start,
                "end": end,
                **place,
            }
        track = self.numbered("track", nid=self.node, pid=self.pid, tid=tid, **place)
        times = [self.add("timestamp", value=value) for value in (start, end)]
        return {"track_id": track, "start_id": times[0], "end_id": times[1]}

    def region(self, name, start, end, stack_id, category="HIP_RUNTIME_API", tid=300, **event):
        number = self.event(category, stack_id, **event)
        place = self.when_and_where(start, end, tid)
        self.add("region", name_id=self.string(name), event_id=number, **place)
        return number

    def kernel(self, name, start, end, stack_id, gpu=0, queue=1, tid=300):
        number = self.event("KERNEL_DISPATCH", stack_id)
        place = self.when_and_where(start, end, tid, agent_id=gpu + 1, queue_id=queue, stream_id=2)
        sizes = {f"grid_size_{axis}": 256 for axis in "xyz"}
        sizes.update({f"workgroup_size_{axis}": 64 for axis in "xyz"})
        self.add(
            "kernel_dispatch",
            kernel_id=self.numbered("info_kernel_symbol", kernel_name="_Z", display_name=name),
            dispatch_id=number,
            group_segment_size=512,
            private_segment_size=0,
            region_name_id=self.string(""),
            event_id=number,
            **sizes,
            **place,
        )
        return number

    def copy(self, name, start, end, stack_id, size, to=1, source=0, queue=1, tid=300):
        number = self.event("MEMORY_COPY", stack_id)
        place = self.when_and_where(start, end, tid, queue_id=queue, stream_id=2)
        self.add(
            "memory_copy",
            name_id=self.string(name),
            dst_agent_id=to,
            dst_address=4096,
            src_agent_id=source,
            src_address=8192,
            size=size,
            event_id=number,
            **place,
        )
        return number

    def mark(self, text, time, stack_id, tid=300, category="MARKER_CORE_API"):
        number = self.event(category, stack_id, text)
        self.numbered(
            "info_thread", id=tid, nid=self.node, pid=self.pid, tid=tid, name=f"worker {tid}"
        )
        track = self.numbered(
            "track", nid=self.node, pid=self.pid, tid=tid, name_id=self.string(category)
        )
        when = {"timestamp": time}
        if self.is_tracked:
            when = {"timestamp_id": self.add("timestamp", value=time), "name_id": None}
        self.add("sample", track_id=track, event_id=number, **when)
        return number

    def counter(self, event, name, value):
        pmc = self.numbered("info_pmc", name=name)
        self.add("pmc_event", event_id=event, pmc_id=pmc, value=value)


class Rpd(Tables):
    def __init__(self, path):
        super().__init__(path, RPD)
        self.add("metadata", tag="schema_version", value="3")
        self.string("")

    def call(self, name, start, end, pid=100, tid=100, domain="hip", args="", **columns):
        return self.add(
            "api",
            **{
                "pid": pid,
                "tid": tid,
                "start": start,
                "end": end,
                "apiName_id": self.string(name),
                "category_id": self.string(""),
                "domain_id": self.string(domain),
                "args_id": self.string(args, "ustring"),
                **columns,
            },
        )

    def marker(self, text, start, end, **columns):
        return self.call("UserMarker", start, end, domain="UserMarker", args=text, **columns)

    def op(self, name, start, end, gpu=0, queue=1, kind="KernelExecution", call=None, **columns):
        number = self.add(
            "op",
            **{
                "gpuId": gpu,
                "queueId": queue,
                "sequenceId": 0,
                "start": start,
                "end": end,
                "description_id": self.string(name),
                "opType_id": self.string(kind),
                **columns,
            },
        )
        if call is not None:
            self.add("api_ops", api_id=call, op_id=number)
        return number

    def kernel(self, call, name, grid=(1, 1, 1), block=(64, 1, 1), shared=0):
        keys = ["gridX", "gridY", "gridZ", "workgroupX", "workgroupY", "workgroupZ"]
        self.add(
            "kernelapi",
            api_ptr_id=call,
            stream="0x0",
            groupSegmentSize=shared,
            privateSegmentSize=0,
            kernelName_id=self.string(name),
            **dict(zip(keys, grid + block)),
        )

    def copy(self, call, size, kind=1):
        self.add(
            "copyapi",
            api_ptr_id=call,
            stream="0x7f",
            size=size,
            width=0,
            height=0,
            kind=kind,
            dst="0x1000",
            src="0x2000",
            dstDevice=0,
            srcDevice=-1,
            sync=1,
            pinned=0,
        )

    def monitor(self, what, start, end, value, device=0, kind="gpu"):
        return self.add(
            "monitor",
            deviceType=kind,
            deviceId=device,
            monitorType=what,
            start=start,
            end=end,
            value=value,
        )


KINDS = ("KernelExecution", "CopyHostToDevice", "FillBuffer", "Barrier")
BEGIN = 3 * 10**12


class Queues:
    """When work on some GPUs' queues begins and ends: in order, or across each other."""

    def __init__(self, chance, overlap, gpus=3):
        self.chance, self.overlap, self.gpus, self.free = chance, overlap, gpus, {}

    def next(self, launch):
        where = self.chance.randrange(self.gpus), self.chance.randrange(1, 4)
        begin = launch + self.chance.randrange(2 * 10**6)
        if not self.overlap:
            begin = max(begin, self.free.get(where, 0))
        end = self.free[where] = begin + self.chance.randrange(10**6)
        return begin, end, where


def random_rpd(path, seed, rows=60, overlap=False):
    """Nested calls of some processes and threads; what they launch on some GPUs."""
    chance = random.Random(seed)
    made, queues = Rpd(path), Queues(chance, overlap)
    for process in range(chance.randint(1, 3)):
        for thread in range(chance.randint(1, 3)):
            clock, pid = BEGIN + chance.randrange(10**9), 100 + process
            tid = pid + 10 * thread
            for _ in range(chance.randint(0, rows)):
                start, length = clock + chance.randrange(1000), chance.randint(1, 10**6)
                clock = start + length
                if chance.random() < 0.2:
                    end = start if chance.random() < 0.3 else clock
                    made.marker(f"range {chance.randrange(5)}", start, end, pid=pid, tid=tid)
                    if length < 4 or end == start:
                        continue
                    start, length = start + 1, length - 2
                name = f"hipCall{chance.randrange(6)}"
                args = f'{{"n": "{chance.randrange(9)}"}}'
                call = made.call(name, start, start + length, pid, tid, args=args)
                for _ in range(chance.choice((0, 0, 1, 1, 2))):
                    kind = chance.choice(KINDS)
                    kernel = f"void kernel<{chance.randrange(5)}>(int)"
                    begin, end, (gpu, queue) = queues.next(start)
                    op = made.op(
                        kernel if kind == "KernelExecution" else "",
                        begin,
                        end,
                        gpu,
                        queue,
                        kind,
                        call if chance.random() < 0.9 else None,
                    )
                    if chance.random() < 0.2:
                        made.add("counter", op_id=op, name_id=made.string("waves"), value=1.5)
    made.close()


def random_rocpd(path, seed, is_tracked, suffix="_0198a0b1_c2d3", pid=300, rows=60):
    chance = random.Random(seed)
    made, queues = Rocpd(path, suffix, is_tracked, pid), Queues(chance, False, gpus=2)
    stack_id = 0
    for thread in range(chance.randint(1, 3)):
        clock, tid = BEGIN + chance.randrange(10**9), pid + 10 * thread
        for _ in range(chance.randint(0, rows)):
            start, length = clock + chance.randrange(1000), chance.randint(1, 10**6)
            clock, stack_id = start + length, stack_id + 1
            name = f"hipCall{chance.randrange(6)}"
            event = made.region(name, start, clock, stack_id, tid=tid)
            made.add("arg", event_id=event, position=0, type="int", name="n", value="5")
            for _ in range(chance.choice((0, 0, 1, 1, 2))):
                begin, end, (gpu, queue) = queues.next(start)
                launch = stack_id if chance.random() < 0.9 else 0
                if chance.random() < 0.3:
                    copy = f"MEMORY_COPY_{chance.randrange(3)}"
                    made.copy(copy, begin, end, launch, 64, gpu + 1, queue=queue, tid=tid)
                else:
                    kernel = f"void kernel<{chance.randrange(5)}>(int)"
                    made.kernel(kernel, begin, end, launch, gpu, queue, tid)
    made.close()
