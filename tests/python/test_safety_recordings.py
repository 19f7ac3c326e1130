"""What must not go wrong of a profile and the recording around it: programs that record themselves,
stretches that are left out, full captures, interrupts and forks."""

import os
import subprocess
import sys
import textwrap
import unittest

from hang_guard import HANG_SECONDS
from test_safety import ProfileBase

import prof
from prof._library import C


class Recordings(ProfileBase):
    def test_many_profiles_fit_into_one_process(self):
        for _ in range(12):  # each as large as a tenth of what a capture holds
            with prof.profile() as p:
                for _ in range(200000):
                    with prof.scope(
                        "a scope whose arguments take room", n=1 << 40, text="0123456789" * 8
                    ):
                        pass
            self.assertEqual(p.key_averages()[0].count, 200000)
        del p

    def test_what_does_not_fit_is_told(self):
        import textwrap

        child = """
            import os, warnings
            os.environ.update(PROF_LEVEL="1", PROF_CAP_BYTES=str(1 << 20))
            import prof
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                with prof.profile() as p:
                    for _ in range(200000):
                        with prof.scope("s"): pass
            have = p.key_averages()[0].count
            assert 0 < have < 200000, have
            assert [w.category for w in said] == [RuntimeWarning], said
            wanted = f"{200000 - have} scopes of this profile are not in it: "
            assert str(said[0].message).startswith(wanted), said[0].message
            assert said[0].filename == "<string>", said[0].filename
            for rows in (p.key_averages(), p.events()):
                assert rows.lost == 200000 - have, rows.lost
                wanted = f"\\nNot in it, for want of room: {200000 - have} scopes\\n"
                assert rows.table().endswith(wanted), rows.table()[-200:]
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(child)],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_capture_that_was_full_before_says_so_and_what_helps(self):
        import textwrap

        child = """
            import os, warnings
            os.environ.update(PROF_CAP_BYTES=str(1 << 20), **{which: "1"})
            import prof
            pool = prof.memory_profiler.Pool("pool")
            for i in range(200000 if which == "PROF_MEMORY" else 0):
                pool.alloc(i * 64 + 64, 64)
            for _ in range(200000 if which == "PROF_LEVEL" else 0):
                with prof.scope("s"): pass
            for is_cleared in (False, True):
                if is_cleared: prof.profiler.clear()
                with warnings.catch_warnings(record=True) as said:
                    warnings.simplefilter("always")
                    with prof.profile() as p:
                        with prof.scope("s"): pass
                assert len(said) == (not is_cleared), said
                if said:
                    text = str(said[0].message)
                    assert "full before it began" in text and "prof.profiler.clear()" in text, text
                    assert ("PROF_MEMORY_MIN" in text) == (which == "PROF_MEMORY"), text
            assert [row.count for row in p.key_averages()] == [1], p.key_averages()
        """
        for which in ("PROF_MEMORY", "PROF_LEVEL"):
            done = subprocess.run(
                [sys.executable, "-c", f"which = {which!r}\n" + textwrap.dedent(child)],
                capture_output=True,
                text=True,
                timeout=HANG_SECONDS,
            )
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_what_the_program_records_itself_goes_on(self):
        for begin, level in (
            (lambda: prof.profiler.start(1), 1),
            (lambda: prof.profiler.start(2), 2),
            (prof.memory_profiler.start, 0),
        ):
            with prof.profile():
                begin()
            self.assertEqual(C.prof_level(), level)
            with prof.profile(level=2):
                self.assertEqual(C.prof_level(), 2)
            self.assertEqual(C.prof_level(), level)
            self.assertTrue(prof.memory_profiler.is_on())
            prof.profiler.stop()
            prof.memory_profiler.stop()

    def test_a_stretch_is_left_out(self):
        with prof.profile() as p:
            for name, on in (("first", True), ("left out", False), ("last", True)):
                p.toggle_collection_dynamic(on, [prof.ProfilerActivity.CPU])
                with prof.record_function(name):
                    pass
        self.assertEqual([a.key for a in p.key_averages()], ["first", "last"])
        self.assertEqual(C.prof_level(), 0)

    def test_a_stretch_is_left_out_of_its_own_profile_alone(self):
        cpu = [prof.ProfilerActivity.CPU]
        never_started = prof.profile()
        prof.profiler.start(1)
        with prof.profile(level=2) as p:
            never_started.toggle_collection_dynamic(False, cpu)
            self.assertEqual(C.prof_level(), 2)
            p.toggle_collection_dynamic(False, cpu)
            self.assertEqual(C.prof_level(), 1)
            p.toggle_collection_dynamic(True, [prof.ProfilerActivity.CUDA])
            self.assertEqual(C.prof_level(), 1)
            p.toggle_collection_dynamic(False, [prof.ProfilerActivity.CUDA])
            self.assertEqual(C.prof_level(), 1)
            p.toggle_collection_dynamic(True, cpu)
            self.assertEqual(C.prof_level(), 2)
        self.assertEqual(C.prof_level(), 1)
        prof.profiler.stop()
        never_started.toggle_collection_dynamic(True, cpu)
        self.assertEqual(C.prof_level(), 0)
        with prof.profile() as outer:
            with prof.profile() as inner:
                inner.toggle_collection_dynamic(False, cpu)
                with prof.record_function("one wants it"):
                    pass
            outer.toggle_collection_dynamic(False, cpu)
            self.assertEqual(C.prof_level(), 0)
            prof.profiler.start(1)
            self.assertEqual(C.prof_level(), 1)
            prof.profiler.stop()
            self.assertEqual(C.prof_level(), 0)
            outer.toggle_collection_dynamic(True, cpu)
            with prof.record_function("on again"):
                pass
        self.assertEqual([a.key for a in outer.key_averages()], ["one wants it", "on again"])
        with self.assertRaises(TypeError):
            outer.toggle_collection_dynamic(True, ["CPU"])  # type: ignore[list-item]

    def test_memory_is_stopped_inside_of_a_profile(self):
        for _ in range(3):
            with prof.memory_profiler.Pool("pool") as pool, prof.profile(profile_memory=True) as p:
                self.assertTrue(prof.memory_profiler.is_on())
                prof.memory_profiler.start()
                prof.memory_profiler.stop()
                with prof.record_function("once"):
                    pool.alloc(1, 1000)
            self.assertEqual(C.prof_level(), 0)
            self.assertRaises(RuntimeError, lambda: C.check(C.prof_stop()))
            self.assertEqual([(a.count, a.cpu_memory_usage) for a in p.key_averages()], [(1, 1000)])
            self.assertFalse(prof.memory_profiler.is_on())

    def test_a_profile_that_is_stopped_while_it_starts_has_ended(self):
        p = prof.profile(custom_trace_id_callback=lambda: (p.stop(), "x")[1])
        p.start()
        self.assertEqual(C.prof_level(), 0)
        p.stop()
        self.assertEqual(C.prof_level(), 0)

    def test_interrupts_in_a_profiles_start_and_stop_leave_nothing_behind(self):
        def fails(*_):
            raise KeyboardInterrupt

        from prof import _profile

        before = _profile.record_function
        p = prof.profile(
            schedule=prof.schedule(wait=0, warmup=0, active=2), custom_trace_id_callback=lambda: "x"
        )
        _profile.record_function = fails
        try:
            with self.assertRaises(KeyboardInterrupt):
                p.start()
        finally:
            _profile.record_function = before
        self.assertEqual(C.prof_level(), 0)
        p.stop()
        p = prof.profile()
        p.start()
        p._end_step = fails
        with self.assertRaises(KeyboardInterrupt):
            p.stop()
        del p._end_step
        p.stop()
        self.assertEqual(C.prof_level(), 0)

    def test_a_profile_that_is_begun_anew_while_it_stops_records(self):
        p = prof.profile()
        window, begun = p._window, []

        def again(*arguments):
            if not begun:  # as a signal's handler might
                begun.append(1)
                p.start()
            return window(*arguments)

        p.start()
        p._window = again
        p.stop()
        self.assertEqual(C.prof_level(), 1)
        with prof.record_function("recorded"):
            pass
        p.stop()
        self.assertEqual(C.prof_level(), 0)
        self.assertEqual([a.key for a in p.key_averages()], ["recorded"])

    def test_a_programs_stop_ends_no_profile(self):
        for level in (1, 2):
            with prof.profile() as p, prof.record_function("around"):
                prof.profiler.start(level)
                self.assertEqual(C.prof_level(), level)
                with prof.record_function("inside"):
                    prof.profiler.stop()
                self.assertEqual(C.prof_level(), 1)
                prof.profiler.stop()
                with prof.record_function("behind"):
                    pass
            self.assertEqual(C.prof_level(), 0)
            self.assertEqual(
                sorted(a.key for a in p.key_averages()), ["around", "behind", "inside"]
            )
            prof.profiler.clear()

    def test_what_stands_open_while_a_stretch_is_left_out_is_whole(self):
        cpu = [prof.ProfilerActivity.CPU]
        seen = []
        with prof.profile(
            schedule=prof.schedule(wait=0, warmup=1, active=4, repeat=1),
            on_trace_ready=lambda p: seen.append({a.key: a.count for a in p.key_averages()}),
        ) as p:
            for _ in range(5):
                with prof.record_function("outer"):
                    p.toggle_collection_dynamic(True, cpu)  # it is on: nothing happens
                    p.toggle_collection_dynamic(False, cpu)
                    with prof.record_function("left out"):
                        pass
                    p.toggle_collection_dynamic(True, cpu)
                p.step()
        self.assertEqual(seen, [{"ProfilerStep*": 4, "outer": 4}])

    def test_what_a_program_starts_after_a_profile_has_none_of_it(self):
        prof.profiler.clear()
        with prof.profile() as p, prof.record_function("of the profile"):
            pass
        prof.profiler.start()
        with prof.record_function("of the program"):
            pass
        prof.profiler.stop()
        self.assertEqual(
            [e["name"] for e in prof.profiler.get()["traceEvents"] if e["ph"] in "XB"],
            ["of the program"],
        )
        self.assertEqual([a.key for a in p.key_averages()], ["of the profile"])

    def test_in_a_ring_what_stood_there_before_is_no_loss_of_the_profile(self):
        child = """
            import warnings, prof
            warnings.simplefilter("error")
            scope = prof.record_function("scope")
            def record(count):
                for _ in range(count):
                    with scope: pass
            record(10 * 65536)
            for _ in range(20):
                with prof.profile() as p:
                    record(6553)
                assert [a.count for a in p.key_averages()] == [6553]
                assert p.key_averages().lost == 0
            with warnings.catch_warnings(record=True) as said, prof.profile() as p:
                warnings.simplefilter("always")
                record(10 * 65536)
            held = p.key_averages()[0].count
            assert held < 3 * 65536, held
            lost = p.key_averages().lost
            assert abs(lost - (10 * 65536 - held)) <= 4096, (held, lost)
        """
        variables = {
            **os.environ,
            "PROF_LEVEL": "1",
            "PROF_POLICY": "ring",
            "PROF_CAP_BYTES": "2097152",
        }
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(child)],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            env=variables,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_a_forked_child_records_for_itself(self):
        child = """
            import os, prof
            from prof._library import C
            def record(name):
                with prof.record_function(name): pass
            with prof.profile() as p:
                record("parent")
                pid = os.fork()
                if not pid:
                    assert C.prof_level() == 0, C.prof_level()
                    record("nobody's")
                    for name in "one", "two":
                        with prof.profile() as own: record(name)
                        assert [a.key for a in own.key_averages()] == [name]
                        assert [e.name for e in prof.Trace.now().events()] == [name]
                        assert C.prof_level() == 0
                    os._exit(7)
            assert os.waitpid(pid, 0)[1] == 7 << 8
            assert [a.key for a in p.key_averages()] == ["parent"]
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(child)],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_a_forked_child_ends_its_parents_profile_in_silence(self):
        child = """
            import os, sys
            import prof
            called = []
            pid = 0
            schedule = prof.schedule(wait=0, warmup=1, active=9)
            options = dict(schedule=schedule, on_trace_ready=lambda p: called.append(1))
            with prof.profile(with_stack=True, **options) as p:
                p.step()
                with prof.record_function("parent"):
                    pass
                pid = os.fork()
                if not pid:
                    WAY
            if pid:
                assert called == [1]
                assert "parent" in [e.key for e in p.key_averages()]
                sys.exit(os.waitpid(pid, 0)[1] >> 8)
            assert not called
        """
        ways = {
            "sys.exit(7)": 7,
            "p.step(); p.step(); p.stop(); p.start(); p.stop(); sys.exit(6)": 6,
            "q = prof.profile(); q.start(); q.stop(); sys.exit(5 + len(q.key_averages()))": 5,
            "pass": 0,
        }
        for way, expected in ways.items():
            done = self.run_python(child.replace("WAY", way))
            self.assertEqual((done.returncode, done.stderr), (expected, ""), way)


if __name__ == "__main__":
    unittest.main()
