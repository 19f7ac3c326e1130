/* The public calls of test_call_step.c: each is interrupted, and a handler makes each. */
#ifndef PROF_TESTS_FAULT_CALLS_H
#define PROF_TESTS_FAULT_CALLS_H

#include <prof/device.h>
#include <prof/memory.h>
#include <prof/op.h>
#include <prof/profiler.h>
#include <prof/sampler.h>
#include <prof/trace.h>
#include <string.h>

#include "captures.h"

static prof_trace *kept_trace;
static prof_memory *kept_memory;
static prof_pool *kept_pool, *checked_pool;
static char output[CAPTURE_PATH_MAX];

static int start_to(const char *path, uint64_t mib, uint32_t helper_thread) {
  const prof_options options = {
      .size = sizeof options, .path = path, .cap_bytes = mib << 20, .helper_thread = helper_thread};
  return prof_start_with(&options);
}

static int query(void *user, uint64_t *used_bytes_out, uint64_t *allocated_bytes_out) {
  (void)user;
  *used_bytes_out = *allocated_bytes_out = 1 << 20;
  return 0;
}

static int do_start(void) { return prof_start(1); }
static int do_start_at_2(void) { return prof_start(2); }
static int do_start_other(void) { return start_to(NULL, 3, 0); }
static int do_start_file(void) { return start_to(output, 4, 0); }
static int do_start_helper(void) { return start_to(output, 5, 1); }
static int do_want(void) {
  const int status = prof_level_want(&kept_pool, 2);
  return status == PROF_OK ? prof_level_want(&kept_pool, 0) : status;
}
static int do_get(void) {
  prof_trace *trace = NULL;
  const int status = prof_get(&trace);
  if (status == PROF_OK) prof_trace_destroy(trace);
  return status;
}
static int do_get_duration(void) {
  uint64_t ns, count;
  return prof_get_duration("scope", NULL, &ns, &count);
}
static int do_get_json(void) {
  char *text = NULL;
  const int status = prof_get_json(&text, NULL);
  prof_free(text);
  return status;
}
static int do_dump(void) { return prof_dump(captures_path("dump.json")); }
static int do_dump_raf(void) {
  const prof_dump_options options = {.size = sizeof options, .format = PROF_FORMAT_RAF};
  return prof_dump_with(captures_path("dump.json"), &options);
}
static int do_dump_capture(void) { return prof_dump(captures_path("dump.prof.out")); }
static int do_health(void) {
  prof_health health = {.size = sizeof health};
  return prof_health_get(&health);
}
static int do_mute(void) {
  const int status = prof_mute("muted", NULL, 1);
  return status == PROF_OK ? prof_mute("muted", NULL, 0) : status;
}
static int do_memory_max(void) {
  prof_memory_max max = {.size = sizeof max};
  return prof_memory_max_get(PROF_HOST, PROF_MEMORY_ANY, &max);
}
static int do_pool(void) {
  const prof_pool_options options = {.size = sizeof options, .name = "another", .checked = 1};
  prof_pool *pool = NULL;
  const int status = prof_pool_create(&options, &pool);
  if (status == PROF_OK) prof_pool_destroy(pool);
  return status;
}
static int do_alloc(void) {
  int piece;
  prof_memory_alloc(kept_pool, &piece, 64, 64);
  prof_memory_free(kept_pool, &piece, 64);
  return PROF_OK;
}
static int do_checked_alloc(void) {
  int piece;
  prof_memory_alloc(checked_pool, &piece, 64, 64);
  prof_memory_free(checked_pool, &piece, 64);
  return PROF_OK;
}
/* Pools may be of another capture by now. */
static int do_memory_oom(void) {
  const int status = prof_memory_oom(PROF_HOST, 4096);
  return status == PROF_E_NOT_FOUND ? PROF_E_NOT_RUNNING : status;
}
static int do_set_query(void) { return prof_memory_set_query(PROF_HOST, query, NULL); }
static int do_sample(void) {
  prof_memory_sample(PROF_HOST, "tag", PROF_NUL_TERMINATED);
  return PROF_OK;
}
static int do_names(void) {
  int status = prof_process_set_name("process");
  if (status == PROF_OK) status = prof_thread_set_name("thread");
  if (status == PROF_OK) status = prof_track_set_name(PROF_HOST, 7, "track");
  return status == PROF_OK ? prof_rank_set(0, 1) : status;
}
/* Of its own: the handler's calls use captures_path()'s. */
static char kept_path[1024];
static int do_open(void) {
  prof_trace *trace = NULL;
  const int status = prof_trace_open(kept_path, &trace);
  if (status == PROF_OK) prof_trace_destroy(trace);
  return status;
}
static int do_table(void) {
  char *text = NULL;
  const int status = prof_trace_table(kept_trace, NULL, &text);
  prof_free(text);
  return status;
}
static int do_memory_text(void) {
  char *text = NULL;
  const int status = prof_memory_text(kept_memory, NULL, &text);
  prof_free(text);
  return status;
}
static int do_read_memory(void) {
  prof_memory *memory = NULL;
  const int status = prof_memory_read(kept_trace, &memory);
  if (status == PROF_OK) prof_memory_destroy(memory);
  return status;
}
/* What reads a trace, and allocates for it. */
static int do_cursor(void) {
  prof_cursor *cursor = NULL;
  prof_event event;
  int status = prof_cursor_create(kept_trace, &cursor);
  if (status != PROF_OK) return status;
  do {
    status = prof_cursor_next(cursor, &event);
  } while (status == 1);
  prof_cursor_destroy(cursor);
  return status;
}
static int do_texts(void) {
  char *text = NULL;
  int status = prof_trace_loss_text(kept_trace, &text);
  prof_free(text);
  text = NULL;
  if (status == PROF_OK) status = prof_trace_frame_text(kept_trace, 0, &text);
  prof_free(text);
  return status;
}
static int do_live(void) {
  prof_memory_rows *rows = NULL;
  int64_t used[8], allocated[8];
  int status = prof_memory_live(kept_memory, 0, PROF_MEMORY_AT_END, 0, PROF_MEMORY_BY_SCOPE, &rows);
  if (status == PROF_OK) prof_free(rows);
  return status == PROF_OK ? prof_memory_series(kept_memory, 0, 8, used, allocated) : status;
}
static int do_picture(void) {
  return prof_memory_svg_dump(kept_memory, 0, captures_path("picture.svg"));
}
static int do_samples_text(void) {
  char *text = NULL;
  const int status = prof_memory_trace_text(kept_trace, PROF_HOST, &text);
  prof_free(text);
  return status;
}
static int do_sampler(void) {
  prof_sampler_state state = {.size = sizeof state};
  return prof_sampler_get(&state);
}
static int do_back_end(void) {
  prof_backend_state state = {.size = sizeof state};
  return prof_backend_status(1000, &state);
}
static int do_cache(void) { return prof_op_cache_open(NULL); }
static int do_scopes(void) {
  for (int i = 0; i < 3; i++)
    WITH_BASE_PROFILER(PROF_HOST, "scope", "call step", PROF_ARGS("i", i), {});
  prof_scope_end(prof_scope_begin(1, "by call", "call step", NULL));
  return PROF_OK;
}

static int scene_stop_file(void) { return prof_stop(); }

typedef struct call {
  const char *name;
  int (*act)(void);
  int other; /* a status that is right as well, beside PROF_OK and PROF_E_BUSY */
} call;

/* Statuses that depend on what the interrupted call has done so far. */
#define CALLS(X)                                         \
  X(health, do_health, PROF_OK)                          \
  X(start, do_start, PROF_OK)                            \
  X(clear, prof_clear, PROF_OK)                          \
  X(mute, do_mute, PROF_E_NOT_FOUND)                     \
  X(start_at_2, do_start_at_2, PROF_OK)                  \
  X(want, do_want, PROF_OK)                              \
  X(memory_start, prof_memory_start, PROF_OK)            \
  X(pool, do_pool, PROF_OK)                              \
  X(alloc, do_alloc, PROF_OK)                            \
  X(checked_alloc, do_checked_alloc, PROF_OK)            \
  X(set_query, do_set_query, PROF_OK)                    \
  X(sample, do_sample, PROF_OK)                          \
  X(memory_max, do_memory_max, PROF_E_NOT_FOUND)         \
  X(memory_oom, do_memory_oom, PROF_E_NOT_RUNNING)       \
  X(memory_reset, prof_memory_reset, PROF_E_NOT_RUNNING) \
  X(get, do_get, PROF_E_NOT_RUNNING)                     \
  X(get_duration, do_get_duration, PROF_E_NOT_RUNNING)   \
  X(get_json, do_get_json, PROF_E_NOT_RUNNING)           \
  X(dump, do_dump, PROF_E_NOT_RUNNING)                   \
  X(dump_raf, do_dump_raf, PROF_E_NOT_RUNNING)           \
  X(dump_capture, do_dump_capture, PROF_E_NOT_RUNNING)   \
  X(names, do_names, PROF_OK)                            \
  X(memory_stop, prof_memory_stop, PROF_E_NOT_RUNNING)   \
  X(stop, prof_stop, PROF_E_NOT_RUNNING)                 \
  X(start_other, do_start_other, PROF_E_RUNNING)         \
  X(start_file, do_start_file, PROF_E_RUNNING)           \
  X(start_helper, do_start_helper, PROF_E_RUNNING)       \
  X(stop_file, scene_stop_file, PROF_E_NOT_RUNNING)      \
  X(open, do_open, PROF_OK)                              \
  X(table, do_table, PROF_OK)                            \
  X(read_memory, do_read_memory, PROF_OK)                \
  X(memory_text, do_memory_text, PROF_OK)                \
  X(cursor, do_cursor, PROF_OK)                          \
  X(texts, do_texts, PROF_OK)                            \
  X(live, do_live, PROF_OK)                              \
  X(picture, do_picture, PROF_OK)                        \
  X(samples_text, do_samples_text, PROF_E_NOT_FOUND)     \
  X(sampler, do_sampler, PROF_OK)                        \
  X(back_end, do_back_end, PROF_E_NOT_FOUND)             \
  X(cache, do_cache, PROF_OK)                            \
  X(scopes, do_scopes, PROF_OK)

static const call calls[] = {
#define CALL(name, act, other) {#name, act, other},
    CALLS(CALL)
#undef CALL
};
enum { CALL_COUNT = sizeof calls / sizeof *calls };

#endif
