/* The back ends that come with prof. See ../device/registry.h. */
#include <stddef.h>

#include "../cuda/internal.h"
#include "../device/registry.h"
#include "../hip/internal.h"
#include "../opencl/internal.h"

const prof_backend *const prof_i_built_in_backends[] = {
    &prof_i_opencl_backend, &prof_i_cuda_backend,   &prof_i_nvml_backend,
    &prof_i_hip_backend,    &prof_i_amdgpu_backend, NULL};
