/* Declarations of what prof uses of OpenCL, so that no vendor's header is needed to build.
   tests/device/test_opencl_api.cpp compares each line with <CL/cl.h>. Includes nothing else of
   prof. */
#ifndef PROF_OPENCL_API_H
#define PROF_OPENCL_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct prof_i_cl_platform_object *prof_i_cl_platform;
typedef struct prof_i_cl_device_object *prof_i_cl_device;
typedef struct prof_i_cl_queue_object *prof_i_cl_queue;
typedef struct prof_i_cl_event_object *prof_i_cl_event;

/* X(need, name, arguments): all return a cl_int. Of an OPTIONAL one the pointer may be NULL. */
#define PROF_I_CL_FUNCTIONS(X)                                                                   \
  X(NEEDED, clGetPlatformIDs,                                                                    \
    (uint32_t room, prof_i_cl_platform * platforms_out, uint32_t * count_out))                   \
  X(NEEDED, clGetDeviceIDs,                                                                      \
    (prof_i_cl_platform platform, uint64_t types, uint32_t room, prof_i_cl_device * devices_out, \
     uint32_t * count_out))                                                                      \
  X(NEEDED, clGetDeviceInfo,                                                                     \
    (prof_i_cl_device device, uint32_t what, size_t room, void *value_out, size_t *bytes_out))   \
  X(NEEDED, clGetCommandQueueInfo,                                                               \
    (prof_i_cl_queue queue, uint32_t what, size_t room, void *value_out, size_t *bytes_out))     \
  X(NEEDED, clGetEventInfo,                                                                      \
    (prof_i_cl_event event, uint32_t what, size_t room, void *value_out, size_t *bytes_out))     \
  X(NEEDED, clGetEventProfilingInfo,                                                             \
    (prof_i_cl_event event, uint32_t what, size_t room, void *value_out, size_t *bytes_out))     \
  X(NEEDED, clReleaseEvent, (prof_i_cl_event event))                                             \
  X(OPTIONAL, clRetainEvent, (prof_i_cl_event event))                                            \
  X(OPTIONAL, clEnqueueMarkerWithWaitList,                                                       \
    (prof_i_cl_queue queue, uint32_t count, const prof_i_cl_event *events,                       \
     prof_i_cl_event *event_out))                                                                \
  X(OPTIONAL, clEnqueueMarker, (prof_i_cl_queue queue, prof_i_cl_event * event_out))             \
  X(OPTIONAL, clGetDeviceAndHostTimer,                                                           \
    (prof_i_cl_device device, uint64_t * device_ns_out, uint64_t * host_ns_out))

/* The words of <CL/cl.h> without their CL_. */
#define PROF_I_CL_CONSTANTS(X)                 \
  X(COMPLETE, 0)                               \
  X(QUEUE_DEVICE, 0x1091)                      \
  X(QUEUE_PROPERTIES, 0x1093)                  \
  X(QUEUE_PROFILING_ENABLE, 2)                 \
  X(EVENT_COMMAND_EXECUTION_STATUS, 0x11D3)    \
  X(PROFILING_COMMAND_QUEUED, 0x1280)          \
  X(PROFILING_COMMAND_START, 0x1282)           \
  X(PROFILING_COMMAND_END, 0x1283)             \
  X(DEVICE_MAX_COMPUTE_UNITS, 0x1002)          \
  X(DEVICE_MAX_CLOCK_FREQUENCY, 0x100C)        \
  X(DEVICE_GLOBAL_MEM_SIZE, 0x101F)            \
  X(DEVICE_PROFILING_TIMER_RESOLUTION, 0x1025) \
  X(DEVICE_NAME, 0x102B)                       \
  X(DRIVER_VERSION, 0x102D)                    \
  X(DEVICE_VERSION, 0x102F)                    \
  X(DEVICE_EXTENSIONS, 0x1030)                 \
  X(DEVICE_PARENT_DEVICE, 0x1042)              \
  X(DEVICE_GLOBAL_FREE_MEMORY_AMD, 0x4039)     \
  X(DEVICE_UUID_KHR, 0x106A)                   \
  X(DEVICE_PCI_BUS_INFO_KHR, 0x410F)           \
  X(UUID_SIZE_KHR, 16)

enum {
#define PROF_I_CL_CONSTANT(name, value) PROF_I_CL_##name = (value),
  PROF_I_CL_CONSTANTS(PROF_I_CL_CONSTANT)
#undef PROF_I_CL_CONSTANT
};
#define PROF_I_CL_DEVICE_TYPE_ALL UINT64_C(0xFFFFFFFF)

/* Errors that have a name in texts. */
#define PROF_I_CL_ERRORS(X)           \
  X(DEVICE_NOT_FOUND, -1)             \
  X(DEVICE_NOT_AVAILABLE, -2)         \
  X(OUT_OF_RESOURCES, -5)             \
  X(OUT_OF_HOST_MEMORY, -6)           \
  X(PROFILING_INFO_NOT_AVAILABLE, -7) \
  X(INVALID_VALUE, -30)               \
  X(INVALID_DEVICE, -33)              \
  X(INVALID_COMMAND_QUEUE, -36)       \
  X(INVALID_EVENT, -58)               \
  X(INVALID_OPERATION, -59)           \
  X(PLATFORM_NOT_FOUND_KHR, -1001)

enum {
#define PROF_I_CL_ERROR(name, value) PROF_I_CL_##name = (value),
  PROF_I_CL_ERRORS(PROF_I_CL_ERROR)
#undef PROF_I_CL_ERROR
};

/* What DEVICE_PCI_BUS_INFO_KHR gives. */
typedef struct prof_i_cl_pci {
  uint32_t domain, bus, device, function;
} prof_i_cl_pci;

#endif
