/* What the tests of the reader share: opening a built capture, reading all of its events, finding
   one by its name. */
#ifndef PROF_TESTS_TRACE_CHECKS_H
#define PROF_TESTS_TRACE_CHECKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above. */
#include <cmocka.h>

#include "build_capture.h"

static CAPTURE_UNUSED prof_trace *open_capture(const capture *c) {
  prof_trace *trace = NULL;
  const int status = prof_trace_open_bytes(c->bytes, c->count, &trace);
  if (status != PROF_OK)
    fail_msg("prof_trace_open_bytes gave %s: %s", prof_status_name(status), prof_last_error());
  return trace;
}

static CAPTURE_UNUSED prof_trace_info info_of(const prof_trace *trace) {
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  return info;
}

static CAPTURE_UNUSED prof_trace_thread thread_of(const prof_trace *trace, uint32_t index) {
  prof_trace_thread thread = {.size = sizeof thread};
  assert_int_equal(prof_trace_thread_get(trace, index, &thread), PROF_OK);
  return thread;
}

typedef struct events {
  prof_event *items;
  size_t count;
} events;

/* prof_cursor_read() gives what prof_cursor_next() has given, and prof_trace_event_get() the rest
   of it, also when the cursor is gone. */
static CAPTURE_UNUSED void check_briefs(const prof_trace *trace, const events *all) {
  enum { ROOM = 100, HEAD = offsetof(prof_event, memory) };
  prof_event_brief some[ROOM] = {{.size = sizeof *some}};
  prof_cursor *cursor = NULL;
  size_t seen = 0;
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  for (int64_t count = ROOM; count == ROOM;) {
    count = prof_cursor_read(cursor, some, ROOM);
    assert_in_range(count, 0, ROOM);
    if (count < ROOM) prof_cursor_destroy(cursor); /* there is no more */
    for (int64_t i = 0; i < count; i++, seen++) {
      assert_true(seen < all->count);
      const prof_event *const event = &all->items[seen];
      prof_event whole;
      memset(&whole, 0, sizeof whole); /* as read_events() does */
      assert_int_equal(some[i].size, sizeof *some);
      assert_int_equal(memcmp(&some[i].kind, event, HEAD), 0);
      assert_int_equal(memcmp(&some[i].memory, &event->memory, sizeof event->memory), 0);
      assert_int_equal(prof_trace_event_get(trace, &some[i], &whole), PROF_OK);
      assert_int_equal(memcmp(&whole, event, sizeof whole), 0);
    }
  }
  assert_int_equal(seen, all->count);
}

static CAPTURE_UNUSED events read_events(const prof_trace *trace) {
  events all = {NULL, 0};
  size_t room = 0;
  prof_cursor *cursor = NULL;
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  for (;;) {
    if (all.count == room) {
      room = room ? room * 2 : 16;
      all.items = realloc(all.items, room * sizeof *all.items);
      assert_non_null(all.items);
    }
    memset(&all.items[all.count], 0, sizeof *all.items);
    const int status = prof_cursor_next(cursor, &all.items[all.count]);
    assert_true(status >= 0);
    if (status == 0) break;
    all.count++;
  }
  prof_cursor_destroy(cursor);
  if (all.count <= 10000) check_briefs(trace, &all); /* a walk of those takes seconds */
  return all;
}

static CAPTURE_UNUSED bool is_named(const prof_event *event, const char *name) {
  return event->name_bytes == strlen(name) && memcmp(event->name, name, event->name_bytes) == 0;
}

static CAPTURE_UNUSED const prof_event *find_event(const events *all, const char *name) {
  for (size_t i = 0; i < all->count; i++)
    if (is_named(&all->items[i], name)) return &all->items[i];
  fail_msg("no event is named %s among %zu", name, all->count);
  return NULL;
}

/* Sites 1.. with the names a, b, c...; category "cat"; odd ones of level 1. */
static CAPTURE_UNUSED prof_i_head *begin_with_sites(capture *c, uint64_t room_bytes,
                                                    uint32_t sites) {
  capture_begin(c, room_bytes);
  prof_i_head *const meta = capture_meta(c);
  for (uint32_t i = 1; i <= sites; i++) {
    const char name[] = {(char)('a' + i - 1), '\0'};
    capture_site(meta, i, name, "cat", i % 2 ? 1 : 2);
  }
  return meta;
}

/* Start, duration, self time, depth in one line; times from the capture's start. */
#define assert_event(event, start, duration, self, deep)          \
  do {                                                            \
    assert_int_equal((event)->start_ns, (uint64_t)(start));       \
    assert_int_equal((event)->duration_ns, (uint64_t)(duration)); \
    assert_int_equal((event)->self_ns, (uint64_t)(self));         \
    assert_int_equal((event)->depth, (uint32_t)(deep));           \
  } while (0)

#endif
