/* What libprof_hip.so (src/preload/hip) asks: see prof_i_rocprofiler_tool_1() of <prof/device.h>. */
#include <prof/backend.h>
#include <prof/device.h>
#include <prof/profiler.h>
#include <stddef.h>

#include "../device/host.h"
#include "../hip/activity.h"

void *prof_i_rocprofiler_tool_1(void (*is_ready)(void)) {
  const uint32_t on_devices = 1u << PROF_BACKEND_KERNEL | 1u << PROF_BACKEND_COPY, calls = 1u << PROF_BACKEND_CALL;
  const int level = prof_level();
  if (level <= 0) return NULL;
  return prof_i_hip_activity_adopt(&prof_i_device_host, level > 1 ? on_devices | calls : on_devices, is_ready);
}
