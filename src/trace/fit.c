/* See fit.h.

       scope     [============]         ends during the call: the call is inside, or behind
       call                 [~~~]
       scope                  [=====]   begins during the call: the call is before, or inside

   Of a sound capture few scopes begin or end during a call. A damaged one may have any number, and then it stays where it is. */
#include "fit.h"

#include "parse.h"

enum { LOOK_MAX = 64 };

/* What may hold a call, or stand beside it. */
static bool is_around(const prof_i_walker *w, prof_i_item *item) {
  prof_i_long record;
  if ((item->words[1] & 15) == 0) return true;
  if (!prof_i_event_read(item->words, &record)) return false;
  if (record.kind == PROF_I_KIND_STEP) item->start = prof_i_step_start(&w->trace->catalog, item->end);
  return record.kind == PROF_I_KIND_STEP || (record.kind == PROF_I_KIND_SCOPE && !(record.flags & PROF_I_FLAG_OTHER_THREAD));
}

/* So many items end behind that moment, the call not counted; LOOK_MAX: or more. */
static size_t count_behind(const prof_i_item *items, size_t count, uint64_t ticks) {
  size_t behind = 0;
  while (behind < LOOK_MAX && behind + 1 < count && items[count - 2 - behind].end > ticks) behind++;
  return behind;
}

/* Those that have come wait on the walker's stack, the latest begin on top. */
static void fit_begins(const prof_i_walker *w, const prof_i_item *items, size_t count, prof_i_item *call) {
  const prof_i_lane *const lane = &w->lanes[0];
  for (uint32_t i = lane->count; i-- > 1 && lane->stack[i].start > call->start;) {
    const uint64_t begin = lane->stack[i].start;
    if (begin >= call->end) continue; /* over, going backwards */
    if (call->end - begin >= begin - call->start || count_behind(items, count, begin) == LOOK_MAX) {
      call->start = begin;
      return;
    }
    call->end = begin;
  }
}

/* Vendors call nobody back on the thread that calls them: a scope that seems to begin and end during a call, and is most of it, has the call inside. */
static bool is_most_of(const prof_i_item *scope, const prof_i_item *call) { return 2 * (scope->end - scope->start) > call->end - call->start; }

/* Those that ended during the call come next. */
static bool fit_ends(const prof_i_walker *w, prof_i_item *items, size_t count, prof_i_item *call) {
  bool is_inside = false;
  for (size_t i = count - 1, looked = 0; i-- > 0 && items[i].end > call->start && looked < LOOK_MAX; looked++) {
    prof_i_item scope = items[i];
    if (!is_around(w, &scope) || (scope.start >= call->start && !is_most_of(&scope, call))) continue;
    if (scope.start > call->start) call->start = scope.start;
    if (call->end > scope.end && call->end - scope.end > scope.end - call->start) {
      call->start = scope.end;
      return is_inside;
    }
    if (call->end > scope.end) call->end = scope.end;
    is_inside = true;
  }
  return is_inside;
}

bool prof_i_fit_call(const prof_i_walker *walker, prof_i_item *items, size_t count) {
  prof_i_item call = items[count - 1];
  const uint64_t end = call.end;
  fit_begins(walker, items, count, &call);
  if (!fit_ends(walker, items, count, &call) && call.end == end) {
    items[count - 1] = call;
    return true;
  }
  size_t at = count - 1;
  for (; at > 0 && items[at - 1].end >= call.end; at--) items[at] = items[at - 1];
  items[at] = call;
  return false;
}
