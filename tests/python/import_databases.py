"""What the tests of imported databases share."""

import collections
import sqlite3

import amd_databases
from import_folder import ImportFolder

import prof

ROCM = 10


def sums(rows):
    """Count and total of each name."""
    found = collections.defaultdict(lambda: [0, 0])
    for name, ns in rows:
        found[name][0] += 1
        found[name][1] += ns
    return {name: tuple(both) for name, both in found.items()}


def of_kind(trace, kind):
    return [e for e in trace.events() if e.kind == kind]


def scopes(trace, on_device):
    return [e for e in of_kind(trace, "scope") if (e.device == ROCM) == on_device]


def row(event):
    return event.name, event.start_ns, event.duration_ns


def launch_of(event):
    return event.launch[1] if event.launch[0] >= 0 else -1


class Database(ImportFolder):
    def skip_without(self, said):
        for word in ("SQLite cannot be opened", "has no SQLite", "yajl"):
            if word in said:
                self.skipTest(said.strip())

    def taken(self, path, output="t.prof"):
        done = self.command("import", path, "-o", output)
        self.skip_without(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.said = [line.strip() for line in done.stderr.splitlines() if line.startswith("  ")]
        opened = prof.Trace.open(self.path(output))
        self.addCleanup(opened.close)
        return opened

    def made(self, content):
        """content: adds what it likes to an empty database of rpd's."""
        made = amd_databases.Rpd(self.path("t.rpd"))
        content(made)
        made.close()
        return self.taken("t.rpd")

    def ask(self, query, path="t.rpd"):
        file = sqlite3.connect(self.path(path))
        try:
            return file.execute(query).fetchall()
        finally:
            file.close()

    def again(self, trace):
        """The same, after a way through JSON."""
        trace.export_chrome_trace(self.path("again.json"))
        return self.taken("again.json", "again.prof")

    def same_totals(self, trace, calls, work, path):
        """Each name's count and total in the table. calls, work: (name, ns)."""
        rows = {r.name: r for r in trace.aggregate(("kernel", "name"))}
        for name, both in sums(calls).items():
            self.assertEqual((rows[name].count, rows[name].total_ns), both, (path, name))
        for name, both in sums(work).items():
            found = (rows[name].device_count, rows[name].device_total_ns)
            self.assertEqual(found, both, (path, name))
        self.assertEqual(len(rows), len(sums(calls)) + len(sums(work)), path)
