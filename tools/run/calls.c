/* See library.h. Calls of libraries as events of a capture. Each process has a row, as fibers have:
   one thread reads all lines. */
#define _GNU_SOURCE
#include "library.h"

#include <ctype.h>
#include <errno.h>
#include <prof/fiber.h>
#include <prof/profiler.h>
#include <prof/scope.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "hash.h"
#include "output.h"

/* Two arguments are left for the rank and the process. */
enum { CALL_ARGS_MAX = PROF_ARGS_MAX - 2 };

struct run_call_event {
  prof_site site;
  const char *name, *category;
  uint32_t arg_count;
  prof_arg args[]; /* behind them is the text of names, keys and values */
};

enum { NAME_BYTES = 160 };

static bool call_is_blank(char c) { return c == ' ' || c == '\t'; }

/* ---- values ---- */

static void add_text_arg(run_call_event *event, const char *key, const char *value) {
  event->args[event->arg_count++] = (prof_arg){
      .key = key, .type = PROF_ARG_STRING, .bytes = (uint32_t)strlen(value), .value.text = value};
}

/* Whole numbers and fractions become numbers. The last argument is kept for "more". */
static void add_arg(run_call_event *event, const char *key, const char *value) {
  char *end = NULL;
  if (event->arg_count >= CALL_ARGS_MAX - 1) return;
  add_text_arg(event, key, value);
  prof_arg *const arg = &event->args[event->arg_count - 1];
  const char *const digits = value + (*value == '-');
  if (!isdigit((unsigned char)*digits) || (digits[0] == '0' && digits[1] == 'x')) return;
  errno = 0;
  const long long whole = strtoll(value, &end, 10);
  if (errno == 0 && *end == '\0') {
    arg->type = PROF_ARG_I64;
    arg->value.i64 = whole;
    return;
  }
  const double fraction = strtod(value, &end);
  if (*end == '\0' && errno == 0) {
    arg->type = PROF_ARG_F64;
    arg->value.f64 = fraction;
  }
}

/* ---- words ---- */

/* Terminates the word at *at, and moves *at behind it. NULL: there is none. */
static char *next_word(char **at) {
  while (call_is_blank(**at)) ++*at;
  char *const word = *at;
  if (!*word) return NULL;
  int depth = 0;
  for (; **at && (depth > 0 || !call_is_blank(**at)); ++*at) depth += (**at == '[') - (**at == ']');
  if (**at) *(*at)++ = '\0';
  return word;
}

static bool word_is_option(const char *word) {
  return *word == '-' && word[1] && !isdigit((unsigned char)word[1]) && word[1] != '.';
}

/* What begins with word and goes on at rest has no room. */
static void add_more_arg(run_call_event *event, char *word, const char *rest) {
  if (*rest && rest > word) word[strlen(word)] = ' ';
  add_text_arg(event, "more", word);
}

/* "-m 8192 --bias_vector --transA N": the option `named` is not an argument, and returned. */
static const char *parse_options(run_call_event *event, char *at, const char *named) {
  const char *value_of_named = NULL;
  for (char *word; (word = next_word(&at)) != NULL;) {
    if (!word_is_option(word)) continue;
    if (event->arg_count == CALL_ARGS_MAX - 1) {
      add_more_arg(event, word, at);
      break;
    }
    const char *const key = word + strspn(word, "-");
    while (call_is_blank(*at)) at++;
    const char *const value = *at && !word_is_option(at) ? next_word(&at) : "1";
    if (named && strcmp(key, named) == 0)
      value_of_named = value;
    else
      add_arg(event, key, value);
  }
  return value_of_named;
}

/* "count 1001 datatype float32" */
static void parse_pairs(run_call_event *event, char *at) {
  for (char *key; (key = next_word(&at)) != NULL;) {
    const char *const value = next_word(&at);
    if (value) add_arg(event, key, value);
  }
}

/* "transa=CUBLAS_OP_T (1) Adesc=[type=R_32F rows=1000]" */
static void parse_assignments(run_call_event *event, char *at) {
  char *value = NULL;
  const char *key = NULL;
  for (char *word; (word = next_word(&at)) != NULL;) {
    char *const equals = strchr(word, '=');
    if (!equals || *word == '[') { /* a value with blanks */
      if (value) value[strlen(value)] = ' ';
      continue;
    }
    if (key && event->arg_count == CALL_ARGS_MAX - 2) {
      add_arg(event, key, value);
      add_more_arg(event, word, at);
      return;
    }
    if (key) add_arg(event, key, value);
    *equals = '\0';
    key = word;
    value = equals + 1;
  }
  if (key) add_arg(event, key, value);
}

/* ---- libraries ---- */

static void set_call_name(run_call_event *event, char *to, const char *before, const char *name) {
  snprintf(to, NAME_BYTES, "%s%s", before, name ? name : "?");
  event->name = to;
}

static void parse_driver(run_call_event *event, char *to, char *at) {
  (void)next_word(&at); /* the program */
  char *const name = next_word(&at);
  set_call_name(event, to, "MIOpenDriver ", name);
  parse_options(event, at, NULL);
}

static void call_event_fill(run_call_event *event, run_library library, char *to, char *at) {
  switch (library) {
    case RUN_LIBRARY_ROCBLAS: {
      const char *const function = parse_options(event, at, "f");
      const bool is_whole = function && strncmp(function, "rocblas_", 8) == 0;
      set_call_name(event, to, is_whole ? "" : "rocblas_", function);
      return;
    }
    case RUN_LIBRARY_HIPBLASLT:
      parse_options(event, at, NULL);
      set_call_name(event, to, "hipblasLtMatmul", "");
      return;
    case RUN_LIBRARY_MIOPEN:
    case RUN_LIBRARY_MIOPEN_FIND:
      parse_driver(event, to, at);
      return;
    case RUN_LIBRARY_RCCL:
    case RUN_LIBRARY_NCCL:
      set_call_name(event, to, "nccl", next_word(&at));
      parse_pairs(event, at);
      return;
    case RUN_LIBRARY_CUBLAS:
    case RUN_LIBRARY_CUBLASLT:
    case RUN_LIBRARY_CUDNN:
      set_call_name(event, to, "", next_word(&at));
      parse_assignments(event, at);
      return;
    case RUN_LIBRARY_TENSILE:
    case RUN_LIBRARY_ROCBLAS_FUNCTION:
    case RUN_LIBRARIES:
      event->name = at;
  }
}

/* An argument has a word of its own. */
static size_t args_max(const char *config) {
  size_t words = 1;
  for (const char *at = config; *at; at++) words += call_is_blank(*at);
  return words < CALL_ARGS_MAX ? words : CALL_ARGS_MAX;
}

/* The config is copied once, and its words are terminated in place. */
run_call_event *run_call_event_create(const run_library_row *row) {
  const size_t bytes = strlen(row->config) + 1, args = args_max(row->config);
  run_call_event *const event =
      run_make(1, sizeof *event + args * sizeof(prof_arg) + bytes + NAME_BYTES);
  char *const config = (char *)(event->args + args);
  memcpy(config, row->config, bytes);
  event->site.level = 1;
  event->category = run_library_name(row->library);
  call_event_fill(event, row->library, config + bytes, config);
  return event;
}

/* ---- the capture ---- */

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

void run_calls_add(run_calls *calls, run_call_event *event, const run_origin *origin, int stream) {
  if (!calls->is_recording && !calls->has_failed) calls_begin(calls);
  if (calls->has_failed) return;
  enter_row(calls, origin, stream);
  prof_arg args[PROF_ARGS_MAX];
  uint32_t count = event->arg_count;
  memcpy(args, event->args, count * sizeof *args);
  add_number_arg(args, &count, "rank", origin->rank);
  add_number_arg(args, &count, "pid", origin->pid);
  const prof_details details = {
      .name = event->name,
      .category = event->category,
      .name_bytes = PROF_NUL_TERMINATED,
      .category_bytes = PROF_NUL_TERMINATED,
      .flags = PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL | PROF_I_NO_DURATION,
      .device = PROF_HOST,
      .args = {.items = args, .count = count, .kind = PROF_ARGS_PAIRS},
  };
  prof_i_instant_1(&event->site, &details);
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
