/* Another capture takes the place of the one in force while threads tell of pieces, and ask for the
   peak: what they look at must not be gone. */
#define _GNU_SOURCE
#include <prof/memory.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { STARTS = 400, TELLERS = 2 };

static int is_over;
static prof_pool *pools[2];

static void *tell(void *address) {
  while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
    for (int i = 0; i < 2; i++) {
      prof_memory_alloc(pools[i], address, 100, 112);
      prof_memory_free(pools[i], address, 112);
    }
  return NULL;
}

static void *ask(void *unused) {
  prof_memory_max max = {.size = sizeof max};
  while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
    prof_memory_max_get(PROF_HOST, PROF_MEMORY_POOL, &max);
  return unused;
}

static void captures_come_and_go_under_a_pool(void **state) {
  (void)state;
  pthread_t threads[TELLERS + 1];
  for (int i = 0; i < 2; i++) assert_int_equal(prof_pool_create(NULL, &pools[i]), PROF_OK);
  for (uintptr_t i = 0; i < TELLERS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, tell, (void *)((i + 1) << 12)), 0);
  assert_int_equal(pthread_create(&threads[TELLERS], NULL, ask, NULL), 0);
  for (uint64_t i = 0; i < STARTS; i++) {
    /* another size: another arena */
    const prof_options options = {.size = sizeof options, .cap_bytes = (2 + i % 2) << 20};
    assert_int_equal(prof_start_with(&options), PROF_OK);
    assert_int_equal(prof_stop(), PROF_OK);
  }
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  for (int i = 0; i <= TELLERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  for (int i = 0; i < 2; i++) prof_pool_destroy(pools[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(captures_come_and_go_under_a_pool)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
