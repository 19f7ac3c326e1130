"""usage: cycles.py OBJECT...

How many files of one folder of src use each other in a cycle, by the symbols of libprof's objects.
More than LARGEST in any folder fail. Then no file of them can be understood, or tested, alone.
Function pointers are not seen.
"""

import sys
from collections import defaultdict

import check

LARGEST = 4


def find_uses(defined, used):
    """For each file, the other files of its folder that it uses, with the symbols."""
    uses = defaultdict(lambda: defaultdict(set))
    for source, symbols in used.items():
        for symbol in symbols:
            target = defined.get(symbol, source)
            if target != source and check.module_of(target) == check.module_of(source):
                uses[source][target].add(symbol)
    return uses


def reach(uses, start):
    """The files that start uses, directly or through others."""
    found, left = set(), [start]
    while left:
        new = uses.get(left.pop(), {}).keys() - found
        found |= new
        left += new
    return found


def find_cycles(uses):
    """The sets of files that use each other, the largest first."""
    reached = {source: reach(uses, source) for source in uses}
    cycles = {
        frozenset(other for other in others if source in reached.get(other, ()))
        for source, others in reached.items()
        if source in others
    }
    return sorted(cycles, key=lambda cycle: (-len(cycle), sorted(cycle)))


def main():
    defined, used = check.read_symbols(sys.argv[1:])
    sources = {*defined.values(), *used}
    if len(sources) < 100:
        sys.exit(f"only {len(sources)} sources in {len(sys.argv) - 1} objects")
    uses = find_uses(defined, used)
    cycles = find_cycles(uses)
    large = [cycle for cycle in cycles if len(cycle) > LARGEST]
    for cycle in large:
        folder = check.module_of(min(cycle))
        print(f"src/{folder}: {len(cycle)} files use each other, at most {LARGEST} may:")
        for source in sorted(cycle):
            for target in sorted(uses[source].keys() & cycle):
                print(f"  {source} uses {target}: {', '.join(sorted(uses[source][target]))}")
    largest = len(cycles[0]) if cycles else 1
    print(f"{len(sources)} sources, largest cycle {largest}, {len(large)} too large")
    sys.exit(bool(large))


if __name__ == "__main__":
    main()
