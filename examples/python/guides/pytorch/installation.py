# Guide: PyTorch Profiler for AMD GPUs
# Section: Manual Installation

from prof.torch import ProfilerActivity, profile, record_function  # noqa: F401

print("PyTorch Profiler is available")
