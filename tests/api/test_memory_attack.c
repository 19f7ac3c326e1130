/* Memory, by somebody who means harm: what is destroyed while it is in use, queries that do what they must not, small stacks, names and links that lie. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory_checks.h"

static void await(const int *word) {
  while (!__atomic_load_n(word, __ATOMIC_ACQUIRE)) sched_yield();
}

static void set(int *word) { __atomic_store_n(word, 1, __ATOMIC_RELEASE); }

/* ---- destroyed while others look ---- */

static int is_over;

static void *make_and_destroy(void *unused) {
  for (int i = 0; i < 20000; i++) prof_pool_destroy(make_checked_pool("short"));
  set(&is_over);
  return unused;
}

static void a_checked_pool_goes_while_another_looks_for_a_piece(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_checked_pool("looks");
  pthread_t thread;
  is_over = 0;
  assert_int_equal(pthread_create(&thread, NULL, make_and_destroy, NULL), 0);
  for (uint64_t i = 0; !__atomic_load_n(&is_over, __ATOMIC_ACQUIRE); i++) prof_memory_free(pool, AT(0x5000000 + i * 64), 64);
  assert_int_equal(pthread_join(thread, NULL), 0);
  prof_pool_destroy(pool);
  OK(prof_stop());
}

/* ---- queries ---- */

static struct {
  int is_in, may_go, is_out, calls;
  prof_pool *pool;
} query;

static int slow_query(void *unused, uint64_t *used, uint64_t *allocated) {
  (void)unused;
  set(&query.is_in);
  await(&query.may_go);
  *used = *allocated = 1;
  set(&query.is_out);
  return 0;
}

static int quick_query(void *unused, uint64_t *used, uint64_t *allocated) {
  (void)unused;
  query.calls++;
  *used = *allocated = 2;
  return 0;
}

static void *ask(void *unused) {
  PROFILE_MEMORY(PROF_HOST, "slow");
  return unused;
}

static void a_query_that_is_asked_stays_until_it_has_answered(void **state) {
  (void)state;
  start_afresh(4 << 20);
  memset(&query, 0, sizeof query);
  OK(prof_memory_set_query(PROF_HOST, slow_query, NULL));
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, ask, NULL), 0);
  await(&query.is_in);
  for (int i = 0; i < 3; i++) assert_int_equal(prof_memory_set_query(PROF_HOST, i ? quick_query : NULL, NULL), PROF_E_BUSY);
  set(&query.may_go);
  assert_int_equal(pthread_join(thread, NULL), 0);
  query.is_out = 0;
  PROFILE_MEMORY(PROF_HOST, "still the old one");
  assert_true(query.is_out);
  assert_int_equal(query.calls, 0);
  OK(prof_memory_set_query(PROF_HOST, quick_query, NULL));
  PROFILE_MEMORY(PROF_HOST, "the new one");
  assert_int_equal(query.calls, 1);
  OK(prof_memory_set_query(PROF_HOST, NULL, NULL));
  OK(prof_stop());
}

static void *start_memory(void *unused) {
  OK(prof_memory_start());
  return unused;
}

static void *let_go_late(void *unused) {
  usleep(50000);
  set(&query.may_go);
  return unused;
}

static void a_pool_stays_until_its_query_has_answered(void **state) {
  (void)state;
  start_afresh(4 << 20);
  OK(prof_stop());
  memset(&query, 0, sizeof query);
  prof_pool *pool;
  OK(prof_pool_create(&(prof_pool_options){.size = sizeof(prof_pool_options), .query = slow_query}, &pool));
  pthread_t starter, helper;
  assert_int_equal(pthread_create(&starter, NULL, start_memory, NULL), 0);
  await(&query.is_in);
  assert_int_equal(pthread_create(&helper, NULL, let_go_late, NULL), 0);
  prof_pool_destroy(pool);
  assert_true(__atomic_load_n(&query.is_out, __ATOMIC_ACQUIRE));
  assert_int_equal(pthread_join(starter, NULL), 0);
  assert_int_equal(pthread_join(helper, NULL), 0);
  OK(prof_stop());
}

static int destroying_query(void *unused, uint64_t *used, uint64_t *allocated) {
  (void)unused;
  prof_pool_destroy(query.pool);
  *used = *allocated = 3;
  return 0;
}

static void a_query_may_destroy_its_own_pool(void **state) {
  (void)state;
  start_afresh(4 << 20);
  OK(prof_stop());
  OK(prof_pool_create(&(prof_pool_options){.size = sizeof(prof_pool_options), .query = destroying_query}, &query.pool));
  OK(prof_memory_start());
  OK(prof_stop());
  OK(prof_memory_start()); /* nobody is asked any more */
  OK(prof_stop());
}

static int forking_query(void *status_at, uint64_t *used, uint64_t *allocated) {
  const pid_t child = fork();
  query.calls++;
  *used = *allocated = 4;
  if (child) return waitpid(child, status_at, 0) < 0;
  return 0;
}

static void a_child_born_in_a_query_is_not_busy_for_ever(void **state) {
  (void)state;
  start_afresh(4 << 20);
  const pid_t parent = getpid();
  int how = -1;
  OK(prof_memory_set_query(PROF_HOST, forking_query, &how));
  PROFILE_MEMORY(PROF_HOST, "forks");
  if (getpid() != parent) _exit(prof_memory_set_query(PROF_HOST, NULL, NULL) == PROF_OK ? 0 : 1);
  assert_true(WIFEXITED(how));
  assert_int_equal(WEXITSTATUS(how), 0);
  OK(prof_memory_set_query(PROF_HOST, NULL, NULL));
  OK(prof_stop());
}

static int asking_query(void *unused, uint64_t *used, uint64_t *allocated) {
  (void)unused;
  if (++query.calls < 1000) PROFILE_MEMORY(PROF_HOST, "inner");
  *used = *allocated = 5;
  return 0;
}

static void a_query_that_asks_itself_is_asked_once(void **state) {
  (void)state;
  start_afresh(4 << 20);
  memset(&query, 0, sizeof query);
  OK(prof_memory_set_query(PROF_HOST, asking_query, NULL));
  PROFILE_MEMORY(PROF_HOST, "outer");
  PROFILE_MEMORY(PROF_HOST, "outer");
  assert_int_equal(query.calls, 2);
  OK(prof_stop());
  assert_int_equal(info_now("query").sample_count, 2);
  OK(prof_memory_set_query(PROF_HOST, NULL, NULL));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_checked_pool_goes_while_another_looks_for_a_piece),
                                     cmocka_unit_test(a_query_that_is_asked_stays_until_it_has_answered),
                                     cmocka_unit_test(a_pool_stays_until_its_query_has_answered),
                                     cmocka_unit_test(a_query_may_destroy_its_own_pool),
                                     cmocka_unit_test(a_child_born_in_a_query_is_not_busy_for_ever),
                                     cmocka_unit_test(a_query_that_asks_itself_is_asked_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
