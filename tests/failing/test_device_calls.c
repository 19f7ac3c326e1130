/* Every call of a device's scopes that can fail, failing. A host puts scopes on two streams of an
   emulated device and on one without a back end, and makes a timer. The nth malloc (calloc,
   pthread_create, ...) that prof makes is refused, for every n, in a fresh child each. Then also
   all calls from the nth on are.

   Whatever failed, each scope has its host's side, and its device's side is there or counted as
   lost. The reader sees no damage. A timer is there, or a status and a text say why not. Once
   nothing fails any more, each scope has both sides. The sanitizers check that memory is given
   back, over the same calls (tests/device).

   PROF_FAILING_ONLY=function and PROF_FAILING_NTH=n run one case alone. */
#define _GNU_SOURCE
#include <prof/device.h>
#include <prof/op.h>

#include "device/emulated/emulated.h"
#include "failing/walk.h"

#include "device/collector.h"

enum { ERRNO_OF_HOST = 12345, STREAMS = 2, EACH = 20 };

static const prof_device device = {EMULATED_TYPE, 0}, nobodys = {77, 0};

static const walk_way ways[] = {
#define WAY WALK_WAY
    WAY(malloc, ENOMEM),          WAY(calloc, ENOMEM),         WAY(realloc, ENOMEM),
    WAY(aligned_alloc, ENOMEM),   WAY(pthread_create, EAGAIN), WAY(pthread_key_create, EAGAIN),
    WAY(register_atfork, ENOMEM),
#undef WAY
};
enum { WAYS = sizeof ways / sizeof *ways };

/* ---- the child: a host ---- */

/* What the vendor's own work needs is not refused. */
static void launch(emulated_stream *stream) {
  walk.arm(0);
  emulated_launch(stream, 10000);
  walk.arm(1);
}

static void use(emulated_stream *const *streams) {
  walk.arm(1);
  errno = ERRNO_OF_HOST;
  for (int i = 0; i < EACH; i++)
    for (int s = 0; s < STREAMS; s++)
      WITH_GPU_PROFILER(device, (uintptr_t)streams[s], "kernel", "test", PROF_NO_ARGS,
                        { launch(streams[s]); });
  WITH_GPU_PROFILER(nobodys, 5, "nobody's", "test", PROF_NO_ARGS, {});
  walk.arm(0);
  check(errno == ERRNO_OF_HOST, "errno became %d", errno);
}

typedef struct sums {
  uint64_t host, on_device, lost;
} sums;

static sums sums_now(void) {
  static prof_event event;
  prof_trace *trace = NULL;
  prof_cursor *cursor = NULL;
  prof_trace_info info = {.size = sizeof info};
  check_status(prof_get(&trace), PROF_OK);
  check_status(prof_trace_info_get(trace, &info), PROF_OK);
  check(info.bad_count == 0, "%" PRIu64 " bad", info.bad_count);
  sums now = {.lost =
                  info.lost_count[PROF_LOSS_DEVICE_FULL] + info.lost_count[PROF_LOSS_DEVICE_LATE] +
                  info.lost_count[PROF_LOSS_DEVICE_TIMES] + info.lost_count[PROF_LOSS_NO_THREAD]};
  check_status(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) {
    if (event.flags & PROF_EVENT_ON_DEVICE)
      now.on_device++;
    else
      now.host++;
  }
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  return now;
}

/* Until each scope's device's side has come, or been counted. What nobody serves may be counted,
   too, if it could not be found out. */
static sums settle(uint64_t expected) {
  sums now = sums_now();
  unsigned naps = 0;
  while (now.on_device + now.lost < expected && naps < 100 * hang_seconds() && hang_nap(&naps))
    now = sums_now();
  return now;
}

static void make_timer(const emulated_stream *stream) {
  const prof_op_stream place = {
      .size = sizeof place, .device = device, .stream = (uintptr_t)stream};
  prof_op_timer *timer = NULL;
  const int status = WALK_ARMED(prof_op_timer_create(&place, &timer));
  walk_check_said(status);
  check((status == PROF_OK) == (timer != NULL), "%s, and the timer is %p", prof_status_name(status),
        (void *)timer);
  prof_op_timer_destroy(timer);
}

static int run_case(const void *unused) {
  enum { ALL = STREAMS * EACH };
  (void)unused;
  emulated_stream *const streams[STREAMS] = {emulated_create(0), emulated_create(0)};
  check_status(prof_start(1), PROF_OK);
  walk.begin(walk.plan);
  walk_check_said(WALK_ARMED(prof_backend_add(&emulated_backend)));
  use(streams);
  for (int s = 0; s < STREAMS; s++) emulated_wait(streams[s]);
  const sums first = settle(ALL);
  check(first.host == ALL + 1, "%" PRIu64 " of %d host's sides", first.host, ALL + 1);
  check(first.on_device + first.lost >= ALL && first.on_device + first.lost <= ALL + 1,
        "%" PRIu64 " device's sides and %" PRIu64 " lost, of %d", first.on_device, first.lost, ALL);
  check(first.lost == 0 || walk.plan->failed_count > 0, "%" PRIu64 " lost, and nothing failed",
        first.lost);
  make_timer(streams[0]);
  walk.plan->nth = 0;
  check_status(prof_stop(), PROF_OK);
  WAIT_WHILE(collector_is_there()); /* records before its end would be counted as late */
  check(!collector_is_there(), "prof's thread for devices does not end");
  check_status(prof_start(1), PROF_OK); /* nothing fails any more */
  use(streams);
  for (int s = 0; s < STREAMS; s++) emulated_wait(streams[s]);
  const sums last = settle(first.on_device + first.lost + ALL);
  check(last.on_device - first.on_device == ALL,
        "%" PRIu64 " of %d device's sides, and nothing failed; %" PRIu64 " lost",
        last.on_device - first.on_device, ALL, last.lost - first.lost);
  check_status(prof_stop(), PROF_OK);
  for (int s = 0; s < STREAMS; s++) emulated_destroy(streams[s]);
  return 0;
}

/* ---- the walk over all n ---- */

static void scopes_have_both_sides_without_a_failure(void **state) {
  (void)state;
  assert_false(walk_nth(run_case, NULL, &ways[0], 0, false));
  assert_int_equal(walk.failures, 0);
  /* the plugin stands in front */
  assert_true(walk.plan->counts[INJECT_calloc] > 0 && walk.plan->counts[INJECT_pthread_create] > 0);
}

static void a_side_is_there_or_counted_with_each_call_failing_once(void **state) {
  (void)state;
  walk_all(run_case, NULL, ways, WAYS, false);
}

static void a_side_is_there_or_counted_with_each_call_failing_from_then_on(void **state) {
  (void)state;
  walk_all(run_case, NULL, ways, WAYS, true);
}

/* The disk is full once the thread and the stream have their first places. What finds no room from
   then on is counted, on either side, and what was written is read. */
static int run_full_disk(const void *unused) {
  enum { COUNT = 40000, AT_ONCE = 256 };
  (void)unused;
  const prof_options options = {.size = sizeof options,
                                .path = host_path("run/out.json"),
                                .policy = PROF_POLICY_KEEP,
                                .cap_bytes = 64 << 20};
  emulated_stream *const stream = emulated_create(0);
  check_status(prof_backend_add(&emulated_backend), PROF_OK);
  check_status(prof_start_with(&options), PROF_OK);
  walk.begin(walk.plan);
  walk.arm(1); /* and so is prof's thread, which the first scope makes */
  WITH_GPU_PROFILER(device, (uintptr_t)stream, "kernel", "test", PROF_NO_ARGS, {});
  check(settle(1).on_device == 1, "the first scope's device's side has not come");
  walk.plan->nth = 1;
  for (int i = 1; i < COUNT; i++) {
    WITH_GPU_PROFILER(device, (uintptr_t)stream, "kernel", "test", PROF_NO_ARGS, {});
    if (i % AT_ONCE == 0) emulated_wait(stream);
  }
  walk.arm(0);
  emulated_wait(stream);
  check_status(prof_stop(), PROF_OK);
  check(walk.plan->failed_count > 0, "no look for room was refused: all found some");
  const sums all = sums_now();
  uint64_t lost = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) lost += health_now().lost_count[i];
  check(health_now().lost_count[PROF_LOSS_DISK] > 0,
        "no loss for want of room on the disk, of %" PRIu64, lost);
  check(all.on_device > 0 && all.on_device < COUNT && all.host < COUNT,
        "%" PRIu64 " device's and %" PRIu64 " host's sides of %d", all.on_device, all.host, COUNT);
  check(all.host + all.on_device + lost >= COUNT && all.host + all.on_device + lost <= 2 * COUNT,
        "%" PRIu64 " host's and %" PRIu64 " device's sides, %" PRIu64 " lost, of %d scopes",
        all.host, all.on_device, lost, COUNT);
  emulated_destroy(stream);
  return 0;
}

static void a_full_disk_is_counted_on_both_sides(void **state) {
  (void)state;
  host_empty(host_folder);
  assert_int_equal(mkdir(host_path("run"), 0755), 0);
  *walk.plan = (inject_plan){.function = INJECT_fallocate, .error = ENOSPC, .is_lasting = 1};
  host_expect("full disk", run_full_disk, NULL);
}

int main(int argc, char **argv) {
  const int ended = walk_begin(argv);
  if (ended) return ended;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(scopes_have_both_sides_without_a_failure),
      cmocka_unit_test(a_side_is_there_or_counted_with_each_call_failing_once),
      cmocka_unit_test(a_side_is_there_or_counted_with_each_call_failing_from_then_on),
      cmocka_unit_test(a_full_disk_is_counted_on_both_sides),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests_name("devices, every call failing", tests, host_make_folder,
                                     host_remove_folder);
}
