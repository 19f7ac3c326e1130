// What src/opencl declares of OpenCL is what <CL/cl.h> does: types of functions, values, sizes.
// Compiles to nothing where the header is not there, and says so.
#include <cstdio>
#include <type_traits>

#if __has_include(<CL/cl.h>) && __has_include(<CL/cl_ext.h>) && __has_include(<CL/cl_layer.h>)

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_layer.h>
#include <cstddef>

#include "../../inject/opencl/functions.h"
#include "../../src/opencl/api.h"

// The same list, read with the vendor's own handles.
namespace vendor {
using prof_i_cl_platform = cl_platform_id;
using prof_i_cl_device = cl_device_id;
using prof_i_cl_queue = cl_command_queue;
using prof_i_cl_event = cl_event;
#define CHECK_FUNCTION(need, name, arguments) \
  static_assert(std::is_same<cl_int arguments, decltype(::name)>::value, #name);
PROF_I_CL_FUNCTIONS(CHECK_FUNCTION)
}  // namespace vendor

#define CHECK_VALUE(name, value) static_assert((value) == CL_##name, #name);
PROF_I_CL_CONSTANTS(CHECK_VALUE)
PROF_I_CL_ERRORS(CHECK_VALUE)
PROF_I_CL_LAYER_CONSTANTS(CHECK_VALUE)

// The table that a loader hands to layers.
#define CHECK_PLACE(place, name) \
  static_assert(offsetof(cl_icd_dispatch, name) == (place) * sizeof(void *), #name);
PROF_I_CL_CALLED(CHECK_PLACE)
PROF_I_CL_HOOKED(CHECK_PLACE)
static_assert(PROF_I_CL_DEVICE_TYPE_ALL == CL_DEVICE_TYPE_ALL, "CL_DEVICE_TYPE_ALL");

static_assert(sizeof(prof_i_cl_pci) == sizeof(cl_device_pci_bus_info_khr),
              "the size of CL_DEVICE_PCI_BUS_INFO_KHR");
static_assert(offsetof(prof_i_cl_pci, bus) == offsetof(cl_device_pci_bus_info_khr, pci_bus),
              "pci_bus");
static_assert(offsetof(prof_i_cl_pci, device) == offsetof(cl_device_pci_bus_info_khr, pci_device),
              "pci_device");
static_assert(offsetof(prof_i_cl_pci, function) ==
                  offsetof(cl_device_pci_bus_info_khr, pci_function),
              "pci_function");

// What is read with clGet...Info().
static_assert(std::is_same<cl_command_queue_properties, uint64_t>::value &&
                  std::is_same<cl_device_type, uint64_t>::value,
              "bit fields");
static_assert(sizeof(cl_ulong) == 8 && sizeof(cl_uint) == 4 && sizeof(cl_int) == 4, "numbers");

int main() {
  std::puts("all of src/opencl/api.h and inject/opencl/functions.h is as <CL/cl.h> has it");
  return 0;
}

#else

int main() {
  std::puts("skip: <CL/cl.h> is missing: apt-get install opencl-headers");
  return 77;
}

#endif
