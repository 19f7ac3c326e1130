"""Filters of the command, against a computation in Python of the JSON export."""

import json
import os

from nested_capture import FILTERS, Nested


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


class Exports(Nested):
    def test_an_export_has_the_events_of_a_part(self):
        self.prof("dump", self.capture, "--from", "200us", "--to", "0.7ms", "-o", "part.json")
        with open(os.path.join(self.folder, "part.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        found = sorted((x["name"], round(x["dur"] * 1000)) for x in events if x["ph"] == "X")
        expected = [x for x in self.scopes if x.end > 200000 and x.start < 700000]
        self.assertTrue(0 < len(expected) < len(self.scopes))
        self.assertEqual(found, sorted((scope.name, scope.duration) for scope in expected))

    def test_a_wrong_time_writes_nothing(self):
        for words in (("--from", "soon"), ("--to", "5"), ("--from", "2s", "--to", "1s")):
            done = self.prof("dump", self.capture, *words, "-o", "no.json", status=2)
            self.assertIn(f'"{words[-1]}"', done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "no.json")))


class WrongWords(Nested):
    def test_no_scope_begins_after_the_last_time(self):
        words = ("--from", f"{2**64 - 1}ns", self.capture)
        for command in ("events", "tree", "table"):
            done = self.prof(command, *words, status=3)
            self.assertIn("no scope passed the filter", done.stderr)

    def test_a_wrong_value_is_one_error_with_the_value(self):
        for command in ("table", "events", "tree", "flame"):
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
