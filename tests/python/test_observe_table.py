"""resnet18's table by prof.torch.observe() beside torch.profiler's, in one process, row for row:
what bench/python/torch_table.py measures, and docs/reference/pytorch.md shows. make test-torch."""

import importlib.util
import json
import os
import subprocess
import sys
import unittest

try:
    import prof

    prof.torch  # before torch
    import torch  # noqa: F401
    import torchvision  # noqa: F401

    MISSING = ""
except ImportError as e:
    MISSING = str(e)

SOURCE = os.environ.get("PROF_TEST_SOURCE_DIR") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
)
SCRIPT = os.path.join(SOURCE, "bench", "python", "torch_table.py")
TIMES = 3


def measured():
    done = subprocess.run([sys.executable, SCRIPT, "--json"], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


@unittest.skipIf(MISSING, MISSING)
class Table(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        spec = importlib.util.spec_from_file_location("torch_table", SCRIPT)
        cls.rules = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(cls.rules)
        cls.found = measured()

    def rows_off(self, rows):
        """Times outside of torch's own spread: (row, column) with what both have."""
        off = {}
        for name, one in rows.items():
            calls = self.rules.calls_of(one)
            for column in self.rules.COLUMNS:
                if column in one["theirs"] and not self.rules.is_within(
                    one["mine"][column], one["theirs"][column], calls
                ):
                    off[name, column] = (
                        f"{sorted(one['mine'][column])} against {sorted(one['theirs'][column])}"
                    )
        return off

    def check_times(self, which):
        """A row fails where it is off each time: of a busy machine one measurement may be worth
        nothing."""
        off = self.rows_off(self.found[which])
        for _ in range(TIMES - 1):
            if not off:
                return
            again = self.rows_off(measured()[which])
            off = {key: text for key, text in again.items() if key in off}
        self.assertEqual(off, {})

    def check_calls(self, which):
        rows = self.found[which]
        self.assertEqual(
            {name: set(one["mine"].get("calls", [0])) for name, one in rows.items()},
            {name: {self.rules.calls_of(one)} for name, one in rows.items()},
        )

    def test_what_the_guides_count(self):
        self.assertEqual(
            [
                self.found["times"][f"aten::{name}"]["mine"]["calls"][0]
                for name in ("conv2d", "batch_norm", "max_pool2d")
            ],
            [20, 20, 1],
        )

    def test_names_and_calls(self):
        self.check_calls("times")

    def test_times(self):
        self.check_times("times")

    def test_shape_groups(self):
        self.check_calls("shapes")

    def test_times_of_shape_groups(self):
        self.check_times("shapes")

    def test_shapes_of_tensors(self):
        """Whichever way: torch's list has [] for what is no tensor, in the mode's the defaults are
        missing at its end."""

        def groups(side):
            found = {}
            for name, one in self.found["shapes"].items():
                if "calls" in one[side]:
                    name, shapes = name.split(" ", 1)
                    key = name, tuple(tuple(shape) for shape in without_end(json.loads(shapes)))
                    found[key] = found.get(key, 0) + one[side]["calls"][0]
            return found

        def without_end(shapes):
            while shapes and not shapes[-1]:
                shapes = shapes[:-1]
            return shapes

        mine, theirs = groups("mine"), groups("theirs")
        names = (
            "aten::convolution",
            "aten::native_batch_norm",
            "aten::max_pool2d_with_indices",
            "aten::add_",
            "aten::addmm",
            "aten::mean",
        )

        def of_names(found):
            return {key: calls for key, calls in found.items() if key[0] in names}

        self.assertEqual(sum(of_names(mine).values()), 20 + 20 + 1 + 8 + 1 + 1)
        self.assertEqual(of_names(mine), of_names(theirs))

    def test_memory(self):
        """Byte for byte, what is freed outside of operators with it."""
        for name, one in self.found["memory"].items():
            for column in ("self_bytes", "total_bytes"):
                self.assertEqual(one["mine"][column], one["theirs"][column], f"{name} {column}")
        has_some = {
            name for name, one in self.found["memory"].items() if one["theirs"]["self_bytes"][0]
        }
        self.assertGreaterEqual(
            has_some,
            {
                "[memory]",
                "aten::empty",
                "aten::max_pool2d_with_indices",
                "aten::addmm",
                "aten::mean",
            },
        )


if __name__ == "__main__":
    unittest.main()
