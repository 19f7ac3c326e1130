/* See html_data.h. */
#include "html_data.h"

#include <stdlib.h>
#include <string.h>

#include "../base/display.h"
#include "../base/error.h"

enum { LENGTH_BYTES = 4, TEXT_BYTES_MIN = 48, TEXT_BYTES_MAX = 512 };

typedef prof_i_html_slice slice;

/* ---- pieces of JSON ---- */

/* No character is cut in two. */
static size_t text_cut(const char *text, size_t bytes) {
  while (bytes > 0 && ((unsigned char)text[bytes] & 0xc0) == 0x80) bytes--;
  return bytes;
}

void prof_i_html_put_text(const prof_i_html_json *json, const char *text, size_t bytes) {
  char whole[TEXT_BYTES_MAX + 4];
  if (bytes <= json->text_bytes) {
    prof_i_sink_string(json->sink, text, bytes);
    return;
  }
  const size_t kept = text_cut(text, json->text_bytes);
  memcpy(whole, text, kept);
  memcpy(whole + kept, "\xe2\x80\xa6", 3);
  prof_i_sink_string(json->sink, whole, kept + 3);
}

/* ---- names, threads, steps, counters ---- */

static void put_names(const prof_i_html_json *json) {
  const prof_i_html *const html = json->html;
  prof_i_sink_key(json->sink, "names");
  for (uint32_t i = 0; i < html->name_count; i++) {
    const prof_i_html_name *const name = &html->names[i];
    prof_i_sink_text(json->sink, i ? ",[" : "[[");
    prof_i_html_put_text(json, name->name.data, (size_t)name->name.bytes);
    prof_i_sink_text(json->sink, ",");
    prof_i_html_put_text(json, name->category.data, (size_t)name->category.bytes);
    prof_i_sink_text(json->sink, "]");
  }
  prof_i_sink_text(json->sink, "]");
}

static void put_thread(const prof_i_html_json *json, const prof_trace *trace, size_t process,
                       uint32_t index) {
  prof_trace_thread thread = {.size = sizeof thread};
  prof_trace_thread_get(trace, index, &thread);
  prof_i_sink_text(json->sink, "[");
  prof_i_sink_u64(json->sink, process);
  prof_i_sink_text(json->sink, ",");
  prof_i_html_put_text(json, thread.name, strlen(thread.name));
  prof_i_sink_text(json->sink, ",");
  prof_i_sink_u64(json->sink, thread.tid);
  prof_i_sink_text(json->sink, thread.is_stream ? ",1]" : ",0]");
}

/* Of all traces, in their order: slices have numbers of these. */
static void put_threads(const prof_i_html_json *json) {
  const prof_i_html *const html = json->html;
  const char *before = "[";
  prof_i_sink_key(json->sink, "threads");
  if (html->thread_count == 0) prof_i_sink_text(json->sink, "[");
  for (size_t t = 0; t < html->trace_count; t++) {
    for (uint32_t i = 0; i < html->traces[t]->thread_count; i++, before = ",") {
      prof_i_sink_text(json->sink, before);
      put_thread(json, html->traces[t], t, i);
    }
  }
  prof_i_sink_text(json->sink, "]");
}

static void put_processes(const prof_i_html_json *json) {
  const prof_i_html *const html = json->html;
  prof_i_sink_key(json->sink, "processes");
  for (size_t t = 0; t < html->trace_count; t++) {
    prof_trace_info info = {.size = sizeof info};
    prof_trace_info_get(html->traces[t], &info);
    prof_i_sink_text(json->sink, t ? ",[" : "[[");
    prof_i_html_put_text(json, info.process_name, strlen(info.process_name));
    prof_i_sink_text(json->sink, ",");
    prof_i_sink_u64(json->sink, info.pid);
    prof_i_sink_text(json->sink, ",");
    prof_i_sink_i64(json->sink, prof_i_world_has_ranks(info.world_size) ? info.rank : -1);
    prof_i_sink_text(json->sink, "]");
  }
  prof_i_sink_text(json->sink, "]");
}

static void put_steps(const prof_i_html_json *json) {
  const prof_i_html *const html = json->html;
  prof_i_sink_key(json->sink, "steps");
  prof_i_sink_text(json->sink, "[");
  for (uint32_t i = 0; i < html->step_count; i++) {
    const prof_i_html_step *const step = &html->steps[i];
    prof_i_sink_text(json->sink, i ? ",[" : "[");
    prof_i_sink_u64(json->sink, step->start_ns);
    prof_i_sink_text(json->sink, ",");
    prof_i_sink_u64(json->sink, step->duration_ns);
    prof_i_sink_text(json->sink, ",");
    prof_i_sink_u64(json->sink, step->number);
    prof_i_sink_text(json->sink, ",");
    prof_i_sink_u64(json->sink, step->thread);
    prof_i_sink_text(json->sink, "]");
  }
  prof_i_sink_text(json->sink, "]");
  prof_i_sink_key_u64(json->sink, "steps_left_out", html->left_out_steps);
}

static void put_counters(const prof_i_html_json *json) {
  const prof_i_html *const html = json->html;
  prof_i_sink_key(json->sink, "counters");
  prof_i_sink_text(json->sink, "[");
  for (uint32_t i = 0; i < html->counter_count; i++) {
    const prof_i_html_counter *const counter = &html->counters[i];
    prof_i_sink_text(json->sink, i ? ",[" : "[");
    prof_i_sink_u64(json->sink, counter->name);
    prof_i_sink_text(json->sink, ",[");
    for (size_t c = 0; c < PROF_I_HTML_COLUMNS; c++) {
      if (c) prof_i_sink_text(json->sink, ",");
      prof_i_sink_double(json->sink, counter->highest[c]);
    }
    prof_i_sink_text(json->sink, "]]");
  }
  prof_i_sink_text(json->sink, "]");
}

/* ---- columns of the slices ---- */

typedef int64_t (*slice_value)(const prof_i_html *html, uint32_t index);

static const slice *slice_before(const prof_i_html *html, uint32_t index) {
  const slice *const s = &html->slices[index];
  return index && s[-1].track == s->track ? s - 1 : NULL;
}

static int64_t slice_grid_start(const prof_i_html *html, const slice *s) {
  return (int64_t)(s->start_ns >> html->shift);
}

/* Slices of a track are ordered by falling start. */
static int64_t slice_start(const prof_i_html *html, uint32_t index) {
  const slice *const before = slice_before(html, index);
  const int64_t start = slice_grid_start(html, &html->slices[index]);
  return before ? slice_grid_start(html, before) - start : start;
}

static int64_t slice_length(const prof_i_html *html, uint32_t index) {
  const slice *const s = &html->slices[index];
  return (int64_t)(s->end_ns >> html->shift) - slice_grid_start(html, s);
}

static int64_t slice_depth(const prof_i_html *html, uint32_t index) {
  const slice *const before = slice_before(html, index);
  return html->slices[index].depth - (before ? before->depth : 0);
}

static int64_t slice_name(const prof_i_html *html, uint32_t index) {
  return html->slices[index].name;
}

static int64_t slice_count(const prof_i_html *html, uint32_t index) {
  return (int64_t)html->slices[index].count;
}

static const slice_value slice_columns[] = {slice_start, slice_length, slice_depth, slice_name,
                                            slice_count};
enum { SLICE_COLUMNS = sizeof slice_columns / sizeof *slice_columns };

/* The sign in the lowest bit; 7 bits a byte, the lowest first. */
static void put_varint(prof_i_sink *sink, int64_t value) {
  char *to = prof_i_sink_reserve(sink, 10);
  uint64_t rest = (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
  for (; rest >= 0x80; rest >>= 7) *to++ = (char)(rest | 0x80);
  *to++ = (char)rest;
  prof_i_sink_advance(sink, to);
}

/* [[thread, lane, slices], ...] */
static void put_tracks(const prof_i_html_json *json) {
  const prof_i_html *const html = json->html;
  prof_i_sink_key(json->sink, "tracks");
  prof_i_sink_text(json->sink, "[");
  for (uint32_t i = 0, next; i < html->slice_count; i = next) {
    const uint32_t track = html->slices[i].track;
    for (next = i; next < html->slice_count && html->slices[next].track == track;) next++;
    prof_i_sink_text(json->sink, i ? ",[" : "[");
    prof_i_sink_u64(json->sink, track >> PROF_I_HTML_LANE_BITS);
    prof_i_sink_text(json->sink, ",");
    prof_i_sink_u64(json->sink, track & ((1u << PROF_I_HTML_LANE_BITS) - 1));
    prof_i_sink_text(json->sink, ",");
    prof_i_sink_u64(json->sink, next - i);
    prof_i_sink_text(json->sink, "]");
  }
  prof_i_sink_text(json->sink, "]");
}

/* ---- all of it ---- */

static int put_json(const prof_i_html_json *json, const prof_rows *rows) {
  prof_i_sink *const sink = json->sink;
  prof_i_sink_text(sink, "{\"shift\":");
  prof_i_sink_u64(sink, json->html->shift);
  prof_i_sink_key_u64(sink, "end_ns", json->html->end_ns);
  put_names(json);
  put_processes(json);
  put_threads(json);
  put_tracks(json);
  prof_i_html_put_rows(json, rows);
  put_steps(json);
  put_counters(json);
  prof_i_html_put_devices(json);
  int status = prof_i_html_put_flames(json);
  if (status == PROF_OK) status = prof_i_html_put_pools(json);
  prof_i_sink_text(sink, "}");
  return status;
}

static size_t choose_text_bytes(const prof_i_html *html, const prof_rows *rows) {
  const size_t bytes = PROF_I_HTML_TEXTS_BYTES / (html->name_count + rows->row_count + 1);
  return bytes < TEXT_BYTES_MIN ? TEXT_BYTES_MIN : bytes > TEXT_BYTES_MAX ? TEXT_BYTES_MAX : bytes;
}

/* The JSON with its length before it. */
static int make_json(const prof_i_html *html, const prof_rows *rows, char **text_out,
                     size_t *bytes_out) {
  prof_i_sink sink;
  int status = prof_i_sink_open_memory(&sink, PROF_I_HTML_DATA_MAX);
  if (status != PROF_OK) return status;
  const prof_i_html_json json = {&sink, html, choose_text_bytes(html, rows)};
  prof_i_sink_text(&sink, "    ");
  status = put_json(&json, rows);
  if (status != PROF_OK) {
    prof_i_sink_abandon(&sink);
    return status;
  }
  status = prof_i_sink_take(&sink, text_out, bytes_out);
  if (status != PROF_OK) return status;
  const size_t length = *bytes_out - LENGTH_BYTES;
  for (size_t i = 0; i < LENGTH_BYTES; i++) (*text_out)[i] = (char)(length >> (8 * i));
  return PROF_OK;
}

int prof_i_html_data(const prof_i_html *html, const prof_rows *rows, char **data_out,
                     size_t *bytes_out) {
  prof_i_sink sink;
  char *json;
  size_t json_bytes;
  int status = make_json(html, rows, &json, &json_bytes);
  if (status != PROF_OK) return status;
  status = prof_i_sink_open_memory(&sink, PROF_I_HTML_DATA_MAX);
  if (status == PROF_OK) {
    prof_i_sink_bytes(&sink, json, json_bytes);
    for (size_t column = 0; column < SLICE_COLUMNS; column++)
      for (uint32_t i = 0; i < html->slice_count; i++)
        put_varint(&sink, slice_columns[column](html, i));
    status = prof_i_sink_take(&sink, data_out, bytes_out);
  }
  free(json);
  return status;
}
