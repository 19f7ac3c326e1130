/* Lines of single scopes. No row waits for a later one, so the columns of the text get their widths
   from the trace: its end, its threads. With a width the texts are cut; without, they are whole.
   See internal.h. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/display.h"
#include "../base/error.h"
#include "../reader/capture.h"
#include "../reader/internal.h"
#include "../sink/sink.h"

enum {
  FLUSH_BYTES = 64 << 10,
  LINE_BYTES_MAX = 64 << 20,
  THREAD_WIDTH_MAX = 28,
  TIME_WIDTH = 10,
  DEPTH_WIDTH = 5,
  GAP = 2,
  NAME_WIDTH_MIN = 16, /* of a name and its arguments */
  TEXT_BYTES = 4096,
  BYTES_OF_COLUMN = 16, /* at most so many are read for a column of a text that is cut */
  DEVICE_BYTES = 48
};

typedef struct scope_list {
  const prof_i_placed_trace *traces;
  const prof_i_scope_list_capture *captures; /* of each trace */
  uint32_t trace_count;
  const prof_i_scope_list_options *options;
  prof_i_scope_list_write write;
  void *user;
  prof_i_sink sink;         /* rows */
  prof_i_sink values;       /* of the arguments of one scope */
  prof_i_text_buffer plain; /* scratch */
  int start_width, thread_width;
  char **labels; /* of each thread of each trace, for the text */
  size_t label_count;
  uint32_t *first_labels; /* of each trace */
} scope_list;

static size_t sink_used(const prof_i_sink *sink) { return (size_t)(sink->next - sink->buffer); }

static int flush_rows(scope_list *l, size_t least_bytes) {
  if (l->sink.status != PROF_OK) return l->sink.status;
  if (l->values.status != PROF_OK) return l->values.status;
  const size_t count = sink_used(&l->sink);
  if (count == 0 || count < least_bytes) return PROF_OK;
  l->sink.next = l->sink.buffer;
  return l->write(l->user, l->sink.buffer, count);
}

/* ---- threads ---- */

/* "rank 1, python (4711)" and ", ", as prof table names the process. Empty if there is one
   capture. */
static void put_process(char *to, size_t room, const prof_i_scope_list_capture *capture,
                        const prof_trace *trace, uint32_t thread) {
  char name[PROF_I_PLACE_TEXT_BYTES] = "", text[PROF_I_PLACE_TEXT_BYTES];
  *to = '\0';
  if (!capture->label) return;
  const prof_i_process_record process = prof_i_trace_process(trace, thread);
  if (process.name.bytes)
    prof_i_copy_name(name, sizeof name, process.name.data, (size_t)process.name.bytes);
  prof_i_process_text(name, process.pid, process.rank, text);
  snprintf(to, room, "%s, ", text);
}

static char *drop_label(prof_i_text_buffer *label) {
  free(label->text);
  return NULL;
}

/* "name (4711)", behind its process if there are several captures. Cut in the middle where it is
   too wide, because both are needed. NULL: no memory. */
static char *make_label(const prof_i_scope_list_capture *capture, const prof_trace *trace,
                        uint32_t index, size_t width) {
  char process[PROF_I_PLACE_TEXT_BYTES + 2], own[PROF_I_PLACE_TEXT_BYTES];
  prof_trace_thread thread = {.size = sizeof thread};
  prof_i_text_buffer whole = {0}, label = {0};
  put_process(process, sizeof process, capture, trace, index);
  prof_trace_thread_get(trace, index, &thread);
  prof_i_thread_text(&thread, own);
  prof_i_text_buffer_append_plain(&whole, process, strlen(process));
  prof_i_text_buffer_append_plain(&whole, own, strlen(own));
  if (whole.is_out_of_memory) return drop_label(&whole);
  if (prof_i_display_width(whole.text, whole.count) <= width) return whole.text;
  const size_t room = width - 3, end = prof_i_display_tail(whole.text, whole.count, room / 2);
  prof_i_text_buffer_append(&label, whole.text,
                            prof_i_display_cut(whole.text, whole.count, room - room / 2));
  prof_i_text_buffer_append_text(&label, "...");
  prof_i_text_buffer_append_text(&label, whole.text + whole.count - end);
  free(whole.text);
  return label.is_out_of_memory ? drop_label(&label) : label.text;
}

/* Columns of a line of text, but for the thread, the name and the arguments. */
static size_t fixed_width(const scope_list *l) {
  return (size_t)l->start_width + 2 * TIME_WIDTH + DEPTH_WIDTH + 5 * GAP;
}

/* At most a third of the room that the name and the arguments share with it. */
static size_t thread_width_most(const scope_list *l) {
  const size_t least = strlen("Thread"), all = l->options->width, used = fixed_width(l);
  const size_t third = all > used ? (all - used) / 3 : 0;
  if (all == 0) return SIZE_MAX;
  if (third > THREAD_WIDTH_MAX) return THREAD_WIDTH_MAX;
  return third < least ? least : third;
}

static bool make_labels(scope_list *l) {
  size_t count = 0;
  for (uint32_t t = 0; t < l->trace_count; t++) count += l->traces[t].trace->thread_count;
  l->labels = calloc(count + 1, sizeof *l->labels);
  l->first_labels = calloc(l->trace_count + 1, sizeof *l->first_labels);
  l->thread_width = (int)strlen("Thread");
  if (!l->labels || !l->first_labels) return false;
  for (uint32_t t = 0; t < l->trace_count; t++) {
    const prof_trace *const trace = l->traces[t].trace;
    l->first_labels[t] = (uint32_t)l->label_count;
    for (uint32_t i = 0; i < trace->thread_count; i++) {
      char *const label = make_label(&l->captures[t], trace, i, thread_width_most(l));
      if (!label) return false;
      l->labels[l->label_count++] = label;
      const int width = (int)prof_i_display_width(label, strlen(label));
      if (width > l->thread_width) l->thread_width = width;
    }
  }
  return true;
}

/* ---- arguments ---- */

static void put_word(prof_i_sink *sink, const char *word) { prof_i_sink_text(sink, word); }

static void put_format(prof_i_sink *sink, const prof_event *event, bool is_json) {
  char room[TEXT_BYTES];
  const size_t needed = prof_i_format_args(event, room, sizeof room);
  char *const longer = needed > sizeof room ? malloc(needed) : NULL;
  if (needed > sizeof room && !longer) {
    if (!sink->status)
      sink->status = prof_i_fail(PROF_E_NO_MEMORY, "no memory for %zu bytes of arguments", needed);
    return;
  }
  if (longer) prof_i_format_args(event, longer, needed);
  const char *const text = longer ? longer : room;
  if (is_json)
    prof_i_sink_string(sink, text, needed);
  else
    prof_i_sink_bytes(sink, text, needed);
  free(longer);
}

/* An object of pairs; of values without keys an array; of a format its text. */
static void put_json_args(prof_i_sink *sink, const prof_event *event) {
  if (event->args_kind == PROF_ARGS_FORMAT)
    put_format(sink, event, true);
  else
    prof_i_value_args(sink, event,
                      event->args_kind == PROF_ARGS_SHAPES ? prof_i_shape_count(event) : 0);
}

static bool arg_is_stack(const prof_trace_arg *arg) {
  const size_t bytes = strlen(PROF_STACK_KEY);
  return arg->key && arg->key_bytes == bytes && memcmp(arg->key, PROF_STACK_KEY, bytes) == 0;
}

/* Writes texts unescaped: the caller sanitizes the whole line. */
static void put_plain_value(prof_i_sink *sink, const prof_trace_arg *arg) {
  if (arg->type != PROF_ARG_STRING) {
    prof_i_value_text(sink, arg);
  } else if (prof_i_value_is_text_list(arg)) {
    put_word(sink, "[");
    prof_i_sink_bytes(sink, arg->value.text.data + 2, arg->value.text.bytes - 2);
  } else {
    prof_i_sink_bytes(sink, arg->value.text.data, arg->value.text.bytes);
  }
}

/* "key=value key=value". A stack is too long for a line. */
static void put_text_args(prof_i_sink *sink, const prof_event *event) {
  const uint32_t shapes = event->args_kind == PROF_ARGS_SHAPES ? prof_i_shape_count(event) : 0;
  if (event->args_kind == PROF_ARGS_FORMAT) {
    put_format(sink, event, false);
    return;
  }
  if (shapes) prof_i_value_shapes(sink, event, shapes);
  for (uint32_t i = shapes; i < event->arg_count; i++) {
    const prof_trace_arg *const arg = &event->args[i];
    if (arg_is_stack(arg)) continue;
    if (sink_used(sink)) put_word(sink, " ");
    if (arg->key) {
      prof_i_sink_bytes(sink, arg->key, arg->key_bytes);
      put_word(sink, "=");
    }
    put_plain_value(sink, arg);
  }
}

/* ---- text ---- */

/* Open: it has no end yet. Skipped: a jump left it, and its end is not known. */
static const char *scope_state(const prof_event *event) {
  if (event->kind == PROF_EVENT_OPEN) return "open";
  return event->flags & PROF_EVENT_SKIPPED ? "skipped" : "";
}

static void put_blanks(prof_i_sink *sink, int count) {
  for (int i = 0; i < count; i++) prof_i_sink_bytes(sink, " ", 1);
}

static void put_padded(prof_i_sink *sink, const char *text, int width, bool is_number) {
  const int count = width - (int)prof_i_display_width(text, strlen(text));
  if (is_number) put_blanks(sink, count);
  put_word(sink, text);
  if (!is_number) put_blanks(sink, count);
  put_word(sink, "  ");
}

static void put_time(scope_list *l, uint64_t ns) {
  char cell[64];
  prof_i_put_time(cell, sizeof cell, ns, 0);
  put_padded(&l->sink, cell, TIME_WIDTH, true);
}

static void put_start(scope_list *l, uint64_t ns) {
  char cell[64];
  snprintf(cell, sizeof cell, "%llu.%09llus", (unsigned long long)(ns / 1000000000),
           (unsigned long long)(ns % 1000000000));
  put_padded(&l->sink, cell, l->start_width, true);
}

/* Columns for the name and the arguments. 0: any. */
static size_t name_width(const scope_list *l) {
  const size_t used = fixed_width(l) + (size_t)l->thread_width, all = l->options->width;
  if (all == 0) return 0;
  return all > used + NAME_WIDTH_MIN ? all - used : NAME_WIDTH_MIN;
}

/* Any bytes as one line, cut with "..." where it is wider than that; 0: any. Returns its
   columns. */
static size_t put_fitting(scope_list *l, const char *text, size_t bytes, size_t width) {
  prof_i_text_buffer *const plain = &l->plain;
  const size_t taken = width && bytes > BYTES_OF_COLUMN * width ? BYTES_OF_COLUMN * width : bytes;
  plain->count = 0;
  prof_i_text_buffer_append_plain(plain, text, taken);
  if (!plain->text) return 0;
  size_t used = plain->count;
  const bool is_cut = taken < bytes || (width && prof_i_display_width(plain->text, used) > width);
  if (is_cut) used = prof_i_display_cut(plain->text, used, width > 3 ? width - 3 : 0);
  prof_i_sink_bytes(&l->sink, plain->text, used);
  if (is_cut) put_word(&l->sink, "...");
  return prof_i_display_width(plain->text, used) + (is_cut ? 3 : 0);
}

static void put_name(scope_list *l, const prof_event *event) {
  const size_t width = name_width(l);
  const char *const state = scope_state(event);
  size_t used = event->name_bytes ? put_fitting(l, event->name, event->name_bytes, width)
                                  : put_fitting(l, "(unnamed)", strlen("(unnamed)"), width);
  if (*state && (!width || used + strlen(state) + 3 <= width)) {
    put_word(&l->sink, " (");
    put_word(&l->sink, state);
    put_word(&l->sink, ")");
    used += strlen(state) + 3;
  }
  l->values.next = l->values.buffer;
  if (event->arg_count) put_text_args(&l->values, event);
  const size_t bytes = sink_used(&l->values);
  if (bytes && (!width || used + 6 < width)) {
    put_word(&l->sink, "  ");
    put_fitting(l, l->values.buffer, bytes, width ? width - used - 2 : 0);
  }
  put_word(&l->sink, "\n");
}

static void put_text_row(scope_list *l, uint32_t trace, const prof_event *event) {
  char depth[16];
  snprintf(depth, sizeof depth, "%u", event->depth);
  put_start(l, l->traces[trace].offset_ns + event->start_ns);
  put_time(l, event->duration_ns);
  put_time(l, event->self_ns);
  put_padded(&l->sink, depth, DEPTH_WIDTH, true);
  put_padded(&l->sink, l->labels[l->first_labels[trace] + event->thread], l->thread_width, false);
  put_name(l, event);
}

static void put_text_head(scope_list *l) {
  put_padded(&l->sink, "Start", l->start_width, true);
  put_padded(&l->sink, "Duration", TIME_WIDTH, true);
  put_padded(&l->sink, "Self", TIME_WIDTH, true);
  put_padded(&l->sink, "Depth", DEPTH_WIDTH, true);
  put_padded(&l->sink, "Thread", l->thread_width, false);
  put_word(&l->sink, "Name\n");
}

/* "10 of 3000 scopes" */
static void put_text_foot(scope_list *l, const prof_i_scopes_result *result) {
  prof_i_sink_u64(&l->sink, result->given_count);
  if (result->is_whole && result->passed_count > result->given_count) {
    put_word(&l->sink, " of ");
    prof_i_sink_u64(&l->sink, result->passed_count);
  }
  put_word(&l->sink, result->given_count == 1 && result->passed_count == 1 ? " scope" : " scopes");
  put_word(&l->sink, result->is_whole ? "\n" : "; there are more\n");
}

/* ---- CSV and JSON ---- */

/* put_data_row() has the values in this order. */
#define DATA_COLUMNS(X) \
  X("start_ns")         \
  X("duration_ns")      \
  X("self_ns")          \
  X("depth")            \
  X("level")            \
  X("name")             \
  X("category")         \
  X("thread")           \
  X("tid")              \
  X("pid")              \
  X("device")           \
  X("state")            \
  X("file")             \
  X("line")             \
  X("args")             \
  X("process")

static const char *const data_columns[] = {
#define TITLE(title) title,
    DATA_COLUMNS(TITLE)
#undef TITLE
};

/* The process is a column of several captures. */
static size_t data_column_count(const scope_list *l) {
  return sizeof data_columns / sizeof *data_columns - (l->captures[0].label ? 0 : 1);
}

/* A row of data: its columns come one after the other. */
typedef struct data_row {
  scope_list *list;
  size_t column;
} data_row;

static bool begin_column(data_row *row) {
  prof_i_sink *const sink = &row->list->sink;
  const bool is_json = row->list->options->form == PROF_I_SCOPE_LIST_JSON;
  const char *const name = data_columns[row->column];
  if (row->column) put_word(sink, ",");
  row->column++;
  if (!is_json) return false;
  prof_i_sink_string(sink, name, strlen(name));
  put_word(sink, ":");
  return true;
}

static void put_data_number(data_row *row, uint64_t value) {
  begin_column(row);
  prof_i_sink_u64(&row->list->sink, value);
}

static void put_data_text(data_row *row, const char *text, uint64_t bytes) {
  prof_i_sink *const sink = &row->list->sink;
  if (begin_column(row))
    prof_i_sink_string(sink, text, (size_t)bytes);
  else
    prof_i_sink_csv(sink, text, bytes);
}

static void put_data_args(data_row *row, const prof_event *event) {
  scope_list *const l = row->list;
  const bool is_json = begin_column(row);
  l->values.next = l->values.buffer;
  if (event->arg_count || event->args_kind == PROF_ARGS_FORMAT)
    put_json_args(&l->values, event);
  else if (is_json)
    put_word(&l->values, "{}");
  if (is_json)
    prof_i_sink_bytes(&l->sink, l->values.buffer, sink_used(&l->values));
  else
    prof_i_sink_csv(&l->sink, l->values.buffer, sink_used(&l->values));
}

static void put_data_row(scope_list *l, uint32_t number, const prof_event *event) {
  const prof_trace *const trace = l->traces[number].trace;
  const prof_i_scope_list_capture *const capture = &l->captures[number];
  const prof_i_trace_thread *const thread = &trace->threads[event->thread];
  const prof_i_site_info *const site = prof_i_trace_site(trace, event->site);
  const bool is_json = l->options->form == PROF_I_SCOPE_LIST_JSON;
  char device[DEVICE_BYTES];
  data_row row = {.list = l};
  prof_i_put_device(device, sizeof device, event->device);
  if (is_json) put_word(&l->sink, "{");
  put_data_number(&row, l->traces[number].offset_ns + event->start_ns);
  put_data_number(&row, event->duration_ns);
  put_data_number(&row, event->self_ns);
  put_data_number(&row, event->depth);
  put_data_number(&row, event->level);
  put_data_text(&row, event->name, event->name_bytes);
  put_data_text(&row, event->category, event->category_bytes);
  put_data_text(&row, thread->name, strlen(thread->name));
  put_data_number(&row, thread->tid);
  begin_column(&row);
  prof_i_sink_i64(&l->sink,
                  prof_i_trace_process(trace, event->thread).pid + (int64_t)capture->pid_offset);
  put_data_text(&row, device, strlen(device));
  put_data_text(&row, scope_state(event), strlen(scope_state(event)));
  put_data_text(&row, site->file.data, site->file.bytes);
  put_data_number(&row, site->file.bytes ? site->line : 0);
  put_data_args(&row, event);
  if (capture->label) put_data_text(&row, capture->label, strlen(capture->label));
  put_word(&l->sink, is_json ? "}\n" : "\r\n");
}

static void put_csv_head(scope_list *l) {
  for (size_t i = 0; i < data_column_count(l); i++) {
    if (i) put_word(&l->sink, ",");
    put_word(&l->sink, data_columns[i]);
  }
  put_word(&l->sink, "\r\n");
}

/* ---- the list ---- */

static int put_scope(void *user, uint32_t trace, const prof_event *event) {
  scope_list *const l = user;
  if (l->options->form == PROF_I_SCOPE_LIST_TEXT)
    put_text_row(l, trace, event);
  else
    put_data_row(l, trace, event);
  return flush_rows(l, FLUSH_BYTES);
}

static int write_list(scope_list *l, prof_i_scopes_result *result_out) {
  const bool is_text = l->options->form == PROF_I_SCOPE_LIST_TEXT;
  if (is_text) put_text_head(l);
  if (l->options->form == PROF_I_SCOPE_LIST_CSV) put_csv_head(l);
  int status = prof_i_traces_scopes(l->traces, l->trace_count, &l->options->scopes, put_scope, l,
                                    result_out);
  if (status == PROF_OK && is_text) put_text_foot(l, result_out);
  return status == PROF_OK ? flush_rows(l, 0) : status;
}

/* When the last capture ends. */
static uint64_t end_ns_of(const scope_list *l) {
  uint64_t end = 0;
  for (uint32_t i = 0; i < l->trace_count; i++) {
    const prof_trace *const trace = l->traces[i].trace;
    const prof_i_time_line *line = trace->timeline.lines;
    const uint64_t ns =
        l->traces[i].offset_ns + prof_i_timeline_ns(&trace->timeline, &line, trace->last);
    if (ns > end) end = ns;
  }
  return end;
}

int prof_i_scope_list(const prof_i_placed_trace *traces, const prof_i_scope_list_capture *captures,
                      uint32_t count, const prof_i_scope_list_options *options,
                      prof_i_scope_list_write write, void *user, prof_i_scopes_result *result_out) {
  scope_list l = {.traces = traces,
                  .captures = captures,
                  .trace_count = count,
                  .options = options,
                  .write = write,
                  .user = user};
  char end[64];
  *result_out = (prof_i_scopes_result){0};
  int status = prof_i_sink_open_memory(&l.sink, LINE_BYTES_MAX);
  if (status != PROF_OK) return status;
  status = prof_i_sink_open_memory(&l.values, LINE_BYTES_MAX);
  if (status != PROF_OK) {
    prof_i_sink_abandon(&l.sink);
    return status;
  }
  l.start_width =
      snprintf(end, sizeof end, "%llu.%09us", (unsigned long long)end_ns_of(&l) / 1000000000, 0u);
  status = make_labels(&l) ? write_list(&l, result_out)
                           : prof_i_fail(PROF_E_NO_MEMORY, "no memory for the names of threads");
  for (size_t i = 0; i < l.label_count; i++) free(l.labels[i]);
  free(l.labels);
  free(l.first_labels);
  if (l.plain.is_out_of_memory && status == PROF_OK)
    status = prof_i_fail(PROF_E_NO_MEMORY, "no memory for the text of a scope");
  free(l.plain.text);
  prof_i_sink_abandon(&l.values);
  prof_i_sink_abandon(&l.sink);
  return status;
}
