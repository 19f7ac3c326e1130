/* What the own capture holds, copied out so that a test can ask by name. For C and C++; a test
   program includes it once. A capture of more than EVENTS_MAX events is a mistake of the test. */
#ifndef PROF_TEST_API_EVENTS_H
#define PROF_TEST_API_EVENTS_H

#include <inttypes.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif
#include <cmocka.h>
#ifdef __cplusplus
}
#endif

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

enum { EVENTS_MAX = 4096, EVENT_TEXT_BYTES = 512 };

typedef struct seen_event {
  prof_event e; /* its texts live until the next events_read() */
  char name[EVENT_TEXT_BYTES];
  char category[EVENT_TEXT_BYTES];
  /* "count=i:3 ratio=f:0.5": key, the type's letter, value; see events_put_arg() */
  char args[EVENT_TEXT_BYTES];
} seen_event;

static struct {
  prof_trace *trace;
  seen_event items[EVENTS_MAX];
  size_t count;
} events;

/* ---- statuses ---- */

static inline void events_assert_status(const char *what, int status, int wanted, const char *file,
                                        int line) {
  if (status == wanted) return;
  print_error("%s is %s, not %s; last error: %s\n", what, prof_status_name(status),
              prof_status_name(wanted), prof_last_error());
  _fail(file, line);
}
#define assert_status(expression, wanted) \
  events_assert_status(#expression, (expression), (wanted), __FILE__, __LINE__)

/* The last error's text must hold the value. */
static inline void events_assert_error_has(const char *value, const char *file, int line) {
  if (strstr(prof_last_error(), value)) return;
  print_error("'%s' is not in the last error: '%s'\n", value, prof_last_error());
  _fail(file, line);
}
#define assert_error_has(value) events_assert_error_has((value), __FILE__, __LINE__)

/* ---- events ---- */

static inline void events_append(char *to, const char *from, size_t bytes) {
  const size_t used = strlen(to), room = EVENT_TEXT_BYTES - 1 - used;
  const size_t count = bytes < room ? bytes : room;
  if (count) memcpy(to + used, from, count);
  to[used + count] = '\0';
}

static inline void events_put_arg(char *to, const prof_trace_arg *arg) {
  char text[EVENT_TEXT_BYTES] = "";
  if (to[0]) events_append(to, " ", 1);
  if (arg->key && arg->key_bytes) {
    events_append(to, arg->key, arg->key_bytes);
    events_append(to, "=", 1);
  }
  switch (arg->type) {
    case PROF_ARG_I64:
      snprintf(text, sizeof text, "i:%" PRId64, arg->value.i64);
      break;
    case PROF_ARG_U64:
      snprintf(text, sizeof text, "u:%" PRIu64, arg->value.u64);
      break;
    case PROF_ARG_F64:
      snprintf(text, sizeof text, "f:%g", arg->value.f64);
      break;
    case PROF_ARG_BOOL:
      snprintf(text, sizeof text, "b:%" PRIu64, arg->value.u64);
      break;
    case PROF_ARG_POINTER:
      snprintf(text, sizeof text, "p:%" PRIx64, arg->value.u64);
      break;
    case PROF_ARG_STRING:
      events_append(to, "s:", 2);
      events_append(to, arg->value.text.data, arg->value.text.bytes);
      break;
    case PROF_ARG_TENSOR:
      snprintf(text, sizeof text, "t:%x[", arg->value.tensor.dtype);
      for (uint32_t i = 0; i < arg->value.tensor.rank; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, i ? ",%" PRId64 : "%" PRId64,
                 arg->value.tensor.dims[i]);
      }
      events_append(text, "]", 1);
      break;
    default:
      snprintf(text, sizeof text, "type %u", arg->type);
  }
  events_append(to, text, strlen(text));
}

/* Reads the own capture; whatever stood in `events` before is gone. */
static inline void events_read(void) {
  prof_cursor *cursor = 0;
  int more;
  prof_trace_destroy(events.trace);
  events.trace = 0;
  events.count = 0;
  assert_status(prof_get(&events.trace), PROF_OK);
  assert_status(prof_cursor_create(events.trace, &cursor), PROF_OK);
  seen_event *seen = events.items;
  while ((more = prof_cursor_next(cursor, &seen->e)) == 1) {
    assert_true(events.count + 1 < EVENTS_MAX);
    seen->name[0] = seen->category[0] = seen->args[0] = '\0';
    events_append(seen->name, seen->e.name, seen->e.name_bytes);
    events_append(seen->category, seen->e.category, seen->e.category_bytes);
    for (uint32_t i = 0; i < seen->e.arg_count; i++) events_put_arg(seen->args, &seen->e.args[i]);
    seen = &events.items[++events.count];
  }
  prof_cursor_destroy(cursor);
  assert_status(more, PROF_OK);
}

/* A fresh, empty capture in memory at this level. */
static inline void events_record(int level) {
  if (prof_level() != 0) prof_stop();
  assert_status(prof_clear(), PROF_OK);
  assert_status(prof_start(level), PROF_OK);
}

static inline void events_stop_and_read(void) {
  assert_status(prof_stop(), PROF_OK);
  events_read();
}

static inline size_t events_count_of(const char *name) {
  size_t count = 0;
  for (size_t i = 0; i < events.count; i++) count += strcmp(events.items[i].name, name) == 0;
  return count;
}

static inline void events_print(void) {
  for (size_t i = 0; i < events.count; i++) {
    const seen_event *const s = &events.items[i];
    print_error("  kind %u name '%s' category '%s' args '%s' level %u depth %u start %" PRIu64
                " ns, duration %" PRIu64 " ns\n",
                s->e.kind, s->name, s->category, s->args, s->e.level, s->e.depth, s->e.start_ns,
                s->e.duration_ns);
  }
}

static inline void events_assert_count(const char *name, size_t wanted, const char *file,
                                       int line) {
  const size_t count = events_count_of(name);
  if (count == wanted) return;
  print_error("%zu events are named '%s', not %zu; the capture holds:\n", count, name, wanted);
  events_print();
  _fail(file, line);
}
/* So many events have the name. */
#define assert_events(name, wanted) events_assert_count((name), (wanted), __FILE__, __LINE__)

static inline const seen_event *events_only(const char *name, const char *file, int line) {
  events_assert_count(name, 1, file, line);
  for (size_t i = 0; i < events.count; i++)
    if (strcmp(events.items[i].name, name) == 0) return &events.items[i];
  return 0;
}
/* The one event of the name. */
#define only_event(name) events_only((name), __FILE__, __LINE__)

/* All that was recorded has been named, and nothing was lost. */
static inline void events_assert_all(size_t wanted, const char *file, int line) {
  prof_health health;
  memset(&health, 0, sizeof health);
  health.size = sizeof health;
  assert_status(prof_health(&health), PROF_OK);
  uint64_t lost = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    lost += i == PROF_LOSS_CLEARED ? 0 : health.lost_count[i];
  if (events.count == wanted && health.recorded_count == wanted && lost == 0) return;
  print_error("%zu events are read, %" PRIu64 " recorded, %" PRIu64
              " lost; wanted are %zu and no loss:\n",
              events.count, health.recorded_count, lost, wanted);
  events_print();
  _fail(file, line);
}
#define assert_event_total(wanted) events_assert_all((wanted), __FILE__, __LINE__)

/* Begins before, ends after. */
static inline int events_holds(const seen_event *outer, const seen_event *inner) {
  return outer->e.thread == inner->e.thread && outer->e.start_ns <= inner->e.start_ns &&
         outer->e.start_ns + outer->e.duration_ns >= inner->e.start_ns + inner->e.duration_ns;
}

#endif
