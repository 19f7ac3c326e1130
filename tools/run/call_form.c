/* See call_form.h. The config is copied once; its words are terminated in place. */
#define _GNU_SOURCE
#include "call_form.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 160 };

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* ---- values ---- */

static void add_text(run_call_form *form, const char *key, const char *value) {
  form->args[form->arg_count++] = (prof_arg){
      .key = key, .type = PROF_ARG_STRING, .bytes = (uint32_t)strlen(value), .value.text = value};
}

/* Whole numbers and fractions become numbers. The last argument is kept for "more". */
static void add(run_call_form *form, const char *key, const char *value) {
  char *end = NULL;
  if (form->arg_count >= RUN_CALL_ARGS_MAX - 1) return;
  add_text(form, key, value);
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
static char *take_word(char **at) {
  while (is_blank(**at)) ++*at;
  char *const word = *at;
  if (!*word) return NULL;
  int depth = 0;
  for (; **at && (depth > 0 || !is_blank(**at)); ++*at) depth += (**at == '[') - (**at == ']');
  if (**at) *(*at)++ = '\0';
  return word;
}

static bool is_option(const char *word) {
  return *word == '-' && word[1] && !isdigit((unsigned char)word[1]) && word[1] != '.';
}

/* What begins with word and goes on at rest has no room. */
static void add_more(run_call_form *form, char *word, const char *rest) {
  if (*rest && rest > word) word[strlen(word)] = ' ';
  add_text(form, "more", word);
}

/* "-m 8192 --bias_vector --transA N": the option `named` is not an argument, and returned. */
static const char *take_options(run_call_form *form, char *at, const char *named) {
  const char *value_of_named = NULL;
  for (char *word; (word = take_word(&at)) != NULL;) {
    if (!is_option(word)) continue;
    if (form->arg_count == RUN_CALL_ARGS_MAX - 1) {
      add_more(form, word, at);
      break;
    }
    const char *const key = word + strspn(word, "-");
    while (is_blank(*at)) at++;
    const char *const value = *at && !is_option(at) ? take_word(&at) : "1";
    if (named && strcmp(key, named) == 0)
      value_of_named = value;
    else
      add(form, key, value);
  }
  return value_of_named;
}

/* "count 1001 datatype float32" */
static void take_pairs(run_call_form *form, char *at) {
  for (char *key; (key = take_word(&at)) != NULL;) {
    const char *const value = take_word(&at);
    if (value) add(form, key, value);
  }
}

/* "transa=CUBLAS_OP_T (1) Adesc=[type=R_32F rows=1000]" */
static void take_assignments(run_call_form *form, char *at) {
  char *value = NULL;
  const char *key = NULL;
  for (char *word; (word = take_word(&at)) != NULL;) {
    char *const equals = strchr(word, '=');
    if (!equals || *word == '[') { /* a value with blanks */
      if (value) value[strlen(value)] = ' ';
      continue;
    }
    if (key && form->arg_count == RUN_CALL_ARGS_MAX - 2) {
      add(form, key, value);
      add_more(form, word, at);
      return;
    }
    if (key) add(form, key, value);
    *equals = '\0';
    key = word;
    value = equals + 1;
  }
  if (key) add(form, key, value);
}

/* ---- libraries ---- */

static void name_it(run_call_form *form, char *to, const char *before, const char *name) {
  snprintf(to, NAME_BYTES, "%s%s", before, name ? name : "?");
  form->name = to;
}

static void take_driver(run_call_form *form, char *to, char *at) {
  (void)take_word(&at); /* the program */
  char *const name = take_word(&at);
  name_it(form, to, "MIOpenDriver ", name);
  take_options(form, at, NULL);
}

static void fill(run_call_form *form, run_library library, char *to, char *at) {
  switch (library) {
    case RUN_LIBRARY_ROCBLAS: {
      const char *const function = take_options(form, at, "f");
      const bool is_whole = function && strncmp(function, "rocblas_", 8) == 0;
      name_it(form, to, is_whole ? "" : "rocblas_", function);
      return;
    }
    case RUN_LIBRARY_HIPBLASLT:
      take_options(form, at, NULL);
      name_it(form, to, "hipblasLtMatmul", "");
      return;
    case RUN_LIBRARY_MIOPEN:
    case RUN_LIBRARY_MIOPEN_FIND:
      take_driver(form, to, at);
      return;
    case RUN_LIBRARY_RCCL:
    case RUN_LIBRARY_NCCL:
      name_it(form, to, "nccl", take_word(&at));
      take_pairs(form, at);
      return;
    case RUN_LIBRARY_CUBLAS:
    case RUN_LIBRARY_CUBLASLT:
    case RUN_LIBRARY_CUDNN:
      name_it(form, to, "", take_word(&at));
      take_assignments(form, at);
      return;
    case RUN_LIBRARY_TENSILE:
    case RUN_LIBRARY_ROCBLAS_FUNCTION:
    case RUN_LIBRARIES:
      form->name = at;
  }
}

/* An argument has a word of its own. */
static size_t args_most(const char *config) {
  size_t words = 1;
  for (const char *at = config; *at; at++) words += is_blank(*at);
  return words < RUN_CALL_ARGS_MAX ? words : RUN_CALL_ARGS_MAX;
}

run_call_form *run_call_form_create(const run_library_row *row) {
  const size_t bytes = strlen(row->config) + 1, args = args_most(row->config);
  run_call_form *const form =
      run_make(1, sizeof *form + args * sizeof(prof_arg) + bytes + NAME_BYTES);
  char *const config = (char *)(form->args + args);
  memcpy(config, row->config, bytes);
  form->site.level = 1;
  form->category = run_library_name(row->library);
  fill(form, row->library, config + bytes, config);
  return form;
}
