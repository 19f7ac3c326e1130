/* What a traced child does: `ready` at full speed, then `act`, which is walked. Everything is
   announced (plan.h). A header only, since each test is one file. */
#ifndef PROF_TESTS_SCENES_H
#define PROF_TESTS_SCENES_H

#include "captures.h"
#include "core/buffer/arena.h"
#include "core/buffer/thread.h"
#include "core/record/cost_sample.h"
#include "plan.h"
#include "tracee.h"

static inline void start(uint32_t policy, uint64_t cap_bytes) {
  char path[CAPTURE_PATH_MAX];
  snprintf(path, sizeof path, "%s", captures_path("out.json"));
  const prof_options options = {
      .size = sizeof options,
      .policy = policy,
      .path = path,
      .cap_bytes = cap_bytes,
      .clock = plan.page->is_monotonic ? PROF_CLOCK_MONOTONIC : PROF_CLOCK_TSC};
  if (prof_start_with(&options) == PROF_OK) return;
  plan.page->skip = 1;
  snprintf((char *)(uintptr_t)plan.page->reason, sizeof plan.page->reason, "%s", prof_last_error());
  _exit(1);
}

static inline void start_stream(void) { start(PROF_POLICY_STREAM, 1 << 20); }
static inline void start_ring(void) { start(PROF_POLICY_RING, 1 << 20); }
static inline void start_monotonic(void) {
  plan.page->is_monotonic = 1;
  start_stream();
}
static inline void start_keep(void) { start(PROF_POLICY_KEEP, 1 << 20); }

/* Sites are known, the thread is attached. */
static inline void warm_up(void) {
  plan_plain();
  plan_named();
  plan_nested();
  plan_fill();
  plan_instant();
  plan_counter();
}

static inline uint64_t room_in_chunk(void) {
  const prof_i_head *const chunk = prof_i_this_thread->chunk;
  return chunk->cursor < chunk->bytes ? chunk->bytes - chunk->cursor : 0;
}

/* Few records, most of them wide: the fewer there are, the faster each state is judged. */
static inline void fill_up_to(uint64_t room) {
  plan_fill();
  for (uint64_t left; (left = room_in_chunk()) > room;) {
    const uint64_t most = left - room < PLAN_WIDE_BYTES ? left - room : PLAN_WIDE_BYTES;
    if (most < 48)
      plan_fill();
    else
      plan_wide_fill(most / 16 * 16);
  }
}

static inline void ready_stream(void) {
  start_stream();
  warm_up();
}
/* The sites have been learnt: what follows goes the short way. */
static inline void ready_shorts(void) {
  ready_stream();
  for (int i = 0; i < 2; i++) {
    plan_values();
    plan_words();
    plan_bare_name();
    plan_new_name();
    plan_text_scope();
  }
}
static inline void act_texts(void) {
  plan_new_name();
  plan_text_scope();
}
static inline void ready_full_chunk(void) {
  ready_stream();
  fill_up_to(0);
}
static inline void ready_nearly_full_chunk(void) {
  ready_stream();
  fill_up_to(16);
}

/* Goes on to a fresh chunk. Each begins with plain records, which a re-used one would show if its
   generation were missing; a few wide ones fill the rest. */
static inline void fill_to_next_chunk(void) {
  const prof_i_head *const chunk = prof_i_this_thread->chunk;
  for (int i = 0; i < 16; i++) plan_fill();
  while (prof_i_this_thread->chunk == chunk) plan_wide_fill(PLAN_WIDE_BYTES);
}
static inline bool has_overwritten(void) {
  prof_health health = {.size = sizeof health};
  prof_health(&health);
  return health.lost_count[PROF_LOSS_OVERWRITTEN] != 0;
}
static inline void ready_full_ring(void) {
  start_ring();
  warm_up();
  while (!has_overwritten()) fill_to_next_chunk();
  fill_up_to(0);
}
static inline void ready_ring(void) {
  start_ring();
  warm_up();
  for (int i = 0; i < 3; i++) fill_to_next_chunk();
}
static inline void ready_two_chunks(void) {
  ready_full_chunk();
  plan_fill();
}

static inline void act_plain(void) {
  plan_plain();
  plan_plain();
}
static inline void act_instant_and_counter(void) {
  plan_instant();
  plan_counter();
}
static inline void act_everything(void) {
  plan_plain();
  plan_named();
  plan_nested();
  plan_instant();
  plan_counter();
}
static inline void act_ring_again(void) {
  for (int i = 0; i < 6; i++) plan_plain();
  plan_named();
}

static inline void act_start(void) {
  start_stream();
  plan_plain();
}
static inline void stop(void) {
  plan.page->stop_begun = plan_ticks();
  prof_stop();
}
static inline void ready_stopped(void) {
  ready_stream();
  stop();
}
static inline void act_start_again(void) {
  start_stream();
  plan_plain();
  plan_named();
}
/* Another cap: another file, and the previous one keeps what it holds. */
static inline void act_start_other(void) {
  start(PROF_POLICY_STREAM, 2 << 20);
  plan_plain();
  plan_named();
}
/* The thread is known, and comes into another capture. */
static inline void ready_other(void) {
  ready_stopped();
  start(PROF_POLICY_STREAM, 2 << 20);
}
static inline void stop_start(void) {
  stop();
  start_stream();
  plan_plain();
}
static inline void stop_start_other(void) {
  stop();
  start(PROF_POLICY_STREAM, 2 << 20);
  plan_plain();
}
static inline void act_stop(void) {
  plan_plain();
  stop();
}
static inline void act_stop_inside(void) {
  PLAN_SCOPE(PLAN_OUTER, "outer", "outer", PROF_NO_ARGS, stop());
}
static inline void act_restart_inside(void) {
  PLAN_SCOPE(PLAN_OUTER, "outer", "outer", PROF_NO_ARGS, stop_start());
}
static inline void act_replace_inside(void) {
  PLAN_SCOPE(PLAN_OUTER, "outer", "outer", PROF_NO_ARGS, stop_start_other());
}

static inline void clear(void) {
  plan.page->clear_begun = plan_ticks();
  prof_clear();
  plan.page->clear_done = plan_ticks();
}
static inline void act_clear(void) {
  clear();
  plan_plain();
  plan_named();
}
static inline void act_clear_inside(void) {
  PLAN_SCOPE(PLAN_OUTER, "outer", "outer", PROF_NO_ARGS, clear());
}

static inline void dump(void) {
  char path[CAPTURE_PATH_MAX];
  snprintf(path, sizeof path, "%s", captures_path("out.json"));
  prof_dump(path);
}
static inline void act_dump(void) {
  PLAN_SCOPE(PLAN_OUTER, "outer", "outer", PROF_NO_ARGS, dump());
}
static inline void act_stop_and_dump(void) {
  stop();
  dump();
}

/* Three scopes open when the last chunk and the arena are full: their records come into the
   reserve. */
static inline void ready_full_arena(void) {
  start_keep();
  warm_up();
  do fill_up_to(0);
  while (prof_i_arena_header()->used_bytes + PROF_I_UNIT_BYTES <= prof_i_the_arena.cap_bytes);
}
static inline void act_full_inside(void) {
  PLAN_SCOPE(PLAN_OUTER, "outer", "outer", PROF_NO_ARGS, plan_nested());
  plan_plain();
}

/* Deeper than the entries of the slot: there, an open scope is remembered, but not shown. */
static inline void go_down(int depth) {
  if (depth == 0)
    plan_deep_named();
  else
    PLAN_SCOPE(PLAN_DEEP, "deep", "deep", PROF_NO_ARGS, go_down(depth - 1));
}
static inline void act_deep(void) { go_down(PROF_I_OPEN_COUNT + 2); }

/* Scopes begun by call inside a block, which ends before them: its end moves their entries down. */
typedef struct scenes_call {
  volatile plan_log *log;
  uint64_t start;
} scenes_call;
static inline scenes_call begin_call(plan_kind kind) {
  static prof_site sites[PLAN_KIND_COUNT];
  scenes_call call = {plan_announce(kind), 0};
  call.start = prof_scope_begin_at(&sites[kind], plan_categories[kind], plan_categories[kind]);
  call.log->begun = plan_ticks();
  return call;
}
static inline void end_call(scenes_call call) {
  call.log->before_end = plan_ticks();
  prof_scope_end(call.start);
  call.log->ended = plan_ticks();
}
static inline void begin_calls_in_block(scenes_call *calls) {
  PLAN_SCOPE(PLAN_OUTER, "outer", "outer", PROF_NO_ARGS, {
    calls[0] = begin_call(PLAN_INNER);
    calls[1] = begin_call(PLAN_INNER);
  });
}
static inline void act_calls_in_blocks(void) {
  scenes_call calls[4];
  PLAN_SCOPE(PLAN_PLAIN, "plain", "a plain scope", PROF_NO_ARGS, {
    begin_calls_in_block(calls);
    begin_calls_in_block(calls + 2);
    end_call(calls[0]);
  });
  for (int i = 3; i > 0; i--) end_call(calls[i]);
}
/* Some of them have no entry in the slot, and get one there. */
static inline void act_deep_calls_in_blocks(void) {
  scenes_call calls[PROF_I_OPEN_COUNT + 2];
  int count = 0;
  while (count < PROF_I_OPEN_COUNT - 1) calls[count++] = begin_call(PLAN_DEEP);
  PLAN_SCOPE(PLAN_DEEP, "deep", "deep", PROF_NO_ARGS, {
    for (int i = 0; i < 3; i++) calls[count++] = begin_call(PLAN_DEEP);
  });
  while (count > 0) end_call(calls[--count]);
}

static inline void deep_block(void) {
  PLAN_SCOPE(PLAN_DEEP, "deep", "deep", PROF_NO_ARGS, (void)0);
}
/* Some have ended before others, and blocks take their entries: those do not tell what began
   first. */
static inline void act_blocks_beside_calls(void) {
  scenes_call calls[PROF_I_OPEN_COUNT + 2];
  int count = 0;
  while (count < PROF_I_OPEN_COUNT + 2) calls[count++] = begin_call(PLAN_DEEP);
  for (int i = 20; i < 24; i++) end_call(calls[i]);
  PLAN_SCOPE(PLAN_DEEP, "deep", "deep", PROF_NO_ARGS, {
    deep_block();
    calls[20] = begin_call(PLAN_DEEP);
    deep_block();
  });
  deep_block();
  while (count > 0)
    if (--count < 21 || count > 23) end_call(calls[count]);
}

/* The thread has losses to leave behind. */
static inline void ready_with_losses(void) {
  ready_full_arena();
  for (int i = 0; i < 3; i++) plan_plain();
}

typedef struct scenario {
  const char *name;
  void (*ready)(void);
  void (*act)(void);
  bool makes_captures; /* files appear while it is walked */
  bool ends_thread;    /* all is done in a thread, and the walk goes on until it is gone */
} scenario;

static inline void nothing(void) {}

/* The destructors of a thread run in the order in which their keys were made: this one after
   prof's. */
static inline void walk_is_over(void *unused) {
  (void)unused;
  plan.page->phase = 2;
  tracee_trap();
}

static inline void walk_to_the_end_of_the_thread(void) {
  pthread_key_t key;
  if (pthread_key_create(&key, walk_is_over) != 0 || pthread_setspecific(key, plan_wide()) != 0)
    _exit(4);
}

static inline void child_body(void *context) {
  const scenario *const what = context;
  what->ready();
  if (what->ends_thread) walk_to_the_end_of_the_thread();
  plan.page->phase = 1;
  tracee_trap();
  what->act();
  if (!what->ends_thread) walk_is_over(NULL);
}

/* One instruction on, and past what times the recorder: that touches no capture, and takes 600 000
   instructions. */
static inline void walk_on(tracee *child) {
  const uint64_t at = tracee_at(child);
  const bool times = at == (uint64_t)(uintptr_t)prof_i_cost_measure ||
                     at == (uint64_t)(uintptr_t)prof_i_cost_sample_calibrate;
  if (!times)
    tracee_step(child);
  else if (!tracee_finish(child) && child->signal == SIGTRAP)
    child->signal = 0;
}

#endif
