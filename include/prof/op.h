/* The cost of one operator: latency samples, workspace, statistics, and doubts about the result.
   Measurements and captures are independent of each other. Times are in us, as in RAF's operator
   profiler. docs/reference/operators.md explains the statistics.

   Unless its comment says otherwise, a function may be called from any thread, and not in a signal
   handler.
   SPDX-License-Identifier: MIT */
#ifndef PROF_OP_H
#define PROF_OP_H

#include <prof/profiler.h>

PROF_I_EXTERN_C_BEGIN

/* ---- what to measure ---- */

/* Measures a time in us. The host's timer is CLOCK_MONOTONIC; prof_op_timer_create() makes a
   device's. begin and end return 0, or a code that ends the measurement with PROF_E_OPERATOR. */
typedef struct prof_op_timer {
  size_t size;
  const char *name; /* at most 63 bytes; part of a kept result's key */
  void *user;
  int (*begin)(void *user);
  int (*end)(void *user, double *us_out);
  /* Returns a text about the last code that was not 0, for prof_last_error(). May be NULL. */
  const char *(*why)(void *user);
  /* With PROF_OP_COLD: called before each sample, in place of prof's writing over the processor's
     caches. It writes over the caches that the operator uses. May be NULL. */
  int (*cold)(void *user);
} prof_op_timer;

/* An operator: its identity and its callbacks.

   Callbacks return 0, or a code that ends the measurement with PROF_E_OPERATOR; prof_last_error()
   has the code. They are called on the calling thread. They must not leave by longjmp() or a C++
   exception. */
typedef struct prof_op {
  size_t size;
  /* What is measured, with shapes and types: "dense f32 128x384x1536". Copied. */
  const char *key;
  void *user;                 /* for the callbacks */
  int (*prepare)(void *user); /* once, before the first run; may be NULL */
  /* One execution. On a device it only enqueues, and `timer` measures. */
  int (*run)(void *user);
  /* After prepare. May be NULL: see prof_op_workspace_alloc(). */
  int (*workspace)(void *user, uint64_t *bytes_out);
  /* Once, after the last run. Also after an error, if prepare succeeded. May be NULL. */
  void (*cleanup)(void *user);
  prof_device device; /* zero: the host */
  /* The device's model and driver, part of a kept result's key. At most 511 bytes. NULL: of the
     host the processor's model, of a device what its open back end says. */
  const char *driver;
  /* This operator's timer, for example of its stream. NULL: options.timer. */
  const prof_op_timer *timer;
} prof_op;

/* State of the caches at a sample's begin. */
typedef enum prof_op_caches {
  PROF_OP_WARM = 0, /* as the previous run left them */
  /* Before each sample, the caches are written over: by prof_op_timer.cold, else the processor's.
     Then exec is 1. A device whose timer has no `cold`: prof_op_info.is_device_warm. */
  PROF_OP_COLD = 1
} prof_op_caches;

/* How to measure. Set size to sizeof(prof_op_options) and all other fields to 0, the default. */
typedef struct prof_op_options {
  size_t size;
  /* Runs before the first sample; 0: 10, as RAF. If they would take more than a quarter of the time
     limit, there are fewer, at least 1: prof_op_info.warmup has their number. At most 16,777,216,
     as for exec and repeat. */
  int32_t warmup;
  /* Runs in a sample, which is their mean. 0: as many as the timer needs for precision. Runs that
     find that number are not counted. */
  int32_t exec;
  int32_t repeat;     /* samples at most; 0: 100,000 */
  uint32_t no_warmup; /* 1: no warm-up; runs that find exec are done nevertheless */
  /* Shortest time for samples in ns, so that drift and throttling show; 0: 100 ms. If the time
     limit is shorter, it always ends the measurement, and PROF_OP_TIME_OVER is set. Then
     `precision` is checked, but does not end the measurement. */
  uint64_t least_ns;
  /* Time limit in ns, from the first run, with all between samples and the statistics. It ends the
     measurement between two samples. 0: 1 s, extended until there are 6 samples, at most 10 s in
     all. A limit that is given is not extended. Not included are the sample that is running,
     prepare, workspace and cleanup, the cache's file, and a fifth of the limit. Nor are waits for
     the vendor's library (vendor_memory) and for the device's meters (looks), ten seconds at
     most. */
  uint64_t time_limit_ns;
  /* Stop when the median is known to this share of it; 0: 0.01. See repeat_all. */
  double precision;
  uint32_t repeat_all; /* 1: take all `repeat` samples, unless the time is over */
  uint32_t caches;     /* prof_op_caches */
  /* 1: measure even if a result of the same key, device and options is kept, and keep the new
     one. */
  uint32_t no_reuse;
  uint32_t reserved;
  const prof_op_timer *timer; /* NULL: the host's */
  /* 1: if neither the operator nor its allocator reports a workspace, measure it by the vendor's
     library. It is what the library of the operator's device hands out during the first warm-up
     run. See prof_op_workspace_source. */
  uint32_t vendor_memory;
  /* 1: open the device's meters for the measurement, as a sampler does (NVIDIA: libnvidia-ml.so.1).
     0: use them if they are open or the program has that library loaded. See prof_op_info.looks. */
  uint32_t open_meters;
} prof_op_options;

/* ---- results ---- */

/* How the workspace is known: the first of these that applies. Exception: this process's allocator
   reports, but reported nothing of this operator. Then the vendor's figure has precedence over
   0. */
typedef enum prof_op_workspace_source {
  /* Not known; or an earlier prof kept the result in the cache's file without its source. */
  PROF_OP_WORKSPACE_UNKNOWN = 0,
  PROF_OP_WORKSPACE_SAID = 1, /* by prof_op.workspace */
  PROF_OP_WORKSPACE_TOLD = 2, /* by its allocator: prof_op_workspace_alloc() */
  /* By records of the vendor's library, with prof_op_options.vendor_memory. CUDA only, by CUPTI:
     cuMemAlloc(), cudaMalloc(), stream-ordered and managed memory.

     It is the largest amount of that device's memory held at once in the first run, of all threads
     and streams. So other threads should not allocate then. One-time allocations are included,
     unless prepare makes them. Earlier memory that the run releases, and pinned host memory, do not
     count.

     It needs a warm-up, and no recording that asks for records (PROF_DEVICES_RECORDS). Another
     measurement or another tool must not use CUPTI at that time. Else prof_op_info.workspace_status
     has the reason. CUPTI is loaded and may slow down later launches, so compare only results that
     were measured in the same way. */
  PROF_OP_WORKSPACE_VENDOR = 3
} prof_op_workspace_source;

/* Reasons to doubt a result: bits of prof_op_info.doubts. */
typedef enum prof_op_doubt {
  PROF_OP_NOT_CONVERGED = 1, /* the median's interval is wider than `precision` */
  /* The middle half of the samples spreads over more than 10 % of the median. Or more than one
     sample in twenty, with certainty, is an outlier. */
  PROF_OP_NOISY = 2,
  /* Later samples are higher, or lower, than earlier ones: by a rank test (Mann-Kendall), and by
     more than 2 % in all. */
  PROF_OP_DRIFTING = 4,
  PROF_OP_TWO_MODES = 8, /* the samples form two clusters */
  /* The processor's additions were slower at some time of the measurement than at their best. */
  PROF_OP_THROTTLED = 16,
  /* A sample is shorter than 100 times the timer's error, or the median is 0. */
  PROF_OP_TOO_SHORT = 32,
  PROF_OP_TIME_OVER = 64,    /* the time limit ended the measurement */
  PROF_OP_FEW_SAMPLES = 128, /* fewer than 6: a 95 % interval does not exist */
  /* The device's meters reported throttling (prof_op_info.throttle). Or its clock was more than 5 %
     lower at some time of the measurement than at its best. */
  PROF_OP_DEVICE_THROTTLED = 256
} prof_op_doubt;

typedef struct prof_op_result prof_op_result;

/* What a measurement found. The caller sets size. */
typedef struct prof_op_info {
  size_t size;
  /* As the operator reports it. Else the peak of what it allocated in one run: of the warm-up, or
     without one the first of all. Else the vendor's: see workspace_source. */
  uint64_t workspace_bytes;
  /* 1: the workspace is known. An operator that has no callback and allocated nothing has 0 bytes
     if this process ever called prof_op_workspace_alloc() before the measurement ended. Otherwise
     its allocator may not report at all. */
  uint32_t has_workspace;
  uint32_t sample_count;
  uint32_t exec; /* runs in a sample */
  /* Runs before the first sample, without those that found exec. */
  uint32_t warmup;
  uint32_t doubts;   /* prof_op_doubt bits; 0: none */
  uint32_t was_kept; /* 1: a kept result: see prof_op_options.no_reuse */
  /* Why the cache's file could not be read or written: a prof_status. PROF_OK also without a
     file. */
  int32_t file_status;
  uint32_t caches; /* prof_op_caches */
  prof_device device;
  double min_us, max_us, mean_us, stddev_us; /* stddev: of the samples, by n - 1 */
  /* The median and its interval: order statistics by the sign test, which assumes independent
     samples. The interval is widened by the correlation of neighbouring samples. With strong
     correlation it may still be too narrow: docs/reference/operators.md. NOT_CONVERGED is then
     nearly always set. */
  double median_us, median_low_us, median_high_us;
  double confidence; /* of the interval; at least 0.95, less with fewer than 6 samples */
  double q05_us, q25_us, q75_us, q95_us, q99_us;
  /* Change from the first to the last sample as a share of the median (Theil-Sen), signed. */
  double drift;
  double low_mode_us, high_mode_us, high_mode_share; /* of TWO_MODES; else 0 */
  /* Of THROTTLED: the slowest tenth of a chain of additions as a multiple of the fastest. 1: none,
     or fewer than 5 readings. */
  double slowdown;
  /* Share of samples that are further from the middle half than three times its width. */
  double outlier_share;
  double timer_us; /* error of one sample's time */
  /* Energy of the processors' packages for a run, with everything else on the machine. */
  double energy_uj;
  /* 1: energy_uj is known. It needs a measurement of one operator, and the right to read the
     kernel's RAPL counters. */
  uint32_t has_energy;
  uint32_t workspace_source; /* prof_op_workspace_source */
  /* Of prof_op_options.vendor_memory. PROF_OK, or why the vendor's library did not report it: a
     prof_status. */
  int32_t workspace_status;
  /* Number of readings of the device's clock and throttling, before samples, at least 20 ms apart.
     0: it has no such meters, they are not open (prof_op_options.open_meters), or did not answer. A
     call that takes one second is abandoned, and all are when they have taken ten seconds in
     all. */
  uint32_t looks;
  /* Of DEVICE_THROTTLED: prof_backend_throttle bits (<prof/backend.h>) of all readings. */
  uint32_t throttle;
  /* 1: PROF_OP_COLD on a device whose timer has no `cold`. The processor's caches were written
     over, the device's are as the previous run left them. */
  uint32_t is_device_warm;
  double clock_low_hz, clock_high_hz; /* of these readings; 0: the device does not report it */
} prof_op_info;

/* ---- measuring ---- */

/* Measures an operator. It prepares, warms up, takes samples until the median is precise enough or
   a limit is reached, and cleans up. The call of run() is included, about 1 ns. The caller destroys
   the result. Two measurements at the same time disturb each other.

   A kept result of the same key, device, timer and options is returned as it is, with its doubts.
   Then was_kept is 1. To measure again, set options.no_reuse. To forget all, call
   prof_op_cache_reset().
   Errors:
   PROF_E_OPERATOR: a callback failed, or reported an impossible value.
   PROF_E_INVALID, PROF_E_NO_MEMORY. */
PROF_API int prof_op_profile(const prof_op *op, const prof_op_options *options,
                             prof_op_result **result_out) PROF_I_NOEXCEPT;

/* Measures several operators in alternation, one sample of each in turn, for prof_op_compare().
   What changes meanwhile then affects all of them equally. Limits are for each operator.
   results_out has room for `count` results, which the caller destroys; on an error all are NULL.
   Kept results are neither used nor made. Errors as above. */
PROF_API int prof_op_profile_in_turn(const prof_op *ops, size_t count,
                                     const prof_op_options *options,
                                     prof_op_result **results_out) PROF_I_NOEXCEPT;

/* How the members of a group run at the same time.

   Their threads sleep while one member is measured alone. Before a sample of the group they are
   woken, and spin until it begins. A thread that wakes on another one's processor moves to its own.
   The caller's thread spins until the last member has ended. After 10 ms it sleeps, and its waking
   is part of the figure.

   If there are more members than processors by sched_getaffinity(), the kernel runs them in turns.
   Then `gained` has the result, and begin_us the cost of the turns. The same applies if a control
   group limits processor time, or other programs use the processors. */
typedef enum prof_op_side {
  /* Each on its own thread, the first on the caller's. Callbacks except run are called on the
     caller's thread. */
  PROF_OP_THREADS = 0,
  /* Started in order by the caller's thread. On a device each enqueues on its own stream; its
     timer, or options.timer, waits for all. */
  PROF_OP_STREAMS = 1
} prof_op_side;

/* What running at the same time gained. The caller sets size. */
typedef struct prof_op_overlap {
  size_t size;
  double alone_us;   /* sum of the members' medians, each measured alone */
  double longest_us; /* the largest of them */
  double group_us;   /* median of all at the same time */
  /* Gain as a share of the possible one. 1: as fast as the longest alone. 0: as in sequence.
     Negative: they slow each other down. The time that threads take to wake is excluded: see
     begin_us. */
  double gained;
  /* Part of group_us that starting and awaiting the members takes at least: the fastest of 64
     rounds without runs. On threads well below 1 us if each member has a processor. */
  double begin_us;
} prof_op_overlap;

/* RAF's ProfileGroup(). Measures each of 1 to 64 members alone and all at the same time, in turn.
   The array results_out has room for count + 1 results: the members', then the group's. The caller
   destroys them.

   Either all members have timers or none; no two members share one. All timers begin before a round
   and end after it, in order. The longest is the group's time, which may lack the time to start
   them.

   The group's workspace is known if each member's is (see prof_op_info.has_workspace). It is the
   peak of what members held at once by prof_op_workspace_alloc() in a warm-up round, each on its
   thread. What callbacks report is added. Errors as above. */
PROF_API int prof_op_profile_group(const prof_op *ops, size_t count, prof_op_side side,
                                   const prof_op_options *options, prof_op_result **results_out,
                                   prof_op_overlap *overlap_out) PROF_I_NOEXCEPT;

/* RAF's Profile(). Takes `repeat` samples of `exec` runs. The array us_out has room for `repeat`
   values. The result workspace_bytes_out may be NULL; it gets 0 if the workspace is not known.
   Errors as above.
   PROF_E_INVALID, also: warmup is negative, or exec or repeat is not positive. */
PROF_API int prof_op_latency(const prof_op *op, int warmup, int exec, int repeat, double *us_out,
                             uint64_t *workspace_bytes_out) PROF_I_NOEXCEPT;

/* ---- timers of devices ---- */

/* A device's stream, for a timer by the device's own clock. Set size to sizeof(prof_op_stream). */
typedef struct prof_op_stream {
  size_t size;
  prof_device device;
  uint64_t stream;      /* as in WITH_GPU_PROFILER() */
  uint64_t patience_ns; /* longest wait for the device at a sample's end; 0: 60 s */
  /* Submits what is on the stream, for drivers that collect commands: clFlush() of the queue.
     Returns 0 or a code. May be NULL. */
  int (*flush)(void *user);
  void *user; /* for flush and cold */
  /* Enqueues work that writes over the device's caches, such as a fill of twice the last level's
     size. Called before each sample of PROF_OP_COLD, before its first event, so that event and run
     are enqueued behind it. Returns 0 or a code. NULL: caches are as the previous run left them. */
  int (*cold)(void *user);
} prof_op_stream;

/* Creates a timer for work on that stream, by events of its back end (<prof/device.h>). One event
   is before the first run, one after the last. The time between them is by the device's clock, and
   includes the time from the first event to the first run. A sample's end waits for the second
   event, mostly asleep. With PROF_OP_COLD, samples of one run are what nvbench calls cold. Samples
   of many runs are its batch: see docs/reference/operators.md.

   It opens the back end if needed, creates no context, and puts one event on the stream. The stream
   must exist until the timer is destroyed. The caller destroys the timer. Its name has the back end
   and the device, which are part of a kept result's key. One measurement at a time may use it. In a
   forked child, a timer from before the fork ends each measurement.
   Errors:
   PROF_E_INVALID: no stream, or a stream of another device.
   PROF_E_UNSUPPORTED: no back end serves the device. The error says why, and what to do.
   PROF_E_OPERATOR: the back end refuses the stream. The error has the vendor's text.
   PROF_E_BUSY: another thread has been opening the back end for two seconds, or the stream is being
     captured.
   PROF_E_NO_MEMORY. */
PROF_API int prof_op_timer_create(const prof_op_stream *stream,
                                  prof_op_timer **timer_out) PROF_I_NOEXCEPT;

/* Destroys a timer. NULL is ignored. Events that the device has not reached stay until the process
   ends. */
PROF_API void prof_op_timer_destroy(prof_op_timer *timer) PROF_I_NOEXCEPT;

/* ---- reading a result ---- */

/* Destroys a result. NULL is ignored. */
PROF_API void prof_op_result_destroy(prof_op_result *result) PROF_I_NOEXCEPT;

/* Fills info_out. PROF_E_INVALID. */
PROF_API int prof_op_info_get(const prof_op_result *result, prof_op_info *info_out) PROF_I_NOEXCEPT;

/* Returns the samples in order, in us for one run, valid while the result exists. NULL, and a count
   of 0, for NULL. */
PROF_API const double *prof_op_samples(const prof_op_result *result,
                                       size_t *count_out) PROF_I_NOEXCEPT;

/* Returns a quantile of the samples, interpolated linearly (type 7 of Hyndman and Fan, as numpy's
   default). 0 <= share <= 1. Otherwise, or for NULL, it returns 0. */
PROF_API double prof_op_quantile(const prof_op_result *result, double share) PROF_I_NOEXCEPT;

/* Returns the operator's key, valid while the result exists; "" for NULL. */
PROF_API const char *prof_op_key(const prof_op_result *result) PROF_I_NOEXCEPT;

/* Writes one line of at most `room` bytes with the NUL. Returns the length without the NUL.
   Example: "12.41 us (12.38 to 12.45, 95 %), 312 samples of 100 runs; drifting by +4.1 %". The unit
   is ns, us, ms or s, by the median. One sample has no interval. */
PROF_API size_t prof_op_text(const prof_op_result *result, char *to, size_t room) PROF_I_NOEXCEPT;

/* ---- workspace by the allocator ---- */

/* An operator's allocator reports what it allocates and frees while the operator runs. The peak in
   one run is the workspace of an operator without a callback for it.

   Only the thread that runs the operator counts. An operator with worker threads, as of OpenMP,
   should report its workspace by the callback. Outside of a measurement a call only shows that the
   allocator reports: see prof_op_info.has_workspace. Memory from before the run does not count.

   An allocator that reports to <prof/memory.h> calls both. There allocations of all threads go to a
   capture, with their addresses. Here bytes count for one run, of any pool, without a capture. They
   take a few ns and never fail. */
PROF_API void prof_op_workspace_alloc(uint64_t bytes) PROF_I_NOEXCEPT;
PROF_API void prof_op_workspace_free(uint64_t bytes) PROF_I_NOEXCEPT;

/* ---- comparing ---- */

/* The second operator against the first. */
typedef enum prof_op_order {
  PROF_OP_UNCLEAR = 0, /* see prof_op_comparison.doubts and the interval */
  PROF_OP_SAME = 1,    /* the interval is within the threshold */
  PROF_OP_FASTER = 2,  /* the interval is beyond the threshold: the second takes less time */
  PROF_OP_SLOWER = 3
} prof_op_order;

/* A comparison. The caller sets size. */
typedef struct prof_op_comparison {
  size_t size;
  uint32_t order;  /* prof_op_order */
  uint32_t doubts; /* prof_op_doubt bits of either that prevent a verdict */
  /* 1: measured in turn, and each round has its own ratio. What disturbed both prevents no
     verdict. */
  uint32_t is_paired;
  uint32_t reserved;
  /* Second to first: the median of all pairs' ratios (Hodges-Lehmann, of logarithms), or of the
     rounds'. */
  double ratio;
  /* The 95 % interval of the ratio, by the rank sum test (Mann-Whitney) or the rounds' sign test.
     It assumes independent samples, and is widened by the correlation of neighbours, as the
     median's. 0 and infinity: no interval. There are fewer than 6 rounds, fewer than 4 samples each
     (1 against 39, 2 against 8), or a sample of 0. */
  double ratio_low, ratio_high;
} prof_op_comparison;

/* Compares two results: is the second faster? threshold is the share that does not matter; 0 means
   0.02.
   PROF_E_INVALID: NULL, a threshold that is negative or at least 1, or results of different
   caches. */
PROF_API int prof_op_compare(const prof_op_result *first, const prof_op_result *second,
                             double threshold, prof_op_comparison *comparison_out) PROF_I_NOEXCEPT;

/* ---- kept results ---- */

/* Keeps results also in an SQLite file, for other processes and later runs. It is created if
   needed. NULL: no file. Any number of processes on one machine may share it. Nothing of it is
   locked between two calls, so a fork is possible at any time.

   If the file later cannot be read or written, that costs a measurement, and is no error. Causes
   are a lock of two seconds, more than four seconds in all, damage, a full disk, or a row with
   other contents. The reason is in prof_op_info.file_status.
   Errors, with the previous file still in use:
   PROF_E_UNSUPPORTED: no libsqlite3, or the static library.
   PROF_E_IO: the file is not SQLite, another program's, damaged or locked.
   PROF_E_PERMISSION, PROF_E_NOT_FOUND, PROF_E_FILE_TYPE, PROF_E_NO_SPACE: the path.
   PROF_E_INVALID, PROF_E_NO_MEMORY. */
PROF_API int prof_op_cache_open(const char *path) PROF_I_NOEXCEPT;

/* RAF's ResetCache() and GetCacheSize(): forgets or counts kept results, also those of the file. Of
   one device (zero: the host), or of all for NULL. */
PROF_API void prof_op_cache_reset(const prof_device *device) PROF_I_NOEXCEPT;
PROF_API size_t prof_op_cache_count(const prof_device *device) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

#endif
