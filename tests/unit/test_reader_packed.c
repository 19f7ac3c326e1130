/* Packed captures are read as the plain ones, also damaged, cut off, and beside plain chunks. The
   columns are not compressed here: libprof.a opens no zstd. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "format/packed.h"
#include "format/packed_walk.h"
#include "reader/internal.h"
#include "small_capture.h"
#include "trace_checks.h"

enum { ROOM = 4 << 20, CHUNKS = 3, SCOPES = 100 };

static _Alignas(64) unsigned char file[ROOM];
static uint64_t file_bytes;
static uint64_t part_offsets[64]; /* in the file */
static uint32_t part_count;

static void add_part(prof_i_packer *packer, const capture *c, uint64_t offset, uint64_t bytes) {
  const prof_i_packed_part part = {c->bytes + offset, offset, bytes, c->count, 2};
  uint64_t packed;
  prof_i_pack_columns(packer, &part);
  const void *const extent = prof_i_pack_extent(packer, &packed);
  assert_true(file_bytes + packed <= ROOM && part_count < 64);
  memcpy(file + file_bytes, extent, packed);
  part_offsets[part_count++] = file_bytes;
  file_bytes += packed;
}

static void begin_file(const capture *c) {
  memset(file, 0, sizeof file);
  memcpy(file, c->bytes, PROF_I_HEADER_BYTES);
  ((prof_i_header *)(void *)file)->version = PROF_I_PACKED_VERSION;
  file_bytes = PROF_I_HEADER_BYTES;
  part_count = 0;
}

/* Each extent is a part, up to this offset. */
static void pack_capture(const capture *c, uint64_t end) {
  prof_i_packer *const packer = prof_i_packer_create(NULL);
  assert_non_null(packer);
  begin_file(c);
  for (uint64_t at = PROF_I_FIRST_UNIT_OFFSET; at < end;) {
    const uint64_t bytes = ((const prof_i_head *)(const void *)(c->bytes + at))->bytes;
    add_part(packer, c, at, bytes);
    at += bytes;
  }
  prof_i_packer_destroy(packer);
}

static prof_trace *open_file(uint64_t bytes) {
  prof_trace *trace = NULL;
  if (prof_trace_open_bytes(file, bytes, &trace) != PROF_OK) fail_msg("%s", prof_last_error());
  return trace;
}

/* A meta extent, then chunks with SCOPES scopes each. */
static void chunks_capture(capture *c) {
  begin_with_sites(c, 1 << 20, CHUNKS);
  for (uint32_t n = 0; n < CHUNKS; n++) {
    prof_i_head *const chunk = capture_chunk(c, PROF_I_UNIT_BYTES, 1);
    for (uint32_t i = 0; i < SCOPES; i++)
      capture_plain(chunk, CAPTURE_START + 10000 * n + 50 * i, 30 + i % 3, n + 1);
  }
}

static void assert_same_text(prof_trace *one, prof_trace *other) {
  char *texts[2];
  assert_int_equal(prof_trace_json(one, NULL, &texts[0], NULL), PROF_OK);
  assert_int_equal(prof_trace_json(other, NULL, &texts[1], NULL), PROF_OK);
  assert_string_equal(texts[0], texts[1]);
  prof_free(texts[0]);
  prof_free(texts[1]);
  assert_int_equal(prof_trace_loss_text(one, &texts[0]), PROF_OK);
  assert_int_equal(prof_trace_loss_text(other, &texts[1]), PROF_OK);
  assert_string_equal(texts[0], texts[1]);
  prof_free(texts[0]);
  prof_free(texts[1]);
}

static void a_packed_capture_is_read_as_the_plain_one(void **state) {
  (void)state;
  capture c;
  small_capture(&c);
  pack_capture(&c, c.count);
  prof_trace *const plain = open_capture(&c), *const packed = open_file(file_bytes);
  const events all = read_events(packed);
  assert_int_equal(info_of(packed).bad_count, info_of(plain).bad_count);
  assert_int_equal(all.count, info_of(plain).event_count);
  assert_same_text(plain, packed);
  free(all.items);
  prof_trace_destroy(plain);
  prof_trace_destroy(packed);
  capture_end(&c);
}

static void a_capture_of_version_1_stays_one(void **state) {
  (void)state;
  capture c;
  uint64_t count;
  small_capture(&c);
  pack_capture(&c, c.count);
  prof_i_packer *const packer = prof_i_packer_create(NULL);
  const prof_i_packed_part part = {c.bytes + PROF_I_FIRST_UNIT_OFFSET, PROF_I_FIRST_UNIT_OFFSET,
                                   c.count - PROF_I_FIRST_UNIT_OFFSET, c.count, 1};
  prof_i_pack_columns(packer, &part);
  const void *const extent = prof_i_pack_extent(packer, &count);
  begin_file(&c);
  memcpy(file + file_bytes, extent, count);
  prof_trace *const trace = open_file(file_bytes + count);
  const prof_i_header *const header = prof_i_trace_bytes_at(trace, 0, &count);
  assert_int_equal(header->version, 1);
  prof_i_packer_destroy(packer);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void a_damaged_part_is_lost_alone_and_counted(void **state) {
  (void)state;
  capture c;
  chunks_capture(&c);
  for (uint32_t n = 1; n <= CHUNKS; n++) {
    pack_capture(&c, c.count);
    file[part_offsets[n] + 100] ^= 4;
    prof_trace *const trace = open_file(file_bytes);
    const uint64_t is_last = n == CHUNKS; /* then the capture is shorter, too */
    assert_int_equal(info_of(trace).event_count, (CHUNKS - 1) * SCOPES);
    assert_int_equal(info_of(trace).bad_count, 1 + is_last);
    prof_trace_destroy(trace);
  }
  capture_end(&c);
}

static void a_cut_file_loses_only_its_last_part(void **state) {
  (void)state;
  capture c;
  chunks_capture(&c);
  pack_capture(&c, c.count);
  for (uint64_t cut = PROF_I_HEADER_BYTES; cut < file_bytes; cut += 29) {
    uint64_t whole = 0;
    while (whole + 1 < part_count && part_offsets[whole + 1] <= cut) whole++;
    prof_trace *const trace = open_file(cut);
    assert_int_equal(info_of(trace).event_count, whole > 0 ? (whole - 1) * SCOPES : 0);
    assert_true(info_of(trace).bad_count > 0);
    prof_trace_destroy(trace);
  }
  capture_end(&c);
}

static void plain_and_packed_chunks_stand_in_one_file(void **state) {
  (void)state;
  capture c;
  chunks_capture(&c);
  const uint64_t plain_from = c.count - PROF_I_UNIT_BYTES;
  pack_capture(&c, plain_from);
  assert_true(file_bytes <= plain_from);
  memcpy(file + plain_from, c.bytes + plain_from, PROF_I_UNIT_BYTES);
  prof_trace *const plain = open_capture(&c), *const mixed = open_file(c.count);
  assert_int_equal(info_of(mixed).bad_count, 0);
  assert_int_equal(info_of(mixed).event_count, CHUNKS * SCOPES);
  assert_same_text(plain, mixed);
  prof_trace_destroy(plain);
  prof_trace_destroy(mixed);
  capture_end(&c);
}

static void a_part_far_behind_the_others_claims_no_memory(void **state) {
  (void)state;
  capture c;
  uint64_t bytes;
  chunks_capture(&c);
  pack_capture(&c, c.count);
  prof_i_packer *const packer = prof_i_packer_create(NULL);
  const prof_i_packed_part part = {c.bytes + PROF_I_FIRST_UNIT_OFFSET, UINT64_C(1) << 50,
                                   PROF_I_UNIT_BYTES, c.count, 2};
  prof_i_pack_columns(packer, &part);
  const void *const extent = prof_i_pack_extent(packer, &bytes);
  memcpy(file + file_bytes, extent, bytes);
  prof_trace *const trace = open_file(file_bytes + bytes);
  assert_int_equal(info_of(trace).event_count, CHUNKS * SCOPES);
  assert_int_equal(info_of(trace).bad_count, 1);
  prof_i_packer_destroy(packer);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* ---- a file that changes ---- */

/* Called instead of prof_i_packed_check(): see target_link_options() in tests/CMakeLists.txt. */
static bool heads_change;
uint64_t real_check(const void *at, uint64_t there) __asm__("__real_prof_i_packed_check");
uint64_t changing_check(const void *at, uint64_t there) __asm__("__wrap_prof_i_packed_check");
uint64_t changing_check(const void *at, uint64_t there) {
  const uint64_t bytes = real_check(at, there);
  if (bytes && heads_change) {
    prof_i_packed_head *const head = (void *)(file + ((const unsigned char *)at - file));
    head->bytes = head->plain_offset = head->plain_bytes = UINT64_MAX / 4;
    head->column_count = UINT32_MAX;
  }
  return bytes;
}

/* What was checked is what is used. */
static void a_head_that_changes_after_its_check_does_no_harm(void **state) {
  (void)state;
  capture c;
  chunks_capture(&c);
  pack_capture(&c, c.count);
  heads_change = true;
  prof_trace *const trace = open_file(file_bytes);
  heads_change = false;
  assert_int_equal(info_of(trace).event_count, CHUNKS * SCOPES);
  assert_int_equal(info_of(trace).bad_count, 0);
  assert_int_equal(
      ((const prof_i_packed_head *)(const void *)(file + part_offsets[1]))->column_count,
      UINT32_MAX);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* ---- what is missing, and what comes twice ---- */

static void remove_part(uint32_t n, bool is_cut) {
  const uint64_t end = n + 1 < part_count ? part_offsets[n + 1] : file_bytes;
  const uint64_t bytes = end - part_offsets[n];
  if (is_cut) {
    memmove(file + part_offsets[n], file + end, file_bytes - end);
    file_bytes -= bytes;
  } else {
    memset(file + part_offsets[n], 0, bytes);
  }
}

/* Also if the header does not have the size, as after a crash. */
static void a_part_that_is_missing_or_zeroed_is_counted(void **state) {
  (void)state;
  capture c;
  chunks_capture(&c);
  for (uint32_t n = 1; n < CHUNKS; n++)
    for (int is_cut = 0; is_cut < 2; is_cut++) {
      pack_capture(&c, c.count);
      remove_part(n, is_cut);
      prof_trace *const trace = open_file(file_bytes);
      assert_int_equal(info_of(trace).event_count, (CHUNKS - 1) * SCOPES);
      assert_int_equal(info_of(trace).bad_count, 1);
      prof_trace_destroy(trace);
    }
  capture_header(&c)->made_bytes = 0;
  for (int is_cut = 0; is_cut < 2; is_cut++) {
    pack_capture(&c, c.count);
    remove_part(CHUNKS, is_cut);
    prof_trace *const trace = open_file(file_bytes);
    assert_int_equal(info_of(trace).bad_count, 1);
    prof_trace_destroy(trace);
  }
  capture_end(&c);
}

static void a_later_part_for_the_same_bytes_is_refused(void **state) {
  (void)state;
  capture c, empty;
  chunks_capture(&c);
  capture_begin(&empty, 1 << 20);
  empty.count = c.count;
  pack_capture(&c, c.count);
  prof_i_packer *const packer = prof_i_packer_create(NULL);
  add_part(packer, &empty, c.count - PROF_I_UNIT_BYTES, PROF_I_UNIT_BYTES);
  prof_trace *const trace = open_file(file_bytes);
  assert_int_equal(info_of(trace).event_count, CHUNKS * SCOPES);
  assert_int_equal(info_of(trace).bad_count, 1);
  prof_i_packer_destroy(packer);
  prof_trace_destroy(trace);
  capture_end(&empty);
  capture_end(&c);
}

/* ---- what a hostile file costs ---- */

/* Heads of extents of so many bytes, whose checks are wrong. */
static void add_wrong_heads(uint64_t count, uint64_t bytes) {
  for (uint64_t i = 0; i < count; i++, file_bytes += PROF_I_PACKED_HEAD_BYTES) {
    assert_true(file_bytes + PROF_I_PACKED_HEAD_BYTES <= ROOM);
    *(prof_i_packed_head *)(void *)(file + file_bytes) =
        (prof_i_packed_head){.magic = PROF_I_PACKED_MAGIC,
                             .bytes = bytes,
                             .plain_offset = PROF_I_FIRST_UNIT_OFFSET,
                             .plain_bytes = PROF_I_PACKED_PLAIN_MAX};
  }
}

static void append_parts(prof_i_packer *packer, const capture *c) {
  part_count = 0;
  for (uint64_t at = PROF_I_FIRST_UNIT_OFFSET; at < c->count;) {
    const uint64_t bytes = ((const prof_i_head *)(const void *)(c->bytes + at))->bytes;
    add_part(packer, c, at, bytes);
    at += bytes;
  }
}

/* The checks of all heads would read 500 MB. The reader gives up before the good extents. */
static void failed_checks_read_a_few_times_the_file_at_most(void **state) {
  (void)state;
  capture c;
  chunks_capture(&c);
  begin_file(&c);
  prof_i_packer *const packer = prof_i_packer_create(NULL);
  assert_non_null(packer);
  add_wrong_heads(4000, 2000 * PROF_I_PACKED_HEAD_BYTES);
  add_wrong_heads(4000, PROF_I_PACKED_HEAD_BYTES); /* for what is left */
  append_parts(packer, &c);
  prof_trace *trace = open_file(file_bytes);
  assert_int_equal(info_of(trace).event_count, 0);
  assert_true(info_of(trace).bad_count > 0);
  prof_trace_destroy(trace);
  begin_file(&c);
  add_wrong_heads(3, PROF_I_PACKED_HEAD_BYTES * 50);
  append_parts(packer, &c);
  trace = open_file(file_bytes);
  assert_int_equal(info_of(trace).event_count, CHUNKS * SCOPES);
  assert_int_equal(info_of(trace).bad_count, 1);
  prof_trace_destroy(trace);
  prof_i_packer_destroy(packer);
  capture_end(&c);
}

/* Units of zeros: about 100 bytes for each MiB. */
static void pack_zeros(uint64_t mib) {
  capture c;
  capture_begin(&c, (mib << 20) + PROF_I_FIRST_UNIT_OFFSET);
  c.count = (mib << 20) + PROF_I_FIRST_UNIT_OFFSET;
  begin_file(&c);
  prof_i_packer *const packer = prof_i_packer_create(NULL);
  assert_non_null(packer);
  for (uint64_t i = 0; i < mib; i++, part_count = 0)
    add_part(packer, &c, PROF_I_FIRST_UNIT_OFFSET + (i << 20), 1 << 20);
  prof_i_packer_destroy(packer);
  capture_end(&c);
}

/* Bytes that this process passed to write() and pwrite(); UINT64_MAX: unknown. */
static uint64_t bytes_written(void) {
  char line[128];
  unsigned long long count = UINT64_MAX;
  FILE *const io = fopen("/proc/self/io", "re");
  while (io && fgets(line, sizeof line, io))
    if (sscanf(line, "wchar: %llu", &count) == 1) break;
  if (io) fclose(io);
  return count;
}

static void zeros_of_a_large_capture_are_not_written(void **state) {
  (void)state;
  if (bytes_written() == UINT64_MAX) {
    print_message("skip: /proc/self/io cannot be read here\n");
    skip();
  }
  pack_zeros(80);
  assert_true(file_bytes < 1 << 20);
  const uint64_t before = bytes_written();
  prof_trace *const trace = open_file(file_bytes);
  assert_in_range(bytes_written() - before, 0, 1 << 20);
  assert_int_equal(info_of(trace).event_count, 0);
  assert_int_equal(info_of(trace).bad_count, 0);
  prof_trace_destroy(trace);
}

static void without_a_temporary_file_a_large_capture_is_refused_with_sizes(void **state) {
  (void)state;
  struct rlimit limit;
  prof_trace *trace = NULL;
  char size[32];
  pack_zeros(80);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const struct rlimit small = {1 << 20, limit.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  const int status = prof_trace_open_bytes(file, file_bytes, &trace);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
  assert_int_equal(status, PROF_E_NO_SPACE);
  assert_null(trace);
  snprintf(size, sizeof size, " %d bytes", (80 << 20) + PROF_I_FIRST_UNIT_OFFSET);
  assert_non_null(strstr(prof_last_error(), size));
  assert_non_null(strstr(prof_last_error(), "TMPDIR"));
  assert_non_null(strstr(prof_last_error(), "64 MiB"));
}

/* ---- memory that is refused ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define HAS_OTHER_ALLOCATOR 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_OTHER_ALLOCATOR 1
#endif
#endif

#ifdef HAS_OTHER_ALLOCATOR

static void what_has_no_memory_is_said(void **state) {
  (void)state;
  print_message("skip: this allocator cannot be made to fail here\n");
  skip();
}

#else

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);

/* Allocations of these sizes fail. */
static struct { size_t least, most; } failing;

static bool fails(size_t bytes) {
  return failing.most > 0 && bytes >= failing.least && bytes <= failing.most;
}

void *malloc(size_t bytes) { return fails(bytes) ? NULL : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) {
  return fails(count * bytes) ? NULL : __libc_calloc(count, bytes);
}

static void what_has_no_memory_is_said(void **state) {
  (void)state;
  capture c;
  prof_trace *trace = NULL;
  chunks_capture(&c);
  pack_capture(&c, c.count);
  failing.least = 16 << 20; /* the columns */
  failing.most = SIZE_MAX;
  const int status = prof_trace_open_bytes(file, file_bytes, &trace);
  failing.most = 0;
  assert_int_equal(status, PROF_E_NO_MEMORY);
  assert_non_null(strstr(prof_last_error(), "to unpack"));
  failing.least = failing.most = c.count; /* the plain capture: a file takes its place */
  trace = open_file(file_bytes);
  failing.most = 0;
  assert_int_equal(info_of(trace).event_count, CHUNKS * SCOPES);
  prof_trace_destroy(trace);
  capture_end(&c);
}

#endif

/* ---- the level ---- */

/* The capture of a process on another machine, which may still run. */
static void the_level_of_a_packed_file_is_not_switched(void **state) {
  (void)state;
  capture c;
  char path[] = "/tmp/prof-packed-XXXXXX";
  static unsigned char after[ROOM];
  chunks_capture(&c);
  prof_i_header *const header = capture_header(&c);
  header->pid = 1;
  header->level = 1;
  header->state = PROF_I_STATE_RECORDING;
  snprintf(header->boot_id, sizeof header->boot_id, "another machine");
  pack_capture(&c, c.count);
  const int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, file, file_bytes), file_bytes);
  const int status = prof_trace_set_level(path, 0, NULL);
  const ssize_t count = pread(fd, after, sizeof after, 0);
  close(fd);
  unlink(path);
  assert_int_equal(status, PROF_E_NOT_RUNNING);
  assert_non_null(strstr(prof_last_error(), "packed"));
  assert_int_equal(count, file_bytes);
  assert_memory_equal(after, file, file_bytes);
  capture_end(&c);
}

static void a_header_alone_is_an_empty_capture_that_is_cut_off(void **state) {
  (void)state;
  capture c;
  chunks_capture(&c);
  begin_file(&c);
  prof_trace *const trace = open_file(file_bytes);
  assert_int_equal(info_of(trace).event_count, 0);
  assert_true(info_of(trace).bad_count > 0);
  prof_trace_destroy(trace);
  capture_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_packed_capture_is_read_as_the_plain_one),
      cmocka_unit_test(a_capture_of_version_1_stays_one),
      cmocka_unit_test(a_damaged_part_is_lost_alone_and_counted),
      cmocka_unit_test(a_cut_file_loses_only_its_last_part),
      cmocka_unit_test(plain_and_packed_chunks_stand_in_one_file),
      cmocka_unit_test(a_part_far_behind_the_others_claims_no_memory),
      cmocka_unit_test(a_head_that_changes_after_its_check_does_no_harm),
      cmocka_unit_test(a_part_that_is_missing_or_zeroed_is_counted),
      cmocka_unit_test(a_later_part_for_the_same_bytes_is_refused),
      cmocka_unit_test(failed_checks_read_a_few_times_the_file_at_most),
      cmocka_unit_test(zeros_of_a_large_capture_are_not_written),
      cmocka_unit_test(without_a_temporary_file_a_large_capture_is_refused_with_sizes),
      cmocka_unit_test(what_has_no_memory_is_said),
      cmocka_unit_test(the_level_of_a_packed_file_is_not_switched),
      cmocka_unit_test(a_header_alone_is_an_empty_capture_that_is_cut_off),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
