/* See harvest.h. */
#define _GNU_SOURCE
#include "harvest.h"

#include <prof/profiler.h>
#include <stdlib.h>

#include "../core/buffer/arena.h"
#include "../core/buffer/session.h"
#include "account.h"
#include "moment.h"
#include "stream_scope.h"

/* One for each device; of streams whose events tell no time, only distances, one for each, beside
   the device's own. */
typedef struct clock_of {
  prof_i_device_clock clock;
  const prof_i_stream *alone; /* or NULL: the device's own */
  struct clock_of *next;
} clock_of;

static struct {
  clock_of *clocks;
  const clock_of *parents; /* of a forked child: their memory stays, and is not lost */
} own;

static prof_i_device_clock *find_clock(prof_i_back_end *end, uint32_t index,
                                       const prof_i_stream *alone) {
  for (clock_of *c = own.clocks; c; c = c->next)
    if (c->alone == alone && c->clock.end == end && c->clock.index == index) return &c->clock;
  clock_of *const c = calloc(1, sizeof *c);
  if (!c) return NULL;
  prof_i_device_clock_begin(&c->clock, end, index);
  c->clock.is_of_distances = alone != NULL;
  c->alone = alone;
  c->next = own.clocks;
  own.clocks = c;
  return &c->clock;
}

prof_i_device_clock *prof_i_harvest_device_clock(prof_i_back_end *end, uint32_t index) {
  return find_clock(end, index, NULL);
}

void prof_i_harvest_forget(void) {
  own.parents = own.clocks;
  own.clocks = NULL;
}

bool prof_i_harvest_begin(prof_i_stream *stream) {
  if (!stream->clock &&
      !(stream->clock = find_clock(stream->end, (uint32_t)stream->device.index,
                                   stream->end->table.event_time ? NULL : stream)))
    return false;
  prof_i_device_clock_look(stream->clock, 0);
  return true;
}

/* A scope that was open when its recording ended comes when another one is under way, or none. */
static bool is_of_now(const prof_i_pair *pair) {
  return prof_i_session_is_recording() && prof_i_the_arena.base &&
         pair->arena == prof_i_the_arena.number &&
         pair->session == __atomic_load_n(&prof_i_arena_header()->session, __ATOMIC_ACQUIRE);
}

/* The stream's clock begins anew with its zero. */
static bool begin_anew(prof_i_stream *stream, prof_i_pair *pair, uint64_t *first_ns_out) {
  const uint64_t steps = stream->clock->steps;
  if (!prof_i_moment_begin_anew(stream, &pair->events[0], pair->events[1], first_ns_out))
    return false;
  prof_i_device_clock_begin(stream->clock, stream->end, (uint32_t)stream->device.index);
  stream->clock->is_of_distances = true;
  stream->clock->steps = steps;
  return true;
}

static bool read_times(prof_i_stream *stream, prof_i_pair *pair, uint64_t ns_out[2]) {
  if (!prof_i_moment_of(stream, &pair->events[0], &ns_out[0]) &&
      !begin_anew(stream, pair, &ns_out[0]))
    return false;
  return prof_i_moment_of(stream, &pair->events[1], &ns_out[1]);
}

int prof_i_harvest_scope(prof_i_stream *stream, prof_i_pair *pair, uint64_t now) {
  prof_i_stream_scope scope = {.stream = stream,
                               .clock = stream->clock,
                               .serial = pair->launch,
                               .launch_ticks = pair->start >> 4,
                               .site = pair->site,
                               .flags = pair->flags,
                               .name_bytes = pair->name_bytes,
                               .category_bytes = pair->category_bytes,
                               .names = pair->names};
  const prof_i_stream_bounds bounds = {
      {pair->ticks[0], pair->ticks[1]},
      pair->waited > pair->ticks[1] ? pair->waited : pair->ticks[1],
      now};
  if (!is_of_now(pair)) return PROF_LOSS_DEVICE_LATE;
  if (!read_times(stream, pair, scope.device_ns)) return PROF_LOSS_DEVICE_TIMES;
  if (scope.device_ns[1] < scope.device_ns[0] || !prof_i_stream_scope_place(&scope, &bounds))
    return PROF_LOSS_DEVICE_TIMES;
  const int loss = prof_i_stream_scope_write(&scope);
  prof_i_device_state *const state =
      loss < 0 ? prof_i_device_account(stream->device, stream->end) : NULL;
  if (state) prof_i_account_add(&state->scope_count, 1);
  return loss;
}
