/* Connects the parts of prof. Lower folders declare these lists without knowing their members:
   ../core/buffer/observer.h, ../core/session/control.h and ../device/registry.h. */
#include <prof/backend.h>
#include <prof/device.h>
#include <prof/profiler.h>
#include <stddef.h>

#include "../core/record/change_log.h"
#include "../core/record/compact.h"
#include "../core/record/cost_sample.h"
#include "../core/session/control.h"
#include "../cuda/internal.h"
#include "../device/internal.h"
#include "../device/registry.h"
#include "../hip/internal.h"
#include "../memory/internal.h"
#include "../opencl/internal.h"

const prof_i_observer *const prof_i_observers[] = {
    &prof_i_compact_observer, &prof_i_cost_sample_observer, &prof_i_change_observer,
    &prof_i_budget_observer,  &prof_i_pool_observer,        NULL};

const prof_i_memory_hooks *const prof_i_the_memory_hooks = &prof_i_pool_hooks;

const prof_backend *const prof_i_built_in_backends[] = {
    &prof_i_opencl_backend, &prof_i_cuda_backend,   &prof_i_nvml_backend,
    &prof_i_hip_backend,    &prof_i_amdgpu_backend, NULL};

/* Called by libprof_cuda.so and libprof_hip.so (inject), which the vendors' runtimes load into a
   program. See the end of <prof/device.h>. */

void prof_i_prefer_devices_1(uint32_t wanted) { prof_i_control_prefer_devices(wanted); }

void prof_i_cuda_begins_1(void) {
  prof_i_activity_begin_preinit(&prof_i_cuda_backend, prof_i_cuda_activity_begin_preinit);
}

void *prof_i_rocprofiler_tool_1(void (*is_ready)(void)) {
  const uint32_t on_devices = 1u << PROF_BACKEND_KERNEL | 1u << PROF_BACKEND_COPY,
                 calls = 1u << PROF_BACKEND_CALL;
  const int level = prof_level();
  if (level <= 0) return NULL;
  return prof_i_hip_activity_get_tool(&prof_i_device_host,
                                      level > 1 ? on_devices | calls : on_devices, is_ready);
}

int prof_i_rocprofiler_tool_settle_1(int is_waiting) {
  return prof_i_hip_activity_end_preinit(is_waiting && prof_level() > 0);
}
