/* What every engine on a device must do, whichever vendor's. It has the same embeddings, each
   operator on a queue in the trace, two lanes, memory in the account, refusals for want of memory.
   A test defines DEVICE_NAME and DEVICE_TYPE before it includes this, after cmocka.h, and lists
   DEVICE_TESTS among its own.

   SPDX-License-Identifier: MIT */
#ifndef TESTS_MINILM_DEVICE_CHECKS_H
#define TESTS_MINILM_DEVICE_CHECKS_H

#include "../device/alone.h"
#include "hang_guard.h"
#include "placement.h"
#include "reference.h"
#include "workers.h"

#define BOUND 1e-4 /* as the host's: what is promised is 1e-3 */

enum { WORKERS = 2, BLOCK_BYTES = 1 << 20 };

typedef struct fixture {
  model *model;
  reference reference;
  batches *batches;
  engine *engine;
  pool *pool;
  placement *placement;
} fixture;

static fixture f;
static failure why;

static const prof_device device = {DEVICE_TYPE, 0};

/* ---- memory that can run out ---- */

static long blocks_left = -1; /* -1: no bound */
static const pool_source *whole;

static void *reserve(void *user, size_t bytes) {
  if (blocks_left == 0) return NULL;
  if (blocks_left > 0) blocks_left--;
  return whole->reserve(user, bytes);
}

static const pool_source *source_that_can_run_out(void) {
  static pool_source source;
  whole = f.engine->memory;
  source = *whole;
  source.reserve = reserve;
  return &source;
}

/* ---- the parts ---- */

static void open_model(void) {
  f.model = data_open_model();
  assert_non_null(f.model);
  f.reference = reference_read();
  f.batches = reference_batches(&f.reference, f.model);
}

static void open_all(void) {
  open_model();
  if (engine_open(DEVICE_NAME, &f.engine, &why) != 0) fail_msg("%s", why.text);
  f.pool = pool_create(BLOCK_BYTES, source_that_can_run_out());
  assert_non_null(f.pool);
}

static void place(void) {
  if (placement_create(f.model->program, f.engine, f.pool, &f.placement, &why) != 0)
    fail_msg("%s", why.text);
}

static void close_all(void) {
  placement_destroy(f.placement);
  pool_destroy(f.pool);
  if (f.engine != NULL) f.engine->destroy(f.engine);
  batches_destroy(f.batches);
  reference_free(&f.reference);
  model_close(f.model);
}

static int run_workers(void) {
  workers *w = NULL;
  if (workers_create(placement_program(f.placement), f.engine, f.pool, WORKERS, &w, &why) != 0)
    fail_msg("%s", why.text);
  for (int64_t i = 0; i < f.batches->count; i++) workers_submit(w, &f.batches->items[i]);
  const int status = workers_wait(w, &why);
  workers_destroy(w);
  return status;
}

/* ---- tests ---- */

static void embeddings_equal_the_reference(void **state) {
  (void)state;
  open_all();
  place();
  assert_int_equal(run_workers(), 0);
  reference_compare(&f.reference, f.batches, DEVICE_NAME, BOUND);
  close_all();
}

typedef struct seen {
  uint64_t host_count, device_count, early_count, unlaunched_count, device_ns, stream_count;
  uint64_t streams[WORKERS + 2];
} seen;

static void count_stream(seen *s, uint64_t stream) {
  uint64_t i = 0;
  while (i < s->stream_count && s->streams[i] != stream) i++;
  if (i < s->stream_count) return;
  assert_in_range(s->stream_count, 0, sizeof s->streams / sizeof *s->streams - 1);
  s->streams[s->stream_count++] = stream;
}

static seen look(const prof_trace *trace, const char *category) {
  seen s = {.host_count = 0};
  prof_cursor *cursor = NULL;
  prof_event e;
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &e) == 1) {
    if (e.kind != PROF_EVENT_SCOPE || e.category_bytes != strlen(category) ||
        memcmp(e.category, category, e.category_bytes) != 0)
      continue;
    if (!(e.flags & PROF_EVENT_ON_DEVICE)) {
      s.host_count++;
      continue;
    }
    s.device_count++;
    if (e.start_ns < e.launch.start_ns) s.early_count++;
    if (e.launch.thread == UINT32_MAX) s.unlaunched_count++;
    s.device_ns += e.duration_ns;
    count_stream(&s, e.stream);
  }
  prof_cursor_destroy(cursor);
  return s;
}

/* Until the device's sides of so many scopes have come: the collector may have no processor, and
   what a stop does not wait for is lost. */
static void settle(uint64_t wanted) {
  uint64_t sides = 0;
  for (unsigned naps = 0; hang_nap(&naps);) {
    prof_trace *trace = NULL;
    prof_trace_device about = {.size = sizeof about};
    assert_int_equal(prof_get(&trace), PROF_OK);
    sides = prof_trace_device_get(trace, 0, &about) == PROF_OK ? about.scope_count : 0;
    prof_trace_destroy(trace);
    if (sides >= wanted) return;
  }
  fail_msg("of %llu device scopes %llu came", (unsigned long long)wanted,
           (unsigned long long)sides);
}

/* How many scopes of the host's were put on a stream. */
static uint64_t sides_wanted(void) {
  prof_trace *trace = NULL;
  assert_int_equal(prof_get(&trace), PROF_OK);
  const uint64_t wanted = look(trace, "operator").host_count + look(trace, "copy").host_count;
  prof_trace_destroy(trace);
  return wanted;
}

/* What is on the device's way when its result has been read is past, so nothing can be missing. */
static void each_operator_stands_on_its_queue(void **state) {
  (void)state;
  open_all();
  assert_int_equal(prof_start(2), PROF_OK);
  place();
  assert_int_equal(run_workers(), 0);
  settle(sides_wanted());
  assert_int_equal(prof_stop(), PROF_OK);
  prof_trace *trace = NULL;
  assert_int_equal(prof_get(&trace), PROF_OK);
  const seen operators = look(trace, "operator"), copies = look(trace, "copy");
  print_message("  %llu operators on %llu queues, %llu copies\n",
                (unsigned long long)operators.host_count,
                (unsigned long long)operators.stream_count, (unsigned long long)copies.host_count);
  assert_int_equal(operators.host_count,
                   (uint64_t)f.batches->count * (uint64_t)f.model->program->instruction_count);
  assert_int_equal(operators.device_count, operators.host_count);
  assert_int_equal(copies.device_count, copies.host_count);
  assert_int_equal(operators.early_count + copies.early_count, 0);
  assert_int_equal(operators.unlaunched_count + copies.unlaunched_count, 0);
  assert_true(operators.device_ns > 0);
  assert_in_range(operators.stream_count, 1, WORKERS);
  prof_trace_device about = {.size = sizeof about};
  assert_int_equal(prof_trace_device_get(trace, 0, &about), PROF_OK);
  assert_int_equal(about.scope_count, operators.device_count + copies.device_count);
  assert_int_equal(about.device.type, DEVICE_TYPE);
  prof_trace_destroy(trace);
  close_all();
}

/* Two lanes are two streams, whichever thread uses them. */
static void each_lane_is_a_stream_of_its_own(void **state) {
  (void)state;
  vm *vms[WORKERS] = {NULL};
  open_all();
  place();
  assert_int_equal(prof_start(1), PROF_OK);
  for (int i = 0; i < WORKERS; i++)
    assert_int_equal(vm_create(placement_program(f.placement), f.engine, f.pool, &vms[i], &why), 0);
  for (int i = 0; i < WORKERS; i++) assert_int_equal(vm_run(vms[i], &f.batches->items[i], &why), 0);
  settle(sides_wanted());
  assert_int_equal(prof_stop(), PROF_OK);
  prof_trace *trace = NULL;
  assert_int_equal(prof_get(&trace), PROF_OK);
  const seen operators = look(trace, "operator");
  assert_int_equal(operators.stream_count, WORKERS);
  assert_int_equal(operators.device_count,
                   (uint64_t)WORKERS * (uint64_t)f.model->program->instruction_count);
  prof_trace_destroy(trace);
  for (int i = 0; i < WORKERS; i++) vm_destroy(vms[i]);
  close_all();
}

static void the_devices_memory_stands_in_the_account(void **state) {
  (void)state;
  open_all();
  assert_int_equal(prof_start(1), PROF_OK);
  place();
  assert_int_equal(run_workers(), 0);
  pool_statistics own;
  pool_statistics_get(f.pool, &own);
  prof_memory_max most = {.size = sizeof most};
  assert_int_equal(prof_memory_max_get(device, PROF_MEMORY_POOL, &most), PROF_OK);
  assert_int_equal(most.max_used_bytes, own.used_peak_bytes);
  assert_int_equal(most.max_allocated_bytes, own.reserved_peak_bytes);
  assert_int_equal(prof_memory_max_get(PROF_HOST, PROF_MEMORY_ANY, &most), PROF_E_NOT_FOUND);
  assert_int_equal(prof_stop(), PROF_OK);
  close_all();
}

/* The n-th block that the pool wants is refused, for every n: a reason, nothing lost, and the next
   run is whole. */
static void a_run_without_memory_is_refused_and_the_next_one_works(void **state) {
  (void)state;
  open_all();
  blocks_left = 0;
  assert_int_equal(placement_create(f.model->program, f.engine, f.pool, &f.placement, &why), -1);
  assert_non_null(strstr(why.text, "bytes for the weights"));
  blocks_left = -1;
  place();
  vm *v = NULL;
  assert_int_equal(vm_create(placement_program(f.placement), f.engine, f.pool, &v, &why), 0);
  pool_statistics s;
  pool_statistics_get(f.pool, &s);
  const uint64_t weights_bytes = s.used_bytes;
  int refused_count = 0;
  for (;; refused_count++) {
    blocks_left = refused_count;
    pool_trim(f.pool);
    const int status = vm_run(v, &f.batches->items[0], &why);
    pool_statistics_get(f.pool, &s);
    assert_int_equal(s.used_bytes, weights_bytes);
    if (status == 0) break;
    assert_non_null(strstr(why.text, "the pool has no"));
  }
  print_message("  refused at each of %d blocks\n", refused_count);
  assert_true(refused_count > 0);
  blocks_left = -1;
  vm_destroy(v);
  assert_int_equal(run_workers(), 0);
  reference_compare(&f.reference, f.batches, "after refusals", BOUND);
  close_all();
}

#define DEVICE_TESTS(X)                       \
  X(embeddings_equal_the_reference)           \
  X(each_operator_stands_on_its_queue)        \
  X(each_lane_is_a_stream_of_its_own)         \
  X(the_devices_memory_stands_in_the_account) \
  X(a_run_without_memory_is_refused_and_the_next_one_works)

#endif
