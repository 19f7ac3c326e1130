// What src/hip declares of ROCm SMI is what its header does. Compiled against Debian's by
// hip-headers.sh.
#include <rocm_smi/rocm_smi.h>
#include <cstdint>
#include <type_traits>

extern "C" {
#include "../../../src/hip/api.h"
}

template <typename F>
struct flat;
template <typename R, typename... A>
struct flat<R(A...)> {
  using type = int32_t(A...);
  static constexpr bool is_status = std::is_enum<R>::value && sizeof(R) == 4;
};
#define CHECK_FUNCTION(name, arguments)                                                   \
  static_assert(flat<decltype(::name)>::is_status &&                                      \
                    std::is_same<int32_t arguments, flat<decltype(::name)>::type>::value, \
                #name);
PROF_I_RSMI_FUNCTIONS(CHECK_FUNCTION)
static_assert(RSMI_STATUS_SUCCESS == 0, "success");

int main() { return 0; }
