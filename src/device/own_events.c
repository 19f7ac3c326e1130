/* See own_events.h. Vendors are called without a lock: by who hands an event over, and by the
   collector. */
#define _GNU_SOURCE
#include "own_events.h"

#include <errno.h>
#include <prof/device.h>
#include <prof/profiler.h>
#include <pthread.h>
#include <string.h>

#include "../base/call.h"
#include "../base/log.h"
#include "../base/port.h"
#include "../base/this_thread.h"
#include "../core/buffer/arena.h"
#include "../core/buffer/clock.h"
#include "../core/buffer/gate.h"
#include "../core/buffer/session.h"
#include "../core/buffer/thread.h"
#include "collector.h"
#include "host.h"
#include "names.h"
#include "records.h"

enum { WAITING_MAX = 4096 };

typedef struct waiting {
  prof_i_back_end *end;
  void *kept;
  uint64_t stream, ticks, thread, arena, session;
  uint32_t device, kind, name;
} waiting;

static struct {
  pthread_mutex_t lock; /* rank 4: of fresh. Nothing is called under it */
  waiting fresh[WAITING_MAX];
  uint32_t fresh_count;
  waiting old[WAITING_MAX]; /* the collector's, as they came */
  uint32_t old_count;
  /* of both, and those on their way there: no more than there is room for. Relaxed */
  uint32_t count;
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Which recording it belongs to. False: none is under way. */
static bool recording_now(uint64_t *arena_out, uint64_t *session_out) {
  if (!prof_i_gate_enter()) return false;
  const bool is_there = prof_i_session_is_recording() && prof_i_the_arena.base;
  *arena_out = prof_i_the_arena.number;
  *session_out = is_there ? __atomic_load_n(&prof_i_arena_header()->session, __ATOMIC_ACQUIRE) : 0;
  prof_i_gate_leave();
  return is_there;
}

/* ---- handing over ---- */

static bool take_place(void) {
  if (__atomic_add_fetch(&own.count, 1, __ATOMIC_RELAXED) <= WAITING_MAX) return true;
  __atomic_fetch_sub(&own.count, 1, __ATOMIC_RELAXED);
  return false;
}

static void leave_place(void) { __atomic_fetch_sub(&own.count, 1, __ATOMIC_RELAXED); }

static int refuse(int status, int loss) {
  prof_i_collector_lose(loss);
  return status;
}

/* The vendor keeps it, and so there is one to let go. */
static int keep(waiting *w, void *event) {
  const prof_backend *const table = &w->end->table;
  const int result = table->own_keep(w->end->self, w->stream, event, &w->kept);
  if (result == PROF_BACKEND_OK && w->kept) return PROF_OK;
  const char *const words = prof_i_registry_words(w->end, result);
  return refuse(prof_i_fail(result == PROF_BACKEND_INVALID     ? PROF_E_INVALID
                            : result == PROF_BACKEND_NO_MEMORY ? PROF_E_NO_MEMORY
                                                               : PROF_E_UNSUPPORTED,
                            "prof_device_event: %s", words),
                PROF_LOSS_DEVICE_TIMES);
}

static void lose(int loss) { prof_i_thread_lose_outside(&prof_i_no_thread, loss, 1); }

static void let_go(const waiting *w) {
  w->end->table.own_let_go(w->end->self, w->kept);
  leave_place();
}

static bool take_one_fresh(waiting *out) {
  prof_i_thread_lock(&own.lock);
  const bool is_there = own.fresh_count > 0;
  if (is_there) *out = own.fresh[--own.fresh_count];
  prof_i_thread_unlock(&own.lock);
  return is_there;
}

/* Recording may have ended meanwhile, and the collector with it: nobody would look at them before
   the next one. */
static void drop_late(void) {
  waiting w;
  while (!prof_i_session_is_recording() && take_one_fresh(&w)) {
    lose(PROF_LOSS_DEVICE_LATE);
    let_go(&w);
  }
}

static void push(const waiting *w) {
  prof_i_thread_lock(&own.lock);
  own.fresh[own.fresh_count++] = *w;
  prof_i_thread_unlock(&own.lock);
  prof_i_collector_wake_for_records();
  drop_late();
}

/* The back end knows whose the stream is. */
static uint32_t device_of(const prof_i_back_end *end, prof_device device, uint64_t stream) {
  uint32_t index = 0, is_capturing = 0;
  const bool is_known =
      end->table.stream_of &&
      end->table.stream_of(end->self, stream, &index, &is_capturing) == PROF_BACKEND_OK;
  return is_known ? index : (uint32_t)device.index;
}

static int hand_over(prof_device device, uint64_t stream, void *event, uint32_t kind,
                     const char *name) {
  prof_i_back_end *const end = prof_i_registry_open(device.type);
  char why[256];
  if (!end) {
    prof_i_registry_why(device.type, why, sizeof why);
    return prof_i_fail(PROF_E_UNSUPPORTED, "prof_device_event: devices of type %d: %s", device.type,
                       why);
  }
  if (!end->table.own_keep || !end->table.own_times || !end->table.own_let_go)
    return prof_i_fail(
        PROF_E_UNSUPPORTED,
        "prof_device_event: back end %s takes none of the program's own events%s", end->table.name,
        end->table.records_always
            ? ": it records what they are of by itself, so that the call may be left out"
            : "");
  if (!prof_i_collector_is_wanted())
    return refuse(
        prof_i_fail(PROF_E_BUSY,
                    "prof_device_event: another thread is just making what would wait for it"),
        PROF_LOSS_DEVICE_TIMES);
  if (!take_place())
    return refuse(prof_i_fail(PROF_E_TOO_LARGE, "prof_device_event: %d wait already", WAITING_MAX),
                  PROF_LOSS_DEVICE_FULL);
  waiting w = {.end = end,
               .stream = stream,
               .ticks = prof_i_clock_ticks(),
               .thread = prof_i_device_host.thread(),
               .device = device_of(end, device, stream),
               .kind = kind,
               .name = name ? prof_i_name_number(name, strlen(name)) : 0};
  const bool is_now = recording_now(&w.arena, &w.session);
  const int status = is_now ? keep(&w, event) : PROF_OK;
  /* just then */
  if (!is_now && prof_i_session_is_recording()) prof_i_collector_lose(PROF_LOSS_CLEARED);
  if (w.kept)
    push(&w);
  else
    leave_place();
  return status;
}

int prof_device_event(prof_device device, uint64_t stream, void *event, uint32_t kind,
                      const char *name) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  if (!event) return prof_i_fail(PROF_E_INVALID, "prof_device_event: event is NULL");
  if (kind < PROF_BACKEND_KERNEL || kind > PROF_BACKEND_OTHER || kind == PROF_BACKEND_CALL)
    return prof_i_fail(
        PROF_E_INVALID,
        "prof_device_event: kind is %u; kernels, copies, fills, waits and others are possible",
        kind);
  if (prof_level() == 0 || !prof_i_session_is_recording()) return PROF_OK;
  PROF_I_HOLD_CANCEL;
  const int saved = errno;
  const int status = hand_over(device, stream, event, kind, name);
  errno = saved;
  return status;
}

/* ---- the collector's ---- */

static void take_fresh(void) {
  prof_i_thread_lock(&own.lock);
  /* there is room: both together are no more than that */
  memcpy(own.old + own.old_count, own.fresh, own.fresh_count * sizeof *own.fresh);
  own.old_count += own.fresh_count;
  own.fresh_count = 0;
  prof_i_thread_unlock(&own.lock);
}

static bool is_of_now(const waiting *w) {
  uint64_t arena, session;
  return recording_now(&arena, &session) && arena == w->arena && session == w->session;
}

static void emit(const waiting *w, uint64_t start_ns, uint64_t end_ns) {
  const prof_backend_copy whole = {
      .record = {.size = w->kind == PROF_BACKEND_COPY || w->kind == PROF_BACKEND_FILL
                             ? sizeof whole
                             : sizeof whole.record,
                 .kind = (uint16_t)w->kind,
                 .flags = PROF_BACKEND_LAUNCH_LATE,
                 .start = start_ns,
                 .end = end_ns,
                 .launch = w->ticks,
                 .launch_thread = w->thread,
                 .stream = w->stream,
                 .device = w->device,
                 .name = w->name}};
  prof_i_records_begin(w->end);
  prof_i_records_emit(&whole, whole.record.size);
  prof_i_records_end();
}

/* True: it is done with. */
static bool look_at(const waiting *w) {
  uint64_t start_ns = 0, end_ns = 0;
  const int result = w->end->table.own_times(w->end->self, w->kept, &start_ns, &end_ns);
  if (result == PROF_BACKEND_NOT_READY) return false;
  if (!is_of_now(w))
    lose(PROF_LOSS_DEVICE_LATE);
  else if (result != PROF_BACKEND_OK)
    lose(PROF_LOSS_DEVICE_TIMES);
  else
    emit(w, start_ns, end_ns);
  return true;
}

bool prof_i_own_events_are_kept(void) { return __atomic_load_n(&own.count, __ATOMIC_RELAXED) != 0; }

bool prof_i_own_events_round(void) {
  uint32_t left = 0;
  if (__atomic_load_n(&own.count, __ATOMIC_RELAXED) == 0) return false;
  take_fresh();
  for (uint32_t i = 0; i < own.old_count; i++) {
    if (look_at(&own.old[i]))
      let_go(&own.old[i]);
    else
      own.old[left++] = own.old[i];
  }
  own.old_count = left;
  return left > 0;
}

void prof_i_own_events_end(void) {
  take_fresh();
  for (uint32_t i = 0; i < own.old_count; i++) {
    lose(PROF_LOSS_DEVICE_LATE);
    let_go(&own.old[i]);
  }
  own.old_count = 0;
}

void prof_i_own_events_forget(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  own.lock = fresh;
  own.fresh_count = own.old_count = own.count = 0; /* they are the parent's */
}
