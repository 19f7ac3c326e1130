/* A text that is its call site's only argument: one that comes again is a site of its own, and
   whatever becomes of it, each scope has its text. */
#define _GNU_SOURCE
#include "learnt_texts.h"

enum { LINE_OF_SHAPED = __LINE__ + 2 };
static void shaped(const char *shape) {
  WITH_BASE_PROFILER(PROF_HOST, "shaped", "texts", PROF_ARGS("shape", shape), {});
}

/* Which number it has says the text that it is to have. */
static const char *text_of(uint64_t number) {
  static __thread char text[32];
  snprintf(text, sizeof text, "text %llu", (unsigned long long)number);
  return text;
}

/* Scopes named "shaped" that have this text. Each has the key, the place and the category, too. */
static uint64_t count_shaped(const char *shape) {
  prof_trace *trace = NULL;
  prof_cursor *cursor = NULL;
  prof_event e;
  uint64_t count = 0;
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &e) == 1) {
    if (e.name_bytes != strlen("shaped") || memcmp(e.name, "shaped", e.name_bytes) != 0) continue;
    prof_trace_site site = {.size = sizeof site};
    assert_int_equal(prof_trace_site_get(trace, e.site, &site), PROF_OK);
    assert_int_equal(site.line, LINE_OF_SHAPED);
    assert_int_equal(e.arg_count, 1);
    assert_int_equal(e.args_kind, PROF_ARGS_PAIRS);
    assert_int_equal(e.args[0].type, PROF_ARG_STRING);
    assert_int_equal(e.args[0].key_bytes, strlen("shape"));
    assert_memory_equal(e.args[0].key, "shape", strlen("shape"));
    assert_int_equal(e.category_bytes, strlen("texts"));
    count += e.args[0].value.text.bytes == strlen(shape) &&
             memcmp(e.args[0].value.text.data, shape, strlen(shape)) == 0;
  }
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  return count;
}

static uint64_t count_all(void) {
  uint64_t count = 0;
  const int status = prof_get_duration("shaped", NULL, NULL, &count);
  assert_true(status == PROF_OK || status == PROF_E_NOT_FOUND);
  return count;
}

static void a_text_that_comes_again_takes_16_bytes(void **state) {
  (void)state;
  char texts[2][24] = {"T<768xf32>", "T<768xf32>"}; /* at two addresses */
  start(PROF_POLICY_KEEP, 0);
  for (int i = 0; i < 3; i++) shaped(texts[0]);
  const uint64_t before = cursor_of_chunk();
  for (int i = 0; i < 10; i++) shaped(texts[i % 2]);
  assert_int_equal(cursor_of_chunk() - before, 10 * 16);
  assert_int_equal(count_shaped("T<768xf32>"), 13);
  assert_int_equal(count_all(), 13); /* one row */
}

static void any_text_is_what_it_was(void **state) {
  (void)state;
  char longest[PROF_I_NAME_TEXT_BYTES + 1], longer[PROF_I_NAME_TEXT_BYTES + 2];
  memset(longest, 'x', sizeof longest);
  memset(longer, 'y', sizeof longer);
  longest[sizeof longest - 1] = longer[sizeof longer - 1] = '\0';
  const char *const texts[] = {"", "1", "1234567", "12345678", "123456789", longest, longer};
  start(PROF_POLICY_KEEP, 0);
  for (int round = 0; round < 5; round++)
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) shaped(texts[i]);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    assert_int_equal(count_shaped(texts[i]), 5);
}

static void an_address_that_comes_again_has_the_text_that_is_there_now(void **state) {
  (void)state;
  char text[16];
  start(PROF_POLICY_KEEP, 0);
  for (int i = 0; i < 30; i++) {
    snprintf(text, sizeof text, "%.*s", i % 3 + 1, "abc");
    shaped(text);
  }
  assert_int_equal(count_shaped("a"), 10);
  assert_int_equal(count_shaped("ab"), 10);
  assert_int_equal(count_shaped("abc"), 10);
}

static void a_text_whose_memory_is_gone_stays(void **state) {
  (void)state;
  char *const page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(page != MAP_FAILED);
  start(PROF_POLICY_KEEP, 0);
  snprintf(page, 64, "unloaded");
  for (int i = 0; i < 5; i++) shaped(page);
  assert_int_equal(munmap(page, 4096), 0);
  assert_int_equal(count_shaped("unloaded"), 5);
}

static void two_sites_with_one_text_stay_two(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, 0);
  for (int i = 0; i < 5; i++) {
    const char *const text = text_of(7);
    shaped(text);
    WITH_BASE_PROFILER(PROF_HOST, "other", "texts", PROF_ARGS("file", text), {});
  }
  uint64_t others = 0;
  assert_int_equal(prof_get_duration("other", NULL, NULL, &others), PROF_OK);
  assert_int_equal(others, 5);
  assert_int_equal(count_shaped("text 7"), 5);
}

static void texts_stand_in_each_capture_that_has_their_records(void **state) {
  (void)state;
  for (uint64_t capture = 0; capture < 3; capture++) {
    start(PROF_POLICY_KEEP, (8u << 20) + (capture << 20));
    for (int i = 0; i < 5; i++) shaped("in each");
    assert_int_equal(count_shaped("in each"), 5);
    assert_int_equal(prof_clear(), PROF_OK);
    for (int i = 0; i < 3; i++) shaped("in each");
    assert_int_equal(count_shaped("in each"), 3);
    assert_int_equal(prof_stop(), PROF_OK);
  }
}

/* Where the cap has no room for their sites, they are copied. */
static void a_ring_keeps_its_texts_and_they_take_their_share_alone(void **state) {
  (void)state;
  start(PROF_POLICY_RING, 1 << 20);
  for (uint64_t i = 0; i < 60000; i++) shaped(text_of(i % 6000));
  assert_false(prof_i_site_has_room_for_name(256));
  const uint64_t last = 60000 - 1;
  for (uint64_t i = 0; i < 20; i++) assert_true(count_shaped(text_of((last - i) % 6000)) >= 1);
}

static void a_live_scope_has_its_text_at_any_depth(void **state) {
  (void)state;
  enum { DEPTH = 70 };
  uint64_t starts[DEPTH];
  start(PROF_POLICY_KEEP, 0);
  for (int i = 0; i < 4; i++) shaped("deep");
  for (int i = 0; i < DEPTH; i++) starts[i] = prof_scope_begin(1, "around", "texts", NULL);
  WITH_BASE_PROFILER(PROF_HOST, "open", "texts", PROF_NO_ARGS, {
    shaped("deep");
    shaped("deep");
  });
  for (int i = DEPTH; i-- > 0;) prof_scope_end(starts[i]);
  assert_int_equal(count_shaped("deep"), 6);
}

static prof_trace *trace_inside(const char *text) {
  prof_trace *trace = NULL;
  WITH_BASE_PROFILER(PROF_HOST, "held", "texts", PROF_ARGS("text", text),
                     { assert_int_equal(prof_get(&trace), PROF_OK); });
  return trace;
}

static void an_open_scope_shows_it(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, 0);
  for (int i = 0; i < 4; i++) {
    prof_trace *const trace = trace_inside("open");
    prof_cursor *cursor = NULL;
    prof_event e;
    int open = 0;
    assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
    while (prof_cursor_next(cursor, &e) == 1) {
      if (e.kind != PROF_EVENT_OPEN) continue;
      open++;
      assert_int_equal(e.arg_count, 1);
      assert_int_equal(e.args[0].value.text.bytes, 4);
      assert_memory_equal(e.args[0].value.text.data, "open", 4);
    }
    prof_cursor_destroy(cursor);
    prof_trace_destroy(trace);
    assert_int_equal(open, 1);
  }
}

static uint64_t muted_now(void) {
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_health_get(&health), PROF_OK);
  return health.lost_count[PROF_LOSS_MUTED];
}

static void a_mute_of_the_call_site_holds_for_each_text(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, 8 << 20);
  for (int i = 0; i < 4; i++) shaped("known");
  const uint64_t before = muted_now();
  assert_int_equal(prof_mute("shaped", NULL, 1), PROF_OK);
  for (int i = 0; i < 4; i++) shaped("known");
  for (int i = 0; i < 4; i++) shaped("new");
  assert_int_equal(muted_now() - before, 8);
  assert_int_equal(prof_mute("shaped", NULL, 0), PROF_OK);
  for (int i = 0; i < 4; i++) shaped("known");
  for (int i = 0; i < 4; i++) shaped("new");
  assert_int_equal(count_shaped("known"), 8);
  assert_int_equal(count_shaped("new"), 4);
}

/* Or it would mute one text of many, and the next ones would come on. */
static void the_budget_takes_it_for_its_call_site(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, 0);
  const uint32_t before = prof_i_site_count();
  for (int i = 0; i < 5; i++) shaped("judged");
  const uint32_t own = prof_i_site_count();
  assert_true(own > before);
  const uint32_t call_site = prof_i_site_name_of(own);
  assert_true(call_site != 0);
  assert_int_equal(prof_i_site_for_budget(own), call_site);
  assert_int_equal(prof_i_site_for_budget(call_site), call_site);
}

static void a_forked_child_has_its_own(void **state) {
  (void)state;
  int status = 1;
  start(PROF_POLICY_KEEP, 0);
  for (int i = 0; i < 3; i++) shaped("forked");
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 5; i++) shaped("forked");
    for (int i = 0; i < 5; i++) shaped("child's alone");
    _exit(count_shaped("forked") == 5 && count_shaped("child's alone") == 5 ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(count_shaped("forked"), 3);
}

enum { THREADS = 4, ROUNDS = 2000, SHARED = 50 };

static void *record_shared(void *barrier) {
  pthread_barrier_wait(barrier);
  for (int i = 0; i < ROUNDS; i++) shaped(text_of(100000u + (uint64_t)(i / 4 % SHARED)));
  return NULL;
}

static void threads_that_learn_one_text_at_once_agree(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  pthread_barrier_t barrier;
  start(PROF_POLICY_KEEP, 0);
  pthread_barrier_init(&barrier, NULL, THREADS);
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, record_shared, &barrier), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&barrier);
  for (uint64_t i = 0; i < SHARED; i++)
    assert_int_equal(count_shaped(text_of(100000 + i)), THREADS * ROUNDS / SHARED);
}

/* The last of all: no text is learnt behind it, but names are. */
static void more_texts_than_have_a_place_are_right(void **state) {
  (void)state;
  enum { TEXTS = 20000 };
  start(PROF_POLICY_RING, 64 << 20);
  const uint32_t before = prof_i_site_count();
  for (uint64_t i = 0; i < TEXTS; i++) shaped(text_of(200000 + i)); /* once each */
  assert_true(prof_i_site_count() - before < 100);
  for (int again = 0; again < 2; again++)
    for (uint64_t i = 0; i < TEXTS; i++) shaped(text_of(200000 + i));
  assert_true(prof_i_site_count() - before <= PROF_I_ARGUMENTS_MAX);
  for (uint64_t i = 0; i < TEXTS; i += 4999) assert_int_equal(count_shaped(text_of(200000 + i)), 3);
  const uint32_t texts = prof_i_site_count();
  for (int i = 0; i < 3; i++) WITH_BASE_PROFILER(PROF_HOST, text_of(5), "names", PROF_NO_ARGS, {});
  assert_true(prof_i_site_count() > texts);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(a_text_that_comes_again_takes_16_bytes, stop),
      cmocka_unit_test_teardown(any_text_is_what_it_was, stop),
      cmocka_unit_test_teardown(an_address_that_comes_again_has_the_text_that_is_there_now, stop),
      cmocka_unit_test_teardown(a_text_whose_memory_is_gone_stays, stop),
      cmocka_unit_test_teardown(two_sites_with_one_text_stay_two, stop),
      cmocka_unit_test_teardown(texts_stand_in_each_capture_that_has_their_records, stop),
      cmocka_unit_test_teardown(a_ring_keeps_its_texts_and_they_take_their_share_alone, stop),
      cmocka_unit_test_teardown(a_live_scope_has_its_text_at_any_depth, stop),
      cmocka_unit_test_teardown(an_open_scope_shows_it, stop),
      cmocka_unit_test_teardown(a_mute_of_the_call_site_holds_for_each_text, stop),
      cmocka_unit_test_teardown(the_budget_takes_it_for_its_call_site, stop),
      cmocka_unit_test_teardown(a_forked_child_has_its_own, stop),
      cmocka_unit_test_teardown(threads_that_learn_one_text_at_once_agree, stop),
      cmocka_unit_test_teardown(more_texts_than_have_a_place_are_right, stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
