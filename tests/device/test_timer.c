/* The operator profiler by a device's own time, on an emulated device: what a stream's timer says
   against when the work truly ran. Also streams that cannot be timed. */
#define _GNU_SOURCE
#include <prof/device.h>
#include <prof/op.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "emulated/emulated.h"
#include "hang_guard.h"

enum { SAMPLES = 20 };
/* The stream may be at work. */
static void set(uint32_t *fault, uint32_t every) {
  __atomic_store_n(fault, every, __ATOMIC_RELAXED);
}

static const prof_device device = {EMULATED_TYPE, 0};

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t handle_of(const emulated_stream *stream) { return (uint64_t)(uintptr_t)stream; }

/* ---- an operator on a stream ---- */

typedef struct work {
  emulated_stream *stream;
  uint64_t busy_ns;
  int runs;
} work;

/* Streams at once: in a round of their group the device does nothing from the first one's launch
   until the second's. Who waited for the first before the second is launched would wait for
   ever. */
static struct { const work *first, *second; } at_once;

/* A round has each member alone and then the group; the next one goes the other way round: alone,
   group; group, alone; ... */
static bool is_in_group(int run) { return run % 4 == 1 || run % 4 == 2; }

static int launch(void *user) {
  work *const w = user;
  const bool is_group = is_in_group(w->runs++);
  if (is_group && w == at_once.first) set(&emulated_fault.holds, 1);
  emulated_launch(w->stream, w->busy_ns);
  if (is_group && w == at_once.second) set(&emulated_fault.holds, 0);
  return 0;
}

/* NULL, NULL: not any more. */
static void launch_at_once(work *first, work *second) {
  at_once.first = first;
  at_once.second = second;
  if (first) first->runs = second->runs = 0;
}

static prof_op op_of(work *w, const char *key, const prof_op_timer *timer) {
  return (prof_op){.size = sizeof(prof_op),
                   .key = key,
                   .user = w,
                   .run = launch,
                   .device = device,
                   .timer = timer};
}

static const prof_op_options each_run = {.size = sizeof each_run,
                                         .no_warmup = 1,
                                         .exec = 1,
                                         .repeat = SAMPLES,
                                         .repeat_all = 1,
                                         .time_limit_ns = UINT64_MAX};

static prof_op_stream place_of(const emulated_stream *stream, prof_device on) {
  return (prof_op_stream){
      .size = sizeof(prof_op_stream), .device = on, .stream = handle_of(stream)};
}

static prof_op_timer *timer_of(const emulated_stream *stream, prof_device on) {
  const prof_op_stream place = place_of(stream, on);
  prof_op_timer *timer = NULL;
  if (prof_op_timer_create(&place, &timer) != PROF_OK) fail_msg("%s", prof_last_error());
  return timer;
}

static prof_op_info info_of(const prof_op_result *result) {
  prof_op_info info = {.size = sizeof info};
  assert_int_equal(prof_op_info_get(result, &info), PROF_OK);
  return info;
}

static prof_op_result *profile(const prof_op *op) {
  prof_op_result *result = NULL;
  if (prof_op_profile(op, &each_run, &result) != PROF_OK) fail_msg("%s", prof_last_error());
  return result;
}

/* What is on the stream is done first, so that its events go. */
static void drop(prof_op_timer *timer, emulated_stream *stream) {
  emulated_wait(stream);
  prof_op_timer_destroy(timer);
  emulated_destroy(stream);
}

static void refuse(prof_op_stream place, int status, const char *text) {
  prof_op_timer *timer = (prof_op_timer *)1;
  assert_int_equal(prof_op_timer_create(&place, &timer), status);
  assert_null(timer);
  if (!strstr(prof_last_error(), text)) fail_msg("'%s' has no '%s'", prof_last_error(), text);
}

static void fail_to_profile(const prof_op *op, const char *text) {
  prof_op_result *result = NULL;
  assert_int_equal(prof_op_profile(op, &each_run, &result), PROF_E_OPERATOR);
  assert_null(result);
  if (!strstr(prof_last_error(), text)) fail_msg("'%s' has no '%s'", prof_last_error(), text);
}

/* ---- what it says ---- */

/* Each sample has its work in it, by the device's clock, and all together no more than has passed
   since. */
static void expect_samples(const prof_op_result *result, const emulated_stream *stream,
                           double clock_speed, uint64_t begun_ns) {
  size_t count = 0;
  const double *const us = prof_op_samples(result, &count);
  double sum_us = 0;
  assert_int_equal(count, SAMPLES);
  for (size_t i = 0; i < count; i++) {
    uint64_t from, to;
    emulated_truth(stream, i, &from, &to);
    const double truth_us = (double)(to - from) / 1e3, host_us = us[i] / clock_speed;
    if (host_us < truth_us * 0.999999)
      fail_msg("sample %zu: %.3f us, of work that took %.3f", i, host_us, truth_us);
    sum_us += host_us;
  }
  const double passed_us = (double)(now_ns() - begun_ns) / 1e3;
  if (sum_us > passed_us) fail_msg("samples of %.3f us, in %.3f", sum_us, passed_us);
}

static void a_sample_is_what_the_devices_clock_says(void **state) {
  (void)state;
  emulated_fault.clock_offset_ns = 123456789012345;
  emulated_fault.clock_drift = 1; /* twice as fast as the host's */
  work w = {emulated_create(0), 1000000, 0};
  prof_op_timer *const timer = timer_of(w.stream, device);
  const prof_op op = op_of(&w, "by the device's clock", timer);
  const uint64_t begun_ns = now_ns();
  prof_op_result *const result = profile(&op);
  expect_samples(result, w.stream, 2, begun_ns);
  prof_op_result_destroy(result);
  drop(timer, w.stream);
  assert_int_equal(emulated_event_count(), 0);
}

static void events_that_tell_distances_alone_will_do(void **state) {
  const prof_device by_distance = {EMULATED_BY_DISTANCE_TYPE, 0};
  (void)state;
  assert_int_equal(prof_backend_add(&emulated_by_distance), PROF_OK);
  work w = {emulated_create(0), 1000000, 0};
  prof_op_timer *const timer = timer_of(w.stream, by_distance);
  prof_op op = op_of(&w, "by distance", timer);
  op.device = by_distance;
  const uint64_t begun_ns = now_ns();
  prof_op_result *const result = profile(&op);
  expect_samples(result, w.stream, 1, begun_ns);
  prof_op_result_destroy(result);
  drop(timer, w.stream);
}

/* Nobody said how many runs make a sample: the timer has to be good enough to find that out. On a
   busy machine a run may take as long as a sample, so this is tried until it does not. */
static void what_is_short_is_run_many_times(void **state) {
  (void)state;
  work w = {emulated_create(0), 2000, 0};
  prof_op_timer *const timer = timer_of(w.stream, device);
  const prof_op op = op_of(&w, "short", timer);
  prof_op_info info;
  do {
    prof_op_result *result = NULL;
    prof_op_cache_reset(NULL);
    assert_int_equal(prof_op_profile(&op, NULL, &result), PROF_OK);
    info = info_of(result);
    assert_true(info.min_us >= 2);
    prof_op_result_destroy(result);
  } while (info.exec <= 1);
  drop(timer, w.stream);
}

/* ---- groups ---- */

static void a_group_has_its_streams_at_once(void **state) {
  work works[] = {{emulated_create(0), 4000000, 0}, {emulated_create(0), 2000000, 0}};
  prof_op_timer *const timers[] = {timer_of(works[0].stream, device),
                                   timer_of(works[1].stream, device)};
  const prof_op ops[] = {op_of(&works[0], "4 ms", timers[0]), op_of(&works[1], "2 ms", timers[1])};
  prof_op_options options = each_run;
  prof_op_overlap overlap = {.size = sizeof overlap};
  prof_op_result *results[3];
  (void)state;
  options.no_reuse = 1;
  launch_at_once(&works[0], &works[1]);
  if (prof_op_profile_group(ops, 2, PROF_OP_STREAMS, &options, results, &overlap) != PROF_OK)
    fail_msg("%s", prof_last_error());
  launch_at_once(NULL, NULL);
  const double first = info_of(results[0]).min_us, second = info_of(results[1]).min_us,
               both = info_of(results[2]).min_us;
  for (int j = 0; j < 3; j++) prof_op_result_destroy(results[j]);
  assert_true(first >= 4000 && second >= 2000 && both >= 4000);
  assert_true(overlap.alone_us >= 6000 && overlap.longest_us >= 4000 && overlap.group_us >= 4000);
  /* alone, and in the group */
  for (int i = 0; i < 2; i++) assert_int_equal(works[i].runs, 2 * SAMPLES);
  for (int i = 0; i < 2; i++) drop(timers[i], works[i].stream);
}

static void refuse_group(const prof_op *ops, const char *text) {
  prof_op_result *results[3];
  prof_op_overlap overlap = {.size = sizeof overlap};
  assert_int_equal(prof_op_profile_group(ops, 2, PROF_OP_STREAMS, &each_run, results, &overlap),
                   PROF_E_INVALID);
  if (!strstr(prof_last_error(), text)) fail_msg("'%s' has no '%s'", prof_last_error(), text);
}

static void a_group_with_one_timer_for_two_is_refused(void **state) {
  (void)state;
  work w = {emulated_create(0), 1000, 0};
  prof_op_timer *const timer = timer_of(w.stream, device);
  prof_op ops[] = {op_of(&w, "one", timer), op_of(&w, "two", timer)};
  refuse_group(ops, "members 0 and 1 have one timer, emulated events of 12:0");
  ops[1].timer = NULL;
  refuse_group(ops, "of members 0 and 1 one has a timer of its own");
  drop(timer, w.stream);
}

static void a_groups_error_is_that_of_the_member_that_failed(void **state) {
  work works[] = {{emulated_create(0), 1000, 0}, {emulated_create(0), 1000, 0}};
  prof_op_timer *const timers[] = {timer_of(works[0].stream, device),
                                   timer_of(works[1].stream, device)};
  const prof_op ops[] = {op_of(&works[0], "one", timers[0]), op_of(&works[1], "two", timers[1])};
  prof_op_result *results[3] = {(prof_op_result *)1};
  prof_op_overlap overlap = {.size = sizeof overlap};
  (void)state;
  /* behind the 256 of each member's timer being looked at: one of the group's own */
  set(&emulated_fault.refused_every, 600);
  assert_int_equal(prof_op_profile_group(ops, 2, PROF_OP_STREAMS, &each_run, results, &overlap),
                   PROF_E_OPERATOR);
  if (!strstr(prof_last_error(), "no event can be recorded")) fail_msg("'%s'", prof_last_error());
  for (int i = 0; i < 3; i++) assert_null(results[i]);
  set(&emulated_fault.refused_every, 0);
  /* what was begun has been ended */
  if (prof_op_profile_group(ops, 2, PROF_OP_STREAMS, &each_run, results, &overlap) != PROF_OK)
    fail_msg("%s", prof_last_error());
  for (int i = 0; i < 3; i++) prof_op_result_destroy(results[i]);
  for (int i = 0; i < 2; i++) drop(timers[i], works[i].stream);
}

/* ---- kept results ---- */

static uint32_t was_kept(const prof_op *op) {
  prof_op_result *const result = profile(op);
  const uint32_t was = info_of(result).was_kept;
  prof_op_result_destroy(result);
  return was;
}

static void results_are_kept_for_the_device_and_its_events(void **state) {
  (void)state;
  const prof_device other = {EMULATED_TYPE, 1};
  work w = {emulated_create(0), 1000, 0}, w_other = {emulated_create(1), 1000, 0};
  prof_op_timer *const timer = timer_of(w.stream, device), *const timer_other =
                                                               timer_of(w_other.stream, other);
  prof_op op = op_of(&w, "kept", NULL), op_other = op_of(&w_other, "kept", timer_other);
  assert_int_equal(was_kept(&op), 0); /* by the host's timer */
  op.timer = timer;
  assert_int_equal(was_kept(&op), 0);
  assert_int_equal(was_kept(&op), 1);
  /* says that it is of the first device, but is the other one's stream's */
  assert_int_equal(was_kept(&op_other), 0);
  op_other.device = other;
  assert_int_equal(was_kept(&op_other), 0);
  assert_int_equal(was_kept(&op_other), 1);
  op.driver = "emulated accelerator, another driver";
  assert_int_equal(was_kept(&op), 0);
  op.driver = "emulated accelerator, "; /* as the back end says it */
  assert_int_equal(was_kept(&op), 1);
  drop(timer, w.stream);
  drop(timer_other, w_other.stream);
}

/* ---- cold caches ---- */

typedef struct cold_work {
  work of;
  uint32_t fills, fails; /* fails: the call that does */
} cold_work;

/* Longer than what is measured: in no sample. */
static int fill(void *user) {
  cold_work *const c = user;
  if (++c->fills == c->fails) return 7;
  emulated_launch(c->of.stream, 3000000);
  return 0;
}

static void before_each_cold_sample_the_devices_caches_are_written_over(void **state) {
  (void)state;
  cold_work c = {{emulated_create(0), 500000, 0}, 0, 0};
  prof_op_stream place = place_of(c.of.stream, device);
  prof_op_timer *timer = NULL;
  prof_op_result *result = NULL;
  prof_op_options options = each_run;
  size_t count = 0;
  place.cold = fill;
  place.user = &c;
  options.caches = PROF_OP_COLD;
  options.no_reuse = 1;
  assert_int_equal(prof_op_timer_create(&place, &timer), PROF_OK);
  const prof_op op = op_of(&c.of, "cold on a device", timer);
  const uint64_t begun_ns = now_ns();
  if (prof_op_profile(&op, &options, &result) != PROF_OK) fail_msg("%s", prof_last_error());
  assert_int_equal(info_of(result).caches, PROF_OP_COLD);
  const double *const us = prof_op_samples(result, &count);
  assert_int_equal(count, SAMPLES);
  assert_int_equal(c.fills, SAMPLES);
  double sum_us = 0;
  for (size_t i = 0; i < count; i++) {
    assert_true(us[i] >= 500);
    sum_us += us[i];
  }
  /* The stream does one thing after the other, so what the fills took is beside the samples. */
  assert_true(sum_us + SAMPLES * 3000 <= (double)(now_ns() - begun_ns) / 1e3);
  prof_op_result_destroy(result);
  options.caches = PROF_OP_WARM;
  assert_int_equal(prof_op_profile(&op, &options, &result), PROF_OK);
  assert_int_equal(c.fills, SAMPLES); /* not asked for */
  prof_op_result_destroy(result);
  options.caches = PROF_OP_COLD;
  c.fails = c.fills + 2;
  assert_int_equal(prof_op_profile(&op, &options, &result), PROF_E_OPERATOR);
  assert_non_null(strstr(prof_last_error(), "cold: returned 7"));
  drop(timer, c.of.stream);
}

static void says(const prof_op_result *result, uint32_t is_device_warm, const char *text) {
  char said[512];
  prof_op_text(result, said, sizeof said);
  assert_int_equal(info_of(result).is_device_warm, is_device_warm);
  if (!strstr(said, text)) fail_msg("'%s' has no '%s'", said, text);
}

static void a_stream_without_a_fill_has_the_hosts_caches_cold_alone(void **state) {
  (void)state;
  static const char warm[] = " of 1 run, the host's caches cold, the device's as they were";
  cold_work c = {{emulated_create(0), 10000, 0}, 0, 0};
  prof_op_stream place = place_of(c.of.stream, device);
  prof_op_timer *with_fill = NULL, *const without = timer_of(c.of.stream, device);
  prof_op_result *cold = NULL, *kept = NULL, *host = NULL, *mine = NULL;
  prof_op_comparison comparison = {.size = sizeof comparison};
  prof_op_options options = each_run;
  options.caches = PROF_OP_COLD;
  place.cold = fill;
  place.user = &c;
  assert_int_equal(prof_op_timer_create(&place, &with_fill), PROF_OK);
  prof_op op = op_of(&c.of, "caches", with_fill);
  assert_int_equal(prof_op_profile(&op, &options, &cold), PROF_OK);
  says(cold, 0, " of 1 run, cold caches");
  op.timer = without;
  assert_int_equal(prof_op_profile(&op, &options, &host), PROF_OK);
  assert_int_equal(info_of(host).was_kept, 0); /* the other one is not the same */
  says(host, 1, warm);
  assert_int_equal(prof_op_profile(&op, &options, &kept), PROF_OK);
  assert_int_equal(info_of(kept).was_kept, 1);
  says(kept, 1, warm);
  assert_int_equal(prof_op_compare(cold, host, 0, &comparison), PROF_E_INVALID);
  assert_non_null(strstr(prof_last_error(), "the device's caches cold"));
  op.device = PROF_HOST; /* whoever does not say whose it is */
  assert_int_equal(prof_op_profile(&op, &options, &mine), PROF_OK);
  says(mine, 1, warm);
  prof_op_result *const all[] = {cold, host, kept, mine};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) prof_op_result_destroy(all[i]);
  prof_op_timer_destroy(with_fill);
  drop(without, c.of.stream);
}

/* A fill takes six times what is measured: members that ran beside one, or one after the other,
   would show. */
static void a_group_with_cold_caches_begins_when_all_are_written_over(void **state) {
  (void)state;
  cold_work c[2] = {{{emulated_create(0), 500000, 0}, 0, 0},
                    {{emulated_create(0), 500000, 0}, 0, 0}};
  prof_op_timer *timers[2] = {NULL, NULL};
  prof_op ops[2];
  prof_op_result *results[3] = {NULL, NULL, NULL};
  prof_op_overlap overlap = {.size = sizeof overlap};
  prof_op_options options = each_run;
  options.caches = PROF_OP_COLD;
  options.no_reuse = 1;
  for (int i = 0; i < 2; i++) {
    prof_op_stream place = place_of(c[i].of.stream, device);
    /* the other one's device has no such caches: the processor's are written over for it */
    if (i == 0) place.cold = fill;
    place.user = &c[i];
    assert_int_equal(prof_op_timer_create(&place, &timers[i]), PROF_OK);
    ops[i] = op_of(&c[i].of, i ? "cold group 1" : "cold group 0", timers[i]);
  }
  launch_at_once(&c[0].of, &c[1].of);
  if (prof_op_profile_group(ops, 2, PROF_OP_STREAMS, &options, results, &overlap) != PROF_OK)
    fail_msg("%s", prof_last_error());
  launch_at_once(NULL, NULL);
  assert_int_equal(c[0].fills, 2 * SAMPLES); /* alone, and in the group */
  assert_int_equal(c[1].fills, 0);
  says(results[0], 0, ", cold caches");
  says(results[1], 1, "the device's as they were");
  says(results[2], 0, ", cold caches"); /* of one device, which the first one's fill is of */
  for (int j = 0; j < 3; j++) prof_op_result_destroy(results[j]);
  assert_true(overlap.group_us >= 500);
  c[0].fails = c[0].fills + SAMPLES / 2;
  assert_int_equal(prof_op_profile_group(ops, 2, PROF_OP_STREAMS, &options, results, &overlap),
                   PROF_E_OPERATOR);
  assert_non_null(strstr(prof_last_error(), "cold: returned 7"));
  for (int i = 0; i < 2; i++) drop(timers[i], c[i].of.stream);
}

/* ---- what cannot be timed ---- */

static void a_stream_that_cannot_be_timed_is_refused_with_the_reason(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(1);
  prof_op_timer *timer = NULL;
  prof_op_stream place = place_of(stream, device);
  refuse(place, PROF_E_INVALID, "is device 12:1's, not 12:0's");
  place.device.index = 1;
  place.stream = 0;
  refuse(place, PROF_E_INVALID, "emulated: stream 0x0");
  place.stream = handle_of(stream);
  emulated_fault.is_capturing = 1;
  refuse(place, PROF_E_BUSY, "being captured into a graph");
  emulated_fault.is_capturing = 0;
  place.device.type = 99;
  refuse(place, PROF_E_UNSUPPORTED,
         "device 99:1: no back end serves devices of that type; PROF_BACKENDS names plug-ins");
  place.size = 0;
  refuse(place, PROF_E_INVALID, "prof_op_stream.size");
  assert_int_equal(prof_op_timer_create(NULL, &timer), PROF_E_INVALID);
  assert_int_equal(prof_op_timer_create(&place, NULL), PROF_E_INVALID);
  prof_op_timer_destroy(NULL);
  assert_int_equal(emulated_event_count(), 0);
  emulated_destroy(stream);
}

/* The last error's time: the patience, or more. */
static void expect_waited(double least_s) {
  static const char words[] = "not passed after ";
  const char *const at = strstr(prof_last_error(), words);
  const double waited_s = at ? strtod(at + strlen(words), NULL) : -1;
  if (waited_s < least_s) fail_msg("'%s': %.3f s or more", prof_last_error(), least_s);
}

static void a_device_that_never_passes_an_event_ends_the_measurement(void **state) {
  (void)state;
  work w = {emulated_create(0), 1000, 0};
  prof_op_stream place = place_of(w.stream, device);
  prof_op_timer *timer = NULL;
  place.patience_ns = 20000000;
  assert_int_equal(prof_op_timer_create(&place, &timer), PROF_OK);
  const prof_op op = op_of(&w, "for ever", timer);
  set(&emulated_fault.lost_every, 1);
  fail_to_profile(&op, "for ever: the timer emulated events of 12:0: stream 0x");
  expect_waited(0.020);
  fail_to_profile(&op, "not passed after "); /* nor is it recorded again */
  expect_waited(0.020);
  prof_op_timer_destroy(timer); /* its events are not: the device has them */
  assert_int_equal(emulated_event_count(), 2);
  emulated_destroy(w.stream);
}

static void what_the_back_end_refuses_ends_the_measurement(void **state) {
  (void)state;
  work w = {emulated_create(0), 1000, 0};
  prof_op_timer *const timer = timer_of(w.stream, device);
  const prof_op op = op_of(&w, "refused", timer);
  set(&emulated_fault.zero_every, 100);
  fail_to_profile(&op, "its event's time: 0, which stands for none");
  set(&emulated_fault.zero_every, 0);
  set(&emulated_fault.reversed_every, 3); /* of three samples one's end is before its begin */
  fail_to_profile(&op, "the timer emulated events of 12:0 says -");
  set(&emulated_fault.reversed_every, 0);
  set(&emulated_fault.refused_every, 1);
  fail_to_profile(&op, "no event can be recorded: the vendor's library says an error");
  set(&emulated_fault.refused_every, 0);
  prof_op_result_destroy(profile(&op)); /* nothing of that is left */
  drop(timer, w.stream);
}

typedef struct flushes {
  int count, code;
} flushes;

static int flush(void *user) {
  flushes *const f = user;
  f->count++;
  return f->code;
}

static void each_samples_end_is_sent_to_the_device(void **state) {
  enum { TIMER_LOOKS = 64 }; /* at what it may be wrong by */
  (void)state;
  work w = {emulated_create(0), 1000, 0};
  flushes f = {0, 0};
  prof_op_stream place = place_of(w.stream, device);
  prof_op_timer *timer = NULL;
  place.flush = flush;
  place.user = &f;
  assert_int_equal(prof_op_timer_create(&place, &timer), PROF_OK);
  const prof_op op = op_of(&w, "flushed", timer);
  prof_op_result_destroy(profile(&op));
  assert_int_equal(f.count, 1 + TIMER_LOOKS + SAMPLES); /* 1: what was put there when it was made */
  f.code = -36;
  prof_op_cache_reset(NULL);
  fail_to_profile(&op, "flush: returned -36");
  drop(timer, w.stream);
  assert_int_equal(emulated_event_count(), 0);
}

static void a_forked_child_is_told(void **state) {
  (void)state;
  work w = {emulated_create(0), 1000, 0};
  prof_op_timer *const timer = timer_of(w.stream, device);
  const prof_op op = op_of(&w, "forked", timer);
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    prof_op_result *result = NULL;
    hang_guard();
    const bool is_told = prof_op_profile(&op, &each_run, &result) == PROF_E_OPERATOR &&
                         strstr(prof_last_error(), "forked from the one that opened it");
    prof_op_timer_destroy(timer);
    _exit(is_told ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  prof_op_result_destroy(profile(&op));
  drop(timer, w.stream);
}

static int begin(void **state) {
  (void)state;
  memset(&emulated_fault, 0, sizeof emulated_fault);
  prof_op_cache_reset(NULL);
  return prof_backend_add(&emulated_backend);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(a_sample_is_what_the_devices_clock_says, begin),
      cmocka_unit_test_setup(events_that_tell_distances_alone_will_do, begin),
      cmocka_unit_test_setup(what_is_short_is_run_many_times, begin),
      cmocka_unit_test_setup(a_group_has_its_streams_at_once, begin),
      cmocka_unit_test_setup(a_group_with_one_timer_for_two_is_refused, begin),
      cmocka_unit_test_setup(a_groups_error_is_that_of_the_member_that_failed, begin),
      cmocka_unit_test_setup(results_are_kept_for_the_device_and_its_events, begin),
      cmocka_unit_test_setup(before_each_cold_sample_the_devices_caches_are_written_over, begin),
      cmocka_unit_test_setup(a_stream_without_a_fill_has_the_hosts_caches_cold_alone, begin),
      cmocka_unit_test_setup(a_group_with_cold_caches_begins_when_all_are_written_over, begin),
      cmocka_unit_test_setup(a_stream_that_cannot_be_timed_is_refused_with_the_reason, begin),
      cmocka_unit_test_setup(what_the_back_end_refuses_ends_the_measurement, begin),
      cmocka_unit_test_setup(each_samples_end_is_sent_to_the_device, begin),
      cmocka_unit_test_setup(a_forked_child_is_told, begin),
      /* the last: two events stay */
      cmocka_unit_test_setup(a_device_that_never_passes_an_event_ends_the_measurement, begin),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
