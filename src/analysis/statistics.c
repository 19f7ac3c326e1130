/* See statistics.h. */
#include "statistics.h"

#include <stdlib.h>
#include <string.h>

static const double level_wanted = 0.05;

static int compare_doubles(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

double prof_i_median(double *values, uint32_t count) {
  if (count == 0) return 0;
  qsort(values, count, sizeof *values, compare_doubles);
  return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* ---- the distribution of rank sums ---- */

/* Ranks are doubled, so that the mean of two ranks is whole. */
static uint32_t doubled_sum_max(uint32_t all) { return all * (all + 1); }

/* The share of each doubled rank sum among all choices of `chosen` ranks. NULL: no memory. */
static double *find_shares(const uint32_t *ranks, uint32_t all, uint32_t chosen) {
  const size_t room = doubled_sum_max(all) + 1;
  double *const ways = calloc((chosen + 1) * room, sizeof *ways);
  double *const shares = malloc(room * sizeof *shares);
  if (!ways || !shares) {
    free(ways);
    free(shares);
    return NULL;
  }
  ways[0] = 1;
  for (uint32_t i = 0; i < all; i++) {
    for (uint32_t taken = i + 1 < chosen ? i + 1 : chosen; taken > 0; taken--) {
      const double *const from = ways + (taken - 1) * room;
      double *const to = ways + taken * room;
      for (size_t sum = room; sum-- > ranks[i];) to[sum] += from[sum - ranks[i]];
    }
  }
  double total = 0;
  for (size_t sum = 0; sum < room; sum++) total += ways[chosen * room + sum];
  for (size_t sum = 0; sum < room; sum++) shares[sum] = ways[chosen * room + sum] / total;
  free(ways);
  return shares;
}

static uint32_t distance(uint32_t a, uint32_t b) { return a > b ? a - b : b - a; }

/* The share of sums at least as far from the expected sum. */
static double two_sided_p(const double *shares, uint32_t all, uint32_t chosen, uint32_t sum) {
  const uint32_t expected = chosen * (all + 1), far = distance(sum, expected);
  double p = 0;
  for (uint32_t i = 0; i <= doubled_sum_max(all); i++)
    if (distance(i, expected) >= far) p += shares[i];
  return p < 1 ? p : 1;
}

/* Walks from the lowest sum up, while both tails together are below the level. */
static void find_critical(prof_i_rank_test *test) {
  const uint32_t lowest = test->count[0] * (test->count[0] + 1);
  double tail = 0;
  test->rank = 0;
  test->level = 0;
  for (uint32_t u = 0; u <= test->count[0] * test->count[1]; u++) {
    tail += test->shares[lowest + 2 * u];
    if (2 * tail >= level_wanted) break;
    test->rank = u + 1;
    test->level = 2 * tail;
  }
  test->coverage = 1 - test->level;
}

bool prof_i_rank_test_set(prof_i_rank_test *test, uint32_t first_count, uint32_t second_count) {
  if (test->shares && test->count[0] == first_count && test->count[1] == second_count) return true;
  uint32_t ranks[2 * PROF_I_SAMPLE_MAX];
  const uint32_t all = first_count + second_count;
  for (uint32_t i = 0; i < all; i++) ranks[i] = 2 * (i + 1);
  prof_i_rank_test_fini(test);
  test->count[0] = first_count;
  test->count[1] = second_count;
  test->shares = find_shares(ranks, all, first_count);
  if (!test->shares) return false;
  find_critical(test);
  return true;
}

void prof_i_rank_test_fini(prof_i_rank_test *test) {
  free(test->shares);
  *test = (prof_i_rank_test){0};
}

/* ---- two samples ---- */

/* The doubled ranks of the sorted values. True if some are equal. */
static bool find_ranks(const double *sorted, uint32_t all, uint32_t *ranks) {
  bool has_ties = false;
  for (uint32_t from = 0, to; from < all; from = to) {
    for (to = from + 1; to < all && sorted[to] == sorted[from];) to++;
    has_ties |= to > from + 1;
    for (uint32_t i = from; i < to; i++) ranks[i] = from + 1 + to;
  }
  return has_ties;
}

static uint32_t rank_of(const double *sorted, const uint32_t *ranks, double value) {
  uint32_t i = 0;
  while (sorted[i] < value) i++;
  return ranks[i];
}

bool prof_i_rank_test_p(const prof_i_rank_test *test, const double *first, const double *second,
                        double *p_out) {
  double sorted[2 * PROF_I_SAMPLE_MAX];
  uint32_t ranks[2 * PROF_I_SAMPLE_MAX], sum = 0;
  const uint32_t chosen = test->count[0], all = chosen + test->count[1];
  memcpy(sorted, first, chosen * sizeof *sorted);
  memcpy(sorted + chosen, second, test->count[1] * sizeof *sorted);
  qsort(sorted, all, sizeof *sorted, compare_doubles);
  const bool has_ties = find_ranks(sorted, all, ranks);
  for (uint32_t i = 0; i < chosen; i++) sum += rank_of(sorted, ranks, first[i]);
  double *const tied = has_ties ? find_shares(ranks, all, chosen) : NULL;
  if (has_ties && !tied) return false;
  *p_out = two_sided_p(tied ? tied : test->shares, all, chosen, sum);
  free(tied);
  return true;
}

bool prof_i_rank_test_ratio(const prof_i_rank_test *test, const double *first, const double *second,
                            prof_i_ratio_interval *ratio_out) {
  const uint32_t count = test->count[0] * test->count[1];
  double *const ratios = malloc((size_t)count * sizeof *ratios);
  if (!ratios) return false;
  uint32_t next = 0;
  for (uint32_t i = 0; i < test->count[0]; i++)
    for (uint32_t j = 0; j < test->count[1]; j++) ratios[next++] = second[j] / first[i];
  ratio_out->middle = prof_i_median(ratios, count); /* sorts them */
  ratio_out->low = test->rank ? ratios[test->rank - 1] : 0;
  ratio_out->high = test->rank ? ratios[count - test->rank] : __builtin_inf();
  free(ratios);
  return true;
}

/* ---- durations ---- */

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
