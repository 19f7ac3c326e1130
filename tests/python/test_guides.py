"""The snippets of examples/python/guides without torch. Each section of the guides with code has a
file. docs/reference/guides.md lists all files. RAF's snippets do what its guide says.
test_torch_guides.py has those of torch.profiler's guides, test_tutorials.py the two tutorials."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from guide_snippets import FOLDER, SOURCE, head, on_torch, snippets
from hang_guard import HANG_SECONDS

RAF, DEEPLINK = "RAF, Profile Your Model", "DeepLink, Profiler"
PYTORCH, ROCM = "PyTorch Profiler for AMD GPUs", "Torch Profiler (ROCm)"
SECTIONS = {
    RAF: (
        "Profile Your Model",
        "Profile Latency",
        "Profiling Levels",
        "Profile a CPU function",
        "Profile a GPU kernel",
        "Profile Op Latency",
        "Profile Memory",
        "all",
    ),
    DEEPLINK: (
        "3. Execution time",
        "3. Execution time, by input shapes",
        "3. Execution time, on a device",
        "4. Memory consumption",
        "5. Chrome trace viewer",
        "6. Call stacks",
        "7. Long-running jobs, the schedule",
        "7. Long-running jobs, the handler",
        "Case 1. MobileNet v2",
        "all",
    ),
    PYTORCH: (
        "Manual Installation",
        "Simple Profiling Example",
        "Profiling Activities",
        "Recording Functions",
        "Profiling Training Loops",
        "Profiling Schedules",
        "Profiling with Stack Traces",
        "FLOP Counting",
        "Profiling Distributed Training",
        "Basic Memory Profiling",
        "Identifying Memory Bottlenecks",
        "Memory Optimization Techniques, 1. Gradient Checkpointing",
        "Memory Optimization Techniques, 2. Mixed Precision Training",
        "Memory Optimization Techniques, 3. Batch Size Optimization",
        "Basic TensorBoard Integration",
        "Profiling Multiple Runs",
        "Custom TensorBoard Logging",
        "Filtering and Sorting Results",
        "Analyzing Chrome Traces",
        "Analyzing Stack Traces",
        "CPU Bottlenecks",
        "GPU Bottlenecks",
        "Memory Bottlenecks",
        "Memory Management",
        "Common Issues, 1. No CUDA Events",
        "Common Issues, 2. Out of Memory",
        "Common Issues, 3. Profiler Overhead",
        "Common Issues, 4. Missing Stack Traces",
        "Debugging Tips, 1. Isolate Components",
        "Debugging Tips, 2. Compare Implementations",
    ),
    ROCM: ("Torch Profiler",),
}
"""Sections with code of Python's or C++'s, by guide, in the guide's order."""

OPERATORS = {
    "add": 2,
    "batch_norm": 5,
    "conv2d": 5,
    "linear": 1,
    "matmul": 6,
    "max_pool2d": 1,
    "mean": 1,
    "relu": 5,
    "unfold": 5,
}


class Heads(unittest.TestCase):
    maxDiff = None

    def test_each_file_names_its_guide_and_section(self):
        self.assertEqual([name for name in snippets() if head(name) is None], [])

    def test_each_section_has_one_file(self):
        found = sorted(head(name) for name in snippets())
        self.assertEqual(found, sorted((g, s) for g, names in SECTIONS.items() for s in names))

    def test_the_page_lists_each_file(self):
        """Guide by guide, in the order of the sections."""
        text = Path(SOURCE, "docs", "reference", "guides.md").read_text("utf-8")
        listed, guide = [], ""
        for line in re.sub(r"\n  (?=\S)", " ", text).splitlines():  # one line an item
            if line.startswith("## "):
                guide = line[3:]
            link = r"\[(.+?)\]\(\.\./\.\./examples/python/guides/(.+?)\)"
            row = re.match(rf"- \*\*(.+?)\*\*: {link}\. ", line)
            if row:
                self.assertEqual(row.group(2), Path(row.group(3)).name)
                listed.append((guide, row.group(1), row.group(3)))
        found = {head(name): name for name in snippets()}
        wanted = [(g, s, found[g, s]) for g, names in SECTIONS.items() for s in names]
        self.assertEqual(listed, wanted)

    def test_the_import_is_what_differs(self):
        """Whatever a snippet takes from prof.torch, torch.profiler has by the same name."""
        names = set()
        for name in snippets():
            if not name.startswith(("pytorch/", "deeplink/")) or "tutorial" in name:
                continue
            source = Path(FOLDER, name).read_text("utf-8")
            for node in ast.walk(ast.parse(on_torch(source), name)):
                if isinstance(node, ast.ImportFrom) and node.module == "torch.profiler":
                    names |= {alias.name for alias in node.names}
        self.assertEqual(
            names,
            {
                "ProfilerActivity",
                "profile",
                "record_function",
                "schedule",
                "tensorboard_trace_handler",
            },
        )


class Rafs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_words(self, words):
        done = subprocess.run(
            words, cwd=self.folder, capture_output=True, text=True, timeout=HANG_SECONDS
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def run_script(self, name):
        return self.run_words([sys.executable, "-W", "error", str(Path(FOLDER, "raf", name))])

    def events(self, name):
        return json.loads(Path(self.folder, name).read_text("utf-8"))["traceEvents"]

    def test_a_model(self):
        self.assertEqual(self.run_script("setup_model.py"), "Shape: (1, 10)\n")

    def test_latency(self):
        count = 2 * sum(OPERATORS.values())
        self.assertEqual(self.run_script("latency.py"), f"Entries: {count}\n")
        found = self.events("profile.json")
        self.assertEqual(self.events("dumped.json"), found)
        for phase in "BE":
            calls = {
                name: sum(e["name"] == f"operators.{name}" and e["ph"] == phase for e in found)
                for name in OPERATORS
            }
            self.assertEqual(calls, OPERATORS)
        self.assertEqual(
            {(e["cat"], e["tid"]) for e in found}, {("Default Stream", "Default Stream")}
        )
        keys = {"name", "cat", "ph", "ts", "args", "pid", "tid"}
        self.assertEqual({frozenset(e) for e in found}, {frozenset(keys)})
        self.assertEqual({frozenset(e["args"]) for e in found}, {frozenset({"args_string"})})

    def test_levels(self):
        lines = ["Level 1: | Default Stream", "Level 2: | Default Stream | VM"]
        self.assertEqual(self.run_script("levels.py").splitlines(), lines)

    def test_op_latency(self):
        text = self.run_script("op_latency.py")
        found = re.fullmatch(r"Latency: (\d+\.\d+)\nWorkspace size: 0\.0\nCached: 1\n", text)
        self.assertIsNotNone(found, text)
        self.assertGreater(float(found.group(1)), 0)

    def test_memory(self):
        text = self.run_script("memory.py")
        used = float(re.search(r"^Max used memory \(MBs\): (.+)$", text, re.M).group(1))
        taken = float(re.search(r"^Max allocated memory \(MBs\): (.+)$", text, re.M).group(1))
        self.assertEqual(taken, 1)
        self.assertTrue(0 < used < taken, text)
        lines = text[text.index("#Trace") :].splitlines()
        cells = [[cell.strip() for cell in line.split("\t")] for line in lines[:2]]
        self.assertEqual(cells[0], ["#Trace", "#Tag", "used", "alloc"])
        self.assertEqual(cells[1], ["0", "run", f"{used:.3f}", "1.000"])

    def compiled(self, name):
        compiler = shutil.which(os.environ.get("CXX", "c++"))
        library = os.environ.get("PROF_LIBRARY", "")
        if not compiler or not os.path.isfile(library):
            self.skipTest("there is no C++ compiler, or no PROF_LIBRARY to link")
        program = Path(self.folder, name)
        words = [compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror"]
        words += [f"-I{SOURCE}/include", str(Path(FOLDER, "raf", f"{name}.cpp")), library]
        self.run_words([*words, f"-Wl,-rpath,{os.path.dirname(library)}", "-o", str(program)])
        return self.run_words([str(program)])

    def test_a_function_of_cpp(self):
        self.assertEqual(self.compiled("cpu_function"), "Pieces: 3\n")
        (event,) = [e for e in self.events("cpu_function.json") if e["ph"] == "X"]
        self.assertEqual((event["name"], event["cat"]), ("dense", "MemoryRequest"))
        self.assertEqual(event["args"]["args_string"], ["Count: 3"])

    def test_a_kernel(self):
        """Without CUDA, the host's side is there."""
        self.compiled("gpu_kernel")
        found = [e for e in self.events("gpu_kernel.json") if e["ph"] == "X"]
        self.assertIn(("softmax", "kernel"), {(e["name"], e["cat"]) for e in found})


if __name__ == "__main__":
    unittest.main()
