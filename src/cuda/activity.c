/* Starts and stops CUPTI's records, and fetches them. See internal.h. Only one tool at a time can
   subscribe to CUPTI. But a tool without a subscription can still receive the records of another
   one. So prof subscribes while it records, to make other tools aware of it, and requests no
   callback. cuptiFinalize() is never called. */
#define _GNU_SOURCE
#include "internal.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "../base/process.h"
#include "../device/vendor.h"

/* ---- buffers ---- */

/* A pool of buffers that CUPTI fills with records. CUPTI requests them on any thread and gives them
   back full. Nothing in this part takes a lock or calls malloc(), because CUPTI asks under its own
   locks. A buffer is freed only after CUPTI has given it back.

   Large buffers are one mapping, whose pages are added at the first write. CUPTI before 12.9
   crashes if it gets no buffer, so there is always one. */

enum {
  CUPTI_BUFFER_BYTES = 1 << 20,
  CUPTI_BUFFERS = 64, /* a thread that uses CUDA holds one, from CUDA 13 on */
  CUPTI_SMALL_BYTES = 1 << 16,
  CUPTI_SMALL_BUFFERS =
      448 /* used when all large ones are lent; unmapped when CUPTI gives them back */
};

typedef struct cupti_buffer {
  struct cupti_buffer *next;
  uint8_t *records;
  size_t valid_bytes; /* bytes of them that are filled */
  uint32_t is_lent;   /* acquire, release */
} cupti_buffer;

static struct {
  const prof_backend_host *host;
  uint8_t *memory;            /* of the large ones */
  uint32_t may_refuse;        /* relaxed */
  uint32_t lent, first_index; /* relaxed; first_index: of the last buffer found */
  uint64_t lost;              /* relaxed */
  cupti_buffer *completed;    /* PROF_I_PUSH() */
  cupti_buffer large[CUPTI_BUFFERS], small[CUPTI_SMALL_BUFFERS];
} cupti_pool;

/* NULL: all are in use. */
static uint8_t *map_buffer_pages(size_t bytes) {
  uint8_t *const memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  return memory;
}

/* may_refuse: this CUPTI can be refused a buffer; it then counts what it drops. False: no memory.
   One thread at a time. */
static bool cupti_buffers_prepare(const prof_backend_host *host, bool may_refuse) {
  __atomic_store_n(&cupti_pool.may_refuse, may_refuse, __ATOMIC_RELAXED);
  if (cupti_pool.memory) return true;
  uint8_t *const memory = map_buffer_pages((size_t)CUPTI_BUFFERS * CUPTI_BUFFER_BYTES);
  if (!memory) return false;
  for (uint32_t i = 0; i < CUPTI_BUFFERS; i++)
    cupti_pool.large[i].records = memory + (size_t)i * CUPTI_BUFFER_BYTES;
  cupti_pool.host = host;
  cupti_pool.memory = memory;
  return true;
}

/* ---- CUPTI's threads ---- */

static bool try_lend_buffer(cupti_buffer *buffer) {
  uint32_t is_lent = 0;
  return __atomic_compare_exchange_n(&buffer->is_lent, &is_lent, 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED);
}

/* The same few again and again: the others' pages never come. */
static uint8_t *lend_large_buffer(void) {
  const uint32_t first_index = __atomic_load_n(&cupti_pool.first_index, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < CUPTI_BUFFERS; i++) {
    const uint32_t at = (first_index + i) % CUPTI_BUFFERS;
    if (!try_lend_buffer(&cupti_pool.large[at])) continue;
    __atomic_store_n(&cupti_pool.first_index, at, __ATOMIC_RELAXED);
    return cupti_pool.large[at].records;
  }
  return NULL;
}

static uint8_t *lend_small_buffer(void) {
  for (uint32_t i = 0; i < CUPTI_SMALL_BUFFERS; i++) {
    cupti_buffer *const buffer = &cupti_pool.small[i];
    if (!try_lend_buffer(buffer)) continue;
    uint8_t *const records = map_buffer_pages(CUPTI_SMALL_BYTES);
    __atomic_store_n(&buffer->records, records, __ATOMIC_RELEASE);
    if (!records) __atomic_store_n(&buffer->is_lent, 0, __ATOMIC_RELEASE);
    return records;
  }
  return NULL;
}

/* A buffer that comes back with an unknown address: its memory and its records are lost. */
static uint8_t *lend_untracked_pages(void) {
  __atomic_fetch_add(&cupti_pool.lost, 1, __ATOMIC_RELAXED);
  return map_buffer_pages(CUPTI_SMALL_BYTES);
}

/* For cuptiActivityRegisterCallbacks(). Any thread. */
static void cupti_buffer_request(uint8_t **records_out, size_t *bytes_out,
                                 size_t *records_max_out) {
  const bool may_refuse = __atomic_load_n(&cupti_pool.may_refuse, __ATOMIC_RELAXED);
  *records_max_out = 0; /* as many as fit */
  *bytes_out = CUPTI_BUFFER_BYTES;
  if ((*records_out = lend_large_buffer()) == NULL) {
    cupti_pool.host->wake();
    *bytes_out = CUPTI_SMALL_BYTES;
    *records_out = lend_small_buffer();
  }
  if (*records_out)
    __atomic_fetch_add(&cupti_pool.lent, 1, __ATOMIC_RELAXED);
  else if (!may_refuse)
    *records_out = lend_untracked_pages();
  if (!*records_out) *bytes_out = 0;
}

/* NULL: it is not ours. Whoever registered his callbacks before may have lent it. */
static cupti_buffer *find_buffer(const uint8_t *records) {
  const size_t offset = (size_t)(records - cupti_pool.memory);
  if (records >= cupti_pool.memory && offset < (size_t)CUPTI_BUFFERS * CUPTI_BUFFER_BYTES)
    return &cupti_pool.large[offset / CUPTI_BUFFER_BYTES];
  for (uint32_t i = 0; records && i < CUPTI_SMALL_BUFFERS; i++)
    if (__atomic_load_n(&cupti_pool.small[i].records, __ATOMIC_ACQUIRE) == records)
      return &cupti_pool.small[i];
  return NULL;
}

static void cupti_buffer_complete(prof_i_cu_context context, uint32_t stream, uint8_t *records,
                                  size_t bytes, size_t valid_bytes) {
  cupti_buffer *const buffer = find_buffer(records);
  (void)context;
  (void)stream;
  if (!buffer) return;
  buffer->valid_bytes = valid_bytes < bytes ? valid_bytes : bytes;
  PROF_I_PUSH(&cupti_pool.completed, buffer);
  cupti_pool.host->wake();
}

/* ---- the collector ---- */

static void cupti_buffer_give_back(cupti_buffer *buffer) {
  uint8_t *const records = buffer->records;
  if (buffer >= cupti_pool.small && buffer < cupti_pool.small + CUPTI_SMALL_BUFFERS) {
    __atomic_store_n(&buffer->records, NULL, __ATOMIC_RELAXED);
    munmap(records, CUPTI_SMALL_BYTES);
  }
  __atomic_fetch_sub(&cupti_pool.lent, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&buffer->is_lent, 0, __ATOMIC_RELEASE);
}

/* How many are with CUPTI. Any thread. */
static uint32_t cupti_buffers_lent(void) {
  return __atomic_load_n(&cupti_pool.lent, __ATOMIC_RELAXED);
}

/* How many buffers of records were lost since the last call: the pool was empty, and this CUPTI
   cannot be refused. The collector. */
static uint64_t cupti_buffers_lost(void) {
  return __atomic_exchange_n(&cupti_pool.lost, 0, __ATOMIC_RELAXED);
}

/* ---- recording ---- */

enum { FLUSH_NS = 200000000, HOLDER_BYTES = 64 };

/* Which of CUDA's own calls are recorded. */
enum { CALLS_NONE, CALLS_OF_WORK, CALLS_ALL };

/* CUPTI's kinds, and the kinds of prof that request them. */
static const struct {
  int32_t kind;
  uint32_t backend_kind;
} all_kinds[] = {{PROF_I_CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, PROF_BACKEND_KERNEL},
                 {PROF_I_CUPTI_ACTIVITY_KIND_MEMCPY, PROF_BACKEND_COPY},
                 {PROF_I_CUPTI_ACTIVITY_KIND_MEMCPY2, PROF_BACKEND_COPY},
                 {PROF_I_CUPTI_ACTIVITY_KIND_MEMSET, PROF_BACKEND_FILL},
                 {PROF_I_CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, PROF_BACKEND_CALL},
                 {PROF_I_CUPTI_ACTIVITY_KIND_OVERHEAD, PROF_BACKEND_CALL},
                 {PROF_I_CUPTI_ACTIVITY_KIND_GRAPH_TRACE, PROF_BACKEND_OTHER},
                 {PROF_I_CUPTI_ACTIVITY_KIND_MEMORY2, PROF_BACKEND_MEMORY}};
enum { KINDS = sizeof all_kinds / sizeof *all_kinds };

static struct {
  uint32_t is_cupti_open; /* CUPTI, with its version; release: other threads read its clock */
  bool is_on, is_ending;  /* is_ending: between stop() and the drain behind it */
  /* begun inside of cuInit(); start() has not been called since */
  bool is_from_first;
  /* one record for each launch, none for its nodes: cheaper by their number */
  bool are_graphs_whole;
  uint32_t version;
  prof_i_cupti_subscriber subscriber;
  uint32_t wanted;  /* bits of prof_backend_kind */
  uint32_t enabled; /* bits by all_kinds */
  int calls;
  uint64_t flushed_ns;
} cupti_tracing;

/* True if the driver has not ended before prof at the process's exit: CUPTI may hang then. */
static bool is_driver_alive(void) {
  int32_t count;
  return prof_i_cuda.cuDeviceGetCount(&count) == 0;
}

static bool is_cupti_open(void) {
  return __atomic_load_n(&cupti_tracing.is_cupti_open, __ATOMIC_ACQUIRE);
}

/* ---- begin ---- */

static int open_cupti(const prof_backend_host *host) {
  int32_t driver = 0;
  if (is_cupti_open()) return PROF_BACKEND_OK;
  prof_i_cuda.cuDriverGetVersion(&driver);
  const int result = prof_i_cupti_library_open(host, driver);
  if (result != PROF_BACKEND_OK) return result;
  const int32_t error = prof_i_cupti.cuptiGetVersion(&cupti_tracing.version);
  if (error != 0) return prof_i_cupti_fail_call("cuptiGetVersion", error);
  __atomic_store_n(&cupti_tracing.is_cupti_open, 1, __ATOMIC_RELEASE);
  return PROF_BACKEND_OK;
}

static void ignore_callback(void *user, int32_t domain, uint32_t number, const void *data) {
  (void)user;
  (void)domain;
  (void)number;
  (void)data;
}

/* Releases from 13.0 on know the subscribers. */
static int cupti_subscribe(void) {
  char holder[HOLDER_BYTES] = "";
  prof_i_cupti_subscriber_params params = {sizeof params, "prof", holder, sizeof holder};
  const bool is_named = prof_i_cupti.cuptiSubscribe_v2 != NULL;
  int32_t error =
      is_named ? prof_i_cupti.cuptiSubscribe_v2(&cupti_tracing.subscriber, ignore_callback, NULL,
                                                &params)
               : prof_i_cupti.cuptiSubscribe(&cupti_tracing.subscriber, ignore_callback, NULL);
  holder[sizeof holder - 1] = '\0';
  if (error == 0) return PROF_BACKEND_OK;
  cupti_tracing.subscriber = NULL;
  if (error != PROF_I_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
    return prof_i_cupti_fail_call(is_named ? "cuptiSubscribe_v2" : "cuptiSubscribe", error);
  return prof_i_backend_fail(
      PROF_BACKEND_BUSY,
      "another tool uses CUPTI in this process%s%s; scopes on streams are recorded",
      *holder ? ": " : "", holder);
}

static void cupti_unsubscribe(void) {
  if (cupti_tracing.subscriber) prof_i_cupti.cuptiUnsubscribe(cupti_tracing.subscriber);
  cupti_tracing.subscriber = NULL;
}

/* ---- what is recorded ---- */

static uint32_t kind_bits_of(uint32_t wanted) {
  uint32_t bits = 0;
  for (uint32_t i = 0; i < KINDS; i++) {
    if (all_kinds[i].kind == PROF_I_CUPTI_ACTIVITY_KIND_GRAPH_TRACE &&
        !cupti_tracing.are_graphs_whole)
      continue;
    if (wanted & 1u << all_kinds[i].backend_kind) bits |= 1u << i;
  }
  return bits;
}

/* Returns the error of a kind that is required. */
static int32_t enable_kinds(uint32_t wanted) {
  const uint32_t bits = kind_bits_of(wanted), others = bits ^ cupti_tracing.enabled;
  int32_t error_of_kernels = 0;
  for (uint32_t i = 0; i < KINDS; i++) {
    const uint32_t bit = 1u << i;
    if (!(others & bit)) continue;
    const int32_t error = bits & bit ? prof_i_cupti.cuptiActivityEnable(all_kinds[i].kind)
                                     : prof_i_cupti.cuptiActivityDisable(all_kinds[i].kind);
    if (error == 0 || !(bits & bit))
      cupti_tracing.enabled ^= bit;
    else if (all_kinds[i].backend_kind == PROF_BACKEND_KERNEL)
      error_of_kernels = error;
  }
  return error_of_kernels;
}

/* A launch is found by its call. A CUPTI before 12.5 records all calls or none. */
static void set_calls_enabled(int calls, bool enable) {
  int32_t (*const choose_kind)(int32_t kind) =
      enable ? prof_i_cupti.cuptiActivityEnable : prof_i_cupti.cuptiActivityDisable;
  if (calls == CALLS_NONE || (calls == CALLS_OF_WORK && prof_i_cuda_calls_enable_work(enable)))
    return;
  choose_kind(PROF_I_CUPTI_ACTIVITY_KIND_RUNTIME);
  choose_kind(PROF_I_CUPTI_ACTIVITY_KIND_DRIVER);
}

static void enable_calls(uint32_t wanted) {
  const uint32_t work = wanted & ~(1u << PROF_BACKEND_MEMORY);
  const int calls = wanted & 1u << PROF_BACKEND_CALL ? CALLS_ALL
                    : work                           ? CALLS_OF_WORK
                                                     : CALLS_NONE;
  if (calls == cupti_tracing.calls) return;
  set_calls_enabled(cupti_tracing.calls, false);
  set_calls_enabled(calls, true);
  cupti_tracing.calls = calls;
}

static uint32_t enabled_kinds(void) {
  uint32_t kinds = 0;
  for (uint32_t i = 0; i < KINDS; i++)
    if (cupti_tracing.enabled & 1u << i) kinds |= 1u << all_kinds[i].backend_kind;
  return kinds |
         (cupti_tracing.calls == CALLS_ALL ? 1u << PROF_BACKEND_CALL | 1u << PROF_BACKEND_SYNC : 0);
}

static int record_kinds(uint32_t wanted) {
  const int32_t error = enable_kinds(wanted);
  if (error != 0) {
    enable_kinds(0);
    return prof_i_cupti_fail_call("cuptiActivityEnable", error);
  }
  enable_calls(wanted);
  cupti_tracing.wanted = wanted;
  return PROF_BACKEND_OK;
}

static int begin_cupti(const prof_backend_host *host) {
  int result = open_cupti(host);
  if (result != PROF_BACKEND_OK) return result;
  if (!cupti_buffers_prepare(host, cupti_tracing.version >= PROF_I_CUPTI_NULL_BUFFERS_FROM))
    return prof_i_backend_fail_text(PROF_BACKEND_NO_MEMORY, "no memory for CUPTI's buffers");
  result = cupti_subscribe();
  if (result != PROF_BACKEND_OK) return result;
  const char *const graphs = host->option("CUPTI_GRAPHS");
  cupti_tracing.are_graphs_whole = graphs && strcmp(graphs, "whole") == 0;
  if (prof_i_cupti.cuptiSetThreadIdType)
    prof_i_cupti.cuptiSetThreadIdType(PROF_I_CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  const int32_t error =
      prof_i_cupti.cuptiActivityRegisterCallbacks(cupti_buffer_request, cupti_buffer_complete);
  return error == 0 ? PROF_BACKEND_OK
                    : prof_i_cupti_fail_call("cuptiActivityRegisterCallbacks", error);
}

int prof_i_cuda_activity_start(const prof_backend_host *host, uint32_t kinds, uint32_t *kinds_out) {
  int result = cupti_tracing.is_on ? PROF_BACKEND_OK : begin_cupti(host);
  /* before the first record of a stream */
  if (result == PROF_BACKEND_OK) prof_i_cuda_streams_set_tracking(true);
  if (result == PROF_BACKEND_OK) result = record_kinds(kinds);
  if (result != PROF_BACKEND_OK && !cupti_tracing.is_on) {
    prof_i_cuda_streams_set_tracking(false);
    cupti_unsubscribe();
  }
  if (result != PROF_BACKEND_OK) return result;
  cupti_tracing.is_on = true;
  cupti_tracing.is_ending = false;
  *kinds_out = enabled_kinds() | (cupti_tracing.is_from_first ? PROF_BACKEND_FROM_FIRST : 0);
  cupti_tracing.is_from_first = false;
  return PROF_BACKEND_OK;
}

int prof_i_cuda_activity_stop(void) {
  if (!cupti_tracing.is_on) return PROF_BACKEND_OK;
  cupti_tracing.is_on = false;
  cupti_tracing.is_ending = true;
  prof_i_cuda_streams_set_tracking(false);
  if (!is_driver_alive()) return PROF_BACKEND_OK;
  enable_kinds(0);
  enable_calls(0);
  /* also what is not done */
  prof_i_cupti.cuptiActivityFlushAll(PROF_I_CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  cupti_unsubscribe();
  return PROF_BACKEND_OK;
}

/* ---- what was recorded ---- */

/* Records behind one that this CUPTI does not know are lost. Their number is not known. */
static uint64_t read_cupti_buffer(const cupti_buffer *buffer) {
  void *record_kinds = NULL;
  for (;;) {
    const int32_t error = prof_i_cupti.cuptiActivityGetNextRecord(
        buffer->records, buffer->valid_bytes, &record_kinds);
    if (error != 0 || !record_kinds) return error == PROF_I_CUPTI_ERROR_MAX_LIMIT_REACHED ? 0 : 1;
    prof_i_cuda_record_add(record_kinds);
  }
}

static uint64_t read_all_cupti_buffers(void) {
  uint64_t lost = cupti_buffers_lost();
  cupti_buffer *buffer, *next;
  PROF_I_TAKE_PUSHED(&cupti_pool.completed, buffer);
  for (; buffer; buffer = next) {
    next = buffer->next;
    if (buffer->valid_bytes) lost += read_cupti_buffer(buffer);
    cupti_buffer_give_back(buffer);
  }
  return lost;
}

/* CUPTI's own count of all contexts. A buffer that an ended driver keeps counts as at least one. */
static uint64_t count_dropped(void) {
  size_t count = 0;
  if (!is_driver_alive()) return cupti_buffers_lent();
  return prof_i_cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &count) == 0 ? count : 0;
}

/* Flushes buffers that are not full, now and then. Its cost depends on the records, not on the
   device. */
static bool flush_cupti(const prof_backend_host *host, uint32_t how) {
  const uint64_t now = host->now_ns();
  if (!cupti_tracing.is_on ||
      (how != PROF_BACKEND_FLUSH && now - cupti_tracing.flushed_ns < FLUSH_NS) ||
      !is_driver_alive())
    return false;
  cupti_tracing.flushed_ns = now;
  prof_i_cupti.cuptiActivityFlushAll(0);
  return true;
}

int prof_i_cuda_activity_drain(const prof_backend_host *host, uint32_t how, uint64_t *lost_out) {
  if (!is_cupti_open()) return PROF_BACKEND_OK;
  const bool is_flushed = flush_cupti(host, how);
  prof_i_cuda_records_begin(host, cupti_tracing.wanted, cupti_tracing.is_ending);
  *lost_out = read_all_cupti_buffers();
  if (is_flushed || cupti_tracing.is_ending) prof_i_cuda_records_flush(how == PROF_BACKEND_FLUSH);
  *lost_out += prof_i_cuda_records_unfinished();
  if (is_flushed || cupti_tracing.is_ending) *lost_out += count_dropped();
  cupti_tracing.is_ending = false;
  return PROF_BACKEND_OK;
}

int prof_i_cuda_activity_clock(const prof_backend_host *host, prof_backend_pair *out) {
  prof_backend_pair pair = {.size = out->size};
  if (!is_cupti_open())
    return prof_i_backend_fail_text(PROF_BACKEND_UNSUPPORTED,
                                    "CUPTI, whose clock it is, has not been asked to record");
  pair.host_before_ns = host->now_ns();
  pair.host_before_ticks = host->ticks();
  const int32_t error = prof_i_cupti.cuptiGetTimestamp(&pair.device_ns);
  pair.host_after_ticks = host->ticks();
  pair.host_after_ns = host->now_ns();
  if (error != 0) return prof_i_cupti_fail_call("cuptiGetTimestamp", error);
  *out = pair;
  return PROF_BACKEND_OK;
}

/* The first call of a function is slower, so the narrowest reading of some is used. */
static void read_narrowest_clock(const prof_backend_host *host, prof_backend_pair *out) {
  enum { LOOKS = 3 };
  *out = (prof_backend_pair){.size = sizeof *out};
  for (int i = 0; i < LOOKS; i++) {
    prof_backend_pair pair = {.size = sizeof pair};
    if (prof_i_cuda_activity_clock(host, &pair) != PROF_BACKEND_OK) continue;
    if (!out->device_ns ||
        pair.host_after_ns - pair.host_before_ns < out->host_after_ns - out->host_before_ns)
      *out = pair;
  }
}

int prof_i_cuda_activity_begin_preinit(const prof_backend_host *host, uint32_t kinds,
                                       prof_backend_pair *look_out) {
  uint32_t can;
  const int result = prof_i_cuda_activity_start(host, kinds, &can);
  if (result != PROF_BACKEND_OK) return result;
  cupti_tracing.is_from_first = true;
  read_narrowest_clock(host, look_out);
  return PROF_BACKEND_OK;
}
