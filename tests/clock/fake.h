/* A scripted clock under prof's port layer, and scopes whose true times the script knows. For tests
   of the library built with PROF_FAKE_CLOCK, one thread at a time; a test program includes it once.

   The truth is one number of ns. It moves when the script says so (fake_pass()) and a little with
   each reading. From it come the counter, by a line that the script may bend, cut or shift, for
   each processor another; CLOCK_MONOTONIC, which is what prof promises to tell; and CLOCK_REALTIME.
   What is expected comes from the script alone. */
#ifndef PROF_TESTS_CLOCK_FAKE_H
#define PROF_TESTS_CLOCK_FAKE_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
/* cmocka needs some of the above. */
#include <cmocka.h>

#include <prof/profiler.h>
#include <prof/trace.h>

#define FAKE_UNUSED __attribute__((unused))

static const uint64_t fake_us = 1000, fake_ms = 1000000, fake_s = 1000000000;
enum { FAKE_CPUS = 4 };

static struct {
  uint64_t now;     /* the truth */
  uint64_t read_ns; /* what a reading takes */
  /* the counter: at `since` it was `ticks`, and runs at hz */
  uint64_t since, ticks, hz;
  int64_t cpu_ticks[FAKE_CPUS]; /* what each processor's is ahead */
  int cpu;
  uint64_t counter_reads;
  bool is_counter_stopped;
  /* the kernel's clocks */
  uint64_t slept;               /* what CLOCK_MONOTONIC left out */
  int64_t wall;                 /* CLOCK_REALTIME less the truth */
  uint64_t resolution_ns;       /* 0: 1 ns */
  uint64_t back_every, back_ns; /* each so many readings of CLOCK_MONOTONIC are so much too low */
  uint64_t stands_at;           /* CLOCK_MONOTONIC stays there; 0: it goes */
  uint64_t clock_reads;
  /* so many of the next readings of CLOCK_MONOTONIC take that much longer, */
  uint64_t interrupted, interrupted_ns;
  uint64_t spared; /* but for this one of them, counted from 1 */
  /* what the machine says of itself */
  bool is_forbidden, is_invariant;
  const char *clocksource;
} fake;

static void fake_reset(void) {
  memset(&fake, 0, sizeof fake);
  fake.now = 5000 * fake_s;
  fake.read_ns = 10;
  fake.hz = 3 * fake_s;
  fake.since = fake.now;
  fake.ticks = 15000 * fake_s;
  fake.wall = 1700000000ll * (int64_t)fake_s;
  fake.clocksource = "tsc";
}

__extension__ typedef unsigned __int128 fake_u128;

static uint64_t fake_counter(void) {
  const uint64_t passed = fake.is_counter_stopped ? 0 : fake.now - fake.since;
  return fake.ticks + (uint64_t)((fake_u128)passed * fake.hz / fake_s);
}

/* From now on the counter is another line. */
static FAKE_UNUSED void fake_set_counter(uint64_t ticks, uint64_t hz) {
  fake.ticks = ticks;
  fake.hz = hz;
  fake.since = fake.now;
}
static FAKE_UNUSED void fake_jump(int64_t ticks) {
  fake_set_counter(fake_counter() + (uint64_t)ticks, fake.hz);
}
static FAKE_UNUSED void fake_set_rate(uint64_t hz) { fake_set_counter(fake_counter(), hz); }
static FAKE_UNUSED void fake_stop_counter(bool stopped) {
  fake_set_counter(fake_counter(), fake.hz);
  fake.is_counter_stopped = stopped;
}

static void fake_pass(uint64_t ns) { fake.now += ns; }

/* The machine sleeps: CLOCK_MONOTONIC stands. */
static FAKE_UNUSED void fake_sleep(uint64_t ns) {
  fake.now += ns;
  fake.slept += ns;
}

/* What CLOCK_MONOTONIC would say if it were perfect. */
static uint64_t fake_host_ns(void) { return fake.now - fake.slept; }

/* ---- what prof asks ---- */

uint64_t prof_i_fake_counter(void);
uint64_t prof_i_fake_clock_ns(int clock);
bool prof_i_fake_is_forbidden(void);
bool prof_i_fake_is_invariant(void);
const char *prof_i_fake_clocksource(void);

uint64_t prof_i_fake_counter(void) {
  fake.counter_reads++;
  fake.now += fake.read_ns;
  return fake_counter() + (uint64_t)fake.cpu_ticks[fake.cpu];
}

uint64_t prof_i_fake_clock_ns(int clock) {
  fake.now += fake.read_ns;
  fake.clock_reads++;
  if (clock == CLOCK_REALTIME) return fake.now + (uint64_t)fake.wall;
  uint64_t ns = fake.stands_at ? fake.stands_at : fake_host_ns();
  if (fake.resolution_ns) ns -= ns % fake.resolution_ns;
  if (clock == CLOCK_MONOTONIC && fake.back_every && fake.clock_reads % fake.back_every == 0)
    ns -= fake.back_ns;
  if (clock == CLOCK_MONOTONIC && fake.interrupted) {
    fake.interrupted--;
    if (!fake.spared || --fake.spared) fake.now += fake.interrupted_ns;
  }
  return ns;
}

bool prof_i_fake_is_forbidden(void) { return fake.is_forbidden; }
bool prof_i_fake_is_invariant(void) { return fake.is_invariant; }
const char *prof_i_fake_clocksource(void) { return fake.clocksource; }

/* ---- scopes whose times are known ---- */

enum { SCOPES_MAX = 20000, SCOPE_NAME_BYTES = 16 };

/* Between these two readings of the truth the scope read its clock. */
typedef struct moment {
  uint64_t from, to;
} moment;

typedef struct scope {
  moment begin, end;
  uint64_t handle;
  bool is_vague; /* the clock jumped between the pairs around it: known to info.clock_gap_ns */
} scope;

static struct {
  scope items[SCOPES_MAX];
  uint32_t count;
  bool is_vague;
  /* of those that are not vague, where the capture says a worse one for the sake of others; 0: what
     it says */
  uint64_t error_ns;
} truth;
static prof_site scope_sites[SCOPES_MAX];
static char scope_names[SCOPES_MAX][SCOPE_NAME_BYTES];

/* Every other one has a plain record, the rest long ones with their name. */
static uint32_t begin_scope(void) {
  assert_true(truth.count < SCOPES_MAX);
  const uint32_t i = truth.count++;
  scope *const s = &truth.items[i];
  snprintf(scope_names[i], SCOPE_NAME_BYTES, "s%" PRIu32, i);
  s->is_vague = truth.is_vague;
  s->begin.from = fake_host_ns();
  s->handle = i % 2 ? prof_scope_begin(1, scope_names[i], "x", NULL)
                    : prof_scope_begin_at(&scope_sites[i], scope_names[i], "x");
  s->begin.to = fake_host_ns();
  return i;
}

static void end_scope(uint32_t i) {
  scope *const s = &truth.items[i];
  s->is_vague |= truth.is_vague;
  s->end.from = fake_host_ns();
  prof_scope_end(s->handle);
  s->end.to = fake_host_ns();
}

static FAKE_UNUSED void record_scopes(uint32_t count, uint64_t ns, uint64_t pause_ns) {
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t one = begin_scope();
    fake_pass(ns);
    end_scope(one);
    fake_pass(pause_ns);
  }
}

/* A reader's look at the capture is also a pair of clock readings. */
static FAKE_UNUSED void take_a_pair(void) {
  prof_trace *trace = NULL;
  assert_int_equal(prof_get(&trace), PROF_OK);
  prof_trace_destroy(trace);
}

/* Each test has a capture of its own: one of another size. */
static void start_with(uint32_t clock, const char *path, uint32_t policy, uint64_t ring_ns) {
  static uint64_t cap = 16 << 20;
  cap += 1 << 16;
  const prof_options options = {.size = sizeof options,
                                .clock = clock,
                                .cap_bytes = cap,
                                .path = path,
                                .keep_capture = 1,
                                .policy = policy,
                                .ring_ns = ring_ns};
  memset(&truth, 0, sizeof truth);
  const int status = prof_start_with(&options);
  if (status != PROF_OK)
    fail_msg("prof_start_with gave %s: %s", prof_status_name(status), prof_last_error());
}

static FAKE_UNUSED void start_recording(void) { start_with(PROF_CLOCK_DEFAULT, NULL, 0, 0); }

/* ---- what was read ---- */

static prof_trace_info info_of(const prof_trace *trace) {
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  return info;
}

static uint64_t apart(uint64_t value, moment m) {
  return value < m.from ? m.from - value : value > m.to ? value - m.to : 0;
}

typedef struct seen_scope {
  uint64_t start, end; /* CLOCK_MONOTONIC */
  uint32_t kind, thread;
  uint32_t times;
} seen_scope;
static seen_scope seen[SCOPES_MAX];

static void read_scopes(const prof_trace *trace) {
  const prof_trace_info info = info_of(trace);
  static prof_event event;
  prof_cursor *cursor = NULL;
  memset(seen, 0, sizeof seen);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  uint64_t last_ns = 0;
  uint32_t last_thread = 0;
  while (prof_cursor_next(cursor, &event) == 1) {
    if (event.kind != PROF_EVENT_SCOPE && event.kind != PROF_EVENT_OPEN) continue;
    char name[SCOPE_NAME_BYTES] = {0};
    if (event.name_bytes >= sizeof name || event.name[0] != 's') continue;
    memcpy(name, event.name, event.name_bytes);
    const uint32_t i = (uint32_t)strtoul(name + 1, NULL, 10);
    assert_true(i < truth.count);
    if (event.thread == last_thread && event.start_ns < last_ns)
      fail_msg("%s starts at %" PRIu64 " ns, after one at %" PRIu64, name, event.start_ns, last_ns);
    if (event.duration_ns > 1ull << 60)
      fail_msg("%s takes %" PRIu64 " ns", name, event.duration_ns);
    last_ns = event.start_ns;
    last_thread = event.thread;
    seen[i].start = info.start_ns + event.start_ns;
    seen[i].end = seen[i].start + event.duration_ns;
    seen[i].kind = event.kind;
    seen[i].thread = event.thread;
    seen[i].times++;
  }
  prof_cursor_destroy(cursor);
}

/* All of them there, once, each where the script says that it was, to what the capture itself says
   of its clock. */
static void check_trace(const prof_trace *trace, const char *reader) {
  const prof_trace_info info = info_of(trace);
  uint64_t lost = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) {
    lost += info.lost_count[i];
    if (info.lost_count[i])
      print_error("%s: %" PRIu64 " lost: %s\n", reader, info.lost_count[i], prof_loss_name(i));
  }
  assert_int_equal(lost, 0);
  assert_int_equal(info.bad_count, 0);
  read_scopes(trace);
  for (uint32_t i = 0; i < truth.count; i++) {
    const scope *const s = &truth.items[i];
    if (seen[i].times != 1)
      fail_msg("%s: s%" PRIu32 " is there %" PRIu32 " times", reader, i, seen[i].times);
    if (seen[i].kind != PROF_EVENT_SCOPE) continue;
    const uint64_t sharp = truth.error_ns ? truth.error_ns : info.clock_error_ns;
    const uint64_t error = (s->is_vague ? info.clock_error_ns + info.clock_gap_ns : sharp) + 2;
    if (apart(seen[i].start, s->begin) > error || apart(seen[i].end, s->end) > error)
      fail_msg("%s: s%" PRIu32 " (%s) was from %" PRIu64 " to %" PRIu64
               ", and is said to be from %+" PRId64 " to %+" PRId64
               " from there; the error is said to be %" PRIu64 " ns, the gap %" PRIu64,
               reader, i, s->is_vague ? "vague" : "sharp", s->begin.from, s->end.from,
               (int64_t)(seen[i].start - s->begin.from), (int64_t)(seen[i].end - s->end.from),
               info.clock_error_ns, info.clock_gap_ns);
  }
}

/* Stops, reads by prof_get(), checks. The caller destroys it. */
static FAKE_UNUSED prof_trace *stop_and_check(void) {
  prof_trace *trace = NULL;
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_get(&trace), PROF_OK);
  check_trace(trace, "prof_get");
  return trace;
}

/* What stop_and_check() found, when that is all. */
static FAKE_UNUSED prof_trace_info stop_and_look(void) {
  prof_trace *const trace = stop_and_check();
  const prof_trace_info info = info_of(trace);
  prof_trace_destroy(trace);
  return info;
}

#endif
