/* Declarations of what prof uses of AMD's rocprofiler-sdk, so that no vendor's header is needed to
   build. One binary serves 0.4 (ROCm 6.2) and later: tests/device/headers/rocprofiler.cpp compares
   it with the real headers. Records begin with their size, and have only the members that all
   releases share. Includes nothing else of prof. */
#ifndef PROF_HIP_ROCPROFILER_H
#define PROF_HIP_ROCPROFILER_H

#include <stddef.h>
#include <stdint.h>

typedef struct prof_i_rocp_id { /* of a context, a buffer, an agent, a queue: passed by value */
  uint64_t handle;
} prof_i_rocp_id;

/* What stands first in a client's struct, its name or its size, is another thing in each release:
   it is left alone. */
/* 0: it goes on. finalize takes a client */
typedef int32_t (*prof_i_rocp_initialize)(void (*finalize)(void), void *user);
typedef struct prof_i_rocp_tool {
  size_t size;
  prof_i_rocp_initialize initialize;
  void (*finalize)(void *user);
  void *user;
} prof_i_rocp_tool;
typedef prof_i_rocp_tool *(*prof_i_rocp_configure)(uint32_t version, const char *runtime,
                                                   uint32_t priority, void *client);

typedef struct prof_i_rocp_header {
  uint32_t category, kind;
  void *record;
} prof_i_rocp_header;
/* dropped: since it was made */
typedef void (*prof_i_rocp_records)(prof_i_rocp_id context, prof_i_rocp_id buffer,
                                    prof_i_rocp_header **headers, size_t count, void *user,
                                    uint64_t dropped);
/* not 0: no more of them */
typedef int32_t (*prof_i_rocp_operation)(int32_t kind, int32_t operation, void *user);
/* a runtime begins */
typedef void (*prof_i_rocp_table)(int32_t type, uint64_t version, uint64_t instance, void **tables,
                                  uint64_t count, void *user);
typedef int32_t (*prof_i_rocp_agents)(int32_t version, const void **agents, size_t count,
                                      void *user);

/* A callback's argument, passed by value. Its correlation has grown, so the members behind it
   moved: there are two versions. */
typedef struct prof_i_rocp_callback_0 {
  uint64_t context, thread, correlation[2];
  int32_t kind, operation, phase;
  void *payload;
} prof_i_rocp_callback_0;
typedef struct prof_i_rocp_callback_1 { /* from 1.0 on */
  uint64_t context, thread, correlation[3];
  int32_t kind, operation, phase;
  void *payload;
} prof_i_rocp_callback_1;

/* X(need, name, arguments): all return a rocprofiler_status_t. The callback of code objects is one
   of the two above. */
#define PROF_I_ROCP_FUNCTIONS(X)                                                    \
  X(NEEDED, rocprofiler_get_version,                                                \
    (uint32_t * major_out, uint32_t * minor_out, uint32_t * patch_out))             \
  X(NEEDED, rocprofiler_get_timestamp, (uint64_t * ns_out))                         \
  X(NEEDED, rocprofiler_is_initialized, (int *status_out))                          \
  X(NEEDED, rocprofiler_force_configure, (prof_i_rocp_configure configure))         \
  X(NEEDED, rocprofiler_at_intercept_table_registration,                            \
    (prof_i_rocp_table begins, int32_t which, void *user))                          \
  X(NEEDED, rocprofiler_create_context, (prof_i_rocp_id * context_out))             \
  X(NEEDED, rocprofiler_start_context, (prof_i_rocp_id context))                    \
  X(NEEDED, rocprofiler_stop_context, (prof_i_rocp_id context))                     \
  X(NEEDED, rocprofiler_create_buffer,                                              \
    (prof_i_rocp_id context, size_t bytes, size_t watermark, int32_t policy,        \
     prof_i_rocp_records records, void *user, prof_i_rocp_id *buffer_out))          \
  X(NEEDED, rocprofiler_flush_buffer, (prof_i_rocp_id buffer))                      \
  X(NEEDED, rocprofiler_configure_buffer_tracing_service,                           \
    (prof_i_rocp_id context, int32_t kind, const int32_t *operations, size_t count, \
     prof_i_rocp_id buffer))                                                        \
  X(NEEDED, rocprofiler_configure_callback_tracing_service,                         \
    (prof_i_rocp_id context, int32_t kind, const int32_t *operations, size_t count, \
     void *callback, void *user))                                                   \
  X(NEEDED, rocprofiler_iterate_buffer_tracing_kind_operations,                     \
    (int32_t kind, prof_i_rocp_operation each, void *user))                         \
  X(NEEDED, rocprofiler_query_buffer_tracing_kind_operation_name,                   \
    (int32_t kind, int32_t operation, const char **name_out, uint64_t *bytes_out))  \
  X(NEEDED, rocprofiler_query_available_agents,                                     \
    (int32_t version, prof_i_rocp_agents each, size_t agent_bytes, void *user))

/* X(name, arguments): return text that stays, or NULL. The numbers of errors have moved. */
#define PROF_I_ROCP_TEXTS(X) X(rocprofiler_get_status_string, (int32_t status))

/* The header's words without their ROCPROFILER_. What has moved from one release to another is not
   here. */
#define PROF_I_ROCP_CONSTANTS(X)                  \
  X(STATUS_SUCCESS, 0)                            \
  X(BUFFER_CATEGORY_TRACING, 1)                   \
  X(BUFFER_POLICY_DISCARD, 1)                     \
  X(BUFFER_TRACING_HIP_RUNTIME_API, 5)            \
  X(BUFFER_TRACING_MEMORY_COPY, 10)               \
  X(BUFFER_TRACING_KERNEL_DISPATCH, 11)           \
  X(CALLBACK_TRACING_CODE_OBJECT, 10)             \
  X(CALLBACK_PHASE_LOAD, 1)                       \
  X(CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER, 2) \
  X(MEMORY_COPY_HOST_TO_HOST, 1)                  \
  X(MEMORY_COPY_HOST_TO_DEVICE, 2)                \
  X(MEMORY_COPY_DEVICE_TO_HOST, 3)                \
  X(MEMORY_COPY_DEVICE_TO_DEVICE, 4)              \
  X(HIP_RUNTIME_TABLE, 1 << 1)                    \
  X(AGENT_INFO_VERSION_0, 1)                      \
  X(AGENT_TYPE_GPU, 2)

enum {
#define PROF_I_ROCP_CONSTANT(name, value) PROF_I_ROCP_##name = (value),
  PROF_I_ROCP_CONSTANTS(PROF_I_ROCP_CONSTANT)
#undef PROF_I_ROCP_CONSTANT
};

/* ---- records: ns of rocprofiler's clock, which is rocprofiler_get_timestamp()'s ---- */

typedef struct prof_i_rocp_record { /* what all of a buffer begin with */
  uint64_t size;
  int32_t kind, operation;
  uint64_t correlation, external;
} prof_i_rocp_record;

typedef struct prof_i_rocp_dispatch {
  prof_i_rocp_record record;
  uint64_t thread, start, end;
  uint64_t info_size, agent, queue, kernel, dispatch;
  uint32_t private_bytes, group_bytes;
  uint32_t block[3], items[3]; /* work-items: in a group, and altogether */
} prof_i_rocp_dispatch;

typedef struct prof_i_rocp_copy {
  prof_i_rocp_record record;
  uint64_t thread, start, end, to, from, bytes;
} prof_i_rocp_copy;

/* A call's correlation has grown: which one it is, its size tells. */
typedef struct prof_i_rocp_call_0 {
  prof_i_rocp_record record;
  uint64_t start, end, thread;
} prof_i_rocp_call_0;
typedef struct prof_i_rocp_call_1 {
  prof_i_rocp_record record;
  uint64_t ancestor, start, end, thread;
} prof_i_rocp_call_1;

typedef struct prof_i_rocp_symbol { /* of a kernel: what a callback has as payload */
  uint64_t size, kernel, object;
  const char *name;
} prof_i_rocp_symbol;

typedef struct prof_i_rocp_agent {
  uint64_t size, id;
  int32_t type;
  uint32_t unused[22];
  uint32_t location, domain; /* PCI: bus << 8 | device << 3 | function */
} prof_i_rocp_agent;

#endif
