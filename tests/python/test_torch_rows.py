"""Rows and events that torch.profiler has, beside its own: ranges that had not ended, scopes, and
memory that functions hold. make test-torch."""

import copy
import json
import os
import pickle
import tempfile
import threading
import unittest

from beside_torch import OneLinear, skip_with_old_torch, skip_without_torch, torch

import prof


def all_threads():
    try:
        return torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    except TypeError:
        raise unittest.SkipTest("this torch has no profile_all_threads") from None


class Both(OneLinear):
    def both(self, work, **options):
        """Each profile, started, and given to work, which may stop it."""
        made = []
        for make in (prof.profile, torch.profiler.profile):
            more = {"torch": True} if make is prof.profile else {"activities": self.cpu}
            p = make(**more, **options)
            work(p)
            made.append(p)
        return made

    def equal(self, rows, profiles):
        ours, theirs = map(rows, profiles)
        self.assertEqual(ours, theirs)
        return ours


@skip_without_torch
@skip_with_old_torch
class OpenRanges(Both):
    def open_one(self, p):
        p.start()
        outer = torch.profiler.record_function("outer")
        outer.__enter__()
        kept = torch.ones(100)
        inner = torch.profiler.record_function("inner")
        inner.__enter__()
        kept = torch.ones(7)
        p.stop()
        inner.__exit__(None, None, None)
        outer.__exit__(None, None, None)
        del kept

    def test_they_are_calls_up_to_the_end(self):
        def averages(p):
            return [
                (r.key, r.count, r.is_async, r.self_cpu_time_total == 0, r.cpu_time_total > 0)
                for r in p.key_averages()
                if r.key in ("outer", "inner", "aten::ones")
            ]

        profiles = self.both(self.open_one)
        self.equal(averages, profiles)
        for p in profiles:
            self.assertEqual(averages(p)[0], ("outer", 1, True, True, True))
            rows = {r.key: r for r in p.key_averages()}
            ends = {e.name: e.time_range.end for e in p.events()}
            self.assertGreaterEqual(rows["outer"].cpu_time_total, rows["inner"].cpu_time_total)
            self.assertGreaterEqual(ends["outer"], ends["aten::ones"])
        mine = {r.key: r.open_count for r in profiles[0].key_averages()}
        self.assertEqual((mine["outer"], mine["inner"], mine["aten::ones"]), (1, 1, 0))

    def test_events(self):
        def rows(p):
            parent = [(e.name, e.cpu_parent and e.cpu_parent.name, e.is_async) for e in p.events()]
            return parent, [(e.name, len(e.cpu_children)) for e in p.events()]

        self.equal(rows, self.both(self.open_one))

    def test_both_sums_are_equal(self):
        (ours, _) = self.both(self.open_one, profile_memory=True)

        of_c = {r.key: r for r in ours.key_averages()}
        of_events = {r.key: r for r in ours.events().key_averages()}
        self.assertEqual(set(of_c), set(of_events))
        for key, row in of_c.items():
            for field in ("count", "open_count", "cpu_memory_usage"):
                found = getattr(of_events[key], field)
                self.assertEqual(getattr(row, field), found, (key, field))
            self.assertAlmostEqual(row.cpu_time_total, of_events[key].cpu_time_total, 6, key)

    def test_memory(self):
        def rows(p):
            return [
                (r.key, r.count, r.cpu_memory_usage, r.self_cpu_memory_usage)
                for r in p.key_averages()
            ]

        def events(p):
            return [(e.name, e.cpu_memory_usage, e.self_cpu_memory_usage) for e in p.events()]

        profiles = self.both(self.open_one, profile_memory=True)
        self.assertEqual(self.equal(rows, profiles)[0], ("outer", 1, 28, 0))
        self.equal(events, profiles)

    def test_the_table(self):
        profiles = self.both(self.open_one)

        def first_row(p):
            (line,) = (row for row in p.key_averages().table().split("\n") if " outer " in row)
            words = line.split()
            return words[:4], words[-1]

        self.equal(first_row, profiles)

    def test_at_the_end_of_a_cycle(self):
        def cycles(module, make):
            seen = []

            def ready(p):
                seen.append({r.key: r.count for r in p.key_averages()}.get("iteration"))

            schedule = module.schedule(wait=0, warmup=1, active=2)
            with make(schedule=schedule, on_trace_ready=ready) as p:
                for _ in range(6):
                    with torch.profiler.record_function("iteration"):
                        self.linear(self.x)
                        p.step()
            return seen

        ours = cycles(prof, lambda **words: prof.profile(torch=True, **words))
        theirs = cycles(
            torch.profiler, lambda **words: torch.profiler.profile(activities=self.cpu, **words)
        )
        self.assertEqual(ours, theirs)

    def test_a_function_that_has_not_ended_is_one_of_its_thread(self):
        with prof.profile() as p:
            ending = p.stop

            def outer():
                prof.record_function("inside").__enter__()
                ending()

            with prof.trace_functions():
                outer()
        found = {e.name.rsplit(".", 1)[-1]: e for e in p.events()}
        self.assertTrue(found["outer"].is_open)
        self.assertFalse(found["outer"].is_async)
        self.assertTrue(found["inside"].is_async)


@skip_without_torch
class Scopes(Both):
    def work(self, p):
        x = self.x.clone().requires_grad_()
        with p:
            with torch.profiler.record_function("range"):
                self.linear(x).mul(2).sum().backward()
            self.scripted(x)
            self.x.add(1)
            torch.optim.SGD(self.linear.parameters(), 0.1).step()
            p.step()

    def setUp(self):
        super().setUp()

        @torch.jit.script
        def scripted(a: torch.Tensor):
            return a * 2 + a

        self.scripted = scripted
        for _ in range(3):
            scripted(self.x)
        torch.optim.SGD(self.linear.parameters(), 0.1).step()

    def test_of_events(self):
        def rows(p):
            return {
                (e.name, e.scope, getattr(e, "torch_fwd_thread", e.fwd_thread)) for e in p.events()
            }

        found = self.equal(rows, self.both(self.work))
        self.assertEqual({scope for _, scope, _ in found}, {0, 1, 2, 7})
        self.assertIn(("range", 7, 0), found)

    def test_of_averages(self):
        def rows(p):
            return {r.key: r.scope for r in p.key_averages()}

        found = self.equal(rows, self.both(self.work))
        self.assertEqual((found["range"], found["AddmmBackward0"]), (7, 1))

    def test_of_averages_of_events(self):
        def rows(p):
            return {r.key: r.scope for r in p.events().key_averages()}

        self.equal(rows, self.both(self.work))

    def test_of_memory(self):
        """What torch makes itself, and not Kineto, has little of it."""
        none = ["activity_type", "flops", "concrete_inputs", "kwinputs", "input_dtypes"]
        none += ["structured_input_shapes", "structured_input_strides", "input_shapes"]

        def work(p):
            with p:
                kept = torch.ones(10)
                del kept

        def rows(p):
            e = p.events()[-1]
            places = e.thread, e.fwd_thread, e.device_index, e.device_resource_id
            return e.name, e.scope, places, {name: getattr(e, name) for name in none}

        found = self.equal(rows, self.both(work, profile_memory=True))
        self.assertEqual(found[:3], ("[memory]", 0, (1, 1, 0, 1)))


@skip_without_torch
@skip_with_old_torch
class Threads(Both):
    """Whatever numbers torch and prof give them."""

    def work(self, p):
        def train():
            y = (self.x.detach().requires_grad_() * 2).exp()
            y.sum().backward()

        def beside():
            thread = threading.Thread(target=train)
            thread.start()
            thread.join()

        with p:
            beside()
            train()
            beside()

    def profiles(self):
        return self.both(self.work, experimental_config=all_threads())

    def test_a_forward_call_is_found_by_its_number_and_thread(self):
        def joined(p):
            events = [e for e in p.events() if e.sequence_nr >= 0]
            forward = {(e.sequence_nr, e.thread): e.name for e in events if not e.fwd_thread}
            backward = [e for e in events if e.fwd_thread]
            self.assertEqual(len({e.fwd_thread for e in backward}), 3)
            return sorted((e.name, forward[e.sequence_nr, e.fwd_thread]) for e in backward)

        found = self.equal(joined, self.profiles())
        self.assertEqual(found.count(("ExpBackward0", "aten::exp")), 3)

    def test_a_thread_without_forward_calls_has_a_number_of_its_own(self):
        """The backward calls are found with none of another thread."""
        kept = []
        first = threading.Thread(target=lambda: kept.append((self.x.requires_grad_() * 2).exp()))
        first.start()
        first.join()
        with prof.profile(torch=True) as p:
            (self.x.detach().requires_grad_() * 2).exp()
            kept[0].sum().backward()
        events = [e for e in p.events() if e.sequence_nr >= 0]
        found = {e.name: e.fwd_thread for e in events if e.fwd_thread}
        self.assertEqual(found["SumBackward0"], 1)
        self.assertNotIn(found["ExpBackward0"], {e.thread for e in events})

    def test_of_the_system(self):
        def of_main(p):
            return {
                (e.device_index, e.device_resource_id)
                for e in p.events()
                if e.device_resource_id == threading.get_native_id()
            }

        def all_of_them(p):
            return len({(e.thread, e.device_resource_id) for e in p.events()})

        profiles = self.profiles()
        found = self.equal(of_main, profiles)
        self.assertEqual(found, {(os.getpid(), threading.get_native_id())})
        self.assertEqual(self.equal(all_of_them, profiles), 3)

    def test_copies_have_them(self):
        profile, _ = self.profiles()
        event = profile.events()[-1]
        for made in (copy.deepcopy(event), pickle.loads(pickle.dumps(event))):
            for name in ("thread", "fwd_thread", "device_index", "device_resource_id"):
                self.assertEqual(getattr(made, name), getattr(event, name))


class ThreadsAlone(unittest.TestCase):
    """Without torch."""

    def test_they_count_from_1(self):
        def work():
            with prof.scope("call"):
                pass

        with prof.profile() as p:
            work()
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        events = p.events()
        self.assertEqual(sorted({e.thread for e in events}), [1, 2])
        self.assertEqual({e.device_index for e in events}, {os.getpid()})
        self.assertIn(threading.get_native_id(), {e.device_resource_id for e in events})

    def test_of_steps_and_of_profs_own(self):
        with prof.profile(schedule=prof.schedule(wait=0, warmup=0, active=1)) as p:
            with prof.record_function("range"), prof.scope("scope"):
                pass
        found = {e.name: (e.scope, e.fwd_thread) for e in p.events()}
        self.assertEqual(found, {"ProfilerStep*": (7, 0), "range": (7, 0), "scope": (0, 0)})


def inner():
    made = torch.ones(1000)
    del made


def outer():
    inner()
    made = torch.ones(500)
    made = None
    return made


@skip_without_torch
@skip_with_old_torch
class MemoryOfFunctions(Both):
    def work(self, p):
        p.start()
        made = torch.ones(250)
        made = None
        outer()
        made = torch.ones(100)
        del made
        p.stop()

    def test_a_function_holds_what_no_operator_does(self):
        def rows(p):
            return [
                (r.key, r.count, r.cpu_memory_usage, r.self_cpu_memory_usage)
                for r in p.key_averages()
                if r.cpu_memory_usage or r.self_cpu_memory_usage
            ]

        profiles = self.both(self.work, with_stack=True, profile_memory=True)
        found = self.equal(rows, profiles)
        self.assertEqual([key for key, *_ in found], ["aten::ones", "aten::empty"])
        for p in profiles:
            held = {}
            for e in p.events():
                for name in ("inner", "outer", "work"):
                    if e.name == name or e.name.endswith(f": {name}"):
                        held[name] = e.cpu_memory_usage, e.self_cpu_memory_usage
                    elif e.name.endswith(f".{name}"):
                        held[name] = e.cpu_memory_usage, e.self_cpu_memory_usage
            self.assertEqual(held, {"inner": (0, -4000), "outer": (0, -2000), "work": (0, -1400)})
            self.assertNotIn("[memory]", [e.name for e in p.events()])

    def test_both_sums_are_equal(self):
        (ours, _) = self.both(self.work, with_stack=True, profile_memory=True)

        def rows(averages):
            return {r.key: (r.count, r.cpu_memory_usage) for r in averages}

        self.assertEqual(rows(ours.key_averages()), rows(ours.events().key_averages()))

    def test_functions_that_ran_before_are_events(self):
        """From the profile's begin on, around all that their thread did."""
        (ours, theirs) = self.both(self.work, with_stack=True)
        for p in (ours, theirs):
            events = p.events()
            (linear, *_) = (e for e in events if e.name == "aten::ones")
            around = []
            while linear is not None:
                around.append(linear.name.rsplit(": ", 1)[-1].rsplit(".", 1)[-1])
                linear = linear.cpu_parent
            self.assertEqual(around[-1], "<module>")
            self.assertIn("work", around)
        (work,) = (e for e in ours.events() if e.name.endswith(".work"))
        self.assertEqual(work.time_range.start, ours.events()[0].time_range.start)

    def test_without_stacks_there_are_rows_of_memory(self):
        def rows(p):
            return [
                (r.key, r.count, r.cpu_memory_usage)
                for r in p.key_averages()
                if r.key in ("[memory]", "aten::ones")
            ]

        found = self.equal(rows, self.both(self.work, profile_memory=True))
        self.assertIn(("[memory]", 4, -7400), found)

    def test_the_json_is_as_before(self):
        (ours, _) = self.both(self.work, with_stack=True, profile_memory=True)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            ours.export_chrome_trace(path)
            with open(path) as f:
                rows = json.load(f)["traceEvents"]
        memory = [row for row in rows if row["name"] == "[memory]"]
        self.assertEqual(len(memory), 8)


if __name__ == "__main__":
    unittest.main()
