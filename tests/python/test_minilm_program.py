"""The program minilm and its library: its words, its devices, and one copy of prof."""

import json
import os
import re
import shutil
import subprocess
import sys
import unittest

from hang_guard import HANG_SECONDS
from test_minilm import OPERATORS, PROGRAM, ROOT, Base

import prof

PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(prof.__file__)))


LIBRARY = os.environ.get("PROF_LIBRARY") or os.path.join(PACKAGES, "prof", "lib", "libprof.so.0")


class Program(Base):
    def run_program(self, *arguments, stdin="", **variables):
        environment = {**os.environ, "PYTHONPATH": PACKAGES, **variables}
        return subprocess.run(
            [sys.executable, "-S", PROGRAM, *arguments],
            capture_output=True,
            text=True,
            input=stdin,
            timeout=HANG_SECONDS,
            cwd=self.folder,
            env=environment,
        )

    def test_default(self):
        done = self.run_program()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for text in (
            "Sentences: 12, each embedded as 384 floats",
            "a cup of tea",
            "dense",
            "python: ",
            "Self CPU Mem",
            "The pool's peaks",
            "minilm-python-trace.json",
        ):
            self.assertIn(text, done.stdout)
        with open(self.path("minilm-python-trace.json"), encoding="utf-8") as f:
            names = {e["name"] for e in json.load(f)["traceEvents"]}
        self.assertLessEqual(
            {
                "python: open the model",
                "python: embed",
                "python: nearest pairs",
                "layer 3 key",
                "dense",
            },
            names,
        )

    def test_on_a_device(self):
        """The same pairs, and the device's columns and memory in Python's table."""
        own = {"OCL_ICD_VENDORS": "", "POCL_CACHE_DIR": self.folder}
        done = self.run_program("--device", "opencl", "--level", "1", **own)
        if done.returncode and re.search(
            "there is no OpenCL|OpenCL has no device|without OpenCL's headers", done.stderr
        ):
            self.skipTest(done.stderr.strip())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        pairs = re.compile(r"  \d\.\d{3}  .*\n         .*\n")
        self.assertEqual(
            pairs.findall(done.stdout), pairs.findall(self.run_program("--level", "1").stdout)
        )
        for text in ("Self OPENCL %", "OPENCL total", "Self OPENCL Mem", "Self OPENCL time total"):
            self.assertIn(text, done.stdout)
        row = next(
            line.split() for line in done.stdout.splitlines() if line.split()[:1] == ["dense"]
        )
        self.assertEqual((row[-1], float(re.sub("[a-z]+$", "", row[6])) > 0), ("108", True), row)
        peaks = re.search(
            r"peaks: (\S+) MiB used, (\S+) MiB allocated. By its own account: (\S+) and (\S+) MiB",
            done.stdout,
        )
        self.assertEqual(peaks.group(1, 2), peaks.group(3, 4))
        self.assertGreater(float(peaks[1]), 86)  # the weights

    def test_sentences_of_the_user(self):
        done = self.run_program(
            "--level", "1", "--out", "t.json", "--file", "-", stdin="tea\n\ncup of tea\nrain\n"
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"Sentences: 3, .*\n  0\.\d{3}  tea\n         cup of tea\n")
        self.assertNotRegex(done.stdout, r"layer \d")
        done = self.run_program("only one")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("nearest to each other", done.stdout)

    def test_what_is_wrong_is_said(self):
        open(self.path("libcuda.so.1"), "w").close()  # before the machine's own
        for arguments, variables, text in (
            (["--file", os.devnull], {}, "there are no sentences"),
            (["--file", "nothing.txt"], {}, "nothing.txt"),
            (["--model", self.folder], {}, "fetch-model.sh"),
            (["--out", "no/where.json"], {}, "no/where.json"),
            ([], {"MINILM_LIBRARY": self.path("none.so")}, "tools/build.sh"),
            ([], {"PYTHONPATH": ""}, "pip install ./bindings/python"),
            (
                ["--device", "opencl"],
                {"OCL_ICD_VENDORS": os.path.join(ROOT, "tests", "device", "no-drivers")},
                "OpenCL",
            ),
            (["--device", "cuda"], {"LD_LIBRARY_PATH": self.folder}, "there is no CUDA"),
        ):
            done = self.run_program(*arguments, **variables)
            self.assertEqual((done.returncode, "Traceback" in done.stderr), (1, False), done.stderr)
            self.assertRegex(done.stderr, "^minilm.py: ")
            self.assertIn(text, done.stderr)
        self.assertEqual(self.run_program("--file", "a.txt", "a sentence").returncode, 2)


ACTIVITIES = """
import json, os, sys, time
sys.path.insert(0, os.path.dirname({program!r}))
import minilm, prof
cpu, device = prof.ProfilerActivity.CPU, prof.ProfilerActivity.PrivateUse1
chosen = {{"none": None, "cpu": [cpu], "device": [cpu, device]}}
model = minilm.Minilm(device="opencl")


def kernels(path):
    with open(path, encoding="utf-8") as f:
        trace = json.load(f)
    ran = [e["cat"] for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] > 5000000]
    return ran.count("kernel"), ran.count("gpu_user_annotation") > 0


def waits_for_work(task):
    # Whether it is a collector in a futex call (FUTEX_WAIT_PRIVATE) with a timeout. A mutex has
    # none. The task may end at any time.
    try:
        with open(f"/proc/self/task/{{task}}/comm") as f:
            if f.read().strip() != "prof-collector":
                return False
        with open(f"/proc/self/task/{{task}}/syscall") as f:
            words = f.read().split()
    except OSError:
        return False
    return len(words) == 9 and int(words[2], 16) == 128 and int(words[4], 16) != 0


def wait_for_a_round():
    # The collector begins and ends records in its rounds. Reading what was recorded requests one,
    # and wakes the collector. It waits for work again only when it has done a round that began
    # after the request: a wait for an older one ends at once. The test's timeout is the only limit.
    # A stop waits one second for the collector. On a busy machine the collector may end later. A
    # read then requests nothing, and the next collector begins with a round.
    prof.Trace.now()
    while not any(waits_for_work(task) for task in os.listdir("/proc/self/task")):
        time.sleep(0.001)


with prof.profile():  # records are held back until the device's clock is known
    model.embed(["a"]).close()

for name in sys.argv[1:]:
    with prof.profile(activities=chosen[name]) as p:
        if name != "cpu":  # no records: no rounds
            wait_for_a_round()
        model.embed(["a"]).close()
        if name != "cpu":
            wait_for_a_round()
    p.export_chrome_trace(name + ".json")
    events = p.events()
    ran, has_sides = kernels(name + ".json")
    print(name, ran, has_sides)
    if name == "device":  # each event has its kernels, and averages are their sums
        of_events = sum(e.self_device_time_total for e in events)
        of_rows = sum(a.self_device_time_total for a in p.key_averages())
        seen = sum(len(e.kernels) for e in events)
        print(seen >= 2 * ran, abs(of_events / of_rows - 1) < 0.01)


with prof.profile(activities=chosen["device"]) as p:
    for is_on in (True, False, True):
        p.toggle_collection_dynamic(is_on, [prof.ProfilerActivity.PrivateUse1])
        wait_for_a_round()
        model.embed(["a"]).close()
    wait_for_a_round()
p.export_chrome_trace("toggled.json")
print("toggled", kernels("toggled.json")[0])
print(sorted(a.name for a in prof.supported_activities()))
"""


class Activities(Base):
    """Which of a device's sides are recorded, with the layer that records kernels by itself."""

    def test_kernels_are_recorded_unless_they_are_left_out(self):
        layer = os.path.join(os.path.dirname(os.path.abspath(LIBRARY)), "libprof_opencl.so")
        if not os.path.exists(layer):
            self.skipTest("libprof_opencl.so is not beside the library: it is no part of the wheel")
        own = {
            **os.environ,
            "OCL_ICD_VENDORS": "",
            "OPENCL_LAYERS": layer,
            "POCL_CACHE_DIR": self.folder,
            "PYTHONPATH": PACKAGES,
        }
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                ACTIVITIES.format(program=PROGRAM),
                "none",
                "cpu",
                "device",
                "cpu",
                "none",
            ],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            cwd=self.folder,
            env=own,
        )
        if done.returncode and re.search(
            "there is no OpenCL|OpenCL has no device|without OpenCL's headers", done.stderr
        ):
            self.skipTest(done.stderr.strip().splitlines()[-1])
        self.assertEqual(done.stderr, "")
        kernels = sum(OPERATORS.values())
        lines = [
            f"{name} {0 if name == 'cpu' else kernels} True"
            for name in ("none", "cpu", "device", "cpu", "none")
        ]
        lines.insert(3, "True True")
        self.assertEqual(
            done.stdout.splitlines(), [*lines, f"toggled {2 * kernels}", "['CPU', 'PrivateUse1']"]
        )


COPIES = """
import os, sys, warnings
sys.path.insert(0, os.path.dirname({program!r}))
import minilm, prof
warnings.simplefilter("always")
for step in sys.argv[1:]:
    if step == "runtime":
        model = minilm.Minilm()
    else:
        profiler = prof.profiler
with prof.profile() as p:
    model.embed(["a"])
with open("/proc/self/maps") as f:
    libraries = {{line.split()[-1] for line in f if "libprof" in line}}
print(len(libraries), any(a.key == "dense" for a in p.key_averages()))
"""


class Copies(Base):
    """Which copy of prof is used, for each order of imports."""

    def run_steps(self, *steps, **variables):
        environment = {key: value for key, value in os.environ.items() if key != "PROF_LIBRARY"}
        return subprocess.run(
            [sys.executable, "-c", COPIES.format(program=PROGRAM), *steps],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            env={**environment, "PYTHONPATH": PACKAGES, **variables},
        )

    def test_the_runtimes_copy_is_found(self):
        done = self.run_steps("runtime", "prof")
        self.assertEqual((done.stdout, done.stderr), ("1 True\n", ""))

    def test_a_copy_that_prof_opened_first_serves_the_runtime(self):
        other = self.path("libprof.so.0")
        shutil.copyfile(LIBRARY, other)
        done = self.run_steps("prof", "runtime", PROF_LIBRARY=other)
        self.assertEqual((done.stdout, done.stderr), ("1 True\n", ""))

    def test_a_second_copy_is_warned_of(self):
        other = self.path("libprof.so.0")
        shutil.copyfile(LIBRARY, other)
        done = self.run_steps("runtime", "prof", PROF_LIBRARY=other)
        self.assertEqual(done.stdout, "2 False\n")
        self.assertIn("another copy", done.stderr)


if __name__ == "__main__":
    unittest.main()
