/* Cells and sentences of the memory report. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../base/display.h"
#include "memory_text.h"

/* ---- cells ---- */

void prof_i_grid_add_bytes(prof_i_text_table *grid, int64_t bytes) {
  char cell[PROF_I_CELL_ROOM];
  prof_i_put_bytes(cell, sizeof cell, bytes);
  prof_i_text_table_add(grid, cell);
}

void prof_i_grid_add_time(prof_i_text_table *grid, uint64_t ns) {
  char cell[PROF_I_CELL_ROOM];
  prof_i_put_time(cell, sizeof cell, ns, 0);
  prof_i_text_table_add(grid, cell);
}

void prof_i_grid_add_count(prof_i_text_table *grid, uint64_t count) {
  char cell[PROF_I_CELL_ROOM];
  snprintf(cell, sizeof cell, "%" PRIu64, count);
  prof_i_text_table_add(grid, cell);
}

void prof_i_grid_add_share(prof_i_text_table *grid, uint64_t part, uint64_t all) {
  char cell[PROF_I_CELL_ROOM];
  prof_i_put_share(cell, sizeof cell, part, all);
  prof_i_text_table_add(grid, cell);
}

void prof_i_grid_add_name(prof_i_text_table *grid, const char *name, const char *unnamed) {
  char cell[PROF_I_SANITIZED_NAME_BYTES];
  prof_i_sanitize_name(cell, name[0] ? name : unnamed);
  prof_i_text_table_add(grid, cell);
}

/* ---- sentences ---- */

void prof_i_report_put_sentence(prof_i_memory_report *r, const char *text) {
  prof_i_text_buffer_wrap(&r->page, PROF_I_REPORT_INDENT, r->width, text);
}

void prof_i_text_add_part(char *to, size_t room, uint64_t count, const char *one,
                          const char *many) {
  const size_t used = strlen(to);
  snprintf(to + used, room - used, "%s%" PRIu64 " %s", used ? ", " : "", count,
           count == 1 ? one : many);
}

static void put_event_counts(prof_i_memory_report *r, const prof_memory_info *info) {
  char text[PROF_I_SENTENCE_ROOM] = "", time[PROF_I_CELL_ROOM], released[PROF_I_CELL_ROOM];
  const bool is_query = info->source == PROF_MEMORY_QUERY;
  if (!is_query) prof_i_text_add_part(text, sizeof text, info->alloc_count, "alloc", "allocs");
  if (!is_query) prof_i_text_add_part(text, sizeof text, info->free_count, "free", "frees");
  if (info->reserve_count)
    prof_i_text_add_part(text, sizeof text, info->reserve_count, "reserve", "reserves");
  if (info->release_count)
    prof_i_text_add_part(text, sizeof text, info->release_count, "release", "releases");
  if (is_query) prof_i_text_add_part(text, sizeof text, info->sample_count, "sample", "samples");
  if (info->collection_count)
    prof_i_text_add_part(text, sizeof text, info->collection_count, "collection", "collections");
  if (info->collection_ns) {
    const size_t used = strlen(text);
    prof_i_put_time(time, sizeof time, info->collection_ns, 0);
    prof_i_put_bytes(released, sizeof released, (int64_t)info->collection_released_bytes);
    snprintf(text + used, sizeof text - used,
             info->collection_released_bytes ? " (%s, %s released)" : " (%s)", time, released);
  }
  if (info->oom_count)
    prof_i_text_add_part(text, sizeof text, info->oom_count, "allocation that failed",
                         "allocations that failed");
  prof_i_report_put_sentence(r, text);
}

static void put_failures(prof_i_memory_report *r, uint32_t index) {
  const prof_i_memory_pool *const pool = &r->memory->pools[index];
  for (uint32_t i = 0; i < pool->failure_count; i++) {
    const prof_i_memory_failure *const failure = &pool->failures[i];
    char text[PROF_I_SENTENCE_ROOM + PROF_I_SANITIZED_NAME_BYTES], bytes[PROF_I_CELL_ROOM],
        time[PROF_I_CELL_ROOM], used[PROF_I_CELL_ROOM], allocated[PROF_I_CELL_ROOM],
        scope[PROF_I_SANITIZED_NAME_BYTES];
    prof_i_put_bytes(bytes, sizeof bytes, (int64_t)failure->bytes);
    prof_i_put_time(time, sizeof time, failure->ns, 0);
    prof_i_put_bytes(used, sizeof used, failure->used);
    prof_i_put_bytes(allocated, sizeof allocated, failure->allocated);
    prof_i_sanitize_name(scope, failure->scope);
    snprintf(text, sizeof text,
             "%s (%" PRIu64 " bytes) could not be had at %s%s%s: %s were used then, %s allocated",
             bytes, failure->bytes, time, failure->scope[0] ? " in " : "", scope, used, allocated);
    prof_i_report_put_sentence(r, text);
  }
}

/* RAF's get_max_memory_info. */
static void put_raf_line(prof_i_memory_report *r, const prof_memory_info *info) {
  char text[PROF_I_SENTENCE_ROOM], used[PROF_I_CELL_ROOM], allocated[PROF_I_CELL_ROOM];
  prof_i_put_mb(used, sizeof used, info->peak_used.used_bytes);
  prof_i_put_mb(allocated, sizeof allocated, info->peak_allocated.allocated_bytes);
  if (prof_i_pool_has_blocks(info))
    snprintf(text, sizeof text,
             "max_used %s MB, max_allocated %s MB, as RAF prints them: 1 MB is 2^20 bytes", used,
             allocated);
  else
    snprintf(
        text, sizeof text,
        "max_used %s MB, as RAF prints it: 1 MB is 2^20 bytes; max_allocated is not known, because "
        "the pool reported no blocks",
        used);
  prof_i_report_put_sentence(r, text);
}

static void put_growth(prof_i_memory_report *r, const prof_memory_info *info) {
  char text[PROF_I_SENTENCE_ROOM], bytes[PROF_I_CELL_ROOM];
  if (info->growth_bytes <= 0) return;
  prof_i_put_bytes(bytes, sizeof bytes, info->growth_bytes);
  snprintf(text, sizeof text,
           "of all steps, used grew most in step %" PRIu64 ": by %s (%" PRId64 " bytes)%s",
           info->growth_step, bytes, info->growth_bytes,
           info->source == PROF_MEMORY_QUERY ? ", as far as the samples tell" : "");
  prof_i_report_put_sentence(r, text);
}

void prof_i_report_put_counts(prof_i_memory_report *r, uint32_t index) {
  const prof_memory_info *const info = prof_i_report_pool_info(r, index);
  put_event_counts(r, info);
  put_failures(r, index);
  put_raf_line(r, info);
  put_growth(r, info);
}
