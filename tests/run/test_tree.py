"""prof tree, and filters of prof flame and prof diff, against a computation in Python of the JSON
export."""

import json
import os

from known_capture import Recorded, device_events
from nested_capture import FILTERS, NAMES, Nested

HIDDEN = "deeper or shorter ones not shown: --depth, --min"


def path_of(scope):
    return tuple(other.name for other in reversed(list(scope.around()))) + (scope.name,)


def expected_paths(scopes, takes):
    """calls, total and self by path and category."""
    paths = {}
    for scope in filter(takes, scopes):
        key = (path_of(scope), scope.category)
        calls, total, own = paths.get(key, (0, 0, 0))
        paths[key] = (calls + 1, total + scope.duration, own + scope.self)
    return paths


def expected_folded(scopes, takes):
    """The self time by path."""
    folded = {}
    for scope in filter(takes, scopes):
        folded[path_of(scope)] = folded.get(path_of(scope), 0) + scope.self
    return {path: time for path, time in folded.items() if time}


class Tree(Nested):
    def lines(self, *words):
        text = self.prof("tree", "--json", *words, self.capture).stdout
        return [json.loads(line) for line in text.splitlines()]

    def test_paths_have_the_scopes_that_pass(self):
        for words, takes in FILTERS:
            with self.subTest(words=words):
                found = {}
                share = () if words else ("--min", "0%")
                for line in self.lines(*share, *words):
                    if line["calls"]:
                        key = (tuple(line["path"]), line["category"])
                        sums = found.get(key, (0, 0, 0))
                        values = (line["calls"], line["total_ns"], line["self_ns"])
                        found[key] = tuple(map(sum, zip(sums, values)))
                expected = expected_paths(self.scopes, takes)
                self.assertTrue(found)
                self.assertEqual(found, expected)

    def test_a_tree_has_each_parent_before_its_children_and_the_longest_first(self):
        before = {(): None}
        for line in self.lines("--min", "0%"):
            path = tuple(line["path"])
            self.assertIn(path[:-1], before)
            self.assertEqual(line["depth"], len(path) - 1)
            if before.get(("last", path[:-1])) is not None and line["depth"] == 0:
                self.assertLessEqual(line["total_ns"], before[("last", path[:-1])])
            before[path] = line
            before[("last", path[:-1])] = line["total_ns"]

    def test_paths_below_one_path_are_in_the_order_that_is_asked_for(self):
        for order, key in (
            ("total", lambda line: -line["total_ns"]),
            ("self", lambda line: -line["self_ns"]),
            ("calls", lambda line: -line["calls"]),
            ("name", lambda line: line["path"][-1].encode()),
        ):
            below = [[]]
            open_lists = [below[0]]  # by depth
            for line in self.lines("--min", "0%", "--sort", order):
                del open_lists[line["depth"] + 1 :]
                if len(open_lists) == line["depth"]:
                    below.append([])
                    open_lists.append(below[-1])
                open_lists[-1].append(key(line))
            self.assertGreater(max(map(len, below[1:])), 2)
            for keys in below:
                self.assertEqual(keys, sorted(keys), order)
        text = self.prof("tree", self.capture).stdout
        self.assertEqual(self.prof("tree", "--sort", "total", self.capture).stdout, text)
        self.assertNotEqual(self.prof("tree", "-s", "name", self.capture).stdout, text)
        self.prof("tree", "--sort", "size", self.capture, status=2)

    def test_shares_are_of_all_time_and_no_more(self):
        everything = sum(scope.self for scope in self.scopes)
        lines = self.lines("--min", "0%")
        self.assertEqual({line["all_ns"] for line in lines}, {everything})
        self.assertTrue(all(line["total_ns"] <= everything for line in lines))
        self.assertTrue(any(line["path"].count(NAMES[0]) > 1 for line in lines), "no recursion")
        tops = sum(line["total_ns"] for line in lines if line["depth"] == 0)
        self.assertEqual(tops, everything)
        for line in self.prof("tree", "--min", "0%", self.capture).stdout.splitlines()[1:-1]:
            self.assertLessEqual(float(line.split()[2].rstrip("%")), 100)

    def test_depth_and_share_leave_paths_out(self):
        lines = self.lines("--min", "0%")
        self.assertEqual(
            self.lines("--min", "0%", "--depth", "2"), [x for x in lines if x["depth"] < 2]
        )
        large = [line for line in lines if line["total_ns"] >= 0.05 * line["all_ns"]]
        self.assertTrue(0 < len(large) < len(lines))
        self.assertEqual(self.lines("--min", "5%"), large)
        text = self.prof("tree", "--min", "5%", self.capture).stdout
        hidden = len(lines) - len(large)
        self.assertTrue(text.endswith(f"\n{len(large)} paths, and {hidden} {HIDDEN}\n"), text)

    def test_lines_are_ascii_where_the_locale_is_not_utf_8(self):
        plain = {"LC_ALL": "C"}
        text = self.prof("tree", self.capture, env=plain).stdout
        self.assertIn("|- ", text)
        self.assertIn("`- ", text)
        self.assertTrue(text.isascii())
        drawn = self.prof("tree", self.capture, env={"LC_ALL": "C.UTF-8"}).stdout
        for ascii_line, line in (
            ("|- ", "\u251c\u2500 "),
            ("`- ", "\u2514\u2500 "),
            ("|  ", "\u2502  "),
        ):
            self.assertIn(line, drawn)
            drawn = drawn.replace(line, ascii_line)
        self.assertEqual(drawn, text)
        words = ("tree", "--ascii", self.capture)
        self.assertEqual(self.prof(*words, env={"LC_ALL": "C.UTF-8"}).stdout, text)

    def test_lines_are_as_wide_as_asked_for(self):
        for width in ("60", "80"):
            text = self.prof("tree", "--min", "0%", "--width", width, self.capture).stdout
            name = text.splitlines()[0].index("Name")
            deep = 3 * max(scope.depth() for scope in self.scopes) + 16
            most = max(int(width), name + deep)
            self.assertLessEqual(max(map(len, text.splitlines())), most)

    def test_a_deep_path_has_its_last_levels(self):
        events = [
            {"ph": "X", "name": f"level {depth}", "cat": "c", "pid": 7, "tid": 7}
            | {"ts": depth, "dur": 1000 - 2 * depth}
            for depth in range(100)
        ]
        trace = self.write("deep.json", json.dumps({"traceEvents": events}))
        self.prof("import", trace, "-o", "deep.prof")
        text = self.prof("tree", "--min", "0%", "deep.prof").stdout
        self.assertIn("[99] ", text)
        self.assertIn("level 99\n", text)
        self.assertLess(max(map(len, text.splitlines())), 160)

    def test_nothing_that_passes_is_status_3(self):
        done = self.prof("tree", "--name", "none", self.capture, status=3)
        text = self.prof("tree", "--name", "load", "--min", "99%", self.capture).stdout
        self.assertRegex(text, rf"^ *Calls .*Name\n0 paths, and \d+ {HIDDEN}\n$")
        self.assertIn("no scope passed the filter", done.stderr)
        self.prof("tree", "--min", "200%", self.capture, status=2)
        self.prof("tree", "--depth", "0", self.capture, status=2)


class Flame(Nested):
    def test_folded_stacks_have_the_scopes_that_pass(self):
        for words, takes in FILTERS:
            with self.subTest(words=words):
                text = self.prof("flame", "--folded", *words, self.capture).stdout
                found = {}
                for line in text.splitlines():
                    path, _, value = line.rpartition(" ")
                    key = tuple(path.split(";"))
                    found[key] = found.get(key, 0) + int(value)
                self.assertEqual(found, expected_folded(self.scopes, takes))

    def test_nothing_that_passes_is_status_3(self):
        self.prof("flame", "--folded", "--name", "none", self.capture, status=3)


class Kinds(Recorded):
    def test_a_flame_graph_is_of_the_host_a_device_or_memory(self):
        trace = self.write("device.json", json.dumps({"traceEvents": device_events()}))
        self.prof("import", trace, "-o", "device.prof")
        kernels = {"step;conv;kernel": 81001, "step;norm;kernel": 20000}
        allocated = {"step": 100 + 1024, "step;conv": 4096 + 512}
        scopes = {"step": 840000, "step;conv": 36000, "step;norm": 18000}
        launches = {"step;conv;launch": 4000, "step;norm;launch": 2000}
        for words, wanted in (
            ((), {**scopes, **launches}),
            (("--of", "host"), {**scopes, **launches}),
            (("--of", "device"), kernels),
            (("--of", "memory"), allocated),
        ):
            text = self.prof("flame", "--folded", *words, "device.prof").stdout
            found = (line.rpartition(" ") for line in text.splitlines())
            self.assertEqual({path: int(value) for path, _, value in found}, wanted, words)

    def test_what_is_not_there_is_status_3(self):
        capture = self.record()
        for kind, said in (("device", "work of a device"), ("memory", "allocations")):
            done = self.prof("flame", "--folded", "--of", kind, capture, status=3)
            self.assertEqual(done.stdout, "")
            self.assertIn(f"nothing to draw: no {said} with time or bytes", done.stderr)


class Diff(Nested):
    def test_rows_are_of_the_scopes_that_pass(self):
        other = os.path.join(self.folder, "other.prof")
        os.link(self.capture, other)
        for words, takes in FILTERS:
            with self.subTest(words=words):
                text = self.prof("diff", "--csv", *words, self.capture, other).stdout
                names = {scope.name for scope in filter(takes, self.scopes)}
                for name in NAMES:
                    self.assertEqual(
                        name in text,
                        name in names or name == "attention" and "attention.softmax" in names,
                        name,
                    )


class Shares(Recorded):
    def import_calls(self, *calls):
        scopes = [
            {"ph": "X", "name": name, "cat": "c", "pid": 7, "tid": 7, "ts": ts, "dur": dur}
            for name, ts, dur in calls
        ]
        return self.write("calls.json", json.dumps({"traceEvents": scopes}))

    def test_a_total_above_all_time_has_none(self):
        """Three calls on a thread that last 300 us in 120 us, and one of 40 us."""
        over = (("over", 0, 100), ("over", 10, 100), ("over", 20, 100))
        trace = self.import_calls(*over, ("alone", 200, 40))
        lines = self.prof("tree", trace).stdout.splitlines()
        self.assertEqual(lines[0].split(), ["Calls", "Total", "Total", "%", "Self", "Name"])
        self.assertEqual(lines[1].split(), ["3", "300.000us", "120.000us", "over"])
        self.assertEqual(lines[2].split(), ["1", "40.000us", "25.00%", "40.000us", "alone"])
        text = self.prof("table", "--columns", "name,total-percent,total", trace).stdout
        rows = [line.split() for line in text.splitlines()[3:5]]
        self.assertEqual(rows, [["over", "300.000us"], ["alone", "25.00%", "40.000us"]])

    def test_paths_from_a_thousandth_on_are_shown(self):
        trace = self.import_calls(("all", 0, 1000), ("much", 1, 1), ("little", 3, 0.999))
        lines = self.prof("tree", trace).stdout.splitlines()
        self.assertEqual(lines[1].split(), ["1", "1.000ms", "100.00%", "998.001us", "all"])
        self.assertEqual(lines[2].split()[:4], ["1", "1.000us", "0.10%", "1.000us"])
        self.assertEqual(lines[3:], [f"2 paths, and 1 {HIDDEN}"])


class Deep(Recorded):
    """1002 levels of scopes and more, each of another name."""

    depth = 1005

    def setUp(self):
        super().setUp()
        scopes = [
            {"ph": "X", "name": f"n{index}", "cat": "operator", "pid": 7, "tid": 7}
            | {"ts": index, "dur": 2 * (self.depth - index)}
            for index in range(self.depth)
        ]
        trace = self.write("deep.json", json.dumps({"traceEvents": scopes}))
        self.prof("import", trace, "-o", "deep.prof")
        self.names = [f"n{index}" for index in range(1000)]

    def test_a_tree_has_one_path_for_all_deeper_ones(self):
        text = self.prof("tree", "--json", "--min", "0%", "deep.prof").stdout
        lines = [json.loads(line) for line in text.splitlines()]
        self.assertEqual(len(lines), 1001)
        self.assertEqual([line["path"][-1] for line in lines], [*self.names, "[deeper]"])
        last = lines[-1]
        self.assertEqual((last["depth"], last["calls"]), (1000, 5))
        self.assertEqual((last["total_ns"], last["self_ns"]), (10000, 10000))
        self.assertEqual(sum(line["self_ns"] for line in lines), 2000 * self.depth)

    def test_a_filter_counts_the_outermost_that_passes(self):
        words = ("--json", "--name", "^n100[24]$", "deep.prof")
        lines = [json.loads(line) for line in self.prof("tree", *words).stdout.splitlines()]
        last = lines[-1]
        self.assertEqual((last["path"][-1], last["calls"]), ("[deeper]", 2))
        self.assertEqual((last["total_ns"], last["self_ns"]), (6000, 4000))

    def test_deeper_paths_of_two_parents_have_totals_of_their_own(self):
        scopes = [
            {"ph": "X", "name": f"n{index}", "cat": "operator", "pid": 7, "tid": 7}
            | {"ts": index, "dur": 5000 - 2 * index}
            for index in range(1001)
        ]
        # It ends after n1000 and in n998. Both have a scope below.
        for name, begin, duration in (
            ("crossing", 1500, 2501.5),
            ("a", 1600, 100),
            ("b", 4000, 0.5),
        ):
            scopes.append(
                {"ph": "X", "name": name, "cat": "operator", "pid": 7, "tid": 7}
                | {"ts": begin, "dur": duration}
            )
        trace = self.write("crossing.json", json.dumps({"traceEvents": scopes}))
        self.prof("import", trace, "-o", "crossing.prof")
        text = self.prof("tree", "--json", "--min", "0%", "crossing.prof").stdout
        deeper = [
            row for row in map(json.loads, text.splitlines()) if row["path"][-1] == "[deeper]"
        ]
        self.assertEqual([row["calls"] for row in deeper], [1, 2])
        for row in deeper:
            self.assertGreaterEqual(row["total_ns"], row["self_ns"])

    def test_folded_stacks_are_those_of_an_export(self):
        folded = self.prof("flame", "--folded", "deep.prof").stdout.splitlines()
        self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in folded), 2000 * self.depth)
        longest = max(folded, key=len)
        self.assertEqual(longest, ";".join([*self.names, "[deeper]"]) + " 10000")

    def test_a_difference_by_path_has_it_and_one_by_name_has_all(self):
        words = ("--json", "deep.prof", "deep.prof")
        by_path = json.loads(self.prof("diff", "--tree", *words).stdout)["rows"]
        self.assertEqual(len(by_path), 1001)
        self.assertEqual(max(len(row["path"]) for row in by_path), 1001)
        deeper = next(row for row in by_path if row["name"] == "[deeper]")
        self.assertEqual(deeper["base"]["total_ns"], 10000)
        by_name = json.loads(self.prof("diff", *words).stdout)["rows"]
        self.assertEqual(len(by_name), self.depth)
