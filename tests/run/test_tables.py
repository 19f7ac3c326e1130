"""``prof table``: texts at 80 and 160 columns; CSV and JSON beside a computation of their own."""

import csv
import io
import json
import math
import os
import re
import struct

from case import PROF, TerminalCase
from known_capture import Recorded, device_events, events

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")


def expected():
    """The totals of known_capture.events(), in ns."""
    rows = {}
    inside = {"step": ("load", "convolution", "a name"), "convolution": ("inner",)}
    lengths = {}
    for event in events():
        lengths.setdefault((event["name"], event["cat"]), []).append(event["dur"] * 1000)
    totals = {name: sum(found) for (name, _), found in lengths.items()}
    whole = totals["step"]
    for (name, category), found in lengths.items():
        children = sum(
            total for other, total in totals.items() if other.startswith(inside.get(name, ("?",)))
        )
        ordered = sorted(found)
        rows[name] = {
            "name": name,
            "category": category,
            "self_percent": (sum(found) - children) / whole * 100,
            "self_ns": sum(found) - children,
            "total_percent": sum(found) / whole * 100,
            "total_ns": sum(found),
            "mean_ns": sum(found) / len(found),
            "median_ns": ordered[math.ceil(len(ordered) * 0.5) - 1],
            "p99_ns": ordered[math.ceil(len(ordered) * 0.99) - 1],
            "max_ns": ordered[-1],
            "calls": len(found),
        }
    return rows


class Tables(Recorded):
    def setUp(self):
        super().setUp()
        self.record()

    def table(self, *words, **options):
        return self.prof("table", "trace.prof", *words, **options).stdout

    def rows(self, *words):
        return list(csv.DictReader(io.StringIO(self.table("--csv", *words), newline="")))


class Texts(Tables):
    def test_at_80_and_160_columns(self):
        for width in ("80", "160"):
            with open(os.path.join(GOLDEN, f"{width}.table"), encoding="utf-8") as file:
                self.assertEqual(self.table("--width", width), file.read())

    def test_a_difference_by_two_groups_at_80_and_160_columns(self):
        paths = [self.record(f"{times}.prof", slower=times) for times in (1, 2)]
        for width in ("80", "160"):
            words = ("diff", "--by", "name,category", "--width", width, *paths)
            with open(os.path.join(GOLDEN, f"{width}.diff"), encoding="utf-8") as file:
                self.assertEqual(self.prof(*words).stdout, file.read())

    def test_columns_stand_in_the_order_that_is_asked_for(self):
        lines = self.table("--columns", "calls,p99,name").splitlines()
        self.assertEqual(lines[1].split(), ["Calls", "p99", "Name"])
        self.assertEqual(lines[3].split(), ["20", "900.000us", "step"])

    def test_columns_that_are_asked_for_stay_however_narrow_it_is(self):
        every = "name,self,total,mean,median,p99,max,calls,open"
        lines = self.table("--columns", every, "--width", "40").splitlines()
        self.assertEqual(len(lines[1].split()), 9)
        self.assertNotIn("No room", "".join(lines))

    def test_names_are_whole_where_no_width_is_asked_for(self):
        names = ["std::vector<" + "std::pair<int, float>, " * 4 + end for end in ("a>", "b>")]
        names += [f"{name}{'n' * 600}\u7573{name}" for name in names]
        found = [
            {"ph": "X", "name": name, "cat": "c", "pid": 1, "tid": 1, "ts": 10 * at, "dur": 5}
            for at, name in enumerate(names)
        ]
        path = self.write("long.json", json.dumps({"traceEvents": found}))
        text = self.prof("table", path).stdout
        tree = self.prof("tree", path).stdout
        for name in names:
            self.assertIn(name + "  ", text)
            self.assertIn(f" {name}\n", tree)
        text = self.prof("table", "--width", "100", path).stdout
        self.assertIn("a>  ", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 100)

    def test_threads_and_processes_have_whole_names_where_no_width_is_asked_for(self):
        long = "a thread of which the name has 50 columns and more"
        found = [
            {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": long}},
            {"ph": "X", "name": "scope", "cat": "c", "pid": 1, "tid": 1, "ts": 0, "dur": 5},
        ]
        path = self.write("long.json", json.dumps({"traceEvents": found}))
        self.assertIn(f"{long} (1)  ", self.prof("table", "--by", "thread", path).stdout)
        self.assertIn("...", self.prof("table", "--by", "thread", "--width", "60", path).stdout)

    def test_a_width_of_0_is_any_width(self):
        text = self.table()
        self.assertEqual(self.table("--width", "0"), text)
        self.assertGreater(max(map(len, text.splitlines())), 150)
        pair = ("trace.prof", "trace.prof")
        for command in (("tree", "trace.prof"), ("events", "trace.prof"), ("diff", *pair)):
            text = self.prof(*command).stdout
            self.assertEqual(self.prof(*command, "--width", "0").stdout, text)
            self.assertNotEqual(self.prof(*command, "--width", "70").stdout, text)

    def test_columns_of_zeros_go_first_where_it_is_narrow(self):
        """A row of a step, of which the memory on the device is that of the scopes inside."""
        found = [event for event in device_events() if event.get("ts") != 250]
        path = self.write("device.json", json.dumps({"traceEvents": found}))
        width = 300
        while True:
            lines = self.prof("table", "--rows", "1", "--width", str(width), path).stdout
            titles = re.split(" {2,}", lines.splitlines()[1])
            if "Self Device Mem" not in titles or width == 40:
                break
            width -= 1
        for title in ("p99", "Median", "Mean", "Device Mem", "Self CPU Mem"):
            self.assertIn(title, titles)
        self.assertNotIn("No room", lines)  # a column of zeros is not named

    def test_times_of_the_host_go_first_where_only_devices_have_times(self):
        found = [event for event in device_events() if event["name"] == "kernel"]
        path = self.write("kernels.json", json.dumps({"traceEvents": found}))
        for width, mean in ((300, True), (80, False)):
            lines = self.prof("table", "--width", str(width), path).stdout.splitlines()
            titles = re.split(" {2,}", lines[1])
            self.assertLessEqual({"Total", "Self Device", "Device Mean", "Calls"}, set(titles))
            self.assertEqual("Mean" in titles, mean)

    def test_wrong_columns_are_refused(self):
        for words, said in (
            (("--columns", "name,colour"), "--columns takes one of name, category"),
            (("--columns", "calls,calls"), "has twice calls"),
            (("--columns", "thread"), "thread is of rows --by thread"),
            (("--columns", ""), "--columns takes one of name"),
            (("--columns", "nmae"), "--columns takes no nmae; did you mean name?"),
            (("--sort", "totl"), "--sort takes no totl; did you mean total?"),
            (("--wdith", "60"), "not an option: --wdith; did you mean --width?"),
            (("--width", "39"), "--width takes a number from 40"),
            (("--rows", "0"), "--rows takes all, or a number from 1 to 1000000000, not 0"),
            (("--json", "--csv"), "not both"),
        ):
            done = self.prof("table", "trace.prof", *words, status=2)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_rows_of_memory_are_read_as_those_of_a_table(self):
        done = self.prof("memory", "trace.prof", "--rows", "0", status=2)
        self.assertIn("--rows takes all, or a number from 1 to 1000000000, not 0", done.stderr)

    def test_the_help_has_all_words_of_an_option(self):
        text = " ".join(self.prof("table", "--help").stdout.split())
        said = {
            option: self.prof("table", option, "", "trace.prof", status=2).stderr
            for option in ("--sort", "--columns")
        }
        words = {
            option: re.search("takes one of (.*), not", text)[1].split(", ")
            for option, text in said.items()
        }
        self.assertIn(", ".join(words["--sort"]) + " (default", text)
        columns = re.search(r"in this order\. (.*?) --json", text)[1]
        found = re.findall(r"[a-z0-9-]+(?=[,.]|$)", columns)
        self.assertEqual(sorted(found), sorted(words["--columns"]))

    def test_nothing_of_the_category_is_status_3(self):
        self.assertIn("0 groups", self.table("--category", "none of these", status=3))
        self.assertEqual(json.loads(self.table("--json", "-c", "none", status=3))["rows"], [])
        self.assertIn("inner", self.table("--category", "runtime"))

    def test_captures_without_scopes_name_the_command_that_shows_what_they_have(self):
        call = {"pid": 1, "tid": 1}
        value = {**call, "ph": "C", "name": "load", "ts": 40, "args": {"value": 1.5}}
        memory = [event for event in device_events() if event["name"] == "[memory]"]
        kernels = [event for event in device_events() if event["name"] == "kernel"]
        none = "prof table: the capture has no scopes; "
        for found, groups, said in (
            ([], 0, none + "prof info shows how it was recorded, and what was lost\n"),
            ([value], 0, none + "prof view shows the counters, instants and steps\n"),
            (
                [*memory, value],
                0,
                none + "prof memory shows the memory, and prof view all that was recorded\n",
            ),
            (
                kernels,
                1,
                "prof table: the capture has no scopes of the host; the rows are work of devices, "
                "which prof events lists\n",
            ),
            (device_events(), 4, ""),
        ):
            trace = self.write("some.json", json.dumps({"traceEvents": found}))
            self.prof("import", trace, "-o", "some.prof")
            for words in ((), ("--by", "rank,name")):
                done = self.prof("table", *words, "some.prof")
                self.assertEqual(done.stderr, said)
                self.assertRegex(done.stdout, rf"calls?, {groups} group")
            done = self.prof("table", "--json", "some.prof")
            self.assertEqual((json.loads(done.stdout)["groups"], done.stderr), (groups, said))
            for command in ("tree", "events"):
                other = said.replace("table", command) if groups == 0 else ""
                self.assertEqual(self.prof(command, "some.prof").stderr, other)
            os.remove(os.path.join(self.folder, "some.prof"))
        done = self.prof("table", *[self.write(f"{n}.json", "[]") for n in range(2)])
        self.assertIn("prof table: the captures have no scopes; ", done.stderr)

    def memory_of(self, pid):
        return [{**event, "pid": pid} for event in device_events() if event["name"] == "[memory]"]

    def test_a_filter_that_takes_what_has_no_scopes_says_so(self):
        scope = {"ph": "X", "pid": 1, "name": "one", "cat": "c", "ts": 0, "dur": 5}
        for pid, found in ((1, [{**scope, "tid": 1}]), (2, self.memory_of(2))):
            trace = self.write(f"{pid}.json", json.dumps({"traceEvents": found}))
            self.prof("import", trace, "-o", f"{pid}.prof")
        self.prof("merge", "1.prof", "2.prof", "-o", "all.prof")
        shows = "; prof memory shows the memory, and prof view all that was recorded\n"
        none = "no scope passed the filter\n"
        for words, said in (
            (("--process", "2", "all.prof"), "no process that the filter takes has scopes" + shows),
            (("--thread", "1", "--process", "2", "all.prof"), "no thread that the filter takes"),
            (("--name", "one", "2.prof"), "the capture has no scopes" + shows),
            (("--process", "1", "--name", "two", "all.prof"), none),
            (("--process", "3", "all.prof"), none),
            (("--process", "3", "2.prof"), none),
        ):
            for command in ("table", "tree", "events"):
                done = self.prof(command, *words, status=3)
                self.assertIn(f"prof {command}: {said}", done.stderr)
        self.assertEqual(self.prof("table", "--process", "1", "all.prof").stderr, "")

    def test_diff_and_flame_of_memory_alone_name_what_shows_it(self):
        trace = self.write("memory.json", json.dumps({"traceEvents": self.memory_of(1)}))
        self.prof("import", trace, "-o", "memory.prof")
        done = self.prof("diff", "memory.prof", "memory.prof")
        self.assertIn("prof diff: the captures have no scopes; prof memory shows", done.stderr)
        done = self.prof("flame", "memory.prof", "-o", "x.svg", status=3)
        self.assertIn("no host scopes with time or bytes; try --of memory\n", done.stderr)
        self.prof("flame", "--of", "memory", "memory.prof", "-o", "x.svg")
        done = self.prof("flame", "--of", "memory", "trace.prof", "-o", "y.svg", status=3)
        self.assertIn("no allocations with time or bytes; try --of host\n", done.stderr)
        self.assertEqual(self.prof("diff", "trace.prof", "trace.prof").stderr, "")


class Data(Tables):
    def test_csv_is_what_an_own_computation_gives(self):
        rows = self.rows()
        found = {row["name"]: row for row in rows}
        self.assertEqual(set(found), set(expected()))
        for name, row in expected().items():
            for key, value in row.items():
                if isinstance(value, str):
                    self.assertEqual(found[name][key], value)
                else:
                    self.assertAlmostEqual(float(found[name][key]), value, delta=0.5)
        text = self.table("--csv", text=False)
        self.assertEqual(text.count(b"\r\n"), len(rows) + 1)
        self.assertEqual(text.count(b"\n"), len(rows) + 1)

    def test_json_has_the_same_values_as_csv(self):
        data = json.loads(self.table("--json"))
        self.assertEqual((data["captures"], data["recorded"], data["lost"]), (1, 100, 0))
        self.assertEqual((data["groups"], data["calls"]), (5, 100))
        self.assertEqual(data["self_total_ns"], sum(r["self_ns"] for r in expected().values()))
        for of_csv, of_json in zip(self.rows(), data["rows"], strict=True):
            self.assertEqual(list(of_csv), list(of_json))
            for key, value in of_json.items():
                if isinstance(value, str):
                    self.assertEqual(of_csv[key], value)
                elif value is None:
                    self.assertEqual(of_csv[key], "")
                else:
                    self.assertEqual(float(of_csv[key]), value)

    def test_names_come_back_whole(self):
        names = ['with "quotes", commas', "of two\nlines", "\u5f35\u91cf", "  blanks  ", "=1+1"]
        found = [
            {"ph": "X", "name": name, "cat": "c", "pid": 1, "tid": 1, "ts": 10 * at, "dur": 5}
            for at, name in enumerate(names)
        ]
        path = self.write("names.json", json.dumps({"traceEvents": found}))
        text = self.prof("table", "--csv", path, text=False).stdout.decode()
        rows = csv.DictReader(io.StringIO(text, newline=""))
        self.assertEqual(sorted(row["name"] for row in rows), sorted(names))
        rows = json.loads(self.prof("table", "--json", path).stdout)["rows"]
        self.assertEqual(sorted(row["name"] for row in rows), sorted(names))

    def test_each_order_is_by_its_column(self):
        keys = {
            word: word.replace("-", "_") + "_ns"
            for word in ("self", "total", "mean", "median", "p99", "max", "self-net", "total-net")
        }
        for word, key in {**keys, "calls": "calls", "open": "open", "skipped": "skipped"}.items():
            values = [float(row[key]) for row in self.rows("--sort", word)]
            self.assertEqual(values, sorted(values, reverse=True), word)
            self.assertEqual(len(values), 5)
        names = [row["name"] for row in self.rows("--sort", "name")]
        self.assertEqual(names, sorted(names))

    def test_sort_by_name_uses_the_group_of_a_row(self):
        """Numbers are compared as numbers. The longest is last, so that no order by time fits."""
        values = (10, 9, "b", -1, 2.5, "a", 100)
        found = []
        for place, value in enumerate(values):
            for thread in (110, 9):
                found.append(
                    {"ph": "X", "name": "n", "cat": f"c{place % 2}", "pid": place, "tid": thread}
                    | {"ts": place * 1000, "dur": 10 + place + thread, "args": {"key": value}}
                )
        path = self.write("order.json", json.dumps({"traceEvents": found}))
        ordered = ["-1", "2.5", "9", "10", "100", "a", "b"]
        for by, columns, expected in (
            ("arg:key", ("arg",), [(value,) for value in ordered]),
            ("category", ("category",), [("c0",), ("c1",)]),
            ("process", ("process",), [(f"process {n}",) for n in range(len(values))]),
            (
                "arg:key,category",
                ("category", "arg"),
                sorted(
                    ((f"c{place % 2}", str(value)) for place, value in enumerate(values)),
                    key=lambda pair: (pair[0], ordered.index(pair[1])),
                ),
            ),
        ):
            text = self.prof("table", "--json", "--by", by, "--sort", "name", path).stdout
            rows = [tuple(row[x] for x in columns) for row in json.loads(text)["rows"]]
            self.assertEqual(rows, expected, by)
        text = self.prof("table", "--json", "--by", "thread", "--sort", "name", path).stdout
        threads = [row["thread"] for row in json.loads(text)["rows"]]
        key = [(x.rpartition(" (")[0], int(x.rpartition("(")[2][:-1])) for x in threads]
        self.assertEqual(key, sorted(key))
        self.assertEqual(len(key), 2 * len(values))

    def test_median_and_p99_order_rows_that_other_orders_do_not(self):
        """Of ten calls of "rare" one is long; those of "even" are alike."""
        lengths = {"rare": [1] * 9 + [1000], "even": [50] * 10}
        found = [
            {"ph": "X", "name": name, "cat": "c", "pid": 1, "tid": 1, "ts": 2000 * at, "dur": one}
            | {"tid": len(name + str(name))}
            for name, each in lengths.items()
            for at, one in enumerate(each)
        ]
        path = self.write("two.json", json.dumps({"traceEvents": found}))
        for word, first in (("total", "rare"), ("p99", "rare"), ("median", "even")):
            text = self.prof("table", "--csv", "--sort", word, path).stdout
            self.assertTrue(text.splitlines()[1].startswith(f'"{first}"'), word)


class Devices(Recorded):
    def rows(self, *words):
        text = self.prof("table", "--json", *words, "device.prof").stdout
        return [tuple(row.values()) for row in json.loads(text)["rows"]]

    def setUp(self):
        super().setUp()
        trace = self.write("device.json", json.dumps({"traceEvents": device_events()}))
        self.prof("import", trace, "-o", "device.prof")

    def test_an_operator_has_the_time_of_its_kernels(self):
        columns = "name,calls,self-device,self-device-percent,device-total,device-mean"
        all_ns = 50000 + 31001 + 20000
        self.assertEqual(
            self.rows("--columns", columns),
            [
                ("step", 1, 0, 0.0, all_ns, all_ns),
                ("conv", 2, 81001, 81001 / all_ns * 100, 81001, 40501),  # 40500.5
                ("norm", 1, 20000, 20000 / all_ns * 100, 20000, 20000),
                ("launch", 3, 0, 0.0, 0, 0),
            ],
        )
        text = self.prof("table", "device.prof").stdout
        self.assertIn("\nSelf device time total: 101.001us\n15 recorded; no loss\n", text)

    def test_a_row_of_a_kernel_has_its_runs_as_calls(self):
        rows = self.rows("--by", "kernel,device", "--columns", "name,device,calls,device-mean")
        self.assertIn(("kernel", "cuda:0", 3, 33667), rows)
        self.assertIn(("conv", "cpu:0", 2, 0), rows)

    def test_memory_is_of_the_host_or_the_device_and_with_what_is_inside_or_without(self):
        columns = "name,cpu-mem,self-cpu-mem,device-mem,self-device-mem"
        self.assertEqual(
            self.rows("--columns", columns),
            [
                ("step", 4196, 100, 1280, 1024),
                ("conv", 4096, 4096, 512, 512),
                ("norm", 0, 0, -256, -256),
                ("launch", 0, 0, 0, 0),
            ],
        )


class Several(Recorded):
    """The lines below the rows of several captures."""

    def lines(self, *captures):
        text = self.prof("table", *captures).stdout
        return text[text.rindex("Self time total") :].splitlines()[1:]

    def set_rank(self, path, rank):
        with open(path, "r+b") as file:
            file.seek(136)  # rank and world size: docs/reference/file-format.md
            file.write(struct.pack("<ii", rank, 4))

    def test_processes_and_their_records_are_added_up(self):
        paths = [self.record("a.prof"), self.record("b.prof", process=8)]
        self.assertEqual(self.lines(*paths), ["2 processes: 200 recorded; no loss"])
        for path, rank in zip(paths, (3, 1)):
            self.set_rank(path, rank)
        text = self.prof("table", "--csv", "--by", "process", "--columns", "process", *paths).stdout
        self.assertEqual(
            sorted(text.splitlines()[1:]), ['"rank 1, process 8"', '"rank 3, process 7"']
        )
        self.assertEqual(self.lines(*paths), ["2 processes, ranks 1 to 3: 200 recorded; no loss"])
        self.set_rank(paths[0], 1)
        self.assertEqual(self.lines(*paths), ["2 processes, rank 1: 200 recorded; no loss"])

    def test_a_capture_that_is_not_whole_has_a_line(self):
        paths = [self.record("a.prof"), self.record("b.prof", process=8)]
        os.truncate(paths[1], os.path.getsize(paths[1]) // 3)
        lines = self.lines(*paths)
        self.assertEqual(lines[0], "2 processes: 100 recorded; 1 of them not whole:")
        self.assertRegex(lines[1], r"^.*: 0 recorded; no loss counted; the capture is damaged")
        self.assertEqual(len(lines), 2)


class OnTerminal(TerminalCase, Tables):
    def shown(self, *environment):
        words = [*environment, PROF, "table", os.path.join(self.folder, "trace.prof")]
        _, master = self.start_program("env", "TERM=xterm", *words)
        return self.rest(master).decode().replace("\r", "")

    def test_the_titles_and_the_order_are_bold(self):
        text = self.shown()
        bold = re.findall("\x1b\\[1m(.*?)\x1b\\[0m", text, re.DOTALL)
        self.assertIn("Name", bold[0])
        self.assertEqual(bold[1].strip(), "18.000ms")
        self.assertEqual(len(bold), 1 + len(expected()))

    def test_it_is_as_wide_as_columns_says(self):
        lines = self.shown("NO_COLOR=1", "COLUMNS=60").splitlines()
        self.assertIn("No room in 60 columns for: Self %", "\n".join(lines))
        self.assertLessEqual(max(map(len, lines)), 60)
        for wrong in ("COLUMNS=0", "COLUMNS=many", "COLUMNS=-5", "COLUMNS="):
            self.assertNotIn("No room in 60", self.shown("NO_COLOR=1", wrong))

    def test_info_is_as_wide_as_the_terminal(self):
        path = os.path.join(self.folder, "trace.prof")
        whole = self.prof("info", path).stdout
        self.assertGreater(max(map(len, whole.splitlines())), 80)
        for columns in (50, 80):
            _, master = self.start_program("env", f"COLUMNS={columns}", PROF, "info", path)
            text = self.rest(master).decode().replace("\r", "")
            self.assertEqual(text.split(), whole.split())
            self.assertLessEqual(max(map(len, text.splitlines())), columns)

    def test_no_form_gives_the_terminal_a_control_character(self):
        event = {"ph": "X", "pid": 1, "tid": 1, "cat": "c", "ts": 0, "dur": 5}
        event["name"] = "esc\x1b[31m c1\x9b31m \u5f35\u91cf"
        path = self.write("hostile.json", json.dumps({"traceEvents": [event]}))
        for command in (["table"], ["events"], ["diff", path]):
            for form in ("--csv", "--json"):
                words = ["sh", "-c", 'exec "$@" 2>errors', "sh", PROF, *command, form, path]
                _, master = self.start_program(*words)
                text = self.rest(master).decode()
                self.assertIn("\u5f35\u91cf", text)
                self.assertEqual(text.count("\x1b") + text.count("\x9b"), 0, text)
        self.assertIn(event["name"].encode(), self.prof("table", "--csv", path, text=False).stdout)

    def test_no_color_has_none(self):
        for environment in ("NO_COLOR=1", "TERM=dumb"):
            self.assertNotIn("\x1b", self.shown(environment))
