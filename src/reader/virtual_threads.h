/* Calls of a vendor's interface, which its own tracing told (PROF_I_KIND_CALL): the collector
   writes them, on a line of its own for each thread; here they come among that thread's scopes. */
#ifndef PROF_READER_CALLS_H
#define PROF_READER_CALLS_H

#include "capture.h"

/* What stands on such lines becomes the threads'. Before segments and mentions are put in order. 0
   or PROF_E_NO_MEMORY. */
int prof_i_virtual_threads_join(prof_trace *trace);

/* A thread that has nothing but calls is called as its line is. */
void prof_i_virtual_threads_name(const prof_trace *trace, prof_i_trace_thread *thread,
                                 const char *name);

#endif
