/* See harvest.h. A scope that the clocks would put before its launch is moved there, and counted. */
#define _GNU_SOURCE
#include "harvest.h"

#include <prof/profiler.h>
#include <stdlib.h>

#include "../core/arena.h"
#include "../core/clock.h"
#include "../core/control.h"
#include "../core/entry.h"
#include "../core/meta.h"
#include "../core/record.h"
#include "account.h"
#include "moment.h"

enum { RECORD_WORDS = 3 + 1 + 2 * (2 + PROF_I_SIDE_NAME_BYTES / 8) + 4 };

/* One for each device; of streams whose events tell no time, only distances, one for each. */
typedef struct clock_of {
  prof_i_device_clock clock;
  const prof_i_stream *alone; /* or NULL */
  struct clock_of *next;
} clock_of;

static struct {
  clock_of *clocks;
  const clock_of *parents; /* of a forked child: their memory stays, and is not lost */
} own;

static prof_i_device_clock *find_clock(const prof_i_stream *stream) {
  const prof_i_stream *const alone = stream->end->table.event_time ? NULL : stream;
  for (clock_of *c = own.clocks; c; c = c->next)
    if (c->alone == alone && c->clock.end == stream->end && c->clock.index == (uint32_t)stream->device.index) return &c->clock;
  clock_of *const c = calloc(1, sizeof *c);
  if (!c) return NULL;
  prof_i_device_clock_begin(&c->clock, stream->end, (uint32_t)stream->device.index);
  c->alone = alone;
  c->next = own.clocks;
  own.clocks = c;
  return &c->clock;
}

void prof_i_harvest_forget(void) {
  own.parents = own.clocks;
  own.clocks = NULL;
}

bool prof_i_harvest_begin(prof_i_stream *stream) {
  if (!stream->clock && !(stream->clock = find_clock(stream))) return false;
  prof_i_device_clock_look(stream->clock, 0);
  return true;
}

/* ---- the record ---- */

static size_t put_words(uint64_t *to, const prof_i_pair *pair, const prof_i_stream *stream, uint64_t duration, const uint64_t *device_ns) {
  const bool is_long = duration >> PROF_I_DURATION_BITS;
  size_t words = 1;
  to[words++] = (uint32_t)stream->device.type | (uint64_t)(uint32_t)stream->device.index << 32;
  to[words++] = stream->handle;
  if (is_long) to[words++] = duration;
  if (pair->flags & PROF_I_FLAG_NAME) words += prof_i_put_text(to + words, pair->names, pair->name_bytes);
  if (pair->flags & PROF_I_FLAG_CATEGORY) words += prof_i_put_text(to + words, pair->names + pair->name_bytes, pair->category_bytes);
  to[words++] = pair->launch;
  to[words++] = pair->start >> 4;
  to[words++] = device_ns[0];
  to[words++] = device_ns[1];
  to[0] = (2 + words + 1) / 2 | (uint64_t)PROF_I_KIND_SCOPE << 16 | (uint64_t)(pair->flags | PROF_I_FLAG_DEVICE | PROF_I_FLAG_STREAM | (is_long ? PROF_I_FLAG_LONG : 0)) << 24;
  return words;
}

static int write_scope(prof_i_stream *stream, const prof_i_pair *pair, const uint64_t *ticks, const uint64_t *device_ns) {
  uint64_t words[RECORD_WORDS];
  prof_i_thread *const line = prof_i_thread_attach_line(&stream->line);
  if (!line) return PROF_LOSS_NO_THREAD;
  const uint64_t duration = ticks[1] - ticks[0];
  const size_t count = put_words(words, pair, stream, duration, device_ns);
  const uint64_t word1 = (duration >> PROF_I_DURATION_BITS ? 0 : duration << PROF_I_DURATION_SHIFT) | (uint64_t)pair->site << PROF_I_WHAT_SITE_SHIFT | PROF_I_TYPE_LONG;
  return prof_i_record_write(line, ticks[0] << 4, ticks[0] << 4, word1, words, count);
}

/* ---- its times ---- */

static uint64_t ns_of(uint64_t ticks) { return (uint64_t)((double)ticks / prof_i_clock_ticks_per_ns()); }

/* By the host's counter; returns the error in ticks. False: the clocks tell nothing yet. */
static bool bring_over(prof_i_stream *stream, const prof_i_pair *pair, uint64_t now, const uint64_t *device_ns, uint64_t *ticks, uint64_t *error_out) {
  prof_i_device_clock *const clock = stream->clock;
  const uint64_t unfinished = pair->waited > pair->ticks[1] ? pair->waited : pair->ticks[1];
  uint64_t errors[2];
  prof_i_device_clock_look(clock, device_ns[1]);
  prof_i_device_clock_bound(clock, &(prof_i_clock_bound){device_ns[0], pair->ticks[0], now});
  prof_i_device_clock_bound(clock, &(prof_i_clock_bound){device_ns[1], unfinished, now});
  for (int i = 0; i < 2; i++)
    if (!prof_i_device_clock_host(clock, device_ns[i], &ticks[i], &errors[i])) return false;
  *error_out = errors[0] > errors[1] ? errors[0] : errors[1];
  return true;
}

/* Nothing was past before it was put on the stream. By how much it had to be moved. */
static uint64_t keep_order(uint64_t *ticks, const uint64_t *launched) {
  uint64_t moved = 0;
  for (int i = 0; i < 2; i++) {
    if (!prof_i_clock_is_before(ticks[i], launched[i])) continue;
    if (launched[i] - ticks[i] > moved) moved = launched[i] - ticks[i];
    ticks[i] = launched[i];
  }
  return moved;
}

static void tell(const prof_i_stream *stream, uint64_t error, uint64_t early) {
  prof_i_device_state *const state = prof_i_device_account(stream->device, stream->end);
  if (!state) return;
  prof_i_account_add(&state->scope_count, 1);
  if (stream->clock->has_pairs) __atomic_fetch_or(&state->flags, (uint32_t)PROF_I_DEVICE_READ, __ATOMIC_RELAXED);
  prof_i_account_raise(&state->clock_error_ns, ns_of(error));
  prof_i_account_raise(&state->clock_step_count, stream->clock->steps);
  if (!early) return;
  prof_i_account_add(&state->early_count, 1);
  prof_i_account_raise(&state->early_ns, ns_of(early));
}

/* A scope that was open when its recording ended comes when another one is under way, or none. */
static bool is_of_now(const prof_i_pair *pair) {
  return prof_i_control_is_recording() && prof_i_the_arena.base && pair->arena == prof_i_the_arena.number && pair->session == __atomic_load_n(&prof_i_arena_header()->session, __ATOMIC_ACQUIRE);
}

int prof_i_harvest_scope(prof_i_stream *stream, prof_i_pair *pair, uint64_t now) {
  uint64_t device_ns[2], ticks[2], error = 0;
  if (!is_of_now(pair)) return PROF_LOSS_DEVICE_LATE;
  for (int i = 0; i < 2; i++)
    if (!prof_i_moment_of(stream, &pair->events[i], &device_ns[i])) return PROF_LOSS_DEVICE_TIMES;
  if (device_ns[1] < device_ns[0] || !bring_over(stream, pair, now, device_ns, ticks, &error)) return PROF_LOSS_DEVICE_TIMES;
  const uint64_t early = keep_order(ticks, pair->ticks);
  const int loss = write_scope(stream, pair, ticks, device_ns);
  if (loss < 0) tell(stream, error, early);
  return loss;
}
