/* See library.h. The static library does not open or find libraries: the linker warns about
   dlopen() in a program that is linked without shared libraries. */
#define _GNU_SOURCE
#include "library.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- is a library loaded? ---- */

#ifdef PROF_OPEN_LIBRARIES

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "port.h"

/* A fork in the middle of dl_iterate_phdr() leaves glibc's child a list that is locked for good,
   and its next dlopen() hangs. So a fork waits until nobody of ours is in there: for some time,
   because whoever makes us wait may wait for the fork. */
static struct {
  pthread_once_t once;
  pthread_mutex_t lock;
  pthread_t holder; /* that forks */
  uint32_t has_handlers, is_held;
  uint32_t forks; /* forks under way, which come before a search. Atomic */
} loader_guard = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

/* Not by pthread_mutex_timedlock(), which goes by CLOCK_REALTIME: one that is set back meanwhile
   would hold the fork up by as much. */
static bool guard_lock_in_time(void) {
  enum { NAPS = 1000 };
  const int saved = errno; /* the host's, which a signal in a nap would change */
  int naps = 0;
  while (pthread_mutex_trylock(&loader_guard.lock) != 0 && ++naps <= NAPS)
    nanosleep(&(struct timespec){0, 1000000}, NULL);
  errno = saved;
  return naps <= NAPS;
}

static void guard_before_fork(void) {
  __atomic_fetch_add(&loader_guard.forks, 1, __ATOMIC_SEQ_CST);
  if (!guard_lock_in_time()) return;
  loader_guard.holder = pthread_self();
  __atomic_store_n(&loader_guard.is_held, 1, __ATOMIC_RELEASE);
}

static void guard_unlock(void) {
  if (!__atomic_load_n(&loader_guard.is_held, __ATOMIC_ACQUIRE) ||
      !pthread_equal(loader_guard.holder, pthread_self()))
    return;
  __atomic_store_n(&loader_guard.is_held, 0, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&loader_guard.lock);
}

static void guard_after_fork(void) {
  guard_unlock();
  __atomic_fetch_sub(&loader_guard.forks, 1, __ATOMIC_SEQ_CST);
}

/* No other thread's fork is under way here. */
static void guard_after_fork_child(void) {
  guard_unlock();
  __atomic_store_n(&loader_guard.forks, 0, __ATOMIC_SEQ_CST);
}

static void guard_register_fork_handlers(void) {
  loader_guard.has_handlers =
      pthread_atfork(guard_before_fork, guard_after_fork, guard_after_fork_child) == 0;
}

/* What follows reads by itself what the loader's lock keeps, of which ThreadSanitizer knows
   nothing: neither its instructions nor its strncmp() may see that, in whose program ever. */

static PROF_I_RACES_BY_DESIGN const char *file_name_of(const char *path) {
  const char *file = path;
  for (; *path; path++)
    if (*path == '/') file = path + 1;
  return file;
}

/* The name that it was linked with, or NULL. */
static PROF_I_RACES_BY_DESIGN const char *soname_of(const struct dl_phdr_info *info) {
  const ElfW(Dyn) *entry = NULL;
  ElfW(Addr) texts = 0, offset = 0;
  for (uint32_t i = 0; i < info->dlpi_phnum && !entry; i++)
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
      entry = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
  for (; entry && entry->d_tag != DT_NULL; entry++) {
    if (entry->d_tag == DT_STRTAB) texts = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SONAME) offset = entry->d_un.d_val;
  }
  if (!texts || !offset) return NULL;
  /* some loaders put addresses there, others leave what the file has */
  return (const char *)((texts < info->dlpi_addr ? info->dlpi_addr : 0) + texts + offset);
}

typedef struct library_query {
  const char *text;
  size_t bytes; /* of it that count: up to its ".so" */
  char *path_out;
  size_t room;
} library_query;

static PROF_I_RACES_BY_DESIGN bool name_matches(const char *name, const library_query *it) {
  size_t same = 0;
  while (name && same < it->bytes && name[same] == it->text[same]) same++;
  return same == it->bytes;
}

static PROF_I_RACES_BY_DESIGN int match_library(struct dl_phdr_info *info, size_t bytes,
                                                void *user) {
  const library_query *const it = user;
  const char *const path = info->dlpi_name;
  size_t at = 0;
  (void)bytes;
  if (!(path && name_matches(file_name_of(path), it)) && !name_matches(soname_of(info), it))
    return 0;
  for (; path && it->room && path[at] && at + 1 < it->room; at++) it->path_out[at] = path[at];
  if (it->room) it->path_out[at] = '\0';
  return 1;
}

int prof_i_library_find_loaded(const char *name, char *path_out, size_t room) {
  static const char end[] = ".so";
  const char *const stop = strstr(name, end);
  library_query it = {name, stop ? (size_t)(stop - name) + sizeof end - 1 : strlen(name), path_out,
                      room};
  pthread_once(&loader_guard.once, guard_register_fork_handlers);
  if (!loader_guard.has_handlers || __atomic_load_n(&loader_guard.forks, __ATOMIC_SEQ_CST) ||
      pthread_mutex_trylock(&loader_guard.lock) != 0)
    return -1;
  const int is_there = dl_iterate_phdr(match_library, &it);
  pthread_mutex_unlock(&loader_guard.lock);
  return is_there;
}

#else

int prof_i_library_find_loaded(const char *name, char *path_out, size_t room) {
  (void)name;
  (void)path_out;
  (void)room;
  return -1;
}

#endif

/* ---- opening ---- */

/* Of what is nowhere the loader says the name that it was given; of what it has found, its place,
   or that of what that needs. */
static bool error_says_not_found(const char *name, const char *text) {
  const size_t bytes = strlen(name);
  return strchr(name, '/') ? access(name, F_OK) != 0
                           : strncmp(text, name, bytes) == 0 && text[bytes] == ':';
}

static prof_i_library_error open_error_text(const char *name, const char *text) {
  prof_i_library_error why = {.is_broken = !error_says_not_found(name, text)};
  const bool is_named = strncmp(text, name, strlen(name)) == 0;
  snprintf(why.text, sizeof why.text, "%s%s%s", is_named ? "" : name,
           !why.is_broken ? ""
           : is_named     ? "cannot be loaded: "
                          : " cannot be loaded: ",
           text);
  return why;
}

void *prof_i_library_try(const char *name, prof_i_library_error *why) {
  const char *text;
  void *const library = prof_i_library_open(name, 0, &text);
  if (library) return library;
  const prof_i_library_error found = open_error_text(name, text);
  if (!why->text[0] || (found.is_broken && !why->is_broken)) *why = found;
  return NULL;
}

#ifdef PROF_OPEN_LIBRARIES

bool prof_i_library_can_open(void) { return true; }

/* Even for loaded libraries only, the loader first opens and reads each file of that name in all
   its folders. So it is not queried if no library of that name is loaded. */
static bool may_be_loaded(const char *name) {
  return strchr(name, '/') || prof_i_library_find_loaded(name, NULL, 0) != 0;
}

void *prof_i_library_open(const char *name, int is_there, const char **why_out) {
  if (is_there && !may_be_loaded(name)) {
    *why_out = "it is not loaded";
    return NULL;
  }
  void *const library =
      dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | (is_there ? RTLD_NOLOAD : 0));
  const char *const why = library ? NULL : dlerror();
  *why_out = why ? why : "it is not loaded";
  return library;
}

void *prof_i_library_find(void *library, const char *symbol) { return dlsym(library, symbol); }

#else

bool prof_i_library_can_open(void) { return false; }

void *prof_i_library_open(const char *name, int is_there, const char **why_out) {
  (void)name;
  (void)is_there;
  *why_out = "libprof.a opens no libraries; link libprof.so, or give a table to prof_backend_add()";
  return NULL;
}

void *prof_i_library_find(void *library, const char *symbol) {
  (void)library;
  (void)symbol;
  return NULL;
}

#endif

/* ---- names of C++ functions ---- */

enum { MANGLED_MAX = 4096 };

typedef char *(*demangler)(const char *mangled, char *to, size_t *room, int *status);

static demangler demangler_find(void) {
  static void *found; /* relaxed: every thread finds the same library */
  static const char *const libraries[] = {"libstdc++.so.6", "libc++abi.so.1"};
  demangler function;
  void *symbol = __atomic_load_n(&found, __ATOMIC_RELAXED);
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries && !symbol; i++) {
    const char *why;
    void *const library = prof_i_library_open(libraries[i], 1, &why);
    if (library) symbol = prof_i_library_find(library, "__cxa_demangle");
  }
  __atomic_store_n(&found, symbol, __ATOMIC_RELAXED);
  *(void **)&function = symbol;
  return function;
}

char *prof_i_demangle(const char *text, size_t bytes) {
  const demangler demangle = bytes > 2 && bytes <= MANGLED_MAX && text[0] == '_' && text[1] == 'Z'
                                 ? demangler_find()
                                 : NULL;
  char *const mangled = demangle ? strndup(text, bytes) : NULL;
  int status = -1;
  char *const result = mangled ? demangle(mangled, NULL, NULL, &status) : NULL;
  free(mangled);
  return result;
}
