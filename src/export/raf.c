/* RAF's log, as its profiler writes it, in whole microseconds since 1970, with the category as tid:

       {"traceEvents":[{"name","cat","ph":"B"|"E","ts","pid","tid","args"}],"displayTimeUnit":"ms"}

   args is {"args_string":"a;b"} at both ends, one text that may be empty. The log has scopes only,
   and at its end what is missing and why. It differs from RAF's in three things. Texts are escaped,
   so the log is JSON whatever they hold. Viewers pair an end with the last begin of its line, so
   the lines of all threads but the first have the thread behind the category. For the same reason,
   scopes that overlap without nesting have a number behind it. */
#include <stdlib.h>
#include <string.h>

#include "../base/error.h"
#include "../reader/internal.h"
#include "../sink/sink.h"
#include "exporter.h"
#include "internal.h"
#include "names.h"

/* A scope's arguments, escaped, between its begin and its end. */
typedef struct kept_args {
  size_t bytes;
  char text[];
} kept_args;

typedef struct raf_writer {
  prof_i_sink *sink;
  prof_i_sink text;      /* of one scope's arguments, in memory */
  uint32_t first_thread; /* the one whose lines have the category alone; UINT32_MAX: none yet */
  uint64_t tid, pid;     /* of the thread at hand */
  char format_text[PROF_I_FORMAT_BYTES];
} raf_writer;

/* ---- one line ---- */

static void put_line_name(const prof_i_export *run, const prof_i_export_event *scope) {
  const raf_writer *const r = run->state;
  if (run->thread == r->first_thread && scope->lane == 0) {
    prof_i_sink_string(r->sink, scope->category.data, scope->category.bytes);
    return;
  }
  prof_i_sink_bytes(r->sink, "\"", 1);
  prof_i_sink_string_part(r->sink, scope->category.data, scope->category.bytes);
  if (run->thread != r->first_thread) {
    prof_i_sink_text(r->sink, " (thread ");
    prof_i_sink_u64(r->sink, r->tid);
    prof_i_sink_text(r->sink, ")");
  }
  if (scope->lane > 0) {
    prof_i_sink_text(r->sink, " #");
    prof_i_sink_u64(r->sink, scope->lane + 1);
  }
  prof_i_sink_bytes(r->sink, "\"", 1);
}

/* {"name":"n","cat":"c","ph":"B","ts":1,"pid":2,"tid":"c","args":{"args_string":"a;b"}} */
static void put_event_line(const prof_i_export *run, const prof_i_export_event *scope,
                           const char *separator) {
  const raf_writer *const r = run->state;
  const kept_args *const args = scope->kept;
  const bool is_begin = scope->phase == PROF_I_PHASE_BEGIN;
  prof_i_sink *const sink = r->sink;
  prof_i_sink_text(sink, separator);
  prof_i_sink_string(sink, scope->name.data, scope->name.bytes);
  prof_i_sink_text(sink, ",\"cat\":");
  prof_i_sink_string(sink, scope->category.data, scope->category.bytes);
  prof_i_sink_text(sink, is_begin ? ",\"ph\":\"B\",\"ts\":" : ",\"ph\":\"E\",\"ts\":");
  prof_i_sink_u64(sink,
                  (run->info.start_unix_ns + (is_begin ? scope->start_ns : scope->end_ns)) / 1000);
  prof_i_sink_text(sink, ",\"pid\":");
  prof_i_sink_u64(sink, r->pid);
  prof_i_sink_text(sink, ",\"tid\":");
  put_line_name(run, scope);
  prof_i_sink_text(sink, ",\"args\":{\"args_string\":\"");
  if (args) prof_i_sink_bytes(sink, args->text, args->bytes);
  prof_i_sink_text(sink, "\"}}");
}

/* ---- arguments ---- */

static void put_pair(prof_i_sink *text, const prof_trace_arg *arg) {
  if (arg->key != NULL) {
    prof_i_sink_string_part(text, arg->key, arg->key_bytes);
    prof_i_sink_text(text, ": ");
  }
  prof_i_value_text(text, arg);
}

static void put_tensor_shape(prof_i_sink *text, const prof_trace_arg *arg) {
  prof_i_sink_text(text, prof_i_value_dtype(arg));
  prof_i_value_dims(text, arg);
}

static void put_formatted_args(raf_writer *r, const prof_event *event) {
  const size_t wanted = prof_i_format_args(event, r->format_text, sizeof r->format_text);
  const size_t bytes = wanted < sizeof r->format_text ? wanted : sizeof r->format_text;
  prof_i_sink_string_part(&r->text, r->format_text, bytes);
}

/* RAF's args_string: the arguments, with ";" between them. */
static void put_args(raf_writer *r, const prof_event *event) {
  const prof_args_kind kind = (prof_args_kind)event->args_kind;
  const uint32_t shape_count = prof_i_shape_count(event);
  if (kind == PROF_ARGS_FORMAT && event->format_bytes > 0) put_formatted_args(r, event);
  for (uint32_t i = 0; kind != PROF_ARGS_FORMAT && i < event->arg_count; i++) {
    if (i > 0) prof_i_sink_bytes(&r->text, ";", 1);
    if (i < shape_count)
      put_tensor_shape(&r->text, &event->args[i]);
    else
      put_pair(&r->text, &event->args[i]);
  }
}

/* The event's arguments are gone when the scope ends. */
static int keep_args(raf_writer *r, prof_i_export_event *scope) {
  r->text.next = r->text.buffer;
  put_args(r, scope->event);
  if (r->text.status != PROF_OK) return r->text.status;
  const size_t bytes = (size_t)(r->text.next - r->text.buffer);
  if (bytes == 0) return PROF_OK;
  kept_args *const args = malloc(sizeof *args + bytes);
  if (args == NULL)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for arguments of %zu bytes", bytes);
  args->bytes = bytes;
  memcpy(args->text, r->text.buffer, bytes);
  scope->kept = args;
  return PROF_OK;
}

/* What is missing, and why. RAF's own log never has it. Readers skip a member that they do not
   know. */
static void put_loss_report(const prof_i_export *run) {
  const prof_trace *const trace = run->trace;
  const prof_trace_info *const info = &run->info;
  prof_i_sink *const sink = run->sink;
  prof_i_sink_text(sink, ",\n\"prof\":{\"recorded\":");
  prof_i_sink_u64(sink, info->event_count - info->open_count);
  prof_i_sink_key_u64(sink, "skipped", info->skipped_count);
  prof_i_sink_key_u64(sink, "unfinished", info->open_count);
  prof_i_sink_key_u64(sink, "unfinished_below", info->open_below_count);
  prof_i_sink_key_u64(sink, "stray_ends", info->stray_count);
  prof_i_sink_key(sink, "lost");
  prof_i_loss_report_counts(sink, info->lost_count);
  prof_i_sink_key(sink, "changes");
  prof_i_loss_report_changes(sink, trace);
  if (info->device_count) {
    prof_i_sink_key(sink, "devices");
    prof_i_loss_report_devices(sink, trace, PROF_I_DEVICES_ALL);
  }
  if (info->note_count) {
    prof_i_sink_key(sink, "notes");
    prof_i_loss_report_notes(sink, trace, info->note_count);
  }
  prof_i_sink_text(sink, "}");
}

/* ---- the exporter ---- */

static int raf_begin(prof_i_export *run) {
  raf_writer *const r = run->state;
  r->sink = run->sink;
  r->first_thread = UINT32_MAX;
  const int status = prof_i_sink_open_memory(&r->text, SIZE_MAX);
  prof_i_sink_text(run->sink, "{\"traceEvents\":[");
  return status;
}

static int raf_begin_thread(prof_i_export *run, const prof_trace_thread *thread) {
  raf_writer *const r = run->state;
  const prof_i_tids *const ids = &run->tids[run->thread];
  r->tid = thread->tid;
  r->pid = ids->is_elsewhere ? ids->pid : run->info.pid;
  return PROF_OK;
}

static int raf_put_scope(prof_i_export *run, prof_i_export_event *scope) {
  raf_writer *const r = run->state;
  const bool is_first = r->first_thread == UINT32_MAX;
  if (is_first) r->first_thread = run->thread;
  const int status = scope->phase == PROF_I_PHASE_BEGIN ? keep_args(r, scope) : PROF_OK;
  if (status == PROF_OK) put_event_line(run, scope, is_first ? "\n{\"name\":" : ",\n{\"name\":");
  return status;
}

static int raf_end(prof_i_export *run) {
  prof_i_sink_text(run->sink, "\n],\"displayTimeUnit\":\"ms\"");
  put_loss_report(run);
  prof_i_sink_text(run->sink, "}\n");
  return PROF_OK;
}

static void raf_destroy(prof_i_export *run) {
  raf_writer *const r = run->state;
  if (r->text.buffer) prof_i_sink_abandon(&r->text);
}

const prof_i_exporter prof_i_raf_exporter = {.name = "raf",
                                             .format = PROF_FORMAT_RAF,
                                             .abilities = PROF_I_EXPORT_CUT | PROF_I_EXPORT_TEXT,
                                             .order = PROF_I_ORDER_TIME,
                                             .has_category_tracks = true,
                                             .event_kinds = PROF_I_KIND(SCOPE) | PROF_I_KIND(OPEN),
                                             .lacks_launches = true,
                                             .state_bytes = sizeof(raf_writer),
                                             .begin = raf_begin,
                                             .thread = raf_begin_thread,
                                             .event = raf_put_scope,
                                             .end = raf_end,
                                             .destroy = raf_destroy};
