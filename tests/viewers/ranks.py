"""usage: ranks.py FOLDER RANK

One of two ranks that train, as PyTorch's would with NCCL, on the emulated CUDA driver of
tests/device/vendors, whose CUPTI PROF_BACKEND_CUPTI names. tensorboard_trace_handler() writes its
trace into FOLDER. No device is behind it: a kernel is a thread that sleeps."""

import ctypes
import os
import sys

STEPS, LAYERS = 4, 3
KERNEL_NS, REDUCE_NS, STREAMS = 400_000, 250_000, 2
GEMM, REDUCE = (
    b"ampere_sgemm_128x64_tn",
    b"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
)
FLOAT32 = 0x0220


class Device:
    def __init__(self, library):
        self.cuda = cuda = ctypes.CDLL(library)
        for name in ("emulated_cuda_kernel", "emulated_cuda_state"):
            getattr(cuda, name).restype = ctypes.c_void_p
        context = ctypes.c_void_p()
        assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
        self.streams = [ctypes.c_void_p() for _ in range(STREAMS)]
        for stream in self.streams:
            assert cuda.cuStreamCreate(ctypes.byref(stream), 0) == 0

    def kernel(self, name, ns):
        return ctypes.c_void_p(self.cuda.emulated_cuda_kernel(name, ctypes.c_uint64(ns)))

    def launch(self, kernel, stream):
        assert self.cuda.emulated_cuda_runtime_launch(kernel, self.streams[stream]) == 0

    def copy(self, room, count):
        assert (
            self.cuda.cuMemcpyHtoDAsync_v2(
                ctypes.c_uint64(1), room, ctypes.c_size_t(count), self.streams[0]
            )
            == 0
        )

    def wait(self):
        for stream in self.streams:
            assert self.cuda.emulated_cuda_runtime_wait(stream) == 0


def step(device, gemm, reduce, room):
    with prof.scope("aten::copy_", "cpu_op", 1, _shapes=[(FLOAT32, 64, 32)]):
        device.copy(room, 8192)
    with prof.record_function("forward"):
        for _ in range(LAYERS):
            with (
                prof.scope(
                    "aten::linear", "cpu_op", 1, _shapes=[(FLOAT32, 64, 32), (FLOAT32, 16, 32)]
                ),
                prof.scope(
                    "aten::addmm", "cpu_op", 1, _shapes=[(FLOAT32, 64, 32), (FLOAT32, 32, 16)]
                ),
            ):
                device.launch(gemm, 0)
    with prof.scope("nccl:all_reduce", "cpu_op", 1, _shapes=[(FLOAT32, 16, 32)]):
        device.launch(reduce, 1)
    device.wait()


def main():
    folder, rank = sys.argv[1], int(sys.argv[2])
    vendors = os.path.dirname(os.environ["PROF_BACKEND_CUPTI"])
    device = Device(os.path.join(vendors, "libcuda.so.1"))
    # rank 0 waits for the other one in truth
    gemm, reduce, room = (
        device.kernel(GEMM, KERNEL_NS),
        device.kernel(REDUCE, REDUCE_NS * (rank + 1)),
        ctypes.create_string_buffer(8192),
    )
    prof.set_rank(rank, 2)
    write = prof.tensorboard_trace_handler(folder, worker_name=f"node_{rank}")
    with prof.profile(
        activities=list(prof.ProfilerActivity),
        level=2,
        record_shapes=True,
        schedule=prof.schedule(wait=0, warmup=1, active=STEPS, repeat=1),
        on_trace_ready=write,
    ) as p:
        for _ in range(STEPS + 1):
            step(device, gemm, reduce, room)
            p.step()


if __name__ == "__main__":  # the test wants the numbers alone
    import prof

    main()
