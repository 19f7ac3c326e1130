"""prof events, against a computation in Python of the JSON export."""

import csv
import io
import json
import re

from known_capture import device_events, events
from nested_capture import FILTERS, Nested, ns

NUMBERS = ("start_ns", "duration_ns", "self_ns", "depth", "tid")


def plain(row):
    """A line of --json, as expected_of() has it."""
    return (row["name"], row["category"], *(row[key] for key in NUMBERS), row["args"])


def expected_of(scope):
    numbers = (scope.start, scope.duration, scope.self, scope.depth(), scope.thread)
    return (scope.name, scope.category, *numbers, scope.args)


class Events(Nested):
    def lines(self, *words):
        text = self.prof("events", "--json", *words, self.capture).stdout
        return [json.loads(line) for line in text.splitlines()]

    def test_scopes_that_pass_come_in_the_order_of_time(self):
        for words, takes in FILTERS:
            with self.subTest(words=words):
                found = [plain(row) for row in self.lines(*words)]
                passed = sorted(
                    filter(takes, self.scopes),
                    key=lambda scope: (scope.start, scope.thread, scope.depth()),
                )
                self.assertTrue(passed)
                self.assertEqual(found, [expected_of(scope) for scope in passed])

    def test_the_longest_come_first(self):
        for order, key in (("duration", "duration_ns"), ("self", "self_ns")):
            for words, takes in FILTERS:
                with self.subTest(order=order, words=words):
                    rows = self.lines("--sort", order, "--top", "7", *words)
                    passed = [expected_of(scope) for scope in self.scopes if takes(scope)]
                    at = 2 + NUMBERS.index(key)
                    longest = sorted((scope[at] for scope in passed), reverse=True)[:7]
                    self.assertEqual([row[key] for row in rows], longest)
                    for row in rows:
                        self.assertIn(plain(row), passed)

    def test_all_of_an_order_are_all(self):
        self.assertEqual(len(self.lines("--sort", "self", "--top", "all")), len(self.scopes))
        self.assertEqual(len(self.lines("--sort", "self")), 10)
        self.assertEqual(self.lines("--top", "3"), self.lines()[:3])

    def test_csv_has_the_values_of_json(self):
        text = self.prof("events", "--csv", self.capture, text=False).stdout.decode()
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        lines = self.lines()
        self.assertEqual(len(rows), len(lines))
        for row, line in zip(rows, lines):
            line["args"] = json.dumps(line["args"], separators=(",", ":")) if line["args"] else ""
            self.assertEqual(row, {key: str(value) for key, value in line.items()})
        self.assertTrue(text.endswith("\r\n"))

    def test_the_text_says_how_many(self):
        text = self.prof("events", "--sort", "duration", "--top", "3", self.capture).stdout
        self.assertTrue(text.endswith(f"\n3 of {len(self.scopes)} scopes\n"))
        self.assertEqual(text.count("\n"), 5)
        text = self.prof("events", "--top", "3", self.capture).stdout
        self.assertTrue(text.endswith("\n3 scopes; there are more\n"))
        text = self.prof("events", self.capture).stdout
        self.assertTrue(text.endswith(f"\n{len(self.scopes)} scopes\n"))

    def test_a_line_of_text_has_the_values_of_json(self):
        text = self.prof("events", self.capture).stdout.splitlines()
        self.assertEqual(text[0].split(), ["Start", "Duration", "Self", "Depth", "Thread", "Name"])
        rows = self.lines()
        self.assertEqual(len(text), len(rows) + 2)
        for line, row in zip(text[1:-1], rows):
            start, duration, own, depth, rest = line.split(maxsplit=4)
            self.assertEqual(start, f"{row['start_ns'] // 10**9}.{row['start_ns'] % 10**9:09}s")
            self.assertEqual((ns(duration), ns(own)), (row["duration_ns"], row["self_ns"]))
            self.assertEqual(int(depth), row["depth"])
            args = " ".join(f"{key}={value}" for key, value in row["args"].items())
            thread = f"{row['thread']} ({row['tid']})"
            self.assertEqual(rest, f"{thread}  {row['name']}" + (f"  {args}" if args else ""))

    def test_one_scope_is_no_plural(self):
        alone = {"ph": "X", "name": "alone", "pid": 7, "tid": 1, "ts": 0, "dur": 1}
        for count, words, said in (
            (1, (), "1 scope"),
            (2, (), "2 scopes"),
            (2, ("--top", "1"), "1 scope; there are more"),
            (2, ("--top", "1", "--sort", "self"), "1 of 2 scopes"),
        ):
            trace = self.write("a.json", json.dumps({"traceEvents": [alone] * count}))
            self.prof("import", trace, "-o", "a.prof")
            text = self.prof("events", *words, "a.prof").stdout
            self.assertEqual(text.splitlines()[-1], said)

    def test_nothing_that_passes_is_status_3(self):
        for form in ((), ("--json",), ("--csv",)):
            done = self.prof("events", "--name", "none", *form, self.capture, status=3)
            self.assertIn("no scope passed the filter", done.stderr)

    def test_two_forms_are_refused(self):
        self.prof("events", "--json", "--csv", self.capture, status=2)
        self.prof("events", "--top", "0", self.capture, status=2)
        self.prof("events", "--sort", "size", self.capture, status=2)
        self.prof("events", status=2)


class Texts(Nested):
    """Lines fit, and no name or argument reaches the terminal as a command."""

    HOSTILE = "evil \x1b[2J\u202e\n\x07" + "\u7573" * 60

    def hostile(self):
        event = {"ph": "X", "name": self.HOSTILE, "cat": "operator", "pid": 7, "tid": 11}
        event |= {"ts": 5, "dur": 3, "args": {self.HOSTILE: self.HOSTILE}}
        trace = self.write("hostile.json", json.dumps({"traceEvents": [event]}))
        self.prof("import", trace, "-o", "hostile.prof")
        return "hostile.prof"

    def test_lines_are_as_wide_as_asked_for(self):
        for width in ("80", "100", "160"):
            text = self.prof("events", "--width", width, self.capture).stdout
            self.assertLessEqual(max(map(len, text.splitlines())), int(width))
            self.assertIn("layer=", text)
        for width in ("80", "160"):
            text = self.prof("events", "--width", width, self.hostile()).stdout
            columns = sum(2 if letter == "\u7573" else 1 for letter in text.splitlines()[1])
            self.assertLessEqual(columns, int(width))
            self.assertIn("...", text)

    def test_without_a_width_nothing_is_cut(self):
        name, value = "n" * 1364 + "\u7573" * 100, "v" * 1365 + "\u00e9" * 1000
        thread = "a thread of which the name has 50 columns and more"
        call = {"pid": 7, "tid": 11}
        trace = [
            {**call, "ph": "M", "name": "thread_name", "args": {"name": thread}},
            {**call, "ph": "X", "name": name, "ts": 5, "dur": 3, "args": {"long": value}},
        ]
        self.prof("import", self.write("long.json", json.dumps(trace)), "-o", "long.prof")
        for words in ((), ("--width", "0")):
            text = self.prof("events", *words, "long.prof").stdout
            self.assertIn(f"  {thread} (11)  {name}  long={value}\n", text)
        text = self.prof("events", "--width", "120", "long.prof").stdout
        self.assertIn("a thread of... more (11)  nnn", text)
        self.assertNotIn("vvv", text)

    def test_work_of_devices_without_a_thread_is_listed(self):
        kernels = [event for event in device_events() if event["name"] == "kernel"]
        self.prof("import", self.write("k.json", json.dumps(kernels)), "-o", "k.prof")
        for words in ((), ("--name", "^kernel$"), ("--device", "cuda:0"), ("--sort", "self")):
            text = self.prof("events", *words, "k.prof").stdout
            self.assertEqual(text.count("  kernel  "), len(kernels), words)
            self.assertTrue(text.endswith("\n3 scopes\n"))
        self.prof("events", "--device", "cpu", "k.prof", status=3)

    def test_names_of_processes_and_threads_are_those_of_a_table(self):
        """Of several captures each scope has its process."""
        for process in (7, 8):
            name = {"ph": "M", "name": "process_name", "pid": process, "args": {"name": "app"}}
            trace = self.write("named.json", json.dumps([name, *events(process=process)]))
            self.prof("import", trace, "-o", f"{process}.prof")
        trace = self.write("device.json", json.dumps({"traceEvents": device_events()}))
        self.prof("import", trace, "-o", "device.prof")
        self.prof("merge", "-o", "all.prof", "7.prof", "8.prof", "device.prof")
        found = set()
        for line in self.prof("events", "all.prof").stdout.splitlines()[1:-1]:
            label, _, _ = line[self.thread_at(line) :].partition(")  ")
            found.add(label + ")")
        text = self.prof("table", "--by", "process,thread", "--csv", "all.prof").stdout
        named = {f"{row['process']}, {row['thread']}" for row in csv.DictReader(text.splitlines())}
        self.assertGreaterEqual(len(named), 3)
        self.assertIn("app (7),  (7)", named)
        self.assertLessEqual(named, found)
        parts = [", ".join(label.split(", ")[:-1]) for label in found - named]
        processes = {label.rpartition(", ")[0] for label in named}
        self.assertLessEqual(set(parts), processes, "streams have no row")

    def thread_at(self, line):
        """Where the thread's name begins: behind four numbers."""
        return re.match(r" *\S+ +\S+ +\S+ +\d+  ", line).end()

    def test_texts_have_no_backslashes_of_json(self):
        args = {"Concrete Inputs": '["","[2, 2]","1."]', "path": "C:\\new", "said": '"yes"'}
        event = {"ph": "X", "name": "op", "cat": "cpu_op", "pid": 7, "tid": 11, "ts": 5, "dur": 3}
        trace = self.write("quoted.json", json.dumps({"traceEvents": [event | {"args": args}]}))
        self.prof("import", trace, "-o", "quoted.prof")
        text = self.prof("events", "quoted.prof").stdout
        shown = " ".join(f"{key}={value}" for key, value in args.items())
        self.assertIn(f"  op  {shown}\n", text)

    def test_controls_are_spelt_out(self):
        text = self.prof("events", self.hostile()).stdout
        self.assertEqual(text.count("\n"), 3)
        for control in "\x1b\x07\u202e":
            self.assertNotIn(control, text)
        line = json.loads(self.prof("events", "--json", "hostile.prof").stdout)
        self.assertEqual(line["name"], self.HOSTILE)
        self.assertEqual(line["args"], {self.HOSTILE: self.HOSTILE})
