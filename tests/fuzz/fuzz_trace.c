/* The reader on any bytes: opens them, reads everything in every way, and checks that the ways
   agree. Inputs are sparse.h's. */
#define _GNU_SOURCE
#include <prof/memory.h>
#include <prof/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "export/exporter.h"
#include "reader/internal.h"
#include "sparse.h"

static void require(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "fuzz_trace: %s\n", what);
  abort();
}

typedef struct sums {
  uint64_t events, duration_ns, bad_self;
} sums;

static int visit(void *user, const prof_i_span *spans, size_t count) {
  sums *const s = user;
  for (size_t i = 0; i < count; i++) {
    s->events++;
    s->duration_ns += spans[i].duration_ns;
    s->bad_self += spans[i].self_ns > spans[i].duration_ns;
  }
  return 0;
}

static uint64_t touch(const char *text, uint64_t bytes) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < bytes; i++) sum += (unsigned char)text[i];
  return sum;
}

/* Reads every byte that an event hands out. */
static uint64_t touch_event(const prof_event *event) {
  uint64_t sum = touch(event->name, event->name_bytes) +
                 touch(event->category, event->category_bytes) +
                 touch(event->format, event->format_bytes);
  for (uint32_t i = 0; i < event->arg_count; i++) {
    const prof_trace_arg *const arg = &event->args[i];
    sum += touch(arg->key, arg->key_bytes);
    if (arg->type == PROF_ARG_STRING) sum += touch(arg->value.text.data, arg->value.text.bytes);
    for (uint32_t d = 0; arg->type == PROF_ARG_TENSOR && d < arg->value.tensor.rank; d++)
      sum += (uint64_t)arg->value.tensor.dims[d];
  }
  char text[300];
  return sum + prof_i_format_args(event, text, sizeof text);
}

static void read_ordered(const prof_trace *trace, const sums *expected) {
  static prof_event event;
  static volatile uint64_t sink; /* so that nothing of it is left out */
  prof_cursor *cursor = NULL;
  sums seen = {0, 0, 0};
  uint64_t last_start = 0;
  uint32_t last_thread = 0;
  require(prof_cursor_create(trace, &cursor) == PROF_OK, "no cursor");
  for (int status; (status = prof_cursor_next(cursor, &event)) != 0;) {
    require(status == 1, "the cursor failed");
    require(
        event.thread > last_thread || (event.thread == last_thread && event.start_ns >= last_start),
        "events out of order");
    last_thread = event.thread;
    last_start = event.start_ns;
    seen.events++;
    /* the walk has marks, the cursor a collection's time */
    if (event.kind != PROF_EVENT_MEMORY) seen.duration_ns += event.duration_ns;
    sink += touch_event(&event);
  }
  prof_cursor_destroy(cursor);
  (void)sink;
  require(seen.events == expected->events && seen.duration_ns == expected->duration_ns,
          "cursor and walk disagree");
}

/* One of the groupings, by the input: all of them would take most of the time. */
static void read_aggregates(const prof_trace *trace, size_t which) {
  static const uint32_t groups[] = {0, 31, PROF_GROUP_CATEGORY,
                                    PROF_GROUP_SHAPE | PROF_GROUP_DEVICE,
                                    PROF_GROUP_NAME | PROF_GROUP_STACK};
  which %= sizeof groups / sizeof *groups;
  const prof_aggregate_options options = {
      .size = sizeof options,
      .group = groups[which],
      .sort = which == 3 ? PROF_SORT_DEVICE : (uint32_t)which,
      .rows_limit = UINT32_MAX,
      .leave_out = which == 4 ? PROF_LEAVE_OUT_FUNCTIONS | PROF_LEAVE_OUT_MODULES : 0};
  char *text = NULL;
  require(prof_trace_table(trace, &options, &text) == PROF_OK, "no table");
  free(text);
}

static void read_devices(const prof_trace *trace, uint32_t count) {
  static volatile uint64_t sink;
  for (uint32_t i = 0; i < count; i += 1 + i / 16) {
    prof_trace_device device = {.size = sizeof device};
    char *text = NULL;
    require(prof_trace_device_get(trace, i, &device) == PROF_OK, "no device");
    require(prof_trace_device_text(trace, i, &text) == PROF_OK, "no text of a device");
    sink += touch(text, strlen(text)) + touch(device.name, strlen(device.name)) +
            touch(device.reason, strlen(device.reason));
    prof_free(text);
  }
  (void)sink;
}

static void read_changes(const prof_trace *trace, const prof_trace_info *info) {
  static volatile uint64_t sink;
  uint64_t last_ns = 0;
  for (uint32_t i = 0; i < info->change_count; i += 1 + i / 16) {
    prof_trace_change change = {.size = sizeof change};
    char *text = NULL;
    require(prof_trace_change_get(trace, i, &change) == PROF_OK, "no change");
    require(prof_trace_change_text(trace, i, &text) == PROF_OK, "no text of a change");
    require(change.at_ns >= last_ns, "changes out of order");
    require(change.thread == UINT32_MAX || change.thread < info->thread_count,
            "a change of no thread");
    last_ns = change.at_ns;
    sink += touch(text, strlen(text)) + touch(change.name, change.name_bytes) +
            touch(change.category, change.category_bytes);
    prof_free(text);
  }
  (void)sink;
}

/* Reads in one of two ways, by the input; the report of one pool or of all, of one width or
   another. */
static uint64_t look_at_memory(const prof_memory *memory, uint32_t count, size_t which) {
  const prof_memory_text_options options = {.size = sizeof options,
                                            .width = 40 + (uint32_t)(which % 97),
                                            .rows_limit = which % 3 ? 0 : UINT32_MAX,
                                            .pool = (uint32_t)(which / 2 % (count + 1u)),
                                            .ascii = which / 4 % 2};
  char *text = NULL;
  if (which % 2 || count == 0)
    require(prof_memory_text(memory, &options, &text) == PROF_OK, "no report of memory");
  else
    require(prof_memory_svg(memory, (uint32_t)(which / 2 % count), &text) == PROF_OK,
            "no picture of memory");
  const uint64_t sum = touch(text, strlen(text));
  prof_free(text);
  return sum;
}

/* At one of the moments, grouped in one of the ways, by the input. */
static void read_memory(const prof_trace *trace, size_t which) {
  static volatile uint64_t sink;
  prof_memory *memory = NULL;
  require(prof_memory_read(trace, &memory) == PROF_OK, "no memory");
  const uint32_t count = prof_memory_pool_count(memory);
  for (uint32_t i = 0; i < count && i < 4; i++) {
    prof_memory_info info = {.size = sizeof info}, device = {.size = sizeof device};
    prof_memory_rows *rows = NULL;
    prof_memory_example example;
    int64_t used[7], allocated[7];
    require(prof_memory_pool_get(memory, i, &info) == PROF_OK, "no pool");
    require(prof_memory_device_get(memory, info.device, PROF_MEMORY_ANY, &device) == PROF_OK,
            "no device");
    require(prof_memory_live(memory, i, (prof_memory_moment)(which % 4), which * 10,
                             (prof_memory_by)(which / 4 % 4), &rows) == PROF_OK,
            "nothing live");
    const prof_memory_state *const state = which % 4 == 0   ? &info.peak_used
                                           : which % 4 == 1 ? &info.peak_allocated
                                                            : &info.end;
    require(
        which % 4 == 3 || (rows->bytes == state->live_bytes && rows->count == state->live_count &&
                           rows->requested_bytes == state->requested_bytes),
        "what was live differs");
    for (uint64_t n = 0; n < rows->row_count; n++)
      sink += touch(rows->rows[n].label, strlen(rows->rows[n].label));
    for (uint32_t n = 0; prof_memory_example_get(memory, i, n, &example) == PROF_OK; n++)
      sink += touch(example.scope, strlen(example.scope));
    require(prof_memory_series(memory, i, 7, used, allocated) == PROF_OK, "no series");
    prof_free(rows);
  }
  if (which % 5 < 2) sink += look_at_memory(memory, count, which / 5);
  (void)sink;
  prof_memory_destroy(memory);
}

/* As Chrome JSON: whole, or a part. It is JSON by a strict parser. What does not fit is refused. */
static void read_export(const prof_trace *trace, size_t which) {
  enum { MOST = 8 << 20 };
  const prof_i_window window =
      which % 2 ? (prof_i_window){0, 0} : (prof_i_window){which * 1000, which * 3000};
  prof_i_findings findings;
  prof_i_sink sink;
  char *text = NULL;
  size_t bytes = 0, at = 0;
  require(prof_i_sink_open_memory(&sink, MOST) == PROF_OK, "no sink");
  const prof_i_export_options wish = {
      .window = window, .with_stacks = true, .with_marks = true, .with_memory = true};
  const int status = prof_i_export_run(&prof_i_chrome_exporter, trace, &wish, &sink, &findings);
  require(status == PROF_OK || status == PROF_E_TOO_LARGE, "no JSON");
  if (status != PROF_OK) {
    prof_i_sink_abandon(&sink);
    return;
  }
  require(prof_i_sink_take(&sink, &text, &bytes) == PROF_OK && text[bytes - 1] == '\n',
          "half a document");
  require(prof_i_json_is_value(text, &at) && at == bytes, "its export is not JSON");
  prof_free(text);
}

static void read_trace(const prof_trace *trace, size_t which) {
  prof_trace_info info = {.size = sizeof info};
  prof_trace_thread thread = {.size = sizeof thread};
  sums all = {0, 0, 0};
  uint64_t by_thread = 0;
  require(prof_trace_info_get(trace, &info) == PROF_OK, "no info");
  for (uint32_t i = 0; i < info.thread_count; i++) {
    require(prof_trace_thread_get(trace, i, &thread) == PROF_OK, "no thread");
    require(prof_i_trace_walk(trace, i, visit, &all) == 0, "the walk failed");
    by_thread += thread.event_count;
  }
  require(all.bad_self == 0, "self time larger than the duration");
  require(all.events == info.event_count && by_thread == info.event_count,
          "info and walk disagree");
  prof_device device;
  uint64_t stream;
  prof_i_text name;
  static volatile uint64_t sink; /* so that nothing of it is left out */
  for (uint32_t i = 0; prof_i_trace_track(trace, i, &device, &stream, &name); i++)
    sink += touch(name.data, name.bytes);
  const uint32_t site_count = prof_i_trace_site_count(trace);
  /* numbers may go up to a million, with nothing between */
  for (uint32_t i = 0; i < site_count; i += 1 + i / 256) {
    const prof_i_site_info *const site = prof_i_trace_site(trace, i);
    sink += touch(site->name.data, site->name.bytes) + touch(site->file.data, site->file.bytes);
  }
  (void)sink;
  read_changes(trace, &info);
  read_devices(trace, info.device_count);
  read_ordered(trace, &all);
  read_aggregates(trace, which);
  read_memory(trace, which);
  if (which % 3 == 2) read_export(trace, which / 3);
}

/* Room for the largest capture, before a page that must not be touched; each capture ends there.
   Made once: it would cost more than the reader. */
static unsigned char *guarded_room(size_t bytes) {
  enum { PAGE = 4096 };
  static unsigned char *room;
  if (room) return room;
  room = mmap(NULL, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(room != MAP_FAILED && mprotect(room + bytes, PAGE, PROT_NONE) == 0, "no room");
  return room;
}

/* What is freed is kept from use for some runs; 256 MiB of it would all be new pages. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "quarantine_size_mb=8"; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  enum { MOST = SPARSE_UNITS_MAX * PROF_I_UNIT_BYTES };
  const size_t count = sparse_bytes(data, size);
  unsigned char *const bytes = guarded_room(MOST) + MOST - count;
  memset(bytes, 0, count);
  sparse_expand(bytes, data, size);
  prof_trace *trace = NULL;
  if (prof_trace_open_bytes(bytes, count, &trace) == PROF_OK) {
    read_trace(trace, size);
    prof_trace_destroy(trace);
  }
  return 0;
}
