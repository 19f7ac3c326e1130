"""Python id and Python parent id of the calls of functions in the JSON. Each call's parent is the
one that torch.profiler gives it, in the same process. make test-torch."""

import collections
import json
import os
import re
import tempfile
import unittest

from beside_torch import skip_without_torch, torch

import prof

if torch is not None:

    class Inner(torch.nn.Module):
        def forward(self, x):
            return sum((torch.relu(x) * factor for factor in (1, 2)), x)

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.inner = torch.nn.Linear(4, 4), Inner()

        def forward(self, x):
            return self.inner(self.linear(x))


def recursive(depth):
    return 0 if depth == 0 else max(recursive(depth - 1), *map(float, "12"))


def by_key(x):
    return sorted([3, 1, 2], key=lambda n: -n), x


def work(model):
    recursive(5)
    loss = by_key(model(torch.ones(2, 4)))[1].sum()
    loss.backward()


def functions_of(path):
    """The JSON's rows of functions by their numbers."""
    with open(path, encoding="utf-8") as f:
        rows = json.load(f)["traceEvents"]
    found = [e for e in rows if "Python id" in e.get("args", {})]
    numbers = collections.Counter(e["args"]["Python id"] for e in found)
    assert set(numbers.values()) == {1}, numbers
    names = [e for e in rows if e.get("cat") in ("python_function", "c_function")]
    assert len(names) == len(found), (len(names), len(found))
    return {e["args"]["Python id"]: e for e in found}


def frame(row):
    """As torch names it, without folders; what it says of C's functions and objects differs."""
    args, name = row["args"], row["name"]
    if name.startswith("nn.Module: "):
        return name
    if row["cat"] == "c_function" or name.startswith("<built-in"):
        return "C"
    if "file" in args:
        called = args.get("function", name).rpartition(".")[2]
        return f"{os.path.basename(args['file'])}({args['line']}): {called}"
    return os.path.basename(name) if "): " in name else "C"


def chains(path):
    """How often each way from work() to a call is there."""
    functions = functions_of(path)

    def chain(number):
        row = functions[number]
        here, parent = frame(row), row["args"].get("Python parent id")
        if re.search(r"\): work$", here):
            return (here,)
        above = chain(parent) if parent is not None else None
        return above and (*above, here)

    return collections.Counter(way for way in map(chain, functions) if way)


@skip_without_torch
class PythonIds(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.model = Outer()
        work(self.model)

    def exported(self, profile):
        with profile:
            work(self.model)
        path = os.path.join(self.folder.name, f"{type(profile).__module__}.json")
        profile.export_chrome_trace(path)
        return path

    def theirs(self):
        cpu = [torch.profiler.ProfilerActivity.CPU]
        return self.exported(torch.profiler.profile(activities=cpu, with_stack=True))

    def test_parents_are_torchs(self):
        theirs = chains(self.theirs())
        self.assertGreater(len(theirs), 40)
        for options in ({}, {"with_modules": True}):
            with self.subTest(options):
                path = self.exported(prof.profile(torch=True, with_stack=True, **options))
                found = chains(path)
                self.assertEqual(found - theirs, theirs - found)

    def test_modules_alone(self):
        """By hooks, where no functions are traced: a module's parent is the module around it."""
        path = self.exported(prof.profile(torch=True, with_modules=True))
        found = functions_of(path)
        parents = {
            e["name"]: found.get(e["args"].get("Python parent id"), {"name": None})["name"]
            for e in found.values()
        }
        outer = "nn.Module: Outer_0"
        self.assertEqual(
            parents,
            {outer: None, "nn.Module: Linear_0": outer, "nn.Module: Inner_0": outer},
        )

    def test_the_first_call_of_a_name(self):
        """Its record has the category itself: there is no call site of the name yet."""
        names = [f"First{number}" for number in range(3)]
        kinds = [type(name, (torch.nn.Sequential,), {}) for name in names]
        model = kinds[0](kinds[1](kinds[2]()))
        profile = prof.profile(torch=True, with_modules=True)
        with profile:
            model(torch.ones(2))
            model(torch.ones(2))
        path = os.path.join(self.folder.name, "first.json")
        profile.export_chrome_trace(path)
        found = functions_of(path)
        self.assertEqual(len(found), 6)
        parents = {number: e["args"].get("Python parent id") for number, e in found.items()}
        places = {None: -1}
        for number, e in found.items():
            places[number] = names.index(e["name"].partition(": ")[2].partition("_")[0])
        for number, parent in parents.items():
            self.assertEqual(places[parent], places[number] - 1)

    def test_an_imported_trace(self):
        for path in (
            self.theirs(),
            self.exported(prof.profile(torch=True, with_stack=True)),
        ):
            taken, again = path + ".prof", path + ".again.json"
            with prof.import_trace(path, taken) as trace:
                trace.dump(again)
                named = [e for e in trace.events() if e.name.endswith("work")]
            self.assertTrue(named)
            self.assertFalse([e for e in named if "Python id" in (e.args or {})])
            before, after = functions_of(path), functions_of(again)
            self.assertEqual(len(after), len(before))

            def pairs(functions):
                return collections.Counter(
                    (
                        e["name"],
                        functions.get(e["args"].get("Python parent id"), {"name": None})["name"],
                    )
                    for e in functions.values()
                )

            self.assertEqual(pairs(after), pairs(before))


if __name__ == "__main__":
    unittest.main()
