/* Changes of what is recorded, as the capture keeps them: the level's steps, call sites that are
   muted or heard again. */
#ifndef PROF_CORE_RECORD_CHANGE_LOG_H
#define PROF_CORE_RECORD_CHANGE_LOG_H

#include <prof/trace.h>

#include "../buffer/observer.h"

typedef struct prof_i_change_entry {
  prof_change_kind kind;
  prof_change_reason reason;
  uint32_t site, level_before, level_after;
  uint64_t thread;            /* its serial */
  uint64_t measured, allowed; /* millionths of a thread's time, or events a second */
} prof_i_change_entry;

/* Nothing where no arena is. Any thread. Signal-safe. */
void prof_i_change_log_write(const prof_i_change_entry *change);

/* Tells the capture of a level that somebody has set from outside. While a session is on. Any
   thread. Signal-safe. */
void prof_i_change_log_check_level(void);

/* Around a change by this process, so that it is not taken for one from outside. why NULL: a start
   or a stop, which has records of its own. */
uint32_t prof_i_change_log_begin_level(void);
void prof_i_change_log_end_level(uint32_t before, const prof_i_change_entry *why);

/* The program asked for it. */
void prof_i_change_log_write_site(prof_change_kind kind, uint32_t site);

/* Functions are no longer traced, and other threads have some open. From now on readers do not use
   those as a stack. Not written if the arena has no room. Any thread. */
void prof_i_change_log_end_functions(void);

/* Of the arena in force. */
uint32_t prof_i_change_log_count(void);
void prof_i_change_log_begin(void);

extern const prof_i_observer prof_i_change_observer __attribute__((visibility("hidden")));

#endif
