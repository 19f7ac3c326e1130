/* See registry.h. */
#define _GNU_SOURCE
#include "registry.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../base/fault.h"
#include "../base/log.h"
#include "../base/options.h"
#include "../base/port.h"
#include "../base/this_thread.h"
#include "../format/layout.h"
#include "host.h"
#include "plugin.h"
#include "table.h"

enum { ENVIRONMENT_NEW, ENVIRONMENT_AT_IT, ENVIRONMENT_READ };

static struct {
  /* rank 3: texts, results and the end of the list. Nothing is called under it */
  pthread_mutex_t lock;
  prof_i_back_end all[PROF_I_BACKENDS_MAX + PROF_I_UNUSED_MAX];
  uint32_t count;        /* release; what stands below does not move */
  uint32_t used, unused; /* of them; release */
  /* whoever swaps it to AT_IT lists the built-in ones and loads PROF_BACKENDS */
  uint32_t environment;
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void set_result(prof_i_back_end *end, int32_t result, const char *reason) {
  prof_i_thread_lock(&own.lock);
  __atomic_store_n(&end->result, result, __ATOMIC_RELAXED);
  snprintf(end->reason, sizeof end->reason, "%s",
           reason && *reason ? reason : prof_backend_result_text(result));
  prof_i_thread_unlock(&own.lock);
}

void prof_i_registry_result(prof_i_back_end *end, int32_t *result_out, char reason_out[256]) {
  prof_i_thread_lock(&own.lock);
  *result_out = end->result;
  memcpy(reason_out, end->reason, sizeof end->reason);
  prof_i_thread_unlock(&own.lock);
}

bool prof_i_registry_is_listing(void) {
  return __atomic_load_n(&own.environment, __ATOMIC_ACQUIRE) != ENVIRONMENT_READ;
}

static uint32_t phase_of(const prof_i_back_end *end) {
  return __atomic_load_n(&end->phase, __ATOMIC_ACQUIRE);
}
static void set_phase(prof_i_back_end *end, prof_i_phase phase) {
  __atomic_store_n(&end->phase, (uint32_t)phase, __ATOMIC_RELEASE);
}

static bool take_phase(prof_i_back_end *end, prof_i_phase from, prof_i_phase to) {
  uint32_t expected = from;
  return __atomic_compare_exchange_n(&end->phase, &expected, (uint32_t)to, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

/* ---- the list ---- */

/* A plug-in by its table, which stays where it is; one that was added by its name; what is of no
   use by its path. */
static bool is_same(const prof_i_back_end *end, const prof_backend *table,
                    const prof_backend *origin, const char *path) {
  if (!origin) return !end->origin && strcmp(end->path, path) == 0;
  return path ? end->is_plugin && end->origin == origin
              : !end->is_plugin && strcmp(end->table.name, table->name) == 0;
}

static bool is_listed(const prof_backend *table, const prof_backend *origin, const char *path) {
  for (uint32_t i = 0; i < own.count; i++)
    if (is_same(&own.all[i], table, origin, path)) return true;
  return false;
}

bool prof_i_registry_has(const char *path) {
  bool has = false;
  for (uint32_t i = 0; i < __atomic_load_n(&own.count, __ATOMIC_ACQUIRE); i++)
    has |= own.all[i].origin && strcmp(own.all[i].path, path) == 0;
  return has;
}

bool prof_i_registry_has_room(void) {
  return __atomic_load_n(&own.used, __ATOMIC_ACQUIRE) < PROF_I_BACKENDS_MAX;
}

/* Lock held, and there is room. */
static void put(const prof_backend *table, const prof_backend *origin, const char *path,
                int32_t result, const char *reason) {
  prof_i_back_end *const end = &own.all[own.count];
  *end = (prof_i_back_end){.phase = table ? PROF_I_PHASE_NEW : PROF_I_PHASE_SHUT,
                           .is_plugin = path != NULL,
                           .origin = origin,
                           .result = result};
  if (table) end->table = *table;
  snprintf(end->reason, sizeof end->reason, "%s", reason);
  snprintf(end->path, sizeof end->path, "%s", path ? path : "");
  __atomic_fetch_add(origin ? &own.used : &own.unused, 1, __ATOMIC_RELEASE);
  __atomic_store_n(&own.count, own.count + 1, __ATOMIC_RELEASE);
}

int prof_i_registry_add(const prof_backend *table, const prof_backend *origin, const char *path) {
  prof_i_thread_lock(&own.lock);
  const bool is_there = is_listed(table, origin, path), has_room = own.used < PROF_I_BACKENDS_MAX;
  if (has_room && !is_there) put(table, origin, path, PROF_BACKEND_OK, "");
  prof_i_thread_unlock(&own.lock);
  if (has_room || is_there) return PROF_OK;
  return prof_i_fail(PROF_E_TOO_LARGE, "%s: %d back ends are there already",
                     path ? path : table->name, PROF_I_BACKENDS_MAX);
}

void prof_i_registry_add_unused(const char *path, int32_t result, const char *reason) {
  prof_i_thread_lock(&own.lock);
  if (own.unused < PROF_I_UNUSED_MAX && !is_listed(NULL, NULL, path))
    put(NULL, NULL, path, result, reason);
  prof_i_thread_unlock(&own.lock);
}

int prof_i_registry_take(const prof_backend *table, const char *what) {
  prof_backend whole;
  const int status = prof_i_table_take(&whole, table, what);
  if (status != PROF_OK) return status;
  return prof_i_registry_add(&whole, table, NULL);
}

/* The built-in ones. The plug-ins that PROF_BACKENDS names, or NULL: none are left to load. */
static const char *list_built_in(void) {
  PROF_I_INSIDE;
  uint32_t is_new = ENVIRONMENT_NEW;
  if (!__atomic_compare_exchange_n(&own.environment, &is_new, ENVIRONMENT_AT_IT, false,
                                   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return NULL;
  pthread_atfork(NULL, NULL, prof_i_registry_forget);
  for (int i = 0; prof_i_built_in_backends[i]; i++)
    prof_i_registry_take(prof_i_built_in_backends[i], "a back end that comes with prof");
  const char *const paths = secure_getenv("PROF_BACKENDS");
  if (paths && *paths) return paths;
  __atomic_store_n(&own.environment, ENVIRONMENT_READ, __ATOMIC_RELEASE);
  return NULL;
}

void prof_i_registry_prepare(void) {
  PROF_I_HOLD_CANCEL;
  const char *const paths = list_built_in();
  if (!paths) return;
  prof_i_plugins_load(paths); /* their constructors may call prof */
  __atomic_store_n(&own.environment, ENVIRONMENT_READ, __ATOMIC_RELEASE);
}

prof_i_back_end *prof_i_registry_at(uint32_t number) {
  return number < __atomic_load_n(&own.count, __ATOMIC_ACQUIRE) ? &own.all[number] : NULL;
}

/* ---- one back end ---- */

static const char *words_of(const prof_i_back_end *end, prof_backend_self *self) {
  const char *const words = end->table.last_error ? end->table.last_error(self) : NULL;
  return words ? words : "";
}

static void nap(void) {
  const struct timespec ms = {0, 1000000};
  nanosleep(&ms, NULL);
}

bool prof_i_registry_is_open(const prof_i_back_end *end) {
  return phase_of(end) == PROF_I_PHASE_OPEN;
}

static int32_t result_of(const prof_i_back_end *end) {
  return __atomic_load_n(&end->result, __ATOMIC_RELAXED);
}
static bool may_work(const prof_i_back_end *end) {
  return result_of(end) == PROF_BACKEND_OK || result_of(end) == PROF_BACKEND_NOT_READY;
}

bool prof_i_registry_is_shut(const prof_i_back_end *end) {
  return phase_of(end) == PROF_I_PHASE_SHUT ||
         (phase_of(end) == PROF_I_PHASE_LOOKED && !may_work(end));
}

bool prof_i_registry_look(prof_i_back_end *end, uint32_t patience_ms) {
  PROF_I_HOLD_CANCEL;
  if (take_phase(end, PROF_I_PHASE_NEW, PROF_I_PHASE_LOOKING)) {
    end->was_in_use = end->table.in_use && end->table.in_use();
    const int result = end->table.probe(&prof_i_device_host);
    set_result(end, result, result ? words_of(end, NULL) : "");
    set_phase(end, PROF_I_PHASE_LOOKED);
  }
  for (const uint64_t begun_ns = prof_i_port_monotonic_ns(); phase_of(end) == PROF_I_PHASE_LOOKING;
       nap())
    /* on a busy machine a nap is longer than it says */
    if (prof_i_ns_since(begun_ns) >= patience_ms * UINT64_C(1000000)) return false;
  return true;
}

static void list_devices(prof_i_back_end *end) {
  enum { DEVICES_MAX = 1024 };
  prof_backend_device about = {.size = sizeof about};
  uint32_t count = 0;
  if (!end->table.device) return;
  while (count < DEVICES_MAX && end->table.device(end->self, count, &about) == PROF_BACKEND_OK)
    count++;
  if (!count || !(end->devices = calloc(count, sizeof *end->devices))) return;
  for (uint32_t i = 0; i < count; i++) {
    prof_backend_device *const device = &end->devices[i];
    *device = (prof_backend_device){.size = sizeof *device};
    if (end->table.device(end->self, i, device) != PROF_BACKEND_OK) break;
    device->name[sizeof device->name - 1] = device->arch[sizeof device->arch - 1] =
        device->driver[sizeof device->driver - 1] = '\0';
    end->device_count = i + 1;
  }
}

static bool has_meter(const prof_i_back_end *end) {
  prof_backend_metric first = {.size = sizeof first};
  return end->table.metric && end->table.metric(end->self, 0, &first) == PROF_BACKEND_OK;
}

/* One that is not needed yet is asked again when it is. */
static bool wait_for_use(prof_i_back_end *end) {
  set_result(end, PROF_BACKEND_NOT_READY, words_of(end, NULL));
  set_phase(end, PROF_I_PHASE_LOOKED);
  return false;
}

/* Of one that works: "", or what it does without. */
static void set_open(prof_i_back_end *end) {
  char reason[sizeof end->reason];
  const char *const remark = end->table.remark ? end->table.remark(end->self) : NULL;
  const bool has_one = remark && *remark;
  snprintf(reason, sizeof reason, "%s%s", has_one ? "works, but " : "", has_one ? remark : "");
  set_result(end, PROF_BACKEND_OK, reason);
  list_devices(end);
  end->has_meter = has_meter(end);
}

/* False: the program does not use it so far. */
static bool open_one(prof_i_back_end *end) {
  const int result = end->table.open(&prof_i_device_host, &end->self);
  if (result == PROF_BACKEND_NOT_READY) return wait_for_use(end);
  if (result)
    set_result(end, result, words_of(end, NULL));
  else if (end->self)
    set_open(end);
  else
    set_result(end, PROF_BACKEND_VENDOR, "open() said that it went well, and gave nothing");
  set_phase(end, !result && end->self ? PROF_I_PHASE_OPEN : PROF_I_PHASE_SHUT);
  return true;
}

/* Does it serve devices' scopes, and not their meters alone? */
static bool serves(const prof_i_back_end *end, int32_t device_type) {
  return end->table.device_type == device_type && end->table.event_record;
}

/* To look at one may bring another: a layer that its library loads, and that can do more. */
static bool look_at_all(int32_t device_type) {
  prof_i_back_end *end;
  for (uint32_t i = 0; (end = prof_i_registry_at(i)) != NULL; i++)
    if (serves(end, device_type) && !prof_i_registry_look(end, 0)) return false;
  return true;
}

/* Of those that could be opened the one that can do most; of several such, the first.
   *is_taken_out: one is open already, which is returned, or is just being opened. */
static prof_i_back_end *choose(int32_t device_type, bool *is_taken_out) {
  prof_i_back_end *end, *best = NULL;
  *is_taken_out = false;
  for (uint32_t i = 0; (end = prof_i_registry_at(i)) != NULL; i++) {
    const uint32_t phase = serves(end, device_type) ? phase_of(end) : PROF_I_PHASE_SHUT;
    *is_taken_out = phase == PROF_I_PHASE_OPEN || phase == PROF_I_PHASE_OPENING;
    if (*is_taken_out) return phase == PROF_I_PHASE_OPEN ? end : NULL;
    if (phase != PROF_I_PHASE_LOOKED || !may_work(end)) continue;
    if (!best || __builtin_popcount(prof_i_table_abilities(&end->table)) >
                     __builtin_popcount(prof_i_table_abilities(&best->table)))
      best = end;
  }
  return best;
}

prof_i_back_end *prof_i_registry_open(int32_t device_type) {
  PROF_I_HOLD_CANCEL;
  prof_i_back_end *end;
  bool is_taken;
  prof_i_registry_prepare();
  if (!look_at_all(device_type)) return NULL;
  while ((end = choose(device_type, &is_taken)) != NULL && !is_taken) {
    if (take_phase(end, PROF_I_PHASE_LOOKED, PROF_I_PHASE_OPENING) && !open_one(end)) return NULL;
    if (phase_of(end) == PROF_I_PHASE_OPEN) return end;
  }
  return end;
}

static bool is_anybody_at_it(void) {
  const prof_i_back_end *end;
  if (__atomic_load_n(&own.environment, __ATOMIC_ACQUIRE) == ENVIRONMENT_AT_IT) return true;
  for (uint32_t i = 0; (end = prof_i_registry_at(i)) != NULL; i++) {
    const uint32_t phase = phase_of(end);
    if (phase == PROF_I_PHASE_LOOKING || phase == PROF_I_PHASE_OPENING) return true;
  }
  return false;
}

void prof_i_registry_wait(uint32_t patience_ms) {
  for (const uint64_t begun_ns = prof_i_port_monotonic_ns();
       is_anybody_at_it() && prof_i_ns_since(begun_ns) < patience_ms * UINT64_C(1000000);)
    nap();
}

bool prof_i_registry_open_meters(prof_i_back_end *end) {
  PROF_I_HOLD_CANCEL;
  if (end->table.event_record) return prof_i_registry_open(end->table.device_type) == end;
  if (prof_i_registry_look(end, 0) && may_work(end) &&
      take_phase(end, PROF_I_PHASE_LOOKED, PROF_I_PHASE_OPENING))
    open_one(end);
  return phase_of(end) == PROF_I_PHASE_OPEN;
}

void prof_i_registry_have_meters(prof_i_back_end *end) {
  for (uint32_t has_reader = 0; !__atomic_compare_exchange_n(
           &end->has_reader, &has_reader, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
       has_reader = 0)
    nap();
}

void prof_i_registry_let_meters_go(prof_i_back_end *end) {
  __atomic_store_n(&end->has_reader, 0, __ATOMIC_RELEASE);
}

bool prof_i_registry_is_at_it(int32_t device_type) {
  const prof_i_back_end *end;
  if (__atomic_load_n(&own.environment, __ATOMIC_ACQUIRE) != ENVIRONMENT_READ) return true;
  for (uint32_t i = 0; (end = prof_i_registry_at(i)) != NULL; i++) {
    const uint32_t phase = phase_of(end);
    const bool is_out = phase == PROF_I_PHASE_SHUT ||
                        (phase == PROF_I_PHASE_LOOKED && end->result != PROF_BACKEND_OK);
    /* also one that has been opened meanwhile */
    if (serves(end, device_type) && !is_out) return true;
  }
  return false;
}

bool prof_i_registry_is_waiting(int32_t device_type) {
  const prof_i_back_end *end;
  for (uint32_t i = 0; (end = prof_i_registry_at(i)) != NULL; i++)
    if (serves(end, device_type) && phase_of(end) == PROF_I_PHASE_LOOKED &&
        result_of(end) == PROF_BACKEND_NOT_READY)
      return true;
  return false;
}

static bool is_used_by_program(const prof_i_back_end *end) {
  const uint32_t phase = phase_of(end);
  if (!end->table.event_record || !end->table.in_use || phase == PROF_I_PHASE_LOOKING) return false;
  return phase == PROF_I_PHASE_NEW ? end->table.in_use() : end->was_in_use;
}

/* Frameworks have names of one vendor's for another's devices: the program has not loaded what
   serves that type, and has what serves another one. NULL: not so. */
static const prof_i_back_end *find_meant(int32_t device_type) {
  const prof_i_back_end *end, *meant = NULL;
  for (uint32_t i = 0; (end = prof_i_registry_at(i)) != NULL; i++)
    if (end->table.device_type == device_type &&
        (is_used_by_program(end) || phase_of(end) == PROF_I_PHASE_LOOKING))
      return NULL;
  for (uint32_t i = 0; !meant && (end = prof_i_registry_at(i)) != NULL; i++)
    if (end->table.device_type != device_type && is_used_by_program(end)) meant = end;
  return meant;
}

int32_t prof_i_registry_why(int32_t device_type, char *reason, size_t room) {
  const prof_i_back_end *const meant = find_meant(device_type);
  int32_t result = PROF_BACKEND_UNSUPPORTED;
  prof_i_back_end *end;
  snprintf(reason, room,
           "no back end serves devices of that type; PROF_BACKENDS names plug-ins, and prof doctor "
           "lists what there is");
  prof_i_thread_lock(&own.lock);
  for (uint32_t i = 0, phase = 0; (end = prof_i_registry_at(i)) != NULL; i++) {
    if (!serves(end, device_type) || phase_of(end) < phase || end->result == PROF_BACKEND_OK)
      continue;
    phase = phase_of(end);
    result = end->result;
    snprintf(reason, room, "%s: %.*s", end->table.name, (int)room - 34, end->reason);
  }
  prof_i_thread_unlock(&own.lock);
  if (meant) {
    result = PROF_BACKEND_INVALID;
    snprintf(reason, room,
             "this program has loaded the library of %s: its devices are of type %d, not %d",
             meant->table.name, meant->table.device_type, device_type);
  }
  return result;
}

void prof_i_registry_model(prof_device device, char *to, size_t room) {
  const prof_i_back_end *end;
  to[0] = '\0';
  for (uint32_t i = 0; (end = prof_i_registry_at(i)) != NULL; i++) {
    if (!serves(end, device.type) || phase_of(end) != PROF_I_PHASE_OPEN ||
        (uint32_t)device.index >= end->device_count)
      continue;
    const prof_backend_device *const about = &end->devices[device.index];
    snprintf(to, room, "%s, %s", about->name, about->driver);
    return;
  }
}

const char *prof_i_registry_words(const prof_i_back_end *end, int result) {
  const char *const words = words_of(end, end->self);
  return *words ? words : prof_backend_result_text(result);
}

void prof_i_registry_tell(prof_i_back_end *end, uint64_t stream, int result) {
  const char *const words = prof_i_registry_words(end, result);
  prof_i_thread_lock(&own.lock);
  if (end->result == PROF_BACKEND_OK)
    snprintf(end->reason, sizeof end->reason, "works, but not on stream 0x%llx: %s",
             (unsigned long long)stream, words);
  prof_i_thread_unlock(&own.lock);
}

void prof_i_registry_tell_records(prof_i_back_end *end, int result) {
  const char *const words = words_of(end, end->self);
  prof_i_thread_lock(&own.lock);
  if (end->result == PROF_BACKEND_OK)
    snprintf(end->reason, sizeof end->reason, "works, but " PROF_I_NO_RECORDS "%s",
             *words ? words : prof_backend_result_text(result));
  prof_i_thread_unlock(&own.lock);
}

/* The parent's devices are in use: by this back end or, what is the same to the child, by another
   one of the same library. Of meters alone there is no such other. */
static bool is_in_use(const prof_i_back_end *of) {
  for (uint32_t i = 0; i < own.count; i++) {
    const prof_i_back_end *const end = &own.all[i];
    const uint32_t phase = phase_of(end);
    const bool is_same_library =
        end == of || (of->table.event_record && serves(end, of->table.device_type));
    if (is_same_library && (phase == PROF_I_PHASE_OPEN || phase == PROF_I_PHASE_OPENING))
      return true;
  }
  return false;
}

static void shut_for_child(prof_i_back_end *end) {
  if (phase_of(end) == PROF_I_PHASE_OPEN && end->table.fork_child) end->table.fork_child(end->self);
  end->result = PROF_BACKEND_FORKED;
  snprintf(end->reason, sizeof end->reason, "%s", prof_backend_result_text(PROF_BACKEND_FORKED));
}

void prof_i_registry_forget(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  bool is_shut[PROF_I_BACKENDS_MAX + PROF_I_UNUSED_MAX] = {false};
  own.lock = fresh;
  for (uint32_t i = 0; i < own.count && !PROF_I_FAULT(PARENTS_DEVICE); i++) {
    const uint32_t phase = phase_of(&own.all[i]);
    is_shut[i] =
        phase == PROF_I_PHASE_LOOKING || (phase != PROF_I_PHASE_SHUT && is_in_use(&own.all[i]));
    if (is_shut[i]) shut_for_child(&own.all[i]);
  }
  for (uint32_t i = 0; i < own.count; i++) /* now, for the others had to be asked as they were */
    if (is_shut[i]) set_phase(&own.all[i], PROF_I_PHASE_SHUT);
  /* whoever was at it is not here: what he had listed is there */
  if (own.environment == ENVIRONMENT_AT_IT) own.environment = ENVIRONMENT_READ;
}
