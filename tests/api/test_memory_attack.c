/* Memory, by somebody who means harm: what is destroyed while it is in use, queries that do what
   they must not, small stacks, names and links that lie. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
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
  for (uint64_t i = 0; !__atomic_load_n(&is_over, __ATOMIC_ACQUIRE); i++)
    prof_memory_free(pool, AT(0x5000000 + i * 64), 64);
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
  for (int i = 0; i < 3; i++)
    assert_int_equal(prof_memory_set_query(PROF_HOST, i ? quick_query : NULL, NULL), PROF_E_BUSY);
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
  OK(prof_pool_create(&(prof_pool_options){.size = sizeof(prof_pool_options), .query = slow_query},
                      &pool));
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
  OK(prof_pool_create(
      &(prof_pool_options){.size = sizeof(prof_pool_options), .query = destroying_query},
      &query.pool));
  OK(prof_memory_start());
  OK(prof_stop());
  OK(prof_memory_start()); /* no pool is queried any more */
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

/* ---- out of memory ---- */

static char folder[] = "/tmp/prof-attack-XXXXXX";

static const char *in_folder(const char *name) {
  static char paths[4][128];
  static int turn;
  char *const path = paths[turn++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static const char *text_of(const char *path) {
  static char text[1 << 16];
  FILE *const file = fopen(path, "r");
  if (!file) fail_msg("there is no %s", path);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  return text;
}

static void expect_in(const char *path, const char *wanted) {
  if (!strstr(text_of(path), wanted))
    fail_msg("%s does not say '%s', but:\n%s", path, wanted, text_of(path));
}

static void start_into(const char *name) {
  prof_stop();
  OK(prof_start_with(&(prof_options){
      .size = sizeof(prof_options), .path = in_folder(name), .cap_bytes = 4 << 20}));
}

static void stop_and_dump(void) {
  OK(prof_stop());
  OK(prof_dump(NULL));
}

/* texts_written counts for the process: each test is a child with a count of its own. Returns what
   it did, or 100 and the signal. */
static int in_child(void (*run)(void)) {
  const pid_t child = fork();
  int how;
  if (child == 0) {
    setenv("CMOCKA_TEST_ABORT", "1", 1); /* or it would go on with the tests behind */
    run();
    _exit(0);
  }
  assert_int_equal(waitpid(child, &how, 0), child);
  return WIFEXITED(how) ? WEXITSTATUS(how) : 100 + WTERMSIG(how);
}

static void *fail_on_a_small_stack(void *status) {
  *(int *)status = prof_memory_oom(PROF_HOST, 1 << 20);
  return NULL;
}

/* The child's capture is made on it, too. */
static void *fork_on_a_small_stack(void *status) {
  const pid_t child = fork();
  if (child == 0) _exit(prof_memory_oom(PROF_HOST, 1 << 20) == PROF_OK ? 0 : 1);
  if (waitpid(child, status, 0) != child) *(int *)status = -1;
  return NULL;
}

static void out_of_memory_on_a_small_stack(void **state) {
  (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const size_t stack_bytes = 256 << 10; /* their frames are larger */
#else
  const size_t stack_bytes = 16 << 10;
#endif
  start_into("small.json");
  prof_pool *const pool = make_pool("small");
  prof_memory_alloc(pool, AT(0x1000), 1000, 1024);
  pthread_attr_t attributes;
  pthread_t thread;
  int status = -1;
  pthread_attr_init(&attributes);
  assert_int_equal(pthread_attr_setstacksize(&attributes, stack_bytes), 0);
  assert_int_equal(pthread_create(&thread, &attributes, fail_on_a_small_stack, &status), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  OK(status);
  assert_int_equal(pthread_attr_setstacksize(&attributes, 3 * stack_bytes), 0);
  assert_int_equal(pthread_create(&thread, &attributes, fork_on_a_small_stack, &status), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  pthread_attr_destroy(&attributes);
  expect_in(in_folder("small.oom.txt"), "1024 bytes in        1 pieces");
  stop_and_dump();
  prof_pool_destroy(pool);
}

static void a_child_knows_its_pools_at_once(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_pool("of the parent");
  prof_memory_alloc(pool, AT(0x1000), 100, 0);
  for (int oom_first = 0; oom_first < 2; oom_first++) {
    const pid_t child = fork();
    int how;
    if (child == 0) {
      prof_memory_max max = {.size = sizeof max};
      if (oom_first &&
          (!freopen("/dev/null", "w", stderr) || prof_memory_oom(PROF_HOST, 10) != PROF_OK))
        _exit(1);
      if (prof_memory_max_get(PROF_HOST, PROF_MEMORY_POOL, &max) != PROF_OK) _exit(2);
      _exit(max.used_bytes == 100 && max.max_used_bytes == 100 ? 0 : 3);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
  }
  prof_pool_destroy(pool);
  OK(prof_stop());
}

static void tell_three_times(void) {
  start_into("kids.json");
  prof_pool *const pool = make_pool("kids");
  prof_memory_alloc(pool, AT(0x1000), 100, 0);
  for (uint64_t i = 0; i < 7; i++) OK(prof_memory_oom(PROF_HOST, 1000 + i));
  for (int i = 0; i < 2; i++) {
    char name[64], wanted[64];
    const pid_t child = fork();
    if (child == 0) {
      for (uint64_t n = 0; n < 2; n++)
        if (prof_memory_oom(PROF_HOST, 2000 + n) != PROF_OK) _exit(1);
      prof_stop();
      _exit(prof_dump(NULL) == PROF_OK ? 0 : 2);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    for (int n = 1; n <= 2; n++) {
      snprintf(name, sizeof name, n == 1 ? "kids.%ld.oom.txt" : "kids.%ld.oom-2.txt", (long)child);
      snprintf(wanted, sizeof wanted, "out of memory: %d bytes of device cpu:0\n", 1999 + n);
      expect_in(in_folder(name), wanted);
    }
  }
  expect_in(in_folder("kids.oom.txt"), "out of memory: 1000 bytes");
  stop_and_dump();
}

static void texts_of_children_have_names_of_their_own(void **state) {
  (void)state;
  assert_int_equal(in_child(tell_three_times), 0);
}

static void tell_where_something_stands(void) {
  start_into("stands.json");
  prof_pool *const pool = make_pool("stands");
  prof_memory_alloc(pool, AT(0x1000), 100, 0);
  FILE *const victim = fopen(in_folder("victim"), "w"), *const before = fopen(
                                                            in_folder("stands.oom-2.txt"), "w");
  assert_true(victim && before);
  fputs("mine", victim);
  fputs("earlier", before);
  fclose(victim);
  fclose(before);
  assert_int_equal(symlink(in_folder("victim"), in_folder("stands.oom.txt")), 0);
  assert_int_equal(symlink(in_folder("victim"), in_folder("stands.oom.txt.tmp")), 0);
  OK(prof_memory_oom(PROF_HOST, 10));
  assert_string_equal(text_of(in_folder("victim")), "mine");
  assert_string_equal(text_of(in_folder("stands.oom-2.txt")), "earlier");
  struct stat about;
  assert_int_equal(lstat(in_folder("stands.oom-3.txt"), &about), 0);
  assert_int_equal(about.st_mode & 07777, 0600);
  assert_true(S_ISREG(about.st_mode));
  stop_and_dump();
}

static void a_text_goes_through_no_link_and_over_no_file(void **state) {
  (void)state;
  assert_int_equal(in_child(tell_where_something_stands), 0);
}

static void expect_plain(const char *text) {
  for (; *text; text++)
    if ((unsigned char)*text < 0x20 && *text != '\n') fail_msg("byte %d stands in the text", *text);
}

static void tell_bad_names(void) {
  start_into("names.json");
  const prof_device device = {PROF_DEVICE_CUDA, 3};
  prof_pool *pool;
  OK(prof_pool_create(
      &(prof_pool_options){
          .size = sizeof(prof_pool_options), .device = device, .name = "a\nb: used 999\x1b[31m"},
      &pool));
  prof_memory_alloc_for(pool, AT(0x1000), 100, 0, prof_memory_tag("t\n\x1b[2Jx\x01"), 7);
  OK(prof_memory_oom(device, 50));
  const char *const path = in_folder("names.oom.txt");
  expect_plain(text_of(path));
  expect_in(path, "pool a\\x0ab: used 999\\x1b[31m: used 100 bytes");
  expect_in(path, "t\\x0a\\x1b[2Jx\\x01\n");
  expect_in(path, "of device cuda:3\n");
  stop_and_dump();
  start_afresh(4 << 20);
  assert_non_null(freopen(in_folder("stderr.txt"), "w", stderr));
  OK(prof_memory_oom(device, 50));
  fflush(stderr);
  expect_plain(text_of(in_folder("stderr.txt")));
  if (strstr(text_of(in_folder("stderr.txt")), "\nprof: b: used")) _exit(9);
}

static void names_in_a_text_are_made_readable(void **state) {
  (void)state;
  assert_int_equal(in_child(tell_bad_names), 0);
}

/* ---- what is gone ---- */

static void what_destroyed_pools_reached_counts_until_the_next_start(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const lasting = make_pool("lasting");
  prof_memory_alloc(lasting, AT(0x9000), 16, 0);
  for (int i = 0; i < 3; i++) {
    prof_pool *const pool = make_pool("short");
    prof_memory_reserve(pool, AT(0x1000), 4096);
    prof_memory_alloc(pool, AT(0x1000), 1000, 1024);
    prof_memory_free(pool, AT(0x1000), 1024);
    prof_memory_release(pool, AT(0x1000), 4096);
    prof_pool_destroy(pool);
  }
  prof_memory_max max = max_of(PROF_MEMORY_ANY);
  assert_int_equal(max.max_used_bytes, 16 + 1024); /* one at a time */
  assert_int_equal(max.max_allocated_bytes, 4096);
  assert_int_equal(max.used_bytes, 16);
  assert_int_equal(max.pool_count, 4);
  seen s = see();
  prof_memory_info device = {.size = sizeof device};
  OK(prof_memory_device_get(s.memory, PROF_HOST, PROF_MEMORY_POOL, &device));
  assert_int_equal(device.peak_used.used_bytes, max.max_used_bytes);
  look_away(&s);
  OK(prof_stop());
  prof_pool_destroy(lasting);
  assert_int_equal(max_of(PROF_MEMORY_ANY).max_used_bytes, 16 + 1024); /* as it was at the stop */
  start_afresh(4 << 20);
  assert_int_equal(prof_memory_max_get(PROF_HOST, PROF_MEMORY_ANY, &max), PROF_E_NOT_FOUND);
  prof_pool *const one = make_pool("one");
  prof_memory_alloc(one, AT(0x1000), 100, 0);
  prof_pool_destroy(one);
  assert_int_equal(max_of(PROF_MEMORY_ANY).max_used_bytes, 100);
  OK(prof_memory_reset());
  assert_int_equal(prof_memory_max_get(PROF_HOST, PROF_MEMORY_ANY, &max), PROF_E_NOT_FOUND);
  OK(prof_memory_set_query(PROF_HOST, quick_query, NULL));
  PROFILE_MEMORY(PROF_HOST, "2 bytes");
  OK(prof_memory_set_query(PROF_HOST, NULL, NULL));
  max = max_of(PROF_MEMORY_QUERY);
  assert_int_equal(max.max_used_bytes, 2);
  assert_int_equal(max.used_bytes, 2);
  OK(prof_stop());
}

/* ---- checked pools accuse nobody of what they cannot know ---- */

static int a_hundred_bytes(void *unused, uint64_t *used, uint64_t *allocated) {
  (void)unused;
  *used = *allocated = 100;
  return 0;
}

static prof_memory_info expect_no_wrong(const char *name) {
  const prof_memory_info info = info_now(name);
  for (int i = 0; i < PROF_MEMORY_WRONG_COUNT; i++) assert_int_equal(info.wrong_count[i], 0);
  return info;
}

static void a_checked_pool_does_not_know_the_bytes_of_what_was_there_before(void **state) {
  (void)state;
  prof_stop();
  prof_pool *pool;
  OK(prof_pool_create(&(prof_pool_options){.size = sizeof(prof_pool_options),
                                           .name = "asked",
                                           .query = a_hundred_bytes,
                                           .checked = 1},
                      &pool));
  start_afresh(4 << 20);
  prof_memory_free(pool, AT(0x1000), PROF_BYTES_UNKNOWN);
  assert_int_equal(expect_no_wrong("asked").unchecked_count, 1);
  prof_memory_free(pool, AT(0x2000), 100);
  const prof_memory_info info = expect_no_wrong("asked");
  assert_int_equal(info.from_before_count, 1);
  assert_int_equal(info.end.used_bytes, 0);
  prof_memory_free(pool, AT(0x3000), 100); /* more than there was */
  OK(prof_stop());
  assert_int_equal(info_now("asked").wrong_count[PROF_MEMORY_WRONG_UNKNOWN], 1);
  prof_pool_destroy(pool);
}

static void a_checked_pool_frees_what_it_does_not_keep(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_checked_pool("not kept");
  const uint64_t large = UINT64_C(5) << 40;
  for (int i = 0; i < 2; i++) {
    prof_memory_alloc(pool, AT(0x1000), large, 0);
    prof_memory_free(pool, AT(0x1000), i ? large : PROF_BYTES_UNKNOWN);
    prof_memory_alloc(pool, AT(0x2000), 0, 0);
    prof_memory_free(pool, AT(0x2000), i ? 0 : PROF_BYTES_UNKNOWN);
  }
  const prof_memory_info info = expect_no_wrong("not kept");
  assert_int_equal(info.refused_count, 4);
  assert_int_equal(info.alloc_count, 2);
  assert_int_equal(info.free_count, 2);
  prof_memory_free(pool, AT(0x1000), PROF_BYTES_UNKNOWN);
  prof_memory_free(pool, AT(0x2000), PROF_BYTES_UNKNOWN);
  OK(prof_stop());
  assert_int_equal(info_now("not kept").wrong_count[PROF_MEMORY_WRONG_UNKNOWN], 2);
  prof_pool_destroy(pool);
}

static void a_checked_pool_over_a_start_or_a_clear(void **state) {
  (void)state;
  prof_stop();
  prof_pool *const pool = make_checked_pool("over"), *const other = make_checked_pool("inside");
  start_afresh(4 << 20);
  prof_memory_alloc(pool, AT(0x1000), 100, 0);
  prof_memory_alloc(pool, AT(0x2000), 100, 0);
  OK(prof_clear());
  prof_memory_free(pool, AT(0x1000), PROF_BYTES_UNKNOWN);
  assert_int_equal(max_of(PROF_MEMORY_POOL).used_bytes, 100);
  expect_no_wrong("over");
  OK(prof_memory_stop());
  OK(prof_memory_start());
  prof_memory_alloc(other, AT(0x2000), 10, 0); /* the pool's piece is cut up by another pool */
  prof_memory_free(pool, AT(0x2000), PROF_BYTES_UNKNOWN);
  prof_memory_free(pool, AT(0x3000), 50);
  assert_int_equal(expect_no_wrong("over").unchecked_count, 2);
  prof_memory_alloc(pool, AT(0x4000), 64, 0);
  prof_memory_free(pool, AT(0x4000), 60);
  prof_memory_free(pool, AT(0x4000), 64);
  OK(prof_stop());
  const prof_memory_info info = info_now("over");
  assert_int_equal(info.wrong_count[PROF_MEMORY_WRONG_SIZE], 1); /* this is sure all the same */
  assert_int_equal(info.wrong_count[PROF_MEMORY_WRONG_DOUBLE], 1);
  assert_int_equal(info.wrong_count[PROF_MEMORY_WRONG_UNKNOWN], 0);
  prof_pool_destroy(pool);
  prof_pool_destroy(other);
}

static void an_allocation_that_failed_is_none(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_pool("null"), *const checked = make_checked_pool("checked null");
  for (int i = 0; i < 2; i++) {
    prof_memory_alloc(i ? checked : pool, NULL, 100, 100);
    prof_memory_alloc_for(i ? checked : pool, NULL, 100, 100, 0, 7);
    prof_memory_free(i ? checked : pool, NULL, 100);
  }
  assert_int_equal(max_of(PROF_MEMORY_POOL).max_used_bytes, 0);
  OK(prof_stop());
  assert_int_equal(expect_no_wrong("null").alloc_count, 0);
  prof_pool_destroy(pool);
  prof_pool_destroy(checked);
}

int main(void) {
  if (!mkdtemp(folder)) return perror(folder), 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_checked_pool_goes_while_another_looks_for_a_piece),
      cmocka_unit_test(a_query_that_is_asked_stays_until_it_has_answered),
      cmocka_unit_test(a_pool_stays_until_its_query_has_answered),
      cmocka_unit_test(a_query_may_destroy_its_own_pool),
      cmocka_unit_test(a_child_born_in_a_query_is_not_busy_for_ever),
      cmocka_unit_test(a_query_that_asks_itself_is_asked_once),
      cmocka_unit_test(out_of_memory_on_a_small_stack),
      cmocka_unit_test(a_child_knows_its_pools_at_once),
      cmocka_unit_test(texts_of_children_have_names_of_their_own),
      cmocka_unit_test(a_text_goes_through_no_link_and_over_no_file),
      cmocka_unit_test(names_in_a_text_are_made_readable),
      cmocka_unit_test(what_destroyed_pools_reached_counts_until_the_next_start),
      cmocka_unit_test(a_checked_pool_does_not_know_the_bytes_of_what_was_there_before),
      cmocka_unit_test(a_checked_pool_frees_what_it_does_not_keep),
      cmocka_unit_test(a_checked_pool_over_a_start_or_a_clear),
      cmocka_unit_test(an_allocation_that_failed_is_none)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command) == 0 ? failed : 1;
}
