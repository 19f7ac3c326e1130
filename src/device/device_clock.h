/* A device's clock beside the host's counter: what a time of the one is by the other, and how wrong
   that may be. One for each device; for each stream, where only the distance of two events is told.
   The collector alone. What has been brought over once stays where it is: both go through the same
   knots, so that what a device did inside of something else stands inside of it in the trace, too,
   whenever the two were read. */
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
  /* its times are made of distances between events, and no reading tells of them */
  bool has_distances_only;
  bool has_readings; /* it can be read */
  /* the counter's ticks in a ns; as a share of it, what that may be wrong by */
  double rate, rate_error;
  /* the same when the first knot was put: what lies before it */
  double before_rate, before_rate_error;
  prof_i_clock_knot knots[PROF_I_CLOCK_KNOTS_MAX]; /* by the device's time */
  uint32_t count;
  uint64_t mapped_end_ns; /* the latest moment of the device's that was brought over */
  /* Of one that cannot be read: how far the counter is ahead of the line through the first bound's
     lower end, at least and at most, as of the last bound. */
  uint64_t zero_ns, zero_ticks, bound_ticks;
  int64_t low_ticks, high_ticks;
  uint64_t step_count; /* how often the two have parted: a clock was set, the machine slept */
} prof_i_device_clock;

void prof_i_device_clock_init(prof_i_device_clock *clock, prof_i_backend *backend, uint32_t index);

/* Reads both clocks, where that can be done, unless that moment of the device's lies before the
   last reading already. False: it lies so far ahead of the device's clock that it is none. */
bool prof_i_device_clock_update(prof_i_device_clock *clock, uint64_t device_ns);

/* A look that was taken before there was this clock to take it for: its first reading. Where there
   is one already, it is nothing. */
void prof_i_device_clock_add_reading(prof_i_device_clock *clock, const prof_backend_pair *pair);

/* What an event tells: it was not past when it was recorded, and was when it was looked at. */
void prof_i_device_clock_add_bound(prof_i_device_clock *clock, const prof_i_clock_bound *bound);

/* The host's counter at a moment of the device, and by how much that may be wrong. False: nothing
   is known yet. */
bool prof_i_device_clock_to_host(prof_i_device_clock *clock, uint64_t device_ns,
                                 uint64_t *ticks_out, uint64_t *error_ticks_out);

/* The same of a moment in which something begins. Where the line changes right behind it, it is on
   the new one, as its end will be: else what begins in the instant in which another thing ended
   would be longer or shorter by the step. */
bool prof_i_device_clock_to_host_begin(prof_i_device_clock *clock, uint64_t device_ns,
                                       uint64_t *ticks_out, uint64_t *error_ticks_out);

#endif
