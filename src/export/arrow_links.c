/* Numbers that connect work of devices with the scopes that launched it: the column "correlation".
   The rows of a stream may come before or after those of the launching thread. So these threads are
   walked once before the first row. Called by arrow.c. */
#include <stdlib.h>

#include "../base/log.h"
#include "../reader/capture.h"
#include "../reader/internal.h"
#include "arrow.h"

static bool is_launching_thread(const prof_i_arrow_links *l, uint32_t thread) {
  uint32_t first;
  return prof_i_launches_of_thread(&l->work.launches, thread, &first) > 0;
}

static bool is_scope(const prof_event *event) {
  return event->kind == PROF_EVENT_SCOPE || event->kind == PROF_EVENT_OPEN;
}

static int walk_thread(prof_i_arrow_links *l, const prof_trace *trace, uint32_t thread) {
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
static int list_scopes(prof_i_arrow_links *l) {
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

int prof_i_arrow_links_init(prof_i_arrow_links *l, const prof_trace *trace) {
  int status = prof_i_work_links_init(&l->work, trace);
  l->thread = UINT32_MAX;
  if (l->work.launches.count == 0) return status;
  for (uint32_t i = 0; status == PROF_OK && i < trace->thread_count; i++)
    if (is_launching_thread(l, i)) status = walk_thread(l, trace, i);
  prof_i_work_links_thread(&l->work, UINT32_MAX);
  l->scope_count = 0;
  return status == PROF_OK ? list_scopes(l) : status;
}

void prof_i_arrow_links_fini(prof_i_arrow_links *l) {
  free(l->scopes);
  prof_i_work_links_fini(&l->work);
}

static uint64_t number_of_scope(prof_i_arrow_links *l, uint32_t thread) {
  if (l->thread != thread) {
    l->thread = thread;
    l->is_launching = is_launching_thread(l, thread);
  }
  if (!l->is_launching) return 0;
  const uint64_t scope = ++l->scope_count;
  while (l->next < l->count && l->scopes[l->next] < scope) l->next++;
  return l->next < l->count && l->scopes[l->next] == scope ? l->next + 1u : 0;
}

static uint64_t number_of_work(prof_i_arrow_links *l, const prof_event *work) {
  const uint32_t launch = prof_i_work_links_work(&l->work, work, 1);
  if (launch == UINT32_MAX) return 0;
  const uint64_t *const found = bsearch(&l->work.links[launch].scope_id, l->scopes, l->count,
                                        sizeof *l->scopes, scope_compare);
  return found ? (uint64_t)(found - l->scopes) + 1 : 0;
}

uint64_t prof_i_arrow_links_number(prof_i_arrow_links *l, const prof_event *event) {
  if (l->count == 0 || !is_scope(event)) return 0;
  return event->flags & PROF_EVENT_ON_DEVICE ? number_of_work(l, event)
                                             : number_of_scope(l, event->thread);
}
