/* Converts a device's times to the host's counter, with the possible error. One for each device;
   one for each stream if events have only distances. The collector alone. Conversions never change:
   all times go through the same knots. So what a device did inside of a scope is inside of it in
   the trace, too. */
#ifndef PROF_DEVICE_DEVICE_CLOCK_H
#define PROF_DEVICE_DEVICE_CLOCK_H

#include "registry.h"

enum { PROF_I_CLOCK_KNOTS_MAX = 512 };

/* At device_ns the host's counter stood between the other two. */
typedef struct prof_i_clock_bound {
  uint64_t device_ns, low_ticks, high_ticks;
} prof_i_clock_bound;

/* From here to the next: `ticks`, and rate more for each ns of the device's, but no less than
   floor_ticks; wrong by at most error_ticks. */
typedef struct prof_i_clock_knot {
  uint64_t device_ns, ticks, error_ticks, floor_ticks;
  double rate;
} prof_i_clock_knot;

typedef struct prof_i_device_clock {
  prof_i_backend *backend;
  uint32_t index;
  /* its times come from distances between events; it has no readings */
  bool has_distances_only;
  bool has_readings; /* it can be read */
  /* the counter's ticks in a ns; as a share of it, what that may be wrong by */
  double rate, rate_error;
  /* the same when the first knot was put: what lies before it */
  double before_rate, before_rate_error;
  prof_i_clock_knot knots[PROF_I_CLOCK_KNOTS_MAX]; /* by the device's time */
  uint32_t count;
  uint64_t mapped_end_ns; /* the latest device time that was converted */
  /* Of a clock that cannot be read, as of the last bound. The counter is ahead of the line through
     the first bound's lower end by low_ticks to high_ticks. */
  uint64_t zero_ns, zero_ticks, bound_ticks;
  int64_t low_ticks, high_ticks;
  uint64_t step_count; /* how often the two clocks parted: a clock was set, or the machine slept */
} prof_i_device_clock;

void prof_i_device_clock_init(prof_i_device_clock *clock, prof_i_backend *backend, uint32_t index);

/* Reads both clocks if that is possible, unless device_ns is before the last reading. False:
   device_ns is too far ahead of the device's clock to be a time of it. */
bool prof_i_device_clock_update(prof_i_device_clock *clock, uint64_t device_ns);

/* Adds a reading that was taken before the clock existed, as its first one. Does nothing if it has
   one. */
void prof_i_device_clock_add_reading(prof_i_device_clock *clock, const prof_backend_pair *pair);

/* Adds the limits that an event gives: not past when it was recorded, past when it was polled. */
void prof_i_device_clock_add_bound(prof_i_device_clock *clock, const prof_i_clock_bound *bound);

/* The host's counter at device_ns, and its possible error. False: nothing is known yet. */
bool prof_i_device_clock_to_host(prof_i_device_clock *clock, uint64_t device_ns,
                                 uint64_t *ticks_out, uint64_t *error_ticks_out);

/* The same for a begin. If the line changes at device_ns, the new line is used, as for the end.
   Otherwise a scope that begins when another one ends would get the step added to its length. */
bool prof_i_device_clock_to_host_begin(prof_i_device_clock *clock, uint64_t device_ns,
                                       uint64_t *ticks_out, uint64_t *error_ticks_out);

#endif
