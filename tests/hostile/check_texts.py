#!/usr/bin/env python3
"""usage: check_texts.py FOLDER PROF

Reads back what "text --write FOLDER" wrote, and what the command PROF says of it. The rule is that
of docs/reference/macros.md, "Names". This is its second implementation: it shares no code with
prof. Prints what is wrong and exits with 1, or prints the number of texts compared.

JSON: strict, one U+FFFD for each maximal ill-formed part; NULs and controls are in it, escaped.

Tables: the same, NUL as U+2400. Controls, separators and marks that turn the direction of writing
are spelt \\x1b, \\u202e.

prof info: bytes that are no character, and those of controls and marks, spelt \\xe2 one by one.

No command writes a control character, whatever it was given."""

import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "viewers"))

import check_trace

NAME, KEY = 63, 64  # bytes of threads, processes and tracks; of keys and flows
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
need = check_trace.need


def repaired(raw, most=None):
    return raw[:most].decode("utf-8", "replace")


def shown(raw):
    """As a table has it."""

    def spell(match):
        return f"\\x{ord(match[0]):02x}" if ord(match[0]) < 256 else f"\\u{ord(match[0]):04x}"

    return CONTROL.sub(spell, repaired(raw).replace("\0", "\u2400"))


def spelt(raw, most=None):
    """As prof info has it."""
    text = raw[:most].decode("utf-8", "surrogateescape")
    marks = re.compile(CONTROL.pattern[:-1] + "\u200b-\u200d\udc80-\udcff]")
    return marks.sub(
        lambda match: "".join(
            f"\\x{byte:02x}" for byte in match[0].encode("utf-8", "surrogateescape")
        ),
        text,
    )


def same(what, got, wanted):
    need(got == wanted, f"{what}: {got!r}, not {wanted!r}")
    return 1


# ---- files ----


def check_scopes(events, texts):
    """Scopes by their argument i."""
    compared = 0
    for event in events:
        args = event.get("args", {})
        if event["ph"] not in "Xi" or "i" not in args:
            continue
        raw = texts[args["i"]]
        if event["cat"] == "key":
            own = [key for key in args if key not in ("External id", "i")]
            wanted = repaired(raw, KEY)
            wanted += "#" if wanted in ("External id", "unfinished", "cut", "i") else ""
            compared += same("key", own, [wanted])
        elif event["cat"] == "formatted":
            compared += same("formatted", args["text"], f"{args['i']} [{repaired(raw)}]")
        elif event["cat"] != "thread":
            compared += same("name", event["name"], repaired(raw)) + same(
                "category", event["cat"], repaired(raw)
            )
            compared += same("value", args["value"], repaired(raw))
    return compared


def check_marks(events, texts):
    compared = 0
    given = {event["id"]: event["args"]["flow id"] for event in events if event["ph"] == "s"}
    need(len(given) > 500, f"{len(given)} arrows")
    for event in events:
        if event["ph"] == "C":
            compared += same(
                "counter", event["name"], repaired(texts[int(float(event["args"]["value"]))])
            )
        elif event["ph"] in "sf":
            compared += same("flow", event["name"], repaired(texts[given[event["id"]]], KEY))
    return compared


def check_metadata(events, texts):
    names = {
        event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"
    }
    compared = 0
    for event in events:
        if event.get("cat") == "thread":
            compared += same(
                "thread", names[event["tid"]], repaired(texts[event["args"]["i"]], NAME)
            )
    tracks = {
        event["tid"]: event["args"]["name"]
        for event in events
        if event["name"] == "thread_name" and event["pid"] >= 5000000
    }
    named = [text for text in texts if b"\0" not in text]
    for text, (_, name) in zip(named, sorted(tracks.items())):
        compared += same("track", name, repaired(text, NAME))
    need(len(tracks) > 150, f"{len(tracks)} tracks")
    return compared


def check_twins(events):
    twins = [
        sorted(key for key in event["args"] if key != "External id")
        for event in events
        if event.get("cat") == "twins"
    ]
    wanted = [
        ["\\", "\\#", "\\##"],
        ["\ufffd", "\ufffd#", "\ufffd##"],
        ["cut#", "cut##", "cut###"],
        ["<", "<#", "<##"],
    ]
    return same("keys that read alike", sorted(twins), sorted(wanted))


def check_huge(events):
    huge = [event for event in events if event.get("cat") == "huge"]
    need(len(huge) == 4, f"{len(huge)} names of a MiB")
    for event in huge:
        need(event["args"].get("cut") is True, "a name was cut and does not say so")
        need(
            16000 <= len(event["name"]) <= 16384 and len(set(event["name"])) == 1,
            f"{len(event['name'])} characters of a name",
        )
    return len(huge)


def check_chrome(folder, texts):
    events = check_trace.parse(check_trace.read_text(folder / "texts.json"))["traceEvents"]
    count = sum(event["ph"] == "X" and "value" in event.get("args", {}) for event in events)
    need(count == len(texts), f"{count} of {len(texts)} texts as names")
    return sum(
        (
            check_scopes(events, texts),
            check_marks(events, texts),
            check_metadata(events, texts),
            check_twins(events),
            check_huge(events),
        )
    )


def check_raf(folder, texts):
    events = check_trace.parse(check_trace.read_text(folder / "texts-raf.json"))["traceEvents"]
    compared = 0
    for event in events:
        if event["ph"] != "B" or event["cat"] in ("thread", "twins", "huge", "flow", "scope"):
            continue
        text = event["args"]["args_string"]
        first, _, rest = text.partition(";")
        raw = texts[int(re.match(r"(?:i: )?(\d+)", first)[1])]
        if event["cat"] == "key":
            compared += same("RAF key", rest, repaired(raw, KEY) + ": 7")
        elif event["cat"] == "formatted":
            compared += same("RAF format", text.split(" ", 1)[1], f"[{repaired(raw)}]")
        else:
            compared += same("RAF name", event["name"], repaired(raw))
            compared += same("RAF value", rest, "value: " + repaired(raw))
            compared += same("RAF line", event["tid"][: len(repaired(raw))], repaired(raw))
    need(compared > 4 * len(texts), f"only {compared} of RAF's")
    return compared


def check_processes(folder, texts):
    compared = 0
    for path in folder.glob("process-*.json"):
        events = check_trace.parse(check_trace.read_text(path))["traceEvents"]
        names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
        compared += same("process", names[0], repaired(texts[int(path.stem.split("-")[1])], NAME))
    need(compared > 500, f"{compared} processes")
    return compared


# ---- what is shown to people ----


def clean(data, what):
    """The text; Bad if a terminal would obey any of it."""
    text = data.decode("utf-8")
    bad = CONTROL.search(text.replace("\n", ""))
    need(
        not bad,
        f"{what} has U+{ord(bad[0]):04x}: "
        f"{bad and text[max(0, bad.start() - 40) : bad.end() + 20]!r}"
        if bad
        else "",
    )
    return text


def run(prof, *words):
    done = subprocess.run([prof, *words], capture_output=True, check=False)
    return (
        done.returncode,
        clean(done.stdout, f"the output of {words!r}"),
        clean(done.stderr, f"what is said of {words!r}"),
    )


def has_rows(table, texts, what):
    """Each text begins a line: what a cell shows of it."""
    begins = {line[:12].rstrip() for line in table.split("\n")}
    for raw in texts:
        wanted = shown(raw)
        need(
            wanted[:12].rstrip() in begins or len(wanted) > 12 or not wanted.strip(),
            f"{what} lacks {wanted!r}",
        )
    return len(texts)


def check_tables(folder, prof, texts):
    compared = has_rows(clean((folder / "table").read_bytes(), "a table"), texts, "the table")
    capture = str(folder / "texts.prof")
    status, table, _ = run(prof, "table", capture, "--by", "name", "--rows", "all")
    need(status == 0, "prof table failed")
    compared += has_rows(table, texts, "prof table")
    for groups in ("category", "thread", "name,category,device,thread,shape"):
        status, table, _ = run(prof, "table", capture, "--by", groups, "--rows", "all")
        need(status == 0 and len(table) > 10000, f"prof table --by {groups}")
    return compared


def check_info(folder, prof, texts):
    compared = 0
    status, info, _ = run(prof, "info", str(folder / "texts.prof"))
    need(status == 0 and "threads" in info, "prof info failed")
    for path in sorted(folder.glob("open-*.prof")):
        first = int(path.stem.split("-")[1])
        status, info, _ = run(prof, "info", str(path))
        need(status == 0, "prof info failed")
        for raw in texts[first : first + 60]:
            need(f" {spelt(raw)}  begun " in info, f"prof info lacks {spelt(raw)!r}: {info}")
            compared += 1
    for path in folder.glob("process-*.prof"):
        status, info, _ = run(prof, "info", str(path))
        raw = texts[int(path.stem.split("-")[1])]
        compared += same(
            "prof info's process",
            info.split("\n")[0].split(" (pid")[0],
            "process      " + spelt(raw, NAME),
        )
    return compared


def check_words(folder, prof):
    """What a user types, and a path that somebody else chose, come back in errors."""
    evil = b"\x1b[2J\x1b]0;title\x07\x9b\xc2\x9b31m\xe2\x80\xae\r\n"
    capture = str(folder / "texts.prof")
    lines = [
        ("info", evil),
        ("table", evil),
        ("dump", evil, "-o", "x"),
        ("dump", capture, "-o", str(folder).encode() + b"/no/" + evil),
        ("dump", capture, "-o", "x", "--format", evil),
        (evil,),
        ("table", capture, "--by", evil),
        ("table", capture, "--sort", evil),
        ("table", capture, "--rows", evil),
        ("table", b"--" + evil, capture),
        ("table", b"-" + evil, capture),
        ("dump", b"--" + evil),
        ("info", capture, evil),
        ("table", "--rows"),
        ("dump", capture, "-o"),
        ("dump", b"-" + evil, capture),
    ]
    for words in lines:
        status, _, said = run(prof, *words)
        need(
            status in (1, 2) and said.startswith("prof") and said.count("\n") == 1,
            f"prof {words!r}: {status}, {said!r}",
        )
    return len(lines)


def main():
    folder, prof = pathlib.Path(sys.argv[1]), sys.argv[2]
    texts = [bytes.fromhex(line) for line in (folder / "texts").read_text().splitlines()]
    try:
        compared = (
            check_chrome(folder, texts) + check_raf(folder, texts) + check_processes(folder, texts)
        )
        if pathlib.Path(prof).exists():
            compared += (
                check_tables(folder, prof, texts)
                + check_info(folder, prof, texts)
                + check_words(folder, prof)
            )
        else:
            print(f"without {prof}, which is not built")
    except (check_trace.Bad, UnicodeDecodeError, json.JSONDecodeError) as bad:
        print(f"check_texts.py: {bad}")
        return 1
    print(f"{len(texts)} texts, {compared} compared")
    return 0


if __name__ == "__main__":
    sys.exit(main())
