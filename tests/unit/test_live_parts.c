/* Merged captures: which parts a file has, whatever happened to its bytes. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/merged.h"
#include "live/live.h"
#include "small_capture.h"
#include "trace_checks.h"

enum { PARTS = 3, PAGE = PROF_I_MERGED_PAGE_BYTES };

static capture small;
static unsigned char *merged;
static uint64_t merged_bytes, part_bytes;
static uint64_t head_at[PARTS];
static int file;
static char path[64];

static void put(uint64_t at, const void *bytes, size_t count) { memcpy(merged + at, bytes, count); }

static int make_merged(void **state) {
  (void)state;
  small_capture(&small);
  part_bytes = small.count - 100; /* the next head is behind zeros */
  merged_bytes = PAGE;
  merged = calloc(1, PAGE + PARTS * (PAGE + small.count + PAGE));
  const prof_i_merged_header header = prof_i_merged_header_make(PARTS, 0);
  put(0, &header, sizeof header);
  for (uint32_t i = 0; i < PARTS; i++) {
    const prof_i_part_head head = prof_i_part_head_make(merged_bytes, part_bytes, i);
    head_at[i] = merged_bytes;
    put(merged_bytes, &head, sizeof head);
    put(merged_bytes + PAGE, small.bytes, part_bytes);
    merged_bytes = prof_i_part_end(merged_bytes + PAGE, part_bytes);
  }
  file = memfd_create("merged", 0);
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  return file < 0 || !merged;
}

static int free_merged(void **state) {
  (void)state;
  capture_end(&small);
  free(merged);
  return close(file);
}

static void write_file(uint64_t count) {
  assert_int_equal(ftruncate(file, 0), 0);
  assert_int_equal(pwrite(file, merged, count, 0), count);
}

static uint64_t events_of(const char *name) {
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  if (prof_trace_open(name, &trace) != PROF_OK) return UINT64_MAX;
  prof_trace_info_get(trace, &info);
  prof_trace_destroy(trace);
  return info.event_count;
}

static uint64_t events_of_part(uint32_t number) {
  char name[80];
  snprintf(name, sizeof name, "%s#%u", path, number + 1);
  return events_of(name);
}

static uint64_t events_of_one(void) {
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_trace_open_bytes(small.bytes, part_bytes, &trace), PROF_OK);
  prof_trace_info_get(trace, &info);
  prof_trace_destroy(trace);
  return info.event_count;
}

static prof_i_parts find_parts(void) {
  prof_i_parts parts;
  assert_int_equal(prof_i_parts_open(path, &parts), PROF_OK);
  return parts;
}

static void each_part_is_opened_by_its_number(void **state) {
  (void)state;
  uint32_t count = 0;
  write_file(merged_bytes);
  assert_int_equal(prof_trace_part_count(path, &count), PROF_OK);
  assert_int_equal(count, PARTS);
  for (uint32_t i = 0; i < PARTS; i++) assert_int_equal(events_of_part(i), events_of_one());
  assert_true(events_of_one() > 0);
  prof_trace *trace = NULL;
  assert_int_equal(prof_trace_open(path, &trace), PROF_E_INVALID);
  assert_non_null(strstr(prof_last_error(), "#1 to "));
  assert_int_equal(events_of_part(PARTS), UINT64_MAX);
  assert_non_null(strstr(prof_last_error(), "3 captures of "));
}

static void a_plain_capture_has_no_parts(void **state) {
  (void)state;
  uint32_t count = 0;
  assert_int_equal(ftruncate(file, 0), 0);
  assert_int_equal(pwrite(file, small.bytes, small.count, 0), small.count);
  prof_i_parts parts = find_parts();
  assert_false(parts.is_merged);
  assert_int_equal(prof_trace_part_count(path, &count), PROF_OK);
  assert_int_equal(count, 1);
  assert_int_equal(events_of_part(0), UINT64_MAX);
  assert_non_null(strstr(prof_last_error(), "without parts"));
}

/* What is before the cut is whole. */
static void a_cut_loses_only_the_last_parts(void **state) {
  (void)state;
  const uint64_t wanted = events_of_one();
  for (uint64_t cut = PAGE; cut <= merged_bytes; cut += 1777) {
    write_file(cut);
    prof_i_parts parts = find_parts();
    uint32_t whole = 0, begun = 0;
    for (uint32_t i = 0; i < PARTS; i++) {
      whole += head_at[i] + PAGE + part_bytes <= cut;
      begun += head_at[i] + PAGE + PROF_I_HEADER_BYTES <= cut;
    }
    assert_int_equal(parts.count, begun);
    assert_int_equal(parts.lost_count, PARTS - begun);
    for (uint32_t i = 0; i < whole; i++) assert_int_equal(events_of_part(i), wanted);
    prof_i_parts_fini(&parts);
  }
}

/* One flipped byte of a head loses that part alone. */
static void a_damaged_head_loses_its_part(void **state) {
  (void)state;
  const uint64_t wanted = events_of_one();
  for (uint32_t damaged = 0; damaged < PARTS; damaged++)
    for (uint64_t byte = 0; byte < sizeof(prof_i_part_head); byte++) {
      unsigned char *const at = merged + head_at[damaged] + byte;
      *at ^= 0x41;
      write_file(merged_bytes);
      *at ^= 0x41;
      prof_i_parts parts = find_parts();
      assert_int_equal(parts.count, PARTS - 1);
      assert_int_equal(parts.lost_count, 1);
      for (uint32_t i = 0; i < PARTS; i++)
        assert_int_equal(events_of_part(i), i == damaged ? UINT64_MAX : wanted);
      prof_i_parts_fini(&parts);
    }
}

static void a_damaged_header_hides_no_part(void **state) {
  (void)state;
  const size_t members[] = {offsetof(prof_i_merged_header, part_count),
                            offsetof(prof_i_merged_header, flags),
                            offsetof(prof_i_merged_header, check)};
  for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
    merged[members[i]] ^= 0x41;
    write_file(merged_bytes);
    merged[members[i]] ^= 0x41;
    prof_i_parts parts = find_parts();
    assert_int_equal(parts.count, PARTS);
    assert_true(parts.lost_count > 0); /* how many there were is not known */
    prof_i_parts_fini(&parts);
  }
}

/* Heads with right checks, and wrong numbers: sizes past the end, numbers that fall. */
static void no_head_leads_out_of_the_file(void **state) {
  (void)state;
  const uint64_t sizes[] = {0, 1, PAGE, part_bytes, merged_bytes, UINT64_C(1) << 60, UINT64_MAX};
  const uint32_t numbers[] = {0, 1, 2, 4095, 4096, UINT32_MAX};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
      const prof_i_part_head hostile = prof_i_part_head_make(head_at[1], sizes[s], numbers[n]);
      prof_i_part_head right;
      memcpy(&right, merged + head_at[1], sizeof right);
      put(head_at[1], &hostile, sizeof hostile);
      write_file(merged_bytes);
      put(head_at[1], &right, sizeof right);
      prof_i_parts parts = find_parts();
      uint64_t end = 0;
      for (uint32_t i = 0; i < parts.count; i++) {
        assert_true(parts.items[i].offset >= end);
        assert_true(parts.items[i].bytes <= merged_bytes - parts.items[i].offset);
        assert_true(i == 0 || parts.items[i].number > parts.items[i - 1].number);
        end = parts.items[i].offset + parts.items[i].bytes;
        events_of_part(parts.items[i].number);
      }
      prof_i_parts_fini(&parts);
    }
}

/* An older reader and prof_trace_open_bytes() see a version that they do not know. */
static void bytes_of_several_captures_are_refused(void **state) {
  (void)state;
  prof_trace *trace = NULL;
  prof_i_header header;
  memcpy(&header, merged, sizeof header);
  assert_int_equal(header.version, 4);
  assert_int_equal(prof_trace_open_bytes(merged, merged_bytes, &trace), PROF_E_INVALID);
  assert_non_null(strstr(prof_last_error(), "prof merge"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_part_is_opened_by_its_number),
      cmocka_unit_test(a_plain_capture_has_no_parts),
      cmocka_unit_test(a_cut_loses_only_the_last_parts),
      cmocka_unit_test(a_damaged_head_loses_its_part),
      cmocka_unit_test(a_damaged_header_hides_no_part),
      cmocka_unit_test(no_head_leads_out_of_the_file),
      cmocka_unit_test(bytes_of_several_captures_are_refused),
  };
  return cmocka_run_group_tests(tests, make_merged, free_merged);
}
