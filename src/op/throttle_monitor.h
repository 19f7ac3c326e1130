/* A device's meters while an operator is measured on it: its clock, and what throttles it. A thread
   of the measurement, "prof-op-meters", reads them. It does so only while the measuring thread
   waits between two samples. That thread waits for a vendor's call for one second, ten in all, and
   then goes on without. */
#ifndef PROF_OP_THROTTLE_MONITOR_H
#define PROF_OP_THROTTLE_MONITOR_H

#include <prof/scope.h>
#include <stdbool.h>

typedef struct prof_i_throttle_samples {
  uint32_t count;                     /* that were answered */
  uint32_t throttle;                  /* prof_backend_throttle, of all */
  double clock_low_hz, clock_high_hz; /* 0: not known */
} prof_i_throttle_samples;

typedef struct prof_i_throttle_monitor prof_i_throttle_monitor;

/* NULL: no back end of that device type has meters that may be read, or there is no thread or
   memory. may_open: those that are not open, too. No vendor is called here but by in_use(). */
prof_i_throttle_monitor *prof_i_throttle_monitor_start(prof_device device, bool may_open);

/* Between two samples: reads the meters if the last reading was long ago. NULL is ignored. */
void prof_i_throttle_monitor_sample(prof_i_throttle_monitor *monitor);

/* Reads the meters once more, and frees the monitor. NULL: no readings. A thread that hangs in a
   vendor's call ends when the call does. */
prof_i_throttle_samples prof_i_throttle_monitor_stop(prof_i_throttle_monitor *monitor);

#endif
