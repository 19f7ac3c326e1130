"""What the tests of ``prof run`` share: a folder of their own, the command, and a terminal."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import unittest

BUILD = os.environ.get("PROF_TEST_BUILD_DIR", "build/dev")
PROF = os.path.join(os.path.abspath(BUILD), "prof")
HANG_SECONDS = float(os.environ.get("PROF_TEST_HANG_SECONDS", "300"))
PACKAGE = os.path.join(os.path.dirname(__file__), "..", "..", "bindings", "python")
PYTHON = {  # variables with which commands find the package of this checkout
    "PYTHONPATH": os.path.abspath(PACKAGE),
    "PROF_LIBRARY": os.path.join(os.path.dirname(PROF), "libprof.so"),
    "PROF_PYTHON_PROGRAM": sys.executable,
}


def has_sanitizer():
    """Whether the command was built with one. It knows the begin of the name of its library in any
    build."""
    with open(PROF, "rb") as program:
        return bool(re.search(rb"lib[at]san\.so\.\d|__[at]san_init", program.read()))


HAS_SANITIZER = has_sanitizer()
# who runs in the background of a shell has it ignored, and so would the programs
signal.signal(signal.SIGINT, signal.default_int_handler)

TOOLS = {
    "tools": {
        f"test_tools_{x}": {
            "pre_scripts": [{"path": "echo.sh", "args": f"pre_script {x}"}],
            "cmd": f"echo cmd_{x} && ",
            "env_vars": {"WHO": x, f"ONLY_{x}": x},
            "post_scripts": [{"path": "echo.sh", "args": f"post_script {x}"}],
        }
        for x in "AB"
    }
}


class Folder(unittest.TestCase):
    """An empty folder, and the command that runs in it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def run_prof(self, *words, **options):
        options.setdefault("env", {**os.environ, "LC_ALL": "C.UTF-8"})
        return subprocess.run(
            [PROF, "run", *words],
            cwd=self.folder,
            capture_output=True,
            timeout=HANG_SECONDS,
            check=False,
            **options,
        )


class Case(Folder):
    """With two tools, and a stack of both."""

    def setUp(self):
        super().setUp()
        self.write("echo.sh", 'echo "$1" "$2"\n')
        self.write("tools.json", json.dumps(TOOLS))
        self.write(
            "stack.json",
            json.dumps({"tools": [{"name": f"test_tools_{x}"} for x in "AB"]}),
        )


class TerminalCase(Case):
    """The command on a terminal of its own."""

    def start(self, *words):
        return self.start_program(PROF, "run", *words)

    def start_program(self, *words):
        pid, master = pty.fork()
        if pid == 0:
            try:
                os.chdir(self.folder)
                os.execvp(words[0], words)
            finally:
                os._exit(99)
        self.addCleanup(os.close, master)
        self.seen = b""
        return pid, master

    def expect(self, master, text):
        """Reads until the text has come. What came before it."""
        while text not in self.seen:
            ready, _, _ = select.select([master], [], [], HANG_SECONDS)
            try:
                got = os.read(master, 65536) if ready else b""
            except OSError:
                got = b""
            self.assertTrue(got, f"{text!r} did not come: {self.seen!r}")
            self.seen += got
        passed, _, self.seen = self.seen.partition(text)
        return passed

    def rest(self, master):
        try:
            while got := os.read(master, 65536):
                self.seen += got
        except OSError:
            pass
        return self.seen

    def start_shell(self):
        """An interactive bash, which has job control; its prompt is "prompt> "."""
        words = ("bash", "--norc", "--noprofile", "-i")
        return self.start_program("env", "PS1=prompt> ", *words)
