/* Converts CUPTI's records to prof's: work, and what launched it. CUPTI reports the launching call
   by another record with the same number, before or after it. The collector alone.

   CUDA's functions are known by CUPTI's numbers, which never change. Calls that put work on a
   device are recognised by their names, because each release has new ones. */
#define _GNU_SOURCE
#include "internal.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/text.h"
#include "../device/vendor.h"

enum { CALLS_MAX = 2048, DOMAINS = 2, NAME_MAX_BYTES = 256, UNKNOWN_IN_A_ROW = 64 };

static struct { uint32_t names[DOMAINS][CALLS_MAX]; /* interned; 0: not asked yet */ } call_names;

static const char *cuda_call_text(int32_t domain, uint32_t number) {
  const char *text = NULL;
  return prof_i_cupti.cuptiGetCallbackName(domain, number, &text) == 0 && text && *text ? text
                                                                                        : NULL;
}

/* The length of a name such as "cudaLaunchKernel_v7000" without the suffix of the release. The
   driver's _v2 is part of the name. */
static size_t bytes_without_release(const char *text) {
  enum { DIGITS = 4 };
  const size_t bytes = strnlen(text, NAME_MAX_BYTES);
  size_t at = bytes;
  while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9') at--;
  return bytes - at >= DIGITS && at >= 2 && text[at - 1] == 'v' && text[at - 2] == '_' ? at - 2
                                                                                       : bytes;
}

/* The interned name, as Kineto has it: without the suffix of the release. domain:
   PROF_I_CUPTI_CB_DOMAIN_*. 0: CUPTI knows no name. The collector, as below. */
static uint32_t cuda_call_name(const prof_backend_host *host, int32_t domain, uint32_t number) {
  const char *text;
  if (domain < 1 || domain > DOMAINS || number >= CALLS_MAX) return 0;
  uint32_t *const name = &call_names.names[domain - 1][number];
  if (!*name && (text = cuda_call_text(domain, number)) != NULL)
    *name = host->intern(text, bytes_without_release(text));
  return *name;
}

static bool is_cuda_work_call(const char *text) {
  static const char *const begins[] = {
      "cuLaunch",     "cuGraphLaunch",   "cuMemcpy",   "cuMemset",   "cuMemPrefetch",  "cudaLaunch",
      "__cudaLaunch", "cudaGraphLaunch", "cudaMemcpy", "cudaMemset", "cudaMemPrefetch"};
  for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
    if (strncmp(text, begins[i], strlen(begins[i])) == 0) return true;
  return false;
}

static void enable_work_calls(int32_t domain,
                              int32_t (*choose_one)(uint32_t number, uint8_t enable), bool enable) {
  for (uint32_t number = 1, unknown = 0; number < CALLS_MAX && unknown < UNKNOWN_IN_A_ROW;
       number++) {
    const char *const text = cuda_call_text(domain, number);
    unknown = text ? 0 : unknown + 1;
    if (text && is_cuda_work_call(text)) choose_one(number, enable);
  }
}

bool prof_i_cuda_calls_enable_work(bool enable) {
  if (!prof_i_cupti.cuptiActivityEnableDriverApi || !prof_i_cupti.cuptiActivityEnableRuntimeApi)
    return false;
  enable_work_calls(PROF_I_CUPTI_CB_DOMAIN_DRIVER_API, prof_i_cupti.cuptiActivityEnableDriverApi,
                    enable);
  enable_work_calls(PROF_I_CUPTI_CB_DOMAIN_RUNTIME_API, prof_i_cupti.cuptiActivityEnableRuntimeApi,
                    enable);
  return true;
}

/* ---- streams ---- */

enum { STREAMS_MAX = 4096, CONTEXTS = 256 };
enum { PER_THREAD = 2 }; /* CU_STREAM_PER_THREAD */

typedef struct cuda_stream {
  uint32_t context, stream; /* CUPTI's */
  uint64_t handle;   /* the newest: one stream may have several, as the default one has. Atomic */
  uint32_t is_ready; /* release */
} cuda_stream;

static struct {
  uint32_t generation; /* 0: not tracking; else the number of the current tracking; relaxed */
  uint32_t generation_count;
  uint32_t count; /* entries in use; relaxed */
  cuda_stream all[STREAMS_MAX];
  uint32_t devices[CONTEXTS]; /* the collector's */
} cuda_stream_table;

void prof_i_cuda_streams_set_tracking(bool do_meet) {
  __atomic_store_n(&cuda_stream_table.generation,
                   do_meet ? ++cuda_stream_table.generation_count : 0, __ATOMIC_RELAXED);
}

static uint32_t cuda_stream_count(void) {
  const uint32_t count = __atomic_load_n(&cuda_stream_table.count, __ATOMIC_RELAXED);
  return count < STREAMS_MAX ? count : STREAMS_MAX;
}

static cuda_stream *find_cuda_stream(uint32_t context, uint32_t stream) {
  for (uint32_t i = cuda_stream_count();
       i-- > 0;) { /* of a handle that was given again the later one */
    cuda_stream *const m = &cuda_stream_table.all[i];
    if (__atomic_load_n(&m->is_ready, __ATOMIC_ACQUIRE) && m->context == context &&
        m->stream == stream)
      return m;
  }
  return NULL;
}

void prof_i_cuda_stream_register(prof_i_cu_context context, prof_i_cu_stream stream,
                                 uint32_t *seen) {
  const uint32_t generation = __atomic_load_n(&cuda_stream_table.generation, __ATOMIC_RELAXED);
  const bool is_per_thread = (uintptr_t)stream == PER_THREAD;
  uint32_t context_number = 0, stream_number = 0;
  if (!generation || *seen == generation) return;
  *seen = generation;
  if (prof_i_cupti.cuptiGetContextId(context, &context_number) != 0 ||
      prof_i_cupti.cuptiGetStreamIdEx(context, is_per_thread ? NULL : stream, is_per_thread,
                                      &stream_number) != 0)
    return;
  cuda_stream *const known = find_cuda_stream(context_number, stream_number);
  if (known) __atomic_store_n(&known->handle, (uintptr_t)stream, __ATOMIC_RELAXED);
  if (known) return;
  const uint32_t place = __atomic_fetch_add(&cuda_stream_table.count, 1, __ATOMIC_RELAXED);
  if (place >= STREAMS_MAX) return;
  cuda_stream *const m = &cuda_stream_table.all[place];
  m->context = context_number;
  m->stream = stream_number;
  m->handle = (uintptr_t)stream;
  __atomic_store_n(&m->is_ready, 1, __ATOMIC_RELEASE);
}

/* The handle. A stream without scopes gets a number of its own, which is unlike any handle. The
   collector. */
static uint64_t cuda_stream_handle(uint32_t context, uint32_t stream) {
  const cuda_stream *const m = find_cuda_stream(context, stream);
  return m ? __atomic_load_n(&m->handle, __ATOMIC_RELAXED) : (uint64_t)context << 32 | stream;
}

/* A context's device, by CUPTI's number: records of work have it, records of waits do not. 0: no
   work so far. The collector. */
static void cuda_context_set_device(uint32_t context, uint32_t device) {
  cuda_stream_table.devices[context % CONTEXTS] = device;
}

static uint32_t cuda_context_device(uint32_t context) {
  return cuda_stream_table.devices[context % CONTEXTS];
}

/* ---- records ---- */

enum { NAMES = 1 << 16, MEMORY_RECORDS_AT_FIRST = 256 };

static struct {
  const prof_backend_host *host;
  uint32_t kinds;
  prof_i_launch_matcher launches;
  uint32_t names[NAMES]; /* demangled name by the number of the linker's name; 0: not seen yet */
  prof_backend_memory *memory_records; /* of this drain */
  uint32_t memory_count, memory_room;
} cupti_drain;

void prof_i_cuda_records_begin(const prof_backend_host *host, uint32_t kinds, bool is_last) {
  cupti_drain.host = host;
  cupti_drain.kinds = kinds;
  prof_i_launch_matcher_begin(&cupti_drain.launches, host, is_last);
}

uint64_t prof_i_cuda_records_unfinished(void) {
  return prof_i_launch_matcher_unfinished(&cupti_drain.launches);
}

static bool is_cuda_kind_wanted(uint32_t kind) { return cupti_drain.kinds >> kind & 1; }

static uint64_t thread_serial_of(uint32_t kernels_number) {
  return prof_i_launch_matcher_thread_serial(&cupti_drain.launches, kernels_number);
}

static uint32_t intern_text(const char *text) {
  return text && *text ? cupti_drain.host->intern(text, strlen(text)) : 0;
}

/* A kernel's, as its source has it. */
static uint32_t intern_demangled(const char *linkers) {
  const uint32_t number = intern_text(linkers);
  if (number == 0 || number >= NAMES) return number;
  if (!cupti_drain.names[number]) {
    char *const words = prof_i_demangle(linkers, strlen(linkers));
    const uint32_t in_words = intern_text(words);
    cupti_drain.names[number] = in_words ? in_words : number;
    free(words);
  }
  return cupti_drain.names[number];
}

/* ---- what ran ---- */

static void begin_cuda_record(prof_i_launched_record *it, uint32_t kind, size_t bytes,
                              uint64_t start, uint64_t end) {
  memset(it, 0, sizeof *it);
  it->record.kind = (uint16_t)kind;
  it->record.size = (uint16_t)bytes;
  it->record.start = start;
  it->record.end = end;
  if (!start || !end) it->record.flags = PROF_BACKEND_NO_TIMES;
}

static void set_record_stream(prof_backend_record *record, uint32_t correlation, uint32_t device,
                              uint32_t context, uint32_t stream) {
  record->correlation = correlation;
  record->device = device;
  record->stream = cuda_stream_handle(context, stream);
  cuda_context_set_device(context, device);
}

static void take_kernel(const prof_i_cupti_kernel *from) {
  prof_i_launched_record it;
  begin_cuda_record(&it, PROF_BACKEND_KERNEL, sizeof it.kernel, from->start, from->end);
  prof_backend_kernel *const to = &it.kernel;
  set_record_stream(&to->record, from->correlation, from->device, from->context, from->stream);
  to->record.name = intern_demangled(from->name);
  to->queued = from->queued;
  to->submitted = from->submitted;
  for (int i = 0; i < 3; i++) {
    to->grid[i] = (uint32_t)from->grid[i];
    to->block[i] = (uint32_t)from->block[i];
  }
  to->shared_bytes = (uint32_t)from->static_shared + (uint32_t)from->dynamic_shared;
  to->registers = from->registers;
  to->context = from->context;
  to->graph = from->graph;
  to->graph_node = from->graph_node;
  prof_i_launch_matcher_emit(&cupti_drain.launches, &it);
}

static const char *memory_kind_name(uint32_t kind) { /* as Kineto has them */
  static const char *const names[] = {"Unknown", "Pageable", "Pinned",        "Device",
                                      "Array",   "Managed",  "Device Static", "Managed Static"};
  return names[kind < sizeof names / sizeof *names ? kind : 0];
}

static const char *direction_name(uint32_t way) {
  static const char *const names[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                      "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
  return names[way < sizeof names / sizeof *names ? way : 0];
}

static bool is_from_host(uint32_t way) {
  return way == PROF_I_CUPTI_ACTIVITY_MEMCPY_KIND_HTOD ||
         way == PROF_I_CUPTI_ACTIVITY_MEMCPY_KIND_HTOA ||
         way == PROF_I_CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
}
static bool is_to_host(uint32_t way) {
  return way == PROF_I_CUPTI_ACTIVITY_MEMCPY_KIND_DTOH ||
         way == PROF_I_CUPTI_ACTIVITY_MEMCPY_KIND_ATOH ||
         way == PROF_I_CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
}

/* Direction and kinds of memory. A direction of 0 is not known. */
static void describe_copy(prof_backend_copy *copy, uint32_t way, uint32_t from, uint32_t to) {
  char name[96];
  snprintf(name, sizeof name, "Memcpy %s (%s -> %s)", direction_name(way), memory_kind_name(from),
           memory_kind_name(to));
  copy->record.name = intern_text(name);
  copy->from = !way ? 0 : is_from_host(way) ? PROF_DEVICE_CPU : PROF_DEVICE_CUDA;
  copy->to = !way ? 0 : is_to_host(way) ? PROF_DEVICE_CPU : PROF_DEVICE_CUDA;
}

static void take_cuda_copy(const prof_i_cupti_copy *from) {
  prof_i_launched_record it;
  begin_cuda_record(&it, PROF_BACKEND_COPY, sizeof it.copy, from->start, from->end);
  set_record_stream(&it.record, from->correlation, from->device, from->context, from->stream);
  describe_copy(&it.copy, from->way, from->from, from->to);
  it.copy.bytes = from->bytes;
  it.copy.from_index = it.copy.to_index = from->device;
  prof_i_launch_matcher_emit(&cupti_drain.launches, &it);
}

static void take_peer_copy(const prof_i_cupti_peer_copy *from) {
  prof_i_launched_record it;
  begin_cuda_record(&it, PROF_BACKEND_COPY, sizeof it.copy, from->start, from->end);
  set_record_stream(&it.record, from->correlation, from->device, from->context, from->stream);
  describe_copy(&it.copy, from->way, from->from, from->to);
  it.copy.bytes = from->bytes;
  it.copy.from_index = from->from_device;
  it.copy.to_index = from->to_device;
  prof_i_launch_matcher_emit(&cupti_drain.launches, &it);
}

static void take_fill(const prof_i_cupti_fill *from) {
  char name[48];
  prof_i_launched_record it;
  snprintf(name, sizeof name, "Memset (%s)", memory_kind_name(from->memory));
  begin_cuda_record(&it, PROF_BACKEND_FILL, sizeof it.copy, from->start, from->end);
  set_record_stream(&it.record, from->correlation, from->device, from->context, from->stream);
  it.record.name = intern_text(name);
  it.copy.bytes = from->bytes;
  it.copy.to = PROF_DEVICE_CUDA;
  it.copy.to_index = from->device;
  prof_i_launch_matcher_emit(&cupti_drain.launches, &it);
}

/* The whole graph as one record, if its nodes are not recorded. */
static void take_graph(const prof_i_cupti_graph *from) {
  char name[32];
  prof_i_launched_record it;
  snprintf(name, sizeof name, "CUDA graph %u", from->graph);
  begin_cuda_record(&it, PROF_BACKEND_OTHER, sizeof it.record, from->start, from->end);
  set_record_stream(&it.record, from->correlation, from->device, from->context, from->stream);
  it.record.name = intern_text(name);
  prof_i_launch_matcher_emit(&cupti_drain.launches, &it);
}

/* ---- memory ---- */

static bool reserve_memory_record(void) {
  if (cupti_drain.memory_count < cupti_drain.memory_room) return true;
  const uint32_t room =
      cupti_drain.memory_room ? 2 * cupti_drain.memory_room : MEMORY_RECORDS_AT_FIRST;
  prof_backend_memory *const larger =
      room > cupti_drain.memory_room ? realloc(cupti_drain.memory_records, room * sizeof *larger)
                                     : NULL;
  if (!larger) return false;
  cupti_drain.memory_records = larger;
  cupti_drain.memory_room = room;
  return true;
}

static uint32_t memory_place_of(int32_t kind) {
  switch (kind) {
    case PROF_I_CUPTI_ACTIVITY_MEMORY_KIND_PINNED:
      return PROF_BACKEND_MEMORY_PINNED;
    case PROF_I_CUPTI_ACTIVITY_MEMORY_KIND_MANAGED:
    case PROF_I_CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC:
      return PROF_BACKEND_MEMORY_MANAGED;
    default:
      return PROF_BACKEND_MEMORY_DEVICE;
  }
}

/* Other kinds of operations do not concern a block. */
static void take_memory(const prof_i_cupti_memory *from) {
  prof_backend_memory it = {
      .address = from->address,
      .bytes = from->bytes,
      .place = memory_place_of(from->place),
      .is_release = from->operation == PROF_I_CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE};
  if (!it.is_release && from->operation != PROF_I_CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION)
    return;
  if (from->place == PROF_I_CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE) return; /* the host's own */
  it.record = (prof_backend_record){.size = sizeof it,
                                    .kind = PROF_BACKEND_MEMORY,
                                    .start = from->timestamp,
                                    .end = from->timestamp,
                                    .correlation = from->correlation,
                                    .device = from->device};
  if (!from->timestamp) it.record.flags = PROF_BACKEND_NO_TIMES;
  if (reserve_memory_record())
    cupti_drain.memory_records[cupti_drain.memory_count++] = it;
  else
    cupti_drain.host->emit(&it, sizeof it);
}

static int compare_record_times(const void *a, const void *b) {
  const prof_backend_record *const first = a, *const second = b;
  if (first->start != second->start) return first->start < second->start ? -1 : 1;
  return first->correlation < second->correlation ? -1 : first->correlation > second->correlation;
}

/* Each thread may have its own buffer, so records are not in order. */
static void emit_memory_records(void) {
  if (cupti_drain.memory_count)
    qsort(cupti_drain.memory_records, cupti_drain.memory_count, sizeof *cupti_drain.memory_records,
          compare_record_times);
  if (cupti_drain.memory_count)
    cupti_drain.host->emit(cupti_drain.memory_records,
                           cupti_drain.memory_count * sizeof *cupti_drain.memory_records);
  cupti_drain.memory_count = 0;
}

/* ---- what the host did ---- */

static void take_cuda_call(const prof_i_cupti_call *from) {
  prof_i_launched_record it;
  /* a runtime call and the driver call inside of it have the same number */
  prof_i_launch_matcher_add_call(
      &cupti_drain.launches,
      &(prof_i_launch_call){from->correlation, from->thread, from->start, from->end});
  if (!is_cuda_kind_wanted(PROF_BACKEND_CALL)) return;
  begin_cuda_record(&it, PROF_BACKEND_CALL, sizeof it.record, from->start, from->end);
  it.record.correlation = from->correlation;
  it.record.launch_thread = thread_serial_of(from->thread);
  it.record.name = cuda_call_name(cupti_drain.host,
                                  from->kind == PROF_I_CUPTI_ACTIVITY_KIND_DRIVER
                                      ? PROF_I_CUPTI_CB_DOMAIN_DRIVER_API
                                      : PROF_I_CUPTI_CB_DOMAIN_RUNTIME_API,
                                  from->number);
  cupti_drain.host->emit(&it, it.record.size);
}

/* What CUPTI and the driver take for themselves. */
static void take_overhead(const prof_i_cupti_overhead *from) {
  prof_i_launched_record it;
  const char *name = "CUPTI: overhead";
  if (!is_cuda_kind_wanted(PROF_BACKEND_CALL) ||
      from->object != PROF_I_CUPTI_ACTIVITY_OBJECT_THREAD)
    return;
  switch (from->what) {
    case PROF_I_CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER:
      name = "CUDA: driver compiler";
      break;
    case PROF_I_CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH:
      name = "CUPTI: buffer flush";
      break;
    case PROF_I_CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION:
      name = "CUPTI: instrumentation";
      break;
    case PROF_I_CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE:
      name = "CUPTI: resource";
      break;
    case PROF_I_CUPTI_OVERHEAD_MODULE_LOADING:
      name = "CUDA: module loading";
      break;
    case PROF_I_CUPTI_OVERHEAD_LAZY_FUNCTION_LOADING:
      name = "CUDA: lazy function loading";
      break;
    case PROF_I_CUPTI_OVERHEAD_COMMAND_BUFFER_FULL:
      name = "CUDA: command buffer full";
      break;
    case PROF_I_CUPTI_OVERHEAD_BUFFER_REQUEST:
      name = "CUPTI: buffer request";
      break;
    default:
      break;
  }
  begin_cuda_record(&it, PROF_BACKEND_CALL, sizeof it.record, from->start, from->end);
  it.record.launch_thread = thread_serial_of(from->thread);
  it.record.name = intern_text(name);
  cupti_drain.host->emit(&it, it.record.size);
}

static void take_sync(const prof_i_cupti_sync *from) {
  prof_i_launched_record it;
  const char *name = "Sync";
  if (!is_cuda_kind_wanted(PROF_BACKEND_SYNC) || !is_cuda_kind_wanted(PROF_BACKEND_CALL)) return;
  switch (from->type) { /* as Kineto has them */
    case PROF_I_CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE:
      name = "Event Sync";
      break;
    case PROF_I_CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT:
      name = "Stream Wait Event";
      break;
    case PROF_I_CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE:
      name = "Stream Sync";
      break;
    case PROF_I_CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE:
      name = "Context Sync";
      break;
    default:
      break;
  }
  begin_cuda_record(&it, PROF_BACKEND_SYNC, sizeof it.record, from->start, from->end);
  it.record.correlation = from->correlation;
  it.record.device = cuda_context_device(from->context);
  it.record.stream = from->stream == (uint32_t)PROF_I_CUPTI_SYNCHRONIZATION_INVALID_VALUE
                         ? 0
                         : cuda_stream_handle(from->context, from->stream);
  it.record.name = intern_text(name);
  prof_i_launch_matcher_emit(&cupti_drain.launches, &it);
}

void prof_i_cuda_record_add(const void *record) {
  int32_t kind;
  memcpy(&kind, record, sizeof kind);
  switch (kind) {
    case PROF_I_CUPTI_ACTIVITY_KIND_KERNEL:
    case PROF_I_CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      take_kernel(record);
      break;
    case PROF_I_CUPTI_ACTIVITY_KIND_MEMCPY:
      take_cuda_copy(record);
      break;
    case PROF_I_CUPTI_ACTIVITY_KIND_MEMCPY2:
      take_peer_copy(record);
      break;
    case PROF_I_CUPTI_ACTIVITY_KIND_MEMSET:
      take_fill(record);
      break;
    case PROF_I_CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      take_graph(record);
      break;
    case PROF_I_CUPTI_ACTIVITY_KIND_MEMORY2:
      take_memory(record);
      break;
    case PROF_I_CUPTI_ACTIVITY_KIND_DRIVER:
    case PROF_I_CUPTI_ACTIVITY_KIND_RUNTIME:
      take_cuda_call(record);
      break;
    case PROF_I_CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      take_sync(record);
      break;
    case PROF_I_CUPTI_ACTIVITY_KIND_OVERHEAD:
      take_overhead(record);
      break;
    default:
      break; /* not requested */
  }
}

void prof_i_cuda_records_flush(bool are_all) {
  emit_memory_records();
  prof_i_launch_matcher_flush(&cupti_drain.launches, are_all);
}
