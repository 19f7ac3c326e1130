"""check.py PROF FOLDER LEVEL: holds what a test subject of tests/long counted by itself against all
ways to read what prof recorded of it.

FOLDER has own.json (the host's counts), prof.json (what prof_get() and its readers said in the
process), run.json (prof_dump()) and the capture, which the command PROF reads. Prints what was
compared, then each difference. The exit status is 1 when there is one.
"""

import collections
import heapq
import json
import re
import subprocess
import sys

PRINTABLE = re.compile(r"[ -~]+")
NAME_COLUMNS = 55  # a wider name is cut in a table
# between the rows of one thread in Chrome JSON: docs/reference/export-formats.md
LANE_STEP = 10_000_000

compared = collections.Counter()
differences = []


def same(what, prof, host):
    compared[what.split(":")[0]] += 1
    if prof != host:
        differences.append(f"{what}: prof says {prof}, the host {host}")


def strict(text):
    """One JSON value, where no key comes twice and no word is a number."""

    def refuse(word):
        raise ValueError(f"not JSON: {word}")

    def pairs(found):
        keys = [key for key, _ in found]
        if len(keys) != len(set(keys)):
            raise ValueError(f"a key comes twice: {keys}")
        return dict(found)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=pairs)


def read(path):
    with open(path, encoding="utf-8") as file:
        return strict(file.read())


def run(*words):
    return subprocess.run(
        words, check=True, capture_output=True, text=True, encoding="utf-8"
    ).stdout


def key_of(line):
    return line["name"], line["category"]


def by_key(lines, of):
    found = collections.Counter()
    for line in lines:
        found[key_of(line)] += of(line)
    return +found


def same_by_name(what, prof, host):
    """Each name's figure; the names that one side alone has count as 0 on the other."""
    for key in prof.keys() | host.keys():
        same(f"{what}: {key}", prof[key], host[key])


def check_events(own, prof):
    kinds = {"scope": "ended", "skipped": "jumped", "mark": "marks"}
    for kind, field in kinds.items():
        seen = by_key([e for e in prof["events"] if e["kind"] == kind], lambda e: e["count"])
        same_by_name(f"prof_cursor, {kind}", seen, by_key(own, lambda line: line[field]))
    # Those below the 64 open ones of a thread have no names.
    named = by_key([e for e in prof["events"] if e["kind"] == "open"], lambda e: e["count"])
    for key, count in named.items():
        same(
            f"open by name, at most: {key}",
            count <= by_key(own, lambda line: line["open"])[key],
            True,
        )
    below = prof["info"]["open_below_count"]
    same("open, of the trace", sum(named.values()) + below, prof["health"]["open_count"])
    same("open, of all rows", prof["rows_open"], sum(named.values()))


def check_sums(own, counts, prof):
    begun = sum(line["begun"] for line in own)
    marks = sum(line["marks"] for line in own)
    memory = sum(pool["alloc_count"] + pool["free_count"] for pool in counts["pools"])
    health = prof["health"]
    lost = sum(health["lost"].values())
    recorded = health["recorded_count"]
    same(
        "recorded + lost + open = attempted",
        recorded + lost + health["open_count"],
        begun + marks + memory,
    )
    left_open = sum(line["open"] for line in own)
    same(
        "lost with their thread",
        health["lost"]["thread_ended"],
        left_open if counts["threads_ended"] else 0,
    )
    same("lost otherwise", lost - health["lost"]["thread_ended"], 0)
    same("open", health["open_count"], 0 if counts["threads_ended"] else left_open)
    same("losses of the trace", prof["info"]["lost"], health["lost"])
    same("strays", health["stray_count"] + prof["info"]["stray_count"], 0)
    same("unreadable", prof["info"]["bad_count"], 0)
    same("cut", health["cut_text_count"], 0)
    same(
        "scope_count",
        prof["info"]["scope_count"],
        sum(line["ended"] + line["jumped"] for line in own),
    )


def check_rows(own, prof):
    calls = by_key(own, lambda line: line["ended"])
    same_by_name(
        "prof_trace_aggregate, calls", by_key(prof["rows"], lambda row: row["calls"]), calls
    )
    same_by_name(
        "prof_trace_aggregate, skipped",
        by_key(prof["rows"], lambda row: row["skipped"]),
        by_key(own, lambda line: line["jumped"]),
    )
    same(
        "calls of all rows",
        prof["rows_calls"],
        calls.total() if hasattr(calls, "total") else sum(calls.values()),
    )
    same("self of all rows", prof["rows_self_ns"], sum(row["self_ns"] for row in prof["rows"]))
    spent = by_key([e for e in prof["events"] if e["kind"] == "scope"], lambda e: e["ns"])
    same_by_name(
        "ns of all calls, rows as events", by_key(prof["rows"], lambda row: row["all_ns"]), spent
    )


def ns_of(number):
    return round(number * 1000)


def worked_out(scopes):
    """Of each thread, from its scopes in the JSON: self ns by name, and how long any of them ran.

        Each moment of a thread belongs to the scope that began last of those that run. Where scopes
    nest, that is what a
        scope takes less what its children take."""
    self_ns, covered_ns = collections.Counter(), 0
    threads = collections.defaultdict(list)
    for scope in scopes:
        begin = ns_of(scope["ts"])
        threads[scope["tid"] % LANE_STEP].append(
            (begin, begin + ns_of(scope["dur"]), scope["name"], scope["cat"])
        )
    for line in threads.values():
        line.sort(key=lambda scope: (scope[0], -scope[1]))
        running, last = [], 0
        ends = sorted(scope[1] for scope in line)
        begins = [scope[0] for scope in line] + [float("inf")]
        number = 0
        for at in sorted(set(begins[:-1]) | set(ends)):
            if running:
                self_ns[line[-running[0]][2:]] += at - last
                covered_ns += at - last
            while begins[number] == at:
                heapq.heappush(running, -number)
                number += 1
            while running and line[-running[0]][1] <= at:
                heapq.heappop(running)
            last = at
    return self_ns, covered_ns


def check_json(own, prof, trace):
    scopes = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    names = collections.Counter((e["name"], e["cat"]) for e in scopes)
    named_open = by_key([e for e in prof["events"] if e["kind"] == "open"], lambda e: e["count"])
    ended = by_key(own, lambda line: line["ended"] + line["jumped"])
    same_by_name("Chrome JSON, scopes", names, ended + named_open)
    skipped = collections.Counter(
        (e["name"], e["cat"]) for e in scopes if e.get("args", {}).get("skipped")
    )
    same_by_name("Chrome JSON, skipped", skipped, by_key(own, lambda line: line["jumped"]))
    marks = collections.Counter(e["name"] for e in trace["traceEvents"] if e["ph"] == "i")
    wanted = {line["name"]: line["marks"] for line in own if line["category"] == "mark"}
    same("Chrome JSON, instants", {name: marks[name] for name in wanted}, wanted)
    untimed = {"unfinished", "skipped"}
    self_ns, covered_ns = worked_out([e for e in scopes if not untimed & e.get("args", {}).keys()])
    same_by_name("self by name", by_key(prof["rows"], lambda row: row["self_ns"]), +self_ns)
    same("self times add up", prof["rows_self_ns"], covered_ns)
    same(
        "self times of all events add up",
        sum(thread["self_ns"] for thread in prof["threads"]),
        covered_ns,
    )


def check_table(own, text):
    lines = text.splitlines()
    head = next(i for i, line in enumerate(lines) if "Name" in line and "Calls" in line)
    cells = [(m.start(), m.end(), m.group()) for m in re.finditer(r"\S+(?: \S+)*", lines[head])]
    columns = {name: (start, end) for start, end, name in cells}
    name_end = columns["Category"][0]
    calls_start = columns["Calls"][1]
    found = collections.Counter()
    for line in lines[head + 2 :]:
        number = re.search(r"(\d+)$", line[:calls_start])
        if len(line) < calls_start or not number:
            break
        category = line[name_end:].split("  ")[0].strip()
        found[line[:name_end].strip(), category] += int(number.group())
    wanted = by_key(own, lambda line: line["ended"])
    plain = {k for k in wanted if PRINTABLE.fullmatch(k[0]) and len(k[0]) <= NAME_COLUMNS}
    for key in plain:
        same(f"prof table, calls: {key}", found[key], wanted[key])
    same("prof table, calls of all", sum(found.values()), sum(wanted.values()))


def check_pools(own, prof):
    pools = {pool["name"]: pool for pool in prof["pools"]}
    same("pools", sorted(pools), sorted(pool["name"] for pool in own["pools"]))
    for pool in own["pools"]:
        seen = pools.get(pool["name"], collections.Counter())
        for field in ("used", "peak", "alloc_count", "free_count"):
            same(f"pool, {field}: {pool['name']}", seen[field], pool[field])
        same(
            f"pool, live pieces: {pool['name']}",
            seen["live_count"],
            pool["alloc_count"] - pool["free_count"],
        )
        same(f"pool, live bytes: {pool['name']}", seen["live_bytes"], pool["used"])
        same(f"pool, live bytes at the peak: {pool['name']}", seen["peak_live_bytes"], pool["peak"])
        for field in ("missing", "wrong", "unsure"):
            same(f"pool, {field}: {pool['name']}", seen[field], 0)
    if len(own["pools"]) == 1:
        same("prof_memory_max_get, peak", prof["max_used"], own["pools"][0]["peak"])
        same("prof_memory_max_get, used", prof["now_used"], own["pools"][0]["used"])


def main():
    command, folder, level = sys.argv[1], sys.argv[2], int(sys.argv[3])
    counts = read(f"{folder}/own.json")
    own = [line for line in counts["scopes"] if line["level"] <= level]
    prof = read(f"{folder}/prof.json")
    trace = read(f"{folder}/run.json")
    capture = prof["health"]["capture"]
    check_sums(own, counts, prof)
    check_events(own, prof)
    check_rows(own, prof)
    check_json(own, prof, trace)
    check_table(own, run(command, "table", "--rows", "all", "--sort", "name", capture))
    run(command, "dump", capture, "-o", f"{folder}/again.json")
    again = read(f"{folder}/again.json")
    same("prof dump, events as prof_dump()", again["traceEvents"] == trace["traceEvents"], True)
    check_pools(counts, prof)
    same("the host's own instruments", counts["disagreements"], 0)
    print(
        f"  {sum(line['begun'] for line in own)} scopes of {len(own)} names, "
        f"{sum(line['jumped'] for line in own)} left by a jump, "
        f"{sum(line['open'] for line in own)} open, {sum(line['marks'] for line in own)} marks; "
        f"{sum(p['alloc_count'] for p in counts['pools'])} allocations, "
        f"peak {max(p['peak'] for p in counts['pools'])} bytes"
    )
    print(f"  {sum(compared.values())} comparisons, {len(differences)} differ")
    for difference in differences[:40]:
        print(f"  differs: {difference}")
    sys.exit(1 if differences else 0)


main()
