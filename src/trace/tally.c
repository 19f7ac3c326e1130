/* See tally.h. */
#include "tally.h"

#include <stdlib.h>
#include <string.h>

void prof_i_tally_init(prof_i_tally *tally) { *tally = (prof_i_tally){.min_ns = UINT64_MAX}; }

void prof_i_tally_fini(prof_i_tally *tally) {
  if (tally->buckets) free(tally->more.carries);
  else free(tally->more.exact);
  free(tally->buckets);
  prof_i_tally_init(tally);
}

static bool reach(prof_i_tally *tally, uint64_t count) {
  if (count <= tally->exact_room) return true;
  uint64_t room = tally->exact_room ? tally->exact_room : 4;
  while (room < count) room *= 2;
  uint64_t *const larger = realloc(tally->more.exact, room * sizeof *larger);
  if (!larger) return false;
  if (tally->calls == 1) larger[0] = tally->min_ns;
  tally->more.exact = larger;
  tally->exact_room = room;
  return true;
}

static bool make_carries(prof_i_tally *tally) {
  if (!tally->more.carries) tally->more.carries = calloc(PROF_I_TALLY_BUCKETS, sizeof *tally->more.carries);
  return tally->more.carries != NULL;
}

bool prof_i_tally_carry(prof_i_tally *tally, uint32_t bucket) {
  if (!make_carries(tally)) return false;
  tally->more.carries[bucket]++;
  return true;
}

static uint64_t count_in(const prof_i_tally *tally, uint32_t bucket) {
  return tally->buckets[bucket] + (tally->more.carries ? (uint64_t)tally->more.carries[bucket] << 16 : 0);
}

static bool add_to(prof_i_tally *tally, uint32_t bucket, uint64_t count) {
  const uint64_t sum = tally->buckets[bucket] + count;
  if (sum >> 16 && !make_carries(tally)) return false;
  if (sum >> 16) tally->more.carries[bucket] += (uint32_t)(sum >> 16);
  tally->buckets[bucket] = (uint16_t)sum;
  return true;
}

static bool use_buckets(prof_i_tally *tally) {
  uint16_t *const buckets = calloc(PROF_I_TALLY_BUCKETS, sizeof *buckets);
  if (!buckets) return false;
  if (tally->calls == 1) buckets[prof_i_tally_bucket(tally->min_ns)]++;
  for (uint64_t i = 0; i < tally->calls && tally->calls > 1; i++) buckets[prof_i_tally_bucket(tally->more.exact[i])]++;
  free(tally->more.exact);
  tally->more.carries = NULL;
  tally->exact_room = 0;
  tally->buckets = buckets;
  return true;
}

bool prof_i_tally_keep(prof_i_tally *tally, uint64_t duration_ns) {
  if (tally->calls == 0) return true; /* the shortest and the longest say it */
  if (tally->calls >= PROF_I_TALLY_EXACT) {
    if (!use_buckets(tally)) return false;
    tally->buckets[prof_i_tally_bucket(duration_ns)]++;
    return true;
  }
  if (!reach(tally, tally->calls + 1)) return false;
  tally->more.exact[tally->calls] = duration_ns;
  return true;
}

static bool merge_durations(prof_i_tally *to, const prof_i_tally *from) {
  const uint64_t both = to->calls + from->calls;
  if (!to->buckets && !from->buckets && both <= PROF_I_TALLY_EXACT) {
    if (both > 1 && !reach(to, both)) return false;
    if (from->calls == 1 && both > 1) to->more.exact[to->calls] = from->min_ns;
    if (from->calls > 1) memcpy(to->more.exact + to->calls, from->more.exact, from->calls * sizeof *to->more.exact);
    return true;
  }
  if (!to->buckets && !use_buckets(to)) return false;
  for (uint32_t i = 0; i < PROF_I_TALLY_BUCKETS && from->buckets; i++)
    if (!add_to(to, i, count_in(from, i))) return false;
  for (uint64_t i = 0; i < from->calls && !from->buckets; i++)
    if (!add_to(to, prof_i_tally_bucket(from->calls == 1 ? from->min_ns : from->more.exact[i]), 1)) return false;
  return true;
}

bool prof_i_tally_merge(prof_i_tally *to, prof_i_tally *from) {
  if (to->calls == 0) { /* as most groups are: most have one site */
    const prof_i_tally empty = *to;
    *to = *from;
    *from = empty;
  }
  if (from->calls == 0) return true;
  if (!merge_durations(to, from)) return false;
  to->calls += from->calls;
  to->total_ns += from->total_ns;
  to->self_ns += from->self_ns;
  if (from->min_ns < to->min_ns) to->min_ns = from->min_ns;
  if (from->max_ns > to->max_ns) to->max_ns = from->max_ns;
  return true;
}

/* ---- quantiles ---- */

static int by_value(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* The middle of a bucket: at most 1/128 off. */
static uint64_t bucket_middle(uint32_t bucket) {
  const uint32_t top = bucket >> PROF_I_TALLY_FINE_BITS;
  if (top < 2) return bucket;
  const uint64_t low = (uint64_t)((bucket & ((1u << PROF_I_TALLY_FINE_BITS) - 1)) | 1u << PROF_I_TALLY_FINE_BITS) << (top - 1);
  return low + (1ull << (top - 1)) / 2;
}

uint64_t prof_i_tally_quantile(prof_i_tally *tally, double share) {
  if (tally->calls == 0) return 0;
  uint64_t rank = (uint64_t)((double)tally->calls * share);
  if ((double)rank < (double)tally->calls * share || rank == 0) rank++;
  if (rank > tally->calls) rank = tally->calls;
  if (tally->calls == 1) return tally->min_ns;
  if (!tally->buckets) {
    qsort(tally->more.exact, tally->calls, sizeof *tally->more.exact, by_value);
    return tally->more.exact[rank - 1];
  }
  uint64_t seen = 0;
  uint32_t bucket = 0;
  while (bucket + 1 < PROF_I_TALLY_BUCKETS && (seen += count_in(tally, bucket)) < rank) bucket++;
  const uint64_t middle = bucket_middle(bucket);
  return middle < tally->min_ns ? tally->min_ns : middle > tally->max_ns ? tally->max_ns : middle;
}
