"""A call that is the only one in a call of its name is no event and no call of the tables, as in
torch.profiler. Both run in the same process. make test-torch."""

import json
import os
import tempfile
import threading
import unittest
import warnings

from beside_torch import skip_with_old_torch, skip_without_torch, torch
from test_observe import torchvision

import prof

RESNET = None


def in_turns(depth):
    """Ranges of one name, each in the previous one."""
    if depth == 0:
        return torch.ones(3).neg()
    with torch.profiler.record_function("deep"):
        return in_turns(depth - 1)


def a_sum():
    torch.ones(4).sum()


def a_mean():
    torch.ones(4).mean()


def a_product():
    torch.ones(4, 4).mul(2.0).mul_(torch.ones(4))


def three_deep():
    in_turns(3)


def two_inside():
    """Neither is the only child, nor is one whose holder has a second child."""
    with torch.profiler.record_function("a"):
        with torch.profiler.record_function("a"):
            torch.ones(2)
        with torch.profiler.record_function("a"), torch.profiler.record_function("a"):
            torch.ones(3).sum()
    with torch.profiler.record_function("b"):
        torch.ones(1)
        with torch.profiler.record_function("b"):
            torch.ones(1)
    with torch.profiler.record_function("c"):
        with torch.profiler.record_function("c"):
            torch.ones(1)
        torch.ones(1)


def range_of_an_operators_name():
    with torch.profiler.record_function("aten::neg"):
        torch.ones(5).neg()
    with torch.profiler.record_function("aten::sum"):
        torch.ones(5).sum()


def nothing_inside():
    with torch.profiler.record_function("empty"), torch.profiler.record_function("empty"):
        pass


def backward():
    x = torch.randn(4, 4, requires_grad=True)
    (x @ x).mean().backward()


def transformer():
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    layer(torch.randn(2, 5, 16)).sum().backward()


def resnet18():
    with torch.no_grad():
        RESNET(torch.ones(2, 3, 64, 64)).sum()


PROGRAMS = (
    a_sum,
    a_mean,
    a_product,
    three_deep,
    two_inside,
    range_of_an_operators_name,
    nothing_inside,
    backward,
    transformer,
    resnet18,
)


def seen_by_both(work, **options):
    work()  # torch makes things once
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says of what it counts no FLOPs
        cpu = [torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=cpu, record_shapes=True, **options) as theirs:
            with prof.profile(torch=True, record_shapes=True, **options) as mine:
                work()
    return mine, theirs


def row(average):
    """What both count the same."""
    shapes = str(average.input_shapes)
    theirs = torch.autograd.profiler_util.FunctionEventAvg()
    is_told = hasattr(theirs, "is_user_annotation")  # not by torch 2.4
    return average.key, is_told and average.is_user_annotation, shapes, average.count, average.flops


def rows(p, by_shape):
    return sorted(map(row, p.key_averages(group_by_input_shape=by_shape)))


def tree(p):
    """Of each event, by begin: its name, shapes, and how many enclose it."""
    found, depths = [], {}
    for e in p.events():
        parent = e.cpu_parent
        depths[id(e)] = 0 if parent is None else depths[id(parent)] + 1
        children = [child.name for child in e.cpu_children]
        found.append((e.name, str(e.input_shapes), depths[id(e)], children))
    return found


def counted(p):
    """Calls by name; of the C library's own table."""
    return {row.name: row.count for row in p.trace.aggregate(["name"])}


@skip_without_torch
class OnlyChildren(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        global RESNET
        torch.manual_seed(1)
        if torchvision is not None:
            RESNET = torchvision.models.resnet18().eval()

    def test_rows_and_events_are_torchs(self):
        for work in PROGRAMS:
            with self.subTest(work.__name__):
                if work is resnet18 and torchvision is None:
                    self.skipTest("there is no torchvision")
                mine, theirs = seen_by_both(work, with_flops=True)
                for by_shape in (False, True):
                    self.assertEqual(rows(mine, by_shape), rows(theirs, by_shape))
                self.assertEqual(tree(mine), tree(theirs))

    def test_memory_is_torchs(self):
        def held(p):
            return sorted(
                (a.key, str(a.input_shapes), a.cpu_memory_usage, a.self_cpu_memory_usage)
                for a in p.key_averages(group_by_input_shape=True)
            )

        def held_by_events(p):
            return sorted((e.name, e.cpu_memory_usage, e.self_cpu_memory_usage) for e in p.events())

        for work in (a_sum, a_mean, three_deep, range_of_an_operators_name):
            with self.subTest(work.__name__):
                mine, theirs = seen_by_both(work, profile_memory=True)
                self.assertEqual(held(mine), held(theirs))
                self.assertEqual(held_by_events(mine), held_by_events(theirs))

    def test_the_time_of_the_inner_call_is_the_outer_ones_own(self):
        for work in (a_sum, three_deep, two_inside, backward):
            mine, _ = seen_by_both(work, with_flops=True)
            events = mine.events()
            for e in events:
                inside_ns = sum(child._end_ns - child._start_ns for child in e.cpu_children)
                self.assertEqual(e._self_ns, e._end_ns - e._start_ns - inside_ns, e.name)
            for by_shape in (False, True):
                added = {}
                for e in events.key_averages(by_shape):
                    added[e.key, str(e.input_shapes)] = e
                for average in mine.key_averages(group_by_input_shape=by_shape):
                    e = added.pop((average.key, str(average.input_shapes)))
                    for field in ("count", "self_cpu_time_total", "cpu_time_total", "flops"):
                        self.assertAlmostEqual(
                            getattr(average, field), getattr(e, field), 6, (e.key, field)
                        )
                self.assertEqual(added, {})

    def test_the_capture_has_them_all(self):
        """prof's own tables, and the JSON of both."""
        mine, theirs = seen_by_both(a_sum)
        self.assertEqual(counted(mine)["aten::sum"], 2)
        self.assertEqual(counted(mine)["aten::ones"], 1)
        names = []
        for p in (mine, theirs):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "trace.json")
                p.export_chrome_trace(path)
                with open(path, encoding="utf-8") as f:
                    events = json.load(f)["traceEvents"]
            names.append(sorted(e["name"] for e in events if e.get("cat") == "cpu_op"))
        self.assertEqual(*names)
        self.assertEqual(names[0].count("aten::sum"), 2)

    def test_a_step_beside_the_inner_call(self):
        """Without a schedule torch.profiler records no steps. There prof has a mark, which is no
        child, and holds none: in tables as in events()."""

        def range_(name):
            return torch.profiler.record_function(name)

        def program(step):
            step()
            for at in range(8):  # where steps end
                with range_(f"a{at}"):
                    with range_("b"):
                        torch.ones(1)
                    for place, inner in enumerate(("first", "second")):
                        if at & 1 << place:
                            step()
                            step()
                        if place == 0 or at & 4:
                            with range_(f"a{at}"), range_(inner):
                                pass
                with range_(f"c{at}"):
                    if at & 1:
                        step()
                    if at & 2:
                        step()
                    with range_(f"c{at}"):
                        torch.ones(1)
                    if at & 4:
                        step()
                        step()

        cpu = [torch.profiler.ProfilerActivity.CPU]
        found = []
        for module in (prof.torch, torch.profiler):
            with module.profile(activities=cpu, record_shapes=True) as p:
                program(p.step)
            found.append(p)
        mine, theirs = found
        self.assertEqual(rows(mine, False), rows(theirs, False))
        self.assertEqual(tree(mine), tree(theirs))
        counts = {a.key: a.count for a in mine.events().key_averages()}
        self.assertEqual({a.key: a.count for a in mine.key_averages()}, counts)

    def test_observe_beside_a_profile(self):
        with prof.profile() as p, prof.torch.observe():
            a_sum()
        self.assertEqual({a.key: a.count for a in p.key_averages()}["aten::sum"], 1)
        self.assertEqual([e.name for e in p.events()].count("aten::sum"), 1)

    def test_a_profile_without_torch_keeps_each_call(self):
        with prof.profile() as p:
            with prof.record_function("a"), prof.record_function("a"):
                pass
        self.assertEqual([(a.key, a.count) for a in p.key_averages()], [("a", 2)])
        self.assertEqual([e.name for e in p.events()], ["a", "a"])

    @skip_with_old_torch
    def test_threads_and_cycles(self):
        """Each thread's calls, and each cycle's, stand for themselves."""

        def work():
            with torch.profiler.record_function("a"):
                thread = threading.Thread(target=inner)
                thread.start()
                thread.join()

        def inner():
            with torch.profiler.record_function("a"), torch.profiler.record_function("a"):
                a_sum()

        found = []
        config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
        for make, more in ((prof.profile, {"torch": True}), (torch.profiler.profile, {})):
            if make is torch.profiler.profile:
                more["activities"] = [torch.profiler.ProfilerActivity.CPU]
            with make(experimental_config=config, acc_events=True, **more) as p:
                work()
            found.append(sorted((a.key, a.count) for a in p.key_averages()))
        self.assertEqual(*found)
        self.assertIn(("a", 2), found[0])


if __name__ == "__main__":
    unittest.main()
