"""Options of torch.profiler.profile that prof honours in part, and members that it has not: each
says what to do."""

import gc
import types
import unittest
import warnings

import prof


def warned(config, **options):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        profile = prof.profile(experimental_config=config, **options)
    return profile, [(w.category, str(w.message), w.filename) for w in said]


class Callers(unittest.TestCase):
    def test_a_warning_shows_a_module_that_has_no_name(self):
        code = compile("import prof\nprof.schedule(wait=0, warmup=0, active=1)", "nameless", "exec")
        exec(code, {"__name__": None})  # Python drops warnings of such
        with self.assertWarns(UserWarning) as said:
            exec(code, {"__name__": 3})
        self.assertEqual((said.filename, said.lineno), ("nameless", 2))


class Torch:
    """As pybind11 makes torch's: no attributes, but the names in the constructor's text."""

    def __init__(self, *values):
        self._values = values

    __init__.__doc__ = (
        "__init__(self: T, verbose: bool = False, performance_events: "
        "collections.abc.Sequence[str] = [], profile_all_threads: bool = False, trace_only: bool = "
        "False) -> None\n"
    )

    def __getstate__(self):
        return self._values


class Experimental(unittest.TestCase):
    def test_what_changes_nothing_is_named_with_its_value(self):
        for config in (
            {"performance_events": ["cycles"], "enable_cuda_sync_events": True, "verbose": True},
            types.SimpleNamespace(
                performance_events=["cycles"], enable_cuda_sync_events=True, trace_only=False
            ),
        ):
            _, said = warned(config)
            self.assertEqual([kind for kind, *_ in said], [UserWarning])
            self.assertIn(
                "experimental_config: performance_events=['cycles'], enable_cuda_sync_events=True "
                "change nothing in prof",
                said[0][1],
            )
            self.assertEqual(said[0][2], __file__)
        _, said = warned(Torch(True, ["cycles"], False, True))
        self.assertEqual(
            [text.split(" change")[0] for _, text, _ in said],
            ["experimental_config: performance_events=['cycles']"],
        )

    def test_no_word_of_what_is_honoured_or_not_asked_for(self):
        for config in (
            None,
            {},
            {"verbose": True, "trace_only": True},
            {"performance_events": [], "adjust_timestamps": False},
            Torch(True, [], True, False),
        ):
            self.assertEqual(warned(config)[1], [])

    def test_collections(self):
        gc.disable()  # none but the requested ones
        self.addCleanup(gc.enable)
        for with_stack, count in ((True, 2), (False, 0)):
            with prof.profile(
                with_stack=with_stack, experimental_config={"record_python_gc_info": True}
            ) as p:
                gc.collect()
                gc.collect(1)
            before = list(gc.callbacks)
            gc.collect()
            self.assertEqual(gc.callbacks, before)
            seen = [e for e in p.events() if e.name == "Python GC"]
            self.assertGreaterEqual(len(seen), count)
            self.assertEqual(
                [e.args["generation"] for e in seen if e.args["generation"] > 0], [2, 1][:count]
            )
            self.assertFalse(
                [c for c in gc.callbacks if "prof" in type(getattr(c, "__self__", None)).__module__]
            )


class NotThere(unittest.TestCase):
    def test_each_names_another_way(self):
        with prof.profile() as p:
            pass
        with self.assertRaisesRegex(
            NotImplementedError, "prof memory FILE.prof.*_record_memory_history"
        ):
            p.export_memory_timeline("x.html")
        for name in ("profiler", "kineto_results"):
            self.assertFalse(hasattr(p, name))
            with self.assertRaisesRegex(AttributeError, "events\\(\\), key_averages\\(\\)"):
                getattr(p, name)


class Activities(unittest.TestCase):
    CPU, CUDA = prof.ProfilerActivity.CPU, prof.ProfilerActivity.CUDA

    def test_one_twice(self):
        for twice in (
            [self.CPU, self.CPU],
            [self.CPU, {self.CPU: ["CPU_OP"]}],
            [{self.CUDA: []}, self.CUDA],
        ):
            with self.assertRaisesRegex(ValueError, "specified more than once"):
                prof.profile(activities=twice)

    def test_types_that_are_not_there(self):
        for group, types_ in (
            (self.CPU, ["NONSENSE"]),
            (self.CPU, ["CONCURRENT_KERNEL"]),
            (self.CUDA, ["GPU_MEMCPY", "CPU_OP"]),
            (self.CPU, "CPU_OP"),
        ):
            with self.assertRaises(RuntimeError) as raised:
                prof.profile(activities=[{group: types_}])
            self.assertIn("names" if types_ == "CPU_OP" else "activity type", str(raised.exception))
        with self.assertRaises(TypeError):
            prof.profile(activities=[{self.CPU: [3]}])

    def test_types_that_change_nothing_are_named(self):
        config = types.SimpleNamespace(activity_types=["GPU_MEMCPY"], profiler_configs=["more"])
        with self.assertWarns(UserWarning) as said:
            p = prof.profile(activities=[{self.CPU: ["CPU_OP", "CUDA_RUNTIME"], self.CUDA: config}])
        self.assertEqual(
            str(said.warning),
            "activities: of CPU: [CPU_OP, CUDA_RUNTIME], CUDA: [GPU_MEMCPY], CUDA: ['more'] all "
            "types are recorded",
        )
        self.assertEqual(said.filename, __file__)
        self.assertEqual(p.activities, {self.CPU, self.CUDA})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(prof.profile(activities=[{self.CPU: None}]).activities, {self.CPU})

    def test_a_group_without_types(self):
        for activities, found in (
            ([{self.CUDA: []}], set()),
            ([self.CPU, {self.CUDA: []}], {self.CPU}),
            ([{self.CPU: []}], {self.CPU}),
        ):
            p = prof.profile(activities=activities)
            self.assertEqual(p.activities, found)
            with p, prof.scope("inside"):
                pass
            self.assertIn("inside", [e.name for e in p.events()])
        with self.assertRaises(AssertionError):
            prof.profile(activities=[])


class Limit(unittest.TestCase):
    """post_processing_timeout_s."""

    def cycles(self, seconds):
        p = prof.profile(
            schedule=prof.schedule(wait=0, warmup=1, active=1),
            acc_events=True,
            post_processing_timeout_s=seconds,
        )
        with p:
            for step in range(6):
                with prof.scope(f"of step {step}"):
                    pass
                p.step()
        return p

    def test_one_that_is_long_changes_nothing(self):
        limited, free = self.cycles(1e6), self.cycles(None)
        for p in (limited, free):
            self.assertEqual([e.id for e in p.events()], list(range(len(p.events()))))
        self.assertEqual([e.name for e in limited.events()], [e.name for e in free.events()])
        self.assertEqual(len(limited.key_averages()), len(free.key_averages()))

    def test_none_at_all(self):
        p = self.cycles(0)
        with self.assertWarnsRegex(RuntimeWarning, "with 0 events: 4 of the cycles") as said:
            self.assertEqual(p.events(), [])
        self.assertEqual(said.filename, __file__)
        self.assertGreater(len(p.key_averages()), 0)

    def test_less_than_none(self):
        for seconds in (-1, float("nan")):
            with self.assertRaisesRegex(ValueError, "must be non-negative"):
                prof.profile(post_processing_timeout_s=seconds)


if __name__ == "__main__":
    unittest.main()
