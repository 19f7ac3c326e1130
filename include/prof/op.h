/* What one operator costs: latency samples, workspace, statistics, and a verdict on whether to
   believe them. Needs no capture, and none needs this. Times are in us, as RAF's operator profiler
   has them. SPDX-License-Identifier: MIT */
#ifndef PROF_OP_H
#define PROF_OP_H

#include <prof/profiler.h>

PROF_I_EXTERN_C_BEGIN

/* How long something takes, in us. The host's is CLOCK_MONOTONIC; a device's is
   prof_op_timer_create()'s. begin and end return 0, or a code that ends the measurement with
   PROF_E_OPERATOR. */
typedef struct prof_op_timer {
  size_t size;
  const char *name; /* results are kept for it; at most 63 bytes */
  void *user;
  int (*begin)(void *user);
  int (*end)(void *user, double *us_out);
  /* of the last code but 0: in words, for prof_last_error(); or NULL */
  const char *(*why)(void *user);
  /* writes over what the caches hold that the operator finds: before each sample with PROF_OP_COLD,
     in place of the processor's; or NULL */
  int (*cold)(void *user);
} prof_op_timer;

/* An operator: what to call, and what it is. Callbacks return 0, or a code of their own that ends
   the measurement with PROF_E_OPERATOR and stands in prof_last_error(). They are called on the
   calling thread, and must not leave by longjmp() or a C++ exception. */
typedef struct prof_op {
  size_t size;
  /* what is measured, with its shapes and types: "dense f32 128x384x1536". Copied */
  const char *key;
  void *user;                 /* for the callbacks */
  int (*prepare)(void *user); /* once, before the first run; or NULL */
  /* one execution. On a device: enqueued, and timed by timer */
  int (*run)(void *user);
  /* after prepare; or NULL: see prof_op_workspace_alloc() */
  int (*workspace)(void *user, uint64_t *bytes_out);
  /* once, after the last run, also after an error, if prepare went well; or NULL */
  void (*cleanup)(void *user);
  prof_device device; /* zero: the host */
  /* the device's model and driver: results are kept for these. NULL: of the host, the processor's
     model; of a device whose back end is open, what that says. At most 511 bytes */
  const char *driver;
  /* its own, as a stream's is; NULL: options.timer */
  const prof_op_timer *timer;
} prof_op;

typedef enum prof_op_caches {
  PROF_OP_WARM = 0, /* as the run before left them */
  /* what the processor's caches hold, or those that the timer is of (prof_op_timer.cold), is
     written over before each sample; then exec is 1. Of a device without such a timer:
     prof_op_info.is_device_warm */
  PROF_OP_COLD = 1
} prof_op_caches;

/* Zero means the default for every field. */
typedef struct prof_op_options {
  size_t size;
  /* runs before the first sample; 10, as RAF; fewer, but one, where so many would take more than a
     quarter of the time limit, whether asked for or not: prof_op_info.warmup says how many there
     were. This, exec and repeat: at most 16 777 216 */
  int32_t warmup;
  /* runs a sample, which is their mean; as many as the timer needs to be sure: found out by runs
     that are not counted */
  int32_t exec;
  int32_t repeat;     /* samples at most; 100 000 */
  uint32_t no_warmup; /* 1: none; without exec, what finds that out runs nevertheless */
  /* samples are taken for so long at least, or drift and throttling would not be seen; 100 ms. The
     time limit goes before: if it is the shorter one it always ends the measurement,
     PROF_OP_TIME_OVER says so, and precision is only judged by, never waited for */
  uint64_t least_ns;
  /* from the first run on, with all that is between the samples and the statistics: ends the
     measurement between two samples; 1 s, and then on until there are 6 samples, but no longer than
     10 s in all: a limit that is given is kept to, 1 s as well. Not in it: the sample under way,
     which is not stopped, prepare, workspace and cleanup, what the vendor's library and the
     device's meters take to tell (vendor_memory; looks: ten seconds at most), the cache's file, and
     a fifth of the limit */
  uint64_t time_limit_ns;
  /* no more samples once the median is known to so large a share of it, 0.01; but see repeat_all */
  double precision;
  uint32_t repeat_all; /* 1: all `repeat` samples are taken, unless the time is over */
  uint32_t caches;     /* prof_op_caches */
  /* 1: measured even if a result of the same key, device and options is kept, and kept then */
  uint32_t no_reuse;
  uint32_t reserved;
  const prof_op_timer *timer; /* NULL: the host's */
  /* 1: what the operator's device's vendor's library hands out during the first run of the warm-up
     is its workspace, if neither it nor its allocator says that: see prof_op_workspace_source */
  uint32_t vendor_memory;
  /* 1: the device's meters are opened for the measurement, as a sampler opens them (of NVIDIA's
     libnvidia-ml.so.1); 0: read if they are open, or the program has that library loaded. See
     prof_op_info.looks */
  uint32_t open_meters;
} prof_op_options;

/* How the workspace is known: the first of these that is. Where this process's allocator tells, but
   told nothing of this operator, the vendor's word goes before those 0 bytes. */
typedef enum prof_op_workspace_source {
  /* it is not; or an earlier prof kept the result in the cache's file, and did not say */
  PROF_OP_WORKSPACE_UNKNOWN = 0,
  PROF_OP_WORKSPACE_SAID = 1, /* by prof_op.workspace */
  PROF_OP_WORKSPACE_TOLD = 2, /* by its allocator: prof_op_workspace_alloc() */
  /* prof_op_options.vendor_memory: by what its vendor's library recorded (CUDA's, by CUPTI:
     cuMemAlloc(), cudaMalloc(), stream-ordered and managed memory). The most that was held at once
     of what that device's memory was handed out in the first run, whichever thread asked for it and
     on whatever stream: other threads had better not allocate meanwhile. With it comes what is
     taken once, unless prepare has had it; memory of before the run that is released in it does not
     count, nor does the host's that is pinned. Needs a warm-up, and no recording: what the vendor
     records is asked for during that run alone, and stays unknown where a recording of prof's asks
     for records (PROF_DEVICES_RECORDS), another measurement is told just then, or another tool has
     CUPTI: prof_op_info.workspace_status says so. CUPTI is loaded for it, and what it leaves in the
     driver afterwards may make launches slower: compare results that were measured the same way */
  PROF_OP_WORKSPACE_VENDOR = 3
} prof_op_workspace_source;

/* Why a result is not to be believed as it stands: bits of prof_op_info.doubts. */
typedef enum prof_op_doubt {
  PROF_OP_NOT_CONVERGED = 1, /* the median's interval is wider than the precision asked for */
  /* the middle half of the samples spreads over more than 10 % of the median, or surely more than
     one sample in twenty is far outside */
  PROF_OP_NOISY = 2,
  /* later samples are higher, or lower, than earlier ones: a rank test (Mann-Kendall), and more
     than 2 % in all */
  PROF_OP_DRIFTING = 4,
  PROF_OP_TWO_MODES = 8, /* the samples stand in two heaps */
  /* the processor added more slowly at some time of the measurement than at its best */
  PROF_OP_THROTTLED = 16,
  /* a sample is not 100 times what the timer is wrong by, or the median is 0 */
  PROF_OP_TOO_SHORT = 32,
  PROF_OP_TIME_OVER = 64,    /* the time limit ended it */
  PROF_OP_FEW_SAMPLES = 128, /* fewer than 6: no interval of 95 % exists */
  /* the device's meters said that its power, its heat or its hardware held it down
     (prof_op_info.throttle), or its clock was lower by more than 5 % at some time of the
     measurement than at its best */
  PROF_OP_DEVICE_THROTTLED = 256
} prof_op_doubt;

typedef struct prof_op_result prof_op_result;

typedef struct prof_op_info {
  size_t size;
  /* as the operator says, or else the peak of what it asked for in one run: of the warm-up, or
     without one in the first of all; or else the vendor's: see workspace_source */
  uint64_t workspace_bytes;
  /* 1: it is known. Of an operator without a callback for it that asked for nothing: 0 bytes are
     known if this process had called prof_op_workspace_alloc() at all when the measurement ended,
     in one or not; else nobody may have told what it asked for */
  uint32_t has_workspace;
  uint32_t sample_count;
  uint32_t exec; /* runs a sample */
  /* runs before the first sample, as many as there was time for; those that found out exec are not
     among them */
  uint32_t warmup;
  uint32_t doubts;   /* prof_op_doubt; 0: to be believed */
  uint32_t was_kept; /* 1: measured before, and kept: see prof_op_options.no_reuse */
  /* why the cache's file could not be asked, or not written to: a prof_status; PROF_OK also without
     one */
  int32_t file_status;
  uint32_t caches; /* prof_op_caches */
  prof_device device;
  double min_us, max_us, mean_us, stddev_us; /* stddev: of the samples, by n - 1 */
  /* with its interval: order statistics by the sign test, which assumes that samples are
     independent. Where each is tied to the next it is made wider by what is seen of that; still, of
     200 samples in waves of some 50 (autocorrelation 0.98) it misses the median in 9 of 100 instead
     of 5: NOT_CONVERGED nearly always */
  double median_us, median_low_us, median_high_us;
  double confidence; /* of the interval: at least 0.95; less with fewer than 6 samples */
  double q05_us, q25_us, q75_us, q95_us, q99_us;
  /* from the first to the last sample, as a share of the median (Theil-Sen); signed */
  double drift;
  double low_mode_us, high_mode_us, high_mode_share; /* of TWO_MODES; else 0 */
  /* of THROTTLED: a chain of additions at its slowest tenth to the fastest one; 1: none, or fewer
     than 5 looks */
  double slowdown;
  /* of the samples, those further from the middle half than three times its width */
  double outlier_share;
  double timer_us; /* what one sample's time may be wrong by */
  /* of has_energy: what the processors' packages used a run, with all else that ran on the
     machine */
  double energy_uj;
  /* 1: it is known: measured alone, where the kernel's RAPL counters may be read */
  uint32_t has_energy;
  uint32_t workspace_source; /* prof_op_workspace_source */
  /* of prof_op_options.vendor_memory: PROF_OK, or why the vendor's library did not tell: a
     prof_status */
  int32_t workspace_status;
  /* at the device's clock and what holds it down, before samples, 20 ms apart at least; 0: it has
     no such meters, they are not open (prof_op_options.open_meters), or did not answer: a vendor's
     call that takes a second is given up, and so are all when they have taken ten together */
  uint32_t looks;
  /* of DEVICE_THROTTLED: prof_backend_throttle (<prof/backend.h>), of all looks */
  uint32_t throttle;
  /* 1: of PROF_OP_COLD on a device whose timer has no `cold`: the processor's caches were written
     over, the device's are as the run before left them */
  uint32_t is_device_warm;
  double clock_low_hz, clock_high_hz; /* the device's at these looks; 0: it does not tell */
} prof_op_info;

/* Measures one operator. Prepares it, warms it up, takes samples until the median is known well
   enough or a limit is reached, cleans up. The call of run() itself is in the figure (about 1 ns,
   which counts only for what takes some ns). A result of the same key, device, timer and options
   that is kept is handed out again, with the doubts that it has, as often as it is asked for:
   was_kept and doubts say it, and options.no_reuse measures again and keeps that instead;
   prof_op_cache_reset() forgets all. The caller destroys the result. PROF_E_INVALID,
   PROF_E_OPERATOR (a callback failed, or said what cannot be), PROF_E_NO_MEMORY. Any thread; two
   measurements at once disturb each other. */
PROF_API int prof_op_profile(const prof_op *op, const prof_op_options *options,
                             prof_op_result **result_out) PROF_I_NOEXCEPT;

/* Measures several in alternation, a sample of each in turn, so that what changes meanwhile comes
   to all alike: for prof_op_compare(). Limits are each operator's own. The results, `count` of
   them, are the caller's; on an error all are NULL. Neither taken from kept ones nor kept. Errors
   as above. */
PROF_API int prof_op_profile_in_turn(const prof_op *ops, size_t count,
                                     const prof_op_options *options,
                                     prof_op_result **results_out) PROF_I_NOEXCEPT;

/* How members of a group run at once. Their threads sleep while one is measured alone. Before a
   sample of the group begins they are woken, each is sent to a processor of its own if it was woken
   on another's, and they spin until it does; so does the caller's until the last has ended (10 ms;
   then it sleeps, and what it takes to wake is in the figure). Members that are more than the
   processors which sched_getaffinity() allows do not run at once: the kernel gives each its turn,
   gained says what comes of that, and begin_us what the turns cost. The same where a control group
   allows less processor time, or others have the processors. */
typedef enum prof_op_side {
  /* each on a thread of its own; the first on the caller's. Callbacks but run are the caller's
     thread's */
  PROF_OP_THREADS = 0,
  /* begun one after the other by the caller's thread: on a device, each enqueues on a stream of its
     own, and its own timer, or options.timer, awaits all */
  PROF_OP_STREAMS = 1
} prof_op_side;

typedef struct prof_op_overlap {
  size_t size;
  double alone_us;   /* the members' medians, each measured alone, added up */
  double longest_us; /* the longest of them */
  double group_us;   /* the median of all at once */
  /* of what could be gained: 1 as fast as the longest alone, 0 as one after the other, less: they
     hinder each other. What it takes to wake a thread is not in it: see begin_us */
  double gained;
  /* of group_us, at least: what it takes to begin and await the members, the fastest of 64 rounds
     in which nothing is run. On threads well below 1 us where each member has a processor */
  double begin_us;
} prof_op_overlap;

/* As RAF's ProfileGroup(): each member alone and all at once, in turn. Members have timers of their
   own all or none (PROF_E_INVALID, also for one timer of two members): those are all begun before a
   round and all ended after it, in the members' order, and the longest is the group's time; so it
   may lack what it takes to begin them. results_out has room for count + 1: the members', and the
   group's behind them; the caller destroys them. The group's workspace is the peak of what its
   members, each on its thread, asked for by prof_op_workspace_alloc() and held at once in a round
   of the warm-up, and what those with a callback for it say, added up; known if each member's is,
   as one's is that asked for nothing: see prof_op_info.has_workspace. 1 to 64 members. Errors as
   above. */
PROF_API int prof_op_profile_group(const prof_op *ops, size_t count, prof_op_side side,
                                   const prof_op_options *options, prof_op_result **results_out,
                                   prof_op_overlap *overlap_out) PROF_I_NOEXCEPT;

/* As RAF's Profile(): exactly `repeat` samples of `exec` runs each into us_out, which has room for
   `repeat`, and the workspace into *workspace_bytes_out, which may be NULL: 0 also if it is not
   known. Errors as above; PROF_E_INVALID too for a negative warm-up and for no exec or repeat. */
PROF_API int prof_op_latency(const prof_op *op, int warmup, int exec, int repeat, double *us_out,
                             uint64_t *workspace_bytes_out) PROF_I_NOEXCEPT;

/* A stream of a device's, to be timed by the device itself. */
typedef struct prof_op_stream {
  size_t size;
  prof_device device;
  uint64_t stream;      /* as WITH_GPU_PROFILER has it */
  uint64_t patience_ns; /* how long a sample's end waits for the device at most; 60 s */
  /* sends what is on the stream to the device, for a driver that gathers commands: clFlush() of the
     queue. 0, or a code; or NULL */
  int (*flush)(void *user);
  void *user; /* for flush and cold */
  /* enqueues what writes over the device's caches, as a fill of twice its last level's: before each
     sample of PROF_OP_COLD, ahead of its first event: while the device is at it, event and run are
     enqueued behind. 0, or a code; or NULL: they are then as the run before left them */
  int (*cold)(void *user);
} prof_op_stream;

/* A timer for what is enqueued on that stream, by its back end's events (<prof/device.h>): one
   before the first run, one behind the last, and the time between them by the device's own clock,
   with what passes from the first event to the first run's begin. A sample's end waits for the
   second one, asleep most of the time. Samples of one run with PROF_OP_COLD are what nvbench calls
   cold, those of many runs its batch, or hot: docs/reference/operators.md compares them. To make a
   timer puts an event on the stream, too. Its name has the back end and the device: results are
   kept for these. Opens the back end if nobody has; makes no context. The stream must stay until
   the timer is destroyed. The caller destroys it. PROF_E_INVALID (no stream, or another device's),
   PROF_E_UNSUPPORTED (no back end serves the device: why, and what to do),
   PROF_E_OPERATOR (the back end refuses the stream: the vendor's words), PROF_E_BUSY (another
   thread has been opening the back end for two seconds, or the stream is being captured),
   PROF_E_NO_MEMORY. Any thread; one measurement at a time. In a forked child a timer of before ends
   each measurement. */
PROF_API int prof_op_timer_create(const prof_op_stream *stream,
                                  prof_op_timer **timer_out) PROF_I_NOEXCEPT;

/* NULL is ignored. What the device has not passed by then is kept to the end of the process. */
PROF_API void prof_op_timer_destroy(prof_op_timer *timer) PROF_I_NOEXCEPT;

/* NULL is ignored. */
PROF_API void prof_op_result_destroy(prof_op_result *result) PROF_I_NOEXCEPT;

/* Any thread, as long as the result is not destroyed. */
PROF_API int prof_op_info_get(const prof_op_result *result, prof_op_info *info_out) PROF_I_NOEXCEPT;

/* In the order in which they were taken, us a run. Valid while the result is. NULL, and 0, for
   NULL. */
PROF_API const double *prof_op_samples(const prof_op_result *result,
                                       size_t *count_out) PROF_I_NOEXCEPT;

/* Between the samples around it, linearly (type 7 of Hyndman and Fan, as numpy's default). 0 <=
   share <= 1; else, or for NULL, 0. */
PROF_API double prof_op_quantile(const prof_op_result *result, double share) PROF_I_NOEXCEPT;

/* The operator's. Valid while the result is; "" for NULL. */
PROF_API const char *prof_op_key(const prof_op_result *result) PROF_I_NOEXCEPT;

/* One line: "12.41 us (12.38 to 12.45, 95 %), 312 samples of 100 runs; drifting by +4.1 %". In ns,
   us, ms or s, the interval in its median's; of one sample without an interval. Returns the bytes
   it needs without the NUL; writes at most `room`, NUL included. */
PROF_API size_t prof_op_text(const prof_op_result *result, char *to, size_t room) PROF_I_NOEXCEPT;

/* What an operator's own allocator calls while it runs: the peak of what is asked for during one
   run is the workspace of an operator that has no callback for it. Only what is asked for on the
   thread that runs it counts: what an OpenMP operator's workers ask for is left out, and such a one
   had better say its workspace by the callback. Outside of a measurement they only let it be known
   that the allocator tells: see prof_op_info.has_workspace. An allocator that tells <prof/memory.h>
   its pieces calls both: there a pool's pieces, of all threads and with their addresses, land in a
   capture, which a measurement neither has nor needs; here bytes are counted against one run,
   whoever's pool they are of, and not for what was asked for before the run. Any thread; they take
   a few ns and never fail. */
PROF_API void prof_op_workspace_alloc(uint64_t bytes) PROF_I_NOEXCEPT;
PROF_API void prof_op_workspace_free(uint64_t bytes) PROF_I_NOEXCEPT;

typedef enum prof_op_order {
  PROF_OP_UNCLEAR = 0, /* nothing can be said: see prof_op_comparison.doubts and the interval */
  PROF_OP_SAME = 1,    /* the interval lies within the threshold */
  PROF_OP_FASTER = 2,  /* the second takes less time: the interval lies beyond the threshold */
  PROF_OP_SLOWER = 3
} prof_op_order;

typedef struct prof_op_comparison {
  size_t size;
  uint32_t order;  /* prof_op_order: of the second against the first */
  uint32_t doubts; /* prof_op_doubt, of either, that forbid a verdict */
  /* 1: the two were measured in turn, and each round's own ratio counts: what disturbed both
     forbids nothing */
  uint32_t is_paired;
  uint32_t reserved;
  /* second to first: the median of all pairs' ratios (Hodges-Lehmann, on the logarithm), or of the
     rounds' */
  double ratio;
  /* its interval of 95 %, by the rank sum test (Mann-Whitney), or by the rounds' sign test. 0 and
     infinity: there is none, of fewer than 6 rounds, of fewer than 4 samples each (1 against 39, 2
     against 8), or with a sample of 0. Independent samples are assumed as for the median's
     interval, and ties between neighbours widen it likewise */
  double ratio_low, ratio_high;
} prof_op_comparison;

/* Is the second faster? threshold is the share that does not matter, for example 0.02; 0: that.
   PROF_E_INVALID for NULL, a negative threshold, one of 1 and more, or results of different caches.
   Any thread. */
PROF_API int prof_op_compare(const prof_op_result *first, const prof_op_result *second,
                             double threshold, prof_op_comparison *comparison_out) PROF_I_NOEXCEPT;

/* From here on results are kept in an SQLite file, too, for other processes and runs; it is made
   where it is not there. NULL: no longer. Any number of processes may share it on one machine;
   nothing of it is held between two calls, so a fork may come at any time. A file that later cannot
   be asked, or not be written to (locked for two seconds, damaged, such that it takes more than
   four, the disk full), or whose row is not what was asked for, costs a measurement, never an
   error: prof_op_info.file_status says so. PROF_E_UNSUPPORTED without libsqlite3, or in the static
   library; PROF_E_IO (no SQLite file, another program's, damaged, locked), PROF_E_PERMISSION,
   PROF_E_NOT_FOUND, PROF_E_FILE_TYPE, PROF_E_NO_SPACE, PROF_E_NO_MEMORY, PROF_E_INVALID: then what
   was in force stays. Any thread. */
PROF_API int prof_op_cache_open(const char *path) PROF_I_NOEXCEPT;

/* Kept results, as RAF's ResetCache() and GetCacheSize(): of a device (zero: the host), or of all
   for NULL; of the file, too, if there is one and it can be asked. Any thread. */
PROF_API void prof_op_cache_reset(const prof_device *device) PROF_I_NOEXCEPT;
PROF_API size_t prof_op_cache_count(const prof_device *device) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

#endif
