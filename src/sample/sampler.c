/* The sampler's life: see <prof/sampler.h>. One thread, all signals blocked, reads all meters at an interval that does not drift, and is the only one that writes what they say. Back ends are asked without a lock. */
#define _GNU_SOURCE
#include <errno.h>
#include <prof/profiler.h>
#include <prof/sampler.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../core/event.h"
#include "../core/log.h"
#include "../core/options.h"
#include "../core/port.h"
#include "csv.h"
#include "host_meters.h"
#include "meters.h"

enum { INTERVAL_DEFAULT_NS = 100000000, INTERVAL_LEAST_NS = 1000000, STOP_MS = 100 };
#define INTERVAL_MOST_NS UINT64_C(1000000000000000000) /* 32 years */
enum { OFF, STARTING, ON, CLOSING };

/* What a run has; the thread's own while it lives. */
typedef struct run {
  prof_i_meters meters;
  prof_i_sink csv;
  bool has_csv;
  uint32_t mode;
  uint64_t interval_ns;
  prof_i_host_about host;
} run;

static struct {
  pthread_mutex_t lock; /* rank 2: who starts and stops. No back end is called under it */
  pthread_once_t once;
  pthread_t thread;
  run *run;
  uint32_t state;      /* release */
  uint32_t word;       /* raised to wake it */
  int csv_status;      /* of the last run's file; before state is OFF */
  char csv_error[256];
  uint32_t meter_count, left_out_count, sources_at_exit;
  prof_i_host_about host; /* at the last start */
  uint64_t samples, missed; /* relaxed */
} own = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static uint32_t state(void) { return __atomic_load_n(&own.state, __ATOMIC_ACQUIRE); }

/* ---- the thread ---- */

static void record(run *r) {
  for (uint32_t i = 0; i < r->meters.count; i++) {
    prof_i_meter *const meter = &r->meters.all[i];
    if (meter->is_known && prof_level() > 0) prof_i_counter_of(&meter->site, meter->name, meter->value, meter->device);
  }
}

static void sample(run *r) {
  prof_i_meters_read(&r->meters);
  record(r);
  if (r->has_csv) prof_i_csv_rows(&r->csv, &r->meters, r->mode, prof_i_port_realtime_ns());
  __atomic_fetch_add(&own.samples, 1, __ATOMIC_RELAXED);
}

/* Until the next one is due, which is not shifted by how long this one took; those that were due meanwhile are missed. */
static void wait_for(uint64_t *due_ns, uint64_t interval_ns) {
  uint64_t now_ns = prof_i_port_monotonic_ns();
  *due_ns += interval_ns;
  if (now_ns > *due_ns) {
    const uint64_t missed = (now_ns - *due_ns) / interval_ns + 1;
    __atomic_fetch_add(&own.missed, missed, __ATOMIC_RELAXED);
    *due_ns += missed * interval_ns;
  }
  while (state() == ON && (now_ns = prof_i_port_monotonic_ns()) < *due_ns) prof_i_port_wait(&own.word, __atomic_load_n(&own.word, __ATOMIC_ACQUIRE), *due_ns - now_ns);
}

static void finish(run *r) {
  own.csv_status = r->has_csv ? prof_i_sink_commit(&r->csv) : PROF_OK;
  snprintf(own.csv_error, sizeof own.csv_error, "%s", own.csv_status == PROF_OK ? "" : prof_last_error());
  free(r);
}

static void *work(void *the_run) {
  run *const r = the_run;
  pthread_setname_np(pthread_self(), "prof-sampler");
  prof_thread_set_name("prof-sampler");
  for (uint64_t due_ns = prof_i_port_monotonic_ns(); state() == ON; wait_for(&due_ns, r->interval_ns)) sample(r);
  finish(r);
  __atomic_store_n(&own.state, OFF, __ATOMIC_RELEASE); /* from here on another may be there */
  return NULL;
}

/* ---- its life ---- */

static void forget(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  own.lock = fresh;
  own.state = OFF; /* its file is the parent's, and has no name: nothing is left of it here */
}

static void at_exit(void) { prof_sampler_stop(); }

static void prepare(void) { pthread_atfork(NULL, NULL, forget); }

/* What is registered last runs first: when its back ends are open, so that a vendor's own handler comes after it. */
static void see_exit(const run *r) {
  if (r->meters.source_count <= own.sources_at_exit) return;
  own.sources_at_exit = r->meters.source_count;
  atexit(at_exit);
}

static int check(const prof_sampler_options *options) {
  if (options->interval_ns && options->interval_ns < INTERVAL_LEAST_NS)
    return prof_i_fail(PROF_E_INVALID, "options.interval_ns is %llu; at least %d", (unsigned long long)options->interval_ns, INTERVAL_LEAST_NS);
  if (options->interval_ns > INTERVAL_MOST_NS)
    return prof_i_fail(PROF_E_INVALID, "options.interval_ns is %llu; at most %llu", (unsigned long long)options->interval_ns, (unsigned long long)INTERVAL_MOST_NS);
  if (options->mode > PROF_SAMPLE_CLOCK) return prof_i_fail(PROF_E_INVALID, "options.mode is %u; 0 to %d are known", options->mode, PROF_SAMPLE_CLOCK);
  if (options->reserved) return prof_i_fail(PROF_E_INVALID, "options.reserved is %u, not 0", options->reserved);
  if (!prof_i_meters_is_list(options->devices)) return prof_i_fail(PROF_E_INVALID, "options.devices is '%.64s'; \"all\", \"host\", or numbers with commas between: \"0,1\"", options->devices);
  if (options->csv_path && !*options->csv_path) return prof_i_fail(PROF_E_INVALID, "options.csv_path is empty; NULL writes none");
  return PROF_OK;
}

static int fail_to_find(const prof_sampler_options *options, const char *why) {
  static const char *const wanted[] = {"meter", "meter of power", "meter of memory", "meter of utilisation", "meter of clocks"};
  return prof_i_fail(PROF_E_NOT_FOUND, "there is no %s of devices %.64s here: no back end has any%s%s", wanted[options->mode], options->devices ? options->devices : "all", *why ? "; " : "", why);
}

/* The file is opened last: nothing is left of it where there is nothing to read. */
static int make_run(const prof_sampler_options *options, run **run_out) {
  run *const r = calloc(1, sizeof *r);
  if (!r) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for meters (%zu bytes)", sizeof *r);
  r->mode = options->mode;
  r->interval_ns = options->interval_ns ? options->interval_ns : INTERVAL_DEFAULT_NS;
  r->has_csv = options->csv_path != NULL;
  prof_i_host_meters_begin();
  prof_i_meters_find(&r->meters, options->devices, options->mode);
  prof_i_host_meters_tell(&r->host);
  int status = r->meters.count ? PROF_OK : fail_to_find(options, r->host.why_not);
  if (status == PROF_OK && r->has_csv) status = prof_i_sink_open_file(&r->csv, options->csv_path, false, false);
  if (status != PROF_OK) {
    free(r);
    return status;
  }
  if (r->has_csv) prof_i_csv_head(&r->csv, &r->meters, r->mode);
  *run_out = r;
  return PROF_OK;
}

static int make_thread(run *r) {
  sigset_t all, before;
  __atomic_store_n(&own.samples, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&own.missed, 0, __ATOMIC_RELAXED);
  own.meter_count = r->meters.count;
  own.left_out_count = r->meters.left_out_count;
  own.host = r->host;
  see_exit(r);
  own.csv_status = PROF_OK;
  own.csv_error[0] = '\0';
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  __atomic_store_n(&own.state, ON, __ATOMIC_RELEASE);
  const int error = pthread_create(&own.thread, NULL, work, r);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error == 0) return PROF_OK;
  __atomic_store_n(&own.state, OFF, __ATOMIC_RELEASE);
  if (r->has_csv) prof_i_sink_abandon(&r->csv);
  free(r);
  return prof_i_fail(PROF_E_NO_MEMORY, "no thread for the sampler: %s", strerror(error));
}

/* Whoever gets it from OFF to STARTING is alone with the meters. Lock held. */
static int begin_start(void) {
  switch (state()) {
    case ON: return prof_i_fail(PROF_E_RUNNING, "a sampler is running; prof_sampler_stop() it first");
    case STARTING: return prof_i_fail(PROF_E_BUSY, "another thread is just starting the sampler");
    case CLOSING: return prof_i_fail(PROF_E_BUSY, "a back end has not answered the sampler that was stopped");
    default: __atomic_store_n(&own.state, STARTING, __ATOMIC_RELEASE); return PROF_OK;
  }
}

static int start(const prof_sampler_options *options) {
  run *r = NULL;
  pthread_mutex_lock(&own.lock);
  int status = begin_start();
  pthread_mutex_unlock(&own.lock);
  if (status != PROF_OK) return status;
  status = make_run(options, &r);
  pthread_mutex_lock(&own.lock);
  if (r) status = make_thread(r);
  else __atomic_store_n(&own.state, OFF, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&own.lock);
  return status;
}

int prof_sampler_start(const prof_sampler_options *given) {
  const int saved = errno;
  prof_sampler_options options = {.size = sizeof options};
  int status = given ? prof_i_sized_copy(&options, sizeof options, given, "prof_sampler_options") : PROF_OK;
  if (status == PROF_OK) status = check(&options);
  if (status == PROF_OK) {
    PROF_I_HOLD_CANCEL;
    pthread_once(&own.once, prepare);
    status = start(&options);
  }
  errno = saved;
  return status;
}

static int stop(void) {
  struct timespec until;
  if (state() == OFF) return prof_i_fail(PROF_E_NOT_RUNNING, "no sampler is running");
  if (state() == STARTING) return prof_i_fail(PROF_E_BUSY, "another thread is just starting the sampler");
  if (state() == CLOSING) return prof_i_fail(PROF_E_BUSY, "a back end has not answered the sampler yet; its file comes when it does");
  __atomic_store_n(&own.state, CLOSING, __ATOMIC_SEQ_CST);
  __atomic_fetch_add(&own.word, 1, __ATOMIC_SEQ_CST);
  prof_i_port_wake(&own.word);
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += STOP_MS * 1000000;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  if (pthread_timedjoin_np(own.thread, NULL, &until) != 0) {
    pthread_detach(own.thread); /* it ends by itself, and until then there is no other */
    return prof_i_fail(PROF_E_BUSY, "the sampler has not ended for %d ms: a back end has not answered, or its file takes longer; that comes when it has", STOP_MS);
  }
  return own.csv_status == PROF_OK ? PROF_OK : prof_i_fail(own.csv_status, "%s", own.csv_error);
}

int prof_sampler_stop(void) {
  PROF_I_HOLD_CANCEL;
  const int saved = errno;
  pthread_mutex_lock(&own.lock);
  const int status = stop();
  pthread_mutex_unlock(&own.lock);
  errno = saved;
  return status;
}

/* Nobody samples, and nobody begins to: the lock is held. */
static void look_at_host(void) {
  prof_i_host_meters_begin();
  prof_i_host_meters_tell(&own.host);
}

int prof_sampler_get(prof_sampler_state *state_out) {
  if (!state_out) return prof_i_fail(PROF_E_INVALID, "prof_sampler_get: state_out is NULL");
  PROF_I_HOLD_CANCEL;
  pthread_mutex_lock(&own.lock);
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
  pthread_mutex_unlock(&own.lock);
  return prof_i_sized_give(state_out, &now, sizeof now, "prof_sampler_state");
}
