/* The whole runtime against torch: tests/data/minilm-reference.json holds texts with the token
   numbers and embeddings that sentence-transformers made of them. Also: batching, workers and
   running out of memory. SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h wants the headers above it. */
#include <cmocka.h>

#include "ops.h"
#include "reference.h"
#include "workers.h"

/* of the greatest absolute difference; float32 in another order of sums gives about 1e-6 */
#define BOUND 1e-4

typedef struct fixture {
  model *model;
  pool *pool;
  reference reference;
} fixture;

static long allocations_left = -1; /* of the pool's blocks; -1: no bound */

/* Stands before the C library's: the pool's only way to memory, so that a test can let it fail. */
void *aligned_alloc(size_t alignment, size_t bytes) {
  void *memory = NULL;
  if (allocations_left == 0) return NULL;
  if (allocations_left > 0) allocations_left--;
  return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

static int set_up(void **state) {
  static fixture f;
  ops_init();
  f.model = data_open_model();
  f.pool = pool_create(1 << 20, &pool_host_memory);
  f.reference = reference_read();
  *state = &f;
  return f.model == NULL || f.pool == NULL;
}

static int tear_down(void **state) {
  fixture *f = *state;
  pool_destroy(f->pool);
  model_close(f->model);
  reference_free(&f->reference);
  return 0;
}

static vm *create_vm(const fixture *f, pool *p) {
  vm *v = NULL;
  failure why;
  if (vm_create(f->model->program, engine_host(), p, &v, &why) != 0) fail_msg("%s", why.text);
  return v;
}

static void token_numbers_equal_the_reference(void **state) {
  const fixture *f = *state;
  const cJSON *one, *number;
  cJSON_ArrayForEach(one, f->reference.cases) {
    int32_t ids[TOKENIZER_LENGTH_MAX];
    const text_span text = reference_text(one);
    const int64_t count = tokenizer_encode(f->model->tokenizer, text.data, text.bytes, ids,
                                           TOKENIZER_LENGTH_MAX, NULL);
    const cJSON *want = cJSON_GetObjectItemCaseSensitive(one, "token_ids");
    assert_int_equal(count, cJSON_GetArraySize(want));
    int64_t i = 0;
    cJSON_ArrayForEach(number, want) assert_int_equal(ids[i++], number->valueint);
  }
}

static void embeddings_one_at_a_time_equal_the_reference(void **state) {
  const fixture *f = *state;
  batches *all = reference_batches(&f->reference, f->model);
  vm *v = create_vm(f, f->pool);
  int64_t i = 0;
  const cJSON *one;
  cJSON_ArrayForEach(one, f->reference.cases) {
    const text_span text = reference_text(one);
    batches *b = NULL;
    failure why;
    assert_int_equal(batches_create(f->model->tokenizer, all->width, &text, 1, &b, &why), 0);
    assert_int_equal(vm_run(v, &b->items[0], &why), 0);
    memcpy(all->embeddings + i++ * all->width, b->embeddings, (size_t)all->width * sizeof(float));
    batches_destroy(b);
  }
  vm_destroy(v);
  reference_compare(&f->reference, all, "alone", BOUND);
  batches_destroy(all);
}

/* Rows of different lengths stand in one batch: what padding holds must not reach a text's
   embedding. */
static void embeddings_in_batches_on_two_workers_equal_the_reference(void **state) {
  const fixture *f = *state;
  batches *b = reference_batches(&f->reference, f->model);
  workers *w = NULL;
  failure why;
  assert_int_equal(workers_create(f->model->program, engine_host(), f->pool, 2, &w, &why), 0);
  for (int64_t i = 0; i < b->count; i++) workers_submit(w, &b->items[i]);
  assert_int_equal(workers_wait(w, &why), 0);
  workers_destroy(w);
  reference_compare(&f->reference, b, "batched", BOUND);
  batches_destroy(b);
}

static void a_run_gives_all_its_memory_back(void **state) {
  const fixture *f = *state;
  batches *b = reference_batches(&f->reference, f->model);
  vm *v = create_vm(f, f->pool);
  failure why;
  for (int64_t i = 0; i < b->count; i++) assert_int_equal(vm_run(v, &b->items[i], &why), 0);
  vm_destroy(v);
  batches_destroy(b);
  pool_statistics s;
  pool_statistics_get(f->pool, &s);
  assert_int_equal(s.used_bytes, 0);
  assert_int_equal(s.release_count + s.refused_count, s.request_count);
  print_message("  peak used %.1f MB of %.1f MB reserved, %llu requests, %llu went to the system\n",
                (double)s.used_peak_bytes / 1e6, (double)s.reserved_peak_bytes / 1e6,
                (unsigned long long)s.request_count, (unsigned long long)s.reserve_count);
}

/* Registers are released at their last use: no layer needs more than its input, query, key, value
   and the scores. */
static void a_run_holds_no_more_than_one_layers_registers(void **state) {
  const fixture *f = *state;
  batches *b = reference_batches(&f->reference, f->model);
  const batch *largest = &b->items[0];
  const int64_t rows = largest->count * largest->length;
  const int64_t floats =
      4 * rows * f->model->config.hidden + rows * f->model->config.heads * largest->length;
  /* the pool rounds up */
  const uint64_t bound_bytes = (uint64_t)floats * sizeof(float) * 101 / 100;
  pool *p = pool_create(1 << 20, &pool_host_memory);
  vm *v = create_vm(f, p);
  failure why;
  pool_statistics s;
  assert_int_equal(vm_run(v, largest, &why), 0);
  pool_statistics_get(p, &s);
  print_message("  peak %llu bytes, bound %llu\n", (unsigned long long)s.used_peak_bytes,
                (unsigned long long)bound_bytes);
  assert_true(s.used_peak_bytes <= bound_bytes);
  vm_destroy(v);
  pool_destroy(p);
  batches_destroy(b);
}

/* The n-th block that the pool wants is refused, for every n: a reason, nothing lost, and the next
   run is whole. */
static void a_run_without_memory_is_refused_and_the_next_one_works(void **state) {
  const fixture *f = *state;
  batches *b = reference_batches(&f->reference, f->model);
  int refused_count = 0;
  for (int n = 0;; n++) {
    pool *p = pool_create(4096, &pool_host_memory);
    vm *v = create_vm(f, p);
    failure why = {""};
    pool_statistics s;
    allocations_left = n;
    const int status = vm_run(v, &b->items[0], &why);
    allocations_left = -1;
    pool_statistics_get(p, &s);
    assert_int_equal(s.used_bytes, 0);
    if (status != 0) assert_non_null(strstr(why.text, "the pool has no"));
    if (status != 0) assert_int_equal(vm_run(v, &b->items[0], &why), 0);
    vm_destroy(v);
    pool_destroy(p);
    if (status == 0) break;
    refused_count++;
  }
  print_message("  refused at each of %d blocks\n", refused_count);
  assert_true(refused_count > 0);
  batches_destroy(b);
}

static void workers_pass_a_refusal_on(void **state) {
  const fixture *f = *state;
  batches *b = reference_batches(&f->reference, f->model);
  pool *p = pool_create(4096, &pool_host_memory);
  workers *w = NULL;
  failure why = {""};
  assert_int_equal(workers_create(f->model->program, engine_host(), p, 2, &w, &why), 0);
  allocations_left = 0;
  for (int64_t i = 0; i < b->count; i++) workers_submit(w, &b->items[i]);
  assert_int_equal(workers_wait(w, &why), -1);
  allocations_left = -1;
  assert_non_null(strstr(why.text, "the pool has no"));
  for (int64_t i = 0; i < b->count; i++) workers_submit(w, &b->items[i]);
  assert_int_equal(workers_wait(w, &why), 0);
  workers_destroy(w);
  pool_destroy(p);
  batches_destroy(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(token_numbers_equal_the_reference),
      cmocka_unit_test(embeddings_one_at_a_time_equal_the_reference),
      cmocka_unit_test(embeddings_in_batches_on_two_workers_equal_the_reference),
      cmocka_unit_test(a_run_gives_all_its_memory_back),
      cmocka_unit_test(a_run_holds_no_more_than_one_layers_registers),
      cmocka_unit_test(a_run_without_memory_is_refused_and_the_next_one_works),
      cmocka_unit_test(workers_pass_a_refusal_on),
  };
  model *m = data_open_model();
  if (m == NULL) return 77; /* CTest's and automake's status for a skip */
  model_close(m);
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
