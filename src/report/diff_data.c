/* A comparison for programs: JSON and CSV. See diff.h. */
#include <stdlib.h>
#include <string.h>

#include "../base/log.h"
#include "../sink/sink.h"
#include "diff.h"

enum { TEXT_BYTES_MAX = 1 << 30 };

static void put_key_number(prof_i_sink *sink, const char *key, double value) {
  prof_i_sink_key(sink, key);
  prof_i_sink_double(sink, value);
}

static void put_key_text(prof_i_sink *sink, const char *key, const char *text) {
  prof_i_sink_key(sink, key);
  prof_i_sink_string(sink, text, strlen(text));
}

static void put_values(prof_i_sink *sink, const char *side, const prof_i_compare_values *values) {
  prof_i_sink_key(sink, side);
  if (!values->runs_count) {
    prof_i_sink_text(sink, "null");
    return;
  }
  prof_i_sink_text(sink, "{\"runs\":");
  prof_i_sink_u64(sink, values->runs_count);
  put_key_number(sink, "calls", values->calls);
  put_key_number(sink, "median_ns", values->median_ns);
  put_key_number(sink, "mean_ns", values->mean_ns);
  put_key_number(sink, "p99_ns", values->p99_ns);
  put_key_number(sink, "total_ns", values->total_ns);
  prof_i_sink_text(sink, "}");
}

/* The paths from the root to this one, outermost first. The caller frees them. NULL: no memory,
   which the sink has then. */
static uint32_t *path_chain(prof_i_sink *sink, const prof_i_paths *paths, uint32_t path,
                            uint32_t *count_out) {
  const uint32_t count = *count_out = paths->items[path].depth;
  uint32_t *const chain = malloc((count + 1) * sizeof *chain);
  if (!chain && sink->status == PROF_OK)
    sink->status = prof_i_fail(PROF_E_NO_MEMORY, "no memory for a path of %u scopes", count);
  if (chain) prof_i_paths_chain(paths, path, chain);
  return chain;
}

static void put_json_path(prof_i_sink *sink, const prof_i_paths *paths, uint32_t path) {
  uint32_t count;
  uint32_t *const chain = path_chain(sink, paths, path, &count);
  prof_i_sink_key(sink, "path");
  prof_i_sink_text(sink, "[");
  for (uint32_t i = 0; chain && i < count; i++) {
    const char *const name = paths->rows[paths->items[chain[i]].row].name;
    if (i) prof_i_sink_text(sink, ",");
    prof_i_sink_string(sink, name, strlen(name));
  }
  prof_i_sink_text(sink, "]");
  free(chain);
}

static void put_json_line(prof_i_sink *sink, const prof_i_comparison *c,
                          const prof_i_compare_line *line) {
  const prof_i_path_row *const row = &c->paths.rows[line->row];
  prof_i_sink_text(sink, "{\"name\":");
  prof_i_sink_string(sink, row->name, strlen(row->name));
  put_key_text(sink, "category", row->category);
  put_key_text(sink, "on", row->is_device ? "device" : "host");
  put_key_text(sink, "state", prof_i_compare_state_word(line->state));
  if (line->state == PROF_I_COMPARE_REPLACED)
    put_key_text(sink, "new_name", c->paths.rows[line->new_row].name);
  if (line->path) put_json_path(sink, &c->paths, line->path);
  put_values(sink, "base", &line->values[0]);
  put_values(sink, "new", &line->values[1]);
  if (line->has_change) put_key_number(sink, "ratio", line->ratio.middle);
  if (line->has_p) {
    put_key_number(sink, "ratio_low", line->ratio.low);
    put_key_number(sink, "ratio_high", line->ratio.high);
    put_key_number(sink, "p", line->p);
  }
  if (line->slower_share >= 0) put_key_number(sink, "slower_share", line->slower_share);
  put_key_text(sink, "verdict", prof_i_verdict_word(line->verdict));
  prof_i_sink_text(sink, "}");
}

int prof_i_diff_json(const prof_i_comparison *comparison, char **text_out) {
  prof_i_sink sink;
  size_t bytes;
  const int status = prof_i_sink_open_memory(&sink, TEXT_BYTES_MAX);
  if (status != PROF_OK) return status;
  prof_i_sink_text(&sink, "{\"base_captures\":");
  prof_i_sink_u64(&sink, comparison->options.runs_count[0]);
  prof_i_sink_key_u64(&sink, "new_captures", comparison->options.runs_count[1]);
  put_key_number(&sink, "threshold", comparison->options.threshold);
  prof_i_sink_key_u64(&sink, "tested", comparison->tested_count);
  put_key_number(&sink, "flagged_by_chance_at_most", comparison->chance_count);
  put_key_number(&sink, "coverage", comparison->coverage);
  prof_i_sink_key(&sink, "rows");
  prof_i_sink_text(&sink, "[");
  for (uint32_t i = 0; i < comparison->line_count; i++) {
    prof_i_sink_text(&sink, i ? ",\n" : "\n");
    put_json_line(&sink, comparison, &comparison->lines[i]);
  }
  prof_i_sink_text(&sink, "\n]}\n");
  return prof_i_sink_take(&sink, text_out, &bytes);
}

/* ---- CSV, as RFC 4180 ---- */

static void put_csv_text(prof_i_sink *sink, const char *text) {
  prof_i_sink_csv(sink, text, strlen(text));
}

static void put_csv_path(prof_i_sink *sink, const prof_i_paths *paths, uint32_t path) {
  uint32_t count;
  uint32_t *const chain = path_chain(sink, paths, path, &count);
  prof_i_sink_text(sink, "\"");
  for (uint32_t i = 0; chain && i < count; i++) {
    if (i) prof_i_sink_text(sink, ";");
    const char *const name = paths->rows[paths->items[chain[i]].row].name;
    prof_i_sink_csv_part(sink, name, strlen(name));
  }
  prof_i_sink_text(sink, "\"");
  free(chain);
}

/* A field without a value is empty. */
static void put_csv_number(prof_i_sink *sink, bool has_value, double value) {
  prof_i_sink_text(sink, ",");
  if (has_value && value - value == 0) prof_i_sink_double(sink, value);
}

static void put_csv_values(prof_i_sink *sink, const prof_i_compare_values *values) {
  const bool has_values = values->runs_count != 0;
  prof_i_sink_text(sink, ",");
  prof_i_sink_u64(sink, values->runs_count);
  put_csv_number(sink, has_values, values->calls);
  put_csv_number(sink, has_values, values->median_ns);
  put_csv_number(sink, has_values, values->mean_ns);
  put_csv_number(sink, has_values, values->p99_ns);
  put_csv_number(sink, has_values, values->total_ns);
}

static void put_csv_line(prof_i_sink *sink, const prof_i_comparison *c,
                         const prof_i_compare_line *line) {
  const prof_i_path_row *const row = &c->paths.rows[line->row];
  const bool is_replaced = line->state == PROF_I_COMPARE_REPLACED;
  put_csv_text(sink, row->name);
  prof_i_sink_text(sink, ",");
  put_csv_text(sink, is_replaced ? c->paths.rows[line->new_row].name : "");
  prof_i_sink_text(sink, ",");
  put_csv_text(sink, row->category);
  prof_i_sink_text(sink, row->is_device ? ",device," : ",host,");
  if (line->path) put_csv_path(sink, &c->paths, line->path);
  prof_i_sink_text(sink, ",");
  prof_i_sink_text(sink, prof_i_compare_state_word(line->state));
  put_csv_values(sink, &line->values[0]);
  put_csv_values(sink, &line->values[1]);
  put_csv_number(sink, line->has_change, line->ratio.middle);
  put_csv_number(sink, line->has_p, line->ratio.low);
  put_csv_number(sink, line->has_p, line->ratio.high);
  put_csv_number(sink, line->has_p, line->p);
  put_csv_number(sink, line->slower_share >= 0, line->slower_share);
  prof_i_sink_text(sink, ",");
  prof_i_sink_text(sink, prof_i_verdict_word(line->verdict));
  prof_i_sink_text(sink, "\r\n");
}

int prof_i_diff_csv(const prof_i_comparison *comparison, char **text_out) {
  prof_i_sink sink;
  size_t bytes;
  const int status = prof_i_sink_open_memory(&sink, TEXT_BYTES_MAX);
  if (status != PROF_OK) return status;
  prof_i_sink_text(
      &sink,
      "name,new_name,category,on,path,state,base_runs,base_calls,base_median_ns,base_mean_ns,"
      "base_p99_ns,base_total_ns,new_runs,new_calls,new_median_ns,new_mean_ns,new_p99_ns,"
      "new_total_ns,ratio,ratio_low,ratio_high,p,slower_share,verdict\r\n");
  for (uint32_t i = 0; i < comparison->line_count; i++)
    put_csv_line(&sink, comparison, &comparison->lines[i]);
  return prof_i_sink_take(&sink, text_out, &bytes);
}
