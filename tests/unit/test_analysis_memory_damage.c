/* Pools whose figures are wild, as a damaged capture may say them: reading adds them up, and shows
   them, without an overflow (which the sanitizers see). */
#define _GNU_SOURCE
#include "trace_checks.h"

#include "memory_capture.h"

static const uint64_t wild[] = {0,
                                1,
                                UINT64_MAX,
                                UINT64_MAX >> 1,
                                UINT64_C(1) << 63,
                                PROF_I_USED_ZERO - 5,
                                (PROF_I_USED_ZERO << 1) - 1};
enum { WILD_COUNT = sizeof wild / sizeof *wild };

static uint64_t at(uint64_t which) { return wild[which % WILD_COUNT]; }

static void add_pool(capture *c, prof_i_head *meta, uint64_t number, uint64_t source,
                     uint64_t which) {
  uint64_t *const words = (uint64_t *)((unsigned char *)meta + meta->cursor);
  prof_i_pool_state *const pool =
      memory_pool(c, meta, (uint32_t)number, (uint32_t)source, 1, "wild");
  prof_i_head *const chunk = capture_chunk(c, PROF_I_UNIT_BYTES, number);
  words[6] = words[7] = at(which + number); /* used and allocated before */
  memory_event(chunk, pool, memory_at(100),
               source == PROF_MEMORY_POOL ? PROF_I_VERB_RESERVE : PROF_I_VERB_SAMPLE, 0, at(which),
               at(which));
  memory_event(chunk, pool, memory_at(200),
               source == PROF_MEMORY_POOL ? PROF_I_VERB_OOM : PROF_I_VERB_SAMPLE, 0, 0,
               at(which + 1));
  pool->used_peaks[0].peak = pool->allocated_peaks[0].peak = at(which);
  pool->used_peaks[0].peak_ticks = pool->allocated_peaks[0].peak_ticks = at(which + 2);
  pool->collection_count = pool->collection_ns = pool->refused_count = pool->unchecked_count =
      at(which);
}

static void read_all(const prof_trace *trace, uint64_t source) {
  prof_memory *memory;
  char *text = NULL, *picture = NULL;
  prof_memory_info info = {.size = sizeof info};
  assert_int_equal(prof_memory_read(trace, &memory), PROF_OK);
  assert_int_equal(prof_memory_device_get(memory, (prof_device){PROF_DEVICE_CUDA, 0},
                                          (prof_memory_source)source, &info),
                   PROF_OK);
  assert_int_equal(prof_memory_text(memory, NULL, &text), PROF_OK);
  assert_int_equal(prof_memory_svg(memory, 0, &picture), PROF_OK);
  assert_non_null(strstr(text, "its 2 pools together"));
  prof_free(text);
  prof_free(picture);
  prof_memory_destroy(memory);
}

static void wild_figures_are_added_up_and_shown(void **state) {
  (void)state;
  for (uint64_t which = 0; which < WILD_COUNT; which++)
    for (uint64_t source = PROF_MEMORY_POOL; source <= PROF_MEMORY_QUERY; source++) {
      capture c;
      capture_begin(&c, 192 << 10);
      prof_i_head *const meta = capture_meta(&c);
      memory_sites(&c, meta);
      for (uint64_t number = 1; number <= 2; number++) add_pool(&c, meta, number, source, which);
      capture_plain(capture_chunk(&c, PROF_I_UNIT_BYTES, 3), memory_at(900), 100 * MEMORY_US, 3);
      prof_trace *const trace = open_capture(&c);
      read_all(trace, source);
      prof_trace_destroy(trace);
      capture_end(&c);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(wild_figures_are_added_up_and_shown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
