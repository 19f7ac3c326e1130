/* What the reader does with bytes that are no capture, or no longer one: a status, or what can be
   read. It never crashes and never reads outside the bytes (run under ASan), and all ways of
   reading agree with each other. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/sanitizers.h"
#include "device_capture.h"
#include "reader/internal.h"
#include "small_capture.h"
#include "trace_checks.h"

/* What is damaged. Of each: so many captures are opened, and damage is seen in so many, at
   least. */
typedef struct original {
  void (*make)(capture *c);
  uint64_t cut_opened, flipped_opened, flipped_noticed;
} original;
static original small = {small_capture, 1000, 3000, 1000},
                with_device = {device_capture, 700, 2500, 300};

static int count_spans(void *user, const prof_i_span *spans, size_t count) {
  uint64_t *const sums = user;
  for (size_t i = 0; i < count; i++) {
    sums[0]++;
    sums[1] += spans[i].duration_ns;
  }
  return 0;
}

static void read_devices(const prof_trace *trace, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    prof_trace_device device = {.size = sizeof device};
    char *text = NULL;
    assert_int_equal(prof_trace_device_get(trace, i, &device), PROF_OK);
    assert_int_equal(prof_trace_device_text(trace, i, &text), PROF_OK);
    free(text);
  }
}

/* Reads everything in every way. */
static void read_all(const prof_trace *trace) {
  static prof_event event;
  const prof_trace_info info = info_of(trace);
  uint64_t sums[2] = {0, 0}, seen = 0, durations = 0, by_thread = 0;
  for (uint32_t i = 0; i < info.thread_count; i++) {
    assert_int_equal(prof_i_trace_walk(trace, i, count_spans, sums), 0);
    by_thread += thread_of(trace, i).event_count;
  }
  read_devices(trace, info.device_count);
  prof_cursor *cursor = NULL;
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  uint64_t last_start = 0;
  uint32_t last_thread = 0;
  char text[256];
  for (int status; (status = prof_cursor_next(cursor, &event)) != 0;) {
    assert_int_equal(status, 1);
    assert_true(event.thread > last_thread || event.start_ns >= last_start);
    assert_true(event.self_ns <= event.duration_ns);
    last_thread = event.thread;
    last_start = event.start_ns;
    seen++;
    /* a collection's is the event's alone */
    if (event.kind != PROF_EVENT_MEMORY) durations += event.duration_ns;
    prof_i_format_args(&event, text, sizeof text);
  }
  prof_cursor_destroy(cursor);
  assert_int_equal(seen, info.event_count);
  assert_int_equal(by_thread, info.event_count);
  assert_int_equal(sums[0], info.event_count);
  assert_int_equal(durations, sums[1]);
  char *table = NULL;
  const prof_aggregate_options options = {.size = sizeof options, .group = 31};
  assert_int_equal(prof_trace_table(trace, &options, &table), PROF_OK);
  free(table);
}

/* Bytes with a page behind them that must not be touched. */
typedef struct guarded {
  unsigned char *pages;
  size_t room;
} guarded;

static unsigned char *guard(guarded *g, const void *bytes, size_t count) {
  unsigned char *const at = g->pages + g->room - count;
  memcpy(at, bytes, count);
  return at;
}

static guarded make_guarded(size_t bytes) {
  guarded g = {NULL, (bytes + 4095) & ~(size_t)4095};
  g.pages = mmap(NULL, g.room + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(g.pages != MAP_FAILED);
  assert_int_equal(mprotect(g.pages + g.room, 4096, PROT_NONE), 0);
  return g;
}

static void the_whole_capture_reads_clean(void **state) {
  (void)state;
  capture c;
  small_capture(&c);
  prof_trace *const trace = open_capture(&c);
  read_all(trace);
  const prof_trace_info info = info_of(trace);
  assert_int_equal(info.bad_count, 0);
  assert_int_equal(info.open_count, 2);
  assert_int_equal(info.thread_count, 3);
  /* of two: the claim of a plain record is that of the open plain scope */
  assert_int_equal(info.lost_count[PROF_LOSS_UNFINISHED], 1);
  assert_int_equal(info.lost_count[PROF_LOSS_CLEARED], 1);
  assert_int_equal(info.lost_count[PROF_LOSS_LATE], 4);
  assert_int_equal(info.clock_segments_count, 2);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void a_capture_with_a_device_reads_clean(void **state) {
  (void)state;
  capture c;
  device_capture(&c);
  prof_trace *const trace = open_capture(&c);
  read_all(trace);
  const prof_trace_info info = info_of(trace);
  assert_int_equal(info.bad_count, 0);
  assert_int_equal(info.device_count, 2);
  assert_int_equal(info.event_count, 14);
  assert_int_equal(info.thread_count, 3);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* Every front of the capture: those that end inside what is used one by one, those in the zeros
   between in steps. */
static void every_truncation_is_read_or_refused(void **state) {
  const original *const from = *state;
  capture c;
  from->make(&c);
  guarded g = make_guarded(c.count);
  uint64_t opened = 0;
  for (size_t count = 0; count <= c.count; count++) {
    bool is_used = count < 4096 && count % 8 == 0;
    for (size_t i = count > 32 ? count - 32 : 0; i < count + 32 && i < c.count && count >= 4096;
         i++)
      is_used |= c.bytes[i] != 0;
    if (!is_used && count % 509 != 0) continue;
    prof_trace *trace = NULL;
    const int status = prof_trace_open_bytes(guard(&g, c.bytes, count), count, &trace);
    assert_int_equal(status, count >= PROF_I_HEADER_BYTES ? PROF_OK : PROF_E_TRUNCATED);
    if (status != PROF_OK) continue;
    read_all(trace);
    prof_trace_destroy(trace);
    opened++;
  }
  assert_true(opened > from->cut_opened);
  munmap(g.pages, g.room + 4096);
  capture_end(&c);
}

/* Every byte in use, and the zeros between in steps; three ways to flip it. */
static void every_flipped_byte_is_read_or_refused(void **state) {
  const original *const from = *state;
  capture c;
  from->make(&c);
  guarded g = make_guarded(c.count);
  unsigned char *const bytes = guard(&g, c.bytes, c.count);
  static const unsigned char masks[] = {0xff, 0x01, 0x80};
  uint64_t opened = 0, refused = 0, noticed = 0;
  for (size_t at = 0; at < c.count; at++) {
    bool is_used = false;
    for (size_t i = at > 8 ? at - 8 : 0; i < at + 8 && i < c.count; i++) is_used |= c.bytes[i] != 0;
    if (!is_used && at % 509 != 0) continue;
    for (size_t m = 0; m < sizeof masks; m++) {
      prof_trace *trace = NULL;
      bytes[at] ^= masks[m];
      const int status = prof_trace_open_bytes(bytes, c.count, &trace);
      if (status == PROF_OK) {
        read_all(trace);
        noticed += info_of(trace).bad_count > 0;
        prof_trace_destroy(trace);
        opened++;
      } else {
        assert_true(status == PROF_E_NOT_CAPTURE || status == PROF_E_VERSION);
        refused++;
      }
      bytes[at] ^= masks[m];
    }
  }
  print_message("%llu opened, %llu of them with damage seen, %llu refused\n",
                (unsigned long long)opened, (unsigned long long)noticed,
                (unsigned long long)refused);
  assert_true(opened > from->flipped_opened);
  assert_true(noticed > from->flipped_noticed);
  assert_true(refused >= 8 * sizeof masks);
  munmap(g.pages, g.room + 4096);
  capture_end(&c);
}

/* Counts, lengths and offsets that cannot be, one by one. */
static void hostile_numbers_are_survived(void **state) {
  const original *const from = *state;
  static const uint64_t values[] = {
      0,          1,          15,         16,         255,        65535,          65536,
      UINT32_MAX, UINT64_MAX, 1ull << 63, 1ull << 59, 1ull << 60, UINT64_MAX - 7, UINT64_MAX - 63,
      0x4000,     0xffff0000};
  capture c;
  from->make(&c);
  guarded g = make_guarded(c.count);
  unsigned char *const bytes = guard(&g, c.bytes, c.count);
  for (size_t at = 0; at < c.count; at += 8) {
    bool is_used = false;
    for (size_t i = at > 8 ? at - 8 : 0; i < at + 16 && i < c.count; i++)
      is_used |= c.bytes[i] != 0;
    if (!is_used) continue;
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
      prof_trace *trace = NULL;
      memcpy(bytes + at, &values[v], 8);
      const int status = prof_trace_open_bytes(bytes, c.count, &trace);
      if (status == PROF_OK) {
        read_all(trace);
        prof_trace_destroy(trace);
      } else {
        assert_true(status == PROF_E_NOT_CAPTURE || status == PROF_E_VERSION);
      }
    }
    memcpy(bytes + at, c.bytes + at, 8);
  }
  munmap(g.pages, g.room + 4096);
  capture_end(&c);
}

static void random_damage_is_survived(void **state) {
  const original *const from = *state;
  capture c;
  from->make(&c);
  size_t used[8192], count = 0;
  for (size_t i = 8; i < c.count && count < 8192; i++)
    if (c.bytes[i] != 0) used[count++] = i;
  if (count == 0) {
    fail_msg("the capture is all zeros");
    return;
  }
  uint64_t seed = 42;
  for (int round = 0; round < (WITH_ASAN ? 1000 : 4000); round++) {
    capture d = c;
    d.bytes = aligned_alloc(4096, c.room);
    assert_non_null(d.bytes);
    memcpy(d.bytes, c.bytes, c.count);
    for (int i = 0; i <= round % 12; i++) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      d.bytes[used[(seed >> 33) % count]] ^= (unsigned char)(seed >> 20);
    }
    prof_trace *trace = NULL;
    if (prof_trace_open_bytes(d.bytes, d.count, &trace) == PROF_OK) {
      read_all(trace);
      prof_trace_destroy(trace);
    }
    free(d.bytes);
  }
  capture_end(&c);
}

static void bytes_that_are_not_aligned_are_read_too(void **state) {
  (void)state;
  capture c;
  small_capture(&c);
  unsigned char *const copy = malloc(c.count + 8);
  assert_non_null(copy);
  for (size_t shift = 1; shift < 8; shift++) {
    prof_trace *trace = NULL;
    memcpy(copy + shift, c.bytes, c.count);
    assert_int_equal(prof_trace_open_bytes(copy + shift, c.count, &trace), PROF_OK);
    read_all(trace);
    prof_trace_destroy(trace);
  }
  free(copy);
  capture_end(&c);
}

/* ---- files ---- */

static char folder[PATH_MAX];

static const char *path_of(const char *name) {
  static char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static int make_folder(void **state) {
  (void)state;
  const char *const base = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/prof-damage-XXXXXX", base ? base : "/tmp");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  return rmdir(folder);
}

static void write_file(const char *path, const void *bytes, size_t count) {
  FILE *const file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, count, file), count);
  assert_int_equal(fclose(file), 0);
}

static int open_path(const char *path) {
  prof_trace *trace = (prof_trace *)1;
  const int status = prof_trace_open(path, &trace);
  if (status == PROF_OK) {
    read_all(trace);
    prof_trace_destroy(trace);
  } else {
    assert_true(trace == (prof_trace *)1); /* a failed call leaves its output alone */
    assert_true(prof_last_error()[0] != '\0');
  }
  return status;
}

static void only_regular_files_are_opened(void **state) {
  (void)state;
  assert_int_equal(open_path(path_of("missing")), PROF_E_NOT_FOUND);
  assert_int_equal(open_path(folder), PROF_E_FILE_TYPE);
  assert_int_equal(open_path("/dev/null"), PROF_E_FILE_TYPE);
  assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
  /* and does not wait for a writer */
  assert_int_equal(open_path(path_of("fifo")), PROF_E_FILE_TYPE);
  unlink(path_of("fifo"));
  write_file(path_of("file"), "text", 4);
  assert_int_equal(open_path(path_of("file/below")), PROF_E_NOT_FOUND);
  if (geteuid() != 0) {
    assert_int_equal(chmod(path_of("file"), 0), 0);
    assert_int_equal(open_path(path_of("file")), PROF_E_PERMISSION);
  }
  unlink(path_of("file"));
}

static void files_that_are_no_captures_say_what_is_wrong(void **state) {
  (void)state;
  capture c;
  small_capture(&c);
  const char *const path = path_of("file");
  write_file(path, "", 0);
  assert_int_equal(open_path(path), PROF_E_TRUNCATED);
  write_file(path, "{\"traceEvents\": []}", 19);
  assert_int_equal(open_path(path), PROF_E_NOT_CAPTURE);
  write_file(path, "prof\n\x1a\n and more", 16); /* a line ending was converted */
  assert_int_equal(open_path(path), PROF_E_NOT_CAPTURE);
  assert_non_null(strstr(prof_last_error(), "text"));
  write_file(path, c.bytes, 5);
  assert_int_equal(open_path(path), PROF_E_TRUNCATED);
  write_file(path, c.bytes, 4095);
  assert_int_equal(open_path(path), PROF_E_TRUNCATED);
  assert_non_null(strstr(prof_last_error(), "4095"));
  capture_header(&c)->version = 9;
  write_file(path, c.bytes, c.count);
  assert_int_equal(open_path(path), PROF_E_VERSION);
  assert_non_null(strstr(prof_last_error(), "9"));
  capture_header(&c)->version = PROF_I_FORMAT_VERSION;
  write_file(path, c.bytes, c.count);
  assert_int_equal(open_path(path), PROF_OK);
  unlink(path);
  capture_end(&c);
}

/* Larger than what is read into memory: mapped. Mostly a hole. */
static void a_large_file_is_mapped(void **state) {
  (void)state;
  capture c;
  small_capture(&c);
  const char *const path = path_of("large");
  write_file(path, c.bytes, c.count);
  assert_int_equal(truncate(path, 80 << 20), 0);
  assert_int_equal(open_path(path), PROF_OK);
  unlink(path);
  capture_end(&c);
}

static void nulls_are_refused(void **state) {
  (void)state;
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  prof_trace_thread thread = {.size = sizeof thread};
  prof_cursor *cursor = NULL;
  prof_event event;
  char *text = NULL;
  assert_int_equal(prof_trace_open(NULL, &trace), PROF_E_INVALID);
  assert_int_equal(prof_trace_open("x", NULL), PROF_E_INVALID);
  assert_int_equal(prof_trace_open_bytes(NULL, 5, &trace), PROF_E_INVALID);
  assert_int_equal(prof_trace_open_bytes("x", 1, NULL), PROF_E_INVALID);
  assert_int_equal(prof_trace_info_get(NULL, &info), PROF_E_INVALID);
  assert_int_equal(prof_trace_thread_get(NULL, 0, &thread), PROF_E_INVALID);
  assert_int_equal(prof_cursor_create(NULL, &cursor), PROF_E_INVALID);
  assert_int_equal(prof_cursor_next(NULL, &event), PROF_E_INVALID);
  assert_int_equal(prof_trace_table(NULL, NULL, &text), PROF_E_INVALID);
  assert_int_equal(prof_trace_loss_text(NULL, &text), PROF_E_INVALID);
  prof_trace_destroy(NULL);
  prof_cursor_destroy(NULL);
  capture c;
  small_capture(&c);
  trace = open_capture(&c);
  assert_int_equal(prof_trace_info_get(trace, NULL), PROF_E_INVALID);
  info.size = 0;
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_E_INVALID);
  assert_int_equal(prof_trace_thread_get(trace, 0, NULL), PROF_E_INVALID);
  assert_int_equal(prof_trace_thread_get(trace, 3, &thread), PROF_E_INVALID);
  assert_int_equal(prof_cursor_create(trace, NULL), PROF_E_INVALID);
  assert_int_equal(prof_trace_table(trace, NULL, NULL), PROF_E_INVALID);
  assert_int_equal(prof_trace_loss_text(trace, NULL), PROF_E_INVALID);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void info_of_every_size_is_filled_as_far_as_it_goes(void **state) {
  (void)state;
  capture c;
  small_capture(&c);
  prof_trace *const trace = open_capture(&c);
  const prof_trace_info whole = info_of(trace);
  union {
    prof_trace_info info;
    unsigned char bytes[sizeof(prof_trace_info) + 64];
  } u;
  for (size_t size = sizeof(size_t); size <= sizeof u; size++) {
    memset(&u, 0xaa, sizeof u);
    u.info.size = size;
    assert_int_equal(prof_trace_info_get(trace, &u.info), PROF_OK);
    assert_int_equal(u.info.size, size);
    const size_t both = size < sizeof whole ? size : sizeof whole;
    assert_memory_equal(u.bytes + sizeof(size_t), (const char *)&whole + sizeof(size_t),
                        both - sizeof(size_t));
    for (size_t i = both; i < size; i++) assert_int_equal(u.bytes[i], 0);
    for (size_t i = size; i < sizeof u; i++) assert_int_equal(u.bytes[i], 0xaa);
  }
  prof_trace_destroy(trace);
  capture_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_whole_capture_reads_clean),
      cmocka_unit_test(a_capture_with_a_device_reads_clean),
      cmocka_unit_test_prestate(every_truncation_is_read_or_refused, &small),
      cmocka_unit_test_prestate(every_truncation_is_read_or_refused, &with_device),
      cmocka_unit_test_prestate(every_flipped_byte_is_read_or_refused, &small),
      cmocka_unit_test_prestate(every_flipped_byte_is_read_or_refused, &with_device),
      cmocka_unit_test_prestate(hostile_numbers_are_survived, &small),
      cmocka_unit_test_prestate(hostile_numbers_are_survived, &with_device),
      cmocka_unit_test_prestate(random_damage_is_survived, &small),
      cmocka_unit_test_prestate(random_damage_is_survived, &with_device),
      cmocka_unit_test(bytes_that_are_not_aligned_are_read_too),
      cmocka_unit_test(only_regular_files_are_opened),
      cmocka_unit_test(files_that_are_no_captures_say_what_is_wrong),
      cmocka_unit_test(a_large_file_is_mapped),
      cmocka_unit_test(nulls_are_refused),
      cmocka_unit_test(info_of_every_size_is_filled_as_far_as_it_goes),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
