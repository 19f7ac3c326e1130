"""usage: read_hta.py FOLDER: what HTA has read of the ranks in FOLDER, as JSON: by rank its events with their iterations, and the steps. Runs in .venv-readers."""

import json
import sys


def main():
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_dir=sys.argv[1])
    symbols = analysis.t.symbol_table.get_sym_table()
    ranks = {}
    for rank, frame in analysis.t.get_all_traces().items():
        ranks[int(rank)] = [[symbols[row.name], symbols[row.cat], int(row.iteration), float(row.ts), float(row.dur)] for row in frame.itertuples()]
    json.dump({"ranks": ranks, "steps": [int(step) for step in analysis.get_profiler_steps()]}, sys.stdout)


if __name__ == "__main__":  # it begins processes
    main()
