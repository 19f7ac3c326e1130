"""What ``prof run`` says of the workload's processes: captures, memory, and why one left none.

Run by CTest: PROF_TEST_BUILD_DIR has the command and the library, CC compiles the programs.
"""

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import preload

BUILD = os.path.abspath(os.environ.get("PROF_TEST_BUILD_DIR", "build/dev"))
SOURCE = os.path.abspath(os.environ.get("PROF_TEST_SOURCE_DIR", os.getcwd()))
PROF = os.path.join(BUILD, "prof")
HANG_SECONDS = float(os.environ.get("PROF_TEST_HANG_SECONDS", "300"))

APP = """
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <fcntl.h>
#include <unistd.h>
int main(int count, char **words) {
  if (count > 1 && strcmp(words[1], "wait") == 0) {
    PROF_SCOPE("wait");
    char c;
    creat("ready", 0666);
    while (read(0, &c, 1) > 0) continue;
    return 0;
  }
  if (count > 1 && strcmp(words[1], "stay") == 0) {
    PROF_SCOPE("stay");
    char c;
    while (read(0, &c, 1) > 0) continue;
    return 0;
  }
  if (count > 1 && strcmp(words[1], "die") == 0) {
    PROF_SCOPE("held");
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (system("python3 looked.py") != 0) return 1;
    clock_gettime(CLOCK_MONOTONIC, &end);
    FILE *const file = fopen("elapsed", "w");
    fprintf(file, "%lld", (end.tv_sec - begin.tv_sec) * 1000000000ll + end.tv_nsec - begin.tv_nsec);
    fclose(file);
    kill(getpid(), SIGKILL);
  }
  if (count > 1 && strcmp(words[1], "become") == 0) {
    PROF_SCOPE("held");
    execlp("python3", "python3", "looked.py", (char *)0);
    return 1;
  }
  if (count > 1 && strcmp(words[1], "stop") == 0) {
    const prof_options options = {.size = sizeof options, .level = 1, .path = "own.json"};
    int wrong = prof_start_with(&options) != PROF_OK;
    {
      PROF_SCOPE("across");
      wrong |= prof_stop() != PROF_OK || prof_stop() != PROF_E_NOT_RUNNING || prof_level() != 0;
      PROF_SCOPE("while stopped");
      wrong |= prof_dump(NULL) != PROF_OK;
    }
    wrong |= prof_start_with(&options) != PROF_OK || prof_level() != 1;
    {
      PROF_SCOPE("second");
    }
    return wrong | (prof_stop() != PROF_OK);
  }
  if (count > 1 && strcmp(words[1], "clear") == 0) {
    { PROF_SCOPE("cleared"); }
    return prof_clear();
  }
  if (count > 1 && strcmp(words[1], "again") == 0) {
    {
      PROF_SCOPE("again");
    }
    execlp("app", "app", "0", (char *)0);
    return 1;
  }
  if (count > 1) {
    PROF_SCOPE("work");
    char *volatile piece = malloc(8 << 20);
    memset(piece, 1, 8 << 20);
    free(piece);
  }
  return count > 1 ? atoi(words[1]) : 0;
}
"""
# Ends when its input does.
READER = "#include <unistd.h>\nint main(void) { char c; while (read(0, &c, 1) > 0) ; return 0; }\n"

# Leaves 3500 processes, whose numbers have more than 16 KiB. They end when their input does.
MANY = """
#include <unistd.h>
int main(void) {
  for (int i = 0; i < 3500; i++) {
    const pid_t pid = fork();
    if (pid < 0) return 1;
    if (pid == 0) {
      close(1), close(2);
      for (char c; read(0, &c, 1) > 0;) continue;
      _exit(0);
    }
  }
  return 0;
}
"""

# Erases its variables, as programs do that write a title there.
ERASER = """
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
extern char **environ;
int main(void) {
  char c;
  for (char **each = environ; *each; each++) memset(*each, 0, strlen(*each));
  prctl(PR_SET_NAME, "eraser: ready");
  while (read(0, &c, 1) > 0) continue;
  return 0;
}
"""

# How often prof has looked at /proc, at least. The thread that looks sleeps interruptibly after
# each look alone. In a look it reads, and may wait for a lock of the kernel: that is another state.
# So two sleeps with different counts of reads have a whole look between them. The first call
# returns the thread's voluntary waits, which are as many as its looks or more.
LOOKS = """
import json, os, subprocess, sys, time

seen = {}

def watch_thread():
    pid = os.getppid()
    while True:
        for task in os.listdir(f"/proc/{pid}/task"):
            folder = f"/proc/{pid}/task/{task}"
            with open(f"{folder}/comm") as file:
                if file.read() == "prof-run-watch\\n":
                    return folder
        with open(f"/proc/{pid}/stat") as file:
            pid = int(file.read().rsplit(")", 1)[1].split()[1])

def fields(path):
    with open(path) as file:
        return dict(line.rstrip("\\n").split(":", 1) for line in file if ":" in line)

def looks():
    folder = seen.get("folder") or watch_thread()
    reads = int(fields(f"{folder}/io")["syscr"])
    status = fields(f"{folder}/status")
    if not seen:
        waits = int(status["voluntary_ctxt_switches"])
        seen.update(folder=folder, reads=reads, looks=waits)
    is_asleep = status["State"].split()[0] == "S"
    if is_asleep and int(fields(f"{folder}/io")["syscr"]) == reads != seen["reads"]:
        seen.update(reads=reads, looks=seen["looks"] + 1)
    return seen["looks"]
"""

# Starts the programs of its first word, a JSON list of lists; ends them when prof has looked
# several times.
DRIVER = f"""{LOOKS}
words = json.loads(sys.argv[1])
programs = [subprocess.Popen(w, stdin=subprocess.PIPE) for w in words]

def names_below(pid):
    try:
        yield open(f"/proc/{{pid}}/comm").read().strip()
        children = open(f"/proc/{{pid}}/task/{{pid}}/children").read().split()
    except OSError:
        return
    for child in children:
        yield from names_below(child)

# unshare takes its time before its program begins.
for program, w in zip(programs, words):
    inside = {{os.path.basename(word) for word in w[1:]}}
    while w[0] == "unshare" and inside.isdisjoint(names_below(program.pid)):
        if program.poll() is not None:
            sys.exit(f"{{w}} ended before its program began")
        time.sleep(0.005)
until = looks() + 20
while looks() < until:
    time.sleep(0.005)
for program in programs:
    program.stdin.close()
for program in programs:
    program.wait()
"""


# The variables of each process are empty when they are read for the first time.
EMPTY_AT_FIRST = """
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
int open(const char *path, int flags, ...) {
  static char seen[1 << 22];
  int (*next)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
  int pid, end = 0;
  va_list more;
  va_start(more, flags);
  const int mode = flags & O_CREAT ? va_arg(more, int) : 0;
  va_end(more);
  sscanf(path, "/proc/%d/environ%n", &pid, &end);
  if (is_prof() && end > 0 && !seen[pid]++) path = "/dev/null";
  return next(path, flags, mode);
}
"""


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.programs = folder.name
        cls.compile(
            "app",
            APP,
            *(f"-I{SOURCE}/include", f"-L{BUILD}", "-lprof", f"-Wl,-rpath,{BUILD}"),
        )
        cls.compile("reader", READER)
        cls.compile("whole", READER, "-static")
        cls.compile("eraser", ERASER)
        cls.compile("many", MANY)
        cls.write_program("driver.py", DRIVER)

    @classmethod
    def write_program(cls, name, text, mode=0o755):
        path = os.path.join(cls.programs, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    @classmethod
    def compile(cls, name, text, *words):
        source = cls.write_program(f"{name}.c", text)
        compiler = os.environ.get("CC", "cc")
        output = os.path.join(cls.programs, name)
        subprocess.run([compiler, source, "-o", output, *words], check=True)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        path = f"{self.programs}:{os.environ['PATH']}"
        self.env = {**os.environ, "LC_ALL": "C.UTF-8", "PATH": path}

    def run_prof(self, *words, **options):
        return subprocess.run(
            [PROF, "run", *words],
            cwd=self.folder,
            capture_output=True,
            timeout=HANG_SECONDS,
            check=False,
            **{"env": self.env, **options},
        )

    def drive(self, *programs, words=("-t", "prof"), **options):
        """Runs the programs below a driver, and returns the lines of the report."""
        driver = os.path.join(self.programs, "driver.py")
        done = self.run_prof(
            *("-o", "out", *words, "--", sys.executable, driver, json.dumps(programs)),
            stdin=subprocess.DEVNULL,
            **options,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr.decode().splitlines()

    def groups(self):
        with open(os.path.join(self.folder, "out/summary.json"), encoding="utf-8") as file:
            processes = json.load(file)["processes"]
        return {p["name"]: (p["count"], p["is_recorded"], p["why_not"]) for p in processes}

    def check(self, name, reason, lines):
        self.assertIn(reason, self.groups()[name][2])
        named = [
            line for line in lines if "no capture of " in line and name in line.partition(":")[0]
        ]
        self.assertEqual(len(named), 1, lines)
        self.assertIn(reason, named[0])


class Reasons(Case):
    def test_a_static_program(self):
        self.check("whole", "is a static program", self.drive(["whole"]))

    def test_an_empty_environment(self):
        self.check(
            "reader",
            "without PROF_OUTPUT",
            self.drive(["env", "-i", shutil.which("reader", path=self.programs)]),
        )

    def test_a_capture_of_an_earlier_program_is_not_that_of_the_last(self):
        """With --memory, env and bash leave captures, and then execute another program."""
        reader = shutil.which("reader", path=self.programs)
        for program, name, reason in (
            (["env", "-i", reader], "reader", "without PROF_OUTPUT"),
            (["env", "-i", "sh", "-c", "read x || :"], "sh", "without PROF_OUTPUT"),
            (["env", "-u", "LD_PRELOAD", "reader"], "reader", "does not use prof"),
            (["env", "whole"], "whole", "is a static program"),
            (["bash", "-c", "exec whole"], "whole", "is a static program"),
        ):
            self.check(name, reason, self.drive(program, words=("--memory",)))
            self.assertFalse(self.groups()[name][1])
            self.assertNotIn(program[0], self.groups())
            shutil.rmtree(os.path.join(self.folder, "out"))

    def test_a_program_that_records_after_another_is_recorded(self):
        self.drive(["env", "reader"], ["bash", "-c", "exec app stay"], words=("--memory",))
        self.assertEqual(self.groups()["reader"], (1, True, None))
        self.assertEqual(self.groups()["app"], (1, True, None))

    def test_a_program_that_is_killed_is_recorded(self):
        done = self.run_prof(
            "-o",
            "out",
            "sh",
            "-c",
            "app wait & while ! [ -e ready ]; do sleep 0.01; done; kill -9 $!; wait",
            stdin=subprocess.PIPE,
        )
        self.assertEqual(self.groups()["app"], (1, True, None), done.stderr)

    def test_variables_that_are_not_there_yet_are_read_again(self):
        env = preload.environment(self.folder, EMPTY_AT_FIRST, PATH=self.env["PATH"])
        self.drive(["reader"], env=env)
        self.assertIn("does not use prof", self.groups()["reader"][2])

    def test_variables_that_the_program_erases(self):
        self.drive(["eraser"])
        self.assertIn("does not use prof", self.groups()["eraser: ready"][2])

    def test_processes_with_pids_of_their_own(self):
        inside = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
        if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no new namespace of processes may be made here")
        app = os.path.join(self.programs, "app")
        self.drive([*inside, app, "stay"], [*inside, app, "stay"], [*inside, "reader"])
        self.assertEqual(self.groups()["app"], (2, True, None))
        self.assertEqual(self.groups().get("reader", (0, self.groups()))[:2], (1, False))

    def test_a_program_without_prof(self):
        self.check("reader", "does not use prof", self.drive(["reader"]))

    def test_starters_of_programs_out_of_reach(self):
        for name, reason in (
            ("sudo", "a new environment"),
            ("docker", "in a container"),
            ("ssh", "on another host"),
        ):
            with self.subTest(name):
                shutil.rmtree(os.path.join(self.folder, "out"), ignore_errors=True)
                path = self.write_program(name, "#!/bin/sh\nread x\nexit 0\n")
                self.check(name, reason, self.drive([path]))
                os.remove(path)

    def test_many_processes_of_one_name_share_a_line(self):
        lines = self.drive(*[["reader"]] * 30, ["cat"])
        self.assertEqual(self.groups()["reader"][0], 30)
        line = next(line for line in lines if "no capture of reader (30 processes), " in line)
        self.assertIn("cat", line)
        self.assertTrue(any("short ones may be missing" in line for line in lines))

    def test_thousands_of_children_of_one_process_are_all_seen(self):
        """They are prof run's own children when it looks for the last time: orphans become so."""
        prctl, set_child_subreaper = ctypes.CDLL(None).prctl, 36
        read_end, write_end = os.pipe()
        try:
            done = self.run_prof(
                *("-q", "-o", "out", "--", "many"),
                stdin=read_end,
                preexec_fn=lambda: prctl(set_child_subreaper, 1),
            )
        finally:
            os.close(read_end)
            os.close(write_end)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(self.groups()["many"][0], 3500)

    def test_a_tool_of_the_stack_is_no_process_of_the_workload(self):
        self.write_program("around", '#!/bin/sh\n"$@"\n')
        self.env["PATH"] = f"{self.programs}:{self.env['PATH']}"
        path = os.path.join(self.folder, "tools.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"tools": {"around": {"cmd": "around"}}}, file)
        lines = self.drive(["reader"], words=["--tools-config", path, "-t", "around", "-t", "prof"])
        self.assertIn("reader", self.groups())
        self.assertNotIn("around", self.groups(), lines)

    def test_a_process_that_was_recorded_is_not_listed(self):
        done = self.run_prof("-o", "out", "app", "3")
        self.assertEqual(done.returncode, 3)
        self.assertNotIn(b"no capture", done.stderr)

    def test_a_program_with_prof_and_without_events(self):
        done = self.run_prof("-o", "out", "app")
        self.assertIn(b"nothing was recorded: the program uses prof, and had no", done.stderr)
        self.assertNotIn(b"no capture", done.stderr)  # it would say the same again
        self.assertNotIn("prof_output", os.listdir(os.path.join(self.folder, "out")))
        self.assertEqual(self.groups()["app"][:2], (1, False))

    def test_a_program_that_clears_what_it_has_recorded(self):
        lines = self.run_prof("app", "clear").stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("prof_clear()", lines[0])

    def test_one_without_events_among_others_is_listed(self):
        done = self.run_prof("-o", "out", "sh", "-c", "app; app 0")
        self.assertIn(b"1 recorded", done.stderr)
        self.assertIn(b"uses prof, and recorded nothing", done.stderr)

    def test_nothing_recorded_is_one_short_line(self):
        for words in (["true"], ["sleep", "0.3"]):  # the second one is seen
            lines = self.run_prof(*words).stderr.decode().splitlines()
            self.assertEqual(len(lines), 1, lines)
            self.assertIn("nothing was recorded", lines[0])
            self.assertLess(len(lines[0]), 100)


class Captures(Case):
    def run_on_a_small_disk(self, size, fill, *words, **environment):
        """The folder small is a disk of that size, with a file of `fill` bytes. It is copied to
        kept at the end. Captures without room go to other. Returns the run's stderr."""
        place, other = os.path.join(self.folder, "small"), os.path.join(self.folder, "other")
        os.mkdir(place)
        os.mkdir(other)
        script = (
            f'mount -t tmpfs -o size={size} none "$1" || exit 77; shift; '
            f'head -c {fill} /dev/zero > small/own 2>/dev/null; "$@"; status=$?; rm -f small/own; '
            "cp -r small kept; exit $status"
        )
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", script, "sh", place, PROF, "run", *words],
            cwd=self.folder,
            env={**self.env, "PROF_CAPTURE_DIR": other, **environment},
            capture_output=True,
            timeout=HANG_SECONDS,
            check=False,
        )
        if done.returncode in (1, 77):
            self.skipTest(f"no mount in a namespace: {done.stderr.decode().strip()}")
        self.assertEqual(done.returncode, 4, done.stderr)
        return done.stderr.decode()

    def test_a_full_disk_is_not_a_program_without_prof(self):
        """The folder has room for the summary, and none for captures."""
        text = self.run_on_a_small_disk("32k", "8k", "-o", "small/out", "--", "app", "4")
        other = os.path.join(self.folder, "other")
        self.assertNotIn("nothing was recorded", text)
        (name,) = os.listdir(other)
        self.assertIn(f"is '{other}/{name}'", text)
        self.assertIn("work", text)  # the table

    def run_to_a_file(self, name, program):
        """The file's disk has no room when the program starts. (text, files there, captures)"""
        words = ("-o", f"small/{name}", "--", "sh", "-c", program)
        text = self.run_on_a_small_disk("8m", "8m", *words)
        kept, other = (os.listdir(os.path.join(self.folder, x)) for x in ("kept", "other"))
        return text, kept, other

    def test_a_file_on_a_full_disk_is_said_to_have_no_space(self):
        text, kept, other = self.run_to_a_file("y.prof", "app 4")
        self.assertEqual((kept, len(other)), ([], 1), text)
        self.assertIn("cannot write 'small/y.prof': No space left on device", text)
        self.assertIn(f"the capture is '{self.folder}/other/{other[0]}'", text)

    def test_a_file_is_moved_from_another_disk(self):
        text, kept, other = self.run_to_a_file("y.prof", "app 4; rm small/own; exit 4")
        self.assertEqual((kept, other), (["y.prof"], []), text)
        self.assertIn("small/y.prof has app", text)
        self.assertNotIn("did not take it", text)
        done = subprocess.run(
            [PROF, "table", os.path.join(self.folder, "kept/y.prof")],
            capture_output=True,
            timeout=HANG_SECONDS,
            check=True,
        )
        self.assertIn(b"work", done.stdout)

    def test_a_temporary_run_leaves_no_capture_elsewhere(self):
        place = os.path.join(self.folder, "small")
        text = self.run_on_a_small_disk("32k", "0", "app", "4", TMPDIR=place)
        self.assertIn("work", text)
        self.assertEqual(os.listdir(os.path.join(self.folder, "other")), [])

    def test_a_launcher_in_front_does_not_name_the_capture(self):
        self.run_prof("-q", "-o", "out", "timeout", "100", "app", "0")
        (name,) = os.listdir(os.path.join(self.folder, "out/prof_output"))
        self.assertTrue(name.startswith("app."), name)

    def test_two_captures_of_one_pid_are_two_files(self):
        """A process that executes a second program keeps its pid."""
        for form in ("prof", "json"):
            with self.subTest(form):
                where = os.path.join(self.folder, form)
                os.mkdir(where)
                out = os.path.join(where, f"t.{form}")
                done = self.run_prof("-o", out, "--", "sh", "-c", "app 0; app again; true")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(len(os.listdir(where)), 3, done.stderr)
                for name in os.listdir(where):
                    self.assertIn(f"{name} has app", done.stderr.decode())

    def test_pid_namespaces_do_not_overwrite_each_others_captures(self):
        inside = ("unshare", "-rpf", "sh", "-c", "app 0; exit $?")
        if subprocess.run(["unshare", "-rpf", "true"], capture_output=True, check=False).returncode:
            self.skipTest("no PID namespaces")
        done = self.run_prof("-o", "out", "--", "sh", "-c", '"$@" && "$@" && "$@"', "sh", *inside)
        self.assertEqual(done.returncode, 0, done.stderr)
        names = os.listdir(os.path.join(self.folder, "out/prof_output"))
        self.assertEqual(len(names), 3, names)
        self.assertRegex(done.stderr.decode(), r"(?m)^work .* 3 ")

    def test_an_unreadable_capture_does_not_hide_the_others(self):
        done = self.run_prof(
            "-o", "out", "--", "sh", "-c", "app 0; echo x > out/prof_output/bad.prof"
        )
        text = done.stderr.decode()
        self.assertIn("a capture is left out: ", text)
        self.assertIn("bad.prof", text)
        self.assertIn("work", text)

    def test_python_s_own_command_names_its_capture(self):
        with open(os.path.join(self.folder, "x.py"), "w", encoding="utf-8") as file:
            file.write("print(1)\n")
        self.env |= {
            "PROF_PYTHON_PROGRAM": sys.executable,
            "PYTHONPATH": os.path.join(SOURCE, "bindings/python"),
            "PROF_LIBRARY": os.path.join(BUILD, "libprof.so"),
        }
        done = self.run_prof("-q", "-o", "out", "x.py")
        self.assertEqual((done.returncode, done.stdout), (0, b"1\n"), done.stderr)
        (name,) = os.listdir(os.path.join(self.folder, "out/prof_output"))
        self.assertRegex(name, r"^x\.py\.\d+\.prof$")

    def test_a_process_that_still_records_keeps_the_temporary_folder(self):
        """The next run removes it, when the process has ended."""
        temporary = os.path.join(self.folder, "tmp")
        os.mkdir(temporary)
        self.env["TMPDIR"] = temporary
        program = "app wait < fifo > /dev/null 2>&1 & while ! [ -e ready ]; do sleep 0.01; done"
        os.mkfifo(os.path.join(self.folder, "fifo"))
        hold = os.open(os.path.join(self.folder, "fifo"), os.O_RDWR)
        done = self.run_prof("sh", "-c", program)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr.decode(), r"still runs, and is not waited for: app \(")
        (folder,) = os.listdir(temporary)
        self.assertIn(f"still records, in '{temporary}/{folder}'", done.stderr.decode())
        self.run_prof("true")
        self.assertEqual(os.listdir(temporary), [folder])
        os.close(hold)
        end = time.monotonic() + HANG_SECONDS
        while os.listdir(temporary):
            self.assertLess(time.monotonic(), end, "it hangs")
            self.run_prof("true")

    def test_no_scopes_are_no_empty_table(self):
        text = self.run_prof("--memory", "sort", "/dev/null").stderr.decode()
        self.assertIn("no scopes were recorded\n", text)
        self.assertIn("memory by process", text)
        self.assertNotIn("Calls", text)

    def test_the_table_of_a_rank_names_it(self):
        env = {**self.env, "OMPI_COMM_WORLD_RANK": "3"}
        self.assertIn("rank 3:\n", self.run_prof("app", "0", env=env).stderr.decode())
        self.assertNotIn("rank", self.run_prof("app", "0").stderr.decode())

    def test_memory_has_its_peaks(self):
        done = self.run_prof("--memory", "app", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        text = done.stderr.decode()
        self.assertRegex(text, r"\n  app \(\d+\), malloc: peak used 8\.\d+ MiB at ")
        self.assertRegex(text, r"\n    at that peak: 8\.00 MiB in 1 piece, allocated in work")
        self.assertNotIn("memory by process", self.run_prof("app", "0").stderr.decode())

    def test_a_script_in_python_has_its_peaks_too(self):
        with open(os.path.join(self.folder, "x.py"), "w", encoding="utf-8") as file:
            file.write("import subprocess\nbytearray(50 << 20)\nsubprocess.run(['app', '0'])\n")
        self.env |= {
            "PROF_PYTHON_PROGRAM": sys.executable,
            "PYTHONPATH": os.path.join(SOURCE, "bindings/python"),
            "PROF_LIBRARY": os.path.join(BUILD, "libprof.so"),
        }
        for words in ([], ["-o", "out"], ["-o", "x.json"]):
            text = self.run_prof("--memory", *words, "x.py").stderr.decode()
            self.assertEqual(text.count("memory by process, the highest peak first:\n"), 1, text)
            self.assertRegex(text, r"\n  \S+ \(\d+\), malloc: peak used 5\d\.\d+ MiB at ")
            self.assertRegex(text, r"\n    at that peak: 50\.00 MiB in 1 piece, allocated in x\.py")
            self.assertRegex(text, r"\n  app \(\d+\), malloc: peak used 8\.\d+ MiB at ")
            self.assertEqual(text.count("malloc: peak used"), 2, text)
        self.assertEqual(len(os.listdir(os.path.join(self.folder, "out/prof_output"))), 2)
        self.assertNotIn("memory by process", self.run_prof("x.py").stderr.decode())

    def test_many_processes_with_memory_have_a_bounded_list(self):
        done = self.run_prof(
            "--memory", "sh", "-c", "for i in 0 1 2 3 4 5 6 7 8 9 10 11; do app 0; done"
        )
        text = done.stderr.decode()
        self.assertEqual(text.count("malloc: peak used"), 10, text)
        self.assertIn("\n  and 3 more\n", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
