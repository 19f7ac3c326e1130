/* Texts, such as kernels' names, that vendors' records name by a number. Kept until the process
   ends. Any thread. */
#define _GNU_SOURCE
#include "internal.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../base/process.h"
#include "../core/record/site.h"

enum { NAMES_MAX = 65536, CHUNK = 256, NAME_BYTES_MAX = 4096 };

typedef struct name_entry {
  uint32_t number;
  uint32_t bytes;
  const char *text; /* NUL-terminated, but for one that is just asked for */
} name_entry;

static struct {
  pthread_mutex_t lock;   /* rank 4. Nothing is called under it */
  void *by_text;          /* a tree of names: tsearch() */
  name_entry **by_number; /* number - 1 */
  uint32_t count, room;
  name_entry *const *inherited; /* of a forked child */
} name_table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int compare_names(const void *a, const void *b) {
  const name_entry *const x = a, *const y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
  return memcmp(x->text, y->text, x->bytes);
}

/* A copy of it, with its text behind it. */
static name_entry *copy_name(const name_entry *of) {
  name_entry *const n = calloc(1, sizeof *n + of->bytes + 1);
  if (!n) return NULL;
  memcpy(n + 1, of->text, of->bytes);
  *n = (name_entry){name_table.count + 1, of->bytes, (const char *)(n + 1)};
  return n;
}

static name_entry *make_name(const name_entry *asked) {
  if (name_table.count == NAMES_MAX) return NULL;
  if (name_table.count == name_table.room) {
    name_entry **const larger =
        realloc(name_table.by_number, (name_table.room + CHUNK) * sizeof(name_entry *));
    if (!larger) return NULL;
    name_table.by_number = larger;
    name_table.room += CHUNK;
  }
  name_entry *const n = copy_name(asked);
  if (!n || !tsearch(n, &name_table.by_text, compare_names)) {
    free(n);
    return NULL;
  }
  name_table.by_number[name_table.count++] = n;
  return n;
}

uint32_t prof_i_name_intern(const char *text, size_t bytes) {
  if (!text || bytes == 0) return 0;
  const name_entry asked = {0, (uint32_t)(bytes < NAME_BYTES_MAX ? bytes : NAME_BYTES_MAX), text};
  prof_i_thread_lock(&name_table.lock);
  name_entry *const *const found = tfind(&asked, &name_table.by_text, compare_names);
  const name_entry *const n = found ? *found : make_name(&asked);
  prof_i_thread_unlock(&name_table.lock);
  return n ? n->number : 0;
}

static const char *find_name_text(uint32_t number) {
  prof_i_thread_lock(&name_table.lock);
  /* stays where it is */
  const name_entry *const n =
      number && number <= name_table.count ? name_table.by_number[number - 1] : NULL;
  prof_i_thread_unlock(&name_table.lock);
  return n ? n->text : NULL;
}

const char *prof_i_name_text(uint32_t number) {
  const char *const text = find_name_text(number);
  return text ? text : "";
}

uint32_t prof_i_name_site(uint32_t number, const char *category, const char *otherwise,
                          uint32_t level) {
  static const prof_site sites[] = {{.file = "", .function = "", .level = 1},
                                    {.file = "", .function = "", .level = 2}};
  const char *const text = find_name_text(number);
  return prof_i_site_number(&sites[level > 1], text ? text : otherwise, category);
}

void prof_i_names_forget(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  name_table.lock = fresh;
  name_table.inherited = name_table.by_number; /* their memory stays, and is not lost */
  name_table.by_text = NULL;
  name_table.by_number = NULL;
  name_table.count = name_table.room = 0;
}
