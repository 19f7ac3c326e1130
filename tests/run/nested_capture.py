"""A capture of random nested scopes on two threads, and what an independent computation finds in
its JSON export."""

import json
import os
import random
import re

from known_capture import Recorded

NAMES = ("attention", "attention.softmax", "dense", "load", "a [name] with (marks)")


def nested_events(seed):
    """Times are whole us, so that the import and the export keep them."""
    chance = random.Random(seed)
    found = []

    def put(thread, begin, depth):
        now = begin + chance.randrange(3)
        for _ in range(chance.randrange(4) if depth < 5 else 0):
            now = put(thread, now, depth + 1)
        now += 1 + chance.randrange(30)
        event = {"ph": "X", "name": chance.choice(NAMES), "pid": 7, "tid": thread}
        event |= {"cat": chance.choice(("operator", "runtime")), "ts": begin, "dur": now - begin}
        if chance.random() < 0.7:
            event["args"] = {"layer": chance.randrange(3), "kind": chance.choice("xyz")}
        found.append(event)
        return now

    for thread in (11, 12):
        now = 0
        for _ in range(25):
            now = put(thread, now, 0) + chance.randrange(5)
        found.append(
            {"ph": "M", "name": "thread_name", "pid": 7, "tid": thread}
            | {"args": {"name": f"worker {thread}"}}
        )
    return found


class Scope:
    def __init__(self, event):
        self.name, self.category, self.thread = event["name"], event["cat"], event["tid"]
        self.start, self.duration = round(event["ts"] * 1000), round(event["dur"] * 1000)
        self.args = event.get("args", {})
        self.args.pop("External id", None)  # the exporter's own
        self.end = self.start + self.duration
        self.self, self.parent, self.children = self.duration, None, []

    def depth(self):
        return 0 if self.parent is None else self.parent.depth() + 1

    def around(self):
        scope = self.parent
        while scope is not None:
            yield scope
            scope = scope.parent


def read_export(path):
    """The scopes by thread and start, with parents and self times, in ns from the first one."""
    with open(path, encoding="utf-8") as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    scopes = [Scope(event) for event in events]
    origin = min(scope.start for scope in scopes)
    for scope in scopes:
        scope.start, scope.end = scope.start - origin, scope.end - origin
    scopes.sort(key=lambda scope: (scope.thread, scope.start, -scope.duration))
    stack = []
    for scope in scopes:
        while stack and (stack[-1].thread != scope.thread or stack[-1].end <= scope.start):
            stack.pop()
        if stack:
            scope.parent = stack[-1]
            scope.parent.self -= scope.duration
            scope.parent.children.append(scope)
        stack.append(scope)
    return scopes


class Nested(Recorded):
    seed = 1

    def setUp(self):
        super().setUp()
        trace = self.write("nested.json", json.dumps({"traceEvents": nested_events(self.seed)}))
        self.capture = os.path.join(self.folder, "nested.prof")
        self.prof("import", trace, "-o", self.capture)
        export = os.path.join(self.folder, "export.json")
        self.prof("dump", self.capture, "-o", export)
        self.scopes = read_export(export)
        self.assertGreater(len(self.scopes), 200)
        self.assertGreater(max(scope.depth() for scope in self.scopes), 3)


def ns(text):
    number, unit = re.fullmatch(r"([\d.]+)(ns|us|ms|s)", text).groups()
    return round(float(number) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit])


# The words of filters, and what they take.
FILTERS = (
    ((), lambda scope: True),
    (("--name", "^att"), lambda scope: scope.name.startswith("att")),
    (("--name", r"\[name\]|load"), lambda scope: scope.name in (NAMES[3], NAMES[4])),
    (("--category", "runtime"), lambda scope: scope.category == "runtime"),
    (("--thread", "worker 12"), lambda scope: scope.thread == 12),
    (("--thread", "11"), lambda scope: scope.thread == 11),
    (("--min", "20us"), lambda scope: scope.duration >= 20000),
    (("--arg", "layer=2"), lambda scope: scope.args.get("layer") == 2),
    (
        ("--arg", "layer=1", "--arg", "kind=y"),
        lambda scope: scope.args.get("layer") == 1 and scope.args.get("kind") == "y",
    ),
    (
        ("--from", "0.2ms", "--to", "700us"),
        lambda scope: ns("0.2ms") <= scope.start < ns("700us"),
    ),
    (
        ("--name", "dense", "--from", "100us", "--min", "10us", "--thread", "11"),
        lambda scope: scope.name == "dense"
        and scope.start >= 100000
        and scope.duration >= 10000
        and scope.thread == 11,
    ),
)
