/* Memory's record protocol, instruction by instruction, in two ways. Walked: after each instruction
   of an alloc, a free, a block, a first event, a reset, the library reads at once. Interrupted: at
   each instruction, in a fresh child, a handler comes that itself hands out and takes back. The
   library reads when the handler is done, and when the thread is. What it reads is judged by what
   the child has announced:

     Has returned   Its record, once, to the byte; or one more in the counts of what was lost.
     Is under way   Its record or none, its bytes in the sum or not, but in this order: the sum,
                    the peak, the record.
     Else           Nothing.

   The counter's numbers are one line: each sum is the previous sum and its own bytes. Nothing is
   damaged. */
#define _GNU_SOURCE
#include <prof/memory.h>
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

#include "../../src/analysis/memory.h"
#include "hang_guard.h"
#include "support/scenes.h"
#include "support/share.h"
#include "support/skip.h"

/* ---- what the child announces ---- */

enum { CALLS_MAX = 4096 };

typedef struct call {
  uint32_t verb; /* prof_i_verb */
  uint32_t has_tag;
  uint64_t address, bytes, requested;
  uint64_t has_returned;
} call;

static volatile struct announced {
  uint64_t count, unchecked_at_most;
  uint64_t is_resetting, reset_count; /* a reset is under way; how many have returned */
  uint64_t reset_from;                /* the calls before it may count, or not */
  call calls[CALLS_MAX];
} * announced;

static prof_pool *pool;
static uint32_t tag;

static volatile call *announce(prof_i_verb verb, uint64_t address, uint64_t bytes,
                               uint64_t requested, bool has_tag) {
  const uint64_t at = __atomic_fetch_add(&announced->count, 1, __ATOMIC_RELAXED);
  if (at >= CALLS_MAX) _exit(3);
  volatile call *const now = &announced->calls[at];
  *now = (call){(uint32_t)verb, has_tag, address, bytes, requested, 0};
  return now;
}

static const void *at(uint64_t address) { return (const void *)(uintptr_t)address; }

/* Each piece has an address of its own, so that a record says which call it is. */
static uint64_t next_address(void) {
  return 0x100000 + __atomic_load_n(&announced->count, __ATOMIC_RELAXED) * 4096;
}

static uint64_t hand_out(uint64_t requested, uint64_t bytes) {
  const uint64_t address = next_address();
  volatile call *const now = announce(PROF_I_VERB_ALLOC, address, bytes, requested, false);
  prof_memory_alloc(pool, at(address), requested, bytes);
  now->has_returned = 1;
  return address;
}
static uint64_t hand_out_for(uint64_t requested, uint64_t bytes) {
  const uint64_t address = next_address();
  volatile call *const now = announce(PROF_I_VERB_ALLOC, address, bytes, requested, tag != 0);
  prof_memory_alloc_for(pool, at(address), requested, bytes, tag, 7);
  now->has_returned = 1;
  return address;
}
static void take_back(uint64_t address, uint64_t bytes) {
  volatile call *const now = announce(PROF_I_VERB_FREE, address, bytes, bytes, false);
  prof_memory_free(pool, at(address), bytes);
  now->has_returned = 1;
}
static void block(prof_i_verb verb, uint64_t address, uint64_t bytes) {
  volatile call *const now = announce(verb, address, bytes, bytes, false);
  if (verb == PROF_I_VERB_RESERVE)
    prof_memory_reserve(pool, at(address), bytes);
  else
    prof_memory_release(pool, at(address), bytes);
  now->has_returned = 1;
}

/* ---- scenes ---- */

static void make_pool(uint32_t checked) {
  if (prof_pool_create(
          &(prof_pool_options){
              .size = sizeof(prof_pool_options), .name = "stepped", .checked = checked},
          &pool) != PROF_OK)
    _exit(4);
  tag = prof_memory_tag("weights");
}

static void warm_pool(void) {
  plan_plain();
  for (int i = 0; i < 3; i++) take_back(hand_out(100, 112), 112);
  hand_out(40, 48);
}

static void ready_pool(void) {
  start_stream();
  make_pool(0);
  warm_pool();
}
static void ready_checked_pool(void) {
  start_stream();
  make_pool(1);
  warm_pool();
}
static void ready_room_for(uint64_t bytes) {
  ready_pool();
  fill_up_to(bytes);
}
static void ready_no_room(void) { ready_room_for(0); }
static void ready_room_for_half(void) { ready_room_for(16); }
static void ready_room_for_one(void) { ready_room_for(32); }
static void ready_first_pool(void) {
  make_pool(0);
  start_stream();
}
/* The pool's state has room, its records have none. */
static void ready_full_pool(void) {
  start_keep();
  make_pool(0);
  warm_pool();
  do fill_up_to(0);
  while (prof_i_arena_header()->used_bytes + PROF_I_UNIT_BYTES <= prof_i_the_arena.cap_bytes);
}

static void act_pair(void) { take_back(hand_out(1000, 1008), 1008); }
static void act_pair_for(void) { take_back(hand_out_for(700, 1024), 1024); }
static void act_blocks(void) {
  block(PROF_I_VERB_RESERVE, 0x40000000, 1 << 16);
  block(PROF_I_VERB_RELEASE, 0x40000000, 1 << 16);
}
static void act_start_and_pair(void) {
  start_stream();
  act_pair();
}
static void ready_pool_alone(void) { make_pool(0); }
static void act_reset(void) {
  const uint64_t piece = hand_out(5000, 5008);
  take_back(piece, 5008);
  announced->reset_from = announced->count;
  announced->is_resetting = 1;
  prof_memory_reset();
  announced->reset_count++;
  announced->is_resetting = 0;
  take_back(hand_out(20, 32), 32);
}

/* ---- the judgement ---- */

typedef struct judged {
  char fault[400];
  bool is_rest;
  uint64_t records, counted_lost;
  bool is_seen[CALLS_MAX];
} judged;

static judged now;
static struct { uint64_t instructions, readings, signals, missed; } total;

static void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void wrong(const char *format, ...) {
  va_list values;
  if (now.fault[0]) return;
  va_start(values, format);
  vsnprintf(now.fault, sizeof now.fault, format, values);
  va_end(values);
}

static int64_t used_by(const volatile call *c) {
  return c->verb == PROF_I_VERB_ALLOC  ? (int64_t)c->bytes
         : c->verb == PROF_I_VERB_FREE ? -(int64_t)c->bytes
                                       : 0;
}
static int64_t allocated_by(const volatile call *c) {
  return c->verb == PROF_I_VERB_RESERVE   ? (int64_t)c->bytes
         : c->verb == PROF_I_VERB_RELEASE ? -(int64_t)c->bytes
                                          : 0;
}

/* The call that a record is. -1: none that was announced. */
static int find_call(const prof_i_memory_record *record) {
  for (uint64_t i = 0; i < announced->count; i++) {
    const volatile call *const c = &announced->calls[i];
    if (c->verb == record->verb && c->address == record->address && c->bytes == record->bytes &&
        (c->verb != PROF_I_VERB_ALLOC || c->requested == record->requested) &&
        c->has_tag == (record->tag != 0))
      return (int)i;
  }
  return -1;
}

/* The one call that is under way and has no record: a handler's have returned, and it interrupts
   but one. -1: none. */
static int open_call(void) {
  for (uint64_t i = 0; i < announced->count; i++)
    if (!announced->calls[i].has_returned && !now.is_seen[i]) return (int)i;
  return -1;
}

static void see_records(const prof_memory *memory) {
  for (uint32_t i = 0; i < memory->item_count; i++) {
    const prof_i_memory_record record = prof_i_memory_item_read(&memory->items[i]);
    const int found = find_call(&record);
    if (found < 0)
      wrong(
          "a record of verb %d, address %#llx, %llu bytes, %llu asked for, tag %u: no call that "
          "was announced",
          (int)record.verb, (unsigned long long)record.address, (unsigned long long)record.bytes,
          (unsigned long long)record.requested, record.tag);
    else if (now.is_seen[found])
      wrong("call %d stands a second time", found);
    else
      now.is_seen[found] = true;
  }
  now.records = memory->item_count;
}

typedef struct sums {
  int64_t used, highest, highest_since; /* highest_since: since the last reset */
  uint64_t number;
  bool is_open_counted;
} sums;

/* In the counter's order each sum is the previous one and its own bytes. If a sum is missing, its
   event is under way. */
static sums follow(const prof_memory *memory, uint64_t base_number) {
  sums s = {0};
  const int open = open_call();
  for (uint32_t i = 0; i < memory->item_count; i++) {
    const prof_i_memory_record record = prof_i_memory_item_read(&memory->items[memory->order[i]]);
    const int found = find_call(&record);
    const uint64_t number = record.counter >> PROF_I_USED_BITS;
    if (number == s.number + 2 && open >= 0 && !s.is_open_counted) {
      s.is_open_counted = true;
      s.used += used_by(&announced->calls[open]);
      s.number++;
      if (s.used > s.highest) s.highest = s.used;
      if (s.number > base_number && s.used > s.highest_since) s.highest_since = s.used;
    }
    s.used += found < 0 ? 0 : used_by(&announced->calls[found]);
    s.number++;
    if (number != s.number || prof_i_used_bytes(record.counter) != s.used)
      wrong("record %u of call %d has number %llu and %lld bytes; it should be %llu and %lld", i,
            found, (unsigned long long)number, (long long)prof_i_used_bytes(record.counter),
            (unsigned long long)s.number, (long long)s.used);
    if (s.used > s.highest) s.highest = s.used;
    if (s.number > base_number && s.used > s.highest_since) s.highest_since = s.used;
  }
  return s;
}

/* The state against the records: with the call that is under way or without. */
static void check_state(const prof_memory *memory, const prof_i_pool_state *state,
                        const prof_memory_info *info) {
  const prof_i_peak *const peak = &state->used_peaks[state->reset_count % PROF_I_PEAKS];
  sums s = follow(memory, state->reset_count ? peak->base >> PROF_I_USED_BITS : 0);
  const int open = s.is_open_counted ? -1 : open_call();
  const uint64_t number = state->used >> PROF_I_USED_BITS;
  const int64_t used = prof_i_used_bytes(state->used),
                with_open = open < 0 ? s.used : s.used + used_by(&announced->calls[open]);
  const bool is_without = number == s.number && used == s.used;
  const bool is_with = open >= 0 && number == s.number + 1 && used == with_open;
  if (!is_without && !is_with)
    wrong("the pool has %lld bytes in %llu events; %lld in %llu are recorded, call %d is under way",
          (long long)used, (unsigned long long)number, (long long)s.used,
          (unsigned long long)s.number, open);
  /* The peak as the pool keeps it: raised before the record comes. */
  if (!announced->is_resetting && prof_i_used_bytes(peak->peak) < s.highest_since)
    wrong("the peak that is kept is %lld; the records reach %lld",
          (long long)prof_i_used_bytes(peak->peak), (long long)s.highest_since);
  /* what was reached before the reset counts until it has returned, or not */
  if (state->reset_count || announced->is_resetting) {
    const int64_t base = prof_i_used_bytes(peak->base),
                  least = used > s.highest_since ? used : s.highest_since;
    const int64_t most = announced->reset_count ? (least > base ? least : base) : s.highest;
    const int64_t most_open = is_with && with_open > most ? with_open : most;
    if (info->peak_used.used_bytes < (announced->is_resetting ? used : s.highest_since) ||
        info->peak_used.used_bytes > most_open)
      wrong("after %llu resets the peak is %lld; %lld to %lld was reached",
            (unsigned long long)announced->reset_count, (long long)info->peak_used.used_bytes,
            (long long)least, (long long)most_open);
  } else if (info->peak_used.used_bytes < s.highest ||
             info->peak_used.used_bytes >
                 (is_with && with_open > s.highest ? with_open : s.highest)) {
    wrong("the peak is %lld; the records reach %lld, the call under way %lld",
          (long long)info->peak_used.used_bytes, (long long)s.highest, (long long)with_open);
  }
}

static void check_allocated(const prof_i_pool_state *state, const prof_memory_info *info) {
  int64_t done = 0, highest = 0;
  for (uint64_t i = 0; i < announced->count; i++)
    if (now.is_seen[i] || announced->calls[i].has_returned) {
      done += allocated_by(&announced->calls[i]);
      if (done > highest) highest = done;
    }
  const int open = open_call();
  const int64_t with_open = open < 0 ? done : done + allocated_by(&announced->calls[open]),
                allocated = (int64_t)(state->allocated - PROF_I_USED_ZERO);
  if (allocated != done && allocated != with_open)
    wrong("the pool has %lld bytes allocated; %lld, or %lld with call %d", (long long)allocated,
          (long long)done, (long long)with_open, open);
  const int64_t most = with_open > highest ? with_open : highest,
                peak = info->peak_allocated.allocated_bytes;
  if (peak < highest || peak > most)
    wrong("the peak of allocated is %lld; %lld was reached, with call %d %lld", (long long)peak,
          (long long)highest, open, (long long)most);
}

/* The arena is full: sums and peaks stand, records do not. Only the main thread calls, one call
   after another. */
static void check_lossy(const prof_i_pool_state *state, const prof_memory_info *info,
                        uint64_t unrecorded) {
  sums s = {0};
  int64_t with_open = 0;
  for (uint64_t i = 0; i < announced->count; i++) {
    const volatile call *const c = &announced->calls[i];
    if (!c->has_returned)
      with_open = s.used + used_by(c);
    else
      s.used += used_by(c), s.number++;
    if (s.used > s.highest) s.highest = s.used;
  }
  const uint64_t number = state->used >> PROF_I_USED_BITS;
  if (number < s.number || number > announced->count)
    wrong("the pool has %llu events; %llu have returned, of %llu", (unsigned long long)number,
          (unsigned long long)s.number, (unsigned long long)announced->count);
  const int64_t highest = with_open > s.highest ? with_open : s.highest;
  if (info->peak_used.used_bytes < s.highest || info->peak_used.used_bytes > highest)
    wrong("the peak is %lld; %lld to %lld was reached", (long long)info->peak_used.used_bytes,
          (long long)s.highest, (long long)highest);
  if (info->missing_count < unrecorded || info->missing_count > unrecorded + 1)
    wrong("%llu are missing; %llu have no record", (unsigned long long)info->missing_count,
          (unsigned long long)unrecorded);
}

static void check_memory(const prof_memory *memory, uint64_t lost) {
  see_records(memory);
  uint64_t unrecorded = 0;
  for (uint64_t i = 0; i < announced->count; i++)
    unrecorded += announced->calls[i].has_returned && !now.is_seen[i];
  if (unrecorded > lost || (now.is_rest && unrecorded != lost))
    wrong("%llu calls that had returned have no record, %llu were counted as lost",
          (unsigned long long)unrecorded, (unsigned long long)lost);
  if (prof_memory_pool_count(memory) == 0) {
    if (memory->item_count) wrong("%u records, and no pool", memory->item_count);
    return;
  }
  const prof_i_pool_state *const state = &memory->trace->catalog.pools[0].state;
  const prof_memory_info *const info = &memory->pools[0].info;
  for (int i = 0; i < PROF_MEMORY_WRONG_COUNT; i++)
    if (info->wrong_count[i] && !unrecorded)
      wrong("%llu calls are called wrong, of kind %d", (unsigned long long)info->wrong_count[i], i);
  if (lost) {
    check_lossy(state, info, unrecorded);
    return;
  }
  if (info->missing_count > 1 || (now.is_rest && info->missing_count))
    wrong("%llu events are missing", (unsigned long long)info->missing_count);
  check_state(memory, state, info);
  check_allocated(state, info);
}

static void judge(bool is_rest) {
  prof_trace *trace = NULL;
  prof_memory *memory = NULL;
  prof_trace_info about = {.size = sizeof about};
  now = (judged){.is_rest = is_rest};
  captures_look();
  captures_measure();
  if (!captures.count || captures.sizes[0] < PROF_I_HEADER_BYTES ||
      ((const prof_i_header *)captures.bytes[0])->magic != PROF_I_MAGIC)
    return;
  if (prof_trace_open_bytes(captures.bytes[0], captures.sizes[0], &trace) != PROF_OK) {
    wrong("the capture: %s", prof_last_error());
    return;
  }
  prof_trace_info_get(trace, &about);
  uint64_t lost = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    lost += i == PROF_LOSS_UNFINISHED ? 0 : about.lost_count[i];
  if (about.bad_count) wrong("%llu bad", (unsigned long long)about.bad_count);
  if (prof_memory_read(trace, &memory) != PROF_OK) wrong("prof_memory_read: %s", prof_last_error());
  if (memory && !now.fault[0]) check_memory(memory, lost);
  prof_memory_destroy(memory);
  prof_trace_destroy(trace);
  total.readings++;
}

/* ---- walked ---- */

typedef struct scene {
  const char *name;
  void (*ready)(void);
  void (*act)(void);
} scene;

static void handler(int signal) {
  (void)signal;
  take_back(hand_out(300, 304), 304);
  plan.page->handler_runs++;
  if (plan.page->phase == 1) tracee_trap();
}

static void body(void *context) {
  const scene *const what = context;
  sigaction(SIGUSR1, &(const struct sigaction){.sa_handler = handler, .sa_flags = SA_RESTART},
            NULL);
  what->ready();
  /* another clock pair is due */
  if (plan.page->is_patient) nanosleep(&(const struct timespec){0, 11000000}, NULL);
  plan.page->phase = 1;
  tracee_trap();
  what->act();
  walk_is_over(NULL);
}

static void begin(tracee *child, const scene *what, bool is_patient) {
  *child = (tracee){0};
  plan_reset();
  plan.page->is_patient = is_patient;
  memset((void *)(uintptr_t)announced, 0, sizeof *announced);
  if (tracee_begin(child, body, (void *)(uintptr_t)what, false)) return;
  if (plan.page->skip) skip_because((const char *)(uintptr_t)plan.page->reason);
  fail_msg("%s: the child ended before the walk, status %x", what->name, (unsigned)child->status);
}

static void expect_fit(const scene *what, uint64_t step, uint64_t where, const char *when,
                       bool is_rest) {
  judge(is_rest);
  if (!now.fault[0]) return;
  print_error("%s: after %llu instructions (or passages), at %#llx; %s: %s\n", what->name,
              (unsigned long long)step, (unsigned long long)where, when, now.fault);
  fail();
}

static void walk(const scene *what) {
  hang_guard();
  tracee child;
  uint64_t steps = 0;
  begin(&child, what, false);
  expect_fit(what, 0, tracee_at(&child), "it begins", false);
  while (plan.page->phase == 1) {
    walk_on(&child);
    if (child.signal != SIGTRAP)
      fail_msg("%s: signal %d after %llu instructions", what->name, child.signal,
               (unsigned long long)steps);
    expect_fit(what, ++steps, tracee_at(&child), "walked", false);
  }
  expect_fit(what, steps, tracee_at(&child), "at rest", true);
  print_message("  %-36s %7llu instructions, %llu records\n", what->name, (unsigned long long)steps,
                (unsigned long long)now.records);
  total.instructions += steps;
  tracee_end(&child);
  captures_clear();
}

/* ---- interrupted ---- */

typedef struct place {
  uint64_t at;
  uint32_t occurrence; /* from 1 */
} place;

enum { EVERY_ONE_UP_TO = 800, PLACES_MAX = 1 << 14 };
static place places[PLACES_MAX];

static int by_address(const void *a, const void *b) {
  const place *const x = a, *const y = b;
  return (x->at > y->at) - (x->at < y->at);
}

/* Each instruction; of a long walk each one's first and last passage. In CI an eighth of these. */
static size_t find_places(const scene *what, size_t *walked_out) {
  tracee child;
  size_t count = 0, kept = 0;
  begin(&child, what, false);
  while (plan.page->phase == 1 && count < PLACES_MAX) {
    places[count++].at = tracee_at(&child);
    tracee_step(&child);
  }
  tracee_end(&child);
  captures_clear();
  qsort(places, count, sizeof *places, by_address);
  const uint32_t wanted = share();
  uint32_t occurrence = 0, met = 0;
  uint64_t before = 0;
  for (size_t i = 0; i < count; i++) {
    const uint64_t where = places[i].at;
    occurrence = where == before ? occurrence + 1 : 1;
    before = where;
    const bool is_last = i + 1 == count || places[i + 1].at != where;
    if (count > EVERY_ONE_UP_TO && occurrence != 1 && !is_last) continue;
    if (wanted == SHARES || met++ % SHARES == wanted) places[kept++] = (place){where, occurrence};
  }
  *walked_out = count;
  return kept;
}

/* False: this time it took another way, and never came to the place. */
static bool interrupt(const scene *what, const place *where, bool is_patient) {
  tracee child;
  begin(&child, what, is_patient);
  const bool is_there = tracee_run_to(&child, where->at, where->occurrence);
  if (is_there) {
    tracee_continue(&child, SIGUSR1);
    if (child.signal != SIGTRAP || plan.page->handler_runs != 1)
      fail_msg("%s: signal %d instead of the handler's end, at %#llx", what->name, child.signal,
               (unsigned long long)where->at);
    expect_fit(what, where->occurrence, where->at, "the handler is done", false);
    tracee_continue(&child, 0);
    if (child.signal != SIGTRAP || plan.page->phase != 2)
      fail_msg("%s: signal %d instead of the end, at %#llx", what->name, child.signal,
               (unsigned long long)where->at);
    expect_fit(what, where->occurrence, where->at, "the thread is done", true);
    total.signals++;
  }
  tracee_end(&child);
  captures_clear();
  return is_there;
}

static void interrupt_everywhere(const scene *what) {
  hang_guard();
  size_t walked = 0, missed = 0;
  const size_t count = find_places(what, &walked);
  for (size_t i = 0; i < count; i++)
    missed += !interrupt(what, &places[i], false) && !interrupt(what, &places[i], true);
  print_message("  %-36s %7zu instructions, a signal at %zu, %zu not reached again\n", what->name,
                walked, count, missed);
  total.missed += missed;
}

/* ---- the tests ---- */

#define WALKS(X)                                                      \
  X(a_pair, ready_pool, act_pair)                                     \
  X(a_pair_with_tag_and_stream, ready_pool, act_pair_for)             \
  X(blocks, ready_pool, act_blocks)                                   \
  X(a_checked_pair, ready_checked_pool, act_pair)                     \
  X(a_pair_and_no_room, ready_no_room, act_pair)                      \
  X(a_pair_and_room_for_half, ready_room_for_half, act_pair)          \
  X(a_pair_and_room_for_one, ready_room_for_one, act_pair)            \
  X(a_tagged_pair_and_room_for_one, ready_room_for_one, act_pair_for) \
  X(a_pair_and_a_full_arena, ready_full_pool, act_pair)               \
  X(the_first_pair_of_a_thread, ready_first_pool, act_pair)           \
  X(start_and_a_pair, ready_pool_alone, act_start_and_pair)           \
  X(a_reset, ready_pool, act_reset)

#define SIGNALS(X)                                           \
  X(a_pair, ready_pool, act_pair)                            \
  X(a_pair_with_tag_and_stream, ready_pool, act_pair_for)    \
  X(blocks, ready_pool, act_blocks)                          \
  X(a_pair_and_room_for_half, ready_room_for_half, act_pair) \
  X(a_pair_and_room_for_one, ready_room_for_one, act_pair)

#define WALK(name_, ready_, act_)                                      \
  static void name_##_is_whole_after_every_instruction(void **state) { \
    static const scene what = {#name_, ready_, act_};                  \
    (void)state;                                                       \
    walk(&what);                                                       \
  }
WALKS(WALK)

#define SIGNAL(name_, ready_, act_)                              \
  static void name_##_survives_a_signal_anywhere(void **state) { \
    static const scene what = {#name_, ready_, act_};            \
    (void)state;                                                 \
    interrupt_everywhere(&what);                                 \
  }
SIGNALS(SIGNAL)

static int clean(void **state) {
  (void)state;
  captures_clear();
  return 0;
}

int main(int argc, char **argv) {
#define WALK_ENTRY(name_, ready_, act_) \
  cmocka_unit_test_teardown(name_##_is_whole_after_every_instruction, clean),
#define SIGNAL_ENTRY(name_, ready_, act_) \
  cmocka_unit_test_teardown(name_##_survives_a_signal_anywhere, clean),
  const struct CMUnitTest tests[] = {WALKS(WALK_ENTRY) SIGNALS(SIGNAL_ENTRY)};
  skip_unless_steppable();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  static plan_judge *unused; /* plan.page comes with it */
  unused = plan_make();
  announced =
      mmap(NULL, sizeof *announced, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (!unused || announced == MAP_FAILED || !captures_make_folder(true)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  say_share();
  print_message("%llu instructions walked, %llu signals given, %llu times read\n",
                (unsigned long long)total.instructions, (unsigned long long)total.signals,
                (unsigned long long)total.readings);
  captures_remove_folder();
  return failed;
}
