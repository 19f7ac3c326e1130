/* Timers of the operator profiler: the host's, and those of streams. See <prof/op.h>. */
#define _GNU_SOURCE
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../base/error.h"
#include "../base/options.h"
#include "../base/port.h"
#include "../base/process.h"
#include "../device/registry.h"

/* ---- the host's timer ---- */

enum { CHAIN_STEPS = 16384, CHAIN_TRIES = 4, TIMER_TRIES = 64 };

static int host_begin(void *user) {
  ((prof_i_host_time *)user)->begun_ns = prof_i_port_monotonic_ns();
  return 0;
}

static int host_end(void *user, double *us_out) {
  *us_out = (double)prof_i_ns_since(((prof_i_host_time *)user)->begun_ns) / 1e3;
  return 0;
}

const prof_op_timer prof_i_host_timer = {
    sizeof prof_i_host_timer, "CLOCK_MONOTONIC", NULL, host_begin, host_end, NULL, NULL};

/* A coarse clock reads 0 nearly always, and a step now and then. */
int prof_i_timer_error(const prof_op_timer *timer, double *error_us_out) {
  double step = 0;
  for (int i = 0; i < TIMER_TRIES; i++) {
    double us = 0;
    const int begun = timer->begin(timer->user),
              ended = begun ? begun : timer->end(timer->user, &us);
    if (ended) return ended;
    if (!prof_i_is_time(us)) {
      *error_us_out = us;
      return 0;
    }
    if (us > 0 && (!(step > 0) || us < step)) step = us;
  }
  *error_us_out = step;
  return 0;
}

double prof_i_chain_us(void) {
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < CHAIN_TRIES; i++) {
    const uint64_t begun = prof_i_port_monotonic_ns();
    uint64_t sum = begun;
    for (int j = 0; j < CHAIN_STEPS; j++) {
      sum += 3;
      __asm__ volatile("" : "+r"(sum));
    }
    const uint64_t passed = prof_i_ns_since(begun);
    if (passed < best) best = passed;
  }
  return (double)best / 1e3;
}

/* ---- timers of streams ---- */

/* The time between two events by the device's own clock. It is not converted to the host's. Vendors
   are called without a lock, by the measuring thread, which waits for a device only here. */

enum {
  OPEN_MS = 2000,
  NAP_MIN_NS = 10000,
  NAP_MAX_NS = 1000000,
  NAP_SHARE = 16 /* of what has been waited for already */
};
static const uint64_t patience_ns = UINT64_C(60000000000);

typedef struct stream_timer {
  prof_op_timer base; /* the first: what the program holds points here */
  prof_op_stream options;
  prof_i_backend *backend;
  void *events[2];
  /* of them, the one recorded last; NULL: it has been seen past, and so has the other one */
  void *last;
  struct stream_timer *next; /* of those that are kept */
  char name[64], why[256];
} stream_timer;

static struct {
  /* destroyed before the device had passed their events, which it may still write to. Any thread
     pushes */
  stream_timer *kept;
} kept_timers;

static void sleep_for_ns(uint64_t ns) {
  const struct timespec time = {0, (long)ns};
  nanosleep(&time, NULL);
}

/* ---- a sample ---- */

static int set_reason(stream_timer *t, int code, const char *what, const char *why) {
  snprintf(t->why, sizeof t->why, "stream 0x%llx: %s: %s", (unsigned long long)t->options.stream,
           what, why);
  return code;
}

static int set_refused_reason(stream_timer *t, int result, const char *what) {
  return set_reason(t, result, what, prof_i_registry_error_text(t->backend, result));
}

static int check_backend_open(stream_timer *t) {
  if (prof_i_registry_is_open(t->backend)) return 0;
  return set_reason(t, PROF_BACKEND_FORKED, "no event can be recorded",
                    prof_backend_result_text(PROF_BACKEND_FORKED));
}

static int record_timer_event(stream_timer *t, int which) {
  const int result =
      t->backend->table.event_record(t->backend->self, t->options.stream, &t->events[which]);
  if (result) return set_refused_reason(t, result, "no event can be recorded");
  t->last = t->events[which];
  return 0;
}

static int query_last_event(const stream_timer *t) {
  return t->backend->table.event_query(t->backend->self, t->last);
}

static uint64_t poll_interval_ns(uint64_t waited_ns) {
  const uint64_t ns = waited_ns / NAP_SHARE;
  return ns < NAP_MIN_NS ? NAP_MIN_NS : ns > NAP_MAX_NS ? NAP_MAX_NS : ns;
}

static int call_stream_callback(stream_timer *t, int (*callback)(void *user), const char *name) {
  char text[32];
  const int code = callback ? callback(t->options.user) : 0;
  if (!code) return 0;
  snprintf(text, sizeof text, "returned %d", code);
  return set_reason(t, code, name, text);
}

static int flush_stream(stream_timer *t) {
  return call_stream_callback(t, t->options.flush, "flush");
}

/* Until the device has passed all that was recorded. */
static int await_last_event(stream_timer *t) {
  const uint64_t begun = prof_i_port_monotonic_ns();
  char text[64];
  const int code = flush_stream(t);
  if (code) return code;
  for (int result; (result = query_last_event(t)) != PROF_BACKEND_OK;) {
    const uint64_t waited = prof_i_ns_since(begun);
    if (result != PROF_BACKEND_NOT_READY)
      return set_refused_reason(t, result, "its event cannot be asked");
    if (waited >= t->options.patience_ns) {
      snprintf(text, sizeof text, "not passed after %.3f s", (double)waited / 1e9);
      return set_reason(t, result, "an event", text);
    }
    sleep_for_ns(poll_interval_ns(waited));
  }
  t->last = NULL;
  return 0;
}

/* An event that is not past must not be recorded again. */
static int stream_timer_begin(void *user) {
  stream_timer *const t = user;
  int code = check_backend_open(t);
  if (!code && t->last) code = await_last_event(t);
  return code ? code : record_timer_event(t, 0);
}

/* On the stream, ahead of the sample's first event. */
static int stream_timer_cold(void *user) {
  stream_timer *const t = user;
  const int code = check_backend_open(t);
  return code ? code : call_stream_callback(t, t->options.cold, "cold");
}

static int read_elapsed_ns(stream_timer *t, int64_t *ns_out) {
  const prof_backend *const table = &t->backend->table;
  uint64_t ns[2] = {0, 0};
  int result = PROF_BACKEND_OK;
  if (!table->event_time) {
    result = table->event_elapsed(t->backend->self, t->events[0], t->events[1], ns_out);
    return result ? set_refused_reason(t, result, "the time between its events") : 0;
  }
  for (int i = 0; i < 2 && !result; i++)
    result = table->event_time(t->backend->self, t->events[i], &ns[i]);
  if (result) return set_refused_reason(t, result, "its event's time");
  if (ns[0] == 0 || ns[1] == 0)
    return set_reason(t, PROF_BACKEND_VENDOR, "its event's time", "0, which stands for none");
  *ns_out = (int64_t)(ns[1] - ns[0]);
  return 0;
}

static int stream_timer_end(void *user, double *us_out) {
  stream_timer *const t = user;
  int64_t ns = 0;
  int code = check_backend_open(t);
  if (!code) code = record_timer_event(t, 1);
  if (!code) code = await_last_event(t);
  if (!code) code = read_elapsed_ns(t, &ns);
  *us_out = (double)ns / 1e3;
  return code;
}

static const char *stream_timer_reason(void *user) { return ((stream_timer *)user)->why; }

/* ---- its life ---- */

static int fail_no_backend(prof_device device) {
  char reason[256];
  const int32_t result = prof_i_registry_reason(device.type, reason, sizeof reason);
  const char *const advice = prof_backend_result_advice(result);
  return prof_i_fail(PROF_E_UNSUPPORTED, "device %d:%d: %s%s%s", device.type, device.index, reason,
                     *advice ? "; " : "", advice);
}

static int open_timer_backend(prof_device device, prof_i_backend **end_out) {
  const uint64_t begun = prof_i_port_monotonic_ns();
  while (!(*end_out = prof_i_registry_open(device.type))) {
    if (!prof_i_registry_is_opening(device.type)) return fail_no_backend(device);
    if (prof_i_ns_since(begun) >= OPEN_MS * UINT64_C(1000000))
      return prof_i_fail(PROF_E_BUSY,
                         "device %d:%d: another thread has been opening its back end for %d ms",
                         device.type, device.index, OPEN_MS);
    sleep_for_ns(NAP_MAX_NS);
  }
  return PROF_OK;
}

static int fail_timer_stream(const stream_timer *t, int result) {
  return prof_i_fail(result == PROF_BACKEND_NO_MEMORY ? PROF_E_NO_MEMORY : PROF_E_OPERATOR,
                     "%s: stream 0x%llx: %s", t->backend->table.name,
                     (unsigned long long)t->options.stream,
                     prof_i_registry_error_text(t->backend, result));
}

/* Finds the stream's device, if the back end knows it. */
static int check_timer_stream(const stream_timer *t) {
  uint32_t index = 0, is_capturing = 0;
  if (!t->backend->table.stream_of) return PROF_OK;
  const int result =
      t->backend->table.stream_of(t->backend->self, t->options.stream, &index, &is_capturing);
  if (result == PROF_BACKEND_INVALID)
    return prof_i_fail(PROF_E_INVALID, "%s: stream 0x%llx: %s", t->backend->table.name,
                       (unsigned long long)t->options.stream,
                       prof_i_registry_error_text(t->backend, result));
  if (result) return fail_timer_stream(t, result);
  if (index != (uint32_t)t->options.device.index)
    return prof_i_fail(PROF_E_INVALID, "stream 0x%llx is device %d:%u's, not %d:%d's",
                       (unsigned long long)t->options.stream, t->options.device.type, index,
                       t->options.device.type, t->options.device.index);
  if (is_capturing)
    return prof_i_fail(PROF_E_BUSY, "stream 0x%llx: %s", (unsigned long long)t->options.stream,
                       prof_backend_result_text(PROF_BACKEND_CAPTURING));
  return PROF_OK;
}

static void destroy_timer_events(const stream_timer *t) {
  for (int i = 0; i < 2; i++)
    if (t->events[i]) t->backend->table.event_destroy(t->backend->self, t->events[i]);
}

static int make_timer_events(stream_timer *t) {
  for (int i = 0; i < 2; i++) {
    const int result =
        t->backend->table.event_create(t->backend->self, t->options.stream, &t->events[i]);
    if (!result) continue;
    t->events[i] = NULL;
    const int status = fail_timer_stream(t, result);
    destroy_timer_events(t);
    return status;
  }
  return PROF_OK;
}

/* Some streams take no events, or give them no times: that is known when one is put there. */
static int try_timer_stream(stream_timer *t) {
  const int result =
      t->backend->table.event_record(t->backend->self, t->options.stream, &t->events[0]);
  if (!result) {
    t->last = t->events[0];
    return PROF_OK;
  }
  const int status = fail_timer_stream(t, result);
  destroy_timer_events(t);
  return status;
}

static void name_timer(stream_timer *t) {
  snprintf(t->name, sizeof t->name, "%s events of %d:%d", t->backend->table.name,
           t->options.device.type, t->options.device.index);
  t->base = (prof_op_timer){sizeof t->base,
                            t->name,
                            t,
                            stream_timer_begin,
                            stream_timer_end,
                            stream_timer_reason,
                            t->options.cold ? stream_timer_cold : NULL};
}

bool prof_i_stream_timer_is(const prof_op_timer *timer) {
  return timer->begin == stream_timer_begin;
}

int prof_op_timer_create(const prof_op_stream *stream, prof_op_timer **timer_out) {
  PROF_I_DISABLE_CANCEL;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  prof_op_stream options = {.size = sizeof options};
  prof_i_backend *backend = NULL;
  if (!timer_out) return prof_i_fail(PROF_E_INVALID, "prof_op_timer_create: timer_out is NULL");
  *timer_out = NULL;
  if (!stream) return prof_i_fail(PROF_E_INVALID, "prof_op_timer_create: stream is NULL");
  int status = prof_i_sized_copy(&options, sizeof options, stream, "prof_op_stream");
  if (!status) status = open_timer_backend(options.device, &backend);
  if (status) return status;
  if (!options.patience_ns) options.patience_ns = patience_ns;
  stream_timer *const t = calloc(1, sizeof *t);
  if (!t) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a timer");
  t->options = options;
  t->backend = backend;
  status = check_timer_stream(t);
  if (!status) status = make_timer_events(t);
  if (!status) status = try_timer_stream(t);
  if (status) {
    free(t);
    return status;
  }
  name_timer(t);
  *timer_out = &t->base;
  return PROF_OK;
}

static void keep_timer(stream_timer *t) { PROF_I_PUSH(&kept_timers.kept, t); }

void prof_op_timer_destroy(prof_op_timer *timer) {
  if (!timer) return;
  stream_timer *const t = timer->user;
  if (prof_i_registry_is_open(t->backend)) {
    if (t->last && query_last_event(t) == PROF_BACKEND_NOT_READY) {
      keep_timer(t);
      return;
    }
    destroy_timer_events(t);
  }
  free(t);
}
