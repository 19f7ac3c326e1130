/* Parts of the memory report (memory_text.c): cells of its tables, one pool, wrong calls. */
#ifndef PROF_REPORT_MEMORY_TEXT_H
#define PROF_REPORT_MEMORY_TEXT_H

#include <prof/memory.h>
#include <prof/trace.h>
#include <stdbool.h>

#include "../analysis/memory.h"
#include "../base/display.h"

enum { PROF_I_REPORT_INDENT = 2, PROF_I_CELL_ROOM = 64, PROF_I_SENTENCE_ROOM = 512 };

typedef struct prof_i_memory_report {
  const prof_memory *memory;
  prof_trace_info trace;
  prof_i_text_buffer page;
  uint32_t width, rows_limit;
  uint64_t live_count; /* allocations in the tables of live memory */
  bool is_ascii;
} prof_i_memory_report;

/* As prof_memory_text(). *live_count_out: the number of allocations in the tables of live memory,
   after a filter (analysis/internal.h). */
int prof_i_memory_text(const prof_memory *memory, const prof_memory_text_options *options,
                       char **text_out, uint64_t *live_count_out);

static inline const prof_memory_info *prof_i_report_pool_info(const prof_i_memory_report *r,
                                                              uint32_t index) {
  return &r->memory->pools[index].info;
}

/* malloc()'s pool has no blocks. */
static inline bool prof_i_pool_has_blocks(const prof_memory_info *info) {
  return info->peak_allocated.allocated_bytes > 0;
}

/* The label of what has no name. */
static inline const char *prof_i_unnamed_key_text(prof_memory_by by) {
  return by == PROF_MEMORY_BY_TAG ? "(no tag)" : "(no scope)";
}

/* ---- memory_pool_text.c ---- */

void prof_i_text_table_add_bytes(prof_i_text_table *table, int64_t bytes);
void prof_i_text_table_add_time(prof_i_text_table *table, uint64_t ns);
void prof_i_text_table_add_count(prof_i_text_table *table, uint64_t count);

/* Adds `unnamed` if the name is empty. */
void prof_i_text_table_add_name(prof_i_text_table *table, const char *name, const char *unnamed);

/* Writes an indented, wrapped sentence. */
void prof_i_report_put_sentence(prof_i_memory_report *r, const char *text);

/* Appends a count and its noun: "2 allocs", then ", 3 frees". */
void prof_i_text_add_part(char *to, size_t room, uint64_t count, const char *one, const char *many);

/* The counts of a pool, failed allocations, RAF's line and growth. */
void prof_i_report_put_counts(prof_i_memory_report *r, uint32_t index);

/* The table of the pool's state at its peaks and at the end. */
void prof_i_report_put_moments(prof_i_memory_report *r, const prof_memory_info *info);

/* The tables of what was live. 0 or an error whose text is set. */
int prof_i_report_put_live_sets(prof_i_memory_report *r, uint32_t index);

#endif
