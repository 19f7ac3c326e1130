/* Declarations of what prof uses of CUPTI, so that no vendor's header is needed to build. One
   binary serves all releases: tests/device/headers/cupti.cpp compares each line with the real
   headers of CUDA 11.8 to 13.5. A record has only the members that all of these releases share, at
   places that never moved. The loaded library walks a buffer, because only it knows how long its
   records are. Includes nothing else of prof. */
#ifndef PROF_CUDA_CUPTI_H
#define PROF_CUDA_CUPTI_H

#include "api.h"

typedef struct prof_i_cupti_subscriber_object *prof_i_cupti_subscriber;
typedef void (*prof_i_cupti_callback)(void *user, int32_t domain, uint32_t number,
                                      const void *data);
typedef void (*prof_i_cupti_requested)(uint8_t **buffer_out, size_t *bytes_out,
                                       size_t *records_max_out);
typedef void (*prof_i_cupti_completed)(prof_i_cu_context context, uint32_t stream, uint8_t *buffer,
                                       size_t bytes, size_t valid);

/* From 13.0 on: a subscriber gives its name, and a second one gets that name with its error. */
typedef struct prof_i_cupti_subscriber_params {
  size_t size;
  const char *name;
  char *holder; /* room for the name of who holds it */
  size_t holder_room;
} prof_i_cupti_subscriber_params;

/* X(need, name, arguments): all return a CUptiResult. Of an OPTIONAL one the pointer may be
   NULL. */
#define PROF_I_CUPTI_FUNCTIONS(X)                                                               \
  X(NEEDED, cuptiGetVersion, (uint32_t * version_out))                                          \
  X(NEEDED, cuptiGetResultString, (int32_t error, const char **text_out))                       \
  X(NEEDED, cuptiGetTimestamp, (uint64_t * ns_out))                                             \
  X(NEEDED, cuptiSubscribe,                                                                     \
    (prof_i_cupti_subscriber * subscriber_out, prof_i_cupti_callback callback, void *user))     \
  X(OPTIONAL, cuptiSubscribe_v2,                                                                \
    (prof_i_cupti_subscriber * subscriber_out, prof_i_cupti_callback callback, void *user,      \
     prof_i_cupti_subscriber_params *params))                                                   \
  X(NEEDED, cuptiUnsubscribe, (prof_i_cupti_subscriber subscriber))                             \
  X(NEEDED, cuptiActivityRegisterCallbacks,                                                     \
    (prof_i_cupti_requested requested, prof_i_cupti_completed completed))                       \
  X(NEEDED, cuptiActivityEnable, (int32_t kind))                                                \
  X(NEEDED, cuptiActivityDisable, (int32_t kind))                                               \
  X(OPTIONAL, cuptiActivityEnableDriverApi, (uint32_t number, uint8_t enable))                  \
  X(OPTIONAL, cuptiActivityEnableRuntimeApi, (uint32_t number, uint8_t enable))                 \
  X(NEEDED, cuptiActivityFlushAll, (uint32_t flags))                                            \
  X(NEEDED, cuptiActivityGetNextRecord, (uint8_t * buffer, size_t valid, void **record_in_out)) \
  X(NEEDED, cuptiActivityGetNumDroppedRecords,                                                  \
    (prof_i_cu_context context, uint32_t stream, size_t * dropped_out))                         \
  X(NEEDED, cuptiGetCallbackName, (int32_t domain, uint32_t number, const char **name_out))     \
  X(NEEDED, cuptiGetContextId, (prof_i_cu_context context, uint32_t * number_out))              \
  X(NEEDED, cuptiGetStreamIdEx,                                                                 \
    (prof_i_cu_context context, prof_i_cu_stream stream, uint8_t is_per_thread,                 \
     uint32_t * number_out))                                                                    \
  X(OPTIONAL, cuptiSetThreadIdType, (int32_t type))

/* X(name, value): CUPTI's words without their CUPTI_. */
#define PROF_I_CUPTI_CONSTANTS(X)                         \
  X(ACTIVITY_KIND_MEMCPY, 1)                              \
  X(ACTIVITY_KIND_MEMSET, 2)                              \
  X(ACTIVITY_KIND_KERNEL, 3)                              \
  X(ACTIVITY_KIND_DRIVER, 4)                              \
  X(ACTIVITY_KIND_RUNTIME, 5)                             \
  X(ACTIVITY_KIND_CONCURRENT_KERNEL, 10)                  \
  X(ACTIVITY_KIND_OVERHEAD, 17)                           \
  X(ACTIVITY_KIND_MEMCPY2, 22)                            \
  X(ACTIVITY_KIND_SYNCHRONIZATION, 38)                    \
  X(ACTIVITY_KIND_MEMORY2, 49)                            \
  X(ACTIVITY_KIND_GRAPH_TRACE, 51)                        \
  X(ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, 1)         \
  X(ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE, 2)            \
  X(ACTIVITY_FLAG_FLUSH_FORCED, 1)                        \
  X(ACTIVITY_THREAD_ID_TYPE_SYSTEM, 1)                    \
  X(CB_DOMAIN_DRIVER_API, 1)                              \
  X(CB_DOMAIN_RUNTIME_API, 2)                             \
  X(ACTIVITY_MEMCPY_KIND_HTOD, 1)                         \
  X(ACTIVITY_MEMCPY_KIND_DTOH, 2)                         \
  X(ACTIVITY_MEMCPY_KIND_HTOA, 3)                         \
  X(ACTIVITY_MEMCPY_KIND_ATOH, 4)                         \
  X(ACTIVITY_MEMCPY_KIND_HTOH, 9)                         \
  X(ACTIVITY_MEMORY_KIND_PAGEABLE, 1)                     \
  X(ACTIVITY_MEMORY_KIND_PINNED, 2)                       \
  X(ACTIVITY_MEMORY_KIND_DEVICE, 3)                       \
  X(ACTIVITY_MEMORY_KIND_ARRAY, 4)                        \
  X(ACTIVITY_MEMORY_KIND_MANAGED, 5)                      \
  X(ACTIVITY_MEMORY_KIND_DEVICE_STATIC, 6)                \
  X(ACTIVITY_MEMORY_KIND_MANAGED_STATIC, 7)               \
  X(ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE, 1)   \
  X(ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT, 2)   \
  X(ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE, 3)  \
  X(ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE, 4) \
  X(ACTIVITY_OBJECT_THREAD, 2)                            \
  X(ACTIVITY_OVERHEAD_DRIVER_COMPILER, 1)                 \
  X(ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH, 1 << 16)        \
  X(ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION, 2 << 16)     \
  X(ACTIVITY_OVERHEAD_CUPTI_RESOURCE, 3 << 16)            \
  X(SYNCHRONIZATION_INVALID_VALUE, -1)                    \
  X(ERROR_NOT_COMPATIBLE, 14)                             \
  X(ERROR_MAX_LIMIT_REACHED, 12)                          \
  X(ERROR_NOT_INITIALIZED, 15)                            \
  X(ERROR_INSUFFICIENT_PRIVILEGES, 35)                    \
  X(ERROR_OLD_PROFILER_API_INITIALIZED, 36)               \
  X(ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, 39)         \
  X(ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, 40) \
  X(ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, 41)

enum {
#define PROF_I_CUPTI_CONSTANT(name, value) PROF_I_CUPTI_##name = (value),
  PROF_I_CUPTI_CONSTANTS(PROF_I_CUPTI_CONSTANT)
#undef PROF_I_CUPTI_CONSTANT
};

enum {
  PROF_I_CUPTI_OVERHEAD_MODULE_LOADING = 4 << 16, /* this and the following: later than 11.8 */
  PROF_I_CUPTI_OVERHEAD_LAZY_FUNCTION_LOADING = 5 << 16,
  PROF_I_CUPTI_OVERHEAD_COMMAND_BUFFER_FULL = 6 << 16,
  PROF_I_CUPTI_OVERHEAD_BUFFER_REQUEST = 7 << 16,
  PROF_I_CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED = 42,
  PROF_I_CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED = 43,
  PROF_I_CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED = 44,
  PROF_I_CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED = 45,
  /* cuptiGetVersion(): older ones crash where no buffer is given */
  PROF_I_CUPTI_NULL_BUFFERS_FROM = 27
};

/* ---- records: ns of CUPTI's clock, which is cuptiGetTimestamp()'s; 0: not known ---- */

typedef struct prof_i_cupti_kernel { /* CUpti_ActivityKernel5, from 11.0 on, and all later ones */
  int32_t kind;
  uint8_t caches, shared_configuration;
  uint16_t registers;
  uint32_t partitioned[2];
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3];
  int32_t static_shared, dynamic_shared;
  uint32_t local_per_thread, local_total, correlation;
  int64_t grid_number;
  const char *name; /* as the linker has it; stays as long as its module is loaded */
  void *reserved;
  uint64_t queued, submitted;
  uint8_t launch_type, carveout_requested_is, carveout_requested, padding;
  uint32_t shared_executed;
  uint64_t graph_node;
  uint32_t shared_limit, graph;
} prof_i_cupti_kernel;

typedef struct prof_i_cupti_copy { /* CUpti_ActivityMemcpy4, and all later ones */
  int32_t kind;
  uint8_t way, from, to, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation, runtime_correlation, padding;
  void *reserved;
  uint64_t graph_node;
  uint32_t graph;
} prof_i_cupti_copy;

typedef struct prof_i_cupti_peer_copy { /* CUpti_ActivityMemcpyPtoP3, and all later ones */
  int32_t kind;
  uint8_t way, from, to, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream;
  uint32_t from_device, from_context, to_device, to_context;
  uint32_t correlation;
  void *reserved;
  uint64_t graph_node;
  uint32_t graph;
} prof_i_cupti_peer_copy;

typedef struct prof_i_cupti_fill { /* CUpti_ActivityMemset3, and all later ones */
  int32_t kind;
  uint32_t value;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
  uint16_t flags, memory;
  uint32_t padding;
  void *reserved;
  uint64_t graph_node;
  uint32_t graph;
} prof_i_cupti_fill;

typedef struct prof_i_cupti_graph { /* CUpti_ActivityGraphTrace, and all later ones */
  int32_t kind;
  uint32_t correlation;
  uint64_t start, end;
  uint32_t device, graph, context, stream;
} prof_i_cupti_graph;

typedef struct prof_i_cupti_memory { /* CUpti_ActivityMemory2, and all later ones */
  int32_t kind, operation, place;    /* place: as a copy's */
  uint32_t correlation;
  uint64_t address, bytes, timestamp, from;
  uint32_t process, device, context, stream;
} prof_i_cupti_memory;

typedef struct prof_i_cupti_call { /* CUpti_ActivityAPI */
  int32_t kind;
  uint32_t number; /* by its domain's names */
  uint64_t start, end;
  uint32_t process, thread, correlation, result;
} prof_i_cupti_call;

typedef struct prof_i_cupti_sync { /* CUpti_ActivitySynchronization */
  int32_t kind, type;
  uint64_t start, end;
  uint32_t correlation, context, stream, event;
} prof_i_cupti_sync;

typedef struct prof_i_cupti_overhead { /* CUpti_ActivityOverhead */
  int32_t kind, what, object;
  uint32_t process, thread, padding; /* where the object is a thread */
  uint64_t start, end;
} prof_i_cupti_overhead;

/* X(its name, CUPTI's name of the smallest version, member, CUPTI's member) */
#define PROF_I_CUPTI_MEMBERS(X)                           \
  X(kernel, Kernel5, kind, kind)                          \
  X(kernel, Kernel5, registers, registersPerThread)       \
  X(kernel, Kernel5, start, start)                        \
  X(kernel, Kernel5, end, end)                            \
  X(kernel, Kernel5, device, deviceId)                    \
  X(kernel, Kernel5, context, contextId)                  \
  X(kernel, Kernel5, stream, streamId)                    \
  X(kernel, Kernel5, grid, gridX)                         \
  X(kernel, Kernel5, block, blockX)                       \
  X(kernel, Kernel5, static_shared, staticSharedMemory)   \
  X(kernel, Kernel5, dynamic_shared, dynamicSharedMemory) \
  X(kernel, Kernel5, correlation, correlationId)          \
  X(kernel, Kernel5, name, name)                          \
  X(kernel, Kernel5, queued, queued)                      \
  X(kernel, Kernel5, submitted, submitted)                \
  X(kernel, Kernel5, graph_node, graphNodeId)             \
  X(kernel, Kernel5, graph, graphId)                      \
  X(copy, Memcpy4, kind, kind)                            \
  X(copy, Memcpy4, way, copyKind)                         \
  X(copy, Memcpy4, from, srcKind)                         \
  X(copy, Memcpy4, to, dstKind)                           \
  X(copy, Memcpy4, bytes, bytes)                          \
  X(copy, Memcpy4, start, start)                          \
  X(copy, Memcpy4, end, end)                              \
  X(copy, Memcpy4, device, deviceId)                      \
  X(copy, Memcpy4, context, contextId)                    \
  X(copy, Memcpy4, stream, streamId)                      \
  X(copy, Memcpy4, correlation, correlationId)            \
  X(copy, Memcpy4, graph_node, graphNodeId)               \
  X(copy, Memcpy4, graph, graphId)                        \
  X(peer_copy, MemcpyPtoP3, kind, kind)                   \
  X(peer_copy, MemcpyPtoP3, way, copyKind)                \
  X(peer_copy, MemcpyPtoP3, from, srcKind)                \
  X(peer_copy, MemcpyPtoP3, to, dstKind)                  \
  X(peer_copy, MemcpyPtoP3, bytes, bytes)                 \
  X(peer_copy, MemcpyPtoP3, start, start)                 \
  X(peer_copy, MemcpyPtoP3, end, end)                     \
  X(peer_copy, MemcpyPtoP3, device, deviceId)             \
  X(peer_copy, MemcpyPtoP3, context, contextId)           \
  X(peer_copy, MemcpyPtoP3, stream, streamId)             \
  X(peer_copy, MemcpyPtoP3, from_device, srcDeviceId)     \
  X(peer_copy, MemcpyPtoP3, to_device, dstDeviceId)       \
  X(peer_copy, MemcpyPtoP3, correlation, correlationId)   \
  X(peer_copy, MemcpyPtoP3, graph_node, graphNodeId)      \
  X(peer_copy, MemcpyPtoP3, graph, graphId)               \
  X(fill, Memset3, kind, kind)                            \
  X(fill, Memset3, value, value)                          \
  X(fill, Memset3, bytes, bytes)                          \
  X(fill, Memset3, start, start)                          \
  X(fill, Memset3, end, end)                              \
  X(fill, Memset3, device, deviceId)                      \
  X(fill, Memset3, context, contextId)                    \
  X(fill, Memset3, stream, streamId)                      \
  X(fill, Memset3, correlation, correlationId)            \
  X(fill, Memset3, memory, memoryKind)                    \
  X(fill, Memset3, graph_node, graphNodeId)               \
  X(fill, Memset3, graph, graphId)                        \
  X(graph, GraphTrace, kind, kind)                        \
  X(graph, GraphTrace, correlation, correlationId)        \
  X(graph, GraphTrace, start, start)                      \
  X(graph, GraphTrace, end, end)                          \
  X(graph, GraphTrace, device, deviceId)                  \
  X(graph, GraphTrace, graph, graphId)                    \
  X(graph, GraphTrace, context, contextId)                \
  X(graph, GraphTrace, stream, streamId)                  \
  X(memory, Memory2, kind, kind)                          \
  X(memory, Memory2, operation, memoryOperationType)      \
  X(memory, Memory2, place, memoryKind)                   \
  X(memory, Memory2, correlation, correlationId)          \
  X(memory, Memory2, address, address)                    \
  X(memory, Memory2, bytes, bytes)                        \
  X(memory, Memory2, timestamp, timestamp)                \
  X(memory, Memory2, process, processId)                  \
  X(memory, Memory2, device, deviceId)                    \
  X(memory, Memory2, context, contextId)                  \
  X(memory, Memory2, stream, streamId)                    \
  X(call, API, kind, kind)                                \
  X(call, API, number, cbid)                              \
  X(call, API, start, start)                              \
  X(call, API, end, end)                                  \
  X(call, API, process, processId)                        \
  X(call, API, thread, threadId)                          \
  X(call, API, correlation, correlationId)                \
  X(call, API, result, returnValue)                       \
  X(sync, Synchronization, kind, kind)                    \
  X(sync, Synchronization, type, type)                    \
  X(sync, Synchronization, start, start)                  \
  X(sync, Synchronization, end, end)                      \
  X(sync, Synchronization, correlation, correlationId)    \
  X(sync, Synchronization, context, contextId)            \
  X(sync, Synchronization, stream, streamId)              \
  X(overhead, Overhead, kind, kind)                       \
  X(overhead, Overhead, what, overheadKind)               \
  X(overhead, Overhead, object, objectKind)               \
  X(overhead, Overhead, thread, objectId.pt.threadId)     \
  X(overhead, Overhead, start, start)                     \
  X(overhead, Overhead, end, end)

#endif
