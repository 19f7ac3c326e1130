/* Functions of the operator profiler beyond <prof/op.h>, grouped by the file that defines them. */
#ifndef PROF_OP_INTERNAL_H
#define PROF_OP_INTERNAL_H

#include <prof/op.h>
#include <prof/scope.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../device/registry.h"

/* ---- series.c ---- */

/* Statistics of a series of samples, without a word on what they mean. Pure functions but for the
   memory of a sorted copy; no libm, so that the library needs none. */

typedef struct prof_i_series {
  const double *samples; /* in the order in which they were taken; the caller's */
  double *sorted;
  size_t count;
} prof_i_series;

/* False: no memory. count is at least 1. The caller calls fini. */
bool prof_i_series_init(prof_i_series *series, const double *samples, size_t count);
void prof_i_series_fini(prof_i_series *series);

void prof_i_sort_doubles(double *values, size_t count);
double prof_i_sqrt(double x); /* 0 for what has none, or is past 1e300 */

/* Linear between the two around it (type 7 of Hyndman and Fan). */
double prof_i_quantile(const double *sorted, size_t count, double share);

/* The same of values that are not sorted, and are put into another order. Takes time by their
   number alone. */
double prof_i_quantile_among(double *values, size_t count, double share);

/* The median's interval: the k-th sample from either end, with k as large as the sign test allows
   for 95 %. Correlated samples count for fewer, so the interval is wider. Returns its confidence:
   less than 0.95 for fewer than 6 samples. */
double prof_i_median_interval(const prof_i_series *series, double *low_out, double *high_out);

double prof_i_mean(const prof_i_series *series);
double prof_i_deviation(const prof_i_series *series, double mean); /* by n - 1; 0 for one */

/* For how many independent samples they count: all, where nothing more than chance ties each to the
   next; one at least. */
double prof_i_effective_count(const prof_i_series *series);

/* series.c: the ratio of two. Pure but for scratch memory. */

typedef struct prof_i_ratio {
  /* second to first, with an interval of 95 %; low 0 and high infinity: so few samples have none */
  double middle, low, high;
} prof_i_ratio;

/* False: no memory. All samples above 0. */
bool prof_i_ratio_of(const prof_i_series *first, const prof_i_series *second, prof_i_ratio *out);

/* The same of samples that were taken in turn, the i-th of either in one round. It uses the rounds'
   own ratios, which cancel what disturbs a whole round, and their median's interval. */
bool prof_i_paired_ratio_of(const double *first, const double *second, size_t count,
                            prof_i_ratio *out);

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
   block. So everything counts that the process gets of that device. See <prof/op.h>. */

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

/* ---- results ---- */

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

/* ---- summarize.c ---- */

/* Copies the samples and the key, and computes the statistics. NULL: no memory. */
prof_op_result *prof_i_result_create(const prof_i_op_identity *identity, const char *key,
                                     const prof_i_facts *facts);
prof_op_result *prof_i_result_copy(const prof_op_result *result);

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

/* ---- measure.c ---- */

/* Takes one operator's samples, step by step, so that several can be measured in turn. The steps
   are: read the request, prepare, sample until it is done, clean up, make the result. One thread.
   */

enum { PROF_I_CHAIN_TIMES_MAX = 64 }; /* readings of the processor's speed */

typedef struct prof_i_measurement {
  prof_op op;
  prof_op_options options;
  prof_op_timer timer;
  prof_i_host_time host; /* the host's timer's own */
  /* with the operator's user: before its runs, outside of their time, and after them; or NULL */
  void (*prepare_runs)(void *user), (*finish_runs)(void *user);
  prof_i_op_identity identity;
  int32_t exec;
  double timer_error_us; /* of the timer */
  double *samples;
  size_t count, room;
  int32_t warmup_count;    /* runs of the warm-up that there were */
  size_t next_check_count; /* at the median: when there are so many */
  uint64_t spent_ns;       /* all that passed in its turns, since it was prepared */
  uint64_t sampling_ns;    /* of it, since the first sample */
  uint64_t chain_timed_ns; /* the last reading of the processor's speed */
  double chain_times_us[PROF_I_CHAIN_TIMES_MAX];
  int chain_count;
  /* what a sample finds in caches is the timer's to write over, and not the processor's */
  bool has_own_caches;
  unsigned char *flush_buffer; /* written over before a cold sample */
  size_t flush_bytes;
  /* in a run of which the peak is taken: what it is counted in; else NULL */
  prof_i_workspace *counted;
  uint64_t workspace_bytes;
  uint32_t workspace_source; /* prof_op_workspace_source */
  int32_t workspace_status;
  /* of its device's meters, while samples are taken; others may have the same. NULL: there are
     none */
  prof_i_throttle_monitor *monitor;
  prof_i_throttle_samples looks;
  bool was_counted, is_prepared, is_time_over, is_converged, has_energy;
  double energy_uj; /* a run */
} prof_i_measurement;

/* Reads and completes the request. A status; nothing is held yet. */
int prof_i_measure_init(prof_i_measurement *m, const prof_op *op, const prof_op_options *options);

/* Reads `count` operators, each as long as the first says. */
int prof_i_measure_init_all(prof_i_measurement *all, const prof_op *ops, size_t count,
                            const prof_op_options *options);

/* Prepares all, samples them in turn until each is done, cleans up in the opposite order, and
   makes their results; on an error those are all NULL. All have been initialised, and are
   finished here. */
int prof_i_measure_interleaved(prof_i_measurement *all, size_t count, prof_op_result **results_out);

#endif
