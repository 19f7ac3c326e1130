"""Rows, events and lists beside torch.profiler's: what code of others asks of them. make
test-torch."""

import copy
import json
import os
import pickle
import tempfile
import unittest

from beside_torch import OneLinear, skip_without_torch, torch

import prof


def family(row):
    parent = row.cpu_parent
    return (
        row.key,
        None if parent is None else parent.name,
        [c.name for c in row.cpu_children],
    )


@skip_without_torch
class Classes(OneLinear):
    def work(self):
        with torch.profiler.record_function("range"):
            (self.linear(self.x) + self.x).relu()
        torch.ones(1)

    def seen(self, module, **options):
        with module.profile(activities=self.cpu, **options) as p:
            self.work()
        return p

    def seen_by_both(self, **options):
        self.work()
        return self.seen(torch.profiler, **options), self.seen(prof.torch, **options)

    def test_a_row_has_the_parent_and_the_children_of_its_first_call(self):
        for options in ({}, {"profile_memory": True}, {"record_shapes": True}):
            for by_shape in (False, bool(options.get("record_shapes"))):
                with self.subTest(options, by_shape=by_shape):
                    found = [
                        sorted(map(family, p.key_averages(group_by_input_shape=by_shape)))
                        for p in self.seen_by_both(**options)
                    ]
                    self.assertEqual(found[1], found[0])
                    self.assertTrue(any(children for _, _, children in found[1]))

    def test_a_sum_of_rows_has_them_too(self):
        theirs, ours = (p.key_averages().total_average() for p in self.seen_by_both())
        self.assertEqual(family(ours), family(theirs))

    def test_a_copy_has_the_calls_that_were_asked_for(self):
        rows = self.seen(prof.torch).key_averages()
        before = [pickle.loads(pickle.dumps(row)) for row in rows]
        self.assertEqual({(row.cpu_parent, len(row.cpu_children)) for row in before}, {(None, 0)})
        (asked,) = (row for row in rows if row.key == "aten::linear")
        expected = family(asked)
        self.assertEqual(family(copy.deepcopy(asked)), expected)

    def test_they_are_instances_of_torchs_classes(self):
        theirs = torch.autograd.profiler_util
        p = self.seen(prof.torch)
        self.assertIsInstance(p.events(), torch.autograd.profiler.EventList)
        self.assertIsInstance(p.key_averages(), theirs.EventList)
        self.assertIsInstance(p.events()[0], theirs.FunctionEvent)
        self.assertIsInstance(p.key_averages()[0], theirs.FunctionEventAvg)
        self.assertIsInstance(p.events()[0].time_range, theirs.Interval)
        self.assertNotIsInstance(p.events()[0], theirs.FunctionEventAvg)
        self.assertIsInstance(p.events()[0], type(p.events()[0]))

    def test_dir_has_their_own_names(self):
        p = self.seen(prof.torch)
        for one in (p.events(), p.events()[0], p.key_averages()[0], p.events()[0].time_range):
            public = {name for name in dir(type(one)) if not name.startswith("_")}
            self.assertLessEqual(public, set(dir(one)))
        self.assertIn("self_cpu_time_total", dir(p.key_averages()[0]))

    def test_torchs_averages_add_them(self):
        p = self.seen(prof.torch)
        for of in (p.events()[0], p.key_averages()[0]):
            average = torch.autograd.profiler_util.FunctionEventAvg()
            average += of
            average.add(of)
            self.assertEqual((average.key, average.count), ("range", 2))
            self.assertEqual(average.cpu_time_total, 2 * of.cpu_time_total)

    def test_copies_are_of_their_own_class(self):
        p = self.seen(prof.torch)
        events, rows = p.events(), p.key_averages()
        for one in (events, rows, events[0], rows[0], events[0].time_range):
            for again in (
                copy.copy(one),
                copy.deepcopy(one),
                *(pickle.loads(pickle.dumps(one, n)) for n in range(pickle.HIGHEST_PROTOCOL + 1)),
            ):
                self.assertIs(type(again), type(one))
                self.assertEqual(repr(again), repr(one))

    def test_the_activities_are_those_that_were_given(self):
        member = torch.profiler.ProfilerActivity.CPU
        for module in (torch.profiler, prof.torch):
            given = module.profile(activities=[member]).activities
            self.assertEqual(given, {member}, module)
            self.assertIn(member, module.profile().activities, module)
        own = prof.torch.ProfilerActivity.CPU
        self.assertEqual(prof.torch.profile(activities=[own]).activities, {own})

    def test_the_memory_of_no_operator_has_no_name_in_a_trace(self):
        found = [
            {e.trace_name for e in p.events() if e.name == "[memory]"}
            for p in self.seen_by_both(profile_memory=True)
        ]
        self.assertEqual(found, [{None}, {None}])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "events.json")
            self.seen(prof.torch, profile_memory=True).events().export_chrome_trace(path)
            with open(path, encoding="utf-8") as file:
                names = {row["name"] for row in json.load(file)}
        self.assertIn("aten::ones", names)
        self.assertFalse({None, "[memory]"} & names)


if __name__ == "__main__":
    unittest.main()
