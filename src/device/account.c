/* See account.h. */
#define _GNU_SOURCE
#include "account.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/arena.h"
#include "../core/clock.h"
#include "../core/meta.h"

typedef struct account {
  prof_device device;
  uint64_t arena;             /* the number of the one that it stands in; 0: none */
  prof_i_device_state *state; /* there */
  bool is_served;             /* and tells of the device itself */
  struct account *next;
} account;

static struct {
  pthread_mutex_t lock; /* rank 3. Nothing of anybody's is called under it */
  account *first;
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
  state->flags = end->table.is_emulated || (device && device->is_emulated) ? PROF_I_DEVICE_EMULATED : 0;
  snprintf(state->back_end, sizeof state->back_end, "%s", end->table.name);
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
  for (account *a = own.first; a; a = a->next)
    if (a->device.type == device.type && a->device.index == device.index) return a;
  account *const a = calloc(1, sizeof *a);
  if (!a) return NULL;
  *a = (account){.device = device, .next = own.first};
  own.first = a;
  return a;
}

/* One that says why nobody serves it gives way to one that is served: the reader takes the last. */
prof_i_device_state *prof_i_device_account(prof_device device, const prof_i_back_end *end) {
  char reason[sizeof((prof_i_device_state *)NULL)->reason] = "";
  const int32_t result = end ? PROF_BACKEND_OK : prof_i_registry_why(device.type, reason, sizeof reason);
  what of = {device, end, result, reason};
  pthread_mutex_lock(&own.lock);
  account *const a = find(device);
  if (a && (a->arena != prof_i_the_arena.number || a->is_served < (end != NULL))) {
    a->state = prof_i_meta_place(PROF_I_KIND_DEVICE, prof_i_clock_ticks(), sizeof(prof_i_device_state) / 8, fill, &of);
    a->arena = a->state ? prof_i_the_arena.number : 0;
    a->is_served = end != NULL;
  }
  prof_i_device_state *const state = a ? a->state : NULL;
  pthread_mutex_unlock(&own.lock);
  return state;
}

void prof_i_device_accounts_forget(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  own.lock = fresh;
  own.parents = own.first; /* their memory stays, and is not lost */
  own.first = NULL;
}
