"""usage: torch_ranks.py FOLDER

One of two ranks (RANK, WORLD_SIZE) that train with DistributedDataParallel over gloo, seen by
prof.torch.observe(). The handler of tensorboard_trace_handler() writes to FOLDER/runs. What the
profile itself says of it goes to FOLDER/seen_RANK.json. For test_torch_viewers.py."""

import gc
import json
import os
import sys

import prof
import prof.torch  # before torch

# isort: split
import torch
import torch.distributed

STEPS, BATCH = 3, 4


def main():
    folder, rank = os.path.abspath(sys.argv[1]), int(os.environ["RANK"])
    torch.distributed.init_process_group(
        "gloo", init_method="file://" + os.path.join(folder, "meet"), rank=rank, world_size=2
    )
    torch.manual_seed(1)
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3),
        torch.nn.Sequential(torch.nn.BatchNorm2d(8), torch.nn.ReLU()),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 14 * 14, 10),
    )
    model = torch.nn.parallel.DistributedDataParallel(layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data = torch.utils.data.TensorDataset(torch.randn(BATCH * (STEPS + 1), 3, 16, 16))
    write = prof.tensorboard_trace_handler(os.path.join(folder, "runs"), worker_name=f"node_{rank}")

    def ready(p):
        write(p)
        events = p.events()
        events = [
            [e.name, e.time_range.start, e.time_range.end] for e in events if e.name != "[memory]"
        ]
        averages = {
            a.key: [a.count, a.cpu_time_total, a.self_cpu_time_total] for a in p.key_averages()
        }
        with open(os.path.join(folder, f"seen_{rank}.json"), "w", encoding="utf-8") as f:
            slices = [e.name for e in p.trace.events() if e.kind == "scope"]
            json.dump({"events": events, "slices": slices, "averages": averages}, f)

    profile = prof.profile(
        schedule=prof.schedule(wait=0, warmup=1, active=STEPS, repeat=1),
        on_trace_ready=ready,
        profile_memory="PROF_MEMORY" in os.environ,
    )
    with profile as p, prof.torch.observe(with_modules=True):
        for (x,) in torch.utils.data.DataLoader(data, batch_size=BATCH):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            p.step()
    del model, optimizer, layers
    # nobody else has the group now, so that its threads end with it: of one that asks for the
    # interpreter's lock when that ends the process dies
    gc.collect()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
