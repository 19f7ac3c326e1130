"""Tables and events of a profile: columns, widths, stacks, averages, and what a row says."""

import contextlib
import csv
import io
import json
import os
import re
import time
import unittest

from recorded import counts, work
from test_profile import Base

import prof
from prof import tables


def nothing():
    pass


class Tables(Base):
    def profile(self, **options):
        with prof.profile(**options) as p:
            work(3)
        return p

    def test_columns_widths_and_footer(self):
        text = self.profile().key_averages().table(sort_by="self_cpu_time_total")
        lines = text.splitlines()
        self.assertEqual(lines[0], lines[2])
        self.assertEqual(lines[0], "-" * 9 + ("  " + "-" * 12) * 6 + "  ")
        self.assertEqual(lines[1].split("  ")[0].strip(), "")
        self.assertEqual(
            re.split(r"\s{2,}", lines[1].strip()),
            [
                "Name",
                "Self CPU %",
                "Self CPU",
                "CPU total %",
                "CPU total",
                "CPU time avg",
                "# of Calls",
            ],
        )
        self.assertEqual(len(set(map(len, lines[:5]))), 1)
        self.assertTrue(lines[-1].startswith("Self CPU time total: "))
        self.assertTrue(text.endswith("\n"))

    def test_memory_columns(self):
        with prof.profile(profile_memory=True) as p:
            pool = prof.memory_profiler.Pool("host")
            with prof.record_function("takes"):
                pool.alloc(0x1000, 3 << 20)
            pool.close()
        text = p.key_averages().table()
        self.assertIn("CPU Mem  Self CPU Mem", text)
        self.assertIn("3.00 MB", text)

    def test_long_names_and_limits(self):
        with prof.profile() as p:
            for i in range(5):
                with prof.record_function(str(i) * 100):
                    pass
        averages = p.key_averages()
        text = averages.table(row_limit=2)
        self.assertEqual(text.count("..."), 2)
        self.assertIn("0" * 10, averages.table(row_limit=-1, max_name_column_width=None))
        self.assertEqual(len(averages.table(row_limit=0).splitlines()), 5)
        self.assertTrue(averages.table(header="My header").splitlines()[1] == "My header")
        self.assertIn("ms", averages.table(time_unit="ms"))
        with self.assertRaises(ValueError):
            averages.table(time_unit="ns")
        with self.assertRaises(AttributeError) as raised:
            averages.table(sort_by="nothing")
        self.assertIsInstance(raised.exception, ValueError)
        listed = str(raised.exception).partition(": ")[2].split(", ")[:-1]  # and those of cuda
        self.assertIn("name", listed)
        for key in (
            *listed,
            "cpu_time",
            "cpu_time_total",
            "cuda_time_total",
            "self_cuda_time_total",
            "cpu_memory_usage",
            "self_cuda_memory_usage",
            "count",
        ):
            averages.table(sort_by=key)

    def test_arguments_that_are_wrong(self):
        p = self.profile()
        for averages in (p.key_averages(), tables.EventList()):
            for name, bad in (
                ("sort_by", 3),
                ("row_limit", "x"),
                ("header", 3),
                ("max_src_column_width", "x"),
                ("max_name_column_width", 1.5),
                ("max_shapes_column_width", "x"),
            ):
                with self.assertRaisesRegex(TypeError, f"^{name} must be "):
                    averages.table(**{name: bad})
            with self.assertRaisesRegex(ValueError, "^max_name_column_width must be "):
                averages.table(max_name_column_width=-2)
            whole = averages.table(row_limit=-1)
            for limit in (None, -2):  # as torch.profiler, also where one of these is said
                self.assertEqual(averages.table(row_limit=limit, top_level_events_only=0), whole)
        for use in (p.key_averages, p.events().key_averages):
            for bad, error in ((1 << 32, ValueError), (-(1 << 32), ValueError), ("x", TypeError)):
                with self.assertRaisesRegex(error, "^group_by_stack_n must be "):
                    use(group_by_stack_n=bad)

    def test_names_come_back_from_csv(self):
        names = ["a\rb", "a\nb", "a\r\nb", 'a"b', "a,b", " a ", "\r", "\u2028"]
        with prof.profile() as p:
            for name in names:
                with prof.record_function(name):
                    pass
        for events in (p.events(), p.key_averages()):
            text = events.to_csv()
            found = list(csv.DictReader(io.StringIO(text, newline="")))
            self.assertEqual([row["name"] for row in found], names)
        self.assertEqual(self.profile().key_averages().to_csv().count("\r"), 0)

    def test_intervals_are_shown(self):
        self.assertEqual(repr(tables.Interval(0.5, 2.0)), "Interval(start=0.5, end=2.0)")

    def test_stacks(self):
        def here():
            with prof.record_function("placed"):
                pass

        with prof.profile(with_stack=True) as p:
            here()
        row = next(a for a in p.key_averages(group_by_stack_n=2) if a.key == "placed")
        self.assertEqual(len(row.stack), 2)
        self.assertRegex(row.stack[0], r"test_profile_tables\.py\(\d+\): here$")
        text = p.key_averages(group_by_stack_n=2).table()
        self.assertIn("Source Location", text)
        p.export_stacks(self.path("stacks.txt"), "self_cpu_time_total")
        with self.assertRaises(ValueError):
            p.export_stacks(self.path("x"), "nothing")
        with self.assertRaises(RuntimeError):
            self.profile().export_stacks(self.path("x"))
        with prof.record_function("after"):
            pass
        with prof.profile() as p:
            here()
        self.assertEqual(p.events()[0].stack, [])

    def test_flops_and_shapes(self):
        with prof.profile(with_flops=True) as p:
            for _ in range(2):
                with prof.scope(
                    "matmul", "operator", 1, _shapes=[(0x220, 10, 20), (0x220, 20, 30)]
                ):
                    pass
        row = p.key_averages(group_by_input_shape=True)[0]
        self.assertEqual(
            (row.flops, row.input_shapes), (2 * 2 * 10 * 20 * 30, [[10, 20], [20, 30]])
        )
        self.assertIn("KFLOPs", p.key_averages().table())
        self.assertEqual(p.key_averages()[0].input_shapes, "")

    def test_shapes_stacks_and_arguments_of_one_scope(self):
        def here():
            with prof.scope(
                "dense",
                "operator",
                1,
                _shapes=[(0x220, 4, 8), (0x220, 8, 2)],
                step=7,
                **{"Input Dims": "mine"},
            ):
                pass

        with prof.profile(with_stack=True) as p:
            here()
        event = p.events()[0]
        self.assertEqual((event.input_shapes, event.args["step"]), ([[4, 8], [8, 2]], 7))
        self.assertRegex(event.stack[0], r"^test_profile_tables\.py\(\d+\): here$")
        # nobody gave its stack
        self.assertEqual(
            (event.args, event.kwinputs), ({"step": 7, "Input Dims": "mine"}, event.args)
        )
        self.assertEqual(p.events().to_dict()["args"], [event.args])
        row = p.key_averages(group_by_input_shape=True, group_by_stack_n=1)[0]
        self.assertEqual((row.input_shapes, row.stack), ([[4, 8], [8, 2]], event.stack[:1]))
        p.export_chrome_trace(self.path("t.json"))
        with open(self.path("t.json")) as f:
            args = next(e for e in json.load(f)["traceEvents"] if e["name"] == "dense")["args"]
        self.assertEqual(
            (args["Input Dims"], args["Input Dims#"], args["step"]), ([[4, 8], [8, 2]], "mine", 7)
        )
        # as torch's
        self.assertEqual(args["Call stack"], "".join(f"{frame};" for frame in event.stack))
        whole = json.loads(p.trace.json("chrome"))["traceEvents"]
        frame = next(e for e in whole if e["name"] == "dense")["args"]["Call stack"].split(";")[0]
        self.assertEqual(
            frame, os.path.join(os.path.dirname(os.path.abspath(__file__)), event.stack[0])
        )
        p.trace.dump(self.path("raf.json"), "raf")
        with open(self.path("raf.json")) as f:
            self.assertIn("step", json.dumps(json.load(f)["traceEvents"]))

    def test_a_decorator_does_not_stand_in_the_stack(self):
        @prof.record_function("decorated")
        def f():
            pass

        with prof.profile(with_stack=True) as p:
            f()
        stack = p.events()[0].stack
        self.assertRegex(stack[0], r"test_a_decorator_does_not_stand_in_the_stack$")
        self.assertFalse([frame for frame in stack if os.sep + "prof" + os.sep in frame])

    def test_events_have_their_memory(self):
        with prof.profile(profile_memory=True) as p:
            with (
                prof.memory_profiler.Pool("host") as pool,
                prof.memory_profiler.Pool("device", "cuda:0") as far,
            ):
                with prof.record_function("outer"):
                    with prof.record_function("inner"):
                        pool.alloc(0x1000, 1 << 20)
                        far.alloc(0x9000, 512)
                    pool.alloc(0x900000, 1 << 10)
                    pool.free(0x1000, 1 << 20)
                pool.free(0x900000, 1 << 10)
        found = {
            e.name: (
                e.cpu_memory_usage,
                e.self_cpu_memory_usage,
                e.device_memory_usage,
                e.self_device_memory_usage,
            )
            for e in p.events()
        }
        self.assertEqual(
            found,
            {
                "outer": (1024, 1024 - (1 << 20), 512, 0),
                "inner": (1 << 20, 1 << 20, 512, 512),
                "[memory]": (-1024, -1024, 0, 0),
            },
        )
        self.assertEqual(
            {
                a.key: (
                    a.cpu_memory_usage,
                    a.self_cpu_memory_usage,
                    a.device_memory_usage,
                    a.self_device_memory_usage,
                )
                for a in p.key_averages()
            },
            found,
        )
        self.assertIn("CUDA Mem", p.key_averages().table())

    def test_a_users_name_that_is_an_operators(self):
        with prof.profile() as p:
            with prof.record_function("conv"):
                with prof.scope("conv", "operator"):
                    pass
            with prof.scope("conv", "another"):
                pass
        self.assertEqual(
            [(a.key, a.count, a.is_user_annotation) for a in p.key_averages()],
            [("conv", 1, True), ("conv", 2, False)],
        )

    def test_rows_come_by_their_first_calls(self):
        with prof.profile() as p:
            for name in ("z", "a", "m", "a"):
                with prof.record_function(name):
                    time.sleep(0.0002 * ord(name[0]) / 100)
        self.assertEqual([a.key for a in p.key_averages()], ["z", "a", "m"])
        self.assertEqual([e.name for e in p.events()], ["z", "a", "m", "a"])

    def test_averages_of_events_are_the_profiles(self):
        with prof.profile() as p:
            work(3)
            work(1)
        mine, theirs = p.events().key_averages(), p.key_averages()
        self.assertEqual([(a.key, a.count) for a in mine], [(a.key, a.count) for a in theirs])
        for a, b in zip(mine, theirs):
            self.assertAlmostEqual(a.cpu_time_total, b.cpu_time_total, places=2)
            self.assertAlmostEqual(a.self_cpu_time_total, b.self_cpu_time_total, places=2)
            self.assertAlmostEqual(a.max_us, b.max_us, places=2)
        with self.assertRaises(AssertionError):
            tables.FunctionEventAvg("x").add(mine[0])

    def test_events(self):
        events = self.profile().events()
        outer = next(e for e in events if e.name == "outer")
        self.assertEqual([c.name for c in outer.cpu_children], ["inner"] * 3)
        self.assertIs(outer.cpu_children[0].cpu_parent, outer)
        self.assertAlmostEqual(
            outer.self_cpu_time_total,
            outer.cpu_time_total - sum(c.cpu_time_total for c in outer.cpu_children),
            places=2,
        )
        self.assertIn("outer", events.table(top_level_events_only=True))
        self.assertNotIn("inner", events.table(top_level_events_only=True))
        total = events.total_average()
        self.assertEqual((total.key, total.count), ("Total", 4))

    def test_other_forms(self):
        averages = self.profile().key_averages()
        self.assertEqual(averages.to_dict()["count"], [a.count for a in averages])
        self.assertTrue(averages.to_csv().startswith("name,count,"))
        self.assertIn("<table>", averages._repr_html_())
        try:
            import pandas  # noqa: F401
        except ImportError:
            with self.assertRaises(ImportError):
                averages.to_pandas()
        else:
            self.assertEqual(list(averages.to_pandas()["count"]), [a.count for a in averages])
            self.assertEqual(len(tables.EventList().to_pandas()), 0)
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            with self.assertRaises(ImportError):
                averages.to_arrow()
        else:
            self.assertEqual(
                averages.to_arrow().column("count").to_pylist(), [a.count for a in averages]
            )
            self.assertEqual(tables.EventList().to_arrow().num_rows, 0)

    def test_top_level_averages(self):
        with prof.profile() as p:
            with prof.record_function("outer"):
                with prof.record_function("inner"), prof.record_function("leaf"):
                    pass
            with prof.record_function("inner"):  # the first of them counts
                pass
            with prof.record_function("alone"), prof.record_function("outer"):
                pass
        for averages in (
            p.key_averages(),
            p.events().key_averages(),
            p.key_averages(group_by_input_shape=True),
        ):
            lines = averages.table(top_level_events_only=True).splitlines()
            self.assertEqual([line.split()[0] for line in lines[5:-2]], ["outer", "alone"])
            self.assertIn("leaf", averages.table())
        import pickle

        self.assertEqual(
            counts(pickle.loads(pickle.dumps(p.key_averages()))), counts(p.key_averages())
        )

    def test_an_export_has_memory_where_it_was_asked_for(self):
        def seen(p):
            path = self.path("memory.json")
            p.export_chrome_trace(path)
            with open(path) as f:
                names = [event["name"] for event in json.load(f)["traceEvents"]]
            return {name for name in names if "[memory]" in name or "bytes" in name}

        with prof.profile(profile_memory=True) as p, prof.profile() as without:
            with prof.memory_profiler.Pool("tensors") as pool, prof.scope("inside"):
                pool.alloc(4096, 64)
                pool.free(4096)
        self.assertEqual(seen(without), set())
        self.assertEqual(seen(p), {"[memory]", "used bytes (tensors)"})
        self.assertNotIn("[memory]", without.trace.json(memory=False))
        self.assertIn("[memory]", without.trace.json())
        self.assertEqual([e for e in without.events() if e.name == "[memory]"], [])
        self.assertNotIn("Mem", without.key_averages().table())
        with self.assertRaisesRegex(ValueError, "no_memory is 1"):
            without.trace.dump(self.path("all.prof"), memory=False)

    def test_events_read_no_more_than_their_window(self):
        from prof._read_events import Briefs

        count = 200_000
        prof.profiler.start()  # else the next profile begins anew
        self.addCleanup(prof.profiler.stop)
        for _ in range(count):
            with prof.scope("old"):
                pass
        with prof.profile() as p, prof.scope("around"):
            for _ in range(10):
                with prof.scope("new"):
                    pass
        window = p._windows()[0]
        everything = sum(1 for _ in Briefs(window.trace._shared))
        read = sum(1 for _ in Briefs(window.trace._shared, window.from_ns))
        self.assertGreaterEqual(everything, count)
        self.assertLess(read, count / 100)
        self.assertEqual([e.name for e in p.events()], ["around", *10 * ["new"]])
        self.assertEqual({row.key: row.count for row in p.key_averages()}, {"around": 1, "new": 10})

    def test_rows_of_a_profiles_begin_and_end(self):
        """Kineto's, which stand last."""
        with prof.profile() as p, prof.scope("inside"):
            pass
        found = {}
        for marks in (False, True):
            path = self.path(f"{marks}.json")
            p.trace.dump(path, "chrome", window_marks=marks)
            with open(path) as f:
                found[marks] = json.load(f)["traceEvents"]
        plain, marked = found[False], found[True]
        self.assertEqual(marked[:-4], plain)
        span, sort, begin, end = marked[-4:]
        self.assertEqual((span["name"], span["cat"]), ("PyTorch Profiler (0)", "Trace"))
        self.assertEqual((sort["name"], sort["pid"]), ("process_sort_index", "Spans"))
        self.assertEqual(begin["name"], "Iteration Start: PyTorch Profiler")
        self.assertEqual((end["name"], end["ph"]), ("Record Window End", "i"))
        self.assertEqual(begin["ts"], span["ts"])
        self.assertAlmostEqual(span["ts"] + span["dur"], end["ts"], delta=0.001)
        for event in plain:
            self.assertGreaterEqual(event.get("ts", span["ts"]), span["ts"])
            if "dur" in event:
                self.assertLessEqual(event["ts"] + event["dur"], end["ts"] + 0.001)

    def test_equal_stacks_are_one_line(self):
        def event(key, stack, us):
            average = tables.FunctionEventAvg(key)
            average.stack, average.self_cpu_time_total = stack, us
            return average

        frames = ["f.py(1): inner", "f.py(9): outer"]
        events = tables.EventList(
            [
                event("a", frames, 0.6),
                event("a", frames, 1.6),
                event("b", frames, 0.6),
                event("c d", frames[1:], 2.5),
                event("e", [], 9.0),
                event("f", ["x"], 0.5),
            ]
        )
        events.export_stacks(self.path("stacks.txt"), "self_cpu_time_total")
        inner = "f.py(9):_outer;f.py(1):_inner"
        with open(self.path("stacks.txt")) as f:
            expected = f"{inner};a 2\n{inner};b 1\nf.py(9):_outer;c_d 2\nx;f 1\n"
            self.assertEqual(f.read(), expected)

    def test_events_have_columns_of_their_own(self):
        with (
            prof.profile(profile_memory=True) as p,
            prof.scope("outer", "operator", 1, step=7),
            prof.record_function("inner"),
        ):
            pass
        found = p.events().to_dict()
        self.assertEqual(
            (found["id"], found["name"], found["category"], found["depth"]),
            ([0, 1], ["outer", "inner"], ["operator", "user_annotation"], [0, 1]),
        )
        self.assertEqual(
            (found["parent_id"], found["is_open"], found["args"], found["cpu_memory_usage"]),
            ([None, 0], [False, False], [{"step": 7}, {}], [0, 0]),
        )
        for start, end, total in zip(found["start_us"], found["end_us"], found["cpu_time_total"]):
            self.assertAlmostEqual(end - start, total, places=2)
        self.assertTrue(
            p.events()
            .to_csv()
            .startswith(
                "id,name,category,thread,depth,start_us,end_us,cpu_time_total,self_cpu_time_total,"
                "parent_id,is_open,is_skipped,cpu_memory_usage,self_cpu_memory_usage,args\n"
            )
        )
        self.assertEqual(list(p.key_averages().to_dict())[:2], ["name", "count"])
        self.assertRegex(p.events()._repr_html_(), r"<td>\d+\.\d{3}us</td>.*<td>0 B</td>")
        self.assertRegex(p.key_averages()._repr_html_(), r"<td>1</td><td>\d+\.\d{3}us</td>")
        with self.subTest("pandas"), contextlib.suppress(ImportError):
            frame = p.events().to_pandas()
            self.assertEqual(list(frame["name"]), ["outer", "inner"])
            self.assertEqual(
                (
                    str(frame["parent_id"].dtype),
                    frame["parent_id"].isna()[0],
                    frame["parent_id"][1],
                ),
                ("Int64", True, 0),
            )
        with self.subTest("pyarrow"), contextlib.suppress(ImportError):
            self.assertEqual(p.events().to_arrow().column("parent_id").to_pylist(), [None, 0])

    def test_open_scopes_are_events(self):
        p = prof.profile()
        p.start()
        with prof.record_function("open"):
            with prof.record_function("ended"):
                time.sleep(0.001)
            p.stop()
        self.assertEqual(
            [(e.name, e.is_open) for e in p.events()], [("open", True), ("ended", False)]
        )
        outer, inner = p.events()
        self.assertIsNone(inner.cpu_parent)  # as in torch.profiler: it may end on any thread
        self.assertTrue(outer.is_async)
        self.assertGreaterEqual(outer.time_range.end, inner.time_range.end)
        self.assertEqual(counts(p.key_averages()), counts(p.events().key_averages()))
        for a, b in zip(p.key_averages(), p.events().key_averages()):
            self.assertAlmostEqual(a.cpu_time_total, b.cpu_time_total, places=2)

    def test_no_flops_of_dimensions_that_are_not_known(self):
        from prof import flops

        self.assertEqual(
            [
                flops.of("matmul", [[-1, 2], [2, 3]]),
                flops.of("matmul", [[-4, 2], [2, -3]]),
                flops.of("add", [[-2, 2]]),
            ],
            [0, 0, 0],
        )

    def test_formats(self):
        self.assertEqual(
            [tables.format_time(t) for t in (0.5, 999.9994, 1000, 2.5e6)],
            ["0.500us", "999.999us", "1.000ms", "2.500s"],
        )
        self.assertEqual(
            [tables.format_memory(b) for b in (0, -5, 1023, 1024, -3 << 20, 5 << 30)],
            ["0 B", "-5 B", "1023 B", "1.00 KB", "-3.00 MB", "5.00 GB"],
        )

    # bench/python/table.py has how long that takes
    def test_two_hundred_thousand_events_are_counted_each_time(self):
        f = prof.record_function("many")(nothing)
        with prof.profile() as p:
            for _ in range(200000):
                f()
        for _ in range(2):
            self.assertEqual(counts(p.key_averages()), {"many": 200000})


if __name__ == "__main__":
    unittest.main()
