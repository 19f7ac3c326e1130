// What src/cuda declares of CUDA's driver is what <cuda.h> does: types of functions, names of
// symbols, values, sizes. Compiled against each release of the header by cuda-headers.sh.
#include <cuda.h>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "../../../src/cuda/api.h"

// What came later than the header has nothing to be compared with there.
#if CUDA_VERSION < 12080
extern "C" int32_t cuStreamGetDevice(prof_i_cu_stream stream, prof_i_cu_device *device_out);
#endif
#if CUDA_VERSION < 12000
extern "C" int32_t cuCtxGetId(prof_i_cu_context context, unsigned long long *number_out);
#endif

// The same list, read with the vendor's own types. What it has as an enum or another word of the
// same size is a number to us.
namespace vendor {
template <typename T>
struct plain {
  using type = T;
};
template <>
struct plain<CUcontext> {
  using type = prof_i_cu_context;
};
template <>
struct plain<CUstream> {
  using type = prof_i_cu_stream;
};
template <>
struct plain<CUevent> {
  using type = prof_i_cu_event;
};
template <typename T>
struct plain<T *> {
  using type = typename plain<T>::type *;
};
template <>
struct plain<CUuuid *> {
  using type = prof_i_cu_uuid *;
};
template <>
struct plain<CUstreamCaptureStatus *> {
  using type = int32_t *;
};
template <>
struct plain<CUstreamCaptureMode *> {
  using type = int32_t *;
};
template <>
struct plain<CUdevice_attribute> {
  using type = int32_t;
};
template <>
struct plain<CUresult> {
  using type = int32_t;
};
template <>
struct plain<const char **> {
  using type = const char **;
};
template <typename F>
struct flat;
template <typename R, typename... A>
struct flat<R(A...)> {
  using type = typename plain<R>::type(typename plain<A>::type...);
};

#define CHECK_FUNCTION(need, name, symbol, arguments) \
  static_assert(std::is_same<int32_t arguments, flat<decltype(::name)>::type>::value, #name);
PROF_I_CU_FUNCTIONS(CHECK_FUNCTION)
}  // namespace vendor

#define CHECK_VALUE(name, value) static_assert((value) == CU_##name, #name);
PROF_I_CU_CONSTANTS(CHECK_VALUE)
#define CHECK_ERROR(name, value) static_assert((value) == CUDA_##name, #name);
PROF_I_CU_ERRORS(CHECK_ERROR)
PROF_I_CU_FATAL_ERRORS(CHECK_ERROR)
static_assert(sizeof(CUdevice) == 4 && sizeof(CUresult) == 4 && sizeof(CUdevice_attribute) == 4 &&
                  sizeof(CUstreamCaptureStatus) == 4 && sizeof(CUstreamCaptureMode) == 4 &&
                  sizeof(CUuuid) == 16,
              "sizes");

// The symbol is what the header's own macros make of the name. The exceptions have two versions
// with the same arguments, one of them in some releases only.
#define TEXT(...) TEXT_OF(__VA_ARGS__)
#define TEXT_OF(...) #__VA_ARGS__
struct row {
  const char *name, *expanded, *symbol;
};
#define ROW(need, name, symbol, arguments) {#name, TEXT(name), #symbol},

int main() {
  const row rows[] = {PROF_I_CU_FUNCTIONS(ROW)};
  for (const row &r : rows)
    if (std::strcmp(r.expanded, r.symbol) != 0 && std::strcmp(r.name, "cuEventElapsedTime") != 0 &&
        std::strcmp(r.name, "cuDeviceGetUuid") != 0) {
      std::printf("%s is %s there, and not %s\n", r.name, r.expanded, r.symbol);
      return 1;
    }
  return 0;
}
