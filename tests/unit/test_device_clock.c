/* A device's clock beside the host's, with clocks whose truth is known. The stated error covers the
   true one in 999 of 1000 trials, whatever the device's clock does. Converted times stay in
   order. */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "core/buffer/clock.h"
#include "device/internal.h"

enum { TRIALS = 1000 };

/* ---- a device's clock ---- */

static struct {
  double drift;
  int64_t offset_ns, reading_ns; /* reading: how long a reading of it takes */
  uint64_t begun_ns;
} truth;

static uint64_t host_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t device_at(uint64_t ns) {
  return ns + (uint64_t)(truth.offset_ns +
                         (int64_t)((double)(int64_t)(ns - truth.begun_ns) * truth.drift));
}

static void spin(uint64_t ns) {
  for (const uint64_t begun = host_ns(); host_ns() - begun < ns;) {
  }
}

static int read_it(prof_backend_self *self, uint32_t index, prof_backend_pair *out) {
  (void)self, (void)index;
  out->host_before_ns = host_ns();
  spin((uint64_t)(rand() % (int)(truth.reading_ns + 1)));
  out->device_ns = device_at(host_ns());
  spin((uint64_t)(rand() % (int)(truth.reading_ns + 1)));
  out->host_after_ns = host_ns();
  return PROF_BACKEND_OK;
}

static int time_it(prof_backend_self *self, void *event, uint64_t *ns_out) {
  (void)self, (void)event, (void)ns_out;
  return PROF_BACKEND_OK;
}

static prof_i_backend readable = {.table = {.name = "readable",
                                            .clock = read_it,
                                            .event_time = time_it}},
                      unreadable = {.table = {.name = "unreadable", .event_time = time_it}};
static prof_i_device_clock it;

/* A moment whose truth is known to within width ticks. */
typedef struct moment {
  uint64_t device_ns, ticks, width;
} moment;

static moment now(void) {
  moment best = {.width = UINT64_MAX};
  for (int i = 0; i < 5; i++) {
    const uint64_t before = prof_i_clock_ticks(), ns = host_ns(), after = prof_i_clock_ticks();
    if (after - before < best.width)
      best = (moment){device_at(ns), before + (after - before) / 2, after - before};
  }
  return best;
}

static void begin(prof_i_backend *end, double drift, int64_t offset_ns) {
  truth.drift = drift;
  truth.offset_ns = offset_ns;
  truth.reading_ns = 500;
  truth.begun_ns = host_ns();
  prof_i_device_clock_init(&it, end, 0);
}

static uint64_t off_by(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

/* One moment of the device between its launch and where it is found to be past. Inside the bar? */
static bool try_one(uint64_t *worst_error) {
  uint64_t ticks = 0, error = 0;
  prof_i_device_clock_update(&it, 0);
  const uint64_t launched = prof_i_clock_ticks();
  spin((uint64_t)(rand() % 20000));
  const moment then = now();
  spin((uint64_t)(rand() % 20000));
  prof_i_device_clock_update(&it, then.device_ns);
  prof_i_device_clock_add_bound(
      &it, &(prof_i_clock_bound){then.device_ns, launched, prof_i_clock_ticks()});
  assert_true(prof_i_device_clock_to_host(&it, then.device_ns, &ticks, &error));
  if (error > *worst_error) *worst_error = error;
  return off_by(ticks, then.ticks) <= error + then.width;
}

static void try_many(prof_i_backend *end, double drift, int64_t offset_ns) {
  uint64_t worst = 0;
  int inside = 0;
  begin(end, drift, offset_ns);
  for (int i = 0; i < TRIALS; i++) inside += try_one(&worst);
  print_message("%s, drift %g, offset %ld ns: %d of %d inside, bar at most %.0f ns\n",
                end->table.name, drift, (long)offset_ns, inside, TRIALS,
                (double)worst / prof_i_clock_ticks_per_ns());
  assert_in_range(inside, TRIALS * 999 / 1000, TRIALS);
}

static void the_bar_of_a_clock_that_can_be_read_is_honest(void **state) {
  (void)state;
  try_many(&readable, 0, 0);
  try_many(&readable, 1e-5, 1234567890123);
  try_many(&readable, -1e-4, -987654321);
}

static void the_bar_of_one_that_cannot_is_honest(void **state) {
  (void)state;
  try_many(&unreadable, 0, 0);
  try_many(&unreadable, 1e-5, 1234567890123);
  try_many(&unreadable, -2e-5, -987654321);
}

/* ---- order ---- */

/* What is brought over later does not stand before what was brought over earlier, if it is later on
   the device; and an earlier moment, asked for again, stays. */
static void keep_in_order(prof_i_backend *end, double drift) {
  enum { COUNT = 3000 };
  static moment moments[COUNT];
  static uint64_t ticks[COUNT];
  uint64_t error;
  begin(end, drift, 5000000000);
  for (int i = 0; i < COUNT; i++) {
    moments[i] = now();
    spin((uint64_t)(rand() % 30000));
    if (rand() % 3 == 0) prof_i_device_clock_update(&it, moments[i].device_ns);
    prof_i_device_clock_add_bound(
        &it,
        &(prof_i_clock_bound){moments[i].device_ns, moments[i].ticks - (uint64_t)(rand() % 40000),
                              prof_i_clock_ticks()});
    assert_true(prof_i_device_clock_to_host(&it, moments[i].device_ns, &ticks[i], &error));
    if (i > 0 && ticks[i] < ticks[i - 1])
      fail_msg("moment %d stands %lu ticks before the one before it", i,
               (unsigned long)(ticks[i - 1] - ticks[i]));
    const int back = i > 50 ? i - rand() % 50 : i;
    uint64_t again;
    assert_true(prof_i_device_clock_to_host(&it, moments[back].device_ns, &again, &error));
    if (off_by(again, ticks[back]) > 1)
      fail_msg("moment %d has moved by %ld ticks after %d more", back, (long)(again - ticks[back]),
               i - back);
  }
}

static void what_was_brought_over_stays(void **state) {
  (void)state;
  keep_in_order(&readable, 0);
  keep_in_order(&readable, 1e-4);
  keep_in_order(&unreadable, 0);
  keep_in_order(&unreadable, 2e-5);
  keep_in_order(&unreadable, -2e-5);
}

/* ---- steps ---- */

/* ---- lengths ---- */

/* Scopes behind each other, each of which begins in the instant in which the previous one ended, of
   a device whose clock cannot be read. What is known of the distance narrows, is lost again while
   nothing comes, and narrows anew. The lengths in the trace are the device's, whatever that
   does. */
static void lengths_are_the_devices(void **state) {
  enum { COUNT = 4000, LENGTH_NS = 200000, IDLE_NS = 300000000 };
  (void)state;
  const double rate = prof_i_clock_ticks_per_ns();
  const uint64_t first_ticks = prof_i_clock_ticks();
  uint64_t device_ns = 5000000000, worst_ns = 0, error;
  int bent = 0;
  begin(&unreadable, 0, 0);
  srand(7);
  for (int i = 0; i < COUNT; i++) {
    uint64_t at[2], ticks[2];
    if (i % 100 == 50) device_ns += IDLE_NS;
    for (int k = 0; k < 2; k++) at[k] = device_ns + (uint64_t)k * LENGTH_NS;
    /* the truth */
    for (int k = 0; k < 2; k++)
      ticks[k] = first_ticks + (uint64_t)((double)(at[k] - 4000000000) * rate * (1 + 2e-5));
    /* Launched up to 300 us before, found past up to 1 ms behind. */
    const uint64_t launched = ticks[0] - (uint64_t)(rate * (rand() % 300000)),
                   found = ticks[1] + (uint64_t)(rate * (1000 + rand() % 1000000));
    prof_i_device_clock_add_bound(&it, &(prof_i_clock_bound){at[0], launched, found});
    prof_i_device_clock_add_bound(&it, &(prof_i_clock_bound){at[1], launched + 1, found});
    assert_true(prof_i_device_clock_to_host_begin(&it, at[0], &ticks[0], &error));
    assert_true(prof_i_device_clock_to_host(&it, at[1], &ticks[1], &error));
    const uint64_t off_ns =
        (uint64_t)((double)off_by(ticks[1] - ticks[0], (uint64_t)(LENGTH_NS * rate)) / rate);
    bent += off_ns > 500;
    if (off_ns > worst_ns) worst_ns = off_ns;
    device_ns = at[1];
  }
  print_message("of %d lengths of %d us %d are wrong by more than 0.5 us; the worst by %lu ns\n",
                COUNT, LENGTH_NS / 1000, bent, (unsigned long)worst_ns);
  assert_int_equal(bent, 0);
}

/* A scope of a device whose clock is the host's less first_ns, launched and found past then: both
   of its moments, and the worse error. */
static uint64_t first_ticks;
static void bring_over(uint64_t begin_ns, uint64_t end_ns, uint64_t launched_ns,
                       uint64_t unfinished_ns, uint64_t found_ns, int64_t told_ns[2],
                       uint64_t *error_ns) {
  const double rate = prof_i_clock_ticks_per_ns();
  const uint64_t ns[] = {begin_ns, end_ns, launched_ns, unfinished_ns, found_ns};
  uint64_t at[5], ticks[2], errors[2];
  for (int i = 0; i < 5; i++) at[i] = first_ticks + (uint64_t)((double)ns[i] * rate);
  prof_i_device_clock_add_bound(&it, &(prof_i_clock_bound){begin_ns, at[2], at[4]});
  prof_i_device_clock_add_bound(&it, &(prof_i_clock_bound){end_ns, at[3], at[4]});
  assert_true(prof_i_device_clock_to_host_begin(&it, begin_ns, &ticks[0], &errors[0]));
  assert_true(prof_i_device_clock_to_host(&it, end_ns, &ticks[1], &errors[1]));
  for (int i = 0; i < 2; i++)
    told_ns[i] = (int64_t)((double)(int64_t)(ticks[i] - first_ticks) / rate);
  *error_ns = (uint64_t)((double)(errors[0] > errors[1] ? errors[0] : errors[1]) / rate);
}

/* It was launched long before the device came to it, and was last seen at work shortly before its
   end. */
static void the_first_length_is_the_devices(void **state) {
  (void)state;
  int64_t told[2];
  uint64_t error;
  begin(&unreadable, 0, 0);
  first_ticks = prof_i_clock_ticks();
  bring_over(50000000, 50100000, 30000000, 50090000, 50150000, told, &error);
  assert_in_range(told[1] - told[0], 100000 - 50, 100000 + 50);
  assert_in_range(off_by((uint64_t)told[0], 50000000), 0, error);
}

/* One scope in ten seconds: the first tells the distance to 1 us, the others to no better than
   400. Whatever the line does in the pauses, the truth stays in the bar, and lengths are the
   device's. */
static void pauses_leave_the_bar_honest(void **state) {
  enum { COUNT = 20 };
  (void)state;
  const uint64_t pause = UINT64_C(10000000000), length = 2000000;
  begin(&unreadable, 0, 0);
  first_ticks = prof_i_clock_ticks();
  for (uint64_t i = 1; i <= COUNT; i++) {
    int64_t told[2];
    uint64_t error;
    const uint64_t at = i * pause;
    const uint64_t ahead = i == 1 ? 1000 : 400000;
    bring_over(at, at + length, at - ahead, at + length - ahead, at + length + 100000, told,
               &error);
    if (off_by((uint64_t)told[0], at) > error + 100)
      fail_msg("scope %lu: %ld ns off, said to be within %lu", (unsigned long)i,
               (long)(told[0] - (int64_t)at), (unsigned long)error);
    assert_in_range(told[1] - told[0], length - 2000, length + 2000);
  }
}

/* Two readings right behind each other, and then something that was before both: how they differ
   says nothing of that. */
static void what_lies_before_the_first_reading_is_honest(void **state) {
  (void)state;
  for (int i = 0; i < 100; i++) {
    uint64_t ticks, error;
    begin(&readable, 0, 0);
    truth.reading_ns = 2000;
    const moment then = now();
    spin(1000000);
    prof_i_device_clock_update(&it, 0);
    prof_i_device_clock_update(&it, 0);
    assert_true(prof_i_device_clock_to_host(&it, then.device_ns, &ticks, &error));
    if (off_by(ticks, then.ticks) > error + then.width)
      fail_msg("%lu ticks off, said to be within %lu", (unsigned long)off_by(ticks, then.ticks),
               (unsigned long)error);
  }
}

/* The counter's rate is measured anew meanwhile: on a busy machine the first one, of some 20 us,
   has been wrong by 0.36 %. */
static void what_lies_before_the_first_reading_stays(void **state) {
  (void)state;
  uint64_t ticks[2], errors[2];
  begin(&readable, 0, 0);
  const uint64_t then_ns = host_ns();
  spin(5000000);
  prof_i_device_clock_update(&it, 0);
  for (int i = 0; i < 2; i++) {
    assert_true(prof_i_device_clock_to_host(&it, then_ns, &ticks[i], &errors[i]));
    it.rate *= 1 - 3.6e-3;
    it.rate_error /= 10;
  }
  assert_int_equal(ticks[0], ticks[1]);
  assert_in_range(errors[1], errors[0] - errors[0] / 100, UINT64_MAX);
}

/* The counter's first rate is made of some 20 us, and may be wrong by more than two clocks ever
   part. The stated error includes that, and the rate is measured again, so that the error does not
   stay. */
static void a_rough_rate_is_in_the_bar_and_does_not_stay(void **state) {
  (void)state;
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_clear(), PROF_OK);
  assert_int_equal(prof_start(1), PROF_OK);
  const double back_ns = 1e9;
  uint64_t ticks, error;
  begin(&readable, 0, 0);
  prof_i_device_clock_update(&it, 0);
  assert_true(prof_i_device_clock_to_host(&it, host_ns() - (uint64_t)back_ns, &ticks, &error));
  assert_true((double)error >= back_ns * it.rate * it.rate_error);
  spin(15000000); /* a pair every 10 ms */
  prof_i_device_clock_update(&it, 0);
  assert_true(it.rate_error < 1e-4);
  assert_true(prof_i_device_clock_to_host(&it, host_ns() + (uint64_t)back_ns, &ticks, &error));
  assert_true((double)error < back_ns * prof_i_clock_ticks_per_ns() * 1e-3);
}

static prof_backend_pair scripted_pair;
static int read_script(prof_backend_self *self, uint32_t index, prof_backend_pair *out) {
  (void)self, (void)index;
  *out = scripted_pair;
  return PROF_BACKEND_OK;
}
static prof_i_backend scripted = {
    .table = {.name = "scripted", .clock = read_script, .event_time = time_it}};

/* Of a device whose clock gains 100 us a second: what it says at a moment of the host's. */
static uint64_t gaining(uint64_t ns) { return 5000000000 + ns + ns / 10000; }

static void look_at(uint64_t ns) {
  const uint64_t ticks = first_ticks + (uint64_t)((double)ns * it.rate);
  scripted_pair = (prof_backend_pair){.size = sizeof scripted_pair,
                                      .device_ns = gaining(ns),
                                      .host_before_ticks = ticks - 100,
                                      .host_after_ticks = ticks + 100};
  prof_i_device_clock_update(&it, 0);
}

/* Nothing reads the clock for a second. What is converted then is too late by what the device has
   gained: the later readings are before it on the host's clock. That is no step. Time stands still
   until the truth has come as far, and the stated error is honest all along. */
static void a_clock_that_gains_is_not_taken_for_one_that_was_set(void **state) {
  (void)state;
  enum { MOMENTS = 40, APART_NS = 10000 };
  uint64_t before = 0, error = 0;
  begin(&scripted, 0, 0);
  first_ticks = UINT64_C(1) << 40;
  look_at(0);
  for (uint64_t i = 0; i < MOMENTS; i++) {
    const uint64_t ns = 1000000000 + i * APART_NS,
                   truth_ticks = first_ticks + (uint64_t)((double)ns * it.rate);
    uint64_t ticks;
    assert_true(prof_i_device_clock_to_host(&it, gaining(ns), &ticks, &error));
    if (ticks < before)
      fail_msg("moment %lu stands %lu ticks before the one before it", (unsigned long)i,
               (unsigned long)(before - ticks));
    if (off_by(ticks, truth_ticks) > error + 1)
      fail_msg("moment %lu is %lu ticks off, said to be within %lu", (unsigned long)i,
               (unsigned long)off_by(ticks, truth_ticks), (unsigned long)error);
    before = ticks;
    look_at(ns + APART_NS / 2);
  }
  assert_int_equal(it.step_count, 0);
  /* it has come as far: 100 us were to be made up for */
  assert_in_range((uint64_t)((double)error / it.rate), 0, 10000);
}

static void step(prof_i_backend *end, int64_t by_ns) {
  uint64_t worst = 0;
  int inside = 0;
  begin(end, 0, 1000000000000);
  for (int i = 0; i < 50; i++) inside += try_one(&worst);
  const uint64_t before = it.step_count;
  truth.offset_ns += by_ns;
  try_one(&worst); /* the first after it may be on either side */
  for (int i = 0; i < 50; i++) inside += try_one(&worst);
  assert_int_equal(inside, 100);
  assert_int_equal(before, 0);
  assert_int_equal(it.step_count, 1);
}

static void a_clock_that_is_set_is_seen_and_counted(void **state) {
  (void)state;
  step(&readable, 300000000);
  step(&readable, -300000000);
  step(&unreadable, 300000000);
  step(&unreadable, -300000000);
}

static int start(void **state) {
  (void)state;
  return prof_start(1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_bar_of_a_clock_that_can_be_read_is_honest),
      cmocka_unit_test(the_bar_of_one_that_cannot_is_honest),
      cmocka_unit_test(what_was_brought_over_stays),
      cmocka_unit_test(lengths_are_the_devices),
      cmocka_unit_test(the_first_length_is_the_devices),
      cmocka_unit_test(pauses_leave_the_bar_honest),
      cmocka_unit_test(what_lies_before_the_first_reading_is_honest),
      cmocka_unit_test(what_lies_before_the_first_reading_stays),
      cmocka_unit_test(a_rough_rate_is_in_the_bar_and_does_not_stay),
      cmocka_unit_test(a_clock_that_gains_is_not_taken_for_one_that_was_set),
      cmocka_unit_test(a_clock_that_is_set_is_seen_and_counted)};
  return cmocka_run_group_tests(tests, start, NULL);
}
