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
GONE = """
import os, sys
import prof
with open("/proc/self/maps") as file:
    (path,) = {line.split(None, 5)[5][:-1] for line in file if line.endswith(".prof\\n")}
os.unlink(path)
print(path)
if sys.argv[1] == "child":
    os.system("app 0")
if sys.argv[1] == "_exit":
    sys.stdout.flush()
    os._exit(0)
"""
UNABLE = """
import os, resource, sys
if sys.argv[1] == "files":
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
else:
    os.setuid(65534)
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

    def test_a_capture_that_the_script_has_removed_is_named(self):
        self.write("x.py", GONE)
        for way in ("end", "child", "_exit"):
            for words in ((), ("-o", "t.json"), ("-o", "out"), ("-n", "2")):
                with self.subTest(way=way, words=words):
                    done = self.run_prof(*words, "x.py", way)
                    text = done.stderr.decode()
                    self.assertEqual(done.returncode, 0, text)
                    path = done.stdout.decode().split()[-1]
                    self.assertIn(f"the capture '{path}' is not there any more: ", text)
                    self.assertNotIn("nothing was recorded", text)
                    if words != ("-o", "t.json"):
                        self.assertEqual("\nwork " in text, way == "child", text)

    def test_a_script_that_cannot_make_the_table_leaves_it_to_the_command(self):
        self.write("x.py", UNABLE)
        reasons = {"files": "prof table: .*Too many open files.*", "user": "prof table: status 1"}
        for way in reasons if os.getuid() == 0 else ("files",):
            done = self.run_prof("x.py", way)
            text = done.stderr.decode()
            self.assertEqual(done.returncode, 0, text)
            said = rf"could not make the table \({reasons[way]}\), and leaves it to prof run\n"
            self.assertRegex(text, said)
            self.assertEqual(len(re.findall(r"(?m)^x\.py +script ", text)), 1, text)

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
