/* See activity.h. */
#define _GNU_SOURCE
#include "activity.h"

#include <prof/profiler.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>

#include "../base/port.h"
#include "../core/buffer/arena.h"
#include "../core/buffer/gate.h"
#include "../core/buffer/thread.h"
#include "../core/session/control.h"
#include "account.h"
#include "collector.h"
#include "harvest.h"
#include "host.h"
#include "memory.h"
#include "records.h"

typedef struct tracing {
  /* kinds, since the last start(); 0: it does not record. Atomic: the collector writes, while it
     has it */
  uint32_t asked;
  /* kinds that its vendor lets it record since the program began with it, and that no start() has
     taken over; 0: none. Atomic, relaxed: as asked */
  uint32_t early;
  prof_backend_pair early_look; /* at its clock, from then */
  /* 1: by the collector, for a round, or by an operator's measurement: start, drain and stop are
     its own. Acquire, release: they pair with each other */
  uint32_t is_had;
  bool has_begun;     /* it was asked once */
  uint64_t looked_ns; /* when its clocks were read last, for their own sake */
  uint64_t sought_ns; /* when it was last asked whether the program has begun to use it */
  uint64_t absent_ns; /* when it was last found that it had not; 0: not in this recording */
  uint64_t loaded_ns; /* when its library was first seen in the process */
  uint64_t paused_ns; /* since when nothing is asked for: level 0; 0: something is */
} tracing;

static struct {
  tracing of[PROF_I_BACKENDS_MAX + PROF_I_UNUSED_MAX]; /* by the back end's number */
  /* a recording that waited for nobody: what is asked for it comes later. 0: it waited. Atomic,
     relaxed: of any thread */
  uint64_t begun_ns;
} own;

static bool are_all_asked(void) { return prof_i_control_devices() >= PROF_DEVICES_RECORDS; }

static bool is_wanted(const prof_i_back_end *end) {
  switch (prof_i_control_devices()) {
    case PROF_DEVICES_RECORDS:
    case PROF_DEVICES_MEMORY:
      return true;
    case PROF_DEVICES_SCOPES:
      return false;
    default:
      return end->table.records_always != 0;
  }
}

bool prof_i_activity_is_wanted(void) {
  const prof_i_back_end *end;
  for (uint32_t i = 0; (end = prof_i_registry_at(i)) != NULL; i++)
    if (end->table.start && is_wanted(end)) return true;
  return are_all_asked();
}

/* At level 1 what devices do; at 2 also the calls of their library. */
static uint32_t kinds_of(uint32_t level) {
  const uint32_t on_devices = 1u << PROF_BACKEND_KERNEL | 1u << PROF_BACKEND_COPY |
                              1u << PROF_BACKEND_FILL | 1u << PROF_BACKEND_SYNC |
                              1u << PROF_BACKEND_OTHER;
  const uint32_t memory =
      prof_i_control_devices() == PROF_DEVICES_MEMORY ? 1u << PROF_BACKEND_MEMORY : 0;
  return level == 0 ? 0 : on_devices | memory | (level == 1 ? 0 : 1u << PROF_BACKEND_CALL);
}

static uint32_t kinds_of_end(const prof_i_back_end *end) {
  const uint32_t kinds = kinds_of((uint32_t)prof_i_arena_level());
  return end->table.records_memory ? kinds : kinds & ~(1u << PROF_BACKEND_MEMORY);
}

uint32_t prof_i_activity_kinds(void) {
  return are_all_asked() ? kinds_of((uint32_t)prof_i_arena_level()) : 0;
}

/* Of two that serve one device type the registry says which one does. A library that the program
   has not loaded so far stays where it is. */
static bool is_open(prof_i_back_end *end, tracing *it) {
  if (end->table.in_use && !end->table.in_use()) return false;
  if (!it->loaded_ns) it->loaded_ns = it->sought_ns;
  return prof_i_registry_open(end->table.device_type) == end;
}

/* The program may begin to use it at any time. */
static bool is_awaited(const prof_i_back_end *end) {
  return end->table.in_use && !prof_i_registry_is_open(end) && !prof_i_registry_is_shut(end);
}

/* A program that loads a vendor's library mostly begins with it at once; that takes the vendor a
   tenth of a second and more. */
static uint64_t patience_of(const tracing *it) {
  const uint64_t soon_ns = 2000000, later_ns = 20000000, at_once_ns = 3000000000;
  return it->loaded_ns && prof_i_ns_since(it->loaded_ns) < at_once_ns ? soon_ns : later_ns;
}

/* To ask is work of the loader's: not each round, unless somebody waits for this one. */
static bool has_begun_to_be_used(prof_i_back_end *end, tracing *it, uint32_t how) {
  const uint64_t now = prof_i_port_monotonic_ns();
  if (how == PROF_BACKEND_POLL && is_awaited(end) && now - it->sought_ns < patience_of(it))
    return false;
  it->sought_ns = now;
  if (is_open(end, it)) return true;
  if (is_awaited(end)) it->absent_ns = now;
  return false;
}

static void set_asked(tracing *it, uint32_t kinds) {
  __atomic_store_n(&it->asked, kinds, __ATOMIC_RELAXED);
}

static void set_early(tracing *it, uint32_t kinds) {
  __atomic_store_n(&it->early, kinds, __ATOMIC_RELAXED);
}
static uint32_t early_of(const tracing *it) {
  return __atomic_load_n(&it->early, __ATOMIC_RELAXED);
}

static bool have(tracing *it) {
  uint32_t is_had = 0;
  return __atomic_compare_exchange_n(&it->is_had, &is_had, 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED);
}
static void let_go(tracing *it) { __atomic_store_n(&it->is_had, 0, __ATOMIC_RELEASE); }

bool prof_i_activity_is_on(void) {
  for (uint32_t i = 0; prof_i_registry_at(i); i++)
    if (__atomic_load_n(&own.of[i].asked, __ATOMIC_RELAXED) || early_of(&own.of[i])) return true;
  return false;
}

/* In its words, right after the call; and in the capture, which somebody reads who has not asked
   for the status. */
static void tell_refused(prof_i_back_end *end, int result) {
  const prof_device first = {end->table.device_type, 0};
  char reason[sizeof((prof_i_device_state *)NULL)->reason];
  snprintf(reason, sizeof reason, PROF_I_NO_RECORDS "%s", prof_i_registry_words(end, result));
  prof_i_registry_tell_records(end, result);
  if (!prof_i_gate_enter()) return;
  prof_i_device_account_why_not(first, end, result, reason);
  prof_i_gate_leave();
}

/* The program may have begun with it at any time since it was found that it had not, or since this
   recording began. */
static void tell_late(prof_i_back_end *end, tracing *it, bool is_from_first) {
  const uint64_t since_ns =
      it->absent_ns ? it->absent_ns : __atomic_load_n(&own.begun_ns, __ATOMIC_RELAXED);
  const bool is_late = since_ns && !is_from_first;
  __atomic_store_n(&end->late_ns, is_late ? prof_i_ns_since(since_ns) : 0, __ATOMIC_RELAXED);
  it->absent_ns = 0;
  if (is_late) prof_i_device_account_late(end);
}

/* What runs while nobody asks is not missed. */
static void note_pause(tracing *it, uint32_t kinds) {
  if (kinds && it->paused_ns) {
    it->absent_ns = it->paused_ns = 0;
    __atomic_store_n(&own.begun_ns, 0, __ATOMIC_RELAXED);
  }
  if (!kinds && !it->paused_ns) it->paused_ns = prof_i_port_monotonic_ns();
}

/* A stop takes the level away first. */
static bool is_paused(const tracing *it) {
  const uint64_t stop_ns = 500000000;
  return it->paused_ns && prof_i_ns_since(it->paused_ns) > stop_ns;
}

/* Recording ends before its records could begin, and the program had begun with it. */
static void tell_never(prof_i_back_end *end, tracing *it) {
  if (it->absent_ns && !is_paused(it) && end->table.start && is_wanted(end) && is_open(end, it))
    tell_late(end, it, false);
  it->absent_ns = 0;
}

void prof_i_activity_begin(bool is_waited_for) {
  __atomic_store_n(&own.begun_ns,
                   is_waited_for || prof_i_arena_level() == 0 ? 0 : prof_i_port_monotonic_ns(),
                   __ATOMIC_RELAXED);
}

/* What ran since then lies between two readings, too. */
static void know_early_look(prof_i_back_end *end, const tracing *it) {
  for (uint32_t i = 0; i < end->device_count; i++) {
    prof_i_device_clock *const clock = prof_i_harvest_device_clock(end, i);
    if (clock) prof_i_device_clock_add(clock, &it->early_look);
  }
}

static void start(prof_i_back_end *end, tracing *it, uint32_t kinds) {
  uint32_t can = 0;
  if (early_of(it)) know_early_look(end, it);
  const bool is_first = !it->asked;
  const int result = end->table.start(end->self, kinds, &can);
  set_asked(it, kinds);
  set_early(it, 0);
  if (is_first && result == PROF_BACKEND_OK) tell_late(end, it, can & PROF_BACKEND_FROM_FIRST);
  if (result != PROF_BACKEND_OK) tell_refused(end, result);
  /* its library may have come after the collector */
  if (!it->has_begun) prof_i_collector_end_first();
  it->has_begun = true;
}

/* What is told later lies between two readings. */
static void look_at_clocks(prof_i_back_end *end, tracing *it) {
  const uint64_t every_ns = 100000000, now = prof_i_port_monotonic_ns();
  if (!end->table.clock || now - it->looked_ns < every_ns) return;
  it->looked_ns = now;
  for (uint32_t i = 0; i < end->device_count; i++) {
    prof_i_device_clock *const clock = prof_i_harvest_device_clock(end, i);
    if (clock) prof_i_device_clock_look(clock, 0);
  }
}

/* What it gave up when it was stopped. */
static void tell_unfinished(prof_i_back_end *end) {
  if (!prof_i_gate_enter()) return;
  prof_i_device_account_why_not((prof_device){end->table.device_type, 0}, end,
                                PROF_BACKEND_NOT_READY,
                                "it was not done with its work when recording stopped");
  prof_i_gate_leave();
}

static bool drain(prof_i_back_end *end, uint32_t how, int loss) {
  uint64_t lost = 0;
  prof_i_records_begin(end);
  const int result = end->table.drain(end->self, how, &lost);
  prof_i_records_end();
  if (lost) prof_i_thread_lose_outside(&prof_i_no_thread, loss, lost);
  if (lost && loss == PROF_LOSS_DEVICE_LATE) tell_unfinished(end);
  return result == PROF_BACKEND_NOT_READY;
}

static void leave(prof_i_back_end *end, tracing *it) {
  set_asked(it, 0);
  drain(end, PROF_BACKEND_FLUSH, PROF_LOSS_DEVICE_FULL);
  if (end->table.stop) end->table.stop(end->self);
  drain(end, PROF_BACKEND_FLUSH, PROF_LOSS_DEVICE_LATE); /* what it gives up then was not done */
}

static bool go_on(prof_i_back_end *end, tracing *it, uint32_t how) {
  const uint32_t memory = 1u << PROF_BACKEND_MEMORY, kinds = kinds_of_end(end);
  if (!end->table.start || !end->table.drain) return false;
  note_pause(it, kinds);
  if (!it->asked && (!kinds || !is_wanted(end) || !has_begun_to_be_used(end, it, how)))
    return false;
  if (!have(it)) return true;           /* soon */
  const bool is_left = !is_wanted(end); /* who wanted records has left, others go on */
  bool is_waiting = false;
  if (is_left) leave(end, it);
  if (!is_left && kinds && kinds != it->asked &&
      (!(kinds & memory) || prof_i_device_memory_prepare(end)))
    start(end, it, kinds);
  if (!is_left) look_at_clocks(end, it);
  if (!is_left) is_waiting = drain(end, how, PROF_LOSS_DEVICE_FULL);
  let_go(it);
  return is_waiting;
}

bool prof_i_activity_round(uint32_t how) {
  prof_i_back_end *end;
  bool is_waiting = false;
  if (are_all_asked()) prof_i_registry_prepare();
  for (uint32_t i = 0; (end = prof_i_registry_at(i)) != NULL; i++)
    is_waiting |= go_on(end, &own.of[i], how);
  return is_waiting;
}

bool prof_i_activity_is_awaiting(void) {
  const prof_i_back_end *end;
  for (uint32_t i = 0; (end = prof_i_registry_at(i)) != NULL; i++)
    if (end->table.start && is_wanted(end) && is_awaited(end)) return true;
  return false;
}

uint64_t prof_i_activity_patience_ns(void) {
  const prof_i_back_end *end;
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 0; (end = prof_i_registry_at(i)) != NULL; i++) {
    if (!end->table.start || !is_wanted(end) || !is_awaited(end)) continue;
    const uint64_t patience = patience_of(&own.of[i]);
    if (patience < least) least = patience;
  }
  return least;
}

/* A program that was over before the first look since it began: what was recorded of it is
   there. */
static void take_over_at_end(prof_i_back_end *end, tracing *it) {
  const uint32_t kinds = early_of(it);
  if (!kinds || !is_open(end, it)) return;
  while (!have(it)) sched_yield();
  start(end, it, kinds);
  look_at_clocks(end, it);
  let_go(it);
}

void prof_i_activity_end(void) {
  prof_i_back_end *end;
  for (uint32_t i = 0; (end = prof_i_registry_at(i)) != NULL; i++) {
    tracing *const it = &own.of[i];
    if (!it->asked) take_over_at_end(end, it);
    if (!it->asked) tell_never(end, it);
    it->paused_ns = 0;
    if (!it->asked) continue;
    /* of one that records nobody else has it for more than a look */
    while (!have(it)) sched_yield();
    leave(end, it);
    let_go(it);
  }
}

static tracing *tracing_of(const prof_i_back_end *end) {
  uint32_t number = 0;
  while (prof_i_registry_at(number) != end) number++;
  return &own.of[number];
}

bool prof_i_activity_borrow(const prof_i_back_end *end) {
  tracing *const it = tracing_of(end);
  if (!have(it)) return false;
  if (__atomic_load_n(&it->asked, __ATOMIC_RELAXED) == 0 && !early_of(it)) return true;
  let_go(it);
  return false;
}

void prof_i_activity_give_back(const prof_i_back_end *end) { let_go(tracing_of(end)); }

/* ---- inside of the vendor's own begin ---- */

/* Listed, by whoever is at it, and looked at. NULL: not so in time. */
static prof_i_back_end *find_looked_at(const prof_backend *table) {
  enum { PATIENCE_MS = 100 };
  prof_i_back_end *end;
  prof_i_registry_prepare();
  for (const uint64_t begun_ns = prof_i_port_monotonic_ns();
       prof_i_registry_is_listing() && prof_i_ns_since(begun_ns) < PATIENCE_MS * UINT64_C(1000000);)
    sched_yield();
  for (uint32_t i = 0; (end = prof_i_registry_at(i)) != NULL; i++)
    if (end->origin == table)
      return prof_i_registry_look(end, PATIENCE_MS) && !prof_i_registry_is_shut(end) ? end : NULL;
  return NULL;
}

void prof_i_activity_begin_inside(const prof_backend *table, prof_i_begin_inside *begin) {
  PROF_I_HOLD_CANCEL;
  prof_i_back_end *const end = prof_i_activity_is_wanted() ? find_looked_at(table) : NULL;
  if (!end || !is_wanted(end)) return;
  tracing *const it = tracing_of(end);
  const uint32_t kinds = kinds_of_end(end);
  /* its pools are made when its devices are known: what was handed out before has none, and the
     trace is to say since when */
  if (!kinds || kinds & 1u << PROF_BACKEND_MEMORY || !have(it)) return;
  if (__atomic_load_n(&it->asked, __ATOMIC_RELAXED) == 0 &&
      begin(&prof_i_device_host, kinds, &it->early_look) == PROF_BACKEND_OK) {
    set_early(it, kinds);
    prof_i_collector_end_first();
  }
  let_go(it);
}

void prof_i_activity_forget(void) {
  for (uint32_t i = 0; i < PROF_I_BACKENDS_MAX + PROF_I_UNUSED_MAX; i++)
    own.of[i] = (tracing){.has_begun = own.of[i].has_begun};
  own.begun_ns = 0;
}
