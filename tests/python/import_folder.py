"""What the tests of prof import share: a folder, the command, and what a trace becomes there."""

import json

from folder import CommandFolder

import prof


class ImportFolder(CommandFolder):
    def imported(self, content, output="t.prof"):
        with open(self.path("t.json"), "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        done = self.command("import", "t.json", "-o", output)
        if "yajl" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.said = [line.strip() for line in done.stderr.splitlines() if line.startswith("  ")]
        opened = prof.Trace.open(self.path(output))
        self.addCleanup(opened.close)
        return opened

    def once(self, pairs):
        """An object of JSON, in which no key comes twice."""
        self.assertEqual(len(dict(pairs)), len(pairs), pairs)
        return dict(pairs)

    def exported(self):
        """What stands in the export, but for names of rows and prof's own summary."""
        events = json.loads(self.opened.json(), object_pairs_hook=self.once)["traceEvents"]
        return [e for e in events if e["ph"] != "M" and e.get("cat") != "prof"]

    def spans(self):
        return {e["name"]: (e["ts"], e["dur"]) for e in self.exported() if e["ph"] == "X"}
