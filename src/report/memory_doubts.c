/* What the memory report says against its own figures: wrong calls, and what is unknown. */
#include <inttypes.h>
#include <stdio.h>

#include "../base/units.h"
#include "../reader/capture.h"
#include "memory_text.h"

/* singular, plural, in a table */
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
  prof_i_grid_add_name(grid, text, "");
}

static void put_examples(prof_i_memory_report *r, uint32_t index) {
  static const char *const titles[] = {"wrong", "time", "address", "bytes", "scope", "thread"};
  prof_i_text_table grid = {
      .titles = titles, .column_count = 6, .text_columns = 1 | 1 << 4 | 1 << 5};
  const prof_i_memory_pool *const pool = &r->memory->pools[index];
  for (uint32_t i = 0; i < pool->example_count; i++) {
    const prof_memory_example *const example = &pool->examples[i];
    char address[PROF_I_CELL_ROOM];
    snprintf(address, sizeof address, "0x%" PRIx64, example->address);
    prof_i_text_table_add(&grid, wrong_texts[example->wrong][2]);
    prof_i_grid_add_time(&grid, example->ns);
    prof_i_text_table_add(&grid, address);
    prof_i_grid_add_count(&grid, example->bytes);
    prof_i_grid_add_name(&grid, example->scope, prof_i_unnamed_key_text(PROF_MEMORY_BY_SCOPE));
    grid_add_thread(&grid, r->memory->trace, example->thread);
  }
  prof_i_text_table_write(&r->page, &grid, PROF_I_REPORT_INDENT, r->width);
}

/* An unchecked pool counts wrong calls. Its figures without them are known if nothing is
   missing. */
static void put_without_wrong(prof_i_memory_report *r, uint32_t index) {
  const prof_i_memory_pool *const pool = &r->memory->pools[index];
  if (pool->info.missing_count || !pool->is_begin_known ||
      pool->info.end.used_bytes == pool->replayed_end)
    return;
  char text[PROF_I_SENTENCE_ROOM], peak[PROF_I_CELL_ROOM], end[PROF_I_CELL_ROOM];
  prof_i_put_bytes(peak, sizeof peak, pool->replayed_peak);
  prof_i_put_bytes(end, sizeof end, pool->replayed_end);
  snprintf(text, sizeof text,
           "they stand in used and its peak, by the pool's own count; without them the peak of "
           "used is %s (%" PRId64
           " bytes), and %s are used at the end. A checked pool leaves them out",
           peak, pool->replayed_peak, end);
  prof_i_report_put_sentence(r, text);
}

void prof_i_report_put_wrong(prof_i_memory_report *r, uint32_t index) {
  const prof_memory_info *const info = prof_i_report_pool_info(r, index);
  char text[PROF_I_SENTENCE_ROOM] = "";
  uint64_t all = 0;
  for (uint32_t i = 0; i < PROF_MEMORY_WRONG_COUNT; i++) {
    if (info->wrong_count[i])
      prof_i_text_add_part(text, sizeof text, info->wrong_count[i], wrong_texts[i][0],
                           wrong_texts[i][1]);
    all += info->wrong_count[i];
  }
  if (!all) return;
  const uint32_t shown = r->memory->pools[index].example_count;
  char sentence[PROF_I_SENTENCE_ROOM + 64];
  snprintf(sentence, sizeof sentence, "Wrong calls: %s%s", text,
           shown < all ? "; the first ones:" : ":");
  prof_i_text_buffer_repeat(&r->page, '\n', 1);
  prof_i_report_put_sentence(r, sentence);
  if (shown) put_examples(r, index);
  put_without_wrong(r, index);
}

static void report_put_before(prof_i_memory_report *r, const prof_memory_info *info,
                              uint32_t baseline) {
  char text[PROF_I_SENTENCE_ROOM], used[PROF_I_CELL_ROOM], allocated[PROF_I_CELL_ROOM];
  prof_i_put_bytes(used, sizeof used, (int64_t)info->used_before_bytes);
  prof_i_put_bytes(allocated, sizeof allocated, (int64_t)info->allocated_before_bytes);
  if (info->has_baseline)
    snprintf(text, sizeof text, "before the start %s were used and %s allocated", used, allocated);
  else if (baseline == PROF_I_BASELINE_NEAR)
    snprintf(text, sizeof text,
             "before the start about %s were used and %s allocated. There were calls all the time "
             "while it was asked: used, allocated and their peaks are off by as much",
             used, allocated);
  else if (baseline == PROF_I_BASELINE_PART)
    snprintf(text, sizeof text,
             "before the fork %s were used and %s allocated, as far as the parent had counted; "
             "what the process had before counting began is not known",
             used, allocated);
  else
    snprintf(text, sizeof text,
             "what the process had before the start is not known: used and allocated count from 0");
  if (info->source == PROF_MEMORY_POOL && baseline != PROF_I_BASELINE_EMPTY)
    prof_i_report_put_sentence(r, text);
  if (info->from_before_count) {
    prof_i_put_bytes(used, sizeof used, (int64_t)info->from_before_bytes);
    const bool is_one = info->from_before_count == 1;
    snprintf(text, sizeof text, "%" PRIu64 " free%s (%s) %s of memory from before the start",
             info->from_before_count, is_one ? "" : "s", used, is_one ? "was" : "were");
    prof_i_report_put_sentence(r, text);
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
    prof_i_report_put_sentence(r, text);
  }
}

void prof_i_report_put_unknown(prof_i_memory_report *r, uint32_t index) {
  const prof_memory_info *const info = prof_i_report_pool_info(r, index);
  char text[PROF_I_SENTENCE_ROOM];
  prof_i_text_buffer_repeat(&r->page, '\n', 1);
  report_put_before(r, info, r->memory->trace->catalog.pools[index].baseline);
  if (info->source == PROF_MEMORY_POOL &&
      info->peak_used.used_bytes > (int64_t)info->peak_used.live_bytes)
    prof_i_report_put_sentence(
        r,
        "live pieces, requested and waste are of the pieces whose allocs are in the "
        "capture, not of all that is used");
  if (info->source == PROF_MEMORY_POOL && prof_i_pool_has_blocks(info) && !info->end.has_ranges &&
      !info->peak_used.has_ranges)
    prof_i_report_put_sentence(
        r,
        "what is free in the blocks, and how it is fragmented, is not known: not all "
        "blocks are in the capture, or what is live does not lie in them");
  if (r->memory->trace->catalog.pools[index].state.reset_count)
    prof_i_report_put_sentence(
        r, "peaks count from the last reset or clear; what is drawn before it is older");
  if (info->missing_count) {
    snprintf(text, sizeof text,
             "%s: %" PRIu64
             " events lost (overwritten, left out, or not finished); used, allocated and their "
             "peaks are right all the same",
             info->source == PROF_MEMORY_QUERY ? "samples incomplete" : "live set incomplete",
             info->missing_count);
    prof_i_report_put_sentence(r, text);
  }
  if (info->alloc_count + info->free_count + info->reserve_count + info->release_count +
          info->sample_count ==
      0)
    return;
  if (!info->peak_used.is_exact)
    prof_i_report_put_sentence(
        r,
        "the event that made the peak of used is lost: its time is near, and what was "
        "live then is of the records around it");
  if (!info->peak_allocated.is_exact)
    prof_i_report_put_sentence(
        r, "the event that made the peak of allocated is lost: its time is near");
  if (info->refused_count) {
    snprintf(text, sizeof text,
             "%" PRIu64 " piece%s of 4 TiB and more, or beyond 6 TiB in all, %s left out",
             info->refused_count, info->refused_count == 1 ? "" : "s",
             info->refused_count == 1 ? "is" : "are");
    prof_i_report_put_sentence(r, text);
  }
  if (info->unchecked_count) {
    snprintf(text, sizeof text, "%" PRIu64 " calls were not checked", info->unchecked_count);
    prof_i_report_put_sentence(r, text);
  }
}
