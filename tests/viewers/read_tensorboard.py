"""usage: read_tensorboard.py FOLDER: what TensorBoard's plug-in shows of the runs in FOLDER, as JSON: by worker and span its views, steps, operators, memory, devices. Runs in .venv-readers."""

import json
import sys


def shown(profile):
    found = {
        "views": [view.name for view in profile.views],
        "steps": [row[0] for row in profile.overview["steps"]["rows"]],
        "operators": {row["name"]: row for row in profile.operation_table_by_name["data"]},
        "shapes": [[row["name"], row["input_shape"]] for row in profile.operation_table_by_name_input["data"]],
        "stacks": {name: [row["call_stack"] for row in table["data"]] for name, table in profile.operation_stack_by_name.items()},
    }
    if profile.memory_snapshot is not None:
        found["memory"] = profile.get_memory_stats(memory_metric="B")["rows"]
        found["curve"] = profile.get_memory_curve(memory_metric="B")["rows"]
        found["events"] = profile.get_memory_events(memory_metric="B")["rows"]
    return found


def main():
    from torch_tb_profiler import io
    from torch_tb_profiler.profiler.loader import RunLoader

    with io.Cache() as cache:
        run = RunLoader("run", sys.argv[1], cache).load()
    json.dump([{"worker": worker, "span": span, **shown(profile)} for (worker, span), profile in sorted(run.profiles.items())], sys.stdout)


if __name__ == "__main__":  # it begins processes
    main()
