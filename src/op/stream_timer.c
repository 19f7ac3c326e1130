/* The operator profiler's timer of a stream: an event before, an event behind, and what the
   device's own clock says lies between. Both are of one clock, so nothing is brought over to the
   host's. Vendors are called without a lock, by the thread that measures; that one waits here, and
   only here, for a device. See op.h. */
#define _GNU_SOURCE
#include "stream_timer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../base/call.h"
#include "../base/log.h"
#include "../base/options.h"
#include "../base/port.h"
#include "../device/registry.h"

enum {
  OPEN_MS = 2000,
  NAP_MIN_NS = 10000,
  NAP_MAX_NS = 1000000,
  NAP_SHARE = 16 /* of what has been waited for already */
};
static const uint64_t patience_ns = UINT64_C(60000000000);

typedef struct stream_timer {
  prof_op_timer face; /* the first: what the program holds points here */
  prof_op_stream of;
  prof_i_back_end *end;
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
} own;

static void nap(uint64_t ns) {
  const struct timespec time = {0, (long)ns};
  nanosleep(&time, NULL);
}

/* ---- a sample ---- */

static int say(stream_timer *t, int code, const char *what, const char *why) {
  snprintf(t->why, sizeof t->why, "stream 0x%llx: %s: %s", (unsigned long long)t->of.stream, what,
           why);
  return code;
}

static int say_refused(stream_timer *t, int result, const char *what) {
  return say(t, result, what, prof_i_registry_words(t->end, result));
}

static int check_open(stream_timer *t) {
  if (prof_i_registry_is_open(t->end)) return 0;
  return say(t, PROF_BACKEND_FORKED, "no event can be recorded",
             prof_backend_result_text(PROF_BACKEND_FORKED));
}

static int record(stream_timer *t, int which) {
  const int result = t->end->table.event_record(t->end->self, t->of.stream, &t->events[which]);
  if (result) return say_refused(t, result, "no event can be recorded");
  t->last = t->events[which];
  return 0;
}

static int ask(const stream_timer *t) { return t->end->table.event_query(t->end->self, t->last); }

static uint64_t nap_after(uint64_t waited_ns) {
  const uint64_t ns = waited_ns / NAP_SHARE;
  return ns < NAP_MIN_NS ? NAP_MIN_NS : ns > NAP_MAX_NS ? NAP_MAX_NS : ns;
}

static int call(stream_timer *t, int (*callback)(void *user), const char *name) {
  char text[32];
  const int code = callback ? callback(t->of.user) : 0;
  if (!code) return 0;
  snprintf(text, sizeof text, "returned %d", code);
  return say(t, code, name, text);
}

static int flush(stream_timer *t) { return call(t, t->of.flush, "flush"); }

/* Until the device has passed all that was recorded. */
static int await(stream_timer *t) {
  const uint64_t begun = prof_i_port_monotonic_ns();
  char text[64];
  const int code = flush(t);
  if (code) return code;
  for (int result; (result = ask(t)) != PROF_BACKEND_OK;) {
    const uint64_t waited = prof_i_ns_since(begun);
    if (result != PROF_BACKEND_NOT_READY)
      return say_refused(t, result, "its event cannot be asked");
    if (waited >= t->of.patience_ns) {
      snprintf(text, sizeof text, "not passed after %.3f s", (double)waited / 1e9);
      return say(t, result, "an event", text);
    }
    nap(nap_after(waited));
  }
  t->last = NULL;
  return 0;
}

/* An event that is not past must not be recorded again. */
static int begin(void *user) {
  stream_timer *const t = user;
  int code = check_open(t);
  if (!code && t->last) code = await(t);
  return code ? code : record(t, 0);
}

/* On the stream, ahead of the sample's first event. */
static int cold(void *user) {
  stream_timer *const t = user;
  const int code = check_open(t);
  return code ? code : call(t, t->of.cold, "cold");
}

static int read_ns(stream_timer *t, int64_t *ns_out) {
  const prof_backend *const table = &t->end->table;
  uint64_t ns[2] = {0, 0};
  int result = PROF_BACKEND_OK;
  if (!table->event_time) {
    result = table->event_elapsed(t->end->self, t->events[0], t->events[1], ns_out);
    return result ? say_refused(t, result, "the time between its events") : 0;
  }
  for (int i = 0; i < 2 && !result; i++)
    result = table->event_time(t->end->self, t->events[i], &ns[i]);
  if (result) return say_refused(t, result, "its event's time");
  if (ns[0] == 0 || ns[1] == 0)
    return say(t, PROF_BACKEND_VENDOR, "its event's time", "0, which stands for none");
  *ns_out = (int64_t)(ns[1] - ns[0]);
  return 0;
}

static int end(void *user, double *us_out) {
  stream_timer *const t = user;
  int64_t ns = 0;
  int code = check_open(t);
  if (!code) code = record(t, 1);
  if (!code) code = await(t);
  if (!code) code = read_ns(t, &ns);
  *us_out = (double)ns / 1e3;
  return code;
}

static const char *why(void *user) { return ((stream_timer *)user)->why; }

/* ---- its life ---- */

static int no_back_end(prof_device device) {
  char reason[256];
  const int32_t result = prof_i_registry_why(device.type, reason, sizeof reason);
  const char *const advice = prof_backend_result_advice(result);
  return prof_i_fail(PROF_E_UNSUPPORTED, "device %d:%d: %s%s%s", device.type, device.index, reason,
                     *advice ? "; " : "", advice);
}

static int open_back_end(prof_device device, prof_i_back_end **end_out) {
  const uint64_t begun = prof_i_port_monotonic_ns();
  while (!(*end_out = prof_i_registry_open(device.type))) {
    if (!prof_i_registry_is_at_it(device.type)) return no_back_end(device);
    if (prof_i_ns_since(begun) >= OPEN_MS * UINT64_C(1000000))
      return prof_i_fail(PROF_E_BUSY,
                         "device %d:%d: another thread has been opening its back end for %d ms",
                         device.type, device.index, OPEN_MS);
    nap(NAP_MAX_NS);
  }
  return PROF_OK;
}

static int refuse(const stream_timer *t, int result) {
  return prof_i_fail(result == PROF_BACKEND_NO_MEMORY ? PROF_E_NO_MEMORY : PROF_E_OPERATOR,
                     "%s: stream 0x%llx: %s", t->end->table.name, (unsigned long long)t->of.stream,
                     prof_i_registry_words(t->end, result));
}

/* Whose it is, where the back end can tell. */
static int check_stream(const stream_timer *t) {
  uint32_t index = 0, is_capturing = 0;
  if (!t->end->table.stream_of) return PROF_OK;
  const int result = t->end->table.stream_of(t->end->self, t->of.stream, &index, &is_capturing);
  if (result == PROF_BACKEND_INVALID)
    return prof_i_fail(PROF_E_INVALID, "%s: stream 0x%llx: %s", t->end->table.name,
                       (unsigned long long)t->of.stream, prof_i_registry_words(t->end, result));
  if (result) return refuse(t, result);
  if (index != (uint32_t)t->of.device.index)
    return prof_i_fail(PROF_E_INVALID, "stream 0x%llx is device %d:%u's, not %d:%d's",
                       (unsigned long long)t->of.stream, t->of.device.type, index,
                       t->of.device.type, t->of.device.index);
  if (is_capturing)
    return prof_i_fail(PROF_E_BUSY, "stream 0x%llx: %s", (unsigned long long)t->of.stream,
                       prof_backend_result_text(PROF_BACKEND_CAPTURING));
  return PROF_OK;
}

static void destroy_events(const stream_timer *t) {
  for (int i = 0; i < 2; i++)
    if (t->events[i]) t->end->table.event_destroy(t->end->self, t->events[i]);
}

static int make_events(stream_timer *t) {
  for (int i = 0; i < 2; i++) {
    const int result = t->end->table.event_create(t->end->self, t->of.stream, &t->events[i]);
    if (!result) continue;
    t->events[i] = NULL;
    const int status = refuse(t, result);
    destroy_events(t);
    return status;
  }
  return PROF_OK;
}

/* Some streams take no events, or give them no times: that is known when one is put there. */
static int try_stream(stream_timer *t) {
  const int result = t->end->table.event_record(t->end->self, t->of.stream, &t->events[0]);
  if (!result) {
    t->last = t->events[0];
    return PROF_OK;
  }
  const int status = refuse(t, result);
  destroy_events(t);
  return status;
}

static void name_it(stream_timer *t) {
  snprintf(t->name, sizeof t->name, "%s events of %d:%d", t->end->table.name, t->of.device.type,
           t->of.device.index);
  t->face = (prof_op_timer){sizeof t->face, t->name, t, begin, end, why, t->of.cold ? cold : NULL};
}

bool prof_i_stream_timer_is(const prof_op_timer *timer) { return timer->begin == begin; }

int prof_op_timer_create(const prof_op_stream *stream, prof_op_timer **timer_out) {
  PROF_I_HOLD_CANCEL;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  prof_op_stream of = {.size = sizeof of};
  prof_i_back_end *back_end = NULL;
  if (!timer_out) return prof_i_fail(PROF_E_INVALID, "prof_op_timer_create: timer_out is NULL");
  *timer_out = NULL;
  if (!stream) return prof_i_fail(PROF_E_INVALID, "prof_op_timer_create: stream is NULL");
  int status = prof_i_sized_copy(&of, sizeof of, stream, "prof_op_stream");
  if (!status) status = open_back_end(of.device, &back_end);
  if (status) return status;
  if (!of.patience_ns) of.patience_ns = patience_ns;
  stream_timer *const t = calloc(1, sizeof *t);
  if (!t) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a timer");
  t->of = of;
  t->end = back_end;
  status = check_stream(t);
  if (!status) status = make_events(t);
  if (!status) status = try_stream(t);
  if (status) {
    free(t);
    return status;
  }
  name_it(t);
  *timer_out = &t->face;
  return PROF_OK;
}

static void keep(stream_timer *t) {
  t->next = __atomic_load_n(&own.kept, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&own.kept, &t->next, t, true, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED)) {
  }
}

void prof_op_timer_destroy(prof_op_timer *timer) {
  if (!timer) return;
  stream_timer *const t = timer->user;
  if (prof_i_registry_is_open(t->end)) {
    if (t->last && ask(t) == PROF_BACKEND_NOT_READY) {
      keep(t);
      return;
    }
    destroy_events(t);
  }
  free(t);
}
