/* Connects the parts of prof. Lower folders declare these lists without knowing their members:
   ../core/buffer/observer.h, ../core/session/control.h and ../device/registry.h. */
#include <stddef.h>

#include "../core/record/change_log.h"
#include "../core/record/compact.h"
#include "../core/record/cost_sample.h"
#include "../core/session/control.h"
#include "../cuda/internal.h"
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
