"""One piece of work seen by prof.torch.observe() and by torch.profiler, in the same process, and how the two are compared: beyond what test_observe.py begins with."""

import test_observe
from test_observe import calls, nested, seen_by_prof, seen_by_torch, torch


def nested_in(p):
    return nested((e.name, e.thread, e.time_range.start, e.time_range.end) for e in p.events())


def bits(values):
    """Of a tensor, or of a list of what has bits."""
    if torch.is_tensor(values):
        return values.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
    return [bits(value) for value in values]


class Beside:
    """A part of a TestCase."""

    maxDiff = None
    if torch is not None:
        compare = test_observe.SameCalls.compare

    def compare_results(self, work, seed=7):
        """The calls; and what comes of the same seed, to the last bit: unobserved, observed, in torch.profiler, and observed while nobody records."""

        def seeded():
            torch.manual_seed(seed)
            found.append(bits(work()))

        found = []
        counted = self.compare(seeded)
        with test_observe.prof.torch.observe():
            seeded()
        self.assertEqual(len(found), 4)
        for other in found[1:]:
            self.assertEqual(other, found[0])
        return counted


def skip_without_torch(case):
    return test_observe.unittest.skipIf(torch is None, "torch is not installed for this Python")(case)


__all__ = ["Beside", "bits", "calls", "nested", "nested_in", "seen_by_prof", "seen_by_torch", "skip_without_torch", "torch"]
