"""Counts what is launched, which stands for Kineto's records."""

import torch


class ProfilerActivity:
    CUDA = "cuda"


class _Event:
    name = "vectorized_elementwise_kernel"


class _Profile:
    def __init__(self, activities):
        self._before = 0

    def __enter__(self):
        self._before = len(torch.launched)
        return self

    def __exit__(self, *_):
        self._count = len(torch.launched) - self._before

    def events(self):
        return [_Event] * self._count


profile = _Profile
