"""Calls of torch that prof itself makes are not recorded: for texts of arguments, for values of
counters, and to check the layout of torch. make test-torch."""

import fractions
import os
import subprocess
import sys
import threading
import unittest
import unittest.mock

from beside_torch import calls_of, skip_without_torch, torch
from hang_guard import HANG_SECONDS

import prof

# The first observe() of the process proves torch.
PROVEN = """
import threading, prof, prof.torch, torch
def run():
    with prof.torch.observe():
        pass
with prof.profile(), prof.trace_functions(standard_library=True, c_functions=True):
    run()
with prof.Trace.now() as trace:
    print([e.name for e in trace.events() if e.category in ("python_function", "c_function")])
print([thread.name for thread in threading.enumerate()])
"""


class Shown:
    """Its text is the program's."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __str__(self):
        return str(self.tensor.sum().item())


class Derived(torch.Tensor if torch else object):
    pass


@skip_without_torch
class OwnCalls(unittest.TestCase):
    def setUp(self):
        self.x = torch.arange(600, dtype=torch.float32).reshape(300, 2)
        str(self.x)  # torch imports late

    def observed(self, work, **options):
        """Operators, ranges and memory by name, and the arguments of the scopes "s"."""
        prof.profiler.clear()
        with prof.torch.profile(**options) as p:
            work()
        events = p.events()
        found = {e.key: e.count for e in p.key_averages(group_by_input_shape=False)}
        return found, [e.kwinputs for e in events if e.name == "s"]

    def test_a_tensor_is_its_type_and_shape(self):
        sparse = torch.eye(3, dtype=torch.float64).to_sparse()
        given = {
            "plain": (self.x, "float32[300, 2]"),
            "number": (torch.tensor(1), "int64[]"),
            "derived": (self.x.as_subclass(Derived), "float32[300, 2]"),
            "parameter": (torch.nn.Parameter(self.x), "float32[300, 2]"),
            "meta": (torch.empty(1, 0, 2, dtype=torch.bool, device="meta"), "bool[1, 0, 2]"),
            "sparse": (sparse, "float64[3, 3]"),
        }

        def work():
            with prof.scope("s", **{key: value for key, (value, _) in given.items()}):
                pass

        found, arguments = self.observed(work)
        self.assertEqual(found, {"s": 1})
        self.assertEqual(arguments, [{key: text for key, (_, text) in given.items()}])

    def test_a_tensor_without_a_readable_shape_is_its_type(self):
        class NoType(Derived):
            @property
            def dtype(self):
                raise RuntimeError("no type")

        rows = [torch.ones(1, dtype=torch.float64), torch.ones(2, dtype=torch.float64)]
        given = {
            "nested": (torch.nested.nested_tensor(rows), "float64"),
            "later": (torch.nn.UninitializedParameter(), "float32"),
            "none": (self.x.as_subclass(NoType), "<no text>"),
        }
        values = {key: value for key, (value, _) in given.items()}

        def work():
            with prof.scope("s", **values):
                pass
            with prof._slow.Scope("s", "operator", 1, values):
                pass

        for value in (values["nested"], values["later"]):
            with self.assertRaises(RuntimeError):
                value.shape
        found, arguments = self.observed(work)
        self.assertEqual(found, {"s": 2})
        self.assertEqual(arguments, [{key: text for key, (_, text) in given.items()}] * 2)

    def test_the_slower_class_does_the_same(self):
        def work():
            with prof._slow.Scope("s", "operator", 1, {"x": self.x, "all": [self.x]}):
                pass
            with prof._slow.Scope("s", "operator", 1, {"shown": Shown(self.x)}):
                pass
            prof.marks._counter_slowly("c", self.x[0, 1])

        found, (first, second) = self.observed(work)
        self.assertEqual(first["x"], "float32[300, 2]")
        self.assertTrue(first["all"].startswith("[tensor("), first)
        self.assertEqual(second, {"shown": "179700.0"})
        self.assertEqual((found["aten::select"], found["aten::item"]), (2, 1))

    def test_errors_that_show_a_tensor(self):
        """An error has the text of the wrong value. prof makes it, not the program."""
        wrong = [self.x]
        calls = (
            (prof.scope, (self.x,), "scope() name must be a str"),
            (prof.scope, ("s", wrong), "scope() category must be a str"),
            (prof.scope, ("s", "operator", wrong), "scope() level must be an int"),
            (prof._slow.scope, ("s", "operator", wrong), "scope() level must be an int"),
            (prof.record_function, (self.x,), "record_function() name must be a str"),
            (prof.instant, (wrong,), "instant() name must be a str"),
            (prof.counter, (wrong, 1), "counter() name must be a str"),
            (prof.counter, ("c", wrong), "counter() value must be a number"),
            (prof.marks._counter_slowly, ("c", wrong), "counter() value must be a number"),
            (prof.set_thread_name, (self.x,), "name must be a str"),
            (prof.trace_module, (wrong,), "trace_module() takes a module"),
            (prof.Device, (self.x,), "a device is named by a str"),
            (
                lambda wrong: prof.profile(schedule=wrong),
                (wrong,),
                "schedule must be something to call, or None",
            ),
        )
        self.assertGreater(self.observed(lambda: repr(wrong))[0]["aten::select"], 1)
        for function, arguments, text in calls:

            def work(function=function, arguments=arguments, text=text):
                with self.assertRaises(TypeError) as raised:
                    function(*arguments)
                self.assertIn(f"{text}, not ", str(raised.exception))
                self.assertIn("tensor([[", str(raised.exception))

            with self.subTest(text, function=function):
                self.assertEqual(self.observed(work)[0], {})

    def test_a_level_that_is_a_tensor(self):
        one = torch.ones((), dtype=torch.int32)
        for make in prof.scope, prof._slow.scope:

            def work(make=make):
                with make("s", level=one):
                    pass

            self.assertEqual(self.observed(work)[0], {"s": 1}, make)

    def test_metadata_that_is_a_tensor(self):
        with prof.torch.profile() as p:
            p.add_metadata("x", [self.x])
        self.assertEqual([e.name for e in p.events()], [])

    def test_operators_of_texts_and_numbers(self):
        model = torch.nn.Linear(2, 2)
        at = self.x[0, 1]

        def work():
            with prof.scope("s", all=[self.x], by_name={"x": self.x}, model=model):
                pass
            prof.instant("i", x=self.x, all=(self.x,))
            prof.counter("c", at)

        for options in {}, {"with_stack": True}, {"profile_memory": True}, {"record_shapes": True}:
            found, arguments = self.observed(work, **options)
            self.assertEqual(found, {"s": 1}, options)
            self.assertTrue(arguments[0]["all"].startswith("[tensor("), arguments)

    def test_operators_of_the_programs_own_text_and_those_that_follow(self):
        shown = Shown(self.x)

        def work():
            with prof.scope("s", x=[self.x], shown=shown):
                self.x.sum()
            self.x.sum()

        found, arguments = self.observed(work)
        self.assertEqual((found["aten::sum"], found["aten::item"]), (3, 1))
        self.assertEqual(arguments[0]["shown"], "179700.0")

    def test_behind_a_text_that_raises(self):
        class Bad(list):
            def __repr__(self):
                raise ValueError

        def work():
            with prof.scope("s", x=[self.x, Bad()]):
                self.x.sum()

        found, arguments = self.observed(work)
        self.assertEqual((found["aten::sum"], arguments), (1, [{"x": "<no text>"}]))

    def test_a_scope_at_the_recursion_limit(self):
        """The text may fail there, and the scope does not."""
        errors = []

        def fall():
            try:
                with prof.scope("s", x=[1]):
                    pass
            except RecursionError as e:
                errors.append(e)
            try:
                fall()
            except RecursionError:
                pass

        self.observed(fall)
        self.assertEqual(errors, [])

    def test_torch_compile_compiles_none_of_prof(self):
        from torch._dynamo import convert_frame

        def work(x):
            with prof.scope("s", x=[x], half=fractions.Fraction(1, 2)):
                return x + 1

        def compile_frame(code, *args, **options):
            compiled.append(code)
            return compile_by_torch(code, *args, **options)

        compiled, compile_by_torch = [], convert_frame.compile_frame
        torch._dynamo.reset()
        with unittest.mock.patch.object(convert_frame, "compile_frame", compile_frame):
            self.observed(lambda: torch.compile(work, backend="eager")(self.x))
        self.assertIn(work.__code__, compiled)
        package = os.path.dirname(prof.__file__)
        of_prof = [c.co_name for c in compiled if c.co_filename.startswith(package)]
        self.assertEqual(of_prof, [])

    def test_another_thread_is_not_silent(self):
        x = self.x

        class Waits(list):
            """Its text is made while the other thread works."""

            def __repr__(self):
                thread = threading.Thread(target=lambda: torch.add(x, x))
                thread.start()
                thread.join()
                return "text"

        def work():
            with prof.scope("s", x=[Waits()]):
                pass

        prof.profiler.clear()
        config = {"profile_all_threads": True}
        with prof.torch.profile(experimental_config=config) as p:
            work()
        self.assertEqual(calls_of((e.name,) for e in p.events()).get("aten::add"), 1)

    def test_functions_of_texts(self):
        def run():
            with prof.scope("s", x=self.x, all=[self.x]):
                pass
            prof.counter("c", self.x[0, 1])

        for options in (
            {"standard_library": True, "c_functions": True},
            {"include": "torch", "c_functions": True},
        ):
            prof.profiler.clear()
            with prof.profile(), prof.trace_functions(**options):
                run()
            with prof.Trace.now() as trace:
                kinds = ("python_function", "c_function")
                found = [e.name for e in trace.events() if e.category in kinds]
            whole = [name.rpartition(".")[2] for name in found]
            self.assertEqual(whole, ["run"] if "include" not in options else [], options)

    def test_the_proof_of_torch(self):
        done = subprocess.run(
            [sys.executable, "-c", PROVEN],
            env=dict(os.environ),
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            check=True,
        )
        self.assertEqual(done.stdout.splitlines(), ["['run']", "['MainThread']"], done.stderr)


if __name__ == "__main__":
    unittest.main()
