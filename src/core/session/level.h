/* Level requests of independent owners: see prof_level_want(). All with the control lock held. */
#ifndef PROF_CORE_SESSION_LEVEL_H
#define PROF_CORE_SESSION_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

/* A start was asked for by name, or one of memory, beside whatever level, or the end of that. */
void prof_i_level_request_by_program(uint32_t level);
void prof_i_level_request_memory(bool is_on);
/* The end of both. Had anybody asked? */
bool prof_i_level_request_drop_program(void);
/* Nothing is recording any more, whatever requests there are. */
void prof_i_level_request_end_all(void);
/* The number of requests, with the paused ones. */
uint32_t prof_i_level_request_count(void);
bool prof_i_level_request_has_memory(void);
/* What anybody wants. */
uint32_t prof_i_level_request_max(void);
/* Is all that stands in the capture of wishes that are gone? */
bool prof_i_level_request_all_ended(void);
/* The capture has been cleared, or is a fresh one. */
void prof_i_level_request_cleared(void);
/* A forked child: nobody here wants anything yet. *level is what the parent recorded, and becomes
   what goes on: what was asked for. False: nothing does. */
bool prof_i_level_request_forget(uint32_t *level);

#endif
