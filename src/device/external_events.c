/* Events of commands that the program enqueued: prof_device_event(). They wait in a queue of a
   fixed size until they are past. Then they become records of the innermost scope in which they
   were handed over.
   Vendors are called without a lock, by the thread that hands an event over and by the
   collector. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <prof/device.h>
#include <prof/profiler.h>
#include <pthread.h>
#include <string.h>

#include "../base/error.h"
#include "../base/port.h"
#include "../base/process.h"
#include "../core/buffer/arena.h"
#include "../core/buffer/clock.h"
#include "../core/buffer/session.h"
#include "../core/buffer/thread.h"

enum { WAITING_MAX = 4096 };

typedef struct external_event {
  prof_i_backend *backend;
  void *kept;
  uint64_t stream, ticks, thread, arena, session;
  uint32_t device, kind, name;
} external_event;

static struct {
  pthread_mutex_t lock; /* rank 4: of fresh. Nothing is called under it */
  external_event fresh[WAITING_MAX];
  uint32_t fresh_count;
  external_event waiting[WAITING_MAX]; /* the collector's, as they came */
  uint32_t waiting_count;
  /* events in both, and on their way there: at most WAITING_MAX. Relaxed */
  uint32_t count;
} event_queue = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The recording that it belongs to. False: no recording is under way. */
static bool read_recording(uint64_t *arena_out, uint64_t *session_out) {
  if (!prof_i_arena_guard_enter()) return false;
  const bool is_there = prof_i_session_is_recording() && prof_i_the_arena.base;
  *arena_out = prof_i_the_arena.number;
  *session_out = is_there ? __atomic_load_n(&prof_i_arena_header()->session, __ATOMIC_ACQUIRE) : 0;
  prof_i_arena_guard_exit();
  return is_there;
}

/* ---- handing over ---- */

static bool reserve_slot(void) {
  if (__atomic_add_fetch(&event_queue.count, 1, __ATOMIC_RELAXED) <= WAITING_MAX) return true;
  __atomic_fetch_sub(&event_queue.count, 1, __ATOMIC_RELAXED);
  return false;
}

static void release_slot(void) { __atomic_fetch_sub(&event_queue.count, 1, __ATOMIC_RELAXED); }

static int refuse_event(int status, int loss) {
  prof_i_collector_count_loss(loss);
  return status;
}

/* The vendor retains the event, so it must be released later. */
static int retain_external_event(external_event *w, void *event) {
  const prof_backend *const table = &w->backend->table;
  const int result = table->own_keep(w->backend->self, w->stream, event, &w->kept);
  if (result == PROF_BACKEND_OK && w->kept) return PROF_OK;
  const char *const words = prof_i_registry_error_text(w->backend, result);
  return refuse_event(prof_i_fail(result == PROF_BACKEND_INVALID     ? PROF_E_INVALID
                                  : result == PROF_BACKEND_NO_MEMORY ? PROF_E_NO_MEMORY
                                                                     : PROF_E_UNSUPPORTED,
                                  "prof_device_event: %s", words),
                      PROF_LOSS_DEVICE_TIMES);
}

static void count_lost_event(int loss) { prof_i_thread_lose_outside(&prof_i_no_thread, loss, 1); }

static void release_external_event(const external_event *w) {
  w->backend->table.own_let_go(w->backend->self, w->kept);
  release_slot();
}

static bool pop_fresh_event(external_event *out) {
  prof_i_thread_lock(&event_queue.lock);
  const bool is_there = event_queue.fresh_count > 0;
  if (is_there) *out = event_queue.fresh[--event_queue.fresh_count];
  prof_i_thread_unlock(&event_queue.lock);
  return is_there;
}

/* Recording may have ended since, and the collector with it. Then these events would wait for the
   next recording. */
static void drop_late_events(void) {
  external_event w;
  while (!prof_i_session_is_recording() && pop_fresh_event(&w)) {
    count_lost_event(PROF_LOSS_DEVICE_LATE);
    release_external_event(&w);
  }
}

static void push_event(const external_event *w) {
  prof_i_thread_lock(&event_queue.lock);
  event_queue.fresh[event_queue.fresh_count++] = *w;
  prof_i_thread_unlock(&event_queue.lock);
  prof_i_collector_wake_for_records();
  drop_late_events();
}

/* The back end knows the stream's device better than the program. */
static uint32_t device_of_stream(const prof_i_backend *backend, prof_device device,
                                 uint64_t stream) {
  uint32_t index = 0, is_capturing = 0;
  const bool is_known =
      backend->table.stream_of &&
      backend->table.stream_of(backend->self, stream, &index, &is_capturing) == PROF_BACKEND_OK;
  return is_known ? index : (uint32_t)device.index;
}

static int accept_event(prof_device device, uint64_t stream, void *event, uint32_t kind,
                        const char *name) {
  prof_i_backend *const backend = prof_i_registry_open(device.type);
  char why[256];
  if (!backend) {
    prof_i_registry_reason(device.type, why, sizeof why);
    return prof_i_fail(PROF_E_UNSUPPORTED, "prof_device_event: devices of type %d: %s", device.type,
                       why);
  }
  if (!backend->table.own_keep || !backend->table.own_times || !backend->table.own_let_go)
    return prof_i_fail(PROF_E_UNSUPPORTED,
                       "prof_device_event: back end %s takes none of the program's own events%s",
                       backend->table.name,
                       backend->table.records_always
                           ? ": it records their work without this call, which may be left out"
                           : "");
  if (!prof_i_collector_ensure())
    return refuse_event(
        prof_i_fail(PROF_E_BUSY,
                    "prof_device_event: another thread is just making what would wait for it"),
        PROF_LOSS_DEVICE_TIMES);
  if (!reserve_slot())
    return refuse_event(
        prof_i_fail(PROF_E_TOO_LARGE, "prof_device_event: %d wait already", WAITING_MAX),
        PROF_LOSS_DEVICE_FULL);
  external_event w = {.backend = backend,
                      .stream = stream,
                      .ticks = prof_i_clock_ticks(),
                      .thread = prof_i_device_host.thread(),
                      .device = device_of_stream(backend, device, stream),
                      .kind = kind,
                      .name = name ? prof_i_name_intern(name, strlen(name)) : 0};
  const bool is_now = read_recording(&w.arena, &w.session);
  const int status = is_now ? retain_external_event(&w, event) : PROF_OK;
  /* just then */
  if (!is_now && prof_i_session_is_recording()) prof_i_collector_count_loss(PROF_LOSS_CLEARED);
  if (w.kept)
    push_event(&w);
  else
    release_slot();
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
  PROF_I_DISABLE_CANCEL;
  const int saved = errno;
  const int status = accept_event(device, stream, event, kind, name);
  errno = saved;
  return status;
}

/* ---- the collector's ---- */

static void take_fresh_events(void) {
  prof_i_thread_lock(&event_queue.lock);
  /* there is room: both together have at most WAITING_MAX */
  memcpy(event_queue.waiting + event_queue.waiting_count, event_queue.fresh,
         event_queue.fresh_count * sizeof *event_queue.fresh);
  event_queue.waiting_count += event_queue.fresh_count;
  event_queue.fresh_count = 0;
  prof_i_thread_unlock(&event_queue.lock);
}

static bool is_event_current(const external_event *w) {
  uint64_t arena, session;
  return read_recording(&arena, &session) && arena == w->arena && session == w->session;
}

static void emit_event(const external_event *w, uint64_t start_ns, uint64_t end_ns) {
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
  prof_i_records_begin(w->backend);
  prof_i_records_write(&whole, whole.record.size);
  prof_i_records_end();
}

/* True: it is done with. */
static bool poll_event(const external_event *w) {
  uint64_t start_ns = 0, end_ns = 0;
  const int result = w->backend->table.own_times(w->backend->self, w->kept, &start_ns, &end_ns);
  if (result == PROF_BACKEND_NOT_READY) return false;
  if (!is_event_current(w))
    count_lost_event(PROF_LOSS_DEVICE_LATE);
  else if (result != PROF_BACKEND_OK)
    count_lost_event(PROF_LOSS_DEVICE_TIMES);
  else
    emit_event(w, start_ns, end_ns);
  return true;
}

bool prof_i_external_events_pending(void) {
  return __atomic_load_n(&event_queue.count, __ATOMIC_RELAXED) != 0;
}

bool prof_i_external_events_round(void) {
  uint32_t left = 0;
  if (__atomic_load_n(&event_queue.count, __ATOMIC_RELAXED) == 0) return false;
  take_fresh_events();
  for (uint32_t i = 0; i < event_queue.waiting_count; i++) {
    if (poll_event(&event_queue.waiting[i]))
      release_external_event(&event_queue.waiting[i]);
    else
      event_queue.waiting[left++] = event_queue.waiting[i];
  }
  event_queue.waiting_count = left;
  return left > 0;
}

void prof_i_external_events_end(void) {
  take_fresh_events();
  for (uint32_t i = 0; i < event_queue.waiting_count; i++) {
    count_lost_event(PROF_LOSS_DEVICE_LATE);
    release_external_event(&event_queue.waiting[i]);
  }
  event_queue.waiting_count = 0;
}

void prof_i_external_events_forget(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  event_queue.lock = fresh;
  event_queue.fresh_count = event_queue.waiting_count = event_queue.count =
      0; /* they are the parent's */
}
