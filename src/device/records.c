/* See records.h. Nothing that a back end hands over is believed without a look: sizes, times,
   texts' numbers. */
#define _GNU_SOURCE
#include "records.h"

#include <prof/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/fault.h"
#include "../core/buffer/arena.h"
#include "../core/buffer/clock.h"
#include "../core/buffer/gate.h"
#include "../core/buffer/meta.h"
#include "../core/buffer/record.h"
#include "../core/record/entry.h"
#include "../core/record/site.h"
#include "account.h"
#include "harvest.h"
#include "memory.h"
#include "names.h"
#include "stream_scope.h"

enum { LAUNCH_WORDS = 4 };

/* The calls of one thread: a line of their own, for that thread's records are its own to write.
   Readers put them back among its scopes. */
typedef struct calls {
  uint64_t serial;
  prof_i_line line;
  struct calls *next;
} calls;

static struct {
  prof_i_back_end *end;  /* that drains now */
  prof_i_stream *stream; /* of the last record */
  calls *calls;
  const calls *parents;             /* of a forked child */
  uint64_t anchor_ticks, anchor_ns; /* of this drain: times of the host's clock are told by it */
} own;

/* Any of them: `record` is what all begin with. What a shorter one does not say is 0. */
typedef union whole {
  prof_backend_record record;
  prof_backend_kernel kernel;
  prof_backend_copy copy;
  prof_backend_memory memory;
} whole;

/* ---- what is known of each kind ---- */

static const char *category_of(uint32_t kind) { /* as Kineto has them */
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
static const char *name_of(const whole *it) {
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

typedef struct values {
  prof_arg items[PROF_ARGS_MAX];
  uint32_t count;
  uint64_t words[PROF_I_STREAM_VALUES_MAX]; /* of those behind the launch */
  size_t word_count;
} values;

static void put_type(values *v, const char *key, uint32_t type) {
  v->items[v->count++] = (prof_arg){.key = key, .type = type};
}

static void put_u64(values *v, const char *key, uint64_t value) {
  put_type(v, key, PROF_ARG_U64);
  v->words[v->word_count++] = value;
}
static void put_known(values *v, const char *key, uint64_t value) {
  if (value) put_u64(v, key, value);
}

static void put_dims(values *v, const char *key, const uint32_t *dims) {
  if (!dims[0]) return;
  put_type(v, key, PROF_ARG_TENSOR);
  v->words[v->word_count++] = 3;
  for (int i = 0; i < 3; i++) v->words[v->word_count++] = dims[i];
}

static void put_text(values *v, const char *key, const char *text) {
  put_type(v, key, PROF_ARG_STRING);
  v->word_count += prof_i_put_text(v->words + v->word_count, text, strlen(text));
}

/* Older readers see the launch as what it is: four numbers. Then the kind, and after that what
   users see. */
static void begin_values(values *v, uint32_t kind) {
  static const char *const launch[LAUNCH_WORDS] = {"launch thread", "launch ticks",
                                                   "device start ns", "device end ns"};
  v->count = 0;
  v->word_count = 0;
  for (int i = 0; i < LAUNCH_WORDS; i++) put_type(v, launch[i], PROF_ARG_U64);
  put_u64(v, "record kind", kind);
}

static void put_kernel(values *v, const prof_backend_kernel *kernel) {
  put_dims(v, kernel->record.flags & PROF_BACKEND_GRID_ITEMS ? "work items" : "grid", kernel->grid);
  put_dims(v, "block", kernel->block);
  put_known(v, "shared memory", kernel->shared_bytes);
  put_known(v, "registers per thread", kernel->registers);
  put_known(v, "context", kernel->context);
  put_known(v, "graph id", kernel->graph);
  put_known(v, "graph node id", kernel->graph_node);
  put_known(v, "queued ns", kernel->queued);
  put_known(v, "submitted ns", kernel->submitted);
}

static const char *place_of(int32_t device_type) {
  return device_type == 0 ? "unknown" : device_type == PROF_DEVICE_CPU ? "host" : "device";
}

static void put_copy(values *v, const prof_backend_copy *copy) {
  put_known(v, "bytes", copy->bytes);
  if (copy->from || copy->to) {
    char way[48];
    snprintf(way, sizeof way, "%s to %s", place_of(copy->from), place_of(copy->to));
    put_text(v, "direction", way);
  }
  if (copy->from > PROF_DEVICE_CPU && copy->to > PROF_DEVICE_CPU &&
      copy->from_index != copy->to_index) {
    put_u64(v, "from device", copy->from_index);
    put_u64(v, "to device", copy->to_index);
  }
  put_known(v, "queued ns", copy->queued);
  put_known(v, "submitted ns", copy->submitted);
}

static void put_values(values *v, const whole *it) {
  const prof_backend_record *const record = &it->record;
  begin_values(v, record->kind);
  if (record->kind == PROF_BACKEND_KERNEL) put_kernel(v, &it->kernel);
  if (record->kind == PROF_BACKEND_COPY || record->kind == PROF_BACKEND_FILL)
    put_copy(v, &it->copy);
  put_known(v, "vendor's correlation", record->correlation);
}

/* ---- times ---- */

static uint64_t ticks_of(uint64_t host_ns) {
  return own.anchor_ticks + (uint64_t)(int64_t)((double)(int64_t)(host_ns - own.anchor_ns) *
                                                prof_i_clock_ticks_per_ns());
}

/* By the clock of the back end's own. False: nothing is known of it. */
static bool ticks_by_clock(const prof_backend_record *record, uint64_t device_ns,
                           uint64_t *ticks_out) {
  prof_i_device_clock *const clock = prof_i_harvest_device_clock(own.end, record->device);
  uint64_t error;
  return clock && prof_i_device_clock_look(clock, device_ns) &&
         prof_i_device_clock_host(clock, device_ns, ticks_out, &error);
}

/* Two clocks may stand a little apart: what will have been by so little was just now. False: it is
   no time. */
static bool is_past(uint64_t *ticks) {
  enum { APART_NS = 1000000 };
  const uint64_t now = prof_i_clock_ticks();
  if (!prof_i_clock_is_before(now, *ticks)) return true;
  if ((double)(*ticks - now) > APART_NS * prof_i_clock_ticks_per_ns()) return false;
  *ticks = now;
  return true;
}

/* Nothing was launched later than now: who says so does not know. */
static uint64_t launch_of(const prof_backend_record *record) {
  uint64_t ticks =
      record->flags & PROF_BACKEND_LAUNCH_NS ? ticks_of(record->launch) : record->launch;
  if (!record->launch || ((record->flags & PROF_BACKEND_LAUNCH_CLOCK) &&
                          !ticks_by_clock(record, record->launch, &ticks)))
    return 0;
  return is_past(&ticks) ? ticks : 0;
}

/* ---- scopes of streams ---- */

static prof_i_stream *stream_of(const prof_backend_record *record) {
  const prof_device device = {own.end->table.device_type, (int32_t)record->device};
  prof_i_stream *const last = own.stream;
  int loss;
  if (last && last->end == own.end && last->handle == record->stream &&
      last->device.index == device.index)
    return last;
  return own.stream = prof_i_stream_of(device, record->stream, &loss);
}

/* Of the host's own clock nothing is told that will have been. */
static bool has_host_times(const prof_backend_record *record) {
  const uint64_t ahead_ns = UINT64_C(10000000000);
  return (record->flags & PROF_BACKEND_HOST_TIMES) && record->start &&
         record->end >= record->start && record->end <= own.anchor_ns + ahead_ns;
}

static bool place(prof_i_stream_scope *scope, const prof_backend_record *record) {
  const bool is_known = scope->launch_ticks && !(record->flags & PROF_BACKEND_LAUNCH_LATE);
  const uint64_t now = prof_i_clock_ticks(),
                 earliest = is_known ? scope->launch_ticks
                                     : __atomic_load_n(&prof_i_arena_header()->session_ticks,
                                                       __ATOMIC_RELAXED);
  const prof_i_stream_bounds bounds = {{earliest, earliest}, earliest, now};
  if (record->end < record->start || !record->start) return false;
  if (!(record->flags & PROF_BACKEND_HOST_TIMES)) return prof_i_stream_scope_place(scope, &bounds);
  if (!has_host_times(record)) return false;
  scope->ticks[0] = ticks_of(record->start);
  scope->ticks[1] = ticks_of(record->end);
  if (!is_known || !prof_i_clock_is_before(scope->ticks[0], earliest)) return true;
  scope->ticks[0] = earliest;
  /* it was over before it was launched */
  return !prof_i_clock_is_before(scope->ticks[1], earliest);
}

/* It was over before this recording began, and its vendor has kept it since: it is none of this
   one's. */
static bool is_of_before(uint64_t from_ticks, uint64_t to_ticks) {
  const uint64_t begun = __atomic_load_n(&prof_i_arena_header()->session_ticks, __ATOMIC_RELAXED);
  return from_ticks && prof_i_clock_is_before(from_ticks, begun) &&
         prof_i_clock_is_before(to_ticks, begun);
}

/* What was heard of late was launched before it began. */
static void go_before(prof_i_stream_scope *scope) {
  if (scope->launch_ticks && prof_i_clock_is_before(scope->ticks[0], scope->launch_ticks))
    scope->launch_ticks = scope->ticks[0];
}

static int write_on_stream(const whole *it) {
  const prof_backend_record *const record = &it->record;
  values v;
  prof_i_stream_scope scope = {.stream = stream_of(record),
                               .device_ns = {record->start, record->end},
                               .serial = PROF_I_FAULT(NOBODYS_KERNEL) ? 0 : record->launch_thread,
                               .launch_ticks = launch_of(record)};
  if (!scope.stream) return PROF_LOSS_DEVICE_FULL;
  scope.clock =
      prof_i_harvest_device_clock(scope.stream->end, (uint32_t)scope.stream->device.index);
  if (!scope.clock || !place(&scope, record)) return PROF_LOSS_DEVICE_TIMES;
  if (is_of_before(scope.launch_ticks, scope.ticks[1])) return -1;
  if (record->flags & PROF_BACKEND_LAUNCH_LATE) go_before(&scope);
  put_values(&v, it);
  scope.site = prof_i_name_site(record->name, category_of(record->kind), name_of(it), 1);
  scope.schema = prof_i_schema_number_inside(
      scope.site, &(prof_args){v.items, v.count, PROF_ARGS_PAIRS, NULL}, v.count);
  scope.values = v.words;
  scope.value_words = scope.schema ? v.word_count : 0;
  scope.flags = scope.schema ? 0 : PROF_I_FLAG_CUT;
  const int loss = prof_i_stream_scope_write(&scope);
  prof_i_device_state *const state =
      loss < 0 ? prof_i_device_account(scope.stream->device, scope.stream->end) : NULL;
  if (state) prof_i_account_add(&state->record_count, 1);
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
static void name_line(prof_i_line *line, uint64_t serial) {
  const uint64_t tid = serial & ~PROF_I_SERIAL_OF_KERNELS;
  if (serial & PROF_I_SERIAL_OF_KERNELS &&
      prof_i_port_name_of_thread(tid, line->name, sizeof line->name))
    return;
  snprintf(line->name, sizeof line->name,
           serial & PROF_I_SERIAL_OF_KERNELS ? "thread %llu" : "calls of thread %llu",
           (unsigned long long)tid);
}

static prof_i_line *line_of(uint64_t serial) {
  for (calls *c = own.calls; c; c = c->next)
    if (c->serial == serial) return &c->line;
  calls *const c = calloc(1, sizeof *c);
  if (!c) return NULL;
  c->serial = serial;
  c->line.role = PROF_I_ROLE_CALLS;
  c->line.handle = serial;
  c->next = own.calls;
  name_line(&c->line, serial);
  own.calls = c;
  return &c->line;
}

/* A call is of the host's clock mostly. What will have been is none. */
static bool times_of_call(const prof_backend_record *record, uint64_t ticks_out[2]) {
  if (record->flags & PROF_BACKEND_HOST_TIMES) {
    ticks_out[0] = ticks_of(record->start);
    ticks_out[1] = ticks_of(record->end);
    return has_host_times(record);
  }
  if (!record->start || record->end < record->start ||
      !ticks_by_clock(record, record->end, &ticks_out[1]) ||
      !ticks_by_clock(record, record->start, &ticks_out[0]) || !is_past(&ticks_out[1]))
    return false;
  if (prof_i_clock_is_before(ticks_out[1], ticks_out[0])) ticks_out[0] = ticks_out[1];
  return true;
}

static int write_call(const whole *it) {
  const prof_backend_record *const record = &it->record;
  prof_i_line *const line = line_of(record->launch_thread);
  prof_i_thread *const thread = line ? prof_i_thread_attach_line(line) : NULL;
  uint64_t times[2];
  if (!thread) return PROF_LOSS_NO_THREAD;
  if (!times_of_call(record, times)) return PROF_LOSS_DEVICE_TIMES;
  if (is_of_before(times[0], times[1])) return -1;
  const uint64_t begin = times[0], most = (UINT64_C(1) << PROF_I_DURATION_BITS) - 1,
                 ticks = times[1] - begin, duration = ticks < most ? ticks : most;
  const uint32_t site =
      prof_i_name_site(record->name, category_of_call(record->name), name_of(it), 2);
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
                                 (uint64_t)site << PROF_I_WHAT_SITE_SHIFT | PROF_I_TYPE_LONG,
                             words, count);
}

static int write_memory(const whole *it) {
  uint64_t ticks = ticks_of(it->record.start);
  if (!(it->record.flags & PROF_BACKEND_HOST_TIMES) &&
      !ticks_by_clock(&it->record, it->record.start, &ticks))
    return PROF_LOSS_DEVICE_TIMES;
  const uint64_t now = prof_i_clock_ticks();
  return prof_i_device_memory_take(own.end, &it->memory,
                                   prof_i_clock_is_before(now, ticks) ? now : ticks);
}

/* ---- the stream of records ---- */

static int write(const whole *it) {
  switch (it->record.kind) {
    case PROF_BACKEND_CALL:
      return write_call(it);
    case PROF_BACKEND_MEMORY:
      return write_memory(it);
    default:
      return write_on_stream(it);
  }
}

static void take(const char *record, size_t bytes) {
  whole it;
  memset(&it, 0, sizeof it);
  memcpy(&it, record, bytes < sizeof it ? bytes : sizeof it);
  const int loss = it.record.flags & PROF_BACKEND_NO_TIMES ? PROF_LOSS_DEVICE_TIMES : write(&it);
  if (loss >= 0) prof_i_thread_lose(&prof_i_no_thread, loss, 1);
}

/* How many there are; what is none, as one. */
static uint64_t count_of(const char *at, size_t bytes) {
  uint64_t count = 0;
  for (uint16_t size = 0; bytes > 0; at += size, bytes -= size, count++) {
    if (bytes < sizeof(prof_backend_record)) return count + 1;
    memcpy(&size, at, sizeof size);
    if (size < sizeof(prof_backend_record) || size % 8 != 0 || size > bytes) return count + 1;
  }
  return count;
}

void prof_i_records_emit(const void *records, size_t bytes) {
  const char *at = records;
  if (!own.end || !prof_i_gate_enter()) {
    prof_i_thread_lose_outside(&prof_i_no_thread,
                               own.end ? PROF_LOSS_CLEARED : PROF_LOSS_DEVICE_TIMES,
                               count_of(records, bytes));
    return;
  }
  while (bytes >= sizeof(prof_backend_record)) {
    prof_backend_record record;
    memcpy(&record, at, sizeof record);
    if (record.size < sizeof record || record.size % 8 != 0 || record.size > bytes) break;
    take(at, record.size);
    at += record.size;
    bytes -= record.size;
  }
  /* how many there were is not known */
  if (bytes > 0) prof_i_thread_lose(&prof_i_no_thread, PROF_LOSS_DEVICE_TIMES, 1);
  prof_i_gate_leave();
}

void prof_i_records_begin(prof_i_back_end *end) {
  uint64_t width;
  own.end = end;
  own.stream = NULL;
  own.anchor_ns = prof_i_port_monotonic_ns();
  own.anchor_ticks = prof_i_clock_ticks_at(own.anchor_ns, &width);
}

void prof_i_records_end(void) { own.end = NULL; }

void prof_i_records_end_lines(void) {
  for (calls *c = own.calls; c; c = c->next) prof_i_thread_end_line(&c->line);
  prof_i_device_memory_end_line();
}

void prof_i_records_forget(void) {
  own.parents = own.calls; /* their memory stays, and is not lost */
  own.calls = NULL;
  own.end = NULL;
  own.stream = NULL;
  prof_i_device_memory_forget();
}
