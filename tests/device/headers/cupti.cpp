// What src/cuda declares of CUPTI is what its headers do: types of functions, values, and where the
// members of records stand, which is the same in all releases. Compiled against each release by
// cuda-headers.sh.
#include <cuda.h>
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_result.h>
#include <cupti_version.h>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "../../../src/cuda/tracer_api.h"

// What came later than the header has nothing to be compared with there.
#if CUPTI_API_VERSION < 23  // 12.5
extern "C" int32_t cuptiActivityEnableDriverApi(uint32_t number, uint8_t enable);
extern "C" int32_t cuptiActivityEnableRuntimeApi(uint32_t number, uint8_t enable);
#endif
#if CUPTI_API_VERSION < 130000
extern "C" int32_t cuptiSubscribe_v2(prof_i_cupti_subscriber *subscriber_out,
                                     prof_i_cupti_callback callback, void *user,
                                     prof_i_cupti_subscriber_params *params);
#else
static_assert(sizeof(prof_i_cupti_subscriber_params) == CUpti_SubscriberParams_STRUCT_SIZE ||
                  CUPTI_API_VERSION >= 130200,
              "later ones have more");
static_assert(sizeof(prof_i_cupti_subscriber_params) <= sizeof(CUpti_SubscriberParams),
              "later ones have more");
static_assert(offsetof(prof_i_cupti_subscriber_params, name) ==
                  offsetof(CUpti_SubscriberParams, subscriberName),
              "name");
static_assert(offsetof(prof_i_cupti_subscriber_params, holder) ==
                  offsetof(CUpti_SubscriberParams, oldSubscriberName),
              "holder");
static_assert(offsetof(prof_i_cupti_subscriber_params, holder_room) ==
                  offsetof(CUpti_SubscriberParams, oldSubscriberSize),
              "holder_room");
#endif

// The same list, read with the vendor's own types. What it has as an enum is a number to us.
namespace vendor {
template <typename T>
struct plain {
  using type = typename std::conditional<std::is_enum<T>::value, int32_t, T>::type;
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
struct plain<CUpti_SubscriberHandle> {
  using type = prof_i_cupti_subscriber;
};
template <>
struct plain<CUpti_SubscriberHandle *> {
  using type = prof_i_cupti_subscriber *;
};
template <>
struct plain<CUpti_Activity **> {
  using type = void **;
};
template <>
struct plain<CUpti_CallbackFunc> {
  using type = prof_i_cupti_callback;
};
template <>
struct plain<CUpti_BuffersCallbackRequestFunc> {
  using type = prof_i_cupti_requested;
};
template <>
struct plain<CUpti_BuffersCallbackCompleteFunc> {
  using type = prof_i_cupti_completed;
};
#if CUPTI_API_VERSION >= 130000
template <>
struct plain<CUpti_SubscriberParams *> {
  using type = prof_i_cupti_subscriber_params *;
};
#endif
template <typename F>
struct flat;
template <typename R, typename... A>
struct flat<R(A...)> {
  using type = typename plain<R>::type(typename plain<A>::type...);
};

#define CHECK_FUNCTION(need, name, arguments) \
  static_assert(std::is_same<int32_t arguments, flat<decltype(::name)>::type>::value, #name);
PROF_I_CUPTI_FUNCTIONS(CHECK_FUNCTION)
}  // namespace vendor

// A callback's own arguments: the typedefs above stand for them.
template <typename F>
struct shape;
template <typename... A>
struct shape<void (*)(A...)> {
  static constexpr size_t bytes[] = {sizeof(A)...};
  static constexpr size_t count = sizeof...(A);
};
template <typename F, typename G>
constexpr bool is_same_shape() {
  if (shape<F>::count != shape<G>::count) return false;
  for (size_t i = 0; i < shape<F>::count; i++)
    if (shape<F>::bytes[i] != shape<G>::bytes[i]) return false;
  return true;
}
static_assert(is_same_shape<CUpti_CallbackFunc, prof_i_cupti_callback>(), "callback");
static_assert(is_same_shape<CUpti_BuffersCallbackRequestFunc, prof_i_cupti_requested>(),
              "requested");
static_assert(is_same_shape<CUpti_BuffersCallbackCompleteFunc, prof_i_cupti_completed>(),
              "completed");

#define CHECK_VALUE(name, value) static_assert((uint32_t)(value) == (uint32_t)CUPTI_##name, #name);
PROF_I_CUPTI_CONSTANTS(CHECK_VALUE)
#if CUPTI_API_VERSION >= 27
CHECK_VALUE(ERROR_CMP_DEVICE_NOT_SUPPORTED, PROF_I_CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED)
CHECK_VALUE(ERROR_MIG_DEVICE_NOT_SUPPORTED, PROF_I_CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED)
CHECK_VALUE(ERROR_SLI_DEVICE_NOT_SUPPORTED, PROF_I_CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED)
CHECK_VALUE(ERROR_WSL_DEVICE_NOT_SUPPORTED, PROF_I_CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED)
#endif

#define OFFSET(type, member) __builtin_offsetof(type, member)
#define SIZE(type, member) sizeof(((type *)nullptr)->member)
#define IS_ALIKE(ours, theirs, member, its)                      \
  (OFFSET(prof_i_cupti_##ours, member) == OFFSET(theirs, its) && \
   SIZE(prof_i_cupti_##ours, member) % SIZE(theirs, its) == 0)
#define CHECK_MEMBER(ours, theirs, member, its) \
  static_assert(IS_ALIKE(ours, CUpti_Activity##theirs, member, its), #ours "." #member);
PROF_I_CUPTI_MEMBERS(CHECK_MEMBER)

// The newest records of each release begin as those.
#if CUPTI_API_VERSION >= 130500
#define NEWEST(ours) NEWEST_##ours
#define NEWEST_Kernel5 CUpti_ActivityKernel13
#define NEWEST_Memcpy4 CUpti_ActivityMemcpy7
#define NEWEST_Memset3 CUpti_ActivityMemset5
#elif CUPTI_API_VERSION >= 130000
#define NEWEST_Kernel5 CUpti_ActivityKernel10
#define NEWEST_Memcpy4 CUpti_ActivityMemcpy6
#define NEWEST_Memset3 CUpti_ActivityMemset4
#elif CUPTI_API_VERSION >= 27  // 12.9
#define NEWEST_Kernel5 CUpti_ActivityKernel9
#define NEWEST_Memcpy4 CUpti_ActivityMemcpy6
#define NEWEST_Memset3 CUpti_ActivityMemset4
#else
#define NEWEST_Kernel5 CUpti_ActivityKernel8
#define NEWEST_Memcpy4 CUpti_ActivityMemcpy5
#define NEWEST_Memset3 CUpti_ActivityMemset4
#endif
#define NEWEST_MemcpyPtoP3 CUpti_ActivityMemcpyPtoP4
#define NEWEST_API CUpti_ActivityAPI
#if CUPTI_API_VERSION >= 22  // 12.4
#define NEWEST_GraphTrace CUpti_ActivityGraphTrace2
#define NEWEST_Overhead CUpti_ActivityOverhead3
#else
#define NEWEST_GraphTrace CUpti_ActivityGraphTrace
#define NEWEST_Overhead CUpti_ActivityOverhead
#endif
#if CUPTI_API_VERSION >= 27
#define NEWEST_Synchronization CUpti_ActivitySynchronization2
#define NEWEST_Memory2 CUpti_ActivityMemory4
#else
#define NEWEST_Memory2 CUpti_ActivityMemory3
#define NEWEST_Synchronization CUpti_ActivitySynchronization
#endif
#define CHECK_NEWEST(ours, theirs, member, its) \
  static_assert(IS_ALIKE(ours, NEWEST_##theirs, member, its), #ours "." #member " of the newest");
PROF_I_CUPTI_MEMBERS(CHECK_NEWEST)

int main() { return 0; }
