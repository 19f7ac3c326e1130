/* The tensor pool's account by prof beside the one that the pool keeps itself: peaks, sums, and
   queries against reports. With the model's own requests, too, where the model is.
   SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include <prof/memory.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h wants the headers above it. */
#include <cmocka.h>

#include "data.h"
#include "ops.h"
#include "pool.h"
#include "pool_checks.h"
#include "workers.h"

enum {
  BLOCK_BYTES = 1 << 16,
  SLOTS = 40,
  ROUNDS = 5000,
  THREADS = 4,
  TRIM_EVERY = 250,
  ASK_EVERY = 50
};

/* ---- what prof says ---- */

typedef struct account {
  prof_trace *trace;
  prof_memory *memory;
  prof_memory_info exact, asked;
  uint32_t exact_index;
  int has_asked;
} account;

/* Of the last session. */
static account read_account(void) {
  account a = {.trace = NULL};
  int exact_count = 0;
  assert_int_equal(prof_get(&a.trace), PROF_OK);
  assert_int_equal(prof_memory_read(a.trace, &a.memory), PROF_OK);
  for (uint32_t i = 0; i < prof_memory_pool_count(a.memory); i++) {
    prof_memory_info info = {.size = sizeof info};
    assert_int_equal(prof_memory_pool_get(a.memory, i, &info), PROF_OK);
    if (info.source == PROF_MEMORY_QUERY) {
      a.asked = info;
      continue;
    }
    exact_count = info.session == a.exact.session ? exact_count + 1 : 1;
    a.exact = info;
    a.exact_index = i;
  }
  a.has_asked = a.asked.session == a.exact.session;
  assert_int_equal(exact_count, 1);
  return a;
}

static void drop_account(account *a) {
  prof_memory_destroy(a->memory);
  prof_trace_destroy(a->trace);
  prof_clear();
}

static void assert_nothing_is_wrong(const prof_memory_info *info) {
  for (int i = 0; i < PROF_MEMORY_WRONG_COUNT; i++) assert_int_equal(info->wrong_count[i], 0);
  assert_int_equal(info->missing_count, 0);
  assert_int_equal(info->refused_count, 0);
  assert_int_equal(info->unchecked_count, 0);
}

static void assert_equals_the_pools_own(const prof_memory_info *info, const pool_statistics *own) {
  print_message(
      "  peak used %lld by prof, %llu by the pool; peak allocated %lld, %llu; %llu pieces, %llu\n",
      (long long)info->peak_used.used_bytes, (unsigned long long)own->used_peak_bytes,
      (long long)info->peak_allocated.allocated_bytes, (unsigned long long)own->reserved_peak_bytes,
      (unsigned long long)info->alloc_count, (unsigned long long)own->request_count);
  assert_int_equal(info->peak_used.used_bytes, own->used_peak_bytes);
  assert_int_equal(info->peak_allocated.allocated_bytes, own->reserved_peak_bytes);
  assert_int_equal(info->end.used_bytes, own->used_bytes);
  assert_int_equal(info->end.allocated_bytes, own->reserved_bytes);
  assert_true(info->peak_used.is_exact);
  assert_true(info->peak_allocated.is_exact);
}

static void assert_counts_equal(const prof_memory_info *info, const pool_statistics *own) {
  assert_int_equal(info->alloc_count, own->request_count - own->refused_count);
  assert_int_equal(info->free_count, own->release_count);
  assert_int_equal(info->reserve_count, own->reserve_count);
}

/* Every grouping of the peak's live pieces comes to the peak. */
static void assert_rows_sum_up(const account *a) {
  const prof_memory_state *peak = &a->exact.peak_used;
  assert_int_equal(peak->live_bytes, peak->used_bytes);
  for (int by = PROF_MEMORY_BY_SCOPE; by <= PROF_MEMORY_BY_ADDRESS; by++) {
    prof_memory_rows *rows = NULL;
    uint64_t bytes = 0, count = 0, requested = 0;
    assert_int_equal(prof_memory_live(a->memory, a->exact_index, PROF_MEMORY_AT_PEAK_USED, 0,
                                      (prof_memory_by)by, &rows),
                     PROF_OK);
    for (uint64_t i = 0; i < rows->row_count; i++) {
      bytes += rows->rows[i].bytes;
      count += rows->rows[i].count;
      requested += rows->rows[i].requested_bytes;
    }
    assert_int_equal(bytes, peak->live_bytes);
    assert_int_equal(bytes, rows->bytes);
    assert_int_equal(count, peak->live_count);
    assert_int_equal(requested, peak->requested_bytes);
    assert_true(requested <= bytes);
    prof_free(rows);
  }
}

/* A query now and then sees at most what was in use. What both ways say of the device is never one
   sum. */
static void assert_asked_is_at_most_exact(const account *a) {
  prof_memory_max max = {.size = sizeof max};
  assert_true(a->has_asked);
  assert_true(a->asked.sample_count > 0);
  assert_int_equal(a->asked.missing_count, 0);
  print_message("  asked %llu times: peak used %lld, peak allocated %lld\n",
                (unsigned long long)a->asked.sample_count, (long long)a->asked.peak_used.used_bytes,
                (long long)a->asked.peak_allocated.allocated_bytes);
  assert_true(a->asked.peak_used.used_bytes > 0);
  assert_true(a->asked.peak_used.used_bytes <= a->exact.peak_used.used_bytes);
  assert_true(a->asked.peak_allocated.allocated_bytes <= a->exact.peak_allocated.allocated_bytes);
  assert_int_equal(prof_memory_max_get(PROF_HOST, PROF_MEMORY_ANY, &max), PROF_OK);
  assert_int_equal(max.source, PROF_MEMORY_POOL);
  assert_int_equal(max.max_used_bytes, a->exact.peak_used.used_bytes);
  assert_int_equal(max.max_allocated_bytes, a->exact.peak_allocated.allocated_bytes);
  assert_int_equal(prof_memory_max_get(PROF_HOST, PROF_MEMORY_QUERY, &max), PROF_OK);
  assert_int_equal(max.max_used_bytes, a->asked.peak_used.used_bytes);
  assert_int_equal(max.max_allocated_bytes, a->asked.peak_allocated.allocated_bytes);
}

/* ---- without a model ---- */

typedef struct job {
  pool *pool;
  uint32_t seed;
  char name[32];
} job;

static void churn(const job *j) {
  void *slots[SLOTS] = {NULL};
  uint32_t seed = j->seed;
  const uint32_t tags[] = {0, prof_memory_tag("even"), prof_memory_tag("odd")};
  for (int round = 0; round < ROUNDS; round++) {
    void **slot = &slots[next_random(&seed) % SLOTS];
    pool_release(j->pool, *slot);
    *slot = *slot != NULL
                ? NULL
                : pool_acquire_for(j->pool,
                                   1 + next_random(&seed) % (round % 50 == 0 ? 100000u : 5000u),
                                   (pool_purpose){tags[round % 3], POOL_ANY_STREAM});
    if (round % TRIM_EVERY == 0) pool_trim(j->pool);
    if (round % ASK_EVERY == 0) PROFILE_MEMORY(PROF_HOST, j->name);
  }
  for (int i = 0; i < SLOTS; i++) pool_release(j->pool, slots[i]);
}

static void *churn_in_a_scope(void *argument) {
  const job *j = argument;
  WITH_BASE_PROFILER(PROF_HOST, j->name, "test", PROF_NO_ARGS, { churn(j); });
  return NULL;
}

/* All that is said of it; prof has stopped. */
static account read_and_compare(pool *p) {
  const pool_statistics own = statistics_of(p);
  account a = read_account();
  assert_nothing_is_wrong(&a.exact);
  assert_equals_the_pools_own(&a.exact, &own);
  assert_counts_equal(&a.exact, &own);
  assert_rows_sum_up(&a);
  assert_asked_is_at_most_exact(&a);
  return a;
}

static void one_threads_account_equals_the_pools_own(void **state) {
  (void)state;
  pool *p = pool_create(BLOCK_BYTES, &pool_host_memory);
  job j = {p, 12345, "alone"};
  assert_int_equal(prof_memory_set_query(PROF_HOST, pool_query, p), PROF_OK);
  assert_int_equal(prof_start(2), PROF_OK);
  churn_in_a_scope(&j);
  prof_stop();
  account a = read_and_compare(p);
  assert_int_equal(a.exact.collection_count, ROUNDS / TRIM_EVERY);
  drop_account(&a);
  prof_memory_set_query(PROF_HOST, NULL, NULL);
  pool_destroy(p);
}

static void threads_account_equals_the_pools_own(void **state) {
  (void)state;
  pool *p = pool_create(BLOCK_BYTES, &pool_host_memory);
  pthread_t threads[THREADS];
  job jobs[THREADS];
  assert_int_equal(prof_memory_set_query(PROF_HOST, pool_query, p), PROF_OK);
  assert_int_equal(prof_start(2), PROF_OK);
  for (int i = 0; i < THREADS; i++) {
    jobs[i] = (job){.pool = p, .seed = 100u + (uint32_t)i};
    snprintf(jobs[i].name, sizeof jobs[i].name, "thread %d", i);
    assert_int_equal(pthread_create(&threads[i], NULL, churn_in_a_scope, &jobs[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  prof_stop();
  account a = read_and_compare(p);
  drop_account(&a);
  prof_memory_set_query(PROF_HOST, NULL, NULL);
  pool_destroy(p);
}

static void what_was_there_before_the_start_is_counted(void **state) {
  (void)state;
  pool *p = pool_create(BLOCK_BYTES, &pool_host_memory);
  void *before = pool_acquire(p, 1000);
  assert_int_equal(prof_start(1), PROF_OK);
  void *after = pool_acquire(p, 100);
  pool_release(p, before);
  prof_stop();
  const pool_statistics own = statistics_of(p);
  account a = read_account();
  assert_nothing_is_wrong(&a.exact);
  assert_equals_the_pools_own(&a.exact, &own);
  assert_true(a.exact.has_baseline);
  assert_int_equal(a.exact.used_before_bytes, 1024);
  assert_int_equal(a.exact.allocated_before_bytes, BLOCK_BYTES);
  assert_int_equal(a.exact.from_before_count, 1);
  assert_int_equal(a.exact.from_before_bytes, 1024);
  drop_account(&a);
  pool_release(p, after);
  pool_destroy(p);
}

/* The piece belongs to the scope of whoever wanted it, not to the pool's own scope of the
   request. */
static void a_piece_is_counted_to_its_callers_scope_and_tag(void **state) {
  (void)state;
  pool *p = pool_create(BLOCK_BYTES, &pool_host_memory);
  void *memory = NULL;
  assert_int_equal(prof_start(2), PROF_OK);
  WITH_BASE_PROFILER(PROF_HOST, "the caller", "test", PROF_NO_ARGS, {
    memory =
        pool_acquire_for(p, 1000, (pool_purpose){prof_memory_tag("the purpose"), POOL_ANY_STREAM});
  });
  pool_release(p, memory);
  prof_stop();
  account a = read_account();
  prof_memory_rows *rows = NULL;
  assert_int_equal(prof_memory_live(a.memory, a.exact_index, PROF_MEMORY_AT_PEAK_USED, 0,
                                    PROF_MEMORY_BY_ADDRESS, &rows),
                   PROF_OK);
  assert_int_equal(rows->row_count, 1);
  assert_string_equal(rows->rows[0].label, "the caller");
  assert_string_equal(rows->rows[0].tag, "the purpose");
  assert_int_equal(rows->rows[0].requested_bytes, 1000);
  assert_int_equal(rows->rows[0].bytes, 1024);
  assert_int_equal(rows->rows[0].address, (uintptr_t)memory);
  prof_free(rows);
  drop_account(&a);
  pool_destroy(p);
}

/* What goes to stderr while the request is refused. */
static void refuse_a_request(pool *p, char *said, size_t room) {
  FILE *to = tmpfile();
  assert_non_null(to);
  const int kept = dup(STDERR_FILENO);
  fflush(stderr);
  dup2(fileno(to), STDERR_FILENO);
  void *memory = pool_acquire(p, SIZE_MAX);
  dup2(kept, STDERR_FILENO);
  close(kept);
  rewind(to);
  said[fread(said, 1, room - 1, to)] = '\0';
  fclose(to);
  assert_null(memory);
}

/* Without an output the text about it goes to stderr, in lines. */
static void a_refused_request_is_told(void **state) {
  (void)state;
  char said[4096];
  pool *p = pool_create(BLOCK_BYTES, &pool_host_memory);
  assert_int_equal(prof_start(1), PROF_OK);
  void *memory = pool_acquire(p, 1000);
  refuse_a_request(p, said, sizeof said);
  pool_release(p, memory);
  prof_stop();
  account a = read_account();
  assert_int_equal(a.exact.oom_count, 1);
  assert_int_equal(a.exact.alloc_count, 1);
  if (strstr(said, "out of memory") == NULL ||
      strstr(said, "\nprof: pool tensors: used 1024 bytes") == NULL)
    fail_msg("it says: %s", said);
  if (strchr(said, '?') != NULL) fail_msg("it says: %s", said);
  drop_account(&a);
  pool_destroy(p);
}

static int asked_count;

static int count_asking(void *user, uint64_t *used_bytes_out, uint64_t *allocated_bytes_out) {
  (void)user;
  asked_count++;
  *used_bytes_out = *allocated_bytes_out = 0;
  return 0;
}

static void nobody_is_asked_while_prof_is_off(void **state) {
  (void)state;
  pool *p = pool_create(BLOCK_BYTES, &pool_host_memory);
  job j = {p, 1, "off"};
  asked_count = 0;
  assert_int_equal(prof_memory_set_query(PROF_HOST, count_asking, NULL), PROF_OK);
  churn_in_a_scope(&j);
  assert_int_equal(asked_count, 0);
  assert_int_equal(statistics_of(p).used_bytes, 0);
  prof_memory_set_query(PROF_HOST, NULL, NULL);
  pool_destroy(p);
}

/* ---- the model's requests ---- */

static batches *make_batches(const model *m) {
  static const char *const texts[] = {"Where does the memory go?", "A short one.",
                                      "What a pool hands out is used, and what it has taken from "
                                      "the system is allocated; the peaks of both "
                                      "come at times of their own, and what lies free in between "
                                      "in stretches too short is what it costs."};
  enum { COUNT = 24 };
  text_span spans[COUNT];
  for (int i = 0; i < COUNT; i++) spans[i] = (text_span){texts[i % 3], strlen(texts[i % 3])};
  batches *b = NULL;
  failure why;
  if (batches_create(m->tokenizer, m->config.hidden, spans, COUNT, &b, &why) != 0)
    fail_msg("%s", why.text);
  return b;
}

static void run_workers(const model *m, pool *p, int count) {
  batches *b = make_batches(m);
  workers *w = NULL;
  failure why;
  assert_int_equal(workers_create(m->program, engine_host(), p, count, &w, &why), 0);
  assert_int_equal(prof_start(2), PROF_OK);
  for (int64_t i = 0; i < b->count; i++) workers_submit(w, &b->items[i]);
  assert_int_equal(workers_wait(w, &why), 0);
  pool_trim(p);
  prof_stop();
  workers_destroy(w);
  batches_destroy(b);
}

static void workers_account_equals_the_pools_own(void **state) {
  model *m = *state;
  if (m == NULL) {
    skip();
    return;
  }
  for (int count = 1; count <= 3; count++) {
    pool *p = pool_create(BLOCK_BYTES, &pool_host_memory);
    assert_int_equal(prof_memory_set_query(PROF_HOST, pool_query, p), PROF_OK);
    run_workers(m, p, count);
    const pool_statistics own = statistics_of(p);
    account a = read_account();
    print_message("  %d worker%s:\n", count, count == 1 ? "" : "s");
    assert_nothing_is_wrong(&a.exact);
    assert_equals_the_pools_own(&a.exact, &own);
    assert_counts_equal(&a.exact, &own);
    assert_rows_sum_up(&a);
    assert_asked_is_at_most_exact(&a);
    assert_int_equal(a.exact.end.used_bytes, 0);
    drop_account(&a);
    prof_memory_set_query(PROF_HOST, NULL, NULL);
    pool_destroy(p);
  }
}

/* At level 2 each piece lies in the scope of the instruction that wanted it, and is tagged with its
   operator. */
static void at_the_peak_all_is_live_for_an_instruction(void **state) {
  model *m = *state;
  if (m == NULL) {
    skip();
    return;
  }
  pool *p = pool_create(BLOCK_BYTES, &pool_host_memory);
  run_workers(m, p, 2);
  account a = read_account();
  prof_memory_rows *rows = NULL;
  assert_int_equal(prof_memory_live(a.memory, a.exact_index, PROF_MEMORY_AT_PEAK_USED, 0,
                                    PROF_MEMORY_BY_ADDRESS, &rows),
                   PROF_OK);
  assert_true(rows->row_count > 0);
  for (uint64_t i = 0; i < rows->row_count; i++) {
    if (strncmp(rows->rows[i].label, "layer ", 6) != 0 &&
        strcmp(rows->rows[i].label, "embeddings") != 0)
      fail_msg("a piece is counted to '%s'", rows->rows[i].label);
    assert_true(rows->rows[i].tag[0] != '\0');
  }
  prof_free(rows);
  drop_account(&a);
  pool_destroy(p);
}

int main(void) {
  model *m = data_open_model();
  if (m != NULL) ops_init();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_threads_account_equals_the_pools_own),
      cmocka_unit_test(threads_account_equals_the_pools_own),
      cmocka_unit_test(what_was_there_before_the_start_is_counted),
      cmocka_unit_test(a_piece_is_counted_to_its_callers_scope_and_tag),
      cmocka_unit_test(a_refused_request_is_told),
      cmocka_unit_test(nobody_is_asked_while_prof_is_off),
      cmocka_unit_test_prestate(workers_account_equals_the_pools_own, m),
      cmocka_unit_test_prestate(at_the_peak_all_is_live_for_an_instruction, m),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  model_close(m);
  return failed;
}
