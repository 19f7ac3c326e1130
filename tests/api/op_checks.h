/* Operators, timers that say what a test wants, and results made of scripted samples: for the tests
   of op.h. */
#ifndef PROF_TESTS_OP_CHECKS_H
#define PROF_TESTS_OP_CHECKS_H

#include <dirent.h>
#include <math.h>
#include <prof/memory.h>
#include <prof/op.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h> /* last: it needs the ones before */
#include "../fault/support/skip.h"

/* ---- an operator that tells what was done with it ---- */

typedef struct subject {
  int prepared, runs, cleaned, asked;
  int fail_prepare, fail_run_at, fail_workspace; /* codes; of the run with that number, from 1 */
  uint64_t workspace_bytes, asks_for_bytes;
} subject;

static inline int prepare(void *user) {
  subject *const s = user;
  s->prepared++;
  return s->fail_prepare;
}
static inline int run(void *user) {
  subject *const s = user;
  if (s->prepared - s->cleaned != 1) return 99;
  s->runs++;
  /* half, then all of it, then half again and a little: the peak is all of it */
  if (s->asks_for_bytes) {
    prof_op_workspace_alloc(s->asks_for_bytes / 2);
    prof_op_workspace_alloc(s->asks_for_bytes / 2);
    prof_op_workspace_free(s->asks_for_bytes / 2);
    prof_op_workspace_alloc(1);
    prof_op_workspace_free(s->asks_for_bytes / 2 + 1);
  }
  return s->runs == s->fail_run_at ? 7 : 0;
}
static inline int workspace(void *user, uint64_t *bytes_out) {
  subject *const s = user;
  s->asked++;
  *bytes_out = s->workspace_bytes;
  return s->fail_workspace;
}
static inline void clean_up(void *user) { ((subject *)user)->cleaned++; }

static inline prof_op op_of(subject *s, const char *key) {
  return (prof_op){.size = sizeof(prof_op),
                   .key = key,
                   .user = s,
                   .prepare = prepare,
                   .run = run,
                   .cleanup = clean_up};
}

/* ---- a timer that says what the test wants ---- */

typedef struct script {
  const double *us;
  size_t count, next;
  int begun, ended;
  int fail_at; /* the end with that number */
} script;

enum { COLD_BYTES = 128 << 10, TIMER_LOOKS = 64 }; /* at what it may be wrong by: 0.001 us */

static inline int script_begin(void *user) {
  ((script *)user)->begun++;
  return 0;
}
static inline int script_end(void *user, double *us_out) {
  script *const s = user;
  s->ended++;
  *us_out = s->ended <= TIMER_LOOKS ? 0.001 : s->us[s->next++ % s->count];
  return s->ended == s->fail_at ? 5 : 0;
}
static inline prof_op_timer timer_of(script *s) {
  return (prof_op_timer){.size = sizeof(prof_op_timer),
                         .name = "script",
                         .user = s,
                         .begin = script_begin,
                         .end = script_end};
}

static inline prof_op_info info_of(const prof_op_result *result) {
  prof_op_info info = {.size = sizeof info};
  assert_int_equal(prof_op_info_get(result, &info), PROF_OK);
  return info;
}

/* All samples as scripted, one run each. */
static inline prof_op_result *measured(const char *key, const double *us, size_t count) {
  subject s = {0};
  script times = {.us = us, .count = count};
  const prof_op op = op_of(&s, key);
  const prof_op_timer timer = timer_of(&times);
  const prof_op_options options = {.size = sizeof options,
                                   .no_warmup = 1,
                                   .exec = 1,
                                   .repeat = (int32_t)count,
                                   .repeat_all = 1,
                                   .no_reuse = 1,
                                   .timer = &timer};
  prof_op_result *result = NULL;
  if (prof_op_profile(&op, &options, &result) != PROF_OK) fail_msg("%s", prof_last_error());
  assert_int_equal(times.begun, times.ended);
  assert_int_equal(s.runs, count);
  return result;
}

static inline int clean(void **state) {
  (void)state;
  prof_op_cache_reset(NULL);
  return 0;
}

static inline int nap(void *user) {
  (void)user;
  usleep(2000);
  return 0;
}

static inline int nothing(void *user) {
  ++*(volatile int *)user;
  return 0;
}

static inline void refuse(const prof_op *op, const prof_op_options *options, int status,
                          const char *text) {
  prof_op_result *result = (prof_op_result *)1;
  assert_int_equal(prof_op_profile(op, options, &result), status);
  assert_null(result);
  if (!strstr(prof_last_error(), text)) fail_msg("'%s' has no '%s'", prof_last_error(), text);
  assert_int_equal(prof_op_cache_count(NULL), 0); /* nothing is kept of it */
}

#endif
