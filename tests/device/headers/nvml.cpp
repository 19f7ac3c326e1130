// What src/cuda declares of NVML is what <nvml.h> does: types of functions, values, sizes. Compiled
// against each release of the header by cuda-headers.sh.
#include <nvml.h>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "../../../src/cuda/api.h"

// The same list, read with the vendor's own types. What it has as an enum is a number to us.
namespace vendor {
template <typename T>
struct plain {
  using type = T;
};
template <>
struct plain<nvmlDevice_t> {
  using type = prof_i_nvml_device;
};
template <>
struct plain<nvmlMemory_t> {
  using type = prof_i_nvml_memory;
};
template <>
struct plain<nvmlMemory_v2_t> {
  using type = prof_i_nvml_memory_2;
};
template <>
struct plain<nvmlUtilization_t> {
  using type = prof_i_nvml_utilization;
};
template <>
struct plain<nvmlClockType_t> {
  using type = uint32_t;
};
template <>
struct plain<nvmlTemperatureSensors_t> {
  using type = uint32_t;
};
template <>
struct plain<nvmlReturn_t> {
  using type = int32_t;
};
template <typename T>
struct plain<T *> {
  using type = typename plain<T>::type *;
};
template <typename F>
struct flat;
template <typename R, typename... A>
struct flat<R(A...)> {
  using type = typename plain<R>::type(typename plain<A>::type...);
};

#define CHECK_FUNCTION(need, name, arguments) \
  static_assert(std::is_same<int32_t arguments, flat<decltype(::name)>::type>::value, #name);
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // what 13 calls deprecated is there
PROF_I_NVML_FUNCTIONS(CHECK_FUNCTION)
}  // namespace vendor

#define CHECK_VALUE(name) static_assert(int(PROF_I_##name) == int(::name), #name);
CHECK_VALUE(NVML_CLOCK_SM)
CHECK_VALUE(NVML_CLOCK_MEM)
CHECK_VALUE(NVML_TEMPERATURE_GPU)
CHECK_VALUE(NVML_ERROR_NOT_SUPPORTED)
CHECK_VALUE(NVML_ERROR_NO_PERMISSION)
CHECK_VALUE(NVML_ERROR_DRIVER_NOT_LOADED)
CHECK_VALUE(NVML_ERROR_LIB_RM_VERSION_MISMATCH)
static_assert(PROF_I_NVML_MEMORY_2 == nvmlMemory_v2, "the version of nvmlMemory_v2_t");
static_assert(sizeof(prof_i_nvml_memory_2) == sizeof(nvmlMemory_v2_t) &&
                  offsetof(prof_i_nvml_memory_2, used) == offsetof(nvmlMemory_v2_t, used),
              "nvmlMemory_v2_t");
static_assert(sizeof(prof_i_nvml_memory) == sizeof(nvmlMemory_t) &&
                  offsetof(prof_i_nvml_memory, used) == offsetof(nvmlMemory_t, used),
              "nvmlMemory_t");
static_assert(sizeof(prof_i_nvml_utilization) == sizeof(nvmlUtilization_t) &&
                  offsetof(prof_i_nvml_utilization, memory) == offsetof(nvmlUtilization_t, memory),
              "nvmlUtilization_t");

int main() { return 0; }
