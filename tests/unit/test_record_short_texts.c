/* Scopes with one short text, another each time, as argument or as name: what they take, and that
   each has its text, however it ends. */
#define _GNU_SOURCE
#include "learnt_texts.h"

enum { LONGEST = PROF_I_NAME_TEXT_BYTES, DEPTH = PROF_I_OPEN_COUNT + 6 };

/* Of so many bytes, and another than before. */
static const char *text_of(uint32_t bytes) {
  static char text[2 * LONGEST + 1];
  static uint32_t last;
  uint32_t number = ++last;
  memset(text, 'x', sizeof text - 1);
  for (uint32_t i = 0; i < bytes && i < 8; i++, number /= 26) text[i] = (char)('a' + number % 26);
  text[bytes] = '\0';
  return text;
}

static void with_text(const char *text) {
  WITH_BASE_PROFILER(PROF_HOST, "scope", "short", PROF_ARGS("text", text), {});
}
static void with_name(const char *name) {
  WITH_BASE_PROFILER(PROF_HOST, name, "short", PROF_NO_ARGS, {});
}

/* One scope that stays open until it is ended. */
static uint64_t begin_with_text(const char *text) {
  static prof_site site = {.level = 1};
  return prof_i_enter(&site, PROF_HOST, "scope", "short",
                      PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL, 0, true,
                      PROF_ARGS("text", text));
}
static uint64_t begin_with_name(const char *name) {
  static prof_site site = {.level = 1};
  return prof_i_enter(&site, PROF_HOST, name, "short", PROF_I_CATEGORY_LITERAL, 0, true,
                      PROF_NO_ARGS);
}

/* The sites are known, and so is the argument's schema. */
static void start_warm(void) {
  start(PROF_POLICY_KEEP, 0);
  for (int i = 0; i < 200; i++) {
    with_text(text_of(9));
    with_name(text_of(9));
    prof_i_end_1(begin_with_text(text_of(9)));
    prof_i_end_1(begin_with_name(text_of(9)));
  }
  assert_int_equal(prof_clear(), PROF_OK);
}

static bool is_text(const char *data, uint64_t bytes, const char *text) {
  return bytes == strlen(text) && memcmp(data, text, bytes) == 0;
}

/* The flags of the only scope that has this text, as its argument or its name. */
static uint32_t flags_of(const char *text) {
  prof_trace *trace = NULL;
  prof_cursor *cursor = NULL;
  prof_event e;
  prof_trace_info info = {.size = sizeof info};
  uint32_t flags = 0;
  int found = 0;
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  assert_int_equal(info.bad_count, 0);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &e) == 1) {
    const bool has_argument = is_text(e.name, e.name_bytes, "scope") && e.arg_count == 1 &&
                              e.args[0].type == PROF_ARG_STRING &&
                              is_text(e.args[0].value.text.data, e.args[0].value.text.bytes, text);
    if (!has_argument && !(e.arg_count == 0 && is_text(e.name, e.name_bytes, text))) continue;
    assert_true(is_text(e.category, e.category_bytes, "short"));
    if (has_argument) assert_true(is_text(e.args[0].key, e.args[0].key_bytes, "text"));
    flags = e.flags;
    found++;
  }
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  if (found != 1) fail_msg("%d scopes have the text '%s'", found, text);
  return flags;
}

/* The recorder's own count of records, which walks the chunks, and the reader's. */
static void check_counts(void) {
  prof_health now = {.size = sizeof now};
  prof_trace_info info = {.size = sizeof info};
  prof_trace *trace = NULL;
  prof_health(&now);
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  prof_trace_destroy(trace);
  assert_int_equal(now.recorded_count, info.event_count);
}

/* While a window is open (src/core/record/cost_sample.h), scopes do not go the shortest way. */
static uint64_t bytes_of(void (*scope)(const char *text), const char *text) {
  while (prof_i_this_thread->timing.events_left)
    WITH_BASE_PROFILER(PROF_HOST, "other", "", PROF_NO_ARGS, {});
  const prof_i_head *const chunk = prof_i_this_thread->chunk;
  const uint64_t before = cursor_of_chunk();
  scope(text);
  return chunk == prof_i_this_thread->chunk ? cursor_of_chunk() - before : 0;
}

static void an_argument_of_12_bytes_takes_32_and_a_name_of_16_takes_48(void **state) {
  (void)state;
  start_warm();
  for (uint32_t bytes = 3; bytes <= LONGEST; bytes++) {
    const uint64_t taken = 32 + (bytes > 12 ? (bytes - 12 + 15) / 16 * 16 : 0);
    const char *const text = text_of(bytes);
    assert_int_equal(bytes_of(with_text, text), taken);
    flags_of(text);
    const char *const name = text_of(bytes);
    const uint64_t of_name = 48 + (bytes > 16 ? (bytes - 16 + 15) / 16 * 16 : 0);
    assert_int_equal(bytes_of(with_name, name), of_name);
    flags_of(name);
  }
  check_counts();
}

static void a_longer_text_is_whole(void **state) {
  (void)state;
  start_warm();
  for (uint32_t bytes = LONGEST + 1; bytes < LONGEST + 3; bytes++) {
    const char *const text = text_of(bytes);
    with_text(text);
    flags_of(text);
    const char *const name = text_of(bytes);
    with_name(name);
    flags_of(name);
  }
}

static void *end_there(void *start) {
  prof_i_end_1((uint64_t)(uintptr_t)start);
  return NULL;
}

typedef uint64_t (*begin_with)(const char *text);
static const begin_with ways[] = {begin_with_text, begin_with_name};

static void one_that_ends_on_another_thread_has_its_text(void **state) {
  (void)state;
  start_warm();
  for (int way = 0; way < 2; way++)
    for (uint32_t bytes = 3; bytes < 40; bytes++) {
      pthread_t thread;
      const char *const text = text_of(bytes);
      const uint64_t begun = ways[way](text);
      assert_int_equal(pthread_create(&thread, NULL, end_there, (void *)(uintptr_t)begun), 0);
      assert_int_equal(pthread_join(thread, NULL), 0);
      assert_int_equal(flags_of(text), PROF_EVENT_OTHER_THREAD);
    }
}

/* A record of another kind, which has the text as any other. */
static void one_that_a_jump_left_has_its_text(void **state) {
  (void)state;
  start_warm();
  for (int way = 0; way < 2; way++)
    for (uint32_t bytes = 3; bytes < 40; bytes++) {
      const uint64_t outer = begin_with_name("outer");
      const char *const text = text_of(bytes);
      ways[way](text);
      prof_i_end_1(outer);
      assert_int_equal(flags_of(text), PROF_EVENT_SKIPPED);
    }
}

static void one_that_stands_open_has_its_text(void **state) {
  (void)state;
  start_warm();
  for (int way = 0; way < 2; way++)
    for (uint32_t bytes = 3; bytes < 40; bytes++) {
      const char *const text = text_of(bytes);
      const uint64_t begun = ways[way](text);
      flags_of(text);
      prof_i_end_1(begun);
      flags_of(text);
    }
}

/* Those below are not begun by the shortest way. */
static void each_of_many_open_ones_has_its_text(void **state) {
  (void)state;
  char texts[DEPTH][16];
  uint64_t begun[DEPTH];
  start_warm();
  for (int i = 0; i < DEPTH; i++) {
    snprintf(texts[i], sizeof texts[i], "%s", text_of(5 + (uint32_t)i % 10));
    begun[i] = ways[i % 2](texts[i]);
  }
  for (int i = DEPTH; i-- > 0;) prof_i_end_1(begun[i]);
  for (int i = 0; i < DEPTH; i++) flags_of(texts[i]);
}

/* The claim does not fit, and the record goes to the next chunk. */
static void one_at_the_end_of_a_chunk_is_whole(void **state) {
  (void)state;
  enum { SCOPES = 3000 };
  char texts[SCOPES][24];
  start(PROF_POLICY_KEEP, 0);
  for (int i = 0; i < SCOPES; i++) {
    snprintf(texts[i], sizeof texts[i], "%0*d", 5 + i % 15, i);
    if (i % 2)
      with_text(texts[i]);
    else
      with_name(texts[i]);
  }
  for (int i = 0; i < SCOPES; i += 10) flags_of(texts[i]);
}

/* The last: word 2 has 8 bits for a schema's number. */
static void one_whose_schema_has_a_high_number_is_whole(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, 0);
  for (int i = 0; i <= PROF_I_TEXT_SCHEMA_MAX; i++) {
    char key[16];
    snprintf(key, sizeof key, "key %d", i);
    const prof_arg items[] = {{key, PROF_ARG_I64, 0, {.i64 = i}}};
    const prof_args args = {items, 1, PROF_ARGS_PAIRS, NULL};
    prof_scope_end(prof_scope_begin(1, "schema", "short", &args));
  }
  static prof_site site = {.level = 1};
  for (int i = 0; i < 3; i++) {
    const char *const text = text_of(9);
    prof_i_end_1(prof_i_enter(&site, PROF_HOST, "high", "short",
                              PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL, 0, true,
                              PROF_ARGS("another key", text)));
    prof_trace *trace = NULL;
    prof_cursor *cursor = NULL;
    prof_event e;
    int found = 0;
    assert_int_equal(prof_get(&trace), PROF_OK);
    assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
    while (prof_cursor_next(cursor, &e) == 1)
      found += is_text(e.name, e.name_bytes, "high") && e.arg_count == 1 &&
               is_text(e.args[0].key, e.args[0].key_bytes, "another key") &&
               is_text(e.args[0].value.text.data, e.args[0].value.text.bytes, text);
    prof_cursor_destroy(cursor);
    prof_trace_destroy(trace);
    assert_int_equal(found, 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(an_argument_of_12_bytes_takes_32_and_a_name_of_16_takes_48, stop),
      cmocka_unit_test_teardown(a_longer_text_is_whole, stop),
      cmocka_unit_test_teardown(one_that_ends_on_another_thread_has_its_text, stop),
      cmocka_unit_test_teardown(one_that_a_jump_left_has_its_text, stop),
      cmocka_unit_test_teardown(one_that_stands_open_has_its_text, stop),
      cmocka_unit_test_teardown(each_of_many_open_ones_has_its_text, stop),
      cmocka_unit_test_teardown(one_at_the_end_of_a_chunk_is_whole, stop),
      cmocka_unit_test_teardown(one_whose_schema_has_a_high_number_is_whole, stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
