/* See moment.h. */
#include "moment.h"

/* the first zero: so that what was before it has a time, too */
static const uint64_t first_ns = UINT64_C(1) << 50;
static const int64_t nonsense_ns = INT64_C(1) << 55; /* a year: no two events are so far apart */
/* vendors tell a distance by a float of milliseconds: from a zero that is farther off, less than
   their clock's own steps is lost no more */
enum { FAR_NS = 1000000000 };

static void swap(void **a, void **b) {
  void *const held = *a;
  *a = *b;
  *b = held;
}

/* It becomes the zero; a new event stands in its place. */
static bool begin_here(prof_i_stream *stream, void **event) {
  void *fresh = NULL;
  if (stream->end->table.event_create(stream->end->self, stream->handle, &fresh) != PROF_BACKEND_OK)
    return false;
  stream->zero = *event;
  stream->zero_ns = first_ns;
  *event = fresh;
  return true;
}

bool prof_i_moment_of(prof_i_stream *stream, void **event, uint64_t *ns_out) {
  const prof_backend *const table = &stream->end->table;
  int64_t since;
  if (table->event_time)
    return table->event_time(stream->end->self, *event, ns_out) == PROF_BACKEND_OK && *ns_out != 0;
  if (!stream->zero) {
    *ns_out = first_ns;
    return begin_here(stream, event);
  }
  if (table->event_elapsed(stream->end->self, stream->zero, *event, &since) != PROF_BACKEND_OK ||
      since >= nonsense_ns || since <= -nonsense_ns)
    return false;
  *ns_out = stream->zero_ns + (uint64_t)since;
  if (since >= FAR_NS) {
    swap(&stream->zero, event);
    stream->zero_ns = *ns_out;
  }
  return true;
}

bool prof_i_moment_begin_anew(prof_i_stream *stream, void **first, void *second,
                              uint64_t *first_ns_out) {
  const prof_backend *const table = &stream->end->table;
  void *const gone = stream->zero;
  int64_t between;
  if (table->event_time || !gone ||
      table->event_elapsed(stream->end->self, *first, second, &between) != PROF_BACKEND_OK ||
      !begin_here(stream, first))
    return false;
  table->event_destroy(stream->end->self, gone);
  *first_ns_out = stream->zero_ns;
  return true;
}
