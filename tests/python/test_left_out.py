"""Functions that have no rows, as in torch.profiler's tables: their own time belongs to no row
there, and to the time of all that encloses them."""

import unittest

from folder import Folder
from slices import Trace

import prof
from prof import tables


class LeftOut(Folder):
    def setUp(self):
        super().setUp()
        t = Trace()
        t.put("step", 0, 1000, "user_annotation")
        t.function("train.py(1): outer", 100, 900)
        t.function("train.py(2): inner", 200, 700)
        t.op("aten::mm", 300, 400)
        t.memory(1024, 310)
        t.memory(512, 450)
        t.kernel("sgemm", 320, 1100, 1130, 1)
        t.kernel("memset", 500, 1200, 1270, 2)
        t.put("nn.Module: Linear_0", 750, 850, "python_function")
        t.op("aten::relu", 760, 800)
        t.function("helper.py(9): alone", 2000, 2100)
        t.op("aten::neg", 2010, 2020)
        self.trace = t.read(self.path("trace.json"))

    def rows(self, **options):
        return {row.name: row for row in self.trace.aggregate(**options)}

    def test_all_else_stays(self):
        for group in ("name", ["name", "stack"], ["name", "thread"], ["name", "shape"]):
            shown, left = self.rows(group=group), self.rows(group=group, functions=False)
            self.assertEqual(
                set(shown) - set(left),
                {"train.py(1): outer", "train.py(2): inner", "helper.py(9): alone"},
            )
            self.assertEqual({name: shown[name] for name in left}, left)
            self.assertEqual((left["step"].self_ns, left["step"].total_ns), (200000, 1000000))
        self.assertEqual(
            self.trace.aggregate(functions=False).total_self_ns,
            sum(row.self_ns for row in left.values()),
        )

    def test_stacks_have_them_all_the_same(self):
        self.assertEqual(
            self.rows(group=["name", "stack"], functions=False)["aten::mm"].stack,
            "train.py(2): inner;train.py(1): outer",
        )

    def test_a_level_and_a_category(self):
        self.assertEqual(
            set(self.rows(group="name", functions=False, category="cpu_op")),
            {"aten::mm", "aten::relu", "aten::neg"},
        )
        self.assertEqual(
            set(self.rows(group="name", functions=False, category="python_function")),
            {"nn.Module: Linear_0"},
        )

    def test_averages_in_c_and_of_events(self):
        single = tables.single_events([tables.Window(self.trace, 0, 0, 0, 0)], True, False)
        fields = (
            "key",
            "count",
            "cpu_time_total",
            "self_cpu_time_total",
            "self_cpu_memory_usage",
            "cpu_memory_usage",
            "self_device_time_total",
            "device_time_total",
        )
        for functions in (False, True):
            averages = tables.averages(
                [tables.Window(self.trace, 0, 0, 0, 0)], False, 0, True, False, functions
            )
            ours, theirs = (
                [
                    tuple(getattr(row, field) for field in fields)
                    for row in rows
                    if row.count and row.cpu_time_total
                ]
                for rows in (averages, single.key_averages(include_python_functions=functions))
            )
            self.assertEqual(sorted(ours), sorted(theirs))

    def test_modules(self):
        self.assertEqual(
            set(self.rows(group="name")) - set(self.rows(group="name", modules=False)),
            {"nn.Module: Linear_0"},
        )
        self.assertEqual(
            set(self.rows(group="name", functions=False, modules=False)),
            {"step", "aten::mm", "aten::relu", "aten::neg"}
            | {name for name in self.rows(group="name") if name.startswith("cuda")},
        )
        self.assertEqual(
            {row.key for row in self.trace.key_averages()},
            {"step", "aten::mm", "aten::relu", "aten::neg"}
            | {row.key for row in self.trace.key_averages() if row.key.startswith("cuda")},
        )
        self.assertIn(
            "nn.Module: Linear_0",
            {row.key for row in self.trace.key_averages(include_python_functions=True)},
        )

    def test_the_table(self):
        table = self.trace.table(functions=False)
        self.assertIn("aten::mm", table)
        self.assertNotIn("train.py", table)
        self.assertIn("train.py", self.trace.table())

    def test_bad_bits(self):
        options = self.trace._options("name", "total", -1, 0, None)
        options.leave_out = 8
        with self.assertRaisesRegex(prof.ProfError, "leave_out is 0x8"):
            self.aggregate(options)

    def aggregate(self, options):
        import ctypes

        from prof._library import C, RowsPointer

        with self.trace._pointers() as pointers:
            C.check(
                C.prof_traces_aggregate(
                    pointers, len(pointers), ctypes.byref(options), ctypes.byref(RowsPointer())
                )
            )


if __name__ == "__main__":
    unittest.main()
