"""One of two processes that train a model together over gloo, for test_observe_ranks.py.

rank_of_two.py FOLDER runs with RANK and WORLD_SIZE, as torchrun starts them. rank_of_two.py FOLDER
--spawn starts both itself, by torch.multiprocessing, without them. Writes FOLDER/RANK.json: what
was seen."""

import contextlib
import json
import os
import sys

from beside_torch import bits, calls, calls_of, nested, torch

import prof

SCHEDULE = {"wait": 1, "warmup": 1, "active": 2, "repeat": 1}
IN_FRONT = "DistributedDataParallel.forward"


class Trainer:
    def __init__(self, rank):
        torch.manual_seed(1)
        layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        self.model = torch.nn.parallel.DistributedDataParallel(layers)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.x = torch.randn(3, 4) + rank
        for _ in range(3):  # its first steps make buckets
            self.step()

    def step(self):
        self.optimizer.zero_grad()
        self.model(self.x).square().sum().backward()
        self.optimizer.step()
        t = torch.ones(3)
        torch.distributed.all_reduce(t)
        torch.distributed.all_reduce(t, async_op=True).wait()
        torch.distributed.broadcast(t, 0)
        torch.distributed.all_gather([torch.empty(3), torch.empty(3)], t)
        torch.distributed.barrier()

    def state(self):
        return [*self.model.state_dict().values(), *(p.grad for p in self.model.parameters())]


def work(trainer, p):
    for _ in range(5):
        trainer.step()
        p.step()


def in_front(events):
    """What the program's own thread did; gloo's threads come when they come. Of (name, thread,
    start, end)."""
    events = list(events)
    thread = next(thread for name, thread, *_ in events if name == IN_FRONT)
    return nested(e for e in events if e[1] == thread)


def slices(path):
    with open(path) as f:
        return [
            (e["name"], e["tid"], float(e["ts"]), float(e["ts"]) + float(e["dur"]))
            for e in json.load(f)["traceEvents"]
            if e["ph"] == "X" and e.get("cat") in ("cpu_op", "user_annotation")
        ]


def asynchronous(p):
    """What happens without the program: how often each, its own time, what encloses it or is in it;
    and which rows are such."""
    events = [e for e in p.events() if e.is_async]
    return {
        "calls": calls_of((e.name,) for e in events),
        "own": [e.name for e in events if e.self_cpu_time_total or e.cpu_time_total <= 0],
        "tied": [e.name for e in events if e.cpu_parent is not None or e.cpu_children]
        + [e.name for e in p.events() if e.cpu_parent is not None and e.cpu_parent.is_async],
        "rows": {a.key: a.count for a in p.key_averages() if a.is_async},
        "own of rows": [
            a.key
            for a in p.key_averages()
            if a.is_async and (a.self_cpu_time_total or a.cpu_time_total <= 0)
        ],
        "shares": [
            line.split()[0]
            for line in p.key_averages().table(row_limit=-1).splitlines()
            if len(line.split()) > 3 and line.split()[1] == "0.00%" and line.split()[3] == "0"
        ],
    }


def seen(rank, folder):
    def ready_of(side):
        return lambda p: p.export_chrome_trace(os.path.join(folder, f"{side}-{rank}.json"))

    plain, mine, theirs = (Trainer(rank) for _ in range(3))
    for _ in range(5):
        plain.step()
    with (
        prof.torch.observe(),
        prof.profile(schedule=prof.schedule(**SCHEDULE), on_trace_ready=ready_of("prof")) as p,
    ):
        work(mine, p)
    p.trace.dump(os.path.join(folder, f"rank-{rank}.prof"), "capture")
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(
        activities=cpu,
        schedule=torch.profiler.schedule(**SCHEDULE),
        on_trace_ready=ready_of("torch"),
    ) as q:
        work(theirs, q)
    found = {
        "rank": p.trace.info().rank,
        "size": p.trace.info().world_size,
        "same bits": bits(plain.state()) == bits(mine.state()),
    }
    found["calls"] = calls(p)
    found["asynchronous"] = [asynchronous(p), asynchronous(q)]
    for side in ("prof", "torch"):
        traced = slices(os.path.join(folder, f"{side}-{rank}.json"))
        found[side] = {"calls": calls_of(traced), "in front": in_front(traced)}

    handled = []  # a handler of rank 0 alone
    with (
        prof.torch.observe(),
        prof.profile(
            schedule=prof.schedule(**SCHEDULE), on_trace_ready=handled.append if rank == 0 else None
        ) as p,
    ):
        work(mine, p)
    found["handled"], found["calls where one handles"], found["loss"] = (
        len(handled),
        calls(p),
        p.loss_text(),
    )

    before = prof.Trace.now().info().event_count  # rank 1 asks for nothing
    with prof.torch.observe(), prof.profile() if rank == 0 else contextlib.nullcontext() as p:
        mine.step()
    found["calls while rank 0 records"] = calls(p) if p is not None else {}
    found["events more"] = prof.Trace.now().info().event_count - before
    return found


def run(rank, folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2
    )
    found = seen(rank, folder)
    with open(os.path.join(folder, f"{rank}.json"), "w") as f:
        json.dump(found, f)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    if sys.argv[2:] == ["--spawn"]:
        torch.multiprocessing.spawn(run, args=(sys.argv[1],), nprocs=2)
    else:
        run(int(os.environ["RANK"]), sys.argv[1])
