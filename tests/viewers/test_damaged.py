"""Exports of damaged captures are strict JSON: UTF-8, no NaN, no key twice, no control character.
A hundred captures, each with some bytes turned over, a word of the worst numbers, or cut short. The
seed is fixed, and a failure names the number of the capture. tests/hostile reads all such captures,
and throws their exports away."""

import os
import pathlib
import random
import struct
import subprocess
import sys

import pytest
from hang_guard import HANG_SECONDS

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("PROF_TEST_BUILD_DIR", ROOT / "build" / "dev"))
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "python")]

import check_trace  # noqa: E402
import import_traces  # noqa: E402

COUNT, SEED = 100, 20261127
HEADER_BYTES = 4096
WORST = [0, 1, 16, 0x4000, 2**32 - 1, 1 << 59, 1 << 63, 2**64 - 1, 2**64 - 16, 2**64 - 64]
RECORD = """if True:
    import sys
    import prof
    prof.profiler.start(2)
    texts = ["e\\u00e9", "\\u2028", "</script>", '"\\\\', "\\0", "NaN", "External id", "cut"]
    for i, text in enumerate(texts):
        args = {"i": i, text: i, "text": text, "half": 0.5, "huge": 2**60 + i}
        with prof.scope(text, **args):
            with prof.scope("plain"):
                prof.instant(text)
            prof.counter("count " + text, i)
    with prof.scope("open"):
        prof.Trace.now().dump(sys.argv[1], "capture")
"""


def record(path):
    """A capture of the library's own, with a scope that is open."""
    environment = {**os.environ, "PROF_LIBRARY": str(BUILD / "libprof.so")}
    environment["PYTHONPATH"] = str(ROOT / "bindings" / "python")
    words = [sys.executable, "-c", RECORD, path]
    subprocess.run(words, check=True, timeout=HANG_SECONDS, env=environment)
    return path.read_bytes()


def imported(folder, name):
    """A capture of devices, memory, arrows and calls, if this build can import."""
    (folder / "t.json").write_text(import_traces.text_of(name), encoding="utf-8")
    words = [BUILD / "prof", "import", "t.json", "-o", "t.prof"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if "yajl" in done.stderr:
        return None
    assert done.returncode == 0, done.stderr
    capture = (folder / "t.prof").read_bytes()
    (folder / "t.prof").unlink()
    return capture


@pytest.fixture(scope="module")
def captures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged")
    names = ["ranks", "arrows at kernels", "memory in no order", "counters", "one id"]
    names.append("stacks by number")
    made = [record(folder / "own.prof"), *(imported(folder, name) for name in names)]
    return [capture for capture in made if capture]


def damage(source, capture):
    """The capture with a few bytes or words changed where anything stands, or without its end."""
    data = bytearray(capture)
    used = [at for at in range(0, len(data), 8) if any(data[at : at + 8])]
    kind = source.choice(["bits", "bytes", "words", "cut"])
    if kind == "cut":
        return bytes(data[: source.randint(HEADER_BYTES, len(data))])
    for _ in range(source.choice([1, 1, 4, 32])):
        at = source.choice(used)
        if kind == "words":
            data[at : at + 8] = struct.pack("<Q", source.choice(WORST))
        else:
            byte = at + source.randrange(8)
            data[byte] ^= 0xFF if kind == "bytes" else 1 << source.randrange(8)
    return bytes(data)


def exported(capture, form):
    """The export's text; None: the capture is refused. What the self-check finds is no failure."""
    words = [BUILD / "prof", "dump", capture, "-o", capture.with_suffix(".json"), "--format", form]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=HANG_SECONDS)
    assert done.returncode in (0, 1), done
    output = capture.with_suffix(".json")
    if not output.exists():
        assert done.stderr, "refused without a word"
        return None
    text = check_trace.read_text(output)
    output.unlink()
    return text


def test_exports_of_damaged_captures_are_strict_json(captures, tmp_path):
    parsed = {"chrome": 0, "raf": 0}
    for number in range(COUNT):
        source = random.Random(SEED + number)
        path = tmp_path / f"{number}.prof"
        path.write_bytes(damage(source, captures[number % len(captures)]))
        for form in parsed:
            text = exported(path, form)
            if text is None:
                continue
            try:
                document = check_trace.parse(text)
            except check_trace.Bad as bad:
                pytest.fail(f"capture {number}, {form}: {bad}")
            assert isinstance(document["traceEvents"], list)
            parsed[form] += 1
        path.unlink()
    assert min(parsed.values()) > COUNT * 3 // 4, parsed
