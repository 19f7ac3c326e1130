/* Makes a scope of a stream from two events that the device has passed, and converts its times. The
   collector alone. */
#define _GNU_SOURCE
#include "internal.h"

#include <prof/profiler.h>
#include <stdlib.h>

#include "../core/buffer/arena.h"
#include "../core/buffer/session.h"

/* One for each device. A stream whose events have only distances has one of its own beside it. */
typedef struct clock_entry {
  prof_i_device_clock clock;
  const prof_i_stream *sole_stream; /* or NULL: the device's own */
  struct clock_entry *next;
} clock_entry;

static struct {
  clock_entry *clocks;
  const clock_entry *inherited; /* of a forked child: their memory stays, and is not lost */
} clock_list;

static prof_i_device_clock *find_or_make_clock(prof_i_backend *backend, uint32_t index,
                                               const prof_i_stream *sole_stream) {
  for (clock_entry *c = clock_list.clocks; c; c = c->next)
    if (c->sole_stream == sole_stream && c->clock.backend == backend && c->clock.index == index)
      return &c->clock;
  clock_entry *const c = calloc(1, sizeof *c);
  if (!c) return NULL;
  prof_i_device_clock_init(&c->clock, backend, index);
  c->clock.has_distances_only = sole_stream != NULL;
  c->sole_stream = sole_stream;
  c->next = clock_list.clocks;
  clock_list.clocks = c;
  return &c->clock;
}

prof_i_device_clock *prof_i_resolver_device_clock(prof_i_backend *backend, uint32_t index) {
  return find_or_make_clock(backend, index, NULL);
}

void prof_i_resolver_forget(void) {
  clock_list.inherited = clock_list.clocks;
  clock_list.clocks = NULL;
}

bool prof_i_resolver_prepare(prof_i_stream *stream) {
  if (!stream->clock &&
      !(stream->clock = find_or_make_clock(stream->backend, (uint32_t)stream->device.index,
                                           stream->backend->table.event_time ? NULL : stream)))
    return false;
  prof_i_device_clock_update(stream->clock, 0);
  return true;
}

/* ---- times of events: from the back end, or by distances from one event, the zero ---- */

/* the first zero: events before it have a time, too */
static const uint64_t first_zero_ns = UINT64_C(1) << 50;
/* a year: no two events are farther apart */
static const int64_t distance_max_ns = INT64_C(1) << 55;
/* Vendors report a distance as a float of milliseconds. Within this distance of the zero its error
   is below the steps of their clocks. */
enum { FAR_NS = 1000000000 };

static void swap_events(void **a, void **b) {
  void *const held = *a;
  *a = *b;
  *b = held;
}

/* *event becomes the zero, and is replaced by a new event. */
static bool make_zero(prof_i_stream *stream, void **event) {
  void *fresh = NULL;
  if (stream->backend->table.event_create(stream->backend->self, stream->handle, &fresh) !=
      PROF_BACKEND_OK)
    return false;
  stream->zero_event = *event;
  stream->zero_ns = first_zero_ns;
  *event = fresh;
  return true;
}

/* The time of an event that is past, in ns of its stream's clock. The event may be kept as the
   stream's zero: another one then replaces it. False: it has no time. */
static bool get_event_time(prof_i_stream *stream, void **event, uint64_t *ns_out) {
  const prof_backend *const table = &stream->backend->table;
  int64_t since;
  if (table->event_time)
    return table->event_time(stream->backend->self, *event, ns_out) == PROF_BACKEND_OK &&
           *ns_out != 0;
  if (!stream->zero_event) {
    *ns_out = first_zero_ns;
    return make_zero(stream, event);
  }
  if (table->event_elapsed(stream->backend->self, stream->zero_event, *event, &since) !=
          PROF_BACKEND_OK ||
      since >= distance_max_ns || since <= -distance_max_ns)
    return false;
  *ns_out = stream->zero_ns + (uint64_t)since;
  if (since >= FAR_NS) {
    swap_events(&stream->zero_event, event);
    stream->zero_ns = *ns_out;
  }
  return true;
}

/* Both events are past, and the first has no time. True: they have a distance, so the zero has
   gone, for example with a context of the vendor's. The first event becomes the zero. Later times
   have no known distance to earlier ones. */
static bool restart_event_times(prof_i_stream *stream, void **first, void *second,
                                uint64_t *first_ns_out) {
  const prof_backend *const table = &stream->backend->table;
  void *const gone = stream->zero_event;
  int64_t between;
  if (table->event_time || !gone ||
      table->event_elapsed(stream->backend->self, *first, second, &between) != PROF_BACKEND_OK ||
      !make_zero(stream, first))
    return false;
  table->event_destroy(stream->backend->self, gone);
  *first_ns_out = stream->zero_ns;
  return true;
}

/* ---- scopes ---- */

/* Whether the recording in which the scope began is still under way. */
static bool is_pair_current(const prof_i_event_pair *pair) {
  return prof_i_session_is_recording() && prof_i_the_arena.base &&
         pair->arena == prof_i_the_arena.number &&
         pair->session == __atomic_load_n(&prof_i_arena_header()->session, __ATOMIC_ACQUIRE);
}

/* The stream's clock begins anew with its zero. */
static bool restart_stream_clock(prof_i_stream *stream, prof_i_event_pair *pair,
                                 uint64_t *first_ns_out) {
  const uint64_t step_count = stream->clock->step_count;
  if (!restart_event_times(stream, &pair->events[0], pair->events[1], first_ns_out)) return false;
  prof_i_device_clock_init(stream->clock, stream->backend, (uint32_t)stream->device.index);
  stream->clock->has_distances_only = true;
  stream->clock->step_count = step_count;
  return true;
}

static bool read_pair_times(prof_i_stream *stream, prof_i_event_pair *pair, uint64_t ns_out[2]) {
  if (!get_event_time(stream, &pair->events[0], &ns_out[0]) &&
      !restart_stream_clock(stream, pair, &ns_out[0]))
    return false;
  return get_event_time(stream, &pair->events[1], &ns_out[1]);
}

int prof_i_resolver_write_scope(prof_i_stream *stream, prof_i_event_pair *pair, uint64_t now) {
  prof_i_stream_scope scope = {.stream = stream,
                               .clock = stream->clock,
                               .serial = pair->launch_serial,
                               .launch_ticks = pair->start >> 4,
                               .site = pair->site,
                               .flags = pair->flags,
                               .name_bytes = pair->name_bytes,
                               .category_bytes = pair->category_bytes,
                               .names = pair->names};
  const prof_i_stream_bounds bounds = {
      {pair->ticks[0], pair->ticks[1]},
      pair->pending_ticks > pair->ticks[1] ? pair->pending_ticks : pair->ticks[1],
      now};
  if (!is_pair_current(pair)) return PROF_LOSS_DEVICE_LATE;
  if (!read_pair_times(stream, pair, scope.device_ns)) return PROF_LOSS_DEVICE_TIMES;
  if (scope.device_ns[1] < scope.device_ns[0] || !prof_i_stream_scope_set_times(&scope, &bounds))
    return PROF_LOSS_DEVICE_TIMES;
  const int loss = prof_i_stream_scope_write(&scope);
  prof_i_device_state *const state =
      loss < 0 ? prof_i_device_state_get(stream->device, stream->backend) : NULL;
  if (state) prof_i_device_count_add(&state->scope_count, 1);
  return loss;
}
