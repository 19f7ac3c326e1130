"""One piece of work seen by prof.torch.observe() and by torch.profiler, in the same process, and
how the two are compared: beyond what test_observe.py begins with."""

import collections
import unittest

from test_observe import calls, events_of, nested, seen_by_prof, seen_by_torch, torch

import prof


def nested_in(p):
    return nested((e.name, e.thread, e.time_range.start, e.time_range.end) for e in p.events())


def calls_of(events):
    return dict(collections.Counter(name for name, *_ in events))


def bits(values):
    """Of a tensor, or of a list of what has bits."""
    if torch.is_tensor(values):
        return values.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
    return [bits(value) for value in values]


class OneLinear(unittest.TestCase):
    """Has a model that has run once: the first time torch makes things that it keeps."""

    maxDiff = None

    def setUp(self):
        self.cpu = [torch.profiler.ProfilerActivity.CPU]
        self.x = torch.ones(2, 4)
        self.linear = torch.nn.Linear(4, 4)
        self.linear(self.x).sum().backward()


class Beside:
    """A part of a TestCase."""

    maxDiff = None

    def compare(self, work, for_torch_alone=()):
        """The calls of what was done before, because torch makes some things once, the first time.
        for_torch_alone: ranges that torch makes only where a profiler of its own is on. ITT counts
        as one, callbacks do not."""
        work()
        mine, theirs = seen_by_prof(work), seen_by_torch(work)
        seen = {e.name for e in mine.events()}
        theirs = [e for e in theirs if e[0] in seen or e[0] not in for_torch_alone]
        self.assertEqual(calls(mine), calls_of(theirs))
        self.assertEqual(nested_in(mine), nested(theirs))
        self.assertEqual(
            {e.category for e in mine.trace.events()} - {"user_annotation"}, {"cpu_op"}
        )
        return calls(mine)

    def compare_results(self, work, **options):
        """The calls; and what comes of the same seed, to the last bit: unobserved, observed, in
        torch.profiler, and observed while nobody records."""

        def seeded():
            torch.manual_seed(7)
            found.append(bits(work()))

        found = []
        counted = self.compare(seeded, **options)
        with prof.torch.observe():
            seeded()
        self.assertEqual(len(found), 4)
        for other in found[1:]:
            self.assertEqual(other, found[0])
        return counted


def skip_with_old_torch(case):
    """Of what torch does since it has profile_all_threads: several profiles at once, open
    ranges, memory that functions hold. Torch 2.4 refuses the first, and drops the others."""
    place = getattr(getattr(torch, "_C", None), "_profiler", None)
    config = getattr(place, "_ExperimentalConfig", None)
    words = getattr(getattr(config, "__init__", None), "__doc__", None) or ""
    is_new = "profile_all_threads" in words
    return unittest.skipUnless(is_new, "torch.profiler itself does otherwise in this torch")(case)


def skip_without_torch(case):
    return unittest.skipIf(torch is None, "torch is not installed for this Python")(case)


__all__ = [
    "Beside",
    "bits",
    "calls",
    "calls_of",
    "events_of",
    "nested",
    "nested_in",
    "seen_by_prof",
    "seen_by_torch",
    "skip_without_torch",
    "torch",
]
