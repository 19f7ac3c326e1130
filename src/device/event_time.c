/* See event_time.h. */
#include "event_pair.h"
#include "internal.h"

/* the first zero: so that what was before it has a time, too */
static const uint64_t first_zero_ns = UINT64_C(1) << 50;
static const int64_t distance_max_ns = INT64_C(1)
                                       << 55; /* a year: no two events are so far apart */
/* vendors tell a distance by a float of milliseconds: from a zero that is farther off, less than
   their clock's own steps is lost no more */
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

bool prof_i_event_time_get(prof_i_stream *stream, void **event, uint64_t *ns_out) {
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

bool prof_i_event_time_restart(prof_i_stream *stream, void **first, void *second,
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
