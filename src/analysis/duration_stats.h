/* Statistics of durations: count, sums, least, most, and a histogram for median and 99th percentile
   with 1 % error. Few durations are kept exactly, others in 64 buckets for each doubling. Memory
   grows with the count. The memory is the caller's. One thread at a time. */
#ifndef PROF_ANALYSIS_DURATION_STATS_H
#define PROF_ANALYSIS_DURATION_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  PROF_I_DURATIONS_EXACT_MAX = 512, /* durations kept as they are; past them, buckets */
  PROF_I_DURATION_FINE_BITS = 6,
  PROF_I_DURATION_BUCKETS = (64 - PROF_I_DURATION_FINE_BITS + 1) << PROF_I_DURATION_FINE_BITS,
  PROF_I_DURATION_WIDE_BITS = 3,
  PROF_I_DURATION_WIDE_BUCKETS = (64 - PROF_I_DURATION_WIDE_BITS + 1) << PROF_I_DURATION_WIDE_BITS
};

typedef struct prof_i_duration_stats {
  /* Neighbouring sums would be added as one vector. That is slower, and waits if only one was
     written. */
  uint64_t calls;
  uint64_t min_ns;
  uint64_t total_ns;
  uint64_t max_ns;
  uint64_t self_ns;
  /* NULL, or PROF_I_DURATION_BUCKETS counts: narrow, so that many of these stay near the
     processor */
  uint16_t *buckets;
  union {
    uint64_t *exact;   /* without buckets: all durations, from the second call on */
    uint32_t *carries; /* with buckets: how often each has overflowed; NULL: never */
  } more;
  uint64_t
      outer_ns; /* kept by the owner: the part of total_ns that is in no other call of the group */
} prof_i_duration_stats;

void prof_i_duration_stats_init(prof_i_duration_stats *stats);
void prof_i_duration_stats_fini(prof_i_duration_stats *stats);

/* These return false without memory. Then the statistics are invalid. */
/* the part of add for few durations */
bool prof_i_duration_stats_keep(prof_i_duration_stats *stats, uint64_t duration_ns);
bool prof_i_duration_stats_carry(prof_i_duration_stats *stats,
                                 uint32_t bucket); /* a bucket has just overflowed */

/* The duration that this share of the calls does not exceed. Sorts what is exact. */
uint64_t prof_i_duration_stats_quantile(prof_i_duration_stats *stats, double share);

/* The calls of each of 8 buckets for each doubling, exactly: for drawing. */
void prof_i_duration_stats_widen(const prof_i_duration_stats *stats,
                                 uint64_t calls_out[PROF_I_DURATION_WIDE_BUCKETS]);

/* The number of a bucket of 1 << bits for each doubling. Up to twice that, each duration has its
   own bucket. */
static inline uint32_t prof_i_duration_bucket(uint64_t ns, uint32_t bits) {
  const uint32_t top = (63u ^ (uint32_t)__builtin_clzll(ns | UINT64_C(1) << bits)) - bits;
  return (top << bits) + (uint32_t)(ns >> top);
}

static inline uint32_t prof_i_duration_stats_bucket(uint64_t ns) {
  return prof_i_duration_bucket(ns, PROF_I_DURATION_FINE_BITS);
}

/* Budget: about 3 ns. */
static inline bool prof_i_duration_stats_add(prof_i_duration_stats *stats, uint64_t duration_ns,
                                             uint64_t self_ns) {
  if (__builtin_expect(stats->buckets != NULL, 1)) {
    const uint32_t bucket = prof_i_duration_stats_bucket(duration_ns);
    if (__builtin_expect(++stats->buckets[bucket] == 0, 0) &&
        !prof_i_duration_stats_carry(stats, bucket))
      return false;
  } else if (!prof_i_duration_stats_keep(stats, duration_ns)) {
    return false;
  }
  stats->calls++;
  stats->total_ns += duration_ns;
  stats->self_ns += self_ns;
  if (duration_ns < stats->min_ns) stats->min_ns = duration_ns;
  if (duration_ns > stats->max_ns) stats->max_ns = duration_ns;
  return true;
}

#endif
