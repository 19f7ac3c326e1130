# What bench/preload_python.sh runs: tables of lists, tuples and dictionaries, texts that are joined
# and split, all thrown away again.
import sys

for _ in range(int(sys.argv[1])):
    table = {i: [str(i), (i, i + 1.5), {"a": i}] for i in range(20000)}
    words = sorted(entry[0] for entry in table.values())
    parts = " ".join(words).split()
    if len(parts) != len(table):
        sys.exit("lost a word")
    del table, words, parts
