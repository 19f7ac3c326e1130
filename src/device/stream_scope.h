/* Writes one scope of a stream to the capture: device times of a scope, or a record of a vendor's
   tracing. The collector alone, inside the arena guard. */
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

/* Returns the loss, or -1: it was written. */
int prof_i_stream_scope_write(const prof_i_stream_scope *scope);

/* Converts device_ns to ticks. False: the clocks know nothing yet, or these times are impossible. A
   begin or end before bounds->earliest is moved there and counted. */
typedef struct prof_i_stream_bounds {
  uint64_t earliest[2]; /* of begin and end: ticks of the launch */
  uint64_t unfinished;  /* the last time it was found not past, or earliest's */
  uint64_t now;         /* after it was found past */
} prof_i_stream_bounds;
bool prof_i_stream_scope_set_times(prof_i_stream_scope *scope, const prof_i_stream_bounds *bounds);

#endif
