/* The memory profiler by its face: what is counted, when, and what the capture says of it. The sums
   over random calls are test_memory_model.c's, the order of threads unit/test_memory_order.c's. */
#define _GNU_SOURCE
#include <unistd.h>

#include "memory_checks.h"

static void nothing_is_recorded_when_it_is_off(void **state) {
  (void)state;
  prof_pool *const pool = make_pool("off");
  assert_int_equal(prof_memory_is_on(), 0);
  prof_memory_alloc(pool, AT(0x1000), 100, 128);
  start_afresh(4 << 20);
  assert_int_equal(prof_memory_is_on(), 1);
  prof_memory_alloc(NULL, AT(0x1000), 100, 128);
  prof_memory_free(NULL, AT(0x1000), 128);
  prof_memory_free(pool, NULL, 0);
  assert_int_equal(max_of(PROF_MEMORY_POOL).max_used_bytes, 0);
  OK(prof_stop());
  prof_memory_alloc(pool, AT(0x1000), 100, 128);
  const prof_memory_info info = info_now("off");
  assert_int_equal(info.alloc_count + info.free_count, 0);
  assert_int_equal(info.missing_count, 0);
  prof_pool_destroy(pool);
  prof_pool_destroy(NULL);
}

static void each_peak_has_its_own_time(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_pool("peaks");
  prof_memory_reserve(pool, AT(0x100000), 0x40000);
  prof_memory_alloc(pool, AT(0x100000), 0x30000, 0);
  prof_memory_free(pool, AT(0x100000), 0x30000);
  prof_memory_reserve(pool, AT(0x200000), 0x40000);
  prof_memory_alloc(pool, AT(0x200000), 0x1000, 0);
  prof_memory_release(pool, AT(0x100000), 0x40000);
  OK(prof_stop());
  const prof_memory_max max = max_of(PROF_MEMORY_ANY);
  assert_int_equal(max.max_used_bytes, 0x30000);
  assert_int_equal(max.max_allocated_bytes, 0x80000);
  assert_true(max.max_used_mb == 0x30000 / 1048576.0 && max.max_allocated_mb == 0.5);
  const prof_memory_info info = info_now("peaks");
  assert_int_equal(info.peak_used.used_bytes, 0x30000);
  /* not the peak of allocated: RAF does it the other way round */
  assert_int_equal(info.peak_used.allocated_bytes, 0x40000);
  assert_int_equal(info.peak_allocated.allocated_bytes, 0x80000);
  assert_int_equal(info.peak_allocated.used_bytes, 0);
  assert_true(info.peak_used.ns < info.peak_allocated.ns);
  assert_true(info.peak_used.is_exact && info.peak_allocated.is_exact);
  assert_int_equal(info.end.used_bytes, 0x1000);
  assert_int_equal(info.end.allocated_bytes, 0x40000);
  prof_pool_destroy(pool);
}

/* Short records have room for 31 bytes of waste; longer ones say it in full. */
static void what_was_asked_for_is_kept_beside_what_was_given(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_pool("waste");
  uint64_t given = 0, requested = 0;
  for (uint64_t waste = 0; waste < 70; waste++) {
    prof_memory_alloc(pool, AT(0x10000 + waste * 4096), 1000, 1000 + waste);
    given += 1000 + waste;
    requested += 1000;
  }
  prof_memory_alloc(pool, AT(0x9000000), 77, 0);  /* given as asked */
  prof_memory_alloc(pool, AT(0x9100000), 77, 50); /* less than asked cannot be */
  OK(prof_stop());
  const prof_memory_info info = info_now("waste");
  assert_int_equal(info.end.live_bytes, given + 154);
  assert_int_equal(info.end.used_bytes, given + 154);
  assert_int_equal(info.end.requested_bytes, requested + 154);
  prof_pool_destroy(pool);
}

static void an_event_says_tag_stream_and_sums(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_pool("events");
  const uint32_t weights = prof_memory_tag("weights");
  assert_true(weights != 0);
  assert_int_equal(prof_memory_tag("weights"), weights);
  assert_int_not_equal(prof_memory_tag("activations"), weights);
  assert_int_equal(prof_memory_tag(NULL), 0);
  assert_int_equal(prof_memory_tag(""), 0);
  prof_memory_reserve(pool, AT(0x4000), 8192);
  prof_memory_alloc_for(pool, AT(0x4000), 100, 128, weights, 3);
  prof_memory_alloc_for(pool, AT(0x5000), 100, 128, 0, PROF_NO_STREAM);
  prof_memory_free(pool, AT(0x4000), 128);
  OK(prof_stop());
  prof_trace *trace;
  prof_cursor *cursor;
  prof_event e;
  OK(prof_get(&trace));
  OK(prof_cursor_create(trace, &cursor));
  static const struct {
    prof_memory_verb verb;
    const char *name;
    int64_t used, allocated;
  } wanted[] = {{PROF_MEMORY_RESERVE, "reserve", 0, 8192},
                {PROF_MEMORY_ALLOC, "alloc", 128, -1},
                {PROF_MEMORY_ALLOC, "alloc", 256, -1},
                {PROF_MEMORY_FREE, "free", 128, -1}};
  for (size_t i = 0; i < COUNT_OF(wanted); i++) {
    assert_int_equal(prof_cursor_next(cursor, &e), 1);
    assert_int_equal(e.kind, PROF_EVENT_MEMORY);
    assert_int_equal(e.memory.verb, wanted[i].verb);
    assert_true(e.name_bytes == strlen(wanted[i].name) &&
                memcmp(e.name, wanted[i].name, e.name_bytes) == 0);
    assert_int_equal(e.memory.used_bytes, wanted[i].used);
    assert_int_equal(e.memory.allocated_bytes, wanted[i].allocated);
    const int is_tagged = i == 1;
    assert_int_equal(e.memory.tag != NULL, is_tagged);
    assert_int_equal((e.flags & PROF_EVENT_ON_STREAM) != 0, is_tagged);
    if (is_tagged) assert_int_equal(e.stream, 3);
    if (is_tagged)
      assert_true(e.memory.tag && e.memory.tag_bytes == 7 &&
                  memcmp(e.memory.tag, "weights", 7) == 0);
  }
  assert_int_equal(prof_cursor_next(cursor, &e), 0);
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  prof_pool_destroy(pool);
}

static void sizes_of_nothing_and_of_too_much(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_pool("sizes");
  const uint64_t tib = UINT64_C(1) << 40;
  /* two of no bytes at one address */
  for (int i = 0; i < 2; i++) prof_memory_alloc(pool, AT(0x1000), 0, 0);
  prof_memory_alloc(pool, AT(0x1000), 64, 0);
  prof_memory_free(pool, AT(0x1000), 64);
  for (int i = 0; i < 2; i++) prof_memory_free(pool, AT(0x1000), 0);
  prof_memory_alloc(pool, AT(0x1000), UINT64_MAX, 0);
  prof_memory_free(pool, AT(0x1000), UINT64_MAX);
  prof_memory_alloc(pool, AT(0x1000), 4 * tib, 0);
  prof_memory_alloc(pool, AT(tib), 4 * tib - 1, 0);
  prof_memory_alloc(pool, AT(8 * tib), 4 * tib - 1, 0); /* more than can be summed up */
  prof_memory_alloc(pool, AT(UINT64_MAX - 15), 16, 0);  /* the last bytes there are */
  OK(prof_stop());
  const prof_memory_info info = info_now("sizes");
  assert_int_equal(info.refused_count, 4);
  assert_int_equal(info.peak_used.used_bytes, 4 * tib - 1 + 16);
  assert_int_equal(info.end.live_count, 2);
  for (int i = 0; i < PROF_MEMORY_WRONG_COUNT; i++) assert_int_equal(info.wrong_count[i], 0);
  prof_pool_destroy(pool);
}

static struct {
  uint64_t used, allocated;
  int status, calls;
} now;
static int ask(void *user, uint64_t *used, uint64_t *allocated) {
  assert_ptr_equal(user, &now);
  now.calls++;
  *used = now.used;
  *allocated = now.allocated;
  return now.status;
}

static void what_was_there_before_the_start_is_asked_for(void **state) {
  (void)state;
  prof_stop();
  prof_pool *pool;
  OK(prof_pool_create(
      &(prof_pool_options){
          .size = sizeof(prof_pool_options), .name = "before", .query = ask, .user = &now},
      &pool));
  now.used = 1000;
  now.allocated = 4096;
  now.status = 0;
  start_afresh(4 << 20);
  prof_memory_alloc(pool, AT(0x1000), 500, 0);
  prof_memory_free(pool, AT(0x9000), 600); /* of those before */
  prof_memory_free(pool, AT(0x9900), 600); /* more than there were */
  OK(prof_stop());
  prof_memory_info info = info_now("before");
  assert_int_equal(info.has_baseline, 1);
  assert_int_equal(info.used_before_bytes, 1000);
  assert_int_equal(info.peak_used.used_bytes, 1500);
  assert_int_equal(info.peak_allocated.allocated_bytes, 4096);
  assert_int_equal(info.peak_used.live_bytes, 500);
  assert_int_equal(info.from_before_count, 1);
  assert_int_equal(info.from_before_bytes, 600);
  assert_int_equal(info.wrong_count[PROF_MEMORY_WRONG_UNKNOWN], 1);
  now.status = 1; /* it does not know */
  start_afresh(4 << 20);
  OK(prof_stop());
  info = info_now("before");
  assert_int_equal(info.has_baseline, 0);
  assert_int_equal(info.used_before_bytes, 0);
  prof_pool_destroy(pool);
}

static void reset_begins_anew_from_what_is_there(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_pool("reset");
  prof_memory_reserve(pool, AT(0x100000), 0x10000);
  prof_memory_alloc(pool, AT(0x100000), 0x8000, 0);
  prof_memory_collect_end(pool, prof_memory_collect_begin(pool));
  prof_memory_free(pool, AT(0x100000), 0x8000);
  prof_memory_alloc(pool, AT(0x100000), 0x100, 0);
  OK(prof_memory_reset());
  assert_int_equal(max_of(PROF_MEMORY_ANY).max_used_bytes, 0x100);
  assert_int_equal(max_of(PROF_MEMORY_ANY).max_allocated_bytes, 0x10000);
  assert_int_equal(max_of(PROF_MEMORY_ANY).collection_count, 0);
  prof_memory_alloc(pool, AT(0x101000), 0x200, 0);
  prof_memory_free(pool, AT(0x100000), 0x100);
  OK(prof_stop());
  const prof_memory_info info = info_now("reset");
  assert_int_equal(info.peak_used.used_bytes, 0x300);
  assert_int_equal(info.peak_used.live_count, 2); /* what was handed out before counts as live */
  assert_int_equal(info.peak_used.is_exact, 1);
  prof_pool_destroy(pool);
}

static void a_reset_behind_a_stop_leaves_nothing_to_tell(void **state) {
  (void)state;
  prof_memory_max max = {.size = sizeof max};
  start_afresh(4 << 20);
  prof_pool *const pool = make_pool("told no more");
  prof_memory_alloc(pool, AT(0x100000), 0x8000, 0);
  OK(prof_stop());
  assert_int_equal(max_of(PROF_MEMORY_ANY).max_used_bytes, 0x8000);
  OK(prof_memory_reset());
  assert_int_equal(prof_memory_max_get(PROF_HOST, PROF_MEMORY_ANY, &max), PROF_E_NOT_FOUND);
  const prof_memory_info info = info_now("told no more"); /* the capture keeps it */
  assert_int_equal(info.peak_used.used_bytes, 0x8000);
  prof_pool_destroy(pool);
  assert_int_equal(prof_memory_max_get(PROF_HOST, PROF_MEMORY_ANY, &max), PROF_E_NOT_FOUND);
  prof_pool *const next = make_pool("next");
  OK(prof_memory_start());
  prof_memory_alloc(next, AT(0x100000), 0x10, 0);
  assert_int_equal(max_of(PROF_MEMORY_ANY).max_used_bytes, 0x10);
  OK(prof_memory_stop());
  prof_pool_destroy(next);
}

static void sample(uint64_t used, uint64_t allocated, const char *tag) {
  now.used = used;
  now.allocated = allocated;
  PROFILE_MEMORY(PROF_HOST, tag);
}

/* RAF's text, without its two lines of headings, without tabs and what pads the cells. */
static const char *lines_of_now(void) {
  static char lines[1024];
  prof_trace *trace = NULL;
  char *text = NULL;
  size_t count = 0;
  OK(prof_get(&trace));
  OK(prof_memory_trace_text(trace, PROF_HOST, &text));
  const char *at = text;
  for (int i = 0; i < 2 && *text; i++) {
    at = strchr(at, '\n');
    assert_non_null(at);
    at++;
  }
  for (; *at && count < sizeof lines - 1; at++)
    if (*at != ' ' && *at != '\t') lines[count++] = *at;
  lines[count] = '\0';
  prof_free(text);
  prof_trace_destroy(trace);
  return lines;
}

static void rafs_trace_and_peaks_begin_at_the_reset(void **state) {
  (void)state;
  start_afresh(4 << 20);
  now.calls = now.status = 0;
  OK(prof_memory_set_query(PROF_HOST, ask, &now));
  assert_string_equal(lines_of_now(), "");
  sample(20 << 20, 64 << 20, "old");
  assert_string_equal(lines_of_now(), "0old20.00064.000\n");
  OK(prof_memory_reset());
  assert_string_equal(lines_of_now(), "");
  assert_int_equal(max_of(PROF_MEMORY_QUERY).max_used_bytes, 0);
  assert_int_equal(max_of(PROF_MEMORY_QUERY).max_allocated_bytes, 0);
  sample(5 << 20, 64 << 20, "new");
  sample(3 << 20, 64 << 20, "newer");
  assert_string_equal(lines_of_now(), "0new5.00064.000\n1newer3.00064.000\n");
  assert_int_equal(max_of(PROF_MEMORY_QUERY).max_used_bytes, 5 << 20);
  OK(prof_memory_stop());
  const prof_memory_info info = info_now("query");
  assert_int_equal(info.sample_count, 3); /* the capture keeps them */
  assert_int_equal(info.peak_used.used_bytes, 5 << 20);
  assert_int_equal(info.peak_used.is_exact, 1);
  OK(prof_memory_reset());
  assert_string_equal(lines_of_now(), "");
  OK(prof_memory_start());
  sample(1 << 20, 2 << 20, "last");
  OK(prof_stop());
  assert_string_equal(lines_of_now(), "0last1.0002.000\n");
  OK(prof_memory_set_query(PROF_HOST, NULL, NULL));
}

static void memory_may_be_recorded_alone(void **state) {
  (void)state;
  start_afresh(4 << 20);
  OK(prof_stop());
  OK(prof_clear());
  prof_pool *const pool = make_pool("alone");
  assert_int_equal(prof_memory_stop(), PROF_E_NOT_RUNNING);
  OK(prof_memory_start());
  assert_int_equal(prof_level(), 0);
  WITH_BASE_PROFILER(PROF_HOST, "scope", "c", PROF_NO_ARGS,
                     { prof_memory_alloc(pool, AT(0x1000), 64, 0); });
  OK(prof_memory_start()); /* again: nothing */
  OK(prof_start(1));       /* scopes, too */
  WITH_BASE_PROFILER(PROF_HOST, "seen", "c", PROF_NO_ARGS,
                     { prof_memory_free(pool, AT(0x1000), 64); });
  OK(prof_memory_stop()); /* and no more memory */
  assert_int_equal(prof_level(), 1);
  prof_memory_alloc(pool, AT(0x2000), 64, 0);
  OK(prof_start(2)); /* another level does not turn it on again */
  assert_int_equal(prof_memory_is_on(), 0);
  OK(prof_stop());
  prof_trace_info about = {.size = sizeof about};
  seen s = see();
  OK(prof_trace_info_get(s.trace, &about));
  assert_int_equal(about.scope_count, 1);
  const prof_memory_info info = info_of(&s, "alone");
  assert_int_equal(info.alloc_count, 1);
  assert_int_equal(info.free_count, 1);
  look_away(&s);
  OK(prof_memory_start());
  OK(prof_memory_stop()); /* the capture was for memory alone */
  assert_int_equal(prof_stop(), PROF_E_NOT_RUNNING);
  prof_pool_destroy(pool);
}

static void rafs_query_is_asked_where_the_macro_stands(void **state) {
  (void)state;
  start_afresh(4 << 20);
  now.calls = now.status = 0;
  OK(prof_memory_set_query(PROF_HOST, ask, &now));
  static const uint64_t answers[][2] = {
      {100, 1000}, {300, 1000}, {200, 4000}, {50, 500}, {60, 400}};
  for (size_t i = 0; i < COUNT_OF(answers); i++) {
    now.used = answers[i][0];
    now.allocated = answers[i][1];
    PROFILE_MEMORY(PROF_HOST, i == 1 ? "after the layer" : "somewhere");
  }
  now.status = 1;
  PROFILE_MEMORY(PROF_HOST, "it does not know");
  PROFILE_MEMORY(((prof_device){PROF_DEVICE_CUDA, 0}), "nobody is asked there");
  assert_int_equal(now.calls, 6);
  prof_pool *const pool = make_pool("exact");
  prof_memory_alloc(pool, AT(0x1000), 70, 0);
  const prof_memory_max asked = max_of(PROF_MEMORY_QUERY), exact = max_of(PROF_MEMORY_ANY);
  assert_int_equal(asked.max_used_bytes, 300);
  assert_int_equal(asked.max_allocated_bytes, 4000);
  assert_int_equal(asked.used_bytes, 60);
  assert_int_equal(asked.allocated_bytes, 400);
  assert_int_equal(asked.collection_count, 2);
  assert_int_equal(asked.source, PROF_MEMORY_QUERY);
  assert_int_equal(exact.max_used_bytes, 70); /* told apart, not added up */
  assert_int_equal(exact.source, PROF_MEMORY_POOL);
  OK(prof_stop());
  PROFILE_MEMORY(PROF_HOST, "off");
  assert_int_equal(now.calls, 6);
  const prof_memory_info info = info_now("query");
  assert_int_equal(info.source, PROF_MEMORY_QUERY);
  assert_int_equal(info.sample_count, 5);
  assert_int_equal(info.peak_used.used_bytes, 300);
  assert_int_equal(info.peak_used.allocated_bytes, 1000);
  assert_int_equal(info.peak_allocated.allocated_bytes, 4000);
  assert_int_equal(info.peak_allocated.used_bytes, 200);
  assert_int_equal(info.collection_count, 2);
  OK(prof_memory_set_query(PROF_HOST, NULL, NULL));
  start_afresh(4 << 20);
  PROFILE_MEMORY(PROF_HOST, "nobody any more");
  assert_int_equal(now.calls, 6);
  prof_pool_destroy(pool);
}

static void collections_are_counted_with_their_time(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_pool("collect");
  prof_memory_reserve(pool, AT(0x10000), 4096);
  const uint64_t begun = prof_memory_collect_begin(pool);
  prof_memory_release(pool, AT(0x10000), 4096);
  usleep(2000);
  prof_memory_collect_end(pool, begun);
  prof_memory_collect_end(pool, 0); /* nothing */
  assert_int_equal(max_of(PROF_MEMORY_ANY).collection_count, 1);
  OK(prof_stop());
  const prof_memory_info info = info_now("collect");
  assert_int_equal(info.collection_count, 1);
  assert_true(info.collection_ns >= 1900000 && info.collection_ns < 10000000000);
  prof_pool_destroy(pool);
}

static void a_hundred_thousand_pieces_and_their_addresses_again(void **state) {
  (void)state;
  enum { COUNT = 100000 };
  start_afresh(64 << 20);
  prof_pool *const pool = make_pool("many");
  for (int turn = 0; turn < 2; turn++) {
    PROF_SCOPE("turn");
    for (uint64_t i = 0; i < COUNT; i++)
      prof_memory_alloc(pool, AT(0x10000 + (i * 7919 % COUNT) * 64), 60, 64);
    for (uint64_t i = 0; turn == 0 && i < COUNT; i++)
      prof_memory_free(pool, AT(0x10000 + i * 64), 64);
  }
  OK(prof_stop());
  seen s = see();
  const prof_memory_info info = info_of(&s, "many");
  assert_int_equal(info.peak_used.used_bytes, COUNT * 64);
  assert_int_equal(info.end.live_count, COUNT);
  assert_int_equal(info.end.requested_bytes, COUNT * 60);
  for (int i = 0; i < PROF_MEMORY_WRONG_COUNT; i++) assert_int_equal(info.wrong_count[i], 0);
  prof_memory_rows *rows;
  OK(prof_memory_live(s.memory, 0, PROF_MEMORY_AT_END, 0, PROF_MEMORY_BY_ADDRESS, &rows));
  assert_int_equal(rows->row_count, COUNT);
  prof_free(rows);
  look_away(&s);
  prof_pool_destroy(pool);
}

static void the_step_that_grew_most_is_named(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_pool("steps");
  static const uint64_t grows[] = {100, 10, 5000, 20};
  uint64_t at = 0x10000;
  for (size_t i = 0; i < COUNT_OF(grows); i++) {
    prof_memory_alloc(pool, AT(at), grows[i], 0);
    at += grows[i];
    prof_step();
  }
  OK(prof_stop());
  const prof_memory_info info = info_now("steps");
  assert_int_equal(info.growth_bytes, 5000);
  assert_int_equal(info.growth_step, 2);
  prof_pool_destroy(pool);
}

static void pools_of_one_device_add_up_at_one_moment(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const a = make_pool("a"), *const b = make_pool("b");
  prof_memory_alloc(a, AT(0x1000), 1000, 0);
  prof_memory_free(a, AT(0x1000), 1000);
  prof_memory_alloc(b, AT(0x9000), 700, 0);
  prof_memory_alloc(a, AT(0x1000), 400, 0); /* 1100 at once; their peaks together are 1700 */
  OK(prof_stop());
  assert_int_equal(max_of(PROF_MEMORY_POOL).max_used_bytes, 1700);
  assert_int_equal(max_of(PROF_MEMORY_POOL).pool_count, 2);
  seen s = see();
  prof_memory_info device = {.size = sizeof device};
  OK(prof_memory_device_get(s.memory, PROF_HOST, PROF_MEMORY_ANY, &device));
  assert_int_equal(device.peak_used.used_bytes, 1100);
  assert_int_equal(device.peak_used.live_count, 2);
  assert_int_equal(device.alloc_count, 3);
  assert_int_equal(prof_memory_device_get(s.memory, (prof_device){PROF_DEVICE_CUDA, 0},
                                          PROF_MEMORY_ANY, &device),
                   PROF_E_NOT_FOUND);
  look_away(&s);
  prof_pool_destroy(a);
  prof_pool_destroy(b);
}

static void a_devices_peak_counts_from_the_reset_too(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const a = make_pool("a"), *const b = make_pool("b");
  prof_memory_alloc(a, AT(0x100000), 1 << 20, 0);
  prof_memory_alloc(b, AT(0x900000), 1 << 20, 0);
  prof_memory_free(a, AT(0x100000), 1 << 20);
  prof_memory_free(b, AT(0x900000), 1 << 20);
  prof_memory_alloc(a, AT(0x100000), 100, 0);
  usleep(1000);
  OK(prof_memory_reset());
  prof_memory_alloc(b, AT(0x900000), 16, 0);
  OK(prof_stop());
  seen s = see();
  prof_memory_info device = {.size = sizeof device};
  OK(prof_memory_device_get(s.memory, PROF_HOST, PROF_MEMORY_POOL, &device));
  assert_int_equal(device.peak_used.used_bytes, 116);
  assert_int_equal(device.peak_used.live_count, 2);
  assert_int_equal(device.alloc_count, 4);
  look_away(&s);
  prof_pool_destroy(a);
  prof_pool_destroy(b);
}

/* A part of a block goes back to the system: what is left on either side is still there. */
static void a_block_may_go_in_parts(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_pool("parts");
  prof_memory_reserve(pool, AT(0x100000), 0x4000);
  prof_memory_alloc(pool, AT(0x103000), 0x800, 0);
  prof_memory_release(pool, AT(0x101000), 0x1000);
  OK(prof_stop());
  prof_memory_info info = info_now("parts");
  assert_int_equal(info.end.has_ranges, 1);
  assert_int_equal(info.end.allocated_bytes, 0x3000);
  assert_int_equal(info.end.free_bytes, 0x3000 - 0x800);
  assert_int_equal(info.end.largest_free_bytes, 0x1000);
  assert_int_equal(info.end.outside_bytes, 0);
  prof_pool_destroy(pool);
}

static void a_block_may_end_where_addresses_do(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_pool("edge");
  prof_memory_reserve(pool, AT(UINT64_MAX - 4095), 4096);
  prof_memory_alloc(pool, AT(UINT64_MAX - 4095), 1024, 0);
  prof_memory_alloc(pool, AT(UINT64_MAX - 1023), 1024, 0);
  OK(prof_stop());
  const prof_memory_info info = info_now("edge");
  assert_int_equal(info.end.has_ranges, 1);
  assert_int_equal(info.end.free_bytes, 2048);
  assert_int_equal(info.end.largest_free_bytes, 2048);
  prof_pool_destroy(pool);
}

static void more_may_be_reserved_than_pieces_can_come_to(void **state) {
  (void)state;
  start_afresh(4 << 20);
  const uint64_t tib = UINT64_C(1) << 40;
  prof_pool *const pool = make_pool("vast");
  for (uint64_t i = 0; i < 4; i++) prof_memory_reserve(pool, AT((i + 1) * 4 * tib), 3 * tib);
  OK(prof_stop());
  assert_int_equal(max_of(PROF_MEMORY_POOL).max_allocated_bytes, 12 * tib);
  assert_int_equal(info_now("vast").peak_allocated.allocated_bytes, 12 * tib);
  prof_pool_destroy(pool);
}

/* The report shows those that used most, and the others in a table. */
static void of_many_pools_the_largest_are_shown_whole(void **state) {
  (void)state;
  enum { POOLS = 100, WHOLE = 16 };
  start_afresh(4 << 20);
  prof_pool *pools[POOLS];
  for (uint64_t i = 0; i < POOLS; i++) {
    char name[32];
    snprintf(name, sizeof name, "pool %u", (unsigned)i);
    pools[i] = make_pool(name);
    prof_memory_alloc(pools[i], AT((i + 1) << 20), 100 + i, 0);
  }
  OK(prof_stop());
  seen s = see();
  char *text;
  int whole = 0;
  OK(prof_memory_text(s.memory, NULL, &text));
  for (const char *at = text; (at = strstr(at, "\nPool ")) != NULL; at++) whole++;
  assert_int_equal(whole, WHOLE);
  assert_non_null(strstr(text, "\nPool 100: pool 99 on cpu:0"));
  assert_non_null(strstr(text, "\nPool 85: pool 84 on cpu:0"));
  assert_non_null(strstr(text, "The other pools, which used less"));
  assert_non_null(strstr(text, "pool 83"));
  prof_free(text);
  look_away(&s);
  for (int i = 0; i < POOLS; i++) prof_pool_destroy(pools[i]);
}

/* torch.profiler's columns: allocated less freed while the operator ran; self: less what the scopes
   in it did. A step is no operator. */
static void operators_have_columns_of_memory(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_pool("columns"), *gpu = NULL;
  OK(prof_pool_create(
      &(prof_pool_options){.size = sizeof(prof_pool_options), .device = {PROF_DEVICE_CUDA, 0}},
      &gpu));
  for (uint64_t i = 0; i < 3; i++) {
    PROF_SCOPE("layer");
    prof_memory_alloc(pool, AT(0x10000 + i * 0x1000), 1000, 1024);
    {
      PROF_SCOPE("dense");
      prof_memory_alloc(pool, AT(0x50000), 4096, 0);
      prof_memory_alloc(gpu, AT(0x50000), 100, 0);
      { PROF_SCOPE("nothing"); }
    }
    prof_memory_free(pool, AT(0x50000), 4096);
    prof_step();
    WITH_BASE_PROFILER(PROF_HOST, i == 0 ? "made at run time" : "another", "c", PROF_NO_ARGS,
                       { prof_memory_alloc(pool, AT(0x60000 + i * 64), 64, 0); });
  }
  prof_memory_free(pool, AT(0x10000), 1024); /* in no scope */
  OK(prof_stop());
  static const struct {
    const char *name;
    int64_t all, self, device, self_device;
  } wanted[] = {{"layer", 3 * (1024 + 64), 3 * (1024 - 4096), 300, 0},
                {"dense", 3 * 4096, 3 * 4096, 300, 300},
                {"nothing", 0, 0, 0, 0},
                {"made at run time", 64, 64, 0, 0},
                {"another", 128, 128, 0, 0}};
  prof_trace *trace;
  prof_rows *rows;
  char *text;
  OK(prof_get(&trace));
  const prof_aggregate_options options = {.size = sizeof options, .sort = PROF_SORT_MEMORY};
  OK(prof_trace_aggregate(trace, &options, &rows));
  assert_int_equal(rows->row_count, COUNT_OF(wanted));
  assert_true(rows->has_memory && rows->has_device_memory);
  assert_string_equal(rows->rows[0].name, "dense");
  for (size_t i = 0; i < COUNT_OF(wanted); i++) {
    size_t at = 0;
    while (at < rows->row_count && strcmp(rows->rows[at].name, wanted[i].name) != 0) at++;
    assert_true(at < rows->row_count);
    assert_int_equal(rows->rows[at].memory_bytes, wanted[i].all);
    assert_int_equal(rows->rows[at].self_memory_bytes, wanted[i].self);
    assert_int_equal(rows->rows[at].device_memory_bytes, wanted[i].device);
    assert_int_equal(rows->rows[at].self_device_memory_bytes, wanted[i].self_device);
  }
  OK(prof_trace_table(trace, &options, &text));
  assert_non_null(strstr(text, "CPU Mem  Self CPU Mem  Device Mem  Self Device Mem"));
  assert_non_null(strstr(text, "12.00 KiB"));
  assert_non_null(strstr(text, "-9.00 KiB"));
  prof_free(text);
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  prof_pool_destroy(pool);
  prof_pool_destroy(gpu);
}

/* A row of 0 B everywhere says nothing. The flag says what the trace has, whether or not a row
   shows it. */
static void columns_without_bytes_are_left_out(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_pool("columns");
  prof_memory_alloc(pool, AT(0x10000), 1000, 1024); /* in no scope */
  { PROF_SCOPE("dense"); }
  {
    PROF_SCOPE("given back"); /* 0 in all and 0 itself, too */
    prof_memory_alloc(pool, AT(0x20000), 1000, 1024);
    prof_memory_free(pool, AT(0x20000), 1024);
  }
  OK(prof_stop());
  prof_trace *trace;
  prof_rows *rows;
  char *text;
  OK(prof_get(&trace));
  OK(prof_trace_aggregate(trace, NULL, &rows));
  assert_int_equal(rows->row_count, 2);
  assert_true(rows->has_memory && !rows->has_device_memory);
  OK(prof_trace_table(trace, NULL, &text));
  assert_non_null(strstr(text, "dense"));
  assert_null(strstr(text, "Mem"));
  prof_free(text);
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);

  /* Nothing in all, but in the scope and the one in it: both columns are there. The device's are
     not. */
  OK(prof_clear());
  OK(prof_start(1));
  {
    PROF_SCOPE("outer");
    prof_memory_alloc(pool, AT(0x30000), 1000, 1024);
    {
      PROF_SCOPE("inner");
      prof_memory_free(pool, AT(0x30000), 1024);
    }
  }
  OK(prof_stop());
  OK(prof_get(&trace));
  OK(prof_trace_table(trace, NULL, &text));
  assert_non_null(strstr(text, "CPU Mem  Self CPU Mem  Calls"));
  prof_free(text);
  prof_trace_destroy(trace);
  prof_pool_destroy(pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_is_recorded_when_it_is_off),
      cmocka_unit_test(each_peak_has_its_own_time),
      cmocka_unit_test(what_was_asked_for_is_kept_beside_what_was_given),
      cmocka_unit_test(an_event_says_tag_stream_and_sums),
      cmocka_unit_test(sizes_of_nothing_and_of_too_much),
      cmocka_unit_test(what_was_there_before_the_start_is_asked_for),
      cmocka_unit_test(reset_begins_anew_from_what_is_there),
      cmocka_unit_test(a_reset_behind_a_stop_leaves_nothing_to_tell),
      cmocka_unit_test(rafs_trace_and_peaks_begin_at_the_reset),
      cmocka_unit_test(memory_may_be_recorded_alone),
      cmocka_unit_test(rafs_query_is_asked_where_the_macro_stands),
      cmocka_unit_test(collections_are_counted_with_their_time),
      cmocka_unit_test(a_hundred_thousand_pieces_and_their_addresses_again),
      cmocka_unit_test(the_step_that_grew_most_is_named),
      cmocka_unit_test(pools_of_one_device_add_up_at_one_moment),
      cmocka_unit_test(a_devices_peak_counts_from_the_reset_too),
      cmocka_unit_test(a_block_may_go_in_parts),
      cmocka_unit_test(a_block_may_end_where_addresses_do),
      cmocka_unit_test(more_may_be_reserved_than_pieces_can_come_to),
      cmocka_unit_test(of_many_pools_the_largest_are_shown_whole),
      cmocka_unit_test(operators_have_columns_of_memory),
      cmocka_unit_test(columns_without_bytes_are_left_out)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
