/* Streams of devices, and the scopes that are written on them. See internal.h. */
#define _GNU_SOURCE
#include <prof/backend.h>
#include <prof/profiler.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/fault.h"
#include "../base/process.h"
#include "../core/buffer/clock.h"
#include "../core/buffer/meta.h"
#include "../core/buffer/record.h"
#include "../core/record/open_stack.h"
#include "internal.h"

/* ---- the list of streams ---- */

static struct {
  pthread_mutex_t lock; /* rank 3: taken to add. Nothing is called under it */
  prof_i_stream *first; /* release; only grows, at its end */
  uint32_t count;
  const prof_i_stream *inherited; /* of a forked child */
} stream_list = {.lock = PTHREAD_MUTEX_INITIALIZER};

prof_i_stream *prof_i_stream_first(void) {
  return __atomic_load_n(&stream_list.first, __ATOMIC_ACQUIRE);
}

static prof_i_stream *find_stream(prof_device device, uint64_t handle) {
  for (prof_i_stream *s = prof_i_stream_first(); s; s = prof_i_stream_next(s))
    if (s->handle == handle && prof_i_is_same_device(s->device, device)) return s;
  return NULL;
}

static prof_i_stream *make_stream(prof_i_backend *backend, prof_device device, uint64_t handle) {
  prof_i_stream *const s = calloc(1, sizeof *s);
  if (!s) return NULL;
  *s = (prof_i_stream){.backend = backend, .handle = handle, .device = device};
  s->pending_end = &s->pending;
  s->line.thread_kind = PROF_I_KIND_OF_STREAM |
                        (uint64_t)(uint32_t)device.type << PROF_I_THREAD_KIND_TYPE_SHIFT |
                        (uint64_t)(uint32_t)device.index << PROF_I_THREAD_KIND_INDEX_SHIFT;
  s->line.handle = handle;
  const bool is_queue = handle & PROF_BACKEND_QUEUE;
  snprintf(s->line.name, sizeof s->line.name, "%s 0x%llx", is_queue ? "queue" : "stream",
           (unsigned long long)(is_queue ? handle & ~PROF_BACKEND_QUEUE : handle));
  return s;
}

prof_i_stream *prof_i_stream_of(prof_device device, uint64_t handle, int *loss_out) {
  prof_i_stream *s = find_stream(device, handle);
  if (s) return s;
  prof_i_backend *const backend = prof_i_registry_open(device.type);
  if (!backend) {
    *loss_out = prof_i_registry_is_opening(device.type) ? PROF_LOSS_DEVICE_TIMES : -1;
    return NULL;
  }
  prof_i_thread_lock(&stream_list.lock);
  s = find_stream(device, handle);
  if (!s && stream_list.count < PROF_I_STREAMS_MAX &&
      (s = make_stream(backend, device, handle)) != NULL) {
    prof_i_stream **place = &stream_list.first;
    while (*place) place = &(*place)->next;
    stream_list.count++;
    __atomic_store_n(place, s, __ATOMIC_RELEASE);
  }
  prof_i_thread_unlock(&stream_list.lock);
  if (!s) *loss_out = PROF_LOSS_DEVICE_FULL;
  return s;
}

void prof_i_stream_report_error(const prof_i_stream *stream, int result) {
  char reason[sizeof((prof_i_device_state *)NULL)->reason];
  snprintf(reason, sizeof reason, "stream 0x%llx: %s", (unsigned long long)stream->handle,
           prof_i_registry_error_text(stream->backend, result));
  prof_i_registry_set_stream_error(stream->backend, stream->handle, result);
  prof_i_device_state_report(stream->device, stream->backend, result, reason);
}

void prof_i_streams_forget(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  stream_list.lock = fresh;
  stream_list.inherited = stream_list.first; /* their memory stays, and is not lost */
  stream_list.first = NULL;
  stream_list.count = 0;
}

/* ---- their scopes in the capture ---- */

enum {
  RECORD_WORDS = 3 + 1 + 2 * (2 + PROF_I_EVENT_PAIR_NAME_BYTES / 8) + 4 + PROF_I_STREAM_VALUES_MAX
};

/* ---- its times ---- */

static uint64_t ns_of_ticks(uint64_t ticks) {
  return (uint64_t)((double)ticks / prof_i_clock_ticks_per_ns());
}

/* Moves times to the launch that the clocks put before it. Returns by how much. */
static uint64_t clamp_to_launch(uint64_t *ticks, const uint64_t *earliest) {
  uint64_t moved = 0;
  for (int i = 0; i < 2; i++) {
    if (!prof_i_clock_is_before(ticks[i], earliest[i])) continue;
    if (PROF_I_FAULT(BEFORE_LAUNCH)) continue;
    if (earliest[i] - ticks[i] > moved) moved = earliest[i] - ticks[i];
    ticks[i] = earliest[i];
  }
  return moved;
}

static void update_device_state(const prof_i_stream_scope *scope, uint64_t error, uint64_t early) {
  prof_i_device_state *const state =
      prof_i_device_state_get(scope->stream->device, scope->stream->backend);
  if (!state) return;
  const uint32_t flags = (scope->clock->has_readings ? PROF_I_DEVICE_READ : 0u) |
                         (scope->clock->has_distances_only ? PROF_I_DEVICE_DISTANCES : 0u);
  if (flags) __atomic_fetch_or(&state->flags, flags, __ATOMIC_RELAXED);
  prof_i_device_count_raise(&state->clock_error_ns, ns_of_ticks(error));
  prof_i_device_count_raise(&state->clock_step_count, scope->clock->step_count);
  if (!early) return;
  prof_i_device_count_add(&state->early_count, 1);
  prof_i_device_count_raise(&state->early_ns, ns_of_ticks(early));
}

/* True for a time that the clock cannot have reached. A clock without readings is where its last
   events have put it, and may have been set by up to a year since. */
static bool is_implausible_time(const prof_i_device_clock *clock, uint64_t device_ns,
                                uint64_t now) {
  const uint64_t year_ns = UINT64_C(1) << 55,
                 host_ns = clock->zero_ns ? ns_of_ticks(now - clock->zero_ticks) : 0;
  return !clock->has_readings && clock->zero_ns && device_ns > clock->zero_ns + host_ns + year_ns;
}

bool prof_i_stream_scope_set_times(prof_i_stream_scope *scope, const prof_i_stream_bounds *bounds) {
  prof_i_device_clock *const clock = scope->clock;
  const uint64_t longest_ns = UINT64_C(1) << 62; /* 146 years: no clock says that */
  uint64_t errors[2];
  if (scope->device_ns[1] >= longest_ns ||
      is_implausible_time(clock, scope->device_ns[1], bounds->now) ||
      !prof_i_device_clock_update(clock, scope->device_ns[1]))
    return false;
  prof_i_device_clock_add_bound(
      clock, &(prof_i_clock_bound){scope->device_ns[0], bounds->earliest[0], bounds->now});
  prof_i_device_clock_add_bound(
      clock, &(prof_i_clock_bound){scope->device_ns[1], bounds->unfinished, bounds->now});
  if (!prof_i_device_clock_to_host_begin(clock, scope->device_ns[0], &scope->ticks[0],
                                         &errors[0]) ||
      !prof_i_device_clock_to_host(clock, scope->device_ns[1], &scope->ticks[1], &errors[1]))
    return false;
  /* its length is 0 where the line changes */
  if (prof_i_clock_is_before(scope->ticks[1], scope->ticks[0])) scope->ticks[1] = scope->ticks[0];
  const uint64_t second = (uint64_t)(prof_i_clock_ticks_per_ns() * 1e9);
  /* it was found past before it was */
  if (prof_i_clock_is_before(bounds->now + errors[1] + second, scope->ticks[1])) return false;
  const uint64_t early = clamp_to_launch(scope->ticks, bounds->earliest);
  update_device_state(scope, errors[0] > errors[1] ? errors[0] : errors[1], early);
  return true;
}

/* ---- the record ---- */

static size_t encode_stream_scope(uint64_t *to, const prof_i_stream_scope *scope,
                                  uint64_t duration) {
  const bool is_long = duration >> PROF_I_DURATION_BITS;
  const prof_device device = scope->stream->device;
  size_t words = 1;
  to[words++] = (uint32_t)device.type | (uint64_t)(uint32_t)device.index << 32;
  to[words++] = scope->stream->handle;
  if (is_long) to[words++] = duration;
  if (scope->flags & PROF_I_FLAG_NAME)
    words += prof_i_put_text(to + words, scope->names, scope->name_bytes);
  if (scope->flags & PROF_I_FLAG_CATEGORY)
    words += prof_i_put_text(to + words, scope->names + scope->name_bytes, scope->category_bytes);
  to[words++] = scope->serial;
  to[words++] = scope->launch_ticks;
  to[words++] = scope->device_ns[0];
  to[words++] = scope->device_ns[1];
  for (size_t i = 0; i < scope->value_words; i++) to[words++] = scope->values[i];
  to[0] = (2 + words + 1) / 2 | (uint64_t)PROF_I_KIND_SCOPE << 16 |
          (uint64_t)(scope->flags | PROF_I_FLAG_DEVICE | PROF_I_FLAG_STREAM |
                     (is_long ? PROF_I_FLAG_LONG : 0))
              << 24 |
          (uint64_t)scope->schema << 32;
  return words;
}

int prof_i_stream_scope_write(const prof_i_stream_scope *scope) {
  uint64_t words[RECORD_WORDS];
  prof_i_thread *const line = prof_i_virtual_thread_attach(&scope->stream->line);
  if (!line) return PROF_LOSS_NO_THREAD;
  const uint64_t duration = scope->ticks[1] - scope->ticks[0];
  const size_t count = encode_stream_scope(words, scope, duration);
  const uint64_t word1 =
      (duration >> PROF_I_DURATION_BITS ? 0 : duration << PROF_I_DURATION_SHIFT) |
      (uint64_t)scope->site << PROF_I_PACKED_SITE_SHIFT | PROF_I_TYPE_LONG;
  return prof_i_record_write(line, scope->ticks[0] << 4, scope->ticks[0] << 4, word1, words, count);
}
