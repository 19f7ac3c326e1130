/* A capture cut off at every length: opened, and read in every way, or refused with an error text.
   It never has more events than a longer front. If it has fewer than the whole, damage is counted.
   No open and read takes a second, and memory stays below four times the bytes and 16 MiB.

   The capture has 320 KiB, and each seventh length is read: records are of 8 bytes, so this cuts
   each of them at each place in turn. With PROF_LONG=1 it has about 1 MiB, and each length is read,
   which takes minutes.

   The front shrinks where it stands: the byte taken off is spoilt, whole pages behind it are taken
   away, and under AddressSanitizer every byte behind it is poisoned. So a read behind the end is
   seen, and nothing is copied. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "read_everything.h"

enum { HEADER_BYTES = 4096, PAGE = 4096, MIB = 1 << 20 };

static struct {
  unsigned char *bytes; /* mapped: a page more than count */
  size_t count, mapped;
} capture;

static int is_long(void) { return getenv("PROF_LONG") != NULL; }

/* ---- a capture with a little of everything ---- */

static void record_mix(int rounds) {
  static const int64_t dims[] = {32, 384};
  /* more bytes, not more records: a front is read in the time that its records take */
  const int widest = is_long() ? 4000 : 500;
  char name[4096];
  for (int i = 0; i < rounds; i++) {
    snprintf(name, sizeof name, "name %d %0*d", i, i * 37 % widest, i);
    WITH_BASE_PROFILER(PROF_HOST, "outer", "vm", PROF_NO_ARGS, {
      WITH_BASE_PROFILER(PROF_HOST, "matmul", "operator",
                         PROF_SHAPES(PROF_TENSOR(dims, 2, PROF_F32)), {});
      WITH_BASE_PROFILER(PROF_HOST, name, "named", PROF_ARGS("text", name, "i", i, "half", 0.5),
                         {});
      WITH_BASE_PROFILER(PROF_HOST, "formatted", "operator", PROF_FMT("%d of %s", i, "many"), {});
      prof_flow_begin((uint64_t)i, "flow");
      PROF_INSTANT("mark", "marks", PROF_NO_ARGS);
      PROF_COUNTER("bytes", i);
      prof_flow_end((uint64_t)i, "flow");
    });
    if (i % 16 == 0) prof_step();
  }
}

static void *record_elsewhere(void *rounds) {
  prof_thread_set_name("elsewhere");
  record_mix(*(const int *)rounds);
  return NULL;
}

/* Recorded by the library itself, two scopes still open. */
static int make_capture(void **state) {
  (void)state;
  char path[] = "/tmp/prof-truncation-XXXXXX.prof";
  pthread_t thread;
  struct stat about;
  const int others = is_long() ? 3 : 1;
  int rounds = is_long() ? 70 : 60;
  const int fd = mkstemps(path, 5);
  if (fd < 0 || prof_start(2) != PROF_OK) return -1;
  record_mix(rounds);
  for (int i = 0; i < others; i++)
    if (pthread_create(&thread, NULL, record_elsewhere, &rounds) != 0 ||
        pthread_join(thread, NULL) != 0)
      return -1;
  const uint64_t outer = prof_scope_begin(1, "still open", "x", NULL),
                 inner = prof_scope_begin(2, "and its child", "x", NULL);
  int status = prof_stop();
  if (status == PROF_OK) status = prof_dump(path);
  prof_scope_end(inner);
  prof_scope_end(outer);
  if (status != PROF_OK || stat(path, &about) != 0) return -1;
  capture.count = (size_t)about.st_size;
  capture.mapped = ((capture.count + PAGE - 1) & ~(size_t)(PAGE - 1)) + PAGE;
  capture.bytes =
      mmap(NULL, capture.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (capture.bytes == MAP_FAILED) return -1;
  close(fd);
  const int again = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t got = read(again, capture.bytes, capture.count);
  close(again);
  unlink(path);
  print_message("the capture has %zu bytes\n", capture.count);
  return got == (ssize_t)capture.count ? 0 : -1;
}

static int remove_capture(void **state) {
  (void)state;
  return munmap(capture.bytes, capture.mapped);
}

/* Takes the bytes from `count` on away. */
static void cut(size_t count) {
  capture.bytes[count] = 0xa5;
#if WITH_ASAN
  __asan_poison_memory_region(capture.bytes + count, capture.mapped - count);
#endif
  if (count % PAGE == 0) assert_int_equal(mprotect(capture.bytes + count, PAGE, PROT_NONE), 0);
}

static void uncut(void) {
#if WITH_ASAN
  __asan_unpoison_memory_region(capture.bytes, capture.mapped);
#endif
  assert_int_equal(mprotect(capture.bytes, capture.mapped, PROT_READ | PROT_WRITE), 0);
}

/* ---- the tests ---- */

static void every_length_is_read_or_refused(void **state) {
  (void)state;
  prof_trace *trace = NULL;
  assert_int_equal(prof_trace_open_bytes(capture.bytes, capture.count, &trace), PROF_OK);
  const prof_trace_info whole = info_of(trace);
  read_events(trace);
  read_tables(trace);
  write_exports(trace);
  prof_trace_destroy(trace);
  assert_int_equal(whole.bad_count, 0);
  assert_int_equal(whole.open_count, 2);
  assert_true(whole.event_count > 500);

  const uint64_t memory_before = begin_peak();
  const size_t step = is_long() ? 1 : 7;
  uint64_t events = whole.event_count, opened = 0, refused = 0, silent = 0, grown = 0;
  size_t silent_at = 0;
  for (size_t count = capture.count; count > 0;) {
    count -= count > HEADER_BYTES + step ? step : 1;
    cut(count);
    trace = NULL;
    const int status = prof_trace_open_bytes(capture.bytes, count, &trace);
    assert_int_equal(status, count >= HEADER_BYTES ? PROF_OK : PROF_E_TRUNCATED);
    if (status != PROF_OK) {
      assert_null(trace);
      char bytes_text[32];
      snprintf(bytes_text, sizeof bytes_text, "%zu bytes", count);
      assert_non_null(strstr(prof_last_error(), bytes_text));
      refused++;
    } else {
      const prof_trace_info info = info_of(trace);
      if (info.event_count > events) grown++;
      events = info.event_count;
      if (info.event_count < whole.event_count && info.bad_count == 0) {
        silent++;
        silent_at = count;
      }
      read_events(trace);
      if (count % 61 == 0) read_tables(trace);
      if (count % 1021 == 0) write_exports(trace);
      prof_trace_destroy(trace);
      opened++;
    }
  }
  const uint64_t memory = peak_since(memory_before),
                 memory_max = 4 * capture.count + 16 * (uint64_t)MIB;
  uncut();
  print_message("%llu opened, %llu refused, %.1f MiB at most\n", (unsigned long long)opened,
                (unsigned long long)refused, (double)memory / MIB);
  assert_true(opened >= (capture.count - HEADER_BYTES) / step);
  assert_int_equal(refused, HEADER_BYTES);
  if (grown) fail_msg("%llu times a shorter front had more events", (unsigned long long)grown);
  if (silent)
    fail_msg("%llu lengths lack events and count no damage, the least %zu bytes",
             (unsigned long long)silent, silent_at);
  if (memory_before && !WITH_ASAN && !WITH_TSAN && memory > memory_max)
    fail_msg("%llu bytes of memory, not more than %llu", (unsigned long long)memory,
             (unsigned long long)memory_max);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_length_is_read_or_refused)};
  return cmocka_run_group_tests_name("truncation", tests, make_capture, remove_capture);
}
