"""prof import tells of each thing that it drops or changes: one counted line a reason, printed and
kept in the capture. And of nothing else: an export of prof that is taken back has no such line."""

import json
import unittest

from folder import HAS_COMMAND
from import_folder import ImportFolder
from import_traces import arrow, event, named, x

NOT_UTF8 = "taken: {} texts that are no UTF-8: exports have U+FFFD there"
LABELS = "not taken: {} labels of processes (process_labels): exports make them anew"
SORTS = (
    "not taken: {} places of rows (process_sort_index, thread_sort_index): exports make them anew"
)
METADATA = "not taken: {} metadata of a name that is not known (ph M) (the first: {})"
WRONG = "taken: {} with a name, a category, arguments or another member of a wrong type"
INSTANTS = "taken: {} instants of a process or of all (s): they are their thread's now"
CATEGORIES = "taken: {} ends of arrows, without their category"
ARGUMENTS = "taken: {} ends of arrows, without their arguments"
SAMPLES = "not taken: {} samples of processors (samples)"
SYSTEM = "not taken: {} lines of a system's trace beside this one (systemTraceEvents)"
ENDS = "not taken: {} ends of arrows whose other end is not there (ph s, t, f)"
CUT = "taken: {} with a text cut or arguments left out"


def sort_index(what, pid, index, **members):
    return {"ph": "M", "name": what, "pid": pid, "args": {"sort_index": index}, **members}


@unittest.skipUnless(HAS_COMMAND, "the prof command is not built")
class Told(ImportFolder):
    def check(self, events, *said):
        """These lines, which the capture and its export have, too. The way back adds none."""
        content = events if isinstance(events, (str, bytes)) else json.dumps(events)
        self.opened = self.imported(content)
        self.assertEqual(self.said, list(said))
        info = self.command("info", "t.prof").stdout
        for line in said:
            self.assertIn(f"  {line}\n", info)
        account = json.loads(self.opened.json())["prof"]
        self.assertEqual(account.get("notes", []), list(said))
        self.imported(self.opened.json(), "again.prof")
        self.assertEqual(self.said, [])

    def test_texts_that_are_no_utf8(self):
        bad = [b"\xe9", b"a\xff", b"\xc3", b"\x80", b"\xc0\xaf", b"\xe0\x9f\xbf", b"\xed\xa0\x80"]
        bad += [b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"12345678\xe2\x82"]
        good = "e \u00e9 \u07ff \u0800 \ud7ff \ue000 \uffff \U00010000 \U0010ffff".encode()
        scope = b'{"ph":"X","name":"%s","cat":"%s","ts":0,"dur":1,"pid":1,"tid":1,"args":{%s}}'
        for text in bad:
            with self.subTest(text):
                self.check(b"[" + scope % (text, b"c", b"") + b"]", NOT_UTF8.format(1))
                shown = text.decode("utf-8", "replace")
                self.assertEqual([e["name"] for e in self.exported()], [shown])
        self.check(b"[" + scope % (good, good, b'"%s":"%s"' % (good, good)) + b"]")
        every = b'"\xff":"\xff","n":{"\xff":["\xff",1]}'
        self.check(b"[" + scope % (b"\xff", b"\xff", every) + b"]", NOT_UTF8.format(6))
        rows = b'{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"\xff"}},'
        beside = b'{"\xff":"\xff","traceEvents":[' + rows + scope % (b"a", b"c", b"") + b"]}"
        self.check(beside, NOT_UTF8.format(3))

    def test_a_text_that_is_cut_inside_of_a_character_is_told_as_cut(self):
        euros = "x" + "\u20ac" * 400000
        self.imported(json.dumps([x("op", 0, 1, args={"t": euros})], ensure_ascii=False))
        self.assertNotIn(NOT_UTF8.format(1), self.said)
        self.assertTrue(any(line.endswith(CUT[len("taken: {}") :]) for line in self.said))

    def test_a_key_that_is_cut(self):
        long, longest = x("op", 0, 1, args={"k" * 257: 1}), x("op", 2, 1, args={"k" * 256: 1})
        self.check([long, longest], CUT.format(1))

    def test_a_category_that_is_cut(self):
        self.check([x("a", 0, 1, cat="c" * 257), x("b", 0, 1, cat="c" * 256)], CUT.format(1))

    def test_arguments_and_categories_of_arrows(self):
        rows = [x("a", 0, 10), x("b", 20, 10, tid=3)]
        begin, end = (1, 2, 5), (1, 3, 25)
        self.check([*rows, *arrow("flow", begin, end, bp="e")])
        self.check([*rows, *arrow("fwdbwd", begin, end, bp="e")])
        self.check([*rows, *arrow("mine", begin, end, bp="e")], CATEGORIES.format(2))
        told = arrow("flow", begin, end, bp="e", args={"k": 1})
        self.check([*rows, *told], ARGUMENTS.format(2))
        step = event("t", "mine", 15, 2, cat="mine", id=1, args={"k": 1})
        through = [*arrow("mine", begin, end, bp="e"), step]
        self.check([*rows, x("c", 12, 5), *through], CATEGORIES.format(3), ARGUMENTS.format(1))

    def test_labels_and_places_of_rows(self):
        label = named(1, "trainer", "process_labels", "labels")
        self.check([x("a", 0, 1), label], LABELS.format(1))
        for known in ("CPU", "GPU 3"):
            self.check([x("a", 0, 1), named(1, known, "process_labels", "labels")])
        places = [
            sort_index("process_sort_index", 1, 9),
            sort_index("thread_sort_index", 1, -3, tid=2),
        ]
        self.check([x("a", 0, 1), *places], SORTS.format(2))

    def test_metadata_that_is_not_known(self):
        other = [named(1, 1, name, "x") for name in ("my_metadata", "other")]
        self.check([x("a", 0, 1), *other], METADATA.format(2, "my_metadata"))
        wrong = [named(1, 7), named(1, "x", "thread_name", "nam")]
        wrong.append(named(1, 7, "process_labels", "labels"))
        self.check([x("a", 0, 1), *wrong], WRONG.format(3))

    def test_instants_of_more_than_a_thread(self):
        instants = [event("i", s, 1, s=s) for s in "gpt"] + [event("I", "none", 2)]
        self.check([x("a", 0, 5), *instants], INSTANTS.format(2))

    def test_an_export_of_what_prof_recorded_has_nothing_to_tell(self):
        scopes = [x("a", 0, 10, args={"k": 1}), x("b", 5, 3), x("c", 20, 3, tid=3)]
        ends = arrow("flow", (1, 2, 1), (1, 3, 21), bp="e")
        self.opened = self.imported(json.dumps([*scopes, *ends]))
        self.assertEqual(self.said, [])
        for name in ("one", "two"):
            self.opened = self.imported(self.opened.json(), f"{name}.prof")
            self.assertEqual(self.said, [])

    def test_a_time_that_is_no_decimal_number(self):
        events = [x("op", 0, 1), x("a", "0x100", 1), x("b", "1e1", 1), x("c", 1, "0x1")]
        self.check(
            events,
            "not taken: 1 with a time that is no number, or years away from the others",
            "not taken: 1 with a duration that is no number, or longer than a year",
        )

    def test_samples_and_another_trace_beside_the_events(self):
        samples = [{"cpu": 0, "tid": 1, "ts": 1.0, "name": "cycles", "weight": 1}] * 2000
        events = {"traceEvents": [x("op", 0, 1)], "samples": [*samples, [1], 7]}
        said = SAMPLES.format(2002)
        self.check(json.dumps({**events, "systemTraceEvents": ""}), said)
        for system, count in (("# tracer\n" + "a-1 [0] 1.0: b\n" * 2000, 2000), ([1] * 9999, 1)):
            told = said, SYSTEM.format(count)
            self.check(json.dumps({**events, "systemTraceEvents": system}), *told)

    def test_an_arrow_may_end_with_a_step(self):
        ends = ("s", 1), ("t", 11), ("t", 21)
        steps = [event(ph, "n", ts, cat="flow", id=1) for ph, ts in ends]
        events = [x("a", 0, 5), x("b", 10, 5), x("c", 20, 5), *steps]
        self.check(events)
        ends = [e for e in self.opened.events() if e.kind.startswith("flow")]
        self.assertEqual(len(ends), 4)
        again = event("s", "n", 22, cat="flow", id=1)
        self.check([*events, again], ENDS.format(1))
        self.check([*events, event("t", "n", 2, cat="flow", id=2)], ENDS.format(1))


if __name__ == "__main__":
    unittest.main()
