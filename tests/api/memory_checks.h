/* Pools and what the capture says of them, for the tests of memory.h. */
#ifndef PROF_TESTS_MEMORY_CHECKS_H
#define PROF_TESTS_MEMORY_CHECKS_H

#include <prof/memory.h>

#include "events.h"

#define AT(number) ((const void *)(uintptr_t)(number))
#define OK(call) expect_ok(call, #call)

static inline void expect_ok(int status, const char *call) {
  if (status != PROF_OK) fail_msg("%s: %s: %s", call, prof_status_name(status), prof_last_error());
}

static inline prof_pool *make_pool(const char *name) {
  prof_pool *pool = NULL;
  OK(prof_pool_create(&(prof_pool_options){.size = sizeof(prof_pool_options), .name = name},
                      &pool));
  return pool;
}

static inline prof_pool *make_checked_pool(const char *name) {
  prof_pool *pool = NULL;
  OK(prof_pool_create(
      &(prof_pool_options){.size = sizeof(prof_pool_options), .name = name, .checked = 1}, &pool));
  return pool;
}

/* Another arena each time: what an earlier test recorded is not there. */
static inline void start_afresh(uint64_t cap_bytes) {
  static uint64_t turn;
  prof_stop();
  OK(prof_start_with(&(prof_options){.size = sizeof(prof_options),
                                     .level = 1,
                                     .policy = PROF_POLICY_KEEP,
                                     .cap_bytes = cap_bytes + ++turn % 2 * 65536}));
}

static inline prof_memory_max max_of(prof_memory_source source) {
  prof_memory_max max = {.size = sizeof max};
  OK(prof_memory_max_get(PROF_HOST, source, &max));
  return max;
}

/* ---- what a capture says ---- */

typedef struct seen {
  prof_trace *trace;
  prof_memory *memory;
} seen;

static inline seen see(void) {
  seen s = {NULL, NULL};
  OK(prof_get(&s.trace));
  OK(prof_memory_read(s.trace, &s.memory));
  return s;
}

static inline void look_away(seen *s) {
  prof_memory_destroy(s->memory);
  prof_trace_destroy(s->trace);
}

static inline prof_memory_info info_of(const seen *s, const char *name) {
  prof_memory_info info = {.size = sizeof info};
  for (uint32_t i = prof_memory_pool_count(s->memory); i-- > 0;) {
    OK(prof_memory_pool_get(s->memory, i, &info));
    if (strcmp(info.name, name) == 0) return info;
  }
  fail_msg("there is no pool '%s'", name);
  return info;
}

static inline prof_memory_info info_now(const char *name) {
  seen s = see();
  const prof_memory_info info = info_of(&s, name);
  look_away(&s);
  return info;
}

#endif
