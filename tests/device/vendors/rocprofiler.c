/* An emulated rocprofiler-sdk over the emulated HIP runtime: librocprofiler-sdk.so.1, or with
   EMULATED_ROCP_0 .so.0, whose records and callbacks of calls are shorter. It is configured once,
   before HIP begins. It hands out buffers on a thread of its own. Its agents are in another order
   than HIP's devices, with a processor among them. No device is behind it. */
#define _GNU_SOURCE
#include "rocprofiler.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../../src/hip/tracer_api.h"
#include "hip.h"

#define ROCP __attribute__((visibility("default")))

enum {
  SUCCESS = 0,
  ERROR = 1,
  NOT_FOUND = 4,
  LOCKED = 16,
  CONTEXTS = 8,
  KINDS = 64,
  OPERATIONS = 64,
  RECORDS = 1 << 16,
  RECORD_BYTES = 256,
  LATE = 256
};
#ifdef EMULATED_ROCP_0
enum { MAJOR = 0, MINOR = 5, FIRST_OPERATION = 3 };
#else
enum { MAJOR = 1, MINOR = 1, FIRST_OPERATION = 7 };
#endif
static const char *const operations[EMULATED_HIP_CALLS] = {
    "hipModuleLaunchKernel", "hipMemcpyHtoDAsync", "hipMemcpyDtoHAsync", "hipStreamSynchronize"};

typedef struct context {
  bool is_active, has_kind[KINDS], is_chosen[KINDS][OPERATIONS];
  void *code; /* the callback of code objects */
} context;

typedef struct stored {
  prof_i_rocp_header header;
  uint64_t words[RECORD_BYTES / 8];
} stored;

typedef struct work {
  emulated_hip_done it;
  bool is_wanted;
} work;

static struct {
  pthread_mutex_t lock;
  emulated_rocp state;
  context contexts[CONTEXTS];
  uint32_t context_count;
  int is_initialized; /* -1: it is just being */
  prof_i_rocp_records records;
  void *user;
  stored *all;
  size_t count;
  struct {
    uint64_t kernel;
    const char *name;
  } late[LATE];
  uint32_t late_count;
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define DECLARE(need, name, arguments) ROCP int32_t name arguments;
PROF_I_ROCP_FUNCTIONS(DECLARE)
#define DECLARE_TEXT(name, arguments) ROCP const char *name arguments;
PROF_I_ROCP_TEXTS(DECLARE_TEXT)

ROCP emulated_rocp *emulated_rocp_state(void) { return &own.state; }

static void count(uint32_t *what, int32_t by) {
  __atomic_fetch_add(what, (uint32_t)by, __ATOMIC_RELAXED);
}

static bool takes(uint32_t *left) {
  const uint32_t some = __atomic_load_n(left, __ATOMIC_RELAXED);
  if (some) __atomic_store_n(left, some - 1, __ATOMIC_RELAXED);
  return some;
}

static uint64_t read_clock(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- what is recorded; lock held ---- */

static bool is_active(int32_t kind, int32_t operation) {
  for (uint32_t i = 0; i < own.context_count; i++)
    if (own.contexts[i].is_active && own.contexts[i].has_kind[kind] &&
        (operation < 0 || own.contexts[i].is_chosen[kind][operation]))
      return true;
  return false;
}

static void put(int32_t kind, const void *record, size_t bytes) {
  const uint32_t wanted = __atomic_load_n(&own.state.room, __ATOMIC_RELAXED);
  const size_t room = wanted ? wanted : RECORDS;
  if (own.count >= room) {
    count(&own.state.dropped, 1);
    return;
  }
  stored *const s = &own.all[own.count++];
  s->header = (prof_i_rocp_header){PROF_I_ROCP_BUFFER_CATEGORY_TRACING, (uint32_t)kind, s->words};
  memcpy(s->words, record, bytes);
}

static void call_code(uint64_t kernel, const char *name) {
  prof_i_rocp_symbol symbol = {.size = 96, .kernel = kernel, .object = 1, .name = name};
  for (uint32_t i = 0; i < own.context_count; i++) {
    void *const callback = own.contexts[i].is_active ? own.contexts[i].code : NULL;
    if (!callback) continue;
#ifdef EMULATED_ROCP_0
    void (*call)(prof_i_rocp_callback_0, void *, void *);
    const prof_i_rocp_callback_0 of = {
        .kind = PROF_I_ROCP_CALLBACK_TRACING_CODE_OBJECT,
        .operation = PROF_I_ROCP_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER,
        .phase = PROF_I_ROCP_CALLBACK_PHASE_LOAD,
        .payload = &symbol};
#else
    void (*call)(prof_i_rocp_callback_1, void *, void *);
    const prof_i_rocp_callback_1 of = {
        .kind = PROF_I_ROCP_CALLBACK_TRACING_CODE_OBJECT,
        .operation = PROF_I_ROCP_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER,
        .phase = PROF_I_ROCP_CALLBACK_PHASE_LOAD,
        .payload = &symbol};
#endif
    memcpy(&call, &callback, sizeof call);
    call(of, NULL, NULL);
  }
}

/* ---- what the runtime tells ---- */

static void on_call(emulated_hip_call which, uint64_t correlation, uint64_t start_ns,
                    uint64_t end_ns) {
  const int32_t kind = PROF_I_ROCP_BUFFER_TRACING_HIP_RUNTIME_API,
                operation = FIRST_OPERATION + (int32_t)which;
  const prof_i_rocp_record head = {
      .kind = kind, .operation = operation, .correlation = correlation};
  pthread_mutex_lock(&own.lock);
  if (is_active(kind, operation)) {
#ifdef EMULATED_ROCP_0
    prof_i_rocp_call_0 call = {head, start_ns, end_ns, (uint64_t)gettid()};
#else
    prof_i_rocp_call_1 call = {head, 0, start_ns, end_ns, (uint64_t)gettid()};
#endif
    call.record.size = sizeof call;
    put(kind, &call, sizeof call);
  }
  pthread_mutex_unlock(&own.lock);
}

static void *on_begin(const emulated_hip_done *it) {
  work *const w = calloc(1, sizeof *w);
  if (!w) abort();
  w->it = *it;
  pthread_mutex_lock(&own.lock);
  w->is_wanted =
      is_active(it->kind == EMULATED_HIP_KERNEL ? PROF_I_ROCP_BUFFER_TRACING_KERNEL_DISPATCH
                                                : PROF_I_ROCP_BUFFER_TRACING_MEMORY_COPY,
                -1);
  pthread_mutex_unlock(&own.lock);
  return w;
}

enum { CPU_AGENT = 11, FIRST_GPU = 20 };
static uint64_t agent_of(int device) {
  return FIRST_GPU + (uint64_t)(EMULATED_HIP_DEVICES - 1 - device);
}

static void on_end(void *begun, uint64_t start_ns, uint64_t end_ns) {
  work *const w = begun;
  const emulated_hip_done *const it = &w->it;
  pthread_mutex_lock(&own.lock);
  const bool has_none =
      w->is_wanted && it->kind == EMULATED_HIP_KERNEL && takes(&own.state.no_times);
  const uint64_t start = has_none ? 0 : start_ns, end = has_none ? 0 : end_ns;
  /* In the real ones more stands behind what prof knows. */
  struct {
    prof_i_rocp_dispatch known;
    uint64_t more[8];
  } dispatch = {.known = {.record = {sizeof dispatch, PROF_I_ROCP_BUFFER_TRACING_KERNEL_DISPATCH, 2,
                                     it->correlation, 0},
                          .thread = it->thread,
                          .start = start,
                          .end = end,
                          .info_size = 128,
                          .agent = agent_of(it->device),
                          .queue = it->queue,
                          .kernel = it->kernel,
                          .group_bytes = it->shared_bytes,
                          .block = {it->block[0], it->block[1], it->block[2]},
                          .items = {it->groups[0] * it->block[0], it->groups[1] * it->block[1],
                                    it->groups[2] * it->block[2]}},
                .more = {0xa5a5a5a5}};
  prof_i_rocp_copy copy = {.record = {sizeof copy, PROF_I_ROCP_BUFFER_TRACING_MEMORY_COPY,
                                      it->to_host ? PROF_I_ROCP_MEMORY_COPY_DEVICE_TO_HOST
                                                  : PROF_I_ROCP_MEMORY_COPY_HOST_TO_DEVICE,
                                      it->correlation, 0},
                           .thread = it->thread,
                           .start = start,
                           .end = end,
                           .to = it->to_host ? CPU_AGENT : agent_of(it->device),
                           .from = it->to_host ? agent_of(it->device) : CPU_AGENT,
                           .bytes = it->bytes};
  if (w->is_wanted && it->kind == EMULATED_HIP_KERNEL)
    put(PROF_I_ROCP_BUFFER_TRACING_KERNEL_DISPATCH, &dispatch, sizeof dispatch);
  if (w->is_wanted && it->kind == EMULATED_HIP_COPY)
    put(PROF_I_ROCP_BUFFER_TRACING_MEMORY_COPY, &copy, sizeof copy);
  pthread_mutex_unlock(&own.lock);
  free(w);
}

static void on_load(uint64_t kernel, const char *name) {
  pthread_mutex_lock(&own.lock);
  if (own.state.names_late && own.late_count < LATE) {
    own.late[own.late_count].kernel = kernel;
    own.late[own.late_count++].name = name;
  } else {
    call_code(kernel, name);
  }
  pthread_mutex_unlock(&own.lock);
}

static prof_i_rocp_table begins;
static void *begins_user;
static void on_start(void) {
  if (begins) begins(PROF_I_ROCP_HIP_RUNTIME_TABLE, 60000, 0, NULL, 1, begins_user);
}

static const emulated_hip_observer observer = {on_call, on_begin, on_end, on_start, on_load};

/* ---- rocprofiler's functions ---- */

#define LOCKED_AS(...)                    \
  do {                                    \
    count(&own.state.calls, 1);           \
    pthread_mutex_lock(&own.lock);        \
    const int32_t result = (__VA_ARGS__); \
    pthread_mutex_unlock(&own.lock);      \
    return result;                        \
  } while (0)

int32_t rocprofiler_get_version(uint32_t *major, uint32_t *minor, uint32_t *patch) {
  *major = MAJOR;
  *minor = MINOR;
  *patch = 0;
  return SUCCESS;
}

const char *rocprofiler_get_status_string(int32_t status) {
  return status == LOCKED      ? "Function call is not valid outside of configuration"
         : status == NOT_FOUND ? "Kind identifier is invalid"
         : status              ? "General error"
                               : "Success";
}

int32_t rocprofiler_get_timestamp(uint64_t *ns_out) {
  *ns_out = read_clock(CLOCK_BOOTTIME);
  return SUCCESS;
}

int32_t rocprofiler_is_initialized(int *status) {
  LOCKED_AS((*status = own.is_initialized, SUCCESS));
}

static void *find_runtime(const char *symbol) {
  void *library = dlopen("libamdhip64.so.6", RTLD_NOW | RTLD_NOLOAD);
  if (!library) library = dlopen("libamdhip64.so.5", RTLD_NOW | RTLD_NOLOAD);
  return library ? dlsym(library, symbol) : NULL;
}

/* Not when HIP has begun, nor when another one was there. */
int32_t rocprofiler_force_configure(prof_i_rocp_configure configure) {
  emulated_hip *(*state)(void) = NULL;
  void (*observe)(const emulated_hip_observer *by) = NULL;
  char client[32]; /* whatever is here is not the tool's */
  count(&own.state.calls, 1);
  *(void **)&state = find_runtime("emulated_hip_state");
  *(void **)&observe = find_runtime("emulated_hip_observe");
  if (!state || !observe || own.state.has_tool ||
      __atomic_load_n(&state()->calls, __ATOMIC_RELAXED))
    return LOCKED;
  pthread_mutex_lock(&own.lock);
  const bool is_late = own.is_initialized != 0;
  if (!is_late) own.is_initialized = -1;
  pthread_mutex_unlock(&own.lock);
  if (is_late) return LOCKED;
  prof_i_rocp_tool *const tool = configure(MAJOR * 10000 + MINOR * 100, "emulated", 0, client);
  const bool has_begun =
      tool && tool->size >= sizeof *tool && tool->initialize(NULL, tool->user) == 0;
  own.is_initialized = 1;
  count(&own.state.configured, 1);
  if (has_begun) observe(&observer);
  return SUCCESS;
}

/* HIP begins, and ROCP_TOOL_LIBRARIES names one that says what it wants. */
ROCP void emulated_rocp_ask_tools(void);
ROCP void emulated_rocp_ask_tools(void) {
  void *const library = dlopen(getenv("ROCP_TOOL_LIBRARIES"), RTLD_LAZY | RTLD_GLOBAL);
  prof_i_rocp_configure configure = NULL;
  if (library) *(void **)&configure = dlsym(library, "rocprofiler_configure");
  if (configure) rocprofiler_force_configure(configure);
}

int32_t rocprofiler_at_intercept_table_registration(prof_i_rocp_table call, int32_t which,
                                                    void *user) {
  if (own.is_initialized > 0 || which != PROF_I_ROCP_HIP_RUNTIME_TABLE) return LOCKED;
  begins = call;
  begins_user = user;
  return SUCCESS;
}

static int32_t create_context(prof_i_rocp_id *out) {
  if (own.is_initialized != -1) return LOCKED;
  if (out->handle || own.context_count == CONTEXTS) return ERROR;
  out->handle = 100 + own.context_count++;
  return SUCCESS;
}
int32_t rocprofiler_create_context(prof_i_rocp_id *out) { LOCKED_AS(create_context(out)); }

static context *context_of(prof_i_rocp_id id) {
  return id.handle >= 100 && id.handle - 100 < own.context_count ? &own.contexts[id.handle - 100]
                                                                 : NULL;
}

static int32_t set_active(prof_i_rocp_id id, bool is_on) {
  context *const c = context_of(id);
  if (!c) return NOT_FOUND;
  if (c->is_active != is_on) count(&own.state.active, is_on ? 1 : -1);
  c->is_active = is_on;
  return SUCCESS;
}
int32_t rocprofiler_start_context(prof_i_rocp_id id) { LOCKED_AS(set_active(id, true)); }
int32_t rocprofiler_stop_context(prof_i_rocp_id id) { LOCKED_AS(set_active(id, false)); }

static int32_t create_buffer(prof_i_rocp_records records, void *user, prof_i_rocp_id *out) {
  if (own.is_initialized != -1) return LOCKED;
  own.all = calloc(RECORDS, sizeof *own.all);
  own.records = records;
  own.user = user;
  out->handle = 500;
  return own.all ? SUCCESS : ERROR;
}
int32_t rocprofiler_create_buffer(prof_i_rocp_id id, size_t bytes, size_t watermark, int32_t policy,
                                  prof_i_rocp_records records, void *user, prof_i_rocp_id *out) {
  LOCKED_AS(context_of(id) && watermark <= bytes && policy == PROF_I_ROCP_BUFFER_POLICY_DISCARD
                ? create_buffer(records, user, out)
                : ERROR);
}

/* Out of their order, as devices end them. */
static void hand_out(void) {
  prof_i_rocp_header **const headers = calloc(own.count + 1, sizeof *headers);
  size_t count_out = 0;
  if (!headers) abort();
  for (int calls = 0; calls < 2; calls++)
    for (size_t i = 0; i < own.count; i++) {
      const bool is_call = own.all[i].header.kind == PROF_I_ROCP_BUFFER_TRACING_HIP_RUNTIME_API;
      if (is_call == ((calls == 1) == (own.state.calls_last != 0)))
        headers[count_out++] = &own.all[i].header;
    }
  if (count_out)
    own.records((prof_i_rocp_id){100}, (prof_i_rocp_id){500}, headers, count_out, own.user,
                own.state.dropped);
  own.count = 0;
  free(headers);
}

static void *flush(void *unused) {
  (void)unused;
  pthread_mutex_lock(&own.lock);
  hand_out();
  for (uint32_t i = 0; i < own.late_count; i++) call_code(own.late[i].kernel, own.late[i].name);
  own.late_count = 0;
  pthread_mutex_unlock(&own.lock);
  return NULL;
}

/* By a thread of its own, which it waits for. */
int32_t rocprofiler_flush_buffer(prof_i_rocp_id buffer) {
  pthread_t thread;
  count(&own.state.calls, 1);
  count(&own.state.flushes, 1);
  while (__atomic_load_n(&own.state.hangs, __ATOMIC_RELAXED)) usleep(1000);
  if (buffer.handle != 500 || pthread_create(&thread, NULL, flush, NULL) != 0) return ERROR;
  pthread_join(thread, NULL);
  return SUCCESS;
}

static int32_t add_kind(prof_i_rocp_id id, int32_t kind, const int32_t *chosen,
                        size_t chosen_count) {
  context *const c = context_of(id);
  if (own.is_initialized != -1) return LOCKED;
  if (own.state.service_error) return own.state.service_error;
  if (!c || kind < 0 || kind >= KINDS || c->has_kind[kind]) return NOT_FOUND;
  c->has_kind[kind] = true;
  for (int32_t i = 0; i < OPERATIONS; i++) c->is_chosen[kind][i] = chosen_count == 0;
  for (size_t i = 0; i < chosen_count; i++) c->is_chosen[kind][chosen[i]] = true;
  return SUCCESS;
}
int32_t rocprofiler_configure_buffer_tracing_service(prof_i_rocp_id id, int32_t kind,
                                                     const int32_t *chosen, size_t chosen_count,
                                                     prof_i_rocp_id buffer) {
  LOCKED_AS(buffer.handle == 500 ? add_kind(id, kind, chosen, chosen_count) : ERROR);
}

static int32_t add_code(prof_i_rocp_id id, int32_t kind, void *callback) {
  context *const c = context_of(id);
  if (own.is_initialized != -1) return LOCKED;
  if (!c || kind != PROF_I_ROCP_CALLBACK_TRACING_CODE_OBJECT) return NOT_FOUND;
  c->code = callback;
  return SUCCESS;
}
int32_t rocprofiler_configure_callback_tracing_service(prof_i_rocp_id id, int32_t kind,
                                                       const int32_t *chosen, size_t chosen_count,
                                                       void *callback, void *user) {
  (void)chosen;
  (void)chosen_count;
  (void)user;
  LOCKED_AS(add_code(id, kind, callback));
}

int32_t rocprofiler_iterate_buffer_tracing_kind_operations(int32_t kind, prof_i_rocp_operation each,
                                                           void *user) {
  if (kind != PROF_I_ROCP_BUFFER_TRACING_HIP_RUNTIME_API) return NOT_FOUND;
  for (int32_t i = 0; i < EMULATED_HIP_CALLS; i++)
    if (each(kind, FIRST_OPERATION + i, user) != 0) break;
  return SUCCESS;
}

int32_t rocprofiler_query_buffer_tracing_kind_operation_name(int32_t kind, int32_t operation,
                                                             const char **name, uint64_t *bytes) {
  if (kind != PROF_I_ROCP_BUFFER_TRACING_HIP_RUNTIME_API || operation < FIRST_OPERATION ||
      operation >= FIRST_OPERATION + EMULATED_HIP_CALLS)
    return NOT_FOUND;
  *name = operations[operation - FIRST_OPERATION];
  *bytes = strlen(*name);
  return SUCCESS;
}

int32_t rocprofiler_query_available_agents(int32_t version, prof_i_rocp_agents each, size_t bytes,
                                           void *user) {
  static prof_i_rocp_agent agents[1 + EMULATED_HIP_DEVICES];
  const void *all[1 + EMULATED_HIP_DEVICES];
  if (version != PROF_I_ROCP_AGENT_INFO_VERSION_0 || bytes < sizeof(prof_i_rocp_agent))
    return ERROR;
  agents[0] = (prof_i_rocp_agent){.size = sizeof *agents, .id = CPU_AGENT, .type = 1};
  for (int i = 0; i < EMULATED_HIP_DEVICES; i++)
    agents[1 + i] =
        (prof_i_rocp_agent){.size = sizeof *agents,
                            .id = FIRST_GPU + (uint64_t)i,
                            .type = PROF_I_ROCP_AGENT_TYPE_GPU,
                            .location = (uint32_t)(0x0c + (EMULATED_HIP_DEVICES - 1 - i)) << 8};
  for (int i = 0; i <= EMULATED_HIP_DEVICES; i++) all[i] = &agents[i];
  return each(version, all, 1 + EMULATED_HIP_DEVICES, user);
}
