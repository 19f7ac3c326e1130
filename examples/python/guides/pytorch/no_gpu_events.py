# Guide: PyTorch Profiler for AMD GPUs
# Section: Common Issues, 1. No CUDA Events

import torch

print(torch.cuda.is_available())
print(torch.cuda.device_count())
