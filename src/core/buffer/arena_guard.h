/* The gate of the slow path. While a thread is past it, the arena stays in force. prof_start() with
   another arena, and prof_clear(), close it and wait until all threads are out. Recording does not
   wait: if it finds the gate closed, it counts a loss. */
#ifndef PROF_CORE_BUFFER_ARENA_GUARD_H
#define PROF_CORE_BUFFER_ARENA_GUARD_H

#include <stdbool.h>

bool prof_i_arena_guard_enter(void); /* false: closed. Signal-safe; may nest */
void prof_i_arena_guard_exit(void);

/* Closes; waits at most two seconds for those inside. False: a thread, for example a stopped one,
   did not leave, and the gate is open again. A handler of a thread that is past the gate does not
   wait. */
bool prof_i_arena_guard_drain(void);
/* For an error's text: what the gate waits for. */
const char *prof_i_arena_guard_busy_reason(void);
void prof_i_arena_guard_open(void);
void prof_i_arena_guard_reset(void); /* in a forked child */

#endif
