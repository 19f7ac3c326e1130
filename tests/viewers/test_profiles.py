"""speedscope's JSON and pprof's profiles, read back here by their published rules, and by go tool
pprof if there is a go. Both must hold the call paths that the CSV of the same capture gives, with
the same calls and self times."""

import collections
import csv
import gzip
import json
import os
import shutil
import subprocess

import pytest
from hang_guard import HANG_SECONDS
from test_pftrace import dump
from test_viewers import BUILD, ROOT, traces  # noqa: F401

# Scopes of these nest: a path follows from the times.
NESTED = ["plain.json", "nested.json", "arguments.json", "threads.json", "muted.json"]
KINDS = [
    *NESTED,
    "empty.json",
    "deep.json",
    "hostile.json",
    "arrows.json",
    "overlaps.json",
    "devices.json",
    "unfinished.json",
]
FRAMES_MAX = 1001  # deeper scopes are one frame


def rows_of(capture, folder):
    with open(dump(capture, folder / "t.csv"), encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    return [row for row in rows if row["kind"] in ("scope", "unfinished", "device")]


def paths_of_rows(rows):
    """Calls and self time by thread and path, from the times alone."""
    found = collections.defaultdict(lambda: [0, 0])
    threads = collections.defaultdict(list)
    for row in rows:
        start, duration = int(row["start_ns"]), int(row["duration_ns"])
        threads[row["tid"]].append((start, -duration, row["name"], int(row["self_ns"])))
    for tid, scopes in threads.items():
        stack = []
        for start, minus_duration, name, self_ns in sorted(scopes, key=lambda scope: scope[:2]):
            while stack and stack[-1][0] < start - minus_duration:
                stack.pop()
            stack.append((start - minus_duration, name))
            place = found[tid, tuple(name for _, name in stack)]
            place[0] += 1
            place[1] += self_ns
    return {key: tuple(value) for key, value in found.items()}


# ---- speedscope ----


def read_speedscope(path):
    """What speedscope's schema and its importer ask for. Returns self times by thread and path."""
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert document["exporter"].startswith("prof ") and isinstance(document["name"], str)
    frames = document["shared"]["frames"]
    assert all(set(frame) <= {"name", "file", "line"} and frame["name"] for frame in frames)
    assert 0 <= document["activeProfileIndex"] < len(document["profiles"])
    found = {}
    for profile in document["profiles"]:
        assert (profile["type"], profile["unit"]) == ("evented", "nanoseconds")
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "events"}
        at, stack = profile["startValue"], []
        for event in profile["events"]:
            assert event["at"] >= at and 0 <= event["frame"] < len(frames)
            path_now = tuple(frames[frame]["name"] for frame in stack)
            if stack:
                key = profile["name"], path_now
                found[key] = found.get(key, 0) + event["at"] - at
            if event["type"] == "O":
                stack.append(event["frame"])
            else:
                assert event["type"] == "C" and stack.pop() == event["frame"]
            at = event["at"]
        assert stack == [] and at == profile["endValue"]
    return found


# ---- pprof ----


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """Of a protobuf message: lists of numbers and bytes by field."""
    found, at = collections.defaultdict(list), 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at : at + value], at + value
        else:
            assert key & 7 == 0
        found[key >> 3].append(value)
    assert at == len(data)
    return found


def numbers(packed):
    found, at = [], 0
    while at < len(packed):
        value, at = varint(packed, at)
        found.append(value)
    return found


def read_pprof(path):
    """Calls and self times by thread and path, outer frames first."""
    profile = fields(gzip.decompress(path.read_bytes()))
    texts = [text.decode("utf-8") for text in profile[6]]
    assert texts[0] == ""
    types = [fields(kind) for kind in profile[1]]
    assert [[texts[kind[1][0]], texts[kind[2][0]]] for kind in types] == [
        ["scopes", "count"],
        ["time", "nanoseconds"],
    ]
    assert texts[profile[14][0]] == "time"
    functions = {f[1][0]: f for f in map(fields, profile[5])}
    locations = {f[1][0]: fields(f[4][0]) for f in map(fields, profile[4])}
    assert 0 not in functions and 0 not in locations
    assert len(functions) == len(profile[5]) and len(locations) == len(profile[4])
    found = {}
    for sample in map(fields, profile[2]):
        stack = [locations[number] for number in numbers(sample[1][0])]
        names = [texts[functions[line[1][0]][2][0]] for line in reversed(stack)]
        [label] = map(fields, sample[3])
        assert texts[label[1][0]] == "thread"
        calls, self_ns = numbers(sample[2][0])
        key = texts[label[2][0]], tuple(names)
        before = found.get(key, (0, 0))  # names that differ only in what is no UTF-8
        found[key] = before[0] + calls, before[1] + self_ns
    return found


# ---- tests ----


def by_thread_number(paths):
    return {(thread.rpartition(" ")[2], path): value for (thread, path), value in paths.items()}


@pytest.mark.parametrize("name", NESTED)
def test_paths_have_the_calls_and_times_of_the_rows(traces, tmp_path, name):  # noqa: F811
    capture = traces[0] / (name + ".prof")
    wanted = paths_of_rows(rows_of(capture, tmp_path))
    assert by_thread_number(read_pprof(dump(capture, tmp_path / "t.pb.gz"))) == wanted
    drawn = by_thread_number(read_speedscope(dump(capture, tmp_path / "t.speedscope.json")))
    assert {path: ns for path, ns in drawn.items() if ns} == {
        path: ns for path, (_, ns) in wanted.items() if ns
    }


@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_lost_in_sum(traces, tmp_path, name):  # noqa: F811
    capture = traces[0] / (name + ".prof")
    rows = rows_of(capture, tmp_path)
    samples = read_pprof(dump(capture, tmp_path / "t.pb.gz"))
    drawn = read_speedscope(dump(capture, tmp_path / "t.speedscope.json"))
    self_ns = sum(int(row["self_ns"]) for row in rows)
    assert sum(calls for calls, _ in samples.values()) == len(rows)
    assert sum(ns for _, ns in samples.values()) == sum(drawn.values()) == self_ns
    assert max((len(path) for _, path in samples), default=0) <= FRAMES_MAX


def test_without_gz_the_bytes_are_the_same(traces, tmp_path):  # noqa: F811
    capture = traces[0] / "nested.json.prof"
    for plain, packed in ("t.pb", "u.pb.gz"), ("t.speedscope.json", "u.speedscope.json.gz"):
        data = dump(capture, tmp_path / packed).read_bytes()
        assert gzip.decompress(data) == dump(capture, tmp_path / plain).read_bytes()


@pytest.mark.skipif(not shutil.which("go"), reason="go is missing: its pprof reads the profile")
def test_go_tool_pprof_has_the_same_total(traces, tmp_path):  # noqa: F811
    capture = traces[0] / "nested.json.prof"
    profile = dump(capture, tmp_path / "t.pb.gz")
    done = subprocess.run(
        ["go", "tool", "pprof", "-raw", "-unit=ns", str(profile)],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=True,
    )
    samples = done.stdout.partition("Samples:\n")[2].partition("Locations\n")[0]
    values = [line.split() for line in samples.splitlines() if line.strip()[:1].isdigit()]
    assert sum(int(line[1].rstrip(":")) for line in values) == sum(
        ns for _, ns in read_pprof(profile).values()
    )


MANY_SCOPES = """
#include <prof/profiler.h>
#include <stdlib.h>
int main(int count, char **words) {
  static prof_site site;
  const prof_options options = {
      .size = sizeof options, .level = 1, .policy = PROF_POLICY_KEEP, .cap_bytes = 1u << 28};
  if (count != 3 || prof_start_with(&options)) return 1;
  for (long i = atol(words[2]); i > 0; i--)
    prof_scope_end(prof_scope_begin_at(&site, "work", "test"));
  return prof_stop() || prof_dump(words[1]);
}
"""


def test_a_size_that_a_viewer_does_not_open_is_told(tmp_path):
    """Chrome's limit is 2^29 bytes of JSON: 90 bytes a scope, and 5688889 scopes."""
    source, program = tmp_path / "many.c", tmp_path / "many"
    source.write_text(MANY_SCOPES, encoding="utf-8")
    words = [os.environ.get("CC", "cc"), f"-I{ROOT / 'include'}", str(source), "-o", str(program)]
    subprocess.run([*words, f"-L{BUILD}", "-lprof", f"-Wl,-rpath,{BUILD}"], check=True)
    for count, told in (5600000, False), (5900000, True):
        capture = tmp_path / "t.prof"
        subprocess.run([str(program), str(capture), str(count)], check=True, timeout=HANG_SECONDS)
        for form, words in ("chrome", "chrome://tracing opens about 512 MB"), ("perfetto", ""):
            done = subprocess.run(
                [str(BUILD / "prof"), "dump", str(capture), "-o", "/dev/null", "--format", form],
                capture_output=True,
                text=True,
                timeout=HANG_SECONDS,
                check=True,
            )
            assert ("opens about" in done.stderr) == (told and form == "chrome"), done.stderr
            assert not told or words in done.stderr
