# Guide: DeepLink, Profiler
# Section: Case 1. MobileNet v2

# mmpretrain's tools/train.py makes the runner. It is mmengine that imports torch.profiler, so prof
# takes that one's place.

import torch
from mmengine.hooks import ProfilerHook

import prof.torch

prof.torch.install()


def profiled(runner):
    hook = ProfilerHook(
        by_epoch=False,
        profile_times=10,
        activity_with_cpu=True,
        activity_with_cuda=torch.cuda.is_available(),
        json_trace_path="mobilenetv2_profiler-slow.json",
    )
    runner.register_custom_hooks([hook])
    runner.train()
