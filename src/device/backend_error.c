/* See backend_error.h. The texts are on the heap, found by a key. Static thread-local storage is
   scarce: all libraries that a program opens share it. */
#define _GNU_SOURCE
#include "backend_error.h"

#include <prof/backend.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct error_text {
  const char *last;
  char text[240];
} error_text;

static struct {
  pthread_once_t once;
  pthread_key_t key;
  bool has_key;
} error_key = {.once = PTHREAD_ONCE_INIT};

static void make_error_key(void) {
  error_key.has_key = pthread_key_create(&error_key.key, free) == 0;
}

/* This thread's; NULL: there is no memory, and what it would say is lost. */
static error_text *get_error_text(void) {
  pthread_once(&error_key.once, make_error_key);
  error_text *w = error_key.has_key ? pthread_getspecific(error_key.key) : NULL;
  if (w || !error_key.has_key) return w;
  w = calloc(1, sizeof *w);
  if (w && pthread_setspecific(error_key.key, w) == 0) return w;
  free(w);
  return NULL;
}

int prof_i_backend_fail_text(int result, const char *text) {
  error_text *const w = get_error_text();
  if (w) w->last = text;
  return result;
}

int prof_i_backend_fail(int result, const char *format, ...) {
  error_text *const w = get_error_text();
  if (!w) return result;
  va_list values;
  va_start(values, format);
  /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): clang-tidy 14 does not see the va_start()
     before it */
  vsnprintf(w->text, sizeof w->text, format, values);
  va_end(values);
  w->last = w->text;
  return result;
}

int prof_i_backend_fail_library(const char *before, const prof_i_library_error *why) {
  return prof_i_backend_fail(why->is_refused  ? PROF_BACKEND_PERMISSION
                             : why->is_broken ? PROF_BACKEND_VERSION
                                              : PROF_BACKEND_ABSENT,
                             "%s%s", before, why->text);
}

const char *prof_i_backend_last_error(void) {
  const error_text *const w = get_error_text();
  return w && w->last ? w->last : "";
}
