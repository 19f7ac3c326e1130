/* Usage: pool CAPTURE [SIZE...]. Prints for the scripts what a capture says of the pool "malloc",
   one figure a line. For each SIZE, prints how many pieces of that many requested bytes are live at
   the end. */
#include <prof/memory.h>
#include <prof/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int find_pool(const prof_memory *memory, prof_memory_info *info) {
  for (uint32_t i = 0; i < prof_memory_pool_count(memory); i++) {
    info->size = sizeof *info;
    if (prof_memory_pool_get(memory, i, info) == PROF_OK && strncmp(info->name, "malloc", 6) == 0 &&
        (!info->name[6] || info->name[6] == ' '))
      return (int)i;
  }
  return -1;
}

static unsigned long long count_of(const prof_memory_rows *rows, unsigned long long bytes) {
  unsigned long long count = 0;
  for (uint64_t i = 0; i < rows->row_count; i++) count += rows->rows[i].requested_bytes == bytes;
  return count;
}

int main(int argc, char **argv) {
  prof_trace *trace;
  prof_memory *memory;
  prof_memory_info info;
  prof_memory_rows *rows;
  if (argc < 2 || prof_trace_open(argv[1], &trace) != PROF_OK ||
      prof_memory_read(trace, &memory) != PROF_OK) {
    fprintf(stderr, "%s: %s\n", argc < 2 ? "pool" : argv[1], prof_last_error());
    return 1;
  }
  const int index = find_pool(memory, &info);
  if (index < 0 || prof_memory_live(memory, (uint32_t)index, PROF_MEMORY_AT_END, 0,
                                    PROF_MEMORY_BY_ADDRESS, &rows) != PROF_OK) {
    fprintf(stderr, "%s: no pool malloc of %u: %s\n", argv[1], prof_memory_pool_count(memory),
            prof_last_error());
    return 1;
  }
  unsigned long long wrong =
      info.from_before_count + info.missing_count + info.refused_count + info.unchecked_count;
  for (int i = 0; i < PROF_MEMORY_WRONG_COUNT; i++) wrong += info.wrong_count[i];
  printf("allocs=%llu\nfrees=%llu\n", (unsigned long long)info.alloc_count,
         (unsigned long long)info.free_count);
  printf("peak_used=%lld\npeak_requested=%llu\npeak_count=%llu\n",
         (long long)info.peak_used.used_bytes, (unsigned long long)info.peak_used.requested_bytes,
         (unsigned long long)info.peak_used.live_count);
  printf("end_used=%lld\nend_requested=%llu\nend_count=%llu\n", (long long)info.end.used_bytes,
         (unsigned long long)rows->requested_bytes, (unsigned long long)rows->count);
  printf("before=%llu\nwrong=%llu\nis_exact=%u\n", (unsigned long long)info.used_before_bytes,
         wrong, info.peak_used.is_exact);
  for (int i = 2; i < argc; i++)
    printf("live_%s=%llu\n", argv[i], count_of(rows, strtoull(argv[i], NULL, 10)));
  prof_free(rows);
  prof_memory_destroy(memory);
  prof_trace_destroy(trace);
  return 0;
}
