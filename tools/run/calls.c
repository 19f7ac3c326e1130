/* See calls.h. Each process has a row, as fibers have: one thread reads all lines. */
#define _GNU_SOURCE
#include "calls.h"

#include <prof/fiber.h>
#include <prof/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "hash.h"
#include "output.h"

/* Rows take memory. Further processes share one row. */
enum { ROWS_MAX = 1024 };

typedef struct call_key {
  run_origin origin;
  int64_t stream; /* 0 if the process is known */
} call_key;

typedef struct call_row {
  call_key key;
  prof_fiber *fiber;
  UT_hash_handle hh;
} call_row;

struct run_calls {
  char *path;
  call_row *rows, *current;
  call_row others;
  bool is_recording, has_failed;
};

run_calls *run_calls_create(const char *path) {
  run_calls *const calls = run_make(1, sizeof *calls);
  calls->path = run_text("%s", path);
  return calls;
}

static void calls_begin(run_calls *calls) {
  const prof_options options = {.size = sizeof options,
                                .level = 1,
                                .policy = PROF_POLICY_STREAM,
                                .path = run_output_escaped(calls->path)};
  calls->is_recording = prof_start_with(&options) == PROF_OK;
  calls->has_failed = !calls->is_recording;
  if (calls->has_failed)
    say("prof run: calls of libraries are not recorded as events: %s", prof_last_error());
  else
    (void)prof_process_set_name("library calls, at the time of reading");
}

/* ---- rows ---- */

static void put_row_name(char *to, size_t room, const call_key *key) {
  const long long rank = key->origin.rank, pid = key->origin.pid;
  if (rank >= 0 && pid >= 0)
    snprintf(to, room, "rank %lld, process %lld", rank, pid);
  else if (rank >= 0)
    snprintf(to, room, "rank %lld", rank);
  else if (pid >= 0)
    snprintf(to, room, "process %lld", pid);
  else
    snprintf(to, room, "%s", key->stream == 2 ? "stderr" : "stdout");
}

static call_row *make_call_row(run_calls *calls, const call_key *key) {
  char name[64];
  const bool is_other = HASH_COUNT(calls->rows) >= ROWS_MAX;
  if (is_other && calls->others.fiber) return &calls->others;
  call_row *const row = is_other ? &calls->others : run_make(1, sizeof *row);
  row->key = *key;
  put_row_name(name, sizeof name, key);
  (void)prof_fiber_create(is_other ? "other processes" : name, &row->fiber);
  if (!is_other) HASH_ADD(hh, calls->rows, key, sizeof row->key, row);
  return row;
}

static void enter_row(run_calls *calls, const run_origin *origin, int stream) {
  const bool is_known = origin->rank >= 0 || origin->pid >= 0;
  const call_key key = {*origin, is_known ? 0 : stream};
  call_row *row = calls->current;
  if (row && memcmp(&row->key, &key, sizeof key) == 0) return;
  HASH_FIND(hh, calls->rows, &key, sizeof key, row);
  if (!row) row = make_call_row(calls, &key);
  (void)prof_fiber_enter(row->fiber);
  calls->current = row;
}

/* ---- calls ---- */

static void add_number_arg(prof_arg *args, uint32_t *count, const char *key, int64_t value) {
  if (value < 0) return;
  args[(*count)++] = (prof_arg){.key = key, .type = PROF_ARG_I64, .value.i64 = value};
}

void run_calls_add(run_calls *calls, run_call_event *form, const run_origin *origin, int stream) {
  if (!calls->is_recording && !calls->has_failed) calls_begin(calls);
  if (calls->has_failed) return;
  enter_row(calls, origin, stream);
  prof_arg args[PROF_ARGS_MAX];
  uint32_t count = form->arg_count;
  memcpy(args, form->args, count * sizeof *args);
  add_number_arg(args, &count, "rank", origin->rank);
  add_number_arg(args, &count, "pid", origin->pid);
  const prof_details details = {
      .name = form->name,
      .category = form->category,
      .name_bytes = PROF_NUL_TERMINATED,
      .category_bytes = PROF_NUL_TERMINATED,
      .flags = PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL | PROF_I_NO_DURATION,
      .device = PROF_HOST,
      .args = {.items = args, .count = count, .kind = PROF_ARGS_PAIRS},
  };
  prof_i_instant_1(&form->site, &details);
}

/* ---- the end ---- */

static void report_losses(const run_calls *calls, bool is_written) {
  prof_health health = {.size = sizeof health};
  if (prof_health_get(&health) != PROF_OK) return;
  if (!is_written && health.capture_path[0])
    say("prof run: the calls are in '%s'", health.capture_path);
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    if (health.lost_count[i] > 0)
      say("prof run: '%s' lacks %llu call%s: %s", is_written ? calls->path : health.capture_path,
          (unsigned long long)health.lost_count[i], health.lost_count[i] == 1 ? "" : "s",
          prof_loss_text(i));
}

static void free_rows(run_calls *calls) {
  for (call_row *row = calls->rows, *next; row; row = next) {
    next = row->hh.next;
    HASH_DELETE(hh, calls->rows, row);
    prof_fiber_destroy(row->fiber);
    free(row);
  }
  prof_fiber_destroy(calls->others.fiber);
}

bool run_calls_finish(run_calls *calls) {
  const bool is_recording = calls->is_recording;
  bool is_written = is_recording;
  if (is_recording) {
    prof_fiber_leave();
    prof_stop();
    is_written = prof_dump(NULL) == PROF_OK;
    if (!is_written) say("prof run: cannot write '%s': %s", calls->path, prof_last_error());
    report_losses(calls, is_written);
    if (is_written) prof_clear(); /* the next run of --repeat has a capture of its own */
  }
  free_rows(calls);
  free(calls->path);
  free(calls);
  return is_written;
}
