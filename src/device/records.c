/* Writes a vendor's records to the capture. A kernel, a copy or a fill is a scope of its stream. A
   call of the vendor's library is a scope of a virtual thread beside its own; readers put it among
   its thread's scopes. The collector alone.
   Sizes, times and numbers of texts that a back end hands over are checked. */
#define _GNU_SOURCE
#include "internal.h"

#include <prof/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/fault.h"
#include "../core/buffer/arena.h"
#include "../core/buffer/clock.h"
#include "../core/buffer/meta.h"
#include "../core/buffer/record.h"
#include "../core/record/open_stack.h"
#include "../core/record/site.h"

enum { LAUNCH_WORDS = 4 };

/* The calls of one thread are written as a virtual thread, because only the thread itself writes
   its records. Readers put the calls back among its scopes. */
typedef struct call_threads {
  uint64_t serial;
  prof_i_virtual_thread line;
  struct call_threads *next;
} call_threads;

static struct {
  prof_i_backend *backend; /* that drains now */
  prof_i_stream *stream;   /* of the last record */
  call_threads *call_threads;
  const call_threads *inherited;    /* of a forked child */
  uint64_t anchor_ticks, anchor_ns; /* of this drain: converts times of the host's clock */
} current_drain;

/* Any of them: `record` is what all begin with. What a shorter one does not say is 0. */
typedef union full_record {
  prof_backend_record record;
  prof_backend_kernel kernel;
  prof_backend_copy copy;
  prof_backend_memory memory;
} full_record;

/* ---- what is known of each kind ---- */

static const char *category_of_kind(uint32_t kind) { /* as Kineto has them */
  switch (kind) {
    case PROF_BACKEND_KERNEL:
      return "kernel";
    case PROF_BACKEND_COPY:
      return "gpu_memcpy";
    case PROF_BACKEND_FILL:
      return "gpu_memset";
    case PROF_BACKEND_SYNC:
      return "cuda_sync"; /* of all vendors: by this readers know a wait */
    case PROF_BACKEND_CALL:
      return "runtime"; /* see category_of_call() */
    default:
      return "gpu_other";
  }
}

/* H, D, or P where two devices have to do with it. */
static const char *name_of_copy(const prof_backend_copy *copy) {
  const bool is_from_host = copy->from == PROF_DEVICE_CPU, is_to_host = copy->to == PROF_DEVICE_CPU;
  if (!copy->from || !copy->to) return "Memcpy";
  if (is_from_host || is_to_host)
    return !is_to_host ? "Memcpy HtoD" : is_from_host ? "Memcpy HtoH" : "Memcpy DtoH";
  return copy->from_index == copy->to_index ? "Memcpy DtoD" : "Memcpy PtoP";
}

/* Of what its vendor gives no name: as Kineto has it, by which readers know copies. */
static const char *name_of_record(const full_record *it) {
  switch (it->record.kind) {
    case PROF_BACKEND_KERNEL:
      return "(kernel without a name)";
    case PROF_BACKEND_COPY:
      return name_of_copy(&it->copy);
    case PROF_BACKEND_FILL:
      return "Memset";
    case PROF_BACKEND_SYNC:
      return "wait";
    case PROF_BACKEND_CALL:
      return "(call without a name)";
    default:
      return "(other work)";
  }
}

/* ---- values ---- */

typedef struct arg_values {
  prof_arg items[PROF_ARGS_MAX];
  uint32_t count;
  uint64_t words[PROF_I_STREAM_VALUES_MAX]; /* of those behind the launch */
  size_t word_count;
} arg_values;

static void put_arg(arg_values *v, const char *key, uint32_t type) {
  v->items[v->count++] = (prof_arg){.key = key, .type = type};
}

static void put_u64_arg(arg_values *v, const char *key, uint64_t value) {
  put_arg(v, key, PROF_ARG_U64);
  v->words[v->word_count++] = value;
}
static void put_known_arg(arg_values *v, const char *key, uint64_t value) {
  if (value) put_u64_arg(v, key, value);
}

static void put_dims_arg(arg_values *v, const char *key, const uint32_t *dims) {
  if (!dims[0]) return;
  put_arg(v, key, PROF_ARG_TENSOR);
  v->words[v->word_count++] = 3;
  for (int i = 0; i < 3; i++) v->words[v->word_count++] = dims[i];
}

static void put_text_arg(arg_values *v, const char *key, const char *text) {
  put_arg(v, key, PROF_ARG_STRING);
  v->word_count += prof_i_put_text(v->words + v->word_count, text, strlen(text));
}

/* Older readers see the launch as what it is: four numbers. Then the kind, and after that what
   users see. */
static void begin_args(arg_values *v, uint32_t kind) {
  static const char *const launch[LAUNCH_WORDS] = {"launch thread", "launch ticks",
                                                   "device start ns", "device end ns"};
  v->count = 0;
  v->word_count = 0;
  for (int i = 0; i < LAUNCH_WORDS; i++) put_arg(v, launch[i], PROF_ARG_U64);
  put_u64_arg(v, "record kind", kind);
}

static void put_kernel_args(arg_values *v, const prof_backend_kernel *kernel) {
  put_dims_arg(v, kernel->record.flags & PROF_BACKEND_GRID_ITEMS ? "work items" : "grid",
               kernel->grid);
  put_dims_arg(v, "block", kernel->block);
  put_known_arg(v, "shared memory", kernel->shared_bytes);
  put_known_arg(v, "registers per thread", kernel->registers);
  put_known_arg(v, "context", kernel->context);
  put_known_arg(v, "graph id", kernel->graph);
  put_known_arg(v, "graph node id", kernel->graph_node);
  put_known_arg(v, "queued ns", kernel->queued);
  put_known_arg(v, "submitted ns", kernel->submitted);
}

static const char *device_side_name(int32_t device_type) {
  return device_type == 0 ? "unknown" : device_type == PROF_DEVICE_CPU ? "host" : "device";
}

static void put_copy_args(arg_values *v, const prof_backend_copy *copy) {
  put_known_arg(v, "bytes", copy->bytes);
  if (copy->from || copy->to) {
    char way[48];
    snprintf(way, sizeof way, "%s to %s", device_side_name(copy->from), device_side_name(copy->to));
    put_text_arg(v, "direction", way);
  }
  if (copy->from > PROF_DEVICE_CPU && copy->to > PROF_DEVICE_CPU &&
      copy->from_index != copy->to_index) {
    put_u64_arg(v, "from device", copy->from_index);
    put_u64_arg(v, "to device", copy->to_index);
  }
  put_known_arg(v, "queued ns", copy->queued);
  put_known_arg(v, "submitted ns", copy->submitted);
}

static void put_args(arg_values *v, const full_record *it) {
  const prof_backend_record *const record = &it->record;
  begin_args(v, record->kind);
  if (record->kind == PROF_BACKEND_KERNEL) put_kernel_args(v, &it->kernel);
  if (record->kind == PROF_BACKEND_COPY || record->kind == PROF_BACKEND_FILL)
    put_copy_args(v, &it->copy);
  put_known_arg(v, "vendor's correlation", record->correlation);
}

/* ---- times ---- */

static uint64_t ticks_of_host_ns(uint64_t host_ns) {
  return current_drain.anchor_ticks +
         (uint64_t)(int64_t)((double)(int64_t)(host_ns - current_drain.anchor_ns) *
                             prof_i_clock_ticks_per_ns());
}

/* By the clock of the back end's own. False: nothing is known of it. */
static bool ticks_by_clock(const prof_backend_record *record, uint64_t device_ns,
                           uint64_t *ticks_out) {
  prof_i_device_clock *const clock =
      prof_i_resolver_device_clock(current_drain.backend, record->device);
  uint64_t error;
  return clock && prof_i_device_clock_update(clock, device_ns) &&
         prof_i_device_clock_to_host(clock, device_ns, ticks_out, &error);
}

/* Two clocks may stand a little apart: what will have been by so little was just now. False: it is
   no time. */
static bool clamp_to_now(uint64_t *ticks) {
  enum { APART_NS = 1000000 };
  const uint64_t now = prof_i_clock_ticks();
  if (!prof_i_clock_is_before(now, *ticks)) return true;
  if ((double)(*ticks - now) > APART_NS * prof_i_clock_ticks_per_ns()) return false;
  *ticks = now;
  return true;
}

/* A launch is never later than now: otherwise its time is not known. */
static uint64_t launch_ticks_of(const prof_backend_record *record) {
  uint64_t ticks =
      record->flags & PROF_BACKEND_LAUNCH_NS ? ticks_of_host_ns(record->launch) : record->launch;
  if (!record->launch || ((record->flags & PROF_BACKEND_LAUNCH_CLOCK) &&
                          !ticks_by_clock(record, record->launch, &ticks)))
    return 0;
  return clamp_to_now(&ticks) ? ticks : 0;
}

/* ---- scopes of streams ---- */

static prof_i_stream *stream_of_record(const prof_backend_record *record) {
  const prof_device device = {current_drain.backend->table.device_type, (int32_t)record->device};
  prof_i_stream *const last = current_drain.stream;
  int loss;
  if (last && last->backend == current_drain.backend && last->handle == record->stream &&
      last->device.index == device.index)
    return last;
  return current_drain.stream = prof_i_stream_of(device, record->stream, &loss);
}

/* A time of the host's clock is never in the future. */
static bool has_host_times(const prof_backend_record *record) {
  const uint64_t ahead_ns = UINT64_C(10000000000);
  return (record->flags & PROF_BACKEND_HOST_TIMES) && record->start &&
         record->end >= record->start && record->end <= current_drain.anchor_ns + ahead_ns;
}

static bool set_scope_times(prof_i_stream_scope *scope, const prof_backend_record *record) {
  const bool is_known = scope->launch_ticks && !(record->flags & PROF_BACKEND_LAUNCH_LATE);
  const uint64_t now = prof_i_clock_ticks(),
                 earliest = is_known ? scope->launch_ticks
                                     : __atomic_load_n(&prof_i_arena_header()->session_ticks,
                                                       __ATOMIC_RELAXED);
  const prof_i_stream_bounds bounds = {{earliest, earliest}, earliest, now};
  if (record->end < record->start || !record->start) return false;
  if (!(record->flags & PROF_BACKEND_HOST_TIMES))
    return prof_i_stream_scope_set_times(scope, &bounds);
  if (!has_host_times(record)) return false;
  scope->ticks[0] = ticks_of_host_ns(record->start);
  scope->ticks[1] = ticks_of_host_ns(record->end);
  if (!is_known || !prof_i_clock_is_before(scope->ticks[0], earliest)) return true;
  scope->ticks[0] = earliest;
  /* it was over before it was launched */
  return !prof_i_clock_is_before(scope->ticks[1], earliest);
}

/* True if it was over before this recording began: its vendor has kept it since, and it does not
   belong to this recording. */
static bool is_before_session(uint64_t from_ticks, uint64_t to_ticks) {
  const uint64_t begun = __atomic_load_n(&prof_i_arena_header()->session_ticks, __ATOMIC_RELAXED);
  return from_ticks && prof_i_clock_is_before(from_ticks, begun) &&
         prof_i_clock_is_before(to_ticks, begun);
}

/* What was heard of late was launched before it began. */
static void move_launch_before(prof_i_stream_scope *scope) {
  if (scope->launch_ticks && prof_i_clock_is_before(scope->ticks[0], scope->launch_ticks))
    scope->launch_ticks = scope->ticks[0];
}

static int write_stream_record(const full_record *it) {
  const prof_backend_record *const record = &it->record;
  arg_values v;
  prof_i_stream_scope scope = {.stream = stream_of_record(record),
                               .device_ns = {record->start, record->end},
                               .serial = PROF_I_FAULT(NOBODYS_KERNEL) ? 0 : record->launch_thread,
                               .launch_ticks = launch_ticks_of(record)};
  if (!scope.stream) return PROF_LOSS_DEVICE_FULL;
  scope.clock =
      prof_i_resolver_device_clock(scope.stream->backend, (uint32_t)scope.stream->device.index);
  if (!scope.clock || !set_scope_times(&scope, record)) return PROF_LOSS_DEVICE_TIMES;
  if (is_before_session(scope.launch_ticks, scope.ticks[1])) return -1;
  if (record->flags & PROF_BACKEND_LAUNCH_LATE) move_launch_before(&scope);
  put_args(&v, it);
  scope.site =
      prof_i_name_site(record->name, category_of_kind(record->kind), name_of_record(it), 1);
  scope.schema = prof_i_schema_number_inside(
      scope.site, &(prof_args){v.items, v.count, PROF_ARGS_PAIRS, NULL}, v.count);
  scope.values = v.words;
  scope.value_words = scope.schema ? v.word_count : 0;
  scope.flags = scope.schema ? 0 : PROF_I_FLAG_CUT;
  const int loss = prof_i_stream_scope_write(&scope);
  prof_i_device_state *const state =
      loss < 0 ? prof_i_device_state_get(scope.stream->device, scope.stream->backend) : NULL;
  if (state) prof_i_device_count_add(&state->record_count, 1);
  return loss;
}

/* ---- calls ---- */

/* As Kineto has them, for HIP, too; how else would a reader know a launch. */
static const char *category_of_call(uint32_t name) {
  const char *const text = prof_i_name_text(name);
  if (strncmp(text, "cuda", 4) == 0 || strncmp(text, "__cuda", 6) == 0 ||
      strncmp(text, "hip", 3) == 0)
    return "cuda_runtime";
  if (strncmp(text, "cu", 2) == 0) return "cuda_driver";
  if (strncmp(text, "CU", 2) == 0) return "overhead"; /* of CUPTI's and of CUDA's itself */
  return "runtime";
}

/* A thread that prof does not know is called as the system calls it. */
static void name_call_thread(prof_i_virtual_thread *line, uint64_t serial) {
  const uint64_t tid = serial & ~PROF_I_SERIAL_OF_KERNELS;
  if (serial & PROF_I_SERIAL_OF_KERNELS &&
      prof_i_port_name_of_thread(tid, line->name, sizeof line->name))
    return;
  snprintf(line->name, sizeof line->name,
           serial & PROF_I_SERIAL_OF_KERNELS ? "thread %llu" : "calls of thread %llu",
           (unsigned long long)tid);
}

static prof_i_virtual_thread *find_call_thread(uint64_t serial) {
  for (call_threads *c = current_drain.call_threads; c; c = c->next)
    if (c->serial == serial) return &c->line;
  call_threads *const c = calloc(1, sizeof *c);
  if (!c) return NULL;
  c->serial = serial;
  c->line.thread_kind = PROF_I_KIND_OF_CALLS;
  c->line.handle = serial;
  c->next = current_drain.call_threads;
  name_call_thread(&c->line, serial);
  current_drain.call_threads = c;
  return &c->line;
}

/* Most calls have times of the host's clock. A time in the future is malformed. */
static bool times_of_call(const prof_backend_record *record, uint64_t ticks_out[2]) {
  if (record->flags & PROF_BACKEND_HOST_TIMES) {
    ticks_out[0] = ticks_of_host_ns(record->start);
    ticks_out[1] = ticks_of_host_ns(record->end);
    return has_host_times(record);
  }
  if (!record->start || record->end < record->start ||
      !ticks_by_clock(record, record->end, &ticks_out[1]) ||
      !ticks_by_clock(record, record->start, &ticks_out[0]) || !clamp_to_now(&ticks_out[1]))
    return false;
  if (prof_i_clock_is_before(ticks_out[1], ticks_out[0])) ticks_out[0] = ticks_out[1];
  return true;
}

static int write_call(const full_record *it) {
  const prof_backend_record *const record = &it->record;
  prof_i_virtual_thread *const line = find_call_thread(record->launch_thread);
  prof_i_thread *const thread = line ? prof_i_virtual_thread_attach(line) : NULL;
  uint64_t times[2];
  if (!thread) return PROF_LOSS_NO_THREAD;
  if (!times_of_call(record, times)) return PROF_LOSS_DEVICE_TIMES;
  if (is_before_session(times[0], times[1])) return -1;
  const uint64_t begin = times[0], most = (UINT64_C(1) << PROF_I_DURATION_BITS) - 1,
                 ticks = times[1] - begin, duration = ticks < most ? ticks : most;
  const uint32_t site =
      prof_i_name_site(record->name, category_of_call(record->name), name_of_record(it), 2);
  const prof_arg number = {.key = "vendor's correlation", .type = PROF_ARG_U64};
  const uint64_t schema =
      record->correlation
          ? prof_i_schema_number_inside(site, &(prof_args){&number, 1, PROF_ARGS_PAIRS, NULL}, 1)
          : 0;
  uint64_t words[3] = {0, record->correlation};
  const size_t count = schema ? 2 : 1;
  words[0] = (2 + count + 1) / 2 | (uint64_t)PROF_I_KIND_CALL << 16 | schema << 32;
  return prof_i_record_write(thread, begin << 4, begin << 4,
                             duration << PROF_I_DURATION_SHIFT |
                                 (uint64_t)site << PROF_I_PACKED_SITE_SHIFT | PROF_I_TYPE_LONG,
                             words, count);
}

static int write_memory(const full_record *it) {
  uint64_t ticks = ticks_of_host_ns(it->record.start);
  if (!(it->record.flags & PROF_BACKEND_HOST_TIMES) &&
      !ticks_by_clock(&it->record, it->record.start, &ticks))
    return PROF_LOSS_DEVICE_TIMES;
  const uint64_t now = prof_i_clock_ticks();
  return prof_i_device_memory_write(current_drain.backend, &it->memory,
                                    prof_i_clock_is_before(now, ticks) ? now : ticks);
}

/* ---- the stream of records ---- */

static int write_record(const full_record *it) {
  switch (it->record.kind) {
    case PROF_BACKEND_CALL:
      return write_call(it);
    case PROF_BACKEND_MEMORY:
      return write_memory(it);
    default:
      return write_stream_record(it);
  }
}

static void take_record(const char *record, size_t bytes) {
  full_record it;
  memset(&it, 0, sizeof it);
  memcpy(&it, record, bytes < sizeof it ? bytes : sizeof it);
  const int loss =
      it.record.flags & PROF_BACKEND_NO_TIMES ? PROF_LOSS_DEVICE_TIMES : write_record(&it);
  if (loss >= 0) prof_i_thread_lose(&prof_i_no_thread, loss, 1);
}

bool prof_i_records_write(const void *records, size_t bytes) {
  const char *at = records;
  if (!current_drain.backend) return false;
  if (!prof_i_arena_guard_enter()) {
    prof_i_thread_lose_outside(&prof_i_no_thread, PROF_LOSS_CLEARED,
                               prof_i_host_count_records(records, bytes));
    return true;
  }
  while (bytes >= sizeof(prof_backend_record)) {
    prof_backend_record record;
    memcpy(&record, at, sizeof record);
    if (record.size < sizeof record || record.size % 8 != 0 || record.size > bytes) break;
    take_record(at, record.size);
    at += record.size;
    bytes -= record.size;
  }
  /* how many there were is not known */
  if (bytes > 0) prof_i_thread_lose(&prof_i_no_thread, PROF_LOSS_DEVICE_TIMES, 1);
  prof_i_arena_guard_exit();
  return true;
}

void prof_i_records_begin(prof_i_backend *backend) {
  uint64_t width;
  current_drain.backend = backend;
  current_drain.stream = NULL;
  current_drain.anchor_ns = prof_i_port_monotonic_ns();
  current_drain.anchor_ticks = prof_i_clock_ticks_at(current_drain.anchor_ns, &width);
  prof_i_host_set_drain_sink(prof_i_records_write);
}

void prof_i_records_end(void) {
  prof_i_host_set_drain_sink(NULL);
  current_drain.backend = NULL;
}

void prof_i_records_end_threads(void) {
  for (call_threads *c = current_drain.call_threads; c; c = c->next)
    prof_i_virtual_thread_end(&c->line);
  prof_i_device_memory_end_thread();
}

void prof_i_records_forget(void) {
  current_drain.inherited = current_drain.call_threads; /* their memory stays, and is not lost */
  current_drain.call_threads = NULL;
  prof_i_records_end();
  current_drain.stream = NULL;
  prof_i_device_memory_forget();
}
