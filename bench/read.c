/* How fast a capture is read back: opening (one checked pass over all records), aggregates on one
   core, events ordered by start over four threads. The capture is made in memory: 20 million plain
   scopes, nested as an operator's runtime nests them, of 200 call sites. The floor is one sum over
   the same bytes. Prints M scopes/s of the median of the rounds, with the slowest and the fastest;
   fails below the bounds 100 (aggregate) and 40 (ordered). usage: read [million scopes] [rounds] */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <time.h>

#include "../tests/unit/build_capture.h"

enum { THREADS = 4, SITES = 200, ROUNDS_MAX = 64, CHUNK_BYTES = 1 << 20 };

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now); /* one core's own time: others may share it */
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Groups of 16: an outer scope that holds five, each of which holds two. */
static void put_group(prof_i_head *chunk, uint64_t *clock, uint32_t *seed) {
  const uint64_t outer = *clock;
  for (int i = 0; i < 5; i++) {
    const uint64_t middle = *clock += 20;
    for (int j = 0; j < 2; j++) {
      *seed = *seed * 1664525 + 1013904223;
      const uint32_t site = 1 + (*seed >> 8) % SITES;
      const uint64_t usual = 60 + (uint64_t)site * site / 8,
                     duration = usual + usual * (*seed >> 24) / 768;
      capture_plain(chunk, *clock + 10, duration, site);
      *clock += duration + 20;
    }
    capture_plain(chunk, middle, *clock - middle + 10, 1 + (uint32_t)i);
    *clock += 20;
  }
  capture_plain(chunk, outer, *clock - outer, 100);
  *clock += 30;
}

static void build(capture *c, uint64_t scopes) {
  char name[32];
  const uint64_t chunk_scopes = (CHUNK_BYTES - 256) / 16 / 16 * 16,
                 chunks = scopes / chunk_scopes + THREADS;
  capture_begin(c, PROF_I_FIRST_UNIT_OFFSET + 4 * PROF_I_UNIT_BYTES + chunks * CHUNK_BYTES);
  prof_i_head *const meta = capture_extent(c, PROF_I_EXTENT_META, 4 * PROF_I_UNIT_BYTES);
  for (uint32_t i = 1; i <= SITES; i++) {
    snprintf(name, sizeof name, "operator_%u", i);
    capture_site(meta, i, name, "operator", 1);
  }
  uint64_t clock[THREADS] = {CAPTURE_START, CAPTURE_START, CAPTURE_START, CAPTURE_START};
  uint32_t seed = 1;
  for (uint64_t i = 0, left = scopes; left >= 16; i++) {
    prof_i_head *const chunk = capture_chunk(c, CHUNK_BYTES, 1 + i % THREADS);
    for (uint64_t n = 0; n < chunk_scopes && left >= 16; n += 16, left -= 16)
      put_group(chunk, &clock[i % THREADS], &seed);
    if (i % 16 == 0)
      capture_clock(c, meta, clock[i % THREADS] - CAPTURE_START, clock[i % THREADS] - CAPTURE_START,
                    0);
  }
}

typedef struct figures {
  double seconds[ROUNDS_MAX];
  int count;
} figures;

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double report(const char *what, figures *f, double scopes, double bound) {
  qsort(f->seconds, (size_t)f->count, sizeof *f->seconds, by_value);
  const double rate = scopes / f->seconds[f->count / 2] / 1e6;
  printf("%-34s %8.1f M/s  (%.1f .. %.1f)", what, rate, scopes / f->seconds[f->count - 1] / 1e6,
         scopes / f->seconds[0] / 1e6);
  if (bound > 0) printf("  bound %.0f: %s", bound, rate >= bound ? "held" : "NOT HELD");
  printf("\n");
  return bound > 0 && rate < bound;
}

static uint64_t sum_all(const capture *c) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < c->count / 8; i++) sum += ((const uint64_t *)c->bytes)[i];
  return sum;
}

static uint64_t read_ordered(const prof_trace *trace) {
  static prof_event event;
  prof_cursor *cursor = NULL;
  uint64_t count = 0;
  if (prof_cursor_create(trace, &cursor) != PROF_OK) return 0;
  while (prof_cursor_next(cursor, &event) == 1) count++;
  prof_cursor_destroy(cursor);
  return count;
}

int main(int argc, char **argv) {
  const double millions = argc > 1 ? atof(argv[1]) : 20;
  const int rounds =
      argc > 2 && atoi(argv[2]) > 0 && atoi(argv[2]) <= ROUNDS_MAX ? atoi(argv[2]) : 7;
  const uint64_t wanted = (uint64_t)(millions * 1e6) / 16 * 16;
  figures floor = {{0}, 0}, opening = {{0}, 0}, aggregating = {{0}, 0}, ordering = {{0}, 0};
  capture c;
  build(&c, wanted);
  volatile uint64_t sink = 0;
  for (int i = 0; i < rounds; i++) {
    prof_trace *trace = NULL;
    prof_rows *rows = NULL;
    double from = now_s();
    sink += sum_all(&c);
    floor.seconds[floor.count++] = now_s() - from;

    from = now_s();
    if (prof_trace_open_bytes(c.bytes, c.count, &trace) != PROF_OK)
      return fprintf(stderr, "read: %s\n", prof_last_error()), 1;
    opening.seconds[opening.count++] = now_s() - from;

    from = now_s();
    if (prof_trace_aggregate(trace, NULL, &rows) != PROF_OK)
      return fprintf(stderr, "read: %s\n", prof_last_error()), 1;
    aggregating.seconds[aggregating.count++] = now_s() - from;

    from = now_s();
    const uint64_t seen = read_ordered(trace);
    ordering.seconds[ordering.count++] = now_s() - from;
    if (seen != wanted || rows->calls_count != wanted)
      return fprintf(stderr, "read: %llu written, %llu read\n", (unsigned long long)wanted,
                     (unsigned long long)seen),
             1;
    prof_rows_destroy(rows);
    prof_trace_destroy(trace);
  }
  printf("%.0f M plain scopes (16 bytes each), %d threads, %d rounds\n", (double)wanted / 1e6,
         THREADS, rounds);
  report("floor: one sum over the bytes", &floor, (double)wanted, 0);
  report("open, checked", &opening, (double)wanted, 0);
  double missed = report("aggregate, one core", &aggregating, (double)wanted, 100);
  missed += report("ordered by start, four threads", &ordering, (double)wanted, 40);
  capture_end(&c);
  return missed > 0;
}
