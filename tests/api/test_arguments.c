/* What the public functions do with NULL, with structs of every size, and with values out of range.
   Each returns a status and a text with the value in it, and leaves everything as it was before. */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "events.h"

static char folder[] = "/tmp/prof-arguments-XXXXXX";
static char path[sizeof folder + 32];

/* ---- the state must stay as it was ---- */

typedef struct standing {
  int level;
  uint64_t recorded_count, cap_bytes;
  uint32_t policy, clock;
} standing;

static standing look(void) {
  prof_health health = {.size = sizeof health};
  assert_status(prof_health(&health), PROF_OK);
  standing now;
  memset(&now, 0, sizeof now); /* compared as bytes, padding and all */
  now.level = prof_level();
  now.recorded_count = health.recorded_count;
  now.cap_bytes = health.cap_bytes;
  now.policy = health.policy;
  now.clock = health.clock;
  return now;
}

static void assert_same(const standing *before, const char *what) {
  const standing now = look();
  if (memcmp(&now, before, sizeof now) == 0) return;
  fail_msg("%s changed the state: level %d to %d, recorded %" PRIu64 " to %" PRIu64 ", cap %" PRIu64
           " to %" PRIu64 ", policy %u to %u",
           what, before->level, now.level, before->recorded_count, now.recorded_count,
           before->cap_bytes, now.cap_bytes, before->policy, now.policy);
}

/* ---- NULL ---- */

static prof_trace *trace;
static prof_cursor *cursor;

/* expression, status */
#define NULL_CALLS(X)                                                                         \
  X(prof_get(NULL), PROF_E_INVALID)                                                           \
  X(prof_get_json(NULL, NULL), PROF_E_INVALID)                                                \
  X(prof_dump(NULL), PROF_E_INVALID)                                                          \
  X(prof_dump_with(NULL, NULL), PROF_E_INVALID)                                               \
  X(prof_health(NULL), PROF_E_INVALID)                                                        \
  X(prof_get_duration(NULL, NULL, NULL, NULL), PROF_OK)                                       \
  X(prof_process_set_name(NULL), PROF_E_INVALID)                                              \
  X(prof_thread_set_name(NULL), PROF_E_INVALID)                                               \
  X(prof_track_set_name(PROF_HOST, 0, NULL), PROF_E_INVALID)                                  \
  X(prof_trace_open(NULL, &opened), PROF_E_INVALID)                                           \
  X(prof_trace_open(path, NULL), PROF_E_INVALID)                                              \
  X(prof_trace_open(NULL, NULL), PROF_E_INVALID)                                              \
  X(prof_trace_open_bytes(NULL, 0, &opened), PROF_E_INVALID)                                  \
  X(prof_trace_open_bytes(NULL, 4096, &opened), PROF_E_INVALID)                               \
  X(prof_trace_open_bytes(path, sizeof path, NULL), PROF_E_INVALID)                           \
  X(prof_trace_info_get(NULL, &info), PROF_E_INVALID)                                         \
  X(prof_trace_info_get(trace, NULL), PROF_E_INVALID)                                         \
  X(prof_trace_thread_get(NULL, 0, &thread), PROF_E_INVALID)                                  \
  X(prof_trace_thread_get(trace, 0, NULL), PROF_E_INVALID)                                    \
  X(prof_trace_thread_get(trace, UINT32_MAX, &thread), PROF_E_INVALID)                        \
  X(prof_cursor_create(NULL, &walker), PROF_E_INVALID)                                        \
  X(prof_cursor_create(trace, NULL), PROF_E_INVALID)                                          \
  X(prof_cursor_next(NULL, &event), PROF_E_INVALID)                                           \
  X(prof_cursor_next(cursor, NULL), PROF_E_INVALID)                                           \
  X(prof_trace_aggregate(NULL, NULL, &rows), PROF_E_INVALID)                                  \
  X(prof_trace_aggregate(trace, NULL, NULL), PROF_E_INVALID)                                  \
  X(prof_trace_table(NULL, NULL, &text), PROF_E_INVALID)                                      \
  X(prof_traces_aggregate(NULL, 1, NULL, &rows), PROF_E_INVALID)                              \
  X(prof_traces_aggregate((const prof_trace *const *)&trace, 0, NULL, &rows), PROF_E_INVALID) \
  X(prof_traces_aggregate((const prof_trace *const *)&trace, 1, NULL, NULL), PROF_E_INVALID)  \
  X(prof_traces_table(NULL, 1, NULL, &text), PROF_E_INVALID)                                  \
  X(prof_traces_table((const prof_trace *const *)&trace, 0, NULL, &text), PROF_E_INVALID)     \
  X(prof_traces_table((const prof_trace *const *)&trace, 1, NULL, NULL), PROF_E_INVALID)      \
  X(prof_trace_table(trace, NULL, NULL), PROF_E_INVALID)                                      \
  X(prof_trace_loss_text(NULL, &text), PROF_E_INVALID)                                        \
  X(prof_trace_site_get(NULL, 0, &site), PROF_E_INVALID)                                      \
  X(prof_trace_site_get(trace, 0, NULL), PROF_E_INVALID)                                      \
  X(prof_trace_site_get(trace, UINT32_MAX, &site), PROF_E_INVALID)                            \
  X(prof_trace_frame_text(NULL, 0, &text), PROF_E_INVALID)                                    \
  X(prof_trace_frame_text(trace, 0, NULL), PROF_E_INVALID)                                    \
  X(prof_trace_loss_text(trace, NULL), PROF_E_INVALID)                                        \
  X(prof_trace_dump(NULL, path, NULL), PROF_E_INVALID)                                        \
  X(prof_trace_dump(trace, NULL, NULL), PROF_E_INVALID)

static void null_is_refused_or_ignored(void **state) {
  (void)state;
  prof_trace *opened = NULL;
  prof_cursor *walker = NULL;
  prof_rows *rows = NULL;
  char *text = NULL;
  prof_event event;
  prof_trace_info info = {.size = sizeof info};
  prof_trace_thread thread = {.size = sizeof thread};
  prof_trace_site site = {.size = sizeof site};
  events_record(2);
  prof_step();
  assert_status(prof_get(&trace), PROF_OK);
  assert_status(prof_cursor_create(trace, &cursor), PROF_OK);
  for (int recording = 1; recording >= 0; recording--) {
    const standing before = look();
#define TRY(expression, wanted)                            \
  assert_status(expression, wanted);                       \
  if ((wanted) != PROF_OK && prof_last_error()[0] == '\0') \
    fail_msg("%s has no text", #expression);               \
  assert_same(&before, #expression);
    NULL_CALLS(TRY)
#undef TRY
    assert_null(opened);
    assert_null(walker);
    assert_null(rows);
    assert_null(text);
    prof_free(NULL);
    prof_trace_destroy(NULL);
    prof_cursor_destroy(NULL);
    prof_rows_destroy(NULL);
    prof_scope_end(0);
    assert_int_equal(prof_scope_begin_at(NULL, NULL, NULL), 0);
    assert_same(&before, "a call with nothing to do");
    if (recording) assert_status(prof_stop(), PROF_OK);
  }
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
}

/* Names, formats, keys and values may be missing: the others are recorded. */
static void missing_texts_are_empty(void **state) {
  (void)state;
  static const prof_tensor no_dims = {NULL, 3, PROF_F32};
  static const prof_arg hollow[] = {{NULL, PROF_ARG_STRING, PROF_NUL_TERMINATED, {.text = NULL}},
                                    {NULL, PROF_ARG_STRING, 100, {.text = NULL}},
                                    {NULL, PROF_ARG_TENSOR, 0, {.tensor = NULL}},
                                    {NULL, PROF_ARG_TENSOR, 0, {.tensor = &no_dims}},
                                    {NULL, PROF_ARG_POINTER, 0, {.pointer = NULL}},
                                    {NULL, 99, 0, {.u64 = 5}},
                                    {NULL, PROF_ARG_I64, 0, {.i64 = 6}}};
  const prof_args args[] = {{NULL, 3, PROF_ARGS_PAIRS, NULL},
                            {NULL, 0, PROF_ARGS_FORMAT, NULL},
                            {hollow, COUNT_OF(hollow), PROF_ARGS_PAIRS, NULL},
                            {hollow, COUNT_OF(hollow), PROF_ARGS_FORMAT, NULL},
                            {hollow, COUNT_OF(hollow), PROF_ARGS_SHAPES, NULL},
                            {hollow, COUNT_OF(hollow), PROF_ARGS_LIST, NULL},
                            {hollow, COUNT_OF(hollow), 0x12345, NULL},
                            {hollow, UINT32_MAX, 0, NULL}};
  prof_site site = {0, NULL, NULL, 0, 0, 0};
  size_t wanted = 0;
  events_record(2);
  prof_scope_end(prof_scope_begin(1, NULL, NULL, NULL)), wanted++;
  prof_scope_end(prof_scope_begin_at(&site, NULL, NULL)), wanted++;
  prof_flow_begin(1, NULL), wanted++;
  prof_flow_end(1, NULL), wanted++;
  for (size_t i = 0; i + 1 < COUNT_OF(args); i++)
    prof_scope_end(prof_scope_begin(2, "args", NULL, &args[i])), wanted++;
  events_stop_and_read();
  assert_event_total(wanted);
  char *text = NULL;
  assert_status(prof_get_json(&text, NULL), PROF_OK);
  prof_free(text);
}

/* ---- sizes ---- */

/* Room for `size` bytes, aligned, as near as that goes to memory that nobody may touch; what is
   left between is not zero. */
static void *at_the_edge(size_t size) {
  enum { PAGE = 4096, PAGES = 3 };
  static char *pages;
  if (!pages) {
    pages =
        mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages + PAGES * PAGE, PAGE, PROT_NONE), 0);
  }
  const size_t room = size < sizeof(size_t)
                          ? sizeof(size_t)
                          : (size + sizeof(size_t) - 1) / sizeof(size_t) * sizeof(size_t);
  char *const at = pages + PAGES * PAGE - room;
  memset(at, 0x5a, room);
  return at;
}

/* A struct of that many bytes, all zero but for its size. */
static void *sized(size_t size) {
  char *const at = at_the_edge(size);
  memset(at, 0, size < sizeof size ? sizeof size : size);
  memcpy(at, &size, sizeof size);
  return at;
}

enum { SIZE_MAX_TRIED = 4096 };

static int start_and_stop(void *options) {
  const int status = prof_start_with(options);
  if (status == PROF_OK) prof_stop();
  return status;
}
static int dump_it(void *options) { return prof_dump_with("/dev/null", options); }
static int aggregate_it(void *options) {
  prof_rows *rows = NULL;
  const int status = prof_trace_aggregate(trace, options, &rows);
  prof_rows_destroy(rows);
  return status;
}
static int table_it(void *options) {
  char *text = NULL;
  const int status = prof_trace_table(trace, options, &text);
  prof_free(text);
  return status;
}

/* What a caller gives: smaller is an older caller's, larger must have zeros behind. */
static void given_structs_may_have_any_size(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int (*call)(void *);
    size_t known_bytes;
  } kinds[] = {{"prof_options", start_and_stop, sizeof(prof_options)},
               {"prof_dump_options", dump_it, sizeof(prof_dump_options)},
               {"prof_aggregate_options", aggregate_it, sizeof(prof_aggregate_options)},
               {"prof_aggregate_options for a table", table_it, sizeof(prof_aggregate_options)}};
  events_record(1);
  prof_step();
  assert_status(prof_stop(), PROF_OK);
  assert_status(prof_get(&trace), PROF_OK);
  for (size_t kind = 0; kind < COUNT_OF(kinds); kind++) {
    /* Starting is cheap: every size. The others: every size up to 64 bytes past what is known, then
       some. */
    for (size_t size = 0; size <= SIZE_MAX_TRIED;
         size += kind == 0 || size < kinds[kind].known_bytes + 64 ? 1 : 61) {
      const int wanted = size < sizeof(size_t) ? PROF_E_INVALID : PROF_OK;
      char *const at = sized(size);
      const int status = kinds[kind].call(at);
      if (status != wanted)
        fail_msg("%s of %zu bytes: %s: %s", kinds[kind].name, size, prof_status_name(status),
                 prof_last_error());
      if (size <= kinds[kind].known_bytes) continue;
      at[size - 1] = 1; /* a field that this version does not know */
      if (kinds[kind].call(at) != PROF_E_INVALID)
        fail_msg("%s of %zu bytes with its last one set is taken", kinds[kind].name, size);
      char number[32];
      snprintf(number, sizeof number, "%zu", size - 1);
      assert_error_has(number);
    }
    assert_status(kinds[kind].call(sized(0)), PROF_E_INVALID);
    assert_error_has("size is 0");
  }
  const standing before = look();
  assert_status(prof_start_with(sized(0)), PROF_E_INVALID);
  assert_same(&before, "options of size 0");
  prof_trace_destroy(trace);
}

static int health_of(void *to) { return prof_health(to); }
static int info_of(void *to) { return prof_trace_info_get(trace, to); }
static int thread_of(void *to) { return prof_trace_thread_get(trace, 0, to); }

/* What a caller gets: filled as far as it reaches; what this version does not know is zero. */
static void filled_structs_may_have_any_size(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int (*call)(void *);
    /* first_bytes: of what comes out the same each time; what pads the end does not */
    size_t known_bytes, first_bytes;
  } kinds[] = {{"prof_health", health_of, sizeof(prof_health), offsetof(prof_health, deep_count)},
               {"prof_trace_info", info_of, sizeof(prof_trace_info),
                offsetof(prof_trace_info, process_name) + 64},
               {"prof_trace_thread", thread_of, sizeof(prof_trace_thread),
                offsetof(prof_trace_thread, name) + 64}};
  events_record(1);
  prof_step();
  assert_status(prof_stop(), PROF_OK);
  assert_status(prof_get(&trace), PROF_OK);
  for (size_t kind = 0; kind < COUNT_OF(kinds); kind++) {
    char full[2048] = {0};
    const size_t known = kinds[kind].known_bytes;
    assert_true(known <= sizeof full);
    memcpy(full, &known, sizeof known);
    assert_status(kinds[kind].call(full), PROF_OK);
    /* health measures a scope each time, half a millisecond */
    const size_t step = kind == 0 ? 7 : 1;
    for (size_t size = 0; size <= SIZE_MAX_TRIED; size += size < 64           ? 1
                                                          : size < known + 64 ? step
                                                                              : 61) {
      char *const at = sized(size);
      if (size > sizeof(size_t)) memset(at + sizeof(size_t), 0xa5, size - sizeof(size_t));
      const int status = kinds[kind].call(at),
                wanted = size < sizeof(size_t) ? PROF_E_INVALID : PROF_OK;
      if (status != wanted)
        fail_msg("%s of %zu bytes: %s: %s", kinds[kind].name, size, prof_status_name(status),
                 prof_last_error());
      if (status != PROF_OK) continue;
      size_t size_after;
      memcpy(&size_after, at, sizeof size_after);
      assert_int_equal(size_after, size);
      const size_t same = size < kinds[kind].first_bytes ? size : kinds[kind].first_bytes;
      if (memcmp(at + sizeof size, full + sizeof size, same - sizeof size) != 0)
        fail_msg("%s of %zu bytes is filled otherwise", kinds[kind].name, size);
      for (size_t i = known; i < size; i++)
        if (at[i]) fail_msg("%s of %zu bytes: byte %zu is not zero", kinds[kind].name, size, i);
    }
  }
  prof_trace_destroy(trace);
}

/* ---- values ---- */

static void levels_out_of_range_are_refused(void **state) {
  (void)state;
  static const int levels[] = {0, -1, 3, 7, INT_MAX, INT_MIN};
  for (int recording = 0; recording < 2; recording++) {
    events_record(2);
    prof_step();
    if (!recording) assert_status(prof_stop(), PROF_OK);
    const standing before = look();
    for (size_t i = 0; i < COUNT_OF(levels); i++) {
      char number[16];
      snprintf(number, sizeof number, "%d", levels[i]);
      assert_status(prof_start(levels[i]), PROF_E_LEVEL);
      assert_error_has(number);
      assert_same(&before, "prof_start with a bad level");
    }
    if (recording) assert_status(prof_stop(), PROF_OK);
  }
}

static void options_out_of_range_are_refused_with_their_value(void **state) {
  (void)state;
  static const struct {
    prof_options options;
    int status;
    const char *texts[2];
  } bad[] = {
      {{.level = 3}, PROF_E_LEVEL, {"level", "3"}},
      {{.level = UINT32_MAX}, PROF_E_LEVEL, {"level", "4294967295"}},
      {{.policy = 4}, PROF_E_INVALID, {"policy", "4"}},
      {{.policy = PROF_POLICY_STREAM}, PROF_E_INVALID, {"policy", "path"}},
      {{.clock = 3}, PROF_E_INVALID, {"clock", "3"}},
      {{.helper_thread = 2}, PROF_E_INVALID, {"helper_thread", "2"}},
      {{.keep_capture = 5}, PROF_E_INVALID, {"keep_capture", "5"}},
      {{.budget_permille = 1001}, PROF_E_INVALID, {"budget_permille", "1001"}},
      {{.budget_action = 3}, PROF_E_INVALID, {"budget_action", "3"}},
      {{.devices = 9}, PROF_E_INVALID, {"devices", "9"}},
      {{.cap_bytes = 1}, PROF_E_INVALID, {"cap_bytes", "1"}},
      {{.cap_bytes = (1 << 20) - 1}, PROF_E_INVALID, {"cap_bytes", "1048575"}},
      {{.cap_bytes = UINT64_MAX}, PROF_E_INVALID, {"cap_bytes", "18446744073709551615"}},
      {{.ring_ns = 5}, PROF_E_INVALID, {"ring_ns", "ring"}},
      {{.ring_ns = 5, .policy = PROF_POLICY_KEEP}, PROF_E_INVALID, {"ring_ns", "ring"}},
      {{.path = ""}, PROF_E_INVALID, {"path", "empty"}},
  };
  for (int recording = 0; recording < 2; recording++) {
    events_record(1);
    prof_step();
    if (!recording) assert_status(prof_stop(), PROF_OK);
    const standing before = look();
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
      prof_options options = bad[i].options;
      options.size = sizeof options;
      const int status = prof_start_with(&options);
      if (status != bad[i].status)
        fail_msg("bad options %zu (%s): %s", i, bad[i].texts[0], prof_status_name(status));
      assert_error_has(bad[i].texts[0]);
      assert_error_has(bad[i].texts[1]);
      assert_same(&before, bad[i].texts[0]);
    }
    const prof_options good = {
        .size = sizeof good, .level = 2, .policy = PROF_POLICY_RING, .cap_bytes = 1 << 20};
    if (!recording) continue;
    assert_status(prof_start_with(&good), PROF_E_RUNNING);
    assert_error_has("level 1");
    assert_same(&before, "prof_start_with while recording");
    assert_status(prof_stop(), PROF_OK);
  }
}

static void dump_options_out_of_range_are_refused_with_their_value(void **state) {
  (void)state;
  const struct {
    prof_dump_options options;
    const char *texts[2];
  } bad[] = {
      {{.format = PROF_FORMAT_RPD + 1}, {"format", "12"}},
      {{.must_be_new = 2}, {"must_be_new", "2"}},
      {{.gzip = -1}, {"gzip", "-1"}},
      {{.gzip = 2}, {"gzip", "2"}},
      {{.stacks = 2}, {"stacks", "2"}},
      {{.stacks = 1, .format = PROF_FORMAT_RAF}, {"stacks", "not Chrome JSON"}},
      {{.window_marks = 2}, {"window_marks", "2"}},
      {{.window_marks = 1, .format = PROF_FORMAT_RAF}, {"window_marks", "not Chrome JSON"}},
      {{.no_memory = 2}, {"no_memory", "2"}},
      {{.no_memory = 1, .format = PROF_FORMAT_RAF}, {"no_memory", "not Chrome JSON"}},
      {{.stack_folder_count = 7}, {"stack_folder_count", "7"}},
      {{.stacks = 1, .stack_folder_count = 3}, {"stack_folders is NULL", "3"}},
      {{.stacks = 1, .stack_folder_count = 1, .stack_folders = &(const char *){NULL}},
       {"stack_folders[0]", "NULL"}},
      {{.metadata_count = 3}, {"metadata is NULL", "3"}},
      {{.metadata_count = 1, .metadata = &(prof_metadata){NULL, "1"}}, {"metadata[0].key", "NULL"}},
      {{.metadata_count = 1, .metadata = &(prof_metadata){"k", NULL}},
       {"metadata[0].json", "NULL"}},
      {{.metadata_count = 1, .metadata = &(prof_metadata){"traceEvents", "[]"}},
       {"metadata[0].key", "traceEvents"}},
      {{.metadata_count = 1, .metadata = &(prof_metadata){"k", "{\"a\": 01}"}},
       {"is not JSON", "at byte 7"}},
      {{.metadata_count = 1, .metadata = &(prof_metadata){"k", "1"}, .format = PROF_FORMAT_RAF},
       {"metadata_count", "not Chrome JSON"}},
      {{.from_ns = 500, .to_ns = 400}, {"400", "500"}},
      {{.format = PROF_FORMAT_CAPTURE, .gzip = 1}, {"gzip", path}},
      {{.format = PROF_FORMAT_CAPTURE, .from_ns = 1}, {"cut", path}},
      {{.format = PROF_FORMAT_PACKED, .to_ns = 1}, {"cut", path}},
  };
  events_record(1);
  prof_step();
  const standing before = look();
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    prof_dump_options options = bad[i].options;
    options.size = sizeof options;
    const int status = prof_dump_with(path, &options);
    if (status != PROF_E_INVALID)
      fail_msg("bad dump options %zu (%s): %s", i, bad[i].texts[0], prof_status_name(status));
    assert_error_has(bad[i].texts[0]);
    assert_error_has(bad[i].texts[1]);
    assert_int_equal(access(path, F_OK), -1);
    assert_same(&before, bad[i].texts[0]);
  }
  assert_status(prof_stop(), PROF_OK);
}

static void an_existing_file_is_replaced_or_kept_as_asked(void **state) {
  (void)state;
  const prof_dump_options must_be_new = {.size = sizeof must_be_new, .must_be_new = 1};
  char text[64] = "";
  FILE *file = fopen(path, "w");
  fputs("the host's own", file);
  fclose(file);
  events_record(1);
  assert_status(prof_dump_with(path, &must_be_new), PROF_E_IO);
  assert_error_has(path);
  file = fopen(path, "r");
  assert_non_null(fgets(text, sizeof text, file));
  fclose(file);
  assert_string_equal(text, "the host's own");
  assert_status(prof_dump(path), PROF_OK);
  file = fopen(path, "r");
  assert_int_equal(fgetc(file), '{');
  fclose(file);
  assert_int_equal(unlink(path), 0);
  assert_status(prof_dump_with(path, &must_be_new), PROF_OK);
  assert_int_equal(unlink(path), 0);
  assert_status(prof_stop(), PROF_OK);
}

static void aggregate_options_out_of_range_are_refused_with_their_value(void **state) {
  (void)state;
  static const struct {
    prof_aggregate_options options;
    const char *texts[2];
  } bad[] = {{{.group = 2048}, {"group", "800"}},
             {{.level = 3}, {"level", "3"}},
             {{.sort = 19}, {"sort", "19"}},
             {{.time_unit = 4}, {"time_unit", "4"}},
             {{.from_ns = 9, .to_ns = 8}, {"to_ns", "8"}}};
  events_record(1);
  assert_status(prof_get(&trace), PROF_OK);
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    prof_aggregate_options options = bad[i].options;
    prof_rows *rows = NULL;
    options.size = sizeof options;
    assert_status(prof_trace_aggregate(trace, &options, &rows), PROF_E_INVALID);
    assert_null(rows);
    assert_error_has(bad[i].texts[0]);
    assert_error_has(bad[i].texts[1]);
  }
  prof_trace_destroy(trace);
  assert_status(prof_stop(), PROF_OK);
}

static void ranks_out_of_range_are_refused(void **state) {
  (void)state;
  static const int bad[][2] = {{-1, 4},           {4, 4}, {0, 0}, {0, -1}, {INT_MAX, INT_MAX},
                               {INT_MIN, INT_MIN}};
  events_record(1);
  assert_status(prof_rank_set(1, 3), PROF_OK);
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    char number[16];
    snprintf(number, sizeof number, "%d", bad[i][0]);
    assert_status(prof_rank_set(bad[i][0], bad[i][1]), PROF_E_INVALID);
    assert_error_has(number);
  }
  prof_trace_info info = {.size = sizeof info};
  assert_status(prof_get(&trace), PROF_OK);
  assert_status(prof_trace_info_get(trace, &info), PROF_OK);
  assert_int_equal(info.rank, 1);
  assert_int_equal(info.world_size, 3);
  prof_trace_destroy(trace);
  assert_status(prof_stop(), PROF_OK);
}

static void every_status_and_loss_has_a_name_and_a_text(void **state) {
  (void)state;
  for (int status = 0; status >= PROF_E_BUSY; status--) {
    assert_int_equal(strncmp(prof_status_name(status), "PROF_", 5), 0);
    assert_string_not_equal(prof_status_name(status), "PROF_E_UNKNOWN");
    assert_true(strlen(prof_status_text(status)) > 3);
  }
  static const int unknown[] = {1, -1000, INT_MAX, INT_MIN};
  for (size_t i = 0; i < COUNT_OF(unknown); i++) {
    assert_string_equal(prof_status_name(unknown[i]), "PROF_E_UNKNOWN");
    assert_non_null(prof_status_text(unknown[i]));
  }
  for (int loss = 0; loss < PROF_LOSS_COUNT; loss++) {
    assert_string_not_equal(prof_loss_name(loss), "unknown");
    assert_true(strlen(prof_loss_text(loss)) > 3);
  }
  assert_string_equal(prof_loss_name(-1), "unknown");
  assert_string_equal(prof_loss_name(PROF_LOSS_COUNT), "unknown");
  assert_non_null(prof_loss_text(INT_MIN));
  assert_string_equal(prof_version(), PROF_VERSION_STRING);
}

static void *last_error_of_a_thread(void *empty_out) {
  *(int *)empty_out = prof_last_error()[0] == '\0';
  prof_start(99);
  return NULL;
}

static void the_last_error_is_each_threads_own(void **state) {
  (void)state;
  int was_empty = 0;
  pthread_t thread;
  assert_status(prof_start(77), PROF_E_LEVEL);
  assert_int_equal(pthread_create(&thread, NULL, last_error_of_a_thread, &was_empty), 0);
  pthread_join(thread, NULL);
  assert_true(was_empty);
  assert_error_has("77");
  assert_status(prof_clear(), PROF_OK);
  assert_error_has("77"); /* until this thread's next failing call */
}

enum { FAILING_THREADS = 60 };
static pthread_barrier_t all_have_failed;

static void *fails_and_reads_later(void *number) {
  const int level = 1000 + *(const int *)number;
  char expected[32];
  snprintf(expected, sizeof expected, "level is %d;", level);
  prof_start(level);
  pthread_barrier_wait(&all_have_failed);
  return strstr(prof_last_error(), expected) ? number : NULL;
}

/* Also when others have failed before, and are gone. */
static void sixty_threads_that_fail_at_once_have_their_own_errors(void **state) {
  (void)state;
  static int numbers[FAILING_THREADS];
  pthread_t threads[FAILING_THREADS];
  for (int round = 0; round < 3; round++) {
    assert_int_equal(pthread_barrier_init(&all_have_failed, NULL, FAILING_THREADS), 0);
    for (int i = 0; i < FAILING_THREADS; i++) {
      numbers[i] = round * FAILING_THREADS + i;
      assert_int_equal(pthread_create(&threads[i], NULL, fails_and_reads_later, &numbers[i]), 0);
    }
    for (int i = 0; i < FAILING_THREADS; i++) {
      void *found = NULL;
      pthread_join(threads[i], &found);
      assert_ptr_equal(found, &numbers[i]);
    }
    pthread_barrier_destroy(&all_have_failed);
  }
}

static int make_folder(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/trace.json", folder);
  return 0;
}
static int remove_folder(void **state) {
  (void)state;
  return rmdir(folder); /* fails when a file was left */
}

/* A binding may build its keys and formats in one buffer: it is the text that counts. */
static void a_key_is_its_text_and_not_its_place(void **state) {
  (void)state;
  char key[8], format[8];
  const prof_arg pair = {.key = key, .type = PROF_ARG_I64, .value = {.i64 = 1}},
                 bare = {.type = PROF_ARG_I64, .value = {.i64 = 2}};
  events_record(1);
  for (char c = 'a'; c <= 'z'; c++) {
    snprintf(key, sizeof key, "%c", c);
    snprintf(format, sizeof format, "%c %%d", c);
    prof_scope_end(
        prof_scope_begin(1, key, "pairs", &(prof_args){&pair, 1, PROF_ARGS_PAIRS, NULL}));
    prof_scope_end(
        prof_scope_begin(1, format, "format", &(prof_args){&bare, 1, PROF_ARGS_FORMAT, format}));
  }
  events_stop_and_read();
  assert_int_equal(events.count, 52);
  for (size_t i = 0; i < events.count; i++) {
    const seen_event *const event = &events.items[i];
    if (strcmp(event->category, "pairs") == 0) {
      assert_int_equal(event->e.args[0].key_bytes, 1);
      assert_int_equal(event->e.args[0].key[0], event->name[0]);
    } else {
      assert_int_equal(event->e.format_bytes, 4);
      assert_memory_equal(event->e.format, event->name, 4);
    }
  }
}

/* One site, and a variable that holds other keys and types each time. */
static void with_variable(prof_args args) {
  WITH_BASE_PROFILER(PROF_HOST, "variable", "x", args, {});
}
static void arguments_may_come_in_a_variable(void **state) {
  (void)state;
  events_record(1);
  for (int i = 0; i < 3; i++) {
    with_variable(PROF_ARGS("m", 1, "name", "text"));
    with_variable(PROF_ARGS("m", 1, "n", 5));
    with_variable(PROF_ARGS("ratio", 2.5));
    with_variable(i ? PROF_ARGS("yes", 1) : PROF_ARGS("no", "no"));
  }
  events_stop_and_read();
  static const char *const wanted[] = {"m=i:1 name=s:text", "m=i:1 n=i:5", "ratio=f:2.5"};
  assert_int_equal(events.count, 12);
  for (size_t i = 0; i < events.count; i++) {
    if (i % 4 < 3)
      assert_string_equal(events.items[i].args, wanted[i % 4]);
    else
      assert_string_equal(events.items[i].args, i == 3 ? "no=s:no" : "yes=i:1");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_key_is_its_text_and_not_its_place),
      cmocka_unit_test(arguments_may_come_in_a_variable),
      cmocka_unit_test(null_is_refused_or_ignored),
      cmocka_unit_test(missing_texts_are_empty),
      cmocka_unit_test(given_structs_may_have_any_size),
      cmocka_unit_test(filled_structs_may_have_any_size),
      cmocka_unit_test(levels_out_of_range_are_refused),
      cmocka_unit_test(options_out_of_range_are_refused_with_their_value),
      cmocka_unit_test(dump_options_out_of_range_are_refused_with_their_value),
      cmocka_unit_test(an_existing_file_is_replaced_or_kept_as_asked),
      cmocka_unit_test(aggregate_options_out_of_range_are_refused_with_their_value),
      cmocka_unit_test(ranks_out_of_range_are_refused),
      cmocka_unit_test(every_status_and_loss_has_a_name_and_a_text),
      cmocka_unit_test(the_last_error_is_each_threads_own),
      cmocka_unit_test(sixty_threads_that_fail_at_once_have_their_own_errors),
  };
  return cmocka_run_group_tests_name("arguments", tests, make_folder, remove_folder);
}
