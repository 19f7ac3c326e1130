/* Fits vendor calls between the scopes of their thread: prof_i_call_fit().

       scope     [============]         ends during the call: the call is inside, or follows
       call                 [~~~]
       scope                  [=====]   begins during the call: the call precedes it, or is inside

   In a sound capture few scopes begin or end during a call. In a damaged one there may be any
   number. Then the call stays as it is. */
#include "../format/parse.h"
#include "walk_sorted.h"

enum { ITEMS_MAX = 64 };

/* Whether this item may enclose a call, or be next to it. */
static bool item_is_around_call(const prof_i_walker *w, prof_i_sorted_record *item) {
  prof_i_long_record record;
  if ((item->words[1] & 15) == 0) return true;
  if (!prof_i_event_read(item->words, &record)) return false;
  if (record.kind == PROF_I_KIND_STEP)
    item->start = prof_i_step_start(&w->trace->catalog, item->end);
  return record.kind == PROF_I_KIND_STEP ||
         (record.kind == PROF_I_KIND_SCOPE && !(record.flags & PROF_I_FLAG_OTHER_THREAD));
}

/* How many items end after that moment, without the call. ITEMS_MAX: as many or more. */
static size_t count_items_after(const prof_i_sorted_record *items, size_t count, uint64_t ticks) {
  size_t behind = 0;
  while (behind < ITEMS_MAX && behind + 1 < count && items[count - 2 - behind].end > ticks)
    behind++;
  return behind;
}

/* Scopes already read are pending on the walker's stack, the latest begin on top. */
static void fit_call_to_begins(const prof_i_walker *w, const prof_i_sorted_record *items,
                               size_t count, prof_i_sorted_record *call) {
  const prof_i_lane *const lane = &w->lanes[0];
  for (uint32_t i = lane->count; i-- > 1 && lane->stack[i].start > call->start;) {
    const uint64_t begin = lane->stack[i].start;
    if (begin >= call->end) continue; /* begins after the call */
    if (call->end - begin >= begin - call->start ||
        count_items_after(items, count, begin) == ITEMS_MAX) {
      call->start = begin;
      return;
    }
    call->end = begin;
  }
}

/* Vendors do not call back on the calling thread. So a scope that seems to begin and end during a
   call, and takes most of it, encloses the call. */
static bool overlaps_mostly(const prof_i_sorted_record *scope, const prof_i_sorted_record *call) {
  return 2 * (scope->end - scope->start) > call->end - call->start;
}

/* Scopes that ended during the call are the items before it. Returns how many items before the call
   the innermost scope around it is. UINT32_MAX: no scope is around it. *is_all_out: false if there
   are too many items to read. */
static uint32_t fit_call_to_ends(const prof_i_walker *w, const prof_i_sorted_record *items,
                                 size_t count, prof_i_sorted_record *call, bool *is_all_out) {
  uint32_t around = UINT32_MAX, looked = 1;
  size_t i = count - 1;
  for (; i-- > 0 && items[i].end > call->start && looked <= ITEMS_MAX; looked++) {
    prof_i_sorted_record scope = items[i];
    if (!item_is_around_call(w, &scope) || scope.start >= call->end ||
        (scope.start >= call->start && !overlaps_mostly(&scope, call)))
      continue;
    if (scope.start > call->start) call->start = scope.start;
    if (call->end > scope.end && call->end - scope.end > scope.end - call->start) {
      call->start = scope.end;
      break;
    }
    if (call->end > scope.end) call->end = scope.end;
    around = looked;
  }
  *is_all_out = looked <= ITEMS_MAX;
  return around;
}

bool prof_i_call_fit(const prof_i_walker *walker, prof_i_sorted_record *items, size_t count) {
  prof_i_sorted_record call = items[count - 1];
  bool is_all;
  fit_call_to_begins(walker, items, count, &call);
  const uint64_t end = call.end;
  const uint32_t around = fit_call_to_ends(walker, items, count, &call, &is_all);
  if (!is_all) return true; /* as recorded */
  const size_t places = around != UINT32_MAX          ? around
                        : end != items[count - 1].end ? count_items_after(items, count, end)
                                                      : 0;
  const bool is_moved = around != UINT32_MAX || call.end != items[count - 1].end;
  for (size_t i = 0; i < places; i++) items[count - 1 - i] = items[count - 2 - i];
  items[count - 1 - places] = call;
  return !is_moved;
}
