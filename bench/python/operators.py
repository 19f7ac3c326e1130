"""What table.py and export.py measure on: a capture of a million operators, as a training step of a
small convolutional network has them: PyTorch's names, nested as PyTorch nests them, shapes that
differ by layer, on several threads. Not a benchmark by itself."""

import threading

import prof

COUNT = 1000000
THREADS = 4
F32 = 0x0220
"""PROF_F32, as _shapes has it."""

FORWARD = {
    "conv": (
        "aten::conv2d",
        [
            (
                "aten::convolution",
                [
                    (
                        "aten::_convolution",
                        [
                            (
                                "aten::mkldnn_convolution",
                                [("aten::empty", []), ("aten::resize_", [])],
                            )
                        ],
                    )
                ],
            )
        ],
    ),
    "norm": (
        "aten::batch_norm",
        [
            (
                "aten::_batch_norm_impl_index",
                [
                    (
                        "aten::native_batch_norm",
                        [("aten::empty_like", [("aten::empty_strided", [])]), ("aten::empty", [])],
                    )
                ],
            )
        ],
    ),
    "relu": ("aten::relu_", [("aten::clamp_min_", [])]),
    "pool": ("aten::max_pool2d", [("aten::max_pool2d_with_indices", [])]),
    "add": ("aten::add_", []),
    "linear": (
        "aten::linear",
        [
            ("aten::t", [("aten::transpose", [("aten::as_strided", [])])]),
            (
                "aten::addmm",
                [
                    ("aten::expand", [("aten::as_strided", [])]),
                    ("aten::copy_", []),
                    ("aten::resolve_conj", []),
                ],
            ),
        ],
    ),
    "loss": (
        "aten::cross_entropy_loss",
        [
            ("aten::log_softmax", [("aten::_log_softmax", [])]),
            ("aten::nll_loss_nd", [("aten::nll_loss", [("aten::nll_loss_forward", [])])]),
        ],
    ),
}


def backward(name, *calls):
    return (
        f"autograd::engine::evaluate_function: {name}",
        [(name, [(call, [("aten::empty", [])]) for call in calls])],
    )


BACKWARD = [
    backward("NllLossBackward0", "aten::nll_loss_backward"),
    backward("LogSoftmaxBackward0", "aten::_log_softmax_backward_data"),
    backward("AddmmBackward0", "aten::t", "aten::mm", "aten::sum"),
    backward("MaxPool2DWithIndicesBackward0", "aten::max_pool2d_with_indices_backward"),
    backward("ReluBackward0", "aten::threshold_backward"),
    backward("NativeBatchNormBackward0", "aten::native_batch_norm_backward"),
    backward("ConvolutionBackward0", "aten::convolution_backward"),
    backward("torch::autograd::AccumulateGrad", "aten::detach", "aten::new_empty_strided"),
]
OPTIMIZER = (
    "Optimizer.step#SGD.step",
    [
        ("aten::_foreach_add_", [("aten::empty_strided", [])]),
        ("aten::_foreach_mul_", []),
        ("aten::zero_", [("aten::fill_", [])]),
    ],
)

LAYERS = [
    (kind, 16 << layer // 4, 112 >> layer // 4)
    for layer in range(16)
    for kind in ("conv", "norm", "relu", "add")
]
STEP = [
    (FORWARD["pool"], 64, 112),
    *((FORWARD[kind], channels, side) for kind, channels, side in LAYERS),
    (FORWARD["linear"], 512, 1),
    (FORWARD["loss"], 512, 1),
]
STEP += [
    (tree, channels, side)
    for channels, side in sorted({(c, s) for _, c, s in LAYERS})
    for tree in BACKWARD
]
STEP.append((OPTIMIZER, 512, 1))


def size(tree):
    return 1 + sum(size(child) for child in tree[1])


STEP_COUNT = sum(size(tree) for tree, _, _ in STEP)


def call(tree, given):
    name, children = tree
    with prof.scope(name, "cpu_op", 1, **given):
        for child in children:
            call(child, given)


def steps(count, with_shapes):
    for _ in range(count):
        for tree, channels, side in STEP:
            call(
                tree,
                {
                    "_shapes": (
                        (F32, 5, channels, side, side),
                        (F32, channels, channels, 3, 3),
                        (F32, channels),
                    )
                }
                if with_shapes
                else {},
            )


def record(path, with_shapes, count=COUNT):
    """The operators in it: `count` and up to a step a thread more."""
    each = -(-count // (THREADS * STEP_COUNT))
    prof.profiler.clear()
    with prof.profile(activities=[prof.ProfilerActivity.CPU]) as p:
        threads = [threading.Thread(target=steps, args=(each, with_shapes)) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    p.trace.dump(path, "capture")
    prof.profiler.clear()
    return each * THREADS * STEP_COUNT
