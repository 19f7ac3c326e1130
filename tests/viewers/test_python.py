"""Shows what the Python package writes to the engines of the real viewers: the tutorials' traces, a
profile with metadata, shapes, stacks and memory, processes of a script, RAF's log. Run by CTest, or
by hand: .venv/bin/python -m pytest tests/viewers"""

import json
import os
import subprocess
import sys
from pathlib import Path

import check_trace
import pytest
from hang_guard import HANG_SECONDS
from test_viewers import BUILD, ROOT, engines, needs_node  # noqa: F401

ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(ROOT / "bindings/python"),
    "PROF_LIBRARY": str(BUILD / "libprof.so"),
}
EVERYTHING = """
import asyncio, threading, prof

class Array:
    def __init__(self, *shape):
        self.shape, self.dtype = shape, "float32"

async def task(n):
    for _ in range(3):
        with prof.record_function(f"task {n}"):
            pass
        await asyncio.sleep(0)

@prof.record_function("steps of a generator")
def generator():
    yield 1
    yield 2

options = dict(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True)
values = dict(text="a \\" </script> \\u2028 \\ud800", number=1 << 62, real=float("nan"))
shapes = [(0x0220, 2, 3), (0x0220, 3, 4)]
once = prof.schedule(wait=0, warmup=1, active=3, repeat=1)
with prof.profile(schedule=once, **options) as p:
    for _ in range(4):
        mm = prof.scope("operators.mm", "operator", 1, _shapes=shapes, **values)
        with prof.memory_profiler.Pool("arrays", "cpu") as pool, mm:
            pool.alloc(0x1000, 100, 128)
            pool.free(0x1000, 128)
        threading.Thread(target=list, args=(generator(),), name="other").start()
        p.step()
    asyncio.run(task(1))
p.add_metadata("a \\"text\\" </script>", "\\ud800 \\u2028")
p.add_metadata_json("numbers", "[1, 2.5, null]")
p.export_chrome_trace("all.json")
p.export_chrome_trace("all.json.gz")
prof.profiler.dump("raf.json")
exec(compile("def traced():\\n  return len([])", "a \\"path\\" \u00e4\\\\", "exec"))
with prof.profile() as p, prof.trace_functions(c_functions=True, imports=False):
    traced()
p.export_chrome_trace("functions.json")
"""
PROCESSES = """
import multiprocessing, prof

@prof.record_function("work of a child")
def work(n):
    return n

if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    with multiprocessing.Pool(2) as pool:
        pool.map(work, range(10))
"""


def run(folder, *arguments):
    subprocess.run(
        [sys.executable, *arguments],
        check=True,
        timeout=HANG_SECONDS,
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def names(document):
    return sorted(e["name"] for e in document["traceEvents"] if e["ph"] == "X")


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """All that is shown."""
    made = tmp_path_factory.mktemp("python")
    (made / "everything.py").write_text(EVERYTHING, encoding="utf-8")
    (made / "processes.py").write_text(PROCESSES, encoding="utf-8")
    run(made, "everything.py")
    run(made, "-m", "prof", "run", "-o", "run.json", "processes.py")
    for tutorial in (
        "guides/raf/raf_tutorial.py",
        "guides/deeplink/deeplink_tutorial.py",
        "torch_recipe.py",
    ):
        own = made / Path(tutorial).stem
        own.mkdir()
        run(own, str(ROOT / "examples/python" / tutorial))
    return made


@needs_node
@pytest.mark.parametrize("name", ["all.json", "all.json.gz"])
def test_a_profile_with_all_that_it_can_have(folder, engines, name):  # noqa: F811
    document, phases = check_trace.check_chrome(folder / name, engines)
    assert names(document).count("operators.mm") == 3
    assert [
        document[key] for key in ("with_stack", "record_shapes", "profile_memory", "numbers")
    ] == [1, 1, 1, [1, "2.5", None]]
    assert document['a "text" </script>'].endswith("\u2028")
    operator = next(e for e in document["traceEvents"] if e["name"] == "operators.mm")
    assert (
        operator["args"]["Input Dims"] == [[2, 3], [3, 4]]
        and "everything.py" in operator["args"]["Call stack"]
    )
    assert phases["C"] > 0


@needs_node
def test_traced_functions_have_their_places(folder, engines):  # noqa: F811
    document, _ = check_trace.check_chrome(folder / "functions.json", engines)
    places = {e["name"]: e.get("args", {}) for e in document["traceEvents"] if e["ph"] == "X"}
    assert [places["traced"][key] for key in ("file", "line")] == ['a "path" \u00e4\\', 1]
    assert places["len"]["frame"] == "<built-in function len>"


@needs_node
def test_each_process_of_a_script(folder, engines):  # noqa: F811
    files = sorted(folder.glob("run*.json"))
    assert 2 <= len(files) <= 3
    found = [name for file in files for name in names(check_trace.check_chrome(file, engines)[0])]
    assert sorted(found) == ["processes.py"] + ["work of a child"] * 10


@needs_node
def test_a_log_of_raf(folder, engines):  # noqa: F811
    assert check_trace.check_raf(folder / "raf.json", engines) > 0


@needs_node
def test_the_tutorials(folder, engines):  # noqa: F811
    shown = 0
    for file in sorted(folder.glob("*/*.json")) + sorted(folder.glob("*/*/*.json")):
        document = json.loads(file.read_text(encoding="utf-8"))
        if "schemaVersion" in document:
            check_trace.check_chrome(file, engines, is_part=True)
        else:
            check_trace.check_raf(file, engines)
        shown += 1
    assert shown >= 5
