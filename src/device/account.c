/* See account.h. */
#define _GNU_SOURCE
#include "account.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/this_thread.h"
#include "../core/buffer/arena.h"
#include "../core/buffer/clock.h"
#include "../core/buffer/gate.h"
#include "../core/buffer/meta.h"
#include "../core/session/control.h"

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(item) (is_out_of_memory = true)
#include <uthash.h>

typedef struct account {
  prof_device device;
  uint64_t arena;             /* the number of the one that it stands in; 0: none */
  prof_i_device_state *state; /* there */
  bool has_times;             /* it does not say why there are none */
  struct account *next;
  UT_hash_handle hh; /* by the device */
} account;
_Static_assert(sizeof(prof_device) == 2 * sizeof(int32_t), "a key without gaps");

static struct {
  pthread_mutex_t lock;   /* rank 3. Nothing of anybody's is called under it */
  account *first;         /* the newest */
  account *by_device;     /* the same, as a hash table */
  const account *parents; /* of a forked child */
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

typedef struct what {
  prof_device device;
  const prof_i_back_end *end;
  int32_t result;
  const char *reason;
} what;

static void describe(prof_i_device_state *state, const what *of) {
  const prof_i_back_end *const end = of->end;
  const uint32_t index = (uint32_t)of->device.index;
  const prof_backend_device *const device = index < end->device_count ? &end->devices[index] : NULL;
  state->flags =
      end->table.is_emulated || (device && device->is_emulated) ? PROF_I_DEVICE_EMULATED : 0;
  snprintf(state->back_end, sizeof state->back_end, "%s", end->table.name);
  state->late_ns = __atomic_load_n(&end->late_ns, __ATOMIC_RELAXED);
  if (!device) return;
  state->memory_bytes = device->memory_bytes;
  state->units = device->units;
  state->clock_khz = device->clock_khz;
  memcpy(state->uuid, device->uuid, sizeof state->uuid);
  memcpy(state->name, device->name, sizeof state->name);
  memcpy(state->arch, device->arch, sizeof state->arch);
  memcpy(state->driver, device->driver, sizeof state->driver);
}

static void *fill(uint64_t *words, void *with) {
  const what *const of = with;
  prof_i_device_state *const state = (prof_i_device_state *)words;
  memset(state, 0, sizeof *state);
  state->type = of->device.type;
  state->index = of->device.index;
  if (of->end) describe(state, of);
  state->result = of->result;
  snprintf(state->reason, sizeof state->reason, "%s", of->reason);
  return state;
}

static account *find(prof_device device) {
  account *found = NULL;
  bool is_out_of_memory = false;
  HASH_FIND(hh, own.by_device, &device, sizeof device, found);
  if (found || !(found = calloc(1, sizeof *found))) return found;
  *found = (account){.device = device, .next = own.first};
  HASH_ADD(hh, own.by_device, device, sizeof device, found);
  if (is_out_of_memory) {
    free(found);
    return NULL;
  }
  own.first = found;
  return found;
}

/* ---- what health says ---- */

/* Or without the records that were asked for. One that is about to have its first scope says no
   reason, and has none. */
static bool is_without_times(const account *a) {
  if (!a->state || a->arena != prof_i_the_arena.number) return false;
  if (prof_i_is_no_records(a->state->reason)) return true;
  if (__atomic_load_n(&a->state->scope_count, __ATOMIC_RELAXED)) return false;
  return !a->has_times || __atomic_load_n(&a->state->captured_count, __ATOMIC_RELAXED);
}

static void put_warning(const prof_i_device_state *state, uint32_t others, char *to, size_t room) {
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

static void warn(char *to, size_t room) {
  const account *first = NULL;
  uint32_t count = 0;
  to[0] = '\0';
  if (!prof_i_gate_enter()) return; /* its arena is just being replaced, or cleared */
  prof_i_thread_lock(&own.lock);
  for (const account *a = own.first; a; a = a->next) { /* newest first */
    if (!is_without_times(a)) continue;
    first = a;
    count++;
  }
  if (first) put_warning(first->state, count - 1, to, room);
  prof_i_thread_unlock(&own.lock);
  prof_i_gate_leave();
}

/* ---- the face ---- */

/* Whoever reads it meanwhile finds nothing, or all of it: the first byte comes last. One text
   stays. */
static void add_reason(prof_i_device_state *state, const char *reason) {
  const size_t bytes = strnlen(reason, sizeof state->reason - 1);
  if (bytes == 0 || state->reason[0]) return;
  for (size_t i = 1; i < bytes; i++)
    __atomic_store_n(&state->reason[i], reason[i], __ATOMIC_RELAXED);
  __atomic_store_n(&state->reason[0], reason[0], __ATOMIC_RELEASE);
}

static bool is_too_early(const char *reason) { return strcmp(reason, PROF_I_TOO_EARLY) == 0; }

/* What holds although there are times: it has no records for all that, or its first scopes have
   none. */
static bool is_kept(const char *reason) {
  return prof_i_is_no_records(reason) || is_too_early(reason);
}

/* There is no state in this arena, or one that tells less than this: of the reasons that scopes
   have no times the least is that one was too early. */
static bool is_news(const account *a, const what *of) {
  const bool has_times = of->result == PROF_BACKEND_OK;
  if (a->arena != prof_i_the_arena.number || a->has_times < has_times) return true;
  return a->state && !has_times && !a->has_times && is_too_early(a->state->reason) &&
         !is_too_early(of->reason);
}

/* One that says why there are no times gives way to one that has some: the reader takes the
   last. */
static prof_i_device_state *account_of(what *of) {
  const bool has_times = of->result == PROF_BACKEND_OK;
  prof_i_control_set_device_warning(warn);
  prof_i_thread_lock(&own.lock);
  account *const a = find(of->device);
  if (a && is_news(a, of)) {
    const prof_i_device_state *const before = a->arena == prof_i_the_arena.number ? a->state : NULL;
    a->state = prof_i_meta_place(PROF_I_KIND_DEVICE, prof_i_clock_ticks(),
                                 sizeof(prof_i_device_state) / 8, fill, of);
    a->arena = a->state ? prof_i_the_arena.number : 0;
    a->has_times = has_times;
    if (a->state && has_times && before && is_kept(before->reason))
      add_reason(a->state, before->reason);
  } else if (a && a->state && !has_times && a->has_times) {
    add_reason(a->state, of->reason);
  }
  prof_i_device_state *const state = a ? a->state : NULL;
  prof_i_thread_unlock(&own.lock);
  return state;
}

prof_i_device_state *prof_i_device_account(prof_device device, const prof_i_back_end *end) {
  return account_of(&(what){device, end, PROF_BACKEND_OK, ""});
}

void prof_i_device_account_why_not(prof_device device, const prof_i_back_end *end, int32_t result,
                                   const char *reason) {
  account_of(&(what){device, end, result, reason});
}

void prof_i_device_account_nobody(prof_device device) {
  char reason[sizeof((prof_i_device_state *)NULL)->reason] = "";
  /* asks the loader, which must not wait for who waits at the gate */
  const int32_t result = prof_i_registry_why(device.type, reason, sizeof reason);
  if (!prof_i_gate_enter()) return;
  prof_i_device_account_why_not(device, NULL, result, reason);
  prof_i_gate_leave();
}

void prof_i_device_account_too_early(prof_device device) {
  if (!prof_i_gate_enter()) return;
  prof_i_device_account_why_not(device, NULL, PROF_BACKEND_NOT_READY, PROF_I_TOO_EARLY);
  prof_i_gate_leave();
}

void prof_i_device_account_late(const prof_i_back_end *end) {
  const uint64_t late_ns = __atomic_load_n(&end->late_ns, __ATOMIC_RELAXED);
  if (!prof_i_gate_enter()) return;
  prof_i_device_account((prof_device){end->table.device_type, 0}, end);
  prof_i_thread_lock(&own.lock);
  for (const account *a = own.first; a; a = a->next)
    if (a->state && a->arena == prof_i_the_arena.number && a->device.type == end->table.device_type)
      prof_i_account_raise(&a->state->late_ns, late_ns);
  prof_i_thread_unlock(&own.lock);
  prof_i_gate_leave();
}

void prof_i_device_accounts_forget(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  own.lock = fresh;
  own.parents = own.first; /* their memory stays, and is not lost */
  own.first = NULL;
  own.by_device = NULL;
}
