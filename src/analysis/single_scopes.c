/* Two ways through traces. By start: a cursor for each thread, merged by a heap. By time: one walk,
   which keeps the scopes with the most time in a heap, the least of them at its root. See
   internal.h. */
#include "internal.h"

#include <stdlib.h>

#include "../base/error.h"
#include "../reader/internal.h"
#include "filter.h"

enum { KEPT_FIRST = 64 };

/* A scope, or a thread with its next scope. */
typedef struct scope_entry {
  uint64_t weight;   /* not by start */
  uint64_t start_ns; /* on the common time line */
  prof_i_span span;
  uint32_t trace, thread;
  prof_cursor *cursor; /* by start */
} scope_entry;

typedef bool (*entry_precedes)(const scope_entry *a, const scope_entry *b);

typedef struct scopes_search {
  const prof_i_placed_trace *traces;
  uint32_t trace_count;
  const prof_i_scopes_options *options;
  prof_i_trace_filter *filters; /* of each trace */
  prof_i_scopes_result *result;
  scope_entry *heap; /* a parent does not come after its children, by `precedes` */
  entry_precedes precedes;
  uint64_t count, room;
  uint32_t trace, thread; /* of the walk */
  prof_event event;       /* scratch */
} scopes_search;

/* ---- the heap ---- */

static bool is_earlier(const scope_entry *a, const scope_entry *b) {
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns;
  if (a->trace != b->trace) return a->trace < b->trace;
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

static bool takes_span(scopes_search *s, uint32_t trace, uint32_t thread, const prof_i_span *span) {
  return span->kind <= PROF_EVENT_OPEN &&
         prof_i_trace_filter_takes(&s->filters[trace], thread, span);
}

static uint64_t span_start_ns(const scopes_search *s, uint32_t trace, const prof_i_span *span) {
  return s->traces[trace].offset_ns + span->start_ns;
}

static int give_scope(scopes_search *s, const scope_entry *entry, prof_i_scope_visit visit,
                      void *user) {
  prof_i_trace_expand(s->traces[entry->trace].trace, entry->thread, &entry->span, &s->event);
  s->result->given_count++;
  return visit(user, entry->trace, &s->event);
}

/* ---- by start ---- */

/* The next scope that passes. 1; 0: the thread has no more; or an error. */
static int next_scope(scopes_search *s, scope_entry *entry) {
  int status;
  while ((status = prof_i_cursor_next_span(entry->cursor, &entry->span)) == 1) {
    if (entry->span.start_ns >= s->filters[entry->trace].window.to_ns) return 0;
    entry->start_ns = span_start_ns(s, entry->trace, &entry->span);
    if (takes_span(s, entry->trace, entry->thread, &entry->span)) return 1;
  }
  return status;
}

static int add_thread(scopes_search *s, uint32_t trace, uint32_t thread) {
  scope_entry entry = {.trace = trace, .thread = thread};
  int status = prof_i_cursor_create_of(s->traces[trace].trace, thread,
                                       s->filters[trace].window.from_ns, &entry.cursor);
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
  for (uint32_t t = 0; t < s->trace_count; t++) {
    const prof_trace *const trace = s->traces[t].trace;
    for (uint32_t i = 0; i < trace->thread_count && status == PROF_OK; i++)
      if (s->filters[t].takes_thread[i] && trace->threads[i].event_count)
        status = add_thread(s, t, i);
  }
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
    if (!takes_span(s, s->trace, s->thread, &spans[i])) continue;
    const scope_entry entry = {.weight = span_weight(s, &spans[i]),
                               .start_ns = span_start_ns(s, s->trace, &spans[i]),
                               .span = spans[i],
                               .trace = s->trace,
                               .thread = s->thread};
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
  for (s->trace = 0; s->trace < s->trace_count; s->trace++) {
    const prof_trace *const trace = s->traces[s->trace].trace;
    for (s->thread = 0; s->thread < trace->thread_count && status == PROF_OK; s->thread++)
      if (s->filters[s->trace].takes_thread[s->thread])
        status = prof_i_trace_walk(trace, s->thread, keep_spans, s);
  }
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

static int init_filters(scopes_search *s) {
  s->filters = calloc(s->trace_count, sizeof *s->filters);
  for (uint32_t i = 0; i < s->trace_count; i++)
    if (!s->filters || prof_i_trace_filter_init_at(&s->filters[i], s->traces[i].trace,
                                                   s->options->filter, s->traces[i].offset_ns) != 0)
      return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a filter of %u threads",
                         s->traces[i].trace->thread_count);
  return PROF_OK;
}

static void fini_search(scopes_search *s) {
  for (uint32_t i = 0; s->filters && i < s->trace_count; i++)
    prof_i_trace_filter_fini(&s->filters[i]);
  free(s->filters);
  free(s->heap);
  free(s);
}

int prof_i_traces_scopes(const prof_i_placed_trace *traces, uint32_t trace_count,
                         const prof_i_scopes_options *options, prof_i_scope_visit visit, void *user,
                         prof_i_scopes_result *result_out) {
  scopes_search *const s = calloc(1, sizeof *s);
  const bool is_by_start = options->order == PROF_I_SCOPES_BY_START;
  *result_out = (prof_i_scopes_result){.is_whole = true};
  if (!s) return prof_i_fail(PROF_E_NO_MEMORY, "no memory to list scopes");
  s->traces = traces;
  s->trace_count = trace_count;
  s->options = options;
  s->result = result_out;
  s->precedes = is_by_start ? is_earlier : is_lighter;
  int status = init_filters(s);
  if (status == PROF_OK)
    status = is_by_start ? give_by_start(s, visit, user) : give_by_weight(s, visit, user);
  fini_search(s);
  return status;
}
