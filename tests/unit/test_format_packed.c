/* Packing and unpacking parts of captures: the identity for any records, and refusals of what is
   damaged. Without zstd, which libprof.a does not open: tests/run has it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <prof/profiler.h>
#include <prof/status.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/packed.h"
#include "format/packed_clock.h"
#include "format/packed_columns.h"
#include "format/packed_walk.h"

enum {
  PART_BYTES = PROF_I_PACKED_PLAIN_MAX,
  PART_OFFSET = PROF_I_FIRST_UNIT_OFFSET + 5 * PROF_I_UNIT_BYTES,
  SLOTS_MAX = (PART_BYTES - PROF_I_HEAD_BYTES) / 16
};

static _Alignas(64) unsigned char plain[PART_BYTES], back[PART_BYTES];
static prof_i_packer *packer;
static prof_i_unpacker *unpacker;
static uint64_t seed;

static uint64_t random_bits(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed * 0x2545f4914f6cdd1dull;
}
static uint64_t random_below(uint64_t most) { return random_bits() % most; }

/* ---- chunks ---- */

/* At this place of `plain`. */
static prof_i_head *make_chunk(uint64_t at, uint64_t bytes, uint64_t generation) {
  prof_i_head *const head = (prof_i_head *)(void *)(plain + at);
  const uint64_t offset = PART_OFFSET + at;
  *head = (prof_i_head){.cursor = PROF_I_HEAD_BYTES,
                        .limit = bytes - 15,
                        .generation = generation,
                        .magic = PROF_I_EXTENT_MAGIC,
                        .kind = PROF_I_EXTENT_CHUNK,
                        .state = PROF_I_CHUNK_RETIRED,
                        .bytes = bytes,
                        .sequence = 7 << 1,
                        .owner = 3,
                        .check = prof_i_head_check_of(offset, bytes, PROF_I_EXTENT_CHUNK)};
  return head;
}

static uint64_t *claim(prof_i_head *chunk, uint64_t slots) {
  if (chunk->cursor + slots * 16 > chunk->bytes) return NULL;
  uint64_t *const words = (uint64_t *)(void *)((unsigned char *)chunk + chunk->cursor);
  chunk->cursor += slots * 16;
  return words;
}

static bool put_plain(prof_i_head *chunk, uint64_t ticks, uint64_t duration, uint64_t site) {
  uint64_t *const words = claim(chunk, 1);
  if (!words) return false;
  words[0] = ticks << 4 | chunk->generation;
  words[1] = duration << PROF_I_DURATION_SHIFT | site << 4;
  return true;
}

static bool put_long(prof_i_head *chunk, uint64_t ticks, uint64_t site, uint64_t slots,
                     uint64_t kind, uint64_t values) {
  uint64_t *const words = claim(chunk, slots);
  if (!words) return false;
  words[0] = ticks << 4 | chunk->generation;
  words[1] = random_below(1000) << PROF_I_DURATION_SHIFT | site << 4 | 1;
  words[2] = slots | kind << 16 | 5ull << 32;
  for (uint64_t i = 3; i < slots * 2; i++)
    words[i] = values == 0 ? i : values == 1 ? random_below(300) : random_bits();
  return true;
}

static bool put_text(prof_i_head *chunk, uint64_t ticks, uint64_t bytes) {
  const uint64_t word2 = bytes | 1 << PROF_I_TEXT_SCHEMA_SHIFT | PROF_I_KIND_TEXT << 16;
  uint64_t *const words = claim(chunk, prof_i_record_slots(word2));
  if (!words) return false;
  words[0] = ticks << 4 | chunk->generation;
  words[1] = 77ull << PROF_I_DURATION_SHIFT | 9 << 4 | 1;
  words[2] = word2;
  for (uint64_t i = 3; i < prof_i_record_slots(word2) * 2; i++) words[i] = 0x6161616161616161ull;
  return true;
}

static bool put_memory(prof_i_head *chunk, uint64_t ticks, bool is_free, bool has_more,
                       uint64_t waste, uint64_t bytes, uint64_t address, uint64_t counter) {
  uint64_t *const words = claim(chunk, has_more ? 3 : 2);
  if (!words) return false;
  words[0] = ticks << 4 | chunk->generation;
  words[1] = (has_more ? PROF_I_ALLOC_MORE_TYPE : PROF_I_ALLOC_TYPE) |
             (uint64_t)is_free << PROF_I_ALLOC_VERB_SHIFT | waste << PROF_I_ALLOC_WASTE_SHIFT |
             random_below(3) << PROF_I_ALLOC_POOL_SHIFT | bytes << PROF_I_ALLOC_BYTES_SHIFT;
  words[2] = address;
  words[3] = counter;
  if (has_more) words[4] = random_bits();
  if (has_more) words[5] = random_below(2) ? UINT64_MAX : 4;
  return true;
}

/* ---- the identity ---- */

static uint64_t pack_part(uint64_t bytes, const prof_i_packed_head **head_out) {
  const prof_i_packed_part part = {plain, PART_OFFSET, bytes, 1 << 24, 2};
  uint64_t packed;
  prof_i_pack_columns(packer, &part);
  *head_out = prof_i_pack_extent(packer, &packed);
  return packed;
}

/* What is behind the cursor of a chunk comes back as zeros. */
static void assert_identity(uint64_t bytes) {
  const prof_i_packed_head *head;
  const uint64_t packed = pack_part(bytes, &head);
  assert_int_equal(prof_i_packed_check(head, packed), packed);
  assert_in_range(packed, 1, prof_i_packed_bytes_max(bytes));
  memset(back, 0, sizeof back);
  assert_int_equal(prof_i_unpack(unpacker, NULL, head, head + 1, back), PROF_I_UNPACKED);
  for (uint64_t at = 0, slots; at < bytes;) {
    const uint64_t chunk = prof_i_packed_chunk(plain + at, PART_OFFSET + at, bytes - at, &slots);
    const uint64_t whole = chunk ? chunk : PROF_I_UNIT_BYTES;
    const uint64_t used = chunk ? PROF_I_HEAD_BYTES + slots * 16 : whole;
    assert_memory_equal(back + at, plain + at, used);
    for (uint64_t i = at + used; i < at + whole; i++) assert_int_equal(back[i], 0);
    at += whole;
  }
}

static void a_chunk_without_records_comes_back(void **state) {
  (void)state;
  memset(plain, 0, sizeof plain);
  make_chunk(0, PROF_I_UNIT_BYTES, 1);
  assert_identity(PROF_I_UNIT_BYTES);
}

static void a_chunk_with_one_record_comes_back(void **state) {
  (void)state;
  memset(plain, 0, sizeof plain);
  put_plain(make_chunk(0, PROF_I_UNIT_BYTES, 15), 12345, 678, 9);
  assert_identity(PROF_I_UNIT_BYTES);
}

static void a_full_chunk_of_the_largest_size_comes_back(void **state) {
  (void)state;
  memset(plain, 0, sizeof plain);
  prof_i_head *const chunk = make_chunk(0, PART_BYTES, 3);
  uint64_t count = 0;
  for (uint64_t ticks = 1000; put_plain(chunk, ticks, 10, count % 5); ticks += 20) count++;
  assert_int_equal(count, SLOTS_MAX);
  assert_identity(PART_BYTES);
}

static void a_full_chunk_of_times_at_no_step_comes_back(void **state) {
  (void)state;
  memset(plain, 0, sizeof plain);
  prof_i_head *const chunk = make_chunk(0, PART_BYTES, 3);
  seed = 4;
  for (uint64_t step = 1000; put_plain(chunk, step * 50 + random_below(50), random_below(90), 1);)
    step += chunk->cursor < 20000 ? 2 : random_bits() >> 40;
  assert_identity(PART_BYTES);
}

/* The clock has steps of 50 ticks, which the first scopes show. Later times are off by any part of
   a step. */
static void residuals_of_all_sizes_come_back(void **state) {
  (void)state;
  prof_i_step_finder finder;
  memset(plain, 0, sizeof plain);
  prof_i_head *const chunk = make_chunk(0, PART_BYTES, 3);
  seed = 6;
  for (uint64_t step = 1000, off = 0, later = 0; put_plain(chunk, step * 50 + off, 150 + later, 1);
       step += 5 + random_below(3)) {
    const bool is_off = chunk->cursor > 40000 && random_below(8) == 0;
    off = is_off ? random_below(50) : 0;
    later = is_off ? random_below(50) : 0;
  }
  const uint64_t *const words = (const uint64_t *)(const void *)(plain + PROF_I_HEAD_BYTES);
  prof_i_steps_find(&finder, words, SLOTS_MAX, 3);
  assert_false(finder.is_by_tick);
  assert_identity(PART_BYTES);
}

static void one_scope_around_all_others_comes_back(void **state) {
  (void)state;
  memset(plain, 0, sizeof plain);
  prof_i_head *const chunk = make_chunk(0, PART_BYTES, 3);
  for (uint64_t i = 1; i < SLOTS_MAX; i++) put_plain(chunk, 1000 + 20 * i, 10, 1);
  put_plain(chunk, 500, 20 * SLOTS_MAX + 1000, 2);
  assert_identity(PART_BYTES);
}

static void the_largest_values_come_back(void **state) {
  (void)state;
  const uint64_t ticks_max = UINT64_MAX >> 4, duration_max = (UINT64_C(1) << 40) - 1;
  memset(plain, 0, sizeof plain);
  prof_i_head *const chunk = make_chunk(0, PROF_I_UNIT_BYTES, 15);
  put_plain(chunk, ticks_max, duration_max, PROF_I_SITE_COUNT_MAX);
  put_plain(chunk, 0, 0, 0);
  put_plain(chunk, ticks_max / 2, duration_max, PROF_I_SITE_COUNT_MAX);
  put_plain(chunk, ticks_max / 2 + 1, 0, 1);
  put_long(chunk, ticks_max, PROF_I_SITE_COUNT_MAX, 500, 0xff, 2);
  put_memory(chunk, ticks_max, false, true, 31, (UINT64_C(1) << 44) - 1, UINT64_MAX, UINT64_MAX);
  put_memory(chunk, 0, true, true, 31, (UINT64_C(1) << 44) - 1, UINT64_MAX, 0);
  assert_identity(PROF_I_UNIT_BYTES);
}

static void times_that_go_back_come_back(void **state) {
  (void)state;
  memset(plain, 0, sizeof plain);
  prof_i_head *const chunk = make_chunk(0, 4 * PROF_I_UNIT_BYTES, 2);
  for (uint64_t ticks = 1 << 30; put_plain(chunk, ticks, 7, 1); ticks -= 1000) {
  }
  assert_identity(4 * PROF_I_UNIT_BYTES);
}

/* Records as a program writes them: some nest, times have steps, arguments repeat. */
static bool put_usual_record(prof_i_head *chunk, uint64_t *step, uint64_t *counter) {
  static const uint64_t addresses[] = {0x7f0010, 0x7f0080, 0x7f0100, 0x7f0180};
  const uint64_t start = *step * 49 / 2 + random_below(8) / 7;
  const uint64_t length = 1 + random_below(9), end = (*step + length) * 49 / 2;
  *step += length + random_below(3);
  switch (random_below(8)) {
    case 0:
      return put_long(chunk, start, random_below(4), 2 + random_below(6), 1, random_below(3));
    case 1:
      return put_text(chunk, start, random_below(256));
    case 2:
      *counter += (UINT64_C(1) << 44) + 64;
      return put_memory(chunk, start, false, random_below(2), 8, 64, addresses[random_below(4)],
                        *counter);
    case 3:
      *counter += (UINT64_C(1) << 44) - 64;
      return put_memory(chunk, start, true, random_below(2), random_below(2) * 8, 64,
                        addresses[random_below(4)], *counter);
    default:
      return put_plain(chunk, start, end - start, random_below(300));
  }
}

/* Anything that may be in a file: also slots without a record. */
static bool put_odd_record(prof_i_head *chunk, uint64_t *step) {
  uint64_t *words;
  const uint64_t ticks = random_bits() >> (4 + random_below(50));
  switch (random_below(6)) {
    case 0:
      return put_long(chunk, ticks, random_below(PROF_I_SITE_COUNT_MAX), 2 + random_below(40),
                      random_below(64), random_below(3));
    case 1:
      return put_memory(chunk, ticks, random_below(2), random_below(2), random_below(32),
                        random_bits() >> 30, random_bits() >> random_below(60), random_bits());
    case 2:
    case 3:
      words = claim(chunk, 1);
      if (!words) return false;
      words[0] = random_bits();
      words[1] = random_bits() >> random_below(64);
      return true;
    default:
      return put_plain(chunk, *step += random_below(1000), random_bits() >> random_below(64) >> 24,
                       random_below(PROF_I_SITE_COUNT_MAX));
  }
}

static void fill_chunk(prof_i_head *chunk, uint64_t which) {
  uint64_t step = random_below(1 << 20), counter = UINT64_C(1) << 43;
  const uint64_t most = which % 3 ? UINT64_MAX : random_below(chunk->bytes / 16);
  for (uint64_t i = 0; i < most; i++)
    if (which % 2 ? !put_odd_record(chunk, &step) : !put_usual_record(chunk, &step, &counter))
      return;
}

/* Chunks of all sizes, with units between that are no chunks. */
static uint64_t make_part(uint64_t which) {
  static const uint64_t units[] = {1, 4, 16};
  memset(plain, 0, sizeof plain);
  uint64_t at = 0;
  while (at + 17 * PROF_I_UNIT_BYTES <= PART_BYTES) {
    const uint64_t bytes = units[random_below(3)] * PROF_I_UNIT_BYTES;
    fill_chunk(make_chunk(at, bytes, 1 + random_below(15)), which);
    at += bytes;
    if (random_below(3)) continue;
    for (uint64_t i = 0; i < PROF_I_UNIT_BYTES; i += 1 + random_below(100))
      plain[at + i] = (unsigned char)random_bits();
    at += PROF_I_UNIT_BYTES;
  }
  return at;
}

static void any_records_come_back(void **state) {
  (void)state;
  for (uint64_t i = 0; i < 60; i++) {
    seed = 88172645463325252ull + i;
    assert_identity(make_part(i));
  }
}

static void times_of_a_slower_clock_are_few_steps(void **state) {
  (void)state;
  enum { COUNT = 20000 };
  prof_i_step_finder finder;
  memset(plain, 0, sizeof plain);
  prof_i_head *const chunk = make_chunk(0, PART_BYTES, 1);
  seed = 1;
  for (uint64_t i = 0, step = 40; i < COUNT; i++, step += 3 + random_below(20)) {
    const uint64_t start = step * 49 / 2;
    put_plain(chunk, start, (step + 1 + random_below(3)) * 49 / 2 - start, 1);
  }
  const uint64_t *const words = (const uint64_t *)(const void *)(plain + PROF_I_HEAD_BYTES);
  prof_i_steps_find(&finder, words, COUNT, 1);
  assert_false(finder.is_by_tick);
  uint64_t off = 0;
  for (uint64_t i = 0; i < COUNT; i++) {
    const uint64_t ticks = words[2 * i] >> 4;
    off += prof_i_step_ticks(&finder.steps, prof_i_step_of(&finder, ticks)) != ticks;
  }
  assert_in_range(off, 0, COUNT / 50);
}

/* ---- damage ---- */

static void a_changed_byte_is_found(void **state) {
  (void)state;
  const prof_i_packed_head *head;
  seed = 5;
  const uint64_t packed = pack_part(make_part(0), &head);
  unsigned char *const copy = malloc(packed);
  for (int i = 0; i < 300; i++) {
    memcpy(copy, head, packed);
    copy[i < 64 ? (uint64_t)i : random_below(packed)] ^= (unsigned char)(1 << random_below(8));
    assert_int_equal(prof_i_packed_check(copy, packed), 0);
  }
  free(copy);
}

static void what_is_cut_off_is_refused(void **state) {
  (void)state;
  const prof_i_packed_head *head;
  memset(plain, 0, sizeof plain);
  put_plain(make_chunk(0, PROF_I_UNIT_BYTES, 1), 1, 1, 1);
  const uint64_t packed = pack_part(PROF_I_UNIT_BYTES, &head);
  for (uint64_t there = 0; there < packed; there++)
    assert_int_equal(prof_i_packed_check(head, there), 0);
}

/* As docs/reference/file-format.md has it. */
static void make_check_right(uint64_t *extent) {
  prof_i_packed_head *const head = (prof_i_packed_head *)extent;
  uint64_t check = PROF_I_PACKED_MAGIC;
  for (uint64_t i = 0; i < head->bytes / 8; i++) {
    if (i == offsetof(prof_i_packed_head, check) / 8) continue;
    check = (check ^ extent[i]) * 0x9e3779b97f4a7c15ull;
    check ^= check >> 32;
  }
  head->check = check;
}

static void an_extent_that_is_larger_than_any_is_refused(void **state) {
  (void)state;
  enum { ALIGNMENT = PROF_I_PACKED_ALIGNMENT };
  const prof_i_packed_head *head;
  memset(plain, 0, sizeof plain);
  put_plain(make_chunk(0, PROF_I_UNIT_BYTES, 1), 1, 1, 1);
  const uint64_t packed = pack_part(PROF_I_UNIT_BYTES, &head);
  const uint64_t most = PROF_I_UNIT_BYTES * 5 / ALIGNMENT * ALIGNMENT;
  uint64_t *const copy = calloc(1, most);
  memcpy(copy, head, packed);
  ((prof_i_packed_head *)copy)->bytes = packed + ALIGNMENT;
  make_check_right(copy);
  assert_int_equal(prof_i_packed_check(copy, most), packed + ALIGNMENT);
  ((prof_i_packed_head *)copy)->bytes = most;
  make_check_right(copy);
  assert_int_equal(prof_i_packed_check(copy, most), 0);
  free(copy);
}

/* Else 13 bytes would cost the time of a whole column. */
static void a_column_that_comes_twice_is_refused(void **state) {
  (void)state;
  prof_i_column_head column;
  const prof_i_packed_head *head;
  memset(plain, 0, sizeof plain);
  put_plain(make_chunk(0, PROF_I_UNIT_BYTES, 1), 1, 1, 1);
  const uint64_t packed = pack_part(PROF_I_UNIT_BYTES, &head);
  const unsigned char *const columns = (const unsigned char *)(head + 1);
  memcpy(&column, columns, sizeof column);
  const uint64_t first = sizeof column + column.stored;
  unsigned char *const copy = malloc(packed + first);
  memcpy(copy, head, sizeof *head + first);
  memcpy(copy + sizeof *head + first, columns, packed - sizeof *head);
  prof_i_packed_head *const twice = (prof_i_packed_head *)(void *)copy;
  twice->bytes += first;
  twice->column_count++;
  memset(back, 0, sizeof back);
  assert_int_equal(prof_i_unpack(unpacker, NULL, twice, twice + 1, back), PROF_I_UNPACK_DAMAGED);
  free(copy);
}

/* The check is right, and the columns are not: nothing outside of the memory is touched. */
static void columns_that_do_not_fit_are_refused(void **state) {
  (void)state;
  const prof_i_packed_head *head;
  seed = 9;
  const uint64_t packed = pack_part(make_part(0), &head);
  uint64_t *const copy = malloc(packed);
  unsigned char *const bytes = (unsigned char *)copy;
  prof_i_packed_head *const changed = (prof_i_packed_head *)copy;
  int refused = 0;
  for (int i = 0; i < 300; i++) {
    memcpy(copy, head, packed);
    for (int k = 0; k < 3; k++)
      bytes[sizeof *head + random_below(packed - sizeof *head)] = (unsigned char)random_bits();
    memset(back, 0, sizeof back);
    refused += prof_i_unpack(unpacker, NULL, changed, changed + 1, back) == PROF_I_UNPACK_DAMAGED;
  }
  assert_true(refused > 0);
  memcpy(copy, head, packed);
  changed->column_count--;
  assert_int_equal(prof_i_unpack(unpacker, NULL, changed, changed + 1, back),
                   PROF_I_UNPACK_DAMAGED);
  free(copy);
}

/* Shortens a column of the extent by one byte. Returns the offset of the next column. */
static size_t shorten_column(unsigned char *extent, size_t at, uint64_t packed) {
  prof_i_column_head column;
  memcpy(&column, extent + at, sizeof column);
  const size_t end = at + sizeof column + column.stored;
  column.count--;
  if (column.method == PROF_I_COLUMN_STORED) {
    column.stored--;
    memmove(extent + end - 1, extent + end, packed - end);
  }
  memcpy(extent + at, &column, sizeof column);
  return end;
}

static void a_column_that_ends_early_is_refused(void **state) {
  (void)state;
  const prof_i_packed_head *head;
  seed = 11;
  const uint64_t packed = pack_part(make_part(0), &head);
  uint64_t *const copy = malloc(packed);
  size_t at = sizeof *head;
  for (uint32_t i = 0; i < head->column_count; i++) {
    memcpy(copy, head, packed);
    at = shorten_column((unsigned char *)copy, at, packed);
    memset(back, 0, sizeof back);
    assert_int_equal(prof_i_unpack(unpacker, NULL, (const void *)copy,
                                   (const prof_i_packed_head *)(const void *)copy + 1, back),
                     PROF_I_UNPACK_DAMAGED);
  }
  free(copy);
}

/* Of the pages wholly in these bytes, how many have memory. */
static size_t count_resident(unsigned char *bytes, size_t count) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE),
               before = (page - (uintptr_t)bytes % page) % page, pages = (count - before) / page;
  unsigned char *const is_resident = malloc(pages);
  size_t resident = 0;
  assert_int_equal(mincore(bytes + before, pages * page, is_resident), 0);
  for (size_t i = 0; i < pages; i++) resident += is_resident[i] & 1;
  free(is_resident);
  return resident * page;
}

/* malloc() gives the same memory again from the second time on. */
static void unused_columns_take_no_memory(void **state) {
  (void)state;
  const size_t all = prof_i_columns_room();
  for (int i = 0; i < 5; i++) {
    prof_i_columns columns;
    assert_true(prof_i_columns_init(&columns));
    assert_in_range(count_resident(columns.memory, all), 0, all / 4);
    prof_i_columns_fini(&columns);
  }
}

static void a_column_that_was_read_has_zeros_behind_it(void **state) {
  (void)state;
  enum { COUNT = 1000 };
  static const int families[] = {PROF_I_FAMILY_LEAF_GAP, PROF_I_FAMILY_RESIDUAL};
  unsigned char extent[sizeof(prof_i_column_head) + 1] = {0};
  prof_i_column_head head = {.method = PROF_I_COLUMN_CONSTANT, .count = COUNT, .stored = 1};
  prof_i_columns columns;
  assert_true(prof_i_columns_init(&columns));
  extent[sizeof head] = 7;
  for (int turn = 0; turn < 2; turn++) { /* the second one is shorter than what it replaces */
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
      const int at = families[i] * PROF_I_FAMILY_COLUMNS;
      head.column = (uint8_t)at;
      memcpy(extent, &head, sizeof head);
      assert_int_equal(prof_i_columns_read(&columns, NULL, extent, sizeof extent, 1),
                       PROF_I_UNPACKED);
      for (int family = 0; family < PROF_I_FAMILY_COUNT; family++) {
        const prof_i_column *const column = &columns.columns[family * PROF_I_FAMILY_COLUMNS];
        for (int byte = 0; byte < PROF_I_COLUMN_PADDING; byte++)
          assert_int_equal(column->end[byte], 0);
      }
    }
    head.count = COUNT / 2;
  }
  prof_i_columns_fini(&columns);
}

static void without_zstd_the_error_says_what_to_install(void **state) {
  (void)state;
  prof_i_zstd *zstd = NULL;
  assert_int_equal(prof_i_zstd_create("the capture is packed", &zstd), PROF_E_UNSUPPORTED);
  assert_non_null(strstr(prof_last_error(), "the capture is packed"));
  assert_non_null(strstr(prof_last_error(), "libzstd1"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_chunk_without_records_comes_back),
      cmocka_unit_test(a_chunk_with_one_record_comes_back),
      cmocka_unit_test(a_full_chunk_of_the_largest_size_comes_back),
      cmocka_unit_test(a_full_chunk_of_times_at_no_step_comes_back),
      cmocka_unit_test(residuals_of_all_sizes_come_back),
      cmocka_unit_test(one_scope_around_all_others_comes_back),
      cmocka_unit_test(the_largest_values_come_back),
      cmocka_unit_test(times_that_go_back_come_back),
      cmocka_unit_test(any_records_come_back),
      cmocka_unit_test(times_of_a_slower_clock_are_few_steps),
      cmocka_unit_test(a_changed_byte_is_found),
      cmocka_unit_test(what_is_cut_off_is_refused),
      cmocka_unit_test(an_extent_that_is_larger_than_any_is_refused),
      cmocka_unit_test(a_column_that_comes_twice_is_refused),
      cmocka_unit_test(columns_that_do_not_fit_are_refused),
      cmocka_unit_test(a_column_that_ends_early_is_refused),
      cmocka_unit_test(unused_columns_take_no_memory),
      cmocka_unit_test(a_column_that_was_read_has_zeros_behind_it),
      cmocka_unit_test(without_zstd_the_error_says_what_to_install),
  };
  packer = prof_i_packer_create(NULL);
  unpacker = prof_i_unpacker_create();
  if (!packer || !unpacker) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  prof_i_packer_destroy(packer);
  prof_i_unpacker_destroy(unpacker);
  return failed;
}
