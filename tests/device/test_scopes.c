/* WITH_GPU_PROFILER on an emulated device: each scope that its device was done with stands in the
   capture once, on its stream, at its time, and points at the host's. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scope_sums.h"

#include "alone.h"

static bool is_named(const prof_event *event, const char *name) {
  return event->name_bytes == strlen(name) && memcmp(event->name, name, event->name_bytes) == 0;
}

/* ---- sums ---- */

static sums stop_and_sum(void) {
  assert_int_equal(prof_stop(), PROF_OK);
  collector_has_ended();
  prof_trace *const trace = get();
  const sums s = sums_of(trace);
  prof_trace_destroy(trace);
  return s;
}

static void each_at_its_time(prof_device on) {
  enum { COUNT = 20 };
  emulated_stream *const stream = emulated_create(0);
  for (int i = 0; i < COUNT; i++) {
    char name[32];
    snprintf(name, sizeof name, "kernel %d", i);
    WITH_GPU_PROFILER(on, (uintptr_t)stream, name, "made up", PROF_NO_ARGS,
                      { emulated_launch(stream, 300000); });
  }
  emulated_wait(stream);
  settle(COUNT);
  assert_int_equal(prof_stop(), PROF_OK);
  prof_trace *const trace = get();
  const prof_trace_info info = info_of(trace);
  prof_cursor *cursor = NULL;
  static prof_event event;
  int host = 0, on_device = 0;
  prof_trace_device about = {.size = sizeof about};
  assert_int_equal(prof_trace_device_get(trace, 0, &about), PROF_OK);
  /* how near the collector's looks were is the machine's affair; that the truth lies inside is
     looked at below */
  assert_in_range(about.clock_error_ns, 1, 1000000000);
  const uint64_t early_ns = about.is_clock_read ? 0 : about.clock_error_ns;
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) {
    const prof_trace_thread thread = thread_of(trace, event.thread);
    char name[32];
    assert_int_equal(event.kind, PROF_EVENT_SCOPE);
    assert_int_equal(event.device.type, on.type);
    assert_int_equal(event.stream, (uintptr_t)stream);
    if (!thread.is_stream) {
      host++;
      continue;
    }
    assert_int_equal(thread.device.type, on.type);
    assert_int_equal(thread.stream, (uintptr_t)stream);
    snprintf(name, sizeof name, "kernel %d", on_device);
    assert_true(is_named(&event, name));
    /* Its events lie between the work before it, and the work behind it. */
    uint64_t begin_ns, end_ns, unused, before_ns = info.start_ns, behind_ns = UINT64_MAX;
    emulated_truth(stream, (uint64_t)on_device, &begin_ns, &end_ns);
    if (on_device > 0) emulated_truth(stream, (uint64_t)on_device - 1, &unused, &before_ns);
    if (on_device < COUNT - 1) emulated_truth(stream, (uint64_t)on_device + 1, &behind_ns, &unused);
    const uint64_t from = info.start_ns + event.start_ns, to = from + event.duration_ns,
                   slack_ns = 2000;
    if (from > begin_ns + slack_ns || from + slack_ns + early_ns < before_ns ||
        to + slack_ns + early_ns < end_ns || (behind_ns != UINT64_MAX && to > behind_ns + slack_ns))
      fail_msg("kernel %d: %ld ns after its begin, %ld ns after its end", on_device,
               (long)(from - begin_ns), (long)(to - end_ns));
    on_device++;
  }
  prof_cursor_destroy(cursor);
  assert_int_equal(host, COUNT);
  assert_int_equal(on_device, COUNT);
  for (int i = 0; i < PROF_LOSS_COUNT; i++) assert_int_equal(info.lost_count[i], 0);
  prof_trace_destroy(trace);
  emulated_destroy(stream);
}

static void each_scope_has_a_device_side_at_its_time(void **state) {
  (void)state;
  each_at_its_time(device);
}

/* Nothing is known but that each was not past when it was launched, and was when it was looked
   at. */
static void by_distances_alone_too(void **state) {
  (void)state;
  assert_int_equal(prof_backend_add(&emulated_by_distance), PROF_OK);
  emulated_fault.clock_offset_ns = -1234567890;
  each_at_its_time((prof_device){EMULATED_BY_DISTANCE_TYPE, 0});
}

/* A time far from its stream's first event is as exact as a near one: hours are as seconds here. */
static void distances_lose_nothing_over_time(void **state) {
  enum { COUNT = 200, BUSY_NS = 100000 };
  (void)state;
  const prof_device on = {EMULATED_BY_DISTANCE_TYPE, 1};
  assert_int_equal(prof_backend_add(&emulated_by_distance), PROF_OK);
  emulated_stream *const stream = emulated_create(1);
  for (int i = 0; i < COUNT; i++) {
    WITH_GPU_PROFILER(on, (uintptr_t)stream, "kernel", "test", PROF_NO_ARGS,
                      { emulated_launch(stream, BUSY_NS); });
    emulated_wait(stream);
    emulated_fault.clock_step_ns += 20000000000; /* on the device's clock 20 s pass at each */
    settle((uint64_t)i + 1);
  }
  assert_int_equal(prof_stop(), PROF_OK);
  prof_trace *const trace = get();
  prof_cursor *cursor = NULL;
  static prof_event event;
  uint64_t count = 0, at = 0;
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) {
    uint64_t begin_ns, end_ns;
    if (!(event.flags & PROF_EVENT_ON_DEVICE)) continue;
    emulated_truth(stream, at++, &begin_ns, &end_ns);
    count += event.launch.device_end_ns - event.launch.device_start_ns + 2000 > end_ns - begin_ns &&
             event.launch.device_end_ns - event.launch.device_start_ns >= BUSY_NS - 2000;
  }
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  assert_int_equal(at, COUNT);
  assert_in_range(count, COUNT - 1, COUNT); /* the first has no zero yet before it */
  emulated_destroy(stream);
}

static void events_are_used_again(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(0);
  for (int i = 0; i < 100; i++) {
    launch(stream, 100, 0);
    emulated_wait(stream);
    settle(100 * ((uint64_t)i + 1));
  }
  /* never more than were on their way at once, and a lot */
  assert_in_range(emulated_event_count(), 2, 2 * (100 + 16));
  const sums s = stop_and_sum();
  assert_int_equal(s.host, 10000);
  assert_int_equal(s.on_device, 10000);
  emulated_destroy(stream);
}

static void a_device_that_is_behind_costs_its_side_alone(void **state) {
  enum { MANY = 5000 };
  (void)state;
  emulated_stream *const stream = emulated_create(0);
  hold(1);
  emulated_launch(stream, 0); /* all wait behind it */
  launch(stream, MANY, 0);
  hold(0);
  emulated_wait(stream);
  settle(MANY);
  const sums s = stop_and_sum();
  assert_int_equal(s.host, MANY);
  assert_int_equal(s.on_device + s.lost_full, MANY);
  assert_int_equal(s.on_device, 4096);
  assert_int_equal(s.lost_late + s.lost_times, 0);
  emulated_destroy(stream);
}

static void what_is_not_past_at_the_stop_is_counted(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(0);
  launch(stream, 10, 0);
  emulated_wait(stream);
  settle(10);
  hold(1);
  emulated_launch(stream, 0);
  launch(stream, 7, 0);
  sums s = stop_and_sum(); /* comes back: nobody waits for the device */
  hold(0);
  assert_int_equal(s.host, 17);
  assert_int_equal(s.on_device, 10);
  assert_int_equal(s.lost_late, 7);
  assert_int_equal(prof_start(1), PROF_OK);
  launch(stream, 3, 0);
  emulated_wait(stream);
  settle(13);
  s = stop_and_sum();
  assert_int_equal(s.on_device, 13); /* the seven do not come into the next session */
  assert_int_equal(s.lost_late, 7);
  emulated_destroy(stream);
}

/* ---- threads and streams ---- */

enum { THREADS = 8, STREAMS = 4, EACH = 500 };
static emulated_stream *streams[STREAMS];

static void *work(void *number) {
  for (int i = 0; i < EACH; i++) {
    const int at = (i + *(int *)number) % STREAMS;
    const prof_device on = {EMULATED_TYPE, at / 2};
    WITH_GPU_PROFILER(on, (uintptr_t)streams[at], "outer", "test", PROF_NO_ARGS, {
      WITH_BASE_PROFILER(PROF_HOST, "between", "test", PROF_NO_ARGS, {});
      WITH_GPU_PROFILER(on, (uintptr_t)streams[at], "inner", "test", PROF_NO_ARGS,
                        { emulated_launch(streams[at], 0); });
    });
    if (i % 50 == 0) emulated_wait(streams[at]);
  }
  return NULL;
}

static void two_devices_and_four_streams_from_eight_threads(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  int numbers[THREADS];
  for (uint32_t i = 0; i < STREAMS; i++) streams[i] = emulated_create(i / 2);
  launch(streams[0], 1, 0); /* opens the back end: a scope in the meantime has the host side */
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i;
    assert_int_equal(pthread_create(&threads[i], NULL, work, &numbers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < STREAMS; i++) emulated_wait(streams[i]);
  settle(1 + 2 * THREADS * EACH);
  const sums s = stop_and_sum();
  assert_int_equal(s.host, 1 + 3 * THREADS * EACH);
  assert_int_equal(s.on_device, 1 + 2 * THREADS * EACH);
  assert_int_equal(s.streams, STREAMS);
  for (int i = 0; i < STREAMS; i++) emulated_destroy(streams[i]);
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What was past at a stop is there. The exception: the collector had no processor for the 100 ms
   that this stop, or the previous one, waits for its end. */
static void starts_and_stops(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(0);
  uint64_t in_time = 0;
  assert_int_equal(prof_stop(), PROF_OK);
  for (int i = 0; i < 1000; i++) {
    const bool had_ended = !collector_is_there();
    assert_int_equal(prof_start(1), PROF_OK);
    launch(stream, 1, 0);
    if (i % 2) emulated_wait(stream);
    const uint64_t begun_ns = now_ns();
    assert_int_equal(prof_stop(), PROF_OK);
    in_time += i % 2 && had_ended && now_ns() - begun_ns < 90000000;
  }
  collector_has_ended();
  prof_trace *const trace = get();
  const sums s = sums_of(trace);
  /* it was read when that came */
  const uint64_t lost_at_the_stop = info_of(trace).lost_count[PROF_LOSS_LATE];
  prof_trace_destroy(trace);
  assert_int_equal(s.host, 1000);
  /* times: it came while the recording before had not ended */
  assert_int_equal(s.on_device + s.lost_late + s.lost_full + s.lost_times + lost_at_the_stop, 1000);
  assert_true(s.on_device >= in_time);
  emulated_destroy(stream);
}

/* A scope that is open when its recording ends comes to its end in no recording, or in the next
   one: its device's side is late. */
static void a_scope_that_outlives_its_recording_is_late(void **state) {
  (void)state;
  const prof_options other = {.size = sizeof other, .level = 1, .cap_bytes = 32 << 20};
  emulated_stream *const stream = emulated_create(0);
  launch(stream, 1, 0);
  WITH_GPU_PROFILER(device, (uintptr_t)stream, "outlives", "test", PROF_NO_ARGS, {
    emulated_wait(stream);
    settle(1);
    assert_int_equal(prof_stop(), PROF_OK);
    collector_has_ended();
  });
  emulated_wait(stream);
  assert_int_equal(prof_start_with(&other), PROF_OK);
  launch(stream, 3, 0);
  emulated_wait(stream);
  settle(3);
  const sums s = stop_and_sum();
  assert_int_equal(s.on_device, 3);
  assert_int_equal(s.lost_late, 1);
  emulated_destroy(stream);
}

/* ---- what goes wrong ---- */

static void without_a_back_end_the_host_side_stands_alone(void **state) {
  (void)state;
  const prof_device nobodys = {77, 0};
  for (int i = 0; i < 10; i++) WITH_GPU_PROFILER(nobodys, 5, "kernel", "test", PROF_NO_ARGS, {});
  const sums s = stop_and_sum();
  assert_int_equal(s.host, 10);
  assert_int_equal(s.on_device + s.lost_full + s.lost_late + s.lost_times + s.streams, 0);
}

static void *ends_in_a_scope(void *stream) {
  WITH_GPU_PROFILER(device, (uintptr_t)stream, "not ended", "test", PROF_NO_ARGS,
                    { pthread_exit(NULL); });
  return NULL;
}

/* What stood open on them is used again by the next. */
static void threads_that_end_inside_of_scopes_take_no_events_with_them(void **state) {
  (void)state;
  enum { MORE_THAN_PAIRS = 4200, AFTER = 100 };
  emulated_stream *const stream = emulated_create(1);
  for (int i = 0; i < MORE_THAN_PAIRS; i++) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, ends_in_a_scope, stream), 0);
    pthread_join(thread, NULL);
  }
  for (int i = 0; i < AFTER; i++)
    WITH_GPU_PROFILER(device, (uintptr_t)stream, "after", "test", PROF_NO_ARGS, {});
  emulated_wait(stream);
  settle(AFTER);
  prof_trace *const trace = get();
  const sums s = sums_of(trace);
  assert_int_equal(s.on_device, AFTER);
  assert_int_equal(s.lost_full + s.lost_times, 0);
  prof_trace_destroy(trace);
  assert_int_equal(prof_stop(), PROF_OK);
  emulated_destroy(stream);
}

static uint32_t is_over;

static void *scopes_that_are_refused(void *stream) {
  while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
    WITH_GPU_PROFILER(device, (uintptr_t)stream, "refused", "test", PROF_NO_ARGS, {});
  return NULL;
}

/* What is lost outside of the gate must not be counted in a capture that has just gone:
   ThreadSanitizer sees any access to it. */
static void captures_come_and_go_beside_scopes_that_are_refused(void **state) {
  (void)state;
  enum { AT_ONCE = 3, STARTS = 200 };
  pthread_t threads[AT_ONCE];
  emulated_stream *const stream = emulated_create(1);
  __atomic_store_n(&emulated_fault.refused_every, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < AT_ONCE; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, scopes_that_are_refused, stream), 0);
  assert_int_equal(prof_stop(), PROF_OK);
  for (int i = 0; i < STARTS; i++) {
    const prof_options options = {
        .size = sizeof options, .level = 1, .cap_bytes = i % 2 ? 1 << 20 : 0};
    assert_int_equal(prof_start_with(&options), PROF_OK);
    health();
    usleep((unsigned)(i % 7) * 100);
    assert_int_equal(prof_stop(), PROF_OK);
  }
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < AT_ONCE; i++) pthread_join(threads[i], NULL);
  emulated_destroy(stream);
}

/* ---- graphs, refusals ---- */

static void a_stream_that_is_captured_gets_no_events(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(0);
  emulated_fault.is_capturing = 1;
  launch(stream, 5, 0);
  emulated_fault.is_capturing = 0;
  launch(stream, 2, 0);
  emulated_wait(stream);
  settle(2);
  WITH_GPU_PROFILER(device, 0, "no stream", "test", PROF_NO_ARGS, {});
  const sums s = stop_and_sum();
  assert_int_equal(s.host, 8);
  assert_int_equal(s.on_device, 2);
  emulated_destroy(stream);
}

static void faults(emulated_faults given, uint64_t lost_low, uint64_t lost_high) {
  enum { COUNT = 1000 };
  emulated_stream *const stream = emulated_create(0);
  emulated_fault = given;
  for (int i = 0; i < COUNT / 10; i++) {
    launch(stream, 10, 0);
    emulated_wait(stream);
  }
  settle(COUNT);
  const sums s = stop_and_sum();
  assert_int_equal(s.host, COUNT);
  assert_int_equal(s.on_device + s.lost_times + s.lost_late + s.lost_full, COUNT);
  assert_in_range(s.lost_times, lost_low, lost_high);
  memset(&emulated_fault, 0, sizeof emulated_fault);
  emulated_destroy(stream);
}

static void times_of_zero_are_lost_and_counted(void **state) {
  (void)state;
  /* of 2000 events 200, no two of one scope */
  faults((emulated_faults){.has_clock = 1, .zero_every = 10}, 200, 200);
}

static void times_that_run_back_are_lost_and_counted(void **state) {
  (void)state;
  /* of those at a scope's end */
  faults((emulated_faults){.has_clock = 1, .reversed_every = 10}, 90, 200);
}

static void records_that_fail_are_lost_and_counted(void **state) {
  (void)state;
  faults((emulated_faults){.has_clock = 1, .refused_every = 11}, 150, 200);
}

static void a_call_that_hangs_holds_nobody(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(0);
  launch(stream, 1, 0);
  emulated_wait(stream);
  __atomic_store_n(&emulated_fault.hangs, 1, __ATOMIC_RELAXED);
  launch(stream, 10, 0);
  prof_trace_destroy(get());
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_start(1), PROF_OK);
  WITH_BASE_PROFILER(PROF_HOST, "goes on", "test", PROF_NO_ARGS, {});
  launch(stream, 3, 0); /* nobody asks for it any more */
  assert_int_equal(prof_stop(), PROF_OK);
  prof_trace *const trace = get();
  const sums s = sums_of(trace);
  prof_trace_destroy(trace);
  assert_int_equal(s.host, 1 + 10 + 4);
  __atomic_store_n(&emulated_fault.hangs, 0, __ATOMIC_RELAXED);
  emulated_wait(stream);
  usleep(50000);
}

/* ---- forks, ends ---- */

/* Also not by another back end of the same library, as the built-in one beside the layer for
   OpenCL. */
static void a_forked_child_has_no_device(void **state) {
  (void)state;
  prof_backend other = emulated_backend;
  other.name = "other";
  other.metric = NULL;
  other.sample = NULL;
  assert_int_equal(prof_backend_add(&other), PROF_OK);
  emulated_stream *const stream = emulated_create(0);
  launch(stream, 10, 0);
  emulated_wait(stream);
  settle(10);
  WITH_GPU_PROFILER(device, (uintptr_t)stream, "around the fork", "test", PROF_NO_ARGS, {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
      /* and no work: streams have no threads there, as a real vendor's have not, and who held a
         lock is gone */
      for (int i = 0; i < 5; i++)
        WITH_GPU_PROFILER(device, (uintptr_t)stream, "kernel", "test", PROF_NO_ARGS, {});
      prof_trace *const trace = get();
      const sums s = sums_of(trace);
      prof_backend_state now = {.size = sizeof now};
      int forked = 0;
      for (uint32_t i = 0; prof_backend_status(i, &now) == PROF_OK; i++)
        forked += now.result == PROF_BACKEND_FORKED && now.device_type == EMULATED_TYPE;
      const bool is_good = s.host == 5 && s.on_device == 0 &&
                           s.lost_late + s.lost_full + s.lost_times == 0 && forked == 2;
      prof_trace_destroy(trace);
      _exit(is_good && prof_stop() == PROF_OK ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
  });
  emulated_wait(stream);
  settle(11);
  const sums s = stop_and_sum();
  assert_int_equal(s.host, 11);
  assert_int_equal(s.on_device, 11);
  emulated_destroy(stream);
}

static void an_exit_with_work_in_flight_neither_hangs_nor_crashes(void **state) {
  (void)state;
  for (int i = 0; i < 20; i++) {
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
      hang_guard();
      execl("/proc/self/exe", "scopes", "leaves", (char *)NULL);
      _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
  }
}

static void leave(void) {
  emulated_stream *const stream = emulated_create(0);
  launch(stream, 100, 0);
  emulated_launch(stream, 500000000);
  launch(stream, 100, 0);
  exit(0);
}

static void *launch_and_end(void *stream) {
  launch(stream, 100, 0);
  return NULL;
}

static void threads_that_end_leave_their_pairs_to_others(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(0);
  for (int i = 0; i < 50; i++) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, launch_and_end, stream), 0);
    pthread_join(thread, NULL);
    emulated_wait(stream);
    settle(100 * ((uint64_t)i + 1));
  }
  assert_in_range(emulated_event_count(), 2, 2 * (100 + 16));
  assert_int_equal(stop_and_sum().on_device, 5000);
  emulated_destroy(stream);
}

static void *launch_one(void *stream) {
  launch(stream, 1, 0);
  return NULL;
}

static void threads_that_come_while_it_is_opened_try_again(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(0);
  pthread_t thread;
  emulated_fault.open_ms = 300;
  assert_int_equal(pthread_create(&thread, NULL, launch_one, stream), 0);
  usleep(100000);
  launch(stream, 10, 0);
  pthread_join(thread, NULL);
  launch(stream, 10, 0);
  emulated_wait(stream);
  settle(21);
  const sums s = stop_and_sum();
  assert_int_equal(s.host, 21);
  assert_int_equal(s.on_device + s.lost_times, 21);
  assert_in_range(s.on_device, 11, 21); /* all that came when it was open */
  emulated_destroy(stream);
}

/* longjmp() over an end: the pair that nobody ends is used again. */
static void a_scope_that_is_skipped_gives_its_events_back(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(0);
  const prof_details details = {"skipped",
                                "test",
                                PROF_NUL_TERMINATED,
                                PROF_NUL_TERMINATED,
                                PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL | PROF_I_ON_STREAM,
                                device,
                                0,
                                (uintptr_t)stream,
                                PROF_NO_ARGS};
  static prof_site site = PROF_I_SITE(1);
  for (int i = 0; i < 200; i++)
    WITH_GPU_PROFILER(device, (uintptr_t)stream, "around", "test", PROF_NO_ARGS,
                      { prof_i_gpu_begin_1(&site, &details); });
  emulated_wait(stream);
  settle(200);
  const sums s = stop_and_sum();
  assert_int_equal(s.on_device, 200);
  assert_in_range(emulated_event_count(), 2, 2 * 256 + 64);
  emulated_destroy(stream);
}

#define TESTS(X)                                           \
  X(each_scope_has_a_device_side_at_its_time)              \
  X(by_distances_alone_too)                                \
  X(distances_lose_nothing_over_time)                      \
  X(events_are_used_again)                                 \
  X(a_device_that_is_behind_costs_its_side_alone)          \
  X(what_is_not_past_at_the_stop_is_counted)               \
  X(two_devices_and_four_streams_from_eight_threads)       \
  X(starts_and_stops)                                      \
  X(a_scope_that_outlives_its_recording_is_late)           \
  X(without_a_back_end_the_host_side_stands_alone)         \
  X(a_stream_that_is_captured_gets_no_events)              \
  X(times_of_zero_are_lost_and_counted)                    \
  X(times_that_run_back_are_lost_and_counted)              \
  X(records_that_fail_are_lost_and_counted)                \
  X(a_call_that_hangs_holds_nobody)                        \
  X(a_forked_child_has_no_device)                          \
  X(an_exit_with_work_in_flight_neither_hangs_nor_crashes) \
  X(threads_that_end_leave_their_pairs_to_others)          \
  X(a_scope_that_is_skipped_gives_its_events_back)         \
  X(threads_that_come_while_it_is_opened_try_again)        \
  X(captures_come_and_go_beside_scopes_that_are_refused)   \
  X(threads_that_end_inside_of_scopes_take_no_events_with_them)
ALONE_TESTS

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "leaves") == 0) {
    begin();
    leave();
  }
  return alone_main(argc, argv);
}
