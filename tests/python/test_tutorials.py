"""The tutorials of examples/python and its guides, each run as a user runs it: what they print,
and what files they leave."""

import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

from hang_guard import HANG_SECONDS
from text_tables import tables

SOURCE = os.environ.get("PROF_TEST_SOURCE_DIR") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
)
TIMES = ["Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
OPERATORS = {
    "operators." + name
    for name in (
        "add",
        "batch_norm",
        "conv2d",
        "linear",
        "matmul",
        "max_pool2d",
        "mean",
        "relu",
        "unfold",
    )
}
CALLS = {
    "model_inference": 1,
    "operators.add": 2,
    "operators.batch_norm": 5,
    "operators.conv2d": 5,
    "operators.linear": 1,
    "operators.matmul": 6,
    "operators.max_pool2d": 1,
    "operators.mean": 1,
    "operators.relu": 5,
    "operators.unfold": 5,
}


def refuse(word):
    raise ValueError(f"{word} is no JSON")


class Tutorials(unittest.TestCase):
    def run_script(self, name):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        script = os.path.join(SOURCE, "examples", "python", name)
        done = subprocess.run(
            [sys.executable, "-W", "error", script],
            cwd=self.folder.name,
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def files(self):
        return sorted(
            os.path.relpath(os.path.join(d, f), self.folder.name)
            for d, _, names in os.walk(self.folder.name)
            for f in names
        )

    def slices(self, name):
        """How often each name stands in a trace."""
        path = os.path.join(self.folder.name, name)
        with (gzip.open if name.endswith(".gz") else open)(path, "rt", encoding="utf-8") as f:
            trace = json.load(f, parse_constant=refuse)
        counts = {}
        for e in trace["traceEvents"]:
            if e["ph"] == "X":
                self.assertGreaterEqual(e["dur"], 0)
                counts[e["name"]] = counts.get(e["name"], 0) + 1
        return counts

    def check(self, table, columns, units=r"\d+\.\d{3}(us|ms|s)"):
        self.assertEqual(table.columns, ["Name"] + columns)
        self.assertEqual(len(table.lengths), 1)
        self.assertRegex(table.footer, r"^Self CPU time total: \d+\.\d{3}(us|ms|s)$")
        self.assertTrue(table.rows)
        for row in table.rows:
            for column in TIMES:
                self.assertRegex(
                    row[column], r"^\d+\.\d\d%$" if "%" in column else "^" + units + "$"
                )
            self.assertGreater(int(row["# of Calls"]), 0)

    def calls(self, table):
        return {row["Name"]: int(row["# of Calls"]) for row in table.rows}

    def falls(self, table, column):
        def number(text):
            value, unit = re.fullmatch(r"(-?[\d.]+) ?([a-zA-Z]*)", text).groups()
            return (
                float(value)
                * {"us": 1, "ms": 1e3, "s": 1e6, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "": 1}[unit]
            )

        values = [number(row[column]) for row in table.rows if row[column] != "--"]
        self.assertEqual(values, sorted(values, reverse=True))

    def stacks(self, name):
        with open(os.path.join(self.folder.name, name), encoding="utf-8") as f:
            lines = f.read().splitlines()
        self.assertTrue(lines)
        for line in lines:
            self.assertRegex(line, r"^[^ ;]+(;[^ ;]+)* [1-9]\d*$")
            self.assertRegex(line, r"_tutorial\.py\(\d+\):_<module>;|_recipe\.py\(\d+\):_<module>;")
        self.assertTrue([line for line in lines if "operators.py" in line and line.count(";") >= 3])

    def cycles(self, found, of_steps):
        self.assertEqual(len(found), 2)
        for table in found:
            self.check(table, TIMES + ["# of Calls"])
            self.assertEqual(self.calls(table)["ProfilerStep*"], of_steps)
            self.assertEqual(self.calls(table)["operators.conv2d"], 5 * of_steps)

    def test_the_recipe_of_torch(self):
        found = tables(self.run_script("torch_recipe.py"))
        self.assertEqual(len(found), 8)
        times, shapes, flops, by_self_memory, by_memory, stacks = found[:6]
        self.check(times, TIMES + ["# of Calls"])
        self.assertEqual(self.calls(times), CALLS)
        self.falls(times, "CPU total")
        self.assertEqual(times.rows[0]["Name"], "model_inference")
        self.assertEqual(times.rows[0]["CPU total %"], "100.00%")
        self.check(shapes, TIMES + ["# of Calls", "Input Shapes"])
        self.assertEqual(len(shapes.rows), 10)
        row = next(
            r
            for r in shapes.rows
            if r["Name"] == "operators.conv2d" and r["Input Shapes"] == "[[1, 3, 8, 8], [27, 4]]"
        )
        self.assertEqual(row["# of Calls"], "1")
        self.check(flops, TIMES + ["# of Calls", "Total FLOPs"])
        self.assertEqual(
            {r["Name"]: r["Total FLOPs"] for r in flops.rows}["operators.matmul"],
            "%.3f" % (2 * (64 * 27 * 4 + 4 * 16 * 36 * 4 + 4 * 10)),
        )
        self.assertIn("--", [r["Total FLOPs"] for r in flops.rows])
        for table, column in ((by_self_memory, "Self CPU Mem"), (by_memory, "CPU Mem")):
            self.check(table, TIMES + ["CPU Mem", "Self CPU Mem", "# of Calls"])
            self.falls(table, column)
            unfolded = 8 * (64 * 27 + 4 * 16 * 36)
            text = {r["Name"]: r["Self CPU Mem"] for r in table.rows}["operators.unfold"]
            if sys.implementation.name == "cpython":
                self.assertEqual(text, "%.2f KB" % (unfolded / 1024))
            else:
                # a collector frees what others made when it likes, so within any operator: less
                # than was made here, never more
                number, unit = text.split()
                self.assertLessEqual(
                    float(number) * {"B": 1, "KB": 1024, "MB": 1024**2}[unit], unfolded
                )
        self.check(stacks, TIMES + ["# of Calls", "Source Location"])
        self.assertEqual(len(stacks.rows), 2)
        for row in stacks.rows:  # which two take longest, the machine says
            self.assertRegex(row["Source Location"], r"(operators|models)\.py\(\d+\): \w+$")
        self.assertRegex(stacks.more[0][-1], r"models\.py\(\d+\): \w+$")
        self.assertEqual(stacks.more[-1], [""] * 8)
        self.cycles(found[6:], 2)
        self.falls(found[7], "Self CPU")
        self.assertEqual(
            self.files(), ["profiler_stacks.txt", "trace.json", "trace_4.json", "trace_8.json"]
        )
        self.stacks("profiler_stacks.txt")
        self.assertEqual(
            self.slices("trace.json"), {k: v for k, v in CALLS.items() if k in OPERATORS}
        )
        for first, name in ((2, "trace_4.json"), (6, "trace_8.json")):
            slices = self.slices(name)
            self.assertEqual(
                {k for k in slices if k.startswith("ProfilerStep")},
                {f"ProfilerStep#{first}", f"ProfilerStep#{first + 1}"},
            )
            self.assertEqual(slices["operators.conv2d"], 10)

    def test_the_guide_of_deeplink(self):
        found = tables(self.run_script("guides/deeplink/deeplink_tutorial.py"))
        self.assertEqual(len(found), 7)
        times, shapes, device, memory, stacks = found[:5]
        self.check(times, TIMES + ["# of Calls"])
        self.assertEqual(self.calls(times), CALLS)
        self.check(shapes, TIMES + ["# of Calls", "Input Shapes"])
        self.assertEqual(shapes.rows[0]["Input Shapes"], "[]")
        self.check(device, TIMES + ["# of Calls"])
        self.assertEqual(self.calls(device), CALLS)
        self.check(memory, TIMES + ["CPU Mem", "Self CPU Mem", "# of Calls"])
        self.falls(memory, "CPU Mem")
        self.check(stacks, TIMES + ["# of Calls", "Source Location"])
        self.assertEqual(len(stacks.rows), 2)
        self.cycles(found[5:], 2)
        # no device, no difference: in the order of their first calls
        self.assertEqual(
            [row["Name"] for row in found[5].rows[:2]], ["ProfilerStep*", "operators.conv2d"]
        )
        files = self.files()
        logs = [f for f in files if f.startswith("log" + os.sep)]
        self.assertEqual(
            sorted(set(files) - set(logs)),
            ["stacks.txt", "trace.json", "trace_4.json", "trace_8.json"],
        )
        self.assertEqual(len(logs), 2)
        self.stacks("stacks.txt")
        self.assertEqual(self.slices("trace.json")["operators.relu"], 5)
        steps = []
        for log in logs:
            self.assertRegex(os.path.basename(log), r"^worker0\.\d{19}\.pt\.trace\.json\.gz$")
            steps.append(sorted(k for k in self.slices(log) if k.startswith("ProfilerStep")))
        self.assertEqual(
            sorted(sorted(int(k.split("#")[1]) for k in names) for names in steps),
            [[3, 4, 5], [8, 9, 10]],
        )

    def test_the_tutorial_of_raf(self):
        text = self.run_script("guides/raf/raf_tutorial.py")
        count = 2 * sum(CALLS[name] for name in OPERATORS)
        self.assertRegex(text, rf"(?m)^Entries: {count}$")
        self.assertRegex(text, r"(?m)^linear: \d+\.\d{3} ms$")
        self.assertRegex(text, r"(?m)^VM: \d+\.\d{3} ms in 1 run$")
        self.assertGreater(float(re.search(r"(?m)^Latency: ([\d.]+)$", text).group(1)), 1)
        self.assertRegex(text, r"(?m)^Workspace size: 0\.0$")
        self.assertRegex(text, r"(?m)^Samples: 2\nCached: 2$")
        self.assertRegex(text, r"(?m)^numpy\.matmul: (\d+\.\d us|numpy is not installed)$")
        self.assertRegex(text, r"(?m)^sched_yield: \d+\.\d\d us$")
        self.assertGreaterEqual(float(re.search(r"Two at once: ([\d.]+) ms", text).group(1)), 2)
        self.assertIn(
            "Max used memory (MBs): 52.0\nMax allocated memory (MBs): 52.0\nMemory Trace:\n"
            "Numbers are the in MBs.\n#Trace\t#Tag ",
            text,
        )
        self.assertEqual(
            re.findall(r"(?m)^ +(\d)\t(\w+) *\t *([\d.]+)\t *([\d.]+)$", text),
            [
                ("0", "conv1", "24.000", "24.000"),
                ("1", "conv2", "52.000", "52.000"),
                ("2", "dense", "36.000", "52.000"),
            ],
        )
        self.assertTrue(
            text.endswith("Max used memory (MBs): 40.0\nMax allocated memory (MBs): 64.0\n"),
            text[-200:],
        )
        self.assertEqual(self.files(), ["dumped.json", "profile.json"])
        logs = []
        for name in self.files():
            with open(os.path.join(self.folder.name, name), encoding="utf-8") as f:
                logs.append(json.load(f, parse_constant=refuse))
        self.assertEqual(logs[0], logs[1])
        events = logs[0]["traceEvents"]
        for letter in "BE":
            self.assertEqual(
                {
                    name: sum(e["name"] == name and e["ph"] == letter for e in events)
                    for name in OPERATORS
                },
                {name: CALLS[name] for name in OPERATORS},
            )
        self.assertEqual(
            {(e["cat"], e["tid"]) for e in events}, {("Default Stream", "Default Stream")}
        )
        shapes = next(e["args"]["args_string"] for e in events if e["name"] == "operators.conv2d")
        self.assertEqual(len(shapes.split(";")), 2)

    def test_numpy_where_it_is(self):
        try:
            import numpy  # noqa: F401
        except ImportError:
            self.skipTest(
                "numpy is not installed for this Python: the tutorial's line about it says so"
            )
        self.assertRegex(
            self.run_script("guides/raf/raf_tutorial.py"), r"(?m)^numpy\.matmul: \d+\.\d us$"
        )


if __name__ == "__main__":
    unittest.main()
