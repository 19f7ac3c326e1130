"""PyTorch in a script that does not know of prof, by python -m prof run, and
prof.torch.observe(profile_all_threads=True), with the real torch. Operators of all threads and
processes appear once each, and the script computes the same bits. make test-torch."""

import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from beside_torch import (
    skip_without_torch,
)
from hang_guard import HANG_SECONDS


def rows(p):
    return {a.key: a.count for a in p.key_averages()}


TRAINS = """
import hashlib, sys, threading
import torch
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    optimizer.zero_grad()
    model(torch.randn(3, 8)).square().mean().backward()
    optimizer.step()
step()
thread = threading.Thread(target=step)
thread.start()
thread.join()
weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
digest = hashlib.sha256(weights).hexdigest()
print(digest, sys.argv, type(torch.__loader__).__name__, torch.__spec__.loader is torch.__loader__)
sys.exit(3)
"""


CHILDREN = """
import multiprocessing, subprocess, sys
def work(n):
    import torch
    for _ in range(n): torch.ones(2).sin()
    return n
if __name__ == "__main__":
    if sys.argv[1] == "torch": import torch
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(pool.map(work, [2]))
    subprocess.run([sys.executable, "-c", "import torch; torch.ones(2).cos()"], check=True)
"""


LOADER = """
import torch
class Squares(torch.utils.data.Dataset):
    def __len__(self): return 8
    def __getitem__(self, i): return torch.tensor(float(i)).square()
if __name__ == "__main__":
    for context in ("fork", "spawn"):
        options = dict(batch_size=2, num_workers=2, multiprocessing_context=context)
        print(sum(x.sum().item() for x in torch.utils.data.DataLoader(Squares(), **options)))
"""


RANKS = """
import os
import torch, torch.distributed
torch.distributed.init_process_group("gloo")
x = torch.ones(3) * torch.distributed.get_rank()
torch.distributed.all_reduce(x)
os.write(1, f"sum {x.tolist()}\\n".encode())  # of two processes, in one piece
torch.distributed.destroy_process_group()
"""


SPAWNS = """
import sys
import torch, torch.distributed
def work(rank, where):
    torch.set_num_threads(1)
    ours = dict(init_method="file://" + where, rank=1 - rank, world_size=2)
    torch.distributed.init_process_group("gloo", **ours)
    torch.distributed.all_reduce(torch.ones(3) * rank)
    torch.distributed.destroy_process_group()
    for _ in range(rank): torch.ones(3).sin()
if __name__ == "__main__": torch.multiprocessing.spawn(work, args=(sys.argv[1],), nprocs=2)
"""


@skip_without_torch
class Run(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="prof-run-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, text):
        with open(os.path.join(self.folder, "script.py"), "w") as f:
            f.write(text)

    def python(self, *arguments, **variables):
        environment = {**os.environ, "TMPDIR": self.folder, **variables}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )

    def run_script(self, *options, arguments=(), code=0, **variables):
        done = self.python(
            "-m", "prof", "run", "-r", "-1", *options, "script.py", *arguments, **variables
        )
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual([name for name in os.listdir(self.folder) if ".run-" in name], [])
        return done

    def rows(self, table):
        """Calls by name; a row with shapes or a stack counts for its name."""
        found = collections.Counter()
        for line in table.splitlines():
            cells = re.split(r"  +", line.strip())
            if re.match(r"(aten::|nn\.Module|script\.py$)", cells[0]):
                found[cells[0]] += int(next(cell for cell in cells[::-1] if cell.isdigit()))
        return found

    def trace(self, name="trace.json"):
        with open(os.path.join(self.folder, name)) as f:
            return json.load(f)["traceEvents"]

    def test_it_computes_the_same_and_all_threads_are_seen(self):
        self.write(TRAINS)
        plain = self.python("script.py", "a", "--torch")
        ours = self.run_script(
            "--torch",
            "--record-shapes",
            "--with-modules",
            "-o",
            "trace.json",
            arguments=["a", "--torch"],
            code=3,
        )
        self.assertEqual((ours.stdout, plain.returncode), (plain.stdout, 3))
        found = self.rows(ours.stderr)
        self.assertEqual(
            {
                name: found[name]
                for name in (
                    "aten::linear",
                    "aten::relu",
                    "nn.Module: Linear_0",
                    "nn.Module: Sequential_0",
                )
            },
            {
                "aten::linear": 4,
                "aten::relu": 2,
                "nn.Module: Linear_0": 2,
                "nn.Module: Sequential_0": 2,
            },
        )
        events = self.trace()
        self.assertEqual(len({e["tid"] for e in events if e.get("name") == "aten::linear"}), 2)
        arrows = [e for e in events if e["ph"] in "sf" and e.get("cat") == "fwdbwd"]
        self.assertTrue(arrows)
        self.assertEqual(
            collections.Counter(e["ph"] for e in arrows)["s"],
            collections.Counter(e["ph"] for e in arrows)["f"],
        )
        self.assertEqual(
            {str(e["args"]["Input Dims"]) for e in events if e.get("name") == "aten::relu"},
            {"[[3, 4]]"},
        )

    def test_modules_are_rows_behind_a_scripts_own_observe_for_stacks(self):
        self.write(
            "import torch, prof.torch\nmodel, x = torch.nn.Linear(3, 3), torch.ones(1, 3)\n"
            "model(x)\nwith prof.torch.observe(profile_all_threads=True, with_stack=True): "
            "model(x)\nmodel(x)\n"
        )
        self.assertEqual(
            self.rows(self.run_script("--with-modules", "--with-stack").stderr)[
                "nn.Module: Linear_0"
            ],
            3,
        )

    def test_a_row_for_each_shape_and_each_stack(self):
        self.write(
            "import torch\ndef inner(x): return torch.neg(x)\n"
            "for n in (1, 2, 2): inner(torch.ones(n))\n"
        )
        table = self.run_script("--record-shapes", "-b", "name,shape").stderr
        self.assertRegex(table, r"(?m)^aten::neg .* 1 +\[\[1\]\]$")
        self.assertRegex(table, r"(?m)^aten::neg .* 2 +\[\[2\]\]$")
        table = self.run_script("--with-stack", "-b", "name,stack").stderr
        self.assertRegex(
            table, r"(?m)^aten::neg .* 3 .*built-in method neg.*\n +\S*script\.py\(2\)"
        )
        self.assertNotRegex(table, r"(?m)^(inner|.*<module>) ")
        self.assertRegex(
            self.run_script("--with-stack", "--python").stderr, r"(?m)^(script\.)?inner "
        )
        self.assertRegex(
            self.run_script("--with-stack", "-c", "python_function").stderr, r"(?m)^\S*inner "
        )
        table = self.run_script("--with-stack", "-b", "name,stack", "-c", "cpu_op").stderr
        self.assertRegex(
            table, r"(?m)^aten::neg .* 3 .*built-in method neg.*\n +\S*script\.py\(2\)"
        )
        self.assertNotRegex(table, r"(?m)^(script\.py|.*<module>) ")

    def test_flops_are_a_table_of_their_own(self):
        self.write(
            "import torch\nlinear, x = torch.nn.Linear(4, 4), torch.ones(2, 4)\n"
            "for i in range(3): linear(x).mul(2)\n"
        )
        done = self.run_script("--with-flops")  # as torch.profiler's with_flops counts them
        self.assertRegex(
            done.stderr, r"(?m)^name +FLOPs\naten::addmm +192\.000\naten::mul +24\.000$"
        )
        calls = self.rows(done.stderr.partition("\nname  ")[0])
        self.assertEqual(calls["aten::addmm"], 3)
        self.assertNotRegex(self.run_script("--record-shapes").stderr, "FLOPs")
        self.write("import torch\ntorch.ones(2)\n")
        words = "No scope is known to take floating point operations"
        self.assertIn(words, self.run_script("--with-flops").stderr)

    def test_processes_however_they_come(self):
        self.write(CHILDREN)
        for first in ("torch", "later"):
            done = self.run_script("--torch", arguments=[first])
            self.assertEqual(done.stdout, "[2]\n[2]\n")
            found = self.rows(done.stderr)
            self.assertEqual((found["aten::sin"], found["aten::cos"]), (4, 1), done.stderr)

    def test_the_workers_of_a_loader(self):
        self.write(LOADER)
        done = self.run_script("--torch")
        self.assertEqual(done.stdout, "140.0\n140.0\n")
        self.assertEqual(self.rows(done.stderr)["aten::square"], 16, done.stderr)

    def ranks(self, theirs, counted):
        """Of each rank-RANK.json that has the one operator: its rank, the world's size, and how
        often it has the other."""
        found = []
        for name in os.listdir(self.folder):
            if re.fullmatch(r"rank[-.]\d+(\.\d+)?\.json", name):
                with open(os.path.join(self.folder, name)) as f:
                    whole = json.load(f)
                names = collections.Counter(
                    e.get("name") for e in whole["traceEvents"] if e["ph"] == "X"
                )
                if names[theirs]:
                    found.append(
                        (
                            whole["distributedInfo"]["rank"],
                            whole["distributedInfo"]["world_size"],
                            names[counted],
                        )
                    )
        return sorted(found)

    def test_ranks_that_torchrun_starts(self):
        self.write(RANKS)
        done = self.python(
            "-m",
            "prof",
            "run",
            "--torch",
            "-o",
            "rank.json",
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node=2",
            "script.py",
            OMP_NUM_THREADS="1",
        )
        self.assertEqual(
            (done.returncode, done.stdout), (0, 2 * "sum [1.0, 1.0, 1.0]\n"), done.stderr
        )
        self.assertEqual(self.ranks("aten::ones", "aten::mul"), [(0, 2, 1), (1, 2, 1)])

    def test_ranks_that_no_launcher_says(self):
        """Children of torch.multiprocessing.spawn(), which have left their group when they end, and
        end without exit handlers."""
        self.write(SPAWNS)
        self.run_script(
            "--torch",
            "-o",
            "rank.json",
            arguments=[os.path.join(self.folder, "meeting")],
            RANK="",
            WORLD_SIZE="",
        )
        self.assertEqual(self.ranks("c10d::allreduce_", "aten::sin"), [(0, 2, 1), (1, 2, 0)])

    def test_a_script_that_observes_itself(self):
        for text in (
            "import prof, torch\nwith prof.profile(torch=True, record_shapes=True) as p: "
            "torch.ones(3).neg()\nprint([a.count for a in p.key_averages() if a.key == "
            "'aten::neg'], [e.input_shapes for e in p.events() if e.name == 'aten::neg'])",
            "import prof.torch, torch\nwith prof.profile(record_shapes=True) as p, "
            "prof.torch.observe(record_shapes=True, profile_all_threads=True): "
            "torch.ones(3).neg()\nprint([a.count for a in p.key_averages() if a.key == "
            "'aten::neg'], [e.input_shapes for e in p.events() if e.name == 'aten::neg'])",
        ):
            self.write(text)
            self.assertEqual(self.python("script.py").stdout, "[1] [[[3]]]\n")
            done = self.run_script("--torch")
            self.assertEqual(done.stdout, "[1] [[[3]]]\n")
            self.assertEqual(self.rows(done.stderr)["aten::neg"], 1)

    def test_torch_profiler_in_the_script(self):
        self.write(
            "import torch\nwith "
            "torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p: "
            "torch.ones(3).neg()\nprint([a.count for a in p.key_averages() if a.key == "
            "'aten::neg'])"
        )
        done = self.run_script("--torch", KINETO_LOG_LEVEL="99")
        self.assertEqual(done.stdout, "[1]\n")
        self.assertEqual(self.rows(done.stderr)["aten::neg"], 1)

    def test_a_finder_of_the_scripts_that_asks_all_others(self):
        self.write(
            "import sys\nclass Watch:\n    def find_spec(self, name, path=None, target=None):\n"
            "        for f in sys.meta_path:\n"
            "            spec = None if f is self else f.find_spec(name, path, target)\n"
            "            if spec is not None: return spec\nsys.meta_path.insert(0, Watch())\n"
            "import torch\nprint(torch.ones(3).neg().sum().item())\n"
        )
        done = self.run_script("--torch")
        self.assertEqual((done.returncode, done.stdout), (0, "-3.0\n"), done.stderr)
        self.assertEqual(self.rows(done.stderr)["aten::neg"], 1)

    def test_torch_that_another_thread_imports(self):
        self.write(
            "import threading\ndef work():\n    import torch\n    torch.ones(3).neg()\n"
            "threads = [threading.Thread(target=work) for _ in range(3)]\n"
            "for t in threads: t.start()\nfor t in threads: t.join()\nimport torch\n"
            "torch.ones(3).neg()\n"
        )
        self.assertEqual(self.rows(self.run_script("--torch").stderr)["aten::neg"], 4)

    def test_the_environment_is_the_scripts(self):
        self.write(
            "import os, sys\nimport torch\n"
            "print(os.environ.get('INTEL_LIBITTNOTIFY64'), torch.get_num_threads())"
        )
        self.assertEqual(self.run_script("--torch").stdout, self.python("script.py").stdout)

    def test_one_thread_where_there_are_no_callbacks(self):
        """By ITT, which torch was told of when it was imported; and where that is another's, too,
        none."""
        text = (
            "import prof._torch_found as f\nf.Torch.calls = lambda self: (None, 'a test')\n"
            "import torch, threading\ntorch.ones(3).neg()\n"
            "t = threading.Thread(target=lambda: torch.ones(3).neg()); t.start(); t.join()\n"
            "print('ran')\n"
        )
        self.write(text)
        done = self.run_script("--torch")
        self.assertEqual(done.stdout, "ran\n")
        self.assertRegex(
            done.stderr,
            r"^prof: of torch's operators those of the thread that has imported it are seen, by "
            r"ITT: a test\n",
        )
        self.assertEqual(self.rows(done.stderr)["aten::neg"], 1)
        done = self.run_script("--torch", INTEL_LIBITTNOTIFY64="/nowhere/collector.so")
        self.assertEqual(done.stdout, "ran\n")
        self.assertRegex(
            done.stderr,
            r"^prof: torch's operators are not seen: INTEL_LIBITTNOTIFY64 names another "
            r"collector, '/nowhere/collector.so'[^\n]*a test\n",
        )
        self.assertEqual(self.rows(done.stderr), {"script.py": 1})

    def test_memory_of_operators(self):
        self.write("import torch\nkept = torch.empty(1 << 22)\nother = kept.neg()\n")
        done = self.run_script("--torch", "--profile-memory")
        self.assertRegex(done.stderr, r"(?m)^aten::empty .* 16\.00 MiB +16\.00 MiB +1$")
        self.assertRegex(done.stderr, r"(?m)^aten::neg .* 1[56]\.\d\d MiB +1[56]\.\d\d MiB +1$")

    def test_memory_is_what_torch_reports(self):
        """Not each malloc(): nothing is preloaded, a Python object's bytes are not there, and a
        profile of the script's own ends without an end of that."""
        script = """import os, sys, torch, prof
with open("/proc/self/maps") as maps:
    is_there = "libprof_memory" in maps.read()
print(os.environ.get("LD_PRELOAD"), os.environ.get("PROF_MEMORY"), is_there)
with prof.record_function("held"):
    x = bytearray(1 << 26)
kept = [torch.empty(1 << 20, dtype=torch.uint8)]
with prof.profile(torch=True, profile_memory=True) as p:
    kept.append(torch.zeros(1 << 20, dtype=torch.uint8))
with prof.record_function("behind"):
    kept.append(torch.empty(3 << 20, dtype=torch.uint8))
if os.fork() == 0:
    with prof.record_function("in child"):
        kept.append(torch.empty(5 << 20, dtype=torch.uint8))
    sys.exit()
os.wait()
"""
        self.write(script)
        for options in (["--torch"], ["--record-shapes"]):
            done = self.run_script("--profile-memory", *options)
            self.assertEqual(done.stdout, "None None False\n")
            for name, size in (("behind", 3), ("in child", 5)):
                self.assertRegex(done.stderr, rf"(?m)^{name} .* {size}\.00 MiB +0 B +1$")
            self.assertNotRegex(done.stderr, r"64\.\d\d MiB")
            self.assertRegex(done.stderr, r"(?m)^aten::empty .* 10\.00 MiB +10\.00 MiB +4$")

    def test_memory_that_torch_does_not_report(self):
        self.write(
            "import prof._torch_found as f\nf.Torch.memory = lambda self: (None, 'a test')\n"
            "import torch\nkept = torch.empty(1 << 22)\n"
        )
        done = self.run_script("--torch", "--profile-memory")
        self.assertRegex(
            done.stderr,
            r"^prof: the memory of PyTorch's operators cannot be recorded by its own reports "
            r"\(a test\)[^\n]*\n",
        )
        self.assertEqual(self.rows(done.stderr)["aten::empty"], 1)
        self.assertNotIn("CPU Mem", done.stderr)


if __name__ == "__main__":
    unittest.main()
