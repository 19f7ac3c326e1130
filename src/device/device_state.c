/* What a capture says about a device beyond its scopes: its description, how exact its times are,
   or why it has none. One record for each device and capture. Its counts change while recording. */
#define _GNU_SOURCE
#include "internal.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/process.h"
#include "../core/buffer/arena.h"
#include "../core/buffer/clock.h"
#include "../core/buffer/meta.h"
#include "../core/session/control.h"

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(item) (is_out_of_memory = true)
#include <uthash.h>

typedef struct state_entry {
  prof_device device;
  uint64_t arena;             /* the number of the arena that holds the record; 0: none */
  prof_i_device_state *state; /* there */
  bool has_times;             /* it does not say why there are none */
  struct state_entry *next;
  UT_hash_handle hh; /* by the device */
} state_entry;
_Static_assert(sizeof(prof_device) == 2 * sizeof(int32_t), "a key without gaps");

static struct {
  pthread_mutex_t lock;         /* rank 3. Nothing of anybody's is called under it */
  state_entry *first;           /* the newest */
  state_entry *by_device;       /* the same, as a hash table */
  const state_entry *inherited; /* of a forked child */
} state_table = {.lock = PTHREAD_MUTEX_INITIALIZER};

typedef struct state_source {
  prof_device device;
  const prof_i_backend *backend;
  int32_t result;
  const char *reason;
} state_source;

static void fill_device_info(prof_i_device_state *state, const state_source *of) {
  const prof_i_backend *const backend = of->backend;
  const uint32_t index = (uint32_t)of->device.index;
  const prof_backend_device *const device =
      index < backend->device_count ? &backend->devices[index] : NULL;
  state->flags =
      backend->table.is_emulated || (device && device->is_emulated) ? PROF_I_DEVICE_EMULATED : 0;
  snprintf(state->back_end, sizeof state->back_end, "%s", backend->table.name);
  state->late_ns = __atomic_load_n(&backend->late_ns, __ATOMIC_RELAXED);
  if (!device) return;
  state->memory_bytes = device->memory_bytes;
  state->units = device->units;
  state->clock_khz = device->clock_khz;
  memcpy(state->uuid, device->uuid, sizeof state->uuid);
  memcpy(state->name, device->name, sizeof state->name);
  memcpy(state->arch, device->arch, sizeof state->arch);
  memcpy(state->driver, device->driver, sizeof state->driver);
}

static void *fill_device_state(uint64_t *words, void *with) {
  const state_source *const of = with;
  prof_i_device_state *const state = (prof_i_device_state *)words;
  memset(state, 0, sizeof *state);
  state->type = of->device.type;
  state->index = of->device.index;
  if (of->backend) fill_device_info(state, of);
  state->result = of->result;
  snprintf(state->reason, sizeof state->reason, "%s", of->reason);
  return state;
}

static state_entry *find_or_make_entry(prof_device device) {
  state_entry *found = NULL;
  bool is_out_of_memory = false;
  HASH_FIND(hh, state_table.by_device, &device, sizeof device, found);
  if (found || !(found = calloc(1, sizeof *found))) return found;
  *found = (state_entry){.device = device, .next = state_table.first};
  HASH_ADD(hh, state_table.by_device, device, sizeof device, found);
  if (is_out_of_memory) {
    free(found);
    return NULL;
  }
  state_table.first = found;
  return found;
}

/* ---- what health says ---- */

/* True also if requested records are missing. A device that is about to have its first scope has no
   reason yet, and is not counted. */
static bool is_without_times(const state_entry *a) {
  if (!a->state || a->arena != prof_i_the_arena.number) return false;
  if (prof_i_is_no_records(a->state->reason)) return true;
  if (__atomic_load_n(&a->state->scope_count, __ATOMIC_RELAXED)) return false;
  return !a->has_times || __atomic_load_n(&a->state->captured_count, __ATOMIC_RELAXED);
}

static void format_device_warning(const prof_i_device_state *state, uint32_t others, char *to,
                                  size_t room) {
  const char *const advice = prof_backend_result_advice(state->result);
  const bool is_of_records = prof_i_is_no_records(state->reason),
             is_captured = state->result == PROF_BACKEND_OK && !is_of_records;
  char more[32] = "";
  if (others) snprintf(more, sizeof more, " (and %u more devices)", others);
  snprintf(to, room, "device %d:%d%s: %s%s%s%s", state->type, state->index, more,
           is_of_records ? "" : "the host's side of its scopes alone: ",
           is_captured ? prof_backend_result_text(PROF_BACKEND_CAPTURING) : state->reason,
           *advice ? "; " : "", advice);
}

static void write_device_warning(char *to, size_t room) {
  const state_entry *first = NULL;
  uint32_t count = 0;
  to[0] = '\0';
  if (!prof_i_arena_guard_enter()) return; /* its arena is just being replaced, or cleared */
  prof_i_thread_lock(&state_table.lock);
  for (const state_entry *a = state_table.first; a; a = a->next) { /* newest first */
    if (!is_without_times(a)) continue;
    first = a;
    count++;
  }
  if (first) format_device_warning(first->state, count - 1, to, room);
  prof_i_thread_unlock(&state_table.lock);
  prof_i_arena_guard_exit();
}

/* ---- exported ---- */

/* A concurrent reader finds nothing or all of it: the first byte is stored last. The first reason
   stays. */
static void add_reason(prof_i_device_state *state, const char *reason) {
  const size_t bytes = strnlen(reason, sizeof state->reason - 1);
  if (bytes == 0 || state->reason[0]) return;
  for (size_t i = 1; i < bytes; i++)
    __atomic_store_n(&state->reason[i], reason[i], __ATOMIC_RELAXED);
  __atomic_store_n(&state->reason[0], reason[0], __ATOMIC_RELEASE);
}

static bool is_too_early_reason(const char *reason) {
  return strcmp(reason, PROF_I_TOO_EARLY) == 0;
}

/* What holds although there are times: it has no records for all that, or its first scopes have
   none. */
static bool is_kept_reason(const char *reason) {
  return prof_i_is_no_records(reason) || is_too_early_reason(reason);
}

/* True if this arena has no record, or one with a weaker reason. The weakest reason for missing
   times is that a scope was too early. */
static bool must_replace_state(const state_entry *a, const state_source *of) {
  const bool has_times = of->result == PROF_BACKEND_OK;
  if (a->arena != prof_i_the_arena.number || a->has_times < has_times) return true;
  return a->state && !has_times && !a->has_times && is_too_early_reason(a->state->reason) &&
         !is_too_early_reason(of->reason);
}

/* A record with a reason for missing times is replaced by one that has times: readers take the last
   one. */
static prof_i_device_state *update_state(state_source *of) {
  const bool has_times = of->result == PROF_BACKEND_OK;
  prof_i_control_set_device_warning(write_device_warning);
  prof_i_thread_lock(&state_table.lock);
  state_entry *const a = find_or_make_entry(of->device);
  if (a && must_replace_state(a, of)) {
    const prof_i_device_state *const before = a->arena == prof_i_the_arena.number ? a->state : NULL;
    a->state = prof_i_meta_place(PROF_I_KIND_DEVICE, prof_i_clock_ticks(),
                                 sizeof(prof_i_device_state) / 8, fill_device_state, of);
    a->arena = a->state ? prof_i_the_arena.number : 0;
    a->has_times = has_times;
    if (a->state && has_times && before && is_kept_reason(before->reason))
      add_reason(a->state, before->reason);
  } else if (a && a->state && !has_times && a->has_times) {
    add_reason(a->state, of->reason);
  }
  prof_i_device_state *const state = a ? a->state : NULL;
  prof_i_thread_unlock(&state_table.lock);
  return state;
}

prof_i_device_state *prof_i_device_state_get(prof_device device, const prof_i_backend *backend) {
  return update_state(&(state_source){device, backend, PROF_BACKEND_OK, ""});
}

void prof_i_device_state_set_reason(prof_device device, const prof_i_backend *backend,
                                    int32_t result, const char *reason) {
  update_state(&(state_source){device, backend, result, reason});
}

void prof_i_device_state_report(prof_device device, const prof_i_backend *backend, int32_t result,
                                const char *reason) {
  if (!prof_i_arena_guard_enter()) return;
  prof_i_device_state_set_reason(device, backend, result, reason);
  prof_i_arena_guard_exit();
}

void prof_i_device_state_report_unserved(prof_device device) {
  char reason[sizeof((prof_i_device_state *)NULL)->reason] = "";
  /* Outside of the guard: this asks the loader, which must not wait for a thread that waits for
     the guard. */
  const int32_t result = prof_i_registry_reason(device.type, reason, sizeof reason);
  prof_i_device_state_report(device, NULL, result, reason);
}

void prof_i_device_state_report_too_early(prof_device device) {
  prof_i_device_state_report(device, NULL, PROF_BACKEND_NOT_READY, PROF_I_TOO_EARLY);
}

void prof_i_device_state_report_unfinished(prof_device device, const prof_i_backend *backend) {
  prof_i_device_state_report(device, backend, PROF_BACKEND_NOT_READY,
                             "it was not done with its work when recording stopped");
}

void prof_i_device_state_report_late(const prof_i_backend *backend) {
  const uint64_t late_ns = __atomic_load_n(&backend->late_ns, __ATOMIC_RELAXED);
  if (!prof_i_arena_guard_enter()) return;
  prof_i_device_state_get((prof_device){backend->table.device_type, 0}, backend);
  prof_i_thread_lock(&state_table.lock);
  for (const state_entry *a = state_table.first; a; a = a->next)
    if (a->state && a->arena == prof_i_the_arena.number &&
        a->device.type == backend->table.device_type)
      prof_i_device_count_raise(&a->state->late_ns, late_ns);
  prof_i_thread_unlock(&state_table.lock);
  prof_i_arena_guard_exit();
}

void prof_i_device_states_forget(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  state_table.lock = fresh;
  state_table.inherited = state_table.first; /* their memory stays, and is not lost */
  state_table.first = NULL;
  state_table.by_device = NULL;
}
