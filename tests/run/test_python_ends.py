"""What ``prof run`` has of scripts in Python that end without Python's own exit, and of the workers
of multiprocessing."""

import collections
import glob
import json
import os
import re
import unittest

from test_shown import Shown

SCRIPT = """
import os, signal, sys
import prof
with prof.scope("work"):
    pass
if sys.argv[1] == "_exit":
    os._exit(3)
if sys.argv[1] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "term":
    os.kill(os.getpid(), signal.SIGTERM)
if sys.argv[1] == "exec":
    os.execlp("app", "app", "0")
"""
STATUSES = {"_exit": 3, "kill": 137, "term": 143, "exec": 0}
SPAWN = """
import concurrent.futures, multiprocessing
def work(number):
    return sum(range(number))
if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    with multiprocessing.Pool(2) as pool:
        pool.map(work, range(10))
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        list(pool.map(work, range(10)))
"""


class Ends(Shown):
    def setUp(self):
        super().setUp()
        self.prepare_python(SCRIPT)

    def run_as(self, way, *words):
        done = self.run_prof(*words, "x.py", way)
        self.assertEqual(done.returncode, STATUSES[way], done.stderr)
        return done.stderr.decode()

    def check_table(self, way, text):
        self.assertEqual(len(re.findall(r"^work +operator ", text, re.M)), 1, text)
        self.assertEqual(len(re.findall(r"^work +scope ", text, re.M)), way == "exec", text)

    def test_the_table_is_of_what_was_recorded(self):
        for way in STATUSES:
            for words in ((), ("--python",)):
                self.check_table(way, self.run_as(way, *words))
        self.assertIn("x.py", self.run_as("_exit", "--python", "-n", "2"))

    def test_captures_in_a_folder_have_the_names_of_their_programs(self):
        for way in STATUSES:
            self.check_table(way, self.run_as(way, "-o", way))
            names = [re.sub(r"\d+\.prof$", "PID.prof", name) for name in self.captures(way)]
            names_of_more = ["app.PID.prof"] if way == "exec" else []
            self.assertEqual(names, [*names_of_more, "x.py.PID.prof"])

    def test_a_file_is_written(self):
        for way in STATUSES:
            self.check_table(way, self.run_as(way, "-o", f"{way}.json"))
            with open(self.path(f"{way}.json"), encoding="utf-8") as file:
                names = [event["name"] for event in json.load(file)["traceEvents"]]
            self.assertIn("work", names)
            others = glob.glob(self.path(f"{way}.*.json"))
            self.assertEqual(len(others), way == "exec")
        self.assertEqual(glob.glob(self.path(".prof-run-*")), [])

    def test_a_file_that_cannot_be_written_is_named_and_the_capture_stays(self):
        self.write("x.py", "import os, prof\nos.mkdir('t.prof')\n")
        done = self.run_prof("-o", "t.prof", "x.py")
        (capture,) = re.findall(rb"; the capture is '([^']*)'", done.stderr)
        self.assertIn("x.py", self.table(os.path.join(self.folder, capture.decode())))


class Spawned(Shown):
    def setUp(self):
        super().setUp()
        self.prepare_python(SPAWN)

    def test_a_process_has_one_capture(self):
        self.run_well("-q", "--python", "-o", "out", "x.py")
        pids = [re.search(r"\.(\d+)\.prof", name)[1] for name in self.captures()]
        repeated = [pid for pid, count in collections.Counter(pids).items() if count > 1]
        self.assertEqual(repeated, [], self.captures())

    def test_imports_of_prof_itself_are_no_rows(self):
        text = self.run_well("--python", "-r", "all", "x.py")
        self.assertIn("import multiprocessing", text)
        self.assertEqual(re.findall(r"^import prof\b.*", text, re.M), [])

    def test_workers_do_not_load_the_code_of_tables(self):
        self.write(
            "x.py",
            SPAWN.replace(
                "return sum(range(number))",
                "import sys; return [m for m in sys.modules if m.startswith(('prof._run_script', "
                "'prof._table'))]",
            ).replace("pool.map(work, range(10))", "print(pool.map(work, range(10)))", 1),
        )
        done = self.run_prof("-q", "--python", "x.py")
        self.assertIn(f"{[[]] * 10}\n".encode(), done.stdout)


if __name__ == "__main__":
    unittest.main()
