/* One pool in the memory report: its counts, its state at three moments, and what was live then.
   Also the cells and sentences of the report. See memory_text.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../analysis/internal.h"
#include "../base/display.h"
#include "memory_text.h"

/* ---- cells ---- */

void prof_i_text_table_add_bytes(prof_i_text_table *table, int64_t bytes) {
  char cell[PROF_I_CELL_ROOM];
  prof_i_put_bytes(cell, sizeof cell, bytes);
  prof_i_text_table_add(table, cell);
}

void prof_i_text_table_add_time(prof_i_text_table *table, uint64_t ns) {
  char cell[PROF_I_CELL_ROOM];
  prof_i_put_time(cell, sizeof cell, ns, 0);
  prof_i_text_table_add(table, cell);
}

void prof_i_text_table_add_count(prof_i_text_table *table, uint64_t count) {
  char cell[PROF_I_CELL_ROOM];
  snprintf(cell, sizeof cell, "%" PRIu64, count);
  prof_i_text_table_add(table, cell);
}

static void table_add_share(prof_i_text_table *table, uint64_t part, uint64_t all) {
  char cell[PROF_I_CELL_ROOM];
  prof_i_put_share(cell, sizeof cell, part, all);
  prof_i_text_table_add(table, cell);
}

void prof_i_text_table_add_name(prof_i_text_table *table, const char *name, const char *unnamed) {
  char cell[PROF_I_SANITIZED_NAME_BYTES];
  prof_i_sanitize_name(cell, name[0] ? name : unnamed);
  prof_i_text_table_add(table, cell);
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

/* ---- counts of a pool ---- */

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

/* ---- the state at three moments ---- */

typedef enum moment_row {
  ROW_TIME,
  ROW_USED,
  ROW_USED_BYTES,
  ROW_ALLOCATED,
  ROW_ALLOCATED_BYTES,
  ROW_PIECES,
  ROW_REQUESTED,
  ROW_REQUESTED_BYTES,
  ROW_WASTE,
  ROW_FREE,
  ROW_LARGEST,
  ROW_FRAGMENTATION,
  ROW_OUTSIDE,
  ROW_COUNT
} moment_row;

static const char *const moment_rows[ROW_COUNT] = {
    "time",         "used",          "  bytes",         "allocated", "  bytes",
    "live pieces",  "requested",     "  bytes",         "waste",     "free in blocks",
    "largest free", "fragmentation", "live in no block"};

/* A query has no allocations, and a pool without blocks has no gaps. */
static bool pool_has_row(const prof_memory_info *info, moment_row row) {
  const prof_memory_state *const states[] = {&info->peak_used, &info->peak_allocated, &info->end};
  bool has_ranges = false, has_outside = false;
  for (size_t i = 0; i < 3; i++) {
    has_ranges |= states[i]->has_ranges != 0;
    has_outside |= states[i]->outside_bytes != 0;
  }
  if (row >= ROW_PIECES && info->source == PROF_MEMORY_QUERY) return false;
  if (row == ROW_OUTSIDE) return has_outside;
  if (row == ROW_ALLOCATED || row == ROW_ALLOCATED_BYTES) return prof_i_pool_has_blocks(info);
  return row < ROW_FREE || has_ranges;
}

static void table_add_moment(prof_i_text_table *table, const prof_memory_state *state,
                             moment_row row) {
  char cell[PROF_I_CELL_ROOM];
  const uint64_t waste =
      state->live_bytes > state->requested_bytes ? state->live_bytes - state->requested_bytes : 0;
  if (row >= ROW_FREE && !state->has_ranges) {
    prof_i_text_table_add(table, "-");
    return;
  }
  switch (row) {
    case ROW_TIME:
      prof_i_text_table_add_time(table, state->ns);
      return;
    case ROW_USED:
      prof_i_text_table_add_bytes(table, state->used_bytes);
      return;
    case ROW_ALLOCATED:
      prof_i_text_table_add_bytes(table, state->allocated_bytes);
      return;
    case ROW_PIECES:
      prof_i_text_table_add_count(table, state->live_count);
      return;
    case ROW_REQUESTED:
      prof_i_text_table_add_bytes(table, (int64_t)state->requested_bytes);
      return;
    case ROW_WASTE:
      prof_i_text_table_add_bytes(table, (int64_t)waste);
      return;
    case ROW_FREE:
      prof_i_text_table_add_bytes(table, (int64_t)state->free_bytes);
      return;
    case ROW_LARGEST:
      prof_i_text_table_add_bytes(table, (int64_t)state->largest_free_bytes);
      return;
    case ROW_FRAGMENTATION:
      table_add_share(table, (uint64_t)(state->fragmentation * 1e4 + 0.5), 10000);
      return;
    case ROW_OUTSIDE:
      prof_i_text_table_add_bytes(table, (int64_t)state->outside_bytes);
      return;
    case ROW_USED_BYTES:
      snprintf(cell, sizeof cell, "%" PRId64, state->used_bytes);
      break;
    case ROW_ALLOCATED_BYTES:
      snprintf(cell, sizeof cell, "%" PRId64, state->allocated_bytes);
      break;
    case ROW_REQUESTED_BYTES:
      snprintf(cell, sizeof cell, "%" PRIu64, state->requested_bytes);
      break;
    case ROW_COUNT:
      return;
  }
  prof_i_text_table_add(table, cell);
}

void prof_i_report_put_moments(prof_i_memory_report *r, const prof_memory_info *info) {
  static const char *const titles[] = {"", "peak of used", "peak of allocated", "end"},
                           *const fewer[] = {"", "peak of used", "end"};
  prof_i_text_table table = {.titles = prof_i_pool_has_blocks(info) ? titles : fewer,
                             .column_count = prof_i_pool_has_blocks(info) ? 4 : 3,
                             .text_columns = 1};
  for (moment_row row = ROW_TIME; row < ROW_COUNT; row++) {
    if (!pool_has_row(info, row)) continue;
    prof_i_text_table_add(&table, moment_rows[row]);
    table_add_moment(&table, &info->peak_used, row);
    if (prof_i_pool_has_blocks(info)) table_add_moment(&table, &info->peak_allocated, row);
    table_add_moment(&table, &info->end, row);
  }
  prof_i_text_buffer_repeat(&r->page, '\n', 1);
  prof_i_text_table_write(&r->page, &table, PROF_I_REPORT_INDENT, r->width);
}

/* ---- what was live ---- */

/* Ages at the end, or shares of the peak. */
static void add_live_row(prof_i_text_table *table, const prof_memory_info *info, prof_memory_by by,
                         const prof_memory_row *row, bool is_end) {
  const uint64_t used = info->peak_used.used_bytes > 0 ? (uint64_t)info->peak_used.used_bytes : 0,
                 end = info->end.ns;
  prof_i_text_table_add_name(table, row->label, prof_i_unnamed_key_text(by));
  prof_i_text_table_add_bytes(table, (int64_t)row->bytes);
  if (!is_end) table_add_share(table, row->bytes, used);
  prof_i_text_table_add_count(table, row->count);
  if (!is_end) {
    prof_i_text_table_add_bytes(table, (int64_t)row->requested_bytes);
    return;
  }
  prof_i_text_table_add_time(table, end > row->oldest_ns ? end - row->oldest_ns : 0);
  prof_i_text_table_add_time(table, end > row->newest_ns ? end - row->newest_ns : 0);
}

/* The rows that the table leaves out, and used bytes of unknown allocations, so that the sum is
   complete. */
static void report_put_rest(prof_i_memory_report *r, const prof_memory_rows *rows, uint64_t shown,
                            int64_t used_bytes, const char *what) {
  char bytes[PROF_I_CELL_ROOM];
  uint64_t rest = 0;
  for (uint64_t i = shown; i < rows->row_count; i++) rest += rows->rows[i].bytes;
  prof_i_put_bytes(bytes, sizeof bytes, (int64_t)rest);
  const bool is_one = rows->row_count - shown == 1;
  if (shown < rows->row_count)
    prof_i_text_buffer_printf(&r->page, "%*sand %" PRIu64 " more %.*s with %s\n",
                              PROF_I_REPORT_INDENT, "", rows->row_count - shown,
                              (int)strlen(what) - (is_one ? 1 : 0), what, bytes);
  if (used_bytes <= 0 || (uint64_t)used_bytes <= rows->bytes) return;
  prof_i_put_bytes(bytes, sizeof bytes, used_bytes - (int64_t)rows->bytes);
  prof_i_text_buffer_printf(
      &r->page, "%*s%s%s %s\n", PROF_I_REPORT_INDENT, "", shown ? "and " : "", bytes,
      r->memory->filter ? "left out by the filter, from before the start, or lost"
                        : "from before the start, or whose records are lost");
}

static int report_put_live(prof_i_memory_report *r, uint32_t index, prof_memory_moment moment,
                           prof_memory_by by) {
  static const char *const peak_titles[][5] = {
      {"scope", "bytes", "of the peak", "pieces", "requested"},
      {"tag", "bytes", "of the peak", "pieces", "requested"},
      {"size asked for", "bytes", "of the peak", "pieces", "requested"}};
  static const char *const end_titles[] = {"scope", "bytes", "pieces", "oldest", "newest"};
  static const char *const whats[] = {"scopes", "tags", "sizes"};
  const prof_memory_info *const info = prof_i_report_pool_info(r, index);
  const bool is_end = moment == PROF_MEMORY_AT_END;
  prof_memory_rows *rows;
  const int status = prof_i_memory_live(r->memory, index, moment, 0, by, &rows);
  if (status) return status;
  r->live_count += rows->count;
  const bool is_telling = by != PROF_MEMORY_BY_TAG || rows->row_count > 1 ||
                          (rows->row_count && rows->rows[0].label[0]);
  const int64_t used_then = is_end ? info->end.used_bytes : info->peak_used.used_bytes;
  const bool has_rest =
      by == PROF_MEMORY_BY_SCOPE && used_then > 0 && (uint64_t)used_then > rows->bytes;
  if (is_telling && (rows->row_count || has_rest)) {
    prof_i_text_table table = {
        .titles = is_end ? end_titles : peak_titles[by], .column_count = 5, .text_columns = 1};
    const uint64_t shown = rows->row_count < r->rows_limit ? rows->row_count : r->rows_limit;
    for (uint64_t i = 0; i < shown; i++) add_live_row(&table, info, by, &rows->rows[i], is_end);
    prof_i_text_buffer_repeat(&r->page, '\n', 1);
    if (is_end)
      prof_i_report_put_sentence(
          r, r->trace.is_live
                 ? "Alive at the end, by scope and age; the process runs, and may free them yet:"
                 : "Alive at the end, by scope and age (leaks, where nothing frees them after the "
                   "recording):");
    else if (by == PROF_MEMORY_BY_SCOPE)
      prof_i_report_put_sentence(r, "Live at the peak of used:");
    if (shown) prof_i_text_table_write(&r->page, &table, PROF_I_REPORT_INDENT, r->width);
    report_put_rest(r, rows, shown, used_then, whats[by]);
  }
  free(rows);
  return PROF_OK;
}

int prof_i_report_put_live_sets(prof_i_memory_report *r, uint32_t index) {
  if (prof_i_report_pool_info(r, index)->source == PROF_MEMORY_QUERY) {
    prof_i_report_put_sentence(r, "which pieces were live is not known: only sums were recorded");
    return PROF_OK;
  }
  int status = PROF_OK;
  for (uint32_t by = PROF_MEMORY_BY_SCOPE; !status && by <= PROF_MEMORY_BY_SIZE; by++)
    status = report_put_live(r, index, PROF_MEMORY_AT_PEAK_USED, (prof_memory_by)by);
  return status ? status : report_put_live(r, index, PROF_MEMORY_AT_END, PROF_MEMORY_BY_SCOPE);
}
