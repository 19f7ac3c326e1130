#!/usr/bin/env bash
# NVIDIA's own Python binding reads the emulated NVML: its functions and structures are NVML's, and
# the values those that prof's tests expect.
set -uo pipefail
build=$(realpath "${PROF_TEST_BUILD_DIR:-build/dev}")
root=$(cd "$(dirname "$0")/../.." && pwd)
python=$root/.venv/bin/python
"$python" -c "import pynvml" 2>/dev/null ||
  { echo "skip: nvidia-ml-py is missing: type tools/setup.sh tests"; exit 77; }
nm -D "$build/tests/device/vendors/libnvidia-ml.so.1" | grep -E '__(asan|tsan)_init' >/dev/null &&
  { echo "skip: the sanitizer must be in the program, which is not ours"; exit 77; }
LD_LIBRARY_PATH=$build/tests/device/vendors "$python" - <<'END'
from pynvml import *

nvmlInit()
assert nvmlSystemGetDriverVersion() == "580.00", nvmlSystemGetDriverVersion()
assert nvmlDeviceGetCount() == 3
first, second = (nvmlDeviceGetHandleByIndex(i) for i in range(2))
assert nvmlDeviceGetName(first) == "Emulated NVML 0"
assert nvmlDeviceGetUUID(second) == "GPU-10101010-1010-1010-1010-101010101010"
assert nvmlDeviceGetPowerUsage(second) == 250000
before = nvmlDeviceGetTotalEnergyConsumption(second)
assert nvmlDeviceGetTotalEnergyConsumption(second) >= before > 0
newer, older = nvmlDeviceGetMemoryInfo(second, nvmlMemory_v2), nvmlDeviceGetMemoryInfo(second)
assert (newer.total, newer.used, newer.reserved) == (80 << 30, 20 << 30, 512 << 20), newer
assert older.used == newer.used + newer.reserved
assert older.total == newer.total == older.free + older.used
busy = nvmlDeviceGetUtilizationRates(first)
assert (busy.gpu, busy.memory) == (40, 20)
assert nvmlDeviceGetClockInfo(first, NVML_CLOCK_SM) == 1980
assert nvmlDeviceGetClockInfo(first, NVML_CLOCK_MEM) == 2619
assert nvmlDeviceGetTemperature(second, NVML_TEMPERATURE_GPU) == 51
assert nvmlDeviceGetCurrentClocksThrottleReasons(second) == nvmlClocksThrottleReasonSwPowerCap
try:
    nvmlDeviceGetHandleByIndex(3)
except NVMLError_InvalidArgument:
    pass
else:
    raise AssertionError("there is a device 3")
print("ok: nvidia-ml-py reads the emulated NVML")
END
