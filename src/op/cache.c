/* See cache.h. A list, the latest first: an operator takes longer than looking at a thousand keys. */
#include "cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_MAX = 1024 };

static struct {
  pthread_mutex_t lock;
  pthread_once_t once;
  prof_op_result *first; /* guarded by lock */
  size_t count;
} own = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_ONCE_INIT, NULL, 0};

static void lock(void) { pthread_mutex_lock(&own.lock); }
static void unlock(void) { pthread_mutex_unlock(&own.lock); }
static void prepare_forks(void) { pthread_atfork(lock, unlock, unlock); } /* a child's list is whole, and nobody has its lock */

static void acquire(void) {
  pthread_once(&own.once, prepare_forks);
  lock();
}

static bool is_same(const prof_i_op_identity *a, const prof_i_op_identity *b) {
  return a->device.type == b->device.type && a->device.index == b->device.index && a->warmup == b->warmup &&
         a->exec == b->exec && a->repeat == b->repeat && a->repeat_all == b->repeat_all && a->least_ns == b->least_ns &&
         a->time_limit_ns == b->time_limit_ns && a->caches == b->caches && !(a->precision < b->precision) &&
         !(a->precision > b->precision) && strcmp(a->timer, b->timer) == 0;
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

prof_op_result *prof_i_cache_find(const prof_i_op_identity *identity, const char *key) {
  acquire();
  prof_op_result *const found = take(identity, key);
  prof_op_result *const copy = found ? prof_i_result_copy(found) : NULL;
  if (found) put_first(found);
  unlock();
  if (copy) copy->info.was_kept = 1;
  return copy;
}

void prof_i_cache_keep(const prof_op_result *result) {
  prof_op_result *const copy = prof_i_result_copy(result);
  if (!copy) return;
  acquire();
  free(take(&copy->identity, copy->key));
  put_first(copy);
  if (own.count > KEPT_MAX) drop_last();
  unlock();
}

static bool is_of(const prof_op_result *result, const prof_device *device) {
  return !device || (result->identity.device.type == device->type && result->identity.device.index == device->index);
}

void prof_op_cache_reset(const prof_device *device) {
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

size_t prof_op_cache_count(const prof_device *device) {
  size_t count = 0;
  acquire();
  for (const prof_op_result *at = own.first; at; at = at->next) count += is_of(at, device);
  unlock();
  return count;
}
