"""Ranges that torch makes for profilers alone: torch._C._profiler._RecordFunctionFast, and what
code makes where torch.autograd.profiler._is_profiler_enabled says so. make test-torch."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest

from beside_torch import skip_without_torch, torch

import prof


def made(*words, **named):
    """As torch's own code makes it: by the module's name, each time."""
    return torch._C._profiler._RecordFunctionFast(*words, **named)


@skip_without_torch
class Ranges(unittest.TestCase):
    def setUp(self):
        self.x = torch.ones(4, 4)
        self.theirs = torch._C._profiler._RecordFunctionFast
        self.addCleanup(self.are_taken_back)

    def are_taken_back(self):
        self.assertIs(torch._C._profiler._RecordFunctionFast, self.theirs)
        self.assertFalse(torch.autograd.profiler._is_profiler_enabled)

    def work(self):
        x = self.x
        words = {"i": 1, "f": 2.5, "s": "t", "b": True, "l": [1, 2], "n": None}
        with made("range", [x, 3, "s", [x], None], words):
            x.add(x)
        with made("mine", (x,), {"scope": "user_scope", "k": 7}):
            with made("bare"):
                pass
        again = made("again", input_values=["hi"], keyword_values={"hi": "hello"})
        for _ in range(2):
            with self.assertRaises(KeyError), again:
                raise KeyError
        if torch.autograd.profiler._is_profiler_enabled:
            with made("where one is on"):
                pass

    def rows(self, p):
        names = ("range", "mine", "bare", "again", "where one is on")
        return [
            (e.name, e.input_shapes, e.cpu_parent and e.cpu_parent.name)
            for e in p.events()
            if e.name in names or e.name == "aten::add"
        ]

    def test_many_inputs_beside_many_keywords(self):
        words = {f"word{number}": number for number in range(9)}
        cpu = [torch.profiler.ProfilerActivity.CPU]
        seen = []
        for module in (torch.profiler, prof.torch):
            with module.profile(activities=cpu, record_shapes=True) as p:
                with made("range", [self.x] * 20, words):
                    pass
            (event,) = p.events()
            seen.append((event.input_shapes, event.input_dtypes, event.kwinputs))
        self.assertEqual(seen[1], seen[0])

    def test_no_function_of_the_program_is_what_prof_does_for_them(self):
        def run():
            with made("range", [self.x, 3, [self.x]], {"a": 1, "l": ["text"]}):
                pass

        prof.profiler.clear()
        options = {"with_stack": True, "record_shapes": True, "profile_memory": True}
        with prof.profile(torch=True, with_modules=True, **options) as p:
            run()
        with prof.Trace.now() as trace:  # also what the profile's begin and end have left there
            functions = ("python_function", "c_function", "import")
            names = [e.name for e in trace.events() if e.category in functions]
        first = names.index(next(name for name in names if name.endswith("<locals>.run")))
        self.assertEqual([name.rpartition(".")[2] for name in names[first:]], ["run", "made"])
        self.assertFalse([n for n in names[:first] if n.startswith(("fnmatch", "ctypes", "named"))])
        self.assertTrue(any(e.name == "range" and e.kwinputs["a"] == 1 for e in p.events()))

    def test_a_list_of_texts_has_no_mark_in_exports(self):
        with prof.profile(torch=True, record_shapes=True) as p:
            with made("range", [self.x], {"l": ["a", "b"], "t": "[c]"}):
                pass
        for kind in ("chrome", "raf", "perfetto"):
            with self.subTest(kind=kind), tempfile.TemporaryDirectory() as folder:
                p.trace.dump(f"{folder}/trace", kind)
                with open(f"{folder}/trace", "rb") as file:
                    content = file.read()
                self.assertFalse(b"[\x1f" in content or b"u001f" in content, kind)
                self.assertIn(b"[c]", content)

    def test_one_that_is_dropped_ends(self):
        cpu = [torch.profiler.ProfilerActivity.CPU]
        seen = []
        for module in (torch.profiler, prof.torch):
            with module.profile(activities=cpu) as p:
                dropped = made("dropped", [])
                dropped.__enter__()
                del dropped
                self.x.add(1)
            parents = {e.name: e.cpu_parent and e.cpu_parent.name for e in p.events()}
            seen.append((parents, [e.is_async for e in p.events()]))
        self.assertIn("dropped", seen[0][0])
        self.assertEqual(seen[1], seen[0])

    def test_a_list_of_texts_is_one(self):
        words = {
            "texts": ["a", 'b"c', ""],
            "none": [],
            "text": '["a"]',
            "mixed": ["a", 1],
        }
        with prof.profile(torch=True, record_shapes=True) as p:
            for _ in range(2):
                with made("lists", [self.x], words):
                    pass
        expected = {"texts": ["a", 'b"c', ""], "none": [], "text": '["a"]'}
        first, second = (e.kwinputs for e in p.events())
        for found in (first, second):
            self.assertEqual({key: found[key] for key in expected}, expected)
            self.assertNotIn("mixed", found)
        self.assertIsNot(first["texts"], second["texts"])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ranges.json")
            p.export_chrome_trace(path)
            with open(path, encoding="utf-8") as file:
                events = json.load(file)["traceEvents"]
        (args, _) = (e["args"] for e in events if e["name"] == "lists")
        self.assertEqual({key: args[key] for key in expected}, expected)

    def test_a_text_that_reads_as_a_list_stays_a_text(self):
        texts = {
            "one": '["a"]',
            "space": '[ "a", "b"]',
            "two": '[  "a"]',
            "none": "[ ]",
        }
        with prof.profile(torch=True, record_shapes=True) as p:
            with made("range", [self.x], texts):
                pass
            with prof.scope("own", "cpu_op", **texts):
                pass
        for event in p.events():
            self.assertEqual({key: event.kwinputs[key] for key in texts}, texts, event.name)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ranges.json")
            p.export_chrome_trace(path)
            with open(path, encoding="utf-8") as file:
                events = json.load(file)["traceEvents"]
        for name in ("range", "own"):
            (args,) = (e["args"] for e in events if e["name"] == name)
            self.assertEqual({key: args[key] for key in texts}, texts)

    def test_an_empty_name_is_shown_as_torch_shows_it(self):
        cpu = [torch.profiler.ProfilerActivity.CPU]
        names = []
        for profile in (
            torch.profiler.profile(activities=cpu),
            prof.profile(torch=True),
        ):
            with profile as p, torch.profiler.record_function(""):
                self.x.add(1)
            rows = sorted(row.key for row in p.key_averages())
            names.append((rows, sorted(e.name for e in p.events())))
        self.assertIn("", names[0][0])
        self.assertEqual(names[1], names[0])

    def test_they_are_torchs(self):
        for with_shapes in (True, False):
            with self.subTest(with_shapes):
                cpu = [torch.profiler.ProfilerActivity.CPU]
                with torch.profiler.profile(activities=cpu, record_shapes=with_shapes) as theirs:
                    self.work()
                with prof.profile(torch=True, record_shapes=with_shapes) as ours:
                    self.work()
                self.assertEqual(self.rows(ours), self.rows(theirs))
                words = {e.name: e.kwinputs for e in ours.events()}
                kept = {"i": 1, "f": 2.5, "s": "t", "b": True} if with_shapes else {}
                self.assertEqual(words["range"], kept)
                users = [e.name for e in ours.events() if e.is_user_annotation]
                self.assertEqual(users, ["mine"] if with_shapes else [])
                for e in ours.events():
                    self.assertEqual(e.scope, 7 if e.is_user_annotation else 0, e.name)

    def test_their_inputs_are_torchs(self):
        x, t = torch.ones(3, 4)[:, ::2], torch.ones(2)
        inputs = {
            "values": ["s", 1, True, 2.5, None, [1, 2], (t,), [t]],
            "left out": [
                [],
                (),
                [1.5, -0.0],
                [1, "a"],
                [t, 1],
                object,
                {},
                ["a", "b"],
                (1, 2),
            ],
            "tensors": [
                x,
                [x, t],
                torch.tensor(3),
                torch.ones(0),
                [t, None],
                x.to_sparse(),
            ],
            "numbers": [
                float("nan"),
                float("-inf"),
                -0.0,
                1e20,
                1e-7,
                1 + 2j,
                -3,
                torch.device("cpu"),
            ],
            "types": [torch.ones(2, dtype=torch.bfloat16), torch.ones(2) > 0],
            "long": [list(range(30)), list(range(31)), [t] * 30, [t] * 31],
            "thirteen": [t] * 13,
            "forty": [*[x, 3, [t, x], "s", None, t] * 6, 1, 2.5, x, t],
            "lists": [[t], x, 3] * 4,
        }

        def work():
            for name, values in inputs.items():
                with made(name, values, {"word": 1}):
                    pass
            self.x.add(self.x)  # its kind tells torch's trace from another

        seen = []
        with tempfile.TemporaryDirectory() as folder:
            for module in (torch.profiler, prof.torch):
                cpu = [torch.profiler.ProfilerActivity.CPU]
                with module.profile(activities=cpu, record_shapes=True) as p:
                    work()
                path = os.path.join(folder, f"{module.__name__}.json")
                p.export_chrome_trace(path)
                with open(path, encoding="utf-8") as file:
                    rows = json.loads(file.read().replace("-0.", "0."))["traceEvents"]
                seen.append((p.events(), {e["name"]: e.get("args") for e in rows}))
        keys = ("Concrete Inputs", "Input Strides", "Input Dims", "Input type", "word")
        of = (
            "concrete_inputs",
            "input_dtypes",
            "structured_input_strides",
            "input_shapes",
        )
        of += ("structured_input_shapes", "kwinputs")
        for name in inputs:
            with self.subTest(name):
                events = [next(e for e in each if e.name == name) for each, _ in seen]
                for word in of:
                    theirs, ours = (repr(getattr(e, word)) for e in events)
                    self.assertEqual(ours, theirs, word)
                theirs, ours = ({key: args[name][key] for key in keys} for _, args in seen)
                self.assertEqual(ours, theirs)

    def test_what_is_no_argument(self):
        """Torch ends the process."""
        with prof.torch.observe():
            for words in ((3,), ("n", 3), ("n", [], 3), ("n", None), ()):
                with self.subTest(words), self.assertRaises(TypeError):
                    made(*words)

    def test_words_that_are_scopes_own(self):
        words = {
            "category": "c",
            "level": 2,
            "_shapes": 1,
            "name": "n",
            "texts": ["a", 'b"'],
        }
        with (
            prof.profile(torch=True, record_shapes=True) as p,
            made("range", [], words),
        ):
            pass
        (event,) = (e for e in p.events() if e.name == "range")
        expected = {"category#": "c", "level#": 2, "_shapes#": 1, "name": "n"}
        self.assertEqual(event.kwinputs, {**expected, "texts": ["a", 'b"']})
        self.assertEqual(event.category, "cpu_op")

    def test_on_threads_that_are_observed(self):
        def run():
            with made("elsewhere"):
                pass

        for everywhere in (False, True):
            with self.subTest(everywhere), prof.profile() as p:
                with prof.torch.observe(profile_all_threads=everywhere):
                    thread = threading.Thread(target=run)
                    thread.start()
                    thread.join()
            self.assertEqual("elsewhere" in {e.name for e in p.events()}, everywhere)

    def test_one_that_outlives_it(self):
        with (
            prof.profile(torch=True) as p,
            prof.torch.observe(profile_all_threads=True),
        ):
            kept = made("kept")
            with kept:
                pass
        with prof.profile() as later, kept:
            self.x.add(self.x)
        self.assertEqual([e.name for e in p.events() if e.name == "kept"], ["kept"])
        self.assertEqual([e.name for e in later.events()], [])

    def test_beside_torchs_own_profiler(self):
        """Once, in each of the two."""
        cpu = [torch.profiler.ProfilerActivity.CPU]
        with prof.profile(torch=True) as ours:
            with torch.profiler.profile(activities=cpu) as theirs, made("both"):
                pass
        for p in (ours, theirs):
            self.assertEqual([e.name for e in p.events() if e.name == "both"], ["both"])

    def test_after_install(self):
        """install() answers torch.autograd._profiler_enabled(). In a process of its own, where no
        range was made before."""
        program = """if True:
            import prof.torch, torch
            prof.torch.install()
            for end in (prof.torch.uninstall, lambda: None):
                with torch.profiler.profile(record_shapes=True) as p:
                    with torch._C._profiler._RecordFunctionFast("range"):
                        pass
                print([e.name for e in p.events() if e.name == "range"])
                print(torch.autograd.profiler._is_profiler_enabled, type(p).__module__)
                end()
        """
        done = subprocess.run(
            [sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True
        )
        ours, theirs = "prof._torch_install", "torch.profiler.profiler"
        self.assertEqual(
            done.stdout.split("\n")[:4],
            ["['range']", f"False {ours}", "['range']", f"False {theirs}"],
        )

    def test_torchs_own_goes_on_behind(self):
        cpu = [torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=cpu):
            with prof.torch.observe():
                pass
            self.assertTrue(torch.autograd.profiler._is_profiler_enabled)


if __name__ == "__main__":
    unittest.main()
