"""What several tests record, and how they count it."""

import prof


def work(n=2):
    with prof.record_function("outer"):
        for _ in range(n):
            with prof.record_function("inner"):
                pass


def counts(averages):
    return {a.key: a.count for a in averages}
