# Guide: PyTorch Profiler for AMD GPUs
# Section: Profiling Distributed Training

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from prof.torch import ProfilerActivity, profile

gpus = torch.cuda.device_count()


def train(rank, world_size):
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "29511")
    dist.init_process_group("nccl" if gpus else "gloo", rank=rank, world_size=world_size)

    device = rank if gpus else "cpu"
    model = nn.Linear(100, 10).to(device)
    ddp_model = DistributedDataParallel(model, device_ids=[rank] if gpus else None)
    x = torch.randn(32, 100, device=device)

    if rank == 0:
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
            for _ in range(10):
                ddp_model(x)
                prof.step()

        print(prof.key_averages().table(sort_by="cuda_time_total", row_limit=10))
    else:
        for _ in range(10):
            ddp_model(x)
    dist.destroy_process_group()


if __name__ == "__main__":
    world_size = gpus or 2
    mp.spawn(train, args=(world_size,), nprocs=world_size)
