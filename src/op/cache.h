/* Results that are kept, by key, device and what was asked for. In memory, at most 1024, the one
   used longest ago goes first; and in a file, if one was named. Any thread, and over a fork. */
#ifndef PROF_OP_CACHE_H
#define PROF_OP_CACHE_H

#include "result.h"

/* A copy, the caller's; NULL: there is none (or no memory for it). *file_status_out: why the file
   could not be asked. */
prof_op_result *prof_i_cache_find(const prof_i_op_identity *identity, const char *key,
                                  int32_t *file_status_out);

/* Keeps a copy, in the place of one of the same identity. Without memory it is not kept.
   *file_status_out: why the file did not take it. */
void prof_i_cache_store(const prof_op_result *result, int32_t *file_status_out);

#endif
