"""Filters of the command, against a computation in Python of the JSON export."""

import json

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


class WrongWords(Nested):
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
