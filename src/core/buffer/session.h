/* What every floor reads of the session. state.c has it. The control calls (src/core/session) write
   it, except `epoch` (../record/site.c) and prof_i_memory_on (src/memory). */
#ifndef PROF_CORE_BUFFER_SESSION_H
#define PROF_CORE_BUFFER_SESSION_H

#include <stdbool.h>
#include <stdint.h>

/* A call site's epoch has this bit while the site is muted. */
enum { PROF_I_EPOCH_MUTED = 1 << 30 };
/* The epoch of a thread that has found the arena full: no site has it. */
#define PROF_I_EPOCH_FULL 0xfffffffeu

/* Times are in ticks. */
typedef struct prof_i_session {
  uint32_t is_recording; /* any thread, relaxed: the gate orders it */
  /* 1 in a forked child whose parent recorded: its own capture is made at its first scope */
  uint32_t child_waits;
  /* the fork that this process came from; 0: none. Scopes that began before it are the parent's.
     Set before the child has threads */
  uint64_t forked_at;
  uint64_t first_at; /* the process's first capture began: no scope began before */
  /* the capture in force began; 0: no capture. For callers that cannot read the arena: another one
     may replace it at any moment */
  uint64_t since;
  /* what call sites answer to, 1 to PROF_I_EPOCH_MUTED - 1; raised when each must ask again. Any
     thread; sequentially consistent */
  uint32_t epoch;
  void (*make_child)(void); /* makes the capture that child_waits announces; signal-safe */
} prof_i_session;
extern prof_i_session prof_i_the_session __attribute__((visibility("hidden")));

/* Is a session on? Any thread. Signal-safe. */
static inline bool prof_i_session_is_recording(void) {
  return __atomic_load_n(&prof_i_the_session.is_recording, __ATOMIC_RELAXED) != 0;
}
static inline uint64_t prof_i_session_forked_at(void) { return prof_i_the_session.forked_at; }
static inline uint64_t prof_i_session_first_at(void) {
  return __atomic_load_n(&prof_i_the_session.first_at, __ATOMIC_RELAXED);
}
static inline uint64_t prof_i_session_since(void) {
  return __atomic_load_n(&prof_i_the_session.since, __ATOMIC_RELAXED);
}
static inline uint32_t prof_i_session_epoch(void) {
  return __atomic_load_n(&prof_i_the_session.epoch, __ATOMIC_SEQ_CST);
}

/* Is memory recorded? */
enum { PROF_I_MEMORY_OFF = 0, PROF_I_MEMORY_ON = 1, PROF_I_MEMORY_STARTS = 2 };
extern uint32_t prof_i_memory_on __attribute__((visibility("hidden"))); /* atomic, relaxed */
/* True also while it starts: then events go the slow way, which asks prof_i_pool_is_recorded(). */
static inline bool prof_i_session_has_memory(void) {
  return __atomic_load_n(&prof_i_memory_on, __ATOMIC_RELAXED) != PROF_I_MEMORY_OFF;
}

/* In a forked child whose parent recorded: makes the child's own capture at its first scope. Tries
   the control lock, and returns if another thread holds it. Signal-safe. Costs a load when there is
   nothing to do. */
void prof_i_session_ensure(void);

#endif
