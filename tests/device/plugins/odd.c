/* One plug-in, and what can be wrong with one: by the name that its file has, of which tests make
   copies. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "../table.h"

static const char *file_name(void) {
  Dl_info about;
  if (!dladdr(__extension__(void *) file_name, &about) || !about.dli_fname) return "";
  const char *const slash = strrchr(about.dli_fname, '/');
  return slash ? slash + 1 : about.dli_fname;
}

static int is_absent(const prof_backend_host *host) {
  (void)host;
  return PROF_BACKEND_ABSENT;
}
static const char *last_error(prof_backend_self *self) {
  (void)self;
  return "libvendor.so.1 is nowhere";
}

static prof_backend table = TEST_TABLE("odd");
static char name[32];

static void make_table(void) {
  strncpy(name, file_name(), sizeof name - 1);
  if (strchr(name, '.')) *strchr(name, '.') = '\0';
  table.name = name;
  if (strcmp(name, "major") == 0) table.major = PROF_BACKEND_MAJOR + 1;
  if (strcmp(name, "short") == 0) table.size = offsetof(prof_backend, event_query);
  if (strcmp(name, "hole") == 0) table.event_query = NULL;
  if (strcmp(name, "absent") == 0) {
    table.probe = is_absent;
    table.last_error = last_error;
  }
}

/* Several threads may ask at once. */
const prof_backend *prof_backend_entry(uint32_t major, uint32_t minor) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)minor;
  pthread_once(&once, make_table);
  return major != PROF_BACKEND_MAJOR || strcmp(name, "null") == 0 ? NULL : &table;
}
