# Guide: RAF, Profile Your Model
# Section: Profile Op Latency

import setup_model  # noqa: F401 (it finds operators.py)

# isort: split
import operators

import prof as raf
from prof.op_profiler import GetCacheSize, Op, Profile, ResetCache

# RAF's expression is of its IR. A callable with its inputs takes the place.
data = operators.randn(1, 3, 8, 8)
weight = operators.randn(3 * 9, 4)
expr = Op(operators.conv2d, data, weight)

device = raf.Device("cpu")

# Results are kept by expression, device and numbers of runs.
ResetCache(device)

res = Profile(expr, device)
lat, ws_size = res["latency"], res["workspace_size"]
print("Latency:", lat[0].value)  # one sample, in us
print("Workspace size:", ws_size.value)  # bytes
print("Cached:", GetCacheSize(device))
