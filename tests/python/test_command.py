"""python -m prof: run, table, dump."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

from hang_guard import HANG_SECONDS

import prof

SCRIPT = """
import sys, prof
with prof.record_function("scope of the script"):
    print("out", sys.argv[1:], __name__)
"""

PROCESSES = """
import multiprocessing, os, signal, sys, time
import prof

def work(n):
    with prof.record_function("work of a child"):
        return n * n

def die():
    with prof.record_function("before the end"):
        pass
    with prof.record_function("at the end"):
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    with prof.record_function("parent"):
        with multiprocessing.Pool(2) as pool:
            print(pool.map(work, range(4), 1))
        for target in (die, die):
            one = multiprocessing.Process(target=target)
            one.start()
            one.join()
"""


class Command(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def script(self, text):
        with open(self.path("script.py"), "w") as f:
            f.write(text)
        return self.path("script.py")

    def prof(self, *arguments):
        return subprocess.run(
            [sys.executable, "-m", "prof", *arguments],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            cwd=self.folder.name,
        )

    def test_run(self):
        done = self.prof("run", "-o", self.path("t.json"), self.script(SCRIPT), "a", "--b", "-o")
        self.assertEqual((done.returncode, done.stdout), (0, "out ['a', '--b', '-o'] __main__\n"))
        self.assertIn("scope of the script", done.stderr)
        self.assertIn("script.py", done.stderr)
        with open(self.path("t.json")) as f:
            names = [e["name"] for e in json.load(f)["traceEvents"] if e["ph"] == "X"]
        self.assertEqual(sorted(names), ["scope of the script", "script.py"])

    def test_statuses(self):
        self.assertEqual(
            self.prof("run", "-q", self.script("import sys; sys.exit(7)")).returncode, 7
        )
        self.assertEqual(self.prof("run", "-q", self.script("raise SystemExit")).returncode, 0)
        done = self.prof("run", "-q", self.script("1 / 0"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("ZeroDivisionError", done.stderr)
        done = self.prof("run", "-q", self.script("import sys; sys.exit('a text')"))
        self.assertEqual((done.returncode, done.stderr.strip()), (1, "a text"))

    def test_a_module(self):
        self.script(SCRIPT)
        done = self.prof("run", "-m", "script", "x")
        self.assertEqual((done.returncode, done.stdout), (0, "out ['x'] __main__\n"))

    def test_a_module_of_others(self):
        done = self.prof("run", "--trace", "math", self.script("import math\nmath.sqrt(4)\n"))
        self.assertIn("math.sqrt", done.stderr)

    def test_captures(self):
        self.assertEqual(
            self.prof("run", "-q", "-o", self.path("t.prof"), self.script(SCRIPT)).returncode, 0
        )
        done = self.prof("table", self.path("t.prof"))
        self.assertIn("scope of the script", done.stdout)
        self.assertEqual(
            self.prof("dump", self.path("t.prof"), "-o", self.path("d.json")).returncode, 0
        )
        with open(self.path("d.json")) as f:
            json.load(f)

    def test_memory(self):
        script = self.script(
            """
import prof
pool = prof.memory_profiler.Pool("tensors", "cpu")
with prof.scope("convolution"):
    pool.alloc(0x1000, 3 << 20, 4 << 20)
    prof.Trace.now().dump("copy.prof")
"""
        )
        self.assertEqual(self.prof("run", "-q", "-o", "t.prof", script).returncode, 0)
        for name, state in (("t.prof", "stopped"), ("copy.prof", "copied while it ran")):
            done = self.prof("memory", "-w", "100", name)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(state, done.stdout.splitlines()[0])
            self.assertRegex(done.stdout, r"(?m)^Pool 1: tensors on cpu:0")
            self.assertRegex(done.stdout, r"(?m)^ +used +4.00 MiB")
            self.assertRegex(done.stdout, r"(?m)^ +convolution +4.00 MiB +100.00% +1 ")
        for words, said in (
            (("-p", "2"), "there is no pool 2"),
            (("-p", "0"), "--pool takes"),
            (("-w", "39"), "40 to 500"),
            (("-r", "0"), "--rows takes"),
        ):
            done = self.prof("memory", *words, "t.prof")
            self.assertEqual((done.returncode, done.stdout), (1 if "2" in words else 2, ""))
            self.assertIn(said, done.stderr)

    def test_an_option_that_is_none_names_the_help(self):
        script = self.script("print('run')")
        for command, word in (
            ("run", "--with-shapes"),
            ("table", "--nothing"),
            ("memory", "--nothing"),
        ):
            done = self.prof(command, word, script)
            status = 125 if command == "run" else 2
            self.assertEqual((done.returncode, done.stdout), (status, ""))
            self.assertIn(word, done.stderr)
            self.assertIn(f"prof {command} --help", done.stderr)
            self.assertEqual(self.prof(command, "--help").returncode, 0)

    def test_processes_are_added_up_by_name(self):
        script = self.script(PROCESSES)
        for method in ("fork", "spawn", "forkserver"):
            out = self.path(f"{method}.json")
            done = self.prof("run", "-o", out, script, method)
            self.assertEqual((done.returncode, done.stdout), (0, "[0, 1, 4, 9]\n"), done.stderr)
            rows = {
                line.split("  ")[0]: [int(word) for word in line.split() if word.isdigit()]
                for line in done.stderr.splitlines()
                if "user_annotation" in line
            }
            self.assertEqual(
                rows,
                {
                    "work of a child": [4],
                    "parent": [1],
                    "before the end": [2],
                    "at the end": [0, 2],
                },
                method,
            )
            # one of a pool's may have had nothing to do
            self.assertRegex(
                done.stderr,
                r"(?m)^[45] processes: 8 recorded; no loss; 2 scopes had not ended yet:$",
            )
            self.assertEqual(
                len(
                    re.findall(
                        r"(?m)^\S+ \(\d+\): 1 recorded; no loss; 1 scope had not ended yet$",
                        done.stderr,
                    )
                ),
                2,
                done.stderr,
            )
            found = []
            for name in os.listdir(self.folder.name):
                if re.fullmatch(rf"{method}(\.\d+)?\.json", name):
                    with open(self.path(name)) as f:
                        found += [e["name"] for e in json.load(f)["traceEvents"] if e["ph"] == "X"]
            self.assertEqual(
                sorted(found),
                sorted(
                    ["work of a child"] * 4
                    + ["parent", "script.py"]
                    + ["before the end", "at the end"] * 2
                ),
            )
            self.assertEqual(
                [n for n in os.listdir(self.folder.name) if ".run-" in n], [], "a capture was left"
            )

    def test_a_process_that_still_runs_is_left_alone(self):
        script = self.script(
            """
import os, signal, prof
is_begun, begun = os.pipe()
if os.fork() == 0:
    with prof.record_function("long"):
        os.write(begun, b"x")
        signal.pause()  # until it is killed
else:
    os.read(is_begun, 1)
"""
        )
        done = subprocess.Popen(
            [sys.executable, "-m", "prof", "run", "-o", self.path("t.json"), script],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            cwd=self.folder.name,
            start_new_session=True,
        )
        pids = []
        try:
            said = ""
            while "still records into" not in said:
                line = done.stderr.readline()
                self.assertTrue(line, said)
                said += line
            pid, left = re.search(r"process (\d+) still records into '(.*)'\n", said).groups()
            pids.append(int(pid))
            with prof.Trace.open(self.path(left)) as trace:
                self.assertEqual([(e.kind, e.name) for e in trace.events()], [("open", "long")])
        finally:
            for pid in pids:  # which is in a group of its own
                os.kill(pid, 9)
            done.kill()
            done.wait()
            done.stderr.close()

    def test_all_of_a_script_is_seen(self):
        script = self.script(
            """
import atexit, pickle, sys, threading, time, prof

class Thing:
    pass

assert type(pickle.loads(pickle.dumps(Thing()))) is Thing
assert __file__.endswith("script.py")
assert sys.modules["__main__"].Thing is Thing

def late():
    time.sleep(0.3)
    with prof.record_function("of a thread that outlives the script"):
        assert Thing

threading.Thread(target=late).start()
atexit.register(lambda: prof.record_function("at exit").__enter__())
"""
        )
        done = self.prof("run", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("of a thread that outlives the script", "at exit"):
            self.assertIn(name, done.stderr)
        self.assertIn("1 scope had not ended yet", done.stderr)

    def test_a_script_sees_what_python_would_show_it(self):
        with open(self.path("beside.py"), "w") as f:
            f.write("value = 3\n")
        script = self.script(
            "import sys, beside\nprint(sys.argv, sys.path[0], __name__, __file__, __package__, "
            "__spec__, beside.value, sorted(k for k in globals() if k != 'beside' and k != "
            "'sys'))\nraise KeyError('x')\n"
        )
        plain = subprocess.run(
            [sys.executable, script, "a"],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            cwd="/",
        )
        done = subprocess.run(
            [sys.executable, "-m", "prof", "run", "-q", script, "a"],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            cwd=self.folder.name,
        )
        self.assertEqual(
            (done.returncode, done.stdout, done.stderr),
            (plain.returncode, plain.stdout, plain.stderr),
        )

    def test_an_interrupt_keeps_the_table(self):
        done = self.prof(
            "run",
            self.script(
                "import prof, signal, os\nwith prof.record_function('x'): os.kill(os.getpid(), "
                "signal.SIGINT)\nimport time; time.sleep(9)"
            ),
        )
        self.assertIn(done.returncode, (1, 130, -2))
        self.assertIn("KeyboardInterrupt", done.stderr)
        self.assertIn("user_annotation", done.stderr)

    def test_a_library_that_cannot_be_opened_is_one_line(self):
        script = self.script("pass")
        for words, status in ((("run", script), 125), (("table", script), 2)):
            done = subprocess.run(
                [sys.executable, "-m", "prof", *words],
                capture_output=True,
                text=True,
                timeout=HANG_SECONDS,
                env={**os.environ, "PROF_LIBRARY": "/nonexistent"},
            )
            self.assertEqual((done.returncode, done.stdout), (status, ""))
            self.assertRegex(done.stderr, r"^prof: PROF_LIBRARY='/nonexistent' cannot be .*\n$")

    def test_what_is_wrong_is_said(self):
        script = self.script("pass")
        for arguments, (status, text) in (
            (("run", "nothing.py"), (127, "there is no script 'nothing.py'")),
            (("run", "-o", "no/where.json", script), (125, "there is no folder 'no'")),
            (("run", "-o", "", script), (125, "--output: the path is empty")),
            (("run", "--trace", "nomodule", script), (125, "nomodule")),
            (("run", "--trace", "", script), (125, "--trace: the name is empty")),
            (
                ("run", "--python-include=", script),
                (125, "--python-include: the name is empty"),
            ),
            (("run", "--python-exclude=", script), (125, "--python-exclude: the name is empty")),
            (("table", script), (1, "not a prof capture")),
            (("table", self.path("none.prof")), (1, "o such file")),
        ):
            done = self.prof(*arguments)
            self.assertEqual(done.returncode, status, arguments)
            self.assertIn(text, done.stderr)
            self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main()
