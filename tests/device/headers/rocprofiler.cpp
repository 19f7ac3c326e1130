// What src/hip declares of rocprofiler-sdk is what its headers do: types of functions, values, and
// where the members of records stand. Compiled by hip-headers.sh against those that triton's wheel
// carries, which lack a part: with -DROCPROFILER_WHOLE against a whole release, if one is
// installed.
#define __HIP_PLATFORM_AMD__ 1
#include <rocprofiler-sdk/agent.h>
#include <rocprofiler-sdk/buffer.h>
#include <rocprofiler-sdk/buffer_tracing.h>
#include <rocprofiler-sdk/callback_tracing.h>
#include <rocprofiler-sdk/fwd.h>
#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/version.h>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "../../../src/hip/tracer_api.h"

#pragma GCC diagnostic ignored "-Wignored-attributes"  // nonnull, which is no part of a type

// A handle is a struct of one number, passed as that is; an enum is a number.
static_assert(sizeof(prof_i_rocp_id) == sizeof(rocprofiler_context_id_t) &&
                  sizeof(prof_i_rocp_id) == sizeof(rocprofiler_buffer_id_t) &&
                  sizeof(prof_i_rocp_id) == sizeof(rocprofiler_agent_id_t) &&
                  sizeof(prof_i_rocp_id) == sizeof(rocprofiler_queue_id_t),
              "handles");
static_assert(std::is_trivially_copyable<rocprofiler_context_id_t>::value &&
                  sizeof(rocprofiler_status_t) == 4 &&
                  sizeof(rocprofiler_buffer_tracing_kind_t) == 4 &&
                  sizeof(rocprofiler_tracing_operation_t) == 4,
              "sizes");

// Arguments one by one: as large, and a pointer where a pointer is.
template <typename T>
struct size_of {
  static constexpr size_t value = sizeof(T);
};
template <>
struct size_of<void> {
  static constexpr size_t value = 0;
};
template <typename T, typename U>
constexpr bool is_alike =
    size_of<T>::value == size_of<U>::value &&std::is_pointer<T>::value == std::is_pointer<U>::value;
template <typename F, typename G>
struct same_shape;
template <typename R, typename... A, typename S, typename... B>
struct same_shape<R(A...), S(B...)> {
  static constexpr bool value = is_alike<R, S> && (is_alike<A, B> && ... && true);
};
template <typename F, typename G>
constexpr bool is_same_shape() {
  return same_shape<F, G>::value;
}
template <typename F>
using bare = typename std::remove_pointer<F>::type;
#define SAME(name, arguments) \
  static_assert(is_same_shape<decltype(::name), int32_t arguments>(), #name)
SAME(rocprofiler_is_initialized, (int *status_out));
SAME(rocprofiler_force_configure, (prof_i_rocp_configure configure));
SAME(rocprofiler_create_buffer,
     (prof_i_rocp_id context, size_t bytes, size_t watermark, int32_t policy,
      prof_i_rocp_records records, void *user, prof_i_rocp_id *buffer_out));
SAME(rocprofiler_flush_buffer, (prof_i_rocp_id buffer));
SAME(rocprofiler_configure_buffer_tracing_service,
     (prof_i_rocp_id context, int32_t kind, const int32_t *operations, size_t count,
      prof_i_rocp_id buffer));
SAME(rocprofiler_configure_callback_tracing_service,
     (prof_i_rocp_id context, int32_t kind, const int32_t *operations, size_t count, void *callback,
      void *user));
SAME(rocprofiler_query_available_agents,
     (int32_t version, prof_i_rocp_agents each, size_t agent_bytes, void *user));
static_assert(is_same_shape<bare<rocprofiler_buffer_tracing_cb_t>, bare<prof_i_rocp_records>>(),
              "records");
static_assert(
    is_same_shape<bare<rocprofiler_query_available_agents_cb_t>, bare<prof_i_rocp_agents>>(),
    "agents");
static_assert(is_same_shape<bare<rocprofiler_configure_func_t>, bare<prof_i_rocp_configure>>(),
              "configure");

#define CHECK_VALUE(name, value) static_assert((value) == ROCPROFILER_##name, #name);
PROF_I_ROCP_CONSTANTS(CHECK_VALUE)

#define ALIKE(ours, theirs, member, its)                                                       \
  static_assert(                                                                               \
      offsetof(prof_i_rocp_##ours, member) == offsetof(theirs, its) &&                         \
          sizeof(((prof_i_rocp_##ours *)nullptr)->member) == sizeof(((theirs *)nullptr)->its), \
      #ours "." #member)
ALIKE(tool, rocprofiler_tool_configure_result_t, size, size);
ALIKE(tool, rocprofiler_tool_configure_result_t, initialize, initialize);
ALIKE(tool, rocprofiler_tool_configure_result_t, finalize, finalize);
ALIKE(tool, rocprofiler_tool_configure_result_t, user, tool_data);
static_assert(sizeof(prof_i_rocp_tool) == sizeof(rocprofiler_tool_configure_result_t), "tool");
ALIKE(header, rocprofiler_record_header_t, category, category);
ALIKE(header, rocprofiler_record_header_t, kind, kind);
ALIKE(header, rocprofiler_record_header_t, record, payload);
typedef rocprofiler_buffer_tracing_kernel_dispatch_record_t dispatch;
ALIKE(dispatch, dispatch, record.size, size);
ALIKE(dispatch, dispatch, record.kind, kind);
ALIKE(dispatch, dispatch, record.operation, operation);
ALIKE(dispatch, dispatch, record.correlation, correlation_id.internal);
ALIKE(dispatch, dispatch, record.external, correlation_id.external);
ALIKE(dispatch, dispatch, thread, thread_id);
ALIKE(dispatch, dispatch, start, start_timestamp);
ALIKE(dispatch, dispatch, end, end_timestamp);
ALIKE(dispatch, dispatch, info_size, dispatch_info.size);
ALIKE(dispatch, dispatch, agent, dispatch_info.agent_id);
ALIKE(dispatch, dispatch, queue, dispatch_info.queue_id);
ALIKE(dispatch, dispatch, kernel, dispatch_info.kernel_id);
ALIKE(dispatch, dispatch, dispatch, dispatch_info.dispatch_id);
ALIKE(dispatch, dispatch, private_bytes, dispatch_info.private_segment_size);
ALIKE(dispatch, dispatch, group_bytes, dispatch_info.group_segment_size);
ALIKE(dispatch, dispatch, block, dispatch_info.workgroup_size);
ALIKE(dispatch, dispatch, items, dispatch_info.grid_size);
typedef rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t symbol;
ALIKE(symbol, symbol, size, size);
ALIKE(symbol, symbol, kernel, kernel_id);
ALIKE(symbol, symbol, object, code_object_id);
ALIKE(symbol, symbol, name, kernel_name);
ALIKE(agent, rocprofiler_agent_t, size, size);
ALIKE(agent, rocprofiler_agent_t, id, id);
ALIKE(agent, rocprofiler_agent_t, type, type);
ALIKE(agent, rocprofiler_agent_t, location, location_id);
ALIKE(agent, rocprofiler_agent_t, domain, domain);

#if ROCPROFILER_SDK_VERSION_MAJOR >= 1
static_assert(is_same_shape<bare<rocprofiler_callback_tracing_cb_t>,
                            void(prof_i_rocp_callback_1, void *, void *)>(),
              "a callback's arguments");
ALIKE(callback_1, rocprofiler_callback_tracing_record_t, context, context_id);
ALIKE(callback_1, rocprofiler_callback_tracing_record_t, thread, thread_id);
ALIKE(callback_1, rocprofiler_callback_tracing_record_t, correlation, correlation_id);
ALIKE(callback_1, rocprofiler_callback_tracing_record_t, kind, kind);
ALIKE(callback_1, rocprofiler_callback_tracing_record_t, operation, operation);
ALIKE(callback_1, rocprofiler_callback_tracing_record_t, phase, phase);
ALIKE(callback_1, rocprofiler_callback_tracing_record_t, payload, payload);
static_assert(sizeof(prof_i_rocp_callback_1) == sizeof(rocprofiler_callback_tracing_record_t),
              "callback");
#else
static_assert(is_same_shape<bare<rocprofiler_callback_tracing_cb_t>,
                            void(prof_i_rocp_callback_0, void *, void *)>(),
              "a callback's arguments");
ALIKE(callback_0, rocprofiler_callback_tracing_record_t, context, context_id);
ALIKE(callback_0, rocprofiler_callback_tracing_record_t, thread, thread_id);
ALIKE(callback_0, rocprofiler_callback_tracing_record_t, correlation, correlation_id);
ALIKE(callback_0, rocprofiler_callback_tracing_record_t, kind, kind);
ALIKE(callback_0, rocprofiler_callback_tracing_record_t, operation, operation);
ALIKE(callback_0, rocprofiler_callback_tracing_record_t, phase, phase);
ALIKE(callback_0, rocprofiler_callback_tracing_record_t, payload, payload);
static_assert(sizeof(prof_i_rocp_callback_0) == sizeof(rocprofiler_callback_tracing_record_t),
              "callback");
#endif

#ifdef ROCPROFILER_WHOLE
#include <rocprofiler-sdk/context.h>
#include <rocprofiler-sdk/intercept_table.h>
#include <rocprofiler-sdk/rocprofiler.h>
SAME(rocprofiler_get_version, (uint32_t * major_out, uint32_t *minor_out, uint32_t *patch_out));
SAME(rocprofiler_get_timestamp, (uint64_t * ns_out));
SAME(rocprofiler_at_intercept_table_registration,
     (prof_i_rocp_table begins, int32_t which, void *user));
static_assert(is_same_shape<bare<rocprofiler_intercept_library_cb_t>, bare<prof_i_rocp_table>>(),
              "table");
SAME(rocprofiler_create_context, (prof_i_rocp_id * context_out));
SAME(rocprofiler_start_context, (prof_i_rocp_id context));
SAME(rocprofiler_stop_context, (prof_i_rocp_id context));
SAME(rocprofiler_iterate_buffer_tracing_kind_operations,
     (int32_t kind, prof_i_rocp_operation each, void *user));
SAME(rocprofiler_query_buffer_tracing_kind_operation_name,
     (int32_t kind, int32_t operation, const char **name_out, uint64_t *bytes_out));
static_assert(is_same_shape<bare<rocprofiler_buffer_tracing_kind_operation_cb_t>,
                            bare<prof_i_rocp_operation>>(),
              "operation");
typedef rocprofiler_buffer_tracing_memory_copy_record_t copied;
ALIKE(copy, copied, record.size, size);
ALIKE(copy, copied, record.correlation, correlation_id.internal);
ALIKE(copy, copied, thread, thread_id);
ALIKE(copy, copied, start, start_timestamp);
ALIKE(copy, copied, end, end_timestamp);
ALIKE(copy, copied, to, dst_agent_id);
ALIKE(copy, copied, from, src_agent_id);
ALIKE(copy, copied, bytes, bytes);
typedef rocprofiler_buffer_tracing_hip_api_record_t call;
#if ROCPROFILER_SDK_VERSION_MAJOR >= 1
ALIKE(call_1, call, record.size, size);
ALIKE(call_1, call, record.operation, operation);
ALIKE(call_1, call, record.correlation, correlation_id.internal);
ALIKE(call_1, call, ancestor, correlation_id.ancestor);
ALIKE(call_1, call, start, start_timestamp);
ALIKE(call_1, call, end, end_timestamp);
ALIKE(call_1, call, thread, thread_id);
#else
ALIKE(call_0, call, record.size, size);
ALIKE(call_0, call, record.operation, operation);
ALIKE(call_0, call, record.correlation, correlation_id.internal);
ALIKE(call_0, call, start, start_timestamp);
ALIKE(call_0, call, end, end_timestamp);
ALIKE(call_0, call, thread, thread_id);
#endif
#endif

int main() { return 0; }
