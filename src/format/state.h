/* What a capture keeps of a pool of memory and of a device, in records that change while it is
   recorded. Any thread writes, atomically. Also the bounds of the time that recording took.
   Included by layout.h. */
#ifndef PROF_FORMAT_STATE_H
#define PROF_FORMAT_STATE_H

#include <prof/args.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* ---- pools ---- */

/* A pool's counter. The low 44 bits have the used bytes. They count from the middle of their range,
   so that frees of pieces from before the start cannot borrow. The upper 20 bits count the events.
   So one locked add gives both the sum and its place in the order of all threads. The upper bits
   wrap: prof_i_pool_state's `rounds` counts that, and the order of time shows where. */
enum { PROF_I_USED_BITS = 44 };
#define PROF_I_USED_MASK ((UINT64_C(1) << PROF_I_USED_BITS) - 1)
#define PROF_I_USED_ZERO (UINT64_C(1) << (PROF_I_USED_BITS - 1))
#define PROF_I_USED_ONE_EVENT (UINT64_C(1) << PROF_I_USED_BITS)
static inline int64_t prof_i_used_bytes(uint64_t counter) {
  return (int64_t)(counter & PROF_I_USED_MASK) - (int64_t)PROF_I_USED_ZERO;
}

/* The highest since a start, or a reset. Of a query's pool the values are bytes, else counters; of
   allocated they are bytes from PROF_I_USED_ZERO on. */
typedef struct prof_i_peak {
  uint64_t peak;
  uint64_t peak_ticks; /* of another that was nearly as high, if two threads were at it */
  uint64_t base;       /* the value at the begin */
  uint64_t begin_ticks;
} prof_i_peak;
/* a reset takes the next: a thread that sleeps with an old one in its hand does not spoil the
   new */
enum { PROF_I_PEAKS = 4 };

/* How the amount from before the start is known. */
typedef enum prof_i_baseline {
  PROF_I_BASELINE_NONE = 0,
  PROF_I_BASELINE_QUERIED = 1,   /* the pool's query said it */
  PROF_I_BASELINE_INHERITED = 2, /* a forked child: what its parent had then */
  PROF_I_BASELINE_EMPTY = 3,     /* nothing: it was made while memory was recorded */
  /* the pool's query said it, but events came meanwhile, as often as it was asked */
  PROF_I_BASELINE_NEAR = 4,
  /* a forked child: what its parent had counted, who did not know all */
  PROF_I_BASELINE_PART = 5
} prof_i_baseline;
/* Is that the whole amount? */
static inline bool prof_i_baseline_is_whole(uint32_t baseline) {
  return baseline == PROF_I_BASELINE_QUERIED || baseline == PROF_I_BASELINE_INHERITED ||
         baseline == PROF_I_BASELINE_EMPTY;
}

/* What a pool keeps in the arena, inside a record of kind POOL, from PROF_I_POOL_STATE_WORD on at
   the next offset in the arena that is a multiple of 64. Any thread writes, atomically. */
typedef struct prof_i_pool_state {
  /* counter; of a query's: the number of answers. Alone in its line: of threads that change it at
     once each waits for it once an event, and not again for what they only look at */
  uint64_t used;
  uint64_t padding[7];
  uint64_t reset_count; /* counts resets; era % PROF_I_PEAKS is in force */
  /* of the pool in this capture, from 1; 0: the capture has no record of it. Not written again */
  uint64_t number;
  uint64_t kind;            /* prof_memory_source; not written again */
  uint64_t rounds;          /* how often the counter's number of events has come round to 0 */
  uint64_t refused_count;   /* pieces too large to be counted */
  uint64_t unchecked_count; /* calls of a checked pool that could not be looked up */
  uint64_t wrong_count;     /* of a checked pool: wrong calls */
  uint64_t more_padding;
  prof_i_peak used_peaks[PROF_I_PEAKS];
  uint64_t allocated; /* bytes from PROF_I_USED_ZERO on */
  uint64_t collection_count;
  uint64_t collection_ns;
  uint64_t used_now; /* of a query's: the last answer */
  uint64_t last_padding[4];
  prof_i_peak allocated_peaks[PROF_I_PEAKS];
} prof_i_pool_state;

/* ---- devices ---- */

static inline bool prof_i_is_same_device(prof_device a, prof_device b) {
  return a.type == b.type && a.index == b.index;
}

/* What a capture knows of a device beyond its scopes: PROF_I_KIND_DEVICE's words. The upper half is
   written once, before the record is; the counts change while it is recorded, each atomically. */
typedef struct prof_i_device_state {
  int32_t type, index;
  uint32_t flags;            /* PROF_I_DEVICE_EMULATED, _READ, _DISTANCES */
  int32_t result;            /* prof_backend_result: why its own times are not there; 0: they are */
  uint64_t scope_count;      /* of the device's side */
  uint64_t captured_count;   /* host's sides whose stream was being captured into a graph */
  uint64_t clock_error_ns;   /* the worst that a time was brought to the host's clock with */
  uint64_t clock_step_count; /* how often the two clocks parted */
  uint64_t early_count;      /* would have stood before their launch, and were moved there */
  uint64_t early_ns;         /* by how much at most */
  uint64_t memory_bytes;
  uint32_t units, clock_khz;
  uint8_t uuid[16];
  char name[96], arch[32], driver[32], back_end[32];
  char reason[160];      /* of a result */
  uint64_t record_count; /* kernels, copies and other work, as the vendor's tracing reported */
  /* that tracing began up to so long after the program had begun with the device's library; 0: with
     it, or before */
  uint64_t late_ns;
} prof_i_device_state;
enum {
  PROF_I_DEVICE_EMULATED = 1,
  PROF_I_DEVICE_READ = 2 /* its clock can be read */,
  PROF_I_DEVICE_DISTANCES =
      4 /* that tells nothing of its scopes: their times are distances between events */
};
/* How a reason begins that is not about scopes: records were requested, and the vendor's tracing
   has none. */
#define PROF_I_NO_RECORDS "records no kernels by itself: "
/* The reason of scopes that came while another thread was opening the back end. */
#define PROF_I_TOO_EARLY "another thread was just opening its back end"
static inline bool prof_i_is_no_records(const char *reason) {
  return strncmp(reason, PROF_I_NO_RECORDS, sizeof PROF_I_NO_RECORDS - 1) == 0;
}

/* ---- the time that recording took ---- */

/* Its bounds, from what a capture has of it. How it is measured: see ../core/record/cost_sample.h.
   */

/* The upper bound of recording's time, from own_ns and its part in_place_ns. It counts that part
   2.5 times: the twin runs after the slow path's first lines, and without the caller's work for its
   arguments. It adds two standard errors of the windows' means. Any thread. */
static inline uint64_t prof_i_own_time_most_ns(uint64_t own_ns, uint64_t in_place_ns,
                                               uint64_t spread_us2) {
  uint64_t root = 0;
  for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1)
    if ((root | bit) * (root | bit) <= spread_us2) root |= bit;
  return own_ns + in_place_ns + in_place_ns / 2 + 2 * root * 1000;
}

/* The upper bound of the time that `few` events of threads without a window took beyond warm ones.
   They may be as cold as the `sampled` events of other threads, which took in_place_ns.
   Any thread. */
static inline uint64_t prof_i_own_time_few_most_ns(uint64_t in_place_ns, uint64_t few,
                                                   uint64_t sampled) {
  if (!sampled || !few) return 0;
  const uint64_t each_ps = in_place_ns < UINT64_MAX / 1000 ? in_place_ns * 1000 / sampled : 0;
  return few < UINT64_MAX / (each_ps + 1) ? each_ps * few / 400 : 0; /* 2.5 times */
}

/* A thread with fewer events has no window. */
enum { PROF_I_OWN_TIME_FIRST_EVENTS = 32 };

/* So many threads took no more than all their time: each was there for so long at most. The warm
   time of a scope may have been measured while the processor was slower. */
static inline uint64_t prof_i_own_time_bound(uint64_t own_ns, uint64_t time_ns, uint64_t threads) {
  const uint64_t each_ns = own_ns / (threads ? threads : 1);
  return each_ns < time_ns ? own_ns : time_ns * (threads ? threads : 1);
}

#endif
