"""Shows what prof writes of memory to the engines of the real viewers: make_memory.c records, and
tells what should stand in the file. Run by CTest, or by hand: .venv/bin/python -m pytest
tests/viewers"""

import collections
import json
import os
import re
import subprocess
import sys

import pytest
from hang_guard import HANG_SECONDS
from test_viewers import BUILD, HERE, ROOT, engines, needs_node  # noqa: F401

sys.path.insert(0, str(HERE))
import check_trace

POOL, QUERY = 1, 2
FILES = ["memory.json", "memory.json.gz"]
TAG = 'wei"ghts\\\ufffd</script>\n'


def build(folder):
    program = folder / "make_memory"
    subprocess.run(
        [
            os.environ.get("CC", "cc"),
            "-std=c11",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            f"-I{ROOT / 'include'}",
            str(HERE / "make_memory.c"),
            "-o",
            str(program),
            f"-L{BUILD}",
            "-lprof",
            "-lpthread",
            f"-Wl,-rpath,{BUILD}",
        ],
        check=True,
    )
    return program


def label_of(pool):
    """What the names of its graphs hold, up to the number that tells two pools of one name and
    device apart."""
    name = bytes.fromhex(pool["name"]).decode("utf-8", "replace")
    if pool["source"] == QUERY:
        return f"{name}, {'GPU' if pool['index'] else 'CPU'} {pool['index']}, asked"
    if name != "tensors":
        return name
    return "tensors, GPU 1" if pool["index"] == 1 else "tensors, GPU 0, #"


@pytest.fixture(scope="session")
def told(tmp_path_factory):
    """The folder with the traces, and what the program says of them; pools by the words that their
    graphs' names hold."""
    folder = tmp_path_factory.mktemp("memory")
    subprocess.run(
        [str(build(folder)), str(folder)],
        check=True,
        timeout=HANG_SECONDS,
        stderr=subprocess.DEVNULL,
    )
    story = json.loads((folder / "memory-told.json").read_text(encoding="utf-8"))
    story["folder"] = folder
    for pool in story["pools"]:
        pool["label"] = label_of(pool)
        assert pool["missing"] == 0
    assert len(story["pools"]) == 8
    return story


@pytest.fixture(scope="session")
def documents(told):
    """Each file as strict JSON."""
    return {
        name: check_trace.parse(check_trace.read_text(told["folder"] / name))
        for name in FILES + ["memory-part.json"]
    }


def values_of(document, what):
    """The graphs: {name: [(ns, value)]} in the order of the file."""
    graphs = collections.defaultdict(list)
    for event in document["traceEvents"]:
        if event["ph"] == "C" and event["name"].startswith(what + " bytes ("):
            graphs[event["name"]].append(
                (check_trace.to_ns(event["ts"], "ts"), int(event["args"]["value"]))
            )
    return graphs


def expected_graphs(told):
    """What each graph must have, [name, count of values, highest, last]. Two pools share a label up
    to their number."""
    graphs = []
    for pool in told["pools"]:
        begin = pool["source"] == POOL
        said = pool["blocks"] + pool["ooms"] + pool["samples"]
        graphs.append(
            [
                f"used bytes ({pool['label']}",
                begin + pool["changes"] + said,
                pool["peak_used"],
                pool["end_used"],
            ]
        )
        if said:
            graphs.append(
                [
                    f"allocated bytes ({pool['label']}",
                    begin + said,
                    pool["peak_allocated"],
                    pool["end_allocated"],
                ]
            )
    return sorted(graphs)


def without_number(name):
    return re.sub(r"#\d+\)$", "#", name) if name.endswith(")") and "#" in name else name[:-1]


@needs_node
@pytest.mark.parametrize("name", FILES)
def test_both_engines_take_it(told, engines, name):  # noqa: F811
    check_trace.check_chrome(told["folder"] / name, engines)


@needs_node
def test_both_engines_take_a_part(told, engines):  # noqa: F811
    check_trace.ask_perfetto(engines, told["folder"] / "memory-part.json")
    check_trace.ask_catapult(engines, told["folder"] / "memory-part.json")


@needs_node
@pytest.mark.parametrize("name", FILES)
def test_perfetto_has_a_graph_of_each_pool_with_its_exact_peak(told, engines, name):  # noqa: F811
    answer = check_trace.run_engine(
        "perfetto.mjs",
        engines,
        told["folder"] / name,
        "select t.name, count(*), cast(max(value) as int), (select cast(value as int) from counter "
        "l where l.track_id = t.id order by l.ts desc, l.id desc limit 1) "
        "from counter c join process_counter_track t on c.track_id = t.id where t.name glob '* "
        "bytes (*' group by t.id",
        "select count(*) from stats where severity in ('error', 'data_loss') and value > 0",
    )
    graphs, [[sick]] = answer["results"]
    assert sick == 0
    assert sorted(
        [without_number(graph.removesuffix(" value")), *rest] for graph, *rest in graphs
    ) == expected_graphs(told)


@needs_node
@pytest.mark.parametrize("name", FILES)
def test_perfetto_has_each_change_as_it_was_told(told, engines, name):  # noqa: F811
    keys = [
        "Addr",
        "Bytes",
        "Total Allocated",
        "Total Reserved",
        "Device Type",
        "Device Id",
        "Ev Idx",
        "Tag",
        "Requested",
    ]
    columns = ", ".join(f"extract_arg(arg_set_id, 'args.{key}')" for key in keys)
    answer = check_trace.run_engine(
        "perfetto.mjs",
        engines,
        told["folder"] / name,
        f"select name, category, dur, {columns} from slice where name in ('[memory]', "
        f"'[OutOfMemory]') order by extract_arg(arg_set_id, 'args.Ev Idx')",
    )
    [rows] = answer["results"]
    assert len(rows) == sum(pool["changes"] + pool["ooms"] for pool in told["pools"])
    assert {(category, duration) for _, category, duration, *_ in rows} == {
        ("cpu_instant_event", 0)
    }
    seen = [dict(zip(["name"] + keys, [row[0]] + row[3:])) for row in rows]
    assert [change["Ev Idx"] for change in seen] == list(range(len(seen)))
    for change, expected in zip(seen, told["changes"]):
        for key, value in expected.items():
            if key == "Tag":
                assert change["Tag"] == (TAG if value else None)
            elif key == "Requested":
                assert (change["Requested"] or abs(change["Bytes"])) == value
            else:
                assert change[key] == value, (key, change, expected)


@needs_node
@pytest.mark.parametrize("name", FILES)
def test_chrome_tracing_draws_each_pool_forward_up_to_its_peak(told, engines, name):  # noqa: F811
    seen = check_trace.ask_catapult(engines, told["folder"] / name)
    graphs = []
    for series in seen["series"]:
        assert series["name"] == "value"
        assert series["times"] == sorted(series["times"]), f"{series['counter']} runs back"
        if " bytes (" in series["counter"]:
            graphs.append(
                [
                    without_number(series["counter"]),
                    len(series["values"]),
                    max(series["values"]),
                    series["values"][-1],
                ]
            )
    assert sorted(graphs) == expected_graphs(told)
    [mine] = [series for series in seen["series"] if series["counter"] == "mine"]
    assert mine["values"] == [1, 2]


@pytest.mark.parametrize("name", FILES)
def test_what_threads_raced_for_is_one_graph_in_the_order_of_the_pool(told, documents, name):
    """Each value is the previous one and one piece more or less, even if two threads' clocks say
    otherwise."""
    [(_, values)] = [
        graph
        for graph in values_of(documents[name], "used").items()
        if graph[0] == "used bytes (raced)"
    ]
    assert len(values) == 1 + 2 * (5000 + 2500)
    assert all(
        after[0] >= before[0] and abs(after[1] - before[1]) == 64
        for before, after in zip(values, values[1:])
    )
    threads = {
        event["tid"]
        for event in documents[name]["traceEvents"]
        if event["ph"] == "C" and event["name"] == "used bytes (raced)"
    }
    assert len(threads) >= 2


def test_a_change_stands_in_the_scope_it_was_made_in(documents):
    events = documents["memory.json"]["traceEvents"]
    turns = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X" and event["name"] == "turn":
            start = check_trace.to_ns(event["ts"], "ts")
            turns[event["tid"]].append((start, start + check_trace.to_ns(event["dur"], "dur")))
    tagged = [event for event in events if event["name"] == "[memory]" and "Tag" in event["args"]]
    assert len(tagged) == 2 * 200 * 2
    for event in tagged:
        assert any(
            start <= check_trace.to_ns(event["ts"], "ts") <= end
            for start, end in turns[event["tid"]]
        )


def test_used_goes_below_zero_where_more_came_back(told, documents):
    [values] = [
        values
        for name, values in values_of(documents["memory.json"], "used").items()
        if "host" in name
    ]
    assert values[-1][1] == -4096 == min(value for _, value in values)


def test_a_part_begins_with_what_was_there(documents):
    """Each graph begins with the value that the whole file has at that moment."""
    whole, part = documents["memory.json"], documents["memory-part.json"]
    for what in ("used", "allocated"):
        all_values = values_of(whole, what)
        graphs = values_of(part, what)
        assert len(graphs) >= 5
        for name, values in graphs.items():
            if ", asked" in name:
                continue
            first_ns = values[0][0]
            before = [value for ns, value in all_values[name] if ns <= first_ns]
            assert values[0][1] == before[-1], name


@needs_node
def test_half_a_million_changes_are_shown(engines, tmp_path):  # noqa: F811
    done = subprocess.run(
        [str(build(tmp_path)), str(tmp_path), "250000"],
        check=True,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )
    size = (tmp_path / "large.json").stat().st_size
    print(done.stdout, f"{size} bytes, {(tmp_path / 'large.json.gz').stat().st_size} compressed")
    answer = check_trace.run_engine(
        "perfetto.mjs",
        engines,
        tmp_path / "large.json",
        "select count(*), cast(max(value) as int) from counter c join process_counter_track t on "
        "c.track_id = t.id where t.name like 'used bytes (large)%'",
        "select count(*) from slice where name = '[memory]'",
    )
    assert answer["error"] is None and not answer["health"]
    assert answer["results"] == [[[500001, 3999]], [[500000]]]
    assert size < 500000 * 400
