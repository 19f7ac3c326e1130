/* Events by rising start. The walk goes backwards, so a thread is walked twice. The first walk
   saves the pending scopes at regular points. The second walk takes the parts between these points,
   the earliest part first. It stores all spans of a part and reads them from the end. So memory is
   one part and the saved points, whatever the capture's size. */
#include <prof/profiler.h>
#include <stdlib.h>
#include <string.h>

#include "../base/error.h"
#include "../base/port.h"
#include "../base/process.h"
#include "../base/worker.h"
#include "internal.h"
#include "walk_plain.h"
#include "walker.h"

enum { PART_EVENTS = 32768, PENDING_SHARE = 8, BRIEF_MOST_BYTES = 4096 };

/* A part of a thread: segments from first up to end. */
typedef struct walk_part {
  prof_i_walker_state *state; /* pending scopes after the part */
  uint32_t first, end;
} walk_part;

/* The spans of a part, the next one last. */
typedef struct span_store {
  prof_i_span *spans;
  uint32_t count, room;
  bool has_lanes;
  int status; /* of its walk */
} span_store;

struct prof_cursor {
  const prof_trace *trace;
  uint32_t thread, thread_end; /* the next one; the last one that is read, plus 1 */
  uint64_t from_ns;            /* earlier events may be left out */
  int status;                  /* of the first failure */
  prof_i_walker *walker;
  walk_part *walk_parts; /* parts of the thread left to walk, the earliest last */
  uint32_t walk_part_count, walk_part_room;
  const prof_i_span *spans; /* of the part that is read; in a store */
  uint32_t span_count;      /* not read yet */
  span_store stores[2];     /* without a worker only the first one is used */
  span_store *store;        /* of the part that is walked */
  prof_i_worker *worker;    /* NULL: none */
  bool is_ahead;            /* the worker walks a part, or has walked it */
  bool is_own;              /* created by prof itself */
  bool lacks_self_times;    /* see prof_i_cursor_read_ahead() */
};

static int drop_spans(void *user, const prof_i_span *spans, size_t count) {
  (void)user, (void)spans, (void)count;
  return 0;
}

static inline void ignore_leaf(prof_i_walker *walker, const prof_i_leaf *leaf,
                               prof_i_pending_span *around) {
  (void)walker, (void)leaf, (void)around;
}

static inline void ignore_pending(prof_i_walker *walker, prof_i_pending_span *pending) {
  (void)walker, (void)pending;
}

static void walk_without_keeping(prof_i_walker *walker, const prof_i_segment *segment) {
  prof_i_walk_plain(walker, segment, ignore_leaf, ignore_pending, prof_i_pending_make);
}

static inline void make_pending_with_times(prof_i_walker *walker, const prof_i_leaf *leaf,
                                           prof_i_pending_span *place) {
  prof_i_leaf timed = *leaf;
  timed.duration_ns = prof_i_timeline_span(&walker->trace->timeline, &walker->line, leaf->start,
                                           leaf->end, &timed.start_ns);
  prof_i_pending_init(&timed, place);
}

/* The same without self times: only scopes that become pending get times in ns. */
static void walk_without_self_times(prof_i_walker *walker, const prof_i_segment *segment) {
  prof_i_walk_plain_with(walker, segment, false, ignore_leaf, ignore_pending,
                         make_pending_with_times);
}

/* The walker writes its next spans after the stored ones. */
static bool set_span_room(prof_cursor *cursor) {
  prof_i_walker *const walker = cursor->walker;
  span_store *const store = cursor->store;
  while (store->room - store->count < PROF_I_BATCH)
    if (!prof_i_make_room((void **)&store->spans, &store->room, store->room, sizeof *store->spans))
      return false;
  walker->spans = walker->next = store->spans + store->count;
  walker->end = store->spans + store->room;
  return true;
}

static int keep_spans(void *user, const prof_i_span *spans, size_t count) {
  prof_cursor *const cursor = user;
  for (size_t i = 0; i < count && cursor->walker->lane_count > 1; i++)
    cursor->store->has_lanes |= spans[i].lane != 0;
  cursor->store->count += (uint32_t)count;
  return set_span_room(cursor) ? 0 : PROF_E_NO_MEMORY;
}

static void finish_thread(prof_cursor *cursor) {
  for (uint32_t i = 0; i < cursor->walk_part_count; i++)
    prof_i_walker_state_free(cursor->walk_parts[i].state);
  cursor->walk_part_count = 0;
  prof_i_walker_destroy(cursor->walker);
  cursor->walker = NULL;
}

/* Emits spans that begin in the part or after it. Those that begin before stay pending. */
static int walk_one_part(prof_cursor *cursor, const walk_part *s) {
  prof_i_walker *const walker = cursor->walker;
  const prof_i_trace_thread *const thread = walker->thread;
  if (s->end == thread->first_segment + thread->segment_count) prof_i_walker_put_open(walker);
  for (uint32_t i = s->end; i > s->first && !walker->status;)
    i = prof_i_walker_put_group(walker, i - 1);
  const bool is_earliest = s->first == walker->first_segment;
  prof_i_walker_flush(walker,
                      is_earliest ? 0 : cursor->trace->segments[s->first - 1].before_max + 1);
  return walker->status;
}

/* The part before `end`, with enough events to outweigh its saved state. */
static walk_part save_walk_part(const prof_cursor *cursor, uint32_t end, uint64_t pending) {
  const prof_i_segment *const segments = cursor->trace->segments;
  const uint64_t wanted =
      pending * PENDING_SHARE > PART_EVENTS ? pending * PENDING_SHARE : PART_EVENTS;
  walk_part s = {NULL, end, end};
  uint64_t events = 0;
  const uint32_t first = cursor->walker->first_segment;
  while (s.first > first && (events < wanted || !segments[s.first - 1].ends_group))
    events += segments[--s.first].event_count;
  return s;
}

/* Divides the thread into parts, and walks all but the earliest. */
static int start_thread_walk(prof_cursor *cursor) {
  const prof_i_trace_thread *const thread = &cursor->trace->threads[cursor->thread];
  cursor->walker = prof_i_walker_create(cursor->trace, cursor->thread, drop_spans, cursor);
  if (!cursor->walker) return PROF_E_NO_MEMORY;
  prof_i_walker_skip_before(cursor->walker, cursor->from_ns);
  const prof_i_walk_segment hand_out = cursor->walker->walk_plain;
  cursor->walker->walk_plain =
      cursor->lacks_self_times ? walk_without_self_times : walk_without_keeping;
  for (uint32_t end = thread->first_segment + thread->segment_count, pending = 0;;) {
    walk_part s = save_walk_part(cursor, end, pending);
    s.state = prof_i_walker_save(cursor->walker);
    if (!s.state) return PROF_E_NO_MEMORY;
    if (!prof_i_make_room((void **)&cursor->walk_parts, &cursor->walk_part_room,
                          cursor->walk_part_count, sizeof s)) {
      prof_i_walker_state_free(s.state);
      return PROF_E_NO_MEMORY;
    }
    pending = s.state->count;
    cursor->walk_parts[cursor->walk_part_count++] = s;
    if (s.first == cursor->walker->first_segment) break;
    const int status = walk_one_part(cursor, &s);
    if (status) return status;
    end = s.first;
  }
  cursor->walker->walk_plain = hand_out;
  cursor->walker->visit = keep_spans;
  return 0;
}

/* Sorts by falling start, because spans of other lanes are in any order. Stable, so inner spans
   stay before outer ones. Spans are mostly in order: only runs that are not are merged. */
static int sort_part_spans(const span_store *store) {
  const uint32_t count = store->count;
  prof_i_span *const spans = store->spans;
  prof_i_span *const spare = malloc((size_t)count * sizeof *spare);
  if (!spare) return PROF_E_NO_MEMORY;
  for (uint64_t width = 1; width < count; width *= 2) {
    for (uint64_t at = 0; at + width < count; at += 2 * width) {
      const uint64_t both = count - at < 2 * width ? count - at : 2 * width;
      if (spans[at + width - 1].start_ns >= spans[at + width].start_ns) continue;
      memcpy(spare, spans + at, width * sizeof *spans);
      uint64_t left = 0, right = width, to = 0;
      while (left < width && right < both)
        spans[at + to++] =
            spans[at + right].start_ns > spare[left].start_ns ? spans[at + right++] : spare[left++];
      while (left < width) spans[at + to++] = spare[left++];
    }
  }
  free(spare);
  return 0;
}

/* Walks the next part of the thread. */
static void fill_store(void *argument) {
  prof_cursor *const cursor = argument;
  span_store *const store = cursor->store;
  const walk_part s = cursor->walk_parts[--cursor->walk_part_count];
  store->count = 0;
  store->has_lanes = false;
  const bool is_ready = set_span_room(cursor) && prof_i_walker_restore(cursor->walker, s.state);
  store->status = is_ready ? walk_one_part(cursor, &s) : PROF_E_NO_MEMORY;
  prof_i_walker_state_free(s.state);
  if (!store->status && store->has_lanes) store->status = sort_part_spans(store);
  if (store->status) store->count = 0; /* an incomplete part is dropped */
}

/* Reads what is in the store, and lets the worker fill the other one. */
static int read_store(prof_cursor *cursor) {
  const span_store *const store = cursor->store;
  cursor->spans = store->spans;
  cursor->span_count = store->count;
  if (store->status) return store->status;
  if (!cursor->worker || cursor->walk_part_count == 0) return 1;
  cursor->store = &cursor->stores[store == cursor->stores];
  cursor->is_ahead = true;
  prof_i_worker_begin(cursor->worker, fill_store, cursor);
  return 1;
}

/* Fills spans from the next part of this thread, or of the next thread with events. 1; 0: no more,
   or a failure. */
static int advance_walk_part(prof_cursor *cursor) {
  if (cursor->is_ahead) {
    if (!prof_i_worker_wait(cursor->worker)) return PROF_E_BUSY;
    cursor->is_ahead = false;
    return read_store(cursor);
  }
  if (cursor->walk_part_count == 0) {
    finish_thread(cursor);
    while (cursor->thread < cursor->thread_end &&
           cursor->trace->threads[cursor->thread].event_count == 0)
      cursor->thread++;
    if (cursor->thread == cursor->thread_end) return 0;
    const int status = start_thread_walk(cursor);
    if (status) return status;
    cursor->thread++;
  }
  fill_store(cursor);
  return read_store(cursor);
}

int prof_i_cursor_create(const prof_trace *trace, prof_cursor **cursor_out) {
  if (!trace || !cursor_out)
    return prof_i_fail(PROF_E_INVALID, "prof_cursor_create: %s is NULL",
                       trace ? "cursor_out" : "trace");
  prof_cursor *const cursor = calloc(1, sizeof *cursor);
  if (!cursor) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a cursor");
  cursor->trace = trace;
  cursor->thread_end = trace->thread_count;
  cursor->is_own = true;
  cursor->store = cursor->stores;
  *cursor_out = cursor;
  return PROF_OK;
}

int prof_i_cursor_create_of(const prof_trace *trace, uint32_t thread, uint64_t from_ns,
                            prof_cursor **cursor_out) {
  const int status = prof_i_cursor_create(trace, cursor_out);
  if (status != PROF_OK) return status;
  (*cursor_out)->thread = thread;
  (*cursor_out)->thread_end = thread + 1;
  (*cursor_out)->from_ns = from_ns;
  return PROF_OK;
}

void prof_i_cursor_read_ahead(prof_cursor *cursor, bool has_self_times) {
  cursor->lacks_self_times = !has_self_times;
  cursor->worker = prof_i_worker_create("prof-reader");
}

int prof_cursor_create(const prof_trace *trace, prof_cursor **cursor_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  const int status = prof_i_cursor_create(trace, cursor_out);
  if (status == PROF_OK) (*cursor_out)->is_own = false;
  return status;
}

int prof_cursor_skip_before(prof_cursor *cursor, uint64_t from_ns) {
  if (!cursor) return prof_i_fail(PROF_E_INVALID, "prof_cursor_skip_before: cursor is NULL");
  if (cursor->walker || cursor->thread)
    return prof_i_fail(PROF_E_INVALID, "prof_cursor_skip_before: the cursor has been read from");
  cursor->from_ns = from_ns;
  return PROF_OK;
}

void prof_i_cursor_destroy(prof_cursor *cursor) {
  if (!cursor || !prof_i_worker_destroy(cursor->worker)) return;
  finish_thread(cursor);
  free(cursor->walk_parts);
  free(cursor->stores[0].spans);
  free(cursor->stores[1].spans);
  free(cursor);
}

void prof_cursor_destroy(prof_cursor *cursor) {
  PROF_I_REFUSE_INTERRUPTED();
  PROF_I_INSIDE;
  prof_i_cursor_destroy(cursor);
}

/* Called after the last stored span. Out of line, so that prof_cursor_next() saves no registers. 1:
   another event exists. */
static __attribute__((noinline)) int refill_spans(prof_cursor *cursor, const char *call) {
  if (!cursor->is_own && prof_i_reentry_is_refused(call)) return PROF_E_BUSY;
  PROF_I_INSIDE;
  while (cursor->span_count == 0) {
    const int status = cursor->status ? cursor->status : advance_walk_part(cursor);
    if (status == 1) continue;
    cursor->status = status;
    if (status == PROF_E_BUSY)
      return prof_i_fail(status,
                         "the process forked while it read events; the child cannot continue, the "
                         "parent does");
    return status ? prof_i_fail(status, "no memory to order a thread's events") : 0;
  }
  return 1;
}

static __attribute__((noinline)) int refuse_event_size(const prof_cursor *cursor) {
  return prof_i_fail(PROF_E_INVALID, "prof_cursor_next: %s is NULL",
                     cursor ? "event_out" : "cursor");
}

/* A brief event from `kind` on is a prof_event up to `args`. */
enum { BRIEF_BYTES = offsetof(prof_event, args) };
#define SAME_PLACE(member)                                                                \
  _Static_assert(offsetof(prof_event_brief, member) - offsetof(prof_event_brief, kind) == \
                     offsetof(prof_event, member),                                        \
                 #member)
SAME_PLACE(start_ns);
SAME_PLACE(depth);
SAME_PLACE(name);
SAME_PLACE(name_bytes);
SAME_PLACE(device);
SAME_PLACE(stream);
SAME_PLACE(args_kind);
SAME_PLACE(format);
SAME_PLACE(format_bytes);
SAME_PLACE(memory);
_Static_assert(sizeof(prof_event_brief) - offsetof(prof_event_brief, kind) == BRIEF_BYTES, "whole");

/* The first version's size. A later version's is longer, and a multiple of its alignment. */
static bool is_brief_size(size_t size) {
  return size >= sizeof(prof_event_brief) && size <= BRIEF_MOST_BYTES &&
         size % _Alignof(prof_event_brief) == 0;
}

static int refuse_brief_size(const char *function, size_t size) {
  return prof_i_fail(PROF_E_INVALID,
                     "%s: prof_event_brief.size is %zu; set it to sizeof(prof_event_brief)",
                     function, size);
}

static void copy_brief_event(const prof_cursor *cursor, const prof_i_span *span, size_t size,
                             prof_event_brief *to) {
  prof_event event;
  memset(&event.memory, 0, sizeof event.memory); /* zero for most events */
  prof_i_trace_expand(cursor->trace, cursor->thread - 1, span, &event);
  to->size = size;
  to->record = span->record;
  memcpy(&to->kind, &event, BRIEF_BYTES);
  memset(to + 1, 0, size - sizeof *to);
}

/* The next stored span. NULL: no more. */
static inline const prof_i_span *read_span(prof_cursor *cursor) {
  while (cursor->span_count > 0) {
    const prof_i_span *const span = &cursor->spans[--cursor->span_count];
    if (__builtin_expect(span->start_ns + span->duration_ns >= cursor->from_ns, 1)) return span;
  }
  return NULL;
}

int prof_i_cursor_fill(prof_cursor *cursor) { return refill_spans(cursor, __func__); }

const prof_i_span *prof_i_cursor_ready(const prof_cursor *cursor, uint32_t *thread_out,
                                       size_t *count_out) {
  *thread_out = cursor->thread - 1;
  *count_out = cursor->span_count;
  return cursor->spans;
}

void prof_i_cursor_take(prof_cursor *cursor, size_t count) {
  cursor->span_count -= (uint32_t)count;
}

int64_t prof_cursor_read(prof_cursor *cursor, prof_event_brief *events_out, uint64_t room) {
  if (!cursor || !events_out || !room)
    return prof_i_fail(PROF_E_INVALID, "prof_cursor_read: %s",
                       !cursor       ? "cursor is NULL"
                       : !events_out ? "events_out is NULL"
                                     : "room is 0");
  const size_t size = events_out->size;
  if (!is_brief_size(size)) return refuse_brief_size("prof_cursor_read", size);
  char *const to = (char *)events_out;
  int64_t count = 0;
  while ((uint64_t)count < room && count < INT64_MAX) {
    const prof_i_span *const span = read_span(cursor);
    if (span) {
      copy_brief_event(cursor, span, size, (void *)(to + (uint64_t)count * size));
      count++;
      continue;
    }
    const int status = refill_spans(cursor, __func__);
    if (status != 1) return count ? count : status;
  }
  return count;
}

int prof_trace_event_get(const prof_trace *trace, const prof_event_brief *brief,
                         prof_event *event_out) {
  if (!trace || !brief || !event_out)
    return prof_i_fail(PROF_E_INVALID, "prof_trace_event_get: %s is NULL",
                       !trace   ? "trace"
                       : !brief ? "brief"
                                : "event_out");
  if (!is_brief_size(brief->size)) return refuse_brief_size("prof_trace_event_get", brief->size);
  const uint32_t sites = prof_i_trace_site_count(trace);
  if (brief->site >= sites || brief->thread >= trace->thread_count)
    return prof_i_fail(PROF_E_INVALID, "thread is %u and site %u, and the trace has %u and %u",
                       brief->thread, brief->site, trace->thread_count, sites);
  const prof_i_span span = {.start_ns = brief->start_ns,
                            .duration_ns = brief->duration_ns,
                            .self_ns = brief->self_ns,
                            .record = brief->record,
                            .site = brief->site,
                            .depth = (uint16_t)brief->depth,
                            .kind = brief->kind & 31u};
  prof_i_trace_expand(trace, brief->thread, &span, event_out);
  return PROF_OK;
}

int prof_i_cursor_next_span(prof_cursor *cursor, prof_i_span *span_out) {
  const prof_i_span *span;
  while ((span = read_span(cursor)) == NULL) {
    const int status = refill_spans(cursor, __func__);
    if (status != 1) return status;
  }
  *span_out = *span;
  return 1;
}

int prof_cursor_next(prof_cursor *cursor, prof_event *event_out) {
  if (__builtin_expect(!cursor || !event_out, 0)) return refuse_event_size(cursor);
  const prof_i_span *span;
  while (__builtin_expect((span = read_span(cursor)) == NULL, 0)) {
    const int status = refill_spans(cursor, __func__);
    if (status != 1) return status;
  }
  prof_i_trace_expand(cursor->trace, cursor->thread - 1, span, event_out);
  return 1;
}
