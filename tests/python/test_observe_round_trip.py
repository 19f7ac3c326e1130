"""The real torch: what prof.profile(torch=True) exports and prof.import_trace() takes back has the
same tables, modules, stacks, shapes and arrows."""

import collections
import json
import os
import tempfile
import threading
import unittest

import prof

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from test_round_trip import rows, said


@unittest.skipUnless(torch, "torch is not installed")
class Training(unittest.TestCase):
    OPTIONS = (
        {},
        {"record_shapes": True},
        {"with_modules": True},
        {"with_stack": True},
        {"record_shapes": True, "with_stack": True, "with_modules": True, "with_flops": True},
    )

    def record(self, **options):
        model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        x = torch.randn(3, 8)

        def step():
            with prof.record_function("outer"):
                y = model(x)
                torch.cat([y, y]).sum().backward()

        with prof.profile(torch=True, **options) as p:
            for _ in range(3):
                step()
                p.step()
            other = threading.Thread(target=step)
            other.start()
            other.join()
        return p

    def test_the_tables_are_the_same(self):
        for options in self.OPTIONS:
            with tempfile.TemporaryDirectory() as folder, self.subTest(**options):
                p = self.record(**options)
                path = os.path.join(folder, "t.json")
                p.export_chrome_trace(path)
                with prof.import_trace(path, os.path.join(folder, "t.prof")) as taken:
                    for by_shape in (False, True):
                        for frames in (0, 1, 50) if options.get("with_stack") else (0,):
                            first = rows(
                                p.key_averages(
                                    group_by_input_shape=by_shape, group_by_stack_n=frames
                                )
                            )
                            again = taken.key_averages(
                                group_by_input_shape=by_shape,
                                group_by_stack_n=frames,
                                with_flops=p.with_flops,
                            )
                            self.assertFalse(
                                [a.key for a in again if a.key.startswith("nn.Module: ")]
                            )
                            if options.get("with_modules"):
                                everything = taken.key_averages(
                                    group_by_input_shape=by_shape,
                                    group_by_stack_n=frames,
                                    with_flops=p.with_flops,
                                    include_python_functions=True,
                                )
                                again = again + [
                                    a for a in everything if a.key.startswith("nn.Module: ")
                                ]
                            self.assertEqual(first, rows(again))
                            self.assertEqual(
                                any(row[0].startswith("nn.Module: ") for row in first),
                                bool(options.get("with_modules")),
                            )

    def test_arrows_are_drawn_once(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.json")
            self.record().export_chrome_trace(path)
            with open(path) as f:
                written = json.load(f)["traceEvents"]
            with prof.import_trace(path, os.path.join(folder, "t.prof")) as taken:
                again = json.loads(taken.json())["traceEvents"]
        arrows = [
            collections.Counter(said(e) for e in events if e["ph"] in "sf")
            for events in (written, again)
        ]
        self.assertGreater(sum(arrows[0].values()), 20)
        self.assertEqual(*arrows)


if __name__ == "__main__":
    unittest.main()
