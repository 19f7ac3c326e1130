/* Starts and stops rocprofiler-sdk's records of kernels, copies and calls, and fetches them. A tool
   can configure rocprofiler only once, before HIP begins. So all kinds of records are configured
   then, in contexts that are started on request. */
#define _GNU_SOURCE
#include "internal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "../base/process.h"
#include "../device/vendor.h"

/* ---- blocks ---- */

/* rocprofiler's records on their way to the collector. rocprofiler hands them out on its own
   threads, only during its call. So they are copied into blocks of a pool. Nothing in this part
   takes a lock or calls malloc(). Blocks and names are two mappings. The kernel adds their pages at
   the first write. */

enum {
  ROCP_BLOCK_BYTES = 1 << 18,
  ROCP_BLOCKS = 256,
  ROCP_NAMES_BYTES = 64 << 20 /* of address space: all kernels' names of a large library */
};

typedef struct rocp_block {
  struct rocp_block *next;
  uint64_t *words; /* records, each a multiple of 8 bytes */
  size_t bytes;    /* filled */
  uint32_t is_taken;
} rocp_block;

static struct {
  const prof_backend_host *host;
  uint8_t *memory, *names;
  size_t name_bytes;    /* claimed; may be more than there are */
  uint32_t first_index; /* relaxed: of the last block found */
  /* relaxed. dropped: by rocprofiler in all; reported_count: the part that the collector has
     counted */
  uint64_t lost, dropped, reported_count;
  rocp_block *completed; /* PROF_I_PUSH() */
  rocp_block blocks[ROCP_BLOCKS];
} rocp_pool;

/* False: there is no memory. What is mapped stays. */
static bool map_block_pages(uint8_t **memory, size_t bytes) {
  if (*memory) return true;
  void *const mapped =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped != MAP_FAILED) *memory = mapped;
  return *memory != NULL;
}

/* False: no memory. One thread at a time. */
static bool rocp_buffers_prepare(const prof_backend_host *host) {
  rocp_pool.host = host;
  if (!map_block_pages(&rocp_pool.memory, (size_t)ROCP_BLOCKS * ROCP_BLOCK_BYTES) ||
      !map_block_pages(&rocp_pool.names, ROCP_NAMES_BYTES))
    return false;
  for (uint32_t i = 0; i < ROCP_BLOCKS; i++)
    rocp_pool.blocks[i].words =
        (uint64_t *)(void *)(rocp_pool.memory + (size_t)i * ROCP_BLOCK_BYTES);
  return true;
}

/* ---- rocprofiler's threads ---- */

/* Always prefers the same few, so that the others' pages are never added. */
static rocp_block *take_free_block(void) {
  const uint32_t first_index = __atomic_load_n(&rocp_pool.first_index, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < ROCP_BLOCKS; i++) {
    const uint32_t at = (first_index + i) % ROCP_BLOCKS;
    uint32_t is_taken = 0;
    if (!__atomic_compare_exchange_n(&rocp_pool.blocks[at].is_taken, &is_taken, 1, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      continue;
    __atomic_store_n(&rocp_pool.first_index, at, __ATOMIC_RELAXED);
    rocp_pool.blocks[at].bytes = 0;
    return &rocp_pool.blocks[at];
  }
  return NULL;
}

static void complete_block(rocp_block *block) {
  PROF_I_PUSH(&rocp_pool.completed, block);
  rocp_pool.host->wake();
}

/* 0: it is no record. */
static size_t record_bytes_of(const prof_i_rocp_header *header) {
  const prof_i_rocp_record *const record = header->record;
  if (header->category != PROF_I_ROCP_BUFFER_CATEGORY_TRACING || !record) return 0;
  return record->size >= sizeof *record && record->size <= ROCP_BLOCK_BYTES
             ? ((size_t)record->size + 7) / 8 * 8
             : 0;
}

/* For rocprofiler_create_buffer(). */
static void rocp_buffers_copy_records(prof_i_rocp_id context, prof_i_rocp_id buffer,
                                      prof_i_rocp_header **headers, size_t count, void *user,
                                      uint64_t dropped) {
  rocp_block *block = NULL;
  (void)context;
  (void)buffer;
  (void)user;
  __atomic_store_n(&rocp_pool.dropped, dropped, __ATOMIC_RELAXED);
  for (size_t i = 0; i < count; i++) {
    const size_t bytes = headers[i] ? record_bytes_of(headers[i]) : 0;
    if (block && block->bytes + bytes > ROCP_BLOCK_BYTES) {
      complete_block(block);
      block = NULL;
    }
    if (bytes && !block) block = take_free_block();
    if (!bytes || !block) {
      __atomic_fetch_add(&rocp_pool.lost, 1, __ATOMIC_RELAXED);
      continue;
    }
    memcpy((uint8_t *)block->words + block->bytes, headers[i]->record,
           ((const prof_i_rocp_record *)headers[i]->record)->size);
    block->bytes += bytes;
  }
  if (block) complete_block(block);
}

/* Rocprofiler's threads, and the program's. */
static void rocp_name_add(uint64_t kernel, const char *text) {
  const size_t length = text ? strlen(text) : 0,
               bytes = (sizeof(prof_i_rocp_name) + length + 1 + 7) / 8 * 8;
  if (!length || bytes > ROCP_NAMES_BYTES) return;
  const size_t at = __atomic_fetch_add(&rocp_pool.name_bytes, bytes, __ATOMIC_RELAXED);
  if (at > ROCP_NAMES_BYTES - bytes) return;
  prof_i_rocp_name *const name = (prof_i_rocp_name *)(void *)(rocp_pool.names + at);
  name->kernel = kernel;
  name->bytes = (uint32_t)length;
  memcpy(name->text, text, length + 1);
  __atomic_store_n(&name->is_there, 1, __ATOMIC_RELEASE);
}

/* ---- the collector ---- */

static void rocp_block_give_back(rocp_block *block) {
  __atomic_store_n(&block->is_taken, 0, __ATOMIC_RELEASE);
}

/* How many records found no block, or were dropped by rocprofiler, since the last time. */
static uint64_t rocp_buffers_lost(void) {
  const uint64_t dropped = __atomic_load_n(&rocp_pool.dropped, __ATOMIC_RELAXED),
                 fresh =
                     dropped > rocp_pool.reported_count ? dropped - rocp_pool.reported_count : 0;
  rocp_pool.reported_count = dropped;
  return fresh + __atomic_exchange_n(&rocp_pool.lost, 0, __ATOMIC_RELAXED);
}

const prof_i_rocp_name *prof_i_rocp_name_next(size_t *at) {
  if (*at + sizeof(prof_i_rocp_name) > ROCP_NAMES_BYTES) return NULL;
  const prof_i_rocp_name *const name =
      (const prof_i_rocp_name *)(const void *)(rocp_pool.names + *at);
  if (!__atomic_load_n(&name->is_there, __ATOMIC_ACQUIRE)) return NULL;
  *at += (sizeof *name + name->bytes + 1 + 7) / 8 * 8;
  return name;
}

/* ---- recording ---- */

enum { FLUSH_NS = 200000000, BUFFER_BYTES = 1 << 18, OPERATIONS_MAX = 512, REASON_BYTES = 256 };

/* The contexts: symbols of loaded code (always on), work of devices, calls that launch it, all
   calls. */
enum { NAMES, WORK, LAUNCHES, CALLS, CONTEXTS };

/* UNTRIED to CONFIGURING once, by the first thread that may */
enum { UNTRIED, CONFIGURING, CONFIGURED, REFUSED };

enum {
  ON_DEVICES = 1u << PROF_BACKEND_KERNEL | 1u << PROF_BACKEND_COPY,
  OF_CALLS = 1u << PROF_BACKEND_CALL
};

static struct {
  uint32_t phase;         /* release, acquire: the configuration is written before it */
  uint32_t is_taken_over; /* start() has been called; relaxed */
  bool is_on, is_ending;  /* is_ending: between stop() and the drain behind it */
  bool is_context_on[CONTEXTS];
  uint32_t major, minor;
  prof_i_rocp_id contexts[CONTEXTS], buffer;
  prof_i_hip_agent agents[PROF_I_HIP_AGENTS];
  uint32_t agent_count;
  int32_t operations[OPERATIONS_MAX]; /* of calls that put work on devices */
  size_t operation_count;
  uint32_t has_begun;          /* HIP; relaxed */
  const char *failed_function; /* the first function that failed in the configuration */
  int32_t status;
  int result; /* why it is not configured */
  char reason[REASON_BYTES];
  /* records since before the program's first call of HIP; start() has not been called; relaxed */
  uint32_t is_from_first;
  /* bits of prof_backend_kind; before start() of what is recorded from the beginning */
  uint32_t wanted;
  void (*is_ready)(void);
  uint64_t flushed_ns;
} rocp_tracing;

static uint32_t configure_phase(void) {
  return __atomic_load_n(&rocp_tracing.phase, __ATOMIC_ACQUIRE);
}
static void set_configure_phase(uint32_t to) {
  __atomic_store_n(&rocp_tracing.phase, to, __ATOMIC_RELEASE);
}

static bool claim_configure(void) {
  uint32_t untried = UNTRIED;
  return __atomic_compare_exchange_n(&rocp_tracing.phase, &untried, CONFIGURING, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* ---- what is configured ---- */

static bool check_rocp_call(const char *function, int32_t status) {
  if (status == PROF_I_ROCP_STATUS_SUCCESS) return true;
  if (!rocp_tracing.failed_function) rocp_tracing.failed_function = function;
  rocp_tracing.status = status;
  return false;
}

static void on_symbol(const void *payload, int32_t kind, int32_t operation, int32_t phase) {
  const prof_i_rocp_symbol *const symbol = payload;
  if (kind != PROF_I_ROCP_CALLBACK_TRACING_CODE_OBJECT ||
      operation != PROF_I_ROCP_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER ||
      phase != PROF_I_ROCP_CALLBACK_PHASE_LOAD)
    return;
  if (symbol && symbol->size >= sizeof *symbol) rocp_name_add(symbol->kernel, symbol->name);
}

static void on_code_0(prof_i_rocp_callback_0 of, void *data, void *user) {
  (void)data;
  (void)user;
  on_symbol(of.payload, of.kind, of.operation, of.phase);
}
static void on_code_1(prof_i_rocp_callback_1 of, void *data, void *user) {
  (void)data;
  (void)user;
  on_symbol(of.payload, of.kind, of.operation, of.phase);
}

static bool is_hip_work_call(const char *name) {
  static const char *const begins[] = {
      "hipLaunch",          "hipModuleLaunch",    "hipExtLaunch",
      "hipExtModuleLaunch", "hipHccModuleLaunch", "hipGraphLaunch",
      "hipMemcpy",          "hipMemset",          "hipMemPrefetch"};
  for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
    if (strncmp(name, begins[i], strlen(begins[i])) == 0) return true;
  return false;
}

static int32_t on_operation(int32_t kind, int32_t operation, void *user) {
  const char *name = NULL;
  uint64_t bytes = 0;
  (void)user;
  if (prof_i_rocp.rocprofiler_query_buffer_tracing_kind_operation_name(
          kind, operation, &name, &bytes) != PROF_I_ROCP_STATUS_SUCCESS ||
      !name)
    return 0;
  if (is_hip_work_call(name) && rocp_tracing.operation_count < OPERATIONS_MAX)
    rocp_tracing.operations[rocp_tracing.operation_count++] = operation;
  return 0;
}

static int32_t on_agents(int32_t version, const void **agents, size_t count, void *user) {
  (void)version;
  (void)user;
  for (size_t i = 0; i < count && rocp_tracing.agent_count < PROF_I_HIP_AGENTS; i++) {
    const prof_i_rocp_agent *const agent = agents[i];
    if (agent->size >= sizeof *agent && agent->type == PROF_I_ROCP_AGENT_TYPE_GPU)
      rocp_tracing.agents[rocp_tracing.agent_count++] =
          (prof_i_hip_agent){agent->id, agent->location, agent->domain};
  }
  return PROF_I_ROCP_STATUS_SUCCESS;
}

static void on_hip_begin(int32_t type, uint64_t version, uint64_t instance, void **tables,
                         uint64_t count, void *user) {
  (void)type;
  (void)version;
  (void)instance;
  (void)tables;
  (void)count;
  (void)user;
  __atomic_store_n(&rocp_tracing.has_begun, 1, __ATOMIC_RELAXED);
}

#define CHECK_ROCP_CALL(function, ...) check_rocp_call(#function, prof_i_rocp.function(__VA_ARGS__))

static bool record_kind(int context, int32_t kind, const int32_t *operations, size_t count) {
  return CHECK_ROCP_CALL(rocprofiler_configure_buffer_tracing_service,
                         rocp_tracing.contexts[context], kind, operations, count,
                         rocp_tracing.buffer);
}

static bool trace_code_objects(void) {
  void *callback = NULL;
  if (rocp_tracing.major >= 1) {
    void (*const one)(prof_i_rocp_callback_1, void *, void *) = on_code_1;
    memcpy(&callback, &one, sizeof callback);
  } else {
    void (*const zero)(prof_i_rocp_callback_0, void *, void *) = on_code_0;
    memcpy(&callback, &zero, sizeof callback);
  }
  return CHECK_ROCP_CALL(rocprofiler_configure_callback_tracing_service,
                         rocp_tracing.contexts[NAMES], PROF_I_ROCP_CALLBACK_TRACING_CODE_OBJECT,
                         NULL, 0, callback, NULL);
}

static bool configure_contexts(void) {
  if (!CHECK_ROCP_CALL(rocprofiler_at_intercept_table_registration, on_hip_begin,
                       PROF_I_ROCP_HIP_RUNTIME_TABLE, NULL))
    return false;
  for (int i = 0; i < CONTEXTS; i++)
    if (!CHECK_ROCP_CALL(rocprofiler_create_context, &rocp_tracing.contexts[i])) return false;
  if (!CHECK_ROCP_CALL(rocprofiler_create_buffer, rocp_tracing.contexts[WORK], BUFFER_BYTES,
                       BUFFER_BYTES / 2, PROF_I_ROCP_BUFFER_POLICY_DISCARD,
                       rocp_buffers_copy_records, NULL, &rocp_tracing.buffer))
    return false;
  if (!CHECK_ROCP_CALL(rocprofiler_iterate_buffer_tracing_kind_operations,
                       PROF_I_ROCP_BUFFER_TRACING_HIP_RUNTIME_API, on_operation, NULL))
    return false;
  if (!CHECK_ROCP_CALL(rocprofiler_query_available_agents, PROF_I_ROCP_AGENT_INFO_VERSION_0,
                       on_agents, sizeof(prof_i_rocp_agent), NULL))
    return false;
  return trace_code_objects() &&
         record_kind(WORK, PROF_I_ROCP_BUFFER_TRACING_KERNEL_DISPATCH, NULL, 0) &&
         record_kind(WORK, PROF_I_ROCP_BUFFER_TRACING_MEMORY_COPY, NULL, 0) &&
         (rocp_tracing.operation_count == 0 ||
          record_kind(LAUNCHES, PROF_I_ROCP_BUFFER_TRACING_HIP_RUNTIME_API, rocp_tracing.operations,
                      rocp_tracing.operation_count)) &&
         record_kind(CALLS, PROF_I_ROCP_BUFFER_TRACING_HIP_RUNTIME_API, NULL, 0) &&
         CHECK_ROCP_CALL(rocprofiler_start_context, rocp_tracing.contexts[NAMES]);
}

static int set_context_active(int context, bool is_wanted) {
  if (rocp_tracing.is_context_on[context] == is_wanted) return PROF_BACKEND_OK;
  const int32_t status = is_wanted
                             ? prof_i_rocp.rocprofiler_start_context(rocp_tracing.contexts[context])
                             : prof_i_rocp.rocprofiler_stop_context(rocp_tracing.contexts[context]);
  if (status != PROF_I_ROCP_STATUS_SUCCESS)
    return prof_i_rocp_fail_call(
        is_wanted ? "rocprofiler_start_context" : "rocprofiler_stop_context", status);
  rocp_tracing.is_context_on[context] = is_wanted;
  return PROF_BACKEND_OK;
}

static int set_recorded_kinds(uint32_t kinds) {
  const bool is_work_wanted = (kinds & ON_DEVICES) != 0, are_calls_wanted = (kinds & OF_CALLS) != 0;
  int result = set_context_active(WORK, is_work_wanted);
  if (result == PROF_BACKEND_OK) result = set_context_active(CALLS, are_calls_wanted);
  /* they are among all */
  if (result == PROF_BACKEND_OK)
    result = set_context_active(LAUNCHES, is_work_wanted && !are_calls_wanted);
  return result;
}

/* Once it has been tried. */
static void finish_configure(int result) {
  rocp_tracing.result = result;
  if (result != PROF_BACKEND_OK)
    snprintf(rocp_tracing.reason, sizeof rocp_tracing.reason, "%s", prof_i_backend_last_error());
  set_configure_phase(result == PROF_BACKEND_OK ? CONFIGURED : REFUSED);
}

static int32_t initialize_tool(void (*finalize)(void), void *user) {
  (void)finalize;
  (void)user;
  int result = configure_contexts()
                   ? PROF_BACKEND_OK
                   : prof_i_rocp_fail_call(rocp_tracing.failed_function, rocp_tracing.status);
  if (result == PROF_BACKEND_OK) result = set_recorded_kinds(rocp_tracing.wanted);
  __atomic_store_n(&rocp_tracing.is_from_first, result == PROF_BACKEND_OK && rocp_tracing.wanted,
                   __ATOMIC_RELAXED);
  finish_configure(result);
  if (result == PROF_BACKEND_OK && rocp_tracing.is_ready) rocp_tracing.is_ready();
  return result == PROF_BACKEND_OK ? 0 : -1;
}

/* Keeps everything: later records are not read. */
static void finalize_tool(void *user) { (void)user; }

static prof_i_rocp_tool *rocp_tool(void) {
  static prof_i_rocp_tool one = {
      .size = sizeof one, .initialize = initialize_tool, .finalize = finalize_tool};
  return &one;
}

static prof_i_rocp_tool *configure_tool(uint32_t version, const char *runtime, uint32_t priority,
                                        void *client) {
  (void)version;
  (void)runtime;
  (void)priority;
  (void)client;
  return rocp_tool();
}

/* ---- when ---- */

static int fail_late_configure(int32_t status) {
  /* a capture has room for 160 bytes */
  return prof_i_backend_fail(PROF_BACKEND_BUSY,
                             "ask before the program's first call of HIP: it had begun, or another "
                             "tool was there (rocprofiler: %d)",
                             status);
}

static int open_rocprofiler(const prof_backend_host *host) {
  uint32_t patch;
  const int result = prof_i_rocp_library_open(host);
  if (result != PROF_BACKEND_OK) return result;
  if (!rocp_buffers_prepare(host))
    return prof_i_backend_fail_text(PROF_BACKEND_NO_MEMORY, "no memory for rocprofiler's records");
  const int32_t status =
      prof_i_rocp.rocprofiler_get_version(&rocp_tracing.major, &rocp_tracing.minor, &patch);
  return status == PROF_I_ROCP_STATUS_SUCCESS
             ? PROF_BACKEND_OK
             : prof_i_rocp_fail_call("rocprofiler_get_version", status);
}

void prof_i_hip_activity_prepare(const prof_backend_host *host) {
  if (!claim_configure()) return;
  int result = open_rocprofiler(host);
  if (result == PROF_BACKEND_OK) {
    const int32_t status = prof_i_rocp.rocprofiler_force_configure(configure_tool);
    if (configure_phase() != CONFIGURING) return; /* initialize_tool() has concluded */
    result = status != PROF_I_ROCP_STATUS_SUCCESS
                 ? fail_late_configure(status)
                 : prof_i_backend_fail_text(
                       PROF_BACKEND_VENDOR,
                       "rocprofiler_force_configure: the tool was not asked what it wants");
  }
  finish_configure(result);
}

void *prof_i_hip_activity_get_tool(const prof_backend_host *host, uint32_t kinds,
                                   void (*is_ready)(void)) {
  if (!claim_configure()) return NULL;
  const int result = open_rocprofiler(host);
  rocp_tracing.wanted = kinds;
  rocp_tracing.is_ready = is_ready;
  if (result == PROF_BACKEND_OK) return rocp_tool();
  finish_configure(result);
  return NULL;
}

bool prof_i_hip_activity_end_preinit(bool is_waiting) {
  if (configure_phase() == REFUSED ||
      __atomic_load_n(&rocp_tracing.is_taken_over, __ATOMIC_RELAXED))
    return true;
  if (is_waiting || configure_phase() != CONFIGURED) return false;
  set_recorded_kinds(0);
  __atomic_store_n(&rocp_tracing.is_from_first, 0, __ATOMIC_RELAXED);
  return true;
}

bool prof_i_hip_activity_has_begun(void) {
  const uint32_t now = configure_phase();
  return now == CONFIGURED ? __atomic_load_n(&rocp_tracing.has_begun, __ATOMIC_RELAXED)
                           : now != CONFIGURING;
}

/* ---- what is recorded ---- */

int prof_i_hip_activity_start(const prof_backend_host *host, uint32_t kinds, uint32_t *kinds_out) {
  prof_i_hip_activity_prepare(host);
  if (rocp_tracing.result != PROF_BACKEND_OK)
    return prof_i_backend_fail_text(rocp_tracing.result, rocp_tracing.reason);
  __atomic_store_n(&rocp_tracing.is_taken_over, 1, __ATOMIC_RELAXED);
  const int result = set_recorded_kinds(kinds);
  if (result != PROF_BACKEND_OK) return result;
  rocp_tracing.is_on = true;
  rocp_tracing.is_ending = false;
  rocp_tracing.wanted = kinds;
  *kinds_out = (kinds & (ON_DEVICES | OF_CALLS)) |
               (__atomic_exchange_n(&rocp_tracing.is_from_first, 0, __ATOMIC_RELAXED)
                    ? PROF_BACKEND_FROM_FIRST
                    : 0);
  return PROF_BACKEND_OK;
}

int prof_i_hip_activity_stop(void) {
  if (!rocp_tracing.is_on) return PROF_BACKEND_OK;
  rocp_tracing.is_on = false;
  rocp_tracing.is_ending = true;
  for (int i = WORK; i < CONTEXTS; i++) set_context_active(i, false);
  prof_i_rocp.rocprofiler_flush_buffer(rocp_tracing.buffer);
  return PROF_BACKEND_OK;
}

/* ---- what was recorded ---- */

static void read_rocp_block(const rocp_block *block) {
  for (size_t at = 0; at < block->bytes / 8;) {
    const prof_i_rocp_record *const set_recorded_kinds =
        (const prof_i_rocp_record *)(const void *)&block->words[at];
    prof_i_hip_record_add(set_recorded_kinds);
    at += ((size_t)set_recorded_kinds->size + 7) / 8;
  }
}

static uint64_t read_all_rocp_blocks(void) {
  rocp_block *block, *next;
  PROF_I_TAKE_PUSHED(&rocp_pool.completed, block);
  for (; block; block = next) {
    next = block->next;
    read_rocp_block(block);
    rocp_block_give_back(block);
  }
  return rocp_buffers_lost();
}

static bool flush_rocp(const prof_backend_host *host, uint32_t how) {
  const uint64_t now = host->now_ns();
  if (!rocp_tracing.is_on ||
      (how != PROF_BACKEND_FLUSH && now - rocp_tracing.flushed_ns < FLUSH_NS))
    return false;
  rocp_tracing.flushed_ns = now;
  prof_i_rocp.rocprofiler_flush_buffer(rocp_tracing.buffer);
  return true;
}

int prof_i_hip_activity_drain(const prof_backend_host *host, uint32_t how, uint64_t *lost_out) {
  if (configure_phase() != CONFIGURED) return PROF_BACKEND_OK;
  const bool is_flushed = flush_rocp(host, how);
  prof_i_hip_records_begin(host, rocp_tracing.agents, rocp_tracing.agent_count, rocp_tracing.wanted,
                           rocp_tracing.is_ending);
  *lost_out = read_all_rocp_blocks();
  if (is_flushed || rocp_tracing.is_ending) prof_i_hip_records_flush(how == PROF_BACKEND_FLUSH);
  *lost_out += prof_i_hip_records_unfinished();
  rocp_tracing.is_ending = false;
  return PROF_BACKEND_OK;
}

int prof_i_hip_activity_clock(const prof_backend_host *host, prof_backend_pair *out) {
  prof_backend_pair pair = {.size = out->size};
  if (configure_phase() != CONFIGURED)
    return prof_i_backend_fail_text(PROF_BACKEND_UNSUPPORTED,
                                    "rocprofiler, whose clock it is, has not been asked to record");
  pair.host_before_ns = host->now_ns();
  pair.host_before_ticks = host->ticks();
  const int32_t status = prof_i_rocp.rocprofiler_get_timestamp(&pair.device_ns);
  pair.host_after_ticks = host->ticks();
  pair.host_after_ns = host->now_ns();
  if (status != PROF_I_ROCP_STATUS_SUCCESS)
    return prof_i_rocp_fail_call("rocprofiler_get_timestamp", status);
  *out = pair;
  return PROF_BACKEND_OK;
}
