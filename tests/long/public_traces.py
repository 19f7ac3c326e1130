#!/usr/bin/env python3
"""Public traces against an independent computation, and there and back.

usage: tests/long/public_traces.py [FOLDER]

FOLDER, or PROF_PUBLIC_TRACES, has traces (*.json, *.json.gz). Without one the files of
public_traces.txt are fetched by https into build/public-traces, and their sha256 is checked. No
trace is committed. Without network or traces: a line "skip: WHY", exit status 77. It needs
libprof.so (PROF_LIBRARY) and the prof command beside it. Of each trace:

- What `prof import` took and trace_oracle.py, which shares nothing with prof, are equal to the ns.
  Compared are every scope, instant, counter and piece of memory, the number of arrows, and what
  was left out or changed, by reason.
  Compared by name and category are calls, their times, self times and device times.
  Memory's peaks are compared, too.

- The export is strict JSON: UTF-8, no NaN, no key twice.

- The imported export has the same tables: by name, kernel, shape, thread; the same text of memory.

What is not compared, and why. It is left out by these rules alone, never by a tolerance:

- Total and device total of a row with a scope that crosses another one on its thread, or holds
  one that does. The format does not say which holds which.
  Calls, their times and self times are compared. Self times are not if a function of Python
  crosses, which has a row beside.

- The same of what belongs to an id (ph b, S): it is not a thread's own time.

- Median and p99, which are exact to 1 %.

- There and back: a row's level, which JSON does not have. Also times of arrows: an export moves
  the end of an arrow at the last moment of a scope into that scope.
"""

import collections
import hashlib
import json
import os
import re
import sys
import tempfile
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "bindings", "python")]

from trace_oracle import NotATrace, Oracle  # noqa: E402

import prof  # noqa: E402

LIST, FETCHED = (
    os.path.join(HERE, "public_traces.txt"),
    os.path.join(ROOT, "build", "public-traces"),
)
MISSED = {
    "NOT_OBJECT": "elements that are no objects",
    "PHASE": "of a kind that is not known (ph)",
    "ARROW_END": "ends of arrows whose other end",
    "BOUND": "arrows at ends and instants",
    "NO_TIME": "without a time (ts)",
    "TIME": "with a time that is no number",
    "NEGATIVE": "with a negative duration",
    "DURATION": "with a duration that is no number",
    "END_ALONE": "ends without a begin",
    "NO_VALUE": "values of counters that are no numbers",
    "MEMORY": "of memory, without",
    "SPAN": "rows about the tracing itself",
    "DRAWN": "arrows and graphs that exports draw anew",
    "ASYNC": "asynchronous, with 1024",
}
CHANGED = {
    "NO_DURATION": "without a duration: they take 0",
    "LOST_END": "begun and without an end",
    "UNENDED": "begun and never ended",
    "NO_LAUNCH": "of devices, whose launch is not",
}
"""Begins of the lines in which prof says what it left out, and what it took otherwise."""
FIELDS = (
    ("calls", "count"),
    ("calls_ns", "calls_ns"),
    ("min_ns", "min_ns"),
    ("max_ns", "max_ns"),
    ("device_ns", "self_device_ns"),
    ("device_count", "device_count"),
)
SELF = (("self_ns", "self_ns"),)
NESTED = (("total_ns", "total_ns"), ("device_total_ns", "device_total_ns"))
GROUPS = ("name", "category"), ("kernel", "name"), ("name", "shape"), ("thread", "name")


class Skip(Exception):
    pass


# ---- the files ----


def fetched():
    """The files of the list that are available; one with another sha256 is an error."""
    os.makedirs(FETCHED, exist_ok=True)
    with open(LIST, encoding="utf-8") as f:
        lines = [line.split(None, 2) for line in f if line.strip() and not line.startswith("#")]
    for sha256, url, _ in lines:
        path = os.path.join(FETCHED, sha256[:8] + "-" + url.rsplit("/", 1)[1])
        if os.path.exists(path):
            continue
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                data = answer.read()
        except urllib.error.HTTPError as error:
            print(f"not there: {url}: {error}")
            continue
        except OSError as error:
            raise Skip(f"no network: {error}") from None
        if hashlib.sha256(data).hexdigest() != sha256:
            raise ValueError(f"{url} has another sha256 than the list says")
        with open(path + ".part", "wb") as f:
            f.write(data)
        os.replace(path + ".part", path)
    return FETCHED


def paths():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("PROF_PUBLIC_TRACES") or fetched()
    found = sorted(
        os.path.join(folder, name)
        for name in os.listdir(folder)
        if name.endswith((".json", ".json.gz"))
    )
    if not found:
        raise Skip(f"no *.json or *.json.gz in {folder}")
    return found


# ---- against the oracle ----


def difference(what, want, got):
    want, got = collections.Counter(want), collections.Counter(got)
    if want != got:
        ours, profs = (list(of.items())[:3] for of in (want - got, got - want))
        yield f"{what}: oracle {ours}, prof {profs}"


def compare_events(oracle, events):
    """Every event, whole ns from the earliest one."""
    scopes = [(e.name, e.category, e.start_ns, e.duration_ns) for e in events if e.kind == "scope"]
    instants = [
        (e.name, e.category, e.start_ns)
        for e in events
        if e.kind == "instant" and e.category != "metadata"
    ]
    counters = [(e.start_ns, e.value) for e in events if e.kind == "counter"]
    memory = [(e.start_ns, e.bytes) for e in events if e.kind == "memory" and e.bytes]
    first = min(
        [e.start_ns for e in events if e.category != "metadata" and not e.kind.startswith("flow")],
        default=0,
    )
    start = oracle.first_ns() - first
    yield from difference(
        "scopes", [(s.name, s.cat, s.start - start, s.duration) for s in oracle.scopes], scopes
    )
    yield from difference(
        "instants", [(name, cat, at - start) for name, cat, at in oracle.instants], instants
    )
    yield from difference(
        "counters", [(at - start, value) for at, value in oracle.counters], counters
    )
    yield from difference(
        "memory", [(at - start, int(args["Bytes"])) for at, _, args in oracle.memory], memory
    )
    for kind in "flow_begin", "flow_end":
        count = sum(e.kind == kind for e in events)
        if count != len(oracle.other_arrows):
            yield f"{kind}: oracle {len(oracle.other_arrows)}, prof {count}"


def compare_reasons(oracle, notes):
    said = [re.match(r"(?:not )?taken: (\d+) (.*)", note) for note in notes]
    for counts, texts in (oracle.missed, MISSED), (oracle.changed, CHANGED):
        for reason, text in texts.items():
            count = sum(int(line[1]) for line in said if line and line[2].startswith(text))
            if count != counts[reason]:
                yield f"{reason}: oracle {counts[reason]}, prof {count}"


def compare_rows(oracle, rows):
    got = {(row.name, row.category): row for row in rows}
    yield from difference("rows", list(oracle.rows), list(got))
    for key in oracle.rows.keys() & got.keys():
        want = oracle.rows[key]
        for ours, field in (
            FIELDS + (SELF if want.has_self else ()) + (NESTED if want.is_clean else ())
        ):
            if (getattr(want, ours) or 0) != getattr(got[key], field):
                figures = f"oracle {getattr(want, ours)}, prof {getattr(got[key], field)}"
                yield f"{field} of {key}: {figures}"
    if rows.total_self_device_ns != oracle.device_ns:
        yield f"device time: oracle {oracle.device_ns}, prof {rows.total_self_device_ns}"


def compare_peaks(oracle, text):
    """The report has a part for each pool, and in it both sums at both peaks and at the end."""
    got = {}
    for part in re.split(r"^Pool \d+: ", text, flags=re.M)[1:]:
        gpu = re.match(r"\[memory\] of GPU (\d+) ", part)
        sums = [
            re.search(rf"^  {word} .*\n +bytes +(-?\d+) +(-?\d+)", part, re.M)
            for word in ("used", "allocated")
        ]
        key = ("gpu", int(gpu[1])) if gpu else ("cpu", 0)
        got[key] = int(sums[0][1]), int(sums[1][2]) if sums[1] else 0
    peaks = oracle.memory_peaks()
    want = {key: (used, reserved or 0) for key, (used, reserved) in peaks.items()}
    yield from difference("peaks of memory", want.items(), got.items())


# ---- there and back ----


def strict(path):
    def refuse(word):
        raise ValueError(f"{word} is no JSON")

    def once(pairs):
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError(f"a key comes twice: {[key for key, _ in pairs]}")
        return dict(pairs)

    with open(path, encoding="utf-8", errors="strict") as f:
        json.load(f, parse_constant=refuse, object_pairs_hook=once)


def there_and_back(trace, path):
    trace.dump(path, "chrome")
    strict(path)
    with prof.import_trace(path) as again:
        for group in GROUPS:
            without = {"level", "thread"}
            tables = [
                [
                    tuple(
                        (key, value) for key, value in row._asdict().items() if key not in without
                    )
                    for row in of.aggregate(group=group)
                ]
                for of in (trace, again)
            ]
            if tables[0] != tables[1]:
                yield from difference(f"taken back, by {group}", *tables)
                if collections.Counter(tables[0]) == collections.Counter(tables[1]):
                    yield f"taken back, by {group}: rows in another order"
        texts = [of.memory_text(rows=-1) for of in (trace, again)]
        yield from difference("taken back, memory", *(text.splitlines() for text in texts))


def check(path, folder):
    """What differs, and a line of figures."""
    oracle = Oracle(path)
    with prof.import_trace(path) as trace:
        rows = trace.aggregate()
        found = [
            *compare_events(oracle, list(trace.events())),
            *compare_reasons(oracle, trace.notes),
            *compare_rows(oracle, rows),
            *compare_peaks(oracle, trace.memory_text(rows=-1)),
            *there_and_back(trace, os.path.join(folder, "back.json")),
        ]
    clean = sum(row.is_clean for row in oracle.rows.values())
    own = sum(row.has_self for row in oracle.rows.values())
    figures = (
        f"{oracle.event_count} events, {len(oracle.rows)} rows, {clean} of them with nested times"
    )
    return (
        found,
        f"{figures}, {own} with self times, {oracle.device_ns / 1e6:.3f} ms of devices, "
        f"{len(oracle.memory)} of memory",
    )


def main():
    try:
        all_paths = paths()
    except Skip as why:
        print(f"skip: {why}")
        return 77
    differing, checked = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for path in all_paths:
            try:
                found, figures = check(path, folder)
            except NotATrace as why:
                print(f"none  {os.path.basename(path)}: {why}")
                continue
            checked += 1
            differing += bool(found)
            print(
                f"{'DIFF ' if found else 'equal'} {os.path.basename(path)}: {figures}", flush=True
            )
            for line in found[:20]:
                print(f"      {line[:400]}")
    print(f"{checked} traces, {differing} differ")
    return 1 if differing or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
