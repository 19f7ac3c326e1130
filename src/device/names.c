/* See names.h. */
#define _GNU_SOURCE
#include "names.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../base/this_thread.h"
#include "../core/record/site.h"

enum { NAMES_MAX = 65536, CHUNK = 256, NAME_BYTES_MAX = 4096 };

typedef struct name {
  uint32_t number;
  uint32_t bytes;
  const char *text; /* NUL-terminated, but for one that is just asked for */
} name;

static struct {
  pthread_mutex_t lock; /* rank 4. Nothing is called under it */
  void *by_text;        /* a tree of names: tsearch() */
  name **by_number;     /* number - 1 */
  uint32_t count, room;
  name *const *parents; /* of a forked child */
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int compare(const void *a, const void *b) {
  const name *const x = a, *const y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
  return memcmp(x->text, y->text, x->bytes);
}

/* A copy of it, with its text behind it. */
static name *copy(const name *of) {
  name *const n = calloc(1, sizeof *n + of->bytes + 1);
  if (!n) return NULL;
  memcpy(n + 1, of->text, of->bytes);
  *n = (name){own.count + 1, of->bytes, (const char *)(n + 1)};
  return n;
}

static name *make(const name *asked) {
  if (own.count == NAMES_MAX) return NULL;
  if (own.count == own.room) {
    name **const larger = realloc(own.by_number, (own.room + CHUNK) * sizeof(name *));
    if (!larger) return NULL;
    own.by_number = larger;
    own.room += CHUNK;
  }
  name *const n = copy(asked);
  if (!n || !tsearch(n, &own.by_text, compare)) {
    free(n);
    return NULL;
  }
  own.by_number[own.count++] = n;
  return n;
}

uint32_t prof_i_name_number(const char *text, size_t bytes) {
  if (!text || bytes == 0) return 0;
  const name asked = {0, (uint32_t)(bytes < NAME_BYTES_MAX ? bytes : NAME_BYTES_MAX), text};
  prof_i_thread_lock(&own.lock);
  name *const *const found = tfind(&asked, &own.by_text, compare);
  const name *const n = found ? *found : make(&asked);
  prof_i_thread_unlock(&own.lock);
  return n ? n->number : 0;
}

static const char *text_of(uint32_t number) {
  prof_i_thread_lock(&own.lock);
  /* stays where it is */
  const name *const n = number && number <= own.count ? own.by_number[number - 1] : NULL;
  prof_i_thread_unlock(&own.lock);
  return n ? n->text : NULL;
}

const char *prof_i_name_text(uint32_t number) {
  const char *const text = text_of(number);
  return text ? text : "";
}

uint32_t prof_i_name_site(uint32_t number, const char *category, const char *otherwise,
                          uint32_t level) {
  static const prof_site sites[] = {{.file = "", .function = "", .level = 1},
                                    {.file = "", .function = "", .level = 2}};
  const char *const text = text_of(number);
  return prof_i_site_number(&sites[level > 1], text ? text : otherwise, category);
}

void prof_i_names_forget(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  own.lock = fresh;
  own.parents = own.by_number; /* their memory stays, and is not lost */
  own.by_text = NULL;
  own.by_number = NULL;
  own.count = own.room = 0;
}
