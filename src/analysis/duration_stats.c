/* See duration_stats.h. */
#include "duration_stats.h"

#include <stdlib.h>
#include <string.h>

void prof_i_duration_stats_init(prof_i_duration_stats *stats) {
  *stats = (prof_i_duration_stats){.min_ns = UINT64_MAX};
}

void prof_i_duration_stats_fini(prof_i_duration_stats *stats) {
  if (stats->buckets)
    free(stats->more.carries);
  else
    free(stats->more.exact);
  free(stats->buckets);
  prof_i_duration_stats_init(stats);
}

/* Room doubles, so it is known from the number of calls, of which the first needs none. */
static bool exact_make_room(prof_i_duration_stats *stats) {
  enum { EXACT_ROOM_FIRST = 4 };
  const bool is_first = stats->calls == 1,
             is_full = stats->calls >= EXACT_ROOM_FIRST && (stats->calls & (stats->calls - 1)) == 0;
  if (!is_first && !is_full) return true;
  const uint64_t room = is_first ? EXACT_ROOM_FIRST : stats->calls * 2;
  uint64_t *const larger = realloc(stats->more.exact, room * sizeof *larger);
  if (!larger) return false;
  if (is_first) larger[0] = stats->min_ns;
  stats->more.exact = larger;
  return true;
}

static bool make_carries(prof_i_duration_stats *stats) {
  if (!stats->more.carries)
    stats->more.carries = calloc(PROF_I_DURATION_BUCKETS, sizeof *stats->more.carries);
  return stats->more.carries != NULL;
}

bool prof_i_duration_stats_carry(prof_i_duration_stats *stats, uint32_t bucket) {
  if (!make_carries(stats)) return false;
  stats->more.carries[bucket]++;
  return true;
}

static uint64_t bucket_count(const prof_i_duration_stats *stats, uint32_t bucket) {
  return stats->buckets[bucket] +
         (stats->more.carries ? (uint64_t)stats->more.carries[bucket] << 16 : 0);
}

static bool use_buckets(prof_i_duration_stats *stats) {
  uint16_t *const buckets = calloc(PROF_I_DURATION_BUCKETS, sizeof *buckets);
  if (!buckets) return false;
  if (stats->calls == 1) buckets[prof_i_duration_stats_bucket(stats->min_ns)]++;
  for (uint64_t i = 0; i < stats->calls && stats->calls > 1; i++)
    buckets[prof_i_duration_stats_bucket(stats->more.exact[i])]++;
  free(stats->more.exact);
  stats->more.carries = NULL;
  stats->buckets = buckets;
  return true;
}

bool prof_i_duration_stats_keep(prof_i_duration_stats *stats, uint64_t duration_ns) {
  if (stats->calls == 0) return true; /* the shortest and the longest say it */
  if (stats->calls >= PROF_I_DURATIONS_EXACT_MAX) {
    if (!use_buckets(stats)) return false;
    stats->buckets[prof_i_duration_stats_bucket(duration_ns)]++;
    return true;
  }
  if (!exact_make_room(stats)) return false;
  stats->more.exact[stats->calls] = duration_ns;
  return true;
}

/* ---- quantiles ---- */

static int duration_compare(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* The least duration of a bucket. */
static uint64_t bucket_begin(uint32_t bucket) {
  const uint32_t top = bucket >> PROF_I_DURATION_FINE_BITS;
  if (top < 2) return bucket;
  return (uint64_t)((bucket & ((1u << PROF_I_DURATION_FINE_BITS) - 1)) |
                    1u << PROF_I_DURATION_FINE_BITS)
         << (top - 1);
}

/* The middle of a bucket: at most 1/128 off. */
static uint64_t bucket_middle(uint32_t bucket) {
  const uint32_t top = bucket >> PROF_I_DURATION_FINE_BITS;
  return bucket_begin(bucket) + (top < 2 ? 0 : (1ull << (top - 1)) / 2);
}

uint64_t prof_i_duration_stats_quantile(prof_i_duration_stats *stats, double share) {
  if (stats->calls == 0) return 0;
  uint64_t rank = (uint64_t)((double)stats->calls * share);
  if ((double)rank < (double)stats->calls * share || rank == 0) rank++;
  if (rank > stats->calls) rank = stats->calls;
  if (stats->calls == 1) return stats->min_ns;
  if (!stats->buckets) {
    qsort(stats->more.exact, stats->calls, sizeof *stats->more.exact, duration_compare);
    return stats->more.exact[rank - 1];
  }
  uint64_t seen = 0;
  uint32_t bucket = 0;
  while (bucket + 1 < PROF_I_DURATION_BUCKETS && (seen += bucket_count(stats, bucket)) < rank)
    bucket++;
  const uint64_t middle = bucket_middle(bucket);
  return middle < stats->min_ns ? stats->min_ns : middle > stats->max_ns ? stats->max_ns : middle;
}

/* Each fine bucket is inside of one wide bucket. */
void prof_i_duration_stats_widen(const prof_i_duration_stats *stats,
                                 uint64_t calls_out[PROF_I_DURATION_WIDE_BUCKETS]) {
  const uint32_t bits = PROF_I_DURATION_WIDE_BITS;
  memset(calls_out, 0, PROF_I_DURATION_WIDE_BUCKETS * sizeof *calls_out);
  if (stats->buckets) {
    for (uint32_t i = 0; i < PROF_I_DURATION_BUCKETS; i++)
      calls_out[prof_i_duration_bucket(bucket_begin(i), bits)] += bucket_count(stats, i);
    return;
  }
  if (stats->calls == 1) calls_out[prof_i_duration_bucket(stats->min_ns, bits)]++;
  for (uint64_t i = 0; i < stats->calls && stats->calls > 1; i++)
    calls_out[prof_i_duration_bucket(stats->more.exact[i], bits)]++;
}
