"""Functions of C of which one calls many, as pybind11's: each has its own name, none is held, and
there may be any number of them. Made here by hand, as pybind11 makes them: a method of its own
each, and a capsule that says which."""

import _thread
import asyncio
import collections
import ctypes
import gc
import os
import sys
import unittest

import prof

api = getattr(ctypes, "pythonapi", None)


class Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("call", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


@unittest.skipUnless(
    sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)(),
    "functions are traced in CPython with a GIL",
)
class OneCallsMany(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.call = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object)(
            lambda self, arguments: 1
        )
        cls.dropped = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(cls.count)
        api.PyCapsule_New.restype, api.PyCapsule_New.argtypes = (
            ctypes.py_object,
            [ctypes.c_void_p, ctypes.c_char_p, type(cls.dropped)],
        )
        api.PyCFunction_NewEx.restype, api.PyCFunction_NewEx.argtypes = (
            ctypes.py_object,
            [ctypes.POINTER(Method), ctypes.py_object, ctypes.c_void_p],
        )
        cls.methods = {}

    @classmethod
    def count(cls, _):
        cls.drops += 1

    def made(self, name):
        """Its method stays, as one of pybind11's does while anybody has the function."""
        if name not in self.methods:
            # METH_VARARGS
            self.methods[name] = Method(
                name.encode(), ctypes.cast(self.call, ctypes.c_void_p).value, 1, None
            )
        return api.PyCFunction_NewEx(
            ctypes.byref(self.methods[name]), api.PyCapsule_New(1, None, self.dropped), None
        )

    def traced(self, work):
        type(self).drops = 0
        prof.profiler.clear()
        with prof.profile() as p, prof.trace_functions(c_functions=True):
            work()
        gc.collect()
        return {row.key: row.count for row in p.key_averages()}

    def test_each_has_its_name_and_none_is_held(self):
        def work():
            for i in range(300):
                self.made(f"each_{i % 3}")()

        rows = self.traced(work)
        self.assertEqual(
            {name: count for name, count in rows.items() if name.startswith("each")},
            {f"each_{i}": 100 for i in range(3)},
        )
        self.assertEqual(self.drops, 300)

    def test_those_that_live_at_once(self):
        def work():
            functions = [self.made(f"living_{i % 50}") for i in range(5000)]
            for function in functions * 2:
                function()

        rows = self.traced(work)
        self.assertEqual(
            {name: count for name, count in rows.items() if name.startswith("living")},
            {f"living_{i}": 200 for i in range(50)},
        )
        self.assertEqual(self.drops, 5000)

    def test_the_next_one_has_the_address_of_the_last(self):
        """Which has another name."""
        addresses = collections.Counter()

        def work():
            for i in range(1000):
                function = self.made(f"next_{i % 2}")
                addresses[id(function.__self__)] += 1
                function()
                del function

        rows = self.traced(work)
        self.assertEqual((rows["next_0"], rows["next_1"]), (500, 500))
        if "libasan" in os.environ.get("LD_PRELOAD", ""):
            self.skipTest("AddressSanitizer keeps freed addresses from being used again")
        self.assertLess(len(addresses), 1000)

    def plain(self, name, kept):
        """A function that is not of pybind11, whose method is its own."""
        kept.append(Method(name.encode(), ctypes.cast(self.call, ctypes.c_void_p).value, 1, None))
        return api.PyCFunction_NewEx(ctypes.byref(kept[-1]), name, None)

    def test_methods_that_are_made_at_run_time_take_no_room(self):
        kept = []

        def work():
            for i in range(8000):
                self.plain(("strip", "upper")[i % 2], kept)()
            sorted([2, 1])

        rows = self.traced(work)
        self.assertNotIn("<other functions of C>", rows)
        self.assertEqual(
            [rows[name] for name in ("str.strip", "str.upper", "sorted")], [4000] * 2 + [1]
        )

    def test_methods_that_have_one_function(self):
        lock = _thread.allocate_lock()
        loop = asyncio.new_event_loop()
        future, task = loop.create_future(), loop.create_task(asyncio.sleep(0))
        self.addCleanup(loop.close)
        self.addCleanup(loop.run_until_complete, task)

        def work():
            enter, acquire = lock.__enter__, lock.acquire
            for one in (lock.__enter__, lock.acquire, acquire, enter):
                one()
                lock.release()
            for one in (task.done, future.done, future.done):
                one()

        rows = self.traced(work)
        kinds = [type(one).__name__ for one in (task, future)]
        self.assertEqual(
            {name.partition(".")[2]: count for name, count in rows.items() if "done" in name},
            {f"{kinds[0]}.done": 1, f"{kinds[1]}.done": 2},
        )
        names = {name.rpartition(".")[2]: count for name, count in rows.items()}
        self.assertEqual((names["__enter__"], names["acquire"], names["release"]), (2, 2, 4))

    def test_z_more_names_than_are_kept(self):
        """The time of those after the 6144th is reported all the same. Functions that come later
        have their names as before."""

        def work():
            for i in range(7000):
                self.made(f"name_{i}")()

        rows = self.traced(work)
        named = sum(count for name, count in rows.items() if name.startswith("name_"))
        self.assertLessEqual(named, 6144)
        self.assertGreater(named, 6000)
        self.assertEqual(named + rows["<other functions of C>"], 7000)
        rows = self.traced(lambda: (sorted([2, 1]), bytes.fromhex("00")))
        self.assertEqual((rows.get("sorted"), rows.get("bytes.fromhex")), (1, 1))


if __name__ == "__main__":
    unittest.main()
