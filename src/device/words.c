/* See words.h. Texts stand on the heap, found by a key: thread-local words in the library are few,
   and all libraries that a program opens share the room for them. */
#define _GNU_SOURCE
#include "words.h"

#include <prof/backend.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct words {
  const char *last;
  char text[240];
} words;

static struct {
  pthread_once_t once;
  pthread_key_t key;
  bool has_key;
} own = {.once = PTHREAD_ONCE_INIT};

static void make_key(void) { own.has_key = pthread_key_create(&own.key, free) == 0; }

/* This thread's; NULL: there is no memory, and what it would say is lost. */
static words *get_words(void) {
  pthread_once(&own.once, make_key);
  words *w = own.has_key ? pthread_getspecific(own.key) : NULL;
  if (w || !own.has_key) return w;
  w = calloc(1, sizeof *w);
  if (w && pthread_setspecific(own.key, w) == 0) return w;
  free(w);
  return NULL;
}

int prof_i_words_refuse(int result, const char *text) {
  words *const w = get_words();
  if (w) w->last = text;
  return result;
}

int prof_i_words_fail(int result, const char *format, ...) {
  words *const w = get_words();
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

int prof_i_words_no_library(const char *before, const prof_i_library_why *why) {
  return prof_i_words_fail(why->is_refused  ? PROF_BACKEND_PERMISSION
                           : why->is_broken ? PROF_BACKEND_VERSION
                                            : PROF_BACKEND_ABSENT,
                           "%s%s", before, why->text);
}

const char *prof_i_words_last(void) {
  const words *const w = get_words();
  return w && w->last ? w->last : "";
}
