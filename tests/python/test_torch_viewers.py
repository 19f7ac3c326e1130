"""PyTorch's own programs in the viewers that PyTorch's users have. Two ranks train, seen by
prof.torch.observe(). Perfetto's and catapult's engines, TensorBoard's plug-in and HTA show them.
Each is compared with what the profile itself says. make test-torch; what is not on the machine, or
cannot be fetched, is skipped."""

import collections
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

from hang_guard import HANG_SECONDS

import prof

prof.torch  # before torch
try:
    import torch
except ImportError:
    torch = None

HERE = pathlib.Path(__file__).resolve().parent
VIEWERS = HERE.parent / "viewers"
RANKS = ("0", "1")
sys.path.insert(0, str(HERE))


def fetched(script):
    """What it prints, or a skip."""
    done = subprocess.run(
        [str(VIEWERS / script)], capture_output=True, text=True, timeout=2 * HANG_SECONDS
    )
    if done.returncode != 0:
        raise unittest.SkipTest(f"{script}: {done.stderr.strip()[-200:]}")
    return done.stdout.split()[-1]


def train(folder, **variables):
    """Both ranks' traces and what their profiles said."""
    started = [
        subprocess.Popen(
            [sys.executable, str(HERE / "torch_ranks.py"), str(folder)],
            env={**os.environ, **variables, "RANK": rank, "WORLD_SIZE": "2"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in RANKS
    ]
    for process in started:
        try:
            _, errors = process.communicate(timeout=HANG_SECONDS)
        finally:
            process.kill()
        assert process.returncode == 0, errors[-2000:]
    paths = {rank: next((folder / "runs").glob(f"node_{rank}.*")) for rank in RANKS}
    return paths, {
        rank: json.loads((folder / f"seen_{rank}.json").read_text(encoding="utf-8"))
        for rank in RANKS
    }


class Ranks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        preload = os.path.join(os.path.dirname(prof.torch.collector()), "libprof_memory.so")
        cls.has_memory = os.path.exists(preload)  # it is no part of the wheel
        cls.paths, cls.seen = train(
            pathlib.Path(cls.folder.name),
            **({"LD_PRELOAD": preload, "PROF_MEMORY": "1"} if cls.has_memory else {}),
        )

    @classmethod
    @functools.lru_cache(maxsize=None)
    def read(cls, script):
        done = subprocess.run(
            [
                fetched("fetch-readers.sh"),
                str(VIEWERS / script),
                os.path.join(cls.folder.name, "runs"),
            ],
            env={**os.environ, "HTA_DISABLE_NS_ROUNDING": "1"},
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    def calls(self, rank):
        return {name: count for name, (count, *_) in self.seen[rank]["averages"].items()}

    def calls_of_events(self, rank):
        """(calls, us) by name."""
        found = collections.defaultdict(lambda: [0, 0.0])
        for name, start, end in self.seen[rank]["events"]:
            found[name][0] += 1
            found[name][1] += end - start
        return found

    def test_both_engines_count_the_captures_slices(self):
        if not shutil.which("node"):
            self.skipTest("node is missing: apt-get install nodejs")
        engines = fetched("fetch-engines.sh")
        sys.path.insert(0, str(VIEWERS))
        import check_trace

        for rank, path in self.paths.items():
            document, phases = check_trace.check_chrome(path, engines, is_part=True)
            self.assertEqual(document["distributedInfo"]["rank"], int(rank))
            names = collections.Counter(
                e["name"] for e in document["traceEvents"] if e["ph"] == "X"
            )
            self.assertEqual(names, collections.Counter(self.seen[rank]["slices"]))
            slices, *_ = check_trace.ask_perfetto(engines, path)
            self.assertEqual(len(slices), phases["X"] + phases["i"])
            for name in (
                "aten::conv2d",
                "ConvolutionBackward0",
                "Optimizer.step#SGD.step",
                "nn.Module: Conv2d_0",
                "gloo:all_reduce",
            ):
                self.assertEqual(names[name], 3, name)

    def test_tensorboard_fills_its_views(self):
        profiles = {p["worker"]: p for p in self.read("read_tensorboard.py")}
        self.assertEqual(sorted(profiles), ["All", "node_0", "node_1"])
        for rank, path in self.paths.items():
            shown, calls = profiles[f"node_{rank}"], self.calls_of_events(rank)
            self.assertEqual(
                shown["views"],
                [
                    "overall",
                    "operator",
                    "trace",
                    *(["memory"] if self.has_memory else []),
                    "module",
                ],
            )
            self.assertEqual(shown["steps"], ["1", "2", "3"])
            self.assertEqual(
                shown["parts"], ["Step", "Communication", "DataLoader", "CPU Exec", "Other"]
            )
            self.assertEqual(shown["trace view"], path.stat().st_size)
            steps = sorted(
                (start, end)
                for name, start, end in self.seen[rank]["events"]
                if name == "ProfilerStep*"
            )
            for costs, (start, end) in zip(shown["costs"], steps):
                self.assertAlmostEqual(sum(costs), end - start, delta=1)
            self.assertAlmostEqual(
                shown["average"]["Average Step Time"], calls["ProfilerStep*"][1] / 3, delta=1
            )
            self.assertEqual(
                calls["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"][0], 3
            )
            # of a user_annotation, which it is in torch.profiler's traces, too, the plug-in makes
            # no event but of steps
            self.assertEqual([costs[1] for costs in shown["costs"]], [0, 0, 0])
            missing = {name for name in calls if name not in shown["operators"]}
            for name in missing:  # these it shows elsewhere, or takes for no operators
                self.assertRegex(
                    name,
                    r"^(ProfilerStep\*|nn\.Module|Optimizer\.|enumerate\(DataLoader\)|"
                    r"DistributedDataParallel\.forward|gloo:)",
                )
            for name, row in shown["operators"].items():
                self.assertEqual(row["calls"], calls[name][0], name)
                self.assertAlmostEqual(
                    row["host_total_duration"], calls[name][1], delta=1, msg=name
                )
            self.assertGreater(len(shown["operators"]), 40)

    def test_tensorboards_modules(self):
        for profile in self.read("read_tensorboard.py"):
            if profile["worker"] == "All":
                continue
            averages = self.seen[profile["worker"][-1]]["averages"]
            (whole,) = profile["modules"]["data"]
            (layers,) = whole["children"]
            conv, inner, flatten, linear = layers["children"]
            self.assertEqual(
                [
                    m["name"]
                    for m in (whole, layers, conv, inner, *inner["children"], flatten, linear)
                ],
                [
                    "DistributedDataParallel_0",
                    "Sequential_0",
                    "Conv2d_0",
                    "Sequential_1",
                    "BatchNorm2d_0",
                    "ReLU_0",
                    "Flatten_0",
                    "Linear_0",
                ],
            )
            for module in (whole, layers, conv, inner, flatten, linear):
                count, total, _ = averages["nn.Module: " + module["name"]]
                self.assertEqual((module["occurences"], count), (3, 3))
                self.assertAlmostEqual(module["host_duration"], total, delta=2)
            self.assertEqual(conv["operators"], 3)  # aten::conv2d alone

    def test_tensorboards_memory(self):
        if not self.has_memory:
            self.skipTest("libprof_memory.so is not beside the library")
        for profile in self.read("read_tensorboard.py"):
            if profile["worker"] == "All":
                continue
            rows = {row[0]: row[1:] for row in profile["memory"]["CPU"]}
            calls, increase, _, count, _, allocated, _ = rows["aten::conv2d"]
            tensor = 4 * 4 * 8 * 14 * 14
            self.assertEqual(calls, 3)
            self.assertGreaterEqual(increase, 3 * tensor)
            self.assertGreaterEqual(allocated, increase)
            self.assertGreaterEqual(count, 3)
            self.assertTrue(profile["curve"]["CPU"] and profile["events"]["CPU"])

    def test_tensorboards_ranks(self):
        (both,) = (p for p in self.read("read_tensorboard.py") if p["worker"] == "All")
        self.assertEqual(both["views"], ["distributed"])
        for rank in RANKS:
            operators = {row[0]: row[1] for row in both["operators"][f"node_{rank}"]}
            self.assertEqual(
                operators,
                {name: self.calls(rank)[name] for name in ("gloo:all_reduce", "gloo:broadcast")},
            )
            self.assertEqual(len(both["overlap"]), 4)

    def test_hta_reads_both(self):
        found = self.read("read_hta.py")
        self.assertEqual((sorted(found["ranks"]), found["steps"]), (list(RANKS), [1, 2]))
        for rank in RANKS:
            first = collections.Counter(
                name for name, _, step, *_ in found["ranks"][rank] if step in (1, 2)
            )
            self.assertEqual((first["aten::conv2d"], first["ConvolutionBackward0"]), (2, 2))


class Example(unittest.TestCase):
    def test_resnet18(self):
        try:
            import torchvision  # noqa: F401
        except ImportError:
            self.skipTest("torchvision is not installed")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "resnet18.json")
            done = subprocess.run(
                [
                    sys.executable,
                    str(HERE.parent.parent / "examples" / "python" / "resnet18.py"),
                    path,
                ],
                capture_output=True,
                text=True,
                timeout=HANG_SECONDS,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(path, encoding="utf-8") as f:
                names = collections.Counter(
                    e["name"] for e in json.load(f)["traceEvents"] if e["ph"] == "X"
                )
        self.assertIn("aten::mkldnn_convolution", done.stdout)
        self.assertEqual(
            [
                names[name]
                for name in (
                    "aten::conv2d",
                    "aten::batch_norm",
                    "aten::max_pool2d",
                    "nn.Module: ResNet_0",
                    "nn.Module: BasicBlock_7",
                )
            ],
            [20, 20, 1, 1, 1],
        )


class Modules(unittest.TestCase):
    """observe(with_modules=True)."""

    def setUp(self):
        self.model = torch.nn.Sequential(
            torch.nn.Linear(4, 4),
            torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(4, 4)),
            torch.nn.ReLU(),
        )
        self.x = torch.ones(2, 4)

    def tearDown(self):
        hooks = sys.modules["torch.nn.modules.module"]
        self.assertFalse(hooks._global_forward_hooks or hooks._global_forward_pre_hooks)
        self.assertFalse(torch.autograd._profiler_enabled())

    @staticmethod
    def seen(p):
        """(name, the module around it) in the order of begins."""
        found = []
        for e in sorted(p.events(), key=lambda e: e.time_range.start):
            if e.name.startswith("nn.Module: "):
                around = e.cpu_parent
                while around is not None and not around.name.startswith("nn.Module: "):
                    around = around.cpu_parent
                found.append((e.name, around and around.name))
        return found

    def test_names_and_nesting_are_torch_profilers(self):
        with prof.profile() as p, prof.torch.observe(with_modules=True):
            for _ in range(2):
                self.model(self.x)
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True
        ) as theirs:
            for _ in range(2):
                self.model(self.x)
        with tempfile.TemporaryDirectory() as folder:
            theirs.export_chrome_trace(os.path.join(folder, "theirs.json"))
            with open(os.path.join(folder, "theirs.json"), encoding="utf-8") as f:
                rows = sorted(
                    (e for e in json.load(f)["traceEvents"] if e["name"].startswith("nn.Module: ")),
                    key=lambda e: e["ts"],
                )
        wanted, open_calls = [], []
        for row in rows:
            while open_calls and open_calls[-1]["ts"] + open_calls[-1]["dur"] <= row["ts"]:
                open_calls.pop()
            wanted.append((row["name"], open_calls[-1]["name"] if open_calls else None))
            open_calls.append(row)
        self.assertEqual(self.seen(p), wanted)
        self.assertEqual(len(wanted), 12)

    def test_the_results_are_the_same_bits(self):
        plain = self.model(self.x)
        with prof.profile(), prof.torch.observe(with_modules=True):
            observed = self.model(self.x)
        with prof.torch.observe(with_modules=True):
            nobody_records = self.model(self.x)
        for other in (observed, nobody_records):
            self.assertEqual(plain.detach().numpy().tobytes(), other.detach().numpy().tobytes())

    def test_behind_an_exception_and_an_interrupt(self):
        class Fails(torch.nn.Module):
            def forward(self, x):
                raise x

        fails = torch.nn.Sequential(Fails())
        with prof.profile() as p, prof.torch.observe(with_modules=True):
            for error in (ValueError, KeyboardInterrupt):
                with self.assertRaises(error):
                    fails(error())
                self.model[0](self.x)
        found = self.seen(p)
        self.assertEqual(
            found[:3],
            [
                ("nn.Module: Sequential_0", None),
                ("nn.Module: Fails_0", "nn.Module: Sequential_0"),
                ("nn.Module: Linear_0", None),
            ],
        )
        self.assertEqual(len(found), 6)
        # those of the interrupt ended with observe()
        self.assertFalse([e.name for e in p.events() if e.is_open])

    def test_modules_that_compare_as_they_like(self):
        class Odd(torch.nn.Module):
            def __eq__(self, other):
                raise ZeroDivisionError

            def forward(self, x):
                return x * 2

        model = torch.nn.ModuleDict({"a": Odd(), "b": Odd()})
        with prof.profile(torch=True, with_modules=True) as p:
            y = model["b"](model["a"](self.x))
        self.assertTrue(torch.equal(y, self.x * 4))
        self.assertEqual(self.seen(p), [("nn.Module: Odd_0", None), ("nn.Module: Odd_1", None)])

    def test_a_profile_with_modules(self):
        with prof.profile(torch=True, with_modules=True) as p:
            self.model(self.x)
        with prof.profile(torch=True) as without:
            self.model(self.x)
        self.assertTrue([a.key for a in p.key_averages() if a.key.startswith("nn.Module: ")])
        self.assertEqual(
            [a.key for a in without.key_averages() if a.key.startswith("nn.Module: ")], []
        )

    def test_another_thread_is_not_observed(self):
        with prof.profile() as p, prof.torch.observe(with_modules=True):
            thread = threading.Thread(target=self.model, args=(self.x,))
            thread.start()
            thread.join()
        self.assertEqual(self.seen(p), [])

    def test_what_torch_compile_has_made_computes_the_same(self):
        compiled, plain = torch.compile(self.model, backend="eager"), self.model(self.x)
        with prof.profile() as p, prof.torch.observe(with_modules=True), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch says that the hooks see its own module, too
            self.assertTrue(torch.equal(compiled(self.x), plain))
        self.assertEqual(self.seen(p), [("nn.Module: OptimizedModule_0", None)])

    def test_a_start_that_fails_leaves_no_hooks(self):
        with torch.autograd.profiler.emit_itt(), self.assertRaisesRegex(RuntimeError, "emit_itt"):
            prof.torch.observe(with_modules=True).start()
        with prof.profile() as p:
            self.model(self.x)
        self.assertEqual(self.seen(p), [])


if torch is None:
    del Ranks, Example, Modules

    class Torch(unittest.TestCase):
        def test_with_torch(self):
            self.skipTest("torch is not installed for this Python")


if __name__ == "__main__":
    unittest.main()
