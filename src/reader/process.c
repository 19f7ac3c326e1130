/* Maps a thread of a trace to its process: the capture's process, or one that a record of the
   import names. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "../format/parse.h"

int prof_i_catalog_add_process(prof_trace *trace, const uint64_t *words, uint64_t word_count) {
  prof_i_catalog *const catalog = &trace->catalog;
  const uint64_t *at = words + 5;
  uint64_t left = word_count < 5 ? 0 : word_count - 5;
  prof_i_process_record seen = {.rank = -1};
  if (word_count < 6 || !prof_i_consume_text(&at, &left, &seen.name)) {
    trace->bad_count++;
    return 0;
  }
  seen.serial = words[3];
  seen.pid = (int64_t)words[4];
  if (!prof_i_make_room((void **)&catalog->processes, &catalog->process_room,
                        catalog->process_count, sizeof *catalog->processes))
    return PROF_E_NO_MEMORY;
  catalog->processes[catalog->process_count++] = seen;
  return 0;
}

static int process_compare_serial(const void *a, const void *b) {
  const prof_i_process_record *const x = a, *const y = b;
  if (x->serial != y->serial) return x->serial < y->serial ? -1 : 1;
  return (x->pid > y->pid) - (x->pid < y->pid);
}

void prof_i_catalog_sort_processes(prof_i_catalog *catalog) {
  if (catalog->process_count)
    qsort(catalog->processes, catalog->process_count, sizeof *catalog->processes,
          process_compare_serial);
}

static const prof_i_process_record *process_find(const prof_i_catalog *catalog, uint64_t serial) {
  uint32_t low = 0, high = catalog->process_count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (catalog->processes[middle].serial < serial)
      low = middle + 1;
    else
      high = middle;
  }
  return low < catalog->process_count && catalog->processes[low].serial == serial
             ? &catalog->processes[low]
             : NULL;
}

prof_i_process_record prof_i_trace_process(const prof_trace *trace, uint32_t thread) {
  const prof_i_header *const header = &trace->header;
  const prof_i_process_record *const seen =
      process_find(&trace->catalog, trace->threads[thread].serial);
  if (seen) return *seen;
  const size_t bytes = strnlen(header->process_name, sizeof header->process_name);
  return (prof_i_process_record){
      .pid = header->pid,
      .rank = header->world_size > 1 || header->world_size < 0 ? header->rank : -1,
      .name = {header->process_name, bytes}};
}
