/* Two ways through a trace. By start: a cursor for each thread, merged by a heap. By time: one
   walk, which keeps the scopes with the most time in a heap, the least of them at its root. See
   single_scopes.h. */
#include "single_scopes.h"

#include <stdlib.h>

#include "../base/log.h"
#include "../reader/internal.h"
#include "trace_filter.h"

enum { KEPT_FIRST = 64 };

/* A scope, or a thread with its next scope. */
typedef struct scope_entry {
  uint64_t weight; /* not by start */
  prof_i_span span;
  uint32_t thread;
  prof_cursor *cursor; /* by start */
} scope_entry;

typedef bool (*entry_precedes)(const scope_entry *a, const scope_entry *b);

typedef struct scopes_search {
  const prof_trace *trace;
  const prof_i_scopes_options *options;
  prof_i_trace_filter filter;
  prof_i_scopes_result *result;
  scope_entry *heap; /* a parent does not come after its children, by `precedes` */
  entry_precedes precedes;
  uint64_t count, room;
  uint32_t thread;  /* of the walk */
  prof_event event; /* scratch */
} scopes_search;

/* ---- the heap ---- */

static bool is_earlier(const scope_entry *a, const scope_entry *b) {
  if (a->span.start_ns != b->span.start_ns) return a->span.start_ns < b->span.start_ns;
  if (a->thread != b->thread) return a->thread < b->thread;
  return a->span.depth < b->span.depth;
}

/* Of those with the most time, the one that a longer scope replaces first. */
static bool is_lighter(const scope_entry *a, const scope_entry *b) {
  return a->weight != b->weight ? a->weight < b->weight : is_earlier(b, a);
}

static void swap_entries(scope_entry *a, scope_entry *b) {
  const scope_entry kept = *a;
  *a = *b;
  *b = kept;
}

static void heap_sink(scopes_search *s, uint64_t at) {
  for (uint64_t child; (child = 2 * at + 1) < s->count; at = child) {
    if (child + 1 < s->count && s->precedes(&s->heap[child + 1], &s->heap[child])) child++;
    if (!s->precedes(&s->heap[child], &s->heap[at])) return;
    swap_entries(&s->heap[child], &s->heap[at]);
  }
}

static bool heap_add(scopes_search *s, const scope_entry *entry) {
  if (s->count == s->room) {
    const uint64_t room = s->room ? 2 * s->room : KEPT_FIRST;
    scope_entry *const larger = realloc(s->heap, room * sizeof *larger);
    if (!larger) return false;
    s->heap = larger;
    s->room = room;
  }
  uint64_t at = s->count++;
  s->heap[at] = *entry;
  for (; at > 0 && s->precedes(&s->heap[at], &s->heap[(at - 1) / 2]); at = (at - 1) / 2)
    swap_entries(&s->heap[at], &s->heap[(at - 1) / 2]);
  return true;
}

static void heap_remove_first(scopes_search *s) {
  s->heap[0] = s->heap[--s->count];
  heap_sink(s, 0);
}

/* ---- scopes ---- */

static bool takes_span(scopes_search *s, uint32_t thread, const prof_i_span *span) {
  return span->kind <= PROF_EVENT_OPEN && prof_i_trace_filter_takes(&s->filter, thread, span);
}

static int give_scope(scopes_search *s, const scope_entry *entry, prof_i_scope_visit visit,
                      void *user) {
  prof_i_trace_expand(s->trace, entry->thread, &entry->span, &s->event);
  s->result->given_count++;
  return visit(user, &s->event);
}

/* ---- by start ---- */

/* The next scope that passes. 1; 0: the thread has no more; or an error. */
static int next_scope(scopes_search *s, scope_entry *entry) {
  int status;
  while ((status = prof_i_cursor_next_span(entry->cursor, &entry->span)) == 1) {
    if (entry->span.start_ns >= s->filter.window.to_ns) return 0;
    if (takes_span(s, entry->thread, &entry->span)) return 1;
  }
  return status;
}

static int add_thread(scopes_search *s, uint32_t thread) {
  scope_entry entry = {.thread = thread};
  int status = prof_i_cursor_create_of(s->trace, thread, s->filter.window.from_ns, &entry.cursor);
  if (status == PROF_OK) status = next_scope(s, &entry);
  if (status == 1 && heap_add(s, &entry)) return PROF_OK;
  prof_i_cursor_destroy(entry.cursor);
  return status == 1 ? prof_i_fail(PROF_E_NO_MEMORY, "no memory to read %u threads", thread + 1)
                     : status;
}

static int merge_threads(scopes_search *s, prof_i_scope_visit visit, void *user) {
  while (s->count > 0) {
    if (s->result->given_count == s->options->limit) {
      s->result->is_whole = false;
      return PROF_OK;
    }
    s->result->passed_count++;
    int status = give_scope(s, &s->heap[0], visit, user);
    if (status != PROF_OK) return status;
    status = next_scope(s, &s->heap[0]);
    if (status < 0) return status;
    if (status == 1) {
      heap_sink(s, 0);
    } else {
      prof_i_cursor_destroy(s->heap[0].cursor);
      heap_remove_first(s);
    }
  }
  return PROF_OK;
}

static int give_by_start(scopes_search *s, prof_i_scope_visit visit, void *user) {
  int status = PROF_OK;
  for (uint32_t i = 0; i < s->trace->thread_count && status == PROF_OK; i++)
    if (s->filter.takes_thread[i] && s->trace->threads[i].event_count) status = add_thread(s, i);
  if (status == PROF_OK) status = merge_threads(s, visit, user);
  for (uint64_t i = 0; i < s->count; i++) prof_i_cursor_destroy(s->heap[i].cursor);
  return status;
}

/* ---- by duration and self time ---- */

/* The end of a scope that a jump left is not known. */
static uint64_t span_weight(const scopes_search *s, const prof_i_span *span) {
  if (span->record && prof_i_is_skipped(span->record)) return 0;
  return s->options->order == PROF_I_SCOPES_BY_SELF ? span->self_ns : span->duration_ns;
}

static int keep_spans(void *user, const prof_i_span *spans, size_t count) {
  scopes_search *const s = user;
  for (size_t i = 0; i < count; i++) {
    if (!takes_span(s, s->thread, &spans[i])) continue;
    const scope_entry entry = {
        .weight = span_weight(s, &spans[i]), .span = spans[i], .thread = s->thread};
    s->result->passed_count++;
    if (s->count < s->options->limit) {
      if (!heap_add(s, &entry)) return PROF_E_NO_MEMORY;
    } else if (s->count && is_lighter(&s->heap[0], &entry)) {
      s->heap[0] = entry;
      heap_sink(s, 0);
    }
  }
  return 0;
}

static int give_by_weight(scopes_search *s, prof_i_scope_visit visit, void *user) {
  int status = PROF_OK;
  for (s->thread = 0; s->thread < s->trace->thread_count && status == PROF_OK; s->thread++)
    if (s->filter.takes_thread[s->thread])
      status = prof_i_trace_walk(s->trace, s->thread, keep_spans, s);
  if (status != PROF_OK)
    return prof_i_fail(status, "no memory to keep %llu scopes", (unsigned long long)s->count);
  const uint64_t all = s->count;
  while (s->count > 1) { /* the lightest goes to the end */
    const scope_entry last = s->heap[0];
    heap_remove_first(s);
    s->heap[s->count] = last;
  }
  for (uint64_t i = 0; i < all && status == PROF_OK; i++)
    status = give_scope(s, &s->heap[i], visit, user);
  return status;
}

int prof_i_trace_scopes(const prof_trace *trace, const prof_i_scopes_options *options,
                        prof_i_scope_visit visit, void *user, prof_i_scopes_result *result_out) {
  scopes_search *const s = calloc(1, sizeof *s);
  const bool is_by_start = options->order == PROF_I_SCOPES_BY_START;
  *result_out = (prof_i_scopes_result){.is_whole = true};
  if (!s) return prof_i_fail(PROF_E_NO_MEMORY, "no memory to list scopes");
  s->trace = trace;
  s->options = options;
  s->result = result_out;
  s->precedes = is_by_start ? is_earlier : is_lighter;
  int status = prof_i_trace_filter_init(&s->filter, trace, options->filter);
  if (status != PROF_OK)
    status = prof_i_fail(status, "no memory for a filter of %u threads", trace->thread_count);
  else
    status = is_by_start ? give_by_start(s, visit, user) : give_by_weight(s, visit, user);
  prof_i_trace_filter_fini(&s->filter);
  free(s->heap);
  free(s);
  return status;
}
