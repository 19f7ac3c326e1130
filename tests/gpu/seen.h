/* What prof has recorded, for programs that check it on a device: lines of verdicts, and what
   stands in a capture, counted by an own walk through it. Static: each program has its own copy. */
#ifndef TESTS_GPU_SEEN_H
#define TESTS_GPU_SEEN_H

#include <prof/device.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../hang_guard.h"

/* ---- verdicts: a line a check ---- */

static int failures;
static bool is_emulated; /* no device is behind the driver: its times are shown, and not judged */

static inline void put_line(const char *verdict, const char *name, const char *format,
                            va_list arguments) {
  printf("%-8s %-32s ", verdict, name);
  vprintf(format, arguments);
  putchar('\n');
  fflush(stdout);
}

/* What must hold on every machine. */
__attribute__((format(printf, 3, 4))) static inline void say(const char *name, bool is_good,
                                                             const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  put_line(is_good ? "ok" : "failed", name, format, arguments);
  va_end(arguments);
  failures += !is_good;
}

/* What a device alone can hold, or break. */
__attribute__((format(printf, 3, 4))) static inline void say_of_device(const char *name,
                                                                       bool is_good,
                                                                       const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  put_line(is_emulated ? "emulated" : is_good ? "ok" : "failed", name, format, arguments);
  va_end(arguments);
  failures += !is_good && !is_emulated;
}

__attribute__((format(printf, 2, 3))) static inline void say_skipped(const char *name,
                                                                     const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  put_line("skipped", name, format, arguments);
  va_end(arguments);
}

/* ---- recording ---- */

static inline void start_with(uint32_t level, uint32_t devices, uint32_t policy,
                              uint64_t cap_bytes) {
  const prof_options options = {.size = sizeof options,
                                .level = level,
                                .devices = devices,
                                .policy = policy,
                                .cap_bytes = cap_bytes};
  if (prof_start_with(&options) == PROF_OK) return;
  fprintf(stderr, "%s\n", prof_last_error());
  exit(2);
}

static inline prof_trace *take_trace(void) {
  prof_trace *trace = NULL;
  if (prof_get(&trace) == PROF_OK) return trace;
  fprintf(stderr, "%s\n", prof_last_error());
  exit(2);
}

/* ---- counts of a whole capture ---- */

typedef struct sums {
  uint64_t records, sides, early, captured, lost; /* sides: the device's, of scopes */
  double clock_error_us;
  char reason[160]; /* of a device without times of its own */
} sums;

static sums before; /* counts go on from check to check */

static inline sums sums_of(const prof_trace *trace) {
  prof_trace_info info = {.size = sizeof info};
  sums s;
  memset(&s, 0, sizeof s);
  prof_trace_info_get(trace, &info);
  for (uint32_t i = 0; i < info.device_count; i++) {
    prof_trace_device about = {.size = sizeof about};
    prof_trace_device_get(trace, i, &about);
    s.records += about.record_count;
    s.sides += about.scope_count;
    s.early += about.early_count;
    s.captured += about.captured_count;
    if ((double)about.clock_error_ns / 1e3 > s.clock_error_us)
      s.clock_error_us = (double)about.clock_error_ns / 1e3;
    if (about.result) memcpy(s.reason, about.reason, sizeof s.reason);
  }
  s.clock_error_us += (double)info.clock_error_ns / 1e3;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) /* those two were there */
    if (i != PROF_LOSS_OVERWRITTEN && i != PROF_LOSS_CLEARED) s.lost += info.lost_count[i];
  return s;
}

static inline sums since_before(const prof_trace *trace) {
  sums s = sums_of(trace);
  s.records -= before.records;
  s.sides -= before.sides;
  s.early -= before.early;
  s.captured -= before.captured;
  s.lost -= before.lost;
  return s;
}

/* The next check's counts begin here. Also behind a start that made another capture. */
static inline void begin_count(void) {
  prof_trace *trace = NULL;
  memset(&before, 0, sizeof before);
  if (prof_get(&trace) == PROF_OK) before = sums_of(trace);
  prof_trace_destroy(trace);
}

/* What has come once so much has, or what comes hangs. The trace is the caller's. */
static inline prof_trace *settle(uint64_t records, uint64_t sides, sums *sums_out) {
  for (unsigned naps = 0;;) {
    prof_trace *const trace = take_trace();
    *sums_out = since_before(trace);
    const bool is_all =
        sums_out->records + sums_out->lost >= records && sums_out->sides + sums_out->lost >= sides;
    if (is_all || !hang_nap(&naps)) return trace;
    prof_trace_destroy(trace);
  }
}

/* The same, and recording stops: counts of a capture that is being recorded may be ahead of its
   other contents. */
static inline prof_trace *finish(uint64_t records, uint64_t sides, sums *sums_out) {
  prof_trace_destroy(settle(records, sides, sums_out));
  prof_stop();
  prof_trace *const trace = take_trace();
  *sums_out = since_before(trace);
  return trace;
}

/* ---- event by event ---- */

/* a host's scope; the device's side of a scope; what the vendor's tracing recorded */
typedef enum kind_of_event { OF_HOST, OF_SIDE, OF_RECORD } kind_of_event;

static inline kind_of_event kind_of(const prof_event *event) {
  return !(event->flags & PROF_EVENT_ON_DEVICE) ? OF_HOST
         : event->launch.record                 ? OF_RECORD
                                                : OF_SIDE;
}

/* From the capture's start. device_ns: how long it took as the device says. stream: the handle. */
typedef struct seen {
  uint64_t start_ns, end_ns, launched_ns, device_ns, stream;
  uint32_t thread, launch_thread;
} seen;

static inline bool begins_with(const char *text, uint32_t bytes, const char *wanted) {
  return bytes >= strlen(wanted) && memcmp(text, wanted, strlen(wanted)) == 0;
}

/* Those of that kind whose name begins so, in the order of their stream or thread. How many there
   are; at most `room` are handed out. */
static inline size_t list_of(const prof_trace *trace, kind_of_event kind, const char *name,
                             seen *out, size_t room) {
  static prof_event event;
  prof_cursor *cursor = NULL;
  size_t count = 0;
  if (prof_cursor_create(trace, &cursor) != PROF_OK) return 0;
  while (prof_cursor_next(cursor, &event) == 1) {
    if (event.kind != PROF_EVENT_SCOPE || kind_of(&event) != kind ||
        !begins_with(event.name, event.name_bytes, name))
      continue;
    if (count < room)
      out[count] =
          (seen){event.start_ns,        event.start_ns + event.duration_ns,
                 event.launch.start_ns, event.launch.device_end_ns - event.launch.device_start_ns,
                 event.stream,          event.thread,
                 event.launch.thread};
    count++;
  }
  prof_cursor_destroy(cursor);
  return count;
}

static inline double us_of(const seen *it) { return (double)(it->end_ns - it->start_ns) / 1e3; }

/* Records whose name begins so: how many, and the bytes that they say together. */
typedef struct tally {
  const char *name;
  uint64_t wanted, wanted_bytes, count, bytes;
} tally;

static inline uint64_t bytes_of(const prof_event *event) {
  for (uint32_t i = 0; i < event->arg_count; i++)
    if (event->args[i].key && event->args[i].key_bytes == 5 &&
        begins_with(event->args[i].key, 5, "bytes"))
      return event->args[i].value.u64;
  return 0;
}

/* Each wanted one, no more of it and nothing else. Returns how many records are none of them. */
static inline uint64_t tally_records(const prof_trace *trace, tally *all, size_t count) {
  static prof_event event;
  prof_cursor *cursor = NULL;
  uint64_t others = 0;
  if (prof_cursor_create(trace, &cursor) != PROF_OK) return UINT64_MAX;
  while (prof_cursor_next(cursor, &event) == 1) {
    size_t i = 0;
    if (kind_of(&event) != OF_RECORD) continue;
    while (i < count && !begins_with(event.name, event.name_bytes, all[i].name)) i++;
    if (i == count) {
      others++;
      continue;
    }
    all[i].count++;
    all[i].bytes += bytes_of(&event);
  }
  prof_cursor_destroy(cursor);
  return others;
}

/* ---- what launched what ---- */

/* Of scopes of one thread, none in another, in their order: the one that stood open then. */
static inline size_t scope_at(const seen *scopes, size_t count, uint32_t thread, uint64_t ns) {
  size_t low = 0, high = count;
  while (low < high) { /* the first one that begins later */
    const size_t middle = (low + high) / 2;
    if (scopes[middle].start_ns <= ns)
      low = middle + 1;
    else
      high = middle;
  }
  return low > 0 && scopes[low - 1].thread == thread && ns <= scopes[low - 1].end_ns ? low - 1
                                                                                     : SIZE_MAX;
}

/* Arrows in the Chrome JSON of that trace that begin ("s"), or end ("f"). */
static inline size_t arrows_of(const char *json, const char *begins) {
  size_t count = 0;
  for (const char *at = json; (at = strstr(at, begins)) != NULL; at += strlen(begins)) count++;
  return count;
}

#endif
