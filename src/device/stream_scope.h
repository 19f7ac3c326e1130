/* One scope of a stream, to the capture: the device's side of a scope, or what a vendor's own
   tracing recorded. The collector alone, past the gate. */
#ifndef PROF_DEVICE_STREAM_SCOPE_H
#define PROF_DEVICE_STREAM_SCOPE_H

#include "event_pair.h"

enum { PROF_I_STREAM_VALUES_MAX = 64 }; /* words */

typedef struct prof_i_stream_scope {
  prof_i_stream *stream;
  prof_i_device_clock *clock; /* that its times are of */
  uint64_t device_ns[2];      /* begin and end, by the device's clock */
  uint64_t ticks[2];          /* the same by the host's counter */
  uint64_t serial;            /* of the thread that launched it; 0: not known */
  uint64_t launch_ticks;      /* when */
  /* flags: PROF_I_FLAG_NAME, PROF_I_FLAG_CATEGORY, PROF_I_FLAG_CUT. schema: of the four launch
     words and the values behind them; 0: there are none */
  uint32_t site, flags, schema;
  uint32_t name_bytes, category_bytes;
  const char *names; /* the name, then the category, where they are made at run time */
  const uint64_t *values;
  size_t value_words;
} prof_i_stream_scope;

/* The loss, or -1: it stands. */
int prof_i_stream_scope_write(const prof_i_stream_scope *scope);

/* Brings its times over, device_ns to ticks. Nothing began before it was launched: earliest has,
   for begin and end, the ticks before which it cannot have been; what the clocks would put before
   is moved there, and counted. now: the counter after it was found past; unfinished: the last look
   that found it not past, or earliest's. False: the clocks tell nothing yet, or it cannot have been
   then. */
typedef struct prof_i_stream_bounds {
  uint64_t earliest[2], unfinished, now;
} prof_i_stream_bounds;
bool prof_i_stream_scope_set_times(prof_i_stream_scope *scope, const prof_i_stream_bounds *bounds);

#endif
