/* See call_event.h. The config is copied once; its words are terminated in place. */
#define _GNU_SOURCE
#include "call_event.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 160 };

static bool call_is_blank(char c) { return c == ' ' || c == '\t'; }

/* ---- values ---- */

static void add_text_arg(run_call_event *form, const char *key, const char *value) {
  form->args[form->arg_count++] = (prof_arg){
      .key = key, .type = PROF_ARG_STRING, .bytes = (uint32_t)strlen(value), .value.text = value};
}

/* Whole numbers and fractions become numbers. The last argument is kept for "more". */
static void add_arg(run_call_event *form, const char *key, const char *value) {
  char *end = NULL;
  if (form->arg_count >= RUN_CALL_ARGS_MAX - 1) return;
  add_text_arg(form, key, value);
  prof_arg *const arg = &form->args[form->arg_count - 1];
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
static void add_more_arg(run_call_event *form, char *word, const char *rest) {
  if (*rest && rest > word) word[strlen(word)] = ' ';
  add_text_arg(form, "more", word);
}

/* "-m 8192 --bias_vector --transA N": the option `named` is not an argument, and returned. */
static const char *parse_options(run_call_event *form, char *at, const char *named) {
  const char *value_of_named = NULL;
  for (char *word; (word = next_word(&at)) != NULL;) {
    if (!word_is_option(word)) continue;
    if (form->arg_count == RUN_CALL_ARGS_MAX - 1) {
      add_more_arg(form, word, at);
      break;
    }
    const char *const key = word + strspn(word, "-");
    while (call_is_blank(*at)) at++;
    const char *const value = *at && !word_is_option(at) ? next_word(&at) : "1";
    if (named && strcmp(key, named) == 0)
      value_of_named = value;
    else
      add_arg(form, key, value);
  }
  return value_of_named;
}

/* "count 1001 datatype float32" */
static void parse_pairs(run_call_event *form, char *at) {
  for (char *key; (key = next_word(&at)) != NULL;) {
    const char *const value = next_word(&at);
    if (value) add_arg(form, key, value);
  }
}

/* "transa=CUBLAS_OP_T (1) Adesc=[type=R_32F rows=1000]" */
static void parse_assignments(run_call_event *form, char *at) {
  char *value = NULL;
  const char *key = NULL;
  for (char *word; (word = next_word(&at)) != NULL;) {
    char *const equals = strchr(word, '=');
    if (!equals || *word == '[') { /* a value with blanks */
      if (value) value[strlen(value)] = ' ';
      continue;
    }
    if (key && form->arg_count == RUN_CALL_ARGS_MAX - 2) {
      add_arg(form, key, value);
      add_more_arg(form, word, at);
      return;
    }
    if (key) add_arg(form, key, value);
    *equals = '\0';
    key = word;
    value = equals + 1;
  }
  if (key) add_arg(form, key, value);
}

/* ---- libraries ---- */

static void set_call_name(run_call_event *form, char *to, const char *before, const char *name) {
  snprintf(to, NAME_BYTES, "%s%s", before, name ? name : "?");
  form->name = to;
}

static void parse_driver(run_call_event *form, char *to, char *at) {
  (void)next_word(&at); /* the program */
  char *const name = next_word(&at);
  set_call_name(form, to, "MIOpenDriver ", name);
  parse_options(form, at, NULL);
}

static void call_event_fill(run_call_event *form, run_library library, char *to, char *at) {
  switch (library) {
    case RUN_LIBRARY_ROCBLAS: {
      const char *const function = parse_options(form, at, "f");
      const bool is_whole = function && strncmp(function, "rocblas_", 8) == 0;
      set_call_name(form, to, is_whole ? "" : "rocblas_", function);
      return;
    }
    case RUN_LIBRARY_HIPBLASLT:
      parse_options(form, at, NULL);
      set_call_name(form, to, "hipblasLtMatmul", "");
      return;
    case RUN_LIBRARY_MIOPEN:
    case RUN_LIBRARY_MIOPEN_FIND:
      parse_driver(form, to, at);
      return;
    case RUN_LIBRARY_RCCL:
    case RUN_LIBRARY_NCCL:
      set_call_name(form, to, "nccl", next_word(&at));
      parse_pairs(form, at);
      return;
    case RUN_LIBRARY_CUBLAS:
    case RUN_LIBRARY_CUBLASLT:
    case RUN_LIBRARY_CUDNN:
      set_call_name(form, to, "", next_word(&at));
      parse_assignments(form, at);
      return;
    case RUN_LIBRARY_TENSILE:
    case RUN_LIBRARY_ROCBLAS_FUNCTION:
    case RUN_LIBRARIES:
      form->name = at;
  }
}

/* An argument has a word of its own. */
static size_t args_max(const char *config) {
  size_t words = 1;
  for (const char *at = config; *at; at++) words += call_is_blank(*at);
  return words < RUN_CALL_ARGS_MAX ? words : RUN_CALL_ARGS_MAX;
}

run_call_event *run_call_event_create(const run_library_row *row) {
  const size_t bytes = strlen(row->config) + 1, args = args_max(row->config);
  run_call_event *const form =
      run_make(1, sizeof *form + args * sizeof(prof_arg) + bytes + NAME_BYTES);
  char *const config = (char *)(form->args + args);
  memcpy(config, row->config, bytes);
  form->site.level = 1;
  form->category = run_library_name(row->library);
  call_event_fill(form, row->library, config + bytes, config);
  return form;
}
