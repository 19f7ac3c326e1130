/* A thread of a child is stopped while it frees ended threads for prof_health(), and another thread
   reaches the cap. The arena must not count as full, because the stopped thread is about to give
   room. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include <prof/profiler.h>

#include "base/port.h"
#include "core/buffer/arena.h"
#include "core/buffer/internal.h"
#include "core/buffer/ledger.h"
#include "health.h"
#include "support/skip.h"
#include "support/tracee.h"

enum { CAP_BYTES = 4 << 20, ENDED = 4 };

/* What parent and child share. Atomic. */
typedef struct stage {
  uint32_t may_fill, is_filled, is_over;
  int full_loss; /* when the cap was reached */
  uint32_t has_room_later;
} stage;
static stage *shared;

static void *record_and_end(void *tid_out) {
  record_scopes(1);
  *(uint64_t *)tid_out = prof_i_port_tid();
  syscall(SYS_exit, 0); /* so that no destructor of prof is called */
  return NULL;
}

static void leave_ended_threads(void) {
  for (int i = 0; i < ENDED; i++) {
    pthread_t thread;
    uint64_t tid = 0;
    if (pthread_create(&thread, NULL, record_and_end, &tid) != 0) _exit(1);
    pthread_join(thread, NULL);
    WAIT_WHILE(!prof_i_port_has_thread_ended((uint64_t)getpid(), tid));
  }
}

static uint64_t lost_for_lack_of_room(void) {
  const prof_i_thread_slot *const slot = prof_i_this_thread->slot;
  return prof_i_slot_lost(slot, prof_i_ledger_of(slot), PROF_LOSS_FULL);
}

static void *fill_when_asked(void *unused) {
  record_scopes(1);
  WAIT_WHILE(!__atomic_load_n(&shared->may_fill, __ATOMIC_ACQUIRE));
  while (lost_for_lack_of_room() == 0) record_scopes(1);
  shared->full_loss = prof_i_arena_full_loss();
  __atomic_store_n(&shared->is_filled, 1, __ATOMIC_RELEASE);
  WAIT_WHILE(!__atomic_load_n(&shared->is_over, __ATOMIC_ACQUIRE));
  const uint64_t lost = lost_for_lack_of_room();
  record_scopes(1);
  shared->has_room_later = lost_for_lack_of_room() == lost;
  return unused;
}

static void reap_beside_another(void *unused) {
  const prof_options options = {.size = sizeof options, .level = 1, .cap_bytes = CAP_BYTES};
  pthread_t other;
  (void)unused;
  if (prof_start_with(&options) != PROF_OK) _exit(1);
  leave_ended_threads();
  if (pthread_create(&other, NULL, fill_when_asked, NULL) != 0) _exit(1);
  tracee_trap();
  prof_i_thread_reap_exited();
  __atomic_store_n(&shared->is_over, 1, __ATOMIC_RELEASE);
  pthread_join(other, NULL);
  tracee_trap();
}

static void the_arena_is_not_full_while_ended_threads_are_freed(void **state) {
  tracee child;
  (void)state;
  assert_true(tracee_begin(&child, reap_beside_another, NULL, false));
  assert_true(tracee_run_to(&child, (uint64_t)(uintptr_t)prof_i_thread_reclaim, 1));
  __atomic_store_n(&shared->may_fill, 1, __ATOMIC_RELEASE);
  WAIT_WHILE(!__atomic_load_n(&shared->is_filled, __ATOMIC_ACQUIRE));
  assert_true(__atomic_load_n(&shared->is_filled, __ATOMIC_ACQUIRE));
  tracee_continue(&child, 0);
  assert_int_equal(child.signal, SIGTRAP);
  tracee_end(&child);
  assert_int_equal(shared->full_loss, -1);
  assert_true(shared->has_room_later);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_arena_is_not_full_while_ended_threads_are_freed)};
  skip_unless_steppable();
  const int flags = MAP_SHARED | MAP_ANONYMOUS;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (shared == MAP_FAILED) return 1;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
