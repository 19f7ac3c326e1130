/* What prof tells of a back end and of an event, for tests to look at. Includes what it needs of
   cmocka's. */
#ifndef TESTS_DEVICE_TOLD_H
#define TESTS_DEVICE_TOLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <prof/device.h>
#include <prof/trace.h>

static inline prof_backend_state state_of_back_end(const char *name) {
  prof_backend_state state = {.size = sizeof state};
  for (uint32_t i = 0; prof_backend_status(i, &state) == PROF_OK; i++)
    if (strcmp(state.name, name) == 0) return state;
  fail_msg("there is no back end %s", name);
  return state;
}

/* A trace's text has a length, and no NUL. */
static inline bool is_text(const char *text, uint64_t bytes, const char *wanted) {
  return bytes == strlen(wanted) && memcmp(text, wanted, bytes) == 0;
}

static inline const prof_trace_arg *arg_of(const prof_event *event, const char *key) {
  for (uint32_t i = 0; i < event->arg_count; i++)
    if (is_text(event->args[i].key, event->args[i].key_bytes, key)) return &event->args[i];
  fail_msg("there is no argument %s among %u", key, event->arg_count);
  return NULL;
}

#endif
