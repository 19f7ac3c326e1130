"""What the tests of prof import share: a folder, the command, and what a trace becomes there."""

import json
import os
import subprocess

from folder import Folder
from hang_guard import HANG_SECONDS

import prof

COMMAND = os.path.abspath(os.path.join(os.environ.get("PROF_TEST_BUILD_DIR", "build/dev"), "prof"))
HAS_COMMAND = os.access(COMMAND, os.X_OK)


class ImportFolder(Folder):
    def command(self, *words):
        return subprocess.run(
            [COMMAND, *words],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            cwd=self.folder,
        )

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
