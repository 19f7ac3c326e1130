/* See captures.h: peaks of memory. */
#define _GNU_SOURCE
#include "captures.h"

#include <inttypes.h>
#include <prof/memory.h>
#include <prof/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../prof/commands.h"

enum { LINES_MAX = 10, HOLDERS_MAX = 3, NAME_BYTES = 48 };

/* One pool of one process. */
typedef struct peak_pool {
  const char *path;
  const char *process;
  uint32_t pid;
  uint32_t index;
  prof_memory_info info;
} peak_pool;

typedef struct peak_pools {
  peak_pool *items;
  size_t count;
} peak_pools;

static void print_bytes(double bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while ((bytes >= 1024 || bytes <= -1024) && unit + 1 < sizeof units / sizeof *units) {
    bytes /= 1024;
    unit++;
  }
  printf(unit ? "%.2f %s" : "%.0f %s", bytes, units[unit]);
}

static void print_name(const char *name) {
  const size_t bytes = strlen(name);
  print_text(stdout, name, bytes < NAME_BYTES ? bytes : NAME_BYTES);
}

static void add_pools(peak_pools *to, const char *path, const prof_trace *trace,
                      const prof_memory *memory) {
  prof_trace_info about = {.size = sizeof about};
  prof_memory_info last = {.size = sizeof last};
  const uint32_t count = prof_memory_pool_count(memory);
  if (count == 0) return;
  prof_trace_info_get(trace, &about);
  prof_memory_pool_get(memory, count - 1, &last);
  for (uint32_t i = 0; i < count; i++) {
    peak_pool p = {.path = path, .pid = about.pid, .index = i, .info = {.size = sizeof p.info}};
    if (prof_memory_pool_get(memory, i, &p.info) != PROF_OK) continue;
    if (p.info.session != last.session || p.info.peak_used.used_bytes <= 0) continue;
    p.process = run_text("%s", about.process_name);
    to->items = run_grow(to->items, to->count + 1, sizeof *to->items);
    to->items[to->count++] = p;
  }
}

/* Reads a capture's memory again for each use: all at once may not fit into ours. */
static void with_memory(const char *path,
                        void (*use)(void *context, const char *path, const prof_trace *trace,
                                    const prof_memory *memory),
                        void *context) {
  prof_trace *trace = NULL;
  prof_memory *memory = NULL;
  if (prof_trace_open(path, &trace) != PROF_OK) return; /* the table has printed why */
  if (prof_memory_read(trace, &memory) == PROF_OK)
    use(context, path, trace, memory);
  else
    printf("memory of '%s' cannot be read: %s\n", path, prof_last_error());
  prof_memory_destroy(memory);
  prof_trace_destroy(trace);
}

static void add_capture_pools(void *context, const char *path, const prof_trace *trace,
                              const prof_memory *memory) {
  add_pools(context, path, trace, memory);
}

static void print_pool(const peak_pool *p) {
  const prof_memory_info *const info = &p->info;
  fputs("  ", stdout);
  print_name(p->process);
  printf(" (%" PRIu32 "), ", p->pid);
  print_name(info->name);
  fputs(": peak used ", stdout);
  print_bytes((double)info->peak_used.used_bytes);
  printf(" at %.3f s", (double)info->peak_used.ns / 1e9);
  if (info->peak_allocated.allocated_bytes > 0) {
    fputs(", peak allocated ", stdout);
    print_bytes((double)info->peak_allocated.allocated_bytes);
  }
  fputs(", at the end ", stdout);
  print_bytes((double)info->end.used_bytes);
  printf("; %" PRIu64 " allocation%s, %" PRIu64 " free%s%s\n", info->alloc_count,
         plural_ending(info->alloc_count), info->free_count, plural_ending(info->free_count),
         info->missing_count ? ", some events are missing" : "");
}

static void print_holders(void *context, const char *path, const prof_trace *trace,
                          const prof_memory *memory) {
  const peak_pool *const p = context;
  prof_memory_rows *rows = NULL;
  (void)path;
  (void)trace;
  if (prof_memory_live(memory, p->index, PROF_MEMORY_AT_PEAK_USED, 0, PROF_MEMORY_BY_SCOPE,
                       &rows) != PROF_OK)
    return;
  for (uint64_t i = 0; i < rows->row_count && i < HOLDERS_MAX; i++) {
    fputs("    at that peak: ", stdout);
    print_bytes((double)rows->rows[i].bytes);
    printf(" in %" PRIu64 " piece%s, allocated in ", rows->rows[i].count,
           plural_ending(rows->rows[i].count));
    print_name(rows->rows[i].label[0] ? rows->rows[i].label : "no scope");
    putchar('\n');
  }
  prof_free(rows);
}

static int pool_compare_highest(const void *a, const void *b) {
  const int64_t x = ((const peak_pool *)a)->info.peak_used.used_bytes;
  const int64_t y = ((const peak_pool *)b)->info.peak_used.used_bytes;
  return (x < y) - (x > y);
}

void run_peaks_print(const run_words *captures) {
  peak_pools all = {0};
  for (size_t i = 0; i < captures->count; i++)
    with_memory(captures->items[i], add_capture_pools, &all);
  if (all.count == 0) return;
  qsort(all.items, all.count, sizeof *all.items, pool_compare_highest);
  printf("\nmemory by process, the highest peak first:\n");
  for (size_t i = 0; i < all.count && i < LINES_MAX; i++) {
    print_pool(&all.items[i]);
    if (i == 0) with_memory(all.items[i].path, print_holders, &all.items[i]);
  }
  if (all.count > LINES_MAX) printf("  and %zu more\n", all.count - LINES_MAX);
}

int run_peaks(int argc, char **argv) {
  run_words captures = {0};
  for (int i = 1; i < argc; i++) run_words_add(&captures, argv[i]);
  run_peaks_print(&captures);
  return EXIT_OK;
}
