"""Options of torch.profiler.profile that prof honours in part, and members that it has not: each says
what to do."""

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


class Torch:
    """As pybind11 makes torch's: no attributes, but the names in the constructor's text."""

    def __init__(self, *values):
        self._values = values

    __init__.__doc__ = "__init__(self: T, verbose: bool = False, performance_events: collections.abc.Sequence[str] = [], profile_all_threads: bool = False, trace_only: bool = False) -> None\n"

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
                "experimental_config: performance_events=['cycles'], enable_cuda_sync_events=True change nothing in prof",
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


if __name__ == "__main__":
    unittest.main()
