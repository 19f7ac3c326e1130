"""usage: read_tensorboard.py FOLDER [--with-runtime]

What TensorBoard's plug-in shows of the runs in FOLDER, as JSON: by worker and span its views,
steps, operators, memory, modules, devices, ranks. Runs in .venv-readers.

--with-runtime: the plug-in of PyPI expects an older category of a call of CUDA's runtime than the
one that Kineto, and so prof, writes. It gives no kernel to an operator without such a call. Its
later source has this line."""

import json
import sys

if "--with-runtime" in sys.argv:  # here, where the processes that it begins see it, too
    from torch_tb_profiler.profiler import trace

    trace.EventTypeMap["cuda_runtime"] = trace.EventTypes.RUNTIME


def shown(profile):
    found = {
        "views": [view.name for view in profile.views],
        "steps": [row[0] for row in profile.overview["steps"]["rows"]],
        "operators": {row["name"]: row for row in profile.operation_table_by_name["data"]},
        "shapes": [
            [row["name"], row["input_shape"]]
            for row in profile.operation_table_by_name_input["data"]
        ],
        "average": {
            part["name"]: part["value"]
            for whole in profile.overview["performance"]
            for part in [whole, *whole["children"]]
        },
        "costs": [
            [cell for cell in row if not isinstance(cell, str)]
            for row in profile.overview["steps"]["rows"]
        ],
        "parts": [
            column["name"] for column in profile.overview["steps"]["columns"] if "name" in column
        ],
        "modules": profile.get_module_view(),
        "stacks": {
            name: [row["call_stack"] for row in table["data"]]
            for name, table in profile.operation_stack_by_name.items()
        },
    }
    if profile.memory_snapshot is not None:
        found["memory"] = profile.get_memory_stats(memory_metric="B")["rows"]
        found["curve"] = profile.get_memory_curve(memory_metric="B")["rows"]
        found["events"] = profile.get_memory_events(memory_metric="B")["rows"]
    if profile.has_kernel:
        # calls, us
        found["kernels"] = {row[0]: row[2:4] for row in profile.kernel_table["data"]["rows"]}
        found["kernels by operator"] = [
            [row[0], row[1], row[2], row[8]] for row in profile.kernel_op_table["data"]["rows"]
        ]
        found["utilization"] = {row["title"]: row["value"] for row in profile.gpu_summary}
    with open(profile.trace_file_path, "rb") as f:
        found["trace view"] = len(f.read())
    return found


def ranks(profile):
    return {
        "views": [view.name for view in profile.views],
        # computation alone, both, communication alone, other
        "overlap": profile.steps_to_overlap["data"],
        "wait": profile.steps_to_wait["data"],  # transfer, waiting
        "operators": {worker: table["rows"] for worker, table in profile.comm_ops["data"].items()},
    }


def main():
    from torch_tb_profiler import io
    from torch_tb_profiler.profiler.loader import RunLoader

    with io.Cache() as cache:
        run = RunLoader("run", sys.argv[1], cache).load()
    json.dump(
        [
            {"worker": worker, "span": span, **(ranks if worker == "All" else shown)(profile)}
            for (worker, span), profile in sorted(run.profiles.items())
        ],
        sys.stdout,
    )


if __name__ == "__main__":  # it begins processes
    main()
