"""usage: read_hta.py FOLDER: what HTA has read of the ranks in FOLDER, as JSON: by rank its events with their iterations, and the steps; where kernels are among them, what it says of those. Runs in .venv-readers."""

import json
import sys


def main():
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_dir=sys.argv[1])
    symbols = analysis.t.symbol_table.get_sym_table()
    ranks = {}
    for rank, frame in analysis.t.get_all_traces().items():
        ranks[int(rank)] = [[symbols[row.name], symbols[row.cat], int(row.iteration), float(row.ts), float(row.dur)] for row in frame.itertuples()]
    found = {"ranks": ranks, "steps": [int(step) for step in analysis.get_profiler_steps()]}
    if any("kernel" in (row[1] for row in rows) for rows in ranks.values()):
        found.update(devices(analysis))
    json.dump(found, sys.stdout)


def devices(analysis):
    """By kind the kernels and copies; by rank the launches, [us of the host, us on the device]; by rank the share of time in which devices worked, per cent."""
    _, kernels = analysis.get_gpu_kernel_breakdown(visualize=False)
    launches = analysis.get_cuda_kernel_launch_stats(visualize=False)
    times = analysis.get_temporal_breakdown(visualize=False)
    return {
        "kernels": {kind: sorted(rows["name"]) for kind, rows in kernels.groupby("kernel_type")},
        "launches": {int(rank): [[float(row.cpu_duration), float(row.gpu_duration)] for row in rows.itertuples()] for rank, rows in launches.items()},
        "busy": {int(row["rank"]): float(row["compute_time_pctg"]) for _, row in times.iterrows()},
    }


if __name__ == "__main__":  # it begins processes
    main()
