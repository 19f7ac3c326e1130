"""The snippets of examples/python/guides: which there are, and what one does in this process, on
prof or with torch.profiler's names in the place of prof's."""

import collections
import contextlib
import io
import os
import re
import tempfile
import unittest.mock
import warnings
from pathlib import Path

from text_tables import tables

SOURCE = os.environ.get("PROF_TEST_SOURCE_DIR") or Path(__file__).resolve().parents[2]
FOLDER = Path(SOURCE, "examples", "python", "guides")
HEAD = re.compile(r"(?:#|//) Guide: (.+)\n(?:#|//) Section: (.+)\n")


def snippets():
    """Paths from the folder on, with "/" between."""
    found = [p for p in FOLDER.glob("*/*") if p.suffix in (".py", ".cpp")]
    return sorted(p.relative_to(FOLDER).as_posix() for p in found)


def head(name):
    """Guide and section."""
    found = HEAD.match(Path(FOLDER, name).read_text("utf-8"))
    return found.groups() if found else None


def on_torch(source):
    """The import is all that changes."""
    return source.replace("from prof.torch import", "from torch.profiler import")


class Made:
    """One result of key_averages(): the profile, what was asked, and the rows as they were then."""

    def __init__(self, profile, words, rows):
        self.profile, self.words, self.rows = profile, words, list(rows)


class Run:
    """What a snippet has printed and left: text, tables, files by name, its variables, and what its
    profiles gave."""

    def __init__(self, name, profile, change=lambda source: source):
        """profile: the class whose key_averages() is looked at."""
        self.made = []
        self.variables = {"__name__": "__main__"}
        path = Path(FOLDER, name)
        code = compile(change(path.read_text("utf-8")), str(path), "exec")
        printed = io.StringIO()
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder, self._watched(profile):
            os.chdir(folder)
            try:
                with contextlib.redirect_stdout(printed), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    exec(code, self.variables)
            finally:
                os.chdir(before)
            files = [p for p in Path(folder).rglob("*") if p.is_file()]
            self.files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}
        self.text = printed.getvalue()
        self.tables = tables(self.text)

    def _watched(self, profile):
        original = profile.key_averages

        def key_averages(this, *words, **named):
            rows = original(this, *words, **named)
            self.made.append(Made(this, named, rows))
            return rows

        return unittest.mock.patch.object(profile, "key_averages", key_averages)


def calls(rows, *more):
    """How often each row was called: by its name, shapes, stack, and attributes named by `more`."""
    found = collections.Counter()
    for row in rows:
        key = (row.key, str(row.input_shapes or ""), tuple(row.stack or ()))
        found[key + tuple(getattr(row, name) for name in more)] += row.count
    return found
