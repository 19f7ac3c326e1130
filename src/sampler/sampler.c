/* The sampler's life: see <prof/sampler.h>. One thread, all signals blocked, reads all meters at an
   interval that does not drift, and is the only one that writes what they say. Back ends are asked
   without a lock. */
#define _GNU_SOURCE
#include <errno.h>
#include <prof/profiler.h>
#include <prof/sampler.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/call.h"
#include "../base/log.h"
#include "../base/options.h"
#include "../base/port.h"
#include "../base/this_thread.h"
#include "../core/record/event.h"
#include "csv.h"
#include "host_meters.h"
#include "meters.h"
#include "sampler.h"

enum { INTERVAL_DEFAULT_NS = 100000000, INTERVAL_LEAST_NS = 1000000, STOP_MS = 100, START_S = 10 };
#define INTERVAL_MOST_NS UINT64_C(1000000000000000000) /* 32 years */

/* STARTING: its thread asks the back ends. FAILED: they have nothing, and whoever started it has
   not been told yet. CLOSING: nobody waits for its thread any more. */
enum { OFF, STARTING, FAILED, ON, CLOSING };

/* What a run has; the thread's own once it lives. */
typedef struct run {
  prof_i_meters meters;
  prof_i_sink csv;
  char *devices, *csv_path; /* copies; NULL: as in the options */
  uint32_t mode;
  bool is_live; /* each row is written at once */
  uint64_t interval_ns;
  prof_i_host_about host;
  bool says; /* nobody waits for how it begins: if it does not, stderr is told */
} run;

static struct {
  pthread_mutex_t lock; /* rank 2: who starts and stops. No back end is called under it */
  pthread_once_t once;
  pthread_t thread; /* written under the lock */
  uint64_t starts;  /* under the lock: which one it is of */
  uint32_t state;   /* release; waited for */
  uint32_t word;    /* raised to wake it */
  int start_status; /* before state is FAILED */
  char start_error[512];
  int csv_status; /* of the last run's file; before state is OFF */
  char csv_error[256];
  uint32_t meter_count, left_out_count, sources_at_exit;
  prof_i_host_about host;   /* at the last start */
  uint64_t samples, missed; /* relaxed */
} own = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static uint32_t state(void) { return __atomic_load_n(&own.state, __ATOMIC_ACQUIRE); }
static void set_state(uint32_t to) {
  __atomic_store_n(&own.state, to, __ATOMIC_RELEASE);
  prof_i_port_wake(&own.state);
}

/* Until its thread has asked the back ends, or so long. */
static void wait_for_start(uint64_t patience_ns) {
  const uint64_t until_ns = prof_i_port_monotonic_ns() + patience_ns;
  for (uint64_t now_ns; state() == STARTING && (now_ns = prof_i_port_monotonic_ns()) < until_ns;)
    prof_i_port_wait(&own.state, STARTING, until_ns - now_ns);
}

/* ---- the thread ---- */

/* A short program's, which PROF_SAMPLE began: it shall have its file. */
static void at_exit(void) {
  wait_for_start(STOP_MS * UINT64_C(1000000));
  prof_sampler_stop();
}

static void record(run *r) {
  for (uint32_t i = 0; i < r->meters.count; i++) {
    prof_i_meter *const meter = &r->meters.all[i];
    if (meter->is_known && prof_level() > 0)
      prof_i_counter_of(&meter->site, meter->name, meter->value, meter->device);
  }
}

static void sample(run *r) {
  prof_i_meters_read(&r->meters);
  record(r);
  if (r->csv_path) prof_i_csv_rows(&r->csv, &r->meters, r->mode, prof_i_port_realtime_ns());
  if (r->csv_path && r->is_live) prof_i_sink_flush(&r->csv);
  __atomic_fetch_add(&own.samples, 1, __ATOMIC_RELAXED);
}

/* Until the next one is due, which is not shifted by how long this one took; those that were due
   meanwhile are missed. */
static void wait_for(uint64_t *due_ns, uint64_t interval_ns) {
  uint64_t now_ns = prof_i_port_monotonic_ns();
  *due_ns += interval_ns;
  if (now_ns > *due_ns) {
    const uint64_t missed = (now_ns - *due_ns) / interval_ns + 1;
    __atomic_fetch_add(&own.missed, missed, __ATOMIC_RELAXED);
    *due_ns += missed * interval_ns;
  }
  while (state() == ON && (now_ns = prof_i_port_monotonic_ns()) < *due_ns)
    prof_i_port_wait(&own.word, __atomic_load_n(&own.word, __ATOMIC_ACQUIRE), *due_ns - now_ns);
}

static int fail_to_find(const run *r) {
  static const char *const wanted[] = {"meter", "meter of power", "meter of memory",
                                       "meter of utilisation", "meter of clocks"};
  const char *const what = wanted[r->mode], *const why = r->host.why_not,
                    *const mark = *why ? ": " : "";
  if (prof_i_meters_are_all(r->devices))
    return prof_i_fail(PROF_E_NOT_FOUND, "there is no %s here: no back end of devices has one%s%s",
                       what, *why ? "; of the host: " : ", nor the host", why);
  if (prof_i_meters_are_hosts(r->devices))
    return prof_i_fail(PROF_E_NOT_FOUND, "there is no %s of the host%s%s", what, mark, why);
  return prof_i_fail(PROF_E_NOT_FOUND,
                     "there is no %s of a device %.64s here: prof doctor lists the back ends", what,
                     r->devices);
}

/* Where it is live it has its heading when the start comes back. */
static int open_csv(run *r) {
  const int status = r->is_live ? prof_i_sink_open_live_file(&r->csv, r->csv_path)
                                : prof_i_sink_open_file(&r->csv, r->csv_path, false, false);
  if (status != PROF_OK) return status;
  prof_i_csv_head(&r->csv, &r->meters, r->mode);
  if (!r->is_live) return PROF_OK;
  prof_i_sink_flush(&r->csv);
  const int written = r->csv.status;
  if (written != PROF_OK) prof_i_sink_abandon(&r->csv);
  return written;
}

/* The file is opened last: nothing is left of it where there is nothing to read. */
static int begin(run *r) {
  prof_i_host_meters_begin();
  prof_i_meters_find(&r->meters, r->devices, r->mode);
  prof_i_host_meters_tell(&r->host);
  if (!r->meters.count) return fail_to_find(r);
  return r->csv_path ? open_csv(r) : PROF_OK;
}

/* Lock held. What is registered last runs first: when its back ends are open, so that a vendor's
   own handler comes after it. */
static void put_on(const run *r) {
  own.meter_count = r->meters.count;
  own.left_out_count = r->meters.left_out_count;
  own.host = r->host;
  own.csv_status = PROF_OK;
  own.csv_error[0] = '\0';
  if (r->meters.source_count > own.sources_at_exit) {
    own.sources_at_exit = r->meters.source_count;
    atexit(at_exit);
  }
}

static void fail(int status) {
  own.start_status = status;
  snprintf(own.start_error, sizeof own.start_error, "%s", prof_last_error());
}

/* Tells whoever waits for it how it went. False: it is not to run. */
static bool come_in(const run *r, int status) {
  prof_i_thread_lock(&own.lock);
  const bool is_wanted = state() == STARTING;
  if (is_wanted && status == PROF_OK) put_on(r);
  if (is_wanted && status != PROF_OK) fail(status);
  if (is_wanted) set_state(status == PROF_OK ? ON : FAILED);
  prof_i_thread_unlock(&own.lock);
  return is_wanted && status == PROF_OK;
}

static void finish(run *r) {
  own.csv_status = r->csv_path ? prof_i_sink_commit(&r->csv) : PROF_OK;
  snprintf(own.csv_error, sizeof own.csv_error, "%s",
           own.csv_status == PROF_OK ? "" : prof_last_error());
}

static void drop(run *r) {
  free(r->devices);
  free(r->csv_path);
  free(r);
}

static void sample_all_along(run *r) {
  for (uint64_t due_ns = prof_i_port_monotonic_ns(); state() == ON;
       wait_for(&due_ns, r->interval_ns))
    sample(r);
  finish(r);
}

static void *work(void *the_run) {
  run *const r = the_run;
  prof_i_port_thread_begin("prof-sampler");
  prof_thread_set_name("prof-sampler");
  const int status = begin(r);
  if (status != PROF_OK && r->says) prof_i_say("PROF_SAMPLE: %s; not sampling", prof_last_error());
  if (come_in(r, status))
    sample_all_along(r);
  else if (status == PROF_OK && r->csv_path)
    prof_i_sink_abandon(&r->csv);
  const bool is_joined = state() == FAILED && !r->says;
  if (state() == FAILED && r->says) pthread_detach(pthread_self());
  drop(r);
  if (!is_joined) set_state(OFF); /* from here on another may be there */
  return NULL;
}

/* ---- its life ---- */

static void forget(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  own.lock = fresh;
  own.state = OFF; /* its file is the parent's, and has no name: nothing is left of it here */
}

static void prepare(void) { pthread_atfork(NULL, NULL, forget); }

static int check(const prof_sampler_options *options) {
  if (options->interval_ns && options->interval_ns < INTERVAL_LEAST_NS)
    return prof_i_fail(PROF_E_INVALID, "options.interval_ns is %llu; at least %d",
                       (unsigned long long)options->interval_ns, INTERVAL_LEAST_NS);
  if (options->interval_ns > INTERVAL_MOST_NS)
    return prof_i_fail(PROF_E_INVALID, "options.interval_ns is %llu; at most %llu",
                       (unsigned long long)options->interval_ns,
                       (unsigned long long)INTERVAL_MOST_NS);
  if (options->mode > PROF_SAMPLE_CLOCK)
    return prof_i_fail(PROF_E_INVALID, "options.mode is %u; 0 to %d are known", options->mode,
                       PROF_SAMPLE_CLOCK);
  if (options->csv_is_live > 1)
    return prof_i_fail(PROF_E_INVALID, "options.csv_is_live is %u, not 0 or 1",
                       options->csv_is_live);
  if (!prof_i_meters_is_list(options->devices))
    return prof_i_fail(
        PROF_E_INVALID,
        "options.devices is '%.64s'; \"all\", \"host\", or numbers with commas between: \"0,1\"",
        options->devices);
  if (options->csv_path && !*options->csv_path)
    return prof_i_fail(PROF_E_INVALID, "options.csv_path is empty; NULL writes none");
  return PROF_OK;
}

static int copy(char **to, const char *from) {
  *to = from ? strdup(from) : NULL;
  return from && !*to ? prof_i_fail(PROF_E_NO_MEMORY, "no memory for the text '%.64s'", from)
                      : PROF_OK;
}

static int make_run(const prof_sampler_options *options, bool waits, run **run_out) {
  run *const r = calloc(1, sizeof *r);
  if (!r) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for meters (%zu bytes)", sizeof *r);
  r->mode = options->mode;
  r->interval_ns = options->interval_ns ? options->interval_ns : INTERVAL_DEFAULT_NS;
  r->is_live = options->csv_is_live == 1;
  r->says = !waits;
  int status = copy(&r->devices, options->devices);
  if (status == PROF_OK) status = copy(&r->csv_path, options->csv_path);
  if (status == PROF_OK)
    *run_out = r;
  else
    drop(r);
  return status;
}

/* Lock held. */
static int make_thread(run *r) {
  __atomic_store_n(&own.samples, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&own.missed, 0, __ATOMIC_RELAXED);
  const int error = prof_i_port_thread_create(&own.thread, 0, work, r);
  own.starts += error == 0;
  if (error == 0) return PROF_OK;
  drop(r);
  return prof_i_fail(PROF_E_NO_MEMORY, "no thread for the sampler: %s", strerror(error));
}

/* Whoever gets it from OFF to STARTING is alone with the meters. Lock held. */
static int begin_start(void) {
  switch (state()) {
    case ON:
      return prof_i_fail(PROF_E_RUNNING, "a sampler is running; prof_sampler_stop() it first");
    case FAILED:
    case STARTING:
      return prof_i_fail(PROF_E_BUSY,
                         "the sampler is just being started: by another thread, or by PROF_SAMPLE");
    case CLOSING:
      return prof_i_fail(PROF_E_BUSY, "a back end still has not answered the sampler before");
    default:
      set_state(STARTING);
      return PROF_OK;
  }
}

/* How its thread has begun. Lock held. number: of that start; it may have been stopped since, and
   another one begun. */
static int end_start(uint64_t number) {
  if (own.starts != number) return PROF_OK;
  if (state() == STARTING) {
    set_state(CLOSING);
    pthread_detach(own.thread); /* it ends by itself when it is answered */
    return prof_i_fail(PROF_E_BUSY,
                       "a back end has not answered for %d s; no sampler can start until it has",
                       START_S);
  }
  if (state() != FAILED) return PROF_OK;
  const int status = prof_i_fail(own.start_status, "%s", own.start_error);
  pthread_join(own.thread, NULL);
  set_state(OFF);
  return status;
}

static int start(const prof_sampler_options *options, bool waits) {
  run *r = NULL;
  prof_i_thread_lock(&own.lock);
  int status = begin_start();
  const bool is_mine = status == PROF_OK;
  if (is_mine) status = make_run(options, waits, &r);
  if (r) status = make_thread(r);
  if (is_mine && status != PROF_OK) set_state(OFF);
  if (is_mine && status == PROF_OK && !waits) atexit(at_exit);
  const uint64_t number = own.starts;
  prof_i_thread_unlock(&own.lock);
  if (status != PROF_OK || !waits) return status;
  wait_for_start(START_S * UINT64_C(1000000000));
  prof_i_thread_lock(&own.lock);
  status = end_start(number);
  prof_i_thread_unlock(&own.lock);
  return status;
}

static int start_by(const prof_sampler_options *given, bool waits) {
  const int saved = errno;
  prof_sampler_options options = {.size = sizeof options};
  int status =
      given ? prof_i_sized_copy(&options, sizeof options, given, "prof_sampler_options") : PROF_OK;
  if (status == PROF_OK) status = check(&options);
  if (status == PROF_OK) {
    PROF_I_HOLD_CANCEL;
    pthread_once(&own.once, prepare);
    status = start(&options, waits);
  }
  errno = saved;
  return status;
}

int prof_sampler_start(const prof_sampler_options *options) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  return start_by(options, true);
}
int prof_i_sampler_begin(const prof_sampler_options *options) { return start_by(options, false); }

static int stop(void) {
  if (state() == OFF || state() == FAILED)
    return prof_i_fail(PROF_E_NOT_RUNNING, "no sampler is running");
  if (state() == STARTING)
    return prof_i_fail(PROF_E_BUSY,
                       "the sampler is just being started: by another thread, or by PROF_SAMPLE");
  if (state() == CLOSING)
    return prof_i_fail(PROF_E_BUSY,
                       "a back end has not answered the sampler yet; its file comes when it does");
  __atomic_store_n(&own.state, CLOSING, __ATOMIC_SEQ_CST);
  __atomic_fetch_add(&own.word, 1, __ATOMIC_SEQ_CST);
  prof_i_port_wake(&own.word);
  if (!prof_i_port_join(own.thread, &own.state, CLOSING, STOP_MS * UINT64_C(1000000))) {
    pthread_detach(own.thread); /* it ends by itself, and until then there is no other */
    return prof_i_fail(PROF_E_BUSY,
                       "the sampler has not ended for %d ms: a back end has not answered, or its "
                       "file takes longer; that comes when it has",
                       STOP_MS);
  }
  return own.csv_status == PROF_OK ? PROF_OK : prof_i_fail(own.csv_status, "%s", own.csv_error);
}

int prof_sampler_stop(void) {
  PROF_I_HOLD_CANCEL;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  const int saved = errno;
  prof_i_thread_lock(&own.lock);
  const int status = stop();
  prof_i_thread_unlock(&own.lock);
  errno = saved;
  return status;
}

/* Nobody samples, and nobody begins to: the lock is held. */
static void look_at_host(void) {
  prof_i_host_meters_begin();
  prof_i_host_meters_tell(&own.host);
}

int prof_sampler_get(prof_sampler_state *state_out) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  if (!state_out) return prof_i_fail(PROF_E_INVALID, "prof_sampler_get: state_out is NULL");
  PROF_I_HOLD_CANCEL;
  prof_i_thread_lock(&own.lock);
  if (state() == OFF) look_at_host();
  prof_sampler_state now = {.is_running = state() == ON,
                            .meter_count = own.meter_count,
                            .sample_count = __atomic_load_n(&own.samples, __ATOMIC_RELAXED),
                            .missed_count = __atomic_load_n(&own.missed, __ATOMIC_RELAXED),
                            .left_out_count = own.left_out_count};
  memcpy(now.why_not, own.host.why_not, sizeof now.why_not);
  memcpy(now.host_meters, own.host.meters, sizeof now.host_meters);
  if (state() == OFF) { /* else its thread may just write it */
    now.csv_status = own.csv_status;
    memcpy(now.csv_error, own.csv_error, sizeof now.csv_error);
  }
  prof_i_thread_unlock(&own.lock);
  return prof_i_sized_give(state_out, &now, sizeof now, "prof_sampler_state");
}
