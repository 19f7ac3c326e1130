// What src/hip declares of AMD's runtime is what its header does: types of functions, values,
// sizes. So is what tests/gpu's HIP program and shim declare besides. Compiled against Debian's by
// hip-headers.sh.
#define __HIP_PLATFORM_AMD__ 1
#define __HIP_DISABLE_CPP_FUNCTIONS__ 1  // no second hipMalloc()
#include <hip/hip_runtime_api.h>
#include <hip/hip_version.h>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "../../../src/hip/api.h"
#include "../../gpu/hip.h"
#include "alike.h"

// What came later than the header has nothing to be compared with there.
#if HIP_VERSION_MAJOR < 6
extern "C" int32_t hipStreamGetDevice(prof_i_hip_stream stream, int32_t *device_out);
#endif

// The same list, read with the vendor's own types. What it has as an enum is a number to us.
namespace vendor {
template <typename T>
struct plain {
  using type = typename std::conditional<std::is_enum<T>::value, int32_t, T>::type;
};
template <>
struct plain<hipStream_t> {
  using type = prof_i_hip_stream;
};
template <>
struct plain<hipEvent_t> {
  using type = prof_i_hip_event;
};
template <>
struct plain<hipEvent_t *> {
  using type = prof_i_hip_event *;
};
template <>
struct plain<hipUUID *> {
  using type = prof_i_hip_uuid *;
};
template <>
struct plain<hipStreamCaptureStatus *> {
  using type = int32_t *;
};
template <>
struct plain<hipStreamCaptureMode *> {
  using type = int32_t *;
};
template <typename F>
struct flat;
template <typename R, typename... A>
struct flat<R(A...)> {
  using type = typename plain<R>::type(typename plain<A>::type...);
};

#define CHECK_FUNCTION(need, name, arguments) \
  static_assert(std::is_same<int32_t arguments, flat<decltype(::name)>::type>::value, #name);
PROF_I_HIP_FUNCTIONS(CHECK_FUNCTION)
#define CHECK_TEXT(name, arguments) \
  static_assert(std::is_same<const char * arguments, flat<decltype(::name)>::type>::value, #name);
PROF_I_HIP_TEXTS(CHECK_TEXT)
}  // namespace vendor

#define CHECK_PROGRAM(name, arguments) \
  static_assert(compared<int32_t arguments, decltype(::name)>::value, #name);
HIP_PROGRAM_FUNCTIONS(CHECK_PROGRAM)

#define CHECK_VALUE(name, value) static_assert((value) == hip##name, #name);
PROF_I_HIP_CONSTANTS(CHECK_VALUE)
PROF_I_HIP_FATAL_ERRORS(CHECK_VALUE)
static_assert(sizeof(hipError_t) == 4 && sizeof(hipDeviceAttribute_t) == 4 &&
                  sizeof(hipStreamCaptureStatus) == 4 && sizeof(hipStreamCaptureMode) == 4 &&
                  sizeof(hipUUID) == 16 && sizeof(hipDevice_t) == 4,
              "sizes");

int main() { return 0; }
