/* The paths of a capture: a walk over its events. See paths.h. */
#include "paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/display.h"
#include "../base/error.h"
#include "../reader/capture.h"
#include "../reader/internal.h"
#include "call_stacks.h"
#include "filter.h"

enum { KEY_ROOM = PROF_I_ARG_VALUE_ROOM, SHAPE_WORDS = 1024 };

/* An open scope of the current thread. */
typedef struct open_call {
  uint64_t start_ns, end_ns;
  uint32_t path, depth, row;
  bool is_counted; /* it has ended, and passes the filter */
  bool passes;     /* the filter */
  bool is_inside;  /* it, or an ended scope around it, began in the filter's time */
  bool is_vendor;  /* a call of a vendor's library: what it launched belongs to the scope around */
} open_call;

/* A device's event, and what launched it. */
typedef struct device_call {
  uint64_t launch_ns, duration_ns, self_ns;
  uint32_t launch_thread, row;
  bool passes;   /* the filter */
  bool is_scope; /* the device's side of a scope of the same name */
  uint32_t host_row;
} device_call;

/* The rows of a site's scopes that have the site's name and category: index plus 1; 0: not
   known. */
typedef struct site_rows {
  uint32_t host, device;
} site_rows;

/* An event of the walk. */
typedef struct walk_event {
  const prof_i_span *span;
  const prof_event *details; /* NULL: a plain scope, which has the texts of its site */
  uint32_t thread;
} walk_event;

typedef struct paths_walk {
  prof_i_paths *paths;
  const prof_trace *trace;
  prof_i_side side;
  prof_i_path_visit visit;
  void *user;
  site_rows *sites; /* by number */
  open_call *stack;
  uint32_t depth, stack_room;
  device_call *device_calls; /* by launch */
  uint32_t device_count, device_room, device_next;
  uint32_t thread;
  bool *is_stream;             /* by thread; NULL: the trace has no streams */
  bool is_simple;              /* no filter, no key and no streams: a plain scope is in no doubt */
  char (*key_rooms)[KEY_ROOM]; /* for the text of each key */
  prof_i_trace_filter filter;
  prof_event event; /* details of the event at hand */
} paths_walk;

/* ---- rows ---- */

/* Scopes whose name and category are those of their site are found without their texts. */
static int64_t event_row(paths_walk *w, const walk_event *event, bool is_device) {
  const uint32_t number = event->span->site;
  const prof_event *const details = event->details;
  uint32_t *const known = is_device ? &w->sites[number].device : &w->sites[number].host;
  if (!details && *known) return *known - 1;
  const prof_i_site_info *const site = prof_i_trace_site(w->trace, number);
  prof_i_text name = site->name, category = site->category;
  if (details) {
    name = (prof_i_text){details->name, details->name_bytes};
    category = (prof_i_text){details->category, details->category_bytes};
  }
  const bool is_known = name.data == site->name.data && category.data == site->category.data;
  if (is_known && *known) return *known - 1;
  const int64_t row = prof_i_paths_row(w->paths, name, category, is_device);
  if (row >= 0 && is_known) *known = (uint32_t)row + 1;
  return row;
}

/* ---- rows by other keys ---- */

static bool has_key(const prof_i_paths *p) { return p->key_count != 0; }

/* What keys need of an event: also of a plain scope, whose arguments are those of its site. */
static const prof_event *key_event(paths_walk *w, const walk_event *event) {
  prof_i_span span = *event->span;
  if (!span.record) span.record = prof_i_trace_site(w->trace, span.site)->record;
  prof_i_trace_expand(w->trace, event->thread, &span, &w->filter.event);
  return &w->filter.event;
}

static prof_i_text printed_text(const char *room, int bytes) {
  return (prof_i_text){room, bytes < KEY_ROOM ? (uint64_t)bytes : KEY_ROOM - 1};
}

/* The call site as "work.c:12". False: unknown. */
static bool line_text(const paths_walk *w, const walk_event *event, char *to,
                      prof_i_text *text_out) {
  const prof_i_site_info *const site = prof_i_trace_site(w->trace, event->span->site);
  if (!site->file.bytes || prof_i_is_c_function_site(site)) return false;
  *text_out = printed_text(to, snprintf(to, KEY_ROOM, "%.*s:%u", (int)site->file.bytes,
                                        site->file.data, (unsigned)site->line));
  return true;
}

/* The value of the event's argument. False: the event does not have it. */
static bool arg_text(paths_walk *w, const walk_event *event, char *to, prof_i_text *text_out) {
  const char *const key = w->paths->arg_key;
  const prof_trace_arg *const arg = prof_i_arg_find(key_event(w, event), key, strlen(key));
  if (arg) *text_out = prof_i_arg_value_text(arg, to);
  return arg != NULL;
}

static prof_i_text shape_text(paths_walk *w, const walk_event *event, char *to) {
  uint64_t words[SHAPE_WORDS];
  const size_t count = prof_i_shape_words(key_event(w, event), words, SHAPE_WORDS);
  const size_t bytes = prof_i_shape_text(words, count, to, KEY_ROOM);
  return (prof_i_text){to, bytes < KEY_ROOM ? bytes : KEY_ROOM};
}

/* Work of a device is its launching thread's. */
static uint32_t key_thread(const paths_walk *w, const walk_event *event, bool is_device) {
  const uint32_t launched = is_device ? event->details->launch.thread : UINT32_MAX;
  return launched < w->trace->thread_count ? launched : event->thread;
}

/* Not the numbers: these differ from run to run. */
static prof_i_text thread_text(const paths_walk *w, uint32_t thread, char *to) {
  prof_trace_thread of = {.size = sizeof of};
  (void)prof_trace_thread_get(w->trace, thread, &of); /* no name without it */
  return printed_text(to, snprintf(to, KEY_ROOM, "%s", of.name));
}

static prof_i_text rank_text(const paths_walk *w, uint32_t thread, char *to) {
  const int32_t rank = prof_i_trace_process(w->trace, thread).rank;
  return printed_text(to, rank < 0 ? 0 : snprintf(to, KEY_ROOM, "%d", rank));
}

/* The value of a key; `to` has room for it. False: the event does not have it. */
static bool key_text(paths_walk *w, const walk_event *event, bool is_device, uint32_t key, char *to,
                     prof_i_text *text_out) {
  const uint32_t thread = key_thread(w, event, is_device);
  if (key == PROF_I_GROUP_LINE) return line_text(w, event, to, text_out);
  if (key == PROF_I_GROUP_ARG) return arg_text(w, event, to, text_out);
  const prof_i_site_info *const site = prof_i_trace_site(w->trace, event->span->site);
  const prof_event *const details = event->details;
  const prof_device host = {PROF_DEVICE_CPU, 0};
  if (key == PROF_GROUP_NAME)
    *text_out = details ? (prof_i_text){details->name, details->name_bytes} : site->name;
  else if (key == PROF_GROUP_CATEGORY)
    *text_out =
        details ? (prof_i_text){details->category, details->category_bytes} : site->category;
  else if (key == PROF_GROUP_DEVICE)
    *text_out = printed_text(to, prof_i_put_device(to, KEY_ROOM, details ? details->device : host));
  else if (key == PROF_GROUP_SHAPE)
    *text_out = shape_text(w, event, to);
  else if (key == PROF_GROUP_THREAD)
    *text_out = thread_text(w, thread, to);
  else if (key == PROF_GROUP_PROCESS)
    *text_out = prof_i_trace_process(w->trace, thread).name;
  else
    *text_out = rank_text(w, thread, to);
  return true;
}

/* The scope's row. *has_key_out: whether the scope has the arguments and lines that rows are
   grouped by. Negative: no memory. */
static int64_t scope_row(paths_walk *w, const walk_event *event, bool is_device,
                         bool *has_key_out) {
  static const prof_i_text empty = {"", 0};
  prof_i_text texts[PROF_I_GROUP_KEYS_MAX] = {empty, empty};
  *has_key_out = true;
  if (!has_key(w->paths)) return event_row(w, event, is_device);
  for (uint32_t i = 0; i < w->paths->key_count; i++)
    *has_key_out &= key_text(w, event, is_device, w->paths->keys[i], w->key_rooms[i], &texts[i]);
  for (uint32_t i = 0; i < w->paths->key_count && !*has_key_out; i++) texts[i] = empty;
  return prof_i_paths_row_of(w->paths, texts, is_device);
}

/* ---- paths ---- */

/* The path of a host scope with this row. PROF_I_NO_PATH: no memory. */
static inline uint32_t find_scope_path(paths_walk *w, uint32_t parent, uint32_t row) {
  return prof_i_paths_is_deepest(w->paths, parent)
             ? prof_i_paths_deeper(w->paths, parent, w->side)
             : prof_i_paths_below(w->paths, parent, row, w->side);
}

static inline bool count_call(paths_walk *w, uint32_t path, uint64_t duration_ns, uint64_t self_ns,
                              bool is_outermost) {
  prof_i_path_sums *const sums = &w->paths->items[path].sums[w->side];
  sums->calls_count++;
  if (is_outermost || !w->paths->items[path].is_deeper) sums->total_ns += duration_ns;
  sums->self_ns += self_ns;
  return !w->visit || w->visit(w->user, path, duration_ns, self_ns, is_outermost);
}

/* ---- the open scopes of a thread ---- */

/* The innermost scope that contains the time span. Scopes may cross. */
static inline const open_call *enclosing_call(paths_walk *w, uint64_t start_ns, uint64_t end_ns,
                                              uint32_t depth) {
  while (w->depth > 0) {
    const open_call *const top = &w->stack[w->depth - 1];
    if (top->end_ns > start_ns || (top->end_ns == start_ns && top->depth < depth)) break;
    w->depth--;
  }
  for (uint32_t i = w->depth; i-- > 0;) {
    const open_call *const call = &w->stack[i];
    if (call->end_ns >= end_ns && (call->end_ns > start_ns || call->depth < depth)) return call;
  }
  return NULL;
}

static inline bool push_call(paths_walk *w, const walk_event *event, uint32_t path, bool passes,
                             bool is_inside) {
  const prof_i_span *const span = event->span;
  if (w->depth == w->stack_room &&
      !prof_i_make_room((void **)&w->stack, &w->stack_room, w->depth, sizeof *w->stack))
    return false;
  w->stack[w->depth++] =
      (open_call){.start_ns = span->start_ns,
                  .end_ns = span->start_ns + span->duration_ns,
                  .path = path,
                  .depth = span->depth,
                  .row = w->paths->items[path].row,
                  .is_counted = passes && span->kind == PROF_EVENT_SCOPE,
                  .passes = passes,
                  .is_inside = is_inside,
                  .is_vendor = event->details && (event->details->flags & PROF_EVENT_CALL)};
  return true;
}

/* Whether a counted call of the path's row is around the one in `around`. */
static bool is_in_call_of(const paths_walk *w, const open_call *around, uint32_t path,
                          uint64_t end_ns) {
  const prof_i_path *const of = &w->paths->items[path];
  for (uint32_t i = around ? (uint32_t)(around - w->stack) + 1 : 0; i-- > 0;) {
    const open_call *const call = &w->stack[i];
    const bool is_same = of->is_deeper ? call->path == path : call->row == of->row;
    if (is_same && call->is_counted && call->end_ns >= end_ns) return true;
  }
  return false;
}

/* ---- the filter ---- */

static bool event_passes(paths_walk *w, const walk_event *event) {
  return !w->paths->filter ||
         prof_i_trace_filter_takes_span(&w->filter, event->thread, event->span);
}

static bool device_event_passes(paths_walk *w, const walk_event *event) {
  return w->filter.takes_thread[key_thread(w, event, true)] && event_passes(w, event);
}

static bool is_in_time(const paths_walk *w, const prof_i_span *span) {
  return span->start_ns >= w->filter.window.from_ns && span->start_ns < w->filter.window.to_ns;
}

/* Whether it, or a scope around it, began in the filter's time. */
static bool is_inside_time(const paths_walk *w, const prof_i_span *span, const open_call *around) {
  return (span->kind == PROF_EVENT_SCOPE && is_in_time(w, span)) || (around && around->is_inside);
}

/* ---- devices ---- */

static int device_call_compare(const void *x, const void *y) {
  const device_call *const a = x, *const b = y;
  if (a->launch_thread != b->launch_thread) return a->launch_thread < b->launch_thread ? -1 : 1;
  return (a->launch_ns > b->launch_ns) - (a->launch_ns < b->launch_ns);
}

static bool keep_device_call(paths_walk *w, const walk_event *event) {
  const prof_event_launch *const launch = &event->details->launch;
  if (launch->record == PROF_RECORD_ANNOTATION) return true;
  bool is_keyed;
  const int64_t row = scope_row(w, event, true, &is_keyed),
                host_row = scope_row(w, event, false, &is_keyed);
  if (row < 0 || host_row < 0) return false;
  if (!prof_i_make_room((void **)&w->device_calls, &w->device_room, w->device_count,
                        sizeof *w->device_calls))
    return false;
  w->device_calls[w->device_count++] =
      (device_call){.launch_ns = launch->start_ns,
                    .duration_ns = event->span->duration_ns,
                    .self_ns = event->span->self_ns,
                    .launch_thread = launch->thread,
                    .row = (uint32_t)row,
                    .host_row = (uint32_t)host_row,
                    .passes = is_keyed && device_event_passes(w, event),
                    .is_scope = launch->record == 0};
  return true;
}

/* The scope that launched it: of that name and start, or the innermost one at that time. */
static uint32_t launching_path(const paths_walk *w, const device_call *call) {
  for (uint32_t i = w->depth; call->is_scope && i-- > 0;)
    if (w->stack[i].start_ns == call->launch_ns && w->stack[i].row == call->host_row &&
        !w->stack[i].is_vendor)
      return w->stack[i].path;
  for (uint32_t i = w->depth; i-- > 0;)
    if (w->stack[i].end_ns >= call->launch_ns && !w->stack[i].is_vendor) return w->stack[i].path;
  return 0;
}

/* Adds what the thread launched before this time. */
static bool put_launched(paths_walk *w, uint64_t before_ns) {
  for (; w->device_next < w->device_count; w->device_next++) {
    const device_call *const call = &w->device_calls[w->device_next];
    if (call->launch_thread > w->thread ||
        (call->launch_thread == w->thread && call->launch_ns >= before_ns))
      return true;
    const uint32_t parent = call->launch_thread == w->thread ? launching_path(w, call) : 0;
    const uint32_t path = prof_i_paths_below(w->paths, parent, call->row, w->side);
    if (!path) return false;
    if (call->passes &&
        !count_call(w, path, call->duration_ns, call->self_ns, !w->paths->items[path].is_inner))
      return false;
  }
  return true;
}

/* What the last thread launched, and what no thread of the capture did. */
static bool put_rest(paths_walk *w) {
  if (!put_launched(w, UINT64_MAX)) return false;
  w->thread = UINT32_MAX;
  w->depth = 0;
  return put_launched(w, UINT64_MAX);
}

/* ---- events ---- */

static bool is_device_event(const walk_event *event) {
  return event->span->kind == PROF_EVENT_SCOPE && event->details &&
         (event->details->flags & PROF_EVENT_ON_DEVICE);
}

/* is_simple is a constant, so that the compiler specialises the function: w->is_simple is set, and
   the event is a plain scope of a site whose row is known. */
static inline __attribute__((always_inline)) bool put_scope(paths_walk *w, const walk_event *event,
                                                            bool is_simple) {
  const prof_i_span *const span = event->span;
  const uint32_t flags = !is_simple && event->details ? event->details->flags : 0;
  if (flags & PROF_EVENT_SKIPPED) return true;
  if (!is_simple && w->is_stream && w->is_stream[event->thread]) return true; /* no launch */
  bool is_keyed = true;
  const int64_t row =
      is_simple ? w->sites[span->site].host - INT64_C(1) : scope_row(w, event, false, &is_keyed);
  if (row < 0) return false;
  const uint64_t end_ns = span->start_ns + span->duration_ns;
  const open_call *const around = enclosing_call(w, span->start_ns, end_ns, span->depth);
  const uint32_t path = find_scope_path(w, around ? around->path : 0, (uint32_t)row);
  if (!path) return false;
  const bool is_of_thread = is_simple || w->filter.takes_thread[event->thread];
  const bool passes = is_simple || (is_keyed && is_of_thread && event_passes(w, event));
  const bool is_inside = is_simple || is_inside_time(w, span, around);
  const bool is_outermost =
      !w->paths->items[path].is_inner || !is_in_call_of(w, around, path, end_ns);
  const bool has_ended = is_simple || span->kind == PROF_EVENT_SCOPE;
  if (has_ended && is_inside && is_of_thread &&
      (is_simple || span->start_ns >= w->filter.window.from_ns))
    w->paths->host_self_ns[w->side] += span->self_ns;
  if (has_ended && passes && !count_call(w, path, span->duration_ns, span->self_ns, is_outermost))
    return false;
  const bool is_own_time = !(flags & (PROF_EVENT_ASYNC | PROF_EVENT_OTHER_THREAD));
  return !is_own_time || push_call(w, event, path, passes, is_inside);
}

static void put_alloc(paths_walk *w, const walk_event *event) {
  const uint64_t start_ns = event->span->start_ns;
  const open_call *const around = enclosing_call(w, start_ns, start_ns, UINT32_MAX);
  if (around ? around->passes : !w->paths->filter)
    w->paths->items[around ? around->path : 0].sums[w->side].allocated_bytes +=
        event->details->memory.bytes;
}

static bool begin_thread(paths_walk *w, uint32_t thread) {
  if (thread == w->thread) return true;
  if (!put_launched(w, UINT64_MAX)) return false;
  w->thread = thread;
  w->depth = 0;
  return true;
}

static bool put_event(paths_walk *w, const walk_event *event) {
  const uint32_t kind = event->span->kind;
  if (!begin_thread(w, event->thread)) return false;
  if (!put_launched(w, event->span->start_ns)) return false;
  if (is_device_event(event)) return true;
  if (kind == PROF_EVENT_SCOPE || kind == PROF_EVENT_OPEN) return put_scope(w, event, false);
  if (kind == PROF_EVENT_MEMORY && event->details &&
      event->details->memory.verb == PROF_MEMORY_ALLOC)
    put_alloc(w, event);
  return true;
}

static bool put_device_event(paths_walk *w, const walk_event *event) {
  return !is_device_event(event) || keep_device_call(w, event);
}

typedef bool (*put_callback)(paths_walk *w, const walk_event *event);

static inline bool is_simple_scope(const paths_walk *w, const prof_i_span *span) {
  return w->is_simple && !span->record && span->kind == PROF_EVENT_SCOPE &&
         w->sites[span->site].host;
}

/* Spans are in the order of the cursor: the next one is the last. */
static bool put_spans(paths_walk *w, put_callback put, uint32_t thread, const prof_i_span *spans,
                      size_t count) {
  walk_event event = {.thread = thread};
  if (w->is_simple && !begin_thread(w, thread)) return false;
  for (size_t i = count; i-- > 0;) {
    event.span = &spans[i];
    event.details = NULL;
    if (is_simple_scope(w, &spans[i])) {
      if (!put_scope(w, &event, true)) return false;
      continue;
    }
    if (spans[i].record) {
      memset(&w->event.memory, 0, sizeof w->event.memory); /* zero for most events */
      prof_i_trace_expand(w->trace, thread, &spans[i], &w->event);
      event.details = &w->event;
    }
    if (!put(w, &event)) return false;
  }
  return true;
}

static int walk_events(paths_walk *w, put_callback put) {
  prof_cursor *cursor = NULL;
  int status = prof_i_cursor_create(w->trace, &cursor);
  while (status == PROF_OK) {
    uint32_t thread;
    size_t count;
    const int filled = prof_i_cursor_fill(cursor);
    if (filled != 1) {
      status = filled;
      break;
    }
    const prof_i_span *const spans = prof_i_cursor_ready(cursor, &thread, &count);
    if (!put_spans(w, put, thread, spans, count))
      status = prof_i_fail(PROF_E_NO_MEMORY, "no memory for more paths");
    prof_i_cursor_take(cursor, count);
  }
  prof_i_cursor_destroy(cursor);
  return status;
}

static bool find_streams(paths_walk *w) {
  for (uint32_t i = 0; i < w->trace->thread_count; i++) {
    prof_trace_thread thread = {.size = sizeof thread};
    if (prof_trace_thread_get(w->trace, i, &thread) != PROF_OK || !thread.is_stream) continue;
    if (!w->is_stream) w->is_stream = calloc(w->trace->thread_count, sizeof *w->is_stream);
    if (!w->is_stream) return false;
    w->is_stream[i] = true;
  }
  return true;
}

int prof_i_paths_add(prof_i_paths *paths, const prof_trace *trace, prof_i_side side,
                     prof_i_path_visit visit, void *user) {
  paths_walk w = {.paths = paths, .trace = trace, .side = side, .visit = visit, .user = user};
  int status = PROF_OK;
  w.sites = calloc(prof_i_trace_site_count(trace), sizeof *w.sites);
  if (has_key(paths)) w.key_rooms = calloc(paths->key_count, sizeof *w.key_rooms);
  if (!w.sites || (has_key(paths) && !w.key_rooms) || !prof_i_paths_root(paths) ||
      !find_streams(&w) || prof_i_trace_filter_init(&w.filter, trace, paths->filter) != PROF_OK)
    status = prof_i_fail(PROF_E_NO_MEMORY, "no memory for a capture's call sites");
  if (status == PROF_OK && w.is_stream) status = walk_events(&w, put_device_event);
  if (w.device_count > 1)
    qsort(w.device_calls, w.device_count, sizeof *w.device_calls, device_call_compare);
  w.is_simple = !paths->filter && !has_key(paths) && !w.is_stream;
  if (status == PROF_OK) status = walk_events(&w, put_event);
  if (status == PROF_OK && !put_rest(&w))
    status = prof_i_fail(PROF_E_NO_MEMORY, "no memory for a device's paths");
  prof_i_trace_filter_fini(&w.filter);
  free(w.sites);
  free(w.key_rooms);
  free(w.is_stream);
  free(w.stack);
  free(w.device_calls);
  return status;
}
