/* One operator, and several in turn: see <prof/op.h>. */
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/error.h"
#include "../base/process.h"
#include "../format/state.h"

/* ---- the cache ---- */

/* Results are kept by key, device and request, in a list, the latest first: an operator takes
   longer than a search of a thousand keys. In memory at most 1024: the least recently used one is
   dropped. In a file, if one was named. Any thread, and over a fork. */

enum { KEPT_MAX = 1024, PATH_ROOM = 4096 };

static struct {
  pthread_mutex_t lock;
  pthread_once_t once;
  prof_op_result *first; /* guarded by lock */
  size_t count;
  char path[PATH_ROOM]; /* of the file, or ""; guarded by lock */
} cache = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_ONCE_INIT, NULL, 0, ""};

static void cache_lock(void) { prof_i_thread_lock(&cache.lock); }
static void cache_unlock(void) { prof_i_thread_unlock(&cache.lock); }
/* a forked child's list is complete, and its lock is free */
static void cache_prepare_fork(void) { pthread_atfork(cache_lock, cache_unlock, cache_unlock); }

static void cache_prepare(void) {
  PROF_I_INSIDE;
  pthread_once(&cache.once, cache_prepare_fork);
}
static void cache_acquire(void) {
  cache_prepare();
  cache_lock();
}

/* An absolute path stays the same file when the process changes its directory. */
static bool make_absolute_path(const char *path, char *to) {
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

static bool is_same_identity(const prof_i_op_identity *a, const prof_i_op_identity *b) {
  return prof_i_is_same_device(a->device, b->device) && a->warmup == b->warmup &&
         a->exec == b->exec && a->repeat == b->repeat && a->repeat_all == b->repeat_all &&
         a->least_ns == b->least_ns && a->time_limit_ns == b->time_limit_ns &&
         a->caches == b->caches && a->is_device_warm == b->is_device_warm &&
         a->vendor_memory == b->vendor_memory && a->open_meters == b->open_meters &&
         !(a->precision < b->precision) && !(a->precision > b->precision) &&
         strcmp(a->timer, b->timer) == 0 && strcmp(a->driver, b->driver) == 0;
}

/* Takes it out of the list. */
static prof_op_result *cache_take(const prof_i_op_identity *identity, const char *key) {
  for (prof_op_result **at = &cache.first; *at; at = &(*at)->next) {
    prof_op_result *const found = *at;
    if (strcmp(found->key, key) != 0 || !is_same_identity(&found->identity, identity)) continue;
    *at = found->next;
    cache.count--;
    return found;
  }
  return NULL;
}

static void cache_put_first(prof_op_result *result) {
  result->next = cache.first;
  cache.first = result;
  cache.count++;
}

static void cache_drop_last(void) {
  prof_op_result **at = &cache.first;
  while ((*at)->next) at = &(*at)->next;
  free(*at);
  *at = NULL;
  cache.count--;
}

/* The file's path, or "". */
static bool cache_has_file(char *path_out) {
  cache_acquire();
  memcpy(path_out, cache.path, sizeof cache.path);
  cache_unlock();
  return path_out[0] != '\0';
}

static void cache_add(prof_op_result *copy) {
  if (!copy) return;
  cache_acquire();
  free(cache_take(&copy->identity, copy->key));
  cache_put_first(copy);
  if (cache.count > KEPT_MAX) cache_drop_last();
  cache_unlock();
}

/* A copy, the caller's; NULL: not found, or no memory for it. *file_status_out: why the file could
   not be read. */
static prof_op_result *cache_find(const prof_i_op_identity *identity, const char *key,
                                  int32_t *file_status_out) {
  char path[PATH_ROOM];
  cache_acquire();
  prof_op_result *const found = cache_take(identity, key);
  prof_op_result *result = found ? prof_i_result_copy(found) : NULL;
  if (found) cache_put_first(found);
  cache_unlock();
  *file_status_out = PROF_OK;
  if (!found && cache_has_file(path)) {
    *file_status_out = prof_i_database_find(path, identity, key, &result);
    if (result) cache_add(prof_i_result_copy(result));
  }
  if (result) result->info.was_kept = 1;
  return result;
}

/* Keeps a copy, which replaces one of the same identity. Without memory it is not kept.
   *file_status_out: why the file did not take it. */
static void cache_store(const prof_op_result *result, int32_t *file_status_out) {
  char path[PATH_ROOM];
  cache_add(prof_i_result_copy(result));
  *file_status_out = cache_has_file(path) ? prof_i_database_store(path, result) : PROF_OK;
}

int prof_op_cache_open(const char *path) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  char whole[PATH_ROOM] = "";
  if (path && !path[0])
    return prof_i_fail(PROF_E_INVALID, "prof_op_cache_open: the path is empty; NULL closes it");
  if (path && !make_absolute_path(path, whole))
    return prof_i_fail(PROF_E_INVALID, "prof_op_cache_open: the path has more than %d bytes",
                       PATH_ROOM - 1);
  const int status = path ? prof_i_database_check(whole) : PROF_OK;
  if (status) return status;
  cache_acquire();
  memcpy(cache.path, whole, sizeof cache.path);
  cache_unlock();
  return PROF_OK;
}

/* As an operator's. */
static const prof_device *default_to_host(const prof_device *device) {
  static const prof_device host = PROF_HOST;
  return device && device->type == 0 ? &host : device;
}

static bool is_result_of_device(const prof_op_result *result, const prof_device *device) {
  return !device || (result->identity.device.type == device->type &&
                     result->identity.device.index == device->index);
}

void prof_op_cache_reset(const prof_device *of) {
  PROF_I_REFUSE_INTERRUPTED();
  const prof_device *const device = default_to_host(of);
  char path[PATH_ROOM];
  /* what is still in the file is found again, and the result says so */
  if (cache_has_file(path)) (void)prof_i_database_delete(path, device);
  cache_acquire();
  for (prof_op_result **at = &cache.first; *at;) {
    prof_op_result *const result = *at;
    if (!is_result_of_device(result, device)) {
      at = &result->next;
      continue;
    }
    *at = result->next;
    cache.count--;
    free(result);
  }
  cache_unlock();
}

size_t prof_op_cache_count(const prof_device *of) {
  PROF_I_REFUSE_INTERRUPTED(0);
  const prof_device *const device = default_to_host(of);
  char path[PATH_ROOM];
  size_t count = 0;
  if (cache_has_file(path) && prof_i_database_count(path, device, &count) == PROF_OK) return count;
  count = 0;
  cache_acquire();
  for (const prof_op_result *at = cache.first; at; at = at->next)
    count += is_result_of_device(at, device);
  cache_unlock();
  return count;
}

/* ---- the call ---- */

int prof_op_profile(const prof_op *op, const prof_op_options *options,
                    prof_op_result **result_out) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  prof_i_measurement m;
  if (!result_out) return prof_i_fail(PROF_E_INVALID, "prof_op_profile: result_out is NULL");
  *result_out = NULL;
  int status = prof_i_measure_init(&m, op, options);
  if (status) return status;
  int32_t asked = PROF_OK, kept = PROF_OK;
  if (!m.options.no_reuse) *result_out = cache_find(&m.identity, m.op.key, &asked);
  if (*result_out) return PROF_OK;
  status = prof_i_measure_interleaved(&m, 1, result_out);
  if (status) return status;
  cache_store(*result_out, &kept);
  (*result_out)->info.file_status = asked ? asked : kept;
  return PROF_OK;
}

int prof_op_profile_in_turn(const prof_op *ops, size_t count, const prof_op_options *options,
                            prof_op_result **results_out) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  enum { COUNT_MAX = 1024 };
  if (!ops || !results_out)
    return prof_i_fail(PROF_E_INVALID, "prof_op_profile_in_turn: %s is NULL",
                       ops ? "results_out" : "ops");
  if (count == 0 || count > COUNT_MAX)
    return prof_i_fail(PROF_E_INVALID, "count is %zu; 1 to %d operators", count, COUNT_MAX);
  memset(results_out, 0, count * sizeof *results_out);
  prof_i_measurement *const all = calloc(count, sizeof *all);
  if (!all) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %zu operators", count);
  int status = prof_i_measure_init_all(all, ops, count, options);
  if (!status) status = prof_i_measure_interleaved(all, count, results_out);
  free(all);
  return status;
}

int prof_op_latency(const prof_op *op, int warmup, int exec, int repeat, double *us_out,
                    uint64_t *workspace_bytes_out) {
  prof_op_result *result = NULL;
  if (!us_out) return prof_i_fail(PROF_E_INVALID, "prof_op_latency: us_out is NULL");
  if (warmup < 0 || exec < 1 || repeat < 1)
    return prof_i_fail(
        PROF_E_INVALID,
        "warmup %d, exec %d, repeat %d: none is negative, and one run and one sample are the least",
        warmup, exec, repeat);
  const prof_op_options options = {.size = sizeof options,
                                   .warmup = warmup,
                                   .no_warmup = warmup == 0,
                                   .exec = exec,
                                   .repeat = repeat,
                                   .repeat_all = 1,
                                   .time_limit_ns = UINT64_MAX};
  const int status = prof_op_profile(op, &options, &result);
  if (status) return status;
  /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): PROF_OK comes with a result */
  /* equal, without a time limit */
  const size_t count = result->count < (size_t)repeat ? result->count : (size_t)repeat;
  memcpy(us_out, result->samples, count * sizeof *us_out);
  if (workspace_bytes_out) *workspace_bytes_out = result->info.workspace_bytes;
  prof_op_result_destroy(result);
  return PROF_OK;
}
