/* RAF's get_memory_trace: what a device's query answered since the last reset, a sample a line. */
#include <inttypes.h>
#include <prof/memory.h>
#include <stdio.h>
#include <stdlib.h>

#include "../analysis/memory.h"
#include "../base/display.h"
#include "../base/log.h"
#include "../base/port.h"
#include "../base/process.h"

static bool pool_is_of_device(const prof_i_pool_record *pool, prof_device device) {
  return pool->kind == PROF_MEMORY_QUERY && pool->device.type == device.type &&
         pool->device.index == device.index;
}

static void add_tag(prof_i_text_table *grid, const prof_trace *trace, uint32_t tag) {
  char raw[PROF_I_NAME_BYTES], cell[PROF_I_SANITIZED_NAME_BYTES];
  const prof_i_text name =
      tag ? prof_i_catalog_site(&trace->catalog, tag)->name : (prof_i_text){"-", 1};
  snprintf(raw, sizeof raw, "%.*s", (int)(name.bytes < sizeof raw ? name.bytes : sizeof raw),
           name.data);
  prof_i_sanitize_name(cell, raw);
  prof_i_text_table_add(grid, cell);
}

static void add_mb(prof_i_text_table *grid, int64_t bytes) {
  char cell[64];
  prof_i_put_mb(cell, sizeof cell, bytes);
  prof_i_text_table_add(grid, cell);
}

/* How many. */
static uint64_t add_samples(prof_i_text_table *grid, const prof_memory *memory,
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
    prof_i_text_table_add(grid, cell);
    add_tag(grid, trace, record.tag);
    add_mb(grid, (int64_t)record.bytes);
    add_mb(grid, (int64_t)(record.allocated - PROF_I_USED_ZERO));
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
  prof_i_text_table grid = {.titles = titles,
                            .column_count = 4,
                            .text_columns = 1 << 1,
                            .has_no_rule = true,
                            .has_tabs = true};
  prof_i_text_buffer page = {0};
  const bool is_empty = add_samples(&grid, memory, device) == 0;
  prof_i_memory_destroy(memory);
  /* RAF's words, letter for letter: scripts skip them, or look for them. */
  prof_i_text_buffer_append_text(&page, is_empty ? "" : "Numbers are the in MBs.\n");
  if (!is_empty) prof_i_text_table_write(&page, &grid, 0, SIZE_MAX);
  if (!page.is_out_of_memory) {
    *text_out = page.text;
    return PROF_OK;
  }
  free(page.text);
  return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a text of %zu bytes", page.count);
}
