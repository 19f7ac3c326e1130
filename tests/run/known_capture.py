"""Captures whose scopes and times are known: imported traces."""

import json
import os
import subprocess

from case import HANG_SECONDS, PROF, Folder

PHASES = ("load", "convolution", "a name that is much longer than what a narrow terminal can show")


def events(process=7, slower=1):
    """20 steps of 1 ms. The second phase has a scope inside; times differ, in us."""
    found = []
    for step in range(20):
        begin = step * 1000
        found.append(
            {"ph": "X", "name": "step", "cat": "step", "pid": process, "tid": process}
            | {"ts": begin, "dur": 900, "args": {"step": step}}
        )
        for index, name in enumerate(PHASES):
            duration = (100 + 10 * index + step) * slower
            found.append(
                {"ph": "X", "name": name, "cat": "operator", "pid": process, "tid": process}
                | {"ts": begin + 10 + 250 * index, "dur": duration}
            )
        found.append(
            {"ph": "X", "name": "inner", "cat": "runtime", "pid": process, "tid": process}
            | {"ts": begin + 270, "dur": 40}
        )
    return found


def device_events():
    """A step with three operators, which launch kernels and take memory."""
    call = {"ph": "X", "pid": 1, "tid": 1}
    memory = {"ph": "i", "s": "t", "pid": 1, "tid": 1, "name": "[memory]"}
    found = [{**call, "name": "step", "cat": "cpu_op", "ts": 0, "dur": 900}]
    for number, (name, kernel_us) in enumerate((("conv", 50), ("conv", 31.001), ("norm", 20))):
        at = 100 * number
        args = {"correlation": number + 1}
        found += [
            {**call, "name": name, "cat": "cpu_op", "ts": at + 5, "dur": 20},
            {**call, "name": "launch", "cat": "cuda_runtime", "ts": at + 10, "dur": 2}
            | {"args": args},
            {"ph": "X", "pid": 0, "tid": 7, "name": "kernel", "cat": "kernel", "ts": at + 20}
            | {"dur": kernel_us, "args": {"device": 0, "stream": 7, **args}},
        ]
    # Of the host in the first operator and in the step; of the device in the others and the step.
    for address, ts, device_type, size in (
        (1, 6, 0, 4096),
        (2, 50, 0, 100),
        (3, 106, 1, 512),
        (3, 206, 1, -256),
        (4, 250, 1, 1024),
    ):
        args = {"Addr": address, "Bytes": size, "Device Type": device_type}
        found.append({**memory, "ts": ts, "args": {**args, "Device Id": device_type - 1}})
    return found


class Recorded(Folder):
    def write_trace(self, name="trace.json", **options):
        return self.write(name, json.dumps({"traceEvents": events(**options)}))

    def record(self, name="trace.prof", **options):
        """The capture's path."""
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        trace = self.write_trace(name + ".json", **options)
        self.prof("import", trace, "-o", path)
        os.remove(trace)
        return path

    def prof(self, *words, status=0, env=None, text=True):
        done = subprocess.run(
            [PROF, *words],
            cwd=self.folder,
            capture_output=True,
            text=text,
            timeout=HANG_SECONDS,
            check=False,
            env={**os.environ, **(env or {})},
        )
        self.assertEqual(done.returncode, status, (words, done.stderr))
        return done
