/* A reader copies a capture while one thread ends a scope of another one, and there is no room for
   its record. The end has three steps: its loss is counted, its entry goes, the ledger forgets it.
   The steps come at all places between the reader's loads, in all combinations. The scope is never
   counted twice, and it is counted if it had not ended before the reader came. */
#include "../../src/core/buffer/ledger.h"
#include "../../src/live/live.h"
#include "../../src/reader/capture.h"
#include "trace_checks.h"

enum { ROOM = 512 << 10, STEPS = 3, PLACES_MAX = 64, NEVER = PLACES_MAX + 1 };

static struct {
  capture c;
  prof_i_thread_slot *begun_on, *ended_on;
  prof_i_ledger_saved note;
  int place;         /* of the reader */
  int steps;         /* that are done */
  int places[STEPS]; /* at which each is done */
} own;

static void do_step(int step) {
  switch (step) {
    case 0:
      own.begun_on->open[1].ticks |= PROF_I_OPEN_TAKEN;
      own.note = prof_i_ledger_lose(own.ended_on, PROF_LOSS_NO_CHUNK,
                                    CAPTURE_START << 4 | PROF_I_ENDING_ELSEWHERE);
      break;
    case 1:
      own.begun_on->open[1].ticks = own.begun_on->depth = 0;
      break;
    default:
      prof_i_ledger_settle(own.ended_on, &own.note);
  }
}

/* Called instead of prof_i_snapshot_fence(): see target_link_options() in tests/CMakeLists.txt. */
void wrapped_fence(void) __asm__("__wrap_prof_i_snapshot_fence");
void wrapped_fence(void) {
  own.place++;
  while (own.steps < STEPS && own.place >= own.places[own.steps]) do_step(own.steps++);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static uint64_t live_bytes_now(const prof_i_live_source *live) {
  (void)live;
  return own.c.count;
}

static uint64_t read_sum(void) {
  const prof_i_live_source live = {
      .bytes = own.c.bytes, .room = own.c.room, .live_bytes_now = live_bytes_now};
  prof_i_source source;
  prof_trace *trace = NULL;
  assert_int_equal(prof_i_source_snapshot(&source, &live, false), PROF_OK);
  assert_int_equal(prof_i_trace_make(&source, &trace), PROF_OK);
  const prof_trace_info info = info_of(trace);
  prof_trace_destroy(trace);
  assert_int_equal(info.bad_count, 0);
  return info.event_count + info.open_below_count + info.lost_count[PROF_LOSS_NO_CHUNK];
}

/* Returns what the reader adds up while the steps come at these places of its way. */
static uint64_t sum_with_steps_at(int lose, int empty, int settle, bool ends_on_the_first) {
  memset(&own, 0, sizeof own);
  capture_begin(&own.c, ROOM);
  prof_i_head *const meta = capture_meta(&own.c);
  capture_session(meta, CAPTURE_START, 1, 1);
  capture_site(meta, 1, "scope", "test", 1);
  prof_i_thread_slot *const first = capture_slot(&own.c, 1, "first");
  prof_i_thread_slot *const second = capture_slot(&own.c, 2, "second");
  own.begun_on = ends_on_the_first ? second : first;
  own.ended_on = ends_on_the_first ? first : second;
  capture_open(own.begun_on, CAPTURE_START, 1);
  prof_i_ledger_open(first, 0);
  prof_i_ledger_open(second, 0);
  own.places[0] = lose;
  own.places[1] = empty;
  own.places[2] = settle;
  const uint64_t sum = read_sum();
  capture_end(&own.c);
  return sum;
}

static void an_end_between_any_two_loads_counts_once(void **state) {
  (void)state;
  for (int first = 0; first < 2; first++) {
    assert_int_equal(sum_with_steps_at(NEVER, NEVER, NEVER, first), 1);
    const int last = own.place + 1;
    assert_in_range(last, 4, PLACES_MAX);
    for (int a = 1; a <= last; a++)
      for (int b = a; b <= last; b++)
        for (int c = b; c <= last; c++) {
          const uint64_t sum = sum_with_steps_at(a, b, c, first);
          if (sum != 1)
            fail_msg("steps at places %d, %d and %d of %d: the scope counts %llu times", a, b, c,
                     last, (unsigned long long)sum);
        }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(an_end_between_any_two_loads_counts_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
