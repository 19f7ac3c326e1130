"""A trace of torch.profiler's form, written by hand, slice by slice."""

import json

import prof

RANGE = "autograd::engine::evaluate_function: "


class Trace:
    """Slices of threads, as a trace has them."""

    def __init__(self):
        self.events = [
            {
                "ph": "M",
                "name": "process_name",
                "pid": 1,
                "tid": 1,
                "ts": 0,
                "args": {"name": "python"},
            }
        ]

    def put(self, name, begin, end, category, thread=1, **args):
        self.events.append(
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "pid": 1,
                "tid": thread,
                "ts": begin,
                "dur": end - begin,
                "args": args,
            }
        )

    def memory(self, size, at, thread=1):
        args = {
            "Total Allocated": size,
            "Bytes": size,
            "Addr": 5000,
            "Device Id": -1,
            "Device Type": 0,
        }
        self.events.append(
            {
                "ph": "i",
                "s": "t",
                "cat": "cpu_instant_event",
                "name": "[memory]",
                "pid": 1,
                "tid": thread,
                "ts": at,
                "args": args,
            }
        )

    def kernel(self, name, launched, begin, end, number, thread=1):
        self.put(
            "cudaLaunchKernel", launched, launched + 1, "cuda_runtime", thread, correlation=number
        )
        self.events.append(
            {
                "ph": "X",
                "cat": "kernel",
                "name": name,
                "pid": 0,
                "tid": 7,
                "ts": begin,
                "dur": end - begin,
                "args": {"correlation": number, "device": 0, "stream": 7},
            }
        )

    def function(self, name, begin, end, thread=1):
        self.put(name, begin, end, "python_function", thread)

    def op(
        self,
        name,
        begin,
        end,
        sequence=None,
        forward_thread=0,
        own_thread=None,
        thread=1,
        stack=None,
    ):
        args = (
            {}
            if sequence is None
            else {"Sequence number": sequence, "Fwd thread id": forward_thread}
        )
        if own_thread is not None:
            args["Thread id"] = own_thread
        if stack is not None:
            args["Call stack"] = stack
        self.put(name, begin, end, "cpu_op", thread, **args)

    def read(self, path):
        with open(path, "w") as file:
            json.dump({"schemaVersion": 1, "traceEvents": self.events}, file)
        return prof.import_trace(path)
