/* The page around the data of the HTML report. The summary is plain HTML, so it is there before the
   script runs, and without one. See internal.h. */
#define _GNU_SOURCE
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../analysis/internal.h"
#include "../base/display.h"
#include "../base/error.h"
#include "../format/layout.h"
#include "../reader/internal.h"
#include "../sink/sink.h"
#include "html_data.h"
#include "table.h"

enum {
  GZIP_LEVEL = 6,
  BASE64_LINE = 57,
  CELL_ROOM = 128,
  UNIX_SECONDS_MIN = 946684800 /* the year 2000; before: an imported trace does not say */
};

typedef struct html_page {
  const prof_trace *const *traces;
  size_t trace_count;
  const prof_i_html_options *options;
  prof_i_html html;
  const prof_rows *rows;
  prof_i_text_buffer title, summary, difference;
  unsigned char *data;
  size_t data_bytes;
  bool is_gzip;
} html_page;

/* ---- the summary ---- */

/* An imported trace may have no such value. */
static void put_tile(prof_i_text_buffer *page, const char *label, const char *value) {
  if (!value[0]) return;
  prof_i_text_buffer_append_text(page, "<div><dt>");
  prof_i_text_buffer_append_text(page, label);
  prof_i_text_buffer_append_text(page, "</dt><dd>");
  prof_i_svg_put_name(page, value);
  prof_i_text_buffer_append_text(page, "</dd></div>\n");
}

static void put_count_tile(prof_i_text_buffer *page, const char *label, uint64_t count) {
  char text[CELL_ROOM];
  snprintf(text, sizeof text, "%llu", (unsigned long long)count);
  put_tile(page, label, text);
}

/* The sums over all captures; the rest is the first one's. */
static prof_trace_info sum_infos(const html_page *p) {
  prof_trace_info sum = prof_i_table_info(p->traces[0]);
  sum.scope_count = sum.open_count = 0;
  sum.thread_count = sum.device_count = 0;
  for (size_t i = 0; i < p->trace_count; i++) {
    const prof_trace_info info = prof_i_table_info(p->traces[i]);
    sum.scope_count += info.scope_count;
    sum.open_count += info.open_count + info.open_below_count;
    sum.thread_count += info.thread_count;
    sum.device_count += info.device_count;
  }
  return sum;
}

static void put_start(html_page *p) {
  char text[CELL_ROOM] = "";
  const time_t seconds = (time_t)(p->html.start_unix_ns / 1000000000u);
  struct tm parts;
  if (seconds >= UNIX_SECONDS_MIN && gmtime_r(&seconds, &parts))
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  put_tile(&p->summary, "Start", text);
}

static void put_tiles(html_page *p) {
  char text[CELL_ROOM];
  const prof_trace_info sum = sum_infos(p);
  prof_i_text_buffer_append_text(&p->summary, "<dl class=\"tiles\">\n");
  prof_i_put_time(text, sizeof text, p->html.end_ns, 0);
  put_tile(&p->summary, "Duration", text);
  put_count_tile(&p->summary, "Scopes", sum.scope_count);
  if (sum.open_count) put_count_tile(&p->summary, "Open scopes", sum.open_count);
  put_count_tile(&p->summary, sum.device_count ? "Threads, streams" : "Threads", sum.thread_count);
  if (p->trace_count > 1) put_count_tile(&p->summary, "Captures", p->trace_count);
  if (p->html.step_count) put_count_tile(&p->summary, "Steps", p->html.step_count);
  put_tile(&p->summary, "Process", sum.process_name);
  if (p->trace_count == 1) put_count_tile(&p->summary, "Process id", sum.pid);
  put_tile(&p->summary, "Host", sum.host);
  put_start(p);
  prof_i_text_buffer_append_text(&p->summary, "</dl>\n");
}

static void put_line(prof_i_text_buffer *page, const char *line) {
  prof_i_text_buffer_append_text(page, "<li>");
  prof_i_svg_put_name(page, line);
  prof_i_text_buffer_append_text(page, "</li>\n");
}

/* Says how many scopes the filter left out. */
static void put_filter(html_page *p) {
  char line[CELL_ROOM];
  const uint64_t left_out = p->html.left_out_count, all = left_out + p->html.passed_count;
  if (!p->options->filter) return;
  snprintf(line, sizeof line,
           "Filtered: %llu of %llu scopes are left out. Memory and devices are not filtered",
           (unsigned long long)left_out, (unsigned long long)all);
  put_line(&p->summary, line);
}

/* The lines that `prof table` has below its rows: losses, devices, what recording took. */
static int put_lines(html_page *p) {
  prof_i_table table = {.traces = p->traces, .trace_count = p->trace_count, .rows = p->rows};
  table.has_fibers = prof_i_table_find_fibers(&table);
  prof_i_text_buffer_append_text(&table.page, "");
  const int status = prof_i_table_put_footer(&table);
  prof_i_text_buffer_append_text(&p->summary, "<ul class=\"lines\" id=\"lines\">\n");
  put_filter(p);
  char *rest = NULL;
  for (char *line = table.page.text ? strtok_r(table.page.text, "\n", &rest) : NULL; line;
       line = strtok_r(NULL, "\n", &rest))
    put_line(&p->summary, line);
  p->summary.is_out_of_memory |= table.page.is_out_of_memory;
  free(table.page.text);
  return status;
}

/* What the writer of a capture said of it, apart from what is among put_lines() already. */
static int put_notes(html_page *p) {
  for (size_t i = 0; i < p->trace_count; i++) {
    const uint32_t count = prof_i_table_info(p->traces[i]).note_count;
    for (uint32_t note = 0; note < count; note++) {
      char *text;
      const int status = prof_i_trace_note_text(p->traces[i], note, &text);
      if (status != PROF_OK) return status;
      if (strncmp(text, PROF_I_NOTE_PART, strlen(PROF_I_NOTE_PART)) != 0)
        put_line(&p->summary, text);
      free(text);
    }
  }
  prof_i_text_buffer_append_text(&p->summary, "</ul>\n");
  return PROF_OK;
}

static int make_summary(html_page *p) {
  const prof_trace_info first = prof_i_table_info(p->traces[0]);
  const char *const title = p->options->title ? p->options->title : first.process_name;
  prof_i_svg_put_name(&p->title, title[0] ? title : "prof");
  prof_i_text_buffer_append_text(&p->difference, "");
  if (p->options->difference) prof_i_svg_put_escaped(&p->difference, p->options->difference->text);
  put_tiles(p);
  int status = put_lines(p);
  if (status == PROF_OK) status = put_notes(p);
  if (status == PROF_OK &&
      (p->summary.is_out_of_memory || p->title.is_out_of_memory || p->difference.is_out_of_memory))
    status =
        prof_i_fail(PROF_E_NO_MEMORY, "no memory for the summary of %zu captures", p->trace_count);
  return status;
}

/* ---- the data ---- */

/* As it is, where there is no zlib. */
static int make_data(html_page *p) {
  char *plain;
  size_t plain_bytes;
  int status = prof_i_html_data(&p->html, p->rows, &plain, &plain_bytes);
  if (status != PROF_OK) return status;
  status = prof_i_gzip_text(GZIP_LEVEL, plain, plain_bytes, &p->data, &p->data_bytes);
  p->is_gzip = status == PROF_OK;
  if (p->is_gzip || status == PROF_E_NO_MEMORY) {
    free(plain);
    return status;
  }
  p->data = (unsigned char *)plain;
  p->data_bytes = plain_bytes;
  return PROF_OK;
}

/* No character of base64 means anything to HTML. */
static void put_base64(prof_i_sink *sink, const unsigned char *bytes, size_t count) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t at = 0; at < count; at += 3) {
    char *const to = prof_i_sink_reserve(sink, 5);
    const size_t left = count - at;
    const uint32_t second = left > 1 ? bytes[at + 1] : 0, third = left > 2 ? bytes[at + 2] : 0;
    const uint32_t bits = (uint32_t)bytes[at] << 16 | second << 8 | third;
    for (uint32_t i = 0; i < 4; i++) to[i] = digits[bits >> (18 - 6 * i) & 63];
    if (left < 2) to[2] = '=';
    if (left < 3) to[3] = '=';
    to[4] = '\n';
    prof_i_sink_advance(sink, to + 4 + (at % BASE64_LINE == BASE64_LINE - 3));
  }
}

/* ---- the page ---- */

static void put_difference(const html_page *p, prof_i_sink *sink) {
  const bool has_text = p->options->difference != NULL;
  prof_i_sink_text(
      sink, has_text
                ? "<h2>Difference</h2>\n"
                  "<p class=\"hint\">All other parts are of the new side. Colours of the flame "
                  "graph show the change.</p>\n"
                  "<pre class=\"scroll\">"
                : "");
  prof_i_sink_text(sink, has_text ? p->difference.text : "");
  prof_i_sink_text(sink, has_text ? "</pre>\n" : "");
}

/* Pieces of html_page.c; one that begins with \1 is a place for what follows. */
static void put_page(const html_page *p, prof_i_sink *sink) {
  for (const char *const *piece = prof_i_html_page; *piece && !sink->status; piece++) {
    if ((*piece)[0] != PROF_I_HTML_PLACE)
      prof_i_sink_text(sink, *piece);
    else if (strcmp(*piece + 1, "title") == 0)
      prof_i_sink_text(sink, p->title.text);
    else if (strcmp(*piece + 1, "summary") == 0)
      prof_i_sink_text(sink, p->summary.text);
    else if (strcmp(*piece + 1, "difference") == 0)
      put_difference(p, sink);
    else if (strcmp(*piece + 1, "encoding") == 0)
      prof_i_sink_text(sink, p->is_gzip ? "gzip" : "plain");
    else
      put_base64(sink, p->data, p->data_bytes);
  }
}

static int write_page(const html_page *p, const char *path) {
  prof_i_sink sink;
  const int status = prof_i_sink_open_file(&sink, path, false, false);
  if (status != PROF_OK) return status;
  put_page(p, &sink);
  return prof_i_sink_commit(&sink);
}

int prof_i_html_write(const prof_trace *const *traces, size_t count,
                      const prof_i_html_options *options, const char *path, bool *is_empty_out) {
  html_page p = {.traces = traces, .trace_count = count, .options = options};
  const prof_aggregate_options all = {.size = sizeof all,
                                      .group = options->group & ~(uint32_t)PROF_I_GROUP_FURTHER,
                                      .rows_limit = PROF_I_HTML_ROWS_MAX};
  prof_rows *rows = NULL;
  const prof_i_aggregate_more more = {.filter = options->filter,
                                      .group = options->group & PROF_I_GROUP_FURTHER,
                                      .arg_key = options->arg_key,
                                      .has_durations = true};
  int status = prof_i_html_collect(&p.html, traces, count, options->filter);
  if (status != PROF_OK)
    status = prof_i_fail(status, "no memory for a report of %zu captures", count);
  *is_empty_out = status == PROF_OK && options->filter && p.html.passed_count == 0;
  if (status == PROF_OK) status = prof_i_traces_aggregate_more(traces, count, &all, &more, &rows);
  p.rows = rows;
  p.html.options = options;
  *is_empty_out |= status == PROF_OK && more.group && rows->row_count == 0;
  if (status == PROF_OK) status = make_summary(&p);
  if (status == PROF_OK) status = make_data(&p);
  if (status == PROF_OK && !*is_empty_out) status = write_page(&p, path);
  prof_i_rows_destroy(rows);
  prof_i_html_fini(&p.html);
  free(p.title.text);
  free(p.summary.text);
  free(p.difference.text);
  free(p.data);
  return status;
}
