/* RAF's log, as its profiler writes it, in whole microseconds since 1970, with the category as tid:

       {"traceEvents":[{"name","cat","ph":"B"|"E","ts","pid","tid","args"}],"displayTimeUnit":"ms"}

   args is {"args_string":"a;b"} at both ends, one text that may be empty. RAF leaves three things
   to luck that are made right here. Texts are escaped, so that the log is JSON whatever they hold.
   Viewers pair an end with the last beginning of its line: so lines of other threads than the first
   have the thread behind the category, and scopes that overlap without nesting have a number. The
   log has scopes alone, and prof's account at its end. */
#include "raf.h"

#include <stdlib.h>

#include "../base/log.h"
#include "../reader/internal.h"
#include "../reader/shape.h"
#include "../reader/walk.h"
#include "loss_report.h"
#include "tids.h"
#include "value.h"

/* A scope whose end has not been written. */
typedef struct pending_end {
  uint64_t end_ns;
  prof_i_text name, category;
  uint32_t lane;
  char *args; /* own, escaped; NULL: "" */
  size_t args_bytes;
} pending_end;

typedef struct raf_writer {
  prof_i_sink *sink;
  prof_i_sink text; /* of one scope's arguments, in memory */
  prof_trace_info info;
  uint32_t thread;
  uint32_t first_thread; /* the one whose lines are called by category alone */
  uint64_t tid;
  uint64_t pid;
  prof_i_tids *ids;   /* of each thread */
  bool is_first;      /* no event has been written */
  pending_end *items; /* the one that ends first is the last */
  size_t count, room;
  size_t *lane_taken; /* by lane, room + 1: the number of the scope that found it taken last */
  size_t scope_number;
  prof_event event;
  char format_text[PROF_I_FORMAT_BYTES];
} raf_writer;

static bool text_equals(prof_i_text a, prof_i_text b) {
  return a.bytes == b.bytes && (a.data == b.data || memcmp(a.data, b.data, a.bytes) == 0);
}

/* ---- one line ---- */

static void put_line_name(raf_writer *r, const pending_end *scope) {
  prof_i_sink_bytes(r->sink, "\"", 1);
  prof_i_sink_string_part(r->sink, scope->category.data, scope->category.bytes);
  if (r->thread != r->first_thread) {
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
static void put_event_line(raf_writer *r, const pending_end *scope, const char *phase,
                           uint64_t ns) {
  prof_i_sink *const sink = r->sink;
  prof_i_sink_text(sink, r->is_first ? "\n{\"name\":" : ",\n{\"name\":");
  r->is_first = false;
  prof_i_sink_string(sink, scope->name.data, scope->name.bytes);
  prof_i_sink_text(sink, ",\"cat\":");
  prof_i_sink_string(sink, scope->category.data, scope->category.bytes);
  prof_i_sink_text(sink, phase);
  prof_i_sink_u64(sink, (r->info.start_unix_ns + ns) / 1000);
  prof_i_sink_text(sink, ",\"pid\":");
  prof_i_sink_u64(sink, r->pid);
  prof_i_sink_text(sink, ",\"tid\":");
  put_line_name(r, scope);
  prof_i_sink_text(sink, ",\"args\":{\"args_string\":\"");
  if (scope->args_bytes) prof_i_sink_bytes(sink, scope->args, scope->args_bytes);
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

static void put_formatted_args(raf_writer *r) {
  const size_t wanted = prof_i_format_args(&r->event, r->format_text, sizeof r->format_text);
  const size_t bytes = wanted < sizeof r->format_text ? wanted : sizeof r->format_text;
  prof_i_sink_string_part(&r->text, r->format_text, bytes);
}

/* RAF's args_string: the arguments, with ";" between them. */
static void put_args(raf_writer *r) {
  const prof_event *const event = &r->event;
  const prof_args_kind kind = (prof_args_kind)event->args_kind;
  const uint32_t shape_count = prof_i_shape_count(event);
  if (kind == PROF_ARGS_FORMAT && event->format_bytes > 0) put_formatted_args(r);
  for (uint32_t i = 0; kind != PROF_ARGS_FORMAT && i < event->arg_count; i++) {
    if (i > 0) prof_i_sink_bytes(&r->text, ";", 1);
    if (i < shape_count)
      put_tensor_shape(&r->text, &event->args[i]);
    else
      put_pair(&r->text, &event->args[i]);
  }
}

/* The event's arguments are the reader's until the next event; the scope's end needs them later. */
static int keep_args(raf_writer *r, pending_end *scope) {
  r->text.next = r->text.buffer;
  put_args(r);
  if (r->text.status != PROF_OK) return r->text.status;
  scope->args_bytes = (size_t)(r->text.next - r->text.buffer);
  if (scope->args_bytes == 0) return PROF_OK;
  scope->args = malloc(scope->args_bytes);
  if (scope->args == NULL)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for arguments of %zu bytes", scope->args_bytes);
  memcpy(scope->args, r->text.buffer, scope->args_bytes);
  return PROF_OK;
}

/* ---- beginnings and ends in the order of time ---- */

static void put_ends_until(raf_writer *r, uint64_t ns) {
  while (r->count > 0 && r->items[r->count - 1].end_ns <= ns) {
    const pending_end *const scope = &r->items[--r->count];
    put_event_line(r, scope, ",\"ph\":\"E\",\"ts\":", scope->end_ns);
    free(scope->args);
  }
}

/* The first lane of its category where it nests in all that is open. One look at each open scope:
   thousands may overlap. */
static uint32_t find_lane(raf_writer *r, const pending_end *scope) {
  r->scope_number++;
  for (size_t i = r->count; i > 0 && r->items[i - 1].end_ns < scope->end_ns; i--)
    if (text_equals(r->items[i - 1].category, scope->category))
      r->lane_taken[r->items[i - 1].lane] = r->scope_number;
  uint32_t lane = 0;
  /* no lane is past the number of open scopes */
  while (r->lane_taken[lane] == r->scope_number) lane++;
  return lane;
}

static bool pending_make_room(raf_writer *r) {
  if (r->count < r->room) return true;
  const size_t room = r->room == 0 ? 64 : 2 * r->room;
  pending_end *const items = realloc(r->items, room * sizeof *items);
  if (items == NULL) return false;
  r->items = items;
  size_t *const taken = realloc(r->lane_taken, (room + 1) * sizeof *taken);
  if (taken == NULL) return false;
  const size_t old = r->room == 0 ? 0 : r->room + 1;
  memset(taken + old, 0, (room + 1 - old) * sizeof *taken);
  r->lane_taken = taken;
  r->room = room;
  return true;
}

/* There is room. */
static void add_pending(raf_writer *r, const pending_end *scope) {
  size_t at = r->count++;
  for (; at > 0 && r->items[at - 1].end_ns < scope->end_ns; at--) r->items[at] = r->items[at - 1];
  r->items[at] = *scope;
}

static int raf_begin_thread(raf_writer *r, const prof_trace *trace, uint32_t index) {
  prof_trace_thread thread = {.size = sizeof thread};
  put_ends_until(r, UINT64_MAX);
  if (r->first_thread == UINT32_MAX) r->first_thread = index;
  r->thread = index;
  const int status = prof_trace_thread_get(trace, index, &thread);
  r->tid = thread.tid;
  r->pid = r->ids[index].is_elsewhere ? r->ids[index].pid : r->info.pid;
  return status;
}

static int raf_put_scope(raf_writer *r) {
  const prof_event *const event = &r->event;
  pending_end scope = {event->start_ns + event->duration_ns,
                       {event->name, event->name_bytes},
                       {event->category, event->category_bytes},
                       0,
                       NULL,
                       0};
  if (scope.name.bytes == 0) scope.name = (prof_i_text){"(unnamed)", 9};
  if (scope.category.bytes == 0) scope.category = (prof_i_text){"scope", 5};
  put_ends_until(r, event->start_ns);
  if (!pending_make_room(r))
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %zu open scopes", r->count + 1);
  const int status = keep_args(r, &scope);
  if (status != PROF_OK) return status;
  scope.lane = find_lane(r, &scope);
  put_event_line(r, &scope, ",\"ph\":\"B\",\"ts\":", event->start_ns);
  add_pending(r, &scope);
  return r->sink->status;
}

static int put_events(raf_writer *r, const prof_trace *trace, const prof_i_window *window,
                      prof_cursor *cursor) {
  int status;
  while ((status = prof_cursor_next(cursor, &r->event)) > 0) {
    if (r->event.kind != PROF_EVENT_SCOPE && r->event.kind != PROF_EVENT_OPEN) continue;
    if (!prof_i_window_contains(window, r->event.start_ns,
                                r->event.start_ns + r->event.duration_ns))
      continue;
    status = r->event.thread == r->thread ? PROF_OK : raf_begin_thread(r, trace, r->event.thread);
    if (status == PROF_OK) status = raf_put_scope(r);
    if (status != PROF_OK) return status;
  }
  put_ends_until(r, UINT64_MAX);
  return status;
}

/* What RAF's own log never has: what is missing, and why. Readers pass over a member that they do
   not know. */
static void put_loss_report(raf_writer *r, const prof_trace *trace) {
  prof_i_sink_text(r->sink, ",\n\"prof\":{\"recorded\":");
  prof_i_sink_u64(r->sink, r->info.event_count - r->info.open_count);
  prof_i_sink_text(r->sink, ",\"skipped\":");
  prof_i_sink_u64(r->sink, r->info.skipped_count);
  prof_i_sink_text(r->sink, ",\"unfinished\":");
  prof_i_sink_u64(r->sink, r->info.open_count);
  prof_i_sink_text(r->sink, ",\"unfinished_below\":");
  prof_i_sink_u64(r->sink, r->info.open_below_count);
  prof_i_sink_text(r->sink, ",\"stray_ends\":");
  prof_i_sink_u64(r->sink, r->info.stray_count);
  prof_i_sink_text(r->sink, ",\"lost\":");
  prof_i_loss_report_counts(r->sink, r->info.lost_count);
  prof_i_sink_text(r->sink, ",\"changes\":");
  prof_i_loss_report_changes(r->sink, trace);
  if (r->info.device_count) {
    prof_i_sink_text(r->sink, ",\"devices\":");
    prof_i_loss_report_devices(r->sink, trace, PROF_I_DEVICES_ALL);
  }
  if (r->info.note_count) {
    prof_i_sink_text(r->sink, ",\"notes\":");
    prof_i_loss_report_notes(r->sink, trace, r->info.note_count);
  }
  prof_i_sink_text(r->sink, "}");
}

int prof_i_raf_write(const prof_trace *trace, const prof_i_window *window, prof_i_sink *sink) {
  raf_writer *const r = calloc(1, sizeof *r);
  if (r == NULL)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory to write a log (%zu bytes)", sizeof *r);
  r->sink = sink;
  r->thread = r->first_thread = UINT32_MAX;
  r->is_first = true;
  r->info.size = sizeof r->info;
  prof_cursor *cursor = NULL;
  int status = prof_i_sink_open_memory(&r->text, SIZE_MAX);
  if (status == PROF_OK) status = prof_trace_info_get(trace, &r->info);
  if (status == PROF_OK) status = prof_i_tids_create(trace, r->info.thread_count, &r->ids);
  if (status == PROF_OK) status = prof_i_cursor_create(trace, &cursor);
  if (status == PROF_OK) status = prof_cursor_skip_before(cursor, window->from_ns);
  if (status == PROF_OK) {
    prof_i_sink_text(sink, "{\"traceEvents\":[");
    status = put_events(r, trace, window, cursor);
    prof_i_sink_text(sink, "\n],\"displayTimeUnit\":\"ms\"");
    put_loss_report(r, trace);
    prof_i_sink_text(sink, "}\n");
    if (status == PROF_OK) status = sink->status;
  }
  prof_i_cursor_destroy(cursor);
  prof_i_sink_abandon(&r->text);
  while (r->count > 0) free(r->items[--r->count].args);
  free(r->items);
  free(r->lane_taken);
  free(r->ids);
  free(r);
  return status;
}
