"""The data of the page that `prof report` writes, read without a browser."""

import base64
import gzip
import json
import os
import re
import unittest

from known_capture import Recorded

DURATIONS_COLUMN = 16  # of a row: bucket, calls, bucket, calls...; report.js reads the same


class Page(Recorded):
    def data_of(self, events):
        trace = self.write("page.json", json.dumps({"traceEvents": events}))
        capture, page = (os.path.join(self.folder, name) for name in ("page.prof", "page.html"))
        self.prof("import", trace, "-o", capture)
        self.prof("report", "-o", page, capture)
        with open(page, encoding="utf-8") as file:
            encoding, text = re.search(
                r'id="data" data-encoding="(\w+)">([^<]*)</script>', file.read()
            ).groups()
        data = base64.b64decode(text)
        data = gzip.decompress(data) if encoding == "gzip" else data
        return json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])

    def test_each_of_two_long_names_has_its_own_distribution(self):
        long = "a name that is longer than a page shows " * 20
        names = [long + "one", long + "two", "short", "ill-formed \udc80"]
        events = [
            {"ph": "X", "name": name, "cat": "c", "pid": 1, "tid": 1, "ts": at * 10, "dur": 1 + at}
            for at, name in enumerate(
                name for count, name in enumerate(names, 1) for _ in range(count)
            )
        ]
        data = self.data_of(events)
        shown = [row[0] for row in data["rows"]]
        self.assertEqual(len(shown), len(names))
        self.assertLess(len(set(shown)), len(names), "the names are not cut")
        calls = {row[2]: sum(row[DURATIONS_COLUMN][1::2]) for row in data["rows"]}
        self.assertEqual(calls, {1: 1, 2: 2, 3: 3, 4: 4})

    def test_work_that_no_scope_launched_has_a_distribution(self):
        events = [
            {"ph": "X", "name": "kernel", "cat": "kernel", "pid": 0, "tid": 7, "ts": at * 100}
            | {"dur": us, "args": {"device": 0, "stream": 7, "correlation": at}}
            for at, us in enumerate((5, 5, 50), 1)
        ]
        (row,) = self.data_of(events)["rows"]
        self.assertEqual((row[0], row[2], row[DURATIONS_COLUMN][1::2]), ("kernel", 0, [2, 1]))


if __name__ == "__main__":
    unittest.main()
