/* Level requests of independent owners: see prof_level_want(). All with the control lock held. */
#ifndef PROF_CORE_SESSION_LEVEL_H
#define PROF_CORE_SESSION_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

/* Sets the program's request: the level of prof_start() and similar calls; 0 after a stop. Requests
   of owners are separate. */
void prof_i_level_request_by_program(uint32_t level);
/* Sets the program's request for memory events: on from prof_memory_start() to prof_memory_stop().
   */
void prof_i_level_request_memory(bool is_on);
/* Ends both requests of the program. Returns whether there was one. */
bool prof_i_level_request_drop_program(void);
/* Notes that recording has stopped, with or without requests. */
void prof_i_level_request_end_all(void);
/* The number of owners' requests, including paused ones. */
uint32_t prof_i_level_request_count(void);
/* Whether at least one owner's request is not paused. Such a request also records memory events. */
bool prof_i_level_request_has_memory(void);
/* The highest level that is requested; 0: none. */
uint32_t prof_i_level_request_max(void);
/* Whether the capture has only data of owners' requests, all of which have ended. */
bool prof_i_level_request_all_ended(void);
/* Notes that the capture was cleared, or is new. */
void prof_i_level_request_cleared(void);
/* In a forked child: drops the owners' requests. *level has the level that the parent records, and
   gets that of the child. Returns false if the program itself has no request: the child records
   nothing. */
bool prof_i_level_request_forget(uint32_t *level);

#endif
