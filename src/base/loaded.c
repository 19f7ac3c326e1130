/* See loaded.h. Only what opens libraries looks: the static library goes without. */
#define _GNU_SOURCE
#include "loaded.h"

#ifdef PROF_OPEN_LIBRARIES

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
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
  uint32_t forks; /* under way: they go before who looks. Atomic */
} own = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

/* Not by pthread_mutex_timedlock(), which goes by CLOCK_REALTIME: one that is set back meanwhile
   would hold the fork up by as much. */
static bool has_lock_in_time(void) {
  enum { NAPS = 1000 };
  const int saved = errno; /* the host's, which a signal in a nap would change */
  int naps = 0;
  while (pthread_mutex_trylock(&own.lock) != 0 && ++naps <= NAPS)
    nanosleep(&(struct timespec){0, 1000000}, NULL);
  errno = saved;
  return naps <= NAPS;
}

static void before_fork(void) {
  __atomic_fetch_add(&own.forks, 1, __ATOMIC_SEQ_CST);
  if (!has_lock_in_time()) return;
  own.holder = pthread_self();
  __atomic_store_n(&own.is_held, 1, __ATOMIC_RELEASE);
}

static void let_go(void) {
  if (!__atomic_load_n(&own.is_held, __ATOMIC_ACQUIRE) ||
      !pthread_equal(own.holder, pthread_self()))
    return;
  __atomic_store_n(&own.is_held, 0, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&own.lock);
}

static void after_fork(void) {
  let_go();
  __atomic_fetch_sub(&own.forks, 1, __ATOMIC_SEQ_CST);
}

/* No other thread's fork is under way here. */
static void after_fork_child(void) {
  let_go();
  __atomic_store_n(&own.forks, 0, __ATOMIC_SEQ_CST);
}

static void prepare_forks(void) {
  own.has_handlers = pthread_atfork(before_fork, after_fork, after_fork_child) == 0;
}

/* What follows reads by itself what the loader's lock keeps, of which ThreadSanitizer knows
   nothing: neither its instructions nor its strncmp() may see that, in whose program ever. */

static PROF_I_RACES_BY_DESIGN const char *file_of(const char *path) {
  const char *file = path;
  for (; *path; path++)
    if (*path == '/') file = path + 1;
  return file;
}

/* The name that it was linked with, or NULL. */
static PROF_I_RACES_BY_DESIGN const char *own_name_of(const struct dl_phdr_info *info) {
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

typedef struct wanted {
  const char *text;
  size_t bytes; /* of it that count: up to its ".so" */
  char *path_out;
  size_t room;
} wanted;

static PROF_I_RACES_BY_DESIGN bool is_so_called(const char *name, const wanted *it) {
  size_t same = 0;
  while (name && same < it->bytes && name[same] == it->text[same]) same++;
  return same == it->bytes;
}

static PROF_I_RACES_BY_DESIGN int is_it(struct dl_phdr_info *info, size_t bytes, void *user) {
  const wanted *const it = user;
  const char *const path = info->dlpi_name;
  size_t at = 0;
  (void)bytes;
  if (!(path && is_so_called(file_of(path), it)) && !is_so_called(own_name_of(info), it)) return 0;
  for (; path && it->room && path[at] && at + 1 < it->room; at++) it->path_out[at] = path[at];
  if (it->room) it->path_out[at] = '\0';
  return 1;
}

int prof_i_library_seek(const char *name, char *path_out, size_t room) {
  static const char end[] = ".so";
  const char *const stop = strstr(name, end);
  wanted it = {name, stop ? (size_t)(stop - name) + sizeof end - 1 : strlen(name), path_out, room};
  pthread_once(&own.once, prepare_forks);
  if (!own.has_handlers || __atomic_load_n(&own.forks, __ATOMIC_SEQ_CST) ||
      pthread_mutex_trylock(&own.lock) != 0)
    return -1;
  const int is_there = dl_iterate_phdr(is_it, &it);
  pthread_mutex_unlock(&own.lock);
  return is_there;
}

#else

int prof_i_library_seek(const char *name, char *path_out, size_t room) {
  (void)name;
  (void)path_out;
  (void)room;
  return -1;
}

#endif
