"""prof.Sampler: the host's meters, out of files as the kernel has them; the trace's counters and
the CSV; what is refused. And prof.backends()."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

from hang_guard import HANG_SECONDS

import prof

PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(prof.__file__)))

SCRIPT = """
import os, sys, time, prof
with prof.profile() as p:
    with prof.Sampler(interval=0.002, mode=sys.argv[1], csv=sys.argv[2]) as s:
        while s.state().sample_count < 20:  # whoever runs this ends it
            time.sleep(0.005)
    assert s.state().is_running == 0 and s.state().meter_count == 1, s.state()
p.export_chrome_trace(sys.argv[3])
"""


class Meters(unittest.TestCase):
    """In processes of their own, whose kernel's files are others."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name, text in (
            ("BAT0/type", "Battery"),
            ("BAT0/current_now", "2000000"),
            ("BAT0/voltage_now", "11500000"),
        ):
            path = os.path.join(self.folder, "sys", "class", "power_supply", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write(text + "\n")

    def run_script(self, *arguments, script=SCRIPT):
        environment = {**os.environ, "PROF_SYSFS_ROOT": self.folder, "PYTHONPATH": PACKAGES}
        return subprocess.run(
            [sys.executable, "-c", script, *arguments],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            env=environment,
        )

    def path(self, name):
        return os.path.join(self.folder, name)

    def sampled(self, mode):
        self.begun_ns = time.time_ns()
        done = self.run_script(mode, self.path("m.csv"), self.path("t.json"))
        self.ended_ns = time.time_ns()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(self.path("m.csv")) as f:
            rows = [line.rstrip("\n").split(",") for line in f]
        with open(self.path("t.json"), encoding="utf-8") as f:
            counters = [e for e in json.load(f)["traceEvents"] if e["ph"] == "C"]
        return rows, counters

    def test_counters_and_csv(self):
        rows, counters = self.sampled("all")
        self.assertEqual(rows[0], ["time_ns", "meter", "unit", "value"])
        self.assertGreaterEqual(len(rows), 20)
        self.assertEqual(
            {(row[1], row[2], float(row[3])) for row in rows[1:]},
            {("host:0 battery power (W)", "W", 23.0)},
        )
        off = 60 * 10**9  # the system's clock may be set meanwhile
        self.assertTrue(self.begun_ns - off < int(rows[-1][0]) < self.ended_ns + off, rows[-1])
        self.assertEqual(
            {(e["name"], e["args"]["value"]) for e in counters}, {("host:0 battery power (W)", 23)}
        )
        self.assertGreaterEqual(len(counters), 15)

    def test_power_as_madengine(self):
        rows, _ = self.sampled("power")
        self.assertEqual(rows[0], ["time", "Power(Watt) host0"])
        self.assertEqual({float(row[1]) for row in rows[1:]}, {23.0})

    def test_without_any(self):
        done = self.run_script("vram", self.path("m.csv"), self.path("t.json"))
        self.assertIn("LookupError: there is no meter of memory here", done.stderr)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("m.csv")], [])

    def test_a_forked_child_leaves_it_in_silence(self):
        script = """
import os, sys, warnings, prof
warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, of forks beside threads
with prof.Sampler(interval=0.002, devices="host", csv=sys.argv[1]):
    pid = os.fork()
    if pid:
        assert os.waitpid(pid, 0)[1] == 0
if not pid:
    os._exit(0)
try:
    prof.Sampler().stop()
except RuntimeError as e:
    assert str(e) == "no sampler is running", e
"""
        done = self.run_script(self.path("m.csv"), script=script)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(os.path.exists(self.path("m.csv")))


class Refused(unittest.TestCase):
    def test_arguments(self):
        for error, options in (
            (ValueError, {"mode": "nothing"}),
            (TypeError, {"interval": "1"}),
            (TypeError, {"interval": True}),
            (ValueError, {"interval": 0.0001}),
            (ValueError, {"interval": float("nan")}),
        ):
            with self.assertRaises(error, msg=options) as caught:
                prof.Sampler(**options)
            self.assertIn(next(iter(options)), str(caught.exception))
        with self.assertRaisesRegex(ValueError, "options.devices is '0,x'"):
            prof.Sampler(devices="0,x").start()
        with self.assertRaises(TypeError):
            prof.Sampler(devices=3).start()

    def test_devices_have_numbers_that_c_has(self):
        for name in ("cuda:4294967296", "cuda:99999999999999999999"):
            with self.assertRaises(ValueError):
                prof.Device(name)
        self.assertEqual(prof.Device("cuda:2147483647").index, 2147483647)

    def test_stop_without_start(self):
        with self.assertRaises(RuntimeError):
            prof.Sampler().stop()
        self.assertEqual(prof.Sampler().state().is_running, 0)


class BackEnds(unittest.TestCase):
    def test_each_says_how_it_is(self):
        found = {state.name.decode(): state for state in prof.backends()}
        self.assertIn("opencl", found)
        if found["opencl"].result:
            self.assertTrue(found["opencl"].reason and found["opencl"].advice)
        self.assertIn("BackendState(result=", repr(found["opencl"]))

    def test_what_can_be_recorded(self):
        """By torch's names; without a device that works the CPU alone."""
        works = any(state.result == 0 for state in prof.backends())
        self.assertEqual(prof.supported_activities() - {prof.ProfilerActivity.CPU} != set(), works)
        self.assertIn(prof.ProfilerActivity.CPU, prof.supported_activities())

    def test_a_plug_in_that_is_none(self):
        with self.assertRaises(ValueError):
            prof.load_backends("relative.so")
        with self.assertRaises(FileNotFoundError):
            prof.load_backends("/nothing/here.so")


if __name__ == "__main__":
    unittest.main()
