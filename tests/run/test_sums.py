"""Compares the sums that commands and exports print with sums over single scopes made here."""

import base64
import collections
import csv
import gzip
import json
import os
import re
import signal
import statistics
import subprocess
import sys

from case import HANG_SECONDS, PYTHON
from known_capture import Recorded
from nested_capture import FILTERS, Nested, nested_events, read_export
from test_filters import path_names

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
from perfetto_file import fields_of, message

# Filters for exports of call paths. --from is left out, because exports select by overlap.
EXPORT_FILTERS = tuple(case for case in FILTERS if "--from" not in case[0])


def row_sums(scopes, key_of, takes=lambda scope: True):
    """calls, total and self by key; None has no row. The total is of the outermost calls."""
    sums = {}
    for scope in filter(takes, scopes):
        if (key := key_of(scope)) is None:
            continue
        calls, total, own = sums.get(key, (0, 0, 0))
        is_inner = any(takes(other) and key_of(other) == key for other in scope.around())
        sums[key] = (calls + 1, total + (0 if is_inner else scope.duration), own + scope.self)
    return sums


def layer_of(scope):
    return None if "layer" not in scope.args else str(scope.args["layer"])


def bucket_of(ns):
    """The bucket of a duration in a page: 8 for each doubling, and each ns below 16 has its own."""
    shift = max(ns.bit_length() - 4, 0)
    return 8 * shift + (ns >> shift)


# The words of --by, and what they group by. None: no row.
GROUPS = (
    ("name", lambda scope: (scope.name, "")),
    ("thread", lambda scope: (f"worker {scope.thread}", "")),
    ("category,name", lambda scope: (scope.category, scope.name)),
    ("thread,category", lambda scope: (f"worker {scope.thread}", scope.category)),
    ("arg:layer", lambda scope: layer_of(scope) and (layer_of(scope), "")),
    ("name,arg:layer", lambda scope: layer_of(scope) and (scope.name, layer_of(scope))),
    (
        "arg:layer,thread",
        lambda scope: layer_of(scope) and (layer_of(scope), f"worker {scope.thread}"),
    ),
    ("device", lambda scope: ("cpu:0", "")),
    (
        "thread,name,category",
        lambda scope: (f"worker {scope.thread}", scope.name, scope.category),
    ),
    (
        "category,device,name,thread",
        lambda scope: (scope.category, "cpu:0", scope.name, f"worker {scope.thread}"),
    ),
    (
        "name,category,arg:layer,thread,device",
        lambda scope: (
            layer_of(scope)
            and (scope.name, scope.category, layer_of(scope), f"worker {scope.thread}", "cpu:0")
        ),
    ),
)
# The keys of the values in a difference, as many as a row has.
VALUES = ("name", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


def values_of(row):
    found = [row[word] for word in VALUES if word in row]
    return tuple(found) if len(found) > 1 else (*found, "")


def varints(data):
    """A packed field."""
    found, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            found.append(value)
            value = shift = 0
    return found


def pprof_sums(path):
    """calls and self time by thread and call path, the outermost first."""
    with open(path, "rb") as file:
        data = file.read()
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    fields = collections.defaultdict(list)
    for number, value in fields_of(data):
        fields[number].append(value)
    texts = [value.decode() for value in fields[6]]
    functions = {x[1]: texts[x[2]] for x in map(message, fields[5])}
    frames = {x[1]: functions[message(x[4])[1]] for x in map(message, fields[4])}
    sums = {}
    for sample in fields[2]:
        parts = message(sample)
        thread = texts[message(parts[3])[2]]
        key = (thread, *(frames[x] for x in reversed(varints(parts[1]))))
        assert key not in sums
        sums[key] = tuple(varints(parts[2]))
    return sums


def speedscope_sums(path):
    """Self time by profile and call path."""
    with open(path, encoding="utf-8") as file:
        whole = json.load(file)
    names = [frame["name"] for frame in whole["shared"]["frames"]]
    sums = collections.Counter()
    for profile in whole["profiles"]:
        path, last = (profile["name"],), profile["startValue"]
        for event in profile["events"]:
            sums[path] += event["at"] - last
            last, name = event["at"], names[event["frame"]]
            if event["type"] == "C":
                assert path[-1] == name
            path = (*path, name) if event["type"] == "O" else path[:-1]
        assert (path, last) == ((profile["name"],), profile["endValue"])
    return {key: value for key, value in sums.items() if value}


class Paths(Nested):
    """Scopes that do not pass stay in the paths of those that do."""

    def expected(self, takes):
        """calls and self time by thread and call path, of the scopes that pass."""
        sums = {}
        for scope in filter(takes, self.scopes):
            key = (scope.thread, *path_names(scope))
            calls, own = sums.get(key, (0, 0))
            sums[key] = (calls + 1, own + scope.self)
        return sums

    @staticmethod
    def by_number(sums):
        """With the thread's number, which ends its name."""
        return {(int(re.findall(r"\d+", key[0])[-1]), *key[1:]): x for key, x in sums.items()}

    def test_pprof_has_the_calls_and_self_times_of_the_scopes_that_pass(self):
        for words, takes in EXPORT_FILTERS:
            self.prof("dump", self.capture, *words, "-o", "some.pb")
            found = self.by_number(pprof_sums(os.path.join(self.folder, "some.pb")))
            self.assertEqual(found, self.expected(takes), words)

    def test_speedscope_has_the_self_times_of_the_scopes_that_pass(self):
        for words, takes in EXPORT_FILTERS:
            self.prof("dump", self.capture, *words, "-o", "some.speedscope.json")
            path = os.path.join(self.folder, "some.speedscope.json")
            expected = {key: own for key, (_, own) in self.expected(takes).items() if own}
            self.assertEqual(self.by_number(speedscope_sums(path)), expected, words)


class Cut(Recorded):
    def test_self_times_of_a_cut_count_scopes_before_it(self):
        """The scope around the cut begins many chunks before it, and its inner ones do too."""
        count, taken = 100000, 10
        plain = {"ph": "X", "pid": 7, "tid": 11}
        inner = [plain | {"name": "inner", "ts": 2 * i, "dur": 1} for i in range(count)]
        outer = plain | {"name": "outer", "ts": 0, "dur": 2 * count}
        trace = self.write("cut.json", json.dumps({"traceEvents": [outer, *inner]}))
        capture = os.path.join(self.folder, "cut.prof")
        self.prof("import", trace, "-o", capture)
        words = ("dump", capture, "--from", f"{2 * (count - taken) - 0.5}us", "-o")
        paths = [os.path.join(self.folder, name) for name in ("cut.pb", "cut.speedscope.json")]
        for path in paths:
            self.prof(*words, path)
        calls = {key[1:]: x for key, x in pprof_sums(paths[0]).items()}
        own = {key[1:]: x for key, x in speedscope_sums(paths[1]).items()}
        expected = {("outer",): (1, count * 1000), ("outer", "inner"): (taken, taken * 1000)}
        self.assertEqual(calls, expected)
        self.assertEqual(own, {key: x[1] for key, x in expected.items()})


class Rows(Nested):
    def report_rows(self, *words):
        self.prof("report", *words, "-o", "page.html")
        page = self.read("page.html")
        packed = re.search(r'<script[^>]*data-encoding="gzip"[^>]*>([^<]*)</script>', page)
        data = gzip.decompress(base64.b64decode(packed[1]))
        return json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])["rows"]

    def report_sums(self, *words):
        return {row[0]: tuple(row[2:5]) for row in self.report_rows(*words)}

    def test_a_report_by_any_group_has_the_times_and_durations_of_its_scopes(self):
        for by, key_of in GROUPS:
            for words, takes in FILTERS[:4]:
                found = {}
                for row in self.report_rows("--by", by, *words, self.capture):
                    key = (*row[:2], *row[17:])
                    key = tuple(re.sub(r" \(1[12]\)$", "", text) for text in key)
                    buckets = dict(zip(row[16][::2], row[16][1::2]))
                    self.assertNotIn(key, found)
                    found[key] = (tuple(row[2:5]), buckets)
                expected = {}
                for key, sums in row_sums(self.scopes, key_of, takes).items():
                    durations = [x.duration for x in self.scopes if takes(x) and key_of(x) == key]
                    expected[key] = (sums, dict(collections.Counter(map(bucket_of, durations))))
                self.assertTrue(expected)
                self.assertEqual(found, expected, (by, words))

    def test_a_row_of_many_calls_has_the_durations_of_all(self):
        lengths = [1 + number * 37 % 5000 for number in range(3000)]
        events = [
            {"ph": "X", "name": "many", "cat": "c", "pid": 1, "tid": 1, "ts": at * 6000, "dur": us}
            for at, us in enumerate(lengths)
        ]
        trace = self.write("many.json", json.dumps({"traceEvents": events}))
        self.prof("import", trace, "-o", "many.prof")
        ((*_, durations),) = self.report_rows("many.prof")
        expected = collections.Counter(bucket_of(1000 * us) for us in lengths)
        self.assertEqual(list(zip(durations[::2], durations[1::2])), sorted(expected.items()))

    def test_a_report_by_an_argument_has_the_times_of_its_scopes(self):
        for words, takes in FILTERS:
            found = self.report_sums("--by", "arg:layer", *words, self.capture)
            expected = row_sums(self.scopes, layer_of, takes)
            self.assertTrue(expected)
            self.assertEqual(found, expected, words)

    def test_a_report_by_line_has_the_times_of_its_scopes(self):
        self.write(
            "script.py",
            "def leaf(n):\n    return sum(range(n))\n\n\n"
            "def tree(n):\n    leaf(n)\n    return n and tree(n - 1)\n\n\n"
            "for _ in range(3):\n    tree(4)\n",
        )
        self.prof("run", "-q", "--python", "-o", "lines.prof", "script.py", env=PYTHON)
        lines = self.prof("events", "--json", "lines.prof").stdout.splitlines()
        scopes = [x for x in map(json.loads, lines) if x["file"] and not x["state"]]
        self.assertGreater(len(scopes), 30)
        open_places = []  # of the scopes around: events are in the order of time
        sums = {}
        for scope in scopes:
            place = f"{scope['file']}:{scope['line']}"
            end = scope["start_ns"] + scope["duration_ns"]
            while open_places and open_places[-1][1] < end:
                open_places.pop()
            calls, total, own = sums.get(place, (0, 0, 0))
            is_inner = any(place == other for other, _ in open_places)
            total += 0 if is_inner else scope["duration_ns"]
            sums[place] = (calls + 1, total, own + scope["self_ns"])
            open_places.append((place, end))
        script = os.path.join(os.path.realpath(self.folder), "script.py")
        self.assertEqual([sums[f"{script}:{n}"][0] for n in (1, 5)], [16, 15])
        found = self.report_sums("--by", "line", "lines.prof")
        self.assertEqual({place: found.get(place) for place in sums}, sums)

    def sides(self):
        other = self.write("other.json", json.dumps({"traceEvents": nested_events(self.seed + 1)}))
        self.prof("import", other, "-o", "other.prof")
        self.prof("dump", "other.prof", "-o", "export.json")
        return {
            "base": self.scopes,
            "new": read_export(os.path.join(self.folder, "export.json")),
        }

    def test_a_diff_by_any_group_has_the_numbers_of_each_side(self):
        sides = self.sides()
        for by, key_of in GROUPS:
            for words, takes in FILTERS[:4]:
                text = self.prof(
                    *("diff", "--json", "--by", by, *words, self.capture, "other.prof")
                ).stdout
                for side, scopes in sides.items():
                    found = {
                        values_of(row): (row[side]["calls"], row[side]["total_ns"])
                        for row in json.loads(text)["rows"]
                        if row[side]
                    }
                    expected = row_sums(scopes, key_of, takes)
                    self.assertTrue(expected)
                    self.assertEqual(
                        found, {key: sums[:2] for key, sums in expected.items()}, (by, words, side)
                    )

    def test_csv_and_text_of_a_diff_have_a_column_for_each_group(self):
        by = "name,category,thread,device,process,rank,arg:layer"
        words = ("diff", "--by", by, self.capture, self.capture)
        rows = json.loads(self.prof(*words, "--json").stdout)["rows"]
        text = self.prof(*words, "--csv").stdout
        columns = ",".join(f"{word},new_{word}" for word in VALUES[:7])
        self.assertTrue(text.startswith(columns + ",on,path,"), text)
        found = [
            tuple(row[word] for word in VALUES[:7]) for row in csv.DictReader(text.split("\n"))
        ]
        self.assertEqual(found, [values_of(row) for row in rows])
        self.assertEqual(set(map(len, found)), {7})
        text = self.prof(*words, "--rows", "all").stdout
        title = r"(?m)^Name +Category +Thread +Device +Process +Rank +layer +Calls "
        self.assertRegex(text, title)
        for name, category, thread, device, process, _, layer in found:
            line = " +".join(map(re.escape, (name, category, thread, device, process, layer)))
            self.assertRegex(text, f"(?m)^{line} ")

    def test_a_replaced_row_has_all_values_of_both_sides(self):
        for side, name, category in (("old", "conv_a", "x"), ("new", "conv_b", "y")):
            events = [{"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "m"}}]
            for at in range(0, 600, 100):
                for scope in (("step", "s", at, 90), (name, category, at + 10, 20)):
                    event = dict(zip(("name", "cat", "ts", "dur"), scope))
                    events.append({"ph": "X", "pid": 1, "tid": 1} | event)
            self.write(f"{side}.json", json.dumps({"traceEvents": events}))
            self.prof("import", f"{side}.json", "-o", f"{side}.prof")
        words = ("diff", "--by", "category,thread,name", "old.prof", "new.prof")
        rows = {row["state"]: row for row in json.loads(self.prof(*words, "--json").stdout)["rows"]}
        self.assertEqual(set(rows), {"both", "replaced"})
        self.assertEqual(values_of(rows["replaced"]), ("x", "m", "conv_a"))
        found = [rows["replaced"][f"new_{word}"] for word in VALUES[:3]]
        self.assertEqual(found, ["y", "m", "conv_b"])
        lines = list(csv.DictReader(self.prof(*words, "--csv").stdout.splitlines()))
        for row in lines:
            of_json = {
                f"new_{word}": rows[row["state"]].get(f"new_{word}", "") for word in VALUES[:3]
            }
            self.assertEqual({key: row[key] for key in of_json}, of_json)
        self.assertEqual({row["state"] for row in lines}, set(rows))
        line = r"(?m)^x -> y \(replaced\) +m +conv_a -> conv_b +6 "
        self.assertRegex(self.prof(*words).stdout, line)

    def test_a_replaced_row_has_the_new_category_also_without_groups(self):
        for side, category in (("old", "x"), ("new", "y")):
            event = {"ph": "X", "pid": 1, "tid": 1, "name": f"conv_{side}", "cat": category}
            step = {"ph": "X", "pid": 1, "tid": 1, "name": "step", "cat": "s"}
            events = [
                found
                for at in range(0, 600, 100)
                for found in ({**step, "ts": at, "dur": 90}, {**event, "ts": at + 10, "dur": 20})
            ]
            self.write(f"{side}.json", json.dumps({"traceEvents": events}))
            self.prof("import", f"{side}.json", "-o", f"{side}.prof")
        text = self.prof("diff", "--csv", "old.prof", "new.prof").stdout
        self.assertTrue(text.startswith("name,new_name,category,new_category,on,path,"), text)
        rows = {row["state"]: row for row in csv.DictReader(text.splitlines())}
        for state, wanted in (
            ("both", ("step", "", "s", "")),
            ("replaced", ("conv_old", "conv_new", "x", "y")),
        ):
            found = [rows[state][key] for key in text.split(",")[:4]]
            self.assertEqual(tuple(found), wanted)
        text = self.prof("diff", "--json", "old.prof", "new.prof").stdout
        (replaced,) = (row for row in json.loads(text)["rows"] if row["state"] == "replaced")
        self.assertEqual((replaced["category"], replaced["new_category"]), ("x", "y"))

    def test_more_groups_leave_out_columns_of_a_narrow_diff(self):
        by = ("name", "category", "thread", "device")
        for count, width in ((2, 120), (3, 134), (4, 148)):
            words = ("diff", "--by", ",".join(by[:count]), self.capture, self.capture)
            text = self.prof(*words, "--width", str(width)).stdout
            self.assertRegex(text, r"(?m)^Name +Category .* Mean .* p99 .* Total ")
            text = self.prof(*words, "--width", str(width - 1)).stdout
            self.assertIn(f"Mean, p99 and Total have no room; --width {width} shows them.", text)
            self.assertNotIn(" Mean ", text.split("Mean, p99")[0])

    def test_a_diff_by_shape_process_and_rank_has_their_calls(self):
        # name, process, dimensions, times
        calls = (("mm", 1, [[2, 3]], 3), ("mm", 1, [[4]], 1), ("add", 2, [[2, 3]], 2))
        events = [
            {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": f"part {pid}"}}
            for pid in (1, 2)
        ]
        for name, pid, dims, count in calls:
            for _ in range(count):
                events.append(
                    {"ph": "X", "cat": "cpu_op", "name": name, "pid": pid, "tid": pid}
                    | {"ts": 10 * len(events), "dur": 5}
                    | {"args": {"Input Dims": dims, "Input type": ["float"]}}
                )
        trace = self.write("shapes.json", json.dumps({"traceEvents": events}))
        self.prof("import", trace, "-o", "shapes.prof")
        for by, key_of in (
            ("shape", lambda call: (str(call[2]), "")),
            ("name,shape", lambda call: (call[0], str(call[2]))),
            ("process,name", lambda call: (f"part {call[1]}", call[0])),
            ("rank,process,shape", lambda call: ("", f"part {call[1]}", str(call[2]))),
            ("rank", lambda call: ("", "")),
        ):
            text = self.prof("diff", "--json", "--by", by, "shapes.prof", "shapes.prof").stdout
            found = {values_of(row): row["new"]["calls"] for row in json.loads(text)["rows"]}
            expected = collections.Counter()
            for call in calls:
                expected[key_of(call)] += call[3]
            self.assertEqual(found, dict(expected), by)

    def test_a_diff_by_an_argument_has_the_numbers_of_each_side(self):
        sides = self.sides()
        for words, takes in FILTERS:
            found = self.prof(
                *("diff", "--json", "--by", "arg:layer", *words, self.capture, "other.prof")
            ).stdout
            rows = {row["name"]: row for row in json.loads(found)["rows"]}
            for side, scopes in sides.items():
                expected = row_sums(scopes, layer_of, takes)
                self.assertEqual(
                    {
                        key: (row[side]["calls"], row[side]["total_ns"])
                        for key, row in rows.items()
                        if row[side]
                    },
                    {key: sums[:2] for key, sums in expected.items()},
                    (words, side),
                )
                for key in expected:
                    lengths = [x.duration for x in scopes if takes(x) and layer_of(x) == key]
                    mean = rows[key][side]["mean_ns"]
                    self.assertAlmostEqual(mean, statistics.fmean(lengths), delta=1)


OPEN = """
import os, signal, sys
import prof

with prof.scope("done"):
    pass
scopes = [prof.scope(name) for name in sys.argv[1:]]
for scope in scopes:
    scope.__enter__()
os.kill(os.getpid(), signal.SIGKILL)
"""


class Open(Recorded):
    """Scopes that had not ended in processes that were killed."""

    NAMES = (("a", "b", "a"), ("a", "c"), ("b",))

    def leave(self, number, names):
        """The capture of a process that is killed in these scopes."""
        output = f"open-{number}.prof"
        done = subprocess.run(
            [sys.executable, "-c", OPEN, *names],
            cwd=self.folder,
            env={**os.environ, **PYTHON, "PROF_LEVEL": "1", "PROF_OUTPUT": output},
            capture_output=True,
            timeout=HANG_SECONDS,
            check=False,
        )
        self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr)
        (capture,) = (x for x in os.listdir(self.folder) if x.startswith(output))
        return capture

    def test_several_captures_have_the_sum_and_the_longest_of_all(self):
        captures = [self.leave(number, names) for number, names in enumerate(self.NAMES)]
        lengths = collections.defaultdict(list)
        for capture in captures:
            for line in self.prof("events", "--json", capture).stdout.splitlines():
                scope = json.loads(line)
                if scope["state"] == "open":
                    lengths[scope["name"]].append(scope["duration_ns"])
        self.assertEqual({x: len(found) for x, found in lengths.items()}, {"a": 3, "b": 2, "c": 1})
        for words, names in (((), "abc"), (("--name", "a|c"), "ac")):
            table = json.loads(self.prof("table", "--json", *words, *captures).stdout)
            rows = {row["name"]: row for row in table["rows"] if row["open"]}
            self.assertEqual(
                {name: (row["open"], row["open_for_ns"]) for name, row in rows.items()},
                {name: (len(lengths[name]), max(lengths[name])) for name in names},
            )
            self.assertEqual(table["open"], sum(len(lengths[name]) for name in names))
            self.assertTrue(all(row["calls"] == 0 for row in rows.values()))
