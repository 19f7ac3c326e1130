/* Vendors' own tracing: which back ends record, and since when. See internal.h. */
#define _GNU_SOURCE
#include "internal.h"

#include <prof/profiler.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>

#include "../base/port.h"
#include "../core/buffer/arena.h"
#include "../core/buffer/thread.h"
#include "../core/session/control.h"

typedef struct backend_tracing {
  /* kinds, since the last tracing_start(); 0: it does not record. Atomic: written by the thread
     that has claimed it */
  uint32_t enabled_kinds;
  /* kinds that its vendor lets it record since the program began with it, until tracing_start()
     takes them over; 0: none. Atomic, relaxed: as enabled_kinds */
  uint32_t preinit_kinds;
  prof_backend_pair preinit_reading; /* at its clock, from then */
  /* 1: claimed by the collector for a round, or by an operator's measurement, which then calls
     start, drain and stop. Acquire, release */
  uint32_t is_claimed;
  bool was_started;         /* it was asked once */
  uint64_t clock_read_ns;   /* when its clocks were read last, for their own sake */
  uint64_t use_checked_ns;  /* when it was last asked whether the program has begun to use it */
  uint64_t unused_since_ns; /* when it was last found that it had not; 0: not in this recording */
  uint64_t loaded_ns;       /* when its library was first seen in the process */
  uint64_t paused_since_ns; /* when the level became 0; 0: it is above */
} backend_tracing;

static struct {
  backend_tracing tracings[PROF_I_BACKENDS_MAX + PROF_I_UNUSED_MAX]; /* by the back end's number */
  /* When a recording began without waiting for its first round, so records begin later. 0: it
     waited. Atomic, relaxed: any thread */
  uint64_t begun_ns;
} activity;

static bool is_backend_wanted(const prof_i_backend *backend) {
  switch (prof_i_control_devices()) {
    case PROF_DEVICES_RECORDS:
    case PROF_DEVICES_MEMORY:
      return true;
    case PROF_DEVICES_SCOPES:
      return false;
    default:
      return backend->table.records_always != 0;
  }
}

bool prof_i_activity_is_wanted(void) {
  const prof_i_backend *backend;
  for (uint32_t i = 0; (backend = prof_i_registry_at(i)) != NULL; i++)
    if (backend->table.start && is_backend_wanted(backend)) return true;
  return prof_i_host_wants_records();
}

static uint32_t kinds_of_backend(const prof_i_backend *backend) {
  const uint32_t kinds = prof_i_host_kinds_at_level((uint32_t)prof_i_arena_level());
  return backend->table.records_memory ? kinds : kinds & ~(1u << PROF_BACKEND_MEMORY);
}

/* The registry chooses between two that serve one device type. A library that the program has not
   loaded is left alone. */
static bool try_open_backend(prof_i_backend *backend, backend_tracing *it) {
  if (backend->table.in_use && !backend->table.in_use()) return false;
  if (!it->loaded_ns) it->loaded_ns = it->use_checked_ns;
  return prof_i_registry_open(backend->table.device_type) == backend;
}

/* The program may begin to use it at any time. */
static bool is_backend_awaited(const prof_i_backend *backend) {
  return backend->table.in_use && !prof_i_registry_is_open(backend) &&
         !prof_i_registry_is_unusable(backend);
}

/* A program that loads a vendor's library mostly begins with it at once; that takes the vendor a
   tenth of a second and more. */
static uint64_t use_check_interval_ns(const backend_tracing *it) {
  const uint64_t soon_ns = 2000000, later_ns = 20000000, at_once_ns = 3000000000;
  return it->loaded_ns && prof_i_ns_since(it->loaded_ns) < at_once_ns ? soon_ns : later_ns;
}

/* The check costs the loader time: it is not made in each round, unless a caller waits for this
   one. */
static bool check_backend_use(prof_i_backend *backend, backend_tracing *it, uint32_t how) {
  const uint64_t now = prof_i_port_monotonic_ns();
  if (how == PROF_BACKEND_POLL && is_backend_awaited(backend) &&
      now - it->use_checked_ns < use_check_interval_ns(it))
    return false;
  it->use_checked_ns = now;
  if (try_open_backend(backend, it)) return true;
  if (is_backend_awaited(backend)) it->unused_since_ns = now;
  return false;
}

static void set_enabled_kinds(backend_tracing *it, uint32_t kinds) {
  __atomic_store_n(&it->enabled_kinds, kinds, __ATOMIC_RELAXED);
}

static void set_preinit_kinds(backend_tracing *it, uint32_t kinds) {
  __atomic_store_n(&it->preinit_kinds, kinds, __ATOMIC_RELAXED);
}
static uint32_t preinit_kinds_of(const backend_tracing *it) {
  return __atomic_load_n(&it->preinit_kinds, __ATOMIC_RELAXED);
}

static bool tracing_try_acquire(backend_tracing *it) {
  uint32_t is_claimed = 0;
  return __atomic_compare_exchange_n(&it->is_claimed, &is_claimed, 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED);
}
static void tracing_release(backend_tracing *it) {
  __atomic_store_n(&it->is_claimed, 0, __ATOMIC_RELEASE);
}

bool prof_i_activity_is_on(void) {
  for (uint32_t i = 0; prof_i_registry_at(i); i++)
    if (__atomic_load_n(&activity.tracings[i].enabled_kinds, __ATOMIC_RELAXED) ||
        preinit_kinds_of(&activity.tracings[i]))
      return true;
  return false;
}

/* Puts the vendor's words into the status and the capture. Right after the call. */
static void report_refused_records(prof_i_backend *backend, int result) {
  const prof_device first = {backend->table.device_type, 0};
  char reason[sizeof((prof_i_device_state *)NULL)->reason];
  snprintf(reason, sizeof reason, PROF_I_NO_RECORDS "%s",
           prof_i_registry_error_text(backend, result));
  prof_i_registry_set_records_error(backend, result);
  prof_i_device_state_report(first, backend, result, reason);
}

/* The program may have begun to use it since the last check that it had not, or since this
   recording began. */
static void report_late_start(prof_i_backend *backend, backend_tracing *it, bool is_from_first) {
  const uint64_t since_ns = it->unused_since_ns
                                ? it->unused_since_ns
                                : __atomic_load_n(&activity.begun_ns, __ATOMIC_RELAXED);
  const bool is_late = since_ns && !is_from_first;
  __atomic_store_n(&backend->late_ns, is_late ? prof_i_ns_since(since_ns) : 0, __ATOMIC_RELAXED);
  it->unused_since_ns = 0;
  if (is_late) prof_i_device_state_report_late(backend);
}

/* Work at level 0 is not missed. */
static void track_pause(backend_tracing *it, uint32_t kinds) {
  if (kinds && it->paused_since_ns) {
    it->unused_since_ns = it->paused_since_ns = 0;
    __atomic_store_n(&activity.begun_ns, 0, __ATOMIC_RELAXED);
  }
  if (!kinds && !it->paused_since_ns) it->paused_since_ns = prof_i_port_monotonic_ns();
}

/* A stop takes the level away first. */
static bool is_tracing_paused(const backend_tracing *it) {
  const uint64_t stop_ns = 500000000;
  return it->paused_since_ns && prof_i_ns_since(it->paused_since_ns) > stop_ns;
}

/* Recording ends before its records could begin, though the program had begun to use it. */
static void report_missed_start(prof_i_backend *backend, backend_tracing *it) {
  if (it->unused_since_ns && !is_tracing_paused(it) && backend->table.start &&
      is_backend_wanted(backend) && try_open_backend(backend, it))
    report_late_start(backend, it, false);
  it->unused_since_ns = 0;
}

void prof_i_activity_begin(bool is_waited_for) {
  __atomic_store_n(&activity.begun_ns,
                   is_waited_for || prof_i_arena_level() == 0 ? 0 : prof_i_port_monotonic_ns(),
                   __ATOMIC_RELAXED);
}

/* Work since then is between two readings, too. */
static void apply_preinit_reading(prof_i_backend *backend, const backend_tracing *it) {
  for (uint32_t i = 0; i < backend->device_count; i++) {
    prof_i_device_clock *const clock = prof_i_resolver_device_clock(backend, i);
    if (clock) prof_i_device_clock_add_reading(clock, &it->preinit_reading);
  }
}

static void tracing_start(prof_i_backend *backend, backend_tracing *it, uint32_t kinds) {
  uint32_t can = 0;
  if (preinit_kinds_of(it)) apply_preinit_reading(backend, it);
  const bool is_first = !it->enabled_kinds;
  const int result = backend->table.start(backend->self, kinds, &can);
  set_enabled_kinds(it, kinds);
  set_preinit_kinds(it, 0);
  if (is_first && result == PROF_BACKEND_OK)
    report_late_start(backend, it, can & PROF_BACKEND_FROM_FIRST);
  if (result != PROF_BACKEND_OK) report_refused_records(backend, result);
  /* its library may have come after the collector */
  if (!it->was_started) prof_i_collector_register_exit();
  it->was_started = true;
}

/* Later records are then between two readings. */
static void read_device_clocks(prof_i_backend *backend, backend_tracing *it) {
  const uint64_t every_ns = 100000000, now = prof_i_port_monotonic_ns();
  if (!backend->table.clock || now - it->clock_read_ns < every_ns) return;
  it->clock_read_ns = now;
  for (uint32_t i = 0; i < backend->device_count; i++) {
    prof_i_device_clock *const clock = prof_i_resolver_device_clock(backend, i);
    if (clock) prof_i_device_clock_update(clock, 0);
  }
}

static bool tracing_drain(prof_i_backend *backend, uint32_t how, int loss) {
  uint64_t lost = 0;
  prof_i_records_begin(backend);
  const int result = backend->table.drain(backend->self, how, &lost);
  prof_i_records_end();
  if (lost) prof_i_thread_lose_outside(&prof_i_no_thread, loss, lost);
  if (lost && loss == PROF_LOSS_DEVICE_LATE)
    prof_i_device_state_report_unfinished((prof_device){backend->table.device_type, 0}, backend);
  return result == PROF_BACKEND_NOT_READY;
}

static void tracing_stop(prof_i_backend *backend, backend_tracing *it) {
  set_enabled_kinds(it, 0);
  tracing_drain(backend, PROF_BACKEND_FLUSH, PROF_LOSS_DEVICE_FULL);
  if (backend->table.stop) backend->table.stop(backend->self);
  tracing_drain(backend, PROF_BACKEND_FLUSH,
                PROF_LOSS_DEVICE_LATE); /* what it drops then was not done */
}

static bool tracing_round(prof_i_backend *backend, backend_tracing *it, uint32_t how) {
  const uint32_t memory = 1u << PROF_BACKEND_MEMORY, kinds = kinds_of_backend(backend);
  if (!backend->table.start || !backend->table.drain) return false;
  track_pause(it, kinds);
  if (!it->enabled_kinds &&
      (!kinds || !is_backend_wanted(backend) || !check_backend_use(backend, it, how)))
    return false;
  if (!tracing_try_acquire(it)) return true; /* soon */
  const bool is_left =
      !is_backend_wanted(backend); /* records are not wanted any more, scopes are */
  bool is_waiting = false;
  if (is_left) tracing_stop(backend, it);
  if (!is_left && kinds && kinds != it->enabled_kinds &&
      (!(kinds & memory) || prof_i_device_memory_prepare(backend)))
    tracing_start(backend, it, kinds);
  if (!is_left) read_device_clocks(backend, it);
  if (!is_left) is_waiting = tracing_drain(backend, how, PROF_LOSS_DEVICE_FULL);
  tracing_release(it);
  return is_waiting;
}

bool prof_i_activity_round(uint32_t how) {
  prof_i_backend *backend;
  bool is_waiting = false;
  if (prof_i_host_wants_records()) prof_i_registry_prepare();
  for (uint32_t i = 0; (backend = prof_i_registry_at(i)) != NULL; i++)
    is_waiting |= tracing_round(backend, &activity.tracings[i], how);
  return is_waiting;
}

bool prof_i_activity_is_awaiting(void) {
  const prof_i_backend *backend;
  for (uint32_t i = 0; (backend = prof_i_registry_at(i)) != NULL; i++)
    if (backend->table.start && is_backend_wanted(backend) && is_backend_awaited(backend))
      return true;
  return false;
}

uint64_t prof_i_activity_poll_interval_ns(void) {
  const prof_i_backend *backend;
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 0; (backend = prof_i_registry_at(i)) != NULL; i++) {
    if (!backend->table.start || !is_backend_wanted(backend) || !is_backend_awaited(backend))
      continue;
    const uint64_t patience = use_check_interval_ns(&activity.tracings[i]);
    if (patience < least) least = patience;
  }
  return least;
}

/* The program ended before the first round: what was recorded since it began is taken over. */
static void take_over_preinit(prof_i_backend *backend, backend_tracing *it) {
  const uint32_t kinds = preinit_kinds_of(it);
  if (!kinds || !try_open_backend(backend, it)) return;
  while (!tracing_try_acquire(it)) sched_yield();
  tracing_start(backend, it, kinds);
  read_device_clocks(backend, it);
  tracing_release(it);
}

void prof_i_activity_end(void) {
  prof_i_backend *backend;
  for (uint32_t i = 0; (backend = prof_i_registry_at(i)) != NULL; i++) {
    backend_tracing *const it = &activity.tracings[i];
    if (!it->enabled_kinds) take_over_preinit(backend, it);
    if (!it->enabled_kinds) report_missed_start(backend, it);
    it->paused_since_ns = 0;
    if (!it->enabled_kinds) continue;
    /* a back end that records is claimed by others only for a short check */
    while (!tracing_try_acquire(it)) sched_yield();
    tracing_stop(backend, it);
    tracing_release(it);
  }
}

static backend_tracing *tracing_find(const prof_i_backend *backend) {
  uint32_t number = 0;
  while (prof_i_registry_at(number) != backend) number++;
  return &activity.tracings[number];
}

bool prof_i_activity_acquire(const prof_i_backend *backend) {
  backend_tracing *const it = tracing_find(backend);
  if (!tracing_try_acquire(it)) return false;
  if (__atomic_load_n(&it->enabled_kinds, __ATOMIC_RELAXED) == 0 && !preinit_kinds_of(it))
    return true;
  tracing_release(it);
  return false;
}

void prof_i_activity_release(const prof_i_backend *backend) {
  tracing_release(tracing_find(backend));
}

/* ---- inside of the vendor's own begin ---- */

/* Finds the table's back end, listed and probed. NULL: not so in time. */
static prof_i_backend *find_probed_backend(const prof_backend *table) {
  enum { PATIENCE_MS = 100 };
  prof_i_backend *backend;
  prof_i_registry_prepare();
  for (const uint64_t begun_ns = prof_i_port_monotonic_ns();
       prof_i_registry_is_listing() && prof_i_ns_since(begun_ns) < PATIENCE_MS * UINT64_C(1000000);)
    sched_yield();
  for (uint32_t i = 0; (backend = prof_i_registry_at(i)) != NULL; i++)
    if (backend->origin == table)
      return prof_i_registry_probe(backend, PATIENCE_MS) && !prof_i_registry_is_unusable(backend)
                 ? backend
                 : NULL;
  return NULL;
}

void prof_i_activity_begin_preinit(const prof_backend *table, prof_i_activity_preinit_fn *begin) {
  PROF_I_DISABLE_CANCEL;
  prof_i_backend *const backend = prof_i_activity_is_wanted() ? find_probed_backend(table) : NULL;
  if (!backend || !is_backend_wanted(backend)) return;
  backend_tracing *const it = tracing_find(backend);
  const uint32_t kinds = kinds_of_backend(backend);
  /* its pools are made when its devices are known: what was handed out before has none, and the
     trace is to say since when */
  if (!kinds || kinds & 1u << PROF_BACKEND_MEMORY || !tracing_try_acquire(it)) return;
  if (__atomic_load_n(&it->enabled_kinds, __ATOMIC_RELAXED) == 0 &&
      begin(&prof_i_device_host, kinds, &it->preinit_reading) == PROF_BACKEND_OK) {
    set_preinit_kinds(it, kinds);
    prof_i_collector_register_exit();
  }
  tracing_release(it);
}

void prof_i_activity_forget(void) {
  for (uint32_t i = 0; i < PROF_I_BACKENDS_MAX + PROF_I_UNUSED_MAX; i++)
    activity.tracings[i] = (backend_tracing){.was_started = activity.tracings[i].was_started};
  activity.begun_ns = 0;
}
