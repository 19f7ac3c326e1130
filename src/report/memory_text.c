/* The report of what a trace says of memory, for people: of each pool of the last session its plot,
   what stood at its peaks, who held what, what was wrong and what is not known; of older sessions a
   line each. */
#include <inttypes.h>
#include <prof/memory.h>
#include <prof/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../analysis/memory.h"
#include "../base/log.h"
#include "../base/options.h"
#include "../base/port.h"
#include "../base/reentry.h"
#include "../base/sanitize.h"
#include "../base/text_buffer.h"
#include "../base/this_thread.h"
#include "../base/units.h"
#include "../reader/internal.h"
#include "memory_plot.h"

enum {
  TEXT_INDENT = 2,
  WIDTH_USUAL = 80,
  ROWS_USUAL = 10,
  POOLS_SHOWN = 16,
  CELL_ROOM = 64,
  SENTENCE_ROOM = 512
};

typedef struct memory_report {
  const prof_memory *memory;
  prof_trace_info trace;
  prof_i_text_buffer page;
  uint32_t width, rows_limit;
  bool is_ascii;
} memory_report;

static const prof_memory_info *report_pool_info(const memory_report *r, uint32_t index) {
  return &r->memory->pools[index].info;
}

/* ---- cells ---- */

static void grid_add_bytes(prof_i_text_table *grid, int64_t bytes) {
  char cell[CELL_ROOM];
  prof_i_put_bytes(cell, sizeof cell, bytes);
  prof_i_text_table_add(grid, cell);
}

static void grid_add_time(prof_i_text_table *grid, uint64_t ns) {
  char cell[CELL_ROOM];
  prof_i_put_time(cell, sizeof cell, ns, 0);
  prof_i_text_table_add(grid, cell);
}

static void grid_add_count(prof_i_text_table *grid, uint64_t count) {
  char cell[CELL_ROOM];
  snprintf(cell, sizeof cell, "%" PRIu64, count);
  prof_i_text_table_add(grid, cell);
}

static void grid_add_share(prof_i_text_table *grid, uint64_t part, uint64_t all) {
  char cell[CELL_ROOM];
  prof_i_put_share(cell, sizeof cell, part, all);
  prof_i_text_table_add(grid, cell);
}

static void grid_add_name(prof_i_text_table *grid, const char *name, const char *unnamed_key_text) {
  char cell[PROF_I_SANITIZED_NAME_BYTES];
  prof_i_sanitize_name(cell, name[0] ? name : unnamed_key_text);
  prof_i_text_table_add(grid, cell);
}

static void say_name(memory_report *r, const char *name) {
  char shown[PROF_I_SANITIZED_NAME_BYTES];
  prof_i_sanitize_name(shown, name);
  prof_i_text_buffer_append_text(&r->page, shown);
}

static const char *source_text(uint32_t source) {
  return source == PROF_MEMORY_QUERY ? "asked by PROFILE_MEMORY()" : "exact, piece by piece";
}

/* ---- what stood at three moments ---- */

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

/* malloc()'s pool has none. */
static bool pool_has_blocks(const prof_memory_info *info) {
  return info->peak_allocated.allocated_bytes > 0;
}

/* A query knows no pieces, and a pool without blocks no gaps. */
static bool pool_has_row(const prof_memory_info *info, moment_row row) {
  const prof_memory_state *const states[] = {&info->peak_used, &info->peak_allocated, &info->end};
  bool has_ranges = false, has_outside = false;
  for (size_t i = 0; i < 3; i++) {
    has_ranges |= states[i]->has_ranges != 0;
    has_outside |= states[i]->outside_bytes != 0;
  }
  if (row >= ROW_PIECES && info->source == PROF_MEMORY_QUERY) return false;
  if (row == ROW_OUTSIDE) return has_outside;
  if (row == ROW_ALLOCATED || row == ROW_ALLOCATED_BYTES) return pool_has_blocks(info);
  return row < ROW_FREE || has_ranges;
}

static void grid_add_moment(prof_i_text_table *grid, const prof_memory_state *state,
                            moment_row row) {
  char cell[CELL_ROOM];
  const uint64_t waste =
      state->live_bytes > state->requested_bytes ? state->live_bytes - state->requested_bytes : 0;
  if (row >= ROW_FREE && !state->has_ranges) {
    prof_i_text_table_add(grid, "-");
    return;
  }
  switch (row) {
    case ROW_TIME:
      grid_add_time(grid, state->ns);
      return;
    case ROW_USED:
      grid_add_bytes(grid, state->used_bytes);
      return;
    case ROW_ALLOCATED:
      grid_add_bytes(grid, state->allocated_bytes);
      return;
    case ROW_PIECES:
      grid_add_count(grid, state->live_count);
      return;
    case ROW_REQUESTED:
      grid_add_bytes(grid, (int64_t)state->requested_bytes);
      return;
    case ROW_WASTE:
      grid_add_bytes(grid, (int64_t)waste);
      return;
    case ROW_FREE:
      grid_add_bytes(grid, (int64_t)state->free_bytes);
      return;
    case ROW_LARGEST:
      grid_add_bytes(grid, (int64_t)state->largest_free_bytes);
      return;
    case ROW_FRAGMENTATION:
      grid_add_share(grid, (uint64_t)(state->fragmentation * 1e4 + 0.5), 10000);
      return;
    case ROW_OUTSIDE:
      grid_add_bytes(grid, (int64_t)state->outside_bytes);
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
  prof_i_text_table_add(grid, cell);
}

static void put_moments(memory_report *r, const prof_memory_info *info) {
  static const char *const titles[] = {"", "peak of used", "peak of allocated", "end"},
                           *const fewer[] = {"", "peak of used", "end"};
  prof_i_text_table grid = {.titles = pool_has_blocks(info) ? titles : fewer,
                            .column_count = pool_has_blocks(info) ? 4 : 3,
                            .text_columns = 1};
  for (moment_row row = ROW_TIME; row < ROW_COUNT; row++) {
    if (!pool_has_row(info, row)) continue;
    prof_i_text_table_add(&grid, moment_rows[row]);
    grid_add_moment(&grid, &info->peak_used, row);
    if (pool_has_blocks(info)) grid_add_moment(&grid, &info->peak_allocated, row);
    grid_add_moment(&grid, &info->end, row);
  }
  prof_i_text_buffer_repeat(&r->page, '\n', 1);
  prof_i_text_table_write(&r->page, &grid, TEXT_INDENT, r->width);
}

/* ---- sentences ---- */

static void put_sentence(memory_report *r, const char *text) {
  prof_i_text_buffer_wrap(&r->page, TEXT_INDENT, r->width, text);
}

/* ", 3 frees" */
static void text_add_part(char *to, size_t room, uint64_t count, const char *one,
                          const char *many) {
  const size_t used = strlen(to);
  snprintf(to + used, room - used, "%s%" PRIu64 " %s", used ? ", " : "", count,
           count == 1 ? one : many);
}

static void report_put_counts(memory_report *r, const prof_memory_info *info) {
  char text[SENTENCE_ROOM] = "", time[CELL_ROOM], released[CELL_ROOM];
  const bool is_query = info->source == PROF_MEMORY_QUERY;
  if (!is_query) text_add_part(text, sizeof text, info->alloc_count, "alloc", "allocs");
  if (!is_query) text_add_part(text, sizeof text, info->free_count, "free", "frees");
  if (info->reserve_count)
    text_add_part(text, sizeof text, info->reserve_count, "reserve", "reserves");
  if (info->release_count)
    text_add_part(text, sizeof text, info->release_count, "release", "releases");
  if (is_query) text_add_part(text, sizeof text, info->sample_count, "sample", "samples");
  if (info->collection_count)
    text_add_part(text, sizeof text, info->collection_count, "collection", "collections");
  if (info->collection_ns) {
    const size_t used = strlen(text);
    prof_i_put_time(time, sizeof time, info->collection_ns, 0);
    prof_i_put_bytes(released, sizeof released, (int64_t)info->collection_released_bytes);
    snprintf(text + used, sizeof text - used,
             info->collection_released_bytes ? " (%s, %s released)" : " (%s)", time, released);
  }
  if (info->oom_count)
    text_add_part(text, sizeof text, info->oom_count, "allocation that failed",
                  "allocations that failed");
  put_sentence(r, text);
}

static void put_failures(memory_report *r, uint32_t index) {
  const prof_i_memory_pool *const pool = &r->memory->pools[index];
  for (uint32_t i = 0; i < pool->failure_count; i++) {
    const prof_i_memory_failure *const failure = &pool->failures[i];
    char text[SENTENCE_ROOM + PROF_I_SANITIZED_NAME_BYTES], bytes[CELL_ROOM], time[CELL_ROOM],
        used[CELL_ROOM], allocated[CELL_ROOM], scope[PROF_I_SANITIZED_NAME_BYTES];
    prof_i_put_bytes(bytes, sizeof bytes, (int64_t)failure->bytes);
    prof_i_put_time(time, sizeof time, failure->ns, 0);
    prof_i_put_bytes(used, sizeof used, failure->used);
    prof_i_put_bytes(allocated, sizeof allocated, failure->allocated);
    prof_i_sanitize_name(scope, failure->scope);
    snprintf(text, sizeof text,
             "%s (%" PRIu64 " bytes) could not be had at %s%s%s: %s were used then, %s allocated",
             bytes, failure->bytes, time, failure->scope[0] ? " in " : "", scope, used, allocated);
    put_sentence(r, text);
  }
}

/* RAF's get_max_memory_info. */
static void put_raf_line(memory_report *r, const prof_memory_info *info) {
  char text[SENTENCE_ROOM], used[CELL_ROOM], allocated[CELL_ROOM];
  prof_i_put_mb(used, sizeof used, info->peak_used.used_bytes);
  prof_i_put_mb(allocated, sizeof allocated, info->peak_allocated.allocated_bytes);
  if (pool_has_blocks(info))
    snprintf(text, sizeof text, "max_used %s MB, max_allocated %s MB (of 2^20 bytes, as RAF's)",
             used, allocated);
  else
    snprintf(
        text, sizeof text,
        "max_used %s MB (of 2^20 bytes, as RAF's); max_allocated is not known: no blocks were told",
        used);
  put_sentence(r, text);
}

static void put_growth(memory_report *r, const prof_memory_info *info) {
  char text[SENTENCE_ROOM], bytes[CELL_ROOM];
  if (info->growth_bytes <= 0) return;
  prof_i_put_bytes(bytes, sizeof bytes, info->growth_bytes);
  snprintf(text, sizeof text,
           "of all steps, used grew most in step %" PRIu64 ": by %s (%" PRId64 " bytes)%s",
           info->growth_step, bytes, info->growth_bytes,
           info->source == PROF_MEMORY_QUERY ? ", as far as the samples tell" : "");
  put_sentence(r, text);
}

/* ---- what was live ---- */

static const char *unnamed_key_text(prof_memory_by by) {
  return by == PROF_MEMORY_BY_TAG ? "(no tag)" : "(no scope)";
}

/* Ages at the end, or shares of the peak. */
static void add_live_row(prof_i_text_table *grid, const prof_memory_info *info, prof_memory_by by,
                         const prof_memory_row *row, bool is_end) {
  const uint64_t used = info->peak_used.used_bytes > 0 ? (uint64_t)info->peak_used.used_bytes : 0,
                 end = info->end.ns;
  grid_add_name(grid, row->label, unnamed_key_text(by));
  grid_add_bytes(grid, (int64_t)row->bytes);
  if (!is_end) grid_add_share(grid, row->bytes, used);
  grid_add_count(grid, row->count);
  if (!is_end) {
    grid_add_bytes(grid, (int64_t)row->requested_bytes);
    return;
  }
  grid_add_time(grid, end > row->oldest_ns ? end - row->oldest_ns : 0);
  grid_add_time(grid, end > row->newest_ns ? end - row->newest_ns : 0);
}

/* What the table leaves out, and what is used and not known to be live, so that it adds up. */
static void report_put_rest(memory_report *r, const prof_memory_rows *rows, uint64_t shown,
                            int64_t used_bytes, const char *what) {
  char bytes[CELL_ROOM];
  uint64_t rest = 0;
  for (uint64_t i = shown; i < rows->row_count; i++) rest += rows->rows[i].bytes;
  prof_i_put_bytes(bytes, sizeof bytes, (int64_t)rest);
  const bool is_one = rows->row_count - shown == 1;
  if (shown < rows->row_count)
    prof_i_text_buffer_printf(&r->page, "%*sand %" PRIu64 " more %.*s with %s\n", TEXT_INDENT, "",
                              rows->row_count - shown, (int)strlen(what) - (is_one ? 1 : 0), what,
                              bytes);
  if (used_bytes <= 0 || (uint64_t)used_bytes <= rows->bytes) return;
  prof_i_put_bytes(bytes, sizeof bytes, used_bytes - (int64_t)rows->bytes);
  prof_i_text_buffer_printf(&r->page, "%*s%s%s from before the start, or whose records are lost\n",
                            TEXT_INDENT, "", shown ? "and " : "", bytes);
}

static int report_put_live(memory_report *r, uint32_t index, prof_memory_moment moment,
                           prof_memory_by by) {
  static const char *const peak_titles[][5] = {
      {"scope", "bytes", "of the peak", "pieces", "requested"},
      {"tag", "bytes", "of the peak", "pieces", "requested"},
      {"size asked for", "bytes", "of the peak", "pieces", "requested"}};
  static const char *const end_titles[] = {"scope", "bytes", "pieces", "oldest", "newest"};
  static const char *const whats[] = {"scopes", "tags", "sizes"};
  const prof_memory_info *const info = report_pool_info(r, index);
  const bool is_end = moment == PROF_MEMORY_AT_END;
  prof_memory_rows *rows;
  const int status = prof_i_memory_live(r->memory, index, moment, 0, by, &rows);
  if (status) return status;
  const bool is_telling = by != PROF_MEMORY_BY_TAG || rows->row_count > 1 ||
                          (rows->row_count && rows->rows[0].label[0]);
  const int64_t used_then = is_end ? info->end.used_bytes : info->peak_used.used_bytes;
  const bool has_rest =
      by == PROF_MEMORY_BY_SCOPE && used_then > 0 && (uint64_t)used_then > rows->bytes;
  if (is_telling && (rows->row_count || has_rest)) {
    prof_i_text_table grid = {
        .titles = is_end ? end_titles : peak_titles[by], .column_count = 5, .text_columns = 1};
    const uint64_t shown = rows->row_count < r->rows_limit ? rows->row_count : r->rows_limit;
    for (uint64_t i = 0; i < shown; i++) add_live_row(&grid, info, by, &rows->rows[i], is_end);
    prof_i_text_buffer_repeat(&r->page, '\n', 1);
    if (is_end)
      put_sentence(
          r, r->trace.is_live
                 ? "Alive at the end, by scope and age; the process runs, and may free them yet:"
                 : "Alive at the end, by scope and age (leaks, where nothing frees them after the "
                   "recording):");
    else if (by == PROF_MEMORY_BY_SCOPE)
      put_sentence(r, "Live at the peak of used:");
    if (shown) prof_i_text_table_write(&r->page, &grid, TEXT_INDENT, r->width);
    report_put_rest(r, rows, shown, used_then, whats[by]);
  }
  free(rows);
  return PROF_OK;
}

static int put_live_sets(memory_report *r, uint32_t index) {
  if (report_pool_info(r, index)->source == PROF_MEMORY_QUERY) {
    put_sentence(r, "which pieces were live is not known: only a pool says them");
    return PROF_OK;
  }
  int status = PROF_OK;
  for (uint32_t by = PROF_MEMORY_BY_SCOPE; !status && by <= PROF_MEMORY_BY_SIZE; by++)
    status = report_put_live(r, index, PROF_MEMORY_AT_PEAK_USED, (prof_memory_by)by);
  return status ? status : report_put_live(r, index, PROF_MEMORY_AT_END, PROF_MEMORY_BY_SCOPE);
}

/* ---- what was wrong, and what is not known ---- */

/* one, many, in a table */
static const char *const wrong_texts[PROF_MEMORY_WRONG_COUNT][3] = {
    {"free of what is not live", "frees of what is not live", "not live"},
    {"double free", "double frees", "double free"},
    {"alloc over what is live", "allocs over what is live", "overlap"},
    {"free of another pool's piece", "frees of another pool's pieces", "other pool"},
    {"free with other bytes", "frees with other bytes", "other bytes"}};

static void grid_add_thread(prof_i_text_table *grid, const prof_trace *trace, uint32_t index) {
  prof_trace_thread thread = {.size = sizeof thread};
  char text[96];
  prof_trace_thread_get(trace, index, &thread);
  snprintf(text, sizeof text, "%s (%" PRIu64 ")", thread.name, thread.tid);
  grid_add_name(grid, text, "");
}

static void put_examples(memory_report *r, uint32_t index) {
  static const char *const titles[] = {"wrong", "time", "address", "bytes", "scope", "thread"};
  prof_i_text_table grid = {
      .titles = titles, .column_count = 6, .text_columns = 1 | 1 << 4 | 1 << 5};
  const prof_i_memory_pool *const pool = &r->memory->pools[index];
  for (uint32_t i = 0; i < pool->example_count; i++) {
    const prof_memory_example *const example = &pool->examples[i];
    char address[CELL_ROOM];
    snprintf(address, sizeof address, "0x%" PRIx64, example->address);
    prof_i_text_table_add(&grid, wrong_texts[example->wrong][2]);
    grid_add_time(&grid, example->ns);
    prof_i_text_table_add(&grid, address);
    grid_add_count(&grid, example->bytes);
    grid_add_name(&grid, example->scope, unnamed_key_text(PROF_MEMORY_BY_SCOPE));
    grid_add_thread(&grid, r->memory->trace, example->thread);
  }
  prof_i_text_table_write(&r->page, &grid, TEXT_INDENT, r->width);
}

/* An unchecked pool counts what it is told. What right calls alone would have come to is known
   where nothing is missing. */
static void put_without_wrong(memory_report *r, uint32_t index) {
  const prof_i_memory_pool *const pool = &r->memory->pools[index];
  if (pool->info.missing_count || !pool->is_begin_known ||
      pool->info.end.used_bytes == pool->replayed_end)
    return;
  char text[SENTENCE_ROOM], peak[CELL_ROOM], end[CELL_ROOM];
  prof_i_put_bytes(peak, sizeof peak, pool->replayed_peak);
  prof_i_put_bytes(end, sizeof end, pool->replayed_end);
  snprintf(text, sizeof text,
           "they stand in used and its peak, by the pool's own count; without them the peak of "
           "used is %s (%" PRId64
           " bytes), and %s are used at the end. A checked pool leaves them out",
           peak, pool->replayed_peak, end);
  put_sentence(r, text);
}

static void report_put_wrong(memory_report *r, uint32_t index) {
  const prof_memory_info *const info = report_pool_info(r, index);
  char text[SENTENCE_ROOM] = "";
  uint64_t all = 0;
  for (uint32_t i = 0; i < PROF_MEMORY_WRONG_COUNT; i++) {
    if (info->wrong_count[i])
      text_add_part(text, sizeof text, info->wrong_count[i], wrong_texts[i][0], wrong_texts[i][1]);
    all += info->wrong_count[i];
  }
  if (!all) return;
  const uint32_t shown = r->memory->pools[index].example_count;
  char sentence[SENTENCE_ROOM + 64];
  snprintf(sentence, sizeof sentence, "Wrong calls: %s%s", text,
           shown < all ? "; the first ones:" : ":");
  prof_i_text_buffer_repeat(&r->page, '\n', 1);
  put_sentence(r, sentence);
  if (shown) put_examples(r, index);
  put_without_wrong(r, index);
}

static void report_put_before(memory_report *r, const prof_memory_info *info, uint32_t baseline) {
  char text[SENTENCE_ROOM], used[CELL_ROOM], allocated[CELL_ROOM];
  prof_i_put_bytes(used, sizeof used, (int64_t)info->used_before_bytes);
  prof_i_put_bytes(allocated, sizeof allocated, (int64_t)info->allocated_before_bytes);
  if (info->has_baseline)
    snprintf(text, sizeof text, "before the start %s were used and %s allocated", used, allocated);
  else if (baseline == PROF_I_BASELINE_NEAR)
    snprintf(text, sizeof text,
             "before the start about %s were used and %s allocated: there were calls all the time "
             "while it was asked, and used, allocated and their peaks are off by as much",
             used, allocated);
  else if (baseline == PROF_I_BASELINE_PART)
    snprintf(text, sizeof text,
             "before the fork %s were used and %s allocated, as far as the parent had counted; "
             "what was there before it began is not known",
             used, allocated);
  else
    snprintf(text, sizeof text,
             "what was there before the start is not known: used and allocated count from 0");
  if (info->source == PROF_MEMORY_POOL && baseline != PROF_I_BASELINE_EMPTY) put_sentence(r, text);
  if (info->from_before_count) {
    prof_i_put_bytes(used, sizeof used, (int64_t)info->from_before_bytes);
    const bool is_one = info->from_before_count == 1;
    snprintf(text, sizeof text, "%" PRIu64 " free%s (%s) %s of what was there before the start",
             info->from_before_count, is_one ? "" : "s", used, is_one ? "was" : "were");
    put_sentence(r, text);
  }
  if (info->unsure_count) {
    prof_i_put_bytes(used, sizeof used, (int64_t)info->unsure_bytes);
    const bool is_one = info->unsure_count == 1;
    snprintf(text, sizeof text,
             "%" PRIu64
             " free%s (%s) %s whose alloc is not in the capture: lost, cleared, from before the "
             "start, or never made",
             info->unsure_count, is_one ? "" : "s", used,
             is_one ? "is of a piece" : "are of pieces");
    put_sentence(r, text);
  }
}

static void report_put_unknown(memory_report *r, uint32_t index) {
  const prof_memory_info *const info = report_pool_info(r, index);
  char text[SENTENCE_ROOM];
  prof_i_text_buffer_repeat(&r->page, '\n', 1);
  report_put_before(r, info, r->memory->trace->catalog.pools[index].baseline);
  if (info->source == PROF_MEMORY_POOL &&
      info->peak_used.used_bytes > (int64_t)info->peak_used.live_bytes)
    put_sentence(r,
                 "live pieces, requested and waste are of the pieces whose allocs are in the "
                 "capture, not of all that is used");
  if (info->source == PROF_MEMORY_POOL && pool_has_blocks(info) && !info->end.has_ranges &&
      !info->peak_used.has_ranges)
    put_sentence(r,
                 "what is free in the blocks, and how it is fragmented, is not known: not all "
                 "blocks are in the capture, or what is live does not lie in them");
  if (r->memory->trace->catalog.pools[index].state.reset_count)
    put_sentence(r, "peaks count from the last reset or clear; what is drawn before it is older");
  if (info->missing_count) {
    snprintf(text, sizeof text,
             "%s: %" PRIu64
             " events lost (overwritten, left out, or not finished); used, allocated and their "
             "peaks are right all the same",
             info->source == PROF_MEMORY_QUERY ? "samples incomplete" : "live set incomplete",
             info->missing_count);
    put_sentence(r, text);
  }
  if (info->alloc_count + info->free_count + info->reserve_count + info->release_count +
          info->sample_count ==
      0)
    return;
  if (!info->peak_used.is_exact)
    put_sentence(r,
                 "the event that made the peak of used is lost: its time is near, and what was "
                 "live then is of the records around it");
  if (!info->peak_allocated.is_exact)
    put_sentence(r, "the event that made the peak of allocated is lost: its time is near");
  if (info->refused_count) {
    snprintf(text, sizeof text,
             "%" PRIu64 " piece%s of 4 TiB and more, or beyond 6 TiB in all, %s left out",
             info->refused_count, info->refused_count == 1 ? "" : "s",
             info->refused_count == 1 ? "is" : "are");
    put_sentence(r, text);
  }
  if (info->unchecked_count) {
    snprintf(text, sizeof text, "%" PRIu64 " calls were not checked", info->unchecked_count);
    put_sentence(r, text);
  }
}

/* ---- pools, devices, sessions ---- */

/* Nobody told of a piece or a block, and nothing is missing: a plot would be its axes. */
static bool pool_is_empty(const prof_memory_info *info) {
  const uint64_t events = info->alloc_count + info->free_count + info->reserve_count +
                          info->release_count + info->sample_count + info->collection_count;
  const uint64_t others = info->oom_count + info->missing_count + info->refused_count +
                          info->unchecked_count + info->unsure_count + info->from_before_count;
  uint64_t wrong = 0;
  for (size_t i = 0; i < sizeof info->wrong_count / sizeof *info->wrong_count; i++)
    wrong += info->wrong_count[i];
  return !events && !others && !wrong && !info->peak_used.used_bytes &&
         !info->peak_allocated.allocated_bytes && !info->used_before_bytes &&
         !info->allocated_before_bytes;
}

static int report_put_pool(memory_report *r, uint32_t index) {
  const prof_memory_info *const info = report_pool_info(r, index);
  char device[CELL_ROOM], name[PROF_I_SANITIZED_NAME_BYTES],
      head[SENTENCE_ROOM + PROF_I_SANITIZED_NAME_BYTES];
  prof_i_put_device(device, sizeof device, info->device);
  prof_i_sanitize_name(name, info->name);
  snprintf(head, sizeof head, "Pool %u: %s on %s, %s, session %u", index + 1, name, device,
           source_text(info->source), info->session);
  prof_i_text_buffer_repeat(&r->page, '\n', 1);
  prof_i_text_buffer_wrap(&r->page, 0, r->width, head);
  prof_i_text_buffer_repeat(&r->page, '\n', 1);
  if (pool_is_empty(info)) {
    put_sentence(r, "nothing was handed out or taken back: no plot");
    return PROF_OK;
  }
  int status = prof_i_memory_plot(&r->page, r->memory, index, r->width, r->is_ascii);
  if (status) return status;
  put_moments(r, info);
  prof_i_text_buffer_repeat(&r->page, '\n', 1);
  report_put_counts(r, info);
  put_failures(r, index);
  put_raf_line(r, info);
  put_growth(r, info);
  status = put_live_sets(r, index);
  if (status) return status;
  report_put_wrong(r, index);
  report_put_unknown(r, index);
  return PROF_OK;
}

static bool is_same_device(const prof_memory_info *a, const prof_memory_info *b) {
  return a->device.type == b->device.type && a->device.index == b->device.index &&
         a->source == b->source && a->session == b->session;
}

/* Once a device: by its first pool of several. */
static int report_put_device(memory_report *r, uint32_t index) {
  const prof_memory_info *const first = report_pool_info(r, index);
  uint32_t count = 0;
  for (uint32_t i = 0; i < prof_memory_pool_count(r->memory); i++) {
    if (!is_same_device(first, report_pool_info(r, i))) continue;
    if (i < index) return PROF_OK;
    count++;
  }
  if (count < 2) return PROF_OK;
  prof_memory_info all = {.size = sizeof all};
  const int status =
      prof_memory_device_get(r->memory, first->device, (prof_memory_source)first->source, &all);
  if (status || pool_is_empty(&all)) return status;
  char device[CELL_ROOM], used[CELL_ROOM], used_time[CELL_ROOM], allocated[CELL_ROOM],
      allocated_time[CELL_ROOM], text[SENTENCE_ROOM];
  prof_i_put_device(device, sizeof device, first->device);
  prof_i_put_bytes(used, sizeof used, all.peak_used.used_bytes);
  prof_i_put_time(used_time, sizeof used_time, all.peak_used.ns, 0);
  prof_i_put_bytes(allocated, sizeof allocated, all.peak_allocated.allocated_bytes);
  prof_i_put_time(allocated_time, sizeof allocated_time, all.peak_allocated.ns, 0);
  snprintf(text, sizeof text,
           "Device %s, its %u pools together: peak of used %s (%" PRId64
           " bytes) at %s, peak of allocated %s (%" PRId64 " bytes) at %s",
           device, count, used, all.peak_used.used_bytes, used_time, allocated,
           all.peak_allocated.allocated_bytes, allocated_time);
  prof_i_text_buffer_repeat(&r->page, '\n', 1);
  prof_i_text_buffer_wrap(&r->page, 0, r->width, text);
  return PROF_OK;
}

/* Those that are not shown whole. */
static void put_table(memory_report *r, const unsigned char *is_shown, uint32_t last_session,
                      bool is_older, const char *title) {
  static const char *const titles[] = {"pool",    "name",         "device",
                                       "session", "peak of used", "peak of allocated"};
  prof_i_text_table grid = {.titles = titles, .column_count = 6, .text_columns = 1 << 1 | 1 << 2};
  for (uint32_t i = 0; i < prof_memory_pool_count(r->memory); i++) {
    const prof_memory_info *const info = report_pool_info(r, i);
    char device[CELL_ROOM];
    if (is_shown[i] || (info->session != last_session) != is_older) continue;
    prof_i_put_device(device, sizeof device, info->device);
    grid_add_count(&grid, i + 1);
    grid_add_name(&grid, info->name, "");
    prof_i_text_table_add(&grid, device);
    grid_add_count(&grid, info->session);
    grid_add_bytes(&grid, info->peak_used.used_bytes);
    grid_add_bytes(&grid, info->peak_allocated.allocated_bytes);
  }
  if (!grid.cells.count) return;
  prof_i_text_buffer_append_text(&r->page, title);
  prof_i_text_table_write(&r->page, &grid, TEXT_INDENT, r->width);
}

/* Of the last session, those that used most. */
static void choose_pools(const memory_report *r, uint32_t last_session, unsigned char *is_shown) {
  const uint32_t count = prof_memory_pool_count(r->memory);
  for (uint32_t shown = 0; shown < POOLS_SHOWN; shown++) {
    uint32_t best = count;
    for (uint32_t i = 0; i < count; i++)
      if (!is_shown[i] && report_pool_info(r, i)->session == last_session &&
          (best == count || report_pool_info(r, i)->peak_used.used_bytes >
                                report_pool_info(r, best)->peak_used.used_bytes))
        best = i;
    if (best < count) is_shown[best] = 1;
  }
}

static int report_put_pools(memory_report *r) {
  const uint32_t count = prof_memory_pool_count(r->memory);
  uint32_t last_session = 0;
  int status = PROF_OK;
  for (uint32_t i = 0; i < count; i++)
    if (report_pool_info(r, i)->session > last_session)
      last_session = report_pool_info(r, i)->session;
  unsigned char *const is_shown = calloc((size_t)count + 1, 1);
  if (!is_shown) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a report on %u pools", count);
  choose_pools(r, last_session, is_shown);
  for (uint32_t i = 0; !status && i < count; i++)
    if (is_shown[i]) status = report_put_pool(r, i);
  for (uint32_t i = 0; !status && i < count; i++)
    if (report_pool_info(r, i)->session == last_session) status = report_put_device(r, i);
  put_table(r, is_shown, last_session, false,
            "\nThe other pools, which used less (ask for a pool by its number to see more):\n");
  put_table(r, is_shown, last_session, true,
            "\nEarlier sessions (ask for a pool by its number to see more):\n");
  free(is_shown);
  return status;
}

static void report_put_head(memory_report *r) {
  char duration[CELL_ROOM];
  const char *const state = r->trace.is_live
                                ? (r->trace.was_clean ? "recording is stopped" : "it runs")
                            : r->trace.is_copy      ? "copied while it ran"
                            : r->trace.was_clean    ? "stopped"
                            : r->trace.is_elsewhere ? "it runs, or died"
                                                    : "ended without a stop";
  prof_i_put_time(duration, sizeof duration, r->trace.duration_ns, 0);
  prof_i_text_buffer_append_text(&r->page, "Memory of ");
  say_name(r, r->trace.process_name);
  prof_i_text_buffer_printf(&r->page, " (pid %u), %s, %s\n", r->trace.pid, duration, state);
  if (prof_memory_pool_count(r->memory)) return;
  prof_i_text_buffer_wrap(
      &r->page, 0, r->width,
      "The capture has no memory. A pool says its own with prof_pool_create() and "
      "prof_memory_alloc(), or PROFILE_MEMORY() asks what "
      "prof_memory_set_query() was given, while prof_start() or prof_memory_start() "
      "records: see <prof/memory.h>.");
}

static int check_arguments(const prof_memory *memory, const prof_memory_text_options *options) {
  const uint32_t count = prof_memory_pool_count(memory);
  if (options->width &&
      (options->width < PROF_I_PLOT_WIDTH_MIN || options->width > PROF_I_PLOT_WIDTH_MAX))
    return prof_i_fail(
        PROF_E_INVALID,
        "prof_memory_text_options.width is %u; %d to %d columns are possible, or 0 for %d",
        options->width, PROF_I_PLOT_WIDTH_MIN, PROF_I_PLOT_WIDTH_MAX, WIDTH_USUAL);
  if (options->ascii > 1)
    return prof_i_fail(PROF_E_INVALID, "prof_memory_text_options.ascii is %u, not 0 or 1",
                       options->ascii);
  if (options->pool > count)
    return prof_i_fail(PROF_E_NOT_FOUND, "there is no pool %u: the capture has %u", options->pool,
                       count);
  return PROF_OK;
}

int prof_memory_text(const prof_memory *memory, const prof_memory_text_options *options,
                     char **text_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  if (!memory || !text_out)
    return prof_i_fail(PROF_E_INVALID, "prof_memory_text: %s is NULL",
                       memory ? "text_out" : "memory");
  prof_memory_text_options checked = {.size = sizeof checked};
  int status =
      options ? prof_i_sized_copy(&checked, sizeof checked, options, "prof_memory_text_options")
              : PROF_OK;
  if (!status) status = check_arguments(memory, &checked);
  if (status) return status;
  memory_report r = {.memory = memory,
                     .trace = {.size = sizeof r.trace},
                     .width = checked.width ? checked.width : WIDTH_USUAL,
                     .rows_limit = checked.rows_limit ? checked.rows_limit : ROWS_USUAL,
                     .is_ascii = checked.ascii};
  prof_trace_info_get(memory->trace, &r.trace);
  report_put_head(&r);
  status = checked.pool ? report_put_pool(&r, checked.pool - 1) : report_put_pools(&r);
  if (!status && r.page.is_out_of_memory)
    status = prof_i_fail(PROF_E_NO_MEMORY, "no memory for a report of %zu bytes", r.page.count);
  if (status)
    free(r.page.text);
  else
    *text_out = r.page.text;
  return status;
}
