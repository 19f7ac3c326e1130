/* See cache.h. A list, the latest first: an operator takes longer than looking at a thousand
   keys. */
#include "cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/call.h"
#include "../base/log.h"
#include "../base/this_thread.h"
#include "database.h"

enum { KEPT_MAX = 1024, PATH_ROOM = 4096 };

static struct {
  pthread_mutex_t lock;
  pthread_once_t once;
  prof_op_result *first; /* guarded by lock */
  size_t count;
  char path[PATH_ROOM]; /* of the file, or ""; guarded by lock */
} own = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_ONCE_INIT, NULL, 0, ""};

static void lock(void) { prof_i_thread_lock(&own.lock); }
static void unlock(void) { prof_i_thread_unlock(&own.lock); }
/* a child's list is whole, and nobody has its lock */
static void prepare_forks(void) { pthread_atfork(lock, unlock, unlock); }

static void prepare(void) {
  PROF_I_INSIDE;
  pthread_once(&own.once, prepare_forks);
}
static void acquire(void) {
  prepare();
  lock();
}

/* So that it stays the same file wherever the process goes. */
static bool make_whole(const char *path, char *to) {
  size_t used = 0;
  if (path[0] != '/' && getcwd(to, PATH_ROOM - 1)) {
    used = strlen(to);
    to[used++] = '/';
  }
  const size_t bytes = strlen(path) + 1;
  if (bytes > PATH_ROOM - used) return false;
  memcpy(to + used, path, bytes);
  return true;
}

static bool is_same(const prof_i_op_identity *a, const prof_i_op_identity *b) {
  return a->device.type == b->device.type && a->device.index == b->device.index &&
         a->warmup == b->warmup && a->exec == b->exec && a->repeat == b->repeat &&
         a->repeat_all == b->repeat_all && a->least_ns == b->least_ns &&
         a->time_limit_ns == b->time_limit_ns && a->caches == b->caches &&
         a->is_device_warm == b->is_device_warm && a->vendor_memory == b->vendor_memory &&
         a->open_meters == b->open_meters && !(a->precision < b->precision) &&
         !(a->precision > b->precision) && strcmp(a->timer, b->timer) == 0 &&
         strcmp(a->driver, b->driver) == 0;
}

/* Takes it out of the list. */
static prof_op_result *take(const prof_i_op_identity *identity, const char *key) {
  for (prof_op_result **at = &own.first; *at; at = &(*at)->next) {
    prof_op_result *const found = *at;
    if (strcmp(found->key, key) != 0 || !is_same(&found->identity, identity)) continue;
    *at = found->next;
    own.count--;
    return found;
  }
  return NULL;
}

static void put_first(prof_op_result *result) {
  result->next = own.first;
  own.first = result;
  own.count++;
}

static void drop_last(void) {
  prof_op_result **at = &own.first;
  while ((*at)->next) at = &(*at)->next;
  free(*at);
  *at = NULL;
  own.count--;
}

/* The file's path, or "". */
static bool has_file(char *path_out) {
  acquire();
  memcpy(path_out, own.path, sizeof own.path);
  unlock();
  return path_out[0] != '\0';
}

static void remember(prof_op_result *copy) {
  if (!copy) return;
  acquire();
  free(take(&copy->identity, copy->key));
  put_first(copy);
  if (own.count > KEPT_MAX) drop_last();
  unlock();
}

prof_op_result *prof_i_cache_find(const prof_i_op_identity *identity, const char *key,
                                  int32_t *file_status_out) {
  char path[PATH_ROOM];
  acquire();
  prof_op_result *const found = take(identity, key);
  prof_op_result *result = found ? prof_i_result_copy(found) : NULL;
  if (found) put_first(found);
  unlock();
  *file_status_out = PROF_OK;
  if (!found && has_file(path)) {
    *file_status_out = prof_i_database_find(path, identity, key, &result);
    if (result) remember(prof_i_result_copy(result));
  }
  if (result) result->info.was_kept = 1;
  return result;
}

void prof_i_cache_keep(const prof_op_result *result, int32_t *file_status_out) {
  char path[PATH_ROOM];
  remember(prof_i_result_copy(result));
  *file_status_out = has_file(path) ? prof_i_database_keep(path, result) : PROF_OK;
}

int prof_op_cache_open(const char *path) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  char whole[PATH_ROOM] = "";
  if (path && !path[0])
    return prof_i_fail(PROF_E_INVALID, "prof_op_cache_open: the path is empty; NULL closes it");
  if (path && !make_whole(path, whole))
    return prof_i_fail(PROF_E_INVALID, "prof_op_cache_open: the path has more than %d bytes",
                       PATH_ROOM - 1);
  const int status = path ? prof_i_database_check(whole) : PROF_OK;
  if (status) return status;
  acquire();
  memcpy(own.path, whole, sizeof own.path);
  unlock();
  return PROF_OK;
}

/* As an operator's. */
static const prof_device *or_host(const prof_device *device) {
  static const prof_device host = PROF_HOST;
  return device && device->type == 0 ? &host : device;
}

static bool is_of(const prof_op_result *result, const prof_device *device) {
  return !device || (result->identity.device.type == device->type &&
                     result->identity.device.index == device->index);
}

void prof_op_cache_reset(const prof_device *of) {
  PROF_I_REFUSE_INTERRUPTED();
  const prof_device *const device = or_host(of);
  char path[PATH_ROOM];
  /* what stands there still is found again, and says so */
  if (has_file(path)) (void)prof_i_database_forget(path, device);
  acquire();
  for (prof_op_result **at = &own.first; *at;) {
    prof_op_result *const result = *at;
    if (!is_of(result, device)) {
      at = &result->next;
      continue;
    }
    *at = result->next;
    own.count--;
    free(result);
  }
  unlock();
}

size_t prof_op_cache_count(const prof_device *of) {
  PROF_I_REFUSE_INTERRUPTED(0);
  const prof_device *const device = or_host(of);
  char path[PATH_ROOM];
  size_t count = 0;
  if (has_file(path) && prof_i_database_count(path, device, &count) == PROF_OK) return count;
  count = 0;
  acquire();
  for (const prof_op_result *at = own.first; at; at = at->next) count += is_of(at, device);
  unlock();
  return count;
}
