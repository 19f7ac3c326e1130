"""prof beside torch.profiler, where torch is installed: the same tables from the same numbers, the
same attributes, the same behaviour of schedules. What differs on purpose is listed in
docs/reference/torch-differences.md."""

import itertools
import os
import re
import unittest
import warnings

import prof
from prof.tables import EventList, FunctionEventAvg

try:
    import torch
    import torch.profiler
    from torch.autograd import profiler_util
except ImportError:
    torch = None


COPIED = (
    "key",
    "count",
    "node_id",
    "is_async",
    "is_remote",
    "is_legacy",
    "is_user_annotation",
    "use_device",
    "overload_name",
    "stack",
    "scope",
    "flops",
    "cpu_parent",
    "input_shapes",
)


TIMES = (
    "cpu_time_total",
    "self_cpu_time_total",
    "device_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "device_memory_usage",
    "self_device_memory_usage",
)


def ours(events, **flags):
    """torch's rows as prof's."""
    rows = []
    for e in events:
        row = FunctionEventAvg()
        for name in COPIED + TIMES:
            setattr(row, name, getattr(e, name, None))
        row.is_python_function = getattr(e, "is_python_function", False)
        row.device_type = prof.DeviceType[str(e.device_type).rsplit(".", 1)[1]]
        rows.append(row)
    return EventList(rows, **flags)


def numbers(**values):
    """A row of torch's that holds what a CPU alone does not give."""
    row = profiler_util.FunctionEventAvg()
    row.node_id, row.is_user_annotation, row.stack, row.input_shapes, row.overload_name = (
        -1,
        False,
        [],
        "",
        "",
    )
    for name, value in values.items():
        setattr(row, name, value)
    return row


class TablesOfTheSameNumbers(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(8 * 14 * 14, 10),
        )
        options = dict(
            record_shapes=True,
            profile_memory=True,
            with_flops=True,
            with_stack=True,
            experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True),
        )
        model(torch.randn(2, 3, 16, 16))
        with torch.profiler.profile(**options) as cls.profile:
            for _ in range(2):
                with torch.profiler.record_function("model_inference"):
                    model(torch.randn(2, 3, 16, 16)).sum().backward()

    def compare(self, theirs, mine, **options):
        self.assertEqual(mine.table(**options), theirs.table(**options), options)

    def same(self, theirs, flags, choices):
        mine = ours(theirs, **flags)
        theirs._profile_memory, theirs._with_flops = (
            flags.get("profile_memory", False),
            flags.get("with_flops", False),
        )
        for values in itertools.product(*choices.values()):
            self.compare(theirs, mine, **dict(zip(choices, values)))

    def test_averages(self):
        choices = dict(
            sort_by=[
                None,
                "cpu_time_total",
                "self_cpu_time_total",
                "self_cuda_time_total",
                "cpu_memory_usage",
                "count",
                "cpu_time",
            ],
            row_limit=[-1, 0, 3, 100],
            top_level_events_only=[False, True],
            time_unit=[None, "s", "ms", "us"],
            header=[None, "A header"],
        )
        for memory, flops in itertools.product((False, True), (False, True)):
            self.same(
                self.profile.key_averages(), dict(profile_memory=memory, with_flops=flops), choices
            )

    def test_shapes(self):
        choices = dict(
            sort_by=["cpu_time_total"],
            max_shapes_column_width=[80, 20, None],
            max_name_column_width=[55, 12, None],
        )
        for flops in (False, True):
            self.same(
                self.profile.key_averages(group_by_input_shape=True),
                dict(with_flops=flops),
                choices,
            )

    def test_stacks(self):
        choices = dict(
            sort_by=["cpu_time_total"], max_src_column_width=[75, 20, None], row_limit=[3, -1]
        )
        for frames in (1, 5):
            self.same(
                self.profile.key_averages(group_by_stack_n=frames),
                dict(profile_memory=True),
                choices,
            )

    def test_events(self):
        self.same(
            self.profile.events(),
            {},
            dict(
                sort_by=[None, "cpu_time_total"],
                row_limit=[10],
                top_level_events_only=[False, True],
            ),
        )

    def test_devices(self):
        device = profiler_util.DeviceType.CUDA
        rows = [
            numbers(
                key="launch",
                count=3,
                use_device="cuda",
                cpu_time_total=30.5,
                self_cpu_time_total=30.5,
                device_time_total=900.0,
                device_memory_usage=1 << 20,
                self_device_memory_usage=1 << 20,
            ),
            numbers(
                key="kernel",
                count=3,
                use_device="cuda",
                device_type=device,
                device_time_total=900.0,
                self_device_time_total=900.0,
            ),
            numbers(
                key="marked",
                count=1,
                use_device="cuda",
                device_type=device,
                is_user_annotation=True,
                device_time_total=900.0,
                self_device_time_total=900.0,
            ),
        ]
        for name in ("cuda", "xpu"):
            for row in rows:
                row.use_device = name
            self.same(
                profiler_util.EventList(rows, use_device=name),
                dict(profile_memory=True),
                dict(sort_by=[None, f"self_{name}_time_total", f"self_{name}_memory_usage"]),
            )

    def test_what_is_rare(self):
        rows = [
            numbers(
                key="x" * 80,
                count=1,
                cpu_time_total=2.5e6,
                self_cpu_time_total=2.5e6,
                overload_name="Tensor",
                node_id=3,
                flops=5 * 10**13,
            ),
            numbers(
                key="é",
                count=0,
                is_async=True,
                cpu_time_total=999.9999,
                self_cpu_time_total=0.0,
                overload_name="y" * 90,
                flops=10**16,
                cpu_memory_usage=-(5 << 30),
            ),
            numbers(
                key="y",
                count=10**9,
                cpu_time_total=1000.0,
                self_cpu_time_total=999.99951,
                node_id=0,
                stack=["a" * 100, "b", "abc"],
                flops=0,
                input_shapes=[[1, 2], [], [[3]]],
            ),
        ]
        self.same(
            profiler_util.EventList(rows),
            dict(profile_memory=True),
            dict(max_name_column_width=[55, 10, None], time_unit=[None, "ms"]),
        )
        self.same(
            profiler_util.EventList(rows[:2]), dict(with_flops=True), dict(sort_by=[None, "flops"])
        )
        self.assertEqual(EventList().table(), profiler_util.EventList().table())
        nothing = [numbers(key="nothing", count=1)]
        self.same(profiler_util.EventList(nothing), {}, dict(sort_by=[None]))

    def test_sums(self):
        theirs, mine = self.profile.events(), ours(self.profile.events())
        self.assertEqual(str(mine.total_average()), str(theirs.total_average()))
        self.assertEqual(
            [repr(a) for a in mine.key_averages()], [repr(a) for a in theirs.key_averages()]
        )
        for shapes, frames, functions in ((True, 0, False), (False, 3, True)):
            found = [
                [
                    (a.key, a.count, str(a.input_shapes), a.stack)
                    for a in events.key_averages(shapes, frames, include_python_functions=functions)
                ]
                for events in (theirs, mine)
            ]
            self.assertEqual(*found)

    def test_flops(self):
        from prof import flops

        shapes = {
            (e.name, str(e.input_shapes)): (e.flops, e.input_shapes)
            for e in self.profile.events()
            if e.name
            in ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::add", "aten::mul")
        }
        self.assertTrue(any(count for count, _ in shapes.values()))
        for (name, _), (count, dims) in shapes.items():
            self.assertEqual(flops.of(name, dims), count, (name, dims))


class Faces(unittest.TestCase):
    def run_both(self, use):
        """What use(module) gives of either, with the texts of its warnings."""
        found = []
        for module in (torch.profiler, prof):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                try:
                    result = use(module)
                except Exception as e:
                    result = e
            found.append(
                (
                    result,
                    sorted({str(w.message) for w in seen if "clears events" not in str(w.message)}),
                )
            )
        return found

    def same(self, use):
        theirs, mine = self.run_both(use)
        self.assertEqual(mine, theirs)

    def same_error(self, use):
        (theirs, _), (mine, _) = self.run_both(use)
        self.assertIsInstance(theirs, Exception)
        self.assertIsInstance(mine, type(theirs), repr(mine))
        return str(theirs), str(mine)

    def test_attributes(self):
        def rows(module):
            with module.profile() as p:
                with module.record_function("a"):
                    pass
            return p, p.events(), p.events()[0], p.key_averages()[0]

        (theirs, _), (mine, _) = self.run_both(rows)
        for a, b in zip(theirs[1:], mine[1:]):
            self.assertEqual(
                {n for n in dir(a) if not n.startswith("_")} - set(dir(b)), set(), type(a)
            )
        differ = {
            "action_map",
            "activity_configs",
            "export_memory_timeline",
            "has_cudagraphs",
            "mem_tl",
            "preset_metadata",
            "profiler",
            "step_rec_fn",
            "use_device",
        }
        self.assertEqual(
            {n for n in dir(theirs[0]) if not n.startswith("_")} - set(dir(mine[0])) - differ, set()
        )
        for name, kind in {n: type(getattr(theirs[3], n)) for n in COPIED + TIMES}.items():
            if kind not in (type(None), bool):
                self.assertIsInstance(
                    getattr(mine[3], name), (int, float) if kind in (int, float) else kind, name
                )
        self.assertEqual(
            {m.name: m.value for m in prof.ProfilerActivity},
            {k: int(v) for k, v in torch.profiler.ProfilerActivity.__members__.items()},
        )
        self.assertEqual(
            {m.name: int(torch.profiler.DeviceType.__members__[m.name]) for m in prof.DeviceType},
            {m.name: m.value for m in prof.DeviceType},
        )

    def test_names_of_steps(self):
        def use(module):
            with module.profile(schedule=module.schedule(wait=0, warmup=1, active=2)) as p:
                for _ in range(3):
                    with module.record_function("a"):
                        pass
                    p.step()
            return [
                (e.name, e.trace_name, e.is_user_annotation, e.cpu_parent and e.cpu_parent.name)
                for e in p.events()
            ], [(a.key, a.count) for a in p.key_averages()]

        self.same(use)

    def test_rows_come_in_the_order_of_their_first_calls(self):
        def use(module):
            with module.profile() as p:
                for name in "zaczbd":
                    with module.record_function(name):
                        with module.record_function(name + "!"):
                            pass
            return [a.key for a in p.key_averages()]

        self.same(use)

    def test_schedules(self):
        for wait, warmup, active, repeat, skip, skip_wait in itertools.product(
            (0, 1, 2), (0, 1), (1, 3), (0, 2), (0, 2), (0, 1)
        ):
            self.same(
                lambda m: [
                    m.schedule(
                        wait=wait,
                        warmup=warmup,
                        active=active,
                        repeat=repeat,
                        skip_first=skip,
                        skip_first_wait=skip_wait,
                    )(i).name
                    for i in range(30)
                ]
            )
        theirs, mine = self.same_error(lambda m: m.schedule(wait=1, warmup=-1, active=0))
        self.assertEqual(mine, theirs)
        theirs, mine = self.same_error(lambda m: m.schedule(wait=1, warmup=1, active=1)(-1))
        self.assertEqual(mine, theirs)
        self.same_error(lambda m: m.schedule(1, 1, 1))

    def test_moments_of_the_callback(self):
        def use(module, wait, warmup, active, repeat, steps, again, acc):
            calls = []

            def ready(p):
                calls.append(
                    (
                        p.step_num,
                        p.current_action.name,
                        [
                            (a.key, a.count)
                            for a in p.key_averages()
                            if a.key in ("a", "ProfilerStep*")
                        ],
                    )
                )

            p = module.profile(
                schedule=module.schedule(wait=wait, warmup=warmup, active=active, repeat=repeat),
                on_trace_ready=ready,
                acc_events=acc,
            )
            for _ in range(again):
                with p:
                    for _ in range(steps):
                        with module.record_function("a"):
                            pass
                        p.step()
            return calls, p.step_num

        for wait, active, repeat, steps, again, acc in itertools.product(
            (0, 1), (1, 2), (0, 1), (3, 7), (1, 2), (False, True)
        ):
            if acc and again == 2:
                continue  # there a trace that goes on is counted twice
            self.same(lambda m: use(m, wait, 1, active, repeat, steps, again, acc))

    def test_life(self):
        def without_a_schedule(module):
            calls = []
            p = module.profile(on_trace_ready=lambda p: calls.append(p.step_num))
            p.start()
            with module.record_function("a"):
                pass
            p.step()
            p.stop()
            p.step()
            p.start()
            with module.record_function("b"):
                pass
            p.stop()
            return calls, p.step_num, [a.key for a in p.key_averages()]

        def ends_while_it_warms_up(module):
            with module.profile(schedule=module.schedule(wait=0, warmup=3, active=1)) as p:
                p.step()
            return len(p.key_averages())

        def odd_schedule(words):
            def use(module):
                with module.profile(schedule=lambda step: module.ProfilerAction[words[step]]) as p:
                    for _ in words[1:]:
                        p.step()

            return use

        self.same(without_a_schedule)
        self.same(ends_while_it_warms_up)
        for words in itertools.product(("NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"), repeat=3):
            self.same(odd_schedule(words))

    def test_errors(self):
        def recorded(module, **options):
            with module.profile(**options) as p:
                with module.record_function("a"):
                    pass
            return p

        self.same_error(lambda m: m.profile().key_averages())
        self.same_error(lambda m: m.profile().events())
        self.same_error(lambda m: m.profile().export_chrome_trace("x.json"))
        self.same_error(lambda m: m.profile().export_stacks("x.txt"))
        self.same_error(lambda m: recorded(m).export_stacks("x.txt"))
        self.same_error(lambda m: recorded(m, with_stack=True).export_stacks("x.txt", "nothing"))
        self.same_error(lambda m: recorded(m).key_averages().table(sort_by="nothing"))
        self.same_error(lambda m: recorded(m).key_averages().table(nothing=1))
        self.same_error(lambda m: m.profile(activities=[]))
        self.same_error(lambda m: m.profile(activities=["cpu"]))
        self.same_error(lambda m: m.profile(nothing=1))
        self.same_error(lambda m: m.tensorboard_trace_handler(os.path.abspath(__file__))(None))
        self.same(
            lambda m: {
                a.name for a in m.profile(activities=[{m.ProfilerActivity.CPU: []}]).activities
            }
        )

    def test_trace_ids(self):
        def use(module):
            p = module.profile(custom_trace_id_callback=lambda: "mine")
            before = p.get_trace_id()
            with p:
                pass
            return before, p.get_trace_id()

        self.same(use)

    def test_stacks(self):
        def use(module):
            options = (
                {}
                if module is prof
                else dict(experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True))
            )

            def here():
                with module.record_function("placed"):
                    pass

            with module.profile(with_stack=True, **options) as p:
                here()
            stack = next(e.stack for e in p.events() if e.name == "placed")
            return [
                re.sub(r"\(\d+\)", "", frame)
                for frame in stack
                if not frame.startswith(("torch/", "<built-in", "unittest/"))
            ]

        (theirs, _), (mine, _) = self.run_both(use)
        # torch.profiler's ends where the profile was begun, and its lines are those on which
        # functions begin
        self.assertEqual(mine[: len(theirs)], theirs)

    def test_decorated(self):
        def use(module):
            @module.record_function("named")
            def f(x):
                return x + 1

            with module.profile() as p:
                result = f(1) + f(2)
            return result, [(a.key, a.count, a.is_user_annotation) for a in p.key_averages()]

        self.same(use)


if torch is None:
    del TablesOfTheSameNumbers, Faces

    class Torch(unittest.TestCase):
        def test_beside_torch(self):
            self.skipTest("torch is not installed for this Python")


if __name__ == "__main__":
    unittest.main()
