"""Two processes that train together over gloo under prof.torch.observe(). Each has its own file
with its rank, c10d's operators as torch.profiler sees them, and handlers on rank 0 alone. make
test-torch."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from beside_torch import skip_without_torch
from hang_guard import HANG_SECONDS

import prof

HERE = os.path.dirname(os.path.abspath(__file__))
COLLECTIVES = {
    "c10d::allreduce_": 3,
    "gloo:all_reduce": 3,
    "c10d::broadcast_": 1,
    "gloo:broadcast": 1,
    "c10d::allgather_": 1,
    "gloo:all_gather": 1,
    "c10d::barrier": 1,
    "gloo:barrier": 1,
}
"""Of a step; one reduction is DistributedDataParallel's."""
STEPS = 2


class Ranks(unittest.TestCase):
    """Run once for all tests of a class."""

    maxDiff = None
    folder = ""

    @classmethod
    def start(cls, *words, **variables):
        environment = {
            k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")
        }
        return subprocess.Popen(
            [sys.executable, os.path.join(HERE, "rank_of_two.py"), cls.folder, *words],
            env={**environment, **variables},
        )

    @classmethod
    def begin(cls):
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="prof-ranks-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        running = cls.begin()
        try:
            codes = [process.wait(HANG_SECONDS) for process in running]
        finally:
            for process in running:
                process.kill()
                process.wait()
        if codes != [0] * len(running):
            raise AssertionError(f"the ranks ended with {codes}")
        cls.found = []
        for rank in range(2):
            with open(os.path.join(cls.folder, f"{rank}.json")) as f:
                cls.found.append(json.load(f))


class Checks:
    def test_each_knows_its_rank(self):
        for rank, found in enumerate(self.found):
            self.assertEqual((found["rank"], found["size"]), (rank, 2))
            about = {}
            for side in ("prof", "torch"):
                with open(os.path.join(self.folder, f"{side}-{rank}.json")) as f:
                    about[side] = json.load(f)["distributedInfo"]
            self.assertEqual(about["prof"], about["torch"])
            self.assertEqual(
                {
                    word: about["prof"][word]
                    for word in ("backend", "rank", "world_size", "pg_count")
                },
                {"backend": "gloo", "rank": rank, "world_size": 2, "pg_count": 1},
            )
            self.assertEqual(about["prof"]["pg_config"][0]["ranks"], [0, 1])

    def test_readers_find_the_rank(self):
        """HTA's and TensorBoard's way: the first line that says it."""
        for rank in range(2):
            with open(os.path.join(self.folder, f"prof-{rank}.json")) as f:
                self.assertEqual(
                    next(
                        found.group(1)
                        for found in map(re.compile(r'"rank":\s+(\d+)').search, f)
                        if found
                    ),
                    str(rank),
                )

    def test_calls_and_nesting(self):
        for _, found in enumerate(self.found):
            self.assertEqual(found["prof"], found["torch"])

    def test_collectives(self):
        for _, found in enumerate(self.found):
            self.assertEqual(
                {name: found["calls"].get(name, 0) for name in COLLECTIVES},
                {name: STEPS * count for name, count in COLLECTIVES.items()},
            )

    def test_gloos_are_asynchronous(self):
        """They take time, and no thread's own; a table has no share of them."""
        gloo = {
            name: STEPS * count for name, count in COLLECTIVES.items() if name.startswith("gloo:")
        }
        for found in self.found:
            mine, theirs = found["asynchronous"]
            self.assertEqual(
                [sorted(side.pop("shares")) for side in (mine, theirs)], [sorted(gloo)] * 2
            )
            self.assertEqual(mine, theirs)
            self.assertEqual(
                mine, {"calls": gloo, "own": [], "tied": [], "rows": gloo, "own of rows": []}
            )

    def test_they_come_back_from_the_json(self):
        gloo = {name for name in COLLECTIVES if name.startswith("gloo:")}
        for rank in range(2):
            with prof.import_trace(
                os.path.join(self.folder, f"prof-{rank}.json"),
                os.path.join(self.folder, f"back-{rank}.prof"),
            ) as back:
                self.assertEqual({row.name for row in back.aggregate() if row.is_async}, gloo)
                self.assertEqual({row.self_ns for row in back.aggregate() if row.is_async}, {0})
                self.assertEqual({e.name for e in back.events() if e.is_async}, gloo)

    def test_the_same_results(self):
        for _, found in enumerate(self.found):
            self.assertTrue(found["same bits"])

    def test_a_handler_on_rank_0_alone(self):
        for rank, found in enumerate(self.found):
            self.assertEqual(found["handled"], int(rank == 0))
            self.assertEqual(found["calls where one handles"], found["calls"])
            self.assertRegex(found["loss"], "no loss$")

    def test_both_files_in_one_table(self):
        paths = [os.path.join(self.folder, f"rank-{rank}.prof") for rank in range(2)]
        with prof.Traces.open(paths) as both:
            together = {row.name: row.count for row in both.aggregate(group="name")}
        expected = {}
        for path in paths:
            with prof.Trace.open(path) as one:
                for row in one.aggregate(group="name"):
                    expected[row.name] = expected.get(row.name, 0) + row.count
        self.assertEqual(together, expected)
        done = subprocess.run(
            [sys.executable, "-m", "prof", "table", *paths], capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(
            done.stdout, r"(?m)^c10d::allreduce_ .*\b%d\b" % together["c10d::allreduce_"]
        )


@skip_without_torch
class ByLauncher(Checks, Ranks):
    """RANK and WORLD_SIZE are in the environment; each process is recorded from its beginning to
    its end, too."""

    @classmethod
    def begin(cls):
        return [
            cls.start(
                RANK=str(rank),
                WORLD_SIZE="2",
                PROF_LEVEL="1",
                PROF_OUTPUT=os.path.join(cls.folder, "whole-%r.prof"),
            )
            for rank in range(2)
        ]

    def test_a_file_each_by_its_rank(self):
        self.assertEqual(
            sorted(name for name in os.listdir(self.folder) if name.startswith("whole")),
            ["whole-0.prof", "whole-1.prof"],
        )
        for rank, found in enumerate(self.found):
            with prof.Trace.open(os.path.join(self.folder, f"whole-{rank}.prof")) as trace:
                self.assertEqual((trace.info().rank, trace.info().world_size), (rank, 2))
                calls = {row.name: row.count for row in trace.aggregate(group="name")}
            self.assertGreater(calls["c10d::allreduce_"], 2 * found["calls"]["c10d::allreduce_"])


@skip_without_torch
class BySpawn(Checks, Ranks):
    """torch.multiprocessing.spawn() sets no RANK: prof queries torch.distributed."""

    @classmethod
    def begin(cls):
        return [cls.start("--spawn")]

    def test_who_asks_for_nothing_records_nothing(self):
        first, second = self.found
        self.assertEqual(
            first["calls while rank 0 records"]["c10d::allreduce_"], COLLECTIVES["c10d::allreduce_"]
        )
        self.assertEqual(second["calls while rank 0 records"], {})
        self.assertEqual(second["events more"], 0)


@skip_without_torch
class WhoSays(unittest.TestCase):
    JOIN = (
        "torch.distributed.init_process_group('gloo', store=torch.distributed.HashStore(), rank=0, "
        "world_size=1)\n"
    )
    OBSERVE = "with prof.profile() as p, prof.torch.observe(): torch.ones(1)\n"
    PRINT = "print(p.trace.info().rank, p.trace.info().world_size)"

    def run_code(self, code, **variables):
        environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
        done = subprocess.run(
            [sys.executable, "-c", "import prof, prof.torch, torch\n" + code + self.PRINT],
            env={**environment, **variables},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def test_what_the_program_says_holds(self):
        self.assertEqual(self.run_code("prof.set_rank(3, 8)\n" + self.JOIN + self.OBSERVE), "3 8")

    def test_torch_distributed_before_the_environment(self):
        self.assertEqual(self.run_code(self.OBSERVE, RANK="5", WORLD_SIZE="6"), "5 6")
        self.assertEqual(self.run_code(self.JOIN + self.OBSERVE, RANK="5", WORLD_SIZE="6"), "0 1")

    def test_who_joins_while_observed(self):
        self.assertEqual(
            self.run_code(
                "with prof.profile() as p:\n  with prof.torch.observe(): " + self.JOIN,
                RANK="5",
                WORLD_SIZE="6",
            ),
            "0 1",
        )


if __name__ == "__main__":
    unittest.main()
