/* A signal at every instruction. A handler that records interrupts a recording thread at one
   instruction, then at the next, in a fresh child each. So it goes through scopes, chunk changes,
   the first scope of a thread, start, stop and clear. When the handler is done, and again when the
   thread is: recorded + lost = attempted for both, nothing torn, nothing left open.

   A walk through loops is long; there, each instruction address is interrupted at its first, second
   and last passage only. In CI one place of eight is: support/share.h. */
#define _GNU_SOURCE
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

#include "hang_guard.h"
#include "support/scenes.h"
#include "support/share.h"
#include "support/skip.h"

typedef struct scene {
  const char *name;
  void (*ready)(void);
  void (*act)(void);
  int room;      /* bytes left in the chunk when the act begins; NO_FILL: as it is */
  bool is_known; /* the handler's sites have been seen before */
  bool ends_thread;
  bool with_other; /* another thread goes once round the ring before the handler returns */
} scene;

enum { NO_FILL = -1, EVERY_ONE_UP_TO = 800, LONG_FROM = 3000, WALK_MAX = 1 << 20 };

/* ---- the child ---- */

/* Who stands between its look at a chunk and its claim is not to claim in one that has become
   another thread's. */
static struct {
  prof_i_head *chunk; /* where the interrupted thread was at first */
  /* what the other thread had claimed of it in the end; 0: it never got it */
  uint64_t bytes_by_other;
  uint32_t turn; /* 1: the other thread goes; 2: it is done */
} round_trip;

static void *go_round(void *unused) {
  const uint64_t chunks = prof_i_the_arena.cap_bytes / prof_i_the_arena.chunk_bytes_max;
  (void)unused;
  while (__atomic_load_n(&round_trip.turn, __ATOMIC_ACQUIRE) != 1) sched_yield();
  plan_fill();
  for (uint64_t i = 0; i <= chunks && prof_i_this_thread->chunk != round_trip.chunk; i++)
    fill_to_next_chunk();
  if (prof_i_this_thread->chunk == round_trip.chunk)
    round_trip.bytes_by_other = round_trip.chunk->cursor;
  __atomic_store_n(&round_trip.turn, 2, __ATOMIC_RELEASE);
  pause();
  return NULL;
}

static void begin_other(void) {
  pthread_t thread;
  round_trip.chunk = prof_i_this_thread->chunk;
  if (pthread_create(&thread, NULL, go_round, NULL) != 0) _exit(5);
}

static void let_other_go_round(void) {
  if (!round_trip.chunk) return;
  __atomic_store_n(&round_trip.turn, 1, __ATOMIC_RELEASE);
  while (__atomic_load_n(&round_trip.turn, __ATOMIC_ACQUIRE) != 2) sched_yield();
}

static void handler(int signal) {
  (void)signal;
  plan_handler_plain();
  plan_handler_named();
  let_other_go_round();
  plan.page->handler_runs++;
  if (plan.page->phase == 1) tracee_trap();
}

static bool is_own(const prof_i_head *chunk) {
  const prof_i_thread *const thread = prof_i_this_thread;
  const uint64_t words[] = {thread->detached_chunk, thread->previous_chunk};
  for (int i = 0; i < 2; i++)
    if ((const prof_i_head *)(uintptr_t)(words[i] & ~UINT64_C(63)) == chunk) return true;
  return thread->chunk == chunk;
}

/* No other thread has recorded. */
static uint64_t forgotten_chunks(void) {
  uint64_t offset = 0, count = 0;
  for (const prof_i_head *head;
       (head = prof_i_arena_next(&offset, prof_i_arena_readable_bytes())) != NULL;)
    count += prof_i_head_kind(head) == PROF_I_EXTENT_CHUNK && head->state == PROF_I_CHUNK_OWNED &&
             !is_own(head);
  return count;
}

static void note_depth(void) {
  const prof_i_thread_slot *const slot = prof_i_this_thread->slot;
  plan.page->depth = slot->depth;
  plan.page->deep = slot->deep;
  if (round_trip.bytes_by_other)
    plan.page->trespassed = (round_trip.chunk->cursor - round_trip.bytes_by_other) / 16;
}

static void body(void *context) {
  const scene *const what = context;
  const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  what->ready();
  if (what->is_known) handler(0);
  if (what->room != NO_FILL) fill_up_to((uint64_t)what->room);
  if (what->ends_thread) walk_to_the_end_of_the_thread();
  if (what->with_other) begin_other();
  if (plan.page->is_patient) nanosleep(&(const struct timespec){0, 11000000}, NULL);
  plan.page->handler_runs = 0;
  plan.page->phase = 1;
  tracee_trap();
  what->act();
  if (what->ends_thread) return; /* the thread does, and then comes to walk_is_over() */
  note_depth();
  plan.page->phase = 2; /* no more signals come */
  if (!round_trip.chunk) plan.page->forgotten = forgotten_chunks();
  walk_is_over(NULL);
}

/* ---- the walk that finds where to interrupt ---- */

typedef struct place {
  uint64_t at;
  uint32_t occurrence; /* from 1 */
} place;

static struct {
  plan_judge *judge;
  place *places;
  size_t count;
  uint64_t interrupted, missed, instructions;
} own;

static int by_address(const void *a, const void *b) {
  const place *const x = a, *const y = b;
  return (x->at > y->at) - (x->at < y->at);
}

/* Numbers the passages of each address, and keeps those to be interrupted. */
static void choose_places(void) {
  const bool every = own.count <= EVERY_ONE_UP_TO, is_long = own.count > LONG_FROM;
  const uint32_t wanted = share();
  size_t kept = 0, met = 0;
  uint64_t previous_chunk = 0;
  uint32_t occurrence = 0;
  qsort(own.places, own.count, sizeof *own.places, by_address);
  for (size_t i = 0; i < own.count; i++) {
    const uint64_t at = own.places[i].at;
    const bool is_last = i + 1 == own.count || own.places[i + 1].at != at;
    occurrence = at == previous_chunk ? occurrence + 1 : 1;
    previous_chunk = at;
    if (!every && occurrence != 1 && (occurrence != 2 || is_long) && !is_last) continue;
    if (wanted == SHARES || met++ % SHARES == wanted) own.places[kept++] = (place){at, occurrence};
  }
  own.count = kept;
}

static void find_places(const scene *what) {
  tracee child = {0};
  plan_reset();
  own.count = 0;
  if (!tracee_begin(&child, body, (void *)(uintptr_t)what, what->ends_thread)) {
    if (plan.page->skip) skip_because((const char *)(uintptr_t)plan.page->reason);
    fail_msg("%s: the child ended before the walk, status %x", what->name, (unsigned)child.status);
  }
  while (plan.page->phase == 1 && own.count < WALK_MAX) {
    own.places[own.count++].at = tracee_at(&child);
    tracee_step(&child);
    if (child.signal != SIGTRAP)
      fail_msg("%s: signal %d after %zu instructions", what->name, child.signal, own.count);
  }
  own.instructions += own.count;
  tracee_end(&child);
  captures_clear();
}

/* ---- one interruption ---- */

extern char __executable_start;

static long long in_executable(uint64_t at) {
  return (long long)(at - (uint64_t)(uintptr_t)&__executable_start);
}

static void judge_now(const scene *what, const place *where, const char *when, bool is_rest) {
  plan_judge *const judge = own.judge;
  captures_look();
  captures_measure();
  plan_judge_now(judge, captures.bytes, captures.sizes, captures.count, is_rest);
  if (is_rest && (plan.page->depth || plan.page->deep || judge->opens))
    plan_fault(judge, "at rest: depth %llu, deep %llu, %llu entries open",
               (unsigned long long)plan.page->depth, (unsigned long long)plan.page->deep,
               (unsigned long long)judge->opens);
  if (is_rest && plan.page->forgotten)
    plan_fault(judge, "%llu chunks are owned, and no thread's",
               (unsigned long long)plan.page->forgotten);
  if (plan.page->trespassed)
    plan_fault(judge, "%llu claims in a chunk of another thread",
               (unsigned long long)plan.page->trespassed);
  if (!judge->fault[0]) return;
  print_error("%s: signal at %#llx (%+lld in the executable), passage %u; %s: %s\n", what->name,
              (unsigned long long)where->at, in_executable(where->at), where->occurrence, when,
              judge->fault);
  fail();
}

/* False: this time it took another way, and never came to the place. */
static bool interrupt(const scene *what, const place *where, bool is_patient) {
  tracee child = {0};
  plan_reset();
  plan.page->is_patient = is_patient;
  if (!tracee_begin(&child, body, (void *)(uintptr_t)what, what->ends_thread))
    fail_msg("%s: the child ended early, status %x", what->name, (unsigned)child.status);
  const bool is_there = tracee_run_to(&child, where->at, where->occurrence);
  if (is_there) {
    tracee_continue(&child, SIGUSR1);
    if (child.signal != SIGTRAP || plan.page->handler_runs != 1)
      fail_msg(
          "%s: signal %d at %+lld instead of the handler's end, %u runs, status %x; interrupted at "
          "%+lld in the executable",
          what->name, child.signal, in_executable(tracee_at(&child)), plan.page->handler_runs,
          (unsigned)child.status, in_executable(where->at));
    judge_now(what, where, "the handler is done", false);
    tracee_continue(&child, 0);
    if (child.signal != SIGTRAP || plan.page->phase != 2)
      fail_msg(
          "%s: signal %d at %+lld instead of the end, status %x; interrupted at %+lld in the "
          "executable",
          what->name, child.signal, in_executable(tracee_at(&child)), (unsigned)child.status,
          in_executable(where->at));
    judge_now(what, where, "the thread is done", true);
    own.interrupted++;
  }
  tracee_end(&child);
  captures_clear();
  return is_there;
}

static void interrupt_everywhere(const scene *what) {
  hang_guard();
  find_places(what);
  const size_t walked = own.count;
  choose_places();
  const uint64_t missed = own.missed;
  for (size_t i = 0; i < own.count; i++)
    if (!interrupt(what, &own.places[i], false) && !interrupt(what, &own.places[i], true))
      own.missed++;
  print_message("  %-48s %7zu instructions, a signal at %6zu, %llu not reached again\n", what->name,
                walked, own.count, (unsigned long long)(own.missed - missed));
}

static int clean(void **state) {
  (void)state;
  captures_clear();
  return 0;
}

static void ready_monotonic(void) {
  start_monotonic();
  warm_up();
}

#define SCENES(X)                                                                                  \
  X(a_plain_scope, ready_stream, plan_plain, NO_FILL, true, false, false)                          \
  X(a_plain_scope_and_a_full_chunk, ready_stream, plan_plain, 0, true, false, false)               \
  X(a_plain_scope_and_room_for_one, ready_stream, plan_plain, 16, true, false, false)              \
  X(a_plain_scope_and_room_for_two, ready_stream, plan_plain, 32, true, false, false)              \
  X(a_scope_with_arguments, ready_stream, plan_named, NO_FILL, true, false, false)                 \
  X(a_scope_with_arguments_and_a_full_chunk, ready_stream, plan_named, 0, true, false, false)      \
  X(a_scope_with_arguments_and_room_for_one, ready_stream, plan_named, 112, true, false, false)    \
  X(a_scope_with_values, ready_shorts, plan_values, NO_FILL, true, false, false)                   \
  X(a_scope_with_values_and_room_for_one, ready_shorts, plan_values, 112, true, false, false)      \
  X(a_scope_with_words, ready_shorts, plan_words, NO_FILL, true, false, false)                     \
  X(a_scope_with_a_name_alone, ready_shorts, plan_bare_name, NO_FILL, true, false, false)          \
  X(scopes_with_one_text, ready_shorts, act_texts, NO_FILL, true, false, false)                    \
  X(scopes_with_one_text_and_room_for_one, ready_shorts, act_texts, 96, true, false, false)        \
  X(a_nested_pair_and_room_for_one, ready_stream, plan_nested, 16, true, false, false)             \
  X(an_instant_and_a_counter, ready_stream, act_instant_and_counter, NO_FILL, true, false, false)  \
  X(an_instant_and_room_for_one, ready_stream, plan_instant, 16, true, false, false)               \
  X(an_instant_and_a_handler_seen_first, ready_stream, plan_instant, NO_FILL, false, false, false) \
  X(an_instant_by_the_slow_clock, ready_monotonic, plan_instant, NO_FILL, true, false, false)      \
  X(a_scope_by_the_slow_clock, ready_monotonic, plan_named, NO_FILL, true, false, false)           \
  X(the_first_scopes_of_a_thread, start_stream, plan_named, NO_FILL, false, false, false)          \
  X(the_first_scope_in_another_capture, ready_other, plan_named, NO_FILL, false, false, false)     \
  X(an_arena_full_inside_three_scopes, ready_full_arena, act_full_inside, NO_FILL, true, false,    \
    false)                                                                                         \
  X(stop_and_start_inside_a_scope, ready_stream, act_restart_inside, NO_FILL, true, false, false)  \
  X(clear_inside_a_scope, ready_stream, act_clear_inside, NO_FILL, true, false, false)             \
  X(deeper_than_the_entries, ready_stream, act_deep, NO_FILL, true, false, false)                  \
  X(deeper_than_the_entries_and_room_for_few, ready_stream, act_deep, 96, true, false, false)      \
  X(calls_in_blocks, ready_stream, act_calls_in_blocks, NO_FILL, true, false, false)               \
  X(deep_calls_in_blocks, ready_stream, act_deep_calls_in_blocks, NO_FILL, true, false, false)     \
  X(blocks_beside_calls, ready_stream, act_blocks_beside_calls, NO_FILL, true, false, false)       \
  X(a_ring_gives_its_oldest_chunk, ready_full_ring, plan_plain, 0, true, false, false)             \
  X(a_ring_that_goes_round_meanwhile, ready_full_ring, plan_plain, 0, true, false, true)           \
  X(the_end_of_a_thread, ready_stream, plan_plain, NO_FILL, true, true, false)                     \
  X(the_end_of_a_thread_with_losses, ready_with_losses, plan_plain, NO_FILL, true, true, false)

#define TEST(name_, ready_, act_, room_, known_, ends_, other_)                     \
  static void name_##_survives_a_signal_anywhere(void **state) {                    \
    static const scene what = {#name_, ready_, act_, room_, known_, ends_, other_}; \
    (void)state;                                                                    \
    interrupt_everywhere(&what);                                                    \
  }
SCENES(TEST)

int main(int argc, char **argv) {
#define ENTRY(name_, ready_, act_, room_, known_, ends_, other_) \
  cmocka_unit_test_teardown(name_##_survives_a_signal_anywhere, clean),
  const struct CMUnitTest tests[] = {SCENES(ENTRY)};
  skip_unless_steppable();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  own.judge = plan_make();
  own.places = malloc(WALK_MAX * sizeof *own.places);
  if (!own.judge || !own.places || !captures_make_folder(true)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  say_share();
  print_message(
      "%llu signals given, %llu places not reached again, %llu instructions walked to find them\n",
      (unsigned long long)own.interrupted, (unsigned long long)own.missed,
      (unsigned long long)own.instructions);
  captures_remove_folder();
  return failed;
}
