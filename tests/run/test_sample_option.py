"""``prof run --sample SECONDS``: meters of devices beside the capture of the tool prof.

The devices are emulated, as in test_samplers. No test is decided by time.
"""

import csv
import json
import os
import subprocess
import sys
import unittest

from test_samplers import HANG_SECONDS, PROF, RATE, Case, rows_program


class SampleOption(Case):
    def setUp(self):
        super().setUp()
        self.have_amd()

    def rows(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def dump(self, capture):
        subprocess.run(
            [PROF, "dump", capture, "-o", "x.json"],
            cwd=self.folder,
            timeout=HANG_SECONDS,
            check=True,
        )
        with open(os.path.join(self.folder, "x.json"), encoding="utf-8") as file:
            return json.load(file)["traceEvents"]

    def check_counters(self, events):
        counters = [e for e in events if e.get("ph") == "C"]
        self.assertTrue(any("power" in e["name"] for e in counters), events[:5])

    def test_the_samples_are_a_file_and_counters(self):
        for words, folder in ((["-o", "out"], "out/prof_output"), ([], "prof_output")):
            done = self.run_prof(
                *("-q", *words, "--sample", RATE, "--", "sh", "-c"),
                rows_program(f"{folder}/samples.csv"),
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = self.rows(f"{folder}/samples.csv")
            self.assertTrue(any("power" in row["meter"] for row in rows), rows[:3])
            self.check_counters(self.dump(f"{folder}/samples.prof"))

    def test_their_paths_are_those_of_the_run_s_other_files(self):
        for words, folder in (
            (["-o", "out"], "out/prof_output"),
            (["-o", os.path.join(self.folder, "whole")], f"{self.folder}/whole/prof_output"),
        ):
            program = rows_program(f"{folder}/samples.csv")
            done = self.run_prof(*words, "--sample", RATE, "--", "sh", "-c", program)
            with open(
                os.path.join(self.folder, words[1], "summary.json"), encoding="utf-8"
            ) as file:
                summary = json.load(file)
            files = [f"{folder}/samples.csv", f"{folder}/samples.prof"]
            self.assertLessEqual(set(files), {*summary["files"], *summary["tools"][0]["files"]})
            said = done.stderr + json.dumps(summary["files"]) + json.dumps(summary["captures"])
            if not os.path.isabs(folder):
                self.assertNotIn(f"{self.folder}/", said)

    def test_a_file_has_them_beside_it(self):
        program = rows_program("$(echo .prof-run-*)/samples.csv")
        done = self.run_prof("-o", "t.json", "--sample", RATE, "--", "sh", "-c", program)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.listdir(self.folder), ["t.samples.json"])
        with open(os.path.join(self.folder, "t.samples.json"), encoding="utf-8") as file:
            self.check_counters(json.load(file)["traceEvents"])

    def prepare_python(self, samples):
        source = os.environ.get("PROF_TEST_SOURCE_DIR", os.getcwd())
        self.env["PYTHONPATH"] = os.path.join(source, "bindings", "python")
        self.env["PROF_LIBRARY"] = os.path.join(os.path.dirname(PROF), "libprof.so")
        self.env["PROF_PYTHON_PROGRAM"] = sys.executable
        with open(os.path.join(self.folder, "s.py"), "w", encoding="utf-8") as file:
            program = rows_program(samples)
            file.write(f"import os, sys\nsys.exit(os.system({program!r}))\n")

    def test_a_script_with_a_trace_is_recorded(self):
        self.prepare_python("$(echo .prof-run-*)/samples.csv")
        done = self.run_prof("-o", "t.json", "--sample", RATE, "s.py")
        self.assertEqual(done.returncode, 0, done.stderr)
        names = sorted(os.listdir(self.folder))
        self.assertEqual(names, ["s.py", "t.json", "t.samples.json"])
        self.assertIn("t.json", done.stderr)
        self.assertNotIn("no capture of", done.stderr)

    def test_a_script_in_python_is_sampled_too(self):
        self.prepare_python("prof_output/samples.csv")
        done = self.run_prof("-q", "--sample", RATE, "s.py")
        self.assertEqual(done.returncode, 0, done.stderr)
        names = sorted(os.listdir(os.path.join(self.folder, "prof_output")))
        self.assertRegex(names.pop(0), r"^s\.py\.\d+\.prof$")
        self.assertEqual(names, ["samples.csv", "samples.prof"])

    def test_without_a_meter_nothing_runs(self):
        for name in os.listdir(self.root):
            os.rename(os.path.join(self.root, name), os.path.join(self.root, f"no-{name}"))
        done = self.run_prof("--sample", RATE, "echo", "ran", status=125)
        self.assertIn("--sample: there is no meter here", str(done.stderr))
        self.assertNotIn("ran", str(done.stdout))


if __name__ == "__main__":
    unittest.main(verbosity=2)
