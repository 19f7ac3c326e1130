/* The memory profiler against a naive model: random pieces and blocks from several threads, in
   scopes, with tags. The model keeps what is live in a plain list and copies it at each new peak.
   It knows the order because one mutex is held around each call and its own account. What the
   capture says must be equal to the byte: peaks, what was live then by scope, by tag and by
   address, fragmentation. */
#define _GNU_SOURCE
#include <prof/memory.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
  PIECES_MAX = 600,
  BLOCKS = 8,
  BLOCK_BYTES = 1 << 20,
  GRAIN = 64,
  TAGS = 3,
  SCOPES = 4,
  THREADS = 3,
  ROUNDS = 4000
};

typedef struct piece {
  uint64_t address, bytes, given;
  int scope, tag;
} piece;

typedef struct picture { /* what stood at a moment */
  piece live[PIECES_MAX];
  int count;
  int has_block[BLOCKS];
  int64_t used, allocated;
} picture;

static struct {
  pthread_mutex_t lock;
  prof_pool *pool;
  picture now, peak_used, peak_allocated;
  uint64_t allocs, frees, reserves, releases;
  uint32_t tags[TAGS + 1];
  uint64_t seed;
} model = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *const scope_names[SCOPES] = {"attention", "dense", "softmax", "norm"};
static const char *const tag_names[TAGS + 1] = {"", "weights", "activations", "workspace"};

static uint64_t draw(uint64_t *seed, uint64_t below) {
  *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
  return (*seed >> 33) % below;
}

static uint64_t block_address(int block) { return (uint64_t)(block + 1) << 32; }

/* ---- the model ---- */

static int is_taken(uint64_t address, uint64_t bytes) {
  for (int i = 0; i < model.now.count; i++) {
    const piece *const p = &model.now.live[i];
    if (p->address < address + bytes && address < p->address + p->given) return 1;
  }
  return 0;
}

static void look_for_peaks(void) {
  if (model.now.used > model.peak_used.used) model.peak_used = model.now;
  if (model.now.allocated > model.peak_allocated.allocated) model.peak_allocated = model.now;
}

static void reserve_or_release(uint64_t *seed) {
  const int block = (int)draw(seed, BLOCKS);
  const uint64_t address = block_address(block);
  if (!model.now.has_block[block]) {
    model.now.has_block[block] = 1;
    model.now.allocated += BLOCK_BYTES;
    model.reserves++;
    prof_memory_reserve(model.pool, (const void *)(uintptr_t)address, BLOCK_BYTES);
  } else if (!is_taken(address, BLOCK_BYTES)) {
    model.now.has_block[block] = 0;
    model.now.allocated -= BLOCK_BYTES;
    model.releases++;
    prof_memory_release(model.pool, (const void *)(uintptr_t)address, BLOCK_BYTES);
  }
}

static void alloc(uint64_t *seed, int scope) {
  const int block = (int)draw(seed, BLOCKS), tag = (int)draw(seed, TAGS + 1);
  const uint64_t bytes = 1 + (draw(seed, 3) ? draw(seed, 900) : draw(seed, 60000)),
                 given = (bytes + GRAIN - 1) / GRAIN * GRAIN;
  const uint64_t address =
      block_address(block) + draw(seed, (BLOCK_BYTES - given) / GRAIN + 1) * GRAIN;
  if (!model.now.has_block[block] || model.now.count == PIECES_MAX || is_taken(address, given))
    return;
  model.now.live[model.now.count++] = (piece){address, bytes, given, scope, tag};
  model.now.used += (int64_t)given;
  model.allocs++;
  if (tag || draw(seed, 8) == 0)
    prof_memory_alloc_for(model.pool, (const void *)(uintptr_t)address, bytes, given,
                          model.tags[tag], draw(seed, 2) ? PROF_NO_STREAM : 7);
  else
    prof_memory_alloc(model.pool, (const void *)(uintptr_t)address, bytes, given);
}

static void free_one(uint64_t *seed) {
  if (model.now.count == 0) return;
  const int which = (int)draw(seed, (uint64_t)model.now.count);
  const piece gone = model.now.live[which];
  model.now.live[which] = model.now.live[--model.now.count];
  model.now.used -= (int64_t)gone.given;
  model.frees++;
  prof_memory_free(model.pool, (const void *)(uintptr_t)gone.address, gone.given);
}

static void *work(void *of) {
  uint64_t seed = model.seed + (uint64_t)(uintptr_t)of * 77;
  static __thread prof_site sites[SCOPES];
  (void)sites;
  for (int i = 0; i < ROUNDS; i++) {
    const int scope = (int)draw(&seed, SCOPES), grows = (i / 500) % 2 == 0;
    const uint64_t begun = prof_scope_begin(1, scope_names[scope], "operator", NULL);
    pthread_mutex_lock(&model.lock);
    const uint64_t dice = draw(&seed, 100);
    if (dice < 4)
      reserve_or_release(&seed);
    else if (dice < (grows ? 70u : 35u))
      alloc(&seed, scope);
    else
      free_one(&seed);
    look_for_peaks();
    pthread_mutex_unlock(&model.lock);
    prof_scope_end(begun);
  }
  return NULL;
}

/* ---- what must be equal ---- */

static void naive_gaps(const picture *p, uint64_t *free_out, uint64_t *largest_out) {
  *free_out = *largest_out = 0;
  for (int block = 0; block < BLOCKS; block++) {
    uint64_t run = 0;
    for (uint64_t at = 0; p->has_block[block] && at <= BLOCK_BYTES; at += GRAIN) {
      int taken = at == BLOCK_BYTES;
      for (int i = 0; i < p->count && !taken; i++) {
        const uint64_t address = block_address(block) + at;
        taken = p->live[i].address <= address && address < p->live[i].address + p->live[i].given;
      }
      if (!taken) {
        run += GRAIN;
        *free_out += GRAIN;
        if (run > *largest_out) *largest_out = run;
      } else {
        run = 0;
      }
    }
  }
}

static void expect_state(const prof_memory_state *state, const picture *p) {
  uint64_t bytes = 0, requested = 0, free_bytes, largest;
  for (int i = 0; i < p->count; i++) bytes += p->live[i].given, requested += p->live[i].bytes;
  naive_gaps(p, &free_bytes, &largest);
  assert_int_equal(state->used_bytes, p->used);
  assert_int_equal(state->allocated_bytes, p->allocated);
  assert_int_equal(state->live_count, p->count);
  assert_int_equal(state->live_bytes, bytes);
  assert_int_equal(state->requested_bytes, requested);
  assert_int_equal(state->is_exact, 1);
  if (p->count == 0) return;
  assert_int_equal(state->has_ranges, 1);
  assert_int_equal(state->outside_bytes, 0);
  assert_int_equal(state->free_bytes, free_bytes);
  assert_int_equal(state->largest_free_bytes, largest);
}

static void expect_row(const prof_memory_rows *rows, const char *label, uint64_t count,
                       uint64_t bytes, uint64_t requested) {
  for (uint64_t i = 0; i < rows->row_count; i++) {
    if (strcmp(rows->rows[i].label, label) != 0) continue;
    assert_int_equal(rows->rows[i].count, count);
    assert_int_equal(rows->rows[i].bytes, bytes);
    assert_int_equal(rows->rows[i].requested_bytes, requested);
    return;
  }
  if (count) fail_msg("no row '%s', which has %llu bytes", label, (unsigned long long)bytes);
}

static void expect_live(const prof_memory *memory, prof_memory_moment moment, const picture *p) {
  prof_memory_rows *by_scope, *by_tag, *by_address;
  assert_int_equal(prof_memory_live(memory, 0, moment, 0, PROF_MEMORY_BY_SCOPE, &by_scope),
                   PROF_OK);
  assert_int_equal(prof_memory_live(memory, 0, moment, 0, PROF_MEMORY_BY_TAG, &by_tag), PROF_OK);
  assert_int_equal(prof_memory_live(memory, 0, moment, 0, PROF_MEMORY_BY_ADDRESS, &by_address),
                   PROF_OK);
  for (int which = 0; which < SCOPES; which++) {
    uint64_t count = 0, bytes = 0, requested = 0;
    for (int i = 0; i < p->count; i++)
      if (p->live[i].scope == which)
        count++, bytes += p->live[i].given, requested += p->live[i].bytes;
    expect_row(by_scope, scope_names[which], count, bytes, requested);
  }
  for (int which = 0; which <= TAGS; which++) {
    uint64_t count = 0, bytes = 0, requested = 0;
    for (int i = 0; i < p->count; i++)
      if (p->live[i].tag == which)
        count++, bytes += p->live[i].given, requested += p->live[i].bytes;
    expect_row(by_tag, tag_names[which], count, bytes, requested);
  }
  assert_int_equal(by_address->row_count, p->count);
  for (int i = 0; i < p->count; i++) {
    uint64_t at = 0;
    while (at < by_address->row_count && by_address->rows[at].address != p->live[i].address) at++;
    assert_true(at < by_address->row_count);
    assert_int_equal(by_address->rows[at].bytes, p->live[i].given);
    assert_string_equal(by_address->rows[at].label, scope_names[p->live[i].scope]);
    assert_string_equal(by_address->rows[at].tag, tag_names[p->live[i].tag]);
  }
  for (uint64_t i = 1; i < by_address->row_count; i++)
    assert_true(by_address->rows[i - 1].bytes >= by_address->rows[i].bytes);
  prof_free(by_scope);
  prof_free(by_tag);
  prof_free(by_address);
}

static void compare(int checked, uint64_t seed) {
  const prof_pool_options options = {
      .size = sizeof options, .name = "model", .checked = (uint32_t)checked};
  memset(&model.now, 0, sizeof model.now);
  memset(&model.peak_used, 0, sizeof model.peak_used);
  memset(&model.peak_allocated, 0, sizeof model.peak_allocated);
  model.allocs = model.frees = model.reserves = model.releases = 0;
  model.seed = seed;
  assert_int_equal(
      prof_start_with(&(prof_options){
          .size = sizeof(prof_options), .cap_bytes = 64 << 20, .ring_ns = 0, .level = 1}),
      PROF_OK);
  assert_int_equal(prof_clear(), PROF_OK);
  assert_int_equal(prof_pool_create(&options, &model.pool), PROF_OK);
  for (int i = 1; i <= TAGS; i++) model.tags[i] = prof_memory_tag(tag_names[i]);
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  prof_memory_max max = {.size = sizeof max};
  assert_int_equal(prof_memory_max_get(PROF_HOST, PROF_MEMORY_POOL, &max), PROF_OK);
  assert_int_equal(max.max_used_bytes, model.peak_used.used);
  assert_int_equal(max.max_allocated_bytes, model.peak_allocated.allocated);
  assert_int_equal(max.used_bytes, model.now.used);
  assert_int_equal(max.allocated_bytes, model.now.allocated);
  assert_int_equal(prof_stop(), PROF_OK);

  prof_trace *trace;
  prof_memory *memory;
  prof_memory_info info = {.size = sizeof info};
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_memory_read(trace, &memory), PROF_OK);
  assert_int_equal(prof_memory_pool_count(memory), 1);
  assert_int_equal(prof_memory_pool_get(memory, 0, &info), PROF_OK);
  assert_int_equal(info.alloc_count, model.allocs);
  assert_int_equal(info.free_count, model.frees);
  assert_int_equal(info.reserve_count, model.reserves);
  assert_int_equal(info.release_count, model.releases);
  assert_int_equal(info.missing_count, 0);
  for (int i = 0; i < PROF_MEMORY_WRONG_COUNT; i++) assert_int_equal(info.wrong_count[i], 0);
  expect_state(&info.peak_used, &model.peak_used);
  expect_state(&info.peak_allocated, &model.peak_allocated);
  expect_state(&info.end, &model.now);
  expect_live(memory, PROF_MEMORY_AT_PEAK_USED, &model.peak_used);
  expect_live(memory, PROF_MEMORY_AT_PEAK_ALLOCATED, &model.peak_allocated);
  expect_live(memory, PROF_MEMORY_AT_END, &model.now);
  prof_memory_info device = {.size = sizeof device};
  assert_int_equal(prof_memory_device_get(memory, PROF_HOST, PROF_MEMORY_ANY, &device), PROF_OK);
  assert_int_equal(device.peak_used.used_bytes, model.peak_used.used);
  prof_memory_destroy(memory);
  prof_trace_destroy(trace);
  prof_pool_destroy(model.pool);
}

static void a_pool_is_as_the_model_has_it(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 6; seed++) compare(0, seed);
}

static void so_is_a_checked_pool(void **state) {
  (void)state;
  for (uint64_t seed = 11; seed <= 14; seed++) compare(1, seed);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_pool_is_as_the_model_has_it),
                                     cmocka_unit_test(so_is_a_checked_pool)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
