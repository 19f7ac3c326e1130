#!/usr/bin/env python3
"""usage: check_trace.py [--engines FOLDER] TRACE...

Is a trace that prof wrote good? A file is good if it passes all of these checks. Each of them
accepts something that another refuses.

- It is strict UTF-8 and JSON: no NaN, no duplicate key, no trailing comma, no control byte. A .gz
  has exactly one member.

- It has the layout that torch.profiler's readers look for, times with three decimals, and scopes of
  a track nested to the nanosecond.

- Perfetto's trace processor loads it, and its health query is empty.

- catapult, the importer of chrome://tracing, loads it without a warning.

- The file, both engines and prof's own account agree on the number of slices, counters and arrows,
  and on every time.

Prints one line for each trace; exit status 1 if any is not good. Needs node 18 or newer."""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import zlib

HERE = pathlib.Path(__file__).resolve().parent
TIME = re.compile(r"^\d+\.\d{3}$")


class Bad(Exception):
    """What is wrong with a trace."""


def need(condition, message):
    """Raises Bad unless the condition holds."""
    if not condition:
        raise Bad(message)


# ---- the bytes ----


def read_text(path):
    """The file's text. Raises Bad unless it is strict UTF-8, plain or one gzip member with nothing
    behind it."""
    data = pathlib.Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        unpacker = zlib.decompressobj(wbits=31)
        data = unpacker.decompress(data)
        need(unpacker.eof, "the gzip member is cut off")
        need(
            not unpacker.unused_data,
            f"{len(unpacker.unused_data)} bytes behind the first gzip member",
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Bad(f"not UTF-8: {error}") from None


def refuse_constant(word):
    raise Bad(f"{word} is no JSON")


def unique_keys(pairs):
    """An object whose keys are all different."""
    result = dict(pairs)
    need(len(result) == len(pairs), f"a key comes twice: {[key for key, _ in pairs][:20]}")
    return result


def parse(text):
    """Strict JSON; numbers with a point stay text, so that no digit is lost."""
    for number, line in enumerate(text.split("\n"), 1):
        need(
            not re.search(r"[\x00-\x1f\x7f\u0080-\u009f\u2028\u2029]", line),
            f"line {number} has a control character",
        )
    need(
        "</script" not in text.lower() and "<script" not in text.lower(),
        "the text would end or open a <script>",
    )
    try:
        return json.loads(
            text, parse_constant=refuse_constant, object_pairs_hook=unique_keys, parse_float=str
        )
    except json.JSONDecodeError as error:
        raise Bad(f"not JSON: {error}") from None


# ---- the events ----


def to_ns(text, what):
    need(
        isinstance(text, str) and TIME.match(text),
        f"{what} is {text!r}, not microseconds with three decimals",
    )
    return int(text.replace(".", ""))


def check_layout(document, text):
    """What readers of torch.profiler's files look for, and how they look for it."""
    own = [
        "schemaVersion",
        "deviceProperties",
        "distributedInfo",
        "displayTimeUnit",
        "baseTimeNanoseconds",
        "traceEvents",
        "prof",
    ]
    keys = [key for key in document if key in own]  # between them stands what the user has added
    # a profile's, of torch.distributed, stands where its other metadata do
    told = [key for key in own if key != "distributedInfo"]
    told.insert(told.index("baseTimeNanoseconds"), "distributedInfo")
    need(keys in (own, told), f"the top keys are {keys}")
    need(text.startswith('{\n"'), "Perfetto knows the file by its first characters")
    rank = re.search(r'"rank":\s+(\d+)', text)
    need(
        rank and int(rank.group(1)) == document["distributedInfo"]["rank"],
        'the first "rank": is not the rank',
    )
    need(
        document["baseTimeNanoseconds"] % (7889238 // 2 * 10**9) == 0,
        "the base time is not the one that ranks share",
    )
    need(document["traceEvents"][0]["ph"] == "M", "the first event is no metadata")
    lines = text.count('\n{"ph":')
    need(
        lines == len(document["traceEvents"]),
        f"{lines} lines with an event, {len(document['traceEvents'])} events",
    )


def check_event(event):
    """One event has what each reader needs of its kind."""
    need(isinstance(event.get("name"), str) and event["name"], f"no name: {event}")
    need(isinstance(event["pid"], int) and 0 <= event["pid"] < 2**32, f"pid: {event}")
    need(isinstance(event["tid"], int) and 0 <= event["tid"] < 2**32, f"tid: {event}")
    if event["ph"] == "M":
        return
    need(event.get("cat"), f"no category: {event}")
    to_ns(event["ts"], "ts")
    if event["ph"] == "X":
        to_ns(event["dur"], "dur")
        if event["cat"] == "cpu_op":
            need("External id" in event["args"], f"no id: {event}")


def check_nesting(events):
    """Scopes of a track either hold one another or stand apart."""
    tracks = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            start = to_ns(event["ts"], "ts")
            tracks[event["pid"], event["tid"]].append(
                (start, -to_ns(event["dur"], "dur"), event["name"])
            )
    for track, scopes in tracks.items():
        stack = []
        for start, minus_duration, name in sorted(scopes):
            end = start - minus_duration
            while stack and stack[-1] <= start:
                stack.pop()
            need(
                not stack or end <= stack[-1],
                f"{name!r} at {start} ns of track {track} crosses what it begins in",
            )
            stack.append(end)


def count_phases(events):
    return collections.Counter(event["ph"] for event in events)


def check_account(document, phases, is_part=False):
    """prof's own account of the file; is_part: it shows a stretch of the capture."""
    prof, written = document["prof"], document["prof"]["written"]
    slices = written["scopes"] + written["unfinished"] + written["steps"]
    need(slices == phases["X"], f"prof wrote {slices} slices, the file has {phases['X']}")
    need(
        written["scopes"] == prof["scopes"] or (is_part and written["scopes"] < prof["scopes"]),
        f"{prof['scopes']} scopes recorded, {written['scopes']} written",
    )
    need(
        written["unfinished"] == prof["unfinished"]
        or (is_part and written["unfinished"] < prof["unfinished"]),
        f"{prof['unfinished']} open, {written['unfinished']} written",
    )
    need(written["flow_ends"] == phases["s"] + phases["f"], "arrows")
    need(written["counters"] == phases["C"], "counters")
    marks = phases["i"] - written["instants"] - written["flow_marks"] - 1
    need(
        marks == len(prof["changes"]) or (is_part and 0 <= marks < len(prof["changes"])),
        f"{marks} instants of prof's own beside the user's, {len(prof['changes'])} changes",
    )
    need(prof["self_check"]["faults"] == 0, f"the self-check found {prof['self_check']}")


# ---- the engines ----


def run_engine(script, engines, path, *queries):
    command = ["node", str(HERE / script), str(engines), str(path), *queries]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=int(os.environ.get("PROF_TEST_HANG_SECONDS") or 300),
        check=False,
    )
    need(done.stdout.startswith("{"), f"{script} failed: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def ask_perfetto(engines, path, health=()):
    """(slices as [name, ts, dur], arrows, counter values); Bad unless it is healthy but for the
    statistics named in health."""
    answer = run_engine(
        "perfetto.mjs",
        engines,
        path,
        "select name, ts, dur from slice",
        "select count(*) from flow",
        "select count(*) from counter",
    )
    need(answer["error"] is None, f"Perfetto: {answer['error']}")
    sick = [row for row in answer["health"] if row[0] not in health]
    need(not sick, f"Perfetto's health: {sick}")
    slices, [[arrows]], [[counters]] = answer["results"]
    return slices, arrows, counters


def ask_catapult(engines, path, allowed=None):
    """What catapult has read; Bad if it warns, but for warnings that begin with `allowed`."""
    answer = run_engine("catapult.mjs", engines, path)
    need(answer["error"] is None, f"catapult: {answer['error']}")
    warnings = answer["warnings"]
    if allowed is not None:
        warnings = [text for text in warnings if not text.startswith(allowed)]
    need(not warnings, f"catapult warns: {warnings[:5]}")
    return answer


# ---- whole traces ----


def check_chrome(path, engines, health=(), is_part=False):
    """Checks a Chrome trace; returns (document, counts of phases). health: Perfetto's statistics
    that may be bad; is_part: it shows a stretch of the capture."""
    text = read_text(path)
    document = parse(text)
    check_layout(document, text)
    events = document["traceEvents"]
    for event in events:
        check_event(event)
    check_nesting(events)
    phases = count_phases(events)
    check_account(document, phases, is_part)

    slices, arrows, counters = ask_perfetto(engines, path, health)
    times = collections.Counter(
        (to_ns(e["ts"], "ts"), to_ns(e.get("dur", "0.000"), "dur"))
        for e in events
        if e["ph"] in "Xi"
    )
    if not health:
        need(
            times == collections.Counter((ts, dur) for _, ts, dur in slices),
            "Perfetto's slices are at other times",
        )
    need(
        arrows == phases["s"] == phases["f"],
        f"{arrows} arrows in Perfetto, {phases['s']} begin and {phases['f']} end",
    )
    need(
        counters == phases["C"], f"{counters} counter values in Perfetto, {phases['C']} in the file"
    )

    seen = ask_catapult(engines, path)
    marks = sum(e["ph"] == "i" and e["s"] == "t" for e in events)
    need(
        seen["slices"] == phases["X"] + marks,
        f"{seen['slices']} slices in catapult, {phases['X']} + {marks} in the file",
    )
    need(seen["flows"] == arrows, f"{seen['flows']} arrows in catapult, {arrows} in the file")
    need("prof" in seen["metadata"], "catapult shows no account of prof's")
    return document, phases


def check_raf(path, engines):
    """Checks a log in RAF's layout; returns the number of scopes."""
    document = parse(read_text(path))
    need(
        list(document) == ["traceEvents", "displayTimeUnit", "prof"],
        f"the top keys are {list(document)}",
    )
    stacks, last = collections.defaultdict(list), {}
    for event in document["traceEvents"]:
        keys = ["name", "cat", "ph", "ts", "pid", "tid", "args"]
        need(list(event) == keys, f"the keys are {list(event)}")
        need(list(event["args"]) == ["args_string"], f"args: {event}")
        need(isinstance(event["args"]["args_string"], str), f"args: {event}")
        need(
            event["name"] and event["cat"] and event["tid"].startswith(event["cat"]),
            f"names: {event}",
        )
        need(isinstance(event["ts"], int), f"ts: {event}")
        track = event["pid"], event["tid"]
        need(event["ts"] >= last.get(track, 0), f"time runs back on {track}")
        last[track] = event["ts"]
        if event["ph"] == "B":
            stacks[track].append((event["name"], event["args"]))
        else:
            begun = stacks[track].pop() if stacks[track] else None
            need(begun == (event["name"], event["args"]), f"ends what has not begun: {event}")
    need(not any(stacks.values()), "a scope has no end")
    scopes = sum(event["ph"] == "B" for event in document["traceEvents"])
    slices, _, _ = ask_perfetto(engines, path)
    need(len(slices) == scopes, f"{len(slices)} slices in Perfetto, {scopes} in the file")
    # RAF writes the same arguments at both ends.
    seen = ask_catapult(engines, path, "arg_merge_error: Different phases of ")
    need(seen["slices"] == scopes, f"{seen['slices']} slices in catapult, {scopes} in the file")
    return scopes


def check(path, engines):
    """Checks either; returns what to say of it."""
    if list(parse(read_text(path)))[:1] == ["traceEvents"]:
        return f"{check_raf(path, engines)} scopes"
    _, phases = check_chrome(path, engines)
    return ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items()))


def find_engines():
    """Fetches the engines if need be; returns their folder."""
    done = subprocess.run(
        [str(HERE / "fetch-engines.sh")], capture_output=True, text=True, check=True
    )
    return pathlib.Path(done.stdout.strip())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--engines", type=pathlib.Path, help="what fetch-engines.sh prints; fetched when left out"
    )
    parser.add_argument("traces", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    engines = options.engines or find_engines()
    failed = False
    for trace in options.traces:
        try:
            print(f"good: {trace}: {check(trace, engines)}")
        except Bad as bad:
            failed = True
            print(f"bad: {trace}: {bad}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
