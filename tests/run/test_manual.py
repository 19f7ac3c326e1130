"""Help, manual pages and completion, which are made from one table of commands."""

import os
import re
import shutil
import subprocess

from case import HANG_SECONDS, PROF, PYTHON
from known_capture import Recorded


class Words(Recorded):
    def commands(self):
        found = re.findall(r"^  (\S+) +\S", self.prof("help").stdout, re.MULTILINE)
        self.assertIn("table", found)
        return [name for name in found if name != "prof"]


class Pages(Words):
    def test_each_page_is_right_for_groff_and_mandoc(self):
        checks = {
            "groff": ["groff", "-man", "-ww", "-Tutf8", "-z"],
            "mandoc": ["mandoc", "-Tlint", "-Werror"],
        }
        found = [words for name, words in checks.items() if shutil.which(name)]
        for name in ["", *self.commands()]:
            page = self.prof("help", "--man", *filter(None, [name])).stdout
            for words in found:
                done = subprocess.run(
                    words,
                    input=page,
                    capture_output=True,
                    text=True,
                    timeout=HANG_SECONDS,
                    check=False,
                )
                self.assertEqual((done.returncode, done.stderr), (0, ""), (name, words))
        if len(found) < len(checks):
            missing = [name for name in checks if not shutil.which(name)]
            self.skipTest(f"not installed: {', '.join(missing)}")

    def test_a_page_has_each_option_of_the_help(self):
        for name in self.commands():
            page = self.prof("help", "--man", name).stdout.replace("\\-", "-")
            text = self.prof("help", name).stdout
            options = re.findall(r"^  (?:-\w, |    )--([\w-]+)", text, re.MULTILINE)
            self.assertIn("help", options)
            for option in options:
                self.assertIn(f"\\fB--{option}\\fR", page)
            self.assertEqual(page.count("\n.TP\n"), len(options) + len(self.examples(name)))

    def examples(self, name):
        text = self.prof("help", name).stdout.partition("\nExamples:\n")[2]
        return re.findall(r"^  (\S.*)", text, re.MULTILINE)

    def see_it_serve(self, line):
        """It serves until a browser has come."""
        process = subprocess.Popen(
            ["bash", "-c", f"exec {line}"],
            cwd=self.folder,
            env={**os.environ, "PATH": f"{os.path.dirname(PROF)}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            said = ""
            while "127.0.0.1" not in said:
                got = process.stdout.readline()
                self.assertTrue(got, said)
                said += got
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def test_each_example_runs(self):
        """In a folder with what the examples name."""
        for side, slower in (("before", 1), ("after", 1.1)):
            self.record(f"{side}.prof", slower=slower)
            self.record(f"{side}/one.prof", slower=slower)
        for rank in range(2):
            self.record(f"trace-{rank}.prof", process=10 + rank)
            self.record(f"out/rank-{rank}/one.prof", process=20 + rank)
        count = 0
        for name in self.commands():
            examples = self.examples(name)
            self.assertTrue(examples, name)
            for line in examples:
                self.record()
                self.write_trace()
                if "man -l" in line and not shutil.which("man"):
                    continue
                if line.startswith("prof view "):
                    self.see_it_serve(line)
                    count += 1
                    continue
                done = subprocess.run(
                    ["bash", "-c", f"set -o pipefail; {line}"],
                    cwd=self.folder,
                    env={
                        **os.environ,
                        **PYTHON,
                        "PATH": f"{os.path.dirname(PROF)}:{os.environ['PATH']}",
                    },
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=HANG_SECONDS,
                    check=False,
                )
                self.assertEqual(done.returncode, 0, (line, done.stderr))
                count += 1
                shutil.rmtree(os.path.join(self.folder, "saved"), ignore_errors=True)
                if os.path.exists(os.path.join(self.folder, "imported.prof")):
                    os.remove(os.path.join(self.folder, "imported.prof"))
        self.assertGreater(count, 15)


class Completion(Words):
    def script(self, shell):
        return self.write(f"prof.{shell}", self.prof("completion", shell).stdout)

    def completed(self, *words):
        """What bash completes the last word to."""
        self.script("bash")
        done = subprocess.run(
            [
                "bash",
                "-c",
                'source ./prof.bash; complete -p prof; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); '
                '_prof; printf "%s\\n" "${COMPREPLY[@]}"',
                "bash",
                "prof",
                *words,
            ],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            check=True,
        )
        self.assertEqual(done.stderr, "")
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "complete -o default -F _prof prof")
        return sorted(filter(None, lines[1:]))

    def test_bash_completes_commands(self):
        self.assertEqual(self.completed(""), sorted([*self.commands(), "--help", "--version"]))
        self.assertEqual(self.completed("ta"), ["table"])
        self.assertEqual(self.completed("help", "ta"), ["table"])
        self.assertEqual(self.completed("completion", ""), ["bash", "fish", "zsh"])

    def test_bash_completes_each_option(self):
        for name in self.commands():
            text = self.prof("help", name).stdout
            options = re.findall(r"^  (?:-\w, |    )(--[\w-]+)", text, re.MULTILINE)
            self.assertEqual(self.completed(name, "--"), sorted(options))

    def test_bash_completes_the_words_of_an_option(self):
        for words in (["--sort", "self-"], ["--sort", "=", "self-"], ["-s", "self-"]):
            for command in ("table", "top", "run"):
                if command != "run" or "-s" not in words:  # there it is --stack
                    self.assertEqual(
                        self.completed(command, *words), ["self-device", "self-memory", "self-net"]
                    )
        self.assertIn("name", self.completed("table", "--sort", "="))
        for command in ("table", "run"):
            self.assertEqual(self.completed(command, "--by", "name,st"), ["name,stack"])
        self.assertEqual(self.completed("table", "--columns", "name,med"), ["name,median"])

    def test_other_words_are_files(self):
        self.assertEqual(self.completed("table", "tra"), [])
        self.assertEqual(self.completed("dump", "--output", "--"), [])

    def test_each_script_is_right_for_its_shell(self):
        missing = []
        for shell in ("bash", "zsh", "fish"):
            path = self.script(shell)
            if not shutil.which(shell):
                missing.append(shell)
                continue
            done = subprocess.run(
                [shell, "-n", path],
                capture_output=True,
                text=True,
                timeout=HANG_SECONDS,
                check=False,
            )
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        if missing:
            self.skipTest(f"not installed: {', '.join(missing)}")

    def test_another_shell_is_refused(self):
        done = self.prof("completion", "tcsh", status=2)
        self.assertIn("bash, zsh and fish, not tcsh", done.stderr)
