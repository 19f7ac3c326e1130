/* The sampler's life: see <prof/sampler.h>. One thread, all signals blocked, reads all meters at an
   interval that does not drift, and is the only one that writes them. No lock is held while a back
   end is called. */
#define _GNU_SOURCE
#include <errno.h>
#include <prof/profiler.h>
#include <prof/sampler.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../base/error.h"
#include "../base/options.h"
#include "../base/port.h"
#include "../base/process.h"
#include "../base/text.h"
#include "../core/record/site.h"
#include "internal.h"

/* ---- samples as CSV: see <prof/sampler.h> ---- */

/* POWER and VRAM have the layout of madengine's gpu_info_power_profiler and gpu_info_vram_profiler.
   Their readers search for the column titles. */

static const char *csv_title_of(uint32_t mode) {
  static const char *const titles[] = {[PROF_SAMPLE_POWER] = "Power(Watt)",
                                       [PROF_SAMPLE_VRAM] = "vram(%)",
                                       [PROF_SAMPLE_UTILISATION] = "utilisation(%)",
                                       [PROF_SAMPLE_CLOCK] = "clock(MHz)"};
  return titles[mode];
}

/* One column a device: of two meters of one device's power the first, which is the vendor's own
   figure before what is made of energy. The host's own where there is no other: readers know
   devices alone. */
static bool has_column(const prof_i_meters *meters, uint32_t at) {
  const prof_i_meter *const meter = &meters->all[at];
  for (uint32_t i = 0; i < at; i++)
    if (meters->all[i].source == meter->source &&
        meters->all[i].metric.device == meter->metric.device)
      return false;
  return !meter->is_host || at == 0;
}

static void csv_head(prof_i_sink *sink, const prof_i_meters *meters, uint32_t mode) {
  char cell[64];
  prof_i_sink_text(sink, mode == PROF_SAMPLE_ALL ? "time_ns,meter,unit,value" : "time");
  for (uint32_t i = 0; mode != PROF_SAMPLE_ALL && i < meters->count; i++) {
    if (!has_column(meters, i)) continue;
    const prof_i_meter *const meter = &meters->all[i];
    snprintf(cell, sizeof cell, ",%s %s%u", csv_title_of(mode), meter->is_host ? "host" : "GPU",
             meter->number);
    prof_i_sink_text(sink, cell);
  }
  prof_i_sink_text(sink, "\n");
}

static void put_long_rows(prof_i_sink *sink, const prof_i_meters *meters, uint64_t unix_ns) {
  for (uint32_t i = 0; i < meters->count; i++) {
    const prof_i_meter *const meter = &meters->all[i];
    if (!meter->is_known) continue;
    prof_i_sink_u64(sink, unix_ns);
    prof_i_sink_text(sink, ",");
    prof_i_sink_csv_bare(sink, meter->name);
    prof_i_sink_text(sink, ",");
    prof_i_sink_csv_bare(sink, meter->unit);
    prof_i_sink_text(sink, ",");
    prof_i_sink_double(sink, meter->value);
    prof_i_sink_text(sink, "\n");
  }
}

/* Of memory its share of the device's, where that is known; of a clock MHz. */
static bool meter_value_of(const prof_i_meter *meter, uint32_t mode, double *value_out) {
  *value_out = meter->value;
  if (mode == PROF_SAMPLE_CLOCK) *value_out = meter->value / 1e6;
  if (mode == PROF_SAMPLE_VRAM && meter->memory_bytes)
    *value_out = meter->value * 100 / (double)meter->memory_bytes;
  return meter->is_known && *value_out > -1e15 && *value_out < 1e15 &&
         (mode != PROF_SAMPLE_VRAM || meter->memory_bytes);
}

/* Two decimals, with a point whatever the program's locale has. */
static void put_rounded(char *to, size_t room, double value) {
  const long long cents = (long long)(value * 100 + (value < 0 ? -0.5 : 0.5)),
                  size = cents < 0 ? -cents : cents;
  snprintf(to, room, ",%s%lld.%02lld", cents < 0 ? "-" : "", size / 100, size % 100);
}

static void put_wide_row(prof_i_sink *sink, const prof_i_meters *meters, uint32_t mode,
                         uint64_t unix_ns) {
  const time_t seconds = (time_t)(unix_ns / 1000000000);
  struct tm local;
  char cell[64], day[40];
  localtime_r(&seconds, &local);
  strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &local);
  snprintf(cell, sizeof cell, "%s.%06u", day, (unsigned)(unix_ns % 1000000000 / 1000));
  prof_i_sink_text(sink, cell);
  for (uint32_t i = 0; i < meters->count; i++) {
    double value;
    if (!has_column(meters, i)) continue;
    if (meter_value_of(&meters->all[i], mode, &value))
      put_rounded(cell, sizeof cell, value);
    else
      snprintf(cell, sizeof cell, ",N/A");
    prof_i_sink_text(sink, cell);
  }
  prof_i_sink_text(sink, "\n");
}

/* unix_ns: when they were read. */
static void csv_rows(prof_i_sink *sink, const prof_i_meters *meters, uint32_t mode,
                     uint64_t unix_ns) {
  if (mode == PROF_SAMPLE_ALL)
    put_long_rows(sink, meters, unix_ns);
  else
    put_wide_row(sink, meters, mode, unix_ns);
}

enum { INTERVAL_DEFAULT_NS = 100000000, INTERVAL_LEAST_NS = 1000000, STOP_MS = 100, START_S = 10 };
#define INTERVAL_MOST_NS UINT64_C(1000000000000000000) /* 32 years */

/* STARTING: its thread opens the back ends. FAILED: they have no meters, and the starting thread
   does not know yet. CLOSING: its thread is not waited for any more. */
enum { SAMPLER_OFF, SAMPLER_STARTING, SAMPLER_FAILED, SAMPLER_ON, SAMPLER_CLOSING };

/* What a run has; the thread's own once it lives. */
typedef struct sampler_run {
  prof_i_meters meters;
  prof_i_sink csv;
  char *devices, *csv_path; /* copies; NULL: as in the options */
  uint32_t mode;
  bool is_live; /* each row is written at once */
  uint64_t interval_ns;
  prof_i_host_meters_info host;
  bool reports_failure; /* no caller waits for its begin: failures go to stderr */
} sampler_run;

static struct {
  pthread_mutex_t lock; /* rank 2: starts and stops. No back end is called under it */
  pthread_once_t once;
  pthread_t thread;   /* written under the lock */
  uint64_t starts;    /* under the lock: which one it is of */
  uint32_t state;     /* release; waited for */
  uint32_t wake_word; /* raised to wake it */
  int start_status;   /* before state is FAILED */
  char start_error[512];
  int csv_status; /* of the last run's file; before state is OFF */
  char csv_error[256];
  uint32_t meter_count, left_out_count, sources_at_exit;
  prof_i_host_meters_info host; /* at the last start */
  uint64_t samples, missed;     /* relaxed */
} sampler = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static uint32_t sampler_phase(void) { return __atomic_load_n(&sampler.state, __ATOMIC_ACQUIRE); }
static void set_sampler_phase(uint32_t to) {
  __atomic_store_n(&sampler.state, to, __ATOMIC_RELEASE);
  prof_i_port_wake(&sampler.state);
}

/* Until its thread has asked the back ends, or so long. */
static void wait_for_start(uint64_t patience_ns) {
  const uint64_t until_ns = prof_i_port_monotonic_ns() + patience_ns;
  for (uint64_t now_ns;
       sampler_phase() == SAMPLER_STARTING && (now_ns = prof_i_port_monotonic_ns()) < until_ns;)
    prof_i_port_wait(&sampler.state, SAMPLER_STARTING, until_ns - now_ns);
}

/* ---- the thread ---- */

/* A short program's, which PROF_SAMPLE began: it shall have its file. */
static void sampler_at_exit(void) {
  wait_for_start(STOP_MS * UINT64_C(1000000));
  prof_sampler_stop();
}

static void record_counters(sampler_run *r) {
  for (uint32_t i = 0; i < r->meters.count; i++) {
    prof_i_meter *const meter = &r->meters.all[i];
    if (meter->is_known && prof_level() > 0)
      prof_i_counter_of(&meter->site, meter->name, meter->value, meter->device);
  }
}

static void sample_meters(sampler_run *r) {
  prof_i_meters_read(&r->meters);
  record_counters(r);
  if (r->csv_path) csv_rows(&r->csv, &r->meters, r->mode, prof_i_port_realtime_ns());
  if (r->csv_path && r->is_live) prof_i_sink_flush(&r->csv);
  __atomic_fetch_add(&sampler.samples, 1, __ATOMIC_RELAXED);
}

/* Until the next one is due, which is not shifted by how long this one took; those that were due
   meanwhile are missed. */
static void wait_until_due(uint64_t *due_ns, uint64_t interval_ns) {
  uint64_t now_ns = prof_i_port_monotonic_ns();
  *due_ns += interval_ns;
  if (now_ns > *due_ns) {
    const uint64_t missed = (now_ns - *due_ns) / interval_ns + 1;
    __atomic_fetch_add(&sampler.missed, missed, __ATOMIC_RELAXED);
    *due_ns += missed * interval_ns;
  }
  while (sampler_phase() == SAMPLER_ON && (now_ns = prof_i_port_monotonic_ns()) < *due_ns)
    prof_i_port_wait(&sampler.wake_word, __atomic_load_n(&sampler.wake_word, __ATOMIC_ACQUIRE),
                     *due_ns - now_ns);
}

static int fail_no_meter(const sampler_run *r) {
  static const char *const wanted[] = {"meter", "meter of power", "meter of memory",
                                       "meter of utilisation", "meter of clocks"};
  const char *const what = wanted[r->mode], *const why = r->host.why_not,
                    *const mark = *why ? ": " : "";
  if (prof_i_meters_selects_all(r->devices))
    return prof_i_fail(PROF_E_NOT_FOUND, "there is no %s here: no back end of devices has one%s%s",
                       what, *why ? "; of the host: " : ", nor the host", why);
  if (prof_i_meters_selects_host(r->devices))
    return prof_i_fail(PROF_E_NOT_FOUND, "there is no %s of the host%s%s", what, mark, why);
  return prof_i_fail(PROF_E_NOT_FOUND,
                     "there is no %s of a device %.64s here: prof doctor lists the back ends", what,
                     r->devices);
}

/* Where it is live it has its heading when the start comes back. */
static int open_csv(sampler_run *r) {
  const int status = r->is_live ? prof_i_sink_open_live_file(&r->csv, r->csv_path)
                                : prof_i_sink_open_file(&r->csv, r->csv_path, false, false);
  if (status != PROF_OK) return status;
  csv_head(&r->csv, &r->meters, r->mode);
  if (!r->is_live) return PROF_OK;
  prof_i_sink_flush(&r->csv);
  const int written = r->csv.status;
  if (written != PROF_OK) prof_i_sink_abandon(&r->csv);
  return written;
}

/* The file is opened last: nothing is left of it where there is nothing to read. */
static int begin_run(sampler_run *r) {
  prof_i_host_meters_init();
  prof_i_meters_find(&r->meters, r->devices, r->mode);
  prof_i_host_meters_describe(&r->host);
  if (!r->meters.count) return fail_no_meter(r);
  return r->csv_path ? open_csv(r) : PROF_OK;
}

/* Lock held. What is registered last runs first: when its back ends are open, so that a vendor's
   own handler comes after it. */
static void publish_run(const sampler_run *r) {
  sampler.meter_count = r->meters.count;
  sampler.left_out_count = r->meters.left_out_count;
  sampler.host = r->host;
  sampler.csv_status = PROF_OK;
  sampler.csv_error[0] = '\0';
  if (r->meters.source_count > sampler.sources_at_exit) {
    sampler.sources_at_exit = r->meters.source_count;
    atexit(sampler_at_exit);
  }
}

static void set_start_error(int status) {
  sampler.start_status = status;
  snprintf(sampler.start_error, sizeof sampler.start_error, "%s", prof_last_error());
}

/* Reports the begin's result to a waiting caller. False: it must not run. */
static bool announce_start(const sampler_run *r, int status) {
  prof_i_thread_lock(&sampler.lock);
  const bool is_wanted = sampler_phase() == SAMPLER_STARTING;
  if (is_wanted && status == PROF_OK) publish_run(r);
  if (is_wanted && status != PROF_OK) set_start_error(status);
  if (is_wanted) set_sampler_phase(status == PROF_OK ? SAMPLER_ON : SAMPLER_FAILED);
  prof_i_thread_unlock(&sampler.lock);
  return is_wanted && status == PROF_OK;
}

static void finish_csv(sampler_run *r) {
  sampler.csv_status = r->csv_path ? prof_i_sink_commit(&r->csv) : PROF_OK;
  snprintf(sampler.csv_error, sizeof sampler.csv_error, "%s",
           sampler.csv_status == PROF_OK ? "" : prof_last_error());
}

static void destroy_run(sampler_run *r) {
  free(r->devices);
  free(r->csv_path);
  free(r);
}

static void sample_until_stopped(sampler_run *r) {
  for (uint64_t due_ns = prof_i_port_monotonic_ns(); sampler_phase() == SAMPLER_ON;
       wait_until_due(&due_ns, r->interval_ns))
    sample_meters(r);
  finish_csv(r);
}

static void *sampler_main(void *the_run) {
  sampler_run *const r = the_run;
  prof_i_port_thread_begin("prof-sampler");
  prof_thread_set_name("prof-sampler");
  const int status = begin_run(r);
  if (status != PROF_OK && r->reports_failure)
    prof_i_log("PROF_SAMPLE: %s; not sampling", prof_last_error());
  if (announce_start(r, status))
    sample_until_stopped(r);
  else if (status == PROF_OK && r->csv_path)
    prof_i_sink_abandon(&r->csv);
  const bool is_joined = sampler_phase() == SAMPLER_FAILED && !r->reports_failure;
  if (sampler_phase() == SAMPLER_FAILED && r->reports_failure) pthread_detach(pthread_self());
  destroy_run(r);
  if (!is_joined) set_sampler_phase(SAMPLER_OFF); /* from now on another thread may exist */
  return NULL;
}

/* ---- its life ---- */

static void sampler_forget(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  sampler.lock = fresh;
  sampler.state =
      SAMPLER_OFF; /* its file is the parent's, and has no name: nothing is left of it here */
}

static void sampler_prepare_fork(void) { pthread_atfork(NULL, NULL, sampler_forget); }

static int check_sampler_options(const prof_sampler_options *options) {
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
  if (!prof_i_meters_is_selection(options->devices))
    return prof_i_fail(
        PROF_E_INVALID,
        "options.devices is '%.64s'; \"all\", \"host\", or numbers with commas between: \"0,1\"",
        options->devices);
  if (options->csv_path && !*options->csv_path)
    return prof_i_fail(PROF_E_INVALID, "options.csv_path is empty; NULL writes none");
  return PROF_OK;
}

static int copy_text_option(char **to, const char *from) {
  *to = from ? strdup(from) : NULL;
  return from && !*to ? prof_i_fail(PROF_E_NO_MEMORY, "no memory for the text '%.64s'", from)
                      : PROF_OK;
}

static int make_run(const prof_sampler_options *options, bool waits, sampler_run **run_out) {
  sampler_run *const r = calloc(1, sizeof *r);
  if (!r) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for meters (%zu bytes)", sizeof *r);
  r->mode = options->mode;
  r->interval_ns = options->interval_ns ? options->interval_ns : INTERVAL_DEFAULT_NS;
  r->is_live = options->csv_is_live == 1;
  r->reports_failure = !waits;
  int status = copy_text_option(&r->devices, options->devices);
  if (status == PROF_OK) status = copy_text_option(&r->csv_path, options->csv_path);
  if (status == PROF_OK)
    *run_out = r;
  else
    destroy_run(r);
  return status;
}

/* Lock held. */
static int make_sampler_thread(sampler_run *r) {
  __atomic_store_n(&sampler.samples, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&sampler.missed, 0, __ATOMIC_RELAXED);
  const int error = prof_i_port_thread_create(&sampler.thread, 0, sampler_main, r);
  sampler.starts += error == 0;
  if (error == 0) return PROF_OK;
  destroy_run(r);
  return prof_i_fail(PROF_E_NO_MEMORY, "no thread for the sampler: %s", strerror(error));
}

/* Whoever gets it from OFF to STARTING is alone with the meters. Lock held. */
static int begin_start(void) {
  switch (sampler_phase()) {
    case SAMPLER_ON:
      return prof_i_fail(PROF_E_RUNNING, "a sampler is running; prof_sampler_stop() it first");
    case SAMPLER_FAILED:
    case SAMPLER_STARTING:
      return prof_i_fail(PROF_E_BUSY,
                         "the sampler is just being started: by another thread, or by PROF_SAMPLE");
    case SAMPLER_CLOSING:
      return prof_i_fail(PROF_E_BUSY, "a back end still has not answered the sampler before");
    default:
      set_sampler_phase(SAMPLER_STARTING);
      return PROF_OK;
  }
}

/* How its thread has begun. Lock held. number: of that start; it may have been stopped since, and
   another one begun. */
static int end_start(uint64_t number) {
  if (sampler.starts != number) return PROF_OK;
  if (sampler_phase() == SAMPLER_STARTING) {
    set_sampler_phase(SAMPLER_CLOSING);
    pthread_detach(sampler.thread); /* it ends by itself when it is answered */
    return prof_i_fail(PROF_E_BUSY,
                       "a back end has not answered for %d s; no sampler can start until it has",
                       START_S);
  }
  if (sampler_phase() != SAMPLER_FAILED) return PROF_OK;
  const int status = prof_i_fail(sampler.start_status, "%s", sampler.start_error);
  pthread_join(sampler.thread, NULL);
  set_sampler_phase(SAMPLER_OFF);
  return status;
}

static int start_sampler(const prof_sampler_options *options, bool waits) {
  sampler_run *r = NULL;
  prof_i_thread_lock(&sampler.lock);
  int status = begin_start();
  const bool is_mine = status == PROF_OK;
  if (is_mine) status = make_run(options, waits, &r);
  if (r) status = make_sampler_thread(r);
  if (is_mine && status != PROF_OK) set_sampler_phase(SAMPLER_OFF);
  if (is_mine && status == PROF_OK && !waits) atexit(sampler_at_exit);
  const uint64_t number = sampler.starts;
  prof_i_thread_unlock(&sampler.lock);
  if (status != PROF_OK || !waits) return status;
  wait_for_start(START_S * UINT64_C(1000000000));
  prof_i_thread_lock(&sampler.lock);
  status = end_start(number);
  prof_i_thread_unlock(&sampler.lock);
  return status;
}

static int start_sampler_by(const prof_sampler_options *given, bool waits) {
  const int saved = errno;
  prof_sampler_options options = {.size = sizeof options};
  int status =
      given ? prof_i_sized_copy(&options, sizeof options, given, "prof_sampler_options") : PROF_OK;
  if (status == PROF_OK) status = check_sampler_options(&options);
  if (status == PROF_OK) {
    PROF_I_DISABLE_CANCEL;
    pthread_once(&sampler.once, sampler_prepare_fork);
    status = start_sampler(&options, waits);
  }
  errno = saved;
  return status;
}

int prof_sampler_start(const prof_sampler_options *options) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  return start_sampler_by(options, true);
}
int prof_i_sampler_begin(const prof_sampler_options *options) {
  return start_sampler_by(options, false);
}

static int stop_sampler(void) {
  if (sampler_phase() == SAMPLER_OFF || sampler_phase() == SAMPLER_FAILED)
    return prof_i_fail(PROF_E_NOT_RUNNING, "no sampler is running");
  if (sampler_phase() == SAMPLER_STARTING)
    return prof_i_fail(PROF_E_BUSY,
                       "the sampler is just being started: by another thread, or by PROF_SAMPLE");
  if (sampler_phase() == SAMPLER_CLOSING)
    return prof_i_fail(PROF_E_BUSY,
                       "a back end has not answered the sampler yet; its file comes when it does");
  __atomic_store_n(&sampler.state, SAMPLER_CLOSING, __ATOMIC_SEQ_CST);
  __atomic_fetch_add(&sampler.wake_word, 1, __ATOMIC_SEQ_CST);
  prof_i_port_wake(&sampler.wake_word);
  if (!prof_i_port_join(sampler.thread, &sampler.state, SAMPLER_CLOSING,
                        STOP_MS * UINT64_C(1000000))) {
    pthread_detach(sampler.thread); /* it ends alone; until then there is no other */
    return prof_i_fail(PROF_E_BUSY,
                       "the sampler has not ended for %d ms: a back end has not answered, or its "
                       "file takes longer; that comes when it has",
                       STOP_MS);
  }
  return sampler.csv_status == PROF_OK ? PROF_OK
                                       : prof_i_fail(sampler.csv_status, "%s", sampler.csv_error);
}

int prof_sampler_stop(void) {
  PROF_I_DISABLE_CANCEL;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  const int saved = errno;
  prof_i_thread_lock(&sampler.lock);
  const int status = stop_sampler();
  prof_i_thread_unlock(&sampler.lock);
  errno = saved;
  return status;
}

/* No sampling is under way or begins: the lock is held. */
static void read_host_info(void) {
  prof_i_host_meters_init();
  prof_i_host_meters_describe(&sampler.host);
}

int prof_sampler_get(prof_sampler_state *state_out) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  if (!state_out) return prof_i_fail(PROF_E_INVALID, "prof_sampler_get: state_out is NULL");
  PROF_I_DISABLE_CANCEL;
  prof_i_thread_lock(&sampler.lock);
  if (sampler_phase() == SAMPLER_OFF) read_host_info();
  prof_sampler_state now = {.is_running = sampler_phase() == SAMPLER_ON,
                            .meter_count = sampler.meter_count,
                            .sample_count = __atomic_load_n(&sampler.samples, __ATOMIC_RELAXED),
                            .missed_count = __atomic_load_n(&sampler.missed, __ATOMIC_RELAXED),
                            .left_out_count = sampler.left_out_count};
  memcpy(now.why_not, sampler.host.why_not, sizeof now.why_not);
  memcpy(now.host_meters, sampler.host.meters, sizeof now.host_meters);
  if (sampler_phase() == SAMPLER_OFF) { /* else its thread may just write it */
    now.csv_status = sampler.csv_status;
    memcpy(now.csv_error, sampler.csv_error, sizeof now.csv_error);
  }
  prof_i_thread_unlock(&sampler.lock);
  return prof_i_sized_copy_out(state_out, &now, sizeof now, "prof_sampler_state");
}
