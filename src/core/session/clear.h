/* prof_clear(): what ended before it is forgotten at once, and its room comes back by steps, beside
   threads that record and read. */
#ifndef PROF_CORE_SESSION_CLEAR_H
#define PROF_CORE_SESSION_CLEAR_H

/* Chunks that were cleared while a reader held them go back. To be called where the last reader of
   them has ended, without the control lock. */
void prof_i_clear_free_deferred(void);

#endif
