"""PyTorch's memory by torch's own reports. The rows and events of torch.profiler in the same
process, beside its profilers in any order, and what may stand in the way. make test-torch."""

import collections
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import warnings

from beside_torch import bits, skip_without_torch, torch
from hang_guard import HANG_SECONDS

import prof

if torch is not None:
    from torch.autograd import profiler as autograd_profiler
    from torch.autograd import profiler_legacy

KIB = 1 << 10
IS_EXACT = torch is not None and tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 6)
"""Before, torch.profiler gives an event at the very end of an operator to it or to the one around
it, another way in each run. Then sums are compared."""


def mine(**options):
    return prof.profile(profile_memory=True, torch=True, **options)


def theirs(**options):
    cpu = [torch.profiler.ProfilerActivity.CPU]
    return torch.profiler.profile(activities=cpu, **{"profile_memory": True, **options})


def rows(profile):
    """By name: total and self bytes, of rows that have any."""
    averages = profile.key_averages()
    return {
        row.key: (row.cpu_memory_usage, row.self_cpu_memory_usage)
        for row in averages
        if row.cpu_memory_usage or row.self_cpu_memory_usage
    }


def all_rows(profile):
    """The same of a whole training."""
    found = rows(profile)
    if IS_EXACT:
        return found
    return {
        "all": sum(own for _, own in found.values()),
        **{name: found[name] for name in ("aten::empty", "aten::mm") if name in found},
    }


def events(profile):
    """Names with total and self bytes, how often each. torch removes a call inside of its like."""
    return collections.Counter(
        (e.name, e.cpu_memory_usage, e.self_cpu_memory_usage)
        for e in profile.events()
        if e.self_cpu_memory_usage
    )


class Reentrant(torch.autograd.Function if torch is not None else object):
    """A backward call inside of a backward call, deep enough for autograd to take threads."""

    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        if ctx.depth > 0:
            with torch.enable_grad():
                x = torch.ones(3, requires_grad=True)
                Reentrant.apply(x, ctx.depth - 1).sum().backward()
        return grad * 2, None


def train():
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.ReLU(), torch.nn.Linear(30, 5))
    for _ in range(3):
        model(torch.randn(8, 20)).square().sum().backward()
    return [p.grad for p in model.parameters()]


def deep():
    x = torch.ones(4, requires_grad=True)
    Reentrant.apply(x, 70).sum().backward()
    return x.grad


def infer():
    with torch.inference_mode():
        return torch.nn.functional.conv2d(torch.ones(1, 3, 16, 16), torch.ones(4, 3, 3, 3))


@skip_without_torch
class SameNumbers(unittest.TestCase):
    maxDiff = None

    def both(self, work):
        work()
        with theirs() as their_profile:
            kept = work()
        del kept
        with mine() as my_profile:
            kept = work()
        del kept
        return my_profile, their_profile

    def test_rows_and_events(self):
        for work in (train, infer):
            with self.subTest(work.__name__):
                my_profile, their_profile = self.both(work)
                self.assertEqual(all_rows(my_profile), all_rows(their_profile))
                if IS_EXACT:
                    self.assertEqual(events(my_profile), events(their_profile))

    def test_threads_of_autograd(self):
        """torch adds what a thread allocates to operators of other threads that run meanwhile. So
        only the sums are equal, and those of leaves."""
        my_profile, their_profile = self.both(deep)
        self.assertGreater(len({e.thread for e in my_profile.events()}), 1)
        kinds = [{e.name: 0 for e in p.events()} for p in (my_profile, their_profile)]
        self.assertEqual(set(kinds[0]), set(kinds[1]))
        reported = [e for e in my_profile.trace.events() if e.kind == "memory"]
        torch_reported = [
            e for e in their_profile.profiler.kineto_results.events() if e.name() == "[memory]"
        ]
        self.assertEqual(
            sorted(e.bytes for e in reported), sorted(e.nbytes() for e in torch_reported)
        )

    @unittest.skipUnless(IS_EXACT, "tables of before have other units")
    def test_a_table(self):
        _, their_profile = self.both(train)
        with mine() as my_profile:
            kept = train()
        del kept

        def column(profile, title):
            lines = [
                line
                for line in profile.key_averages()
                .table(sort_by="self_cpu_memory_usage", row_limit=100)
                .splitlines()
            ]
            head = next(line for line in lines if title in line)
            at = head.index(title)
            found = {}
            for line in lines:
                name = line[: head.index("Name") + 4].strip()
                if name and not name.startswith("-") and "total" not in name and name != "Name":
                    found[name] = line[at - 8 : at + len(title)].strip()
            return found

        for title in ("CPU Mem", "Self CPU Mem"):
            self.assertEqual(column(my_profile, title), column(their_profile, title))

    def test_no_memory_where_it_is_not_asked_for(self):
        """Not by this profile, though another one has it recorded."""
        with mine(), prof.profile() as p:
            kept = torch.ones(KIB)
        del kept
        self.assertEqual(rows(p), {})
        self.assertEqual([e for e in p.events() if e.cpu_memory_usage or e.name == "[memory]"], [])
        self.assertNotIn("Mem", p.key_averages().table())

    def test_an_export_has_no_memory_that_others_record(self):
        with tempfile.TemporaryDirectory() as folder, mine() as other:
            with prof.profile() as p:
                kept = torch.ones(KIB)
            found = []
            for profile in (p, other):
                path = os.path.join(folder, "trace.json")
                profile.export_chrome_trace(path)
                with open(path, encoding="utf-8") as f:
                    found.append([e["name"] for e in json.load(f)["traceEvents"]])
        del kept
        self.assertIn("aten::ones", found[0])
        self.assertEqual([name for name in found[0] if "[memory]" in name or "bytes" in name], [])
        self.assertIn("[memory]", found[1])

    def test_two_on_one_thread(self):
        """The end of one does not end the other's."""
        with prof.torch.observe(profile_memory=True), prof.profile(profile_memory=True) as p:
            memory = prof._torch_memory._opened
            second = memory.reports()
            second.start()
            second.stop()
            kept = torch.empty(KIB, dtype=torch.uint8)
        del kept
        self.assertEqual(memory._users, set())
        self.assertEqual(rows(p), {"aten::empty": (KIB, KIB)})

    def test_each_profile_has_its_own(self):
        """What came before and after it in the capture is not in it."""
        seen = []
        for count in (1, 2, 3):
            with mine() as p:
                kept = [torch.empty(KIB, dtype=torch.uint8) for _ in range(count)]
            del kept
            seen.append(rows(p))
        self.assertEqual(seen, [{"aten::empty": (n * KIB, n * KIB)} for n in (1, 2, 3)])

    def test_what_was_allocated_before(self):
        """torch knows nothing of it: its free is not reported. Of what was freed outside of
        profiles torch keeps size and address, so the block must be where none of that was."""
        with mine():
            blocks = [torch.empty(KIB, dtype=torch.uint8) for _ in range(64)]
            forgotten = {block.data_ptr() for block in blocks}
            del blocks
        blocks = [torch.empty(KIB, dtype=torch.uint8) for _ in range(64)]
        before = next(block for block in blocks if block.data_ptr() in forgotten)
        del blocks
        with mine() as p:
            del before
            inside = torch.empty(3 * KIB, dtype=torch.uint8)
            del inside
        self.assertEqual(
            rows(p), {"aten::empty": (3 * KIB, 3 * KIB), "[memory]": (-3 * KIB, -3 * KIB)}
        )

    def test_a_schedule(self):
        found = []
        with mine(
            schedule=prof.schedule(wait=1, warmup=0 + 1, active=1, repeat=3),
            on_trace_ready=lambda p: found.append(rows(p)),
        ) as p:
            for step in range(9):
                kept = torch.empty((step + 1) * KIB, dtype=torch.uint8)
                p.step()
        del kept
        sizes = [found[i]["aten::empty"][1] // KIB for i in range(3)]
        self.assertEqual(sizes, [3, 6, 9])


@skip_without_torch
class BesideTorch(unittest.TestCase):
    """Torch's own profilers, begun before and after: they see what they see alone, and so does
    prof."""

    maxDiff = None

    def setUp(self):
        train()
        with theirs() as profile:
            train()
        self.alone = all_rows(profile)
        self.addCleanup(self.check_torch)

    def check_torch(self):
        self.assertFalse(torch.autograd._profiler_enabled())
        self.assertFalse(
            isinstance(autograd_profiler._enable_profiler, prof._torch_memory._Wrapper)
        )
        with theirs() as profile:
            train()
        self.assertEqual(all_rows(profile), self.alone)

    def nested(self, outer, inner):
        with outer as first, inner as second:
            train()
        return all_rows(first), all_rows(second)

    def test_both_orders(self):
        for order in ("torch in prof", "prof in torch"):
            with self.subTest(order):
                pair = (mine(), theirs()) if order == "torch in prof" else (theirs(), mine())
                first, second = self.nested(*pair)
                self.assertEqual(first, self.alone)
                self.assertEqual(second, self.alone)

    def test_a_profile_of_torch_without_memory(self):
        for outer, inner, place in (
            (mine(), theirs(profile_memory=False), 0),
            (theirs(profile_memory=False), mine(), 1),
        ):
            with self.subTest(place):
                found = self.nested(outer, inner)
                self.assertEqual(found[place], self.alone)
                self.assertEqual({name: row for name, row in found[1 - place].items() if row}, {})

    def test_torch_goes_on_when_prof_has_ended(self):
        with theirs() as profile:
            with mine():
                pass
            train()
        self.assertEqual(all_rows(profile), self.alone)

    def test_prof_goes_on_when_torch_has_ended(self):
        with mine() as p:
            with theirs():
                pass
            train()
        self.assertEqual(all_rows(p), self.alone)

    def test_emit_itt_and_the_old_profiler(self):
        for other in (
            autograd_profiler.emit_itt,
            profiler_legacy.profile,
            autograd_profiler.profile,
        ):
            with self.subTest(other.__module__ + "." + other.__name__), mine() as p:
                with other() as found:
                    train()
                if other is not autograd_profiler.emit_itt:
                    self.assertIn("aten::addmm", {e.name for e in found.function_events})
            # What the old profiler keeps of the work is freed when it ends.
            mine_of, alone = (dict(r) for r in (all_rows(p), self.alone))
            for row in ("[memory]", "all"):
                mine_of.pop(row, None), alone.pop(row, None)
            self.assertEqual(mine_of, alone)

    def test_one_that_cannot_start(self):
        """torch's error is its own, and prof's records go on."""
        with mine() as p:
            with self.assertRaises(TypeError):
                autograd_profiler._enable_profiler("no configuration", set())
            train()
        self.assertEqual(all_rows(p), self.alone)

    def test_torch_says_that_no_profiler_is_on(self):
        with mine():
            self.assertFalse(torch.autograd._profiler_enabled())
            self.assertEqual(
                torch._C._autograd._profiler_type(), torch._C._profiler.ActiveProfilerType.NONE
            )

    def test_a_table_that_cannot_be_patched(self):
        """Then there is one warning, and nothing is recorded until torch's profiler ends."""
        original = autograd_profiler._enable_profiler
        with mine() as p:
            memory, answers = prof._torch_memory._opened, [-1, 0]
            with unittest.mock.patch.object(memory, "_c", wraps=memory._c) as c:
                c.prof_i_torch_memory_resume_1 = lambda: answers.pop(0)
                with warnings.catch_warnings(record=True) as said, theirs() as profile:
                    warnings.simplefilter("always")
                    train()
            self.assertEqual(
                [str(w.message)[:50] for w in said if "prof: " in str(w.message)],
                [prof._torch_memory._NO_COLUMNS[:50]],
            )
        self.assertEqual(all_rows(profile), self.alone)
        self.assertEqual(rows(p), {})
        self.assertIs(autograd_profiler._enable_profiler, original)


@skip_without_torch
class InTheWay(unittest.TestCase):
    maxDiff = None

    def run_code(self, code):
        begin = "import os, threading, prof, prof.torch, torch\n"
        done = subprocess.run(
            [sys.executable, "-c", begin + code],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_gradients_of_before_in_both_orders(self):
        """Their frees are in the second profile alone, whichever is second: torch knows the
        allocations that any profile of the process has seen."""
        code = """
model = torch.nn.Linear(7, 4)
optimizer = torch.optim.SGD(model.parameters())
def steps():
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(3, 7)).sum().backward()
        optimizer.step()
steps()
for profile in ORDER:
    with profile(profile_memory=True) as p:
        steps()
    print(*(row.self_cpu_memory_usage for row in p.key_averages() if "zero_grad" in row.key))
"""
        gradients = 4 * (7 * 4 + 4)
        names = ["prof.torch.profile", "torch.profiler.profile"]
        for order in names, names[::-1]:
            with self.subTest(order):
                found = self.run_code(code.replace("ORDER", f"({', '.join(order)})"))
                self.assertEqual(found.split(), [str(-gradients), str(-2 * gradients)])

    def test_the_same_results(self):
        """To the last bit, and on threads of autograd."""
        for work in (train, deep, infer):
            with self.subTest(work.__name__):
                plain = bits(work())
                with mine():
                    seen = bits(work())
                self.assertEqual(seen, plain)

    def test_other_threads_have_their_own(self):
        """A profile is of its thread, as torch.profiler's is."""

        def other():
            kept.append(torch.empty(5 * KIB, dtype=torch.uint8))

        kept = []
        with mine() as p:
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            kept.append(torch.empty(KIB, dtype=torch.uint8))
        self.assertEqual(rows(p), {"aten::empty": (KIB, KIB)})

    def test_two_threads_at_once(self):
        def work(size):
            with mine() as p:
                barrier.wait()
                kept = torch.empty(size, dtype=torch.uint8)
                barrier.wait()
            found[size] = {
                e.self_cpu_memory_usage for e in p.events() if e.self_cpu_memory_usage > 0
            }
            del kept

        found, barrier = {}, threading.Barrier(2)
        threads = [threading.Thread(target=work, args=(size,)) for size in (KIB, 2 * KIB)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, {KIB: {KIB}, 2 * KIB: {2 * KIB}})

    def test_a_thread_that_ends_in_it(self):
        def work():
            observers.append(prof.torch.observe(profile_memory=True).start())

        observers = []
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        observers[0].stop()
        self.assertEqual(prof._torch_memory._opened._users, set())
        with mine() as p:
            kept = torch.empty(KIB, dtype=torch.uint8)
        del kept
        self.assertEqual(rows(p), {"aten::empty": (KIB, KIB)})

    def test_ended_inside_of_a_backward_call(self):
        """autograd puts back what the thread had: torch's profiler starts all the same."""
        found = []

        def hook(grad):
            found[0].stop()
            kept.append(torch.empty(KIB, dtype=torch.uint8))

        kept = []
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        y.register_hook(hook)
        found.append(mine())
        found[0].start()
        y.sum().backward()
        with theirs() as profile:
            kept.append(torch.empty(KIB, dtype=torch.uint8))
        self.assertEqual(rows(profile), {"aten::empty": (KIB, KIB)})
        self.assertNotIn(KIB, [e.self_cpu_memory_usage for e in found[0].events()])
        with mine() as p:
            kept.append(torch.empty(KIB, dtype=torch.uint8))
        self.assertEqual(rows(p), {"aten::empty": (KIB, KIB)})

    def test_a_forked_child(self):
        code = """
with prof.profile(profile_memory=True, torch=True) as p:
    child = os.fork()
    kept = torch.empty(1024, dtype=torch.uint8)
    if child == 0:
        with torch.profiler.profile(profile_memory=True) as q:
            torch.ones(3)
        os._exit(len([e for e in q.events() if e.name == "aten::ones"]))
    status = os.waitpid(child, 0)[1]
print(os.WEXITSTATUS(status), {e.name: e.self_cpu_memory_usage for e in p.events()})
"""
        self.assertEqual(self.run_code(code), "1 {'aten::empty': 1024}")

    def test_a_raise(self):
        with contextlib.suppress(ZeroDivisionError), mine() as p:
            kept = torch.empty(KIB, dtype=torch.uint8)
            raise ZeroDivisionError
        del kept
        self.assertEqual(rows(p), {"aten::empty": (KIB, KIB)})
        self.assertEqual(prof._torch_memory._opened._users, set())

    def test_all_threads_by_the_experimental_config(self):
        try:
            config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
        except TypeError:
            self.skipTest("this torch has no profile_all_threads")
        for options, seen in (({}, 0), ({"experimental_config": config}, 1)):
            with prof.profile(torch=True, **options) as p:
                thread = threading.Thread(target=lambda: torch.ones(3).neg())
                thread.start()
                thread.join()
            self.assertEqual([e.name for e in p.events()].count("aten::neg"), seen)

    def test_of_all_threads_there_is_none(self):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with prof.profile(), prof.torch.observe(profile_memory=True, profile_all_threads=True):
                torch.ones(3)
        self.assertIn("with profile_all_threads no memory is recorded", str(said[0].message))

    def test_a_release_that_reports_otherwise(self):
        """Proven before it is used; the reason and the release are in the error."""
        for problem, patched in (
            (
                "a known allocation is \\(1, [0-9]+, 65537, 0\\) .*, and torch reports \\(0, "
                "None, 0, 0\\)",
                "torch.empty = lambda *a, **k: Made()",
            ),
            (
                "_ZN3c1020ThreadLocal.* is not there",
                "M.find = lambda: b'_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE'",
            ),
        ):
            code = f"""
from prof import _torch_memory as M
class Made:
    def data_ptr(self): return 4711
class Library:
    def __init__(self, path, **words): self.real = real(path, **words)
    def __getattr__(self, name):
        if name == "prof_i_torch_memory_open_1" and hasattr(M, "find"):
            return lambda is_rocm: M.find()
        return getattr(self.real, name)
real, M.ctypes.CDLL = M.ctypes.CDLL, Library
empty = torch.empty
{patched}
try:
    prof.torch.observe(profile_memory=True).start()
except RuntimeError as e:
    print(e)
"""
            with self.subTest(problem):
                self.assertRegex(
                    self.run_code(code),
                    rf"^prof: the memory of PyTorch's operators cannot be recorded by its own "
                    rf"reports \(torch {torch.__version__.replace('+', '.')}: {problem}\)",
                )


if __name__ == "__main__":
    unittest.main()
