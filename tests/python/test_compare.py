"""prof diff and prof flame, on imported traces: their times are known to the nanosecond."""

import csv
import io
import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import unittest
from xml.etree import ElementTree

from hang_guard import HANG_SECONDS

COMMAND = os.path.abspath(os.path.join(os.environ.get("PROF_TEST_BUILD_DIR", "build/dev"), "prof"))
HOSTILE = "in</script><b>&\"'"


def slices(seed, inner_scale=1.0, conv="old_conv", calls=51):
    """outer, with two children; times in microseconds."""
    chance = random.Random(seed)
    events, at = [], 0.0
    for _ in range(calls):
        inner = round((40 + chance.random() * 4) * inner_scale, 3)
        outer = round(60 + inner + chance.random() * 10, 3)
        for name, begin, duration in (
            ("outer", at, outer),
            (HOSTILE, at + 1, inner),
            (conv, at + inner + 10, 20),
        ):
            events.append({"ph": "X", "pid": 1, "tid": 1, "name": name, "cat": "cpu_op"})
            events[-1].update(ts=round(begin, 3), dur=duration)
        at += outer + 5
    return events


class Compare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.runs = {}
        for side, scale, conv, seeds in (
            ("base", 1.0, "old_conv", range(5)),
            ("same", 1.0, "old_conv", range(5, 10)),
            ("slow", 1.2, "new_conv", range(10, 15)),
        ):
            os.mkdir(os.path.join(cls.folder, side))
            cls.runs[side] = [slices(seed, scale, conv) for seed in seeds]
            for i, events in enumerate(cls.runs[side]):
                path = os.path.join(cls.folder, side, str(i))
                with open(path + ".json", "w") as f:
                    json.dump({"traceEvents": events}, f)
                cls.run_prof(cls, "import", path + ".json", "-o", path + ".prof")

    def run_prof(self, *words):
        return subprocess.run(
            [COMMAND, *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )

    def prof(self, *words, status=0):
        done = self.run_prof(*words)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def medians(self, side, name):
        """in ns, of each run"""
        return [
            statistics.median(round(e["dur"] * 1000) for e in events if e["name"] == name)
            for events in self.runs[side]
        ]

    def test_verdicts_agree_with_an_enumeration(self):
        found = json.loads(self.prof("diff", "--json", "base", "slow").stdout)
        self.assertEqual((found["base_captures"], found["new_captures"]), (5, 5))
        rows = {row["name"]: row for row in found["rows"]}
        for name in ("outer", HOSTILE):
            base, new = self.medians("base", name), self.medians("slow", name)
            everything = base + new
            self.assertEqual(len(set(everything)), 10, "no ties in this program")
            # Mann-Whitney: the sum of ranks of each choice of five of the ten
            rank = {value: i for i, value in enumerate(sorted(everything))}
            middle = 4.5 * 5
            seen = abs(sum(rank[value] for value in new) - middle)
            choices = list(itertools.combinations(range(10), 5))
            p = sum(abs(sum(choice) - middle) >= seen for choice in choices) / len(choices)
            self.assertAlmostEqual(rows[name]["p"], p)
            # Hodges and Lehmann: the middle of the 25 ratios in order, and the k-th from each end.
            # Fewer than k pairs (b, n) have n < b in at most 2.5 % of all choices, for the largest
            # such k.
            below = [sum(choice) - sum(range(5)) for choice in choices]
            share = [sum(u < k for u in below) / len(choices) for k in range(26)]
            k = max(k for k in range(26) if share[k] <= 0.025)
            ratios = sorted(n / b for n in new for b in base)
            self.assertAlmostEqual(rows[name]["ratio"], ratios[12])
            self.assertAlmostEqual(rows[name]["ratio_low"], ratios[k - 1])
            self.assertAlmostEqual(rows[name]["ratio_high"], ratios[25 - k])
            self.assertAlmostEqual(found["coverage"], 1 - 2 * share[k])
            self.assertEqual(rows[name]["verdict"], "slower")
            for side, values in (("base", base), ("new", new)):
                self.assertEqual(rows[name][side]["median_ns"], statistics.median(values))
                self.assertEqual(rows[name][side]["calls"], 51)
        replaced = rows["old_conv"]
        self.assertEqual((replaced["state"], replaced["new_name"]), ("replaced", "new_conv"))

    def test_equal_programs_have_no_verdict(self):
        rows = json.loads(self.prof("diff", "--json", "base", "same").stdout)["rows"]
        self.assertEqual(len(rows), 3)
        for row in rows:
            self.assertEqual(row["verdict"], "undecided", row)

    def test_fail_on(self):
        failed = self.prof("diff", "--fail-on", "10%", "base", "slow", status=3)
        self.assertIn("1 row is slower by more than 10%", failed.stderr)
        self.prof("diff", "--fail-on", "50%", "base", "slow")
        self.prof("diff", "--fail-on", "10%", "base", "same")
        refused = self.prof("diff", "--fail-on", "5%", "base/0.prof", "slow/0.prof", status=1)
        self.assertIn("needs 4 captures of each side; base has 1, new 1", refused.stderr)

    def test_fail_on_without_a_row_to_judge_is_status_1(self):
        event = {"ph": "X", "pid": 1, "tid": 1, "name": "other", "ts": 0, "dur": 5}
        os.mkdir(os.path.join(self.folder, "other"))
        for i in range(4):
            trace = os.path.join(self.folder, "other.json")
            with open(trace, "w") as f:
                json.dump({"traceEvents": [event] * (i + 1)}, f)
            self.prof("import", trace, "-o", f"other/{i}.prof")
        done = self.prof("diff", "base", "other")
        self.assertIn("No row has four captures on both sides", done.stdout)
        refused = self.prof("diff", "--fail-on", "5%", "base", "other", status=1)
        self.assertIn("no row to judge: none has 4 captures on both sides", refused.stderr)

    def test_heading_says_what_counts_as_a_run(self):
        said = "Base: 1 capture. New: 1 capture.\n"
        self.assertTrue(self.prof("diff", "base/0.prof", "slow/0.prof").stdout.startswith(said))
        said = "Base: 5 captures. New: 1 capture. Each counts as a run.\n"
        self.assertTrue(self.prof("diff", "base", "slow/0.prof").stdout.startswith(said))

    def test_one_run_has_no_verdict(self):
        done = self.prof("diff", "base/0.prof", "slow/0.prof")
        self.assertIn("No verdict: that needs 4 captures of each side.", done.stdout)
        self.assertIn("100% of calls slower", done.stdout)
        self.assertNotIn(" slower (", done.stdout)

    def test_captures_that_the_filter_leaves_out_are_no_runs(self):
        """Of five processes, one is compared."""
        folder = os.path.join(self.folder, "processes")
        os.mkdir(folder)
        for i, events in enumerate(self.runs["base"]):
            path = os.path.join(folder, str(i))
            with open(path + ".trace", "w") as f:
                json.dump({"traceEvents": [{**event, "pid": 10 + i} for event in events]}, f)
            self.prof("import", path + ".trace", "-o", path + ".prof")
        words = ("--process", "12", "processes", "processes")
        found = json.loads(self.prof("diff", "--json", *words).stdout)
        alone = json.loads(self.prof("diff", "--json", "base/2.prof", "base/2.prof").stdout)
        self.assertEqual((found["base_captures"], found["new_captures"]), (1, 1))
        values = [
            {row["name"]: (row["base"], row["new"]) for row in of["rows"]} for of in (found, alone)
        ]
        self.assertEqual(*values)
        pairs = (("processes", "processes"), ("base/2.prof", "base/2.prof"))
        lines = [
            self.prof("flame", "--folded", "--process", pid, "--base", a, "--new", b).stdout
            for pid, (a, b) in zip(("12", "1"), pairs, strict=False)
        ]
        self.assertIn("outer", lines[0])
        self.assertEqual(*lines)
        refused = self.prof("diff", "--fail-on", "5%", *words, status=1)
        self.assertIn("base has 1, new 1", refused.stderr)

    def test_sides(self):
        """A folder, a quoted glob and named captures are the same sides."""
        by_folder = self.prof("diff", "--json", "base", "slow").stdout
        self.assertEqual(
            self.prof("diff", "--json", "base/*.prof", "slow/?.prof").stdout, by_folder
        )
        named = (
            [f"base/{i}.prof" for i in range(5)],
            [f"slow/{i}.prof" for i in range(5)],
        )
        words = ("--base", *named[0], "--new", *named[1])
        self.assertEqual(self.prof("diff", "--json", *words).stdout, by_folder)
        for places in ("prof_output", "run-{}", "run-{}/prof_output"):
            for side in ("base", "slow"):
                for i in range(5):
                    folder = os.path.join(self.folder, places.format("x"), side)
                    folder = os.path.join(folder, places.format(i))
                    os.makedirs(folder, exist_ok=True)
                    shutil.copy(os.path.join(self.folder, side, f"{i}.prof"), folder)
            words = [os.path.join(places.format("x"), side) for side in ("base", "slow")]
            self.assertEqual(self.prof("diff", "--json", *words).stdout, by_folder, places)
        self.prof("diff", "base", status=2)
        self.assertIn("nowhere", self.prof("diff", "base", "nowhere", status=1).stderr)

    def test_a_side_has_100_captures_at_most(self):
        os.mkdir(os.path.join(self.folder, "many"))
        for i in range(101):
            shutil.copyfile(
                os.path.join(self.folder, "base/0.prof"),
                os.path.join(self.folder, f"many/{i:03}.prof"),
            )
        done = self.prof("diff", "base", "many", status=1)
        self.assertIn("more than 100 captures, with 'many/100.prof'", done.stderr)
        os.remove(os.path.join(self.folder, "many/100.prof"))
        found = json.loads(self.prof("diff", "--json", "base", "many").stdout)
        self.assertEqual(found["new_captures"], 100)

    def test_text_fits(self):
        for width in (60, 80, 100, 120, 160):
            for words in ((), ("--tree",)):
                text = self.prof("diff", *words, "--width", str(width), "base", "slow").stdout
                self.assertLessEqual(max(map(len, text.splitlines())), width, text)
        lines = self.prof("diff", "--width", "80", "base", "slow").stdout.splitlines()
        outer = next(line for line in lines if line.startswith("outer"))
        self.assertTrue(outer.endswith(" slower"), outer)

    def test_a_pipe_has_all_columns_and_whole_names(self):
        text = self.prof("diff", "base", "slow").stdout
        titles = next(line for line in text.splitlines() if line.startswith("Name"))
        for title in ("Mean", "p99", "Total"):
            self.assertIn(title, titles.split())
        self.assertIn("old_conv -> new_conv (replaced)", text)
        self.assertNotIn("no room", text)

    def test_nothing_to_compare_is_said(self):
        for words in ((), ("--tree",), ("--json",), ("--csv",)):
            done = self.prof("diff", "--name", "nowhere", *words, "base", "slow", status=3)
            self.assertIn("no scope passed the filter", done.stderr)
            self.assertEqual("Neither side has a scope" in done.stdout, not set(words) - {"--tree"})

    def test_csv(self):
        table = list(csv.DictReader(io.StringIO(self.prof("diff", "--csv", "base", "slow").stdout)))
        self.assertEqual({row["name"] for row in table}, {"outer", HOSTILE, "old_conv"})

    def test_the_title_of_a_picture_names_both_sides(self):
        for words, title in (
            (("base/0.prof",), "base/0.prof"),
            (("base",), "base/0.prof and 4 more"),
            (
                ("--base", "base/0.prof", "--new", "slow"),
                "slow/0.prof and 4 more, against base/0.prof",
            ),
        ):
            svg = self.prof("flame", *words).stdout
            self.assertIn(f"<title>{title}: host self time</title>", svg)

    def test_folded_stacks_are_self_times(self):
        text = self.prof("flame", "--folded", "base/0.prof").stdout
        found = dict(line.rsplit(" ", 1) for line in text.splitlines())
        total = {}
        for event in self.runs["base"][0]:
            total[event["name"]] = total.get(event["name"], 0) + round(event["dur"] * 1000)
        self.assertEqual(int(found["outer;" + HOSTILE]), total[HOSTILE])
        self.assertEqual(int(found["outer;old_conv"]), total["old_conv"])
        self.assertEqual(sum(map(int, found.values())), total["outer"])

    def test_folded_stacks_of_a_deep_chain(self):
        """The file would be gigabytes if each path were written to its end."""
        depth = 1500
        events = [
            {"ph": "X", "pid": 1, "tid": 1, "name": f"n{i}", "ts": i, "dur": 2 * (depth - i)}
            for i in range(depth)
        ]
        with open(os.path.join(self.folder, "deep.json"), "w") as f:
            json.dump({"traceEvents": events}, f)
        self.prof("import", "deep.json", "-o", "deep.prof")
        self.prof("dump", "deep.prof", "-o", "deep.folded")
        with open(os.path.join(self.folder, "deep.folded"), encoding="utf-8") as f:
            lines = [line.rpartition(" ") for line in f.read().splitlines()]
        self.assertEqual(len(lines), 1001)
        stack, _, deeper_ns = lines[-1]
        frames = stack.split(";")[-1001:]
        self.assertEqual(frames, [f"n{i}" for i in range(1000)] + ["[deeper]"])
        self.assertEqual(int(deeper_ns), 2000 * (depth - 1000))
        self.assertEqual(sum(int(line[2]) for line in lines), 2000 * depth)

    def test_svg_is_well_formed(self):
        self.prof("flame", "-o", "one.svg", "base/0.prof")
        self.prof("flame", "-o", "two.svg", "--base", "base", "--new", "slow")
        for name in ("one.svg", "two.svg"):
            root = ElementTree.parse(os.path.join(self.folder, name)).getroot()
            self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
            text = "".join(root.itertext())
            self.assertIn(HOSTILE, text)
            with open(os.path.join(self.folder, name)) as f:
                self.assertNotIn("</script><b>", f.read())

    def test_nothing_is_left_of_what_fails(self):
        before = sorted(os.listdir(self.folder))
        self.prof("flame", "-o", "x.svg", "nowhere.prof", status=1)
        self.prof("flame", "-o", "x.png", "base/0.prof", status=2)
        self.assertEqual(sorted(os.listdir(self.folder)), before)


if __name__ == "__main__":
    unittest.main()
