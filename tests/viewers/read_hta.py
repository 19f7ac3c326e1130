"""usage: read_hta.py FOLDER

What HTA has read of the ranks in FOLDER, as JSON: by rank its events with their iterations, and the
steps. If kernels are among them, also what HTA says of those. Runs in .venv-readers."""

import json
import sys


def main():
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_dir=sys.argv[1])
    symbols = analysis.t.symbol_table.get_sym_table()
    ranks = {}
    for rank, frame in analysis.t.get_all_traces().items():
        ranks[int(rank)] = [
            [symbols[row.name], symbols[row.cat], int(row.iteration), float(row.ts), float(row.dur)]
            for row in frame.itertuples()
        ]
    found = {"ranks": ranks, "steps": [int(step) for step in analysis.get_profiler_steps()]}
    if any("kernel" in (row[1] for row in rows) for rows in ranks.values()):
        found.update(devices(analysis))
    json.dump(found, sys.stdout)


def devices(analysis):
    """What each of its analyses of devices says, by rank."""
    ranks = [int(rank) for rank in analysis.t.get_all_traces()]
    types, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, include_memory_kernels=True)
    launches = analysis.get_cuda_kernel_launch_stats(ranks=ranks, visualize=False)
    times = analysis.get_temporal_breakdown(visualize=False)
    idle, _ = analysis.get_idle_time_breakdown(ranks=ranks, visualize=False)
    overlap = analysis.get_comm_comp_overlap(visualize=False)
    found = {
        "kernels": [
            [
                int(row["rank"]),
                row["kernel_type"],
                row["name"],
                row["sum (us)"],
                row["max (us)"],
                row["min (us)"],
            ]
            for _, row in kernels.iterrows()
        ],
        "types": {row["kernel_type"]: float(row["sum"]) for _, row in types.iterrows()},
        "launches": {
            int(rank): [
                [float(row.cpu_duration), float(row.gpu_duration), float(row.launch_delay)]
                for row in rows.itertuples()
            ]
            for rank, rows in launches.items()
        },
        "times": {
            int(row["rank"]): {
                part: float(row[f"{part}_time(us)"])
                for part in ("idle", "compute", "non_compute", "kernel")
            }
            for _, row in times.iterrows()
        },
        "idle": [
            [int(row["rank"]), int(row["stream"]), row["idle_category"], float(row["idle_time"])]
            for _, row in idle.iterrows()
        ],
        "overlap": {
            int(row["rank"]): float(row["comp_comm_overlap_pctg"]) for _, row in overlap.iterrows()
        },
        "paths": {},
    }
    for rank in ranks:
        graph, is_found = analysis.critical_path_analysis(
            rank=rank, annotation="ProfilerStep", instance_id=1
        )
        parts = graph.get_critical_path_breakdown()
        found["paths"][rank] = {
            "is found": bool(is_found),
            "parts": [
                [str(row["s_name"]), row["bound_by"], float(row["duration"])]
                for _, row in parts.iterrows()
            ],
        }
    return found


if __name__ == "__main__":  # it begins processes
    main()
