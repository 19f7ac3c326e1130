/* Level requests of independent owners: see prof_level_want(). All with the control lock held. */
#ifndef PROF_CORE_SESSION_LEVEL_H
#define PROF_CORE_SESSION_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

/* The program's own request, beside those of owners: the level of prof_start() and its kin; 0 after
   a stop. */
void prof_i_level_request_by_program(uint32_t level);
/* The program's request for memory events: prof_memory_start(), or its end. */
void prof_i_level_request_memory(bool is_on);
/* Ends both requests of the program. Returns whether there was one. */
bool prof_i_level_request_drop_program(void);
/* Recording has stopped, whatever requests there are. */
void prof_i_level_request_end_all(void);
/* The number of owners' requests, with the paused ones. */
uint32_t prof_i_level_request_count(void);
/* Whether an owner's request is not paused. It records memory events, too. */
bool prof_i_level_request_has_memory(void);
/* The highest level that is requested; 0: none. */
uint32_t prof_i_level_request_max(void);
/* Whether the capture has only data of owners' requests, all of which have ended. */
bool prof_i_level_request_all_ended(void);
/* The capture has been cleared, or is a new one. */
void prof_i_level_request_cleared(void);
/* In a forked child: drops the owners' requests. *level has the level that the parent records, and
   gets that of the child. Returns false if the program itself has no request: the child records
   nothing. */
bool prof_i_level_request_forget(uint32_t *level);

#endif
