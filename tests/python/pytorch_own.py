"""pytorch_own.py torch|prof RESULTS TEST.py...

Runs tests of PyTorch's own, as they are or with prof in the place of torch.profiler
(prof.torch.install()). Writes a line a test into RESULTS: its name, "pass", "fail" or "skip", how
often it has called prof, and why. Each line is there before the next test begins, so a test that
ends the process costs no other's result.

pytorch_own.py compare TABLE TORCH PROF

Prints the two results side by side. TABLE is the page with those that do not pass on prof. Status 1
if the results differ from it."""

import importlib.util
import os
import re
import sys
import unittest
from pathlib import Path

used = 0
"""Calls of prof's profile() and schedule() so far."""


def _count_calls(owner, name):
    original = getattr(owner, name)

    def counted(*words, **named):
        global used
        used += 1
        return original(*words, **named)

    setattr(owner, name, counted)


def _install():
    import prof.torch
    from prof import session

    _count_calls(session.profile, "__init__")
    _count_calls(session, "schedule")
    _count_calls(session, "tensorboard_trace_handler")
    prof.torch.install()


class Lines(unittest.TextTestResult):
    """Writes each test's line."""

    results = None

    def startTest(self, test):  # noqa: N802
        self._used_before, self._found = used, None
        super().startTest(test)

    def stopTest(self, test):  # noqa: N802
        word, why = self._found or ("pass", "")
        name = f"{type(test).__name__}.{test._testMethodName}"
        fields = (name, word, str(used - self._used_before), why)
        self.results.write("\t".join(fields) + "\n")
        self.results.flush()
        super().stopTest(test)

    def _note_error(self, error):
        last = str(error[1]).strip().splitlines() or [""]
        self._found = self._found or ("fail", f"{error[0].__name__}: {last[0]}"[:200])

    def addError(self, test, err):  # noqa: N802
        self._note_error(err)
        super().addError(test, err)

    def addFailure(self, test, err):  # noqa: N802
        self._note_error(err)
        super().addFailure(test, err)

    def addSkip(self, test, reason):  # noqa: N802
        self._found = ("skip", reason)
        super().addSkip(test, reason)


def _run(way, results, paths):
    if way == "prof":
        _install()
    suite = unittest.TestSuite()
    for path in map(Path, paths):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        suite.addTests(unittest.defaultTestLoader.loadTestsFromModule(module))
    sys.argv[1:] = []
    with open(results, "w", encoding="utf-8") as Lines.results:
        unittest.TextTestRunner(resultclass=Lines, verbosity=2).run(suite)


def _read(path):
    lines = Path(path).read_text("utf-8").splitlines()
    return {fields[0]: fields[1:] for fields in (line.split("\t") for line in lines)}


def _listed(page):
    """The tests in the page's list. A name that ends in * means all that begin so."""
    rows = re.findall(r"^- `(Test\w+\.\w+\*?)`:", Path(page).read_text("utf-8"), re.MULTILINE)
    return [re.compile(re.escape(row).replace(r"\*", r"\w*") + r"\Z") for row in rows]


def _compare(page, on_torch, on_prof):
    of_torch, of_prof, listed = _read(on_torch), _read(on_prof), _listed(page)
    names = [name for name, result in of_torch.items() if result[0] == "pass"]
    width = max(map(len, names), default=0)
    wrong, passed, without = [], 0, 0
    print(f"{'test':{width}}  prof  asked  why")
    for name in names:
        word, asked, why = of_prof.get(name, ("died", "0", "the process ended before it"))
        print(f"{name:{width}}  {word:4}  {asked:>5}  {why}".rstrip())
        passed += word == "pass"
        without += word == "pass" and asked == "0"
        is_listed = any(pattern.match(name) for pattern in listed)
        if word != "pass" and not is_listed:
            wrong.append(f"{name} does not pass, and {page} does not say so: {why}")
        if word == "pass" and is_listed:
            wrong.append(f"{name} passes, and {page} says that it does not")
    for pattern in listed:
        if not any(pattern.match(name) for name in names):
            wrong.append(f"{page} names {pattern.pattern}, which torch does not pass")
    others = len(of_torch) - len(names)
    print(
        f"{len(names)} tests that torch passes, {others} that it does not or skips. On prof "
        f"{passed} pass, {without} of them without a call of prof's"
    )
    for line in wrong:
        print(f"not as expected: {line}")
    print(f"{len(names) - len(wrong)} passed, {len(wrong)} failed, 0 skipped")
    return bool(wrong) or not names


if __name__ == "__main__":
    if sys.argv[1] == "compare":
        sys.exit(_compare(*sys.argv[2:]))
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    _run(sys.argv[1], sys.argv[2], sys.argv[3:])
