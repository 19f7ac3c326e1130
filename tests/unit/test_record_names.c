/* Names made at run time: one that comes again is a site of its own, and whatever becomes of it,
   each scope has its name. */
#define _GNU_SOURCE
#include "learnt_texts.h"

static void named(const char *name) {
  WITH_BASE_PROFILER(PROF_HOST, name, "names", PROF_NO_ARGS, {});
}

/* Its argument says which name it has. */
static void numbered(uint64_t number) {
  char name[32];
  snprintf(name, sizeof name, "name %llu", (unsigned long long)number);
  WITH_BASE_PROFILER(PROF_HOST, name, "numbered", PROF_ARGS("number", number), {});
}

static uint64_t count_named(const char *name) {
  uint64_t count = 0;
  const int status = prof_get_duration(name, NULL, NULL, &count);
  assert_true(status == PROF_OK || status == PROF_E_NOT_FOUND);
  return count;
}

/* Numbered scopes in the capture; each has the name of its number. */
static uint64_t check_numbered(void) {
  prof_trace *trace = NULL;
  prof_cursor *cursor = NULL;
  prof_event e;
  char name[32];
  uint64_t count = 0;
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &e) == 1) {
    if (e.arg_count != 1) continue;
    snprintf(name, sizeof name, "name %llu", (unsigned long long)e.args[0].value.u64);
    assert_int_equal(e.name_bytes, strlen(name));
    assert_memory_equal(e.name, name, e.name_bytes);
    assert_int_equal(e.category_bytes, strlen("numbered"));
    count++;
  }
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  return count;
}

/* Such a scope goes by the slow path, which must not find it marked as seen by the fast one. */
static void a_name_that_comes_once_is_not_learnt_behind_64_open_scopes(void **state) {
  enum { NAMES = 8 };
  uint64_t open[PROF_I_OPEN_COUNT];
  char name[32];
  (void)state;
  start(PROF_POLICY_KEEP, 0);
  for (int i = 0; i < PROF_I_OPEN_COUNT; i++) open[i] = prof_scope_begin(1, "open", "names", NULL);
  const uint32_t before = prof_i_the_names.count;
  for (int i = 0; i < NAMES; i++) {
    snprintf(name, sizeof name, "once, in a block %d", i);
    named(name);
    snprintf(name, sizeof name, "once, by call %d", i);
    prof_scope_end(prof_scope_begin(1, name, "names", NULL));
    assert_int_equal(prof_i_the_names.count, before);
  }
  named("once, in a block 0"); /* this one comes again */
  assert_int_equal(prof_i_the_names.count, before + 1);
  for (int i = PROF_I_OPEN_COUNT; i > 0; i--) prof_scope_end(open[i - 1]);
  assert_int_equal(count_named("once, by call 0"), 1);
}

static void a_name_that_comes_again_takes_16_bytes(void **state) {
  (void)state;
  char texts[2][24] = {"sixteen bytes", "sixteen bytes"}; /* at two addresses */
  start(PROF_POLICY_KEEP, 0);
  named(texts[0]);
  const uint64_t before = cursor_of_chunk();
  for (int i = 0; i < 10; i++) named(texts[i % 2]);
  assert_int_equal(cursor_of_chunk() - before, 10 * 16);
  for (int i = 0; i < 3; i++) prof_scope_end(prof_scope_begin(1, texts[0], "by call", NULL));
  const uint64_t between = cursor_of_chunk();
  for (int i = 0; i < 10; i++) prof_scope_end(prof_scope_begin(1, texts[i % 2], "by call", NULL));
  assert_int_equal(cursor_of_chunk() - between, 10 * 16);
  assert_int_equal(count_named("sixteen bytes"), 1 + 10 + 3 + 10);
}

static void an_address_that_comes_again_has_the_text_that_is_there_now(void **state) {
  (void)state;
  char text[16];
  start(PROF_POLICY_KEEP, 0);
  for (int i = 0; i < 30; i++) {
    snprintf(text, sizeof text, "%.*s", i % 3 + 1, "abc");
    named(text);
    prof_scope_end(prof_scope_begin(1, text, i % 2 ? "odd" : "even", NULL));
  }
  assert_int_equal(count_named("a"), 20);
  assert_int_equal(count_named("ab"), 20);
  assert_int_equal(count_named("abc"), 20);
}

static void a_text_whose_memory_is_gone_stays(void **state) {
  (void)state;
  char *const page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(page != MAP_FAILED);
  start(PROF_POLICY_KEEP, 0);
  snprintf(page, 64, "unloaded");
  for (int i = 0; i < 4; i++) named(page);
  assert_int_equal(munmap(page, 4096), 0);
  assert_int_equal(count_named("unloaded"), 4);
}

static void names_stand_in_each_capture_that_has_their_records(void **state) {
  (void)state;
  for (int capture = 0; capture < 3; capture++) {
    start(PROF_POLICY_KEEP, (8u << 20) + ((uint64_t)capture << 20));
    for (int i = 0; i < 5; i++) named("in each");
    assert_int_equal(count_named("in each"), 5);
    assert_int_equal(prof_clear(), PROF_OK);
    for (int i = 0; i < 3; i++) named("in each");
    assert_int_equal(count_named("in each"), 3);
    assert_int_equal(prof_stop(), PROF_OK);
    start(PROF_POLICY_KEEP,
          (8u << 20) + ((uint64_t)capture << 20)); /* a session of the same capture */
    named("in each");
    assert_int_equal(count_named("in each"), 4);
    assert_int_equal(prof_stop(), PROF_OK);
  }
}

static void a_ring_that_goes_round_keeps_its_names(void **state) {
  (void)state;
  start(PROF_POLICY_RING, 1 << 20);
  for (uint64_t i = 0; i < 200000; i++) numbered(i % 50);
  assert_true(check_numbered() > 5000);
}

/* Their share of a small cap is used up: the others' names are copied. */
static void names_take_their_share_of_the_cap_alone(void **state) {
  (void)state;
  start(PROF_POLICY_RING, 1 << 20);
  for (uint64_t i = 0; i < 60000; i++) numbered(1000 + i % 6000);
  assert_true(check_numbered() > 3000);
  assert_false(prof_i_site_has_room_for_name(256));
}

static void a_forked_child_has_its_own(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, 0);
  for (int i = 0; i < 3; i++) named("forked");
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 5; i++) named("forked");
    for (int i = 0; i < 5; i++) named("child's alone");
    uint64_t count = 0, other = 0;
    prof_get_duration("forked", NULL, NULL, &count);
    prof_get_duration("child's alone", NULL, NULL, &other);
    _exit(count == 5 && other == 5 ? 0 : 1);
  }
  int status = 1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(count_named("forked"), 3);
}

enum { THREADS = 4, ROUNDS = 2000, SHARED_NAMES = 50 };

static void *record_shared(void *barrier) {
  char name[32];
  pthread_barrier_wait(barrier);
  for (int i = 0; i < ROUNDS; i++) {
    snprintf(name, sizeof name, "shared %d", i / 4 % SHARED_NAMES);
    named(name);
  }
  return NULL;
}

static void threads_that_learn_one_name_at_once_agree(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  pthread_barrier_t barrier;
  char name[32];
  start(PROF_POLICY_KEEP, 0);
  pthread_barrier_init(&barrier, NULL, THREADS);
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, record_shared, &barrier), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&barrier);
  for (int i = 0; i < SHARED_NAMES; i++) {
    snprintf(name, sizeof name, "shared %d", i);
    assert_int_equal(count_named(name), THREADS * ROUNDS / SHARED_NAMES);
  }
}

/* The last of all: no name is learnt behind it. */
static void more_names_than_have_a_place_are_right(void **state) {
  (void)state;
  enum { NAMES = WITH_ASAN || WITH_TSAN ? 20000 : 200000 };
  start(PROF_POLICY_RING, 64 << 20);
  const uint32_t before = prof_i_site_count();
  for (uint64_t i = 0; i < NAMES; i++) numbered(i); /* once each: nothing is learnt of them */
  assert_true(prof_i_site_count() - before < 100);
  for (uint64_t i = 0; i < NAMES; i++) {
    numbered(NAMES + i);
    numbered(NAMES + i);
  }
  assert_true(prof_i_site_count() - before <= PROF_I_NAMES_MAX);
  assert_true(check_numbered() > NAMES / 2);
}

/* If two names differ, their places do. */
static void names_that_differ_in_a_byte_have_places(void **state) {
  enum { NAMES = 200, BYTES_MAX = 40 };
  char name[BYTES_MAX + 1];
  (void)state;
  for (uint32_t bytes = 2; bytes <= BYTES_MAX; bytes++)
    for (uint32_t at = 0; at < bytes; at++) {
      uint8_t taken[PROF_I_NAME_TABLE_SIZE] = {0};
      uint32_t most = 0;
      memset(name, 'n', bytes);
      for (int i = 0; i < NAMES; i++) {
        name[at] = (char)(i + 1);
        prof_i_name_key key = {name, "", bytes, 0, 1, 0};
        prof_i_name_hash(&key);
        const uint32_t here = ++taken[key.hash % PROF_I_NAME_TABLE_SIZE];
        if (here > most) most = here;
      }
      assert_in_range(most, 1, PROF_I_NAME_TRIES / 2);
    }
}

static uint32_t most_in_vain(void) {
  uint32_t most = 0;
  for (int i = 0; i < PROF_I_NAME_MISS_COUNTS; i++) {
    const uint32_t count = prof_i_this_thread->name_misses[i];
    if (count > most) most = count;
  }
  return most;
}

/* Each text another one: most are copied without a look. Whatever is in use before, between and
   behind them is learnt all the same, in some rounds. */
static void names_that_come_again_among_new_ones_are_learnt(void **state) {
  enum { NEW = 4 * PROF_I_NAME_MISSES_MAX, AGAIN = 2 * PROF_I_NAME_MISSES_MAX, ROUNDS_MAX = 200 };
  char name[32];
  (void)state;
  start(PROF_POLICY_KEEP, 0);
  for (int i = 0; i < NEW; i++) {
    snprintf(name, sizeof name, "new %d", i);
    named(name);
  }
  assert_in_range(most_in_vain(), PROF_I_NAME_MISSES_MAX,
                  PROF_I_NAME_MISSES_MAX + PROF_I_NAME_MISSES_STEP - 1);
  const uint64_t most = AGAIN * 18; /* 16, and a few whose marks have one place are copied */
  uint64_t rounds = 0, bytes = 0;
  for (; (bytes == 0 || bytes > most) && rounds < ROUNDS_MAX; rounds++) {
    const prof_i_head *const chunk = prof_i_this_thread->chunk;
    const uint64_t before = cursor_of_chunk();
    for (int i = 0; i < AGAIN; i++) {
      snprintf(name, sizeof name, "again %d", i);
      named(name);
    }
    bytes = chunk == prof_i_this_thread->chunk ? cursor_of_chunk() - before : 0;
  }
  assert_in_range(bytes, AGAIN * 16, most);
  assert_int_equal(count_named("new 7"), 1);
  assert_int_equal(count_named("again 7"), rounds);
}

static void otherwise_named(const char *name) {
  WITH_BASE_PROFILER(PROF_HOST, name, "other names", PROF_NO_ARGS, {});
}

/* A call site whose names come again does not make those of another be looked up. */
static void a_call_site_counts_what_was_looked_up_in_vain_for_itself(void **state) {
  enum { NEW = 4 * PROF_I_NAME_MISSES_MAX };
  char name[32];
  (void)state;
  start(PROF_POLICY_KEEP, 0);
  for (int i = 0; i < NEW; i++) {
    snprintf(name, sizeof name, "only once %d", i);
    named(name);
    snprintf(name, sizeof name, "again and again %d", i % 2); /* at one address: looked up */
    otherwise_named(name);
  }
  assert_in_range(most_in_vain(), PROF_I_NAME_MISSES_MAX,
                  PROF_I_NAME_MISSES_MAX + PROF_I_NAME_MISSES_STEP - 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(a_name_that_comes_again_takes_16_bytes, stop),
      cmocka_unit_test_teardown(a_call_site_counts_what_was_looked_up_in_vain_for_itself, stop),
      cmocka_unit_test_teardown(a_name_that_comes_once_is_not_learnt_behind_64_open_scopes, stop),
      cmocka_unit_test_teardown(an_address_that_comes_again_has_the_text_that_is_there_now, stop),
      cmocka_unit_test_teardown(a_text_whose_memory_is_gone_stays, stop),
      cmocka_unit_test_teardown(names_stand_in_each_capture_that_has_their_records, stop),
      cmocka_unit_test_teardown(a_ring_that_goes_round_keeps_its_names, stop),
      cmocka_unit_test_teardown(names_take_their_share_of_the_cap_alone, stop),
      cmocka_unit_test_teardown(a_forked_child_has_its_own, stop),
      cmocka_unit_test_teardown(threads_that_learn_one_name_at_once_agree, stop),
      cmocka_unit_test(names_that_differ_in_a_byte_have_places),
      cmocka_unit_test_teardown(names_that_come_again_among_new_ones_are_learnt, stop),
      cmocka_unit_test_teardown(more_names_than_have_a_place_are_right, stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
