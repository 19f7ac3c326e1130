/* A small capture (one slot, one chunk, one meta extent) with each byte inverted, and with each
   single bit of its header, its meta extent and its chunk. Each is opened, and read and written in
   every way, or refused with an error text. There are never more events than its claimed bytes have
   room for. The bytes end at a page that must not be touched. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <sys/mman.h>

#include "read_everything.h"
#include "unit/build_capture.h"

enum { BITS_UP_TO = PROF_I_FIRST_UNIT_OFFSET + 2 * PROF_I_UNIT_BYTES, PAGE = 4096 };

static struct {
  unsigned char *bytes;
  size_t count, mapped;
  uint64_t opened, refused, damaged; /* of the open captures: those that counted damage */
} own;

static void build(capture *c) {
  static const uint32_t types[] = {PROF_ARG_I64, PROF_ARG_STRING, PROF_ARG_F64};
  static const char *const keys[] = {"count", "shape", "ratio"};
  long_record r;
  capture_begin(c, 128 << 10);
  prof_i_head *const meta = capture_meta(c);
  capture_session(meta, CAPTURE_START, 2, 1);
  capture_clock(c, meta, 0, 0, 0);
  capture_site(meta, 1, "outer", "vm", 2);
  capture_site(meta, 2, "matmul", "operator", 1);
  capture_schema(meta, 1, PROF_ARGS_PAIRS, "", 3, types, keys);
  capture_schema(meta, 2, PROF_ARGS_FORMAT, "%d of %-10s at %6.2f", 3, types, NULL);
  capture_track(meta, (prof_device){PROF_DEVICE_CUDA, 0}, 7, "compute");
  prof_i_head *const chunk = capture_chunk(c, PROF_I_UNIT_BYTES, 1);
  for (uint64_t i = 0; i < 4; i++) capture_plain(chunk, CAPTURE_START + 200 + i * 100, 50, 2);
  for (uint32_t schema = 1; schema <= 2; schema++) {
    long_begin(&r, PROF_I_KIND_SCOPE, CAPTURE_START + 2000 + schema * 200, 100, 2);
    r.flags = PROF_I_FLAG_DEVICE | PROF_I_FLAG_STREAM | PROF_I_FLAG_NAME | PROF_I_FLAG_CATEGORY;
    r.schema = schema;
    long_word(&r, PROF_DEVICE_CUDA);
    long_word(&r, 7);
    long_text(&r, "run-time");
    long_text(&r, "kernel");
    long_word(&r, 12);
    long_text(&r, "[2, 3]");
    long_word(&r, 0x3ff8000000000000u);
    long_end(&r, chunk);
  }
  long_begin(&r, PROF_I_KIND_COUNTER, CAPTURE_START + 3010, 0, 2);
  long_word(&r, 0x4008000000000000u);
  long_end(&r, chunk);
  for (uint64_t end = 0; end < 2; end++) {
    long_begin(&r, PROF_I_KIND_FLOW, CAPTURE_START + 3020 + end, 0, 0);
    long_word(&r, 5);
    long_word(&r, end);
    long_text(&r, "flow");
    long_end(&r, chunk);
  }
  long_begin(&r, PROF_I_KIND_STEP, CAPTURE_START + 3100, 0, 0);
  long_word(&r, 0);
  long_end(&r, chunk);
  prof_i_thread_slot *const slot = capture_slot(c, 1, "main");
  slot->chunk = (uint64_t)((unsigned char *)chunk - c->bytes);
  capture_open(slot, CAPTURE_START + 100, 1);
}

static int make_capture(void **state) {
  capture c;
  (void)state;
  build(&c);
  own.count = c.count;
  own.mapped = c.count + PAGE;
  own.bytes = mmap(NULL, own.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (own.bytes == MAP_FAILED || own.count % PAGE != 0) return -1;
  memcpy(own.bytes, c.bytes, c.count);
  capture_end(&c);
  return mprotect(own.bytes + own.count, PAGE, PROT_NONE);
}

static int remove_capture(void **state) {
  (void)state;
  return munmap(own.bytes, own.mapped);
}

/* Zeros far from anything used are flipped as well; only the rarer ways of reading are left out
   there. */
static bool is_used(size_t at) {
  for (size_t i = at > 16 ? at - 16 : 0; i < at + 16 && i < own.count; i++)
    if (own.bytes[i] != 0) return true;
  return false;
}

/* Reads the current bytes. */
static void look(size_t at, bool with_exports) {
  prof_trace *trace = NULL;
  const int status = prof_trace_open_bytes(own.bytes, own.count, &trace);
  if (status != PROF_OK) {
    if ((status != PROF_E_NOT_CAPTURE && status != PROF_E_VERSION) || at >= 12 || trace ||
        !prof_last_error()[0])
      fail_msg("byte %zu: %s: '%s'", at, prof_status_name(status), prof_last_error());
    own.refused++;
    return;
  }
  const prof_trace_info info = info_of(trace);
  /* Each event takes 16 bytes of a chunk, a reserve or, when the kind was flipped, of any extent,
     or an entry of a slot. */
  if (info.event_count > (own.count - PROF_I_FIRST_UNIT_OFFSET) / 16)
    fail_msg("byte %zu: %llu events", at, (unsigned long long)info.event_count);
  read_events(trace);
  if (with_exports) {
    read_tables(trace);
    write_exports(trace);
  }
  prof_trace_destroy(trace);
  own.opened++;
  own.damaged += info.bad_count > 0;
}

static void the_capture_reads_clean(void **state) {
  (void)state;
  prof_trace *trace = NULL;
  assert_int_equal(prof_trace_open_bytes(own.bytes, own.count, &trace), PROF_OK);
  const prof_trace_info info = info_of(trace);
  read_events(trace);
  read_tables(trace);
  write_exports(trace);
  prof_trace_destroy(trace);
  assert_int_equal(info.bad_count, 0);
  assert_int_equal(info.event_count, 4 + 2 + 1 + 2 + 1 + 1);
}

static void say(const char *what) {
  print_message("%s: %llu opened, %llu of them with damage counted, %llu refused\n", what,
                (unsigned long long)own.opened, (unsigned long long)own.damaged,
                (unsigned long long)own.refused);
}

static void start_counting(void) { own.opened = own.refused = own.damaged = 0; }

static void every_byte_turned_over_is_read_or_refused(void **state) {
  (void)state;
  start_counting();
  for (size_t at = 0; at < own.count; at++) {
    const bool with_exports = is_used(at);
    own.bytes[at] ^= 0xff;
    look(at, with_exports);
    own.bytes[at] ^= 0xff;
  }
  say("bytes");
  assert_int_equal(own.opened + own.refused, own.count);
  assert_int_equal(own.refused, 12); /* the magic and the version, nothing else */
  assert_true(own.damaged > 300);
}

static void every_bit_of_header_meta_extent_and_chunk_is_read_or_refused(void **state) {
  (void)state;
  start_counting();
  for (size_t at = 0; at < BITS_UP_TO; at++) {
    const bool with_exports = is_used(at);
    for (int bit = 0; bit < 8; bit++) {
      own.bytes[at] ^= (unsigned char)(1 << bit);
      look(at, with_exports);
      own.bytes[at] ^= (unsigned char)(1 << bit);
    }
  }
  say("bits");
  assert_int_equal(own.opened + own.refused, 8 * BITS_UP_TO);
  /* Version 0 is read, and counted as damage. Version 3 is a packed capture of plain extents. */
  assert_int_equal(own.refused, 12 * 8 - 2);
}

/* What the tests above would not see: whole words of chunks and slots that hold the worst
   numbers. */
static void the_worst_numbers_in_every_word_are_survived(void **state) {
  (void)state;
  static const uint64_t worst[] = {
      0,          1,          16,         0x4000,          UINT32_MAX,
      1ull << 63, 1ull << 59, UINT64_MAX, UINT64_MAX - 15, UINT64_MAX - 63};
  start_counting();
  for (size_t at = 16; at < own.count; at += 8) {
    if (!is_used(at)) continue;
    uint64_t before;
    memcpy(&before, own.bytes + at, 8);
    for (size_t w = 0; w < sizeof worst / sizeof *worst; w++) {
      memcpy(own.bytes + at, &worst[w], 8);
      look(at, true);
    }
    memcpy(own.bytes + at, &before, 8);
  }
  say("words");
  assert_true(own.opened > 1000);
  assert_int_equal(own.refused, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_capture_reads_clean),
      cmocka_unit_test(every_byte_turned_over_is_read_or_refused),
      cmocka_unit_test(every_bit_of_header_meta_extent_and_chunk_is_read_or_refused),
      cmocka_unit_test(the_worst_numbers_in_every_word_are_survived),
  };
  return cmocka_run_group_tests_name("flips", tests, make_capture, remove_capture);
}
