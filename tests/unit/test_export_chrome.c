/* Chrome JSON: the events of scopes and kernels, what stands in the head, and what is said of
   losses. */
#define _GNU_SOURCE
#include "export/exporter.h"
#include "exported.h"
#include "reader/internal.h"

#include <prof/backend.h>

static void the_head_is_as_readers_look_for_it(void **state) {
  (void)state;
  capture c;
  begin(&c, 453 * base_ns + 1);
  capture_header(&c)->rank = 3;
  capture_header(&c)->world_size = 8;
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_OK);
  capture_end(&c);
  const char *const head =
      "{\n\"schemaVersion\": 1,\n\"deviceProperties\": [],\n"
      "\"distributedInfo\": {\"backend\": \"\", \"rank\": 3, \"world_size\": 8},\n"
      "\"displayTimeUnit\": \"ns\",\n\"host_name\": \"host\",\n"
      "\"baseTimeNanoseconds\": 1786912407000000000,\n\"traceEvents\": [\n"
      "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":77,\"tid\":0,\"args\":{\"name\":\"test\"}},"
      "\n"
      "{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":77,\"tid\":0,\"args\":{\"labels\":\"CPU\"}"
      "},\n";
  assert_memory_equal(text, head, strlen(head));
  has("\n],\n\"prof\": {\"version\":\"");
}

static void a_scope_is_one_line(void **state) {
  (void)state;
  capture c;
  prof_i_head *const chunk = begin(&c, 453 * base_ns + 1234567890123u);
  capture_plain(chunk, CAPTURE_START + 1000, 5, 1);
  capture_plain(chunk, CAPTURE_START + 2000, 12345, 1);
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_OK);
  capture_end(&c);
  has("{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":77,\"tid\":101,\"args\":{\"name\":\"thread "
      "1\"}},\n");
  has("\n{\"ph\":\"X\",\"cat\":\"operator\",\"name\":\"matmul\",\"pid\":77,\"tid\":101,\"ts\":"
      "1234567892.123,\"dur\":12.345},\n");
  has("\n{\"ph\":\"X\",\"cat\":\"operator\",\"name\":\"matmul\",\"pid\":77,\"tid\":101,\"ts\":"
      "1234567891.123,\"dur\":0.005},\n");
}

/* The fast way takes times apart at 10^8 ns; each side of that, and of what it can do at all, must
   read the same. */
static void times_of_every_length_are_right(void **state) {
  (void)state;
  static const uint64_t starts[] = {0,         1,         999,        1000,      99999999,
                                    100000000, 100000001, 1999999999, 2000000000};
  static const uint64_t durations[] = {0,      1,       999,     1000,     9999,      10000,
                                       999999, 1000000, 1000001, 99999999, 100000000, 3000000000};
  static const uint64_t epochs[] = {0, 1, 99999999, 100000000, 3944618999000000u};
  const uint64_t apart = 10000000000u; /* so that none holds another */
  for (size_t e = 0; e < sizeof epochs / sizeof epochs[0]; e++)
    for (size_t d = 0; d < sizeof durations / sizeof durations[0]; d++) {
      capture c;
      char expected[160];
      prof_i_head *const chunk = begin(&c, 453 * base_ns + epochs[e]);
      for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        capture_plain(chunk, CAPTURE_START + apart * i + starts[i], durations[d], 1);
      assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_OK);
      capture_end(&c);
      for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        const uint64_t ts = epochs[e] + apart * i + starts[i];
        snprintf(expected, sizeof expected, ",\"ts\":%llu.%03u,\"dur\":%llu.%03u},\n",
                 (unsigned long long)(ts / 1000), (unsigned)(ts % 1000),
                 (unsigned long long)(durations[d] / 1000), (unsigned)(durations[d] % 1000));
        has(expected);
      }
    }
}

/* By begin, and rows come from the last begin to the first. */
static void operators_have_ids_and_other_scopes_have_none(void **state) {
  (void)state;
  enum { COUNT = 1234, OPERATOR = 2 };
  capture c;
  prof_i_head *const chunk = begin(&c, 453 * base_ns);
  capture_site((prof_i_head *)(c.bytes + PROF_I_FIRST_UNIT_OFFSET), OPERATOR, "aten::relu",
               "cpu_op", 1);
  for (unsigned i = 0; i < COUNT; i++) {
    capture_plain(chunk, CAPTURE_START + 100 * i, 5, OPERATOR);
    capture_plain(chunk, CAPTURE_START + 100 * i + 50, 5, 1);
  }
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_OK);
  capture_end(&c);
  assert_int_equal(count_of("\"External id\":"), COUNT);
  const char *at = text;
  for (unsigned i = COUNT; i > 0; i--) {
    at = strstr(at, "\"External id\":");
    assert_non_null(at);
    at += strlen("\"External id\":");
    assert_int_equal(strtoul(at, NULL, 10), i);
  }
  assert_int_equal(count_of("\"name\":\"matmul\",\"pid\":"), COUNT);
  assert_int_equal(count_of(",\"args\":{\"External id\":"), COUNT);
}

/* Rendered sites are kept by their number; two that meet in one place must not be taken for each
   other. */
static void many_sites_keep_their_own_names(void **state) {
  (void)state;
  enum { SITES = 9000 };
  capture c;
  char name[400], expected[500];
  capture_begin(&c, 64 << 20);
  prof_i_head *const meta = capture_extent(&c, PROF_I_EXTENT_META, 16 << 20);
  for (uint32_t i = 1; i <= SITES; i++) {
    /* some too long for the fast way */
    snprintf(name, sizeof name, "site_%u_%0*u", i, i % 7 == 0 ? 300 : 1, 0);
    capture_site(meta, i, name, i % 2 == 0 ? "even" : "odd", 1);
  }
  prof_i_head *const chunk = capture_chunk(&c, 1 << 20, 1);
  for (uint32_t i = 1; i <= SITES; i++)
    capture_plain(chunk, CAPTURE_START + 10ull * i, 5, (i * 4096) % SITES + 1);
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_OK);
  capture_end(&c);
  for (uint32_t i = 1; i <= SITES; i++) {
    const uint32_t site = (i * 4096) % SITES + 1;
    snprintf(expected, sizeof expected,
             "\"cat\":\"%s\",\"name\":\"site_%u_%0*u\",\"pid\":0,\"tid\":101,\"ts\":",
             site % 2 == 0 ? "even" : "odd", site, site % 7 == 0 ? 300 : 1, 0);
    if (i % 97 == 0) has(expected);
  }
  assert_int_equal(count_of("\"ph\":\"X\""), SITES);
}

static void empty_names_get_one(void **state) {
  (void)state;
  capture c;
  prof_i_head *const chunk = begin(&c, 453 * base_ns);
  capture_site((prof_i_head *)(c.bytes + PROF_I_FIRST_UNIT_OFFSET), 2, "", "", 1);
  capture_plain(chunk, CAPTURE_START, 5, 2);
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_OK);
  capture_end(&c);
  has("\"cat\":\"scope\",\"name\":\"function\""); /* the reader's choice: where the scope stands */
}

/* Viewers have names for these, and prof import must not take them for the program's. */
static void what_has_no_name_gets_none(void **state) {
  (void)state;
  capture c;
  prof_i_head *const chunk = begin(&c, 453 * base_ns);
  memset(capture_header(&c)->process_name, 0, sizeof capture_header(&c)->process_name);
  capture_owner(chunk, 2, 9, "");
  capture_plain(chunk, CAPTURE_START, 200, 1);
  capture_plain(chunk, CAPTURE_START + 100, 200, 1);
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_OK);
  capture_end(&c);
  has_not("process_name");
  assert_int_equal(count_of("\"thread_name\""), 1);
  has("\"args\":{\"name\":\"thread 9 (overlapping 1)\"}}");
  has("\"distributedInfo\": {\"backend\": \"\", \"rank\": 0, \"world_size\": 1, "
      "\"is_rank_known\": false},\n");
}

static void put_flow_end(prof_i_head *chunk, uint64_t id, uint64_t at_ns, bool is_end,
                         const char *name) {
  long_record r;
  long_begin(&r, PROF_I_KIND_FLOW, CAPTURE_START + at_ns, 0, 0);
  long_word(&r, id);
  long_word(&r, is_end);
  long_text(&r, name);
  long_end(&r, chunk);
}

/* Viewers draw an arrow between slices alone. */
static void an_arrow_outside_of_scopes_has_marks(void **state) {
  (void)state;
  capture c;
  prof_i_head *const chunk = begin(&c, 453 * base_ns);
  put_flow_end(chunk, 7, 1000, false, "send");
  put_flow_end(chunk, 7, 2000, true, "send");
  capture_plain(chunk, CAPTURE_START, 2500, 1);
  put_flow_end(chunk, 8, 3000, false, "");
  put_flow_end(chunk, 8, 4000, true, "");
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_OK);
  capture_end(&c);
  const char *const whole =
      "{\"ph\":\"s\",\"cat\":\"flow\",\"name\":\"send\",\"id\":1,\"pid\":77,\"tid\":101,"
      "\"ts\":1.000,\"args\":{\"flow id\":7}},\n"
      "{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"flow\",\"name\":\"send\",\"id\":1,\"pid\":77,"
      "\"tid\":101,\"ts\":2.000},\n";
  const char *const outside =
      "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"flow\",\"name\":\"flow\",\"pid\":77,\"tid\":101,"
      "\"ts\":3.000,\"args\":{\"arrow mark\":true}},\n"
      "{\"ph\":\"s\",\"cat\":\"flow\",\"name\":\"flow\",\"id\":2,\"pid\":77,\"tid\":101,"
      "\"ts\":3.000,\"args\":{\"flow id\":8,\"unnamed\":true}},\n"
      "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"flow\",\"name\":\"flow\",\"pid\":77,\"tid\":101,"
      "\"ts\":4.000,\"args\":{\"arrow mark\":true}},\n"
      "{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"flow\",\"name\":\"flow\",\"id\":2,\"pid\":77,"
      "\"tid\":101,\"ts\":4.000},\n";
  has(whole);
  has(outside);
  has("\"flow_ends\":4,\"flow_marks\":2}");
  has("\"flows_outside_scopes\":2");
}

static void what_overlaps_goes_to_a_row_beside(void **state) {
  (void)state;
  capture c;
  prof_i_head *const chunk = begin(&c, 453 * base_ns);
  capture_plain(chunk, CAPTURE_START + 100, 200, 1);
  capture_plain(chunk, CAPTURE_START + 200, 200, 1);
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_OK);
  capture_end(&c);
  has("\"tid\":101,\"ts\":");
  has("\"tid\":10000101,\"ts\":");
  has("\"name\":\"thread_name\",\"pid\":77,\"tid\":10000101,\"args\":{\"name\":\"thread 1 "
      "(overlapping 1)\"}");
  has("\"self_check\":{\"faults\":0,");
}

static void dump_overlapping(uint64_t count) {
  capture c;
  prof_i_head *const first = begin(&c, 453 * base_ns), *chunk = first;
  for (uint64_t i = 0; i < count; i++) {
    if (chunk->cursor + 32 > chunk->bytes) chunk = capture_chunk(&c, chunk->bytes, first->owner);
    capture_plain(chunk, CAPTURE_START + i, 2 * count, 1);
  }
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_OK);
  capture_end(&c);
  has("\"self_check\":{\"faults\":0,");
}

static void a_thousand_scopes_that_overlap_have_rows(void **state) {
  (void)state;
  dump_overlapping(PROF_I_LANES_MAX);
  has("\"tid\":2550000101,\"args\":{\"name\":\"thread 1 (overlapping 255)\"}");
  has("\"tid\":4140000000,\"args\":{\"name\":\"thread 1 (overlapping 256)\"}");
  has("\"tid\":4140000767,\"args\":{\"name\":\"thread 1 (overlapping 1023)\"}");
  has("\"written\":{\"scopes\":1024,");
  has("\"overlapping_past_1023\":0");
  has("\"prof: no loss\"");
}

static void what_overlaps_more_than_there_are_rows_is_left_out_and_counted(void **state) {
  (void)state;
  dump_overlapping(PROF_I_LANES_MAX + 50);
  has("\"written\":{\"scopes\":1024,");
  has("\"overlapping_past_1023\":50");
  has("\"prof: see the arguments\"");
  has("\"left out: overlapping more than 1023 others\":50");
}

/* Where a vendor's tracing told the call, too, the arrow to the kernel begins there, on the row of
   the thread that called. */
static void a_kernel_is_tied_to_the_call_that_launched_it(void **state) {
  (void)state;
  capture c;
  long_record r;
  capture_begin(&c, 1 << 20);
  capture_header(&c)->pid = 77;
  prof_i_head *const meta = capture_meta(&c);
  capture_site(meta, 1, "matmul", "operator", 1);
  capture_site(meta, 2, "cudaLaunchKernel", "cuda_runtime", 1);
  capture_site(meta, 3, "gemm", "kernel", 1);
  const uint32_t types[] = {PROF_ARG_U64, PROF_ARG_U64, PROF_ARG_U64, PROF_ARG_U64, PROF_ARG_U64};
  capture_schema(meta, 1, PROF_ARGS_LIST, "", 5, types, NULL);
  capture_plain(capture_chunk(&c, PROF_I_UNIT_BYTES, 1), CAPTURE_START + 100, 400, 1);
  prof_i_head *const calls = capture_extent(&c, PROF_I_EXTENT_CHUNK, PROF_I_UNIT_BYTES),
                     *const stream = capture_extent(&c, PROF_I_EXTENT_CHUNK, PROF_I_UNIT_BYTES);
  calls->sequence = ++c.sequence << 1;
  stream->sequence = ++c.sequence << 1;
  capture_owner_as(calls, 2, 1, PROF_I_KIND_OF_CALLS, "calls");
  capture_owner_as(stream, 3, 0x7000, PROF_I_KIND_OF_STREAM | 2 << PROF_I_THREAD_KIND_TYPE_SHIFT,
                   "stream 0x7000");
  long_begin(&r, PROF_I_KIND_CALL, CAPTURE_START + 90, 100, 2);
  long_end(&r, calls);
  long_begin(&r, PROF_I_KIND_SCOPE, CAPTURE_START + 300, 50, 3);
  r.flags = PROF_I_FLAG_DEVICE | PROF_I_FLAG_STREAM;
  r.schema = 1;
  const uint64_t words[] = {2, 0x7000, 1, CAPTURE_START + 150, 1300, 1350, 1};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) long_word(&r, words[i]);
  long_end(&r, stream);
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_OK);
  capture_end(&c);
  has("\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":77,\"tid\":101,");
  has("\"dur\":0.090,\"args\":{\"External id\":1,\"correlation\":1}");
  has("\"cat\":\"operator\",\"name\":\"matmul\",\"pid\":77,\"tid\":101,");
  has("\"dur\":0.400,\"args\":{\"External id\":1}"); /* the call is in it */
  has("\"args\":{\"External id\":1,\"correlation\":1,\"device\":0,");
  assert_int_equal(count_of("\"cat\":\"ac2g\""), 2);
  has("\"self_check\":{\"faults\":0,");
}

static void put_call(prof_i_head *calls, uint64_t start_ns, uint64_t duration_ns, uint32_t site) {
  long_record r;
  long_begin(&r, PROF_I_KIND_CALL, start_ns, duration_ns, site);
  long_end(&r, calls);
}

static void put_kernel(prof_i_head *stream, uint64_t launched_ns, uint64_t start_ns,
                       uint32_t site) {
  const uint64_t words[] = {2, 0x7000, 1, launched_ns, 1300, 1350, 1};
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, start_ns, 50, site);
  r.flags = PROF_I_FLAG_DEVICE | PROF_I_FLAG_STREAM;
  r.schema = 1;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) long_word(&r, words[i]);
  long_end(&r, stream);
}

/* Is the key of one of prof's own members of this "args" object, in which each stands once? */
static void has_key_once(const char *object, const char *key) {
  char quoted[64];
  const int bytes = snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char *const end = strchr(object, '}'), *const at = strstr(object, quoted);
  assert_non_null(end);
  if (!at || at > end) return;
  const char *const again = strstr(at + bytes, quoted);
  if (again && again < end) fail_msg("'%s' comes twice: %.*s", key, (int)(end - object), object);
}

/* Puts a record's own words, and behind them as many of the user's values. */
static void end_record(long_record *r, uint32_t flags, uint32_t schema, const uint64_t *words,
                       size_t count, size_t user_count, prof_i_head *to) {
  r->flags = flags;
  r->schema = schema;
  for (size_t i = 0; i < count; i++) long_word(r, words[i]);
  for (uint64_t i = 0; i < user_count; i++) long_word(r, i);
  long_end(r, to);
}

/* A user's arguments that are called as prof's own are: on a scope that a jump left, on one that
   another thread ended, and on a device's row. */
static void no_key_comes_twice(void **state) {
  (void)state;
  enum { SETS = 2, HIDDEN = 5, COUNT = 10, ALL = HIDDEN + COUNT };
  static const char *const keys[SETS][ALL] = {
      {"launch thread", "launch ticks", "device start ns", "device end ns", "record kind",
       /* the user's: */
       "skipped", "cut", "details lost", "asynchronous", "ended on another thread", "unfinished",
       "External id", "correlation", "skipped#", "skipped"},
      {"launch thread", "launch ticks", "device start ns", "device end ns", "record kind",
       /* the user's: */
       "correlation", "Device", "Stream", "device", "stream", "annotation", "step mark",
       "arrow mark", "annotation", "correlation"}};
  const uint32_t place = PROF_I_FLAG_DEVICE | PROF_I_FLAG_STREAM;
  const uint32_t losses = PROF_I_FLAG_CUT | PROF_I_FLAG_NO_DETAILS;
  uint32_t types[ALL];
  capture c;
  long_record r;
  prof_i_head *const host = begin(&c, 453 * base_ns);
  prof_i_head *const meta = capture_meta(&c);
  prof_i_head *const stream = capture_extent(&c, PROF_I_EXTENT_CHUNK, PROF_I_UNIT_BYTES);
  stream->sequence = ++c.sequence << 1;
  capture_owner_as(stream, 3, 7, PROF_I_KIND_OF_STREAM | 2 << PROF_I_THREAD_KIND_TYPE_SHIFT,
                   "stream 7");
  capture_site(meta, 2, "stretch", "gpu_user_annotation", 1);
  capture_site(meta, 3, "k", "kernel", 1);
  for (size_t i = 0; i < ALL; i++) types[i] = PROF_ARG_U64;
  for (uint32_t s = 0; s < SETS; s++) {
    const uint64_t t = CAPTURE_START + 1000 * (uint64_t)(s + 1);
    uint64_t words[] = {2, 7, 1, t + 50, 1300, 1350, PROF_RECORD_ANNOTATION};
    capture_schema(meta, 2 * s + 1, PROF_ARGS_PAIRS, "", ALL, types, keys[s]);
    capture_schema(meta, 2 * s + 2, PROF_ARGS_PAIRS, "", COUNT, types, keys[s] + HIDDEN);
    long_begin(&r, PROF_I_KIND_SKIPPED, t, 400, 1);
    end_record(&r, place | losses, 2 * s + 2, words, 2, COUNT, host);
    long_begin(&r, PROF_I_KIND_ASYNC, t + 500, 400, 1);
    end_record(&r, losses | PROF_I_FLAG_OTHER_THREAD, 2 * s + 2, NULL, 0, COUNT, host);
    long_begin(&r, PROF_I_KIND_SCOPE, t + 100, 50, 2);
    end_record(&r, place, 2 * s + 1, words, 2 + HIDDEN, COUNT, stream);
    words[6] = PROF_BACKEND_KERNEL;
    long_begin(&r, PROF_I_KIND_SCOPE, t + 200, 50, 3);
    end_record(&r, place, 2 * s + 1, words, 2 + HIDDEN, COUNT, stream);
  }
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_OK);
  capture_end(&c);
  unsigned count = 0;
  for (const char *at = text; (at = strstr(at, "{\"ph\":\"X\"")) != NULL; at++) {
    const char *const args = strstr(at, "\"args\":{");
    count++;
    assert_non_null(args);
    for (size_t i = 0; i < SETS * COUNT; i++)
      has_key_once(args, keys[i / COUNT][HIDDEN + i % COUNT]);
  }
  assert_int_equal(count, 4 * SETS);
  assert_int_equal(count_of("\"skipped\":true"), SETS);
  assert_int_equal(count_of("\"asynchronous\":true"), SETS);
  assert_int_equal(count_of("\"annotation\":true,"), SETS);
  assert_int_equal(count_of("\"correlation\":"), 2 * SETS); /* the launch's and the kernel's */
  assert_int_equal(count_of("\"skipped#\":0"), 4);          /* the user's: it has this one too */
  assert_int_equal(count_of("\"skipped##\":8"), 4);
  assert_int_equal(count_of("\"skipped###\":9"), 4);
  assert_int_equal(count_of("\"stream\":4"), 2); /* it is prof's on rows of devices alone */
  assert_int_equal(count_of("\"stream#\":4"), 2);
}

/* As Kineto has them, and as readers give kernels to operators: the External id of a call and of
   what it launched is its operator's; correlation is its own. */
static void calls_and_kernels_have_their_operators_id(void **state) {
  (void)state;
  enum { MATMUL = 1, LAUNCH, GEMM, BARE, DRIVER };
  const uint64_t t = CAPTURE_START;
  const uint32_t types[] = {PROF_ARG_U64, PROF_ARG_U64, PROF_ARG_U64, PROF_ARG_U64, PROF_ARG_U64};
  capture c;
  capture_begin(&c, 1 << 20);
  capture_header(&c)->pid = 77;
  prof_i_head *const meta = capture_meta(&c);
  capture_site(meta, MATMUL, "matmul", "operator", 1);
  capture_site(meta, LAUNCH, "cudaLaunchKernel", "cuda_runtime", 1);
  capture_site(meta, GEMM, "gemm", "kernel", 1);
  capture_site(meta, BARE, "bare", "operator", 1);
  capture_site(meta, DRIVER, "cuLaunchKernel", "cuda_driver", 1);
  capture_schema(meta, 1, PROF_ARGS_LIST, "", 5, types, NULL);
  prof_i_head *const chunk = capture_chunk(&c, PROF_I_UNIT_BYTES, 1);
  capture_plain(chunk, t + 100, 400, MATMUL);
  capture_plain(chunk, t + 600, 100, BARE);
  prof_i_head *const calls = capture_extent(&c, PROF_I_EXTENT_CHUNK, PROF_I_UNIT_BYTES),
                     *const stream = capture_extent(&c, PROF_I_EXTENT_CHUNK, PROF_I_UNIT_BYTES);
  calls->sequence = ++c.sequence << 1;
  stream->sequence = ++c.sequence << 1;
  capture_owner_as(calls, 2, 1, PROF_I_KIND_OF_CALLS, "calls");
  capture_owner_as(stream, 3, 0x7000, PROF_I_KIND_OF_STREAM | 2 << PROF_I_THREAD_KIND_TYPE_SHIFT,
                   "stream 0x7000");
  put_call(calls, t + 160, 11, DRIVER); /* in the launch */
  put_call(calls, t + 150, 41, LAUNCH);
  put_call(calls, t + 200, 42, LAUNCH);
  put_call(calls, t + 800, 43, LAUNCH); /* in nothing */
  put_kernel(stream, t + 165, t + 300, GEMM);
  put_kernel(stream, t + 210, t + 350, GEMM);
  put_kernel(stream, t + 820, t + 900, GEMM);
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_OK);
  capture_end(&c);
  /* they are written from the last to the first */
  has("\"dur\":0.043,\"args\":{\"External id\":0,\"correlation\":1}");
  has("\"dur\":0.100},\n"); /* nothing refers to it */
  has("\"dur\":0.042,\"args\":{\"External id\":3,\"correlation\":3}");
  has("\"dur\":0.041,\"args\":{\"External id\":3,\"correlation\":5}");
  has("\"dur\":0.400,\"args\":{\"External id\":3}");
  assert_int_equal(count_of("\"args\":{\"External id\":0,\"correlation\":1,\"device\":0,"), 1);
  assert_int_equal(count_of("\"args\":{\"External id\":3,\"correlation\":3,\"device\":0,"), 1);
  assert_int_equal(count_of("\"args\":{\"External id\":3,\"correlation\":5,\"device\":0,"), 1);
  has("\"self_check\":{\"faults\":0,");
}

/* The kernel gives a dead thread's number away. */
static void threads_of_one_number_have_rows_of_their_own(void **state) {
  (void)state;
  capture c;
  prof_i_head *const chunk = begin(&c, 453 * base_ns);
  capture_plain(chunk, CAPTURE_START + 100, 200, 1);
  prof_i_head *const other = capture_extent(&c, PROF_I_EXTENT_CHUNK, 1 << 20);
  other->sequence = ++c.sequence << 1;
  capture_owner(other, 2, 101, "thread 2");
  capture_plain(other, CAPTURE_START + 200, 200, 1);
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_OK);
  capture_end(&c);
  has("\"tid\":101,\"args\":{\"name\":\"thread 1\"}");
  has("\"tid\":2600000001,\"args\":{\"name\":\"thread 2\"}");
  has("\"tid\":101,\"ts\":");
  has("\"tid\":2600000001,\"ts\":");
}

static void a_window_keeps_what_touches_it(void **state) {
  (void)state;
  capture c;
  prof_i_head *const chunk = begin(&c, 453 * base_ns);
  for (unsigned i = 0; i < 10; i++) capture_plain(chunk, CAPTURE_START + 1000 * i, 500, 1);
  assert_int_equal(dump(&c, (prof_dump_options){.from_ns = 2500, .to_ns = 6000}), PROF_OK);
  assert_int_equal(count_of("\"ph\":\"X\""), 3);
  has("\"ts\":3.000");
  has("\"ts\":4.000");
  has("\"ts\":5.000");
  has("\"name\":\"prof: no loss\",\"pid\":77,\"tid\":77,\"ts\":2.500");
  assert_int_equal(dump(&c, (prof_dump_options){.from_ns = 9400}), PROF_OK);
  assert_int_equal(count_of("\"ph\":\"X\""), 1);
  assert_int_equal(dump(&c, (prof_dump_options){.to_ns = 1000}), PROF_OK);
  assert_int_equal(count_of("\"ph\":\"X\""), 1);
  assert_int_equal(dump(&c, (prof_dump_options){.to_ns = 1001}), PROF_OK);
  assert_int_equal(count_of("\"ph\":\"X\""), 2);
  capture_end(&c);
}

/* What was forgotten on purpose is no loss, and is said all the same. Its thread is not known. */
static void what_was_cleared_stands_in_the_text(void **state) {
  (void)state;
  capture c;
  prof_i_head *const chunk = begin(&c, 453 * base_ns);
  capture_plain(chunk, CAPTURE_START, 5, 1);
  capture_header(&c)->unattributed[PROF_LOSS_CLEARED] = 3;
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_OK);
  capture_end(&c);
  has("\"name\":\"prof: 3 cleared, no other loss\"");
  has("\"lost: cleared\":3");
  has("\"lost_not_by_thread\":3");
}

static void loss_stands_in_the_text(void **state) {
  (void)state;
  capture c;
  prof_i_head *const chunk = begin(&c, 453 * base_ns);
  capture_plain(chunk, CAPTURE_START, 5, 1);
  capture_exit(chunk, 1, "thread 1", PROF_LOSS_FULL, 42);
  capture_header(&c)->unattributed[PROF_LOSS_FULL] = 42;
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_OK);
  capture_end(&c);
  has("\"name\":\"prof: lost 42\"");
  has("\"lost_not_by_thread\":0");
  has("\"lost: full\":42");
  has("\"lost\":{\"total\":42,\"full\":42,\"overwritten\":0,");
  has("{\"tid\":101,\"name\":\"thread "
      "1\",\"events\":1,\"recording_took_ns\":0,\"lost\":{\"total\":42,\"full\":42,");
}

/* One plain scope (cost 20 ns), 1000 muted ones (2 ns), a level that stepped down and a site that
   was muted. */
static void steps_of_the_budget_stand_in_the_text_and_on_the_time_line(void **state) {
  (void)state;
  capture c;
  prof_i_head *const chunk = begin(&c, 453 * base_ns);
  prof_i_head *const meta = (prof_i_head *)(c.bytes + PROF_I_FIRST_UNIT_OFFSET);
  capture_plain(chunk, CAPTURE_START, 5, 1);
  capture_exit(chunk, 1, "thread 1", PROF_LOSS_MUTED, 1000);
  capture_header(&c)->unattributed[PROF_LOSS_MUTED] = 1000;
  capture_header(&c)->scope_cost_ps = 20000;
  capture_header(&c)->left_out_cost_ps = 2000;
  capture_header(&c)->memory_limit_bytes = 3000000000;
  capture_header(&c)->cpu_limit_milli = 2500;
  capture_change(meta, CAPTURE_START + 4000, PROF_CHANGE_MUTED, PROF_REASON_EVENTS, 1, 0, 0, 1,
                 12345678, 1000000);
  capture_change(meta, CAPTURE_START + 2500, PROF_CHANGE_LEVEL, PROF_REASON_TIME, 0, 2, 1, 1, 34140,
                 10000);
  /* of no known kind */
  capture_change(meta, CAPTURE_START + 5000, 99, PROF_REASON_TIME, 0, 2, 1, 1, 34140, 10000);
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_E_CHECK);
  has("\"name\":\"prof: level lowered\",\"pid\":77,\"tid\":77,\"ts\":2.500,\"args\":{\"change\":"
      "\"level 2 -> 1: thread 101 spent 3.41 % of its time recording, the budget is 1.00 %\"}},");
  has("\"name\":\"prof: site muted\",\"pid\":77,\"tid\":77,\"ts\":4.000,\"args\":{\"change\":"
      "\"muted 'matmul' (operator): 12.35 million events a second, the budget is 1.00 "
      "million\"}},");
  has("\"changes\":[\n  {\"at_ns\":2500,\"change\":\"level 2 -> 1: ");
  has("  {\"at_ns\":4000,\"change\":\"muted 'matmul' (operator): ");
  has("\"unreadable\":1");
  has("\"scope_cost_ps\":20000,\"recording_took_ns\":2020,\"recording_took_least_ns\":2020,"
      "\"memory_limit_bytes\":3000000000,\"cpu_limit_milli\":2500,");
  assert_int_equal(count_of("\"name\":\"prof: "), 3);
  /* a mark outside the window is left out, the list is whole */
  assert_int_equal(dump(&c, (prof_dump_options){.from_ns = 3000}), PROF_E_CHECK);
  assert_int_equal(count_of("\"name\":\"prof: level lowered\""), 0);
  assert_int_equal(count_of("\"at_ns\":"), 2);
  assert_int_equal(dump(&c, (prof_dump_options){.format = PROF_FORMAT_RAF}), PROF_OK);
  has("\"muted\":1000,\"device_full\":0,\"device_late\":0,\"device_times\":0,\"skipped\":0,"
      "\"thread_ended\":0},\"changes\":[\n  {\"at_ns\":2500,");
  capture_end(&c);
}

static void damage_is_written_and_reported(void **state) {
  (void)state;
  capture c;
  prof_i_head *const chunk = begin(&c, 453 * base_ns);
  capture_plain(chunk, CAPTURE_START, 5, 1);
  uint64_t *const words = capture_claim(chunk, 2); /* committed, and of no known type */
  words[1] = 7;
  words[0] = capture_word0(chunk, CAPTURE_START + 10);
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_E_CHECK);
  capture_end(&c);
  assert_non_null(strstr(prof_last_error(), "out.json' is written, but its self-check found: "));
  has("\"ph\":\"X\"");
  has("\"self_check\":{\"faults\":1,");
  has("\"unreadable\":1");
}

/* ---- metadata ---- */

/* The user's members stand in the head, on a line each, in place of prof's own of that name;
   readers find no control character and no <script> in them. */
static void metadata_stands_in_the_head(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 3);
  static const prof_metadata items[] = {
      {"model", "\"MiniLM \xe2\x80\xa8 </script> \xc2\x85\x7f\""},
      {"schemaVersion", "7"},
      {"a \"key\"", "{\"layers\": [6, -1.5e3, true, null],\n \"x\": {}}"},
      {"model", "1"},
      {"model", "[ ]"}};
  assert_int_equal(dump(&c, (prof_dump_options){.metadata = items, .metadata_count = 3}), PROF_OK);
  has("\"displayTimeUnit\": \"ns\",\n\"model\": \"MiniLM \\u2028 \\u003c/script> "
      "\\u0085\\u007f\",\n\"schemaVersion\": 7,\n\"a \\\"key\\\"\": {\"layers\": [6, -1.5e3, true, "
      "null],  \"x\": {}},\n"
      "\"host_name\": \"host\",\n\"baseTime");
  has_not("\"schemaVersion\": 1");
  assert_int_equal(dump(&c, (prof_dump_options){.metadata = items, .metadata_count = 5}), PROF_OK);
  has("\"model\": [ ],\n");
  assert_int_equal(count_of("\"model\""), 1);
  capture_end(&c);
}

static void json_is_told_from_what_is_not(void **state) {
  (void)state;
  static const char *const right[] = {"0",
                                      " -0 ",
                                      "1.5",
                                      "1e9",
                                      "1E-9",
                                      "12",
                                      "\"\"",
                                      "\"\\u00e9\\n\"",
                                      "\"\xc3\xa9\xf0\x9f\x98\x80\"",
                                      "[]",
                                      "[1,[2, {\"a\":[]}]]",
                                      "{}",
                                      "{\"a\" : 1 , \"b\":null}",
                                      "true",
                                      "false"};
  static const char *const wrong[] = {"",
                                      " ",
                                      "01",
                                      "1.",
                                      ".5",
                                      "+1",
                                      "1e",
                                      "-",
                                      "NaN",
                                      "Infinity",
                                      "nul",
                                      "truex",
                                      "1 2",
                                      "'a'",
                                      "\"",
                                      "\"\\x\"",
                                      "\"\\u12g4\"",
                                      "\"\n\"",
                                      "\"\xc3\"",
                                      "\"\xed\xa0\x80\"",
                                      "\"\xf4\x90\x80\x80\"",
                                      "\"\xc0\x80\"",
                                      "\"\xff\"",
                                      "[",
                                      "[1,]",
                                      "[1 2]",
                                      "{",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{a:1}",
                                      "{\"a\":1,}",
                                      "]",
                                      "\xef\xbb\xbf"
                                      "1"};
  size_t at;
  for (size_t i = 0; i < sizeof right / sizeof *right; i++)
    if (!prof_i_json_is_value(right[i], &at)) fail_msg("refused: %s, at %zu", right[i], at);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    if (prof_i_json_is_value(wrong[i], &at)) fail_msg("taken: %s", wrong[i]);
  char deep[256];
  memset(deep, '[', 64);
  memset(deep + 64, ']', 64);
  deep[128] = '\0';
  assert_true(prof_i_json_is_value(deep, &at));
  memset(deep, '[', 65);
  memset(deep + 65, ']', 65);
  deep[130] = '\0';
  assert_false(prof_i_json_is_value(deep, &at));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(metadata_stands_in_the_head),
      cmocka_unit_test(json_is_told_from_what_is_not),
      IN_FOLDER(the_head_is_as_readers_look_for_it),
      IN_FOLDER(a_scope_is_one_line),
      IN_FOLDER(times_of_every_length_are_right),
      IN_FOLDER(operators_have_ids_and_other_scopes_have_none),
      IN_FOLDER(many_sites_keep_their_own_names),
      IN_FOLDER(empty_names_get_one),
      IN_FOLDER(what_has_no_name_gets_none),
      IN_FOLDER(an_arrow_outside_of_scopes_has_marks),
      IN_FOLDER(what_overlaps_goes_to_a_row_beside),
      IN_FOLDER(a_thousand_scopes_that_overlap_have_rows),
      IN_FOLDER(what_overlaps_more_than_there_are_rows_is_left_out_and_counted),
      IN_FOLDER(a_kernel_is_tied_to_the_call_that_launched_it),
      IN_FOLDER(no_key_comes_twice),
      IN_FOLDER(calls_and_kernels_have_their_operators_id),
      IN_FOLDER(threads_of_one_number_have_rows_of_their_own),
      IN_FOLDER(a_window_keeps_what_touches_it),
      IN_FOLDER(what_was_cleared_stands_in_the_text),
      IN_FOLDER(loss_stands_in_the_text),
      IN_FOLDER(steps_of_the_budget_stand_in_the_text_and_on_the_time_line),
      IN_FOLDER(damage_is_written_and_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
