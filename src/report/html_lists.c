/* The table's rows, flame graphs, pools and devices of an HTML report: see html_data.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../analysis/internal.h"
#include "../analysis/paths.h"
#include "../base/display.h"
#include "../base/error.h"
#include "../reader/internal.h"
#include "html_data.h"
#include "internal.h"
#include "table_columns.h"

typedef prof_i_html_json json_text;

enum { PLACE_ROOM = 256 };

static void put_u64(const json_text *json, uint64_t value) {
  prof_i_sink_text(json->sink, ",");
  prof_i_sink_u64(json->sink, value);
}

static void put_i64(const json_text *json, int64_t value) {
  prof_i_sink_text(json->sink, ",");
  prof_i_sink_i64(json->sink, value);
}

static void put_string(const json_text *json, const char *text) {
  prof_i_html_put_text(json, text, strlen(text));
}

/* ---- the table ---- */

/* "work.c:12" */
static void put_place(const json_text *json, const prof_row_more *more) {
  char text[PLACE_ROOM] = "";
  const char *const slash = strrchr(more->file, '/');
  if (more->file[0])
    snprintf(text, sizeof text, "%s:%u%s", slash ? slash + 1 : more->file, more->line,
             more->has_more_places ? ", ..." : "");
  prof_i_sink_text(json->sink, ",");
  put_string(json, text);
}

/* The value of a key; without that key, an empty text. */
static void put_key(const json_text *json, const prof_i_table *table, const prof_row *row,
                    uint32_t key) {
  const prof_i_html_options *const options = json->html->options;
  char place[PLACE_ROOM + 16] = "";
  table_value value = {.kind = TABLE_VALUE_NONE};
  if (key < options->key_count)
    prof_i_table_value(table, row, prof_i_table_group_column(options->keys[key]), &value);
  if (value.kind == TABLE_VALUE_PLACE)
    snprintf(place, sizeof place, "%.*s:%u", PLACE_ROOM, value.text, (unsigned)value.number);
  else if (value.kind == TABLE_VALUE_COUNT)
    snprintf(place, sizeof place, "%u", (unsigned)value.number);
  put_string(json, value.kind == TABLE_VALUE_TEXT ? value.text : place);
}

/* [bucket, calls, bucket, calls, ...] */
static void put_durations(const json_text *json, const prof_rows *rows, uint64_t index) {
  size_t count;
  const prof_i_duration_calls *const durations = prof_i_rows_durations(rows, index, &count);
  prof_i_sink_text(json->sink, ",[");
  for (size_t i = 0; i < count; i++) {
    if (i) prof_i_sink_text(json->sink, ",");
    prof_i_sink_u64(json->sink, durations[i].bucket);
    put_u64(json, durations[i].calls);
  }
  prof_i_sink_text(json->sink, "]");
}

/* In the order of the columns of report.js: two keys, numbers, the place, durations, and the keys
   behind the second. */
static void put_row(const json_text *json, const prof_i_table *table, uint64_t index) {
  const prof_rows *const rows = table->rows;
  const prof_row *const row = &rows->rows[index];
  prof_row_more more = {.size = sizeof more};
  prof_rows_more(rows, index, &more);
  prof_i_sink_text(json->sink, index ? ",[" : "[");
  put_key(json, table, row, 0);
  prof_i_sink_text(json->sink, ",");
  put_key(json, table, row, 1);
  put_u64(json, row->calls_count);
  put_u64(json, row->total_ns);
  put_u64(json, row->self_ns);
  put_u64(json, row->calls_count ? more.calls_ns / row->calls_count : 0);
  put_u64(json, row->min_ns);
  put_u64(json, row->median_ns);
  put_u64(json, row->p99_ns);
  put_u64(json, row->max_ns);
  put_u64(json, more.open_count);
  put_u64(json, row->device_total_ns);
  put_u64(json, row->self_device_ns);
  put_i64(json, row->memory_bytes);
  put_i64(json, row->device_memory_bytes);
  put_place(json, &more);
  put_durations(json, rows, index);
  for (uint32_t key = 2; key < json->html->options->key_count; key++) {
    prof_i_sink_text(json->sink, ",");
    put_key(json, table, row, key);
  }
  prof_i_sink_text(json->sink, "]");
}

/* The titles of the keys. */
static void put_titles(const json_text *json) {
  const prof_i_html_options *const options = json->html->options;
  prof_i_sink_key(json->sink, "keys");
  prof_i_sink_text(json->sink, "[");
  for (uint32_t i = 0; i < options->key_count; i++) {
    if (i) prof_i_sink_text(json->sink, ",");
    put_string(json, prof_i_table_group_title(options->keys[i], options->arg_key));
  }
  prof_i_sink_text(json->sink, "]");
}

void prof_i_html_put_rows(const json_text *json, const prof_rows *rows) {
  const prof_i_table table = {
      .traces = json->html->traces, .trace_count = json->html->trace_count, .rows = rows};
  put_titles(json);
  prof_i_sink_key(json->sink, "rows");
  prof_i_sink_text(json->sink, "[");
  for (uint64_t i = 0; i < rows->row_count; i++) put_row(json, &table, i);
  prof_i_sink_text(json->sink, "]");
  prof_i_sink_key_u64(json->sink, "all_rows", rows->all_row_count);
  prof_i_sink_key_u64(json->sink, "self_ns", rows->all_self_ns);
}

/* ---- flame graphs ---- */

/* All kinds of graphs of the same paths. */
typedef struct flame_data {
  const json_text *json;
  const prof_i_paths *paths;
  prof_i_flame_options options; /* kind: of the current graph */
  prof_i_flame_sums *sums;
  uint32_t *numbers; /* of paths, among those that are drawn, from 1; 0: not drawn */
  bool *is_row_drawn;
} flame_data;

static const char *const flame_names[] = {"host", "device", "memory"};

static double flame_total(const flame_data *f, uint32_t path) {
  return f->sums[path].total[PROF_I_SIDE_NEW];
}

static uint32_t count_above(const flame_data *f, double least) {
  uint32_t above = 0;
  for (uint32_t i = 0; i < f->paths->count; i++)
    above += flame_total(f, i) > 0 && flame_total(f, i) >= least;
  return above;
}

/* Paths with more than `least` are drawn, and the first tie_count paths with exactly `least`. */
typedef struct flame_bound {
  double least;
  uint32_t tie_count;
} flame_bound;

/* Searches `least` with full precision, because many paths may have the same value. */
static flame_bound find_bound(const flame_data *f) {
  double low = flame_total(f, 0) / 1e12, high = 2 * flame_total(f, 0);
  if (count_above(f, low) <= PROF_I_HTML_PATHS_MAX) return (flame_bound){low, UINT32_MAX};
  for (;;) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    if (count_above(f, middle) > PROF_I_HTML_PATHS_MAX)
      low = middle;
    else
      high = middle;
  }
  return (flame_bound){low, PROF_I_HTML_PATHS_MAX - count_above(f, high)};
}

static bool is_path_drawn(flame_bound *bound, double total) {
  if (total <= 0 || total < bound->least) return false;
  if (total > bound->least) return true;
  if (bound->tie_count == 0) return false;
  bound->tie_count--;
  return true;
}

static void put_rounded(const json_text *json, double value) {
  put_u64(json, (uint64_t)(value + 0.5));
}

/* A mean has a digit behind the point. */
static void put_calls(const flame_data *f, uint64_t calls) {
  const double tenths = (double)calls * 10 / f->options.runs_count[PROF_I_SIDE_NEW];
  prof_i_sink_text(f->json->sink, ",");
  prof_i_sink_double(f->json->sink, (double)(uint64_t)(tenths + 0.5) / 10);
}

/* [parent, row, calls, total, own], and of a difference the total and own of the base. */
static void put_path(const flame_data *f, uint32_t index) {
  const prof_i_path *const path = &f->paths->items[index];
  const prof_i_flame_sums *const sums = &f->sums[index];
  prof_i_sink_text(f->json->sink, index ? ",[" : "[");
  prof_i_sink_u64(f->json->sink, f->numbers[path->parent] - 1);
  put_u64(f->json, path->row);
  put_calls(f, path->sums[PROF_I_SIDE_NEW].calls_count);
  for (uint32_t side = PROF_I_SIDES; side-- > (f->options.is_difference ? 0 : PROF_I_SIDE_NEW);) {
    put_rounded(f->json, sums->total[side]);
    put_rounded(f->json, sums->own[side]);
  }
  prof_i_sink_text(f->json->sink, "]");
}

/* The first path is the root. False: no path has a value. */
static bool put_flame(const flame_data *f, const char *before) {
  const double change_max = prof_i_flame_sum(f->paths, &f->options, f->sums);
  uint32_t number = 0, left_out = 0, gone = 0;
  memset(f->numbers, 0, f->paths->count * sizeof *f->numbers);
  if (!f->paths->count || flame_total(f, 0) <= f->sums[0].own[PROF_I_SIDE_NEW]) return false;
  flame_bound bound = find_bound(f);
  prof_i_sink_text(f->json->sink, before);
  prof_i_sink_text(f->json->sink, "{\"kind\":\"");
  prof_i_sink_text(f->json->sink, flame_names[f->options.kind]);
  prof_i_sink_text(f->json->sink, "\",\"paths\":[");
  for (uint32_t i = 0; i < f->paths->count; i++) {
    gone += flame_total(f, i) <= 0 && f->sums[i].total[PROF_I_SIDE_BASE] > 0;
    if (!is_path_drawn(&bound, flame_total(f, i))) {
      left_out += flame_total(f, i) > 0;
      continue;
    }
    f->numbers[i] = ++number;
    if (i) f->is_row_drawn[f->paths->items[i].row] = true;
    put_path(f, i);
  }
  prof_i_sink_text(f->json->sink, "]");
  prof_i_sink_key_u64(f->json->sink, "left_out", left_out);
  if (f->options.is_difference) {
    prof_i_sink_key_u64(f->json->sink, "gone", gone);
    prof_i_sink_key_u64(f->json->sink, "change_max", (uint64_t)(change_max + 0.5));
  }
  prof_i_sink_text(f->json->sink, "}");
  return true;
}

/* By row; "" if no path of it is drawn. */
static void put_path_names(const flame_data *f) {
  prof_i_sink_key(f->json->sink, "path_names");
  prof_i_sink_text(f->json->sink, "[");
  for (uint32_t i = 0; i < f->paths->row_count; i++) {
    if (i) prof_i_sink_text(f->json->sink, ",");
    put_string(f->json, f->is_row_drawn[i] ? f->paths->rows[i].name : "");
  }
  prof_i_sink_text(f->json->sink, "]");
}

static int put_paths(const json_text *json, const prof_i_paths *paths) {
  const prof_i_html_difference *const difference = json->html->options->difference;
  flame_data f = {.json = json,
                  .paths = paths,
                  .options = {.is_difference = difference != NULL, .runs_count = {1, 1}},
                  .sums = calloc((size_t)paths->count + 1, sizeof *f.sums),
                  .numbers = calloc((size_t)paths->count + 1, sizeof *f.numbers),
                  .is_row_drawn = calloc((size_t)paths->row_count + 1, sizeof *f.is_row_drawn)};
  const bool has_memory = f.sums && f.numbers && f.is_row_drawn;
  if (difference) memcpy(f.options.runs_count, difference->runs_count, sizeof f.options.runs_count);
  prof_i_sink_key(json->sink, "flames");
  prof_i_sink_text(json->sink, "[");
  const char *before = "";
  for (int kind = PROF_I_FLAME_HOST; has_memory && kind <= PROF_I_FLAME_MEMORY; kind++) {
    f.options.kind = (prof_i_flame_kind)kind;
    if (put_flame(&f, before)) before = ",";
  }
  prof_i_sink_text(json->sink, "]");
  if (has_memory) put_path_names(&f);
  if (difference) {
    prof_i_sink_key(json->sink, "runs");
    prof_i_sink_text(json->sink, "[");
    prof_i_sink_u64(json->sink, difference->runs_count[PROF_I_SIDE_BASE]);
    put_u64(json, difference->runs_count[PROF_I_SIDE_NEW]);
    prof_i_sink_text(json->sink, "]");
  }
  free(f.sums);
  free(f.numbers);
  free(f.is_row_drawn);
  if (has_memory) return PROF_OK;
  return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a flame graph of %u paths", paths->count);
}

int prof_i_html_put_flames(const json_text *json) {
  if (json->html->options->difference)
    return put_paths(json, json->html->options->difference->paths);
  prof_i_paths paths = {.filter = json->html->filter};
  int status = PROF_OK;
  for (size_t i = 0; i < json->html->trace_count && status == PROF_OK; i++)
    status = prof_i_paths_add(&paths, json->html->traces[i], PROF_I_SIDE_NEW, NULL, NULL);
  if (status == PROF_OK) status = put_paths(json, &paths);
  prof_i_paths_fini(&paths);
  return status;
}

/* ---- pools ---- */

static void put_curve(const json_text *json, const int64_t *values, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    prof_i_sink_text(json->sink, i ? "," : "[");
    prof_i_sink_i64(json->sink, values[i]);
  }
  prof_i_sink_text(json->sink, "]");
}

static void put_mark(const json_text *json, const char *key, const prof_i_memory_mark *mark,
                     uint64_t offset_ns) {
  prof_i_sink_key(json->sink, key);
  prof_i_sink_text(json->sink, "[");
  prof_i_sink_i64(json->sink, mark->bytes);
  put_u64(json, offset_ns + mark->ns);
  prof_i_sink_text(json->sink, "]");
}

/* What was live at the peak, by scope. */
static int put_live(const json_text *json, const prof_memory *memory, uint32_t index) {
  prof_memory_rows *rows = NULL;
  const int status =
      prof_i_memory_live(memory, index, PROF_MEMORY_AT_PEAK_USED, 0, PROF_MEMORY_BY_SCOPE, &rows);
  if (status != PROF_OK) return status;
  prof_i_sink_key(json->sink, "live");
  prof_i_sink_text(json->sink, "[");
  for (uint64_t i = 0; i < rows->row_count && i < PROF_I_HTML_LIVE_MAX; i++) {
    prof_i_sink_text(json->sink, i ? ",[" : "[");
    put_string(json, rows->rows[i].label);
    put_u64(json, rows->rows[i].count);
    put_u64(json, rows->rows[i].bytes);
    prof_i_sink_text(json->sink, "]");
  }
  prof_i_sink_text(json->sink, "]");
  prof_i_sink_key_u64(json->sink, "live_rows", rows->row_count);
  prof_free(rows);
  return PROF_OK;
}

static int put_pool(const json_text *json, const prof_memory *memory, size_t process,
                    uint32_t index) {
  prof_i_memory_curve curve;
  prof_memory_info info = {.size = sizeof info};
  const uint64_t offset_ns = prof_i_html_offset(json->html, json->html->traces[process]);
  char device[64];
  int status = prof_memory_pool_get(memory, index, &info);
  if (status == PROF_OK)
    status = prof_i_memory_curve_init(&curve, memory, index, PROF_I_HTML_COLUMNS);
  if (status != PROF_OK) return status;
  prof_i_sink_text(json->sink, "{\"name\":");
  put_string(json, info.name);
  prof_i_put_device(device, sizeof device, info.device);
  prof_i_sink_key(json->sink, "device");
  put_string(json, device);
  prof_i_sink_key_u64(json->sink, "process", process);
  prof_i_sink_key_u64(json->sink, "begin_ns", offset_ns + curve.begin_ns);
  prof_i_sink_key_u64(json->sink, "end_ns", offset_ns + curve.end_ns);
  prof_i_sink_key_u64(json->sink, "missing", info.missing_count);
  put_mark(json, "used_peak", &curve.used_peak, offset_ns);
  prof_i_sink_key(json->sink, "used");
  put_curve(json, curve.used, curve.count);
  if (curve.has_allocated) {
    put_mark(json, "allocated_peak", &curve.allocated_peak, offset_ns);
    prof_i_sink_key(json->sink, "allocated");
    put_curve(json, curve.allocated, curve.count);
  }
  prof_i_memory_curve_fini(&curve);
  status = put_live(json, memory, index);
  prof_i_sink_text(json->sink, "}");
  return status;
}

int prof_i_html_put_pools(const json_text *json) {
  uint32_t put = 0, left_out = 0;
  int status = PROF_OK;
  prof_i_sink_key(json->sink, "pools");
  prof_i_sink_text(json->sink, "[");
  for (size_t t = 0; t < json->html->trace_count && status == PROF_OK; t++) {
    prof_memory *memory = NULL;
    status = prof_memory_read(json->html->traces[t], &memory);
    if (status != PROF_OK) break;
    const uint32_t count = prof_memory_pool_count(memory);
    for (uint32_t i = 0; i < count && status == PROF_OK; i++) {
      left_out += put == PROF_I_HTML_POOLS_MAX;
      if (put == PROF_I_HTML_POOLS_MAX) continue;
      if (put++) prof_i_sink_text(json->sink, ",");
      status = put_pool(json, memory, t, i);
    }
    prof_memory_destroy(memory);
  }
  prof_i_sink_text(json->sink, "]");
  prof_i_sink_key_u64(json->sink, "pools_left_out", left_out);
  return status;
}

/* ---- devices ---- */

static void put_device(const json_text *json, size_t process, const prof_trace_device *device) {
  char number[64];
  prof_i_put_device(number, sizeof number, device->device);
  prof_i_sink_text(json->sink, "[");
  prof_i_sink_u64(json->sink, process);
  const char *const texts[] = {number, device->name, device->back_end, device->driver};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    prof_i_sink_text(json->sink, ",");
    put_string(json, texts[i]);
  }
  put_u64(json, device->scope_count);
  put_u64(json, device->record_count);
  put_u64(json, device->clock_error_ns);
  put_u64(json, device->memory_bytes);
  prof_i_sink_text(json->sink, ",");
  put_string(json, device->reason);
  prof_i_sink_text(json->sink, "]");
}

void prof_i_html_put_devices(const json_text *json) {
  bool is_next = false;
  prof_i_sink_key(json->sink, "devices");
  prof_i_sink_text(json->sink, "[");
  for (size_t t = 0; t < json->html->trace_count; t++) {
    prof_trace_device device = {.size = sizeof device};
    for (uint32_t i = 0; prof_trace_device_get(json->html->traces[t], i, &device) == PROF_OK; i++) {
      if (is_next) prof_i_sink_text(json->sink, ",");
      put_device(json, t, &device);
      is_next = true;
    }
  }
  prof_i_sink_text(json->sink, "]");
}
