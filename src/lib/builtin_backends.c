/* The back ends that come with prof. See ../device/registry.h. */
#include <stddef.h>

#include "../cuda/backend.h"
#include "../cuda/meters.h"
#include "../device/registry.h"
#include "../hip/backend.h"
#include "../hip/meters.h"
#include "../opencl/backend.h"

const prof_backend *const prof_i_built_in_backends[] = {
    &prof_i_opencl_backend, &prof_i_cuda_backend,   &prof_i_nvml_backend,
    &prof_i_hip_backend,    &prof_i_amdgpu_backend, NULL};
