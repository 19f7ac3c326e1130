"""A few operators of neural networks in plain Python, on tensors of a shape and a list: what the
tutorials beside it profile.

prof.trace_module(operators) makes each function a scope with its inputs' shapes. A Pool gets what
tensors take, as an allocator would report it."""

import operator
import random

from prof import memory_profiler

__all__ = [
    "add",
    "batch_norm",
    "conv2d",
    "linear",
    "matmul",
    "max_pool2d",
    "mean",
    "relu",
    "unfold",
]

pool = memory_profiler.Pool("tensors")
FLOAT_BYTES = 8


class Tensor:
    """A shape, and its numbers row by row."""

    dtype = "float64"

    def __init__(self, shape, data):
        self.shape, self.data = shape, data
        pool.alloc(id(data), len(data) * FLOAT_BYTES)

    def __del__(self):
        pool.free(id(self.data), len(self.data) * FLOAT_BYTES)


def randn(*shape, seed=0):
    count, source = 1, random.Random(seed)
    for n in shape:
        count *= n
    return Tensor(shape, [source.gauss(0, 1) for _ in range(count)])


def unfold(x, size, stride):
    """Each place of a kernel as a row: [places, channels * size * size]; what is beyond the edge is
    0."""
    n, channels, height, width = x.shape
    edge, rows = size // 2, []
    for image in range(n):
        for top in range(-edge, height - edge, stride):
            for left in range(-edge, width - edge, stride):
                for channel in range(channels):
                    base = (image * channels + channel) * height
                    for y in range(top, top + size):
                        for x_at in range(left, left + size):
                            inside = 0 <= y < height and 0 <= x_at < width
                            rows.append(x.data[(base + y) * width + x_at] if inside else 0.0)
    width = channels * size * size
    return Tensor((len(rows) // width, width), rows)


def matmul(a, b):
    """[m, k] times [k, n]."""
    (m, k), n = a.shape, b.shape[1]
    columns = [b.data[i::n] for i in range(n)]
    rows = [a.data[i * k : (i + 1) * k] for i in range(m)]
    return Tensor(
        (m, n), [sum(map(operator.mul, row, column)) for row in rows for column in columns]
    )


def conv2d(x, weight, stride=1):
    """weight: [channels in * size * size, channels out] of 3 by 3 kernels."""
    n, channels, height, width = x.shape
    size = 3
    product = matmul(unfold(x, size, stride), weight)
    outs, places = weight.shape[1], product.shape[0] // n
    data = [
        product.data[(image * places + place) * outs + out]
        for image in range(n)
        for out in range(outs)
        for place in range(places)
    ]
    return Tensor((n, outs, -(-height // stride), -(-width // stride)), data)


def batch_norm(x):
    average = sum(x.data) / len(x.data)
    spread = (sum((v - average) ** 2 for v in x.data) / len(x.data) + 1e-5) ** 0.5
    return Tensor(x.shape, [(v - average) / spread for v in x.data])


def relu(x):
    return Tensor(x.shape, [v if v > 0 else 0.0 for v in x.data])


def add(a, b):
    return Tensor(a.shape, list(map(operator.add, a.data, b.data)))


def max_pool2d(x):
    n, channels, height, width = x.shape
    rows = [x.data[i : i + width] for i in range(0, len(x.data), width)]
    data = [
        max(rows[y][i], rows[y][i + 1], rows[y + 1][i], rows[y + 1][i + 1])
        for y in range(0, len(rows), 2)
        for i in range(0, width, 2)
    ]
    return Tensor((n, channels, height // 2, width // 2), data)


def mean(x):
    """Over height and width."""
    n, channels, height, width = x.shape
    size = height * width
    return Tensor(
        (n, channels), [sum(x.data[i : i + size]) / size for i in range(0, len(x.data), size)]
    )


def linear(x, weight):
    return matmul(x, weight)
