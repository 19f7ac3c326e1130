"""What stands in a trace of the Chrome trace event format, worked out from the JSON alone: calls,
times, self times, device times by launch, memory, counters, instants and arrows.

It shares nothing with prof: not a line of its import. The rules are those of the format ("Trace
Event Format", Google) and of what Kineto writes into it. Where both leave a choice, the rule is
prof's documented one (docs/reference/import-formats.md), and the place that has it says so.
Times are whole ns; a fraction of one is rounded to the nearest, halves up. public_traces.py
compares the result with what prof says of the same file.
"""

import bisect
import collections
import decimal
import gzip
import heapq
import json
import math
import re

CALLS = re.compile(r"(_runtime|_driver)$|^Runtime$")
"""Categories of calls of a vendor's library."""
WORK = {"kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "Kernel", "Memcpy", "Memset"}
"""Categories of what a stream executes; the last three are torch 1.8's to 1.11's."""
HOST = {"cpu_op", "user_annotation", "python_function"}
"""Kineto's categories of what a thread of the process executes, whatever number its process has."""
ANNOTATION = "gpu_user_annotation"
DEVICE_PROCESS = re.compile(r"^(GPU \d+|NPU.*|Ascend Hardware)$")
LAUNCHES = {"ac2g", "async", "async_cpu_to_gpu", "api_op", "async_npu", "HostToDevice"}
"""Categories of arrows from a call to what it launched."""
TRACING = {"Spans", "Traces", ""}
"""Processes under which Kineto writes what it says of the tracing itself."""
INSTANTS = {"i", "I", "R"}
ASYNC_BEGIN, ASYNC_END, ASYNC_STEP = {"b", "S"}, {"e", "F"}, {"n", "T", "p"}
ARROWS = {"s", "t", "f"}
KNOWN = {"X", "B", "E", "C", "M"} | INSTANTS | ASYNC_BEGIN | ASYNC_END | ASYNC_STEP | ARROWS
FUNCTION = "python_function"
MEMORY, FAILED = "[memory]", "[OutOfMemory]"


class NotATrace(ValueError):
    pass


class Scope:
    """One stretch of time. kind: "host", "call", "async", "work" or "annotation"."""

    __slots__ = (
        "name",
        "category",
        "start",
        "end",
        "row",
        "kind",
        "order",
        "args",
        "parent",
        "self_ns",
        "is_outermost",
        "is_clean",
        "has_self",
        "launch",
        "is_drawn",
    )

    def __init__(self, event, kind, start, end, order):
        self.name, self.category = text_of(event, "name", "(unnamed)"), text_of(event, "cat", "")
        self.row = row_of(event)
        args = event.get("args")
        self.args = args if isinstance(args, dict) else {}
        self.kind, self.start, self.end, self.order = kind, start, end, order
        self.parent, self.launch, self.is_drawn = None, None, False
        self.self_ns, self.is_outermost, self.is_clean, self.has_self = 0, True, True, True

    @property
    def cat(self):
        """What has no category is of prof's."""
        return self.category or ("kernel" if self.kind == "work" else "scope")

    @property
    def key(self):
        return self.name, self.cat

    @property
    def duration(self):
        return self.end - self.start


class Row:
    """Of one name and category."""

    def __init__(self):
        self.calls = self.calls_ns = self.total_ns = self.self_ns = self.max_ns = 0
        self.min_ns = None
        self.device_ns = self.device_count = self.device_total_ns = 0
        self.is_clean = self.has_self = True


def text_of(event, key, otherwise):
    """A member as a text of at most 4096 bytes (prof's bound)."""
    value = event.get(key)
    if value is None or value == "":
        return otherwise
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode(errors="replace")[:4096].decode(errors="replace")


def row_of(event):
    """The process and the thread. Digits as text are their number: torch 1.8 to 1.11 write
    "24572" in a call and 24572 in its arrow."""

    def number(value):
        return int(value) if isinstance(value, str) and value.isdecimal() else value

    return number(event.get("pid")), number(event.get("tid"))


def ns_of(value):
    """A time in us as whole ns; None: it is no number."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        ns = decimal.Decimal(value) * 1000
        return int(ns.to_integral_value(rounding=decimal.ROUND_HALF_UP)) if ns.is_finite() else None
    except (decimal.InvalidOperation, TypeError, ValueError):
        return None


def events_of(path):
    """The trace's events and what else its outermost object has. A bare array may lack its end."""
    with open(path, "rb") as f:
        data = f.read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    text = data.decode("utf-8-sig", errors="replace")

    def parse(what):
        return json.loads(what, parse_float=decimal.Decimal, strict=False)

    try:
        content = parse(text)
    except ValueError:
        if not text.lstrip().startswith("["):
            raise
        content = parse(text.rstrip().rstrip(",") + "]")
    if isinstance(content, list):
        return content, {}
    if "traceEvents" not in content:
        raise NotATrace("it has no traceEvents")
    return content["traceEvents"], {k: v for k, v in content.items() if k != "traceEvents"}


class Oracle:
    def __init__(self, path):
        decimal.getcontext().prec = 60
        events, self.others = events_of(path)
        self.missed, self.changed = collections.Counter(), collections.Counter()
        self._indexes = {}
        self.scopes, self.instants, self.counters, self.memory = [], [], [], []
        self.failed_allocations = self.event_count = 0
        self._sort_out(events)
        self._duration_events()
        self._async_events()
        self._arrows()
        self._unended()
        self._launches()
        self._nest()
        self._add_up()

    def first_ns(self):
        """The earliest of all that is taken."""
        times = [s.start for s in self.scopes] + [at for _, _, at in self.instants]
        return min(
            times + [at for at, _ in self.counters] + [at for at, _, _ in self.memory], default=0
        )

    # ---- what each event is ----

    def _sort_out(self, events):
        self.process_names = {
            row_of(e)[0]: e["args"].get("name")
            for e in events
            if isinstance(e, dict)
            and e.get("ph") == "M"
            and e.get("name") == "process_name"
            and isinstance(e.get("args"), dict)
        }
        self.timed = collections.defaultdict(list)  # by kind: (ns, order, event)
        self.bound = collections.defaultdict(list)  # by bind_id: the same
        for order, event in enumerate(events):
            if not isinstance(event, dict):
                self.missed["NOT_OBJECT"] += 1
                continue
            ph = event.get("ph")
            if ph == "M":
                continue
            self.event_count += 1
            if ph not in KNOWN:
                self.missed["PHASE"] += 1
                continue
            if event.get("pid") in TRACING:
                self.missed["SPAN"] += 1
                continue
            at = ns_of(event.get("ts"))
            if at is None:
                self.missed["NO_TIME" if event.get("ts") is None else "TIME"] += 1
                continue
            if "bind_id" in event:
                if ph not in set("XBbSnTp"):
                    self.missed["BOUND"] += 1
                elif event.get("flow_in") is True or event.get("flow_out") is True:
                    self.bound[str(event["bind_id"])].append((at, order, event))
            self._take(ph, at, order, event)
        self.trace_end = max((at for kind in self.timed.values() for at, _, _ in kind), default=0)
        self.trace_end = max([self.trace_end, *(s.end for s in self.scopes)])

    def _take(self, ph, at, order, event):
        if ph == "X":
            self._complete(at, order, event)
        elif ph in "BE":
            self.timed["duration"].append((at, order, event))
        elif ph in ASYNC_BEGIN | ASYNC_END | ASYNC_STEP:
            self.timed["async"].append((at, order, event))
        elif ph in ARROWS:
            self.timed["arrow"].append((at, order, event))
        elif ph == "C":
            self._counter(at, event)
            self.timed["counter"].append((at, order, event))
        elif event.get("name") in (MEMORY, FAILED):
            self._memory(at, event)
            self.timed["memory"].append((at, order, event))
        else:
            self.instants.append(
                (text_of(event, "name", "(unnamed)"), text_of(event, "cat", ""), at)
            )
            self.timed["instant"].append((at, order, event))

    def _complete(self, at, order, event):
        duration = ns_of(event.get("dur"))
        if "dur" not in event:
            self.changed["NO_DURATION"] += 1
            duration = 0
        elif duration is None:
            self.missed["DURATION"] += 1
            return
        elif duration < 0:
            self.missed["NEGATIVE"] += 1
            return
        self.scopes.append(Scope(event, self._kind(event), at, at + duration, order))

    def _kind(self, event):
        cat = text_of(event, "cat", "")
        if cat == ANNOTATION:
            return "annotation"
        if cat in WORK:
            return "work"
        return "call" if CALLS.search(cat) else "host"

    def _counter(self, at, event):
        args = event.get("args")
        numbers = (
            [
                v
                for v in args.values()
                if isinstance(v, (int, decimal.Decimal)) and not isinstance(v, bool)
            ]
            if isinstance(args, dict)
            else []
        )
        if not numbers:
            self.missed["NO_VALUE"] += 1
        for value in numbers:
            self.counters.append((at, float(value)))

    def _memory(self, at, event):
        args = event.get("args") or {}
        if event["name"] == FAILED:
            self.failed_allocations += 1
        elif not args.get("Addr") or not args.get("Bytes"):
            self.missed["MEMORY"] += 1
        else:
            self.memory.append((at, len(self.memory), args))

    # ---- begins and ends ----

    def _duration_events(self):
        """An end closes the innermost begin of its name and category (prof's rule; the format
        has no name in an end). What was begun in it ends with it."""
        stacks = collections.defaultdict(list)
        for at, order, event in sorted(self.timed["duration"], key=lambda e: e[:2]):
            stack = stacks[event.get("pid"), event.get("tid")]
            if event["ph"] == "B":
                stack.append((at, order, event))
                continue
            found = next(
                (i for i in reversed(range(len(stack))) if self._is_end_of(stack[i][2], event)),
                None,
            )
            if found is None:
                self.missed["END_ALONE"] += 1
                continue
            self.changed["LOST_END"] += len(stack) - found - 1
            for begun in stack[found:]:
                self._close(begun, at)
            del stack[found:]
        self.left_open = [begun for stack in stacks.values() for begun in stack]

    @staticmethod
    def _is_end_of(begin, end):
        return all(end.get(key) in (None, "", begin.get(key)) for key in ("name", "cat", "id"))

    def _close(self, begun, at):
        start, order, event = begun
        kind = self._kind(event)
        self.scopes.append(Scope(event, kind, start, max(at, start), order))

    def _unended(self):
        self.changed["UNENDED"] = len(self.left_open)
        for begun in self.left_open:
            event = begun[2]
            scope = Scope(
                event,
                "async" if event["ph"] in ASYNC_BEGIN else self._kind(event),
                begun[0],
                self.trace_end,
                begun[1],
            )
            self.scopes.append(scope)

    def _async_events(self):
        """What one id begins nests (prof's rule for S and F, too); a step is an instant."""
        open_ones = collections.defaultdict(list)
        for at, order, event in sorted(self.timed["async"], key=lambda e: e[:2]):
            stack = open_ones[self._id_of(event)]
            if event["ph"] in ASYNC_BEGIN:
                stack.append((at, order, event))
                continue
            if event["ph"] in ASYNC_STEP:
                self.instants.append(
                    (text_of(event, "name", "(unnamed)"), text_of(event, "cat", ""), at)
                )
                continue
            fits = [
                i
                for i in reversed(range(len(stack)))
                if event.get("name") in (None, "", stack[i][2].get("name"))
            ]
            own = [i for i in fits if stack[i][2].get("pid") == event.get("pid")]
            found = (own or fits or [None])[
                0
            ]  # processes that use one id at the same time end their own
            if found is None:
                self.missed["END_ALONE"] += 1
                continue
            start, began, begin = stack.pop(found)
            self.scopes.append(Scope(begin, "async", start, at, began))
        self.left_open += [begun for stack in open_ones.values() for begun in stack]

    @staticmethod
    def _id_of(event):
        """id and id2's "global" are the trace's, "local" is the process's."""
        number, wide = event.get("id"), event.get("id2")
        place = None
        if isinstance(wide, dict):
            number = wide.get("global", wide.get("local"))
            place = None if "global" in wide else event.get("pid")
        return event.get("cat"), event.get("scope"), str(number), place

    # ---- arrows ----

    def _arrows(self):
        """An arrow has the category, the name and the id of its ends. A step ends one and
        begins the next."""
        self.launch_arrows, self.other_arrows = [], []
        ends = collections.defaultdict(list)
        for at, _, event in sorted(self.timed["arrow"], key=lambda e: e[:2]):
            ends[event.get("cat"), event.get("name"), str(event.get("id"))].append((at, event))
        for (cat, _, _), of in ends.items():
            pairs, alone = self._pairs(of)
            self.missed["ARROW_END"] += alone
            (self.launch_arrows if cat in LAUNCHES else self.other_arrows).extend(pairs)
        for of in self.bound.values():
            self._bound_arrows(sorted(of, key=lambda e: e[:2]))

    def _bound_arrows(self, of):
        """An arrow goes from an event with flow_out to each one with flow_in until the next
        flow_out. An event that has both ends one arrow and begins others."""
        begun, ended = None, 0
        for at, _, event in of:
            if event.get("flow_in") is True:
                if begun:
                    self.other_arrows.append((begun, (at, event)))
                    ended += 1
                else:
                    self.missed["ARROW_END"] += 1
            if event.get("flow_out") is True:
                self.missed["ARROW_END"] += begun is not None and not ended
                begun, ended = (at, event), 0
        self.missed["ARROW_END"] += begun is not None and not ended

    @staticmethod
    def _pairs(of):
        """One arrow of a number is under way at a time: a begin takes the place of one that
        waits for its end. How many ends have no other end. A step may be the last."""

        def waits(begun):
            return begun is not None and begun[1]["ph"] == "s"

        pairs, begun, alone = [], None, 0
        for at, event in of:
            if event["ph"] == "s" or begun is None:
                alone += waits(begun) or event["ph"] != "s"
            else:
                pairs.append((begun, (at, event)))
                begun = None
            if event["ph"] != "f":
                begun = (at, event)
        return pairs, alone + waits(begun)

    # ---- launches ----

    def _launches(self):
        """Work was launched by the call with its correlation; what has none, by the arrow that
        ends on it."""
        ends = {(*row_of(event), at): begin for begin, (at, event) in self.launch_arrows}
        devices = {row_of(event)[0] for _, (_, event) in self.launch_arrows}
        devices |= {
            pid
            for pid, name in self.process_names.items()
            if isinstance(name, str) and DEVICE_PROCESS.match(name)
        }
        calls = {}
        for scope in self.scopes:
            if scope.kind == "host" and scope.row[0] in devices and scope.cat not in HOST:
                scope.kind = "work"
            if scope.kind == "call" and "correlation" in scope.args:
                calls.setdefault(str(scope.args["correlation"]), (scope.row, scope.start))
        work = {}
        for scope in self.scopes:
            if scope.kind == "work":
                work[(*scope.row, scope.start)] = scope
                scope.launch = calls.get(str(scope.args.get("correlation")))
                begin = ends.get((*scope.row, scope.start))
                if scope.launch is None and "correlation" not in scope.args and begin:
                    scope.launch = row_of(begin[1]), begin[0]
                self.changed["NO_LAUNCH"] += scope.launch is None
        # One to each work says nothing that its launch does not. More, and others', are arrows.
        for begin, end in self.launch_arrows:
            to = work.get((*row_of(end[1]), end[0]))
            launches = to and (to.launch is None or to.launch[0] == row_of(begin[1]))
            if launches and not to.is_drawn:
                self.missed["DRAWN"] += 2
                to.is_drawn = True
            else:
                self.other_arrows.append((begin, end))

    # ---- memory ----

    def memory_peaks(self):
        """By device, ("cpu", 0) or ("gpu", n): the highest sum of what is handed out, with what was
        in use before, and of what is reserved. None: the trace never says it."""
        peaks, used = {}, {}
        for _, _, args in sorted(self.memory, key=lambda e: e[:2]):
            is_device = int(args.get("Device Type", 0)) != 0
            key = ("gpu", max(int(args.get("Device Id", 0)), 0)) if is_device else ("cpu", 0)
            total, change, reserved = (
                args.get("Total Allocated"),
                int(args["Bytes"]),
                args.get("Total Reserved"),
            )
            if key not in used:
                used[key] = (
                    max(int(total) - change, 0) if total is not None and int(total) >= 0 else 0
                )
                peaks[key] = [used[key], None]
            used[key] += change
            peaks[key][0] = max(peaks[key][0], used[key])
            if reserved is not None:
                peaks[key][1] = max(peaks[key][1] or 0, int(reserved))
        return {key: tuple(of) for key, of in peaks.items()}

    # ---- nesting ----

    def _nest(self):
        """Of one begin and one end the one that came first holds the other, as in both viewers.
        The format says nothing of it."""
        rows = collections.defaultdict(list)
        for scope in self.scopes:
            if scope.kind in ("host", "call"):
                rows[scope.row].append(scope)
        self.host_rows = rows
        for row in rows.values():
            row.sort(key=lambda s: (s.start, -s.end, s.order))
            self._nest_row(row)
            self._own_times(row)

    @staticmethod
    def _nest_row(row):
        stack, are_functions_beside = [], False
        for scope in row:
            while stack and stack[-1].end <= scope.start:
                stack.pop()
            crossed = [s for s in stack if s.end < scope.end]
            for other in crossed:  # neither holds the other: which totals are whose is not said
                scope.is_clean = other.is_clean = False
                are_functions_beside |= FUNCTION in (scope.category, other.category)
            holders = [s for s in stack if s.end >= scope.end]
            if crossed and holders:
                holders[-1].is_clean = False
            scope.is_outermost = all(s.key != scope.key for s in holders)
            if holders:
                scope.parent = holders[-1]
            stack.append(scope)
        if are_functions_beside:  # prof puts those that cross on a row of their own
            for scope in row:
                scope.has_self = scope.is_clean

    @staticmethod
    def _own_times(row):
        """Each moment belongs to the scope that began last of those that run: prof's rule. Where
        scopes nest that is what a scope takes less what it holds takes."""
        running, now = [], 0  # places in the row, negated: the last one comes first

        def run_to(at):
            nonlocal now
            while running:
                scope = row[-running[0]]
                until = min(scope.end, at)
                if until > now:
                    scope.self_ns += until - now
                    now = until
                if scope.end > at:
                    return
                heapq.heappop(running)

        for place, scope in enumerate(row):
            run_to(scope.start)
            now = scope.start
            heapq.heappush(running, -place)
        run_to(math.inf)

    # ---- sums ----

    def _add_up(self):
        self.rows = collections.defaultdict(Row)
        for scope in self.scopes:
            if scope.kind in ("work", "annotation"):
                continue
            row = self.rows[scope.key]
            row.calls += 1
            row.calls_ns += scope.duration
            row.max_ns = max(row.max_ns, scope.duration)
            row.min_ns = scope.duration if row.min_ns is None else min(row.min_ns, scope.duration)
            row.total_ns += scope.duration if scope.is_outermost else 0
            row.self_ns += scope.self_ns if scope.kind != "async" else 0
            row.is_clean = row.is_clean and scope.is_clean and scope.kind != "async"
            row.has_self = row.has_self and scope.has_self and scope.kind != "async"
        self._device_times()

    def _device_times(self):
        """Each work's time belongs to the innermost scope around its launch. Of work inside of
        other work on its stream the outer one has the rest; what crosses other work has its
        whole time."""
        streams = collections.defaultdict(list)
        for scope in self.scopes:
            if scope.kind == "work":
                streams[scope.row].append(scope)
        self.device_ns = 0
        for stream in streams.values():
            stream.sort(key=lambda s: (s.start, -s.end, s.order))
            lanes = []  # what crosses stands beside
            for work in stream:
                work.self_ns = work.duration
                for lane in lanes:
                    while lane and lane[-1].end <= work.start:
                        lane.pop()
                    if not lane or lane[-1].end >= work.end:
                        break
                else:
                    lane = []
                    lanes.append(lane)
                if lane:
                    lane[-1].self_ns -= work.duration
                lane.append(work)
            for work in stream:
                self.device_ns += work.self_ns
                self._charge(work, work.self_ns)

    def _charge(self, work, ns):
        around = self._around(*work.launch) if work.launch else []
        operators = [s for s in around if s.kind != "call"]
        owner = operators[-1] if operators else work
        self.rows[owner.key].device_ns += ns
        self.rows[owner.key].device_count += 1
        for key in {s.key for s in operators} | {owner.key}:
            self.rows[key].device_total_ns += ns

    def _around(self, row, at):
        """Scopes of a thread that are open at that moment, the outermost first."""
        if row not in self._indexes:
            self._indexes[row] = _Index(self.host_rows.get(row, []))
        return self._indexes[row].around(at)


class _Index:
    """Answers which of the scopes, sorted by start, hold a moment, by a walk that goes on where
    moments rise."""

    def __init__(self, scopes):
        self.scopes, self.starts = scopes, [s.start for s in scopes]

    def around(self, at):
        last = bisect.bisect_right(self.starts, at) - 1
        if last < 0:
            return []
        found, scope = [], self.scopes[last]
        while scope is not None:
            if scope.start <= at and (at < scope.end or scope.start == at):
                found.append(scope)
            scope = scope.parent
        return found[::-1]
