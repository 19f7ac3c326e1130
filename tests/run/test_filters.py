"""Filters of the command, against a computation in Python of the JSON export."""

import base64
import csv
import gzip
import json
import os
import re
import sys

from case import PROF
from known_capture import Recorded
from nested_capture import FILTERS, Nested, nested_events, read_export

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
from perfetto_file import decode


def expected_rows(scopes, takes):
    """calls, total and self by name and category. A recursion counts once in the total."""
    rows = {}
    for scope in filter(takes, scopes):
        key = (scope.name, scope.category)
        calls, total, own = rows.get(key, (0, 0, 0))
        is_inner = any(
            (other.name, other.category) == key and takes(other) for other in scope.around()
        )
        rows[key] = (calls + 1, total + (0 if is_inner else scope.duration), own + scope.self)
    return rows


class Tables(Nested):
    def test_rows_are_of_the_scopes_that_pass(self):
        for words, takes in FILTERS:
            with self.subTest(words=words):
                text = self.prof("table", "--json", "--rows", "all", *words, self.capture).stdout
                rows = {
                    (row["name"], row["category"]): (row["calls"], row["total_ns"], row["self_ns"])
                    for row in json.loads(text)["rows"]
                }
                expected = expected_rows(self.scopes, takes)
                self.assertTrue(expected)
                self.assertEqual(rows, expected)

    def test_nothing_that_passes_is_status_3(self):
        for words in (("--name", "none"), ("--from", "1s"), ("--category", "none")):
            done = self.prof("table", *words, self.capture, status=3)
            self.assertIn("no scope passed the filter", done.stderr)
        self.prof("table", self.capture)


class Groups(Nested):
    def rows(self, *words):
        text = self.prof("table", "--json", "--rows", "all", *words, self.capture).stdout
        return json.loads(text)["rows"]

    def expected(self, key_of):
        """calls, total and self by key; None has no row."""
        sums = {}
        for scope in self.scopes:
            key = key_of(scope)
            if key is None:
                continue
            calls, total, own = sums.get(key, (0, 0, 0))
            is_inner = any(key_of(other) == key for other in scope.around())
            sums[key] = (calls + 1, total + (0 if is_inner else scope.duration), own + scope.self)
        return sums

    def test_rows_by_an_argument_are_its_values(self):
        for key in ("layer", "kind"):
            rows = {
                x["arg"]: (x["calls"], x["total_ns"], x["self_ns"])
                for x in self.rows("--by", f"arg:{key}")
            }
            found = self.expected(lambda scope, key=key: scope.args.get(key))
            self.assertEqual(rows, {str(value): sums for value, sums in found.items()})
            self.assertEqual(len(rows), 3)

    def test_an_argument_goes_with_other_groups_and_a_filter(self):
        words = ("--by", "arg:layer,name", "--by", "thread", "--arg", "kind=y")
        rows = {
            (x["arg"], x["name"], x["thread"]): (x["calls"], x["self_ns"])
            for x in self.rows(*words)
        }
        found = {}
        for scope in self.scopes:
            if scope.args.get("kind") == "y":
                key = (
                    str(scope.args["layer"]),
                    scope.name,
                    f"worker {scope.thread} ({scope.thread})",
                )
                calls, own = found.get(key, (0, 0))
                found[key] = (calls + 1, own + scope.self)
        self.assertEqual(rows, found)

    def test_the_title_of_the_column_is_the_key(self):
        text = self.prof("table", "--by", "arg:layer", self.capture).stdout
        self.assertEqual(text.splitlines()[1].split()[0], "layer")
        text = self.prof("table", "--by", "arg:layer", "--csv", self.capture).stdout
        self.assertTrue(text.startswith("arg,"))

    def test_a_key_that_no_scope_has_is_status_3(self):
        done = self.prof("table", "--by", "arg:none", self.capture, status=3)
        self.assertIn("no scope has the argument 'none'", done.stderr)
        done = self.prof("table", "--by", "line", self.capture, status=3)
        self.assertIn("no scope has a known file and line", done.stderr)

    def test_wrong_groups_have_one_error_text_in_all_commands(self):
        known = "name, category, device, thread, process, rank, shape, stack, scopes, kernel, line"
        for by, said in (
            ("arg:", "--by arg:KEY needs the argument's key"),
            ("arg:a,arg:b", "--by takes one argument, and not also b"),
            ("arg:a,shape", "--by takes shape or arg:KEY, not both"),
            ("argument", f"--by takes one of {known}, arg:KEY, not argument"),
            ("colour", f"--by takes one of {known}, arg:KEY, not colour"),
            ("name,Thread", "--by takes no Thread; did you mean thread?"),
            ("nam", "--by takes no nam; did you mean name?"),
            ("name,thread,name", "--by takes a group once, and has twice name"),
            ("arg:a,line,arg:a", "--by takes a group once, and has twice arg:a"),
            ("", f"--by takes one of {known}, arg:KEY, not an empty word"),
            ("name,", f"--by takes one of {known}, arg:KEY, not an empty word"),
            (",name", f"--by takes one of {known}, arg:KEY, not an empty word"),
        ):
            for command, *captures in (
                ("table", self.capture),
                ("diff", self.capture, self.capture),
                ("report", self.capture),
            ):
                done = self.prof(command, "--by", by, *captures, status=2)
                self.assertEqual(done.stdout, "")
                text = f"prof {command}: {said}"
                self.assertIn(
                    done.stderr,
                    (f"{text}; see prof {command} --help\n", f"{text} see prof {command} --help\n"),
                )
        self.assertFalse(os.path.exists(os.path.join(self.folder, "report.html")))


SCRIPT = """def one():
    pass


class Two:
    def one(self):
        one()


for _ in range(4):
    one()
Two().one()
"""


class Lines(Recorded):
    def test_rows_by_line_are_the_call_sites(self):
        """The module's code is of line 1, as the function is."""
        self.write("script.py", SCRIPT)
        package = os.path.join(os.path.dirname(__file__), "..", "..", "bindings", "python")
        self.prof(
            *("run", "-q", "--python", "-o", "lines.prof", "script.py"),
            env={
                "PYTHONPATH": os.path.abspath(package),
                "PROF_LIBRARY": os.path.join(os.path.dirname(PROF), "libprof.so"),
                "PROF_PYTHON_PROGRAM": sys.executable,
            },
        )
        text = self.prof("table", "--json", "--by", "line", "lines.prof").stdout
        rows = {x["location"]: x["calls"] for x in json.loads(text)["rows"]}
        own = {place: calls for place, calls in rows.items() if "/script.py:" in place}
        script = os.path.join(os.path.realpath(self.folder), "script.py")
        self.assertEqual(own, {f"{script}:1": 6, f"{script}:5": 1, f"{script}:6": 1})
        text = self.prof("table", "--json", "--by", "line,name", "lines.prof").stdout
        places = [x["location"] for x in json.loads(text)["rows"] if x["name"] == "one"]
        self.assertEqual(places, [f"{script}:1"])
        text = self.prof("diff", "--json", "--by", "line", "lines.prof", "lines.prof").stdout
        calls = {x["name"]: x["new"]["calls"] for x in json.loads(text)["rows"]}
        self.assertEqual(calls, rows)
        narrow = self.prof("table", "--by", "line", "--width", "60", "lines.prof").stdout
        self.assertIn(".py:6\n", narrow)


class Differences(Nested):
    def lines(self, *words, status=0):
        text = self.prof("diff", "--json", *words, self.capture, self.capture, status=status).stdout
        return json.loads(text)["rows"]

    def test_rows_by_an_argument_are_its_values(self):
        found = {}
        for scope in self.scopes:
            if (layer := scope.args.get("layer")) is None:
                continue
            calls, total = found.get(str(layer), (0, 0))
            is_inner = any(other.args.get("layer") == layer for other in scope.around())
            found[str(layer)] = (calls + 1, total + (0 if is_inner else scope.duration))
        rows = {x["name"]: x for x in self.lines("--by", "arg:layer")}
        self.assertEqual(
            {key: (x["base"]["calls"], x["base"]["total_ns"]) for key, x in rows.items()}, found
        )
        text = self.prof("diff", "--by", "arg:layer", self.capture, self.capture).stdout
        self.assertRegex(text, r"(?m)^layer +Calls ")

    def test_what_no_scope_has_is_status_3(self):
        words = (self.capture, self.capture)
        done = self.prof("diff", "--by", "arg:none", *words, status=3)
        self.assertIn("no scope has the argument 'none'", done.stderr)
        done = self.prof("diff", "--by", "line", *words, status=3)
        self.assertIn("no scope has a known file and line", done.stderr)
        for by, said in (
            ("arg:", "--by arg:KEY needs the argument's key"),
            ("stack", "--by: for stacks use --tree, not stack"),
            ("name,scopes", "--by: for stacks use --tree, not name,scopes"),
            ("kernel", "leave out kernel of kernel"),
            ("arg:a,shape", "--by takes shape or arg:KEY, not both"),
        ):
            done = self.prof("diff", "--by", by, *words, status=2)
            self.assertIn(said, done.stderr)
        done = self.prof("diff", "--by", "line", "--tree", *words, status=2)
        self.assertIn("--by groups rows, and --tree shows call paths", done.stderr)


class Exports(Nested):
    def test_an_export_has_the_events_of_a_part(self):
        self.prof("dump", self.capture, "--from", "200us", "--to", "0.7ms", "-o", "part.json")
        with open(os.path.join(self.folder, "part.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        found = sorted((x["name"], round(x["dur"] * 1000)) for x in events if x["ph"] == "X")
        expected = [x for x in self.scopes if x.end > 200000 and x.start < 700000]
        self.assertTrue(0 < len(expected) < len(self.scopes))
        self.assertEqual(found, sorted((scope.name, scope.duration) for scope in expected))

    def test_a_part_has_the_self_times_of_the_whole(self):
        """The children that ended before are many: a walk that skips can leave them out."""
        event = {"ph": "X", "pid": 1, "tid": 1}
        kids = [{**event, "name": "kid", "ts": 1 + 2 * n, "dur": 1} for n in range(150000)]
        text = json.dumps(
            {"traceEvents": [{**event, "name": "outer", "ts": 0, "dur": 750000}, *kids]}
        )
        self.write("many.json", text)
        self.prof("import", "many.json", "-o", "many.prof")
        for words in ((), ("--from", "600ms"), ("--to", "10ms")):
            self.prof("dump", "many.prof", *words, "-o", "many.csv")
            with open(os.path.join(self.folder, "many.csv"), encoding="utf-8") as file:
                found = [int(x["self_ns"]) for x in csv.DictReader(file) if x["name"] == "outer"]
            self.assertEqual(found, [600000000], words)
            self.prof("dump", "many.prof", *words, "-o", "many.folded")
            lines = self.read("many.folded").splitlines()
            self.assertEqual(
                [x.rpartition(" ")[2] for x in lines if x.rpartition(" ")[0].endswith("outer")],
                ["600000000"],
                words,
            )

    def test_a_time_with_nothing_in_it_is_status_3_and_no_file(self):
        for name in ("no.csv", "no.json", "no.folded", "no.pftrace"):
            done = self.prof("dump", self.capture, "--from", "100s", "-o", name, status=3)
            self.assertIn("the capture has nothing in that time", done.stderr)
            self.assertFalse(os.path.exists(os.path.join(self.folder, name)))

    def test_a_wrong_time_writes_nothing(self):
        for words in (("--from", "soon"), ("--to", "5"), ("--from", "2s", "--to", "1s")):
            done = self.prof("dump", self.capture, *words, "-o", "no.json", status=2)
            self.assertIn(f'"{words[-1]}"', done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "no.json")))


def path_names(scope):
    return tuple(reversed([scope.name, *(other.name for other in scope.around())]))


def path_sums(scopes, takes):
    """calls and self time of each thread's call paths."""
    sums = {}
    for scope in filter(takes, scopes):
        key = (scope.thread, *path_names(scope))
        calls, own = sums.get(key, (0, 0))
        sums[key] = (calls + 1, own + scope.self)
    return sums


class FilteredExports(Nested):
    """--from and --to are of what touches that time: the class above."""

    CASES = tuple(case for case in FILTERS if case[0] and "--from" not in case[0])

    def export(self, name, words):
        done = self.prof("dump", self.capture, *words, "-o", name)
        if words:
            taken = len([scope for scope in self.scopes if dict(self.CASES)[words](scope)])
            self.assertIn(
                f"{name} is filtered. Left out: {len(self.scopes) - taken} of "
                f"{len(self.scopes)} scopes\n",
                done.stderr,
            )
            self.assertTrue(0 < taken < len(self.scopes))
        return os.path.join(self.folder, name)

    def test_rows_of_json_are_those_of_the_whole_file_that_pass(self):
        with open(self.export("all.json", ()), encoding="utf-8") as file:
            whole = [line for line in file if line.startswith('{"ph":"X"')]
        for words, takes in self.CASES:
            with open(self.export("some.json", words), encoding="utf-8") as file:
                lines = [line for line in file if line.startswith('{"ph":"X"')]
            self.assertLessEqual(set(lines), set(whole))
            found = read_export(os.path.join(self.folder, "some.json"))
            self.assertEqual(
                sorted((scope.name, scope.thread, scope.duration) for scope in found),
                sorted((x.name, x.thread, x.duration) for x in self.scopes if takes(x)),
            )

    def test_numbers_of_operators_are_those_of_the_whole_file(self):
        found = [{**x, "cat": "cpu_op"} if "cat" in x else x for x in nested_events(self.seed)]
        trace = self.write("operators.json", json.dumps({"traceEvents": found}))
        files = []
        for words in ((), ("--name", "load")):
            self.prof("dump", trace, *words, "-o", "operators.out.json")
            with open(os.path.join(self.folder, "operators.out.json"), encoding="utf-8") as file:
                files.append({line for line in file if line.startswith('{"ph":"X"')})
        self.assertLess(files[1], files[0])
        self.assertTrue(all('"Ev Idx":' in line for line in files[1]))

    def test_csv_and_the_log_of_raf_have_the_scopes_that_pass(self):
        for words, takes in self.CASES:
            expected = sorted((x.name, x.self) for x in self.scopes if takes(x))
            with open(self.export("some.csv", words), encoding="utf-8") as file:
                rows = [row for row in csv.DictReader(file) if row["kind"] == "scope"]
            self.assertEqual(sorted((x["name"], int(x["self_ns"])) for x in rows), expected)
            self.prof("dump", self.capture, *words, "--format", "raf", "-o", "some.log")
            with open(os.path.join(self.folder, "some.log"), encoding="utf-8") as file:
                begins = [x["name"] for x in json.load(file)["traceEvents"] if x["ph"] == "B"]
            self.assertEqual(sorted(begins), [name for name, _ in expected])

    def test_call_paths_have_the_numbers_of_the_scopes_that_pass(self):
        for words, takes in self.CASES:
            sums = path_sums(self.scopes, takes)
            with open(self.export("some.folded", words), encoding="utf-8") as file:
                lines = [line.rstrip("\n").rpartition(" ") for line in file]
            found = {}
            for path, _, own in lines:
                thread, *names = path.split(";")
                found[(int(thread.rpartition(" ")[2]), *names)] = int(own)
            self.assertEqual(found, {key: own for key, (_, own) in sums.items() if own})
            with open(self.export("some.speedscope.json", words), encoding="utf-8") as file:
                profiles = json.load(file)["profiles"]
            self.assertEqual(sum(x["endValue"] for x in profiles), sum(x for _, x in sums.values()))

    def test_a_perfetto_trace_has_the_scopes_that_pass(self):
        for words, takes in self.CASES:
            found = decode(self.export("some.pftrace", words)).slices
            self.assertEqual(
                sorted((x.name, x.duration_ns) for x in found),
                sorted((x.name, x.duration) for x in self.scopes if takes(x)),
            )

    def test_what_nothing_passes_is_not_written(self):
        for name in ("no.json", "no.pftrace", "no.csv", "no.folded", "no.pb"):
            done = self.prof("dump", self.capture, "--name", "none", "-o", name, status=3)
            self.assertIn("no scope passed the filter", done.stderr)
            self.assertFalse(os.path.exists(os.path.join(self.folder, name)))

    def test_a_capture_takes_no_filter(self):
        done = self.prof("dump", self.capture, "--name", "load", "-o", "no.prof", status=2)
        self.assertIn("cannot filter a capture", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "no.prof")))


class Parts(Nested):
    """The import of a part of a capture says that self times are too long."""

    SAID = "This is a part of a capture: "
    WHY = ". Self times include the scopes inside that it lacks"

    def imported(self, *words, part="part.json"):
        self.prof("dump", self.capture, *words, "-o", part)
        done = self.prof("import", part, "-o", "part.prof")
        table = self.prof("table", "part.prof").stdout
        notes = [line for line in table.splitlines() if line.startswith(self.SAID)]
        self.assertEqual(
            [self.SAID in line for line in done.stderr.splitlines()].count(True), len(notes)
        )
        rows = json.loads(self.prof("table", "--json", "part.prof").stdout)["rows"]
        return notes, {(x["name"], x["category"]): x["self_ns"] for x in rows}

    def self_times(self, takes, with_left_out):
        """By row, of the scopes that pass. with_left_out: with what is left out inside of them."""
        sums = {}
        for scope in filter(takes, self.scopes):
            inside = 0  # time of the outermost scopes inside that pass
            below = list(scope.children)
            while below and with_left_out:
                child = below.pop()
                if takes(child):
                    inside += child.duration
                else:
                    below += child.children
            key = (scope.name, scope.category)
            sums[key] = sums.get(key, 0) + (
                scope.duration - inside if with_left_out else scope.self
            )
        return sums

    def test_a_filter_is_told_with_the_number_of_scopes(self):
        for words, takes in FILTERS[1:4]:
            notes, found = self.imported(*words)
            left_out = sum(not takes(scope) for scope in self.scopes)
            self.assertEqual(notes, [f"{self.SAID}a filter left out {left_out} scopes{self.WHY}"])
            self.assertEqual(found, self.self_times(takes, True))
            self.assertNotEqual(found, self.self_times(takes, False))
        page = self.prof("report", "-o", "page.html", "part.prof") and self.read("page.html")
        self.assertEqual(page.count(self.SAID), 1)

    def test_commands_with_self_times_and_no_notes_tell_it_on_stderr(self):
        self.imported(*FILTERS[1][0])
        self.prof("merge", "-o", "two.prof", "part.prof", self.capture, "--unaligned")
        commands = (["tree"], ["tree", "--json"], ["events"], ["flame", "--folded"])
        for command in commands:
            for given, named in (("part.prof", "part.prof"), ("two.prof", "two.prof#")):
                said = self.prof(*command, given).stderr.splitlines()
                said = [line for line in said if self.SAID in line]
                self.assertEqual(len(said), 1, (command, given, said))
                self.assertTrue(said[0].startswith(f"prof: '{named}"), said[0])
                self.assertTrue(said[0].endswith(self.WHY), said[0])
            self.assertNotIn(self.SAID, self.prof(*command, self.capture).stderr)
            self.assertEqual(self.prof(*command, "part.json").stderr.count(self.SAID), 1)

    def test_databases_tell_it_too(self):
        words, takes = FILTERS[1]
        for part in ("part.db", "part.rpd"):
            notes, found = self.imported(*words, part=part)
            left_out = sum(not takes(scope) for scope in self.scopes)
            self.assertEqual(notes, [f"{self.SAID}a filter left out {left_out} scopes{self.WHY}"])
            self.assertEqual(found, self.self_times(takes, True))
            self.assertEqual(self.imported(part=part)[0], [])

    def test_a_time_span_is_told(self):
        notes, _ = self.imported("--from", "200us", "--to", "700us")
        self.assertEqual(notes, [f"{self.SAID}it has a time span only{self.WHY}"])
        notes, _ = self.imported("--from", "200us", "--to", "700us", "--name", "dense")
        self.assertRegex(
            notes[0], "a filter left out [0-9]+ scopes, and it has a time span only[.]"
        )

    def test_a_whole_trace_has_no_such_line(self):
        notes, found = self.imported()
        self.assertEqual((notes, found), ([], self.self_times(FILTERS[0][1], False)))
        notes, _ = self.imported("--min", "1ns")  # leaves nothing out
        self.assertEqual(notes, [])


class Reports(Nested):
    def report(self, *words, status=0):
        """The data of the page, and the page."""
        self.prof("report", *words, self.capture, "-o", "page.html", status=status)
        path = os.path.join(self.folder, "page.html")
        if status:
            self.assertFalse(os.path.exists(path))
            return None, None
        page = self.read("page.html")
        os.remove(path)
        packed = re.search(r'<script[^>]*data-encoding="gzip"[^>]*>([^<]*)</script>', page)
        data = gzip.decompress(base64.b64decode(packed[1]))
        return json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")]), page

    def test_a_page_is_of_the_scopes_that_pass(self):
        for words, takes in FILTERS[1:]:
            data, page = self.report(*words)
            rows = {(x[0], x[1]): (x[2], x[3], x[4]) for x in data["rows"]}
            self.assertEqual(rows, expected_rows(self.scopes, takes), words)
            passed = sum(calls for calls, _, _ in rows.values())
            self.assertEqual(sum(sum(x[16][1::2]) for x in data["rows"]), passed)
            self.assertEqual(sum(x[2] for x in data["flames"][0]["paths"]), passed)
            self.assertIn(
                f"Filtered: {len(self.scopes) - passed} of {len(self.scopes)} scopes are left out",
                page,
            )
        data, page = self.report()
        self.assertNotIn("Filtered:", page)
        self.assertEqual(sum(sum(x[16][1::2]) for x in data["rows"]), len(self.scopes))

    def test_rows_by_an_argument_are_its_values(self):
        text = self.prof("table", "--json", "--by", "arg:layer", self.capture).stdout
        table = {
            x["arg"]: (x["calls"], x["total_ns"], x["self_ns"]) for x in json.loads(text)["rows"]
        }
        data, _ = self.report("--by", "arg:layer")
        self.assertEqual({x[0]: tuple(x[2:5]) for x in data["rows"]}, table)
        self.assertEqual(data["keys"], ["layer"])
        self.assertEqual({x[1] for x in data["rows"]}, {""})
        data, _ = self.report("--by", "arg:layer,name")
        self.assertEqual(data["keys"], ["layer", "Name"])
        data, _ = self.report("--by", "thread,arg:layer,name")
        self.assertEqual(data["keys"], ["Thread", "layer", "Name"])

    def test_what_nothing_passes_is_not_written(self):
        for words in (("--name", "none"), ("--by", "arg:none"), ("--by", "line")):
            self.report(*words, status=3)
        for by in ("none", "arg:", "arg:layer,shape"):
            self.report("--by", by, status=2)


def memory_events():
    """Two scopes named alpha, of two threads, and one named beta."""
    found = [
        {"ph": "X", "cat": "op", "pid": 7, "name": name, "tid": tid, "ts": begin, "dur": duration}
        for name, tid, begin, duration in (
            *(("alpha", 11, 0, 100), ("beta", 12, 10, 100), ("alpha", 12, 200, 50)),
        )
    ]
    used = 0
    for tid, at, address, size in (
        *((11, 5, 1000, 64), (11, 6, 2000, 128), (12, 20, 3000, 256), (12, 210, 4000, 512)),
        *((12, 220, 3000, -256), (11, 300, 5000, 1024)),
    ):
        used += size
        args = {"Addr": address, "Bytes": size, "Total Allocated": used, "Total Reserved": 0}
        args |= {"Device Type": 0, "Device Id": -1}
        found.append(
            {"ph": "i", "s": "t", "name": "[memory]", "cat": "memory", "pid": 7, "tid": tid}
            | {"ts": at, "args": args}
        )
    return found


class Memory(Recorded):
    """The tables of what was live have the allocations that pass; peaks are of all."""

    def setUp(self):
        super().setUp()
        trace = self.write("memory.json", json.dumps({"traceEvents": memory_events()}))
        self.prof("import", trace, "-o", "memory.prof")

    def live(self, *words):
        """bytes and pieces by scope, at the peak, and the text."""
        text = self.prof("memory", *words, "memory.prof").stdout
        part = text.partition("Live at the peak of used:")[2].partition("size asked for")[0]
        rows = re.findall(r"(?m)^  (\S.*?)  +([\d.]+) (B|KiB)  +\S+%  +(\d+) ", part)
        return {x[0]: (float(x[1]) * {"B": 1, "KiB": 1024}[x[2]], int(x[3])) for x in rows}, text

    def test_tables_have_the_allocations_that_pass(self):
        none, alpha = "(no scope)", "alpha"
        for words, expected in (
            ((), {none: (1024, 1), alpha: (704, 3)}),
            (("--name", "^al"), {alpha: (704, 3)}),
            (("--thread", "12"), {alpha: (512, 1)}),
            (("--thread", "11"), {none: (1024, 1), alpha: (192, 2)}),
            (("--from", "6us", "--to", "210us"), {alpha: (128, 1)}),
            (("--device", "cpu", "--process", "7"), {none: (1024, 1), alpha: (704, 3)}),
        ):
            rows, text = self.live(*words)
            self.assertEqual(rows, expected, words)
            self.assertIn("1728", text)  # the peak of used
            self.assertEqual("Filtered: the tables" in text, bool(words))
            rest = 1728 - sum(size for size, _ in expected.values())
            self.assertEqual("left out by the filter" in text, bool(rest), words)
            self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_nothing_that_passes_is_status_3(self):
        for words in (
            ("--name", "gamma"),
            ("--device", "cuda"),
            ("--device", "cuda", "--pool", "1"),
        ):
            done = self.prof("memory", *words, "memory.prof", status=3)
            self.assertIn("no allocation passed the filter", done.stderr)

    def test_what_makes_no_sense_is_refused_by_name(self):
        for words, said in (
            (("--min", "5us"), "--min applies to scopes only: an allocation has no duration"),
            (("--category", "op"), "--category applies to scopes only"),
            (("--level", "1"), "--level applies to scopes only"),
            (("--arg", "a=1"), "--arg applies to scopes only"),
            (("--svg", "x.svg", "--name", "alpha"), "--svg and --raf show whole pools"),
            (("--raf", "--thread", "11"), "--svg and --raf show whole pools"),
        ):
            done = self.prof("memory", *words, "memory.prof", status=2)
            self.assertEqual(done.stdout, "")
            self.assertIn(said, done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "x.svg")))


class WrongWords(Nested):
    def test_no_scope_begins_after_the_last_time(self):
        words = ("--from", f"{2**64 - 1}ns", self.capture)
        for command in ("events", "tree", "table"):
            done = self.prof(command, *words, status=3)
            self.assertIn("no scope passed the filter", done.stderr)

    def test_an_option_given_twice_is_refused(self):
        """The last one would win without a word."""
        commands = ("table", "events", "tree", "top", "flame", "dump", "report", "diff")
        for option, one, two in (
            *(("--name", "a", "e"), ("--category", "a", "b"), ("--level", "1", "2")),
            *(("--thread", "11", "12"), ("--process", "7", "8"), ("--device", "cpu", "hip")),
            *(("--min", "1us", "2us"), ("--from", "1us", "2us"), ("--to", "1ms", "2ms")),
            ("--step", "1", "2"),
        ):
            for command in commands:
                words = (command, option, one, option, two, self.capture)
                done = self.prof(*words, status=2)
                self.assertEqual(done.stdout, "")
                self.assertIn(f"prof {command}: accepts {option} only once", done.stderr)
        for command in ("report", "diff"):
            words = ("--by", "line", "--by", "arg:layer", self.capture)
            self.assertIn("accepts --by only once", self.prof(command, *words, status=2).stderr)
        words = ("--min", "1%", "--min", "2%", self.capture)
        self.assertIn("accepts --min only once", self.prof("tree", *words, status=2).stderr)
        self.prof("table", "--arg", "layer=1", "--arg", "kind=y", self.capture)

    def test_patterns_that_become_too_large_are_refused(self):
        """regcomp() of libc would take hours, or crash."""
        for pattern, said in (
            ("((((((a{1,250}){1,250}){1,250})))", "its counts make "),
            ("a{1,250}{1,250}{1,250}", "its counts make 15625000 characters"),
            ("(" * 40 + "a" + "+)" * 40, "its counts make 1073741824 or more characters"),
            ("([^]+a{9}]|\\{){4097}", "its counts make "),
            ("(" * 30000 + "a" + ")" * 30000, "more than 200 groups are nested"),
        ):
            done = self.prof("table", "--name", pattern, self.capture, status=2)
            self.assertIn(said, done.stderr)
        literal = "|".join(["none"] * 2000 + ["load"])
        for pattern in ("(a|l){1,9}o{1,250}[]{9}a]{1,9}d", literal, "(((l)))o+a{1}d", "l.{2,}d"):
            found = self.prof("table", "--name", pattern, "--csv", self.capture).stdout
            self.assertEqual({row["name"] for row in csv.DictReader(found.splitlines())}, {"load"})

    def test_a_wrong_value_is_one_error_with_the_value(self):
        for command in ("table", "events", "tree", "flame", "dump", "report"):
            for option, value in (
                ("--name", "a["),
                ("--min", "10"),
                ("--from", "soon"),
                ("--to", "1.s"),
                ("--device", "gpu"),
                ("--step", "5..3"),
                ("--arg", "layer"),
            ):
                done = self.prof(command, option, value, self.capture, status=2)
                self.assertEqual(done.stdout, "")
                self.assertEqual(done.stderr.count("\n"), 1)
                self.assertIn(f'{option}: "{value}"', done.stderr)
