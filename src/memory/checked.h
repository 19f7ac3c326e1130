/* Checked pools: a table of live pieces beside the pool, off the arena, so that wrong calls are
   seen at once and never added up. Not for production: a lock a pool, and a search a call. */
#ifndef PROF_MEMORY_CHECKED_H
#define PROF_MEMORY_CHECKED_H

#include <stdbool.h>

#include "pool_state.h"

/* NULL: no memory. */
struct prof_i_checked *prof_i_checked_create(void);
/* Out of the pool's hands: no other pool's thread looks into it any more. NULL: it has none. */
struct prof_i_checked *prof_i_checked_acquire(prof_pool *pool);
void prof_i_checked_destroy(struct prof_i_checked *checked);

/* Judge the call, note what is wrong with it, and bring the table up to date. False: it must not be
   counted. *given_bytes: what the table says, where the caller did not know. */
bool prof_i_checked_alloc(prof_pool *pool, struct prof_i_checked *checked, uint64_t address,
                          uint64_t given_bytes);
bool prof_i_checked_free(prof_pool *pool, struct prof_i_checked *checked, uint64_t address,
                         uint64_t *given_bytes);

#endif
