/* See activity.h. rocprofiler lets a tool say what it wants once, before HIP begins: so all that
   may be wanted is configured then, in contexts of which each is started when it is. */
#include "activity.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "../device/words.h"
#include "buffers.h"
#include "records.h"
#include "rocprofiler_library.h"
#include "words.h"

enum { FLUSH_NS = 200000000, BUFFER_BYTES = 1 << 18, OPERATIONS_MAX = 512, REASON_BYTES = 256 };

/* Which contexts there are: symbols of code that is loaded, always; what devices do; the calls that
   ask for it; all calls. */
enum { NAMES, WORK, LAUNCHES, CALLS, CONTEXTS };

/* UNTRIED to CONFIGURING, once: by whoever may try. */
enum { UNTRIED, CONFIGURING, CONFIGURED, REFUSED };

enum {
  ON_DEVICES = 1u << PROF_BACKEND_KERNEL | 1u << PROF_BACKEND_COPY,
  OF_CALLS = 1u << PROF_BACKEND_CALL
};

static struct {
  uint32_t phase;         /* release, acquire: what is configured stands before it */
  uint32_t is_taken_over; /* start() has been called; relaxed */
  bool is_on, is_ending;  /* is_ending: between stop() and the drain behind it */
  bool is_on_of[CONTEXTS];
  uint32_t major, minor;
  prof_i_rocp_id contexts[CONTEXTS], buffer;
  prof_i_hip_agent agents[PROF_I_HIP_AGENTS];
  uint32_t agent_count;
  int32_t operations[OPERATIONS_MAX]; /* of calls that put work on devices */
  size_t operation_count;
  uint32_t has_begun; /* HIP; relaxed */
  const char *failed; /* the first function that said an error while it was configured */
  int32_t status;
  int result; /* why it is not configured */
  char reason[REASON_BYTES];
  /* it records since before the program's first call of HIP, and start() has not been called;
     relaxed */
  uint32_t is_from_first;
  /* bits of prof_backend_kind; before start() of what is recorded from the beginning */
  uint32_t wanted;
  void (*is_ready)(void);
  uint64_t flushed_ns;
} own;

static uint32_t phase(void) { return __atomic_load_n(&own.phase, __ATOMIC_ACQUIRE); }
static void set_phase(uint32_t to) { __atomic_store_n(&own.phase, to, __ATOMIC_RELEASE); }

static bool may_try(void) {
  uint32_t untried = UNTRIED;
  return __atomic_compare_exchange_n(&own.phase, &untried, CONFIGURING, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

/* ---- what is configured ---- */

static bool is_done(const char *function, int32_t status) {
  if (status == PROF_I_ROCP_STATUS_SUCCESS) return true;
  if (!own.failed) own.failed = function;
  own.status = status;
  return false;
}

static void on_symbol(const void *payload, int32_t kind, int32_t operation, int32_t phase) {
  const prof_i_rocp_symbol *const symbol = payload;
  if (kind != PROF_I_ROCP_CALLBACK_TRACING_CODE_OBJECT ||
      operation != PROF_I_ROCP_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER ||
      phase != PROF_I_ROCP_CALLBACK_PHASE_LOAD)
    return;
  if (symbol && symbol->size >= sizeof *symbol) prof_i_rocp_name_put(symbol->kernel, symbol->name);
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

static bool is_of_work(const char *name) {
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
  if (is_of_work(name) && own.operation_count < OPERATIONS_MAX)
    own.operations[own.operation_count++] = operation;
  return 0;
}

static int32_t on_agents(int32_t version, const void **agents, size_t count, void *user) {
  (void)version;
  (void)user;
  for (size_t i = 0; i < count && own.agent_count < PROF_I_HIP_AGENTS; i++) {
    const prof_i_rocp_agent *const agent = agents[i];
    if (agent->size >= sizeof *agent && agent->type == PROF_I_ROCP_AGENT_TYPE_GPU)
      own.agents[own.agent_count++] = (prof_i_hip_agent){agent->id, agent->location, agent->domain};
  }
  return PROF_I_ROCP_STATUS_SUCCESS;
}

static void on_begin(int32_t type, uint64_t version, uint64_t instance, void **tables,
                     uint64_t count, void *user) {
  (void)type;
  (void)version;
  (void)instance;
  (void)tables;
  (void)count;
  (void)user;
  __atomic_store_n(&own.has_begun, 1, __ATOMIC_RELAXED);
}

#define DONE(function, ...) is_done(#function, prof_i_rocp.function(__VA_ARGS__))

static bool record_kind(int context, int32_t kind, const int32_t *operations, size_t count) {
  return DONE(rocprofiler_configure_buffer_tracing_service, own.contexts[context], kind, operations,
              count, own.buffer);
}

static bool follow_code(void) {
  void *callback = NULL;
  if (own.major >= 1) {
    void (*const one)(prof_i_rocp_callback_1, void *, void *) = on_code_1;
    memcpy(&callback, &one, sizeof callback);
  } else {
    void (*const zero)(prof_i_rocp_callback_0, void *, void *) = on_code_0;
    memcpy(&callback, &zero, sizeof callback);
  }
  return DONE(rocprofiler_configure_callback_tracing_service, own.contexts[NAMES],
              PROF_I_ROCP_CALLBACK_TRACING_CODE_OBJECT, NULL, 0, callback, NULL);
}

static bool configure_all(void) {
  if (!DONE(rocprofiler_at_intercept_table_registration, on_begin, PROF_I_ROCP_HIP_RUNTIME_TABLE,
            NULL))
    return false;
  for (int i = 0; i < CONTEXTS; i++)
    if (!DONE(rocprofiler_create_context, &own.contexts[i])) return false;
  if (!DONE(rocprofiler_create_buffer, own.contexts[WORK], BUFFER_BYTES, BUFFER_BYTES / 2,
            PROF_I_ROCP_BUFFER_POLICY_DISCARD, prof_i_rocp_buffers_fill, NULL, &own.buffer))
    return false;
  if (!DONE(rocprofiler_iterate_buffer_tracing_kind_operations,
            PROF_I_ROCP_BUFFER_TRACING_HIP_RUNTIME_API, on_operation, NULL))
    return false;
  if (!DONE(rocprofiler_query_available_agents, PROF_I_ROCP_AGENT_INFO_VERSION_0, on_agents,
            sizeof(prof_i_rocp_agent), NULL))
    return false;
  return follow_code() && record_kind(WORK, PROF_I_ROCP_BUFFER_TRACING_KERNEL_DISPATCH, NULL, 0) &&
         record_kind(WORK, PROF_I_ROCP_BUFFER_TRACING_MEMORY_COPY, NULL, 0) &&
         (own.operation_count == 0 ||
          record_kind(LAUNCHES, PROF_I_ROCP_BUFFER_TRACING_HIP_RUNTIME_API, own.operations,
                      own.operation_count)) &&
         record_kind(CALLS, PROF_I_ROCP_BUFFER_TRACING_HIP_RUNTIME_API, NULL, 0) &&
         DONE(rocprofiler_start_context, own.contexts[NAMES]);
}

static int choose(int context, bool is_wanted) {
  if (own.is_on_of[context] == is_wanted) return PROF_BACKEND_OK;
  const int32_t status = is_wanted ? prof_i_rocp.rocprofiler_start_context(own.contexts[context])
                                   : prof_i_rocp.rocprofiler_stop_context(own.contexts[context]);
  if (status != PROF_I_ROCP_STATUS_SUCCESS)
    return prof_i_rocp_fail_call(
        is_wanted ? "rocprofiler_start_context" : "rocprofiler_stop_context", status);
  own.is_on_of[context] = is_wanted;
  return PROF_BACKEND_OK;
}

static int record(uint32_t kinds) {
  const bool is_work_wanted = (kinds & ON_DEVICES) != 0, are_calls_wanted = (kinds & OF_CALLS) != 0;
  int result = choose(WORK, is_work_wanted);
  if (result == PROF_BACKEND_OK) result = choose(CALLS, are_calls_wanted);
  /* they are among all */
  if (result == PROF_BACKEND_OK) result = choose(LAUNCHES, is_work_wanted && !are_calls_wanted);
  return result;
}

/* Once it has been tried. */
static void conclude(int result) {
  own.result = result;
  if (result != PROF_BACKEND_OK) snprintf(own.reason, sizeof own.reason, "%s", prof_i_words_last());
  set_phase(result == PROF_BACKEND_OK ? CONFIGURED : REFUSED);
}

static int32_t initialize(void (*finalize)(void), void *user) {
  (void)finalize;
  (void)user;
  int result = configure_all() ? PROF_BACKEND_OK : prof_i_rocp_fail_call(own.failed, own.status);
  if (result == PROF_BACKEND_OK) result = record(own.wanted);
  __atomic_store_n(&own.is_from_first, result == PROF_BACKEND_OK && own.wanted, __ATOMIC_RELAXED);
  conclude(result);
  if (result == PROF_BACKEND_OK && own.is_ready) own.is_ready();
  return result == PROF_BACKEND_OK ? 0 : -1;
}

/* Nothing is given back: what it hands over after that is not read. */
static void finalized(void *user) { (void)user; }

static prof_i_rocp_tool *tool(void) {
  static prof_i_rocp_tool one = {
      .size = sizeof one, .initialize = initialize, .finalize = finalized};
  return &one;
}

static prof_i_rocp_tool *configure(uint32_t version, const char *runtime, uint32_t priority,
                                   void *client) {
  (void)version;
  (void)runtime;
  (void)priority;
  (void)client;
  return tool();
}

/* ---- when ---- */

static int refuse_late(int32_t status) {
  /* a capture has room for 160 bytes */
  return prof_i_words_fail(PROF_BACKEND_BUSY,
                           "ask before the program's first call of HIP: it had begun, or another "
                           "tool was there (rocprofiler: %d)",
                           status);
}

static int open_library(const prof_backend_host *host) {
  uint32_t patch;
  const int result = prof_i_rocp_library_open(host);
  if (result != PROF_BACKEND_OK) return result;
  if (!prof_i_rocp_buffers_prepare(host))
    return prof_i_words_refuse(PROF_BACKEND_NO_MEMORY, "no memory for rocprofiler's records");
  const int32_t status = prof_i_rocp.rocprofiler_get_version(&own.major, &own.minor, &patch);
  return status == PROF_I_ROCP_STATUS_SUCCESS
             ? PROF_BACKEND_OK
             : prof_i_rocp_fail_call("rocprofiler_get_version", status);
}

void prof_i_hip_activity_prepare(const prof_backend_host *host) {
  if (!may_try()) return;
  int result = open_library(host);
  if (result == PROF_BACKEND_OK) {
    const int32_t status = prof_i_rocp.rocprofiler_force_configure(configure);
    if (phase() != CONFIGURING) return; /* initialize() has concluded */
    result = status != PROF_I_ROCP_STATUS_SUCCESS
                 ? refuse_late(status)
                 : prof_i_words_refuse(
                       PROF_BACKEND_VENDOR,
                       "rocprofiler_force_configure: the tool was not asked what it wants");
  }
  conclude(result);
}

void *prof_i_hip_activity_adopt(const prof_backend_host *host, uint32_t kinds,
                                void (*is_ready)(void)) {
  if (!may_try()) return NULL;
  const int result = open_library(host);
  own.wanted = kinds;
  own.is_ready = is_ready;
  if (result == PROF_BACKEND_OK) return tool();
  conclude(result);
  return NULL;
}

bool prof_i_hip_activity_settle(bool is_waiting) {
  if (phase() == REFUSED || __atomic_load_n(&own.is_taken_over, __ATOMIC_RELAXED)) return true;
  if (is_waiting || phase() != CONFIGURED) return false;
  record(0);
  __atomic_store_n(&own.is_from_first, 0, __ATOMIC_RELAXED);
  return true;
}

bool prof_i_hip_activity_has_begun(void) {
  const uint32_t now = phase();
  return now == CONFIGURED ? __atomic_load_n(&own.has_begun, __ATOMIC_RELAXED) : now != CONFIGURING;
}

/* ---- what is recorded ---- */

int prof_i_hip_activity_start(const prof_backend_host *host, uint32_t kinds, uint32_t *kinds_out) {
  prof_i_hip_activity_prepare(host);
  if (own.result != PROF_BACKEND_OK) return prof_i_words_refuse(own.result, own.reason);
  __atomic_store_n(&own.is_taken_over, 1, __ATOMIC_RELAXED);
  const int result = record(kinds);
  if (result != PROF_BACKEND_OK) return result;
  own.is_on = true;
  own.is_ending = false;
  own.wanted = kinds;
  *kinds_out =
      (kinds & (ON_DEVICES | OF_CALLS)) |
      (__atomic_exchange_n(&own.is_from_first, 0, __ATOMIC_RELAXED) ? PROF_BACKEND_FROM_FIRST : 0);
  return PROF_BACKEND_OK;
}

int prof_i_hip_activity_stop(void) {
  if (!own.is_on) return PROF_BACKEND_OK;
  own.is_on = false;
  own.is_ending = true;
  for (int i = WORK; i < CONTEXTS; i++) choose(i, false);
  prof_i_rocp.rocprofiler_flush_buffer(own.buffer);
  return PROF_BACKEND_OK;
}

/* ---- what was recorded ---- */

static void read(const prof_i_rocp_block *block) {
  for (size_t at = 0; at < block->bytes / 8;) {
    const prof_i_rocp_record *const record =
        (const prof_i_rocp_record *)(const void *)&block->words[at];
    prof_i_hip_record_take(record);
    at += ((size_t)record->size + 7) / 8;
  }
}

static uint64_t read_all(void) {
  for (prof_i_rocp_block *block = prof_i_rocp_blocks_take(), *next; block; block = next) {
    next = block->next;
    read(block);
    prof_i_rocp_block_give_back(block);
  }
  return prof_i_rocp_buffers_lost();
}

static bool flush(const prof_backend_host *host, uint32_t how) {
  const uint64_t now = host->now_ns();
  if (!own.is_on || (how != PROF_BACKEND_FLUSH && now - own.flushed_ns < FLUSH_NS)) return false;
  own.flushed_ns = now;
  prof_i_rocp.rocprofiler_flush_buffer(own.buffer);
  return true;
}

int prof_i_hip_activity_drain(const prof_backend_host *host, uint32_t how, uint64_t *lost_out) {
  if (phase() != CONFIGURED) return PROF_BACKEND_OK;
  const bool is_flushed = flush(host, how);
  prof_i_hip_records_begin(host, own.agents, own.agent_count, own.wanted, own.is_ending);
  *lost_out = read_all();
  if (is_flushed || own.is_ending) prof_i_hip_records_settle(how == PROF_BACKEND_FLUSH);
  *lost_out += prof_i_hip_records_unfinished();
  own.is_ending = false;
  return PROF_BACKEND_OK;
}

int prof_i_hip_activity_clock(const prof_backend_host *host, prof_backend_pair *out) {
  prof_backend_pair pair = {.size = out->size};
  if (phase() != CONFIGURED)
    return prof_i_words_refuse(PROF_BACKEND_UNSUPPORTED,
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
