/* The memory report, for people. Each pool of the last session has its plot, its state at the
   peaks, what was live, wrong calls and what is unknown. Pools of earlier sessions have a line
   each. Also writes RAF's list of samples. */
#include "memory_text.h"

#include <inttypes.h>
#include <prof/memory.h>
#include <stdio.h>
#include <stdlib.h>

#include "../analysis/memory.h"
#include "../base/display.h"
#include "../base/error.h"
#include "../base/options.h"
#include "../base/port.h"
#include "../base/process.h"
#include "../reader/capture.h"
#include "internal.h"

/* ---- doubts ---- */

/* What the memory report says against its own figures: wrong calls, and what is unknown. */

/* singular, plural, in a table */
static const char *const wrong_texts[PROF_MEMORY_WRONG_COUNT][3] = {
    {"free of what is not live", "frees of what is not live", "not live"},
    {"double free", "double frees", "double free"},
    {"alloc over what is live", "allocs over what is live", "overlap"},
    {"free of another pool's piece", "frees of another pool's pieces", "other pool"},
    {"free with other bytes", "frees with other bytes", "other bytes"}};

static void table_add_thread(prof_i_text_table *table, const prof_trace *trace, uint32_t index) {
  prof_trace_thread thread = {.size = sizeof thread};
  char text[96];
  prof_trace_thread_get(trace, index, &thread);
  snprintf(text, sizeof text, "%s (%" PRIu64 ")", thread.name, thread.tid);
  prof_i_text_table_add_name(table, text, "");
}

static void put_examples(prof_i_memory_report *r, uint32_t index) {
  static const char *const titles[] = {"wrong", "time", "address", "bytes", "scope", "thread"};
  prof_i_text_table table = {
      .titles = titles, .column_count = 6, .text_columns = 1 | 1 << 4 | 1 << 5};
  const prof_i_memory_pool *const pool = &r->memory->pools[index];
  for (uint32_t i = 0; i < pool->example_count; i++) {
    const prof_memory_example *const example = &pool->examples[i];
    char address[PROF_I_CELL_ROOM];
    snprintf(address, sizeof address, "0x%" PRIx64, example->address);
    prof_i_text_table_add(&table, wrong_texts[example->wrong][2]);
    prof_i_text_table_add_time(&table, example->ns);
    prof_i_text_table_add(&table, address);
    prof_i_text_table_add_count(&table, example->bytes);
    prof_i_text_table_add_name(&table, example->scope,
                               prof_i_unnamed_key_text(PROF_MEMORY_BY_SCOPE));
    table_add_thread(&table, r->memory->trace, example->thread);
  }
  prof_i_text_table_write(&r->page, &table, PROF_I_REPORT_INDENT, r->width);
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

/* Wrong calls, and those of them that the capture has as examples. */
static void report_put_wrong(prof_i_memory_report *r, uint32_t index) {
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

/* What the capture does not know of the pool. */
static void report_put_unknown(prof_i_memory_report *r, uint32_t index) {
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

enum { WIDTH_USUAL = 80, ROWS_USUAL = 10, POOLS_SHOWN = 16 };

static const char *source_text(uint32_t source) {
  return source == PROF_MEMORY_QUERY ? "asked by PROFILE_MEMORY()" : "exact, piece by piece";
}

/* Whether nothing was reported and nothing is missing: a plot would be empty. */
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

static int report_put_pool(prof_i_memory_report *r, uint32_t index) {
  const prof_memory_info *const info = prof_i_report_pool_info(r, index);
  char device[PROF_I_CELL_ROOM], name[PROF_I_SANITIZED_NAME_BYTES],
      head[PROF_I_SENTENCE_ROOM + PROF_I_SANITIZED_NAME_BYTES];
  prof_i_put_device(device, sizeof device, info->device);
  prof_i_sanitize_name(name, info->name);
  snprintf(head, sizeof head, "Pool %u: %s on %s, %s, session %u", index + 1, name, device,
           source_text(info->source), info->session);
  prof_i_text_buffer_repeat(&r->page, '\n', 1);
  prof_i_text_buffer_wrap(&r->page, 0, r->width, head);
  prof_i_text_buffer_repeat(&r->page, '\n', 1);
  if (pool_is_empty(info)) {
    prof_i_report_put_sentence(r, "nothing was handed out or taken back: no plot");
    return PROF_OK;
  }
  int status = prof_i_memory_plot(&r->page, r->memory, index, r->width, r->is_ascii);
  if (status) return status;
  prof_i_report_put_moments(r, info);
  prof_i_text_buffer_repeat(&r->page, '\n', 1);
  prof_i_report_put_counts(r, index);
  status = prof_i_report_put_live_sets(r, index);
  if (status) return status;
  report_put_wrong(r, index);
  report_put_unknown(r, index);
  return PROF_OK;
}

static bool is_same_device(const prof_memory_info *a, const prof_memory_info *b) {
  return prof_i_is_same_device(a->device, b->device) && a->source == b->source &&
         a->session == b->session;
}

/* Writes the sum of a device that has several pools, for the first of them. */
static int report_put_device(prof_i_memory_report *r, uint32_t index) {
  const prof_memory_info *const first = prof_i_report_pool_info(r, index);
  uint32_t count = 0;
  for (uint32_t i = 0; i < prof_memory_pool_count(r->memory); i++) {
    if (!is_same_device(first, prof_i_report_pool_info(r, i))) continue;
    if (i < index) return PROF_OK;
    count++;
  }
  if (count < 2) return PROF_OK;
  prof_memory_info all = {.size = sizeof all};
  const int status =
      prof_memory_device_get(r->memory, first->device, (prof_memory_source)first->source, &all);
  if (status || pool_is_empty(&all)) return status;
  char device[PROF_I_CELL_ROOM], used[PROF_I_CELL_ROOM], used_time[PROF_I_CELL_ROOM],
      allocated[PROF_I_CELL_ROOM], allocated_time[PROF_I_CELL_ROOM], text[PROF_I_SENTENCE_ROOM];
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

/* Pools that have no section of their own. */
static void put_table(prof_i_memory_report *r, const unsigned char *is_shown, uint32_t last_session,
                      bool is_older, const char *title) {
  static const char *const titles[] = {"pool",    "name",         "device",
                                       "session", "peak of used", "peak of allocated"};
  prof_i_text_table table = {.titles = titles, .column_count = 6, .text_columns = 1 << 1 | 1 << 2};
  for (uint32_t i = 0; i < prof_memory_pool_count(r->memory); i++) {
    const prof_memory_info *const info = prof_i_report_pool_info(r, i);
    char device[PROF_I_CELL_ROOM];
    if (is_shown[i] || (info->session != last_session) != is_older ||
        !prof_i_memory_filter_takes_pool(r->memory, i))
      continue;
    prof_i_put_device(device, sizeof device, info->device);
    prof_i_text_table_add_count(&table, i + 1);
    prof_i_text_table_add_name(&table, info->name, "");
    prof_i_text_table_add(&table, device);
    prof_i_text_table_add_count(&table, info->session);
    prof_i_text_table_add_bytes(&table, info->peak_used.used_bytes);
    prof_i_text_table_add_bytes(&table, info->peak_allocated.allocated_bytes);
  }
  if (!table.cells.count) return;
  prof_i_text_buffer_append_text(&r->page, title);
  prof_i_text_table_write(&r->page, &table, PROF_I_REPORT_INDENT, r->width);
}

/* Chooses the pools of the last session with the highest peaks. */
static void choose_pools(const prof_i_memory_report *r, uint32_t last_session,
                         unsigned char *is_shown) {
  const uint32_t count = prof_memory_pool_count(r->memory);
  for (uint32_t shown = 0; shown < POOLS_SHOWN; shown++) {
    uint32_t best = count;
    for (uint32_t i = 0; i < count; i++)
      if (!is_shown[i] && prof_i_memory_filter_takes_pool(r->memory, i) &&
          prof_i_report_pool_info(r, i)->session == last_session &&
          (best == count || prof_i_report_pool_info(r, i)->peak_used.used_bytes >
                                prof_i_report_pool_info(r, best)->peak_used.used_bytes))
        best = i;
    if (best < count) is_shown[best] = 1;
  }
}

static int report_put_pools(prof_i_memory_report *r) {
  const uint32_t count = prof_memory_pool_count(r->memory);
  uint32_t last_session = 0;
  int status = PROF_OK;
  for (uint32_t i = 0; i < count; i++)
    if (prof_i_report_pool_info(r, i)->session > last_session)
      last_session = prof_i_report_pool_info(r, i)->session;
  unsigned char *const is_shown = calloc((size_t)count + 1, 1);
  if (!is_shown) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a report on %u pools", count);
  choose_pools(r, last_session, is_shown);
  for (uint32_t i = 0; !status && i < count; i++)
    if (is_shown[i]) status = report_put_pool(r, i);
  for (uint32_t i = 0; !status && i < count; i++)
    if (prof_i_report_pool_info(r, i)->session == last_session &&
        prof_i_memory_filter_takes_pool(r->memory, i))
      status = report_put_device(r, i);
  put_table(r, is_shown, last_session, false,
            "\nThe other pools, which used less (ask for a pool by its number to see more):\n");
  put_table(r, is_shown, last_session, true,
            "\nEarlier sessions (ask for a pool by its number to see more):\n");
  free(is_shown);
  return status;
}

static void say_name(prof_i_memory_report *r, const char *name) {
  char shown[PROF_I_SANITIZED_NAME_BYTES];
  prof_i_sanitize_name(shown, name);
  prof_i_text_buffer_append_text(&r->page, shown);
}

static void report_put_head(prof_i_memory_report *r) {
  char duration[PROF_I_CELL_ROOM];
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
  if (r->memory->filter)
    prof_i_text_buffer_wrap(
        &r->page, 0, r->width,
        "Filtered: the tables of live memory have only the allocations that pass. "
        "Plots, peaks and counts include all.");
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

int prof_i_memory_text(const prof_memory *memory, const prof_memory_text_options *options,
                       char **text_out, uint64_t *live_count_out) {
  prof_memory_text_options checked = {.size = sizeof checked};
  int status =
      options ? prof_i_sized_copy(&checked, sizeof checked, options, "prof_memory_text_options")
              : PROF_OK;
  if (!status) status = check_arguments(memory, &checked);
  if (status) return status;
  prof_i_memory_report r = {.memory = memory,
                            .trace = {.size = sizeof r.trace},
                            .width = checked.width ? checked.width : WIDTH_USUAL,
                            .rows_limit = checked.rows_limit ? checked.rows_limit : ROWS_USUAL,
                            .is_ascii = checked.ascii};
  prof_trace_info_get(memory->trace, &r.trace);
  report_put_head(&r);
  if (!checked.pool)
    status = report_put_pools(&r);
  else if (prof_i_memory_filter_takes_pool(memory, checked.pool - 1))
    status = report_put_pool(&r, checked.pool - 1);
  if (!status && r.page.is_out_of_memory)
    status = prof_i_fail(PROF_E_NO_MEMORY, "no memory for a report of %zu bytes", r.page.count);
  if (status)
    free(r.page.text);
  else
    *text_out = r.page.text;
  *live_count_out = r.live_count;
  return status;
}

int prof_memory_text(const prof_memory *memory, const prof_memory_text_options *options,
                     char **text_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  uint64_t live_count;
  if (!memory || !text_out)
    return prof_i_fail(PROF_E_INVALID, "prof_memory_text: %s is NULL",
                       memory ? "text_out" : "memory");
  return prof_i_memory_text(memory, options, text_out, &live_count);
}

/* ---- samples ---- */

/* RAF's get_memory_trace: what a device's query answered since the last reset, a sample a line. */

static bool pool_is_of_device(const prof_i_pool_record *pool, prof_device device) {
  return pool->kind == PROF_MEMORY_QUERY && prof_i_is_same_device(pool->device, device);
}

static void add_sample_tag(prof_i_text_table *table, const prof_trace *trace, uint32_t tag) {
  char raw[PROF_I_NAME_BYTES], cell[PROF_I_SANITIZED_NAME_BYTES];
  const prof_i_text name =
      tag ? prof_i_catalog_site(&trace->catalog, tag)->name : (prof_i_text){"-", 1};
  snprintf(raw, sizeof raw, "%.*s", (int)(name.bytes < sizeof raw ? name.bytes : sizeof raw),
           name.data);
  prof_i_sanitize_name(cell, raw);
  prof_i_text_table_add(table, cell);
}

static void table_add_mb(prof_i_text_table *table, int64_t bytes) {
  char cell[64];
  prof_i_put_mb(cell, sizeof cell, bytes);
  prof_i_text_table_add(table, cell);
}

/* Returns how many. */
static uint64_t add_samples(prof_i_text_table *table, const prof_memory *memory,
                            prof_device device) {
  const prof_trace *const trace = memory->trace;
  const uint64_t reset_ticks = trace->header.memory_reset_ticks;
  const uint64_t from_ns = reset_ticks ? prof_i_memory_ns(memory, reset_ticks) : 0;
  uint64_t number = 0;
  for (uint32_t i = 0; i < memory->item_count; i++) {
    const prof_i_memory_item *const item = &memory->items[memory->order[i]];
    const prof_i_memory_record record = prof_i_memory_item_read(item);
    const prof_i_pool_record *const pool = record.verb == PROF_I_VERB_SAMPLE
                                               ? prof_i_catalog_pool(&trace->catalog, record.pool)
                                               : NULL;
    if (!pool || !pool_is_of_device(pool, device) || item->ns < from_ns) continue;
    char cell[32];
    snprintf(cell, sizeof cell, "%" PRIu64, number++);
    prof_i_text_table_add(table, cell);
    add_sample_tag(table, trace, record.tag);
    table_add_mb(table, (int64_t)record.bytes);
    table_add_mb(table, (int64_t)(record.allocated - PROF_I_USED_ZERO));
  }
  return number;
}

int prof_memory_trace_text(const prof_trace *trace, prof_device device, char **text_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  static const char *const titles[] = {"#Trace", "#Tag", "used", "alloc"};
  if (!trace || !text_out)
    return prof_i_fail(PROF_E_INVALID, "prof_memory_trace_text: %s is NULL",
                       trace ? "text_out" : "trace");
  if (device.type == 0) device = PROF_HOST;
  bool is_known = false;
  for (uint32_t i = 0; i < trace->catalog.pool_count; i++)
    is_known |= pool_is_of_device(&trace->catalog.pools[i], device);
  if (!is_known)
    return prof_i_fail(PROF_E_NOT_FOUND,
                       "nothing was asked of device %d:%d: set prof_memory_set_query(), and let "
                       "PROFILE_MEMORY() run while memory is recorded",
                       device.type, device.index);
  prof_memory *memory;
  const int status = prof_i_memory_order(trace, 0, &memory);
  if (status) return status;
  prof_i_text_table table = {.titles = titles,
                             .column_count = 4,
                             .text_columns = 1 << 1,
                             .has_no_rule = true,
                             .has_tabs = true};
  prof_i_text_buffer page = {0};
  const bool is_empty = add_samples(&table, memory, device) == 0;
  prof_i_memory_destroy(memory);
  /* RAF's words, letter for letter: scripts skip them, or look for them. */
  prof_i_text_buffer_append_text(&page, is_empty ? "" : "Numbers are the in MBs.\n");
  if (!is_empty) prof_i_text_table_write(&page, &table, 0, SIZE_MAX);
  if (!page.is_out_of_memory) {
    *text_out = page.text;
    return PROF_OK;
  }
  free(page.text);
  return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a text of %zu bytes", page.count);
}
