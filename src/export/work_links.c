/* Connects the work of devices with the scopes that launched it. See internal.h. */
#include "internal.h"

#include <stdlib.h>

#include "../base/error.h"
#include "../reader/capture.h"

int prof_i_work_links_init(prof_i_work_links *l, const prof_trace *trace) {
  const int status = prof_i_launches_find(trace, &l->launches, false);
  if (status == PROF_OK && l->launches.count)
    l->links = calloc(l->launches.count, sizeof *l->links);
  if (status == PROF_OK && (l->links || !l->launches.count)) return PROF_OK;
  return prof_i_fail(PROF_E_NO_MEMORY, "no memory for the launches of %u scopes on devices",
                     l->launches.count);
}

void prof_i_work_links_fini(prof_i_work_links *l) {
  free(l->links);
  free(l->open_scopes);
  prof_i_launches_fini(&l->launches);
}

static bool scope_contains(const prof_i_link_scope *scope, uint64_t ns) {
  return scope->start_ns <= ns && ns <= scope->end_ns;
}

/* The innermost scope with that begin. If several scopes begin at that time, each is returned
   once. */
static prof_i_link_scope *find_side(const prof_i_work_links *l, uint64_t at_ns) {
  for (uint32_t i = l->open_count; i > 0; i--) {
    prof_i_link_scope *const scope = &l->open_scopes[i - 1];
    if (scope->start_ns != at_ns || scope->has_no_side) continue;
    scope->has_no_side = true;
    return scope;
  }
  return NULL;
}

static prof_i_link_scope *find_launcher(const prof_i_work_links *l, uint64_t at_ns) {
  prof_i_link_scope *found = NULL;
  for (uint32_t i = 0; i < l->open_count; i++) {
    prof_i_link_scope *const scope = &l->open_scopes[i];
    if (!scope_contains(scope, at_ns)) continue;
    if (scope->is_call) return scope;
    found = scope;
  }
  return found;
}

/* Links the launches before that time. All scopes that were open at these launches are known. */
static void settle_before(prof_i_work_links *l, uint64_t ns) {
  for (; l->next < l->end && l->launches.items[l->next].at_ns < ns; l->next++) {
    const prof_i_launch *const launch = &l->launches.items[l->next];
    while (l->open_count > 0 && l->open_scopes[l->open_count - 1].end_ns < launch->at_ns)
      l->open_count--;
    const prof_i_link_scope *const scope =
        launch->kind ? find_launcher(l, launch->at_ns) : find_side(l, launch->at_ns);
    if (scope) l->links[l->next].scope_id = scope->id;
  }
}

void prof_i_work_links_thread(prof_i_work_links *l, uint32_t thread) {
  settle_before(l, UINT64_MAX);
  l->open_count = 0;
  l->next = l->end = 0;
  if (thread == UINT32_MAX) return;
  l->end = prof_i_launches_of_thread(&l->launches, thread, &l->next);
  l->end += l->next;
}

bool prof_i_work_links_scope(prof_i_work_links *l, const prof_event *event, uint64_t id) {
  if (l->next == l->end) return true;
  settle_before(l, event->start_ns);
  while (l->open_count > 0 && l->open_scopes[l->open_count - 1].end_ns < event->start_ns)
    l->open_count--;
  if (!prof_i_make_room((void **)&l->open_scopes, &l->open_room, l->open_count,
                        sizeof *l->open_scopes))
    return false;
  l->open_scopes[l->open_count++] =
      (prof_i_link_scope){.id = id,
                          .start_ns = event->start_ns,
                          .end_ns = event->start_ns + event->duration_ns,
                          .is_call = (event->flags & PROF_EVENT_CALL) != 0,
                          .has_no_side = (event->flags & PROF_EVENT_ON_STREAM) == 0};
  return true;
}

static bool launch_is_before(const prof_i_launch *launch, const prof_event *work) {
  if (launch->at_ns != work->launch.start_ns) return launch->at_ns < work->launch.start_ns;
  return launch->start_ns < work->start_ns;
}

uint32_t prof_i_work_links_work(prof_i_work_links *l, const prof_event *work, uint64_t id) {
  uint32_t low, end = prof_i_launches_of_thread(&l->launches, work->launch.thread, &low);
  uint32_t high = end += low;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (launch_is_before(&l->launches.items[middle], work))
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < end; low++) {
    const prof_i_launch *const launch = &l->launches.items[low];
    if (launch->at_ns != work->launch.start_ns || launch->start_ns != work->start_ns) break;
    if (l->links[low].work_id || launch->stream != work->thread ||
        launch->duration_ns != work->duration_ns || launch->kind != work->launch.record)
      continue;
    l->links[low].work_id = id;
    return low;
  }
  return UINT32_MAX;
}
