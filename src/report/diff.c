/* A comparison as text: a heading that says what a verdict means, and one line for each row, or the
   tree of paths. Also as JSON and CSV, for programs. See internal.h. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../analysis/compare.h"
#include "../base/display.h"
#include "../base/error.h"
#include "../sink/sink.h"

enum { CELL_ROOM = 96, INDENT_MAX = 40 };
/* WIDTH_OF_KEY: of each key behind the second one. */
enum {
  WIDTH_OF_ALL = 120,
  WIDTH_OF_INTERVALS = 100,
  WIDTH_OF_KEY = PROF_I_TEXT_TABLE_TEXT_MIN + 2,
  WIDTH_TEXT = 100
};

typedef struct diff_page {
  const prof_i_comparison *comparison;
  prof_i_text_buffer page;
  prof_i_text_table table;
  bool is_wide;       /* mean, p99 and total have columns */
  bool has_intervals; /* beside the change */
  uint32_t width_of_keys;
} diff_page;

static const char *verdict_word(prof_i_verdict verdict) {
  static const char *const words[] = {"none", "undecided", "slower", "faster"};
  return words[verdict];
}

static const char *compare_state_word(prof_i_compare_state state) {
  static const char *const words[] = {"both", "new", "gone", "replaced"};
  return words[state];
}

/* ---- cells ---- */

/* "+12.3%", without the locale's point. */
static void percent_text(char to[CELL_ROOM], double share) {
  const double tenths = __builtin_fabs(share) * 1000 + 0.5;
  const uint64_t whole = tenths < 1e15 ? (uint64_t)tenths : UINT64_C(1000000000000000);
  snprintf(to, CELL_ROOM, "%s%llu.%llu%%", share < 0 ? "-" : "+", (unsigned long long)(whole / 10),
           (unsigned long long)(whole % 10));
}

static void add_time_cell(diff_page *p, const prof_i_compare_values *values, double ns) {
  char cell[CELL_ROOM] = "-";
  if (values->runs_count) prof_i_put_time(cell, sizeof cell, (uint64_t)(ns + 0.5), 0);
  prof_i_text_table_add(&p->table, cell);
}

static void calls_text(char *to, size_t room, double calls) {
  const uint64_t tenths = (uint64_t)(calls * 10 + 0.5);
  if (tenths % 10 == 0)
    snprintf(to, room, "%llu", (unsigned long long)(tenths / 10));
  else
    snprintf(to, room, "%llu.%llu", (unsigned long long)(tenths / 10),
             (unsigned long long)(tenths % 10));
}

static void add_calls_cell(diff_page *p, const prof_i_compare_line *line) {
  char cell[CELL_ROOM], base[CELL_ROOM / 3], new[CELL_ROOM / 3];
  calls_text(base, sizeof base, line->values[0].calls);
  calls_text(new, sizeof new, line->values[1].calls);
  if (line->state == PROF_I_COMPARE_NEW || strcmp(base, new) == 0)
    snprintf(cell, sizeof cell, "%s", new);
  else if (line->state == PROF_I_COMPARE_GONE)
    snprintf(cell, sizeof cell, "%s", base);
  else
    snprintf(cell, sizeof cell, "%s -> %s", base, new);
  prof_i_text_table_add(&p->table, cell);
}

/* "+10.2% slower (+8.1% to +12.0%)"; the interval only where it has room. */
static void add_change_cell(diff_page *p, const prof_i_compare_line *line) {
  char cell[4 * CELL_ROOM] = "", change[CELL_ROOM], low[CELL_ROOM], high[CELL_ROOM];
  if (line->state == PROF_I_COMPARE_NEW || line->state == PROF_I_COMPARE_GONE) {
    snprintf(cell, sizeof cell, "%s", compare_state_word(line->state));
  } else if (line->has_change) {
    percent_text(change, line->ratio.middle - 1);
    percent_text(low, line->ratio.low - 1);
    percent_text(high, line->ratio.high - 1);
    const char *const verdict =
        line->verdict == PROF_I_VERDICT_UNDECIDED ? "" : verdict_word(line->verdict);
    if (line->has_p && p->has_intervals)
      snprintf(cell, sizeof cell, "%s%s%s (%s to %s)", change, *verdict ? " " : "", verdict, low,
               high);
    else if (line->has_p)
      snprintf(cell, sizeof cell, "%s%s%s", change, *verdict ? " " : "", verdict);
    else if (line->slower_share >= 0)
      snprintf(cell, sizeof cell, "%s, %u%% of calls slower", change,
               (unsigned)(line->slower_share * 100 + 0.5));
    else
      snprintf(cell, sizeof cell, "%s, no verdict", change);
  } else {
    snprintf(cell, sizeof cell, "base median is 0, no verdict");
  }
  prof_i_text_table_add(&p->table, cell);
}

static void add_name_cell(diff_page *p, const prof_i_compare_line *line) {
  enum { NAME_ROOM = 2 * PROF_I_SANITIZED_NAME_BYTES + 64 };
  const prof_i_path_row *const rows = p->comparison->paths.rows;
  char old_name[PROF_I_SANITIZED_NAME_BYTES], new_name[PROF_I_SANITIZED_NAME_BYTES];
  char cell[INDENT_MAX + NAME_ROOM];
  const uint32_t depth = line->path ? p->comparison->paths.items[line->path].depth - 1 : 0;
  const uint32_t indent = 2 * depth < INDENT_MAX ? 2 * depth : INDENT_MAX;
  memset(cell, ' ', indent);
  prof_i_sanitize_name(old_name, rows[line->row].name);
  prof_i_sanitize_name(new_name, rows[line->new_row].name);
  const char *const device = rows[line->row].is_device ? " (device)" : "";
  if (line->state == PROF_I_COMPARE_REPLACED)
    snprintf(cell + indent, NAME_ROOM, "%s -> %s%s (replaced)", old_name, new_name, device);
  else
    snprintf(cell + indent, NAME_ROOM, "%s%s", old_name, device);
  prof_i_text_table_add(&p->table, cell);
}

/* The value of a key behind the first. */
static void add_key_cell(diff_page *p, const prof_i_compare_line *line, uint32_t key) {
  const prof_i_path_row *const rows = p->comparison->paths.rows;
  char old_value[PROF_I_SANITIZED_NAME_BYTES], new_value[PROF_I_SANITIZED_NAME_BYTES];
  char cell[2 * PROF_I_SANITIZED_NAME_BYTES + 8];
  prof_i_sanitize_name(old_value, rows[line->row].values[key].text);
  prof_i_sanitize_name(new_value, rows[line->new_row].values[key].text);
  const bool is_one = line->state != PROF_I_COMPARE_REPLACED || !strcmp(old_value, new_value);
  snprintf(cell, sizeof cell, "%s%s%s", old_value, is_one ? "" : " -> ", is_one ? "" : new_value);
  prof_i_text_table_add(&p->table, cell);
}

static void add_line(diff_page *p, const prof_i_compare_line *line) {
  /* of the new side; of what is gone, of the base */
  const prof_i_compare_values *const shown =
      &line->values[line->state == PROF_I_COMPARE_GONE ? PROF_I_SIDE_BASE : PROF_I_SIDE_NEW];
  add_name_cell(p, line);
  for (uint32_t i = 1; i < p->comparison->paths.key_count; i++) add_key_cell(p, line, i);
  add_calls_cell(p, line);
  add_time_cell(p, &line->values[0], line->values[0].median_ns);
  add_time_cell(p, &line->values[1], line->values[1].median_ns);
  if (p->is_wide) {
    add_time_cell(p, shown, shown->mean_ns);
    add_time_cell(p, shown, shown->p99_ns);
    add_time_cell(p, shown, shown->total_ns);
  }
  add_change_cell(p, line);
}

/* ---- the heading ---- */

static void put_verdict_rule(diff_page *p, size_t width) {
  char text[512], threshold[CELL_ROOM], chance[CELL_ROOM], coverage[CELL_ROOM];
  percent_text(threshold, p->comparison->options.threshold);
  percent_text(coverage, p->comparison->coverage);
  calls_text(chance, sizeof chance, p->comparison->chance_count);
  if (p->comparison->tested_count == 0) {
    prof_i_text_buffer_wrap(&p->page, 0, width, "No row has four captures on both sides.");
    return;
  }
  snprintf(
      text, sizeof text,
      "A verdict needs p < 0.05 (exact Mann-Whitney over the runs' medians) and an interval of "
      "the change (Hodges-Lehmann, %s or more) outside of +-%s. Chance alone would flag at "
      "most %s of %u rows.",
      coverage + 1, threshold + 1, chance, p->comparison->tested_count);
  prof_i_text_buffer_wrap(&p->page, 0, width, text);
}

static void put_heading(diff_page *p, size_t width) {
  char text[256];
  const uint32_t *const runs = p->comparison->options.runs_count;
  const bool has_several = runs[0] > 1 || runs[1] > 1;
  snprintf(text, sizeof text, "Base: %u capture%s. New: %u capture%s.%s", runs[0],
           runs[0] == 1 ? "" : "s", runs[1], runs[1] == 1 ? "" : "s",
           has_several ? " Each counts as a run." : "");
  prof_i_text_buffer_wrap(&p->page, 0, width, text);
  if (prof_i_comparison_has_verdicts(p->comparison)) {
    put_verdict_rule(p, width);
  } else {
    snprintf(text, sizeof text, "No verdict: that needs %u captures of each side.",
             (unsigned)PROF_I_VERDICT_RUNS_MIN);
    prof_i_text_buffer_wrap(&p->page, 0, width, text);
  }
  prof_i_text_buffer_append_text(&p->page, "\n");
}

/* ---- the tree ---- */

typedef struct path_links {
  uint32_t first, next, line; /* line: plus 1; 0: not shown */
} path_links;

/* Paths are numbered parents first. The lines that are shown bring their parents. */
static path_links *find_tree(const prof_i_comparison *c, uint32_t limit) {
  path_links *const links = calloc(c->paths.count + 1, sizeof *links);
  bool *const is_shown = calloc(c->paths.count + 1, sizeof *is_shown);
  if (links && is_shown) {
    for (uint32_t i = 0; i < c->line_count; i++) {
      links[c->lines[i].path].line = i + 1;
      for (uint32_t path = c->lines[i].path; i < limit && path && !is_shown[path];
           path = c->paths.items[path].parent)
        is_shown[path] = true;
    }
    for (uint32_t i = c->paths.count; i-- > 1;) {
      if (!is_shown[i]) links[i].line = 0;
      const uint32_t parent = c->paths.items[i].parent;
      links[i].next = links[parent].first;
      links[parent].first = i;
    }
  }
  free(is_shown);
  return links;
}

static bool add_tree(diff_page *p, uint32_t limit) {
  const prof_i_comparison *const c = p->comparison;
  path_links *const links = find_tree(c, limit);
  if (!links) return false;
  uint32_t path = links[0].first;
  while (path) {
    if (links[path].line) add_line(p, &c->lines[links[path].line - 1]);
    if (links[path].first) {
      path = links[path].first;
      continue;
    }
    while (path && !links[path].next) path = c->paths.items[path].parent;
    path = links[path].next;
  }
  free(links);
  return true;
}

static void put_columns_left_out(diff_page *p, size_t width) {
  char text[128];
  const bool has_verdicts = prof_i_comparison_has_verdicts(p->comparison);
  snprintf(text, sizeof text, "%sMean, p99 and Total have no room; --width %u shows them.",
           has_verdicts && !p->has_intervals ? "Intervals, " : "",
           (unsigned)(WIDTH_OF_ALL + p->width_of_keys));
  prof_i_text_buffer_append_text(&p->page, "\n");
  prof_i_text_buffer_wrap(&p->page, 0, width < WIDTH_TEXT ? width : WIDTH_TEXT, text);
}

/* Sets the columns of the table; `titles` must last as long. */
static void put_titles(diff_page *p, const prof_i_diff_options *options,
                       const char *titles[PROF_I_TEXT_TABLE_COLUMNS]) {
  static const char *const all[] = {"Calls", "Base median", "Median",          "Mean",
                                    "p99",   "Total",       "Change of median"},
                           *const few[] = {"Calls", "Base median", "Median", "Change of median"};
  const uint32_t more = p->is_wide ? sizeof all / sizeof *all : sizeof few / sizeof *few;
  uint32_t count = 1;
  titles[0] = options->title_count ? options->titles[0] : "Name";
  for (uint32_t i = 1; i < options->title_count; i++) titles[count++] = options->titles[i];
  p->table.text_columns = (1u << count) - 1;
  for (uint32_t i = 0; i < more; i++) titles[count++] = p->is_wide ? all[i] : few[i];
  p->table.titles = titles;
  p->table.column_count = count;
  p->table.text_columns |= 1u << (count - 1);
}

int prof_i_diff_text(const prof_i_comparison *comparison, const prof_i_diff_options *options,
                     char **text_out) {
  diff_page p = {.comparison = comparison};
  const size_t width = options->width ? options->width : SIZE_MAX;
  if (options->title_count > 2) p.width_of_keys = (options->title_count - 2) * WIDTH_OF_KEY;
  p.is_wide = width >= WIDTH_OF_ALL + p.width_of_keys;
  p.has_intervals = width >= WIDTH_OF_INTERVALS + p.width_of_keys;
  const char *titles[PROF_I_TEXT_TABLE_COLUMNS];
  put_titles(&p, options, titles);
  put_heading(&p, width < WIDTH_TEXT ? width : WIDTH_TEXT);
  bool is_made = true;
  const uint32_t limit =
      options->rows_limit < comparison->line_count ? options->rows_limit : comparison->line_count;
  if (comparison->options.is_by_path)
    is_made = add_tree(&p, limit);
  else
    for (uint32_t i = 0; i < limit; i++) add_line(&p, &comparison->lines[i]);
  is_made = is_made && !p.table.cells.is_out_of_memory;
  if (comparison->line_count)
    prof_i_text_table_write(&p.page, &p.table, 0, width);
  else
    prof_i_text_buffer_append_text(&p.page, "Neither side has a scope to compare.\n");
  if (limit < comparison->line_count)
    prof_i_text_buffer_printf(&p.page, "\n%u more with less change; --rows all shows them.\n",
                              comparison->line_count - limit);
  if (!p.is_wide && comparison->line_count) put_columns_left_out(&p, width);
  *text_out = p.page.text;
  if (is_made && !p.page.is_out_of_memory) return PROF_OK;
  free(p.page.text);
  *text_out = NULL;
  return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a table of %u rows", comparison->line_count);
}

/* ---- for programs: JSON and CSV ---- */

enum { TEXT_BYTES_MAX = 1 << 30, VALUE_WORD_ROOM = 16 };

/* The keys of a row's values, in JSON and CSV. */
static const char *value_word(const prof_i_comparison *c, uint32_t value) {
  static const char *const words[PROF_I_GROUP_KEYS_MAX] = {"name",  "second", "third",   "fourth",
                                                           "fifth", "sixth",  "seventh", "eighth",
                                                           "ninth", "tenth",  "eleventh"};
  return value == 1 && c->paths.key_count < 2 ? "category" : words[value];
}

/* A replaced row has the new side's values of the groups, too; without groups, its name and
   category. */
static uint32_t count_new_values(const prof_i_comparison *c) {
  return c->paths.key_count ? c->paths.key_count : 2;
}

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

/* Returns the paths from the root to this path, outermost first. The caller frees them. NULL: no
   memory; the sink then has the error. */
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

/* Of a row that was replaced. */
static void put_new_names(prof_i_sink *sink, const prof_i_comparison *c,
                          const prof_i_compare_line *line) {
  char word[VALUE_WORD_ROOM];
  for (uint32_t i = 0; i < count_new_values(c); i++) {
    snprintf(word, sizeof word, "new_%s", value_word(c, i));
    put_key_text(sink, word, c->paths.rows[line->new_row].values[i].text);
  }
}

static void put_json_line(prof_i_sink *sink, const prof_i_comparison *c,
                          const prof_i_compare_line *line) {
  const prof_i_path_row *const row = &c->paths.rows[line->row];
  prof_i_sink_text(sink, "{\"name\":");
  prof_i_sink_string(sink, row->name, strlen(row->name));
  for (uint32_t i = 1; i < prof_i_paths_value_count(&c->paths); i++)
    put_key_text(sink, value_word(c, i), row->values[i].text);
  put_key_text(sink, "on", row->is_device ? "device" : "host");
  put_key_text(sink, "state", compare_state_word(line->state));
  if (line->state == PROF_I_COMPARE_REPLACED) put_new_names(sink, c, line);
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
  put_key_text(sink, "verdict", verdict_word(line->verdict));
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
  const prof_i_path_row *const new_row =
      line->state == PROF_I_COMPARE_REPLACED ? &c->paths.rows[line->new_row] : NULL;
  for (uint32_t i = 0; i < prof_i_paths_value_count(&c->paths); i++) {
    if (i) prof_i_sink_text(sink, ",");
    put_csv_text(sink, i ? row->values[i].text : row->name);
    if (i >= count_new_values(c)) continue;
    prof_i_sink_text(sink, ",");
    put_csv_text(sink, new_row ? new_row->values[i].text : "");
  }
  prof_i_sink_text(sink, row->is_device ? ",device," : ",host,");
  if (line->path) put_csv_path(sink, &c->paths, line->path);
  prof_i_sink_text(sink, ",");
  prof_i_sink_text(sink, compare_state_word(line->state));
  put_csv_values(sink, &line->values[0]);
  put_csv_values(sink, &line->values[1]);
  put_csv_number(sink, line->has_change, line->ratio.middle);
  put_csv_number(sink, line->has_p, line->ratio.low);
  put_csv_number(sink, line->has_p, line->ratio.high);
  put_csv_number(sink, line->has_p, line->p);
  put_csv_number(sink, line->slower_share >= 0, line->slower_share);
  prof_i_sink_text(sink, ",");
  prof_i_sink_text(sink, verdict_word(line->verdict));
  prof_i_sink_text(sink, "\r\n");
}

int prof_i_diff_csv(const prof_i_comparison *comparison, char **text_out) {
  prof_i_sink sink;
  size_t bytes;
  const int status = prof_i_sink_open_memory(&sink, TEXT_BYTES_MAX);
  if (status != PROF_OK) return status;
  for (uint32_t i = 0; i < prof_i_paths_value_count(&comparison->paths); i++) {
    const char *const word = value_word(comparison, i);
    if (i) prof_i_sink_text(&sink, ",");
    prof_i_sink_text(&sink, word);
    if (i >= count_new_values(comparison)) continue;
    prof_i_sink_text(&sink, ",new_");
    prof_i_sink_text(&sink, word);
  }
  prof_i_sink_text(
      &sink,
      ",on,path,state,base_runs,base_calls,base_median_ns,base_mean_ns,"
      "base_p99_ns,base_total_ns,new_runs,new_calls,new_median_ns,new_mean_ns,new_p99_ns,"
      "new_total_ns,ratio,ratio_low,ratio_high,p,slower_share,verdict\r\n");
  for (uint32_t i = 0; i < comparison->line_count; i++)
    put_csv_line(&sink, comparison, &comparison->lines[i]);
  return prof_i_sink_take(&sink, text_out, &bytes);
}
