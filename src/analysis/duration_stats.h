/* What one group of scopes adds up to, with a histogram that tells median and 99th percentile to 1
   %: exact while there are few, then 64 buckets to a doubling. Memory follows the number of scopes.
   Caller's memory; one thread at a time. */
#ifndef PROF_ANALYSIS_TALLY_H
#define PROF_ANALYSIS_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  PROF_I_DURATIONS_EXACT_MAX = 512, /* durations kept as they are; past them, buckets */
  PROF_I_DURATION_FINE_BITS = 6,
  PROF_I_DURATION_BUCKETS = (64 - PROF_I_DURATION_FINE_BITS + 1) << PROF_I_DURATION_FINE_BITS
};

typedef struct prof_i_duration_stats {
  /* Two sums side by side would be added as one pair: slower, and it waits when just one of them
     has been written. */
  uint64_t calls;
  uint64_t min_ns;
  uint64_t total_ns;
  uint64_t max_ns;
  uint64_t self_ns;
  /* NULL, or PROF_I_DURATION_BUCKETS counts: narrow, so that many tallies stay near the
     processor */
  uint16_t *buckets;
  union {
    uint64_t *exact;   /* without buckets: all durations, from the second call on */
    uint32_t *carries; /* with buckets: how often each ran over; NULL until one did */
  } more;
  uint64_t outer_ns; /* the owner's: what of total_ns is in no other call of this tally */
} prof_i_duration_stats;

void prof_i_duration_stats_init(prof_i_duration_stats *tally);
void prof_i_duration_stats_fini(prof_i_duration_stats *tally);

/* All of these give false when there is no memory; the tally is then of no more use. */
/* its part of add, while there are few */
bool prof_i_duration_stats_keep(prof_i_duration_stats *tally, uint64_t duration_ns);
bool prof_i_duration_stats_carry(prof_i_duration_stats *tally,
                                 uint32_t bucket); /* a bucket has just run over */

/* The duration that this share of the calls does not exceed. Sorts what is exact. */
uint64_t prof_i_duration_stats_quantile(prof_i_duration_stats *tally, double share);

static inline uint32_t prof_i_duration_stats_bucket(uint64_t ns) {
  /* up to twice that, each duration has its own bucket */
  const uint64_t fine = 1u << PROF_I_DURATION_FINE_BITS;
  const uint32_t top = (63u ^ (uint32_t)__builtin_clzll(ns | fine)) - PROF_I_DURATION_FINE_BITS;
  return (top << PROF_I_DURATION_FINE_BITS) + (uint32_t)(ns >> top);
}

/* Budget: about 3 ns. */
static inline bool prof_i_duration_stats_add(prof_i_duration_stats *tally, uint64_t duration_ns,
                                             uint64_t self_ns) {
  if (__builtin_expect(tally->buckets != NULL, 1)) {
    const uint32_t bucket = prof_i_duration_stats_bucket(duration_ns);
    if (__builtin_expect(++tally->buckets[bucket] == 0, 0) &&
        !prof_i_duration_stats_carry(tally, bucket))
      return false;
  } else if (!prof_i_duration_stats_keep(tally, duration_ns)) {
    return false;
  }
  tally->calls++;
  tally->total_ns += duration_ns;
  tally->self_ns += self_ns;
  if (duration_ns < tally->min_ns) tally->min_ns = duration_ns;
  if (duration_ns > tally->max_ns) tally->max_ns = duration_ns;
  return true;
}

#endif
