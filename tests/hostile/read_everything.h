/* What the tests of hostile bytes do with a trace: read all of it in every public way, and say how
   much there was. Nothing here knows what the bytes should hold; only that the ways agree and that
   no number is larger than the bytes allow. */
#ifndef PROF_TESTS_HOSTILE_READ_EVERYTHING_H
#define PROF_TESTS_HOSTILE_READ_EVERYTHING_H

#include <prof/profiler.h>
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
/* cmocka needs four of the above. */
#include <cmocka.h>

#include "api/sanitizers.h"

#if WITH_ASAN
#include <sanitizer/asan_interface.h>
#endif

/* Reads both ends, so that a sanitizer or a guard page sees where it lies: all that must not be
   read is in one piece behind the bytes. Reading each byte would make every front of a capture cost
   its length squared. */
static inline uint64_t touch(const char *text, uint64_t bytes) {
  return bytes ? (unsigned char)text[0] + (uint64_t)(unsigned char)text[bytes - 1] : 0;
}

static inline uint64_t touch_event(const prof_event *event) {
  uint64_t sum = touch(event->name, event->name_bytes) +
                 touch(event->category, event->category_bytes) +
                 touch(event->format, event->format_bytes);
  for (uint32_t i = 0; i < event->arg_count; i++) {
    const prof_trace_arg *const arg = &event->args[i];
    sum += touch(arg->key, arg->key_bytes);
    if (arg->type == PROF_ARG_STRING) sum += touch(arg->value.text.data, arg->value.text.bytes);
    for (uint32_t d = 0; arg->type == PROF_ARG_TENSOR && d < arg->value.tensor.rank; d++)
      sum += (uint64_t)arg->value.tensor.dims[d];
  }
  return sum;
}

static inline prof_trace_info info_of(const prof_trace *trace) {
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  return info;
}

/* As prof_cursor_next(), with the rest of each. Returns how many. */
static inline uint64_t read_briefs(const prof_trace *trace, volatile uint64_t *sink) {
  enum { ROOM = 64 };
  static prof_event_brief briefs[ROOM];
  static prof_event event;
  uint64_t seen = 0;
  prof_cursor *cursor = NULL;
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  briefs[0].size = sizeof *briefs;
  for (int64_t count; (count = prof_cursor_read(cursor, briefs, ROOM)) != 0;) {
    seen += (uint64_t)count;
    assert_in_range(count, 1, ROOM);
    for (int64_t i = 0; i < count; i++) {
      assert_int_equal(prof_trace_event_get(trace, &briefs[i], &event), PROF_OK);
      assert_int_equal(memcmp(&briefs[i].kind, &event, offsetof(prof_event, memory)), 0);
      *sink += touch_event(&event);
    }
  }
  prof_cursor_destroy(cursor);
  return seen;
}

/* The cursor hands out as many events as the info and the threads say, in order. */
static inline void read_events(const prof_trace *trace) {
  static prof_event event;
  static volatile uint64_t sink; /* so that nothing of it is left out */
  const prof_trace_info info = info_of(trace);
  uint64_t by_thread = 0, seen = 0, last_start = 0;
  uint32_t last_thread = 0;
  for (uint32_t i = 0; i < info.thread_count; i++) {
    prof_trace_thread thread = {.size = sizeof thread};
    assert_int_equal(prof_trace_thread_get(trace, i, &thread), PROF_OK);
    by_thread += thread.event_count;
  }
  prof_cursor *cursor = NULL;
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  for (int status; (status = prof_cursor_next(cursor, &event)) != 0; seen++) {
    assert_int_equal(status, 1);
    assert_true(event.thread > last_thread ||
                (event.thread == last_thread && event.start_ns >= last_start));
    assert_true(event.self_ns <= event.duration_ns);
    last_thread = event.thread;
    last_start = event.start_ns;
    sink += touch_event(&event);
  }
  prof_cursor_destroy(cursor);
  assert_int_equal(seen, info.event_count);
  assert_int_equal(read_briefs(trace, &sink), info.event_count);
  assert_int_equal(by_thread, info.event_count);
}

static inline void read_tables(const prof_trace *trace) {
  const prof_aggregate_options options = {
      .size = sizeof options, .group = 31, .rows_limit = UINT32_MAX};
  char *text = NULL;
  assert_int_equal(prof_trace_table(trace, &options, &text), PROF_OK);
  prof_free(text);
  assert_int_equal(prof_trace_loss_text(trace, &text), PROF_OK);
  prof_free(text);
}

/* Through every writer. What the self-check finds in damaged times is not the writer's failure. */
static inline void write_exports(const prof_trace *trace) {
  static const uint32_t formats[] = {PROF_FORMAT_CHROME,     PROF_FORMAT_RAF,   PROF_FORMAT_CAPTURE,
                                     PROF_FORMAT_PERFETTO,   PROF_FORMAT_CSV,   PROF_FORMAT_FOLDED,
                                     PROF_FORMAT_SPEEDSCOPE, PROF_FORMAT_PPROF, PROF_FORMAT_PACKED,
                                     PROF_FORMAT_SQLITE,     PROF_FORMAT_RPD};
  /* A database takes as long as all other formats together, so most calls go without. */
  enum { CALLS_A_DATABASE = 64 };
  static unsigned calls;
  const int with_databases = calls++ % CALLS_A_DATABASE == 0;
  char file[64];
  snprintf(file, sizeof file, "/dev/shm/prof-read-everything-%d", (int)getpid());
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    const prof_dump_options options = {.size = sizeof options, .format = formats[i]};
    const int is_database =
        options.format == PROF_FORMAT_SQLITE || options.format == PROF_FORMAT_RPD;
    if (is_database && !with_databases) continue;
    const int status = prof_trace_dump(trace, is_database ? file : "/dev/null", &options);
    const int has_no_library = /* zstd, SQLite */
        options.format >= PROF_FORMAT_PACKED && status == PROF_E_UNSUPPORTED;
    if (is_database) unlink(file);
    if (status != PROF_OK && status != PROF_E_CHECK && !has_no_library)
      fail_msg("format %u: %s: %s", formats[i], prof_status_name(status), prof_last_error());
  }
}

/* ---- what it cost ---- */

/* This process' time on processors: what others do meanwhile is not in it. What waits without end
   CTest's limit finds. */
static inline double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A number of /proc/self/status, in bytes; 0 when it is not there. */
static inline uint64_t memory_status(const char *field) {
  char line[256];
  uint64_t kib = 0;
  FILE *const file = fopen("/proc/self/status", "r");
  if (!file) return 0;
  while (fgets(line, sizeof line, file))
    if (strncmp(line, field, strlen(field)) == 0)
      kib = strtoull(line + strlen(field) + 1, NULL, 10);
  fclose(file);
  return kib * 1024;
}

/* From now on the peak counts. Returns what is in memory now; 0 when the kernel cannot forget an
   older peak. */
static inline uint64_t begin_peak(void) {
  FILE *const file = fopen("/proc/self/clear_refs", "w");
  if (!file) return 0;
  const int is_done = fputs("5", file) >= 0;
  return fclose(file) == 0 && is_done ? memory_status("VmRSS") : 0;
}
static inline uint64_t peak_since(uint64_t before) {
  const uint64_t peak = memory_status("VmHWM");
  return peak > before ? peak - before : 0;
}

#endif
