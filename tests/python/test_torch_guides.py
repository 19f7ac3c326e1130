"""The snippets of examples/python/guides beside torch.profiler: each runs in this process on prof,
and again with torch.profiler's names in its import. Their tables, rows, calls, memory, FLOPs,
stacks and traces are compared. docs/reference/guides.md lists what differs. make test-torch."""

import collections
import functools
import inspect
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
from pathlib import Path

from beside_torch import skip_without_torch, torch
from guide_snippets import FOLDER, Run, calls, on_torch, snippets
from hang_guard import HANG_SECONDS
from text_tables import tables

import prof

try:
    import torchvision
except ImportError:
    torchvision = None

SHAPE = "5, 3, 224, 224"
SMALL = "2, 3, 64, 64"
FULL_SIZE = ("execution_time", "by_shape", "memory")
"""Snippets of DeepLink's whose figures the guide names. The others run on small pictures."""

APART = ("distributed", "memory_bottlenecks", "profiler_hook", "tutorial")
"""Snippets with a test of their own, here or in test_tutorials.py."""

CALLS_OF_RESNET18 = {"aten::conv2d": 20, "aten::batch_norm": 20, "aten::max_pool2d": 1}


def has_parameter(function, name):
    return name in inspect.signature(function).parameters


def adds_up_cycles():
    """Torch before acc_events keeps the events of all cycles. Later ones do so where asked to."""
    return not has_parameter(torch.profiler.profile, "acc_events")


def rounds_times():
    """Torch up to 2.4 finds an operator's memory by times in us, as floats: at today's date they
    are wrong by up to 0.25 us. An allocation near an operator's end may count for another
    operator."""
    accelerator = torch.autograd.profiler_util.MemRecordsAcc
    return has_parameter(accelerator.in_interval, "start_us")


def of_torch():
    """Names of snippets that have a model of PyTorch."""
    found = [name for name in snippets() if name.endswith(".py") and not name.startswith("raf/")]
    return [name for name in found if not any(word in name for word in APART)]


def smaller(name):
    is_small = not any(Path(name).stem == word for word in FULL_SIZE)
    return lambda source: source.replace(SHAPE, SMALL) if is_small else source


def without_numbers(text):
    return re.sub(r"\d+", "N", text)


def phases(text):
    """How often each operator, range and end of an arrow is in a trace, by category and name."""
    functions = ("python_function", "c_function")
    found = [e for e in json.loads(text)["traceEvents"] if e["ph"] in "Xsf"]
    found = [(e.get("cat"), e["name"], e["ph"]) for e in found]
    return collections.Counter(key for key in found if key[0] not in functions)


def arguments(text):
    """What traces say of each operator's inputs. Sequence numbers run on: which have one."""
    keys = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
    found = collections.Counter()
    for event in json.loads(text)["traceEvents"]:
        if event.get("cat") == "cpu_op" and event["ph"] == "X":
            args = event["args"]
            given = tuple(json.dumps(args.get(key)) for key in keys)
            found[(event["name"], "Sequence number" in args, *given)] += 1
    return found


def without_steps(counts):
    return collections.Counter(
        {key: n for key, n in counts.items() if not key[1].startswith("ProfilerStep#")}
    )


def plain(frame):
    """A frame without the address that torch.profiler's have where a function is of C. Also without
    the class: there it is the object's, here it would be the one that defines the method."""
    return re.sub(r"([ _])of\1\S+\1object(?:\1at[ _]0x[0-9a-f]+)?", "", frame)


def ways(text):
    """The stacks of an exported file. Of a function that ran already when the profile began torch
    says the line where it stood, and prof its first."""
    lines = (line.rsplit(" ", 1)[0].split(";") for line in text.decode().splitlines())
    return {tuple(re.sub(r"\(\d+\)", "", plain(frame)) for frame in stack) for stack in lines}


def nested_in_themselves(profile):
    """Names of calls inside of a call of the same name."""
    found = set()
    for event in profile.events():
        around = event.cpu_parent
        while around is not None and around.name != event.name:
            around = around.cpu_parent
        if around is not None:
            found.add(event.name)
    return found


def with_plain_stacks(found):
    clean = collections.Counter()
    for (name, shapes, stack, *more), count in found.items():
        clean[(name, shapes, tuple(map(plain, stack)), *more)] += count
    return clean


@skip_without_torch
@unittest.skipIf(torchvision is None, "torchvision is not installed for this Python")
class Beside(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        model = torchvision.models.resnet18()
        model(torch.randn(2, 3, 64, 64))
        shared = unittest.mock.patch.object(torchvision.models, "resnet18", lambda: model)
        shared.start()
        cls.addClassCleanup(shared.stop)

    @staticmethod
    def cycles_as_torch():
        words = prof.session.profile.__init__.__kwdefaults__
        return unittest.mock.patch.dict(words, acc_events=words["acc_events"] or adds_up_cycles())

    def both(self, name, change=lambda source: source):
        """What it is on prof and on torch.profiler. The first time torch makes things once."""
        profile = torch.profiler.profile
        theirs = functools.partial(Run, name, profile, lambda source: on_torch(change(source)))
        if not name.startswith("deeplink/"):
            theirs()
        with self.cycles_as_torch():
            mine = Run(name, prof.profile, change)
        return mine, theirs()

    def compare(self, name):
        mine, theirs = self.both(name, smaller(name))
        self.assertEqual(len(mine.tables), len(theirs.tables))
        for one, other in zip(mine.tables, theirs.tables):
            self.compare_tables(one, other)
        if not mine.tables:
            self.assertEqual(mine.text, theirs.text)
        for one, other in zip(mine.made, theirs.made):
            self.compare_rows(one, other)
        self.compare_files(mine.files, theirs.files)
        self.seen = mine

    def compare_tables(self, mine, theirs):
        self.assertEqual(mine.columns, theirs.columns)
        self.assertEqual(len(mine.rows), len(theirs.rows))
        self.assertEqual(without_numbers(mine.footer)[:22], without_numbers(theirs.footer)[:22])
        self.assertEqual(len(mine.lengths), 1)

    def compare_rows(self, mine, theirs):
        """Of all rows that the profile has, also beyond a table's row_limit."""
        profile = theirs.profile
        self.assertEqual(mine.words, theirs.words)
        has_memory = bool(profile.profile_memory) and not rounds_times()
        more = ("self_cpu_memory_usage",) * has_memory
        more += ("flops",) * bool(profile.with_flops)
        found = [with_plain_stacks(calls(made.rows, *more)) for made in (mine, theirs)]
        self.same(*found)
        if has_memory:  # torch's totals have the inner calls of a recursion again
            left_out = nested_in_themselves(profile)
            totals = [
                calls([row for row in made.rows if row.key not in left_out], "cpu_memory_usage")
                for made in (mine, theirs)
            ]
            self.same(*totals)

    def same(self, mine, theirs):
        """Shows what one has alone."""
        self.assertEqual((mine - theirs, theirs - mine), ({}, {}))

    def compare_files(self, mine, theirs):
        names = [sorted(map(without_numbers, files)) for files in (mine, theirs)]
        self.assertEqual(*names)
        for name, other in zip(sorted(mine), sorted(theirs)):
            if name.endswith(".json"):
                one, wanted = phases(mine[name]), phases(theirs[other])
                if wanted == without_steps(wanted):  # without a schedule prof alone marks steps
                    one = without_steps(one)
                self.same(one, wanted)
                self.same(arguments(mine[name]), arguments(theirs[other]))
            else:  # prof's lines end in the name of what was called
                found = {way[:-1] for way in ways(mine[name])}
                self.assertLessEqual(found, ways(theirs[other]))
                self.assertEqual(bool(found), bool(theirs[other]))

    def test_resnet18(self):
        for name in ("execution_time", "by_shape"):
            with self.subTest(name):
                self.compare(f"deeplink/{name}.py")
                rows = self.seen.made[0].rows
                counts = collections.Counter()
                for row in rows:
                    counts[row.key] += row.count
                self.assertEqual({key: counts[key] for key in CALLS_OF_RESNET18}, CALLS_OF_RESNET18)
                self.assertEqual(counts["model_inference"], 1)
        shapes = {row.key: [] for row in rows}
        for row in rows:
            shapes[row.key].append((row.count, row.input_shapes))
        guide = [[5, 64, 56, 56], [64, 64, 3, 3], [], [], [], [], []]
        self.assertIn((4, guide), shapes["aten::conv2d"])
        self.assertIn((1, [[5, 3, 224, 224], [64, 3, 7, 7], *guide[2:]]), shapes["aten::conv2d"])

    def test_resnet18s_memory(self):
        """The guide's 94.85 Mb of aten::empty, 94.86 in torch 2.15, and the rows around it, cell by
        cell."""
        mine, theirs = self.both("deeplink/memory.py")
        self.compare_rows(mine.made[0], theirs.made[0])
        columns = ("Name", "CPU Mem", "Self CPU Mem", "# of Calls")
        if rounds_times():
            columns = ("Name", "# of Calls")
        cells = [
            [tuple(row[column] for column in columns) for row in run.tables[0].rows]
            for run in (mine, theirs)
        ]
        self.assertEqual(*cells)
        held = {row["Name"]: row["CPU Mem"] for row in mine.tables[0].rows}
        self.assertIn(held["aten::empty"], ("94.85 MB", "94.86 MB"))

    def test_the_names_are_torchs(self):
        for name in of_torch():
            source = Path(FOLDER, name).read_text("utf-8")
            has_profile = name != "pytorch/no_gpu_events.py"
            found = re.findall(r"(?m)^(?:from|import) prof\b.*", source)
            self.assertEqual(len(found), has_profile, name)
            for line in found:
                self.assertTrue(line.startswith("from prof.torch import "), line)

    def test_memory_bottlenecks(self):
        """pandas and matplotlib are stand-ins: what prof gives them is compared."""
        made = []

        class DataFrame(list):
            def __init__(self, rows):
                super().__init__(rows)
                made.append(self)

            def nlargest(self, count, column):
                found = sorted(self, key=lambda row: row[column], reverse=True)[:count]
                return {name: [row[name] for row in found] for name in found[0]}

        pandas, plot = types.ModuleType("pandas"), unittest.mock.MagicMock()
        pandas.DataFrame = DataFrame
        others = {
            "pandas": pandas,
            "matplotlib": unittest.mock.MagicMock(pyplot=plot),
            "matplotlib.pyplot": plot,
        }
        with unittest.mock.patch.dict(sys.modules, others):
            self.both("pytorch/memory_bottlenecks.py")
        rows = [sorted(map(str, frame)) for frame in made[1:]]
        self.assertEqual(*rows)
        self.assertGreater(len(rows[0]), 3)
        plot.savefig.assert_called_with("memory_usage_by_op.png")

    def test_what_the_guides_ask_for_and_torch_has_not(self):
        """prof raises what torch raises."""
        for module in (torch.profiler, prof.torch):
            with module.profile(profile_memory=True) as p:
                torch.ones(3).neg()
            with self.subTest(module.__name__):
                with self.assertRaises(AttributeError):
                    p.key_averages().filter(lambda row: "conv" in row.key)
                with self.assertRaises(AttributeError):
                    p.events()[0].device
                with self.assertRaises(AssertionError):
                    p.export_stacks("stacks.txt", "self_cuda_time_total")

    def test_mmengines_hook(self):
        """mmengine is a stand-in that makes its profile as mmengine's hook does."""

        class ProfilerHook:
            def __init__(self, **words):
                self.words = words

            def before_run(self):
                activities = torch.profiler.ProfilerActivity
                self.profiler = torch.profiler.profile(
                    activities=[activities.CPU],
                    schedule=torch.profiler.schedule(wait=1, warmup=1, active=3, repeat=1),
                    on_trace_ready=lambda p: p.export_chrome_trace(self.words["json_trace_path"]),
                )
                self.profiler.__enter__()

        class Runner:
            def register_custom_hooks(self, hooks):
                (self.hook,) = hooks

            def train(self):
                self.hook.before_run()
                for _ in range(self.hook.words["profile_times"]):
                    torch.nn.functional.conv2d(torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3))
                    self.hook.profiler.step()
                self.hook.profiler.__exit__(None, None, None)

        hooks = types.ModuleType("mmengine.hooks")
        hooks.ProfilerHook = ProfilerHook
        others = {"mmengine": types.ModuleType("mmengine"), "mmengine.hooks": hooks}
        theirs, runner = torch.profiler.profile, Runner()
        self.addCleanup(prof.torch.uninstall)
        with unittest.mock.patch.dict(sys.modules, others), tempfile.TemporaryDirectory() as folder:
            run = Run("deeplink/profiler_hook.py", prof.profile)
            before = os.getcwd()
            os.chdir(folder)
            try:
                run.variables["profiled"](runner)
            finally:
                os.chdir(before)
            (path,) = Path(folder).iterdir()
            counts = phases(path.read_bytes())
        self.assertEqual(path.name, "mobilenetv2_profiler-slow.json")
        self.assertEqual(counts["cpu_op", "aten::conv2d", "X"], 3)
        self.assertIsInstance(runner.hook.profiler, prof.profile)
        prof.torch.uninstall()
        self.assertIs(torch.profiler.profile, theirs)

    @unittest.skipUnless(os.environ.get("PROF_LONG") == "1", "make test-torch: 40 s, six processes")
    def test_distributed_training(self):
        """mp.spawn() imports the script anew, so it is a program of its own."""
        source = Path(FOLDER, "pytorch/distributed.py").read_text("utf-8")
        found = []
        with tempfile.TemporaryDirectory() as folder:
            for text in (source, on_torch(source)):
                path = Path(folder, "script.py")
                path.write_text(text, "utf-8")
                with socket.create_server(("localhost", 0)) as free:
                    port = str(free.getsockname()[1])
                done = subprocess.run(
                    [sys.executable, str(path)],
                    capture_output=True,
                    text=True,
                    timeout=HANG_SECONDS,
                    env={**os.environ, "MASTER_PORT": port},
                )
                self.assertEqual(done.returncode, 0, done.stderr)
                (table,) = tables(done.stdout)
                found.append(table)
        self.compare_tables(*found)
        cells = [{row["Name"]: row["# of Calls"] for row in table.rows} for table in found]
        for name in cells[0].keys() & cells[1].keys():
            self.assertEqual(cells[0][name], cells[1][name], name)
        self.assertEqual(cells[0]["DistributedDataParallel.forward"], "10")


def _add_tests():
    """A test for each of the other snippets."""
    for name in of_torch():
        if Path(name).stem in FULL_SIZE and name.startswith("deeplink/"):
            continue
        title = "test_" + re.sub(r"\W", "_", name[: -len(".py")])
        setattr(Beside, title, functools.partialmethod(Beside.compare, name))


_add_tests()

if __name__ == "__main__":
    unittest.main()
