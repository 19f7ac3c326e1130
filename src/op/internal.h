/* Functions of the operator profiler that need no header of their own, grouped by the file that
   defines them. */
#ifndef PROF_OP_INTERNAL_H
#define PROF_OP_INTERNAL_H

#include <prof/op.h>
#include <prof/scope.h>
#include <stdbool.h>
#include <stdint.h>

#include "../device/registry.h"
#include "series.h"

/* ---- stream_timer.c ---- */

/* True if it is one of prof_op_timer_create()'s, or a copy. */
bool prof_i_stream_timer_is(const prof_op_timer *timer);

extern const prof_op_timer prof_i_host_timer; /* user: a prof_i_host_time */

typedef struct prof_i_host_time {
  uint64_t begun_ns;
} prof_i_host_time;

/* The possible error of a sample in us: the timer's step, or the time of an empty begin and end,
   whichever is more. An impossible time is handed out unchanged. Returns the timer's own result. */
int prof_i_timer_error(const prof_op_timer *timer, double *error_us_out);

/* Not negative, not without end, and no NaN. */
static inline bool prof_i_is_time(double us) { return us >= 0 && us < 1e15; }

/* The time of a chain of dependent additions: the processor's speed, without memory and caches. The
   best of a few, so that a preempted try does not count. Some 20 us. */
double prof_i_chain_us(void);

/* ---- op_memory.c ---- */

/* What an operator's allocator requests during a run, on its thread: the peak above the level at
   the run's begin. Operators that run at once on threads have a part each. The whole is what all
   parts hold, in the order of their calls, so its peak was really held. */

typedef struct prof_i_workspace {
  struct prof_i_workspace *outer; /* of a measurement inside of which this one is made */
  struct prof_i_workspace *whole; /* of which this is a part; or NULL */
  /* of a whole: any part's thread, relaxed; read when the parts have ended */
  uint64_t now_bytes, peak_bytes;
  bool was_reported; /* the same */
} prof_i_workspace;

/* From now on this thread's calls count for it, until the end. Nested. */
void prof_i_workspace_begin(prof_i_workspace *workspace);
void prof_i_workspace_end(prof_i_workspace *workspace);

/* The same of a part. What it still holds at its end stays in the whole. */
void prof_i_workspace_begin_part(prof_i_workspace *part, prof_i_workspace *whole);

/* True if any thread ever called prof_op_workspace_alloc(), in a measurement or not. Then the
   operators' allocator reports, and a run without a report requested nothing. */
bool prof_i_workspace_is_hooked(void);

/* Device memory that a vendor's library hands out while an operator runs. The back end records
   it (PROF_BACKEND_MEMORY) without a recording of prof's: the measuring thread starts it for
   that alone, and stops it. The vendor says neither which thread nor which stream requested a
   block. So everything counts that the process gets of that device. See op.h. */

typedef struct prof_i_op_memory prof_i_op_memory;

/* Begins. With a text: PROF_E_UNSUPPORTED (no back end reports), PROF_E_PERMISSION,
   PROF_E_NO_MEMORY. PROF_E_BUSY: it records, another measurement uses it, or another tool does. */
int prof_i_op_memory_begin(prof_device device, prof_i_op_memory **memory_out);

/* Ends, and returns the peak of what was handed out since. Frees the memory in any case.
   PROF_E_UNSUPPORTED: reports were missed; PROF_E_NO_MEMORY. */
int prof_i_op_memory_end(prof_i_op_memory *memory, uint64_t *peak_bytes_out);

/* ---- throttle_monitor.c ---- */

/* A device's meters while an operator is measured on it: its clock, and what throttles it. A
   thread of the measurement, "prof-op-meters", reads them. It does so only while the measuring
   thread waits between two samples. That thread waits for a vendor's call for one second, ten in
   all, and then goes on without. */

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

/* ---- result.c ---- */

/* What has to be equal for a result to be handed out again. */
typedef struct prof_i_op_identity {
  prof_device device;
  int32_t warmup, exec, repeat;
  uint32_t repeat_all, caches;
  uint32_t is_device_warm; /* see prof_op_info */
  uint64_t least_ns, time_limit_ns;
  double precision;
  uint32_t vendor_memory, open_meters;
  char timer[64];
  char driver[512]; /* and the device's model; of the host, the processor's */
} prof_i_op_identity;

struct prof_op_result {
  prof_op_result *next; /* in the cache */
  prof_i_op_identity identity;
  uint64_t interleave_id; /* those that were measured in turn have the same one; 0: alone */
  prof_op_info info;
  size_t count, bytes; /* samples; of all this */
  double *sorted;      /* behind the samples */
  char *key;           /* behind them */
  double samples[];
};

/* What a measurement found. */
typedef struct prof_i_facts {
  const double *samples; /* us a run */
  size_t count;
  int32_t exec, warmup; /* runs a sample, and of the warm-up */
  uint64_t workspace_bytes;
  uint32_t workspace_source; /* prof_op_workspace_source */
  int32_t workspace_status;
  bool has_workspace, is_time_over, has_energy;
  double energy_uj; /* a run */
  double timer_us;  /* what a sample may be wrong by */
  double slowdown;  /* see prof_op_info */
  prof_i_throttle_samples looks;
} prof_i_facts;

/* Copies the samples and the key, and computes the statistics. NULL: no memory. */
prof_op_result *prof_i_result_create(const prof_i_op_identity *identity, const char *key,
                                     const prof_i_facts *facts);
prof_op_result *prof_i_result_copy(const prof_op_result *result);

/* ---- summarize.c ---- */

/* Pure functions but for scratch memory. */

typedef struct prof_i_drift {
  double score; /* Mann and Kendall's, normal: past 3.29 by chance once in a thousand series */
  double share; /* of the median, from the first to the last sample (Theil and Sen's slope) */
} prof_i_drift;

typedef struct prof_i_modes {
  double low, high;  /* means of the two heaps */
  double high_share; /* of the samples */
  bool are_two;
} prof_i_modes;

/* PROF_OP_NOISY, DRIFTING, TWO_MODES, FEW_SAMPLES, as the samples show. False: no memory. */
bool prof_i_diagnose(const prof_i_series *series, uint32_t *doubts_out, prof_i_drift *drift_out,
                     prof_i_modes *modes_out);

/* ---- database.c ---- */

/* Is it ours, or can it be made? Makes the table. */
int prof_i_database_check(const char *path);

/* PROF_OK with NULL: it is not there. */
int prof_i_database_find(const char *path, const prof_i_op_identity *identity, const char *key,
                         prof_op_result **result_out);

/* In the place of one of the same identity. */
int prof_i_database_store(const char *path, const prof_op_result *result);

/* Of a device, or all for NULL. */
int prof_i_database_delete(const char *path, const prof_device *device);
int prof_i_database_count(const char *path, const prof_device *device, size_t *count_out);

#endif
