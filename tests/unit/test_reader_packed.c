/* Packed captures are read as the plain ones, also damaged, cut off, and beside plain chunks. The
   columns are not compressed here: libprof.a opens no zstd. */
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
  const void *const extent = prof_i_pack(packer, &part, &packed);
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
  const void *const extent = prof_i_pack(packer, &part, &count);
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
  const void *const extent = prof_i_pack(packer, &part, &bytes);
  memcpy(file + file_bytes, extent, bytes);
  prof_trace *const trace = open_file(file_bytes + bytes);
  assert_int_equal(info_of(trace).event_count, CHUNKS * SCOPES);
  assert_int_equal(info_of(trace).bad_count, 1);
  prof_i_packer_destroy(packer);
  prof_trace_destroy(trace);
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
      cmocka_unit_test(a_header_alone_is_an_empty_capture_that_is_cut_off),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
