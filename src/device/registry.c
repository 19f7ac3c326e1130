/* See registry.h. */
#define _GNU_SOURCE
#include "registry.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../base/error.h"
#include "../base/fault.h"
#include "../base/options.h"
#include "../base/port.h"
#include "../base/process.h"
#include "../format/layout.h"
#include "internal.h"

enum { ENVIRONMENT_NEW, ENVIRONMENT_READING, ENVIRONMENT_READ };

static struct {
  /* rank 3: texts, results and the end of the list. Nothing is called under it */
  pthread_mutex_t lock;
  prof_i_backend all[PROF_I_BACKENDS_MAX + PROF_I_UNUSED_MAX];
  uint32_t count;                    /* release; entries below it do not move */
  uint32_t used_count, unused_count; /* of them; release */
  /* ENVIRONMENT_*. The thread that swaps it to READING lists the built-in ones and loads
     PROF_BACKENDS */
  uint32_t environment_state;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void set_backend_result(prof_i_backend *backend, int32_t result, const char *reason) {
  prof_i_thread_lock(&registry.lock);
  __atomic_store_n(&backend->result, result, __ATOMIC_RELAXED);
  snprintf(backend->reason, sizeof backend->reason, "%s",
           reason && *reason ? reason : prof_backend_result_text(result));
  prof_i_thread_unlock(&registry.lock);
}

void prof_i_registry_result(prof_i_backend *backend, int32_t *result_out, char reason_out[256]) {
  prof_i_thread_lock(&registry.lock);
  *result_out = backend->result;
  memcpy(reason_out, backend->reason, sizeof backend->reason);
  prof_i_thread_unlock(&registry.lock);
}

bool prof_i_registry_is_listing(void) {
  return __atomic_load_n(&registry.environment_state, __ATOMIC_ACQUIRE) != ENVIRONMENT_READ;
}

static uint32_t backend_phase(const prof_i_backend *backend) {
  return __atomic_load_n(&backend->phase, __ATOMIC_ACQUIRE);
}
static void set_backend_phase(prof_i_backend *backend, prof_i_backend_phase phase) {
  __atomic_store_n(&backend->phase, (uint32_t)phase, __ATOMIC_RELEASE);
}

static bool advance_phase(prof_i_backend *backend, prof_i_backend_phase from,
                          prof_i_backend_phase to) {
  uint32_t expected = from;
  return __atomic_compare_exchange_n(&backend->phase, &expected, (uint32_t)to, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* ---- the list ---- */

/* A plug-in by its table, which stays where it is; one that was added by its name; what is of no
   use by its path. */
static bool is_same_backend(const prof_i_backend *backend, const prof_backend *table,
                            const prof_backend *origin, const char *path) {
  if (!origin) return !backend->origin && strcmp(backend->path, path) == 0;
  return path ? backend->is_plugin && backend->origin == origin
              : !backend->is_plugin && strcmp(backend->table.name, table->name) == 0;
}

static bool is_backend_listed(const prof_backend *table, const prof_backend *origin,
                              const char *path) {
  for (uint32_t i = 0; i < registry.count; i++)
    if (is_same_backend(&registry.all[i], table, origin, path)) return true;
  return false;
}

bool prof_i_registry_has_path(const char *path) {
  bool has = false;
  for (uint32_t i = 0; i < __atomic_load_n(&registry.count, __ATOMIC_ACQUIRE); i++)
    has |= registry.all[i].origin && strcmp(registry.all[i].path, path) == 0;
  return has;
}

bool prof_i_registry_has_room(void) {
  return __atomic_load_n(&registry.used_count, __ATOMIC_ACQUIRE) < PROF_I_BACKENDS_MAX;
}

/* Lock held, and there is room. */
static void list_backend(const prof_backend *table, const prof_backend *origin, const char *path,
                         int32_t result, const char *reason) {
  prof_i_backend *const backend = &registry.all[registry.count];
  *backend = (prof_i_backend){.phase = table ? PROF_I_PHASE_NEW : PROF_I_PHASE_UNUSABLE,
                              .is_plugin = path != NULL,
                              .origin = origin,
                              .result = result};
  if (table) backend->table = *table;
  snprintf(backend->reason, sizeof backend->reason, "%s", reason);
  snprintf(backend->path, sizeof backend->path, "%s", path ? path : "");
  __atomic_fetch_add(origin ? &registry.used_count : &registry.unused_count, 1, __ATOMIC_RELEASE);
  __atomic_store_n(&registry.count, registry.count + 1, __ATOMIC_RELEASE);
}

int prof_i_registry_add(const prof_backend *table, const prof_backend *origin, const char *path) {
  prof_i_thread_lock(&registry.lock);
  const bool is_there = is_backend_listed(table, origin, path),
             has_room = registry.used_count < PROF_I_BACKENDS_MAX;
  if (has_room && !is_there) list_backend(table, origin, path, PROF_BACKEND_OK, "");
  prof_i_thread_unlock(&registry.lock);
  if (has_room || is_there) return PROF_OK;
  return prof_i_fail(PROF_E_TOO_LARGE, "%s: %d back ends are there already",
                     path ? path : table->name, PROF_I_BACKENDS_MAX);
}

void prof_i_registry_add_unused(const char *path, int32_t result, const char *reason) {
  prof_i_thread_lock(&registry.lock);
  if (registry.unused_count < PROF_I_UNUSED_MAX && !is_backend_listed(NULL, NULL, path))
    list_backend(NULL, NULL, path, result, reason);
  prof_i_thread_unlock(&registry.lock);
}

int prof_i_registry_add_table(const prof_backend *table, const char *what) {
  prof_backend whole;
  const int status = prof_i_backend_table_copy(&whole, table, what);
  if (status != PROF_OK) return status;
  return prof_i_registry_add(&whole, table, NULL);
}

/* The built-in ones. The plug-ins that PROF_BACKENDS names, or NULL: none are left to load. */
static const char *list_builtin_backends(void) {
  PROF_I_INSIDE;
  uint32_t is_new = ENVIRONMENT_NEW;
  if (!__atomic_compare_exchange_n(&registry.environment_state, &is_new, ENVIRONMENT_READING, false,
                                   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return NULL;
  pthread_atfork(NULL, NULL, prof_i_registry_forget);
  for (int i = 0; prof_i_built_in_backends[i]; i++)
    prof_i_registry_add_table(prof_i_built_in_backends[i], "a back end that comes with prof");
  const char *const paths = secure_getenv("PROF_BACKENDS");
  if (paths && *paths) return paths;
  __atomic_store_n(&registry.environment_state, ENVIRONMENT_READ, __ATOMIC_RELEASE);
  return NULL;
}

void prof_i_registry_prepare(void) {
  PROF_I_DISABLE_CANCEL;
  const char *const paths = list_builtin_backends();
  if (!paths) return;
  prof_i_plugins_load(paths); /* their constructors may call prof */
  __atomic_store_n(&registry.environment_state, ENVIRONMENT_READ, __ATOMIC_RELEASE);
}

prof_i_backend *prof_i_registry_at(uint32_t number) {
  return number < __atomic_load_n(&registry.count, __ATOMIC_ACQUIRE) ? &registry.all[number] : NULL;
}

/* ---- one back end ---- */

void prof_i_registry_sleep_1ms(void) {
  const struct timespec ms = {0, 1000000};
  nanosleep(&ms, NULL);
}

static const char *last_error_of(const prof_i_backend *backend, prof_backend_self *self) {
  const char *const words = backend->table.last_error ? backend->table.last_error(self) : NULL;
  return words ? words : "";
}

bool prof_i_registry_is_open(const prof_i_backend *backend) {
  return backend_phase(backend) == PROF_I_PHASE_OPEN;
}

static int32_t backend_result(const prof_i_backend *backend) {
  return __atomic_load_n(&backend->result, __ATOMIC_RELAXED);
}
static bool may_backend_work(const prof_i_backend *backend) {
  return backend_result(backend) == PROF_BACKEND_OK ||
         backend_result(backend) == PROF_BACKEND_NOT_READY;
}

bool prof_i_registry_is_unusable(const prof_i_backend *backend) {
  return backend_phase(backend) == PROF_I_PHASE_UNUSABLE ||
         (backend_phase(backend) == PROF_I_PHASE_PROBED && !may_backend_work(backend));
}

bool prof_i_registry_probe(prof_i_backend *backend, uint32_t patience_ms) {
  PROF_I_DISABLE_CANCEL;
  if (advance_phase(backend, PROF_I_PHASE_NEW, PROF_I_PHASE_PROBING)) {
    backend->was_in_use = backend->table.in_use && backend->table.in_use();
    const int result = backend->table.probe(&prof_i_device_host);
    set_backend_result(backend, result, result ? last_error_of(backend, NULL) : "");
    set_backend_phase(backend, PROF_I_PHASE_PROBED);
  }
  for (const uint64_t begun_ns = prof_i_port_monotonic_ns();
       backend_phase(backend) == PROF_I_PHASE_PROBING; prof_i_registry_sleep_1ms())
    /* on a busy machine a nap is longer than it says */
    if (prof_i_ns_since(begun_ns) >= patience_ms * UINT64_C(1000000)) return false;
  return true;
}

static void list_devices(prof_i_backend *backend) {
  enum { DEVICES_MAX = 1024 };
  prof_backend_device about = {.size = sizeof about};
  uint32_t count = 0;
  if (!backend->table.device) return;
  while (count < DEVICES_MAX &&
         backend->table.device(backend->self, count, &about) == PROF_BACKEND_OK)
    count++;
  if (!count || !(backend->devices = calloc(count, sizeof *backend->devices))) return;
  for (uint32_t i = 0; i < count; i++) {
    prof_backend_device *const device = &backend->devices[i];
    *device = (prof_backend_device){.size = sizeof *device};
    if (backend->table.device(backend->self, i, device) != PROF_BACKEND_OK) break;
    device->name[sizeof device->name - 1] = device->arch[sizeof device->arch - 1] =
        device->driver[sizeof device->driver - 1] = '\0';
    backend->device_count = i + 1;
  }
}

static bool backend_has_meter(const prof_i_backend *backend) {
  prof_backend_metric first = {.size = sizeof first};
  return backend->table.metric &&
         backend->table.metric(backend->self, 0, &first) == PROF_BACKEND_OK;
}

/* A back end that is not needed yet is tried again when it is. */
static bool defer_until_used(prof_i_backend *backend) {
  set_backend_result(backend, PROF_BACKEND_NOT_READY, last_error_of(backend, NULL));
  set_backend_phase(backend, PROF_I_PHASE_PROBED);
  return false;
}

/* Sets "" as the text of one that works, or what is missing in it. */
static void set_backend_open(prof_i_backend *backend) {
  char reason[sizeof backend->reason];
  const char *const remark = backend->table.remark ? backend->table.remark(backend->self) : NULL;
  const bool has_one = remark && *remark;
  snprintf(reason, sizeof reason, "%s%s", has_one ? "works, but " : "", has_one ? remark : "");
  set_backend_result(backend, PROF_BACKEND_OK, reason);
  list_devices(backend);
  backend->has_meter = backend_has_meter(backend);
}

/* False: the program does not use it so far. */
static bool open_backend(prof_i_backend *backend) {
  const int result = backend->table.open(&prof_i_device_host, &backend->self);
  if (result == PROF_BACKEND_NOT_READY) return defer_until_used(backend);
  if (result)
    set_backend_result(backend, result, last_error_of(backend, NULL));
  else if (backend->self)
    set_backend_open(backend);
  else
    set_backend_result(backend, PROF_BACKEND_VENDOR,
                       "open() said that it went well, and gave nothing");
  set_backend_phase(backend, !result && backend->self ? PROF_I_PHASE_OPEN : PROF_I_PHASE_UNUSABLE);
  return true;
}

/* True if it serves devices' scopes, and not only their meters. */
static bool serves_device_type(const prof_i_backend *backend, int32_t device_type) {
  return backend->table.device_type == device_type && backend->table.event_record;
}

/* Probing one may add another: a layer that its library loads, and that can do more. */
static bool probe_all_backends(int32_t device_type) {
  prof_i_backend *backend;
  for (uint32_t i = 0; (backend = prof_i_registry_at(i)) != NULL; i++)
    if (serves_device_type(backend, device_type) && !prof_i_registry_probe(backend, 0))
      return false;
  return true;
}

/* Chooses the back end that can do most; of several such, the first. *is_taken_out: one is open,
   and is returned, or is being opened. */
static prof_i_backend *choose_backend(int32_t device_type, bool *is_taken_out) {
  prof_i_backend *backend, *best = NULL;
  *is_taken_out = false;
  for (uint32_t i = 0; (backend = prof_i_registry_at(i)) != NULL; i++) {
    const uint32_t phase =
        serves_device_type(backend, device_type) ? backend_phase(backend) : PROF_I_PHASE_UNUSABLE;
    *is_taken_out = phase == PROF_I_PHASE_OPEN || phase == PROF_I_PHASE_OPENING;
    if (*is_taken_out) return phase == PROF_I_PHASE_OPEN ? backend : NULL;
    if (phase != PROF_I_PHASE_PROBED || !may_backend_work(backend)) continue;
    if (!best || __builtin_popcount(prof_i_backend_table_abilities(&backend->table)) >
                     __builtin_popcount(prof_i_backend_table_abilities(&best->table)))
      best = backend;
  }
  return best;
}

prof_i_backend *prof_i_registry_open(int32_t device_type) {
  PROF_I_DISABLE_CANCEL;
  prof_i_backend *backend;
  bool is_taken;
  prof_i_registry_prepare();
  if (!probe_all_backends(device_type)) return NULL;
  while ((backend = choose_backend(device_type, &is_taken)) != NULL && !is_taken) {
    if (advance_phase(backend, PROF_I_PHASE_PROBED, PROF_I_PHASE_OPENING) && !open_backend(backend))
      return NULL;
    if (backend_phase(backend) == PROF_I_PHASE_OPEN) return backend;
  }
  return backend;
}

static bool is_registry_busy(void) {
  const prof_i_backend *backend;
  if (__atomic_load_n(&registry.environment_state, __ATOMIC_ACQUIRE) == ENVIRONMENT_READING)
    return true;
  for (uint32_t i = 0; (backend = prof_i_registry_at(i)) != NULL; i++) {
    const uint32_t phase = backend_phase(backend);
    if (phase == PROF_I_PHASE_PROBING || phase == PROF_I_PHASE_OPENING) return true;
  }
  return false;
}

void prof_i_registry_wait(uint32_t patience_ms) {
  for (const uint64_t begun_ns = prof_i_port_monotonic_ns();
       is_registry_busy() && prof_i_ns_since(begun_ns) < patience_ms * UINT64_C(1000000);)
    prof_i_registry_sleep_1ms();
}

bool prof_i_registry_open_meters(prof_i_backend *backend) {
  PROF_I_DISABLE_CANCEL;
  if (backend->table.event_record)
    return prof_i_registry_open(backend->table.device_type) == backend;
  if (prof_i_registry_probe(backend, 0) && may_backend_work(backend) &&
      advance_phase(backend, PROF_I_PHASE_PROBED, PROF_I_PHASE_OPENING))
    open_backend(backend);
  return backend_phase(backend) == PROF_I_PHASE_OPEN;
}

void prof_i_registry_acquire_meters(prof_i_backend *backend) {
  for (uint32_t has_reader = 0; !__atomic_compare_exchange_n(
           &backend->has_reader, &has_reader, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
       has_reader = 0)
    prof_i_registry_sleep_1ms();
}

void prof_i_registry_release_meters(prof_i_backend *backend) {
  __atomic_store_n(&backend->has_reader, 0, __ATOMIC_RELEASE);
}

bool prof_i_registry_is_opening(int32_t device_type) {
  const prof_i_backend *backend;
  if (__atomic_load_n(&registry.environment_state, __ATOMIC_ACQUIRE) != ENVIRONMENT_READ)
    return true;
  for (uint32_t i = 0; (backend = prof_i_registry_at(i)) != NULL; i++) {
    const uint32_t phase = backend_phase(backend);
    const bool is_out = phase == PROF_I_PHASE_UNUSABLE ||
                        (phase == PROF_I_PHASE_PROBED && backend->result != PROF_BACKEND_OK);
    /* also one that has been opened meanwhile */
    if (serves_device_type(backend, device_type) && !is_out) return true;
  }
  return false;
}

bool prof_i_registry_is_not_ready(int32_t device_type) {
  const prof_i_backend *backend;
  for (uint32_t i = 0; (backend = prof_i_registry_at(i)) != NULL; i++)
    if (serves_device_type(backend, device_type) && backend_phase(backend) == PROF_I_PHASE_PROBED &&
        backend_result(backend) == PROF_BACKEND_NOT_READY)
      return true;
  return false;
}

static bool is_used_by_program(const prof_i_backend *backend) {
  const uint32_t phase = backend_phase(backend);
  if (!backend->table.event_record || !backend->table.in_use || phase == PROF_I_PHASE_PROBING)
    return false;
  return phase == PROF_I_PHASE_NEW ? backend->table.in_use() : backend->was_in_use;
}

/* Some frameworks use one vendor's device names for another vendor's devices. Finds a loaded
   library of another type if none of this type is loaded; else NULL. */
static const prof_i_backend *find_intended_backend(int32_t device_type) {
  const prof_i_backend *backend, *meant = NULL;
  for (uint32_t i = 0; (backend = prof_i_registry_at(i)) != NULL; i++)
    if (backend->table.device_type == device_type &&
        (is_used_by_program(backend) || backend_phase(backend) == PROF_I_PHASE_PROBING))
      return NULL;
  for (uint32_t i = 0; !meant && (backend = prof_i_registry_at(i)) != NULL; i++)
    if (backend->table.device_type != device_type && is_used_by_program(backend)) meant = backend;
  return meant;
}

int32_t prof_i_registry_reason(int32_t device_type, char *reason, size_t room) {
  const prof_i_backend *const meant = find_intended_backend(device_type);
  int32_t result = PROF_BACKEND_UNSUPPORTED;
  prof_i_backend *backend;
  snprintf(reason, room,
           "no back end serves devices of that type; PROF_BACKENDS names plug-ins, and prof doctor "
           "lists all back ends");
  prof_i_thread_lock(&registry.lock);
  for (uint32_t i = 0, phase = 0; (backend = prof_i_registry_at(i)) != NULL; i++) {
    if (!serves_device_type(backend, device_type) || backend_phase(backend) < phase ||
        backend->result == PROF_BACKEND_OK)
      continue;
    phase = backend_phase(backend);
    result = backend->result;
    snprintf(reason, room, "%s: %.*s", backend->table.name, (int)room - 34, backend->reason);
  }
  prof_i_thread_unlock(&registry.lock);
  if (meant) {
    result = PROF_BACKEND_INVALID;
    snprintf(reason, room,
             "this program has loaded the library of %s: its devices are of type %d, not %d",
             meant->table.name, meant->table.device_type, device_type);
  }
  return result;
}

void prof_i_registry_model(prof_device device, char *to, size_t room) {
  const prof_i_backend *backend;
  to[0] = '\0';
  for (uint32_t i = 0; (backend = prof_i_registry_at(i)) != NULL; i++) {
    if (!serves_device_type(backend, device.type) || backend_phase(backend) != PROF_I_PHASE_OPEN ||
        (uint32_t)device.index >= backend->device_count)
      continue;
    const prof_backend_device *const about = &backend->devices[device.index];
    snprintf(to, room, "%s, %s", about->name, about->driver);
    return;
  }
}

const char *prof_i_registry_error_text(const prof_i_backend *backend, int result) {
  const char *const words = last_error_of(backend, backend->self);
  return *words ? words : prof_backend_result_text(result);
}

void prof_i_registry_set_stream_error(prof_i_backend *backend, uint64_t stream, int result) {
  const char *const words = prof_i_registry_error_text(backend, result);
  prof_i_thread_lock(&registry.lock);
  if (backend->result == PROF_BACKEND_OK)
    snprintf(backend->reason, sizeof backend->reason, "works, but not on stream 0x%llx: %s",
             (unsigned long long)stream, words);
  prof_i_thread_unlock(&registry.lock);
}

void prof_i_registry_set_records_error(prof_i_backend *backend, int result) {
  const char *const words = last_error_of(backend, backend->self);
  prof_i_thread_lock(&registry.lock);
  if (backend->result == PROF_BACKEND_OK)
    snprintf(backend->reason, sizeof backend->reason, "works, but " PROF_I_NO_RECORDS "%s",
             *words ? words : prof_backend_result_text(result));
  prof_i_thread_unlock(&registry.lock);
}

/* True if the parent uses its devices by this back end, or by another one of the same library,
   which is the same to the child. Meters have no such other. */
static bool is_used_by_parent(const prof_i_backend *of) {
  for (uint32_t i = 0; i < registry.count; i++) {
    const prof_i_backend *const backend = &registry.all[i];
    const uint32_t phase = backend_phase(backend);
    const bool is_same_library =
        backend == of ||
        (of->table.event_record && serves_device_type(backend, of->table.device_type));
    if (is_same_library && (phase == PROF_I_PHASE_OPEN || phase == PROF_I_PHASE_OPENING))
      return true;
  }
  return false;
}

static void shut_in_child(prof_i_backend *backend) {
  if (backend_phase(backend) == PROF_I_PHASE_OPEN && backend->table.fork_child)
    backend->table.fork_child(backend->self);
  backend->result = PROF_BACKEND_FORKED;
  snprintf(backend->reason, sizeof backend->reason, "%s",
           prof_backend_result_text(PROF_BACKEND_FORKED));
}

void prof_i_registry_forget(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  bool is_shut[PROF_I_BACKENDS_MAX + PROF_I_UNUSED_MAX] = {false};
  registry.lock = fresh;
  for (uint32_t i = 0; i < registry.count && !PROF_I_FAULT(PARENTS_DEVICE); i++) {
    const uint32_t phase = backend_phase(&registry.all[i]);
    is_shut[i] = phase == PROF_I_PHASE_PROBING ||
                 (phase != PROF_I_PHASE_UNUSABLE && is_used_by_parent(&registry.all[i]));
    if (is_shut[i]) shut_in_child(&registry.all[i]);
  }
  for (uint32_t i = 0; i < registry.count;
       i++) /* now, for the others had to be asked as they were */
    if (is_shut[i]) set_backend_phase(&registry.all[i], PROF_I_PHASE_UNUSABLE);
  /* the thread that was listing is not in the child; what it had listed stays */
  if (registry.environment_state == ENVIRONMENT_READING)
    registry.environment_state = ENVIRONMENT_READ;
}
