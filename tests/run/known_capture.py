"""A capture whose scopes and times are known: an imported trace."""

import json
import os
import subprocess

from case import HANG_SECONDS, PROF, Folder

PHASES = ("load", "convolution", "a name that is much longer than what a narrow terminal can show")


def events(process=7, slower=1):
    """20 steps of 1 ms. The second phase has a scope inside; times differ, in us."""
    found = []
    for step in range(20):
        begin = step * 1000
        found.append(
            {"ph": "X", "name": "step", "cat": "step", "pid": process, "tid": process}
            | {"ts": begin, "dur": 900, "args": {"step": step}}
        )
        for index, name in enumerate(PHASES):
            duration = (100 + 10 * index + step) * slower
            found.append(
                {"ph": "X", "name": name, "cat": "operator", "pid": process, "tid": process}
                | {"ts": begin + 10 + 250 * index, "dur": duration}
            )
        found.append(
            {"ph": "X", "name": "inner", "cat": "runtime", "pid": process, "tid": process}
            | {"ts": begin + 270, "dur": 40}
        )
    return found


class Recorded(Folder):
    def write_trace(self, name="trace.json", **options):
        return self.write(name, json.dumps({"traceEvents": events(**options)}))

    def record(self, name="trace.prof", **options):
        """The capture's path."""
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        trace = self.write_trace(name + ".json", **options)
        self.prof("import", trace, "-o", path)
        os.remove(trace)
        return path

    def prof(self, *words, status=0, env=None, text=True):
        done = subprocess.run(
            [PROF, *words],
            cwd=self.folder,
            capture_output=True,
            text=text,
            timeout=HANG_SECONDS,
            check=False,
            env={**os.environ, **(env or {})},
        )
        self.assertEqual(done.returncode, status, (words, done.stderr))
        return done
