/* See registry.h. */
#define _GNU_SOURCE
#include "registry.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../core/log.h"
#include "../core/options.h"
#include "../core/port.h"
#include "built_in.h"
#include "host.h"
#include "plugin.h"
#include "table.h"

enum { ENVIRONMENT_NEW, ENVIRONMENT_AT_IT, ENVIRONMENT_READ };

static struct {
  pthread_mutex_t lock; /* rank 3: texts, results and the end of the list. Nothing is called under it */
  prof_i_back_end all[PROF_I_BACKENDS_MAX + PROF_I_UNUSED_MAX];
  uint32_t count;        /* release; what stands below does not move */
  uint32_t used, unused; /* of them; release */
  uint32_t environment; /* whoever swaps it to AT_IT lists the built-in ones and loads PROF_BACKENDS */
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void set_result(prof_i_back_end *end, int32_t result, const char *reason) {
  pthread_mutex_lock(&own.lock);
  end->result = result;
  snprintf(end->reason, sizeof end->reason, "%s", reason && *reason ? reason : prof_backend_result_text(result));
  pthread_mutex_unlock(&own.lock);
}

static uint32_t phase_of(const prof_i_back_end *end) { return __atomic_load_n(&end->phase, __ATOMIC_ACQUIRE); }
static void set_phase(prof_i_back_end *end, prof_i_phase phase) { __atomic_store_n(&end->phase, (uint32_t)phase, __ATOMIC_RELEASE); }

static bool take_phase(prof_i_back_end *end, prof_i_phase from, prof_i_phase to) {
  uint32_t expected = from;
  return __atomic_compare_exchange_n(&end->phase, &expected, (uint32_t)to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* ---- the list ---- */

/* A plug-in by its table, which stays where it is; one that was added by its name; what is of no use by its path. */
static bool is_same(const prof_i_back_end *end, const prof_backend *table, const prof_backend *origin, const char *path) {
  if (!origin) return !end->origin && strcmp(end->path, path) == 0;
  return path ? end->is_plugin && end->origin == origin : !end->is_plugin && strcmp(end->table.name, table->name) == 0;
}

static bool is_listed(const prof_backend *table, const prof_backend *origin, const char *path) {
  for (uint32_t i = 0; i < own.count; i++)
    if (is_same(&own.all[i], table, origin, path)) return true;
  return false;
}

bool prof_i_registry_has(const char *path) {
  bool has = false;
  for (uint32_t i = 0; i < __atomic_load_n(&own.count, __ATOMIC_ACQUIRE); i++) has |= own.all[i].origin && strcmp(own.all[i].path, path) == 0;
  return has;
}

bool prof_i_registry_has_room(void) { return __atomic_load_n(&own.used, __ATOMIC_ACQUIRE) < PROF_I_BACKENDS_MAX; }

/* Lock held, and there is room. */
static void put(const prof_backend *table, const prof_backend *origin, const char *path, int32_t result, const char *reason) {
  prof_i_back_end *const end = &own.all[own.count];
  *end = (prof_i_back_end){.phase = table ? PROF_I_PHASE_NEW : PROF_I_PHASE_SHUT, .is_plugin = path != NULL, .origin = origin, .result = result};
  if (table) end->table = *table;
  snprintf(end->reason, sizeof end->reason, "%s", reason);
  snprintf(end->path, sizeof end->path, "%s", path ? path : "");
  __atomic_fetch_add(origin ? &own.used : &own.unused, 1, __ATOMIC_RELEASE);
  __atomic_store_n(&own.count, own.count + 1, __ATOMIC_RELEASE);
}

int prof_i_registry_add(const prof_backend *table, const prof_backend *origin, const char *path) {
  pthread_mutex_lock(&own.lock);
  const bool is_there = is_listed(table, origin, path), has_room = own.used < PROF_I_BACKENDS_MAX;
  if (has_room && !is_there) put(table, origin, path, PROF_BACKEND_OK, "");
  pthread_mutex_unlock(&own.lock);
  if (has_room || is_there) return PROF_OK;
  return prof_i_fail(PROF_E_TOO_LARGE, "%s: %d back ends are there already", path ? path : table->name, PROF_I_BACKENDS_MAX);
}

void prof_i_registry_add_unused(const char *path, int32_t result, const char *reason) {
  pthread_mutex_lock(&own.lock);
  if (own.unused < PROF_I_UNUSED_MAX && !is_listed(NULL, NULL, path)) put(NULL, NULL, path, result, reason);
  pthread_mutex_unlock(&own.lock);
}

static void nap(void) {
  const struct timespec ms = {0, 1000000};
  nanosleep(&ms, NULL);
}

static int add(const prof_backend *table, const char *what) {
  prof_backend whole;
  const int status = prof_i_table_take(&whole, table, what);
  if (status != PROF_OK) return status;
  return prof_i_registry_add(&whole, table, NULL);
}

void prof_i_registry_prepare(void) {
  PROF_I_HOLD_CANCEL;
  uint32_t is_new = ENVIRONMENT_NEW;
  if (!__atomic_compare_exchange_n(&own.environment, &is_new, ENVIRONMENT_AT_IT, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return;
  pthread_atfork(NULL, NULL, prof_i_registry_forget);
  for (int i = 0; prof_i_built_in_ends[i]; i++) add(prof_i_built_in_ends[i], "a back end that comes with prof");
  const char *const paths = secure_getenv("PROF_BACKENDS");
  if (paths && *paths) prof_i_plugins_load(paths);
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

bool prof_i_registry_look(prof_i_back_end *end, uint32_t patience_ms) {
  PROF_I_HOLD_CANCEL;
  if (take_phase(end, PROF_I_PHASE_NEW, PROF_I_PHASE_LOOKING)) {
    const int result = end->table.probe(&prof_i_device_host);
    set_result(end, result, result ? words_of(end, NULL) : "");
    set_phase(end, PROF_I_PHASE_LOOKED);
  }
  for (uint32_t ms = 0; phase_of(end) == PROF_I_PHASE_LOOKING; ms++, nap())
    if (ms >= patience_ms) return false;
  return true;
}

static void list_devices(prof_i_back_end *end) {
  enum { DEVICES_MAX = 1024 };
  prof_backend_device about = {.size = sizeof about};
  uint32_t count = 0;
  if (!end->table.device) return;
  while (count < DEVICES_MAX && end->table.device(end->self, count, &about) == PROF_BACKEND_OK) count++;
  if (!count || !(end->devices = calloc(count, sizeof *end->devices))) return;
  for (uint32_t i = 0; i < count; i++) {
    prof_backend_device *const device = &end->devices[i];
    *device = (prof_backend_device){.size = sizeof *device};
    if (end->table.device(end->self, i, device) != PROF_BACKEND_OK) break;
    device->name[sizeof device->name - 1] = device->arch[sizeof device->arch - 1] = device->driver[sizeof device->driver - 1] = '\0';
    end->device_count = i + 1;
  }
}

static void open_one(prof_i_back_end *end) {
  const int result = end->table.open(&prof_i_device_host, &end->self);
  set_result(end, result ? result : end->self ? PROF_BACKEND_OK : PROF_BACKEND_VENDOR,
             result ? words_of(end, NULL) : end->self ? "" : "open() said that it went well, and gave nothing");
  if (!result && end->self) list_devices(end);
  set_phase(end, !result && end->self ? PROF_I_PHASE_OPEN : PROF_I_PHASE_SHUT);
}

prof_i_back_end *prof_i_registry_open(int32_t device_type) {
  PROF_I_HOLD_CANCEL;
  prof_i_back_end *end;
  prof_i_registry_prepare();
  for (uint32_t i = 0; (end = prof_i_registry_at(i)) != NULL; i++) {
    if (end->table.device_type != device_type) continue;
    if (!prof_i_registry_look(end, 0)) return NULL;
    if (phase_of(end) == PROF_I_PHASE_LOOKED && end->result == PROF_BACKEND_OK && take_phase(end, PROF_I_PHASE_LOOKED, PROF_I_PHASE_OPENING)) open_one(end);
    if (phase_of(end) == PROF_I_PHASE_OPEN) return end;
    if (phase_of(end) == PROF_I_PHASE_OPENING) return NULL;
  }
  return NULL;
}

bool prof_i_registry_is_at_it(int32_t device_type) {
  const prof_i_back_end *end;
  if (__atomic_load_n(&own.environment, __ATOMIC_ACQUIRE) != ENVIRONMENT_READ) return true;
  for (uint32_t i = 0; (end = prof_i_registry_at(i)) != NULL; i++) {
    const uint32_t phase = phase_of(end);
    const bool is_out = phase == PROF_I_PHASE_SHUT || (phase == PROF_I_PHASE_LOOKED && end->result != PROF_BACKEND_OK);
    if (end->table.device_type == device_type && !is_out) return true; /* also one that has been opened meanwhile */
  }
  return false;
}

int32_t prof_i_registry_why(int32_t device_type, char *reason, size_t room) {
  int32_t result = PROF_BACKEND_ABSENT;
  prof_i_back_end *end;
  snprintf(reason, room, "no back end serves devices of that type");
  pthread_mutex_lock(&own.lock);
  for (uint32_t i = 0, phase = 0; (end = prof_i_registry_at(i)) != NULL; i++) {
    if (end->table.device_type != device_type || phase_of(end) < phase || end->result == PROF_BACKEND_OK) continue;
    phase = phase_of(end);
    result = end->result;
    snprintf(reason, room, "%s: %.*s", end->table.name, (int)room - 34, end->reason);
  }
  pthread_mutex_unlock(&own.lock);
  return result;
}

void prof_i_registry_tell(prof_i_back_end *end, uint64_t stream, int result) {
  const char *const words = words_of(end, end->self);
  pthread_mutex_lock(&own.lock);
  if (end->result == PROF_BACKEND_OK)
    snprintf(end->reason, sizeof end->reason, "works, but not on stream 0x%llx: %s", (unsigned long long)stream, *words ? words : prof_backend_result_text(result));
  pthread_mutex_unlock(&own.lock);
}

void prof_i_registry_forget(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  own.lock = fresh;
  for (uint32_t i = 0; i < own.count; i++) {
    prof_i_back_end *const end = &own.all[i];
    const uint32_t phase = phase_of(end);
    if (phase != PROF_I_PHASE_OPEN && phase != PROF_I_PHASE_OPENING && phase != PROF_I_PHASE_LOOKING) continue;
    if (phase == PROF_I_PHASE_OPEN && end->table.fork_child) end->table.fork_child(end->self);
    end->result = PROF_BACKEND_FORKED;
    snprintf(end->reason, sizeof end->reason, "%s", prof_backend_result_text(PROF_BACKEND_FORKED));
    set_phase(end, PROF_I_PHASE_SHUT);
  }
  if (own.environment == ENVIRONMENT_AT_IT) own.environment = ENVIRONMENT_READ; /* whoever was at it is not here: what he had listed is there */
}

/* ---- the face ---- */

int prof_backend_add(const prof_backend *table) {
  if (!table) return prof_i_fail(PROF_E_INVALID, "prof_backend_add: table is NULL");
  prof_i_registry_prepare();
  return add(table, "prof_backend_add");
}

int prof_backend_status(uint32_t number, prof_backend_state *state_out) {
  enum { PATIENCE_MS = 2000 };
  if (!state_out) return prof_i_fail(PROF_E_INVALID, "prof_backend_status: state_out is NULL");
  prof_i_registry_prepare();
  for (uint32_t ms = 0; __atomic_load_n(&own.environment, __ATOMIC_ACQUIRE) != ENVIRONMENT_READ && !prof_i_plugins_is_loading(); ms++, nap())
    if (ms >= PATIENCE_MS) return prof_i_fail(PROF_E_BUSY, "another thread has been loading plug-ins for %d ms", PATIENCE_MS);
  prof_i_back_end *const end = prof_i_registry_at(number);
  if (!end) return prof_i_fail(PROF_E_NOT_FOUND, "there is no back end %u", number);
  if (!prof_i_registry_look(end, PATIENCE_MS)) return prof_i_fail(PROF_E_BUSY, "another thread has been looking at back end %s for %d ms", end->table.name, PATIENCE_MS);
  prof_backend_state state = {.device_type = end->table.device_type, .is_open = phase_of(end) == PROF_I_PHASE_OPEN, .is_emulated = end->table.is_emulated, .is_plugin = end->is_plugin,
                              .abilities = prof_i_table_abilities(&end->table)};
  if (state.is_open) state.device_count = end->device_count;
  snprintf(state.name, sizeof state.name, "%s", end->table.name ? end->table.name : "");
  snprintf(state.version, sizeof state.version, "%s", end->table.version ? end->table.version : "");
  snprintf(state.path, sizeof state.path, "%.*s", (int)sizeof state.path - 1, end->path);
  pthread_mutex_lock(&own.lock);
  state.result = end->result;
  memcpy(state.reason, end->reason, sizeof state.reason);
  pthread_mutex_unlock(&own.lock);
  snprintf(state.advice, sizeof state.advice, "%s", prof_backend_result_advice(state.result));
  return prof_i_sized_give(state_out, &state, sizeof state, "prof_backend_state");
}

/* ---- words ---- */

static const struct {
  int value;
  const char *name, *text, *advice;
} words[] = {
#define WORDS(name, value, text, advice) {value, #name, text, advice},
    PROF_BACKEND_RESULT_LIST(WORDS)};

static int place_of(int result) {
  for (int i = 0; i < (int)(sizeof words / sizeof *words); i++)
    if (words[i].value == result) return i;
  return -1;
}

const char *prof_backend_result_name(int result) {
  const int at = place_of(result);
  return at < 0 ? "UNKNOWN" : words[at].name;
}
const char *prof_backend_result_text(int result) {
  const int at = place_of(result);
  return at < 0 ? "a result that this prof does not know" : words[at].text;
}
const char *prof_backend_result_advice(int result) {
  const int at = place_of(result);
  return at < 0 ? "" : words[at].advice;
}
