"""prof run traces the functions of a script and of the processes that it starts."""

import os
import subprocess
import sys
import tempfile
import unittest

from hang_guard import HANG_SECONDS
from test_functions import is_traced

import prof


@unittest.skipUnless(is_traced, "functions are traced in CPython alone")
class Command(unittest.TestCase):
    SCRIPT = (
        "import sys, textwrap\ndef fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
        "if __name__ == '__main__':\n    fib(5)\n    textwrap.dedent('x')\n"
        "    print(sys.argv[1:])\n"
    )

    def run_command(self, *arguments, script=SCRIPT):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "script.py")
            with open(path, "w") as f:
                f.write(script)
            done = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "prof",
                    "run",
                    *(path if word == "SCRIPT" else word for word in arguments),
                ],
                capture_output=True,
                text=True,
                timeout=HANG_SECONDS,
            )
        calls = {}
        for line in done.stderr.splitlines():
            words = line.split()
            if len(words) > 9 and words[1] == "python_function":
                # a place stands behind
                calls[words[0]] = int(next(word for word in reversed(words) if word.isdigit()))
        return done, calls

    def test_what_the_script_calls(self):
        done, calls = self.run_command("--python", "SCRIPT", "--python", "--python=all")
        self.assertEqual(
            (done.returncode, done.stdout), (0, "['--python', '--python=all']\n"), done.stderr
        )
        self.assertEqual(
            {name: calls.get(name) for name in ("fib", "<module>", "textwrap.dedent")},
            {"fib": 15, "<module>": 1, "textwrap.dedent": None},
        )

    def test_all_and_some(self):
        self.assertIn("textwrap.dedent", self.run_command("--python=all", "-r", "-1", "SCRIPT")[1])
        calls = self.run_command("--python-include", "textwrap", "SCRIPT")[1]
        self.assertEqual((calls.get("textwrap.dedent"), calls.get("fib")), (1, None))
        calls = self.run_command("--python-exclude=__main__", "SCRIPT")[1]
        self.assertEqual((calls.get("fib"), calls.get("<module>")), (None, None))
        self.assertRegex(self.run_command("--python-c", "SCRIPT")[0].stderr, r"print +c_function")

    def test_an_include_of_nothing_says_so(self):
        said = "prof: nothing that ran in this process is of --python-include nothing, ever\n"
        self.assertIn(
            said,
            self.run_command("--python-include", "nothing", "--python-include", "ever", "SCRIPT")[
                0
            ].stderr,
        )
        self.assertNotIn(
            "prof: nothing",
            self.run_command(
                "--python-include", "nothing", "--python-include", "textwrap", "SCRIPT"
            )[0].stderr,
        )

    def test_without_imports(self):
        script = "import wave\ndef f(): import colorsys\nf()\n"
        done, calls = self.run_command("--python=all", "-r", "-1", "SCRIPT", script=script)
        self.assertRegex(done.stderr, "(?m)^import colorsys +import ")
        self.assertEqual(calls["colorsys.<module>"], 1)
        done, calls = self.run_command(
            "--python=all", "--python-no-imports", "-r", "-1", "SCRIPT", script=script
        )
        self.assertNotRegex(done.stderr, "(?m)^import ")
        self.assertEqual(
            (calls["<module>"], calls["f"], [name for name in calls if name.endswith(".<module>")]),
            (1, 1, []),
        )

    def test_spawned_and_forked(self):
        for kind in ("fork", "spawn", "forkserver"):
            done, calls = self.run_command(
                "--python",
                "-r",
                "-1",
                "SCRIPT",
                script=(
                    f"import multiprocessing\ndef square(n): return n * n\n"
                    f"if __name__ == '__main__':\n"
                    f"    with multiprocessing.get_context('{kind}').Pool(1) as pool: "
                    f"print(pool.map(square, [1, 2, 3]))\n"
                ),
            )
            self.assertEqual(
                (done.stdout, calls.get("square", 0) + calls.get("__mp_main__.square", 0)),
                ("[1, 4, 9]\n", 3),
                done.stderr,
            )

    CHILD = """
import os, subprocess, sys
def work(n): return n
if len(sys.argv) > 1:
    ours = [p for p in sys.path if "_site" in p]
    print(work(int(sys.argv[1])), ours, "theirs" in sys.modules, flush=True)
else:
    done = subprocess.run([sys.executable, __file__, "1"], stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="", flush=True)
    os.system(f"{sys.executable} {__file__} 2")
    child = "import subprocess, sys; subprocess.run([sys.executable, sys.argv[1], '3'])"
    subprocess.run([sys.executable, "-c", child, __file__])
    subprocess.run([sys.executable, "-I", __file__, "4"])  # asks for no environment
"""

    def test_started_in_other_ways(self):
        done, calls = self.run_command("--python", "-r", "-1", "SCRIPT", script=self.CHILD)
        self.assertEqual(
            (done.stdout, done.returncode),
            ("1 [] False\n2 [] False\n3 [] False\n4 [] False\n", 0),
            done.stderr,
        )
        self.assertEqual(calls.get("work"), 3, done.stderr)

    def test_started_processes_have_captures_of_their_own(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (
                ("script.py", self.CHILD),
                ("sitecustomize.py", "import theirs\n"),
                ("theirs.py", ""),
            ):
                with open(os.path.join(folder, name), "w") as f:
                    f.write(text)
            environment = {
                **os.environ,
                "PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")]),
            }
            done = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "prof",
                    "run",
                    "-q",
                    "--python",
                    "-o",
                    "out.prof",
                    "script.py",
                ],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=HANG_SECONDS,
            )
            self.assertEqual(
                (done.stdout, done.stderr), ("1 [] True\n2 [] True\n3 [] True\n4 [] False\n", "")
            )
            counts = []
            for name in os.listdir(folder):
                if name.startswith("out.") and name != "out.prof":
                    with prof.Trace.open(os.path.join(folder, name)) as trace:
                        counts.append(
                            sum(row.count for row in trace.aggregate("name") if row.name == "work")
                        )
            self.assertEqual(sorted(counts), [0, 1, 1, 1])
