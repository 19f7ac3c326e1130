/* A thread of a child is stopped while it opens a block, and another thread acts: it forks, or it
   opens a block as well. The stopped thread must then find the room that is left. The forked
   child's capture must count as full at its cap. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <prof/profiler.h>

#include "base/port.h"
#include "core/buffer/arena.h"
#include "core/buffer/blocks.h"
#include "health.h"
#include "support/skip.h"
#include "support/tracee.h"

enum { CAP_BYTES = 16 << 20, SCOPES = 1 << 20, STEPS_LEAST = 50 };

/* What parent and child share. Atomic. */
typedef struct stage {
  uint32_t may_act, has_acted, is_over;
  int result; /* of a fork's child: a wait status; of a claim: 1 + whether it got room */
} stage;
static stage *shared;

static void start(void) {
  const prof_options options = {.size = sizeof options, .level = 1, .cap_bytes = CAP_BYTES};
  if (prof_start_with(&options) != PROF_OK || !prof_i_the_arena.has_blocks) _exit(1);
}

static void *act_when_asked(void *act) {
  void (*const *const what)(void) = act;
  WAIT_WHILE(!__atomic_load_n(&shared->may_act, __ATOMIC_ACQUIRE));
  (*what)();
  __atomic_store_n(&shared->has_acted, 1, __ATOMIC_RELEASE);
  return NULL;
}

static void begin_other_thread(void (**act)(void)) {
  pthread_t other;
  if (pthread_create(&other, NULL, act_when_asked, act) != 0) _exit(1);
}

static void let_other_act(void) {
  __atomic_store_n(&shared->may_act, 1, __ATOMIC_RELEASE);
  WAIT_WHILE(!__atomic_load_n(&shared->has_acted, __ATOMIC_ACQUIRE));
  assert_true(__atomic_load_n(&shared->has_acted, __ATOMIC_ACQUIRE));
}

/* ---- a fork ---- */

static void fork_and_fill(void) {
  const pid_t child = fork();
  if (child == 0) {
    prof_health health = health_now();
    for (int i = 0; i < 2 * SCOPES && !health_lost(&health); i += 4096) {
      record_scopes(4096);
      health = health_now();
    }
    _exit(!health.is_full || health.lost_count[PROF_LOSS_FULL] != health_lost(&health));
  }
  int status = -1;
  if (child > 0) waitpid(child, &status, 0);
  __atomic_store_n(&shared->result, status, __ATOMIC_RELAXED);
}

static void record_beside_a_fork(void *unused) {
  static void (*act)(void) = fork_and_fill;
  (void)unused;
  start();
  begin_other_thread(&act);
  tracee_trap();
  record_scopes(SCOPES);
}

static void a_child_that_is_forked_meanwhile_fills_its_own_capture(void **state) {
  tracee child;
  (void)state;
  memset(shared, 0, sizeof *shared);
  shared->result = -1;
  assert_true(tracee_begin(&child, record_beside_a_fork, NULL, false));
  assert_true(tracee_run_to(&child, (uint64_t)(uintptr_t)prof_i_port_use_huge_pages, 1));
  let_other_act();
  tracee_end(&child);
  assert_int_equal(shared->result, 0);
}

/* ---- the last block's rest ---- */

static bool claim_unit(void) {
  uint64_t offset;
  int loss;
  return prof_i_blocks_claim(PROF_I_EXTENT_SLOT, PROF_I_UNIT_BYTES, &offset, &loss);
}
static void claim_one(void) { claim_unit(); }

static void claim_beside_another(void *unused) {
  static void (*act)(void) = claim_one;
  (void)unused;
  start();
  uint64_t *const used = &prof_i_arena_header()->used_bytes;
  while (*used < CAP_BYTES - PROF_I_BLOCK_BYTES || prof_i_blocks_free_bytes()) claim_one();
  begin_other_thread(&act);
  tracee_trap();
  const bool has_room = claim_unit();
  __atomic_store_n(&shared->result, 1 + has_room, __ATOMIC_RELAXED);
  __atomic_store_n(&shared->is_over, 1, __ATOMIC_SEQ_CST);
  tracee_trap();
}

/* False: the claim was over before. */
static bool claim_with_step(int steps) {
  tracee child;
  memset(shared, 0, sizeof *shared);
  assert_true(tracee_begin(&child, claim_beside_another, NULL, false));
  for (int i = 0; i < steps; i++) tracee_step(&child);
  const bool is_over = __atomic_load_n(&shared->is_over, __ATOMIC_SEQ_CST);
  if (!is_over) {
    let_other_act();
    tracee_continue(&child, 0);
  }
  tracee_end(&child);
  if (shared->result != 2) fail_msg("step %d: no room, beside a thread that had some", steps);
  return !is_over;
}

static void the_rest_of_a_block_that_another_opens_meanwhile_is_found(void **state) {
  int steps = 0;
  (void)state;
  while (claim_with_step(steps)) steps++;
  print_message("another claimed at %d instructions\n", steps);
  assert_in_range(steps, STEPS_LEAST, INT32_MAX);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_child_that_is_forked_meanwhile_fills_its_own_capture),
      cmocka_unit_test(the_rest_of_a_block_that_another_opens_meanwhile_is_found)};
  skip_unless_steppable();
  const int flags = MAP_SHARED | MAP_ANONYMOUS;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (shared == MAP_FAILED) return 1;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
