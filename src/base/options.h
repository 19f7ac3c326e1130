/* Options of public calls are sized structs: checks them, and completes them with zeros. */
#ifndef PROF_BASE_OPTIONS_H
#define PROF_BASE_OPTIONS_H

#include <prof/profiler.h>

#include "port.h"

/* Copies a caller's sized struct over defaults of zero: a smaller one is an older caller's; a
   larger one must have zeros behind. PROF_E_INVALID otherwise. */
int prof_i_sized_copy(void *to, size_t to_bytes, const void *from, const char *what);

/* Hands a struct out as far as the caller's own goes; what a newer caller has beyond is zero, its
   size stays. PROF_E_INVALID: it says none. */
int prof_i_sized_copy_out(void *to, const void *from, size_t from_bytes, const char *what);

/* Checks values and fills in what depends on others: level, policy, cap. The path is left as it
   is. */
int prof_i_options_complete(prof_options *options);

/* As of the last start: a forked child finds them here, without a look at any file. Any thread. */
prof_i_limits prof_i_options_limits(void);

/* The cap of a capture in memory that was given none: it follows the memory limit of the machine or
   control group. */
uint64_t prof_i_options_memory_cap(void);

#endif
