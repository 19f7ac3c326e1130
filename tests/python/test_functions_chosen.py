"""Which functions of Python are traced: filters, levels, and nothing when it is off."""

import cProfile
import gc
import os
import sys
import tempfile
import textwrap
import threading
import unittest

from test_functions import HERE, MODULE, counts_of, fib, is_traced, short, work

import prof

has_monitoring = hasattr(sys, "monitoring")


@unittest.skipUnless(is_traced, "functions are traced in CPython alone")
class Filters(unittest.TestCase):
    def uses_the_library(self):
        textwrap.dedent(" x")
        fib(1)

    def names(self, **options):
        return {
            name
            for name in counts_of(self.uses_the_library, **options)
            if "uses_the_library" not in name
        }

    def test_the_standard_library_when_asked(self):
        self.assertEqual(self.names(), {f"{MODULE}.fib"})
        self.assertIn("textwrap.dedent", self.names(standard_library=True))
        self.assertEqual(self.names(), {f"{MODULE}.fib"})

    def test_modules_patterns_and_paths(self):
        self.assertEqual(self.names(include="textwrap"), {"textwrap.dedent"})
        self.assertEqual(self.names(include=["text*"]), {"textwrap.dedent"})
        self.assertEqual(self.names(include=os.path.dirname(HERE) + "/"), {f"{MODULE}.fib"})
        self.assertEqual(self.names(include=HERE), {f"{MODULE}.fib"})
        self.assertEqual(self.names(exclude=[MODULE]), set())
        self.assertEqual(
            self.names(include=["textwrap", MODULE], exclude="*wrap"), {f"{MODULE}.fib"}
        )

    def test_what_is_no_pattern(self):
        for wrong in ([3], [""], [None]):
            with self.assertRaises(TypeError):
                prof.trace_functions(include=wrong)

    def test_imports_and_collections(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "prof_test_outer.py"), "w") as f:
                f.write("import prof_test_inner\n")
            with open(os.path.join(folder, "prof_test_inner.py"), "w") as f:
                f.write("def f(): pass\nf()\n")
            sys.path.insert(0, folder)
            found = []
            try:
                for imports in (True, False):
                    prof.profiler.clear()
                    with prof.profile(), prof.trace_functions(imports=imports):
                        import prof_test_outer  # noqa: F401

                        gc.collect(1)
                    found.append({e.name: e for e in prof.Trace.now().events()})
                    for name in ("prof_test_outer", "prof_test_inner"):
                        del sys.modules[name]
            finally:
                sys.path.remove(folder)
        events, without = found
        # what an import has called is seen
        self.assertEqual({name for name in without if "prof_test" in name}, {"prof_test_inner.f"})
        self.assertIn("prof_test_inner.<module>", events)
        self.assertEqual(events["import prof_test_outer"].category, "import")
        self.assertLess(
            events["import prof_test_outer"].start_ns, events["import prof_test_inner"].start_ns
        )
        self.assertIn("prof_test_inner.f", events)
        self.assertEqual(events["gc collect gen 1"].category, "gc")
        self.assertEqual(
            set(events["gc collected"].args), {"generation", "collected", "uncollectable"}
        )


@unittest.skipUnless(is_traced, "functions are traced in CPython alone")
class Off(unittest.TestCase):
    def test_nothing_is_left(self):
        before = sys.getprofile(), threading._profile_hook, list(gc.callbacks)
        counts_of(work)
        self.assertEqual((sys.getprofile(), threading._profile_hook, list(gc.callbacks)), before)
        if has_monitoring:
            self.assertEqual([sys.monitoring.get_tool(tool) for tool in range(6)], [None] * 6)
        with prof.profile():
            prof.profiler.clear()
            work()
        self.assertEqual(list(prof.Trace.now().events()), [])

    def test_traced_but_not_recorded(self):
        prof.profiler.clear()
        with prof.trace_functions():
            work()
        self.assertEqual(
            [e for e in prof.Trace.now().events() if e.category == "python_function"], []
        )

    def test_a_level_that_comes_while_functions_run(self):
        def outer():
            with prof.profile():
                fib(3)

        prof.profiler.clear()
        with prof.trace_functions():
            outer()
        self.assertEqual(
            [
                short(e.name) for e in prof.Trace.now().events() if e.category == "python_function"
            ].count("fib"),
            5,
        )

    def test_called_twice(self):
        with prof.trace_functions() as first:
            second = prof.trace_functions()
            with self.assertRaisesRegex(RuntimeError, "already"):
                second.start()
            second.stop()
            first.stop()
            first.stop()
            second.start()
            second.stop()

    @unittest.skipIf(has_monitoring, "sys.monitoring has room for several")
    def test_a_profile_function_that_is_set(self):
        def mine(*_):
            pass

        for module in (sys, threading):
            module.setprofile(mine)
            try:
                with self.assertRaisesRegex(RuntimeError, "mine"):
                    prof.trace_functions().start()
                self.assertIs(sys.getprofile() if module is sys else threading._profile_hook, mine)
            finally:
                module.setprofile(None)
        counts_of(work)

    @unittest.skipUnless(has_monitoring, "sys.monitoring came with 3.12")
    def test_tools_that_have_every_place(self):
        monitoring = sys.monitoring
        for tool in (2, 3, 4):
            monitoring.use_tool_id(tool, f"tool{tool}")
        try:
            with self.assertRaisesRegex(RuntimeError, r"3 \(tool3\), 4 \(tool4\), 2 \(tool2\)"):
                prof.trace_functions().start()
        finally:
            monitoring.free_tool_id(3)
        try:
            self.assertEqual(counts_of(lambda: fib(1)).get(f"{MODULE}.fib"), 1)
            self.assertEqual(
                [monitoring.get_tool(tool) for tool in (2, 3, 4)], ["tool2", None, "tool4"]
            )
        finally:
            monitoring.free_tool_id(2)
            monitoring.free_tool_id(4)

    @unittest.skipUnless(has_monitoring, "before 3.12 there is one place for all")
    def test_beside_the_programs_own_profilers(self):
        seen = []

        def run():
            profiler = cProfile.Profile()
            profiler.enable()
            fib(5)
            profiler.disable()
            sys.setprofile(lambda frame, event, _: seen.append(event))
            fib(1)
            sys.setprofile(None)
            sys.settrace(lambda *_: None)
            fib(1)
            sys.settrace(None)

        self.assertEqual(counts_of(run).get(f"{MODULE}.fib"), 15 + 2)
        self.assertIn("call", seen)
