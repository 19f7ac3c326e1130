"""Gives what prof.tensorboard_trace_handler() writes to the programs that read torch.profiler's
traces: TensorBoard's plug-in and HTA, unchanged from PyPI. Run by CTest, or by hand:
.venv/bin/python -m pytest tests/viewers"""

import gzip
import json
import os
import subprocess

import pytest
from hang_guard import HANG_SECONDS
from test_python import run
from test_viewers import HERE

WORKERS = """
import sys, time, prof

def matmul():
    with prof.scope("matmul", "operator", 1, _shapes=[(0x0220, 2, 3), (0x0220, 3, 4)]):
        time.sleep(0.001)

def step(pool, number):
    with prof.record_function("forward"):
        with prof.scope("take"):
            pool.alloc(0x1000 * number, 3000, 4096)
        matmul()
        with prof.scope("give"):
            pool.free(0x1000 * number, 4096)
    with prof.scope("keep"):
        pool.alloc(0x100000 + 0x1000 * number, 1000, 1024)

pool = prof.memory_profiler.Pool("arrays", "cpu")
for rank in range(2):
    prof.set_rank(rank, 2)
    twice = prof.schedule(wait=1, warmup=1, active=3, repeat=2)
    write = prof.tensorboard_trace_handler(
        sys.argv[1], worker_name=f"worker{rank}", use_gzip=rank == 1
    )
    options = dict(record_shapes=True, profile_memory=True, with_stack=True)
    with prof.profile(schedule=twice, on_trace_ready=write, **options) as p:
        for number in range(1, 11):
            step(pool, 100 * rank + number)
            p.step()
"""
NAMES = ["forward", "give", "keep", "matmul", "take"]


@pytest.fixture(scope="session")
def python():
    """The python that has the readers."""
    made = subprocess.run([str(HERE / "fetch-readers.sh")], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip("the readers could not be fetched: " + made.stderr.strip()[-300:])
    return made.stdout.split()[-1]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Two ranks, two cycles of three steps each."""
    made = tmp_path_factory.mktemp("readers")
    (made / "workers.py").write_text(WORKERS, encoding="utf-8")
    run(made, "workers.py", "runs")
    return made / "runs"


def read(python, script, folder, *options, **environment):
    done = subprocess.run(
        [python, str(HERE / script), str(folder), *options],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def profiles(python, folder):
    return read(python, "read_tensorboard.py", folder)


def test_tensorboard_finds_every_worker_and_span(profiles):
    assert [(p["worker"], p["span"]) for p in profiles] == [
        ("worker0", "1"),
        ("worker0", "2"),
        ("worker1", "1"),
        ("worker1", "2"),
    ]
    assert all(p["views"] == ["overall", "operator", "trace", "memory"] for p in profiles)


def test_tensorboard_sees_the_steps(profiles):
    assert [p["steps"] for p in profiles] == [["2", "3", "4"], ["7", "8", "9"]] * 2


def matmul_us(path):
    """What the products of that trace took, together."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    return sum(event["dur"] for event in events if event["ph"] == "X" and event["name"] == "matmul")


def test_tensorboards_operators_are_those_of_the_table(profiles, folder):
    files = sorted(folder.iterdir())
    assert len(files) == len(profiles)
    for p, file in zip(profiles, files):
        # annotations are none
        assert {name: row["calls"] for name, row in p["operators"].items()} == dict.fromkeys(
            ["matmul", "take", "give", "keep"], 3
        )
        whole_us = matmul_us(file)
        assert whole_us >= 3000  # three sleeps of 1 ms
        assert p["operators"]["matmul"]["host_self_duration"] == pytest.approx(whole_us, abs=3)
        assert ["matmul", "[[2, 3], [3, 4]]"] in p["shapes"]


def test_tensorboard_shows_where_operators_were_called(profiles):
    for p in profiles:
        (stack,) = p["stacks"]["matmul"]
        assert stack.endswith(";")  # as torch.profiler writes it
        frames = stack[:-1].split(";")
        assert [line.split(": ")[-1] for line in frames] == ["matmul", "step", "<module>"]


def test_tensorboard_tells_memory_by_operator_and_over_time(profiles):
    for p in profiles:
        rows = {row[0]: row[1:] for row in p["memory"]["CPU"]}
        # calls, increase, self increase, allocations, self allocations, allocated bytes, self
        # allocated bytes
        assert rows["take"] == [3, 12288, 12288, 3, 3, 12288, 12288]
        assert rows["keep"] == [3, 3072, 3072, 3, 3, 3072, 3072]
        assert rows["give"][:3] == [3, -12288, -12288]
        allocated = [row[1] for row in p["curve"]["CPU"]]
        assert max(allocated) - min(allocated) >= 4096 + 2 * 1024
        assert sorted(row[1] for row in p["events"]["CPU"]) == [1024] * 3 + [4096] * 3


def test_hta_reads_the_ranks_of_a_folder(python, folder, tmp_path):
    for path in folder.iterdir():
        # the first cycle of each
        if sorted(folder.glob(path.name.split(".")[0] + ".*"))[0] == path:
            os.link(path, tmp_path / path.name)
    found = read(python, "read_hta.py", tmp_path, HTA_DISABLE_NS_ROUNDING="1")
    assert sorted(found["ranks"]) == ["0", "1"]
    assert found["steps"] == [2, 3]  # it leaves out the last one
    for rows in found["ranks"].values():
        for iteration in found["steps"]:
            steps = [row for row in rows if row[2] == iteration]
            assert sorted(name for name, *_ in steps) == sorted(
                [*NAMES, f"ProfilerStep#{iteration}"]
            )
            assert {category for _, category, *_ in steps} == {"operator", "user_annotation"}
            (whole,) = (row for row in steps if row[0].startswith("ProfilerStep"))
            assert all(
                row[3] >= whole[3] - 0.001 and row[3] + row[4] <= whole[3] + whole[4] + 0.001
                for row in steps
            )
            (product,) = (row for row in steps if row[0] == "matmul")
            assert product[4] >= 1000
