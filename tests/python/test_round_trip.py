"""A trace that prof wrote and takes back: tables, events and the JSON itself are the same again.
What cannot be is listed here, as in docs/reference/import-formats.md. With the real torch:
test_observe_round_trip.py."""

import collections
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import unittest

from folder import Folder
from hang_guard import HANG_SECONDS

import prof

SOURCE = os.environ.get(
    "PROF_TEST_SOURCE_DIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
)
LIBRARY = os.path.dirname(os.path.abspath(os.environ.get("PROF_LIBRARY", "build/dev/libprof.so")))
# a host's scope has them as arguments, which are marked where prof's own could stand
OWN_KEYS = ("unfinished", "Device", "Stream")
TEXT_BYTES = 4096  # what a name has room for
NOTHING = (collections.Counter(), collections.Counter())  # what each has beyond the other


def take_back(test, path):
    try:
        opened = prof.import_trace(path, path + ".taken.prof")
    except (ValueError, RuntimeError) as e:
        if "yajl" not in str(e):
            raise
        test.skipTest(str(e))
    test.addCleanup(opened.close)
    return opened


def rows(averages):
    """What a table has of each, exactly."""
    return collections.Counter(
        (
            a.key,
            a.count,
            str(a.input_shapes),
            tuple(a.stack),
            a.category,
            a.is_user_annotation,
            round(a.cpu_time_total, 3),
            round(a.self_cpu_time_total, 3),
            a.cpu_memory_usage,
            a.self_cpu_memory_usage,
            a.flops,
        )
        for a in averages
    )


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as f:
        return json.load(f)


def said(event):
    """An event without the numbers that tie rows of a file to each other, and that exports make
    anew."""
    args = {
        key: value
        for key, value in event.get("args", {}).items()
        if key not in ("External id", "correlation")
    }
    for key in OWN_KEYS:
        if key + "#" in args:
            args[key] = args.pop(key + "#")
    if event["ph"] == "M" and event["name"].endswith("sort_index"):
        args = {}  # threads that recorded nothing have no place among the others any more
    if len(event["name"].encode()) > TEXT_BYTES - 4:
        return event["ph"], event["name"][:200], event.get("dur")  # it is cut
    return json.dumps(
        [{key: value for key, value in event.items() if key != "args"}, args], sort_keys=True
    )


def what_it_says(trace):
    # a device's row without anything on it
    return collections.Counter(
        said(e)
        for e in trace["traceEvents"]
        if e.get("cat") != "prof" and not (e["ph"] == "M" and e["pid"] >= 5000000)
    )


class Keys(unittest.TestCase):
    def test_each_key_that_an_export_writes_beside_a_users_is_kept_from_the_users(self):
        wrote, kept = set(), set()
        for name in ("chrome_plain.c", "chrome_event.c", "chrome_arrows.c", "chrome_args.c"):
            with open(os.path.join(SOURCE, "src", "export", name), encoding="utf-8") as f:
                source = f.read()
            wrote.update(re.findall(r'\\"([^"\\]+)\\":', source))
            for table in re.findall(r"_keys\[\] = \{(.*?)\};", source, re.DOTALL):
                kept.update(re.findall(r'"([^"]+)"', table))
            kept.update(re.findall(r'keep_key\(&w->keys, "([^"]+)"', source))
        of_events = {"ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id", "bp", "s"}
        # A user's arguments stand in these, or, of an arrow and of autograd's range around a
        # backward call, there are none of a user's.
        alone = {"text", "args_string", "flow id", "unnamed", "Sequence number", "Fwd thread id"}
        self.assertLessEqual({"skipped", "annotation", "cut", "Input Dims"}, wrote)
        self.assertEqual(wrote - of_events - alone - kept, set())


class Profiles(Folder):
    def same_tables(self, original, taken, stacks, **options):
        for by_shape in (False, True):
            for frames in (0, 1, 50) if stacks else (0,):
                with self.subTest(by_shape=by_shape, frames=frames):
                    first = rows(
                        original.key_averages(
                            group_by_input_shape=by_shape, group_by_stack_n=frames
                        )
                    )
                    second = rows(
                        taken.key_averages(
                            group_by_input_shape=by_shape,
                            group_by_stack_n=frames,
                            with_flops=original.with_flops,
                            **options,
                        )
                    )
                    self.assertTrue(first)
                    self.assertEqual((first - second, second - first), NOTHING)

    def test_a_profile_with_everything(self):
        pool = prof.memory_profiler.Pool("tensors", "cpu")
        prof.set_thread_name("the first")

        def inner(n):
            with prof.scope(
                "operators.mm", "operator", 1, _shapes=[(0x0220, 2, n), (0x0220, n, 4)]
            ):
                pool.alloc(0x1000 * n, 100 * n, 128 * n)
                with prof.record_function("inside"):
                    pass

        def work():
            prof.set_thread_name("another")
            for n in (3, 4, 3):
                inner(n)
                pool.free(0x1000 * n, 128 * n)

        with prof.profile(
            record_shapes=True, profile_memory=True, with_stack=True, with_flops=True
        ) as p:
            for _ in range(3):
                work()
                p.step()
            other = threading.Thread(target=work)
            other.start()
            other.join()
        p.export_chrome_trace(self.path("t.json"))
        taken = take_back(self, self.path("t.json"))
        self.same_tables(p, taken, stacks=True)
        names = {
            event["args"]["name"]
            for event in json.loads(taken.json())["traceEvents"]
            if event["name"] == "thread_name"
        }
        self.assertLessEqual({"another"}, names)
        self.assertNotIn("overlapping", " ".join(names))
        self.assertEqual([e.id for e in taken.events() if e.kind == "step"], [0, 1, 2])

    def test_steps_of_a_schedule_are_rows_and_marks_are_none(self):
        with prof.profile(schedule=prof.schedule(wait=0, warmup=1, active=3, repeat=1)) as p:
            for _ in range(4):
                with prof.record_function("work"):
                    pass
                p.step()
        p.export_chrome_trace(self.path("t.json"))
        taken = take_back(self, self.path("t.json"))
        self.same_tables(p, taken, stacks=False)
        self.assertEqual(
            {a.key: a.count for a in taken.key_averages()}, {"ProfilerStep*": 3, "work": 3}
        )
        with prof.profile() as p:
            for _ in range(4):
                with prof.record_function("work"):
                    pass
                p.step()
        p.export_chrome_trace(self.path("m.json"))
        taken = take_back(self, self.path("m.json"))
        self.same_tables(p, taken, stacks=False)
        self.assertEqual({a.key: a.count for a in taken.key_averages()}, {"work": 4})
        self.assertEqual(sorted(e.id for e in taken.events() if e.kind == "step"), [0, 1, 2, 3])

    def test_steps_and_scopes_that_end_at_one_moment(self):
        """A clock of 10 ns has many of these."""
        with prof.profile() as p:
            p.step()
            for _ in range(2):
                with prof.record_function("around"), prof.record_function("body"):
                    pass
                p.step()
        p.export_chrome_trace(self.path("t.json"))
        written = read(self.path("t.json"))
        around, body, step = (
            [e for e in written["traceEvents"] if e["name"] == name][-1]
            for name in ("around", "body", "ProfilerStep#1")
        )
        for event in (body, around):
            event["dur"] = round(step["ts"] + step["dur"] - event["ts"], 3)
        for start in (around["ts"], step["ts"]):
            around["dur"], around["ts"] = round(around["dur"] + around["ts"] - start, 3), start
            with self.subTest(start=start), open(self.path("x.json"), "w") as f:
                json.dump(written, f)
                f.flush()
                again = json.loads(take_back(self, f.name).json())
                self.assertEqual(what_it_says(again), what_it_says(written))
                os.remove(f.name + ".taken.prof")

    def test_modules_are_rows_of_ones_own_trace_and_not_of_torchs(self):
        with prof.profile(with_stack=True) as p:
            with (
                prof.scope("nn.Module: Linear_0", "python_function", 1),
                prof.scope("aten::linear", "cpu_op", 1),
            ):
                pass
        p.export_chrome_trace(self.path("t.json"))
        taken = take_back(self, self.path("t.json"))
        self.same_tables(p, taken, stacks=True)
        self.assertEqual(
            {a.key for a in taken.key_averages(include_python_functions=True)},
            {"nn.Module: Linear_0", "aten::linear"},
        )
        trace = read(self.path("t.json"))
        del trace["prof"]
        with open(self.path("torchs.json"), "w") as f:
            json.dump(trace, f)
        torchs = take_back(self, self.path("torchs.json"))
        self.assertEqual({a.key for a in torchs.key_averages()}, {"aten::linear"})
        self.assertIn(
            "nn.Module: Linear_0",
            {a.key for a in torchs.key_averages(include_python_functions=True)},
        )

    @unittest.skipIf(
        sys.implementation.name == "pypy", "functions are traced through CPython's interface in C"
    )
    def test_traced_functions_say_where_they_are_defined(self):
        """In the JSON by their arguments, and in what comes back as their frames: of Python and of
        C, of names and paths of any kind."""
        space = {"prof": prof, "len": len}
        long = "/".join("x" * 90 for _ in range(40)) + ".py"
        for number, path in enumerate(["a b.py", 'ä"\\', "semi;colon.py", long]):
            exec(
                compile(
                    f"class C:\n  def work{number}(self):\n    def inner{number}():\n"
                    f"      return len([])\n    with prof.record_function('inside'):\n"
                    f"      return inner{number}()\nwork{number} = C().work{number}",
                    path,
                    "exec",
                ),
                space,
            )
        with prof.profile() as p, prof.trace_functions(c_functions=True, imports=False):
            for number in range(4):
                for _ in range(3):
                    space[f"work{number}"]()
        p.export_chrome_trace(self.path("t.json"))
        taken = take_back(self, self.path("t.json"))
        self.same_tables(p, taken, stacks=True, include_python_functions=True)
        frames = collections.Counter((e.name, e.frame) for e in p.events())
        self.assertEqual(frames, collections.Counter((e.name, e.frame) for e in taken.events()))
        self.assertEqual([frame for _, frame in frames.elements()].count("a b.py(2): work0"), 3)
        self.assertEqual(frames["len", "<built-in function len>"], 12)
        written = read(self.path("t.json"))
        self.assertEqual(what_it_says(json.loads(taken.json())), what_it_says(written))
        numbers = ("External id", "Python id", "Python parent id")
        said_of = {
            e["name"].rpartition(".")[2]: {
                key: value for key, value in e.get("args", {}).items() if key not in numbers
            }
            for e in written["traceEvents"]
            if e["ph"] == "X"
        }
        self.assertEqual(
            [
                e["name"]
                for e in written["traceEvents"]
                if e["ph"] == "X" and "Python id" not in e.get("args", {})
            ],
            ["inside"] * 12,
        )
        self.assertEqual(said_of["inner0"], {"file": "a b.py", "line": 3})
        self.assertEqual(said_of["work1"], {"file": 'ä"\\', "line": 2})
        self.assertEqual(said_of["work3"], {"file": long, "line": 2})
        self.assertEqual(said_of["len"], {"frame": "<built-in function len>"})
        self.assertEqual(said_of["inside"], {})

    def test_a_programs_own_arguments_are_no_functions_place(self):
        with prof.profile() as p, prof.scope("mine", "python_function", 1, file="x", line=3):
            pass
        p.export_chrome_trace(self.path("t.json"))
        self.assertEqual(
            [(e.frame, e.args) for e in take_back(self, self.path("t.json")).events()],
            [("mine", {"file#": "x", "line#": 3})],
        )

    def test_scopes_that_overlap_are_their_threads_again(self):
        """record_function() by call, ended in another order than begun; the row that is called so
        by another tool stays its own."""
        with prof.profile() as p:
            first, second = prof.record_function("first"), prof.record_function("second")
            first.__enter__()
            second.__enter__()
            first.__exit__(None, None, None)
            second.__exit__(None, None, None)
        p.export_chrome_trace(self.path("t.json"))
        trace = read(self.path("t.json"))
        called = [e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"]
        self.assertEqual(len([name for name in called if "(overlapping 1)" in name]), 1, called)
        taken = take_back(self, self.path("t.json"))
        self.assertEqual(len({e.thread for e in taken.events()}), 1)
        self.assertEqual(what_it_says(json.loads(taken.json())), what_it_says(trace))
        del trace["prof"]
        with open(self.path("others.json"), "w") as f:
            json.dump(trace, f)
        self.assertEqual(
            len({e.thread for e in take_back(self, self.path("others.json")).events()}), 2
        )

    def test_a_rank(self):
        trace = {
            "schemaVersion": 1,
            "distributedInfo": {"backend": "", "rank": 3, "world_size": 8},
            "traceEvents": [
                {
                    "ph": "X",
                    "cat": "cpu_op",
                    "name": "a",
                    "pid": 1,
                    "tid": 1,
                    "ts": 1,
                    "dur": 2,
                    "args": {},
                }
            ],
            "prof": {"version": "1"},
        }
        with open(self.path("t.json"), "w") as f:
            json.dump(trace, f)
        self.assertEqual(
            json.loads(take_back(self, self.path("t.json")).json())["distributedInfo"],
            trace["distributedInfo"],
        )


class Written(Folder):
    """Every kind of trace that the viewers' tests write (tests/viewers/make_traces.c)."""

    maxDiff = None

    def test_the_json_is_the_same_again(self):
        compiler = shutil.which("cc")
        if not compiler:
            self.skipTest("no C compiler")
        program = self.path("make_traces")
        subprocess.run(
            [
                compiler,
                "-std=c11",
                f"-I{SOURCE}/include",
                f"{SOURCE}/tests/viewers/make_traces.c",
                "-o",
                program,
                f"-L{LIBRARY}",
                "-lprof",
                "-lpthread",
                f"-Wl,-rpath,{LIBRARY}",
            ],
            check=True,
        )
        subprocess.run(
            [program, self.folder], check=True, stderr=subprocess.DEVNULL, timeout=HANG_SECONDS
        )
        compared = 0
        for name in sorted(os.listdir(self.folder)):
            # RAF's log has no names of rows; nothing has no process
            if (
                not name.endswith((".json", ".json.gz"))
                or name.startswith("raf-")
                or name in ("manifest.json", "empty.json")
            ):
                continue
            with self.subTest(name):
                written = read(self.path(name))
                again = json.loads(take_back(self, self.path(name)).json())
                first, second = what_it_says(written), what_it_says(again)
                self.assertEqual((first - second, second - first), NOTHING)
                self.assertEqual(
                    {
                        key: again.get(key)
                        for key in ("schemaVersion", "distributedInfo", "baseTimeNanoseconds")
                    },
                    {
                        key: written.get(key)
                        for key in ("schemaVersion", "distributedInfo", "baseTimeNanoseconds")
                    },
                )
                compared += 1
        self.assertGreater(compared, 12)


if __name__ == "__main__":
    unittest.main()
