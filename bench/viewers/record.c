/* usage: record SCOPES THREADS OUTPUT

   Records about SCOPES scopes on THREADS threads, at most 16, into the capture OUTPUT. They have
   the shape of bench/export.c: 100 call sites, and blocks of five scopes, three levels deep. The
   scope of a kernel takes up to some microseconds. For bench/viewers/run.py. */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SITES = 100, SCOPES_OF_BLOCK = 5, THREADS_MAX = 16 };

static prof_site sites[SITES];
static char names[SITES][32];

static void spin(unsigned turns) {
  for (volatile unsigned i = 0; i < turns; i++) {
  }
}

static uint64_t begin(uint64_t block, unsigned scope) {
  const unsigned site = (unsigned)(block * 7 + scope * 31) % SITES;
  return prof_scope_begin_at(&sites[site], names[site], "operator");
}

static void *record(void *blocks) {
  const uint64_t count = *(const uint64_t *)blocks;
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t layer = begin(i, 0), first = begin(i, 1);
    for (unsigned kernel = 2; kernel < 4; kernel++) {
      const uint64_t start = begin(i, kernel);
      spin((unsigned)(i * kernel) % 500);
      prof_scope_end(start);
    }
    prof_scope_end(first);
    const uint64_t second = begin(i, 4);
    spin((unsigned)i % 90);
    prof_scope_end(second);
    prof_scope_end(layer);
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  const unsigned threads = (unsigned)strtoul(argv[2], NULL, 10);
  if (threads == 0 || threads > THREADS_MAX) return 2;
  pthread_t all[THREADS_MAX];
  uint64_t blocks = strtoull(argv[1], NULL, 10) / threads / SCOPES_OF_BLOCK;
  const prof_options options = {.size = sizeof options,
                                .path = argv[3],
                                .level = 1,
                                .policy = PROF_POLICY_KEEP,
                                .cap_bytes = 1u << 30};
  for (unsigned i = 0; i < SITES; i++) snprintf(names[i], sizeof names[i], "aten::operator_%u", i);
  if (prof_start_with(&options) != PROF_OK) {
    fprintf(stderr, "%s\n", prof_last_error());
    return 1;
  }
  for (unsigned i = 0; i < threads; i++)
    if (pthread_create(&all[i], NULL, record, &blocks) != 0) return 1;
  for (unsigned i = 0; i < threads; i++) pthread_join(all[i], NULL);
  prof_stop();
  if (prof_dump(NULL) == PROF_OK) return 0;
  fprintf(stderr, "%s\n", prof_last_error());
  return 1;
}
