/* prof_trace_arrow(): exports the events of a trace as an Arrow stream, in batches. Whatever the
   size of the trace, it holds one batch, the distinct texts and the launches of devices. */
#include "arrow.h"

#include <errno.h>
#include <math.h>
#include <prof/python.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/display.h"
#include "../base/error.h"
#include "../base/options.h"
#include "../base/process.h"
#include "../reader/capture.h"
#include "../reader/internal.h"
#include "../sink/sink.h"
#include "internal.h"

enum {
  BATCH_ROWS = 65536,
  BATCH_ROWS_MAX = 1 << 20,
  ARGS_BYTES = 32 << 20,    /* a batch ends when its arguments have this size */
  ARGS_BYTES_MAX = 1 << 30, /* of a batch */
  FORMATTED_BYTES = 4096,   /* of one formatted text; prof events has the same limit */
  DEVICE_BYTES = 48,
  ERROR_BYTES = 512
};

/* ---- links from launches to work of devices ---- */

/* Numbers that connect work of devices with the scopes that launched it: the column "correlation".
   The rows of a stream may come before or after those of the launching thread. So these threads are
   walked once before the first row. */

/* The scopes that launched work of devices, and that work. Initialize with zeros. */
typedef struct arrow_links {
  prof_i_work_links work; /* scope_id: counts the scopes of threads that launched work */
  uint64_t *scopes;       /* the sorted scope_id's */
  uint32_t count, next;
  uint64_t scope_count; /* scopes so far */
  uint32_t thread;      /* of the last scope */
  bool is_launching;    /* this thread launched work */
} arrow_links;

static bool is_launching_thread(const arrow_links *l, uint32_t thread) {
  uint32_t first;
  return prof_i_launches_of_thread(&l->work.launches, thread, &first) > 0;
}

static bool is_scope(const prof_event *event) {
  return event->kind == PROF_EVENT_SCOPE || event->kind == PROF_EVENT_OPEN;
}

static int walk_thread(arrow_links *l, const prof_trace *trace, uint32_t thread) {
  prof_cursor *cursor = NULL;
  prof_event event = {0};
  int status = prof_i_cursor_create_of(trace, thread, 0, &cursor);
  prof_i_work_links_thread(&l->work, thread);
  while (status >= 0 && (status = prof_cursor_next(cursor, &event)) == 1)
    if (is_scope(&event) && !(event.flags & PROF_EVENT_ON_DEVICE) &&
        !prof_i_work_links_scope(&l->work, &event, ++l->scope_count))
      status = prof_i_fail(PROF_E_NO_MEMORY, "no memory for the open scopes of thread %u", thread);
  prof_i_cursor_destroy(cursor);
  return status;
}

static int scope_compare(const void *a, const void *b) {
  const uint64_t *const x = a, *const y = b;
  return (*x > *y) - (*x < *y);
}

/* Sorts the numbers of the scopes that launched work. Each stays once. */
static int list_scopes(arrow_links *l) {
  const uint32_t count = l->work.launches.count;
  uint32_t all = 0;
  l->scopes = malloc((size_t)count * sizeof *l->scopes);
  if (!l->scopes) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %u launches", count);
  for (uint32_t i = 0; i < count; i++)
    if (l->work.links[i].scope_id) l->scopes[all++] = l->work.links[i].scope_id;
  if (all > 1) qsort(l->scopes, all, sizeof *l->scopes, scope_compare);
  for (uint32_t i = 0; i < all; i++)
    if (i == 0 || l->scopes[i] != l->scopes[i - 1]) l->scopes[l->count++] = l->scopes[i];
  return PROF_OK;
}

/* Returns a status with its text. Call fini also after a failure. */
static int links_init(arrow_links *l, const prof_trace *trace) {
  int status = prof_i_work_links_init(&l->work, trace);
  l->thread = UINT32_MAX;
  if (l->work.launches.count == 0) return status;
  for (uint32_t i = 0; status == PROF_OK && i < trace->thread_count; i++)
    if (is_launching_thread(l, i)) status = walk_thread(l, trace, i);
  prof_i_work_links_thread(&l->work, UINT32_MAX);
  l->scope_count = 0;
  return status == PROF_OK ? list_scopes(l) : status;
}

static void links_fini(arrow_links *l) {
  free(l->scopes);
  prof_i_work_links_fini(&l->work);
}

static uint64_t number_of_scope(arrow_links *l, uint32_t thread) {
  if (l->thread != thread) {
    l->thread = thread;
    l->is_launching = is_launching_thread(l, thread);
  }
  if (!l->is_launching) return 0;
  const uint64_t scope = ++l->scope_count;
  while (l->next < l->count && l->scopes[l->next] < scope) l->next++;
  return l->next < l->count && l->scopes[l->next] == scope ? l->next + 1u : 0;
}

static uint64_t number_of_work(arrow_links *l, const prof_event *work) {
  const uint32_t launch = prof_i_work_links_work(&l->work, work, 1);
  if (launch == UINT32_MAX) return 0;
  const uint64_t *const found = bsearch(&l->work.links[launch].scope_id, l->scopes, l->count,
                                        sizeof *l->scopes, scope_compare);
  return found ? (uint64_t)(found - l->scopes) + 1 : 0;
}

/* The value of the column for an event. 0: none. Call it once for each event, in the order of a
   cursor. */
static uint64_t links_number(arrow_links *l, const prof_event *event) {
  if (l->count == 0 || !is_scope(event)) return 0;
  return event->flags & PROF_EVENT_ON_DEVICE ? number_of_work(l, event)
                                             : number_of_scope(l, event->thread);
}

/* ---- the state of a stream ---- */

typedef struct arrow_stream {
  prof_trace *trace;
  prof_cursor *cursor;
  prof_i_window window;
  uint64_t batch_rows;
  prof_i_filter *filter; /* NULL: no filter */
  prof_i_trace_filter trace_filter;
  prof_i_selection selection;
  prof_i_export_filtered filtered;
  uint64_t *counts; /* of prof_i_arrow_wish: a copy of `filtered` for the caller */
  arrow_links links;
  uint64_t correlation; /* of the event; 0: none */
  prof_i_arrow_dictionary dictionaries[PROF_I_ARROW_COLUMN_COUNT];
  prof_i_arrow_batch batch;
  prof_i_sink args; /* the texts of PROF_I_ARROW_ARGS */
  bool has_args;
  prof_event event;
  /* Cached from the last event, because the next one usually has the same. */
  uint32_t thread;
  int64_t pid;
  prof_device device;
  int32_t device_index;
  bool has_thread, has_device;
  int status; /* the first failure */
  char error[ERROR_BYTES];
} arrow_stream;

/* ---- values ---- */

#define PUT(type, name)                                                                \
  static inline void put_##name(arrow_stream *s, prof_i_arrow_column to, type value) { \
    prof_i_arrow_values *const column = &s->batch.columns[to];                         \
    const uint64_t row = s->batch.row_count;                                           \
    ((type *)column->values)[row] = value;                                             \
    if (!column->validity) return;                                                     \
    column->validity[row / 8] |= (uint8_t)(1u << row % 8);                             \
    column->value_count++;                                                             \
  }
PUT(uint8_t, u8)
PUT(int32_t, i32)
PUT(uint32_t, u32)
PUT(int64_t, i64)
PUT(uint64_t, u64)
PUT(double, f64)
#undef PUT

static void put_text(arrow_stream *s, prof_i_arrow_column to, prof_i_text text) {
  int32_t index = 0;
  const int status = prof_i_arrow_dictionary_find_kept(&s->dictionaries[to], text, &index);
  if (status == PROF_OK)
    put_i32(s, to, index);
  else
    s->status = status;
}

static const char *kind_name(const prof_event *event) {
  switch (event->kind) {
    case PROF_EVENT_OPEN:
      return "unfinished";
    case PROF_EVENT_INSTANT:
      return "instant";
    case PROF_EVENT_COUNTER:
      return "counter";
    case PROF_EVENT_FLOW_BEGIN:
      return "flow_begin";
    case PROF_EVENT_FLOW_END:
      return "flow_end";
    case PROF_EVENT_STEP:
      return "step";
    case PROF_EVENT_MEMORY:
      return "memory";
  }
  return event->flags & PROF_EVENT_ON_DEVICE ? "device" : "scope";
}

static void put_kind(arrow_stream *s) {
  const char *const name = kind_name(&s->event);
  int32_t index = 0;
  const int status = prof_i_arrow_dictionary_find_kept(&s->dictionaries[PROF_I_ARROW_KIND],
                                                       (prof_i_text){name, strlen(name)}, &index);
  if (status != PROF_OK) s->status = status;
  put_u8(s, PROF_I_ARROW_KIND, (uint8_t)index);
}

static void put_names(arrow_stream *s) {
  const prof_event *const e = &s->event;
  put_kind(s);
  put_text(s, PROF_I_ARROW_NAME,
           prof_i_text_or((prof_i_text){e->name, e->name_bytes}, "(unnamed)"));
  put_text(s, PROF_I_ARROW_CATEGORY,
           prof_i_text_or((prof_i_text){e->category, e->category_bytes}, "scope"));
}

static void put_thread(arrow_stream *s) {
  const uint32_t number = s->event.thread;
  const prof_i_trace_thread *const thread = &s->trace->threads[number];
  if (!s->has_thread || s->thread != number) {
    s->pid = prof_i_trace_process(s->trace, number).pid;
    s->thread = number;
    s->has_thread = true;
  }
  put_i64(s, PROF_I_ARROW_PID, s->pid);
  put_u64(s, PROF_I_ARROW_TID, thread->tid);
  put_text(s, PROF_I_ARROW_THREAD, (prof_i_text){thread->name, strlen(thread->name)});
  put_i32(s, PROF_I_ARROW_THREAD_INDEX, (int32_t)number);
}

static void put_device(arrow_stream *s) {
  const prof_device device = s->event.device;
  if (!s->has_device || device.type != s->device.type || device.index != s->device.index) {
    char text[DEVICE_BYTES];
    prof_i_put_device(text, sizeof text, device);
    const int status = prof_i_arrow_dictionary_find(&s->dictionaries[PROF_I_ARROW_DEVICE],
                                                    prof_i_text_from(text), &s->device_index);
    if (status != PROF_OK) s->status = status;
    s->device = device;
    s->has_device = true;
  }
  put_i32(s, PROF_I_ARROW_DEVICE, s->device_index);
  if (s->event.flags & PROF_EVENT_ON_STREAM) put_u64(s, PROF_I_ARROW_STREAM, s->event.stream);
}

static void put_times(arrow_stream *s) {
  const prof_event *const e = &s->event;
  const bool is_scope = e->kind == PROF_EVENT_SCOPE || e->kind == PROF_EVENT_OPEN;
  put_i64(s, PROF_I_ARROW_START, (int64_t)e->start_ns);
  put_i64(s, PROF_I_ARROW_DURATION, (int64_t)e->duration_ns);
  put_i64(s, PROF_I_ARROW_SELF, is_scope ? (int64_t)e->self_ns : 0);
  put_i32(s, PROF_I_ARROW_DEPTH, (int32_t)e->depth);
  put_u8(s, PROF_I_ARROW_LEVEL, (uint8_t)e->level);
  put_u32(s, PROF_I_ARROW_FLAGS, e->flags);
}

static void put_place(arrow_stream *s) {
  const prof_i_site_info *const site = prof_i_trace_site(s->trace, s->event.site);
  if (!site->file.bytes) return;
  put_text(s, PROF_I_ARROW_FILE, site->file);
  put_u32(s, PROF_I_ARROW_LINE, site->line);
}

static void put_memory(arrow_stream *s) {
  const prof_event_memory *const memory = &s->event.memory;
  put_u32(s, PROF_I_ARROW_POOL, memory->pool);
  put_u64(s, PROF_I_ARROW_ADDRESS, memory->address);
  put_u64(s, PROF_I_ARROW_BYTES, memory->bytes);
  put_u64(s, PROF_I_ARROW_REQUESTED, memory->requested_bytes);
  put_i64(s, PROF_I_ARROW_USED, memory->used_bytes);
  if (memory->allocated_bytes >= 0) put_i64(s, PROF_I_ARROW_ALLOCATED, memory->allocated_bytes);
  if (memory->tag) put_text(s, PROF_I_ARROW_TAG, (prof_i_text){memory->tag, memory->tag_bytes});
}

static void put_launch(arrow_stream *s) {
  const prof_event_launch *const launch = &s->event.launch;
  if (launch->thread == UINT32_MAX) return;
  put_i64(s, PROF_I_ARROW_LAUNCH_START, (int64_t)launch->start_ns);
  put_i32(s, PROF_I_ARROW_LAUNCH_THREAD, (int32_t)launch->thread);
}

/* Values that only some kinds of events have. */
static void put_own(arrow_stream *s) {
  const prof_event *const e = &s->event;
  if (e->kind == PROF_EVENT_MEMORY) put_memory(s);
  if (e->kind == PROF_EVENT_COUNTER && isfinite(e->value)) put_f64(s, PROF_I_ARROW_VALUE, e->value);
  if (e->kind == PROF_EVENT_STEP || e->kind == PROF_EVENT_FLOW_BEGIN ||
      e->kind == PROF_EVENT_FLOW_END)
    put_u64(s, PROF_I_ARROW_ID, e->id);
  if (e->kind != PROF_EVENT_MEMORY && e->flags & PROF_EVENT_ON_DEVICE) put_launch(s);
  if (s->correlation) put_u64(s, PROF_I_ARROW_CORRELATION, s->correlation);
}

/* ---- arguments ---- */

static void write_args(arrow_stream *s) {
  const prof_event *const e = &s->event;
  if (e->args_kind != PROF_ARGS_FORMAT) {
    prof_i_value_args(&s->args, e, e->args_kind == PROF_ARGS_SHAPES ? prof_i_shape_count(e) : 0);
    return;
  }
  char text[FORMATTED_BYTES];
  const size_t needed = prof_i_format_args(e, text, sizeof text);
  prof_i_sink_string(&s->args, text, needed < sizeof text ? needed : sizeof text);
}

static size_t args_bytes(const arrow_stream *s) {
  return s->has_args ? (size_t)(s->args.next - s->args.buffer) : 0;
}

/* Arrow needs the end offset of the text in every row, also in a row without a text. */
static void put_args(arrow_stream *s) {
  const prof_event *const e = &s->event;
  const uint64_t row = s->batch.row_count;
  prof_i_arrow_values *const column = &s->batch.columns[PROF_I_ARROW_ARGS];
  if (e->kind != PROF_EVENT_MEMORY && (e->arg_count || e->args_kind == PROF_ARGS_FORMAT)) {
    if (!s->has_args) s->status = prof_i_sink_open_memory(&s->args, ARGS_BYTES_MAX);
    if (s->status != PROF_OK) return;
    s->has_args = true;
    write_args(s);
    s->status = s->args.status;
    column->validity[row / 8] |= (uint8_t)(1u << row % 8);
    column->value_count++;
  }
  if (s->has_args) ((int32_t *)column->values)[row + 1] = (int32_t)args_bytes(s);
}

/* ---- batches ---- */

static void put_event(arrow_stream *s) {
  put_names(s);
  put_times(s);
  put_thread(s);
  put_device(s);
  put_place(s);
  put_own(s);
  put_args(s);
  s->batch.row_count++;
}

/* As the other filtered dumps (driver.c). */
static bool filter_takes(arrow_stream *s) {
  const prof_event *const e = &s->event;
  if (!s->filter) return true;
  const bool takes = prof_i_selection_takes(&s->selection, e, &s->filtered);
  if (prof_i_window_has_launch(&s->window, e, s->trace->thread_count))
    prof_i_filtered_count_add(
        &s->filtered.arrows, takes && prof_i_selection_takes_moment(&s->selection, e->launch.thread,
                                                                    e->launch.start_ns));
  return takes;
}

static void put_counts(const arrow_stream *s) {
  const prof_i_export_filtered *const f = &s->filtered;
  const uint64_t counts[PROF_I_ARROW_COUNTS] = {
      f->event_count,     f->scopes.written,  f->scopes.left_out,
      f->arrows.written,  f->arrows.left_out, f->memory.written,
      f->memory.left_out, f->values.written,  f->values.left_out};
  if (s->counts) memcpy(s->counts, counts, sizeof counts);
}

static void read_batch(arrow_stream *s) {
  while (s->status == PROF_OK && s->batch.row_count < s->batch_rows && args_bytes(s) < ARGS_BYTES) {
    const int status = prof_cursor_next(s->cursor, &s->event);
    if (status < 0) s->status = status;
    if (status <= 0) return;
    s->correlation = links_number(&s->links, &s->event);
    if (prof_i_window_contains(&s->window, s->event.start_ns,
                               s->event.start_ns + s->event.duration_ns) &&
        filter_takes(s))
      put_event(s);
  }
}

/* The texts become the batch's. */
static void take_args(arrow_stream *s) {
  size_t bytes;
  if (!s->has_args) return;
  const int status = prof_i_sink_take(&s->args, &s->batch.args_text, &bytes);
  s->has_args = false;
  if (s->status == PROF_OK) s->status = status;
}

static int make_batch(arrow_stream *s, struct ArrowArray *to) {
  if (!prof_i_arrow_batch_init(&s->batch, s->batch_rows))
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a batch of %llu events",
                       (unsigned long long)s->batch_rows);
  read_batch(s);
  put_counts(s);
  take_args(s);
  if (s->status == PROF_OK && s->batch.row_count > 0 &&
      !prof_i_arrow_batch_export(&s->batch, s->dictionaries, to))
    s->status = prof_i_fail(PROF_E_NO_MEMORY, "no memory for the arrays of %llu events",
                            (unsigned long long)s->batch.row_count);
  prof_i_arrow_batch_fini(&s->batch);
  return s->status;
}

/* ---- the stream ---- */

/* Returns an errno value, as Arrow requires. Keeps the text for get_last_error(). */
static int stream_fail(arrow_stream *s, int status) {
  s->status = status;
  if (!s->error[0]) snprintf(s->error, sizeof s->error, "%s", prof_last_error());
  return status == PROF_E_NO_MEMORY ? ENOMEM : status == PROF_E_TOO_LARGE ? EOVERFLOW : EIO;
}

static int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
  PROF_I_INSIDE;
  arrow_stream *const s = stream->private_data;
  const int status = prof_i_arrow_schema(s->trace, out);
  return status == PROF_OK ? 0 : stream_fail(s, status);
}

/* After a failure every call fails, because an end of the stream would look like success. */
static int stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
  PROF_I_DEFAULT_FP;
  PROF_I_INSIDE;
  arrow_stream *const s = stream->private_data;
  out->release = NULL;
  const int status = s->status == PROF_OK ? make_batch(s, out) : s->status;
  return status == PROF_OK ? 0 : stream_fail(s, status);
}

static const char *stream_error(struct ArrowArrayStream *stream) {
  const arrow_stream *const s = stream->private_data;
  return s->error[0] ? s->error : NULL;
}

static void stream_free(arrow_stream *s) {
  prof_i_cursor_destroy(s->cursor);
  links_fini(&s->links);
  if (s->filter) {
    prof_i_selection_fini(&s->selection);
    prof_i_trace_filter_fini(&s->trace_filter);
  }
  prof_i_filter_destroy(s->filter);
  for (int i = 0; i < PROF_I_ARROW_COLUMN_COUNT; i++)
    prof_i_arrow_dictionary_fini(&s->dictionaries[i]);
  prof_i_trace_destroy(s->trace);
  free(s);
}

static void stream_release(struct ArrowArrayStream *stream) {
  PROF_I_INSIDE;
  stream_free(stream->private_data);
  stream->private_data = NULL;
  stream->release = NULL;
}

static int read_options(arrow_stream *s, const prof_arrow_options *options) {
  prof_arrow_options checked = {.size = sizeof checked};
  const int status =
      options ? prof_i_sized_copy(&checked, sizeof checked, options, "prof_arrow_options")
              : PROF_OK;
  if (status != PROF_OK) return status;
  if (checked.batch_rows > BATCH_ROWS_MAX)
    return prof_i_fail(PROF_E_INVALID, "prof_arrow_options.batch_rows is %u; at most %d",
                       checked.batch_rows, BATCH_ROWS_MAX);
  if (checked.to_ns != 0 && checked.to_ns <= checked.from_ns)
    return prof_i_fail(PROF_E_INVALID,
                       "prof_arrow_options.to_ns is %llu, not after from_ns, which is %llu",
                       (unsigned long long)checked.to_ns, (unsigned long long)checked.from_ns);
  s->window = (prof_i_window){checked.from_ns, checked.to_ns};
  s->batch_rows = checked.batch_rows ? checked.batch_rows : BATCH_ROWS;
  return PROF_OK;
}

/* The filter copies the texts of --arg, so `args` is temporary. */
static int create_filter(arrow_stream *s, const prof_i_arrow_wish *wish) {
  prof_i_filter_words words;
  if (wish->filter_count == 0) return PROF_OK;
  const char **const args = calloc(wish->filter_count, sizeof *args);
  int status = args ? prof_i_filter_words_read(&words, wish->filters, wish->filter_count, args)
                    : prof_i_fail(PROF_E_NO_MEMORY, "no memory for a filter of %zu options",
                                  wish->filter_count);
  if (status == PROF_OK) status = prof_i_filter_create(&words, &s->filter);
  free(args);
  if (status != PROF_OK) return status;
  s->counts = wish->counts;
  if (prof_i_trace_filter_init(&s->trace_filter, s->trace, s->filter) == PROF_OK &&
      prof_i_selection_init(&s->selection, &s->trace_filter, true, true) == PROF_OK)
    return PROF_OK;
  return prof_i_fail(PROF_E_NO_MEMORY, "no memory for the filter of a trace of %llu events",
                     (unsigned long long)s->trace->event_count);
}

static int open_stream(const prof_trace *trace, const prof_i_arrow_wish *wish,
                       struct ArrowArrayStream *stream_out) {
  arrow_stream *const s = calloc(1, sizeof *s);
  if (!s) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a stream (%zu bytes)", sizeof *s);
  s->trace = prof_i_trace_share(trace);
  int status = read_options(s, wish->options);
  if (status == PROF_OK) status = create_filter(s, wish);
  if (status == PROF_OK) status = links_init(&s->links, trace);
  if (status == PROF_OK) status = prof_i_cursor_create(trace, &s->cursor);
  if (status != PROF_OK) {
    stream_free(s);
    return status;
  }
  *stream_out = (struct ArrowArrayStream){.get_schema = stream_schema,
                                          .get_next = stream_next,
                                          .get_last_error = stream_error,
                                          .release = stream_release,
                                          .private_data = s};
  return PROF_OK;
}

int prof_trace_arrow(const prof_trace *trace, const prof_arrow_options *options,
                     struct ArrowArrayStream *stream_out) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  const prof_i_arrow_wish wish = {.size = sizeof wish, .options = options};
  if (!trace || !stream_out)
    return prof_i_fail(PROF_E_INVALID, "prof_trace_arrow: %s is NULL",
                       trace ? "stream_out" : "trace");
  return open_stream(trace, &wish, stream_out);
}

int prof_i_trace_arrow_1(const prof_trace *trace, const prof_i_arrow_wish *wish,
                         struct ArrowArrayStream *stream_out) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  prof_i_arrow_wish checked = {.size = sizeof checked};
  if (!trace || !wish || !stream_out)
    return prof_i_fail(PROF_E_INVALID, "prof_i_trace_arrow_1: an argument is NULL");
  const int status = prof_i_sized_copy(&checked, sizeof checked, wish, "prof_i_arrow_wish");
  return status == PROF_OK ? open_stream(trace, &checked, stream_out) : status;
}
