/* See duration_stats.h. */
#include "duration_stats.h"

#include <stdlib.h>
#include <string.h>

void prof_i_duration_stats_init(prof_i_duration_stats *tally) {
  *tally = (prof_i_duration_stats){.min_ns = UINT64_MAX};
}

void prof_i_duration_stats_fini(prof_i_duration_stats *tally) {
  if (tally->buckets)
    free(tally->more.carries);
  else
    free(tally->more.exact);
  free(tally->buckets);
  prof_i_duration_stats_init(tally);
}

/* Room doubles, so it is known from the number of calls, of which the first needs none. */
static bool exact_make_room(prof_i_duration_stats *tally) {
  enum { EXACT_ROOM_FIRST = 4 };
  const bool is_first = tally->calls == 1,
             is_full = tally->calls >= EXACT_ROOM_FIRST && (tally->calls & (tally->calls - 1)) == 0;
  if (!is_first && !is_full) return true;
  const uint64_t room = is_first ? EXACT_ROOM_FIRST : tally->calls * 2;
  uint64_t *const larger = realloc(tally->more.exact, room * sizeof *larger);
  if (!larger) return false;
  if (is_first) larger[0] = tally->min_ns;
  tally->more.exact = larger;
  return true;
}

static bool make_carries(prof_i_duration_stats *tally) {
  if (!tally->more.carries)
    tally->more.carries = calloc(PROF_I_DURATION_BUCKETS, sizeof *tally->more.carries);
  return tally->more.carries != NULL;
}

bool prof_i_duration_stats_carry(prof_i_duration_stats *tally, uint32_t bucket) {
  if (!make_carries(tally)) return false;
  tally->more.carries[bucket]++;
  return true;
}

static uint64_t bucket_count(const prof_i_duration_stats *tally, uint32_t bucket) {
  return tally->buckets[bucket] +
         (tally->more.carries ? (uint64_t)tally->more.carries[bucket] << 16 : 0);
}

static bool use_buckets(prof_i_duration_stats *tally) {
  uint16_t *const buckets = calloc(PROF_I_DURATION_BUCKETS, sizeof *buckets);
  if (!buckets) return false;
  if (tally->calls == 1) buckets[prof_i_duration_stats_bucket(tally->min_ns)]++;
  for (uint64_t i = 0; i < tally->calls && tally->calls > 1; i++)
    buckets[prof_i_duration_stats_bucket(tally->more.exact[i])]++;
  free(tally->more.exact);
  tally->more.carries = NULL;
  tally->buckets = buckets;
  return true;
}

bool prof_i_duration_stats_keep(prof_i_duration_stats *tally, uint64_t duration_ns) {
  if (tally->calls == 0) return true; /* the shortest and the longest say it */
  if (tally->calls >= PROF_I_DURATIONS_EXACT_MAX) {
    if (!use_buckets(tally)) return false;
    tally->buckets[prof_i_duration_stats_bucket(duration_ns)]++;
    return true;
  }
  if (!exact_make_room(tally)) return false;
  tally->more.exact[tally->calls] = duration_ns;
  return true;
}

/* ---- quantiles ---- */

static int duration_compare(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* The middle of a bucket: at most 1/128 off. */
static uint64_t bucket_middle(uint32_t bucket) {
  const uint32_t top = bucket >> PROF_I_DURATION_FINE_BITS;
  if (top < 2) return bucket;
  const uint64_t low = (uint64_t)((bucket & ((1u << PROF_I_DURATION_FINE_BITS) - 1)) |
                                  1u << PROF_I_DURATION_FINE_BITS)
                       << (top - 1);
  return low + (1ull << (top - 1)) / 2;
}

uint64_t prof_i_duration_stats_quantile(prof_i_duration_stats *tally, double share) {
  if (tally->calls == 0) return 0;
  uint64_t rank = (uint64_t)((double)tally->calls * share);
  if ((double)rank < (double)tally->calls * share || rank == 0) rank++;
  if (rank > tally->calls) rank = tally->calls;
  if (tally->calls == 1) return tally->min_ns;
  if (!tally->buckets) {
    qsort(tally->more.exact, tally->calls, sizeof *tally->more.exact, duration_compare);
    return tally->more.exact[rank - 1];
  }
  uint64_t seen = 0;
  uint32_t bucket = 0;
  while (bucket + 1 < PROF_I_DURATION_BUCKETS && (seen += bucket_count(tally, bucket)) < rank)
    bucket++;
  const uint64_t middle = bucket_middle(bucket);
  return middle < tally->min_ns ? tally->min_ns : middle > tally->max_ns ? tally->max_ns : middle;
}
