/* See scope.h. */
#include "scope.h"

#include "../../base/port.h"
#include "../buffer/clock.h"

enum { SLOW_MOST_NS = 200, TIMED_OF = 8 };

static bool is_one_of_eight(prof_i_thread *thread) {
  thread->chance = thread->chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return thread->chance >> 61 == 0;
}

prof_i_slow_time prof_i_slow_time_begin(prof_i_thread *thread) {
  if (!thread->is_slow || !is_one_of_eight(thread)) return (prof_i_slow_time){NULL, 0, 0};
  const prof_i_thread_slot *const slot = thread->slot;
  const uint64_t own_ns = __atomic_load_n(&slot->own_ns, __ATOMIC_RELAXED);
  return (prof_i_slow_time){slot, prof_i_port_monotonic_ns(), own_ns};
}

void prof_i_slow_time_end(prof_i_thread *thread, const prof_i_slow_time *it) {
  if (!it->slot || it->slot != thread->slot) return;
  const uint64_t most_ns = (PROF_I_OPEN_COUNT + it->slot->deep) * SLOW_MOST_NS;
  const uint64_t all_ns = prof_i_ns_since(it->since_ns), ns = all_ns < most_ns ? all_ns : most_ns;
  const uint64_t counted = __atomic_load_n(&it->slot->own_ns, __ATOMIC_RELAXED) - it->own_ns;
  if (ns <= counted) return;
  prof_i_claim(&thread->slot->own_ns, (ns - counted) * TIMED_OF);
  prof_i_claim(&thread->overhead.slow_ns, (ns - counted) * TIMED_OF);
}
