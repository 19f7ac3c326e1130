/* Finds the call that launched a kernel or a copy: see vendor.h. */
#include "vendor.h"

#include <stdlib.h>
#include <string.h>

enum { WAITING_MAX = 1 << 16, WAITING_AT_FIRST = 256 };

void prof_i_launch_matcher_begin(prof_i_launch_matcher *all, const prof_backend_host *host,
                                 bool is_last) {
  all->host = host;
  all->is_last = is_last;
  memset(all->threads, 0, sizeof all->threads);
}

uint64_t prof_i_launch_matcher_unfinished(prof_i_launch_matcher *all) {
  const uint64_t unfinished_count = all->unfinished_count;
  all->unfinished_count = 0;
  return unfinished_count;
}

uint64_t prof_i_launch_matcher_thread_serial(prof_i_launch_matcher *all, uint64_t kernels_number) {
  if (!all->host->thread_of) return 0;
  const uint64_t at = kernels_number % PROF_I_LAUNCH_THREADS;
  if (all->threads[at].number != kernels_number) {
    all->threads[at].number = kernels_number;
    all->threads[at].prof = all->host->thread_of(kernels_number);
  }
  return all->threads[at].prof;
}

void prof_i_launch_matcher_add_call(prof_i_launch_matcher *all, const prof_i_launch_call *call) {
  prof_i_launch_call *const at = &all->calls[call->number % PROF_I_LAUNCH_CALLS];
  if (call->number && (at->number != call->number || at->start > call->start)) *at = *call;
}

/* The launch time selects the scope that is open at that time, so it must be inside of the call.
   Scopes have another clock, and a converted time may be too early or too late. The middle of the
   call tolerates the largest error. Work begins after its launch. If its converted begin is before
   the call, the work is moved to the launch. Then the launch is near the call's begin, to move the
   work as little as possible. */
static uint64_t launch_time_of(const prof_i_launch_call *call, uint64_t begun) {
  enum { JUST_INSIDE_NS = 1000 };
  const uint64_t half = call->end > call->start ? (call->end - call->start) / 2 : 0,
                 middle = call->start + half;
  if (begun <= call->start) return half < JUST_INSIDE_NS ? middle : call->start + JUST_INSIDE_NS;
  return begun < middle ? begun : middle;
}

/* False: the call is not known so far. */
static bool find_launch_call(prof_i_launch_matcher *all, prof_backend_record *record) {
  const prof_i_launch_call *const call = &all->calls[record->correlation % PROF_I_LAUNCH_CALLS];
  if (!record->correlation || call->number != record->correlation) return false;
  record->launch = launch_time_of(call, record->start);
  record->flags |= PROF_BACKEND_LAUNCH_CLOCK;
  record->launch_thread = prof_i_launch_matcher_thread_serial(all, call->thread);
  return true;
}

static bool reserve_waiting(prof_i_launch_matcher *all) {
  if (all->count < all->room) return true;
  const uint32_t room = all->room ? 2 * all->room : WAITING_AT_FIRST;
  prof_i_launched_record *const larger =
      room <= WAITING_MAX ? realloc(all->waiting, room * sizeof *larger) : NULL;
  if (!larger) return false;
  all->waiting = larger;
  all->room = room;
  return true;
}

static void emit_launched(const prof_i_launch_matcher *all, const prof_i_launched_record *it) {
  all->host->emit(it, it->record.size);
}

void prof_i_launch_matcher_emit(prof_i_launch_matcher *all, prof_i_launched_record *it) {
  if (all->is_last && !it->record.end)
    all->unfinished_count++;
  else if (find_launch_call(all, &it->record) || !reserve_waiting(all))
    emit_launched(all, it);
  else
    all->waiting[all->count++] = *it;
}

void prof_i_launch_matcher_flush(prof_i_launch_matcher *all, bool are_all) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < all->count; i++) {
    prof_i_launched_record *const it = &all->waiting[i];
    if (find_launch_call(all, &it->record) || are_all || i < all->waited_count)
      emit_launched(all, it);
    else
      all->waiting[kept++] = *it;
  }
  all->count = all->waited_count = kept;
}
